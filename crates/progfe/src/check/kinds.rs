//! Which kinds of frames arrive where.
//!
//! Classes say which frames their inputs take and their outputs give (RFC 5812 section 4.8.3): a link
//! between the two must have a kind in common. Kinds that hold others (RFC 6956 section 4.3) are
//! taken with what they hold; `Arbitrary` holds all.

use crate::problem::{Code, Problems};
use crate::program::Program;

/// Kinds with those that they hold.
const HOLDS: &[(&str, &[&str])] = &[
    ("EthernetAll", &["EthernetII"]),
    ("IPv4", &["IPv4Unicast", "IPv4Multicast"]),
    ("IPv6", &["IPv6Unicast", "IPv6Multicast"]),
];

/// Adds links on which nothing can pass.
pub fn check(program: &Program, problems: &mut Problems) {
    for link in &program.links {
        let given = &program.class_of(link.from.instance).outputs[link.from.port as usize].frames;
        let taken = &program.class_of(link.to.instance).inputs[link.to.port as usize].frames;
        if given.is_empty() || taken.is_empty() {
            continue;
        }
        if !given.iter().any(|given| taken.iter().any(|taken| agree(given, taken))) {
            let what = format!(
                "{} gives {}, {} takes {}",
                program.output_name(link.from),
                given.join(", "),
                program.input_name(link.to),
                taken.join(", "),
            );
            let path = program.input_name(link.to);
            problems.add(Code::FrameMismatch, &link.place, path, what, "put a block between them");
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
