//! Switches that no link carries together, measured side by side: Open vSwitch by itself stands on veth
//! pairs alone, on DPDK not on them.

use serde_json::Value;

use super::common::{only_run, record};
use super::{Place, System};

pub fn switches_without_a_link_in_common() {
    let place = Place::new();
    let before = System::now();
    let targets = ["ours", "ovs", "ovs-dpdk", "ours:model=edgecore-as5812"];
    let experiments = ["run", "bianco2010/fig3", "oflops2018/fig7c", "--effort", "quick"];
    let set = ["seconds=0.05", "repeats=1", "load=0.5", "rules_count=20", "probes_pps=20000"];
    let on = targets.iter().flat_map(|target| ["--on", target]);
    let set = set.iter().flat_map(|assignment| ["--set", assignment]);
    let said = place.planimeter(&experiments.into_iter().chain(on).chain(set).collect::<Vec<_>>());
    assert_eq!(said.code, Some(0), "{}", said.errors);
    place.assert_clean(&before);
    let told =
        "links: ours, ovs, ours:model=edgecore-as5812 over veth:afpacket; ovs-dpdk over veth:xdp";
    assert!(said.errors.contains(told), "{}", said.errors);
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
            assert_eq!(trial["module"]["ended"], "said", "{trial}");
        }
    }
    for outcome in rows("outcomes") {
        assert_eq!(outcome["link"], of(&outcome["target"]), "{outcome}");
    }
    for ratio in rows("ratios") {
        assert_eq!(ratio["links"].is_array(), ratio["target"] == "ovs-dpdk", "{ratio}");
    }
}
