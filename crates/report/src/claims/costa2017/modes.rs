//! Claims about OpenFlow against legacy mode of one device: figure 6 and table IV.

use super::{ALIKE_FACTOR, Case, Evaluation, metric, nothing, times};
use crate::claims::case::is_within;
use crate::claims::verdict::is_smaller;
use record::number;
use record::{Cell, Target};
use stats::conclude::Estimate;

/// The metric of what a bridge holds, and the ones of what a switch accepts.
const LEGACY: &str = "mac_addresses_learned";
const OPENFLOW: &str = "exact_accepted_rules";

/// Why two modes of a device cannot be compared.
const NO_LEGACY: &str =
    "both modes of the device were not measured (hint: add --on switch:model=NAME,mode=legacy)";

impl<'a> Case<'a> {
    /// The same device in legacy mode: of a model its bridge, of others nothing.
    fn legacy(&self, target: &Target, name: &str) -> Option<&'a Cell> {
        let bridge = format!("{},mode=legacy", target.name);
        let found = self.value(&bridge, name, None);
        found.or_else(|| {
            let listed = record::Metric::ALL.into_iter().find(|it| it.name() == name)?;
            self.cells(&bridge, listed).first().copied()
        })
    }

    /// Legacy time over OpenFlow time of one device: by its model as a bridge, or by a rule that outputs to NORMAL.
    fn speed_up(&self, target: &Target) -> Option<Estimate> {
        let openflow = self.value(&target.name, "port_rtt_ns_p50", None)?;
        let normal = || self.value(&target.name, "normal_rtt_ns_p50", None);
        let legacy = match target.model() {
            Some(_) => self.legacy(target, "legacy_rtt_ns_p50"),
            None => normal(),
        };
        Some(Estimate::ratio(legacy?, openflow))
    }

    /// Figure 6: OpenFlow reaches about so much of legacy mode's performance.
    pub(super) fn reaches_a_share(&self, target: &Target) -> Evaluation {
        let share = self.claimed().unwrap_or(0.0) / 100.0;
        let (least, most) = (share * 0.5, share * 1.5);
        let reading = format!(
            "legacy time over OpenFlow time is {} to {}, for the median of 64-byte packets",
            number::text(least),
            number::text(most)
        );
        match self.speed_up(target) {
            None => nothing(reading, NO_LEGACY),
            Some(ratio) => Evaluation {
                reading,
                numbers: times(&ratio),
                verdict: is_within(&ratio, least, most),
            },
        }
    }

    /// Figure 6: both modes perform alike.
    pub(super) fn modes_are_alike(&self, target: &Target) -> Evaluation {
        let reading = format!(
            "legacy time over OpenFlow time is {} to {ALIKE_FACTOR}, for the median of 64-byte packets",
            number::text(1.0 / ALIKE_FACTOR)
        );
        match self.speed_up(target) {
            None => nothing(reading, NO_LEGACY),
            Some(ratio) => Evaluation {
                reading,
                numbers: times(&ratio),
                verdict: is_within(&ratio, 1.0 / ALIKE_FACTOR, ALIKE_FACTOR),
            },
        }
    }

    /// Table IV: fewer rules fit in OpenFlow mode.
    pub(super) fn fewer_rules(&self, target: &Target) -> Evaluation {
        let reading = "exact rules that the switch accepts over entries of the same device in legacy mode are below 1, by \
                       more than 1 %; condition: both tables were full before the search ended";
        let openflow =
            metric(OPENFLOW).and_then(|it| self.cells(&target.name, it).first().copied());
        let legacy = self.legacy(target, LEGACY);
        let (Some(openflow), Some(legacy)) = (openflow, legacy) else {
            return nothing(reading, NO_LEGACY);
        };
        let ratio = Estimate::ratio(openflow, legacy);
        let numbers = format!(
            "{} rules against {} entries",
            number::count(openflow.value as i64),
            number::count(legacy.value as i64)
        );
        let is_full = |name| self.value(&target.name, name, None).is_some_and(|it| it.value >= 1.0);
        let verdict = match is_full("exact_is_full_count") {
            true => is_smaller(&ratio),
            false => super::undecided(
                "outside the condition of the claim: the OpenFlow table was not full, so that more rules may fit",
            ),
        };
        Evaluation { reading: reading.into(), numbers, verdict }
    }
}
