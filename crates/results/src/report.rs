//! Everything that is shown of runs, as files in memory.

use crate::record::Record;
use crate::store::Output;

/// The files of a report over these runs, at least one: `report.html`, `summary.md`, `figures/*.svg`
/// and `*.csv`. The same records give the same bytes.
pub fn build(_records: &[Record]) -> Vec<Output> {
    Vec::new()
}
