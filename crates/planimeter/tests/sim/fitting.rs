//! Tests of models that are measured, fitted and measured again in virtual time: the fitted model
//! reproduces the results of the true one.

use std::collections::BTreeMap;

use elements::hardware_model::model::keys::KEYS;
use elements::hardware_model::model::{Model, known};
use planimeter::model_fit::{self, FitResult, Run};
use runner::Destination;
use targets::name::TargetKind;

use super::common::Folder;
use super::{carry_out, plan};

/// Runs for all fitted values, with sizes that keep them short.
const RUNS: &[(&[&str], &[&str])] = &[
    (
        &["rule-activation", "stats-delay", "echo-delay", "control-rate"],
        &[
            "rules_count=30,120",
            "probes=before",
            "probes_pps=10000",
            "repeats=3",
            "load_pps=0",
            "statistics=aggregate,port",
            "paced_requests=0",
            "payload=0",
            "loads=none",
            "in_flight=1,64",
            "step=0.2",
            "messages=barrier,packet_out",
        ],
    ),
    (
        &["rule-activation"],
        &["command=modify", "rules_count=600", "probes_pps=20000", "repeats=1", "probes=before"],
    ),
    (
        &["rule-activation"],
        &["command=delete", "rules_count=120", "probes_pps=10000", "repeats=1", "probes=before"],
    ),
    (
        &["rule-activation"],
        &[
            "priority_order=ascending",
            "rules_count=120",
            "probes_pps=10000",
            "repeats=1",
            "probes=before",
        ],
    ),
    (
        &["rule-activation"],
        &[
            "priority_order=descending",
            "rules_count=120",
            "probes_pps=10000",
            "repeats=1",
            "probes=before",
        ],
    ),
    (
        &["rule-activation"],
        &[
            "rules_count=30",
            "probes_pps=1000",
            "probes=before",
            "watch=1",
            "updates_max=1",
            "repeats=1",
        ],
    ),
    (&["packet-in"], &["frame=96", "buffer=no_buffer", "rate_max=20000", "repeats=1"]),
    (
        &["forwarding-latency"],
        &["sizes=128,512,1472", "rates=low", "low_mbps=1", "seconds=2", "repeats=1"],
    ),
];

fn measured(kind: TargetKind, runs: &[(&[&str], &[&str])]) -> Vec<Run> {
    let run = |(number, (experiments, set)): (usize, &(&[&str], &[&str]))| {
        let set = [&["wildcard_entries_max=5000", "timeout_s=20"], *set].concat();
        // A key is set only for experiments that declare it.
        let set: Vec<&str> = set
            .into_iter()
            .filter(|it| !it.starts_with("timeout_s") || experiments.contains(&"rule-activation"))
            .collect();
        let folder = Folder::new();
        // Frames sent by packet-out have no counterpart, so the balance is not checked.
        let plan = plan(experiments, &[kind], &set, 7);
        let (finished, _) = carry_out(&plan, Destination::New(folder.0.clone()), None);
        Run { name: format!("run-{number}"), record: finished.record }
    };
    runs.iter().enumerate().map(run).collect()
}

fn target(folder: &Folder, model: &Model) -> TargetKind {
    let path = folder.0.join(format!("{}.toml", model.name));
    std::fs::write(&path, model.to_text()).unwrap();
    format!("switch:model={}", path.display()).parse().unwrap()
}

/// Returns the runs; without batches to distinguish, fewer rules suffice.
fn sizes(in_batches: bool) -> Vec<(&'static [&'static str], Vec<&'static str>)> {
    let few = |it: &&'static str| if *it == "rules_count=600" { "rules_count=120" } else { *it };
    let set = |set: &[&'static str]| -> Vec<&'static str> {
        if in_batches { set.to_vec() } else { set.iter().map(few).collect() }
    };
    RUNS.iter().map(|(names, of)| (*names, set(of))).collect()
}

/// Returns the values of these metrics by run, point and name, each with its error.
fn values(runs: &[Run], metrics: &[&str]) -> BTreeMap<String, (f64, f64)> {
    let mut found = BTreeMap::new();
    for run in runs {
        for cell in run.record.cells.iter().filter(|cell| metrics.contains(&cell.metric.name())) {
            let interval = cell.interval.as_ref().map_or(0.0, |it| (it.high - it.low) / 2.0);
            let half = interval + cell.resolution.unwrap_or(0.0);
            let (metric, x) = (cell.metric.name(), cell.point.value);
            found.insert(format!("{} {metric} at {x}", run.name), (cell.value, half));
        }
    }
    found
}

/// Metrics that do not depend on the phase between an update and the batches.
const STEADY: &[&str] = &[
    "control_plane_ns",
    "aggregate_reply_ns_p50",
    "port_reply_ns_p50",
    "barrier_done_per_s",
    "packet_out_done_per_s",
    "forwarding_ns_min",
];

/// Values that state when rules become active.
const ACTING: &[&str] = &["data_plane_ns", "activation_ns_p50", "barrier_gap_ns_max"];

/// Tolerance of a value beyond its stated error, as a share.
const SHARE: f64 = 0.03;

/// Fits a model to a target that emulates `truth`, and checks the fitted values of these keys.
/// Measurements on the fitted model must match the earlier ones.
fn check(truth: &Model, keys: &[&'static str], again: &[&str]) -> FitResult {
    let folder = Folder::new();
    let kind = target(&folder, truth);
    let sizes = sizes(truth.hardware.batch_rules > 0);
    let sizes: Vec<_> = sizes.iter().map(|(names, set)| (*names, &set[..])).collect();
    let runs = measured(kind, &sizes);
    let fitted = model_fit::fit(&runs, kind.name(), "fitted");
    let text = fitted.model.to_text();
    let read = elements::hardware_model::model::file::read(&text);
    assert_eq!(read.as_ref(), Ok(&fitted.model), "{text}");
    let mut truth = truth.clone();
    for path in keys {
        let found = fitted.found.iter().find(|found| found.key == *path);
        let found = found.unwrap_or_else(|| panic!("{path} was not fitted:\n{text}"));
        let key = KEYS.iter().find(|key| key.path == *path).unwrap();
        let wanted = *(key.at)(&mut truth) as f64;
        let off = (found.value - wanted).abs();
        let source = &fitted.model.sources[path];
        assert!(off <= found.half + SHARE * wanted + 1.0, "{path} is {wanted}, found: {source}");
    }
    let other = Folder::new();
    let second = measured(target(&other, &fitted.model), &sizes);
    let (first, second) = (values(&runs, again), values(&second, again));
    assert!(first.len() >= again.len(), "{first:?}");
    for (name, (value, half)) in &first {
        let (then, known) = second[name];
        let off = (then - value).abs();
        let most = half + known + SHARE * value.abs();
        assert!(off <= most, "{name}: {value} ± {half} at first, {then} ± {known} again:\n{text}");
    }
    fitted
}

#[test]
fn a_slow_agent_and_batches_are_fitted() {
    let keys = [
        "agent.message_ns",
        "agent.flow_mod_ns",
        "agent.packet_out_ns",
        "agent.flow_stats_ns",
        "agent.flow_stats_rule_ns",
        "agent.port_stats_ns",
        "barrier.answers",
        "barrier.delay_ns",
        "hardware.insert_ns",
        "hardware.batch_interval_ns",
        "tiers.in_hardware",
        "path_hardware.latency_ns",
    ];
    let fitted = check(&known::find("hp-5406zl").unwrap(), &keys, STEADY);
    let source = &fitted.model.sources["hardware.batch_rules"];
    assert!(source.starts_with("assumed: no batch was full"), "{source}");
}

#[test]
fn early_barriers_and_shuffled_batches_are_fitted() {
    let keys = [
        "agent.message_ns",
        "agent.flow_mod_ns",
        "agent.packet_out_ns",
        "agent.flow_stats_ns",
        "agent.flow_stats_rule_ns",
        "agent.port_stats_ns",
        "barrier.answers",
    ];
    check(&known::find("edgecore-as5812").unwrap(), &keys, STEADY);
}

/// Returns a model whose values are drawn from a seed and known to the check only.
fn drawn(seed: u64, reply: &str, more: &str) -> Model {
    let mut dice = seed;
    let mut draw = |least: u64, most: u64| {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        least + (dice >> 33) % (most - least)
    };
    let mut text = format!("name = \"drawn\"\nabout = \"drawn\"\n{more}");
    for (key, least, most) in [
        ("agent.message_ns", 100_000, 900_000),
        ("agent.packet_out_ns", 300_000, 2_000_000),
        ("agent.flow_stats_ns", 1_000_000, 9_000_000),
        ("agent.flow_stats_rule_ns", 20_000, 700_000),
        ("agent.port_stats_ns", 1_000_000, 20_000_000),
        ("agent.packet_ins_per_s", 500, 1_500),
        ("hardware.insert_ns", 1_000_000, 2_000_000),
        ("hardware.move_ns", 10_000, 30_000),
        ("hardware.modify_ns", 800_000, 1_900_000),
        ("hardware.delete_ns", 800_000, 1_900_000),
        ("path_hardware.latency_ns", 2_000, 90_000),
        ("path_hardware.byte_ps", 500, 9_000),
        ("path_hardware.jitter_ns", 2_000, 40_000),
    ] {
        let value = draw(least, most);
        text += &format!("{key} = {{ value = {value}, source = \"drawn\" }}\n");
    }
    text += &format!("barrier.answers = {{ value = \"{reply}\", source = \"drawn\" }}\n");
    elements::hardware_model::model::file::read(&text).unwrap()
}

/// Keys that are fitted for every model of [`drawn`].
const DRAWN: &[&str] = &[
    "agent.message_ns",
    "agent.packet_out_ns",
    "agent.flow_stats_ns",
    "agent.flow_stats_rule_ns",
    "agent.port_stats_ns",
    "barrier.answers",
    "hardware.insert_ns",
    "hardware.move_ns",
    "hardware.moves",
    "hardware.modify_ns",
    "hardware.delete_ns",
    "tiers.in_hardware",
    "path_hardware.latency_ns",
    "path_hardware.byte_ps",
    "path_hardware.jitter_ns",
];

#[test]
fn switches_with_random_values_and_any_barrier_are_fitted() {
    let again = [STEADY, ACTING].concat();
    let taken = "agent.flow_mod_ns = { value = 170_000, source = \"drawn\" }\n";
    let keys = [DRAWN, &["agent.flow_mod_ns", "agent.packet_ins_per_s"]].concat();
    check(&drawn(1, "taken", taken), &keys, &again);
    let late = "barrier.delay_ns = { value = 9_000_000, source = \"drawn\" }\n";
    let keys = [DRAWN, &["barrier.delay_ns", "agent.packet_ins_per_s"]].concat();
    check(&drawn(2, "acting", late), &keys, &again);
    let early = "hardware.activation_ns = { value = 43_000_000, source = \"drawn\" }\n";
    let keys = [DRAWN, &["hardware.activation_ns"]].concat();
    let fitted = check(&drawn(3, "written", early), &keys, &again);
    let why = &fitted.model.sources["agent.packet_ins_per_s"];
    assert!(why.starts_with("assumed: packet-in's own rule activates after the barrier"), "{why}");
}

#[test]
fn the_capacity_and_the_share_of_slow_frames_are_fitted() {
    let folder = Folder::new();
    let mut model = Model { name: "small".into(), about: "small".into(), ..Model::default() };
    model.capacity.rules = 117;
    model.paths.hardware.latency_ns = 4_000;
    (model.paths.hardware.slow_percent, model.paths.hardware.slow_ns) = (30, 700_000);
    for path in [
        "capacity.rules",
        "path_hardware.latency_ns",
        "path_hardware.slow_percent",
        "path_hardware.slow_ns",
    ] {
        model.sources.insert(path, "test".into());
    }
    let kind = target(&folder, &model);
    let runs: &[(&[&str], &[&str])] = &[
        (&["table-capacity"], &["rules_bound=200", "batch=20", "probes_pps=20000"]),
        (&["forwarding-latency"], &["sizes=128,512,1472", "rates=low", "low_mbps=1", "seconds=2"]),
    ];
    let fitted = model_fit::fit(&measured(kind, runs), kind.name(), "fitted");
    assert_eq!(fitted.model.capacity.rules, 117, "{}", fitted.model.to_text());
    let found = &fitted.model.paths.hardware;
    assert!((26..=34).contains(&found.slow_percent), "{}", fitted.model.to_text());
    assert!(found.slow_ns.abs_diff(700_000) < 20_000, "{}", fitted.model.to_text());
    let why = &fitted.model.sources["agent.flow_mod_ns"];
    assert!(why.starts_with("assumed: "), "{why}");
}
