//! Matches the cells of two sides.
//!
//! Invariants: cells that only one side has are listed and not compared; sides with different
//! parameters have no matching cells.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;

use super::{ContrastError, SideFacts, words};
use crate::conclude::RELEVANT_RATIO;
use crate::direction;
use crate::gate::Gate;
use record::links;
use record::number;
use record::{Cell, Metric, Record};

/// A run or one target of it.
#[derive(Debug, Clone, Copy)]
pub struct ComparedRun<'a> {
    /// Name on the command line.
    pub name: &'a str,
    /// The run. Its trials are not used.
    pub record: &'a Record,
    /// The target, if the side is only one target.
    pub target: Option<&'a str>,
}

impl<'a> ComparedRun<'a> {
    /// Cells of metrics with a better direction, in the record's order.
    fn cells(&self, gates: &[Gate]) -> impl Iterator<Item = &'a Cell> {
        let (target, gated) = (self.target, gates.iter().map(|it| it.metric).collect::<Vec<_>>());
        let is_meant = move |cell: &&Cell| {
            target.is_none_or(|name| cell.target == name)
                && direction::of(cell.metric).is_some()
                && (direction::is_compared(cell.metric)
                    || direction::is_loss(cell.metric)
                    || gated.contains(&cell.metric))
        };
        self.record.cells.iter().filter(is_meant)
    }

    /// The target of the side, if it has exactly one.
    fn only_target(&self) -> Option<&'a str> {
        match (self.target, self.record.targets.as_slice()) {
            (Some(target), _) => Some(target),
            (None, [one]) => Some(&one.name),
            _ => None,
        }
    }

    /// The link of a cell.
    pub(super) fn link_of(&self, cell: &'a Cell) -> &'a str {
        cell.link.as_deref().unwrap_or_else(|| links::of(self.record, &cell.target))
    }

    /// The offered load of a cell in frames per second.
    fn offered_pps(&self, cell: &Cell) -> Option<f64> {
        let offered = Metric::RatePpsOffered;
        let same_place = |it: &&Cell| it.point == cell.point && it.link == cell.link;
        let mut all = self.record.cells_of(&cell.experiment, &cell.target, offered);
        all.find(same_place).map(|it| it.value).filter(|pps| *pps > 0.0)
    }

    pub(super) fn facts(&self) -> SideFacts {
        let targets = self.record.targets.iter();
        let meant = targets.filter(|it| self.target.is_none_or(|name| it.name == name));
        SideFacts {
            name: self.name.into(),
            created: self.record.created.clone(),
            version: format!("{} {}", self.record.tool.name, self.record.tool.version),
            command_line: self.record.command_line.clone(),
            targets: meant.map(|it| (it.name.clone(), it.version.clone())).collect(),
        }
    }
}

/// Matched cells of two sides.
pub(super) struct Matched<'a> {
    pub base: ComparedRun<'a>,
    pub new: ComparedRun<'a>,
    pub is_interleaved: bool,
    pub pairs: Vec<(&'a Cell, &'a Cell)>,
    /// Cells that only the base has.
    pub missing: Vec<&'a Cell>,
    /// Cells that only the new side has.
    pub added: Vec<&'a Cell>,
    pub remarks: Vec<String>,
}

/// Key for matching cells. Numbers are compared by their bits, because both sides parsed the same
/// text.
type Key<'a> = (&'a str, Option<&'a str>, &'a str, Metric, &'a str, u64, Option<(&'a str, u64)>);

fn key<'a>(side: &ComparedRun<'a>, cell: &'a Cell, by_target: bool) -> Key<'a> {
    let point = &cell.point;
    (
        &cell.experiment,
        by_target.then_some(cell.target.as_str()),
        side.link_of(cell),
        cell.metric,
        &point.name,
        point.value.to_bits(),
        point.within.as_ref().map(|it| (it.name.as_str(), it.value.to_bits())),
    )
}

pub(super) fn matched<'a>(
    base: &ComparedRun<'a>,
    new: &ComparedRun<'a>,
    gates: &[Gate],
) -> Result<Matched<'a>, ContrastError> {
    let is_interleaved = std::ptr::eq(base.record, new.record);
    let Differences { fatal, mild } = Differences::between(base.record, new.record);
    if !fatal.is_empty() {
        return Err(ContrastError::Parameters(fatal));
    }
    let mut remarks = mild;
    if base.record.environment.simulated {
        remarks
            .push("simulated time: the comparison describes the simulation, not a machine".into());
    }
    // Two explicitly selected targets may have different names.
    let by_target = match (base.only_target(), new.only_target()) {
        (Some(old), Some(new)) => {
            if old != new && !is_interleaved {
                remarks.push(format!("the base is {old}, the new side {new}"));
            }
            false
        }
        _ => true,
    };
    let mut others: HashMap<Key<'_>, &Cell> =
        new.cells(gates).map(|cell| (key(new, cell, by_target), cell)).collect();
    let (mut pairs, mut missing) = (Vec::new(), Vec::new());
    for cell in base.cells(gates) {
        match others.remove(&key(base, cell, by_target)) {
            Some(other) => pairs.push((cell, other)),
            None => missing.push(cell),
        }
    }
    let left: BTreeSet<*const Cell> =
        others.values().map(|cell| std::ptr::from_ref(*cell)).collect();
    let added: Vec<&Cell> =
        new.cells(gates).filter(|cell| left.contains(&std::ptr::from_ref(*cell))).collect();
    if pairs.is_empty() {
        return Err(ContrastError::NothingInCommon(names(&missing), names(&added)));
    }
    Ok(Matched { base: *base, new: *new, is_interleaved, pairs, missing, added, remarks })
}

/// Relative difference up to which two offered loads are equal.
const LOADS_ALIKE: f64 = RELEVANT_RATIO;

impl Matched<'_> {
    /// Explains why two latencies or losses are not comparable: their offered loads differ.
    pub(super) fn other_load(&self, base: &Cell, new: &Cell) -> Option<String> {
        let depends_on_load = direction::is_loss(base.metric)
            || matches!(base.metric.unit(), "ns") && is_of_frames(base.metric);
        if !depends_on_load {
            return None;
        }
        let (old, now) = (self.base.offered_pps(base)?, self.new.offered_pps(new)?);
        let is_same = (now / old - 1.0).abs() <= LOADS_ALIKE;
        let rate = |pps| number::quantity(Metric::RatePpsOffered, pps);
        (!is_same).then(|| {
            format!(
                "the offered loads differ: {} and {} (hint: measure both targets in one run with `planimeter compare`)",
                rate(old),
                rate(now)
            )
        })
    }

    /// Cells that only one side has, by experiment and target.
    pub(super) fn one_sided(&self) -> (Vec<String>, Vec<String>) {
        (names(&self.missing), names(&self.added))
    }
}

/// Descriptions of cells, grouped by experiment and target.
fn names(cells: &[&Cell]) -> Vec<String> {
    let mut gathered: BTreeMap<(&str, &str, &str), Vec<String>> = BTreeMap::new();
    for cell in cells {
        let place = (cell.experiment.as_str(), cell.target.as_str(), cell.metric.name());
        gathered.entry(place).or_default().push(words::point(&cell.point));
    }
    let sentence = |((experiment, target, metric), points): (_, Vec<String>)| {
        format!("{experiment} on {target}: {metric} at {}", super::few(&points))
    };
    gathered.into_iter().map(sentence).collect()
}

/// Whether a time is one of frames, which depends on the load.
fn is_of_frames(metric: Metric) -> bool {
    ["latency", "pdv", "ipdv", "jitter"].iter().any(|word| metric.name().starts_with(word))
}

/// Differences between two runs other than their results.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Differences {
    /// Differences that prevent a comparison.
    pub fatal: Vec<String>,
    /// Differences that a reader should know.
    pub mild: Vec<String>,
}

/// Parameters that set the amount of measurement, not its object.
const AMOUNTS: [&str; 4] = ["repeats", "seconds", "warmup_s", "drain_s"];

/// Assignments that do not change the measurement: the order of targets, and the target whose
/// maximum the loads are relative to. Offered loads are compared themselves.
const ORDERS: [&str; 2] = ["interleaving", "load_reference"];

/// Assignments that set the amount of measurement.
const AMOUNTS_SET: [&str; 3] = ["repeats", "seconds", "warmup"];

impl Differences {
    /// Finds the differences between two runs.
    pub fn between(base: &Record, new: &Record) -> Differences {
        let mut found = Differences::default();
        if std::ptr::eq(base, new) {
            return found;
        }
        let sets = [base, new].map(assignments);
        for key in sets[0].keys().chain(sets[1].keys()).collect::<BTreeSet<_>>() {
            let said = |side: usize| sets[side].get(key).map_or("its default", String::as_str);
            if said(0) != said(1) {
                let line = format!("{key} {} against {}", said(0), said(1));
                let is_mild = AMOUNTS_SET.contains(&key.as_str()) || ORDERS.contains(&key.as_str());
                if is_mild { found.mild.push(line) } else { found.fatal.push(line) }
            }
        }
        let keys = base.parameters.keys().chain(new.parameters.keys());
        for key in keys.filter(|key| *key != "set").collect::<BTreeSet<_>>() {
            let said = |record: &Record| {
                record.parameters.get(key).map_or("nothing".into(), Value::to_string)
            };
            if said(base) == said(new) {
                continue;
            }
            let line = format!("{key} {} against {}", said(base), said(new));
            let is_told = AMOUNTS_SET.iter().any(|it| found.mild.iter().any(|l| l.starts_with(it)));
            match key.as_str() {
                "capacity_bps" => found.fatal.push(line),
                key if AMOUNTS.contains(&key) && is_told => {}
                _ => found.mild.push(line),
            }
        }
        if base.environment.simulated != new.environment.simulated {
            found.fatal.push("simulated time against real time".into());
        }
        found.mild.extend(machines(base, new));
        for (side, record) in [("base", base), ("new side", new)] {
            if record.partial {
                found.mild.push(format!("the run of the {side} ended early"));
            }
        }
        found
    }
}

/// The last value given to each key with `--set`.
fn assignments(record: &Record) -> BTreeMap<String, String> {
    let set = record.parameters.get("set").and_then(Value::as_array);
    let pair = |value: &Value| value.as_str()?.split_once('=').map(|(k, v)| (k.into(), v.into()));
    set.into_iter().flatten().filter_map(pair).collect()
}

/// Differences between the machines, which may explain a difference between the results.
fn machines(base: &Record, new: &Record) -> Vec<String> {
    let (a, b) = (&base.environment, &new.environment);
    let facts = [
        ("processor", a.cpu_model.clone(), b.cpu_model.clone()),
        ("cores", a.cpu_cores.map(|it| it.to_string()), b.cpu_cores.map(|it| it.to_string())),
        ("kernel", a.kernel.clone(), b.kernel.clone()),
        ("governor", a.cpu_governor.clone(), b.cpu_governor.clone()),
    ];
    let differing = facts.into_iter().filter(|(_, a, b)| a != b);
    let word = |it: Option<String>| it.unwrap_or_else(|| "unknown".into());
    differing
        .map(|(what, a, b)| format!("different machines: {what} {} against {}", word(a), word(b)))
        .collect()
}
