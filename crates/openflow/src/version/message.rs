//! Which messages each version has.
//!
//! Source: `ofp_type` of the OpenFlow Switch Specifications 1.0.0 to 1.5.1.

use std::fmt;

use super::{End, NO, ONF, VERSIONS, Version};

table! {
    /// A kind of message (`ofp_type`).
    MessageKind: u8 {
        //                                                          1.0 1.1 1.2 1.3 1.4 1.5
        /// First message of either end: which versions it speaks.
        Hello "hello"                                              [ 0,  0,  0,  0,  0,  0];
        /// What went wrong with an earlier message.
        Error "error"                                              [ 1,  1,  1,  1,  1,  1];
        /// Asks the other end for a sign of life.
        EchoRequest "echo_request"                                 [ 2,  2,  2,  2,  2,  2];
        /// The sign of life, with the request's bytes.
        EchoReply "echo_reply"                                     [ 3,  3,  3,  3,  3,  3];
        /// A message that somebody else defines; "vendor" in 1.0.
        Experimenter "experimenter"                                [ 4,  4,  4,  4,  4,  4];
        /// Asks for datapath id, tables, capabilities (and ports).
        FeaturesRequest "features_request"                         [ 5,  5,  5,  5,  5,  5];
        /// Datapath id, tables, capabilities (and ports).
        FeaturesReply "features_reply"                             [ 6,  6,  6,  6,  6,  6];
        /// Asks for fragment handling and miss length.
        GetConfigRequest "get_config_request"                      [ 7,  7,  7,  7,  7,  7];
        /// Fragment handling and miss length.
        GetConfigReply "get_config_reply"                          [ 8,  8,  8,  8,  8,  8];
        /// Sets fragment handling and miss length.
        SetConfig "set_config"                                     [ 9,  9,  9,  9,  9,  9];
        /// A frame that the switch hands to its controller.
        PacketIn "packet_in"                                       [10, 10, 10, 10, 10, 10];
        /// An entry has gone.
        FlowRemoved "flow_removed"                                 [11, 11, 11, 11, 11, 11];
        /// A port came, went or changed.
        PortStatus "port_status"                                   [12, 12, 12, 12, 12, 12];
        /// A frame that the controller has the switch send.
        PacketOut "packet_out"                                     [13, 13, 13, 13, 13, 13];
        /// Adds, changes or deletes entries.
        FlowMod "flow_mod"                                         [14, 14, 14, 14, 14, 14];
        /// Changes how a port behaves.
        PortMod "port_mod"                                         [15, 16, 16, 16, 16, 16];
        /// Asks for statistics or descriptions; "stats" before 1.3.
        MultipartRequest "multipart_request"                       [16, 18, 18, 18, 18, 18];
        /// Statistics or descriptions, possibly in several parts.
        MultipartReply "multipart_reply"                           [17, 19, 19, 19, 19, 19];
        /// Asks to finish everything that came before.
        BarrierRequest "barrier_request"                           [18, 20, 20, 20, 20, 20];
        /// Everything that came before is done.
        BarrierReply "barrier_reply"                               [19, 21, 21, 21, 21, 21];
        /// Asks for the queues of a port.
        QueueGetConfigRequest "queue_get_config_request"           [20, 22, 22, 22, NO, NO];
        /// The queues of a port.
        QueueGetConfigReply "queue_get_config_reply"               [21, 23, 23, 23, NO, NO];
        /// Adds, changes or deletes a group.
        GroupMod "group_mod"                                       [NO, 15, 15, 15, 15, 15];
        /// Sets how a table behaves.
        TableMod "table_mod"                                       [NO, 17, 17, 17, 17, 17];
        /// Asks for a role.
        RoleRequest "role_request"                                 [NO, NO, 24, 24, 24, 24];
        /// The controller's role.
        RoleReply "role_reply"                                     [NO, NO, 25, 25, 25, 25];
        /// Asks which news the controller gets.
        GetAsyncRequest "get_async_request"                        [NO, NO, NO, 26, 26, 26];
        /// Which news the controller gets.
        GetAsyncReply "get_async_reply"                            [NO, NO, NO, 27, 27, 27];
        /// Chooses which news the controller gets.
        SetAsync "set_async"                                       [NO, NO, NO, 28, 28, 28];
        /// Adds, changes or deletes a meter.
        MeterMod "meter_mod"                                       [NO, NO, NO, 29, 29, 29];
        /// The controller's role has changed.
        RoleStatus "role_status"                                   [NO, NO, NO, NO, 30, 30];
        /// A table has become full or empty enough to tell.
        TableStatus "table_status"                                 [NO, NO, NO, NO, 31, 31];
        /// What another controller asked for.
        RequestForward "requestforward"                            [NO, NO, NO, NO, 32, 32];
        /// Opens, closes, commits or discards a bundle.
        BundleControl "bundle_control"                             [NO, NO, NO, NO, 33, 33];
        /// Puts a message into a bundle.
        BundleAddMessage "bundle_add"                              [NO, NO, NO, NO, 34, 34];
        /// How another controller does.
        ControllerStatus "controller_status"                       [NO, NO, NO, NO, NO, 35];
    }
}

impl MessageKind {
    /// The kinds that this version has.
    pub fn of(version: Version) -> impl Iterator<Item = MessageKind> {
        MessageKind::ALL.iter().copied().filter(move |kind| kind.code(version).is_some())
    }

    /// The type of the experimenter message of the [`ONF`](super::ONF) that carries this kind in a
    /// version without a code for it (extension 230: bundles in 1.3).
    pub fn onf_type(self, version: Version) -> Option<u32> {
        match (self, version) {
            (MessageKind::BundleControl, Version::V1_3) => Some(2300),
            (MessageKind::BundleAddMessage, Version::V1_3) => Some(2301),
            _ => None,
        }
    }

    /// The kind that an experimenter message with this body carries, if it is the
    /// [`ONF`](super::ONF)'s and stands for one of a later version.
    pub fn carried_by(version: Version, body: &[u8]) -> Option<MessageKind> {
        let (&[a, b, c, d, e, f, g, h], _) = body.split_first_chunk()?;
        let code = u32::from_be_bytes([e, f, g, h]);
        let kinds = [MessageKind::BundleControl, MessageKind::BundleAddMessage];
        let is_kind = |kind: &MessageKind| kind.onf_type(version) == Some(code);
        kinds.into_iter().find(|kind| u32::from_be_bytes([a, b, c, d]) == ONF && is_kind(kind))
    }

    /// The kind of message that answers this one, if it is a request.
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

    /// Which end sends it; `None` for what both do.
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
