//! Files named by a run's arguments: in experiments, targets, links, parameters and topologies.
//!
//! Invariant: a word counts as a file exactly where the code that reads the word opens it.

use crate::cli::run::Arguments;
use record::assignment;
use record::target_name;
use runner::python::script;
use targets::{build, model, network, progfe};
use workload::parameter::shared::STREAM;
use workload::parameter::snmp::CREDENTIALS;

/// Role of a file in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A Python script.
    Script,
    /// A program of our element.
    Program,
    /// A hardware model.
    Model,
    /// A topology.
    Topology,
    /// Streams.
    Streams,
    /// Secrets.
    Secret,
    /// Another build of this program.
    Build,
}

/// Visits each named file; a word that `see` returns replaces the original.
pub fn visit(arguments: &mut Arguments, see: &mut dyn FnMut(Role, &str) -> Option<String>) {
    for name in &mut arguments.experiments {
        if script::is_script(name)
            && let Some(other) = see(Role::Script, name)
        {
            *name = other;
        }
    }
    for name in &mut arguments.targets {
        target(name, see);
    }
    for file in &mut arguments.topologies {
        if let Some(other) = see(Role::Topology, file) {
            *file = other;
        }
    }
    for word in &mut arguments.links {
        let Some((name, link)) = word.rsplit_once('=') else { continue };
        let (mut name, link) = (name.to_string(), link.to_string());
        target(&mut name, see);
        *word = format!("{name}={link}");
    }
    for word in &mut arguments.set {
        let Some((key, value)) = word.split_once('=') else { continue };
        let (key, mut value) = (key.to_string(), value.to_string());
        match assignment::current_key(&key) {
            STREAM => value = see(Role::Streams, &value).unwrap_or(value),
            CREDENTIALS => value = see(Role::Secret, &value).unwrap_or(value),
            "load_reference" => target(&mut value, see),
            _ => {}
        }
        *word = format!("{key}={value}");
    }
}

/// Visits the file in a target's name, if it contains one. An earlier spelling becomes the current
/// one.
pub fn target(name: &mut String, see: &mut dyn FnMut(Role, &str) -> Option<String>) {
    *name = target_name::current(name).into_owned();
    let Some((role, from, to)) = file_of(name) else { return };
    if let Some(other) = see(role, &name[from..to]) {
        name.replace_range(from..to, &other);
    }
}

/// Returns the role of the file in a target's name, and its position.
fn file_of(name: &str) -> Option<(Role, usize, usize)> {
    for (prefix, role) in [(progfe::PREFIX, Role::Program), (network::PREFIX, Role::Topology)] {
        if let Some(file) = name.strip_prefix(prefix) {
            if role == Role::Program && ::progfe::shipped::text(file).is_some() {
                return None;
            }
            return Some((role, prefix.len(), name.len()));
        }
    }
    if let Some(rest) = name.strip_prefix(model::PREFIX) {
        let source = rest.split(',').next().unwrap_or_default();
        let is_file = source.contains('/') || source.ends_with(".toml");
        let from = model::PREFIX.len();
        return is_file.then_some((Role::Model, from, from + source.len()));
    }
    let is_device = name.starts_with("openflow:") || name.starts_with("device:");
    let at = name.find(build::MARK).filter(|_| !is_device)?;
    Some((Role::Build, at + build::MARK.len_utf8(), name.len()))
}

/// Returns whether a target is a device at interfaces of this machine.
pub fn is_device(name: &str) -> bool {
    name.starts_with("openflow:") || name.starts_with("device:")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_in_a_plan_is_found_and_replaceable() {
        let words = |texts: &[&str]| texts.iter().map(ToString::to_string).collect::<Vec<_>>();
        let mut arguments = Arguments {
            experiments: words(&["latency", "mine.py"]),
            targets: words(&[
                "switch",
                "progfe:a/b.fe.xml",
                "progfe:bridge",
                "switch:model=hp-2920",
                "ours:model=./m.toml,mode=legacy",
                "topology:t.toml",
                "openflow:tcp:192.0.2.7,ports=1@eth1+2@eth2",
                "bridge@old/planimeter",
            ]),
            topologies: words(&["u.toml"]),
            links: words(&["veth", "progfe:a/b.fe.xml=memif"]),
            set: words(&["seconds=1", "stream=s.toml", "snmp_credentials=c.toml"]),
            ..Arguments::empty()
        };
        let mut seen = Vec::new();
        visit(&mut arguments, &mut |role, file| {
            seen.push((role, file.to_string()));
            Some(format!("x/{}", seen.len()))
        });
        let wanted = [
            (Role::Script, "mine.py"),
            (Role::Program, "a/b.fe.xml"),
            (Role::Model, "./m.toml"),
            (Role::Topology, "t.toml"),
            (Role::Build, "old/planimeter"),
            (Role::Topology, "u.toml"),
            (Role::Program, "a/b.fe.xml"),
            (Role::Streams, "s.toml"),
            (Role::Secret, "c.toml"),
        ];
        let wanted = wanted.map(|(role, file)| (role, file.to_string()));
        assert_eq!(seen, wanted);
        assert_eq!(arguments.targets[4], "switch:model=x/3,mode=legacy");
        assert_eq!(arguments.targets[7], "bridge@x/5");
        assert_eq!(arguments.links, ["veth", "progfe:x/7=memif"]);
        assert_eq!(arguments.set, ["seconds=1", "stream=x/8", "snmp_credentials=x/9"]);
    }
}
