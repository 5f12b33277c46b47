//! Numbers and what is shown of them: samples, intervals, the stored record, figures and pages.
//!
//! Reading order: how single values become values with errors (`series`, `interval`, `rank`, `histogram`,
//! `spectrum`, `effect`, `conclude`, `change`, `direction`), what is stored (`record`, `links`, `derive`, `claims`) and where (`store`), what
//! two runs say of each other (`gate`, `contrast`), and what is shown (`figure`, `table`, `csv`, `columns`, `summary`,
//! `page`, `report`). Invariants: only [`store`]
//! touches files; everything shown is a function of the [`record::Record`], so that deleting and
//! regenerating a report changes nothing.

/// Repeats of one value: mean, spread, median.
pub mod series;
/// How far a value may be from the truth.
pub mod interval;
/// Whether two quantities rise together.
pub mod rank;
/// Latencies counted in buckets.
pub mod histogram;
/// Latencies of trials by percentile.
pub mod spectrum;
/// A ratio with an interval.
pub mod effect;
/// What may be concluded from values.
pub mod conclude;
/// Where a value changed from run to run.
pub mod change;
/// Which way is better.
pub mod direction;
/// The stored form of a run.
pub mod record;
/// By which link each target was joined.
pub mod links;
/// Cells, ratios and warnings out of trials.
pub mod derive;
/// What a comparison has to reach.
pub mod gate;
/// One run or target against another.
pub mod contrast;
/// What studies state, and whether it holds here.
pub mod claims;
/// Numbers for people.
pub mod number;
/// Curves with intervals, as SVG.
pub mod figure;
/// Numbers below a figure, and the account of frames.
pub mod table;
/// Derived numbers as CSV.
pub mod csv;
/// The same in columns, as Parquet.
pub mod columns;
/// The report as a page of text.
pub mod summary;
/// The report as a page that opens offline.
pub mod page;
/// Everything that is shown, as files in memory.
pub mod report;
/// The folder of a run: the only place with files.
pub mod store;

/// A made-up run for tests.
#[cfg(test)]
mod sample;
