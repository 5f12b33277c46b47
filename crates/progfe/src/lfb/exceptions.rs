//! Queues of redirected frames and of events.
//!
//! Frames go to a control element or a service agent. Both queues are bounded, and the caller that
//! runs the element empties them. If the frame queue is full, the block drops and counts the frame.
//! If the event queue is full, the event is counted as lost here.

use std::collections::VecDeque;

use forces::Value;
use packet::frame::Frame;
use packet::time::Nanos;

/// Maximum number of frames that wait for control elements and agents.
pub const TOLD_FRAMES_MAX: usize = 1024;
/// Maximum number of waiting events.
pub const EVENTS_QUEUED_MAX: usize = 4096;

/// Receiver of a redirected frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DivertDestination {
    /// The control element.
    Control,
    /// A service agent.
    Agent(std::sync::Arc<str>),
}

/// A redirected frame.
#[derive(Debug, Clone)]
pub struct DivertedFrame {
    /// Receiver of the frame.
    pub to: DivertDestination,
    /// Index in the program of the block that redirected it.
    pub instance: usize,
    /// Metadata of the frame, by id.
    pub meta: Vec<(u32, u128)>,
    /// Receive time of the frame.
    pub came: Nanos,
    /// The frame.
    pub frame: Frame,
}

/// An event that the class of a block declares.
#[derive(Debug, Clone, PartialEq)]
pub struct LfbEvent {
    /// Index of the block in the program.
    pub instance: usize,
    /// Event id.
    pub event: u32,
    /// Indices for the wildcards of the event's target.
    pub rows: Vec<u32>,
    /// Time of the event.
    pub at: Nanos,
    /// Reported paths and their values.
    pub reports: Vec<(Vec<u32>, Value)>,
}

/// Queues of redirected frames and of events.
#[derive(Debug)]
pub struct ExceptionQueue {
    /// Redirected frames, oldest first.
    pub frames: VecDeque<DivertedFrame>,
    /// Events, oldest first.
    pub happenings: VecDeque<LfbEvent>,
    /// Number of events lost because the queue was full.
    pub happenings_lost: u64,
    /// Capacity of the event queue.
    pub(crate) happenings_max: usize,
}

impl Default for ExceptionQueue {
    fn default() -> ExceptionQueue {
        let (frames, happenings) = (VecDeque::new(), VecDeque::new());
        ExceptionQueue { frames, happenings, happenings_lost: 0, happenings_max: EVENTS_QUEUED_MAX }
    }
}

impl ExceptionQueue {
    /// Returns true if there is room for another frame.
    pub fn has_room(&self) -> bool {
        self.frames.len() < TOLD_FRAMES_MAX
    }

    /// Appends an event, or counts it as lost.
    pub fn happened(&mut self, happening: LfbEvent) {
        if self.happenings.len() < self.happenings_max {
            self.happenings.push_back(happening);
        } else {
            self.happenings_lost += 1;
        }
    }
}
