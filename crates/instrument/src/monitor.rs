//! Sorting what comes back: correct, misrouted, flooded, duplicate, reordered, corrupt or foreign.
//!
//! A received frame with a valid signature is compared, byte for byte, with the frame that its
//! stream ought to deliver under that number; nothing else counts as correct. A frame without one
//! is broken if it looks like a damaged frame of a stream, and foreign otherwise.
//! Memory is bounded by the number of streams and a window of frames (see [`crate::monitor::seen`]).
//! Frames are sorted many at a time, in steps: whose they are, what varies in them, and whether all
//! of it is right; each step waits for far memory once and not for each frame. What intact frames of
//! a stream have in common that left and came together is noted once (see its `train`).

use packet::copies::Copies;
use packet::time::{Clock, Nanos, Stamp};
use packet::traffic::{Count, Traffic};

use crate::generate::schedule::Schedule;
use crate::generate::sender::Leg;
use crate::generate::templates::Templates;
use crate::grouping::Grouping;
use crate::monitor::delay::Delay;
use crate::monitor::frozen::Alike;
use crate::monitor::seen::Seen;
use crate::monitor::track::Track;
use crate::monitor::train::{Moment, Train};
use crate::replay::Mark;
use crate::signature::{NEUTRAL_BYTES, Sent, Sequence, Signature};
use crate::stall::Watch;
use crate::stream::{HEADER_BYTES, TAG_BYTES};
use crate::trial::{Corruption, Histogram, Latency};

/// Latency and its variation.
pub mod delay;
/// Differences between the latencies of successive frames.
pub mod variation;
/// Every counter at one moment.
pub mod frozen;
/// Which frames were seen on which port.
pub mod seen;
/// One leg of a stream as it arrives.
mod track;
/// Frames that are noted together.
mod train;

pub use seen::WINDOW_FRAMES;
pub use track::Arrivals;

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
    grouping: Grouping,
    /// What they draw, if anything ever varies, in the order of the groups.
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
    /// Which stream's frame it is, and where it says so.
    Ours { place: u16, leg: Leg, signature_at: u16, number: u64, sent: Sent },
    /// It is the frame of a replay: which one's.
    Marked { place: u16, number: u64, sent: Sent },
}

const _: () = assert!(size_of::<Found>() <= 24, "a row of them lies in the nearest cache");
const _: () = assert!(packet::frame::FRAME_BYTES_MAX <= u16::MAX as usize);

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
            grouping: Grouping::default(),
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
        let (knows_all, silent_until) = (watch.knows_all(port), watch.silent_until());
        let moment = |place: usize, sent: Option<Sent>| {
            let stamp = frames.stamp(place);
            let is_known = knows_all
                || watch.knows_arrival(port, stamp)
                    && sent.is_none_or(|sent| watch.knows_leaving(sent));
            let at = stamp.map_or(now, |stamp| stamp.at);
            Moment { at, silent_until: silent_until(at), is_known }
        };
        self.settle(port, |place| frames.frame(place), moment);
        let last: Option<Stamp> = (0..frames.len()).rev().find_map(|place| frames.stamp(place));
        last.map(|stamp| stamp.clock)
    }

    /// Sorts one frame that arrived on `port` at `at`.
    pub fn observe(&mut self, port: usize, bytes: &[u8], at: Nanos) {
        self.find(std::iter::once(bytes));
        self.settle(port, |_| bytes, |_, _| Moment { at, silent_until: at, is_known: true });
    }

    /// Finds out whose these frames are and what ought to vary in them.
    #[inline]
    fn find<'a>(&mut self, frames: impl Iterator<Item = &'a [u8]>) {
        let mut found = std::mem::take(&mut self.found);
        found.clear();
        found.extend(frames.map(|bytes| self.find_one(bytes)));
        self.found = found;
        let place = |found: &Found| match found {
            Found::Ours { place, .. } => Some(*place),
            _ => None,
        };
        self.grouping.group(self.streams.len(), self.found.iter().map(place));
        self.indices.clear();
        if self.varies {
            for &at in self.grouping.order() {
                if let Found::Ours { place, number, .. } = self.found[usize::from(at)] {
                    let templates = &self.streams[usize::from(place)].templates;
                    templates.of(number).draw(number, &mut self.indices);
                }
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
        let Signature { sequence: Sequence { is_warmup, epoch, number }, sent, .. } = signature;
        if place == NOWHERE || epoch != self.epoch {
            return self.whose(signature);
        }
        let leg = if is_warmup { Leg::Warmup } else { Leg::Measured };
        if number >= self.streams[usize::from(place)].legs[leg as usize].count {
            return Found::Broken;
        }
        Found::Ours { place, leg, signature_at: signature_at as u16, number, sent }
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
        let Signature { sequence: Sequence { epoch, number, .. }, sent, .. } = signature;
        match self.marked.iter().position(is_of) {
            Some(place) if epoch == self.epoch => {
                Found::Marked { place: place as u16, number, sent }
            }
            _ => Found::Stale,
        }
    }

    /// Counts the frames that were found: what they are, and when they arrived, where it is said when
    /// they were sent.
    #[inline]
    fn settle<'a>(
        &mut self,
        port: usize,
        frame: impl Fn(usize) -> &'a [u8],
        moment: impl Fn(usize, Option<Sent>) -> Moment,
    ) {
        self.ports[port].received += self.found.len() as u64;
        let (grouping, indices) =
            (std::mem::take(&mut self.grouping), std::mem::take(&mut self.indices));
        let (mut train, mut drawn) = (Train::default(), &indices[..]);
        for &at in grouping.order() {
            let at = usize::from(at);
            let Found::Ours { place, leg, signature_at, number, sent } = self.found[at] else {
                continue;
            };
            let (bytes, moment) = (frame(at), moment(at, Some(sent)));
            let stream = &self.streams[usize::from(place)];
            let (indices, others) = drawn.split_at(stream.templates.groups());
            drawn = others;
            let template = stream.templates.of(number);
            let one = Train { place, leg, number, frames: 1, bytes: bytes.len(), sent, moment };
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

    /// Notes intact frames.
    #[inline]
    fn end_train(&mut self, port: usize, train: Train) {
        if train.frames > 0 {
            let stream = &mut self.streams[usize::from(train.place)];
            stream.alike.count(port, train.bytes, train.frames);
            self.ports[port].elsewhere += stream.arrive(port, &train);
        }
    }

    /// Notes an intact frame that has to be taken to pieces.
    #[cold]
    fn settle_unlike(&mut self, port: usize, one: Train, bytes: &[u8]) {
        let stream = &mut self.streams[usize::from(one.place)];
        stream.unlike.add(1, bytes.len() as u64);
        self.others[port].add(bytes);
        self.ports[port].elsewhere += stream.arrive(port, &one);
    }

    /// Notes a frame that is not as it was sent.
    #[cold]
    fn settle_corrupt(&mut self, port: usize, one: Train, indices: &[u64], bytes: &[u8]) {
        let Train { place, leg, number, sent, moment, .. } = one;
        let stream = &mut self.streams[usize::from(place)];
        let template = stream.templates.of(number);
        let sequence = Sequence { is_warmup: leg == Leg::Warmup, epoch: self.epoch, number };
        self.expected.resize(template.bytes().len(), 0);
        template.write(sequence, sent, indices, &mut self.expected);
        let track = &mut stream.legs[leg as usize];
        track.note(moment);
        track.arrive_corrupt(number, difference(port, &self.expected, bytes));
        self.others[port].add(bytes);
    }

    /// Counts a frame that is no stream's.
    #[cold]
    fn settle_other(
        &mut self,
        port: usize,
        at: usize,
        bytes: &[u8],
        moment: &impl Fn(usize, Option<Sent>) -> Moment,
    ) {
        let tally = &mut self.ports[port];
        match self.found[at] {
            Found::Ours { .. } => return,
            Found::Marked { place, number, sent } => {
                self.marked[usize::from(place)].arrive(port, number, sent, moment(at, Some(sent)));
            }
            Found::Nothing => {
                let is_ours = self.streams.iter().any(|stream| stream.templates.resembles(bytes));
                *(if is_ours { &mut tally.broken } else { &mut tally.foreign }) += 1;
            }
            Found::Stale => tally.stale += 1,
            Found::Broken => tally.broken += 1,
        }
        self.others[port].add(bytes);
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

    /// A stream's latencies so far, for whoever watches.
    pub fn latencies(&self, stream: usize) -> Option<&Histogram> {
        self.streams.get(stream)?.legs[Leg::Measured as usize].latencies()
    }

    /// What each stream's two legs came to, in the order of the streams.
    pub fn finish(self) -> Vec<[Arrivals; 2]> {
        self.streams.into_iter().map(|stream| stream.legs.map(Track::finish)).collect()
    }
}

impl Marked {
    /// Sorts a frame.
    fn arrive(&mut self, port: usize, number: u64, sent: Sent, moment: Moment) {
        let train = Train { number, frames: 1, sent, moment, ..Train::default() };
        self.track.arrive(port, self.to, &train);
    }
}

impl Incoming {
    /// Sorts intact frames of this stream; how many of the measured ones are first copies on a port
    /// where they should not be.
    #[inline]
    fn arrive(&mut self, port: usize, train: &Train) -> u64 {
        let elsewhere = self.legs[train.leg as usize].arrive(port, self.to, train);
        if train.leg == Leg::Measured { elsewhere } else { 0 }
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
