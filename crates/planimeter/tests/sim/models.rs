//! Tests of targets that emulate models in virtual time: measurements return the model's values.

use record::{Metric, Name};
use targets::name::TargetKind;

use super::common::Folder;
use super::{measure, plan};

/// Returns a target that emulates a model with these keys.
pub fn modelled(folder: &Folder, keys: &str) -> TargetKind {
    let path = folder.0.join("model.toml");
    std::fs::create_dir_all(&folder.0).unwrap();
    std::fs::write(&path, format!("name = \"test\"\nabout = \"test\"\n{keys}")).unwrap();
    format!("switch:model={}", path.display()).parse().unwrap()
}

#[test]
fn the_capacity_of_a_path_is_measured_and_its_losses_are_accounted_for() {
    let folder = Folder::new();
    let kind = modelled(
        &folder,
        "path_hardware.capacity_pps = { value = 200_000, source = \"assumed\" }\n\
         path_hardware.queue_frames = { value = 64, source = \"assumed\" }\n",
    );
    let set = ["load=10,60", "seconds=0.1", "repeats=1"];
    let record = measure(&plan(&["bianco2010/fig3"], &[kind], &set, 1));
    let rates: Vec<f64> = record
        .cells_of("bianco2010/fig3", kind.name(), Metric::RatePpsForwarded)
        .map(|cell| cell.value)
        .collect();
    let below = rates.iter().filter(|rate| **rate < 199_000.0).count();
    assert!(below < rates.len() && rates.iter().all(|rate| *rate < 202_000.0), "{rates:?}");
}

#[test]
fn flow_mod_rates_are_those_of_the_agent_for_any_number_in_flight() {
    let folder = Folder::new();
    // An agent that takes 100 us for a rule and for a barrier; existing rules make no difference to
    // it.
    let kind = modelled(
        &folder,
        "agent.flow_mod_ns = { value = 100_000, source = \"assumed\" }\n\
         agent.message_ns = { value = 100_000, source = \"assumed\" }\n\
         barrier.answers = { value = \"taken\", source = \"assumed\" }\n",
    );
    let set = ["commands=add,modify,delete", "rules_count=200", "in_flight=1,4", "repeats=1"];
    let set = [&set[..], &["occupancy=0,90", "table_rules=200"]].concat();
    let record = measure(&plan(&["update-rate"], &[kind], &set, 1));
    for operation in ["add", "modify", "delete"] {
        for batch in [1, 10, 100] {
            let name = format!("{operation}_{batch}_per_s");
            let metric = Metric::Named(Name::read(&name).unwrap());
            let rates: Vec<f64> = record
                .cells_of("update-rate", kind.name(), metric)
                .map(|cell| cell.value)
                .collect();
            let truth = 1e4 * f64::from(batch) / f64::from(batch + 1);
            assert_eq!(rates.len(), 4, "{name}");
            assert!(
                rates.iter().all(|rate| (rate / truth - 1.0).abs() < 1e-6),
                "{name}: {rates:?}"
            );
        }
    }
}

#[test]
fn insertions_of_the_edgecore_take_longer_than_modifications_in_any_order() {
    let kind: TargetKind = "switch:model=edgecore-as5812".parse().unwrap();
    let set = ["rules_count=300", "probes_pps=10000", "repeats=1"];
    let record = measure(&plan(&["oflops2018/fig7a", "oflops2018/fig7b"], &[kind], &set, 1));
    let value = |item: &str, name: &'static str| {
        let metric = Metric::Named(Name::of(name));
        record.cells_of(item, kind.name(), metric).next().unwrap().value
    };
    let [modified, inserted] = ["oflops2018/fig7a", "oflops2018/fig7b"];
    let [changed, added] = [modified, inserted].map(|item| value(item, "data_plane_ns"));
    assert!(added > 1.5 * changed, "{added} against {changed}");
    for item in [modified, inserted] {
        assert!(value(item, "rules_premature_ratio") > 0.5, "{item}");
    }
    // Two whole batches of the model's 200 rules do not fit; rules activated together have no
    // order.
    let tau = value(inserted, "order_tau_index");
    assert!(tau.abs() < 0.8, "{tau}");
}

#[test]
fn traffic_begins_when_all_entries_are_active_and_the_seed_determines_the_record() {
    let folder = Folder::new();
    let kind = modelled(
        &folder,
        "hardware.insert_ns = { value = 2_000_000, source = \"assumed\" }\n\
         hardware.activation_ns = { value = 4_000_000_000, source = \"assumed\" }\n\
         barrier.answers = { value = \"taken\", source = \"assumed\" }\n\
         path_hardware.jitter_ns = { value = 900, source = \"assumed\" }\n",
    );
    let set = ["table=exact", "entries=300", "traffic=random", "load=50", "repeats=1"];
    let run = || measure(&plan(&["forwarding-rate"], &[kind], &set, 1));
    let record = run();
    for trial in &record.trials {
        assert_eq!(trial.frames_forwarded, trial.frames_offered, "{trial:?}");
    }
    assert_eq!(record.trials, run().trials);
}
