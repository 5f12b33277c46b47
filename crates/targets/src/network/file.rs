//! Format of a topology file: switches, links between their ports, and the tester's ports.
//!
//! ```toml
//! instrument = ["first:1", "second:2"]
//!
//! [[switch]]
//! name = "first"
//! target = "switch"
//!
//! [[switch]]
//! name = "second"
//! target = "switch:model=edgecore-as5812"
//!
//! [[link]]
//! between = ["first:2", "second:1"]
//! ```
//!
//! Invariants:
//! - Every port has one link.
//! - Every switch is reachable.
//! - There is a path from the tester's first port to its second.
//! - There is no loop unless the file permits loops.

use std::fmt;
use std::fs::File;
use std::io::Read;

use serde::Deserialize;
use toml::Spanned;

use super::{End, Network, Switch};
use crate::name::{Link, NameError, TargetKind};
use workload::Technology;

/// Size limit of a topology file, in bytes.
pub const FILE_BYTES_MAX: u64 = 1 << 16;

/// Limit of switches in a topology.
pub const SWITCHES_MAX: usize = 16;

/// Limit of ports of a switch.
pub const PORTS_MAX: u32 = 16;

/// Limit of the tester's ports.
pub const INSTRUMENT_MAX: usize = 8;

/// Error in a topology file, with its line number from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TopologyFault {
    /// It cannot be read, and why.
    Unreadable(String),
    /// It has more than [`FILE_BYTES_MAX`] bytes.
    TooLong,
    /// The limit of files is reached.
    TooManyFiles(usize),
    /// It is not TOML with these keys.
    Text(usize, String),
    /// It has no switch, or more than [`SWITCHES_MAX`].
    Switches(usize),
    /// Two switches have this name.
    NameTwice(usize, String),
    /// A name contains invalid characters.
    BadName(usize, String),
    /// A switch's target is invalid: the switch's name, and the error.
    Target(usize, String, NameError),
    /// A switch has no controller, or is itself a topology: its name, and that of its target.
    NoSwitch(usize, String, String),
    /// No link of a topology supports a switch: its name, and that of its target.
    NoLink(usize, String, String),
    /// Not of the form `SWITCH:PORT`.
    BadEnd(usize, String),
    /// Unknown switch, with the existing names.
    UnknownSwitch(usize, String, Vec<String>),
    /// A port has two links; the line of the first one.
    PortTwice(usize, String, usize),
    /// A link connects a switch to itself.
    LinkToItself(usize, String),
    /// A switch's port numbers have a gap: its name, the first port without a link, the last port.
    Gap(usize, String, u32, u32),
    /// A link closes a loop.
    Loop(usize, String),
    /// A switch cannot be reached from the tester's first port: its name.
    Unreachable(usize, String),
    /// The tester has too few ports or too many.
    Instrument(usize, usize),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ParsedTopology {
    instrument: Spanned<Vec<Spanned<String>>>,
    #[serde(default)]
    switch: Vec<Spanned<ParsedSwitch>>,
    #[serde(default)]
    link: Vec<Spanned<ParsedLink>>,
    #[serde(default)]
    loops: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ParsedSwitch {
    name: String,
    target: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ParsedLink {
    between: [Spanned<String>; 2],
}

/// Loads the network from a file.
pub fn load(path: &str) -> Result<Network, TopologyFault> {
    let unreadable = |error: std::io::Error| TopologyFault::Unreadable(error.to_string());
    let mut text = String::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text).map_err(unreadable)?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(TopologyFault::TooLong);
    }
    read(&text)
}

/// Parses a network.
pub fn read(text: &str) -> Result<Network, TopologyFault> {
    let written: ParsedTopology = toml::from_str(text).map_err(|error| {
        let line = line_of(text, error.span().map_or(0, |span| span.start));
        TopologyFault::Text(line, error.message().replace('\n', "; "))
    })?;
    let mut reading = Reading { text, switches: Vec::new(), lines: Vec::new(), joined: Vec::new() };
    if written.switch.is_empty() || written.switch.len() > SWITCHES_MAX {
        return Err(TopologyFault::Switches(written.switch.len()));
    }
    for switch in &written.switch {
        reading.switch(line_of(text, switch.span().start), switch.get_ref())?;
    }
    let at = line_of(text, written.instrument.span().start);
    let ports = written.instrument.get_ref();
    if !(2..=INSTRUMENT_MAX).contains(&ports.len()) {
        return Err(TopologyFault::Instrument(at, ports.len()));
    }
    let instrument = ports.iter().map(|port| reading.end(port)).collect::<Result<_, _>>()?;
    // Connected components so far: each switch has the number of one member.
    let mut together: Vec<usize> = (0..reading.switches.len()).collect();
    let mut links = Vec::new();
    for link in &written.link {
        let line = line_of(text, link.span().start);
        let between = &link.get_ref().between;
        let ends = [reading.end(&between[0])?, reading.end(&between[1])?];
        if ends[0].switch == ends[1].switch {
            return Err(TopologyFault::LinkToItself(
                line,
                reading.switches[ends[0].switch].name.clone(),
            ));
        }
        let [one, other] = ends.map(|end| together[end.switch]);
        if one == other && !written.loops {
            let words = between.each_ref().map(|end| end.get_ref().as_str());
            return Err(TopologyFault::Loop(line, words.join(" to ")));
        }
        together.iter_mut().filter(|it| **it == other).for_each(|it| *it = one);
        links.push(ends);
    }
    reading.network(instrument, links)
}

/// Parser of a topology file.
struct Reading<'a> {
    text: &'a str,
    switches: Vec<Switch>,
    /// Line of each switch.
    lines: Vec<usize>,
    /// Ports with a link, and the line of the link.
    joined: Vec<(End, usize)>,
}

impl Reading<'_> {
    fn switch(&mut self, line: usize, written: &ParsedSwitch) -> Result<(), TopologyFault> {
        let name = &written.name;
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
        if name.is_empty() || name.len() > 32 || !name.chars().all(is_plain) {
            return Err(TopologyFault::BadName(line, name.clone()));
        }
        if self.switches.iter().any(|known| known.name == *name) {
            return Err(TopologyFault::NameTwice(line, name.clone()));
        }
        let not_one = || TopologyFault::NoSwitch(line, name.clone(), written.target.clone());
        if written.target.starts_with(super::PREFIX) {
            return Err(not_one());
        }
        let kind: Result<TargetKind, NameError> = written.target.parse();
        let kind = kind.map_err(|error| TopologyFault::Target(line, name.clone(), error))?;
        if kind.technology() != Technology::OpenFlow {
            return Err(not_one());
        }
        if ![Link::Memory, Link::Veth].into_iter().any(|link| kind.runs_on(link)) {
            return Err(TopologyFault::NoLink(line, name.clone(), written.target.clone()));
        }
        self.switches.push(Switch { name: name.clone(), kind, ports: 0 });
        self.lines.push(line);
        Ok(())
    }

    /// Parses a port and marks it as linked.
    fn end(&mut self, written: &Spanned<String>) -> Result<End, TopologyFault> {
        let (line, text) = (line_of(self.text, written.span().start), written.get_ref());
        let bad = || TopologyFault::BadEnd(line, text.clone());
        let (name, port) = text.split_once(':').ok_or_else(bad)?;
        let port: u32 = port.parse().map_err(|_| bad())?;
        if !(1..=PORTS_MAX).contains(&port) {
            return Err(bad());
        }
        let Some(switch) = self.switches.iter().position(|known| known.name == name) else {
            let known = self.switches.iter().map(|known| known.name.clone()).collect();
            return Err(TopologyFault::UnknownSwitch(line, name.into(), known));
        };
        let end = End { switch, port };
        if let Some((_, first)) = self.joined.iter().find(|(known, _)| *known == end) {
            return Err(TopologyFault::PortTwice(line, text.clone(), *first));
        }
        self.joined.push((end, line));
        self.switches[switch].ports = self.switches[switch].ports.max(port);
        Ok(end)
    }

    fn network(self, instrument: Vec<End>, links: Vec<[End; 2]>) -> Result<Network, TopologyFault> {
        for (switch, it) in self.switches.iter().enumerate() {
            let is_joined = |port: &u32| {
                let end = End { switch, port: *port };
                self.joined.iter().any(|(known, _)| *known == end)
            };
            if let Some(port) = (1..=it.ports).find(|port| !is_joined(port)) {
                return Err(TopologyFault::Gap(
                    self.lines[switch],
                    it.name.clone(),
                    port,
                    it.ports,
                ));
            }
        }
        let (from, to) = (instrument[0], instrument[1]);
        let mut network = Network { switches: self.switches, links, instrument, path: Vec::new() };
        for (switch, it) in network.switches.iter().enumerate() {
            // Any port will do, because the path to it ends at that switch.
            if it.ports == 0 || network.way(from, End { switch, port: 1 }).is_none() {
                return Err(TopologyFault::Unreachable(self.lines[switch], it.name.clone()));
            }
        }
        network.path = network.way(from, to).expect("every switch is reached");
        Ok(network)
    }
}

fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes()[..at.min(text.len())].iter().filter(|&&byte| byte == b'\n').count() + 1
}

impl fmt::Display for TopologyFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TopologyFault::Unreadable(why) => write!(f, "cannot read: {why}"),
            TopologyFault::TooLong => write!(
                f,
                "the file is too large: a topology file has at most {FILE_BYTES_MAX} bytes"
            ),
            TopologyFault::TooManyFiles(most) => {
                write!(f, "too many topology files: a run supports at most {most}")
            }
            TopologyFault::Text(line, why) => write!(f, "line {line}: {why}"),
            TopologyFault::Switches(count) => write!(
                f,
                "invalid number of switches: {count} (hint: use 1 to {SWITCHES_MAX}, each as \
                 [[switch]] with name and target)"
            ),
            TopologyFault::NameTwice(line, name) => {
                write!(f, "line {line}: two switches are called {name} (hint: rename one)")
            }
            TopologyFault::BadName(line, name) => write!(
                f,
                "line {line}: invalid switch name {name:?} (hint: use up to 32 letters, digits, - \
                 and _)"
            ),
            TopologyFault::Target(line, name, error) => {
                write!(f, "line {line}: switch {name}: {error}")
            }
            TopologyFault::NoSwitch(line, name, target) => write!(
                f,
                "line {line}: switch {name}: {target} is not an OpenFlow switch (hint: use only \
                 OpenFlow switches in a topology)"
            ),
            TopologyFault::NoLink(line, name, target) => write!(
                f,
                "line {line}: switch {name}: {target} supports neither link memory nor veth (hint: \
                 use another target)"
            ),
            TopologyFault::BadEnd(line, text) => write!(
                f,
                "line {line}: invalid port {text:?} (hint: use SWITCH:PORT, with a port from 1 to \
                 {PORTS_MAX})"
            ),
            TopologyFault::UnknownSwitch(line, name, known) => {
                write!(
                    f,
                    "line {line}: unknown switch {name:?} (hint: use one of {})",
                    known.join(", ")
                )
            }
            TopologyFault::PortTwice(line, port, first) => {
                write!(
                    f,
                    "line {line}: {port} is in use since line {first} (hint: use another port)"
                )
            }
            TopologyFault::LinkToItself(line, name) => {
                write!(
                    f,
                    "line {line}: the link connects {name} to itself (hint: connect it to another \
                     switch)"
                )
            }
            TopologyFault::Gap(line, name, port, last) => write!(
                f,
                "line {line}: switch {name} has a port {last}, but port {port} is not connected \
                 (hint: number its ports from 1 without a gap)"
            ),
            TopologyFault::Loop(line, link) => write!(
                f,
                "line {line}: the link {link} closes a loop (hint: remove it, or set loops = true)"
            ),
            TopologyFault::Unreachable(line, name) => write!(
                f,
                "line {line}: switch {name} is not reachable from the instrument's first port \
                 (hint: connect it by a [[link]], or remove it)"
            ),
            TopologyFault::Instrument(line, count) => write!(
                f,
                "line {line}: the instrument has {count} ports (hint: use 2 to {INSTRUMENT_MAX}; \
                 the first sends, the second receives)"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Hop;
    use super::*;

    const SWITCHES: &str = "[[switch]]\nname = \"a\"\ntarget = \"switch\"\n\
                            [[switch]]\nname = \"b\"\ntarget = \"switch:model=honest\"\n\
                            [[switch]]\nname = \"c\"\ntarget = \"ovs\"\n";

    fn text(instrument: &str, links: &[[&str; 2]]) -> String {
        let link = |[one, other]: &[&str; 2]| format!("[[link]]\nbetween = [{one:?}, {other:?}]\n");
        let links: String = links.iter().map(link).collect();
        format!("instrument = {instrument}\n{SWITCHES}{links}")
    }

    const ROW: [[&str; 2]; 2] = [["a:2", "b:1"], ["b:2", "c:3"]];

    #[test]
    fn the_path_uses_the_connected_ports() {
        let network = read(&text("[\"a:1\", \"c:1\", \"c:2\"]", &ROW)).unwrap();
        let hop = |switch, port_in, port_out| Hop { switch, port_in, port_out };
        assert_eq!(network.path, [hop(0, 1, 2), hop(1, 1, 2), hop(2, 3, 1)]);
        assert_eq!(network.switches.iter().map(|it| it.ports).collect::<Vec<_>>(), [2, 2, 3]);
        assert_eq!(network.across(End { switch: 2, port: 3 }), Some(End { switch: 1, port: 2 }));
        assert_eq!(network.scene().joined.len(), 3);
    }

    #[test]
    fn loops_are_permitted_if_declared_and_the_path_is_the_shortest() {
        let ring = [ROW[0], ROW[1], ["c:2", "a:3"]];
        let text = text("[\"a:1\", \"c:1\"]", &ring);
        assert!(matches!(read(&text), Err(TopologyFault::Loop(15, _))), "{:?}", read(&text));
        let network = read(&format!("loops = true\n{text}")).unwrap();
        assert_eq!(network.path.iter().map(|hop| hop.switch).collect::<Vec<_>>(), [0, 2]);
    }

    #[test]
    fn each_fault_is_one_line_with_position_and_hint() {
        let ports = "[\"a:1\", \"c:1\", \"c:2\"]";
        let row = |links: &[[&str; 2]]| text(ports, links);
        for (text, words) in [
            ("instrument = [\"a:1\"".to_string(), &["line 1"][..]),
            (row(&ROW) + "colour = 1\n", &["line 15", "colour"]),
            ("instrument = []\n".to_string(), &["switches: 0", "[[switch]]"]),
            (
                row(&ROW).replace("\"switch\"", "\"swich\""),
                &["line 2", "switch a", "swich", "switch"],
            ),
            (row(&ROW).replace("\"switch\"", "\"bridge\""), &["line 2", "bridge", "OpenFlow"]),
            (row(&ROW).replace("\"switch\"", "\"ovs-dpdk\""), &["line 2", "ovs-dpdk", "neither"]),
            (row(&ROW).replace("\"switch\"", "\"topology:x\""), &["line 2", "topology:x"]),
            (row(&ROW).replace("= \"b\"", "= \"a\""), &["line 5", "two switches"]),
            (row(&ROW).replace("= \"b\"", "= \"b b\""), &["line 5", "b b", "letters"]),
            (row(&[["a:2", "b:1"], ["b:2", "d:1"]]), &["line 14", "\"d\"", "a, b, c"]),
            (row(&[["a:2", "b:1"], ["b:0", "c:3"]]), &["line 14", "b:0", "SWITCH:PORT"]),
            (row(&[["a:2", "b:1"], ["b", "c:3"]]), &["line 14", "SWITCH:PORT"]),
            (row(&[["a:1", "b:1"], ["b:2", "c:3"]]), &["line 12", "a:1", "line 1"]),
            (row(&[ROW[0], ROW[1], ["b:3", "b:4"]]), &["line 15", "b to itself"]),
            (row(&[ROW[0], ROW[1], ["a:3", "c:4"]]), &["line 15", "loop", "loops = true"]),
            (row(&[["a:2", "b:1"], ["b:4", "c:3"]]), &["line 5", "port 2 is not connected"]),
            (row(&ROW[..1]), &["line 8", "switch c", "is not reachable"]),
            (text("[\"a:1\"]", &ROW), &["line 1", "1 ports", "2 to 8"]),
        ] {
            let line = read(&text).unwrap_err().to_string();
            assert!(!line.contains('\n'), "{line}");
            for word in words {
                assert!(line.contains(word), "{word:?} is missing in: {line}");
            }
        }
    }
}
