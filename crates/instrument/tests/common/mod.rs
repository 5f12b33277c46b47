//! Toy devices for simulated trials: what each does to every frame is known, so that what the
//! monitor says can be checked to the frame.

#![allow(dead_code, clippy::unwrap_used)]

use std::collections::VecDeque;

use instrument::rig::sim::{Device, SimRig};
use instrument::stream::{Headers, Rate, Stream};
use instrument::trial::Trial;
use packet::frame::{Batch, Frame};
use packet::time::{Clock, Nanos};
use ports::memory::{MemoryPort, pair_stamped};
use ports::port::Port;

/// Frames that a toy link holds.
pub const RING_FRAMES: usize = 1024;

/// The run's key in every test.
pub const KEY: u64 = 0x5eed;

/// Something that decides what becomes of a frame: for each copy, the port and when.
pub trait Rule {
    /// What the `count`th frame, received on `port`, becomes.
    fn apply(&mut self, count: u64, port: usize, frame: &Frame, now: Nanos) -> Vec<Copy>;
}

/// A copy of a frame that is to leave.
pub struct Copy {
    pub port: usize,
    pub at: Nanos,
    pub bytes: Vec<u8>,
}

impl<F: FnMut(u64, usize, &Frame, Nanos) -> Vec<Copy>> Rule for F {
    fn apply(&mut self, count: u64, port: usize, frame: &Frame, now: Nanos) -> Vec<Copy> {
        self(count, port, frame, now)
    }
}

/// A device that treats frames by a rule, and sends copies when their time comes.
pub struct Toy<R> {
    ports: Vec<MemoryPort>,
    rule: R,
    /// Copies that wait, in the order of their times.
    waiting: VecDeque<Copy>,
    count: u64,
    batch: Batch,
}

impl<R: Rule> Device for Toy<R> {
    fn step(&mut self, now: Nanos) -> Option<Nanos> {
        for port in 0..self.ports.len() {
            self.batch.clear();
            self.ports[port].receive(&mut self.batch, now).unwrap();
            for frame in self.batch.frames() {
                for copy in self.rule.apply(self.count, port, frame, now) {
                    let place = self.waiting.partition_point(|other| other.at <= copy.at);
                    self.waiting.insert(place, copy);
                }
                self.count += 1;
            }
        }
        while self.waiting.front().is_some_and(|copy| copy.at <= now) {
            let copy = self.waiting.pop_front().unwrap();
            self.batch.clear();
            self.batch.push_bytes(&copy.bytes);
            assert_eq!(self.ports[copy.port].transmit(&mut self.batch, now).unwrap(), 1);
        }
        self.waiting.front().map(|copy| copy.at)
    }
}

/// A rig of `ports` ports around a device with this rule.
pub fn rig<R: Rule>(ports: usize, rule: R) -> SimRig<Toy<R>> {
    let (near, far) = links(ports);
    let near = near.into_iter().map(|port| Box::new(port) as Box<dyn Port>).collect();
    rig_over(near, far, rule)
}

/// As [`rig`], over ports that were made, and perhaps wrapped, before.
pub fn rig_over<R: Rule>(
    near: Vec<Box<dyn Port>>,
    far: Vec<MemoryPort>,
    rule: R,
) -> SimRig<Toy<R>> {
    let (waiting, batch) = (VecDeque::new(), Batch::new(RING_FRAMES));
    SimRig::new(near, Toy { ports: far, rule, waiting, count: 0, batch }, KEY)
}

/// The tester's and the device's ends of `ports` links.
pub fn links(ports: usize) -> (Vec<MemoryPort>, Vec<MemoryPort>) {
    let link = |index| pair_stamped(RING_FRAMES, &format!("link{index}"), Clock::Virtual);
    (0..ports).map(link).unzip()
}

/// The copy that leaves at once as it came.
pub fn pass(port: usize, frame: &Frame, now: Nanos) -> Copy {
    Copy { port, at: now, bytes: frame.bytes().to_vec() }
}

/// Ports 0 and 1 joined by a wire.
pub fn wire(_: u64, port: usize, frame: &Frame, now: Nanos) -> Vec<Copy> {
    vec![pass(1 - port, frame, now)]
}

/// A stream from port 0 to port 1.
pub fn stream(id: u16, frame_bytes: usize, rate_pps: f64) -> Stream {
    let headers = Headers::udp(
        ([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]),
        ([10, 0, 0, 1].into(), [10, 0, 1, 2].into()),
        (4000, 5000),
    );
    Stream::plain(id, frame_bytes, headers, Rate::FramesPerSecond(rate_pps))
}

/// A trial of `milliseconds`, with 5 ms of drain and no warm-up.
pub fn trial(streams: Vec<Stream>, milliseconds: u64) -> Trial {
    let duration = Nanos::from_millis(milliseconds);
    Trial::new(streams, Nanos::ZERO, duration, Nanos::from_millis(5))
}
