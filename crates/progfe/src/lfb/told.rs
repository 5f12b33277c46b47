//! What leaves the graph for a control element or a service agent, and what happened.
//!
//! Both are queues with a limit; whoever runs the element empties them. A frame that finds no room is
//! dropped and counted by its block, an event that finds none is counted here.

use std::collections::VecDeque;

use forces::Value;
use packet::frame::Frame;
use packet::time::Nanos;

/// Frames that may wait for control elements and agents.
pub const TOLD_FRAMES_MAX: usize = 1024;
/// Events that may wait.
pub const HAPPENINGS_MAX: usize = 4096;

/// Whom a frame is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToldTo {
    /// The control element.
    Control,
    /// A service agent.
    Agent(std::sync::Arc<str>),
}

/// A frame that left the graph.
#[derive(Debug, Clone)]
pub struct ToldFrame {
    /// Whom it is for.
    pub to: ToldTo,
    /// The block that it left by, by its place in the program.
    pub instance: usize,
    /// The metadata that it had, by number.
    pub meta: Vec<(u32, u128)>,
    /// When the element got it.
    pub came: Nanos,
    /// The frame.
    pub frame: Frame,
}

/// Something that a block's class declares as an event.
#[derive(Debug, Clone, PartialEq)]
pub struct Happening {
    /// The block, by its place in the program.
    pub instance: usize,
    /// The event's id.
    pub event: u32,
    /// Indices where the event's target has wildcards.
    pub rows: Vec<u32>,
    /// When.
    pub at: Nanos,
    /// Paths and what is there.
    pub reports: Vec<(Vec<u32>, Value)>,
}

/// What waits to be told.
#[derive(Debug)]
pub struct Told {
    /// Frames, the oldest first.
    pub frames: VecDeque<ToldFrame>,
    /// Events, the oldest first.
    pub happenings: VecDeque<Happening>,
    /// Events that found no room.
    pub happenings_lost: u64,
    /// Events that find room.
    pub(crate) happenings_max: usize,
}

impl Default for Told {
    fn default() -> Told {
        let (frames, happenings) = (VecDeque::new(), VecDeque::new());
        Told { frames, happenings, happenings_lost: 0, happenings_max: HAPPENINGS_MAX }
    }
}

impl Told {
    /// Whether another frame finds room.
    pub fn has_room(&self) -> bool {
        self.frames.len() < TOLD_FRAMES_MAX
    }

    /// Adds an event, or counts it as lost.
    pub fn happened(&mut self, happening: Happening) {
        if self.happenings.len() < self.happenings_max {
            self.happenings.push_back(happening);
        } else {
            self.happenings_lost += 1;
        }
    }
}
