//! Tests of action lists: output, packet-ins and drops.

use std::net::Ipv4Addr;

use packet::build::Builder;
use packet::field::Field;
use packet::header::ipv4;

use super::*;
use crate::forwarder::Event;
use crate::group::{BucketSpec, GroupKind, GroupSpec};
use crate::meter::{Band, BandKind, CONTROLLER, MeterSpec, Unit};
use crate::queue::{PortQueues, QueueSpec};

struct Bench {
    egress: Egress,
    out: Outputs,
    now: Nanos,
}

fn out(port: PortNo) -> Action {
    Action::Output { port }
}

fn to_dst(last: u128) -> Action {
    Action::set(Field::EthDst, last)
}

/// Builds a UDP frame with this type of service and TTL.
fn udp(tos: u8, ttl: u8) -> Vec<u8> {
    let (source, destination) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
    let header = ipv4::Header { tos, ttl, ..ipv4::Header::new(source, destination) };
    Builder::new([2, 0, 0, 0, 0, 0], [2, 0, 0, 0, 0, 1]).ipv4(header).udp(1, 2).bytes()
}

impl Bench {
    fn new() -> Bench {
        let ports = [1, 2, 3, 4];
        let limits = (GroupLimits::default(), MeterLimits::default());
        let egress = Egress::new(&ports, None, limits, 1);
        Bench { egress, out: Outputs::new(&ports), now: Nanos::ZERO }
    }

    fn group(&mut self, number: GroupNo, kind: GroupKind, buckets: &[&[Action]]) {
        let bucket = |(id, actions): (usize, &&[Action])| BucketSpec::new(id as u32, 0, actions);
        let buckets = buckets.iter().enumerate().map(bucket).collect();
        self.egress.groups_mut().add(GroupSpec { number, kind, buckets }, self.now).unwrap();
    }

    fn meter(&mut self, number: u32, kind: BandKind, rate: u32) {
        let bands = vec![Band { kind, rate, burst: 0 }];
        let spec = MeterSpec { number, unit: Unit::Packets, burst: false, stats: true, bands };
        self.egress.meters.add(spec, self.now).unwrap();
    }

    fn run(&mut self, actions: &[Action]) -> ActionOutcome {
        self.run_frame(&udp(0, 64), actions)
    }

    fn run_frame(&mut self, bytes: &[u8], actions: &[Action]) -> ActionOutcome {
        let mut frame = Frame::from_bytes(bytes);
        let (now, context) = (self.now, Context::START);
        let mut way = EgressContext { in_port: 1, now, out: &mut self.out, context };
        self.egress.run(actions, &mut frame, false, &mut way)
    }

    /// Returns the frames sent since the last call: each port with the last byte of the destination
    /// address.
    fn left(&mut self) -> Vec<(PortNo, u8)> {
        let mut left = Vec::new();
        for (port, batch) in self.out.queues_mut() {
            left.extend(batch.frames().iter().map(|frame| (*port, frame.bytes()[5])));
            batch.clear();
        }
        left
    }

    fn packet_in_reasons(&mut self) -> Vec<PacketInReason> {
        let why = |event| match event {
            Event::PacketIn { context, .. } => context.why,
            other => panic!("{other:?}"),
        };
        self.out.events.drain(..).map(why).collect()
    }

    fn dropped(&self) -> Vec<(DropReason, u64)> {
        self.egress.drops.occurred().collect()
    }
}

#[test]
fn each_bucket_changes_its_own_copy_of_the_frame() {
    let mut bench = Bench::new();
    bench.group(7, GroupKind::All, &[&[out(2), to_dst(2)], &[out(3)], &[to_dst(4), out(4)]]);
    // Before and after the group, the frame has the changes of the action list only.
    assert_eq!(
        bench.run(&[to_dst(9), out(2), Action::Group(7), to_dst(8), out(3)]),
        ActionOutcome::Sent
    );
    assert_eq!(bench.left(), [(2, 9), (2, 2), (3, 9), (3, 8), (4, 4)]);
    assert_eq!(bench.dropped(), []);
    let record = bench.egress.groups().records(7, bench.now).remove(0);
    assert_eq!((record.traffic.frames, record.buckets.iter().map(|b| b.frames).sum()), (1, 3u64));
}

#[test]
fn bucket_outputs_behave_as_actions_and_drops_are_counted() {
    let mut bench = Bench::new();
    let controller = Action::Controller { bytes_max: 64 };
    // Sending to the ingress port requires an explicit action; a bucket without output drops.
    bench.group(1, GroupKind::All, &[&[out(1)], &[Action::InPort], &[controller], &[], &[out(9)]]);
    bench.run(&[Action::Group(1)]);
    assert_eq!(bench.left(), [(1, 0)]);
    assert_eq!(bench.packet_in_reasons(), [PacketInReason::Group]);
    bench.run(&[Action::Group(2), controller]);
    assert_eq!(bench.packet_in_reasons(), [PacketInReason::Action]);
    bench.group(3, GroupKind::Select, &[]);
    bench.run(&[Action::Group(3)]);
    let wanted = [
        (DropReason::NoDestination, 1),
        (DropReason::BackToIngress, 1),
        (DropReason::NoSuchPort, 1),
        (DropReason::NoSuchGroup, 1),
        (DropReason::NoLiveBucket, 1),
    ];
    assert_eq!(bench.dropped(), wanted);
}

#[test]
fn copies_above_the_limit_for_egress_tables_are_counted_as_drops() {
    let mut bench = Bench::new();
    bench.egress.defers = true;
    let all: &[Action] = &[Action::All];
    (1..=3).for_each(|number| bench.group(number, GroupKind::All, &[all; 1024]));
    bench.run(&[1, 2, 3].map(Action::Group));
    let waiting = std::iter::from_fn(|| bench.egress.next_deferred()).count();
    assert_eq!(waiting, deliver::DEFERRED_MAX);
    let lost = 3 * 3 * 1024 - waiting as u64;
    assert_eq!(bench.dropped(), [(DropReason::OutputQueueFull, lost)]);
}

#[test]
fn nested_groups_copy_a_frame_up_to_the_limit() {
    let mut bench = Bench::new();
    bench.group(1, GroupKind::All, &[&[out(2)], &[out(3)]]);
    bench.group(2, GroupKind::All, &[&[Action::Group(1), to_dst(5)], &[Action::Group(1)]]);
    bench.run(&[Action::Group(2)]);
    assert_eq!(bench.left(), [(2, 5), (2, 0), (3, 5), (3, 0)]);
    for number in 3..=14 {
        let before: &[Action] = &[Action::Group(number - 1)];
        bench.group(number, GroupKind::All, &[before; 4]);
    }
    bench.run(&[Action::Group(14)]);
    let left = bench.left().len();
    let lost = bench.egress.drops.of(DropReason::GroupWorkDone);
    assert!(left > 1000 && left < GROUP_COPIES_MAX && lost > 0, "{left} {lost}");
    // The next frame has the full limit again.
    bench.run(&[Action::Group(2)]);
    assert_eq!(bench.left().len(), 4);
}

#[test]
fn the_port_state_selects_the_fast_failover_bucket() {
    let mut bench = Bench::new();
    let bucket =
        |port| BucketSpec { watch_port: Some(port), ..BucketSpec::new(port, 0, &[out(port)]) };
    let kind = GroupKind::FastFailover;
    let spec = GroupSpec { number: 1, kind, buckets: [2, 3].map(bucket).to_vec() };
    bench.egress.groups_mut().add(spec, bench.now).unwrap();
    let mut goes_by = |change: &mut dyn FnMut(&mut Egress) -> bool| {
        assert!(change(&mut bench.egress));
        bench.run(&[Action::Group(1)]);
        bench.left()
    };
    let down = PortSettings { down: true, ..PortSettings::default() };
    assert_eq!(goes_by(&mut |egress| egress.is_live(2)), [(2, 0)]);
    assert_eq!(goes_by(&mut |egress| egress.set_link(2, false)), [(3, 0)]);
    assert_eq!(goes_by(&mut |egress| egress.set_settings(3, down)), []);
    assert_eq!(goes_by(&mut |egress| egress.set_link(2, true)), [(2, 0)]);
    assert!(!bench.egress.is_live(3) && !bench.egress.is_live(9));
    assert!(!bench.egress.set_link(9, false));
}

#[test]
fn a_meter_drops_or_remarks_frames_above_its_rate() {
    let mut bench = Bench::new();
    bench.meter(1, BandKind::Drop, 1);
    let metered = [Action::Meter(1), out(2)];
    assert_eq!([(); 2].map(|()| bench.run(&metered)), [ActionOutcome::Sent, ActionOutcome::Over]);
    assert_eq!((bench.left(), bench.dropped()), (vec![(2, 0)], vec![(DropReason::Metered, 1)]));

    bench.meter(2, BandKind::DscpRemark { levels: 1 }, 1);
    // AF21 becomes AF22; ECN is unchanged, and the checksum is correct.
    for _ in 0..2 {
        bench.run_frame(&udp(18 << 2 | 1, 64), &[Action::Meter(2), out(3)]);
    }
    let frames: Vec<Vec<u8>> =
        bench.out.queues()[2].1.frames().iter().map(|frame| frame.bytes().to_vec()).collect();
    assert_eq!(frames, [udp(18 << 2 | 1, 64), udp(20 << 2 | 1, 64)]);
}

#[test]
fn the_controller_meter_limits_packet_ins() {
    let mut bench = Bench::new();
    bench.meter(CONTROLLER, BandKind::Drop, 10);
    for millis in 0..5000 {
        bench.now = Nanos::from_millis(millis);
        bench.run(&[Action::Controller { bytes_max: 60 }, out(2)]);
    }
    // The slack permits a tenth of a second's frames to be early.
    assert_eq!(bench.packet_in_reasons().len(), 50);
    assert_eq!(bench.egress.drops.of(DropReason::Metered), 4950);
}

#[test]
fn an_expired_ttl_is_sent_to_the_controller_or_counted() {
    let mut bench = Bench::new();
    let last = udp(0, 1);
    let actions = [out(2), Action::DecIpTtl, out(3)];
    assert_eq!(bench.run_frame(&last, &actions), ActionOutcome::Over);
    assert_eq!(
        (bench.left(), bench.packet_in_reasons()),
        (vec![(2, 0)], vec![PacketInReason::InvalidTtl])
    );
    bench.egress.tell_invalid_ttl = false;
    assert_eq!(bench.run_frame(&last, &actions), ActionOutcome::Over);
    assert_eq!(
        (bench.packet_in_reasons(), bench.dropped()),
        (vec![], vec![(DropReason::TtlExpired, 1)])
    );
}

#[test]
fn queued_frames_leave_at_the_rate_of_their_queue() {
    let mut bench = Bench::new();
    let queue = |number, max| QueueSpec { max, frames_max: 2, ..QueueSpec::new(number) };
    let queues = vec![queue(1, Some(1_000_000)), queue(2, None)];
    let described = PortQueues { port: 2, rate: None, queues };
    bench.egress.set_queues(&described, bench.now).unwrap();
    let long = [0; 125];
    let slow = [Action::SetQueue(1), out(2), out(3)];
    for _ in 0..4 {
        bench.run_frame(&long, &slow);
    }
    assert_eq!(bench.left(), [(2, 0), (3, 0), (3, 0), (3, 0), (3, 0)]);
    assert_eq!(bench.out.wake, Some(Nanos::from_millis(1)));
    assert_eq!(bench.dropped(), [(DropReason::ShaperFull, 1)]);
    // Other queues of the port are not delayed, and neither are frames without a queue.
    bench.run_frame(&long, &[Action::Enqueue { port: 2, queue: 2 }]);
    bench.run_frame(&long, &[Action::SetQueue(9), out(2)]);
    bench.run_frame(&long, &[out(2)]);
    assert_eq!(bench.left(), [(2, 0); 3]);
    let mut dues = Vec::new();
    while let Some(due) = bench.egress.release(bench.now, &mut bench.out) {
        bench.now = due;
        dues.push(due);
    }
    assert_eq!(dues, [1, 2].map(Nanos::from_millis));
    assert_eq!(bench.left().len(), 2);
    let records = bench.egress.queue_records(bench.now);
    let counts: Vec<_> = records.iter().map(|r| (r.spec.queue, r.frames, r.errors)).collect();
    assert_eq!(counts, [(1, 3, 1), (2, 1, 0)]);
    assert_eq!(bench.egress.queues().count(), 0);
}

#[test]
fn removing_the_queues_of_a_port_restores_immediate_output() {
    let mut bench = Bench::new();
    let queues = vec![QueueSpec { max: Some(1000), ..QueueSpec::new(0) }];
    let described = PortQueues { port: 2, rate: None, queues };
    bench.egress.set_queues(&described, bench.now).unwrap();
    assert_eq!([(); 3].map(|()| bench.run(&[out(2)])), [ActionOutcome::Sent; 3]);
    let none = PortQueues { queues: Vec::new(), ..described };
    bench.egress.set_queues(&none, bench.now).unwrap();
    assert_eq!(bench.dropped(), [(DropReason::ShaperFull, 2)]);
    bench.run(&[out(2)]);
    assert_eq!(bench.left(), [(2, 0), (2, 0)]);
    assert_eq!(bench.egress.release(Nanos::MAX, &mut bench.out), None);
    let elsewhere = PortQueues { port: 9, ..none };
    let refused = bench.egress.set_queues(&elsewhere, bench.now);
    assert_eq!(refused, Err(crate::queue::QueueError::NoSuchPort(9)));
}
