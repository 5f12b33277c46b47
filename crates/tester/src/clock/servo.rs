//! Clock servo: a second-order digital loop that follows a reference clock.
//!
//! Each reading of both clocks corrects the phase by a share of the difference, and the rate by a
//! smaller share (proportional and integral part). So offset and drift vanish, and the scatter of
//! single readings is filtered. The loop only computes: it does not adjust the kernel's clock. The
//! residuals of the readings determine the error.

use std::collections::VecDeque;

use os::clock::reference::ClockReading;
use packet::time::Nanos;

/// Share of a difference that corrects the phase.
const PROPORTIONAL: f64 = 0.3;

/// Share of a difference that corrects the rate. With the proportional part, the damping ratio is
/// 0.67.
const INTEGRAL: f64 = 0.05;

/// Number of readings whose scatter is the error.
const WINDOW: usize = 16;

/// Number of readings until the loop is settled.
const SETTLING: u64 = 24;

/// Factor from scatter to stated error: one reading in several hundred exceeds it.
const SPREADS: f64 = 3.0;

/// A reading with a residual above this many errors is an outlier and ignored.
const OUTLIER_ERRORS: f64 = 8.0;

/// Consecutive outliers that restart the loop: the reference itself was set.
const OUTLIERS_MAX: u32 = 4;

/// Maximum rate error of a clock, as a fraction.
const RATE_MAX: f64 = 1e-3;

/// A clock that follows a reference.
#[derive(Debug, Clone, Default)]
pub struct Discipline {
    /// Last reading: local time, reference time, and the fraction of a nanosecond to add to the
    /// latter.
    base: Option<(Nanos, Nanos, f64)>,
    /// Rate of the reference relative to this clock, minus 1.
    rate: f64,
    edges: u64,
    outliers: u32,
    ignored: u64,
    residuals_ns: VecDeque<f64>,
    reading_error: Nanos,
}

impl Discipline {
    /// Creates a servo without any reading.
    pub fn new() -> Self {
        Discipline::default()
    }

    /// Adds a reading of both clocks. An implausible reading is counted and otherwise ignored.
    pub fn meet(&mut self, edge: &ClockReading) {
        let Some((local, reference, _)) = self.base else {
            return self.start(edge);
        };
        if edge.local <= local {
            self.ignored += 1;
            return;
        }
        let span = edge.local.since(local).0 as f64;
        if self.edges == 1 {
            let gained = edge.reference.0 as i128 - reference.0 as i128;
            let rate = gained as f64 / span - 1.0;
            if rate.abs() > RATE_MAX {
                return self.start(edge);
            }
            self.rate = rate;
            self.base = Some((edge.local, edge.reference, 0.0));
            self.edges = 2;
            return;
        }
        let (predicted, part) = self.predict(edge.local).expect("the base was set");
        let residual = (edge.reference.0 as i128 - predicted.0 as i128) as f64 - part;
        let limit = OUTLIER_ERRORS * self.spread().max(edge.error.0 as f64 + 1.0);
        if self.is_settled() && residual.abs() > limit {
            self.ignored += 1;
            self.outliers += 1;
            if self.outliers >= OUTLIERS_MAX {
                self.start(edge);
            }
            return;
        }
        self.outliers = 0;
        self.edges += 1;
        self.reading_error = edge.error;
        self.residuals_ns.push_back(residual);
        if self.residuals_ns.len() > WINDOW {
            self.residuals_ns.pop_front();
        }
        self.base = Some((edge.local, predicted, part + PROPORTIONAL * residual));
        self.rate = (self.rate + INTEGRAL * residual / span).clamp(-RATE_MAX, RATE_MAX);
    }

    /// Returns the reference's time at a local time. None before the second reading.
    pub fn reference(&self, local: Nanos) -> Option<Nanos> {
        let (whole, part) = self.predict(local).filter(|_| self.edges >= 2)?;
        Some(Nanos((whole.0 as i64).saturating_add(part.round() as i64) as u64))
    }

    /// Returns the offset of the reference from this clock, in nanoseconds (positive if ahead).
    pub fn offset_ns(&self, local: Nanos) -> Option<i128> {
        self.reference(local).map(|at| at.0 as i128 - local.0 as i128)
    }

    /// Returns the error bound of [`Discipline::reference`] at a local time, in nanoseconds.
    ///
    /// It grows with the time since the last reading. None before the loop is settled.
    pub fn error_ns(&self, local: Nanos) -> Option<f64> {
        let (met, ..) = self.base.filter(|_| self.is_settled())?;
        let age_s = local.since(met).as_secs_f64().max(1.0);
        Some(SPREADS * self.spread() * age_s + self.reading_error.0 as f64 + 1.0)
    }

    /// Returns the rate of the reference relative to this clock, minus 1, in parts per 10^9.
    pub fn ppb(&self) -> f64 {
        self.rate * 1e9
    }

    /// Returns the number of accepted and of ignored readings.
    pub fn readings(&self) -> (u64, u64) {
        (self.edges, self.ignored)
    }

    fn is_settled(&self) -> bool {
        self.edges >= SETTLING
    }

    fn start(&mut self, edge: &ClockReading) {
        let ignored = self.ignored;
        let base = Some((edge.local, edge.reference, 0.0));
        let reading_error = edge.error;
        *self = Discipline { base, edges: 1, ignored, reading_error, ..Discipline::default() };
    }

    /// Returns the reference's time in whole nanoseconds and the remaining fraction.
    fn predict(&self, local: Nanos) -> Option<(Nanos, f64)> {
        let (at, reference, part) = self.base?;
        let span = local.0 as i64 - at.0 as i64;
        let gained = part + self.rate * span as f64;
        let whole = gained.floor();
        let nanos = reference.0 as i64 + span + whole as i64;
        Some((Nanos(nanos.max(0) as u64), gained - whole))
    }

    /// Returns the scatter of the last residuals, in nanoseconds.
    fn spread(&self) -> f64 {
        let squares: f64 = self.residuals_ns.iter().map(|ns| ns * ns).sum();
        (squares / self.residuals_ns.len().max(1) as f64).sqrt()
    }
}

#[cfg(test)]
mod tests;
