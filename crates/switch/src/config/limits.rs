//! The limits of an OpenFlow switch that its controllers can reach.
//!
//! Invariant: every one has a name, a range, and the OpenFlow error or the counter (of the control
//! socket's `controllers`) that tells of reaching it.

use ports::channel::ConnectionLimits;
use serde::Deserialize;

use super::Problem;

/// What controllers may use up.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Connections that listeners accept at once. One more takes the place of one on which TLS and
    /// hello are not done; if there is none, it is closed and counted as `connections_refused`.
    /// Connections that the switch makes to its controllers are not among them.
    pub connections: usize,
    /// Those of them that come from one source: a host (loopback addresses are one, and so is an
    /// IPv6 /64 prefix), or a user on Unix sockets. One more is treated in the same way.
    pub connections_per_source: usize,
    /// Connections of one listener on which TLS and hello are not done yet. One more takes the
    /// place of another, counted as `handshakes_displaced`: of one that has said nothing, if there
    /// is any, and of the host that has most.
    pub handshakes: usize,
    /// Those of them that come from one source. One more takes the place of another of this source,
    /// counted in the same way.
    pub handshakes_per_source: usize,
    /// A connection on which TLS and hello are not done for so long is closed and counted as
    /// `handshakes_timed_out`.
    pub handshake_ms: u64,
    /// Connections that are begun to be read in a second, so that making signatures for strangers
    /// does not keep frames waiting; the others wait.
    pub handshakes_per_s: u64,
    /// Connections that are accepted in a second; the others wait in the system's backlog.
    pub accepts_per_s: u64,
    /// Microseconds of control work in one turn while frames arrive, so that frames wait for so long at most.
    /// All connections share them. The rest of the work waits for the next turn, and a connection's share that
    /// was used up is counted as `turns_cut`.
    pub turn_us: u64,
    /// Obsolete, without effect: it counted the flow-mods of a turn, which has `turn_us` now.
    pub flow_mods_per_turn: Option<usize>,
    /// Frames a second that controllers are sent, 0 for as many as there are. Those above are
    /// counted as `frames_over_rate`.
    pub packet_ins_per_s: u64,
    /// Frames that may be sent at once after a pause, if there is a rate.
    pub packet_in_burst: u64,
    /// Bytes of one request that comes in several messages: beyond, it is refused as
    /// multipart buffer overflow.
    pub multipart_request_bytes: usize,
    /// Bundles that one connection may have open: one more is refused as out of bundles.
    pub bundles: usize,
    /// Messages in one bundle: one more is refused as too many messages.
    pub bundle_messages: usize,
    /// Bytes of the messages in all bundles of one connection: beyond, as too many messages too.
    pub bundle_bytes: usize,
    /// A bundle is forgotten when nothing was said about it for so long.
    pub bundle_ms: u64,
    /// Flow monitors of one connection: one more is refused.
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
    /// Limits on the connections that listeners accept.
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
