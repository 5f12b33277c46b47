//! Tests of the OFLOPS-SUME study on a switch that activates rules immediately: its statements
//! about hardware do not apply, and its statements about software can be judged.

use record::{Metric, Name, Record, Verdict};
use targets::name::TargetKind;

use super::{SLOW, measure, plan};

const OURS: [TargetKind; 1] = [TargetKind::Switch];

fn study(set: &[&str]) -> Record {
    let all = ["rules_count=20,40", "probes_pps=200000", "wildcard_entries_max=2000", SLOW];
    measure(&plan(&["oflops2018"], &OURS, &[&all, set].concat(), 1))
}

fn cells(record: &Record, item: &str, name: &'static str) -> usize {
    let listed = Metric::ALL.into_iter().find(|metric| metric.name() == name);
    let metric = listed.unwrap_or(Metric::Named(Name::of(name)));
    record.cells_of(item, "switch", metric).count()
}

#[test]
fn every_item_of_the_study_has_values_and_a_verdict_for_each_claim() {
    let record = study(&["frame=96,1472", "sizes=96,1472", "capacity=1G"]);
    // Two sizes at two rates each.
    assert_eq!(cells(&record, "oflops2018/fig6a", "latency_ns_p50"), 4);
    assert_eq!(cells(&record, "oflops2018/fig6b", "latency_ns_p50"), 4, "its trials are fig6a's");
    assert_eq!(cells(&record, "oflops2018/fig6c", "port_rewrite_extra_ns_p50"), 2);
    for item in ["fig7a", "fig7b", "fig7c", "fig8a", "fig8b"] {
        let id = format!("oflops2018/{item}");
        assert_eq!(cells(&record, &id, "data_plane_ns"), 2, "{item}");
        assert_eq!(cells(&record, &id, "control_plane_ns"), 2, "{item}");
        // Insertions are also measured with random priorities, and figure 8 has modifications too.
        let random = if item == "fig7a" { 0 } else { 2 };
        let modified = if item.starts_with("fig8") { 2 } else { 0 };
        assert_eq!(cells(&record, &id, "modified_random_data_plane_ns"), modified, "{item}");
        assert_eq!(cells(&record, &id, "random_data_plane_ns"), random, "{item}");
    }
    let items = record.experiments.iter().filter_map(|one| one.item.as_deref());
    for item in items {
        assert!(record.claims.iter().any(|line| line.claim.item == item), "{item} has no claim");
    }
    let claim_with =
        |text: &str| record.claims.iter().find(|line| line.claim.claim.contains(text)).unwrap();
    // There is no hardware, and the study's claims about hardware do not apply to software.
    for text in ["barrier reply arrives before", "faster by almost", "order that looks random"] {
        let line = claim_with(text);
        assert!(line.targets.is_empty(), "{text}: {:?}", line.targets);
        assert!(matches!(line.verdict, Verdict::Undecided(_)), "{text}");
    }
    assert_eq!(claim_with("latency linear").targets, ["switch"]);
}
