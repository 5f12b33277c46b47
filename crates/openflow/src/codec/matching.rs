//! Matches as bytes.
//!
//! Source: OpenFlow 1.0.0 section 5.2.3. The fixed structure that 1.0 has is in `fixed`.

mod fixed;

use super::bytes::Reader;
use super::{Fault, What};
use crate::model::matching::Match;
use crate::version::Version;

pub(super) use fixed::{wildcards_from_wire, wildcards_to_wire};

/// Appends the match.
pub(super) fn put_match(version: Version, value: &Match, out: &mut Vec<u8>) -> Result<(), What> {
    fixed::put_match(version, value, out)
}

/// Reads a match.
pub(super) fn read_match(version: Version, reader: &mut Reader) -> Result<Match, Fault> {
    fixed::read_match(version, reader)
}
