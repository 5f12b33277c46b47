//! What studies state, and whether it holds here.
//!
//! Claims come as rows of `claims.csv` (study, item, place, subject, condition, claim, value, unit,
//! relation), from the studies' texts. Each study has rules that read its claims as conditions on measured values, and state
//! how they read them.
//!
//! Invariants:
//! - A claim *holds* or *does not* only where [`stats::conclude`] decides; everything else is *undecided*, with the reason.
//! - A sentence with two statements is two claims, each with a verdict of its own.
//! - A claim has a regime, such as the offered load that it is about, and is undecided outside it.
//! - Typical latencies are medians.

mod rows;
mod case;
mod verdict;
mod bianco2010;
mod oflops2018;
mod costa2017;
mod gelberger2013;
#[cfg(test)]
mod tests;

pub use rows::{ClaimsError, parse};

use record::{Claim, ClaimVerdict, MODEL_STUDIES, Record, Target};

/// Puts every claim about one of the record's experiments to its cells. Claims about items that
/// were not run give no line; a claim that no rule reads yet is quoted and is undecided.
pub fn judge(record: &Record, claims: &[Claim]) -> Vec<ClaimVerdict> {
    record
        .experiments
        .iter()
        .flat_map(|experiment| {
            let about = |claim: &&Claim| {
                experiment.study.as_ref() == Some(&claim.study)
                    && experiment.item.as_ref() == Some(&claim.item)
            };
            claims.iter().filter(about).flat_map(|claim| match claim.study.as_str() {
                "bianco2010" => bianco2010::judge(record, &experiment.id, claim),
                "oflops2018" => oflops2018::judge(record, &experiment.id, claim),
                "costa2017" => costa2017::judge(record, &experiment.id, claim),
                "gelberger2013" => gelberger2013::judge(record, &experiment.id, claim),
                _ => vec![unread(claim)],
            })
        })
        .map(|mut line: ClaimVerdict| {
            let targets = line.targets.iter().filter_map(|name| record.target(name));
            line.is_by_construction = targets.into_iter().any(|it| is_made_from(it, &line.claim));
            line
        })
        .collect()
}

/// Whether a target is a model that was made from the study of a claim.
fn is_made_from(target: &Target, claim: &Claim) -> bool {
    let studies = target.settings.get(MODEL_STUDIES).map_or("", String::as_str);
    studies.split(' ').any(|study| study == claim.study)
}

/// The line for a claim that no rule reads.
fn unread(claim: &Claim) -> ClaimVerdict {
    ClaimVerdict {
        claim: claim.clone(),
        targets: Vec::new(),
        verdict: record::Verdict::Undecided("no rule reads this claim yet".into()),
        numbers: String::new(),
        reading: String::new(),
        is_by_construction: false,
    }
}
