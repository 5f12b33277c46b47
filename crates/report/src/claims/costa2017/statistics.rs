//! Claims about the delay of statistics: tables VII and VIII.

use super::{ALIKE_FACTOR, CONSIDERABLE_FACTOR, Case, Evaluation};
use crate::claims::case::is_within;
use crate::claims::verdict::{in_regime, is_smaller, undecided};
use record::number;
use record::{Cell, Target, Verdict};
use stats::conclude::Estimate;

/// Percent to which a nearly full table is full.
const NEARLY_FULL: f64 = 90.0;

/// Kinds of statistics in names of values.
const FLOW: &str = "flow";
const PORT: &str = "port";

/// The name of the table with one rule.
const ONE_RULE: &str = "one rule";

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
            let value = |x| self.value(&target.name, &name(load, kind), Some(x));
            let full = value(NEARLY_FULL)?;
            // A reply about all rules takes longer, the more there are.
            let bound = self.not_full(target, "", NEARLY_FULL).and_then(|taken| taken.bound);
            let bound = bound.filter(|_| kind == FLOW).or(full.bound);
            let full = Cell { bound, ..full.clone() };
            Some((format!("{load} load"), Estimate::ratio(&full, value(0.0)?)))
        });
        found.collect()
    }

    /// How much longer statistics take under the heavy load, over both tables.
    fn by_load(&self, target: &Target, kind: &str) -> Vec<(String, Estimate)> {
        let (heavy, light) = (name(LOADS[1], kind), name(LOADS[0], kind));
        let tables = [(ONE_RULE, 0.0), ("nearly full", NEARLY_FULL)];
        let found = tables.into_iter().filter_map(|(table, x)| {
            let ratio = self.against(target, (&heavy, &light), (Some(x), Some(x)))?;
            Some((table.to_string(), ratio))
        });
        found.collect()
    }

    /// The finding about several ratios. Those over a nearly full table have the regime that it was full before.
    fn statistics(
        &self,
        (target, reading): (&Target, &str),
        found: &[(String, Estimate)],
        judge: fn(&Estimate) -> Verdict,
    ) -> Evaluation {
        let reading = format!(
            "{reading}; condition: nearly full is 90 % of what fits, not of the search's bound"
        );
        let judge = |table: &str, ratio: &Estimate| match table {
            ONE_RULE => judge(ratio),
            _ => in_regime(self.full_table(target, "", NEARLY_FULL), || judge(ratio)),
        };
        let none = "statistics were not measured at both";
        self.each_ratio(reading, "times as long", found, (judge, none))
    }

    /// Section IV-D: requests over a full table hang most switches, so that tables hold a tenth less.
    pub(super) fn stable_limit(&self, target: &Target) -> Evaluation {
        let kinds = LOADS.iter().flat_map(|load| [FLOW, PORT].map(|kind| (load, kind)));
        let answered = kinds.filter_map(|(load, kind)| {
            let name = format!("{load}_{kind}_answered_ratio");
            let cell = self.value(&target.name, &name, Some(NEARLY_FULL))?;
            Some(format!("{kind} {load} {} %", number::text(cell.value * 100.0)))
        });
        let answered: Vec<String> = answered.collect();
        let numbers = match answered.is_empty() {
            true => String::new(),
            false => format!("answered over 90 %: {}", answered.join(", ")),
        };
        let reading = "not judged: statistics are requested over 90 % of what fits, and not over a full table".into();
        let verdict = undecided("no experiment requests statistics over a full table");
        Evaluation { reading, numbers, verdict }
    }

    /// Table VII: a nearly full table delays flow statistics considerably.
    pub(super) fn rules_delay_flow_stats(&self, target: &Target) -> Evaluation {
        let reading = format!(
            "under both loads the median over the nearly full table is at least {CONSIDERABLE_FACTOR} times that over \
             one rule; a table that was not full gives a lower bound"
        );
        let none = "statistics were not measured at both";
        let judge = |_: &str, ratio: &Estimate| considerably(ratio);
        self.each_ratio(reading, "times as long", &self.by_rules(target, FLOW), (judge, none))
    }

    /// Table VII: the heavy load delays flow statistics considerably.
    pub(super) fn load_delays_flow_stats(&self, target: &Target) -> Evaluation {
        let reading = format!(
            "over the nearly full table the median under the heavy load is at least {CONSIDERABLE_FACTOR} times that \
             under the light load"
        );
        let found = self.by_load(target, FLOW);
        let full: Vec<_> = found.into_iter().filter(|(table, _)| table == "nearly full").collect();
        self.statistics((target, &reading), &full, considerably)
    }

    /// Table VII: the heavy load leaves flow statistics as they are.
    pub(super) fn flow_stats_stay(&self, target: &Target) -> Evaluation {
        let reading = format!(
            "over both tables the median under the heavy load is {} to {ALIKE_FACTOR} times that under the light load",
            number::text(1.0 / ALIKE_FACTOR)
        );
        self.statistics((target, &reading), &self.by_load(target, FLOW), alike)
    }

    /// Table VII: the heavy load shortens flow statistics.
    pub(super) fn load_speeds_flow_stats(&self, target: &Target) -> Evaluation {
        let reading = "over the nearly full table the median under the heavy load is below that under the light load, by \
                       more than 1 %";
        let found = self.by_load(target, FLOW);
        let full: Vec<_> = found.into_iter().filter(|(table, _)| table == "nearly full").collect();
        self.statistics((target, reading), &full, is_smaller)
    }

    /// Table VIII: a nearly full table leaves port statistics as they are.
    pub(super) fn port_stats_stay(&self, target: &Target) -> Evaluation {
        let reading = format!(
            "under both loads the median with the nearly full table is {} to {ALIKE_FACTOR} times the median with one rule",
            number::text(1.0 / ALIKE_FACTOR)
        );
        self.statistics((target, &reading), &self.by_rules(target, PORT), alike)
    }

    /// Table VIII: a nearly full table delays port statistics.
    pub(super) fn rules_delay_port_stats(&self, target: &Target) -> Evaluation {
        let reading = "under both loads the median with the nearly full table is more than 1 % above the median with \
                       one rule";
        let found = self.by_rules(target, PORT);
        self.statistics((target, reading), &found, crate::claims::verdict::is_greater)
    }

    /// Table VIII: the heavy load delays port statistics.
    pub(super) fn load_delays_port_stats(&self, target: &Target) -> Evaluation {
        let reading = "over both tables the median under the heavy load is above that under the light load, by more than \
                       1 %";
        let found = self.by_load(target, PORT);
        self.statistics((target, reading), &found, crate::claims::verdict::is_greater)
    }
}
