//! Reports of frames that ports lost, at most once a second for each port.
//!
//! Counters have every loss. The log names the port and the reasons while losses occur.

use netio::port::PortDrop;
use packet::time::Nanos;

use crate::event::Event;
use crate::forward::ForwardPort;

/// Interval at which port counters are read.
const INTERVAL: Nanos = Nanos::from_secs(1);

/// Name of a drop reason of the port or the forwarding loop, and its counter.
type DropCount = (&'static str, u64);

/// The losses that were reported so far.
#[derive(Debug, Default)]
pub struct LossReport {
    due: Nanos,
    /// Counters of each port at the last reading, in the order of the ports.
    known: Vec<Vec<DropCount>>,
}

impl LossReport {
    /// Adds an event for each port that lost frames since the last reading, at most once a second.
    /// Frames that a port drops on purpose are not reported. Frames for a port that is down are not
    /// either, as that is a separate event.
    #[inline]
    pub fn report(
        &mut self,
        forward_ports: &mut [ForwardPort],
        events: &mut Vec<Event>,
        now: Nanos,
    ) {
        if now >= self.due {
            self.due = now.saturating_add(INTERVAL);
            self.compare(forward_ports, events);
        }
    }

    fn compare(&mut self, forward_ports: &mut [ForwardPort], events: &mut Vec<Event>) {
        self.known.resize(forward_ports.len(), Vec::new());
        for (forward_port, known) in forward_ports.iter_mut().zip(&mut self.known) {
            let lost = lost(forward_port);
            let before = |reason| {
                known.iter().find(|(name, _)| *name == reason).map_or(0, |&(_, frames)| frames)
            };
            let more =
                lost.iter().map(|&(name, frames)| (name, frames.saturating_sub(before(name))));
            let more: Vec<DropCount> = more.filter(|&(_, frames)| frames > 0).collect();
            if !more.is_empty() {
                events.push(Event::FramesLost(forward_port.number, more));
            }
            *known = lost;
        }
    }
}

fn lost(forward_port: &mut ForwardPort) -> Vec<DropCount> {
    let drops = forward_port.port.counters().drops;
    let drops = drops.iter().filter(|(reason, _)| *reason != PortDrop::InjectedLoss);
    let mut lost: Vec<DropCount> = drops.map(|&(reason, frames)| (reason.name(), frames)).collect();
    lost.push(("transmit_full", forward_port.drops.transmit_full));
    lost
}

#[cfg(test)]
pub(crate) mod tests {
    use netio::port::{Port, PortCounters, PortError, PortFacts};
    use packet::frame::Batch;
    use packet::time::Clock;

    use super::*;

    /// A port that carries no frames and has the counters of a test.
    pub(crate) struct CountingPort(pub(crate) PortCounters, PortFacts);

    impl CountingPort {
        pub(crate) fn forward_port(number: u32, drops: &[(PortDrop, u64)]) -> ForwardPort {
            let facts = PortFacts {
                name: "counting".into(),
                kind: "counting",
                mac: [0; 6],
                frame_bytes_max: 1514,
                stamps: Clock::Virtual,
            };
            let counters = PortCounters { drops: drops.to_vec(), ..PortCounters::default() };
            ForwardPort::new(number, Box::new(CountingPort(counters, facts)))
        }
    }

    impl Port for CountingPort {
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

    fn reported(
        report: &mut LossReport,
        forward_ports: &mut [ForwardPort],
        at_ms: u64,
    ) -> Vec<String> {
        let mut events = Vec::new();
        report.report(forward_ports, &mut events, Nanos::from_millis(at_ms));
        events.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_port_that_loses_frames_is_reported_once_per_second() {
        use PortDrop::{InjectedLoss, ReceiveInvalid, ReceiveTooLong};
        let nothing: [String; 0] = [];
        let mut report = LossReport::default();
        let lost = [(ReceiveTooLong, 3), (InjectedLoss, 9), (ReceiveInvalid, 1)];
        let mut forward_ports =
            [CountingPort::forward_port(1, &[]), CountingPort::forward_port(2, &lost)];
        forward_ports[0].drops.transmit_full = 5;
        let both = [
            "port 1: 5 frames lost: transmit_full 5",
            "port 2: 4 frames lost: receive_too_long 3, receive_invalid 1",
        ];
        assert_eq!(reported(&mut report, &mut forward_ports, 0), both);
        forward_ports[0].drops.transmit_full = 7;
        assert_eq!(reported(&mut report, &mut forward_ports, 999), nothing);
        forward_ports[0].drops.transmit_full = 8;
        let more = ["port 1: 3 frames lost: transmit_full 3"];
        assert_eq!(reported(&mut report, &mut forward_ports, 1000), more);
        assert_eq!(reported(&mut report, &mut forward_ports, 5000), nothing);
    }
}
