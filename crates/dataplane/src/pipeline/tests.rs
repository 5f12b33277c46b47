//! Tests of whole batches: every frame is accounted for, in order, with the same result as frame by
//! frame.

use super::*;
use crate::action::Action;
use crate::counter::DropReason;
use crate::flow::Part;
use crate::forwarder::{EVENTS_MAX, Event, OUTPUT_FRAMES_MAX};
use crate::key;
use crate::key::Field;
use crate::matching::Match;
use crate::rng::Rng;
use packet::build::Builder;
use packet::field;
use packet::frame::Frame;
use packet::header::ipv4;

const PORTS: [PortNo; 4] = [1, 2, 3, 4];

fn frame(destination: u8, port: u16, number: u64) -> Frame {
    Builder::new([2, 0, 0, 0, 0, destination], [2, 0, 0, 0, 0, 1])
        .ipv4(ipv4::Header::new([10, 0, 0, 1].into(), [10, 0, 0, destination].into()))
        .udp(1000, port)
        .payload(&number.to_be_bytes())
        .frame()
}

fn batch(frames: &[Frame]) -> Batch {
    let mut batch = Batch::new(frames.len());
    frames.iter().for_each(|frame| assert!(batch.push_bytes(frame.bytes())));
    batch
}

fn pipeline() -> Pipeline {
    let settings = Settings { on_miss: OnMiss::Drop, ..Settings::default() };
    Pipeline::new(&PORTS, &settings)
}

/// Adds entries that send to one port, drop, or have several actions.
fn random_flows(pipeline: &mut Pipeline, dice: &mut Rng) {
    for _ in 0..12 {
        let actions: &[Action] = match dice.roll(6) {
            0 => &[],
            1 => &[Action::Output { port: 1 }],
            2 => &[Action::Output { port: 2 }],
            3 => &[Action::SetVlan(7), Action::Output { port: 3 }, Action::InPort],
            4 => &[Action::Flood],
            _ => &[Action::Controller { bytes_max: 64 }, Action::Output { port: 4 }],
        };
        let sample = frame(dice.roll(3) as u8, dice.roll(3) as u16, 0);
        let port = 1 + dice.roll(4) as PortNo;
        let key = key::extract(port, sample.bytes());
        let matching = match dice.roll(3) {
            0 => Match::of(&[(Field::EthDst, key.get(Field::EthDst))]),
            1 => Match::of(&[(Field::InPort, port.into())]),
            _ => Match::exact(key),
        };
        let spec = FlowSpec::new(matching, dice.roll(3) as u16, actions);
        pipeline.add(&spec.exact_first(), Nanos::ZERO, &mut Outputs::new(&[])).unwrap();
    }
}

fn random_frames(dice: &mut Rng) -> Vec<Frame> {
    let count = 1 + dice.roll(150);
    let mut frames = Vec::new();
    for number in 0..count {
        match frames.last() {
            // Runs of the same key, as in a single flow.
            Some(last) if dice.roll(3) > 0 => {
                let again: &Frame = last;
                frames.push(again.clone());
            }
            _ => frames.push(frame(dice.roll(3) as u8, dice.roll(3) as u16, number)),
        }
    }
    if dice.roll(4) == 0 {
        frames.push(Frame::from_bytes(&[0; 9]));
    }
    frames
}

/// Returns all externally observable state of a pipeline.
fn state(pipeline: &Pipeline, out: &Outputs) -> String {
    let flows: Vec<_> = pipeline
        .tables()
        .records(&FlowFilter::ALL, 0, Nanos::ZERO)
        .map(|flow| (flow.matching, flow.priority, flow.frames, flow.bytes))
        .collect();
    let queues: Vec<Vec<_>> = out
        .queues()
        .iter()
        .map(|(_, queue)| queue.frames().iter().map(|frame| frame.bytes().to_vec()).collect())
        .collect();
    let events: Vec<_> = out
        .events
        .iter()
        .map(|event| match event {
            Event::PacketIn { port, bytes_max, context, frame } => {
                (*port, context.why, *bytes_max, frame.bytes().to_vec())
            }
            other => panic!("unexpected {other:?}"),
        })
        .collect();
    let accounts = [Part::Exact, Part::Wildcard].map(|id| pipeline.tables().part_account(0, id));
    format!("{flows:?} {queues:?} {events:?} {accounts:?} {:?}", pipeline.drops())
}

#[test]
fn a_batch_has_the_same_effect_as_its_frames_one_by_one() {
    for seed in 0..150 {
        let mut dice = Rng::new(seed);
        let (mut at_once, mut one_by_one) = (pipeline(), pipeline());
        random_flows(&mut at_once, &mut dice.clone());
        random_flows(&mut one_by_one, &mut dice);
        let (mut out, mut out_single) = (Outputs::new(&PORTS), Outputs::new(&PORTS));
        for _ in 0..3 {
            let port = 1 + dice.roll(4) as PortNo;
            let frames = random_frames(&mut dice);
            at_once.forward(port, &mut batch(&frames), Nanos(5), &mut out);
            for frame in &frames {
                let mut single = batch(std::slice::from_ref(frame));
                one_by_one.forward(port, &mut single, Nanos(5), &mut out_single);
            }
        }
        assert_eq!(state(&at_once, &out), state(&one_by_one, &out_single), "seed {seed}");
    }
}

#[test]
fn every_frame_of_single_destination_entries_is_accounted_for() {
    for seed in 0..50 {
        let mut dice = Rng::new(seed);
        let mut pipeline = pipeline();
        pipeline.set_on_miss(dice.pick(&[OnMiss::Controller, OnMiss::Drop]));
        for port in 1..=4 {
            let spec = FlowSpec::new(
                Match::of(&[(Field::InPort, dice.roll(5)), (Field::EthDst, 0x0200_0000_0000)]),
                0,
                &[Action::Output { port }],
            );
            pipeline.add(&spec.exact_first(), Nanos::ZERO, &mut Outputs::new(&[])).unwrap();
        }
        let mut out = Outputs::new(&PORTS[..3]);
        let mut offered = 0;
        for _ in 0..60 {
            let frames = random_frames(&mut dice);
            offered += frames.len() as u64;
            let port = 1 + dice.roll(4) as PortNo;
            pipeline.forward(port, &mut batch(&frames), Nanos::ZERO, &mut out);
        }
        let queued: usize = out.queues().iter().map(|(_, queue)| queue.len()).sum();
        let accounted = queued as u64 + out.events.len() as u64 + pipeline.drops().total();
        assert_eq!(accounted, offered, "seed {seed}");
    }
}

#[test]
fn full_queues_drop_frames_and_keep_the_order() {
    let mut pipeline = pipeline();
    let to_two = FlowSpec::new(Match::ANY, 0, &[Action::Output { port: 2 }]);
    pipeline.add(&to_two, Nanos::ZERO, &mut Outputs::new(&[])).unwrap();
    let mut out = Outputs::new(&PORTS);
    let frames: Vec<Frame> =
        (0..1500).map(|number| frame(2, (number % 7) as u16, number)).collect();
    pipeline.forward(1, &mut batch(&frames), Nanos::ZERO, &mut out);
    let queue = &out.queues()[1].1;
    assert_eq!(queue.len(), OUTPUT_FRAMES_MAX);
    let kept = queue.frames().iter().map(Frame::bytes);
    assert!(kept.eq(frames[..OUTPUT_FRAMES_MAX].iter().map(Frame::bytes)));
    let lost = pipeline.drops().of(DropReason::OutputQueueFull);
    assert_eq!(lost, 1500 - OUTPUT_FRAMES_MAX as u64);
}

#[test]
fn packet_ins_are_limited_and_lost_ones_counted() {
    let mut pipeline = pipeline();
    pipeline.set_on_miss(OnMiss::Controller);
    let mut out = Outputs::new(&PORTS);
    let frames = vec![frame(2, 2, 2); EVENTS_MAX + 10];
    pipeline.forward(1, &mut batch(&frames), Nanos::ZERO, &mut out);
    assert_eq!((out.events.len(), out.events_lost), (EVENTS_MAX, 10));
    assert_eq!(pipeline.drops().of(DropReason::EventQueueFull), 10);
}

#[test]
fn a_frame_that_is_sent_once_is_not_copied() {
    let mut pipeline = pipeline();
    let actions = [Action::set(field::Field::EthSrc, 0x0202_0202_0202), Action::Output { port: 2 }];
    pipeline
        .add(&FlowSpec::new(Match::ANY, 0, &actions), Nanos::ZERO, &mut Outputs::new(&[]))
        .unwrap();
    let mut out = Outputs::new(&PORTS);
    let mut batch = batch(&[frame(2, 2, 2)]);
    let place = batch.frames()[0].bytes().as_ptr();
    pipeline.forward(1, &mut batch, Nanos::ZERO, &mut out);
    assert_eq!(out.queues()[1].1.frames()[0].bytes().as_ptr(), place);
}
