//! By hardware or by software: how a target seems to treat the frames of each type of match, and what speaks for it.
//!
//! Source: costa2017, sections IV-A to IV-E, which infer the same from delays. A type goes by software where frames
//! take longer than hardware does, where single ones take much longer than most, where rewriting or a full table
//! costs time, or where the same device without OpenFlow is twice as fast. A type that is clearly faster than the
//! slowest of the same device goes another way than that: by hardware, however slow it is; if it is as slow as that one
//! once the table is full, what did not fit went the other way. Rewriting and filling are tried with rules of one kind,
//! and speak for the types whose round trips are like those of that kind. Invariants: what was not
//! measured is no evidence; without a delay there is no verdict.

use super::run_of;
use crate::conclude::{Conclusion, Estimate};
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

/// Round trips whose means and tails lie together no further apart, as logarithms, go the same way for all that is known.
const LIKE_MAX: f64 = 0.10;

/// The size in bytes at which both modes of a device are compared.
const LEGACY_BYTES: f64 = 64.0;

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

/// What round trips by one kind of rule took.
#[derive(Debug, Clone, Copy)]
struct Trips<'a> {
    mean: &'a Cell,
    /// The 99th percentile over the median, less 1.
    spread: Option<f64>,
}

/// Whether a target runs on this host's processors and stands for nothing else, as a model of hardware does.
pub fn is_known_software(target: &Target) -> bool {
    target.settings.contains_key("cores_target") && target.model().is_none()
}

/// The ways of a target's types, as far as they were measured.
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
    /// How unlike others they are: the logarithms between means, and between tails, added up.
    fn apart(&self, other: &Trips<'_>) -> f64 {
        let means = (self.mean.value / other.mean.value).ln().abs();
        let tail = |spread: f64| (1.0 + spread.max(0.0)).ln();
        let tails = self.spread.zip(other.spread).map_or(0.0, |(a, b)| (tail(a) - tail(b)).abs());
        means + tails
    }

    /// Whether no type is much more like `others` than this one is.
    fn is_like(&self, others: &Trips<'_>, types: &[Trips<'_>]) -> bool {
        let nearest = types.iter().map(|it| it.apart(others)).min_by(f64::total_cmp);
        nearest.is_none_or(|nearest| self.apart(others) <= nearest + LIKE_MAX)
    }
}

/// Where evidence is looked for.
struct Evidence<'a> {
    record: &'a Record,
    target: &'a Target,
}

impl<'a> Evidence<'a> {
    /// What was measured of round trips in an item, one packet at a time.
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
            // Whatever is faster is not what the slowest goes by, so that these say nothing of it.
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
            // Is it the search that takes so long, or another way?
            let is_other_way = is_faster && !is_slower(full.mean, slowest);
            let more = format!("{} % slower with a full table", percent(more));
            match is_other_way {
                true => evidence.push(format!("{more}, like the slowest type: some did not fit")),
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
            evidence.push(format!("{one_way} µs one way, and nothing costs more"));
        }
        Judged { word, way, evidence }
    }

    /// The time in legacy mode of the same device, where that was measured beside.
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

/// Whether one mean is below [`FASTER_SHARE`] of another beyond doubt.
fn is_faster(mean: &Cell, than: &Cell) -> bool {
    let it = Estimate::ratio(mean, than).about_behaviour();
    it.value <= FASTER_SHARE && it.relevant() == Conclusion::Smaller
}

/// Whether one mean is above another by more than [`COST_MAX`].
fn is_slower(mean: &Cell, than: &Cell) -> bool {
    mean.value > (1.0 + COST_MAX) * than.value
}

/// By how much some round trips are above others, where that is more than [`COST_MAX`] beyond doubt; and both.
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
    fn what_runs_here_is_software_unless_it_is_a_model_of_hardware() {
        let mut target = sample::record().targets[0].clone();
        target.settings.remove("cores_target");
        assert!(!is_known_software(&target), "a device of somebody's");
        target.settings.insert("cores_target".into(), "[1]".into());
        assert!(is_known_software(&target));
        target.settings.insert(crate::record::MODEL.into(), "hp-2920".into());
        assert!(!is_known_software(&target));
    }
}
