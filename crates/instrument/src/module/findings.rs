//! What a module found: records of a log, numbers with their resolution, and rows of points.
//!
//! The names and units are the module's; whoever stores them gives them their place in a record.
//! Invariant: a module that finds without end fills no memory: the limits here have names.

use std::borrow::Cow;

use packet::time::Nanos;
use results::record::{Bound, BoundCause, BoundSide};

/// Records in a module's log.
pub const LOG_ENTRIES_MAX: usize = 1 << 18;

/// Values of one record.
pub const LOG_VALUES_MAX: usize = 32;

/// Numbers that a module tells.
pub const MEASURED_MAX: usize = 1 << 12;

/// Rows of points that a module tells.
pub const SERIES_MAX: usize = 64;

/// Points of all rows together.
pub const SERIES_POINTS_MAX: usize = 1 << 20;

/// A name or text, mostly one that the program holds.
pub type Name = Cow<'static, str>;

/// A record of the log.
#[derive(Debug, Clone, PartialEq)]
pub struct LogEntry {
    /// When, on the stage's clock.
    pub at: Nanos,
    /// What it tells of.
    pub name: Name,
    /// What it says, the unit in each name.
    pub values: Vec<(Name, Value)>,
}

/// A value of a record.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A whole number.
    Count(u64),
    /// Any number.
    Number(f64),
    /// A moment or a span in nanoseconds.
    Nanos(Nanos),
    /// Whether.
    Is(bool),
    /// Words.
    Text(Name),
}

/// A number that was measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// What it is, its unit at the end: `barrier_delay_ns_median`.
    pub name: Name,
    /// Its unit.
    pub unit: Name,
    /// The number.
    pub value: f64,
    /// How far the truth may be from it, in the same unit: the resolution of the probes or half an
    /// interval. None where nobody knows.
    pub half_width: Option<f64>,
    /// Of how many things it tells.
    pub count: u64,
    /// On which side it only bounds the true value.
    pub bound: Option<Bound>,
    /// What to know before believing it.
    pub note: Option<Name>,
}

/// A row of points.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// What is over the other.
    pub name: Name,
    /// Its unit.
    pub unit: Name,
    /// What it is over.
    pub x_name: Name,
    /// The unit of that.
    pub x_unit: Name,
    /// The points: x, then y.
    pub points: Vec<(f64, f64)>,
}

/// All that a module found, within the limits.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    log: Vec<LogEntry>,
    measured: Vec<Measured>,
    series: Vec<Series>,
    points: usize,
    /// Limits that were reached, and by how much.
    limits: Vec<(&'static str, u64)>,
    /// Those that the module has been told of.
    told: usize,
}

impl Measured {
    /// A number of which is known how far off it may be.
    pub fn new(name: impl Into<Name>, unit: impl Into<Name>, value: f64, half_width: f64) -> Self {
        let half_width = Some(half_width);
        let (name, unit) = (name.into(), unit.into());
        Measured { name, unit, value, half_width, count: 1, bound: None, note: None }
    }

    /// The same of so many things.
    #[must_use]
    pub fn of(self, count: u64) -> Self {
        Measured { count, ..self }
    }

    /// The same as a lower bound of the true value, for this cause and with a note.
    #[must_use]
    pub fn at_least(self, cause: BoundCause, note: impl Into<Name>) -> Self {
        let bound = Some(Bound { side: BoundSide::Lower, cause });
        Measured { bound, ..self.noting(note) }
    }

    /// The same with what to know before believing it.
    #[must_use]
    pub fn noting(self, note: impl Into<Name>) -> Self {
        Measured { note: Some(note.into()), ..self }
    }
}

impl Findings {
    pub fn log(&mut self, mut entry: LogEntry) {
        if entry.values.len() > LOG_VALUES_MAX {
            entry.values.truncate(LOG_VALUES_MAX);
            self.beyond("LOG_VALUES_MAX");
        }
        match self.log.len() < LOG_ENTRIES_MAX {
            true => self.log.push(entry),
            false => self.beyond("LOG_ENTRIES_MAX"),
        }
    }

    pub fn measured(&mut self, measured: Measured) {
        match self.measured.len() < MEASURED_MAX {
            true => self.measured.push(measured),
            false => self.beyond("MEASURED_MAX"),
        }
    }

    pub fn series(&mut self, mut series: Series) {
        if self.series.len() == SERIES_MAX {
            return self.beyond("SERIES_MAX");
        }
        let room = SERIES_POINTS_MAX - self.points;
        if series.points.len() > room {
            self.beyond_by("SERIES_POINTS_MAX", (series.points.len() - room) as u64);
            series.points.truncate(room);
        }
        self.points += series.points.len();
        self.series.push(series);
    }

    /// One thing more than a limit allows.
    pub fn beyond(&mut self, limit: &'static str) {
        self.beyond_by(limit, 1);
    }

    /// So many things more than a limit allows.
    pub fn beyond_by(&mut self, limit: &'static str, count: u64) {
        match self.limits.iter_mut().find(|(name, _)| *name == limit) {
            Some((_, beyond)) => *beyond += count,
            None => self.limits.push((limit, count)),
        }
    }

    /// A limit that the module has not been told of.
    pub fn take_untold(&mut self) -> Option<&'static str> {
        let (name, _) = self.limits.get(self.told)?;
        self.told += 1;
        Some(name)
    }

    /// The limits that were reached, and by how much.
    #[cfg(test)]
    pub fn limits(&self) -> &[(&'static str, u64)] {
        &self.limits
    }

    /// Log, numbers, rows, and limits that were reached.
    #[allow(clippy::type_complexity, reason = "taken apart where it is called")]
    pub fn take(self) -> (Vec<LogEntry>, Vec<Measured>, Vec<Series>, Vec<(&'static str, u64)>) {
        (self.log, self.measured, self.series, self.limits)
    }
}

impl From<u64> for Value {
    fn from(count: u64) -> Self {
        Value::Count(count)
    }
}

impl From<u32> for Value {
    fn from(count: u32) -> Self {
        Value::Count(count.into())
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Value::Number(number)
    }
}

impl From<Nanos> for Value {
    fn from(span: Nanos) -> Self {
        Value::Nanos(span)
    }
}

impl From<bool> for Value {
    fn from(is: bool) -> Self {
        Value::Is(is)
    }
}

impl From<&'static str> for Value {
    fn from(text: &'static str) -> Self {
        Value::Text(text.into())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Value::Text(text.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_found_is_bounded_and_what_is_beyond_is_counted() {
        let mut findings = Findings::default();
        let entry = LogEntry { at: Nanos(1), name: "x".into(), values: Vec::new() };
        (0..LOG_ENTRIES_MAX + 2).for_each(|_| findings.log(entry.clone()));
        let row = |points| Series {
            name: "y".into(),
            unit: "ns".into(),
            x_name: "x".into(),
            x_unit: "1".into(),
            points: vec![(0.0, 0.0); points],
        };
        findings.series(row(SERIES_POINTS_MAX - 1));
        findings.series(row(5));
        let reached = [("LOG_ENTRIES_MAX", 2), ("SERIES_POINTS_MAX", 4)];
        assert_eq!(findings.limits(), reached);
        let told: Vec<_> = std::iter::from_fn(|| findings.take_untold()).collect();
        assert_eq!(told, ["LOG_ENTRIES_MAX", "SERIES_POINTS_MAX"]);
        let (log, _, series, _) = findings.take();
        assert_eq!((log.len(), series[1].points.len()), (LOG_ENTRIES_MAX, 1));
    }
}
