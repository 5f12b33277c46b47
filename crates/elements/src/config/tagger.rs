//! Configuration of a VLAN tagger as a TOML file: its two ports and its rules.
//!
//! ```toml
//! access = 1                         # the port with untagged frames
//! trunk = 2                          # the port with tagged frames
//! [[rule]]                           # the first matching rule determines the tag
//! dscp = [40, 47]                    # optional: first and last DSCP
//! udp_destination = 5060             # optional
//! vlan = 100
//! priority = 5                       # default: 0
//! ```

use dataplane::tagger::{self, DSCP_MAX, RULES_MAX};
use packet::frame::PortNo;
use packet::header::vlan::VID_MASK;
use serde::{Deserialize, Serialize};

use super::{FileError, PortConfig, Problem};

/// A VLAN tagger.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TaggerConfig {
    /// The port with untagged frames.
    pub access: PortNo,
    /// The port with tagged frames.
    pub trunk: PortNo,
    /// The rules; the first matching rule applies.
    pub rule: Vec<TagRule>,
}

/// A rule that determines the tag of matching frames. A missing field matches all frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct TagRule {
    /// First and last IPv4 DSCP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dscp: Option<(u8, u8)>,
    /// UDP destination port over IPv4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub udp_destination: Option<u16>,
    /// The VLAN, 0 to 4095.
    pub vlan: u16,
    /// The priority, 0 to 7.
    #[serde(default)]
    pub priority: u8,
}

impl Default for TaggerConfig {
    fn default() -> Self {
        TaggerConfig { access: 1, trunk: 2, rule: Vec::new() }
    }
}

impl TaggerConfig {
    /// Parses the configuration of a tagger from TOML.
    pub fn from_toml(text: &str) -> Result<Self, FileError> {
        toml::from_str(text).map_err(|error| FileError::new(text, &error))
    }

    pub(super) fn validate(&self, ports: &[PortConfig], problems: &mut Vec<Problem>) {
        for (key, port) in [("access", self.access), ("trunk", self.trunk)] {
            if !ports.iter().any(|known| known.number == port) {
                problems.push(Problem::NoSuchPort { key, port });
            }
        }
        if self.access == self.trunk {
            problems.push(Problem::OneSide(self.access));
        }
        problems.extend(rule_problems(&self.rule));
    }
}

/// Returns the problems of rules.
pub fn rule_problems(rules: &[TagRule]) -> Vec<Problem> {
    let mut problems = Vec::new();
    if rules.len() > RULES_MAX {
        problems.push(Problem::TooMany { key: "rule", have: rules.len(), max: RULES_MAX });
    }
    for rule in rules {
        let (vlan, priority) = (rule.vlan.into(), rule.priority.into());
        problems.extend(Problem::check("vlan", vlan, 0, VID_MASK.into()));
        problems.extend(Problem::check("priority", priority, 0, 7));
        if let Some((first, last)) = rule.dscp {
            problems.extend(Problem::check("dscp", last.into(), first.into(), DSCP_MAX.into()));
        }
    }
    problems
}

impl From<&TagRule> for tagger::Rule {
    fn from(rule: &TagRule) -> Self {
        tagger::Rule {
            dscp: rule.dscp.map(|(first, last)| first..=last),
            udp_destination: rule.udp_destination,
            vlan: rule.vlan,
            priority: rule.priority,
        }
    }
}

impl From<&tagger::Rule> for TagRule {
    fn from(rule: &tagger::Rule) -> Self {
        TagRule {
            dscp: rule.dscp.as_ref().map(|range| (*range.start(), *range.end())),
            udp_destination: rule.udp_destination,
            vlan: rule.vlan,
            priority: rule.priority,
        }
    }
}

impl From<&TaggerConfig> for tagger::Settings {
    fn from(config: &TaggerConfig) -> Self {
        let rules = config.rule.iter().map(tagger::Rule::from).collect();
        tagger::Settings { access: config.access, trunk: config.trunk, rules }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str, ports: &[PortNo]) -> Vec<String> {
        let port = |&number| PortConfig { number, spec: format!("tap:t{number}") };
        let ports: Vec<PortConfig> = ports.iter().map(port).collect();
        let mut problems = Vec::new();
        TaggerConfig::from_toml(text).unwrap().validate(&ports, &mut problems);
        problems.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_file_is_parsed_and_all_its_problems_are_reported() {
        let rules = "trunk = 3\n[[rule]]\ndscp = [40, 47]\nvlan = 4095\npriority = 7\n\
                     [[rule]]\nudp_destination = 53\nvlan = 0\n";
        let config = TaggerConfig::from_toml(rules).unwrap();
        assert_eq!((config.access, config.trunk, config.rule.len()), (1, 3, 2));
        assert_eq!(config.rule[0].dscp, Some((40, 47)));
        assert_eq!(problems(rules, &[1, 3]), [""; 0]);
        let wrong = "access = 2\n[[rule]]\ndscp = [9, 8]\nvlan = 4096\npriority = 8\n\
                     [[rule]]\ndscp = [0, 64]\nvlan = 1\n";
        let reported = problems(wrong, &[1]).join("; ");
        for part in [
            "access: no port 2",
            "trunk: no port 2",
            "2 is both access and trunk",
            "vlan: 4096 is not between 0 and 4095",
            "priority: 8 is not between 0 and 7",
            "dscp: 8 is not between 9 and 63",
            "dscp: 64 is not between 0 and 63",
        ] {
            assert!(reported.contains(part), "{reported:?} lacks {part:?}");
        }
        let message = TaggerConfig::from_toml("[[rule]]\nvlan = 1\ndcsp = [1, 2]\n").unwrap_err();
        assert_eq!(message.line, Some(3), "{message}");
    }
}
