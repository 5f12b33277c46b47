//! Validation on switches in processes of their own, over real links, with behavior drawn from a
//! seed.
//!
//! Results that no delay can excuse are always judged: a correct switch is not accused, and the
//! measured capacity is exact. A barrier reply that the machine delayed is no longer early. Values
//! must also be within their stated errors if the tester never stalled. If it stalled in a run,
//! other work uses the machine and switches stall as well, so that their behavior is not the drawn
//! one; values are then only printed.

use std::fs;

use serde_json::Value;

use crate::case::Draw;
use crate::common::{Folder, command, only_run, record};

const MS: u64 = 1_000_000;

/// Kinds of draws, in turn.
const KINDS: [fn(&mut Draw) -> Case; 5] = [early, batched, small, limited, honest];

/// A switch, its measurement, and the hidden values.
struct Case {
    kind: &'static str,
    /// Keys of the model with their values.
    model: Vec<(&'static str, String)>,
    experiment: &'static str,
    set: Vec<String>,
    /// Values that a module reports, with the ground truth.
    hidden: Vec<(&'static str, f64)>,
    /// Values that must hold in any case: minimum and maximum.
    certain: Vec<(&'static str, [f64; 2])>,
}

/// Number of values found, and in total.
#[derive(Default)]
struct Score {
    found: usize,
    judged: usize,
    disturbed: usize,
    missed: Vec<String>,
}

fn rule_activation(draw: &mut Draw, rules: u64) -> Vec<String> {
    let order = ["same", "ascending"][draw.between(0, 1) as usize];
    vec![
        format!("rules_count={rules}"),
        "probes=before".into(),
        "probes_pps=20000".into(),
        format!("priority_order={order}"),
    ]
}

fn early(draw: &mut Draw) -> Case {
    let lead = draw.between(30 * MS, 60 * MS);
    let model = vec![
        ("hardware.insert_ns", draw.between(0, 50_000).to_string()),
        ("hardware.activation_ns", lead.to_string()),
        ("barrier.answers", "\"written\"".into()),
    ];
    Case {
        kind: "early barrier",
        model,
        experiment: "rule-activation",
        set: rule_activation(draw, 50),
        hidden: vec![("barrier_gap_ns_max", lead as f64), ("rules_premature_ratio", 1.0)],
        certain: Vec::new(),
    }
}

fn batched(draw: &mut Draw) -> Case {
    let (rules, interval) = (draw.between(30, 60), draw.between(80 * MS, 120 * MS));
    let model = vec![
        ("hardware.insert_ns", (interval / 3 / rules).to_string()),
        ("hardware.batch_rules", rules.to_string()),
        ("hardware.batch_interval_ns", interval.to_string()),
    ];
    Case {
        kind: "batches",
        model,
        experiment: "rule-activation",
        set: rule_activation(draw, 3 * rules + 10),
        hidden: vec![
            ("batch_rules_p50", rules as f64),
            ("batch_interval_ns_mean", interval as f64),
        ],
        certain: vec![("rules_premature_ratio", [0.0; 2]), ("stale_frames", [0.0; 2])],
    }
}

fn small(draw: &mut Draw) -> Case {
    let rules = draw.between(50, 300);
    let fits = [rules as f64 - 1.0; 2];
    Case {
        kind: "capacity",
        model: vec![("capacity.rules", rules.to_string())],
        experiment: "table-capacity",
        set: vec!["rules_bound=500".into()],
        hidden: Vec::new(),
        // One of them is the lowest-priority entry.
        certain: vec![("accepted_rules", fits), ("acting_rules", fits)],
    }
}

fn limited(draw: &mut Draw) -> Case {
    let limit = draw.between(500, 3_000);
    let set = ["frame=96", "buffer=no_buffer", "samples=20", "low_rate_pps=100", "step=0.2"];
    Case {
        kind: "limit on packet-ins",
        model: vec![("agent.packet_ins_per_s", limit.to_string())],
        experiment: "packet-in",
        set: set.into_iter().chain(["rate_max=10000"]).map(Into::into).collect(),
        hidden: vec![("packet_ins_per_s_sustained", limit as f64)],
        certain: Vec::new(),
    }
}

fn honest(draw: &mut Draw) -> Case {
    let model = vec![
        ("agent.flow_mod_ns", draw.between(0, 100_000).to_string()),
        ("hardware.insert_ns", draw.between(0, 500_000).to_string()),
        ("hardware.activation_ns", draw.between(0, 20 * MS).to_string()),
        ("barrier.delay_ns", draw.between(0, 5 * MS).to_string()),
        ("path_hardware.jitter_ns", draw.between(0, 100_000).to_string()),
    ];
    Case {
        kind: "honest",
        model,
        experiment: "rule-activation",
        set: rule_activation(draw, 100),
        hidden: Vec::new(),
        certain: vec![("rules_premature_ratio", [0.0; 2]), ("stale_frames", [0.0; 2])],
    }
}

/// Measures one switch over a link; returns the module's part of the record, and whether the tester
/// stalled.
fn measure(case: &Case, link: &str) -> (Value, bool) {
    let folder = Folder::new();
    let mut text = "name = \"drawn\"\nabout = \"a switch that was drawn\"\n".to_string();
    for (key, value) in &case.model {
        text += &format!("{key} = {{ value = {value}, source = \"assumed\" }}\n");
    }
    fs::write(folder.0.join("drawn.toml"), text).unwrap();
    fs::create_dir(folder.0.join("run")).unwrap();
    let on = ["--on", "switch:model=./drawn.toml", "--link", link, "--effort", "quick"];
    let mut arguments = [&["run", case.experiment][..], &on].concat();
    let set = case.set.iter().map(String::as_str).chain(["repeats=1"]);
    arguments.extend(set.flat_map(|it| ["--set", it]));
    let mut command = command(&folder.0, &arguments);
    let output = command.env("XDG_RUNTIME_DIR", folder.0.join("run")).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{} over {link}: {errors}", case.kind);
    let record = record(&only_run(&folder.0.join("runs")));
    let trial = &record["trials"][0];
    let is_disturbed = trial["flags"]
        .as_array()
        .is_some_and(|flags| flags.iter().any(|flag| flag == "stall" || flag == "tester_limited"));
    (trial["module"].clone(), is_disturbed)
}

/// Returns a module's value with its error.
fn measured_value(module: &Value, name: &str) -> Option<[f64; 2]> {
    let found = module["measured"].as_array()?.iter().find(|it| it["metric"] == name)?;
    Some([found["value"].as_f64()?, found["resolution"].as_f64().unwrap_or(0.0)])
}

/// Draws this many switches of each kind and measures them over a link.
pub fn check(link: &str, count: u64) {
    let mut score = Score::default();
    for seed in 0..count {
        for (place, draw) in KINDS.iter().enumerate() {
            let case = draw(&mut Draw::new(seed << 8 | place as u64));
            let (module, is_disturbed) = measure(&case, link);
            for (name, [least, most]) in &case.certain {
                let value = measured_value(&module, name).map(|[value, _]| value);
                let is = value.is_some_and(|value| (*least..=*most).contains(&value));
                assert!(is, "{} over {link}, {name}: {value:?}: {module}", case.kind);
            }
            score.disturbed += usize::from(is_disturbed);
            for (name, truth) in case.hidden.into_iter().filter(|_| !is_disturbed) {
                score.judged += 1;
                match measured_value(&module, name) {
                    Some([value, half]) if (value - truth).abs() <= half => score.found += 1,
                    other => score.missed.push(format!("{} {name}: {other:?}, {truth}", case.kind)),
                }
            }
        }
    }
    let Score { found, judged, disturbed, missed } = score;
    println!("{link}: {found} of {judged} hidden values found, {disturbed} runs disturbed");
    println!("{}", missed.join("\n"));
    let allowed = if disturbed == 0 { 1 + judged / 20 } else { judged };
    assert!(missed.len() <= allowed, "{found} of {judged}: {}", missed.join("\n"));
}
