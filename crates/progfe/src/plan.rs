//! Differences between two programs, before one replaces the other.

use std::collections::BTreeMap;
use std::fmt;

use forces::Value;
use forces::model::Component;

use crate::program::{Instance, Program};

/// Maximum number of characters in a displayed value.
const VALUE_LETTERS_MAX: usize = 60;

/// One difference between two programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Difference {
    /// A new block.
    Added(String),
    /// A removed block. Its tables and counters are lost.
    Removed(String),
    /// A block whose class changes. Its tables and counters are lost.
    Replaced(String),
    /// A block whose tables and counters start empty, because the program sets `reset`.
    Reset(String),
    /// A component whose value changes.
    Set {
        /// Name of the block.
        instance: String,
        /// Name of the component.
        component: String,
        /// Values before and after; none for a table.
        values: Option<[String; 2]>,
        /// Numbers of added, removed and changed rows; zero if the component has no rows.
        rows: [usize; 3],
    },
    /// A new link.
    Linked(String, String),
    /// A removed link.
    Unlinked(String, String),
    /// A new agent, or an agent that restarts because its settings change.
    AgentBegins(String),
    /// A removed agent.
    AgentEnds(String),
    /// Frame formats differ, so every block parses frames differently.
    Frames,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Difference::Added(name) => write!(f, "+ {name}"),
            Difference::Removed(name) => write!(f, "- {name}, with its state"),
            Difference::Replaced(name) => {
                write!(f, "~ {name} has another class and restarts")
            }
            Difference::Reset(name) => write!(f, "~ {name} restarts"),
            Difference::Set { instance, component, values: Some([old, new]), .. } => {
                write!(f, "~ {instance}.{component}: {old} -> {new}")
            }
            Difference::Set { instance, component, rows, .. } => {
                let kinds = rows.iter().zip(["new", "removed", "changed"]);
                let said: Vec<String> = kinds
                    .filter(|(count, _)| **count > 0)
                    .map(|(count, kind)| {
                        format!("{count} {} {kind}", if *count == 1 { "row" } else { "rows" })
                    })
                    .collect();
                write!(f, "~ {instance}.{component}: {}", said.join(", "))
            }
            Difference::Linked(from, to) => write!(f, "+ {from} -> {to}"),
            Difference::Unlinked(from, to) => write!(f, "- {from} -> {to}"),
            Difference::AgentBegins(name) => write!(f, "+ agent {name} restarts"),
            Difference::AgentEnds(name) => write!(f, "- agent {name}"),
            Difference::Frames => f.write_str("~ frame formats"),
        }
    }
}

/// Lists the differences: frame formats, blocks, agents, links. Changed blocks and links are sorted
/// by name.
pub fn plan(old: &Program, new: &Program) -> Vec<Difference> {
    fn named(program: &Program) -> BTreeMap<&str, &Instance> {
        program.instances.iter().map(|it| (it.name.as_str(), it)).collect()
    }
    let (olds, news) = (named(old), named(new));
    let mut all = Vec::new();
    if old.frames != new.frames {
        all.push(Difference::Frames);
    }
    for (name, instance) in &news {
        let name = (*name).to_owned();
        match olds.get(name.as_str()) {
            None => all.push(Difference::Added(name)),
            Some(before) if before.class != instance.class => all.push(Difference::Replaced(name)),
            Some(before) => {
                if instance.reset {
                    all.push(Difference::Reset(name.clone()));
                }
                let place = new.find(&name).unwrap_or_default();
                let ids = before.components.keys().chain(instance.components.keys());
                let ids: std::collections::BTreeSet<u32> = ids.copied().collect();
                for component in &new.class_of(place).components {
                    let id = component.id;
                    let value = |of: &Instance| {
                        of.components.get(&id).cloned().unwrap_or_else(|| component.default_value())
                    };
                    if ids.contains(&id) && value(before) != value(instance) {
                        let values = [value(before), value(instance)];
                        all.push(set_otherwise(&name, component, &values));
                    }
                }
            }
        }
    }
    let gone = olds.keys().filter(|name| !news.contains_key(*name));
    all.extend(gone.map(|name| Difference::Removed((*name).to_owned())));
    for agent in &new.agents {
        if !old.agents.iter().any(|before| before.says_as(agent)) {
            all.push(Difference::AgentBegins(agent.name.clone()));
        }
    }
    let stays = |name: &str| new.agents.iter().any(|agent| agent.name == name);
    let ends = old.agents.iter().filter(|agent| !stays(&agent.name));
    all.extend(ends.map(|agent| Difference::AgentEnds(agent.name.clone())));
    let links = |program: &Program| -> std::collections::BTreeSet<(String, String)> {
        let name = |link: &crate::program::Link| {
            (program.output_name(link.from), program.input_name(link.to))
        };
        program.links.iter().map(name).collect()
    };
    let (olds, news) = (links(old), links(new));
    let unlinked = olds.difference(&news).cloned();
    all.extend(unlinked.map(|(from, to)| Difference::Unlinked(from, to)));
    let linked = news.difference(&olds).cloned();
    all.extend(linked.map(|(from, to)| Difference::Linked(from, to)));
    all
}

/// Returns a changed component: row counts, or the values if they are short.
fn set_otherwise(instance: &str, component: &Component, values: &[Value; 2]) -> Difference {
    let rows = match [values[0].rows(), values[1].rows()] {
        [Some(old), Some(new)] => {
            let added = new.keys().filter(|index| !old.contains_key(index)).count();
            let gone = old.keys().filter(|index| !new.contains_key(index)).count();
            let other =
                new.iter().filter(|(index, row)| old.get(index).is_some_and(|it| it != *row));
            [added, gone, other.count()]
        }
        _ => [0; 3],
    };
    let short = |value: &Value| {
        let text = component.data_type.show(value).to_string();
        match text.char_indices().nth(VALUE_LETTERS_MAX) {
            Some((end, _)) => format!("{}...", &text[..end]),
            None => text,
        }
    };
    Difference::Set {
        instance: instance.to_owned(),
        component: component.name.clone(),
        values: (rows == [0; 3]).then(|| [short(&values[0]), short(&values[1])]),
        rows,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::document::no_files;
    use crate::xml::Source;

    fn program(instances: &str, links: &str) -> Program {
        let text = format!(
            r#"<fe xmlns="urn:progfe:fe:1" name="p" revision="1"><use library="BaseLFBLibrary"/>
            <use library="ProGFE"/><frames file="ethernet.frames.xml"/><ports><port id="1"/></ports>
            <instances><lfb id="phy" class="EtherPHYCop"><set name="AdminStatus">Up</set></lfb>
            {instances}</instances><links>{links}</links></fe>"#
        );
        let (program, problems) = Program::load(&Source::new("p", &text), &no_files);
        program.unwrap_or_else(|| panic!("{problems}"))
    }

    #[test]
    fn agents_with_changed_settings_restart() {
        let with = |agents: &str| {
            let mut program = program("", "");
            let text =
                format!(r#"<fe xmlns="urn:progfe:fe:1" name="p"><agents>{agents}</agents></fe>"#);
            let (other, problems) = Program::load(&Source::new("p", &text), &no_files);
            program.agents = other.unwrap_or_else(|| panic!("{problems}")).agents;
            program
        };
        let old = with(r#"<agent name="a" type="process"/><agent name="b" type="process"/>"#);
        let new = with(
            r#"
            <agent name="a" type="process"/>
            <agent name="c" type="process"/>"#,
        );
        let differences: Vec<String> = plan(&old, &new).iter().map(Difference::to_string).collect();
        assert_eq!(differences, ["+ agent c restarts", "- agent b"]);
    }

    #[test]
    fn every_difference_is_reported_and_equal_programs_have_none() {
        let old = program(
            r#"<lfb id="a" class="Count"/><lfb id="m" class="Mirror"/><lfb id="x" class="Count"/>"#,
            r#"<link from="phy.EtherPHYOut" to="a.PktsIn"/><link from="a.PktsOut" to="m.PktsIn"/>"#,
        );
        let new = program(
            r#"<lfb id="a" class="Count" reset="true"/>
               <lfb id="m" class="Mirror"><set name="Sample">9</set></lfb>
               <lfb id="x" class="Mirror"/><lfb id="y" class="Count"/>"#,
            r#"<link from="phy.EtherPHYOut" to="m.PktsIn"/>"#,
        );
        assert_eq!(plan(&old, &old), []);
        let differences: Vec<String> = plan(&old, &new).iter().map(Difference::to_string).collect();
        let expected = [
            "~ a restarts",
            "~ m.Sample: 1 -> 9",
            "~ x has another class and restarts",
            "+ y",
            "- a.PktsOut -> m.PktsIn",
            "- phy.EtherPHYOut -> a.PktsIn",
            "+ phy.EtherPHYOut -> m.PktsIn",
        ];
        assert_eq!(differences, expected);
    }
}
