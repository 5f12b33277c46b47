//! Control stall experiment: parameters and points.

use packet::time::Nanos;

use super::control_load::{Load, Sizes};
use super::control_stall::{ControlStall, StallSettings};
use super::rounds::{ModulePoint, RepeatedModule};
use super::rules::Rules;
use super::updates::{self, FRAME};
use crate::show::Chart;
use crate::{Context, Method};
use workload::parameter::declaration::{Parameter, ValueType};

/// Name of the axis.
pub const AXIS: &str = "entries";

/// Maximum number of entries installed before a load.
const ENTRIES_MAX: u64 = 1_000_000;

/// Maximum number of new entries of a load.
const ADDS_MAX: u64 = 1 << 17;

/// Number of entries that a switch needs room for, with the largest load.
pub const HELD_MAX: u32 = (ENTRIES_MAX + ADDS_MAX) as u32;

const LOADS: Parameter = Parameter {
    key: "load",
    takes: ValueType::Words(Load::WORDS),
    default: "idle,bundle-2000,bundle-65536,aggregates,adds,dump,connections",
    unit: "",
    help: "control loads: none, a bundle with this number of non-strict modifies, aggregate \
           statistics requests, new entries, a dump of all flow statistics, connections",
};

const ENTRIES: Parameter = Parameter {
    key: "entries",
    takes: ValueType::Integer(1, ENTRIES_MAX),
    default: "131072",
    unit: "entries",
    help: "number of entries installed before the load",
};

const DUMP_ENTRIES: Parameter = Parameter {
    key: "dump_entries",
    takes: ValueType::Integer(1, ENTRIES_MAX),
    default: "750000",
    unit: "entries",
    help: "number of entries installed before the load dump, at most as many as the switch accepts",
};

const RATE: Parameter = Parameter {
    key: "rate",
    takes: ValueType::Number(100.0, 1e6),
    default: "10000",
    unit: "frames/s",
    help: "frame rate",
};

const FLOWS: Parameter = Parameter {
    key: "flows",
    takes: ValueType::Integer(1, 1 << 16),
    default: "100",
    unit: "flows",
    help: "number of entries that frames visit in turn",
};

const REQUESTS: Parameter = Parameter {
    key: "requests",
    takes: ValueType::Integer(1, 1_000_000),
    default: "1000",
    unit: "messages",
    help: "aggregate statistics requests of the load aggregates, sent back to back",
};

const ADDS: Parameter = Parameter {
    key: "adds",
    takes: ValueType::Integer(1, ADDS_MAX),
    default: "65536",
    unit: "entries",
    help: "new entries of the load adds, sent back to back",
};

const CONNECTIONS: Parameter = Parameter {
    key: "connections",
    takes: ValueType::Integer(1, 1000),
    default: "1000",
    unit: "connections",
    help: "connections of the load connections; each completes the hello exchange and remains open",
};

const QUIET: Parameter = Parameter {
    key: "quiet",
    takes: ValueType::Number(0.01, 600.0),
    default: "1",
    unit: "s",
    help: "duration of the quiet period before the load, and of the load idle",
};

const PATIENCE: Parameter = Parameter {
    key: "timeout_s",
    takes: ValueType::Number(0.1, 600.0),
    default: "30",
    unit: "s",
    help: "timeout of a load, after which it is reported as not completed",
};

/// Parameters of the experiment.
pub const PARAMETERS: &[Parameter] = &[
    LOADS,
    ENTRIES,
    DUMP_ENTRIES,
    RATE,
    FLOWS,
    REQUESTS,
    ADDS,
    CONNECTIONS,
    FRAME,
    QUIET,
    PATIENCE,
    updates::VERSION,
];

/// Values that the report shows.
pub const SHOWS: &[Chart] = &[
    Chart {
        is_logarithmic: true,
        ..Chart::values(
            "Longest forwarding gap by control load",
            &[
                "idle_silence_ns_max",
                "bundle_2000_silence_ns_max",
                "bundle_65536_silence_ns_max",
                "aggregates_silence_ns_max",
                "adds_silence_ns_max",
                "dump_silence_ns_max",
                "connections_silence_ns_max",
            ],
            &[
                "idle_silence_beyond_quiet_ns",
                "bundle_2000_silence_beyond_quiet_ns",
                "bundle_65536_silence_beyond_quiet_ns",
                "aggregates_silence_beyond_quiet_ns",
                "adds_silence_beyond_quiet_ns",
                "dump_silence_beyond_quiet_ns",
                "connections_silence_beyond_quiet_ns",
            ],
        )
    },
    Chart::values(
        "Frame loss by control load",
        &[
            "idle_lost_frames",
            "bundle_2000_lost_frames",
            "bundle_65536_lost_frames",
            "aggregates_lost_frames",
            "adds_lost_frames",
            "dump_lost_frames",
            "connections_lost_frames",
        ],
        &["dump_entries_count", "dump_rows_count", "connections_connections_count"],
    ),
    Chart {
        is_logarithmic: true,
        ..Chart::values(
            "Longest echo delay of a second controller by control load",
            &[
                "idle_echo_ns_max",
                "bundle_2000_echo_ns_max",
                "bundle_65536_echo_ns_max",
                "aggregates_echo_ns_max",
                "adds_echo_ns_max",
                "dump_echo_ns_max",
                "connections_echo_ns_max",
            ],
            &[],
        )
    },
    Chart {
        is_logarithmic: true,
        ..Chart::values(
            "Time to complete the control load",
            &[
                "bundle_2000_load_ns",
                "bundle_65536_load_ns",
                "aggregates_load_ns",
                "adds_load_ns",
                "dump_load_ns",
                "connections_load_ns",
            ],
            &[
                "bundle_2000_finished_ratio",
                "bundle_65536_finished_ratio",
                "aggregates_finished_ratio",
                "adds_finished_ratio",
                "dump_finished_ratio",
                "connections_finished_ratio",
            ],
        )
    },
];

/// Creates the method for one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    let own = &context.parameters.own;
    let installed = own.integer(&ENTRIES);
    let quiet = own.number(&QUIET);
    let sizes = Sizes {
        requests: own.integer(&REQUESTS) as u32,
        adds: own.integer(&ADDS) as u32,
        connections: own.integer(&CONNECTIONS) as u32,
    };
    let spot = |word: &str| {
        let (load, prefix) = Load::of(word, sizes);
        let entries = match load {
            Load::Dump => own.integer(&DUMP_ENTRIES),
            _ => installed,
        };
        let stall = StallSettings {
            load,
            entries: entries as u32,
            visited: own.integer(&FLOWS) as u32,
            rules: Rules::new(context, entries as u32),
            rate_pps: own.number(&RATE),
            frame_bytes: own.integer(&FRAME) as usize,
            quiet: Nanos::from_secs_f64(quiet),
            patience: Nanos::from_secs_f64(own.number(&PATIENCE)),
            versions: updates::versions(context),
        };
        let make = move |_| Box::new(ControlStall::new(stall.clone())) as Box<_>;
        ModulePoint::new(installed as f64, 2.0 * quiet + 2.0, make).named(prefix)
    };
    let spots = own.words(&LOADS).map(spot).collect();
    Box::new(RepeatedModule::new(context, AXIS, spots))
}
