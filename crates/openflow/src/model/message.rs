//! Messages of the control channel, without transaction ID.
//!
//! Source: OpenFlow 1.0.0 section 5.1 (`ofp_type`); 1.3.5, 1.4.1 and 1.5.1 section 7.1.

use std::fmt;

use super::action::Experimenter;
use super::asynchronous::AsyncConfig;
use super::bundle::{BundleAddMessage, BundleControl, RequestForward};
use super::flow::{FlowMod, FlowRemoved};
use super::group::GroupMod;
use super::meter::MeterMod;
use super::multipart::{MultipartReply, MultipartRequest, MultipartRequestBody};
use super::packet_io::{PacketIn, PacketOut};
use super::port::{PortMod, PortNo, PortStatus, ShowPort};
use super::queue::QueueConfig;
use super::role::{ControllerStatus, RoleRequest, RoleStatus};
use super::switch::{Features, SwitchConfig};
use super::table::{TableMod, TableStatus};
use super::text::Hex;
use crate::version::{ErrorCode, MessageKind};

/// Bytes of the offending message that an error must quote, if the message has them.
pub const OFFENDING_BYTES: usize = 64;

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::large_enum_variant, reason = "flow-mods are frequent, and boxing them is slow")]
pub enum Message {
    /// First message of either end.
    Hello(Hello),
    /// Reports an error in an earlier message.
    Error(ErrorMessage),
    /// Requests an echo reply, with arbitrary data.
    EchoRequest(Vec<u8>),
    /// Replies to an echo request, with its data.
    EchoReply(Vec<u8>),
    /// An experimenter message.
    Experimenter(Experimenter),
    /// Requests [`Message::FeaturesReply`].
    FeaturesRequest,
    /// Features of the switch.
    FeaturesReply(Features),
    /// Requests [`Message::GetConfigReply`].
    GetConfigRequest,
    /// Configuration of the switch.
    GetConfigReply(SwitchConfig),
    /// Sets the configuration of the switch.
    SetConfig(SwitchConfig),
    /// A frame that the switch sends to the controller.
    PacketIn(PacketIn),
    /// Notifies of a removed flow entry.
    FlowRemoved(FlowRemoved),
    /// Notifies of an added, deleted or modified port.
    PortStatus(PortStatus),
    /// A frame that the controller sends through the switch.
    PacketOut(PacketOut),
    /// Adds, modifies or deletes flow entries.
    FlowMod(FlowMod),
    /// Modifies the configuration of a port.
    PortMod(PortMod),
    /// Requests statistics or descriptions.
    MultipartRequest(MultipartRequest),
    /// Statistics or descriptions.
    MultipartReply(MultipartReply),
    /// Requests a barrier reply after all earlier messages are processed.
    BarrierRequest,
    /// All earlier messages are processed.
    BarrierReply,
    /// Requests the queues of this port.
    QueueGetConfigRequest(PortNo),
    /// The queues of a port.
    QueueGetConfigReply(QueueConfig),
    /// Adds, modifies or deletes a group.
    GroupMod(GroupMod),
    /// Adds, modifies or deletes a meter.
    MeterMod(MeterMod),
    /// Modifies the configuration of a table.
    TableMod(TableMod),
    /// Requests a controller role.
    RoleRequest(RoleRequest),
    /// The controller's role.
    RoleReply(RoleRequest),
    /// Requests [`Message::GetAsyncReply`].
    GetAsyncRequest,
    /// Asynchronous message configuration.
    GetAsyncReply(AsyncConfig),
    /// Sets the asynchronous message configuration.
    SetAsync(AsyncConfig),
    /// Notifies of a changed controller role.
    RoleStatus(RoleStatus),
    /// Notifies that a table's vacancy passed a threshold.
    TableStatus(TableStatus),
    /// A forwarded request of another controller.
    RequestForward(RequestForward),
    /// Opens, closes, commits or discards a bundle.
    BundleControl(BundleControl),
    /// Adds a message to a bundle.
    BundleAddMessage(BundleAddMessage),
    /// Notifies of another controller's status.
    ControllerStatus(ControllerStatus),
}

/// First message of either end. Its header has the sender's highest version.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hello {
    /// Bitmap of the sender's versions, if present (since 1.3): bit n is for wire version n.
    ///
    /// Decoding ignores wire versions above 31.
    pub versions: Option<u32>,
    /// Other elements, as received.
    pub others: Vec<HelloElement>,
}

/// Another element of a hello.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HelloElement {
    /// Element type; 1 is the version bitmap.
    pub kind: u16,
    /// The bytes after type and length.
    pub body: Vec<u8>,
}

/// Reports an error in an earlier message, with that message's transaction ID.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorMessage {
    /// Error type and code.
    pub code: ErrorCode,
    /// The message's first bytes, at least 64 if it has them; a text in hello errors.
    pub data: Vec<u8>,
}

impl Message {
    /// Returns the message type.
    pub fn kind(&self) -> MessageKind {
        match self {
            Message::Hello(_) => MessageKind::Hello,
            Message::Error(_) => MessageKind::Error,
            Message::EchoRequest(_) => MessageKind::EchoRequest,
            Message::EchoReply(_) => MessageKind::EchoReply,
            Message::Experimenter(_) => MessageKind::Experimenter,
            Message::FeaturesRequest => MessageKind::FeaturesRequest,
            Message::FeaturesReply(_) => MessageKind::FeaturesReply,
            Message::GetConfigRequest => MessageKind::GetConfigRequest,
            Message::GetConfigReply(_) => MessageKind::GetConfigReply,
            Message::SetConfig(_) => MessageKind::SetConfig,
            Message::PacketIn(_) => MessageKind::PacketIn,
            Message::FlowRemoved(_) => MessageKind::FlowRemoved,
            Message::PortStatus(_) => MessageKind::PortStatus,
            Message::PacketOut(_) => MessageKind::PacketOut,
            Message::FlowMod(_) => MessageKind::FlowMod,
            Message::PortMod(_) => MessageKind::PortMod,
            Message::MultipartRequest(_) => MessageKind::MultipartRequest,
            Message::MultipartReply(_) => MessageKind::MultipartReply,
            Message::BarrierRequest => MessageKind::BarrierRequest,
            Message::BarrierReply => MessageKind::BarrierReply,
            Message::QueueGetConfigRequest(_) => MessageKind::QueueGetConfigRequest,
            Message::QueueGetConfigReply(_) => MessageKind::QueueGetConfigReply,
            Message::GroupMod(_) => MessageKind::GroupMod,
            Message::MeterMod(_) => MessageKind::MeterMod,
            Message::TableMod(_) => MessageKind::TableMod,
            Message::RoleRequest(_) => MessageKind::RoleRequest,
            Message::RoleReply(_) => MessageKind::RoleReply,
            Message::GetAsyncRequest => MessageKind::GetAsyncRequest,
            Message::GetAsyncReply(_) => MessageKind::GetAsyncReply,
            Message::SetAsync(_) => MessageKind::SetAsync,
            Message::RoleStatus(_) => MessageKind::RoleStatus,
            Message::TableStatus(_) => MessageKind::TableStatus,
            Message::RequestForward(_) => MessageKind::RequestForward,
            Message::BundleControl(_) => MessageKind::BundleControl,
            Message::BundleAddMessage(_) => MessageKind::BundleAddMessage,
            Message::ControllerStatus(_) => MessageKind::ControllerStatus,
        }
    }

    /// Returns a multipart request of one part.
    pub fn ask(body: MultipartRequestBody) -> Message {
        Message::MultipartRequest(body.into())
    }

    /// Returns an error about the message `request`, with its first [`OFFENDING_BYTES`] bytes.
    pub fn error(code: ErrorCode, request: &[u8]) -> Message {
        let data = request[..request.len().min(OFFENDING_BYTES)].to_vec();
        Message::Error(ErrorMessage { code, data })
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind())?;
        match self {
            Message::Hello(hello) => write!(f, "{hello}"),
            Message::Error(error) => write!(f, " {error}"),
            Message::EchoRequest(data) | Message::EchoReply(data) => {
                write!(f, " data={}:{}", data.len(), Hex(data))
            }
            Message::Experimenter(body) => write!(f, " {body}"),
            Message::FeaturesRequest
            | Message::GetConfigRequest
            | Message::BarrierRequest
            | Message::BarrierReply
            | Message::GetAsyncRequest => Ok(()),
            Message::FeaturesReply(features) => write!(f, " {features}"),
            Message::GetConfigReply(config) | Message::SetConfig(config) => write!(f, " {config}"),
            Message::PacketIn(frame) => write!(f, " {frame}"),
            Message::FlowRemoved(removed) => write!(f, " {removed}"),
            Message::PortStatus(status) => write!(f, " {status}"),
            Message::PacketOut(frame) => write!(f, " {frame}"),
            Message::FlowMod(change) => write!(f, " {change}"),
            Message::PortMod(change) => write!(f, " {change}"),
            Message::MultipartRequest(request) => write!(f, " {request}"),
            Message::MultipartReply(reply) => write!(f, " {reply}"),
            Message::QueueGetConfigRequest(port) => write!(f, " port={}", ShowPort(*port)),
            Message::QueueGetConfigReply(config) => write!(f, " {config}"),
            Message::GroupMod(change) => write!(f, " {change}"),
            Message::MeterMod(change) => write!(f, " {change}"),
            Message::TableMod(change) => write!(f, " {change}"),
            Message::RoleRequest(role) | Message::RoleReply(role) => write!(f, " {role}"),
            Message::GetAsyncReply(config) | Message::SetAsync(config) => write!(f, "{config}"),
            Message::RoleStatus(status) => write!(f, " {status}"),
            Message::TableStatus(status) => write!(f, " {status}"),
            Message::RequestForward(forward) => write!(f, " {forward}"),
            Message::BundleControl(control) => write!(f, " {control}"),
            Message::BundleAddMessage(add) => write!(f, " {add}"),
            Message::ControllerStatus(status) => write!(f, " {status}"),
        }
    }
}

impl fmt::Display for Hello {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(bitmap) = self.versions {
            write!(f, " versions={bitmap:#x}")?;
        }
        self.others.iter().try_for_each(|other| write!(f, " {}:{}", other.kind, Hex(&other.body)))
    }
}

impl fmt::Display for ErrorMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.code {
            ErrorCode::HelloIncompatible | ErrorCode::HelloPermission => {
                write!(f, "{} text=\"{}\"", self.code, self.data.escape_ascii())
            }
            _ => write!(f, "{} data={}:{}", self.code, self.data.len(), Hex(&self.data)),
        }
    }
}
