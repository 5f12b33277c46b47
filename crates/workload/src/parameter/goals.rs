//! Parameters of a search with several goals (RFC 9971): the goals, and changes to all of them.
//!
//! Users select goals by name. Unset values follow the goal's standard or common practice. They
//! have a separate module because no other experiments use them; parsing is the same.

use packet::time::Nanos;
use tester::search::mlr::goal::Goal;

use super::declaration::{Parameter, ValueType};
use super::{Effort, list, number};

/// A named goal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preset {
    /// RFC 2544 without further conditions.
    Rfc2544,
    /// ETSI GS NFV-TST 009, with loss verification.
    Tst009,
    /// Non-drop rate.
    Ndr,
    /// Partial-drop rate.
    Pdr,
    /// Non-drop rate, as a quick estimate.
    QuickNdr,
    /// Partial-drop rate, as a quick estimate.
    QuickPdr,
}

/// Default width between the bounds of goals without their own.
const WIDTH_MINUTES: f64 = 0.01;

/// Goals of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct Goals {
    /// Goals, each once.
    pub presets: Vec<Preset>,
    /// Width for all goals; `None` for their own.
    pub width: Option<f64>,
    /// Exceed ratio for all goals; `None` for their own.
    pub exceed: Option<f64>,
    /// Seconds of a full-length trial; `None` for the goals' own.
    pub final_s: Option<f64>,
    /// Seconds of the shortest trial; `None` for the goals' own.
    pub initial_s: Option<f64>,
    /// Seconds of full-length trials that decide a load; `None` for the goals' own.
    pub sum_s: Option<f64>,
    /// Seconds of trials after which a search ends with its current result.
    pub search_s: f64,
}

impl Preset {
    const ALL: [Preset; 6] = [
        Preset::Rfc2544,
        Preset::Tst009,
        Preset::Ndr,
        Preset::Pdr,
        Preset::QuickNdr,
        Preset::QuickPdr,
    ];

    /// Returns the name on the command line and in the record.
    pub fn name(self) -> &'static str {
        match self {
            Preset::Rfc2544 => "rfc2544",
            Preset::Tst009 => "tst009",
            Preset::Ndr => "ndr",
            Preset::Pdr => "pdr",
            Preset::QuickNdr => "quick-ndr",
            Preset::QuickPdr => "quick-pdr",
        }
    }

    /// Returns whether the goal allows some loss.
    pub fn is_partial(self) -> bool {
        matches!(self, Preset::Pdr | Preset::QuickPdr)
    }

    fn goal(self, loss_ratio: f64) -> Goal {
        match self {
            Preset::Rfc2544 => Goal::rfc2544(WIDTH_MINUTES),
            Preset::Tst009 => Goal::tst009(WIDTH_MINUTES),
            Preset::Ndr => Goal::ndr(),
            Preset::Pdr => Goal::pdr(loss_ratio),
            Preset::QuickNdr => Goal::quick(0.0),
            Preset::QuickPdr => Goal::quick(loss_ratio),
        }
    }
}

impl Goals {
    /// Returns the defaults for an effort.
    pub fn at(effort: Effort) -> Goals {
        let presets = match effort {
            Effort::Quick => vec![Preset::QuickNdr, Preset::QuickPdr],
            Effort::Standard | Effort::Full => vec![Preset::Ndr, Preset::Pdr],
        };
        let (width, exceed, final_s, initial_s, sum_s) = (None, None, None, None, None);
        Goals { presets, width, exceed, final_s, initial_s, sum_s, search_s: 3600.0 }
    }

    /// Returns each goal with its name; those that allow some loss allow `loss_ratio`.
    ///
    /// User-defined values apply as they are, and unset values depend on them.
    pub fn wanted(&self, loss_ratio: f64) -> Vec<(Preset, Goal)> {
        let time = |seconds: Option<f64>| seconds.map(Nanos::from_secs_f64);
        let changed = |preset: &Preset| {
            let own = preset.goal(loss_ratio);
            let duration_final = time(self.final_s).unwrap_or(own.duration_final);
            let goal = Goal {
                exceed_ratio: self.exceed.unwrap_or(own.exceed_ratio),
                width: self.width.unwrap_or(own.width),
                duration_final,
                duration_initial: time(self.initial_s)
                    .unwrap_or(own.duration_initial.min(duration_final)),
                duration_sum: time(self.sum_s).unwrap_or(own.duration_sum.max(duration_final)),
                ..own
            };
            (*preset, goal)
        };
        self.presets.iter().map(changed).collect()
    }

    /// Applies a value that its declaration allows; `None` if the value is invalid or the parameter
    /// is not one of these.
    pub(super) fn assign(&mut self, key: &str, value: &str) -> Option<()> {
        match key {
            "goals" => self.presets = presets(value)?,
            "goal_width" => self.width = Some(number(value)?),
            "goal_exceed_ratio" => self.exceed = Some(number(value)?),
            "goal_final" => self.final_s = Some(number(value)?),
            "goal_initial" => self.initial_s = Some(number(value)?),
            "goal_duration_sum" => self.sum_s = Some(number(value)?),
            "search_seconds" => self.search_s = number(value)?,
            _ => return None,
        }
        Some(())
    }
}

/// Parses a list of goal names, each once; `quick` means two goals.
fn presets(text: &str) -> Option<Vec<Preset>> {
    let named = |name: &str| match name {
        "quick" => Some(vec![Preset::QuickNdr, Preset::QuickPdr]),
        name => Preset::ALL.into_iter().find(|preset| preset.name() == name).map(|it| vec![it]),
    };
    let found: Vec<Preset> = list(text, named)?.into_iter().flatten().collect();
    let is_once = |(place, preset): (usize, &Preset)| !found[..place].contains(preset);
    found.iter().enumerate().all(is_once).then_some(found.clone())
}

/// All parameters of this module.
pub const ALL: &[Parameter] = &[
    Parameter {
        key: "goals",
        takes: ValueType::Text(
            "ndr, pdr, quick, quick-ndr, quick-pdr, rfc2544, tst009, comma-separated, each once",
        ),
        default: "quick quick; ndr,pdr",
        unit: "",
        help: "goals of the search; the loss that pdr allows is set by loss=",
    },
    Parameter {
        key: "goal_width",
        takes: ValueType::Number(0.0005, 0.5),
        default: "",
        unit: "",
        help: "resolution of a goal, as a share of its upper bound (ndr, pdr 0.005; rfc2544, \
               tst009 0.01; quick 0.02)",
    },
    Parameter {
        key: "goal_exceed_ratio",
        takes: ValueType::Number(0.0, 0.95),
        default: "",
        unit: "",
        help: "share of trial time with more loss than a goal allows (0.5; rfc2544 0)",
    },
    Parameter {
        key: "goal_final",
        takes: ValueType::Number(0.01, 3600.0),
        default: "",
        unit: "s",
        help: "duration of a full-length trial (ndr, pdr 1; rfc2544, tst009 60; quick 0.5)",
    },
    Parameter {
        key: "goal_initial",
        takes: ValueType::Number(0.01, 3600.0),
        default: "",
        unit: "s",
        help: "duration of the shortest trial, at most goal_final (1; quick 0.5)",
    },
    Parameter {
        key: "goal_duration_sum",
        takes: ValueType::Number(0.01, 86_400.0),
        default: "",
        unit: "s",
        help: "total duration of full-length trials at a load, at least goal_final (ndr, pdr 21; \
               rfc2544 60; tst009 120; quick 5)",
    },
    Parameter {
        key: "search_seconds",
        takes: ValueType::Number(1.0, 86_400.0),
        default: "3600",
        unit: "s",
        help: "maximum trial time of a search",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_parsed_and_invalid_values_change_nothing() {
        let mut goals = Goals::at(Effort::Standard);
        let right = [
            ("goals", "tst009,quick,ndr"),
            ("goal_width", "0.05"),
            ("goal_exceed_ratio", "0.2"),
            ("goal_final", "2"),
            ("goal_initial", "0.1"),
            ("goal_duration_sum", "10"),
            ("search_seconds", "60"),
        ];
        assert_eq!(right.map(|(key, _)| key)[..], ALL.iter().map(|it| it.key).collect::<Vec<_>>());
        for (key, value) in right {
            let before = goals.clone();
            assert_eq!(goals.assign(key, value), Some(()), "{key}");
            assert_ne!(goals, before, "{key}");
            let before = goals.clone();
            for wrong in ["", "x", "ndr,ndr", "quick,quick-ndr"] {
                assert_eq!(goals.assign(key, wrong), None, "{key}={wrong}");
            }
            assert_eq!(goals, before, "{key}");
        }
        let names: Vec<&str> = goals.presets.iter().map(|preset| preset.name()).collect();
        assert_eq!(names, ["tst009", "quick-ndr", "quick-pdr", "ndr"]);
        assert_eq!(goals.assign("seconds", "1"), None);
    }

    #[test]
    fn presets_follow_their_standards_and_open_values_follow_the_parameters() {
        let mut goals = Goals::at(Effort::Standard);
        goals.assign("goals", "rfc2544,tst009,ndr,pdr").unwrap();
        let whole = |goal: Goal| {
            [goal.duration_final, goal.duration_sum].map(|time| time.0 / 1_000_000_000)
        };
        let values: Vec<([u64; 2], f64, f64)> = goals
            .wanted(0.005)
            .into_iter()
            .map(|(_, goal)| (whole(goal), goal.loss_ratio, goal.exceed_ratio))
            .collect();
        assert_eq!(
            values,
            [
                ([60, 60], 0.0, 0.0),
                ([60, 120], 0.0, 0.5),
                ([1, 21], 0.0, 0.5),
                ([1, 21], 0.005, 0.5),
            ]
        );
        goals.assign("goal_final", "30").unwrap();
        for (preset, goal) in goals.wanted(0.005) {
            assert_eq!(goal.check(), Ok(()), "{}", preset.name());
            assert_eq!(goal.duration_final, Nanos::from_secs(30));
        }
        // Contradictory values are accepted here; `Goal::check` reports them.
        goals.assign("goal_duration_sum", "2").unwrap();
        assert!(goals.wanted(0.005).iter().all(|(_, goal)| goal.check().is_err()));
    }

    #[test]
    fn every_goal_has_a_position_in_the_record() {
        for preset in Preset::ALL {
            assert!(record::metric_of_goal(preset.name()).is_some(), "{preset:?}");
        }
    }
}
