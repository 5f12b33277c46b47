//! Tests of TCP and UDP between hosts whose interfaces have their default offloads, through
//! elements of every kind: data arrives intact, nothing is lost, and the sender retransmits almost
//! nothing.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::process::Command;

use serde_json::{Value, json};
use testbed::Namespace;
use testbed::netlink::link::VethEnd;
use testbed::netlink::route::Route;
use testbed::probe;
use testbed::requirement::{self, Requirement};

use super::{Element, PATIENCE, Place, lab_needs, ovs_needs};

/// Bytes of a transfer: thousands of merged frames.
const BYTES: usize = 32 << 20;

/// Limit of segments that a sender may retransmit without loss, because a busy machine delays it.
const RETRANSMITTED_MAX: u64 = 100;

/// Segments of the largest merged frame.
const SEGMENTS_MAX: u64 = 46;

/// The server's port, and the port that clients of a rewriting switch connect to.
const PORT: u16 = 7000;
const REWRITTEN: u16 = 7001;

pub fn needs() -> Result<(), Requirement> {
    ovs_needs()?;
    requirement::tool("ovs-ofctl", "openvswitch-common")?;
    probe::require(requirement::Feature::XdpSocket).map(drop)
}

/// Two hosts, and between them the namespace of an element with the interfaces e1 and e2.
struct Net {
    place: Place,
    element: Namespace,
    client: Namespace,
    server: Namespace,
    server_address: Ipv4Addr,
}

impl Net {
    fn new(is_routed: bool) -> Net {
        let [element, client, server] = [(); 3].map(|()| Namespace::create().unwrap());
        let networks = [1, if is_routed { 2 } else { 1 }];
        for (number, host) in (1..).zip([&client, &server]) {
            let network = networks[usize::from(number) - 1];
            let end = |namespace: &Namespace, name: String, mac| VethEnd {
                namespace: namespace.clone(),
                name,
                mac,
            };
            let near = end(&element, format!("e{number}"), [2, 0, 0, 0, 1, number]);
            let far = end(host, "h0".into(), [2, 0, 0, 0, 9, number]);
            element.netlink().unwrap().veth_add(&near, &far, 1500).unwrap();
            for end in [&near, &far] {
                let mut netlink = end.namespace.netlink().unwrap();
                let index = netlink.link(&end.name).unwrap().index;
                netlink.link_up(index).unwrap();
            }
            let mut netlink = host.netlink().unwrap();
            let interface = netlink.link("h0").unwrap().index;
            netlink.address_add(interface, [10, network, 0, 10 + number].into(), 24).unwrap();
            if is_routed {
                let via = [10, network, 0, 1].into();
                let route = Route { prefix: [10, 0, 0, 0].into(), length: 8, via, interface };
                netlink.routes_add(&[route]).unwrap();
            }
        }
        let server_address = [10, networks[1], 0, 12].into();
        Net { place: Place::new(), element, client, server, server_address }
    }

    fn start(&self, kind: &str, port: &str, more: &[&str]) -> Element {
        let ports = [1, 2].map(|number| format!("--port={number}={port}:e{number}"));
        let mut arguments = vec![kind, &ports[0], &ports[1], "--control-socket", "control"];
        arguments.extend(more);
        Element::start(&self.place, &self.element, &arguments)
    }

    /// Returns the counters of the element's ports.
    fn ports(&self) -> Value {
        let mut stream = UnixStream::connect(self.place.path().join("control")).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        writeln!(stream, "{}", json!({"get": "counters"})).unwrap();
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).unwrap();
        serde_json::from_str::<Value>(&line).unwrap()["ok"]["ports"].clone()
    }

    /// Sends bytes over TCP, which must arrive intact.
    fn transfer(&self, port: u16) {
        let listener = self.server.run(|| TcpListener::bind((Ipv4Addr::UNSPECIFIED, PORT)));
        let listener = listener.unwrap().unwrap();
        let sent: Vec<u8> = (0..BYTES).map(|n| ((n * 31) >> 7) as u8).collect();
        std::thread::scope(|scope| {
            let arrived = scope.spawn(|| {
                let (mut stream, _) = listener.accept().unwrap();
                stream.set_read_timeout(Some(PATIENCE)).unwrap();
                let mut arrived = Vec::with_capacity(BYTES);
                stream.read_to_end(&mut arrived).unwrap();
                arrived
            });
            let to = (self.server_address, port);
            let mut stream = self.client.run(|| TcpStream::connect(to)).unwrap().unwrap();
            stream.set_write_timeout(Some(PATIENCE)).unwrap();
            stream.write_all(&sent).unwrap();
            drop(stream);
            assert!(
                arrived.join().unwrap() == sent,
                "the received bytes differ from the sent ones"
            );
        });
    }

    /// Sends a datagram and its reply: one that fits a frame and one in fragments.
    fn exchange(&self, port: u16, lengths: &[usize]) {
        let bind = || UdpSocket::bind((Ipv4Addr::UNSPECIFIED, PORT)).unwrap();
        let server = self.server.run(bind).unwrap();
        let client = self.client.run(bind).unwrap();
        for socket in [&server, &client] {
            socket.set_read_timeout(Some(PATIENCE)).unwrap();
        }
        let mut arrived = [0; 4000];
        for &length in lengths {
            let sent: Vec<u8> = (0..length).map(|n| n as u8).collect();
            client.send_to(&sent, (self.server_address, port)).unwrap();
            let (count, from) = server.recv_from(&mut arrived).unwrap();
            assert_eq!(arrived[..count], sent);
            server.send_to(&arrived[..count], from).unwrap();
            let (count, _) = client.recv_from(&mut arrived).unwrap();
            assert_eq!(arrived[..count], sent);
        }
    }

    /// Returns the segments that the client retransmitted.
    fn retransmitted(&self) -> u64 {
        let read = || std::fs::read_to_string("/proc/thread-self/net/snmp").unwrap();
        let text = self.client.run(read).unwrap();
        let mut tcp = text.lines().filter(|line| line.starts_with("Tcp:"));
        let (names, values) = (tcp.next().unwrap(), tcp.next().unwrap());
        let place = names.split(' ').position(|name| name == "RetransSegs").unwrap();
        values.split(' ').nth(place).unwrap().parse().unwrap()
    }

    /// Checks that no port lost a merged frame, and that the client's merged frames arrived.
    ///
    /// The only permitted loss is a ring that is briefly full on a busy machine; TCP retransmits
    /// these segments.
    fn assert_carried(&self, what: &str) {
        let ports = self.ports();
        let mut overflowed = 0;
        for port in ports.as_array().unwrap() {
            for (reason, frames) in port["drops"].as_object().unwrap() {
                assert_eq!(reason, "receive_ring_full", "{what}: {ports}");
                overflowed += frames.as_u64().unwrap();
            }
        }
        // As many frames as segments: none left merged.
        let frames = ports[0]["rx_frames"].as_u64().unwrap();
        assert!(frames as usize > BYTES / 1500, "{what}: {ports}");
        let repeated = self.retransmitted();
        let repeated_max = RETRANSMITTED_MAX + SEGMENTS_MAX * overflowed;
        assert!(
            repeated <= repeated_max,
            "{what}: {repeated} segments were retransmitted: {ports}"
        );
    }
}

/// The kinds of port that take frames from an interface.
const PORTS: [&str; 2] = ["afpacket", "xdp"];

pub fn a_bridge_forwards_merged_frames() {
    for port in PORTS {
        let net = Net::new(false);
        let mut bridge = net.start("bridge", port, &[]);
        net.transfer(PORT);
        net.exchange(PORT, &[1000, 3000]);
        net.assert_carried(port);
        assert_eq!(bridge.end(), Some(0));
    }
}

pub fn a_router_forwards_merged_frames() {
    for port in PORTS {
        let net = Net::new(true);
        let interface =
            |port| format!("[[interface]]\nport = {port}\naddresses = [\"10.{port}.0.1/24\"]\n");
        let file = [interface(1), interface(2)].concat();
        std::fs::write(net.place.path().join("router.toml"), file).unwrap();
        let mut router = net.start("router", port, &["--config", "router.toml"]);
        net.transfer(PORT);
        net.exchange(PORT, &[1000, 3000]);
        net.assert_carried(port);
        assert_eq!(router.end(), Some(0));
    }
}

/// Tests a switch that rewrites TCP and UDP ports in both directions, and with them checksums that
/// senders left to their interfaces.
pub fn a_switch_rewrites_and_forwards_merged_frames() {
    for port in PORTS {
        let net = Net::new(false);
        let socket = net.place.path().join("openflow");
        let listen = format!("punix:{}", socket.display());
        let mut switch = net.start("switch", port, &["--listen", &listen]);
        for protocol in ["tcp", "udp"] {
            for (from, to) in [
                (format!("in_port=1,{protocol},tp_dst={REWRITTEN}"), (PORT, "dst", 2)),
                (format!("in_port=2,{protocol},tp_src={PORT}"), (REWRITTEN, "src", 1)),
            ] {
                let (number, side, out) = to;
                let set = format!("set_field:{number}->{protocol}_{side},output:{out}");
                add_flow(&socket, &format!("priority=9,{from},actions={set}"));
            }
        }
        add_flow(&socket, "priority=1,arp,actions=flood");
        net.transfer(REWRITTEN);
        net.exchange(REWRITTEN, &[1000]);
        net.assert_carried(port);
        assert_eq!(switch.end(), Some(0));
    }
}

fn add_flow(socket: &std::path::Path, flow: &str) {
    let target = format!("unix:{}", socket.display());
    let mut command = Command::new("ovs-ofctl");
    let output = command.args(["-O", "OpenFlow13", "add-flow", &target, flow]).output().unwrap();
    assert!(output.status.success(), "{flow}: {}", String::from_utf8_lossy(&output.stderr));
}

pub fn mininet_needs() -> Result<(), Requirement> {
    lab_needs()?;
    requirement::tool("ip", "iproute2")?;
    requirement::tool("unshare", "util-linux")?;
    requirement::tool("mn", "mininet").map(drop)
}

/// Tests two default Mininet hosts, with and without a controller.
pub fn mininet_measures_with_iperf() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/mininet/planimeter_mininet.py");
    for more in ["--controller default", "--controller none"] {
        // Mininet ends processes and deletes files by name, so it runs where it sees only its own.
        let mn = format!("mn --custom {file} --switch planimeter {more} --test iperf");
        let script = format!("mount -t tmpfs none /tmp && ip link set lo up && exec {mn}");
        let place = Place::new();
        // Mininet has no timeout.
        let output = Command::new("timeout")
            .args(["--kill-after=5", "180", "unshare"])
            .args(["--net", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child"])
            .args(["sh", "-c", &script])
            .env("PLANIMETER", env!("CARGO_BIN_EXE_planimeter"))
            .env("OVS_RUNDIR", "/tmp")
            .current_dir(place.path())
            .output()
            .unwrap();
        let text =
            [output.stdout, output.stderr].map(|it| String::from_utf8_lossy(&it).into_owned());
        let text = text.concat();
        assert!(output.status.success(), "{more}: {text}");
        // The rates at both ends, such as ['1.2 Gbits/sec', '1.2 Gbits/sec'].
        let rates = text.split("Results: [").nth(1).unwrap_or_default().matches("bits/sec").count();
        assert_eq!(rates, 2, "{more}: {text}");
    }
}
