//! Claims about groups and orders of several switches: figures 2, 3 and 5, and the discussion.
//!
//! Invariant: a claim about an order is decided only where both sides of it were measured.

use super::{Case, EXTREME, Evaluation, GROUPS, SOFTWARE, is_model, nothing, times};
use crate::claims::case::is_within;
use crate::claims::verdict::is_smaller;
use record::target_name::label;
use record::{Cell, ClaimVerdict, Implementation, Target, Technology};
use stats::conclude::Estimate;

/// "Up to about one order of magnitude": from this many times on, and a few times the claimed.
const SLOWER_LEAST: f64 = 1.01;
const ORDER_FACTOR: f64 = 3.0;

/// Jitter "resembles" another within this factor.
const RESEMBLES_FACTOR: f64 = 2.0;

impl<'a> Case<'a> {
    /// The targets that are one of these models, with a value of each.
    fn models(&self, names: &'static [&'static str], value: &str) -> Vec<(&'a Target, &'a Cell)> {
        let is_meant = is_model(names);
        let meant = self.measured().filter(|target| is_meant(target));
        meant.filter_map(|target| Some((target, self.value(&target.name, value, None)?))).collect()
    }

    /// One line: each of the first has a smaller value than each of the others.
    fn all_smaller(
        &self,
        reading: &str,
        pairs: &[(&'a Target, &'a Cell, &'a Target, &'a Cell)],
    ) -> ClaimVerdict {
        let mut targets: Vec<String> = Vec::new();
        for (first, _, second, _) in pairs {
            for name in [&first.name, &second.name] {
                if !targets.contains(name) {
                    targets.push(name.clone());
                }
            }
        }
        let ratios: Vec<(String, Estimate)> = pairs
            .iter()
            .map(|(first, of, second, against)| {
                (
                    format!("{} over {}", label(&first.name), label(&second.name)),
                    Estimate::ratio(of, against),
                )
            })
            .collect();
        let none = "targets of both sides were not measured";
        let found = self.each_ratio(
            reading.into(),
            "ratios",
            &ratios,
            (|_: &str, it: &_| is_smaller(it), none),
        );
        self.line(targets, found)
    }

    /// Figure 2: the switches of each group are faster than those of the next.
    pub(super) fn three_groups(&self) -> ClaimVerdict {
        let groups = GROUPS.map(|names| self.models(names, "ip_rtt_ns_p50"));
        let mut pairs = Vec::new();
        for two in groups.windows(2) {
            for (first, of) in &two[0] {
                pairs.extend(
                    two[1].iter().map(|(second, against)| (*first, *of, *second, *against)),
                );
            }
        }
        let reading = "by the median round trip each switch of a group is faster than each of the next, by more than 1 %";
        self.all_smaller(reading, &pairs)
    }

    /// Figure 3: these models are the fastest or the slowest of the study's switches.
    pub(super) fn ahead_of_others(
        &self,
        names: &'static [&'static str],
        is_faster: bool,
    ) -> ClaimVerdict {
        let value = "exact_rtt_ns_p50";
        let these = self.models(names, value);
        let mut pairs = Vec::new();
        for others in GROUPS.map(|all| self.models(all, value)) {
            for (other, theirs) in others {
                for (target, own) in &these {
                    let is_one = these.iter().any(|(one, _)| one.name == other.name);
                    match is_faster {
                        _ if is_one => {}
                        true => pairs.push((*target, *own, other, theirs)),
                        false => pairs.push((other, theirs, *target, *own)),
                    }
                }
            }
        }
        let reading = match is_faster {
            true => {
                "by the median of an exact match each of them is faster than each other model of the study's switches"
            }
            false => {
                "by the median of an exact match each other model of the study's switches is faster"
            }
        };
        self.all_smaller(reading, &pairs)
    }

    /// Figure 5: the Extreme switches have less jitter than the others.
    pub(super) fn steadier_than_others(&self) -> ClaimVerdict {
        let value = "exact_jitter_ns_p50";
        let these = self.models(EXTREME, value);
        let mut pairs = Vec::new();
        for (other, theirs) in GROUPS.into_iter().flat_map(|all| self.models(all, value)) {
            if EXTREME.iter().all(|name| other.model().is_none_or(|(model, _)| model != *name)) {
                pairs.extend(these.iter().map(|(target, own)| (*target, *own, other, theirs)));
            }
        }
        let reading = "the median jitter of each Extreme switch is below that of each other model, by more than 1 %";
        self.all_smaller(reading, &pairs)
    }

    /// Figure 5: the HP's jitter is like that of the software switches.
    pub(super) fn jitter_of_software(&self) -> Vec<ClaimVerdict> {
        let value = "exact_jitter_ns_p50";
        let reading = format!(
            "the median jitter is within a factor of {RESEMBLES_FACTOR} of that of a model of a software switch"
        );
        let software = self.models(SOFTWARE, value);
        let mut lines = Vec::new();
        for (target, own) in self.models(&["hp-2920"], value) {
            for (other, theirs) in &software {
                let ratio = Estimate::ratio(own, theirs);
                let found = Evaluation {
                    reading: reading.clone(),
                    numbers: format!("{} times", times(&ratio)),
                    verdict: is_within(&ratio, 1.0 / RESEMBLES_FACTOR, RESEMBLES_FACTOR),
                };
                lines.push(self.line(vec![target.name.clone(), other.name.clone()], found));
            }
        }
        self.or_nothing(lines)
    }

    /// Section IV.E: a software switch is up to an order of magnitude slower than a hardware switch.
    pub(super) fn software_against_hardware(&self) -> Vec<ClaimVerdict> {
        let most = self.claimed().unwrap_or(1.0) * ORDER_FACTOR;
        let reading = format!(
            "the median round trip by IP is {SLOWER_LEAST} to {most} times as long, hosts left out; condition: OpenFlow \
             switches, and each is known to be hardware or software"
        );
        let of = |kind: Implementation| -> Vec<(&'a Target, &'a Cell)> {
            let meant = self.measured().filter(|target| {
                target.technology == Technology::Openflow && target.implementation() == Some(kind)
            });
            let value = |target: &'a Target| {
                Some((target, self.value(&target.name, "ip_rtt_ns_p50", None)?))
            };
            meant.filter_map(value).collect()
        };
        let hardware = of(Implementation::Hardware);
        let mut lines = Vec::new();
        for (soft, slow) in of(Implementation::Software) {
            for (hard, fast) in &hardware {
                let ratio = Estimate::ratio(slow, fast);
                let found = Evaluation {
                    reading: reading.clone(),
                    numbers: format!("{} times", times(&ratio)),
                    verdict: is_within(&ratio, SLOWER_LEAST, most),
                };
                lines.push(self.line(vec![soft.name.clone(), hard.name.clone()], found));
            }
        }
        if lines.is_empty() {
            let why = "a software switch and a hardware switch were not both measured (hint: declare a device with \
                       kind=hardware or kind=software)";
            return vec![self.line(Vec::new(), nothing(reading, why))];
        }
        lines
    }
}
