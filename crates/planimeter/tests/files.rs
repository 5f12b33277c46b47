//! Tests of the program on capture files only: they need no privileges and no real time.

#![allow(clippy::unwrap_used)]

mod common;

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;

use common::{CommandResult, Folder, planimeter};
use netio::capture::{CaptureOptions, CaptureReader, CaptureWriter, Format};
use packet::build::Builder;
use packet::capture::Event;
use packet::capture::write::FrameNotes;
use packet::header::ipv4;
use packet::time::Nanos;
use serde_json::Value;

fn at(number: usize) -> Nanos {
    Nanos(1_600_000_000_123_456_789 + number as u64 * 1_000)
}

/// Returns datagrams from station `from` to station `to`, from port 1000 to ports 53 and 5000 in
/// turn.
fn datagrams(count: usize, from: u8, to: u8) -> Vec<Vec<u8>> {
    let datagram = |number: usize| {
        let header = ipv4::Header::new([10, 0, 0, from].into(), [10, 0, 0, to].into());
        let port = if number.is_multiple_of(2) { 53 } else { 5_000 };
        Builder::new([2, 0, 0, 0, 0, to], [2, 0, 0, 0, 0, from])
            .ipv4(header)
            .udp(1_000, port)
            .payload(&vec![number as u8; number * 30])
            .bytes()
    };
    (0..count).map(datagram).collect()
}

fn write(path: &Path, frames: &[Vec<u8>]) {
    let options = CaptureOptions { format: Format::of(path), ..CaptureOptions::pcapng("x") };
    let mut writer = CaptureWriter::new(fs::File::create(path).unwrap(), &options).unwrap();
    for (number, frame) in frames.iter().enumerate() {
        writer.frame(at(number), frame, FrameNotes::default()).unwrap();
    }
    writer.finish(None).unwrap();
}

fn read(path: &Path) -> Vec<Vec<u8>> {
    let mut reader = CaptureReader::open(path).unwrap();
    let mut frames = Vec::new();
    while let Some(event) = reader.next_event().unwrap() {
        if let Event::Frame(frame) = event {
            frames.push(frame.bytes.to_vec());
        }
    }
    frames
}

fn done(result: &CommandResult) -> Value {
    assert_eq!(result.code, Some(0), "{}", result.errors);
    serde_json::from_str(&result.output).unwrap()
}

#[test]
fn a_bridge_between_files_ends_with_them() {
    let folder = Folder::new();
    let there = datagrams(300, 1, 2);
    let back = datagrams(200, 2, 1);
    write(&folder.0.join("one.pcapng"), &there);
    write(&folder.0.join("two.pcap"), &back);
    let result = planimeter(
        &folder.0,
        &[
            "bridge",
            "--port",
            "1=pcap:one.pcapng,out=from-two.pcap",
            "--port",
            "2=pcap:two.pcap,out=from-one.pcapng",
            "--port",
            "3=pcap:out=flooded.pcapng",
        ],
    );
    assert_eq!(result.code, Some(0), "{}", result.errors);
    assert!(read(&folder.0.join("from-one.pcapng")) == there);
    assert!(read(&folder.0.join("from-two.pcap")) == back);
    // The first station is unknown only until its first frame arrives.
    assert!(read(&folder.0.join("flooded.pcapng")).len() < there.len());
}

#[test]
fn a_switch_without_a_controller_bridges_every_frame_of_a_file() {
    let folder = Folder::new();
    let frames = datagrams(400, 1, 2);
    write(&folder.0.join("in.pcap"), &frames);
    let ports = ["--port", "1=pcap:in.pcap", "--port", "2=pcap:out=out.pcap"];
    for (mode, count) in [("standalone", 400), ("secure", 0)] {
        let arguments = [&["switch"][..], &ports, &["--fail-mode", mode]].concat();
        let result = planimeter(&folder.0, &arguments);
        assert_eq!(result.code, Some(0), "{}", result.errors);
        assert!(read(&folder.0.join("out.pcap")) == frames[..count], "{mode}: {}", result.errors);
    }
}

/// An OpenFlow 1.0 controller that sends every packet-in's frame out of port 2, until the switch
/// disconnects.
fn controller(mut channel: TcpStream) -> usize {
    channel.write_all(&[1, 0, 0, 8, 0, 0, 0, 1]).unwrap();
    let (mut head, mut asked) = ([0; 8], 0);
    while channel.read_exact(&mut head).is_ok() {
        let mut body = vec![0; usize::from(u16::from_be_bytes([head[2], head[3]])) - 8];
        channel.read_exact(&mut body).unwrap();
        const PACKET_IN: u8 = 10;
        if head[1] != PACKET_IN {
            continue;
        }
        let frame = &body[10..];
        let [high, low] = (24 + frame.len() as u16).to_be_bytes();
        let out =
            [1, 13, high, low, 0, 0, 0, 9, 255, 255, 255, 255, 0, 1, 0, 8, 0, 0, 0, 8, 0, 2, 0, 0];
        channel.write_all(&[&out[..], frame].concat()).unwrap();
        asked += 1;
    }
    asked
}

#[test]
fn a_switch_waits_for_packet_outs_of_its_controller_before_it_ends() {
    let folder = Folder::new();
    let frames = datagrams(3, 1, 2);
    write(&folder.0.join("in.pcap"), &frames);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("tcp:{}", listener.local_addr().unwrap());
    let asked = std::thread::spawn(move || controller(listener.accept().unwrap().0));
    let ports = ["--port", "1=pcap:in.pcap,after=3", "--port", "2=pcap:out=out.pcap"];
    let arguments = [&["switch", "--openflow", "1.0", "--controller", &url][..], &ports].concat();
    let result = planimeter(&folder.0, &arguments);
    assert_eq!(result.code, Some(0), "{}", result.errors);
    assert_eq!(asked.join().unwrap(), 3, "{}", result.errors);
    assert!(read(&folder.0.join("out.pcap")) == frames);
}

#[test]
fn a_damaged_input_file_is_reported_and_earlier_frames_are_forwarded() {
    let folder = Folder::new();
    let frames = datagrams(3, 1, 2);
    write(&folder.0.join("in.pcap"), &frames);
    let whole = fs::read(folder.0.join("in.pcap")).unwrap();
    fs::write(folder.0.join("in.pcap"), &whole[..whole.len() - 5]).unwrap();
    let result = planimeter(
        &folder.0,
        &["bridge", "--port", "1=pcap:in.pcap", "--port", "2=pcap:out=out.pcap"],
    );
    assert!(result.errors.contains("port 1: down: in.pcap: at byte"), "{}", result.errors);
    assert!(read(&folder.0.join("out.pcap")) == frames[..2]);
    let result =
        planimeter(&folder.0, &["capture", "--port", "pcap:in.pcap", "--write", "all.pcap"]);
    assert!(result.errors.contains("port 1 failed: in.pcap: at byte"), "{}", result.errors);
    assert_eq!(result.code, Some(2));
    assert!(read(&folder.0.join("all.pcap")) == frames[..2]);
}

#[test]
fn a_capture_filters_counts_and_truncates() {
    let folder = Folder::new();
    let frames = datagrams(40, 1, 2);
    write(&folder.0.join("in.pcapng"), &frames);
    let text = planimeter(
        &folder.0,
        &[
            "capture",
            "--port",
            "pcap:in.pcapng",
            "--filter",
            "proto=udp,dport=53",
            "--filter",
            "drop,any",
            "--write",
            "out.pcapng",
            "--snaplen",
            "100",
            "--comment",
            "a test",
            "--json",
        ],
    );
    let account = done(&text);
    let wanted: Vec<&Vec<u8>> = frames.iter().step_by(2).collect();
    let bytes = |frames: &[&Vec<u8>]| frames.iter().map(|it| it.len() as u64).sum::<u64>();
    assert_eq!(account["frames_written"], 20);
    let port = &account["ports"][0];
    assert_eq!((&port["stamps"], &port["arrived"]["frames"]), (&"file".into(), &40.into()));
    assert_eq!(port["captured"]["protocols"]["udp"]["bytes"], bytes(&wanted));
    assert_eq!(port["arrived"]["ethernet_types"]["0x0800"]["frames"], 40);
    assert_eq!(account["filter"]["entries"][1]["frames"], 20);
    let mut reader = CaptureReader::open(&folder.0.join("out.pcapng")).unwrap();
    let (mut place, mut statistics) = (0, None);
    while let Some(event) = reader.next_event().unwrap() {
        match event {
            Event::Frame(frame) => {
                let (want, kept) = (wanted[place], wanted[place].len().min(100));
                assert_eq!(
                    (frame.at, frame.original_bytes),
                    (Some(at(2 * place)), want.len() as u32)
                );
                assert_eq!(frame.bytes, &want[..kept]);
                assert_eq!(frame.cut().is_some(), want.len() > 100);
                assert!(frame.cut().is_none_or(|cut| cut.fits(&want[kept..])));
                place += 1;
            }
            Event::Statistics(it) => statistics = Some(it),
            _ => {}
        }
    }
    let statistics = statistics.unwrap();
    assert_eq!((place, statistics.received, statistics.accepted), (20, Some(40), Some(20)));
    assert_eq!(account["file_bytes"], fs::metadata(folder.0.join("out.pcapng")).unwrap().len());
}

#[test]
fn a_generator_between_files_counts_by_protocol() {
    let folder = Folder::new();
    let frames = datagrams(20, 1, 2);
    write(&folder.0.join("in.pcap"), &frames);
    write(&folder.0.join("back.pcap"), &datagrams(30, 2, 1));
    let ports = ["--port", "pcap:out=sent.pcap", "--port", "pcap:back.pcap"];
    let rest = ["--pcap", "in.pcap", "--topspeed", "--json"];
    let account = done(&planimeter(&folder.0, &[&["generate"][..], &ports, &rest].concat()));
    assert!(read(&folder.0.join("sent.pcap")) == frames);
    let protocols = account["ports"][1]["protocols"].as_array().unwrap();
    let counted: Vec<_> =
        protocols.iter().map(|it| (it["protocol"].as_str(), it["frames"].as_u64())).collect();
    assert_eq!(counted, [(Some("ipv4"), Some(30)), (Some("udp"), Some(30))]);
    assert_eq!(account["ports"][0]["protocols"], Value::Array(Vec::new()));
}

#[test]
fn a_capture_ends_at_its_limit() {
    let folder = Folder::new();
    write(&folder.0.join("in.pcap"), &datagrams(100, 1, 2));
    let one = ["capture", "--port", "pcap:in.pcap", "--write", "out.pcap", "--json"];
    let account = done(&planimeter(&folder.0, &[&one[..], &["--count", "7"]].concat()));
    assert_eq!(
        (&account["frames_written"], read(&folder.0.join("out.pcap")).len()),
        (&7.into(), 7)
    );
    let account = done(&planimeter(&folder.0, &[&one[..], &["--file-bytes", "1000"]].concat()));
    let size = fs::metadata(folder.0.join("out.pcap")).unwrap().len();
    assert!((1_000..3_000).contains(&size), "{account}");
    let captured = account["frames_captured"].as_u64().unwrap();
    let reported = ["frames_written", "frames_not_written"].map(|it| account[it].as_u64().unwrap());
    assert_eq!(reported[0] + reported[1], captured);
}

#[test]
fn invalid_commands_are_reported() {
    let folder = Folder::new();
    write(&folder.0.join("in.pcap"), &datagrams(4, 1, 2));
    fs::write(folder.0.join("filter"), "any\n\ndrop,dport=x\n").unwrap();
    fs::write(folder.0.join("words"), "these are words").unwrap();
    let port = ["capture", "--port", "pcap:in.pcap"];
    for (rest, words) in [
        (
            &["--filter", "any", "--filter", "src=10.0.0.1/8"][..],
            "--filter 2: character 1, \"src=10.0.0.1/8\"",
        ),
        (&["--filter-file", "filter"], "filter: line 3, character 6"),
        (&["--filter-file", "nothing"], "cannot read nothing: "),
        (&["--write", "nowhere/out.pcap"], "nowhere/out.pcap: No such file"),
        (&["--port", "pcap:words"], "words: at byte 0"),
        (&["--snaplen", "0"], "--snaplen"),
    ] {
        let result = planimeter(&folder.0, &[&port[..], rest].concat());
        let is_port = rest[0] == "--port";
        assert!(result.errors.contains(words), "{rest:?}: {}", result.errors);
        assert_eq!(result.code, Some(if is_port { 0 } else { 2 }), "{rest:?}: {}", result.errors);
    }
    for (filters, words) in [
        (
            ["any", "dport=53"],
            "filter entry 2 (capture,dport=53) has no effect: entry 1 (capture,any)",
        ),
        (["src=10.0.0.0/8", "drop,dport=53"], "overlap with different results"),
        (["drop,sport=1", "drop,any"], "no filter entry captures frames"),
    ] {
        let all = [&port[..], &["--filter", filters[0], "--filter", filters[1]]].concat();
        let result = planimeter(&folder.0, &all);
        assert_eq!(result.code, Some(0), "{}", result.errors);
        assert!(result.errors.contains(words), "{filters:?}: {}", result.errors);
    }
}
