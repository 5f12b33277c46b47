//! The one table: which message, action, statistics type and error exists in which version, and
//! with which code.
//!
//! Source: `openflow.h` of the OpenFlow Switch Specifications 1.0.0 to 1.5.1. A row is a kind, its
//! name in text forms, and one column for each version; `NO` means that this version does not
//! have it. The codec asks these tables and holds no code numbers of its own. Each table has a
//! file; here are the versions and what the tables are made with.

use std::fmt;

/// A version of the protocol that the table has a column for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// 1.0, on the wire 0x01.
    V1_0,
    /// 1.1, on the wire 0x02.
    V1_1,
    /// 1.2, on the wire 0x03.
    V1_2,
    /// 1.3, on the wire 0x04.
    V1_3,
    /// 1.4, on the wire 0x05.
    V1_4,
    /// 1.5, on the wire 0x06.
    V1_5,
}

impl Version {
    /// Every version that has a column.
    pub const ALL: [Version; VERSIONS] =
        [Version::V1_0, Version::V1_1, Version::V1_2, Version::V1_3, Version::V1_4, Version::V1_5];

    /// The versions that the codec encodes and decodes in full. Hello and error messages are
    /// understood in every version, because negotiation needs them.
    pub const SPOKEN: &[Version] = &Version::ALL;

    /// The version with this number in the header, if there is one.
    pub fn from_wire(wire: u8) -> Option<Version> {
        Version::ALL.get(usize::from(wire).checked_sub(1)?).copied()
    }

    /// The number in the header.
    pub fn wire(self) -> u8 {
        self as u8 + 1
    }

    /// Whether the codec speaks it in full.
    pub fn is_spoken(self) -> bool {
        Version::SPOKEN.contains(&self)
    }

    /// The version's column in a row of the table.
    pub(crate) fn column(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "1.{}", self.column())
    }
}

/// An end of a control channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum End {
    /// The one that decides.
    Controller,
    /// The one that forwards.
    Switch,
}

/// Number of version columns.
pub const VERSIONS: usize = 6;

/// The Open Networking Foundation as an experimenter: by its extensions a version has what a later
/// one brought.
pub const ONF: u32 = 0x4f4e_4600;

/// In a column: this version does not have it.
pub(crate) const NO: i32 = -1;

/// Declares an enum whose rows carry a name and a code for each version.
macro_rules! table {
    (
        $(#[$doc:meta])*
        $name:ident: $code:ty {
            $( $(#[$row_doc:meta])* $row:ident $text:literal $columns:expr; )*
        }
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $( $(#[$row_doc])* $row, )*
        }

        impl $name {
            /// Every row, in the order of the table.
            pub const ALL: &[$name] = &[$( $name::$row, )*];

            const CODES: &[[i32; VERSIONS]] = &[$( $columns, )*];

            const NAMES: &[&'static str] = &[$( $text, )*];

            /// The name in text forms.
            pub fn name(self) -> &'static str {
                Self::NAMES[self as usize]
            }

            /// The code on the wire, if this version has it.
            #[inline]
            pub fn code(self, version: Version) -> Option<$code> {
                let code = Self::CODES[self as usize][version.column()];
                (code != NO).then_some(code as $code)
            }

            /// What this code means in this version, if anything. Rows stand in the order of their
            /// 1.0 codes, so that the row at that place is mostly the one.
            #[inline]
            pub fn from_code(version: Version, code: $code) -> Option<$name> {
                let has_code = |row: &[i32; VERSIONS]| row[version.column()] == i32::from(code);
                let guess = usize::from(code);
                if Self::CODES.get(guess).is_some_and(has_code) {
                    return Some(Self::ALL[guess]);
                }
                Self::CODES.iter().position(has_code).map(|place| Self::ALL[place])
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

/// Messages.
mod message;
/// Actions.
mod action;
/// Fields.
mod field;
/// Instructions.
mod instruction;
/// News that controllers choose from.
mod asynchronous;
/// Statistics and descriptions.
mod multipart;
/// Errors.
mod error;

pub use action::ActionKind;
pub use asynchronous::AsyncKind;
pub use error::{ErrorCode, ErrorType};
pub(crate) use field::{oxm_bytes, oxm_field, oxm_number, oxm_since};
pub use instruction::InstructionKind;
pub use message::MessageKind;
pub use multipart::MultipartKind;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_means_its_row_again() {
        for version in Version::ALL {
            for &kind in MessageKind::ALL {
                if let Some(code) = kind.code(version) {
                    assert_eq!(MessageKind::from_code(version, code), Some(kind));
                }
            }
            for &kind in ActionKind::ALL {
                if let Some(code) = kind.code(version) {
                    assert_eq!(ActionKind::from_code(version, code), Some(kind));
                }
            }
            for &error in ErrorCode::ALL {
                if let Some((family, code)) = error.to_wire(version) {
                    assert_eq!(ErrorCode::from_wire(version, family, code), error);
                }
            }
        }
    }

    #[test]
    fn each_version_has_its_number_of_messages() {
        let codes = MessageKind::of(Version::V1_0).map(|kind| kind.code(Version::V1_0));
        assert!(codes.eq((0..22).map(Some)));
        for (version, messages) in Version::ALL.into_iter().zip([22, 24, 26, 30, 33, 34]) {
            assert_eq!(MessageKind::of(version).count(), messages, "{version}");
        }
        assert_eq!(ErrorCode::FlowModTableFull.to_wire(Version::V1_0), Some((3, 0)));
        assert_eq!(ErrorCode::FlowModTableFull.to_wire(Version::V1_3), Some((5, 1)));
    }

    #[test]
    fn unknown_pairs_are_kept() {
        let error = ErrorCode::from_wire(Version::V1_0, 9, 7);
        assert_eq!(error, ErrorCode::Other { family: 9, code: 7 });
        assert_eq!(error.to_wire(Version::V1_0), Some((9, 7)));
        assert_eq!(error.to_string(), "9/7");
    }

    #[test]
    fn wire_numbers_start_at_one() {
        assert_eq!(Version::from_wire(0), None);
        assert_eq!(Version::from_wire(1), Some(Version::V1_0));
        assert_eq!(Version::from_wire(6), Some(Version::V1_5));
        assert_eq!(Version::from_wire(7), None);
        assert_eq!(Version::V1_3.wire(), 4);
        assert_eq!(Version::V1_3.to_string(), "1.3");
    }
}
