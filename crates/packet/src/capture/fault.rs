//! What is wrong with a capture file, where, and what to do about it; and what is only odd.

use std::fmt;

use super::{CAPTURED_BYTES_MAX, link_type};

/// Why a file cannot be read on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// The first offending byte, counted from the start of the file.
    pub at: u64,
    /// What is wrong there.
    pub why: Why,
}

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Why {
    /// There is nothing in it.
    Empty,
    /// It begins like no capture file.
    NotACapture([u8; 4]),
    /// It is compressed, by this program.
    Compressed(&'static str),
    /// A version of the format that nobody has described.
    Version {
        /// The number before the point.
        major: u16,
        /// The number behind it.
        minor: u16,
    },
    /// Frames of another kind of link than Ethernet.
    LinkType(u16),
    /// The file ends in the middle of something.
    Truncated {
        /// Bytes that were still to come.
        need: u64,
        /// Bytes that came.
        have: u64,
    },
    /// A length that cannot be.
    Length {
        /// Whose.
        of: &'static str,
        /// What it is.
        have: u64,
        /// The least that it may be.
        least: u64,
        /// The most.
        most: u64,
    },
    /// A length that is no multiple of four.
    Odd(u32),
    /// A block says one length at its beginning and another at its end.
    Ends {
        /// At its beginning.
        first: u32,
        /// At its end.
        last: u32,
    },
    /// A section whose order of bytes cannot be told.
    ByteOrder([u8; 4]),
    /// A block is about an interface that was not described.
    NoSuchInterface {
        /// Its number, from 0.
        interface: u32,
        /// How many were described.
        interfaces: usize,
    },
    /// An option reaches past its block, or has a length that it never has.
    Option {
        /// Its number.
        code: u16,
        /// Its length in bytes.
        bytes: u16,
    },
    /// More than the limit of this name.
    Limit(&'static str),
}

/// What is odd and can be lived with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Odd {
    /// A frame is said to be older than the one before it.
    TimeBackwards,
    /// A time before 1970, or too late to be counted in nanoseconds: taken for none.
    TimeOutOfRange,
    /// More microseconds or nanoseconds than a second has: added all the same.
    FractionTooLarge,
    /// More was captured of a frame than the file says is captured at most.
    LongerThanSnap,
    /// More was captured of a frame than it is said to have had.
    LongerThanOriginal,
}

const ODDITIES: [Odd; 5] = [
    Odd::TimeBackwards,
    Odd::TimeOutOfRange,
    Odd::FractionTooLarge,
    Odd::LongerThanSnap,
    Odd::LongerThanOriginal,
];

/// How often something odd was met, and where first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Warning {
    /// What.
    pub odd: Odd,
    /// Where first, in bytes from the start of the file.
    pub first_at: u64,
    /// How often.
    pub count: u64,
}

/// All that was odd in a file: a line for each kind, however often it was met.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Warnings {
    met: [(u64, u64); ODDITIES.len()],
}

impl Fault {
    pub(super) fn new(at: u64, why: Why) -> Self {
        Fault { at, why }
    }

    /// The same, seen from a file in which what was looked at begins at `offset`.
    pub(super) fn shifted(self, offset: u64) -> Self {
        Fault { at: self.at + offset, ..self }
    }
}

impl Warnings {
    #[cold]
    pub(super) fn note(&mut self, odd: Odd, at: u64) {
        let (first_at, count) = &mut self.met[odd as usize];
        if *count == 0 {
            *first_at = at;
        }
        *count += 1;
    }

    /// What was met.
    pub fn list(&self) -> impl Iterator<Item = Warning> {
        let met = ODDITIES.into_iter().zip(self.met);
        met.filter(|(_, (_, count))| *count > 0).map(|(odd, (first_at, count))| Warning {
            odd,
            first_at,
            count,
        })
    }

    /// How often this was met.
    pub fn count(&self, odd: Odd) -> u64 {
        self.met[odd as usize].1
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {}: ", self.at)?;
        match self.why {
            Why::Empty => f.write_str("the file is empty: name one that was written"),
            Why::NotACapture([a, b, c, d]) => write!(
                f,
                "{a:02x} {b:02x} {c:02x} {d:02x} begins no capture file: \
                 convert it to pcap or pcapng (editcap does it for many formats)"
            ),
            Why::Compressed(program) => write!(f, "compressed by {program}: decompress it first"),
            Why::Version { major, minor } => {
                write!(f, "version {major}.{minor} of the format is unknown: convert it (editcap)")
            }
            Why::LinkType(number) => write!(
                f,
                "frames of link type {number} ({}), and only Ethernet (1) can be read: \
                 capture on an Ethernet interface",
                link_type::name(number)
            ),
            Why::Truncated { need, have } => write!(
                f,
                "needs {need} bytes and the file ends after {have}: it was cut off, \
                 or is still being written; all before this byte is whole"
            ),
            Why::Length { of, have, least, most } => write!(
                f,
                "the length of {of} is {have} and must be {least} to {most}: \
                 the file is damaged from here on"
            ),
            Why::Odd(bytes) => write!(
                f,
                "a block of {bytes} bytes, no multiple of 4: the file is damaged from here on"
            ),
            Why::Ends { first, last } => write!(
                f,
                "a block of {first} bytes ends as one of {last}: the file is damaged from here on"
            ),
            Why::ByteOrder([a, b, c, d]) => write!(
                f,
                "{a:02x} {b:02x} {c:02x} {d:02x} is no byte-order magic: \
                 the file is damaged from here on"
            ),
            Why::NoSuchInterface { interface, interfaces } => write!(
                f,
                "interface {interface} was not described ({interfaces} were): \
                 the file is damaged, or was put together wrongly"
            ),
            Why::Option { code, bytes } => write!(
                f,
                "option {code} cannot have {bytes} bytes here: the file is damaged from here on"
            ),
            Why::Limit(name) => write!(f, "more than {name} allows: split the file (editcap -c)"),
        }
    }
}

impl std::error::Error for Fault {}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.odd {
            Odd::TimeBackwards => "older than the frame before it (reordercap sorts a file)",
            Odd::TimeOutOfRange => "dated before 1970 or after 2554, taken for undated",
            Odd::FractionTooLarge => "dated with a fraction of more than a second",
            Odd::LongerThanSnap => "longer than the file's snap length",
            Odd::LongerThanOriginal => "longer than its own original length",
        };
        write!(f, "{} frames, the first at byte {}, {what}", self.count, self.first_at)
    }
}

/// A length of captured bytes, held against the limit.
pub(super) fn captured(bytes: u32, at: u64) -> Result<usize, Fault> {
    let most = CAPTURED_BYTES_MAX as u64;
    if u64::from(bytes) > most {
        let why = Why::Length { of: "captured bytes", have: u64::from(bytes), least: 0, most };
        return Err(Fault::new(at, why));
    }
    Ok(bytes as usize)
}
