//! Blocks, their names and numbers.
//!
//! `<lfb id="rx" class="EtherMACIn" instances="1..2">` defines `rx#1` and `rx#2`, with the numbers
//! 1 and 2 among the instances of the class. Without `instances` it defines one block with the
//! smallest free number.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use forces::Class;
use roxmltree::Node;

use super::settings::{Settings, near};
use crate::diagnostic::Code;
use crate::program::{INSTANCES_MAX, Instance, PREFIX, Program, VALUES_MAX};
use crate::xml::Reader;

/// Instances by their names in the document.
#[derive(Debug, Default)]
pub struct Groups(BTreeMap<String, Vec<(Option<u32>, usize)>>);

impl Groups {
    /// Returns the instances of `rx` (if there is only one), `rx#2` or `rx#*`.
    pub fn find(&self, name: &str) -> Result<Vec<usize>, String> {
        let (id, number) = match name.split_once('#') {
            Some((id, number)) => (id, Some(number)),
            None => (name, None),
        };
        let Some(group) = self.0.get(id).filter(|group| !group.is_empty()) else {
            return Err(format!("no instance \"{id}\""));
        };
        match number {
            Some("*") => Ok(group.iter().map(|(_, at)| *at).collect()),
            Some(number) => {
                let wanted = number.parse().ok();
                let found = group.iter().find(|(known, _)| known.is_some() && *known == wanted);
                found.map(|(_, at)| vec![*at]).ok_or(format!("\"{id}\" has no instance {number}"))
            }
            None if group.len() == 1 => Ok(vec![group[0].1]),
            None => {
                Err(format!("\"{id}\" has {} instances: select with {id}#1 or {id}#*", group.len()))
            }
        }
    }
}

/// A `<lfb>` with a known class.
struct Block<'n, 'i> {
    node: Node<'n, 'i>,
    id: String,
    class: Arc<Class>,
    /// First and last number, if given.
    range: Option<(u32, u32)>,
    reset: bool,
}

/// Reads `<instances>` into the program.
pub fn read(reader: &mut Reader<'_, '_>, program: &mut Program, nodes: &[Node<'_, '_>]) -> Groups {
    let mut blocks = Vec::new();
    for list in nodes {
        reader.only(*list, &[]);
        for node in reader.children(*list) {
            if node.tag_name().name() == "lfb" {
                blocks.extend(block(reader, program, node));
            } else {
                reader.unknown(node, "use <lfb id=\"...\" class=\"...\">");
            }
        }
    }
    let mut taken: BTreeSet<(u32, u32)> = BTreeSet::new();
    for block in &blocks {
        if let Some((first, last)) = block.range {
            taken.extend((first..=last).map(|number| (block.class.id, number)));
        }
    }
    let mut groups = Groups::default();
    let mut room = VALUES_MAX;
    let mut given: BTreeSet<(u32, u32)> = BTreeSet::new();
    for block in &blocks {
        let numbers: Vec<u32> = match block.range {
            Some((first, last)) => (first..=last).collect(),
            None => {
                let free = (1..).find(|number| taken.insert((block.class.id, *number)));
                free.into_iter().collect()
            }
        };
        if program.instances.len() + numbers.len() > INSTANCES_MAX {
            let what = format!("too many instances: at most {INSTANCES_MAX}");
            reader.wrong(Code::XmlLimit, block.node, &block.id, what, "");
            return groups;
        }
        let first = program.instances.len();
        for number in numbers {
            let name = match block.range {
                Some(_) => format!("{}#{number}", block.id),
                None => block.id.clone(),
            };
            let group = groups.0.entry(block.id.clone()).or_default();
            let shown = block.range.map(|_| number);
            let twice = group.iter().any(|(known, _)| *known == shown || known.is_none());
            if twice || (!group.is_empty() && shown.is_none()) {
                let what = format!("duplicate instance \"{name}\"");
                reader.wrong(Code::Duplicate, block.node, &name, what, "use another id");
                continue;
            }
            if !given.insert((block.class.id, number)) {
                let what = format!("duplicate instance {number} of {}", block.class.name);
                reader.wrong(Code::Duplicate, block.node, &name, what, "use other numbers");
                continue;
            }
            group.push((shown, program.instances.len()));
            program.instances.push(Instance {
                name,
                class: block.class.id,
                number,
                components: BTreeMap::new(),
                reset: block.reset,
                place: reader.place(block.node),
                places: Arc::default(),
            });
        }
        let instances = first..program.instances.len();
        let mut settings = Settings {
            reader,
            catalog: program.catalog.clone(),
            class: block.class.clone(),
            id: block.id.clone(),
            instances: &mut program.instances[instances],
            room: &mut room,
        };
        settings.read(block.node);
    }
    groups
}

fn block<'n, 'i>(
    reader: &mut Reader<'_, '_>,
    program: &Program,
    node: Node<'n, 'i>,
) -> Option<Block<'n, 'i>> {
    reader.only(node, &["id", "class", "instances", "reset"]);
    let id = reader.required(node, "id")?.to_owned();
    let name = reader.required(node, "class")?;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if id.is_empty() || id.len() > 64 || !id.chars().all(plain) {
        reader.wrong_value(
            node,
            "id",
            format!("invalid id \"{id}\""),
            "use letters, digits, _ and -",
        );
        return None;
    }
    let long = format!("{PREFIX}{name}");
    let found = program.catalog.class(name).or_else(|| program.catalog.class(&long)).cloned();
    let Some(class) = found else {
        let place = reader.place_of(node, "class");
        let what = format!("no library has a class \"{name}\"");
        let hint = near(name, program.catalog.classes().map(|class| class.name.as_str()));
        reader.problems.add(Code::UnknownClass, &place, id, what, hint);
        return None;
    };
    if !program.uses.iter().any(|one| one.library == class.library) {
        let place = reader.place_of(node, "class");
        let what = format!("\"{name}\" needs the library \"{}\"", class.library);
        let hint = format!("add <use library=\"{}\"/>", class.library);
        reader.problems.add(Code::UnknownClass, &place, id, what, hint);
        return None;
    }
    let range = match node.attribute("instances") {
        None => None,
        Some(text) => {
            let (first, last) = text.split_once("..").unwrap_or((text, text));
            match (first.trim().parse::<u32>(), last.trim().parse::<u32>()) {
                (Ok(first), Ok(last))
                    if first >= 1 && first <= last && last - first < INSTANCES_MAX as u32 =>
                {
                    Some((first, last))
                }
                _ => {
                    let what = format!("invalid range of instances \"{text}\"");
                    let place = reader.place_of(node, "instances");
                    reader.problems.add(
                        Code::Range,
                        &place,
                        id,
                        what,
                        "write it like 1..4, up to 4096",
                    );
                    return None;
                }
            }
        }
    };
    let reset = node.attribute("reset") == Some("true");
    Some(Block { node, id, class, range, reset })
}
