//! State of a run from all its events so far, limited to what a page or a terminal shows.
//!
//! Invariants:
//! - The state is a function of the events, so that terminal, browser and file agree.
//! - Each list has a named limit, and drops its oldest entries first.
//! - A reader that has the state needs none of the earlier events.

use serde::{Deserialize, Serialize};

use tester::search::bracket::{Bracket, SearchQuantity};

use super::event::{Event, LiveEvent, PlannedPart, Rates, RunStarted, TrialBegun, TrialEnded};

/// Limit of stored rates of a port: half a minute.
pub const RATES_MAX: usize = 120;

/// Limit of displayed ports.
pub const PORTS_MAX: usize = tester::gauge::PORTS_MAX;

/// Limit of stored log lines.
pub const LINES_MAX: usize = 60;

/// Limit of stored warnings.
pub const WARNINGS_MAX: usize = 20;

/// Limit of targets with latencies or searches.
pub const TARGETS_MAX: usize = 32;

/// Limit of stored search steps.
pub const STEPS_MAX: usize = 80;

/// Limit of pairs of an experiment and a target with estimates.
pub const PARTS_MAX: usize = 4096;

/// Limit of drawn targets, switches and links.
pub const DRAWN_MAX: usize = 64;

/// State of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunState {
    /// The start event.
    pub begun: RunStarted,
    /// Time of the start, in milliseconds since 1970.
    pub begun_ms: u64,
    /// Time of the last event.
    pub told_ms: u64,
    /// Amount of work, once it is known.
    pub planned: Option<PlannedWork>,
    /// Completed trials, those of an earlier attempt included.
    pub done: u64,
    /// The trial in progress.
    pub trial: Option<TrialBegun>,
    /// Its start time.
    pub trial_ms: u64,
    /// Rates by port.
    pub ports: Vec<PortRates>,
    /// Latencies at the experiment's current point, by target.
    pub latencies: Vec<TargetLatencies>,
    /// Searches of the current experiment: the latest one for each target and goal.
    pub searches: Vec<Search>,
    /// Remarks, the newest last.
    pub log: Vec<TimedLine>,
    /// Warnings, the newest last.
    pub warnings: Vec<TimedLine>,
    /// Number of warnings.
    pub warned: u64,
    /// Number of lost events.
    pub lost: u64,
    /// How the run ended.
    pub over: Option<RunEnd>,
}

/// Amount of work.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PlannedWork {
    /// Trials in all.
    pub trials: u64,
    /// Durations by experiment and target.
    #[serde(default)]
    pub parts: Vec<PartProgress>,
    /// End of the last trial, or time of the event.
    pub ended_ms: u64,
}

/// Durations of the trials of an experiment on a target, in seconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PartProgress {
    /// Estimate of the trials that have not ended.
    pub left: PlannedPart,
    /// Estimate of the trials that ended.
    pub done_s: f64,
    /// Measured duration of the trials that ended.
    pub took_s: f64,
}

/// Frames per second of a port over time, the newest last.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PortRates {
    /// Sent.
    pub sent: Vec<u64>,
    /// Received.
    pub received: Vec<u64>,
}

/// A target's latencies at a point.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TargetLatencies {
    /// The target.
    pub target: String,
    /// By [step](tester::gauge::step_ns), of completed trials.
    pub counts: Vec<(usize, u64)>,
    /// Of the trial in progress.
    pub now: Vec<(usize, u64)>,
}

/// Progress of a search.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Search {
    /// The target.
    pub target: String,
    /// Its experiment, point and repeat.
    pub place: String,
    /// Its goal.
    pub sought: SearchQuantity,
    /// The upper limit of the search.
    pub most: f64,
    /// Resolution at which the search ends: the distance between the highest pass and the lowest
    /// fail, if it ends that way.
    pub width: Option<f64>,
    /// The state before each step, and the value it tried.
    pub steps: Vec<SearchStep>,
}

/// A step of a search.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct SearchStep {
    /// The value tried.
    pub tried: f64,
    /// The highest value that met the goal.
    pub met: Option<f64>,
    /// The lowest value that missed the goal.
    pub missed: Option<f64>,
}

/// A line and its time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TimedLine {
    /// Milliseconds since 1970.
    pub at_ms: u64,
    /// One line.
    pub text: String,
}

/// How a run ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunEnd {
    /// Whether it ended early.
    pub partial: bool,
    /// Why it failed, if it did.
    pub failure: Option<String>,
}

impl RunState {
    /// Adds an event.
    pub fn tell(&mut self, told: LiveEvent) {
        let LiveEvent { at_ms, lost, event } = told;
        match event {
            Event::Begun(begun) => {
                *self = RunState { begun: *begun, begun_ms: at_ms, ..RunState::default() };
            }
            Event::Planned { trials, done, parts } => {
                self.plan(trials, parts, at_ms);
                self.done = done;
            }
            Event::Trial(trial) => self.trial_begins(*trial, at_ms),
            Event::Searching(bracket) => {
                if let Some(trial) = self.trial.take() {
                    self.step(&trial, *bracket);
                    self.trial = Some(trial);
                }
            }
            Event::Rates(rates) => self.rates(&rates),
            Event::Ended(ended) => self.trial_ends(ended, at_ms),
            Event::Said { line } => push(&mut self.log, TimedLine { at_ms, text: line }, LINES_MAX),
            Event::Beat => {}
            Event::Over { partial, failure } => {
                self.trial = None;
                if let Some(why) = &failure {
                    self.warn(at_ms, why.clone());
                }
                self.over = Some(RunEnd { partial, failure });
            }
            Event::Picture { picture } => *self = *picture,
        }
        (self.told_ms, self.lost) = (at_ms, lost);
        self.bound();
    }

    /// Replaces the amount of work; what was measured stays.
    fn plan(&mut self, trials: u64, parts: Vec<PlannedPart>, at_ms: u64) {
        let known = self.planned.take().map_or(Vec::new(), |it| it.parts);
        let measured = |left: PlannedPart| {
            let is = |it: &&PartProgress| is_same_part(&it.left, &left);
            let (done_s, took_s) =
                known.iter().find(is).map_or((0.0, 0.0), |it| (it.done_s, it.took_s));
            PartProgress { left, done_s, took_s }
        };
        let parts = parts.into_iter().map(measured).collect();
        self.planned = Some(PlannedWork { trials, parts, ended_ms: at_ms });
    }

    fn trial_begins(&mut self, trial: TrialBegun, at_ms: u64) {
        let is_same_experiment =
            self.trial.as_ref().is_some_and(|last| last.experiment == trial.experiment);
        let is_same_point =
            is_same_experiment && self.trial.as_ref().is_some_and(|last| last.point == trial.point);
        if !is_same_experiment {
            self.searches.clear();
        }
        if !is_same_point {
            self.latencies.clear();
        }
        if let Some(target) = self.latencies.iter_mut().find(|it| it.target == trial.target) {
            for (step, times) in std::mem::take(&mut target.now) {
                match target.counts.iter_mut().find(|(known, _)| *known == step) {
                    Some((_, sum)) => *sum = sum.saturating_add(times),
                    None => target.counts.push((step, times)),
                }
            }
            target.counts.sort_unstable();
        }
        let mut trial = trial;
        for bracket in std::mem::take(&mut trial.brackets) {
            self.step(&trial, bracket);
        }
        (self.trial, self.trial_ms) = (Some(trial), at_ms);
    }

    /// Adds a step of a search; a step at another place starts a new search.
    fn step(&mut self, trial: &TrialBegun, bracket: Bracket) {
        let place = format!("{} {}, repeat {}", trial.experiment, trial.point, trial.repeat);
        let Bracket { sought, tried, met, missed, most, width } = bracket;
        let is = |it: &Search| it.target == trial.target && it.sought == sought;
        let search = match self.searches.iter().position(is) {
            Some(known) => &mut self.searches[known],
            None => {
                let target = trial.target.clone();
                let new = Search { target, sought, ..Search::default() };
                push(&mut self.searches, new, TARGETS_MAX);
                self.searches.last_mut().expect("one was just put in")
            }
        };
        if search.place != place {
            search.place = place;
            search.steps.clear();
        }
        (search.most, search.width) = (most, width);
        push(&mut search.steps, SearchStep { tried, met, missed }, STEPS_MAX);
    }

    fn rates(&mut self, rates: &Rates) {
        self.ports.resize(rates.ports.len().min(PORTS_MAX), PortRates::default());
        for (port, &[sent, received]) in self.ports.iter_mut().zip(&rates.ports) {
            push(&mut port.sent, sent, RATES_MAX);
            push(&mut port.received, received, RATES_MAX);
        }
        let Some(trial) = &self.trial else { return };
        if rates.latencies.is_empty() {
            return;
        }
        match self.latencies.iter_mut().find(|it| it.target == trial.target) {
            Some(target) => target.now.clone_from(&rates.latencies),
            None => {
                let (target, now) = (trial.target.clone(), rates.latencies.clone());
                let counts = Vec::new();
                push(&mut self.latencies, TargetLatencies { target, counts, now }, TARGETS_MAX);
            }
        }
    }

    fn trial_ends(&mut self, ended: TrialEnded, at_ms: u64) {
        self.done += 1;
        let own = self.trial.as_ref().filter(|trial| trial.id == ended.id);
        if let Some(planned) = &mut self.planned {
            let took_s = at_ms.saturating_sub(planned.ended_ms) as f64 / 1e3;
            planned.ended_ms = at_ms;
            if let Some((trial, seconds)) = own.and_then(|it| Some((it, it.seconds?))) {
                planned.end(trial, seconds, took_s);
            }
        }
        if !ended.warnings.is_empty() {
            self.warn(at_ms, format!("trial {}: {}", ended.id, ended.warnings.join("; ")));
        }
        push(&mut self.log, TimedLine { at_ms, text: ended.line }, LINES_MAX);
    }

    fn warn(&mut self, at_ms: u64, text: String) {
        self.warned += 1;
        push(&mut self.warnings, TimedLine { at_ms, text }, WARNINGS_MAX);
    }

    /// Enforces the limits on a state that another process wrote.
    fn bound(&mut self) {
        self.begun.targets.truncate(DRAWN_MAX);
        self.begun.experiments.truncate(DRAWN_MAX);
        for network in self.begun.targets.iter_mut().filter_map(|it| it.network.as_mut()) {
            network.switches.truncate(DRAWN_MAX);
            network.links.truncate(DRAWN_MAX);
            network.instrument.truncate(DRAWN_MAX);
        }
        self.ports.truncate(PORTS_MAX);
        for port in &mut self.ports {
            keep(&mut port.sent, RATES_MAX);
            keep(&mut port.received, RATES_MAX);
        }
        keep(&mut self.latencies, TARGETS_MAX);
        for target in &mut self.latencies {
            for counts in [&mut target.counts, &mut target.now] {
                counts.retain(|(step, _)| *step < tester::gauge::STEPS);
                counts.truncate(tester::gauge::STEPS);
            }
        }
        self.planned.iter_mut().for_each(|planned| planned.parts.truncate(PARTS_MAX));
        keep(&mut self.searches, TARGETS_MAX);
        self.searches.iter_mut().for_each(|search| keep(&mut search.steps, STEPS_MAX));
        keep(&mut self.log, LINES_MAX);
        keep(&mut self.warnings, WARNINGS_MAX);
    }

    /// Returns the approximate remaining time in seconds. The estimates are scaled by the ratio of
    /// measured to estimated time of the trials that ended.
    pub fn seconds_left(&self, now_ms: u64) -> Option<f64> {
        let planned = self.planned.as_ref().filter(|_| self.over.is_none())?;
        let since_s = now_ms.saturating_sub(planned.ended_ms) as f64 / 1e3;
        Some((planned.seconds_left() - since_s).max(0.0))
    }

    /// Returns all latencies of a target at this point, by step.
    pub fn histogram(&self, target: &str) -> Vec<(usize, u64)> {
        let Some(found) = self.latencies.iter().find(|it| it.target == target) else {
            return Vec::new();
        };
        let mut all = found.counts.clone();
        for &(step, times) in &found.now {
            match all.iter_mut().find(|(known, _)| *known == step) {
                Some((_, sum)) => *sum = sum.saturating_add(times),
                None => all.push((step, times)),
            }
        }
        all.sort_unstable();
        all
    }
}

impl PlannedWork {
    /// Records the end of a trial, with its estimated and measured duration.
    fn end(&mut self, trial: &TrialBegun, seconds: f64, took_s: f64) {
        let is = |it: &&mut PartProgress| {
            it.left.experiment == trial.experiment && it.left.target == trial.target
        };
        let Some(part) = self.parts.iter_mut().find(is) else { return };
        part.left.seconds = (part.left.seconds - seconds).max(0.0);
        (part.done_s, part.took_s) = (part.done_s + seconds, part.took_s + took_s);
    }

    /// Returns the estimates of the trials that have not ended, scaled by what was measured of the
    /// same experiment and target; until then, by what was measured of the target, or of all.
    fn seconds_left(&self) -> f64 {
        let sums = |is_meant: &dyn Fn(&PartProgress) -> bool| {
            let parts = self.parts.iter().filter(|it| is_meant(it));
            parts.fold((0.0, 0.0), |(done, took), it| (done + it.done_s, took + it.took_s))
        };
        let ratio = |(done_s, took_s): (f64, f64), otherwise: f64, weight_s: f64| {
            let weight_s = if done_s > 0.0 { weight_s } else { 1.0 };
            (took_s + weight_s * otherwise) / (done_s + weight_s)
        };
        let of_all = ratio(sums(&|_| true), 1.0, 0.0);
        let scaled = self.parts.iter().map(|part| {
            let of_target = ratio(sums(&|it| it.left.target == part.left.target), of_all, 0.0);
            // The first trials of a part may differ from the others.
            part.left.seconds * ratio((part.done_s, part.took_s), of_target, part.left.trial_s)
        });
        scaled.sum()
    }
}

fn is_same_part(one: &PlannedPart, other: &PlannedPart) -> bool {
    (&one.experiment, &one.target) == (&other.experiment, &other.target)
}

/// Appends an entry, and removes the oldest one if the list is full.
fn push<T>(row: &mut Vec<T>, one: T, most: usize) {
    row.push(one);
    keep(row, most);
}

/// Keeps the newest entries.
fn keep<T>(row: &mut Vec<T>, most: usize) {
    let over = row.len().saturating_sub(most);
    row.drain(..over);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::event::{NetworkWiring, TargetStatus};
    use crate::live::example::{bracket, picture, told, trial};

    #[test]
    fn events_update_the_state() {
        let picture = picture();
        assert_eq!((picture.done, picture.planned.as_ref().unwrap().trials), (2, 24));
        let steps = |at: usize| picture.searches[at].steps.len();
        assert_eq!((picture.searches.len(), steps(0), steps(1)), (2, 2, 1));
        assert_eq!(picture.searches[0].steps[1].missed, Some(1e6));
        assert_eq!(picture.ports[0].sent, [900_000, 800_000, 500_000]);
        // The first trial's latencies, and those of the third so far.
        assert_eq!(picture.histogram("switch"), [(12, 40), (14, 120), (20, 2)]);
        assert_eq!(picture.histogram("ovs"), [(12, 20), (14, 60), (20, 1)]);
        assert_eq!(picture.warned, 1);
        assert!(picture.warnings[0].text.contains("trial 2"), "{:?}", picture.warnings);
        // The estimate is 60 s; two trials took the four seconds that were estimated for them.
        assert_eq!(picture.seconds_left(6_000), Some(56.0));
    }

    #[test]
    fn the_remaining_time_follows_the_measured_time_of_each_target() {
        let mut state = picture();
        // The third trial, on "switch", takes six seconds instead of two: 30 s were estimated for each
        // target, of which 26 and 28 s are left.
        let ended = TrialEnded { id: 3, line: String::new(), warnings: Vec::new() };
        state.tell(told(12_000, Event::Ended(ended)));
        let (ours, ovs) = (26.0 * (8.0 + 2.5 * 2.0) / (4.0 + 2.5), 28.0);
        let left = state.seconds_left(12_000).unwrap();
        assert!((left - (ours + ovs)).abs() < 1e-9, "{left}");
        // It decreases while the next trial runs.
        assert_eq!(state.seconds_left(13_000), Some(left - 1.0));
        // A new plan keeps what was measured.
        let parts = state.planned.as_ref().unwrap().parts.iter().map(|it| it.left.clone());
        let parts: Vec<PlannedPart> = parts.filter(|it| it.target == "switch").collect();
        state.tell(told(13_000, Event::Planned { trials: 12, done: 3, parts }));
        let left = state.seconds_left(13_000).unwrap();
        assert!((left - ours).abs() < 1e-9, "{left}");
    }

    #[test]
    fn a_state_event_replaces_all_earlier_events_and_round_trips() {
        let text =
            serde_json::to_string(&told(7_000, Event::Picture { picture: Box::new(picture()) }))
                .unwrap();
        let mut other = RunState::default();
        other.tell(serde_json::from_str(&text).unwrap());
        let known = RunState { told_ms: 7_000, ..picture() };
        assert_eq!(other, known);
    }

    #[test]
    fn the_state_is_limited_for_any_events() {
        let mut picture = RunState::default();
        for at in 0..2_000 {
            picture.tell(told(at, Event::Said { line: format!("{at}") }));
            let rates = Rates { ports: vec![[at, at]; 99], latencies: vec![(at as usize, 1)] };
            picture.tell(told(at, trial(at, &format!("t{at}"), 1.0, Some(Bracket::default()))));
            picture.tell(told(at, Event::Rates(rates)));
        }
        let network =
            NetworkWiring { switches: vec![String::new(); 999], ..NetworkWiring::default() };
        picture.begun.targets =
            vec![TargetStatus { network: Some(network), ..TargetStatus::default() }; 99];
        let mut other = RunState::default();
        other.tell(told(1, Event::Picture { picture: Box::new(picture.clone()) }));
        assert_eq!((other.log.len(), other.ports.len()), (LINES_MAX, PORTS_MAX));
        assert_eq!((other.ports[0].sent.len(), other.searches.len()), (RATES_MAX, TARGETS_MAX));
        assert_eq!(other.log.last().unwrap().text, "1999");
        assert_eq!(other.begun.targets.len(), DRAWN_MAX);
        assert_eq!(other.begun.targets[0].network.as_ref().unwrap().switches.len(), DRAWN_MAX);
        assert!(other.latencies.iter().all(|it| it.now.iter().all(|(step, _)| *step < 48)));
    }

    #[test]
    fn each_goal_has_its_own_search_and_its_later_steps_join_it() {
        let mut picture = picture();
        let goal = |what: &'static str, ratio| Bracket {
            sought: SearchQuantity::load(what, ratio),
            ..bracket(4e5, Some(3e5), Some(5e5))
        };
        let Event::Trial(mut both) = trial(4, "switch", 4e5, None) else { unreachable!() };
        both.brackets = vec![goal("ndr", 0.0), goal("pdr", 0.005)];
        picture.tell(told(7_000, Event::Trial(both)));
        let names = |picture: &RunState| -> Vec<String> {
            picture.searches.iter().map(|it| format!("{} {}", it.target, it.sought.what)).collect()
        };
        assert_eq!(
            names(&picture),
            ["switch throughput", "ovs throughput", "switch ndr", "switch pdr"]
        );
        let within = Bracket { tried: 7.0, ..goal("pdr", 0.005) };
        picture.tell(told(7_100, Event::Searching(Box::new(within))));
        assert_eq!(picture.searches[3].steps.len(), 2);
        assert_eq!(picture.searches[3].steps[1].tried, 7.0);
        // Before any trial, a search step belongs to none.
        let mut none = RunState::default();
        none.tell(told(1, Event::Searching(Box::new(goal("ndr", 0.0)))));
        assert!(none.searches.is_empty());
    }

    #[test]
    fn a_new_point_resets_latencies_and_a_new_experiment_resets_searches() {
        let mut picture = picture();
        let Event::Trial(mut next) = trial(4, "switch", 1.0, None) else { unreachable!() };
        next.point = "frame_bytes=128".into();
        picture.tell(told(8_000, Event::Trial(next.clone())));
        assert!(picture.latencies.is_empty() && !picture.searches.is_empty());
        next.experiment = "latency".into();
        picture.tell(told(9_000, Event::Trial(next)));
        assert!(picture.searches.is_empty());
    }
}
