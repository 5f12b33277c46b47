//! Ports: numbers, descriptions and changes.
//!
//! Source: OpenFlow 1.0.0 sections 5.2.1 (`ofp_phy_port`), 5.3.3 (`ofp_port_mod`) and 5.4.3
//! (`ofp_port_status`).
//!
//! Port numbers have 32 bits, as from 1.1 on. For 1.0 the codec truncates them to 16 bits; reserved
//! numbers keep their low 16 bits.

pub mod property;
pub mod stats;

use std::fmt;

use super::bits::bits;
use super::matching::{MacAddress, show_mac};
use super::text::Text;
use crate::version::NO;
use property::{PortModProperty, PortProperty};

pub use packet::frame::PortNo;

/// Reserved port numbers.
pub mod reserved {
    use super::PortNo;

    /// First number above those of physical ports.
    pub const MAX: PortNo = 0xffff_ff00;
    /// Output port of an action set without output action (1.5).
    pub const UNSET: PortNo = 0xffff_fff7;
    /// The ingress port.
    pub const IN_PORT: PortNo = 0xffff_fff8;
    /// The first table (in a packet-out).
    pub const TABLE: PortNo = 0xffff_fff9;
    /// Traditional processing, without OpenFlow.
    pub const NORMAL: PortNo = 0xffff_fffa;
    /// All ports except the ingress port and those excluded from flooding.
    pub const FLOOD: PortNo = 0xffff_fffb;
    /// All ports except the ingress port.
    pub const ALL: PortNo = 0xffff_fffc;
    /// The controller.
    pub const CONTROLLER: PortNo = 0xffff_fffd;
    /// The switch's local network stack.
    pub const LOCAL: PortNo = 0xffff_fffe;
    /// No port; as a filter, any port.
    pub const NONE: PortNo = 0xffff_ffff;
}

/// A port number as text; reserved ones by name.
pub struct ShowPort(pub PortNo);

impl fmt::Display for ShowPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            reserved::UNSET => "unset",
            reserved::IN_PORT => "in_port",
            reserved::TABLE => "table",
            reserved::NORMAL => "normal",
            reserved::FLOOD => "flood",
            reserved::ALL => "all",
            reserved::CONTROLLER => "controller",
            reserved::LOCAL => "local",
            reserved::NONE => "none",
            number => return write!(f, "{number}"),
        })
    }
}

bits! {
    /// Configuration of a port (`ofp_port_config`).
    PortConfig {
        //                                            1.0 1.1 1.2 1.3 1.4 1.5
        /// Administratively down.
        PORT_DOWN "port_down"                        [ 0,  0,  0,  0,  0,  0];
        /// Spanning tree is disabled.
        NO_STP "no_stp"                              [ 1, NO, NO, NO, NO, NO];
        /// Drops all received frames except those of the spanning tree.
        NO_RECEIVE "no_receive"                      [ 2,  2,  2,  2,  2,  2];
        /// Drops received spanning tree frames.
        NO_RECEIVE_STP "no_receive_stp"              [ 3, NO, NO, NO, NO, NO];
        /// Excluded from flooding.
        NO_FLOOD "no_flood"                          [ 4, NO, NO, NO, NO, NO];
        /// Drops frames for output.
        NO_FORWARD "no_forward"                      [ 5,  5,  5,  5,  5,  5];
        /// Sends no packet-in messages.
        NO_PACKET_IN "no_packet_in"                  [ 6,  6,  6,  6,  6,  6];
    }
}

bits! {
    /// State of a port (`ofp_port_state`). In 1.0 two bits encode the spanning tree's state: none
    /// for listening, low for learning, high for forwarding, both for blocking.
    PortState {
        //                                            1.0 1.1 1.2 1.3 1.4 1.5
        /// No link.
        LINK_DOWN "link_down"                        [ 0,  0,  0,  0,  0,  0];
        /// A protocol outside of OpenFlow blocks it.
        BLOCKED "blocked"                            [NO,  1,  1,  1,  1,  1];
        /// Live for fast failover.
        LIVE "live"                                  [NO,  2,  2,  2,  2,  2];
        /// Low bit of the spanning tree's state.
        STP_LOW "stp_low"                            [ 8, NO, NO, NO, NO, NO];
        /// High bit of the spanning tree's state.
        STP_HIGH "stp_high"                          [ 9, NO, NO, NO, NO, NO];
    }
}

bits! {
    /// Speeds, media and features of a link (`ofp_port_features`).
    PortFeatures {
        //                                            1.0 1.1 1.2 1.3 1.4 1.5
        /// 10 Mbit/s, half duplex.
        SPEED_10M_HALF "10m_half"                    [ 0,  0,  0,  0,  0,  0];
        /// 10 Mbit/s, full duplex.
        SPEED_10M_FULL "10m_full"                    [ 1,  1,  1,  1,  1,  1];
        /// 100 Mbit/s, half duplex.
        SPEED_100M_HALF "100m_half"                  [ 2,  2,  2,  2,  2,  2];
        /// 100 Mbit/s, full duplex.
        SPEED_100M_FULL "100m_full"                  [ 3,  3,  3,  3,  3,  3];
        /// 1 Gbit/s, half duplex.
        SPEED_1G_HALF "1g_half"                      [ 4,  4,  4,  4,  4,  4];
        /// 1 Gbit/s, full duplex.
        SPEED_1G_FULL "1g_full"                      [ 5,  5,  5,  5,  5,  5];
        /// 10 Gbit/s, full duplex.
        SPEED_10G_FULL "10g_full"                    [ 6,  6,  6,  6,  6,  6];
        /// 40 Gbit/s, full duplex.
        SPEED_40G_FULL "40g_full"                    [NO,  7,  7,  7,  7,  7];
        /// 100 Gbit/s, full duplex.
        SPEED_100G_FULL "100g_full"                  [NO,  8,  8,  8,  8,  8];
        /// 1 Tbit/s, full duplex.
        SPEED_1T_FULL "1t_full"                      [NO,  9,  9,  9,  9,  9];
        /// A speed that has no bit.
        SPEED_OTHER "other_speed"                    [NO, 10, 10, 10, 10, 10];
        /// Copper.
        COPPER "copper"                              [ 7, 11, 11, 11, 11, 11];
        /// Fiber.
        FIBER "fiber"                                [ 8, 12, 12, 12, 12, 12];
        /// Autonegotiation.
        AUTONEGOTIATION "autonegotiation"            [ 9, 13, 13, 13, 13, 13];
        /// Pause frames.
        PAUSE "pause"                                [10, 14, 14, 14, 14, 14];
        /// Asymmetric pause.
        PAUSE_ASYMMETRIC "pause_asymmetric"          [11, 15, 15, 15, 15, 15];
    }
}

/// Description of a port (`ofp_phy_port`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PortDescription {
    /// Port number.
    pub number: PortNo,
    /// MAC address.
    pub mac: MacAddress,
    /// Its name, at most 15 bytes.
    pub name: Text,
    /// Configuration.
    pub config: PortConfig,
    /// State.
    pub state: PortState,
    /// Current features.
    pub current: PortFeatures,
    /// Features that the port advertises.
    pub advertised: PortFeatures,
    /// Features that the port supports.
    pub supported: PortFeatures,
    /// Features that its link peer advertises.
    pub peer: PortFeatures,
    /// Current speed in kbit/s (from 1.1 on).
    pub current_speed_kbps: u32,
    /// Maximum speed in kbit/s (from 1.1 on).
    pub speed_max_kbps: u32,
    /// Properties (from 1.4 on).
    pub properties: Vec<PortProperty>,
}

/// Modifies the configuration of a port (`ofp_port_mod`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PortMod {
    /// Port number.
    pub number: PortNo,
    /// MAC address of the port; the switch rejects a wrong one.
    pub mac: MacAddress,
    /// New values of the bits in `mask`.
    pub config: PortConfig,
    /// The bits to modify.
    pub mask: PortConfig,
    /// Features to advertise; none means no change.
    pub advertise: PortFeatures,
    /// Properties to modify (from 1.4 on).
    pub properties: Vec<PortModProperty>,
}

/// Reason of a port-status message (`ofp_port_reason`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PortStatusReason {
    /// The port was added.
    Add,
    /// The port was deleted.
    Delete,
    /// The port was modified.
    Modify,
}

/// Notifies of an added, deleted or modified port (`ofp_port_status`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortStatus {
    /// The reason.
    pub reason: PortStatusReason,
    /// Current description of the port, or its last one.
    pub port: PortDescription,
}

impl fmt::Display for PortDescription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({}): mac=", ShowPort(self.number), self.name)?;
        show_mac(f, &self.mac)?;
        write!(f, " config={} state={} current={}", self.config, self.state, self.current)?;
        write!(f, " advertised={} supported={}", self.advertised, self.supported)?;
        write!(f, " peer={}", self.peer)?;
        if (self.current_speed_kbps, self.speed_max_kbps) != (0, 0) {
            write!(f, " speed={}/{}kbps", self.current_speed_kbps, self.speed_max_kbps)?;
        }
        self.properties.iter().try_for_each(|property| write!(f, " {property}"))
    }
}

impl fmt::Display for PortMod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "port={} mac=", ShowPort(self.number))?;
        show_mac(f, &self.mac)?;
        write!(f, " config={} mask={} advertise={}", self.config, self.mask, self.advertise)?;
        self.properties.iter().try_for_each(|property| write!(f, " {property}"))
    }
}

impl fmt::Display for PortStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = match self.reason {
            PortStatusReason::Add => "add",
            PortStatusReason::Delete => "delete",
            PortStatusReason::Modify => "modify",
        };
        write!(f, "{reason} {}", self.port)
    }
}
