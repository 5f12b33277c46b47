//! The claims of bianco2010 about its figures 2, 3 and 4.

use super::unread;
use crate::record::{Claim, ClaimVerdict, Record};

/// The lines for one claim.
pub(super) fn judge(_record: &Record, _experiment: &str, claim: &Claim) -> Vec<ClaimVerdict> {
    vec![unread(claim)]
}
