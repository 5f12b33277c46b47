//! A case: its steps, their expected results, and the clauses and features that it covers.

use std::fmt;

use openflow::model::{BundleCommand, BundleFlags, Message};
use openflow::version::Version;
use packet::time::Nanos;

use crate::features::FeaturesChange;
use crate::orders::PortChange;

/// Makes a message for a version.
pub type Make<T> = Box<dyn Fn(Version) -> Result<T, String>>;

/// A case.
pub struct Case {
    /// File and, for a generated one, what it was made from.
    pub file: String,
    /// Its unique name.
    pub name: String,
    /// Sections of the specifications, such as `1.3.5/6.4`.
    pub clauses: Vec<String>,
    /// Versions in which it is played.
    pub versions: Vec<Version>,
    /// Rows of the table of features that it covers, such as `field:ipv4_src`.
    pub covers: Vec<String>,
    /// Whether the case needs our own switch (limits, configuration).
    pub ours_only: bool,
    /// Whether it needs a fresh switch.
    pub fresh: bool,
    /// The steps.
    pub steps: Vec<Step>,
}

/// One action, and its exact results in any order.
pub struct Step {
    /// Line in the file.
    pub line: usize,
    /// Its text.
    pub text: String,
    /// The action.
    pub what: Do,
    /// The expected results.
    pub expect: Vec<Expect>,
}

/// An action.
pub enum Do {
    /// Sends a message and a barrier after it.
    Send(Make<Message>),
    /// Sends a message whose reply is expected, without a barrier.
    SendAlone(Make<Message>),
    /// Sends these bytes and a barrier after them.
    Raw(Make<Vec<u8>>),
    /// Changes a port.
    PortMod(PortChange),
    /// Controls a bundle, scheduled this many milliseconds from now if set.
    Bundle { id: u32, command: BundleCommand, flags: BundleFlags, in_ms: Option<i64> },
    /// Puts a message into the bundle that was opened last.
    BundleAdd { id: u32, make: Make<Message> },
    /// Changes table features.
    Features(FeaturesChange),
    /// Adds this many entries to a table.
    Many { count: u32, table: u8 },
    /// Adds entries until one is rejected.
    Full,
    /// Connects without sending a message.
    Plain,
    /// Sends bytes on the plain connection.
    Put(Make<Vec<u8>>),
    /// Sends a frame into a port.
    Frame { port: u32, bytes: Vec<u8> },
    /// Advances the time.
    Pass(Nanos),
    /// Continues as another controller, which connects if it is new.
    Become { name: String },
}

/// An expected result.
pub enum Expect {
    /// A frame out of a port.
    Frame { port: u32, bytes: Vec<u8> },
    /// A message that passes the check.
    Message { text: String, check: Box<dyn Fn(&Message) -> bool> },
    /// This number of rows in the replies.
    Rows(usize),
    /// A row with these words in the replies.
    Row(Vec<String>),
    /// A message of this kind on the plain connection.
    Kind(String),
    /// The end of the connection.
    Down,
}

impl fmt::Display for Expect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expect::Frame { port, bytes } => {
                write!(f, "frame {port}: {} ", packet::show::Show(bytes))?;
                bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
            Expect::Message { text, .. } => f.write_str(text),
            Expect::Rows(count) => write!(f, "{count} rows"),
            Expect::Row(words) => write!(f, "a row with {}", words.join(" ")),
            Expect::Kind(name) => write!(f, "a message {name}"),
            Expect::Down => f.write_str("the end of the connection"),
        }
    }
}
