//! Limits of virtual time: every module ends on a switch that holds one entry or has no limit, and
//! a run ends as soon as the user requests that.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use elements::hardware_model::model::Model;
use record::Metric;
use runner::{Destination, ProgressListener};
use targets::name::TargetKind;
use targets::{Benches, HostPaths};
use tester::module::Ended;

use super::common::Folder;
use super::models::modelled;
use super::one_switch::OneSwitch;
use super::partial::MODULES;
use super::{measure, plan};

#[test]
fn every_module_ends_with_one_entry_and_without_a_limit() {
    for rules in [0, 1] {
        let mut model = Model::default();
        model.capacity.rules = rules;
        for (id, set) in MODULES {
            let set: Vec<String> = set.iter().map(|it| it.to_string()).collect();
            let found = OneSwitch::like(&model, 7).run_first(id, &set, 7);
            let (report, limit) = found.unwrap();
            let took = report.ended_at.since(report.started_at);
            assert!(took <= limit, "{id} with {rules}: {took}");
            let is_endless = matches!(report.ended, Ended::Restless(_) | Ended::Interrupted);
            assert!(!is_endless, "{id} with {rules}: {}", report.ended);
        }
    }
}

#[test]
fn rejected_rules_are_not_awaited() {
    let folder = Folder::new();
    let keys = "capacity.rules = { value = 1, source = \"assumed\" }\n";
    let kind = modelled(&folder, keys);
    for deed in ["command=add", "command=modify", "command=delete"] {
        let set = [deed, "rules_count=20", "probes=before", "probes_pps=10000", "repeats=1"];
        let record = measure(&plan(&["rule-activation"], &[kind], &set, 1));
        let trial = &record.trials[0];
        // The time limit of 10 s is never reached.
        assert!(trial.duration_ns_effective < 1_000_000_000, "{}", trial.duration_ns_effective);
        let module = trial.module.as_ref().unwrap();
        let ratio = experiments::show::metric("rules_active_ratio");
        let active = |metric: Metric| module.measured.iter().find(|it| it.metric == metric);
        if deed == "command=add" {
            assert_eq!(active(ratio).map(|it| it.value), Some(0.0));
        }
    }
}

/// Sets the flag when the first trial begins.
struct StopsInTrial(Arc<AtomicBool>);

impl ProgressListener for StopsInTrial {
    fn say(&mut self, _: &str) {}

    fn expect(&mut self, _: u64) {}

    fn step(&mut self, _: &str) {}

    fn tell(&mut self, event: &runner::live::event::Event) {
        if matches!(event, runner::live::event::Event::Trial(_)) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

#[test]
fn a_run_stops_within_a_trial_in_virtual_time() {
    let days = ["seconds=3600", "repeats=1"];
    for (experiment, set) in [
        ("rule-activation", &["timeout_s=600", "repeats=1"][..]),
        ("bianco2010/fig3", &days[..]),
        ("flow-mod-impact", &days[..]),
    ] {
        let (folder, stop) = (Folder::new(), Arc::new(AtomicBool::new(false)));
        let plan = plan(&[experiment], &[TargetKind::Switch], set, 1);
        let surroundings = HostPaths { program: PathBuf::new(), root: PathBuf::new() };
        let mut benches =
            Benches::open(&plan.links_used(), &surroundings, &plan.parameters, &stop).unwrap();
        let mut watcher = StopsInTrial(Arc::clone(&stop));
        let at = Destination::New(folder.0.clone());
        let finished = runner::run(&plan, at, &mut benches, &stop, &mut watcher).unwrap();
        assert!(finished.record.partial && finished.record.trials.is_empty(), "{experiment}");
    }
}
