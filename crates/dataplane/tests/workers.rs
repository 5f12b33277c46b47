//! Tests of several workers of one pipeline, each in its own thread, while entries are added and
//! removed.
//!
//! Every frame is accounted for by its worker: it left by its port, by both ports of its group, or
//! was dropped and counted. Sums over the workers are exact.

use dataplane::action::Action;
use dataplane::counter::DropReason;
use dataplane::flow::{FlowFilter, FlowSpec};
use dataplane::forwarder::{Forwarder, Outputs};
use dataplane::group::{BucketSpec, GroupKind, GroupSpec};
use dataplane::key::Field;
use dataplane::matching::Match;
use dataplane::pipeline::{OnMiss, Pipeline, Settings, Worker};
use packet::frame::{Batch, PortNo};
use packet::time::Nanos;

const PORTS: [PortNo; 3] = [1, 2, 3];
/// Number of batches of 64 frames that each worker forwards.
const BATCHES: usize = 400;

/// Builds a frame of one of four kinds: for port 2, for the group, for a drop entry, and without an
/// entry.
fn frame(kind: u8) -> [u8; 60] {
    let mut bytes = [0; 60];
    bytes[5] = kind;
    bytes[6] = 2;
    bytes[12..14].copy_from_slice(&[0x88, 0xb5]);
    bytes
}

fn to(kind: u64) -> Match {
    Match::of(&[(Field::EthDst, kind)])
}

/// Returns the number of frames sent to each port.
fn run(mut worker: Worker) -> [u64; 3] {
    let mut out = Outputs::new(&PORTS);
    let mut left = [0; 3];
    let mut batch = Batch::new(64);
    for turn in 0..BATCHES {
        batch.clear();
        for at in 0..64 {
            // Runs of one kind, so that some stages are plain and others are not.
            let kind = if turn % 2 == 0 { 0 } else { (at / 8 % 4) as u8 };
            assert!(batch.push_bytes(&frame(kind)));
        }
        worker.forward(1, &mut batch, Nanos(turn as u64), &mut out);
        for (place, (_, queue)) in out.queues_mut().iter_mut().enumerate() {
            left[place] += queue.len() as u64;
            queue.clear();
        }
    }
    left
}

#[test]
fn every_frame_of_every_worker_is_accounted_for() {
    let settings = Settings { on_miss: OnMiss::Drop, ..Settings::default() };
    let mut pipeline = Pipeline::new(&PORTS, &settings);
    let mut out = Outputs::new(&PORTS);
    let bucket = |id: u32, port: PortNo| BucketSpec::new(id, 0, &[Action::Output { port }]);
    let both =
        GroupSpec { number: 7, kind: GroupKind::All, buckets: vec![bucket(1, 2), bucket(2, 3)] };
    pipeline.add_group(both, Nanos(0)).expect("there is room");
    let flows: [(u64, &[Action]); 3] =
        [(0, &[Action::Output { port: 2 }]), (1, &[Action::Group(7)]), (2, &[])];
    for (kind, actions) in flows {
        let spec = FlowSpec::new(to(kind), 5, actions);
        pipeline.add(&spec, Nanos(0), &mut out).expect("there is room");
    }
    pipeline.publish();
    let workers = [pipeline.worker(), pipeline.worker()];
    let left: Vec<[u64; 3]> = std::thread::scope(|scope| {
        let running = workers.map(|worker| scope.spawn(move || run(worker)));
        for turn in 0..2000u64 {
            let spec = FlowSpec::new(to(100 + turn % 50), 9, &[Action::Output { port: 3 }]);
            pipeline.add(&spec, Nanos(0), &mut out).expect("there is room");
            pipeline.publish();
            if turn % 50 == 49 {
                pipeline.delete(&FlowFilter::covered_by(to(100 + turn % 50)), Nanos(0), &mut out);
            }
        }
        running.map(|worker| worker.join().expect("the worker forwarded all frames")).to_vec()
    });
    // In every second batch, each kind has a quarter; in the others, all frames are of the first
    // kind.
    let (all, quarter) = (BATCHES as u64 / 2 * 64, BATCHES as u64 / 2 * 16);
    for left in &left {
        assert_eq!(*left, [0, all + 2 * quarter, quarter]);
    }
    let drops = pipeline.drops();
    assert_eq!(drops.of(DropReason::ByFlow), 2 * quarter);
    assert_eq!(drops.of(DropReason::NoMatch), 2 * quarter);
    assert_eq!(drops.total(), 4 * quarter);
    let frames = |kind: u64| pipeline.tables().totals(&FlowFilter::covered_by(to(kind))).frames;
    assert_eq!([0, 1, 2].map(frames), [2 * (all + quarter), 2 * quarter, 2 * quarter]);
    let account = pipeline.tables().account(0);
    assert_eq!((account.lookups, account.matched), (4 * all, 4 * all - 2 * quarter));
}
