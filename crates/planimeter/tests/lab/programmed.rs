//! Tests of a programmed router between namespaces: `planimeter fe` reprograms it over ForCES while
//! packets pass, and tcpdump decodes the messages.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use testbed::host::{Host, HostSettings};
use testbed::requirement::{self, Requirement};
use testbed::veth::{Cable, EndSettings};
use testbed::{Mac, Namespace};

use super::common::CommandResult;
use super::{Element, PATIENCE, Place, System, lab_needs};

/// Verifies tcpdump, in addition to the lab's requirements.
pub fn needs() -> Result<(), Requirement> {
    lab_needs()?;
    requirement::tool("tcpdump", "tcpdump").map(drop)
}

/// The hosts' ends, as in the example's tables: IP address, MAC address, and the router's MAC
/// address.
const HOSTS: [(Ipv4Addr, Mac, Mac); 2] = [
    (Ipv4Addr::new(10, 1, 0, 9), [2, 0, 0, 0, 1, 9], [2, 0, 0, 0, 1, 1]),
    (Ipv4Addr::new(10, 2, 0, 9), [2, 0, 0, 0, 2, 9], [2, 0, 0, 0, 1, 2]),
];
const PORT: u16 = 7;

/// The router's namespace with a cable to each host.
struct Network {
    router: Namespace,
    _cables: Vec<Cable>,
    hosts: Vec<Host>,
}

fn network() -> Network {
    let router = Namespace::create().unwrap();
    let (mut cables, mut hosts) = (Vec::new(), Vec::new());
    for (number, (address, mac, next_hop)) in (1..).zip(HOSTS) {
        let namespace = Namespace::create().unwrap();
        let end = |namespace: &Namespace, name: &str, mac| EndSettings {
            namespace: namespace.clone(),
            name: format!("{name}{number}"),
            mac,
            threaded: None,
        };
        let near = end(&namespace, "host", mac);
        let far = end(&router, "p", [2, 0, 0, 0, 9, number]);
        let cable = Cable::lay(&near, &far, 1500).unwrap();
        let peer = HOSTS[2 - number as usize].0;
        let settings = HostSettings { mac, address, port: PORT, peer, next_hop };
        hosts.push(Host::settle(&cable.ends[0], settings).unwrap());
        cables.push(cable);
    }
    cables.iter().for_each(|cable| cable.wait_carrying().unwrap());
    Network { router, _cables: cables, hosts }
}

fn socket(host: &Host) -> UdpSocket {
    let address = SocketAddr::from(host.socket_address());
    let socket = host.namespace().run(|| UdpSocket::bind(address).unwrap()).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    socket
}

/// Numbered packets from one host that the other returns, until they are stopped.
struct Pings {
    stop: Arc<AtomicBool>,
    /// Packets sent and received.
    counts: Arc<Mutex<(u32, u32)>>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

impl Pings {
    fn start(network: &Network) -> Pings {
        let stop = Arc::new(AtomicBool::new(false));
        let counts = Arc::new(Mutex::new((0, 0)));
        let (near, far) = (socket(&network.hosts[0]), socket(&network.hosts[1]));
        let to = SocketAddr::from(network.hosts[1].socket_address());
        let (stop_far, stop_near, reported) = (stop.clone(), stop.clone(), counts.clone());
        let echo = move || {
            let mut buffer = [0; 64];
            while !stop_far.load(Ordering::Relaxed) {
                if let Ok((count, from)) = far.recv_from(&mut buffer) {
                    let _ = far.send_to(&buffer[..count], from);
                }
            }
        };
        let ping = move || {
            let mut buffer = [0; 64];
            let mut number = 0u32;
            while !stop_near.load(Ordering::Relaxed) {
                number += 1;
                near.send_to(&number.to_be_bytes(), to).unwrap();
                reported.lock().unwrap().0 += 1;
                // A late reply does not count.
                while let Ok(count) = near.recv(&mut buffer) {
                    if buffer[..count] == number.to_be_bytes() {
                        reported.lock().unwrap().1 += 1;
                        break;
                    }
                }
            }
        };
        let threads = vec![std::thread::spawn(echo), std::thread::spawn(ping)];
        Pings { stop, counts, threads }
    }

    fn counts(&self) -> (u32, u32) {
        *self.counts.lock().unwrap()
    }

    /// Waits until this many more were sent; returns how many of these came back.
    fn next(&self, count: u32) -> (u32, u32) {
        let before = self.counts();
        let until = Instant::now() + PATIENCE;
        while self.counts().0 < before.0 + count {
            assert!(Instant::now() < until, "no packet is sent any longer");
            std::thread::sleep(Duration::from_millis(1));
        }
        let now = self.counts();
        (now.0 - before.0, now.1 - before.1)
    }

    fn wait_for(&self, what: &str, is_so: impl Fn((u32, u32)) -> bool) {
        let until = Instant::now() + PATIENCE;
        while !is_so(self.next(3)) {
            assert!(Instant::now() < until, "{what}: {:?}", self.counts());
        }
    }
}

impl Drop for Pings {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

/// Traffic of the channels: the channel's number, and the bytes that one end sent in one
/// connection.
type Heard = Arc<Mutex<Vec<(usize, Vec<u8>)>>>;

/// Forwards and records the bytes from one socket to another, for three channels.
fn tap(folder: &Path, from: &str, to: &str) -> Heard {
    let heard = Heard::default();
    for channel in 0..3 {
        let name = |name: &str| match channel {
            0 => folder.join(name),
            number => folder.join(format!("{name}.{number}")),
        };
        let (listener, to) = (UnixListener::bind(name(from)).unwrap(), name(to));
        let heard = heard.clone();
        std::thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let Ok(far) = UnixStream::connect(&to) else { continue };
                for (mut from, mut to) in
                    [(near.try_clone().unwrap(), far.try_clone().unwrap()), (far, near)]
                {
                    let heard = heard.clone();
                    std::thread::spawn(move || {
                        let place = {
                            let mut all = heard.lock().unwrap();
                            all.push((channel, Vec::new()));
                            all.len() - 1
                        };
                        let mut buffer = [0; 4096];
                        while let Ok(count @ 1..) = from.read(&mut buffer) {
                            heard.lock().unwrap()[place].1.extend(&buffer[..count]);
                            if to.write_all(&buffer[..count]).is_err() {
                                break;
                            }
                        }
                        let _ = to.shutdown(std::net::Shutdown::Write);
                    });
                }
            }
        });
    }
    heard
}

/// Returns tcpdump's decoding of messages, each within SCTP as in RFC 5811.
fn decoded(path: PathBuf, heard: &Heard) -> (usize, String) {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 0x4_0000, 1] {
        file.extend(word.to_le_bytes());
    }
    let mut count = 0;
    for (channel, bytes) in heard.lock().unwrap().iter() {
        let mut rest = &bytes[..];
        while rest.len() >= 24 {
            let octets = usize::from(u16::from_be_bytes([rest[2], rest[3]])) * 4;
            let (message, behind) = rest.split_at(octets);
            rest = behind;
            count += 1;
            let ports = (6704 + *channel as u16).to_be_bytes();
            let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0];
            frame.extend((20 + 12 + 16 + octets as u16).to_be_bytes());
            frame.extend([0, 0, 0x40, 0, 64, 132, 0, 0, 127, 0, 0, 1, 127, 0, 0, 1]);
            frame.extend([ports, ports].concat());
            frame.extend([0, 0, 0, 1, 0, 0, 0, 0, 0, 3]);
            frame.extend((16 + octets as u16).to_be_bytes());
            frame.extend([0, 0, 0, 1, 0, 0, 0, 0]);
            frame.extend((21 + *channel as u32).to_be_bytes());
            frame.extend(message);
            for word in [count as u32, 0, frame.len() as u32, frame.len() as u32] {
                file.extend(word.to_le_bytes());
            }
            file.extend(frame);
        }
        assert!(rest.is_empty(), "a message is truncated");
    }
    fs::write(&path, file).unwrap();
    let output =
        Command::new("tcpdump").args(["-n", "-vvv", "-t", "-r"]).arg(&path).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    (count, String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs a control element through the tap, and returns its output.
fn fe(place: &Place, words: &[&str]) -> CommandResult {
    place.planimeter(&[&["fe", "--connect", "unix:tap"], words].concat())
}

fn run_program(place: &Place, words: &[&str]) -> String {
    let result = fe(place, words);
    assert_eq!(result.code, Some(0), "{words:?}: {}", result.errors);
    result.output
}

pub fn a_router_is_reprogrammed_over_forces() {
    let (place, before) = (Place::new(), System::now());
    let network = network();
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/progfe/router.fe.xml");
    let ports = ["--port", "1=afpacket:p1", "--port", "2=afpacket:p2"];
    let words =
        [&["progfe", "--program", program, "--forces", "punix:forces"], &ports[..]].concat();
    let mut router = Element::start(&place, &network.router, &words);
    let heard = tap(place.path(), "tap", "forces");
    let pings = Pings::start(&network);
    pings.wait_for("packets pass", |(sent, back)| sent == back);
    // Its state, by names of the program and of classes.
    let got = run_program(
        &place,
        &["get", "lpm.IPv4PrefixTable[1]", "FEObject.FEName", "nh.IPv4NextHopTable[7].MTU"],
    );
    assert!(got.contains("IPv4Address=10.2.0.0") && got.contains("Prefixlen=16"), "{got}");
    assert!(got.contains("FEObject.FEName = router\n"), "{got}");
    assert!(got.contains("nh.IPv4NextHopTable[7].MTU = 1500\n"), "{got}");
    // While packets pass: deletes a route, and restores it in another row.
    run_program(&place, &["set", "lpm.IPv4PrefixTable[1]"]);
    pings.wait_for("no route", |(_, back)| back == 0);
    let route = "lpm.IPv4PrefixTable[40]={IPv4Address=10.2.0.9, Prefixlen=32, ECMPFlag=false, \
                 DefaultRouteFlag=false, Reserved=0, HopSelector=7}";
    run_program(&place, &["set", route]);
    pings.wait_for("packets pass again", |(sent, back)| sent == back);
    // All or nothing: the second change is invalid.
    let result =
        fe(&place, &["set", "lpm.IPv4PrefixTable[40]", "lpm.IPv4PrefixTable[41].HopSelector=6"]);
    assert_eq!(result.code, Some(2));
    assert!(result.errors.contains("lpm.IPv4PrefixTable[41].HopSelector: "), "{}", result.errors);
    let (sent, back) = pings.next(20);
    assert!(back + 1 >= sent, "{back} of {sent}: a rejected change had an effect");
    // Many rows in one message.
    let row = |number: u32| {
        let [_, b, c, d] = (number << 4).to_be_bytes();
        format!(
            "{number} {{IPv4Address=11.{b}.{c}.{d}, Prefixlen=28, ECMPFlag=false, DefaultRouteFlag=false, Reserved=0, HopSelector=6}}\n"
        )
    };
    let rows: String = (100..10_100).map(row).collect();
    fs::write(place.path().join("routes.txt"), rows).unwrap();
    run_program(&place, &["set", "--rows", "lpm.IPv4PrefixTable=routes.txt"]);
    let got = run_program(&place, &["get", "lpm.IPv4PrefixTable[10099]"]);
    assert!(got.contains("11.2.119.48"), "{got}");
    // Another program, and an invalid one.
    let text = fs::read_to_string(program).unwrap();
    fs::write(place.path().join("bad.fe.xml"), text.replace("val.ValidatePktsIn", "val.Nowhere"))
        .unwrap();
    let result = fe(&place, &["load", "bad.fe.xml"]);
    assert_eq!(result.code, Some(2));
    assert!(
        result.errors.contains("val.Nowhere") && result.errors.contains("Document:"),
        "{}",
        result.errors
    );
    let loaded = run_program(&place, &["load", program]);
    assert!(loaded.starts_with("running router, program number "), "{loaded}");
    assert!(!run_program(&place, &["get", "lpm.IPv4PrefixTable"]).contains("11.2.119.48"));
    // A trace of a packet like the hosts' own.
    let mut frame = vec![2, 0, 0, 0, 1, 1, 2, 0, 0, 0, 1, 9, 8, 0];
    frame.extend([0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0x66, 0xbd, 10, 1, 0, 9, 10, 2, 0, 9]);
    frame.extend([0, 7, 0, 9, 0, 8, 0, 0]);
    let hex: String = frame.iter().map(|byte| format!("{byte:02x}")).collect();
    let traced = run_program(&place, &["trace", "--frame", &hex]);
    assert!(traced.contains("lpm: NormalOut -> nh.PktsIn"), "{traced}");
    assert!(traced.contains("sent on port 2"), "{traced}");
    pings.wait_for("packets pass at the end", |(sent, back)| sent == back);
    drop(pings);
    assert!(router.is_running());
    assert_eq!(router.end(), Some(0));
    drop(network);
    place.assert_clean(&before);
    // An external decoder understands all messages. Its known errors (4.99) concern COMMIT and
    // TRCOMP, which have no body, so that it misses nothing.
    let (count, text) = decoded(place.path().join("session.pcap"), &heard);
    let is_known = |line: &str| line.contains("truncated lfb selector: 0 bytes missing!");
    let mut messages = 0;
    for message in text.split("\nIP ") {
        messages += 1;
        let lines = message.lines().filter(|line| !is_known(line));
        for line in lines.filter(|line| !line.trim_start().starts_with("Result: ")) {
            let complaints = ["invalid", "illegal", "bogus", "truncated", "[|forces", "missing"];
            let found = complaints.iter().find(|complaint| line.contains(*complaint));
            assert_eq!(found, None, "{message}");
        }
    }
    assert_eq!(messages, count, "{text}");
    for kind in [
        "Association Setup",
        "Association Response",
        "ForCES Query",
        "ForCES Config",
        "Association TearDown",
    ] {
        assert!(text.contains(kind), "no {kind}: {text}");
    }
}
