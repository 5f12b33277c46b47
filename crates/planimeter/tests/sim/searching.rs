//! Tests of the search events for watchers: each search's bracket closes around its result.
//!
//! A search is every method that approaches a value step by step, whether its steps are trials or
//! parts of one. Results come from the record and steps from the events, so that neither can be
//! adapted to the other.

use std::collections::BTreeMap;

use record::{Metric, Name, Record};
use runner::live::event::Event;
use runner::live::state::RunState;
use targets::name::TargetKind;
use tester::search::bracket::Bracket;

use super::{Destination, Folder, SLOW, carry_out, plan};

const OURS: [TargetKind; 1] = [TargetKind::Switch];

/// Returns the events of searches by goal, in order, and the record.
fn searched(
    experiment: &str,
    kinds: &[TargetKind],
    set: &[&str],
) -> (BTreeMap<String, Vec<Bracket>>, Record) {
    let folder = Folder::new();
    let set = [&["repeats=1"], set].concat();
    let plan = plan(&[experiment], kinds, &set, 1);
    let (finished, watcher) = carry_out(&plan, Destination::New(folder.0.clone()), None);
    let mut searches: BTreeMap<String, Vec<Bracket>> = BTreeMap::new();
    let mut add = |bracket: &Bracket| {
        searches.entry(bracket.sought.what.to_string()).or_default().push(bracket.clone());
    };
    let mut picture = RunState::default();
    for event in &watcher.told {
        match event {
            Event::Trial(trial) => trial.brackets.iter().for_each(&mut add),
            Event::Searching(bracket) => add(bracket),
            _ => {}
        }
        picture.tell(runner::live::event::LiveEvent { at_ms: 0, lost: 0, event: event.clone() });
    }
    // All events appear in the state.
    let drawn: Vec<&str> = picture.searches.iter().map(|it| it.sought.what.as_ref()).collect();
    assert!(searches.keys().all(|what| drawn.contains(&what.as_str())), "{drawn:?}");
    for (what, steps) in &searches {
        assert!(steps.len() > 1, "{experiment}: {what} has one step: {steps:?}");
        for step in steps {
            let known = [Some(step.tried), step.met, step.missed];
            let is_within = |it: f64| (0.0..=step.most * 1.0001).contains(&it);
            assert!(known.into_iter().flatten().all(is_within), "{experiment}: {step:?}");
            let is_open = step.met.zip(step.missed).is_none_or(|(met, missed)| met <= missed);
            assert!(is_open, "{experiment}: {step:?}");
            assert!(!step.sought.unit.is_empty() && !step.sought.goal.is_empty());
        }
    }
    (searches, finished.record)
}

fn found(record: &Record, metric: Metric) -> f64 {
    let of = record.outcomes.iter().find(|outcome| outcome.metric == metric);
    of.unwrap_or_else(|| panic!("no {metric:?} in {:?}", record.outcomes)).value
}

fn measured(record: &Record, name: &'static str) -> f64 {
    let metric = Metric::Named(Name::of(name));
    let mut all = record.trials.iter().flat_map(|trial| &trial.module).flat_map(|it| &it.measured);
    all.find(|found| found.metric == metric).unwrap_or_else(|| panic!("no {name}")).value
}

/// Checks that the last bracket is closed around the result, as far as required.
fn assert_closed(steps: &[Bracket], found: f64, slack: f64) {
    let last = steps.last().unwrap();
    let (low, high) = (last.met.unwrap_or(0.0), last.missed.unwrap_or(last.most));
    let within = (low * (1.0 - slack)).floor()..=high * (1.0 + slack);
    assert!(within.contains(&found), "{found} is not in {within:?}: {last:?}");
    let width = |it: &Bracket| it.missed.unwrap_or(it.most) - it.met.unwrap_or(0.0);
    // The last step halves the remaining range, or confirms.
    let wanted = last.width.map(|wanted| 2.0 * wanted + 1.0);
    assert!(wanted.is_none_or(|wanted| width(last) <= wanted), "{last:?}");
    assert!(width(last) < width(&steps[0]), "{:?} and then {last:?}", steps[0]);
}

#[test]
fn searches_for_loads_halve_their_bracket() {
    let (searches, record) = searched("throughput", &OURS, &["frame=64", SLOW]);
    let steps = &searches["throughput"];
    assert_eq!((&*steps[0].sought.unit, &*steps[0].sought.goal), ("frames/s", "nothing lost"));
    assert_closed(steps, found(&record, Metric::ThroughputPps), 0.0);
    let (searches, record) = searched("latency", &OURS, &["load=50", SLOW]);
    assert_eq!(&*searches["throughput"][0].sought.goal, "at most 0.5 % lost");
    assert_closed(&searches["throughput"], found(&record, Metric::ThroughputPpsLossTolerated), 0.0);
    let (searches, _) = searched("rfc2544/latency", &OURS, &["frame=64", SLOW]);
    assert!(searches.contains_key("throughput"));
}

#[test]
fn several_goals_are_searched_together() {
    let slow = ["sim_service_time_ns=20000", "capacity=100M", "warmup=0", "goals=ndr,pdr"];
    let short = [
        "goal_initial=0.1",
        "goal_final=0.5",
        "goal_duration_sum=1.5",
        "goal_width=0.02",
        "frame=64",
    ];
    let (searches, record) =
        searched("rfc9971", &OURS, &[&slow[..], &short, &["loss=0.05"]].concat());
    assert_eq!(searches.keys().collect::<Vec<_>>(), ["ndr", "pdr"]);
    assert_eq!(searches["ndr"].len(), searches["pdr"].len(), "each trial serves both");
    assert_eq!(&*searches["pdr"][0].sought.goal, "at most 5 % lost");
    for outcome in &record.outcomes {
        let goal = outcome.goal.as_ref().unwrap();
        let last = searches[&goal.goal].last().unwrap();
        let (met, missed) = (last.met.unwrap(), last.missed.unwrap());
        let (lower, upper) = (goal.rate_pps_lower.unwrap(), goal.rate_pps_upper.unwrap());
        assert!(met <= lower && missed >= upper, "{last:?} and then {goal:?}");
        assert!((missed - met) / missed < 0.05, "{last:?}");
    }
}

#[test]
fn bursts_loss_curves_and_rates_are_searched() {
    let ring = ["ring_frames=64", "frame=64", "warmup=0", "seconds=0.2", SLOW];
    let (searches, record) =
        searched("rfc9004", &OURS, &[&ring[..], &["burst_seconds=0.02"]].concat());
    assert_eq!(&*searches["longest burst"][0].sought.unit, "frames");
    assert_closed(&searches["longest burst"], found(&record, Metric::BurstFrames), 0.0);
    assert!(searches.contains_key("throughput"), "the load before it is searched as well");
    let (searches, record) = searched("rfc2544/loss", &OURS, &["frame=64", SLOW]);
    let last = searches["load without loss"].last().unwrap();
    let clean = |percent: f64| {
        let at = record.trials.iter().find(|trial| trial.point.value == percent).unwrap();
        at.frames_forwarded == at.frames_offered
    };
    assert!(clean(last.met.unwrap()) && !clean(last.missed.unwrap()), "{last:?}");
    let set =
        [SLOW, "ring_frames=64", "capacity=100M", "frame=64", "seconds=0.1", "resolution=0.1"];
    let (searches, record) = searched("rfc2889/max-rate", &[TargetKind::Bridge], &set);
    let steps = &searches["load per port with the highest forwarding rate"];
    let best = found(&record, Metric::LoadPpsOfMaximum);
    assert!(steps.iter().any(|step| step.tried == best), "{best} in {steps:?}");
}

#[test]
fn addresses_and_routes_are_searched() {
    let set = ["addresses=400", "mac_table_size=200", "seconds=0.05"];
    let (searches, record) = searched("rfc2889/caching", &[TargetKind::Bridge], &set);
    let steps = &searches["learned addresses"];
    assert_eq!((&*steps[0].sought.unit, steps[0].most), ("addresses", 400.0));
    assert_closed(steps, found(&record, Metric::MacAddressesLearned), 0.0);
    let set = ["sim_service_time_ns=20000", "ring_frames=64", "capacity=100M", "addresses=4000"];
    let (searches, record) = searched("rfc2889/learning", &[TargetKind::Bridge], &set);
    let steps = &searches["address learning rate"];
    assert_eq!(&*steps[0].sought.unit, "addresses/s");
    assert_closed(steps, found(&record, Metric::AddressesLearnedPerS), 0.0);
    let set = ["rules_bound=500", "routes_max=301"];
    let (searches, record) = searched("costa2017/table4", &[TargetKind::Router], &set);
    let routes = Metric::Named(Name::of("routes_count"));
    assert_closed(&searches["routes that fit"], found(&record, routes), 0.0);
}

#[test]
fn modules_search_within_a_trial() {
    let slow = "sim_service_time_ns=20000";
    let set = [slow, "version=1.3", "buffer=no_buffer", "frame=96", "samples=20"];
    let (searches, record) = searched("packet-in", &OURS, &set[..4]);
    let steps = &searches["packet-in rate"];
    // The achieved rate is below the requested one: a step of 30 ms may take 5 % and 2 ms longer.
    assert_closed(steps, measured(&record, "packet_ins_per_s_lossfree"), 0.15);
    for (experiment, what) in [
        ("packet-in-out", "rate of frames through the controller"),
        ("reactive-setup", "flow setup rate"),
        ("packet-out", "packet-out rate"),
    ] {
        let (searches, _) = searched(experiment, &OURS, &[slow, "version=1.3", "samples=20"]);
        let steps = &searches[what];
        assert!(steps.iter().any(|step| step.missed.is_some()), "{experiment}: {steps:?}");
        assert!(steps.iter().any(|step| step.met.is_some()), "{experiment}: {steps:?}");
    }
    let set = ["in_flight=0", "version=1.3"];
    let (searches, _) = searched("control-rate", &OURS, &set);
    assert!(searches["message rate"].len() > 1);
    let set = [
        "rules_bound=60",
        "batch=8",
        "probes_pps=5000",
        "timeout_s=0.5",
        "wildcard_entries_max=40",
    ];
    let (searches, record) = searched("table-capacity", &OURS, &set);
    let steps = &searches["table capacity"];
    let accepted = measured(&record, "accepted_rules");
    let last = steps.last().unwrap();
    assert!(last.met == Some(accepted) || last.met < Some(accepted), "{last:?}, {accepted}");
    assert_eq!(&*last.sought.unit, "rules");
}
