//! A data plane alone, in this process: one port replays frames from memory, another counts the
//! frames that leave, without a wire, another process or a concurrent tester.
//!
//! The generator creates the frames before the trial and stores them in memory in their order. The
//! target takes them as fast as it can, at most at the trial's rate, so that no queue overflows:
//! the offered load is what the target took. Frames that leave are counted by port but not checked,
//! and the record states this; over the other links they are checked.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use elements::forward::{BATCH_FRAMES, ForwardPort};
use elements::node::Node;
use netio::port::{Port, PortCounters};
use netio::replay::{Play, ReplayBuffer, ReplayControl, ReplayPort};
use os::clock;
use packet::frame::{Batch, FCS_BYTES};
use packet::time::Nanos;
use packet::traffic::Traffic;
use testbed::affinity;
use tester::gauge::{self, GAUGE, STEPS};
use tester::generator::schedule::Period;
use tester::generator::templates::Templates;
use tester::rig::RigError;
use tester::signature::{SendTime, Sequence};
use tester::stream::{BurstProfile, Problem, Stream, validate};
use tester::trial::{
    Classes, Flag, Load, OFFERED_SHARE_MIN, PortReport, StreamReport, Trial, TrialReport,
};

use super::memory::drive;

/// Frames of a tape with varying headers.
pub const VARIED_FRAMES: usize = 1 << 20;

/// Frames of a tape with constant headers: as many as a network interface's ring holds.
pub const SAME_FRAMES: usize = 4096;

/// Time limit for a target to finish the frames that it took.
const DRAIN: Nanos = Nanos::from_millis(1);

/// Marks of a trial: start, start of counting, end, and end of the drain.
const MARKS: usize = 4;

/// Replays trials to a target in this process.
pub struct ReplayRig {
    players: Vec<ReplayControl>,
    key: u64,
    stop: Arc<AtomicBool>,
    /// The last tape, with the stream that it was made for.
    last: Option<(Stream, Arc<ReplayBuffer>)>,
}

/// Connection of the ports during a trial.
pub enum PortWiring<'a> {
    /// A target.
    Node(&'a mut Node),
    /// Nothing: the other port receives what one port plays.
    Nothing(&'a mut [Box<dyn Port>]),
}

/// A trial in progress.
struct RunningReplay<'a> {
    player: &'a ReplayControl,
    play: Play,
    /// Durations of warm-up and measurement.
    phases: [Nanos; 2],
    /// Start of its next part.
    next: Nanos,
    /// Time of the last update for watchers.
    shown_at: Nanos,
    marks: Vec<PortMark>,
    stop: &'a AtomicBool,
}

/// Counters of the ports at one time, without frames that were taken but not processed.
struct PortMark {
    at: Nanos,
    counters: Vec<PortCounters>,
}

impl ReplayRig {
    /// Creates a rig, and the target's ports.
    pub fn new(
        names: [&str; 2],
        key: u64,
        stop: &Arc<AtomicBool>,
    ) -> (ReplayRig, Vec<Box<dyn Port>>) {
        let mut players = Vec::new();
        let mut ports: Vec<Box<dyn Port>> = Vec::new();
        for name in names {
            let (port, player) = ReplayPort::new(name);
            players.push(player);
            ports.push(Box::new(port));
        }
        (ReplayRig { players, key, stop: Arc::clone(stop), last: None }, ports)
    }

    /// Replays a trial to the target, or from port to port, on a thread that may run on these
    /// cores.
    pub fn trial(
        &mut self,
        trial: &Trial,
        between: PortWiring<'_>,
        cores: &[usize],
    ) -> Result<TrialReport, RigError> {
        let stream = self.check(trial)?;
        let tape = self.tape(stream);
        let intended = Period::new(stream.rate, stream.frame_bytes).frames_within(trial.duration);
        let rate_pps = Some(intended as f64 / trial.duration.as_secs_f64());
        let play = Play { tape, rate_pps, from: Nanos::ZERO, until: Nanos::ZERO };
        let is_tester = matches!(between, PortWiring::Nothing(_));
        let course = RunningReplay {
            player: &self.players[stream.from],
            play,
            phases: [trial.warmup, trial.duration],
            next: Nanos::ZERO,
            shown_at: Nanos::ZERO,
            marks: Vec::new(),
            stop: &self.stop,
        };
        let marks = std::thread::scope(|scope| {
            let played = scope.spawn(move || between.run(cores, course));
            played.join().expect("a target does not panic")
        });
        if self.stop.load(Ordering::Relaxed) {
            return Err(RigError::Interrupted);
        }
        Ok(report(trial, stream, intended, &marks, is_tester))
    }

    /// Returns the trial's only stream. Frames that leave are distinguished by their port only.
    fn check<'a>(&self, trial: &'a Trial) -> Result<&'a Stream, RigError> {
        let problems = validate(&trial.streams, self.players.len());
        match trial.streams.as_slice() {
            _ if !problems.is_empty() => Err(RigError::Unusable(problems)),
            [one] if one.genome.is_some() || one.shape != BurstProfile::Constant => {
                let why = "link replay needs one frame size and a constant rate (hint: remove \
                           genome and schedule)";
                Err(RigError::Unusable(vec![(one.id, Problem::NotHere(why))]))
            }
            [one] => Ok(one),
            streams => {
                let id = streams.get(1).map_or(0, |second| second.id);
                Err(RigError::Unusable(vec![(id, Problem::LimitReached("one stream"))]))
            }
        }
    }

    /// Returns the stream's frames; it reuses those of the last trial if they are the same.
    fn tape(&mut self, stream: &Stream) -> Arc<ReplayBuffer> {
        if let Some((_, tape)) = self.last.as_ref().filter(|(last, _)| is_same(last, stream)) {
            return Arc::clone(tape);
        }
        self.last = None;
        let tape = Arc::new(recorded(stream, self.key));
        self.last = Some((stream.clone(), Arc::clone(&tape)));
        tape
    }
}

/// Returns whether two streams have the same frames, regardless of their rates.
fn is_same(one: &Stream, other: &Stream) -> bool {
    *one == Stream { rate: one.rate, ..other.clone() }
}

/// Generates the first frames of a stream.
fn recorded(stream: &Stream, key: u64) -> ReplayBuffer {
    let templates = Templates::leaving(stream, key);
    let template = templates.of(0);
    let frames = if stream.vary.is_empty() { SAME_FRAMES } else { VARIED_FRAMES };
    let mut tape = ReplayBuffer::new(frames, stream.frame_bytes - FCS_BYTES);
    let mut frame = template.bytes().to_vec();
    let mut indices = Vec::new();
    for number in 0..frames as u64 {
        indices.clear();
        template.draw(number, &mut indices);
        let sequence = Sequence { is_warmup: false, epoch: 0, number };
        template.write(sequence, SendTime::new(Nanos::ZERO), &indices, &mut frame);
        if !tape.push(&frame) {
            break;
        }
    }
    tape
}

impl PortWiring<'_> {
    /// Runs a trial to its end, and returns the counters at its marks.
    fn run(self, cores: &[usize], mut course: RunningReplay<'_>) -> Vec<PortMark> {
        // If pinning is not permitted, the scheduler chooses the core.
        let _ = affinity::pin(0, cores);
        match self {
            PortWiring::Node(node) => {
                drive(node, |node, now| course.is_over(now, || counters(node)));
            }
            PortWiring::Nothing(ports) => {
                let mut batch = Batch::new(BATCH_FRAMES);
                loop {
                    let now = clock::now();
                    let counters = || ports.iter_mut().map(|port| port.counters()).collect();
                    if course.is_over(now, counters) {
                        break;
                    }
                    for (from, to) in [(0, 1), (1, 0)] {
                        batch.clear();
                        // Neither call can fail.
                        let _ = ports[from].receive(&mut batch, now);
                        let _ = ports[to].transmit(&mut batch, now);
                    }
                }
            }
        }
        course.marks
    }
}

impl RunningReplay<'_> {
    /// Advances to the next part of the trial when it is time, and returns whether the trial is
    /// over. Each part is timed from its real start, so that no part overlaps the next.
    fn is_over(&mut self, now: Nanos, mut counters: impl FnMut() -> Vec<PortCounters>) -> bool {
        if now.since(self.shown_at) >= gauge::EVERY {
            self.show(now, &counters());
        }
        while now >= self.next && self.marks.len() < MARKS {
            let phase = self.phases.get(self.marks.len()).copied();
            self.marks.push(PortMark { at: now, counters: counters() });
            self.next = now.saturating_add(phase.unwrap_or(DRAIN));
            if phase.is_some() {
                self.player.play(Play { from: now, until: self.next, ..self.play.clone() });
            }
        }
        self.marks.len() == MARKS || self.stop.load(Ordering::Relaxed)
    }
}

impl RunningReplay<'_> {
    /// Updates the counters that watchers see.
    fn show(&mut self, now: Nanos, counters: &[PortCounters]) {
        match self.marks.first() {
            None => GAUGE.begin(now, counters.len()),
            Some(first) => {
                let since = |(now, then): (&PortCounters, &PortCounters)| {
                    [
                        now.rx_frames.saturating_sub(then.rx_frames),
                        now.tx_frames.saturating_sub(then.tx_frames),
                    ]
                };
                GAUGE.show(now, counters.iter().zip(&first.counters).map(since), &[0; STEPS]);
            }
        }
        self.shown_at = now;
    }
}

/// Returns a node's counters. A node may take more frames than it processes in one turn, and keeps
/// the rest.
fn counters(node: &mut Node) -> Vec<PortCounters> {
    let of = |forward_port: &mut ForwardPort| {
        let mut counters = forward_port.port.counters();
        counters.rx_frames -= forward_port.waiting() as u64;
        counters
    };
    node.forward.forward_ports.iter_mut().map(of).collect()
}

/// Creates the trial's report from its marks: start, start of counting, end, and end of the drain.
fn report(
    trial: &Trial,
    stream: &Stream,
    intended: u64,
    marks: &[PortMark],
    is_tester: bool,
) -> TrialReport {
    let [begun, measured, ended, done] = marks else {
        panic!("a trial that ended passed all its marks")
    };
    let played = |from: &PortMark, to: &PortMark| {
        to.counters[stream.from].rx_frames - from.counters[stream.from].rx_frames
    };
    let taken = |port: usize, from: &PortMark, to: &PortMark| {
        to.counters[port].tx_frames - from.counters[port].tx_frames
    };
    let duration = ended.at.since(measured.at);
    let load = Load {
        intended,
        offered: played(measured, ended),
        forwarded: taken(stream.to, measured, ended),
        duration_offered: duration,
        duration_forwarded: duration,
    };
    let mut report = TrialReport::unmeasured(trial, measured.at, load);
    report.classes = Classes { correct: load.forwarded, ..Classes::default() };
    report.account.offered = played(begun, done);
    for (port, counted) in done.counters.iter().enumerate() {
        let received = taken(port, begun, done);
        let [offered, forwarded] = [stream.from, stream.to].map(|end| u64::from(end == port));
        report.account.received += received;
        report.ports.push(PortReport {
            name: format!("replay {}", port + 1),
            intended: offered * load.intended,
            offered: offered * load.offered,
            forwarded: forwarded * load.forwarded,
            received,
            foreign: 0,
            elsewhere: (1 - forwarded) * taken(port, measured, ended),
            stale: 0,
            broken: 0,
            counters: PortCounters {
                rx_frames: received,
                rx_bytes: counted.tx_bytes - begun.counters[port].tx_bytes,
                tx_frames: counted.rx_frames - begun.counters[port].rx_frames,
                tx_bytes: counted.rx_bytes - begun.counters[port].rx_bytes,
                ..PortCounters::default()
            },
            traffic: Traffic::new(),
        });
    }
    let classes = report.classes;
    report.streams.push(StreamReport { classes, ..StreamReport::unmeasured(stream, load) });
    let share = load.offered_share();
    if is_tester && share < OFFERED_SHARE_MIN {
        report.flags.push(Flag::TesterLimited(share));
    }
    report
}
