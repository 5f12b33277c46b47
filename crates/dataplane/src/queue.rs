//! Port queues with rate limits.
//!
//! Source: OpenFlow Switch Specification 1.3.5, sections 5.8 (set-queue), 7.2.2 (queue structures:
//! minimum and maximum rate) and 7.3.5.8 (queue statistics). Queues are part of the configuration;
//! a controller cannot create them. A port with queues has a default queue for frames without a
//! queue number. A port without queues bypasses this module.
//!
//! Invariant: a frame that is accepted leaves by its port.

use packet::frame::{Frame, PortNo};
use packet::time::Nanos;

use crate::forwarder::{Outputs, Sent};

mod shaper;

use shaper::Shaper;

/// Number of a queue on its port.
pub type QueueNo = u32;

/// Highest number of a queue.
pub const QUEUE_NO_MAX: QueueNo = 0xffff_fffe;
/// Default length of a queue in frames.
pub const QUEUE_FRAMES: usize = 256;
/// Maximum length of a queue in frames.
pub const QUEUE_FRAMES_MAX: usize = 65_536;
/// Maximum number of queues of a port.
pub const PORT_QUEUES_MAX: usize = 64;
/// Minimum rate of a port or queue in bit/s.
pub const RATE_MIN: u64 = 1_000;

/// The queues of one port. Rates count frames without frame check sequence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortQueues {
    /// The port.
    pub port: PortNo,
    /// Rate of the port in bit/s. Without it, the link sets the limit, and minimum rates cannot be
    /// guaranteed.
    pub rate: Option<u64>,
    /// The queues. Queue 0 is the default queue. If it is not configured, the default queue has no
    /// number, rates or statistics.
    pub queues: Vec<QueueSpec>,
}

impl PortQueues {
    /// Validates the configuration.
    pub fn check(&self) -> Result<(), QueueError> {
        let port = self.port;
        if self.queues.len() > PORT_QUEUES_MAX {
            return Err(QueueError::TooMany(port, self.queues.len()));
        }
        let port_max = self.rate.unwrap_or(u64::MAX);
        if port_max < RATE_MIN {
            return Err(QueueError::BadRate(port, 0));
        }
        for (place, spec) in self.queues.iter().enumerate() {
            if self.queues[..place].iter().any(|other| other.queue == spec.queue) {
                return Err(QueueError::Twice(port, spec.queue));
            }
            spec.check(port, port_max)?;
        }
        let guaranteed = self.queues.iter().filter_map(|spec| spec.min);
        let sum = guaranteed.fold(0u64, u64::saturating_add);
        if sum > port_max { Err(QueueError::MinTooMuch(port)) } else { Ok(()) }
    }
}

/// Configuration of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueSpec {
    /// The queue number.
    pub queue: QueueNo,
    /// Guaranteed rate in bit/s, if the port has a rate.
    pub min: Option<u64>,
    /// Maximum rate in bit/s.
    pub max: Option<u64>,
    /// Maximum number of waiting frames.
    pub frames_max: usize,
}

impl QueueSpec {
    /// Creates a queue without rates.
    pub fn new(queue: QueueNo) -> QueueSpec {
        QueueSpec { queue, min: None, max: None, frames_max: QUEUE_FRAMES }
    }

    /// Validates the queue for a port with this rate.
    fn check(&self, port: PortNo, port_max: u64) -> Result<(), QueueError> {
        if self.queue > QUEUE_NO_MAX {
            return Err(QueueError::BadNumber(port, self.queue));
        }
        if !(1..=QUEUE_FRAMES_MAX).contains(&self.frames_max) {
            return Err(QueueError::BadLength(port, self.frames_max));
        }
        let (min, max) = (self.min.unwrap_or(RATE_MIN), self.max.unwrap_or(port_max));
        let fits = min >= RATE_MIN && min <= max && max <= port_max;
        if fits { Ok(()) } else { Err(QueueError::BadRate(port, self.queue)) }
    }
}

/// A queue and its counters at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueRecord {
    /// The port.
    pub port: PortNo,
    /// The configuration.
    pub spec: QueueSpec,
    /// Rate of the port in bit/s.
    pub port_rate: Option<u64>,
    /// Sent frames.
    pub frames: u64,
    /// Sent bytes, without frame check sequence.
    pub bytes: u64,
    /// Frames rejected because the queue was full.
    pub errors: u64,
    /// Waiting frames.
    pub waiting: usize,
    /// Time since the queue was created.
    pub age: Nanos,
}

/// Error in a queue configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QueueError {
    /// The port does not exist.
    NoSuchPort(PortNo),
    /// The queue number is invalid.
    BadNumber(PortNo, QueueNo),
    /// A port has two queues with the same number.
    Twice(PortNo, QueueNo),
    /// A port has more than [`PORT_QUEUES_MAX`] queues.
    TooMany(PortNo, usize),
    /// A rate is below [`RATE_MIN`], a minimum above its maximum, or either above the port's rate.
    BadRate(PortNo, QueueNo),
    /// The sum of the minimum rates exceeds the port's rate.
    MinTooMuch(PortNo),
    /// The queue length is zero or above [`QUEUE_FRAMES_MAX`].
    BadLength(PortNo, usize),
}

/// The queues of all ports.
#[derive(Debug, Default)]
pub struct Queues {
    /// Index in `shapers` by port number, for ports with queues.
    place: Vec<Option<u16>>,
    shapers: Vec<Shaper>,
}

/// Result of queueing a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Queued {
    /// The frame was queued or sent.
    Yes,
    /// The queue is full.
    Full,
    /// The port has no queues.
    NoQueues,
}

impl Queues {
    /// Whether a port has queues.
    #[inline]
    pub fn has(&self, port: PortNo) -> bool {
        self.place.get(port as usize).is_some_and(Option::is_some)
    }

    /// Whether a port has a queue of this number.
    pub fn contains(&self, port: PortNo, queue: QueueNo) -> bool {
        self.shaper(port).is_some_and(|shaper| shaper.contains(queue))
    }

    /// Replaces the queues of a port; an empty configuration removes them. Returns the number of
    /// frames that were dropped from the old queues.
    pub fn set(&mut self, queues: &PortQueues, now: Nanos) -> Result<usize, QueueError> {
        queues.check()?;
        let lost = self.remove(queues.port);
        if !queues.queues.is_empty() || queues.rate.is_some() {
            let at = queues.port as usize;
            if self.place.len() <= at {
                self.place.resize(at + 1, None);
            }
            let free =
                u16::try_from(self.shapers.len()).expect("there are fewer than 65,536 ports");
            self.place[at] = Some(free);
            self.shapers.push(Shaper::new(queues, now));
        }
        Ok(lost)
    }

    fn remove(&mut self, port: PortNo) -> usize {
        let Some(place) = self.place.get_mut(port as usize).and_then(Option::take) else {
            return 0;
        };
        let gone = self.shapers.swap_remove(place.into());
        if let Some(moved) = self.shapers.get(usize::from(place)) {
            self.place[moved.port() as usize] = Some(place);
        }
        gone.waiting()
    }

    /// Queues a frame by swapping buffers, and sends due frames. Without a valid queue number, the
    /// frame goes to the port's default queue.
    pub fn send(
        &mut self,
        port: PortNo,
        queue: Option<QueueNo>,
        frame: &mut Frame,
        now: Nanos,
        out: &mut Outputs,
    ) -> Queued {
        let Some(shaper) = self.shaper_mut(port) else { return Queued::NoQueues };
        shaper.release(now, out);
        let taken = shaper.push(queue, frame, now);
        shaper.release(now, out);
        if taken { Queued::Yes } else { Queued::Full }
    }

    /// Like [`Queues::send`], with a copy of the frame.
    pub fn send_copy(
        &mut self,
        port: PortNo,
        queue: Option<QueueNo>,
        frame: &Frame,
        now: Nanos,
        out: &mut Outputs,
    ) -> Queued {
        let mut copy = Frame::default();
        copy.copy_from(frame);
        self.send(port, queue, &mut copy, now, out)
    }

    /// Sends every frame that is due.
    pub fn release(&mut self, now: Nanos, out: &mut Outputs) {
        self.shapers.iter_mut().for_each(|shaper| shaper.release(now, out));
    }

    /// Returns when the next frame is due, if one waits.
    #[inline]
    pub fn due(&self) -> Option<Nanos> {
        self.shapers.iter().filter_map(Shaper::due).min()
    }

    /// Returns every queue that has a number, ordered by port and number.
    pub fn records(&self, now: Nanos) -> Vec<QueueRecord> {
        let mut records: Vec<QueueRecord> =
            self.shapers.iter().flat_map(|shaper| shaper.records(now)).collect();
        records.sort_unstable_by_key(|record| (record.port, record.spec.queue));
        records
    }

    /// Returns the queue of a port with the lowest number from `from` on.
    pub fn next(&self, port: PortNo, from: QueueNo, now: Nanos) -> Option<QueueRecord> {
        self.shaper(port)?.next(from, now)
    }

    fn shaper(&self, port: PortNo) -> Option<&Shaper> {
        let place = (*self.place.get(port as usize)?)?;
        Some(&self.shapers[usize::from(place)])
    }

    fn shaper_mut(&mut self, port: PortNo) -> Option<&mut Shaper> {
        let place = (*self.place.get(port as usize)?)?;
        Some(&mut self.shapers[usize::from(place)])
    }
}

/// Whether a port's output queue is full; then frames keep waiting.
fn is_full(sent: Sent) -> bool {
    sent == Sent::QueueFull
}

impl std::fmt::Display for QueueError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            QueueError::NoSuchPort(port) => write!(f, "there is no port {port}"),
            QueueError::BadNumber(port, queue) => {
                write!(f, "port {port}: invalid queue number {queue}")
            }
            QueueError::Twice(port, queue) => {
                write!(f, "port {port}: queue {queue} is listed twice")
            }
            QueueError::TooMany(port, count) => {
                write!(f, "port {port}: {count} queues, at most {PORT_QUEUES_MAX} are allowed")
            }
            QueueError::BadRate(port, queue) => write!(
                f,
                "port {port}, queue {queue}: invalid rates (hint: use {RATE_MIN} bit/s <= minimum \
                 <= maximum <= rate of the port)"
            ),
            QueueError::MinTooMuch(port) => {
                write!(f, "port {port}: the sum of the minimum rates exceeds the port's rate")
            }
            QueueError::BadLength(port, frames) => write!(
                f,
                "port {port}: invalid queue length of {frames} frames (hint: use 1 to \
                 {QUEUE_FRAMES_MAX})"
            ),
        }
    }
}

impl std::error::Error for QueueError {}

#[cfg(test)]
mod tests;
