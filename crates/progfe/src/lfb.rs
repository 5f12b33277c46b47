//! Classes at run time: what each block of a graph does with a frame.
//!
//! One file per class, all in one shape: a value that is [made](Block::new) from an instance's
//! components, told every problem at once; its state; and [`process`](Block::process), which says
//! by which output the frame goes on, or why it does not. A block knows neither the links around it nor
//! who runs it: the [interpreter](crate::interpret) and whatever else enforces a program share them.
//!
//! Classes of RFC 6956 (ids 3 to 17) follow its section 5; where it is silent the descriptions of
//! the classes in the library say what holds. Ours know no protocol.

use std::collections::BTreeMap;

use dataplane::forwarder::Outputs;
use forces::Value;
use packet::frame::PortNo;
use packet::time::Nanos;

use crate::compile::grow::Grower;
use crate::compile::tree::NodeId;
use crate::compile::way::Way;
use crate::frames::FrameSet;

/// A frame under way: bytes, metadata, where its headers are.
pub mod passing;
/// An instance's components as its block reads them.
pub mod setting;
/// Frames that a block gets together.
pub mod row;
/// Operands that are read at fixed places.
pub mod fixed;
/// Keys of operands, and entries that are found by them and forgotten in time.
pub mod keyed;
/// What leaves the graph for a control element or a service agent, and what happened.
pub mod told;

/// 3: a port of the element.
pub mod phy;
/// 4: which received frames are taken.
pub mod mac_in;
/// 5: link-layer headers taken off, an output by what they say.
pub mod classifier;
/// 6: link-layer headers put on.
pub mod encap;
/// 7: what is sent.
pub mod mac_out;
/// 8: IPv4 headers checked.
pub mod ipv4_validator;
/// 9: IPv6 headers checked.
pub mod ipv6_validator;
/// 10 and 11: longest prefixes.
pub mod ucast_lpm;
/// 12 and 13: next hops.
pub mod next_hop;
/// 14: from the control element.
pub mod redirect_in;
/// 15: to the control element.
pub mod redirect_out;
/// 16: an output by a metadatum.
pub mod metadata_dispatch;
/// 17: queues, served in turn.
pub mod scheduler;

/// Rules of conditions choose the output.
pub mod match_rules;
/// A table of values of fields.
pub mod search;
/// A table that learns from the frames.
pub mod learn_search;
/// Frames are changed.
pub mod edit;
/// Copies to several outputs.
pub mod replicate;
/// A state machine for each flow.
pub mod state;
/// Patterns in the bytes.
pub mod scan;
/// To a service agent.
pub mod divert;
/// From a service agent.
pub mod inject;
/// Frames and bytes are counted.
pub mod count;
/// Too fast, or not.
pub mod meter;
/// A copy aside.
pub mod mirror;
/// An output by a hash of fields.
pub mod hash;

pub use passing::{Meta, Packet, Slots};
pub use row::Row;
pub use setting::Setup;
pub use told::{Happening, Told, ToldTo};

/// Numbers of metadata that classes of RFC 6956 set or read.
pub mod meta_id {
    /// The port that it came in on, or will leave by.
    pub const PHY_PORT: u32 = 1;
    /// Source of the link-layer header that was taken off.
    pub const SRC_MAC: u32 = 2;
    /// Destination of that.
    pub const DST_MAC: u32 = 3;
    /// Port by VLAN.
    pub const LOGICAL_PORT: u32 = 4;
    /// What followed the link-layer header.
    pub const ETHER_TYPE: u32 = 5;
    /// VLAN of the outermost tag.
    pub const VLAN_ID: u32 = 6;
    /// Priority of that.
    pub const VLAN_PRIORITY: u32 = 7;
    /// IPv4 address of the next hop.
    pub const NEXT_HOP_V4: u32 = 8;
    /// IPv6 address of the next hop.
    pub const NEXT_HOP_V6: u32 = 9;
    /// Row of the next hop.
    pub const HOP_SELECTOR: u32 = 10;
    /// Why it is an exception.
    pub const EXCEPTION: u32 = 11;
    /// Why it is invalid.
    pub const VALIDATE_ERROR: u32 = 12;
    /// Port that the next hop is behind.
    pub const L3_PORT: u32 = 13;
    /// Output of RedirectIn.
    pub const REDIRECT_INDEX: u32 = 14;
    /// Row of the link-layer header.
    pub const MEDIA_ENCAP: u32 = 15;
    /// Port of the link layer.
    pub const L2_PORT: u32 = 0x8000_0001;
    /// State of the flow.
    pub const FLOW_STATE: u32 = 0x8000_0011;
    /// Row of the pattern that was found.
    pub const PATTERN: u32 = 0x8000_0012;
    /// When it came: seconds.
    pub const RECEIVE_SECONDS: u32 = 0x8000_0016;
    /// When it came: nanoseconds of the second.
    pub const RECEIVE_NANOS: u32 = 0x8000_0017;
}

/// Values of the metadatum ExceptionID (RFC 6956 section 4.4).
pub mod exception {
    /// Anything else.
    pub const ANY: u128 = 0;
    /// No row of the dispatch table fits.
    pub const CLASSIFY_NO_MATCH: u128 = 1;
    /// MediaEncapInfoIndex is not set.
    pub const ENCAP_INDEX_INVALID: u128 = 2;
    /// No row has that index.
    pub const ENCAP_LOOKUP_FAILED: u128 = 3;
    /// The time to live is used up.
    pub const BAD_TTL: u128 = 4;
    /// The header has options.
    pub const IPV4_HEADER_LENGTH: u128 = 5;
    /// A router is to look at it.
    pub const ROUTER_ALERT: u128 = 6;
    /// The hop limit is used up.
    pub const HOP_LIMIT_ZERO: u128 = 7;
    /// Options for every hop.
    pub const HOP_BY_HOP: u128 = 8;
    /// A source that is looked at elsewhere.
    pub const SOURCE: u128 = 9;
    /// A destination that is looked at elsewhere.
    pub const DESTINATION: u128 = 10;
    /// No prefix holds the address.
    pub const LPM_FAILED: u128 = 11;
    /// HopSelector is not set.
    pub const HOP_SELECTOR_INVALID: u128 = 12;
    /// No row has that index.
    pub const NEXT_HOP_FAILED: u128 = 13;
    /// It is longer than the next link carries.
    pub const FRAGMENTATION: u128 = 14;
    /// No row has the metadatum's value.
    pub const METADATA_NO_MATCH: u128 = 15;
}

/// Declares [`Reason`]: variant, name on reports, meaning.
macro_rules! reasons {
    ($($variant:ident $name:literal $meaning:literal,)*) => {
        /// Why a block let a frame, or a copy, go no further.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Reason { $(#[doc = $meaning] $variant,)* }

        impl Reason {
            /// All reasons, in the order in which they are declared.
            pub const ALL: &'static [Reason] = &[$(Reason::$variant,)*];

            /// The reason's name on reports.
            pub fn name(self) -> &'static str {
                match self { $(Reason::$variant => $name,)* }
            }
        }
    };
}

reasons! {
    Unlinked "unlinked" "The output that it takes leads nowhere.",
    Ends "ends" "It is counted here, and nothing is to follow.",
    Disabled "disabled" "AdminStatus is not Up.",
    NotForUs "not_for_us" "For another station than the port's.",
    TooShort "too_short" "Fewer bytes than a link-layer header.",
    TooLong "too_long" "More bytes than the port's MTU allows.",
    NoPort "no_port" "The element has no such port.",
    PortQueueFull "port_queue_full" "The queue of the port that it should leave by was full.",
    NoRedirectIndex "no_redirect_index" "It does not say which output it takes.",
    ToldQueueFull "told_queue_full" "Too much waits for control elements and agents.",
    QueueFull "queue_full" "The queue that it should wait in was full.",
    NoMembers "no_members" "No output is to get a copy.",
    NoOutput "no_output" "Its hash leads to no output.",
    OverRate "over_rate" "It came too fast for the agent, and nothing follows.",
    TooManySteps "too_many_steps" "What it became took too many steps.",
}

/// An input, by its place in the class, and which of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct At {
    /// The input.
    pub port: u32,
    /// Which of a group.
    pub index: u32,
}

/// What becomes of a frame in a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It goes by this output, and which of a group.
    Out(u32, u32),
    /// It is in the queue of a port of the element.
    Left(PortNo),
    /// It was told to a control element or an agent.
    Told,
    /// It waits in the block.
    Held,
    /// It goes no further.
    Dropped(Reason),
}

/// What a block has at hand while it works.
pub struct Env<'a> {
    /// How frames are read.
    pub frames: &'a FrameSet,
    /// Where metadata are.
    pub slots: &'a Slots,
    /// The time.
    pub now: Nanos,
    /// The block's place in the program.
    pub instance: usize,
    /// Whether somebody watches events of this block.
    pub watched: bool,
    /// Copies and fresh frames of the block, each by an output and which of its group.
    pub made: &'a mut Vec<(u32, u32, Packet)>,
    /// Packets that are not in use.
    pub spare: &'a mut Vec<Packet>,
    /// What is told to control elements and agents.
    pub told: &'a mut Told,
    /// The ports' queues.
    pub outputs: &'a mut Outputs,
    /// Copies that were told to an agent while the frame itself goes on.
    pub copies_told: u64,
}

impl Env<'_> {
    /// A packet that is not in use.
    pub fn fresh(&mut self) -> Packet {
        self.spare.pop().unwrap_or_else(|| Packet::new(self.slots))
    }

    /// Lets a copy go by an output.
    pub fn copy(&mut self, packet: &Packet, output: u32, index: u32) {
        let mut copy = self.fresh();
        copy.copy_from(packet);
        self.made.push((output, index, copy));
    }

    /// Says that an event happened, if somebody watches.
    pub fn event(
        &mut self,
        event: u32,
        rows: &[u32],
        what: impl FnOnce() -> Vec<(Vec<u32>, Value)>,
    ) {
        if self.watched {
            let rows = rows.to_vec();
            let (instance, at) = (self.instance, self.now);
            self.told.happened(Happening { instance, event, rows, at, reports: what() });
        }
    }
}

/// A class at run time.
pub trait Block: Sized {
    /// A block with what an instance is set to. Every problem is told to `setup`; then what comes
    /// out is not used.
    fn new(setup: &mut Setup<'_>) -> Self;

    /// What becomes of a frame that came by an input.
    fn process(&mut self, at: At, packet: &mut Packet, env: &mut Env<'_>) -> Verdict;

    /// Whether [`Block::process`] does the same by whichever input a frame came, and makes no copies, tells
    /// nothing and has no events.
    const IS_PLAIN: bool = false;

    /// Does to each frame of a row, in order, what [`Block::process`] does, and notes what becomes of
    /// it. False, and nothing is done, if the class has no faster way to that than one by one. Only
    /// classes that make no copies and tell no frames have one; events are told with who they are by.
    fn process_row(&mut self, row: &mut Row<'_>, env: &mut Env<'_>) -> bool {
        if Self::IS_PLAIN {
            row.each(|packet| self.process(At::default(), packet, env));
        }
        Self::IS_PLAIN
    }

    /// What becomes of frames that come one way, as decisions; `None` where a block has to have a frame. It
    /// changes what is known of the way, and has things counted, only behind all that it asks: where
    /// an answer leads nowhere, frames stand in front of the block as they came to it.
    fn grow(&self, _way: Way, _grower: &mut Grower<'_>) -> Option<NodeId> {
        None
    }

    /// Counts frames, of so many bytes together, that met what [`Block::grow`] called by a number.
    fn met(&mut self, _what: u32, _frames: u64, _bytes: u64) {}

    /// Takes over tables and counters of a block that it replaces, without allocating where both are
    /// set up alike. What the two hold is exchanged, so that the same call takes it back.
    fn keep(&mut self, _old: &mut Self) {}

    /// A block that is as this one and is to take its place once some rows of tables have changed; `None`
    /// where a new one costs no more. This one goes on meanwhile. `false` of [`Block::change_row`] has it
    /// thrown away, and a new one made.
    fn follow(&self) -> Option<Self> {
        None
    }

    /// Changes a row of a block that follows another: what was set there, and what is; none where there
    /// is no row. What is wrong is left to [`Block::new`] to tell.
    fn change_row(
        &mut self,
        _component: u32,
        _before: Option<&Value>,
        _after: Option<&Value>,
    ) -> bool {
        false
    }

    /// Whether [`Block::grow`] of a block that follows another has the same to say as that one's.
    fn grows_as(&self, _before: &Self) -> bool {
        false
    }

    /// Does what is due (ageing, queues) and says when to come back, if ever.
    fn tick(&mut self, _env: &mut Env<'_>) -> Option<Nanos> {
        None
    }

    /// What a component holds that the element itself writes; `None` for those that are as set.
    fn get(&self, _component: u32, _now: Nanos) -> Option<Value> {
        None
    }

    /// Sets such a component back to where it began.
    fn reset(&mut self, _component: u32) {}

    /// Forgets a row that it learnt itself; false if there is none with that index.
    fn forget(&mut self, _component: u32, _index: u32) -> bool {
        false
    }

    /// Frames that wait in it.
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
            /// Ids of the classes that can be run.
            pub const CLASSES: &'static [u32] = &[$($id,)*];

            /// A block of a class; `None` if such blocks cannot be run.
            pub fn new(class: u32, setup: &mut Setup<'_>) -> Option<Lfb> {
                $(if class == $id { return Some(Lfb::$variant(Box::new(Block::new(setup)))); })*
                None
            }

            /// As [`Block::process`].
            pub fn process(&mut self, at: At, packet: &mut Packet, env: &mut Env<'_>) -> Verdict {
                match self { $(Lfb::$variant(block) => block.process(at, packet, env),)* }
            }

            /// As [`Block::process_row`].
            pub fn process_row(&mut self, row: &mut Row<'_>, env: &mut Env<'_>) -> bool {
                match self { $(Lfb::$variant(block) => block.process_row(row, env),)* }
            }

            /// As [`Block::grow`].
            pub fn grow(&self, way: Way, grower: &mut Grower<'_>) -> Option<NodeId> {
                match self { $(Lfb::$variant(block) => block.grow(way, grower),)* }
            }

            /// As [`Block::met`].
            pub fn met(&mut self, what: u32, frames: u64, bytes: u64) {
                match self { $(Lfb::$variant(block) => block.met(what, frames, bytes),)* }
            }

            /// As [`Block::keep`]; blocks of different classes have nothing in common.
            pub fn keep(&mut self, old: &mut Lfb) {
                match (self, old) {
                    $((Lfb::$variant(new), Lfb::$variant(old)) => new.keep(old),)*
                    _ => {}
                }
            }

            /// As [`Block::follow`].
            pub fn follow(&self) -> Option<Lfb> {
                match self {
                    $(Lfb::$variant(block) => {
                        Block::follow(&**block).map(|block| Lfb::$variant(Box::new(block)))
                    })*
                }
            }

            /// As [`Block::change_row`].
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

            /// As [`Block::grows_as`].
            pub fn grows_as(&self, before: &Lfb) -> bool {
                match (self, before) {
                    $((Lfb::$variant(new), Lfb::$variant(old)) => new.grows_as(old),)*
                    _ => false,
                }
            }

            /// As [`Block::tick`].
            pub fn tick(&mut self, env: &mut Env<'_>) -> Option<Nanos> {
                match self { $(Lfb::$variant(block) => block.tick(env),)* }
            }

            /// As [`Block::get`].
            pub fn get(&self, component: u32, now: Nanos) -> Option<Value> {
                match self { $(Lfb::$variant(block) => block.get(component, now),)* }
            }

            /// As [`Block::reset`].
            pub fn reset(&mut self, component: u32) {
                match self { $(Lfb::$variant(block) => block.reset(component),)* }
            }

            /// As [`Block::forget`].
            pub fn forget(&mut self, component: u32, index: u32) -> bool {
                match self { $(Lfb::$variant(block) => block.forget(component, index),)* }
            }

            /// As [`Block::held`].
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

/// Rows of counters by the index of what they count, as a component shows them: `{index, count}`.
pub(crate) fn counted(counts: &BTreeMap<u32, u64>) -> Value {
    let row = |(&index, &count): (&u32, &u64)| {
        (index, Value::struct_of([(1, Value::Unsigned(index.into())), (2, Value::Unsigned(count))]))
    };
    Value::Array(counts.iter().map(row).collect())
}

/// Some counters as a struct with fields from 1 on.
pub(crate) fn counters(counts: &[u64]) -> Value {
    Value::struct_of((1..).zip(counts.iter().map(|count| Value::Unsigned(*count))))
}
