//! Session behaviour experiment: parameters and points.

use packet::time::Nanos;

use super::rounds::{ModulePoint, RepeatedModule};
use super::rules::Rules;
use super::session::{Session, SessionConfig};
use super::updates;
use crate::show::Chart;
use crate::{Context, Method};
use workload::parameter::declaration::{Parameter, ValueType};

/// Name of the axis.
pub const AXIS: &str = "controllers";

const CONTROLLERS: Parameter = Parameter {
    key: "controllers_count",
    takes: ValueType::Integers(2, 32),
    default: "2,4",
    unit: "connections",
    help: "number of controllers",
};

const HANDSHAKES: Parameter = Parameter {
    key: "handshakes",
    takes: ValueType::Integer(1, 10_000),
    default: "5",
    unit: "connections",
    help: "number of times that a connection is closed and reopened",
};

const ECHOES: Parameter = Parameter {
    key: "echoes",
    takes: ValueType::Integer(1, 1_000_000),
    default: "20",
    unit: "messages",
    help: "number of echo requests, sent one by one",
};

const FRAMES: Parameter = Parameter {
    key: "frames",
    takes: ValueType::Integer(2, 1_000_000),
    default: "40",
    unit: "frames",
    help: "number of frames that cause packet-ins, for each assignment of roles",
};

const FRAMES_PPS: Parameter = Parameter {
    key: "frames_pps",
    takes: ValueType::Number(10.0, 1e6),
    default: "2000",
    unit: "frames/s",
    help: "frame rate; its interval is the resolution of gaps in forwarding",
};

const FRAME: Parameter = Parameter {
    key: "probe_bytes",
    takes: ValueType::Integer(64, 1518),
    default: "96",
    unit: "bytes",
    help: "frame size, including the frame check sequence",
};

const AWAY: Parameter = Parameter {
    key: "disconnect_s",
    takes: ValueType::Number(0.01, 3600.0),
    default: "0.3",
    unit: "s",
    help: "time without a controller",
};

const PATIENCE: Parameter = Parameter {
    key: "timeout_s",
    takes: ValueType::Number(0.1, 600.0),
    default: "5",
    unit: "s",
    help: "timeout of each step",
};

/// Parameters of the experiment.
pub const PARAMETERS: &[Parameter] =
    &[CONTROLLERS, HANDSHAKES, ECHOES, FRAMES, FRAMES_PPS, FRAME, AWAY, updates::VERSION, PATIENCE];

/// Values that the report shows.
pub const SHOWS: &[Chart] = &[
    Chart::values(
        "Session delays by number of controllers",
        &["reconnect_ns_p50", "echo_ns_p50", "role_ns_p50", "takeover_ns"],
        &["connections_failed_count"],
    ),
    Chart::values(
        "Packet-ins by role of the controller",
        &["equal_told_ratio", "master_told_ratio", "slave_refused_ratio"],
        &["slaves_told_frames", "old_master_told_frames", "takeover_missed_frames"],
    ),
    Chart::values(
        "Delay of port changes by the controller",
        &["port_down_ns", "port_up_ns", "port_down_told_ns", "port_up_told_ns"],
        &[],
    ),
    Chart::values(
        "Forwarding without a controller",
        &["alone_ruled_ratio", "alone_missed_ratio"],
        &["alone_silence_ns_max"],
    ),
];

/// Creates the method for one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    let own = &context.parameters.own;
    let spot = |controllers: u64| {
        let trying = SessionConfig {
            rules: Rules::new(context, 3),
            controllers: controllers as usize,
            handshakes: own.integer(&HANDSHAKES) as u32,
            echoes: own.integer(&ECHOES) as u32,
            frames: own.integer(&FRAMES),
            frames_pps: own.number(&FRAMES_PPS),
            frame_bytes: own.integer(&FRAME) as usize,
            away: Nanos::from_secs_f64(own.number(&AWAY)),
            versions: updates::versions(context),
            patience: Nanos::from_secs_f64(own.number(&PATIENCE)),
        };
        let make = move |_| Box::new(Session::new(trying.clone())) as Box<_>;
        ModulePoint::new(controllers as f64, 1.0 + own.number(&AWAY), make)
    };
    let spots = own.integers(&CONTROLLERS).into_iter().map(spot).collect();
    Box::new(RepeatedModule::new(context, AXIS, spots))
}
