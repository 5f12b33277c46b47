//! Any frames to the agent that takes programs by Ethernet: it never panics, its answers fit a frame, and a program that it
//! hands on is no longer than one may be.
//!
//! Of each frame the first byte says how much time passes, the second who sends it, then comes its length, and what
//! stands behind its EtherType.

#![no_main]

use libfuzzer_sys::fuzz_target;
use packet::time::Nanos;
use switch::control::Request;
use switch::services::ethernet::{BYTES_MAX, Ethernet};

const OWN: [u8; 6] = [2, 0, 0, 0, 1, 1];

fuzz_target!(|bytes: &[u8]| {
    let mut agent = Ethernet::new(OWN);
    let (mut now, mut rest) = (Nanos::from_secs(1), bytes);
    while let [passes, from, octets, behind @ ..] = rest {
        let (body, others) = behind.split_at(usize::from(*octets).min(behind.len()));
        rest = others;
        now = now.saturating_add(Nanos::from_millis(u64::from(*passes) * 200));
        let frame = [&OWN[..], &[2, 0, 0, 0, 9, *from], &[0x88, 0xb6], body].concat();
        let mut carry = |request| match request {
            Request::Load(document) => {
                assert!(document.text.len() <= BYTES_MAX);
                Err(document.text)
            }
            other => panic!("{other:?}"),
        };
        let answer = agent.frame_came(&frame, now, &mut carry);
        assert!(answer.is_none_or(|answer| answer.len() <= 1514));
    }
});
