//! Searches for a load: each says what to try next and is told what came of it.

/// What a search has to know of a trial.
pub mod measured;
/// How far a search has come.
pub mod bracket;
/// Trials that the tester itself disturbed.
pub mod disturbed;
/// RFC 2544 throughput by bisection, with the loss verification of ETSI TST009.
pub mod binary;
/// Several goals in one search (MLRsearch, RFC 9971).
pub mod mlr;
