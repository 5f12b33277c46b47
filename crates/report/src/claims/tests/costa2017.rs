//! Verdicts on costa2017, from handmade values.

use super::made::{Made, is_open};
use record::Verdict::{Contradicted, Holds};
use record::{Bound, BoundCause, BoundSide, Metric, Point, Verdict};

/// A run of an item with one median for each of these models, in milliseconds.
fn medians(item: &str, name: &'static str, values: &[(&str, f64)]) -> Made {
    let mut made = Made::of("costa2017", item);
    for (model, ms) in values {
        let target = made.model(model);
        made.tell(&target, name, 64.0, ms * 1e6);
    }
    made
}

const ALL: [&str; 4] = ["extreme-x460", "pica8-p3297", "ovs-2.3", "hp-2920"];

fn names(models: &[&str]) -> Vec<String> {
    models.iter().map(|model| format!("switch:model={model}")).collect()
}

#[test]
fn round_trips_are_in_the_band_of_their_group() {
    let judged = |model: &str, ms: f64, text: &str| {
        let made = medians("fig2", "ip_rtt_ns_p50", &[(model, ms)]);
        made.verdict(text, &[&names(&[model])[0]])
    };
    // Hosts take 0.1 ms of the measured time.
    assert_eq!(judged("pica8-p3297", 0.1, "between"), Holds);
    assert_eq!(judged("pica8-p3297", 0.5, "between"), Contradicted);
    assert_eq!(judged("ovs-2.3", 0.4, "close to"), Holds);
    assert_eq!(judged("ovs-2.3", 0.1, "close to"), Contradicted, "faster is not close to either");
    assert_eq!(judged("hp-2920", 0.95, "edging"), Holds);
    let empty = Made::of("costa2017", "fig2");
    assert!(is_open(&empty.verdict("edging", &[]), "no target"));
}

#[test]
fn three_groups_require_every_switch_on_its_side() {
    let judged = |values: [f64; 4]| {
        let values: Vec<(&str, f64)> = ALL.into_iter().zip(values).collect();
        let made = medians("fig2", "ip_rtt_ns_p50", &values);
        let line = made.lines().into_iter().find(|it| it.claim.claim.contains("three groups"));
        line.unwrap().verdict
    };
    assert_eq!(judged([0.1, 0.1, 0.4, 1.0]), Holds);
    assert_eq!(judged([0.1, 0.4, 0.4, 1.0]), Contradicted, "a tie");
    let one = medians("fig2", "ip_rtt_ns_p50", &[("ovs-2.3", 0.4)]);
    assert!(is_open(&one.verdict("three groups", &[]), "both sides"));
}

#[test]
fn the_fastest_and_the_slowest_are_compared_with_all_others() {
    let judged = |extreme: f64, linksys: f64| {
        let values =
            [("extreme-x460", extreme), ("pica8-p3297", 0.2), ("linksys-wrt54gl", linksys)];
        let made = medians("fig3", "exact_rtt_ns_p50", &values);
        ["the fastest", "the slowest"].map(|text| {
            made.lines().into_iter().find(|it| it.claim.claim.contains(text)).unwrap().verdict
        })
    };
    assert_eq!(judged(0.1, 1.0), [Holds, Holds]);
    assert_eq!(judged(0.3, 1.0), [Contradicted, Holds]);
    assert_eq!(judged(0.1, 0.15), [Holds, Contradicted]);
    let alone = medians("fig3", "exact_rtt_ns_p50", &[("extreme-x460", 0.1)]);
    assert!(is_open(&alone.verdict("the fastest", &[]), "both sides"));
}

#[test]
fn large_packets_delay_some_switches_and_not_others() {
    let judged = |model: &str, text: &str, factor: f64| {
        let mut made = Made::of("costa2017", "fig4");
        let target = made.model(model);
        for (bytes, ns) in [(64.0, 1e5), (256.0, 1e5 * factor)] {
            made.tell(&target, "exact_rtt_ns_p50", bytes, ns);
        }
        made.verdict(text, &[&target])
    };
    assert_eq!(judged("pica8-p3297", "highest increases", 1.3), Holds);
    assert_eq!(judged("pica8-p3297", "highest increases", 1.0), Contradicted);
    assert_eq!(judged("ovs-2.3", "no significant increase", 1.0), Holds);
    assert_eq!(judged("ovs-2.3", "no significant increase", 1.3), Contradicted);
    let one = medians("fig4", "exact_rtt_ns_p50", &[("ovs-2.3", 0.4)]);
    let verdict = one.verdict("no significant increase", &["switch:model=ovs-2.3"]);
    assert!(is_open(&verdict, "both sizes"), "{verdict:?}");
}

#[test]
fn jitter_is_compared_with_a_limit_with_others_and_with_software() {
    let judged = |extreme: f64, hp: f64| {
        let mut made = Made::of("costa2017", "fig5");
        for (model, ms) in [("extreme-x460", extreme), ("ovs-2.3", 0.2), ("hp-2920", hp)] {
            let target = made.model(model);
            made.tell(&target, "exact_jitter_ns_p50", 64.0, ms * 1e6);
            made.tell(&target, "exact_jitter_ns_max", 64.0, ms * 4e6);
        }
        let of = |text: &str| {
            made.lines().into_iter().find(|it| it.claim.claim.contains(text)).unwrap().verdict
        };
        [of("jitter below"), of("noticeably lower"), of("resembles")]
    };
    assert_eq!(judged(0.05, 0.3), [Holds, Holds, Holds]);
    assert_eq!(judged(0.3, 0.9), [Contradicted, Contradicted, Contradicted]);
    let empty = Made::of("costa2017", "fig5");
    assert!(is_open(&empty.verdict("noticeably lower", &[]), "both sides"));
}

#[test]
fn fewer_rules_than_in_legacy_mode_fit_if_the_table_was_full() {
    let judged = |rules: f64, is_full: f64| {
        let mut made = Made::of("costa2017", "table4");
        let target = made.model("extreme-x460");
        let legacy = format!("{target},mode=legacy");
        made.switch(&legacy, &[("model", "extreme-x460"), ("model_mode", "legacy")]);
        made.tell(&target, "exact_accepted_rules", 64.0, rules);
        made.tell(&target, "exact_is_full_count", 64.0, is_full);
        made.add(&legacy, Metric::MacAddressesLearned, Point::new("frame_bytes", 64.0), 2048.0);
        made.verdict("fewer rules fit", &[&target])
    };
    assert_eq!(judged(1200.0, 1.0), Holds);
    assert_eq!(judged(16_000.0, 1.0), Contradicted);
    assert!(is_open(&judged(1200.0, 0.0), "was not full"));
}

#[test]
fn statistics_are_evaluated_by_rules_and_by_load() {
    let judged = |item: &str, model: &str, text: &str, [light, heavy]: [f64; 2]| -> Verdict {
        let kind = if item == "table7" { "flow" } else { "port" };
        let mut made = Made::of("costa2017", item);
        let target = made.model(model);
        for (x, factor) in [(0.0, 1.0), (90.0, 10.0)] {
            for (load, ms) in [("light", light), ("heavy", heavy)] {
                let name = match (kind, load) {
                    ("flow", "light") => "light_flow_reply_ns_p50",
                    ("flow", _) => "heavy_flow_reply_ns_p50",
                    (_, "light") => "light_port_reply_ns_p50",
                    _ => "heavy_port_reply_ns_p50",
                };
                made.tell(&target, name, x, ms * factor * 1e6);
            }
        }
        made.verdict(text, &[&target])
    };
    assert_eq!(judged("table7", "mikrotik-ar9344", "higher under heavy load", [8.0, 80.0]), Holds);
    assert_eq!(
        judged("table7", "mikrotik-ar9344", "higher under heavy load", [8.0, 8.0]),
        Contradicted
    );
    assert_eq!(judged("table7", "ovs-2.3", "virtually unchanged", [2.0, 2.1]), Holds);
    assert_eq!(judged("table7", "ovs-2.3", "virtually unchanged", [2.0, 4.0]), Contradicted);
    assert_eq!(judged("table7", "extreme-x460", "lower under heavy load", [5.0, 4.5]), Holds);
    assert_eq!(
        judged("table7", "extreme-x460", "lower under heavy load", [5.0, 5.0]),
        Contradicted
    );
    assert_eq!(judged("table8", "hp-2920", "higher under heavy load", [18.0, 27.0]), Holds);
    assert_eq!(judged("table8", "hp-2920", "higher under heavy load", [18.0, 18.0]), Contradicted);
    assert_eq!(judged("table8", "pica8-p3297", "higher with the rules", [8.0, 8.0]), Holds);
    let one = medians("table7", "light_flow_reply_ns_p50", &[("ovs-2.3", 2.0)]);
    let verdict = one.verdict("virtually unchanged", &["switch:model=ovs-2.3"]);
    assert!(is_open(&verdict, "not measured at both"), "{verdict:?}");
}

#[test]
fn software_is_compared_with_declared_hardware() {
    let judged = |kind: &[(&str, &str)], software_ms: f64| {
        let mut made = Made::of("costa2017", "table3");
        made.switch("openflow:device", kind);
        made.switch("switch", &[("implementation", "software")]);
        made.tell("openflow:device", "ip_rtt_ns_p50", 64.0, 1e5);
        made.tell("switch", "ip_rtt_ns_p50", 64.0, software_ms * 1e6);
        made.lines().into_iter().find(|it| it.claim.claim.contains("slower by up to")).unwrap()
    };
    let hardware = [("implementation", "hardware")];
    let line = judged(&hardware, 0.9);
    assert_eq!(
        (line.verdict, line.targets),
        (Holds, vec!["switch".to_string(), "openflow:device".to_string()])
    );
    assert_eq!(judged(&hardware, 0.05).verdict, Contradicted);
    assert!(is_open(&judged(&[], 0.9).verdict, "kind=hardware"), "it is not declared");
}

/// The search for rules that fit ended before this switch rejected one.
const NOT_FULL: Option<Bound> =
    Some(Bound { side: BoundSide::Lower, cause: BoundCause::SearchLimit });

#[test]
fn a_table_that_was_not_full_decides_nothing_about_a_full_one() {
    let judged = |full: f64, bound: Option<Bound>| {
        let mut made = Made::of("costa2017", "table5");
        let target = made.model("pica8-p3297");
        made.tell(&target, "exact_rtt_ns_p50", 0.0, 1e5);
        made.tell(&target, "exact_rtt_ns_p50", 100.0, full * 1e5);
        made.tell(&target, "exact_taken_rules", 100.0, 20_000.0);
        made.record.cells.last_mut().unwrap().bound = bound;
        made.verdict("intervals overlap", &[&target])
    };
    assert_eq!(judged(1.0, None), Holds);
    assert_eq!(judged(1.5, None), Contradicted);
    assert!(is_open(&judged(1.0, NOT_FULL), "accepted all 20\u{202f}000 rules"));
    assert!(is_open(&judged(1.5, NOT_FULL), "outside the condition"));
}

#[test]
fn statistics_over_a_table_that_was_not_full_decide_on_their_closed_side() {
    let judged = |item: &str, names: [&'static str; 2], full: f64, text: &str| {
        let mut made = Made::of("costa2017", item);
        let target = made.model("ovs-2.3");
        for name in names {
            made.tell(&target, name, 0.0, 1e6);
            made.tell(&target, name, 90.0, full * 1e6);
        }
        made.tell(&target, "taken_rules", 90.0, 20_000.0);
        made.record.cells.last_mut().unwrap().bound = NOT_FULL;
        made.verdict(text, &[&target])
    };
    let flow = ["light_flow_reply_ns_p50", "heavy_flow_reply_ns_p50"];
    let port = ["light_port_reply_ns_p50", "heavy_port_reply_ns_p50"];
    let by_rules = |full| judged("table7", flow, full, "considerably higher ");
    assert_eq!(by_rules(9.0), Holds, "more rules take longer still");
    assert!(is_open(&by_rules(1.0), "lower bound"), "more rules may take longer");
    assert!(is_open(&judged("table7", flow, 9.0, "virtually unchanged"), "was not full"));
    assert!(is_open(&judged("table8", port, 1.0, "not influenced"), "was not full"));
    assert!(is_open(&judged("table8", port, 9.0, "not influenced"), "was not full"));
    let stable = judged("table7", flow, 9.0, "stable limit");
    assert!(is_open(&stable, "no experiment requests statistics over a full table"));
}
