//! Links, with ranges of numbers and indices.
//!
//! In `<link from="out.PktsOut[*]" to="tx#*.EtherPktsIn"/>`, `#*` means all instances of a name and
//! `[*]` the same number of indices, from zero. Both ends advance together. A part without `*`
//! stays the same.

use roxmltree::Node;

use super::instances::Groups;
use crate::diagnostic::Code;
use crate::program::{End, GROUP_MAX, LINKS_MAX, Link, Program};
use crate::xml::Reader;

/// An end of a link in the document.
struct LinkEnd {
    instances: Vec<usize>,
    /// Whether the instances advance.
    several: bool,
    port: u32,
    index: Index,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Index {
    None,
    One(u32),
    All,
}

/// Reads `<links>` into the program.
pub fn read(
    reader: &mut Reader<'_, '_>,
    program: &mut Program,
    groups: &Groups,
    nodes: &[Node<'_, '_>],
) {
    for list in nodes {
        reader.only(*list, &[]);
        for node in reader.children(*list) {
            if node.tag_name().name() != "link" {
                reader.unknown(node, "use <link from=\"...\" to=\"...\"/>");
                continue;
            }
            reader.only(node, &["from", "to"]);
            let from = end(reader, program, groups, node, "from");
            let to = end(reader, program, groups, node, "to");
            let (Some(from), Some(to)) = (from, to) else { continue };
            link(reader, program, node, &from, &to);
        }
    }
}

/// Adds all links of a `<link>`.
fn link(
    reader: &mut Reader<'_, '_>,
    program: &mut Program,
    node: Node<'_, '_>,
    from: &LinkEnd,
    to: &LinkEnd,
) {
    let counts = [from, to].map(|end| if end.several { Some(end.instances.len()) } else { None });
    let place = reader.place(node);
    let count = match counts {
        [Some(a), Some(b)] if a != b => {
            let what = format!("{a} instances at one end, {b} at the other");
            reader.problems.add(Code::Range, &place, "", what, "link them one by one");
            return;
        }
        [Some(count), _] | [None, Some(count)] => count,
        [None, None] if [from, to].iter().any(|end| end.index == Index::All) => {
            let what = "[*] without #*".to_owned();
            reader.problems.add(Code::Range, &place, "", what, "write #* on one of the ends");
            return;
        }
        [None, None] => 1,
    };
    if program.links.len() + count > LINKS_MAX {
        let what = format!("too many links: at most {LINKS_MAX}");
        return reader.wrong(Code::XmlLimit, node, "", what, "");
    }
    for step in 0..count {
        let [from, to] = [from, to].map(|end| End {
            instance: end.instances[if end.several { step } else { 0 }],
            port: end.port,
            index: match end.index {
                Index::None => 0,
                Index::One(index) => index,
                Index::All => step as u32,
            },
        });
        program.links.push(Link { from, to, place: place.clone() });
    }
}

/// Parses `rx#*.NormalPathOut` or `cls.ClassifyOut[0]`.
fn end(
    reader: &mut Reader<'_, '_>,
    program: &Program,
    groups: &Groups,
    node: Node<'_, '_>,
    attribute: &str,
) -> Option<LinkEnd> {
    let text = reader.required(node, attribute)?;
    let place = reader.place_of(node, attribute);
    let mut wrong = |code: Code, what: String, hint: String| {
        reader.problems.add(code, &place, text, what, hint);
        None
    };
    let Some((name, port)) = text.split_once('.') else {
        let hint = "write INSTANCE.PORT, INSTANCE#2.PORT or INSTANCE.PORT[0]".to_owned();
        return wrong(Code::XmlAttribute, format!("missing port in \"{text}\""), hint);
    };
    let instances = match groups.find(name) {
        Ok(instances) => instances,
        Err(what) => return wrong(Code::UnknownInstance, what, String::new()),
    };
    let (port, index) =
        match port.split_once('[').map(|(port, rest)| (port, rest.strip_suffix(']'))) {
            None => (port, Index::None),
            Some((port, Some("*"))) => (port, Index::All),
            Some((port, index)) => {
                match index.and_then(|index| index.parse().ok()).filter(|index| *index < GROUP_MAX)
                {
                    Some(index) => (port, Index::One(index)),
                    None => {
                        let what = format!("the index is neither a number below {GROUP_MAX} nor *");
                        return wrong(Code::LinkIndex, what, String::new());
                    }
                }
            }
        };
    let class = program.class_of(instances[0]);
    let found = if attribute == "from" {
        class.output(port).map(|(at, port)| (at, port.group))
    } else {
        class.input(port).map(|(at, port)| (at, port.group))
    };
    let Some((number, group)) = found else {
        let names: Vec<&str> = if attribute == "from" {
            class.outputs.iter().map(|port| port.name.as_str()).collect()
        } else {
            class.inputs.iter().map(|port| port.name.as_str()).collect()
        };
        let side = if attribute == "from" { "output" } else { "input" };
        let what = format!("{} has no {side} \"{port}\"", class.name);
        return wrong(Code::UnknownPort, what, format!("use one of {}", names.join(", ")));
    };
    if group && index == Index::None {
        let what = format!("\"{port}\" is a group port");
        return wrong(Code::LinkIndex, what, format!("write {port}[0]"));
    }
    if !group && index != Index::None {
        let what = format!("\"{port}\" is a single port");
        return wrong(Code::LinkIndex, what, "remove the index".to_owned());
    }
    let several = name.ends_with("#*");
    Some(LinkEnd { instances, several, port: number, index })
}
