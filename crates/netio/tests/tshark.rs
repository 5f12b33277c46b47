//! Interoperability of capture files: tshark, capinfos and editcap read our files, and we read
//! theirs, with equal results.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::Command;

use netio::capture::{CaptureOptions, CaptureReader, CaptureWriter, Format};
use packet::capture::resolution::Resolution;
use packet::capture::truncation::Cut;
use packet::capture::write::{Frame, FrameNotes, PcapNg};
use packet::capture::{Direction, Endianness, Event, Interface, Statistics};
use packet::time::Nanos;

/// A frame as both sides report it: seconds and nanoseconds, original and captured length, bytes.
type Told = (String, u32, usize, String);

fn have(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok();
    assert!(found || std::env::var_os("CI").is_none(), "{program} is required in CI");
    if !found {
        println!("skipped: needs {program} (Debian: tshark)");
    }
    found
}

fn place(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the columns that tshark prints for a file.
fn tshark(file: &Path, fields: &[&str]) -> Vec<Vec<String>> {
    let file = file.to_str().unwrap();
    let mut arguments = vec!["-n", "-r", file, "-T", "fields", "-E", "separator=|"];
    fields.iter().for_each(|field| arguments.extend(["-e", field]));
    let lines = run("tshark", &arguments);
    lines.lines().map(|line| line.split('|').map(str::to_owned).collect()).collect()
}

/// Returns the frames of a file, as tshark reads them.
fn told_by_tshark(file: &Path) -> Vec<Told> {
    let lines = tshark(file, &["frame.time_epoch", "frame.len", "frame.cap_len"]);
    let bytes = bytes_by_tshark(file);
    let rows = lines.into_iter().zip(bytes);
    rows.map(|(line, bytes)| {
        (line[0].clone(), line[1].parse().unwrap(), line[2].parse().unwrap(), bytes)
    })
    .collect()
}

/// Returns each frame's bytes in hexadecimal, from tshark's dump.
fn bytes_by_tshark(file: &Path) -> Vec<String> {
    let dump = run("tshark", &["-n", "-r", file.to_str().unwrap(), "-x", "--hexdump", "noascii"]);
    let mut frames = Vec::new();
    for part in dump.split("\n\n").filter(|part| !part.trim().is_empty()) {
        let lines = part.lines().filter_map(|line| Some(line.split_once("  ")?.1.to_owned()));
        frames.push(lines.collect::<String>().replace(' ', ""));
    }
    frames
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the frames of a file, as this crate reads them.
fn told_by_us(file: &Path) -> Vec<Told> {
    let mut reader = CaptureReader::open(file).unwrap();
    let mut reported = Vec::new();
    while let Some(event) = reader.next_event().unwrap() {
        if let Event::Frame(frame) = event {
            let at = frame.at.unwrap_or(Nanos::ZERO).0;
            let at = format!("{}.{:09}", at / 1_000_000_000, at % 1_000_000_000);
            reported.push((at, frame.original_bytes, frame.bytes.len(), hex(frame.bytes)));
        }
    }
    reported
}

fn bytes(number: u64) -> Vec<u8> {
    let head = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5];
    let rest = (0..50 + number * 7 % 900).map(|at| (at * number) as u8);
    head.into_iter().chain(rest).collect()
}

fn at(number: u64) -> Nanos {
    Nanos(1_700_000_000_987_654_321 + number * 333_333_337)
}

/// Writes a file with 40 frames, some of them truncated.
fn ours(format: Format, name: &str) -> PathBuf {
    let options = CaptureOptions {
        format,
        interface: "port1".into(),
        mac: Some([2, 0, 0, 0, 0, 7]),
        interface_comment: None,
        comment: Some("a whole file".into()),
        snap_bytes: 200,
    };
    let file = std::fs::File::create(place(name)).unwrap();
    let mut writer = CaptureWriter::new(file, &options).unwrap();
    for number in 0..40 {
        let notes = FrameNotes {
            direction: Some(Direction::Inbound),
            dropped: (number == 7).then_some(5),
            comment: (number == 9).then_some("the ninth"),
            cut: None,
        };
        writer.frame(at(number), &bytes(number), notes).unwrap();
    }
    let counted = Statistics {
        received: Some(52),
        dropped: Some(12),
        at: Some(at(40)),
        ..Statistics::default()
    };
    writer.finish(Some(&counted)).unwrap();
    place(name)
}

#[test]
fn tshark_reads_written_files_as_we_do() {
    if !have("tshark") || !have("capinfos") {
        return;
    }
    for (format, name) in [
        (Format::PcapMicros, "micros.pcap"),
        (Format::PcapNanos, "nanos.pcap"),
        (Format::PcapNg, "ours.pcapng"),
    ] {
        let file = ours(format, name);
        let reported = told_by_us(&file);
        assert_eq!(reported.len(), 40);
        assert!(reported.iter().any(|frame| frame.1 as usize > frame.2));
        assert_eq!(told_by_tshark(&file), reported, "{name}");
        let capinfos = run("capinfos", &["-M", "-c", "-E", "-s", file.to_str().unwrap()]);
        assert!(capinfos.contains("Number of packets:   40"), "{capinfos}");
        assert!(capinfos.contains("ether"), "{capinfos}");
    }
    let file = place("ours.pcapng");
    let lines =
        tshark(&file, &["frame.comment", "frame.interface_name", "frame.packet_flags_direction"]);
    assert_eq!(lines[9], ["the ninth", "port1", "0x00000001"]);
    assert_eq!(lines[8][0], "");
    let capinfos = run("capinfos", &[file.to_str().unwrap()]);
    for words in ["a whole file", "port1", "planimeter", "Time precision = nanoseconds"] {
        assert!(capinfos.contains(words), "{words:?} is not in {capinfos}");
    }
}

#[test]
fn tshark_shows_truncation_comments_and_interfaces() {
    if !have("tshark") {
        return;
    }
    let options = CaptureOptions {
        interface_comment: Some("stamps by kernel".into()),
        ..CaptureOptions::pcapng("port1")
    };
    let file = std::fs::File::create(place("cut.pcapng")).unwrap();
    let mut writer = CaptureWriter::new(file, &options).unwrap();
    let second = CaptureOptions::pcapng("port2");
    assert_eq!(writer.add_interface(&second).unwrap(), 1);
    let whole = bytes(40);
    let cut = Cut::of(&whole[60..]);
    let notes = FrameNotes { comment: Some("a remark"), cut: Some(cut), ..FrameNotes::default() };
    let original_bytes = whole.len() as u32;
    for interface in [0, 1] {
        let frame = Frame { interface, at: at(0), bytes: &whole[..60], original_bytes, notes };
        writer.write(&frame).unwrap();
    }
    writer
        .statistics(&Statistics { interface: 1, received: Some(9), ..Statistics::default() })
        .unwrap();
    writer.finish(None).unwrap();
    let lines =
        tshark(&place("cut.pcapng"), &["frame.comment", "frame.interface_name", "frame.len"]);
    for (line, name) in lines.iter().zip(["port1", "port2"]) {
        assert!(line[0].contains("a remark") && line[0].contains(&cut.to_string()), "{line:?}");
        assert_eq!(line[1..], [name.to_owned(), original_bytes.to_string()]);
    }
}

#[test]
fn files_of_editcap_are_read_as_by_tshark() {
    if !have("editcap") {
        return;
    }
    let from = ours(Format::PcapNg, "for_editcap.pcapng");
    for format in ["pcap", "nsecpcap", "pcapng"] {
        let file = place(&format!("editcap.{format}"));
        let arguments = ["-F", format, "-s", "150", "-a", "3:said later"];
        let names = [from.to_str().unwrap(), file.to_str().unwrap()];
        run("editcap", &[&arguments[..], &names].concat());
        let reported = told_by_us(&file);
        assert_eq!(reported.len(), 40);
        assert_eq!(reported, told_by_tshark(&file), "{format}");
    }
    let mut reader = CaptureReader::open(&place("editcap.pcapng")).unwrap();
    let (mut number, mut comments, mut dropped) = (0, Vec::new(), Vec::new());
    let mut counted = None;
    while let Some(event) = reader.next_event().unwrap() {
        match event {
            Event::Frame(frame) => {
                number += 1;
                comments.extend(frame.comments().map(|text| (number, text.to_vec())));
                dropped.extend(frame.dropped.map(|count| (number, count)));
            }
            Event::Statistics(statistics) => counted = Some(statistics),
            _ => {}
        }
    }
    assert_eq!(comments, [(3, b"said later".to_vec()), (10, b"the ninth".to_vec())]);
    assert_eq!(dropped, [(8, 5)]);
    if let Some(counted) = counted {
        assert_eq!((counted.received, counted.dropped), (Some(52), Some(12)));
    }
}

#[test]
fn every_unit_byte_order_and_offset_of_timestamps_is_read_as_by_tshark() {
    if !have("tshark") {
        return;
    }
    for (unit, offset_seconds, order) in [
        (0, 0, Endianness::Little),
        (3, 1_600_000_000, Endianness::Big),
        (6, 1_600_000_000, Endianness::Little),
        (9, -5, Endianness::Little),
        (0x80 | 1, 0, Endianness::Big),
        (0x80 | 20, 1_600_000_000, Endianness::Little),
        (0x80 | 29, 0, Endianness::Big),
    ] {
        let name = format!("unit-{unit}-{offset_seconds}.pcapng");
        let mut file = Vec::new();
        let mut ng = PcapNg::begin(&mut file, order, "test", None);
        let interface = Interface {
            name: "x".into(),
            mac: None,
            snap_bytes: 0,
            resolution: Resolution(unit),
            offset_seconds,
            fcs_bytes: 0,
        };
        ng.interface(&mut file, &interface, None).unwrap();
        for number in 0..5 {
            let (at, bytes, notes) = (at(number), bytes(number), FrameNotes::default());
            let original_bytes = bytes.len() as u32;
            let frame = Frame { interface: 0, at, bytes: &bytes, original_bytes, notes };
            ng.frame(&mut file, &frame).unwrap();
        }
        std::fs::write(place(&name), file).unwrap();
        assert_eq!(told_by_us(&place(&name)), told_by_tshark(&place(&name)), "{name}");
    }
}

#[test]
fn a_pcap_file_in_the_other_byte_order_is_read_as_by_tshark() {
    if !have("tshark") {
        return;
    }
    for has_nanos in [false, true] {
        let pcap =
            packet::capture::write::Pcap { order: Endianness::Big, has_nanos, snap_bytes: 65535 };
        let mut file = Vec::new();
        pcap.begin(&mut file);
        for number in 0..5 {
            let (at, bytes, notes) = (at(number), bytes(number), FrameNotes::default());
            let original_bytes = bytes.len() as u32;
            let frame = Frame { interface: 0, at, bytes: &bytes, original_bytes, notes };
            pcap.frame(&mut file, &frame).unwrap();
        }
        let name = place(&format!("big-{has_nanos}.pcap"));
        std::fs::write(&name, file).unwrap();
        assert_eq!(told_by_us(&name), told_by_tshark(&name));
    }
}

#[test]
fn files_that_tshark_writes_and_merges_are_read() {
    if !have("text2pcap") || !have("mergecap") {
        return;
    }
    let text = "000000 02 00 00 00 00 02 02 00 00 00 00 01 88 b5 01 02 03 04\n";
    let dump = place("dump.txt");
    std::fs::write(&dump, text.repeat(3)).unwrap();
    let (one, both) = (place("text2pcap.pcapng"), place("merged.pcapng"));
    run("text2pcap", &["-q", dump.to_str().unwrap(), one.to_str().unwrap()]);
    let other = ours(Format::PcapNg, "for_mergecap.pcapng");
    let names = [both.to_str().unwrap(), one.to_str().unwrap(), other.to_str().unwrap()];
    run("mergecap", &[&["-I", "none", "-w"][..], &names].concat());
    let reported = told_by_us(&both);
    assert_eq!(reported.len(), 43);
    assert_eq!(reported, told_by_tshark(&both));
    let mut reader = CaptureReader::open(&both).unwrap();
    while reader.next_event().unwrap().is_some() {}
    assert_eq!(reader.decoder().interfaces().len(), 2);
}
