//! What is wrong with a document: every problem is collected, none stops the search for others.
//!
//! A problem has a stable code (scripts and tests rely on it), a place in a file, the path of the
//! instance that it is about, what is wrong, and a hint how to mend it. A document with one error is
//! refused whole; warnings refuse nothing.

use std::fmt;
use std::sync::Arc;

/// Problems that are kept of one document; further ones are only counted.
pub const PROBLEMS_MAX: usize = 500;

/// Whether a document with this problem can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// It can be used, but is hardly what its author wants.
    Warning,
    /// It is refused whole.
    Error,
}

/// Defines [`Code`] with the name and severity of each.
macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident $name:literal $severity:ident,)*) => {
        /// What kind of problem it is. The name is stable.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code { $($(#[$doc])* $variant,)* }

        impl Code {
            /// Every code there is.
            pub const ALL: &[Code] = &[$(Code::$variant,)*];

            /// The stable name.
            pub fn name(self) -> &'static str {
                match self { $(Code::$variant => $name,)* }
            }

            /// Whether a document with such a problem is refused.
            pub fn severity(self) -> Severity {
                match self { $(Code::$variant => Severity::$severity,)* }
            }
        }
    };
}

codes! {
    /// The text is not well-formed XML, or has a document type.
    XmlSyntax "xml-syntax" Error,
    /// Text, depth or number of elements is beyond a limit.
    XmlLimit "xml-limit" Error,
    /// An element that has no meaning where it stands.
    XmlElement "xml-element" Error,
    /// An attribute that is missing, unknown or unreadable.
    XmlAttribute "xml-attribute" Error,
    /// A frame, field or repeated part with a name that is taken or is no name.
    FrameName "frame-name" Error,
    /// A frame or field that no definition has.
    FrameUnknown "frame-unknown" Error,
    /// A size, constant or expression that cannot be.
    FrameField "frame-field" Error,
    /// Fields that do not add up to whole octets.
    FrameOctets "frame-octets" Error,
    /// A length that can pass the buffer.
    FrameLength "frame-length" Error,
    /// Two cases of one `next` for the same value.
    FrameNext "frame-next" Error,
    /// Frames that follow each other without ever consuming a byte.
    FrameLoop "frame-loop" Error,
    /// A condition that cannot be read.
    Condition "condition" Error,
    /// A library that is not at hand.
    UnknownLibrary "unknown-library" Error,
    /// A class that no library has.
    UnknownClass "unknown-class" Error,
    /// A port that its class does not have.
    UnknownPort "unknown-port" Error,
    /// A component that its class does not have.
    UnknownComponent "unknown-component" Error,
    /// Metadata that no library defines.
    UnknownMetadata "unknown-metadata" Error,
    /// An instance that the program does not have.
    UnknownInstance "unknown-instance" Error,
    /// An agent that the program does not have.
    UnknownAgent "unknown-agent" Error,
    /// An event that its class does not have.
    UnknownEvent "unknown-event" Error,
    /// A device that is not there.
    UnknownDevice "unknown-device" Error,
    /// A value that its type does not allow.
    Value "value" Error,
    /// A component that only the element itself writes.
    ReadOnly "read-only" Error,
    /// Two things of one name.
    Duplicate "duplicate" Error,
    /// Two rows with the same content key.
    DuplicateKey "duplicate-key" Error,
    /// Ranges of instances or indices that do not fit each other.
    Range "range" Error,
    /// A port of a group without index, or an index where there is no group.
    LinkIndex "link-index" Error,
    /// A second link on an output.
    LinkSecond "link-second" Error,
    /// A cycle in which no queue stands.
    Cycle "cycle" Error,
    /// An input that is given frames it does not take.
    FrameMismatch "frame-mismatch" Error,
    /// Metadata that an input needs and that not every way to it produces.
    MetadataMissing "metadata-missing" Error,
    /// A rule or row that leads to an output without a link.
    DispatchUnlinked "dispatch-unlinked" Error,
    /// An instance to which no frame comes.
    Unreachable "unreachable" Warning,
    /// An output without a link: what goes there is dropped.
    Unconnected "unconnected" Warning,
    /// A change that frames have no room for.
    EditRoom "edit-room" Error,
    /// Packets of usual size that leave with more than the MTU that is set.
    EditMtu "edit-mtu" Warning,
    /// An operation of Edit that makes no sense.
    EditOperation "edit-operation" Error,
    /// A port that is bound twice.
    PortTwice "port-twice" Error,
    /// A port that no instance receives from or sends to, or one that is not declared.
    PortUnbound "port-unbound" Warning,
    /// An instance that is for a port which is not declared.
    PortUndeclared "port-undeclared" Error,
    /// More memory than the element may use.
    Resources "resources" Error,
    /// A rule that can never hold.
    NeverTrue "never-true" Warning,
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The name by which the file was given.
    pub file: Arc<str>,
    /// Line, from one; zero where a program did not come from a file.
    pub line: u32,
    /// Column in characters, from one.
    pub column: u32,
}

impl Place {
    /// The place of something that did not come from a file.
    pub fn none() -> Place {
        Place { file: "-".into(), line: 0, column: 0 }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// What kind of problem.
    pub code: Code,
    /// Where it stands.
    pub place: Place,
    /// What it is about, as a path: `cls#1/EtherDispatchTable[2]`, `Vlan.type`; may be empty.
    pub path: String,
    /// What is wrong.
    pub what: String,
    /// How to mend it.
    pub hint: String,
}

impl Problem {
    /// Whether it refuses the document.
    pub fn severity(&self) -> Severity {
        self.code.severity()
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity() {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        write!(f, "{}: {severity}[{}]", self.place, self.code)?;
        if !self.path.is_empty() {
            write!(f, " {}", self.path)?;
        }
        write!(f, ": {}", self.what)?;
        if !self.hint.is_empty() {
            write!(f, " ({})", self.hint)?;
        }
        Ok(())
    }
}

/// All problems of a document, up to [`PROBLEMS_MAX`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Problems {
    list: Vec<Problem>,
    /// Errors among all that were added.
    errors: usize,
    /// How many were added beyond the limit and are not in the list.
    pub left_out: usize,
}

impl Problems {
    /// Adds a problem: kind, place and path, what is wrong, how to mend it.
    pub fn add(
        &mut self,
        code: Code,
        place: &Place,
        path: impl Into<String>,
        what: impl Into<String>,
        hint: impl Into<String>,
    ) {
        let (path, what, hint) = (path.into(), what.into(), hint.into());
        self.push(Problem { code, place: place.clone(), path, what, hint });
    }

    /// Adds a problem.
    pub fn push(&mut self, problem: Problem) {
        self.errors += usize::from(problem.severity() == Severity::Error);
        if self.list.len() < PROBLEMS_MAX {
            self.list.push(problem);
        } else {
            self.left_out += 1;
        }
    }

    /// Adds all of another search.
    pub fn extend(&mut self, others: Problems) {
        self.left_out += others.left_out;
        let listed = others.list.iter().filter(|p| p.severity() == Severity::Error).count();
        self.errors += others.errors - listed;
        for problem in others.list {
            self.push(problem);
        }
    }

    /// Whether the document is refused.
    pub fn refuses(&self) -> bool {
        self.errors > 0
    }

    /// Whether further ones are only counted.
    pub fn is_full(&self) -> bool {
        self.list.len() >= PROBLEMS_MAX
    }

    /// Whether there is nothing at all.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// What was found, in the order of the places.
    pub fn sorted(&self) -> Vec<&Problem> {
        let mut list: Vec<&Problem> = self.list.iter().collect();
        list.sort_by(|a, b| (&a.place, a.code).cmp(&(&b.place, b.code)));
        list
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for problem in self.sorted() {
            writeln!(f, "{problem}")?;
        }
        if self.left_out > 0 {
            writeln!(f, "and {} more", self.left_out)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_codes_differ() {
        let names: std::collections::BTreeSet<_> =
            Code::ALL.iter().map(|code| code.name()).collect();
        assert_eq!(names.len(), Code::ALL.len());
    }

    #[test]
    fn a_problem_is_shown_with_place_path_and_hint_and_all_are_counted() {
        let place = Place { file: "a.fe.xml".into(), line: 3, column: 7 };
        let mut problems = Problems::default();
        problems.add(
            Code::Unreachable,
            &place,
            "sink#1",
            "no frame comes here",
            "link an output to it",
        );
        assert!(!problems.refuses());
        problems.add(Code::UnknownClass, &place, "x#1", "no library has class \"Foo\"", "");
        assert!(problems.refuses());
        assert_eq!(
            problems.to_string(),
            "a.fe.xml:3:7: error[unknown-class] x#1: no library has class \"Foo\"\n\
             a.fe.xml:3:7: warning[unreachable] sink#1: no frame comes here (link an output to it)\n"
        );
        for _ in 0..PROBLEMS_MAX {
            problems.add(Code::Cycle, &place, "", "again", "");
        }
        assert_eq!(problems.left_out, 2);
        assert!(problems.to_string().ends_with("and 2 more\n"));
    }
}
