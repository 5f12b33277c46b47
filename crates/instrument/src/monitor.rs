//! Sorting what comes back: correct, misrouted, flooded, duplicate, reordered, corrupt or foreign.
//!
//! A received frame with a valid signature is compared, byte for byte, with the frame that its
//! stream ought to deliver under that number; nothing else counts as correct. A frame without one
//! is broken if it looks like a damaged frame of a stream, and foreign otherwise.
//! Memory is bounded by the number of streams and a window of frames (see [`crate::monitor::seen`]).

use packet::time::Nanos;

use crate::generate::schedule::{Cursor, Schedule};
use crate::generate::sender::Leg;
use crate::generate::template::Template;
use crate::monitor::delay::Delay;
use crate::monitor::seen::{Arrived, Seen, Tally};
use crate::signature::Signature;
use crate::stream::{HEADER_BYTES, Stream, TAG_BYTES};
use crate::trial::{Classes, Corruption, Histogram, Jitter, Latency};

/// Latency and its variation.
pub mod delay;
/// Which frames were seen on which port.
pub mod seen;

pub use seen::WINDOW_FRAMES;

/// Sorts the frames of one trial.
#[derive(Debug)]
pub struct Monitor {
    key: u64,
    epoch: u16,
    streams: Vec<Incoming>,
    /// Stream numbers and their places, sorted.
    places: Vec<(u16, usize)>,
    /// Where a signature may lie.
    offsets: Vec<usize>,
    ports: Vec<PortTally>,
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
    template: Template,
    /// A frame of the template, to be patched into the expected one.
    expected: Vec<u8>,
    legs: [Track; 2],
}

/// One leg of a stream as it arrives.
#[derive(Debug)]
struct Track {
    schedule: Schedule,
    cursor: Cursor,
    seen: Seen,
    classes: Classes,
    next: u64,
    delay: Option<Delay>,
    first: Option<Nanos>,
    last: Option<Nanos>,
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
    /// A monitor for trial `epoch` of these streams, each with the schedules of its warm-up and
    /// of its measured frames, over `ports` ports.
    pub fn new(key: u64, epoch: u16, streams: &[(&Stream, [Schedule; 2])], ports: usize) -> Self {
        let mut places: Vec<(u16, usize)> =
            streams.iter().enumerate().map(|(place, (stream, _))| (stream.id, place)).collect();
        places.sort_unstable();
        let offsets = vec![HEADER_BYTES, HEADER_BYTES + TAG_BYTES];
        let incoming = |(stream, legs): &(&Stream, [Schedule; 2])| {
            let template = Template::arriving(stream, key);
            Incoming {
                to: stream.to,
                expected: template.bytes().to_vec(),
                template,
                legs: [
                    Track::new(legs[0], ports, stream.to, None),
                    Track::new(legs[1], ports, stream.to, Some(Delay::new())),
                ],
            }
        };
        let streams = streams.iter().map(incoming).collect();
        Monitor { key, epoch, streams, places, offsets, ports: vec![PortTally::default(); ports] }
    }

    /// Sorts one frame that arrived on `port` at `at`.
    #[inline]
    pub fn observe(&mut self, port: usize, bytes: &[u8], at: Nanos) {
        self.ports[port].received += 1;
        let Some(signature) = self.signature(bytes) else {
            let is_ours = self.streams.iter().any(|stream| stream.template.resembles(bytes));
            let tally = &mut self.ports[port];
            *(if is_ours { &mut tally.broken } else { &mut tally.foreign }) += 1;
            return;
        };
        let place = self.place(signature.stream);
        let leg = if signature.sequence.is_warmup { Leg::Warmup } else { Leg::Measured };
        match place {
            Some(place) if signature.sequence.epoch == self.epoch => {
                let stream = &mut self.streams[place];
                if signature.sequence.number < stream.legs[leg as usize].schedule.count {
                    let is_elsewhere = stream.arrive(port, bytes, signature, leg, at);
                    self.ports[port].elsewhere += (is_elsewhere && leg == Leg::Measured) as u64;
                } else {
                    self.ports[port].broken += 1;
                }
            }
            _ => self.ports[port].stale += 1,
        }
    }

    #[inline]
    fn signature(&self, bytes: &[u8]) -> Option<Signature> {
        self.offsets.iter().find_map(|&offset| Signature::read(self.key, bytes.get(offset..)?))
    }

    #[inline]
    fn place(&self, id: u16) -> Option<usize> {
        match &self.places[..] {
            [(only, place)] => (*only == id).then_some(*place),
            places => {
                let found = places.binary_search_by_key(&id, |&(id, _)| id).ok()?;
                Some(places[found].1)
            }
        }
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

impl Incoming {
    /// Sorts a frame of this stream; whether it is a first copy on a port where it should not be.
    #[inline]
    fn arrive(
        &mut self,
        port: usize,
        bytes: &[u8],
        signature: Signature,
        leg: Leg,
        at: Nanos,
    ) -> bool {
        let number = signature.sequence.number;
        self.template.patch(signature.sequence, signature.sent, &mut self.expected);
        let track = &mut self.legs[leg as usize];
        if track.first.is_none() {
            track.first = Some(at);
        }
        track.last = track.last.max(Some(at));
        if bytes != self.expected {
            track.arrive_corrupt(number, difference(port, &self.expected, bytes));
            return false;
        }
        let arrived = track.seen.mark(number, port);
        let is_elsewhere = arrived == Arrived::First && port != self.to;
        match arrived {
            Arrived::TooLate => track.classes.late += 1,
            Arrived::Again => track.classes.duplicate += 1,
            Arrived::First if is_elsewhere => track.classes.elsewhere += 1,
            Arrived::First => track.arrive_correct(number, signature, at),
        }
        is_elsewhere
    }
}

impl Track {
    fn new(schedule: Schedule, ports: usize, to: usize, delay: Option<Delay>) -> Self {
        Track {
            schedule,
            cursor: schedule.seek(0),
            seen: Seen::new(ports, to),
            classes: Classes::default(),
            next: 0,
            delay,
            first: None,
            last: None,
            corruption: None,
        }
    }

    #[inline]
    fn arrive_correct(&mut self, number: u64, signature: Signature, at: Nanos) {
        self.classes.correct += 1;
        if number < self.next {
            self.classes.reordered += 1;
        } else {
            self.next = number + 1;
        }
        if let Some(delay) = &mut self.delay {
            let due = self.schedule.due_near(&mut self.cursor, number);
            delay.record(signature.sent, due, at);
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
        Latency { from_sent: Histogram::new(), from_scheduled: Histogram::new(), negative: 0 }
    }

    /// Adds another stream's latencies.
    pub fn merge(&mut self, other: &Latency) {
        self.from_sent.merge(&other.from_sent);
        self.from_scheduled.merge(&other.from_scheduled);
        self.negative += other.negative;
    }
}

/// Where two unequal frames differ first.
fn difference(port: usize, want: &[u8], have: &[u8]) -> Corruption {
    let at = want.iter().zip(have).take_while(|(want, have)| want == have).count();
    Corruption { port, at, want: want.get(at).copied(), have: have.get(at).copied() }
}

#[cfg(test)]
mod tests;
