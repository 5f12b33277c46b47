//! Benchmark of generator and monitor: cost per frame, and the rate at which one core sends, checks
//! and timestamps frames.
//!
//! `cargo run --release -p instrument --example instrument_rate [SECONDS [LOAD]]`, where LOAD is a
//! part of a name below.
//!
//! - Over memory ports, everything runs in one thread and in virtual time, which separates the cost
//!   of each part.
//! - Over memif, trials run in real time: through an echo in a second thread, and through DPDK's
//!   testpmd if installed (with huge pages if some are reserved).
//!
//! If other programs use the two cores, medians are more robust than rates.

#![allow(clippy::unwrap_used)]

use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use netio::memif::port::MemifPort;
use netio::memif::queue::{Receiver, Transmitter};
use netio::memif::ring::Side;
use netio::memif::spec::Spec;
use netio::memory::pair;
use netio::port::Port;
use os::clock;
use packet::frame::Batch;
use packet::time::Nanos;
use tester::rig::engine::{Engine, ReadyTrial};
use tester::stream::{Field, FieldVariation, Headers, IndexOrder, Rate, Stream, Values};
use tester::trial::{Limit, Trial, TrialReport};

/// Frames per iteration in virtual time.
const TURN_FRAMES: u64 = 32;

/// Minimum number of frames in a batch that counts for a median in real time.
const FULL_FRAMES: usize = 16;

/// More than any target forwards.
const RATE_PPS: f64 = 50e6;

fn main() {
    let seconds = std::env::args().nth(1).map_or(1.0, |text| text.parse().unwrap());
    hold(0);
    println!("64-byte frames, CPU clock {} MHz", megahertz());
    println!("\nin virtual time, median ns per frame of {TURN_FRAMES}:");
    println!("{:28}{:>8}{:>8}{:>8}", "", "send", "echo", "receive");
    for (name, streams) in loads() {
        let [send, echo, receive] = virtual_time(streams, seconds);
        println!("{name:28}{send:8.1}{echo:8.1}{receive:8.1}");
    }
    println!(
        "\nin real time over memif, median ns per frame of {FULL_FRAMES} and more, the Mpps that"
    );
    println!("these allow per direction, and the best 10 ms: Mpps sent, received, and the limit");
    for (name, streams) in loads() {
        real_time(name, "echo", &streams, seconds, |files| Box::new(Echo::start(files)));
    }
    if Command::new("dpdk-testpmd").arg("-h").output().is_err() {
        println!("testpmd is not installed: skipped");
        return;
    }
    for (name, streams) in loads() {
        real_time(name, "testpmd", &streams, seconds, |files| Box::new(Testpmd::start(files)));
    }
}

/// Returns the loads whose names contain the requested text.
fn loads() -> Vec<(&'static str, Vec<Stream>)> {
    let wanted = std::env::args().nth(2).unwrap_or_default();
    let share = |id| Stream { id, rate: Rate::FramesPerSecond(RATE_PPS / 16.0), ..stream(vec![]) };
    let mut loads = vec![
        ("one header", vec![stream(vec![])]),
        ("128K headers from lists", vec![stream(listed(131_072))]),
        ("1M headers from lists", vec![stream(listed(1_000_000))]),
        ("1M scattered headers", vec![stream(scattered(1_000_000))]),
        ("16 streams", (1..=16).map(share).collect()),
    ];
    loads.retain(|(name, _)| name.contains(&wanted));
    loads
}

fn stream(vary: Vec<FieldVariation>) -> Stream {
    let headers = Headers::udp(
        ([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]),
        ([10, 0, 0, 1].into(), [10, 0, 1, 2].into()),
        (4000, 5000),
    );
    Stream { vary, ..Stream::plain(1, 64, headers, Rate::FramesPerSecond(RATE_PPS)) }
}

fn listed(count: u64) -> Vec<FieldVariation> {
    let list = |shift: u64| Values::List((0..count).map(|n| 1 + (n >> shift) % 65_535).collect());
    let fields = vec![(Field::PortSource, list(0)), (Field::PortDestination, list(16))];
    vec![FieldVariation { count, order: IndexOrder::Random { seed: 5 }, fields }]
}

fn scattered(count: u64) -> Vec<FieldVariation> {
    let values = |seed| Values::Scattered { seed };
    let fields = vec![
        (Field::IpSource, values(1)),
        (Field::IpDestination, values(2)),
        (Field::PortSource, values(3)),
        (Field::PortDestination, values(4)),
    ];
    vec![FieldVariation { count, order: IndexOrder::Random { seed: 5 }, fields }]
}

/// Returns the median nanoseconds per frame for sending, echoing and receiving.
fn virtual_time(streams: Vec<Stream>, seconds: f64) -> [f64; 3] {
    let (near, mut far): (Vec<_>, Vec<_>) = (0..2).map(|port| pair(64, &format!("{port}"))).unzip();
    let mut near: Vec<Box<dyn Port>> =
        near.into_iter().map(|port| Box::new(port) as Box<dyn Port>).collect();
    let trial = Trial::new(streams, Nanos::ZERO, Nanos::from_secs(3600), Nanos::ZERO);
    let prepared = ReadyTrial::new(&trial, &near, 3).unwrap();
    let mut engine = Engine::new(prepared, &mut near, 1, Nanos::ZERO);
    let turn = Nanos((TURN_FRAMES as f64 / RATE_PPS * 1e9) as u64);
    let (mut now, mut times) = (Nanos::ZERO, [(); 3].map(|()| Vec::new()));
    let mut batch = Batch::new(TURN_FRAMES as usize + 1);
    let end = clock::now() + Nanos::from_secs_f64(seconds);
    while clock::now() < end {
        let begin = clock::now();
        let sent = engine.send(&mut near, now).unwrap();
        let after_send = clock::now();
        batch.clear();
        far[0].receive(&mut batch, now).unwrap();
        far[1].transmit(&mut batch, now).unwrap();
        let after_echo = clock::now();
        let arrived = now + Nanos(3_000 + now.0 % 5_000);
        let received = engine.receive(&mut near, arrived, || arrived).unwrap();
        let after_receive = clock::now();
        assert_eq!(received, sent);
        let spans = [after_send - begin, after_echo - after_send, after_receive - after_echo];
        for (times, span) in times.iter_mut().zip(spans) {
            times.push(span.0 as f64 / sent as f64);
        }
        now += turn;
    }
    let report = engine.finish(&mut near);
    assert_eq!(report.classes.correct, report.total.offered, "{:?}", report.classes);
    times.map(median)
}

/// Runs real-time trials and prints the best one.
fn real_time(
    name: &str,
    target: &str,
    streams: &[Stream],
    seconds: f64,
    start: impl FnOnce([String; 2]) -> Box<dyn Forwarder>,
) {
    let files =
        ["in", "out"].map(|port| format!("/tmp/instrument-rate-{}-{port}", std::process::id()));
    let forwarder = start(files.clone());
    let mut ports = files.clone().map(|path| port(&path, Side::Client));
    let deadline = clock::now() + Nanos::from_secs(60);
    while !ports.iter().all(|port| port.has_link()) {
        ports.iter_mut().for_each(|port| port.turn(clock::now()));
        assert!(clock::now() < deadline, "{:?}", ports[0].last_words());
    }
    let mut ports = ports.map(|port| Box::new(port) as Box<dyn Port>);
    let (mut sending, mut receiving, mut best) = (Vec::new(), Vec::new(), Best::default());
    let end = clock::now() + Nanos::from_secs_f64(seconds);
    while clock::now() < end {
        let duration = Nanos::from_millis(10);
        let trial = Trial::new(streams.to_vec(), Nanos::ZERO, duration, Nanos::from_millis(1));
        let prepared = ReadyTrial::new(&trial, &ports, 3).unwrap();
        let start = clock::now() + Nanos::from_millis(1);
        let mut engine = Engine::new(prepared, &mut ports, 1, start);
        while clock::now() < engine.ends_at() {
            let begin = clock::now();
            let sent = engine.send(&mut ports, begin).unwrap();
            let after_send = clock::now();
            let received = engine.receive(&mut ports, after_send, clock::now).unwrap();
            let after_receive = clock::now();
            if sent >= FULL_FRAMES {
                sending.push((after_send - begin).0 as f64 / sent as f64);
            }
            if received >= FULL_FRAMES {
                receiving.push((after_receive - after_send).0 as f64 / received as f64);
            }
        }
        best.note(&engine.finish(&mut ports));
    }
    let (send, receive) = (median(sending), median(receiving));
    println!("{name:28}{target:>8}{send:8.1}{receive:8.1}{:8.2}  {best}", 1e3 / (send + receive));
    drop(forwarder);
    files.iter().for_each(|path| drop(std::fs::remove_file(path)));
}

/// The best trial.
#[derive(Default)]
struct Best {
    sent_mpps: f64,
    back_mpps: f64,
    limit: Option<Limit>,
}

impl Best {
    fn note(&mut self, report: &TrialReport) {
        let back_mpps = report.total.pps_forwarded() / 1e6;
        if back_mpps > self.back_mpps {
            let sent_mpps = report.total.pps_offered() / 1e6;
            *self = Best { sent_mpps, back_mpps, limit: Some(report.limit()) };
        }
    }
}

impl std::fmt::Display for Best {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:6.2}{:6.2}", self.sent_mpps, self.back_mpps)?;
        self.limit.map_or(Ok(()), |limit| write!(f, "  {limit}"))
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn port(path: &str, side: Side) -> MemifPort {
    MemifPort::open(&Spec { side, ..Spec::new(path) }).unwrap()
}

/// A forwarder between two memif servers, until it is dropped.
trait Forwarder {}

struct Echo {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Forwarder for Echo {}

impl Echo {
    fn start(files: [String; 2]) -> Echo {
        let mut ports = files.map(|path| port(&path, Side::Server));
        let stop = Arc::new(AtomicBool::new(false));
        let seen = stop.clone();
        let thread = std::thread::spawn(move || {
            hold(1);
            while !seen.load(Ordering::Relaxed) {
                ports.iter_mut().for_each(|port| port.turn(clock::now()));
                let [left, right] = &mut ports;
                for _ in 0..1000 {
                    pass(&mut left.split().0[0], &mut right.split().1[0]);
                }
            }
        });
        Echo { stop, thread: Some(thread) }
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

/// Copies received frames from ring to ring. Frames without room are lost.
fn pass(from: &mut Receiver, to: &mut Transmitter) {
    let views = from.peek(64);
    for view in views.iter() {
        if to.put(view).is_err() {
            break;
        }
    }
    let count = views.len();
    to.flush();
    from.release(count);
}

struct Testpmd {
    process: Child,
}

impl Forwarder for Testpmd {}

impl Testpmd {
    fn start(files: [String; 2]) -> Testpmd {
        let mut command = Command::new("dpdk-testpmd");
        command.args(["-l", "0,1", "--no-pci", "--no-telemetry", "--in-memory"]);
        let free =
            std::fs::read_to_string("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages");
        if free.map_or(0, |text| text.trim().parse().unwrap()) < 80 {
            command.arg("--no-huge");
        }
        command.args(["-m", "128"]);
        for (number, path) in files.iter().enumerate() {
            let device = format!("net_memif{number},role=server,socket={path},socket-abstract=no");
            command.arg(format!("--vdev={device}"));
        }
        command.args(["--", "--forward-mode=io", "--auto-start", "--total-num-mbufs=8192"]);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        Testpmd { process: command.spawn().unwrap() }
    }
}

impl Drop for Testpmd {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

/// Pins this thread to a core, if `taskset` is installed.
fn hold(core: usize) {
    let thread = std::fs::read_link("/proc/thread-self").unwrap();
    let thread = thread.file_name().unwrap().to_owned();
    let mut command = Command::new("taskset");
    let _ = command.args(["-pc", &core.to_string()]).arg(thread).stdout(Stdio::null()).status();
}

fn megahertz() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("cpu MHz"));
    line.and_then(|line| line.split(": ").nth(1)).unwrap_or("unknown").to_owned()
}
