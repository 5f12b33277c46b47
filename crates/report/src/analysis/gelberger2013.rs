//! Cost of a richer target compared with a plainer one: the question of gelberger2013, applied to a
//! run.
//!
//! Roles follow the study: a ProGFE element, an OpenFlow switch, the kernel's own forwarding, and
//! code for a single task. Two targets are compared over a whole curve. Each repeat gives the
//! geometric mean of the ratios at all points; the interval is over repeats. Invariant: only
//! measurements of both targets are compared; a repeat that lacks a point is omitted.

use record::number::WORKLOAD;
use record::{Cell, Metric, Name, Record, Target, Technology};
use stats::conclude::{self, Conclusion, Estimate};
use stats::rank::{self, Correlation};
use stats::series;

/// The experiment about the cost of a richer target.
pub const ASKED: &str = "gelberger2013/discussion";

/// TCP throughput of a connection.
pub const TCP: &str = "tcp_throughput_bps";

/// The experiment about latency variation.
const VARIED: &str = "gelberger2013/fig6";

/// Percentiles of the delay above the trial's minimum, highest first.
const VARIATIONS: [(Metric, &str); 4] = [
    (Metric::PdvNsP999, "99.9th"),
    (named("pdv_ns_p99"), "99th"),
    (named("pdv_ns_p90"), "90th"),
    (named("pdv_ns_p50"), "50th"),
];

/// The percentile of delay variation for figures, tables and claims, with its ordinal. It is the
/// highest one for which all targets have enough frames at every point. In short trials, high
/// percentiles are undefined.
pub fn variation(record: &Record) -> (Metric, &'static str) {
    let varied = |cell: &&Cell| cell.experiment == VARIED;
    let measured = named("pdv_ns_mean");
    let is_defined = |metric: Metric| {
        let mut all = record.cells.iter().filter(varied).filter(|cell| cell.metric == measured);
        all.all(|cell| {
            let mut cells = record.cells_of(VARIED, &cell.target, metric);
            cells.any(|other| other.point == cell.point && other.n == cell.n)
        })
    };
    let found = VARIATIONS.into_iter().find(|(metric, _)| is_defined(*metric));
    found.unwrap_or(VARIATIONS[VARIATIONS.len() - 1])
}

/// Whether a metric is one of these percentiles.
pub fn is_variation(metric: Metric) -> bool {
    VARIATIONS.iter().any(|(known, _)| *known == metric)
}

/// The comparisons: experiment, metric, name, and whether larger is better.
const COMPARED: [(&str, Metric, &str, bool); 6] = [
    (ASKED, Metric::RatePpsForwarded, "forwarding rate at full load", true),
    ("gelberger2013/fig4", named(TCP), "throughput of TCP by window", true),
    ("gelberger2013/fig7", named(TCP), "throughput of TCP by frame size", true),
    ("gelberger2013/fig5", Metric::LatencyNsP50, "median latency", false),
    ("gelberger2013/fig8", Metric::LatencyNsP50, "median latency", false),
    (VARIED, named("pdv_ns_mean"), "packet delay variation on average", false),
];

/// A richer target compared with a plainer one.
#[derive(Debug, Clone)]
pub struct CostComparison<'a> {
    /// The richer target.
    pub rich: &'a str,
    /// The plainer target.
    pub plain: &'a str,
    /// Number of the workload.
    pub workload: f64,
    /// Name of the compared quantity.
    pub what: &'static str,
    /// Whether larger is better.
    more_is_better: bool,
    /// Ratio of the richer target to the plainer one.
    pub ratio: Estimate,
}

impl CostComparison<'_> {
    /// Whether the richer target costs more; none if inconclusive.
    pub fn costs_more(&self) -> Option<bool> {
        match self.ratio.relevant() {
            Conclusion::Smaller => Some(self.more_is_better),
            Conclusion::Greater => Some(!self.more_is_better),
            Conclusion::Equivalent | Conclusion::Undecided(_) => None,
        }
    }
}

/// Compares every richer target with every plainer one in all common measurements.
pub fn costings(record: &Record) -> Vec<CostComparison<'_>> {
    let mut found = Vec::new();
    let varied = (VARIED, variation(record).0, "packet delay variation", false);
    for (rich, level) in record.targets.iter().filter_map(|it| Some((it, richness(it)?))) {
        let plainer = record.targets.iter().filter(|it| richness(it).is_some_and(|it| it < level));
        for plain in plainer {
            for (experiment, metric, what, more_is_better) in COMPARED.into_iter().chain([varied]) {
                let pair = [rich.name.as_str(), plain.name.as_str()];
                for workload in workloads(record, experiment, metric, pair) {
                    let ratio = over_points(record, experiment, metric, pair, workload);
                    found.extend(ratio.map(|ratio| {
                        let [rich, plain] = pair;
                        CostComparison { rich, plain, workload, what, more_is_better, ratio }
                    }));
                }
            }
        }
    }
    found
}

/// Numbers of comparisons in which the richer target costs more, costs less, or is inconclusive.
pub fn tally(record: &Record) -> [usize; 3] {
    let mut counts = [0; 3];
    for costing in costings(record) {
        let place = match costing.costs_more() {
            Some(true) => 0,
            Some(false) => 1,
            None => 2,
        };
        counts[place] += 1;
    }
    counts
}

/// Richness of a target: a higher value means more programmable.
fn richness(target: &Target) -> Option<u8> {
    match Role::of(target) {
        Role::ProGfe => Some(2),
        Role::OpenFlow => Some(1),
        Role::Kernel | Role::Native => Some(0),
        Role::Other => None,
    }
}

/// Role of a target in the study.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// An element programmed by a ProGFE graph.
    ProGfe,
    /// A switch programmed by OpenFlow rules.
    OpenFlow,
    /// The kernel's own forwarding.
    Kernel,
    /// Code for a single task, in user space.
    Native,
    /// None of these: a cable.
    Other,
}

impl Role {
    /// The role of a target.
    pub fn of(target: &Target) -> Role {
        match target.technology {
            Technology::Cable => Role::Other,
            _ if target.spec.starts_with("progfe:") => Role::ProGfe,
            Technology::Openflow => Role::OpenFlow,
            _ if target.spec.starts_with("linux-") => Role::Kernel,
            _ => Role::Native,
        }
    }
}

/// A metric defined by a module.
pub const fn named(name: &'static str) -> Metric {
    Metric::Named(Name::of(name))
}

/// Number of the workload of a cell.
pub fn workload(cell: &Cell) -> Option<f64> {
    cell.point.within.as_ref().filter(|curve| curve.name == WORKLOAD).map(|curve| curve.value)
}

/// The workloads that both targets have for a metric, in rising order without duplicates.
pub fn workloads(record: &Record, experiment: &str, metric: Metric, pair: [&str; 2]) -> Vec<f64> {
    let of = |target: &str| -> Vec<f64> {
        let mut found: Vec<f64> =
            record.cells_of(experiment, target, metric).filter_map(workload).collect();
        found.sort_by(f64::total_cmp);
        found.dedup();
        found
    };
    let other = of(pair[1]);
    of(pair[0]).into_iter().filter(|number| other.contains(number)).collect()
}

/// Ratio of the first target's metric to the second's in a workload, over all common points.
pub fn over_points(
    record: &Record,
    experiment: &str,
    metric: Metric,
    [of, against]: [&str; 2],
    number: f64,
) -> Option<Estimate> {
    let points: Vec<(&Cell, &Cell)> = record
        .cells_of(experiment, of, metric)
        .filter(|cell| workload(cell) == Some(number))
        .filter_map(|cell| {
            let mut others = record.cells_of(experiment, against, metric);
            Some((cell, others.find(|other| other.point == cell.point)?))
        })
        .collect();
    ratios(&points)
}

/// The mean ratio of these pairs of cells, repeat by repeat.
fn ratios(points: &[(&Cell, &Cell)]) -> Option<Estimate> {
    let undisturbed: Vec<(Cell, Cell)> = (points.iter())
        .map(|(one, other)| (conclude::undisturbed(one), conclude::undisturbed(other)))
        .collect();
    let repeats = undisturbed.first()?.0.repeats.iter();
    let ratios = repeats.filter_map(|repeat| {
        let logs = undisturbed.iter().map(|(one, other)| {
            let (one, other) = (sample(one, *repeat)?, sample(other, *repeat)?);
            (one > 0.0 && other > 0.0).then(|| (one / other).ln())
        });
        let logs: Vec<f64> = logs.collect::<Option<_>>()?;
        Some((series::mean(&logs)?.exp(), 1.0))
    });
    let ratios: Vec<(f64, f64)> = ratios.collect();
    let (of, base): (Vec<&Cell>, Vec<&Cell>) = points.iter().copied().unzip();
    (!ratios.is_empty()).then(|| Estimate::of_pairs(&ratios).with(&of, &base))
}

/// The value of a cell in a repeat.
pub fn sample(cell: &Cell, repeat: u32) -> Option<f64> {
    let place = cell.repeats.iter().position(|own| *own == repeat)?;
    cell.samples.get(place).copied()
}

/// Experiments with TCP connections, those with full-size frames first.
const CONNECTIONS: [&str; 2] = ["gelberger2013/fig7", "gelberger2013/fig4"];

/// Latency variation and a quantity of TCP, as pairs: a group per target and workload, a pair per
/// repeat in which both were undisturbed. The variation is that of the largest frames; the connection is that of the
/// largest frames or the widest window.
pub fn against_variation(record: &Record, metric: Metric) -> Vec<Vec<(f64, f64)>> {
    let tcp = CONNECTIONS.into_iter().find(|id| record.cells.iter().any(|it| it.experiment == *id));
    let Some(tcp) = tcp else { return Vec::new() };
    let (variation, _) = variation(record);
    let mut groups = Vec::new();
    for target in record.targets.iter().filter(|target| Role::of(target) != Role::Other) {
        let last =
            |experiment, metric, number| last(record, (experiment, &target.name), metric, number);
        let mut numbers: Vec<f64> =
            record.cells_of(tcp, &target.name, metric).filter_map(workload).collect();
        numbers.sort_by(f64::total_cmp);
        numbers.dedup();
        for number in numbers {
            let pair = last(VARIED, variation, number).zip(last(tcp, metric, number));
            let Some((varied, met)) = pair else { continue };
            let [varied, met] = [varied, met].map(conclude::undisturbed);
            let both = |repeat: &u32| Some((sample(&varied, *repeat)?, sample(&met, *repeat)?));
            let group: Vec<(f64, f64)> = met.repeats.iter().filter_map(both).collect();
            if !group.is_empty() {
                groups.push(group);
            }
        }
    }
    groups
}

/// A target's last cell of a workload on its axis.
fn last<'a>(
    record: &'a Record,
    (experiment, target): (&'a str, &'a str),
    metric: Metric,
    number: f64,
) -> Option<&'a Cell> {
    let cells = record.cells_of(experiment, target, metric);
    let cells = cells.filter(|cell| workload(cell) == Some(number));
    cells.max_by(|a, b| a.point.value.total_cmp(&b.point.value))
}

/// Rank correlation of latency variation with a quantity of TCP over targets, workloads and
/// repeats: the correlation, its conclusion and the number of groups.
pub fn correlation(record: &Record, metric: Metric) -> Option<(Correlation, Estimate, usize)> {
    let groups = against_variation(record, metric);
    let found = rank::correlation(&groups, conclude::DIFFERENT_PERCENT, record.seed)?;
    let varied = variation(record).0;
    let is_part = |cell: &&Cell| [metric, varied].contains(&cell.metric);
    let cells: Vec<&Cell> = record.cells.iter().filter(is_part).collect();
    let estimate = Estimate::of_interval(found.value, found.pairs as u32, found.interval, &cells);
    Some((found, estimate, groups.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims;
    use record::{Disturbance, DisturbanceCause, Point, Verdict};

    /// A run of an element and a switch that perform switching, with these rates at two sizes in
    /// each repeat.
    fn run(element: [[f64; 3]; 2], switch: [[f64; 3]; 2]) -> Record {
        let mut record = sample::record();
        record.targets.truncate(2);
        for (target, name) in record.targets.iter_mut().zip(["progfe:a.fe.xml", "switch"]) {
            (target.name, target.spec) = (name.into(), name.into());
            target.technology = match name {
                "switch" => Technology::Openflow,
                _ => Technology::Bridging,
            };
        }
        record.experiments.truncate(1);
        let experiment = &mut record.experiments[0];
        experiment.id = ASKED.into();
        (experiment.study, experiment.item) =
            (Some("gelberger2013".into()), Some("discussion".into()));
        let like = record.cells.first().expect("the sample has cells").clone();
        let mut cells = Vec::new();
        for (name, rates) in [("progfe:a.fe.xml", element), ("switch", switch)] {
            for (bytes, samples) in [64.0, 1518.0].into_iter().zip(rates) {
                cells.push(Cell {
                    experiment: ASKED.into(),
                    target: name.into(),
                    point: Point::new("frame_bytes", bytes).within(WORKLOAD, 1.0),
                    metric: Metric::RatePpsForwarded,
                    value: series::mean(&samples).unwrap(),
                    n: 3,
                    samples: samples.into(),
                    repeats: vec![1, 2, 3],
                    ..like.clone()
                });
            }
        }
        record.cells = cells;
        record
    }

    const SWITCH: [[f64; 3]; 2] = [[100.0, 50.0, 75.0], [80.0, 40.0, 60.0]];

    fn times(factor: [f64; 2]) -> [[f64; 3]; 2] {
        let mut rates = SWITCH;
        for (row, factor) in rates.iter_mut().zip(factor) {
            *row = row.map(|rate| rate * factor);
        }
        rates
    }

    #[test]
    fn the_richer_target_costs_more_only_if_its_whole_interval_does() {
        for (factor, counts) in [
            ([0.5, 0.6], [1, 0, 0]),
            ([1.5, 1.6], [0, 1, 0]),
            // The gain at one size equals the loss at the other.
            ([0.5, 2.0], [0, 0, 1]),
        ] {
            assert_eq!(tally(&run(times(factor), SWITCH)), counts, "{factor:?}");
        }
        // A machine that slows down during the run affects both targets.
        let record = run(times([0.9, 0.9]), SWITCH);
        let [found] = &costings(&record)[..] else { panic!("one comparison") };
        assert!((found.ratio.value - 0.9).abs() < 1e-9 && found.costs_more() == Some(true));
    }

    #[test]
    fn a_repeat_that_one_target_lacks_is_excluded() {
        let mut record = run(times([0.5, 0.5]), SWITCH);
        let cell = &mut record.cells[0];
        (cell.repeats, cell.samples) = (vec![1, 2], cell.samples[..2].into());
        let [found] = &costings(&record)[..] else { panic!("one comparison") };
        assert_eq!(found.ratio.n, 2);
    }

    #[test]
    fn the_claim_about_the_richer_target_is_checked_at_every_point() {
        let stated = "study,item,place,subject,condition,claim,value,unit,relation\n\
                      gelberger2013,discussion,section IV,a,b,more functionality does not mean less,,,shape\n";
        let judged = |factor| {
            let lines = claims::judge(&run(times(factor), SWITCH), &claims::parse(stated).unwrap());
            lines[0].verdict.clone()
        };
        assert_eq!(judged([1.2, 1.0]), Verdict::Holds);
        assert_eq!(judged([0.5, 0.5]), Verdict::Contradicted);
        // One of two points is not a majority, but is enough for the opposite.
        assert_eq!(judged([1.2, 0.5]), Verdict::Contradicted);
    }

    /// In short trials one target has enough frames for the 99th percentile, and another for the
    /// 99.9th.
    #[test]
    fn figure_table_and_claim_use_the_highest_common_percentile() {
        let mut record = run(SWITCH, SWITCH);
        let one = record.cells[0].clone();
        record.cells.clear();
        let p99 = named("pdv_ns_p99");
        let mut add = |target: &str, metric| {
            let (experiment, target) = (VARIED.into(), target.into());
            record.cells.push(Cell { experiment, target, metric, ..one.clone() });
        };
        for target in ["progfe:a.fe.xml", "switch"] {
            add(target, named("pdv_ns_mean"));
            add(target, p99);
        }
        add("switch", Metric::PdvNsP999);
        assert_eq!(variation(&record), (p99, "99th"));
        assert!(costings(&record).iter().any(|it| it.what == "packet delay variation"));
        let experiment = &mut record.experiments[0];
        (experiment.id, experiment.item) = (VARIED.into(), Some("fig6".into()));
        experiment.shows = vec![record::Show {
            title: "Packet delay variation by frame size".into(),
            drawn: vec![Metric::PdvNsP999],
            beside: vec![named("pdv_ns_mean")],
            is_logarithmic: true,
            ..record::Show::default()
        }];
        let shown = crate::figure::views(&record, &record.experiments[0]);
        let [view] = &shown[..] else { panic!("one view of one workload: {}", shown.len()) };
        assert_eq!(view.columns, [p99, named("pdv_ns_mean")]);
        assert!(view.title(&record.experiments[0]).contains("99th percentile"));
        let mut missing = one.clone();
        (missing.experiment, missing.target) = (VARIED.into(), "progfe:a.fe.xml".into());
        missing.metric = Metric::PdvNsP999;
        record.cells.push(missing);
        assert_eq!(variation(&record).1, "99.9th", "now every target has it");
    }

    #[test]
    fn delay_variation_and_tcp_timeouts_are_correlated_by_target() {
        let mut record = varied_and_connected();
        let (found, _, groups) = correlation(&record, named("timeouts_count")).unwrap();
        assert_eq!((found.value, groups, found.pairs), (1.0, 2, 6));
        assert_eq!(found.interval, None, "two targets are too few");
        assert_eq!(correlation(&record, named("retransmits_ratio")), None);
        let cause = DisturbanceCause::Descheduled;
        record.cells[0].disturbances = vec![Disturbance { cause, repeats: vec![2] }];
        let (found, ..) = correlation(&record, named("timeouts_count")).unwrap();
        assert_eq!(found.pairs, 5, "a disturbed repeat counts for nothing");
    }

    /// A run of two targets whose variations and time-outs are 0 to 0.2 and 1 to 1.2.
    fn varied_and_connected() -> Record {
        let mut record = run(SWITCH, SWITCH);
        let one = record.cells[0].clone();
        record.cells.clear();
        for (place, target) in ["progfe:a.fe.xml", "switch"].into_iter().enumerate() {
            for (experiment, metric) in
                [(VARIED, Metric::PdvNsP999), (CONNECTIONS[1], named("timeouts_count"))]
            {
                record.cells.push(Cell {
                    experiment: experiment.into(),
                    target: target.into(),
                    metric,
                    samples: vec![place as f64, place as f64 + 0.1, place as f64 + 0.2],
                    ..one.clone()
                });
            }
        }
        record
    }
}
