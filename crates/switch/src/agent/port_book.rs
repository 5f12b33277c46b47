//! What controllers know of the ports: descriptions, settings, counters.
//!
//! Source: OpenFlow switch specification 1.0.0, sections 5.2.1, 5.3.3 and 5.3.5. Speeds and media
//! are not known of a port here, so that their bits are zero.

use openflow::model::{
    COUNTER_UNKNOWN, PortConfig, PortDescription, PortMod, PortNo, PortState, PortStats, Text,
};
use openflow::version::ErrorCode;
use ports::port::PortDrop;

use crate::forward::{Lane, mac_of};

/// Bytes of a port's name on the wire, without the zero byte behind it.
const NAME_BYTES_MAX: usize = 15;

/// The settings that a port can be given. Without a spanning tree those about it are kept and
/// change nothing.
fn settable() -> PortConfig {
    PortConfig::PORT_DOWN
        | PortConfig::NO_STP
        | PortConfig::NO_RECEIVE
        | PortConfig::NO_RECEIVE_STP
        | PortConfig::NO_FLOOD
        | PortConfig::NO_FORWARD
        | PortConfig::NO_PACKET_IN
}

/// All ports, in the order of their numbers.
pub struct PortBook {
    ports: Vec<PortDescription>,
    numbers: Vec<PortNo>,
}

impl PortBook {
    /// The ports of these lanes, all up and without settings.
    pub fn new(lanes: &[Lane]) -> Self {
        let mut ports: Vec<_> = lanes.iter().map(describe).collect();
        ports.sort_by_key(|port| port.number);
        let numbers = ports.iter().map(|port| port.number).collect();
        PortBook { ports, numbers }
    }

    /// The descriptions.
    pub fn descriptions(&self) -> &[PortDescription] {
        &self.ports
    }

    /// The ports' numbers.
    pub fn numbers(&self) -> &[PortNo] {
        &self.numbers
    }

    /// The port with this number.
    pub fn find(&mut self, number: PortNo) -> Option<&mut PortDescription> {
        self.ports.iter_mut().find(|port| port.number == number)
    }

    /// Changes a port's settings; returns its description if anything changed.
    pub fn modify(&mut self, change: &PortMod) -> Result<Option<PortDescription>, ErrorCode> {
        let port = self.find(change.number).ok_or(ErrorCode::PortModBadPort)?;
        if port.mac != change.mac {
            return Err(ErrorCode::PortModBadHardwareAddress);
        }
        let mask = change.mask.and(settable());
        let config = port.config.without(mask) | change.config.and(mask);
        let changed = config != port.config;
        port.config = config;
        Ok(changed.then(|| port.clone()))
    }

    /// Notes that a port's link went down or came up, and returns its description.
    pub fn set_link(&mut self, number: PortNo, up: bool) -> Option<PortDescription> {
        let port = self.find(number)?;
        port.state = match up {
            true => port.state.without(PortState::LINK_DOWN),
            false => port.state | PortState::LINK_DOWN,
        };
        Some(port.clone())
    }
}

fn describe(lane: &Lane) -> PortDescription {
    let name = lane.port.facts().name.as_bytes();
    PortDescription {
        number: lane.number,
        mac: mac_of(lane.number, lane.port.as_ref()),
        name: Text::from_bytes(&name[..name.len().min(NAME_BYTES_MAX)]),
        ..PortDescription::default()
    }
}

/// A port's counters.
pub fn stats(lane: &mut Lane) -> PortStats {
    let counters = lane.port.counters();
    let lost = |reasons: &[PortDrop]| reasons.iter().map(|&reason| counters.lost(reason)).sum();
    let refused: u64 =
        lost(&[PortDrop::TransmitRefused, PortDrop::TooLong, PortDrop::LinkQueueFull]);
    PortStats {
        port: lane.number,
        rx_packets: counters.rx_frames,
        tx_packets: counters.tx_frames,
        rx_bytes: counters.rx_bytes,
        tx_bytes: counters.tx_bytes,
        rx_dropped: lost(&[PortDrop::ReceiveRingFull]),
        tx_dropped: refused + lane.drops.transmit_full + lane.drops.port_down,
        rx_errors: COUNTER_UNKNOWN,
        tx_errors: COUNTER_UNKNOWN,
        rx_frame_errors: COUNTER_UNKNOWN,
        rx_overruns: COUNTER_UNKNOWN,
        rx_crc_errors: COUNTER_UNKNOWN,
        collisions: COUNTER_UNKNOWN,
        ..PortStats::default()
    }
}
