//! Combinations of match fields, on a switch that takes and matches all of them.

use planimeter::target::name::TargetKind;
use results::record::{Ended, Metric, Name, Record};

use super::{measure, plan};

fn value(record: &Record, name: &'static str) -> f64 {
    let run = record.trials[0].module.as_ref().unwrap();
    assert_eq!(run.ended, Ended::Said);
    let metric = Metric::Named(Name::of(name));
    let found = run.measured.iter().find(|found| found.metric == metric);
    found.unwrap_or_else(|| panic!("{name} was not told")).value
}

#[test]
fn every_combination_that_a_version_can_say_matches_just_what_it_should() {
    for (version, has_ecn) in [("version=1.0", false), ("version=1.3", true), ("version=1.5", true)]
    {
        let set = [version, "repeats=1", "frames_count=3"];
        let record = measure(&plan(&["match-tuples"], &[TargetKind::Ours], &set, 1));
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
