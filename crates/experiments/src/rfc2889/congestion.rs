//! Congestion control (RFC 2889, 5.5): the effect of an overloaded port on other ports.
//!
//! Method: the first of four ports sends half of its load to the third and half to the fourth. The second port
//! sends all of its load to the fourth. Both send at the capacity of their link, so the load for the fourth port is
//! one and a half times its capacity. Loss of frames to the third port is head-of-line blocking. No loss at the
//! fourth port is back pressure. Without either, a third of the frames to the fourth port is lost.

use record::Metric;
use tester::stream::{Rate, Stream};
use tester::trial::{Load, Trial, TrialReport};

use super::super::sweep::{Reading, Sweep, SweepPoint};
use super::super::{Context, Method};
use super::AXIS;
use workload::Setup;
use workload::mesh;

/// Number of ports.
const PORTS: u8 = 4;

/// Creates the method for one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    let setup = Setup::meshed(context.seed, context.parameters.methods.ports.max(PORTS));
    let point = |frame_bytes| SweepPoint {
        x: f64::from(frame_bytes),
        curve: None,
        setup,
        trial: context.trial_of(streams(context, frame_bytes)),
    };
    let points = super::frames(context).into_iter().map(point).collect();
    Box::new(Sweep::new(AXIS, points, context.parameters.repeats).reading(read))
}

/// Creates the streams from the first port to the third and the fourth, and from the second to the fourth.
fn streams(context: &Context, frame_bytes: u16) -> Vec<Stream> {
    let most_pps = context.port_pps(frame_bytes, 2);
    let stream = |(id, pair, share): (u16, (usize, usize), f64)| {
        let rate = Rate::FramesPerSecond(most_pps * share);
        mesh::between(&context.addresses, id, pair, frame_bytes, rate)
    };
    [(1, (0, 2), 0.5), (2, (0, 3), 0.5), (3, (1, 3), 1.0)].map(stream).to_vec()
}

fn read(_: &Trial, report: &TrialReport) -> Vec<Reading> {
    let to = |port: usize| {
        let meant = report.streams.iter().filter(|stream| stream.to == port);
        meant.fold(Load::default(), |sum, stream| sum.beside(&stream.load)).loss_ratio()
    };
    let found = [(Metric::LossRatioUncongested, to(2)), (Metric::LossRatioCongested, to(3))];
    found.map(|(metric, value)| Reading { metric, value, is_irregular: false }).to_vec()
}
