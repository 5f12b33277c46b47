//! RFC 2544: the whole set, over the frame sizes of its section 9.1.
//!
//! Each test is an experiment of its own; asked for together, they share the throughputs that the first
//! one finds. Trials are as long as the effort says: the standard's 60 seconds and more with full effort,
//! shorter ones otherwise, which the record tells. Back-to-back frames are RFC 9004's.

/// Latency at the throughput.
pub mod latency;
/// Frame loss rate against load.
pub mod loss;
/// How long an overload is felt after it has ended.
pub mod recovery;
/// How long a reset is felt.
pub mod reset;

use results::record::Metric;

use super::search::{Searches, Task};
use super::{Context, Method};
use crate::parameter::own::Declared;
use crate::parameter::shared;

/// Name of the axis of most of its tests.
pub const AXIS: &str = "frame_bytes";

/// Frame sizes for Ethernet (section 9.1).
pub const FRAMES: Declared = shared::FRAMES.with_default("64,128,256,512,1024,1280,1518");

/// What tests that are repeated as a whole take.
pub const SEARCHED: &[Declared] = &[FRAMES, shared::REPEATS_OF_SEARCHES];

/// What the others take.
pub const REPEATED: &[Declared] = &[FRAMES];

/// Throughput (section 26.1): the largest load without a lost frame at each size, each confirmed by
/// a trial four times as long.
pub fn throughput(context: &Context) -> Box<dyn Method> {
    let (loss_ratio, metric) = (0.0, Metric::ThroughputPps);
    let task = |frame_bytes| Task { frame_bytes, loss_ratio, metric };
    let tasks = context.frames(&FRAMES).into_iter().map(task).collect();
    Box::new(Searches::new(context, AXIS, tasks, context.searches()))
}
