//! IPv4Validator (RFC 6956 section 5.2.1): IPv4 headers checked as RFC 1812 section 5.2.2 asks.
//!
//! A header that contradicts itself or its packet goes to FailOut with ValidateErrorID; one that a
//! router's software has to look at (options, a time to live that would not last) to ExceptionOut
//! with ExceptionID. Padding behind the packet's own length stays.

use forces::Value;
use packet::header::ipv4::{self, View};
use packet::time::Nanos;

use super::{At, Block, Env, Packet, Setup, Verdict, counters, exception, meta_id};
use crate::compile::grow::Grower;
use crate::compile::tree::NodeId;
use crate::compile::view::Read;
use crate::compile::way::{Known, Way};

const UNICAST: u32 = 0;
const MULTICAST: u32 = 1;
const EXCEPTION: u32 = 2;
const FAIL: u32 = 3;
/// The component IPv4ValidatorStats.
const STATS: u32 = 1;

/// What a counter counts.
const BAD_HEADER: u8 = 0;
const BAD_TOTAL_LENGTH: u8 = 1;
const BAD_TTL: u8 = 2;
const BAD_CHECKSUM: u8 = 3;

/// IPv4 headers checked.
#[derive(Debug)]
pub struct Ipv4Validator {
    bad: [u64; 4],
}

/// What a header is found to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// For one station, or for a group.
    Good {
        /// Whether it is for a group.
        multicast: bool,
    },
    /// A router's software has to look at it; with ExceptionID.
    Exception(u8),
    /// It is wrong: the place of its counter, and ValidateErrorID (RFC 6956 section 4.4).
    Fail(u8, u8),
}

/// All that can be found.
const ALL: [Found; 13] = [
    Found::Good { multicast: false },
    Found::Good { multicast: true },
    Found::Exception(exception::IPV4_HEADER_LENGTH as u8),
    Found::Exception(exception::BAD_TTL as u8),
    Found::Exception(exception::SOURCE as u8),
    Found::Exception(exception::DESTINATION as u8),
    Found::Fail(BAD_HEADER, 1),
    Found::Fail(BAD_HEADER, 2),
    Found::Fail(BAD_HEADER, 3),
    Found::Fail(BAD_TOTAL_LENGTH, 4),
    Found::Fail(BAD_CHECKSUM, 5),
    Found::Fail(BAD_HEADER, 6),
    Found::Fail(BAD_HEADER, 7),
];

impl Found {
    /// Its number, less than [`ALL`] are.
    #[inline]
    pub fn number(self) -> usize {
        match self {
            Found::Good { multicast } => usize::from(multicast),
            Found::Exception(_) => ALL.iter().position(|it| *it == self).unwrap_or(2),
            Found::Fail(_, why) => 5 + usize::from(why),
        }
    }
}

/// What is found of a packet of so many bytes by its first ones, a header with options among them.
#[inline]
pub fn look(head: &[u8], bytes: usize) -> Found {
    let Some(view) = View::new(head) else { return Found::Fail(BAD_HEADER, 1) };
    if view.version() != 4 {
        return Found::Fail(BAD_HEADER, 2);
    }
    if view.header_length() < ipv4::HEADER_BYTES {
        return Found::Fail(BAD_HEADER, 3);
    }
    let total = usize::from(view.total_length());
    if total < view.header_length() || total > bytes {
        return Found::Fail(BAD_TOTAL_LENGTH, 4);
    }
    if !view.header().is_some_and(ipv4::checksum_is_right) {
        return Found::Fail(BAD_CHECKSUM, 5);
    }
    let (source, destination) = (view.source(), view.destination());
    // What no packet's sender can be (RFC 1812 section 5.3.7), and what leaves no host.
    if source.is_multicast() || source.is_broadcast() || source.is_loopback() {
        return Found::Fail(BAD_HEADER, 6);
    }
    if destination.is_loopback() || destination.octets()[0] == 0 {
        return Found::Fail(BAD_HEADER, 7);
    }
    if view.header_length() > ipv4::HEADER_BYTES {
        return Found::Exception(exception::IPV4_HEADER_LENGTH as u8);
    }
    if view.ttl() <= 1 {
        return Found::Exception(exception::BAD_TTL as u8);
    }
    if source.is_unspecified() {
        return Found::Exception(exception::SOURCE as u8);
    }
    if destination.is_broadcast() {
        return Found::Exception(exception::DESTINATION as u8);
    }
    Found::Good { multicast: destination.is_multicast() }
}

impl Ipv4Validator {
    fn count(&mut self, found: Found, frames: u64) {
        match found {
            Found::Good { .. } => {}
            Found::Exception(why) if u128::from(why) == exception::BAD_TTL => {
                self.bad[usize::from(BAD_TTL)] += frames;
            }
            Found::Exception(_) => {}
            Found::Fail(counter, _) => self.bad[usize::from(counter)] += frames,
        }
    }
}

impl Block for Ipv4Validator {
    const IS_PLAIN: bool = true;

    fn new(_setup: &mut Setup<'_>) -> Self {
        Ipv4Validator { bad: [0; 4] }
    }

    fn process(&mut self, _at: At, packet: &mut Packet, env: &mut Env<'_>) -> Verdict {
        let found = look(packet.bytes(), packet.bytes().len());
        self.count(found, 1);
        match found {
            Found::Good { multicast: false } => Verdict::Out(UNICAST, 0),
            Found::Good { multicast: true } => Verdict::Out(MULTICAST, 0),
            Found::Exception(why) => {
                packet.set_meta(env.slots, meta_id::EXCEPTION, why.into());
                Verdict::Out(EXCEPTION, 0)
            }
            Found::Fail(_, why) => {
                packet.set_meta(env.slots, meta_id::VALIDATE_ERROR, why.into());
                Verdict::Out(FAIL, 0)
            }
        }
    }

    fn grow(&self, way: Way, grower: &mut Grower<'_>) -> Option<NodeId> {
        let total = way.view.read(ipv4::TOTAL_LENGTH_AT * 8, 16)?;
        grower.ipv4(way, ALL.len(), &mut |grower, mut way, number| {
            let (output, told) = match ALL[number] {
                Found::Good { multicast } => {
                    let field = |at: usize, bits| match way.view.read(at, bits) {
                        Some(Read::Field(field)) => Some(field),
                        _ => None,
                    };
                    let (version, words) = (field(0, 4), field(4, 4));
                    let ttl = field(ipv4::TTL_AT * 8, 8);
                    let known = [(version, (4, 4)), (words, (5, 5)), (ttl, (2, 255))];
                    for (field, range) in known {
                        field.into_iter().for_each(|field| way.learn(field, vec![range]));
                    }
                    if let Read::Field(total) = total {
                        way.learn(total, vec![(20, 0xffff)]);
                        // The total length is that of what is there at most.
                        way.learn_fits(total, -way.view.grown as usize, true);
                    }
                    (if multicast { MULTICAST } else { UNICAST }, None)
                }
                Found::Exception(why) => (EXCEPTION, Some((meta_id::EXCEPTION, why))),
                Found::Fail(_, why) => (FAIL, Some((meta_id::VALIDATE_ERROR, why))),
            };
            if let Some((id, why)) = told {
                way.set(grower.slots.slot(id), Known::Constant(why.into()));
            }
            grower.meet(&mut way, number as u32);
            grower.go(way, output, 0)
        })
    }

    fn met(&mut self, what: u32, frames: u64, _bytes: u64) {
        self.count(ALL[what as usize], frames);
    }

    fn keep(&mut self, old: &mut Self) {
        std::mem::swap(&mut self.bad, &mut old.bad);
    }

    fn get(&self, component: u32, _now: Nanos) -> Option<Value> {
        (component == STATS).then(|| counters(&self.bad))
    }

    fn reset(&mut self, component: u32) {
        if component == STATS {
            self.bad = [0; 4];
        }
    }
}
