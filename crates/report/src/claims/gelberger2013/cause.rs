//! The claim that high delays make TCP's retransmission timers expire, which reduces its rate.
//!
//! Source: section III-C.4. Variation and TCP are measured one after the other on each target in each workload. The
//! claim implies that time-outs rise with the variation, and that throughput falls. Invariants:
//!
//! - A correlation counts only if its whole interval is on one side of zero.
//! - A correlation can contradict the claim but not confirm it, because it does not show a cause.

use super::super::verdict::undecided;
use super::Evaluation;
use crate::analysis::gelberger2013::{TCP, against_variation, correlation, named};
use record::number;
use record::{Reason, Record, Verdict};
use stats::conclude::{Conclusion, Estimate};
use stats::rank::{Correlation, GROUPS_MIN};

/// The claim, put to a run.
pub(super) fn judge(record: &Record) -> Evaluation {
    let reading = "the claim implies that over targets, workloads and repeats, time-outs of TCP rise with the packet delay \
                   variation of the largest frames, and that its throughput falls. The opposite, by the intervals of the \
                   rank correlations, contradicts the claim. A correlation does not show a cause, so it does not confirm it"
        .to_owned();
    let met = [(TIMEOUTS, "time-outs"), ("retransmits_ratio", "segments sent again")];
    let all = met.into_iter().chain([(TCP, "throughput")]);
    let found: Vec<_> =
        all.map(|(name, words)| (words, correlation(record, named(name)))).collect();
    let numbers: Vec<String> =
        found.iter().filter_map(|(words, found)| Some(shown(words, found.as_ref()?))).collect();
    let side = |place: usize| found[place].1.as_ref().map(|(_, found, _)| found.against(0.0));
    let counts: Vec<f64> =
        against_variation(record, named(TIMEOUTS)).into_iter().flatten().map(|it| it.1).collect();
    let verdict = match counts.is_empty() {
        true => undecided("variation and connections by TCP were not both measured"),
        false if counts.iter().all(|count| *count == 0.0) => {
            undecided("no retransmission timer of TCP expired")
        }
        false => verdict(side(0), side(2)),
    };
    Evaluation { reading, numbers: numbers.join("; "), verdict }
}

/// Metric of the timers that expired.
const TIMEOUTS: &str = "timeouts_count";

/// What the correlations of time-outs and of throughput, relative to zero, say together.
fn verdict(timeouts: Option<Conclusion>, throughput: Option<Conclusion>) -> Verdict {
    use Conclusion::{Equivalent, Greater, Smaller, Undecided};
    match (timeouts, throughput) {
        (Some(Smaller), _) | (_, Some(Greater)) => Verdict::Contradicted,
        (Some(Greater), Some(Smaller)) => undecided(
            "time-outs rise with the variation and throughput falls, as the claim implies, but a correlation does not show \
             the cause",
        ),
        (None, _) => undecided("every connection had the same number of time-outs"),
        (Some(Undecided(Reason::MeasuredOnce)), _) => {
            undecided(format!("fewer than {GROUPS_MIN} targets and workloads give no interval"))
        }
        (Some(Greater), _) => {
            undecided("time-outs rise with the variation; whether throughput falls is undecided")
        }
        (Some(Undecided(Reason::Overlap) | Equivalent), _) => {
            undecided("the interval of the rank correlation contains 0")
        }
        (Some(Undecided(reason)), _) => undecided(reason.to_string()),
    }
}

/// A correlation in words.
fn shown(words: &str, (found, _, groups): &(Correlation, Estimate, usize)) -> String {
    let range = found.interval.map_or(String::new(), |it| number::range(&it, number::text));
    format!(
        "{words}: rank correlation {} {range}, {} repeats of {groups} targets and workloads",
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
        assert_eq!(verdict(up, up), Verdict::Contradicted);
        assert_eq!(verdict(down, open), Verdict::Contradicted);
        let few = Some(Conclusion::Undecided(Reason::MeasuredOnce));
        for (timeouts, throughput, words) in [
            (up, down, "does not show the cause"),
            (up, open, "whether throughput falls is undecided"),
            (open, down, "contains 0"),
            (few, down, "fewer than 4 targets"),
            (None, down, "same number of time-outs"),
        ] {
            let verdict = verdict(timeouts, throughput);
            assert!(
                matches!(&verdict, Verdict::Undecided(why) if why.contains(words)),
                "{verdict:?}"
            );
        }
    }
}
