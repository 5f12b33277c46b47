//! Queues: frames of a port that wait so that each kind of traffic gets its rate.
//!
//! Source: OpenFlow Switch Specification 1.3.5, sections 5.8 (set-queue), 7.2.2 (queue structures:
//! minimum and maximum rate) and 7.3.5.8 (queue statistics). Queues are configured, never made by a
//! controller. A port with queues has one that takes the frames that name none; a port
//! without queues has no part in this.
//!
//! Invariant: a frame that enters either leaves by its port or was never taken.

use packet::frame::{Frame, PortNo};
use packet::time::Nanos;

use crate::forwarder::{Outputs, Sent};

/// When the frames of one port may leave.
mod shaper;

use shaper::Shaper;

/// The number by which a port knows a queue.
pub type QueueNo = u32;

/// Highest number that a queue can have.
pub const QUEUE_NO_MAX: QueueNo = 0xffff_fffe;
/// Frames that one queue holds unless it is told otherwise.
pub const QUEUE_FRAMES: usize = 256;
/// Most frames that one queue may be told to hold.
pub const QUEUE_FRAMES_MAX: usize = 65_536;
/// Most queues of one port.
pub const PORT_QUEUES_MAX: usize = 64;
/// Lowest rate in bit/s that a port or queue can have.
pub const RATE_MIN: u64 = 1_000;

/// The queues of one port. Rates count the bits of frames without frame check sequence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortQueues {
    /// The port.
    pub port: PortNo,
    /// What the port as a whole may send, in bit/s; without it the link sets the limit, and minimum
    /// rates cannot be guaranteed.
    pub rate: Option<u64>,
    /// The queues. One numbered 0 takes the frames that name no queue; without it they have a
    /// queue of their own that has no number, no rates and no statistics.
    pub queues: Vec<QueueSpec>,
}

impl PortQueues {
    /// Whether a port can have these queues.
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

/// One queue as it is configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueSpec {
    /// Its number.
    pub queue: QueueNo,
    /// Rate in bit/s that is guaranteed while the port's rate is being shared.
    pub min: Option<u64>,
    /// Rate in bit/s beyond which its frames wait.
    pub max: Option<u64>,
    /// Frames that may wait in it.
    pub frames_max: usize,
}

impl QueueSpec {
    /// A queue without rates.
    pub fn new(queue: QueueNo) -> QueueSpec {
        QueueSpec { queue, min: None, max: None, frames_max: QUEUE_FRAMES }
    }

    /// Whether a port of this rate can have it.
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
    /// Its port.
    pub port: PortNo,
    /// The queue as it was configured.
    pub spec: QueueSpec,
    /// What the port as a whole may send, in bit/s.
    pub port_rate: Option<u64>,
    /// Frames sent from it.
    pub frames: u64,
    /// Bytes of those, without frame check sequence.
    pub bytes: u64,
    /// Frames that it did not take because it was full.
    pub errors: u64,
    /// Frames that wait in it.
    pub waiting: usize,
    /// Time since it was made.
    pub age: Nanos,
}

/// Why queues cannot be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QueueError {
    /// There is no such port.
    NoSuchPort(PortNo),
    /// No queue can have this number.
    BadNumber(PortNo, QueueNo),
    /// A port has two queues of the same number.
    Twice(PortNo, QueueNo),
    /// A port has more than [`PORT_QUEUES_MAX`] queues.
    TooMany(PortNo, usize),
    /// A rate is below [`RATE_MIN`], a minimum above its maximum, or either above the port's rate.
    BadRate(PortNo, QueueNo),
    /// The minimum rates of a port's queues add up to more than the port's rate.
    MinTooMuch(PortNo),
    /// A queue holds no frame or more than [`QUEUE_FRAMES_MAX`].
    BadLength(PortNo, usize),
}

/// All ports' queues.
#[derive(Debug, Default)]
pub struct Queues {
    /// Place in `shapers` by port number, where the port has queues.
    place: Vec<Option<u16>>,
    shapers: Vec<Shaper>,
}

/// What became of a frame that was to be queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Queued {
    /// It waits, or has already gone on.
    Yes,
    /// Its queue was full.
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

    /// Gives a port the queues of this configuration (none at all takes them away) in place of
    /// those that it had; frames that still wait in those go with them and are counted in the
    /// result.
    pub fn set(&mut self, queues: &PortQueues, now: Nanos) -> Result<usize, QueueError> {
        queues.check()?;
        let lost = self.remove(queues.port);
        if !queues.queues.is_empty() || queues.rate.is_some() {
            let at = queues.port as usize;
            if self.place.len() <= at {
                self.place.resize(at + 1, None);
            }
            let free =
                u16::try_from(self.shapers.len()).expect("there are fewer ports than 65,536");
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

    /// Queues a frame by swapping buffers, and lets go at once what may go. A queue that the port
    /// does not have, or none, means the port's default queue.
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

    /// The same with a copy of the frame.
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

    /// Lets go every frame whose time has come.
    pub fn release(&mut self, now: Nanos, out: &mut Outputs) {
        self.shapers.iter_mut().for_each(|shaper| shaper.release(now, out));
    }

    /// When the next frame may go, if one waits.
    #[inline]
    pub fn due(&self) -> Option<Nanos> {
        self.shapers.iter().filter_map(Shaper::due).min()
    }

    /// Every queue that has a number, by port and number.
    pub fn records(&self, now: Nanos) -> Vec<QueueRecord> {
        let mut records: Vec<QueueRecord> =
            self.shapers.iter().flat_map(|shaper| shaper.records(now)).collect();
        records.sort_unstable_by_key(|record| (record.port, record.spec.queue));
        records
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

/// Whether a port's output has no room; then frames wait on.
fn is_full(sent: Sent) -> bool {
    sent == Sent::QueueFull
}

impl std::fmt::Display for QueueError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            QueueError::NoSuchPort(port) => write!(f, "there is no port {port}"),
            QueueError::BadNumber(port, queue) => {
                write!(f, "port {port}: no queue can have the number {queue}")
            }
            QueueError::Twice(port, queue) => {
                write!(f, "port {port}: queue {queue} is there twice")
            }
            QueueError::TooMany(port, count) => {
                write!(f, "port {port}: {count} queues, and {PORT_QUEUES_MAX} is the most")
            }
            QueueError::BadRate(port, queue) => write!(
                f,
                "port {port}, queue {queue}: rates go from {RATE_MIN} bit/s over the queue's \
                 minimum and maximum to the port's rate"
            ),
            QueueError::MinTooMuch(port) => {
                write!(f, "port {port}: the minimum rates add up to more than the port's rate")
            }
            QueueError::BadLength(port, frames) => write!(
                f,
                "port {port}: a queue of {frames} frames; it holds 1 to {QUEUE_FRAMES_MAX}"
            ),
        }
    }
}

impl std::error::Error for QueueError {}

#[cfg(test)]
mod tests;
