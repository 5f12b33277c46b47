//! Asynchronous configuration of a controller: the message types that it receives, by role and
//! reason.
//!
//! Source: OpenFlow switch specification 1.3.5, section 7.3.10; 1.4.1, section 7.3.10.
//!
//! Defaults:
//! - A master or equal receives all messages except two kinds. Frames with an invalid TTL are
//!   excluded, as in Open vSwitch; 1.1 and 1.2 have a setting for them. Request-forward and
//!   controller-status messages are excluded too.
//! - A slave receives port-status and role-status messages only.

use openflow::model::asynchronous::{AsyncConfig, AsyncMask};
use openflow::model::role::Role;
use openflow::version::{AsyncKind, ErrorCode, Version};

/// Bit of the packet-in reason for an invalid TTL.
const INVALID_TTL: u32 = 1 << 2;

/// Sets of reasons by message type, for masters and equals and for slaves.
#[derive(Debug, Clone)]
pub struct Interests {
    version: Version,
    reasons: [[u32; AsyncKind::ALL.len()]; 2],
}

impl Interests {
    /// Creates the default configuration for a controller of this version.
    pub fn new(version: Version) -> Self {
        let mut interests = Interests { version, reasons: Default::default() };
        for &kind in AsyncKind::ALL {
            let all = kind.reasons(version);
            let (master, slave) = match kind {
                AsyncKind::PacketIn => (all & !INVALID_TTL, 0),
                AsyncKind::FlowRemoved | AsyncKind::TableStatus | AsyncKind::FlowStats => (all, 0),
                AsyncKind::RequestForward | AsyncKind::ControllerStatus => (0, 0),
                AsyncKind::PortStatus | AsyncKind::RoleStatus => (all, all),
            };
            interests.reasons[0][kind as usize] = master;
            interests.reasons[1][kind as usize] = slave;
        }
        interests
    }

    /// Whether a controller in this role receives messages of this type for this reason.
    pub fn wants(&self, role: Role, kind: AsyncKind, reason: u32) -> bool {
        let slave = usize::from(role == Role::Slave);
        self.reasons[slave][kind as usize] & 1 << reason != 0
    }

    /// Enables or disables packet-ins for an invalid TTL, as in 1.1 and 1.2.
    pub fn set_invalid_ttl(&mut self, wanted: bool) {
        let reasons = &mut self.reasons[0][AsyncKind::PacketIn as usize];
        *reasons = *reasons & !INVALID_TTL | if wanted { INVALID_TTL } else { 0 };
    }

    /// Whether the controller receives packet-ins for an invalid TTL.
    pub fn invalid_ttl(&self) -> bool {
        self.wants(Role::Equal, AsyncKind::PacketIn, 2)
    }

    /// Applies a requested configuration, completely or not at all.
    pub fn set(&mut self, chosen: &AsyncConfig) -> Result<(), ErrorCode> {
        if !chosen.experimenter.is_empty() {
            return Err(ErrorCode::AsyncConfigUnsupported);
        }
        let known = |mask: &AsyncMask| mask.reasons & !mask.kind.reasons(self.version) == 0;
        // Before 1.4 there is no error for unknown reasons; such messages never occur.
        if self.version >= Version::V1_4 && !chosen.masks.iter().all(known) {
            return Err(ErrorCode::AsyncConfigInvalid);
        }
        for mask in &chosen.masks {
            let reasons = mask.reasons & mask.kind.reasons(self.version);
            self.reasons[usize::from(mask.slave)][mask.kind as usize] = reasons;
        }
        Ok(())
    }

    /// Returns the configuration in the version's terms.
    pub fn told(&self) -> AsyncConfig {
        let mut config = AsyncConfig::default();
        for &kind in AsyncKind::ALL {
            if kind.code(self.version).is_some() {
                for slave in [true, false] {
                    config.set(kind, slave, self.reasons[usize::from(slave)][kind as usize]);
                }
            }
        }
        config
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_follow_the_role_and_settings_are_reported() {
        let mut interests = Interests::new(Version::V1_3);
        assert!(interests.wants(Role::Master, AsyncKind::PacketIn, 0));
        assert!(!interests.wants(Role::Equal, AsyncKind::PacketIn, 2), "invalid TTL");
        assert!(!interests.wants(Role::Slave, AsyncKind::FlowRemoved, 0));
        assert!(interests.wants(Role::Slave, AsyncKind::PortStatus, 1));
        let mut chosen = AsyncConfig::default();
        chosen.set(AsyncKind::PacketIn, false, 0b100);
        chosen.set(AsyncKind::FlowRemoved, true, 0xffff_ffff);
        interests.set(&chosen).unwrap();
        assert!(interests.invalid_ttl() && !interests.wants(Role::Equal, AsyncKind::PacketIn, 1));
        let reported = interests.told();
        assert_eq!(reported.get(AsyncKind::PacketIn, false), Some(0b100));
        assert_eq!(reported.get(AsyncKind::FlowRemoved, true), Some(0b1111));
        assert_eq!(reported.masks.len(), 6, "1.3 has three kinds of asynchronous messages");
    }

    #[test]
    fn undefined_reasons_are_rejected_in_versions_with_an_error_for_them() {
        let mut interests = Interests::new(Version::V1_4);
        let mut chosen = AsyncConfig::default();
        chosen.set(AsyncKind::PacketIn, false, 0);
        chosen.set(AsyncKind::TableStatus, false, 1);
        assert_eq!(interests.set(&chosen), Err(ErrorCode::AsyncConfigInvalid));
        assert!(interests.wants(Role::Equal, AsyncKind::PacketIn, 0), "no setting was changed");
    }
}
