//! Tests of findings: the sentences of each kind in `tests/golden/findings`, and what decides them.

use std::path::Path;

use super::next::Next;
use super::reliability::{Account, Agents, agents};
use super::*;
use crate::analysis::gelberger2013::named;
use record::{
    Bound, BoundCause, BoundSide, ClaimVerdict, Flag, SnmpReport, Stalls, Trial, Verdict,
};

/// All findings that a report states, those of several experiments one by one.
fn all(record: &Record) -> Vec<Finding<'_>> {
    let stated = verdict(record).into_iter().chain(results(record)).chain(confidence(record));
    let stated = stated.chain(caveats(record)).chain(claims(record)).chain(first_look(record));
    stated.flat_map(Finding::parts).collect()
}

/// The sentences of one kind in these records.
fn of_kind(records: &[&Record], is_it: fn(&Finding<'_>) -> bool) -> Vec<String> {
    let of = |record: &&Record| -> Vec<String> {
        all(record).iter().filter(|it| is_it(it)).map(shown).collect()
    };
    records.iter().flat_map(of).collect()
}

fn shown(finding: &Finding<'_>) -> String {
    finding.sentence().to_string()
}

fn text_of(found: &[Finding<'_>]) -> String {
    found.iter().map(shown).collect::<Vec<_>>().join(" ")
}

/// Compares sentences with the golden file of their kind; `UPDATE=1` rewrites it.
#[allow(clippy::disallowed_methods)]
fn check(kind: &str, sentences: &[String]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/findings");
    let (path, have) = (folder.join(format!("{kind}.txt")), sentences.join("\n") + "\n");
    assert!(!sentences.is_empty(), "{kind} has no example");
    if std::env::var("UPDATE").is_ok_and(|value| value == "1") {
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(&path, &have).unwrap();
    }
    assert_eq!(have, std::fs::read_to_string(&path).unwrap_or_default(), "{}", path.display());
}

/// A test for each kind of finding, with examples from records.
macro_rules! golden {
    ($($kind:ident: $pattern:pat in [$($record:expr),+];)+) => { $(
        #[test]
        fn $kind() {
            check(stringify!($kind), &of_kind(&[$(&$record),+], |it| matches!(it, $pattern)));
        }
    )+ };
}

/// A test for each kind whose examples are made.
macro_rules! golden_made {
    ($($kind:ident: $($finding:expr),+;)+) => { $(
        #[test]
        fn $kind() {
            check(stringify!($kind), &[$(shown(&$finding)),+]);
        }
    )+ };
}

/// The sentences of each kind; the tests have the names of the kinds.
mod golden {
    use super::*;

    golden! {
        measured: Finding::Measured(_) in [sample::record(), first(), one_target(), simulated()];
        not_usable: Finding::NotUsable { .. } in [mostly_disturbed()];
        failed: Finding::Failed(_) in [failing()];
        single: Finding::Single { .. } in [one_target(), all_carried(), bounded(BoundCause::LinkLimit)];
        extremes: Finding::Extremes { .. } in [sample::record(), one_end_open()];
        unordered: Finding::Unordered { .. } in [simulated()];
        unresolved: Finding::Unresolved { .. } in [bounded(BoundCause::Resolution)];
        difference: Finding::Difference(_) in [sample::record(), one_target(), simulated()];
        barriers: Finding::Barriers(_) in [
            rules(&[("switch", 0.0, -2e6), ("ovs", 0.58, 355e6)]),
            rules(&[("switch", 0.0, -2e6)]), unresolved_rules()
        ];
        activation: Finding::Activation { .. } in [rules(&[("switch", 0.0, -2e6), ("ovs", 0.58, 355e6)])];
        reliability: Finding::Reliability(_) in [sample::record(), partly_disturbed(), interrupted()];
        repeats: Finding::Repeats(_) in [sample::record()];
        account: Finding::Account(_) in [sample::record(), interrupted()];
        calibration: Finding::Calibration { .. } in [sample::record(), above_ceiling()];
        claims: Finding::Claims(_) in [sample::record()];
        warned: Finding::Warned { .. } in [sample::record(), partly_disturbed()];
        first_look: Finding::FirstLook { .. } in [with_repeats()];
        next: Finding::Next(_) in [
            sample::record(), failing(), interrupted(), mostly_disturbed(), simulated(), one_end_open(),
            bounded(BoundCause::LinkLimit), bounded(BoundCause::TesterLimit), with_repeats()
        ];
    }

    golden_made! {
        ranks: Finding::Ranks(vec![
            ("planimeter switch".into(), vec![("delay of a match by IP".into(), "1 of 10".into())]),
            ("ovs".into(), vec![("capacity".into(), "2 to 3 of 10".into())]),
        ]);
        costs: Finding::Costs([5, 1, 1]), Finding::Costs([5, 1, 2]);
        limited: limit(Limit::Tester), limit(Limit::Wire), limit(Limit::Target), limit(Limit::Load);
        account_of_trials: accounted([0, 0]), accounted([1, 0]), accounted([2, 1]), accounted([0, 2]);
        snmp_agents: Finding::Agents(Agents { problem: Some("no reply"), ..told(0) }),
            Finding::Agents(told(1)), Finding::Agents(told(2));
        next_made: Finding::Next(Next::Baseline),
            Finding::Next(Next::Strengthen { cause: BoundCause::SearchLimit }),
            Finding::Next(Next::Strengthen { cause: BoundCause::Resolution }),
            Finding::Next(Next::Publish { effort: Effort::Full, command: "planimeter run x".into() }),
            Finding::Next(Next::Repeat { repeats: 3, widths: None, command: "planimeter run x".into() }),
            Finding::Next(Next::Repeat {
                repeats: 12,
                widths: Some([0.081, 0.0405]),
                command: "planimeter run x".into()
            });
        failed_trials: Finding::Failed(failures(1, 1)), Finding::Failed(failures(2, 2)),
            Finding::Failed(failures(2, 7));
    }
}

fn limit(limit: Limit) -> Finding<'static> {
    let targets = vec![("switch", 3, 3), ("ovs", 1, 3)];
    Finding::Limited { experiment: "throughput", limit, targets }
}

fn failures(failed: usize, trials: usize) -> Failures {
    let reasons = vec![("mine.py on switch: no such thing".into(), failed)];
    Failures { error: None, failed, trials, reasons }
}

fn accounted([missing, surplus]: [u64; 2]) -> Finding<'static> {
    let (offered, lost) = (100, [0, 2, 0, 1]);
    let received = offered + surplus - missing - 3;
    Finding::Account(Account { offered, received, lost, missing, surplus, cut_short: 0 })
}

fn told(counting: usize) -> Agents<'static> {
    Agents { trials: [2, counting], frames_in: 80, frames_sent: 84, problem: None }
}

/// The sample run with some trials changed and its results derived again.
fn changed(change: impl Fn(&mut Trial)) -> Record {
    let mut record = sample::record();
    record.trials.iter_mut().for_each(change);
    crate::finish(&mut record, &sample::claims());
    record
}

/// The sample run in which the tester was descheduled in some trials.
fn descheduled(is_it: impl Fn(u64) -> bool) -> Record {
    changed(|trial| {
        if is_it(trial.id) {
            trial.flags.push(Flag::Stall);
            let ns_total = trial.duration_ns_effective / 20;
            trial.stalls =
                Some(Stalls { count: 9, ns_total, ns_longest: ns_total / 2, ..Stalls::default() });
        }
    })
}

fn mostly_disturbed() -> Record {
    descheduled(|id| id % 8 != 0)
}

fn partly_disturbed() -> Record {
    descheduled(|id| id % 50 == 1)
}

fn simulated() -> Record {
    let mut record = sample::record();
    record.environment.simulated = true;
    record.command_line = "planimeter run bianco2010/fig2 --set simulate=true --seed 7".into();
    crate::finish(&mut record, &sample::claims());
    record
}

/// The first experiment of the sample.
fn first() -> Record {
    let mut record = sample::record();
    record.experiments.truncate(1);
    let id = record.experiments[0].id.clone();
    record.cells.retain(|cell| cell.experiment == id);
    record.trials.retain(|trial| trial.experiment == id);
    record
}

fn one_target() -> Record {
    let mut record = first();
    record.targets.retain(|it| it.name == "bridge");
    record.cells.retain(|it| it.target == "bridge");
    record
}

fn all_carried() -> Record {
    changed(|trial| {
        trial.frames_forwarded = trial.frames_offered;
        trial.bytes_forwarded = trial.bytes_offered;
        trial.flags.clear();
    })
}

/// Equal values that are bounds, or values below their resolution.
fn bounded(cause: BoundCause) -> Record {
    let mut record = first();
    let side = if cause == BoundCause::Resolution { BoundSide::Upper } else { BoundSide::Lower };
    for cell in &mut record.cells {
        match cause {
            BoundCause::Resolution => cell.resolution = Some(2.0 * cell.value),
            _ => cell.value = 1e6,
        }
        cell.bound = Some(Bound { side, cause });
    }
    record
}

/// The lowest value is one of two.
fn one_end_open() -> Record {
    let mut record = first();
    let values = [
        ("switch", 1e5, [0.9, 1.0, 1.1]),
        ("ovs", 1e6, [0.999, 1.0, 1.001]),
        ("bridge", 1.02e5, [1.1, 1.0, 0.9]),
        ("router", 9e5, [0.999, 1.0, 1.001]),
    ];
    record.cells.retain(|cell| values.iter().any(|(target, ..)| cell.target == *target));
    for cell in &mut record.cells {
        let (_, value, by) = values.iter().find(|(target, ..)| cell.target == *target).unwrap();
        (cell.value, cell.bound) = (*value, None);
        (cell.samples, cell.repeats) = (by.map(|it| it * value).into(), vec![1, 2, 3]);
        let of = |level| stats::interval::of_mean(&cell.samples, level);
        (cell.interval, cell.interval_99) = (of(95.0), of(99.0));
    }
    record
}

fn failing() -> Record {
    let mut record = sample::record();
    record.failure = Some("--setup on switch ended with exit status: 7".into());
    record
}

/// A search that was interrupted in its last trial.
fn interrupted() -> Record {
    let mut record = sample::record();
    record.trials.truncate(14);
    for trial in &mut record.trials {
        (trial.role, trial.frames_unexplained) = (record::Role::Search, 0);
    }
    record.trials[13].flags.push(Flag::Interrupted);
    (record.partial, record.trials_planned) = (true, Some(40));
    crate::finish(&mut record, &[]);
    record
}

fn above_ceiling() -> Record {
    let mut record = sample::record();
    let rates = record.trials.iter().filter_map(|it| it.rate_pps_forwarded());
    record.calibrations[0].rate_pps_ceiling = (rates.fold(0.0, f64::max) * 0.9) as u64;
    record
}

fn with_repeats() -> Record {
    let mut record = sample::record();
    record.parameters.insert("repeats".into(), 3.into());
    record
}

/// A run of `rule-activation` on switches with these premature shares and gaps.
fn rules(switches: &[(&str, f64, f64)]) -> Record {
    let mut record = first();
    record.experiments[0].id = "rule-activation".into();
    let one = record.cells[0].clone();
    record.cells.clear();
    for (target, share, gap_ns) in switches {
        let values = [
            ("rules_premature_ratio", *share),
            ("barrier_gap_ns_max", *gap_ns),
            ("data_plane_ns", 5e8 + gap_ns),
        ];
        for ((name, value), rules) in values.iter().flat_map(|it| [(it, 1.0), (it, 1000.0)]) {
            let samples: Vec<f64> = [0.998, 0.999, 1.0, 1.001, 1.002].map(|by| by * value).into();
            record.cells.push(Cell {
                experiment: "rule-activation".into(),
                target: (*target).into(),
                point: Point::new("rules", rules),
                metric: named(name),
                unit: named(name).unit().into(),
                value: *value,
                interval: stats::interval::of_mean(&samples, 95.0),
                samples,
                repeats: vec![1, 2, 3, 4, 5],
                n: 5,
                limit: None,
                warnings: Vec::new(),
                ..one.clone()
            });
        }
    }
    record
}

/// Probes that prove some rules premature and resolve no others.
fn unresolved_rules() -> Record {
    let mut record = rules(&[("switch", 0.0, -2e6), ("ovs", 0.1, 3e6)]);
    for cell in &mut record.cells {
        cell.resolution = match cell.metric.name() {
            "rules_premature_ratio" => Some(0.4),
            "barrier_gap_ns_max" => Some(9e6),
            _ => None,
        };
    }
    record
}

/// The records of earlier versions.
#[allow(clippy::disallowed_methods)]
fn stored() -> Vec<Record> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../store/tests/records");
    let files = std::fs::read_dir(folder).unwrap().map(|it| it.unwrap().path());
    let run = std::env::temp_dir().join(format!("planimeter-findings-{}", std::process::id()));
    std::fs::create_dir_all(&run).unwrap();
    let read = |path| {
        std::fs::copy(path, run.join("record.json")).unwrap();
        let mut record = store::read_results(&run).unwrap();
        crate::finish(&mut record, &[]);
        record
    };
    let found: Vec<Record> = files.map(read).collect();
    std::fs::remove_dir_all(run).unwrap();
    assert!(found.len() >= 3);
    found
}

#[test]
fn a_verdict_has_at_most_five_sentences_in_their_order() {
    let made = [
        sample::record(),
        first(),
        one_target(),
        simulated(),
        mostly_disturbed(),
        failing(),
        interrupted(),
        one_end_open(),
        bounded(BoundCause::LinkLimit),
        unresolved_rules(),
    ];
    for record in made.into_iter().chain(stored()) {
        let found = verdict(&record);
        assert!((2..=5).contains(&found.len()), "{}", text_of(&found));
        let position = |is_it: fn(&Finding<'_>) -> bool| found.iter().position(is_it);
        let places = [
            position(|it| matches!(it, Finding::NotUsable { .. } | Finding::Failed(_))),
            position(|it| matches!(it, Finding::Measured(_))),
            position(|it| matches!(it, Finding::Difference(_))),
            position(|it| matches!(it, Finding::Reliability(_))),
            position(|it| matches!(it, Finding::Next(_))),
        ];
        let places: Vec<usize> = places.into_iter().flatten().collect();
        assert!(places.is_sorted(), "{}", text_of(&found));
        assert!(matches!(found.last(), Some(Finding::Next(_))), "{}", text_of(&found));
        for finding in all(&record) {
            let sentence = shown(&finding);
            assert!(sentence.ends_with('.') && !sentence.contains(" nothing "), "{sentence}");
        }
    }
}

#[test]
fn a_mostly_disturbed_run_reports_that_first_and_has_no_conclusions() {
    let record = mostly_disturbed();
    let (disturbed, all) = (record.trials.len() - record.trials.len() / 8, record.trials.len());
    let words = format!("the tester was descheduled in {disturbed} of {all} trials");
    assert_eq!(shown(&verdict(&record)[0]), format!("Not usable: {words}."));
    assert_eq!((main_result(&record), results(&record)), (None, Vec::new()));
    let text = crate::summary::markdown([&record]);
    assert!(text.find("**Not usable: ") < text.find(" measured "), "{text}");
    assert!(!text.contains("has the highest") && !text.contains("significant"), "{text}");
    let why = |line: &ClaimVerdict| match &line.verdict {
        Verdict::Undecided(why) => Some(why.contains(&words)),
        _ => None,
    };
    let whys: Option<Vec<bool>> = record.claims.iter().map(why).collect();
    assert!(whys.unwrap().contains(&true), "claims are undecided for this reason");
    assert!(record.ratios.iter().all(|ratio| ratio.answer == record::Answer::Inconclusive));
    assert!(record.is_doubtful(), "--strict rejects it");
    let usable = descheduled(|id| id % 4 == 0);
    assert!(main_result(&usable).is_some(), "a quarter of the trials is no majority");
}

#[test]
fn simulated_time_ranks_no_rates_and_decides_no_claim_about_them() {
    let mut record = simulated();
    assert!(record.claims.iter().all(|line| line.verdict != Verdict::Holds));
    assert!(record.ratios.iter().all(|ratio| ratio.answer == record::Answer::Inconclusive));
    let text = text_of(&all(&record));
    assert!(text.contains("rates and times are simulated"), "{text}");
    assert!(!text.contains("has the highest") && !text.contains("a significant"), "{text}");
    let same = record.cells.iter_mut().filter(|it| it.metric == Metric::RatePpsForwarded);
    same.for_each(|cell| (cell.value, cell.bound) = (1e6, None));
    let text = text_of(&all(&record));
    assert!(!text.contains("is between 1") && text.contains("of every target is 1"), "{text}");
}

#[test]
fn an_early_acknowledgement_comes_first_even_in_simulated_time() {
    let early = "planimeter switch acknowledges rules 355 ms before they act";
    let mut record = rules(&[("switch", 0.58, 355e6)]);
    for cell in &mut record.cells {
        cell.exclusion = Some(record::Exclusion::Simulated);
    }
    assert!(shown(&main_result(&record).unwrap()).starts_with(early));
    // One repeat proves nothing.
    for cell in &mut record.cells {
        (cell.samples, cell.repeats, cell.n) = (vec![cell.value], vec![1], 1);
    }
    let open = "Whether planimeter switch acknowledges rules before they act is undecided: ";
    assert!(shown(&main_result(&record).unwrap()).starts_with(open));
    // The largest number of rules is open, a smaller one decides.
    let mut fewer = unresolved_rules();
    let of_most = |cell: &&mut Cell| cell.target == "ovs" && cell.point.value == 1000.0;
    let of_most = fewer.cells.iter_mut().filter(of_most).filter(|cell| cell.value == 0.1);
    of_most.for_each(|cell| cell.samples = vec![0.0; 5]);
    let found = shown(&main_result(&fewer).unwrap());
    assert!(found.starts_with("ovs acknowledges rules before they act (at least 10 % of 1 rules"));
}

#[test]
fn only_measured_experiments_and_values_of_one_curve_are_stated() {
    let mut record = sample::record();
    record.experiments[2].id = "bianco2010/fig7".into();
    let stated = shown(&Finding::Measured(measured(&[&record])));
    assert!(stated.starts_with("This run measured bianco2010/fig2 and bianco2010/fig3 on"));
    record.trials.clear();
    assert!(shown(&Finding::Measured(measured(&[&record]))).contains("bianco2010/fig7"));
    // Each target is twice as good under the second of two conditions.
    let mut record = first();
    let on = |cell: &Cell, rows: f64, times: f64| Cell {
        point: cell.point.clone().within("entries", rows),
        value: times * cell.value,
        samples: cell.samples.iter().map(|it| times * it).collect(),
        ..cell.clone()
    };
    let cells: Vec<Cell> = std::mem::take(&mut record.cells);
    record.cells = cells.iter().flat_map(|it| [on(it, 1.0, 2.0), on(it, 8.0, 1.0)]).collect();
    let found = text_of(&all(&record));
    assert!(found.contains("With 64-byte packets and 1 entries, "), "{found}");
    assert!(!found.contains("8 entries"), "{found}");
}

#[test]
fn results_name_their_experiment_and_repeat_nothing() {
    let mut record = sample::record();
    let before = results(&record).len();
    let title = format!("{} ({}): ", record.experiments[1].title, record.experiments[1].id);
    assert!(text_of(&results(&record)).contains(&title));
    let twin = record.experiments[1].clone();
    let (id, source) = ("bianco2010/fig3-twin".to_string(), twin.id.clone());
    record.experiments.push(Experiment { id, shares_trials_with: Some(source), ..twin });
    crate::finish(&mut record, &[]);
    assert_eq!(results(&record).len(), before);
    let mut sentences: Vec<String> = all(&record).iter().map(shown).collect();
    let count = sentences.len();
    sentences.sort();
    sentences.dedup();
    assert_eq!(sentences.len(), count, "no sentence is stated twice: {sentences:?}");
}

#[test]
fn the_next_step_follows_from_the_facts() {
    let next = |record: &Record| match verdict(record).pop() {
        Some(Finding::Next(next)) => next,
        other => panic!("{other:?}"),
    };
    let quick = next(&sample::record());
    let Next::Publish { effort: Effort::Standard, command } = &quick else { panic!("{quick:?}") };
    assert!(command.ends_with("--effort standard --seed 7"), "{command}");
    let live = next(&simulated());
    assert_eq!(live, Next::Live { command: "planimeter run bianco2010/fig2 --seed 7".into() });
    let mut close = first();
    close.experiments[0].x_name = "load_percent".into();
    // Two targets differ by 5 %, and their ratio scatters by more.
    close.cells.retain(|it| ["switch", "ovs"].contains(&it.target.as_str()));
    for cell in &mut close.cells {
        let by = if cell.target == "ovs" { [1.0, 1.05, 1.1] } else { [1.0, 1.01, 0.99] };
        (cell.samples, cell.bound) = (by.map(|it| it * 1e6).into(), None);
        cell.value = cell.samples.iter().sum::<f64>() / 3.0;
    }
    let more = next(&close);
    let Next::Repeat { repeats, widths: Some([before, after]), command } = &more else {
        panic!("{more:?}")
    };
    assert!(*repeats > 3 && after < before, "{more:?}");
    assert!(command.contains(&format!(" --set repeats={repeats} --seed 7")), "{command}");
    for (cause, wanted) in
        [(BoundCause::LinkLimit, "--set capacity=auto"), (BoundCause::TesterLimit, "cores")]
    {
        assert!(shown(&Finding::Next(next(&bounded(cause)))).contains(wanted), "{cause:?}");
    }
}

#[test]
fn agents_that_were_not_read_are_not_mentioned() {
    let mut trials = sample::record().trials;
    trials.truncate(3);
    assert_eq!(agents(&trials), None);
    let counted = SnmpReport { frames_in: Some(40), frames_sent: 42, ..SnmpReport::default() };
    trials[0].witness =
        Some(SnmpReport { problems: vec!["no reply".into()], ..SnmpReport::default() });
    (trials[1].witness, trials[2].witness) = (Some(counted.clone()), Some(counted));
    let wanted =
        Agents { trials: [3, 2], frames_in: 80, frames_sent: 84, problem: Some("no reply") };
    assert_eq!(agents(&trials), Some(wanted));
}
