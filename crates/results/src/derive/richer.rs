//! What a richer target costs beside a plainer one: gelberger2013's question, put to a run's own numbers.
//!
//! Targets are told apart as the study does it: an element that is programmed by a graph, an OpenFlow switch, what the kernel
//! does itself, and code that was written for the one task. Two of them are compared over a whole curve: within each repeat
//! the geometric mean of the ratios at all points, and over repeats the interval of those. Invariant: only what both were
//! asked to do and both measured is compared; a repeat that lacks a point is left out.

use crate::conclude::{self, Conclusion, Estimate};
use crate::number::WORKLOAD;
use crate::rank::{self, Correlation};
use crate::record::{Cell, Metric, Name, Record, Target, Technology};
use crate::series;

/// The experiment that asks whether the richer costs more.
pub const ASKED: &str = "gelberger2013/discussion";

/// Throughput of a connection by TCP.
pub const TCP: &str = "tcp_throughput_bps";

/// The experiment that asks how much delays vary.
const VARIED: &str = "gelberger2013/fig6";

/// Percentiles of a frame's delay above the least of its trial, the highest first.
const VARIATIONS: [(Metric, &str); 4] = [
    (Metric::PdvNsP999, "99.9th"),
    (named("pdv_ns_p99"), "99th"),
    (named("pdv_ns_p90"), "90th"),
    (named("pdv_ns_p50"), "50th"),
];

/// The percentile of the variation of delay that figures, tables and claims are about, with its ordinal: the highest for which all
/// targets have frames enough at every point. Short trials leave high percentiles undefined.
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

/// Whether a metric is such a percentile.
pub fn is_variation(metric: Metric) -> bool {
    VARIATIONS.iter().any(|(known, _)| *known == metric)
}

/// What is compared: where, which metric, what it is called, and whether more of it is better.
const COMPARED: [(&str, Metric, &str, bool); 6] = [
    (ASKED, Metric::RatePpsForwarded, "forwarding rate at full load", true),
    ("gelberger2013/fig4", named(TCP), "throughput of TCP by window", true),
    ("gelberger2013/fig7", named(TCP), "throughput of TCP by frame size", true),
    ("gelberger2013/fig5", Metric::LatencyNsP50, "median latency", false),
    ("gelberger2013/fig8", Metric::LatencyNsP50, "median latency", false),
    (VARIED, named("pdv_ns_mean"), "packet delay variation on average", false),
];

/// A richer target beside a plainer one.
#[derive(Debug, Clone)]
pub struct Costing<'a> {
    /// The richer.
    pub rich: &'a str,
    /// The plainer.
    pub plain: &'a str,
    /// What both did, by its number.
    pub workload: f64,
    /// What is compared.
    pub what: &'static str,
    /// Whether more of that is better.
    more_is_better: bool,
    /// The richer's over the plainer's.
    pub ratio: Estimate,
}

impl Costing<'_> {
    /// Whether the richer costs more; none where that cannot be concluded.
    pub fn costs_more(&self) -> Option<bool> {
        match self.ratio.relevant() {
            Conclusion::Smaller => Some(self.more_is_better),
            Conclusion::Greater => Some(!self.more_is_better),
            Conclusion::Equivalent | Conclusion::Undecided(_) => None,
        }
    }
}

/// Every richer target against every plainer one, in all that both did.
pub fn costings(record: &Record) -> Vec<Costing<'_>> {
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
                        Costing { rich, plain, workload, what, more_is_better, ratio }
                    }));
                }
            }
        }
    }
    found
}

/// In how many of these comparisons the richer costs more, in how many less, and how many cannot be told.
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

/// How rich a target is: the higher, the more it can be told to do.
fn richness(target: &Target) -> Option<u8> {
    match Role::of(target) {
        Role::ProGfe => Some(2),
        Role::OpenFlow => Some(1),
        Role::Kernel | Role::Native => Some(0),
        Role::Other => None,
    }
}

/// What a target is, as the study tells them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Programmed by a graph.
    ProGfe,
    /// Programmed by a controller's rules.
    OpenFlow,
    /// What the kernel does itself.
    Kernel,
    /// Code for the one task, in user space.
    Native,
    /// Nothing of these: a cable.
    Other,
}

impl Role {
    /// That of a target.
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

/// A metric that a module named.
pub const fn named(name: &'static str) -> Metric {
    Metric::Named(Name::of(name))
}

/// The workload that a cell belongs to, by its number.
pub fn workload(cell: &Cell) -> Option<f64> {
    cell.point.within.as_ref().filter(|curve| curve.name == WORKLOAD).map(|curve| curve.value)
}

/// The workloads of a metric that both targets did, each once, rising.
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

/// The first target's metric over the second's in a workload, over all points that both have.
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

/// What a cell measured in a repeat.
pub fn sample(cell: &Cell, repeat: u32) -> Option<f64> {
    let place = cell.repeats.iter().position(|own| *own == repeat)?;
    cell.samples.get(place).copied()
}

/// Where connections by TCP are, those of full frames first.
const CONNECTIONS: [&str; 2] = ["gelberger2013/fig7", "gelberger2013/fig4"];

/// Variation of delay against a quantity of TCP: a group for each target and workload, with a pair for each repeat that has
/// both. Variation is that of the largest frames, the connection that of the largest frames or of the widest window.
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
            let both = |repeat: &u32| Some((sample(varied, *repeat)?, sample(met, *repeat)?));
            let group: Vec<(f64, f64)> = met.repeats.iter().filter_map(both).collect();
            if !group.is_empty() {
                groups.push(group);
            }
        }
    }
    groups
}

/// A target's cell of a workload that lies last on its axis.
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

/// How variation of delay goes with a quantity of TCP over targets, workloads and repeats: the rank correlation, what may
/// be concluded from it, and in how many groups its pairs are.
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
    use crate::record::{Point, Verdict};
    use crate::{claims, sample};

    /// A run of an element and a switch that switched, whose rates at two sizes were these in each repeat.
    fn run(element: [[f64; 3]; 2], switch: [[f64; 3]; 2]) -> Record {
        let mut record = sample::record();
        record.targets.truncate(2);
        for (target, name) in record.targets.iter_mut().zip(["progfe:a.fe.xml", "ours"]) {
            (target.name, target.spec) = (name.into(), name.into());
            target.technology = match name {
                "ours" => Technology::Openflow,
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
        for (name, rates) in [("progfe:a.fe.xml", element), ("ours", switch)] {
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
    fn the_richer_costs_more_only_where_its_whole_interval_says_so() {
        for (factor, counts) in [
            ([0.5, 0.6], [1, 0, 0]),
            ([1.5, 1.6], [0, 1, 0]),
            // It is slower at one size by as much as it is faster at the other.
            ([0.5, 2.0], [0, 0, 1]),
        ] {
            assert_eq!(tally(&run(times(factor), SWITCH)), counts, "{factor:?}");
        }
        // A machine that slows down over the run does so for both.
        let record = run(times([0.9, 0.9]), SWITCH);
        let [found] = &costings(&record)[..] else { panic!("one comparison") };
        assert!((found.ratio.value - 0.9).abs() < 1e-9 && found.costs_more() == Some(true));
    }

    #[test]
    fn a_repeat_that_one_target_lacks_is_left_out() {
        let mut record = run(times([0.5, 0.5]), SWITCH);
        let cell = &mut record.cells[0];
        (cell.repeats, cell.samples) = (vec![1, 2], cell.samples[..2].into());
        let [found] = &costings(&record)[..] else { panic!("one comparison") };
        assert_eq!(found.ratio.n, 2);
    }

    #[test]
    fn what_the_study_says_of_the_richer_is_put_to_every_place() {
        let stated = "study,item,place,subject,condition,claim,value,unit,relation\n\
                      gelberger2013,discussion,section IV,a,b,more functionality does not mean less,,,shape\n";
        let judged = |factor| {
            let lines = claims::judge(&run(times(factor), SWITCH), &claims::parse(stated).unwrap());
            lines[0].verdict.clone()
        };
        assert_eq!(judged([1.2, 1.0]), Verdict::Holds);
        assert_eq!(judged([0.5, 0.5]), Verdict::DoesNot);
        // One of two places is no majority, and is enough for the opposite.
        assert_eq!(judged([1.2, 0.5]), Verdict::DoesNot);
    }

    /// Short trials have frames enough for the 99th percentile of one target and for the 99.9th of another.
    #[test]
    fn figure_table_and_claim_use_the_highest_percentile_that_all_targets_have() {
        let mut record = run(SWITCH, SWITCH);
        let one = record.cells[0].clone();
        record.cells.clear();
        let p99 = named("pdv_ns_p99");
        let mut add = |target: &str, metric| {
            let (experiment, target) = (VARIED.into(), target.into());
            record.cells.push(Cell { experiment, target, metric, ..one.clone() });
        };
        for target in ["progfe:a.fe.xml", "ours"] {
            add(target, named("pdv_ns_mean"));
            add(target, p99);
        }
        add("ours", Metric::PdvNsP999);
        assert_eq!(variation(&record), (p99, "99th"));
        assert!(costings(&record).iter().any(|it| it.what == "packet delay variation"));
        let experiment = &mut record.experiments[0];
        (experiment.id, experiment.item) = (VARIED.into(), Some("fig6".into()));
        experiment.shows = vec![crate::record::Show {
            title: "Packet delay variation by frame size".into(),
            drawn: vec![Metric::PdvNsP999],
            beside: vec![named("pdv_ns_mean")],
            series: Vec::new(),
            is_logarithmic: true,
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
    fn variation_goes_with_tcp_target_by_target() {
        let mut record = run(SWITCH, SWITCH);
        let one = record.cells[0].clone();
        record.cells.clear();
        for (place, target) in ["progfe:a.fe.xml", "ours"].into_iter().enumerate() {
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
        let (found, _, groups) = correlation(&record, named("timeouts_count")).unwrap();
        assert_eq!((found.value, groups, found.pairs), (1.0, 2, 6));
        assert_eq!(found.interval, None, "two targets are too few");
        assert_eq!(correlation(&record, named("retransmits_ratio")), None);
    }
}
