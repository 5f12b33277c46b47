//! Messages and their parts, as values that mean the same in every version.
//!
//! - Names follow the newer versions where those are clearer ("experimenter", "multipart").
//! - Values that versions encode differently (port numbers, bit positions, wildcards) have one form
//!   here; the codec converts them.
//! - `Display` prints every value as one line of plain text, for logs and tests.

/// Messages.
pub mod message;
/// Strings of bounded length.
pub mod text;
/// Sets of named bits, with their positions in each version.
pub mod bits;
/// Ports: numbers, descriptions and changes.
pub mod port;
/// Matches of flow entries.
pub mod matching;
/// Actions on a frame.
pub mod action;
/// Instructions of a flow entry.
pub mod instruction;
/// Groups and their action buckets.
pub mod group;
/// Meters and their bands.
pub mod meter;
/// Flow entries: flow-mod and flow-removed.
pub mod flow;
/// Packet-in and packet-out.
pub mod packet_io;
/// Switch features and configuration.
pub mod switch;
/// Multipart requests and replies.
pub mod multipart;
/// Nicira extensions of OpenFlow 1.0.
pub mod nicira;
/// Queues of a port.
pub mod queue;
/// Sets of action types and instruction types.
pub mod kinds;
/// Flow tables: configuration, descriptions and statistics.
pub mod table;
/// Controller roles.
pub mod role;
/// Asynchronous message configuration.
pub mod asynchronous;
/// Bundles of messages that the switch commits together.
pub mod bundle;

pub use action::{Action, CopyField, Experimenter};
pub use asynchronous::{AsyncConfig, AsyncExperimenter, AsyncMask};
pub use bundle::{
    BundleAddMessage, BundleCommand, BundleControl, BundleFeatureFlags, BundleFeatureProperty,
    BundleFeatures, BundleFeaturesRequest, BundleFlags, BundleProperty, RequestForward, WallTime,
};
pub use flow::counters::{FlowCounters, FlowStatsReason};
pub use flow::monitor::{
    FlowEvent, FlowMonitorCommand, FlowMonitorFlags, FlowMonitorRequest, FlowUpdate, FlowUpdateFull,
};
pub use flow::{
    BufferId, FlowMod, FlowModCommand, FlowModFlags, FlowRemoved, FlowRemovedReason,
    PRIORITY_DEFAULT,
};
pub use group::{
    Bucket, BucketCounters, GROUP_ALL, GROUP_ANY, GROUP_MAX, GroupCapabilities, GroupDescription,
    GroupFeatures, GroupKind, GroupKinds, GroupMod, GroupModCommand, GroupStats,
};
pub use instruction::{Counters, Instruction, StatTriggerFlags};
pub use kinds::{ActionKinds, InstructionKinds};
pub use matching::field_id::FieldId;
pub use matching::{
    ExperimenterField, Field, FieldMatch, FieldSet, MacAddress, Match, VLAN_PRESENT,
};
pub use message::{ErrorMessage, Hello, HelloElement, Message};
pub use meter::{
    BandCounters, METER_ALL, METER_CONTROLLER, METER_MAX, METER_SLOWPATH, MeterBand, MeterBandKind,
    MeterBandKinds, MeterConfig, MeterFeatureFlags, MeterFeatures, MeterFlags, MeterMod,
    MeterModCommand, MeterStats,
};
pub use multipart::{
    AggregateStats, FlowStats, FlowStatsRequest, MultipartReply, MultipartReplyBody,
    MultipartRequest, MultipartRequestBody, SwitchDescription,
};
pub use packet_io::{COOKIE_NONE, PacketIn, PacketInReason, PacketOut};
pub use port::property::{
    OpticalFeatures, OpticalMod, OpticalPort, OpticalStats, OpticalStatsFlags, PortModProperty,
    PortProperty, PortStatsProperty,
};
pub use port::stats::{COUNTER_UNKNOWN, PortStats};
pub use port::{
    PortConfig, PortDescription, PortFeatures, PortMod, PortNo, PortState, PortStatus,
    PortStatusReason, reserved,
};
pub use queue::{PacketQueue, QUEUE_ALL, QueueConfig, QueueProperty, QueueStats};
pub use role::{
    CONTROLLER_NONE, ControllerProperty, ControllerStatus, ControllerStatusReason,
    GENERATION_UNKNOWN, Role, RoleRequest, RoleStatus, RoleStatusReason,
};
pub use switch::{Capabilities, Features, FragmentHandling, SwitchConfig};
pub use table::features::{
    ActionId, InstructionId, TableFeatureFlags, TableFeatures, TableFeaturesCommand, TableProperty,
    When,
};
pub use table::{
    EvictionFlags, FIELDS_1_0, TABLE_ALL, TABLE_EMERGENCY, TABLE_MAX, TableAbilities, TableConfig,
    TableDescription, TableMiss, TableMod, TableModProperty, TableStats, TableStatus,
    TableStatusReason,
};
pub use text::Text;
