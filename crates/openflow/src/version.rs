//! Code tables: message types, actions, multipart types and errors, and their codes in each
//! version.
//!
//! Source: `openflow.h` of the OpenFlow Switch Specifications 1.0.0 to 1.5.1.
//!
//! - A row has a variant, its name in text output, and one column for each version. `NO` marks a
//!   version that does not have it.
//! - The codec takes all code numbers from these tables.
//! - Each table has its own submodule. This module has the versions and the macro that declares
//!   tables.

use std::fmt;

/// A protocol version with a column in the tables.
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
    /// All versions with a column.
    pub const ALL: [Version; VERSIONS] =
        [Version::V1_0, Version::V1_1, Version::V1_2, Version::V1_3, Version::V1_4, Version::V1_5];

    /// The versions that the codec supports in full.
    ///
    /// The codec decodes hello and error messages of every version, because negotiation requires
    /// it.
    pub const SUPPORTED: &[Version] = &Version::ALL;

    /// Returns the version with this number in the header, if there is one.
    pub fn from_wire(wire: u8) -> Option<Version> {
        Version::ALL.get(usize::from(wire).checked_sub(1)?).copied()
    }

    /// Returns the version number in the header.
    pub fn wire(self) -> u8 {
        self as u8 + 1
    }

    /// Returns whether the codec supports the version in full.
    pub fn is_spoken(self) -> bool {
        Version::SUPPORTED.contains(&self)
    }

    /// Returns the version's column in a table row.
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
    /// The controller.
    Controller,
    /// The switch.
    Switch,
}

/// Number of version columns.
pub const VERSIONS: usize = 6;

/// Experimenter ID of the Open Networking Foundation, whose extensions add features of later
/// versions to earlier ones.
pub const ONF: u32 = 0x4f4e_4600;

/// Column value: the version does not have this row.
pub(crate) const NO: i32 = -1;

/// Declares an enum whose rows have a name and a code for each version.
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

            /// Returns the name in text output.
            pub fn name(self) -> &'static str {
                Self::NAMES[self as usize]
            }

            /// Returns the code on the wire, if this version has one.
            #[inline]
            pub fn code(self, version: Version) -> Option<$code> {
                let code = Self::CODES[self as usize][version.column()];
                (code != NO).then_some(code as $code)
            }

            /// Returns the row with this code in this version, if there is one.
            ///
            /// The rows are in the order of their 1.0 codes, so the first guess is usually right.
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

mod message;
mod action;
mod field;
mod instruction;
mod asynchronous;
mod multipart;
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
    fn every_code_round_trips() {
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
    fn unknown_codes_are_preserved() {
        let error = ErrorCode::from_wire(Version::V1_0, 9, 7);
        assert_eq!(error, ErrorCode::Other { family: 9, code: 7 });
        assert_eq!(error.to_wire(Version::V1_0), Some((9, 7)));
        assert_eq!(error.to_string(), "9/7");
    }

    #[test]
    fn wire_versions_start_at_one() {
        assert_eq!(Version::from_wire(0), None);
        assert_eq!(Version::from_wire(1), Some(Version::V1_0));
        assert_eq!(Version::from_wire(6), Some(Version::V1_5));
        assert_eq!(Version::from_wire(7), None);
        assert_eq!(Version::V1_3.wire(), 4);
        assert_eq!(Version::V1_3.to_string(), "1.3");
    }
}
