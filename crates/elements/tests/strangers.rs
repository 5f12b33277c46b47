//! Test with ten thousand connections that never complete a handshake, and with controllers that
//! stop reading. Over real sockets the switch continues to forward, admits valid controllers, and
//! its memory stays bounded.
//!
//! The controllers' messages are written byte by byte (hello, flow-mod and barrier of 1.0),
//! independent of the project's codec.

#![allow(clippy::unwrap_used, reason = "a test may panic at any place")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use channel::{Channel, Connecting, Tls, Url, tls};
use elements::config::{Config, Kind, Limits, OpenFlowConfig, PortConfig};
use elements::node::Node;
use elements::process::drive;
use netio::memory::{MemoryPort, pair};
use netio::port::Port;
use os::clock;
use packet::frame::Batch;
use packet::time::Nanos;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

/// Maximum wait for an expected event.
const PATIENCE: Nanos = Nanos::from_secs(30);

/// Total number of incomplete connections, and how many are open at the same time.
const STRANGERS: usize = 10_000;
const WAVE: usize = 250;

/// Maximum growth of the process during the test: 32 unfinished TLS handshakes with the state of
/// rustls for each (about 100 KiB at most), and the allocator's slack. If the switch kept all
/// connections, they would need ten times as much.
const GROWTH_BYTES_MAX: u64 = 16 << 20;

/// Memory and descriptors are counted per process, so only one test runs at a time.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A running switch with two ports, in a temporary folder.
struct Rig {
    folder: PathBuf,
    addresses: Vec<SocketAddr>,
    wires: Vec<MemoryPort>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Vec<String>>>,
}

impl Rig {
    fn start(name: &str, settings: OpenFlowConfig) -> Rig {
        let folder = folder(name);
        let mut config = Config::new(Kind::OpenFlow(settings));
        config.control = Some(folder.join("control"));
        let (mut ports, mut wires) = (Vec::new(), Vec::new());
        for number in 1..=2 {
            config.ports.push(PortConfig { number, spec: format!("memory:{number}") });
            let (ours, theirs) = pair(256, &format!("eth{number}"));
            ports.push((number, Box::new(ours) as Box<dyn Port>));
            wires.push(theirs);
        }
        let mut node = Node::open(&config, ports, 1, clock::now()).expect("it starts");
        let address = |url: &Url| match url {
            Url::PassiveTcp(address) | Url::PassiveTls(address) => Some(*address),
            _ => None,
        };
        let addresses = node.addresses().filter_map(address).collect();
        let stop = Arc::new(AtomicBool::new(false));
        let stopping = stop.clone();
        let spin = config.spin;
        let thread = std::thread::spawn(move || {
            let mut log = Vec::new();
            drive(&mut node, spin, &stopping, &mut |event| log.push(event.to_string()));
            log
        });
        Rig { folder, addresses, wires, stop, thread: Some(thread) }
    }

    /// Sends frames to port 1, and checks that all leave through port 2.
    fn frames_pass(&mut self, count: usize, bytes: usize) {
        let mut batch = Batch::new(count);
        for _ in 0..count {
            batch.push_bytes(&frame(bytes));
        }
        let sent = self.wires[0].transmit(&mut batch, clock::now()).unwrap();
        assert_eq!(sent, count, "the port accepts the frames");
        let until = clock::now() + PATIENCE;
        let mut came = 0;
        while came < count {
            let mut batch = Batch::new(count);
            came += self.wires[1].receive(&mut batch, clock::now()).unwrap();
            assert!(clock::now() < until, "{came} of {count} frames were forwarded");
            std::thread::yield_now();
        }
    }

    /// Returns a counter of `controllers` from the control socket.
    fn count(&self, name: &str) -> u64 {
        let mut socket = UnixStream::connect(self.folder.join("control")).unwrap();
        socket.write_all(b"{\"get\": \"counters\"}\n").unwrap();
        let mut line = String::new();
        BufReader::new(socket).read_line(&mut line).unwrap();
        let answer: serde_json::Value = serde_json::from_str(&line).unwrap();
        let value = &answer["ok"]["controllers"][name];
        value.as_u64().unwrap_or_else(|| panic!("no {name} in {line}"))
    }

    /// Stops the switch and returns its log.
    fn stop(mut self) -> Vec<String> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().expect("started").join().unwrap()
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("strangers-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Returns a frame of an unknown protocol.
fn frame(bytes: usize) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5];
    frame.resize(bytes, 0x5a);
    frame
}

/// A controller of 1.0 that is independent of the codec.
struct Controller {
    channel: Box<dyn Channel>,
    bytes: Vec<u8>,
}

const HELLO: [u8; 8] = [1, 0, 0, 8, 0, 0, 0, 1];
const BARRIER: [u8; 8] = [1, 18, 0, 8, 0, 0, 0, 9];

impl Controller {
    fn new(channel: Box<dyn Channel>) -> Controller {
        Controller { channel, bytes: HELLO.to_vec() }
    }

    /// Connects and waits until the switch replies to a barrier.
    fn connect(to: SocketAddr, tls: Option<&Tls>) -> Controller {
        let url = if tls.is_some() { Url::Tls(to) } else { Url::Tcp(to) };
        Controller::connect_to(&url, tls)
    }

    fn connect_to(url: &Url, tls: Option<&Tls>) -> Controller {
        let mut controller = Controller::new(Connecting::wait_with(url, tls, PATIENCE).unwrap());
        controller.works();
        controller
    }

    /// Connects, sends hello, and checks that the connection is closed.
    fn is_refused(url: &Url) {
        let mut channel = Connecting::wait(url, PATIENCE).unwrap();
        let until = clock::now() + PATIENCE;
        let _ = channel.transmit(&HELLO);
        while channel.receive(&mut [0; 100]).is_ok() {
            assert!(clock::now() < until, "the connection stays open");
            std::thread::yield_now();
        }
    }

    /// Checks that the switch replies to a barrier.
    fn works(&mut self) {
        self.bytes.extend(BARRIER);
        let until = clock::now() + PATIENCE;
        let mut heard = Vec::new();
        while !holds_barrier_reply(&heard) {
            assert!(clock::now() < until, "no barrier reply in {heard:?}");
            self.step(&mut heard);
            std::thread::yield_now();
        }
    }

    fn step(&mut self, heard: &mut Vec<u8>) {
        let mut buffer = [0; 4096];
        let count = self.channel.receive(&mut buffer).expect("the switch keeps the connection");
        heard.extend(&buffer[..count]);
        let sent = self.channel.transmit(&self.bytes).expect("the switch keeps the connection");
        self.bytes.drain(..sent);
    }

    /// Adds a flow entry: frames of port 1 go to these ports, and to the controller in full length.
    fn forward(&mut self, ports: &[u16]) {
        let bytes = 72 + 8 * ports.len();
        let mut message = vec![1, 14, 0, bytes as u8, 0, 0, 0, 7];
        // Every field but the ingress port is a wildcard.
        message.extend([0x00, 0x38, 0x20, 0xfe, 0, 1]);
        message.resize(48, 0);
        // Cookie, add, no timeouts, priority 1, no buffer, no output port, no flags.
        message.extend([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        message.extend([0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0]);
        for port in ports {
            message.extend([0, 0, 0, 8]);
            message.extend(port.to_be_bytes());
            message.extend([0xff, 0xff]);
        }
        self.bytes.extend(message);
    }
}

/// Whether complete messages contain a barrier reply. The hello has another version.
fn holds_barrier_reply(mut bytes: &[u8]) -> bool {
    while let [_, kind, high, low, ..] = bytes {
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        if *kind == 19 {
            return true;
        }
        match bytes.get(length.max(8)..) {
            Some(rest) => bytes = rest,
            None => return false,
        }
    }
    false
}

/// Returns the resident memory of the process.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .expect("Linux reports the resident memory");
    let kilobytes: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kilobytes << 10
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Creates a certificate signed by its own CA, for both sides.
fn certificates(folder: &std::path::Path) -> tls::Files {
    let write = |name: &str, text: String| {
        std::fs::write(folder.join(name), text).unwrap();
        Some(folder.join(name))
    };
    let (ca_key, key) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
    let mut ca = CertificateParams::new(Vec::new()).unwrap();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    ca.distinguished_name.push(DnType::CommonName, "a CA");
    let ca_cert = write("ca.pem", ca.self_signed(&ca_key).unwrap().pem());
    let issuer = Issuer::new(ca, ca_key);
    let mut end = CertificateParams::new(Vec::new()).unwrap();
    end.distinguished_name.push(DnType::CommonName, "an end");
    let certificate = write("cert.pem", end.signed_by(&key, &issuer).unwrap().pem());
    tls::Files { private_key: write("key.pem", key.serialize_pem()), certificate, ca_cert }
}

/// Opens one incomplete connection: silent, or with half a hello of 1.0, or with the start of a TLS
/// record that announces more than arrives.
fn stranger(to: SocketAddr, number: usize) -> TcpStream {
    let mut stream = TcpStream::connect(to).unwrap();
    let says: &[u8] = match number % 4 {
        0 => &HELLO[..5],
        1 => &[22, 3, 1, 0x40, 0, 1, 0, 0xff, 0, 3, 3],
        _ => &[],
    };
    // The switch may have closed it already.
    let _ = stream.write_all(says);
    stream
}

#[test]
fn ten_thousand_unfinished_connections_cost_little_and_block_no_controller() {
    let _alone = alone();
    let files = certificates(&folder("pki"));
    let settings = OpenFlowConfig {
        listen: vec!["ptcp:0:127.0.0.1".to_string(), "pssl:0:127.0.0.1".to_string()],
        private_key: files.private_key.clone(),
        certificate: files.certificate.clone(),
        ca_cert: files.ca_cert.clone(),
        limits: Limits { accepts_per_s: 1_000_000, handshakes_per_s: 20_000, ..Limits::default() },
        ..OpenFlowConfig::default()
    };
    let mut rig = Rig::start("ten-thousand", settings);
    let tls = Tls::load(&files).unwrap();
    let mut first = Controller::connect(rig.addresses[0], None);
    first.forward(&[2]);
    first.works();
    rig.frames_pass(100, 60);
    let (bytes, files) = (resident_bytes(), descriptors());
    let (mut met, mut good) = (0, 0);
    while met < STRANGERS {
        let mut wave = Vec::new();
        for _ in 0..WAVE {
            wave.push(stranger(rig.addresses[met % 2], met / 2));
            met += 1;
        }
        rig.frames_pass(20, 60);
        // While all of these are open, valid controllers of both kinds connect, work, and
        // disconnect.
        if met % (4 * WAVE) == 0 {
            Controller::connect(rig.addresses[0], None);
            Controller::connect(rig.addresses[1], Some(&tls));
            good += 2;
        }
        first.works();
        drop(wave);
    }
    let grown = resident_bytes().saturating_sub(bytes);
    assert!(grown < GROWTH_BYTES_MAX, "{grown} bytes more than before");
    // All of them are eventually accepted, and none remains.
    let until = clock::now() + PATIENCE;
    while (rig.count("connections_accepted") as usize) < met + good + 1 || descriptors() > files + 8
    {
        assert!(clock::now() < until, "{} descriptors", descriptors());
        clock::sleep_until(clock::now() + Nanos::from_millis(10));
    }
    assert!(rig.count("handshakes_displaced") > 0, "the maximum number was open at the same time");
    assert_eq!(rig.count("connections_refused"), 0);
    first.works();
    rig.frames_pass(100, 60);
    let log = rig.stop();
    let connected = log.iter().filter(|line| line.ends_with(": connected")).count();
    assert_eq!(connected, good + 1, "the valid controllers");
    assert!(
        log.len() < 2 * connected + 1_000,
        "{} lines: unfinished connections flood the log",
        log.len()
    );
    let _ = std::fs::remove_dir_all(folder("pki"));
}

#[test]
fn a_silent_controller_is_disconnected() {
    let _alone = alone();
    let settings = OpenFlowConfig {
        listen: vec!["ptcp:0:127.0.0.1".to_string()],
        limits: Limits { handshake_ms: 50, ..Limits::default() },
        ..OpenFlowConfig::default()
    };
    let rig = Rig::start("silent", settings);
    let url = Url::Tcp(rig.addresses[0]);
    let mut silent = Connecting::wait(&url, PATIENCE).unwrap();
    let until = clock::now() + PATIENCE;
    while silent.receive(&mut [0; 100]).is_ok() {
        assert!(clock::now() < until, "the connection stays open");
        std::thread::yield_now();
    }
    assert_eq!(rig.count("handshakes_timed_out"), 1);
    let log = rig.stop();
    assert!(log.iter().any(|line| line.ends_with("TLS and hello took too long")), "{log:?}");
}

#[test]
fn controllers_of_one_source_do_not_block_others() {
    let _alone = alone();
    let sockets = folder("sockets");
    let unix = |name: &str| format!("unix:{}", sockets.join(name).display());
    let settings = OpenFlowConfig {
        listen: vec!["ptcp:0:127.0.0.1".to_string(), format!("p{}", unix("switch"))],
        controllers: vec![unix("controller")],
        backoff_ms_max: 50,
        limits: Limits { connections: 4, connections_per_source: 2, ..Limits::default() },
        ..OpenFlowConfig::default()
    };
    let rig = Rig::start("sources", settings);
    let (host, user) = (Url::Tcp(rig.addresses[0]), unix("switch").parse().unwrap());
    let of_host = [(); 2].map(|()| Controller::connect_to(&host, None));
    Controller::is_refused(&host);
    // A user is another source than a host, and may connect although the host has reached its
    // limit.
    let of_user = [(); 2].map(|()| Controller::connect_to(&user, None));
    Controller::is_refused(&user);
    assert_eq!(rig.count("connections_refused"), 2);
    // All connections are in use now; the configured controller does not count.
    let socket = std::os::unix::net::UnixListener::bind(sockets.join("controller")).unwrap();
    let (mut configured, _) = socket.accept().unwrap();
    configured.write_all(&[HELLO, BARRIER].concat()).unwrap();
    let mut answer = vec![0; 4096];
    let mut heard = Vec::new();
    while !holds_barrier_reply(&heard) {
        let count = configured.read(&mut answer).unwrap();
        assert!(count > 0, "the connection was closed");
        heard.extend(&answer[..count]);
    }
    for mut controller in of_host.into_iter().chain(of_user) {
        controller.works();
    }
    let log = rig.stop();
    let per_source = |line: &&String| line.contains("(hint: raise limits.connections_per_source)");
    assert_eq!(log.iter().filter(per_source).count(), 2, "{log:?}");
    std::fs::remove_dir_all(sockets).unwrap();
}

#[test]
fn a_listener_without_authentication_logs_that_once() {
    let _alone = alone();
    let files = certificates(&folder("anyone-pki"));
    for (listen, ca_cert, warnings) in [
        ("ptcp:0", None, 0),
        ("ptcp:0:0.0.0.0", None, 1),
        ("pssl:0", None, 1),
        ("pssl:0:0.0.0.0", files.ca_cert.clone(), 0),
    ] {
        let settings = OpenFlowConfig {
            listen: vec![listen.to_string()],
            private_key: files.private_key.clone(),
            certificate: files.certificate.clone(),
            ca_cert,
            ..OpenFlowConfig::default()
        };
        let rig = Rig::start("anyone", settings);
        let is_loopback = rig.addresses[0].ip().is_loopback();
        assert_eq!(is_loopback, !listen.ends_with("0.0.0.0"), "{listen}");
        // The second reply comes from the loop, which logs the events of the same turn.
        assert_eq!([(); 2].map(|()| rig.count("connected")), [0, 0]);
        let log = rig.stop();
        let says = log.iter().filter(|line| line.contains("without authentication")).count();
        assert_eq!(says, warnings, "{listen}: {log:?}");
    }
    let _ = std::fs::remove_dir_all(folder("anyone-pki"));
}

#[test]
fn a_controller_that_stops_reading_stalls_nothing() {
    let _alone = alone();
    let settings = OpenFlowConfig {
        listen: vec!["ptcp:0:127.0.0.1".to_string()],
        probe_ms: 3_600_000,
        ..OpenFlowConfig::default()
    };
    let mut rig = Rig::start("deaf", settings);
    let mut deaf = Controller::connect(rig.addresses[0], None);
    // Port 0xfffd is the controller: every frame goes to both.
    deaf.forward(&[2, 0xfffd]);
    deaf.works();
    let before = resident_bytes();
    // Far more than the sockets' buffers and the send queue hold.
    for _ in 0..500 {
        rig.frames_pass(100, 1500);
    }
    assert_eq!(rig.count("frames"), 50_000);
    let lost = rig.count("news_lost");
    assert!(lost > 0 && lost < 50_000, "{lost}");
    let grown = resident_bytes().saturating_sub(before);
    assert!(grown < GROWTH_BYTES_MAX, "{grown} bytes more than before");
    // Another controller is not affected.
    Controller::connect(rig.addresses[0], None);
    rig.frames_pass(100, 1500);
    // When the stalled controller reads again, it receives complete messages.
    let mut heard = Vec::new();
    let until = clock::now() + PATIENCE;
    deaf.bytes.extend(BARRIER);
    while !holds_barrier_reply(&heard) {
        assert!(clock::now() < until, "the barrier has no reply");
        deaf.step(&mut heard);
    }
    rig.stop();
}
