//! Validation of the intervals of costa2017's tables II and III with delays that are drawn from a
//! seed and hidden.
//!
//! Packet delays are drawn for hardware and for software, by type of match, by size and with tails.
//! A table's cell has an interval of the means of repeats, a run one of the means of its batches.
//! Both are 99 % intervals, as published, and must contain the true mean. The drawn delays are
//! distributions, so a correct 99 % interval misses its mean once in a hundred cases.
//! `TRUTH_CASES_TRIPS` sets the number of switches.

use elements::hardware_model::model::{Model, Path, Paths, Tiers};
use stats::interval::{self, LEVEL_PERCENT_HIGH};
use tester::module::Ended;

use crate::case::Draw;
use crate::one_switch::{OneSwitch, measured_metric};

/// The study's types, in the order in which they are measured.
const TYPES: [&str; 5] = ["port", "mac", "ip", "udp_port", "exact"];

/// The study's sizes, as frames with their check sequence, which is not in memory.
const SIZES: [u64; 3] = [64, 128, 256];
const CHECK_BYTES: u64 = 4;

const REPEATS: usize = 3;

/// Resolution of timestamps, and of a model, in nanoseconds.
const CLOCK_NS: f64 = 1.0;

/// Share of intervals that must contain the true value, in percent.
const HELD_PERCENT: u64 = 95;

/// The types in hardware, by the model's word for them.
const LAYOUTS: [(u64, [bool; 5]); 4] = [
    (0, [true; 5]),
    (1, [false, false, false, false, true]),
    (4, [true, true, false, false, false]),
    (5, [false, false, true, true, true]),
];

fn path(draw: &mut Draw) -> Path {
    let some = |draw: &mut Draw, most: u64| draw.between(0, 1) * draw.between(0, most);
    let latency_ns = draw.between(2_000, 1_000_000);
    Path {
        latency_ns,
        byte_ps: some(draw, 100_000),
        jitter_ns: some(draw, latency_ns),
        slow_percent: some(draw, 15),
        slow_ns: draw.between(1, 2 * latency_ns),
        slow_byte_ps: some(draw, 50_000),
        capacity_pps: some(draw, 1) * draw.between(10_000, 1_000_000),
        ..Path::default()
    }
}

/// Returns the mean delay of a frame of this size on a path without other frames.
fn mean_ns(path: &Path, bytes: u64) -> f64 {
    let fixed = path.latency_ns + path.byte_ps * bytes / 1000;
    let slow = path.slow_ns + path.slow_byte_ps * bytes / 1000;
    let service = 1_000_000_000u64.checked_div(path.capacity_pps).unwrap_or(0);
    fixed as f64
        + path.jitter_ns as f64 / 2.0
        + path.slow_percent as f64 / 100.0 * slow as f64
        + service as f64
}

#[test]
fn intervals_of_round_trips_contain_the_true_value_for_each_type_and_size() {
    let count: u64 =
        std::env::var("TRUTH_CASES_TRIPS").ok().and_then(|text| text.parse().ok()).unwrap_or(20);
    // By type, for cells and for single runs: the number of intervals, and of those that contain
    // the mean.
    let mut held = [[(0u64, 0u64); 2]; TYPES.len()];
    let (mut whole, mut missed) = (0, Vec::new());
    for seed in 0..count {
        let draw = &mut Draw::new(seed ^ 0x7472_6970);
        let (word, in_hardware) = LAYOUTS[draw.between(0, 3) as usize];
        let paths = Paths { hardware: path(draw), software: path(draw), ..Paths::default() };
        let model = Model {
            tiers: Tiers { in_hardware: word, ..Tiers::default() },
            paths: paths.clone(),
            ..Model::default()
        };
        let size = SIZES[draw.between(0, 2) as usize];
        let set = [
            format!("match_types={}", TYPES.join(",")),
            format!("size={size}"),
            format!("packets={}", draw.between(200, 600)),
            format!("repeats={REPEATS}"),
            "open_pps=0".into(),
        ];
        let reports = OneSwitch::like(&model, seed).run("costa2017/table3", &set, seed);
        assert_eq!(reports.len(), TYPES.len() * REPEATS);
        let mut misses = 0;
        for (place, name) in TYPES.into_iter().enumerate() {
            let path = if in_hardware[place] { &paths.hardware } else { &paths.software };
            let truth = 2.0 * mean_ns(path, size - CHECK_BYTES);
            let runs = reports.iter().skip(place).step_by(TYPES.len());
            let means: Vec<_> = runs
                .map(|report| {
                    assert_eq!(report.ended, Ended::Completed, "{seed} {name}");
                    measured_metric(report, "rtt_ns_mean")
                        .unwrap_or_else(|| panic!("{seed} {name}"))
                })
                .collect();
            let values: Vec<f64> = means.iter().map(|mean| mean.value).collect();
            let cell = interval::of_mean(&values, LEVEL_PERCENT_HIGH).unwrap();
            let mut check = |kind: usize, (low, high): (f64, f64)| {
                let is_held = low - CLOCK_NS <= truth && truth <= high + CLOCK_NS;
                let (all, good) = &mut held[place][kind];
                (*all, *good) = (*all + 1, *good + u64::from(is_held));
                if !is_held {
                    missed.push(format!("{seed} {name}: {truth} not in {low} to {high}: {path:?}"));
                }
                is_held
            };
            misses += u64::from(!check(0, (cell.low, cell.high)));
            for mean in means {
                let half = mean.half_width.unwrap();
                check(1, (mean.value - half, mean.value + half));
            }
        }
        whole += u64::from(misses == 0);
    }
    println!("{whole} of {count} tables are correct in all cells; missed:\n{}", missed.join("\n"));
    for (name, kinds) in TYPES.iter().zip(held) {
        for (kind, (all, good)) in ["cells", "runs"].iter().zip(kinds) {
            println!("{name}: {good} of {all} {kind}");
            // If there are few, one may miss.
            let may_miss = (all * (100 - HELD_PERCENT) / 100).max(1);
            assert!(all > 0 && all - good <= may_miss, "{name}: {good} of {all} {kind}");
        }
    }
}
