//! Sets of named bits, with the position of each bit in each version.
//!
//! - In memory a bit has the same position for all versions. The rows of a set list the wire
//!   positions, in the columns of `crate::version`.
//! - Encoding fails for a bit that the version does not have.
//! - Decoding ignores wire bits without a row.

/// Declares a set of bits.
macro_rules! bits {
    (
        $(#[$doc:meta])*
        $name:ident {
            $( $(#[$row_doc:meta])* $row:ident $text:literal $columns:expr; )*
        }
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
        pub struct $name(u32);

        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        #[allow(dead_code)]
        const _: () = {
            enum Place { $( $row, )* }

            impl $name {
                $( $(#[$row_doc])* pub const $row: $name = $name(1 << Place::$row as u32); )*
            }
        };

        impl $name {
            /// The empty set.
            pub const NONE: $name = $name(0);

            /// All bits, of any version.
            pub const ALL: $name = $name(0 $( | $name::$row.0 )*);

            const ROWS: &[(&'static str, [i32; crate::version::VERSIONS])] =
                &[$( ($text, $columns), )*];

            /// Returns the bit with this name in text output.
            pub fn named(name: &str) -> Option<$name> {
                let place = $name::ROWS.iter().position(|(text, _)| *text == name)?;
                Some($name(1 << place))
            }

            /// Returns the names of the bits in the set.
            pub fn names(self) -> Vec<&'static str> {
                let rows = $name::ROWS.iter().enumerate();
                rows.filter(|(place, _)| self.0 & 1 << place != 0).map(|(_, (name, _))| *name).collect()
            }

            /// Returns whether the set contains every bit of `other`.
            pub fn contains(self, other: $name) -> bool {
                self.0 & other.0 == other.0
            }

            /// Returns whether the set is empty.
            pub fn is_empty(self) -> bool {
                self.0 == 0
            }

            /// Returns the bits that are not in `other`.
            #[must_use]
            pub fn without(self, other: $name) -> $name {
                $name(self.0 & !other.0)
            }

            /// Returns the bits that are in both sets.
            #[must_use]
            pub fn and(self, other: $name) -> $name {
                $name(self.0 & other.0)
            }

            /// Returns the wire value, or the name of a bit that this version does not have.
            pub(crate) fn to_wire(
                self,
                version: crate::version::Version,
            ) -> Result<u32, &'static str> {
                let mut wire = 0;
                for (place, (name, columns)) in $name::ROWS.iter().enumerate() {
                    if self.0 & 1 << place != 0 {
                        match columns[version.column()] {
                            crate::version::NO => return Err(name),
                            bit => wire |= 1 << bit,
                        }
                    }
                }
                Ok(wire)
            }

            /// Returns the bits of a wire value, and its unknown bits.
            pub(crate) fn from_wire(version: crate::version::Version, wire: u32) -> ($name, u32) {
                let (mut bits, mut unknown) = (0, wire);
                for (place, (_, columns)) in $name::ROWS.iter().enumerate() {
                    let bit = columns[version.column()];
                    if bit != crate::version::NO && wire & 1 << bit != 0 {
                        bits |= 1 << place;
                        unknown &= !(1 << bit);
                    }
                }
                ($name(bits), unknown)
            }
        }

        impl std::ops::BitOr for $name {
            type Output = $name;
            fn bitor(self, other: $name) -> $name {
                $name(self.0 | other.0)
            }
        }

        impl std::ops::BitOrAssign for $name {
            fn bitor_assign(&mut self, other: $name) {
                self.0 |= other.0;
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let mut bar = "";
                for (place, (name, _)) in $name::ROWS.iter().enumerate() {
                    if self.0 & 1 << place != 0 {
                        write!(f, "{bar}{name}")?;
                        bar = "|";
                    }
                }
                if self.is_empty() { f.write_str("none") } else { Ok(()) }
            }
        }
    };
}

pub(crate) use bits;

#[cfg(test)]
mod tests {
    use crate::model::{Capabilities, FlowModFlags, PortFeatures};
    use crate::version::Version;

    #[test]
    fn a_bit_is_translated_between_versions() {
        let features = PortFeatures::COPPER | PortFeatures::SPEED_1G_FULL;
        assert_eq!(features.to_wire(Version::V1_0), Ok(1 << 7 | 1 << 5));
        assert_eq!(features.to_wire(Version::V1_3), Ok(1 << 11 | 1 << 5));
        let (back, unknown) = PortFeatures::from_wire(Version::V1_3, 1 << 11 | 1 << 5 | 1 << 30);
        assert_eq!((back, unknown), (features, 1 << 30));
    }

    #[test]
    fn a_bit_that_a_version_lacks_is_named() {
        assert_eq!(FlowModFlags::EMERGENCY.to_wire(Version::V1_3), Err("emergency"));
        assert_eq!(PortFeatures::SPEED_40G_FULL.to_wire(Version::V1_0), Err("40g_full"));
    }

    #[test]
    fn sets_print_the_names_of_their_bits() {
        let set = Capabilities::FLOW_STATS | Capabilities::STP;
        assert_eq!(set.to_string(), "flow_stats|stp");
        assert!(set.contains(Capabilities::STP) && !set.contains(Capabilities::ALL));
        assert_eq!(Capabilities::NONE.to_string(), "none");
        assert_eq!(set.without(Capabilities::STP), Capabilities::FLOW_STATS);
        assert_eq!(set.names(), ["flow_stats", "stp"]);
        assert_eq!(Capabilities::named("stp"), Some(Capabilities::STP));
        assert_eq!(Capabilities::named("none"), None);
    }
}
