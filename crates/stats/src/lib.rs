//! Statistics of repeated values, and what may be concluded from them.
//!
//! Modules, in reading order:
//!
//! - single values: `series`, `interval`, `rank`, `histogram`, `spectrum`, `effect`;
//! - conclusions: `conclude`, `change`, `direction`;
//! - comparison of two runs: `gate`, `contrast`.
//!
//! Invariant: no I/O, and the same values give the same result.

pub mod series;
pub mod interval;
pub mod rank;
pub mod histogram;
pub mod spectrum;
pub mod effect;
pub mod conclude;
pub mod change;
pub mod direction;
pub mod gate;
pub mod comparison;
