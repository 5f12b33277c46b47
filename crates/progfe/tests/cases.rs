//! Block tests as text: blocks, links, input frames, output frames, counters.
//!
//! A case in `tests/cases/` consists of XML of instances (lines with `<`), links (`A.Out -> B.In`),
//! and steps:
//!
//! ```text
//! in 1: eth 02:00:00:00:00:02 02:00:00:00:00:01 / vlan 5 100 / ipv4 10.0.0.1 10.0.0.2 ttl=9 / udp 1 2 / text hi
//! out 2: same              all frames that left since, in order; `none` if there are none
//! told control: same       the frame redirected to the control element, or to an agent by name
//! inject inj 0: eth ...     a frame injected into a block, for one of its outputs
//! at 12s                   the time from now on
//! get fdb.Learned = 1      the value of a component
//! meta told L3PortID = 2   a metadata item of the last redirected frame
//! drops fdb unlinked = 2   the number of frames that a block dropped
//! link rx#1.NormalPathOut = 3
//! met HitOut = 5          the number of links from outputs of this name; each must have carried frames
//! set c Packets = 0
//! ```
//!
//! The ports are `phy#1` to `phy#4`. All frames are accounted for after every step. A case with a
//! line `program FILE` uses this program of `examples/progfe` instead.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::Path;

use dataplane::forwarder::{Forwarder, Outputs};
use packet::checksum;
use packet::frame::{Batch, Frame};
use packet::time::Nanos;
use progfe::compile::Compiled;
use progfe::element::{Change, Element};
use progfe::executor::Enforcer;
use progfe::interpret::Interpreter;
use progfe::lfb::{DivertDestination, DropReason};
use progfe::program::Program;
use progfe::program::document::no_files;
use progfe::xml::Source;

struct Run<E: Enforcer> {
    element: Element<E>,
    outputs: Outputs,
    now: Nanos,
    last: Vec<u8>,
    left: Vec<(u32, Vec<u8>)>,
    told: Vec<(String, Vec<u8>)>,
    meta: Vec<(u32, u128)>,
}

/// Builds the document of a case.
fn document(text: &str) -> String {
    if let Some(file) = text.lines().find_map(|line| line.strip_prefix("program ")) {
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/progfe");
        return std::fs::read_to_string(examples.join(file.trim())).expect("a shipped program");
    }
    let mut instances = String::new();
    let (mut links, mut rest) = (String::new(), String::new());
    for line in text.lines() {
        match line.split_once("->") {
            _ if line.trim_start().starts_with("<agent")
                || line.trim_start().starts_with("<watch") =>
            {
                rest.push_str(line);
            }
            _ if line.trim_start().starts_with('<') => instances.push_str(line),
            Some((from, to)) => {
                links.push_str(&format!(r#"<link from="{}" to="{}"/>"#, from.trim(), to.trim()));
            }
            None => {}
        }
    }
    format!(
        r#"<fe xmlns="urn:progfe:fe:1" name="case" revision="1">
<use library="BaseLFBLibrary"/><use library="ProGFE"/><frames file="ethernet.frames.xml"/>
<ports><port id="1"/><port id="2"/><port id="3"/><port id="4"/></ports>
<instances><lfb id="phy" class="EtherPHYCop" instances="1..4"><set name="AdminStatus">Up</set></lfb>
{instances}</instances><links>{links}</links>{rest}</fe>"#
    )
}

fn mac(word: &str) -> Vec<u8> {
    packet::header::ethernet::mac_from_text(word)
        .unwrap_or_else(|| panic!("{word}: no MAC"))
        .to_vec()
}

fn option(words: &[&str], name: &str, otherwise: u16) -> u16 {
    let found = words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    found.map_or(otherwise, |value| value.parse().expect("a number"))
}

/// Builds a frame from a description layer by layer.
fn frame(text: &str) -> Vec<u8> {
    let layers: Vec<Vec<&str>> =
        text.split('/').map(|layer| layer.split_whitespace().collect()).collect();
    let mut bytes: Vec<u8> = Vec::new();
    for (at, words) in layers.iter().enumerate().rev() {
        let next = layers.get(at + 1).map_or("", |layer| layer[0]);
        let ether_type = |given: Option<&&str>| match (given, next) {
            (Some(given), _) => u16::from_str_radix(given.trim_start_matches("0x"), 16).unwrap(),
            (None, "ipv4") => 0x0800,
            (None, "ipv6") => 0x86dd,
            (None, "vlan") => 0x8100,
            (None, "svlan") => 0x88a8,
            (None, "itag") => 0x88e7,
            (None, "mpls") => 0x8847,
            (None, other) => panic!("the type of {other:?} is missing"),
        };
        let mut layer = Vec::new();
        match words[0] {
            "eth" => {
                layer.extend(mac(words[1]));
                layer.extend(mac(words[2]));
                layer.extend(ether_type(words.get(3)).to_be_bytes());
            }
            "vlan" | "svlan" => {
                let (pcp, vid): (u16, u16) = (words[1].parse().unwrap(), words[2].parse().unwrap());
                layer.extend((pcp << 13 | vid).to_be_bytes());
                layer.extend(ether_type(words.get(3)).to_be_bytes());
            }
            "itag" => layer.extend(words[1].parse::<u32>().unwrap().to_be_bytes()),
            "mpls" => {
                let number = |at: usize| words[at].parse::<u32>().unwrap();
                layer.extend((number(1) << 12 | number(2) << 8 | number(3)).to_be_bytes());
            }
            "tcp" => {
                for word in &words[1..3] {
                    layer.extend(word.parse::<u16>().unwrap().to_be_bytes());
                }
                let flags = option(words, "flags", 0x10) as u8;
                let window = option(words, "window", 512).to_be_bytes();
                layer.extend([
                    0, 0, 0, 1, 0, 0, 0, 1, 0x50, flags, window[0], window[1], 0, 0, 0, 0,
                ]);
            }
            "ipv4" => {
                let usual = match next {
                    "udp" => 17,
                    "tcp" => 6,
                    _ => 253,
                };
                let proto = option(words, "proto", usual) as u8;
                let total = option(words, "len", 20 + bytes.len() as u16).to_be_bytes();
                let (ttl, dscp) = (option(words, "ttl", 64) as u8, option(words, "dscp", 0) as u8);
                let (ihl, ecn) = (option(words, "ihl", 5) as u8, option(words, "ecn", 0) as u8);
                let (id, off) = (option(words, "id", 1), option(words, "off", 0).to_be_bytes());
                layer.extend([
                    0x40 | ihl,
                    dscp << 2 | ecn,
                    total[0],
                    total[1],
                    (id >> 8) as u8,
                    id as u8,
                    off[0],
                    off[1],
                    ttl,
                    proto,
                    0,
                    0,
                ]);
                for word in &words[1..3] {
                    layer.extend(word.parse::<std::net::Ipv4Addr>().unwrap().octets());
                }
                let sum = option(words, "sum", checksum::checksum(&layer));
                layer[10..12].copy_from_slice(&sum.to_be_bytes());
                if next == "tcp" {
                    let pseudo = [&layer[12..20], &[0, 6], &(bytes.len() as u16).to_be_bytes()];
                    let sum = checksum::checksum(&[&pseudo.concat(), &bytes[..]].concat());
                    bytes[16..18].copy_from_slice(&sum.to_be_bytes());
                }
            }
            "ipv6" => {
                let length = (bytes.len() as u16).to_be_bytes();
                let next = option(words, "next", if next == "udp" { 17 } else { 59 }) as u8;
                let hops = option(words, "hops", 64) as u8;
                layer.extend([0x60, 0, 0, 0, length[0], length[1], next, hops]);
                for word in &words[1..3] {
                    layer.extend(word.parse::<std::net::Ipv6Addr>().unwrap().octets());
                }
            }
            "udp" => {
                let length = (8 + bytes.len() as u16).to_be_bytes();
                for word in &words[1..3] {
                    layer.extend(word.parse::<u16>().unwrap().to_be_bytes());
                }
                layer.extend([length[0], length[1], 0, 0]);
            }
            "hex" => {
                let hex = words[1..].concat();
                layer.extend(
                    (0..hex.len())
                        .step_by(2)
                        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()),
                );
            }
            "text" => layer.extend(words[1..].join(" ").bytes()),
            "zeros" => layer.resize(words[1].parse().unwrap(), 0),
            other => panic!("unknown layer {other:?}"),
        }
        layer.append(&mut bytes);
        bytes = layer;
    }
    bytes
}

impl<E: Enforcer> Run<E> {
    fn instance(&self, name: &str) -> usize {
        self.element.program().find(name).unwrap_or_else(|| panic!("no instance {name}"))
    }

    fn path(&self, text: &str) -> (usize, Vec<u32>) {
        let (name, path) = text.trim().split_once('.').expect("instance.Component");
        let instance = self.instance(name);
        let class = self.element.program().class_of(instance).clone();
        (instance, class.path(path).unwrap_or_else(|fault| panic!("{text}: {fault}")))
    }

    /// Records sent and redirected frames.
    fn collect(&mut self) {
        for (port, queue) in self.outputs.queues_mut() {
            self.left.extend(queue.frames().iter().map(|it| (*port, it.bytes().to_vec())));
            queue.clear();
        }
        while let Some(reported) = self.element.next_told() {
            let to = match &reported.to {
                DivertDestination::Control => "control".to_owned(),
                DivertDestination::Agent(name) => name.to_string(),
            };
            self.told.push((to, reported.frame.bytes().to_vec()));
            self.meta = reported.meta;
        }
        let held = self.element.enforcer().held();
        assert!(self.element.account().is_even(held), "{:?} held {held}", self.element.account());
    }

    fn described(&mut self, text: &str) -> Vec<u8> {
        if text.trim() != "same" {
            self.last = frame(text);
        }
        self.last.clone()
    }

    fn done(&mut self) {
        assert!(self.left.is_empty(), "additionally sent: {:02x?}", self.left);
        assert!(self.told.is_empty(), "additionally redirected: {:02x?}", self.told);
    }

    fn step(&mut self, line: &str) {
        let (head, rest) = line.split_once([':', '=']).unwrap_or((line, ""));
        let words: Vec<&str> = head.split_whitespace().collect();
        match words[..] {
            ["in", port] => {
                self.done();
                let bytes = self.described(rest);
                let mut batch = Batch::new(1);
                batch.push_bytes(&bytes);
                let port = port.parse().unwrap();
                self.element.forward(port, &mut batch, self.now, &mut self.outputs);
                self.collect();
            }
            ["inject", name, output] => {
                self.done();
                let mut frame = Frame::from_bytes(&self.described(rest));
                let meta = [(progfe::lfb::meta_id::REDIRECT_INDEX, output.parse().unwrap())];
                let instance = self.instance(name);
                let given = (&mut frame, &meta[..]);
                self.element.inject(instance, given, self.now, &mut self.outputs).unwrap();
                self.collect();
            }
            ["out", port] => {
                let expected = if rest.trim() == "same" { self.last.clone() } else { frame(rest) };
                let port: u32 = port.parse().unwrap();
                let place = self.left.iter().position(|left| *left == (port, expected.clone()));
                let place = place.unwrap_or_else(|| {
                    panic!("wanted {:02x?}\nleft {:02x?}", (port, expected), self.left)
                });
                self.left.remove(place);
            }
            ["told", to] => {
                let expected = if rest.trim() == "same" { self.last.clone() } else { frame(rest) };
                let reported = self.told.first().cloned();
                assert_eq!(reported, Some((to.to_owned(), expected)), "told {:02x?}", self.told);
                self.told.remove(0);
            }
            ["none"] => self.done(),
            ["at", time] => {
                self.done();
                let seconds: f64 = time.trim_end_matches('s').parse().unwrap();
                self.now = Nanos((seconds * 1e9) as u64);
                self.element.tick(self.now, &mut self.outputs);
                self.collect();
            }
            ["get", path] => {
                let (instance, path) = self.path(path);
                let value = self.element.get(instance, &path, self.now).unwrap();
                let class = self.element.program().class_of(instance).clone();
                let Ok(forces::model::Target::Value { data_type, .. }) = class.target(&path) else {
                    panic!("no value")
                };
                assert_eq!(data_type.show(&value).to_string(), rest.trim());
            }
            ["set", path] => {
                let (instance, path) = self.path(path);
                let class = self.element.program().class_of(instance).clone();
                let Ok(forces::model::Target::Value { data_type, .. }) = class.target(&path) else {
                    panic!("no value")
                };
                let value = data_type.parse(rest.trim()).unwrap();
                let change = Change::Set { instance, path, value };
                self.element.change(&[change], self.now, &mut self.outputs).unwrap();
                self.collect();
            }
            ["meta", name] => {
                let id = self.element.program().catalog.metadata(name).expect("a metadatum").id;
                let value =
                    self.meta.iter().find(|(known, _)| *known == id).map(|(_, value)| *value);
                let wanted = (rest.trim() != "none").then(|| rest.trim().parse().unwrap());
                assert_eq!(value, wanted);
            }
            ["drops", name, reason] => {
                let reason =
                    DropReason::ALL.iter().find(|it| it.name() == reason).expect("a reason");
                let drops = self.element.drops(self.instance(name)).of(*reason);
                assert_eq!(drops, rest.trim().parse().unwrap());
            }
            ["link", name] => {
                let program = self.element.program();
                let mut links = program.links.iter();
                let place = links.position(|link| program.output_name(link.from) == name);
                let traffic = self.element.link(place.expect("a link"));
                assert_eq!(traffic.frames, rest.trim().parse().unwrap());
            }
            ["met", output] => {
                let program = self.element.program();
                let links = program.links.iter().enumerate();
                let is_of = |name: &str| name.split(['.', '[']).nth(1) == Some(output);
                let mut named = links.map(|(at, link)| (at, program.output_name(link.from)));
                let met: Vec<_> = named.by_ref().filter(|(_, name)| is_of(name)).collect();
                for (at, name) in &met {
                    assert!(self.element.link(*at).frames > 0, "no frame used {name}");
                }
                assert_eq!(met.len(), rest.trim().parse().unwrap());
            }
            _ => panic!("unknown step {line:?}"),
        }
    }
}

fn run<E: Enforcer>(name: &str, text: &str) {
    let document = document(text);
    let (program, problems) = Program::load(&Source::new(name, &document), &no_files);
    let program = program.unwrap_or_else(|| panic!("{name}: {problems}"));
    let element = Element::<E>::start(program, 7).unwrap_or_else(|all| panic!("{name}: {all}"));
    let outputs = Outputs::new(&[1, 2, 3, 4]);
    let (last, left, told, meta) = Default::default();
    let mut run = Run { element, outputs, now: Nanos::ZERO, last, left, told, meta };
    for (number, line) in (1..).zip(text.lines()) {
        let step = line.split('#').next().filter(|_| line.starts_with('#')).unwrap_or(line).trim();
        let is_program =
            step.starts_with('<') || step.contains("->") || step.starts_with("program ");
        if step.is_empty() || is_program {
            continue;
        }
        let stepped = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run.step(step)));
        assert!(stepped.is_ok(), "{name}:{number}: {line}");
    }
    run.done();
}

#[test]
fn every_case_gives_its_expected_results() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut classes = std::collections::BTreeSet::new();
    let mut files: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()).collect();
    files.sort();
    for path in files {
        let text = std::fs::read_to_string(&path).unwrap();
        let name = path.file_name().unwrap().to_string_lossy();
        run::<Interpreter>(&name, &text);
        run::<Compiled>(&format!("{name}, compiled"), &text);
        let parts = text.split("class=\"").skip(1);
        classes.extend(parts.map(|part| part.split('"').next().unwrap_or("").to_owned()));
    }
    classes.insert("EtherPHYCop".to_owned());
    let catalog = forces::Catalog::new(progfe::program::document::shipped()).unwrap();
    for id in progfe::lfb::Lfb::CLASSES {
        let class = catalog.class_by_id(*id).expect("it ships");
        let name = class.name.strip_prefix(progfe::program::PREFIX).unwrap_or(&class.name);
        assert!(classes.contains(name), "no case has a {name}");
    }
}
