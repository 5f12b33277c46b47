//! The tables of costa2017: the nine rows of the study, followed by the rows of this run.
//!
//! Source: tables III to VIII of the study. As in the study, values are mean delays in milliseconds
//! with 99 % intervals. Each row states whether it is from the study or measured. A value measured
//! once has the interval of its packets. Invariant: a column without a measurement is empty.

pub mod paths;
pub mod sockets;
mod ranking;
pub(crate) mod conformance;
mod endurance;
mod identification;
/// Runs for tests.
#[cfg(test)]
mod made;

use super::rfc::Sheet;
use super::{Entry, Mark, Table};
use crate::analysis::costa2017::{SpeedUp, speed_ups};
use record::links::Naming;
use record::number;
use record::{Cell, Experiment, Metric, Name, Reason, Record};
use stats::conclude::{Conclusion, Estimate, conclude, undisturbed};
use stats::series;
use stats::series::paired;

/// Two delays within this relative difference are equivalent.
pub const EQUIVALENT_RATIO: f64 = 0.05;

/// A column: its heading, the prefix of the study's values, and the source of the measured values.
struct Column {
    heading: &'static str,
    published: &'static str,
    metric: &'static str,
    /// Point on the axis, if the experiment has several.
    x: Option<f64>,
    /// The curve, if the experiment has several.
    curve: Option<f64>,
}

const fn column(
    heading: &'static str,
    published: &'static str,
    metric: &'static str,
    x: Option<f64>,
    curve: Option<f64>,
) -> Column {
    Column { heading, published, metric, x, curve }
}

/// One packet in flight.
const CLOSED: Option<f64> = Some(0.0);

const TYPES: &[Column] = &[
    column("port", "port_rtt_ms", "port_rtt_ns_mean", None, CLOSED),
    column("MAC", "mac_rtt_ms", "mac_rtt_ns_mean", None, CLOSED),
    column("IP", "ip_rtt_ms", "ip_rtt_ns_mean", None, CLOSED),
    column("UDP port", "udp_port_rtt_ms", "udp_port_rtt_ns_mean", None, CLOSED),
    column("exact", "exact_rtt_ms", "exact_rtt_ns_mean", None, CLOSED),
    column("without OpenFlow", "", "legacy_rtt_ns_mean", None, CLOSED),
];

const COUNTS: &[Column] = &[
    column("one rule", "one_rtt_ms", "exact_rtt_ns_mean", Some(0.0), CLOSED),
    column("multiple rules", "multiple_rtt_ms", "exact_rtt_ns_mean", Some(100.0), CLOSED),
    column("one rule, wildcard", "", "wildcard_rtt_ns_mean", Some(0.0), CLOSED),
    column("multiple rules, wildcard", "", "wildcard_rtt_ns_mean", Some(100.0), CLOSED),
];

const REWRITES: &[Column] = &[
    column("no rewrite", "none_rtt_ms", "none_rtt_ns_mean", None, CLOSED),
    column("MAC", "mac_rtt_ms", "mac_rtt_ns_mean", None, CLOSED),
    column("IP", "ip_rtt_ms", "ip_rtt_ns_mean", None, CLOSED),
    column("VLAN priority", "vlan_priority_rtt_ms", "vlan_priority_rtt_ns_mean", None, CLOSED),
    column("IP ToS", "ip_tos_rtt_ms", "ip_tos_rtt_ns_mean", None, CLOSED),
    column("UDP port", "udp_port_rtt_ms", "udp_ports_rtt_ns_mean", None, CLOSED),
];

/// Fill level of the nearly full table in percent.
const NEARLY: f64 = 90.0;

const FLOW_STATS: &[Column] = &[
    column(
        "one rule, light load",
        "one_rule_light_flow_stats_ms",
        "light_flow_reply_ns_mean",
        Some(0.0),
        None,
    ),
    column(
        "one rule, heavy load",
        "one_rule_heavy_flow_stats_ms",
        "heavy_flow_reply_ns_mean",
        Some(0.0),
        None,
    ),
    column(
        "nearly full, light",
        "nearly_full_light_flow_stats_ms",
        "light_flow_reply_ns_mean",
        Some(NEARLY),
        None,
    ),
    column(
        "nearly full, heavy",
        "nearly_full_heavy_flow_stats_ms",
        "heavy_flow_reply_ns_mean",
        Some(NEARLY),
        None,
    ),
];

const PORT_STATS: &[Column] = &[
    column(
        "one rule, light load",
        "one_rule_light_port_stats_ms",
        "light_port_reply_ns_mean",
        Some(0.0),
        None,
    ),
    column(
        "one rule, heavy load",
        "one_rule_heavy_port_stats_ms",
        "heavy_port_reply_ns_mean",
        Some(0.0),
        None,
    ),
    column(
        "nearly full, light",
        "nearly_full_light_port_stats_ms",
        "light_port_reply_ns_mean",
        Some(NEARLY),
        None,
    ),
    column(
        "nearly full, heavy",
        "nearly_full_heavy_port_stats_ms",
        "heavy_port_reply_ns_mean",
        Some(NEARLY),
        None,
    ),
];

const CAPACITIES: &[Column] = &[
    column("legacy mode", "legacy_rules", "mac_addresses_learned", None, None),
    column("legacy mode, routes", "", "routes_count", None, None),
    column("OpenFlow mode, exact", "openflow_rules", "exact_accepted_rules", None, None),
    column("OpenFlow mode, wildcard", "", "wildcard_accepted_rules", None, None),
];

/// Match types that are compared with the port match.
const AGAINST_PORT: [(&str, &str); 4] = [
    ("MAC", "mac_rtt_ns_mean"),
    ("IP", "ip_rtt_ns_mean"),
    ("UDP port", "udp_port_rtt_ns_mean"),
    ("exact", "exact_rtt_ns_mean"),
];

/// The sheets of an item of the study.
pub(super) fn sheets(record: &Record, experiment: &Experiment, item: &str) -> Vec<Sheet> {
    let (title, reading, columns) = match item {
        "table3" => ("Table III: delay by type of match", DELAYS, TYPES),
        "table5" => ("Table V: delay with one rule and with a full table", DELAYS, COUNTS),
        "table6" => ("Table VI: delay with header rewrites", REWRITTEN, REWRITES),
        "table4" => ("Table IV: table capacity in rules", FITTING, CAPACITIES),
        "table7" => ("Table VII: delay of flow statistics", STATISTICS, FLOW_STATS),
        "table8" => ("Table VIII: delay of port statistics", STATISTICS, PORT_STATS),
        "fig6" => {
            let (title, reading) = ("Speed-up of OpenFlow mode", SPEED_UPS);
            return filled(vec![Sheet { title, reading, tables: vec![modes(record, experiment)] }]);
        }
        "table1" => {
            let (title, reading) = ("Table I: the switches", identification::READING);
            let tables = vec![identification::table(record, experiment)];
            return filled(vec![Sheet { title, reading, tables }]);
        }
        "sockets" => return filled(vec![sockets::sheet(record, experiment)]),
        // The summary already contains them.
        "messages" if run_of(record, "discussion").is_some() => return Vec::new(),
        "messages" => {
            let (title, reading) = ("Control plane capacity", endurance::READING);
            return filled(vec![Sheet { title, reading, tables: vec![endurance::table(record)] }]);
        }
        "discussion" => return ranking::sheets(record, experiment),
        _ => return Vec::new(),
    };
    let mut found = vec![Sheet { title, reading, tables: vec![rows(record, experiment, columns)] }];
    if item == "table3" {
        found.push(Sheet {
            title: "Equivalence of the match types",
            reading: EQUIVALENCE,
            tables: vec![types(record, experiment)],
        });
    }
    filled(found)
}

/// The experiment of an item in this run. The experiment for the target's rank also has the round
/// trips by match type.
fn run_of<'a>(record: &'a Record, item: &str) -> Option<&'a Experiment> {
    let of = |wanted: &str| {
        let mut all = record.experiments.iter();
        all.find(|it| {
            it.study.as_deref() == Some("costa2017") && it.item.as_deref() == Some(wanted)
        })
    };
    of(item).or_else(|| of("discussion").filter(|_| item == "table3"))
}

/// Keeps the sheets that have contents.
fn filled(mut sheets: Vec<Sheet>) -> Vec<Sheet> {
    sheets.retain(|sheet| sheet.tables.iter().all(|table| !table.rows.is_empty()));
    sheets
}

const DELAYS: &str = "\
    Mean round-trip times in milliseconds, each above its 99 % confidence interval. The study's \
    times include the operating systems of client and server. The times measured here include \
    the links and the tester's ports, and no host.";

const REWRITTEN: &str = "\
    Mean round-trip times in milliseconds, each above its 99 % confidence interval. A rewrite \
    that the switch rejects has no time. A rewrite that it accepts and does not do is marked.";

const STATISTICS: &str = "\
    Mean delays in milliseconds, from the request to the last part of the reply, each above the \
    99 % confidence interval of the repeats. Nearly full is 90 % of the rules that the switch \
    accepted. A switch that accepted every rule that was tried was not full; the table above has \
    the number of rules.";

const FITTING: &str = "\
    The study does not state whether its OpenFlow rules were exact. The sign ≥ marks a search \
    that ended at its largest value: the capacity is larger. Access lists of legacy mode are not \
    counted, since the tester cannot program them. The table above has the rules that the switch \
    accepted and that do not act.";

const SPEED_UPS: &str = "\
    Legacy time divided by OpenFlow time, as in the study, repeat by repeat, with the 95 % \
    confidence interval. Below 1, OpenFlow is slower. Legacy mode is the switch's own forwarding \
    by one rule (NORMAL), a bridge or router of the same family, or a model's hardware without \
    OpenFlow.";

const EQUIVALENCE: &str = "\
    The mean of each type divided by that of the match by port, repeat by repeat, with its 95 % \
    confidence interval. Equivalent: this interval lies within 5 % of 1. Different: the 99 % \
    interval lies beyond 5 %. Otherwise undecided. The effect size d is the mean difference of the \
    logarithms divided by their standard deviation (Cohen's d for pairs): small below 0.2, large \
    from 0.8 on.";

fn metric(name: &'static str) -> Metric {
    let listed = Metric::ALL.into_iter().find(|metric| metric.name() == name);
    listed.unwrap_or(Metric::Named(Name::of(name)))
}

fn found<'a>(
    record: &'a Record,
    experiment: &'a Experiment,
    target: &'a str,
    column: &Column,
) -> Option<&'a Cell> {
    record.cells_of(&experiment.id, target, metric(column.metric)).find(|cell| {
        let curve = cell.point.within.as_ref().map(|within| within.value);
        column.x.is_none_or(|x| cell.point.value == x)
            && column.curve.is_none_or(|value| curve == Some(value))
    })
}

fn rows(record: &Record, experiment: &Experiment, columns: &[Column]) -> Table {
    let measured = measured(record, experiment, columns);
    if measured.is_empty() {
        return Table::default();
    }
    let headings = ["switch", "from"].into_iter().chain(columns.iter().map(|it| it.heading));
    let mut rows = published(record, experiment, columns);
    rows.extend(measured);
    Table { columns: headings.map(Into::into).collect(), rows }
}

fn published(record: &Record, experiment: &Experiment, columns: &[Column]) -> Vec<Vec<Entry>> {
    let here = |value: &&record::Published| {
        experiment.study.as_ref() == Some(&value.study)
            && experiment.item.as_ref() == Some(&value.item)
    };
    let values: Vec<_> = record.published.iter().filter(here).collect();
    let mut subjects: Vec<&str> = Vec::new();
    for value in &values {
        if !subjects.contains(&value.subject.as_str()) {
            subjects.push(&value.subject);
        }
    }
    let of = |subject: &str, name: String| {
        values.iter().find(|it| it.subject == subject && it.metric == name).map(|it| it.value)
    };
    let row = |subject: &&str| {
        let mut row = vec![Entry::word(*subject), Entry::word("the study")];
        row.extend(columns.iter().map(|column| {
            let [low, high] =
                ["low", "high"].map(|end| of(subject, format!("{}_{end}", column.published)));
            match (low.zip(high), of(subject, column.published.into())) {
                (Some((low, high)), _) => Entry::number(range(low, high)),
                (None, Some(count)) => Entry::number(number::count(count as i64)),
                (None, None) => Entry::default(),
            }
        }));
        row
    };
    subjects.iter().map(row).collect()
}

fn range(low: f64, high: f64) -> String {
    format!("[{}, {}]", number::text(low), number::text(high))
}

fn measured(record: &Record, experiment: &Experiment, columns: &[Column]) -> Vec<Vec<Entry>> {
    let naming = Naming::within(record, &experiment.id);
    let row = |target: &record::Target, open: Option<f64>| {
        let at = |column: &Column| Column { curve: open.or(column.curve), ..*column };
        let columns: Vec<Column> = columns.iter().map(at).collect();
        let cells: Vec<Option<&Cell>> =
            columns.iter().map(|column| found(record, experiment, &target.name, column)).collect();
        cells.iter().any(Option::is_some).then(|| {
            let from = open.map_or_else(
                || "measured".to_owned(),
                |pps| format!("measured, {} packets/s", number::setting(pps)),
            );
            let mut row = vec![Entry::word(naming.of(&target.name)), Entry::word(from)];
            let entries = columns.iter().zip(cells).map(|(column, cell)| {
                cell.map_or_else(
                    || absent(record, experiment, &target.name, column),
                    |cell| entry(record, experiment, cell, column),
                )
            });
            row.extend(entries);
            row
        })
    };
    let rows = |target: &record::Target| {
        if let Some(why) = experiment.left_out.get(&target.name) {
            let name = Entry::word(naming.of(&target.name));
            return vec![left_out(name, why, columns.len())];
        }
        let open = open_loops(record, experiment, target, columns);
        let loops = [None].into_iter().chain(open.into_iter().map(Some));
        loops.filter_map(|open| row(target, open)).collect::<Vec<_>>()
    };
    record.targets.iter().flat_map(rows).collect()
}

/// Packet rates of open-loop measurements of a target.
fn open_loops(
    record: &Record,
    experiment: &Experiment,
    target: &record::Target,
    columns: &[Column],
) -> Vec<f64> {
    let closed = columns.iter().filter(|column| column.curve == CLOSED);
    let cells = closed
        .flat_map(|column| record.cells_of(&experiment.id, &target.name, metric(column.metric)));
    let curves = cells.filter_map(|cell| cell.point.within.as_ref().map(|within| within.value));
    let mut rates: Vec<f64> = curves.filter(|pps| *pps > 0.0).collect();
    rates.sort_by(f64::total_cmp);
    rates.dedup();
    rates
}

/// The row of a target that the experiment skipped.
fn left_out(name: Entry, why: &str, columns: usize) -> Vec<Entry> {
    let mut row = vec![name, Entry::word("skipped"), Entry::word(why)];
    row.resize(columns + 2, Entry::default());
    row
}

/// A mean in milliseconds with its interval, and the outcome of a rewrite that was not performed.
fn entry(record: &Record, experiment: &Experiment, cell: &Cell, column: &Column) -> Entry {
    if cell.metric.unit() != "ns" {
        let mut entry = Entry::cell(cell);
        let of = |what: &str| beside(record, experiment, cell, column.metric, what);
        if of("is_silent_count").is_some_and(|silent| silent > 0.0) {
            entry.text = format!("{}, then no reply", entry.text);
        } else if of("is_full_count") == Some(0.0) && cell.bound.is_none() {
            entry.text = format!("at least {}", entry.text);
        }
        return entry;
    }
    let ms = |ns: f64| ns / 1e6;
    let ends = match (&cell.interval_99, cell.resolution) {
        (Some(interval), _) => Some((interval.low, interval.high)),
        (None, Some(each)) => Some(((cell.value - each).max(0.0), cell.value + each)),
        (None, None) => None,
    };
    let mut entry = Entry::number(number::text(ms(cell.value)));
    entry.range = ends.map_or("n=1".into(), |(low, high)| range(ms(low), ms(high)));
    entry.warnings = cell.warnings.iter().map(Mark::from).collect();
    entry.trials.clone_from(&cell.trials);
    entry.warnings.extend(not_full(record, experiment, cell, column));
    let of = |what: &str| beside(record, experiment, cell, column.metric, what);
    let share = || number::text((1.0 - of("right_ratio").unwrap_or(0.0)) * 100.0);
    entry.warnings.extend(match conformance::Came::of(of) {
        Some(conformance::Came::Ignored) if of("right_ratio").is_some() => {
            let text = format!("accepted, but not applied to {} % of the packets", share());
            Some(Mark::new("not applied", text))
        }
        Some(conformance::Came::Unstable) if of("right_ratio").is_some() => {
            let text = format!("unstable: {} % of the packets were incorrect", share());
            Some(Mark::new("unstable", text))
        }
        Some(conformance::Came::Works { late_ns: Some(ns) }) => {
            let text = format!("takes effect {} ms after its barrier reply", number::text(ms(ns)));
            Some(Mark::new("late", text))
        }
        _ => None,
    });
    entry
}

/// A mark for a delay over a table that is called full, if the switch accepted every rule that was tried.
fn not_full(
    record: &Record,
    experiment: &Experiment,
    cell: &Cell,
    column: &Column,
) -> Option<Mark> {
    column.x.filter(|percent| *percent > 0.0)?;
    // Both kinds of statistics have one table.
    let stem = if column.metric.contains("_reply_") { "" } else { stem(column.metric) };
    let metric = Metric::Named(Name::read(&format!("{stem}taken_rules")).ok()?);
    let mut cells = record.cells_of(&experiment.id, &cell.target, metric);
    let taken = cells.find(|taken| taken.point == cell.point && taken.bound.is_some())?;
    let rules = number::value(metric, taken.value);
    let sentence =
        format!("the switch accepted all {rules} rules that were tried: its table was not full");
    Some(Mark::new("not full", sentence))
}

/// The common prefix of metrics that are shown together.
fn stem(metric: &str) -> &str {
    let ends = ["rtt_ns_mean", "reply_ns_mean", "accepted_rules"];
    ends.iter().find_map(|end| metric.strip_suffix(end)).unwrap_or_default()
}

/// Why there is no delay: the switch rejected the rule, nothing came back, or the reply arrived
/// while the tester was descheduled.
fn absent(record: &Record, experiment: &Experiment, target: &str, column: &Column) -> Entry {
    let stem = stem(column.metric);
    let told = |what: &str| {
        let metric = Metric::Named(Name::read(&format!("{stem}{what}")).ok()?);
        let cell = record
            .cells_of(&experiment.id, target, metric)
            .find(|cell| column.x.is_none_or(|x| cell.point.value == x));
        cell.map(|cell| cell.value)
    };
    let answered = told("answered_ratio");
    if told("endless_count").is_some_and(|count| count > 0.0) {
        return Entry::word("endless reply");
    }
    match (told("refused_count"), told("returned_ratio"), answered) {
        (Some(refused), ..) if refused > 0.0 => Entry::word("rejected"),
        (_, Some(0.0), _) => Entry::word("no packet returned"),
        (.., Some(0.0)) => Entry::word("no reply"),
        (.., Some(_)) => Entry::word("reply while the tester was descheduled"),
        _ => Entry::default(),
    }
}

/// Other values measured at the point of a cell.
fn beside(
    record: &Record,
    experiment: &Experiment,
    cell: &Cell,
    metric: &str,
    what: &str,
) -> Option<f64> {
    let metric = Metric::Named(Name::read(&format!("{}{what}", stem(metric))).ok()?);
    let mut cells = record.cells_of(&experiment.id, &cell.target, metric);
    cells.find(|other| other.point == cell.point).map(|other| other.value)
}

/// Equivalence of two means from pairs of repeats.
pub(crate) struct Equivalence {
    /// Ratio of the means, central value.
    pub ratio: f64,
    /// Its 95 % confidence interval.
    pub interval: Option<record::Interval>,
    /// Cohen's d for pairs.
    pub effect: Option<f64>,
    /// Text: equivalent, different or undecided, with the reason if it is not only scatter.
    pub answer: String,
}

/// Compares two means repeat by repeat.
pub(crate) fn equivalence(cell: &Cell, base: &Cell) -> Option<Equivalence> {
    let found = Estimate::ratio(cell, base);
    if found.n == 0 || !found.value.is_finite() {
        return None;
    }
    let answer = match conclude(&found, 1.0 - EQUIVALENT_RATIO, 1.0 + EQUIVALENT_RATIO) {
        Conclusion::Equivalent => "equivalent".into(),
        Conclusion::Greater | Conclusion::Smaller => "different".into(),
        Conclusion::Undecided(Reason::Overlap) => "undecided".into(),
        Conclusion::Undecided(reason) => format!("undecided: {reason}"),
    };
    let pairs = paired(&undisturbed(cell), &undisturbed(base));
    let logs: Vec<f64> = pairs.iter().map(|(value, base)| (value / base).ln()).collect();
    let effect = series::mean(&logs).zip(series::deviation(&logs));
    let effect = effect.filter(|(_, deviation)| *deviation > 0.0).map(|(mean, by)| mean / by);
    Some(Equivalence { ratio: found.value, interval: found.interval, effect, answer })
}

/// Ranks of each target among the switches of the study: the criterion, and the rank such as `2 of
/// 10`.
pub(crate) fn places_by_target(
    record: &Record,
    experiment: &Experiment,
) -> Vec<(String, Vec<(String, String)>)> {
    let mut found: Vec<(String, Vec<(String, String)>)> = Vec::new();
    for row in ranking::places(record, experiment).rows {
        let [target, criterion, _, place, ..] = &row[..] else { continue };
        // Targets without a rank are omitted.
        if place.text.is_empty() {
            continue;
        }
        let place = (criterion.text.clone(), place.text.clone());
        match found.iter_mut().find(|(known, _)| *known == target.text) {
            Some((_, places)) => places.push(place),
            None => found.push((target.text.clone(), vec![place])),
        }
    }
    found
}

fn modes(record: &Record, experiment: &Experiment) -> Table {
    let columns = ["target", "legacy mode", "packet size, bytes", "packets", "speed-up"];
    let row = |it: SpeedUp| {
        let packets = match it.packets_per_s > 0.0 {
            true => format!("{} per second", number::setting(it.packets_per_s)),
            false => "one in flight".into(),
        };
        vec![
            Entry::word(it.label),
            Entry::word(it.legacy),
            Entry::number(number::setting(it.bytes)),
            Entry::word(packets),
            Entry::ratio(it.ratio, it.interval),
        ]
    };
    let rows = speed_ups(record, experiment).into_iter().map(row).collect();
    Table { columns: columns.map(Into::into).into(), rows }
}

fn types(record: &Record, experiment: &Experiment) -> Table {
    let columns = ["target", "type", "time / match by port", "effect size, d", "conclusion"];
    let naming = Naming::within(record, &experiment.id);
    let mut rows = Vec::new();
    for target in &record.targets {
        let of = |metric: &'static str| {
            found(record, experiment, &target.name, &column("", "", metric, None, CLOSED))
        };
        let Some(base) = of("port_rtt_ns_mean") else { continue };
        for (name, metric) in AGAINST_PORT {
            let Some(it) = of(metric).and_then(|cell| equivalence(cell, base)) else { continue };
            let effect = it.effect.map_or_else(Entry::default, |d| Entry::number(number::text(d)));
            rows.push(vec![
                Entry::word(naming.of(&target.name)),
                Entry::word(name),
                Entry::ratio(it.ratio, it.interval),
                effect,
                Entry::word(it.answer.clone()),
            ]);
        }
    }
    Table { columns: columns.map(Into::into).into(), rows }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::{Bound, BoundCause, BoundSide, Exclusion};

    #[test]
    fn a_delay_over_a_table_that_was_not_full_is_marked() {
        let values: [(_, _, &[f64]); 5] = [
            ("exact_rtt_ns_mean", 0.0, &[1e5, 1.1e5]),
            ("exact_rtt_ns_mean", 100.0, &[1e5, 1.1e5]),
            ("exact_taken_rules", 100.0, &[20_000.0, 20_000.0]),
            ("wildcard_rtt_ns_mean", 100.0, &[1e5, 1.1e5]),
            ("wildcard_taken_rules", 100.0, &[99.0, 99.0]),
        ];
        let mut record = made::tell(made::run("table5"), &values);
        // Round trips are curves, with one packet in flight.
        record
            .cells
            .iter_mut()
            .for_each(|it| it.point = it.point.clone().within("open_loop_pps", 0.0));
        record.cells[2].bound =
            Some(Bound { side: BoundSide::Lower, cause: BoundCause::SearchLimit });
        let sheets = sheets(&record, &record.experiments[0], "table5");
        let row = sheets[0].tables[0].rows.last().expect("it was measured");
        let marks: Vec<bool> = row[2..]
            .iter()
            .map(|it| it.warnings.iter().any(|mark| mark.brief == "not full"))
            .collect();
        assert_eq!(marks, [false, true, false, false]);
        let sentence = &row[3].warnings[0].sentence;
        assert!(sentence.contains("accepted all 20\u{202f}000 rules"), "{sentence}");
    }

    #[test]
    fn an_undecided_comparison_states_why() {
        let values: [(_, _, &[f64]); 2] =
            [("mac_rtt_ns_mean", 64.0, &[1e5, 1e5]), ("port_rtt_ns_mean", 64.0, &[1e5, 1e5])];
        let mut record = made::tell(made::run("table3"), &values);
        let answer = |record: &Record| {
            equivalence(&record.cells[0], &record.cells[1]).expect("both were measured").answer
        };
        assert_eq!(answer(&record), "equivalent");
        record.cells[0].exclusion = Some(Exclusion::Simulated);
        assert_eq!(answer(&record), "undecided: rates and times are simulated");
    }
}
