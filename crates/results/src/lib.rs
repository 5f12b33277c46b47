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

/// Summary of repeated values: mean, spread, median.
pub mod series;
/// Confidence intervals.
pub mod interval;
/// Rank correlation of two quantities.
pub mod rank;
/// Latency histograms.
pub mod histogram;
/// Latency of trials by percentile.
pub mod spectrum;
/// Ratios with confidence intervals.
pub mod effect;
/// Conclusions that intervals allow.
pub mod conclude;
/// Change points in a series of runs.
pub mod change;
/// Whether a larger or a smaller value of a metric is better.
pub mod direction;
/// The stored record of a run.
pub mod record;
/// The link that connects each target.
pub mod links;
/// Derives cells, ratios and warnings from trials.
pub mod derive;
/// Conditions that a comparison must meet.
pub mod gate;
/// Comparison of two runs or of two targets.
pub mod contrast;
/// Claims of published studies and their verdicts.
pub mod claims;
/// Formats numbers for display.
pub mod number;
/// Curves with intervals, as SVG.
pub mod figure;
/// Tables of results and of frame accounting.
pub mod table;
/// Derived values as CSV.
pub mod csv;
/// Derived values as Parquet.
pub mod columns;
/// The report as plain text.
pub mod summary;
/// The report as a self-contained HTML page.
pub mod page;
/// All report files, built in memory.
pub mod report;
/// Run folders. The only module that accesses files.
pub mod store;

/// A sample run for tests.
#[cfg(test)]
mod sample;
