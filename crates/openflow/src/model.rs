//! Messages and their parts, as values that mean the same in every version.
//!
//! - Names follow the newer versions where those are clearer ("experimenter", "multipart").
//! - Values that versions encode differently (port numbers, bit positions, wildcards) have one form
//!   here; the codec converts them.
//! - `Display` prints every value as one line of plain text, for logs and tests.

pub mod message;
pub mod text;
pub mod bits;
pub mod port;
pub mod matching;
pub mod action;
pub mod instruction;
pub mod group;
pub mod meter;
pub mod flow;
pub mod packet_io;
pub mod switch;
pub mod multipart;
pub mod nicira;
pub mod queue;
pub mod kinds;
pub mod table;
pub mod role;
pub mod asynchronous;
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
    ActionId, ActionInstruction, InstructionId, TableFeatureFlags, TableFeatures,
    TableFeaturesCommand, TableProperty,
};
pub use table::{
    EvictionFlags, FIELDS_1_0, TABLE_ALL, TABLE_EMERGENCY, TABLE_MAX, TableAbilities, TableConfig,
    TableDescription, TableMiss, TableMod, TableModProperty, TableStats, TableStatus,
    TableStatusReason,
};
pub use text::Text;
