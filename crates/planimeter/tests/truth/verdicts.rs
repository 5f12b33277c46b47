//! Validation of verdicts on switches that perform accepted requests correctly, late, occasionally,
//! or not at all.
//!
//! Each case draws the switch's behavior from its seed. Rewrites (costa2017's table VI) are judged
//! by a quorum of two of three repeats, as in the study's tables; actions, matches and the table's
//! capacity by one run each. An accusation is a verdict *not done*, *unstable*, *missing* or *too
//! narrow*. `TRUTH_CASES_VERDICTS` sets the number of switches.

use elements::hardware_model::model::{Barrier, Hardware, Model, Path, Paths};
use packet::time::Nanos;
use tester::module::{Ended, StageReport};

use crate::case::Draw;
use crate::one_switch::{Flaw, OneSwitch, measured_metric};

/// Number of the study's kinds of rewriting, with the kinds without rewriting before them.
const KINDS: usize = 7;

const REPEATS: usize = 3;

/// Limit of false accusations of correct switches, in percent.
const FAMILYWISE_ERROR_PERCENT: usize = 1;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Truth {
    /// Barriers are answered when rules are active.
    Honest,
    /// Rules become active, and old ones stay active, this long after the barrier reply.
    Late(Nanos),
    Ignored,
    Unstable,
}

/// Verdict of a quorum of repeats on a rewrite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Done,
    NotDone,
    Unstable,
}

fn draw(seed: u64) -> (Truth, OneSwitch) {
    let draw = &mut Draw::new(seed ^ 0x7665_7264);
    let (latency_ns, jitter_ns) = (draw.between(0, 20_000), draw.between(0, 5_000));
    let path = Path { latency_ns, jitter_ns, ..Path::default() };
    let paths = Paths { hardware: path, ..Paths::default() };
    // From 0.1 ms to 5 s, uniformly by order of magnitude.
    let late = Nanos(
        draw.between(100_000, 900_000) * 10u64.pow(draw.between(0, 4) as u32) % 5_000_000_000,
    );
    let late = late.max(Nanos(100_000));
    let is_late = seed % 5 == 1;
    let hardware = Hardware {
        activation_ns: if is_late { late.0 } else { draw.between(0, 20_000_000) },
        ..Hardware::default()
    };
    let barrier = Barrier { answers: if is_late { 2 } else { 0 }, delay_ns: 0 };
    let model = Model { hardware, barrier, paths, ..Model::default() };
    let switch = OneSwitch::like(&model, seed);
    match seed % 5 {
        1 => (Truth::Late(late), switch),
        2 => (Truth::Ignored, switch.flawed(Flaw::IgnoresRewrites)),
        3 => (Truth::Unstable, switch.flawed(Flaw::Unstable(draw.between(3, 9) as u32))),
        _ => (Truth::Honest, switch),
    }
}

fn value(report: &StageReport, name: &str) -> f64 {
    measured_metric(report, name).map_or(0.0, |found| found.value)
}

/// Returns the verdict of two of three repeats on a rewrite; `None` if it was rejected.
fn quorum(repeats: &[&StageReport]) -> Option<Verdict> {
    if repeats.iter().any(|report| value(report, "refused_count") > 0.0) {
        return None;
    }
    let of = |name: &str| repeats.iter().map(|report| value(report, name)).sum::<f64>();
    let most = 2.0 / 3.0 * repeats.len() as f64 - 1e-9;
    Some(match () {
        () if of("done_ratio") >= most => Verdict::Done,
        () if of("undone_ratio") >= most => Verdict::NotDone,
        () => Verdict::Unstable,
    })
}

fn cases(usual: u64) -> u64 {
    std::env::var("TRUTH_CASES_VERDICTS").ok().and_then(|it| it.parse().ok()).unwrap_or(usual)
}

#[test]
fn rewrites_are_reported_as_performed_late_unstable_or_missing() {
    let (mut honest, mut accused, mut others, mut missed) = (0, 0, 0, Vec::new());
    for seed in 0..cases(20) {
        let (truth, mut switch) = draw(seed);
        let set = ["rewrites=published", "packets=300", "repeats=3", "version=1.3"];
        let set: Vec<String> = set.map(String::from).into();
        let reports = switch.run("costa2017/table6", &set, seed);
        assert_eq!(reports.len(), KINDS * REPEATS);
        // The first two kinds rewrite nothing.
        for kind in 2..KINDS {
            let repeats: Vec<&StageReport> = reports.iter().skip(kind).step_by(KINDS).collect();
            let found = quorum(&repeats).expect("no rewrite is rejected");
            let late: Vec<_> =
                repeats.iter().filter_map(|report| measured_metric(report, "late_ns")).collect();
            let is_right = match truth {
                Truth::Honest => {
                    honest += 1;
                    accused += usize::from(found != Verdict::Done || !late.is_empty());
                    continue;
                }
                Truth::Ignored => found == Verdict::NotDone,
                Truth::Unstable => found == Verdict::Unstable,
                Truth::Late(by) => {
                    let holds = |it: &&tester::module::MeasuredValue| {
                        let half = it.half_width.unwrap_or(0.0);
                        // A frame is in flight when its rule becomes active.
                        (it.value - by.0 as f64).abs() <= half + 100_000.0
                    };
                    found == Verdict::Done && late.len() == REPEATS && late.iter().all(holds)
                }
            };
            others += 1;
            if !is_right {
                let late: Vec<_> = late.iter().map(|it| (it.value, it.half_width)).collect();
                missed.push(format!("{seed} {truth:?} kind {kind}: {found:?}, late {late:?}"));
            }
        }
    }
    println!("{accused} of {honest} accused falsely; {} of {others} missed", missed.len());
    assert!(accused * 100 <= honest * FAMILYWISE_ERROR_PERCENT, "{accused} of {honest}");
    assert!(missed.len() * 20 <= others, "{} of {others}: {}", missed.len(), missed.join("\n"));
}

#[test]
fn late_switches_are_not_accused_by_actions_matches_and_capacity() {
    for seed in 0..cases(20) {
        let (truth, mut switch) = draw(seed);
        if !matches!(truth, Truth::Honest | Truth::Late(_)) {
            continue;
        }
        let is_late = truth != Truth::Honest;
        for (id, own, accusations, late) in [
            (
                "header-rewrite",
                "probes_pps=20000",
                &["actions_wrong_count", "actions_unstable_count"][..],
                "actions_late_count",
            ),
            (
                "match-tuples",
                "fields_at_once=1",
                &["too_wide_count", "too_narrow_count", "unstable_count"],
                "late_count",
            ),
            (
                "table-capacity",
                "rules_bound=200",
                &["missing_rules", "unstable_rules"],
                "late_rules",
            ),
        ] {
            let set = [own, "version=1.3"].map(String::from);
            let reports = switch.run(id, &set, seed);
            for report in &reports {
                assert_eq!(report.ended, Ended::Completed, "{seed} {id}");
                for name in accusations {
                    assert_eq!(value(report, name), 0.0, "{seed} {truth:?} {id} {name}");
                }
                // A delay below that of a probe need not be visible.
                if !is_late {
                    assert_eq!(value(report, late), 0.0, "{seed} {truth:?} {id} {late}");
                } else if matches!(truth, Truth::Late(by) if by > Nanos::from_millis(100)) {
                    assert!(value(report, late) > 0.0, "{seed} {truth:?} {id} {late}");
                }
            }
        }
    }
}

#[test]
fn accepted_rules_that_are_not_installed_are_reported_as_missing() {
    let mut switch = OneSwitch::like(&Model::default(), 1).flawed(Flaw::IgnoresRules(4));
    let set = ["rules_bound=100", "version=1.3", "timeout_s=0.5"].map(String::from);
    let report = &switch.run("table-capacity", &set, 1)[0];
    assert_eq!(value(report, "accepted_rules"), 100.0);
    assert_eq!(value(report, "missing_rules"), 25.0);
    assert_eq!(value(report, "acting_rules"), 75.0);
}
