//! Claims of bianco2010 as conditions on measured values.
//!
//! Source: sections IV and V of the study. It compares three technologies of one system, so pairs of targets are compared
//! within a family: ours with ours, the system's with the system's.
//! Invariant: each claim has a regime (offered load, overload or not) and is undecided outside it.

mod single;
mod tables;
mod fairness;

use super::case::{Case, Evaluation, amount};
use super::unread;
use super::verdict::{regime, undecided};
use record::number;
use record::target_name::label;
use record::{Cell, Claim, ClaimVerdict, Metric, Record, Target, Technology};
use stats::conclude::{Conclusion, Estimate};

/// The capacity of the study's links, in bits per second.
const STUDY_BPS: f64 = 1e9;

/// Preamble and interframe gap, which take time on a wire and are not part of a frame.
const WIRE_OVERHEAD_BYTES: f64 = 20.0;

/// Share of the wire speed from which a rate counts as the full wire speed.
const WIRE_SHARE: f64 = 0.99;

/// Loss below which a load counts as underload, and above which a target counts as overloaded.
const UNDERLOAD_LOSS_RATIO: f64 = 0.001;
const OVERLOAD_LOSS_RATIO: f64 = 0.01;

/// Two values within this factor of each other count as very similar.
const ALIKE_FACTOR: f64 = 1.25;

/// Bytes of the packets of a claim that states no size.
const SMALL_BYTES: f64 = 96.0;

/// The lines for one claim.
pub(super) fn judge(record: &Record, experiment: &str, claim: &Claim) -> Vec<ClaimVerdict> {
    let case = Case { record, experiment, claim };
    let states = |text: &str| claim.claim.contains(text);
    match claim.item.as_str() {
        "fig2" if states("full wire speed") => case.each_target(Case::reaches_wire_speed),
        "fig2" if states("lower by about") => case.each_pair(Case::lower_by_about),
        "fig3" if states("saturation level") => case.each_target(Case::saturates),
        "fig3" if states("does not fall") => case.each_target(Case::does_not_fall),
        "fig3" if states("very similar") => case.each_family(Case::similar_rates),
        "fig4" if states("slightly less than") => case.each_target(Case::slightly_less),
        "fig4" if states("very similar") => case.each_family(Case::similar_latencies),
        "fig5" if states("relative throughput drop") => case.each_target(Case::drops_by),
        "fig5" if states("the larger the forwarding table") => {
            case.each_target(Case::falls_with_entries)
        }
        "fig5" if states("share of the link capacity") => case.each_target(Case::below_share),
        "fig5" if states("wire speed needs") => case.each_target(Case::needs_bytes),
        "fig5" if states("lower by about") => case.each_pair(Case::lower_by_about),
        "fig6" if states("lower by about") => case.each_target(Case::linear_is_lower),
        "fig6" if states("wire speed") => case.each_target(Case::linear_reaches_wire_speed),
        "fig7" if states("bounded") => case.each_target(Case::mixes_are_bounded),
        "fig7" if states("proportional") => case.each_target(Case::mixes_in_proportion),
        "table1" if states("packet size") => case.each_target(Case::same_for_each_size),
        "table1" if states("table size") => case.each_target(Case::same_for_each_table),
        "fig9" if states("always below") => case.each_target(Case::loses_alike),
        "fig9" if states("slightly better") => case.each_pair(Case::fairer),
        "fig9" if states("slightly worse") => case.each_pair(Case::less_fair),
        "fig10" if states("F1 is favoured (") => case.each_target(Case::favours_the_smaller),
        "fig10" if states("the more F1") => case.each_target(Case::favours_with_overload),
        "fig10" if states("slightly fairer") => case.each_pair(Case::slightly_fairer),
        "fig10" if states("round robin") => case.round_robin_is_the_cause(),
        "fig10" if states("already overloaded") => case.each_target(Case::is_overloaded_at_first),
        "fig10" if states("no difference") => case.each_target(Case::stays_as_it_is),
        _ => vec![unread(claim)],
    }
}

impl<'a> Case<'a> {
    /// A line for each target of the technologies that the claim names.
    fn each_target(&self, judge: fn(&Self, &Target) -> Evaluation) -> Vec<ClaimVerdict> {
        let named = technologies(&self.claim.subject);
        let targets = self.measured().filter(|target| named.contains(&target.technology));
        self.or_nothing(
            targets
                .map(|target| self.line(vec![target.name.clone()], judge(self, target)))
                .collect(),
        )
    }

    /// Within each family, a line for each target of the first technology against each of the second.
    fn each_pair(&self, judge: fn(&Self, &Target, &Target) -> Evaluation) -> Vec<ClaimVerdict> {
        let named = technologies(&self.claim.subject);
        let [of, against] = named[..] else { return vec![unread(self.claim)] };
        let pairs = self
            .pairs()
            .filter(|(first, second)| first.technology == of && second.technology == against);
        let line = |(first, second): (&Target, &Target)| {
            self.line(vec![first.name.clone(), second.name.clone()], judge(self, first, second))
        };
        self.or_nothing(pairs.map(line).collect())
    }

    /// A line for each family with several targets of the technologies that the claim names.
    fn each_family(&self, judge: fn(&Self, &[&Target]) -> Evaluation) -> Vec<ClaimVerdict> {
        let named = technologies(&self.claim.subject);
        let mut families: Vec<(&str, Vec<&Target>)> = Vec::new();
        for target in self.measured().filter(|it| named.contains(&it.technology)) {
            match families.iter_mut().find(|(family, _)| *family == target.family) {
                Some((_, members)) => members.push(target),
                None => families.push((&target.family, vec![target])),
            }
        }
        families.retain(|(_, members)| members.len() > 1);
        let line = |(_, members): (&str, Vec<&Target>)| {
            let names = members.iter().map(|target| target.name.clone()).collect();
            self.line(names, judge(self, &members))
        };
        self.or_nothing(families.into_iter().map(line).collect())
    }

    /// The capacity that the run assumes for its links, in bits per second.
    fn wire_bps(&self) -> f64 {
        let set = self.record.parameters.get("capacity_bps").and_then(|it| it.as_f64());
        set.filter(|&capacity| capacity > 0.0).unwrap_or(STUDY_BPS)
    }

    /// The link's capacity in words.
    fn wire(&self) -> String {
        format!("{} Gbit/s", number::text(self.wire_bps() / 1e9))
    }

    /// Frames of this size on a full link, per second.
    fn wire_pps(&self, frame_bytes: f64) -> f64 {
        self.wire_bps() / (8.0 * (frame_bytes + WIRE_OVERHEAD_BYTES))
    }

    /// A target's cell at the point of another.
    fn beside(&self, cell: &Cell, metric: Metric) -> Option<&'a Cell> {
        self.cells(&cell.target, metric).into_iter().find(|other| other.point == cell.point)
    }

    /// The target's cell at the packet size and number of entries that the claim's condition states.
    fn at_condition(&self, target: &Target, metric: Metric) -> Option<&'a Cell> {
        let bytes = bytes_of(&self.claim.condition);
        let entries = entries_of(&self.claim.condition);
        self.cells(&target.name, metric).into_iter().find(|cell| {
            let curve = cell.point.within.as_ref();
            let is_table = entries.is_none_or(|entries| {
                curve.is_some_and(|it| it.name == "entries" && it.value == entries)
            });
            cell.point.value == bytes && is_table
        })
    }

    /// Regime: the tester offered the full capacity of the link where this cell was measured.
    fn offered_in_full(&self, cell: &Cell) -> Result<(), String> {
        let wire = self.wire_pps(cell.point.value);
        let offered = self.beside(cell, Metric::RatePpsOffered);
        let share = offered.map(|it| Estimate::of(it).about_behaviour().map(|pps| pps / wire));
        regime(
            share.map_or(Conclusion::Smaller, |it| it.against(WIRE_SHARE)),
            |it| it != Conclusion::Smaller,
            "the full capacity of the link is offered",
            &format!(
                "the tester offered {} % of {} {}",
                number::text(share.map_or(0.0, |it| it.value) * 100.0),
                self.wire(),
                place(cell)
            ),
        )
    }

    /// Where the loss at the point of a cell lies relative to that of an overloaded target.
    fn overload(&self, cell: &Cell) -> Conclusion {
        let loss = self.beside(cell, Metric::LossRatio);
        loss.map_or(Conclusion::Smaller, |loss| {
            Estimate::of(loss).about_behaviour().against(OVERLOAD_LOSS_RATIO)
        })
    }

    /// Regime: the target lost frames where this cell was measured.
    fn overloaded(&self, cell: &Cell) -> Result<(), String> {
        let loss = self.beside(cell, Metric::LossRatio).map_or(0.0, |it| it.value);
        regime(
            self.overload(cell),
            |it| it == Conclusion::Greater,
            &overload(),
            &format!("{} lost {} {}", label(&cell.target), lost(loss), place(cell)),
        )
    }

    /// Regime: a rate is the target's capacity, since it lost frames or the link was full.
    fn at_capacity(&self, cell: &Cell) -> Result<(), String> {
        self.overloaded(cell).or_else(|why| self.offered_in_full(cell).map_err(|_| why))
    }
}

/// The regime of overload in words.
fn overload() -> String {
    format!(
        "the target loses more than {} % of the frames",
        number::text(OVERLOAD_LOSS_RATIO * 100.0)
    )
}

/// A share of the frames in words, however small.
fn lost(ratio: f64) -> String {
    match ratio {
        0.0 => "no frames".into(),
        ratio => format!("{} % of the frames", number::text(ratio * 100.0)),
    }
}

/// Where a cell was measured, in words.
fn place(cell: &Cell) -> String {
    let value = number::setting(cell.point.value);
    let point = match cell.point.name.as_str() {
        "frame_bytes" => format!("at {value} bytes"),
        "load_percent" => format!("at a load of {value} %"),
        "f2_percent" => format!("with F2 at {value} %"),
        "linear_percent" => format!("with {value} % for the linear table"),
        other => format!("at {} = {value}", other.replace('_', " ")),
    };
    let curve = cell.point.within.as_ref().map(|curve| format!(" ({})", number::curve(curve)));
    point + &curve.unwrap_or_default()
}

/// A ratio below 1 as "lower by so many percent".
fn lower_percent(ratio: &Estimate) -> Estimate {
    ratio.map(|ratio| (1.0 - ratio) * 100.0)
}

/// "lower by 40 [38, 42] %", or higher where the sign is the other one; empty if no pair was measured.
fn difference(percent: &Estimate) -> String {
    if !percent.value.is_finite() {
        return String::new();
    }
    let is_higher = percent.value < 0.0;
    let word = if is_higher { "higher" } else { "lower" };
    let shown = if is_higher { percent.map(|it| -it) } else { *percent };
    let range =
        shown.interval.map_or("(one pair only)".into(), |it| number::range(&it, number::text));
    // A bound has no interval.
    match shown.open_ends() {
        [false, false] => format!("{word} by {} {range} %", number::text(shown.value)),
        _ => format!("{word} by {} %", amount(&shown)),
    }
}

/// A finding without numbers that decides nothing, for this reason.
fn nothing(reading: String, why: &str) -> Evaluation {
    Evaluation { reading, numbers: String::new(), verdict: undecided(why) }
}

/// The packet size that a condition states, such as `96-byte packets`.
fn bytes_of(condition: &str) -> f64 {
    let (before, _) = condition.split_once("-byte packets").unwrap_or_default();
    let digits = before.rsplit(|letter: char| !letter.is_ascii_digit()).next();
    digits.and_then(|digits| digits.parse().ok()).unwrap_or(SMALL_BYTES)
}

/// The number of entries that a condition states, such as `128K entries`.
fn entries_of(condition: &str) -> Option<f64> {
    let (before, _) = condition.split_once("K entries")?;
    let digits = before.rsplit(|letter: char| !letter.is_ascii_digit()).next()?;
    digits.parse::<f64>().ok().map(|thousands| thousands * 1024.0)
}

/// The technologies that a claim's subject names, in its order.
fn technologies(subject: &str) -> Vec<Technology> {
    if subject == "all three" {
        return vec![Technology::Routing, Technology::Bridging, Technology::Openflow];
    }
    if subject.contains("hash") || subject.contains("linear") || subject.contains("tables") {
        return vec![Technology::Openflow];
    }
    let words = subject.split([',', ' ']);
    words
        .filter_map(|word| match word {
            "routing" => Some(Technology::Routing),
            "bridge" => Some(Technology::Bridging),
            "openflow" => Some(Technology::Openflow),
            _ => None,
        })
        .collect()
}
