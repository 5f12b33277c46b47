//! Tests of our memif ports on both sides of external programs: every frame passes unchanged.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use netio::afpacket::Options;
use netio::port::Port;
use os::clock;
use packet::frame::Batch;
use testbed::peer::dpdk::Device;
use testbed::peer::ovs_dpdk::{OvsDpdk, Ports, Tuning};
use testbed::peer::testpmd::Testpmd;
use testbed::peer::{ControlInterface, Peer};
use testbed::requirement::Requirement;
use testbed::{Lab, Site, Wiring};

/// Time limit of any wait; only a failure takes this long.
const PATIENCE: Duration = Duration::from_secs(30);
const BURSTS: usize = 200;
const BURST: usize = 32;

pub fn ovs_needs() -> Result<(), Requirement> {
    OvsDpdk::needs(Ports::Memif)
}

pub fn testpmd_needs() -> Result<(), Requirement> {
    Testpmd::needs(&[Device::MemifServer("p1".into())])
}

/// With one polling thread Open vSwitch sends on the second of two rings, so two are offered.
pub fn through_ovs(root: PathBuf) {
    let mut ovs = OvsDpdk::new(Ports::Memif, Tuning::default());
    let lab = Lab::open(&root).unwrap();
    let site = lab.memory("ovs", &Wiring::of_machine().unwrap()).unwrap();
    ovs.start(&site).unwrap();
    let ControlInterface::OpenFlow { channel } = ovs.ready(PATIENCE).unwrap() else {
        panic!("it has an OpenFlow channel");
    };
    let flow = ["add-flow", channel.as_str(), "in_port=1,actions=output:2"];
    let output = Command::new("ovs-ofctl").args(flow).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let (_ports, greetings) = carry(&site, 2, &mut ovs);
    let account = ovs.account().unwrap();
    let lost: u64 = account.threads.iter().map(|thread| thread.upcalls_lost).sum();
    let taken: u64 = account.threads.iter().map(|thread| thread.packets_received).sum();
    assert_eq!((taken, lost), ((BURSTS * BURST) as u64 + greetings, 0), "{account:?}");
    ovs.stop().unwrap();
}

pub fn through_testpmd(root: PathBuf) {
    let mut testpmd = Testpmd::forwarding();
    let lab = Lab::open(&root).unwrap();
    let site = lab.memory("pmd", &Wiring::of_machine().unwrap()).unwrap();
    testpmd.start(&site).unwrap();
    testpmd.ready(PATIENCE).unwrap();
    let (_ports, greetings) = carry(&site, 1, &mut testpmd);
    testpmd.stop().unwrap();
    let counters = testpmd.counters().unwrap();
    let frames = (BURSTS * BURST) as u64;
    let count = |name: &str| counters.get(name).copied().unwrap_or(0);
    // The peer may have missed greetings sent before it began to poll, and may have dropped those
    // that arrived before the other port's link was up.
    let received = count("port.1.received");
    assert!((frames + 1..=frames + greetings).contains(&received), "{counters:?}");
    let sent = count("port.2.sent");
    assert!((frames + 1..=received).contains(&sent), "{counters:?}");
}

/// Sends bursts into port 1, and expects each out of port 2 in order before the next.
///
/// Returns the ports, since their peer resets its counters when they close, and the number of
/// greeting frames that were sent to detect whether the peer forwards.
fn carry(site: &Site, rings: u32, peer: &mut dyn Peer) -> ([Box<dyn Port>; 2], u64) {
    let open = |port: u32| {
        let path = site.socket(port);
        let spec = format!("memif:{},role=client,rx={rings},tx=1", path.display());
        netio::open::open(&spec, &Options::monitor()).unwrap()
    };
    let (mut one, mut two) = (open(1), open(2));
    link(&mut one, &mut two, peer);
    let greetings = greet(&mut one, &mut two, peer);
    let (mut batch, mut arrived) = (Batch::new(BURST), Batch::new(BURST));
    for burst in 0..BURSTS {
        let frames: Vec<Vec<u8>> = (0..BURST).map(|number| frame(burst, number)).collect();
        frames.iter().for_each(|frame| assert!(batch.push_bytes(frame)));
        let (start, mut got) = (clock::now(), Vec::new());
        while got.len() < BURST {
            let gone = one.transmit(&mut batch, clock::now()).unwrap();
            batch.drop_front(gone);
            arrived.clear();
            two.receive(&mut arrived, clock::now()).unwrap();
            let bytes = arrived.frames().iter().map(|frame| frame.bytes());
            got.extend(bytes.filter(|bytes| !is_greeting(bytes)).map(<[u8]>::to_vec));
            if clock::now().0 - start.0 > PATIENCE.as_nanos() as u64 {
                panic!("{} of burst {burst}: {:?}, {:?}", got.len(), peer.check(), peer.counters());
            }
        }
        assert_eq!(got, frames);
    }
    ([one, two], greetings)
}

/// Runs both ports until they have a link to the peer.
fn link(one: &mut Box<dyn Port>, two: &mut Box<dyn Port>, peer: &mut dyn Peer) {
    let mut nothing = Batch::new(1);
    let start = clock::now();
    while !(one.has_link() && two.has_link()) {
        for port in [&mut *one, &mut *two] {
            port.receive(&mut nothing, clock::now()).unwrap();
        }
        if clock::now().0 - start.0 > PATIENCE.as_nanos() as u64 {
            panic!("no link: {:?}", peer.check());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Sends frames one by one until one comes through; returns how many were sent.
///
/// The peer may detect a link later than the tester does, and loses frames that it would send
/// there.
fn greet(one: &mut Box<dyn Port>, two: &mut Box<dyn Port>, peer: &mut dyn Peer) -> u64 {
    let (mut batch, mut arrived) = (Batch::new(1), Batch::new(BURST));
    let start = clock::now();
    for sent in 1.. {
        assert!(batch.push_bytes(&greeting()));
        while one.transmit(&mut batch, clock::now()).unwrap() == 0 {}
        batch.clear();
        for _ in 0..20 {
            std::thread::sleep(Duration::from_millis(1));
            if two.receive(&mut arrived, clock::now()).unwrap() > 0 {
                return sent;
            }
        }
        if clock::now().0 - start.0 > PATIENCE.as_nanos() as u64 {
            panic!("no frame comes through: {:?}, {:?}", peer.check(), peer.counters());
        }
    }
    unreachable!("a frame comes through, or patience ends")
}

/// Returns a frame that no burst contains.
fn greeting() -> Vec<u8> {
    let mut bytes = frame(0, 0);
    bytes[13] = 0xb6;
    bytes
}

fn is_greeting(bytes: &[u8]) -> bool {
    bytes[13] == 0xb6
}

/// Returns a frame with its own MAC address, 60 to 1,500 bytes long, that contains its number in
/// every part.
fn frame(burst: usize, number: usize) -> Vec<u8> {
    let length = 60 + (burst * BURST + number) * 7 % 1441;
    let mut frame = vec![number as u8; length];
    frame[..6].copy_from_slice(&[2, 0, 0, 0, 0, 2]);
    frame[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
    // An experimental EtherType.
    frame[12..14].copy_from_slice(&[0x88, 0xb5]);
    frame[14..22].copy_from_slice(&(burst as u64).to_be_bytes());
    frame
}
