//! RFC 2889: bridges with several ports.
//!
//! Each test is an experiment of its own, over as many ports as `--set ports=` says (4). One station is behind
//! each port, and the target knows it, unless addresses are what is measured. Loads are those of one port.
//! Links in real time have no capacity of their own: where a test is about a port that more is meant for than it
//! carries, only simulated links show what the standard means, and elsewhere it is the target that is overloaded.

/// What comes out under full load, and the highest of what comes out under any.
pub mod rate;
/// A port that more is meant for than it carries.
pub mod congestion;
/// How many addresses are learned, and how fast.
pub mod addresses;
/// Frames for everybody.
pub mod broadcast;

use instrument::trial::Trial;
use results::record::Metric;

use super::search::{Searches, Task};
use super::sweep::{Sweep, SweepPoint};
use super::{Context, Method};
use crate::parameter::own::{Declared, Values};
use crate::parameter::shared;
use crate::workload::Setup;
use crate::workload::mesh::{self, Pattern};

/// Name of the axis.
pub const AXIS: &str = "frame_bytes";

/// The standard's frame sizes; for a first look the smallest, a middle one and the largest.
pub const FRAMES: Declared =
    shared::FRAMES.with_default("quick 64,512,1518; 64,128,256,512,1024,1280,1518");

/// What tests that are repeated as a whole take.
pub const SEARCHED: &[Declared] = &[FRAMES, shared::REPEATS_OF_SEARCHES];

/// What the others take.
pub const REPEATED: &[Declared] = &[FRAMES];

fn frames(context: &Context) -> Values<u16> {
    context.frames(&FRAMES)
}

/// A target that knows its stations.
fn setup(context: &Context) -> Setup {
    Setup::meshed(context.seed, context.parameters.methods.ports)
}

/// Every port that sends is offered so much.
fn trial(context: &Context, pattern: Pattern, frame_bytes: u16, port_pps: f64) -> Trial {
    let ports = context.parameters.methods.ports;
    context.trial_of(mesh::streams(&context.addresses, ports, pattern, frame_bytes, port_pps))
}

/// Fully meshed throughput (5.1): the largest load of each port at which no frame is lost.
pub fn throughput(context: &Context) -> Box<dyn Method> {
    let task = |frame_bytes| Task { frame_bytes, loss_ratio: 0.0, metric: Metric::ThroughputPps };
    let tasks = frames(context).into_iter().map(task).collect();
    Box::new(searches(context, tasks))
}

/// Searches with traffic from every port to every other.
fn searches(context: &Context, tasks: Vec<Task>) -> Searches {
    let searches = Searches::new(context, AXIS, tasks, context.searches());
    searches.with(setup(context), |context, frame_bytes, pps| {
        trial(context, Pattern::Full, frame_bytes, pps)
    })
}

/// Forwarding rate and loss under full load, fully meshed (5.1).
pub fn full_mesh(context: &Context) -> Box<dyn Method> {
    full_load(context, Pattern::Full)
}

/// The same from the first port to all others (5.2).
pub fn one_to_many(context: &Context) -> Box<dyn Method> {
    full_load(context, Pattern::OneToMany)
}

/// The same from all others to the first port (5.2).
pub fn many_to_one(context: &Context) -> Box<dyn Method> {
    full_load(context, Pattern::ManyToOne)
}

fn full_load(context: &Context, pattern: Pattern) -> Box<dyn Method> {
    let setup = setup(context);
    let point = |frame_bytes| SweepPoint {
        x: f64::from(frame_bytes),
        curve: None,
        setup,
        trial: trial(
            context,
            pattern,
            frame_bytes,
            context.port_pps(frame_bytes, pattern.senders(setup.ports())),
        ),
    };
    let points = frames(context).into_iter().map(point).collect();
    Box::new(Sweep::new(AXIS, points, context.parameters.repeats))
}
