//! Targets from another build of this program, with their names on the command line, which live as
//! long as the process.
//!
//! A name is `TARGET@PROGRAM`, such as `switch@./before/planimeter`: the switch, bridge, router or
//! tagger of the program at that path. `ovs@PREFIX` is the Open vSwitch installed below this
//! folder, such as a fork configured with `--prefix=/opt/ovs`. The tester always comes from this
//! program, so that one and the same tester measures both builds. Invariant: equal texts give equal
//! [`BuildTarget`]s, so that a target's kind stays a small value that is copied.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use testbed::peer::openvswitch::check_prefix;

use super::name::TargetKind;

/// Separator between a target and its program.
pub const MARK: char = '@';

/// Limit of names in one process.
const TARGETS_MAX: usize = 64;

/// Targets that another build can provide.
const KINDS: [TargetKind; 9] = [
    TargetKind::Switch,
    TargetKind::SwitchFirstCome,
    TargetKind::SwitchFrameThread,
    TargetKind::Bridge,
    TargetKind::BridgeFewBuckets,
    TargetKind::Router,
    TargetKind::RouterCache,
    TargetKind::Tagger,
    TargetKind::Ovs,
];

/// A target of another build.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BuildTarget(u16);

/// Error of a build's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BuildError {
    /// The target is not one of this project's: the text.
    Unsupported(String),
    /// The program cannot be run: the path, and why.
    NoProgram(String, String),
    /// No Open vSwitch is installed below this folder: the folder, and the missing file.
    NoPrefix(String, PathBuf),
    /// The limit of names is reached.
    TooMany,
}

struct NamedBuild {
    text: &'static str,
    kind: TargetKind,
    program: PathBuf,
    site: &'static str,
    about: &'static str,
}

/// Entries are never removed, because copies of their index exist everywhere.
static KEPT: Mutex<Vec<&'static NamedBuild>> = Mutex::new(Vec::new());

impl BuildTarget {
    /// Returns the target that this text names; `None` if it names no build.
    pub fn parse(text: &str) -> Option<Result<BuildTarget, BuildError>> {
        let (kind, program) = text.split_once(MARK)?;
        // Device names can contain the separator, too.
        if kind.starts_with("openflow:") || kind.starts_with("device:") {
            return None;
        }
        let known = KINDS.into_iter().find(|known| known.name() == kind);
        Some(match known {
            Some(kind) => BuildTarget::keep(text, kind, program),
            None => Err(BuildError::Unsupported(kind.into())),
        })
    }

    fn keep(text: &str, kind: TargetKind, program: &str) -> Result<BuildTarget, BuildError> {
        let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = kept.iter().position(|it| it.text == text) {
            return Ok(BuildTarget(place as u16));
        }
        if kept.len() >= TARGETS_MAX {
            return Err(BuildError::TooMany);
        }
        let refused = |why: String| BuildError::NoProgram(program.into(), why);
        // A process in the lab may have another working directory.
        let found = Path::new(program).canonicalize();
        let found = found.map_err(|error| refused(error.to_string()))?;
        if kind == TargetKind::Ovs {
            check_prefix(&found)
                .map_err(|missing| BuildError::NoPrefix(program.into(), missing))?;
        } else if !found.is_file() {
            return Err(refused("not a file".into()));
        }
        let place = kept.len() as u16;
        kept.push(Box::leak(Box::new(NamedBuild {
            text: text.to_owned().leak(),
            kind,
            program: found,
            site: format!("build{place}").leak(),
            about: format!("{}, from {program}", kind.about()).leak(),
        })));
        Ok(BuildTarget(place))
    }

    fn kept(self) -> &'static NamedBuild {
        let kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get(usize::from(self.0)).expect("targets are created by registration")
    }

    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        self.kept().text
    }

    /// Returns a one-line description.
    pub fn about(self) -> &'static str {
        self.kept().about
    }

    /// Returns the name of its site in the lab.
    pub fn site(self) -> &'static str {
        self.kept().site
    }

    /// Returns the target that the build provides.
    pub fn kind(self) -> TargetKind {
        self.kept().kind
    }

    /// Returns the program, or the prefix of an Open vSwitch.
    pub fn program(self) -> &'static Path {
        &self.kept().program
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BuildError::Unsupported(kind) => {
                let known = KINDS.map(TargetKind::name).join(", ");
                write!(f, "{kind:?} does not support other builds (hint: use one of {known})")
            }
            BuildError::NoPrefix(prefix, missing) => write!(
                f,
                "{prefix} is not a prefix of Open vSwitch: {} is missing (hint: run './configure \
                 --prefix={prefix} && make install')",
                missing.display()
            ),
            BuildError::NoProgram(program, why) => {
                write!(
                    f,
                    "cannot use the program {program}: {why} (hint: name a planimeter program, \
                     such as switch@./before/planimeter)"
                )
            }
            BuildError::TooMany => {
                write!(f, "too many targets of other builds: at most {TARGETS_MAX} are supported")
            }
        }
    }
}

impl std::error::Error for BuildError {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::Link;
    use workload::Technology;

    #[test]
    fn a_build_has_the_kind_of_its_base_target() {
        let text = "bridge@/proc/self/exe";
        let kind: TargetKind = text.parse().unwrap();
        assert_eq!((kind.name(), kind.technology()), (text, Technology::Bridging));
        assert!(kind.is_planimeter() && kind.runs_on(Link::Veth) && !kind.runs_on(Link::Memory));
        assert_eq!(text.parse(), Ok(kind));
    }

    #[test]
    fn an_invalid_build_is_reported() {
        let error_for = |text: &str| text.parse::<TargetKind>().unwrap_err().to_string();
        assert!(
            error_for("switch@/no/where").contains("/no/where"),
            "{}",
            error_for("switch@/no/where")
        );
        assert!(error_for("switch@/").contains("not a file"));
        assert!(error_for("testpmd@/bin/true").contains("\"testpmd\" does not support"));
        let no_prefix = error_for("ovs@/sys");
        assert!(no_prefix.contains("/sys/sbin/ovs-vswitchd is missing"), "{no_prefix}");
    }
}
