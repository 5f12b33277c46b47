//! Sends any frames to the agent that receives programs over Ethernet. It does not panic, its
//! replies fit a frame, and its programs stay within the size limit.
//!
//! Each frame has a byte for the elapsed time, a byte for the sender, a length, and the contents
//! after the EtherType.

#![no_main]

use libfuzzer_sys::fuzz_target;
use packet::time::Nanos;
use elements::control::Request;
use elements::services::ethernet::{BYTES_MAX, Ethernet};

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
