//! The claim that delays which vary make TCP's timers run out, and so slow it down.
//!
//! Source: section III-C.4. Variation and what TCP met were measured one after the other on each target in each workload;
//! the claim wants time-outs to rise with the variation, and throughput to fall. Invariant: a correlation says something only
//! where its whole interval is on one side of zero, and it is no cause: that is said.

use super::Finding;
use crate::conclude::{Conclusion, Estimate};
use crate::derive::richer::{TCP, correlation, named};
use crate::number;
use crate::rank::Correlation;
use crate::record::{Reason, Record, Verdict};

/// The claim, put to a run.
pub(super) fn judge(record: &Record) -> Finding {
    let reading = "over targets, workloads and repeats, time-outs of TCP rise with the packet delay variation of the largest \
                   frames, and its throughput falls: the intervals of the rank correlations lie above and below 0. That both \
                   go together does not say which makes the other"
        .to_owned();
    let met = [("time-outs", "timeouts_count"), ("segments sent again", "retransmits_ratio")];
    let all = met.into_iter().chain([("throughput", TCP)]);
    let found: Vec<_> =
        all.map(|(words, name)| (words, correlation(record, named(name)))).collect();
    let numbers: Vec<String> =
        found.iter().filter_map(|(words, found)| Some(shown(words, found.as_ref()?))).collect();
    let side = |place: usize| found[place].1.as_ref().map(|(_, found, _)| found.against(0.0));
    let verdict = match numbers.is_empty() {
        true => cannot("variation and connections by TCP were not both measured"),
        false => verdict(side(0), side(2)),
    };
    Finding { reading, numbers: numbers.join("; "), verdict }
}

/// What the correlations of time-outs and of throughput, relative to zero, say together.
fn verdict(timeouts: Option<Conclusion>, throughput: Option<Conclusion>) -> Verdict {
    use Conclusion::{Greater, Smaller, Undecided};
    match (timeouts, throughput) {
        (Some(Smaller), _) | (_, Some(Greater)) => Verdict::DoesNot,
        (Some(Greater), Some(Smaller)) => Verdict::Holds,
        (None | Some(Undecided(Reason::MeasuredOnce)), _) => {
            cannot("no timer ran out, or there are too few targets and workloads")
        }
        (Some(Greater), _) => {
            cannot("time-outs rise with the variation; whether throughput falls is open")
        }
        (Some(Undecided(reason)), _) => Verdict::CannotTell(reason.to_string()),
        _ => cannot("the interval of the rank correlation holds 0"),
    }
}

fn cannot(why: &str) -> Verdict {
    Verdict::CannotTell(why.into())
}

/// A correlation in words.
fn shown(words: &str, (found, _, groups): &(Correlation, Estimate, usize)) -> String {
    let range = found.interval.map_or(String::new(), |it| {
        format!(" ({} to {})", number::text(it.low), number::text(it.high))
    });
    format!(
        "{words}: rank correlation {}{range}, {} repeats of {groups} targets and workloads",
        number::text(found.value),
        found.pairs
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_metrics_must_agree_with_the_claim() {
        let open = Some(Conclusion::Undecided(Reason::Overlap));
        let (up, down) = (Some(Conclusion::Greater), Some(Conclusion::Smaller));
        assert_eq!(verdict(up, down), Verdict::Holds);
        assert_eq!(verdict(up, up), Verdict::DoesNot);
        assert_eq!(verdict(down, open), Verdict::DoesNot);
        for (timeouts, throughput) in [(up, open), (open, down), (None, down), (None, None)] {
            assert!(matches!(verdict(timeouts, throughput), Verdict::CannotTell(_)));
        }
    }
}
