//! Verdicts on gelberger2013, from handmade values.

use super::made::{Made, is_open};
use record::Verdict::{Contradicted, Holds};
use record::number::WORKLOAD;
use record::{Bound, BoundCause, BoundSide, Exclusion, Metric, Point, Technology};

const ELEMENT: &str = "progfe:a.fe.xml";

/// Returns a run of an element and a switch with these values at three sizes.
fn run(item: &str, metric: Metric, [element, switch]: [[f64; 3]; 2]) -> Made {
    let mut made = Made::of("gelberger2013", item);
    made.switch(ELEMENT, &[]);
    made.record.targets.last_mut().unwrap().technology = Technology::Bridging;
    for (target, values) in [(ELEMENT, element), ("switch", switch)] {
        for (bytes, value) in [64.0, 512.0, 1518.0].into_iter().zip(values) {
            made.add(target, metric, Point::new("frame_bytes", bytes).within(WORKLOAD, 2.0), value);
        }
    }
    made
}

#[test]
fn slightly_lower_is_a_band_with_two_limits() {
    let judged = |element: f64| {
        let made = run("fig5", Metric::LatencyNsP50, [[element; 3], [1e4; 3]]);
        made.verdict("slightly lower", &[ELEMENT, "switch"])
    };
    assert_eq!(judged(9e3), Holds);
    assert_eq!(judged(1e4), Contradicted, "a tie");
    assert_eq!(judged(1e3), Contradicted, "ten times lower is not slightly lower");
    let mut apart = run("fig5", Metric::LatencyNsP50, [[9e3; 3], [1e4; 3]]);
    apart.record.cells.retain(|cell| cell.target == "switch");
    assert!(is_open(&apart.verdict("slightly lower", &[]), "no target"));
}

#[test]
fn flexibility_has_no_cost_if_every_ratio_is_one() {
    let judged = |element: f64| {
        let mut made = run("discussion", Metric::RatePpsForwarded, [[element; 3], [1e6; 3]]);
        made.record.targets.iter_mut().find(|it| it.name == "switch").unwrap().technology =
            Technology::Bridging;
        made.verdict("flexibility", &[ELEMENT, "switch"])
    };
    assert_eq!(judged(5e5), Holds);
    assert_eq!(judged(1e6), Contradicted, "a tie is not a cost");
    let mut easy = run("discussion", Metric::RatePpsForwarded, [[1e6; 3], [1e6; 3]]);
    easy.record.targets.iter_mut().find(|it| it.name == "switch").unwrap().technology =
        Technology::Bridging;
    for bytes in [64.0, 512.0, 1518.0] {
        for target in [ELEMENT, "switch"] {
            let point = Point::new("frame_bytes", bytes).within(WORKLOAD, 2.0);
            easy.add(target, Metric::LossRatio, point, 0.0);
        }
    }
    let verdict = easy.verdict("flexibility", &[ELEMENT, "switch"]);
    assert!(is_open(&verdict, "both lost at most 1 %"), "{verdict:?}");
}

#[test]
fn worse_and_unusable_are_evaluated_separately() {
    let judged = |switch: [f64; 3]| {
        let metric = crate::analysis::gelberger2013::named("frames_per_s_lossfree");
        let made = run("offload", metric, [[1e6; 3], switch]);
        ["is worse", "unusable"].map(|text| made.verdict(text, &["switch", ELEMENT]))
    };
    assert_eq!(judged([5e5, 5e5, 5e3]), [Holds, Holds]);
    assert_eq!(judged([5e5, 5e5, 5e5]), [Holds, Contradicted]);
    assert_eq!(judged([1e6, 1e6, 1e6]), [Contradicted, Contradicted]);
}

#[test]
fn a_workload_must_cost_more_than_one_percent() {
    let judged = |routing: f64| {
        let mut made = Made::of("gelberger2013", "discussion");
        for (number, pps) in [(1.0, 1e6), (2.0, routing)] {
            for bytes in [64.0, 512.0] {
                let point = Point::new("frame_bytes", bytes).within(WORKLOAD, number);
                made.add("switch", Metric::RatePpsForwarded, point, pps);
            }
        }
        made.verdict("does impact performance", &["switch"])
    };
    assert_eq!(judged(7e5), Holds);
    assert_eq!(judged(1e6), Contradicted);
}

#[test]
fn a_missing_ratio_of_workloads_states_why() {
    let numbers = |is_disturbed: bool, value: f64| {
        let mut made = Made::of("gelberger2013", "discussion");
        for (number, pps) in [(1.0, 1e6), (2.0, value)] {
            let point = Point::new("frame_bytes", 64.0).within(WORKLOAD, number);
            made.add("switch", Metric::RatePpsForwarded, point, pps);
        }
        let cell = made.record.cells.last_mut().unwrap();
        if is_disturbed {
            let cause = record::DisturbanceCause::TesterLimited;
            let repeats = cell.repeats.clone();
            cell.disturbances.push(record::Disturbance { cause, repeats });
        }
        made.line("does impact performance", &["switch"]).numbers
    };
    assert!(numbers(true, 7e5).ends_with("no ratio, no repeat is undisturbed in both"));
    assert!(numbers(false, 0.0).ends_with("no ratio, a value is 0"));
}

#[test]
fn places_name_their_workload_where_there_are_several() {
    let mut made = run("fig5", Metric::LatencyNsP50, [[9e3; 3], [1e4; 3]]);
    let numbers = |made: &Made| made.line("slightly lower", &[ELEMENT, "switch"]).numbers;
    assert!(numbers(&made).contains("0.9 at 64, 0.9 at 512"), "{}", numbers(&made));
    for (target, value) in [(ELEMENT, 8.5e3), ("switch", 1e4)] {
        let point = Point::new("frame_bytes", 64.0).within(WORKLOAD, 3.0);
        made.add(target, Metric::LatencyNsP50, point, value);
    }
    let wanted = [
        "4 points: confirmed at 4, contradicted at 0, undecided at 0",
        "0.9 at 64 (routing)",
        "0.85 at 64 (VLAN tagging)",
    ];
    assert!(wanted.iter().all(|it| numbers(&made).contains(it)), "{}", numbers(&made));
}

#[test]
fn time_outs_that_rise_with_the_variation_show_no_cause() {
    let judged = |timeouts: fn(f64) -> f64| {
        let mut made = Made::of("gelberger2013", "fig6");
        for number in 0..6_u32 {
            let (name, level) = (format!("switch{number}"), f64::from(number));
            made.switch(&name, &[]);
            let values = [
                ("fig6", "pdv_ns_mean", level),
                ("fig6", "pdv_ns_p50", 1e4 * (1.0 + level)),
                ("fig7", "timeouts_count", timeouts(level)),
                ("fig7", crate::analysis::gelberger2013::TCP, 1e9 / (1.0 + level)),
            ];
            for (item, metric, value) in values {
                let point = Point::new("frame_bytes", 1518.0).within(WORKLOAD, 1.0);
                made.add(&name, crate::analysis::gelberger2013::named(metric), point, value);
                made.record.cells.last_mut().unwrap().experiment = format!("gelberger2013/{item}");
            }
        }
        made.verdict("time-outs", &[])
    };
    assert!(is_open(&judged(|level| 3.0 + level), "does not show the cause"));
    assert!(is_open(&judged(|_| 0.0), "no retransmission timer of TCP expired"));
    assert_eq!(judged(|level| 9.0 - level), Contradicted);
}

#[test]
fn two_bridges_at_the_capacity_of_the_link_are_not_affected() {
    let metric = crate::analysis::gelberger2013::named("bridge_rate_pps");
    let judged = |bridge: f64, is_full: bool| {
        let mut made = run("fig3", metric, [[1e6; 3], [bridge; 3]]);
        made.record.targets.iter_mut().find(|it| it.name == "switch").unwrap().technology =
            Technology::Bridging;
        let bound = Bound { side: BoundSide::Lower, cause: BoundCause::LinkLimit };
        made.record.cells.iter_mut().for_each(|cell| cell.bound = is_full.then_some(bound));
        made
    };
    let verdict = |made: &Made| made.verdict("not affected", &[ELEMENT, "switch"]);
    assert_eq!(verdict(&judged(1e6, true)), Holds);
    assert_eq!(verdict(&judged(1e6, false)), Holds);
    assert_eq!(verdict(&judged(2e6, false)), Contradicted);
    let mut simulated = judged(1e6, true);
    let cells = simulated.record.cells.iter_mut();
    cells.for_each(|cell| cell.exclusion = Some(Exclusion::Simulated));
    assert!(is_open(&verdict(&simulated), "rates and times are simulated"));
}

#[test]
fn a_claim_about_routing_and_tagging_does_not_compare_them_with_switching() {
    let mut made = Made::of("gelberger2013", "fig6");
    for (number, ns) in [(1.0, 1e3), (2.0, 1e4), (3.0, 1.2e4)] {
        let point = Point::new("frame_bytes", 64.0).within(WORKLOAD, number);
        made.add("switch", Metric::PdvNsP999, point, ns);
    }
    let line = made.line("does not affect it dramatically", &["switch"]);
    assert_eq!(
        (line.verdict, line.numbers.as_str()),
        (Holds, "VLAN tagging against routing: 1.2 times")
    );
}
