//! Controller roles and controller status.
//!
//! Source: OpenFlow 1.3.5 section 7.3.9 (`ofp_role_request`), 1.4.1 section 7.4.4
//! (`ofp_role_status`), 1.5.1 section 7.4.8 (`ofp_controller_status`).

use std::fmt;

use super::action::Experimenter;
use super::text::{Text, list};

/// Generation ID while the switch does not have one yet.
pub const GENERATION_UNKNOWN: u64 = u64::MAX;

/// Short ID of a controller without one.
pub const CONTROLLER_NONE: u16 = 0;

/// Controller role (`ofp_controller_role`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Role {
    /// Keep the current role.
    NoChange,
    /// Full access and all asynchronous messages, like other equal controllers.
    #[default]
    Equal,
    /// Full access and all asynchronous messages; at most one controller has this role.
    Master,
    /// Read-only access; receives port-status messages.
    Slave,
}

/// Requests or reports a role.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RoleRequest {
    /// The role.
    pub role: Role,
    /// The controller's short ID (1.5), or [`CONTROLLER_NONE`].
    pub short_id: u16,
    /// Generation ID of the master election, or [`GENERATION_UNKNOWN`] in a reply.
    pub generation: u64,
}

/// Why a role changed (`ofp_controller_role_reason`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RoleStatusReason {
    /// Another controller requested the master role.
    MasterRequest,
    /// The configuration of the switch changed.
    Config,
    /// An experimenter reason.
    Experimenter,
}

/// Notifies of a changed controller role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleStatus {
    /// The new role.
    pub role: Role,
    /// The reason.
    pub reason: RoleStatusReason,
    /// Generation ID of the last election.
    pub generation: u64,
    /// Experimenter properties.
    pub properties: Vec<Experimenter>,
}

/// Why the switch sends a controller's status (`ofp_controller_status_reason`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ControllerStatusReason {
    /// In reply to a request.
    Request,
    /// The channel came up or went down.
    ChannelStatus,
    /// The role changed.
    Role,
    /// The controller was added.
    Added,
    /// The controller was removed.
    Removed,
    /// The short ID changed.
    ShortId,
    /// An experimenter property changed.
    Experimenter,
}

/// Status of a controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControllerStatus {
    /// Short ID, or [`CONTROLLER_NONE`].
    pub short_id: u16,
    /// Role.
    pub role: Role,
    /// Why the switch sends the status.
    pub reason: ControllerStatusReason,
    /// Whether the control channel is up.
    pub is_up: bool,
    /// Properties.
    pub properties: Vec<ControllerProperty>,
}

/// Property of a controller's status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ControllerProperty {
    /// URI of the control channel.
    Uri(Text),
    /// An experimenter property.
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
