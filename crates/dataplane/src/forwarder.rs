//! What every data plane is: frames in, frames and events out.
//!
//! A [`Forwarder`] takes the frames that one port received and decides where they go, by moving
//! them into the [`Outputs`]. It knows no socket, clock or thread, and cannot fail: a frame that
//! goes nowhere is a counted reason. The process that runs it (or a simulation) moves frames
//! between ports and forwarders; what the forwarder wants to tell its control plane are
//! [`Event`]s.

use packet::frame::{Batch, Frame, PortNo};
use packet::time::Nanos;

use crate::flow::{FlowChange, FlowRecord, FlowRemovedReason, Source};
use crate::rewrite;

/// Frames that one port may have waiting before they are dropped and counted.
pub const OUTPUT_FRAMES_MAX: usize = 1024;

/// Events that may wait for the control plane before further ones are dropped and counted.
pub const EVENTS_MAX: usize = 4096;

/// A data plane: a bridge, a router, an OpenFlow pipeline.
pub trait Forwarder {
    /// Forwards the frames that `port` received at about `now`. The batch's frames are used up:
    /// their buffers may have been swapped for others when this returns.
    fn forward(&mut self, port: PortNo, batch: &mut Batch, now: Nanos, out: &mut Outputs);

    /// Does what is due at `now` (time-outs, ageing, retries) and says when to come back, if ever.
    fn tick(&mut self, now: Nanos, out: &mut Outputs) -> Option<Nanos>;

    /// Whether [`Forwarder::decide`] may decide something.
    fn decides(&self) -> bool {
        false
    }

    /// Decides the first ones of frames that stay where they are, at most [`SIGHTS_MAX`], by their first
    /// bytes. What came of it is in the first of `decisions`. The second ones are those that are
    /// decided by the next call, if it is known: it must be for these then.
    fn decide(
        &mut self,
        _port: PortNo,
        _sights: [&[Sight<'_>]; 2],
        _now: Nanos,
        _decisions: &mut [Decision; SIGHTS_MAX],
    ) -> Decided {
        Decided::Done(0)
    }

    /// Whether frames that the last call of [`Forwarder::decide`] let out leave with other headers than they
    /// came with: then [`Forwarder::rewrite`] has to be asked for these.
    fn rewrites(&self) -> bool {
        false
    }

    /// By how many bytes in front a frame grows that the last call of [`Forwarder::decide`] let out, at most
    /// [`GROWS_MAX`]; it shrinks if that is negative. `place` is its place among those that were decided.
    fn grows(&self, _place: usize) -> isize {
        0
    }

    /// Makes the first bytes of a frame that the last call of [`Forwarder::decide`] let out what they
    /// are as it leaves, and says how many bytes it has then: as many as before and as it grows, or fewer if
    /// all of them are in `head`. This begins with the room by which it grows; where it shrinks, what is
    /// behind begins as many bytes later. `place` is its place among those that were decided.
    fn rewrite(&mut self, _place: usize, _head: &mut [u8], bytes: usize) -> usize {
        bytes
    }

    /// Goes on with the frames of which the last call of [`Forwarder::decide`] said that it needs
    /// them, in the same order. They are used up as those of [`Forwarder::forward`] are.
    fn resume(&mut self, _frames: &mut [Frame], _now: Nanos, _out: &mut Outputs) {}
}

/// Bytes by which a frame may grow in front where it lies.
pub const GROWS_MAX: usize = 64;

/// Frames that are decided at once where they lie.
pub const SIGHTS_MAX: usize = 32;

/// What is seen of a frame that stays where it is.
#[derive(Debug, Clone, Copy)]
pub struct Sight<'a> {
    /// Its first bytes, or all of them.
    pub head: &'a [u8],
    /// How many bytes it has.
    pub bytes: usize,
}

/// What becomes of a frame that stays where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// It is dropped and counted.
    Dropped,
    /// It leaves by this port: unchanged, or as [`Forwarder::rewrite`] has it.
    Output(PortNo),
}

/// How far frames were decided where they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decided {
    /// The first so many. Those behind them are to be forwarded.
    Done(usize),
    /// The first so many are needed as frames, for [`Forwarder::resume`]. Those behind them are to
    /// be forwarded after that.
    Needs(usize),
}

/// What leaves a forwarder: a queue of frames for each port, and events for the control plane.
pub struct Outputs {
    /// Place in `queues` by port number, or `None` where there is no such port.
    place: Vec<Option<u16>>,
    queues: Vec<(PortNo, Batch)>,
    /// Events in the order in which they happened; whoever runs the forwarder drains them.
    pub events: Vec<Event>,
    /// Events lost because [`EVENTS_MAX`] were waiting.
    pub events_lost: u64,
    /// When the forwarder has to be ticked, if that is earlier than its last tick said; whoever
    /// runs it takes this.
    pub wake: Option<Nanos>,
}

/// What became of a frame that was handed to an output port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// It waits in the port's queue.
    Queued,
    /// There is no such port.
    NoSuchPort,
    /// The port's queue is full.
    QueueFull,
}

/// What a forwarder tells its control plane.
#[derive(Debug, Clone)]
pub enum Event {
    /// A frame for the controller.
    PacketIn {
        /// The port that the frame came in on.
        port: PortNo,
        /// Bytes of it that the controller asked for (by the action's limit), if it said.
        bytes_max: Option<u16>,
        /// Why, and where in the pipeline it was.
        context: Context,
        /// The whole frame.
        frame: Frame,
    },
    /// An entry is gone that had asked for this to be told.
    FlowRemoved {
        /// The entry with its last counters.
        flow: Box<FlowRecord>,
        /// Why it went.
        why: FlowRemovedReason,
    },
    /// A frame matched an entry that may have reached a limit of its trigger: for
    /// [`Pipeline::heard`](crate::pipeline::Pipeline::heard), which tells of it if so.
    FlowReached {
        /// The entry's place.
        place: u32,
    },
    /// An entry was added, changed or removed, and somebody watches
    /// (see [`crate::table::Tables::watch`]).
    FlowChanged {
        /// The entry as it is now, or as it was last.
        flow: Box<FlowRecord>,
        /// What happened to it.
        change: FlowChange,
        /// Who ordered it, if it was ordered.
        source: Option<Source>,
    },
    /// The counters of an entry reached what it has a trigger for.
    FlowTriggered {
        /// The entry with its counters.
        flow: Box<FlowRecord>,
    },
    /// So much room is left in a table that it was to be told.
    Vacancy {
        /// The table.
        table: u8,
        /// Whether there is less room than the lower limit; else more than the upper one.
        down: bool,
    },
}

/// Where in a pipeline a frame is, for whoever is told of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Context {
    /// Why it goes to the controller where an action sends it there.
    pub why: PacketInReason,
    /// The table that it is in.
    pub table: u8,
    /// The cookie of the entry that it matched.
    pub cookie: u64,
    /// The fields that are not in its bytes.
    pub fields: rewrite::Context,
    /// In an egress table, the port that it is about to leave by.
    pub actset_output: Option<PortNo>,
    /// The queue by which it leaves, once an action said so.
    pub queue: Option<u32>,
}

/// What the cookie is of a frame that no entry matched.
pub const NO_COOKIE: u64 = u64::MAX;

impl Context {
    /// A frame that has not met a table.
    pub const START: Context = Context {
        why: PacketInReason::Action,
        table: 0,
        cookie: NO_COOKIE,
        fields: rewrite::Context { in_port: 0, in_phy_port: 0, metadata: 0, tunnel_id: 0 },
        actset_output: None,
        queue: None,
    };
}

/// Why a frame goes to the controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacketInReason {
    /// No entry matched it, or the one for such frames.
    NoMatch,
    /// An action of an entry's list sent it there.
    Action,
    /// Its time to live is used up.
    InvalidTtl,
    /// An action of the action set sent it there.
    ActionSet,
    /// An action of a group's bucket sent it there.
    Group,
    /// An action of the control plane's own sent it there.
    PacketOut,
}

impl Outputs {
    /// Empty queues for these ports. Port numbers are below 65,536.
    pub fn new(ports: &[PortNo]) -> Self {
        let mut outputs = Outputs {
            place: Vec::new(),
            queues: Vec::new(),
            events: Vec::new(),
            events_lost: 0,
            wake: None,
        };
        for &port in ports {
            assert!(port < 0x1_0000, "port numbers are below 65,536");
            if outputs.place.len() <= port as usize {
                outputs.place.resize(port as usize + 1, None);
            }
            outputs.place[port as usize] = Some(outputs.queues.len() as u16);
            outputs.queues.push((port, Batch::new(OUTPUT_FRAMES_MAX)));
        }
        outputs
    }

    /// The queues, in the order in which the ports were named.
    pub fn queues(&self) -> &[(PortNo, Batch)] {
        &self.queues
    }

    /// The queues, to be emptied.
    pub fn queues_mut(&mut self) -> &mut [(PortNo, Batch)] {
        &mut self.queues
    }

    #[inline]
    fn queue(&mut self, port: PortNo) -> Option<&mut Batch> {
        let place = (*self.place.get(port as usize)?)?;
        Some(&mut self.queues[place as usize].1)
    }

    /// Queues the frame on `port` by swapping buffers: afterwards `frame` holds an old buffer.
    #[inline]
    pub fn send(&mut self, port: PortNo, frame: &mut Frame) -> Sent {
        match self.queue(port).map(|queue| queue.push_swap(frame)) {
            None => Sent::NoSuchPort,
            Some(true) => Sent::Queued,
            Some(false) => Sent::QueueFull,
        }
    }

    /// A frame with unspecified contents at the end of the queue of `port`, to be written; `None`
    /// if there is no such port, or no room.
    #[inline]
    pub fn slot(&mut self, port: PortNo) -> Option<&mut Frame> {
        self.queue(port)?.push_slot()
    }

    /// Queues a copy of the frame on `port`.
    #[inline]
    pub fn send_copy(&mut self, port: PortNo, frame: &Frame) -> Sent {
        match self.queue(port) {
            None => Sent::NoSuchPort,
            Some(queue) => match queue.push_slot() {
                Some(slot) => {
                    slot.copy_from(frame);
                    Sent::Queued
                }
                None => Sent::QueueFull,
            },
        }
    }

    /// Asks for the forwarder to be ticked at this moment, if at any.
    #[inline]
    pub fn wake_at(&mut self, due: Option<Nanos>) {
        self.wake = self.wake.into_iter().chain(due).min();
    }

    /// How many more events may wait.
    #[inline]
    pub fn events_room(&self) -> usize {
        EVENTS_MAX.saturating_sub(self.events.len())
    }

    /// Adds an event, or counts it as lost when too many wait. Says whether it was added.
    pub fn event(&mut self, event: Event) -> bool {
        let room = self.events_room() > 0;
        if room {
            self.events.push(event);
        } else {
            self.events_lost += 1;
        }
        room
    }
}
