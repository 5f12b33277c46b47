//! Results of a module: log entries, measured values with their resolution, and series.
//!
//! The module chooses names and units. The code that stores them assigns their place in a record.
//!
//! Invariant: the named limits here bound memory, however much a module reports.

use std::borrow::Cow;

use packet::time::Nanos;
use record::{Bound, BoundCause, BoundSide};

/// Maximum number of log entries.
pub const LOG_ENTRIES_MAX: usize = 1 << 18;

/// Maximum number of values in a log entry.
pub const LOG_VALUES_MAX: usize = 32;

/// Maximum number of measured values.
pub const MEASURED_MAX: usize = 1 << 12;

/// Maximum number of series.
pub const SERIES_MAX: usize = 64;

/// Maximum number of points in all series together.
pub const SERIES_POINTS_MAX: usize = 1 << 20;

/// A name or text, mostly static.
pub type Name = Cow<'static, str>;

/// A log entry.
#[derive(Debug, Clone, PartialEq)]
pub struct LogEntry {
    /// Time on the event loop's clock.
    pub at: Nanos,
    /// Name of the event.
    pub name: Name,
    /// Named values. Each name includes the unit.
    pub values: Vec<(Name, Value)>,
}

/// A value in a log entry.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A whole number.
    Count(u64),
    /// Any number.
    Number(f64),
    /// A time or duration in nanoseconds.
    Nanos(Nanos),
    /// A boolean.
    Is(bool),
    /// A text.
    Text(Name),
}

/// A measured value.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredValue {
    /// Name that ends with the unit, for example `barrier_delay_ns_median`.
    pub name: Name,
    /// Unit.
    pub unit: Name,
    /// The value.
    pub value: f64,
    /// Half width of the uncertainty, in the same unit: the probes' resolution or half a confidence
    /// interval. None if unknown.
    pub half_width: Option<f64>,
    /// Number of observations.
    pub count: u64,
    /// Whether the value is only a lower or upper bound, and why.
    pub bound: Option<Bound>,
    /// Caveat about the value.
    pub note: Option<Name>,
}

/// A series of points.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Name of the y values.
    pub name: Name,
    /// Unit of the y values.
    pub unit: Name,
    /// Name of the x values.
    pub x_name: Name,
    /// Unit of the x values.
    pub x_unit: Name,
    /// The points (x, y).
    pub points: Vec<(f64, f64)>,
}

/// All results of a module, within the limits.
#[derive(Debug, Default)]
pub(crate) struct ModuleResults {
    log: Vec<LogEntry>,
    measured: Vec<MeasuredValue>,
    series: Vec<Series>,
    points: usize,
    /// Limits that were reached, and by how much.
    limits: Vec<(&'static str, u64)>,
    /// Number of limits already reported to the module.
    told: usize,
}

impl MeasuredValue {
    /// A value with known uncertainty.
    pub fn new(name: impl Into<Name>, unit: impl Into<Name>, value: f64, half_width: f64) -> Self {
        let half_width = Some(half_width);
        let (name, unit) = (name.into(), unit.into());
        MeasuredValue { name, unit, value, half_width, count: 1, bound: None, note: None }
    }

    /// Sets the number of observations.
    #[must_use]
    pub fn of(self, count: u64) -> Self {
        MeasuredValue { count, ..self }
    }

    /// Marks the value as a lower bound, with cause and note.
    #[must_use]
    pub fn at_least(self, cause: BoundCause, note: impl Into<Name>) -> Self {
        let bound = Some(Bound { side: BoundSide::Lower, cause });
        MeasuredValue { bound, ..self.noting(note) }
    }

    /// Adds a caveat.
    #[must_use]
    pub fn noting(self, note: impl Into<Name>) -> Self {
        MeasuredValue { note: Some(note.into()), ..self }
    }
}

impl ModuleResults {
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

    pub fn measured(&mut self, measured: MeasuredValue) {
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

    /// Counts one item beyond a limit.
    pub fn beyond(&mut self, limit: &'static str) {
        self.beyond_by(limit, 1);
    }

    /// Counts this many items beyond a limit.
    pub fn beyond_by(&mut self, limit: &'static str, count: u64) {
        match self.limits.iter_mut().find(|(name, _)| *name == limit) {
            Some((_, beyond)) => *beyond += count,
            None => self.limits.push((limit, count)),
        }
    }

    /// Returns the next limit that the module has not been notified of.
    pub fn take_untold(&mut self) -> Option<&'static str> {
        let (name, _) = self.limits.get(self.told)?;
        self.told += 1;
        Some(name)
    }

    /// Returns the limits that were reached, and by how much.
    #[cfg(test)]
    pub fn limits(&self) -> &[(&'static str, u64)] {
        &self.limits
    }

    /// Returns log, measured values, series, and limits that were reached.
    #[allow(clippy::type_complexity, reason = "the caller destructures the tuple")]
    pub fn take(
        self,
    ) -> (Vec<LogEntry>, Vec<MeasuredValue>, Vec<Series>, Vec<(&'static str, u64)>) {
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
    fn findings_are_limited_and_the_excess_is_counted() {
        let mut findings = ModuleResults::default();
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
        let reported: Vec<_> = std::iter::from_fn(|| findings.take_untold()).collect();
        assert_eq!(reported, ["LOG_ENTRIES_MAX", "SERIES_POINTS_MAX"]);
        let (log, _, series, _) = findings.take();
        assert_eq!((log.len(), series[1].points.len()), (LOG_ENTRIES_MAX, 1));
    }
}
