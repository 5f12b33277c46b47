//! Object identifiers: numbers from the root of a tree (X.660), written with dots.
//!
//! Invariant: an identifier has 2 to [`ARCS_MAX`] numbers, and BER can encode the first two.

use std::fmt;
use std::str::FromStr;

use rasn::types::ObjectIdentifier;

/// Maximum number of numbers in an identifier (RFC 2578, section 3.5).
pub const ARCS_MAX: usize = 128;

/// The name of an object or of a subtree. Names are ordered as in a walk.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Oid(Vec<u32>);

/// Parse error: the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OidParseError(pub &'static str);

impl Oid {
    /// Creates an identifier; `None` if the numbers are invalid.
    pub fn new(arcs: &[u32]) -> Option<Oid> {
        let is_sayable = match arcs {
            [first, second, ..] => *first < 2 && *second < 40 || *first == 2 && *second < 1 << 31,
            _ => false,
        };
        (is_sayable && arcs.len() <= ARCS_MAX).then(|| Oid(arcs.to_vec()))
    }

    /// Returns the name of an instance or subtree below this one; `None` if it would be too long.
    pub fn child(&self, arcs: &[u32]) -> Option<Oid> {
        Oid::new(&[&self.0, arcs].concat())
    }

    /// Returns the numbers.
    pub fn arcs(&self) -> &[u32] {
        &self.0
    }

    /// Returns the numbers after `root`, if this name is below or equal to it.
    pub fn below(&self, root: &Oid) -> Option<&[u32]> {
        self.0.strip_prefix(&root.0[..])
    }

    pub(crate) fn wire(&self) -> ObjectIdentifier {
        ObjectIdentifier::new_unchecked(self.0.clone().into())
    }

    pub(crate) fn of_wire(name: &ObjectIdentifier) -> Option<Oid> {
        Oid::new(name.as_ref())
    }
}

impl FromStr for Oid {
    type Err = OidParseError;

    fn from_str(text: &str) -> Result<Oid, OidParseError> {
        let text = text.strip_prefix('.').unwrap_or(text);
        let arc = |text: &str| match text.bytes().all(|byte| byte.is_ascii_digit()) {
            true => text.parse::<u32>().ok(),
            false => None,
        };
        let arcs: Option<Vec<u32>> = text.split('.').map(arc).collect();
        let arcs = arcs.ok_or(OidParseError("not numbers below 4294967296 separated by dots"))?;
        Oid::new(&arcs).ok_or(OidParseError("not 2 to 128 numbers starting with 0 to 2"))
    }
}

impl fmt::Display for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, arc) in self.0.iter().enumerate() {
            if place > 0 {
                f.write_str(".")?;
            }
            write!(f, "{arc}")?;
        }
        Ok(())
    }
}

impl fmt::Display for OidParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for OidParseError {}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn object_identifiers_are_parsed_formatted_and_ordered() {
        let name: Oid = ".1.3.6.1.2.1.31.1.1.1.6.2".parse().unwrap();
        assert_eq!(name.to_string(), "1.3.6.1.2.1.31.1.1.1.6.2");
        let root: Oid = "1.3.6.1.2.1.31".parse().unwrap();
        assert_eq!(name.below(&root), Some(&[1, 1, 1, 6, 2][..]));
        assert_eq!(root.below(&name), None);
        assert!(root < name && name < "1.3.6.1.2.1.32".parse().unwrap());
        assert_eq!(root.child(&[1]).unwrap().to_string(), "1.3.6.1.2.1.31.1");
        for wrong in ["", "1", "1.", "1..3", "a.b", "3.1", "1.40", "1.3.4294967296", "1.+3", "2.-1"]
        {
            assert!(wrong.parse::<Oid>().is_err(), "{wrong}");
        }
        assert!(root.child(&[0; ARCS_MAX]).is_none());
    }
}
