//! One message of the control channel, without its transaction id.
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

/// Bytes of a refused message that an error carries at least (or all of it).
pub const OFFENDING_BYTES: usize = 64;

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::large_enum_variant, reason = "a flow-mod is the message that must be quick")]
pub enum Message {
    /// First message of either end.
    Hello(Hello),
    /// What went wrong with an earlier message.
    Error(ErrorMessage),
    /// Asks for a sign of life, with any bytes.
    EchoRequest(Vec<u8>),
    /// The sign of life, with the same bytes.
    EchoReply(Vec<u8>),
    /// What somebody else defines.
    Experimenter(Experimenter),
    /// Asks for [`Message::FeaturesReply`].
    FeaturesRequest,
    /// What the switch is.
    FeaturesReply(Features),
    /// Asks for [`Message::GetConfigReply`].
    GetConfigRequest,
    /// The switch's settings.
    GetConfigReply(SwitchConfig),
    /// New settings for the switch.
    SetConfig(SwitchConfig),
    /// A frame for the controller.
    PacketIn(PacketIn),
    /// An entry has gone.
    FlowRemoved(FlowRemoved),
    /// A port came, went or changed.
    PortStatus(PortStatus),
    /// A frame from the controller.
    PacketOut(PacketOut),
    /// Adds, changes or deletes entries.
    FlowMod(FlowMod),
    /// Changes how a port behaves.
    PortMod(PortMod),
    /// Asks for statistics.
    MultipartRequest(MultipartRequest),
    /// Statistics.
    MultipartReply(MultipartReply),
    /// Asks to finish everything that came before.
    BarrierRequest,
    /// Everything that came before is done.
    BarrierReply,
    /// Asks for the queues of this port.
    QueueGetConfigRequest(PortNo),
    /// The queues of a port.
    QueueGetConfigReply(QueueConfig),
    /// Adds, changes or deletes a group.
    GroupMod(GroupMod),
    /// Adds, changes or deletes a meter.
    MeterMod(MeterMod),
    /// Sets how a table behaves.
    TableMod(TableMod),
    /// Asks for a role.
    RoleRequest(RoleRequest),
    /// The controller's role.
    RoleReply(RoleRequest),
    /// Asks for [`Message::GetAsyncReply`].
    GetAsyncRequest,
    /// Which news the controller gets.
    GetAsyncReply(AsyncConfig),
    /// Which news the controller is to get.
    SetAsync(AsyncConfig),
    /// The controller's role has changed.
    RoleStatus(RoleStatus),
    /// A table has become full or empty enough to tell.
    TableStatus(TableStatus),
    /// What another controller asked for.
    RequestForward(RequestForward),
    /// Opens, closes, commits or discards a bundle.
    BundleControl(BundleControl),
    /// Puts a message into a bundle.
    BundleAddMessage(BundleAddMessage),
    /// How another controller does.
    ControllerStatus(ControllerStatus),
}

/// First message of either end. Its header says the highest version that the sender speaks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hello {
    /// Which versions the sender speaks, bit n for wire number n, if it says (1.3 brought this).
    /// Wire numbers above 31 are not kept.
    pub versions: Option<u32>,
    /// Other elements, as they came.
    pub others: Vec<HelloElement>,
}

/// Something else that a hello says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HelloElement {
    /// Its type; 1 is the bitmap of versions.
    pub kind: u16,
    /// What follows its type and length.
    pub body: Vec<u8>,
}

/// What went wrong with an earlier message, whose transaction id this one repeats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorMessage {
    /// What.
    pub code: ErrorCode,
    /// The message's first bytes, at least 64 if it has them; for the hello errors, a text.
    pub data: Vec<u8>,
}

impl Message {
    /// Its row in the table of versions.
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

    /// A request of one part for statistics or descriptions.
    pub fn ask(body: MultipartRequestBody) -> Message {
        Message::MultipartRequest(body.into())
    }

    /// An error about the message that starts with `request`, of which the first
    /// [`OFFENDING_BYTES`] bytes go along.
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
