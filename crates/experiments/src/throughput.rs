//! Throughput (RFC 2544, 26.1): the highest load without loss, and within a set loss ratio.
//!
//! Method: for each frame size, a binary search starts at the rate of the nominal link; a longer trial confirms the
//! result. The whole search is repeated. Results are marked if the target forwards everything at the nominal rate,
//! or if the tester cannot offer more.

use record::Metric;

use super::search::{SearchTask, Searches};
use super::{Context, Method};
use workload::parameter::declaration::Parameter;
use workload::parameter::shared;

/// Name of the axis.
pub const AXIS: &str = "frame_bytes";

/// Frame sizes: RFC 2544's smallest, a medium one and Ethernet's largest.
const FRAMES: Parameter = shared::FRAMES.with_default("64,512,1518");

/// Parameters of the experiment.
pub const PARAMETERS: &[Parameter] = &[FRAMES];

/// Creates the method for one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    let mut tasks = Vec::new();
    for frame_bytes in context.frames(&FRAMES) {
        tasks.push(SearchTask { frame_bytes, loss_ratio: 0.0, metric: Metric::ThroughputPps });
        if context.parameters.loss > 0.0 {
            let (loss_ratio, metric) =
                (context.parameters.loss, Metric::ThroughputPpsLossTolerated);
            tasks.push(SearchTask { frame_bytes, loss_ratio, metric });
        }
    }
    Box::new(Searches::new(context, AXIS, tasks, context.parameters.repeats))
}
