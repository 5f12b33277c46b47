//! Searches for a load: each says what to try next and is told what came of it.

/// RFC 2544 throughput by bisection.
pub mod binary;
