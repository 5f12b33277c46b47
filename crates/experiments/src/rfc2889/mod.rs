//! RFC 2889: bridges with several ports.
//!
//! Each test is a separate experiment over `--set ports=` ports (default 4). One station is behind each port. The
//! target has learned it, unless the test is about addresses. Loads are per port. Real-time links have no capacity
//! of their own: a test that overloads an output port follows the standard only on simulated links. On other links
//! it overloads the target itself.

pub mod rate;
pub mod congestion;
pub mod addresses;
pub mod broadcast;

use record::Metric;
use tester::trial::Trial;

use super::search::{SearchTask, Searches};
use super::sweep::{Sweep, SweepPoint};
use super::{Context, Method};
use workload::Setup;
use workload::mesh::{self, Pattern};
use workload::parameter::declaration::{Parameter, Values};
use workload::parameter::shared;

/// Name of the axis.
pub const AXIS: &str = "frame_bytes";

/// Frame sizes of the standard; with quick effort the smallest, a medium one and the largest.
pub const FRAMES: Parameter =
    shared::FRAMES.with_default("quick 64,512,1518; 64,128,256,512,1024,1280,1518");

/// Parameters of tests that are repeated as a whole.
pub const SEARCHED: &[Parameter] = &[FRAMES, shared::REPEATS_OF_SEARCHES];

/// Parameters of the other tests.
pub const REPEATED: &[Parameter] = &[FRAMES];

fn frames(context: &Context) -> Values<u16> {
    context.frames(&FRAMES)
}

/// Returns the setup of a target with learned stations.
fn setup(context: &Context) -> Setup {
    Setup::meshed(context.seed, context.parameters.methods.ports)
}

/// Creates a trial with this load on every sending port.
fn trial(context: &Context, pattern: Pattern, frame_bytes: u16, port_pps: f64) -> Trial {
    let ports = context.parameters.methods.ports;
    context.trial_of(mesh::streams(&context.addresses, ports, pattern, frame_bytes, port_pps))
}

/// Creates the method for fully meshed throughput (5.1): the highest load per port without loss.
pub fn throughput(context: &Context) -> Box<dyn Method> {
    let task =
        |frame_bytes| SearchTask { frame_bytes, loss_ratio: 0.0, metric: Metric::ThroughputPps };
    let tasks = frames(context).into_iter().map(task).collect();
    Box::new(searches(context, tasks))
}

/// Creates searches with traffic from every port to every other.
fn searches(context: &Context, tasks: Vec<SearchTask>) -> Searches {
    let searches = Searches::new(context, AXIS, tasks, context.searches());
    searches.with(setup(context), |context, frame_bytes, pps| {
        trial(context, Pattern::Full, frame_bytes, pps)
    })
}

/// Creates the method for forwarding rate and loss under full load, fully meshed (5.1).
pub fn full_mesh(context: &Context) -> Box<dyn Method> {
    full_load(context, Pattern::Full)
}

/// Creates the method for traffic from the first port to all others (5.2).
pub fn one_to_many(context: &Context) -> Box<dyn Method> {
    full_load(context, Pattern::OneToMany)
}

/// Creates the method for traffic from all others to the first port (5.2).
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
