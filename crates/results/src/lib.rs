//! Stored results and the statistics, figures and reports made from them.
//!
//! Modules, in reading order:
//!
//! - statistics of single values: `series`, `interval`, `rank`, `histogram`, `spectrum`, `effect`,
//!   `conclude`, `change`, `direction`;
//! - the stored record and values derived from it: `record`, `links`, `derive`, `claims`;
//! - storage: `store`;
//! - comparison of two runs: `gate`, `contrast`;
//! - output: `figure`, `table`, `csv`, `columns`, `summary`, `page`, `report`.
//!
//! Invariants:
//!
//! - Only [`store`] accesses files.
//! - All output is a function of the [`record::Record`]. A deleted report can be regenerated
//!   without a change.

pub mod series;
pub mod interval;
pub mod rank;
pub mod histogram;
pub mod spectrum;
pub mod effect;
pub mod conclude;
pub mod change;
pub mod direction;
pub mod record;
pub mod links;
pub mod derive;
pub mod gate;
pub mod contrast;
pub mod claims;
pub mod number;
pub mod figure;
pub mod table;
pub mod csv;
pub mod columns;
pub mod summary;
pub mod page;
pub mod report;
pub mod store;

#[cfg(test)]
mod sample;
