//! Rule activation experiment: over the number of entries, for one operation and one probing mode.

use openflow::version::Version;
use packet::time::Nanos;

use super::rounds::{Rounds, Spot};
use super::rule_activation::{DENSER, Deed, Probing, RuleActivation, Update};
use super::rules::{Priorities, RULES_MAX, Rules};
use crate::catalog::Show;
use crate::experiments::{Context, Method};
use crate::parameter::own::{Declared, Takes};

/// Maximum share of the capacity of link and tester for dense probes.
const LOAD_SHARE: f64 = 0.8;

/// Name of the axis.
pub const AXIS: &str = "rules";

/// Prefix of metrics that are measured with probes after the barrier reply only.
const AFTER: &str = "late_probes_";

/// Number of entries.
pub const RULES: Declared = Declared {
    key: "rules_count",
    takes: Takes::Integers(1, RULES_MAX),
    default: "100,1000",
    unit: "rules",
    help: "how many rules are changed at once",
};

/// Operation on the entries.
pub const DEED: Declared = Declared {
    key: "deed",
    takes: Takes::Word(&["add", "modify", "delete"]),
    default: "add",
    unit: "",
    help: "what is done to the rules",
};

/// Order of the priorities.
pub const PRIORITIES: Declared = Declared {
    key: "priority_order",
    takes: Takes::Word(Priorities::WORDS),
    default: "same",
    unit: "",
    help: "in which order the rules' priorities come",
};

const PROBES: Declared = Declared {
    key: "probes",
    takes: Takes::Words(&["before", "after"]),
    default: "before,after",
    unit: "",
    help: "when probes run: from before the update, or only some time after the barrier's answer, which \
           tells rules that wait for a frame from rules that are late",
};

/// Probes per second.
pub const PROBES_PPS: Declared = Declared {
    key: "probes_pps",
    takes: Takes::Number(1.0, 2e7),
    default: "100000",
    unit: "frames/s",
    help: "probes in a second, all rules together: each rule's moment is known to half the time between \
           two of its probes, most of which go where rules come to act",
};

/// Probes per second of this experiment.
const PROBES_PPS_MOST: Declared = Declared {
    help: "probes in a second, all rules together, or fewer where the path loses them: each rule's moment is \
           known to half the time between two of its probes, most of which go where rules come to act",
    ..PROBES_PPS
};

/// Size of a probe.
pub const FRAME: Declared = Declared {
    key: "probe_bytes",
    takes: Takes::Integer(64, 1518),
    default: "96",
    unit: "bytes",
    help: "size of a probe, frame check sequence included",
};

/// OpenFlow versions that a module offers.
pub const VERSION: Declared = Declared {
    key: "version",
    takes: Takes::Words(&["1.0", "1.1", "1.2", "1.3", "1.4", "1.5"]),
    default: "1.0,1.3,1.4,1.5",
    unit: "",
    help: "versions of OpenFlow that are offered",
};

/// Maximum waiting time.
pub const PATIENCE: Declared = Declared {
    key: "patience",
    takes: Takes::Number(0.1, 600.0),
    default: "10",
    unit: "s",
    help: "how long rules are waited for",
};

const PROBES_AFTER: Declared = Declared {
    key: "probes_after",
    takes: Takes::Number(0.0, 60.0),
    default: "1",
    unit: "s",
    help: "how long after the barrier's answer probes begin that begin only then",
};

const LATE_WATCH: Declared = Declared {
    key: "late_watch",
    takes: Takes::Number(0.0, 60.0),
    default: "0.3",
    unit: "s",
    help: "how long rules are watched after such a probe, which may bring them to hardware",
};

const WATCH: Declared = Declared {
    key: "watch",
    takes: Takes::Number(0.0, 60.0),
    default: "0.05",
    unit: "s",
    help: "how long rules are watched once all of them act: whether one relapses, and what their frames take \
           then",
};

/// Maximum number of updates within a trial.
pub const UPDATES_MAX: Declared = Declared {
    key: "updates_max",
    takes: Takes::Integer(1, 100),
    default: "5",
    unit: "updates",
    help: "updates of one trial at most: the first is repeated with up to ten times as many probes where it does \
           not resolve batches or the barrier, then until a rule acts after the barrier's answer or 1.5 s have \
           passed; 1 for a single one with probes_pps even where the path loses probes",
};

/// Parameters of the experiment.
pub const PARAMETERS: [Declared; 12] = [
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
) -> [Declared; 12] {
    [
        Declared { default: rules, ..RULES },
        Declared { default: deed, ..DEED },
        Declared { default: priorities, ..PRIORITIES },
        Declared { default: "before", ..PROBES },
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
pub const SHOWS: &[Show] = &[
    Show::values(
        "Time until rules act and until the barrier is answered, by number of rules",
        &["data_plane_ns", "control_plane_ns"],
        &["activation_ns_p50", "activation_ns_p90", "barrier_gap_ns_max", "resolution_ns_p50"],
    ),
    Show::values(
        "What the barrier's answer is worth",
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
    Show::values(
        "What a rule's first frames took and its last ones: where they differ, software comes first",
        &["first_frame_ns_p50", "last_frame_ns_p50"],
        &["first_frame_ns_min", "probes_back_ratio"],
    ),
    Show::series("Rules that act over time", &["rules_acting"]),
    Show::series(
        "Place at which rules began to act over the place at which they were sent",
        &["place_acting"],
    ),
];

/// Returns the OpenFlow versions that the parameter names.
pub fn versions(context: &Context) -> Vec<Version> {
    let known = Version::SPOKEN;
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
pub fn with(context: &Context, parameters: &[Declared; 12]) -> Box<dyn Method> {
    let priorities = context.parameters.own.text(&parameters[2]);
    Box::new(Rounds::new(context, AXIS, spots(context, parameters, priorities, "")))
}

/// Returns the points with these defaults and this order of priorities.
///
/// Metrics of probes from before the update begin with `prefix`.
pub fn spots(
    context: &Context,
    parameters: &[Declared; 12],
    priorities: &str,
    prefix: &'static str,
) -> Vec<Spot> {
    let own = &context.parameters.own;
    let [rules, deed, _, probes, ..] = parameters;
    let deed = Deed::of(own.text(deed));
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
            let make = move |_| Box::new(RuleActivation::new(update.clone())) as Box<_>;
            spots.push(Spot::new(count as f64, 1.0, make).named(prefix));
        }
    }
    spots
}
