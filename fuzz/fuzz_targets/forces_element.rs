//! Sends any messages of a control element to an element that runs a program. The element does not
//! panic, every reply can be decoded, and the running program is valid and still forwards.
//!
//! The message format is that of `forces_session`. The clock is constant; that target covers
//! timers.

#![no_main]

use std::sync::OnceLock;
use std::time::Duration;

use dataplane::forwarder::{Forwarder, Outputs};
use forces::association::{Channel, Fe, FeSettings};
use forces::wire::{Header, Id, MessageKind, decode};
use libfuzzer_sys::fuzz_target;
use packet::frame::Batch;
use packet::time::Nanos;
use progfe::compile::Compiled;
use progfe::control::{Control, Speaker};
use progfe::element::Element;
use progfe::program::Program;
use progfe::program::document::no_files;
use progfe::xml::Source;

const CE: Id = Id(0x4000_0001);
const FE: Id = Id(2);

fn program() -> Program {
    static PROGRAM: OnceLock<Program> = OnceLock::new();
    let read = || {
        let text = include_str!("../../examples/progfe/router.fe.xml");
        let (program, problems) = Program::load(&Source::new("router", text), &no_files);
        program.unwrap_or_else(|| panic!("{problems}"))
    };
    PROGRAM.get_or_init(read).clone()
}

/// A message with valid version, length and ids.
fn framed(octets: &[u8]) -> Vec<u8> {
    let mut bytes = octets.to_vec();
    bytes.resize(bytes.len().next_multiple_of(4).max(24), 0);
    let words = (bytes.len() / 4) as u16;
    bytes[0] = 0x10;
    bytes[2..4].copy_from_slice(&words.to_be_bytes());
    bytes[4..8].copy_from_slice(&CE.0.to_be_bytes());
    bytes[8..12].copy_from_slice(&FE.0.to_be_bytes());
    bytes
}

fuzz_target!(|bytes: &[u8]| {
    let mut element: Element<Compiled> = Element::start(program(), 7).expect("it is an example");
    let (mut control, mut out) = (Control::default(), Outputs::new(&[1, 2]));
    let settings = FeSettings {
        id: FE,
        primary: CE,
        backups: Vec::new(),
        ha_mode: 0,
        goes_on: true,
        goes_on_for_ms: u32::MAX,
        forwards: true,
        name: String::new(),
        vendor: String::new(),
        model: String::new(),
    };
    let (moment, now) = (Duration::ZERO, Nanos::ZERO);
    let mut fe = Fe::new(&settings, moment);
    fe.connected(CE, moment);
    let mut setup = vec![0; 24];
    setup[1] = MessageKind::AssociationSetupResponse.wire();
    setup.extend([0, 0x10, 0, 8, 0, 0, 0, 0]);
    let mut rest = bytes;
    let mut next = Some(framed(&setup));
    while let Some(message) = next {
        let kind = Header::read(&message).map(|(_, framing)| Channel::of(framing.kind));
        let (element, control, out) = (&mut element, &mut control, &mut out);
        let mut speaker = Speaker { control, element, now, out };
        fe.receive(CE, kind.unwrap_or(Channel::High), &message, &mut speaker, moment);
        while let Some((_, answer)) = fe.poll_transmit(CE) {
            decode(&answer).expect("what is sent can be read");
        }
        while fe.poll_event().is_some() {}
        next = match rest {
            [_, high, low, behind @ ..] => {
                let octets = usize::from(u16::from_be_bytes([*high, *low])).min(behind.len());
                let (message, others) = behind.split_at(octets);
                rest = others;
                Some(framed(message))
            }
            _ => None,
        };
    }
    let problems = progfe::check::check(element.program());
    assert!(!problems.refuses(), "{problems}");
    let mut batch = Batch::new(1);
    batch.push_bytes(&[0xff; 60]);
    element.forward(1, &mut batch, now, &mut out);
});
