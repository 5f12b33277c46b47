//! Cases in which Open vSwitch behaves differently, and why.
//!
//! A line is `VERSIONS PATTERN :: REASON`; the versions are `*` or a list such as `1.0,1.3`. A
//! reason that begins with `no peer` means that Open vSwitch lacks the tested feature. A pattern
//! that no case matches is an error.

use std::path::Path;

use openflow::version::Version;

use crate::case::Case;
use crate::clauses::matches;

/// One explanation.
pub struct Difference {
    /// Versions; empty for all.
    pub versions: Vec<String>,
    /// Cases by name.
    pub pattern: String,
    /// The reason.
    pub reason: String,
}

/// All explanations.
pub struct Differences(pub Vec<Difference>);

impl Differences {
    pub fn read(path: &Path, cases: &[Case]) -> Differences {
        let text = std::fs::read_to_string(path).unwrap();
        let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let all = lines.map(|line| {
            let (head, reason) =
                line.split_once(" :: ").expect("a difference ends with :: and why");
            let (versions, pattern) = head.split_once(' ').expect("VERSIONS PATTERN");
            assert!(
                cases.iter().any(|case| matches(pattern, &case.name)),
                "differences.txt: no case fits {pattern}"
            );
            Difference {
                versions: versions
                    .split(',')
                    .filter(|one| *one != "*")
                    .map(str::to_owned)
                    .collect(),
                pattern: pattern.to_owned(),
                reason: reason.to_owned(),
            }
        });
        Differences(all.collect())
    }

    /// Returns whether a difference of this case is explained.
    pub fn explains(&self, name: &str, version: Version) -> bool {
        self.why(name, version).is_some()
    }

    /// Returns the explanation.
    pub fn why(&self, name: &str, version: Version) -> Option<&str> {
        let version = version.to_string();
        let fits = |one: &&Difference| {
            (one.versions.is_empty() || one.versions.contains(&version))
                && matches(&one.pattern, name)
        };
        self.0.iter().find(fits).map(|one| one.reason.as_str())
    }
}
