//! Feeds any messages of a control element to a forwarding element, on any channel and at any time.
//! The forwarding element does not panic, every reply can be decoded, and the values of its
//! instances keep their types.
//!
//! Each message is a byte for its channel and the elapsed time, two bytes for its length, and its
//! contents. Version, length and ids in its header are corrected.

#![no_main]

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::time::Duration;

use forces::association::{Change, Channel, Element, Fe, FeSettings, Place};
use forces::wire::{Header, Id, MessageKind, Redirect, ResultCode, data, decode};
use forces::{Catalog, Value, library};
use libfuzzer_sys::fuzz_target;

static CATALOG: OnceLock<Catalog> = OnceLock::new();

const CE: Id = Id(0x4000_0001);
const FE: Id = Id(2);
/// Classes with an instance.
const CLASSES: [u32; 4] = [1, 3, 10, 16];

type Values = BTreeMap<(u32, u32), Value>;

struct Held {
    now: Values,
    staged: Option<Values>,
    before: Option<Values>,
}

fn catalog() -> &'static Catalog {
    CATALOG.get_or_init(library::standard)
}

fn apply(values: &mut Values, change: Change) -> Result<(), ResultCode> {
    let place = change.place().clone();
    let missing = ResultCode::COMPONENT_DOES_NOT_EXIST;
    let (&first, rest) = place.path.split_first().ok_or(ResultCode::INVALID_PATH)?;
    let root = values.get_mut(&(place.class, first)).ok_or(missing)?;
    let mut changed = root.clone();
    match change {
        Change::Set { value, .. } => drop(changed.put(rest, value).map_err(|_| missing)?),
        Change::Merge { value, .. } => changed.at_mut(rest).ok_or(missing)?.merge(value),
        Change::Delete { .. } => drop(changed.take(rest).ok_or(ResultCode::NOT_FOUND)?),
    }
    let class = catalog().class_by_id(place.class).ok_or(ResultCode::LFB_UNKNOWN)?;
    let component = class.component_by_id(first).ok_or(missing)?;
    component.data_type.check(&changed).map_err(|fault| data::code_of(&fault))?;
    *root = changed;
    Ok(())
}

impl Element for Held {
    fn catalog(&self) -> &Catalog {
        catalog()
    }

    fn has_instance(&self, class: u32, instance: u32) -> bool {
        instance == 1 && CLASSES.contains(&class)
    }

    fn get(&self, place: &Place) -> Result<Value, ResultCode> {
        let (first, rest) = place.path.split_first().ok_or(ResultCode::INVALID_PATH)?;
        let part = self.now.get(&(place.class, *first)).and_then(|value| value.at(rest));
        part.cloned().ok_or(ResultCode::COMPONENT_DOES_NOT_EXIST)
    }

    fn stage(&mut self, change: Change) -> ResultCode {
        let mut staged = self.staged.take().unwrap_or_else(|| self.now.clone());
        let result = apply(&mut staged, change);
        self.staged = Some(staged);
        result.err().unwrap_or(ResultCode::SUCCESS)
    }

    fn unstage(&mut self) {
        self.staged = None;
    }

    fn commit(&mut self) -> ResultCode {
        let staged = self.staged.take().unwrap_or_else(|| self.now.clone());
        self.before = Some(std::mem::replace(&mut self.now, staged));
        ResultCode::SUCCESS
    }

    fn roll_back(&mut self) {
        if let Some(before) = self.before.take() {
            self.now = before;
        }
    }

    fn complete(&mut self) {
        self.before = None;
    }

    fn set_forwarding(&mut self, _: bool) {}

    fn redirect(&mut self, _: Redirect) {}
}

/// A message with valid version, length and ids.
fn framed(octets: &[u8], kind: Option<MessageKind>) -> Vec<u8> {
    let mut bytes = octets.to_vec();
    bytes.resize(bytes.len().next_multiple_of(4).max(24), 0);
    let words = (bytes.len() / 4) as u16;
    bytes[0] = 0x10;
    bytes[2..4].copy_from_slice(&words.to_be_bytes());
    bytes[4..8].copy_from_slice(&CE.0.to_be_bytes());
    bytes[8..12].copy_from_slice(&FE.0.to_be_bytes());
    if let Some(kind) = kind {
        bytes[1] = kind.wire();
    }
    bytes
}

fuzz_target!(|bytes: &[u8]| {
    let components = CLASSES.iter().flat_map(|&class| {
        let class_found = catalog().class_by_id(class).expect("it is a shipped one");
        class_found.components.iter().map(move |it| ((class, it.id), it.default_value()))
    });
    let mut element = Held { now: components.collect(), staged: None, before: None };
    let settings = FeSettings {
        id: FE,
        primary: CE,
        backups: vec![Id(0x4000_0002)],
        ha_mode: 1,
        goes_on: true,
        goes_on_for_ms: 300_000,
        forwards: false,
        name: String::new(),
        vendor: String::new(),
        model: String::new(),
    };
    let mut now = Duration::ZERO;
    let mut fe = Fe::new(&settings, now);
    fe.connected(CE, now);
    let setup = framed(&[0; 24], Some(MessageKind::AssociationSetupResponse));
    let setup = framed(&[&setup[..], &[0, 0x10, 0, 8, 0, 0, 0, 0]].concat(), None);
    fe.receive(CE, Channel::High, &setup, &mut element, now);
    let mut rest = bytes;
    while let [how, high, low, behind @ ..] = rest {
        let octets = usize::from(u16::from_be_bytes([*high, *low])).min(behind.len());
        let (message, others) = behind.split_at(octets);
        rest = others;
        now += Duration::from_millis(u64::from(how >> 2) * 100);
        fe.tick(&mut element, now);
        let message = framed(message, None);
        let kind = Header::read(&message).map(|(_, framing)| Channel::of(framing.kind));
        let channel = match how & 3 {
            0 => Channel::Low,
            _ => kind.unwrap_or(Channel::High),
        };
        fe.receive(CE, channel, &message, &mut element, now);
        while let Some((_, answer)) = fe.poll_transmit(CE) {
            decode(&answer).expect("what is sent can be read");
        }
        while fe.poll_event().is_some() {}
    }
    for ((class, component), value) in &element.now {
        let class = catalog().class_by_id(*class).expect("it is a shipped one");
        let component = class.component_by_id(*component).expect("it was there");
        component.data_type.check(value).expect("changes are checked");
    }
});
