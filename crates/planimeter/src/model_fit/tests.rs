//! Tests that updates with different causes are distinguished, and that an empty model can be
//! parsed again.

use elements::hardware_model::model::keys::KEYS;
use elements::hardware_model::model::{Answers, Model, file};

use super::model::FittedModel;
use super::updates::Update;
use super::writing;
use super::{Run, fit, name_of};
use experiments::activation_times::{ActivationTimes, Bounds, Window};
use record::Record;

fn run() -> Run {
    let record = r#"{ "schema": 1, "tool": { "name": "planimeter", "version": "0" }, "created": "",
        "command_line": "", "seed": 1, "effort": "quick", "partial": false, "link": "memory",
        "environment": {} }"#;
    let record: Record = serde_json::from_str(record).unwrap();
    Run { name: "run-1".into(), record }
}

/// Creates an update that adds entries with these activation times, each known to 1 us.
fn update<'a>(run: &'a Run, times_ns: &[f64], places: &[usize]) -> Update<'a> {
    let window = |(&at, &rule): (&f64, &usize)| Window {
        rule,
        acts: Bounds { low: at - 1e3, high: at + 1e3 },
    };
    let times = ActivationTimes::new(times_ns.iter().zip(places).map(window).collect());
    Update {
        run,
        deed: "add",
        order: "same",
        rules: times_ns.len() as f64,
        probes_pps: 1e6,
        gap_ns: None,
        control_ns: None,
        batches: times.batches(),
        times,
        frames_ns: None,
        first_frame_ns: None,
        back_ratio: None,
    }
}

/// Returns the times of batches of these sizes, one every 250 ms, with 100 us between entries.
fn batched(sizes: &[usize]) -> Vec<f64> {
    let batch = |(number, size): (usize, &usize)| -> Vec<f64> {
        (0..*size).map(|place| number as f64 * 250e6 + place as f64 * 100e3).collect()
    };
    sizes.iter().enumerate().flat_map(batch).collect()
}

#[test]
fn batches_are_recognized_by_their_pauses() {
    let run = run();
    let times = batched(&[20, 40, 40, 10]);
    let places: Vec<usize> = (0..times.len()).collect();
    let found = update(&run, &times, &places);
    let batches = found.batches.as_ref().unwrap();
    assert_eq!(batches.groups, [0..20, 20..60, 60..100, 100..110]);
    let intervals: Vec<f64> = batches.intervals().iter().map(|it| it.middle()).collect();
    assert_eq!(intervals, [250e6; 3]);
    for dot in found.costs(true) {
        assert!((dot.y - 100e3).abs() < 1.0, "{dot:?}");
    }
    assert_eq!(found.inner_order().unwrap().inversions, 0);
    assert!(!found.is_shuffled());
    let back: Vec<usize> = places.iter().rev().copied().collect();
    assert!(update(&run, &times, &back).is_shuffled());
}

#[test]
fn increasing_times_are_not_batches() {
    let run = run();
    let mut at = 0.0;
    let times: Vec<f64> = (0..1000)
        .map(|rule| {
            at += 500e3 + 4.7e3 * f64::from(rule);
            at
        })
        .collect();
    let found = update(&run, &times, &(0..1000).collect::<Vec<_>>());
    assert_eq!(found.batches, None);
    let line = super::line::line(&found.costs(false)).unwrap();
    let off = (line.slope.0 - 4.7e3).abs();
    assert!(off <= line.slope.1 + 1.0 && line.slope.1 < 200.0, "{line:?}");
}

#[test]
fn a_barrier_that_is_early_for_one_operation_is_not_correct() {
    let run = run();
    let times: Vec<f64> = (1..100).map(|rule| f64::from(rule) * 400e3).collect();
    let places: Vec<usize> = (0..times.len()).collect();
    let of = |deed, gap, control| Update {
        deed,
        gap_ns: Some((gap, 1e5)),
        control_ns: Some(control),
        ..update(&run, &times, &places)
    };
    let answers = |updates: &[Update<'_>]| {
        let mut sheet = FittedModel::new(Model::default());
        let reported = writing::answers(updates, None, &mut sheet).unwrap();
        (reported, sheet.finish().model.sources["barrier.answers"].clone())
    };
    let [added, modified] = [of("add", 0.0, 2e6), of("modify", 37e6, 2e6)];
    let (reported, source) = answers(&[added.clone(), modified.clone()]);
    assert_eq!(reported, Answers::Taken);
    assert!(source.starts_with("measured: "), "{source}");
    // Barriers wait for additions but not for modifications: no model does both.
    let (reported, source) = answers(&[of("add", 0.0, 40e6), modified]);
    assert_eq!(reported, Answers::Taken);
    assert!(source.starts_with("assumed: barriers wait for add, but not for modify"), "{source}");
    assert_eq!(answers(&[added, of("delete", 0.0, 2e6)]).0, Answers::Acting);
}

#[test]
fn an_unknown_model_states_that_for_every_key() {
    let fitted = fit(&[], "switch", "nothing");
    assert!(fitted.found.is_empty());
    assert_eq!(fitted.assumed.len(), KEYS.len());
    assert!(
        fitted.model.sources.values().all(|source| source.starts_with("assumed: not measured"))
    );
    assert_eq!(file::read(&fitted.model.to_text()), Ok(fitted.model));
}

#[test]
fn a_model_name_has_only_permitted_characters() {
    assert_eq!(name_of("switch:model=hp-5406zl"), "fitted-hp-5406zl");
    assert_eq!(name_of("switch:model=/x/My Switch.toml"), "fitted-my-switch");
    assert_eq!(name_of("ovs"), "fitted-ovs");
}
