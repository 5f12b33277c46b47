//! Replies of a tagger: its rules and counters.

use dataplane::tagger::{Rule, Tagger};
use serde_json::{Value, json};

use super::not_for;
use crate::config::TagRule;
use crate::config::tagger::rule_problems;
use crate::control::request::{Request, Resource};

/// Processes a request that only a tagger supports.
pub(super) fn answer(request: Request, tagger: &mut Tagger) -> Result<Value, String> {
    match request {
        Request::Get(Resource::Rules) => {
            let rules = tagger.settings().rules.iter();
            Ok(rules.map(|rule| json!(TagRule::from(rule))).collect())
        }
        Request::SetRules(rules) => {
            if let Some(problem) = rule_problems(&rules).first() {
                return Err(problem.to_string());
            }
            tagger.set_rules(rules.iter().map(Rule::from).collect());
            Ok(json!({ "rules": rules.len() }))
        }
        other => Err(not_for("tagger", &other)),
    }
}

/// Returns the counters of a tagger except drops.
pub(super) fn counters(tagger: &Tagger) -> Value {
    let counters = tagger.counters;
    json!({ "tagged": counters.tagged, "untagged": counters.untagged, "passed": counters.passed })
}
