//! Failed trials and their reasons, which a report states first.
//!
//! A trial fails when its module fails, or when a lost connection or a limit ends its module before
//! it has measured anything. Counts are of trials. Invariant: a run in which every trial failed has
//! no result.

use record::{Ended, ModuleRun, Record, Trial};

use super::counts;

/// The cost of a script for the tester is measured even in a failed trial.
const COSTS_OF_SCRIPTS: &str = "python_";

/// The failures of a run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Failures {
    /// The error that ended the run.
    pub(crate) error: Option<String>,
    /// Failed trials, and all counting trials.
    pub(crate) failed: usize,
    pub(crate) trials: usize,
    /// Reasons with the number of their trials.
    pub(crate) reasons: Vec<(String, usize)>,
}

/// The reason for a trial's failure, in one line; none if it has a result.
pub fn reason(trial: &Trial) -> Option<String> {
    let module = trial.module.as_ref()?;
    let (has_failed, why) = match &module.ended {
        Ended::Completed => return None,
        Ended::Failed(why) => (true, why.clone()),
        Ended::Lost(why) => (!has_values(module), why.clone()),
        Ended::Limit(name) => (!has_values(module), format!("limit reached: {name}")),
    };
    has_failed.then(|| why.lines().next().unwrap_or("unknown reason").trim().to_string())
}

fn has_values(module: &ModuleRun) -> bool {
    module.measured.iter().any(|it| !it.metric.name().starts_with(COSTS_OF_SCRIPTS))
}

/// Whether a run has no result because it failed: every trial failed, or an error ended it before one succeeded.
pub fn has_failed(record: &Record) -> bool {
    let [failed, all] = tally(record);
    failed == all && (all > 0 || record.failure.is_some())
}

/// Whether a module of a run failed in some trial, regardless of other trials.
pub fn has_failed_module(record: &Record) -> bool {
    let failed = |trial: &Trial| {
        trial.module.as_ref().is_some_and(|module| matches!(module.ended, Ended::Failed(_)))
    };
    record.trials.iter().filter(|trial| counts(trial)).any(failed)
}

/// Numbers of failed trials and of all counting trials.
fn tally(record: &Record) -> [usize; 2] {
    let all = record.trials.iter().filter(|trial| counts(trial));
    all.fold([0; 2], |[failed, all], it| [failed + usize::from(reason(it).is_some()), all + 1])
}

/// Finds the failures of a run; none if it has none.
pub(crate) fn failures(record: &Record) -> Option<Failures> {
    let mut reasons: Vec<(String, usize)> = Vec::new();
    for trial in record.trials.iter().filter(|trial| counts(trial)) {
        let Some(why) = reason(trial) else { continue };
        let text = format!("{} on {}: {why}", trial.experiment, trial.target);
        match reasons.iter_mut().find(|(known, _)| *known == text) {
            Some((_, count)) => *count += 1,
            None => reasons.push((text, 1)),
        }
    }
    let [failed, trials] = tally(record);
    let error = record.failure.clone();
    (failed > 0 || error.is_some()).then_some(Failures { error, failed, trials, reasons })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::failure as sentence;
    use crate::summary;

    fn ended_so(ended: &Ended) -> ModuleRun {
        let module = serde_json::json!({
            "module": "mine", "ended": ended, "duration_ns": 1, "messages_sent": 0, "messages_received": 0,
            "errors_received": 0, "events": 1, "reaction_ns": 1, "reaction_ns_longest": 1,
        });
        serde_json::from_value(module).unwrap()
    }

    /// Returns a record whose trials are of a module that ended this way without a measurement.
    fn failing(ended: &[Ended]) -> Record {
        let mut record = sample::record();
        record.trials.retain(counts);
        record.trials.truncate(ended.len());
        for (trial, ended) in record.trials.iter_mut().zip(ended) {
            (trial.experiment, trial.target) = ("mine.py".into(), "switch".into());
            trial.module = Some(ended_so(ended));
        }
        record
    }

    #[test]
    fn a_run_with_only_failed_trials_reports_that_first() {
        let why = Ended::Failed("mine.py:6: ValueError: no such thing\nTraceback".into());
        let record = failing(&[why.clone(), why.clone()]);
        assert!(has_failed(&record));
        let reported = sentence(&record).unwrap();
        assert!(reported.starts_with("Every trial failed (2 of 2). "), "{reported}");
        assert!(
            reported.ends_with("mine.py:6: ValueError: no such thing (2 trials)."),
            "{reported}"
        );
        let text = summary::markdown([&record]);
        let (failed, measured) = (text.find("Every trial failed"), text.find(" measured "));
        assert!(failed.is_some() && failed < measured, "{text}");
        let one = failing(&[why, Ended::Completed]);
        assert!(!has_failed(&one) && has_failed_module(&one), "one trial has a result");
        assert!(sentence(&one).unwrap().starts_with("1 of 2 trials failed. "));
    }

    #[test]
    fn a_limit_fails_a_trial_only_without_a_measurement() {
        let mut record = failing(&[Ended::Limit("patience".into()), Ended::Lost("gone".into())]);
        assert!(has_failed(&record) && !has_failed_module(&record));
        assert!(sentence(&record).unwrap().contains("limit reached: patience"));
        let value = record::Measured {
            metric: record::Metric::LossRatio,
            value: 0.0,
            resolution: None,
            bound: None,
            count: 1,
        };
        record.trials[1].module.as_mut().unwrap().measured.push(value);
        assert!(!has_failed(&record));
    }

    #[test]
    fn an_error_before_the_first_trial_is_the_failure_of_the_run() {
        let mut record = failing(&[]);
        assert!(!has_failed(&record) && sentence(&record).is_none());
        record.failure = Some("--setup on switch ended with exit status: 7".into());
        assert!(has_failed(&record));
        assert!(summary::markdown([&record]).contains("The run failed: --setup on switch"));
    }
}
