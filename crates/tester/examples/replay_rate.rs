//! Benchmark of replays: rate compared to the port's maximum, accuracy of captured gaps, and memory
//! use.
//!
//! `cargo run --release -p instrument --example replay_rate [MEGABYTES [SECONDS [PORT]]]`
//!
//! 1. It writes a file of MEGABYTES (1000) to the directory for temporary files and sends it from
//!    PORT, for example `afpacket:veth0`. Without PORT, it uses a port in memory whose other end
//!    the same thread empties. With `memif`, a second thread empties the other end over shared
//!    memory.
//! 2. It sends a file of SECONDS (5) at 0.2 Mpps with captured gaps, over memory in real time.

#![allow(clippy::unwrap_used)]

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use netio::afpacket::Options;
use netio::capture::read_ahead::ReadAhead;
use netio::capture::{CaptureOptions, CaptureWriter};
use netio::memif::port::MemifPort;
use netio::memif::ring::Side;
use netio::memif::spec::Spec;
use netio::memory::{MemoryPort, pair};
use netio::port::Port;
use os::clock;
use packet::batch_copy::Copies;
use packet::capture::write::FrameNotes;
use packet::time::Nanos;
use tester::generator::replay_sender::ReplaySender;
use tester::rig::Rig;
use tester::rig::live::LiveRig;
use tester::stream::replay::{Replay, Timing};
use tester::trial::Trial;

/// Size of a 64-byte frame with its block in a file, in bytes.
const BLOCK_BYTES: u64 = 92;

/// Frames per batch.
const BATCH_FRAMES: usize = 64;

fn main() {
    let argument = |place| std::env::args().nth(place).and_then(|text| text.parse::<u64>().ok());
    let line = || Line::new(std::env::args().nth(3));
    let frames = argument(1).unwrap_or(1_000) * 1_000_000 / BLOCK_BYTES;
    let seconds = argument(2).unwrap_or(5);
    let name = |what: &str| {
        std::env::temp_dir().join(format!("replay-rate-{}-{what}.pcapng", std::process::id()))
    };
    let long = write(name("long"), frames, |number| number * 100);
    println!("{frames} frames of 64 bytes; Mpps, and share of the port's rate:");
    for _ in 0..3 {
        let ceiling = ceiling(line(), frames);
        let replay = Replay { timing: Timing::Unpaced, ..Replay::once(1, 0, long.clone()) };
        let (rate, starved) = rate(line(), replay, frames);
        println!(
            "port alone {ceiling:.2}, replayed {rate:.2} ({:.0} %), file late {starved} times",
            100.0 * rate / ceiling
        );
    }
    let _ = std::fs::remove_file(&long);
    println!("maximum memory: {}", peak());
    let gaps = |number: u64| number * 5_000 + number.wrapping_mul(0x9e37_79b9) % 4_000;
    let paced = write(name("paced"), seconds * 200_000, gaps);
    own_gaps(&paced, seconds);
    let _ = std::fs::remove_file(&paced);
}

fn write(path: PathBuf, frames: u64, at: impl Fn(u64) -> u64) -> PathBuf {
    let mut writer =
        CaptureWriter::new(File::create(&path).unwrap(), &CaptureOptions::pcapng("x")).unwrap();
    let mut bytes = [0x5a; 60];
    for number in 0..frames {
        bytes[20..28].copy_from_slice(&number.to_be_bytes());
        writer.frame(Nanos(at(number)), &bytes, FrameNotes::default()).unwrap();
    }
    writer.finish(None).unwrap();
    path
}

/// A port to send from, with a receiver if the other end has none.
struct Line {
    near: Box<dyn Port>,
    far: Option<MemoryPort>,
    drain: Copies,
    emptier: Option<Emptier>,
}

impl Line {
    fn new(spec: Option<String>) -> Line {
        let drain = Copies::new(BATCH_FRAMES);
        match spec.as_deref() {
            None => {
                let (near, far) = pair(256, "wire");
                Line { near: Box::new(near), far: Some(far), drain, emptier: None }
            }
            Some("memif") => {
                let (near, emptier) = Emptier::start();
                Line { near: Box::new(near), far: None, drain, emptier: Some(emptier) }
            }
            Some(spec) => {
                let near = netio::open::open(spec, &Options::default()).unwrap();
                Line { near, far: None, drain, emptier: None }
            }
        }
    }

    fn emptied(&mut self, now: Nanos) {
        if let Some(far) = &mut self.far {
            far.receive_copies(&mut self.drain, now).unwrap();
        }
    }
}

/// A thread that receives frames over shared memory and ignores them.
struct Emptier {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Emptier {
    /// Returns the sending port and the receiver of its other end.
    fn start() -> (MemifPort, Emptier) {
        let path = std::env::temp_dir().join(format!("replay-rate-{}", std::process::id()));
        let port =
            |side| MemifPort::open(&Spec { side, ..Spec::new(path.to_str().unwrap()) }).unwrap();
        let (mut far, stop) = (port(Side::Server), Arc::new(AtomicBool::new(false)));
        let seen = stop.clone();
        let thread = std::thread::spawn(move || {
            while !seen.load(Ordering::Relaxed) {
                far.turn(clock::now());
                let queue = &mut far.split().0[0];
                for _ in 0..1_000 {
                    let frames = queue.peek(BATCH_FRAMES).len();
                    queue.release(frames);
                }
            }
        });
        let mut near = port(Side::Client);
        let deadline = clock::now() + Nanos::from_secs(10);
        while !near.has_link() {
            near.turn(clock::now());
            assert!(clock::now() < deadline, "{:?}", near.last_words());
        }
        let _ = std::fs::remove_file(path);
        (near, Emptier { stop, thread: Some(thread) })
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if let Some(Emptier { stop, thread }) = &mut self.emptier {
            stop.store(true, Ordering::Relaxed);
            thread.take().unwrap().join().unwrap();
        }
    }
}

/// Returns the Mpps of prebuilt frames.
fn ceiling(mut line: Line, frames: u64) -> f64 {
    let mut ready = Copies::new(BATCH_FRAMES);
    (0..BATCH_FRAMES).for_each(|_| ready.push(60, None).unwrap().fill(7));
    let mut sent = 0;
    let begin = clock::now();
    while sent < frames {
        sent += line.near.transmit_copies(&mut ready, begin).unwrap() as u64;
        line.emptied(begin);
    }
    per_microsecond(sent, begin)
}

/// Returns the Mpps of a file, and how many times it was not read in time.
fn rate(mut line: Line, replay: Replay, frames: u64) -> (f64, u64) {
    let ahead = ReadAhead::open(&replay.file, replay.passes).and_then(ReadAhead::begun).unwrap();
    let mut player = ReplaySender::new(replay, ahead, 1514, [Nanos::ZERO, Nanos::MAX], false);
    let mut sent = 0;
    let begin = clock::now();
    while sent < frames {
        sent += player.send(line.near.as_mut(), begin).unwrap() as u64;
        line.emptied(begin);
    }
    let rate = per_microsecond(sent, begin);
    (rate, player.report().counts.starved)
}

fn per_microsecond(frames: u64, begin: Nanos) -> f64 {
    frames as f64 / ((clock::now() - begin).0 as f64 / 1e3)
}

fn own_gaps(file: &Path, seconds: u64) {
    let (near, far) = pair(65_536, "wire");
    let ports: Vec<Box<dyn Port>> = vec![Box::new(near), Box::new(far)];
    let mut rig = LiveRig::new(ports, 1, Arc::new(AtomicBool::new(false)));
    let duration = Nanos::from_secs(seconds + 1);
    let trial = Trial {
        replays: vec![Replay::once(1, 0, file.to_path_buf())],
        ..Trial::new(Vec::new(), Nanos::ZERO, duration, Nanos::ZERO)
    };
    let report = rig.trial(&trial).unwrap();
    let replay = &report.replays[0];
    let (late, gaps) = (&replay.pacing.lateness, &replay.pacing.gap_error);
    println!(
        "0.2 Mpps with its own gaps: {} of {} frames, late by {} ns in the median, {} at 99.9 %, {} \
         at most; gaps wrong by {} ns at 99.9 %",
        replay.counts.frames,
        seconds * 200_000,
        late.ns_at_quantile(0.5).unwrap_or(0),
        late.ns_at_quantile(0.999).unwrap_or(0),
        replay.pacing.lateness_max.0,
        gaps.ns_at_quantile(0.999).unwrap_or(0),
    );
    println!("largest deficit in any second: {:.3} %", replay.pacing.lateness_max.0 as f64 / 1e7);
}

/// Returns the peak memory of this process.
fn peak() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.unwrap_or("unknown").trim().to_owned()
}
