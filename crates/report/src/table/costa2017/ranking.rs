//! Rank of a target among the study's nine switches, per criterion.
//!
//! Source: costa2017, tables III to VIII and section IV-E, which states that the choice of a switch
//! depends on the application. The study's value is the middle of its interval. Invariants:
//!
//! - A target without a measurement has no rank; equal values share the better rank.
//! - A rank that the interval of a value leaves open is a range.

use super::{Entry, Sheet, Table, conformance, endurance, filled, paths, run_of};
use record::links::Naming;
use record::number;
use record::{Cell, Experiment, Metric, Name, Published, Reason, Record, Target};
use stats::conclude::{Conclusion, Estimate};

/// A ranking criterion.
struct Criterion {
    name: &'static str,
    item: &'static str,
    /// Prefix of the study's values. Those of an interval end in `_low` and `_high`.
    published: &'static str,
    metric: &'static str,
    x: Option<f64>,
    /// Number of rules that fit, for a criterion about a full table.
    rules: &'static str,
    /// Factor from the measured unit to the study's unit.
    factor: f64,
    is_less_better: bool,
    unit: &'static str,
    means: &'static str,
}

const CRITERIA: [Criterion; 6] = [
    Criterion {
        name: "delay of a match by IP",
        item: "table3",
        published: "ip_rtt_ms",
        metric: "ip_rtt_ns_mean",
        x: None,
        rules: "",
        factor: 1e-6,
        is_less_better: true,
        unit: "ms",
        means: "cost of every packet; matters if requests wait for replies",
    },
    Criterion {
        name: "delay with a full table",
        item: "table5",
        published: "multiple_rtt_ms",
        metric: "exact_rtt_ns_mean",
        x: Some(100.0),
        rules: "exact_taken_rules",
        factor: 1e-6,
        is_less_better: true,
        unit: "ms",
        means: "cost of packets with many flows",
    },
    Criterion {
        name: "table capacity",
        item: "table4",
        published: "openflow_rules",
        metric: "exact_accepted_rules",
        x: None,
        rules: "",
        factor: 1.0,
        is_less_better: false,
        unit: "rules",
        means: "number of flows that a controller can distinguish",
    },
    Criterion {
        name: "flow statistics of a nearly full table",
        item: "table7",
        published: "nearly_full_heavy_flow_stats_ms",
        metric: "heavy_flow_reply_ns_mean",
        x: Some(90.0),
        rules: "taken_rules",
        factor: 1e-6,
        is_less_better: true,
        unit: "ms",
        means: "how frequently a controller can read its flows",
    },
    Criterion {
        name: "port statistics with a nearly full table",
        item: "table8",
        published: "nearly_full_heavy_port_stats_ms",
        metric: "heavy_port_reply_ns_mean",
        x: Some(90.0),
        rules: "taken_rules",
        factor: 1e-6,
        is_less_better: true,
        unit: "ms",
        means: "how frequently a controller can read its links",
    },
    Criterion {
        name: "kinds of rewrite applied, of five",
        item: "table6",
        published: "",
        metric: "",
        x: None,
        rules: "",
        factor: 1.0,
        is_less_better: false,
        unit: "",
        means: "possible functions: address translation, load balancing, marking",
    },
];

/// The study's kinds of rewriting: their names, and the prefixes of the cells.
const REWRITES: [(&str, &str); 5] = [
    ("mac", "mac"),
    ("ip", "ip"),
    ("vlan_priority", "vlan_priority"),
    ("ip_tos", "ip_tos"),
    ("udp_port", "udp_ports"),
];

const STANDING: &str = "Rank of each target among the study's nine switches and itself; 1 is the best. The \
                        study's delays include its hosts (about 0.1 ms per round trip), which favours \
                        the targets measured here. There is no rank if the item was not run, or if \
                        the target is not an OpenFlow switch. A value that is only a bound, or was \
                        disturbed or simulated, has a reason instead of a rank.";

const WAYS: &str = "\
    Signs of software: more than 150 µs one way, a 99th percentile more than 25 % above the \
    median, more than 10 % slower with a rewrite or a full table, or more than twice the time of \
    the same device without OpenFlow. A type with at most 90 % of the slowest type's time uses \
    another path than that one: hardware, even if rules that do not fit use the slow path. \
    Rewrites and full tables are signs for the types whose round trips are like those of the \
    rules they were tried with. Undecided: no sign is certain, and the interval of a value \
    contains its limit or the tester disturbed it. Limits of the method: it measures delays, not \
    paths. A fast and steady processor looks like hardware; a slow or disturbed link looks like \
    software. A program on this host is software, whatever its delays are.";

/// The final sheets: ranks and paths.
pub(super) fn sheets(record: &Record, experiment: &Experiment) -> Vec<Sheet> {
    filled(vec![
        Sheet {
            title: "Rank among the study's switches",
            reading: STANDING,
            tables: vec![places(record, experiment)],
        },
        Sheet {
            title: "Hardware or software path",
            reading: WAYS,
            tables: vec![ways(record, experiment)],
        },
        Sheet {
            title: "Supported features",
            reading: conformance::READING,
            tables: vec![conformance::table(record, experiment)],
        },
        Sheet {
            title: "Control plane capacity",
            reading: endurance::READING,
            tables: vec![endurance::table(record)],
        },
    ])
}

pub(super) fn places(record: &Record, experiment: &Experiment) -> Table {
    let columns = ["target", "criterion", "measured", "rank", "better switches", "meaning"];
    let naming = Naming::within(record, &experiment.id);
    let mut rows = Vec::new();
    for target in &record.targets {
        for criterion in &CRITERIA {
            let Some(Measured { value, text, not_ranked }) = measured(record, target, criterion)
            else {
                continue;
            };
            let theirs = theirs(record, criterion);
            if theirs.is_empty() {
                continue;
            }
            let is_ahead = |theirs: f64| match (value.against(theirs), criterion.is_less_better) {
                (Conclusion::Greater, true) | (Conclusion::Smaller, false) => Some(true),
                (Conclusion::Undecided(_), _) => None,
                _ => Some(false),
            };
            let those = |wanted: Option<bool>| {
                let names = theirs.iter().filter(|(_, it)| is_ahead(*it) == wanted);
                names.map(|(name, _)| name.as_str()).collect::<Vec<_>>()
            };
            let (ahead, open) = (those(Some(true)), those(None));
            let first = ahead.len() + 1;
            let (all, last) = (theirs.len() + 1, first + open.len());
            let place = match open[..] {
                [] => format!("{first} of {all}"),
                _ => format!("{first} to {last} of {all}"),
            };
            let mut ahead = ahead.join(", ");
            if !open.is_empty() {
                let parted = if ahead.is_empty() { "" } else { "; " };
                ahead = format!("{ahead}{parted}undecided: {}", open.join(", "));
            }
            let (place, ahead) = match not_ranked {
                None => (Entry::number(place), ahead),
                Some(reason) => (Entry::default(), format!("not ranked: {reason}")),
            };
            rows.push(vec![
                Entry::word(naming.of(&target.name)),
                Entry::word(criterion.name),
                Entry::number(format!("{text} {}", criterion.unit).trim().to_string()),
                place,
                Entry::word(ahead),
                Entry::word(criterion.means),
            ]);
        }
    }
    Table { columns: columns.map(Into::into).into(), rows }
}

/// A target's value in the study's unit.
struct Measured {
    value: Estimate,
    text: String,
    /// Why it has no rank.
    not_ranked: Option<String>,
}

fn measured(record: &Record, target: &Target, criterion: &Criterion) -> Option<Measured> {
    if criterion.metric.is_empty() {
        let count = rewrites(record, target)?;
        let (value, text) = (Estimate::exact(count), number::text(count));
        return Some(Measured { value, text, not_ranked: None });
    }
    let cell = cell(record, target, criterion.item, criterion.metric, criterion.x)?;
    let shown = Cell {
        value: cell.value * criterion.factor,
        resolution: cell.resolution.map(|each| each * criterion.factor),
        ..cell.clone()
    };
    let reason =
        Estimate::of(cell).excluded().or(cell.bound.map(|bound| Reason::Bounded { bound }));
    let rules = self::cell(record, target, criterion.item, criterion.rules, criterion.x);
    let not_full = rules
        .and_then(|rules| rules.bound)
        .map(|bound| format!("the table was not full, since {}", bound.cause));
    let not_ranked = reason.map(|reason| reason.to_string()).or(not_full);
    let text = number::of_cell_in(&shown, criterion.unit);
    let value = Estimate::of(cell).map(|it| it * criterion.factor);
    Some(Measured { value, text, not_ranked })
}

fn cell<'a>(
    record: &'a Record,
    target: &'a Target,
    item: &str,
    name: &str,
    x: Option<f64>,
) -> Option<&'a Cell> {
    let metric = Metric::Named(Name::read(name).ok()?);
    let experiment = run_of(record, item)?;
    record.cells_of(&experiment.id, &target.name, metric).find(|cell| {
        let curve = cell.point.within.as_ref().map_or(0.0, |within| within.value);
        curve == 0.0 && x.is_none_or(|x| cell.point.value == x)
    })
}

/// Number of the study's kinds of rewriting that were accepted and performed.
fn rewrites(record: &Record, target: &Target) -> Option<f64> {
    cell(record, target, "table6", "none_rtt_ns_mean", None)?;
    let is_done = |kind: &str| {
        let value = |what: &str| {
            cell(record, target, "table6", &format!("{kind}_{what}"), None).map(|it| it.value)
        };
        conformance::Came::of(value).is_some_and(conformance::Came::works)
    };
    Some(REWRITES.iter().filter(|(_, kind)| is_done(kind)).count() as f64)
}

/// The study's switches with their values.
fn theirs(record: &Record, criterion: &Criterion) -> Vec<(String, f64)> {
    let here = |value: &&Published| value.study == "costa2017" && value.item == criterion.item;
    let values: Vec<&Published> = record.published.iter().filter(here).collect();
    let mut switches: Vec<&str> = values.iter().map(|it| it.subject.as_str()).collect();
    switches.dedup();
    let of = |switch: &str, name: &str| {
        values.iter().find(|it| it.subject == switch && it.metric == name).map(|it| it.value)
    };
    let value = |switch: &str| match criterion.metric {
        "" => {
            let is_done = |kind: &str| of(switch, &format!("{kind}_rtt_ms_low")).is_some();
            Some(REWRITES.iter().filter(|(kind, _)| is_done(kind)).count() as f64)
        }
        _ => {
            let ends =
                ["low", "high"].map(|end| of(switch, &format!("{}_{end}", criterion.published)));
            match ends {
                [Some(low), Some(high)] => Some((low + high) / 2.0),
                _ => of(switch, criterion.published),
            }
        }
    };
    switches.iter().filter_map(|switch| Some((switch.to_string(), value(switch)?))).collect()
}

fn ways(record: &Record, experiment: &Experiment) -> Table {
    let columns = ["target", "match type", "path", "evidence"];
    let naming = Naming::within(record, &experiment.id);
    let rows = record.targets.iter().flat_map(|target| {
        let name = naming.of(&target.name);
        let is_software = paths::is_known_software(target);
        paths::ways(record, target).into_iter().map(move |judged| {
            let by = match judged.way {
                paths::Way::Software => paths::Way::Software.word(),
                _ if is_software => "software, since it runs on this host",
                way => way.word(),
            };
            vec![
                Entry::word(name.clone()),
                Entry::word(judged.word),
                Entry::word(by),
                Entry::word(judged.evidence.join("; ")),
            ]
        })
    });
    Table { columns: columns.map(Into::into).into(), rows: rows.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::costa2017::made;
    use record::{Bound, BoundCause, BoundSide, Point};

    /// The place and the reason of these delays behind a full table, whose number of rules has this bound.
    fn place(us: &[f64], bound: Option<Bound>) -> [String; 2] {
        let delays: Vec<f64> = us.iter().map(|us| us * 1e3).collect();
        let rules = vec![20_000.0; us.len()];
        let values: [(_, _, &[f64]); 2] =
            [("exact_rtt_ns_mean", 100.0, &delays), ("exact_taken_rules", 100.0, &rules)];
        let mut record = made::tell(made::run("table5"), &values);
        record.cells[1].bound = bound;
        let printed = |subject: &str, end: &str, ms: f64| Published {
            study: "costa2017".into(),
            item: "table5".into(),
            subject: subject.into(),
            point: Point::new("switch", 1.0),
            metric: format!("multiple_rtt_ms_{end}"),
            value: ms,
            text: None,
        };
        record.published = [("A", 0.1), ("B", 0.3)]
            .into_iter()
            .flat_map(|(name, ms)| [printed(name, "low", ms), printed(name, "high", ms)])
            .collect();
        let rows = places(&record, &record.experiments[0]).rows;
        let [row] = &rows[..] else { panic!("one criterion") };
        [3, 4].map(|column: usize| row[column].text.clone())
    }

    #[test]
    fn a_table_that_was_not_full_has_no_place_among_full_ones() {
        let delays = [200.0, 201.0, 202.0];
        assert_eq!(place(&delays, None), ["2 of 3", "A"]);
        let bound = Bound { side: BoundSide::Lower, cause: BoundCause::SearchLimit };
        let reason =
            "not ranked: the table was not full, since the search ended at its largest value";
        assert_eq!(place(&delays, Some(bound)), ["", reason]);
    }

    #[test]
    fn a_place_that_the_interval_leaves_open_is_a_range() {
        assert_eq!(place(&[200.0, 201.0, 330.0], None), ["1 to 3 of 3", "undecided: A, B"]);
        assert_eq!(place(&[280.0, 290.0, 310.0], None), ["2 to 3 of 3", "A; undecided: B"]);
    }
}
