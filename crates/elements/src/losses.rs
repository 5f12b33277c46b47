//! Reports of frames that ports lost, at most once a second for each port.
//!
//! Counters have every loss. The log names the port and the reasons while losses occur.

use netio::port::PortDrop;
use packet::time::Nanos;

use crate::event::Event;
use crate::forward::Lane;

/// Interval at which port counters are read.
const INTERVAL: Nanos = Nanos::from_secs(1);

/// Name of a drop reason of the port or the forwarding loop, and its counter.
type Lost = (&'static str, u64);

/// The losses that were reported so far.
#[derive(Debug, Default)]
pub struct LossReport {
    due: Nanos,
    /// Counters of each lane at the last reading, in the order of the lanes.
    known: Vec<Vec<Lost>>,
}

impl LossReport {
    /// Adds an event for each port that lost frames since the last reading, at most once a second.
    /// Frames that a port drops on purpose are not reported. Frames for a port that is down are not
    /// either, as that is a separate event.
    #[inline]
    pub fn report(&mut self, lanes: &mut [Lane], events: &mut Vec<Event>, now: Nanos) {
        if now >= self.due {
            self.due = now.saturating_add(INTERVAL);
            self.compare(lanes, events);
        }
    }

    fn compare(&mut self, lanes: &mut [Lane], events: &mut Vec<Event>) {
        self.known.resize(lanes.len(), Vec::new());
        for (lane, known) in lanes.iter_mut().zip(&mut self.known) {
            let lost = lost(lane);
            let before = |reason| {
                known.iter().find(|(name, _)| *name == reason).map_or(0, |&(_, frames)| frames)
            };
            let more =
                lost.iter().map(|&(name, frames)| (name, frames.saturating_sub(before(name))));
            let more: Vec<Lost> = more.filter(|&(_, frames)| frames > 0).collect();
            if !more.is_empty() {
                events.push(Event::FramesLost(lane.number, more));
            }
            *known = lost;
        }
    }
}

fn lost(lane: &mut Lane) -> Vec<Lost> {
    let drops = lane.port.counters().drops;
    let drops = drops.iter().filter(|(reason, _)| *reason != PortDrop::InjectedLoss);
    let mut lost: Vec<Lost> = drops.map(|&(reason, frames)| (reason.name(), frames)).collect();
    lost.push(("transmit_full", lane.drops.transmit_full));
    lost
}

#[cfg(test)]
pub(crate) mod tests {
    use netio::port::{Port, PortCounters, PortError, PortFacts};
    use packet::frame::Batch;
    use packet::time::Clock;

    use super::*;

    /// A port that carries no frames and has the counters of a test.
    pub(crate) struct Counting(pub(crate) PortCounters, PortFacts);

    impl Counting {
        pub(crate) fn lane(number: u32, drops: &[(PortDrop, u64)]) -> Lane {
            let facts = PortFacts {
                name: "counting".into(),
                kind: "counting",
                mac: [0; 6],
                frame_bytes_max: 1514,
                stamps: Clock::Virtual,
            };
            let counters = PortCounters { drops: drops.to_vec(), ..PortCounters::default() };
            Lane::new(number, Box::new(Counting(counters, facts)))
        }
    }

    impl Port for Counting {
        fn facts(&self) -> &PortFacts {
            &self.1
        }

        fn receive(&mut self, _: &mut Batch, _: Nanos) -> Result<usize, PortError> {
            Ok(0)
        }

        fn transmit(&mut self, _: &mut Batch, _: Nanos) -> Result<usize, PortError> {
            Ok(0)
        }

        fn counters(&mut self) -> PortCounters {
            self.0.clone()
        }
    }

    fn reported(report: &mut LossReport, lanes: &mut [Lane], at_ms: u64) -> Vec<String> {
        let mut events = Vec::new();
        report.report(lanes, &mut events, Nanos::from_millis(at_ms));
        events.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_port_that_loses_frames_is_reported_once_per_second() {
        use PortDrop::{InjectedLoss, ReceiveInvalid, ReceiveTooLong};
        let nothing: [String; 0] = [];
        let mut report = LossReport::default();
        let lost = [(ReceiveTooLong, 3), (InjectedLoss, 9), (ReceiveInvalid, 1)];
        let mut lanes = [Counting::lane(1, &[]), Counting::lane(2, &lost)];
        lanes[0].drops.transmit_full = 5;
        let both = [
            "port 1: 5 frames lost: transmit_full 5",
            "port 2: 4 frames lost: receive_too_long 3, receive_invalid 1",
        ];
        assert_eq!(reported(&mut report, &mut lanes, 0), both);
        lanes[0].drops.transmit_full = 7;
        assert_eq!(reported(&mut report, &mut lanes, 999), nothing);
        lanes[0].drops.transmit_full = 8;
        let more = ["port 1: 3 frames lost: transmit_full 3"];
        assert_eq!(reported(&mut report, &mut lanes, 1000), more);
        assert_eq!(reported(&mut report, &mut lanes, 5000), nothing);
    }
}
