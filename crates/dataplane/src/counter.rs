//! Frame and byte counters.
//!
//! A forwarding core cannot fail, so every error is a [`DropReason`]. The sum of all drops and of
//! the frames that left a port accounts for every frame (and for every copy, if an entry sends
//! several).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Declares [`DropReason`]: variant, name in reports, meaning.
macro_rules! drop_reasons {
    ($($variant:ident $name:literal $meaning:literal,)*) => {
        /// Reason for dropping a frame, or one copy of it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum DropReason {
            $(#[doc = $meaning] $variant,)*
        }

        impl DropReason {
            /// All reasons, in order of declaration.
            pub const ALL: &'static [DropReason] = &[$(DropReason::$variant,)*];

            /// Returns the reason's name in reports: stable, lower case, words joined by
            /// underscores.
            pub fn name(self) -> &'static str {
                match self {
                    $(DropReason::$variant => $name,)*
                }
            }
        }
    };
}

drop_reasons! {
    TooShort "too_short" "Fewer bytes than an Ethernet header.",
    PortDown "port_down" "The ingress or egress port is down.",
    NoReceive "no_receive" "The ingress port has OFPPC_NO_RECV.",
    NoForward "no_forward" "The egress port has OFPPC_NO_FWD.",
    Fragment "fragment" "A fragment, and the pipeline drops fragments.",
    NoMatch "no_match" "A table miss, which drops the frame or has no controller.",
    ByFlow "by_flow" "The matching entry has no action, which means drop.",
    NoDestination "no_destination" "Its actions lead to no port: no output, or an empty flood.",
    BackToIngress "back_to_ingress" "An action outputs to the ingress port without IN_PORT.",
    NoSuchPort "no_such_port" "An action names a port that does not exist.",
    NoLocalPort "no_local_port" "An action outputs to LOCAL, and no local port exists.",
    NoBridge "no_bridge" "An action outputs to NORMAL, and the pipeline has no bridge.",
    TableFromFlow "table_from_flow" "An action of a flow entry outputs to TABLE.",
    OutputQueueFull "output_queue_full" "The queue of the egress port was full.",
    EventQueueFull "event_queue_full" "A packet-in, and the event queue was full.",
    BadSource "bad_source" "The source address is a group address or zero.",
    ReservedAddress "reserved_address" "Sent to 01-80-C2-00-00-00 to 0F, which bridges drop.",
    SamePort "same_port" "The destination is at the ingress port.",
    NotForUs "not_for_us" "Sent to another MAC address than the router's interface.",
    NotRouted "not_routed" "Neither IPv4 nor ARP for IPv4, or tagged.",
    BadIpHeader "bad_ip_header" "The IPv4 header is inconsistent or does not fit the frame.",
    BadIpChecksum "bad_ip_checksum" "The IPv4 header checksum is wrong.",
    Martian "martian" "An invalid IPv4 source or destination address.",
    NotUnicast "not_unicast" "A broadcast or multicast packet.",
    SourceRouted "source_routed" "A packet with source route options.",
    TtlExpired "ttl_expired" "The time to live has expired.",
    NoRoute "no_route" "No route to the destination.",
    TooLong "too_long" "Longer than the MTU of the next link, with the DF bit.",
    NoNeighbour "no_neighbour" "The next hop does not reply to ARP, or ARP is impossible.",
    NeighbourQueueFull "neighbour_queue_full" "Too many frames wait for the next hop's address.",
    LocalFragment "local_fragment" "A fragment for the router itself, which does not reassemble.",
    NoService "no_service" "For the router itself, which has no such service.",
    BadArp "bad_arp" "An invalid ARP message.",
    Metered "metered" "A meter dropped it.",
    NoSuchGroup "no_such_group" "An action names a group that does not exist.",
    NoLiveBucket "no_live_bucket" "A group that selects one bucket has no live bucket.",
    GroupWorkDone "group_work_done" "Groups copied one frame more often than the limit allows.",
    ShaperFull "shaper_full" "The shaped queue of the egress port was full.",
}

/// Numbers of dropped frames by reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DropCounters {
    frames: [u64; DropReason::ALL.len()],
}

impl Default for DropCounters {
    fn default() -> Self {
        DropCounters { frames: [0; DropReason::ALL.len()] }
    }
}

impl DropCounters {
    /// Counts one dropped frame.
    #[inline]
    pub fn add(&mut self, why: DropReason) {
        self.frames[why as usize] += 1;
    }

    /// Counts `frames` dropped frames.
    #[inline]
    pub fn add_many(&mut self, why: DropReason, frames: u64) {
        self.frames[why as usize] += frames;
    }

    /// Returns the number of frames dropped for this reason.
    pub fn of(&self, why: DropReason) -> u64 {
        self.frames[why as usize]
    }

    /// Returns the number of frames dropped for any reason.
    pub fn total(&self) -> u64 {
        self.frames.iter().sum()
    }

    /// Returns the reasons with nonzero counts.
    pub fn occurred(&self) -> impl Iterator<Item = (DropReason, u64)> + '_ {
        let counts = DropReason::ALL.iter().map(|&why| (why, self.of(why)));
        counts.filter(|&(_, frames)| frames > 0)
    }
}

/// Drop counters that one thread updates while others read.
#[derive(Debug)]
pub struct SharedDrops {
    frames: [AtomicU64; DropReason::ALL.len()],
}

impl Default for SharedDrops {
    fn default() -> Self {
        SharedDrops { frames: [const { AtomicU64::new(0) }; DropReason::ALL.len()] }
    }
}

impl SharedDrops {
    /// Counts one dropped frame. Only one thread may call this.
    #[inline]
    pub fn add(&self, why: DropReason) {
        let frames = &self.frames[why as usize];
        frames.store(frames.load(Relaxed) + 1, Relaxed);
    }

    /// Adds the counters to a sum.
    pub fn add_to(&self, sum: &mut DropCounters) {
        for (sum, frames) in sum.frames.iter_mut().zip(&self.frames) {
            *sum += frames.load(Relaxed);
        }
    }
}

/// Counters of one port, maintained by the code that moves frames between ports and forwarder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PortAccount {
    /// Received frames.
    pub rx_frames: u64,
    /// Received bytes, without frame check sequence.
    pub rx_bytes: u64,
    /// Sent frames.
    pub tx_frames: u64,
    /// Sent bytes, without frame check sequence.
    pub tx_bytes: u64,
    /// Received frames that were dropped before the forwarder.
    pub rx_dropped: u64,
    /// Frames from the forwarder that the port did not accept.
    pub tx_dropped: u64,
}

/// Statistics of one table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TableAccount {
    /// Number of entries.
    pub entries: usize,
    /// Capacity.
    pub entries_max: usize,
    /// Number of frames looked up.
    pub lookups: u64,
    /// Number of frames that matched an entry.
    pub matched: u64,
}

/// Frame and byte counters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Frames.
    pub frames: u64,
    /// Bytes, without frame check sequence.
    pub bytes: u64,
}

impl Traffic {
    /// Counts one frame of `bytes` bytes.
    #[inline]
    pub fn add(&mut self, bytes: usize) {
        self.frames += 1;
        self.bytes += bytes as u64;
    }
}

/// Traffic counters that clones share. A thread that counts must have the lock of the owner.
#[derive(Debug, Clone, Default)]
pub(crate) struct SharedTraffic(Arc<[AtomicU64; 2]>);

impl SharedTraffic {
    /// Counts one frame of `bytes` bytes.
    #[inline]
    pub(crate) fn add(&self, bytes: usize) {
        let [frames, sum] = &*self.0;
        frames.store(frames.load(Relaxed) + 1, Relaxed);
        sum.store(sum.load(Relaxed) + bytes as u64, Relaxed);
    }

    pub(crate) fn get(&self) -> Traffic {
        let [frames, bytes] = &*self.0;
        Traffic { frames: frames.load(Relaxed), bytes: bytes.load(Relaxed) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_drop_reason_has_its_own_counter_and_name() {
        let mut drops = DropCounters::default();
        drops.add(DropReason::NoMatch);
        drops.add_many(DropReason::OutputQueueFull, 4);
        assert_eq!((drops.of(DropReason::NoMatch), drops.total()), (1, 5));
        let occurred: Vec<_> = drops.occurred().collect();
        assert_eq!(occurred, [(DropReason::NoMatch, 1), (DropReason::OutputQueueFull, 4)]);
        let names: std::collections::HashSet<_> =
            DropReason::ALL.iter().map(|why| why.name()).collect();
        assert_eq!(names.len(), DropReason::ALL.len());
    }
}
