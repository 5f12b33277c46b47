//! The study of nine switches in virtual time: what round trips take, what fits and what is rewritten is known
//! beforehand.

use openflow::model::message::Message;
use openflow::model::{Action, FlowMod, Match};
use openflow::version::Version;
use packet::time::Nanos;
use planimeter::experiments::modules::round_trip::{ASKED, BACK, RoundTrip, THERE, Trip};
use planimeter::target::name::TargetKind;
use results::record::{Ended, Metric, ModuleRun, Name, Record, Trial};

use super::common::Folder;
use super::models::modelled;
use super::modules::{probes, stage};
use super::{measure, plan};

const OURS: [TargetKind; 1] = [TargetKind::Ours];

/// Packets of 64 bytes are on a link of 1 Gbit/s for so long.
const LINK_NS: f64 = 84.0 * 8.0;

fn study(item: &str, kinds: &[TargetKind], set: &[&str]) -> Record {
    let set = [&["packets=100", "wait=0.01"], set].concat();
    measure(&plan(&[item], kinds, &set, 1))
}

fn value(record: &Record, item: &str, target: &str, name: &str) -> Option<f64> {
    let metric = Metric::Named(Name::read(name).unwrap());
    record.cells_of(item, target, metric).next().map(|cell| cell.value)
}

fn runs(record: &Record) -> impl Iterator<Item = (&Trial, &ModuleRun)> {
    record.trials.iter().map(|trial| (trial, trial.module.as_ref().unwrap()))
}

#[test]
fn every_type_of_match_takes_what_the_switch_takes() {
    for version in ["version=1.0", "version=1.3", "version=1.5"] {
        let record = study("costa2017/table3", &OURS, &["service_ns=2000", version]);
        for (trial, run) in runs(&record) {
            assert_eq!(run.ended, Ended::Said, "{version} {:?}: {:?}", trial.point, run.notes);
        }
        for name in ["port", "mac", "ip", "udp_port", "exact", "eth_src", "vlan_pcp", "ip_proto"] {
            let told = |what: &str| {
                let found = value(&record, "costa2017/table3", "ours", &format!("{name}_{what}"));
                found.unwrap_or_else(|| panic!("{version}: {name}_{what} was not told"))
            };
            assert_eq!(told("returned_ratio"), 1.0, "{version} {name}");
            assert_eq!(told("packet_ins_count"), 0.0, "{version} {name}");
            let links = 4.0 * if name == "vlan_pcp" { LINK_NS + 32.0 } else { LINK_NS };
            let spare = told("rtt_ns_mean") - links;
            assert!((0.0..=8_000.0).contains(&spare), "{version} {name}: {spare}");
        }
        let refused = value(&record, "costa2017/table3", "ours", "ip_ecn_refused_count");
        assert_eq!(refused, Some(f64::from(u8::from(version == "version=1.0"))));
    }
}

#[test]
fn a_bridge_and_a_router_have_round_trips_too() {
    let kinds = [TargetKind::Ours, TargetKind::Bridge, TargetKind::Router];
    let record = study("costa2017/fig6", &kinds, &["service_ns=1000"]);
    for (kind, name) in
        [("ours", "port"), ("ours", "normal"), ("bridge", "legacy"), ("router", "legacy")]
    {
        let told = |what: &str| value(&record, "costa2017/fig6", kind, &format!("{name}_{what}"));
        assert_eq!(told("returned_ratio"), Some(1.0), "{kind} {name}");
        assert!(told("rtt_ns_mean").is_some_and(|ns| ns > 2_000.0), "{kind} {name}");
    }
}

#[test]
fn the_interval_holds_what_a_model_is_set_to() {
    let folder = Folder::new();
    let keys = "path_hardware.latency_ns = { value = 400_000, source = \"assumed\" }\n\
                path_hardware.jitter_ns = { value = 20_000, source = \"assumed\" }\n";
    let kind = modelled(&folder, keys);
    let set = ["match_types=port,exact", "open_pps=0", "packets=1000", "repeats=4"];
    let record = study("costa2017/table3", &[kind], &set);
    let truth = 2.0 * (400_000.0 + 10_000.0) + 4.0 * LINK_NS;
    for (_, run) in runs(&record) {
        let mean =
            run.measured.iter().find(|it| it.metric.name().ends_with("rtt_ns_mean")).unwrap();
        let off = (mean.value - truth).abs();
        // The model's paths begin when a frame has come, to within the time of a turn.
        assert!(off <= mean.resolution.unwrap() + 1_000.0, "{off} and {mean:?}");
        assert!(mean.resolution.unwrap() < 5_000.0, "{mean:?}");
    }
}

#[test]
fn what_does_not_come_back_ends_the_run_and_is_told() {
    let folder = Folder::new();
    let keys = "hardware.activation_ns = { value = 500_000_000_000, source = \"assumed\" }\n\
                barrier.answers = { value = \"taken\", source = \"assumed\" }\n";
    let kind = modelled(&folder, keys);
    let set = ["match_types=port", "open_pps=0", "patience=0.5", "repeats=1"];
    let record = study("costa2017/table3", &[kind], &set);
    let [(_, run)] = &runs(&record).collect::<Vec<_>>()[..] else { panic!("one run") };
    assert!(
        matches!(&run.ended, Ended::Limit(name) if name.contains("come back")),
        "{:?}",
        run.ended
    );
}

#[test]
fn a_run_whose_packets_go_to_the_controller_is_marked() {
    let there = probes(1, 1000.0);
    let mut back = there.clone();
    (back.id, back.from, back.to) = (BACK, 1, 0);
    let rule = |port_in: u16, port_out: u32, hard_timeout: u16| {
        let matching = Match::ANY.with(openflow::model::Field::InPort, port_in);
        let add = FlowMod::add(matching, 100, vec![Action::output(port_out)]);
        Message::FlowMod(FlowMod { hard_timeout_s: hard_timeout, ..add })
    };
    let trip = |hard_timeout: u16| Trip {
        name: "x",
        rules: Some(vec![rule(1, 2, hard_timeout), rule(2, 1, hard_timeout)]),
        rules_early: None,
        fill: None,
        ways: [there.clone(), back.clone()],
        comes_out: None,
        packets: 2000,
        pps: Some(1000.0),
        versions: vec![Version::V1_0],
        patience: Nanos::from_secs(1),
        wait: Nanos::from_millis(100),
    };
    assert_eq!(there.id, THERE);
    let lasting = stage(&mut RoundTrip::new(trip(0)));
    assert!(lasting.is_whole(), "{}", lasting.ended);
    assert_eq!(lasting.measured("returned_ratio").unwrap().value, 1.0);
    let ending = stage(&mut RoundTrip::new(trip(1)));
    assert_eq!(ending.ended, instrument::module::Ended::Limit(ASKED));
    assert!(ending.measured("packet_ins_count").unwrap().value > 900.0);
}

#[test]
fn the_rule_installed_last_is_met_in_a_full_table() {
    let folder = Folder::new();
    let kind = modelled(&folder, "capacity.rules = { value = 700, source = \"assumed\" }\n");
    let set = ["rules_bound=2000", "wildcard_entries_max=5000", "repeats=1"];
    let record = study("costa2017/table5", &[kind], &set);
    for name in ["exact", "wildcard"] {
        let metric = |what: &str| Metric::Named(Name::read(&format!("{name}_{what}")).unwrap());
        let at = |what: &str, x: f64| {
            let mut cells = record.cells_of("costa2017/table5", kind.name(), metric(what));
            cells.find(|cell| cell.point.value == x).map(|cell| cell.value)
        };
        // The rule below all others has the last place.
        assert_eq!(at("taken_rules", 100.0), Some(699.0), "{name}");
        assert_eq!(at("is_full_count", 100.0), Some(1.0));
        for x in [0.0, 100.0] {
            assert_eq!((at("refused_count", x), at("returned_ratio", x)), (Some(0.0), Some(1.0)));
        }
    }
}

#[test]
fn every_rewrite_is_done_on_both_ways_and_checked() {
    for version in ["version=1.0", "version=1.3"] {
        let record = study("costa2017/table6", &OURS, &["service_ns=1000", "repeats=1", version]);
        let mut done = 0;
        for (_, run) in runs(&record) {
            let of = |end: &str| {
                run.measured.iter().find(|it| it.metric.name() == end).map(|it| it.value)
            };
            if of("refused_count") == Some(1.0) {
                continue;
            }
            assert_eq!(of("returned_ratio"), Some(1.0), "{version}: {run:?}");
            assert_eq!(of("right_ratio"), Some(1.0), "{version}: {:?}", run.notes);
            done += 1;
        }
        assert!(done >= if version == "version=1.0" { 14 } else { 28 }, "{version}: {done}");
        let of = |name: &str| value(&record, "costa2017/table6", "ours", name);
        for name in ["none", "mac", "ip", "vlan_priority", "ip_tos", "udp_ports"] {
            assert_eq!(of(&format!("{name}_right_ratio")), Some(1.0), "{version} {name}");
        }
    }
}
