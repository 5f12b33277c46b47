//! Targets programmed by a ProGFE graph, with their names on the command line, which live as long
//! as the process.
//!
//! A name is `progfe:FILE`, or `progfe:NAME` of a [shipped] program. The file is a runnable program. The program's classes determine whether
//! it is measured as a bridge, router or tagger. Invariant: equal texts give equal
//! [`ProGfeTarget`]s, so that a target's kind stays a small value that is copied.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use progfe::program::Program;
use progfe::role::Role;
use progfe::shipped;
use progfe::xml::Source;

mod dry_run;

/// Prefix of such a target's name.
pub const PREFIX: &str = "progfe:";

/// Limit of names in one process.
const TARGETS_MAX: usize = 1024;

/// A target programmed by a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProGfeTarget(u16);

/// Error of a program's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProGfeError {
    /// The file cannot be read: its name, and why.
    Unreadable(String, String),
    /// The program is rejected, with all its errors.
    Refused(String),
    /// It has no role that can be measured.
    NoRole(String),
    /// The limit of names is reached.
    TooMany(usize),
}

impl fmt::Display for ProGfeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProGfeError::Unreadable(file, why) => write!(f, "cannot read {file}: {why}"),
            ProGfeError::Refused(problems) => f.write_str(problems),
            ProGfeError::NoRole(file) => write!(
                f,
                "cannot use {file} as a target: unknown kind of program (hint: use one LearnSearch \
                 for a bridge, one IPv4UcastLPM, IPv4NextHop and EtherEncap each for a router, or \
                 Match and Edit for a tagger)"
            ),
            ProGfeError::TooMany(most) => {
                write!(f, "too many programs: a run supports at most {most}")
            }
        }
    }
}

struct NamedProgram {
    text: &'static str,
    file: PathBuf,
    site: &'static str,
    about: &'static str,
    program: Arc<Program>,
    role: Role,
}

/// Entries are never removed, because copies of their index exist everywhere.
static KEPT: Mutex<Vec<&'static NamedProgram>> = Mutex::new(Vec::new());

impl ProGfeTarget {
    /// Returns the target that this text names; it starts with [`PREFIX`].
    pub fn parse(text: &str) -> Result<ProGfeTarget, ProGfeError> {
        let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = kept.iter().position(|it| it.text == text) {
            return Ok(ProGfeTarget(place as u16));
        }
        if kept.len() >= TARGETS_MAX {
            return Err(ProGfeError::TooMany(TARGETS_MAX));
        }
        let said = text.strip_prefix(PREFIX).unwrap_or(text);
        let program = read(said)?;
        let role = Role::of(&program).ok_or_else(|| ProGfeError::NoRole(said.into()))?;
        let file = match shipped::text(said) {
            Some(_) => said.into(),
            // A process in the lab may have another working directory.
            None => Path::new(said)
                .canonicalize()
                .map_err(|error| ProGfeError::Unreadable(said.into(), error.to_string()))?,
        };
        let place = kept.len() as u16;
        kept.push(Box::leak(Box::new(NamedProgram {
            text: text.to_owned().leak(),
            file,
            site: format!("progfe{place}").leak(),
            about: format!("built-in ProGFE element with program {}", program.name).leak(),
            program: Arc::new(program),
            role,
        })));
        Ok(ProGfeTarget(place))
    }

    fn kept(self) -> &'static NamedProgram {
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

    /// The program's file, or the name of a shipped program.
    pub fn file(self) -> &'static Path {
        &self.kept().file
    }

    /// Returns the role in which it is measured.
    pub fn role(self) -> Role {
        self.kept().role
    }

    /// The program.
    pub fn program(self) -> Arc<Program> {
        Arc::clone(&self.kept().program)
    }

    /// Returns the number of ports that its program declares: from 1 on without a gap, since the
    /// tester connects to them in order.
    pub fn ports(self) -> usize {
        let program = self.program();
        let is_declared = |number: &u32| program.ports.iter().any(|port| port.number == *number);
        (1..).take_while(is_declared).count()
    }
}

/// Reads and checks a program, which may refer to files in its folder.
fn read(file: &str) -> Result<Program, ProGfeError> {
    let unreadable =
        |error: std::io::Error| ProGfeError::Unreadable(file.into(), error.to_string());
    let text = match shipped::text(file) {
        Some(text) => text.to_owned(),
        None => std::fs::read_to_string(file).map_err(unreadable)?,
    };
    let folder = Path::new(file).parent().unwrap_or(Path::new(""));
    let beside =
        |name: &str| std::fs::read_to_string(folder.join(name)).map_err(|error| error.to_string());
    let (program, problems) = Program::load(&Source::new(file, &text), &beside);
    program.ok_or_else(|| ProGfeError::Refused(problems.to_string().trim_end().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_target_with_the_role_of_its_program() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/progfe");
        let text = format!("{PREFIX}{folder}/bridge.fe.xml");
        let target = ProGfeTarget::parse(&text).unwrap();
        assert_eq!(ProGfeTarget::parse(&text), Ok(target));
        assert_eq!((target.name(), target.program().name.as_str()), (text.as_str(), "bridge"));
        let router = ProGfeTarget::parse(&format!("{PREFIX}{folder}/router.fe.xml"));
        assert_eq!(router.map(ProGfeTarget::role), Ok(Role::Router));
        let vlan = ProGfeTarget::parse(&format!("{PREFIX}{folder}/vlan.fe.xml"));
        assert_eq!(vlan.map(ProGfeTarget::role), Ok(Role::Tagger));
        let shipped = ProGfeTarget::parse("progfe:bridge-complex").unwrap();
        assert_eq!((shipped.role(), shipped.file()), (Role::Bridge, Path::new("bridge-complex")));
        let missing = ProGfeTarget::parse("progfe:nothing.fe.xml");
        assert!(matches!(missing, Err(ProGfeError::Unreadable(..))), "{missing:?}");
    }
}
