//! Tests of frames from agents with an independent decoder: OAM, ARP, neighbour discovery and ICMP.
//!
//! Elements with agents exchange frames. A capture file records these frames. tshark must decode
//! them as intended and report no errors.

#![allow(clippy::unwrap_used, reason = "a test")]

mod need;

use std::path::Path;
use std::process::Command;

use dataplane::forwarder::{Forwarder, Outputs};
use packet::build::Builder;
use packet::frame::Batch;
use packet::header::{arp, icmp, icmpv6, ipv4, ipv6};
use packet::time::Nanos;
use progfe::agent::AgentRequest;
use progfe::dispatcher::Dispatcher;
use progfe::element::Element;
use progfe::program::Program;
use progfe::program::document::no_files;
use progfe::xml::Source;

/// An element with its agents, and all frames that it sends.
struct Run {
    element: Element,
    agents: Dispatcher,
    outputs: Outputs,
    now: Nanos,
    sent: Vec<Vec<u8>>,
}

impl Run {
    fn new(program: &str, number: u8) -> Run {
        let (program, problems) = Program::load(&Source::new("p", program), &no_files);
        let program = program.unwrap_or_else(|| panic!("{problems}"));
        let mut agents = Dispatcher::new(1);
        agents.set_hardware((1..=2).map(|port| (port, [2, 0, 0, 0, number, port as u8])).collect());
        agents.set_date(Nanos::from_secs(1_700_000_000), Nanos::ZERO);
        let (element, outputs) = (Element::start(program, 1).unwrap(), Outputs::new(&[1, 2]));
        let (now, sent) = (Nanos::from_secs(1), Vec::new());
        let mut run = Run { element, agents, outputs, now, sent };
        run.serve();
        run
    }

    /// Serves the agents. Returns the frames that left each port since the last call.
    fn serve(&mut self) -> Vec<(u32, Vec<u8>)> {
        self.agents.serve(&mut self.element, self.now, &mut self.outputs);
        self.left()
    }

    fn left(&mut self) -> Vec<(u32, Vec<u8>)> {
        let mut left = Vec::new();
        for (port, queue) in self.outputs.queues_mut() {
            left.extend(queue.frames().iter().map(|frame| (*port, frame.bytes().to_vec())));
            queue.clear();
        }
        self.sent.extend(left.iter().map(|(_, frame)| frame.clone()));
        left
    }

    fn receive(&mut self, port: u32, frame: &[u8]) -> Vec<(u32, Vec<u8>)> {
        let mut batch = Batch::new(1);
        batch.push_bytes(frame);
        self.element.forward(port, &mut batch, self.now, &mut self.outputs);
        self.serve()
    }

    fn ask(&mut self, what: &str, with: &[(&str, &str)]) -> Vec<(u32, Vec<u8>)> {
        let with = with.iter().map(|(name, value)| (name.to_string(), value.to_string()));
        let ask = AgentRequest { what: what.into(), with: with.collect() };
        let (element, out) = (&mut self.element, &mut self.outputs);
        self.agents.ask(("cfm", &ask), element, self.now, out).unwrap();
        self.left()
    }
}

/// Decodes frames with tshark: one line of fields per frame, without errors.
fn read(name: &str, frames: &[Vec<u8>], fields: &[&str]) -> Vec<String> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 0x4_0000, 1] {
        file.extend(word.to_le_bytes());
    }
    for (place, frame) in frames.iter().enumerate() {
        for word in [place as u32, 0, frame.len() as u32, frame.len() as u32] {
            file.extend(word.to_le_bytes());
        }
        file.extend(frame);
    }
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, file).unwrap();
    let mut command = Command::new("tshark");
    command.arg("-n").arg("-r").arg(&path).args(["-T", "fields", "-E", "separator=|"]);
    command.args(["-o", "ip.check_checksum:TRUE"]);
    for field in ["_ws.malformed", "_ws.expert.message"].iter().chain(fields) {
        command.args(["-e", field]);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<String> = lines.lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), frames.len());
    lines
}

/// Compares with the reviewed output. `UPDATE=1` rewrites it.
fn assert_expected(name: &str, rows: &[String]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tshark").join(name);
    let rows = rows.join("\n") + "\n";
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &rows).unwrap();
    }
    assert_eq!(rows, std::fs::read_to_string(&path).unwrap());
}

fn oam(mep: u16, peer: u16) -> String {
    let text = include_str!("../../../examples/progfe/oam.fe.xml");
    let (before, rest) = text.split_once("<mep ").unwrap();
    let (_, after) = rest.split_once("/>").unwrap();
    let mep = format!(
        r#"<mep id="{mep}" level="5" port="1" md="domain" ma="test" vlan="0" ccm="100ms" peers="{peer}"/>"#
    );
    [before, &mep, after].concat()
}

#[test]
fn tshark_decodes_every_kind_of_oam_frame() {
    if !need::is_there("tshark") {
        return;
    }
    let (mut one, mut two) = (Run::new(&oam(100, 101), 1), Run::new(&oam(101, 100), 2));
    // The target of the linktrace is behind port 2 of the second element.
    two.receive(2, &Builder::new([0xff; 6], [2, 0, 0, 0, 9, 9]).ether_type(0x1234).bytes());
    two.sent.clear();
    let asks: [(&str, &[(&str, &str)]); 4] = [
        ("loopback", &[("to", "02:00:00:00:02:01"), ("bytes", "80")]),
        ("linktrace", &[("to", "02:00:00:00:09:09"), ("ttl", "9")]),
        ("linktrace", &[("to", "02:00:00:00:02:01"), ("ttl", "1")]),
        ("delay", &[("to", "02:00:00:00:02:01")]),
    ];
    let mut frames = one.sent.clone();
    for (what, with) in asks {
        for (_, message) in one.ask(what, with) {
            frames.push(message.clone());
            for (port, answer) in two.receive(1, &message) {
                frames.push(answer.clone());
                if port == 1 {
                    one.receive(1, &answer);
                }
            }
        }
    }
    // The peer's CCMs were not received; the next CCM reports that.
    one.now += Nanos::from_millis(350);
    one.sent.clear();
    one.serve();
    frames.append(&mut one.sent);
    let fields = [
        "cfm.opcode",
        "cfm.md.level",
        "cfm.flags.rdi",
        "cfm.flags.interval",
        "cfm.ccm.seq.num",
        "cfm.ccm.ma.ep.id",
        "cfm.maid.md.name.string",
        "cfm.maid.ma.name.string",
        "cfm.lb.transaction.id",
        "cfm.lt.transaction.id",
        "cfm.lt.ttl",
        "cfm.ltm.targ.addr",
        "cfm.ltr.relay.action",
        "cfm.flags.fwdyes",
        "cfm.tlv.type",
        "cfm.tlv.reply.ingress.mac.address",
        "cfm.tlv.reply.egress.mac.address",
        "cfm.tlv.ltr.egress.next.id.mac",
    ];
    let rows = read("oam.pcap", &frames, &fields);
    assert_expected("oam.expected", &rows);
    let stamps = ["cfm.odm.dmm.dmr.txtimestampf", "cfm.dmm.dmr.txtimestampb"];
    let delays = read("oam.pcap", &frames, &stamps);
    let delays: Vec<&String> = delays.iter().filter(|line| line.contains("6553f101")).collect();
    assert_eq!(delays.len(), 2, "{delays:?}");
}

#[test]
fn tshark_decodes_the_frames_of_a_router() {
    if !need::is_there("tshark") {
        return;
    }
    let program = include_str!("../../../examples/progfe/router-agents.fe.xml");
    let mut router = Run::new(program, 1);
    let (mac, own) = ([2, 0, 0, 0, 9, 1], [2, 0, 0, 0, 1, 1]);
    let question = arp::Header {
        operation: arp::REQUEST,
        sender_mac: mac,
        sender_ip: [10, 1, 0, 9].into(),
        target_mac: [0; 6],
        target_ip: [10, 1, 0, 1].into(),
    };
    let v4 = |to: [u8; 4], ttl: u8| ipv4::Header {
        ttl,
        dont_fragment: true,
        ..ipv4::Header::new([10, 1, 0, 9].into(), to.into())
    };
    let v6 = |to: &str, hop_limit: u8| ipv6::Header {
        hop_limit,
        ..ipv6::Header::new("fd01::9".parse().unwrap(), to.parse().unwrap())
    };
    let to_us = || Builder::new(own, mac);
    let solicit =
        [&[0xfd, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1][..], &[1, 1], &mac].concat();
    for frame in [
        Builder::new([0xff; 6], mac).arp(question),
        Builder::new([0x33, 0x33, 0xff, 0, 0, 1], mac)
            .ipv6(v6("ff02::1:ff00:1", 255))
            .icmpv6(icmpv6::Header::new(icmpv6::NEIGHBOUR_SOLICITATION, 0, 0))
            .payload(&solicit),
        to_us().ipv4(v4([10, 1, 0, 1], 1)).icmp(icmp::Header::echo_request(1, 2)).payload(b"ping"),
        to_us().ipv4(v4([10, 2, 0, 9], 1)).udp(1, 2).payload(b"short of breath"),
        to_us().ipv4(v4([99, 0, 0, 1], 9)).udp(1, 2).payload(b"nowhere"),
        to_us().ipv4(v4([10, 2, 0, 9], 9)).udp(1, 2).payload(&[7; 1450]),
        to_us().ipv4(v4([10, 2, 0, 9], 9)).udp(1, 2).payload(b"who is that"),
        to_us().ipv6(v6("fd02::9", 1)).udp(1, 2).payload(b"short of breath"),
        to_us().ipv6(v6("fd02::9", 9)).udp(1, 2).payload(&[7; 1430]),
        to_us().ipv6(v6("fd02::9", 9)).udp(1, 2).payload(b"who is that"),
    ] {
        router.receive(1, &frame.bytes());
    }
    let fields = [
        "arp.opcode",
        "arp.dst.proto_ipv4",
        "icmp.type",
        "icmp.code",
        "icmp.mtu",
        "icmp.checksum.status",
        "icmpv6.type",
        "icmpv6.code",
        "icmpv6.mtu",
        "icmpv6.checksum.status",
        "icmpv6.nd.ns.target_address",
        "icmpv6.nd.na.target_address",
        "ip.dst",
        "ipv6.dst",
    ];
    let rows = read("router.pcap", &router.sent, &fields);
    assert_expected("router.expected", &rows);
}
