//! Analyzer: classifies received frames as correct, misrouted, flooded, duplicate, reordered,
//! corrupt or foreign.
//!
//! - A frame with a valid signature is compared byte by byte with its stream's expected frame of
//!   that number. Only an identical frame is correct.
//! - A frame without a signature is broken if it resembles a damaged frame of a stream, else
//!   foreign.
//! - Frames are processed in batches and in steps: signature, varying fields, comparison. So each
//!   step waits for distant memory once, not once per frame.
//! - Intact frames of a stream that left and arrived together are counted together (see `train`).
//!
//! Invariant: memory is bounded by the number of streams and a window of frames (see
//! [`crate::analyzer::duplicate_window`]).

use packet::batch_copy::Copies;
use packet::time::{Clock, Nanos, Stamp};
use packet::traffic::{Count, Traffic};

use crate::analyzer::burst::{ArrivalTime, Train};
use crate::analyzer::delay::Delay;
use crate::analyzer::duplicate_window::DuplicateWindow;
use crate::analyzer::snapshot::BatchRun;
use crate::analyzer::stream_stats::PhaseStats;
use crate::generator::schedule::Schedule;
use crate::generator::sender::TrafficPhase;
use crate::generator::templates::Templates;
use crate::grouping::Grouping;
use crate::pauses::PauseDetector;
use crate::signature::{NEUTRAL_BYTES, SendTime, Sequence, Signature};
use crate::stream::replay::FrameMark;
use crate::stream::{HEADER_BYTES, TAG_BYTES};
use crate::trial::{Corruption, Histogram, Latency};

pub mod delay;
pub mod variation;
pub mod snapshot;
pub mod duplicate_window;
mod stream_stats;
mod burst;

pub use duplicate_window::WINDOW_FRAMES;
pub use stream_stats::Arrivals;

/// Classifies the frames of one trial.
#[derive(Debug)]
pub struct Monitor {
    key: u64,
    epoch: u16,
    streams: Vec<ReceivedStream>,
    marked: Vec<MarkedFrames>,
    /// Stream index by stream id, or [`NO_STREAM`].
    places: Vec<u16>,
    /// Possible offsets of a signature: the most frequent one, others from the start, and for
    /// replayed frames from the end.
    offset: usize,
    offsets: Vec<usize>,
    offsets_from_end: Vec<usize>,
    ports: Vec<PortTally>,
    /// By port, the frames that are not counted as intact frames of a stream.
    others: Vec<Traffic>,
    /// Signatures of the current batch.
    found: Vec<SignatureSearch>,
    grouping: Grouping,
    /// Indices drawn by the batch's frames, in the order of the groups. Empty if nothing varies.
    indices: Vec<u64>,
    varies: bool,
    /// Buffer for the expected form of a corrupt frame.
    expected: Vec<u8>,
}

/// Marks an unknown stream: no stream has this index, because there are fewer.
const NO_STREAM: u16 = u16::MAX;

/// A stream to receive.
#[derive(Debug)]
pub struct Expected {
    /// Templates of its expected frames.
    pub templates: Templates,
    /// Index of the expected port.
    pub to: usize,
    /// Schedules of its warm-up and of its measured frames.
    pub phases: [Schedule; 2],
    /// Whether to count latency differences of successive frames.
    pub tells_variation: bool,
}

/// Marked frames of a replay: only their signature is known.
#[derive(Debug)]
struct MarkedFrames {
    stream: u16,
    to: usize,
    track: PhaseStats,
}

/// Result of the search for a frame's signature.
#[derive(Debug, Clone, Copy)]
enum SignatureSearch {
    /// No signature.
    Nothing,
    /// Signature of another trial.
    Stale,
    /// Valid signature with a sequence number that was never scheduled.
    Broken,
    /// Frame of a stream, with the signature's offset.
    Ours { place: u16, phase: TrafficPhase, signature_at: u16, number: u64, sent: SendTime },
    /// Marked frame of a replay.
    Marked { place: u16, number: u64, sent: SendTime },
}

const _: () =
    assert!(size_of::<SignatureSearch>() <= 24, "an array of them fits into the L1 cache");
const _: () = assert!(packet::frame::FRAME_BYTES_MAX <= u16::MAX as usize);

/// Frame counts of one port.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PortTally {
    /// Received frames of all kinds.
    pub received: u64,
    /// Frames that the tester did not send.
    pub foreign: u64,
    /// Frames of an earlier trial.
    pub stale: u64,
    /// Damaged frames without a certain number.
    pub broken: u64,
    /// First copies of measured frames that were expected on another port.
    pub elsewhere: u64,
}

/// State of one received stream.
#[derive(Debug)]
struct ReceivedStream {
    to: usize,
    templates: Templates,
    phases: [PhaseStats; 2],
    alike: BatchRun,
    /// Intact frames that need individual parsing.
    unlike: Count,
}

impl Monitor {
    /// Creates a monitor for trial `epoch` of these streams over `ports` ports.
    pub fn new(key: u64, epoch: u16, streams: Vec<Expected>, ports: usize) -> Self {
        let numbers = || streams.iter().map(|stream| usize::from(stream.templates.stream()));
        let mut places = vec![NO_STREAM; numbers().max().map_or(0, |number| number + 1)];
        numbers().enumerate().for_each(|(place, number)| places[number] = place as u16);
        let windows = 2 * streams.len();
        let incoming = |stream: Expected| {
            let [warmup, measured] = stream.phases;
            let delay = Delay::new().varying(stream.tells_variation);
            let seen = || DuplicateWindow::new(ports, stream.to, windows);
            let phases = [
                PhaseStats::new(Some(warmup), seen(), None),
                PhaseStats::new(Some(measured), seen(), Some(delay)),
            ];
            let alike = BatchRun::new(&stream.templates, ports);
            let (to, templates) = (stream.to, stream.templates);
            ReceivedStream { to, templates, phases, alike, unlike: Count::default() }
        };
        let offsets = offsets(&streams);
        Monitor {
            key,
            epoch,
            varies: streams.iter().any(|stream| stream.templates.groups() > 0),
            offset: offsets[0],
            offsets: offsets[1..].to_vec(),
            streams: streams.into_iter().map(incoming).collect(),
            marked: Vec::new(),
            offsets_from_end: Vec::new(),
            places,
            ports: vec![PortTally::default(); ports],
            others: vec![Traffic::new(); ports],
            found: Vec::new(),
            grouping: Grouping::default(),
            indices: Vec::new(),
            expected: Vec::new(),
        }
    }

    /// Adds frames that a replay marks with the id `stream`.
    #[must_use]
    pub fn with_marked(mut self, stream: u16, mark: FrameMark) -> Self {
        let windows = 2 * self.streams.len() + 1;
        let seen = DuplicateWindow::new(self.ports.len(), mark.to, windows);
        let track = PhaseStats::new(None, seen, Some(Delay::new()));
        self.marked.push(MarkedFrames { stream, to: mark.to, track });
        let from_end = mark.before_end.saturating_add(NEUTRAL_BYTES);
        if !self.offsets_from_end.contains(&from_end) {
            self.offsets_from_end.push(from_end);
        }
        self
    }

    /// Classifies frames that arrived on `port`. Those without a timestamp get the time `now`.
    ///
    /// `watch` determines which delays are known. Returns the clock of the last timestamp, if any.
    #[inline]
    pub fn observe_all(
        &mut self,
        port: usize,
        frames: &Copies,
        now: Nanos,
        watch: &PauseDetector,
    ) -> Option<Clock> {
        self.find(frames.frames());
        let (knows_all, silent_until) = (watch.knows_all(port), watch.silent_until());
        let moment = |place: usize, sent: Option<SendTime>| {
            let stamp = frames.stamp(place);
            let is_known = knows_all
                || watch.knows_arrival(port, stamp)
                    && sent.is_none_or(|sent| watch.knows_leaving(sent));
            let at = stamp.map_or(now, |stamp| stamp.at);
            ArrivalTime { at, silent_until: silent_until(at), is_known }
        };
        self.settle(port, |place| frames.frame(place), moment);
        let last: Option<Stamp> = (0..frames.len()).rev().find_map(|place| frames.stamp(place));
        last.map(|stamp| stamp.clock)
    }

    /// Classifies one frame that arrived on `port` at `at`.
    pub fn observe(&mut self, port: usize, bytes: &[u8], at: Nanos) {
        self.find(std::iter::once(bytes));
        self.settle(port, |_| bytes, |_, _| ArrivalTime { at, silent_until: at, is_known: true });
    }

    /// Finds the frames' signatures and the indices of their varying fields.
    #[inline]
    fn find<'a>(&mut self, frames: impl Iterator<Item = &'a [u8]>) {
        let mut found = std::mem::take(&mut self.found);
        found.clear();
        found.extend(frames.map(|bytes| self.find_one(bytes)));
        self.found = found;
        let place = |found: &SignatureSearch| match found {
            SignatureSearch::Ours { place, .. } => Some(*place),
            _ => None,
        };
        self.grouping.group(self.streams.len(), self.found.iter().map(place));
        self.indices.clear();
        if self.varies {
            for &at in self.grouping.order() {
                if let SignatureSearch::Ours { place, number, .. } = self.found[usize::from(at)] {
                    let templates = &self.streams[usize::from(place)].templates;
                    templates.of(number).draw(number, &mut self.indices);
                }
            }
        }
    }

    #[inline]
    fn find_one(&self, bytes: &[u8]) -> SignatureSearch {
        let read = |&at: &usize| Some((at, Signature::read(self.key, bytes.get(at..)?)?));
        let found = read(&self.offset).or_else(|| self.offsets.iter().find_map(read));
        let Some((signature_at, signature)) = found else {
            return if self.marked.is_empty() {
                SignatureSearch::Nothing
            } else {
                self.find_marked(bytes)
            };
        };
        let place = self.places.get(usize::from(signature.stream)).copied().unwrap_or(NO_STREAM);
        let Signature { sequence: Sequence { is_warmup, epoch, number }, sent, .. } = signature;
        if place == NO_STREAM || epoch != self.epoch {
            return self.whose(signature);
        }
        let phase = if is_warmup { TrafficPhase::Warmup } else { TrafficPhase::Measured };
        if number >= self.streams[usize::from(place)].phases[phase as usize].count {
            return SignatureSearch::Broken;
        }
        SignatureSearch::Ours { place, phase, signature_at: signature_at as u16, number, sent }
    }

    /// Searches for the signature of a marked frame.
    #[cold]
    fn find_marked(&self, bytes: &[u8]) -> SignatureSearch {
        let read = |&from_end: &usize| {
            Signature::read(self.key, &bytes[bytes.len().checked_sub(from_end)?..])
        };
        let signature = self.offsets_from_end.iter().find_map(read);
        signature.map_or(SignatureSearch::Nothing, |signature| self.whose(signature))
    }

    /// Classifies a signature that belongs to no stream. It can be a mark at the offset of a
    /// stream's signature.
    #[cold]
    fn whose(&self, signature: Signature) -> SignatureSearch {
        let is_of = |marked: &MarkedFrames| marked.stream == signature.stream;
        let Signature { sequence: Sequence { epoch, number, .. }, sent, .. } = signature;
        match self.marked.iter().position(is_of) {
            Some(place) if epoch == self.epoch => {
                SignatureSearch::Marked { place: place as u16, number, sent }
            }
            _ => SignatureSearch::Stale,
        }
    }

    /// Counts the current batch. `moment` returns a frame's time of arrival, given its send time if
    /// known.
    #[inline]
    fn settle<'a>(
        &mut self,
        port: usize,
        frame: impl Fn(usize) -> &'a [u8],
        moment: impl Fn(usize, Option<SendTime>) -> ArrivalTime,
    ) {
        self.ports[port].received += self.found.len() as u64;
        let (grouping, indices) =
            (std::mem::take(&mut self.grouping), std::mem::take(&mut self.indices));
        let (mut train, mut drawn) = (Train::default(), &indices[..]);
        for &at in grouping.order() {
            let at = usize::from(at);
            let SignatureSearch::Ours { place, phase, signature_at, number, sent } = self.found[at]
            else {
                continue;
            };
            let (bytes, moment) = (frame(at), moment(at, Some(sent)));
            let stream = &self.streams[usize::from(place)];
            let (indices, others) = drawn.split_at(stream.templates.groups());
            drawn = others;
            let template = stream.templates.of(number);
            let one = Train { place, phase, number, frames: 1, bytes: bytes.len(), sent, moment };
            if !template.matches(usize::from(signature_at), indices, bytes) {
                self.end_train(port, std::mem::take(&mut train));
                self.settle_corrupt(port, one, indices, bytes);
            } else if stream.alike.is_unlike(bytes) {
                self.end_train(port, std::mem::take(&mut train));
                self.settle_unlike(port, one, bytes);
            } else if !train.take(&one) {
                self.end_train(port, std::mem::replace(&mut train, one));
            }
        }
        self.end_train(port, train);
        if grouping.order().len() < self.found.len() {
            (0..self.found.len()).for_each(|at| self.settle_other(port, at, frame(at), &moment));
        }
        (self.grouping, self.indices) = (grouping, indices);
    }

    /// Counts a group of intact frames.
    #[inline]
    fn end_train(&mut self, port: usize, train: Train) {
        if train.frames > 0 {
            let stream = &mut self.streams[usize::from(train.place)];
            stream.alike.count(port, train.bytes, train.frames);
            self.ports[port].elsewhere += stream.arrive(port, &train);
        }
    }

    /// Counts an intact frame that needs individual parsing.
    #[cold]
    fn settle_unlike(&mut self, port: usize, one: Train, bytes: &[u8]) {
        let stream = &mut self.streams[usize::from(one.place)];
        stream.unlike.add(1, bytes.len() as u64);
        self.others[port].add(bytes);
        self.ports[port].elsewhere += stream.arrive(port, &one);
    }

    /// Counts a corrupt frame.
    #[cold]
    fn settle_corrupt(&mut self, port: usize, one: Train, indices: &[u64], bytes: &[u8]) {
        let Train { place, phase, number, sent, moment, .. } = one;
        let stream = &mut self.streams[usize::from(place)];
        let template = stream.templates.of(number);
        let sequence =
            Sequence { is_warmup: phase == TrafficPhase::Warmup, epoch: self.epoch, number };
        self.expected.resize(template.bytes().len(), 0);
        template.write(sequence, sent, indices, &mut self.expected);
        let track = &mut stream.phases[phase as usize];
        track.note(moment);
        track.arrive_corrupt(number, difference(port, &self.expected, bytes));
        self.others[port].add(bytes);
    }

    /// Counts a frame that belongs to no stream.
    #[cold]
    fn settle_other(
        &mut self,
        port: usize,
        at: usize,
        bytes: &[u8],
        moment: &impl Fn(usize, Option<SendTime>) -> ArrivalTime,
    ) {
        let tally = &mut self.ports[port];
        match self.found[at] {
            SignatureSearch::Ours { .. } => return,
            SignatureSearch::Marked { place, number, sent } => {
                self.marked[usize::from(place)].arrive(port, number, sent, moment(at, Some(sent)));
            }
            SignatureSearch::Nothing => {
                let is_ours = self.streams.iter().any(|stream| stream.templates.resembles(bytes));
                *(if is_ours { &mut tally.broken } else { &mut tally.foreign }) += 1;
            }
            SignatureSearch::Stale => tally.stale += 1,
            SignatureSearch::Broken => tally.broken += 1,
        }
        self.others[port].add(bytes);
    }

    /// Takes the results of the marked frames, in the order in which the replays were added.
    pub fn take_marked(&mut self) -> Vec<Arrivals> {
        let marked = std::mem::take(&mut self.marked);
        marked.into_iter().map(|marked| marked.track.finish()).collect()
    }

    /// Returns the frame counts of each port.
    pub fn ports(&self) -> &[PortTally] {
        &self.ports
    }

    /// Returns a stream's latencies so far, for observers.
    pub fn latencies(&self, stream: usize) -> Option<&Histogram> {
        self.streams.get(stream)?.phases[TrafficPhase::Measured as usize].latencies()
    }

    /// Returns the results of each stream's two phases, in the order of the streams.
    pub fn finish(self) -> Vec<[Arrivals; 2]> {
        self.streams.into_iter().map(|stream| stream.phases.map(PhaseStats::finish)).collect()
    }
}

impl MarkedFrames {
    /// Counts a frame.
    fn arrive(&mut self, port: usize, number: u64, sent: SendTime, moment: ArrivalTime) {
        let train = Train { number, frames: 1, sent, moment, ..Train::default() };
        self.track.arrive(port, self.to, &train);
    }
}

impl ReceivedStream {
    /// Counts intact frames of this stream. Returns how many measured ones are first copies on a
    /// wrong port.
    #[inline]
    fn arrive(&mut self, port: usize, train: &Train) -> u64 {
        let elsewhere = self.phases[train.phase as usize].arrive(port, self.to, train);
        if train.phase == TrafficPhase::Measured { elsewhere } else { 0 }
    }
}

impl Latency {
    /// Creates an empty latency record.
    pub fn empty() -> Self {
        let (from_sent, from_scheduled) = (Histogram::new(), Histogram::new());
        Latency { from_sent, from_scheduled, negative: 0, unknown: 0 }
    }

    /// Adds another stream's latencies.
    pub fn merge(&mut self, other: &Latency) {
        self.from_sent.merge(&other.from_sent);
        self.from_scheduled.merge(&other.from_scheduled);
        self.negative += other.negative;
        self.unknown += other.unknown;
    }
}

/// Returns the possible offsets of these streams' signatures: the original ones, and those with one
/// tag more or less.
fn offsets(streams: &[Expected]) -> Vec<usize> {
    let own = || streams.iter().map(|stream| stream.templates.signature_at());
    let tagged = own().map(|at| at + TAG_BYTES);
    let untagged = own().map(|at| at.saturating_sub(TAG_BYTES));
    let mut offsets = Vec::new();
    if streams.is_empty() {
        offsets.push(HEADER_BYTES);
    }
    for at in own().chain(tagged).chain(untagged) {
        if !offsets.contains(&at) {
            offsets.push(at);
        }
    }
    offsets
}

/// Returns the first difference between two frames.
fn difference(port: usize, want: &[u8], have: &[u8]) -> Corruption {
    let at = want.iter().zip(have).take_while(|(want, have)| want == have).count();
    Corruption { port, at, want: want.get(at).copied(), have: have.get(at).copied() }
}

#[cfg(test)]
mod tests;
