//! Tests of frames and messages between switch and controller, on a switch with a known service
//! time.

use record::{Ended, Metric, ModuleRun, Name, Record};
use targets::name::TargetKind;

use super::{Destination, Folder, carry_out, plan};

const OURS: [TargetKind; 1] = [TargetKind::Switch];

/// The switch's service time for a received frame...
const SERVICE: &str = "sim_service_time_ns=20000";
const SERVICE_NS: f64 = 20_000.0;

/// ...and its frames per second.
const CAPACITY: f64 = 50_000.0;

const VERSIONS: [&str; 3] = ["version=1.0", "version=1.3", "version=1.4,1.5"];

const CASES: [(&str, &str); 3] = [
    ("version=1.0", "buffer=buffered"),
    ("version=1.3", "buffer=no_buffer"),
    ("version=1.4,1.5", "buffer=no_buffer"),
];

/// Returns the record of a module; the module itself checks where its frames go.
pub fn run(module: &str, set: &[&str]) -> Record {
    let set = [&["repeats=1"], set].concat();
    let folder = Folder::new();
    let plan = plan(&[module], &OURS, &set, 1);
    let (finished, _) = carry_out(&plan, Destination::New(folder.0.clone()), None);
    assert!(!finished.record.partial);
    for trial in &finished.record.trials {
        let run = trial.module.as_ref().unwrap();
        assert_eq!(run.ended, Ended::Completed, "{module} {set:?}");
        let refused = run.notes.iter().find(|note| note.contains("errors_count"));
        assert_eq!(refused, None, "{module} {set:?}");
    }
    finished.record
}

pub fn only(record: &Record) -> &ModuleRun {
    let [trial] = &record.trials[..] else { panic!("{} trials", record.trials.len()) };
    trial.module.as_ref().unwrap()
}

pub fn measured(run: &ModuleRun, name: &'static str) -> (f64, f64) {
    let metric = Metric::Named(Name::of(name));
    let found = run.measured.iter().find(|found| found.metric == metric);
    let found = found.unwrap_or_else(|| panic!("no {name} in {:?}", run.measured));
    (found.value, found.resolution.unwrap_or(0.0))
}

pub fn value(run: &ModuleRun, name: &'static str) -> f64 {
    measured(run, name).0
}

/// Checks that the results contain the true values, within the module's stated error.
fn check_rates(run: &ModuleRun, names: [&'static str; 2]) {
    let (rate, half) = measured(run, names[0]);
    let (peak, within) = measured(run, names[1]);
    assert!(
        (rate - CAPACITY).abs() <= half.max(0.05 * CAPACITY),
        "{names:?}: {rate} ± {half}: {:?}",
        run.series
    );
    assert!((peak - CAPACITY).abs() <= within, "{names:?}: {peak} ± {within}");
}

#[test]
fn packet_ins_have_the_delay_and_rate_of_the_switch() {
    for (version, buffer) in CASES {
        let set =
            ["frame=512", "samples=100", "step=0.1", "rate_max=100000", SERVICE, version, buffer];
        let record = run("packet-in", &set);
        let run = only(&record);
        let delay = value(run, "packet_in_ns_p50");
        assert!((0.0..=2.0 * SERVICE_NS).contains(&delay), "{version} {buffer}: {delay}");
        assert_eq!(value(run, "lost_ratio"), 0.0);
        let (buffered, carried) = (value(run, "buffered_ratio"), value(run, "carried_bytes_mean"));
        assert!(carried <= 508.0 && (buffered > 0.0 || carried == 508.0), "{buffered} {carried}");
        check_rates(run, ["packet_ins_per_s_lossfree", "packet_ins_per_s_peak"]);
    }
}

#[test]
fn frames_return_through_the_controller_with_and_without_buffers() {
    for (version, buffer) in CASES {
        let set =
            ["frame=96", "samples=100", "step=0.1", "rate_max=100000", SERVICE, version, buffer];
        let record = run("packet-in-out", &set);
        let run = only(&record);
        assert_eq!((value(run, "lost_ratio"), value(run, "errors_count")), (0.0, 0.0));
        // In virtual time the tester replies immediately.
        assert_eq!(value(run, "think_ns_max"), 0.0);
        assert!(value(run, "round_trip_ns_p50") <= 4.0 * SERVICE_NS, "{version} {buffer}");
        check_rates(run, ["packets_per_s_lossfree", "packets_per_s_peak"]);
    }
}

#[test]
fn each_flow_is_set_up_by_its_first_frame() {
    for (version, buffer) in CASES {
        let set =
            ["frame=96", "samples=100", "step=0.1", "rate_max=100000", SERVICE, version, buffer];
        let record = run("reactive-setup", &[&set[..], &["flows_max=10000"]].concat());
        let run = only(&record);
        assert_eq!((value(run, "lost_ratio"), value(run, "errors_count")), (0.0, 0.0));
        assert!(value(run, "setup_ns_p50") <= 4.0 * SERVICE_NS, "{version} {buffer}");
        check_rates(run, ["setups_per_s_lossfree", "setups_per_s_peak"]);
    }
}

#[test]
fn packet_outs_leave_immediately() {
    for version in VERSIONS {
        let set = ["frame=96", "samples=100", "step=0.02", "rate_max=20000", version];
        let record = run("packet-out", &set);
        let run = only(&record);
        assert_eq!((value(run, "lost_ratio"), value(run, "errors_count")), (0.0, 0.0));
        assert!(value(run, "packet_out_ns_max") < 1e6, "{version}");
        // The switch sends as many as requested.
        let (rate, half) = measured(run, "packet_outs_per_s_lossfree");
        assert!((rate - 20_000.0).abs() <= half, "{rate} ± {half}");
    }
}

#[test]
fn echo_requests_are_answered_when_idle_and_under_load() {
    for version in VERSIONS {
        let load = "load_pps=25000";
        let record = run("echo-delay", &["echoes=50", "payload=64", load, SERVICE, version]);
        assert_eq!(record.trials.len(), 3);
        for trial in &record.trials {
            let run = trial.module.as_ref().unwrap();
            assert_eq!(value(run, "unanswered_ratio"), 0.0, "{version}");
            assert!(value(run, "echo_ns_max") <= 5.0 * SERVICE_NS, "{version}");
        }
    }
}

#[test]
fn invalid_flow_mods_are_rejected_before_the_barrier_reply() {
    for version in VERSIONS {
        let record = run("error-delay", &["samples=20", version]);
        // No error, or a wrong port, table or action; sent alone and after other flow-mods.
        assert_eq!(record.trials.len(), 8);
        for (place, trial) in record.trials.iter().enumerate() {
            let run = trial.module.as_ref().unwrap();
            assert_eq!(value(run, "others_count"), 0.0, "{version} {place}");
            if place % 4 == 0 {
                continue;
            }
            assert_eq!(value(run, "missing_ratio"), 0.0, "{version} {place}");
            assert_eq!(value(run, "behind_barrier_count"), 0.0, "{version} {place}");
            assert!(value(run, "error_ns_p50") <= value(run, "barrier_ns_p50"));
        }
    }
}

#[test]
fn messages_without_cost_have_the_requested_rate() {
    for version in VERSIONS {
        let set = ["in_flight=0,4", "rate_max=5000", "step=0.02", version];
        let record = run("control-rate", &set);
        assert_eq!(record.trials.len(), 10);
        for (place, trial) in record.trials.iter().take(5).enumerate() {
            let run = trial.module.as_ref().unwrap();
            let (rate, half) = measured(run, "messages_per_s_lossfree");
            assert!((rate - 5000.0).abs() <= half, "{version} {place}: {rate} ± {half}");
        }
    }
}

#[test]
fn malformed_messages_cost_a_fast_switch_nothing() {
    for version in VERSIONS {
        let set = ["flood_per_s=20000", "probes_pps=30000", "time=0.05", version];
        let record = run("abuse", &set);
        // Four shares of malformed messages and two floods.
        assert_eq!(record.trials.len(), 6);
        for (place, trial) in record.trials.iter().enumerate() {
            let run = trial.module.as_ref().unwrap();
            let count = |name| value(run, name);
            assert_eq!(count("honest_lost_count"), 0.0, "{version} {place}");
            assert_eq!(count("unanswered_count"), 0.0, "{version} {place}");
            let forwarded = ["quiet_forwarded_ratio", "forwarded_ratio", "after_forwarded_ratio"];
            for name in forwarded {
                let (share, half) = measured(run, name);
                assert!((share - 1.0).abs() <= half && half < 0.02, "{version} {place}: {share}");
            }
            assert!(count("activation_ns_max") <= 1.1e6, "{version} {place}");
            let is_malformed = (1..4).contains(&place);
            assert_eq!(count("malformed_count") > 0.0, is_malformed, "{version} {place}");
            assert_eq!(count("abuser_errors_count") > 0.0, is_malformed, "{version} {place}");
        }
    }
}
