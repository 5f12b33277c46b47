//! The sentences about a whole run: what was measured, how reliable it is, and what to do next.

use super::super::Measured;
use super::super::next::Next;
use super::super::reliability::{Account, Agents, PLACES, Reliability};
use super::{LISTED_MAX, effort, listed, listed_targets};
use crate::analysis::failed::Failures;
use crate::sentence::{Sentence, capitalised, runs_of, uncapitalised};
use record::number::{self, counted, inflected, setting, text};
use record::target_name::{label, scope_label};
use record::{BoundCause, Calibration, Effort, Limit, Point, Warning};

pub(super) fn measured(it: &Measured<'_>) -> String {
    let experiments = it.experiments.iter().map(|(name, items)| match (items, it.title) {
        (Some(items), _) => format!("{items} experiments of {name}"),
        (None, Some(title)) => format!("{} ({name})", uncapitalised(title)),
        (None, None) => (*name).to_string(),
    });
    let experiments = listed(&experiments.collect::<Vec<_>>());
    let all = |names: &[&str]| match names.len() > LISTED_MAX {
        true => format!("{} targets", names.len()),
        false => listed_targets(names),
    };
    let targets = match &it.targets[..] {
        [] => "no target".into(),
        [(_, first), others @ ..] if others.iter().all(|(_, names)| names == first) => {
            let links: Vec<&str> = it.targets.iter().map(|(link, _)| *link).collect();
            format!("{} over {}", all(first), listed(&links))
        }
        each => {
            let each = each.iter().map(|(link, names)| format!("{} over {link}", all(names)));
            each.collect::<Vec<_>>().join(", and ")
        }
    };
    let runs = if it.runs == 1 { "This run".into() } else { format!("These {} runs", it.runs) };
    let trials = counted(it.trials as u64, "trial");
    let time = match it.simulated {
        0 => "",
        runs if runs == it.runs => " of simulated time",
        _ => ", in part in simulated time,",
    };
    let effort = it.effort.map_or(String::new(), |it| format!(" with {} effort", effort(it)));
    format!("{runs} measured {experiments} on {targets} in {trials}{time}{effort}.")
}

pub(super) fn failed(Failures { error, failed, trials, reasons }: &Failures) -> String {
    let error = error.as_ref().map(|why| format!("The run failed: {why}."));
    let which = match (failed == trials, failed) {
        (true, 1) => "The only trial failed".to_string(),
        (true, _) => format!("Every trial failed ({failed} of {trials})"),
        (false, _) => format!("{failed} of {trials} trials failed"),
    };
    let each = reasons.iter().take(LISTED_MAX).map(|(text, count)| match count {
        1 => text.clone(),
        many => format!("{text} ({many} trials)"),
    });
    let more = match reasons.len().saturating_sub(LISTED_MAX) {
        0 => String::new(),
        more => format!("; and {more} other reasons"),
    };
    let each = each.collect::<Vec<_>>().join("; ");
    let trials = (*failed > 0).then(|| format!("{which}. {each}{more}."));
    error.into_iter().chain(trials).collect::<Vec<_>>().join(" ")
}

pub(super) fn reliability(it: &Reliability) -> Sentence {
    let (disturbed, cause) = &it.disturbed;
    let all = format!("Of {}, ", counted(it.trials as u64, "trial"));
    let some = |trials: &[u64], end: String| {
        let count = trials.len() as u64;
        let were = inflected(count, ["was", "were"]);
        match count {
            0 => Sentence::from(format!("none was{end}")),
            _ => Sentence::from(format!("{count} {were}{end} ("))
                .number(trials_listed(trials), trials)
                .and(")"),
        }
    };
    let why = cause.map_or(String::new(), |cause| format!(" because {cause}"));
    let found = Sentence::from(all).then(some(disturbed, format!(" disturbed{why}")));
    let found = match it.unused.is_empty() {
        true => found,
        false => found.and(" and ").then(some(&it.unused, " not used".into())),
    };
    let percent = |share: f64| format!("±{} %", text(share * 100.0));
    found.and(match it.widths {
        Some([median, widest]) => format!(
            "; intervals are {} of the value in the median and {} at most.",
            percent(median),
            percent(widest)
        ),
        None => "; no main value has an interval.".into(),
    })
}

/// The first groups of consecutive trials: `trials 3-5, 9`.
fn trials_listed(trials: &[u64]) -> String {
    let runs = runs_of(trials);
    let groups: Vec<&str> = runs.split(' ').collect();
    let more = if groups.len() > LISTED_MAX { " and others" } else { "" };
    let word = inflected(trials.len() as u64, ["trial", "trials"]);
    format!("{word} {}{more}", groups[..groups.len().min(LISTED_MAX)].join(", "))
}

pub(super) fn limited(experiment: &str, limit: Limit, targets: &[(&str, usize, usize)]) -> String {
    let names = targets.iter().map(|(name, some, all)| match some == all {
        true => label(name),
        false => format!("{} ({some} of {all} points)", label(name)),
    });
    let names = listed(&names.collect::<Vec<_>>());
    let found = match limit {
        Limit::Load => format!("{names} forwarded the whole offered load; the maximum is higher"),
        Limit::Target => format!("the forwarding rate of {names} is the maximum of the target"),
        Limit::Wire => {
            format!("{names} reached the capacity of the link; the maximum may be higher")
        }
        Limit::Tester => {
            format!("the tester limited the rate of {names}; the maximum may be higher")
        }
    };
    format!("In {experiment}, {found}.")
}

pub(super) fn repeats([least, most]: [u32; 2]) -> String {
    let repeats = match least == most {
        true => counted(least.into(), "repeat"),
        false => format!("{least} to {most} repeats"),
    };
    format!(
        "Each value is from {repeats}, and the targets take turns. Intervals have 95 % confidence, \
         or the level stated."
    )
}

pub(super) fn claims([confirmed, contradicted, open, by_construction]: [usize; 4]) -> String {
    let are = inflected(by_construction as u64, ["is about a model", "are about models"]);
    let circular = match by_construction {
        0 => String::new(),
        some => format!(" {some} more {are} made from the study, and not counted."),
    };
    format!(
        "Claims of the study: {confirmed} confirmed, {contradicted} contradicted, {open} \
         undecided.{circular}"
    )
}

pub(super) fn account(it: &Account) -> String {
    let Account { offered, received, lost, missing, surplus, cut_short } = *it;
    let some = |frames: u64, what: &str| {
        let were = inflected(frames, ["was", "were"]);
        format!("{} {were} {what}", number::count(frames as i64))
    };
    let omitted = match cut_short {
        0 => String::new(),
        trials => format!(" The account omits {}.", counted(trials as u64, "interrupted trial")),
    };
    if [offered, missing, surplus] == [0; 3] {
        return format!("No frames were offered.{omitted}");
    }
    let mut parts = vec![some(received, "received")];
    let places = PLACES.iter().zip(lost).filter(|(_, frames)| *frames > 0);
    parts.extend(
        places.map(|(place, frames)| some(frames, &format!("lost in the {}", place.word()))),
    );
    parts.push(match missing {
        0 => "none is unaccounted for".into(),
        1 => "1 is unaccounted for".into(),
        frames => format!("{} are unaccounted for", number::count(frames as i64)),
    });
    let more = match surplus {
        0 => String::new(),
        frames => {
            let were = inflected(frames, ["was", "were"]);
            format!(
                "; in some trials, {} more {were} received than sent",
                number::count(frames as i64)
            )
        }
    };
    let offered = number::count(offered as i64);
    format!("Of {offered} frames offered, {}{more}.{omitted}", listed(&parts))
}

pub(super) fn agents(
    Agents { trials: [read, counting], frames_in, frames_sent, problem }: &Agents<'_>,
) -> String {
    let silent = counted((read - counting) as u64, "trial");
    match (counting, read - counting) {
        (0, _) => format!(
            "SNMP agents were read in {silent}, but reported no frames: {}.",
            problem.unwrap_or_default()
        ),
        (_, none) => format!(
            "SNMP agents counted {} received frames of {} that the tester's ports sent{}.",
            number::count(*frames_in as i64),
            number::count(*frames_sent as i64),
            if none == 0 { String::new() } else { format!(", and reported none in {silent}") }
        ),
    }
}

pub(super) fn calibration(found: &Calibration, above: &[&str]) -> String {
    let bias = found.latency.as_ref().and_then(|latency| latency.ns_p50);
    let bias = bias.map_or(String::new(), |ns| {
        format!(" and adds {} µs to the median latency", text(ns as f64 / 1e3))
    });
    let at_least = if found.bound.is_some() { "at least " } else { "" };
    let why = match found.bound {
        Some(_) => "the calibration tries no higher load",
        None => "the tester carries more than the calibration found",
    };
    let above = match above {
        [] => String::new(),
        names => format!(" The forwarding rate of {} was higher: {why}.", listed_targets(names)),
    };
    format!(
        "The tester alone carries {at_least}{} frames/s of {} bytes over {}{bias}.{above}",
        text(found.rate_pps_ceiling as f64),
        found.frame_bytes,
        found.link,
    )
}

pub(super) fn warned(about: &str, points: &[&Point], warning: &Warning) -> String {
    let mut values: Vec<String> = points.iter().map(|it| setting(it.value)).collect();
    values.dedup();
    let more = match values.len().saturating_sub(LISTED_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    values.truncate(LISTED_MAX);
    let rows = points.first().map_or(String::new(), |first| {
        format!(" ({}: {}{more})", number::axis(&first.name), values.join(", "))
    });
    match about {
        "run" => format!("{}.", capitalised(&warning.sentence())),
        about => format!("{}{rows}: {}.", scope_label(about), warning.sentence()),
    }
}

/// What to do, with the command where one does it.
pub(super) fn next(it: &Next) -> String {
    match it {
        Next::Fix { command } => {
            format!("remove the cause of the failure, and repeat the run: '{command}'")
        }
        Next::Resume { done, planned } => {
            let of = planned.map_or(String::new(), |all| format!(" of {all}"));
            format!(
                "continue after {done}{of} trials: 'planimeter run --resume FOLDER', where FOLDER \
                 contains this report"
            )
        }
        Next::Isolate { disturbed, of, command } => format!(
            "stop other programs on this machine, which disturbed {disturbed} of {of} trials, and \
             repeat the run: '{command}'"
        ),
        Next::Live { command } => {
            format!("measure in real time, because simulated rates describe no machine: '{command}'")
        }
        Next::Overload { command } => format!(
            "offer a load that overloads every target, because the link reached its capacity first: \
             '{command}'"
        ),
        Next::Strengthen { cause } => match cause {
            BoundCause::TesterLimit => "give the tester more cores, because it reached its limit first",
            BoundCause::LinkLimit => "use a faster link, because the link reached its capacity first",
            BoundCause::SearchLimit => "raise the bound of the search, which ended at its largest value",
            BoundCause::Resolution => {
                "use a finer resolution, such as more probes per second, because a value is below the \
                 resolution"
            }
        }
        .into(),
        Next::Repeat { repeats, widths: Some([before, after]), command } => format!(
            "use {repeats} repeats, which narrow the interval of this ratio from ±{} % to about ±{} %: \
             '{command}'",
            text(before * 100.0),
            text((after * 1000.0).round() / 10.0)
        ),
        Next::Repeat { repeats, widths: None, command } => {
            format!("use {repeats} repeats, the fewest that give an interval: '{command}'")
        }
        Next::Publish { effort: Effort::Full, command } => {
            format!("measure as long as the studies did: '{command}'")
        }
        Next::Publish { command, .. } => {
            format!("measure ten times as long, for values to publish: '{command}'")
        }
        Next::Baseline => "compare a later run with this one: 'planimeter compare FOLDER NEW', where \
                           FOLDER contains this report"
            .into(),
    }
}
