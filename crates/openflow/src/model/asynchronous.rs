//! Which news a controller gets.
//!
//! Source: OpenFlow 1.3.5 section 7.3.10 (`ofp_async_config`) and 1.4.1 section 7.3.10
//! (`ofp_async_config_prop_*`). For each kind of news there are two sets of reasons, one for when
//! the controller is master or equal and one for when it is slave. What a request leaves out (from
//! 1.4 on) stays as it is.

use std::fmt;

use super::action::Experimenter;
use crate::version::AsyncKind;

/// Which news a controller gets, or is to get.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AsyncConfig {
    /// The sets of reasons, each kind at most once for each role.
    pub masks: Vec<AsyncMask>,
    /// What somebody else defines.
    pub experimenter: Vec<AsyncExperimenter>,
}

/// For which reasons one kind of news is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AsyncMask {
    /// Which news.
    pub kind: AsyncKind,
    /// Whether this holds for a slave, or else for a master or equal.
    pub slave: bool,
    /// Bit n for the reason with the number n.
    pub reasons: u32,
}

/// Somebody else's news.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AsyncExperimenter {
    /// Whether this holds for a slave, or else for a master or equal.
    pub slave: bool,
    /// What is asked for.
    pub property: Experimenter,
}

impl AsyncConfig {
    /// The reasons for this kind of news and role, if they are given.
    pub fn get(&self, kind: AsyncKind, slave: bool) -> Option<u32> {
        let wanted = |mask: &&AsyncMask| (mask.kind, mask.slave) == (kind, slave);
        self.masks.iter().find(wanted).map(|mask| mask.reasons)
    }

    /// Gives the reasons for this kind of news and role, instead of earlier ones.
    pub fn set(&mut self, kind: AsyncKind, slave: bool, reasons: u32) {
        self.masks.retain(|mask| (mask.kind, mask.slave) != (kind, slave));
        self.masks.push(AsyncMask { kind, slave, reasons });
    }
}

fn role(slave: bool) -> &'static str {
    if slave { "slave" } else { "master" }
}

impl fmt::Display for AsyncConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for mask in &self.masks {
            write!(f, " {}_{}={:#x}", mask.kind, role(mask.slave), mask.reasons)?;
        }
        for news in &self.experimenter {
            write!(f, " experimenter_{}={}", role(news.slave), news.property)?;
        }
        Ok(())
    }
}
