//! Tests that estimates differ from virtual time by at most 30 %.
//!
//! They cover every experiment of trials at quick effort, modules with measured cost, and rule
//! activation on a slow switch that acknowledges early. With
//! ESTIMATES=all they cover every effort and every module, which takes hours. ESTIMATE_ONLY names
//! one experiment.

use record::Record;
use runner::{Destination, Plan, estimate};
use studies::{CatalogEntry, taking};
use targets::links::Links;
use targets::model::ModelTarget;
use targets::name::{Link, TargetKind};
use workload::parameter::{Effort, Parameters};

use super::{Folder, carry_out, plan, program};

/// Tolerance of an estimate, as a share.
const OFF_MAX: f64 = 0.3;

/// Keeps trials small without a change to their number and length; the largest frame crosses both
/// links within a drain.
const SLOW_LINK: [&str; 2] = ["simulate=true", "capacity=1M"];

/// Settings that avoid large tables and many flows; none changes the length of a trial.
const SMALL: [&str; 5] =
    ["flows=1000", "addresses=64", "rules_bound=200", "entries=64", "flow_mods_per_s=10"];

/// Experiments whose trials depend on the speed of the target's agent, which is zero time in
/// virtual time.
const BY_AGENT: [&str; 2] = ["flow-mod-rate", "flow-stats-dump"];

/// Experiments whose search ends at the target's table size, which an estimate does not know.
const BY_TABLE: [&str; 2] = ["rfc2889/caching", "rfc2889/learning"];

/// Returns a target for an experiment, in virtual time; `None` if the experiment needs hosts.
fn kind_for(entry: &CatalogEntry) -> Option<TargetKind> {
    let kinds = [TargetKind::Switch, TargetKind::Bridge, program("bridge.fe.xml")];
    kinds.into_iter().find(|kind| entry.can_measure(*kind, Link::Memory))
}

/// Returns a plan of one experiment with its own effort.
fn plan_at(effort: Effort, entry: &'static CatalogEntry, kind: TargetKind, set: &[&str]) -> Plan {
    let mut parameters = Parameters::at(effort);
    for assignment in set {
        // A parameter that it does not accept is not needed.
        let _ = taking::assign(&mut parameters, &[entry], assignment);
    }
    let whole = plan(&[], &[kind], &[], 1);
    Plan { entries: vec![entry], effort, parameters, links: Links::all_by(Link::Memory), ..whole }
}

/// Returns the seconds from the first frame of each trial to the end of its drain, and those of
/// modules, without repeats by the tester.
fn virtual_seconds(record: &Record) -> f64 {
    let of = |trial: &record::Trial| match (&trial.module, &trial.orders) {
        (Some(module), _) => module.duration_ns,
        (None, Some(orders)) if trial.frames_intended == 0 => orders.duration_ns,
        _ => trial.duration_ns_warmup + trial.duration_ns_intended + trial.duration_ns_drain,
    };
    record.trials.iter().map(of).sum::<u64>() as f64 / 1e9
}

/// Returns the estimate and the virtual time of an experiment.
fn both(plan: &Plan) -> (f64, f64) {
    let estimate: f64 = plan.estimates().iter().map(|it| it.whole().seconds).sum();
    let folder = Folder::new();
    let (finished, _) = carry_out(plan, Destination::New(folder.0.clone()), None);
    (estimate, virtual_seconds(&finished.record))
}

/// Checks all of them against the limit, and names those beyond it.
fn hold(cases: impl Iterator<Item = (String, Plan)>) {
    let mut off = Vec::new();
    for (name, plan) in cases {
        let (estimate, took) = both(&plan);
        // An experiment without virtual time has an estimate of zero.
        let ratio = if estimate == 0.0 && took < 0.01 { 1.0 } else { estimate / took };
        eprintln!("{name}: estimate {estimate:.3} s, virtual time {took:.3} s, {ratio:.3}");
        if !(1.0 - OFF_MAX..=1.0 + OFF_MAX).contains(&ratio) {
            off.push(format!("{name}: estimate {estimate:.3} s, virtual time {took:.3} s"));
        }
    }
    assert!(off.is_empty(), "{} off:\n{}", off.len(), off.join("\n"));
}

/// Returns the experiments of trials, or of modules, that run their own trials.
fn entries(are_modules: bool) -> impl Iterator<Item = &'static CatalogEntry> {
    let is_own = |entry: &&CatalogEntry| entry.shares_trials_of.is_none();
    let only = std::env::var("ESTIMATE_ONLY").unwrap_or_default();
    let wanted = move |entry: &&CatalogEntry| only.is_empty() || entry.id == only;
    let is_of = move |entry: &&'static CatalogEntry| {
        let is_costed = is_all() || estimate::cost_virtual(entry).is_some();
        let is_unknown = BY_AGENT.contains(&entry.id) || BY_TABLE.contains(&entry.id);
        let is_fit = if are_modules { is_costed } else { !is_unknown };
        is_fit && is_staged(entry) == are_modules
    };
    studies::entries().filter(is_own).filter(wanted).filter(is_of)
}

/// Returns whether every effort and every module is requested.
fn is_all() -> bool {
    std::env::var("ESTIMATES").is_ok_and(|value| value == "all")
}

/// Returns whether modules run it.
fn is_staged(entry: &'static CatalogEntry) -> bool {
    let Some(kind) = kind_for(entry) else { return false };
    let plan = plan_at(Effort::Quick, entry, kind, &SLOW_LINK);
    plan.estimates()[0].is_staged
}

fn cases(are_modules: bool, set: &'static [&'static str]) -> impl Iterator<Item = (String, Plan)> {
    entries(are_modules).flat_map(move |entry| {
        let kind = kind_for(entry).into_iter();
        kind.flat_map(move |kind| {
            let efforts = if is_all() { &Effort::ALL[..] } else { &Effort::ALL[..1] };
            efforts.iter().map(move |&effort| {
                let set = [set, &SMALL].concat();
                (format!("{} {}", entry.id, effort.name()), plan_at(effort, entry, kind, &set))
            })
        })
    })
}

/// U18.
#[test]
fn estimates_of_trials_are_within_30_percent_of_virtual_time() {
    hold(cases(false, &SLOW_LINK));
}

/// U18: once is enough, since the number of repeats is exact.
#[test]
fn estimates_of_modules_are_within_30_percent_of_virtual_time() {
    hold(cases(true, &["simulate=true", "repeats=1", "seconds=0.1"]));
}

/// Each trial of a switch with slow hardware takes several updates of seconds each.
#[test]
fn estimates_of_rule_activation_are_within_30_percent_of_virtual_time() {
    let slow = TargetKind::Model(ModelTarget::parse("edgecore-as5812").unwrap());
    let of = |id: &str, kind: TargetKind| {
        let set = [
            "rig=sim",
            "repeats=1",
            "wildcard_entries_max=4000",
            "rules_count=100,400",
            "probes_pps=2000",
        ];
        let entry = studies::entries().find(|it| it.id == id).unwrap();
        (format!("{id} on {}", kind.name()), plan_at(Effort::Quick, entry, kind, &set))
    };
    let ids = ["oflops2018/fig7a", "oflops2018/fig7b", "oflops2018/fig8a", "rule-activation"];
    hold(ids.iter().flat_map(|id| [TargetKind::Switch, slow].map(|kind| of(id, kind))));
}
