//! Any bytes as what a client says to an element over HTTP, in pieces: nothing panics, what comes back begins as an answer,
//! and what is asked for is what a client may ask.
//!
//! The first byte says whether a token is wanted; then each piece has its length before it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use packet::time::Nanos;
use ports::channel::{Channel, memory};
use serde_json::json;
use switch::control::{Answered, Request};
use switch::services::http::Client;

fuzz_target!(|bytes: &[u8]| {
    let Some((&first, mut rest)) = bytes.split_first() else { return };
    let token = (first & 1 == 1).then_some("secret");
    let (mut near, far) = memory::pair(1 << 16, "http");
    let mut client = Client::new(Box::new(far), Nanos::ZERO);
    let (mut buffer, mut now) = (vec![0; 4096], Nanos::ZERO);
    let mut later = first & 2 == 2;
    while let [octets, behind @ ..] = rest {
        let (piece, others) = behind.split_at(usize::from(*octets).min(behind.len()));
        rest = others;
        now = now.saturating_add(Nanos::from_millis(10));
        let sent = near.transmit(piece).unwrap_or(0);
        assert!(sent == piece.len() || sent == 0);
        let mut carry = |request: Request| {
            assert!(!matches!(request, Request::SetComponents(_) | Request::AddMacs(_)));
            // Every other one takes its time.
            later = !later;
            if later { Answered::Later(request) } else { Answered::Now(Ok(json!({ "generation": 2 }))) }
        };
        let stays = client.turn(now, &mut buffer, token, &mut carry).is_ok();
        let mut said = vec![0; 1 << 16];
        if let Ok(count @ 1..) = near.receive(&mut said) {
            assert!(said[..count].starts_with(b"HTTP/1.1 "), "{:?}", &said[..count.min(40)]);
        }
        if !stays {
            return;
        }
    }
});
