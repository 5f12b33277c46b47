//! Any bytes, in any pieces, as what a peer says: a session never panics, never holds more than
//! its limits, and goes down at most once.
//!
//! The first byte chooses the end and whether a proper hello comes first; then each piece is led
//! by a byte with its length.

#![no_main]

use libfuzzer_sys::fuzz_target;
use openflow::header::MESSAGE_BYTES_MAX;
use openflow::session::{ANSWER_BYTES_MAX, Event, Session, Settings};
use openflow::version::End;
use packet::time::Nanos;

const HELLO: [u8; 8] = [1, 0, 0, 8, 0, 0, 0, 1];

fuzz_target!(|bytes: &[u8]| {
    let Some((&choice, mut rest)) = bytes.split_first() else { return };
    let end = if choice & 1 == 0 { End::Switch } else { End::Controller };
    let mut session = Session::new(Settings::new(end), Nanos::ZERO);
    if choice & 2 == 0 {
        assert_eq!(session.receive(&HELLO, Nanos::ZERO), HELLO.len());
    }
    let (mut downs, mut now) = (0, Nanos::ZERO);
    while let Some((&length, tail)) = rest.split_first() {
        let (piece, tail) = tail.split_at(tail.len().min(length.into()));
        rest = tail;
        now += Nanos::from_millis(length.into());
        let taken = session.receive(piece, now);
        assert!(taken <= piece.len());
        while let Some(event) = session.poll_event() {
            downs += usize::from(matches!(event, Event::Down { .. }));
        }
        session.tick(now);
        let waiting = session.transmit().len();
        assert!(waiting <= (1 << 20) + ANSWER_BYTES_MAX + MESSAGE_BYTES_MAX);
        session.transmitted(waiting / 2);
    }
    while let Some(event) = session.poll_event() {
        downs += usize::from(matches!(event, Event::Down { .. }));
    }
    assert_eq!(downs, usize::from(session.is_down()));
});
