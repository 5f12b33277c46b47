//! Tests of a running element from a user's view: its graph with rates and costs, traces of frames,
//! the effect of another program, and its events over ForCES.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use netio::afpacket::Options;
use netio::capture::CaptureReader;
use packet::capture::{Direction, Event};
use packet::frame::Batch;
use packet::time::Nanos;
use serde_json::Value;
use testbed::Namespace;

use super::agents::{Net, example};
use super::{Place, System};

/// A frame of an experimental EtherType from one station to another.
fn frame(from: u32, to: u32, ether_type: u16) -> Vec<u8> {
    let station = |number: u32| [[2, 7].to_vec(), number.to_be_bytes().to_vec()].concat();
    let mut bytes = [station(to), station(from), ether_type.to_be_bytes().to_vec()].concat();
    bytes.resize(60, 0x5a);
    bytes
}

/// A sender that runs until it is stopped: it repeats a frame of station 1 for station 2, and one
/// of an unknown station.
struct Sender {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Sender {
    fn start(host: &Namespace, name: &str, first: u32) -> Sender {
        let spec = format!("afpacket:{name}");
        let mut port = host.run(|| netio::open::open(&spec, &Options::monitor())).unwrap().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let until = stop.clone();
        let send = move || {
            let mut station = first;
            loop {
                let mut batch = Batch::new(2);
                assert!(batch.push_bytes(&frame(1, 2, 0x88b5)));
                assert!(batch.push_bytes(&frame(station, 2, 0x88b6)));
                port.transmit(&mut batch, Nanos::ZERO).unwrap();
                station += 1;
                if until.load(Ordering::Relaxed) {
                    break;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        };
        Sender { stop, thread: Some(std::thread::spawn(send)) }
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run_program(place: &Place, words: &[&str]) -> (String, String) {
    let output = place.planimeter(words);
    assert_eq!(output.code, Some(0), "{words:?}: {}", output.errors);
    (output.output, output.errors)
}

pub fn a_running_element_is_inspected() {
    let (before, net) = (System::now(), Net::new());
    let bridge = example("bridge.fe.xml");
    let mut element = net.start(&bridge, &["--forces", "punix:forces"]);
    // The bridge first learns where station 2 is.
    drop(Sender::start(&net.hosts[1], "h2", 2));
    let sender = Sender::start(&net.hosts[0], "h1", 1000);
    graph(&net.place);
    frames(&net.place);
    plans(&net.place, &bridge);
    events(&net.place);
    drop(sender);
    assert!(element.is_running());
    assert_eq!(element.end(), Some(0));
    let Net { place, .. } = net;
    place.assert_clean(&before);
}

/// Rates on links, and costs of blocks.
fn graph(place: &Place) {
    let show = ["progfe", "show", "--control-socket", "control", "--duration", "0.3"];
    let (text, _) = run_program(place, &[&show[..], &["--as", "json"]].concat());
    let live: Value = serde_json::from_str(&text).unwrap();
    let links = live["links"].as_array().unwrap();
    let link = |from: &str| links.iter().find(|it| it["from"] == from).unwrap();
    assert!(link("rx#1.L2BridgingPathOut")["frames_per_s"].as_f64().unwrap() > 0.0, "{live}");
    assert!(link("fdb.KnownOut")["bits_per_s"].as_f64().unwrap() > 0.0, "{live}");
    let blocks = live["blocks"].as_array().unwrap();
    let fdb = blocks.iter().find(|it| it["instance"] == "fdb").unwrap();
    assert!(fdb["cost"]["visits"].as_u64().unwrap() > 0, "{live}");
    assert!(fdb["cost"]["median_ns"].as_f64().unwrap() > 0.0, "{live}");
    assert!(live["costs"]["method"].as_str().unwrap().contains("block by block"), "{live}");
    let (picture, _) = run_program(place, &[&show[..], &["--as", "dot"]].concat());
    assert!(picture.contains("label=\"fdb\\n") && picture.contains("/s, "), "{picture}");
    let (text, _) = run_program(place, &show);
    assert!(text.contains("rx#1.L2BridgingPathOut -> fdb.PktsIn"), "{text}");
    // Two at the same time: the second receives no costs, but the reason.
    let both = [place.command(&show), place.command(&show)]
        .map(|mut it| it.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    let refused = both.map(|it| {
        let output = it.wait_with_output().unwrap();
        assert!(output.status.success());
        String::from_utf8_lossy(&output.stderr).contains("another client measures costs")
    });
    assert_ne!(refused, [true, true], "one of them has costs");
}

/// Tests traces of the next matching frames.
fn frames(place: &Place) {
    let trace = ["progfe", "trace", "--control-socket", "control"];
    let wanted = ["--when", "Eth.type = 0x88b5 and meta:PHYPortID = 1", "--count", "3"];
    let (text, _) =
        run_program(place, &[&trace[..], &wanted, &["--json", "--write", "t.pcapng"]].concat());
    let wire: String = frame(1, 2, 0x88b5).iter().map(|byte| format!("{byte:02x}")).collect();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 3, "{text}");
    for line in &lines {
        assert_eq!((&line["port"], &line["came"]), (&1.into(), &wire.as_str().into()), "{line}");
        assert_eq!(line["left"], serde_json::json!([{ "port": 2, "bytes": wire }]), "{line}");
        let steps = line["steps"].as_array().unwrap();
        assert_eq!(steps.last().unwrap()["outcome"], "sent on port 2", "{line}");
    }
    recorded(&place.path().join("t.pcapng"));
    let (text, _) = run_program(place, &[&trace[..], &["--port", "1"]].concat());
    assert!(text.starts_with("frame 1, port 1, 60 bytes\nphy#1: EtherPHYOut"), "{text}");
    // No such frame arrives, and the command ends without a signal.
    let (text, errors) =
        run_program(place, &[&trace[..], &["--when", "ARP", "--duration", "0.1"]].concat());
    assert_eq!(text, "");
    assert!(errors.contains("timeout: 0 of 1 frames in 0.1 s"), "{errors}");
    let output = place.planimeter(&[&trace[..], &["--when", "Eth.kind = 1"]].concat());
    assert_eq!(output.code, Some(2));
    assert!(output.errors.contains("has no field \"kind\""), "{}", output.errors);
}

/// Checks that the file contains each frame as received, with its trace, and as sent.
fn recorded(file: &Path) {
    let mut reader = CaptureReader::open(file).unwrap();
    let mut all = Vec::new();
    while let Some(event) = reader.next_event().unwrap() {
        if let Event::Frame(it) = event {
            let comments = it.comments().map(|it| String::from_utf8_lossy(it).into_owned());
            all.push((it.interface, it.direction, comments.collect::<String>()));
        }
    }
    assert_eq!(all.len(), 6, "{all:?}");
    for pair in all.chunks(2) {
        assert_eq!((pair[0].0, pair[0].1), (0, Some(Direction::Inbound)), "{all:?}");
        assert!(pair[0].2.contains("sent on port 2"), "{all:?}");
        assert_eq!((pair[1].0, pair[1].1), (1, Some(Direction::Outbound)), "{all:?}");
    }
}

/// Tests the effect of another program.
fn plans(place: &Place, bridge: &str) {
    let (text, _) = run_program(place, &["progfe", "plan", bridge, "--control-socket", "control"]);
    assert!(text.starts_with("no changes to bridge\n"), "{text}");
    assert!(text.contains("= fdb: kept: Entries "), "{text}");
    let other = fs::read_to_string(bridge).unwrap();
    let other = other.replace("<set name=\"AgeSeconds\">300<", "<set name=\"AgeSeconds\">60<");
    let other = other.replace("id=\"fdb\"", "id=\"fdb\" reset=\"true\"");
    fs::write(place.path().join("other.fe.xml"), other).unwrap();
    let (text, _) =
        run_program(place, &["progfe", "plan", "other.fe.xml", "--control-socket", "control"]);
    assert!(text.contains("~ fdb.AgeSeconds: 300 -> 60\n"), "{text}");
    assert!(text.contains("~ fdb restarts\n") && text.contains("= fdb: lost: "), "{text}");
    let (text, _) = run_program(place, &["progfe", "plan", bridge, "other.fe.xml", "--json"]);
    assert!(text.contains("~ fdb.AgeSeconds: 300 -> 60"), "{text}");
}

/// Tests events over ForCES: all of them, and every tenth.
fn events(place: &Place) {
    let stations = |filter: &[&str]| -> Vec<u32> {
        let words = ["fe", "--connect", "unix:forces", "watch", "fdb.EntryLearned", "--count", "4"];
        let (text, _) = run_program(place, &[&words[..], filter].concat());
        let station = |line: &str| {
            let at = line.find("02:07:").unwrap_or_else(|| panic!("{text}"));
            u32::from_str_radix(&line[at + 6..at + 17].replace(':', ""), 16).unwrap()
        };
        text.lines().map(station).collect()
    };
    let all = stations(&[]);
    assert_eq!(all.len(), 4);
    assert!(all.windows(2).all(|pair| pair[0] < pair[1]), "{all:?}");
    let some = stations(&["--every", "10"]);
    // The hosts' own addresses are also learned once.
    assert!(some.windows(2).all(|pair| (8..=10).contains(&(pair[1] - pair[0]))), "{some:?}");
}
