//! Messages and what is in them, as values that mean the same in every version.
//!
//! Names follow the newer versions where they are plainer ("experimenter", "multipart"); values
//! that versions write differently (port numbers, bit positions, wildcards) have one form here,
//! and the codec translates. Every value prints itself (`Display`) in one line of plain text for
//! logs and tests.

/// The message itself.
pub mod message;
/// Text of bounded length.
pub mod text;
/// Sets of named bits, with their places in each version.
pub mod bits;
/// Ports: numbers, descriptions, changes.
pub mod port;
/// Which frames an entry is for.
pub mod matching;
/// What is done with a frame.
pub mod action;
/// Entries: adding, changing, deleting, and their end.
pub mod flow;
/// Frames that travel on the control channel.
pub mod packet_io;
/// What a switch says about itself, and its settings.
pub mod switch;
/// Statistics and descriptions.
pub mod multipart;
/// Queues of a port.
pub mod queue;

pub use action::{Action, Experimenter};
pub use flow::{
    BufferId, FlowMod, FlowModCommand, FlowModFlags, FlowRemoved, FlowRemovedReason,
    PRIORITY_DEFAULT,
};
pub use matching::{Fields, MacAddress, Masked, Match, VlanMatch};
pub use message::{ErrorMessage, Hello, Message};
pub use multipart::{
    AggregateStats, COUNTER_UNKNOWN, FlowStats, FlowStatsRequest, MultipartReply,
    MultipartReplyBody, MultipartRequest, PortStats, QueueStats, SwitchDescription, TableStats,
};
pub use packet_io::{PacketIn, PacketInReason, PacketOut};
pub use port::{
    PortConfig, PortDescription, PortFeatures, PortMod, PortNo, PortState, PortStatus,
    PortStatusReason, reserved,
};
pub use queue::{PacketQueue, QueueConfig, QueueProperty};
pub use switch::{ActionKinds, Capabilities, Features, FragmentHandling, SwitchConfig};
pub use text::Text;
