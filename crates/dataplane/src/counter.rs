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
    PortDown "port_down" "The port that it came in on, or should leave by, is switched off.",
    NoReceive "no_receive" "The port that it came in on is set to receive nothing.",
    NoForward "no_forward" "The port that it should leave by is set to be sent nothing.",
    Fragment "fragment" "A fragment, and the pipeline is set to drop fragments.",
    NoMatch "no_match" "No entry matched it, and a miss is set to drop (or to ask nobody).",
    ByFlow "by_flow" "The entry that matched it has no action: drop is what was asked for.",
    NoDestination "no_destination" "Its actions led to no port (no output, or a flood to nobody).",
    BackToIngress "back_to_ingress" "An entry names the port that it came in on without saying so.",
    NoSuchPort "no_such_port" "An action names a port that does not exist.",
    NoLocalPort "no_local_port" "An action sends it to this host, and nothing is attached there.",
    NoBridge "no_bridge" "An action asks for normal bridging, and the pipeline has no bridge.",
    TableFromFlow "table_from_flow" "A flow's action sends it to the tables, where it came from.",
    OutputQueueFull "output_queue_full" "The queue of the port that it should leave by was full.",
    EventQueueFull "event_queue_full" "It was for the controller, and too many events were waiting.",
    BadSource "bad_source" "Its source address is that of a group, or zero.",
    ReservedAddress "reserved_address" "For 01-80-C2-00-00-00 to 0F, which no bridge relays.",
    SamePort "same_port" "Its destination is behind the port that it came in on.",
    NotForUs "not_for_us" "For another station than the router's interface.",
    NotRouted "not_routed" "Neither IPv4 nor ARP for IPv4, or tagged: the router does not route it.",
    BadIpHeader "bad_ip_header" "Its IPv4 header contradicts itself or the frame's length.",
    BadIpChecksum "bad_ip_checksum" "The checksum of its IPv4 header is wrong.",
    Martian "martian" "From or for an IPv4 address that no such packet can have.",
    NotUnicast "not_unicast" "A broadcast or multicast, which the router does not route.",
    SourceRouted "source_routed" "It asks to be routed by its sender's list of addresses.",
    TtlExpired "ttl_expired" "Its time to live is used up.",
    NoRoute "no_route" "No route leads to its destination.",
    TooLong "too_long" "Longer than the next link allows, and it must not be fragmented.",
    NoNeighbour "no_neighbour" "The next hop did not answer, or cannot be asked.",
    NeighbourQueueFull "neighbour_queue_full" "Too many frames waited for the next hop's address.",
    LocalFragment "local_fragment" "A fragment for the router itself, which reassembles nothing.",
    NoService "no_service" "For the router itself, which offers no such service.",
    BadArp "bad_arp" "An ARP message that makes no sense.",
    Metered "metered" "It came faster than a meter allows.",
    NoSuchGroup "no_such_group" "An action names a group that does not exist.",
    NoLiveBucket "no_live_bucket" "No bucket of the group that chooses one is live.",
    GroupWorkDone "group_work_done" "Groups would have sent more copies of one frame than may be.",
    ShaperFull "shaper_full" "The shaped queue of the port that it should leave by was full.",
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
