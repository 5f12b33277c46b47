//! Conditions for a comparison: `throughput_pps>=0.97`, `latency_ns_p99<=1.10`.
//!
//! A gate is a bound on the ratio of the new value to the base. Invariant: a gate applies to every
//! cell of its metric. A gate without a cell is a user error, never a pass.

use serde::Serialize;
use std::fmt;
use std::str::FromStr;

use crate::conclude::{Conclusion, Estimate, conclude};
use crate::direction::{self, Direction};
use record::{Metric, Name, schema1};

/// Outcome of a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The whole interval is beyond the gate's bound.
    Failed,
    /// The data are irregular, limited by the tester, or missing on one side.
    Doubtful,
    /// The interval contains the gate's bound.
    Inconclusive,
    /// The gate holds.
    Passed,
}

/// A bound on a ratio.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gate {
    /// The metric.
    pub metric: Metric,
    /// The side of the bound that the ratio must be on.
    pub side: Side,
    /// The bound, which is itself allowed.
    pub ratio: f64,
}

/// A side of a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// At least.
    AtLeast,
    /// At most.
    AtMost,
}

/// Default gates: metrics, and the allowed deterioration of each.
const BY_DEFAULT: [(Metric, f64); 15] = [
    (Metric::RatePpsForwarded, 0.97),
    (Metric::ThroughputPps, 0.97),
    (Metric::ThroughputPpsLossTolerated, 0.97),
    (Metric::ThroughputPpsRfc2544, 0.97),
    (Metric::ThroughputPpsTst009, 0.97),
    (Metric::ThroughputPpsNdr, 0.97),
    (Metric::ThroughputPpsPdr, 0.97),
    (Metric::ThroughputPpsQuickNdr, 0.97),
    (Metric::ThroughputPpsQuickPdr, 0.97),
    (Metric::FlowModsAddedPerS, 0.97),
    (Metric::FlowModsModifiedPerS, 0.97),
    (Metric::FlowModsDeletedPerS, 0.97),
    (Metric::FlowStatsPerS, 0.97),
    (Metric::LatencyNsP50, 1.10),
    (Metric::LatencyNsP99, 1.10),
];

/// Why a text is not a valid gate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GateError {
    /// It has neither `>=` nor `<=`.
    NoRelation(String),
    /// The text before the relation is not a metric (text, reason).
    NoMetric(String, String),
    /// The text after the relation is not a ratio between 0.01 and 100.
    NoRatio(String),
    /// The metric has no better direction.
    NoDirection(&'static str),
    /// The metric is a frame loss rate, which has no ratio if there is no loss.
    Loss(&'static str),
    /// The bound is on the wrong side (actual, expected).
    WrongSide(String, String),
}

impl Gate {
    /// The default gates.
    pub fn by_default() -> Vec<Gate> {
        let side = |ratio: f64| if ratio < 1.0 { Side::AtLeast } else { Side::AtMost };
        BY_DEFAULT.map(|(metric, ratio)| Gate { metric, side: side(ratio), ratio }).to_vec()
    }

    /// Outcome for a ratio. The gate fails by the wide interval and passes by the usual one.
    pub fn conclude(&self, ratio: &Estimate) -> Outcome {
        let found = match self.side {
            Side::AtLeast => conclude(ratio, self.ratio, f64::INFINITY),
            Side::AtMost => conclude(ratio, f64::NEG_INFINITY, self.ratio),
        };
        match found {
            Conclusion::Equivalent => Outcome::Passed,
            Conclusion::Greater | Conclusion::Smaller => Outcome::Failed,
            Conclusion::Undecided(_) => Outcome::Inconclusive,
        }
    }
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let relation = match self.side {
            Side::AtLeast => ">=",
            Side::AtMost => "<=",
        };
        write!(f, "{}{relation}{}", self.metric.name(), self.ratio)
    }
}

impl FromStr for Gate {
    type Err = GateError;

    fn from_str(text: &str) -> Result<Gate, GateError> {
        let split = |sign, side| text.split_once(sign).map(|(name, ratio)| (name, side, ratio));
        let found = split(">=", Side::AtLeast).or_else(|| split("<=", Side::AtMost));
        let (name, side, ratio) = found.ok_or_else(|| GateError::NoRelation(text.into()))?;
        let name = schema1::current_metric(name.trim());
        let metric: Metric = serde_json::from_value(name.into()).map_err(|error| {
            let why = Name::read(name).map_or_else(|why| why.to_string(), |_| error.to_string());
            GateError::NoMetric(name.into(), why)
        })?;
        let number: f64 = ratio.trim().parse().map_err(|_| GateError::NoRatio(ratio.into()))?;
        if !(0.01..=100.0).contains(&number) {
            return Err(GateError::NoRatio(ratio.into()));
        }
        if direction::is_loss(metric) {
            return Err(GateError::Loss(metric.name()));
        }
        let better = match direction::of(metric) {
            None => return Err(GateError::NoDirection(metric.name())),
            Some(Direction::Higher) => Side::AtLeast,
            Some(Direction::Lower) => Side::AtMost,
        };
        let gate = Gate { metric, side, ratio: number };
        if side != better {
            let meant = Gate { side: better, ..gate };
            return Err(GateError::WrongSide(gate.to_string(), meant.to_string()));
        }
        Ok(gate)
    }
}

impl fmt::Display for GateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let example = "write METRIC>=RATIO or METRIC<=RATIO, such as throughput_pps>=0.97";
        match self {
            GateError::NoRelation(text) => {
                write!(f, "invalid gate {text:?}: no relation (hint: {example})")
            }
            GateError::NoMetric(name, why) => write!(
                f,
                "unknown metric {name:?}: {why} (hint: run 'planimeter list metrics'; {example})"
            ),
            GateError::NoRatio(text) => write!(
                f,
                "invalid ratio {text:?}: expected 0.01 to 100, where 1 means no change (hint: \
                 {example})"
            ),
            GateError::NoDirection(name) => {
                write!(f, "no gate is possible for {name}: it has no better direction")
            }
            GateError::Loss(name) => write!(
                f,
                "no gate is possible for {name}: without loss it has no ratio (hint: use \
                 rate_pps_forwarded>=RATIO)"
            ),
            GateError::WrongSide(said, meant) => {
                write!(f, "{said} would fail an improvement (hint: write {meant})")
            }
        }
    }
}

impl std::error::Error for GateError {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effect::Effect;
    use record::{Interval, IntervalMethod};

    #[test]
    fn gates_round_trip() {
        for text in ["throughput_pps>=0.97", "latency_ns_p99<=1.1", "activation_ns_p50<=1.25"] {
            assert_eq!(text.parse::<Gate>().unwrap().to_string(), text);
        }
        assert_eq!("latency_ns_p99 <= 1.10".parse::<Gate>().unwrap().ratio, 1.1);
        for gate in Gate::by_default() {
            assert_eq!(gate.to_string().parse::<Gate>(), Ok(gate));
        }
    }

    #[test]
    fn an_invalid_gate_is_reported_with_a_hint() {
        for (text, wanted) in [
            ("throughput_pps", "METRIC>=RATIO"),
            ("throughput_pps=0.97", "METRIC>=RATIO"),
            ("speed>=0.97", "unknown metric \"speed\""),
            ("throughput_pps>=fast", "invalid ratio"),
            ("throughput_pps>=0", "invalid ratio"),
            ("throughput_pps>=NaN", "invalid ratio"),
            ("throughput_pps<=0.97", "write throughput_pps>=0.97"),
            ("latency_ns_p99>=1.1", "write latency_ns_p99<=1.1"),
            ("loss_ratio<=1.1", "rate_pps_forwarded"),
            ("rate_pps_offered>=0.9", "no gate"),
        ] {
            let message = text.parse::<Gate>().unwrap_err().to_string();
            assert!(message.contains(wanted) && !message.contains('\n'), "{text}: {message}");
        }
    }

    #[test]
    fn only_values_beyond_the_threshold_fail() {
        let gate: Gate = "throughput_pps>=0.97".parse().unwrap();
        let outcome = |low, high| {
            let method = IntervalMethod::Ranks;
            let interval = Some(Interval { low, high, level_percent: 99.0, method });
            let effect = Some(Effect { ratio: f64::midpoint(low, high), n: 5, interval });
            gate.conclude(&Estimate::of_effects(effect, effect))
        };
        assert_eq!(outcome(0.90, 0.96), Outcome::Failed);
        assert_eq!(outcome(0.90, 0.98), Outcome::Inconclusive);
        assert_eq!(outcome(0.97, 1.02), Outcome::Passed);
        assert_eq!(gate.conclude(&Estimate::of_effects(None, None)), Outcome::Inconclusive);
    }
}
