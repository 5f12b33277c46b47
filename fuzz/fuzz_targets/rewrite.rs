//! Applies any actions to any frame. Nothing panics, sizes change as the actions require, and valid
//! checksums stay valid.
//!
//! The first byte gives the number of actions, of ten bytes each. The rest is the frame.

#![no_main]

use dataplane::action::Action;
use dataplane::parse::Headers;
use dataplane::rewrite::{Context, apply};
use libfuzzer_sys::fuzz_target;
use packet::field::{FIELDS, Field};
use packet::frame::Frame;
use packet::parse::Packet;

/// Bytes of an action in the input.
const ACTION_BYTES: usize = 10;

fuzz_target!(|bytes: &[u8]| {
    let Some((&count, rest)) = bytes.split_first() else { return };
    let Some((actions, bytes)) = rest.split_at_checked(usize::from(count) * ACTION_BYTES) else {
        return;
    };
    let mut frame = Frame::from_bytes(bytes);
    let mut context = Context::default();
    for choice in actions.as_chunks::<ACTION_BYTES>().0 {
        let action = action(choice);
        let (before, was_right) = (frame.len(), is_right(frame.bytes()));
        let shape = Headers::of(frame.bytes());
        let told = apply(&action, &mut frame, &mut context);
        let grown = frame.len() as isize - before as isize;
        assert!([-18, -4, 0, 4, 18].contains(&grown), "{action:?} adds {grown}");
        assert!(told.is_ok() || grown == 0);
        // A frame that now parses differently has other checksums.
        if was_right && same_kind(&shape, &Headers::of(frame.bytes())) && follows(&action) {
            assert!(is_right(frame.bytes()), "{action:?}");
        }
    }
});

fn is_right(bytes: &[u8]) -> bool {
    Packet::of(bytes).verify_checksums().is_ok()
}

/// Whether the transport header is at the same place, in a packet of the same kind.
fn same_kind(before: &Headers, after: &Headers) -> bool {
    (before.network, before.transport, before.fragment, before.proto, before.exthdr)
        == (after.network, after.transport, after.fragment, after.proto, after.exthdr)
        && !before.routed
        && length(before) == length(after)
}

/// Bytes from the network header to the end by the length fields; negative for a truncated frame.
fn length(headers: &Headers) -> i32 {
    i32::from(headers.end) - i32::from(headers.network_at)
}

/// Whether checksums stay valid under the action for any packet. A pop action may uncover an
/// invalid packet, and protocol and type are set without an adjustment.
fn follows(action: &Action) -> bool {
    match action {
        Action::SetField { field, .. } | Action::CopyField { to: field, .. } => {
            !matches!(field, Field::EthType | Field::IpProto)
        }
        Action::PopMpls(_) | Action::PopPbb | Action::PopVlan => false,
        _ => true,
    }
}

/// Decodes an action from ten bytes.
fn action(bytes: &[u8; ACTION_BYTES]) -> Action {
    let field = |byte: u8| Field::ALL[usize::from(byte) % FIELDS];
    let type_ = u16::from_be_bytes([bytes[1], bytes[2]]);
    match bytes[0] % 20 {
        0 => Action::PushVlan(0x8100),
        1 => Action::PushVlan(type_),
        2 => Action::PopVlan,
        3 => Action::PushMpls(0x8847),
        4 => Action::PushMplsBehindVlan(0x8847),
        5 => Action::PopMpls(type_),
        6 => Action::PopMpls(0x0800),
        7 => Action::PushPbb(0x88e7),
        8 => Action::PopPbb,
        9 => Action::CopyTtlOut,
        10 => Action::CopyTtlIn,
        11 => Action::SetMplsTtl(bytes[1]),
        12 => Action::DecMplsTtl,
        13 => Action::SetIpTtl(bytes[1]),
        14 => Action::DecIpTtl,
        15 => Action::SetVlan(type_),
        16 => Action::SetL4Dst(type_),
        17 => Action::CopyField {
            from: field(bytes[1]),
            from_bit: bytes[2],
            to: field(bytes[3]),
            to_bit: bytes[4],
            bits: bytes[5],
        },
        _ => {
            let field = field(bytes[1]);
            let mask = field.ones() & !(u128::from(bytes[2]) << 3);
            let word = u64::from_be_bytes(*bytes.last_chunk().expect("ten bytes"));
            let value = u128::from(word) << 64 | u128::from(word);
            Action::SetField { field, value: value & mask, mask }
        }
    }
}
