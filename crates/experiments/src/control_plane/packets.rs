//! Packet-in experiments: packet-in, packet-in with packet-out, reactive setup.
//!
//! All are [`super::packet_in`] with different reactions, over frame sizes.

use packet::time::Nanos;

use super::packet_in::{self, Answer, Misses, PacketInSettings};
use super::rounds::{ModulePoint, RepeatedModule};
use super::rules::{RULES_MAX, Rules};
use super::updates::{VERSION, versions};
use crate::show::Chart;
use crate::{Context, Method};
use workload::parameter::declaration::{Parameter, ValueType};
use workload::parameter::shared;

/// Name of the axis.
pub const AXIS: &str = "frame_bytes";

/// Default frame sizes.
const FRAMES: Parameter = shared::FRAMES.with_default("96,512,1472");

/// Miss send length for whole frames without buffering.
pub const WHOLE: u16 = 0xffff;

/// Bytes of a buffered frame in a packet-in.
const PART: u16 = 128;

const BUFFER: Parameter = Parameter {
    key: "buffer",
    takes: ValueType::Words(&["no_buffer", "buffered"]),
    default: "no_buffer,buffered",
    unit: "",
    help: "whether packet-ins contain whole frames (no_buffer), or the switch buffers frames and \
           sends a part, if supported (buffered)",
};

const BUFFER_ONE: Parameter = Parameter {
    key: "buffer",
    takes: ValueType::Word(&["no_buffer", "buffered"]),
    default: "no_buffer",
    unit: "",
    help: BUFFER.help,
};

/// Number of frames for the delays.
pub const SAMPLES: Parameter = Parameter {
    key: "samples",
    takes: ValueType::Integer(2, 100_000),
    default: "300",
    unit: "frames",
    help: "number of frames that give the delays",
};

/// Rate of those frames.
pub const SLOW_PPS: Parameter = Parameter {
    key: "low_rate_pps",
    takes: ValueType::Number(1.0, 1e6),
    default: "2000",
    unit: "frames/s",
    help: "rate of these frames",
};

/// Initial rate of searches.
pub const RATE_MAX: Parameter = Parameter {
    key: "rate_max",
    takes: ValueType::Number(100.0, 2e7),
    default: "300000",
    unit: "frames/s",
    help: "start of the search for the highest rates",
};

/// Duration of a step of a search.
pub const STEP: Parameter = Parameter {
    key: "step",
    takes: ValueType::Number(0.005, 60.0),
    default: "0.03",
    unit: "s",
    help: "duration of each step",
};

const FLOWS: Parameter = Parameter {
    key: "flows_max",
    takes: ValueType::Integer(10, RULES_MAX),
    default: "5000",
    unit: "flows",
    help: "maximum number of flows per step",
};

/// Lowest rate of searches, in frames per second.
pub const RATE_MIN: f64 = 100.0;

/// Parameters of packet-in.
pub const IN: &[Parameter] = &[FRAMES, BUFFER, SAMPLES, SLOW_PPS, RATE_MAX, STEP, VERSION];

/// Parameters of packet-in with packet-out.
pub const IN_OUT: &[Parameter] = &[FRAMES, BUFFER_ONE, SAMPLES, SLOW_PPS, RATE_MAX, STEP, VERSION];

/// Parameters of reactive setup.
pub const SETUP: &[Parameter] =
    &[FRAMES, BUFFER_ONE, SAMPLES, SLOW_PPS, RATE_MAX, STEP, FLOWS, VERSION];

/// Report values of packet-in.
pub const IN_SHOWS: &[Chart] = &[
    Chart::values(
        "Packet-in delay by frame size",
        &["packet_in_ns_p50", "kept_packet_in_ns_p50"],
        &["packet_in_ns_min", "packet_in_ns_max", "lost_ratio"],
    ),
    Chart::values(
        "Packet-in rate by frame size",
        &[
            "packet_ins_per_s_lossfree",
            "packet_ins_per_s_peak",
            "kept_packet_ins_per_s_lossfree",
            "kept_packet_ins_per_s_peak",
        ],
        &["kept_buffered_ratio", "kept_carried_bytes_mean", "carried_bytes_mean", "errors_count"],
    ),
    Chart::series("Packet-in rate over requested frame rate", &["done_per_s"]),
];

/// Report values of packet-in with packet-out.
pub const IN_OUT_SHOWS: &[Chart] = &[
    Chart::values(
        "Round-trip time of frames through the controller, and the tester's share of it",
        &["round_trip_ns_p50", "round_trip_ns_p90", "think_ns_p50"],
        &["round_trip_ns_min", "round_trip_ns_max", "think_ns_max", "lost_ratio"],
    ),
    Chart::values(
        "Rate of frames through the controller by frame size",
        &["packets_per_s_lossfree", "packets_per_s_peak"],
        &["buffered_ratio", "carried_bytes_mean", "errors_count"],
    ),
];

/// Report values of reactive setup.
pub const SETUP_SHOWS: &[Chart] = &[
    Chart::values(
        "Flow setup delay, and the tester's share of it",
        &["setup_ns_p50", "setup_ns_p90", "think_ns_p50"],
        &["setup_ns_min", "setup_ns_max", "think_ns_max", "lost_ratio"],
    ),
    Chart::values(
        "Flow setup rate by frame size",
        &["setups_per_s_lossfree", "setups_per_s_peak"],
        &["buffered_ratio", "errors_count"],
    ),
];

/// Creates the packet-in method.
pub fn packet_in(context: &Context) -> Box<dyn Method> {
    let buffers: Vec<&str> = context.parameters.own.words(&BUFFER).collect();
    rounds(context, Answer::Nothing, &buffers, u64::MAX)
}

/// Creates the method for packet-ins with packet-out replies.
pub fn packet_in_out(context: &Context) -> Box<dyn Method> {
    let buffer = context.parameters.own.text(&BUFFER_ONE);
    rounds(context, Answer::Send, &[buffer], u64::MAX)
}

/// Creates the method for packet-ins with flow-mod replies.
pub fn reactive_setup(context: &Context) -> Box<dyn Method> {
    let own = &context.parameters.own;
    rounds(context, Answer::Rule, &[own.text(&BUFFER_ONE)], own.integer(&FLOWS))
}

fn rounds(
    context: &Context,
    answer: Answer,
    buffers: &[&str],
    step_frames_max: u64,
) -> Box<dyn Method> {
    let own = &context.parameters.own;
    let mut spots = Vec::new();
    for frame_bytes in context.frames(&FRAMES) {
        for &buffer in buffers {
            let is_kept = buffer == "buffered";
            let flows = Rules::new(context, RULES_MAX as u32);
            let asking = PacketInSettings {
                answer,
                frames: flows.probes(packet_in::FRAMES, frame_bytes.into(), own.number(&SLOW_PPS)),
                greeting: None,
                flows,
                told_bytes: if is_kept { PART } else { WHOLE },
                samples: own.integer(&SAMPLES).min(step_frames_max),
                slow_pps: own.number(&SLOW_PPS),
                rates_pps: (RATE_MIN, own.number(&RATE_MAX)),
                step: Nanos::from_secs_f64(own.number(&STEP)),
                step_frames_max,
                versions: versions(context),
            };
            let make = move |_| Box::new(Misses::new(asking.clone())) as Box<_>;
            let spot = ModulePoint::new(frame_bytes.into(), 0.7, make);
            let has_both = answer == Answer::Nothing;
            spots.push(if has_both && is_kept { spot.named("kept_") } else { spot });
        }
    }
    Box::new(RepeatedModule::new(context, AXIS, spots))
}
