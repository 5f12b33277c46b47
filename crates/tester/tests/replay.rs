//! Replays over a rig: received frames equal the captured ones, byte by byte and gap by gap.

#![allow(clippy::unwrap_used)]

mod common;

use std::cell::RefCell;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use common::{Copy, KEY, pass, rig, stream, trial};
use netio::capture::{CaptureOptions, CaptureReader, CaptureWriter};
use netio::memory::pair;
use netio::port::Port;
use packet::build::Builder;
use packet::capture::Event;
use packet::capture::write::FrameNotes;
use packet::frame::Frame;
use packet::header::ipv4;
use packet::parse::Packet;
use packet::time::Nanos;
use tester::rig::live::LiveRig;
use tester::rig::{Rig, RigError};
use tester::signature::{NEUTRAL_BYTES, Signature};
use tester::stream::replay::{FrameMark, Replay, Timing};
use tester::trial::ReplayReport;
use tester::trial::{Classes, Trial};

/// Frames of a file or of a wire, with their times.
type Row = (Nanos, Vec<u8>);

fn place(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// Realistic sizes and gaps, the same each time.
fn rows(frames: u64) -> Vec<Row> {
    let (mut dice, mut at) = (9u64, 1_700_000_000_123_456_789);
    let mut roll = move || {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        dice >> 33
    };
    let row = |number: u64| {
        at += [0, 672, 1_230 + roll() % 90_000][roll() as usize % 3];
        let bytes = [60, 60, 200 + roll() as usize % 700, 1514][roll() as usize % 4];
        let mut frame = vec![number as u8; bytes];
        frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5]);
        frame[14..22].copy_from_slice(&number.to_be_bytes());
        (Nanos(at), frame)
    };
    (0..frames).map(row).collect()
}

fn write(name: &str, rows: &[Row]) -> PathBuf {
    let file = File::create(place(name)).unwrap();
    let mut writer = CaptureWriter::new(file, &CaptureOptions::pcapng("x")).unwrap();
    for (at, bytes) in rows {
        writer.frame(*at, bytes, FrameNotes::default()).unwrap();
    }
    writer.finish(None).unwrap();
    place(name)
}

fn with(replay: Replay, trial: Trial) -> Trial {
    Trial { replays: vec![replay], ..trial }
}

/// Replays over a simulated wire, and collects all frames that its other end receives.
fn over_a_wire(trial: &Trial) -> (Vec<Row>, ReplayReport, u64) {
    let heard = Rc::new(RefCell::new(Vec::new()));
    let note = heard.clone();
    let rule = move |_: u64, port: usize, frame: &Frame, now: Nanos| -> Vec<Copy> {
        note.borrow_mut().push((now, frame.bytes().to_vec()));
        vec![pass(1 - port, frame, now)]
    };
    let mut rig = rig(2, rule);
    let mut report = rig.trial(trial).unwrap();
    let foreign = report.ports[1].foreign;
    (heard.take(), report.replays.remove(0), foreign)
}

fn after_the_first(rows: &[Row]) -> impl Iterator<Item = (u64, &[u8])> {
    rows.iter().map(move |(at, bytes)| (at.0 - rows[0].0.0, &bytes[..]))
}

#[test]
fn received_frames_equal_the_captured_bytes_and_gaps() {
    let rows = rows(20_000);
    let file = write("replayed.pcapng", &rows);
    let long = trial(Vec::new(), 5_000);
    let (heard, report, foreign) = over_a_wire(&with(Replay::once(1, 0, file.clone()), long));
    assert!(report.is_complete && report.failure.is_none(), "{report:?}");
    assert!(after_the_first(&heard).eq(after_the_first(&rows)));
    assert_eq!((foreign, report.counts.frames), (20_000, 20_000));
    assert_eq!(report.pacing.gap_error.ns_max(), Some(0));
    // Written to a file again, the received frames give the same file for another program.
    let found = Command::new("editcap").arg("--version").output().is_ok();
    assert!(found || std::env::var_os("CI").is_none(), "editcap is required in CI");
    if found {
        let shift = rows[0].0.0 - heard[0].0.0;
        let heard: Vec<Row> =
            heard.into_iter().map(|(at, bytes)| (at + Nanos(shift), bytes)).collect();
        let reported = [&file, &write("heard.pcapng", &heard)].map(|file| {
            let pcap = file.with_extension("by_editcap.pcap");
            let done =
                Command::new("editcap").args(["-F", "nsecpcap"]).args([file, &pcap]).status();
            assert!(done.unwrap().success());
            std::fs::read(pcap).unwrap()
        });
        assert!(reported[0] == reported[1]);
        // A replay of that program's file is the same replay.
        let pcap = file.with_extension("by_editcap.pcap");
        let (again, ..) = over_a_wire(&with(Replay::once(1, 0, pcap), trial(Vec::new(), 5_000)));
        assert!(after_the_first(&again).eq(after_the_first(&heard)));
    }
}

#[test]
fn paced_passes_continue_on_time_next_to_other_streams() {
    let rows = rows(1_000);
    let file = write("passes.pcapng", &rows);
    let timing = Timing::FramesPerSecond(200_000.0);
    let replay = Replay { timing, passes: None, ..Replay::once(2, 0, file) };
    let trial = with(replay, trial(vec![stream(1, 64, 10_000.0)], 100));
    let mut rig = rig(2, common::wire);
    let report = rig.trial(&trial).unwrap();
    assert_eq!((report.total.offered, report.total.forwarded), (1_000, 1_000));
    assert_eq!(report.account.unexplained(), 0);
    let replayed = &report.replays[0];
    assert_eq!((replayed.counts.frames, replayed.counts.passes), (20_000, 20));
    assert_eq!(report.ports[1].foreign, 20_000);
    assert_eq!(replayed.pacing.gap_error.ns_max(), Some(0));
    assert!(!replayed.is_complete && !replayed.is_behind);
    assert_eq!(report.ports[0].counters.tx_frames, 21_000);
}

#[test]
fn an_invalid_file_is_rejected_before_any_frame_is_sent() {
    let file = place("no_capture.pcap");
    std::fs::write(&file, "this is no capture file").unwrap();
    let error = |replay: Replay| {
        let mut rig = rig(2, common::wire);
        rig.trial(&with(replay, trial(Vec::new(), 1))).unwrap_err()
    };
    let message = error(Replay::once(4, 0, file.clone())).to_string();
    assert!(
        message.starts_with("replay 4: ") && message.contains("no_capture.pcap: at byte 0"),
        "{message}"
    );
    let message = error(Replay::once(4, 0, place("nowhere.pcap"))).to_string();
    assert!(message.contains("nowhere.pcap: No such file"), "{message}");
    assert!(matches!(error(Replay::once(4, 2, file)), RigError::Unusable(_)));
}

#[test]
fn in_real_time_all_frames_arrive_complete_and_in_order() {
    let rows = rows(30_000);
    let file = write("live.pcapng", &rows);
    let (near, far) = pair(65_536, "wire");
    let ports: Vec<Box<dyn Port>> = vec![Box::new(near), Box::new(far)];
    let mut rig = LiveRig::new(ports, KEY, Arc::new(AtomicBool::new(false)));
    let replay = Replay { timing: Timing::FramesPerSecond(1e5), ..Replay::once(1, 0, file) };
    // Frames are due for 300 ms. A slow machine has 2 s more.
    let report = rig.trial(&with(replay, trial(Vec::new(), 2_300))).unwrap();
    let replayed = &report.replays[0];
    assert!(replayed.is_complete, "{replayed:?}");
    assert_eq!((replayed.counts.frames, report.ports[1].foreign), (30_000, 30_000));
    let bytes: usize = rows.iter().map(|(_, bytes)| bytes.len()).sum();
    assert_eq!(report.ports[1].counters.rx_bytes, bytes as u64);
    assert_eq!(replayed.pacing.lateness.count(), 30_000);
}

#[test]
fn written_files_can_be_read() {
    let rows = rows(100);
    let mut reader = CaptureReader::open(&write("read.pcapng", &rows)).unwrap();
    let mut read = Vec::new();
    while let Some(event) = reader.next_event().unwrap() {
        if let Event::Frame(frame) = event {
            read.push((frame.at.unwrap(), frame.bytes.to_vec()));
        }
    }
    assert_eq!(read, rows);
}

/// UDP frames over IPv4. Every tenth has no room for a signature.
fn datagrams(frames: u64) -> Vec<Row> {
    let frame = |number: u64| {
        let payload = vec![number as u8; if number % 10 == 3 { 12 } else { 20 + number as usize }];
        let bytes = Builder::new([2, 9, 9, 9, 9, 2], [2, 9, 9, 9, 9, 1])
            .ipv4(ipv4::Header::new([192, 0, 2, 1].into(), [192, 0, 2, 2].into()))
            .udp(53, 53)
            .payload(&payload)
            .bytes();
        (Nanos(1_700_000_000_000_000_000 + number * 1_000), bytes)
    };
    (0..frames).map(frame).collect()
}

#[test]
fn marked_frames_are_identified_and_short_ones_stay_foreign() {
    let file = write("marked.pcapng", &datagrams(1_000));
    let mark = Some(FrameMark { to: 1, before_end: 0 });
    let replay = Replay { mark, ..Replay::once(2, 0, file) };
    let trial = with(replay, trial(vec![stream(1, 64, 10_000.0)], 20));
    // Of each hundred frames one is lost, one duplicated, one tagged, and one misrouted.
    let wrong = Rc::new(RefCell::new(0));
    let count = wrong.clone();
    let mut marked = 0;
    let rule = move |_: u64, port: usize, frame: &Frame, now: Nanos| -> Vec<Copy> {
        *count.borrow_mut() += u64::from(Packet::of(frame.bytes()).verify_checksums().is_err());
        let whole = || pass(1 - port, frame, now);
        if Signature::read(KEY, &frame.bytes()[frame.len() - NEUTRAL_BYTES..]).is_none() {
            return vec![whole()];
        }
        marked += 1;
        match marked % 100 {
            1 => vec![],
            2 => vec![whole(), whole()],
            3 => {
                let mut copy = whole();
                copy.bytes.splice(12..12, [0x81, 0, 0, 5]);
                vec![copy]
            }
            4 => vec![pass(0, frame, now)],
            5 => vec![Copy { at: now + Nanos(7_700), ..whole() }],
            _ => vec![whole()],
        }
    };
    let report = rig(2, rule).trial(&trial).unwrap();
    assert_eq!(*wrong.borrow(), 0, "a signature broke a checksum");
    let replayed = &report.replays[0];
    assert_eq!((replayed.counts.frames, replayed.counts.signed), (1_000, 900));
    let back = replayed.back.as_ref().unwrap();
    let Classes { correct, duplicate, elsewhere, misrouted, reordered, .. } = back.classes;
    assert_eq!((correct, duplicate, elsewhere, misrouted), (882, 9, 9, 9));
    assert_eq!((reordered, back.received), (9, 891));
    assert_eq!(
        (back.latency.from_sent.ns_max(), back.latency.from_scheduled.count()),
        (Some(7_700), 0)
    );
    assert_eq!((report.ports[1].foreign, report.account.unexplained()), (100, 9));
    assert_eq!((report.total.offered, report.total.forwarded), (200, 200));
}
