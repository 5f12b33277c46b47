//! Events that are watched, and how often they are told.
//!
//! A watch names an event of an instance and may ask for at most one report in an interval, for one of
//! so many events, or for those that bring a value over a threshold (RFC 5812 section 4.8.5). Several
//! of these hold together.

use packet::time::Nanos;

use crate::lfb::Happening;
use crate::program::{self, Program, Source};

/// An event that is told.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// What happened.
    pub happening: Happening,
    /// Events of this kind that were not told since the last report.
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
    /// The instance's name, by which a watch of the next program is the same.
    name: String,
    event: u32,
    pace: Pace,
}

/// How often an event is told, and when it was.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pace {
    interval: Option<Nanos>,
    count: Option<u32>,
    threshold: Option<u32>,
    told_at: Option<Nanos>,
    /// Events since the last report.
    since: u64,
    was_above: bool,
}

impl Pace {
    /// As a program asks for it.
    pub(crate) fn of(watch: &program::Watch) -> Pace {
        Pace {
            interval: watch.interval_ms.map(|ms| Nanos::from_millis(ms.into())),
            count: watch.count,
            threshold: watch.threshold,
            ..Pace::default()
        }
    }

    /// Keeps what one before it knows.
    pub(crate) fn keep(&mut self, old: &Pace) {
        (self.told_at, self.since, self.was_above) = (old.told_at, old.since, old.was_above);
    }

    /// Whether an event, which may bring a value, is told, and then how many before it were not.
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
    /// The watches of a program's blocks; those of agents are the dispatcher's.
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

    /// Goes on with other watches; those that are as before keep what they know.
    pub fn become_like(&mut self, other: Watching) {
        let olds = std::mem::replace(self, other).watches;
        for watch in &mut self.watches {
            let same = |old: &&Watch| (&old.name, old.event) == (&watch.name, watch.event);
            if let Some(old) = olds.iter().find(same) {
                watch.pace.keep(&old.pace);
            }
        }
    }

    /// The report of an event, if its watch wants one now.
    pub fn report(&mut self, happening: Happening) -> Option<Report> {
        let watched = |watch: &&mut Watch| {
            (watch.instance, watch.event) == (happening.instance, happening.event)
        };
        let watch = self.watches.iter_mut().find(watched)?;
        let value = happening.reports.first().and_then(|(_, value)| value.unsigned());
        let untold = watch.pace.told(happening.at, value)?;
        Some(Report { happening, untold })
    }
}
