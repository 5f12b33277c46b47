//! Validation of fitting: the rule activation of a switch is measured, fitted and measured again,
//! and the fitted model reproduces the hidden one.
//!
//! Differences must be within the stated errors of both measurements and of the fitted keys.
//! `TRUTH_CASES_ACTIVATION` sets the number of switches.

use elements::hardware_model::model::{Barrier, Model};
use planimeter::model_fit::{self, FitResult, Run};
use runner::live::event::Event;
use runner::{Destination, Plan, ProgressListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use targets::links::Links;
use targets::name::{Link, TargetKind};
use targets::{Benches, HostPaths};
use workload::parameter::{Effort, Parameters};

use crate::case::Draw;
use crate::common::Folder;
use crate::models::cases;

const MS: u64 = 1_000_000;

const DEEDS: [&str; 3] = ["add", "modify", "delete"];

/// Values that are measured again.
const METRICS: [&str; 6] = [
    "control_plane_ns",
    "data_plane_ns",
    "activation_ns_p50",
    "barrier_gap_ns_max",
    "batch_rules_p50",
    "batch_interval_ns_mean",
];

/// A watcher that ignores all events.
struct Silent;

impl ProgressListener for Silent {
    fn say(&mut self, _: &str) {}
    fn expect(&mut self, _: u64) {}
    fn step(&mut self, _: &str) {}
    fn tell(&mut self, _: &Event) {}
}

/// Returns runs of every operation with these numbers of rules.
fn measured(kind: TargetKind, counts: &str, seed: u64) -> Vec<Run> {
    let run = |(number, operation): (usize, &&str)| {
        let mut parameters = Parameters::at(Effort::Quick);
        let entries = studies::find("rule-activation").unwrap();
        let assignments = [
            "simulate=true".to_string(),
            "repeats=1".into(),
            "probes=before".into(),
            "timeout_s=60".into(),
            "wildcard_entries_max=5000".into(),
            "probes_pps=20000".into(),
            "updates_max=2".into(),
            format!("rules_count={counts}"),
            format!("command={operation}"),
        ];
        for assignment in &assignments {
            studies::taking::assign(&mut parameters, &entries, assignment).unwrap();
        }
        let plan = Plan {
            entries,
            kinds: vec![kind],
            links: Links::all_by(Link::Memory),
            hooks: Default::default(),
            effort: Effort::Quick,
            parameters,
            assignments: assignments.to_vec(),
            seed,
            command_line: "planimeter run, from a test".into(),
            created: "2026-01-31T12:00:00Z".into(),
        };
        let stop = Arc::new(AtomicBool::new(false));
        let surroundings = HostPaths { program: PathBuf::new(), root: PathBuf::new() };
        let mut benches =
            Benches::open(&plan.links_used(), &surroundings, &plan.parameters, &stop).unwrap();
        let folder = Folder::new();
        let destination = Destination::New(folder.0.clone());
        let finished = runner::run(&plan, destination, &mut benches, &stop, &mut Silent).unwrap();
        Run { name: format!("run-{number}"), record: finished.record }
    };
    DEEDS.iter().enumerate().map(run).collect()
}

fn target(folder: &Folder, model: &Model) -> TargetKind {
    let path = folder.0.join(format!("{}.toml", model.name));
    std::fs::write(&path, model.to_text()).unwrap();
    format!("switch:model={}", path.display()).parse().unwrap()
}

/// Draws a switch; the kinds take turns.
fn drawn(draw: &mut Draw, seed: u64) -> Model {
    let mut model = Model { name: "hidden".into(), about: "hidden".into(), ..Model::default() };
    let costs = &mut model.hardware;
    (costs.insert_ns, costs.modify_ns, costs.delete_ns) =
        (draw.between(50_000, MS), draw.between(50_000, MS), draw.between(50_000, MS));
    let mut agent = draw.between(0, 20_000);
    match seed % 4 {
        // Early for one operation alone.
        0 => {
            let late = draw.between(0, 2);
            let each = [&mut costs.insert_ns, &mut costs.modify_ns, &mut costs.delete_ns];
            for (place, cost) in (0..).zip(each) {
                *cost = if place == late { *cost } else { 0 };
            }
            agent = draw.between(5_000, 20_000);
            model.barrier = Barrier { answers: 2, delay_ns: 0 };
        }
        // Correct barriers.
        1 => model.barrier = Barrier { answers: 0, delay_ns: 0 },
        // Early by the same time for every operation.
        2 => {
            costs.activation_ns = draw.between(5 * MS, 50 * MS);
            model.barrier = Barrier { answers: 1, delay_ns: 0 };
        }
        // In batches.
        _ => {
            costs.batch_rules = draw.between(10, 20);
            costs.batch_interval_ns = draw.between(20 * MS, 60 * MS);
            let most = costs.batch_interval_ns / 2 / costs.batch_rules;
            let each = [&mut costs.insert_ns, &mut costs.modify_ns, &mut costs.delete_ns];
            each.into_iter().for_each(|cost| *cost = (*cost).min(most));
            model.barrier = Barrier { answers: 0, delay_ns: 0 };
            agent = 0;
        }
    }
    // The message cost comes from echo-delay and control-rate, which do not run here.
    model.agent.flow_mod_ns = agent;
    for key in elements::hardware_model::model::keys::KEYS {
        model.sources.insert(key.path, "drawn".into());
    }
    model
}

/// Returns the error of a time for this many rules, from the stated errors of the fitted keys.
fn stated(fitted: &FitResult, deed: &str, rules: f64) -> f64 {
    let half = |key: &str| {
        let found = fitted.found.iter().find(|found| found.key == key);
        found.map_or(0.0, |found| found.half) + 1.0
    };
    let cost = match deed {
        "add" => "hardware.insert_ns",
        "modify" => "hardware.modify_ns",
        _ => "hardware.delete_ns",
    };
    let each = half(cost) + half("agent.flow_mod_ns");
    // The hardware hides the agent's time for all flow-mods but the first; the fit states the
    // hardware's cost as the maximum.
    let source = &fitted.model.sources["agent.flow_mod_ns"];
    let hidden = match (source.starts_with("assumed: barriers wait for the hardware"), deed) {
        (false, _) => 0,
        (true, "add") => fitted.model.hardware.insert_ns,
        (true, "modify") => fitted.model.hardware.modify_ns,
        (true, _) => fitted.model.hardware.delete_ns,
    };
    let once = ["agent.message_ns", "barrier.delay_ns", "hardware.activation_ns"].map(half);
    // A switch that works in batches accepts an update up to one interval later than another.
    let beat = fitted.model.hardware.batch_interval_ns as f64;
    let beats = rules / (fitted.model.hardware.batch_rules.max(1) as f64);
    let batches = if beat > 0.0 { beat + beats * half("hardware.batch_interval_ns") } else { 0.0 };
    rules * each + once.iter().sum::<f64>() + hidden as f64 + batches
}

#[test]
fn a_fitted_model_reproduces_the_measurement() {
    let count = cases("TRUTH_CASES_ACTIVATION", 4);
    let (mut values, mut missed, mut wrong) = (0u64, Vec::new(), 0u64);
    for seed in 0..count {
        let draw = &mut Draw::new(seed ^ 0x7265_6669);
        let model = drawn(draw, seed);
        let counts = format!("{},{}", draw.between(60, 80), draw.between(120, 200));
        let (one, other) = (Folder::new(), Folder::new());
        let kind = target(&one, &model);
        let first = measured(kind, &counts, seed);
        let fitted = model_fit::fit(&first, kind.name(), "fitted");
        let again = measured(target(&other, &fitted.model), &counts, seed);
        let before = missed.len();
        for ((first, again), operation) in first.iter().zip(&again).zip(DEEDS) {
            for cell in first.record.cells.iter() {
                let name = cell.metric.name();
                if !METRICS.contains(&name) {
                    continue;
                }
                values += 1;
                let x = cell.point.value;
                let same = again
                    .record
                    .cells
                    .iter()
                    .find(|it| it.metric.name() == name && it.point.value == x);
                let Some(same) = same else {
                    missed.push(format!(
                        "{seed} {operation} {name} at {x} is missing in the second measurement"
                    ));
                    continue;
                };
                let halves = cell.resolution.unwrap_or(0.0) + same.resolution.unwrap_or(0.0);
                let most = match name {
                    "batch_rules_p50" => halves,
                    "batch_interval_ns_mean" => {
                        let found =
                            fitted.found.iter().find(|it| it.key == "hardware.batch_interval_ns");
                        halves + found.map_or(0.0, |it| it.half)
                    }
                    _ => halves + stated(&fitted, operation, x),
                };
                if (cell.value - same.value).abs() > most {
                    missed.push(format!(
                        "{seed} {operation} {name} at {x}: {} at first, {} again, ± {most}",
                        cell.value, same.value
                    ));
                }
            }
        }
        if missed.len() > before {
            wrong += 1;
            missed.push(format!("{model:?}\n{}", fitted.model.to_text()));
        }
    }
    let reproduced = count - wrong;
    println!("refitted: {reproduced} of {count} switches, {values} values\n{}", missed.join("\n"));
    assert!(values > 0 && reproduced * 100 >= count * 95, "{}", missed.join("\n"));
}
