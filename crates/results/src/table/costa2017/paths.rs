//! Infers whether a target forwards the frames of each match type in hardware or in software, with
//! the evidence.
//!
//! Source: costa2017, sections IV-A to IV-E, which infer the same from delays. A type is forwarded
//! in software under any of these conditions:
//!
//! - Frames take longer than hardware does.
//! - Single frames take much longer than most.
//! - Rewriting or a full table costs time.
//! - The same device without OpenFlow is twice as fast.
//!
//! A type that is clearly faster than the slowest type of the device takes another path than that
//! one: hardware, however slow. If it is as slow as the slowest type once the table is full, the
//! entries that did not fit took the other path. Rewriting and a full table are tested with one
//! kind of rule. They are evidence for the types whose round trips are similar to that kind.
//! Invariants:
//!
//! - A missing measurement is not evidence.
//! - Without a delay there is no verdict.

use super::run_of;
use crate::conclude::{Conclusion, Estimate};
use crate::number;
use crate::record::{Cell, Metric, Name, Record, Target};

/// Maximum one-way delay in hardware. The study's hardware takes up to 0.08 ms without the hosts,
/// its software 0.2 ms and more.
const HARDWARE_NS_MAX: f64 = 150_000.0;

/// Maximum relative distance of the 99th percentile from the median.
const SPREAD_MAX: f64 = 0.25;

/// Maximum relative cost of rewriting and of a full table.
const COST_MAX: f64 = 0.10;

/// If the legacy mode is faster by this factor, it uses another path.
const LEGACY_FACTOR: f64 = 2.0;

/// A type with at most this share of the slowest delay uses another path.
const FASTER_SHARE: f64 = 0.9;

/// Round trips whose means and tails differ together by at most this much, as logarithms, are
/// assumed to use the same path.
const LIKE_MAX: f64 = 0.10;

/// The frame size in bytes for the comparison of a device's two modes.
const LEGACY_BYTES: f64 = 64.0;

/// The study's match types: their names, and the prefixes of their cells.
const TYPES: [(&str, &str); 5] = [
    ("port", "port_"),
    ("MAC", "mac_"),
    ("IP", "ip_"),
    ("UDP port", "udp_port_"),
    ("exact", "exact_"),
];

/// A forwarding path of the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Forwarding without a processor.
    Hardware,
    /// Forwarding by a processor.
    Software,
}

impl Way {
    /// Its name.
    pub fn word(self) -> &'static str {
        match self {
            Way::Hardware => "hardware",
            Way::Software => "software",
        }
    }
}

/// Verdict on a match type.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// Name of the type.
    pub word: &'static str,
    /// The path.
    pub way: Way,
    /// The evidence.
    pub evidence: Vec<String>,
}

/// Round trips with one kind of rule.
#[derive(Debug, Clone, Copy)]
struct Trips<'a> {
    mean: &'a Cell,
    /// 99th percentile divided by the median, minus 1.
    spread: Option<f64>,
}

/// Whether a target runs on this host's processors and is not a model of hardware.
pub fn is_known_software(target: &Target) -> bool {
    target.settings.contains_key("cores_target") && target.model().is_none()
}

/// The paths of a target's match types, if measured.
pub fn ways(record: &Record, target: &Target) -> Vec<Judged> {
    let evidence = Evidence { record, target };
    let measured: Vec<(&'static str, &'static str, Trips<'_>)> = TYPES
        .into_iter()
        .filter_map(|(word, prefix)| Some((word, prefix, evidence.trips("table3", prefix, None)?)))
        .collect();
    let all: Vec<Trips<'_>> = measured.iter().map(|(_, _, trips)| *trips).collect();
    measured
        .iter()
        .map(|(word, prefix, trips)| evidence.judge(word, *prefix == "exact_", *trips, &all))
        .collect()
}

impl Trips<'_> {
    /// Distance from other round trips: sum of the logarithmic distances of means and of tails.
    fn apart(&self, other: &Trips<'_>) -> f64 {
        let means = (self.mean.value / other.mean.value).ln().abs();
        let tail = |spread: f64| (1.0 + spread.max(0.0)).ln();
        let tails = self.spread.zip(other.spread).map_or(0.0, |(a, b)| (tail(a) - tail(b)).abs());
        means + tails
    }

    /// Whether no type is much closer to `others` than this one is.
    fn is_like(&self, others: &Trips<'_>, types: &[Trips<'_>]) -> bool {
        let nearest = types.iter().map(|it| it.apart(others)).min_by(f64::total_cmp);
        nearest.is_none_or(|nearest| self.apart(others) <= nearest + LIKE_MAX)
    }
}

/// The data to search for evidence.
struct Evidence<'a> {
    record: &'a Record,
    target: &'a Target,
}

impl<'a> Evidence<'a> {
    /// Round trips of an item with one packet in flight.
    fn trips(&self, item: &str, prefix: &str, x: Option<f64>) -> Option<Trips<'a>> {
        let of = |what: &str| self.cell(item, &format!("{prefix}{what}"), x);
        let spread = of("rtt_ns_p99").zip(of("rtt_ns_p50"));
        let spread = spread.map(|(high, middle)| high.value / middle.value - 1.0);
        Some(Trips { mean: of("rtt_ns_mean")?, spread })
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

    fn judge(
        &self,
        word: &'static str,
        is_exact: bool,
        trips: Trips<'_>,
        types: &[Trips<'_>],
    ) -> Judged {
        let mean = trips.mean;
        let one_way = mean.value / 2.0;
        let slowest = types.iter().max_by(|a, b| a.mean.value.total_cmp(&b.mean.value));
        let slowest = slowest.map_or(mean, |it| it.mean);
        let is_faster = is_faster(mean, slowest);
        let (mut evidence, mut against) = (Vec::new(), Vec::new());
        if is_faster {
            let share = percent(1.0 - mean.value / slowest.value);
            evidence.push(format!("{share} % faster than the slowest type of this target"));
        } else {
            // Faster types use another path than the slowest one, so that these costs are no
            // evidence about them.
            if one_way > HARDWARE_NS_MAX {
                against.push(format!("{} µs one way", number::text(one_way / 1e3)));
            }
            if let Some(legacy) = self.legacy().filter(|ns| mean.value > LEGACY_FACTOR * ns) {
                let times = number::text(mean.value / legacy);
                against.push(format!("{times} times as long as without OpenFlow"));
            }
        }
        if let Some(spread) = trips.spread.filter(|spread| *spread > SPREAD_MAX) {
            let more = percent(spread);
            against.push(format!("the 99th percentile is {more} % above the median"));
        }
        let kind = if is_exact { "exact_" } else { "wildcard_" };
        let [one, full] = [0.0, 100.0].map(|x| self.trips("table5", kind, Some(x)));
        if let Some((more, one, full)) = costs(full, one)
            && (is_exact || trips.is_like(&one, types))
        {
            // Distinguishes a slow lookup from another path.
            let is_other_way = is_faster && !is_slower(full.mean, slowest);
            let more = format!("{} % slower with a full table", percent(more));
            match is_other_way {
                true => evidence
                    .push(format!("{more}, like the slowest type: some entries did not fit")),
                false => against.push(more),
            }
        }
        let plain = self.trips("table6", "none_", None);
        for rewrite in ["mac", "ip", "ip_tos", "udp_ports"] {
            let changed = self.trips("table6", &format!("{rewrite}_"), None);
            if let Some((more, plain, _)) = costs(changed, plain)
                && trips.is_like(&plain, types)
            {
                against.push(format!("{} % slower with a rewrite ({rewrite})", percent(more)));
            }
        }
        let way = if against.is_empty() { Way::Hardware } else { Way::Software };
        evidence.extend(against);
        if evidence.is_empty() {
            let one_way = number::text(one_way / 1e3);
            evidence.push(format!("{one_way} µs one way, no extra cost measured"));
        }
        Judged { word, way, evidence }
    }

    /// The delay in legacy mode of the same device, if measured in the same run.
    fn legacy(&self) -> Option<f64> {
        let legacy = format!("{},mode=legacy", self.target.name);
        let target = self.record.targets.iter().find(|it| it.name == legacy)?;
        let beside = Evidence { target, ..*self };
        let name = "legacy_rtt_ns_mean";
        let found = beside.cell("table3", name, None);
        let found = found.or_else(|| beside.cell("fig6", name, Some(LEGACY_BYTES)));
        found.map(|cell| cell.value)
    }
}

fn percent(share: f64) -> String {
    number::text(share * 100.0)
}

/// Whether one mean is significantly below [`FASTER_SHARE`] of another.
fn is_faster(mean: &Cell, than: &Cell) -> bool {
    let it = Estimate::ratio(mean, than).about_behaviour();
    it.value <= FASTER_SHARE && it.relevant() == Conclusion::Smaller
}

/// Whether one mean exceeds another by more than [`COST_MAX`].
fn is_slower(mean: &Cell, than: &Cell) -> bool {
    mean.value > (1.0 + COST_MAX) * than.value
}

/// Relative cost of some round trips over others, if it is significantly above [`COST_MAX`]; and
/// both values.
fn costs<'a>(
    of: Option<Trips<'a>>,
    against: Option<Trips<'a>>,
) -> Option<(f64, Trips<'a>, Trips<'a>)> {
    let (of, against) = of.zip(against)?;
    let it = Estimate::ratio(of.mean, against.mean).about_behaviour();
    let is_sure = it.relevant() == Conclusion::Greater;
    (is_sure && it.value > 1.0 + COST_MAX).then_some((it.value - 1.0, against, of))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn local_targets_are_software_except_hardware_models() {
        let mut target = sample::record().targets[0].clone();
        target.settings.remove("cores_target");
        assert!(!is_known_software(&target), "an external device");
        target.settings.insert("cores_target".into(), "[1]".into());
        assert!(is_known_software(&target));
        target.settings.insert(crate::record::MODEL.into(), "hp-2920".into());
        assert!(!is_known_software(&target));
    }
}
