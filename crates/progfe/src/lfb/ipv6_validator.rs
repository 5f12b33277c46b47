//! IPv6Validator (RFC 6956 section 5.2.2): validates IPv6 headers by RFC 8200.
//!
//! - A header that contradicts its packet goes to FailOut with ValidateErrorID.
//! - A packet that needs software processing (expiring hop limit, hop-by-hop options) goes to
//!   ExceptionOut with ExceptionID.

use core::net::Ipv6Addr;

use forces::Value;
use packet::header::ipv6::{self, View};
use packet::time::Nanos;

use super::{At, Block, Env, Packet, Setup, Verdict, counters, exception, meta_id};

const UNICAST: u32 = 0;
const MULTICAST: u32 = 1;
const EXCEPTION: u32 = 2;
const FAIL: u32 = 3;
/// The component IPv6ValidatorStats.
const STATS: u32 = 1;

/// Counter indices.
const BAD_HEADER: usize = 0;
const BAD_TOTAL_LENGTH: usize = 1;
const BAD_HOP_LIMIT: usize = 2;

/// The IPv6Validator block.
#[derive(Debug)]
pub struct Ipv6Validator {
    bad: [u64; 3],
}

/// Result of the validation of a header.
enum Found {
    Good(u32),
    Exception(u128),
    Fail(u128),
}

impl Ipv6Validator {
    /// Validates a header. Values of ValidateErrorID are those of RFC 6956 section 4.4.
    fn look(&mut self, bytes: &[u8]) -> Found {
        let Some(view) = View::new(bytes) else { return self.fail(BAD_HEADER, 8) };
        if view.version() != 6 {
            return self.fail(BAD_HEADER, 9);
        }
        if ipv6::HEADER_BYTES + usize::from(view.payload_length()) > bytes.len() {
            return self.fail(BAD_TOTAL_LENGTH, 8);
        }
        let (source, destination) = (view.source(), view.destination());
        if source.is_multicast() || source.is_loopback() {
            return self.fail(BAD_HEADER, 10);
        }
        if destination.is_loopback() || destination.is_unspecified() {
            return self.fail(BAD_HEADER, 11);
        }
        if view.hop_limit() <= 1 {
            self.bad[BAD_HOP_LIMIT] += 1;
            return Found::Exception(exception::HOP_LIMIT_ZERO);
        }
        if view.next_header() == ipv6::NEXT_HOP_BY_HOP {
            return Found::Exception(exception::HOP_BY_HOP);
        }
        if source.is_unspecified() || is_link_local(&source) {
            return Found::Exception(exception::SOURCE);
        }
        if is_link_local(&destination) {
            return Found::Exception(exception::DESTINATION);
        }
        Found::Good(if destination.is_multicast() { MULTICAST } else { UNICAST })
    }

    fn fail(&mut self, counter: usize, why: u128) -> Found {
        self.bad[counter] += 1;
        Found::Fail(why)
    }
}

/// Returns true for fe80::/10, which routers do not forward (RFC 4291 section 2.5.6).
fn is_link_local(address: &Ipv6Addr) -> bool {
    address.segments()[0] & 0xffc0 == 0xfe80
}

impl Block for Ipv6Validator {
    const IS_PLAIN: bool = true;

    fn new(_setup: &mut Setup<'_>) -> Self {
        Ipv6Validator { bad: [0; 3] }
    }

    fn process(&mut self, _at: At, packet: &mut Packet, env: &mut Env<'_>) -> Verdict {
        match self.look(packet.bytes()) {
            Found::Good(output) => Verdict::Out(output, 0),
            Found::Exception(why) => {
                packet.set_meta(env.slots, meta_id::EXCEPTION, why);
                Verdict::Out(EXCEPTION, 0)
            }
            Found::Fail(why) => {
                packet.set_meta(env.slots, meta_id::VALIDATE_ERROR, why);
                Verdict::Out(FAIL, 0)
            }
        }
    }

    fn keep(&mut self, old: &mut Self) {
        std::mem::swap(&mut self.bad, &mut old.bad);
    }

    fn get(&self, component: u32, _now: Nanos) -> Option<Value> {
        (component == STATS).then(|| counters(&self.bad))
    }

    fn reset(&mut self, component: u32) {
        if component == STATS {
            self.bad = [0; 3];
        }
    }
}
