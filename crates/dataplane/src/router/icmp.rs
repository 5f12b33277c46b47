//! ICMP errors and echo replies.
//!
//! Source: RFC 1812, section 4.3. An error contains the reason and as much of the packet as fits in
//! 576 bytes. Its source is the address of the output interface, and its precedence is 6. The
//! router sends no error about an ICMP error, a non-initial fragment, or a packet whose source or
//! destination is not a single host. A token bucket limits the rate (section 4.3.2.8). An echo
//! reply has the destination of the request as source.

use std::collections::VecDeque;

use packet::build::Builder;
use packet::frame::Frame;
use packet::header::{ethernet, icmp, ipv4};
use packet::parse::{Fragment, Packet, Transport};
use packet::time::Nanos;

use super::{FrameContext, FrameOutcome, Router, is_host};
use crate::counter::DropReason;
use crate::neighbor::WaitingFrame;
use crate::route_table::NextHop;

/// Maximum length of an ICMP error in bytes (RFC 1812, section 4.3.2.3).
pub const ERROR_BYTES_MAX: usize = 576;

/// Precedence 6, "internetwork control".
const TOS_CONTROL: u8 = 0xc0;

/// Rate limit of ICMP errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IcmpLimit {
    /// Average number of errors per second.
    pub errors_per_s: u32,
    /// Maximum burst of errors.
    pub burst: u32,
}

impl Default for IcmpLimit {
    fn default() -> Self {
        IcmpLimit { errors_per_s: 1000, burst: 50 }
    }
}

/// Token bucket; an error costs the interval between two errors in nanoseconds.
#[derive(Debug)]
pub(super) struct IcmpRateLimiter {
    cost: u64,
    full: u64,
    saved: u64,
    then: Nanos,
}

impl IcmpRateLimiter {
    pub(super) fn new(limit: IcmpLimit) -> IcmpRateLimiter {
        // With rate zero, the interval between errors is the longest possible.
        let cost = 1_000_000_000_u64.checked_div(limit.errors_per_s.into()).unwrap_or(u64::MAX);
        let full = cost.saturating_mul(limit.burst.into());
        let saved = if limit.errors_per_s == 0 { 0 } else { full };
        IcmpRateLimiter { cost, full, saved, then: Nanos::ZERO }
    }

    fn allows(&mut self, now: Nanos) -> bool {
        self.saved = self.saved.saturating_add(now.since(self.then).0).min(self.full);
        self.then = self.then.max(now);
        let allowed = self.saved >= self.cost;
        if allowed {
            self.saved -= self.cost;
        }
        allowed
    }
}

/// Reason for an ICMP error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IcmpReason {
    NoRoute,
    NoNeighbor,
    TtlExpired,
    TooLong { mtu: u16 },
    NoProtocol,
    NoPort,
}

impl IcmpReason {
    fn header(self) -> icmp::Header {
        let (kind, code, word) = match self {
            IcmpReason::NoRoute => (icmp::UNREACHABLE, icmp::CODE_NET, 0),
            IcmpReason::NoNeighbor => (icmp::UNREACHABLE, icmp::CODE_HOST, 0),
            IcmpReason::TtlExpired => (icmp::TIME_EXCEEDED, icmp::CODE_TTL, 0),
            IcmpReason::TooLong { mtu } => {
                (icmp::UNREACHABLE, icmp::CODE_FRAGMENTATION_NEEDED, mtu.into())
            }
            IcmpReason::NoProtocol => (icmp::UNREACHABLE, icmp::CODE_PROTOCOL, 0),
            IcmpReason::NoPort => (icmp::UNREACHABLE, icmp::CODE_PORT, 0),
        };
        icmp::Header::new(kind, code, word)
    }
}

impl Router {
    /// Processes a packet for one of the router's own addresses.
    pub(super) fn receive_own(
        &mut self,
        at: usize,
        frame: &Frame,
        way: &mut FrameContext,
    ) -> FrameOutcome {
        let packet = Packet::of(frame.bytes());
        if packet.layers.fragment != Fragment::Whole {
            return FrameOutcome::Lost(DropReason::LocalFragment);
        }
        match packet.layers.transport {
            Transport::Icmp => self.receive_icmp(&packet, way),
            Transport::Udp => {
                self.tell(at, frame, IcmpReason::NoPort, way);
                FrameOutcome::Lost(DropReason::NoService)
            }
            Transport::Tcp => FrameOutcome::Lost(DropReason::NoService),
            _ if packet.layers.fault.is_some() => FrameOutcome::Lost(DropReason::BadIpHeader),
            _ => {
                self.tell(at, frame, IcmpReason::NoProtocol, way);
                FrameOutcome::Lost(DropReason::NoService)
            }
        }
    }

    fn receive_icmp(&mut self, packet: &Packet<'_>, way: &mut FrameContext) -> FrameOutcome {
        let message = packet.transport_bytes().and_then(|bytes| icmp::Header::parse(bytes).ok());
        let (Some((header, _)), Some(view)) = (message, packet.ipv4()) else {
            return FrameOutcome::Lost(DropReason::BadIpChecksum);
        };
        if header.kind == icmp::ECHO_REQUEST && header.code == 0 {
            let reply = ipv4::Header {
                tos: view.tos(),
                ..ipv4::Header::new(view.destination(), view.source())
            };
            let message = icmp::Header::new(icmp::ECHO_REPLY, 0, header.word);
            if self.send_own(reply, message, packet.payload(), way) {
                self.counters.echo_replies += 1;
            }
        }
        FrameOutcome::Consumed
    }

    /// Sends an ICMP error to the sender of a packet, if permitted and within the rate limit. The
    /// packet was received on interface `at`.
    #[cold]
    pub(super) fn tell(
        &mut self,
        at: usize,
        frame: &Frame,
        fault: IcmpReason,
        way: &mut FrameContext,
    ) {
        let bytes = &frame.bytes()[ethernet::HEADER_BYTES..];
        let Some(view) = ipv4::View::new(bytes) else { return };
        if !may_be_told(bytes, &view) {
            return;
        }
        let hop = self.routes.lookup(view.source()).map(|hop| (hop, self.routes.hop(hop)));
        let Some((hop, NextHop::Gateway { .. } | NextHop::Link { .. })) = hop else { return };
        if !self.icmp.allows(way.now) {
            self.counters.icmp_limited += 1;
            return;
        }
        let leaves = self.target(hop, view.source()).map_or(at, |target| target.interface);
        let from = [leaves, at].into_iter();
        let mut from = from.filter_map(|at| self.interfaces[at].source_for(view.source()));
        let Some(source) = from.next() else { return };
        let header = ipv4::Header { tos: TOS_CONTROL, ..ipv4::Header::new(source, view.source()) };
        let length = usize::from(view.total_length()).min(bytes.len());
        let quoted = length.min(ERROR_BYTES_MAX - ipv4::HEADER_BYTES - icmp::HEADER_BYTES);
        if self.send_own(header, fault.header(), &bytes[..quoted], way) {
            self.counters.icmp_errors += 1;
        }
    }

    /// Drops frames that waited for a neighbor without a reply, and sends ICMP errors.
    pub(super) fn give_up(&mut self, waiting: VecDeque<WaitingFrame>, way: &mut FrameContext) {
        for WaitingFrame { frame, from } in waiting {
            if let Some(at) = from.and_then(|port| self.interface(port)) {
                self.tell(at, &frame, IcmpReason::NoNeighbor, way);
            }
            self.lose(from, DropReason::NoNeighbour);
        }
    }

    /// Sends a packet of the router itself. Returns false if there is no route to its destination.
    fn send_own(
        &mut self,
        header: ipv4::Header,
        message: icmp::Header,
        payload: &[u8],
        way: &mut FrameContext,
    ) -> bool {
        let hop = self.routes.lookup(header.destination);
        let Some(target) = hop.and_then(|hop| self.target(hop, header.destination)) else {
            self.counters.own_lost += 1;
            return false;
        };
        self.identification = self.identification.wrapping_add(1);
        let header = ipv4::Header { identification: self.identification, ..header };
        let builder = Builder::new([0; 6], self.interfaces[target.interface].mac);
        let mut frame = builder.ipv4(header).icmp(message).payload(payload).frame();
        self.deliver(target, &mut frame, None, way);
        true
    }
}

/// Whether an ICMP error may be sent about this packet (RFC 1812, section 4.3.2.7).
fn may_be_told(bytes: &[u8], view: &ipv4::View<'_>) -> bool {
    let inside = bytes.get(view.header_length()..).and_then(|inside| inside.first());
    let about_error =
        view.protocol() == ipv4::PROTOCOL_ICMP && inside.is_none_or(|&kind| icmp::is_error(kind));
    view.fragment_offset() == 0 && is_host(view.source()) && !about_error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_bucket_permits_a_burst_and_then_the_rate() {
        let mut limiter = IcmpRateLimiter::new(IcmpLimit { errors_per_s: 10, burst: 3 });
        let allowed = |limiter: &mut IcmpRateLimiter, now| {
            (0..100).take_while(|_| limiter.allows(now)).count()
        };
        assert_eq!(allowed(&mut limiter, Nanos::from_secs(5)), 3);
        assert_eq!(allowed(&mut limiter, Nanos::from_secs(5) + Nanos::from_millis(99)), 0);
        assert_eq!(allowed(&mut limiter, Nanos::from_secs(5) + Nanos::from_millis(100)), 1);
        assert_eq!(allowed(&mut limiter, Nanos::from_secs(1000)), 3);
        let mut none = IcmpRateLimiter::new(IcmpLimit { errors_per_s: 0, burst: 3 });
        assert_eq!(allowed(&mut none, Nanos::from_secs(1000)), 0);
    }
}
