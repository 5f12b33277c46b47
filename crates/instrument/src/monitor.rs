//! Sorting what comes back: correct, misrouted, flooded, duplicate, reordered, corrupt or foreign.
//!
//! A received frame with a valid signature is compared, byte for byte, with the frame that its
//! stream ought to deliver under that number; nothing else counts as correct. A frame without one
//! is broken if it looks like a damaged frame of a stream, and foreign otherwise.
//! Memory is bounded by the number of streams and a window of frames (see [`crate::monitor::seen`]).
//! Frames are sorted many at a time, in steps: whose they are, what varies in them, and whether all
//! of it is right; each step waits for far memory once and not for each frame.

use packet::copies::Copies;
use packet::time::{Clock, Nanos};
use packet::traffic::{Count, Traffic};

use crate::generate::schedule::{Cursor, Schedule};
use crate::generate::sender::Leg;
use crate::generate::templates::Templates;
use crate::monitor::delay::Delay;
use crate::monitor::frozen::Alike;
use crate::monitor::seen::{Arrived, Seen, Tally};
use crate::replay::Mark;
use crate::signature::{NEUTRAL_BYTES, Sent, Signature};
use crate::stall::Watch;
use crate::stream::{HEADER_BYTES, TAG_BYTES};
use crate::trial::{Classes, Corruption, Histogram, Jitter, Latency, Missed};

/// Latency and its variation.
pub mod delay;
/// Differences between the latencies of successive frames.
pub mod variation;
/// Every counter at one moment.
pub mod frozen;
/// Which frames were seen on which port.
pub mod seen;

pub use seen::WINDOW_FRAMES;

/// Sorts the frames of one trial.
#[derive(Debug)]
pub struct Monitor {
    key: u64,
    epoch: u16,
    streams: Vec<Incoming>,
    marked: Vec<Marked>,
    /// For each number of a stream its place, or [`NOWHERE`].
    places: Vec<u16>,
    /// Where a signature may lie, from the beginning and, where frames of somebody else's carry one,
    /// from the end: where most do, and where others may.
    offset: usize,
    offsets: Vec<usize>,
    offsets_from_end: Vec<usize>,
    ports: Vec<PortTally>,
    /// By port, the frames that are not counted as a stream's intact ones.
    others: Vec<Traffic>,
    /// What is known of the frames that are being sorted.
    found: Vec<Found>,
    /// What they draw, if anything ever varies.
    indices: Vec<u64>,
    varies: bool,
    /// Where a frame is built that did not arrive as it should.
    expected: Vec<u8>,
}

/// No stream has this place: there are fewer.
const NOWHERE: u16 = u16::MAX;

/// A stream whose frames are to be sorted.
#[derive(Debug)]
pub struct Expected {
    /// How its frames ought to arrive.
    pub templates: Templates,
    /// The port where they should.
    pub to: usize,
    /// The schedules of its warm-up and of its measured frames.
    pub legs: [Schedule; 2],
    /// Whether differences between successive latencies are counted.
    pub tells_variation: bool,
}

/// Frames of somebody else's that carry a signature: nothing else is known of them.
#[derive(Debug)]
struct Marked {
    stream: u16,
    to: usize,
    track: Track,
}

/// What a frame's signature says.
#[derive(Debug, Clone, Copy)]
enum Found {
    /// There is none.
    Nothing,
    /// It is another trial's.
    Stale,
    /// It cannot be true.
    Broken,
    /// Which stream's frame it is.
    Ours { place: usize, leg: Leg, signature_at: usize, signature: Signature },
    /// It is the frame of a replay: which one's.
    Marked { place: usize, signature: Signature },
}

/// When a frame arrived.
#[derive(Debug, Clone, Copy)]
struct Moment {
    at: Nanos,
    /// Until when there was silence, if nothing came before.
    silent_until: Nanos,
    /// Whether its delay follows from that: the tester was there when it left and when it came.
    is_known: bool,
}

/// What arrived on one port.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PortTally {
    /// Frames of all kinds.
    pub received: u64,
    /// Frames that are not the instrument's.
    pub foreign: u64,
    /// Frames of an earlier trial.
    pub stale: u64,
    /// Damaged frames of no certain number.
    pub broken: u64,
    /// First copies of measured frames that belong on another port.
    pub elsewhere: u64,
}

/// One stream's frames as they arrive.
#[derive(Debug)]
struct Incoming {
    to: usize,
    templates: Templates,
    legs: [Track; 2],
    alike: Alike,
    /// Intact frames that had to be taken to pieces.
    unlike: Count,
}

/// One leg of a stream as it arrives.
#[derive(Debug)]
struct Track {
    /// When frames are due, if that is known, and where that was looked up last.
    due: Option<(Schedule, Cursor)>,
    /// How many frames there are to be.
    count: u64,
    seen: Seen,
    classes: Classes,
    next: u64,
    delay: Option<Delay>,
    first: Option<Nanos>,
    last: Option<Nanos>,
    /// The longest time between arrivals.
    silence: Nanos,
    corruption: Option<Corruption>,
}

/// What one leg of a stream came to.
#[derive(Debug)]
pub struct Arrivals {
    /// What became of the frames.
    pub classes: Classes,
    /// Different frames that came back in whatever state.
    pub received: u64,
    /// When the first frame arrived.
    pub first: Option<Nanos>,
    /// When the last frame arrived.
    pub last: Option<Nanos>,
    /// When frames were missed; moments are those of the schedule.
    pub missed: Missed,
    /// By how much the last frames took longer than the first ones.
    pub stretch: Nanos,
    /// Latency of the correct frames.
    pub latency: Latency,
    /// Its variation.
    pub jitter: Jitter,
    /// The first corrupt frame.
    pub corruption: Option<Corruption>,
}

impl Monitor {
    /// A monitor for trial `epoch` of these streams over `ports` ports.
    pub fn new(key: u64, epoch: u16, streams: Vec<Expected>, ports: usize) -> Self {
        let numbers = || streams.iter().map(|stream| usize::from(stream.templates.stream()));
        let mut places = vec![NOWHERE; numbers().max().map_or(0, |number| number + 1)];
        numbers().enumerate().for_each(|(place, number)| places[number] = place as u16);
        let windows = 2 * streams.len();
        let incoming = |stream: Expected| {
            let [warmup, measured] = stream.legs;
            let delay = Delay::new().varying(stream.tells_variation);
            let seen = || Seen::new(ports, stream.to, windows);
            let legs = [
                Track::new(Some(warmup), seen(), None),
                Track::new(Some(measured), seen(), Some(delay)),
            ];
            let alike = Alike::new(&stream.templates, ports);
            let (to, templates) = (stream.to, stream.templates);
            Incoming { to, templates, legs, alike, unlike: Count::default() }
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
            indices: Vec::new(),
            expected: Vec::new(),
        }
    }

    /// The same for frames of somebody else's too that are marked as those of `stream`.
    #[must_use]
    pub fn with_marked(mut self, stream: u16, mark: Mark) -> Self {
        let windows = 2 * self.streams.len() + 1;
        let seen = Seen::new(self.ports.len(), mark.to, windows);
        let track = Track::new(None, seen, Some(Delay::new()));
        self.marked.push(Marked { stream, to: mark.to, track });
        let from_end = mark.before_end.saturating_add(NEUTRAL_BYTES);
        if !self.offsets_from_end.contains(&from_end) {
            self.offsets_from_end.push(from_end);
        }
        self
    }

    /// Sorts frames that arrived on `port`: those with a stamp at that time, others at `now`; the
    /// delays are known as far as `watch` says. The clock of the last stamp, if there was one.
    #[inline]
    pub fn observe_all(
        &mut self,
        port: usize,
        frames: &Copies,
        now: Nanos,
        watch: &Watch,
    ) -> Option<Clock> {
        self.find(frames.frames());
        let mut clock = None;
        let mut drawn = 0;
        let knows_all = watch.knows_all(port);
        let silent_until = watch.silent_until();
        for (place, bytes) in frames.frames().enumerate() {
            let stamp = frames.stamp(place);
            let found = self.found[place];
            let at = stamp.map_or(now, |stamp| stamp.at);
            let moment = Moment {
                at,
                silent_until: silent_until(at),
                is_known: knows_all
                    || watch.knows_arrival(port, stamp)
                        && found.sent().is_none_or(|sent| watch.knows_leaving(sent)),
            };
            clock = stamp.map(|stamp| stamp.clock).or(clock);
            drawn += self.settle(port, found, drawn, bytes, moment);
        }
        clock
    }

    /// Sorts one frame that arrived on `port` at `at`.
    pub fn observe(&mut self, port: usize, bytes: &[u8], at: Nanos) {
        self.find(std::iter::once(bytes));
        self.settle(port, self.found[0], 0, bytes, Moment { at, silent_until: at, is_known: true });
    }

    /// Finds out whose these frames are and what ought to vary in them.
    #[inline]
    fn find<'a>(&mut self, frames: impl Iterator<Item = &'a [u8]>) {
        let mut found = std::mem::take(&mut self.found);
        found.clear();
        found.extend(frames.map(|bytes| self.find_one(bytes)));
        self.found = found;
        self.indices.clear();
        if !self.varies {
            return;
        }
        for found in &self.found {
            if let Found::Ours { place, signature, .. } = found {
                let number = signature.sequence.number;
                self.streams[*place].templates.of(number).draw(number, &mut self.indices);
            }
        }
    }

    #[inline]
    fn find_one(&self, bytes: &[u8]) -> Found {
        let read = |&at: &usize| Some((at, Signature::read(self.key, bytes.get(at..)?)?));
        let found = read(&self.offset).or_else(|| self.offsets.iter().find_map(read));
        let Some((signature_at, signature)) = found else {
            return if self.marked.is_empty() { Found::Nothing } else { self.find_marked(bytes) };
        };
        let place = self.places.get(usize::from(signature.stream)).copied().unwrap_or(NOWHERE);
        if place == NOWHERE || signature.sequence.epoch != self.epoch {
            return self.whose(signature);
        }
        let place = usize::from(place);
        let leg = if signature.sequence.is_warmup { Leg::Warmup } else { Leg::Measured };
        if signature.sequence.number >= self.streams[place].legs[leg as usize].count {
            return Found::Broken;
        }
        Found::Ours { place, leg, signature_at, signature }
    }

    /// Finds out whether a frame is one of somebody else's that is marked.
    #[cold]
    fn find_marked(&self, bytes: &[u8]) -> Found {
        let read = |&from_end: &usize| {
            Signature::read(self.key, &bytes[bytes.len().checked_sub(from_end)?..])
        };
        let signature = self.offsets_from_end.iter().find_map(read);
        signature.map_or(Found::Nothing, |signature| self.whose(signature))
    }

    /// Whose a frame is that is no stream's: it may be marked where a stream has its signature.
    #[cold]
    fn whose(&self, signature: Signature) -> Found {
        let is_of = |marked: &Marked| marked.stream == signature.stream;
        match self.marked.iter().position(is_of) {
            Some(place) if signature.sequence.epoch == self.epoch => {
                Found::Marked { place, signature }
            }
            _ => Found::Stale,
        }
    }

    /// Counts a frame. What it draws begins at place `drawn`; returns how many indices that are.
    #[inline]
    fn settle(
        &mut self,
        port: usize,
        found: Found,
        drawn: usize,
        bytes: &[u8],
        moment: Moment,
    ) -> usize {
        let tally = &mut self.ports[port];
        tally.received += 1;
        match found {
            Found::Ours { place, leg, signature_at, signature } => {
                let stream = &mut self.streams[place];
                let indices = &self.indices[drawn..drawn + stream.templates.groups()];
                stream.legs[leg as usize].note(moment);
                let template = stream.templates.of(signature.sequence.number);
                if template.matches(signature_at, indices, bytes) {
                    if !stream.alike.count(port, bytes) {
                        stream.unlike.add(1, bytes.len() as u64);
                        self.others[port].add(bytes);
                    }
                    let is_elsewhere = stream.arrive(port, signature, leg, moment);
                    tally.elsewhere += (is_elsewhere && leg == Leg::Measured) as u64;
                } else {
                    self.others[port].add(bytes);
                    let Signature { sequence, sent, .. } = signature;
                    self.expected.resize(template.bytes().len(), 0);
                    template.write(sequence, sent, indices, &mut self.expected);
                    let difference = difference(port, &self.expected, bytes);
                    stream.legs[leg as usize].arrive_corrupt(sequence.number, difference);
                }
                return indices.len();
            }
            Found::Marked { place, signature } => {
                self.marked[place].arrive(port, signature, moment);
            }
            Found::Nothing => {
                let is_ours = self.streams.iter().any(|stream| stream.templates.resembles(bytes));
                *(if is_ours { &mut tally.broken } else { &mut tally.foreign }) += 1;
            }
            Found::Stale => tally.stale += 1,
            Found::Broken => tally.broken += 1,
        }
        self.others[port].add(bytes);
        0
    }

    /// What the marked frames came to, in the order in which they were named.
    pub fn take_marked(&mut self) -> Vec<Arrivals> {
        let marked = std::mem::take(&mut self.marked);
        marked.into_iter().map(|marked| marked.track.finish()).collect()
    }

    /// What arrived on each port.
    pub fn ports(&self) -> &[PortTally] {
        &self.ports
    }

    /// What each stream's two legs came to, in the order of the streams.
    pub fn finish(self) -> Vec<[Arrivals; 2]> {
        self.streams.into_iter().map(|stream| stream.legs.map(Track::finish)).collect()
    }
}

impl Marked {
    /// Sorts a frame. It is not taken into where streams' frames are sorted, which is to be short.
    #[inline(never)]
    fn arrive(&mut self, port: usize, signature: Signature, moment: Moment) {
        self.track.note(moment);
        self.track.arrive(port, self.to, signature, moment);
    }
}

impl Found {
    /// When the frame says that it was sent.
    #[inline]
    fn sent(self) -> Option<Sent> {
        match self {
            Found::Ours { signature, .. } | Found::Marked { signature, .. } => Some(signature.sent),
            _ => None,
        }
    }
}

impl Incoming {
    /// Sorts an intact frame of this stream; whether it is a first copy on a port where it should
    /// not be.
    #[inline]
    fn arrive(&mut self, port: usize, signature: Signature, leg: Leg, moment: Moment) -> bool {
        self.legs[leg as usize].arrive(port, self.to, signature, moment)
    }
}

impl Track {
    fn new(schedule: Option<Schedule>, seen: Seen, delay: Option<Delay>) -> Self {
        Track {
            due: schedule.map(|schedule| (schedule, schedule.seek(0))),
            count: schedule.map_or(u64::MAX, |schedule| schedule.count),
            seen,
            classes: Classes::default(),
            next: 0,
            delay,
            first: None,
            last: None,
            silence: Nanos::ZERO,
            corruption: None,
        }
    }

    /// Notes that a frame arrived, in whatever state. What the tester did not hear is no silence.
    #[inline]
    fn note(&mut self, Moment { at, silent_until, .. }: Moment) {
        // Frames that came together have the same time.
        if self.last != Some(at) {
            let before = *self.first.get_or_insert(at);
            let silence = silent_until.since(self.last.unwrap_or(before));
            self.silence = self.silence.max(silence);
            self.last = self.last.max(Some(at));
        }
    }

    /// Sorts an intact frame that should arrive on port `to`; whether it is a first copy on another.
    #[inline(always)]
    fn arrive(&mut self, port: usize, to: usize, signature: Signature, moment: Moment) -> bool {
        let number = signature.sequence.number;
        let arrived = self.seen.mark(number, port);
        let is_elsewhere = arrived == Arrived::First && port != to;
        match arrived {
            Arrived::TooLate => self.classes.late += 1,
            Arrived::Again => self.classes.duplicate += 1,
            Arrived::First if is_elsewhere => self.classes.elsewhere += 1,
            Arrived::First => self.arrive_correct(number, signature, moment),
        }
        is_elsewhere
    }

    #[inline]
    fn arrive_correct(&mut self, number: u64, signature: Signature, moment: Moment) {
        self.classes.correct += 1;
        if number < self.next {
            self.classes.reordered += 1;
        } else {
            self.next = number + 1;
        }
        let Some(delay) = &mut self.delay else { return };
        if moment.is_known {
            let due = self.due.as_mut().map(|(schedule, near)| schedule.due_near(near, number));
            delay.record(number, signature.sent, due, moment.at);
        } else {
            delay.miss();
        }
    }

    fn arrive_corrupt(&mut self, number: u64, corruption: Corruption) {
        let lane = self.seen.corrupt_lane();
        match self.seen.mark(number, lane) {
            Arrived::TooLate => self.classes.late += 1,
            Arrived::First | Arrived::Again => self.classes.corrupt += 1,
        }
        self.corruption.get_or_insert(corruption);
    }

    fn finish(self) -> Arrivals {
        let Tally { seen, misrouted, flooded } = self.seen.tally();
        let moments = self.due.as_ref().and_then(|(schedule, _)| {
            let numbers = self.seen.missed(schedule.count)?;
            Some(numbers.map(|number| schedule.seek(number).due))
        });
        let [first, last] = moments.map_or([None; 2], |moments| moments.map(Some));
        let missed = Missed { first, last, silence: self.silence };
        let classes = Classes { misrouted, flooded, ..self.classes };
        let stretch = self.delay.as_ref().map_or(Nanos::ZERO, Delay::stretch);
        let (latency, jitter) = match self.delay {
            Some(delay) => delay.finish(),
            None => (Latency::empty(), Jitter::default()),
        };
        Arrivals {
            classes,
            received: seen + classes.late,
            first: self.first,
            last: self.last,
            missed,
            stretch,
            latency,
            jitter,
            corruption: self.corruption,
        }
    }
}

impl Latency {
    /// Nothing measured yet.
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

/// Where the signatures of these streams may lie: where they were put, and there with a tag more or less.
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

/// Where two unequal frames differ first.
fn difference(port: usize, want: &[u8], have: &[u8]) -> Corruption {
    let at = want.iter().zip(have).take_while(|(want, have)| want == have).count();
    Corruption { port, at, want: want.get(at).copied(), have: have.get(at).copied() }
}

#[cfg(test)]
mod tests;
