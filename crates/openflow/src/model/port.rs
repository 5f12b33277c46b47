//! Ports: their numbers, what they are, how they change.
//!
//! Source: OpenFlow 1.0.0 sections 5.2.1 (`ofp_phy_port`), 5.3.3 (`ofp_port_mod`) and 5.4.3
//! (`ofp_port_status`). Numbers are 32 bits wide as from 1.1 on; the codec narrows them for 1.0,
//! where the reserved ones keep their low 16 bits.

/// What ports are beyond Ethernet.
pub mod property;
/// What ports have counted.
pub mod stats;

use std::fmt;

use super::bits::bits;
use super::matching::{MacAddress, show_mac};
use super::text::Text;
use crate::version::NO;
use property::{PortModProperty, PortProperty};

pub use packet::frame::PortNo;

/// Port numbers that mean something else than one port.
pub mod reserved {
    use super::PortNo;

    /// First number that no real port has.
    pub const MAX: PortNo = 0xffff_ff00;
    /// Output port of an action set that has none (1.5).
    pub const UNSET: PortNo = 0xffff_fff7;
    /// Back out of the port that the frame came in on.
    pub const IN_PORT: PortNo = 0xffff_fff8;
    /// Through the tables (in a packet-out).
    pub const TABLE: PortNo = 0xffff_fff9;
    /// As a switch without OpenFlow would do it.
    pub const NORMAL: PortNo = 0xffff_fffa;
    /// Every port but the one it came in on and those barred from flooding.
    pub const FLOOD: PortNo = 0xffff_fffb;
    /// Every port but the one it came in on.
    pub const ALL: PortNo = 0xffff_fffc;
    /// The controller.
    pub const CONTROLLER: PortNo = 0xffff_fffd;
    /// The switch's own network stack.
    pub const LOCAL: PortNo = 0xffff_fffe;
    /// No port; as a filter, any port.
    pub const NONE: PortNo = 0xffff_ffff;
}

/// A port number as text: reserved ones by name.
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
    /// How a port has been told to behave (`ofp_port_config`).
    PortConfig {
        //                                            1.0 1.1 1.2 1.3 1.4 1.5
        /// Taken down by an administrator.
        PORT_DOWN "port_down"                        [ 0,  0,  0,  0,  0,  0];
        /// Takes no part in the spanning tree.
        NO_STP "no_stp"                              [ 1, NO, NO, NO, NO, NO];
        /// Drops all frames that it receives, but for the spanning tree's.
        NO_RECEIVE "no_receive"                      [ 2,  2,  2,  2,  2,  2];
        /// Drops the spanning tree's frames that it receives.
        NO_RECEIVE_STP "no_receive_stp"              [ 3, NO, NO, NO, NO, NO];
        /// Left out when flooding.
        NO_FLOOD "no_flood"                          [ 4, NO, NO, NO, NO, NO];
        /// Drops frames that are to leave through it.
        NO_FORWARD "no_forward"                      [ 5,  5,  5,  5,  5,  5];
        /// Its misses are not sent to the controller.
        NO_PACKET_IN "no_packet_in"                  [ 6,  6,  6,  6,  6,  6];
    }
}

bits! {
    /// How a port is (`ofp_port_state`). In 1.0 two bits hold the spanning tree's state: neither
    /// listening, low learning, high forwarding, both blocking.
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
    /// Speeds, media and abilities of a link (`ofp_port_features`).
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
        /// A speed that has no bit of its own.
        SPEED_OTHER "other_speed"                    [NO, 10, 10, 10, 10, 10];
        /// Copper.
        COPPER "copper"                              [ 7, 11, 11, 11, 11, 11];
        /// Fibre.
        FIBER "fiber"                                [ 8, 12, 12, 12, 12, 12];
        /// Negotiates by itself.
        AUTONEGOTIATION "autonegotiation"            [ 9, 13, 13, 13, 13, 13];
        /// Pauses.
        PAUSE "pause"                                [10, 14, 14, 14, 14, 14];
        /// Pauses in one direction.
        PAUSE_ASYMMETRIC "pause_asymmetric"          [11, 15, 15, 15, 15, 15];
    }
}

/// What a port is and how it does (`ofp_phy_port`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PortDescription {
    /// Its number.
    pub number: PortNo,
    /// Its hardware address.
    pub mac: MacAddress,
    /// Its name, at most 15 bytes.
    pub name: Text,
    /// How it has been told to behave.
    pub config: PortConfig,
    /// How it is.
    pub state: PortState,
    /// What is in use now.
    pub current: PortFeatures,
    /// What it advertises.
    pub advertised: PortFeatures,
    /// What it can do.
    pub supported: PortFeatures,
    /// What its neighbour advertises.
    pub peer: PortFeatures,
    /// Its speed now, in kbit/s (from 1.1 on).
    pub current_speed_kbps: u32,
    /// Its highest speed, in kbit/s (from 1.1 on).
    pub speed_max_kbps: u32,
    /// What it is beyond Ethernet (from 1.4 on).
    pub properties: Vec<PortProperty>,
}

/// Changes how a port behaves (`ofp_port_mod`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PortMod {
    /// Which port.
    pub number: PortNo,
    /// Its hardware address, against mistakes: the switch refuses any other.
    pub mac: MacAddress,
    /// New values of the bits in `mask`.
    pub config: PortConfig,
    /// Which bits change.
    pub mask: PortConfig,
    /// What to advertise; nothing means no change.
    pub advertise: PortFeatures,
    /// What else to change (from 1.4 on).
    pub properties: Vec<PortModProperty>,
}

/// Why a port status is sent (`ofp_port_reason`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PortStatusReason {
    /// The port is new.
    Add,
    /// The port is gone.
    Delete,
    /// Something about the port changed.
    Modify,
}

/// A port came, went or changed (`ofp_port_status`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortStatus {
    /// Which of these.
    pub reason: PortStatusReason,
    /// The port, as it is now or was last.
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
