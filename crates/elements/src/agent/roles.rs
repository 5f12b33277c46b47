//! Roles of controllers: equal, master or slave.
//!
//! Source: OpenFlow switch specification 1.2, section 6.3.4; 1.3.5, sections 6.3.5 and 7.3.9.
//! Master elections have generation IDs that increase. A role request with an older generation ID
//! than the last one is stale.
//!
//! Invariant: at most one connection is master.

use openflow::model::role::{GENERATION_UNKNOWN, Role};
use openflow::version::ErrorCode;

/// The last generation ID that the switch received.
#[derive(Debug, Default)]
pub struct Roles {
    generation: Option<u64>,
}

impl Roles {
    /// Checks and stores the generation ID of a role request. IDs wrap: of two IDs, the one that is
    /// less than half the range ahead is newer.
    pub fn admit(&mut self, role: Role, generation: u64) -> Result<(), ErrorCode> {
        if !matches!(role, Role::Master | Role::Slave) {
            return Ok(());
        }
        let is_stale = |known: u64| (generation.wrapping_sub(known) as i64) < 0;
        if self.generation.is_some_and(is_stale) {
            return Err(ErrorCode::RoleRequestStale);
        }
        self.generation = Some(generation);
        Ok(())
    }

    /// Returns the last generation ID for a reply.
    pub fn generation(&self) -> u64 {
        self.generation.unwrap_or(GENERATION_UNKNOWN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_generation_is_stale_also_when_numbers_wrap() {
        let mut roles = Roles::default();
        assert_eq!(roles.generation(), GENERATION_UNKNOWN);
        assert_eq!(roles.admit(Role::Equal, 7), Ok(()));
        assert_eq!(roles.generation(), GENERATION_UNKNOWN, "an equal role has no generation");
        assert_eq!(roles.admit(Role::Master, u64::MAX - 1), Ok(()));
        assert_eq!(roles.admit(Role::Slave, u64::MAX - 2), Err(ErrorCode::RoleRequestStale));
        assert_eq!(roles.admit(Role::Slave, u64::MAX - 1), Ok(()));
        assert_eq!(roles.admit(Role::Master, 3), Ok(()));
        assert_eq!(roles.admit(Role::Master, u64::MAX), Err(ErrorCode::RoleRequestStale));
        assert_eq!(roles.generation(), 3);
    }
}
