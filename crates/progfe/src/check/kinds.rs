//! Frame types at inputs.
//!
//! Classes declare the frame types of their inputs and outputs (RFC 5812 section 4.8.3). The two
//! ends of a link must have a type in common. Some types contain others (RFC 6956 section 4.3);
//! `Arbitrary` contains all.

use crate::diagnostic::{Code, Problems};
use crate::program::Program;

/// Types with the types that they contain.
const HOLDS: &[(&str, &[&str])] = &[
    ("EthernetAll", &["EthernetII"]),
    ("IPv4", &["IPv4Unicast", "IPv4Multicast"]),
    ("IPv6", &["IPv6Unicast", "IPv6Multicast"]),
];

/// Adds links on which no frame can pass.
pub fn check(program: &Program, problems: &mut Problems) {
    for link in &program.links {
        let given = &program.class_of(link.from.instance).outputs[link.from.port as usize].frames;
        let taken = &program.class_of(link.to.instance).inputs[link.to.port as usize].frames;
        if given.is_empty() || taken.is_empty() {
            continue;
        }
        if !given.iter().any(|given| taken.iter().any(|taken| agree(given, taken))) {
            let what = format!(
                "{} outputs {}, but {} accepts {}",
                program.output_name(link.from),
                given.join(", "),
                program.input_name(link.to),
                taken.join(", "),
            );
            let path = program.input_name(link.to);
            problems.add(Code::FrameMismatch, &link.place, path, what, "add a block between them");
        }
    }
}

fn agree(a: &str, b: &str) -> bool {
    let holds = |outer: &str, inner: &str| {
        outer == "Arbitrary"
            || HOLDS.iter().any(|(name, inside)| *name == outer && inside.contains(&inner))
    };
    a == b || holds(a, b) || holds(b, a)
}
