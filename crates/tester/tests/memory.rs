//! Memory use of trials: independent of their length except for the duplicate window, and small
//! with the maximum number of streams.
//!
//! The duplicate window has its own limit.

#![allow(clippy::unwrap_used, unsafe_code)]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::{Copy, Rule, pass, rig, stream, trial, wire};
use packet::frame::Frame;
use packet::time::Nanos;
use tester::rig::Rig;
use tester::rig::engine::STREAMS_MAX;
use tester::stream::Stream;
use tester::trial::TrialReport;

/// The system's allocator with a count of the bytes in use.
struct Counting;

static IN_USE: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

/// Locked by the test that counts.
static COUNTS: Mutex<()> = Mutex::new(());

// SAFETY: every request is forwarded unchanged to the system's allocator. Only counters are added.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = IN_USE.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        MOST.fetch_max(now, Ordering::Relaxed);
        // SAFETY: the caller's guarantees are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A wire with delays of up to 100 us.
fn uneven_wire(count: u64, port: usize, frame: &Frame, now: Nanos) -> Vec<Copy> {
    let delay = Nanos(count.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 100_000);
    vec![Copy { at: now + delay, ..pass(1 - port, frame, now) }]
}

/// Returns the peak of additional bytes in use during a trial of these streams, and its report.
fn most_bytes(rule: impl Rule, streams: Vec<Stream>, milliseconds: u64) -> (usize, TrialReport) {
    let mut rig = rig(2, rule);
    // A first trial, long enough to allocate the buffers of ports and rig.
    rig.trial(&trial(vec![stream(1, 64, 100_000.0)], 20)).unwrap();
    let trial = trial(streams, milliseconds);
    let before = IN_USE.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    let report = rig.trial(&trial).unwrap();
    (MOST.load(Ordering::Relaxed) - before, report)
}

#[test]
fn memory_does_not_grow_with_the_length_of_a_trial() {
    let _counts = COUNTS.lock().unwrap();
    let most = |milliseconds| {
        let (bytes, report) = most_bytes(wire, vec![stream(1, 64, 100_000.0)], milliseconds);
        assert_eq!(report.total.forwarded, milliseconds * 100);
        (bytes, report.total.forwarded)
    };
    let (short, few) = most(500);
    let (long, many) = most(5_000);
    // One bit per frame for each port and for corrupt frames, in pages of 4,096 frames.
    let pages = (many / 4096 + 1) - few / 4096;
    let window = pages as usize * 3 * 4096 / 8;
    let rows = 4096;
    assert!(long <= short + window + rows, "{short} bytes, {long} for {many} frames");
    assert!(short < 1 << 20, "{short} bytes for {few} frames");
}

#[test]
fn the_maximum_number_of_streams_needs_little_memory() {
    let _counts = COUNTS.lock().unwrap();
    let streams = (1..=STREAMS_MAX as u16).map(|id| stream(id, 64, 500.0 + f64::from(id)));
    let (bytes, report) = most_bytes(uneven_wire, streams.collect(), 1_000);
    for stream in &report.streams {
        assert!(stream.latency.from_sent.buckets().count() > 300);
    }
    assert!(bytes < 50_000_000, "{bytes} bytes for {} streams", report.streams.len());
}
