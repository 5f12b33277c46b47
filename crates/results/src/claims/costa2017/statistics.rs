//! Claims about the delay of statistics: tables VII and VIII.

use super::{ALIKE_FACTOR, CONSIDERABLE_FACTOR, Case, Finding};
use crate::claims::case::is_within;
use crate::claims::verdict::is_smaller;
use crate::conclude::Estimate;
use crate::number;
use crate::record::{Target, Verdict};

/// Percent to which a nearly full table is full.
const NEARLY_FULL: f64 = 90.0;

/// Both loads.
const LOADS: [&str; 2] = ["light", "heavy"];

/// The median reply delay of a kind of statistics under a load.
fn name(load: &str, kind: &str) -> String {
    format!("{load}_{kind}_reply_ns_p50")
}

fn considerably(ratio: &Estimate) -> Verdict {
    is_within(ratio, CONSIDERABLE_FACTOR, f64::INFINITY)
}

fn alike(ratio: &Estimate) -> Verdict {
    is_within(ratio, 1.0 / ALIKE_FACTOR, ALIKE_FACTOR)
}

impl Case<'_> {
    /// How much longer statistics take over a nearly full table, under both loads.
    fn by_rules(&self, target: &Target, kind: &str) -> Vec<(String, Estimate)> {
        let found = LOADS.into_iter().filter_map(|load| {
            let name = name(load, kind);
            let ratio = self.against(target, (&name, &name), (Some(NEARLY_FULL), Some(0.0)))?;
            Some((format!("{load} load"), ratio))
        });
        found.collect()
    }

    /// How much longer statistics take under the heavy load, over both tables.
    fn by_load(&self, target: &Target, kind: &str) -> Vec<(String, Estimate)> {
        let (heavy, light) = (name(LOADS[1], kind), name(LOADS[0], kind));
        let tables = [("one rule", 0.0), ("nearly full", NEARLY_FULL)];
        let found = tables.into_iter().filter_map(|(table, x)| {
            let ratio = self.against(target, (&heavy, &light), (Some(x), Some(x)))?;
            Some((table.to_string(), ratio))
        });
        found.collect()
    }

    fn statistics(
        &self,
        reading: String,
        found: &[(String, Estimate)],
        judge: fn(&Estimate) -> Verdict,
    ) -> Finding {
        let none = "statistics were not measured at both";
        self.each_ratio(reading, "times as long", found, (judge, none))
    }

    /// Table VII: a nearly full table delays flow statistics considerably.
    pub(super) fn rules_delay_flow_stats(&self, target: &Target) -> Finding {
        let reading = format!(
            "under both loads the median over the nearly full table is at least {CONSIDERABLE_FACTOR} times that over \
             one rule"
        );
        self.statistics(reading, &self.by_rules(target, "flow"), considerably)
    }

    /// Table VII: the heavy load delays flow statistics considerably.
    pub(super) fn load_delays_flow_stats(&self, target: &Target) -> Finding {
        let reading = format!(
            "over the nearly full table the median under the heavy load is at least {CONSIDERABLE_FACTOR} times that \
             under the light load"
        );
        let found = self.by_load(target, "flow");
        let full: Vec<_> = found.into_iter().filter(|(table, _)| table == "nearly full").collect();
        self.statistics(reading, &full, considerably)
    }

    /// Table VII: the heavy load leaves flow statistics as they are.
    pub(super) fn flow_stats_stay(&self, target: &Target) -> Finding {
        let reading = format!(
            "over both tables the median under the heavy load is {} to {ALIKE_FACTOR} times that under the light load",
            number::text(1.0 / ALIKE_FACTOR)
        );
        self.statistics(reading, &self.by_load(target, "flow"), alike)
    }

    /// Table VII: the heavy load shortens flow statistics.
    pub(super) fn load_speeds_flow_stats(&self, target: &Target) -> Finding {
        let reading = "over the nearly full table the median under the heavy load is below that under the light load, by \
                       more than 1 %";
        let found = self.by_load(target, "flow");
        let full: Vec<_> = found.into_iter().filter(|(table, _)| table == "nearly full").collect();
        self.statistics(reading.into(), &full, is_smaller)
    }

    /// Table VIII: a nearly full table leaves port statistics as they are.
    pub(super) fn port_stats_stay(&self, target: &Target) -> Finding {
        let reading = format!(
            "under both loads the median beside the nearly full table is {} to {ALIKE_FACTOR} times that beside one rule",
            number::text(1.0 / ALIKE_FACTOR)
        );
        self.statistics(reading, &self.by_rules(target, "port"), alike)
    }

    /// Table VIII: a nearly full table delays port statistics.
    pub(super) fn rules_delay_port_stats(&self, target: &Target) -> Finding {
        let reading = "under both loads the median beside the nearly full table is above that beside one rule, by more \
                       than 1 %";
        let found = self.by_rules(target, "port");
        self.statistics(reading.into(), &found, crate::claims::verdict::is_greater)
    }

    /// Table VIII: the heavy load delays port statistics.
    pub(super) fn load_delays_port_stats(&self, target: &Target) -> Finding {
        let reading = "over both tables the median under the heavy load is above that under the light load, by more than \
                       1 %";
        let found = self.by_load(target, "port");
        self.statistics(reading.into(), &found, crate::claims::verdict::is_greater)
    }
}
