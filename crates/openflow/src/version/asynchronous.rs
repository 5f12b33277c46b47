//! Asynchronous message types of each version, with their reasons.
//!
//! Source: `ofp_async_config` of 1.3.5 section 7.3.10 and `ofp_async_config_prop_type` of 1.4.1 and
//! 1.5.1 section 7.3.10.
//!
//! A code is the property type for slaves; the next code is that for masters and equals. 1.3 has no
//! properties, so its codes are positions in the message.

use std::fmt;

use super::{NO, VERSIONS, Version};

table! {
    /// An asynchronous message type.
    AsyncKind: u16 {
        //                                        1.0 1.1 1.2 1.3 1.4 1.5
        /// Packet-in.
        PacketIn "packet_in"                     [NO, NO, NO,  0,  0,  0];
        /// Port-status.
        PortStatus "port_status"                 [NO, NO, NO,  2,  2,  2];
        /// Flow-removed.
        FlowRemoved "flow_removed"               [NO, NO, NO,  4,  4,  4];
        /// Role-status.
        RoleStatus "role_status"                 [NO, NO, NO, NO,  6,  6];
        /// Table-status.
        TableStatus "table_status"               [NO, NO, NO, NO,  8,  8];
        /// Forwarded requests of other controllers.
        RequestForward "requestforward"          [NO, NO, NO, NO, 10, 10];
        /// Flow statistics of stat triggers.
        FlowStats "flow_stats"                   [NO, NO, NO, NO, NO, 12];
        /// Controller-status.
        ControllerStatus "controller_status"     [NO, NO, NO, NO, NO, 14];
    }
}

impl AsyncKind {
    /// Returns the reasons of this version; bit n is for reason n.
    ///
    /// A reason has the same number in every version that has it.
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
