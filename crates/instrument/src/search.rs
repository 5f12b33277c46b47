//! Searches for a load. Each proposes the next trial and receives its result.

/// Loss of a trial, as the searches use it.
pub mod measured;
/// Progress of a search.
pub mod bracket;
/// Handling of trials that the tester itself disturbed.
pub mod disturbed;
/// RFC 2544 throughput by bisection, with the loss verification of ETSI TST009.
pub mod binary;
/// Several goals in one search (MLRsearch, RFC 9971).
pub mod mlr;
