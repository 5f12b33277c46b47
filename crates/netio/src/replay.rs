//! A port that replays frames from memory in a loop and counts the frames that it is given. It
//! measures a data plane alone, without another process and without the cost of generating frames.
//!
//! - Frames are contiguous on a [`ReplayBuffer`], as in the memory of a network interface. Each is copied
//!   once when it is received.
//! - Frames leave in order, at most at a set rate, while the receiver polls. No queue overflows, so
//!   the forwarding rate is that of the receiver.
//! - Frames sent to the port are counted and dropped.
//! - The caller passes the time, so a replay in virtual time gives the same frames.
//! - A receiver that uses frames in place copies only the bytes that it reads.

#![allow(unsafe_code)]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use os::pages;
use packet::frame::{Batch, FRAME_BYTES_MAX};
use packet::time::{Clock, Nanos};

use crate::in_place::{FrameArray, ReceivedFrame, VIEWS_MAX, Views};
use crate::port::{FrameParts, InPlace, Port, PortCounters, PortError, PortFacts};

/// Maximum number of bytes of one tape.
pub const TAPE_BYTES_MAX: usize = 1 << 30;

/// Alignment of frames, in bytes.
const LINE_BYTES: usize = 64;

/// Frames in memory, in replay order.
#[derive(Debug)]
pub struct ReplayBuffer {
    frames_max: usize,
    bytes: Vec<u8>,
    /// Start and length of each frame.
    places: Vec<(u32, u32)>,
}

/// Frames to replay, with rate and time limits.
#[derive(Debug, Clone)]
pub struct Play {
    /// The frames.
    pub tape: Arc<ReplayBuffer>,
    /// Maximum rate in frames per second, counted from the first frame; `None` for no limit. Frames
    /// that are due wait until they are received.
    pub rate_pps: Option<f64>,
    /// When the first frame is due.
    pub from: Nanos,
    /// When the replay ends.
    pub until: Nanos,
}

/// Sets the frames that a port replays; usable from any thread.
#[derive(Debug, Clone)]
pub struct ReplayControl {
    shelf: Arc<ReplayState>,
}

#[derive(Debug, Default)]
struct ReplayState {
    /// Number of plays that were set.
    turn: AtomicU64,
    next: Mutex<Option<Play>>,
}

/// The port.
pub struct ReplayPort {
    facts: PortFacts,
    shelf: Arc<ReplayState>,
    turn: u64,
    playing: Option<Play>,
    /// Frames replayed since this play began.
    played: u64,
    /// Next frame of the tape.
    place: usize,
    /// Visible frames of the tape.
    shown: Box<FrameArray>,
    first: usize,
    count: usize,
    counters: PortCounters,
}

// SAFETY: the pointers are into the current tape, which the port owns a reference to.
unsafe impl Send for ReplayPort {}

impl ReplayBuffer {
    /// Creates an empty tape with room for `frames` frames of `frame_bytes` bytes, at most
    /// [`TAPE_BYTES_MAX`] bytes.
    ///
    /// Uses huge pages if the system has some.
    pub fn new(frames: usize, frame_bytes: usize) -> Self {
        let each = frame_bytes.clamp(1, FRAME_BYTES_MAX).next_multiple_of(LINE_BYTES);
        let frames = frames.min(TAPE_BYTES_MAX / each);
        let bytes: Vec<u8> = Vec::with_capacity(frames * each);
        // Before the first write, because the kernel chooses the page size then.
        let start = (bytes.as_ptr() as usize).next_multiple_of(pages::HUGE_BYTES);
        let end = bytes.as_ptr() as usize + bytes.capacity();
        if let Some(length) = end.checked_sub(start).filter(|&length| length > 0) {
            pages::advise_huge(start, length);
        }
        ReplayBuffer { frames_max: frames, bytes, places: Vec::with_capacity(frames) }
    }

    /// Appends a copy of `frame`. Returns false if it is empty or too long, or if the tape is full.
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

    /// Returns the number of frames.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Returns whether the tape has no frames.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Returns the frame at `place`, which is less than [`ReplayBuffer::len`].
    #[inline]
    pub fn frame(&self, place: usize) -> &[u8] {
        let (start, bytes) = self.places[place];
        &self.bytes[start as usize..][..bytes as usize]
    }
}

impl ReplayControl {
    /// Replaces the current play from the port's next receive call on.
    pub fn play(&self, play: Play) {
        *self.shelf.next.lock().unwrap_or_else(PoisonError::into_inner) = Some(play);
        self.shelf.turn.fetch_add(1, Ordering::Release);
    }
}

impl ReplayPort {
    /// Creates a port that replays nothing yet, and its player.
    pub fn new(name: &str) -> (ReplayPort, ReplayControl) {
        let shelf = Arc::new(ReplayState::default());
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
            shown: Box::new(FrameArray([ReceivedFrame::NOTHING; VIEWS_MAX])),
            first: 0,
            count: 0,
            counters: PortCounters::default(),
        };
        (port, ReplayControl { shelf })
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
    /// Returns how many frames are due at `now` after `played` frames.
    fn due(&self, now: Nanos, played: u64) -> u64 {
        if now < self.from || now >= self.until {
            return 0;
        }
        let Some(rate_pps) = self.rate_pps else { return u64::MAX };
        // The first frame is due immediately.
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
                let frame = batch.push_slot().expect("frames are limited to the room");
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
            *found = ReceivedFrame { start: frame.as_ptr(), bytes: frame.len() as u32, after: 0 };
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
        // SAFETY: the frames are on the current tape, which does not change while the port is
        // borrowed.
        unsafe { Views::of(&self.shown.0[self.first..self.count]) }
    }

    #[inline]
    fn release(&mut self, count: usize) {
        self.first = self.count.min(self.first.saturating_add(count));
    }

    /// Counts every frame and drops it.
    #[inline]
    fn put(&mut self, frames: &[FrameParts<'_>]) -> usize {
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

    fn tape(frames: u8) -> Arc<ReplayBuffer> {
        let mut tape = ReplayBuffer::new(usize::from(frames), 60);
        for frame in 0..frames {
            assert!(tape.push(&vec![frame; 60 + usize::from(frame)]));
        }
        Arc::new(tape)
    }

    fn play(tape: Arc<ReplayBuffer>, rate_pps: Option<f64>) -> Play {
        Play { tape, rate_pps, from: Nanos(1000), until: Nanos::from_secs(1) }
    }

    fn firsts(port: &mut ReplayPort, room: usize, now: Nanos) -> Vec<u8> {
        let mut batch = Batch::new(room);
        port.receive(&mut batch, now).unwrap();
        batch.frames().iter().map(|frame| frame.bytes()[0]).collect()
    }

    #[test]
    fn frames_are_replayed_in_order_and_repeated() {
        let (mut port, player) = ReplayPort::new("r");
        assert_eq!(firsts(&mut port, 4, Nanos(5000)), [], "no tape is active");
        player.play(play(tape(3), None));
        assert_eq!(firsts(&mut port, 4, Nanos(999)), [], "too early");
        assert_eq!(firsts(&mut port, 4, Nanos(1000)), [0, 1, 2, 0]);
        let mut batch = Batch::new(3);
        assert_eq!(port.receive(&mut batch, Nanos(1000)).unwrap(), 3);
        let lengths: Vec<usize> = batch.frames().iter().map(|frame| frame.len()).collect();
        assert_eq!(lengths, [61, 62, 60]);
        assert_eq!(port.receive(&mut batch, Nanos(1000)).unwrap(), 0, "the batch is full");
        assert_eq!(firsts(&mut port, 4, Nanos::from_secs(1)), [], "the tape has ended");
        assert_eq!(port.transmit(&mut batch, Nanos(0)).unwrap(), 3);
        let counted = port.counters();
        assert_eq!((counted.rx_frames, counted.tx_frames), (7, 3));
        assert_eq!((counted.rx_bytes, counted.tx_bytes), (4 * 60 + 3 + 183, 183));
        // A new tape begins at its first frame.
        player.play(play(tape(2), None));
        assert_eq!(firsts(&mut port, 3, Nanos(1000)), [0, 1, 0]);
        player.play(play(tape(0), None));
        assert_eq!(firsts(&mut port, 3, Nanos(1000)), []);
    }

    #[test]
    fn frames_in_place_are_visible_until_released() {
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
        // Visible frames of a replaced tape stay until they are released.
        player.play(play(tape(2), None));
        assert_eq!((port.look(9, Nanos(1000)), marks(&port)), (1, vec![0]));
        port.release(1);
        assert_eq!((port.look(9, Nanos(1000)), marks(&port)[..3].to_vec()), (9, vec![0, 1, 0]));
        let head = [1; 60];
        let frame = (crate::in_place::View::of(&head), crate::in_place::View::of(&head[..4]));
        assert_eq!(port.put(&[frame, frame]), 2);
        let counters = port.counters();
        assert_eq!((counters.tx_frames, counters.tx_bytes, counters.rx_frames), (2, 128, 13));
    }

    #[test]
    fn the_rate_is_constant_and_overdue_frames_wait() {
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
    fn a_tape_rejects_invalid_and_excess_frames() {
        let mut tape = ReplayBuffer::new(usize::MAX, usize::MAX);
        assert!(!tape.push(&[]) && !tape.push(&vec![0; FRAME_BYTES_MAX + 1]) && tape.is_empty());
        assert!(tape.push(&vec![7; FRAME_BYTES_MAX]));
        assert_eq!(tape.frame(0), vec![7; FRAME_BYTES_MAX]);
        assert_eq!(tape.frames_max, TAPE_BYTES_MAX / FRAME_BYTES_MAX);
        let mut tape = ReplayBuffer::new(2, 60);
        assert!(tape.push(&[1]) && tape.push(&[2]) && !tape.push(&[3]));
    }

    #[test]
    fn a_million_distinct_frames_are_played() {
        let count = 1 << 20;
        let mut tape = ReplayBuffer::new(count as usize, 60);
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
