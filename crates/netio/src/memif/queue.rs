//! A port's queues: ring ends that come and go with the peer, used by any thread.
//!
//! The control part of a port passes a ring end to a queue, or removes it, through a mailbox. The
//! queue checks for changes of the mailbox before each batch, which costs one load of a read-only
//! cache line. A queue that detects a fault of its peer drops the ring immediately and reports the
//! fault in the mailbox.

use std::os::fd::RawFd;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::fault::Fault;
use super::receive::ReceiveEnd;
use super::transmit::{PutError, Refusal, TransmitEnd};
use crate::in_place::View;
use crate::in_place::Views;

/// Passes ring ends between a queue and the control part of the port.
///
/// On its own cache lines, like the queues: data that one thread writes for every frame must not
/// share a line with data that another reads.
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

    /// Stores an end for the queue, or `None` if there is none any more.
    pub(super) fn post(&self, end: Option<E>) {
        let mut held = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        *held = end;
        self.fault.store(0, Ordering::Relaxed);
        self.version.fetch_add(1, Ordering::Release);
    }

    /// Returns the fault that the queue found, once.
    pub(super) fn take_fault(&self) -> Option<Fault> {
        Fault::from_number(self.fault.swap(0, Ordering::Relaxed))
    }

    fn report(&self, fault: Fault) {
        self.fault.store(fault as u8, Ordering::Relaxed);
    }
}

/// Counters of a queue since it was created.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueueCounters {
    /// Frames released by a receiver, accepted by a transmitter.
    pub frames: u64,
    /// Bytes of these frames.
    pub bytes: u64,
    /// Frames that exceeded the maximum length.
    pub too_long: u64,
    /// Received frames lost because of a fault of the peer.
    pub broken: u64,
}

/// The queue's side of its mailbox.
struct MailboxState<E> {
    mailbox: Arc<Mailbox<E>>,
    version: u32,
    end: Option<E>,
}

impl<E> MailboxState<E> {
    fn new(mailbox: Arc<Mailbox<E>>) -> Self {
        MailboxState { mailbox, version: 0, end: None }
    }

    /// Returns the current end.
    #[inline(always)]
    fn current(&mut self) -> Option<&mut E> {
        if self.mailbox.version.load(Ordering::Acquire) != self.version {
            self.renew();
        }
        self.end.as_mut()
    }

    #[cold]
    fn renew(&mut self) {
        // Dropped before the new one arrives: the old region need not outlive its connection.
        self.end = None;
        let mut posted = self.mailbox.end.lock().unwrap_or_else(PoisonError::into_inner);
        self.version = self.mailbox.version.load(Ordering::Acquire);
        self.end = posted.take();
    }

    /// Drops the ring of a peer at fault.
    #[cold]
    fn drop_for(&mut self, fault: Fault) {
        self.end = None;
        self.mailbox.report(fault);
    }
}

/// A receiving queue.
#[repr(align(128))]
pub struct Receiver {
    held: MailboxState<ReceiveEnd>,
    counters: QueueCounters,
}

impl Receiver {
    pub(super) fn new(mailbox: Arc<Mailbox<ReceiveEnd>>) -> Self {
        Receiver { held: MailboxState::new(mailbox), counters: QueueCounters::default() }
    }

    /// Returns up to `limit` received frames in place (at most [`crate::in_place::VIEWS_MAX`]).
    ///
    /// They are returned again by each call until they are released.
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

    /// Returns the visible frames without looking for more.
    #[inline]
    pub fn shown(&self) -> Views<'_> {
        self.held.end.as_ref().map_or(Views::NONE, ReceiveEnd::shown)
    }

    /// Returns the buffers of the first `count` frames to the sender.
    #[inline]
    pub fn release(&mut self, count: usize) {
        let Some(end) = &mut self.held.end else { return };
        for frame in end.views(count).iter() {
            self.counters.frames += 1;
            self.counters.bytes += frame.len() as u64;
        }
        end.release(count);
    }

    /// Requests a signal of [`Receiver::descriptor`] for the next frame. Returns false if frames
    /// wait already.
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

    /// Cancels the request for a signal, because the caller polls again.
    pub fn disarm(&self) {
        if let Some(end) = &self.held.end {
            end.disarm();
        }
    }

    /// Returns the descriptor that becomes readable when frames arrive at an armed queue; it
    /// changes with the peer.
    pub fn descriptor(&self) -> Option<RawFd> {
        self.held.end.as_ref().map(|end| end.doorbell().descriptor())
    }

    /// Returns the counters.
    pub fn counters(&self) -> QueueCounters {
        self.counters
    }
}

/// A sending queue.
#[repr(align(128))]
pub struct Transmitter {
    held: MailboxState<TransmitEnd>,
    counters: QueueCounters,
}

impl Transmitter {
    pub(super) fn new(mailbox: Arc<Mailbox<TransmitEnd>>) -> Self {
        Transmitter { held: MailboxState::new(mailbox), counters: QueueCounters::default() }
    }

    /// Copies a frame into the next free buffer. The peer sees it after [`Transmitter::flush`].
    #[inline(always)]
    pub fn put(&mut self, frame: View<'_>) -> Result<(), Refusal> {
        self.put_parts(frame, View::of(&[]))
    }

    /// Like [`Transmitter::put`], for a frame in two parts, such as a rewritten header and the rest
    /// of the frame.
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

    /// Puts frames until one finds no room, and publishes them. Returns how many are done,
    /// including frames too long to send.
    #[inline]
    pub fn send<'a>(&mut self, frames: impl Iterator<Item = View<'a>>) -> usize {
        let done = self.put_all(frames.map(|frame| (frame, View::of(&[]))));
        self.flush();
        done
    }

    /// Puts frames in two parts until one finds no room. Returns how many are done, like
    /// [`Transmitter::send`].
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
                Err(PutError::Refused(Refusal::TooLong)) => counters.too_long += 1,
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

    /// Returns how many single-buffer frames can be put. Reads the peer's index only if fewer than
    /// `wanted` are known to fit.
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

    /// Publishes all put frames to the peer.
    #[inline]
    pub fn flush(&mut self) {
        if let Some(end) = self.held.current() {
            end.flush();
        }
    }

    /// Returns the counters.
    pub fn counters(&self) -> QueueCounters {
        self.counters
    }

    #[cold]
    fn stopped(&mut self, stop: PutError) -> Refusal {
        match stop {
            PutError::Refused(refusal) => {
                self.counters.too_long += u64::from(refusal == Refusal::TooLong);
                refusal
            }
            PutError::Broken(fault) => {
                // The frame is not lost: the caller still has it.
                self.held.drop_for(fault);
                Refusal::Down
            }
        }
    }
}
