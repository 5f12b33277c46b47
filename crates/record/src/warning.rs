//! Typed warnings about values.
//!
//! Invariant: a warning stays with its value. A page may rephrase it but never omit it.

use serde::{Deserialize, Serialize};

use crate::number::{counted, inflected, text};

/// Share of the intended load from which on the offered load is complete.
const WHOLE_LOAD_SHARE: f64 = 0.999;

/// A warning about the whole run or a part of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WarningEntry {
    /// Scope: the experiment and target, or `run`.
    #[serde(deserialize_with = "crate::target_name::read_scope")]
    pub about: String,
    /// The warning.
    pub warning: Warning,
}

/// A reason to distrust a value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Warning {
    /// Fewer repeats than an interval requires.
    FewSamples {
        /// Repeats present.
        n: u32,
        /// Repeats required.
        wanted: u32,
    },
    /// The tester offered less than intended, so the result is a lower bound.
    TesterLimited {
        /// Intended load.
        rate_pps_intended: f64,
        /// Offered load.
        rate_pps_offered: f64,
    },
    /// The result is close to the maximum of the tester's own controller, which may have limited
    /// it.
    ControllerLimited {
        /// Measured rate per second.
        per_s: f64,
        /// Maximum rate of the controller with a peer of almost no cost.
        most_per_s: f64,
    },
    /// A search or trial did not complete according to its method.
    Irregular {
        /// Affected trials.
        trials: u32,
        /// Affected searches whose trials are all regular.
        #[serde(default, skip_serializing_if = "is_zero")]
        searches: u32,
    },
    /// The tester disturbed a step of a search and all its repetitions. The result depends on the
    /// loss in these.
    TesterInterference {
        /// Affected results.
        results: u32,
    },
    /// The tester disturbed steps of a search. The steps were repeated and not used.
    Retried {
        /// Trials that were discarded.
        trials: u32,
    },
    /// Frames that are unaccounted for.
    UnexplainedFrames {
        /// Number over all affected trials. Negative if more frames were received than sent.
        frames: i64,
    },
    /// Received frames with errors: misrouted, duplicated or changed.
    MisdeliveredFrames {
        /// Number over all affected trials.
        frames: u64,
    },
    /// The tester was descheduled long enough to disturb latencies.
    Stall {
        /// Affected trials.
        trials: u32,
    },
    /// The target's caches were not full when trials began. Ratios exclude these trials.
    ColdCaches {
        /// Affected trials.
        trials: u32,
    },
    /// Targets are connected by different links.
    LinksDiffer {
        /// The links.
        links: Vec<String>,
    },
    /// The tester's process took the receive timestamps, not the kernel or the interface.
    UserSpaceStamps,
    /// An experiment skipped a target.
    Skipped {
        /// Reason.
        why: String,
    },
    /// The run ended before all planned trials ran.
    Partial {
        /// Completed trials.
        trials: u64,
        /// Planned trials, if known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        planned: Option<u64>,
    },
    /// The machine is virtual: other guests may have disturbed it.
    Virtualised {
        /// The hypervisor.
        hypervisor: String,
    },
    /// Tester and target have more threads than cores.
    CoresShared {
        /// Available cores.
        cores: u32,
    },
    /// The processor may change its frequency during the measurement.
    FrequencyScaling {
        /// The governor.
        governor: String,
    },
}

/// Merges related notices.
///
/// - Notices of one kind about several targets of an experiment become one. It names all targets
///   and has the most severe warning, or the sum of the counts.
/// - Equal notices from several items of a study become one.
pub fn gathered(notices: &[WarningEntry]) -> Vec<WarningEntry> {
    of_studies(of_experiments(notices))
}

/// Merges equal notices about the same targets in several items of one study.
fn of_studies(notices: Vec<WarningEntry>) -> Vec<WarningEntry> {
    let parts = |notice: &WarningEntry| -> Option<[String; 3]> {
        let (experiment, targets) = notice.about.split_once(" on ")?;
        let (study, item) = experiment.split_once('/')?;
        Some([study, item, targets].map(str::to_string))
    };
    let mut found: Vec<WarningEntry> = Vec::new();
    for notice in notices {
        let same = parts(&notice).and_then(|[study, item, targets]| {
            found.iter_mut().find_map(|earlier| {
                let [its_study, items, its_targets] = parts(earlier)?;
                let is_it = (its_study, its_targets) == (study.clone(), targets.clone())
                    && earlier.warning == notice.warning;
                is_it.then(|| earlier.about = format!("{study}/{items}, {item} on {targets}"))
            })
        });
        if same.is_none() {
            found.push(notice);
        }
    }
    found
}

fn of_experiments(notices: &[WarningEntry]) -> Vec<WarningEntry> {
    let mut found: Vec<WarningEntry> = Vec::new();
    for notice in notices {
        let Some((experiment, target)) = notice.about.split_once(" on ") else {
            found.push(notice.clone());
            continue;
        };
        let same = found.iter_mut().find_map(|earlier| {
            let is_it = earlier.about.split_once(" on ").is_some_and(|(of, _)| of == experiment);
            let both = is_it.then(|| earlier.warning.with(&notice.warning))??;
            Some((earlier, both))
        });
        match same {
            Some((earlier, both)) => {
                earlier.about = format!("{}, {target}", earlier.about);
                earlier.warning = both;
            }
            None => found.push(notice.clone()),
        }
    }
    found
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl Warning {
    /// Share of the controller's maximum rate that a result reaches, if the controller limited it.
    pub fn share(&self) -> f64 {
        match self {
            Warning::ControllerLimited { per_s, most_per_s } => per_s / most_per_s.max(1.0),
            _ => 0.0,
        }
    }

    /// Merges two warnings of one kind.
    fn with(&self, other: &Warning) -> Option<Warning> {
        use Warning::{
            ColdCaches, ControllerLimited, FewSamples, Irregular, MisdeliveredFrames, Retried,
            Stall, TesterInterference, TesterLimited, UnexplainedFrames,
        };
        Some(match (self.clone(), other.clone()) {
            (FewSamples { n, wanted }, FewSamples { n: m, .. }) => {
                FewSamples { n: n.min(m), wanted }
            }
            (
                TesterLimited { rate_pps_intended: a, rate_pps_offered: b },
                TesterLimited { rate_pps_intended: c, rate_pps_offered: d },
            ) => {
                let (rate_pps_intended, rate_pps_offered) =
                    if b * c <= d * a { (a, b) } else { (c, d) };
                TesterLimited { rate_pps_intended, rate_pps_offered }
            }
            (one @ ControllerLimited { .. }, other @ ControllerLimited { .. }) => {
                if one.share() >= other.share() { one } else { other }
            }
            (Irregular { trials: a, searches: b }, Irregular { trials: c, searches: d }) => {
                Irregular { trials: a + c, searches: b + d }
            }
            (TesterInterference { results: a }, TesterInterference { results: b }) => {
                TesterInterference { results: a + b }
            }
            (Retried { trials: a }, Retried { trials: b }) => Retried { trials: a + b },
            (ColdCaches { trials: a }, ColdCaches { trials: b }) => ColdCaches { trials: a + b },
            (Stall { trials: a }, Stall { trials: b }) => Stall { trials: a + b },
            (MisdeliveredFrames { frames: a }, MisdeliveredFrames { frames: b }) => {
                MisdeliveredFrames { frames: a.saturating_add(b) }
            }
            // Surplus frames do not cancel missing frames.
            (UnexplainedFrames { frames: a }, UnexplainedFrames { frames: b })
                if (a < 0) == (b < 0) =>
            {
                UnexplainedFrames { frames: a.saturating_add(b) }
            }
            (one, other) if one == other => one,
            _ => return None,
        })
    }

    /// Whether `--strict` rejects a result with this warning.
    pub fn makes_doubtful(&self) -> bool {
        matches!(
            self,
            Warning::TesterLimited { .. }
                | Warning::ControllerLimited { .. }
                | Warning::Irregular { .. }
                | Warning::TesterInterference { .. }
                | Warning::ColdCaches { .. }
        )
    }

    /// The warning in two or three words, for display next to the value.
    pub fn brief(&self) -> String {
        match self {
            Warning::FewSamples { n, .. } => format!("n={n} only"),
            Warning::TesterLimited { rate_pps_intended, rate_pps_offered }
                if *rate_pps_offered < rate_pps_intended * WHOLE_LOAD_SHARE =>
            {
                "load too low".into()
            }
            Warning::TesterLimited { .. } => "limited by the tester".into(),
            Warning::ControllerLimited { .. } => "limited by the controller".into(),
            Warning::Irregular { .. } => "irregular".into(),
            Warning::TesterInterference { .. } => "disturbed".into(),
            Warning::Retried { .. } => "repeated".into(),
            Warning::UnexplainedFrames { .. } => "unexplained frames".into(),
            Warning::MisdeliveredFrames { .. } => "wrong frames".into(),
            Warning::Stall { .. } => "descheduled".into(),
            Warning::ColdCaches { .. } => "caches not filled".into(),
            Warning::LinksDiffer { .. } => "links differ".into(),
            Warning::UserSpaceStamps => "stamped by the tester".into(),
            Warning::Skipped { .. } => "skipped".into(),
            Warning::Partial { .. } => "partial".into(),
            Warning::Virtualised { .. } => "virtual machine".into(),
            Warning::CoresShared { .. } => "cores shared".into(),
            Warning::FrequencyScaling { .. } => "frequency may change".into(),
        }
    }

    /// The warning as a sentence.
    pub fn sentence(&self) -> String {
        match self {
            Warning::FewSamples { n, wanted } => {
                format!("only {n} of the {wanted} repeats that an interval needs")
            }
            Warning::TesterLimited { rate_pps_intended, rate_pps_offered }
                if *rate_pps_offered >= rate_pps_intended * WHOLE_LOAD_SHARE =>
            {
                "limited by the tester: it did not take all returned frames in time, so the target \
                 may be faster"
                    .into()
            }
            Warning::TesterLimited { rate_pps_intended, rate_pps_offered } => format!(
                "the tester offered {} % of the intended load ({rate_pps_offered:.0} of \
                 {rate_pps_intended:.0} frames/s on average): values belong to the lower load, and a \
                 forwarding rate is a lower bound",
                text(100.0 * rate_pps_offered / rate_pps_intended)
            ),
            Warning::ControllerLimited { per_s, most_per_s } => format!(
                "limited by the tester's controller: {per_s:.0} of at most {most_per_s:.0} per second, \
                 so the target may be faster"
            ),
            Warning::Irregular { trials, searches } => {
                let word = inflected((*searches).into(), ["search", "searches"]);
                let searches = (*searches > 0).then(|| format!("{searches} {word}"));
                let trials = (*trials > 0).then(|| counted((*trials).into(), "trial"));
                let both: Vec<String> = trials.into_iter().chain(searches).collect();
                format!("irregular: {} did not follow the method", both.join(" and "))
            }
            Warning::TesterInterference { results } => format!(
                "the tester disturbed every trial at a load that bounds {}, so the target may be \
                 faster",
                counted((*results).into(), "result")
            ),
            Warning::Retried { trials } => format!(
                "the tester disturbed {} of searches, which {} repeated",
                counted((*trials).into(), "trial"),
                inflected((*trials).into(), ["was", "were"])
            ),
            Warning::UnexplainedFrames { frames } if *frames < 0 => {
                let frames = frames.unsigned_abs();
                let were = inflected(frames, ["frame was", "frames were"]);
                format!("{frames} more {were} received than sent")
            }
            Warning::UnexplainedFrames { frames } => {
                format!("{} unaccounted for", counted(frames.unsigned_abs(), "frame"))
            }
            Warning::MisdeliveredFrames { frames } => {
                let were = inflected(*frames, ["frame was", "frames were"]);
                format!("{frames} {were} received misrouted, duplicated or changed")
            }
            Warning::Stall { trials } => format!(
                "the tester was descheduled in {}; long latencies may be its own",
                counted((*trials).into(), "trial")
            ),
            Warning::ColdCaches { trials } => format!(
                "the target's caches were not filled before {}; ratios omit {}",
                counted((*trials).into(), "trial"),
                inflected((*trials).into(), ["it", "them"])
            ),
            Warning::LinksDiffer { links } => {
                format!(
                    "targets have different links ({}), so comparisons across links include the difference \
                     between the links",
                    links.join(", ")
                )
            }
            Warning::UserSpaceStamps => {
                "the tester took the time stamps itself, so latencies include its own delay".into()
            }
            Warning::Skipped { why } => format!("skipped: {why}"),
            Warning::Partial { trials, planned: Some(planned) } => {
                format!("partial: {trials} of {planned} trials were measured")
            }
            Warning::Partial { trials, planned: None } => {
                format!("partial: the run ended early, after {trials} trials")
            }
            Warning::Virtualised { hypervisor } => {
                format!(
                    "the machine is virtual ({hypervisor}), and other guests may have disturbed it"
                )
            }
            Warning::CoresShared { cores } => {
                format!("tester and targets shared {}", counted((*cores).into(), "core"))
            }
            Warning::FrequencyScaling { governor } => {
                format!("the frequency of the processor may have changed (governor {governor})")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_that_fell_short_is_no_statement_about_the_target() {
        let limited = |rate_pps_offered| Warning::TesterLimited {
            rate_pps_intended: 1000.0,
            rate_pps_offered,
        };
        assert_eq!(limited(983.0).brief(), "load too low");
        let sentence = limited(983.0).sentence();
        assert!(
            sentence.starts_with("the tester offered 98.3 % of the intended load"),
            "{sentence}"
        );
        assert!(!sentence.contains("may be faster"), "a latency or a loss ratio may be worse");
        assert_eq!(limited(1000.0).brief(), "limited by the tester");
        assert!(limited(1000.0).sentence().contains("did not take all returned frames"));
    }

    #[test]
    fn sentences_agree_with_the_number_of_things() {
        for (warning, one_or_many) in [
            (Warning::Stall { trials: 1 }, "descheduled in 1 trial;"),
            (Warning::Stall { trials: 2 }, "descheduled in 2 trials;"),
            (Warning::Retried { trials: 1 }, "1 trial of searches, which was repeated"),
            (Warning::Irregular { trials: 2, searches: 1 }, "2 trials and 1 search did not"),
            (Warning::Irregular { trials: 0, searches: 2 }, "irregular: 2 searches did not"),
            (Warning::Irregular { trials: 1, searches: 0 }, "irregular: 1 trial did not"),
            (Warning::UnexplainedFrames { frames: 1 }, "1 frame unaccounted for"),
            (Warning::UnexplainedFrames { frames: -1 }, "1 more frame was received than sent"),
            (Warning::MisdeliveredFrames { frames: 2 }, "2 frames were received misrouted"),
            (Warning::ColdCaches { trials: 1 }, "before 1 trial; ratios omit it"),
            (Warning::CoresShared { cores: 1 }, "shared 1 core"),
        ] {
            let sentence = warning.sentence();
            assert!(sentence.contains(one_or_many), "{sentence}");
            assert!(!sentence.contains("(s)") && !sentence.contains("(es)"), "{sentence}");
        }
    }
}
