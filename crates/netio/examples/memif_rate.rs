//! Measures memif ports: 60-byte frames from one thread to another, and through a forwarder, which
//! is ours in place or DPDK's testpmd.
//!
//! `cargo run --release -p ports --example memif_rate [SECONDS]`. Meaningful results require two
//! cores: the generator is pinned to the first, its peer to the second. If testpmd is installed, it
//! is measured too. testpmd and our clients use huge pages if some are reserved (`echo 256 >
//! /proc/sys/vm/nr_hugepages`).

#![allow(unsafe_code)]
#![allow(clippy::unwrap_used)]

use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use netio::in_place::View;
use netio::memif::port::MemifPort;
use netio::memif::queue::{Receiver, Transmitter};
use netio::memif::ring::Side;
use netio::memif::spec::Spec;
use netio::port::Port;
use os::clock;
use packet::frame::Batch;
use packet::time::Nanos;

const FRAME_BYTES: usize = 60;
const BATCH: usize = 64;

fn main() {
    let seconds = std::env::args().nth(1).map_or(2, |text| text.parse().unwrap());
    let span = Nanos::from_secs(seconds);
    pin(0);
    println!("{FRAME_BYTES}-byte frames, {seconds} s each, in Mpps");
    for frame_bytes in [60, 256, 1514] {
        let (in_place, batches) =
            (alone(frame_bytes, Use::InPlace), alone(frame_bytes, Use::Batches));
        println!(
            "one thread, {frame_bytes} bytes in and out: {in_place:.1} ns in place, \
             {batches:.1} ns by Port and Batch"
        );
    }
    println!("one way, put and peeked in place:   {:6.2}", one_way(span, Use::InPlace));
    println!("one way, by Port and Batch:         {:6.2}", one_way(span, Use::Batches));
    let (sent, back) = through(span, |files| Box::new(ours(files)));
    println!("through our forwarder and back:     {back:6.2} ({sent:.2} sent)");
    if Command::new("dpdk-testpmd").arg("-h").output().is_err() {
        println!("testpmd is not installed: skipped");
        return;
    }
    let (sent, back) = through(span, |files| Box::new(testpmd(files)));
    println!("through testpmd io-forward and back:{back:6.2} ({sent:.2} sent)");
}

fn pin(core: usize) {
    // SAFETY: all-zero bytes are an empty set, and the pointer is to a live one.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(core, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &set);
    }
}

fn file(name: &str) -> String {
    format!("/tmp/memif-rate-{}-{name}", std::process::id())
}

fn port(path: &str, side: Side) -> MemifPort {
    MemifPort::open(&Spec { side, ..Spec::new(path) }).unwrap()
}

fn connect(ports: &mut [&mut MemifPort]) {
    let deadline = clock::now() + Nanos::from_secs(20);
    while !ports.iter().all(|port| port.has_link()) {
        ports.iter_mut().for_each(|port| port.turn(clock::now()));
        assert!(clock::now() < deadline, "{:?}", ports[0].last_words());
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Use {
    InPlace,
    Batches,
}

/// Returns the CPU time of this thread.
fn spent() -> u64 {
    // SAFETY: the pointer is to a live timespec.
    unsafe {
        let mut time: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time);
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    }
}

/// CPU time in nanoseconds per frame that one thread both sends and receives: the tenth percentile
/// of many rounds, because other work on the machine can only increase them.
fn alone(frame_bytes: usize, how: Use) -> f64 {
    const ROUNDS: usize = 2_000;
    const BATCHES: usize = 100;
    let path = file("alone");
    let mut sender = port(&path, Side::Server);
    let mut receiver = port(&path, Side::Client);
    connect(&mut [&mut sender, &mut receiver]);
    let frame = vec![0x5a; frame_bytes];
    let (mut out, mut into) = (Batch::new(BATCH), Batch::new(BATCH));
    let mut spans = Vec::new();
    for _ in 0..ROUNDS {
        let before = spent();
        for _ in 0..BATCHES {
            if how == Use::InPlace {
                let transmitter = &mut sender.split().1[0];
                (0..BATCH).for_each(|_| transmitter.put(View::of(&frame)).unwrap());
                transmitter.flush();
                let queue = &mut receiver.split().0[0];
                let views = queue.peek(BATCH);
                let sum: u64 =
                    views.iter().map(|view| u64::from(view.head::<16>().unwrap()[15])).sum();
                let count = views.len();
                assert_eq!((count, sum), (BATCH, 0x5a * BATCH as u64));
                queue.release(count);
            } else {
                out.clear();
                while out.push_bytes(&frame) {}
                assert_eq!(sender.transmit(&mut out, Nanos::ZERO).unwrap(), BATCH);
                into.clear();
                assert_eq!(receiver.receive(&mut into, Nanos::ZERO).unwrap(), BATCH);
            }
        }
        spans.push(spent() - before);
    }
    spans.sort_unstable();
    spans[ROUNDS / 10] as f64 / (BATCHES * BATCH) as f64
}

/// Million frames per second from a thread that only sends to one that only receives.
fn one_way(span: Nanos, how: Use) -> f64 {
    let path = file("one");
    let mut sender = port(&path, Side::Server);
    let mut receiver = port(&path, Side::Client);
    connect(&mut [&mut sender, &mut receiver]);
    let stop = Arc::new(AtomicBool::new(false));
    let theirs = stop.clone();
    let thread = std::thread::spawn(move || {
        pin(1);
        let frame = [0x5a; FRAME_BYTES];
        let mut batch = Batch::new(BATCH);
        while !theirs.load(Ordering::Relaxed) {
            if how == Use::InPlace {
                let transmitter = &mut sender.split().1[0];
                for _ in 0..BATCH {
                    if transmitter.put(View::of(&frame)).is_err() {
                        break;
                    }
                }
                transmitter.flush();
            } else {
                while batch.push_bytes(&frame) {}
                let gone = sender.transmit(&mut batch, clock::now()).unwrap();
                batch.drop_front(gone);
            }
        }
        sender
    });
    let mut batch = Batch::new(BATCH);
    let (start, mut count, mut sum) = (clock::now(), 0u64, 0u64);
    while clock::now() < start + span {
        if how == Use::InPlace {
            let queue = &mut receiver.split().0[0];
            let views = queue.peek(BATCH);
            for view in views.iter() {
                sum += u64::from(view.head::<16>().unwrap()[15]);
            }
            let shown = views.len();
            queue.release(shown);
            count += shown as u64;
        } else {
            batch.clear();
            count += receiver.receive(&mut batch, clock::now()).unwrap() as u64;
            sum += batch.frames().iter().map(|frame| u64::from(frame.bytes()[15])).sum::<u64>();
        }
    }
    stop.store(true, Ordering::Relaxed);
    thread.join().unwrap();
    assert_eq!(sum, count * 0x5a);
    count as f64 / span.0 as f64 * 1e3
}

/// A forwarder between two servers that runs until it is dropped.
trait Forwarder {}

/// Million frames per second that a generator sends into one port and receives from another.
fn through(span: Nanos, start: impl FnOnce([String; 2]) -> Box<dyn Forwarder>) -> (f64, f64) {
    let files = [file("in"), file("out")];
    let forwarder = start(files.clone());
    let mut out = port(&files[0], Side::Client);
    let mut back = port(&files[1], Side::Client);
    connect(&mut [&mut out, &mut back]);
    let frame = [0x5a; FRAME_BYTES];
    let (mut sent, mut received) = (0u64, 0u64);
    let begin = clock::now();
    while clock::now() < begin + span {
        let transmitter = &mut out.split().1[0];
        for _ in 0..BATCH {
            if transmitter.put(View::of(&frame)).is_err() {
                break;
            }
            sent += 1;
        }
        transmitter.flush();
        let receiver = &mut back.split().0[0];
        let views = receiver.peek(BATCH);
        for view in views.iter() {
            assert_eq!(view.head::<16>().unwrap()[15], 0x5a);
        }
        let count = views.len();
        receiver.release(count);
        received += count as u64;
    }
    drop(forwarder);
    let rate = |count: u64| count as f64 / span.0 as f64 * 1e3;
    (rate(sent), rate(received))
}

struct Ours {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Forwarder for Ours {}

impl Drop for Ours {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

fn ours(files: [String; 2]) -> Ours {
    let mut ports = files.map(|path| port(&path, Side::Server));
    let stop = Arc::new(AtomicBool::new(false));
    let seen = stop.clone();
    let thread = std::thread::spawn(move || {
        pin(1);
        while !seen.load(Ordering::Relaxed) {
            ports.iter_mut().for_each(|port| port.turn(clock::now()));
            let [left, right] = &mut ports;
            let ((left_in, left_out), (right_in, right_out)) = (left.split(), right.split());
            for _ in 0..1000 {
                pass(&mut left_in[0], &mut right_out[0]);
                pass(&mut right_in[0], &mut left_out[0]);
            }
        }
    });
    Ours { stop, thread: Some(thread) }
}

/// Copies received frames from ring to ring; frames without room are lost.
fn pass(from: &mut Receiver, to: &mut Transmitter) {
    let views = from.peek(BATCH);
    let count = views.len();
    if count == 0 {
        return;
    }
    for view in views.iter() {
        if to.put(view).is_err() {
            break;
        }
    }
    to.flush();
    from.release(count);
}

struct Testpmd {
    process: Child,
    files: [String; 2],
}

impl Forwarder for Testpmd {}

impl Drop for Testpmd {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        // A killed testpmd leaves its sockets behind.
        self.files.iter().for_each(|path| drop(std::fs::remove_file(path)));
    }
}

fn testpmd(files: [String; 2]) -> Testpmd {
    let free: u32 =
        std::fs::read_to_string("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages")
            .map_or(0, |text| text.trim().parse().unwrap());
    let mut command = Command::new("dpdk-testpmd");
    command.args(["-l", "0,1", "--no-pci", "--no-telemetry"]);
    command.arg(if free < 80 { "--no-huge" } else { "--in-memory" });
    command.args(["-m", "128"]);
    for (number, path) in files.iter().enumerate() {
        let device = format!("net_memif{number},role=server,socket={path},socket-abstract=no");
        command.arg(format!("--vdev={device}"));
    }
    command.args(["--", "--forward-mode=io", "--auto-start", "--total-num-mbufs=8192"]);
    let process = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    Testpmd { process: process.spawn().unwrap(), files }
}
