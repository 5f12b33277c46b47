//! Reports frames that ports lost, at most once a second for each port.
//!
//! The counters have every loss; the log names the port and the reasons while it happens.

use packet::time::Nanos;
use ports::port::PortDrop;

use crate::event::Event;
use crate::forward::Lane;

/// How often ports are asked.
const INTERVAL: Nanos = Nanos::from_secs(1);

/// A reason that the port or the forward loop counts, as it is called in counters.
type Lost = (&'static str, u64);

/// What was reported already.
#[derive(Debug, Default)]
pub struct LossReport {
    due: Nanos,
    /// What each lane had lost when it was last asked, in the order of the lanes.
    known: Vec<Vec<Lost>>,
}

impl LossReport {
    /// Adds an event for each port that lost frames since it was last asked, if that was a second
    /// ago or more. Frames that a port loses on purpose, and those for a port that is down, which
    /// is an event of its own, are left out.
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
