//! Controller offload, the study's final argument: work in the element compared with work in its controller.
//!
//! Claim: an element that often sends packets to its controller is slower, in some cases unusable. A controller
//! handles a limited number of messages.
//!
//! Method: an OpenFlow switch sends every frame to the tester's controller in a packet-in. The controller replies
//! with a packet-out, whose output port depends on the task:
//!
//! - learning: the learned port of the station
//! - inspection: the far port, if no pattern is in the payload
//! - Ethernet OAM end point: the input port, for loopback messages
//!
//! Other targets get the same frames and do the work themselves: bridges learn, programs with a scan block inspect
//! payloads, and programs with an end point reply. The first frames come slowly, for the delays; then frames come
//! in steps, for the highest loss-free rate (see [`highest`](experiments::control_plane::highest)).
//!
//! The controller here is one thread without other work; its own share of the time is reported too. Parameters:
//! `--set frame=` the sizes.

use ::progfe::agent::oam::{LoopbackPoint, loopback_point};
use packet::time::Nanos;
use tester::stream::{Arrival, Network, Rate, Stream, Vlan};

use super::latency::AXIS;
use experiments::control_plane::packet_in::reactive_controller::ControllerTask;
use experiments::control_plane::packet_in::{Answer, FRAMES, Misses, PacketInSettings};
use experiments::control_plane::packets::{RATE_MAX, RATE_MIN, SAMPLES, SLOW_PPS, STEP, WHOLE};
use experiments::control_plane::rounds::{ModulePoint, RepeatedModule};
use experiments::control_plane::rules::{FAR, NEAR, Rules};
use experiments::control_plane::updates::{VERSION, versions};
use experiments::show::Chart;
use experiments::{Context, Method};
use targets::flow_setup::PORT_IN;
use targets::name::TargetKind;
use workload::Setup;
use workload::Technology;
use workload::parameter::Table;
use workload::parameter::declaration::Parameter;
use workload::parameter::shared;

/// Frame sizes.
const SIZES: Parameter = shared::FRAMES.with_default("96,512,1472");

/// Name of the curves: the task.
const CURVE: &str = "offload";

/// Maintenance level of loopback messages to a switch whose controller has an end point.
const LEVEL: u8 = 5;

/// Id of the stream that makes the other side's station known.
const GREETING: u16 = 2;

/// UDP port of inspected packets: DNS.
const NAMES: u16 = 53;

/// Parameters of the experiment.
pub const PARAMETERS: &[Parameter] = &[SIZES, SAMPLES, SLOW_PPS, RATE_MAX, STEP, VERSION];

/// Values that the report shows.
pub const SHOWS: &[Chart] = &[
    Chart::values(
        "Loss-free frame rate of the element or of its controller",
        &["frames_per_s_lossfree"],
        &["frames_per_s_peak", "controller_messages_per_s", "controller_messages_for_frame_count"],
    ),
    Chart {
        is_logarithmic: true,
        ..Chart::values(
            "Time from sending a frame until it leaves the target",
            &["done_ns_p50"],
            &["done_ns_p90", "done_ns_max", "think_ns_p50", "lost_ratio"],
        )
    },
];

/// Returns the tasks for a target, with their numbers.
fn tasks(context: &Context) -> Vec<(ControllerTask, f64)> {
    let answers = end_point(context).map(|_| (ControllerTask::Answer, 3.0));
    let inspects = match context.kind {
        TargetKind::ProGfe(target) => {
            let program = target.program();
            program.instances.iter().any(|it| it.class == ::progfe::program::class_id::SCAN)
        }
        _ => context.technology == Technology::OpenFlow,
    };
    let learns = matches!(context.technology, Technology::OpenFlow | Technology::Bridging);
    let learning = learns.then_some((ControllerTask::Learn, 1.0));
    learning
        .into_iter()
        .chain(inspects.then_some((ControllerTask::Inspect, 2.0)))
        .chain(answers)
        .collect()
}

/// Returns the loopback end point of the program, or of the switch's controller.
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
            let asking = PacketInSettings {
                answer: if is_controlled { Answer::Decide(task) } else { Answer::Target },
                flows: Rules::new(context, 1),
                greeting: (is_controlled && task == ControllerTask::Learn)
                    .then(|| greeting(&frames)),
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
            let spot = ModulePoint::new(frame_bytes.into(), 0.7, make).on(CURVE, number);
            spots.push(if is_controlled { spot } else { spot.over(setup) });
        }
    }
    Box::new(RepeatedModule::new(context, AXIS, spots))
}

/// Creates the stream of frames for a task.
fn frames(context: &Context, setup: &Setup, task: ControllerTask, frame_bytes: u16) -> Stream {
    let rate = Rate::FramesPerSecond(context.parameters.own.number(&SLOW_PPS));
    let mut stream = setup.stream(context.technology, &context.addresses, frame_bytes, rate);
    (stream.id, stream.from, stream.to) = (FRAMES, NEAR, FAR);
    match task {
        ControllerTask::Learn => {}
        ControllerTask::Inspect => stream.headers.port_destination = NAMES,
        ControllerTask::Answer => {
            let Some(point) = end_point(context) else { return stream };
            (stream.to, stream.arrival) = (NEAR, Arrival::Answered);
            // The reply swaps two addresses, which must therefore not vary between flows.
            stream.vary.clear();
            let headers = &mut stream.headers;
            headers.network = Network::Loopback { level: point.level, answers: false };
            headers.mac_destination = point.mac;
            headers.vlans = (point.vid != 0).then(|| Vlan::new(point.vid)).into_iter().collect();
        }
    }
    stream
}

/// Creates a frame from the destination station of these frames.
fn greeting(frames: &Stream) -> Stream {
    let mut stream = frames.clone();
    (stream.id, stream.from, stream.to) = (GREETING, FAR, NEAR);
    let headers = &mut stream.headers;
    std::mem::swap(&mut headers.mac_source, &mut headers.mac_destination);
    std::mem::swap(&mut headers.ip_source, &mut headers.ip_destination);
    stream
}
