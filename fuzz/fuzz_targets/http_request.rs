//! Feeds any bytes from an HTTP client to an element, in pieces and pipelined. Nothing panics, the
//! output begins with a valid response, only permitted requests are accepted, and one turn serves a
//! limited number of requests.
//!
//! The first byte selects whether a token is required, whether a name is configured, and how often
//! the whole input is repeated on the connection. A length precedes each piece.

#![no_main]

use channel::{Channel, memory};
use elements::control::{Request, RequestOutcome};
use elements::services::http::site::ServerNames;
use elements::services::http::{
    Access, Client, READ_BYTES, REQUESTS_A_TURN, REQUESTS_A_TURN_OF_ONE,
};
use libfuzzer_sys::fuzz_target;
use packet::time::Nanos;
use serde_json::json;

/// Channel size in bytes: more than one read.
const CHANNEL_BYTES: usize = 4 * READ_BYTES;

/// Maximum number of pieces; the rest of the input is one more. Many empty pieces would only take
/// time.
const PIECES_MAX: usize = 64;

/// Turns per piece: more than a server needs.
const TURNS_MAX: usize = 64;

fuzz_target!(|bytes: &[u8]| {
    let Some((&first, input)) = bytes.split_first() else { return };
    let names = if first & 4 == 4 { vec!["element.example".to_owned()] } else { Vec::new() };
    let token = (first & 1 == 1).then(|| "secret".to_owned());
    let access = Access { token, names: ServerNames::new(names) };
    let (mut near, far) = memory::pair(CHANNEL_BYTES, "http");
    let mut client = Client::new(Box::new(far), Nanos::ZERO);
    let (mut buffer, mut now) = (vec![0; READ_BYTES], Nanos::ZERO);
    let mut replies = vec![0; CHANNEL_BYTES];
    let mut later = first & 2 == 2;
    // Up to 32,768 repetitions, as far as they fit the channel: thousands of pipelined requests.
    let repeats = 1usize << (first >> 4);
    let mut pieces = Vec::new();
    let mut rest = input;
    while let [octets, behind @ ..] = rest {
        if pieces.len() == PIECES_MAX {
            pieces.push(rest);
            break;
        }
        let (piece, others) = behind.split_at(usize::from(*octets).min(behind.len()));
        rest = others;
        pieces.push(piece);
    }
    let last = pieces.pop().map(|piece| {
        let repeats = repeats.min(CHANNEL_BYTES / piece.len().max(1)).max(1);
        piece.repeat(repeats)
    });
    let pieces = pieces.into_iter().map(<[u8]>::to_vec).chain(last);
    for piece in pieces {
        now = now.saturating_add(Nanos::from_millis(10));
        let mut sent = near.transmit(&piece).unwrap_or(0);
        for _ in 0..TURNS_MAX {
            let mut requests = 0;
            let mut carry = |request: Request| {
                assert!(!matches!(request, Request::SetComponents(_) | Request::AddMacs(_)));
                requests += 1;
                // Every second request completes later.
                later = !later;
                if later {
                    RequestOutcome::Later(request)
                } else {
                    RequestOutcome::Now(Ok(json!({ "generation": 2 })))
                }
            };
            let mut left = REQUESTS_A_TURN;
            let stays = client.turn(now, &mut buffer, &access, &mut left, &mut carry).is_ok();
            // Excludes one request left from the previous turn.
            assert!(requests <= REQUESTS_A_TURN_OF_ONE + 1);
            let replied = near.receive(&mut replies).unwrap_or(0);
            if replied > 0 {
                assert!(replies.starts_with(b"HTTP/1.1 "), "{:?}", &replies[..replied.min(40)]);
            }
            if !stays {
                return;
            }
            let more = near.transmit(&piece[sent..]).unwrap_or(0);
            sent += more;
            if (requests, replied, more) == (0, 0, 0) {
                break;
            }
        }
    }
});
