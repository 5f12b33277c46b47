//! Test devices for simulated trials.
//!
//! What each does to every frame is known, so that tests can check the monitor's counts to the
//! frame.

#![allow(dead_code, clippy::unwrap_used)]

use std::collections::VecDeque;

use netio::memory::{MemoryPort, pair_stamped};
use netio::port::Port;
use packet::frame::{Batch, Frame};
use packet::time::{Clock, Nanos};
use tester::rig::sim::{Device, SimRig};
use tester::stream::{Headers, Rate, Stream};
use tester::trial::Trial;

/// Capacity of a test link in frames.
pub const RING_FRAMES: usize = 1024;

/// Key of the run in every test.
pub const KEY: u64 = 0x5eed;

/// Determines the copies of a frame, each with its port and time.
pub trait Rule {
    /// Returns the copies of frame number `count`, received on `port`.
    fn apply(&mut self, count: u64, port: usize, frame: &Frame, now: Nanos) -> Vec<Copy>;
}

/// A copy of a frame to send.
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

/// A device that applies a rule to each frame and sends the copies at their times.
pub struct Toy<R> {
    ports: Vec<MemoryPort>,
    rule: R,
    /// Pending copies, in the order of their times.
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

/// Like [`rig`], over existing and possibly wrapped ports.
pub fn rig_over<R: Rule>(
    near: Vec<Box<dyn Port>>,
    far: Vec<MemoryPort>,
    rule: R,
) -> SimRig<Toy<R>> {
    let (waiting, batch) = (VecDeque::new(), Batch::new(RING_FRAMES));
    SimRig::new(near, Toy { ports: far, rule, waiting, count: 0, batch }, KEY)
}

/// Returns the tester's and the device's ends of `ports` links.
pub fn links(ports: usize) -> (Vec<MemoryPort>, Vec<MemoryPort>) {
    let link = |index| pair_stamped(RING_FRAMES, &format!("link{index}"), Clock::Virtual);
    (0..ports).map(link).unzip()
}

/// The unchanged copy, sent immediately.
pub fn pass(port: usize, frame: &Frame, now: Nanos) -> Copy {
    Copy { port, at: now, bytes: frame.bytes().to_vec() }
}

/// A wire between ports 0 and 1.
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
