//! What a control element may do with a component (RFC 5812 section 4.7.4).

use std::fmt;

/// A set of access modes. The 1.0 schema allows a list, though a component has one mode.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Access(u8);

impl Access {
    /// No access at all.
    pub const NONE: Access = Access(0);
    /// Can be read.
    pub const READ_ONLY: Access = Access(1);
    /// Can be read and written.
    pub const READ_WRITE: Access = Access(2);
    /// Can be written and not read.
    pub const WRITE_ONLY: Access = Access(4);
    /// Can be read, and set back to where it began.
    pub const READ_RESET: Access = Access(8);
    /// Writing starts something; the value written does not matter.
    pub const TRIGGER_ONLY: Access = Access(16);

    const NAMES: [(Access, &'static str); 5] = [
        (Access::READ_ONLY, "read-only"),
        (Access::READ_WRITE, "read-write"),
        (Access::WRITE_ONLY, "write-only"),
        (Access::READ_RESET, "read-reset"),
        (Access::TRIGGER_ONLY, "trigger-only"),
    ];

    /// The modes of a list of words as an `access` attribute has them; the word that is none.
    pub fn parse(text: &str) -> Result<Access, &str> {
        let mut access = Access::NONE;
        for word in text.split_whitespace() {
            let known = Access::NAMES.iter().find(|(_, name)| *name == word);
            access.0 |= known.ok_or(word)?.0.0;
        }
        Ok(access)
    }

    /// Whether GET is allowed.
    pub fn is_readable(self) -> bool {
        self.0 & (Access::READ_ONLY.0 | Access::READ_WRITE.0 | Access::READ_RESET.0) != 0
    }

    /// Whether SET to a value of the control element's choice is allowed.
    pub fn is_writable(self) -> bool {
        self.0 & (Access::READ_WRITE.0 | Access::WRITE_ONLY.0 | Access::TRIGGER_ONLY.0) != 0
    }

    /// Whether SET sets it back to where it began, whatever the value.
    pub fn is_resettable(self) -> bool {
        self.0 & Access::READ_RESET.0 != 0
    }

    /// Whether SET only starts something.
    pub fn is_trigger(self) -> bool {
        self.0 & Access::TRIGGER_ONLY.0 != 0
    }

    /// What the property "accessibility" says of it: 0 none, 1 read, 2 write, 3 both
    /// (RFC 5812 section 4.8.1).
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
    fn words_are_modes_and_back() {
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
