//! Which part a controller plays, and how controllers do.
//!
//! Source: OpenFlow 1.3.5 section 7.3.9 (`ofp_role_request`), 1.4.1 section 7.4.4
//! (`ofp_role_status`), 1.5.1 section 7.4.8 (`ofp_controller_status`).

use std::fmt;

use super::action::Experimenter;
use super::text::{Text, list};

/// Generation of which the switch does not know yet.
pub const GENERATION_UNKNOWN: u64 = u64::MAX;

/// Number of a controller that has none.
pub const CONTROLLER_NONE: u16 = 0;

/// Which part a controller plays (`ofp_controller_role`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Role {
    /// The one that it has.
    NoChange,
    /// May do all and hears all, as others may.
    #[default]
    Equal,
    /// May do all and hears all, as the only one.
    Master,
    /// May look, and hears about ports.
    Slave,
}

/// Asks for a role, or tells of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RoleRequest {
    /// Which.
    pub role: Role,
    /// The controller's number among those of the switch (1.5), or [`CONTROLLER_NONE`].
    pub short_id: u16,
    /// Number of the election from which the role comes, or [`GENERATION_UNKNOWN`] in a reply.
    pub generation: u64,
}

/// Why a role has changed (`ofp_controller_role_reason`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RoleStatusReason {
    /// Another controller has asked to be the master.
    MasterRequest,
    /// The switch has been told so.
    Config,
    /// Somebody else's reason.
    Experimenter,
}

/// The controller's role has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleStatus {
    /// Its new role.
    pub role: Role,
    /// Why.
    pub reason: RoleStatusReason,
    /// Number of the last election.
    pub generation: u64,
    /// What somebody else adds.
    pub properties: Vec<Experimenter>,
}

/// Why a controller's status is told (`ofp_controller_status_reason`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ControllerStatusReason {
    /// Somebody asked.
    Request,
    /// The channel came up or went down.
    ChannelStatus,
    /// Its role changed.
    Role,
    /// It is new.
    Added,
    /// It is gone.
    Removed,
    /// Its number changed.
    ShortId,
    /// What somebody else says of it changed.
    Experimenter,
}

/// How a controller does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControllerStatus {
    /// Its number, or [`CONTROLLER_NONE`].
    pub short_id: u16,
    /// Its role.
    pub role: Role,
    /// Why this is told.
    pub reason: ControllerStatusReason,
    /// Whether its channel is up.
    pub is_up: bool,
    /// What else is known.
    pub properties: Vec<ControllerProperty>,
}

/// What is known of a controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ControllerProperty {
    /// Where its channel leads to.
    Uri(Text),
    /// What somebody else says.
    Experimenter(Experimenter),
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Role::NoChange => "no_change",
            Role::Equal => "equal",
            Role::Master => "master",
            Role::Slave => "slave",
        })
    }
}

impl fmt::Display for RoleRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} generation={:#x}", self.role, self.generation)?;
        match self.short_id {
            CONTROLLER_NONE => Ok(()),
            id => write!(f, " short_id={id}"),
        }
    }
}

impl fmt::Display for RoleStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = match self.reason {
            RoleStatusReason::MasterRequest => "master_request",
            RoleStatusReason::Config => "config",
            RoleStatusReason::Experimenter => "experimenter",
        };
        write!(f, "{reason} role={} generation={:#x}", self.role, self.generation)?;
        f.write_str(" properties=")?;
        list(f, &self.properties)
    }
}

impl fmt::Display for ControllerStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.reason {
            ControllerStatusReason::Request => "request",
            ControllerStatusReason::ChannelStatus => "channel_status",
            ControllerStatusReason::Role => "role",
            ControllerStatusReason::Added => "added",
            ControllerStatusReason::Removed => "removed",
            ControllerStatusReason::ShortId => "short_id",
            ControllerStatusReason::Experimenter => "experimenter",
        })?;
        let channel = if self.is_up { "up" } else { "down" };
        write!(f, " short_id={} role={} channel={channel}", self.short_id, self.role)?;
        f.write_str(" properties=")?;
        list(f, &self.properties)
    }
}

impl fmt::Display for ControllerProperty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ControllerProperty::Uri(uri) => write!(f, "uri:{uri:?}"),
            ControllerProperty::Experimenter(body) => write!(f, "experimenter:{body}"),
        }
    }
}
