//! Rule activation experiment: over the number of entries, for one operation and one probing mode.

use openflow::version::Version;
use packet::time::Nanos;

use super::rounds::{ModulePoint, RepeatedModule};
use super::rule_activation::{DENSER, FlowModCommand, Probing, RuleActivation, Update};
use super::rules::{Priorities, RULES_MAX, Rules};
use crate::show::Chart;
use crate::{Context, Method};
use workload::parameter::declaration::{Parameter, ValueType};

/// Maximum share of the capacity of link and tester for dense probes.
const LOAD_SHARE: f64 = 0.8;

/// Name of the axis.
pub const AXIS: &str = "rules";

/// Prefix of metrics that are measured with probes after the barrier reply only.
const AFTER: &str = "late_probes_";

/// Number of entries.
pub const RULES: Parameter = Parameter {
    key: "rules_count",
    takes: ValueType::Integers(1, RULES_MAX),
    default: "100,1000",
    unit: "rules",
    help: "number of entries that one update changes",
};

/// Operation on the entries.
pub const DEED: Parameter = Parameter {
    key: "command",
    takes: ValueType::Word(&["add", "modify", "delete"]),
    default: "add",
    unit: "",
    help: "operation on the entries",
};

/// Order of the priorities.
pub const PRIORITIES: Parameter = Parameter {
    key: "priority_order",
    takes: ValueType::Word(Priorities::WORDS),
    default: "same",
    unit: "",
    help: "order of the priorities of the entries",
};

const PROBES: Parameter = Parameter {
    key: "probes",
    takes: ValueType::Words(&["before", "after"]),
    default: "before,after",
    unit: "",
    help: "start of the probes: before the update, or only some time after the barrier reply, to \
           distinguish entries that wait for a frame from late entries",
};

/// Probes per second.
pub const PROBES_PPS: Parameter = Parameter {
    key: "probes_pps",
    takes: ValueType::Number(1.0, 2e7),
    default: "100000",
    unit: "frames/s",
    help: "probe rate, all entries together; the uncertainty of an activation time is half the \
           interval between two probes of its entry; most probes go to entries that are about to \
           activate",
};

/// Probes per second of this experiment.
const PROBES_PPS_MOST: Parameter = Parameter {
    help: "probe rate, all entries together, lowered where the path loses probes; the uncertainty \
           of an activation time is half the interval between two probes of its entry; most probes \
           go to entries that are about to activate",
    ..PROBES_PPS
};

/// Size of a probe.
pub const FRAME: Parameter = Parameter {
    key: "probe_bytes",
    takes: ValueType::Integer(64, 1518),
    default: "96",
    unit: "bytes",
    help: "probe size, including the frame check sequence",
};

/// OpenFlow versions that a module offers.
pub const VERSION: Parameter = Parameter {
    key: "version",
    takes: ValueType::Words(&["1.0", "1.1", "1.2", "1.3", "1.4", "1.5"]),
    default: "1.0,1.3,1.4,1.5",
    unit: "",
    help: "OpenFlow versions to offer",
};

/// Maximum waiting time.
pub const PATIENCE: Parameter = Parameter {
    key: "timeout_s",
    takes: ValueType::Number(0.1, 600.0),
    default: "10",
    unit: "s",
    help: "timeout for the entries and for barrier replies",
};

const PROBES_AFTER: Parameter = Parameter {
    key: "probe_start_delay_s",
    takes: ValueType::Number(0.0, 60.0),
    default: "1",
    unit: "s",
    help: "delay from the barrier reply to the probes that start after it",
};

const LATE_WATCH: Parameter = Parameter {
    key: "post_probe_observation_s",
    takes: ValueType::Number(0.0, 60.0),
    default: "0.3",
    unit: "s",
    help: "observation time after such a probe, which may move its entry to hardware",
};

const WATCH: Parameter = Parameter {
    key: "watch",
    takes: ValueType::Number(0.0, 60.0),
    default: "0.05",
    unit: "s",
    help: "observation time after all entries are active, for relapses and for the latency of \
           frames",
};

/// Maximum number of updates within a trial.
pub const UPDATES_MAX: Parameter = Parameter {
    key: "updates_max",
    takes: ValueType::Integer(1, 100),
    default: "5",
    unit: "updates",
    help: "maximum number of updates per trial: if the first does not resolve batches or the \
           barrier reply, it is repeated with up to ten times as many probes; then updates repeat \
           until an entry activates after the barrier reply or 1.5 s have passed; 1 for a single \
           update at probes_pps, even where the path loses probes",
};

/// Parameters of the experiment.
pub const PARAMETERS: [Parameter; 12] = [
    RULES,
    DEED,
    PRIORITIES,
    PROBES,
    PROBES_PPS_MOST,
    FRAME,
    VERSION,
    PATIENCE,
    PROBES_AFTER,
    LATE_WATCH,
    WATCH,
    UPDATES_MAX,
];

/// Returns the parameters with other defaults, and with probes from before the update only.
///
/// The defaults are the number of entries, the operation and the order of priorities.
pub const fn preset(
    rules: &'static str,
    deed: &'static str,
    priorities: &'static str,
) -> [Parameter; 12] {
    [
        Parameter { default: rules, ..RULES },
        Parameter { default: deed, ..DEED },
        Parameter { default: priorities, ..PRIORITIES },
        Parameter { default: "before", ..PROBES },
        PROBES_PPS_MOST,
        FRAME,
        VERSION,
        PATIENCE,
        PROBES_AFTER,
        LATE_WATCH,
        WATCH,
        UPDATES_MAX,
    ]
}

/// Values that the report shows.
pub const SHOWS: &[Chart] = &[
    Chart::values(
        "Activation delay and barrier reply time by number of entries",
        &["data_plane_ns", "control_plane_ns"],
        &["activation_ns_p50", "activation_ns_p90", "barrier_gap_ns_max", "resolution_ns_p50"],
    ),
    Chart::values(
        "Reliability of the barrier reply",
        &["rules_premature_ratio"],
        &[
            "stale_frames",
            "rules_active_ratio",
            "late_probes_first_probe_active_ratio",
            "late_probes_first_frame_ratio",
            "order_tau_index",
            "inversions_count",
            "updates_premature_ratio",
            "updates_count",
            "errors_count",
        ],
    ),
    Chart::values(
        "Latency of the first and the last frames of an entry; a difference shows an initial \
         software path",
        &["first_frame_ns_p50", "last_frame_ns_p50"],
        &["first_frame_ns_min", "probes_back_ratio"],
    ),
    Chart::series("Active entries over time", &["rules_acting"]),
    Chart::series("Activation position over send position", &["place_acting"]),
];

/// Returns the OpenFlow versions that the parameter names.
pub fn versions(context: &Context) -> Vec<Version> {
    let known = Version::SUPPORTED;
    let named = |text: &str| known.iter().copied().find(|version| version.to_string() == text);
    context.parameters.own.words(&VERSION).filter_map(named).collect()
}

/// Returns the probe rate of a pass with higher resolution, as far as link and tester allow.
fn probes_pps_max(context: &Context, probes_pps: f64) -> f64 {
    let frame_bytes = context.parameters.own.integer(&FRAME) as u16;
    (DENSER * probes_pps).min(LOAD_SHARE * context.most_pps(frame_bytes)).max(probes_pps)
}

/// Creates the method for one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    with(context, &PARAMETERS)
}

/// Creates the method with these defaults.
pub fn with(context: &Context, parameters: &[Parameter; 12]) -> Box<dyn Method> {
    let set = as_set(context, parameters);
    Box::new(RepeatedModule::new(context, AXIS, spots(context, parameters, set, "")))
}

/// Returns the operation and the order of priorities that are set.
pub fn as_set<'a>(context: &'a Context, parameters: &[Parameter; 12]) -> (&'a str, &'a str) {
    let own = &context.parameters.own;
    (own.text(&parameters[1]), own.text(&parameters[2]))
}

/// Returns the points with these defaults, for this operation and this order of priorities.
///
/// Metrics of probes from before the update, and series for figures, begin with `prefix`.
pub fn spots(
    context: &Context,
    parameters: &[Parameter; 12],
    (deed, priorities): (&str, &str),
    prefix: &'static str,
) -> Vec<ModulePoint> {
    let own = &context.parameters.own;
    let [rules, _, _, probes, ..] = parameters;
    let deed = FlowModCommand::of(deed);
    let after = Nanos::from_secs_f64(own.number(&PROBES_AFTER));
    let patience = own.number(&PATIENCE);
    let mut spots = Vec::new();
    for count in own.integers(rules) {
        for when in own.words(probes) {
            let (probing, prefix) = match when {
                "after" => (Probing::After(after), AFTER),
                _ => (Probing::Before, prefix),
            };
            let update = Update {
                prefix,
                rules: Rules::new(context, count as u32),
                deed,
                priorities: Priorities::of(priorities, context.seed),
                probing,
                probes_pps: own.number(&PROBES_PPS),
                probes_pps_max: probes_pps_max(context, own.number(&PROBES_PPS)),
                updates_max: own.integer(&UPDATES_MAX) as usize,
                frame_bytes: own.integer(&FRAME) as usize,
                versions: versions(context),
                patience: Nanos::from_secs_f64(patience),
                late_watch: Nanos::from_secs_f64(own.number(&LATE_WATCH)),
                watch: Nanos::from_secs_f64(own.number(&WATCH)),
            };
            let seconds = update.seconds(context.kind);
            let make = move |_| Box::new(RuleActivation::new(update.clone())) as Box<_>;
            spots.push(ModulePoint::new(count as f64, seconds, make).named(prefix));
        }
    }
    spots
}
