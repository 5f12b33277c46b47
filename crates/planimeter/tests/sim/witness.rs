//! Tests of an SNMP agent of a simulated switch in all experiments: it counts all sent frames, with
//! any credentials, and a silent agent ends no run.

use record::{ClockSource, Metric, Record};
use targets::name::TargetKind;
use workload::parameter::snmp;

use super::{measure, plan};

const SECRETS: &str = "user = \"watcher\"\nauth_password = \"correct horse\"\n\
                       privacy_password = \"battery staple\"\n";

/// Checks that every trial's agent counted what the tester's ports sent and received.
fn assert_counted(record: &Record) {
    for trial in &record.trials {
        let counts = trial.witness.as_ref().expect("each trial has agent counters");
        assert_eq!(counts.problems, Vec::<String>::new(), "{counts:?}");
        let (sent, received) = (counts.frames_sent, counts.frames_received);
        assert_eq!((counts.frames_in, counts.frames_out), (Some(sent), Some(received)));
        assert_eq!(counts.frames_missing(), Some(0));
        assert!(counts.interfaces.len() >= 2 && counts.interfaces[0].bits == 64, "{counts:?}");
        assert_eq!(counts.answer_ns, Some(200_000), "as long as the simulated agent thinks");
    }
}

#[test]
fn the_agent_of_a_trial_counts_all_sent_frames() {
    let set = [
        "snmp=lab",
        "sim_service_time_ns=2000",
        "load=10",
        "frame=64",
        "repeats=1",
        "snmp_oids=1.3.6.1.2.1.1.3.0",
    ];
    for kind in [TargetKind::Switch, TargetKind::Bridge] {
        let record = measure(&plan(&["forwarding-rate"], &[kind], &set, 3));
        assert_counted(&record);
        let counts = record.trials[0].witness.as_ref().unwrap();
        assert_eq!(counts.agent, "agent.1 (v2c)");
        assert!(counts.frames_sent > 100, "{counts:?}");
        let time = &counts.values[0];
        assert!(time.name == "1.3.6.1.2.1.1.3.0" && time.after >= time.before, "{time:?}");
    }
}

#[test]
fn the_agent_of_a_module_counts_its_frames() {
    let mut plan =
        plan(&["echo-delay"], &[TargetKind::Switch], &["snmp=lab", "repeats=1", "payload=64"], 3);
    plan.parameters.witness.credentials = snmp::credentials(SECRETS).unwrap();
    let record = measure(&plan);
    assert_counted(&record);
    for trial in &record.trials {
        let counts = trial.witness.as_ref().unwrap();
        assert_eq!(counts.agent, "agent.1 (v3 authPriv)");
        let module = trial.module.as_ref().unwrap();
        let named = |name: &str| {
            let is_it = |it: &&record::Measured| match it.metric {
                Metric::Named(known) => known.text() == name,
                _ => false,
            };
            module.measured.iter().find(is_it).map(|it| it.value)
        };
        assert_eq!(named("witness_in_frames"), Some(counts.frames_sent as f64));
        assert_eq!(named("witness_missing_frames"), Some(0.0));
        // Before it ends, and once a second during the trial.
        assert!(counts.loads >= 1 && counts.load_percent.is_some(), "{counts:?}");
        assert_eq!(named("witness_load_ratio"), counts.load_percent.map(|it| it / 100.0));
    }
    let text = format!("{record:?}");
    assert!(!text.contains("horse") && !text.contains("staple"));
}

#[test]
fn results_are_the_same_with_and_without_an_agent() {
    let outcomes = |set: &[&str]| {
        let set = [set, &["repeats=1", "payload=64"]].concat();
        let record = measure(&plan(&["echo-delay"], &[TargetKind::Switch], &set, 3));
        let own = |trial: &record::Trial| {
            let module = trial.module.clone().unwrap();
            let is_own = |name: &str| !name.starts_with("witness_");
            let all = module.measured.into_iter().filter(|it| is_own(it.metric.name()));
            all.map(|it| (it.metric.name().to_string(), it.value)).collect::<Vec<_>>()
        };
        record.trials.iter().map(own).collect::<Vec<_>>()
    };
    assert_eq!(outcomes(&["snmp=lab"]), outcomes(&[]));
}

#[test]
fn control_channels_have_simulated_timestamps_on_request() {
    let set = ["control_capture=timestamps", "repeats=1", "payload=64"];
    let record = measure(&plan(&["echo-delay"], &[TargetKind::Switch], &set, 3));
    for trial in &record.trials {
        let module = trial.module.as_ref().unwrap();
        let wire = module.wire.as_ref().expect("the capture was requested");
        assert_eq!(wire.stamps, Some(ClockSource::Virtual));
        let received = wire.received.as_ref().unwrap();
        assert_eq!((received.count, received.ns_max), (module.messages_received, 0));
        assert_eq!((wire.unknown, wire.gaps, &wire.why), (0, 0, &None));
    }
    let record =
        measure(&plan(&["echo-delay"], &[TargetKind::Switch], &["repeats=1", "payload=64"], 3));
    assert!(record.trials.iter().all(|trial| trial.module.as_ref().unwrap().wire.is_none()));
}
