//! What a switch says about itself, and the settings that hold for all of it.
//!
//! Source: OpenFlow 1.0.0 sections 5.3.1 (`ofp_switch_features`) and 5.3.2
//! (`ofp_switch_config`).

use std::fmt;

use super::bits::bits;
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
    }
}

bits! {
    /// A set of kinds of actions, such as those that a switch can do.
    ActionKinds {
        //                                            1.0 1.1 1.2 1.3 1.4 1.5
        /// [`crate::version::ActionKind::Output`].
        OUTPUT "output"                              [ 0, NO, NO, NO, NO, NO];
        /// [`crate::version::ActionKind::SetVlanVid`].
        SET_VLAN_VID "set_vlan_vid"                  [ 1, NO, NO, NO, NO, NO];
        /// [`crate::version::ActionKind::SetVlanPcp`].
        SET_VLAN_PCP "set_vlan_pcp"                  [ 2, NO, NO, NO, NO, NO];
        /// [`crate::version::ActionKind::StripVlan`].
        STRIP_VLAN "strip_vlan"                      [ 3, NO, NO, NO, NO, NO];
        /// [`crate::version::ActionKind::SetEthSrc`].
        SET_ETH_SRC "set_eth_src"                    [ 4, NO, NO, NO, NO, NO];
        /// [`crate::version::ActionKind::SetEthDst`].
        SET_ETH_DST "set_eth_dst"                    [ 5, NO, NO, NO, NO, NO];
        /// [`crate::version::ActionKind::SetIpSrc`].
        SET_IP_SRC "set_ip_src"                      [ 6, NO, NO, NO, NO, NO];
        /// [`crate::version::ActionKind::SetIpDst`].
        SET_IP_DST "set_ip_dst"                      [ 7, NO, NO, NO, NO, NO];
        /// [`crate::version::ActionKind::SetIpDscp`].
        SET_IP_DSCP "set_ip_dscp"                    [ 8, NO, NO, NO, NO, NO];
        /// [`crate::version::ActionKind::SetTransportSrc`].
        SET_TRANSPORT_SRC "set_transport_src"        [ 9, NO, NO, NO, NO, NO];
        /// [`crate::version::ActionKind::SetTransportDst`].
        SET_TRANSPORT_DST "set_transport_dst"        [10, NO, NO, NO, NO, NO];
        /// [`crate::version::ActionKind::Enqueue`].
        ENQUEUE "enqueue"                            [11, NO, NO, NO, NO, NO];
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
    /// What it can do.
    pub capabilities: Capabilities,
    /// Actions that it can do.
    pub actions: ActionKinds,
    /// Its ports.
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
    /// Bytes of a frame that matched nothing which the controller gets.
    pub miss_send_bytes: u16,
}

impl Default for SwitchConfig {
    fn default() -> Self {
        SwitchConfig { fragments: FragmentHandling::Normal, miss_send_bytes: 128 }
    }
}

impl fmt::Display for Features {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "datapath_id={:#018x} buffers={}", self.datapath_id, self.buffers)?;
        write!(f, " tables={} capabilities={}", self.tables, self.capabilities)?;
        write!(f, " actions={}", self.actions)?;
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
        write!(f, "fragments={fragments} miss_send_bytes={}", self.miss_send_bytes)
    }
}
