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
/// What an entry does with its frames.
pub mod instruction;
/// Groups of buckets of actions.
pub mod group;
/// Meters and their bands.
pub mod meter;
/// Entries: adding, changing, deleting, and their end.
pub mod flow;
/// Frames that travel on the control channel.
pub mod packet_io;
/// What a switch says about itself, and its settings.
pub mod switch;
/// Statistics and descriptions.
pub mod multipart;
/// Nicira's extensions of 1.0.
pub mod nicira;
/// Queues of a port.
pub mod queue;
/// Sets of kinds of actions and instructions.
pub mod kinds;
/// How tables behave, and how full they are.
pub mod table;
/// Which part a controller plays.
pub mod role;
/// Which news a controller gets.
pub mod asynchronous;
/// Messages that are done together.
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
