//! Tests comparisons with simulated series of known ground truth.
//!
//! Trials are drawn in the order of a real run, with both sides interleaved. The noise models are
//! heavy tails, drift, autocorrelation, stalls, two alternating speeds, and all of these together.
//! `TRUTH_CASES_GATE` is the number of comparisons per model. Thousands are necessary to estimate
//! the error rate well.

use std::sync::OnceLock;

use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::*;
use crate::effect::BETWEEN_RUNS;
use record::Record;

/// Repeats of the efforts `quick` and `standard`.
const REPEATS: usize = 5;

/// Noise models.
#[derive(Debug, Clone, Copy, PartialEq)]
enum NoiseModel {
    Calm,
    HeavyTails,
    Drift,
    Correlated,
    Stalls,
    Modes,
    All,
}

const NOISES: [NoiseModel; 7] = [
    NoiseModel::Calm,
    NoiseModel::HeavyTails,
    NoiseModel::Drift,
    NoiseModel::Correlated,
    NoiseModel::Stalls,
    NoiseModel::Modes,
    NoiseModel::All,
];

/// State of the simulated machine during a run, which scales true values.
struct Machine {
    noise: NoiseModel,
    random: Pcg64Mcg,
    trials: f64,
    at: f64,
    correlated: f64,
    is_slow: bool,
}

impl Machine {
    fn new(noise: NoiseModel, trials: usize, random: &mut Pcg64Mcg) -> Machine {
        let mut random = Pcg64Mcg::seed_from_u64(random.next_u64());
        let correlated = normal(&mut random);
        let is_slow = even(&mut random) < 0.5;
        Machine { noise, random, trials: trials as f64, at: 0.0, correlated, is_slow }
    }

    /// The factor for the next trial.
    fn next(&mut self) -> f64 {
        let has = |noise| self.noise == noise || self.noise == NoiseModel::All;
        let (heavy, drift, correlated) =
            (has(NoiseModel::HeavyTails), has(NoiseModel::Drift), has(NoiseModel::Correlated));
        let (stalls, modes) = (has(NoiseModel::Stalls), has(NoiseModel::Modes));
        let random = &mut self.random;
        let mut log = 0.007 * normal(random);
        if heavy {
            // Student's t with three degrees of freedom: its variance is three times that of its
            // central part.
            let chi: f64 = (0..3).map(|_| normal(random).powi(2)).sum();
            log = 0.006 * normal(random) / (chi / 3.0).sqrt();
        }
        if drift {
            log -= 0.10 * self.at / self.trials;
        }
        if correlated {
            self.correlated = 0.8 * self.correlated + 0.6 * normal(random);
            log += 0.015 * self.correlated;
        }
        if stalls && even(random) < 0.06 {
            log -= 0.05 + 0.5 * even(random);
        }
        if modes {
            self.is_slow ^= even(random) < 0.08;
            log -= if self.is_slow { 0.06 } else { 0.0 };
        }
        self.at += 1.0;
        log.exp()
    }
}

fn even(random: &mut Pcg64Mcg) -> f64 {
    (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

fn normal(random: &mut Pcg64Mcg) -> f64 {
    let radius = (-2.0 * (1.0 - even(random)).ln()).sqrt();
    radius * (std::f64::consts::TAU * even(random)).cos()
}

/// A run of two interleaved targets at several points. At the first point, the second target is
/// `truth` times as fast.
fn run(
    noise: NoiseModel,
    points: usize,
    repeats: usize,
    truth: f64,
    random: &mut Pcg64Mcg,
) -> Record {
    let mut machine = Machine::new(noise, points * repeats * 2, random);
    let mut samples = vec![(Vec::new(), Vec::new()); points];
    for round in 0..repeats {
        for (at, point) in samples.iter_mut().enumerate() {
            let truth = if at == 0 { truth } else { 1.0 };
            // Every second round is in reverse order, as in `planimeter compare`.
            if round % 2 == 0 {
                point.0.push(1e6 * machine.next());
                point.1.push(1e6 * truth * machine.next());
            } else {
                point.1.push(1e6 * truth * machine.next());
                point.0.push(1e6 * machine.next());
            }
        }
    }
    let mut record = empty();
    for (at, (base, new)) in samples.into_iter().enumerate() {
        record.cells.push(cell("base", at as f64, base));
        record.cells.push(cell("new", at as f64, new));
    }
    record
}

/// The sample run without its results.
pub(super) fn empty() -> Record {
    static EMPTY: OnceLock<Record> = OnceLock::new();
    EMPTY.get_or_init(make_empty).clone()
}

fn make_empty() -> Record {
    let mut record = sample::record();
    record.trials.clear();
    record.cells.clear();
    for (target, name) in record.targets.iter_mut().zip(["base", "new"]) {
        target.name = name.into();
    }
    record.targets.truncate(2);
    (record.ratios, record.claims, record.warnings) = Default::default();
    record
}

/// A cell of the forwarding rate.
pub(super) fn cell(target: &str, x: f64, samples: Vec<f64>) -> Cell {
    let metric = Metric::RatePpsForwarded;
    Cell {
        experiment: "forwarding-rate".into(),
        target: target.into(),
        link: None,
        point: Point::new("entries", x),
        metric,
        unit: metric.unit().into(),
        value: crate::series::mean(&samples).unwrap(),
        n: samples.len() as u32,
        interval: None,
        interval_99: None,
        resolution: None,
        repeats: (1..=samples.len() as u32).collect(),
        samples,
        trials: Vec::new(),
        limit: None,
        bound: None,
        disturbances: Vec::new(),
        exclusion: None,
        warnings: Vec::new(),
    }
}

pub(super) fn sides(record: &Record) -> [ComparedRun<'_>; 2] {
    ["base", "new"].map(|name| ComparedRun { name, record, target: Some(name) })
}

/// The result of a comparison including its confirmation measurements.
fn compared(noise: NoiseModel, points: usize, truth: f64, random: &mut Pcg64Mcg) -> Comparison {
    let first = run(noise, points, REPEATS, truth, random);
    let [base, new] = sides(&first);
    let mut found = contrast(&base, &new, &Gate::by_default(), false).unwrap();
    for times in REMEASURE_FACTORS {
        if found.undecided().is_empty() {
            break;
        }
        let again = run(noise, points, REPEATS * times as usize, truth, random);
        let [base, new] = sides(&again);
        found.confirm(&base, &new).unwrap();
    }
    found
}

fn cases(by_default: u32) -> u32 {
    #[allow(clippy::disallowed_methods, reason = "the environment sets the amount of testing")]
    let asked = std::env::var("TRUTH_CASES_GATE").ok();
    asked.and_then(|text| text.parse().ok()).unwrap_or(by_default)
}

/// Percentage of comparisons that meet a condition, for each noise model.
fn shares(cases: u32, points: usize, truth: f64, said: impl Fn(&Comparison) -> bool) -> Vec<f64> {
    let share = |(kind, noise): (usize, &NoiseModel)| {
        let mut random = Pcg64Mcg::seed_from_u64(1 + kind as u64 * 7919 + points as u64);
        let hits = (0..cases).filter(|_| said(&compared(*noise, points, truth, &mut random)));
        100.0 * hits.count() as f64 / f64::from(cases)
    };
    NOISES.iter().enumerate().map(share).collect()
}

/// Deviation of a percentage that chance explains, at five standard errors.
fn chance(percent: f64, cases: u32) -> f64 {
    5.0 * (percent * (100.0 - percent) / f64::from(cases)).sqrt()
}

#[test]
fn what_does_not_differ_is_hardly_ever_said_to() {
    let cases = cases(150);
    let is_false = |found: &Comparison| {
        found.outcome() == Some(Outcome::Failed)
            || matches!(found.verdict, Verdict::Worse | Verdict::Better)
    };
    for points in [1, 6] {
        let shares = shares(cases, points, 1.0, is_false);
        println!("{points} points, false words in percent of {cases}: {NOISES:?} {shares:?}");
        for (noise, share) in NOISES.iter().zip(shares) {
            let limit = FAMILYWISE_ERROR_PERCENT + chance(FAMILYWISE_ERROR_PERCENT, cases);
            assert!(share <= limit, "{noise:?}, {points} points: {share} % of {cases} are false");
        }
    }
}

#[test]
fn a_loss_of_five_percent_is_caught() {
    let cases = cases(60);
    for points in [1, 6] {
        let shares = shares(cases, points, 0.95, |found| found.outcome() == Some(Outcome::Failed));
        println!("{points} points, losses caught in percent of {cases}: {NOISES:?} {shares:?}");
        for (noise, share) in NOISES.iter().zip(shares) {
            let limit = 95.0 - chance(95.0, cases);
            assert!(share >= limit, "{noise:?}, {points} points: {share} % of {cases} are caught");
        }
    }
}

#[test]
fn runs_that_were_made_apart_accuse_hardly_ever() {
    let cases = cases(200);
    // With separate runs, a machine with two speeds is indistinguishable from two different
    // targets. Such targets must be interleaved.
    let tellable =
        NOISES.iter().filter(|noise| !matches!(noise, NoiseModel::Modes | NoiseModel::All));
    for (kind, noise) in tellable.enumerate() {
        let mut random = Pcg64Mcg::seed_from_u64(5 + kind as u64);
        let mut failed = 0;
        for _ in 0..cases {
            let apart = |random: &mut Pcg64Mcg| {
                // In addition, each run has its own speed.
                let own = (BETWEEN_RUNS * normal(random)).exp();
                let mut record = run(*noise, 1, REPEATS, 1.0, random);
                record.cells.retain(|cell| cell.target == "base");
                record.cells[0].samples.iter_mut().for_each(|sample| *sample *= own);
                record
            };
            let (base, new) = (apart(&mut random), apart(&mut random));
            let side = |record| ComparedRun { name: "run", record, target: None };
            let by_default = Gate::by_default();
            let found = contrast(&side(&base), &side(&new), &by_default, false).unwrap();
            failed += u32::from(found.outcome() == Some(Outcome::Failed));
        }
        let share = 100.0 * f64::from(failed) / f64::from(cases);
        println!("apart, {noise:?}: {share} % of {cases} fail");
        assert!(
            share <= FAMILYWISE_ERROR_PERCENT + chance(FAMILYWISE_ERROR_PERCENT, cases),
            "{noise:?}: {share} %"
        );
    }
}

/// Two equal sides (A/A) in 2,000 runs of six cells each: at most 1 % of the cells may be reported
/// as different.
#[test]
fn cells_of_two_equal_sides_are_called_different_in_one_of_a_hundred_at_most() {
    const RUNS: u32 = 2000;
    const POINTS: usize = 6;
    let by_default = Gate::by_default();
    let (mut cells, mut different) = (0, 0);
    for (kind, noise) in NOISES.iter().enumerate() {
        let mut random = Pcg64Mcg::seed_from_u64(101 + kind as u64);
        let (before, share) = (different, RUNS.div_ceil(NOISES.len() as u32));
        for _ in 0..share {
            let record = run(*noise, POINTS, REPEATS, 1.0, &mut random);
            let [base, new] = sides(&record);
            let found = contrast(&base, &new, &by_default, false).unwrap();
            cells += found.cells.len();
            different += found.cells_that(Verdict::Worse) + found.cells_that(Verdict::Better);
        }
        println!("A/A, {noise:?}: {} of {} cells", different - before, share as usize * POINTS);
    }
    assert!(cells >= RUNS as usize * POINTS, "{cells}");
    let percent = 100.0 * different as f64 / cells as f64;
    println!("A/A: {different} of {cells} cells are called different ({percent:.3} %)");
    assert!(percent <= FAMILYWISE_ERROR_PERCENT, "{different} of {cells} cells: {percent} %");
}

/// Detection of a 3 % decrease at the usual scatter of a trial (0.7 %), by number of repeats.
#[test]
fn a_loss_of_three_percent_is_found_by_thirty_repeats_of_usual_noise() {
    let cases = cases(200);
    let power = |repeats: usize| {
        let mut random = Pcg64Mcg::seed_from_u64(211 + repeats as u64);
        let hits = (0..cases).filter(|_| {
            let record = run(NoiseModel::Calm, 6, repeats, 0.97, &mut random);
            let [base, new] = sides(&record);
            let found = contrast(&base, &new, &Gate::by_default(), false).unwrap();
            found.cells[0].verdict == Verdict::Worse
        });
        100.0 * hits.count() as f64 / f64::from(cases)
    };
    for repeats in [5, 10, 15, 20] {
        println!("power at a loss of 3 %, {repeats} repeats: {} %", power(repeats));
    }
    let most = power(REPEATS * REMEASURE_FACTORS[0] as usize);
    println!("power at a loss of 3 %, 30 repeats: {most} %");
    assert!(most >= 95.0, "{most} %");
}
