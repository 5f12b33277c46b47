//! Watched events and their report rate.
//!
//! A watch names an event of an instance. It may limit reports (RFC 5812 section 4.8.5):
//!
//! - to one per interval,
//! - to one per number of events,
//! - to events whose value crosses a threshold.
//!
//! The limits can be combined.

use forces::association::Happening;
use packet::time::Nanos;

use crate::lfb::LfbEvent;
use crate::program::{self, Program, Source};

/// A reported event.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The event.
    pub happening: LfbEvent,
    /// Number of events of this kind that were suppressed since the last report.
    pub untold: u64,
}

/// All watches of a program.
#[derive(Debug, Clone, Default)]
pub struct Watching {
    watches: Vec<Watch>,
}

#[derive(Debug, Clone)]
struct Watch {
    instance: usize,
    /// Name of the instance, which identifies the same watch in the next program.
    name: String,
    event: u32,
    pace: Pace,
}

/// Report rate of an event, and the time of the last report.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pace {
    interval: Option<Nanos>,
    count: Option<u32>,
    threshold: Option<u32>,
    told_at: Option<Nanos>,
    /// Number of events since the last report.
    since: u64,
    was_above: bool,
}

impl Pace {
    /// Creates the state from a watch of a program.
    pub(crate) fn of(watch: &program::Watch) -> Pace {
        Pace {
            interval: watch.interval_ms.map(|ms| Nanos::from_millis(ms.into())),
            count: watch.count,
            threshold: watch.threshold,
            ..Pace::default()
        }
    }

    /// Takes over the state of a previous watch.
    pub(crate) fn keep(&mut self, old: &Pace) {
        (self.told_at, self.since, self.was_above) = (old.told_at, old.since, old.was_above);
    }

    /// Decides whether to report an event, with its value if any. Returns the number of events
    /// suppressed before it.
    pub(crate) fn told(&mut self, at: Nanos, value: Option<u64>) -> Option<u64> {
        if let Some(threshold) = self.threshold {
            let is_above = value.is_some_and(|value| value > threshold.into());
            let crosses = is_above && !self.was_above;
            self.was_above = is_above;
            if !crosses {
                return None;
            }
        }
        self.since += 1;
        let early = |interval: Nanos| self.told_at.is_some_and(|told| at.since(told) < interval);
        let few = self.count.is_some_and(|count| self.since < count.into());
        if few || self.interval.is_some_and(early) {
            return None;
        }
        self.told_at = Some(at);
        Some(std::mem::take(&mut self.since) - 1)
    }
}

impl Watching {
    /// Returns the watches of a program's blocks. The dispatcher has those of agents.
    pub fn of(program: &Program) -> Watching {
        let watches = program.watches.iter().filter_map(|watch| {
            let Source::Instance(instance) = watch.source else { return None };
            Some(Watch {
                instance,
                name: program.instances[instance].name.clone(),
                event: program.class_of(instance).event(&watch.event)?.id,
                pace: Pace::of(watch),
            })
        });
        Watching { watches: watches.collect() }
    }

    /// Switches to other watches. Unchanged watches retain their state.
    pub fn become_like(&mut self, other: Watching) {
        let olds = std::mem::replace(self, other).watches;
        for watch in &mut self.watches {
            let same = |old: &&Watch| (&old.name, old.event) == (&watch.name, watch.event);
            if let Some(old) = olds.iter().find(same) {
                watch.pace.keep(&old.pace);
            }
        }
    }

    /// Returns a report of an event if its watch requires one now.
    pub fn report(&mut self, happening: LfbEvent) -> Option<Report> {
        let watched = |watch: &&mut Watch| {
            (watch.instance, watch.event) == (happening.instance, happening.event)
        };
        let watch = self.watches.iter_mut().find(watched)?;
        let value = happening.reports.first().and_then(|(_, value)| value.unsigned());
        let untold = watch.pace.told(happening.at, value)?;
        Some(Report { happening, untold })
    }
}

/// Converts an event for an association. Returns none if the instance no longer exists.
pub(super) fn happening(program: &Program, it: &LfbEvent) -> Option<Happening> {
    let instance = program.instances.get(it.instance)?;
    let value = it.reports.first().map(|(_, value)| value.clone());
    Some(Happening {
        class: instance.class,
        instance: instance.number,
        event: it.event,
        subscripts: it.rows.clone(),
        value,
        reported: it.reports.iter().map(|(_, value)| value.clone()).collect(),
    })
}
