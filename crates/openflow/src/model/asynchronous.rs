//! Asynchronous message configuration of a controller.
//!
//! Source: OpenFlow 1.3.5 section 7.3.10 (`ofp_async_config`) and 1.4.1 section 7.3.10
//! (`ofp_async_config_prop_*`).
//!
//! - Each asynchronous message type has two sets of reasons: one for a master or equal controller,
//!   one for a slave.
//! - From 1.4 on, a request leaves sets that it does not contain unchanged.

use std::fmt;

use super::action::Experimenter;
use crate::version::AsyncKind;

/// Asynchronous message configuration, requested or in effect.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AsyncConfig {
    /// Sets of reasons; each message type at most once for each role.
    pub masks: Vec<AsyncMask>,
    /// Experimenter message types.
    pub experimenter: Vec<AsyncExperimenter>,
}

/// The reasons for which the switch sends one asynchronous message type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AsyncMask {
    /// The message type.
    pub kind: AsyncKind,
    /// Whether the set is for a slave; otherwise it is for a master or equal.
    pub slave: bool,
    /// Bit n is for reason n.
    pub reasons: u32,
}

/// An experimenter's asynchronous message type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AsyncExperimenter {
    /// Whether the property is for a slave; otherwise it is for a master or equal.
    pub slave: bool,
    /// The experimenter property.
    pub property: Experimenter,
}

impl AsyncConfig {
    /// Returns the reasons for this message type and role, if they are set.
    pub fn get(&self, kind: AsyncKind, slave: bool) -> Option<u32> {
        let wanted = |mask: &&AsyncMask| (mask.kind, mask.slave) == (kind, slave);
        self.masks.iter().find(wanted).map(|mask| mask.reasons)
    }

    /// Sets the reasons for this message type and role; replaces earlier ones.
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
