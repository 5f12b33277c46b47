//! Results and statements printed in the studies, as built-in data.
//!
//! `papers/README.md` describes the files and their sources. No value was read off a chart.

mod costa2017;

use record::{Claim, Point, Published};
use report::claims;

/// Statements in the studies' texts.
const CLAIMS: &str = include_str!("papers/claims.csv");

/// Relative drop of the forwarding rate with 96-byte packets, by technology and table size.
const FIG5: &str = include_str!("papers/bianco2010_fig5_relative_drop_96B.csv");

/// Processing times of an OpenFlow switch, by table, table size and packet size.
const TABLE1: &str = include_str!("papers/bianco2010_table1_processing_time.csv");

/// Processor load and loss of two software switches, by packet size.
const OFLOPS_TABLE1: &str = include_str!("papers/oflops_sume_table1_ovs_cpu_loss.csv");

/// Returns the values that a study prints for one of its items, given as study and item; most items have none.
pub fn published(paper: Option<(&str, &str)>) -> Vec<Published> {
    match paper {
        Some(("bianco2010", "fig5")) => {
            rows("fig5", FIG5, "throughput_drop_percent", |technology| (technology, "entries"))
        }
        Some(("bianco2010", "table1")) => {
            rows("table1", TABLE1, "processing_time_us", |table| match table {
                "hash" => ("openflow", "hash_entries"),
                _ => ("openflow", "linear_entries"),
            })
        }
        Some(("costa2017", item)) => costa2017::published(item),
        Some(("oflops2018", "table1")) => loads(),
        _ => Vec::new(),
    }
}

/// Parses rows of packet size, kind, table size and value; the kind selects the target and names the curve.
fn rows<'a>(
    item: &str,
    text: &'a str,
    metric: &str,
    read: impl Fn(&'a str) -> (&'a str, &'a str),
) -> Vec<Published> {
    let row = |line: &'a str| {
        let fields: Vec<&str> = line.split(',').collect();
        let [bytes, kind, entries, value] = fields[..] else { return None };
        let (subject, curve) = read(kind);
        let point = Point::new("frame_bytes", bytes.parse().ok()?);
        Some(Published {
            study: "bianco2010".into(),
            item: item.into(),
            subject: subject.into(),
            point: point.within(curve, entries.parse().ok()?),
            metric: metric.into(),
            value: value.parse().ok()?,
            text: None,
        })
    };
    text.lines().skip(1).filter_map(row).collect()
}

/// Parses rows of packet size, switch, processor load in cores and share of lost packets.
fn loads() -> Vec<Published> {
    let row = |line: &str| -> Option<[Published; 2]> {
        let fields: Vec<&str> = line.split(',').collect();
        let [bytes, switch, cores, loss] = fields[..] else { return None };
        let bytes: f64 = bytes.parse().ok()?;
        let value = |metric: &str, text: &str| -> Option<Published> {
            Some(Published {
                study: "oflops2018".into(),
                item: "table1".into(),
                subject: switch.into(),
                point: Point::new("frame_bytes", bytes),
                metric: metric.into(),
                value: text.parse().ok()?,
                text: None,
            })
        };
        Some([value("processor_load_cores", cores)?, value("loss_ratio", loss)?])
    };
    OFLOPS_TABLE1.lines().skip(1).filter_map(row).flatten().collect()
}

/// Returns the claims of all studies, or the error in the file.
pub fn claims() -> Result<Vec<Claim>, String> {
    claims::parse(CLAIMS).map_err(|error| format!("papers/claims.csv, {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_claims_are_parsed() {
        let claims = claims().unwrap();
        let figures = ["fig2", "fig3", "fig4", "fig5", "fig6", "fig7", "table1", "fig9", "fig10"];
        for item in figures {
            let found = claims.iter().any(|it| it.study == "bianco2010" && it.item == item);
            assert!(found, "no claim about {item}");
        }
    }

    #[test]
    fn every_printed_row_is_parsed() {
        for (item, text) in [("fig5", FIG5), ("table1", TABLE1)] {
            let found = published(Some(("bianco2010", item)));
            assert_eq!(found.len(), text.lines().count() - 1, "{item}");
        }
        let found = published(Some(("bianco2010", "table1")));
        let linear = found.iter().find(|it| it.point.within.as_ref().unwrap().value == 25.0);
        assert_eq!(linear.unwrap().point.within.as_ref().unwrap().name, "linear_entries");
        let loads = published(Some(("oflops2018", "table1")));
        assert_eq!(loads.len(), 2 * (OFLOPS_TABLE1.lines().count() - 1));
        let first = &loads[0];
        assert_eq!(
            (first.subject.as_str(), first.point.value, first.value),
            ("OVS-kernel", 96.0, 7.5)
        );
        assert!(published(Some(("bianco2010", "fig2"))).is_empty() && published(None).is_empty());
    }
}
