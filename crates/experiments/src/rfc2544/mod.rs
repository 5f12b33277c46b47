//! RFC 2544: the whole set, over the frame sizes of its section 9.1.
//!
//! Each test is a separate experiment. If they run together, they share the throughput values of the first one. The
//! effort sets the duration of trials: the standard's 60 seconds or more with full effort, less otherwise; the
//! record contains it. Back-to-back frames follow RFC 9004.

pub mod latency;
pub mod loss;
pub mod recovery;
pub mod reset;

use record::Metric;

use super::search::{SearchTask, Searches};
use super::{Context, Method};
use workload::parameter::declaration::Parameter;
use workload::parameter::shared;

/// Name of the axis of most tests.
pub const AXIS: &str = "frame_bytes";

/// Frame sizes for Ethernet (section 9.1).
pub const FRAMES: Parameter = shared::FRAMES.with_default("64,128,256,512,1024,1280,1518");

/// Parameters of tests that are repeated as a whole.
pub const SEARCHED: &[Parameter] = &[FRAMES, shared::REPEATS_OF_SEARCHES];

/// Parameters of the other tests.
pub const REPEATED: &[Parameter] = &[FRAMES];

/// Creates the throughput method (section 26.1): the highest load without loss at each size.
///
/// A trial four times as long confirms each result.
pub fn throughput(context: &Context) -> Box<dyn Method> {
    let (loss_ratio, metric) = (0.0, Metric::ThroughputPps);
    let task = |frame_bytes| SearchTask { frame_bytes, loss_ratio, metric };
    let tasks = context.frames(&FRAMES).into_iter().map(task).collect();
    Box::new(Searches::new(context, AXIS, tasks, context.searches()))
}
