//! Statistics triggers: unsolicited statistics when an entry's counters reach a limit.
//!
//! Source: OpenFlow switch specification 1.5.1, sections 5.5 and 7.2.4 (`OFPIT_STAT_TRIGGER`).
//! Frame and byte limits are checked when a frame matches, time limits when they are due.
//!
//! Invariant: each multiple of a limit is reported at most once; without `periodic`, only the first
//! is.

use packet::time::Nanos;

use super::lookup::CounterSums;
use super::{Flow, Tables};
use crate::forwarder::{Event, Outputs};
use crate::instruction::StatTrigger;

/// Number of times that each limit was reached and reported.
#[derive(Debug, Clone, Default)]
pub(super) struct ReportedTriggers {
    frames: u64,
    bytes: u64,
    age: u64,
    idle: u64,
    /// Time of the match from which `idle` counts.
    idle_since: Nanos,
}

impl ReportedTriggers {
    /// Whether to report a limit that was reached `before` times and is now reached `reached`
    /// times.
    fn due(&self, trigger: &StatTrigger, before: u64, reached: u64) -> bool {
        let any = self.frames | self.bytes | self.age | self.idle != 0;
        let first = if trigger.only_first && !trigger.periodic { !any } else { before == 0 };
        reached > before && (trigger.periodic || first)
    }
}

/// Returns how many times a limit fits into a count; zero for a limit of zero.
fn times(count: u64, limit: Option<u64>) -> u64 {
    limit.and_then(|limit| count.checked_div(limit)).unwrap_or(0)
}

/// Returns the time of the next multiple of `span` after `start`, when `times` multiples were
/// reached.
fn after(start: Nanos, span: Option<Nanos>, times: u64) -> Option<Nanos> {
    let span = span.filter(|span| *span != Nanos::ZERO)?;
    Some(start.saturating_add(Nanos(span.0.saturating_mul(times + 1))))
}

impl Flow {
    /// Records the limits that are reached, and returns whether to report them.
    fn reach(&mut self, entry: &CounterSums, now: Nanos) -> bool {
        let Some(trigger) = self.instructions.trigger else { return false };
        let (age, idle) = (now.since(self.created), now.since(entry.last_match));
        let told = self.told.get_or_insert_default();
        if trigger.periodic && told.idle_since != entry.last_match {
            (told.idle_since, told.idle) = (entry.last_match, 0);
        }
        let nanos = |span: Option<Nanos>| span.map(|span| span.0);
        let reached = [
            times(entry.frames, trigger.frames),
            times(entry.bytes, trigger.bytes),
            times(age.0, nanos(trigger.age)),
            times(idle.0, nanos(trigger.idle)),
        ];
        let before = [told.frames, told.bytes, told.age, told.idle];
        let event_queue = before
            .iter()
            .zip(reached)
            .any(|(before, reached)| told.due(&trigger, *before, reached));
        let most = |at: usize| before[at].max(reached[at]);
        [told.frames, told.bytes, told.age, told.idle] = [most(0), most(1), most(2), most(3)];
        event_queue
    }

    /// Returns when the next time limit that may need a report is reached.
    pub(super) fn trigger_due(&self, last_match: Nanos) -> Option<Nanos> {
        let trigger = self.instructions.trigger.as_ref()?;
        let told = self.told.as_deref().cloned().unwrap_or_default();
        let again = trigger.periodic && told.idle_since != last_match;
        let idle_told = if again { 0 } else { told.idle };
        let once = |told: u64| trigger.periodic || told == 0;
        let age = after(self.created, trigger.age, told.age).filter(|_| once(told.age));
        let idle = after(last_match, trigger.idle, idle_told).filter(|_| once(idle_told));
        age.into_iter().chain(idle).min()
    }
}

impl Tables {
    /// Reports an entry if its counters reached a limit of its trigger.
    pub(crate) fn look_at_trigger(&mut self, place: u32, now: Nanos, out: &mut Outputs) {
        self.reach_trigger(place, now);
        self.event_queue.tell(out);
    }

    pub(super) fn reach_trigger(&mut self, place: u32, now: Nanos) {
        let sums = self.sums(place);
        let flow = self.flows.get_mut(place);
        let reached = flow.is_some_and(|flow| flow.reach(&sums, now));
        let record = if reached { self.record(place as usize, now) } else { None };
        if let Some(flow) = record {
            self.event_queue.add(Event::FlowTriggered { flow: Box::new(flow) });
        }
    }
}
