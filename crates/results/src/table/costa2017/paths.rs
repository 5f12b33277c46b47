//! By hardware or by software: how a target seems to treat the frames of each type of match, and what speaks for it.
//!
//! Source: costa2017, sections IV-A to IV-E, which infer the same from delays. A type goes by software where frames
//! take longer than hardware does, where single ones take much longer than most, where rewriting or a full table
//! costs time, or where the same device without OpenFlow is twice as fast. A type that is clearly faster than the
//! slowest of the same device goes another way than that: by hardware, however slow it is. Invariants: what was not
//! measured is no evidence; without a delay there is no verdict.

use super::{equivalence, run_of};
use crate::number;
use crate::record::{Cell, Metric, Name, Record, Target};

/// One way through hardware takes at most so long: the study's hardware takes up to 0.08 ms less hosts, its
/// software 0.2 ms and more.
const HARDWARE_NS_MAX: f64 = 150_000.0;

/// The 99th percentile lies at most so far above the median.
const SPREAD_MAX: f64 = 0.25;

/// What rewriting and a full table may cost at most.
const COST_MAX: f64 = 0.10;

/// What without OpenFlow is so much faster is done otherwise there.
const LEGACY_FACTOR: f64 = 2.0;

/// A type that takes at most this share of the slowest goes another way.
const FASTER_SHARE: f64 = 0.9;

/// The study's types: their words, and what their cells are called by.
const TYPES: [(&str, &str); 5] = [
    ("port", "port_"),
    ("MAC", "mac_"),
    ("IP", "ip_"),
    ("UDP port", "udp_port_"),
    ("exact", "exact_"),
];

/// A way through the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// What forwards without a processor's help.
    Hardware,
    /// A processor.
    Software,
}

impl Way {
    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Way::Hardware => "hardware",
            Way::Software => "software",
        }
    }
}

/// What can be said of a type of match.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// The type's word.
    pub word: &'static str,
    /// The way.
    pub way: Way,
    /// What speaks for it.
    pub evidence: Vec<String>,
}

/// The ways of a target's types, as far as they were measured.
pub fn ways(record: &Record, target: &Target) -> Vec<Judged> {
    let evidence = Evidence { record, target };
    let means: Vec<(&'static str, &'static str, &Cell)> = TYPES
        .into_iter()
        .filter_map(|(word, prefix)| Some((word, prefix, evidence.of_type(prefix, "rtt_ns_mean")?)))
        .collect();
    let slowest = means.iter().max_by(|a, b| a.2.value.total_cmp(&b.2.value)).map(|it| it.2);
    let Some(slowest) = slowest else { return Vec::new() };
    means.iter().map(|(word, prefix, mean)| evidence.judge(word, prefix, (mean, slowest))).collect()
}

/// Where evidence is looked for.
struct Evidence<'a> {
    record: &'a Record,
    target: &'a Target,
}

impl<'a> Evidence<'a> {
    /// What was measured with a type of match, one packet at a time.
    fn of_type(&self, prefix: &str, what: &str) -> Option<&'a Cell> {
        self.cell("table3", &format!("{prefix}{what}"), None)
    }

    fn cell(&self, item: &str, name: &str, x: Option<f64>) -> Option<&'a Cell> {
        let metric = Metric::Named(Name::read(name).ok()?);
        let mut cells =
            self.record.cells_of(&run_of(self.record, item)?.id, &self.target.name, metric);
        cells.find(|cell| {
            let curve = cell.point.within.as_ref().map_or(0.0, |within| within.value);
            curve == 0.0 && x.is_none_or(|x| cell.point.value == x)
        })
    }

    fn judge(&self, word: &'static str, prefix: &str, (mean, slowest): (&Cell, &Cell)) -> Judged {
        let percent = |share: f64| number::text(share * 100.0);
        let mut against = Vec::new();
        let one_way = mean.value / 2.0;
        if one_way > HARDWARE_NS_MAX {
            against.push(format!("{} µs one way", number::text(one_way / 1e3)));
        }
        if let Some(legacy) = self.legacy().filter(|ns| mean.value > LEGACY_FACTOR * ns) {
            let times = number::text(mean.value / legacy);
            against.push(format!("{times} times as long as without OpenFlow"));
        }
        let is_faster = equivalence(mean, slowest).is_some_and(|it| {
            it.ratio <= FASTER_SHARE && it.interval.is_none_or(|interval| interval.high < 1.0)
        });
        let mut evidence = Vec::new();
        if is_faster {
            // Whatever it is, it is not what the slowest goes by.
            against.clear();
            let share = percent(1.0 - mean.value / slowest.value);
            evidence.push(format!("{share} % faster than the slowest type of this target"));
        }
        let spread = self.of_type(prefix, "rtt_ns_p99").zip(self.of_type(prefix, "rtt_ns_p50"));
        if let Some((p99, p50)) =
            spread.filter(|(high, mid)| high.value > (1.0 + SPREAD_MAX) * mid.value)
        {
            let more = percent(p99.value / p50.value - 1.0);
            against.push(format!("the 99th percentile is {more} % above the median"));
        }
        let kind = if prefix == "exact_" { "exact" } else { "wildcard" };
        let [one, full] =
            [0.0, 100.0].map(|x| self.cell("table5", &format!("{kind}_rtt_ns_mean"), Some(x)));
        if let Some(more) = costs(full, one) {
            against.push(format!("{} % slower with a full table", percent(more)));
        }
        for rewrite in ["mac", "ip", "ip_tos", "udp_ports"] {
            let [changed, plain] =
                [rewrite, "none"].map(|it| self.cell("table6", &format!("{it}_rtt_ns_mean"), None));
            if let Some(more) = costs(changed, plain) {
                against.push(format!("{} % slower with a rewrite ({rewrite})", percent(more)));
            }
        }
        let way = if against.is_empty() { Way::Hardware } else { Way::Software };
        evidence.extend(against);
        if evidence.is_empty() {
            evidence.push(format!(
                "{} µs one way, and nothing costs more",
                number::text(one_way / 1e3)
            ));
        }
        Judged { word, way, evidence }
    }

    /// The time in legacy mode of the same device, where that was measured beside.
    fn legacy(&self) -> Option<f64> {
        let legacy = format!("{},mode=legacy", self.target.name);
        let target = self.record.targets.iter().find(|it| it.name == legacy)?;
        let beside = Evidence { target, ..*self };
        beside.of_type("legacy_", "rtt_ns_mean").map(|cell| cell.value)
    }
}

/// By how much one mean is above another, where that is more than [`COST_MAX`] beyond doubt.
fn costs(of: Option<&Cell>, against: Option<&Cell>) -> Option<f64> {
    let it = equivalence(of?, against?)?;
    let is_sure = it.interval.is_none_or(|interval| interval.low > 1.0);
    (is_sure && it.ratio > 1.0 + COST_MAX).then_some(it.ratio - 1.0)
}
