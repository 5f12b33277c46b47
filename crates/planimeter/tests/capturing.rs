//! Tests of `planimeter capture` at real interfaces: the file contains all received frames, however
//! the capture ends.
//!
//! They require root or user namespaces; otherwise each test names the missing requirement and is
//! skipped.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

mod common;
#[path = "common/one_by_one.rs"]
mod one_by_one;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ExitCode, Stdio};

use common::{CommandResult, Folder, command, interrupt};
use netio::afpacket::Options;
use netio::capture::{CaptureOptions, CaptureReader, CaptureWriter};
use netio::port::{Port, PortCounters, PortError, PortFacts};
use one_by_one::Test;
use os::clock::{self, WaitSet};
use packet::capture::Event;
use packet::capture::write::FrameNotes;
use packet::frame::Batch;
use packet::time::{Clock, Nanos};
use serde_json::Value;
use testbed::Namespace;
use testbed::probe;
use testbed::requirement::{self, Feature, Requirement};
use testbed::veth::{Cable, EndSettings};
use tester::rig::Rig;
use tester::rig::live::LiveRig;
use tester::trial::Trial;

const TESTS: [Test<Requirement>; 5] = [
    (
        "received_frames_are_captured_until_an_interrupt",
        needs,
        received_frames_are_captured_until_an_interrupt,
    ),
    (
        "an_interface_that_goes_down_ends_the_capture_with_a_valid_file",
        needs,
        an_interface_that_goes_down_ends_the_capture_with_a_valid_file,
    ),
    (
        "a_capture_over_af_xdp_has_timestamps_of_reception",
        xdp_needs,
        a_capture_over_af_xdp_has_timestamps_of_reception,
    ),
    ("two_interfaces_are_captured_into_one_file", needs, two_interfaces_are_captured_into_one_file),
    ("a_stall_of_the_tester_is_not_a_delay", xdp_needs, a_stall_of_the_tester_is_not_a_delay),
];

const FRAMES: u64 = 1_000;

fn main() -> ExitCode {
    one_by_one::run(&TESTS)
}

fn needs() -> Result<(), Requirement> {
    if requirement::privileged() { Ok(()) } else { Err(Requirement::Privilege) }
}

fn xdp_needs() -> Result<(), Requirement> {
    needs()?;
    probe::require(Feature::XdpSocket).map(drop)
}

/// A cable in its own namespace, and a file with frames to send over it.
struct Place {
    folder: Folder,
    namespace: Namespace,
    cable: Cable,
}

impl Place {
    fn new() -> Place {
        let namespace = Namespace::create().unwrap();
        namespace.set("net/ipv6/conf/default/disable_ipv6", "1").unwrap();
        let end = |number: u8| EndSettings {
            namespace: namespace.clone(),
            name: format!("cable{number}"),
            mac: [2, 0, 0, 0, 0, number],
            threaded: None,
        };
        let cable = Cable::lay(&end(1), &end(2), 1_500).unwrap();
        cable.wait_carrying().unwrap();
        let place = Place { folder: Folder::new(), namespace, cable };
        let file = fs::File::create(place.path().join("in.pcapng")).unwrap();
        let mut writer = CaptureWriter::new(file, &CaptureOptions::pcapng("x")).unwrap();
        for number in 0..FRAMES {
            let at = Nanos(number * 20_000);
            writer.frame(at, &frame(number), FrameNotes::default()).unwrap();
        }
        writer.finish(None).unwrap();
        place
    }

    fn path(&self) -> &Path {
        &self.folder.0
    }

    /// Starts a capture, and waits until it listens.
    fn capture(&self, arguments: &[&str]) -> Child {
        let mut command = command(self.path(), &[&["capture"][..], arguments].concat());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.namespace.run(|| command.spawn()).unwrap().unwrap();
        let mut line = String::new();
        // Byte by byte, so that no further output is consumed.
        let mut errors = BufReader::with_capacity(1, child.stderr.take().unwrap());
        errors.read_line(&mut line).unwrap();
        child.stderr = Some(errors.into_inner());
        if !line.starts_with("capturing") {
            child.stderr.as_mut().unwrap().read_to_string(&mut line).unwrap();
            child.wait().unwrap();
            panic!("{line}");
        }
        child
    }

    /// Sends the file's frames over the cable from its first end.
    fn send(&self) {
        let arguments = ["generate", "--port", "afpacket:cable1", "--pcap", "in.pcapng"];
        let mut command = command(self.path(), &arguments);
        let result: CommandResult =
            self.namespace.run(|| command.output()).unwrap().unwrap().into();
        assert_eq!(result.code, Some(0), "{}", result.errors);
    }
}

fn frame(number: u64) -> Vec<u8> {
    let mut frame = vec![number as u8; 60 + number as usize % 300];
    frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5]);
    frame[14..22].copy_from_slice(&number.to_be_bytes());
    frame
}

fn is_ours(frame: &[u8]) -> bool {
    frame[12..14] == [0x88, 0xb5]
}

/// Returns this test's frames in a file, with their interface and time.
fn read(path: &Path) -> Vec<(u32, Nanos, Vec<u8>)> {
    let mut reader = CaptureReader::open(path).unwrap();
    let mut frames = Vec::new();
    while let Some(event) = reader.next_event().unwrap() {
        if let Event::Frame(frame) = event
            && is_ours(frame.bytes)
        {
            frames.push((frame.interface, frame.at.unwrap(), frame.bytes.to_vec()));
        }
    }
    frames
}

fn assert_all(path: &Path) {
    let frames = read(path);
    assert_eq!(frames.len() as u64, FRAMES);
    let begun = os::clock::since_1970() - Nanos::from_secs(600);
    for (number, (_, at, bytes)) in frames.iter().enumerate() {
        assert!(*bytes == frame(number as u64), "frame {number}");
        assert!(*at > begun && *at < os::clock::since_1970(), "frame {number} at {at}");
    }
    assert!(frames.is_sorted_by_key(|(_, at, _)| *at));
}

fn account(result: &CommandResult) -> Value {
    serde_json::from_str(&result.output).unwrap_or_else(|error| panic!("{error}: {result:?}"))
}

fn received_frames_are_captured_until_an_interrupt() {
    let place = Place::new();
    let child = place.capture(&["--port", "afpacket:cable2", "--write", "out.pcapng", "--json"]);
    place.send();
    interrupt(child.id());
    let result: CommandResult = child.wait_with_output().unwrap().into();
    assert_eq!(result.code, Some(0), "{result:?}");
    assert_all(&place.path().join("out.pcapng"));
    let port = &account(&result)["ports"][0];
    assert_eq!((&port["stamps"], &port["name"]), (&"kernel".into(), &"cable2".into()));
    let of_type = &port["arrived"]["ethernet_types"]["0x88b5"];
    let bytes: u64 = (0..FRAMES).map(|number| frame(number).len() as u64).sum();
    assert_eq!((&of_type["frames"], &of_type["bytes"]), (&FRAMES.into(), &bytes.into()));
}

fn an_interface_that_goes_down_ends_the_capture_with_a_valid_file() {
    let place = Place::new();
    let child = place.capture(&["--port", "afpacket:cable2", "--write", "out.pcap"]);
    place.send();
    let index = place.cable.ends[1].index;
    place.namespace.netlink().unwrap().link_down(index).unwrap();
    let result: CommandResult = child.wait_with_output().unwrap().into();
    assert_eq!(result.code, Some(4), "{result:?}");
    let words = "port 1 failed: interface cable2 is down; earlier frames are kept";
    assert!(result.errors.contains(words), "{result:?}");
    assert_all(&place.path().join("out.pcap"));
}

fn a_capture_over_af_xdp_has_timestamps_of_reception() {
    let place = Place::new();
    let port = "xdp:cable2,stamps=kernel";
    let ends = FRAMES.to_string();
    let arguments = ["--port", port, "--filter", "any", "--count", &ends, "--json"];
    let child = place.capture(&[&arguments[..], &["--write", "out.pcapng"]].concat());
    place.send();
    let result: CommandResult = child.wait_with_output().unwrap().into();
    assert_eq!(result.code, Some(0), "{result:?}");
    assert_eq!(account(&result)["ports"][0]["stamps"], "xdp_program");
    assert_all(&place.path().join("out.pcapng"));
}

fn two_interfaces_are_captured_into_one_file() {
    let place = Place::new();
    let ports = ["--port", "afpacket:cable1", "--port", "afpacket:cable2"];
    let child = place.capture(&[&ports[..], &["--write", "out.pcapng", "--json"]].concat());
    place.send();
    interrupt(child.id());
    let result: CommandResult = child.wait_with_output().unwrap().into();
    let account = account(&result);
    let ours = |place: usize| {
        account["ports"][place]["captured"]["ethernet_types"]["0x88b5"]["frames"].as_u64()
    };
    assert_eq!((ours(0), ours(1)), (None, Some(FRAMES)), "a port receives and does not send");
    let frames = read(&place.path().join("out.pcapng"));
    assert!(frames.len() as u64 == FRAMES && frames.iter().all(|(interface, ..)| *interface == 1));
}

/// Pause of the receiver after each arrival.
const AWAY: Nanos = Nanos::from_millis(2);

/// A port whose owner pauses after each arrival.
struct Away(Box<dyn Port>);

impl Port for Away {
    fn facts(&self) -> &PortFacts {
        self.0.facts()
    }

    fn receive(&mut self, batch: &mut Batch, _now: Nanos) -> Result<usize, PortError> {
        let mut wait = WaitSet::new();
        wait.add(self.0.descriptor().unwrap(), false);
        if wait.until(Some(Nanos::ZERO)).unwrap() > 0 {
            clock::sleep_until(clock::now() + AWAY);
        }
        self.0.receive(batch, clock::now())
    }

    fn transmit(&mut self, batch: &mut Batch, now: Nanos) -> Result<usize, PortError> {
        self.0.transmit(batch, now)
    }

    fn counters(&mut self) -> PortCounters {
        self.0.counters()
    }
}

const STREAM: &str = r#"
[[stream]]
id = 1
from = 1
to = 2
frame_bytes = 64
rate_pps = 200.0
mac_source = "02:00:00:00:00:01"
mac_destination = "02:00:00:00:00:02"
ip_source = "10.0.0.1"
ip_destination = "10.0.1.1"
"#;

/// Runs the same trial with each source of timestamps: only timestamps of this program are affected
/// by its own stall.
fn a_stall_of_the_tester_is_not_a_delay() {
    let place = Place::new();
    for (spec, source) in [
        ("xdp:cable2,stamps=kernel", Clock::XdpProgram),
        ("afpacket:cable2", Clock::Kernel),
        ("xdp:cable2", Clock::UserSpace),
    ] {
        let open = |spec: &str| {
            let opened = place.namespace.run(|| netio::open::open(spec, &Options::monitor()));
            opened.unwrap().unwrap()
        };
        let ports: Vec<Box<dyn Port>> = vec![open("afpacket:cable1"), Box::new(Away(open(spec)))];
        let streams = tester::stream::file::read(STREAM, 2).unwrap();
        let trial =
            Trial::new(streams, Nanos::ZERO, Nanos::from_millis(250), Nanos::from_millis(100));
        let report = LiveRig::new(ports, 1, Default::default()).trial(&trial).unwrap();
        assert_eq!(report.stamps, source, "{spec}");
        assert!(report.classes.correct > 0, "{spec}: {:?}", report.classes);
        // Frames that this program itself timestamps during its stall have no known delay.
        let least = report.latency.from_sent.ns_min();
        if source == Clock::UserSpace {
            assert!(report.latency.unknown > 0, "{spec}: {least:?}");
        } else {
            assert!(least.is_some_and(|least| least < AWAY.0), "{spec}: {least:?}");
        }
    }
}
