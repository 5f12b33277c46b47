//! Tests of several switches in a row, in virtual time: hidden values of their models are found end
//! to end.

use std::fs;

use record::{Ended, Metric, ModuleRun, Name, Record};
use targets::name::TargetKind;

use super::common::Folder;
use super::{SLOW, measure, plan};

/// Probe rate per second, and nanoseconds between two probes of one of 20 flows.
const PROBES: &str = "probes_pps=20000";
const ROUND_NS: f64 = 1e6;

const SET: [&str; 4] = ["flows_count=20", PROBES, "repeats=1", "wildcard_entries_max=1000"];

/// Returns two switches in a row; the second one has port 3 as ingress and port 1 as egress.
fn row(folder: &Folder, first: &str, second: &str) -> TargetKind {
    let text = format!(
        "instrument = [\"first:1\", \"second:1\", \"second:2\"]\n\
         [[switch]]\nname = \"first\"\ntarget = \"{first}\"\n\
         [[switch]]\nname = \"second\"\ntarget = \"{second}\"\n\
         [[link]]\nbetween = [\"first:2\", \"second:3\"]\n"
    );
    let path = folder.0.join("row.toml");
    fs::create_dir_all(&folder.0).unwrap();
    fs::write(&path, text).unwrap();
    format!("topology:{}", path.display()).parse().unwrap()
}

/// Returns a switch whose rules become active this long after its barrier reply.
fn late(folder: &Folder, name: &str, activation_ns: u64) -> String {
    let path = folder.0.join(format!("{name}.toml"));
    let keys = format!(
        "name = \"{name}\"\nabout = \"test\"\n\
         hardware.activation_ns = {{ value = {activation_ns}, source = \"assumed\" }}\n\
         barrier.answers = {{ value = \"taken\", source = \"assumed\" }}\n"
    );
    fs::create_dir_all(&folder.0).unwrap();
    fs::write(&path, keys).unwrap();
    format!("switch:model={}", path.display())
}

fn module(record: &Record) -> &ModuleRun {
    let run = record.trials[0].module.as_ref().unwrap();
    assert_eq!(run.ended, Ended::Completed);
    run
}

fn value(run: &ModuleRun, name: &'static str) -> f64 {
    let metric = Metric::Named(Name::of(name));
    let found = run.measured.iter().find(|found| found.metric == metric);
    found.unwrap_or_else(|| panic!("{name} is missing")).value
}

fn path_setup(kind: TargetKind, order: &str) -> Record {
    measure(&plan(&["path-setup"], &[kind], &[&SET[..], &[order]].concat(), 1))
}

#[test]
fn path_setup_of_correct_switches_is_within_the_probe_resolution() {
    let folder = Folder::new();
    let kind = row(&folder, "switch", "switch:model=honest");
    for order in ["order=together", "order=ingress-first", "order=egress-first"] {
        let record = path_setup(kind, order);
        let run = module(&record);
        assert_eq!(value(run, "flows_set_up_ratio"), 1.0, "{order}");
        assert_eq!(value(run, "late_flows_ratio"), 0.0, "{order}: no switch was early");
        assert_eq!(value(run, "failed_after_barrier_frames"), 0.0, "{order}");
        assert_eq!(
            value(run, "lost_frames"),
            0.0,
            "{order}: unmatched frames are sent to the controller"
        );
        assert!(value(run, "path_ns") <= 2.0 * ROUND_NS, "{order}: {}", value(run, "path_ns"));
    }
}

#[test]
fn a_path_is_as_late_as_its_latest_switch_which_is_named() {
    let folder = Folder::new();
    // The seeds draw the hidden values: the lateness of each switch.
    for seed in 1..=8u64 {
        let drawn = |salt: u64| {
            let mixed = (seed * 2 + salt).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
            5_000_000 + mixed % 60_000_000
        };
        let hidden = [drawn(0), drawn(1)];
        let folder = Folder(folder.0.join(seed.to_string()));
        let names = [late(&folder, "one", hidden[0]), late(&folder, "two", hidden[1])];
        let kind = row(&folder, &names[0], &names[1]);
        let record = path_setup(kind, "order=together");
        let run = module(&record);
        let truth = hidden[0].max(hidden[1]) as f64;
        let found = value(run, "path_ns");
        assert!((found - truth).abs() <= 2.0 * ROUND_NS, "{found} for {hidden:?}");
        let after = value(run, "late_ns_max");
        assert!((after - truth).abs() <= 2.0 * ROUND_NS, "{after} for {hidden:?}");
        assert_eq!(value(run, "late_flows_ratio"), 1.0);
        // Until the rule of the first switch is active, that switch misses a frame; afterwards the
        // second one does.
        let punted = [value(run, "switch_1_punted_frames"), value(run, "switch_2_punted_frames")];
        let frames = |span: u64| span as f64 * 20_000.0 / 1e9;
        let wanted = [frames(hidden[0]), frames(hidden[1].saturating_sub(hidden[0]))];
        for (found, wanted) in punted.iter().zip(wanted) {
            assert!((found - wanted).abs() <= 45.0, "{punted:?} for {hidden:?}");
        }
    }
}

#[test]
fn installing_the_far_switch_first_stops_no_frame() {
    let folder = Folder::new();
    let second = late(&folder, "slow", 30_000_000);
    let kind = row(&folder, "switch", &second);
    let half_way = |kind: TargetKind| {
        value(module(&path_setup(kind, "order=egress-first")), "switch_2_punted_frames")
    };
    // After an early barrier reply, dependent updates come too early as well.
    assert!(half_way(kind) > 500.0);
    let folder = Folder::new();
    assert_eq!(half_way(row(&folder, "switch", "switch:model=honest")), 0.0);
}

#[test]
fn frames_are_forwarded_end_to_end_with_the_delay_of_each_link_and_switch() {
    let folder = Folder::new();
    let kind = row(&folder, "switch", "switch");
    let kinds = [TargetKind::Switch, kind];
    let set = ["sizes=128", "rates=low", "repeats=1", "seconds=0.05", SLOW];
    let record = measure(&plan(&["forwarding-latency"], &kinds, &set, 1));
    let latency = |kind: TargetKind| {
        let metric = Metric::Named(Name::of("forwarding_ns_p50"));
        record.cells_of("forwarding-latency", kind.name(), metric).next().unwrap().value
    };
    // A link of 1 Gbit/s and 128-byte frames.
    let (link, [one, two]) = (1184.0, kinds.map(latency));
    assert!((two - one - link).abs() < 3_000.0, "{one} and {two}");
    assert!(two > one + link / 2.0, "{one} and {two}");
}

#[test]
fn trials_run_end_to_end_and_account_for_every_frame() {
    let folder = Folder::new();
    let kind = row(&folder, "switch", "switch");
    let set = ["load=10", "repeats=1", "table=exact", "entries=50", "traffic=random"];
    let record = measure(&plan(&["forwarding-rate", "bianco2010/fig3"], &[kind], &set, 1));
    for trial in &record.trials {
        assert!(trial.frames_forwarded > 0, "{trial:?}");
        assert_eq!(trial.frames_unexplained, 0, "{trial:?}");
    }
}

/// Tests the purpose of the repository's example: the second switch's barrier is early.
#[test]
fn the_example_finds_the_late_switch() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/topologies/chain.toml");
    let kind: TargetKind = format!("topology:{file}").parse().unwrap();
    // Fewer probes than the switch can send as packet-ins.
    let set = [&SET[..], &["probes_pps=800", "order=egress-first"]].concat();
    let record = measure(&plan(&["path-setup"], &[kind], &set, 1));
    let run = module(&record);
    assert_eq!(value(run, "flows_set_up_ratio"), 1.0);
    assert!(value(run, "late_ns_max") > 5e7, "{}", value(run, "late_ns_max"));
    assert_eq!(value(run, "late_flows_ratio"), 1.0);
    assert!(value(run, "switch_2_punted_frames") > 0.0);
}
