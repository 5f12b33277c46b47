//! Verdicts on oflops2018, from handmade values.

use super::made::{Made, is_open};
use record::Verdict::{Contradicted, Holds};
use record::{Bound, BoundCause, BoundSide, Metric, Point};

const HARD: &str = "openflow:device";

/// Returns a run with a device declared as hardware, and software switches.
fn run(item: &str) -> Made {
    let mut made = Made::of("oflops2018", item);
    made.switch(HARD, &[("implementation", "hardware")]);
    for software in ["ovs", "ovs-dpdk"] {
        made.switch(software, &[("implementation", "software")]);
    }
    made
}

/// Adds a value at a rate in Mbit/s with this share of the offered rate.
fn forwarding(
    made: &mut Made,
    (target, metric): (&str, Metric),
    (mbps, bytes): (f64, f64),
    value: f64,
    offered: f64,
) {
    let point = || Point::new("frame_bytes", bytes).within("load_mbps", mbps);
    made.add(target, metric, point(), value);
    let pps = mbps * 1e6 / (8.0 * (bytes + 20.0));
    if !made
        .record
        .cells
        .iter()
        .any(|it| it.target == target && it.metric == Metric::RatePpsOffered && it.point == point())
    {
        made.add(target, Metric::RatePpsOffered, point(), pps * offered);
    }
}

#[test]
fn hardware_is_declared_and_not_guessed_from_a_name() {
    let judged = |name: &str, settings: &[(&str, &str)]| {
        let mut made = Made::of("oflops2018", "fig7a");
        made.record.targets.clear();
        made.switch(name, settings);
        made.tell(name, "barrier_gap_ns_max", 1000.0, 2e9);
        made.lines().into_iter().find(|it| it.claim.claim.contains("barrier reply")).unwrap()
    };
    let hardware = judged(HARD, &[("implementation", "hardware")]);
    assert_eq!((hardware.verdict, hardware.targets), (Holds, vec![HARD.to_string()]));
    let software = judged("some:model=name", &[("implementation", "software")]);
    assert!(is_open(&software.verdict, "no target"), "{software:?}");
    let unknown = judged(HARD, &[]);
    assert!(is_open(&unknown.verdict, "kind=hardware"), "{unknown:?}");
    assert_eq!(unknown.targets, [HARD]);
}

#[test]
fn an_early_barrier_is_stated_with_its_time_and_share_of_rules() {
    let judged = |gap_ns: f64, premature: f64| {
        let mut made = run("fig7a");
        made.tell(HARD, "barrier_gap_ns_max", 1000.0, gap_ns);
        made.tell(HARD, "rules_premature_ratio", 1000.0, premature);
        ["barrier reply", "few seconds"].map(|text| made.line(text, &[HARD]))
    };
    let [early, seconds] = judged(355e6, 0.58);
    assert_eq!((early.verdict, seconds.verdict), (Holds, Contradicted));
    assert_eq!(
        early.numbers,
        "the last of 1000 rules acts 355 ms after the reply, 58 % of 1000 rules premature"
    );
    assert_eq!(judged(2.5e9, 0.58).map(|it| it.verdict), [Holds, Holds]);
    assert_eq!(judged(-1e6, 0.0).map(|it| it.verdict), [Contradicted, Contradicted]);
    let none = run("fig7a").line("barrier reply", &[]);
    assert!(is_open(&none.verdict, "no target"), "{none:?}");
}

#[test]
fn probes_that_prove_premature_rules_in_a_quorum_of_repeats_decide_whatever_the_interval_is() {
    let judged = |shares: [f64; 5]| {
        let mut made = run("fig7a");
        let metric = crate::analysis::gelberger2013::named("rules_premature_ratio");
        made.add_samples(HARD, metric, Point::new("x", 1000.0), &shares);
        // Half of the rules may be premature without proof.
        made.record.cells[0].resolution = Some(0.5);
        made.tell(HARD, "barrier_gap_ns_max", 1000.0, 2e6);
        made.record.cells[1].resolution = Some(9e6);
        made.line("barrier reply", &[HARD])
    };
    let proven = judged([0.9, 0.001, 0.0, 0.3, 0.01]);
    assert_eq!(proven.verdict, Holds);
    assert!(proven.numbers.ends_with("at least 24.22 % of 1000 rules premature"), "{proven:?}");
    assert!(is_open(&judged([0.9, 0.001, 0.0, 0.3, 0.0]).verdict, ""), "three of five repeats");
    assert!(is_open(&judged([0.0; 5]).verdict, "below the resolution"));
}

#[test]
fn a_time_below_the_resolution_decides_nothing() {
    let mut made = run("fig7c");
    made.tell("ovs", "data_plane_ns", 1000.0, 5e5);
    made.tell(HARD, "data_plane_ns", 1000.0, 5e8);
    let cell = &mut made.record.cells[0];
    cell.resolution = Some(5e5);
    cell.bound = Some(Bound { side: BoundSide::Upper, cause: BoundCause::Resolution });
    let verdict = made.verdict("three orders of magnitude", &["ovs", HARD]);
    assert!(is_open(&verdict, "below the resolution"), "{verdict:?}");
    made.tell("ovs", "data_plane_ns", 2000.0, 2e6);
    let linear = made.line("linear", &["ovs"]).numbers;
    assert_eq!(linear, "< 1 ms for 1000 rules, 2 ms for 2000");
    let mut resolved = run("fig7c");
    resolved.tell("ovs", "data_plane_ns", 1000.0, 5e5);
    resolved.tell(HARD, "data_plane_ns", 1000.0, 5e8);
    assert_eq!(resolved.verdict("three orders of magnitude", &["ovs", HARD]), Holds);
}

#[test]
fn linear_and_equal_software_are_evaluated_separately() {
    let judged = |more: f64, modified: f64| {
        let mut made = run("fig7c");
        made.tell("ovs", "data_plane_ns", 500.0, 1e7);
        made.tell("ovs", "data_plane_ns", 1000.0, more);
        made.tell_elsewhere("fig7a", ("ovs", "data_plane_ns"), 1000.0, modified);
        ["linear", "same pattern"].map(|text| made.verdict(text, &["ovs"]))
    };
    assert_eq!(judged(2e7, 2.1e7), [Holds, Holds]);
    assert_eq!(judged(2e7, 6e7), [Holds, Contradicted]);
    assert_eq!(judged(8e7, 8e7), [Contradicted, Holds]);
    let mut one = run("fig7c");
    one.tell("ovs", "data_plane_ns", 500.0, 1e7);
    assert!(is_open(&one.verdict("linear", &["ovs"]), "fewer than two"));
}

#[test]
fn random_priorities_act_sooner_than_increasing_ones() {
    let judged = |random: Option<f64>| {
        let mut made = run("fig7b");
        made.tell(HARD, "data_plane_ns", 1400.0, 2e9);
        if let Some(ns) = random {
            made.tell(HARD, "random_data_plane_ns", 1400.0, ns);
        }
        made.verdict("random priority", &[HARD])
    };
    assert_eq!(judged(Some(1.2e9)), Holds);
    assert_eq!(judged(Some(2e9)), Contradicted);
    assert!(is_open(&judged(None), "both orders"));
}

#[test]
fn pauses_of_insertions_and_modifications_are_evaluated_separately() {
    let judged = |[inserted, modified]: [f64; 2]| {
        let mut made = run("fig8a");
        for (name, value) in
            [("pause_ns_max", inserted), ("pause_begins_ns", 3e8), ("data_plane_ns", 1.5e9)]
        {
            made.tell(HARD, name, 1000.0, value);
        }
        for (name, value) in
            [("pause_ns_max", modified), ("pause_begins_ns", 1e8), ("data_plane_ns", 1e9)]
        {
            made.tell_elsewhere("fig7a", (HARD, name), 1000.0, value);
        }
        ["at about", "modification of 1000 rules"].map(|text| made.verdict(text, &[HARD]))
    };
    assert_eq!(judged([2.3e8, 2e8]), [Holds, Holds]);
    assert_eq!(judged([2.3e8, 1e6]), [Holds, Contradicted]);
    assert_eq!(judged([2e6, 2e8]), [Contradicted, Holds]);
    let mut alone = run("fig8a");
    alone.tell(HARD, "data_plane_ns", 1000.0, 1e9);
    let verdict = alone.verdict("modification of 1000 rules", &[HARD]);
    assert!(is_open(&verdict, "run figure 7a"), "{verdict:?}");
}

#[test]
fn losses_and_cores_of_table_1_count_at_line_rate_only() {
    let judged = |kernel: f64, dpdk: f64, cores: [f64; 2], offered: f64| {
        let mut made = run("table1");
        for (target, loss, load) in [("ovs", kernel, cores[0]), ("ovs-dpdk", dpdk, cores[1])] {
            for bytes in [96.0, 256.0] {
                let at = (10_000.0, bytes);
                forwarding(&mut made, (target, Metric::LossRatio), at, loss, offered);
                forwarding(&mut made, (target, Metric::CpuLoadRatio), at, load, offered);
            }
        }
        [
            made.verdict("significant packet loss", &["ovs"]),
            made.verdict("no packet loss", &["ovs-dpdk"]),
            made.verdict("processor load of at most", &["ovs-dpdk"]),
            made.verdict("higher processor load", &["ovs", "ovs-dpdk"]),
        ]
    };
    assert_eq!(judged(0.3, 0.0, [7.5, 1.0], 1.0), [Holds, Holds, Holds, Holds]);
    assert_eq!(
        judged(0.0, 0.3, [1.0, 2.0], 1.0),
        [Contradicted, Contradicted, Contradicted, Contradicted]
    );
    let open = judged(0.3, 0.0, [7.5, 1.0], 0.02);
    assert!(open.iter().all(|it| is_open(it, "offered 2 %")), "{open:?}");
}

#[test]
fn dpdk_scales_better_for_large_packets_at_line_rate() {
    let judged = |dpdk: f64, offered: f64| {
        let mut made = run("fig6b");
        for (target, ns) in [("ovs", 1e6), ("ovs-dpdk", dpdk)] {
            forwarding(&mut made, (target, Metric::LatencyNsP50), (10_000.0, 1024.0), ns, offered);
        }
        made.verdict("better scaling", &["ovs-dpdk", "ovs"])
    };
    assert_eq!(judged(1e5, 1.0), Holds);
    assert_eq!(judged(1e6, 1.0), Contradicted, "a tie");
    assert!(is_open(&judged(1e5, 0.5), "offered 50 %"));
}

#[test]
fn the_kernel_varies_more_and_takes_ten_times_as_long() {
    let judged = |kernel: [f64; 2], hard: f64| {
        let mut made = run("fig6b");
        for (target, [median, high]) in
            [("ovs", kernel), ("ovs-dpdk", [2e4, 2.5e4]), (HARD, [hard, hard * 1.1])]
        {
            let at = (100.0, 96.0);
            forwarding(&mut made, (target, Metric::LatencyNsP50), at, median, 1.0);
            forwarding(&mut made, (target, Metric::LatencyNsP90), at, high, 1.0);
        }
        [
            made.verdict("variability", &["ovs", "ovs-dpdk"]),
            made.verdict("100 Mbit/s: latency higher by about an order", &["ovs", HARD]),
        ]
    };
    assert_eq!(judged([3e4, 9e4], 2.5e3), [Holds, Holds]);
    assert_eq!(judged([3e4, 3.1e4], 2.9e4), [Contradicted, Contradicted]);
    let mut none = run("fig6b");
    none.tell("ovs", "some_ns", 1.0, 1.0);
    assert!(is_open(&none.verdict("variability", &[]), "no target"));
}

#[test]
fn latencies_at_the_low_rate_count_where_that_rate_is_carried() {
    let judged = |settings: &[(&str, &str)], offered: f64, loss: f64, own_ns: u64| {
        let mut made = run("fig6a");
        made.switch(HARD, settings);
        let calibration = &mut made.record.calibrations[0];
        calibration.latency.as_mut().unwrap().ns_p50 = Some(own_ns);
        for bytes in [96.0, 1472.0] {
            let at = (100.0, bytes);
            forwarding(&mut made, (HARD, Metric::LatencyNsP50), at, 2500.0, offered);
            forwarding(&mut made, (HARD, Metric::LossRatio), at, loss, offered);
        }
        ["median latency about", "negligible impact"].map(|text| made.verdict(text, &[HARD]))
    };
    let device: &[(&str, &str)] = &[("implementation", "hardware")];
    assert_eq!(judged(device, 1.0, 0.0, 300), [Holds, Holds]);
    for verdict in judged(device, 0.5, 0.0, 300) {
        assert!(is_open(&verdict, "offered 50 % of 100 Mbit/s"), "{verdict:?}");
    }
    for verdict in judged(device, 1.0, 0.35, 300) {
        assert!(is_open(&verdict, "lost 35 % of the frames"), "{verdict:?}");
    }
    let [median, impact] = judged(device, 1.0, 0.0, 4200);
    assert!(is_open(&median, "take 4.2 µs by themselves"), "{median:?}");
    assert_eq!(impact, Holds);
    // Its frames pass this host's software.
    let model = [("implementation", "hardware"), ("model", "edgecore-as5812")];
    for verdict in judged(&model, 1.0, 0.0, 300) {
        assert!(is_open(&verdict, "forwards in software"), "{verdict:?}");
    }
}

#[test]
fn a_rewrite_costs_small_packets_more() {
    let judged = |small: f64, large: f64| {
        let mut made = run("fig6c");
        made.tell("ovs", "port_rewrite_extra_ns_p50", 96.0, small);
        made.tell("ovs", "port_rewrite_extra_ns_p50", 1472.0, large);
        made.verdict("more pronounced", &["ovs"])
    };
    assert_eq!(judged(1.1e4, 3e3), Holds);
    assert_eq!(judged(3e3, 3.5e3), Contradicted);
    let mut one = run("fig6c");
    one.tell("ovs", "port_rewrite_extra_ns_p50", 96.0, 1e4);
    assert!(is_open(&one.verdict("more pronounced", &["ovs"]), "two sizes"));
}

#[test]
fn one_of_many_sizes_beyond_the_limit_may_be_chance() {
    let judged = |sizes: u32| {
        let mut made = run("fig6a");
        let at = |size: u32| (100.0, f64::from(96 + 64 * size));
        for size in 0..sizes {
            forwarding(&mut made, (HARD, Metric::LatencyNsP50), at(size), 2500.0, 1.0);
        }
        forwarding(&mut made, (HARD, Metric::LatencyNsP50), at(sizes), 2500.0, 1.0);
        let last = made.record.cells.iter_mut().rfind(|it| it.metric == Metric::LatencyNsP50);
        last.unwrap().samples = [0.92, 0.96, 1.0, 1.04, 1.08].map(|by| by * 1.5 * 2500.0).to_vec();
        made.verdict("negligible impact", &[HARD])
    };
    assert_eq!(judged(1), Contradicted);
    assert!(is_open(&judged(8), "may be chance among so many"));
}
