//! What a switch says about itself, and the settings that hold for all of it.
//!
//! Source: OpenFlow 1.0.0 sections 5.3.1 (`ofp_switch_features`) and 5.3.2
//! (`ofp_switch_config`).

use std::fmt;

use super::bits::bits;
use super::kinds::ActionKinds;
use super::port::PortDescription;
use crate::version::NO;

bits! {
    /// What a switch can do (`ofp_capabilities`).
    Capabilities {
        //                                            1.0 1.1 1.2 1.3 1.4 1.5
        /// Counters of entries.
        FLOW_STATS "flow_stats"                      [ 0,  0,  0,  0,  0,  0];
        /// Counters of tables.
        TABLE_STATS "table_stats"                    [ 1,  1,  1,  1,  1,  1];
        /// Counters of ports.
        PORT_STATS "port_stats"                      [ 2,  2,  2,  2,  2,  2];
        /// Spanning tree.
        STP "stp"                                    [ 3, NO, NO, NO, NO, NO];
        /// Counters of groups.
        GROUP_STATS "group_stats"                    [NO,  3,  3,  3,  3,  3];
        /// Reassembles IP fragments.
        IP_REASSEMBLY "ip_reassembly"                [ 5,  5,  5,  5,  5,  5];
        /// Counters of queues.
        QUEUE_STATS "queue_stats"                    [ 6,  6,  6,  6,  6,  6];
        /// Matches the addresses in ARP.
        ARP_MATCH_IP "arp_match_ip"                  [ 7,  7, NO, NO, NO, NO];
        /// Blocks ports that would close a loop.
        PORT_BLOCKED "port_blocked"                  [NO, NO,  8,  8,  8,  8];
        /// Bundles.
        BUNDLES "bundles"                            [NO, NO, NO, NO,  9,  9];
        /// Flow monitors.
        FLOW_MONITORING "flow_monitoring"            [NO, NO, NO, NO, 10, 10];
    }
}

/// What a switch says about itself (`ofp_switch_features`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Features {
    /// The switch's number: the lower 48 bits are an Ethernet address, the upper 16 its maker's.
    pub datapath_id: u64,
    /// Frames that it can keep.
    pub buffers: u32,
    /// Tables that it has.
    pub tables: u8,
    /// Number of the auxiliary connection that this is told on, 0 for the main one (told from 1.3
    /// on).
    pub auxiliary: u8,
    /// What it can do.
    pub capabilities: Capabilities,
    /// Actions that it can do (told in 1.0).
    pub actions: ActionKinds,
    /// Its ports (told before 1.3; later by a description of their own).
    pub ports: Vec<PortDescription>,
}

/// What happens to IP fragments (`ofp_config_flags`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FragmentHandling {
    /// They go through the tables, with transport ports 0.
    #[default]
    Normal,
    /// They are dropped.
    Drop,
    /// They are put together first.
    Reassemble,
}

/// Settings of the whole switch (`ofp_switch_config`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SwitchConfig {
    /// What happens to IP fragments.
    pub fragments: FragmentHandling,
    /// Whether frames whose TTL must not be decremented go to the controller (1.1 and 1.2).
    pub invalid_ttl_to_controller: bool,
    /// Bytes of a frame that matched nothing which the controller gets.
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
