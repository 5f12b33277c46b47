//! Tests of the loop with scripted ports: order of service, and where frames are lost.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use netio::port::{PortCounters, PortFacts};
use packet::time::{Clock, Stamp};

use super::*;

/// Input and output of a scripted port.
#[derive(Default)]
struct Wire {
    arriving: VecDeque<(usize, u8, Option<Nanos>)>,
    ring_frames: usize,
    lost: usize,
    sent: Vec<Vec<u8>>,
    sends_max: usize,
    down: bool,
    unplugged: bool,
}

impl Wire {
    fn arrive(&mut self, bytes: usize, mark: u8, at: Option<Nanos>) {
        match self.arriving.len() < self.ring_frames {
            true => self.arriving.push_back((bytes, mark, at)),
            false => self.lost += 1,
        }
    }
}

struct Hand(Arc<Mutex<Wire>>, PortFacts);

impl Port for Hand {
    fn facts(&self) -> &PortFacts {
        &self.1
    }

    fn receive(&mut self, batch: &mut Batch, _: Nanos) -> Result<usize, PortError> {
        let mut wire = self.0.lock().unwrap();
        if wire.down {
            return Err(PortError::InterfaceDown("hand".to_string()));
        }
        let mut count = 0;
        while batch.room() > 0 {
            let Some((bytes, mark, at)) = wire.arriving.pop_front() else { break };
            batch.push_bytes(&vec![mark; bytes]);
            let clock = Clock::Virtual;
            batch.frames_mut().last_mut().unwrap().stamp = at.map(|at| Stamp { at, clock });
            count += 1;
        }
        Ok(count)
    }

    fn transmit(&mut self, batch: &mut Batch, _: Nanos) -> Result<usize, PortError> {
        let mut wire = self.0.lock().unwrap();
        let count = batch.len().min(wire.sends_max);
        wire.sent.extend(batch.frames()[..count].iter().map(|frame| frame.bytes().to_vec()));
        Ok(count)
    }

    fn counters(&mut self) -> PortCounters {
        PortCounters::default()
    }

    fn has_link(&self) -> bool {
        !self.0.lock().unwrap().unplugged
    }
}

/// Sends all frames to port 9.
struct ToNine;

impl Forwarder for ToNine {
    type Pending<'a> = ();

    fn forward(&mut self, _: PortNo, batch: &mut Batch, _: Nanos, out: &mut Outputs) {
        for frame in batch.frames_mut() {
            out.send(9, frame);
        }
    }

    fn tick(&mut self, _: Nanos, _: &mut Outputs) -> Option<Nanos> {
        None
    }
}

type Wires = Vec<Arc<Mutex<Wire>>>;

fn rig(numbers: &[PortNo], service: Service) -> (ForwardLoop<ToNine>, Wires) {
    rig_of(numbers, service, ToNine)
}

fn rig_of<F: Forwarder>(
    numbers: &[PortNo],
    service: Service,
    forwarder: F,
) -> (ForwardLoop<F>, Wires) {
    let wires: Vec<_> = numbers
        .iter()
        .map(|_| {
            let wire = Wire { ring_frames: 100, sends_max: usize::MAX, ..Wire::default() };
            Arc::new(Mutex::new(wire))
        })
        .collect();
    let facts = |number| PortFacts {
        name: format!("hand{number}"),
        kind: "hand",
        mac: [0; 6],
        frame_bytes_max: 1514,
        stamps: Clock::Virtual,
    };
    let port = |(&number, wire): (&PortNo, &Arc<Mutex<Wire>>)| {
        (number, Box::new(Hand(wire.clone(), facts(number))) as Box<dyn Port>)
    };
    let ports = numbers.iter().zip(&wires).map(port).collect();
    (ForwardLoop::new(ports, forwarder, service), wires)
}

fn marks(wire: &Arc<Mutex<Wire>>) -> Vec<u8> {
    wire.lock().unwrap().sent.iter().map(|bytes| bytes[0]).collect()
}

fn quantum(quantum_bytes: usize) -> Service {
    Service::DeficitRoundRobin { quantum_bytes }
}

#[test]
fn an_overloaded_port_loses_only_its_own_frames() {
    let (mut forward, wires) = rig(&[1, 2, 9], quantum(20 * 64));
    for turn in 0..200 {
        for _ in 0..5 {
            wires[0].lock().unwrap().arrive(60, 1, None);
        }
        for _ in 0..50 {
            wires[1].lock().unwrap().arrive(60, 2, None);
        }
        forward.turn(Nanos(turn));
    }
    assert_eq!(wires[0].lock().unwrap().lost, 0);
    let sent = marks(&wires[2]);
    assert_eq!(sent.iter().filter(|&&mark| mark == 1).count(), 200 * 5);
    assert_eq!(sent.iter().filter(|&&mark| mark == 2).count(), 200 * 20);
    assert!(wires[1].lock().unwrap().lost > 5_000);
}

#[test]
fn the_quantum_is_in_bytes_and_the_remainder_is_carried_over() {
    let (mut forward, wires) = rig(&[1, 2, 9], quantum(1000));
    for _ in 0..20 {
        wires[0].lock().unwrap().arrive(596, 1, None);
        wires[1].lock().unwrap().arrive(296, 2, None);
    }
    let mut served = Vec::new();
    for turn in 0..3 {
        forward.turn(Nanos(turn));
        let sent = marks(&wires[2]);
        let of = |mark: u8| sent.iter().filter(|&&other| other == mark).count();
        served.push((of(1), of(2)));
    }
    // A quantum of 1000 covers one frame of 600 and leaves 400; two rounds later it has covered
    // five.
    assert_eq!(served, [(1, 3), (3, 6), (5, 10)]);
}

#[test]
fn a_quantum_below_the_frame_size_still_serves_the_frame() {
    let (mut forward, wires) = rig(&[1, 9], quantum(100));
    wires[0].lock().unwrap().arrive(446, 1, None);
    let turns = (0..10).take_while(|&turn| forward.turn(Nanos(turn)).frames == 0).count();
    assert_eq!(turns, 4);
}

#[test]
fn first_come_first_served_uses_the_timestamps_of_all_ports() {
    let (mut forward, wires) = rig(&[1, 2, 3, 9], Service::FirstComeFirstServed);
    for (at, port) in [(1, 2), (2, 1), (3, 1), (4, 3), (5, 2), (6, 2), (7, 1), (8, 3)] {
        wires[port - 1].lock().unwrap().arrive(60, at as u8, Some(Nanos(at)));
    }
    while forward.turn(Nanos(10)).frames > 0 {}
    assert_eq!(marks(&wires[3]), [1, 2, 3, 4, 5, 6, 7, 8]);
}

#[test]
fn frames_without_stamps_count_as_received_when_polled() {
    let (mut forward, wires) = rig(&[1, 2, 9], Service::FirstComeFirstServed);
    wires[0].lock().unwrap().arrive(60, 1, None);
    wires[0].lock().unwrap().arrive(60, 1, None);
    wires[1].lock().unwrap().arrive(60, 2, Some(Nanos(4)));
    wires[1].lock().unwrap().arrive(60, 3, Some(Nanos(6)));
    for _ in 0..4 {
        forward.turn(Nanos(5));
    }
    assert_eq!(marks(&wires[2]), [2, 1, 1, 3]);
}

#[test]
fn frames_that_a_port_rejects_are_counted_there() {
    let (mut forward, wires) = rig(&[1, 9], quantum(100_000));
    wires[1].lock().unwrap().sends_max = 10;
    for _ in 0..30 {
        wires[0].lock().unwrap().arrive(60, 1, None);
    }
    assert_eq!(forward.turn(Nanos(0)), Turn { frames: 30, frames_sent: 10 });
    let drops = PortDrops { transmit_full: 20, port_down: 0 };
    assert_eq!(forward.forward_port(9).unwrap().drops, drops);
    assert_eq!((forward.turns.busy, forward.turns.idle), (1, 0));
    forward.turn(Nanos(1));
    assert_eq!((forward.turns.busy, forward.turns.idle), (1, 1));
}

#[test]
fn a_failed_port_is_reported_once_and_retried() {
    let (mut forward, wires) = rig(&[1, 9], quantum(100_000));
    wires[1].lock().unwrap().down = true;
    wires[0].lock().unwrap().arrive(60, 1, None);
    forward.turn(Nanos(0));
    wires[0].lock().unwrap().arrive(60, 1, None);
    forward.turn(Nanos(1));
    assert_eq!(forward.forward_port(9).unwrap().drops.port_down, 1);
    assert_eq!(forward.link_change(Nanos(1)), Some((9, false)));
    assert_eq!(forward.link_change(Nanos(1)), None);
    assert_eq!(forward.next_event(), Some(PORT_RETRY));
    wires[1].lock().unwrap().down = false;
    forward.turn(PORT_RETRY);
    assert_eq!(forward.link_change(PORT_RETRY), Some((9, true)));
    assert_eq!(forward.next_event(), None);
}

#[test]
fn a_lost_link_is_reported_once_and_checked_at_intervals() {
    let (mut forward, wires) = rig(&[1, 9], quantum(100_000));
    assert_eq!(forward.link_change(Nanos(5)), None);
    wires[1].lock().unwrap().unplugged = true;
    let next = Nanos(5) + LINK_INTERVAL;
    assert_eq!(forward.link_change(Nanos(next.0 - 1)), None, "the link was checked a moment ago");
    assert_eq!(forward.link_change(next), Some((9, false)));
    assert_eq!(forward.link_change(next + LINK_INTERVAL), None);
    wires[1].lock().unwrap().unplugged = false;
    assert_eq!(forward.link_change(next + LINK_INTERVAL + LINK_INTERVAL), Some((9, true)));
}

#[test]
fn frames_in_a_shaped_queue_leave_when_due() {
    use dataplane::action::Action;
    use dataplane::flow::FlowSpec;
    use dataplane::matching::Match;
    use dataplane::pipeline::{Pipeline, Settings};
    use dataplane::queue::{PortQueues, QueueSpec};

    let mut pipeline = Pipeline::new(&[1, 9], &Settings { normal: None, ..Settings::default() });
    let queues = vec![QueueSpec { max: Some(1_000_000), ..QueueSpec::new(0) }];
    pipeline.set_queues(&PortQueues { port: 9, rate: None, queues }, Nanos::ZERO).unwrap();
    let (mut rig, wires) = rig_of(&[1, 9], quantum(10_000), pipeline);
    let to_nine = FlowSpec::new(Match::ANY, 1, &[Action::Output { port: 9 }]);
    rig.forwarder.add(&to_nine, Nanos::ZERO, &mut rig.outputs).unwrap();
    // After a turn without frames the next tick is due for other reasons, or never.
    rig.turn(Nanos::ZERO);
    for mark in 0..5 {
        wires[0].lock().unwrap().arrive(125, mark, None);
    }
    let (mut now, mut left) = (Nanos(7), Vec::new());
    for _ in 0..20 {
        let turn = rig.turn(now);
        left.extend(std::iter::repeat_n(now, turn.frames_sent));
        let Some(next) = rig.next_event().filter(|_| left.len() < 5) else { break };
        now = next.max(now);
    }
    assert_eq!(left, [0, 1, 2, 3, 4].map(|millis| Nanos(7) + Nanos::from_millis(millis)));
    assert_eq!(marks(&wires[1]), [0, 1, 2, 3, 4]);
}
