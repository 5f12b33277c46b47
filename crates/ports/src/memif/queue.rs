//! A port's queues: ends of rings that come and go with the peer, used by whichever thread has
//! them.
//!
//! The part of a port that talks to the peer hands a ring's end to a queue, or takes it
//! away, through a mailbox; the queue looks whether the mailbox changed before each batch, which
//! costs one load of a line that nobody writes. A queue that finds its peer at fault lets go of
//! the ring at once and leaves word in the mailbox.

use std::os::fd::RawFd;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::fault::Fault;
use super::receive::{ReceiveEnd, Views};
use super::transmit::{Refusal, Stop, TransmitEnd};
use super::view::View;

/// Between a queue and the part of the port that talks to the peer. On cache lines of its own, as
/// are queues: what one thread writes for every frame must not lie beside what another reads.
#[repr(align(128))]
pub(super) struct Mailbox<E> {
    version: AtomicU32,
    end: Mutex<Option<E>>,
    fault: AtomicU8,
}

impl<E> Mailbox<E> {
    pub(super) fn new() -> Arc<Self> {
        let version = AtomicU32::new(0);
        Arc::new(Mailbox { version, end: Mutex::new(None), fault: AtomicU8::new(0) })
    }

    /// Leaves an end for the queue, or word that there is none any more.
    pub(super) fn post(&self, end: Option<E>) {
        let mut held = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        *held = end;
        self.fault.store(0, Ordering::Relaxed);
        self.version.fetch_add(1, Ordering::Release);
    }

    /// The fault that the queue found, once.
    pub(super) fn take_fault(&self) -> Option<Fault> {
        Fault::from_number(self.fault.swap(0, Ordering::Relaxed))
    }

    fn report(&self, fault: Fault) {
        self.fault.store(fault as u8, Ordering::Relaxed);
    }
}

/// What a queue carried and lost since it was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueueCounters {
    /// Frames released by a receiver, accepted by a transmitter.
    pub frames: u64,
    /// Bytes of those.
    pub bytes: u64,
    /// Frames that were longer than can be carried.
    pub too_long: u64,
    /// Received frames that were lost because the peer broke the rules at them.
    pub broken: u64,
}

/// A queue's own side of its mailbox.
struct Held<E> {
    mailbox: Arc<Mailbox<E>>,
    version: u32,
    end: Option<E>,
}

impl<E> Held<E> {
    fn new(mailbox: Arc<Mailbox<E>>) -> Self {
        Held { mailbox, version: 0, end: None }
    }

    /// The end as it is now.
    #[inline(always)]
    fn current(&mut self) -> Option<&mut E> {
        if self.mailbox.version.load(Ordering::Acquire) != self.version {
            self.renew();
        }
        self.end.as_mut()
    }

    #[cold]
    fn renew(&mut self) {
        // Dropped before the new one comes: the old region need not outlive its connection.
        self.end = None;
        let mut posted = self.mailbox.end.lock().unwrap_or_else(PoisonError::into_inner);
        self.version = self.mailbox.version.load(Ordering::Acquire);
        self.end = posted.take();
    }

    /// Lets go of the ring of a peer at fault.
    #[cold]
    fn drop_for(&mut self, fault: Fault) {
        self.end = None;
        self.mailbox.report(fault);
    }
}

/// A queue that frames are received from.
#[repr(align(128))]
pub struct Receiver {
    held: Held<ReceiveEnd>,
    counters: QueueCounters,
}

impl Receiver {
    pub(super) fn new(mailbox: Arc<Mailbox<ReceiveEnd>>) -> Self {
        Receiver { held: Held::new(mailbox), counters: QueueCounters::default() }
    }

    /// Up to `limit` frames (at most [`super::receive::VIEWS_MAX`]) that have arrived, where they
    /// lie. They stay until they are released, and are shown again until then.
    #[inline]
    pub fn peek(&mut self, limit: usize) -> Views<'_> {
        match self.held.current().map(|end| end.look(limit)) {
            None => return Views::NONE,
            Some(Ok(())) => {}
            Some(Err(fault)) => {
                self.counters.broken += 1;
                self.held.drop_for(fault);
            }
        }
        let Some(end) = &mut self.held.end else { return Views::NONE };
        self.counters.too_long += end.take_too_long();
        end.views(limit)
    }

    /// Those that are shown: nothing is looked for.
    #[inline]
    pub fn shown(&self) -> Views<'_> {
        self.held.end.as_ref().map_or(Views::NONE, ReceiveEnd::shown)
    }

    /// Gives the first `count` frames back to the sender.
    #[inline]
    pub fn release(&mut self, count: usize) {
        let Some(end) = &mut self.held.end else { return };
        for frame in end.views(count).iter() {
            self.counters.frames += 1;
            self.counters.bytes += frame.len() as u64;
        }
        end.release(count);
    }

    /// Says that nobody will look until [`Receiver::descriptor`] can be read. False if there is
    /// something to look at now.
    pub fn arm(&self) -> bool {
        let is_current = self.held.mailbox.version.load(Ordering::Acquire) == self.held.version;
        is_current && self.held.end.as_ref().is_none_or(ReceiveEnd::arm)
    }

    /// Makes the descriptor readable.
    pub fn wake(&self) {
        if let Some(end) = &self.held.end {
            end.doorbell().ring();
        }
    }

    /// Says that somebody looks again.
    pub fn disarm(&self) {
        if let Some(end) = &self.held.end {
            end.disarm();
        }
    }

    /// What becomes readable when frames arrive at an armed queue; it changes with the peer.
    pub fn descriptor(&self) -> Option<RawFd> {
        self.held.end.as_ref().map(|end| end.doorbell().descriptor())
    }

    /// Its account.
    pub fn counters(&self) -> QueueCounters {
        self.counters
    }
}

/// A queue that frames are sent into.
#[repr(align(128))]
pub struct Transmitter {
    held: Held<TransmitEnd>,
    counters: QueueCounters,
}

impl Transmitter {
    pub(super) fn new(mailbox: Arc<Mailbox<TransmitEnd>>) -> Self {
        Transmitter { held: Held::new(mailbox), counters: QueueCounters::default() }
    }

    /// Copies a frame into the next free buffer. The peer sees it after [`Transmitter::flush`].
    #[inline(always)]
    pub fn put(&mut self, frame: View<'_>) -> Result<(), Refusal> {
        self.put_parts(frame, View::of(&[]))
    }

    /// As [`Transmitter::put`], for a frame of two parts: a header that was rewritten, say, and
    /// the rest of the frame that it was rewritten for.
    #[inline(always)]
    pub fn put_parts(&mut self, first: View<'_>, second: View<'_>) -> Result<(), Refusal> {
        let Some(end) = self.held.current() else { return Err(Refusal::Down) };
        match end.put_parts(first, second) {
            Ok(()) => {
                self.counters.frames += 1;
                self.counters.bytes += (first.len() + second.len()) as u64;
                Ok(())
            }
            Err(stop) => Err(self.stopped(stop)),
        }
    }

    /// Puts frames until one finds no room, shows them to the peer, and returns how many are done
    /// with; among these are such that are too long to be sent at all.
    #[inline]
    pub fn send<'a>(&mut self, frames: impl Iterator<Item = View<'a>>) -> usize {
        let done = self.put_all(frames.map(|frame| (frame, View::of(&[]))));
        self.flush();
        done
    }

    /// Puts frames of two parts until one finds no room and returns how many are done with, as
    /// [`Transmitter::send`] does.
    #[inline]
    pub fn put_all<'a>(&mut self, frames: impl Iterator<Item = (View<'a>, View<'a>)>) -> usize {
        let Some(end) = self.held.current() else { return 0 };
        let (mut done, mut stopped) = (0, None);
        let counters = &mut self.counters;
        for (first, second) in frames {
            match end.put_parts(first, second) {
                Ok(()) => {
                    counters.frames += 1;
                    counters.bytes += (first.len() + second.len()) as u64;
                }
                Err(Stop::Refused(Refusal::TooLong)) => counters.too_long += 1,
                Err(stop) => {
                    stopped = Some(stop);
                    break;
                }
            }
            done += 1;
        }
        if let Some(stop) = stopped {
            self.stopped(stop);
        }
        done
    }

    /// How many frames of one buffer can be put, looking at the peer only if fewer than `wanted`
    /// are known to fit.
    #[inline]
    pub fn room(&mut self, wanted: usize) -> usize {
        match self.held.current().map(|end| end.room(wanted)) {
            Some(Ok(room)) => room,
            Some(Err(fault)) => {
                self.stopped(fault.into());
                0
            }
            None => 0,
        }
    }

    /// Shows the peer all that was put.
    #[inline]
    pub fn flush(&mut self) {
        if let Some(end) = self.held.current() {
            end.flush();
        }
    }

    /// Its account.
    pub fn counters(&self) -> QueueCounters {
        self.counters
    }

    #[cold]
    fn stopped(&mut self, stop: Stop) -> Refusal {
        match stop {
            Stop::Refused(refusal) => {
                self.counters.too_long += u64::from(refusal == Refusal::TooLong);
                refusal
            }
            Stop::Broken(fault) => {
                // The frame is not lost: it is still the caller's.
                self.held.drop_for(fault);
                Refusal::Down
            }
        }
    }
}
