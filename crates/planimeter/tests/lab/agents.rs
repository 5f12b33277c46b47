//! Tests of agents of a ProGFE element with real peers: hosts of the kernel, Open vSwitch, a Python
//! program, and an HTTP client that loads programs.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use testbed::peer::Peer;
use testbed::peer::openvswitch::OpenVswitch;
use testbed::requirement::{self, Requirement};
use testbed::veth::{Cable, EndSettings};
use testbed::{Lab, Namespace, Wiring};

use super::{Element, Place, in_time, lab_needs, ovs_needs};

/// Time limit of any wait; only a failure takes this long.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) fn example(name: &str) -> String {
    format!("{}/../../examples/progfe/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Verifies Python and `ip`, in addition to the lab's requirements.
pub fn host_needs() -> Result<(), Requirement> {
    lab_needs()?;
    requirement::tool("ip", "iproute2")?;
    python().map(drop)
}

pub fn cfm_needs() -> Result<(), Requirement> {
    super::tap_needs()?;
    ovs_needs()
}

fn python() -> Result<PathBuf, Requirement> {
    // A program outside the usual folders works as well.
    let asked = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output();
    match asked {
        Ok(output) if output.status.success() => {
            Ok(PathBuf::from(String::from_utf8(output.stdout).unwrap().trim()))
        }
        _ => requirement::tool("python3", "python3"),
    }
}

/// A control socket for requests or for events.
struct Control(BufReader<UnixStream>);

impl Control {
    fn open(place: &Place) -> Control {
        let stream = UnixStream::connect(place.path().join("control")).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Control(BufReader::new(stream))
    }

    fn line(&mut self) -> Value {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    fn ask(&mut self, request: &Value) -> Value {
        writeln!(self.0.get_mut(), "{request}").unwrap();
        let line = self.line();
        assert!(line.get("ok").is_some(), "{request}: {line}");
        line["ok"].clone()
    }

    /// Reads events until an agent sends this one.
    fn event(&mut self, wanted: &str) -> Value {
        loop {
            let line = self.line();
            if line["event"]["event"] == wanted {
                return line["event"].clone();
            }
        }
    }

    /// Returns the state that an agent reports.
    fn state(&mut self, agent: &str) -> Value {
        self.ask(&json!({"get": "agents"}))["agents"][agent]["state"].clone()
    }
}

/// An element with cables to separate namespaces.
pub(super) struct Net {
    pub(super) place: Place,
    element: Namespace,
    pub(super) hosts: Vec<Namespace>,
    _cables: Vec<Cable>,
}

impl Net {
    /// Creates an element whose ports e1 and e2 are cabled to h1 and h2.
    pub(super) fn new() -> Net {
        let (place, element) = (Place::new(), Namespace::create().unwrap());
        let hosts: Vec<Namespace> = (0..2).map(|_| Namespace::create().unwrap()).collect();
        let end = |namespace: &Namespace, name: String, mac| EndSettings {
            namespace: namespace.clone(),
            name,
            mac,
            threaded: None,
        };
        let cable = |(number, host): (u8, &Namespace)| {
            let near = end(&element, format!("e{number}"), [2, 0, 0, 0, 1, number]);
            let far = end(host, format!("h{number}"), [2, 0, 0, 0, 9, number]);
            Cable::lay(&near, &far, 1500).unwrap()
        };
        let cables: Vec<Cable> = (1..).zip(&hosts).map(cable).collect();
        cables.iter().for_each(|cable| cable.wait_carrying().unwrap());
        Net { place, element, hosts, _cables: cables }
    }

    pub(super) fn start(&self, program: &str, words: &[&str]) -> Element {
        let mut arguments = vec!["progfe", "--program", program, "--control-socket", "control"];
        arguments.extend(["--port", "1=afpacket:e1", "--port", "2=afpacket:e2"]);
        arguments.extend(words);
        Element::start(&self.place, &self.element, &arguments)
    }

    /// Runs a program at a host; returns its output.
    fn at_host(&self, host: usize, program: &str, words: &[&str]) -> String {
        run_in(&self.hosts[host], program, words)
    }
}

fn run_in(namespace: &Namespace, program: &str, words: &[&str]) -> String {
    let output = namespace.run(|| Command::new(program).args(words).output()).unwrap().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {words:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// Sends an echo request with a hop limit, a size, and a don't-fragment flag; prints the reply, and
/// its sender.
const PING: &str = r"
import socket, struct, sys
to, hops, size, whole = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == 'whole'
six = ':' in to
family, kind = (socket.AF_INET6, 58) if six else (socket.AF_INET, 1)
s = socket.socket(family, socket.SOCK_RAW, kind)
s.settimeout(20)
if six:
    s.setsockopt(41, 16, hops)
else:
    s.setsockopt(0, 2, hops)
    s.setsockopt(0, 10, 3 if whole else 0)
message = struct.pack('>BBHHH', 128 if six else 8, 0, 0, 77, 1) + b'p' * size
if not six:
    words = sum(struct.unpack('>%dH' % (len(message) // 2), message))
    while words >> 16:
        words = (words & 0xffff) + (words >> 16)
    message = message[:2] + struct.pack('>H', words ^ 0xffff) + message[4:]
s.sendto(message, (to, 0))
while True:
    said, who = s.recvfrom(65536)
    if not six:
        said = said[(said[0] & 15) * 4:]
    if said[0] not in (8, 128, 133, 134, 135, 136, 143):
        print(said[0], said[1], who[0], struct.unpack('>I', said[4:8])[0] & 0xffff if said[0] in (2, 3) else '')
        break
";

fn ping(net: &Net, to: &str, hops: u8, bytes: usize, whole: bool) -> String {
    let python = python().unwrap();
    let (hops, bytes) = (hops.to_string(), bytes.to_string());
    let words = ["-c", PING, to, &hops, &bytes, if whole { "whole" } else { "cut" }];
    net.at_host(0, python.to_str().unwrap(), &words).trim().to_owned()
}

/// Tests that the element resolves neighbors without configuration, replies to ARP, and reports
/// frames that it cannot forward.
pub fn a_router_with_agents_forwards() {
    let net = Net::new();
    let _router = net.start(&example("router-agents.fe.xml"), &[]);
    let has_v6 = Path::new("/proc/net/if_inet6").exists();
    for (host, number) in [(0, 1), (1, 2)] {
        let device = format!("h{number}");
        let (own, router) = (format!("10.{number}.0.9/24"), format!("10.{number}.0.1"));
        net.at_host(host, "ip", &["address", "add", &own, "dev", &device]);
        net.at_host(host, "ip", &["route", "add", "default", "via", &router]);
        if has_v6 {
            // Cables are created without IPv6.
            let setting = format!("net/ipv6/conf/{device}/disable_ipv6");
            net.hosts[host].set(&setting, "0").unwrap();
            let (own, router) = (format!("fd0{number}::9/64"), format!("fd0{number}::1"));
            net.at_host(host, "ip", &["address", "add", &own, "dev", &device, "nodad"]);
            net.at_host(host, "ip", &["route", "add", "default", "via", &router, "dev", &device]);
        }
    }
    let mut expected = vec![
        (("10.1.0.1", 1, 56, true), "0 0 10.1.0.1"),
        (("10.2.0.9", 64, 56, true), "0 0 10.2.0.9"),
        (("10.2.0.9", 1, 56, true), "11 0 10.1.0.1"),
        (("99.0.0.1", 64, 56, true), "3 0 10.1.0.1 0"),
        (("10.2.0.77", 64, 56, true), "3 1 10.1.0.1 0"),
        (("10.2.0.9", 64, 1450, true), "3 4 10.1.0.1 1400"),
        (("10.2.0.9", 64, 1450, false), "0 0 10.2.0.9"),
    ];
    if has_v6 {
        expected.extend([
            (("fd01::1", 64, 56, true), "129 0 fd01::1"),
            (("fd02::9", 64, 56, true), "129 0 fd02::9"),
            (("fd02::9", 1, 56, true), "3 0 fd01::1 0"),
            (("fd09::9", 64, 56, true), "1 0 fd01::1"),
            (("fd02::9", 64, 1430, true), "2 0 fd01::1 1400"),
        ]);
    }
    for ((to, hops, bytes, whole), says) in expected {
        assert_eq!(ping(&net, to, hops, bytes, whole), says, "{to}, {hops} hops, {bytes} bytes");
    }
    // A megabyte over TCP, which has to discover the second link's MTU.
    let listener = net.hosts[1].run(|| TcpListener::bind("10.2.0.9:7000")).unwrap().unwrap();
    let received = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        listener.accept().unwrap().0.read_to_end(&mut bytes).unwrap();
        bytes
    });
    let sent: Vec<u8> = (0..1u32 << 18).flat_map(u32::to_be_bytes).collect();
    let stream = net.hosts[0].run(|| TcpStream::connect("10.2.0.9:7000")).unwrap();
    stream.unwrap().write_all(&sent).unwrap();
    assert!(received.join().unwrap() == sent, "the received bytes differ from the sent ones");
    let mut control = Control::open(&net.place);
    let known = control.state("arp")["neighbours"].as_array().unwrap().len();
    assert_eq!(known, if has_v6 { 4 } else { 2 });
    let row =
        json!({"get_component": {"instance": "enc", "path": "EncapTable[2147483648].DstMac"}});
    assert_eq!(control.ask(&row)["value"], "02:00:00:00:09:01");
}

const CFM: &str = r#"<fe xmlns="urn:progfe:fe:1" name="cfm"><use library="BaseLFBLibrary"/><use library="ProGFE"/>
  <frames file="ethernet.frames.xml"/><ports><port id="1"/></ports>
  <instances><lfb id="phy" class="EtherPHYCop"><set name="AdminStatus">Up</set></lfb>
    <lfb id="is" class="Match"><row table="Rules" prio="1"><when>CFM</when><c n="OutputIndex">0</c></row></lfb>
    <lfb id="to" class="Divert"><set name="Agent">cfm</set><set name="RatePps">1000</set></lfb>
    <lfb id="from" class="Inject"><set name="Agent">cfm</set></lfb></instances>
  <links><link from="phy.EtherPHYOut" to="is.PktsIn"/><link from="is.HitOut[0]" to="to.PktsIn"/>
    <link from="from.PktsOut[0]" to="phy.EtherPHYIn"/></links>
  <agents><agent name="cfm" type="y1731">
    <mep id="1" level="0" port="1" md="ovs" ma="ovs" ccm="100ms" peers="2"/></agent></agents>
  <watch agent="cfm" event="PeerFound"/><watch agent="cfm" event="PeerLost"/>
  <watch agent="cfm" event="RdiSeen"/><watch agent="cfm" event="RdiGone"/></fe>"#;

/// Tests that both sides detect each other, and that each detects the other's loss.
pub fn continuity_is_checked_with_open_vswitch() {
    let place = Place::new();
    let lab = Lab::open(&place.path().join("rack")).unwrap();
    let wiring = Wiring { ports: 2, ..Wiring::of_machine().unwrap() };
    let site = lab.site("cfm", &wiring).unwrap();
    let mut switch = OpenVswitch::default();
    switch.start(&site).unwrap();
    switch.ready(PATIENCE).unwrap();
    let port = site.target[0].name.clone();
    let database = format!("--db=unix:{}", site.path.join("db.sock").display());
    let ovs = |words: &[&str]| {
        let words = [&["--timeout=10", database.as_str()], words].concat();
        run_in(&site.namespace, "ovs-vsctl", &words).trim().to_owned()
    };
    ovs(&["set", "interface", &port, "cfm_mpid=2", "other_config:cfm_interval=100"]);
    std::fs::write(place.path().join("cfm.fe.xml"), CFM).unwrap();
    let mut arguments = vec!["progfe", "--program", "cfm.fe.xml", "--control-socket", "control"];
    let near = format!("1=afpacket:{}", site.instrument[0].name);
    arguments.extend(["--port", &near]);
    let _element = Element::start(&place, &lab.instrument, &arguments);
    let (mut control, mut events) = (Control::open(&place), Control::open(&place));
    events.ask(&json!({"watch": {}}));
    let sees = |fault: &str, remote: &str| {
        let fault_state = || ovs(&["get", "interface", &port, "cfm_fault", "cfm_remote_mpids"]);
        assert!(in_time(|| fault_state() == format!("{fault}\n{remote}")), "{}", fault_state());
    };
    let found = in_time(|| control.state("cfm")["meps"][0]["peers"][0]["lost"] == false);
    assert!(found, "{}", control.state("cfm"));
    sees("false", "[1]");
    let send =
        |how: &str| json!({"ask_agent": {"agent": "cfm", "what": "ccm", "with": {"send": how}}});
    control.ask(&send("off"));
    assert_eq!(events.event("RdiSeen")["facts"]["peer"], 2);
    sees("true", "[]");
    control.ask(&send("on"));
    events.event("RdiGone");
    sees("false", "[1]");
    ovs(&["clear", "interface", &port, "cfm_mpid"]);
    assert_eq!(events.event("PeerLost")["facts"], json!({"mep": 1, "peer": 2}));
    let state = control.state("cfm")["meps"][0].clone();
    assert_eq!((&state["sends_rdi"], &state["defects"]), (&true.into(), &json!([])), "{state}");
    ovs(&["set", "interface", &port, "cfm_mpid=2"]);
    events.event("PeerFound");
    switch.stop().unwrap();
}

/// Tests that two elements detect each other and measure the delay between them, with kernel
/// timestamps at one end.
pub fn elements_measure_the_delay_between_them() {
    let net = Net::new();
    let other = Place::new();
    let program = |own: &str, peer: &str| {
        let replies =
            "<reply op=\"LBM\"/><reply op=\"LTM\"/><reply op=\"DMM\" stamp=\"kernel\"/></agent>";
        let mep = format!("id=\"{own}\" level=\"0\"");
        let text = CFM.replace("id=\"1\" level=\"0\"", &mep).replace("</agent>", replies);
        text.replace("peers=\"2\"", &format!("peers=\"{peer}\""))
    };
    std::fs::write(net.place.path().join("cfm.fe.xml"), program("1", "2")).unwrap();
    std::fs::write(other.path().join("cfm.fe.xml"), program("2", "1")).unwrap();
    let start = |place: &Place, namespace: &Namespace, port: &str| {
        let words =
            ["progfe", "--program", "cfm.fe.xml", "--control-socket", "control", "--port", port];
        Element::start(place, namespace, &words)
    };
    let _one = start(&net.place, &net.element, "1=afpacket:e1");
    let _two = start(&other, &net.hosts[0], "1=afpacket:h1");
    let mut control = Control::open(&net.place);
    let found = in_time(|| control.state("cfm")["meps"][0]["peers"][0]["lost"] == false);
    assert!(found, "{}", control.state("cfm"));
    let ask = |words: &[&str]| {
        let words = [&["progfe", "ask", "control", "cfm"], words].concat();
        let result = net.place.planimeter(&words);
        assert_eq!(result.code, Some(0), "{}", result.errors);
        serde_json::from_str::<Value>(&result.output).unwrap()
    };
    let to = "to=02:00:00:00:09:01";
    let echo = ask(&["loopback", to, "count=5", "interval_ms=10", "bytes=1000"]);
    assert_eq!((&echo["sent"], &echo["answered"]), (&5.into(), &5.into()), "{echo}");
    let delay = ask(&["delay", to, "count=5", "interval_ms=10"]);
    assert_eq!(delay["answered"], 5, "{delay}");
    for reply in delay["answers"].as_array().unwrap() {
        // The kernel received it before the element replied, and both were in flight.
        let (way, theirs) = (reply["delay_ns"].as_i64(), reply["theirs_ns"].as_i64());
        assert!(way > Some(0) && theirs > Some(0), "{reply}");
    }
    let trace = ask(&["linktrace", to]);
    assert_eq!(trace["answers"][0]["relay"], "hit", "{trace}");
    let wrong = net.place.planimeter(&["progfe", "ask", "control", "cfm", "loopback", "to=x"]);
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.errors.contains("invalid to \"x\""), "{}", wrong.errors);
}

/// A process that ends with the test.
struct Ended(Child);

impl Ended {
    fn signal(&self, name: &str) {
        let signal = format!("kill -{name} {}", self.0.id());
        assert!(Command::new("sh").args(["-c", &signal]).status().unwrap().success());
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Tests that frames pass through a Python program. While it stalls other frames pass, and frames
/// that it does not accept are counted.
pub fn an_external_program_is_an_agent() {
    let net = Net::new();
    let folder = net.place.path().join("agents");
    std::fs::create_dir(&folder).unwrap();
    let _element = net.start(&example("own-agent.fe.xml"), &["--agent-socket-dir", "agents"]);
    let script = [example("echo_agent.py"), folder.join("mine.sock").display().to_string()];
    let mut process = Command::new(python().unwrap());
    process.args(&script).stdout(Stdio::piped());
    let socket = folder.join("mine.sock");
    assert!(in_time(|| socket.exists()));
    let mut process = Ended(process.spawn().unwrap());
    let mut line = String::new();
    BufReader::new(process.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "connected: version 1, ports [1, 2]\n");
    let open = |host: usize, name: &str| {
        let options = netio::afpacket::Options::monitor();
        let spec = format!("afpacket:{name}");
        net.hosts[host].run(|| netio::open::open(&spec, &options)).unwrap().unwrap()
    };
    let (mut one, mut two) = (open(0, "h1"), open(1, "h2"));
    let frame = |last: u8, kind: [u8; 2]| {
        let head = [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1], &kind[..]].concat();
        [head, vec![last; 46]].concat()
    };
    fn send(port: &mut dyn netio::port::Port, bytes: &[u8]) {
        let mut batch = packet::frame::Batch::new(1);
        batch.push_bytes(bytes);
        assert_eq!(port.transmit(&mut batch, os::clock::now()).unwrap(), 1);
    }
    fn receives(port: &mut dyn netio::port::Port, wanted: &[u8]) -> bool {
        let mut batch = packet::frame::Batch::new(64);
        in_time(|| {
            batch.clear();
            port.receive(&mut batch, os::clock::now()).unwrap();
            batch.frames().iter().any(|frame| frame.bytes() == wanted)
        })
    }
    let mine = frame(1, [0x88, 0xb5]);
    let back = [&mine[6..12], &mine[..6], &mine[12..]].concat();
    send(one.as_mut(), &mine);
    assert!(receives(one.as_mut(), &back), "the frame did not return");
    send(two.as_mut(), &mine);
    assert!(receives(two.as_mut(), &back), "the frame did not return through the other port");
    process.signal("STOP");
    let mut control = Control::open(&net.place);
    let full = in_time(|| {
        (0..64).for_each(|_| send(one.as_mut(), &mine));
        control.state("mine")["queue_full"].as_u64() > Some(0)
    });
    assert!(full, "{}", control.state("mine"));
    let other = frame(2, [0x12, 0x34]);
    send(one.as_mut(), &other);
    assert!(receives(two.as_mut(), &other), "another frame did not pass");
    process.signal("KILL");
    assert!(in_time(|| control.state("mine")["connected"] == false));
    let before = control.state("mine")["not_connected"].as_u64();
    send(one.as_mut(), &mine);
    assert!(in_time(|| control.state("mine")["not_connected"].as_u64() > before));
}

/// Tests programs over HTTP: rejected with all errors, or loaded in place of the running one.
pub fn programs_are_loaded_over_http() {
    let net = Net::new();
    run_in(&net.element, "ip", &["link", "set", "lo", "up"]);
    let _element = net.start(&example("own-agent.fe.xml"), &["--http", "127.0.0.1:8080"]);
    let ask = |method: &str, path: &str, body: &str| {
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {length}"
        );
        let stream = net.element.run(|| TcpStream::connect("127.0.0.1:8080")).unwrap();
        let mut stream = stream.unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(stream, "{head}\r\n\r\n{body}").unwrap();
        let mut result = String::new();
        stream.read_to_string(&mut result).unwrap();
        let (head, body) = result.split_once("\r\n\r\n").unwrap();
        (head.lines().next().unwrap()[9..12].to_owned(), body.to_owned())
    };
    let router = std::fs::read_to_string(example("router-agents.fe.xml")).unwrap();
    let wrong =
        router.replace("class=\"EtherEncap\"", "class=\"EtherDecap\"").replace("fd01::,", "");
    std::fs::write(net.place.path().join("wrong.fe.xml"), &wrong).unwrap();
    let result = net.place.planimeter(&["progfe", "check", "wrong.fe.xml"]);
    let refused = ask("POST", "/program?name=wrong.fe.xml", &wrong);
    assert_eq!(refused, ("422".to_owned(), result.output));
    assert!(refused.1.contains("error[unknown-class] enc:"), "{}", refused.1);
    let (status, program) = ask("GET", "/program", "");
    assert!(status == "200" && program.contains("name=\"own-agent\""), "{program}");
    let (status, done) = ask("POST", "/program", &router);
    let done: Value = serde_json::from_str(&done).unwrap();
    assert_eq!((status.as_str(), &done["program"]), ("200", &"router-agents".into()));
    // Generations rise; the rejected program had one as well.
    assert!(done["generation"].as_u64() > Some(1), "{done}");
    assert_eq!(
        ask("GET", "/components/nh/IPv4NextHopTable[2]/MTU", "").1,
        "{\"value\":\"1400\"}\n"
    );
    let agents: Value = serde_json::from_str(&ask("GET", "/agents", "").1).unwrap();
    assert_eq!(agents["agents"]["icmp"]["type"], "icmp");
    assert_eq!(ask("POST", "/roll-back", "").0, "200");
    assert!(ask("GET", "/program", "").1.contains("name=\"own-agent\""));
    let counters: Value = serde_json::from_str(&ask("GET", "/counters", "").1).unwrap();
    assert_eq!(counters["progfe"]["program"], "own-agent");
    let open = net.place.planimeter(&[
        "progfe",
        "--program",
        "wrong.fe.xml",
        "--port",
        "1=tap:x",
        "--http",
        "0.0.0.0:80",
    ]);
    assert_eq!(open.code, Some(2));
}

/// Tests that a host loads a program over Ethernet, at the port that the element is configured for.
pub fn programs_are_loaded_over_ethernet() {
    let net = Net::new();
    let _element = net.start(&example("own-agent.fe.xml"), &["--ethernet", "1"]);
    let send = |host: usize, file: &str| {
        let port = format!("afpacket:h{}", host + 1);
        let mut command = net.place.command(&["progfe", "send", file, "--port", &port]);
        let result = net.hosts[host].run(|| command.output()).unwrap().unwrap();
        (result.status.code(), String::from_utf8(result.stdout).unwrap())
    };
    let (code, result) = send(0, &example("router-agents.fe.xml"));
    let result: Value = serde_json::from_str(&result).unwrap();
    assert_eq!((code, &result["program"]), (Some(0), &"router-agents".into()));
    let mut control = Control::open(&net.place);
    assert_eq!(control.ask(&json!({"get": "counters"}))["progfe"]["program"], "router-agents");
    // Enough errors to fill several frames.
    let rows = "<row table=\"Rules\"><when>Nothing</when></row>".repeat(60);
    let wrong = format!(
        "<fe xmlns=\"urn:progfe:fe:1\" name=\"w\"><use library=\"ProGFE\"/><instances>\
         <lfb id=\"m\" class=\"Match\">{rows}</lfb></instances></fe>"
    );
    std::fs::write(net.place.path().join("program.fe.xml"), wrong).unwrap();
    let problems = net.place.planimeter(&["progfe", "check", "program.fe.xml"]).output;
    assert!(problems.len() > 3000, "{problems}");
    assert_eq!(send(0, "program.fe.xml"), (Some(2), problems));
    assert_eq!(control.ask(&json!({"get": "counters"}))["progfe"]["program"], "router-agents");
    // The other port accepts no programs.
    assert_eq!(send(1, &example("bridge.fe.xml")), (Some(2), String::new()));
    let counted = control.ask(&json!({"get": "agents"}))["ethernet"].clone();
    assert_eq!((&counted["accepted"], &counted["refused"]), (&1.into(), &1.into()), "{counted}");
}
