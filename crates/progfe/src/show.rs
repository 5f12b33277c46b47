//! Graphviz description (DOT) of a program's graph: a box for each block, an arrow for each link.
//!
//! - Links without frames are grey. The width of other links increases with their traffic.
//! - A block is darker for a higher cost.

use std::fmt::Write;

use crate::program::Program;

/// Measured values of a running program, by index. Unknown values are omitted.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Notes {
    /// Lines below the drawing.
    pub lines: Vec<String>,
    /// Values of each link.
    pub links: Vec<Note>,
    /// Values of each block.
    pub blocks: Vec<Note>,
}

/// Values of a link or block.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Note {
    /// Lines of text: rates of a link, cost and drops of a block.
    pub lines: Vec<String>,
    /// Traffic or cost relative to the largest one, 0 to 1.
    pub share: f64,
}

/// Writes the graph as DOT.
pub fn dot(program: &Program, notes: &Notes) -> String {
    let mut text =
        format!("digraph {} {{\n  rankdir=LR;\n  node [shape=box];\n", quoted(&program.name));
    let mut line = |line: String| {
        writeln!(text, "  {line}").expect("writing to a String cannot fail");
    };
    if !notes.lines.is_empty() {
        line(format!("label={};", quoted(&notes.lines.join("\n"))));
    }
    for (at, instance) in program.instances.iter().enumerate() {
        let mut words = vec![instance.name.clone(), program.short_class(at).to_owned()];
        let mut style = String::new();
        if let Some(Note { lines, share }) = notes.blocks.get(at) {
            words.extend_from_slice(lines);
            style = format!(", style=filled, fillcolor=\"0.1 {:.2} 1\"", share / 2.0);
        }
        line(format!("b{at} [label={}{style}];", quoted(&words.join("\n"))));
    }
    for (at, link) in program.links.iter().enumerate() {
        let name = program.output_name(link.from);
        let mut words = vec![name.split_once('.').map_or("", |(_, port)| port).to_owned()];
        let mut style = String::new();
        if let Some(Note { lines, share }) = notes.links.get(at) {
            words.extend_from_slice(lines);
            style = match *share > 0.0 {
                true => format!(", penwidth={:.1}", 1.0 + 3.0 * share),
                false => ", color=gray".to_owned(),
            };
        }
        let (from, to) = (link.from.instance, link.to.instance);
        line(format!("b{from} -> b{to} [label={}{style}];", quoted(&words.join("\n"))));
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
    use crate::program::document::no_files;
    use crate::xml::Source;

    #[test]
    fn script_strings_are_escaped() {
        assert_eq!(quoted("a\"b\\c\nd"), "\"a\\\"b\\\\c\\nd\"");
    }

    #[test]
    fn every_block_link_and_drop_is_in_the_graph() {
        let text = include_str!("../../../examples/progfe/bridge.fe.xml");
        let (program, _) = Program::load(&Source::new("a.fe.xml", text), &no_files);
        let program = program.unwrap();
        let link = Note { lines: vec!["5/s".to_owned()], share: 0.5 };
        let mut blocks = vec![Note::default(); program.instances.len()];
        blocks[0].lines.push("drops, disabled: 3".to_owned());
        let links = vec![link; program.links.len()];
        let graph = dot(&program, &Notes { lines: vec!["one second".to_owned()], links, blocks });
        assert_eq!(graph.matches("\\n5/s\", penwidth=2.5]").count(), program.links.len());
        let has = |what: &str| assert!(graph.contains(what), "{what}: {graph}");
        program.instances.iter().for_each(|it| has(&format!("[label=\"{}\\n", it.name)));
        ["\\ndrops, disabled: 3\"", "label=\"one second\";"].iter().for_each(|what| has(what));
        assert!(!dot(&program, &Notes::default()).contains("fillcolor"));
    }
}
