//! Claims of costa2017 as conditions on measured values.
//!
//! Source: section IV of the study. What it states of one switch is applied to the model of that switch, and what it states
//! of all switches to every OpenFlow switch. Invariants:
//! - Delays are those of packets one at a time, and the median is compared, unless the study prints a difference of means.
//! - A round trip here has no hosts in it, of which the study's has about 0.1 ms, so absolute values are compared with that
//!   much added. What hosts take on this machine is printed beside and decides nothing.

mod trips;
mod order;
mod modes;
mod statistics;

use super::case::{Case, Evaluation, every, is_within};
use super::unread;
use super::verdict::undecided;
use record::number;
use record::{Cell, Claim, ClaimVerdict, Metric, Name, Record, Target, Technology, Verdict};
use stats::conclude::Estimate;

/// What hosts take of a round trip in the study, as the models assume it.
const HOSTS_MS: f64 = 0.1;

/// Models of the switches of the study, by its three groups: fast, in between, slow.
const GROUPS: [&[&str]; 3] = [
    &[
        "extreme-x460",
        "extreme-x440",
        "pica8-p3297",
        "mikrotik-ar9344",
        "datacom-dm4001",
        "netfpga-openflow",
    ],
    &["ovs-2.3"],
    &["hp-2920", "linksys-wrt54gl"],
];

/// Models of the two Extreme switches, and of the software switches.
const EXTREME: &[&str] = &["extreme-x460", "extreme-x440"];
const SOFTWARE: &[&str] = &["ovs-2.3", "linksys-wrt54gl"];

/// Switches whose delay grows with the packet size.
const GROWING: &[&str] = &[
    "hp-2920",
    "extreme-x460",
    "mikrotik-ar9344",
    "pica8-p3297",
    "datacom-dm4001",
    "netfpga-openflow",
];

/// Switches whose port statistics depend on the rules.
const INFLUENCED: &[&str] =
    &["extreme-x460", "extreme-x440", "pica8-p3297", "netfpga-openflow", "datacom-dm4001"];

/// Switches whose flow statistics do not depend on the load.
const STEADY: &[&str] =
    &["ovs-2.3", "hp-2920", "pica8-p3297", "datacom-dm4001", "netfpga-openflow"];

/// Values within a quarter of each other count as alike where the study says similar.
const ALIKE_FACTOR: f64 = 1.25;

/// Values within this share count as alike where the study prints intervals that meet.
const EQUAL_RATIO: f64 = 0.05;

/// Delays that grow by half count as considerably higher.
const CONSIDERABLE_FACTOR: f64 = 1.5;

/// The lines for one claim.
pub(super) fn judge(record: &Record, experiment: &str, claim: &Claim) -> Vec<ClaimVerdict> {
    let case = Case { record, experiment, claim };
    let states = |text: &str| claim.claim.contains(text);
    let every = |target: &Target| target.technology == Technology::Openflow;
    let but = |names: &'static [&'static str]| {
        move |target: &Target| every(target) && !is_model(names)(target)
    };
    match claim.item.as_str() {
        "table3" if states("slower by up to") => case.software_against_hardware(),
        "table3" => case.each(every, Case::types_are_alike),
        "fig2" if states("three groups") => vec![case.three_groups()],
        "fig2" if states("between") => case.each(is_model(GROUPS[0]), Case::is_fast),
        "fig2" if states("close to") => case.each(is_model(GROUPS[1]), Case::takes_about),
        "fig2" if states("edging") => case.each(is_model(GROUPS[2]), Case::takes_about),
        "fig3" if states("lower by about") => {
            case.each(is_model(&["hp-2920"]), Case::exact_is_faster)
        }
        "fig3" if states("fastest") => vec![case.ahead_of_others(EXTREME, true)],
        "fig3" if states("slowest") => vec![case.ahead_of_others(&["linksys-wrt54gl"], false)],
        "fig4" if states("highest increases") => {
            case.each(is_model(GROWING), Case::grows_with_size)
        }
        "fig4" => {
            let other = &["extreme-x440", "ovs-2.3", "linksys-wrt54gl"];
            case.each(is_model(other), Case::same_for_each_size_here)
        }
        "fig5" if states("jitter below") => case.each(is_model(EXTREME), Case::is_steady),
        "fig5" if states("noticeably lower") => vec![case.steadier_than_others()],
        "fig5" => case.jitter_of_software(),
        "fig6" if states("performance about") => {
            case.each(is_model(GROUPS[2]), Case::reaches_a_share)
        }
        "fig6" => case.each(but(GROUPS[2]), Case::modes_are_alike),
        "table4" => case.each(every, Case::fewer_rules),
        "table5" if states("higher by about") => {
            case.each(is_model(&["linksys-wrt54gl"]), Case::full_table_costs)
        }
        "table5" => case.each(but(&["linksys-wrt54gl"]), Case::full_table_is_free),
        "table6" => case.each(every, Case::rewrites_are_free),
        "table7" if states("stable limit") => case.each(every, Case::stable_limit),
        "table7" if states("virtually unchanged") => {
            case.each(is_model(STEADY), Case::flow_stats_stay)
        }
        "table7" if states("higher under heavy load") => {
            let loaded = &["mikrotik-ar9344", "linksys-wrt54gl"];
            case.each(is_model(loaded), Case::load_delays_flow_stats)
        }
        "table7" if states("lower under heavy load") => {
            case.each(is_model(EXTREME), Case::load_speeds_flow_stats)
        }
        "table7" => case.each(every, Case::rules_delay_flow_stats),
        "table8" if states("under heavy load") => {
            let loaded = &["extreme-x460", "hp-2920", "linksys-wrt54gl"];
            case.each(is_model(loaded), Case::load_delays_port_stats)
        }
        "table8" if states("higher with the rules") => {
            case.each(is_model(INFLUENCED), Case::rules_delay_port_stats)
        }
        "table8" => case.each(but(INFLUENCED), Case::port_stats_stay),
        _ => vec![unread(claim)],
    }
}

/// Whether a target is one of these models, as an OpenFlow switch.
fn is_model(names: &'static [&'static str]) -> impl Fn(&Target) -> bool {
    move |target| {
        target.model().is_some_and(|(name, mode)| names.contains(&name) && mode == "openflow")
    }
}

fn metric(name: &str) -> Option<Metric> {
    Name::read(name).ok().map(Metric::Named)
}

fn nothing(reading: impl Into<String>, why: &str) -> Evaluation {
    Evaluation { reading: reading.into(), numbers: String::new(), verdict: undecided(why) }
}

/// A ratio in words.
fn times(ratio: &Estimate) -> String {
    number::text(ratio.value)
}

impl<'a> Case<'a> {
    /// A line for each target that the claim speaks of.
    fn each(
        &self,
        is_meant: impl Fn(&Target) -> bool,
        judge: impl Fn(&Self, &Target) -> Evaluation,
    ) -> Vec<ClaimVerdict> {
        let meant = self.measured().filter(|target| is_meant(target));
        self.or_nothing(
            meant.map(|target| self.line(vec![target.name.clone()], judge(self, target))).collect(),
        )
    }

    /// A value of packets one at a time, or of statistics, at a place of the axis.
    fn value(&self, target: &str, name: &str, x: Option<f64>) -> Option<&'a Cell> {
        let found = self.cells(target, metric(name)?);
        found.into_iter().find(|cell| {
            let curve = cell.point.within.as_ref().map_or(0.0, |within| within.value);
            curve == 0.0 && x.is_none_or(|x| cell.point.value == x)
        })
    }

    /// The ratio of two values of a target, repeat by repeat.
    fn against(
        &self,
        target: &Target,
        (of, base): (&str, &str),
        (x, x_base): (Option<f64>, Option<f64>),
    ) -> Option<Estimate> {
        let of = self.value(&target.name, of, x)?;
        Some(Estimate::ratio(of, self.value(&target.name, base, x_base)?))
    }

    /// The number of rules at a fill level in percent, if the switch took all that were tried: the table was not full
    /// then.
    fn not_full(&self, target: &Target, kind: &str, percent: f64) -> Option<&'a Cell> {
        let taken = self.value(&target.name, &format!("{kind}taken_rules"), Some(percent));
        taken.filter(|cell| cell.bound.is_some())
    }

    /// The regime of a claim about a full table, or about a nearly full one.
    fn full_table(&self, target: &Target, kind: &str, percent: f64) -> Result<(), String> {
        self.not_full(target, kind, percent).map_or(Ok(()), |taken| {
            let rules = number::count(taken.value as i64);
            Err(format!(
                "outside the condition of the claim: the switch accepted all {rules} rules that were tried, so its \
                 table was not full"
            ))
        })
    }

    /// The verdict and the numbers of several named ratios, each of which has to satisfy a condition.
    fn each_ratio(
        &self,
        reading: String,
        what: &str,
        found: &[(String, Estimate)],
        (judge, none): (impl Fn(&str, &Estimate) -> Verdict, &str),
    ) -> Evaluation {
        let each = found.iter().map(|(name, ratio)| format!("{name} {}", times(ratio)));
        let numbers = match found.is_empty() {
            true => String::new(),
            false => format!("{what}: {}", each.collect::<Vec<_>>().join(", ")),
        };
        let verdict = every(found, |(name, ratio), all| judge(name, &ratio.among(all)), none);
        Evaluation { reading, numbers, verdict }
    }
}

/// Whether a ratio is 1 within the share by which the study's intervals may differ.
fn is_equal(ratio: &Estimate) -> Verdict {
    is_within(ratio, 1.0 - EQUAL_RATIO, 1.0 + EQUAL_RATIO)
}
