//! Problems of a document. A check collects all problems instead of stopping at the first.
//!
//! A problem has:
//!
//! - a stable code, which scripts and tests rely on,
//! - a place in a file,
//! - the path of the instance that it concerns,
//! - a description,
//! - a hint.
//!
//! A document with at least one error is rejected as a whole. Warnings do not reject a document.

use std::fmt;
use std::sync::Arc;

/// Maximum number of problems in the list of a document. Further problems are only counted.
pub const PROBLEMS_MAX: usize = 500;

/// Severity of a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The document is usable, but probably not what its author intends.
    Warning,
    /// The document is rejected.
    Error,
}

/// Defines [`Code`] with the name and severity of each variant.
macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident $name:literal $severity:ident,)*) => {
        /// Kind of a problem. The name is stable.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code { $($(#[$doc])* $variant,)* }

        impl Code {
            /// All codes.
            pub const ALL: &[Code] = &[$(Code::$variant,)*];

            /// Returns the stable name.
            pub fn name(self) -> &'static str {
                match self { $(Code::$variant => $name,)* }
            }

            /// Returns the severity of such a problem.
            pub fn severity(self) -> Severity {
                match self { $(Code::$variant => Severity::$severity,)* }
            }
        }
    };
}

codes! {
    /// The text is not well-formed XML, or has a document type declaration.
    XmlSyntax "xml-syntax" Error,
    /// The size, the depth or the number of elements exceeds a limit.
    XmlLimit "xml-limit" Error,
    /// An element is not valid at this place.
    XmlElement "xml-element" Error,
    /// An attribute is missing, unknown or invalid.
    XmlAttribute "xml-attribute" Error,
    /// The name of a frame, field or repeated part is duplicate or invalid.
    FrameName "frame-name" Error,
    /// A frame or field is not defined.
    FrameUnknown "frame-unknown" Error,
    /// A size, constant or expression is invalid.
    FrameField "frame-field" Error,
    /// The fields do not add up to whole octets.
    FrameOctets "frame-octets" Error,
    /// A length can exceed the buffer.
    FrameLength "frame-length" Error,
    /// Two cases of one `next` have the same value.
    FrameNext "frame-next" Error,
    /// Frames follow each other without consuming a byte.
    FrameLoop "frame-loop" Error,
    /// A condition cannot be parsed.
    Condition "condition" Error,
    /// A library is not available.
    UnknownLibrary "unknown-library" Error,
    /// No library defines the class.
    UnknownClass "unknown-class" Error,
    /// The class has no such port.
    UnknownPort "unknown-port" Error,
    /// The class has no such component.
    UnknownComponent "unknown-component" Error,
    /// No library defines the metadata item.
    UnknownMetadata "unknown-metadata" Error,
    /// The program has no such instance.
    UnknownInstance "unknown-instance" Error,
    /// The program has no such agent.
    UnknownAgent "unknown-agent" Error,
    /// The class has no such event.
    UnknownEvent "unknown-event" Error,
    /// The device does not exist.
    UnknownDevice "unknown-device" Error,
    /// The type does not allow the value.
    Value "value" Error,
    /// Only the element itself writes this component.
    ReadOnly "read-only" Error,
    /// Two items have the same name.
    Duplicate "duplicate" Error,
    /// Two rows have the same content key.
    DuplicateKey "duplicate-key" Error,
    /// Ranges of instances or indices do not fit each other.
    Range "range" Error,
    /// A group port has no index, or an index is given for a port that is not a group.
    LinkIndex "link-index" Error,
    /// An output has a second link.
    LinkSecond "link-second" Error,
    /// A cycle contains no queue.
    Cycle "cycle" Error,
    /// An input receives frames that it does not accept.
    FrameMismatch "frame-mismatch" Error,
    /// An input needs metadata that not every path to it produces.
    MetadataMissing "metadata-missing" Error,
    /// A rule or row selects an output without a link.
    DispatchUnlinked "dispatch-unlinked" Error,
    /// No frame can reach the instance.
    Unreachable "unreachable" Warning,
    /// An output has no link: frames that take it are dropped.
    Unconnected "unconnected" Warning,
    /// Frames have no room for a modification.
    EditRoom "edit-room" Error,
    /// Packets of usual size exceed the configured MTU when they leave.
    EditMtu "edit-mtu" Warning,
    /// An operation of Edit is not meaningful.
    EditOperation "edit-operation" Error,
    /// A port is bound twice.
    PortTwice "port-twice" Error,
    /// A port has no instance that receives from it or sends to it, or is not declared.
    PortUnbound "port-unbound" Warning,
    /// An instance refers to an undeclared port.
    PortUndeclared "port-undeclared" Error,
    /// The program needs more memory than the element may use.
    Resources "resources" Error,
    /// A rule can never match.
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
    /// File name as the caller gave it.
    pub file: Arc<str>,
    /// Line, from one. It is zero if the program did not come from a file.
    pub line: u32,
    /// Column in characters, from one.
    pub column: u32,
}

impl Place {
    /// Returns the place of an item that did not come from a file.
    pub fn none() -> Place {
        Place { file: "-".into(), line: 0, column: 0 }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// A problem of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Kind of the problem.
    pub code: Code,
    /// Place in the document.
    pub place: Place,
    /// Path of the item that it concerns: `cls#1/EtherDispatchTable[2]`, `Vlan.type`. May be empty.
    pub path: String,
    /// Description of the problem.
    pub what: String,
    /// Hint for a fix.
    pub hint: String,
}

impl Problem {
    /// Returns the severity of its code.
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
            write!(f, " (hint: {})", self.hint)?;
        }
        Ok(())
    }
}

/// The problems of a document, up to [`PROBLEMS_MAX`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Problems {
    list: Vec<Problem>,
    /// Number of errors added, including those that are not in the list.
    errors: usize,
    /// Number of problems that exceed the limit and are not in the list.
    pub left_out: usize,
}

impl Problems {
    /// Adds a problem: code, place and path, description, hint.
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

    /// Adds all problems of another list.
    pub fn extend(&mut self, others: Problems) {
        self.left_out += others.left_out;
        let listed = others.list.iter().filter(|p| p.severity() == Severity::Error).count();
        self.errors += others.errors - listed;
        for problem in others.list {
            self.push(problem);
        }
    }

    /// Returns true if the document is rejected.
    pub fn refuses(&self) -> bool {
        self.errors > 0
    }

    /// Returns true if further problems are only counted.
    pub fn is_full(&self) -> bool {
        self.list.len() >= PROBLEMS_MAX
    }

    /// Returns true if there are no problems.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns the problems, sorted by place.
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
    fn problem_codes_are_unique() {
        let names: std::collections::BTreeSet<_> =
            Code::ALL.iter().map(|code| code.name()).collect();
        assert_eq!(names.len(), Code::ALL.len());
    }

    #[test]
    fn problems_are_printed_with_position_path_and_hint_and_all_are_counted() {
        let place = Place { file: "a.fe.xml".into(), line: 3, column: 7 };
        let mut problems = Problems::default();
        problems.add(
            Code::Unreachable,
            &place,
            "sink#1",
            "no frame reaches it",
            "link an output to it",
        );
        assert!(!problems.refuses());
        problems.add(Code::UnknownClass, &place, "x#1", "no library has class \"Foo\"", "");
        assert!(problems.refuses());
        assert_eq!(
            problems.to_string(),
            "a.fe.xml:3:7: error[unknown-class] x#1: no library has class \"Foo\"\na.fe.xml:3:7: \
             warning[unreachable] sink#1: no frame reaches it (hint: link an output to it)\n"
        );
        for _ in 0..PROBLEMS_MAX {
            problems.add(Code::Cycle, &place, "", "again", "");
        }
        assert_eq!(problems.left_out, 2);
        assert!(problems.to_string().ends_with("and 2 more\n"));
    }
}
