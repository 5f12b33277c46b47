//! Tests of workers that forward frames while bundles change two tables, a group and a meter.
//!
//! All frames of a batch use the same state. An entry sends them to a port, a group copies them, or
//! one table passes them to the next. No frame sees a part of a bundle.

use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

use dataplane::action::Action;
use dataplane::counter::DropReason;
use dataplane::flow::{FlowFilter, FlowSpec, Source};
use dataplane::forwarder::{Forwarder, Outputs};
use dataplane::group::{BucketSpec, GROUPS_ALL, GroupKind, GroupSpec};
use dataplane::instruction::Instructions;
use dataplane::key::Field;
use dataplane::matching::Match;
use dataplane::meter::{Band, BandKind, METERS_ALL, MeterSpec, Unit};
use dataplane::pipeline::{OnMiss, Pipeline, Settings, Worker};
use dataplane::table::TableSettings;
use packet::field::Field as Named;
use packet::frame::{Batch, PortNo};
use packet::time::Nanos;

const PORTS: [PortNo; 3] = [1, 2, 3];
const GROUP: u32 = 7;
const METER: u32 = 5;
/// Kinds of frames: for a port, for a group, for a group with a meter, for the second table.
const KINDS: u8 = 4;
/// Number of frames of each kind in a batch.
const EACH: usize = 16;

fn frame(kind: u8, number: u8) -> [u8; 60] {
    let mut bytes = [0; 60];
    (bytes[5], bytes[6], bytes[11]) = (kind, 2, number);
    bytes[12..14].copy_from_slice(&[0x88, 0xb5]);
    bytes
}

/// Creates entries, a group and a meter that send all frames to this port.
fn set(port: PortNo) -> (Vec<FlowSpec>, GroupSpec, MeterSpec) {
    let to = |kind: u8| Match::of(&[(Field::EthDst, kind.into())]);
    let output = [Action::Output { port }];
    let by_group = [Action::Group(GROUP)];
    let metered = Instructions { meter: Some(METER), ..Instructions::apply(&by_group) };
    // In the second table, only entries of the same set match the metadata that the first table
    // writes.
    let further = Instructions {
        metadata: Some((port.into(), u64::MAX)),
        goto: Some(1),
        ..Instructions::default()
    };
    let second = Match::asking(&[(Named::Metadata, port.into(), u128::from(u64::MAX))]);
    let flows = vec![
        FlowSpec::new(to(0), 5, &output),
        FlowSpec::new(to(1), 5, &by_group),
        FlowSpec::doing(to(2), 5, metered),
        FlowSpec::doing(to(3), 5, further),
        FlowSpec { table: 1, ..FlowSpec::new(second, 5, &output) },
    ];
    let bucket = BucketSpec::new(1, 0, &output);
    let group = GroupSpec { number: GROUP, kind: GroupKind::All, buckets: vec![bucket] };
    let band = Band { kind: BandKind::Drop, rate: u32::MAX, burst: u32::MAX };
    let meter = MeterSpec {
        number: METER,
        unit: Unit::Packets,
        burst: true,
        stats: true,
        bands: vec![band],
    };
    (flows, group, meter)
}

/// Number of batches that a worker has forwarded.
#[derive(Default)]
struct Seen(AtomicU64);

/// Forwards batches until `done`. Returns the number of frames sent to each port.
fn run(mut worker: Worker, seen: &Seen, done: &AtomicBool) -> [u64; 3] {
    let mut out = Outputs::new(&PORTS);
    let mut left = [0; 3];
    let mut batch = Batch::new(EACH * usize::from(KINDS));
    while !done.load(Relaxed) {
        batch.clear();
        for at in 0..EACH {
            // In separate stages or mixed.
            (0..KINDS).for_each(|kind| assert!(batch.push_bytes(&frame(kind, at as u8))));
        }
        let turn = seen.0.load(Relaxed);
        worker.forward(1, &mut batch, Nanos(turn), &mut out);
        let mut ports = [0; 3];
        for (place, (_, queue)) in out.queues_mut().iter_mut().enumerate() {
            ports[place] = queue.len();
            queue.clear();
        }
        let all = EACH * usize::from(KINDS);
        assert!(
            ports == [0, all, 0] || ports == [0, 0, all],
            "batch {turn} left through {ports:?}"
        );
        left.iter_mut().zip(ports).for_each(|(sum, frames)| *sum += frames as u64);
        if turn % 7 == 3 {
            worker.rest();
        }
        seen.0.store(turn + 1, Release);
    }
    left
}

#[test]
fn all_frames_of_a_batch_use_one_state_of_tables_groups_and_meters() {
    let settings = Settings {
        tables: vec![TableSettings::of(10, 10); 2],
        on_miss: OnMiss::Drop,
        ..Settings::default()
    };
    let mut pipeline = Pipeline::new(&PORTS, &settings);
    let (mut out, now) = (Outputs::new(&PORTS), Nanos(0));
    let install = |pipeline: &mut Pipeline, out: &mut Outputs, port: PortNo| {
        let (flows, group, meter) = set(port);
        pipeline.add_group(group, now).expect("there is none");
        pipeline.add_meter(meter, now).expect("there is none");
        flows.iter().for_each(|flow| pipeline.add(flow, now, out).expect("there is room"));
    };
    install(&mut pipeline, &mut out, 2);
    pipeline.publish();
    let (done, seen) = (AtomicBool::new(false), [Seen::default(), Seen::default()]);
    let workers = [pipeline.worker(), pipeline.worker()];
    let mut port = 2;
    let left: Vec<[u64; 3]> = std::thread::scope(|scope| {
        let done = &done;
        let running: Vec<_> = workers
            .into_iter()
            .zip(&seen)
            .map(|(worker, seen)| scope.spawn(move || run(worker, seen, done)))
            .collect();
        for turn in 0..150 {
            let other = 5 - port;
            pipeline.begin();
            if turn % 2 == 0 {
                // Everything is deleted and added again.
                let all = pipeline.delete_group(GROUPS_ALL, Source::default(), now, &mut out);
                all.expect("the group and meter can be deleted");
                pipeline.delete_meter(METERS_ALL, Source::default(), now, &mut out);
                pipeline.delete(&FlowFilter::ALL, now, &mut out);
                install(&mut pipeline, &mut out, other);
            } else {
                let (flows, group, meter) = set(other);
                pipeline.modify_group(group).expect("it is there");
                pipeline.modify_meter(meter, now).expect("it is there");
                let metadata = u128::from(u64::MAX);
                let second = Match::asking(&[(Named::Metadata, port.into(), metadata)]);
                pipeline.delete(&FlowFilter::covered_by(second), now, &mut out);
                flows.iter().for_each(|flow| {
                    pipeline.add(flow, now, &mut out).expect("it is replaced or there is room");
                });
            }
            match turn % 5 == 4 {
                true => pipeline.take_back(),
                false => {
                    pipeline.keep(&mut out);
                    port = other;
                }
            }
            for (seen, running) in seen.iter().zip(&running) {
                let from = seen.0.load(Acquire);
                while seen.0.load(Acquire) < from + 2 && !running.is_finished() {
                    std::thread::yield_now();
                }
            }
        }
        done.store(true, Relaxed);
        let joined = running.into_iter().map(|it| it.join().expect("no batch used two states"));
        joined.collect()
    });
    assert!(left.iter().all(|left| left[1] > 0 && left[2] > 0), "both states were used: {left:?}");
    assert_eq!(pipeline.drops().of(DropReason::NoMatch), 0);
    assert_eq!(pipeline.drops().total(), 0);
}

#[test]
fn a_group_and_a_meter_count_every_frame_during_bundles() {
    let settings = Settings { on_miss: OnMiss::Drop, ..Settings::default() };
    let mut pipeline = Pipeline::new(&PORTS, &settings);
    let (mut out, now) = (Outputs::new(&PORTS), Nanos(0));
    let (flows, group, meter) = set(2);
    pipeline.add_group(group.clone(), now).expect("there is none");
    pipeline.add_meter(meter, now).expect("there is none");
    pipeline.add(&flows[2], now, &mut out).expect("there is room");
    let (mut first, mut batch) = (pipeline.worker(), Batch::new(8));
    let mut frames = 0;
    let mut forward = |out: &mut Outputs| {
        batch.clear();
        (0..8).for_each(|at| assert!(batch.push_bytes(&frame(2, at))));
        first.forward(1, &mut batch, now, out);
        first.rest();
        frames += 8;
        out.queues_mut().iter_mut().for_each(|(_, queue)| queue.clear());
    };
    for turn in 0..6 {
        pipeline.begin();
        let other = GroupSpec { number: 100 + turn, ..group.clone() };
        pipeline.add_group(other, now).expect("there is room");
        forward(&mut out);
        pipeline.modify_group(group.clone()).expect("it is there");
        forward(&mut out);
        match turn % 2 {
            0 => pipeline.keep(&mut out),
            _ => pipeline.take_back(),
        }
        forward(&mut out);
    }
    let counted = pipeline.groups().records(GROUP, now)[0].traffic.frames;
    let metered = pipeline.meters().records(METER, now)[0].traffic.frames;
    let matched = pipeline.tables().totals(&FlowFilter::ALL).frames;
    assert_eq!((counted, metered, matched), (frames, frames, frames));
    assert_eq!(pipeline.groups().count(), 1 + 3, "a rolled-back group does not exist");
}
