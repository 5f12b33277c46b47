//! Verdicts on ratios and differences, and on claims outside their regime.
//!
//! Invariant: a claim holds or does not only where [`stats::conclude`] decides; every other verdict states the reason.

use super::case::verdict;
use record::Verdict;
use stats::conclude::{Conclusion, Estimate, conclude};

/// Whether a ratio lies above 1 by more than the smallest relevant difference.
pub(super) fn is_greater(ratio: &Estimate) -> Verdict {
    verdict(ratio.relevant(), |it| it == Conclusion::Greater)
}

/// Whether a ratio lies below 1 by more than the smallest relevant difference.
pub(super) fn is_smaller(ratio: &Estimate) -> Verdict {
    verdict(ratio.relevant(), |it| it == Conclusion::Smaller)
}

/// Whether a difference lies below zero by more than what is relevant.
pub(super) fn is_less_by(difference: &Estimate, relevant: f64) -> Verdict {
    verdict(conclude(difference, -relevant, relevant), |it| it == Conclusion::Smaller)
}

/// No verdict, for this reason.
pub(super) fn undecided(why: impl Into<String>) -> Verdict {
    Verdict::Undecided(why.into())
}

/// The verdict inside the regime of a claim; outside it none, with the reason.
pub(super) fn in_regime(regime: Result<(), String>, verdict: impl FnOnce() -> Verdict) -> Verdict {
    match regime {
        Ok(()) => verdict(),
        Err(why) => Verdict::Undecided(why),
    }
}

/// Whether the condition of a regime is met: where `is_met` does not accept what is concluded, the reason.
///
/// `what` states that the condition is met, and `found` what was found instead.
pub(super) fn regime(
    concluded: Conclusion,
    is_met: impl Fn(Conclusion) -> bool,
    what: &str,
    found: &str,
) -> Result<(), String> {
    match concluded {
        Conclusion::Undecided(reason) => Err(format!(
            "undecided whether the condition of the claim holds ({what}): {found}, {reason}"
        )),
        concluded if is_met(concluded) => Ok(()),
        _ => Err(format!("outside the condition of the claim ({what}): {found}")),
    }
}
