//! Test of a process on real interfaces, in a network namespace that ends with the test.
//!
//! The test runs itself again inside `unshare --net`. There it creates two veth pairs, and forwards
//! frames between their near ends.

#![allow(clippy::unwrap_used, reason = "a test may panic at any place")]

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use elements::config::{BridgeConfig, Config, Kind, PortConfig};
use elements::event::Event;
use elements::process;
use netio::afpacket::{AfPacketPort, Options};
use netio::port::Port;
use os::clock;
use packet::frame::Batch;
use packet::time::Nanos;

/// Set where the test runs inside its namespace.
const INSIDE: &str = "SWITCH_TEST_INSIDE";

/// Maximum wait for any expected event.
const PATIENCE: Nanos = Nanos::from_secs(20);

#[test]
fn a_bridge_process_forwards_between_interfaces_and_stops_clean() {
    if std::env::var_os(INSIDE).is_some() {
        return inside();
    }
    let root = std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    let mut cable = Command::new("unshare");
    cable.args([
        "--net", "ip", "link", "add", "name", "near0", "type", "veth", "peer", "name", "far0",
    ]);
    if !cable.output().is_ok_and(|output| output.status.success()) {
        let need = "need: root with CAP_NET_ADMIN, unshare and ip (apt-get install iproute2)";
        assert!(!root || std::env::var_os("CI").is_none(), "{need}");
        println!("skipped; {need}");
        return;
    }
    let name = "a_bridge_process_forwards_between_interfaces_and_stops_clean";
    let mut again = Command::new("unshare");
    again.args(["--net", "--"]).arg(std::env::current_exe().unwrap());
    again.args(["--exact", name, "--nocapture"]).env(INSIDE, "1");
    let output = again.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}{errors}");
}

fn ip(arguments: &str) {
    let status = Command::new("ip").args(arguments.split(' ')).status().unwrap();
    assert!(status.success(), "ip {arguments}");
}

fn inside() {
    for cable in 1..=2 {
        ip(&format!("link add far{cable} type veth peer name near{cable}"));
        for end in ["far", "near"] {
            ip(&format!("link set {end}{cable} addrgenmode none up"));
        }
    }
    let folder = std::env::temp_dir().join(format!("switch-interfaces-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let socket = folder.join("control");
    let mut config = Config::new(Kind::Bridge(BridgeConfig::default()));
    config.control = Some(socket.clone());
    for number in 1..=2 {
        config.ports.push(PortConfig { number, spec: format!("afpacket:near{number}") });
    }
    let (stop, log) = (AtomicBool::new(false), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        let process = scope
            .spawn(|| process::run(&config, &stop, &mut |event| log.lock().unwrap().push(event)));
        let outcome = std::panic::catch_unwind(|| exercise(&socket, &log));
        stop.store(true, Ordering::Relaxed);
        process.join().unwrap().unwrap();
        outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
    assert_eq!(log.lock().unwrap().last(), Some(&Event::Stopped));
    assert!(!socket.exists(), "the socket file was not removed");
    std::fs::remove_dir_all(&folder).unwrap();
}

fn exercise(socket: &Path, log: &Mutex<Vec<Event>>) {
    until("it is ready", || log.lock().unwrap().contains(&Event::Ready));
    let mut far = [1, 2]
        .map(|cable| AfPacketPort::open(&format!("far{cable}"), &Options::forwarder()).unwrap());
    // Tagged twice, so that the kernel must preserve every tag.
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xa8, 0xa0, 7, 0x81, 0, 0, 9];
    frame.extend([0x90, 0]);
    frame.resize(64, 0x5a);
    send(&mut far[0], &frame);
    expect(&mut far[1], &frame);
    let counters = ask(socket, "{\"get\":\"counters\"}");
    assert!(counters.contains("\"learned\":1"), "{counters}");

    ip("link set near2 down");
    until("port 2 is down", || went_down(log, "interface near2 is down"));
    log.lock().unwrap().clear();
    ip("link set near2 up");
    until("port 2 is up", || log.lock().unwrap().contains(&Event::PortUp(2)));
    until("far2 works again", || far[1].receive(&mut Batch::new(8), clock::now()).is_ok());
    send(&mut far[0], &frame);
    expect(&mut far[1], &frame);

    // The kernel needs time to detect the carrier; only then can its loss be observed.
    until("the kernel knows the cable", || operates("near2"));
    until("the bridge does too", || !ask(socket, "{\"get\":\"about\"}").contains("\"up\":false"));
    log.lock().unwrap().clear();
    ip("link set far2 down");
    until("port 2 has no link", || went_down(log, "no link"));
    log.lock().unwrap().clear();
    ip("link set far2 up");
    until("port 2 has a link", || log.lock().unwrap().contains(&Event::PortUp(2)));
}

fn went_down(log: &Mutex<Vec<Event>>, reason: &str) -> bool {
    log.lock().unwrap().contains(&Event::PortDown(2, reason.to_string()))
}

fn operates(interface: &str) -> bool {
    let output = Command::new("ip").args(["link", "show", interface]).output().unwrap();
    String::from_utf8_lossy(&output.stdout).contains("state UP")
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let give_up = clock::now() + PATIENCE;
    while !done() {
        assert!(clock::now() < give_up, "{what}: never");
        clock::sleep_until(clock::now() + Nanos::from_millis(2));
    }
}

fn send(port: &mut AfPacketPort, bytes: &[u8]) {
    let mut batch = Batch::new(1);
    batch.push_bytes(bytes);
    until("a frame is sent", || {
        port.transmit(&mut batch, clock::now()).is_ok_and(|sent| sent == 1)
    });
}

/// Receives until this frame arrives.
fn expect(port: &mut AfPacketPort, bytes: &[u8]) {
    let mut batch = Batch::new(64);
    until("the frame arrives", || {
        batch.clear();
        port.receive(&mut batch, clock::now()).unwrap();
        batch.frames().iter().any(|frame| frame.bytes() == bytes)
    });
}

fn ask(socket: &Path, request: &str) -> String {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.write_all(format!("{request}\n").as_bytes()).unwrap();
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).unwrap();
    answer
}
