//! Port descriptions, settings and counters for controllers.
//!
//! Source: OpenFlow switch specification 1.0.0, sections 5.2.1, 5.3.3 and 5.3.5; 1.3.5, sections
//! 7.2.1, 7.3.4.3 and 7.3.5.6. Unknown speeds and media are zero ([`super::link_features`]).

use netio::link::Link;
use netio::port::PortDrop;
use openflow::model::{
    COUNTER_UNKNOWN, PortConfig, PortDescription, PortFeatures, PortMod, PortNo, PortState,
    PortStats, Text,
};
use openflow::version::{ErrorCode, Version};
use packet::time::Nanos;

use super::link_features::describe_link;
use crate::fast_path::FastPath;
use crate::forward::{ForwardPort, mac_of};

/// Maximum bytes of a port's name on the wire, without the terminating zero.
const NAME_BYTES_MAX: usize = 15;

/// Returns the port settings that controllers may change. Without a spanning tree, its settings are
/// stored but have no effect.
fn settable(version: Version) -> PortConfig {
    let all = PortConfig::PORT_DOWN
        | PortConfig::NO_RECEIVE
        | PortConfig::NO_FORWARD
        | PortConfig::NO_PACKET_IN;
    match version {
        Version::V1_0 => {
            all | PortConfig::NO_STP | PortConfig::NO_RECEIVE_STP | PortConfig::NO_FLOOD
        }
        _ => all,
    }
}

/// All ports, in the order of their numbers.
#[derive(Clone)]
pub struct PortTable {
    ports: Vec<PortDescription>,
    numbers: Vec<PortNo>,
}

impl PortTable {
    /// Creates descriptions of the ports of these entries, all live and without settings.
    pub fn new(forward_ports: &[ForwardPort]) -> Self {
        let mut ports: Vec<_> = forward_ports.iter().map(describe).collect();
        ports.sort_by_key(|port| port.number);
        let numbers = ports.iter().map(|port| port.number).collect();
        PortTable { ports, numbers }
    }

    /// Returns the descriptions.
    pub fn descriptions(&self) -> &[PortDescription] {
        &self.ports
    }

    /// Returns the ports' numbers.
    pub fn numbers(&self) -> &[PortNo] {
        &self.numbers
    }

    /// Returns the port with this number.
    pub fn find(&mut self, number: PortNo) -> Option<&mut PortDescription> {
        self.ports.iter_mut().find(|port| port.number == number)
    }

    /// Changes a port's settings. Returns its description if anything changed. Advertised features
    /// cannot be changed.
    pub fn modify(
        &mut self,
        change: &PortMod,
        version: Version,
    ) -> Result<Option<PortDescription>, ErrorCode> {
        let port = self.find(change.number).ok_or(ErrorCode::PortModBadPort)?;
        if port.mac != change.mac {
            return Err(ErrorCode::PortModBadHardwareAddress);
        }
        let as_it_is = [PortFeatures::NONE, port.advertised].contains(&change.advertise);
        if version > Version::V1_0 && !as_it_is {
            return Err(ErrorCode::PortModBadAdvertise);
        }
        if !change.properties.is_empty() {
            return Err(ErrorCode::PropertyBadType);
        }
        let mask = change.mask.and(settable(version));
        let config = port.config.without(mask) | change.config.and(mask);
        let changed = config != port.config;
        port.config = config;
        set_live(port);
        Ok(changed.then(|| port.clone()))
    }

    /// Sets a port's configuration. Returns its description if anything changed.
    pub fn set_config(&mut self, number: PortNo, config: PortConfig) -> Option<PortDescription> {
        let port = self.find(number).filter(|port| port.config != config)?;
        port.config = config;
        set_live(port);
        Some(port.clone())
    }

    /// Updates a port's link state and features. Returns its description.
    pub fn set_link(&mut self, number: PortNo, up: bool, link: &Link) -> Option<PortDescription> {
        let port = self.find(number)?;
        describe_link(port, link);
        port.state = match up {
            true => port.state.without(PortState::LINK_DOWN),
            false => port.state | PortState::LINK_DOWN,
        };
        set_live(port);
        Some(port.clone())
    }
}

/// A port is live if it is neither administratively down nor without link.
fn set_live(port: &mut PortDescription) {
    let down = port.config.contains(PortConfig::PORT_DOWN);
    port.state = match down || port.state.contains(PortState::LINK_DOWN) {
        true => port.state.without(PortState::LIVE),
        false => port.state | PortState::LIVE,
    };
}

fn describe(forward_port: &ForwardPort) -> PortDescription {
    let name = forward_port.port.facts().name.as_bytes();
    let mut port = PortDescription {
        number: forward_port.number,
        mac: mac_of(forward_port.number, forward_port.port.as_ref()),
        name: Text::from_bytes(&name[..name.len().min(NAME_BYTES_MAX)]),
        state: PortState::LIVE,
        ..PortDescription::default()
    };
    describe_link(&mut port, &forward_port.port.link());
    port
}

/// Returns the counters of a port that has existed for `age`, with those of its fast path.
pub fn stats(
    forward_port: &mut ForwardPort,
    fast_path: Option<&FastPath>,
    age: Nanos,
) -> PortStats {
    let mut counters = forward_port.port.counters();
    if let Some(fast_path) = fast_path {
        let lost = forward_port.port.xdp().map_or(0, |port| port.redirects_lost());
        fast_path.traffic().add_to(forward_port.number, lost, &mut counters);
    }
    let lost = |reasons: &[PortDrop]| reasons.iter().map(|&reason| counters.lost(reason)).sum();
    let refused: u64 =
        lost(&[PortDrop::TransmitRefused, PortDrop::TooLong, PortDrop::LinkQueueFull]);
    PortStats {
        port: forward_port.number,
        rx_packets: counters.rx_frames,
        tx_packets: counters.tx_frames,
        rx_bytes: counters.rx_bytes,
        tx_bytes: counters.tx_bytes,
        rx_dropped: lost(&[PortDrop::ReceiveRingFull, PortDrop::ReceiveTooLong]),
        tx_dropped: refused + forward_port.drops.transmit_full + forward_port.drops.port_down,
        rx_errors: lost(&[PortDrop::ReceiveInvalid, PortDrop::PeerBroken]),
        tx_errors: COUNTER_UNKNOWN,
        rx_frame_errors: COUNTER_UNKNOWN,
        rx_overruns: COUNTER_UNKNOWN,
        rx_crc_errors: COUNTER_UNKNOWN,
        collisions: COUNTER_UNKNOWN,
        age: Some(age),
        properties: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::losses::tests::CountingPort;

    /// OpenFlow 1.3.5, section 7.3.5.6: frames that a port loses on reception count as received,
    /// not as sent.
    #[test]
    fn frames_lost_on_reception_are_counted_as_received() {
        let lost = |reason| {
            let mut forward_port = CountingPort::forward_port(1, &[(reason, 5)]);
            (forward_port.drops.transmit_full, forward_port.drops.port_down) = (20, 300);
            let stats = stats(&mut forward_port, None, Nanos::ZERO);
            (stats.rx_dropped, stats.rx_errors, stats.tx_dropped - 320)
        };
        for (reason, counted) in [
            (PortDrop::ReceiveRingFull, (5, 0, 0)),
            (PortDrop::ReceiveTooLong, (5, 0, 0)),
            (PortDrop::ReceiveInvalid, (0, 5, 0)),
            (PortDrop::PeerBroken, (0, 5, 0)),
            (PortDrop::TransmitRefused, (0, 0, 5)),
            (PortDrop::TooLong, (0, 0, 5)),
            (PortDrop::LinkQueueFull, (0, 0, 5)),
        ] {
            assert_eq!(lost(reason), counted, "{reason:?}");
        }
    }
}
