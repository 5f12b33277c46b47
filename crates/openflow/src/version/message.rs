//! Message types of each version.
//!
//! Source: `ofp_type` of the OpenFlow Switch Specifications 1.0.0 to 1.5.1.

use std::fmt;

use super::{End, NO, ONF, VERSIONS, Version};

table! {
    /// A message type (`ofp_type`).
    MessageKind: u8 {
        //                                                          1.0 1.1 1.2 1.3 1.4 1.5
        /// First message of either end, with its versions.
        Hello "hello"                                              [ 0,  0,  0,  0,  0,  0];
        /// Reports an error in an earlier message.
        Error "error"                                              [ 1,  1,  1,  1,  1,  1];
        /// Requests an echo reply.
        EchoRequest "echo_request"                                 [ 2,  2,  2,  2,  2,  2];
        /// Replies to an echo request, with its data.
        EchoReply "echo_reply"                                     [ 3,  3,  3,  3,  3,  3];
        /// An experimenter message; "vendor" in 1.0.
        Experimenter "experimenter"                                [ 4,  4,  4,  4,  4,  4];
        /// Requests datapath ID, tables and capabilities (and ports).
        FeaturesRequest "features_request"                         [ 5,  5,  5,  5,  5,  5];
        /// Datapath ID, tables and capabilities (and ports).
        FeaturesReply "features_reply"                             [ 6,  6,  6,  6,  6,  6];
        /// Requests fragment handling and miss length.
        GetConfigRequest "get_config_request"                      [ 7,  7,  7,  7,  7,  7];
        /// Fragment handling and miss length.
        GetConfigReply "get_config_reply"                          [ 8,  8,  8,  8,  8,  8];
        /// Sets fragment handling and miss length.
        SetConfig "set_config"                                     [ 9,  9,  9,  9,  9,  9];
        /// A frame that the switch sends to the controller.
        PacketIn "packet_in"                                       [10, 10, 10, 10, 10, 10];
        /// Notifies of a removed flow entry.
        FlowRemoved "flow_removed"                                 [11, 11, 11, 11, 11, 11];
        /// Notifies of an added, deleted or modified port.
        PortStatus "port_status"                                   [12, 12, 12, 12, 12, 12];
        /// A frame that the controller sends through the switch.
        PacketOut "packet_out"                                     [13, 13, 13, 13, 13, 13];
        /// Adds, modifies or deletes flow entries.
        FlowMod "flow_mod"                                         [14, 14, 14, 14, 14, 14];
        /// Modifies the configuration of a port.
        PortMod "port_mod"                                         [15, 16, 16, 16, 16, 16];
        /// Requests statistics or descriptions; "stats" before 1.3.
        MultipartRequest "multipart_request"                       [16, 18, 18, 18, 18, 18];
        /// Statistics or descriptions, possibly in several parts.
        MultipartReply "multipart_reply"                           [17, 19, 19, 19, 19, 19];
        /// Requests a barrier reply after all earlier messages are processed.
        BarrierRequest "barrier_request"                           [18, 20, 20, 20, 20, 20];
        /// All earlier messages are processed.
        BarrierReply "barrier_reply"                               [19, 21, 21, 21, 21, 21];
        /// Requests the queues of a port.
        QueueGetConfigRequest "queue_get_config_request"           [20, 22, 22, 22, NO, NO];
        /// The queues of a port.
        QueueGetConfigReply "queue_get_config_reply"               [21, 23, 23, 23, NO, NO];
        /// Adds, modifies or deletes a group.
        GroupMod "group_mod"                                       [NO, 15, 15, 15, 15, 15];
        /// Modifies the configuration of a table.
        TableMod "table_mod"                                       [NO, 17, 17, 17, 17, 17];
        /// Requests a controller role.
        RoleRequest "role_request"                                 [NO, NO, 24, 24, 24, 24];
        /// The controller's role.
        RoleReply "role_reply"                                     [NO, NO, 25, 25, 25, 25];
        /// Requests the asynchronous message configuration.
        GetAsyncRequest "get_async_request"                        [NO, NO, NO, 26, 26, 26];
        /// Asynchronous message configuration.
        GetAsyncReply "get_async_reply"                            [NO, NO, NO, 27, 27, 27];
        /// Sets the asynchronous message configuration.
        SetAsync "set_async"                                       [NO, NO, NO, 28, 28, 28];
        /// Adds, modifies or deletes a meter.
        MeterMod "meter_mod"                                       [NO, NO, NO, 29, 29, 29];
        /// Notifies of a changed controller role.
        RoleStatus "role_status"                                   [NO, NO, NO, NO, 30, 30];
        /// Notifies that a table's vacancy passed a threshold.
        TableStatus "table_status"                                 [NO, NO, NO, NO, 31, 31];
        /// A forwarded request of another controller.
        RequestForward "requestforward"                            [NO, NO, NO, NO, 32, 32];
        /// Opens, closes, commits or discards a bundle.
        BundleControl "bundle_control"                             [NO, NO, NO, NO, 33, 33];
        /// Adds a message to a bundle.
        BundleAddMessage "bundle_add"                              [NO, NO, NO, NO, 34, 34];
        /// Notifies of another controller's status.
        ControllerStatus "controller_status"                       [NO, NO, NO, NO, NO, 35];
    }
}

impl MessageKind {
    /// Returns the message types of this version.
    pub fn of(version: Version) -> impl Iterator<Item = MessageKind> {
        MessageKind::ALL.iter().copied().filter(move |kind| kind.code(version).is_some())
    }

    /// Returns the type of the [`ONF`](super::ONF) experimenter message that carries this message
    /// type in a version without a code for it (extension 230: bundles in 1.3).
    pub fn onf_type(self, version: Version) -> Option<u32> {
        match (self, version) {
            (MessageKind::BundleControl, Version::V1_3) => Some(2300),
            (MessageKind::BundleAddMessage, Version::V1_3) => Some(2301),
            _ => None,
        }
    }

    /// Returns the message type that an experimenter message with this body carries, if it is an
    /// [`ONF`](super::ONF) message for one of a later version.
    pub fn carried_by(version: Version, body: &[u8]) -> Option<MessageKind> {
        let (&[a, b, c, d, e, f, g, h], _) = body.split_first_chunk()?;
        let code = u32::from_be_bytes([e, f, g, h]);
        let kinds = [MessageKind::BundleControl, MessageKind::BundleAddMessage];
        let is_kind = |kind: &MessageKind| kind.onf_type(version) == Some(code);
        kinds.into_iter().find(|kind| u32::from_be_bytes([a, b, c, d]) == ONF && is_kind(kind))
    }

    /// Returns the type of the reply, if this is a request.
    pub fn reply(self) -> Option<MessageKind> {
        Some(match self {
            MessageKind::EchoRequest => MessageKind::EchoReply,
            MessageKind::FeaturesRequest => MessageKind::FeaturesReply,
            MessageKind::GetConfigRequest => MessageKind::GetConfigReply,
            MessageKind::MultipartRequest => MessageKind::MultipartReply,
            MessageKind::BarrierRequest => MessageKind::BarrierReply,
            MessageKind::QueueGetConfigRequest => MessageKind::QueueGetConfigReply,
            MessageKind::RoleRequest => MessageKind::RoleReply,
            MessageKind::GetAsyncRequest => MessageKind::GetAsyncReply,
            MessageKind::BundleControl => MessageKind::BundleControl,
            _ => return None,
        })
    }

    /// Returns the end that sends it; `None` for both.
    pub fn sender(self) -> Option<End> {
        match self {
            MessageKind::Hello
            | MessageKind::Error
            | MessageKind::EchoRequest
            | MessageKind::EchoReply
            | MessageKind::Experimenter
            | MessageKind::BundleControl => None,
            MessageKind::FeaturesReply
            | MessageKind::GetConfigReply
            | MessageKind::PacketIn
            | MessageKind::FlowRemoved
            | MessageKind::PortStatus
            | MessageKind::MultipartReply
            | MessageKind::BarrierReply
            | MessageKind::QueueGetConfigReply
            | MessageKind::RoleReply
            | MessageKind::GetAsyncReply
            | MessageKind::RoleStatus
            | MessageKind::TableStatus
            | MessageKind::RequestForward
            | MessageKind::ControllerStatus => Some(End::Switch),
            MessageKind::FeaturesRequest
            | MessageKind::GetConfigRequest
            | MessageKind::SetConfig
            | MessageKind::PacketOut
            | MessageKind::FlowMod
            | MessageKind::PortMod
            | MessageKind::MultipartRequest
            | MessageKind::BarrierRequest
            | MessageKind::QueueGetConfigRequest
            | MessageKind::GroupMod
            | MessageKind::TableMod
            | MessageKind::RoleRequest
            | MessageKind::GetAsyncRequest
            | MessageKind::SetAsync
            | MessageKind::MeterMod
            | MessageKind::BundleAddMessage => Some(End::Controller),
        }
    }
}
