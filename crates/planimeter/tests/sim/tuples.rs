//! Tests of match field combinations and table capacity, on a switch whose values are known.

use record::{Ended, Metric, Name, Record};
use targets::name::TargetKind;

use super::{measure, plan};

fn value(record: &Record, name: &'static str) -> f64 {
    let run = record.trials[0].module.as_ref().unwrap();
    assert_eq!(run.ended, Ended::Completed);
    let metric = Metric::Named(Name::of(name));
    let found = run.measured.iter().find(|found| found.metric == metric);
    found.unwrap_or_else(|| panic!("{name} is missing")).value
}

#[test]
fn every_combination_of_a_version_matches_exactly_its_frames() {
    for (version, has_ecn) in [("version=1.0", false), ("version=1.3", true), ("version=1.5", true)]
    {
        let set = [version, "repeats=1", "frames_count=3"];
        let record = measure(&plan(&["match-tuples"], &[TargetKind::Switch], &set, 1));
        for none in ["too_wide_count", "too_narrow_count", "unseen_count", "left_out_count"] {
            let notes = &record.trials[0].module.as_ref().unwrap().notes;
            assert_eq!(value(&record, none), 0.0, "{none} {version}: {notes:?}");
        }
        assert_eq!(value(&record, "late_count"), 0.0);
        assert_eq!(value(&record, "inexpressible_count") > 0.0, !has_ecn, "{version}");
        assert!(value(&record, "right_count") > 50.0, "{version}");
        assert!(value(&record, "mac_ns_p50") > 0.0);
    }
}

#[test]
fn a_table_is_filled_to_its_capacity() {
    for version in ["version=1.0", "version=1.3", "version=1.5"] {
        let set = [version, "repeats=1", "wildcard_entries_max=101", "rules_bound=500"];
        let record = measure(&plan(&["table-capacity"], &[TargetKind::Switch], &set, 1));
        // One entry sends frames without a match to the controller.
        assert_eq!(value(&record, "accepted_rules"), 100.0, "{version}");
        assert_eq!(value(&record, "acting_rules"), 100.0, "{version}");
        assert_eq!((value(&record, "missing_rules"), value(&record, "unseen_rules")), (0.0, 0.0));
        assert_eq!((value(&record, "is_full_count"), value(&record, "reused_ratio")), (1.0, 1.0));
        assert_eq!(value(&record, "forwarding_tiers_count"), 1.0);
    }
}

#[test]
fn a_large_table_is_filled_to_the_limit_and_sampled() {
    let set = ["repeats=1", "wildcard_entries_max=1000", "rules_bound=500", "sample=50"];
    let record = measure(&plan(&["table-capacity"], &[TargetKind::Switch], &set, 1));
    assert_eq!((value(&record, "accepted_rules"), value(&record, "is_full_count")), (500.0, 0.0));
    assert_eq!(value(&record, "acting_rules"), 50.0);
}
