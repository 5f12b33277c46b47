//! memif and vhost-user ports against DPDK's testpmd, which forwards frames from one port to the
//! other.
//!
//! Requires `dpdk-testpmd` and DPDK's drivers for memif and virtio, neither huge pages nor root.
//! Otherwise a test prints this and passes, except as root with the variable `CI` set, which
//! disallows skipping. Only a few frames are in flight, so that no ring overflows and no frame may
//! be missing.

#![allow(unsafe_code)]
#![allow(clippy::unwrap_used)]

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use netio::in_place::View;
use netio::memif::port::MemifPort;
use netio::memif::protocol::text;
use netio::memif::ring::Side;
use netio::memif::socket::Address;
use netio::memif::spec::Spec;
use netio::port::Port;
use netio::vhost::port::VhostPort;
use netio::vhost::spec::{Role, Spec as VhostSpec};
use os::clock::{self, WaitSet};
use packet::frame::Batch;
use packet::time::Nanos;

const PATIENCE: Nanos = Nanos::from_secs(60);

/// Only one testpmd runs at a time: each keeps a core busy.
static TURN: Mutex<()> = Mutex::new(());

/// Maximum number of frames in flight.
const WINDOW: usize = 64;

/// Returns whether testpmd can run; prints the requirement if not.
fn can_run(driver: &str) -> bool {
    let has_program = Command::new("dpdk-testpmd").arg("--version").output().is_ok();
    let has_driver = ["/usr/lib", "/usr/lib64", "/usr/local/lib"].iter().any(|folder| {
        let library = format!("librte_net_{driver}.so*");
        let find = Command::new("find").args([folder, "-name", &library]).output();
        find.is_ok_and(|output| !output.stdout.is_empty())
    });
    let need = match (has_program, has_driver) {
        (true, true) => return true,
        (false, _) => "dpdk-testpmd (Debian: dpdk-dev)".into(),
        _ => format!("DPDK's {driver} driver (Debian: librte-net-{driver}23)"),
    };
    assert!(!may_not_skip(), "need: {need}");
    println!("skipped; need: {need}");
    false
}

#[allow(clippy::disallowed_methods)]
fn may_not_skip() -> bool {
    // SAFETY: the query of the user id has no preconditions.
    std::env::var_os("CI").is_some() && unsafe { libc::geteuid() } == 0
}

/// A running testpmd; dropping this ends it.
struct Testpmd {
    process: Child,
    prefix: String,
    log: PathBuf,
}

impl Testpmd {
    /// Starts testpmd with these two memif devices and this many queues per direction.
    fn start(name: &str, devices: [String; 2], queues: u16) -> Testpmd {
        Testpmd::start_with(name, "net_memif", devices, queues)
    }

    /// Starts testpmd with these two devices of a driver.
    fn start_with(name: &str, driver: &str, devices: [String; 2], queues: u16) -> Testpmd {
        let prefix = format!("planimeter-{}-{name}", std::process::id());
        let mut command = Command::new("dpdk-testpmd");
        // Its threads may run on any core.
        let last = std::thread::available_parallelism().map_or(1, usize::from) - 1;
        command.arg(format!("--lcores=0@(0-{last}),1@(0-{last})"));
        command.args(["--no-pci", "--no-telemetry", "--no-huge", "-m128"]);
        command.arg(format!("--file-prefix={prefix}"));
        for (number, device) in devices.iter().enumerate() {
            command.arg(format!("--vdev={driver}{number},{device}"));
        }
        command.args(["--", "--interactive", "--forward-mode=io", "--total-num-mbufs=8192"]);
        command.args(["--no-flush-rx", "--disable-link-check", "--stats-period=3600"]);
        command.args([format!("--rxq={queues}"), format!("--txq={queues}")]);
        let log = path(&format!("{name}.log"));
        let output = File::create(&log).unwrap();
        let errors = output.try_clone().unwrap();
        command.stdin(Stdio::piped()).stdout(output).stderr(errors);
        Testpmd { process: command.spawn().unwrap(), prefix, log }
    }

    /// Waits until both ports have testpmd as their peer, then starts forwarding.
    ///
    /// Forwarding must not start earlier. In DPDK 22.11, a thread that polls a memif with several
    /// queues checks the connection twice. If it is interrupted between the two checks while the
    /// connection comes up, it reads a ring at an address taken before the ring existed, and
    /// crashes.
    fn forward(&mut self, ports: &mut [impl Port; 2]) {
        await_link(ports, true);
        self.process.stdin.as_mut().unwrap().write_all(b"start\n").unwrap();
    }
}

impl Drop for Testpmd {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        if std::thread::panicking() {
            println!("{}", std::fs::read_to_string(&self.log).unwrap_or_default());
        }
        let _ = std::fs::remove_file(&self.log);
        let folder = format!("/var/run/dpdk/{}", self.prefix);
        let _ = std::fs::remove_dir_all(folder);
    }
}

fn path(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("planimeter-testpmd-{}-{name}", std::process::id()))
}

/// Specifications of our two ports; testpmd is the peer of each.
fn specs(name: &str, side: Side) -> [Spec; 2] {
    ["in", "out"].map(|end| Spec { side, ..Spec::new(path(&format!("{name}-{end}"))) })
}

fn device(spec: &Spec) -> String {
    let role = if spec.side == Side::Server { "client" } else { "server" };
    let address = match &spec.address {
        Address::Path(path) => format!("socket={},socket-abstract=no", path.display()),
        Address::Abstract(name) => format!("socket={name}"),
    };
    let end = spec.secret.iter().position(|&byte| byte == 0).unwrap();
    let secret = match std::str::from_utf8(&spec.secret[..end]).unwrap() {
        "" => String::new(),
        secret => format!(",secret={secret}"),
    };
    format!("role={role},id={},{address}{secret}", spec.id)
}

fn open(specs: &[Spec; 2]) -> [MemifPort; 2] {
    specs.each_ref().map(|spec| MemifPort::open(spec).unwrap())
}

/// Waits until both ports have a peer, or have none.
fn await_link(ports: &mut [impl Port; 2], wanted: bool) {
    let deadline = clock::now() + PATIENCE;
    let mut nothing = Batch::new(0);
    while ports.iter().any(|port| port.has_link() != wanted) {
        for port in ports.iter_mut() {
            port.receive(&mut nothing, clock::now()).unwrap();
        }
        let faults = ports.each_mut().map(|port| port.counters().peer_faults);
        assert!(clock::now() < deadline, "the link does not become {wanted}: {faults:?} faults");
        clock::sleep_until(clock::now() + Nanos::from_millis(1));
    }
}

/// Builds a frame of that many bytes that contains its number.
fn numbered(number: usize, bytes: usize) -> Vec<u8> {
    let mut frame = vec![number as u8; bytes];
    frame[..12].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1]);
    frame[14..18].copy_from_slice(&(number as u32).to_be_bytes());
    frame
}

/// The number of probe frames, which only show whether frames pass.
const PROBE: usize = u32::MAX as usize;

/// Sends frames until some arrive at the other port.
///
/// Our end of a link comes up shortly before testpmd's, which drops frames that it cannot send yet.
fn probe(from: &mut impl Port, to: &mut impl Port) {
    let deadline = clock::now() + PATIENCE;
    let (mut out, mut into) = (Batch::new(1), Batch::new(WINDOW));
    while into.is_empty() {
        assert!(clock::now() < deadline, "nothing passes");
        out.clear();
        out.push_bytes(&numbered(PROBE, 60));
        from.transmit(&mut out, clock::now()).unwrap();
        clock::sleep_until(clock::now() + Nanos::from_millis(1));
        to.receive(&mut into, clock::now()).unwrap();
    }
}

fn is_probe(bytes: &[u8]) -> bool {
    bytes[14..18] == (PROBE as u32).to_be_bytes()
}

/// Sends numbered frames of these sizes in turn into one port. Checks that all of them come out of
/// the other, in order. The receiver sleeps whenever no frame waits.
fn carry(from: &mut impl Port, to: &mut impl Port, sizes: &[usize], count: usize) {
    let frame = |number: usize| numbered(number, sizes[number % sizes.len()]);
    probe(from, to);
    let (mut sent, mut arrived) = (0, 0);
    let (mut out, mut into) = (Batch::new(WINDOW), Batch::new(WINDOW));
    let deadline = clock::now() + PATIENCE;
    while arrived < count {
        while sent < count && sent - arrived + out.len() < WINDOW {
            out.push_bytes(&frame(sent + out.len()));
            if sent + out.len() == count {
                break;
            }
        }
        let gone = from.transmit(&mut out, clock::now()).unwrap();
        out.drop_front(gone);
        sent += gone;
        into.clear();
        if to.receive(&mut into, clock::now()).unwrap() == 0 {
            let mut wait = WaitSet::new();
            wait.add(to.descriptor().unwrap(), false);
            // DPDK may miss that the receiver falls asleep: it does not order its check after its
            // writes. If all wake-ups were missed, the frames would take too long.
            wait.until(Some(clock::now() + Nanos::from_millis(100))).unwrap();
            assert!(clock::now() < deadline, "{arrived} of {count} frames arrived");
        }
        for got in into.frames().iter().filter(|got| !is_probe(got.bytes())) {
            let head = &got.bytes()[..18];
            assert!(
                got.bytes() == frame(arrived),
                "frame {arrived} is another: {} bytes, {head:02x?}",
                got.len()
            );
            arrived += 1;
        }
    }
}

/// Enough frames for rings and indices to wrap.
const COUNT: usize = 70_000;

#[test]
fn frames_pass_a_testpmd_as_memif_server() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    if !can_run("memif") {
        return;
    }
    let mut specs = specs("server", Side::Client);
    specs[0].id = 3;
    specs[0].secret = text("abc123");
    let mut testpmd = Testpmd::start("server", specs.each_ref().map(device), 1);
    let mut ports = open(&specs);
    testpmd.forward(&mut ports);
    let [left, right] = &mut ports;
    carry(left, right, &[60], COUNT);
    // In one buffer, in several, and just one byte more.
    carry(right, left, &[60, 1514, 2048, 2049, 64, 5000, 9000], 2_000);
    // It is stopped before its clients: DPDK 22.11 does not always survive the other order.
    drop(testpmd);
    await_link(&mut ports, false);
    specs.iter().for_each(|spec| remove(&spec.address));
    let mut testpmd = Testpmd::start("server", specs.each_ref().map(device), 1);
    testpmd.forward(&mut ports);
    let [left, right] = &mut ports;
    carry(right, left, &[60], 1_000);
    drop(testpmd);
    for port in &mut ports {
        assert_eq!((port.counters().drops, port.counters().peer_faults), (vec![], 0));
    }
    specs.iter().for_each(|spec| remove(&spec.address));
}

#[test]
fn frames_pass_a_testpmd_as_memif_client() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    if !can_run("memif") {
        return;
    }
    let mut specs = specs("client", Side::Server);
    specs[0].address = Address::Abstract(format!("planimeter-testpmd-{}", std::process::id()));
    specs[0].secret = text("abc123");
    specs[1].id = 7;
    let mut ports = open(&specs);
    for round in 0..2 {
        let mut testpmd = Testpmd::start("client", specs.each_ref().map(device), 1);
        testpmd.forward(&mut ports);
        let [left, right] = &mut ports;
        carry(left, right, &[60], if round == 0 { COUNT } else { 1_000 });
        carry(right, left, &[60, 1514, 2048, 2049, 64, 5000, 9000], 2_000);
        drop(testpmd);
        await_link(&mut ports, false);
    }
    for port in &mut ports {
        assert_eq!((port.counters().drops, port.counters().peer_faults), (vec![], 0));
    }
}

#[test]
fn several_queues_pass_a_testpmd_in_place() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    if !can_run("memif") {
        return;
    }
    for side in [Side::Client, Side::Server] {
        let specs = specs("queues", side).map(|spec| Spec {
            receive_queues: 3,
            transmit_queues: 3,
            ..spec
        });
        let mut ports = match side {
            Side::Server => Some(open(&specs)),
            Side::Client => None,
        };
        let mut testpmd = Testpmd::start("queues", specs.each_ref().map(device), 3);
        let ports = ports.get_or_insert_with(|| open(&specs));
        testpmd.forward(ports);
        let [left, right] = ports;
        probe(left, right);
        // Frames leave by the queue of the same number.
        for (number, queue) in left.split().1.iter_mut().enumerate() {
            for place in 0..WINDOW {
                // A client supplies its buffers once it runs.
                while queue.put(View::of(&numbered(100 * number + place, 60))).is_err() {
                    clock::sleep_until(clock::now() + Nanos::from_millis(1));
                }
            }
            queue.flush();
        }
        let deadline = clock::now() + PATIENCE;
        for (number, queue) in right.split().0.iter_mut().enumerate() {
            let mut arrived = 0;
            while arrived < WINDOW {
                let views = queue.peek(7);
                for view in views.iter().filter(|view| !is_probe(&view.to_vec())) {
                    assert_eq!(view.to_vec(), numbered(100 * number + arrived, 60));
                    arrived += 1;
                }
                let count = views.len();
                queue.release(count);
                assert!(clock::now() < deadline, "{arrived} frames of queue {number} arrived");
            }
        }
        drop(testpmd);
        specs.iter().for_each(|spec| remove(&spec.address));
    }
}

/// Removes the file that a killed server leaves behind, which would block the next.
fn remove(address: &Address) {
    if let Address::Path(path) = address {
        let _ = std::fs::remove_file(path);
    }
}

/// virtio-user in both socket roles, with reconnections.
#[test]
fn frames_pass_a_testpmd_over_vhost_user() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    if !can_run("virtio") {
        return;
    }
    for (role, more) in
        [(Role::Server, ""), (Role::Client, ",server=1"), (Role::Server, ",mrg_rxbuf=0")]
    {
        let paths = ["in", "out"].map(|end| path(&format!("vhost-{end}")));
        let mut ports = paths
            .each_ref()
            .map(|path| VhostPort::open(&VhostSpec { role, ..VhostSpec::new(path) }).unwrap());
        for round in 0..2 {
            let device = |path: &PathBuf| format!("path={},queue_size=256{more}", path.display());
            let devices = paths.each_ref().map(device);
            // A testpmd that listens waits for its device during start.
            let mut testpmd = Testpmd::start_with("vhost", "net_virtio_user", devices, 1);
            testpmd.forward(&mut ports);
            let [left, right] = &mut ports;
            carry(left, right, &[60], if round == 0 { COUNT } else { 1_000 });
            carry(right, left, &[60, 1514, 64, 1000, 61], 2_000);
            drop(testpmd);
            await_link(&mut ports, false);
            paths.iter().filter(|_| role == Role::Client).for_each(|path| {
                let _ = std::fs::remove_file(path);
            });
        }
        for port in &mut ports {
            assert_eq!((port.counters().drops, port.counters().peer_faults), (vec![], 0));
        }
    }
}

#[test]
fn several_queues_pass_a_testpmd_over_vhost_user() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    if !can_run("virtio") {
        return;
    }
    let paths = ["in", "out"].map(|end| path(&format!("vhost-queues-{end}")));
    let mut ports = paths
        .each_ref()
        .map(|path| VhostPort::open(&VhostSpec { queues: 4, ..VhostSpec::new(path) }).unwrap());
    let device = |path: &PathBuf| format!("path={},queues=4,cq=1", path.display());
    let devices = paths.each_ref().map(device);
    let mut testpmd = Testpmd::start_with("vhost-queues", "net_virtio_user", devices, 4);
    testpmd.forward(&mut ports);
    let [left, right] = &mut ports;
    carry(left, right, &[60], 5_000);
    carry(right, left, &[60, 1514], 5_000);
    assert_eq!([left.queues(), right.queues()], [[4, 4]; 2]);
    drop(testpmd);
}
