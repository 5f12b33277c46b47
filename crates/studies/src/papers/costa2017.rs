//! Tables of costa2017: each printed interval as its two ends, each text as its byte count and the text.
//!
//! Invariant: an empty cell has no value.

use record::{Point, Published};

/// The switches.
const TABLE1: &str = include_str!("costa2017_table1_switches.csv");
/// Round-trip times by type of match.
const TABLE3: &str = include_str!("costa2017_table3_match_delay.csv");
/// Rule capacity in both modes.
const TABLE4: &str = include_str!("costa2017_table4_rule_capacity.csv");
/// Round-trip times with one rule and with many.
const TABLE5: &str = include_str!("costa2017_table5_rule_count_delay.csv");
/// Round-trip times by rewritten field.
const TABLE6: &str = include_str!("costa2017_table6_rewrite_delay.csv");
/// Delays of flow statistics.
const TABLE7: &str = include_str!("costa2017_table7_flowstats_delay.csv");
/// Delays of port statistics.
const TABLE8: &str = include_str!("costa2017_table8_portstats_delay.csv");

/// Returns the values that the study prints for an item. For round trips the point is the packet size; for capacities
/// and statistics each row has a point.
pub fn published(item: &str) -> Vec<Published> {
    match item {
        "table1" => switches(),
        "table3" => intervals(item, TABLE3, ("frame_bytes", 64.0), "rtt_ms", 1),
        "table4" => capacities(),
        "table5" => intervals(item, TABLE5, ("frame_bytes", 64.0), "rtt_ms", 1),
        "table6" => intervals(item, TABLE6, ("frame_bytes", 64.0), "rtt_ms", 1),
        "table7" => intervals(item, TABLE7, ("pace_s", 1.0), "flow_stats_ms", 2),
        "table8" => intervals(item, TABLE8, ("pace_s", 1.0), "port_stats_ms", 2),
        _ => Vec::new(),
    }
}

/// Parses rows of a switch, `words` columns of text, and the two ends of an interval: `WORDS_QUANTITY_low` and
/// `_high`.
fn intervals(
    item: &str,
    text: &str,
    (axis, x): (&str, f64),
    quantity: &str,
    words: usize,
) -> Vec<Published> {
    let row = |line: &str| -> Option<[Published; 2]> {
        let fields: Vec<&str> = line.split(',').collect();
        let (subject, column) = (fields.first()?, fields.get(1..=words)?.join("_"));
        let value = |what: &str, place: usize| -> Option<Published> {
            Some(Published {
                study: "costa2017".into(),
                item: item.into(),
                subject: (*subject).into(),
                point: Point::new(axis, x),
                metric: format!("{column}_{quantity}_{what}"),
                value: fields.get(1 + words + place)?.parse().ok()?,
                text: None,
            })
        };
        Some([value("low", 0)?, value("high", 1)?])
    };
    text.lines().skip(1).filter_map(row).flatten().collect()
}

/// Parses table I for each switch; empty cells are skipped.
fn switches() -> Vec<Published> {
    let row = |line: &str| -> Option<Vec<Published>> {
        let fields: Vec<&str> = line.split(',').collect();
        let [brand, model, system, ports, processor, versions] = fields[..] else { return None };
        let subject = format!("{brand} {model}");
        let told = |metric: &str, value: f64, text: Option<String>| Published {
            study: "costa2017".into(),
            item: "table1".into(),
            subject: subject.clone(),
            point: Point::new("switch", 1.0),
            metric: metric.into(),
            value,
            text,
        };
        let versions: Vec<&str> = versions.split_whitespace().collect();
        let texts = [("hardware_bytes", subject.as_str()), ("software_bytes", system)];
        let texts = texts.into_iter().chain([("processor_bytes", processor)]);
        let texts = texts.filter(|(_, text)| !text.is_empty());
        let mut found: Vec<Published> = texts
            .map(|(metric, text)| told(metric, text.len() as f64, Some(text.into())))
            .collect();
        found.extend(ports.parse().ok().map(|count| told("ports_count", count, None)));
        found.push(told("versions_count", versions.len() as f64, Some(versions.join(", "))));
        Some(found)
    };
    TABLE1.lines().skip(1).filter_map(row).flatten().collect()
}

fn capacities() -> Vec<Published> {
    let row = |line: &str| -> Option<[Published; 2]> {
        let fields: Vec<&str> = line.split(',').collect();
        let [subject, legacy, openflow] = fields[..] else { return None };
        let value = |metric: &str, text: &str| -> Option<Published> {
            Some(Published {
                study: "costa2017".into(),
                item: "table4".into(),
                subject: subject.into(),
                point: Point::new("table", 1.0),
                metric: metric.into(),
                value: text.parse().ok()?,
                text: None,
            })
        };
        Some([value("legacy_rules", legacy)?, value("openflow_rules", openflow)?])
    };
    TABLE4.lines().skip(1).filter_map(row).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_switch_of_table_one_is_parsed() {
        let found = published("table1");
        let of = |metric: &str| found.iter().filter(|it| it.metric == metric).collect::<Vec<_>>();
        // One of the nine switches has no own ports.
        assert_eq!((of("processor_bytes").len(), of("ports_count").len()), (9, 8));
        let versions = of("versions_count");
        assert_eq!((versions[4].value, versions[4].text.as_deref()), (2.0, Some("1.0, 1.4")));
        assert!(found.iter().all(|it| it.text.as_ref().is_none_or(|text| !text.is_empty())));
    }

    #[test]
    fn every_printed_interval_is_parsed() {
        // Nine switches: five types, one and many, two tables under two loads, two modes; table VI leaves 20 of 54 empty.
        let counts =
            [("table3", 45), ("table4", 9), ("table5", 18), ("table7", 36), ("table8", 36)];
        for (item, rows) in counts {
            assert_eq!(published(item).len(), 2 * rows, "{item}");
        }
        let empty = TABLE6.lines().filter(|line| line.ends_with(",,")).count();
        assert_eq!(published("table6").len(), 2 * (54 - empty));
        let found = published("table7");
        let first = &found[0];
        assert_eq!((first.subject.as_str(), first.value), ("Extreme x460-24p", 4.43));
        assert_eq!(first.metric, "one_rule_light_flow_stats_ms_low");
    }
}
