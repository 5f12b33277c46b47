//! How far a search has come, for whoever watches it: between what it is, what is tried next, and when it is done.
//!
//! All searches tell the same, whatever they look for: a load, a length, a number of entries, a rate of messages. It is no result and stands in
//! no record. Invariant: what it says is in one unit.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// What is searched for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sought {
    /// Its name: `throughput`.
    pub what: Cow<'static, str>,
    /// What has to hold: `nothing lost`.
    pub goal: Cow<'static, str>,
    /// The unit of all values: `frames/s`.
    pub unit: Cow<'static, str>,
}

/// How far a search has come.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Bracket {
    /// What is searched for.
    pub sought: Sought,
    /// What is tried now.
    pub tried: f64,
    /// The highest value that met the goal.
    pub met: Option<f64>,
    /// The lowest that missed it.
    pub missed: Option<f64>,
    /// The highest that there is.
    pub most: f64,
    /// The search is done when the two are so close to each other; absent where it ends otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width: Option<f64>,
}

impl Sought {
    /// Of these words.
    pub fn new(what: &'static str, goal: &'static str, unit: &'static str) -> Sought {
        Sought { what: what.into(), goal: goal.into(), unit: unit.into() }
    }

    /// The most frames per second of which no more than this share is lost.
    pub fn load(what: &'static str, loss_ratio: f64) -> Sought {
        Sought { goal: loss(loss_ratio), ..Sought::new(what, "", "frames/s") }
    }
}

/// What has to hold of a loss.
fn loss(ratio: f64) -> Cow<'static, str> {
    match ratio {
        0.0 => "nothing lost".into(),
        // Shares are written as people set them: 0.005 is 0.5 %.
        ratio => format!("at most {} % lost", (ratio * 1e8).round() / 1e6).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_to_hold_of_a_loss_is_said_in_percent() {
        let goals = [0.0, 0.005, 0.001, 1e-7].map(|ratio| Sought::load("throughput", ratio).goal);
        let wanted =
            ["nothing lost", "at most 0.5 % lost", "at most 0.1 % lost", "at most 0.00001 % lost"];
        assert_eq!(goals, wanted);
    }
}
