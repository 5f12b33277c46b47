//! Verdicts on figures 3 to 10 and table I of bianco2010, from handmade values.

use super::made::{Made, is_open};
use record::Verdict::{Contradicted, Holds};
use record::{Bound, BoundCause, BoundSide, Metric, Point, Verdict};

/// Frames per second on a full link of 1 Gbit/s.
fn wire_pps(bytes: f64) -> f64 {
    1e9 / (8.0 * (bytes + 20.0))
}

/// Adds the rate with a table at this share of the offered link rate.
fn forwarded(
    made: &mut Made,
    target: &str,
    (bytes, entries): (f64, f64),
    share: f64,
    offered: f64,
) {
    let point = || Point::new("frame_bytes", bytes).within("entries", entries);
    let wire = wire_pps(bytes);
    made.add(target, Metric::RatePpsOffered, point(), wire * offered);
    made.add(target, Metric::RatePpsForwarded, point(), wire * share);
    made.add(target, Metric::LossRatio, point(), 1.0 - share / offered);
}

#[test]
fn a_drop_is_evaluated_only_at_the_full_link_rate() {
    let judged = |offered: f64, shares: [f64; 3]| {
        let mut made = Made::of("bianco2010", "fig5");
        for (entries, share) in [8192.0, 65_536.0, 131_072.0].into_iter().zip(shares) {
            forwarded(&mut made, "switch", (96.0, entries), share, offered);
        }
        made
    };
    let full = judged(1.0, [0.994, 0.95, 0.40]);
    let at = |made: &Made, entries: &str, value: &str| {
        made.verdict(
            &format!("openflow: 96-byte packets, {entries}: relative throughput drop {value}"),
            &["switch"],
        )
    };
    assert_eq!(at(&full, "8K entries", "0.6"), Holds);
    assert_eq!(at(&full, "64K entries", "5.0"), Holds, "each number has its own line");
    assert_eq!(at(&full, "128K entries", "11.3"), Contradicted);
    // Only a third of the link rate was offered, so a loss of 44 % is not a drop from the full
    // rate.
    let third = judged(0.33, [0.2, 0.19, 0.1]);
    let line = third.line("128K entries: relative throughput drop 11.3", &["switch"]);
    assert!(is_open(&line.verdict, "offered 33 % of 1 Gbit/s"), "{line:?}");
    assert!(line.numbers.contains("131\u{202f}072 entries over that with 8192 is 0.5"), "{line:?}");
}

#[test]
fn larger_tables_must_be_slower_and_a_tie_is_not() {
    let judged = |shares: [f64; 3]| {
        let mut made = Made::of("bianco2010", "fig5");
        for (entries, share) in [8192.0, 65_536.0, 131_072.0].into_iter().zip(shares) {
            forwarded(&mut made, "linux-bridge", (96.0, entries), share, 1.0);
        }
        made.verdict("the larger the forwarding table", &["linux-bridge"])
    };
    assert_eq!(judged([0.86, 0.3, 0.1]), Holds);
    assert_eq!(judged([0.86, 0.86, 0.1]), Contradicted);
    let mut easy = Made::of("bianco2010", "fig5");
    for entries in [8192.0, 65_536.0] {
        forwarded(&mut easy, "linux-bridge", (96.0, entries), 0.3, 0.3);
    }
    let verdict = easy.verdict("the larger the forwarding table", &["linux-bridge"]);
    assert!(is_open(&verdict, "the target loses more than 1 %"), "{verdict:?}");
}

#[test]
fn the_bridge_with_the_largest_table_is_below_a_tenth_of_the_link() {
    let judged = |share: f64, offered: f64| {
        let mut made = Made::of("bianco2010", "fig5");
        forwarded(&mut made, "linux-bridge", (96.0, 131_072.0), share, offered);
        made.verdict("share of the link capacity below", &["linux-bridge"])
    };
    assert_eq!(judged(0.08, 1.0), Holds);
    assert_eq!(judged(0.2, 1.0), Contradicted);
    assert!(is_open(&judged(0.05, 0.05), "the target loses more than 1 %"));
}

#[test]
fn openflow_is_3_percent_slower_than_routing_with_the_largest_table() {
    let judged = |openflow: f64, offered: f64| {
        let mut made = Made::of("bianco2010", "fig5");
        forwarded(&mut made, "switch", (96.0, 131_072.0), openflow, offered);
        forwarded(&mut made, "router", (96.0, 131_072.0), 0.9, 1.0);
        made.verdict("128K entries: throughput lower by about 3.5", &["switch", "router"])
    };
    assert_eq!(judged(0.9 * 0.965, 1.0), Holds);
    assert_eq!(judged(0.7, 1.0), Contradicted);
    assert!(is_open(&judged(0.5, 0.5), "the target loses more than 1 %"));
}

#[test]
fn wire_speed_with_small_tables_needs_the_claimed_packet_size() {
    let reaching = |from: f64| {
        let mut made = Made::of("bianco2010", "fig5");
        for entries in [8192.0, 131_072.0] {
            for bytes in [96.0, 128.0, 256.0, 1500.0] {
                let share = if bytes >= from && entries < 1e5 { 1.0 } else { 0.5 };
                forwarded(&mut made, "switch", (bytes, entries), share, 1.0);
            }
        }
        made.verdict("wire speed needs", &["switch"])
    };
    assert_eq!(reaching(256.0), Holds);
    assert_eq!(reaching(128.0), Contradicted);
    assert_eq!(reaching(1500.0), Contradicted);
}

#[test]
fn the_linear_table_is_compared_with_the_hash_table_and_the_wire() {
    let linear = |share: f64, offered: f64| {
        let mut made = Made::of("bianco2010", "fig6");
        for (curve, share) in [("hash_entries", 0.9), ("linear_entries", share)] {
            for (bytes, share) in [(96.0, share), (256.0, if share > 0.5 { 1.0 } else { 0.5 })] {
                let point = || Point::new("frame_bytes", bytes).within(curve, 100.0);
                let offered = wire_pps(bytes) * offered;
                let forwarded = (wire_pps(bytes) * share).min(offered);
                made.add("switch", Metric::RatePpsOffered, point(), offered);
                made.add("switch", Metric::RatePpsForwarded, point(), forwarded);
                made.add("switch", Metric::LossRatio, point(), 1.0 - forwarded / offered);
            }
        }
        ["lower by about", "reaches wire speed"].map(|text| made.verdict(text, &["switch"]))
    };
    assert_eq!(linear(0.6, 1.0), [Holds, Holds]);
    assert_eq!(linear(0.89, 1.0), [Contradicted, Holds]);
    assert_eq!(linear(0.3, 1.0), [Contradicted, Contradicted]);
    let [lower, wire] = linear(0.6, 0.4);
    assert!(
        is_open(&lower, "the target loses more than 1 %") && is_open(&wire, "offered 40 %"),
        "{lower:?} {wire:?}"
    );
}

#[test]
fn a_mix_is_compared_with_both_pure_cases_and_their_interpolation() {
    let mixed = |half: f64, linear: f64, loss: f64| {
        let mut made = Made::of("bianco2010", "fig7");
        for (percent, pps) in [(0.0, 9e5), (50.0, half), (100.0, linear)] {
            let point = || Point::new("linear_percent", percent);
            made.add("ovs", Metric::RatePpsForwarded, point(), pps);
            made.add("ovs", Metric::LossRatio, point(), loss);
        }
        ["bounded", "proportional"].map(|text| made.verdict(text, &["ovs"]))
    };
    assert_eq!(mixed(7.5e5, 6e5, 0.2), [Holds, Holds]);
    assert_eq!(mixed(6.2e5, 6e5, 0.2), [Holds, Contradicted], "each part is evaluated separately");
    assert_eq!(mixed(5.5e5, 6e5, 0.2), [Contradicted, Contradicted]);
    let [bounded, proportional] = mixed(9e5, 9e5, 0.2);
    assert_eq!(bounded, Holds);
    assert!(
        is_open(&proportional, "the linear table is slower"),
        "no drop, no proportion: {proportional:?}"
    );
    let [bounded, _] = mixed(7.5e5, 6e5, 0.0);
    assert!(is_open(&bounded, "the target loses more than 1 %"), "{bounded:?}");
}

#[test]
fn times_are_compared_with_the_smallest_table_and_packet() {
    let timed = |time: fn(f64, f64) -> f64| {
        let mut made = Made::of("bianco2010", "table1");
        for curve in ["hash_entries", "linear_entries"] {
            for entries in [1.0, 100.0] {
                for bytes in [96.0, 1500.0] {
                    let point = Point::new("frame_bytes", bytes).within(curve, entries);
                    made.add("switch", Metric::ProcessingNs, point, time(entries, bytes));
                }
            }
        }
        ["time independent of table size", "seems independent", "with respect to the packet"]
            .map(|text| made.verdict(text, &["switch"]))
    };
    assert_eq!(timed(|_, _| 28_000.0), [Holds, Holds, Holds]);
    assert_eq!(timed(|entries, _| 20_000.0 + 100.0 * entries), [Contradicted, Contradicted, Holds]);
    assert_eq!(timed(|_, bytes| 10_000.0 + 10.0 * bytes), [Holds, Holds, Contradicted]);
    assert!(timed(|_, _| -5.0).iter().all(|it| is_open(it, "the difference is")));
}

/// A run of two flows: loss and difference in percentage points with F2 at 40, 60 and 90 %.
fn flows(item: &str, targets: &[(&str, [(f64, f64); 3])]) -> Made {
    let mut made = Made::of("bianco2010", item);
    for (target, points) in targets {
        for (percent, (loss, difference)) in [40.0, 60.0, 90.0].into_iter().zip(points) {
            let point = || Point::new("f2_percent", percent);
            made.add(target, Metric::LossRatio, point(), *loss);
            made.add(target, Metric::LossRatioDifference, point(), difference / 100.0);
        }
    }
    made
}

#[test]
fn the_loss_difference_of_one_port_is_evaluated_under_loss() {
    let fig9 = |points| {
        flows("fig9", &[("linux-router", points)]).verdict("always below", &["linux-router"])
    };
    assert_eq!(fig9([(0.0, 0.0), (0.1, 0.5), (0.3, -1.2)]), Holds);
    assert_eq!(fig9([(0.0, 0.0), (0.1, 0.5), (0.3, -8.0)]), Contradicted);
    assert!(is_open(&fig9([(0.0, 0.0); 3]), "the target loses more than 1 %"));
}

#[test]
fn a_fairness_ranking_needs_a_difference() {
    let ranked = |openflow: f64, bridge: f64, loss: f64| {
        let of = |difference: f64| [(0.0, 0.0), (loss, difference), (loss, -difference)];
        let made =
            flows("fig9", &[("switch", of(openflow)), ("router", of(0.8)), ("bridge", of(bridge))]);
        [
            made.verdict("slightly better", &["switch", "router"]),
            made.verdict("slightly worse", &["bridge", "router"]),
        ]
    };
    assert_eq!(ranked(0.4, 1.3, 0.2), [Holds, Holds]);
    assert_eq!(ranked(0.8, 0.8, 0.2), [Contradicted, Contradicted], "a tie is no ranking");
    assert_eq!(ranked(1.4, 0.3, 0.2), [Contradicted, Contradicted]);
    assert!(ranked(0.4, 1.3, 0.0).iter().all(|it| is_open(it, "the target loses more than 1 %")));
}

#[test]
fn the_smaller_flow_of_two_ports_is_favored_more_under_overload() {
    let of = |points| {
        let made = flows("fig10", &[("switch", points)]);
        ["F1 is favoured (", "the more F1"].map(|text| made.verdict(text, &["switch"]))
    };
    assert_eq!(of([(0.0, 0.0), (0.1, -8.0), (0.3, -40.0)]), [Holds, Holds]);
    assert_eq!(of([(0.0, 0.0), (0.1, 8.0), (0.3, 40.0)]), [Contradicted, Contradicted]);
    assert_eq!(of([(0.0, 0.0), (0.1, -40.0), (0.3, -8.0)]), [Holds, Contradicted]);
    let [favours, grows] = of([(0.0, 0.0), (0.0, 0.0), (0.3, -8.0)]);
    assert_eq!(favours, Holds);
    assert!(is_open(&grows, "one load alone did"), "{grows:?}");
}

#[test]
fn slightly_fairer_is_a_band_with_two_limits() {
    let fairer = |openflow: f64| {
        let of = |difference: f64| [(0.0, 0.0), (0.1, difference), (0.3, 2.0 * difference)];
        let made = flows("fig10", &[("switch", of(openflow)), ("router", of(-20.0))]);
        made.verdict("slightly fairer", &["switch", "router"])
    };
    assert_eq!(fairer(-16.0), Holds);
    assert_eq!(fairer(-20.0), Contradicted, "as fair");
    assert_eq!(fairer(-2.0), Contradicted, "much fairer");
    let none = flows("fig10", &[("switch", [(0.0, 0.0); 3]), ("router", [(0.2, -9.0); 3])]);
    assert!(is_open(
        &none.verdict("slightly fairer", &["switch", "router"]),
        "the target loses more than 1 %"
    ));
}

#[test]
fn round_robin_is_the_cause_if_the_favor_ends_without_it() {
    let first_come = "switch:service=first-come";
    let of = |by_arrival: f64| {
        let mut made = Made::of("bianco2010", "fig10");
        made.switch(first_come, &[]);
        for (target, difference) in [("switch", -30.0), (first_come, by_arrival)] {
            for percent in [60.0, 90.0] {
                let point = || Point::new("f2_percent", percent);
                made.add(target, Metric::LossRatio, point(), 0.2);
                made.add(target, Metric::LossRatioDifference, point(), difference / 100.0);
            }
        }
        made.verdict("round robin", &["switch", first_come])
    };
    assert_eq!(of(0.3), Holds);
    assert_eq!(of(-30.0), Contradicted);
    let alone = flows("fig10", &[("switch", [(0.2, -30.0); 3])]);
    assert!(is_open(&alone.verdict("round robin", &[]), "on our switch only"));
}

#[test]
fn a_bridge_overload_is_found_and_stays_constant() {
    let bridge = |points| {
        let made = flows("fig10", &[("linux-bridge", points)]);
        ["already overloaded", "no difference"].map(|text| made.verdict(text, &["linux-bridge"]))
    };
    assert_eq!(bridge([(0.4, -30.0), (0.5, -30.0), (0.6, -30.0)]), [Holds, Holds]);
    assert_eq!(bridge([(0.4, -10.0), (0.5, -30.0), (0.6, -50.0)]), [Holds, Contradicted]);
    let open = bridge([(0.0, 0.0), (0.1, -8.0), (0.3, -40.0)]);
    assert!(open.iter().all(|it| is_open(it, "C is chosen")), "{open:?}");
}

#[test]
fn one_disturbed_mean_does_not_decide_about_latency() {
    // The medians agree with the study, and a stall spoils the mean of each.
    let judged = |median_us: f64, mean_us: f64| -> Verdict {
        let mut made = Made::of("bianco2010", "fig4");
        let point = || Point::new("load_percent", 10.0);
        made.add("switch", Metric::LossRatio, point(), 0.0);
        made.add("switch", Metric::LatencyNsP50, point(), median_us * 1e3);
        made.add("switch", Metric::LatencyNsMean, point(), mean_us * 1e3);
        made.verdict("slightly less than", &["switch"])
    };
    assert_eq!(judged(28.8, 400.0), Holds);
    assert_eq!(judged(45.0, 25.0), Contradicted);
    assert_eq!(judged(1.3, 1.3), Contradicted, "1.3 µs is not slightly less than 30 µs");
    let mut lossy = Made::of("bianco2010", "fig4");
    let point = || Point::new("load_percent", 10.0);
    lossy.add("switch", Metric::LossRatio, point(), 0.3);
    lossy.add("switch", Metric::LatencyNsP50, point(), 28_000.0);
    assert!(is_open(&lossy.verdict("slightly less than", &["switch"]), "less than 0.1 %"));
}

#[test]
fn similar_rates_are_within_a_factor_in_both_directions() {
    let similar = |bridge: f64, loss: f64| {
        let mut made = Made::of("bianco2010", "fig3");
        for (target, pps) in [("linux-bridge", bridge), ("linux-router", 7e5)] {
            for load in [50.0, 100.0] {
                let point = || Point::new("load_percent", load);
                made.add(target, Metric::RatePpsForwarded, point(), pps);
                made.add(target, Metric::LossRatio, point(), loss);
            }
        }
        made.verdict("very similar", &["linux-bridge", "linux-router"])
    };
    assert_eq!(similar(6.5e5, 0.3), Holds);
    assert_eq!(similar(4.2e5, 0.3), Contradicted);
    assert!(is_open(&similar(6.5e5, 0.0), "no frames were lost"));
}

/// A run of figure 3 with a target of 7e5 frames/s, and these losses in percent at loads of 40, 80 and 100 %.
fn with_losses(losses: [[f64; 5]; 3]) -> Made {
    let mut made = Made::of("bianco2010", "fig3");
    for (load, losses) in [40.0, 80.0, 100.0].into_iter().zip(losses) {
        let point = || Point::new("load_percent", load);
        let offered = wire_pps(64.0) * load / 100.0;
        let rates = losses.map(|loss| offered * (1.0 - loss / 100.0));
        made.add("switch", Metric::RatePpsOffered, point(), offered);
        made.add_samples("switch", Metric::LossRatio, point(), &losses.map(|loss| loss / 100.0));
        made.add_samples("switch", Metric::RatePpsForwarded, point(), &rates);
    }
    made
}

#[test]
fn one_burst_of_loss_below_saturation_is_no_overload() {
    let (none, burst) = ([0.0; 5], [0.0, 0.0, 0.0, 0.0, 9.0]);
    // The mean loss at 40 % is 1.8 %, and the rate there is half of that at saturation.
    let [low, high] = [[41.2, 41.2, 41.3, 41.2, 41.1], [53.0, 53.0, 52.9, 53.0, 53.1]];
    let saturated = with_losses([burst, low, high]);
    let line = saturated.line("saturation level", &["switch"]);
    assert_eq!(line.verdict, Holds, "{line:?}");
    assert!(line.numbers.ends_with("times the rate at a load of 80 %"), "{line:?}");
    assert_eq!(saturated.verdict("does not fall", &["switch"]), Holds);
    let once = with_losses([none, burst, high]);
    for text in ["saturation level", "does not fall"] {
        let verdict = once.verdict(text, &["switch"]);
        assert!(
            is_open(&verdict, "undecided whether the condition of the claim holds"),
            "{verdict:?}"
        );
    }
}

#[test]
fn a_rate_that_falls_in_one_repeat_decides_nothing() {
    let [low, high] = [[41.2; 5], [53.0, 53.0, 70.0, 53.0, 53.0]];
    let verdict = with_losses([[0.0; 5], low, high]).verdict("does not fall", &["switch"]);
    assert!(is_open(&verdict, "the interval contains the threshold"), "{verdict:?}");
    let falls = with_losses([[0.0; 5], low, [70.0, 70.1, 70.0, 69.9, 70.0]]);
    assert_eq!(falls.verdict("does not fall", &["switch"]), Contradicted);
}

#[test]
fn a_few_lost_frames_are_neither_none_nor_overload() {
    let made = flows("fig9", &[("ovs", [(2e-6, 0.0), (3e-6, 0.0), (4e-6, 0.0)])]);
    let verdict = made.verdict("always below", &["ovs"]);
    assert!(is_open(&verdict, "ovs lost at most 0.0004 % of the frames"), "{verdict:?}");
    let made = flows("fig9", &[("ovs", [(0.0, 0.0); 3])]);
    let verdict = made.verdict("always below", &["ovs"]);
    assert!(is_open(&verdict, "ovs lost no frames"), "{verdict:?}");
}

#[test]
fn a_factor_from_a_bound_is_at_least_so_much() {
    let mut made = Made::of("bianco2010", "fig3");
    for (target, pps) in [("linux-bridge", 2e5), ("linux-router", 1e6)] {
        let point = || Point::new("load_percent", 100.0);
        made.add(target, Metric::LossRatio, point(), 0.3);
        made.add(target, Metric::RatePpsForwarded, point(), pps);
    }
    let cell = made.record.cells.last_mut().unwrap();
    cell.bound = Some(Bound { side: BoundSide::Lower, cause: BoundCause::LinkLimit });
    let line = made.line("very similar", &["linux-bridge", "linux-router"]);
    assert_eq!(line.verdict, Contradicted);
    let wanted =
        "the largest factor is at least 5, linux-router over linux-bridge at a load of 100 %";
    assert_eq!(line.numbers, wanted);
}
