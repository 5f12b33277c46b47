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
//! - [`stats::conclude`] places each value relative to its limit. If no condition is met and one is
//!   undecided, the path is unknown.

use super::run_of;
use record::number;
use record::{Cell, Metric, Name, Record, Target};
use stats::conclude::{Conclusion, Estimate, conclude};

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
    /// The delays do not tell them apart.
    Unknown,
}

impl Way {
    /// Its name.
    pub fn word(self) -> &'static str {
        match self {
            Way::Hardware => "hardware",
            Way::Software => "software",
            Way::Unknown => "undecided",
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
    /// 99th percentile divided by the median.
    spread: Option<Estimate>,
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
        let tail = |spread: Estimate| spread.value.max(1.0).ln();
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
        let spread = spread.map(|(high, middle)| ratio(high, middle));
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
        let one_way = Estimate::of(mean).about_behaviour().map(|ns| ns / 2.0);
        let one_way_us = number::text(one_way.value / 1e3);
        let slowest = types.iter().max_by(|a, b| a.mean.value.total_cmp(&b.mean.value));
        let slowest = slowest.map_or(mean, |it| it.mean);
        let share = ratio(mean, slowest);
        let seems_faster = share.value <= FASTER_SHARE;
        let is_faster = seems_faster && share.relevant() == Conclusion::Smaller;
        let mut signs = Signs::default();
        if is_faster {
            // Faster types use another path than the slowest one, so that its costs are no evidence
            // about them.
            let percent = percent(1.0 - share.value);
            signs.found.push(format!("{percent} % faster than the slowest type of this target"));
        } else if seems_faster {
            signs.open.push("it may be faster than the slowest type of this target".into());
        } else {
            signs.weigh(&one_way, HARDWARE_NS_MAX, || format!("{one_way_us} µs one way"));
            if let Some(legacy) = self.legacy() {
                let times = ratio(mean, legacy);
                let text =
                    || format!("{} times as long as without OpenFlow", number::text(times.value));
                signs.weigh(&times, LEGACY_FACTOR, text);
            }
        }
        if let Some(spread) = &trips.spread {
            let more = percent(spread.value - 1.0);
            let text = || format!("the 99th percentile is {more} % above the median");
            signs.weigh(spread, 1.0 + SPREAD_MAX, text);
        }
        let kind = if is_exact { "exact_" } else { "wildcard_" };
        let [one, full] = [0.0, 100.0].map(|x| self.trips("table5", kind, Some(x)));
        if let Some((one, full)) = one.zip(full)
            && (is_exact || trips.is_like(&one, types))
        {
            let cost = ratio(full.mean, one.mean);
            let more = format!("{} % slower with a full table", percent(cost.value - 1.0));
            // Distinguishes a slow lookup from another path.
            let is_other_way = is_faster && !is_slower(full.mean, slowest);
            if is_other_way && costs(&cost) {
                signs.found.push(format!("{more}, like the slowest type: some did not fit"));
            } else {
                signs.weigh(&cost, 1.0 + COST_MAX, || more);
            }
        }
        let plain = self.trips("table6", "none_", None).filter(|it| trips.is_like(it, types));
        for rewrite in ["mac", "ip", "ip_tos", "udp_ports"] {
            let changed = self.trips("table6", &format!("{rewrite}_"), None);
            let Some((changed, plain)) = changed.zip(plain) else { continue };
            let cost = ratio(changed.mean, plain.mean);
            let more = percent(cost.value - 1.0);
            let text = || format!("{more} % slower with a rewrite ({rewrite})");
            signs.weigh(&cost, 1.0 + COST_MAX, text);
        }
        let Signs { mut found, against, open } = signs;
        let way = match (against.is_empty(), open.is_empty()) {
            (false, _) => Way::Software,
            (true, false) => Way::Unknown,
            (true, true) => Way::Hardware,
        };
        found.extend(against);
        if way == Way::Unknown {
            found.extend(open);
        }
        if found.is_empty() {
            found.push(format!("{one_way_us} µs one way, and no sign of a processor"));
        }
        Judged { word, way, evidence: found }
    }

    /// The delay in legacy mode of the same device, if measured in the same run.
    fn legacy(&self) -> Option<&'a Cell> {
        let legacy = format!("{},mode=legacy", self.target.name);
        let target = self.record.targets.iter().find(|it| it.name == legacy)?;
        let beside = Evidence { target, ..*self };
        let name = "legacy_rtt_ns_mean";
        let found = beside.cell("table3", name, None);
        found.or_else(|| beside.cell("fig6", name, Some(LEGACY_BYTES)))
    }
}

/// Evidence about a path.
#[derive(Debug, Default)]
struct Signs {
    /// What was found beside.
    found: Vec<String>,
    /// Signs of a processor.
    against: Vec<String>,
    /// Values that may be a sign of a processor.
    open: Vec<String>,
}

impl Signs {
    /// A value above the limit is a sign of a processor, described by this text.
    fn weigh(&mut self, value: &Estimate, limit: f64, text: impl FnOnce() -> String) {
        match conclude(value, f64::NEG_INFINITY, limit) {
            Conclusion::Greater => self.against.push(text()),
            Conclusion::Undecided(reason) => self.open.push(format!("{}? {reason}", text())),
            Conclusion::Smaller | Conclusion::Equivalent => {}
        }
    }
}

fn percent(share: f64) -> String {
    number::text(share * 100.0)
}

/// The ratio of two values. The path is behaviour, which simulated time shows too.
fn ratio(of: &Cell, base: &Cell) -> Estimate {
    Estimate::ratio(of, base).about_behaviour()
}

/// Whether one mean exceeds another by more than [`COST_MAX`].
fn is_slower(mean: &Cell, than: &Cell) -> bool {
    mean.value > (1.0 + COST_MAX) * than.value
}

/// Whether a cost is significant and above [`COST_MAX`].
fn costs(cost: &Estimate) -> bool {
    cost.value > 1.0 + COST_MAX && cost.relevant() == Conclusion::Greater
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::costa2017::made;
    use record::{Disturbance, DisturbanceCause};

    /// A run of table III with these means and 99th percentiles by port, in microseconds.
    fn run(means: &[f64], tails: &[f64]) -> Record {
        let [means, tails] =
            [means, tails].map(|us| us.iter().map(|it| it * 1e3).collect::<Vec<_>>());
        let values: [(_, _, &[f64]); 3] = [
            ("port_rtt_ns_mean", 64.0, &means),
            ("port_rtt_ns_p50", 64.0, &means),
            ("port_rtt_ns_p99", 64.0, &tails),
        ];
        made::tell(made::run("table3"), &values)
    }

    fn judged(record: &Record) -> Judged {
        let [judged] = &ways(record, &record.targets[0])[..] else { panic!("one type") };
        judged.clone()
    }

    #[test]
    fn a_path_is_unknown_where_delays_do_not_separate() {
        let way = |means: &[f64], tails: &[f64]| judged(&run(means, tails)).way;
        let (fast, near) = ([100.0, 101.0, 102.0], [110.0, 111.0, 112.0]);
        assert_eq!(way(&fast, &near), Way::Hardware);
        assert_eq!(way(&[400.0, 401.0, 402.0], &[410.0, 411.0, 412.0]), Way::Software);
        assert_eq!(way(&fast, &[200.0, 201.0, 202.0]), Way::Software, "a tail");
        // 150 µs one way lies within the interval.
        let wide = judged(&run(&[200.0, 300.0, 500.0], &[210.0, 310.0, 510.0]));
        assert_eq!(wide.way, Way::Unknown);
        assert!(wide.evidence[0].contains("µs one way? the interval"), "{:?}", wide.evidence);
        // So does a 99th percentile 25 % above the median.
        assert_eq!(way(&fast, &[110.0, 125.0, 160.0]), Way::Unknown);
        assert_eq!(way(&[100.0], &[110.0]), Way::Unknown, "measured once");
    }

    #[test]
    fn disturbed_delays_tell_no_path() {
        let mut record = run(&[100.0, 101.0, 102.0], &[110.0, 111.0, 112.0]);
        record.cells[0].disturbances =
            vec![Disturbance { cause: DisturbanceCause::Descheduled, repeats: vec![1, 2] }];
        let judged = judged(&record);
        assert_eq!(judged.way, Way::Unknown);
        assert!(judged.evidence[0].contains("descheduled in 2 of 3"), "{:?}", judged.evidence);
    }

    #[test]
    fn local_targets_are_software_except_hardware_models() {
        let mut target = sample::record().targets[0].clone();
        target.settings.remove("cores_target");
        assert!(!is_known_software(&target), "an external device");
        target.settings.insert("cores_target".into(), "[1]".into());
        assert!(is_known_software(&target));
        target.settings.insert(record::MODEL.into(), "hp-2920".into());
        assert!(!is_known_software(&target));
    }
}
