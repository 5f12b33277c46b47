//! Delay in the hosts: round trips of a client with a socket, minus round trips between the
//! tester's ports.
//!
//! Both are measured in interleaved trials with the same headers and rules, and subtracted repeat
//! by repeat. Invariant: an interval is that of the repeats' differences; a single repeat has none.

use super::{Sheet, metric, range};
use crate::table::{Entry, Mark, Table};
use record::links::Naming;
use record::number;
use record::{Cell, Experiment, Interval, Record};
use stats::interval::{self, LEVEL_PERCENT_HIGH};
use stats::series;
use stats::series::paired;

/// The match types, and the prefixes of their cells: between the tester's ports, and with sockets.
const TYPES: [(&str, [&str; 2]); 6] = [
    ("port", ["port_rtt_ns_mean", "port_sockets_rtt_ns_mean"]),
    ("MAC", ["mac_rtt_ns_mean", "mac_sockets_rtt_ns_mean"]),
    ("IP", ["ip_rtt_ns_mean", "ip_sockets_rtt_ns_mean"]),
    ("UDP port", ["udp_port_rtt_ns_mean", "udp_port_sockets_rtt_ns_mean"]),
    ("exact", ["exact_rtt_ns_mean", "exact_sockets_rtt_ns_mean"]),
    ("without OpenFlow", ["legacy_rtt_ns_mean", "legacy_sockets_rtt_ns_mean"]),
];

/// The difference of two means with its 99 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Difference {
    /// Mean of the repeats' differences, ns.
    pub ns: f64,
    /// Its interval; none for one repeat.
    pub interval: Option<Interval>,
}

/// Delay in the hosts at a point: the client's round trip minus that between the tester's ports.
pub fn difference(sockets: &Cell, ports: &Cell) -> Option<Difference> {
    let pairs = paired(sockets, ports);
    let differences: Vec<f64> = pairs.iter().map(|(client, tester)| client - tester).collect();
    let ns = series::mean(&differences)?;
    Some(Difference { ns, interval: interval::of_mean(&differences, LEVEL_PERCENT_HIGH) })
}

/// The cells of a type at each point that was measured both ways: tester ports first, then sockets.
pub fn pairs<'a>(
    record: &'a Record,
    experiment: &'a Experiment,
    target: &'a str,
    [ports, sockets]: [&'static str; 2],
) -> impl Iterator<Item = (&'a Cell, &'a Cell)> {
    let by_ports = record.cells_of(&experiment.id, target, metric(ports));
    by_ports.filter_map(move |cell| {
        let mut others = record.cells_of(&experiment.id, target, metric(sockets));
        Some((cell, others.find(|other| other.point == cell.point)?))
    })
}

const READING: &str = "Mean round-trip times in microseconds with their 99 % confidence intervals, one packet \
                       in flight. The times between the tester's ports include links and target. The \
                       times with sockets, as in the study, also include the operating systems of \
                       both hosts and the wake-ups of both programs. The difference is computed \
                       repeat by repeat. Ports and hosts use the same addresses, so the target \
                       treats both alike.";

/// A sheet of all types, sizes and targets.
pub(super) fn sheet(record: &Record, experiment: &Experiment) -> Sheet {
    let columns =
        ["target", "type", "packet size, bytes", "tester ports", "sockets", "difference: hosts"];
    let naming = Naming::within(record, &experiment.id);
    let us = |ns: f64| number::text(ns / 1e3);
    let ends =
        |it: Option<Interval>| it.map_or("n=1".into(), |it| range(it.low / 1e3, it.high / 1e3));
    let mean = |cell: &Cell| {
        let mut entry = Entry::number(us(cell.value));
        entry.range = ends(cell.interval_99);
        entry.warnings = cell.warnings.iter().map(Mark::from).collect();
        entry.trials.clone_from(&cell.trials);
        entry
    };
    let mut rows = Vec::new();
    for target in &record.targets {
        for (word, names) in TYPES {
            for (by_ports, by_sockets) in pairs(record, experiment, &target.name, names) {
                let Some(found) = difference(by_sockets, by_ports) else { continue };
                let mut taken = Entry::number(us(found.ns));
                taken.range = ends(found.interval);
                rows.push(vec![
                    Entry::word(naming.of(&target.name)),
                    Entry::word(word),
                    Entry::number(number::setting(by_ports.point.value)),
                    mean(by_ports),
                    mean(by_sockets),
                    taken,
                ]);
            }
        }
    }
    let tables = vec![Table { columns: columns.map(Into::into).into(), rows }];
    Sheet { title: "Delay of client and server", reading: READING, tables }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::{Metric, Name, Point};

    /// Returns a run that was measured in both ways, in ns.
    fn run(ports: &[f64], sockets: &[(u32, f64)]) -> Record {
        let mut record = sample::record();
        record.experiments.truncate(1);
        record.targets.truncate(1);
        let experiment = &mut record.experiments[0];
        experiment.id = "costa2017/sockets".into();
        (experiment.study, experiment.item) = (Some("costa2017".into()), Some("sockets".into()));
        let target = record.targets[0].name.clone();
        let like = record.cells.first().expect("the sample has cells").clone();
        let cell = |name: &'static str, values: Vec<(u32, f64)>| {
            let (repeats, samples): (Vec<u32>, Vec<f64>) = values.into_iter().unzip();
            Cell {
                experiment: "costa2017/sockets".into(),
                target: target.clone(),
                point: Point::new("frame_bytes", 64.0).within("open_loop_pps", 0.0),
                metric: Metric::Named(Name::of(name)),
                unit: "ns".into(),
                value: series::mean(&samples).unwrap(),
                n: samples.len() as u32,
                interval_99: interval::of_mean(&samples, LEVEL_PERCENT_HIGH),
                warnings: Vec::new(),
                samples,
                repeats,
                ..like.clone()
            }
        };
        let ports = (1..).zip(ports.iter().copied()).collect();
        record.cells = vec![
            cell("exact_rtt_ns_mean", ports),
            cell("exact_sockets_rtt_ns_mean", sockets.to_vec()),
        ];
        record
    }

    fn rows(record: &Record) -> Vec<Vec<Entry>> {
        let sheets = crate::table::sheets(record, &record.experiments[0]);
        sheets.into_iter().flat_map(|it| it.tables).flat_map(|it| it.rows).collect()
    }

    #[test]
    fn host_time_is_subtracted_for_each_repeat() {
        let sockets = [(1, 40_000.0), (2, 50_000.0), (3, 61_000.0)];
        let record = run(&[10_000.0, 20_000.0, 30_000.0], &sockets);
        let [row] = &rows(&record)[..] else { panic!("one row") };
        assert_eq!((&*row[1].text, &*row[3].text, &*row[5].text), ("exact", "20", "30.33"));
        // The machine changed by far more than the hosts did. This affects both ways and cancels in
        // the difference.
        let found = difference(&record.cells[1], &record.cells[0]).unwrap();
        let interval = found.interval.unwrap();
        assert!(interval.low > 25_000.0 && interval.high < 37_000.0, "{interval:?}");
    }

    #[test]
    fn an_unpaired_repeat_is_excluded_and_one_pair_has_no_interval() {
        let record = run(&[10_000.0, 20_000.0], &[(2, 50_000.0)]);
        let [row] = &rows(&record)[..] else { panic!("one row") };
        assert_eq!((&*row[5].text, &*row[5].range), ("30", "n=1"));
        let record = run(&[10_000.0], &[(2, 50_000.0)]);
        assert_eq!(rows(&record).len(), 0);
    }
}
