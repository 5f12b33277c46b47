//! Byte relay between two channels, which preserves content and order.
//!
//! - Bytes read from one end are written to the other immediately, and parsed only afterwards.
//! - While an end accepts no bytes, nothing is read for it (backpressure).
//! - The end of one direction is forwarded, and the other direction continues.
//! - A reset is forwarded as a reset.
//!
//! Invariants:
//!
//! - No byte is changed, added or dropped while both ends are open.
//! - The relay buffers at most [`BUFFER_BYTES`] per direction.

use channel::{Channel, ChannelError, Source};
use openflow::version::End;
use os::clock::{self, WaitSet};
use packet::time::Nanos;

use crate::trial::Histogram;

/// Size of the buffer of each direction.
pub const BUFFER_BYTES: usize = 64 << 10;

/// Maximum number of reads from an end before the other one is served.
const READS_A_TURN: usize = 16;

/// Both ends, in index order.
pub const ENDS: [End; 2] = [End::Controller, End::Switch];

/// Returns the index of an end.
pub fn place(end: End) -> usize {
    usize::from(end == End::Switch)
}

/// Two paired channels.
pub struct Relay {
    ends: [Box<dyn Channel>; 2],
    ways: [RelayDirection; 2],
    /// Time from the read of a chunk until all of it is written.
    pub held: Histogram,
    /// Bytes that could not be delivered because the other end was closed.
    pub lost_bytes: u64,
}

/// One direction.
struct RelayDirection {
    buffer: Box<[u8]>,
    from: usize,
    until: usize,
    read_at: Nanos,
    flow: Flow,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flow {
    Open,
    /// The end of the stream was read and forwarded.
    Ended,
}

/// How a relay ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RelayEnd {
    /// Both directions ended regularly.
    Ended,
    /// An end was reset or failed: which one, and why.
    Broken(End, String),
}

/// Indices of a relay's descriptors in a wait set.
pub type DescriptorIndices = [Option<usize>; 2];

impl Relay {
    /// Pairs a controller's channel with a switch's.
    pub fn new(controller: Box<dyn Channel>, switch: Box<dyn Channel>) -> Relay {
        let way = || RelayDirection {
            buffer: vec![0; BUFFER_BYTES].into_boxed_slice(),
            from: 0,
            until: 0,
            read_at: Nanos::ZERO,
            flow: Flow::Open,
        };
        Relay {
            ends: [controller, switch],
            ways: [way(), way()],
            held: Histogram::new(),
            lost_bytes: 0,
        }
    }

    /// Returns the names of controller and switch.
    pub fn peers(&self) -> [&str; 2] {
        [self.ends[0].peer(), self.ends[1].peer()]
    }

    /// Returns the source of an end's connection.
    pub fn source(&self, end: End) -> Option<Source> {
        self.ends[place(end)].source()
    }

    /// Forwards available bytes and passes them to `seen` with their sender and read time.
    ///
    /// Returns how the relay ended, if it did.
    pub fn turn(&mut self, seen: &mut dyn FnMut(End, Nanos, &[u8])) -> Option<RelayEnd> {
        for from in ENDS {
            if let Err((end, why)) = self.pass(from, seen) {
                self.breaks(end);
                return Some(RelayEnd::Broken(end, why));
            }
        }
        let is_over = self.ways.iter().all(|way| way.flow == Flow::Ended);
        let owes = self.ends.iter().any(|end| end.waits_for_room(false));
        (is_over && !owes).then_some(RelayEnd::Ended)
    }

    fn pass(
        &mut self,
        from: End,
        seen: &mut dyn FnMut(End, Nanos, &[u8]),
    ) -> Result<(), (End, String)> {
        let [one, other] = &mut self.ends;
        let (source, sink) = if from == End::Controller { (one, other) } else { (other, one) };
        let to = if from == End::Controller { End::Switch } else { End::Controller };
        let way = &mut self.ways[place(from)];
        for _ in 0..READS_A_TURN {
            if way.from < way.until || sink.waits_for_room(false) {
                way.from += written(sink.as_mut(), &way.buffer[way.from..way.until], to)?;
                if way.from < way.until {
                    return Ok(());
                }
                if way.until > 0 {
                    self.held.record(clock::now().since(way.read_at).0);
                    (way.from, way.until) = (0, 0);
                }
            }
            if way.flow == Flow::Ended {
                return still_there(source.as_mut(), from);
            }
            let count = match source.receive(&mut way.buffer) {
                Ok(0) => return Ok(()),
                Ok(count) => count,
                Err(ChannelError::Closed(_)) if !source.was_reset() => {
                    // Forwards the end immediately: no later event would trigger it.
                    sink.finish();
                    way.flow = Flow::Ended;
                    return Ok(());
                }
                Err(error) => return Err((from, error.to_string())),
            };
            (way.read_at, way.until) = (clock::now(), count);
            let wrote = written(sink.as_mut(), &way.buffer[..count], to);
            seen(from, way.read_at, &way.buffer[..count]);
            way.from = wrote?;
            if way.from == count {
                self.held.record(clock::now().since(way.read_at).0);
                (way.from, way.until) = (0, 0);
            }
        }
        Ok(())
    }

    /// Handles the loss of one end: delivers its buffered bytes if there is room, then resets the
    /// other end.
    fn breaks(&mut self, gone: End) {
        let (other, way) = (1 - place(gone), &mut self.ways[place(gone)]);
        if let Ok(count) = self.ends[other].transmit(&way.buffer[way.from..way.until]) {
            way.from += count;
        }
        self.lost_bytes = self.ways.iter().map(|way| (way.until - way.from) as u64).sum();
        self.ends[other].abort();
    }

    /// Resets both ends.
    pub fn abort(&mut self) {
        self.ends.iter_mut().for_each(|end| end.abort());
    }

    /// Adds the relay's descriptors to a wait set.
    pub fn wait_in(&self, wait: &mut WaitSet) -> DescriptorIndices {
        ENDS.map(|end| {
            let channel = &self.ends[place(end)];
            let way = &self.ways[place(end)];
            let back = &self.ways[1 - place(end)];
            let reads = way.flow == Flow::Open && way.from == way.until;
            let writes = channel.waits_for_room(back.from < back.until);
            let descriptor = channel.descriptor()?;
            Some(match (reads, writes) {
                (true, writes) => wait.add(descriptor, writes),
                (false, true) => wait.add_to_write(descriptor),
                (false, false) => wait.add_to_fail(descriptor),
            })
        })
    }

    /// Returns whether the relay can forward bytes without waiting.
    pub fn is_ready(&self, wait: &WaitSet, places: DescriptorIndices) -> bool {
        let holds = |at: usize| self.ends[at].holds_received() && self.ways[at].until == 0;
        let rang = |at: &usize| wait.readable(*at) || wait.writable(*at);
        places.iter().flatten().any(rang) || holds(0) || holds(1)
    }

    /// Returns whether a channel holds received bytes, so that waiting for its descriptor could
    /// block forever.
    pub fn must_not_wait(&self) -> bool {
        (0..2).any(|at| self.ends[at].holds_received() && self.ways[at].until == 0)
    }
}

fn written(sink: &mut dyn Channel, bytes: &[u8], to: End) -> Result<usize, (End, String)> {
    sink.transmit(bytes).map_err(|error| (to, error.to_string()))
}

/// Checks whether an end was reset after it ended its direction.
fn still_there(source: &mut dyn Channel, from: End) -> Result<(), (End, String)> {
    match source.receive(&mut [0]) {
        Err(ChannelError::Closed(_)) if !source.was_reset() => Ok(()),
        Err(error) => Err((from, error.to_string())),
        Ok(_) => Ok(()),
    }
}
