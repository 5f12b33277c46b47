//! Frames that pass several entries side by side: latency per entry, and verification of the output frames.
//!
//! Source: forwarding latency and action delay of OFLOPS (`docs/oflops.md`). Every case has an
//! entry and frames of its own. One stream visits the cases of one kind in turn, so that compared
//! values come from the same trial, frame by frame. The generator also builds the expected output
//! frame, from the same stream with the rewritten headers. All bytes of a received frame are
//! compared with it.
//!
//! Invariants:
//!
//! - A case that the switch rejected, or that its OpenFlow version cannot express, has no latency.
//! - A frame that did not arrive proves only loss.

use std::borrow::Cow;

use openflow::header::Xid;
use openflow::model::message::Message;
use openflow::version::Version;
use packet::time::Nanos;
use tester::module::{
    Arrival, Connection, Event, EventKind, FrameFilter, Frames, MessageRange, ModuleContext,
    ModuleRequirements, Probe, SendSpan, TestSetup, TimerId,
};
use tester::stream::Stream;

use super::rules::{FAR, NEAR, sent};
use super::summary::Summary;
use super::verdict::{Activation, ActivationLimit};
use targets::network::Hop;

/// Time to wait for frames in flight.
const DRAIN: Nanos = Nanos::from_millis(50);

/// Limit that ends a module whose switch does not confirm its entries.
pub const UNANSWERED: &str = "timeout for the barrier reply after the entries";

/// Maximum number of frames of each case that are compared byte by byte.
const CHECKED_MAX: u64 = 256;

/// Consecutive frames that show that an entry is active.
const IN_A_ROW: u64 = 3;

/// Consecutive probes of each case that check whether its entry is active.
const PROBES: u64 = 4;

/// Maximum duration of one series of probes.
const PROBING_MAX: Nanos = Nanos::from_secs(1);

/// Maximum number of stored latencies per case.
const DELAYS_MAX: usize = 1 << 20;

/// An entry with its own frames.
#[derive(Debug, Clone)]
pub struct Case {
    /// Name, in lower-case words.
    pub name: Cow<'static, str>,
    /// Messages that install the entry.
    pub rules: Vec<Message>,
    /// Id of its stream.
    pub stream: u16,
    /// Value of the stream's variable field in its frames; `None` matches all.
    pub place: Option<u64>,
    /// Stream with the expected output frames; `None` if the frames leave unchanged.
    pub comes_out: Option<Stream>,
}

/// Settings of a passage.
#[derive(Debug, Clone)]
pub struct ForwardingCheck {
    /// Switches on the path; each gets the entries.
    pub path: Vec<Hop>,
    /// Messages that are sent first.
    pub before: Vec<Message>,
    /// Entries under test.
    pub cases: Vec<Case>,
    /// Streams under test.
    pub streams: Vec<Stream>,
    /// Background frames, which are only counted.
    pub load: Option<Stream>,
    /// Time for which frames run before the measurement.
    pub lead: Nanos,
    /// Duration of the measurement.
    pub span: Nanos,
    /// OpenFlow versions offered.
    pub versions: Vec<Version>,
    /// Maximum time of the switch to confirm the entries, and again until they are active.
    pub patience: Nanos,
    /// Knowledge of activation times shared between repeats.
    pub bound: ActivationLimit,
}

/// Observations of a case.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CaseFrames {
    /// Latencies, in nanoseconds, of frames at the expected output.
    pub delays_ns: Vec<f64>,
    /// Frames that arrived at the output.
    pub came: u64,
    /// Frames that returned instead.
    pub back: u64,
    /// Frames compared.
    pub checked: u64,
    /// Compared frames that were as expected.
    pub right: u64,
    /// Difference of the first unexpected frame.
    pub wrong: Option<String>,
    /// Reason why the entry is missing.
    pub absent: Option<MissingReason>,
    /// Activation of the entry.
    pub activation: Activation,
}

/// Reason why an entry is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MissingReason {
    /// The OpenFlow version cannot express it.
    NotExpressible,
    /// The message could not be sent.
    Unsaid(String),
    /// The switch rejected it.
    Refused(String),
}

/// A passage in progress.
pub struct RunningCheck {
    passage: ForwardingCheck,
    phase: Phase,
    /// Sent messages by case.
    said: Vec<(usize, MessageRange)>,
    seen: Vec<CaseFrames>,
    /// Expected output frames of each case.
    expected: Vec<Frames>,
    /// Outstanding barrier requests of the switches.
    barriers: Vec<Xid>,
    timer: Option<TimerId>,
    /// Time of the barrier reply after the entries.
    pub acknowledged_at: Nanos,
    /// Time of the last series of probes.
    probing_at: Nanos,
    counts_from: Nanos,
    counts_until: Nanos,
    counted: [Option<[u64; 2]>; 2],
    /// Errors that belong to no case.
    pub errors: u64,
    /// Text of the first of them.
    pub error: Option<String>,
    /// Whether the barrier reply after the entries arrived.
    pub is_set_up: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Preparing,
    /// Probes check whether the entries are active.
    Activating,
    Counting,
    Running,
    Draining,
}

impl RunningCheck {
    /// Creates the passage, which has not begun.
    pub fn new(passage: ForwardingCheck) -> RunningCheck {
        let seen = vec![CaseFrames::default(); passage.cases.len()];
        RunningCheck {
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

    /// Returns the needs of the module that runs it.
    pub fn needs(&self) -> ModuleRequirements {
        let ForwardingCheck { lead, span, patience, .. } = self.passage;
        let spans = [lead, span, patience, patience, DRAIN, Nanos::from_secs(5)];
        let limit = spans.into_iter().fold(Nanos(0), Nanos::saturating_add);
        let connections = self.passage.path.iter().map(|hop| Connection::new(hop.switch));
        let needs = ModuleRequirements {
            connections: connections.collect(),
            ..ModuleRequirements::new(limit)
        };
        needs.in_versions(&self.passage.versions)
    }

    /// Iterates over the cases and their observations.
    pub fn cases(&self) -> impl Iterator<Item = (&Case, &CaseFrames)> {
        self.passage.cases.iter().zip(&self.seen)
    }

    /// Returns the frames sent and received over all streams, including the lead time, from the port counters.
    ///
    /// `None` if the counters were not read.
    pub fn sent_and_came(&self) -> Option<[u64; 2]> {
        let [before, after] = self.counted;
        let (before, after) = (before?, after?);
        Some([0, 1].map(|way| after[way].saturating_sub(before[way])))
    }

    /// Returns the time for which frames ran, including the lead time.
    pub fn frames_ran(&self) -> Nanos {
        self.passage.lead.saturating_add(self.passage.span)
    }

    /// Processes an event.
    pub fn react(&mut self, event: &Event<'_>, context: &mut ModuleContext) {
        match event.what {
            EventKind::Start(facts) => self.prepare(facts, context),
            EventKind::Frame(arrival) => {
                if let Some(probe) = arrival.probe {
                    self.probed(&probe, arrival);
                }
            }
            EventKind::Message { xid, message: Message::BarrierReply, .. }
                if self.barriers.contains(&xid) =>
            {
                self.barriers.retain(|barrier| *barrier != xid);
                if !self.barriers.is_empty() {
                    return;
                }
                (self.is_set_up, self.acknowledged_at) = (true, context.now());
                self.timer.take().map(|timer| context.cancel(timer));
                // If frames are only timed, the lead time is sufficient.
                match self.passage.cases.iter().any(|case| case.comes_out.is_some()) {
                    true => self.activate(context),
                    false => self.count(context),
                }
            }
            EventKind::Message { xid, message: Message::Error(error), .. } => {
                self.absent(
                    |said| said.place(xid).is_some(),
                    MissingReason::Refused(error.to_string()),
                );
            }
            EventKind::SendFailed { said, why, .. } => {
                let why = match why {
                    tester::module::SendError::NotExpressible(_) => MissingReason::NotExpressible,
                    other => MissingReason::Unsaid(other.to_string()),
                };
                self.absent(|known| known == said, why);
            }
            EventKind::Counters(ports) => {
                self.counted([sent(&ports[NEAR]), ports[FAR].rx_frames], context);
            }
            EventKind::Timer(timer) if Some(timer) == self.timer => self.timed(context),
            _ => {}
        }
    }

    fn prepare(&mut self, facts: &TestSetup, context: &mut ModuleContext) {
        let passage = &mut self.passage;
        // A message that a version cannot express blocks all messages sent together with it.
        let before = std::mem::take(&mut passage.before);
        let is_rule = |message: &Message| matches!(message, Message::FlowMod(_));
        let (rules, others): (Vec<_>, Vec<_>) = before.into_iter().partition(is_rule);
        // From the far end on, so that no frame reaches a switch without its entry.
        for (connection, hop) in passage.path.iter().enumerate().rev() {
            let told = |messages: &[Message]| -> Vec<Message> {
                messages.iter().map(|message| hop.told(message.clone())).collect()
            };
            for message in told(&others) {
                context.send(connection, message);
            }
            context.send_all(connection, told(&rules));
            for (place, case) in passage.cases.iter().enumerate() {
                if !case.rules.is_empty() {
                    self.said.push((place, context.send_all(connection, told(&case.rules))));
                }
            }
            self.barriers.push(context.send(connection, Message::BarrierRequest));
        }
        for case in &mut passage.cases {
            case.rules.clear();
            let own = || passage.streams.iter().find(|stream| stream.id == case.stream);
            let comes_out = case.comes_out.as_ref().or_else(own);
            let comes_out = comes_out.expect("the stream of a case is one of the streams");
            self.expected.push(facts.signer.frames(comes_out));
        }
        self.timer = Some(context.timer_in(passage.patience));
        let ids = passage.streams.iter().map(|stream| stream.id).collect::<Vec<_>>();
        passage
            .streams
            .iter()
            .chain(&passage.load)
            .for_each(|stream| context.prepare(stream.clone()));
        for port in [NEAR, FAR] {
            context.watch(port, FrameFilter::Streams(ids.clone()));
        }
    }

    fn absent(&mut self, is_it: impl Fn(MessageRange) -> bool, why: MissingReason) {
        match self.said.iter().find(|(_, said)| is_it(*said)) {
            Some(&(place, _)) => {
                self.seen[place].absent.get_or_insert(why);
            }
            None => match why {
                MissingReason::NotExpressible => {}
                MissingReason::Unsaid(why) | MissingReason::Refused(why) => {
                    self.errors += 1;
                    self.error.get_or_insert(why);
                }
            },
        }
    }

    /// Sends a few frames of each case.
    fn activate(&mut self, context: &mut ModuleContext) {
        self.phase = Phase::Activating;
        self.probing_at = context.now();
        let mut longest = Nanos::ZERO;
        for stream in &self.passage.streams {
            let cases = self.passage.cases.iter().filter(|case| case.stream == stream.id).count();
            let most = (stream.rate_pps() * PROBING_MAX.as_secs_f64()).max(1.0) as u64;
            let frames = (PROBES * cases as u64).min(most);
            context.begin(stream.id, SendSpan::frames(frames));
            longest = longest.max(Nanos::from_secs_f64(frames as f64 / stream.rate_pps()));
        }
        self.timer = Some(context.timer_in(longest.saturating_add(DRAIN)));
    }

    /// Processes returned probes: continues if all entries of arrived frames are active, otherwise waits.
    fn activated(&mut self, context: &mut ModuleContext) {
        let mut is_awaited = false;
        for seen in self.seen.iter_mut().filter(|seen| seen.absent.is_none()) {
            // Frames that arrived nowhere matched no entry.
            if seen.activation.is_silent_since(self.probing_at) {
                seen.activation.note(self.probing_at, false);
            }
            is_awaited |= !seen.activation.has_in_a_row(IN_A_ROW);
        }
        let waited = context.now().since(self.acknowledged_at);
        if is_awaited && waited < self.passage.bound.of(self.passage.patience) {
            return self.activate(context);
        }
        if is_awaited {
            self.passage.bound.missed();
        }
        for seen in &mut self.seen {
            seen.activation.settle(seen.activation.has_in_a_row(IN_A_ROW));
        }
        self.count(context);
    }

    /// Reads the port counters before the measurement.
    fn count(&mut self, context: &mut ModuleContext) {
        self.phase = Phase::Counting;
        context.counters();
    }

    fn counted(&mut self, counts: [u64; 2], context: &mut ModuleContext) {
        if self.phase == Phase::Draining {
            self.counted[1] = Some(counts);
            return context.end();
        }
        self.counted[0] = Some(counts);
        self.phase = Phase::Running;
        self.counts_from = context.now().saturating_add(self.passage.lead);
        self.counts_until = self.counts_from.saturating_add(self.passage.span);
        for stream in self.passage.streams.iter().chain(&self.passage.load) {
            context.begin(stream.id, SendSpan::until(self.counts_until));
        }
        self.timer = Some(context.timer_at(self.counts_until.saturating_add(DRAIN)));
    }

    fn timed(&mut self, context: &mut ModuleContext) {
        match self.phase {
            Phase::Preparing => context.end_by_limit(UNANSWERED),
            Phase::Activating => self.activated(context),
            Phase::Counting | Phase::Draining => {}
            Phase::Running => {
                self.phase = Phase::Draining;
                context.counters();
            }
        }
    }

    fn probed(&mut self, probe: &Probe, arrival: &Arrival<'_>) {
        let is_probing = self.phase == Phase::Activating;
        if !is_probing && probe.sent_at < self.counts_from {
            return;
        }
        let of = |(case, seen): (&Case, &CaseFrames)| {
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

/// Returns whether a frame is as expected; link padding at its end is ignored.
pub fn is_like(expected: &[u8], bytes: &[u8]) -> bool {
    bytes.starts_with(expected) && bytes[expected.len()..].iter().all(|it| *it == 0)
}

impl CaseFrames {
    /// Compares a frame with the expected one; returns whether they are equal.
    pub fn check(&mut self, expected: &[u8], bytes: &[u8]) -> bool {
        self.checked += 1;
        let is_right = is_like(expected, bytes);
        self.right += u64::from(is_right);
        if !is_right && self.wrong.is_none() {
            let differs = expected.iter().zip(bytes).position(|(a, b)| a != b);
            self.wrong = Some(match differs {
                Some(at) => {
                    format!("byte {at} is {:#04x}, expected {:#04x}", bytes[at], expected[at])
                }
                None => format!("{} bytes arrived, expected {}", bytes.len(), expected.len()),
            });
        }
        is_right
    }

    /// Returns the share of compared frames that were as expected; `None` if none arrived.
    pub fn right_ratio(&self) -> Option<f64> {
        (self.checked > 0).then(|| self.right as f64 / self.checked as f64)
    }

    /// Returns the distribution of latencies; `None` if there are none.
    pub fn spread(&self) -> Option<Summary> {
        Summary::of(self.delays_ns.clone())
    }
}

/// Returns a median and the half width of its 95 % confidence interval.
pub fn median(spread: &Summary) -> (f64, f64) {
    let off = 0.98 / (spread.count() as f64).sqrt();
    let at = |share: f64| spread.quantile(share.clamp(0.0, 1.0));
    (spread.quantile(0.5), (at(0.5 + off) - at(0.5 - off)) / 2.0)
}

/// Returns the difference between the median latencies of two cases, and the half width of its interval.
pub fn extra(case: &Summary, plain: &Summary) -> (f64, f64) {
    let ((case, case_half), (plain, plain_half)) = (median(case), median(plain));
    (case - plain, case_half.hypot(plain_half))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_compared_to_its_last_byte() {
        let mut seen = CaseFrames::default();
        seen.check(&[1, 2, 3], &[1, 2, 3]);
        seen.check(&[1, 2, 3], &[1, 2, 3, 0, 0]);
        assert_eq!((seen.right_ratio(), &seen.wrong), (Some(1.0), &None));
        seen.check(&[1, 2, 3], &[1, 9, 3]);
        seen.check(&[1, 2, 3], &[1, 2]);
        assert_eq!(seen.right_ratio(), Some(0.5));
        assert_eq!(seen.wrong.as_deref(), Some("byte 1 is 0x09, expected 0x02"));
    }

    #[test]
    fn extra_latency_has_an_interval() {
        let spread =
            |by: f64| Summary::of((0..100).map(|it| f64::from(it) + by).collect()).unwrap();
        let (value, half) = extra(&spread(50.0), &spread(0.0));
        assert_eq!(value, 50.0);
        assert!((10.0..20.0).contains(&half), "{half}");
        assert_eq!(
            extra(&Summary::of(vec![7.0]).unwrap(), &Summary::of(vec![5.0]).unwrap()).0,
            2.0
        );
    }
}
