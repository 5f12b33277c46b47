//! Which news each version lets a controller choose, and for which reasons.
//!
//! Source: `ofp_async_config` of 1.3.5 section 7.3.10 and `ofp_async_config_prop_type` of 1.4.1
//! and 1.5.1 section 7.3.10. A code is that of the property for slaves; the one for masters and
//! equals comes after it. 1.3 has no properties: there the codes are places in its message.

use std::fmt;

use super::{NO, VERSIONS, Version};

table! {
    /// A kind of news that the switch sends of its own accord.
    AsyncKind: u16 {
        //                                        1.0 1.1 1.2 1.3 1.4 1.5
        /// Frames.
        PacketIn "packet_in"                     [NO, NO, NO,  0,  0,  0];
        /// Ports that come, go or change.
        PortStatus "port_status"                 [NO, NO, NO,  2,  2,  2];
        /// Entries that have gone.
        FlowRemoved "flow_removed"               [NO, NO, NO,  4,  4,  4];
        /// The controller's role.
        RoleStatus "role_status"                 [NO, NO, NO, NO,  6,  6];
        /// Tables that become full or empty.
        TableStatus "table_status"               [NO, NO, NO, NO,  8,  8];
        /// What other controllers ask for.
        RequestForward "requestforward"          [NO, NO, NO, NO, 10, 10];
        /// Entries whose counters pass a threshold.
        FlowStats "flow_stats"                   [NO, NO, NO, NO, NO, 12];
        /// How other controllers do.
        ControllerStatus "controller_status"     [NO, NO, NO, NO, NO, 14];
    }
}

impl AsyncKind {
    /// The reasons that there are in this version, bit n for the reason with the number n. A
    /// reason has the same number in every version that has it.
    pub fn reasons(self, version: Version) -> u32 {
        match self {
            AsyncKind::PacketIn if version < Version::V1_4 => 0b111,
            AsyncKind::PacketIn => 0b11_1111,
            AsyncKind::PortStatus | AsyncKind::RoleStatus => 0b111,
            AsyncKind::FlowRemoved if version < Version::V1_4 => 0b1111,
            AsyncKind::FlowRemoved => 0b11_1111,
            AsyncKind::TableStatus => 0b1_1000,
            AsyncKind::RequestForward | AsyncKind::FlowStats => 0b11,
            AsyncKind::ControllerStatus => 0b111_1111,
        }
    }
}
