//! Feeds any bytes in any pieces to a session of any version. The session does not panic, stays
//! within its limits, and closes at most once.
//!
//! The first byte selects the role, a valid hello at the start, and its version. A length byte
//! precedes each piece.

#![no_main]

use libfuzzer_sys::fuzz_target;
use openflow::header::MESSAGE_BYTES_MAX;
use openflow::session::{ANSWER_BYTES_MAX, Event, Session, Settings};
use openflow::version::{End, Version};
use packet::time::Nanos;

fuzz_target!(|bytes: &[u8]| {
    let Some((&choice, mut rest)) = bytes.split_first() else { return };
    let end = if choice & 1 == 0 { End::Switch } else { End::Controller };
    let settings = Settings::new(end);
    let most = settings.transmit_bytes_max + ANSWER_BYTES_MAX + MESSAGE_BYTES_MAX;
    let mut session = Session::new(settings, Nanos::ZERO);
    if choice & 2 == 0 {
        let spoken = Version::SUPPORTED;
        let version = spoken[usize::from(choice >> 2) % spoken.len()];
        let hello = [version.wire(), 0, 0, 8, 0, 0, 0, 1];
        assert_eq!(session.receive(&hello, Nanos::ZERO), hello.len());
    }
    let (mut downs, mut now) = (0, Nanos::ZERO);
    while let Some((&length, tail)) = rest.split_first() {
        let (piece, tail) = tail.split_at(tail.len().min(length.into()));
        rest = tail;
        now += Nanos::from_millis(length.into());
        let taken = session.receive(piece, now);
        assert!(taken <= piece.len());
        while let Some(event) = session.poll_event() {
            match event {
                Event::Down { .. } => downs += 1,
                // Sends every message back, to find messages that cannot be encoded.
                Event::Message { xid, message, .. } => drop(session.answer(xid, &message)),
                Event::Up { .. } | Event::Refused(_) => {}
            }
        }
        session.tick(now);
        let waiting = session.transmit().len();
        assert!(waiting <= most, "{waiting} bytes wait");
        session.transmitted(waiting / 2);
    }
    while let Some(event) = session.poll_event() {
        downs += usize::from(matches!(event, Event::Down { .. }));
    }
    assert_eq!(downs, usize::from(session.is_down()));
});
