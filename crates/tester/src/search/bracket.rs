//! Progress of a search for observers: the bracket so far, the current value, and the end
//! condition.
//!
//! All searches report the same fields, whether they search for a load, a length, a number of
//! entries or a message rate. The progress is not part of a result or record.
//!
//! Invariant: all values are in one unit.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// What a search looks for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchQuantity {
    /// Name of the value: `throughput`.
    pub what: Cow<'static, str>,
    /// Condition of the goal: `nothing lost`.
    pub goal: Cow<'static, str>,
    /// Unit of all values: `frames/s`.
    pub unit: Cow<'static, str>,
}

/// Progress of a search.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Bracket {
    /// What the search looks for.
    pub sought: SearchQuantity,
    /// The value of the current trial.
    pub tried: f64,
    /// Highest value that met the goal.
    pub met: Option<f64>,
    /// Lowest value that missed the goal.
    pub missed: Option<f64>,
    /// Upper limit of the value.
    pub most: f64,
    /// Bracket width at which the search ends. None if it ends by another condition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width: Option<f64>,
}

impl SearchQuantity {
    /// Creates a description from these texts.
    pub fn new(what: &'static str, goal: &'static str, unit: &'static str) -> SearchQuantity {
        SearchQuantity { what: what.into(), goal: goal.into(), unit: unit.into() }
    }

    /// The highest load in frames per second with at most this frame loss rate.
    pub fn load(what: &'static str, loss_ratio: f64) -> SearchQuantity {
        SearchQuantity { goal: loss(loss_ratio), ..SearchQuantity::new(what, "", "frames/s") }
    }
}

/// Returns the condition for this maximum loss.
fn loss(ratio: f64) -> Cow<'static, str> {
    match ratio {
        0.0 => "nothing lost".into(),
        // Percentages as users enter them: 0.005 is 0.5 %.
        ratio => format!("at most {} % lost", (ratio * 1e8).round() / 1e6).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loss_condition_is_printed_in_percent() {
        let goals =
            [0.0, 0.005, 0.001, 1e-7].map(|ratio| SearchQuantity::load("throughput", ratio).goal);
        let wanted =
            ["nothing lost", "at most 0.5 % lost", "at most 0.1 % lost", "at most 0.00001 % lost"];
        assert_eq!(goals, wanted);
    }
}
