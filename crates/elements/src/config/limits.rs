//! Limits of the resources of an OpenFlow switch that its controllers can exhaust.
//!
//! Invariant: each limit has a name, a range, and an OpenFlow error or a counter that reports when
//! it is reached. The counters are in `controllers` of the control socket.

use channel::ConnectionLimits;
use serde::Deserialize;

use super::Problem;

/// Limits of the resources that controllers use.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Maximum number of concurrent connections that listeners accept. A further connection
    /// replaces one whose handshake (TLS and hello) is incomplete. If there is none, it is closed
    /// and counted as `connections_refused`. Connections that the switch makes to its controllers
    /// do not count.
    pub connections: usize,
    /// Maximum number of these connections from one source. A source is a host (all loopback
    /// addresses are one host, and so is an IPv6 /64 prefix), or a user on Unix sockets. A further
    /// connection is handled in the same way.
    pub connections_per_source: usize,
    /// Maximum number of connections of one listener whose handshake is incomplete. A further
    /// connection replaces another one, counted as `handshakes_displaced`. A connection that has
    /// sent nothing is replaced first, and one of the host that has most.
    pub handshakes: usize,
    /// Maximum number of these connections from one source. A further connection replaces another
    /// one of this source, counted in the same way.
    pub handshakes_per_source: usize,
    /// Handshake timeout. A connection that exceeds it is closed and counted as
    /// `handshakes_timed_out`.
    pub handshake_ms: u64,
    /// Maximum rate of handshakes that begin, in connections per second; the others wait. It limits
    /// the delay of frames by TLS signatures for unauthenticated clients.
    pub handshakes_per_s: u64,
    /// Maximum rate of accepted connections per second; the others wait in the system's backlog.
    pub accepts_per_s: u64,
    /// Maximum control work in one turn while frames arrive, in microseconds. It bounds the delay
    /// of frames. All connections share it, and the rest of the work waits for the next turn. A
    /// connection's share that was used up is counted as `turns_cut`.
    pub turn_us: u64,
    /// Obsolete, without effect: it limited the flow-mods of a turn. Use `turn_us` instead.
    pub flow_mods_per_turn: Option<usize>,
    /// Maximum rate of packet-ins per second, 0 for no limit. Frames above it are counted as
    /// `frames_over_rate`.
    pub packet_ins_per_s: u64,
    /// Maximum burst of packet-ins, if there is a rate limit.
    pub packet_in_burst: u64,
    /// Maximum bytes of one request in several messages. A longer request is rejected as multipart
    /// buffer overflow.
    pub multipart_request_bytes: usize,
    /// Maximum number of open bundles of one connection. A further one is rejected as out of
    /// bundles.
    pub bundles: usize,
    /// Maximum number of messages in one bundle. A further one is rejected as too many messages.
    pub bundle_messages: usize,
    /// Maximum bytes of messages in all bundles of one connection. Further messages are rejected as
    /// too many messages.
    pub bundle_bytes: usize,
    /// Idle timeout of a bundle, after which it is discarded.
    pub bundle_ms: u64,
    /// Maximum number of flow monitors of one connection. A further one is rejected.
    pub monitors: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connections: 64,
            connections_per_source: 48,
            handshakes: 32,
            handshakes_per_source: 16,
            handshake_ms: 5_000,
            handshakes_per_s: 200,
            accepts_per_s: 2_000,
            turn_us: 200,
            flow_mods_per_turn: None,
            packet_ins_per_s: 0,
            packet_in_burst: 1_000,
            multipart_request_bytes: 1 << 20,
            bundles: 16,
            bundle_messages: 65_536,
            bundle_bytes: 16 << 20,
            bundle_ms: 10_000,
            monitors: 64,
        }
    }
}

impl Limits {
    /// Returns the limits of the connections that listeners accept.
    pub fn of_connections(&self) -> ConnectionLimits {
        ConnectionLimits { total: self.connections, per_source: self.connections_per_source }
    }

    pub(super) fn validate(&self, problems: &mut Vec<Problem>) {
        let range = |key, have: u64, min, max| Problem::check(key, have, min, max);
        let checks = [
            range("limits.connections", self.connections as u64, 1, 4096),
            range("limits.connections_per_source", self.connections_per_source as u64, 1, 4096),
            range("limits.handshakes", self.handshakes as u64, 1, 256),
            range("limits.handshakes_per_source", self.handshakes_per_source as u64, 1, 256),
            range("limits.handshake_ms", self.handshake_ms, 10, 3_600_000),
            range("limits.handshakes_per_s", self.handshakes_per_s, 1, 1_000_000),
            range("limits.accepts_per_s", self.accepts_per_s, 1, 1_000_000),
            range("limits.turn_us", self.turn_us, 10, 100_000),
            range("limits.packet_ins_per_s", self.packet_ins_per_s, 0, 1_000_000_000),
            range("limits.packet_in_burst", self.packet_in_burst, 1, 1_000_000_000),
            range(
                "limits.multipart_request_bytes",
                self.multipart_request_bytes as u64,
                1 << 16,
                1 << 30,
            ),
            range("limits.bundles", self.bundles as u64, 0, 65_536),
            range("limits.bundle_messages", self.bundle_messages as u64, 1, 1 << 24),
            range("limits.bundle_bytes", self.bundle_bytes as u64, 1 << 16, 1 << 30),
            range("limits.bundle_ms", self.bundle_ms, 10, 3_600_000),
            range("limits.monitors", self.monitors as u64, 0, 65_536),
        ];
        problems.extend(checks.into_iter().flatten());
    }
}
