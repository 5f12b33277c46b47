//! The tester's clock made to follow a reference: a digital loop of second order.
//!
//! At each moment that both clocks know, a share of the difference is taken out of the phase, and a smaller
//! share goes into the rate (proportional and integral part), so that an offset and a drift both
//! vanish and the scatter of single readings does not come through. The loop only computes: the
//! kernel's clock is left as it is. What is left at each reading tells the error.

use std::collections::VecDeque;

use packet::time::Nanos;
use ports::clock::reference::Edge;

/// Share of a difference that is taken out of the phase.
const PROPORTIONAL: f64 = 0.3;

/// Share that goes into the rate. With the proportional part the loop is damped by 0.67.
const INTEGRAL: f64 = 0.05;

/// Readings whose scatter is the error.
const WINDOW: usize = 16;

/// Readings after which the loop has come to rest.
const SETTLING: u64 = 24;

/// So many times the scatter is stated: one reading in several hundred lies beyond.
const SPREADS: f64 = 3.0;

/// A reading so many errors away is not believed...
const OUTLIER_ERRORS: f64 = 8.0;

/// ...unless so many follow each other: then the reference itself has been set.
const OUTLIERS_MAX: u32 = 4;

/// No clock goes wrong by more than this, parts in one.
const RATE_MAX: f64 = 1e-3;

/// A clock that follows a reference.
#[derive(Debug, Clone, Default)]
pub struct Discipline {
    /// A moment by both clocks, and what the latter lacks, in nanoseconds.
    base: Option<(Nanos, Nanos, f64)>,
    /// By how much the reference goes faster than this clock.
    rate: f64,
    edges: u64,
    outliers: u32,
    ignored: u64,
    residuals_ns: VecDeque<f64>,
    reading_error: Nanos,
}

impl Discipline {
    /// A clock that has never met a reference.
    pub fn new() -> Self {
        Discipline::default()
    }

    /// Both clocks were read. A reading that cannot be true is counted and changes nothing.
    pub fn meet(&mut self, edge: &Edge) {
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
        let (predicted, part) = self.predict(edge.local).expect("there is a base");
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

    /// The reference's time at a moment of this clock; none before it was met twice.
    pub fn reference(&self, local: Nanos) -> Option<Nanos> {
        let (whole, part) = self.predict(local).filter(|_| self.edges >= 2)?;
        Some(Nanos((whole.0 as i64).saturating_add(part.round() as i64) as u64))
    }

    /// By how much the reference is ahead of this clock, nanoseconds.
    pub fn offset_ns(&self, local: Nanos) -> Option<i128> {
        self.reference(local).map(|at| at.0 as i128 - local.0 as i128)
    }

    /// How far off [`Discipline::reference`] may be at a moment, nanoseconds: it grows with the time since
    /// the reference was met. None before the loop has come to rest.
    pub fn error_ns(&self, local: Nanos) -> Option<f64> {
        let (met, ..) = self.base.filter(|_| self.is_settled())?;
        let age_s = local.since(met).as_secs_f64().max(1.0);
        Some(SPREADS * self.spread() * age_s + self.reading_error.0 as f64 + 1.0)
    }

    /// By how much the reference goes faster than this clock, parts in 10^9.
    pub fn ppb(&self) -> f64 {
        self.rate * 1e9
    }

    /// Readings that were believed, and those that were not.
    pub fn readings(&self) -> (u64, u64) {
        (self.edges, self.ignored)
    }

    fn is_settled(&self) -> bool {
        self.edges >= SETTLING
    }

    fn start(&mut self, edge: &Edge) {
        let ignored = self.ignored;
        let base = Some((edge.local, edge.reference, 0.0));
        let reading_error = edge.error;
        *self = Discipline { base, edges: 1, ignored, reading_error, ..Discipline::default() };
    }

    /// The reference's time in whole nanoseconds and what is left of them.
    fn predict(&self, local: Nanos) -> Option<(Nanos, f64)> {
        let (at, reference, part) = self.base?;
        let span = local.0 as i64 - at.0 as i64;
        let gained = part + self.rate * span as f64;
        let whole = gained.floor();
        let nanos = reference.0 as i64 + span + whole as i64;
        Some((Nanos(nanos.max(0) as u64), gained - whole))
    }

    /// The scatter of the last readings around what was expected of them, nanoseconds.
    fn spread(&self) -> f64 {
        let squares: f64 = self.residuals_ns.iter().map(|ns| ns * ns).sum();
        (squares / self.residuals_ns.len().max(1) as f64).sqrt()
    }
}

#[cfg(test)]
mod tests;
