//! Tests of RFC 2889 in virtual time, on serializing links: meshes, congestion, broadcast and
//! address tables with known values; also flows that share a target, and long runs.

use record::{Metric, Outcome, Record};
use runner::Destination;
use targets::name::TargetKind;

use super::{carry_out, measure, plan};
use crate::common::Folder;

const BRIDGE: [TargetKind; 1] = [TargetKind::Bridge];

/// A target with a service time of 20 us forwards this many frames per second in total.
const SLOW: &str = "sim_service_time_ns=20000";
const CAPACITY_PPS: f64 = 50_000.0;

/// Returns the record of a plan in which frames may be flooded, which is what it measures.
fn flooded(id: &str, set: &[&str]) -> Record {
    let folder = Folder::new();
    let plan = plan(&[id], &BRIDGE, set, 1);
    carry_out(&plan, Destination::New(folder.0.clone()), None).0.record
}

/// Short rings, which absorb few frames.
const RINGS: &str = "ring_frames=64";

fn outcomes<'a>(record: &'a Record, id: &'a str, metric: Metric) -> Vec<&'a Outcome> {
    let is_it = |it: &&Outcome| it.experiment == id && it.metric == metric;
    record.outcomes.iter().filter(is_it).collect()
}

fn cell(record: &Record, id: &str, target: &str, metric: Metric) -> f64 {
    record.cells_of(id, target, metric).next().map_or(f64::NAN, |cell| cell.value)
}

fn assert_near(have: f64, want: f64, ratio: f64, what: &str) {
    assert!((have - want).abs() <= want.abs() * ratio, "{what}: {have}, not {want}");
}

#[test]
fn a_mesh_of_ports_has_the_total_rate_of_the_target() {
    let set =
        [SLOW, RINGS, "capacity=100M", "frame=64", "seconds=0.05", "warmup=0.02", "repeats=1"];
    let kinds = [TargetKind::Bridge, TargetKind::Switch];
    let ids = ["rfc2889/full-mesh", "rfc2889/one-to-many"];
    let record = measure(&plan(&ids, &kinds, &set, 1));
    for (id, streams) in ids.into_iter().zip([12, 3]) {
        for kind in kinds {
            let rate = cell(&record, id, kind.name(), Metric::RatePpsForwarded);
            assert_near(rate, CAPACITY_PPS, 0.03, &format!("{id} on {}", kind.name()));
        }
        let trial = record.trials.iter().find(|trial| trial.experiment == id).unwrap();
        assert_eq!(trial.streams.len(), streams, "{id}");
    }
}

#[test]
fn many_ports_share_the_load_of_one() {
    let set = [RINGS, "capacity=10M", "frame=512", "seconds=0.5", "warmup=0.2", "repeats=1"];
    let record = measure(&plan(&["rfc2889/many-to-one"], &BRIDGE, &set, 1));
    let rate = cell(&record, "rfc2889/many-to-one", "bridge", Metric::RatePpsForwarded);
    assert_near(rate, 1e7 / (8.0 * 532.0), 0.03, "the capacity of a link");
    let ports: Vec<u32> = record.trials[0].streams.iter().map(|stream| stream.port_out).collect();
    assert_eq!(ports, [1, 2, 3]);
}

#[test]
fn a_mesh_can_have_more_than_four_ports() {
    let set = ["ports=6", RINGS, "capacity=10M", "frame=512", "seconds=0.05", "repeats=1"];
    let record = measure(&plan(&["rfc2889/full-mesh"], &BRIDGE, &set, 1));
    let trial = &record.trials[0];
    assert_eq!((trial.streams.len(), trial.ports.len()), (30, 6));
    // Every port is offered its capacity, and forwards it.
    assert!(trial.loss_ratio().unwrap() < 0.01, "{trial:?}");
}

#[test]
fn the_maximum_forwarding_rate_is_that_of_the_target() {
    let set =
        [SLOW, RINGS, "capacity=100M", "frame=64", "seconds=0.1", "repeats=1", "resolution=0.1"];
    let record = measure(&plan(&["rfc2889/max-rate"], &BRIDGE, &set, 1));
    let [most] = outcomes(&record, "rfc2889/max-rate", Metric::RatePpsMaximum)[..] else {
        panic!()
    };
    // Initially empty queues absorb a few frames.
    assert_near(most.value, CAPACITY_PPS, 0.15, "the maximum");
    assert_eq!(outcomes(&record, "rfc2889/max-rate", Metric::LoadPpsOfMaximum).len(), 1);
}

#[test]
fn a_congested_port_loses_a_third_and_other_ports_nothing() {
    let set = [RINGS, "capacity=10M", "frame=512", "seconds=1", "warmup=0.3", "repeats=1"];
    let record = measure(&plan(&["rfc2889/congestion"], &BRIDGE, &set, 1));
    let of = |metric| outcomes(&record, "rfc2889/congestion", metric)[0].value;
    assert_near(of(Metric::LossRatioCongested), 1.0 / 3.0, 0.03, "at the congested port");
    assert_eq!(of(Metric::LossRatioUncongested), 0.0);
}

#[test]
fn a_broadcast_frame_reaches_every_other_port() {
    let set = [RINGS, "capacity=10M", "frame=512", "seconds=0.1", "repeats=1", "load=90"];
    for kind in [TargetKind::Bridge, TargetKind::Switch] {
        let folder = Folder::new();
        let plan = plan(&["rfc2889/broadcast"], &[kind], &set, 1);
        let (finished, _) = carry_out(&plan, Destination::New(folder.0.clone()), None);
        let record = finished.record;
        let lost = cell(&record, "rfc2889/broadcast", kind.name(), Metric::LossRatioBroadcast);
        assert_eq!(lost, 0.0, "{}", kind.name());
        let trial = &record.trials[0];
        assert_eq!(trial.classes.flooded, trial.frames_offered, "{}", kind.name());
    }
}

#[test]
fn the_size_of_an_address_table_is_found_exactly() {
    let set = ["mac_table_size=300", "addresses=700", "repeats=1"];
    let record = flooded("rfc2889/caching", &set);
    let [found] = outcomes(&record, "rfc2889/caching", Metric::MacAddressesLearned)[..] else {
        panic!()
    };
    // The station at the test port is one more.
    assert_eq!((found.value, found.flags.len()), (299.0, 0));
    let set = ["mac_table_size=300", "addresses=200", "repeats=1"];
    let record = flooded("rfc2889/caching", &set);
    let found = outcomes(&record, "rfc2889/caching", Metric::MacAddressesLearned)[0];
    assert_eq!((found.value, found.flags.len()), (200.0, 1), "a bound, and marked as one");
}

#[test]
fn addresses_are_learned_at_the_rate_of_received_frames() {
    let set = [SLOW, RINGS, "capacity=100M", "addresses=4000", "repeats=1"];
    let record = flooded("rfc2889/learning", &set);
    let found = outcomes(&record, "rfc2889/learning", Metric::AddressesLearnedPerS)[0];
    // The resolution below, and the frames absorbed by queues above.
    let range = CAPACITY_PPS - 0.02 * 148_810.0..=CAPACITY_PPS * 1.15;
    assert!(range.contains(&found.value), "{} is not in {range:?}", found.value);
}

#[test]
fn any_number_of_flows_can_share_a_target() {
    let set = [SLOW, RINGS, "capacity=100M", "seconds=0.05", "warmup=0.02", "repeats=1"];
    let set = [&set[..], &["background_flow_loads=10,20", "load=20,90", "entries=300"]].concat();
    let record = measure(&plan(&["fairness"], &[TargetKind::Switch], &set, 1));
    for id in ["fairness/one-port", "fairness/two-ports"] {
        let trials: Vec<_> = record.trials.iter().filter(|it| it.experiment == id).collect();
        assert!(trials.iter().all(|trial| trial.streams.len() == 3), "{id}");
        let jain: Vec<f64> = record
            .cells_of(id, "switch", Metric::FairnessIndexJain)
            .map(|cell| cell.value)
            .collect();
        assert_eq!(jain.len(), 2, "{id}: {jain:?}");
        // Half of C in total is carried, in equal shares.
        assert!((jain[0] - 1.0).abs() < 1e-9, "{id}: {jain:?}");
    }
    // With a separate port, the last flow cannot crowd out the others.
    let lost = record.cells_of("fairness/two-ports", "switch", Metric::LossRatioF1);
    assert!(lost.map(|cell| cell.value).all(|lost| lost < 0.01));
}

#[test]
fn a_soak_test_is_a_series_with_a_reported_trend() {
    let set = [SLOW, RINGS, "capacity=100M", "soak_seconds=1.2", "seconds=0.02", "repeats=1"];
    let set = [&set[..], &["resolution=0.1"]].concat();
    let folder = Folder::new();
    let plan = plan(&["soak"], &[TargetKind::Bridge, TargetKind::Switch], &set, 1);
    let (finished, _) = carry_out(&plan, Destination::New(folder.0.clone()), None);
    let record = finished.record;
    for name in ["bridge", "switch"] {
        let rates: Vec<f64> = record
            .cells_of("soak", name, Metric::RatePpsForwarded)
            .map(|cell| cell.value)
            .collect();
        assert_eq!(rates.len(), 20, "{name}");
        let orders = record.trials.iter().filter(|it| it.target == name && it.orders.is_some());
        assert_eq!(orders.count() > 0, name == "switch", "flow-mods continue for OpenFlow targets");
    }
    let summary = std::fs::read_to_string(finished.folder.join("summary.md")).unwrap();
    assert!(
        summary.contains("### Drift (soak)") && summary.contains("rates and times are simulated"),
        "{summary}"
    );
}
