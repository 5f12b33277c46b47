//! The study's closing argument: work that the element does itself, or that its controller has to do for it.
//!
//! Claim: where a plain element has to ask its controller often, it is slower, in some cases unusable, and a controller can
//! deal with so many messages and no more. Method: an OpenFlow switch tells the tester's controller of every frame, which
//! answers each with a packet-out: to where it learned that the station is, or on, if it finds no pattern in what the packet
//! carries, or back to where it came from, as an end point of Ethernet OAM answers loopback messages. The same frames are
//! given to targets that do it themselves: bridges learn, programs with a block that scans inspect, and those with an end point that
//! has an address answer. First frames come slowly, for delays; then in steps, for the highest rate at which none is
//! lost (see [`highest`](super::super::modules::highest)). The controller here is one thread that does nothing else; its
//! own part is told beside. Parameters: `--set frame=` the sizes.

use ::progfe::agent::oam::{LoopbackPoint, loopback_point};
use instrument::stream::{Arrival, Network, Rate, Stream, Vlan};
use packet::time::Nanos;

use super::super::modules::misses::deciding::Task;
use super::super::modules::misses::{Answer, Asking, FRAMES, Misses};
use super::super::modules::packets::{RATE_MAX, RATE_MIN, SAMPLES, SLOW_PPS, STEP, WHOLE};
use super::super::modules::rounds::{Rounds, Spot};
use super::super::modules::rules::{FAR, NEAR, Rules};
use super::super::modules::updates::{VERSION, versions};
use super::super::{Context, Method};
use super::latency::AXIS;
use crate::catalog::Show;
use crate::parameter::Table;
use crate::parameter::own::Declared;
use crate::parameter::shared;
use crate::target::name::{TargetKind, Technology};
use crate::target::program::PORT_IN;
use crate::workload::Setup;

/// Frame sizes.
const SIZES: Declared = shared::FRAMES.with_default("96,512,1472");

/// What curves lie on: which task.
const CURVE: &str = "offload";

/// The level of loopback messages to a switch, whose controller has an end point there.
const LEVEL: u8 = 5;

/// The number of a frame by which the other side's station is learned.
const GREETING: u16 = 2;

/// The port whose packets are looked into: that of names.
const NAMES: u16 = 53;

/// Parameters of the experiment.
pub const PARAMETERS: &[Declared] = &[SIZES, SAMPLES, SLOW_PPS, RATE_MAX, STEP, VERSION];

/// Values that the report shows.
pub const SHOWS: &[Show] = &[
    Show::values(
        "Frames a second without loss, done by the element or by its controller",
        &["frames_per_s_lossfree"],
        &["frames_per_s_peak", "controller_messages_per_s", "controller_messages_for_frame_count"],
    ),
    Show {
        is_logarithmic: true,
        ..Show::values(
            "Time from a frame sent until it is out",
            &["done_ns_p50"],
            &["done_ns_p90", "done_ns_max", "think_ns_p50", "lost_ratio"],
        )
    },
];

/// The tasks that a target is given, with their numbers.
fn tasks(context: &Context) -> Vec<(Task, f64)> {
    let answers = end_point(context).map(|_| (Task::Answer, 3.0));
    let inspects = match context.kind {
        TargetKind::ProGfe(target) => {
            let program = target.program();
            program.instances.iter().any(|it| it.class == ::progfe::program::class_id::SCAN)
        }
        _ => context.technology == Technology::OpenFlow,
    };
    let learns = matches!(context.technology, Technology::OpenFlow | Technology::Bridging);
    let learning = learns.then_some((Task::Learn, 1.0));
    learning.into_iter().chain(inspects.then_some((Task::Inspect, 2.0))).chain(answers).collect()
}

/// Where loopback messages are answered: by the program, or for a switch by its controller.
fn end_point(context: &Context) -> Option<LoopbackPoint> {
    match context.kind {
        TargetKind::ProGfe(target) => loopback_point(&target.program(), PORT_IN.into()),
        _ if context.technology == Technology::OpenFlow => {
            Some(LoopbackPoint { mac: context.addresses.target[0], level: LEVEL, vid: 0 })
        }
        _ => None,
    }
}

/// Creates the method of this comparison for one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    let own = &context.parameters.own;
    let is_controlled = context.technology == Technology::OpenFlow;
    let setup = match context.technology {
        Technology::Bridging => Setup { table: Table::Learned, ..context.setup() },
        _ => context.setup(),
    };
    let mut spots = Vec::new();
    for frame_bytes in context.frames(&SIZES) {
        for (task, number) in tasks(context) {
            let frames = frames(context, &setup, task, frame_bytes);
            let asking = Asking {
                answer: if is_controlled { Answer::Decide(task) } else { Answer::Target },
                flows: Rules::new(context, 1),
                greeting: (is_controlled && task == Task::Learn).then(|| greeting(&frames)),
                frames,
                told_bytes: WHOLE,
                samples: own.integer(&SAMPLES),
                slow_pps: own.number(&SLOW_PPS),
                rates_pps: (RATE_MIN, own.number(&RATE_MAX)),
                step: Nanos::from_secs_f64(own.number(&STEP)),
                step_frames_max: u64::MAX,
                versions: versions(context),
            };
            let make = move |_| Box::new(Misses::new(asking.clone())) as Box<_>;
            let spot = Spot::new(frame_bytes.into(), 0.7, make).on(CURVE, number);
            spots.push(if is_controlled { spot } else { spot.over(setup) });
        }
    }
    Box::new(Rounds::new(context, AXIS, spots))
}

/// The frames of a task.
fn frames(context: &Context, setup: &Setup, task: Task, frame_bytes: u16) -> Stream {
    let rate = Rate::FramesPerSecond(context.parameters.own.number(&SLOW_PPS));
    let mut stream = setup.stream(context.technology, &context.addresses, frame_bytes, rate);
    (stream.id, stream.from, stream.to) = (FRAMES, NEAR, FAR);
    match task {
        Task::Learn => {}
        Task::Inspect => stream.headers.port_destination = NAMES,
        Task::Answer => {
            let Some(point) = end_point(context) else { return stream };
            (stream.to, stream.arrival) = (NEAR, Arrival::Answered);
            // Whoever answers swaps two addresses, and those of a stream whose flows differ by them vary.
            stream.vary.clear();
            let headers = &mut stream.headers;
            headers.network = Network::Loopback { level: point.level, answers: false };
            headers.mac_destination = point.mac;
            headers.vlans = (point.vid != 0).then(|| Vlan::new(point.vid)).into_iter().collect();
        }
    }
    stream
}

/// A frame from the station that the frames are for.
fn greeting(frames: &Stream) -> Stream {
    let mut stream = frames.clone();
    (stream.id, stream.from, stream.to) = (GREETING, FAR, NEAR);
    let headers = &mut stream.headers;
    std::mem::swap(&mut headers.mac_source, &mut headers.mac_destination);
    std::mem::swap(&mut headers.ip_source, &mut headers.ip_destination);
    stream
}
