//! Tests of every change of a frame against a slow reference model, and of both against tshark.
//!
//! The model represents a frame as a list of headers, changes single headers, and rebuilds the
//! whole frame with full checksums. The in-place changes of [`dataplane::rewrite`] must give the
//! same bytes for every frame and change.

#![allow(clippy::unwrap_used)]

use dataplane::action::Action;
use dataplane::parse::Headers;
use dataplane::rewrite::{self, Context};
use packet::field::Field;
use packet::frame::Frame;

#[path = "../../src/rng.rs"]
mod rng;
mod change;
mod edge;
mod judge;
mod kinds;
mod model;

use change::change;
use kinds::{KINDS, LINKS};
use model::{Link, Model, Network};
use rng::Rng;

/// The fields of a frame's bytes that can be set without a change of the frame's kind.
fn fields() -> impl Iterator<Item = Field> {
    let others = [
        Field::InPort,
        Field::InPhyPort,
        Field::EthType,
        Field::IpProto,
        Field::Ipv6Exthdr,
        Field::ActsetOutput,
        Field::PacketType,
    ];
    Field::ALL.into_iter().filter(move |field| !others.contains(field))
}

fn random_value(field: Field, dice: &mut Rng) -> u128 {
    let wide = [40, 80, 120].map(|shift| u128::from(dice.roll(1 << 40)) << (shift - 40));
    let value = (wide[0] | wide[1] | wide[2] | u128::from(dice.roll(256)) << 120) & field.ones();
    match field {
        // A message that becomes a neighbor discovery message would have new fields.
        Field::Icmpv6Type => value & 0x7f,
        _ => value,
    }
}

fn random_mask(field: Field, dice: &mut Rng) -> u128 {
    let mask = match dice.roll(3) {
        0 => random_value(field, dice),
        1 => field.ones() >> dice.roll(u64::from(field.bits())),
        _ => field.ones(),
    };
    // The model has eight of the twelve flags.
    if field == Field::TcpFlags { mask & 0xff } else { mask }
}

/// Returns the pipeline fields of a model.
fn context_of(model: &Model) -> Context {
    Context { metadata: model.metadata, tunnel_id: model.tunnel_id, ..Context::default() }
}

/// Draws frames with all combinations of link headers and payloads.
fn every_kind(rounds: u64, mut check: impl FnMut(Model, &mut Rng)) {
    for round in 0..rounds {
        for links in 0..LINKS {
            for kind in 0..KINDS {
                let mut dice = Rng::new((round * LINKS + links) * KINDS + kind);
                check(kinds::frame(links, kind, &mut dice), &mut dice);
            }
        }
    }
}

#[test]
fn every_field_of_every_frame_is_read_correctly() {
    every_kind(8, |model, _| {
        let bytes = model.bytes();
        let headers = Headers::of(&bytes);
        for field in fields().chain([Field::EthType]) {
            if !matches!(field, Field::Metadata | Field::TunnelId) {
                assert_eq!(headers.get(field, &bytes), model.get(field), "{field} of {model:?}");
            }
        }
    });
}

#[test]
fn every_field_can_be_set_with_and_without_mask() {
    every_kind(8, |model, dice| {
        for field in fields() {
            let (value, mask) = (random_value(field, dice), random_mask(field, dice));
            check(&Action::SetField { field, value: value & mask, mask }, &mut model.clone());
        }
    });
}

#[test]
fn any_bits_of_any_field_can_be_copied_to_any_other() {
    let fields: Vec<Field> = fields().collect();
    every_kind(8, |model, dice| {
        for _ in 0..60 {
            if let Some(action) = random_copy(&model, &fields, dice) {
                check(&action, &mut model.clone());
            }
        }
    });
}

/// Draws a copy action, usually between fields that the frame has.
fn random_copy(model: &Model, fields: &[Field], dice: &mut Rng) -> Option<Action> {
    let (from, to) = (dice.pick(fields), dice.pick(fields));
    let missing = model.get(from).is_none() || model.get(to).is_none();
    if missing && dice.roll(20) != 0 || to == Field::Icmpv6Type {
        return None;
    }
    let to_bits = if to == Field::TcpFlags { 8 } else { to.bits() };
    let bits = 1 + dice.roll(u64::from(from.bits().min(to_bits)));
    Some(Action::CopyField {
        from,
        from_bit: dice.roll(u64::from(from.bits()) - bits + 1) as u8,
        to,
        to_bit: dice.roll(u64::from(to_bits) - bits + 1) as u8,
        bits: bits as u8,
    })
}

#[test]
fn random_changes_give_the_rebuilt_frame() {
    every_kind(40, |mut model, dice| {
        for _ in 0..=dice.roll(12) {
            if let Some(action) = random_action(&model, dice) {
                check(&action, &mut model);
            }
        }
    });
}

/// Draws an action that is meaningful for the current frame.
fn random_action(model: &Model, dice: &mut Rng) -> Option<Action> {
    let ttl = dice.roll(256) as u8;
    Some(match dice.roll(18) {
        0 => Action::PushVlan(dice.pick(&[0x8100, 0x88a8])),
        1 => Action::PopVlan,
        2 => Action::PushMpls(dice.pick(&[0x8847, 0x8848])),
        3 => Action::PushMplsBehindVlan(dice.pick(&[0x8847, 0x8848])),
        4 => Action::PopMpls(model.type_behind_mpls()?),
        5 => Action::PushPbb(0x88e7),
        6 => Action::PopPbb,
        7 => Action::CopyTtlOut,
        8 => Action::CopyTtlIn,
        9 => Action::SetMplsTtl(ttl),
        10 => Action::DecMplsTtl,
        11 => Action::SetIpTtl(ttl),
        12 => Action::DecIpTtl,
        13 => Action::SetVlan(dice.roll(4096) as u16),
        14 => Action::SetVlanPriority(dice.roll(8) as u8),
        15 => Action::SetL4Src(dice.roll(1 << 16) as u16),
        16 => Action::SetL4Dst(dice.roll(1 << 16) as u16),
        _ => {
            // A wrong bottom-of-stack bit changes the meaning of the next header.
            let fields: Vec<Field> = fields().filter(|field| *field != Field::MplsBos).collect();
            let field = dice.pick(&fields);
            let mask = random_mask(field, dice);
            Action::SetField { field, value: random_value(field, dice) & mask, mask }
        }
    })
}

/// Applies an action to the model and to its frame, and compares them.
fn check(action: &Action, model: &mut Model) {
    let before = model.clone();
    let mut frame = Frame::from_bytes(&model.bytes());
    let mut context = context_of(model);
    let reported = rewrite::apply(action, &mut frame, &mut context);
    let expected = change(action, model);
    assert_eq!(reported, expected, "{action:?} of {before:?}");
    assert_eq!(context, context_of(model), "{action:?} of {before:?}");
    let wanted = model.bytes();
    if frame.bytes() != wanted {
        panic!("{action:?} gives\n{} not\n{}\n{before:?}", hex(frame.bytes()), hex(&wanted));
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
