//! Sets of action types and of instruction types.
//!
//! Source: the bitmaps of OpenFlow 1.0.0 section 5.3.1 (`ofp_switch_features`), 1.1.0 and 1.2
//! section A.3.5.3 (`ofp_table_stats`) and 1.2 section A.3.5.10 (`ofp_group_features_stats`).
//!
//! Bit n is for the type with code n. Experimenter types have no bit.

use std::fmt;

use crate::version::{ActionKind, InstructionKind, Version};

/// Declares a set of the rows of a code table.
macro_rules! kinds {
    ($(#[$doc:meta])* $name:ident of $kind:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
        pub struct $name(u64);

        impl $name {
            /// The empty set.
            pub const NONE: $name = $name(0);

            /// Returns all types with a bit in this version.
            pub fn of(version: Version) -> $name {
                let has_bit = |kind: &$kind| kind.code(version).is_some_and(|code| code < 32);
                $kind::ALL.iter().copied().filter(has_bit).collect()
            }

            /// Returns this set with `kind` added.
            #[must_use]
            pub fn with(self, kind: $kind) -> $name {
                $name(self.0 | 1 << kind as u64)
            }

            /// Returns whether the set contains `kind`.
            pub fn has(self, kind: $kind) -> bool {
                self.0 & 1 << kind as u64 != 0
            }

            /// Returns whether the set is empty.
            pub fn is_empty(self) -> bool {
                self.0 == 0
            }

            /// Returns the types in the set, in the order of the code table.
            pub fn iter(self) -> impl Iterator<Item = $kind> {
                $kind::ALL.iter().copied().filter(move |kind| self.has(*kind))
            }

            /// Returns the bitmap on the wire, or a type that has no bit in this version.
            pub(crate) fn to_wire(self, version: Version) -> Result<u32, $kind> {
                self.iter().try_fold(0, |wire, kind| match kind.code(version) {
                    Some(code @ 0..32) => Ok(wire | 1 << code),
                    _ => Err(kind),
                })
            }

            /// Returns the types of a bitmap on the wire; ignores unknown bits.
            pub(crate) fn from_wire(version: Version, wire: u32) -> $name {
                (0..32)
                    .filter(|code| wire & 1 << code != 0)
                    .filter_map(|code| $kind::from_code(version, code))
                    .collect()
            }
        }

        impl FromIterator<$kind> for $name {
            fn from_iter<I: IntoIterator<Item = $kind>>(kinds: I) -> $name {
                kinds.into_iter().fold($name::NONE, $name::with)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let mut bar = "";
                for kind in self.iter() {
                    write!(f, "{bar}{kind}")?;
                    bar = "|";
                }
                if self.is_empty() { f.write_str("none") } else { Ok(()) }
            }
        }
    };
}

kinds! {
    /// A set of action types.
    ActionKinds of ActionKind
}

kinds! {
    /// A set of instruction types.
    InstructionKinds of InstructionKind
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_the_bit_mask_of_its_codes() {
        let all = ActionKinds::of(Version::V1_0);
        assert_eq!(all.to_wire(Version::V1_0), Ok(0xfff));
        assert_eq!(ActionKinds::from_wire(Version::V1_0, 0xffff_ffff), all);
        let pair: InstructionKinds =
            [InstructionKind::ClearActions, InstructionKind::GotoTable].into_iter().collect();
        assert_eq!(pair.to_wire(Version::V1_1), Ok(0b10_0010));
        assert_eq!(pair.to_string(), "goto_table|clear_actions");
        let meter = InstructionKinds::NONE.with(InstructionKind::Meter);
        assert_eq!(meter.to_wire(Version::V1_2), Err(InstructionKind::Meter));
        assert_eq!(InstructionKinds::NONE.to_string(), "none");
    }
}
