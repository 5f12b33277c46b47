//! Tests of captures of two ports in memory: counters and file contents.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use netio::capture::CaptureReader;
use netio::memory::{MemoryPort, pair, pair_stamped};
use packet::capture::Event;
use packet::filter::text::entry;
use packet::frame::Batch;
use packet::traffic::Protocol;

use super::*;

fn settings() -> Settings {
    Settings {
        format: Format::PcapNg,
        snap_bytes: 64,
        sums: true,
        frames_max: u64::MAX,
        bytes_max: u64::MAX,
        comment: Some("about it".into()),
    }
}

/// A capture of two ports, the first with kernel timestamps, and their peers.
fn capture(settings: Settings) -> (Capture<Vec<u8>>, [MemoryPort; 2]) {
    let (one, far_one) = pair_stamped(64, "one", Clock::Kernel);
    let (two, far_two) = pair(64, "two");
    let ports: Vec<Box<dyn Port>> = vec![Box::new(one), Box::new(two)];
    let capture = Capture::new(ports, settings, Some(Vec::new())).unwrap();
    (capture, [far_one, far_two])
}

fn load(capture: &mut Capture<Vec<u8>>, texts: &[&str]) {
    let entries: Vec<Entry> = texts.iter().map(|text| entry(text).unwrap()).collect();
    capture.load(&entries).unwrap();
}

fn frame(number: u8, bytes: usize) -> Vec<u8> {
    let mut frame = vec![number; bytes];
    frame[12..14].copy_from_slice(&[0x88, 0xb5]);
    frame
}

fn send(port: &mut MemoryPort, frames: &[Vec<u8>]) {
    let mut batch = Batch::new(frames.len());
    frames.iter().for_each(|frame| assert!(batch.push_bytes(frame)));
    assert_eq!(port.transmit(&mut batch, Nanos::ZERO).unwrap(), frames.len());
}

/// Captured length, original length, and the truncated part of a frame.
type Told = (usize, u32, Option<Cut>);

/// Parses a capture file: frames by interface, and statistics.
fn contents(file: &[u8]) -> (BTreeMap<u32, Vec<Told>>, Vec<Statistics>) {
    let mut reader = CaptureReader::new(file);
    let (mut frames, mut counted) = (BTreeMap::new(), Vec::new());
    while let Some(event) = reader.next_event().unwrap() {
        match event {
            Event::Frame(it) => frames.entry(it.interface).or_insert_with(Vec::new).push((
                it.bytes.len(),
                it.original_bytes,
                it.cut(),
            )),
            Event::Statistics(it) => counted.push(it),
            _ => {}
        }
    }
    (frames, counted)
}

/// Ends a capture. Returns its counters and its file.
fn finish(capture: Capture<Vec<u8>>) -> (CaptureSnapshot, Vec<u8>) {
    let (frozen, file) = capture.finish(os::clock::now());
    (frozen, file.unwrap().unwrap())
}

#[test]
fn frames_are_counted_before_and_after_the_filter_and_in_the_file() {
    let (mut capture, [mut one, mut two]) = capture(settings());
    send(&mut one, &[frame(1, 60)]);
    assert_eq!(capture.step(os::clock::now()).unwrap(), 1);
    load(&mut capture, &["any"]);
    send(&mut one, &[frame(2, 60), frame(3, 100)]);
    send(&mut two, &[frame(4, 64), frame(5, 1_000), frame(6, 65)]);
    assert_eq!(capture.step(os::clock::now()).unwrap(), 5);
    let (frozen, file) = finish(capture);
    let counted = |place: usize| {
        let port: &PortFrozen = &frozen.ports[place];
        (port.arrived.total.frames, port.captured.total.frames, port.counters.rx_frames)
    };
    assert_eq!((counted(0), counted(1)), ((3, 2, 3), (3, 3, 3)));
    assert_eq!(frozen.ports[0].arrived.protocol(Protocol::Other).bytes, 220);
    assert_eq!(
        frozen.ports.iter().map(|it| it.stamps).collect::<Vec<_>>(),
        [Clock::Kernel, Clock::UserSpace]
    );
    assert_eq!((frozen.filter.captured, frozen.filter.unloaded), (5, 1));
    assert_eq!((frozen.frames_written, frozen.frames_late), (5, 0));
    assert_eq!(frozen.file_bytes, file.len() as u64);
    let (frames, statistics) = contents(&file);
    let cut = |number: u8, bytes: usize| Some(Cut::of(&vec![number; bytes - 64]));
    assert_eq!(frames[&0], [(60, 60, None), (64, 100, cut(3, 100))]);
    let two = [(64, 64, None), (64, 1_000, cut(5, 1_000)), (64, 65, cut(6, 65))];
    assert_eq!(frames[&1], two);
    let counts: Vec<_> = statistics
        .iter()
        .map(|it| (it.interface, it.received, it.accepted, it.delivered, it.dropped_by_system))
        .collect();
    let row = |port, received, kept| (port, Some(received), Some(kept), Some(kept), Some(0));
    assert_eq!(counts, [row(0, 3, 2), row(1, 3, 3)]);
    assert!(statistics.iter().all(|it| it.started_at <= it.ended_at && it.ended_at.is_some()));
}

#[test]
fn frames_after_the_file_limit_are_counted_but_not_written() {
    for limit in ["frames", "bytes"] {
        let mut settings = settings();
        match limit {
            "frames" => settings.frames_max = 2,
            _ => settings.bytes_max = 1,
        }
        let (mut capture, [mut one, _two]) = capture(settings);
        load(&mut capture, &["any"]);
        send(&mut one, &[frame(1, 60), frame(2, 60), frame(3, 60)]);
        capture.step(os::clock::now()).unwrap();
        assert!(capture.is_full());
        let (frozen, file) = finish(capture);
        let written = if limit == "frames" { 2 } else { 0 };
        assert_eq!((frozen.frames_written, frozen.frames_late), (written, 3 - written));
        assert_eq!(contents(&file).0.values().flatten().count() as u64, written);
    }
}

#[test]
fn a_failed_port_is_reported_and_the_others_continue() {
    let (mut capture, [one, mut two]) = capture(settings());
    load(&mut capture, &["any"]);
    drop(one);
    for number in 0..3 {
        send(&mut two, &[frame(number, 60)]);
        assert_eq!(capture.step(os::clock::now()).unwrap(), 1);
    }
    assert_eq!((capture.working().count(), capture.is_over()), (1, false));
    drop(two);
    capture.step(os::clock::now()).unwrap();
    assert!(capture.is_over());
    let (frozen, file) = finish(capture);
    for port in &frozen.ports {
        assert!(port.failure.as_ref().is_some_and(|why| why.contains(&port.name)), "{port:?}");
    }
    assert_eq!(contents(&file).0[&1].len(), 3);
}

/// A disk of limited size, with its contents.
#[derive(Clone)]
struct Disk {
    bytes: Rc<RefCell<Vec<u8>>>,
    room: usize,
}

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let mut on_it = self.bytes.borrow_mut();
        let taken = bytes.len().min(self.room - on_it.len());
        on_it.extend_from_slice(&bytes[..taken]);
        let full = || std::io::Error::from(std::io::ErrorKind::StorageFull);
        if taken == 0 { Err(full()) } else { Ok(taken) }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Captures a hundred frames onto a disk of this size. Returns the counters, whether the file is
/// complete, and the disk's contents.
fn onto_disk(room: usize) -> (CaptureSnapshot, bool, Vec<u8>) {
    let (near, mut far) = pair(256, "one");
    let disk = Disk { bytes: Rc::default(), room };
    let settings = Settings { snap_bytes: 1_000, ..settings() };
    let mut capture = Capture::new(vec![Box::new(near)], settings, Some(disk.clone())).unwrap();
    capture.load(&[entry("any").unwrap()]).unwrap();
    for number in 0..100 {
        send(&mut far, &[frame(number, 260)]);
        let _ = capture.step(os::clock::now());
    }
    let (frozen, file) = capture.finish(os::clock::now());
    let is_whole = file.is_ok();
    drop(file);
    (frozen, is_whole, disk.bytes.take())
}

#[test]
fn frames_that_do_not_fit_on_the_disk_do_not_count_as_written() {
    let (frozen, is_whole, file) = onto_disk(1 << 20);
    assert!(is_whole && frozen.frames_written == 100);
    // Full within the first buffer, in the middle of the file, within its last frame, and at its
    // end.
    for room in [400, 20_000, file.len() - 300, file.len() - 1] {
        let (frozen, is_whole, bytes) = onto_disk(room);
        assert!(!is_whole, "{room}");
        let mut reader = CaptureReader::new(&bytes[..]);
        let mut frames = 0;
        while let Ok(Some(event)) = reader.next_event() {
            frames += u64::from(matches!(event, Event::Frame(_)));
        }
        assert_eq!(frozen.frames_written, frames, "{room}");
        assert!(frozen.file_bytes <= room as u64 && frozen.filter.captured == 100);
    }
}
