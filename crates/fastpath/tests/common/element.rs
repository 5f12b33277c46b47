//! Elements with and without a fast path, whose frames are run without interfaces.

use std::sync::{Arc, Mutex};

use dataplane::forwarder::Outputs;
use ebpf::Program;
use fastpath::{ElementStep, FastPath};

use os::clock;
use packet::frame::PortNo;
use packet::time::Nanos;
use progfe::compile::Compiled;
use progfe::element::Element;
use progfe::executor::Enforcer;
use progfe::program::Program as ElementProgram;
use progfe::program::document::no_files;
use progfe::xml::Source;

use super::{FRAME_BYTES_MAX, forward, mac, may_not_skip};

pub const PORTS: [PortNo; 2] = [1, 2];

/// Results of a frame that escapes, and of one that is dropped.
const ESCAPED: u32 = 2;
const DROPPED: u32 = 1;

/// An element and its output queues.
pub struct Side {
    pub element: Element<Compiled>,
    pub out: Outputs,
}

/// All visible state of an element.
#[derive(Debug, PartialEq)]
pub struct Seen {
    account: String,
    told: Vec<String>,
    links: Vec<(String, u64, u64)>,
    drops: Vec<String>,
    components: Vec<(String, u32, String)>,
}

/// An element with a fast path, and the programs of its ports.
pub struct Lab {
    pub side: Side,
    pub path: FastPath,
    programs: Programs,
    /// Number of times that the ports got programs.
    pub reloads: u32,
    /// Number of frames that the kernel decided.
    pub decided: u64,
}

type Programs = Vec<(PortNo, Arc<Program>)>;

/// The programs of ports, for another thread.
pub struct Shared(Mutex<Programs>);

impl Side {
    pub fn new(text: &str) -> Side {
        let (program, problems) = ElementProgram::load(&Source::new("test", text), &no_files);
        let program = program.unwrap_or_else(|| panic!("{problems}"));
        let ports: Vec<PortNo> = program.ports.iter().map(|port| port.number).collect();
        Side { element: Element::start(program, 7).unwrap(), out: Outputs::new(&ports) }
    }

    /// Forwards a frame in user space.
    pub fn pass(&mut self, port: PortNo, frame: &[u8], now: Nanos) -> Vec<(PortNo, Vec<u8>)> {
        forward(&mut self.element, port, frame, now, &mut self.out)
    }

    pub fn seen(&mut self, now: Nanos) -> Seen {
        let mut told = Vec::new();
        while let Some(frame) = self.element.next_told() {
            let bytes = frame.frame.bytes().to_vec();
            told.push(format!("{:?} {} {:?} {bytes:?}", frame.to, frame.instance, frame.meta));
        }
        while let Some(report) = self.element.next_report() {
            told.push(format!("{report:?}"));
        }
        let program = self.element.program().clone();
        let (mut drops, mut components) = (Vec::new(), Vec::new());
        for (at, instance) in program.instances.iter().enumerate() {
            let of = |drop| format!("{} {drop:?}", instance.name);
            let mut own: Vec<String> = self.element.drops(at).iter().map(of).collect();
            own.sort();
            drops.extend(own);
            components.extend(program.class_of(at).components.iter().map(|component| {
                let value = self.element.enforcer().component(at, component.id, now);
                (instance.name.clone(), component.id, format!("{value:?}"))
            }));
        }
        let links = program.links.iter().enumerate().map(|(at, link)| {
            let traffic = self.element.link(at);
            (program.output_name(link.from), traffic.frames, traffic.bytes)
        });
        Seen {
            account: format!("{:?}", self.element.account()),
            told,
            links: links.collect(),
            drops,
            components,
        }
    }
}

/// Starts an element with a fast path, or prints why the test is skipped.
pub fn start(text: &str) -> Option<Lab> {
    let mut side = Side::new(text);
    let ports: Vec<PortNo> = side.element.program().ports.iter().map(|it| it.number).collect();
    let path = match FastPath::of_element(&mut side.element, &ports, 3) {
        Ok(path) => path,
        Err(error) => {
            assert!(!may_not_skip(), "need: root, to create maps: {error}");
            println!("skipped; need: root, to create maps: {error}");
            return None;
        }
    };
    for port in ports {
        path.set_frame_bytes_max(port, FRAME_BYTES_MAX);
        path.connect(port, super::LOOPBACK).unwrap();
    }
    let mut lab = Lab { side, path, programs: Vec::new(), reloads: 0, decided: 0 };
    lab.follow();
    Some(lab)
}

/// Lets bridge tables learn stations 1 and 2 at the ports of these numbers.
pub fn learn(sides: &mut [&mut Side]) {
    let now = clock::now();
    for side in sides {
        for port in PORTS {
            let frame = packet::build::Builder::new([0xff; 6], mac(port as u8)).ether_type(0x88b5);
            side.pass(port, &frame.bytes(), now);
        }
    }
}

impl Lab {
    /// Follows the program of the element.
    pub fn follow(&mut self) {
        match self.path.follow_element(&mut self.side.element, clock::now()).unwrap() {
            ElementStep::None => {}
            ElementStep::Programs(_) => {
                let ports = self.side.element.program().ports.iter().map(|port| port.number);
                let load = |port| (port, Arc::new(super::load(&self.path, port, false)));
                self.programs = ports.map(load).collect();
                self.reloads += 1;
                self.path.resume();
            }
        }
    }

    /// Returns the program of a port.
    pub fn program(&self, port: PortNo) -> Option<&Program> {
        self.programs.iter().find(|(number, _)| *number == port).map(|(_, program)| &**program)
    }

    /// Runs the program of a port on a frame. Returns the port and the bytes with which it left,
    /// port 0 if it was dropped, or nothing if it escaped.
    pub fn run(&mut self, port: PortNo, frame: &[u8]) -> Option<(PortNo, Vec<u8>)> {
        self.side.element.add_mirrored();
        let before = (self.path.traffic().unwrap(), self.path.extra(port));
        let run = self.program(port)?.run_once(frame, 1).unwrap();
        self.side.element.add_mirrored();
        let after = (self.path.traffic().unwrap(), self.path.extra(port));
        if run.result == ESCAPED {
            assert_eq!(run.frame, frame, "an escaping frame is unchanged");
            assert_eq!(before, after, "an escaping frame is not counted");
            return None;
        }
        self.decided += 1;
        if run.result == DROPPED {
            assert_eq!(before.1.frames_dropped + 1, after.1.frames_dropped);
            return Some((0, frame.to_vec()));
        }
        let mut changed = after.0.iter().filter(|pair| !before.0.contains(pair));
        let pair = changed.next().unwrap();
        assert_eq!((run.result, pair.from, changed.next()), (4, port, None));
        Some((pair.to, run.frame))
    }

    /// Passes a frame to the kernel, and to user space if it escapes. Returns the frames that left,
    /// and what the kernel did.
    #[allow(clippy::type_complexity)]
    pub fn pass(
        &mut self,
        port: PortNo,
        frame: &[u8],
        now: Nanos,
    ) -> (Vec<(PortNo, Vec<u8>)>, Option<PortNo>) {
        // Test runs need an Ethernet header, and have no room for longer frames.
        let decided = if frame.len() < 14 { None } else { self.run(port, frame) };
        match decided {
            None => (self.side.pass(port, frame, now), None),
            Some((0, _)) => (Vec::new(), Some(0)),
            Some((to, bytes)) => (vec![(to, bytes)], Some(to)),
        }
    }

    /// Returns the number of frames that left or were dropped so far.
    pub fn counted(&mut self) -> u64 {
        self.side.element.add_mirrored();
        let account = self.side.element.account();
        account.left + account.dropped
    }

    /// Returns the programs for another thread.
    pub fn shared(&self) -> Shared {
        Shared(Mutex::new(self.programs.clone()))
    }
}

impl Shared {
    /// Takes over the programs that the ports have now.
    pub fn replace(&self, lab: &Lab) {
        *self.0.lock().unwrap() = lab.programs.clone();
    }

    /// Runs the program of a port on a frame. Returns the result and the bytes.
    pub fn run(&self, port: PortNo, frame: &[u8]) -> (u32, Vec<u8>) {
        let programs = self.0.lock().unwrap().clone();
        let (_, program) = programs.iter().find(|(number, _)| *number == port).unwrap();
        let run = program.run_once(frame, 1).unwrap();
        (run.result, run.frame)
    }
}
