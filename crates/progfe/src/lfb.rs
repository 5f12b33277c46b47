//! LFB classes at run time: how each block of a graph processes a frame.
//!
//! Each class has one file with the same structure:
//!
//! - [`Block::new`] creates a block from an instance's components and reports every problem.
//! - The block stores its state.
//! - [`process`](Block::process) returns the output that the frame takes, or the reason for a drop.
//!
//! A block knows neither its links nor the engine that runs it. The [interpreter](crate::interpret)
//! and the other engines share the blocks.
//!
//! Classes of RFC 6956 (ids 3 to 17) follow its section 5. Where the RFC is silent, the
//! descriptions of the classes in the library apply. The classes of this crate are independent of
//! protocols.

use std::collections::BTreeMap;

use ::packet::frame::PortNo;
use ::packet::time::Nanos;
use dataplane::forwarder::Outputs;
use forces::Value;

use crate::compile::build::TreeBuilder;
use crate::compile::path_state::PathState;
use crate::compile::tree::NodeId;
use crate::frames::FrameSet;

pub mod packet;
pub mod config;
pub mod batch;
pub mod fixed;
pub mod aged_table;
pub mod exceptions;

pub mod phy;
pub mod mac_in;
pub mod classifier;
pub mod encap;
pub mod mac_out;
pub mod ipv4_validator;
pub mod ipv6_validator;
pub mod ucast_lpm;
pub mod next_hop;
pub mod redirect_in;
pub mod redirect_out;
pub mod metadata_dispatch;
pub mod scheduler;

pub mod match_rules;
pub mod search;
pub mod learn_search;
pub mod edit;
pub mod replicate;
pub mod state;
pub mod scan;
pub mod divert;
pub mod inject;
pub mod count;
pub mod meter;
pub mod mirror;
pub mod hash;

pub use batch::Row;
pub use config::Setup;
pub use exceptions::{DivertDestination, ExceptionQueue, LfbEvent};
pub use packet::{Meta, Packet, Slots};

/// Ids of the metadata that RFC 6956 classes set or read.
pub mod meta_id {
    /// Ingress or egress port.
    pub const PHY_PORT: u32 = 1;
    /// Source address of the removed link-layer header.
    pub const SRC_MAC: u32 = 2;
    /// Destination address of the removed link-layer header.
    pub const DST_MAC: u32 = 3;
    /// Logical port, by VLAN.
    pub const LOGICAL_PORT: u32 = 4;
    /// EtherType after the link-layer header.
    pub const ETHER_TYPE: u32 = 5;
    /// VLAN id of the outermost tag.
    pub const VLAN_ID: u32 = 6;
    /// Priority of the outermost tag.
    pub const VLAN_PRIORITY: u32 = 7;
    /// IPv4 address of the next hop.
    pub const NEXT_HOP_V4: u32 = 8;
    /// IPv6 address of the next hop.
    pub const NEXT_HOP_V6: u32 = 9;
    /// Row of the next hop.
    pub const HOP_SELECTOR: u32 = 10;
    /// Reason for an exception.
    pub const EXCEPTION: u32 = 11;
    /// Reason why the packet is invalid.
    pub const VALIDATE_ERROR: u32 = 12;
    /// Egress port of the next hop.
    pub const L3_PORT: u32 = 13;
    /// Output of RedirectIn.
    pub const REDIRECT_INDEX: u32 = 14;
    /// Row of the link-layer header.
    pub const MEDIA_ENCAP: u32 = 15;
    /// Link-layer port.
    pub const L2_PORT: u32 = 0x8000_0001;
    /// State of the flow.
    pub const FLOW_STATE: u32 = 0x8000_0011;
    /// Row of the matching pattern.
    pub const PATTERN: u32 = 0x8000_0012;
    /// Receive time: seconds.
    pub const RECEIVE_SECONDS: u32 = 0x8000_0016;
    /// Receive time: nanoseconds within the second.
    pub const RECEIVE_NANOS: u32 = 0x8000_0017;
}

/// Values of the metadata item ExceptionID (RFC 6956 section 4.4).
pub mod exception {
    /// Any other exception.
    pub const ANY: u128 = 0;
    /// No row of the dispatch table matches.
    pub const CLASSIFY_NO_MATCH: u128 = 1;
    /// MediaEncapInfoIndex is not set.
    pub const ENCAP_INDEX_INVALID: u128 = 2;
    /// No row has that index.
    pub const ENCAP_LOOKUP_FAILED: u128 = 3;
    /// The time to live has expired.
    pub const BAD_TTL: u128 = 4;
    /// The header has options.
    pub const IPV4_HEADER_LENGTH: u128 = 5;
    /// The hop limit has expired.
    pub const HOP_LIMIT_ZERO: u128 = 7;
    /// The packet has hop-by-hop options.
    pub const HOP_BY_HOP: u128 = 8;
    /// The source address requires exception processing.
    pub const SOURCE: u128 = 9;
    /// The destination address requires exception processing.
    pub const DESTINATION: u128 = 10;
    /// No prefix contains the address.
    pub const LPM_FAILED: u128 = 11;
    /// HopSelector is not set.
    pub const HOP_SELECTOR_INVALID: u128 = 12;
    /// No row has that index.
    pub const NEXT_HOP_FAILED: u128 = 13;
    /// The packet exceeds the MTU of the next link.
    pub const FRAGMENTATION: u128 = 14;
    /// No row has the value of the metadata item.
    pub const METADATA_NO_MATCH: u128 = 15;
}

/// Declares [`DropReason`]: variant, name in reports, meaning.
macro_rules! reasons {
    ($($variant:ident $name:literal $meaning:literal,)*) => {
        /// Reason why a block dropped a frame or a copy.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum DropReason { $(#[doc = $meaning] $variant,)* }

        impl DropReason {
            /// All reasons, in declaration order.
            pub const ALL: &'static [DropReason] = &[$(DropReason::$variant,)*];

            /// Returns the name that reports use.
            pub fn name(self) -> &'static str {
                match self { $(DropReason::$variant => $name,)* }
            }
        }
    };
}

reasons! {
    Unlinked "unlinked" "The output is not linked.",
    Ends "ends" "It ends at a block without a following block.",
    Disabled "disabled" "AdminStatus is not Up.",
    NotForUs "not_for_us" "Sent to another MAC address than the port's.",
    TooShort "too_short" "Fewer bytes than a link-layer header.",
    TooLong "too_long" "More bytes than the port's MTU allows.",
    NoPort "no_port" "The element has no such port.",
    PortQueueFull "port_queue_full" "The queue of the egress port was full.",
    NoRedirectIndex "no_redirect_index" "It has no redirect index for the output.",
    ToldQueueFull "told_queue_full" "The queue for control elements and agents was full.",
    QueueFull "queue_full" "The queue of the block was full.",
    NoMembers "no_members" "No output receives a copy.",
    NoOutput "no_output" "Its hash selects no output.",
    OverRate "over_rate" "It exceeded the rate limit of the agent, and no block follows.",
    TooManySteps "too_many_steps" "Its copies and changes took too many steps.",
}

/// An input of a block: port and group index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct At {
    /// Index of the input in the class.
    pub port: u32,
    /// Group index.
    pub index: u32,
}

/// Result of processing a frame in a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The frame takes this output, with a group index.
    Out(u32, u32),
    /// The frame is in the queue of a port of the element.
    Left(PortNo),
    /// The frame is redirected to a control element or an agent.
    Told,
    /// The frame waits in the block.
    Held,
    /// The frame is dropped.
    Dropped(DropReason),
}

/// Context of a block while it processes frames.
pub struct Env<'a> {
    /// Frame formats.
    pub frames: &'a FrameSet,
    /// Slots of the metadata.
    pub slots: &'a Slots,
    /// Current time.
    pub now: Nanos,
    /// Index of the block in the program.
    pub instance: usize,
    /// Whether events of this block have a subscriber.
    pub watched: bool,
    /// Copies and new frames that the block emits: output, group index, packet.
    pub made: &'a mut Vec<(u32, u32, Packet)>,
    /// Unused packets.
    pub spare: &'a mut Vec<Packet>,
    /// Queues of redirected frames and of events.
    pub told: &'a mut ExceptionQueue,
    /// Queues of the ports.
    pub outputs: &'a mut Outputs,
    /// Number of copies sent to an agent while the original frame continues.
    pub copies_told: u64,
}

impl Env<'_> {
    /// Returns an unused packet.
    pub fn fresh(&mut self) -> Packet {
        self.spare.pop().unwrap_or_else(|| Packet::new(self.slots))
    }

    /// Emits a copy of a packet at an output.
    pub fn copy(&mut self, packet: &Packet, output: u32, index: u32) {
        let mut copy = self.fresh();
        copy.copy_from(packet);
        self.made.push((output, index, copy));
    }

    /// Reports an event if it has a subscriber.
    pub fn event(
        &mut self,
        event: u32,
        rows: &[u32],
        what: impl FnOnce() -> Vec<(Vec<u32>, Value)>,
    ) {
        if self.watched {
            let rows = rows.to_vec();
            let (instance, at) = (self.instance, self.now);
            self.told.happened(LfbEvent { instance, event, rows, at, reports: what() });
        }
    }
}

/// An LFB class at run time.
pub trait Block: Sized {
    /// Creates a block from the components of an instance. It reports problems to `setup`; after a
    /// problem the caller discards the block.
    fn new(setup: &mut Setup<'_>) -> Self;

    /// Processes a frame that arrives at an input.
    fn process(&mut self, at: At, packet: &mut Packet, env: &mut Env<'_>) -> Verdict;

    /// Whether [`Block::process`] ignores the input and makes no copies, redirects no frames and
    /// reports no events.
    const IS_PLAIN: bool = false;

    /// Processes each frame of a row in order, as [`Block::process`] does, and records the results.
    ///
    /// Returns false, without any effect, if the class has no faster way than frame by frame. A
    /// class that implements this must not make copies or redirect frames. Events name the frame
    /// that caused them.
    fn process_row(&mut self, row: &mut Row<'_>, env: &mut Env<'_>) -> bool {
        if Self::IS_PLAIN {
            row.each(|packet| self.process(At::default(), packet, env));
        }
        Self::IS_PLAIN
    }

    /// Compiles the processing of frames on one path into decision nodes.
    ///
    /// Returns `None` if the block needs the frame itself. The block may change the knowledge about
    /// the path and add counters only after all its tests. If a test has no continuation, frames
    /// must arrive at the block unchanged.
    fn grow(&self, _way: PathState, _grower: &mut TreeBuilder<'_>) -> Option<NodeId> {
        None
    }

    /// Counts frames and their total bytes for a counter that [`Block::grow`] registered under this
    /// number.
    fn met(&mut self, _what: u32, _frames: u64, _bytes: u64) {}

    /// Takes over tables and counters of the block that it replaces.
    ///
    /// The call does not allocate if both blocks have the same settings. It exchanges the contents,
    /// so a second call reverts it.
    fn keep(&mut self, _old: &mut Self) {}

    /// Creates a successor of this block, which takes over after row changes.
    ///
    /// Returns `None` if a new block costs no more. This block continues to run. If
    /// [`Block::change_row`] returns false, the caller discards the successor and creates a new
    /// block.
    fn follow(&self) -> Option<Self> {
        None
    }

    /// Changes a row of a successor, from the old value to the new one; none if there is no row.
    /// [`Block::new`] reports problems with the values.
    fn change_row(
        &mut self,
        _component: u32,
        _before: Option<&Value>,
        _after: Option<&Value>,
    ) -> bool {
        false
    }

    /// Returns true if [`Block::grow`] of this successor has the same result as that of the block
    /// it follows.
    fn grows_as(&self, _before: &Self) -> bool {
        false
    }

    /// Does periodic work (ageing, queues). Returns the time of the next call, if any.
    fn tick(&mut self, _env: &mut Env<'_>) -> Option<Nanos> {
        None
    }

    /// Returns the value of a component that the element writes. Returns `None` for components that
    /// only have a configured value.
    fn get(&self, _component: u32, _now: Nanos) -> Option<Value> {
        None
    }

    /// Resets such a component to its initial value.
    fn reset(&mut self, _component: u32) {}

    /// Deletes a learned row. Returns false if no learned row has that index.
    fn forget(&mut self, _component: u32, _index: u32) -> bool {
        false
    }

    /// Returns the number of frames that wait in the block.
    fn held(&self) -> u64 {
        0
    }
}

/// Declares [`Lfb`]: variant, class id, type.
macro_rules! blocks {
    ($($variant:ident $id:expr, $block:ty;)*) => {
        /// A block of any class.
        #[derive(Debug)]
        pub enum Lfb { $(#[doc = stringify!($block)] $variant(Box<$block>),)* }

        impl Lfb {
            /// Ids of the supported classes.
            pub const CLASSES: &'static [u32] = &[$($id,)*];

            /// Creates a block of a class. Returns `None` if the class is not supported.
            pub fn new(class: u32, setup: &mut Setup<'_>) -> Option<Lfb> {
                $(if class == $id { return Some(Lfb::$variant(Box::new(Block::new(setup)))); })*
                None
            }

            /// See [`Block::process`].
            pub fn process(&mut self, at: At, packet: &mut Packet, env: &mut Env<'_>) -> Verdict {
                match self { $(Lfb::$variant(block) => block.process(at, packet, env),)* }
            }

            /// See [`Block::process_row`].
            pub fn process_row(&mut self, row: &mut Row<'_>, env: &mut Env<'_>) -> bool {
                match self { $(Lfb::$variant(block) => block.process_row(row, env),)* }
            }

            /// See [`Block::grow`].
            pub fn grow(&self, way: PathState, grower: &mut TreeBuilder<'_>) -> Option<NodeId> {
                match self { $(Lfb::$variant(block) => block.grow(way, grower),)* }
            }

            /// See [`Block::met`].
            pub fn met(&mut self, what: u32, frames: u64, bytes: u64) {
                match self { $(Lfb::$variant(block) => block.met(what, frames, bytes),)* }
            }

            /// See [`Block::keep`]. Does nothing for blocks of different classes.
            pub fn keep(&mut self, old: &mut Lfb) {
                match (self, old) {
                    $((Lfb::$variant(new), Lfb::$variant(old)) => new.keep(old),)*
                    _ => {}
                }
            }

            /// See [`Block::follow`].
            pub fn follow(&self) -> Option<Lfb> {
                match self {
                    $(Lfb::$variant(block) => {
                        Block::follow(&**block).map(|block| Lfb::$variant(Box::new(block)))
                    })*
                }
            }

            /// See [`Block::change_row`].
            pub fn change_row(
                &mut self,
                component: u32,
                before: Option<&Value>,
                after: Option<&Value>,
            ) -> bool {
                match self {
                    $(Lfb::$variant(block) => block.change_row(component, before, after),)*
                }
            }

            /// See [`Block::grows_as`].
            pub fn grows_as(&self, before: &Lfb) -> bool {
                match (self, before) {
                    $((Lfb::$variant(new), Lfb::$variant(old)) => new.grows_as(old),)*
                    _ => false,
                }
            }

            /// See [`Block::tick`].
            pub fn tick(&mut self, env: &mut Env<'_>) -> Option<Nanos> {
                match self { $(Lfb::$variant(block) => block.tick(env),)* }
            }

            /// See [`Block::get`].
            pub fn get(&self, component: u32, now: Nanos) -> Option<Value> {
                match self { $(Lfb::$variant(block) => block.get(component, now),)* }
            }

            /// See [`Block::reset`].
            pub fn reset(&mut self, component: u32) {
                match self { $(Lfb::$variant(block) => block.reset(component),)* }
            }

            /// See [`Block::forget`].
            pub fn forget(&mut self, component: u32, index: u32) -> bool {
                match self { $(Lfb::$variant(block) => block.forget(component, index),)* }
            }

            /// See [`Block::held`].
            pub fn held(&self) -> u64 {
                match self { $(Lfb::$variant(block) => block.held(),)* }
            }
        }
    };
}

blocks! {
    Phy 3, phy::Phy;
    MacIn 4, mac_in::MacIn;
    Classifier 5, classifier::Classifier;
    Encap 6, encap::Encap;
    MacOut 7, mac_out::MacOut;
    Ipv4Validator 8, ipv4_validator::Ipv4Validator;
    Ipv6Validator 9, ipv6_validator::Ipv6Validator;
    Ipv4Lpm 10, ucast_lpm::Ipv4Lpm;
    Ipv6Lpm 11, ucast_lpm::Ipv6Lpm;
    Ipv4NextHop 12, next_hop::Ipv4NextHop;
    Ipv6NextHop 13, next_hop::Ipv6NextHop;
    RedirectIn 14, redirect_in::RedirectIn;
    RedirectOut 15, redirect_out::RedirectOut;
    Dispatch 16, metadata_dispatch::Dispatch;
    Scheduler 17, scheduler::Scheduler;
    Match crate::program::class_id::MATCH, match_rules::Match;
    Search crate::program::class_id::SEARCH, search::Search;
    LearnSearch crate::program::class_id::LEARN_SEARCH, learn_search::LearnSearch;
    Edit crate::program::class_id::EDIT, edit::Edit;
    Replicate crate::program::class_id::REPLICATE, replicate::Replicate;
    State crate::program::class_id::STATE, state::State;
    Scan crate::program::class_id::SCAN, scan::Scan;
    Divert crate::program::class_id::DIVERT, divert::Divert;
    Inject crate::program::class_id::INJECT, inject::Inject;
    Count crate::program::class_id::COUNT, count::Count;
    Meter crate::program::class_id::METER, meter::Meter;
    Mirror crate::program::class_id::MIRROR, mirror::Mirror;
    Hash crate::program::class_id::HASH, hash::Hash;
}

/// Returns counters as the rows of a component: `{index, count}`.
pub(crate) fn counted(counts: &BTreeMap<u32, u64>) -> Value {
    let row = |(&index, &count): (&u32, &u64)| {
        (index, Value::struct_of([(1, Value::Unsigned(index.into())), (2, Value::Unsigned(count))]))
    };
    Value::Array(counts.iter().map(row).collect())
}

/// Returns counters as a struct with fields from 1 upwards.
pub(crate) fn counters(counts: &[u64]) -> Value {
    Value::struct_of((1..).zip(counts.iter().map(|count| Value::Unsigned(*count))))
}
