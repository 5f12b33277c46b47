//! Parameters that several experiments share, declared once, in groups that experiments include.
//!
//! Invariant: every run takes those of [`always`], which are about the run, the tester and the
//! targets. Only experiments that include a group take its other parameters.

use super::declaration::{Parameter, ValueType};
use super::{control, device, goals, methods, snmp};

/// Capacity of the nominal link.
pub const CAPACITY: Parameter = Parameter {
    key: "capacity",
    takes: ValueType::Text("a rate in bit/s such as 1G or 100M, or auto"),
    default: "1G",
    unit: "",
    help: "capacity of the nominal link between tester and target; 10G for workloads over memory",
};

/// Number of repeats of each trial.
pub const REPEATS: Parameter = Parameter {
    key: "repeats",
    takes: ValueType::Integer(1, 1000),
    default: "quick 5; standard 5; full 3",
    unit: "",
    help: "number of repeats of each trial",
};

/// Number of repeats of a whole search, which consists of many trials.
pub const REPEATS_OF_SEARCHES: Parameter = Parameter {
    default: "quick 3; standard 3; full 2",
    help: "number of repeats of the whole measurement, including its search",
    ..REPEATS
};

const TURNS: Parameter = Parameter {
    key: "interleaving",
    takes: ValueType::Word(&["abab", "abba"]),
    default: "abab",
    unit: "",
    help: "order of targets: the same in each round (A B A B), or reversed in every second round \
           (A B B A)",
};

const RIG: Parameter = Parameter {
    key: "simulate",
    takes: ValueType::Word(&["false", "true"]),
    default: "false",
    unit: "",
    help: "measure in virtual time over memory",
};

const SERVICE: Parameter = Parameter {
    key: "sim_service_time_ns",
    takes: ValueType::Integer(0, 1_000_000_000),
    default: "0",
    unit: "ns",
    help: "in virtual time: processing time of a target per frame",
};

const STALL: Parameter = Parameter {
    key: "sim_tester_pause_ns",
    takes: ValueType::Integer(0, 1_000_000_000),
    default: "0",
    unit: "ns",
    help: "in virtual time: duration of a stall of the tester in every other trial",
};

const RING_FRAMES: Parameter = Parameter {
    key: "ring_frames",
    takes: ValueType::Integer(64, 65_536),
    default: "1024",
    unit: "frames",
    help: "link memory: size of a link's ring",
};

const WARM: Parameter = Parameter {
    key: "cache_fill_timeout_s",
    takes: ValueType::Number(0.0, 3600.0),
    default: "180",
    unit: "s",
    help: "timeout of filling a target's tables and caches before a trial",
};

/// Parameters of the run and the tester.
pub const RUN: &[Parameter] = &[CAPACITY, REPEATS, TURNS, RIG, SERVICE, STALL, RING_FRAMES, WARM];

/// Key of the size of the exact-match table of Planimeter's own switch.
pub const EXACT_ENTRIES_MAX: &str = "exact_entries_max";

/// Key of the size of the linear table of Planimeter's own switch.
pub const WILDCARD_ENTRIES_MAX: &str = "wildcard_entries_max";

const fn size(
    key: &'static str,
    takes: ValueType,
    default: &'static str,
    help: &'static str,
) -> Parameter {
    Parameter { key, takes, default, unit: "entries", help }
}

/// Parameters of targets.
pub const TARGETS: &[Parameter] = &[
    size(
        EXACT_ENTRIES_MAX,
        ValueType::Integer(1, 4_000_000),
        "131072",
        "size of the built-in switch's exact-match table",
    ),
    size(
        WILDCARD_ENTRIES_MAX,
        ValueType::Integer(1, 1_000_000),
        "100",
        "size of the built-in switch's linear table",
    ),
    size(
        "mac_table_size",
        ValueType::Integer(2, 4_000_000),
        "262144",
        "size of the built-in bridge's address table",
    ),
    size(
        "routes_max",
        ValueType::Integer(3, 4_000_000),
        "1048576",
        "link memory: size of the built-in router's table",
    ),
];

/// Duration of a trial.
pub const SECONDS: Parameter = Parameter {
    key: "seconds",
    takes: ValueType::Number(0.01, 3600.0),
    default: "quick 0.2; standard 2; full 60",
    unit: "s",
    help: "duration of a trial; 0.1 over memory with quick effort",
};

/// Traffic before a trial.
pub const WARMUP: Parameter = Parameter {
    key: "warmup",
    takes: ValueType::Number(0.0, 600.0),
    default: "quick 0.04; standard 0.4; full 2",
    unit: "s",
    help: "duration of uncounted traffic before a trial",
};

/// Parameters of trials.
pub const TRIALS: &[Parameter] = &[SECONDS, WARMUP];

const TABLE: Parameter = Parameter {
    key: "table",
    takes: ValueType::Word(&[
        "port", "one", "exact", "wildcard", "chain", "lpm", "mac", "learned", "acl", "tags",
    ]),
    default: "one",
    unit: "",
    help: "contents of the target's table",
};

/// Key of the number of table entries.
pub const ENTRIES_KEY: &str = "entries";

const ENTRIES: Parameter = Parameter {
    key: ENTRIES_KEY,
    takes: ValueType::Integer(1, 1_048_576),
    default: "1",
    unit: "",
    help: "number of entries, or of access-list rules, in the table",
};

/// Order in which entries are hit.
pub const TRAFFIC: Parameter = Parameter {
    key: "traffic",
    takes: ValueType::Word(&["one", "sequential", "random", "zipf"]),
    default: "one",
    unit: "",
    help: "order in which traffic hits the entries; random if there are several",
};

/// Fields that wildcard entries match.
pub const RULES: Parameter = Parameter {
    key: "rules",
    takes: ValueType::Word(&["ports", "addresses", "either"]),
    default: "ports",
    unit: "",
    help: "fields that wildcard entries match: both UDP ports, the IP destination (the UDP source \
           port varies), or one UDP port in turn (the other varies)",
};

const STYLE: Parameter = Parameter {
    key: "style",
    takes: ValueType::Word(&["acl", "fw", "ipc"]),
    default: "acl",
    unit: "",
    help: "with table=acl: style of the access list, of a router, a firewall or a host",
};

/// Parameters of a target's table.
pub const TABLES: &[Parameter] = &[TABLE, ENTRIES, TRAFFIC, RULES, STYLE];

/// Parameters of a table whose type and size the experiment sets.
pub const TABLES_OTHERS: &[Parameter] = &[RULES];

/// Loss ratio that counts as no loss.
pub const LOSS: Parameter = Parameter {
    key: "loss",
    takes: ValueType::Number(0.0, 0.5),
    default: "0.005",
    unit: "as a ratio",
    help: "loss ratio that a search allows; a throughput search also searches for zero loss",
};

const RESOLUTION: Parameter = Parameter {
    key: "resolution",
    takes: ValueType::Number(0.0005, 0.5),
    default: "0.02",
    unit: "as a ratio",
    help: "resolution of a throughput search, as a share of the link's rate",
};

/// Loss verification.
pub const VERIFY: Parameter = Parameter {
    key: "loss_verification",
    takes: ValueType::Integer(0, 10),
    default: "0",
    unit: "times",
    help: "loss verification: number of times a search repeats a load that missed its goal",
};

/// Parameters of throughput searches.
pub const SEARCHES: &[Parameter] = &[RESOLUTION, VERIFY];

/// Key of a stream file.
pub const STREAM: &str = "stream";

/// Stream file.
pub const STREAMS: &[Parameter] = &[Parameter {
    key: STREAM,
    takes: ValueType::Text("FILE.toml"),
    default: "",
    unit: "",
    help: "stream file that replaces the experiment's own streams",
}];

/// Frame sizes, including the FCS: an axis.
pub const FRAMES: Parameter = Parameter {
    key: "frame",
    takes: ValueType::Integers(64, 1518),
    default: "64",
    unit: "bytes",
    help: "frame sizes, frame check sequence included",
};

/// One frame size.
pub const FRAME: Parameter = Parameter {
    takes: ValueType::Integer(64, 1518),
    help: "frame size, frame check sequence included",
    ..FRAMES
};

/// Offered loads in percent: an axis.
pub const LOADS: Parameter = Parameter {
    key: "load",
    takes: ValueType::Numbers(0.001, 1000.0),
    default: "100",
    unit: "%",
    help: "offered loads, in percent of the nominal link",
};

/// One offered load in percent.
pub const LOAD: Parameter = Parameter {
    takes: ValueType::Number(0.001, 1000.0),
    help: "offered load, in percent of the nominal link",
    ..LOADS
};

/// Number of table entries, if the experiment sets their type: an axis.
pub const SIZES: Parameter = Parameter { takes: ValueType::Integers(1, 1_048_576), ..ENTRIES };

/// Number of table entries, as a single number.
pub const SIZE: Parameter = ENTRIES;

/// Iterates over the parameters of every run.
pub fn always() -> impl Iterator<Item = &'static Parameter> {
    RUN.iter().chain(TARGETS).chain(snmp::ALL).chain(device::ALL)
}

/// All groups with their titles.
pub const GROUPS: &[(&str, &[Parameter])] = &[
    ("Every run", RUN),
    ("Targets", TARGETS),
    ("Trials", TRIALS),
    ("Frames and loads", &[FRAMES, LOADS]),
    ("Tables", TABLES),
    ("Streams", STREAMS),
    ("Searches", &[LOSS, RESOLUTION, VERIFY]),
    ("Searches with several goals", goals::ALL),
    ("Controllers", control::ALL),
    ("Standard methods", methods::ALL),
    ("SNMP agents", snmp::ALL),
    ("External devices", device::ALL),
];

/// Iterates over all shared parameters, as declared in their groups.
pub fn all() -> impl Iterator<Item = &'static Parameter> {
    GROUPS.iter().flat_map(|(_, group)| group.iter())
}
