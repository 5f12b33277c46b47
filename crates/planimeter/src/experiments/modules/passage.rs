//! Frames pass rules side by side: how long those of each rule take, and whether they come out as they
//! should.
//!
//! Source: OFLOPS's forwarding latency and action delay (`docs/oflops.md`). Every case is a rule of its own
//! for frames of its own, and one stream visits the cases of its kind in turn, so that what is compared
//! was measured in the same trial, frame by frame. How a frame is to come out is what the generator would
//! make of it with other headers, to the last byte. Invariant: a case that the switch refused, or that
//! its version cannot say, has no latency; a frame that did not come out proves nothing but loss.

use std::borrow::Cow;

use instrument::module::{
    Arrival, Connection, Desk, Event, Facts, Frames, Needs, Probe, Said, Span, TimerId, Watch, What,
};
use instrument::stream::Stream;
use openflow::header::Xid;
use openflow::model::message::Message;
use openflow::version::Version;
use packet::time::Nanos;

use super::rules::{FAR, NEAR, sent};
use super::spread::Spread;
use super::verdict::{Activation, Bound};
use crate::target::network::Hop;

/// How long frames under way are waited for.
const DRAIN: Nanos = Nanos::from_millis(50);

/// The limit by which a module ends whose switch does not say that its rules are there.
pub const UNANSWERED: &str = "patience for the barrier behind the rules";

/// Frames of each case that are compared byte by byte.
const CHECKED_MAX: u64 = 256;

/// Frames in a row that show that a rule acts.
const IN_A_ROW: u64 = 3;

/// Frames of each case that probe at once whether its rule acts.
const PROBES: u64 = 4;

/// Probing frames take at most so long at once.
const PROBING_MAX: Nanos = Nanos::from_secs(1);

/// Delays of each case that are kept.
const DELAYS_MAX: usize = 1 << 20;

/// A rule for frames of its own.
#[derive(Debug, Clone)]
pub struct Case {
    /// What it is called, in lower-case words.
    pub name: Cow<'static, str>,
    /// What is said for it.
    pub rules: Vec<Message>,
    /// The number of its stream.
    pub stream: u16,
    /// Which value of what varies in the stream its frames have; any if there is none.
    pub place: Option<u64>,
    /// How its frames ought to come out, as a stream; as they were sent where there is none.
    pub comes_out: Option<Stream>,
}

/// What passes.
#[derive(Debug, Clone)]
pub struct Passage {
    /// The switches that frames pass, each of which gets the rules.
    pub path: Vec<Hop>,
    /// What is said first.
    pub before: Vec<Message>,
    /// The rules that are watched.
    pub cases: Vec<Case>,
    /// The frames that are watched.
    pub streams: Vec<Stream>,
    /// Frames that run beside and are only counted.
    pub load: Option<Stream>,
    /// How long frames run before it counts.
    pub lead: Nanos,
    /// How long it counts.
    pub span: Nanos,
    /// OpenFlow versions offered.
    pub versions: Vec<Version>,
    /// How long the switch may take for the rules, and again until they act.
    pub patience: Nanos,
    /// What repeats know of that.
    pub bound: Bound,
}

/// What was seen of a case.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Seen {
    /// Delays in nanoseconds of frames that came out where they should.
    pub delays_ns: Vec<f64>,
    /// Frames that came out.
    pub came: u64,
    /// Frames that came back instead.
    pub back: u64,
    /// Frames that were compared.
    pub checked: u64,
    /// Those that were as they should be.
    pub right: u64,
    /// What was wrong with the first that was not.
    pub wrong: Option<String>,
    /// Why there is no such rule.
    pub absent: Option<Absent>,
    /// When its rule acts.
    pub activation: Activation,
}

/// Why a rule is not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Absent {
    /// The version has no words for it.
    NotExpressible,
    /// It could not be said.
    Unsaid(String),
    /// The switch refused it.
    Refused(String),
}

/// A passage that is being carried out.
pub struct Passing {
    passage: Passage,
    phase: Phase,
    /// What was said for which case.
    said: Vec<(usize, Said)>,
    seen: Vec<Seen>,
    /// For each case how its frames ought to come out.
    expected: Vec<Frames>,
    /// Of each switch, while it has not answered.
    barriers: Vec<Xid>,
    timer: Option<TimerId>,
    /// When the barrier behind the rules was answered.
    pub acknowledged_at: Nanos,
    /// When frames last began to show whether rules act.
    probing_at: Nanos,
    counts_from: Nanos,
    counts_until: Nanos,
    counted: [Option<[u64; 2]>; 2],
    /// Errors that concern no case.
    pub errors: u64,
    /// What the first of them says.
    pub error: Option<String>,
    /// Whether the barrier behind the rules was answered.
    pub is_set_up: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Preparing,
    /// Frames show whether rules act, which is waited for.
    Activating,
    Counting,
    Running,
    Draining,
}

impl Passing {
    /// Nothing has passed yet.
    pub fn new(passage: Passage) -> Passing {
        let seen = vec![Seen::default(); passage.cases.len()];
        Passing {
            passage,
            phase: Phase::Preparing,
            said: Vec::new(),
            seen,
            expected: Vec::new(),
            barriers: Vec::new(),
            timer: None,
            acknowledged_at: Nanos::ZERO,
            probing_at: Nanos::ZERO,
            counts_from: Nanos::MAX,
            counts_until: Nanos::MAX,
            counted: [None; 2],
            errors: 0,
            error: None,
            is_set_up: false,
        }
    }

    /// What a module needs that carries it out.
    pub fn needs(&self) -> Needs {
        let Passage { lead, span, patience, .. } = self.passage;
        let spans = [lead, span, patience, patience, DRAIN, Nanos::from_secs(5)];
        let limit = spans.into_iter().fold(Nanos(0), Nanos::saturating_add);
        let connections = self.passage.path.iter().map(|hop| Connection::new(hop.switch));
        let needs = Needs { connections: connections.collect(), ..Needs::new(limit) };
        needs.in_versions(&self.passage.versions)
    }

    /// The cases, and what was seen of each.
    pub fn cases(&self) -> impl Iterator<Item = (&Case, &Seen)> {
        self.passage.cases.iter().zip(&self.seen)
    }

    /// Frames that left and that came out, all streams together and the time before it counts too, as the
    /// ports counted them; none where they were not asked.
    pub fn sent_and_came(&self) -> Option<[u64; 2]> {
        let [before, after] = self.counted;
        let (before, after) = (before?, after?);
        Some([0, 1].map(|way| after[way].saturating_sub(before[way])))
    }

    /// How long frames ran, the time before it counts too.
    pub fn frames_ran(&self) -> Nanos {
        self.passage.lead.saturating_add(self.passage.span)
    }

    /// Processes an event.
    pub fn react(&mut self, event: &Event<'_>, desk: &mut Desk) {
        match event.what {
            What::Start(facts) => self.prepare(facts, desk),
            What::Frame(arrival) => {
                if let Some(probe) = arrival.probe {
                    self.probed(&probe, arrival);
                }
            }
            What::Message { xid, message: Message::BarrierReply, .. }
                if self.barriers.contains(&xid) =>
            {
                self.barriers.retain(|barrier| *barrier != xid);
                if !self.barriers.is_empty() {
                    return;
                }
                (self.is_set_up, self.acknowledged_at) = (true, desk.now());
                self.timer.take().map(|timer| desk.cancel(timer));
                // Where frames are only timed, the lead is enough.
                match self.passage.cases.iter().any(|case| case.comes_out.is_some()) {
                    true => self.activate(desk),
                    false => self.count(desk),
                }
            }
            What::Message { xid, message: Message::Error(error), .. } => {
                self.absent(|said| said.place(xid).is_some(), Absent::Refused(error.to_string()));
            }
            What::Unsent { said, why, .. } => {
                let why = match why {
                    instrument::module::Unsent::NotExpressible(_) => Absent::NotExpressible,
                    other => Absent::Unsaid(other.to_string()),
                };
                self.absent(|known| known == said, why);
            }
            What::Counters(ports) => {
                self.counted([sent(&ports[NEAR]), ports[FAR].rx_frames], desk);
            }
            What::Timer(timer) if Some(timer) == self.timer => self.timed(desk),
            _ => {}
        }
    }

    fn prepare(&mut self, facts: &Facts, desk: &mut Desk) {
        let passage = &mut self.passage;
        // One message that a version cannot say keeps all from being said that are said with it.
        let before = std::mem::take(&mut passage.before);
        let is_rule = |message: &Message| matches!(message, Message::FlowMod(_));
        let (rules, others): (Vec<_>, Vec<_>) = before.into_iter().partition(is_rule);
        // From the far end on, so that no frame comes to a switch that does not know it.
        for (connection, hop) in passage.path.iter().enumerate().rev() {
            let told = |messages: &[Message]| -> Vec<Message> {
                messages.iter().map(|message| hop.told(message.clone())).collect()
            };
            for message in told(&others) {
                desk.send(connection, message);
            }
            desk.send_all(connection, told(&rules));
            for (place, case) in passage.cases.iter().enumerate() {
                if !case.rules.is_empty() {
                    self.said.push((place, desk.send_all(connection, told(&case.rules))));
                }
            }
            self.barriers.push(desk.send(connection, Message::BarrierRequest));
        }
        for case in &mut passage.cases {
            case.rules.clear();
            let own = || passage.streams.iter().find(|stream| stream.id == case.stream);
            let comes_out = case.comes_out.as_ref().or_else(own);
            let comes_out = comes_out.expect("a case's stream is one of the streams");
            self.expected.push(facts.signer.frames(comes_out));
        }
        self.timer = Some(desk.timer_in(passage.patience));
        let ids = passage.streams.iter().map(|stream| stream.id).collect::<Vec<_>>();
        passage.streams.iter().chain(&passage.load).for_each(|stream| desk.prepare(stream.clone()));
        for port in [NEAR, FAR] {
            desk.watch(port, Watch::Streams(ids.clone()));
        }
    }

    fn absent(&mut self, is_it: impl Fn(Said) -> bool, why: Absent) {
        match self.said.iter().find(|(_, said)| is_it(*said)) {
            Some(&(place, _)) => {
                self.seen[place].absent.get_or_insert(why);
            }
            None => match why {
                Absent::NotExpressible => {}
                Absent::Unsaid(why) | Absent::Refused(why) => {
                    self.errors += 1;
                    self.error.get_or_insert(why);
                }
            },
        }
    }

    /// Sends a few frames of each case.
    fn activate(&mut self, desk: &mut Desk) {
        self.phase = Phase::Activating;
        self.probing_at = desk.now();
        let mut longest = Nanos::ZERO;
        for stream in &self.passage.streams {
            let cases = self.passage.cases.iter().filter(|case| case.stream == stream.id).count();
            let most = (stream.rate_pps() * PROBING_MAX.as_secs_f64()).max(1.0) as u64;
            let frames = (PROBES * cases as u64).min(most);
            desk.begin(stream.id, Span::frames(frames));
            longest = longest.max(Nanos::from_secs_f64(frames as f64 / stream.rate_pps()));
        }
        self.timer = Some(desk.timer_in(longest.saturating_add(DRAIN)));
    }

    /// The frames have come back: all rules act whose frames show anything, or some are waited for.
    fn activated(&mut self, desk: &mut Desk) {
        let mut is_awaited = false;
        for seen in self.seen.iter_mut().filter(|seen| seen.absent.is_none()) {
            // Frames that came nowhere met no rule.
            if seen.activation.is_silent_since(self.probing_at) {
                seen.activation.note(self.probing_at, false);
            }
            is_awaited |= !seen.activation.has_in_a_row(IN_A_ROW);
        }
        let waited = desk.now().since(self.acknowledged_at);
        if is_awaited && waited < self.passage.bound.of(self.passage.patience) {
            return self.activate(desk);
        }
        if is_awaited {
            self.passage.bound.missed();
        }
        for seen in &mut self.seen {
            seen.activation.settle(seen.activation.has_in_a_row(IN_A_ROW));
        }
        self.count(desk);
    }

    /// Asks ports for what they counted, before the frames that count.
    fn count(&mut self, desk: &mut Desk) {
        self.phase = Phase::Counting;
        desk.counters();
    }

    fn counted(&mut self, counts: [u64; 2], desk: &mut Desk) {
        if self.phase == Phase::Draining {
            self.counted[1] = Some(counts);
            return desk.end();
        }
        self.counted[0] = Some(counts);
        self.phase = Phase::Running;
        self.counts_from = desk.now().saturating_add(self.passage.lead);
        self.counts_until = self.counts_from.saturating_add(self.passage.span);
        for stream in self.passage.streams.iter().chain(&self.passage.load) {
            desk.begin(stream.id, Span::until(self.counts_until));
        }
        self.timer = Some(desk.timer_at(self.counts_until.saturating_add(DRAIN)));
    }

    fn timed(&mut self, desk: &mut Desk) {
        match self.phase {
            Phase::Preparing => desk.end_by_limit(UNANSWERED),
            Phase::Activating => self.activated(desk),
            Phase::Counting | Phase::Draining => {}
            Phase::Running => {
                self.phase = Phase::Draining;
                desk.counters();
            }
        }
    }

    fn probed(&mut self, probe: &Probe, arrival: &Arrival<'_>) {
        let is_probing = self.phase == Phase::Activating;
        if !is_probing && probe.sent_at < self.counts_from {
            return;
        }
        let of = |(case, seen): (&Case, &Seen)| {
            let is_place = case.place.is_none_or(|place| place == probe.place);
            case.stream == probe.stream && is_place && seen.absent.is_none()
        };
        let Some(place) = self.cases().position(of) else { return };
        let seen = &mut self.seen[place];
        if is_probing {
            let expected = self.expected[place].frame(probe.number, probe.sent_at);
            let is_right = arrival.port == FAR && is_like(&expected, arrival.bytes);
            return seen.activation.note(probe.sent_at, is_right);
        }
        if arrival.port != FAR {
            seen.back += 1;
            return seen.activation.note(probe.sent_at, false);
        }
        seen.came += 1;
        if probe.is_delay_known && seen.delays_ns.len() < DELAYS_MAX {
            seen.delays_ns.push(arrival.stamp.at.since(probe.sent_at).0 as f64);
        }
        if seen.checked < CHECKED_MAX {
            let expected = self.expected[place].frame(probe.number, probe.sent_at);
            let is_right = seen.check(&expected, arrival.bytes);
            seen.activation.note(probe.sent_at, is_right);
        }
    }
}

/// Whether a frame is what it ought to be; what is behind it is padding of the link.
pub fn is_like(expected: &[u8], bytes: &[u8]) -> bool {
    bytes.starts_with(expected) && bytes[expected.len()..].iter().all(|it| *it == 0)
}

impl Seen {
    /// Compares a frame with what it ought to be; returns whether it is.
    pub fn check(&mut self, expected: &[u8], bytes: &[u8]) -> bool {
        self.checked += 1;
        let is_right = is_like(expected, bytes);
        self.right += u64::from(is_right);
        if !is_right && self.wrong.is_none() {
            let differs = expected.iter().zip(bytes).position(|(a, b)| a != b);
            self.wrong = Some(match differs {
                Some(at) => {
                    format!("byte {at} is {:#04x} and should be {:#04x}", bytes[at], expected[at])
                }
                None => format!("{} bytes came and {} should", bytes.len(), expected.len()),
            });
        }
        is_right
    }

    /// The share of compared frames that were as they should be; none where none came.
    pub fn right_ratio(&self) -> Option<f64> {
        (self.checked > 0).then(|| self.right as f64 / self.checked as f64)
    }

    /// The delays; none without any.
    pub fn spread(&self) -> Option<Spread> {
        Spread::of(self.delays_ns.clone())
    }
}

/// A median, and half of the interval in which the true one lies in 95 % of cases.
pub fn median(spread: &Spread) -> (f64, f64) {
    let off = 0.98 / (spread.count() as f64).sqrt();
    let at = |share: f64| spread.quantile(share.clamp(0.0, 1.0));
    (spread.quantile(0.5), (at(0.5 + off) - at(0.5 - off)) / 2.0)
}

/// How much more the frames of one case take than those of another, in the median, and half of the
/// interval of that.
pub fn extra(case: &Spread, plain: &Spread) -> (f64, f64) {
    let ((case, case_half), (plain, plain_half)) = (median(case), median(plain));
    (case - plain, case_half.hypot(plain_half))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_compared_to_its_last_byte() {
        let mut seen = Seen::default();
        seen.check(&[1, 2, 3], &[1, 2, 3]);
        seen.check(&[1, 2, 3], &[1, 2, 3, 0, 0]);
        assert_eq!((seen.right_ratio(), &seen.wrong), (Some(1.0), &None));
        seen.check(&[1, 2, 3], &[1, 9, 3]);
        seen.check(&[1, 2, 3], &[1, 2]);
        assert_eq!(seen.right_ratio(), Some(0.5));
        assert_eq!(seen.wrong.as_deref(), Some("byte 1 is 0x09 and should be 0x02"));
    }

    #[test]
    fn what_more_is_taken_has_an_interval() {
        let spread = |by: f64| Spread::of((0..100).map(|it| f64::from(it) + by).collect()).unwrap();
        let (value, half) = extra(&spread(50.0), &spread(0.0));
        assert_eq!(value, 50.0);
        assert!((10.0..20.0).contains(&half), "{half}");
        assert_eq!(extra(&Spread::of(vec![7.0]).unwrap(), &Spread::of(vec![5.0]).unwrap()).0, 2.0);
    }
}
