//! Tests of switches that no single link supports, measured side by side, and of switches that are
//! connected to each other.
//!
//! Plain Open vSwitch supports veth pairs only; Open vSwitch on DPDK does not support them.

use std::fs;

use serde_json::Value;

use super::common::{only_run, record};
use super::{Place, System};

pub fn switches_without_a_common_link_are_measured() {
    let place = Place::new();
    let before = System::now();
    let targets = ["switch", "ovs", "ovs-dpdk", "switch:model=hp-5406zl"];
    let experiments = ["run", "bianco2010/fig3", "oflops2018/fig7c", "--effort", "quick"];
    let set = ["seconds=0.05", "repeats=1", "load=0.5", "rules_count=20", "probes_pps=20000"];
    let on = targets.iter().flat_map(|target| ["--on", target]);
    let set = set.iter().flat_map(|assignment| ["--set", assignment]);
    let result =
        place.planimeter(&experiments.into_iter().chain(on).chain(set).collect::<Vec<_>>());
    assert_eq!(result.code, Some(0), "{}", result.errors);
    place.assert_clean(&before);
    let reported =
        "links: switch, ovs, switch:model=hp-5406zl over veth:afpacket; ovs-dpdk over veth:xdp";
    assert!(result.errors.contains(reported), "{}", result.errors);
    let record = record(&only_run(&place.path().join("runs")));
    let rows = |what: &str| record[what].as_array().unwrap();
    let of = |target: &Value| if target == "ovs-dpdk" { "veth:xdp" } else { "veth:afpacket" };
    assert_eq!(rows("calibrations").len(), 2);
    for target in targets {
        let own = |it: &&Value| it["target"] == target;
        for what in ["bianco2010/fig3", "oflops2018/fig7c"] {
            let mut trials = rows("trials").iter().filter(own);
            assert!(trials.any(|it| it["experiment"] == what), "{what} on {target}");
        }
    }
    for trial in rows("trials") {
        assert_eq!(trial["calibration"], format!("loop:{}", of(&trial["target"])), "{trial}");
        if trial["experiment"] == "bianco2010/fig3" {
            assert!(trial["frames_forwarded"].as_u64() > Some(0), "{trial}");
        } else {
            assert_eq!(trial["module"]["ended"], "completed", "{trial}");
        }
    }
    for outcome in rows("outcomes") {
        assert_eq!(outcome["link"], of(&outcome["target"]), "{outcome}");
    }
    for ratio in rows("ratios") {
        assert_eq!(ratio["links"].is_array(), ratio["target"] == "ovs-dpdk", "{ratio}");
    }
}

/// Open vSwitch behind our switch, with its second port as ingress.
const CHAIN: &str = "instrument = [\"first:1\", \"second:1\"]\n\
                     [[switch]]\nname = \"first\"\ntarget = \"switch\"\n\
                     [[switch]]\nname = \"second\"\ntarget = \"ovs\"\n\
                     [[link]]\nbetween = [\"first:2\", \"second:2\"]\n";

pub fn a_path_over_two_switches_is_measured() {
    let place = Place::new();
    let before = System::now();
    fs::write(place.path().join("chain.toml"), CHAIN).unwrap();
    let experiments = ["run", "path-setup", "forwarding-latency", "forwarding-rate"];
    let set = ["repeats=1", "seconds=0.05", "load=0.5", "flows_count=20", "probes_pps=2000"];
    let set = set.iter().chain(&["sizes=128", "rates=low", "low_mbps=2"]);
    let set = set.flat_map(|assignment| ["--set", assignment]);
    let on = ["--topology", "chain.toml", "--link", "veth", "--effort", "quick"];
    let words: Vec<&str> = experiments.into_iter().chain(on).chain(set).collect();
    let result = place.planimeter(&words);
    assert_eq!(result.code, Some(0), "{}", result.errors);
    place.assert_clean(&before);
    let record = record(&only_run(&place.path().join("runs")));
    let rows = |what: &str| record[what].as_array().unwrap();
    assert_eq!(record["targets"][0]["settings"]["path"], "first, second");
    let measured = |trial: &Value, name: &str| {
        let rows = trial["module"]["measured"].as_array().unwrap();
        rows.iter().find(|it| it["metric"] == name).and_then(|it| it["value"].as_f64())
    };
    for trial in rows("trials") {
        match trial["experiment"].as_str().unwrap() {
            "path-setup" => {
                assert_eq!(trial["module"]["ended"], "completed", "{trial}");
                let result = trial["module"]["measured"].as_array().unwrap();
                let share = result.iter().find(|it| it["metric"] == "flows_set_up_ratio").unwrap();
                assert_eq!(share["value"], 1.0, "{trial}");
                for switch in ["switch_1_barrier_ns", "switch_2_barrier_ns"] {
                    assert!(measured(trial, switch) > Some(0.0), "{switch}: {trial}");
                }
            }
            "forwarding-latency" => assert!(measured(trial, "forwarding_ns_p50") > Some(0.0)),
            _ => {
                assert!(trial["frames_forwarded"].as_u64() > Some(0), "{trial}");
                assert_eq!(trial["frames_unexplained"], 0, "{trial}");
            }
        }
    }
}
