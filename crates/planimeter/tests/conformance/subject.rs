//! Subject of a case: a switch with four ports, in simulation or on a real kernel.
//!
//! A subject forwards frames and opens control channels; it is independent of OpenFlow. The same
//! case runs on our switch in virtual time, on our switch as a process over veth, and on Open
//! vSwitch over veth as a second implementation.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use channel::{Channel, Connecting, Url};
use elements::config::{Config, Kind, OpenFlowConfig, PortConfig};
use elements::hardware_model::model::known;
use elements::node::Node;
use netio::afpacket::{AfPacketPort, Options};
use netio::memory::{MemoryPort, pair_stamped};
use netio::port::Port;
use os::clock;
use packet::frame::Batch;
use packet::time::{Clock, Nanos};
use testbed::peer::openvswitch::OpenVswitch;
use testbed::peer::planimeter::{Mode, Planimeter};
use testbed::peer::{ControlInterface, Peer};
use testbed::topology::{Lab, Site, Wiring};

/// Name of our switch with the fast path in the kernel.
pub const FAST_PATH: &str = "fast-path";

/// Ports of every subject, numbered from 1.
pub const PORTS: u32 = 4;

/// Silence after which a real switch counts as finished.
const QUIET: Nanos = Nanos::from_millis(8);
/// Time limit for an expected result of a real switch.
const PATIENCE: Nanos = Nanos::from_millis(1500);
/// Time limit to read requests, which is long for descriptions of all tables.
const READING: Nanos = Nanos::from_secs(20);

/// An Ethernet address from its number.
pub fn port_mac(bits: u64) -> [u8; 6] {
    std::array::from_fn(|at| (bits >> (40 - 8 * at)) as u8)
}

/// A switch under test.
pub trait Subject {
    /// Its name in tables.
    fn name(&self) -> &'static str;
    /// Opens a new control channel.
    fn connect(&mut self) -> Result<Box<dyn Channel>, String>;
    /// Sends a frame into one of its ports.
    fn arrive(&mut self, port: u32, bytes: &[u8]);
    /// Runs it for one turn; frames that left its ports since are added to `out`.
    fn turn(&mut self, out: &mut Vec<(u32, Vec<u8>)>);
    /// Advances the time.
    fn pass(&mut self, span: Nanos);
    /// Returns its time.
    fn now(&self) -> Nanos;
    /// Returns whether `since` is long enough ago that nothing more will arrive; longer if a result
    /// was expected.
    fn is_quiet(&self, since: Nanos, awaited: bool) -> bool;
    /// Returns whether a required message, such as a barrier reply, is overdue.
    fn is_late(&self, since: Nanos) -> bool;
    /// Returns whether the next case needs a new subject.
    fn is_spent(&self) -> bool {
        false
    }
}

/// Our switch in virtual time.
pub struct Simulated {
    node: Node,
    wires: Vec<MemoryPort>,
    now: Nanos,
    channels: usize,
}

/// Settings of our switch that cases rely on.
pub fn settings() -> OpenFlowConfig {
    OpenFlowConfig::from_toml(SETTINGS).expect("the settings are valid")
}

/// The same settings as a configuration file.
pub const SETTINGS: &str = "\
datapath_id = \"00000000c0ffee01\"
exact_flows_max = 1000
wildcard_flows_max = 2000
classifier = \"tuple\"
flows_max = 2000
[[table]]
number = 5
flows_max = 3
[[port_rate]]
port = 4
rate_bps = 100000000
[[queue]]
port = 4
queue = 7
rate_bps_min = 20000000
rate_bps_max = 50000000
";

impl Simulated {
    pub fn new() -> Simulated {
        Simulated::like(None)
    }

    /// Creates a switch that emulates a model of hardware.
    pub fn like(model: Option<&str>) -> Simulated {
        let mut config = Config::new(Kind::OpenFlow(settings()));
        config.model = model.map(|name| known::find(name).expect("the model is known"));
        let (mut ports, mut wires) = (Vec::new(), Vec::new());
        for number in 1..=PORTS {
            config.ports.push(PortConfig { number, spec: format!("memory:{number}") });
            let (ours, theirs) = pair_stamped(1024, &format!("p{number}"), Clock::Virtual);
            ports.push((number, Box::new(ours) as Box<dyn Port>));
            wires.push(theirs);
        }
        let now = Nanos::from_secs(1);
        let mut node = Node::open(&config, ports, 7, now).expect("a valid configuration");
        node.set_wall_clock(Nanos::from_secs(1_700_000_000), now);
        Simulated { node, wires, now, channels: 0 }
    }
}

impl Subject for Simulated {
    fn name(&self) -> &'static str {
        "sim"
    }

    fn connect(&mut self) -> Result<Box<dyn Channel>, String> {
        self.channels += 1;
        let label = format!("c{}", self.channels);
        let (ours, theirs) = channel::memory::pair(1 << 20, &label);
        self.node.adopt(Box::new(ours), self.now);
        Ok(Box::new(theirs))
    }

    fn arrive(&mut self, port: u32, bytes: &[u8]) {
        put(&mut self.wires[port as usize - 1], bytes, self.now);
    }

    fn turn(&mut self, out: &mut Vec<(u32, Vec<u8>)>) {
        self.node.turn(self.now);
        self.node.serve(self.now);
        self.node.events.clear();
        for (number, wire) in (1..).zip(&mut self.wires) {
            take(wire, number, self.now, out);
        }
    }

    fn pass(&mut self, span: Nanos) {
        let until = self.now + span;
        while self.now < until {
            self.now = until.min(self.now + Nanos::from_millis(50));
            self.node.turn(self.now);
            self.node.serve(self.now);
        }
    }

    fn now(&self) -> Nanos {
        self.now
    }

    /// Nothing takes time here: enough turns have already run.
    fn is_quiet(&self, _since: Nanos, _awaited: bool) -> bool {
        true
    }

    fn is_late(&self, _since: Nanos) -> bool {
        true
    }

    fn is_spent(&self) -> bool {
        true
    }
}

/// A switch on veth.
pub struct Live {
    name: &'static str,
    peer: Box<dyn Peer>,
    channel: Url,
    wires: Vec<AfPacketPort>,
    // Last, so that the switch stops before its network is removed.
    _site: Site,
}

impl Live {
    /// Our program at this path. With the fast path, the kernel forwards the frames that it can.
    pub fn ours(lab: &Lab, program: &Path, fast_path: bool) -> Result<Live, String> {
        let file = lab.folder.folder("settings").map_err(|error| error.to_string())?;
        let file: PathBuf = file.join("switch.toml");
        std::fs::write(&file, SETTINGS).map_err(|error| error.to_string())?;
        let mut extra: Vec<OsString> = vec!["--config".into(), file.into()];
        if fast_path {
            extra.extend(["--fast-path".into(), "xdp".into()]);
        }
        let peer = Planimeter::new(program, Mode::Switch, extra);
        let name = if fast_path { FAST_PATH } else { "switch" };
        Live::start(name, lab, Box::new(peer), fast_path)
    }

    /// Open vSwitch with its userspace datapath.
    pub fn open_vswitch(lab: &Lab) -> Result<Live, String> {
        Live::start("ovs", lab, Box::new(OpenVswitch::default()), false)
    }

    fn start(
        name: &'static str,
        lab: &Lab,
        mut peer: Box<dyn Peer>,
        fast_path: bool,
    ) -> Result<Live, String> {
        let failed = |error: testbed::LabError| error.to_string();
        let wiring = Wiring { ports: PORTS, fast_path, ..Wiring::of_machine().map_err(failed)? };
        // A veth takes frames from the kernel's fast path only if its other end polls.
        let instrument_threaded = wiring.instrument_threaded || fast_path;
        let wiring = Wiring { instrument_threaded, ..wiring };
        let site = lab.site(name, &wiring).map_err(failed)?;
        peer.start(&site).map_err(failed)?;
        let ControlInterface::OpenFlow { channel } =
            peer.ready(Duration::from_secs(10)).map_err(failed)?
        else {
            return Err(format!("{name} speaks no OpenFlow"));
        };
        let names: Vec<_> = site.instrument.iter().map(|port| port.name.clone()).collect();
        let open = || -> Result<Vec<AfPacketPort>, String> {
            let open = |name: &String| AfPacketPort::open(name, &Options::forwarder());
            names.iter().map(|name| open(name).map_err(|error| error.to_string())).collect()
        };
        let wires = lab.instrument.run(open).map_err(failed)??;
        let channel: Url = channel.parse().map_err(|error| format!("{error}"))?;
        Ok(Live { name, peer, channel, wires, _site: site })
    }
}

impl Subject for Live {
    fn name(&self) -> &'static str {
        self.name
    }

    fn connect(&mut self) -> Result<Box<dyn Channel>, String> {
        let made = Connecting::wait(&self.channel, Nanos::from_secs(5));
        made.map_err(|error| error.to_string())
    }

    fn arrive(&mut self, port: u32, bytes: &[u8]) {
        put(&mut self.wires[port as usize - 1], bytes, clock::now());
    }

    fn turn(&mut self, out: &mut Vec<(u32, Vec<u8>)>) {
        clock::sleep_until(clock::now() + Nanos::from_micros(300));
        for (number, wire) in (1..).zip(&mut self.wires) {
            take(wire, number, clock::now(), out);
        }
    }

    fn pass(&mut self, span: Nanos) {
        clock::sleep_until(clock::now() + span);
    }

    fn now(&self) -> Nanos {
        clock::now()
    }

    fn is_quiet(&self, since: Nanos, awaited: bool) -> bool {
        clock::now().since(since) > if awaited { PATIENCE } else { QUIET }
    }

    fn is_late(&self, since: Nanos) -> bool {
        clock::now().since(since) > READING
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if let Err(error) = self.peer.stop() {
            eprintln!("{} did not stop: {error}", self.name);
        }
    }
}

fn put(wire: &mut dyn Port, bytes: &[u8], now: Nanos) {
    let mut batch = Batch::new(1);
    batch.push_bytes(bytes);
    assert_eq!(wire.transmit(&mut batch, now).expect("the wire is there"), 1);
}

fn take(wire: &mut dyn Port, number: u32, now: Nanos, out: &mut Vec<(u32, Vec<u8>)>) {
    let mut batch = Batch::new(64);
    while wire.receive(&mut batch, now).expect("the wire is there") > 0 {
        out.extend(batch.frames().iter().map(|frame| (number, frame.bytes().to_vec())));
        batch.clear();
    }
}
