//! Forwarding technologies.

/// Forwarding technology; it determines the entries that a target needs and the traffic that suits
/// it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Technology {
    /// Forwards by flow entries that a controller installs.
    OpenFlow,
    /// Forwards by destination MAC address.
    Bridging,
    /// Forwards by destination IP address.
    Routing,
    /// Adds VLAN tags by conditions.
    Tagging,
    /// A cable.
    Wire,
}

impl Technology {
    /// Returns the singular noun for such a target.
    pub fn singular(self) -> &'static str {
        match self {
            Technology::OpenFlow => "OpenFlow switch",
            Technology::Bridging => "bridge",
            Technology::Routing => "router",
            Technology::Tagging => "VLAN tagger",
            Technology::Wire => "cable",
        }
    }

    /// Returns the plural noun for such targets.
    pub fn plural(self) -> &'static str {
        match self {
            Technology::OpenFlow => "OpenFlow switches",
            Technology::Bridging => "bridges",
            Technology::Routing => "routers",
            Technology::Tagging => "VLAN taggers",
            Technology::Wire => "cables",
        }
    }
}
