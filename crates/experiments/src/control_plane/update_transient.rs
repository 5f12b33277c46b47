//! Update transient: forwarding of frames while entries change.
//!
//! Claim: while an entry changes, a switch may apply the old entry, the new one, none (frame loss) or both
//! (duplicates), and alternate between them.
//!
//! Method: entries that send frames back change to forward them. The change is a modify, a second add, or a delete
//! and an add. Probes visit each entry in turn; the ports at which a probe arrives show which entry applied. A
//! lower entry drops unmatched frames. Frames lost before the change are reported too, because the path may also
//! lose frames.
//!
//! Source: metric C14 of the method; OFLOPS's consistency module.

use openflow::model::message::Message;
use openflow::model::{FlowMod, Match};
use packet::time::Nanos;
use tester::module::{
    Ended, Event, EventKind, MeasuredValue, Module, ModuleContext, ModuleRequirements,
};

use super::rounds::{ModulePoint, RepeatedModule};
use super::rule_updates::{AGAIN, BACK, Change, Frame, LEAD, ON, RuleUpdate};
use super::rules::{FAR, Priorities, Rules};
use super::summary::Summary;
use super::updates::{FRAME, PATIENCE, PRIORITIES, PROBES_PPS, RULES, VERSION, versions};
use crate::show::Chart;
use crate::{Context, Method};
use workload::parameter::declaration::{Parameter, ValueType};

/// Id of the stream of probes.
const PROBES: u16 = 1;

const BY: Parameter = Parameter {
    key: "by",
    takes: ValueType::Words(&["modify", "overwrite", "replace"]),
    default: "modify,replace",
    unit: "",
    help: "how entries change: by a modify, by a second add, or by a delete and an add",
};

/// Parameters of the experiment.
pub const PARAMETERS: &[Parameter] = &[RULES, BY, PRIORITIES, PROBES_PPS, FRAME, VERSION, PATIENCE];

/// Values that the report shows.
pub const SHOWS: &[Chart] = &[
    Chart::values(
        "Frames during the modification of entries, by applied entry",
        &["old_frames", "new_frames", "lost_frames", "both_frames"],
        &["again_frames", "stale_frames", "lost_before_frames", "rules_changed_ratio"],
    ),
    Chart::values(
        "Time of inconsistent forwarding of a modified entry",
        &["inconsistent_ns_max"],
        &["inconsistent_ns_p50", "rules_inconsistent_ratio", "update_ns", "resolution_ns"],
    ),
    Chart::values(
        "Frames and inconsistent time during a delete and an add",
        &["replace_lost_frames", "replace_old_frames", "replace_both_frames"],
        &["replace_inconsistent_ns_max", "replace_rules_inconsistent_ratio", "replace_update_ns"],
    ),
];

/// State of the module.
pub struct UpdateTransient {
    changing: RuleUpdate,
    /// Whether each entry has handled a frame in its new form.
    changed: Vec<bool>,
    missing: usize,
    changed_at: Nanos,
}

/// Frames of one entry.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct EntryFrames {
    /// Departure time of the first frame that was not handled by the old entry alone.
    not_old_first: Option<Nanos>,
    /// Departure time of the last frame that was not handled by the new entry alone.
    not_new_last: Option<Nanos>,
    /// Whether the new entry handled a frame.
    is_changed: bool,
}

/// Number of frames by entry that applied.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counts {
    old: u64,
    new: u64,
    lost: u64,
    both: u64,
    again: u64,
    stale: u64,
    lost_before: u64,
}

impl UpdateTransient {
    /// Creates the module for a change of `count` entries.
    pub fn new(change: Change, count: u32) -> UpdateTransient {
        let (changed, missing) = (vec![false; count as usize], count as usize);
        UpdateTransient {
            changing: RuleUpdate::new(change),
            changed,
            missing,
            changed_at: Nanos(0),
        }
    }

    /// Records a returned frame that was sent after the change began.
    fn probed(&mut self, rule: u64, port: usize, at: Nanos) {
        let Some(is_changed) = self.changed.get_mut(rule as usize) else { return };
        if port == FAR && !std::mem::replace(is_changed, true) {
            self.missing -= 1;
            self.changed_at = at;
        }
    }

    /// Returns whether every new entry has handled a frame, and was observed for a while afterwards.
    fn is_complete(&self, now: Nanos) -> bool {
        let watched = self.changing.round().saturating_add(LEAD);
        let is_acknowledged = self.changing.acknowledged_at.is_some();
        is_acknowledged && self.missing == 0 && now.since(self.changed_at) >= watched
    }

    /// Returns when the last entry handled its first frame in its new form; `None` while one has not.
    fn until(&self, sent_at: Nanos) -> Option<Nanos> {
        let mut first = vec![None; self.changed.len()];
        for (number, frame) in self.changing.frames().iter().enumerate() {
            if frame.sent_at >= sent_at && frame.seen & ON != 0 {
                first[number % self.changed.len()].get_or_insert(frame.sent_at);
            }
        }
        first.into_iter().try_fold(sent_at, |last, first| Some(last.max(first?)))
    }

    /// Counts the frames in the order of departure. The departure of a lost frame is about that of the frame before
    /// it.
    fn count(&self, sent_at: Nanos, until: Nanos) -> (Counts, Vec<EntryFrames>) {
        let mut counts = Counts::default();
        let mut rules = vec![EntryFrames::default(); self.changed.len()];
        let mut now = Nanos(0);
        let acknowledged_at = self.changing.acknowledged_at.unwrap_or(Nanos::MAX);
        for (number, frame) in self.changing.frames().iter().enumerate() {
            now = if frame.seen == 0 { now } else { frame.sent_at };
            if now < sent_at {
                counts.lost_before += u64::from(frame.seen == 0);
                continue;
            }
            counts.stale += u64::from(frame.seen == BACK && now > acknowledged_at);
            if now <= until {
                counts.note(frame);
            }
            rules[number % self.changed.len()].note(frame, now);
        }
        // If the tester skipped frames or the path loses some, the update does not explain missing frames.
        if counts.lost_before > 0 || self.changing.unsent() != Some(0) {
            rules.fill(EntryFrames::default());
            for (number, frame) in self.changing.frames().iter().enumerate() {
                if frame.sent_at >= sent_at && frame.seen != 0 {
                    rules[number % self.changed.len()].note(frame, frame.sent_at);
                }
            }
        }
        (counts, rules)
    }

    fn tell(&self, context: &mut ModuleContext) {
        let Some(sent_at) = self.changing.sent_at else { return };
        let until = self.until(sent_at);
        let (counts, rules) = self.count(sent_at, until.unwrap_or(Nanos::MAX));
        let unsent = self.changing.unsent();
        let mut tell = |measured: MeasuredValue| context.measured(measured);
        let known = unsent.unwrap_or(0) as f64;
        let frames = |name: &'static str, count: u64, half: f64| {
            MeasuredValue::new(name, "frames", count as f64, half)
        };
        tell(frames("old_frames", counts.old, 0.0));
        tell(frames("new_frames", counts.new, 0.0));
        tell(frames("both_frames", counts.both, 0.0));
        tell(frames("again_frames", counts.again, 0.0));
        tell(frames("stale_frames", counts.stale, 0.0));
        // Sequence numbers that were never sent are not frames; they may be among the missing ones.
        if let Some(unsent) = unsent {
            let lost = frames("lost_frames", counts.lost.saturating_sub(unsent), known);
            tell(if unsent > 0 { lost.noting(LEFT_OUT) } else { lost });
            let before = counts.lost_before.saturating_sub(unsent);
            tell(frames("lost_before_frames", before, known));
        }
        tell(MeasuredValue::new("errors_count", "count", self.changing.errors as f64, 0.0));
        let all = rules.len() as u64;
        let share = |count: usize| count as f64 / all as f64;
        let changed = rules.iter().filter(|rule| rule.is_changed).count();
        tell(MeasuredValue::new("rules_changed_ratio", "ratio", share(changed), 0.0).of(all));
        let round = self.changing.round().0 as f64;
        tell(MeasuredValue::new("resolution_ns", "ns", round, 0.0));
        if let Some(until) = until {
            let span = until.since(sent_at).0 as f64;
            tell(MeasuredValue::new("update_ns", "ns", span, round).of(all));
        }
        let windows: Vec<f64> = rules.iter().filter_map(EntryFrames::window_ns).collect();
        let inconsistent = windows.iter().filter(|span| **span > 0.0).count();
        if let Some(windows) = Summary::of(windows) {
            let share = inconsistent as f64 / windows.count() as f64;
            let told = MeasuredValue::new("rules_inconsistent_ratio", "ratio", share, 0.0);
            tell(told.of(windows.count()));
            windows.tell("inconsistent_ns", round, &mut tell);
        }
    }
}

/// Note for the report if sequence numbers were skipped.
const LEFT_OUT: &str = "the tester skipped late frames, which do not count as lost";

impl Counts {
    fn note(&mut self, frame: &Frame) {
        let seen = frame.seen;
        self.again += u64::from(seen & AGAIN != 0);
        match seen & (ON | BACK) {
            0 => self.lost += 1,
            ON => self.new += 1,
            BACK => self.old += 1,
            _ => self.both += 1,
        }
    }
}

impl EntryFrames {
    fn note(&mut self, frame: &Frame, at: Nanos) {
        if frame.seen != BACK {
            self.not_old_first.get_or_insert(at);
        }
        if frame.seen != ON {
            self.not_new_last = Some(at);
        }
        self.is_changed |= frame.seen & ON != 0;
    }

    /// Returns the time in which neither the old nor the new entry alone handled frames; `None` without a known
    /// change.
    fn window_ns(&self) -> Option<f64> {
        let first = self.not_old_first.filter(|_| self.is_changed)?;
        Some(self.not_new_last.map_or(0.0, |last| last.0 as f64 - first.0 as f64 + 1.0).max(0.0))
    }
}

impl Module for UpdateTransient {
    fn needs(&self) -> ModuleRequirements {
        self.changing.needs()
    }

    fn react(&mut self, event: &Event<'_>, context: &mut ModuleContext) {
        if let (EventKind::Frame(arrival), Some(from)) = (event.what, self.changing.sent_at) {
            match arrival.probe {
                Some(probe) if probe.sent_at >= from => {
                    self.probed(probe.place, arrival.port, event.at);
                }
                _ => {}
            }
        }
        if self.changing.react(event, context) && self.is_complete(event.at) {
            self.changing.conclude(context);
        }
    }

    fn finish(&mut self, _ended: &Ended, context: &mut ModuleContext) {
        self.tell(context);
    }
}

/// Deletes all entries of the first table except the lowest, which drops frames.
pub fn emptied() -> Vec<Message> {
    let drop = FlowMod::add(Match::ANY, 0, Vec::new());
    [FlowMod::delete(0, Match::ANY), drop].map(Message::FlowMod).into()
}

/// Returns the messages that change one entry.
fn changed(rules: &Rules, by: &str, place: u32, priority: u16) -> Vec<FlowMod> {
    match by {
        "overwrite" => vec![rules.add(place, priority)],
        "replace" => vec![rules.delete(place, priority), rules.add(place, priority)],
        _ => vec![rules.modify(place, priority)],
    }
}

/// Creates the method for one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    let own = &context.parameters.own;
    let mut spots = Vec::new();
    for count in own.integers(&RULES) {
        let rules = Rules::new(context, count as u32);
        let priorities = Priorities::of(own.text(&PRIORITIES), context.seed).all(count as u32);
        let pps = own.number(&PROBES_PPS);
        for by in own.words(&BY) {
            let each = || (0..).zip(&priorities);
            let backs = each().map(|(place, &priority)| rules.add_back(place, priority));
            let change = Change {
                before: emptied().into_iter().chain(backs.map(Message::FlowMod)).collect(),
                change: each()
                    .flat_map(|(place, &priority)| changed(&rules, by, place, priority))
                    .map(Message::FlowMod)
                    .collect(),
                stream: rules.probes(PROBES, own.integer(&FRAME) as usize, pps),
                versions: versions(context),
                patience: Nanos::from_secs_f64(own.number(&PATIENCE)),
            };
            let count = count as u32;
            let make =
                move |_| Box::new(UpdateTransient::new(change.clone(), count)) as Box<dyn Module>;
            let prefix = match by {
                "overwrite" => "overwrite_",
                "replace" => "replace_",
                _ => "",
            };
            spots.push(ModulePoint::new(f64::from(count), 1.0, make).named(prefix));
        }
    }
    Box::new(RepeatedModule::new(context, super::updates::AXIS, spots))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_is_the_time_of_inconsistent_forwarding() {
        let window = |seen: &[u8]| {
            let mut treated = EntryFrames::default();
            for (at, &seen) in (1..).zip(seen) {
                treated.note(&Frame { sent_at: Nanos(at), seen }, Nanos(at));
            }
            treated.window_ns()
        };
        assert_eq!(window(&[BACK, BACK, ON, ON]), Some(0.0));
        assert_eq!(window(&[BACK, 0, 0, ON]), Some(2.0), "lost");
        assert_eq!(window(&[BACK, ON | BACK, ON]), Some(1.0), "both");
        assert_eq!(window(&[ON, BACK, BACK, ON]), Some(3.0), "new, old, new");
        assert_eq!(window(&[BACK, BACK]), None);
    }

    #[test]
    fn frames_are_counted_by_applied_entry() {
        let mut counts = Counts::default();
        for seen in [ON, ON | AGAIN, BACK, 0, ON | BACK] {
            counts.note(&Frame { sent_at: Nanos(1), seen });
        }
        let expected = Counts { old: 1, new: 2, lost: 1, both: 1, again: 1, ..Counts::default() };
        assert_eq!(counts, expected);
    }
}
