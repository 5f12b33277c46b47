//! Features and configuration of a switch.
//!
//! Source: OpenFlow 1.0.0 sections 5.3.1 (`ofp_switch_features`) and 5.3.2 (`ofp_switch_config`).

use std::fmt;

use super::bits::bits;
use super::kinds::ActionKinds;
use super::port::PortDescription;
use crate::version::NO;

bits! {
    /// Capabilities of a switch (`ofp_capabilities`).
    Capabilities {
        //                                            1.0 1.1 1.2 1.3 1.4 1.5
        /// Flow statistics.
        FLOW_STATS "flow_stats"                      [ 0,  0,  0,  0,  0,  0];
        /// Table statistics.
        TABLE_STATS "table_stats"                    [ 1,  1,  1,  1,  1,  1];
        /// Port statistics.
        PORT_STATS "port_stats"                      [ 2,  2,  2,  2,  2,  2];
        /// Spanning tree.
        STP "stp"                                    [ 3, NO, NO, NO, NO, NO];
        /// Group statistics.
        GROUP_STATS "group_stats"                    [NO,  3,  3,  3,  3,  3];
        /// Reassembles IP fragments.
        IP_REASSEMBLY "ip_reassembly"                [ 5,  5,  5,  5,  5,  5];
        /// Queue statistics.
        QUEUE_STATS "queue_stats"                    [ 6,  6,  6,  6,  6,  6];
        /// Matches IP addresses in ARP.
        ARP_MATCH_IP "arp_match_ip"                  [ 7,  7, NO, NO, NO, NO];
        /// Blocks ports that would close a loop.
        PORT_BLOCKED "port_blocked"                  [NO, NO,  8,  8,  8,  8];
        /// Bundles.
        BUNDLES "bundles"                            [NO, NO, NO, NO,  9,  9];
        /// Flow monitors.
        FLOW_MONITORING "flow_monitoring"            [NO, NO, NO, NO, 10, 10];
    }
}

/// Features of a switch (`ofp_switch_features`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Features {
    /// Datapath ID: the lower 48 bits are a MAC address, the manufacturer defines the upper 16.
    pub datapath_id: u64,
    /// Maximum number of buffered frames.
    pub buffers: u32,
    /// Number of tables.
    pub tables: u8,
    /// Auxiliary ID of this connection, 0 for the main one (from 1.3 on).
    pub auxiliary: u8,
    /// Capabilities.
    pub capabilities: Capabilities,
    /// Supported actions (in 1.0).
    pub actions: ActionKinds,
    /// Ports (before 1.3; later in multipart replies).
    pub ports: Vec<PortDescription>,
}

/// Handling of IP fragments (`ofp_config_flags`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FragmentHandling {
    /// Fragments go through the tables, with transport ports 0.
    #[default]
    Normal,
    /// The switch drops fragments.
    Drop,
    /// The switch reassembles fragments first.
    Reassemble,
}

/// Configuration of a switch (`ofp_switch_config`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SwitchConfig {
    /// Handling of IP fragments.
    pub fragments: FragmentHandling,
    /// Whether the switch sends frames with an invalid TTL to the controller (1.1 and 1.2).
    pub invalid_ttl_to_controller: bool,
    /// Maximum bytes of a frame that a table-miss packet-in has.
    pub miss_send_bytes: u16,
}

impl Default for SwitchConfig {
    fn default() -> Self {
        SwitchConfig {
            fragments: FragmentHandling::Normal,
            invalid_ttl_to_controller: false,
            miss_send_bytes: 128,
        }
    }
}

impl fmt::Display for Features {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "datapath_id={:#018x} buffers={}", self.datapath_id, self.buffers)?;
        write!(f, " tables={} capabilities={}", self.tables, self.capabilities)?;
        write!(f, " actions={}", self.actions)?;
        if self.auxiliary != 0 {
            write!(f, " auxiliary={}", self.auxiliary)?;
        }
        self.ports.iter().try_for_each(|port| write!(f, "\n  port {port}"))
    }
}

impl fmt::Display for SwitchConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fragments = match self.fragments {
            FragmentHandling::Normal => "normal",
            FragmentHandling::Drop => "drop",
            FragmentHandling::Reassemble => "reassemble",
        };
        write!(f, "fragments={fragments} miss_send_bytes={}", self.miss_send_bytes)?;
        f.write_str(if self.invalid_ttl_to_controller { " invalid_ttl_to_controller" } else { "" })
    }
}
