//! A switch in a thread, controlled by ovs-ofctl.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use elements::config::{Config, Kind, OpenFlowConfig, PortConfig, QueueConfig};
use elements::node::Node;
use elements::process::{drive, open_apart};
use netio::memory::{MemoryPort, pair};
use netio::port::Port;
use os::clock;
use packet::frame::{Batch, PortNo};
use packet::time::Nanos;

/// Maximum wait for an expected frame.
pub const PATIENCE: Nanos = Nanos::from_secs(10);

/// A running switch with three ports.
pub struct Rig {
    /// Temporary folder with its socket.
    pub folder: PathBuf,
    /// The version option of ovs-ofctl; none if this is empty.
    pub version: &'static str,
    tcp: String,
    /// The peers of its ports.
    pub wires: Vec<MemoryPort>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Whether ovs-ofctl is installed. CI as root requires it.
pub fn has_ofctl() -> bool {
    let found = Command::new("ovs-ofctl").arg("--version").output().is_ok();
    if !found {
        let root = std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
        let must = root && std::env::var_os("CI").is_some();
        assert!(!must, "need: ovs-ofctl (apt-get install openvswitch-switch)");
        println!("skipped; need: ovs-ofctl (apt-get install openvswitch-switch)");
    }
    found
}

impl Rig {
    /// Starts a switch with these settings, or returns `None` without ovs-ofctl.
    pub fn start(name: &str, settings: OpenFlowConfig) -> Option<Rig> {
        Rig::start_as(name, settings, false)
    }

    /// Starts a switch with or without a forwarding thread.
    pub fn start_as(name: &str, settings: OpenFlowConfig, apart: bool) -> Option<Rig> {
        if !has_ofctl() {
            return None;
        }
        let folder = std::env::temp_dir().join(format!("ofctl-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let socket = format!("punix:{}", folder.join("s").display());
        let listen = vec![socket, "ptcp:0:127.0.0.1".to_string()];
        let mut config = Config::new(Kind::OpenFlow(OpenFlowConfig {
            listen,
            datapath_id: Some(0x00ab_cdef_0123_4567),
            ..settings
        }));
        let (mut ports, mut wires) = (Vec::new(), Vec::new());
        for number in 1..=3 {
            config.ports.push(PortConfig { number, spec: format!("memory:{number}") });
            let (ours, theirs) = pair(1024, &format!("eth{number}"));
            ports.push((number, Box::new(ours) as Box<dyn Port>));
            wires.push(theirs);
        }
        let node = match apart {
            true => open_apart(&config, ports, &[None, None], 1),
            false => Node::open(&config, ports, 1, clock::now()),
        };
        let mut node = node.expect("it starts");
        let tcp = node.addresses().nth(1).expect("the second address").to_string();
        let stop = Arc::new(AtomicBool::new(false));
        let stopping = stop.clone();
        let spin = config.spin;
        let thread = std::thread::spawn(move || drive(&mut node, spin, &stopping, &mut |_| {}));
        // Converts ptcp:PORT:IP for clients.
        let port = tcp.split(':').nth(1).expect("a port").to_string();
        Some(Rig {
            tcp: format!("tcp:127.0.0.1:{port}"),
            folder,
            version: "OpenFlow10",
            wires,
            stop,
            thread: Some(thread),
        })
    }

    /// Runs a command and returns its output.
    pub fn output(&self, arguments: &[&str]) -> Output {
        self.command(arguments).args(["-t", "20"]).output().expect("ovs-ofctl starts")
    }

    /// Returns a command that is ready to run.
    fn command(&self, arguments: &[&str]) -> Command {
        let (command, rest) = arguments.split_first().expect("a command");
        let unix = format!("unix:{}", self.folder.join("s").display());
        let url = if *command == "probe" { &self.tcp } else { &unix };
        let mut ofctl = Command::new("ovs-ofctl");
        if !self.version.is_empty() {
            ofctl.args(["-O", self.version]);
        }
        ofctl.arg(command).arg(url).args(rest).env("OVS_RUNDIR", &self.folder);
        ofctl
    }

    /// Starts a command that runs until it is dropped, and collects its output.
    pub fn watch(&self, arguments: &[&str]) -> Watch {
        let mut command = self.command(arguments);
        let mut child = command.stderr(Stdio::piped()).spawn().expect("ovs-ofctl runs");
        let lines = BufReader::new(child.stderr.take().expect("a pipe"));
        let (sender, told) = channel();
        std::thread::spawn(move || {
            lines.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        Watch { child, told }
    }

    /// Runs a command that must succeed, and returns its output.
    pub fn ofctl(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {text}{errors}");
        let warned = |line: &str| line.contains("WARN") && !line.contains("|timeval|");
        assert!(!errors.lines().any(warned), "{arguments:?}: {errors}");
        text
    }

    /// Runs a command that the switch must reject, and returns its output.
    pub fn refused(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments);
        let text = [output.stdout, output.stderr].concat();
        String::from_utf8_lossy(&text).into_owned()
    }

    /// Returns the flow entries without time-dependent values, sorted.
    pub fn flows(&self) -> Vec<String> {
        let text = self.ofctl(&["dump-flows", "--no-stats"]);
        let mut lines: Vec<_> = text.lines().map(|line| line.trim().to_string()).collect();
        lines.sort();
        lines
    }

    /// Sends a frame to a port.
    pub fn arrive(&mut self, port: usize, bytes: &[u8]) {
        let mut batch = Batch::new(1);
        batch.push_bytes(bytes);
        assert_eq!(self.wires[port - 1].transmit(&mut batch, clock::now()).unwrap(), 1);
    }

    /// Returns the next frame that leaves through a port.
    pub fn leaves(&mut self, port: usize) -> Vec<u8> {
        let mut batch = Batch::new(1);
        let until = clock::now() + PATIENCE;
        while self.wires[port - 1].receive(&mut batch, clock::now()).unwrap() == 0 {
            assert!(clock::now() < until, "no frame left through port {port}");
            std::thread::yield_now();
        }
        batch.frames()[0].bytes().to_vec()
    }
}

/// A running command and its output.
pub struct Watch {
    child: Child,
    told: Receiver<String>,
}

impl Watch {
    /// Returns the next line with this text, if it arrives within this time.
    pub fn line_within(&self, text: &str, span: Nanos) -> Option<String> {
        let until = clock::now() + span;
        loop {
            let left = Duration::from_nanos(until.since(clock::now()).0);
            let line = self.told.recv_timeout(left).ok()?;
            if line.contains(text) {
                return Some(line);
            }
        }
    }

    /// Returns the next line with this text, which must arrive.
    pub fn line(&self, text: &str) -> String {
        let line = self.line_within(text, PATIENCE);
        line.unwrap_or_else(|| panic!("no line contains {text}"))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let ended = self.child.kill().and_then(|()| self.child.wait());
        assert!(std::thread::panicking() || ended.is_ok(), "{ended:?}");
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().expect("started").join();
        let left = Path::exists(&self.folder.join("s"));
        std::fs::remove_dir_all(&self.folder).unwrap();
        if !std::thread::panicking() {
            ended.unwrap();
            assert!(!left, "the socket file was not removed");
        }
    }
}

/// Returns the value after `key` in a text of `key=value` words.
pub fn value<'a>(text: &'a str, key: &str) -> &'a str {
    let from = text.find(key).unwrap_or_else(|| panic!("no {key} in {text}")) + key.len();
    text[from..].split([',', ' ', '\n']).next().unwrap_or_default()
}

/// Returns a UDP frame from 10.0.0.1:1000 to 10.0.0.2:2000.
pub fn udp() -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
    frame.extend([0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    frame.extend([0x03, 0xe8, 0x07, 0xd0, 0, 26, 0, 0]);
    frame.resize(60, 0);
    frame
}

/// Returns settings with these queues, each with the full rate of its port.
pub fn with_queues(queues: &[(PortNo, u32)]) -> OpenFlowConfig {
    let queue = |&(port, queue): &(PortNo, u32)| QueueConfig {
        port,
        queue,
        rate_bps_min: None,
        rate_bps_max: None,
        frames_max: None,
    };
    OpenFlowConfig { queues: queues.iter().map(queue).collect(), ..OpenFlowConfig::default() }
}
