//! The questions of gelberger2013 as tables: the cost of a richer element, and the contradiction
//! between two studies.
//!
//! Source: sections III-C and IV of the study; bianco2010's claims about figure 2. Every ratio is
//! taken repeat by repeat over all points that both targets have in a workload. Invariants: the
//! tables contain only measurements of the run; a verdict requires support from the interval.

use super::rfc::Sheet;
use super::{Entry, Table};
use crate::analysis::gelberger2013::{self, Role, named, workload};
use record::links::Naming;
use record::number;
use record::{Cell, Experiment, Metric, Record, Target};
use stats::conclude::{Conclusion, Estimate};

const RICHER: &str = "Each ProGFE element, then each OpenFlow switch, is compared with every less programmable target that did \
                      the same workload in this run. A ratio is the geometric mean over all sizes, repeat by repeat, with its \
                      95 % interval. A target costs more if its rate is lower or its delay higher by more than 1 %, with 99 % \
                      confidence.";

const QUARREL: &str = "bianco2010 reports a lower rate for its bridge than for its OpenFlow switch and its router, and suspects its \
                       bridge. gelberger2013 contradicts this: flexibility costs performance, and so does a more complex workload. \
                       The table compares the forwarding rates of this run at the smallest frames and full load, within one \
                       family of targets.";

const CAUSE: &str = "The study explains OpenFlow's lower throughput by its delay variation, which makes timers of TCP expire. The table \
                     shows Spearman's rank correlation of the packet delay variation of the largest frames with three quantities of \
                     TCP, over targets, workloads and repeats. Its 99 % interval comes from resampling each target and workload \
                     as a whole. A correlation does not show a cause.";

/// The sheets of an item.
pub(super) fn sheets(record: &Record, experiment: &Experiment, item: &str) -> Vec<Sheet> {
    let found = match item {
        "discussion" => vec![
            Sheet {
                title: "Cost of programmability",
                reading: RICHER,
                tables: vec![richer(record)],
            },
            Sheet {
                title: "gelberger2013 against bianco2010",
                reading: QUARREL,
                tables: vec![quarrel(record, experiment)],
            },
        ],
        "fig6" => {
            vec![Sheet {
                title: "Packet delay variation and TCP",
                reading: CAUSE,
                tables: vec![cause(record)],
            }]
        }
        _ => Vec::new(),
    };
    found.into_iter().filter(|sheet| sheet.tables.iter().all(|it| !it.rows.is_empty())).collect()
}

fn ratio(found: &Estimate) -> Entry {
    Entry::ratio(found.value, found.interval)
}

/// Compares every richer target with every plainer one.
fn richer(record: &Record) -> Table {
    let columns = ["target", "less programmable", "workload", "metric", "ratio", "conclusion"];
    let naming = Naming::among(record, record.targets.iter().map(|target| target.name.as_str()));
    let row = |it: gelberger2013::CostComparison| {
        vec![
            Entry::word(naming.of(it.rich)),
            Entry::word(naming.of(it.plain)),
            Entry::word(number::workload(it.workload)),
            Entry::word(it.what),
            ratio(&it.ratio),
            Entry::word(match it.costs_more() {
                Some(true) => "costs more",
                Some(false) => "costs less",
                None => "undecided",
            }),
        ]
    };
    let rows = gelberger2013::costings(record).into_iter().map(row).collect();
    Table { columns: columns.map(Into::into).into(), rows }
}

/// A pair that bianco2010 compares.
struct Pair {
    /// The first target's role and workload.
    first: (Role, f64),
    /// The second target's role and workload.
    second: (Role, f64),
    words: &'static str,
    /// Slowdown of the first target in bianco2010, in percent.
    lower_percent: f64,
    /// Whether gelberger2013 claims the opposite.
    is_contradicted: bool,
}

const PAIRS: [Pair; 3] = [
    Pair {
        first: (Role::Native, SWITCHING),
        second: (Role::Native, ROUTING),
        words: "bridge against router",
        lower_percent: 40.0,
        is_contradicted: true,
    },
    Pair {
        first: (Role::Native, SWITCHING),
        second: (Role::OpenFlow, SWITCHING),
        words: "bridge against OpenFlow",
        lower_percent: 30.0,
        is_contradicted: true,
    },
    Pair {
        first: (Role::OpenFlow, SWITCHING),
        second: (Role::Native, ROUTING),
        words: "OpenFlow against router",
        lower_percent: 11.0,
        is_contradicted: false,
    },
];

const SWITCHING: f64 = 1.0;
const ROUTING: f64 = 2.0;

/// The pairs of bianco2010 with the values of this run.
fn quarrel(record: &Record, experiment: &Experiment) -> Table {
    let columns = [
        "family",
        "pair",
        "bianco2010: lower by",
        "gelberger2013",
        "measured: first / second",
        "measurement agrees with",
    ];
    let metric = Metric::RatePpsForwarded;
    // The kernel's own forwarding is the native forwarder of its family.
    let is_role = |target: &Target, role: Role| match (Role::of(target), role) {
        (Role::Kernel, Role::Native) => true,
        (own, role) => own == role,
    };
    let mut rows = Vec::new();
    for Pair {
        first: (of, of_work),
        second: (to, to_work),
        words,
        lower_percent,
        is_contradicted,
    } in PAIRS
    {
        for first in record.targets.iter().filter(|it| is_role(it, of)) {
            let others = record
                .targets
                .iter()
                .filter(|it| is_role(it, to) && it.family == first.family && it.name != first.name);
            for second in others {
                let of = |target, work| smallest(record, (&experiment.id, target), metric, work);
                let pair = of(&first.name, of_work).zip(of(&second.name, to_work));
                let Some((one, other)) = pair else { continue };
                if one.point.value != other.point.value {
                    continue;
                }
                let found = Estimate::ratio(one, other);
                let agrees = match found.relevant() {
                    Conclusion::Smaller if is_contradicted => "bianco2010",
                    Conclusion::Smaller => "both",
                    Conclusion::Greater if is_contradicted => "gelberger2013",
                    Conclusion::Greater => "neither",
                    Conclusion::Equivalent | Conclusion::Undecided(_) => "undecided",
                };
                let family = if first.family == "planimeter" { "planimeter" } else { "system" };
                rows.push(vec![
                    Entry::word(format!("{family}: {} and {}", first.name, second.name)),
                    Entry::word(words),
                    Entry::word(format!("about {lower_percent} %")),
                    Entry::word(if is_contradicted { "higher" } else { "lower" }),
                    ratio(&found),
                    Entry::word(agrees),
                ]);
            }
        }
    }
    Table { columns: columns.map(Into::into).into(), rows }
}

/// A target's cell of a workload at the smallest frames.
fn smallest<'a>(
    record: &'a Record,
    (experiment, target): (&'a str, &'a str),
    metric: Metric,
    number: f64,
) -> Option<&'a Cell> {
    let cells = record.cells_of(experiment, target, metric);
    let cells = cells.filter(|cell| workload(cell) == Some(number));
    cells.min_by(|a, b| a.point.value.total_cmp(&b.point.value))
}

/// Latency variation and each of its possible effects on TCP.
fn cause(record: &Record) -> Table {
    let columns =
        ["effect on TCP", "rank correlation", "repeats", "targets and workloads", "conclusion"];
    let effects = [
        ("timeouts_count", "timeouts"),
        ("retransmits_ratio", "share of retransmitted segments"),
        (gelberger2013::TCP, "throughput"),
    ];
    let row = |(name, words): (&'static str, &str)| {
        let groups = gelberger2013::against_variation(record, named(name)).len();
        if groups == 0 {
            return None;
        }
        let Some((found, estimate, groups)) = gelberger2013::correlation(record, named(name))
        else {
            let same = Entry::word("none: all values are equal");
            let rest = [Entry::default(), Entry::number(groups.to_string())];
            let answer = Entry::word("undecided");
            return Some(
                [Entry::word(words), same].into_iter().chain(rest).chain([answer]).collect(),
            );
        };
        let mut value = Entry::number(number::text(found.value));
        value.range = found
            .interval
            .map_or("too few for an interval".into(), |it| number::range(&it, number::text));
        let answer = match estimate.against(0.0) {
            Conclusion::Greater => "increases with the variation",
            Conclusion::Smaller => "decreases with the variation",
            Conclusion::Equivalent | Conclusion::Undecided(_) => "undecided",
        };
        Some(vec![
            Entry::word(words),
            value,
            Entry::number(found.pairs.to_string()),
            Entry::number(groups.to_string()),
            Entry::word(answer),
        ])
    };
    let rows = effects.into_iter().filter_map(row).collect();
    Table { columns: columns.map(Into::into).into(), rows }
}
