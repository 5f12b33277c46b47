//! Validation on switches whose behavior is drawn from a seed and hidden from the modules that
//! measure it.
//!
//! Each draw includes settings of the experiment, as a user would choose them: probes dense enough
//! to resolve a tenth of the value. A value counts as found if the ground truth is within the
//! module's stated error. That error must be at most a tenth of the value or the resolution of the
//! probes. `TRUTH_CASES_MODELS` sets the number of switches of each kind, `TRUTH_CASES_HONEST` the
//! number of correct ones.

use std::sync::Arc;

use dataplane::matching::Match;
use elements::hardware_model::model::{Barrier, Capacity, Hardware, Model, Path, Paths, Tiers};
use elements::hardware_model::tcam::FlowId;
use elements::hardware_model::update_queue::{Change, Writer};
use packet::time::Nanos;
use tester::module::{Ended, StageReport};

use crate::case::Draw;
use crate::one_switch::{OneSwitch, measured_metric};

/// Rounding error of a reported number, as a share of it.
pub const ROUNDING: f64 = 1e-9;

const MS: u64 = 1_000_000;

/// A hidden value, and where to find it.
struct Hidden {
    /// The module's name for it.
    name: &'static str,
    truth: f64,
    /// The error that the probes cause unavoidably; 0 if the value does not depend on probes.
    probes: f64,
}

/// A switch, its measurement, and the values to find.
struct Case {
    model: Model,
    experiment: &'static str,
    set: Vec<String>,
    hidden: Vec<Hidden>,
}

pub fn cases(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// Returns the error in the report of a hidden value, if there is one.
fn fault(hidden: &Hidden, report: &StageReport) -> Option<String> {
    let Hidden { name, truth, probes } = *hidden;
    let Some(found) = measured_metric(report, name) else {
        return Some(format!("{name} is missing for {truth}: {}", report.ended));
    };
    let (value, half) = (found.value, found.half_width.unwrap_or(f64::INFINITY));
    let is_within = (value - truth).abs() <= half + ROUNDING * truth.abs();
    let is_narrow = half <= (truth.abs() / 10.0).max(probes) * (1.0 + ROUNDING);
    let words = format!("{name} {value} ± {half}, in truth {truth}");
    match (is_within, is_narrow) {
        (true, true) => None,
        (false, _) => Some(format!("{words}: not within")),
        (true, false) => Some(format!("{words}: wider than {probes} and than a tenth")),
    }
}

/// Draws switches, measures each, and counts those whose hidden values were all found.
fn check(kind: &str, draw: impl Fn(&mut Draw, u64) -> Case) {
    let count = cases("TRUTH_CASES_MODELS", 5);
    let mut missed = Vec::new();
    for seed in 0..count {
        let case = draw(&mut Draw::new(seed ^ 0x6d6f_6465), seed);
        let reports = OneSwitch::like(&case.model, seed).run(case.experiment, &case.set, seed);
        let [report] = &reports[..] else { panic!("one module at one point: {}", reports.len()) };
        assert_eq!(report.ended, Ended::Completed, "{kind} {seed}: {:?}", case.set);
        let faults: Vec<String> =
            case.hidden.iter().filter_map(|hidden| fault(hidden, report)).collect();
        if !faults.is_empty() {
            missed.push(format!("{kind} {seed}: {}", faults.join("; ")));
        }
    }
    let found = count - missed.len() as u64;
    println!("{kind}: {found} of {count} found\n{}", missed.join("\n"));
    assert!(count > 0 && found * 100 >= count * 95, "{found} of {count}\n{}", missed.join("\n"));
}

pub fn set(settings: &[(&str, String)]) -> Vec<String> {
    settings.iter().map(|(key, value)| format!("{key}={value}")).collect()
}

/// Draws a path with a random delay for each frame.
fn path(draw: &mut Draw) -> Path {
    let (latency_ns, jitter_ns) = (draw.between(0, 20_000), draw.between(0, 5_000));
    Path { latency_ns, jitter_ns, ..Path::default() }
}

pub fn paths(draw: &mut Draw) -> Paths {
    Paths { hardware: path(draw), ..Paths::default() }
}

/// Returns probe settings for these rules that leave a time uncertain by at most `half`, and their
/// resolution.
fn probes(rules: u64, half: u64) -> (String, f64) {
    // Half the round, and half the transit time of a frame, which is at most 25 us.
    let pps = rules as f64 * 1e9 / (2.0 * half as f64);
    (format!("{pps:.3}"), half as f64 + 13_000.0)
}

/// Draws a switch that replies to a barrier about this long before the last rule becomes active.
fn early(draw: &mut Draw, about: u64) -> Case {
    let lead = draw.between(about / 2, about * 3 / 2);
    let rules = draw.between(8, 24);
    let is_taken = draw.between(0, 1) == 1;
    let mut model = Model::default();
    let costs = about / 100;
    model.agent.flow_mod_ns = draw.between(0, costs / 2);
    model.agent.message_ns = draw.between(0, costs);
    model.hardware.insert_ns = model.agent.flow_mod_ns + draw.between(1, costs / 2);
    model.paths = paths(draw);
    let (insert, flow_mod) = (model.hardware.insert_ns, model.agent.flow_mod_ns);
    // Rules are written in sequence from the first accepted one; the agent processes the barrier
    // after all of them.
    let written_after_taken =
        (flow_mod + rules * insert) as i64 - (rules * flow_mod + model.agent.message_ns) as i64;
    let behind = if is_taken { written_after_taken.max(0) as u64 } else { 0 };
    model.hardware.activation_ns = lead - behind.min(lead);
    model.barrier = Barrier { answers: if is_taken { 2 } else { 1 }, delay_ns: 0 };
    // An agent that is slower than the hardware processes the barrier after all rules are written.
    let truth = (model.hardware.activation_ns + behind) as i64 + written_after_taken.min(0);
    let (pps, half) = probes(rules, about / 20);
    Case {
        model,
        experiment: "rule-activation",
        set: set(&[
            ("rules_count", rules.to_string()),
            ("probes", "before".into()),
            ("probes_pps", pps),
        ]),
        hidden: vec![
            Hidden { name: "barrier_gap_ns_max", truth: truth as f64, probes: half },
            // Probes visit each rule several times before it becomes active.
            Hidden { name: "rules_premature_ratio", truth: 1.0, probes: 0.0 },
        ],
    }
}

#[test]
fn a_barrier_reply_early_by_about_a_millisecond_is_detected() {
    check("early by 1 ms", |draw, _| early(draw, MS));
}

#[test]
fn a_barrier_reply_early_by_about_ten_milliseconds_is_detected() {
    check("early by 10 ms", |draw, _| early(draw, 10 * MS));
}

#[test]
fn a_barrier_reply_early_by_about_400_milliseconds_is_detected() {
    check("early by 400 ms", |draw, _| early(draw, 400 * MS));
}

#[test]
fn a_barrier_reply_early_by_about_four_seconds_is_detected() {
    check("early by 4 s", |draw, _| early(draw, 4_000 * MS));
}

/// Draws a switch that writes rules in batches, in the order sent or in random order.
fn batched(draw: &mut Draw, is_shuffled: bool) -> (Model, u64) {
    let batch = draw.between(30, 70);
    let interval = draw.between(70 * MS, 140 * MS);
    let rules = 3 * batch + draw.between(1, batch);
    let hardware = Hardware {
        insert_ns: draw.between(interval / 4, interval / 2) / batch,
        activation_ns: draw.between(0, 20 * MS),
        batch_rules: batch,
        batch_interval_ns: interval,
        order: u64::from(is_shuffled),
        ..Hardware::default()
    };
    let barrier = Barrier { answers: draw.between(0, 2), delay_ns: draw.between(0, MS) };
    (Model { hardware, barrier, paths: paths(draw), ..Model::default() }, rules)
}

#[test]
fn batches_are_found_with_their_size_and_interval() {
    check("batches", |draw, seed| {
        let (model, rules) = batched(draw, shuffles(seed));
        let (pps, half) = probes(rules, 2 * MS);
        let Hardware { batch_rules, batch_interval_ns, .. } = model.hardware;
        Case {
            experiment: "rule-activation",
            set: set(&[
                ("rules_count", rules.to_string()),
                ("probes", "before".into()),
                ("probes_pps", pps),
            ]),
            hidden: vec![
                Hidden { name: "batch_rules_p50", truth: batch_rules as f64, probes: 0.0 },
                Hidden {
                    name: "batch_interval_ns_mean",
                    truth: batch_interval_ns as f64,
                    probes: half,
                },
            ],
            model,
        }
    });
}

/// Returns the order in which rules sent together are written, as the model's writer does it.
fn written(model: &Model, rules: u64, seed: u64) -> Vec<u64> {
    let mut writer = Writer::<()>::new(&Arc::new(model.clone()), seed);
    for rule in 0..rules {
        let id = FlowId { table: 0, matching: Match::ANY, rank: rule as u32 };
        writer.accept(Change { id, generation: 0, spec: None }, Nanos(1));
    }
    writer.advance(Nanos::MAX);
    std::iter::from_fn(|| writer.acts(Nanos::MAX)).map(|change| change.id.rank.into()).collect()
}

/// Returns Kendall's tau between that order and the order sent, over pairs for which `counts`
/// holds.
fn tau(order: &[u64], counts: impl Fn(u64, u64) -> bool) -> f64 {
    let (mut sum, mut pairs) = (0.0, 0.0);
    for (place, &one) in order.iter().enumerate() {
        for &later in order[place + 1..].iter().filter(|later| counts(one, **later)) {
            sum += if later > one { 1.0 } else { -1.0 };
            pairs += 1.0;
        }
    }
    sum / pairs
}

#[test]
fn an_order_shuffled_within_batches_is_found() {
    check("order", |draw, seed| {
        let (model, rules) = batched(draw, shuffles(seed));
        let (pps, _) = probes(rules, model.hardware.insert_ns);
        let order = written(&model, rules, seed);
        let batch = model.hardware.batch_rules;
        // Probes cannot order rules that become active within two rounds of each other, which is
        // the time of four insertions. Each rule therefore has four later rules that may have
        // preceded it.
        let unsure = |rules: u64| 2.0 * 8.0 / (rules as f64 - 1.0);
        let within = |one: u64, other: u64| one / batch == other / batch;
        Case {
            experiment: "rule-activation",
            set: set(&[
                ("rules_count", rules.to_string()),
                ("probes", "before".into()),
                ("probes_pps", pps),
                // The writer below is that of a first update.
                ("updates_max", "1".into()),
            ]),
            hidden: vec![
                Hidden {
                    name: "order_tau_index",
                    truth: tau(&order, |_, _| true),
                    probes: unsure(rules),
                },
                Hidden {
                    name: "batch_order_tau_index",
                    truth: tau(&order, within),
                    probes: unsure(batch),
                },
            ],
            model,
        }
    });
}

/// Returns whether a seed's switch shuffles.
fn shuffles(seed: u64) -> bool {
    seed.is_multiple_of(2)
}

#[test]
fn the_costs_of_insertions_and_moved_entries_are_found() {
    check("moves", |draw, seed| {
        let rules = draw.between(150, 300);
        let (insert_ns, move_ns) = (draw.between(200_000, 800_000), draw.between(2_000, 20_000));
        let moves = seed % 2;
        let hardware = Hardware {
            insert_ns,
            move_ns,
            moves,
            activation_ns: draw.between(0, 20 * MS),
            ..Hardware::default()
        };
        let barrier = Barrier { answers: draw.between(0, 2), delay_ns: 0 };
        let order = if moves == 0 { "ascending" } else { "descending" };
        let (pps, _) = probes(rules, MS);
        Case {
            model: Model { hardware, barrier, paths: paths(draw), ..Model::default() },
            experiment: "rule-activation",
            set: set(&[
                ("rules_count", rules.to_string()),
                ("priority_order", order.into()),
                ("probes", "before".into()),
                ("probes_pps", pps),
            ]),
            hidden: vec![
                Hidden { name: "insertion_ns_mean", truth: insert_ns as f64, probes: 0.0 },
                Hidden { name: "move_ns_mean", truth: move_ns as f64, probes: 0.0 },
            ],
        }
    });
}

#[test]
fn the_capacity_of_a_table_is_found() {
    check("capacity", |draw, _| {
        let rules = draw.between(20, 400);
        let batch = draw.between(1, 40);
        let mut model = Model { paths: paths(draw), ..Model::default() };
        model.capacity = Capacity { rules, ..Capacity::default() };
        model.agent.flow_mod_ns = draw.between(0, 100_000);
        model.hardware.insert_ns = draw.between(0, 200_000);
        model.hardware.activation_ns = draw.between(0, 5 * MS);
        model.barrier.answers = draw.between(0, 1);
        Case {
            model,
            experiment: "table-capacity",
            set: set(&[
                ("rules_bound", "1000".into()),
                ("batch", batch.to_string()),
                ("probes_pps", "20000".into()),
            ]),
            // One entry has the lowest priority.
            hidden: ["accepted_rules", "acting_rules"]
                .map(|name| Hidden { name, truth: rules as f64 - 1.0, probes: 0.0 })
                .into(),
        }
    });
}

#[test]
fn the_cost_of_flow_statistics_per_rule_is_found() {
    check("statistics", |draw, _| {
        let rules = draw.between(50, 400);
        let mut model = Model { paths: paths(draw), ..Model::default() };
        model.agent.message_ns = draw.between(0, 300_000);
        model.agent.flow_mod_ns = draw.between(0, 100_000);
        model.agent.flow_stats_ns = draw.between(0, 20 * MS);
        model.agent.flow_stats_rule_ns = draw.between(1_000, 800_000);
        let truth = model.agent.flow_stats_rule_ns as f64;
        Case {
            model,
            experiment: "stats-delay",
            set: set(&[
                ("rules_count", rules.to_string()),
                ("groups_count", "0".into()),
                ("statistics", "flow,aggregate".into()),
                ("requests", "4".into()),
                ("paced_requests", "0".into()),
                ("load_pps", "0".into()),
            ]),
            hidden: ["flow_rule_ns_mean", "aggregate_rule_ns_mean"]
                .map(|name| Hidden { name, truth, probes: 0.0 })
                .into(),
        }
    });
}

#[test]
fn a_limit_on_packet_ins_is_found() {
    check("packet-ins", |draw, _| {
        let limit = draw.between(200, 5_000);
        let mut model = Model { paths: paths(draw), ..Model::default() };
        model.agent.packet_ins_per_s = limit;
        model.agent.message_ns = draw.between(0, 200_000);
        Case {
            model,
            experiment: "packet-in",
            set: set(&[
                ("frame", "96".into()),
                ("buffer", "no_buffer".into()),
                ("samples", "10".into()),
                ("low_rate_pps", "50".into()),
                ("rate_max", "10000".into()),
                ("step", "0.3".into()),
            ]),
            hidden: vec![Hidden {
                name: "packet_ins_per_s_sustained",
                truth: limit as f64,
                probes: 0.0,
            }],
        }
    });
}

#[test]
fn installation_by_the_first_packet_and_its_duration_are_found() {
    check("first packet", |draw, seed| {
        let rules = draw.between(5, 12);
        let (insert_ns, link_pps) = (draw.between(10_000, 100_000), draw.between(10_000, 100_000));
        let mut model = Model::default();
        let hardware = path(draw);
        let slower = 3 * (hardware.latency_ns + hardware.jitter_ns);
        let software = Path {
            latency_ns: draw.between(100_000, 700_000) + slower,
            jitter_ns: draw.between(0, 50_000),
            ..Path::default()
        };
        model.paths = Paths { hardware, software, ..Paths::default() };
        model.hardware.insert_ns = insert_ns;
        model.hardware.activation_ns = draw.between(30 * MS, 200 * MS);
        model.barrier = Barrier { answers: draw.between(0, 2), delay_ns: draw.between(0, MS) };
        let waits = seed % 4 != 3;
        model.tiers = Tiers { link_pps, ..Tiers::default() };
        // The last kind has the same two paths, and moves rules to hardware without a request.
        model.tiers.in_hardware = if waits { 3 } else { 2 };
        let took = 1_000_000_000 / link_pps + insert_ns + model.hardware.activation_ns;
        let (pps, half) = probes(rules, 3 * MS);
        let ratio =
            Hidden { name: "first_frame_ratio", truth: f64::from(u8::from(waits)), probes: 0.0 };
        let span = Hidden { name: "to_hardware_ns_p50", truth: took as f64, probes: 2.0 * half };
        Case {
            model,
            experiment: "rule-activation",
            set: set(&[
                ("rules_count", rules.to_string()),
                ("probes", "after".into()),
                ("probe_start_delay_s", "0.3".into()),
                ("probes_pps", pps),
            ]),
            hidden: if waits { vec![ratio, span] } else { vec![ratio] },
        }
    });
}

/// Draws a switch that replies to barriers when all earlier rules are active, with other properties
/// and faults at random.
fn honest(draw: &mut Draw) -> Case {
    let some = |draw: &mut Draw, most: u64| draw.between(0, 1) * draw.between(0, most);
    let mut model = Model::default();
    let agent = &mut model.agent;
    agent.message_ns = some(draw, 300_000);
    agent.flow_mod_ns = some(draw, 300_000);
    let batch_rules = some(draw, 40);
    model.hardware = Hardware {
        insert_ns: some(draw, MS),
        move_ns: some(draw, 20_000),
        moves: draw.between(0, 1),
        modify_ns: some(draw, MS),
        delete_ns: some(draw, MS),
        activation_ns: some(draw, 30 * MS),
        batch_rules,
        batch_interval_ns: if batch_rules == 0 { 0 } else { draw.between(MS, 40 * MS) },
        order: draw.between(0, 1),
        counters_ns: some(draw, 50 * MS),
    };
    model.barrier = Barrier { answers: 0, delay_ns: some(draw, 20 * MS) };
    model.tiers = Tiers {
        in_hardware: draw.between(0, 1) * draw.between(1, 3),
        software: 0,
        hardware_rules: some(draw, 20),
        link_pps: some(draw, 50_000),
        link_queue_frames: some(draw, 50),
    };
    let slow = |draw: &mut Draw| Path {
        slow_percent: some(draw, 20),
        slow_ns: some(draw, 2 * MS),
        ..path(draw)
    };
    model.paths = Paths { hardware: slow(draw), software: slow(draw), ..Paths::default() };
    let rules = draw.between(2, 40);
    let one_of = |draw: &mut Draw, words: &[&'static str]| {
        words[draw.between(0, words.len() as u64 - 1) as usize]
    };
    let experiment = one_of(draw, &["rule-activation", "rule-activation", "blackhole"]);
    let mut settings = vec![
        ("rules_count", rules.to_string()),
        ("probes_pps", draw.between(1_000, 20_000).to_string()),
        ("version", one_of(draw, &["1.0", "1.3", "1.4"]).into()),
    ];
    if experiment == "rule-activation" {
        let order = one_of(draw, &["same", "ascending", "descending", "random"]);
        settings.extend([
            ("command", one_of(draw, &["add", "modify", "delete"]).into()),
            ("priority_order", order.into()),
            ("probes", "before".into()),
        ]);
    }
    Case { model, experiment, set: set(&settings), hidden: Vec::new() }
}

/// Values that accuse a switch of an early reply.
const ACCUSATIONS: [&str; 3] =
    ["rules_premature_ratio", "stale_frames", "leaked_after_barrier_frames"];

#[test]
fn a_correct_switch_is_never_reported_as_early() {
    let mut judged = 0;
    let count = cases("TRUTH_CASES_HONEST", 60);
    for seed in 0..count {
        let case = honest(&mut Draw::new(seed ^ 0x686f_6e65));
        let reports = OneSwitch::like(&case.model, seed).run(case.experiment, &case.set, seed);
        for report in &reports {
            let reported = || format!("{seed}: {:?} {:?} {}", case.model, case.set, report.ended);
            for name in ACCUSATIONS {
                let Some(found) = measured_metric(report, name) else { continue };
                judged += 1;
                assert_eq!(found.value, 0.0, "{name}: {}", reported());
            }
            if let Some(gap) = measured_metric(report, "barrier_gap_ns_max") {
                let most = gap.half_width.unwrap();
                assert!(gap.value <= most, "a gap of {gap:?}: {}", reported());
            }
        }
    }
    // Some runs cannot complete, for example if a table fills up. Nearly all do.
    assert!(judged >= count, "{judged} of {count} were judged");
}
