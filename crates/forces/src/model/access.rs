//! Access modes of components (RFC 5812 section 4.7.4).

use std::fmt;

/// A set of access modes. The 1.0 schema allows a list, though a component has one mode.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Access(u8);

impl Access {
    /// No access.
    pub const NONE: Access = Access(0);
    /// Readable.
    pub const READ_ONLY: Access = Access(1);
    /// Readable and writable.
    pub const READ_WRITE: Access = Access(2);
    /// Writable only.
    pub const WRITE_ONLY: Access = Access(4);
    /// Readable, and resettable to its initial value.
    pub const READ_RESET: Access = Access(8);
    /// Writing triggers an action; the value does not matter.
    pub const TRIGGER_ONLY: Access = Access(16);

    const NAMES: [(Access, &'static str); 5] = [
        (Access::READ_ONLY, "read-only"),
        (Access::READ_WRITE, "read-write"),
        (Access::WRITE_ONLY, "write-only"),
        (Access::READ_RESET, "read-reset"),
        (Access::TRIGGER_ONLY, "trigger-only"),
    ];

    /// Parses the words of an `access` attribute, or returns the unknown word.
    pub fn parse(text: &str) -> Result<Access, &str> {
        let mut access = Access::NONE;
        for word in text.split_whitespace() {
            let known = Access::NAMES.iter().find(|(_, name)| *name == word);
            access.0 |= known.ok_or(word)?.0.0;
        }
        Ok(access)
    }

    /// Returns whether GET is allowed.
    pub fn is_readable(self) -> bool {
        self.0 & (Access::READ_ONLY.0 | Access::READ_WRITE.0 | Access::READ_RESET.0) != 0
    }

    /// Returns whether SET to any value is allowed.
    pub fn is_writable(self) -> bool {
        self.0 & (Access::READ_WRITE.0 | Access::WRITE_ONLY.0 | Access::TRIGGER_ONLY.0) != 0
    }

    /// Returns whether SET resets it to its initial value and ignores the value in the message.
    pub fn is_resettable(self) -> bool {
        self.0 & Access::READ_RESET.0 != 0
    }

    /// Returns the value of the accessibility property: 0 none, 1 read, 2 write, 3 both (RFC 5812
    /// section 4.8.1).
    pub fn property(self) -> u8 {
        let writes = self.is_writable() || self.is_resettable();
        u8::from(self.is_readable()) | u8::from(writes) << 1
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut first = true;
        for (mode, name) in Access::NAMES {
            if self.0 & mode.0 != 0 {
                write!(f, "{}{name}", if first { "" } else { " " })?;
                first = false;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Access({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn access_modes_round_trip_as_text() {
        for (mode, name) in Access::NAMES {
            assert_eq!(Access::parse(name), Ok(mode));
            assert_eq!(mode.to_string(), name);
        }
        assert_eq!(Access::parse("read-only write-only").map(|a| a.property()), Ok(3));
        assert_eq!(Access::parse("read-write sometimes"), Err("sometimes"));
        assert_eq!(Access::READ_RESET.property(), 3);
        assert!(!Access::READ_RESET.is_writable());
    }
}
