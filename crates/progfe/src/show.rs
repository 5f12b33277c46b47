//! Drawings of a program's graph: SVG, or a Graphviz description (DOT).

use std::fmt::Write;

use crate::program::Program;

pub mod layers;
pub mod svg;

pub use svg::svg;

/// Writes the graph as DOT: a box for each block, an arrow for each link. `label` returns the text
/// of a link.
pub fn dot(program: &Program, label: &dyn Fn(usize) -> Option<String>) -> String {
    let mut text =
        format!("digraph {} {{\n  rankdir=LR;\n  node [shape=box];\n", quoted(&program.name));
    let mut line = |line: String| {
        writeln!(text, "  {line}").expect("writing to a String cannot fail");
    };
    for (at, instance) in program.instances.iter().enumerate() {
        let class = program.short_class(at);
        line(format!("b{at} [label={}];", quoted(&format!("{}\n{class}", instance.name))));
    }
    for (at, link) in program.links.iter().enumerate() {
        let port =
            |name: String| name.split_once('.').map_or(String::new(), |(_, port)| port.into());
        let mut words = port(program.output_name(link.from));
        if let Some(said) = label(at) {
            words = format!("{words}\n{said}");
        }
        let (from, to) = (link.from.instance, link.to.instance);
        line(format!("b{from} -> b{to} [label={}];", quoted(&words)));
    }
    text.push_str("}\n");
    text
}

/// Quotes a DOT string.
fn quoted(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("\"{escaped}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn script_strings_are_escaped() {
        assert_eq!(quoted("a\"b\\c\nd"), "\"a\\\"b\\\\c\\nd\"");
    }
}
