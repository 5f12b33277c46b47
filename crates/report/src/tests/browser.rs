//! Tests of the page in a real headless Chromium with `tests/browser/report.mjs`.
//!
//! Requires Chromium, Node and two packages from npm (`tools/needs.sh tests`). Without them, the
//! test reports that and passes, except as root with CI set. Sizes are checked; times are only
//! printed (`--nocapture`).

use std::path::Path;
use std::process::Command;

#[path = "../../tests/browser/packages.rs"]
mod packages;

use super::super::*;
use record::{Cell, Ratio, Trial};
use stats::histogram::Histogram;

/// Figures of a full study.
const FIGURES: usize = 10;

/// The sample run with as many figures as a full study, and latencies by percentile.
fn study() -> Run {
    let mut record = sample::record();
    let made_up = record.experiments.clone();
    for number in record.experiments.len()..FIGURES {
        let like = &made_up[number % made_up.len()];
        let id = format!("made-up/fig{number}");
        let own = |its: &String| *its == like.id;
        let cells = record.cells.iter().filter(|it| own(&it.experiment)).cloned();
        let cells: Vec<Cell> = cells.map(|it| Cell { experiment: id.clone(), ..it }).collect();
        let ratios = record.ratios.iter().filter(|it| own(&it.experiment)).cloned();
        let ratios: Vec<Ratio> = ratios.map(|it| Ratio { experiment: id.clone(), ..it }).collect();
        record.cells.extend(cells);
        record.ratios.extend(ratios);
        let shares_trials_with = Some(like.id.clone());
        record.experiments.push(Experiment { id, shares_trials_with, ..like.clone() });
    }
    let mut spectra = Spectra::default();
    for trial in &record.trials {
        spectra.add(trial.id, &latencies(trial));
    }
    Run { record, spectra, name: None }
}

/// Latencies with a tail, the same for the same trial.
fn latencies(trial: &Trial) -> Histogram {
    let mut histogram = Histogram::new();
    let middle = trial.latency.as_ref().map_or(20_000, |it| it.ns_mean as u64);
    for step in 1..=20_000 {
        let tail = (f64::from(step) / 20_000.0).powi(3) * middle as f64;
        histogram.record(middle + tail as u64 + 40 * (trial.id % 7));
    }
    histogram
}

/// A run with names that contain markup.
fn hostile() -> Run {
    let mut run = study();
    let evil = "<img src=x onerror=window.hostile=1></script><script>window.hostile=2</script>";
    for target in &mut run.record.targets {
        let name = format!("{}{evil}", target.name);
        for cell in run.record.cells.iter_mut().filter(|it| it.target == target.name) {
            cell.target.clone_from(&name);
        }
        for trial in run.record.trials.iter_mut().filter(|it| it.target == target.name) {
            trial.target.clone_from(&name);
        }
        target.name = name;
    }
    run.record.experiments[0].title = evil.into();
    run.record.command_line = evil.into();
    run
}

#[test]
fn pages_are_small() {
    let mut one = study();
    one.record.experiments.retain(|it| it.id == "bianco2010/fig4");
    one.record.trials.retain(|it| it.experiment == "bianco2010/fig4");
    let mut many = study();
    let trials = many.record.trials.clone();
    for round in 1..4 {
        let again = trials.iter().map(|it| Trial { id: it.id + round * 1000, ..it.clone() });
        many.record.trials.extend(again);
    }
    assert!(many.record.trials.len() > 1500);
    for (run, most) in [(one, 600_000), (many, 5_000_000)] {
        let trials = run.record.trials.len();
        let size = page::html(None, &[run]).len();
        println!("{trials} trials: {size} bytes");
        assert!(size <= most, "{trials} trials: {size} bytes");
    }
}

#[test]
#[allow(clippy::disallowed_methods)]
fn the_report_works_in_a_browser() {
    let Some(packages) = packages::found() else { return };
    let folder = std::env::temp_dir().join(format!("planimeter-browser-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let keep = |name: &str, text: String| std::fs::write(folder.join(name), text).unwrap();
    keep("report.html", page::html(None, &[study()]));
    keep("hostile.html", page::html(None, &[hostile()]));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser/report.mjs");
    // Far longer than it takes on an idle machine.
    let run =
        Command::new("timeout").arg("500").arg("node").args([&script, &folder, &packages]).output();
    let run = run.expect("timeout is part of every system");
    std::fs::remove_dir_all(&folder).unwrap();
    let output = String::from_utf8_lossy(&run.stdout);
    println!("{output}");
    assert!(run.status.success(), "{output}\n{}", String::from_utf8_lossy(&run.stderr));
    assert!(output.matches("ok ").count() > 20, "too few checks:\n{output}");
}
