//! Reports of runs whose targets have different links.

use record::links::{Naming, are_several, calibration, of};
use record::{Calibration, Metric, Record, Warning};
use store::csv;

use crate::summary;

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
    crate::finish(&mut record, &[]);
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
    assert_eq!(calibration(&record, "switch").unwrap().id, record.calibrations[0].id);
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
