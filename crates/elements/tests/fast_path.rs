//! The fast path of a bridge, a router, a switch and a ProGFE element on veth pairs, in a network
//! namespace that ends with the test.
//!
//! Each test runs itself again inside `unshare --net`. The node forwards in user space only when
//! the test lets it, so frames that arrive otherwise were forwarded in the kernel.

#![allow(clippy::unwrap_used, reason = "a test may panic at any place")]

use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;

use dataplane::action::Action;
use dataplane::flow::{FlowFilter, FlowSpec};
use dataplane::forwarder::Outputs;
use dataplane::key::Field;
use dataplane::matching::Match;
use elements::config::{
    BridgeConfig, Config, FastPathMode, Kind, OpenFlowConfig, PortConfig, ProGfeConfig,
    RouterConfig,
};
use elements::control::Request;
use elements::event::Event;
use elements::node::Node;
use elements::process;
use netio::afpacket::Options;
use netio::port::Port;
use os::clock::{self, WaitSet};
use packet::build::Builder;
use packet::frame::Batch;
use packet::header::ipv4;
use packet::time::Nanos;
use progfe::program::Program;
use progfe::program::document::no_files;
use progfe::shipped;
use progfe::xml::Source;
use serde_json::{Value, json};

/// Set where a test runs inside its namespace.
const INSIDE: &str = "FAST_PATH_TEST_INSIDE";

/// Maximum wait for any expected event.
const PATIENCE: Nanos = Nanos::from_secs(20);

/// Time in which a frame arrives if it comes at all.
const SOON: Nanos = Nanos::from_millis(50);

const ONE: [u8; 6] = [2, 0, 0, 0, 0, 1];
const TWO: [u8; 6] = [2, 0, 0, 0, 0, 2];

/// Runs `test` inside a new namespace with two veth pairs, if the machine allows it.
fn in_namespace(name: &str, test: fn()) {
    if std::env::var_os(INSIDE).is_some() {
        for cable in 1..=2 {
            add_cable(cable);
        }
        return test();
    }
    let root = std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    let mut cable = Command::new("unshare");
    cable.args(["--net", "ip", "link", "add", "near0", "type", "veth", "peer", "name", "far0"]);
    if !cable.output().is_ok_and(|output| output.status.success()) {
        let need = "need: root with CAP_NET_ADMIN, unshare and ip (apt-get install iproute2)";
        assert!(!root || std::env::var_os("CI").is_none(), "{need}");
        println!("skipped; {need}");
        return;
    }
    let mut again = Command::new("unshare");
    again.args(["--net", "--"]).arg(std::env::current_exe().unwrap());
    again.args(["--exact", name, "--nocapture"]).env(INSIDE, "1");
    let output = again.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}{errors}");
}

fn ip(arguments: &str) -> String {
    let output = Command::new("ip").args(arguments.split(' ')).output().unwrap();
    assert!(output.status.success(), "ip {arguments}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Creates the interfaces `near` and `far` of this number.
fn add_cable(cable: u32) {
    ip(&format!("link add far{cable} type veth peer name near{cable}"));
    for end in ["far", "near"] {
        ip(&format!("link set {end}{cable} addrgenmode none up"));
    }
}

fn config(kind: Kind, fast_path: FastPathMode) -> Config {
    let mut config = Config::new(kind);
    config.fast_path = fast_path;
    for number in 1..=2 {
        config.ports.push(PortConfig { number, spec: format!("xdp:near{number}") });
    }
    config
}

fn open(config: &Config) -> Result<Node, elements::node::OpenError> {
    let ports = config.ports.iter().map(|port| (port.number, open_port(&port.spec))).collect();
    Node::open(config, ports, 1, clock::now())
}

fn open_port(spec: &str) -> Box<dyn Port> {
    netio::open::open(spec, &Options::forwarder()).unwrap()
}

fn send(port: &mut dyn Port, frame: &[u8], count: usize) {
    for _ in 0..count {
        let mut batch = Batch::new(1);
        batch.push_bytes(frame);
        assert_eq!(port.transmit(&mut batch, clock::now()).unwrap(), 1);
    }
}

/// Waits for frames of our stations, in which `node` forwards, if given.
fn receive(port: &mut dyn Port, mut node: Option<&mut Node>, patience: Nanos) -> Option<Vec<u8>> {
    let deadline = clock::now() + patience;
    let mut batch = Batch::new(1);
    while clock::now() < deadline {
        if let Some(node) = &mut node {
            node.turn(clock::now());
            node.serve(clock::now());
        } else {
            let mut wait = WaitSet::new();
            wait.add(port.descriptor().unwrap(), false);
            wait.until(Some(clock::now() + Nanos::from_millis(1))).unwrap();
        }
        batch.clear();
        if port.receive(&mut batch, clock::now()).unwrap_or(0) > 0 {
            let bytes = batch.frames()[0].bytes();
            // The kernel's own frames have other addresses.
            if bytes[..6] == TWO || bytes[..6] == ONE {
                return Some(bytes.to_vec());
            }
        }
    }
    None
}

fn counters(node: &mut Node) -> Value {
    let request: Request = serde_json::from_str("{\"get\":\"counters\"}").unwrap();
    node.answer(request, clock::now()).unwrap()
}

fn number(counters: &Value, pointer: &str) -> u64 {
    counters.pointer(pointer).and_then(Value::as_u64).unwrap_or_else(|| panic!("{counters}"))
}

#[test]
fn a_bridge_forwards_known_frames_in_the_kernel_and_counts_all() {
    in_namespace("a_bridge_forwards_known_frames_in_the_kernel_and_counts_all", || {
        let mut far = [1, 2].map(|cable| open_port(&format!("xdp:far{cable}")));
        let kind = Kind::Bridge(BridgeConfig::default());
        let mut node = open(&config(kind, FastPathMode::Required)).unwrap();
        let on = Event::FastPathOn(2, "native");
        for event in [on, Event::FastPathPort(1, true), Event::FastPathPort(2, true)] {
            assert!(node.events.contains(&event), "{:?}", node.events);
        }
        let there = Builder::new(TWO, ONE).ether_type(0x88b5).bytes();
        let back = Builder::new(ONE, TWO).ether_type(0x88b5).bytes();
        // Both stations are unknown at first.
        send(&mut *far[0], &there, 1);
        assert_eq!(receive(&mut *far[1], None, SOON), None);
        assert_eq!(receive(&mut *far[1], Some(&mut node), PATIENCE).as_ref(), Some(&there));
        send(&mut *far[1], &back, 1);
        assert_eq!(receive(&mut *far[0], Some(&mut node), PATIENCE).as_ref(), Some(&back));
        for _ in 0..200 {
            send(&mut *far[0], &there, 1);
            assert_eq!(receive(&mut *far[1], None, PATIENCE).as_ref(), Some(&there));
            send(&mut *far[1], &back, 1);
            assert_eq!(receive(&mut *far[0], None, PATIENCE).as_ref(), Some(&back));
        }
        let all = counters(&mut node);
        assert_eq!(number(&all, "/fast_path/frames"), 400, "{all}");
        assert_eq!(number(&all, "/fast_path/macs"), 2, "{all}");
        assert_eq!(number(&all, "/bridge/forwarded"), 401, "{all}");
        assert_eq!(number(&all, "/bridge/flooded_unknown"), 1, "{all}");
        for port in 0..2 {
            let of = |name| number(&all, &format!("/ports/{port}/{name}"));
            assert_eq!([of("rx_frames"), of("tx_frames")], [201, 201], "{all}");
            assert_eq!([of("rx_bytes"), of("tx_bytes")], [201 * 60, 201 * 60], "{all}");
        }

        // A frame that is longer than another MTU comes to user space.
        let long = Builder::new(TWO, ONE).ether_type(0x88b5).payload(&[7; 1200]).bytes();
        ip("link set near2 mtu 1000");
        let begun = clock::now();
        while clock::now() < begun + Nanos::from_millis(200) {
            node.serve(clock::now());
        }
        let before = counters(&mut node);
        send(&mut *far[0], &long, 1);
        assert_eq!(receive(&mut *far[1], Some(&mut node), PATIENCE).as_ref(), Some(&long));
        let all = counters(&mut node);
        assert_eq!(number(&all, "/fast_path/frames"), 400, "{all}");
        let escaped = |all: &Value| number(all, "/fast_path/frames_escaped");
        assert_eq!(escaped(&all), escaped(&before) + 1, "{all}");
        ip("link set near2 mtu 1500");

        // Station two moves to the first cable. Until the bridge learns this, its frames escape.
        send(&mut *far[0], &back, 1);
        assert_eq!(receive(&mut *far[0], Some(&mut node), SOON), None, "the same port");
        assert_eq!(number(&counters(&mut node), "/bridge/moved"), 1);
        send(&mut *far[0], &there, 1);
        assert_eq!(receive(&mut *far[1], Some(&mut node), SOON), None);
        assert_eq!(number(&counters(&mut node), "/fast_path/frames"), 400);

        // The second interface is replaced by another one.
        ip("link del near2");
        add_cable(2);
        let mut second = open_port("xdp:far2");
        let deadline = clock::now() + PATIENCE;
        loop {
            send(&mut *second, &back, 1);
            if receive(&mut *far[0], Some(&mut node), SOON).is_some() {
                break;
            }
            assert!(clock::now() < deadline);
        }
        let begun = clock::now();
        while clock::now() < begun + Nanos::from_millis(200) {
            node.turn(clock::now());
            node.serve(clock::now());
        }
        send(&mut *second, &back, 1);
        assert_eq!(receive(&mut *far[0], None, PATIENCE).as_ref(), Some(&back));
        send(&mut *far[0], &there, 1);
        assert_eq!(receive(&mut *second, None, PATIENCE).as_ref(), Some(&there));
        drop(node);
        assert!(!ip("link show near1").contains("xdp"), "nothing is left attached");
    });
}

#[test]
fn a_router_forwards_packets_in_the_kernel_until_a_route_is_removed() {
    in_namespace("a_router_forwards_packets_in_the_kernel_until_a_route_is_removed", || {
        let mut far = [1, 2].map(|cable| open_port(&format!("xdp:far{cable}")));
        let router = RouterConfig::from_toml(
            "[[interface]]\nport = 1\naddresses = [\"10.0.1.1/24\"]\n\
             [[interface]]\nport = 2\naddresses = [\"10.0.2.1/24\"]\n\
             [[route]]\nto = \"20.0.0.0/8\"\nvia = \"10.0.2.9\"\n\
             [[neighbour]]\nport = 2\naddress = \"10.0.2.9\"\nmac = \"02:00:00:00:00:02\"\n",
        );
        let config = config(Kind::Router(router.unwrap()), FastPathMode::Required);
        let mut node = open(&config).unwrap();
        let macs = [0, 1].map(|place: usize| node.forward.forward_ports[place].port.facts().mac);
        let packet = |destination: [u8; 4], to, from, ttl| {
            let header = ipv4::Header::new([10, 0, 1, 9].into(), destination.into());
            Builder::new(to, from).ipv4(ipv4::Header { ttl, ..header }).udp(1, 2).bytes()
        };
        let sent = packet([20, 1, 2, 3], macs[0], ONE, 64);
        let expected = packet([20, 1, 2, 3], TWO, macs[1], 63);
        for _ in 0..100 {
            send(&mut *far[0], &sent, 1);
            assert_eq!(receive(&mut *far[1], None, PATIENCE).as_ref(), Some(&expected));
        }
        let all = counters(&mut node);
        assert_eq!(number(&all, "/fast_path/frames"), 100, "{all}");
        assert_eq!(number(&all, "/router/forwarded"), 100, "{all}");
        assert_eq!(number(&all, "/ports/0/rx_frames"), 100, "{all}");
        assert_eq!(number(&all, "/ports/1/tx_bytes"), 100 * 60, "{all}");

        // A longer route to an unknown neighbour, and its end.
        let mut request = |text: &str| {
            let request: Request = serde_json::from_str(text).unwrap();
            node.answer(request, clock::now()).unwrap()
        };
        request("{\"add_routes\":[{\"to\":\"20.1.2.0/24\",\"via\":\"10.0.2.8\"}]}");
        send(&mut *far[0], &sent, 1);
        assert_eq!(receive(&mut *far[1], None, SOON), None, "it escapes");
        request("{\"flush\":\"routes\"}");
        request("{\"add_routes\":[{\"to\":\"0.0.0.0/0\",\"via\":\"10.0.2.9\"}]}");
        send(&mut *far[0], &sent, 1);
        assert_eq!(receive(&mut *far[1], None, PATIENCE).as_ref(), Some(&expected));
        // An expired packet goes to user space, which replies.
        send(&mut *far[0], &packet([20, 1, 2, 3], macs[0], ONE, 1), 1);
        assert_eq!(receive(&mut *far[1], Some(&mut node), SOON).as_ref(), Some(&expected));
        let all = counters(&mut node);
        assert_eq!(number(&all, "/drops/ttl_expired"), 1, "{all}");
        assert_eq!(number(&all, "/router/forwarded"), 102, "{all}");
        assert_eq!(number(&all, "/fast_path/frames"), 101, "{all}");
    });
}

fn ask(node: &mut Node, request: Value) -> Value {
    let request: Request = serde_json::from_value(request).unwrap();
    let answer = node.answer(request, clock::now()).unwrap();
    let deadline = clock::now() + PATIENCE;
    // The kernel has the new program when a thread has loaded it.
    loop {
        node.serve(clock::now());
        if counters(node)["fast_path"]["runs"] == true {
            return answer;
        }
        assert!(clock::now() < deadline, "{:?}", node.events);
    }
}

#[test]
fn an_element_forwards_by_its_program_in_the_kernel_and_by_the_next_one() {
    in_namespace("an_element_forwards_by_its_program_in_the_kernel_and_by_the_next_one", || {
        let mut far = [1, 2].map(|cable| open_port(&format!("xdp:far{cable}")));
        let text = shipped::text("vlan").unwrap();
        let (program, _) = Program::load(&Source::new("vlan", text), &no_files);
        let kind = Kind::ProGfe(ProGfeConfig::new(program.unwrap().into()));
        let mut node = open(&config(kind, FastPathMode::Required)).unwrap();
        assert!(node.events.contains(&Event::FastPathOn(2, "native")), "{:?}", node.events);
        let there = Builder::new(TWO, ONE).ether_type(0x88b5).payload(&[7; 50]).bytes();
        let tagged = |control: u16, vid: u16| {
            let tag = [&[0x81, 0][..], &(control << 13 | vid).to_be_bytes()].concat();
            [&there[..12], &tag, &there[12..]].concat()
        };
        for _ in 0..100 {
            send(&mut *far[0], &there, 1);
            assert_eq!(receive(&mut *far[1], None, PATIENCE), Some(tagged(0, 200)));
            let back = Builder::new(ONE, TWO).tag(0x8100, 100).ether_type(0x88b5).bytes();
            send(&mut *far[1], &back, 1);
            let plain = Builder::new(ONE, TWO).ether_type(0x88b5).bytes();
            let came = receive(&mut *far[0], None, PATIENCE).unwrap();
            assert_eq!(came[..14], plain[..14]);
        }
        let all = counters(&mut node);
        assert_eq!(number(&all, "/fast_path/frames"), 200, "{all}");
        assert_eq!(number(&all, "/progfe/received"), 200, "{all}");
        assert_eq!(number(&all, "/progfe/left"), 200, "{all}");
        let of = |port: usize, name: &str| number(&all, &format!("/ports/{port}/{name}"));
        let bytes = there.len() as u64 * 100;
        assert_eq!([of(0, "rx_frames"), of(0, "rx_bytes")], [100, bytes], "{all}");
        assert_eq!([of(1, "tx_frames"), of(1, "tx_bytes")], [100, bytes + 400], "{all}");
        let link = |all: &Value, from: &str| {
            let links = all["progfe"]["links"].as_array().unwrap();
            links.iter().find(|link| link["from"] == from).unwrap()["frames"].as_u64().unwrap()
        };
        assert_eq!(link(&all, "tagd.PktsOut"), 100, "{all}");

        // Another VLAN, and a bridge.
        let other = text.replace(r#"to="200""#, r#"to="300""#);
        ask(&mut node, json!({ "load": { "name": "other", "text": other } }));
        for _ in 0..50 {
            send(&mut *far[0], &there, 1);
            assert_eq!(receive(&mut *far[1], None, PATIENCE), Some(tagged(0, 300)));
        }
        let all = counters(&mut node);
        assert_eq!(number(&all, "/fast_path/frames"), 250, "{all}");
        assert_eq!(link(&all, "tagd.PktsOut"), 150, "counters survive: {all}");
        ask(&mut node, json!({ "roll_back": {} }));
        send(&mut *far[0], &there, 1);
        assert_eq!(receive(&mut *far[1], None, PATIENCE), Some(tagged(0, 200)));
        let bridge = shipped::text("bridge").unwrap();
        ask(&mut node, json!({ "load": { "name": "bridge", "text": bridge } }));
        let back = Builder::new(ONE, TWO).ether_type(0x88b5).payload(&[7; 50]).bytes();
        send(&mut *far[0], &there, 1);
        assert_eq!(receive(&mut *far[1], None, SOON), None, "the bridge has to learn");
        assert_eq!(receive(&mut *far[1], Some(&mut node), PATIENCE).as_ref(), Some(&there));
        send(&mut *far[1], &back, 1);
        assert_eq!(receive(&mut *far[0], Some(&mut node), PATIENCE).as_ref(), Some(&back));
        for _ in 0..50 {
            send(&mut *far[0], &there, 1);
            assert_eq!(receive(&mut *far[1], None, PATIENCE).as_ref(), Some(&there));
        }
        let all = counters(&mut node);
        assert_eq!(number(&all, "/fast_path/frames"), 301, "{all}");
        assert_eq!(number(&all, "/fast_path/macs"), 2, "{all}");
        assert_eq!(number(&all, "/progfe/received"), 303, "{all}");
        assert_eq!(link(&all, "fdb.KnownOut"), 51, "{all}");
        assert_eq!(number(&all, "/ports/0/rx_frames"), 202, "{all}");
        drop(node);
        assert!(!ip("link show near1").contains("xdp"), "nothing is left attached");
    });
}

/// Adds an entry for frames from port 1.
fn add_flow(node: &mut Node, priority: u16, actions: &[Action]) {
    let pipeline = node.forward.forwarder.openflow().unwrap();
    let spec = FlowSpec::new(Match::of(&[(Field::InPort, 1)]), priority, actions);
    pipeline.add(&spec, clock::now(), &mut Outputs::new(&[])).unwrap();
    node.serve(clock::now());
}

#[test]
fn a_switch_forwards_by_its_entries_in_the_kernel_and_counts_all() {
    in_namespace("a_switch_forwards_by_its_entries_in_the_kernel_and_counts_all", || {
        let mut far = [1, 2].map(|cable| open_port(&format!("xdp:far{cable}")));
        let kind = Kind::OpenFlow(OpenFlowConfig::default());
        let mut node = open(&config(kind, FastPathMode::Required)).unwrap();
        node.serve(clock::now());
        let frame = Builder::new(TWO, ONE).ether_type(0x88b5).bytes();
        send(&mut *far[0], &frame, 1);
        assert_eq!(receive(&mut *far[1], Some(&mut node), SOON), None, "a miss is dropped");
        add_flow(&mut node, 1, &[Action::Output { port: 2 }]);
        for _ in 0..100 {
            send(&mut *far[0], &frame, 1);
            assert_eq!(receive(&mut *far[1], None, PATIENCE).as_ref(), Some(&frame));
        }
        // A tag is pushed in the kernel, too.
        add_flow(&mut node, 2, &[Action::SetVlan(5), Action::Output { port: 2 }]);
        send(&mut *far[0], &frame, 1);
        let tagged = [&frame[..12], &[0x81, 0, 0, 5][..], &frame[12..]].concat();
        assert_eq!(receive(&mut *far[1], None, PATIENCE), Some(tagged));
        // User space floods.
        add_flow(&mut node, 3, &[Action::Flood]);
        send(&mut *far[0], &frame, 1);
        assert_eq!(receive(&mut *far[1], None, SOON), None);
        assert_eq!(receive(&mut *far[1], Some(&mut node), PATIENCE).as_ref(), Some(&frame));
        add_flow(&mut node, 4, &[]);
        send(&mut *far[0], &frame, 1);
        assert_eq!(receive(&mut *far[1], Some(&mut node), SOON), None);
        let all = counters(&mut node);
        let of_path = |name| number(&all, &format!("/fast_path/{name}"));
        assert_eq!(["frames", "frames_dropped", "frames_escaped"].map(of_path), [101, 2, 1]);
        assert_eq!(["flows", "flows_escaping/flood", "masks"].map(of_path), [3, 1, 1]);
        let dropped = |why| number(&all, &format!("/drops/{why}"));
        assert_eq!(["by_flow", "no_match"].map(dropped), [1, 1]);
        let port = |at: usize, name| number(&all, &format!("/ports/{at}/{name}"));
        assert_eq!([port(0, "rx_frames"), port(0, "rx_bytes")], [104, 104 * 60], "{all}");
        assert_eq!([port(1, "tx_frames"), port(1, "tx_bytes")], [102, 102 * 60 + 4], "{all}");
        assert_eq!(number(&all, "/tables/1/matched"), 103, "{all}");
        let tables = node.forward.forwarder.openflow().unwrap().tables();
        let records = tables.records(&FlowFilter::ALL, 0, clock::now());
        let frames: Vec<_> = records.map(|flow| (flow.priority, flow.frames)).collect();
        assert_eq!(frames, [(1, 100), (2, 1), (3, 1), (4, 1)]);
    });
}

/// Lets the node work until it reports an event.
fn until(node: &mut Node, event: &Event) {
    let deadline = clock::now() + PATIENCE;
    while !node.events.contains(event) {
        assert!(clock::now() < deadline, "no {event:?}: {:?}", node.events);
        node.turn(clock::now());
        node.serve(clock::now());
    }
    node.events.clear();
}

#[test]
fn frames_to_a_peer_that_does_not_poll_are_forwarded_in_user_space() {
    in_namespace("frames_to_a_peer_that_does_not_poll_are_forwarded_in_user_space", || {
        let mut far = [1, 2].map(|cable| open_port(&format!("afpacket:far{cable}")));
        let bridge = || Kind::Bridge(BridgeConfig::default());
        let mut node = open(&config(bridge(), FastPathMode::Auto)).unwrap();
        let there = Builder::new(TWO, ONE).ether_type(0x88b5).bytes();
        let back = Builder::new(ONE, TWO).ether_type(0x88b5).bytes();
        for port in 1..=2 {
            assert!(node.events.contains(&Event::FastPathPort(port, false)), "{:?}", node.events);
        }
        for _ in 0..2 {
            send(&mut *far[0], &there, 1);
            assert_eq!(receive(&mut *far[1], Some(&mut node), PATIENCE).as_ref(), Some(&there));
            send(&mut *far[1], &back, 1);
            assert_eq!(receive(&mut *far[0], Some(&mut node), PATIENCE).as_ref(), Some(&back));
        }
        assert_eq!(number(&counters(&mut node), "/fast_path/frames"), 0);

        // The peer begins to poll, and ends.
        let mut polling = open_port("xdp:far2");
        until(&mut node, &Event::FastPathPort(2, true));
        send(&mut *far[0], &there, 1);
        assert_eq!(receive(&mut *polling, None, PATIENCE).as_ref(), Some(&there));
        assert_eq!(number(&counters(&mut node), "/fast_path/frames"), 1);
        drop(polling);
        until(&mut node, &Event::FastPathPort(2, false));
        send(&mut *far[0], &there, 1);
        assert_eq!(receive(&mut *far[1], Some(&mut node), PATIENCE).as_ref(), Some(&there));
        assert_eq!(number(&counters(&mut node), "/fast_path/frames"), 1);
        drop(node);
        let mut node = open(&config(bridge(), FastPathMode::Off)).unwrap();
        assert!(counters(&mut node).get("fast_path").is_none());
    });
}

#[test]
fn generic_programs_forward_to_peers_that_do_not_poll() {
    in_namespace("generic_programs_forward_to_peers_that_do_not_poll", || {
        let mut far = [1, 2].map(|cable| open_port(&format!("afpacket:far{cable}")));
        let mut config = config(Kind::Bridge(BridgeConfig::default()), FastPathMode::Required);
        config.ports.iter_mut().for_each(|port| port.spec.push_str(",mode=generic"));
        let mut node = open(&config).unwrap();
        assert!(node.events.contains(&Event::FastPathOn(2, "generic")), "{:?}", node.events);
        let there = Builder::new(TWO, ONE).ether_type(0x88b5).bytes();
        let back = Builder::new(ONE, TWO).ether_type(0x88b5).bytes();
        send(&mut *far[0], &there, 1);
        assert_eq!(receive(&mut *far[1], Some(&mut node), PATIENCE).as_ref(), Some(&there));
        send(&mut *far[1], &back, 1);
        assert_eq!(receive(&mut *far[0], Some(&mut node), PATIENCE).as_ref(), Some(&back));
        for _ in 0..50 {
            send(&mut *far[0], &there, 1);
            assert_eq!(receive(&mut *far[1], None, PATIENCE).as_ref(), Some(&there));
        }
        assert_eq!(number(&counters(&mut node), "/fast_path/frames"), 50);
    });
}

#[test]
fn a_bridge_with_hash_buckets_has_no_fast_path() {
    in_namespace("a_bridge_with_hash_buckets_has_no_fast_path", || {
        let kind = || Kind::Bridge(BridgeConfig { hash_buckets: 256, ..BridgeConfig::default() });
        let why = open(&config(kind(), FastPathMode::Required)).err().unwrap().to_string();
        assert!(why.contains("--hash-buckets"), "{why}");
        assert!(open(&config(kind(), FastPathMode::Auto)).unwrap().events.is_empty());
    });
}

#[test]
fn a_required_fast_path_needs_two_ports_with_programs() {
    in_namespace("a_required_fast_path_needs_two_ports_with_programs", || {
        let mut config = config(Kind::Bridge(BridgeConfig::default()), FastPathMode::Required);
        config.ports[1].spec = "afpacket:near2".into();
        let why = open(&config).err().unwrap().to_string();
        let expected = "cannot start the fast path: it requires two ports xdp:INTERFACE or more";
        assert_eq!(why, expected);
        config.fast_path = FastPathMode::Auto;
        assert!(open(&config).unwrap().events.is_empty());
    });
}

#[test]
fn a_killed_process_leaves_nothing_attached() {
    in_namespace("a_killed_process_leaves_nothing_attached", || {
        let _far = [1, 2].map(|cable| open_port(&format!("xdp:far{cable}")));
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "process_to_kill", "--ignored", "--nocapture"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let mut seen = Vec::new();
        while !seen.iter().any(|line: &String| line.ends_with("ready")) {
            seen.push(lines.next().unwrap_or_else(|| panic!("{seen:?}")));
        }
        assert!(seen.iter().any(|line| line.contains("forwarding in the kernel")), "{seen:?}");
        assert!(ip("link show near1").contains("xdp"));
        child.kill().unwrap();
        child.wait().unwrap();
        let deadline = clock::now() + PATIENCE;
        while ["near1", "near2"].iter().any(|near| ip(&format!("link show {near}")).contains("xdp"))
        {
            assert!(clock::now() < deadline, "a program is attached");
            clock::sleep_until(clock::now() + Nanos::from_millis(5));
        }
    });
}

/// The process that another test kills.
#[test]
#[ignore = "another test runs this"]
fn process_to_kill() {
    if std::env::var_os(INSIDE).is_none() {
        return;
    }
    let config = config(Kind::Bridge(BridgeConfig::default()), FastPathMode::Required);
    process::run(&config, &AtomicBool::new(false), &mut |event| println!("{event}")).unwrap();
}
