//! What updates show is told apart, and a model of nothing can be read again.

use switch::behaviour::model::file;
use switch::behaviour::model::keys::KEYS;

use super::updates::Update;
use super::{Run, fit, name_of};
use results::record::Record;

fn run() -> Run {
    let record = r#"{ "schema": 1, "tool": { "name": "planimeter", "version": "0" }, "created": "",
        "command_line": "", "seed": 1, "effort": "quick", "partial": false, "link": "memory",
        "environment": {} }"#;
    let record: Record = serde_json::from_str(record).unwrap();
    Run { name: "run-1".into(), record }
}

/// Rules that act at these times, in the order of these places.
fn update<'a>(run: &'a Run, times_ns: &[f64], places: &[usize]) -> Update<'a> {
    Update {
        run,
        deed: "add",
        order: "same",
        rules: times_ns.len() as f64,
        probes_pps: 1e6,
        resolution_ns: 1e3,
        gap_ns: None,
        control_ns: None,
        times_ns: times_ns.to_vec(),
        halves_ns: vec![1e3; times_ns.len()],
        places: places.to_vec(),
        frames_ns: None,
        first_frame_ns: None,
        back_ratio: None,
    }
}

/// Batches of so many rules, one each 250 ms, 100 us from one rule to the next.
fn batched(sizes: &[usize]) -> Vec<f64> {
    let batch = |(number, size): (usize, &usize)| -> Vec<f64> {
        (0..*size).map(|place| number as f64 * 250e6 + place as f64 * 100e3).collect()
    };
    sizes.iter().enumerate().flat_map(batch).collect()
}

#[test]
fn batches_are_told_by_the_pauses_between_them() {
    let run = run();
    let times = batched(&[20, 40, 40, 10]);
    let places: Vec<usize> = (0..times.len()).collect();
    let found = update(&run, &times, &places);
    assert_eq!(found.batches(), [0..20, 20..60, 60..100, 100..110]);
    assert_eq!(found.intervals(), [250e6; 3]);
    for dot in found.costs(true) {
        assert!((dot.y - 100e3).abs() < 1.0, "{dot:?}");
    }
    assert_eq!((found.inversions(), found.is_shuffled()), (Some(0.0), false));
    let back: Vec<usize> = places.iter().rev().copied().collect();
    assert!(update(&run, &times, &back).is_shuffled());
}

#[test]
fn rules_that_take_more_and_more_are_no_batches() {
    let run = run();
    let mut at = 0.0;
    let times: Vec<f64> = (0..1000)
        .map(|rule| {
            at += 500e3 + 4.7e3 * f64::from(rule);
            at
        })
        .collect();
    let found = update(&run, &times, &(0..1000).collect::<Vec<_>>());
    assert_eq!(found.batches().len(), 1);
    let line = super::line::line(&found.costs(false)).unwrap();
    let off = (line.slope.0 - 4.7e3).abs();
    assert!(off <= line.slope.1 + 1.0 && line.slope.1 < 200.0, "{line:?}");
}

#[test]
fn a_model_of_which_nothing_is_known_says_so_of_every_key() {
    let fitted = fit(&[], "ours", "nothing");
    assert!(fitted.found.is_empty());
    assert_eq!(fitted.assumed.len(), KEYS.len());
    assert!(
        fitted.model.sources.values().all(|source| source.starts_with("assumed: not measured"))
    );
    assert_eq!(file::read(&fitted.model.to_text()), Ok(fitted.model));
}

#[test]
fn a_name_is_made_of_what_a_model_s_name_may_have() {
    assert_eq!(name_of("ours:model=hp-5406zl"), "fitted-hp-5406zl");
    assert_eq!(name_of("ours:model=/x/My Switch.toml"), "fitted-my-switch");
    assert_eq!(name_of("ovs"), "fitted-ovs");
}
