//! Claims of oflops2018 as conditions on measured values.
//!
//! Source: sections IV-A and IV-B of the study. What it states of its hardware switch is applied to targets that are
//! hardware or models of hardware, what it states of OVS-DPDK to Open vSwitch on DPDK, and what it states of OVS-kernel or of
//! software switches to all other software switches. Whether a target is hardware, its user declares or its description
//! shows ([`Implementation`]).

mod forwarding;
mod rules;

use super::case::{Case, Evaluation, is_within};
use super::unread;
use super::verdict::{in_regime, undecided};
use record::number;
use record::{Cell, Claim, ClaimVerdict, Implementation, Metric, Name, Point, Record, Target};
use stats::conclude::Estimate;

/// Two values within this factor of each other count as alike.
const ALIKE_FACTOR: f64 = 1.25;

/// A factor "about" which the study speaks of orders of magnitude: a third to three times.
const ORDER_FACTOR: f64 = 3.0;

/// The lines for one claim.
pub(super) fn judge(record: &Record, experiment: &str, claim: &Claim) -> Vec<ClaimVerdict> {
    let case = Case { record, experiment, claim };
    let states = |text: &str| claim.claim.contains(text);
    match claim.item.as_str() {
        "fig6a" if states("median latency about") => case.of_each(is_hard, Case::lies_about),
        "fig6a" if states("negligible impact") => case.of_each(is_hard, Case::same_for_all_sizes),
        "fig6a" => case.of_each(is_hard, Case::spreads_with_size),
        "fig6b" if states("an order of magnitude") => {
            case.each_against(is_soft, is_hard, Case::slower_than_hardware)
        }
        "fig6b" if states("variability") => {
            case.each_against(is_kernel, is_dpdk, Case::more_variable)
        }
        "fig6b" if states("two orders") => case.of_each(is_soft, Case::queues_at_line_rate),
        "fig6b" if states("scaling") => case.each_against(is_dpdk, is_kernel, Case::scales_better),
        "fig6c" if states("worst case") => case.of_each(is_kernel, Case::rewrites_within),
        "fig6c" if states("unaffected") => {
            case.of_each(|it| is_hard(it) || is_dpdk(it), Case::rewrites_for_nothing)
        }
        "fig6c" => case.of_each(is_kernel, Case::rewrites_cost_small_packets),
        "table1" if states("significant packet loss") => {
            case.of_each(is_kernel, Case::loses_small_packets)
        }
        "table1" if states("no packet loss") => case.of_each(is_dpdk, Case::loses_nothing),
        "table1" if states("processor load of at most") => {
            case.of_each(is_dpdk, Case::needs_one_core)
        }
        "table1" => case.each_against(is_kernel, is_dpdk, Case::needs_more_cores),
        "fig7a" if states("few seconds") => case.of_each(is_hard, Case::lags_for_seconds),
        "fig7a" => case.of_each(is_hard, Case::lags_behind_the_barrier),
        "fig7b" if states("barrier reply") => case.of_each(is_hard, Case::lags_behind_the_barrier),
        "fig7b" if states("random priority") => case.of_each(is_hard, Case::random_is_faster),
        "fig7b" => case.of_each(is_hard, Case::modifies_faster),
        "fig7c" if states("orders of magnitude") => {
            case.each_against(is_soft, is_hard, Case::faster_than_hardware)
        }
        "fig7c" if states("linear") => case.of_each(is_soft, Case::takes_time_by_the_rule),
        "fig7c" => case.of_each(is_soft, Case::modifies_as_it_inserts),
        "fig8a" if states("at about") => case.of_each(is_hard, Case::pauses),
        "fig8a" => case.of_each(is_hard, Case::modifies_in_batches),
        "fig8b" => case.of_each(is_hard, Case::acts_out_of_order),
        _ => vec![unread(claim)],
    }
}

/// Whether a target is a hardware switch, or a model of one.
fn is_hard(target: &Target) -> bool {
    target.implementation() == Some(Implementation::Hardware)
}

/// Whether a target is a software switch.
fn is_soft(target: &Target) -> bool {
    target.implementation() == Some(Implementation::Software)
}

/// Whether a target is Open vSwitch on DPDK.
fn is_dpdk(target: &Target) -> bool {
    is_soft(target) && target.spec.starts_with("ovs-dpdk")
}

/// Whether a target is a software switch whose threads do not poll without end, as OVS-kernel.
fn is_kernel(target: &Target) -> bool {
    is_soft(target) && !is_dpdk(target)
}

/// What a module named so.
fn named(name: &'static str) -> Metric {
    Metric::Named(Name::of(name))
}

fn nothing(reading: impl Into<String>, why: &str) -> Evaluation {
    Evaluation { reading: reading.into(), numbers: String::new(), verdict: undecided(why) }
}

/// A difference in percent, with one of two words by its sign.
fn percent(value: f64, [more, less]: [&str; 2]) -> String {
    let word = if value < 0.0 { less } else { more };
    format!("{} % {word}", number::text(value.abs()))
}

/// The value in the metric's unit for people; a bound has a sign before it.
fn shown(cell: &Cell) -> String {
    number::quantity_of_cell(cell)
}

impl Evaluation {
    /// The same inside the regime of the claim; outside it without a verdict.
    fn within(self, regime: Result<(), String>) -> Evaluation {
        Evaluation { verdict: in_regime(regime, || self.verdict), ..self }
    }
}

impl<'a> Case<'a> {
    /// A line for each target that the claim speaks of.
    fn of_each(
        &self,
        is_meant: impl Fn(&Target) -> bool,
        judge: fn(&Self, &Target) -> Evaluation,
    ) -> Vec<ClaimVerdict> {
        let meant = self.measured().filter(|target| is_meant(target));
        let lines: Vec<ClaimVerdict> =
            meant.map(|target| self.line(vec![target.name.clone()], judge(self, target))).collect();
        self.or_unknown(lines)
    }

    /// A line for each target of the first kind against each of the second.
    fn each_against(
        &self,
        is_first: impl Fn(&Target) -> bool,
        is_second: impl Fn(&Target) -> bool,
        judge: fn(&Self, &Target, &Target) -> Evaluation,
    ) -> Vec<ClaimVerdict> {
        let of = |is_it: &dyn Fn(&Target) -> bool| -> Vec<&'a Target> {
            self.measured().filter(|target| is_it(target)).collect()
        };
        let (first, second) = (of(&is_first), of(&is_second));
        let pairs = first.iter().flat_map(|one| second.iter().map(move |other| (*one, *other)));
        let lines: Vec<ClaimVerdict> = pairs
            .map(|(one, other)| {
                self.line(vec![one.name.clone(), other.name.clone()], judge(self, one, other))
            })
            .collect();
        self.or_unknown(lines)
    }

    /// These lines; without any, one line that states why, and names devices of an unknown kind.
    fn or_unknown(&self, lines: Vec<ClaimVerdict>) -> Vec<ClaimVerdict> {
        let unknown: Vec<String> = (self.measured())
            .filter(|target| target.implementation().is_none())
            .map(|target| target.name.clone())
            .collect();
        if !lines.is_empty() || unknown.is_empty() {
            return self.or_nothing(lines);
        }
        let why = "it is not known whether the device is hardware or software (hint: add kind=hardware or kind=software \
                   to its target)";
        vec![self.line(unknown, nothing(String::new(), why))]
    }

    /// The ratio of two cells, read as another quantity, and whether it lies in a band.
    fn ratio(
        &self,
        (of, against): (&Cell, &Cell),
        reading: String,
        (least, most): (f64, f64),
        read: impl Fn(f64) -> f64,
        unit: &str,
    ) -> Evaluation {
        let found = Estimate::ratio(of, against).map(read);
        let numbers = format!("{} {unit}", number::text(found.value));
        Evaluation { reading, numbers, verdict: is_within(&found, least, most) }
    }

    /// The cell of another item of the study at a point.
    fn elsewhere(&self, item: &str, target: &str, metric: Metric, at: &Point) -> Option<&'a Cell> {
        let id = format!("{}/{item}", self.claim.study);
        self.record.cells.iter().find(|cell| {
            cell.experiment == id
                && cell.target == target
                && cell.metric == metric
                && cell.point == *at
        })
    }
}
