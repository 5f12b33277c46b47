//! Tests of comparisons with given cells.

use super::truth::{cell, empty, sides};
use super::*;
use record::{Metric, Record, Warning};

/// A run of two targets with a forwarding rate at each point.
fn run(points: &[(Vec<f64>, Vec<f64>)]) -> Record {
    let mut record = empty();
    for (at, (base, new)) in points.iter().enumerate() {
        record.cells.push(cell("base", at as f64, base.clone()));
        record.cells.push(cell("new", at as f64, new.clone()));
    }
    record
}

/// Five values around `value`.
fn around(value: f64) -> Vec<f64> {
    [0.999, 1.001, 1.0, 1.0005, 0.9995].iter().map(|factor| value * factor).collect()
}

fn gates(text: &[&str]) -> Vec<Gate> {
    text.iter().map(|text| text.parse().unwrap()).collect()
}

/// Compares the two targets of a run.
fn check(record: &Record, wanted: &[&str]) -> Result<Comparison, ContrastError> {
    let [base, new] = sides(record);
    contrast(&base, &new, &gates(wanted), true)
}

#[test]
fn a_clear_loss_fails_its_gate_and_a_clear_gain_passes() {
    let record = run(&[(around(100.0), around(95.0)), (around(100.0), around(110.0))]);
    let found = check(&record, &["rate_pps_forwarded>=0.97"]).unwrap();
    let verdicts: Vec<_> = found.cells.iter().map(|it| (it.verdict, it.gates[0].outcome)).collect();
    assert_eq!(verdicts, [(Verdict::Worse, Outcome::Failed), (Verdict::Better, Outcome::Passed)]);
    assert_eq!((found.verdict, found.outcome()), (Verdict::Worse, Some(Outcome::Failed)));
    let same = run(&[(around(100.0), around(100.1))]);
    assert_eq!(check(&same, &["rate_pps_forwarded>=0.97"]).unwrap().verdict, Verdict::Same);
}

#[test]
fn a_switch_that_forwards_nothing_fails() {
    let found =
        check(&run(&[(around(100.0), vec![0.0; 5])]), &["rate_pps_forwarded>=0.97"]).unwrap();
    assert_eq!((found.verdict, found.outcome()), (Verdict::Worse, Some(Outcome::Failed)));
}

#[test]
fn an_unclear_difference_fails_no_gate_and_is_reported() {
    let wild = vec![100.0, 60.0, 130.0, 90.0, 105.0];
    let record = run(&[(around(100.0), wild)]);
    let found = check(&record, &["rate_pps_forwarded>=0.97"]).unwrap();
    assert_eq!(
        (found.verdict, found.outcome()),
        (Verdict::Inconclusive, Some(Outcome::Inconclusive))
    );
    assert_eq!(found.undecided(), ["forwarding-rate"]);
    assert!(text(&found).contains("INCONCLUSIVE rate_pps_forwarded>=0.97"), "{}", text(&found));
}

#[test]
fn a_failure_is_final_only_if_measured_again() {
    let first = run(&[(around(100.0), around(90.0))]);
    for (again, wanted) in [(100.0, Outcome::Passed), (90.0, Outcome::Failed)] {
        let mut found = check(&first, &["rate_pps_forwarded>=0.97"]).unwrap();
        assert_eq!(found.undecided().len(), 1);
        let second = run(&[(around(100.0), around(again))]);
        let [base, new] = sides(&second);
        found.confirm(&base, &new).unwrap();
        assert_eq!(found.outcome(), Some(wanted));
        assert!(found.undecided().is_empty(), "a second measurement decides");
        assert!(found.cells[0].gates[0].ratio_first.is_some_and(|ratio| ratio < 0.91));
    }
}

#[test]
fn a_tester_limit_passes_and_fails_nothing() {
    let mut record = run(&[(around(100.0), around(50.0))]);
    record.cells[1].warnings.push(Warning::Irregular { trials: 1, searches: 0 });
    let found = check(&record, &["rate_pps_forwarded>=0.97"]).unwrap();
    assert_eq!(found.outcome(), Some(Outcome::Doubtful));
    assert_eq!(found.verdict, Verdict::Inconclusive, "no reliable value is left");
    assert!(found.undecided().is_empty());
    assert!(found.cells[0].doubts[0].contains("new: "), "{:?}", found.cells[0].doubts);
}

#[test]
fn missing_values_are_named_and_pass_no_gate() {
    let mut record = run(&[(around(100.0), around(100.0)), (around(100.0), around(100.0))]);
    let lost = record.cells.pop().unwrap();
    let found = check(&record, &["rate_pps_forwarded>=0.97"]).unwrap();
    assert_eq!(found.only_base, ["forwarding-rate on base: rate_pps_forwarded at table entries 1"]);
    assert_eq!(found.outcome(), Some(Outcome::Doubtful));
    record.cells.retain(|cell| cell.target == "base");
    let wanted = check(&record, &[]).unwrap_err();
    assert!(matches!(&wanted, ContrastError::NothingInCommon(base, _) if base.len() == 1));
    record.cells = vec![lost];
    assert!(check(&record, &[]).unwrap_err().to_string().contains("no result in common"));
}

#[test]
fn a_gate_without_values_is_rejected() {
    let record = run(&[(around(100.0), around(100.0))]);
    let message = check(&record, &["throughput_pps>=0.97"]).unwrap_err().to_string();
    assert!(message.contains("both sides have only rate_pps_forwarded"), "{message}");
    let [base, new] = sides(&record);
    let by_default = contrast(&base, &new, &Gate::by_default(), false).unwrap();
    assert_eq!(by_default.cells[0].gates.len(), 1);
}

#[test]
fn losses_are_compared_by_received_frames() {
    let mut record = run(&[(vec![0.0; 5], vec![0.0; 5]), (vec![0.0; 5], vec![0.2; 5])]);
    for cell in &mut record.cells {
        cell.metric = Metric::LossRatio;
    }
    let found = check(&record, &[]).unwrap();
    let verdicts: Vec<_> = found.cells.iter().map(|it| (it.verdict, it.ratio.unwrap())).collect();
    assert_eq!(verdicts, [(Verdict::Same, 1.0), (Verdict::Worse, 0.8)]);
}

#[test]
fn runs_with_different_parameters_are_not_compared() {
    let base = run(&[(around(100.0), around(100.0))]);
    let mut new = base.clone();
    new.parameters.insert("set".into(), serde_json::json!(["frame=1518", "repeats=9"]));
    new.environment.kernel = Some("another".into());
    let found = Differences::between(&base, &new);
    assert_eq!(found.fatal, ["frame its default against 1518"]);
    assert!(found.mild.iter().any(|line| line.starts_with("repeats its default against 9")));
    assert!(found.mild.iter().any(|line| line.contains("different machines: kernel")));
    let side = |record| ComparedRun { name: "run", record, target: None };
    let message = contrast(&side(&base), &side(&new), &[], true).unwrap_err().to_string();
    assert!(message.contains("frame its default against 1518"), "{message}");
}

#[test]
fn more_values_require_more_evidence_of_each() {
    let other: Vec<f64> = around(98.5).into_iter().rev().collect();
    let narrow = (around(100.0), other);
    let one = check(&run(std::slice::from_ref(&narrow)), &[]).unwrap();
    let many = check(&run(&vec![narrow; 2000]), &[]).unwrap();
    let width = |found: &Comparison| {
        let interval = found.cells[0].interval_family.unwrap();
        interval.high - interval.low
    };
    assert!(width(&many) > 4.0 * width(&one), "{} {}", width(&one), width(&many));
    assert_eq!((one.verdict, many.verdict), (Verdict::Worse, Verdict::Inconclusive));
}

#[test]
fn all_formats_agree_and_escape_their_text() {
    let mut record = run(&[
        (around(100.0), around(95.0)),
        (around(100.0), vec![100.0, 60.0, 130.0, 90.0, 105.0]),
        (around(100.0), around(100.0)),
    ]);
    let odd = "a|b <x> @all `c` ]]> & \u{1b}[31m";
    record.experiments[0].id = odd.into();
    record.cells.iter_mut().for_each(|cell| cell.experiment = odd.into());
    let found = check(&record, &["rate_pps_forwarded>=0.97"]).unwrap();
    let (xml, comment, lines) = (junit(&found), markdown(&found), text(&found));
    assert!(xml.contains("tests=\"3\" failures=\"1\" errors=\"0\""), "{xml}");
    assert_eq!(xml.matches("<testcase").count(), 3);
    assert_eq!(xml.matches("<skipped").count(), 1);
    assert!(!xml.contains('\u{1b}') && !xml.contains("<x>") && xml.contains("&amp;"));
    assert!(roxmltree::Document::parse(&xml).is_ok(), "{xml}");
    assert!(comment.starts_with("### ❌ planimeter: worse (1 worse, "), "{comment}");
    assert!(!comment.contains("<x>") && !comment.contains("@all") && !comment.contains('\u{1b}'));
    assert!(lines.contains("FAILED rate_pps_forwarded>=0.97") && !lines.contains('\u{1b}'));
    let json = serde_json::to_value(&found).unwrap();
    assert_eq!(json["cells"][0]["gates"][0]["outcome"], "failed");
    assert_eq!(json["cells"][2]["verdict"], "same");
}

#[test]
fn a_comment_is_never_longer_than_the_limit() {
    let cells = vec![(around(100.0), around(95.0)); 500];
    let found = check(&run(&cells), &["rate_pps_forwarded>=0.97"]).unwrap();
    let comment = markdown(&found);
    assert!(comment.chars().count() < 65_536, "{}", comment.chars().count());
    assert!(comment.contains("and 440 more"));
}

#[test]
fn a_regression_is_named_in_every_format() {
    let mut record = run(&[(around(100.0), around(90.0)), (around(100.0), around(100.0))]);
    record.cells.iter_mut().for_each(|cell| cell.point.value += 32_768.0);
    let found = check(&record, &["rate_pps_forwarded>=0.97"]).unwrap();
    let name = "forwarding-rate, table entries 32\u{202f}768, new against base: forwarding rate \u{2212}10.0 %";
    assert_eq!(found.worse, [name]);
    assert!(text(&found).lines().last().unwrap().contains(name), "{}", text(&found));
    assert!(markdown(&found).contains("**worse**: forwarding-rate"), "{}", markdown(&found));
    assert_eq!(serde_json::to_value(&found).unwrap()["worse"][0], name);
    let xml = junit(&found);
    let document = roxmltree::Document::parse(&xml).unwrap();
    for node in document.descendants().filter(roxmltree::Node::is_element) {
        let names = ["name", "classname"].iter().filter_map(|key| node.attribute(*key));
        names.for_each(|name| assert!(name.is_ascii(), "{name}"));
    }
    assert!(xml.contains("table entries 32768, new against base"), "{xml}");
}

#[test]
fn an_inconclusive_gate_has_its_own_state_in_every_format() {
    let wild = vec![100.0, 60.0, 130.0, 90.0, 105.0];
    let found = check(&run(&[(around(100.0), wild)]), &["rate_pps_forwarded>=0.97"]).unwrap();
    assert_eq!(found.outcome(), Some(Outcome::Inconclusive));
    let json = serde_json::to_value(&found).unwrap();
    assert_eq!(json["verdict"], "inconclusive");
    assert_eq!(json["cells"][0]["gates"][0]["outcome"], "inconclusive");
    let xml = junit(&found);
    assert!(xml.contains("failures=\"0\" errors=\"0\" skipped=\"1\""), "{xml}");
    assert!(xml.contains("<skipped message=\"inconclusive: "), "{xml}");
    assert!(
        markdown(&found).starts_with("### ⚠️ planimeter: inconclusive "),
        "{}",
        markdown(&found)
    );
}

#[test]
fn latencies_at_different_offered_loads_are_not_compared() {
    let mut record = run(&[(around(1000.0), around(1077.0))]);
    record.cells.iter_mut().for_each(|cell| cell.metric = Metric::LatencyNsP50);
    let loads = |base, new| {
        let mut record = record.clone();
        for (target, pps) in [("base", base), ("new", new)] {
            let offered = cell(target, 0.0, around(pps));
            record.cells.push(Cell { metric: Metric::RatePpsOffered, ..offered });
        }
        check(&record, &["latency_ns_p50<=1.03"]).unwrap()
    };
    let apart = loads(43_120.0, 48_350.0);
    assert_eq!((apart.verdict, apart.outcome()), (Verdict::Inconclusive, Some(Outcome::Doubtful)));
    let doubt = &apart.cells[0].doubts[0];
    assert!(
        doubt.starts_with("the offered loads differ: 43\u{202f}120 frames/s and 48\u{202f}350"),
        "{doubt}"
    );
    assert_eq!(loads(43_120.0, 43_130.0).verdict, Verdict::Worse);
}

#[test]
fn a_bound_passes_and_fails_only_on_its_closed_side() {
    let mut record = run(&[(around(100.0), around(110.0))]);
    let of = |side| Some(Bound { side, cause: record::BoundCause::SearchLimit });
    record.cells[1].bound = of(BoundSide::Lower);
    assert_eq!(check(&record, &[]).unwrap().verdict, Verdict::Better, "at least as much higher");
    record.cells[0].bound = of(BoundSide::Lower);
    assert_eq!(check(&record, &[]).unwrap().verdict, Verdict::Inconclusive, "both are open above");
}
