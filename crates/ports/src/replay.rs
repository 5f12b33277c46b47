//! A port that plays frames from memory, over and over, and counts what it is given: for measuring
//! a data plane alone, without another process and without the cost of making frames.
//!
//! Frames lie side by side on a [`Tape`], as they do in the memory of a network interface, and each
//! is copied once when it is received. They leave in order, at most at a set rate, as long as
//! somebody asks: nobody's queue runs over, so the rate at which they leave is that of whoever takes
//! them. What is sent to the port is counted and dropped. The clock is that of whoever asks, so a
//! replay in virtual time is the same replay. Whoever uses frames in place copies as much as it looks at.

#![allow(unsafe_code)]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use packet::frame::{Batch, FRAME_BYTES_MAX};
use packet::time::{Clock, Nanos};

use crate::memif::receive::{Found, Row, VIEWS_MAX, Views};
use crate::pages;
use crate::port::{InPlace, Parts, Port, PortCounters, PortError, PortFacts};

/// Bytes of one tape.
pub const TAPE_BYTES_MAX: usize = 1 << 30;

/// Frames begin at multiples of this, in bytes.
const LINE_BYTES: usize = 64;

/// Frames in memory, in the order in which they are played.
#[derive(Debug)]
pub struct Tape {
    frames_max: usize,
    bytes: Vec<u8>,
    /// Where each frame begins, and how long it is.
    places: Vec<(u32, u32)>,
}

/// What a port is to play.
#[derive(Debug, Clone)]
pub struct Play {
    /// The frames.
    pub tape: Arc<Tape>,
    /// At most so many frames a second, counted from the first; `None` for as many as are asked
    /// for. What is due and not asked for waits.
    pub rate_pps: Option<f64>,
    /// When the first frame is due.
    pub from: Nanos,
    /// Nothing is played from then on.
    pub until: Nanos,
}

/// Says what a port plays, from wherever its owner is.
#[derive(Debug, Clone)]
pub struct Player {
    shelf: Arc<Shelf>,
}

#[derive(Debug, Default)]
struct Shelf {
    /// How often something was put there.
    turn: AtomicU64,
    next: Mutex<Option<Play>>,
}

/// The port.
pub struct ReplayPort {
    facts: PortFacts,
    shelf: Arc<Shelf>,
    turn: u64,
    playing: Option<Play>,
    /// Frames that were played since this play began.
    played: u64,
    /// The tape's next frame.
    place: usize,
    /// Frames of the tape that are shown.
    shown: Box<Row>,
    first: usize,
    count: usize,
    counters: PortCounters,
}

// SAFETY: the pointers are into the tape that is being played, which the port holds.
unsafe impl Send for ReplayPort {}

impl Tape {
    /// An empty tape with room for `frames` frames of `frame_bytes` bytes, on huge pages if the
    /// system has some, or for as many as fit into [`TAPE_BYTES_MAX`].
    pub fn new(frames: usize, frame_bytes: usize) -> Self {
        let each = frame_bytes.clamp(1, FRAME_BYTES_MAX).next_multiple_of(LINE_BYTES);
        let frames = frames.min(TAPE_BYTES_MAX / each);
        let bytes: Vec<u8> = Vec::with_capacity(frames * each);
        // Before the first byte is written: that is when a page is chosen.
        let start = (bytes.as_ptr() as usize).next_multiple_of(pages::HUGE_BYTES);
        let end = bytes.as_ptr() as usize + bytes.capacity();
        if let Some(length) = end.checked_sub(start).filter(|&length| length > 0) {
            pages::advise_huge(start, length);
        }
        Tape { frames_max: frames, bytes, places: Vec::with_capacity(frames) }
    }

    /// Appends a copy of `frame`. False if it is empty or longer than a frame may be, or if the
    /// tape is full.
    pub fn push(&mut self, frame: &[u8]) -> bool {
        let start = self.bytes.len();
        let end = start + frame.len().next_multiple_of(LINE_BYTES);
        let is_full = self.places.len() == self.frames_max || end > TAPE_BYTES_MAX;
        if frame.is_empty() || frame.len() > FRAME_BYTES_MAX || is_full {
            return false;
        }
        self.bytes.extend_from_slice(frame);
        self.bytes.resize(end, 0);
        self.places.push((start as u32, frame.len() as u32));
        true
    }

    /// How many frames are on it.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The frame at `place`, which is less than [`Tape::len`].
    #[inline]
    pub fn frame(&self, place: usize) -> &[u8] {
        let (start, bytes) = self.places[place];
        &self.bytes[start as usize..][..bytes as usize]
    }
}

impl Player {
    /// Plays this from the port's next receiving on, instead of what it played before.
    pub fn play(&self, play: Play) {
        *self.shelf.next.lock().unwrap_or_else(PoisonError::into_inner) = Some(play);
        self.shelf.turn.fetch_add(1, Ordering::Release);
    }
}

impl ReplayPort {
    /// A port that plays nothing yet, and who says what it plays.
    pub fn new(name: &str) -> (ReplayPort, Player) {
        let shelf = Arc::new(Shelf::default());
        let facts = PortFacts {
            name: name.to_owned(),
            kind: "replay",
            mac: [0; 6],
            frame_bytes_max: FRAME_BYTES_MAX,
            stamps: Clock::UserSpace,
        };
        let port = ReplayPort {
            facts,
            shelf: Arc::clone(&shelf),
            turn: 0,
            playing: None,
            played: 0,
            place: 0,
            shown: Box::new(Row([Found::NOTHING; VIEWS_MAX])),
            first: 0,
            count: 0,
            counters: PortCounters::default(),
        };
        (port, Player { shelf })
    }

    #[cold]
    fn change(&mut self, turn: u64) {
        self.turn = turn;
        let next = self.shelf.next.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(play) = next {
            (self.playing, self.played, self.place) = (Some(play), 0, 0);
        }
    }
}

impl Play {
    /// Frames that may be played at `now` if `played` were before.
    fn due(&self, now: Nanos, played: u64) -> u64 {
        if now < self.from || now >= self.until {
            return 0;
        }
        let Some(rate_pps) = self.rate_pps else { return u64::MAX };
        // The first is due at once.
        let due = (now.since(self.from).0 as f64 * rate_pps / 1e9) as u64 + 1;
        due.saturating_sub(played)
    }
}

impl Port for ReplayPort {
    fn facts(&self) -> &PortFacts {
        &self.facts
    }

    fn receive(&mut self, batch: &mut Batch, now: Nanos) -> Result<usize, PortError> {
        let mut received = 0;
        loop {
            let shown = self.look(batch.room(), now).min(batch.room());
            if shown == 0 {
                return Ok(received);
            }
            for view in self.shown().iter().take(shown) {
                let frame = batch.push_slot().expect("no more are taken than there is room for");
                frame.resize(view.len());
                view.copy_to(frame.bytes_mut());
            }
            self.release(shown);
            received += shown;
        }
    }

    /// Counts every frame and drops it.
    fn transmit(&mut self, batch: &mut Batch, _now: Nanos) -> Result<usize, PortError> {
        self.counters.tx_frames += batch.len() as u64;
        self.counters.tx_bytes += batch.frames().iter().map(|it| it.len() as u64).sum::<u64>();
        Ok(batch.len())
    }

    fn in_place(&mut self) -> Option<&mut dyn InPlace> {
        Some(self)
    }

    fn counters(&mut self) -> PortCounters {
        self.counters.clone()
    }
}

impl InPlace for ReplayPort {
    #[inline]
    fn look(&mut self, limit: usize, now: Nanos) -> usize {
        if self.first < self.count {
            return self.count - self.first;
        }
        (self.first, self.count) = (0, 0);
        let turn = self.shelf.turn.load(Ordering::Acquire);
        if turn != self.turn {
            self.change(turn);
        }
        let Some(play) = self.playing.as_ref().filter(|play| !play.tape.is_empty()) else {
            return 0;
        };
        let due = play.due(now, self.played);
        self.count = limit.min(VIEWS_MAX).min(usize::try_from(due).unwrap_or(usize::MAX));
        for found in &mut self.shown.0[..self.count] {
            let frame = play.tape.frame(self.place);
            *found = Found { start: frame.as_ptr(), bytes: frame.len() as u32, after: 0 };
            self.counters.rx_bytes += frame.len() as u64;
            self.place += 1;
            if self.place == play.tape.len() {
                self.place = 0;
            }
        }
        self.played += self.count as u64;
        self.counters.rx_frames += self.count as u64;
        self.count
    }

    #[inline]
    fn shown(&self) -> Views<'_> {
        // SAFETY: the frames are on the tape that is being played, which stays what it is while the
        // port is borrowed.
        unsafe { Views::of(&self.shown.0[self.first..self.count]) }
    }

    #[inline]
    fn release(&mut self, count: usize) {
        self.first = self.count.min(self.first.saturating_add(count));
    }

    /// Counts every frame and drops it.
    #[inline]
    fn put(&mut self, frames: &[Parts<'_>]) -> usize {
        let bytes = frames.iter().map(|(head, rest)| (head.len() + rest.len()) as u64).sum::<u64>();
        self.counters.tx_frames += frames.len() as u64;
        self.counters.tx_bytes += bytes;
        frames.len()
    }

    fn flush(&mut self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tape(frames: u8) -> Arc<Tape> {
        let mut tape = Tape::new(usize::from(frames), 60);
        for frame in 0..frames {
            assert!(tape.push(&vec![frame; 60 + usize::from(frame)]));
        }
        Arc::new(tape)
    }

    fn play(tape: Arc<Tape>, rate_pps: Option<f64>) -> Play {
        Play { tape, rate_pps, from: Nanos(1000), until: Nanos::from_secs(1) }
    }

    fn firsts(port: &mut ReplayPort, room: usize, now: Nanos) -> Vec<u8> {
        let mut batch = Batch::new(room);
        port.receive(&mut batch, now).unwrap();
        batch.frames().iter().map(|frame| frame.bytes()[0]).collect()
    }

    #[test]
    fn frames_come_in_order_and_over_again_as_they_were_put() {
        let (mut port, player) = ReplayPort::new("r");
        assert_eq!(firsts(&mut port, 4, Nanos(5000)), [], "nothing is played yet");
        player.play(play(tape(3), None));
        assert_eq!(firsts(&mut port, 4, Nanos(999)), [], "too early");
        assert_eq!(firsts(&mut port, 4, Nanos(1000)), [0, 1, 2, 0]);
        let mut batch = Batch::new(3);
        assert_eq!(port.receive(&mut batch, Nanos(1000)).unwrap(), 3);
        let lengths: Vec<usize> = batch.frames().iter().map(|frame| frame.len()).collect();
        assert_eq!(lengths, [61, 62, 60]);
        assert_eq!(port.receive(&mut batch, Nanos(1000)).unwrap(), 0, "the batch is full");
        assert_eq!(firsts(&mut port, 4, Nanos::from_secs(1)), [], "it is over");
        assert_eq!(port.transmit(&mut batch, Nanos(0)).unwrap(), 3);
        let counted = port.counters();
        assert_eq!((counted.rx_frames, counted.tx_frames), (7, 3));
        assert_eq!((counted.rx_bytes, counted.tx_bytes), (4 * 60 + 3 + 183, 183));
        // Another tape begins at its beginning.
        player.play(play(tape(2), None));
        assert_eq!(firsts(&mut port, 3, Nanos(1000)), [0, 1, 0]);
        player.play(play(tape(0), None));
        assert_eq!(firsts(&mut port, 3, Nanos(1000)), []);
    }

    #[test]
    fn frames_in_place_are_shown_until_they_are_released() {
        let (mut port, player) = ReplayPort::new("r");
        player.play(play(tape(3), None));
        let marks = |port: &ReplayPort| -> Vec<u8> {
            port.shown().iter().map(|view| view.head::<1>().unwrap()[0]).collect()
        };
        assert_eq!(port.look(4, Nanos(1000)), 4);
        assert_eq!(marks(&port), [0, 1, 2, 0]);
        port.release(1);
        assert_eq!((port.look(9, Nanos(1000)), port.counters().rx_frames), (3, 4));
        assert_eq!(marks(&port), [1, 2, 0]);
        assert_eq!(firsts(&mut port, 2, Nanos(1000)), [1, 2]);
        // What is shown of a tape that is taken off stays until it is released.
        player.play(play(tape(2), None));
        assert_eq!((port.look(9, Nanos(1000)), marks(&port)), (1, vec![0]));
        port.release(1);
        assert_eq!((port.look(9, Nanos(1000)), marks(&port)[..3].to_vec()), (9, vec![0, 1, 0]));
        let head = [1; 60];
        let frame = (crate::memif::view::View::of(&head), crate::memif::view::View::of(&head[..4]));
        assert_eq!(port.put(&[frame, frame]), 2);
        let counters = port.counters();
        assert_eq!((counters.tx_frames, counters.tx_bytes, counters.rx_frames), (2, 128, 13));
    }

    #[test]
    fn a_rate_is_kept_and_what_nobody_takes_waits() {
        let (mut port, player) = ReplayPort::new("r");
        player.play(play(tape(200), Some(1e6)));
        let at = |micros: u64| Nanos(1000 + 1000 * micros);
        assert_eq!(firsts(&mut port, 9, at(0)), [0]);
        assert_eq!(firsts(&mut port, 9, at(0)), []);
        assert_eq!(firsts(&mut port, 9, at(3)), [1, 2, 3]);
        assert_eq!(firsts(&mut port, 1, at(5)), [4]);
        assert_eq!(firsts(&mut port, 9, at(5)), [5]);
        assert_eq!(firsts(&mut port, 9999, at(5000)).len(), 4995);
        assert_eq!(firsts(&mut port, 9, at(5001)), [1]);
    }

    #[test]
    fn a_tape_refuses_what_is_no_frame_and_what_does_not_fit() {
        let mut tape = Tape::new(usize::MAX, usize::MAX);
        assert!(!tape.push(&[]) && !tape.push(&vec![0; FRAME_BYTES_MAX + 1]) && tape.is_empty());
        assert!(tape.push(&vec![7; FRAME_BYTES_MAX]));
        assert_eq!(tape.frame(0), vec![7; FRAME_BYTES_MAX]);
        assert_eq!(tape.frames_max, TAPE_BYTES_MAX / FRAME_BYTES_MAX);
        let mut tape = Tape::new(2, 60);
        assert!(tape.push(&[1]) && tape.push(&[2]) && !tape.push(&[3]));
    }

    #[test]
    fn a_million_frames_with_headers_of_their_own_are_all_played() {
        let count = 1 << 20;
        let mut tape = Tape::new(count as usize, 60);
        let mut frame = [0; 60];
        for number in 0..count {
            frame[..4].copy_from_slice(&u32::to_be_bytes(number));
            assert!(tape.push(&frame));
        }
        let (mut port, player) = ReplayPort::new("r");
        player.play(play(Arc::new(tape), None));
        let mut batch = Batch::new(256);
        let mut next = 0;
        while next < count {
            batch.clear();
            port.receive(&mut batch, Nanos(1000)).unwrap();
            for frame in batch.frames() {
                assert_eq!(frame.bytes()[..4], u32::to_be_bytes(next));
                next += 1;
            }
        }
        assert_eq!(firsts(&mut port, 1, Nanos(1000)), [0]);
    }
}
