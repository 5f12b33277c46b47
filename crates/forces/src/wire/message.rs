//! Messages and what is in them (RFC 5810 section 7).

use std::fmt;

use super::header::Header;
use super::outcome::Outcome;

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// What stands before its body.
    pub header: Header,
    /// What it says.
    pub body: Body,
}

/// A kind of message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum MessageKind {
    /// An FE wants to be associated.
    AssociationSetup = 0x01,
    /// An association ends.
    AssociationTeardown = 0x02,
    /// Something is to be changed.
    Config = 0x03,
    /// Something is asked.
    Query = 0x04,
    /// Something happened.
    EventNotification = 0x05,
    /// A packet that the other end is to deal with.
    PacketRedirect = 0x06,
    /// A sign of life.
    Heartbeat = 0x0F,
    /// Whether an FE is associated.
    AssociationSetupResponse = 0x11,
    /// What was changed.
    ConfigResponse = 0x13,
    /// What was asked.
    QueryResponse = 0x14,
}

impl MessageKind {
    /// Every kind.
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

    /// The kind of a number.
    pub fn from_wire(number: u8) -> Option<MessageKind> {
        MessageKind::ALL.into_iter().find(|kind| kind.wire() == number)
    }

    /// Its number.
    pub fn wire(self) -> u8 {
        self as u8
    }

    /// The operations that such a message holds; none for those that hold no instances.
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

/// What a message says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// An FE wants to be associated, and may tell of FEObject and FEPO.
    AssociationSetup(Vec<Select>),
    /// Whether it is.
    AssociationSetupResponse(SetupResult),
    /// An association ends.
    AssociationTeardown(TeardownReason),
    /// Something is to be changed.
    Config(Vec<Select>),
    /// What was changed.
    ConfigResponse(Vec<Select>),
    /// Something is asked.
    Query(Vec<Select>),
    /// What was asked.
    QueryResponse(Vec<Select>),
    /// Something happened.
    EventNotification(Vec<Select>),
    /// Packets that the other end is to deal with.
    PacketRedirect(Vec<Redirect>),
    /// A sign of life.
    Heartbeat,
}

impl Body {
    /// What kind of message it makes.
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

    /// The instances that it is about, taken out.
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

    /// The instances that it is about.
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

/// Whether an FE is associated (RFC 5810 appendix A.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SetupResult(pub u32);

impl SetupResult {
    /// It is.
    pub const SUCCESS: SetupResult = SetupResult(0);
    /// It is not, for its id.
    pub const FE_ID_INVALID: SetupResult = SetupResult(1);
    /// It is not, because it may not.
    pub const DENIED: SetupResult = SetupResult(2);
}

impl fmt::Display for SetupResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            SetupResult::SUCCESS => f.write_str("associated"),
            SetupResult::FE_ID_INVALID => f.write_str("the FE's id is not valid"),
            SetupResult::DENIED => f.write_str("the association is denied"),
            SetupResult(other) => write!(f, "not associated, reason {other}"),
        }
    }
}

/// Why an association ends (RFC 5810 appendix A.7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TeardownReason(pub u32);

impl TeardownReason {
    /// Somebody wants it so.
    pub const NORMAL: TeardownReason = TeardownReason(0);
    /// No heartbeats came.
    pub const HEARTBEATS: TeardownReason = TeardownReason(1);
    /// There is no bandwidth for it.
    pub const BANDWIDTH: TeardownReason = TeardownReason(2);
    /// There is no memory for it.
    pub const MEMORY: TeardownReason = TeardownReason(3);
    /// An application crashed.
    pub const CRASH: TeardownReason = TeardownReason(4);
    /// Another one.
    pub const OTHER: TeardownReason = TeardownReason(255);
}

impl fmt::Display for TeardownReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            TeardownReason::NORMAL => f.write_str("torn down on purpose"),
            TeardownReason::HEARTBEATS => f.write_str("no heartbeats"),
            TeardownReason::BANDWIDTH => f.write_str("out of bandwidth"),
            TeardownReason::MEMORY => f.write_str("out of memory"),
            TeardownReason::CRASH => f.write_str("an application crashed"),
            TeardownReason::OTHER => f.write_str("another reason"),
            TeardownReason(other) => write!(f, "reason {other}"),
        }
    }
}

/// Operations on an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Select {
    /// Its class.
    pub class: u32,
    /// Which instance.
    pub instance: u32,
    /// What is done to it, in order.
    pub operations: Vec<Operation>,
}

/// What an operation does (RFC 5810 section 7.1.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum OperationKind {
    /// Makes or changes parts of components.
    Set = 1,
    /// Changes their properties.
    SetProperties = 2,
    /// How a set ended.
    SetResponse = 3,
    /// How a change of properties ended.
    SetPropertiesResponse = 4,
    /// Takes rows or optional fields away.
    Delete = 5,
    /// How that ended.
    DeleteResponse = 6,
    /// Asks for parts of components.
    Get = 7,
    /// Asks for their properties.
    GetProperties = 8,
    /// What was asked for.
    GetResponse = 9,
    /// What properties were asked for.
    GetPropertiesResponse = 10,
    /// Tells of something by itself.
    Report = 11,
    /// Lets a transaction take effect.
    Commit = 12,
    /// Whether it did.
    CommitResponse = 13,
    /// Says that a transaction is over everywhere (TRCOMP).
    Complete = 14,
}

impl OperationKind {
    /// Every kind.
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

    /// The kind of a number.
    pub fn from_wire(number: u16) -> Option<OperationKind> {
        OperationKind::ALL.get(usize::from(number).checked_sub(1)?).copied()
    }

    /// Its number.
    pub fn wire(self) -> u16 {
        self as u16
    }

    /// Whether it stands alone, without anything in it.
    pub fn is_empty(self) -> bool {
        matches!(self, OperationKind::Commit | OperationKind::Complete)
    }

    /// The response to it, if one is made of it.
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
    /// What it does.
    pub kind: OperationKind,
    /// To what.
    pub content: Content,
}

/// What stands in an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// Paths; none for those that stand alone.
    Paths(Vec<PathData>),
    /// How the whole of it ended: COMMIT-RESPONSE, and the end of an answer in several parts.
    Outcome(Outcome),
}

/// A path and what stands there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PathData {
    /// Ids of components and fields and indices of rows, behind the path around it.
    pub ids: Vec<u32>,
    /// Which rows of the array that the ids lead to.
    pub selector: Option<Selector>,
    /// What stands there.
    pub data: Data,
}

/// Rows of an array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selector {
    /// The row with this content.
    Key {
        /// Which key.
        key: u32,
        /// Its fields, as FULLDATA has them.
        content: Vec<u8>,
    },
    /// Rows from one index to another, both counted (RFC 7391).
    Range {
        /// The first.
        first: u32,
        /// The last.
        last: u32,
    },
}

/// What stands at a path.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Data {
    /// Nothing: it is only named.
    #[default]
    None,
    /// A whole value.
    Full(Vec<u8>),
    /// Some parts of a value.
    Sparse(Vec<u8>),
    /// How the operation on it ended.
    Outcome(Outcome),
    /// Longer paths.
    Paths(Vec<PathData>),
}

/// A redirected packet.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Redirect {
    /// Metadata by id, each as FULLDATA of its type has it.
    pub metadata: Vec<(u32, Vec<u8>)>,
    /// The packet; there may be metadata only.
    pub packet: Option<Vec<u8>>,
}

impl PathData {
    /// A path that is only named.
    pub fn named(ids: impl Into<Vec<u32>>) -> PathData {
        PathData { ids: ids.into(), ..PathData::default() }
    }

    /// A path and what stands there.
    pub fn with(ids: impl Into<Vec<u32>>, data: Data) -> PathData {
        PathData { ids: ids.into(), selector: None, data }
    }
}

impl Operation {
    /// An operation on some paths.
    pub fn on(kind: OperationKind, paths: Vec<PathData>) -> Operation {
        Operation { kind, content: Content::Paths(paths) }
    }

    /// Its paths.
    pub fn paths(&self) -> &[PathData] {
        match &self.content {
            Content::Paths(paths) => paths,
            Content::Outcome(_) => &[],
        }
    }
}

impl Select {
    /// One operation on an instance.
    pub fn one(class: u32, instance: u32, operation: Operation) -> Select {
        Select { class, instance, operations: vec![operation] }
    }
}
