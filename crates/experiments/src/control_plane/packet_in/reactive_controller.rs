//! A controller that does the work of a forwarding element for a switch.
//!
//! It learns the ports of stations, inspects payloads, or acts as a maintenance end point. Source: gelberger2013,
//! section II-C ("learning and searching tasks ... which OpenFlow shifts to the control plane").
//!
//! Invariants:
//!
//! - At most [`STATIONS_MAX`] stations are learned; frames to other stations are flooded.
//! - A frame too short for its addresses is dropped.

use std::collections::HashMap;

use openflow::model::{PortNo, reserved};
use packet::header::{ethernet, oam};

/// Maximum number of learned stations.
const STATIONS_MAX: usize = 1 << 16;

/// Size of an Ethernet address, in bytes.
const ADDRESS: usize = 6;

/// Payload patterns: names that the DNS server of a domain should not be queried for.
pub const PATTERNS: [&[u8]; 2] = [b"\x03bad\x07example", b"cryptopool"];

/// Size of the headers before the UDP payload, in bytes.
const BEFORE_PAYLOAD: usize = 14 + 20 + 8;

/// Inspected bytes of the UDP payload.
const DEPTH: usize = 512;

/// Tasks of the controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ControllerTask {
    /// Learns stations from their frames and forwards frames to their station.
    Learn,
    /// Forwards frames unless their payload contains a pattern.
    Inspect,
    /// Replies to loopback messages of Ethernet OAM.
    Answer,
}

/// Output of a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Output port.
    pub port: PortNo,
    /// Frame that replaces the original.
    pub instead: Option<Vec<u8>>,
}

/// Learned stations.
#[derive(Debug, Default)]
pub struct ReactiveController {
    stations: HashMap<[u8; ADDRESS], PortNo>,
}

impl ReactiveController {
    /// Decides the output of a frame received on this port; `None` drops the frame.
    pub fn decide(
        &mut self,
        task: ControllerTask,
        frame: &[u8],
        port_in: PortNo,
        onward: PortNo,
    ) -> Option<Decision> {
        let as_it_came = |port| Decision { port, instead: None };
        match task {
            ControllerTask::Learn => self.learned(frame, port_in).map(as_it_came),
            ControllerTask::Inspect => (!is_found(frame)).then_some(as_it_came(onward)),
            ControllerTask::Answer => {
                let instead = Some(answer(frame)?);
                Some(Decision { port: reserved::IN_PORT, instead })
            }
        }
    }

    fn learned(&mut self, frame: &[u8], port_in: PortNo) -> Option<PortNo> {
        let to: [u8; ADDRESS] = *frame.first_chunk()?;
        let from: [u8; ADDRESS] = *frame.get(ADDRESS..)?.first_chunk()?;
        if self.stations.len() < STATIONS_MAX || self.stations.contains_key(&from) {
            self.stations.insert(from, port_in);
        }
        let known = self.stations.get(&to).copied();
        let port = known.unwrap_or(reserved::FLOOD);
        (port != port_in).then_some(port)
    }
}

/// Builds the reply to an untagged loopback message for its sender (IEEE 802.1Q 20.2.2).
fn answer(frame: &[u8]) -> Option<Vec<u8>> {
    let view = ethernet::View::new(frame)?;
    let asked = view.payload().get(oam::OPCODE_AT) == Some(&oam::op::LBM);
    if !asked || view.type_or_length() != oam::ETHER_TYPE || ethernet::is_group(&view.source()) {
        return None;
    }
    let mut answer = frame.to_vec();
    answer[..ADDRESS].copy_from_slice(&view.source());
    answer[ADDRESS..2 * ADDRESS].copy_from_slice(&view.destination());
    answer[ethernet::HEADER_BYTES + oam::OPCODE_AT] = oam::op::LBR;
    Some(answer)
}

/// Returns whether the payload contains a pattern.
fn is_found(frame: &[u8]) -> bool {
    let carried = frame.get(BEFORE_PAYLOAD..).unwrap_or_default();
    let carried = &carried[..carried.len().min(DEPTH)];
    PATTERNS.iter().any(|pattern| carried.windows(pattern.len()).any(|it| it == *pattern))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(to: u8, from: u8, carried: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; BEFORE_PAYLOAD];
        bytes[..ADDRESS].fill(to);
        bytes[ADDRESS..2 * ADDRESS].fill(from);
        bytes.extend_from_slice(carried);
        bytes
    }

    #[test]
    fn a_station_is_at_the_port_of_its_last_frame() {
        let mut deciding = ReactiveController::default();
        let mut port = |to, from, port_in| {
            let decided = deciding.decide(ControllerTask::Learn, &frame(to, from, &[]), port_in, 9);
            decided.map(|it| it.port)
        };
        assert_eq!(port(2, 1, 1), Some(reserved::FLOOD));
        assert_eq!(port(1, 2, 2), Some(1));
        assert_eq!(port(2, 1, 1), Some(2));
        // The station moved. A frame whose destination is on its own port is dropped.
        assert_eq!(port(1, 2, 1), None);
        assert_eq!(port(2, 1, 3), Some(1));
        assert_eq!(deciding.decide(ControllerTask::Learn, &[1; 11], 1, 9), None, "too short");
    }

    #[test]
    fn a_frame_with_a_pattern_is_dropped() {
        let mut deciding = ReactiveController::default();
        let mut passes = |carried: &[u8]| {
            deciding.decide(ControllerTask::Inspect, &frame(2, 1, carried), 1, 2).is_some()
        };
        assert!(passes(b"www.example"));
        assert!(!passes(b"xx\x03bad\x07example"));
        assert!(!passes(b"cryptopool"));
        let mut deep = vec![b'.'; DEPTH];
        deep.extend_from_slice(b"cryptopool");
        assert!(passes(&deep), "beyond the inspected depth");
        assert!(passes(&[]));
    }

    #[test]
    fn only_loopback_messages_get_a_reply() {
        let mut deciding = ReactiveController::default();
        let mut decide = |frame: &[u8]| deciding.decide(ControllerTask::Answer, frame, 1, 2);
        let asked = |opcode| {
            let mut bytes = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x89, 2];
            bytes.extend(oam::loopback(5, opcode, 40));
            bytes
        };
        let decided = decide(&asked(3)).unwrap();
        let instead = decided.instead.unwrap();
        assert_eq!((decided.port, &instead[..6]), (reserved::IN_PORT, &[2, 0, 0, 0, 0, 1][..]));
        assert_eq!((&instead[6..12], &instead[12..]), (&asked(3)[..6], &asked(2)[12..]));
        assert_eq!(decide(&asked(2)), None, "a reply gets no reply");
        let mut from_a_group = asked(3);
        from_a_group[6] = 1;
        assert_eq!(decide(&from_a_group), None);
        let whole = asked(3);
        for cut in 0..16 {
            assert_eq!(decide(&whole[..cut]), None, "{cut}");
        }
        assert_eq!(decide(&frame(2, 1, &[3; 40])), None, "of another type");
    }
}
