//! Errors and warnings of capture files.

use std::fmt;

use super::{CAPTURED_BYTES_MAX, link_type};

/// Error that ends the decoding of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// Offset of the first invalid byte in the file.
    pub at: u64,
    /// Kind of error.
    pub why: CaptureFaultKind,
}

/// Kind of error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CaptureFaultKind {
    /// The file is empty.
    Empty,
    /// The first bytes are not those of a capture file.
    NotACapture([u8; 4]),
    /// The file is compressed, by this program.
    Compressed(&'static str),
    /// The version of the format is not defined.
    Version {
        /// Major version.
        major: u16,
        /// Minor version.
        minor: u16,
    },
    /// The link type is not Ethernet.
    LinkType(u16),
    /// The file ends in the middle of an item.
    Truncated {
        /// Number of missing bytes.
        need: u64,
        /// Number of available bytes.
        have: u64,
    },
    /// A length is out of range.
    Length {
        /// Name of the item.
        of: &'static str,
        /// The length.
        have: u64,
        /// Minimum.
        least: u64,
        /// Maximum.
        most: u64,
    },
    /// A length is not a multiple of four.
    Odd(u32),
    /// The lengths at the start and at the end of a block differ.
    Ends {
        /// Length at the start.
        first: u32,
        /// Length at the end.
        last: u32,
    },
    /// The byte order of a section is unknown.
    ByteOrder([u8; 4]),
    /// A block refers to an undefined interface.
    NoSuchInterface {
        /// Number of the interface, from 0.
        interface: u32,
        /// Number of defined interfaces.
        interfaces: usize,
    },
    /// An option exceeds its block, or has an invalid length.
    Option {
        /// Code of the option.
        code: u16,
        /// Length in bytes.
        bytes: u16,
    },
    /// The limit with this name is exceeded.
    Limit(&'static str),
}

/// Unusual but usable data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CaptureAnomaly {
    /// A frame is older than the previous one.
    TimeBackwards,
    /// A time is before 1970 or not representable in nanoseconds. The frame then has no time.
    TimeOutOfRange,
    /// A fraction of a second has too many microseconds or nanoseconds. It is added nevertheless.
    FractionTooLarge,
    /// More bytes were captured than the snap length.
    LongerThanSnap,
    /// More bytes were captured than the original length.
    LongerThanOriginal,
}

const ODDITIES: [CaptureAnomaly; 5] = [
    CaptureAnomaly::TimeBackwards,
    CaptureAnomaly::TimeOutOfRange,
    CaptureAnomaly::FractionTooLarge,
    CaptureAnomaly::LongerThanSnap,
    CaptureAnomaly::LongerThanOriginal,
];

/// A warning: number of occurrences, and the first one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Warning {
    /// Kind.
    pub odd: CaptureAnomaly,
    /// Offset of the first occurrence in the file.
    pub first_at: u64,
    /// Number of occurrences.
    pub count: u64,
}

/// Warnings of a file, one per kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Warnings {
    met: [(u64, u64); ODDITIES.len()],
}

impl Fault {
    pub(super) fn new(at: u64, why: CaptureFaultKind) -> Self {
        Fault { at, why }
    }

    /// Adds the offset of the decoded data in the file.
    pub(super) fn shifted(self, offset: u64) -> Self {
        Fault { at: self.at + offset, ..self }
    }
}

impl Warnings {
    #[cold]
    pub(super) fn note(&mut self, odd: CaptureAnomaly, at: u64) {
        let (first_at, count) = &mut self.met[odd as usize];
        if *count == 0 {
            *first_at = at;
        }
        *count += 1;
    }

    /// Returns the warnings.
    pub fn list(&self) -> impl Iterator<Item = Warning> {
        let met = ODDITIES.into_iter().zip(self.met);
        met.filter(|(_, (_, count))| *count > 0).map(|(odd, (first_at, count))| Warning {
            odd,
            first_at,
            count,
        })
    }

    /// Returns the number of occurrences of a kind.
    pub fn count(&self, odd: CaptureAnomaly) -> u64 {
        self.met[odd as usize].1
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {}: ", self.at)?;
        match self.why {
            CaptureFaultKind::Empty => f.write_str("the file is empty (hint: name a capture file)"),
            CaptureFaultKind::NotACapture([a, b, c, d]) => write!(
                f,
                "{a:02x} {b:02x} {c:02x} {d:02x} is not the start of a capture file (hint: \
                 convert it to pcap or pcapng, for example with editcap)"
            ),
            CaptureFaultKind::Compressed(program) => {
                write!(f, "compressed with {program} (hint: decompress it)")
            }
            CaptureFaultKind::Version { major, minor } => {
                write!(
                    f,
                    "unsupported format version {major}.{minor} (hint: convert it with editcap)"
                )
            }
            CaptureFaultKind::LinkType(number) => write!(
                f,
                "unsupported link type {number} ({}), only Ethernet (1) is supported (hint: \
                 capture on an Ethernet interface)",
                link_type::name(number)
            ),
            CaptureFaultKind::Truncated { need, have } => write!(
                f,
                "{need} bytes expected, but the file ends after {have}: truncated or still being \
                 written; the data before this byte are complete"
            ),
            CaptureFaultKind::Length { of, have, least, most } => write!(
                f,
                "the length of {of} is {have}, not {least} to {most}: the file is damaged from \
                 here on"
            ),
            CaptureFaultKind::Odd(bytes) => write!(
                f,
                "a block of {bytes} bytes, not a multiple of 4: the file is damaged from here on"
            ),
            CaptureFaultKind::Ends { first, last } => write!(
                f,
                "a block has the lengths {first} and {last}: the file is damaged from here on"
            ),
            CaptureFaultKind::ByteOrder([a, b, c, d]) => write!(
                f,
                "{a:02x} {b:02x} {c:02x} {d:02x} is not a byte-order magic: the file is damaged \
                 from here on"
            ),
            CaptureFaultKind::NoSuchInterface { interface, interfaces } => write!(
                f,
                "interface {interface} has no description ({interfaces} have one): the file is \
                 damaged or badly assembled"
            ),
            CaptureFaultKind::Option { code, bytes } => write!(
                f,
                "option {code} has an invalid length of {bytes} bytes: the file is damaged from \
                 here on"
            ),
            CaptureFaultKind::Limit(name) => {
                write!(f, "more than {name} allows (hint: split the file with 'editcap -c')")
            }
        }
    }
}

impl std::error::Error for Fault {}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.odd {
            CaptureAnomaly::TimeBackwards => {
                "older than the previous frame (hint: sort the file with reordercap)"
            }
            CaptureAnomaly::TimeOutOfRange => "dated before 1970 or after 2554, treated as undated",
            CaptureAnomaly::FractionTooLarge => "dated with a fraction of more than a second",
            CaptureAnomaly::LongerThanSnap => "longer than the file's snap length",
            CaptureAnomaly::LongerThanOriginal => "longer than its own original length",
        };
        write!(f, "{} frames, the first at byte {}, {what}", self.count, self.first_at)
    }
}

/// Checks a captured length against the limit.
pub(super) fn captured(bytes: u32, at: u64) -> Result<usize, Fault> {
    let most = CAPTURED_BYTES_MAX as u64;
    if u64::from(bytes) > most {
        let why = CaptureFaultKind::Length {
            of: "captured bytes",
            have: u64::from(bytes),
            least: 0,
            most,
        };
        return Err(Fault::new(at, why));
    }
    Ok(bytes as usize)
}
