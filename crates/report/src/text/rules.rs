//! What the barrier replies of switches are worth, and how long rules take: the headline of experiments about rules.
//!
//! Source: OpenFlow 1.3.1, 6.2 (a barrier reply states that all messages before it are processed), and section IV-B of
//! oflops2018. Invariant: a switch acknowledges early only where [`stats::conclude`] decides it.

use super::{Sentence, listed, subject};
use crate::analysis::gelberger2013::named;
use crate::sentence::capitalised;
use record::links::Naming;
use record::number;
use record::{BoundCause, Cell, Experiment, Reason, Record, Target};
use stats::conclude::{Conclusion, acknowledges_early};

/// What the largest number of rules shows of one switch: of those with an early reply, or else of all.
struct Barrier<'a> {
    name: String,
    premature: &'a Cell,
    /// By how much the last rule acts after the reply; none if not every rule was seen to act.
    gap: Option<&'a Cell>,
    is_early: Conclusion,
}

impl<'a> Barrier<'a> {
    fn of(
        record: &'a Record,
        experiment: &'a Experiment,
        target: &'a Target,
    ) -> Option<Barrier<'a>> {
        let cells = |name| record.cells_of(&experiment.id, &target.name, named(name));
        let judged = cells("rules_premature_ratio").map(|premature| {
            let gap = cells("barrier_gap_ns_max").find(|gap| gap.point == premature.point);
            (premature, gap, acknowledges_early(Some(premature), gap))
        });
        let judged: Vec<_> = judged.collect();
        let is_early = |(_, _, found): &&(_, _, Conclusion)| *found == Conclusion::Greater;
        let (premature, gap, is_early) = *judged.iter().rfind(is_early).or(judged.last())?;
        let name = Naming::within(record, &experiment.id).of(&target.name);
        Some(Barrier { name, premature, gap, is_early })
    }

    fn gap_ns(&self) -> f64 {
        self.gap.map_or(0.0, |gap| gap.value)
    }

    /// "X acknowledges rules 355 ms before they act (58 % of 1000 rules premature)".
    ///
    /// Without the time if the probes do not show that the last rule acts after the reply. Without "at least" if they
    /// show each rule on one side of it.
    fn early(&self) -> Sentence {
        let said = Sentence::from(format!("{} acknowledges rules ", self.name));
        let is_shown = |gap: &&Cell| acknowledges_early(None, Some(*gap)) == Conclusion::Greater;
        let said = match self.gap.filter(is_shown) {
            Some(gap) => said.number(number::quantity(gap.metric, gap.value), &gap.trials).and(" "),
            None => said,
        };
        let percent = share_in_words(self.premature);
        let rules = number::setting(self.premature.point.value);
        said.and("before they act (")
            .number(percent, &self.premature.trials)
            .and(format!(" of {rules} rules premature)"))
    }
}

impl Barrier<'_> {
    /// Why it is open whether the switch acknowledges early.
    fn open(&self, reason: Reason) -> String {
        let Barrier { name, premature, .. } = self;
        let is_unresolved =
            matches!(reason, Reason::Bounded { bound } if bound.cause == BoundCause::Resolution);
        match premature.resolution.filter(|_| is_unresolved && premature.value == 0.0) {
            Some(share) => format!(
                "no rule was proven premature on {name}, but the probes do not resolve {} % of {} rules",
                number::text(share * 100.0),
                number::setting(premature.point.value)
            ),
            None => {
                format!(
                    "it is undecided whether {name} acknowledges rules before they act: {reason}"
                )
            }
        }
    }
}

/// A share of rules that probes prove premature; others may be so too where the probes do not resolve it.
pub(crate) fn share_in_words(premature: &Cell) -> String {
    let at_least = if premature.resolution > Some(0.0) { "at least " } else { "" };
    format!("{at_least}{} %", number::text(premature.value * 100.0))
}

/// The switches of an experiment, the earliest reply first.
fn barriers<'a>(record: &'a Record, experiment: &'a Experiment) -> Vec<Barrier<'a>> {
    let found = record.targets.iter().filter_map(|it| Barrier::of(record, experiment, it));
    let mut found: Vec<Barrier<'_>> = found.collect();
    found.sort_by(|a, b| b.gap_ns().total_cmp(&a.gap_ns()));
    found
}

/// Which switches acknowledge rules before they act, and by how much; none if none was tested.
pub(super) fn acknowledged(record: &Record, experiment: &Experiment) -> Option<Sentence> {
    let found = barriers(record, experiment);
    let of = |is_meant: fn(&Conclusion) -> bool| -> Vec<&Barrier<'_>> {
        found.iter().filter(|it| is_meant(&it.is_early)).collect()
    };
    let names = |of: &[&Barrier<'_>]| {
        let names: Vec<&str> = of.iter().map(|it| it.name.as_str()).collect();
        listed(&names)
    };
    let mut parts: Vec<Sentence> = Vec::new();
    for barrier in of(|it| *it == Conclusion::Greater) {
        parts.push(barrier.early());
    }
    let in_time = of(|it| matches!(it, Conclusion::Equivalent | Conclusion::Smaller));
    if !in_time.is_empty() {
        let no = if parts.is_empty() { "No" } else { "no" };
        parts.push(format!("{no} rule was premature on {}", names(&in_time)).into());
    }
    for barrier in &found {
        if let Conclusion::Undecided(reason) = barrier.is_early {
            let words = barrier.open(reason);
            parts.push(if parts.is_empty() { capitalised(&words) } else { words }.into());
        }
    }
    let mut parts = parts.into_iter();
    let first = parts.next()?;
    let said = parts.fold(first, |said, part| said.and("; ").then(part));
    Some(said.and("."))
}

/// How long the largest number of rules takes until all of them act, on each switch.
pub(super) fn times(record: &Record, experiment: &Experiment) -> Option<Sentence> {
    let naming = Naming::within(record, &experiment.id);
    let metric = named("data_plane_ns");
    let mut cells: Vec<&Cell> = Vec::new();
    for target in &record.targets {
        cells.extend(record.cells_of(&experiment.id, &target.name, metric).last());
    }
    cells.sort_by(|a, b| a.value.total_cmp(&b.value));
    let rules = cells.first()?.point.clone();
    cells.retain(|cell| cell.point == rules);
    let count = number::setting(rules.value);
    let mut said = Sentence::from(format!("The last of {count} rules acts after "));
    for (place, cell) in cells.iter().enumerate() {
        let between = match place {
            0 => "",
            _ if place + 1 == cells.len() => " and ",
            _ => ", ",
        };
        let time = number::quantity_in_words(cell);
        said = said.and(between).number(time, &cell.trials);
        said = said.and(format!(" on {}", naming.of(&cell.target)));
    }
    Some(said.and("."))
}

/// The first sentence of a run about rules: of the experiment in which a switch acknowledges early, or else of the first, if
/// that is about rules.
pub(super) fn headline(record: &Record) -> Option<String> {
    let is_early =
        |it: &&Experiment| barriers(record, it).iter().any(|it| it.is_early == Conclusion::Greater);
    let early = record.experiments.iter().find(is_early);
    let experiment = early.or(record.experiments.first())?;
    let said = acknowledged(record, experiment)?;
    Some(match subject(record, experiment) {
        Some(subject) => format!("{subject}: {said}"),
        None => said.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::{Metric, Point};

    /// A run of `rule-activation` on a switch whose premature share and gap are these.
    fn run(switches: &[(&str, f64, f64)]) -> Record {
        let mut record = sample::record();
        record.experiments.truncate(1);
        record.experiments[0].id = "rule-activation".into();
        let one = record.cells[0].clone();
        record.cells.clear();
        for (target, share, gap_ns) in switches {
            let values = [
                ("rules_premature_ratio", *share),
                ("barrier_gap_ns_max", *gap_ns),
                ("data_plane_ns", 5e8),
            ];
            for (name, value) in values {
                for rules in [1.0, 1000.0] {
                    record.cells.push(Cell {
                        experiment: "rule-activation".into(),
                        target: (*target).into(),
                        point: Point::new("rules", rules),
                        metric: named(name),
                        unit: Metric::unit(named(name)).into(),
                        value,
                        samples: [0.998, 0.999, 1.0, 1.001, 1.002].map(|by| by * value).into(),
                        repeats: vec![1, 2, 3, 4, 5],
                        n: 5,
                        limit: None,
                        warnings: Vec::new(),
                        ..one.clone()
                    });
                }
            }
        }
        record
    }

    #[test]
    fn the_first_sentence_states_how_early_and_for_how_many_rules() {
        let record = run(&[("switch", 0.0, -2e6), ("ovs", 0.58, 355e6)]);
        let short = super::super::short(&record).unwrap();
        let early = "ovs acknowledges rules 355 ms before they act (58 % of 1000 rules premature)";
        assert!(short.starts_with(early), "{short}");
        assert!(short.contains("; no rule was premature on planimeter switch."), "{short}");
        let found = super::super::found(&record);
        assert!(found[0].contains(
            "The last of 1000 rules acts after 500 ms on planimeter switch and 500 ms on ovs."
        ));
    }

    #[test]
    fn a_switch_with_correct_acknowledgements_is_not_called_early() {
        let short = super::super::short(&run(&[("switch", 0.0, -2e6)])).unwrap();
        assert!(short.starts_with("No rule was premature on planimeter switch."), "{short}");
        let mut once = run(&[("switch", 0.3, 5e6)]);
        for cell in &mut once.cells {
            (cell.samples, cell.repeats, cell.n) = (vec![cell.value], vec![1], 1);
        }
        let short = super::super::short(&once).unwrap();
        assert!(
            short
                .starts_with("It is undecided whether planimeter switch acknowledges rules before"),
            "{short}"
        );
    }

    /// Sets the resolution of one metric.
    fn resolve(record: &mut Record, name: &'static str, resolution: f64) {
        let cells = record.cells.iter_mut().filter(|cell| cell.metric == named(name));
        cells.for_each(|cell| cell.resolution = Some(resolution));
    }

    #[test]
    fn proof_by_probes_needs_no_narrow_interval_and_no_time() {
        let mut record = run(&[("switch", 0.0, -2e6), ("ovs", 0.1, 3e6)]);
        for name in ["rules_premature_ratio", "barrier_gap_ns_max"] {
            resolve(&mut record, name, if name.ends_with("ratio") { 0.4 } else { 9e6 });
        }
        let short = super::super::short(&record).unwrap();
        let early =
            "ovs acknowledges rules before they act (at least 10 % of 1000 rules premature)";
        assert!(short.starts_with(early), "{short}");
        assert!(
            short.contains(
                "; no rule was proven premature on planimeter switch, but the probes do not resolve \
                 40 % of 1000 rules."
            ),
            "{short}"
        );
        // The largest number of rules is open, a smaller one decides.
        let mut fewer = record.clone();
        let of_most = |cell: &&mut Cell| cell.target == "ovs" && cell.point.value == 1000.0;
        let of_most = fewer.cells.iter_mut().filter(of_most);
        of_most.filter(|cell| cell.value == 0.1).for_each(|cell| cell.samples = vec![0.0; 5]);
        let short = super::super::short(&fewer).unwrap();
        assert!(short.starts_with(&early.replace("1000", "1")), "{short}");
        // The last rule acts before the reply, so that no rule is premature.
        resolve(&mut record, "barrier_gap_ns_max", 1e5);
        let short = super::super::short(&record).unwrap();
        assert!(short.contains("no rule was premature on planimeter switch."), "{short}");
    }

    #[test]
    fn an_early_acknowledgement_is_reported_in_simulated_time_too() {
        let mut record = run(&[("switch", 0.58, 355e6)]);
        for cell in &mut record.cells {
            cell.exclusion = Some(record::Exclusion::Simulated);
        }
        let short = super::super::short(&record).unwrap();
        assert!(
            short.starts_with("planimeter switch acknowledges rules 355 ms before they act"),
            "{short}"
        );
    }
}
