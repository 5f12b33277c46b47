//! What the studies print and state, as data that comes with the program.
//!
//! The files and their sources are described in `papers/README.md`. Nothing in them was read off
//! a picture.

/// The tables of a study about nine switches.
mod costa2017;

use results::claims;
use results::record::{Claim, Point, Published};

/// What the studies' texts state.
const CLAIMS: &str = include_str!("papers/claims.csv");

/// Relative drop of the forwarding rate with 96-byte packets, by technology and table size.
const FIG5: &str = include_str!("papers/bianco2010_fig5_relative_drop_96B.csv");

/// Processing times of an OpenFlow switch, by table, table size and packet size.
const TABLE1: &str = include_str!("papers/bianco2010_table1_processing_time.csv");

/// The values that a study prints of one of its items, given as study and item; none of most.
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
        _ => Vec::new(),
    }
}

/// Rows of packet size, kind, table size and value; the kind says the subject and names the curve.
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

/// The claims of all studies, or what is wrong with the file.
pub fn claims() -> Result<Vec<Claim>, String> {
    claims::parse(CLAIMS).map_err(|error| format!("papers/claims.csv, {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_claims_that_come_with_the_program_can_be_read() {
        let claims = claims().unwrap();
        let figures = ["fig2", "fig3", "fig4", "fig5", "fig6", "fig7", "table1", "fig9", "fig10"];
        for item in figures {
            let found = claims.iter().any(|it| it.study == "bianco2010" && it.item == item);
            assert!(found, "no claim about {item}");
        }
    }

    #[test]
    fn every_row_that_a_study_prints_is_read() {
        for (item, text) in [("fig5", FIG5), ("table1", TABLE1)] {
            let found = published(Some(("bianco2010", item)));
            assert_eq!(found.len(), text.lines().count() - 1, "{item}");
        }
        let found = published(Some(("bianco2010", "table1")));
        let linear = found.iter().find(|it| it.point.within.as_ref().unwrap().value == 25.0);
        assert_eq!(linear.unwrap().point.within.as_ref().unwrap().name, "linear_entries");
        assert!(published(Some(("bianco2010", "fig2"))).is_empty() && published(None).is_empty());
    }
}
