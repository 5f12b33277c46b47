//! A trial of ten times the length takes no more memory, but for the window in which repeated frames are
//! known again, which has a limit of its own.

#![allow(clippy::unwrap_used, unsafe_code)]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use common::{rig, stream, trial, wire};
use instrument::rig::Rig;

/// The system's allocator, with a count of what is in use.
struct Counting;

static IN_USE: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every request goes to the system's allocator as it came; only numbers are kept beside.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = IN_USE.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        MOST.fetch_max(now, Ordering::Relaxed);
        // SAFETY: the caller's promises are passed on.
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

/// Bytes that a trial of so many milliseconds has in use at most, beyond what was there before.
fn most_bytes(milliseconds: u64) -> (usize, u64) {
    let mut rig = rig(2, wire);
    // A trial that lasts as long as the buffers of ports and rig take to be there.
    rig.trial(&trial(vec![stream(1, 64, 100_000.0)], 20)).unwrap();
    let before = IN_USE.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    let report = rig.trial(&trial(vec![stream(1, 64, 100_000.0)], milliseconds)).unwrap();
    assert_eq!(report.total.forwarded, milliseconds * 100);
    (MOST.load(Ordering::Relaxed) - before, report.total.forwarded)
}

#[test]
fn memory_does_not_grow_with_the_length_of_a_trial() {
    let (short, few) = most_bytes(500);
    let (long, many) = most_bytes(5_000);
    // One bit for each frame, port and for those that came corrupt, in pages of 4,096 frames.
    let pages = (many / 4096 + 1) - few / 4096;
    let window = pages as usize * 3 * 4096 / 8;
    let rows = 4096;
    assert!(long <= short + window + rows, "{short} bytes, {long} for {many} frames");
    assert!(short < 4 << 20, "{short} bytes for {few} frames");
}
