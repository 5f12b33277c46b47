//! The sentence of each kind of finding.
//!
//! Rules: CONTRIBUTING, "How to write"; a value has its interval and unit, `1.34 [1.21, 1.48] µs`.
//! Invariant: nothing is decided here.

mod run;

use super::rules::Barrier;
use super::{Difference, End, Finding, Place, Value};
use crate::sentence::{Sentence, uncapitalised};
use record::number::{self, inflected, setting, text};
use record::target_name::label;
use record::{
    BoundCause, Cell, Claim, ClaimVerdict, Effort, Exclusion, Point, Reason, Relation, Verdict,
};
use stats::conclude::Conclusion;

/// Maximum number of targets, points, reasons or groups of trials that a sentence lists.
const LISTED_MAX: usize = 6;

impl Finding<'_> {
    /// Whether it leaves a difference between values to state.
    pub(super) fn has_order(&self) -> bool {
        match self {
            Finding::Of { findings, .. } => findings.iter().any(Finding::has_order),
            Finding::Single { target, .. } => target.is_some(),
            Finding::Unordered { reason, .. } => *reason == Reason::Overlap,
            Finding::Unresolved { .. } => false,
            _ => true,
        }
    }

    /// Whether readers look for it first: a main result, a failure, or that a run is not usable.
    pub(crate) fn is_prominent(&self) -> bool {
        use Finding::{Difference, Measured, Next, Reliability};
        !matches!(self, Measured(_) | Difference(_) | Reliability(_) | Next(_))
    }

    /// The finding as a sentence. Its numbers have the trials that they rest on.
    pub(crate) fn sentence(&self) -> Sentence {
        match self {
            Finding::Of { experiment, is_titled, findings } => {
                let title = experiment.title.split(':').next().unwrap_or_default();
                let subject = match is_titled {
                    true => format!("{title} ({}): ", experiment.id),
                    false => format!("{}: ", experiment.id),
                };
                let all = findings.iter().map(Finding::sentence);
                Sentence::from(subject).then(Sentence::joined(all, " ", " "))
            }
            Finding::NotUsable { disturbed, of } => {
                let why = Exclusion::RunDisturbed { trials: *disturbed, of: *of };
                format!("Not usable: {why}.").into()
            }
            Finding::Single { place, target, cell } => {
                let of = target.as_deref().unwrap_or("every target");
                let end = match (target, cell.bound) {
                    (None, Some(bound)) => format!(": {}.", bound.cause),
                    (None, None) => " (equivalent within 1 %).".into(),
                    _ => ".".into(),
                };
                subject(place, &format!("of {of} is ")).then(quantity(cell)).and(end)
            }
            Finding::Extremes { place, ends } => extremes(place, ends),
            Finding::Unordered { place, ends, reason } => {
                let [least, most] = ends;
                let shown = |it: &Value<'_>| number::quantity_of_cell(it.cell);
                let found = match shown(least) == shown(most) {
                    true => subject(place, "of every target is ").then(quantity(most.cell)),
                    false => subject(place, "is between ").then(on_each(ends)),
                };
                found.and(format!("; the order is undecided: {}.", undecided(*reason)))
            }
            Finding::Unresolved { place, values } => {
                subject(place, "is below the resolution: ").then(on_each(values)).and(".")
            }
            Finding::Difference(it) => difference(it),
            Finding::Barriers(all) => barriers(all),
            Finding::Activation { rules, values } => {
                let last = format!("The last of {} rules acts after ", setting(*rules));
                Sentence::from(last).then(on_each(values)).and(".")
            }
            Finding::Ranks(targets) => {
                let each = targets.iter().map(|(target, ranks)| {
                    let ranks = ranks.iter().map(|(by, rank)| format!("{rank} by {by}"));
                    format!("{target} ranks {}", ranks.collect::<Vec<_>>().join(", "))
                });
                let each = each.collect::<Vec<_>>().join("; ");
                format!("Among the switches of the study (1 is the best), {each}.").into()
            }
            Finding::Costs([more, less, open]) => format!(
                "The more programmable target costs more in {more} and less in {less} of {} \
                 comparisons in the same workload; {open} {} undecided.",
                more + less + open,
                inflected(*open as u64, ["is", "are"])
            )
            .into(),
            Finding::Reliability(it) => run::reliability(it),
            Finding::Measured(it) => run::measured(it).into(),
            Finding::Failed(it) => run::failed(it).into(),
            Finding::Limited { experiment, limit, targets } => {
                run::limited(experiment, *limit, targets).into()
            }
            Finding::Repeats(ends) => run::repeats(*ends).into(),
            Finding::Account(it) => run::account(it).into(),
            Finding::Agents(it) => run::agents(it).into(),
            Finding::Calibration { found, above } => run::calibration(found, above).into(),
            Finding::Claims(counts) => run::claims(*counts).into(),
            Finding::Warned { about, points, warning } => {
                run::warned(about, points, warning).into()
            }
            Finding::FirstLook { repeats, seconds } => format!(
                "Quick effort ({repeats} repeats, trials of {seconds} s) is a first look; --effort \
                 standard measures ten times as long, and --effort full as the studies."
            )
            .into(),
            Finding::Next(it) => format!("Next: {}.", run::next(it)).into(),
        }
    }
}

/// The beginning of a sentence about a metric at a place: `With 64-byte packets, the throughput `.
fn subject(place: &Place<'_>, end: &str) -> Sentence {
    format!("{}, the {} {end}", at(place), number::title(place.metric)).into()
}

/// The place for the beginning of a sentence: `With 64-byte packets`.
fn at(Place { x_name, point, .. }: &Place<'_>) -> String {
    let x = setting(point.value);
    let one_or_many = |forms| inflected(point.value as u64, forms);
    let found = match *x_name {
        "frame_bytes" => format!("With {x}-byte packets"),
        "occupancy_percent" if point.value == 0.0 => "With one rule".into(),
        "load_percent" => format!("At a load of {x} %"),
        "entries" => format!("With {x} table {}", one_or_many(["entry", "entries"])),
        "rules" => format!("With {x} {}", one_or_many(["rule", "rules"])),
        "f2_percent" => format!("With F2 at {x} % of C"),
        "linear_percent" => format!("With {x} % of the traffic for the linear table"),
        "window_bytes" => format!("With a window of {x} bytes"),
        "rate_pps_intended" => format!("At a load of {x} frames/s"),
        other => format!("At {} = {x}", other.replace('_', " ")),
    };
    let curve = point.within.as_ref().map(|curve| format!(" and {}", number::curve(curve)));
    found + &curve.unwrap_or_default()
}

/// A value with its interval and unit; a bound in words.
fn quantity(cell: &Cell) -> Sentence {
    Sentence::default().number(number::quantity_in_words(cell), &cell.trials)
}

/// Values and their targets: `3 µs on a, 4 µs on b and 5 µs on c`.
fn on_each<'a>(values: impl IntoIterator<Item = &'a Value<'a>>) -> Sentence {
    let each = |it: &Value<'_>| quantity(it.cell).and(format!(" on {}", it.target));
    Sentence::joined(values.into_iter().map(each), ", ", " and ")
}

fn extremes(place: &Place<'_>, ends: &[End<'_>; 2]) -> Sentence {
    let mut found = Sentence::from(format!("{}, ", at(place)));
    for (index, End { is_highest, found: end }) in ends.iter().enumerate() {
        let word = if *is_highest { "highest" } else { "lowest" };
        found = match end {
            Ok(values) => {
                let names: Vec<&str> = values.iter().map(|it| it.target.as_str()).collect();
                let has = inflected(names.len() as u64, ["has", "have"]);
                let (and, title) = match index {
                    0 => {
                        (String::new(), format!("{has} the {word} {}", number::title(place.metric)))
                    }
                    _ => (", and ".into(), format!("{has} the {word}")),
                };
                let equal = if names.len() > 1 { " (equivalent within 1 %)" } else { "" };
                let found = found.and(format!("{and}{} {title}{equal}, ", listed(&names)));
                found.then(quantity(values[0].cell))
            }
            Err((names, reason)) => found.and(format!(
                "; which of {} has the {word} is undecided: {}",
                listed(names),
                undecided(*reason)
            )),
        };
    }
    found.and(".")
}

/// Why an order is undecided.
fn undecided(reason: Reason) -> String {
    match reason {
        Reason::Overlap => "the differences are not significant".into(),
        reason => reason.to_string(),
    }
}

fn difference(it: &Difference<'_>) -> Sentence {
    let Difference { of, base, x_name, ratio, conclusion } = it;
    let at = |cell: &Cell| {
        let point = Point { within: None, ..cell.point.clone() };
        uncapitalised(&at(&Place { x_name, point: &point, metric: cell.metric }))
    };
    let [first, second] = match of.cell.target == base.cell.target {
        true => [of, base].map(|it| at(it.cell)),
        false => [of, base].map(|it| format!("of {}", it.target)),
    };
    let range = ratio.interval.map(|it| format!("{} ", number::range(&it, text)));
    let times = format!("{} {}times", text(ratio.value), range.unwrap_or_default());
    let trials = [of, base].map(|it| it.cell.trials.as_slice()).concat();
    let end = match conclusion {
        Conclusion::Greater | Conclusion::Smaller => ", a significant difference".to_string(),
        Conclusion::Equivalent => ", equivalent within 1 %".into(),
        Conclusion::Undecided(Reason::Overlap) => ", not a significant difference".into(),
        Conclusion::Undecided(reason) => format!("; whether they differ is undecided: {reason}"),
    };
    let found = format!("The {} {first} is ", number::title(of.cell.metric));
    Sentence::from(found).number(times, &trials).and(format!(" that {second}{end}."))
}

fn barriers(all: &[Barrier<'_>]) -> Sentence {
    let is_early = |it: &&Barrier<'_>| it.is_early == Conclusion::Greater;
    let mut parts: Vec<Sentence> = all.iter().filter(is_early).map(early).collect();
    let is_name_first = !parts.is_empty();
    let is_in_time =
        |it: &&Barrier<'_>| matches!(it.is_early, Conclusion::Equivalent | Conclusion::Smaller);
    let in_time = all.iter().filter(is_in_time).map(|it| it.target.as_str());
    let in_time: Vec<&str> = in_time.collect();
    if !in_time.is_empty() {
        parts.push(format!("no rule was premature on {}", listed(&in_time)).into());
    }
    for barrier in all {
        if let Conclusion::Undecided(reason) = barrier.is_early {
            parts.push(unproven(barrier, reason).into());
        }
    }
    let found = Sentence::joined(parts, "; ", "; ").and(".");
    if is_name_first { found } else { found.capitalised() }
}

/// `X acknowledges rules 355 ms before they act (58 % of 1000 rules premature)`: without the time if
/// the probes do not show that the last rule acts after the reply.
fn early(it: &Barrier<'_>) -> Sentence {
    let mut found = Sentence::from(format!("{} acknowledges rules ", it.target));
    if let Some(gap) = it.shown_gap() {
        found = found.number(number::quantity(gap.metric, gap.value), &gap.trials).and(" ");
    }
    let rules = setting(it.premature.point.value);
    let share = share_in_words(it.premature);
    let found = found.and("before they act (").number(share, &it.premature.trials);
    found.and(format!(" of {rules} rules premature)"))
}

/// Why it is open whether a switch acknowledges early.
fn unproven(Barrier { target, premature, .. }: &Barrier<'_>, reason: Reason) -> String {
    let is_unresolved =
        matches!(reason, Reason::Bounded { bound } if bound.cause == BoundCause::Resolution);
    match premature.resolution.filter(|_| is_unresolved && premature.value == 0.0) {
        Some(share) => format!(
            "no rule was proven premature on {target}, but the probes cannot exclude it for {} % of {} \
             rules",
            text(share * 100.0),
            setting(premature.point.value)
        ),
        None => {
            format!("whether {target} acknowledges rules before they act is undecided: {reason}")
        }
    }
}

/// A share of rules that probes prove premature; others may be so where the probes do not resolve it.
pub(crate) fn share_in_words(premature: &Cell) -> String {
    let at_least = if premature.resolution > Some(0.0) { "at least " } else { "" };
    format!("{at_least}{} %", text(premature.value * 100.0))
}

/// The effort in a word.
pub(crate) fn effort(effort: Effort) -> &'static str {
    match effort {
        Effort::Quick => "quick",
        Effort::Standard => "standard",
        Effort::Full => "full",
    }
}

/// `a`, `a and b`, `a, b and c`.
pub(crate) fn listed<T: AsRef<str>>(words: &[T]) -> String {
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    match &words[..] {
        [] => "nothing".into(),
        [one] => (*one).to_string(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// The labels of targets, listed.
pub(crate) fn listed_targets(names: &[&str]) -> String {
    listed(&names.iter().map(|name| label(name)).collect::<Vec<_>>())
}

/// How the study made a claim, and how it is tested here.
pub(crate) fn claim_setting(ClaimVerdict { claim, reading, .. }: &ClaimVerdict) -> String {
    let place = match claim.place.as_str() {
        "" => String::new(),
        place => format!(" ({place})"),
    };
    let test = match reading.as_str() {
        "" => String::new(),
        reading => format!(" Test here: {reading}."),
    };
    format!("In the study{place}: {}.{test}", claim.condition)
}

/// The labels of the targets of a verdict on a claim.
pub(crate) fn claim_targets(line: &ClaimVerdict) -> String {
    line.targets.iter().map(|name| label(name)).collect::<Vec<_>>().join(", ")
}

/// The values that decide a claim, or the reason why it is undecided.
pub(crate) fn claim_numbers(line: &ClaimVerdict) -> String {
    match &line.verdict {
        Verdict::Undecided(why) if line.numbers.is_empty() => why.clone(),
        Verdict::Undecided(why) => format!("{}; {why}", line.numbers),
        _ => line.numbers.clone(),
    }
}

/// What a claim states, with its value in place.
pub(crate) fn statement(claim: &Claim) -> String {
    let unit = match claim.unit.as_str() {
        "percent" => " %".to_string(),
        "us" => " µs".to_string(),
        "" => String::new(),
        unit => format!(" {unit}"),
    };
    let value = match claim.relation {
        _ if claim.value.is_empty() => String::new(),
        Relation::From if claim.claim.ends_with("at least") => format!(" {}{unit}", claim.value),
        Relation::From => String::new(),
        Relation::About | Relation::UpTo | Relation::Below | Relation::Range => {
            format!(" {}{unit}", claim.value)
        }
        _ => format!(" ({}{unit})", claim.value),
    };
    format!("{}: {}{value}", claim.subject, claim.claim)
}
