//! Limits on the connections that a listener accepts, in total and per source.
//!
//! A connection is *pending* until its handshake or its first request is complete. A listener that
//! has no place for a new connection closes a pending one instead: one of the same source if that
//! source is at its limit, otherwise one of the source with the most pending connections.
//! Established connections are never closed for new ones.
//!
//! Invariants:
//! - One source has at most `per_source` places, so that one host or user cannot take all of them.
//! - Loopback addresses are one source, and so are the addresses of an IPv6 /64 prefix (RFC 4291,
//!   section 2.5.4), which one host can choose freely.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::Progress;

/// The peer of a connection, as far as limits distinguish peers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// A host.
    Host(IpAddr),
    /// A user of this host, by number, who connected to a Unix socket.
    User(u32),
}

/// Bits of an IPv6 address that identify a host's network.
const PREFIX_BITS: u32 = 64;

impl Source {
    /// Returns the source that limits count for this one: see the module's invariants.
    pub fn counted(self) -> Source {
        match self {
            Source::User(user) => Source::User(user),
            Source::Host(address) => match address.to_canonical() {
                address if address.is_loopback() => Source::Host(Ipv4Addr::LOCALHOST.into()),
                IpAddr::V4(address) => Source::Host(address.into()),
                IpAddr::V6(address) => {
                    let prefix = address.to_bits() >> PREFIX_BITS << PREFIX_BITS;
                    Source::Host(Ipv6Addr::from_bits(prefix).into())
                }
            },
        }
    }

    /// Returns the host's address, if the source is a host.
    pub fn address(self) -> Option<IpAddr> {
        match self {
            Source::Host(address) => Some(address),
            Source::User(_) => None,
        }
    }
}

/// Limits on the connections of a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// All connections.
    pub total: usize,
    /// Connections of one source. Those whose source is unknown count as one source.
    pub per_source: usize,
}

/// A connection that has a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdmittedConnection {
    /// The caller's number of this connection.
    pub id: usize,
    /// Its source.
    pub source: Option<Source>,
    /// For a pending connection, its state, and a number that grows with the time of acceptance.
    pub pending: Option<(Progress, u64)>,
}

/// Whether a new connection has a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdmissionResult {
    /// There is a free place.
    Free,
    /// It gets the place of the pending connection with this number, which must be closed.
    InsteadOf(usize),
    /// There is no place.
    Refused(AdmissionRefusal),
}

/// Which limit leaves no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdmissionRefusal {
    /// The limit of all connections.
    Total,
    /// The limit of one source.
    PerSource,
}

/// Connections of a listener since it was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AdmissionCounters {
    /// Connections that got a place.
    pub admitted: u64,
    /// New connections that were closed because they had no place.
    pub refused: u64,
    /// Pending connections that were closed to make room for others.
    pub displaced: u64,
}

impl AdmissionCounters {
    /// Counts the decision on a new connection.
    pub fn count(&mut self, room: AdmissionResult) {
        match room {
            AdmissionResult::Free => self.admitted += 1,
            AdmissionResult::InsteadOf(_) => {
                (self.admitted, self.displaced) = (self.admitted + 1, self.displaced + 1)
            }
            AdmissionResult::Refused(_) => self.refused += 1,
        }
    }
}

impl ConnectionLimits {
    /// Finds a place for a new connection of this source next to the existing ones.
    pub fn room_for(&self, held: &[AdmittedConnection], source: Option<Source>) -> AdmissionResult {
        let source = source.map(Source::counted);
        let is_same = |held: &AdmittedConnection| held.source.map(Source::counted) == source;
        let same = held.iter().filter(|held| is_same(held)).count();
        let (refusal, closed) = if same >= self.per_source {
            (AdmissionRefusal::PerSource, first_to_close(held, is_same))
        } else if held.len() >= self.total {
            let crowd = most_pending(held);
            let in_crowd =
                |held: &AdmittedConnection| Some(held.source.map(Source::counted)) == crowd;
            (AdmissionRefusal::Total, first_to_close(held, in_crowd))
        } else {
            return AdmissionResult::Free;
        };
        closed.map_or(AdmissionResult::Refused(refusal), AdmissionResult::InsteadOf)
    }
}

/// Returns the oldest of the pending connections in the earliest state.
fn first_to_close(
    held: &[AdmittedConnection],
    among: impl Fn(&AdmittedConnection) -> bool,
) -> Option<usize> {
    let pending = held.iter().filter(|held| held.pending.is_some() && among(held));
    pending.min_by_key(|held| held.pending).map(|held| held.id)
}

/// Returns the source with the most pending connections.
fn most_pending(held: &[AdmittedConnection]) -> Option<Option<Source>> {
    let pending = held.iter().filter(|held| held.pending.is_some());
    let mut sources: Vec<_> = pending.map(|held| held.source.map(Source::counted)).collect();
    sources.sort_unstable();
    let groups = sources.chunk_by(|left, right| left == right);
    groups.max_by_key(|group| group.len()).map(|group| group[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: ConnectionLimits = ConnectionLimits { total: 4, per_source: 3 };

    fn host(number: u8) -> Option<Source> {
        (number > 0).then(|| Source::Host(IpAddr::from([10, 0, 0, number])))
    }

    fn held(all: &[(u8, Option<(Progress, u64)>)]) -> Vec<AdmittedConnection> {
        let one = |(id, &(number, pending)): (usize, &(u8, _))| AdmittedConnection {
            id: id + 100,
            source: host(number),
            pending,
        };
        all.iter().enumerate().map(one).collect()
    }

    fn check(all: &[(u8, Option<(Progress, u64)>)], newcomer: u8, wanted: AdmissionResult) {
        let room = LIMITS.room_for(&held(all), host(newcomer));
        assert_eq!(room, wanted, "{newcomer} among {all:?}");
    }

    #[test]
    fn pending_connections_are_replaced_and_established_ones_never() {
        use Progress::{Agreeing, Open, Silent};
        check(&[], 1, AdmissionResult::Free);
        // One source is at its limit: its oldest silent connection is closed, then its oldest.
        let three = [(1, Some((Open, 1))), (1, Some((Silent, 3))), (1, Some((Silent, 2)))];
        check(&three, 1, AdmissionResult::InsteadOf(102));
        check(&three, 2, AdmissionResult::Free);
        let talking = [(1, Some((Agreeing, 5))), (1, Some((Open, 3))), (1, Some((Agreeing, 6)))];
        check(&talking, 1, AdmissionResult::InsteadOf(100));
        let established = [(1, None), (1, None), (1, None), (2, Some((Silent, 1)))];
        check(&established, 1, AdmissionResult::Refused(AdmissionRefusal::PerSource));
        // All places are taken: a connection of the source with the most pending connections is
        // closed.
        check(&established, 2, AdmissionResult::InsteadOf(103));
        let four = [
            (2, Some((Silent, 1))),
            (1, Some((Agreeing, 9))),
            (1, Some((Agreeing, 8))),
            (0, Some((Silent, 2))),
        ];
        check(&four, 3, AdmissionResult::InsteadOf(102));
        check(
            &[(1, None), (1, None), (2, None), (3, None)],
            4,
            AdmissionResult::Refused(AdmissionRefusal::Total),
        );
    }

    #[test]
    fn addresses_of_one_host_are_one_source() {
        let counted = |text: &str| Source::Host(text.parse().unwrap()).counted();
        for (one, other, is_same) in [
            ("127.0.0.1", "127.9.9.9", true),
            ("127.0.0.1", "::1", true),
            ("127.0.0.1", "::ffff:127.0.0.2", true),
            ("10.0.0.1", "::ffff:10.0.0.1", true),
            ("10.0.0.1", "10.0.0.2", false),
            ("2001:db8::1", "2001:db8::ffff:0:0:2", true),
            ("2001:db8::1", "2001:db8:0:1::1", false),
        ] {
            assert_eq!(counted(one) == counted(other), is_same, "{one} and {other}");
        }
        assert_ne!(Source::User(0).counted(), Source::User(1).counted());
    }
}
