//! The link between the tester and each target of a run.
//!
//! Targets may have different links, whose costs are part of the measured values. Invariant: if
//! targets in one table have different links, each name includes the link, and a ratio between
//! them has a warning.

use crate::record::{Calibration, Record, Target};

/// The link of a target: its own, or else the run's.
pub fn of<'a>(record: &'a Record, target: &str) -> &'a str {
    let own = record.target(target).and_then(|target| target.link.as_deref());
    own.unwrap_or(&record.link)
}

/// Whether targets of the run have different links.
pub fn are_several(record: &Record) -> bool {
    let mut links = record.targets.iter().map(|target| of(record, &target.name));
    links.next().is_some_and(|first| links.any(|link| link != first))
}

/// Calibration of the tester over a target's link.
pub fn calibration<'a>(record: &'a Record, target: &str) -> Option<&'a Calibration> {
    if !are_several(record) {
        return record.calibrations.first();
    }
    let link = of(record, target);
    record.calibrations.iter().find(|known| known.link == link)
}

/// The targets grouped by link, both in the record's order.
pub fn gathered(record: &Record) -> Vec<(&str, Vec<&str>)> {
    let mut all: Vec<(&str, Vec<&str>)> = Vec::new();
    for Target { name, .. } in &record.targets {
        let link = of(record, name);
        match all.iter_mut().find(|(known, _)| *known == link) {
            Some((_, names)) => names.push(name),
            None => all.push((link, vec![name])),
        }
    }
    all
}

/// Names of targets in one figure or table.
#[derive(Debug, Clone, Copy)]
pub struct Naming<'a> {
    record: &'a Record,
    with_links: bool,
}

impl<'a> Naming<'a> {
    /// Names for these targets.
    pub fn among<'t>(record: &'a Record, targets: impl IntoIterator<Item = &'t str>) -> Naming<'a> {
        let mut links = targets.into_iter().map(|target| of(record, target));
        let with_links = links.next().is_some_and(|first| links.any(|link| link != first));
        Naming { record, with_links }
    }

    /// Names for the targets that have results in an experiment.
    pub fn within(record: &'a Record, experiment: &str) -> Naming<'a> {
        let cells = record.cells.iter().filter(|cell| cell.experiment == experiment);
        Naming::among(record, cells.map(|cell| cell.target.as_str()))
    }

    /// A target's name, with its link if links differ.
    pub fn of(&self, target: &str) -> String {
        match self.with_links {
            true => format!("{target} over {}", of(self.record, target)),
            false => target.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Metric, Warning};
    use crate::{csv, derive, sample, summary};

    /// Returns the sample run with Open vSwitch over its own link.
    fn two_links() -> Record {
        let mut record = sample::record();
        let other = Calibration {
            id: "loop:memif".into(),
            link: "memif".into(),
            ..record.calibrations[0].clone()
        };
        record.calibrations.push(other);
        for target in &mut record.targets {
            let link = if target.name == "ovs" { "memif" } else { "veth:afpacket" };
            target.link = Some(link.into());
        }
        record.link = "veth:afpacket, memif".into();
        derive::finish(&mut record, &[]);
        record
    }

    #[test]
    fn targets_of_one_link_have_plain_names() {
        let record = sample::record();
        assert!(!are_several(&record));
        assert_eq!(Naming::within(&record, "bianco2010/fig2").of("ovs"), "ovs");
        assert_eq!(of(&record, "ovs"), "veth:afpacket");
        assert!(record.ratios.iter().all(|ratio| ratio.links.is_none()));
        assert!(record.cells.iter().all(|cell| cell.link.is_none()));
    }

    #[test]
    fn values_name_their_link_and_ratios_across_links_both() {
        let record = two_links();
        for cell in &record.cells {
            assert_eq!(cell.link.as_deref(), Some(of(&record, &cell.target)));
        }
        for ratio in &record.ratios {
            let both = ["memif".to_string(), "veth:afpacket".to_string()];
            assert_eq!(ratio.links, (ratio.target == "ovs").then_some(both));
        }
        let is_it = |warning: &Warning| matches!(warning, Warning::LinksDiffer { .. });
        assert_eq!(record.warnings.iter().filter(|it| is_it(&it.warning)).count(), 1);
        assert_eq!(calibration(&record, "ovs").unwrap().id, "loop:memif");
        assert_eq!(calibration(&record, "ours").unwrap().id, record.calibrations[0].id);
    }

    #[test]
    fn reports_name_the_links() {
        let record = two_links();
        let text = summary::markdown(std::slice::from_ref(&record));
        assert!(text.contains("over veth:afpacket, and ovs over memif"), "{text}");
        assert!(text.contains("| ovs over memif |"), "{text}");
        let experiment = &record.experiments[0];
        let csv = csv::cells(&record, experiment);
        assert!(csv.lines().any(|line| line.contains(",ovs,memif,")));
        let view = &crate::figure::views(&record, experiment)[0];
        let figure = crate::figure::figure(&record, experiment, view).unwrap();
        let names: Vec<&str> = figure.series.iter().map(|one| one.name.as_str()).collect();
        assert!(names.contains(&"ovs over memif (OpenFlow)"), "{names:?}");
        let ratios = crate::table::of_ratios(&record, experiment, view, Metric::RatePpsForwarded);
        let marks = ratios.warnings();
        assert!(
            marks.iter().any(|it| it.sentence.contains("over memif against veth:afpacket")),
            "{marks:?}"
        );
    }
}
