//! Open vSwitch in a private instance: it forwards by OpenFlow, and leaves nothing behind.

use crate::fixture::{PATIENCE, Root, in_time, processes_with, wiring};
use crate::raw::{Raw, frame};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};
use testbed::LabError;
use testbed::peer::openvswitch::OpenVswitch;
use testbed::peer::{ControlInterface, Peer, Plan, Station};

const HELLO: [u8; 8] = [1, 0, 0, 8, 0, 0, 0, 1];

/// Returns an OpenFlow 1.0 flow-mod (add): every frame from port 1 leaves at port 2.
fn flow() -> Vec<u8> {
    let wildcards = 0x003f_ffff_u32 & !1;
    let mut flow = vec![1, 14, 0, 80, 0, 0, 0, 2];
    flow.extend(wildcards.to_be_bytes());
    flow.extend([0, 1]);
    flow.extend([0; 34]);
    flow.extend([0; 8]);
    flow.extend([0, 0, 0, 0, 0, 0, 0, 9]);
    flow.extend([0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0]);
    flow.extend([0, 0, 0, 8, 0, 2, 0, 0]);
    flow
}

/// Reads messages until one of this type arrives.
fn until(stream: &mut UnixStream, wanted: u8) -> Vec<u8> {
    loop {
        let mut head = [0; 8];
        stream.read_exact(&mut head).unwrap();
        let length = usize::from(u16::from_be_bytes([head[2], head[3]]));
        let mut message = head.to_vec();
        message.resize(length, 0);
        stream.read_exact(&mut message[8..]).unwrap();
        assert_ne!(message[1], 1, "OpenFlow error {message:?}");
        if message[1] == wanted {
            return message;
        }
    }
}

/// Exchanges hello messages.
pub fn greet(stream: &mut UnixStream) {
    stream.write_all(&HELLO).unwrap();
    until(stream, 0);
}

/// Installs [`flow`], and waits for the barrier reply.
pub fn install(stream: &mut UnixStream) {
    let flow = flow();
    assert_eq!(flow.len(), 80);
    stream.write_all(&flow).unwrap();
    stream.write_all(&[1, 18, 0, 8, 0, 0, 0, 3]).unwrap();
    until(stream, 19);
}

pub fn connect(access: ControlInterface) -> UnixStream {
    let ControlInterface::OpenFlow { channel } = access else {
        panic!("{access:?}");
    };
    let stream = UnixStream::connect(channel.strip_prefix("unix:").unwrap()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

pub fn open_vswitch_forwards_by_openflow() {
    let root = Root::new();
    let lab = root.lab();
    let site = lab.site("ovs", &wiring()).unwrap();
    let mut ovs = OpenVswitch::default();
    ovs.start(&site).unwrap();
    let mut stream = connect(ovs.ready(PATIENCE).unwrap());
    greet(&mut stream);
    // In secure mode nothing passes before a flow entry is installed.
    let (one, two) = (Raw::open(&site.instrument[0]), Raw::open(&site.instrument[1]));
    one.send(&frame([2; 6], [4; 6], 1)).unwrap();
    assert_eq!(two.receive(Duration::from_millis(100), |_| true), None);
    install(&mut stream);
    let wanted = frame([2; 6], [4; 6], 2);
    // A barrier reply does not mean that the datapath has removed its flow for frame 1.
    assert!(in_time(|| {
        one.send(&wanted).unwrap();
        two.receive(Duration::from_millis(50), |frame| frame == wanted).is_some()
    }));
    let counters = ovs.counters().unwrap();
    assert!(counters["datapath.packets_received"] >= 2, "{counters:?}");
    assert_eq!(counters["datapath.miss_with_failed_upcall"], 0);
    // Collected from the threads about once a second.
    let has_coverage = |name: &String| name.starts_with("coverage.");
    assert!(in_time(|| ovs.counters().unwrap().keys().any(has_coverage)));
    assert!(site.account().unwrap().sockets.iter().any(|socket| socket.interface == "p1"));
    ovs.check().unwrap();
    assert_eq!(ovs.processes().len(), 1);
    let plan = Plan { stations: vec![Station { mac: [2; 6], port: 1 }], ..Plan::default() };
    assert!(matches!(ovs.install(&site, &plan), Err(LabError::Argument { .. })));
    let described = ovs.describe();
    assert!(described.version.starts_with("Open vSwitch "), "{described:?}");
    assert!(described.version.contains('.'));
    ovs.stop().unwrap();
}

pub fn open_vswitch_leaves_nothing_behind() {
    let system = ["/var/run/openvswitch", "/var/log/openvswitch", "/etc/openvswitch"];
    let there: Vec<bool> = system.iter().map(|path| Path::new(path).exists()).collect();
    let root = Root::new();
    let lab = root.lab();
    let site = lab.site("ovs", &wiring()).unwrap();
    let mut ovs = OpenVswitch::default();
    let start = Instant::now();
    ovs.start(&site).unwrap();
    ovs.ready(PATIENCE).unwrap();
    let up = start.elapsed();
    let path = site.path.display().to_string();
    assert_eq!(processes_with(&path).len(), 2, "server and switch");
    let links = site.namespace.netlink().unwrap().links().unwrap();
    assert!(links.iter().any(|link| link.name == "br0"));
    let start = Instant::now();
    ovs.stop().unwrap();
    println!("  up in {:.3} s, down in {:.3} s", up.as_secs_f64(), start.elapsed().as_secs_f64());
    assert_eq!(processes_with(&path), Vec::<u32>::new());
    let links = site.namespace.netlink().unwrap().links().unwrap();
    let names: Vec<&str> = links.iter().map(|link| link.name.as_str()).collect();
    assert_eq!(names, ["lo", "p1", "p2"]);
    drop((site, lab));
    assert_eq!(std::fs::read_dir(&root.0).unwrap().count(), 0);
    let after: Vec<bool> = system.iter().map(|path| Path::new(path).exists()).collect();
    assert_eq!(there, after, "{system:?}");
    // Dropping without a stop is as clean.
    let lab = root.lab();
    let site = lab.site("ovs", &wiring()).unwrap();
    let mut ovs = OpenVswitch::default();
    ovs.start(&site).unwrap();
    let path = site.path.display().to_string();
    drop(ovs);
    assert_eq!(processes_with(&path), Vec::<u32>::new());
}
