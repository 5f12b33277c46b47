//! Messages and their parts (RFC 5810 section 7).

use std::fmt;

use super::header::Header;
use super::outcome::Outcome;

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Header.
    pub header: Header,
    /// Body.
    pub body: Body,
}

/// A message type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum MessageKind {
    /// An FE requests an association.
    AssociationSetup = 0x01,
    /// Ends an association.
    AssociationTeardown = 0x02,
    /// Requests changes.
    Config = 0x03,
    /// Requests values or properties.
    Query = 0x04,
    /// Reports events.
    EventNotification = 0x05,
    /// Redirects packets to the other end.
    PacketRedirect = 0x06,
    /// Heartbeat.
    Heartbeat = 0x0F,
    /// Accepts or rejects an association.
    AssociationSetupResponse = 0x11,
    /// Results of the changes.
    ConfigResponse = 0x13,
    /// Requested values or properties.
    QueryResponse = 0x14,
}

impl MessageKind {
    /// All message types.
    pub const ALL: [MessageKind; 10] = [
        MessageKind::AssociationSetup,
        MessageKind::AssociationTeardown,
        MessageKind::Config,
        MessageKind::Query,
        MessageKind::EventNotification,
        MessageKind::PacketRedirect,
        MessageKind::Heartbeat,
        MessageKind::AssociationSetupResponse,
        MessageKind::ConfigResponse,
        MessageKind::QueryResponse,
    ];

    /// Returns the message type with this number.
    pub fn from_wire(number: u8) -> Option<MessageKind> {
        MessageKind::ALL.into_iter().find(|kind| kind.wire() == number)
    }

    /// Returns its number.
    pub fn wire(self) -> u8 {
        self as u8
    }

    /// Returns the operations that such a message may have; empty for messages without instances.
    pub fn operations(self) -> &'static [OperationKind] {
        use OperationKind as Kind;
        match self {
            MessageKind::AssociationSetup | MessageKind::EventNotification => &[Kind::Report],
            MessageKind::Config => {
                &[Kind::Set, Kind::SetProperties, Kind::Delete, Kind::Commit, Kind::Complete]
            }
            MessageKind::ConfigResponse => &[
                Kind::SetResponse,
                Kind::SetPropertiesResponse,
                Kind::DeleteResponse,
                Kind::CommitResponse,
            ],
            MessageKind::Query => &[Kind::Get, Kind::GetProperties],
            MessageKind::QueryResponse => &[Kind::GetResponse, Kind::GetPropertiesResponse],
            _ => &[],
        }
    }
}

/// Body of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// An FE requests an association; it may report FEObject and FEPO.
    AssociationSetup(Vec<Select>),
    /// Accepts or rejects an association.
    AssociationSetupResponse(SetupResult),
    /// Ends an association.
    AssociationTeardown(TeardownReason),
    /// Requests changes.
    Config(Vec<Select>),
    /// Results of the changes.
    ConfigResponse(Vec<Select>),
    /// Requests values or properties.
    Query(Vec<Select>),
    /// Requested values or properties.
    QueryResponse(Vec<Select>),
    /// Reports events.
    EventNotification(Vec<Select>),
    /// Redirects packets to the other end.
    PacketRedirect(Vec<Redirect>),
    /// Heartbeat.
    Heartbeat,
}

impl Body {
    /// Returns the message type.
    pub fn kind(&self) -> MessageKind {
        match self {
            Body::AssociationSetup(_) => MessageKind::AssociationSetup,
            Body::AssociationSetupResponse(_) => MessageKind::AssociationSetupResponse,
            Body::AssociationTeardown(_) => MessageKind::AssociationTeardown,
            Body::Config(_) => MessageKind::Config,
            Body::ConfigResponse(_) => MessageKind::ConfigResponse,
            Body::Query(_) => MessageKind::Query,
            Body::QueryResponse(_) => MessageKind::QueryResponse,
            Body::EventNotification(_) => MessageKind::EventNotification,
            Body::PacketRedirect(_) => MessageKind::PacketRedirect,
            Body::Heartbeat => MessageKind::Heartbeat,
        }
    }

    /// Returns the instances in the message, by value.
    pub fn into_selects(self) -> Vec<Select> {
        match self {
            Body::AssociationSetup(all)
            | Body::Config(all)
            | Body::ConfigResponse(all)
            | Body::Query(all)
            | Body::QueryResponse(all)
            | Body::EventNotification(all) => all,
            _ => Vec::new(),
        }
    }

    /// Returns the instances in the message.
    pub fn selects(&self) -> &[Select] {
        match self {
            Body::AssociationSetup(all)
            | Body::Config(all)
            | Body::ConfigResponse(all)
            | Body::Query(all)
            | Body::QueryResponse(all)
            | Body::EventNotification(all) => all,
            _ => &[],
        }
    }
}

/// Result of an association setup (RFC 5810 appendix A.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SetupResult(pub u32);

impl SetupResult {
    /// The FE is associated.
    pub const SUCCESS: SetupResult = SetupResult(0);
    /// The FE ID is invalid.
    pub const FE_ID_INVALID: SetupResult = SetupResult(1);
    /// Permission denied.
    pub const DENIED: SetupResult = SetupResult(2);
}

impl fmt::Display for SetupResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            SetupResult::SUCCESS => f.write_str("associated"),
            SetupResult::FE_ID_INVALID => f.write_str("invalid FE ID"),
            SetupResult::DENIED => f.write_str("association denied"),
            SetupResult(other) => write!(f, "not associated, reason {other}"),
        }
    }
}

/// Why an association ends (RFC 5810 appendix A.7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TeardownReason(pub u32);

impl TeardownReason {
    /// Normal teardown.
    pub const NORMAL: TeardownReason = TeardownReason(0);
    /// Loss of heartbeats.
    pub const HEARTBEATS: TeardownReason = TeardownReason(1);
    /// Out of bandwidth.
    pub const BANDWIDTH: TeardownReason = TeardownReason(2);
    /// Out of memory.
    pub const MEMORY: TeardownReason = TeardownReason(3);
    /// Application crash.
    pub const CRASH: TeardownReason = TeardownReason(4);
    /// Another reason.
    pub const OTHER: TeardownReason = TeardownReason(255);
}

impl fmt::Display for TeardownReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            TeardownReason::NORMAL => f.write_str("normal teardown"),
            TeardownReason::HEARTBEATS => f.write_str("no heartbeats"),
            TeardownReason::BANDWIDTH => f.write_str("out of bandwidth"),
            TeardownReason::MEMORY => f.write_str("out of memory"),
            TeardownReason::CRASH => f.write_str("application crash"),
            TeardownReason::OTHER => f.write_str("another reason"),
            TeardownReason(other) => write!(f, "reason {other}"),
        }
    }
}

/// Operations on an LFB instance (LFBselect).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Select {
    /// Class ID.
    pub class: u32,
    /// Instance ID.
    pub instance: u32,
    /// Operations, in order.
    pub operations: Vec<Operation>,
}

/// Type of an operation (RFC 5810 section 7.1.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum OperationKind {
    /// Sets components or parts of them.
    Set = 1,
    /// Sets properties.
    SetProperties = 2,
    /// Results of a SET.
    SetResponse = 3,
    /// Results of a SET-PROP.
    SetPropertiesResponse = 4,
    /// Deletes rows or optional fields.
    Delete = 5,
    /// Results of a DEL.
    DeleteResponse = 6,
    /// Requests components or parts of them.
    Get = 7,
    /// Requests properties.
    GetProperties = 8,
    /// Requested values.
    GetResponse = 9,
    /// Requested properties.
    GetPropertiesResponse = 10,
    /// Reports an event or a component unsolicited.
    Report = 11,
    /// Commits a transaction.
    Commit = 12,
    /// Result of the commit.
    CommitResponse = 13,
    /// Reports that a transaction is complete (TRCOMP).
    Complete = 14,
}

impl OperationKind {
    /// All operation types.
    pub const ALL: [OperationKind; 14] = [
        OperationKind::Set,
        OperationKind::SetProperties,
        OperationKind::SetResponse,
        OperationKind::SetPropertiesResponse,
        OperationKind::Delete,
        OperationKind::DeleteResponse,
        OperationKind::Get,
        OperationKind::GetProperties,
        OperationKind::GetResponse,
        OperationKind::GetPropertiesResponse,
        OperationKind::Report,
        OperationKind::Commit,
        OperationKind::CommitResponse,
        OperationKind::Complete,
    ];

    /// Returns the operation type with this number.
    pub fn from_wire(number: u16) -> Option<OperationKind> {
        OperationKind::ALL.get(usize::from(number).checked_sub(1)?).copied()
    }

    /// Returns its number.
    pub fn wire(self) -> u16 {
        self as u16
    }

    /// Returns whether the operation has no contents.
    pub fn is_empty(self) -> bool {
        matches!(self, OperationKind::Commit | OperationKind::Complete)
    }

    /// Returns the operation of the response, if there is one.
    pub fn response(self) -> Option<OperationKind> {
        Some(match self {
            OperationKind::Set => OperationKind::SetResponse,
            OperationKind::SetProperties => OperationKind::SetPropertiesResponse,
            OperationKind::Delete => OperationKind::DeleteResponse,
            OperationKind::Get => OperationKind::GetResponse,
            OperationKind::GetProperties => OperationKind::GetPropertiesResponse,
            OperationKind::Commit => OperationKind::CommitResponse,
            _ => return None,
        })
    }
}

/// An operation on parts of an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// Operation type.
    pub kind: OperationKind,
    /// Contents.
    pub content: Content,
}

/// Contents of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// Paths; none in operations without contents.
    Paths(Vec<PathData>),
    /// Result of the whole operation: COMMIT-RESPONSE, and the end of a response of several
    /// messages.
    Outcome(Outcome),
}

/// A path with its data (PATH-DATA).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PathData {
    /// IDs of components and fields, and indices of rows, relative to the enclosing path.
    pub ids: Vec<u32>,
    /// Rows of the array at this path.
    pub selector: Option<Selector>,
    /// Data at this path.
    pub data: Data,
}

/// Selects rows of an array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selector {
    /// The row with this content key.
    Key {
        /// Key ID.
        key: u32,
        /// Fields of the key, as FULLDATA.
        content: Vec<u8>,
    },
    /// Rows from the first to the last index, inclusive (RFC 7391).
    Range {
        /// First index.
        first: u32,
        /// Last index.
        last: u32,
    },
}

/// Data at a path.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Data {
    /// No data: only the path.
    #[default]
    None,
    /// A complete value (FULLDATA).
    Full(Vec<u8>),
    /// Parts of a value (SPARSEDATA).
    Sparse(Vec<u8>),
    /// Result of the operation.
    Outcome(Outcome),
    /// Nested paths.
    Paths(Vec<PathData>),
}

/// A redirected packet.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Redirect {
    /// Metadata by ID, each as FULLDATA of its type.
    pub metadata: Vec<(u32, Vec<u8>)>,
    /// The packet; `None` if there is only metadata.
    pub packet: Option<Vec<u8>>,
}

impl PathData {
    /// Returns a path without data.
    pub fn named(ids: impl Into<Vec<u32>>) -> PathData {
        PathData { ids: ids.into(), ..PathData::default() }
    }

    /// Returns a path with data.
    pub fn with(ids: impl Into<Vec<u32>>, data: Data) -> PathData {
        PathData { ids: ids.into(), selector: None, data }
    }
}

impl Operation {
    /// Returns an operation on these paths.
    pub fn on(kind: OperationKind, paths: Vec<PathData>) -> Operation {
        Operation { kind, content: Content::Paths(paths) }
    }

    /// Returns the paths of the operation.
    pub fn paths(&self) -> &[PathData] {
        match &self.content {
            Content::Paths(paths) => paths,
            Content::Outcome(_) => &[],
        }
    }
}

impl Select {
    /// Returns one operation on an instance.
    pub fn one(class: u32, instance: u32, operation: Operation) -> Select {
        Select { class, instance, operations: vec![operation] }
    }
}
