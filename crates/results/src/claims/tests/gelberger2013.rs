//! Verdicts on gelberger2013, from handmade values.

use super::made::{Made, is_open};
use crate::number::WORKLOAD;
use crate::record::Verdict::{DoesNot, Holds};
use crate::record::{Metric, Point, Technology};

const ELEMENT: &str = "progfe:a.fe.xml";

/// Returns a run of an element and a switch with these values at three sizes.
fn run(item: &str, metric: Metric, [element, switch]: [[f64; 3]; 2]) -> Made {
    let mut made = Made::of("gelberger2013", item);
    made.switch(ELEMENT, &[]);
    made.record.targets.last_mut().unwrap().technology = Technology::Bridging;
    for (target, values) in [(ELEMENT, element), ("ours", switch)] {
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
        made.verdict("slightly lower", &[ELEMENT, "ours"])
    };
    assert_eq!(judged(9e3), Holds);
    assert_eq!(judged(1e4), DoesNot, "a tie");
    assert_eq!(judged(1e3), DoesNot, "ten times lower is not slightly lower");
    let mut apart = run("fig5", Metric::LatencyNsP50, [[9e3; 3], [1e4; 3]]);
    apart.record.cells.retain(|cell| cell.target == "ours");
    assert!(is_open(&apart.verdict("slightly lower", &[]), "no target"));
}

#[test]
fn flexibility_has_no_cost_if_every_ratio_is_one() {
    let judged = |element: f64| {
        let mut made = run("discussion", Metric::RatePpsForwarded, [[element; 3], [1e6; 3]]);
        made.record.targets.iter_mut().find(|it| it.name == "ours").unwrap().technology =
            Technology::Bridging;
        made.verdict("flexibility", &[ELEMENT, "ours"])
    };
    assert_eq!(judged(5e5), Holds);
    assert_eq!(judged(1e6), DoesNot, "a tie is not a cost");
    let mut easy = run("discussion", Metric::RatePpsForwarded, [[1e6; 3], [1e6; 3]]);
    easy.record.targets.iter_mut().find(|it| it.name == "ours").unwrap().technology =
        Technology::Bridging;
    for bytes in [64.0, 512.0, 1518.0] {
        for target in [ELEMENT, "ours"] {
            let point = Point::new("frame_bytes", bytes).within(WORKLOAD, 2.0);
            easy.add(target, Metric::LossRatio, point, 0.0);
        }
    }
    let verdict = easy.verdict("flexibility", &[ELEMENT, "ours"]);
    assert!(is_open(&verdict, "all that was offered"), "{verdict:?}");
}

#[test]
fn worse_and_unusable_are_evaluated_separately() {
    let judged = |switch: [f64; 3]| {
        let metric = crate::derive::richer::named("frames_per_s_lossfree");
        let made = run("offload", metric, [[1e6; 3], switch]);
        ["is worse", "unusable"].map(|text| made.verdict(text, &["ours", ELEMENT]))
    };
    assert_eq!(judged([5e5, 5e5, 5e3]), [Holds, Holds]);
    assert_eq!(judged([5e5, 5e5, 5e5]), [Holds, DoesNot]);
    assert_eq!(judged([1e6, 1e6, 1e6]), [DoesNot, DoesNot]);
}

#[test]
fn a_workload_must_cost_more_than_one_percent() {
    let judged = |routing: f64| {
        let mut made = Made::of("gelberger2013", "discussion");
        for (number, pps) in [(1.0, 1e6), (2.0, routing)] {
            for bytes in [64.0, 512.0] {
                let point = Point::new("frame_bytes", bytes).within(WORKLOAD, number);
                made.add("ours", Metric::RatePpsForwarded, point, pps);
            }
        }
        made.verdict("does impact performance", &["ours"])
    };
    assert_eq!(judged(7e5), Holds);
    assert_eq!(judged(1e6), DoesNot);
}
