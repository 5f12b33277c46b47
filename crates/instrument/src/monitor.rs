//! Sorting what comes back.

/// Later frames of a stream after which an earlier one is too late to be told from a duplicate.
pub const WINDOW_FRAMES: u64 = 1 << 22;
