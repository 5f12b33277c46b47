//! Tests of client and server programs on hosts next to the tester's ports: every packet is
//! accounted for, on targets of every kind; and of iperf3 as the load of statistics.

use serde_json::Value;
use testbed::requirement::{self, Requirement};

use super::common::{only_run, record};
use super::{Place, System, lab_needs};

/// Targets with rules, with addresses and with routes, ours and the kernel's.
const TARGETS: [&str; 6] = [
    "switch",
    "bridge",
    "router",
    "linux-bridge",
    "linux-router",
    "switch:model=hp-2920,mode=legacy",
];

/// Packets of each run.
const PACKETS: u64 = 60;

/// Verifies iperf3, in addition to the lab's requirements.
pub fn iperf_needs() -> Result<(), Requirement> {
    lab_needs()?;
    requirement::tool("iperf3", "iperf3").map(drop)
}

fn measured(trial: &Value, name: &str) -> Option<f64> {
    let all = trial["module"]["measured"].as_array()?;
    all.iter().find(|it| it["metric"] == name)?["value"].as_f64()
}

/// Tests client and server. The wait for a packet is so long that no packet counts as lost because
/// of it.
pub fn client_and_server_measure_all_targets() {
    let place = Place::new();
    let before = System::now();
    let mut arguments = vec!["run", "costa2017/sockets", "--effort", "quick", "--link", "veth"];
    let packets = format!("packets={PACKETS}");
    let set = ["repeats=2", "wait=20", "match_types=port,exact", "frame=64,256", &packets];
    arguments.extend(set.iter().flat_map(|it| ["--set", it]));
    arguments.extend(TARGETS.iter().flat_map(|target| ["--on", target]));
    let result = place.planimeter(&arguments);
    assert_eq!(result.code, Some(0), "{}", result.errors);
    place.assert_clean(&before);
    let folder = only_run(&place.path().join("runs"));
    let record = record(&folder);
    let trials = record["trials"].as_array().unwrap();
    // By port and by all fields at the smallest size, by all fields at the other; one per size
    // without OpenFlow.
    assert_eq!(trials.len(), 2 * 2 * (3 + 5 * 2));
    for trial in trials {
        let module = &trial["module"];
        assert_eq!(module["ended"], "completed", "{trial}");
        let names: Vec<&str> = (module["measured"].as_array().unwrap().iter())
            .filter_map(|it| it["metric"].as_str())
            .collect();
        let returned = names.iter().find(|name| name.ends_with("returned_ratio")).unwrap();
        let prefix = returned.strip_suffix("returned_ratio").unwrap();
        let reported = |what: &str| measured(trial, &format!("{prefix}{what}"));
        assert_eq!(reported("returned_ratio"), Some(1.0), "{trial}");
        assert_eq!(reported("packet_ins_count"), Some(0.0), "{trial}");
        if prefix.ends_with("sockets_") {
            // Only the hosts saw the times.
            assert_eq!(reported("unknown_count"), Some(0.0), "{trial}");
            let [whole, there, back, own] = ["rtt", "there", "back", "answering"]
                .map(|it| reported(&format!("{it}_ns_mean")).unwrap());
            assert!((whole - there - back - own).abs() < 1.0 && there > 0.0, "{trial}");
        }
    }
    // A difference for each target, type and size, as text.
    let summary = std::fs::read_to_string(folder.join("summary.md")).unwrap();
    let rows = summary.split("Delay of client and server").nth(1).unwrap();
    let rows = rows.lines().skip_while(|line| !line.starts_with('|')).skip(2);
    let rows = rows.take_while(|line| line.starts_with('|'));
    assert_eq!(rows.count(), 3 + 5 * 2, "{summary}");
}

/// Tests that other links support no hosts.
pub fn other_links_support_no_hosts() {
    let place = Place::new();
    let result =
        place.planimeter(&["run", "costa2017/sockets", "--on", "switch", "--link", "memory"]);
    assert_eq!(result.code, Some(2), "{}", result.errors);
    assert!(result.errors.contains("use --link veth"), "{}", result.errors);
}

/// Tests that iperf3 reports its load, both at a rate and at full speed, and ends with the run.
pub fn iperf3_generates_the_load_of_statistics() {
    let place = Place::new();
    let before = System::now();
    let mut arguments = vec!["run", "costa2017/table7", "--effort", "quick", "--link", "veth"];
    let set = [
        "repeats=1",
        "load_by=iperf3",
        "requests=2",
        "pace=0.4",
        "rules_bound=100",
        "timeout_s=30",
    ];
    arguments.extend(set.iter().flat_map(|it| ["--set", it]));
    arguments.extend(["--on", "switch"]);
    let result = place.planimeter(&arguments);
    assert_eq!(result.code, Some(0), "{}", result.errors);
    place.assert_clean(&before);
    let record = record(&only_run(&place.path().join("runs")));
    let trials = record["trials"].as_array().unwrap();
    assert_eq!(trials.len(), 2);
    for trial in trials {
        assert_eq!(trial["module"]["ended"], "completed", "{trial}");
        for load in ["light", "heavy"] {
            let reported = |what: &str| measured(trial, &format!("{load}_{what}")).unwrap();
            assert!(reported("load_frames") > 0.0, "{trial}");
            assert_eq!(reported("flow_answered_ratio"), 1.0, "{trial}");
        }
        // Frames and losses of hosts are not in the tester's balance.
        assert_eq!(
            (&trial["frames_unexplained"], &trial["frames_offered"]),
            (&0.into(), &0.into())
        );
        // A light load is at most the requested one, except for a burst ahead of time.
        let light = measured(trial, "light_load_bytes_per_s").unwrap();
        assert!(light <= 1.3e6, "{trial}");
    }
}
