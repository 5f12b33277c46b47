//! Tests of a switch and Open vSwitch's programs over TLS, with certificates of `ovs-pki`. The
//! other implementation verifies the handshake in both directions, and the OpenFlow messages.

#![allow(clippy::unwrap_used, reason = "a test may panic at any place")]

use std::net::TcpListener;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use elements::config::{Config, Kind, OpenFlowConfig, PortConfig};
use elements::node::Node;
use elements::process::drive;
use netio::memory::{MemoryPort, pair};
use netio::port::Port;
use openflow::version::Version;
use os::clock;
use packet::time::Nanos;

/// Maximum wait for an expected event.
const PATIENCE: Nanos = Nanos::from_secs(20);

/// A folder with two CAs and certificates of both sides, removed on drop.
struct Certificates(PathBuf);

impl Drop for Certificates {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Certificates {
    /// Creates the certificates, or returns `None` if a program is missing. CI as root requires all
    /// programs.
    fn make(name: &str, programs: &[&str]) -> Option<Certificates> {
        for program in programs.iter().chain(&["ovs-pki", "openssl"]) {
            let found = std::env::var_os("PATH").is_some_and(|path| {
                std::env::split_paths(&path).any(|folder| folder.join(program).exists())
            });
            if !found {
                let root = std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
                let must = root && std::env::var_os("CI").is_some();
                let need = format!(
                    "need: {program} (apt-get install openvswitch-common \
                     openvswitch-testcontroller openssl)"
                );
                assert!(!must, "{need}");
                println!("skipped; {need}");
                return None;
            }
        }
        let folder = std::env::temp_dir().join(format!("ssl-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let made = Certificates(folder);
        made.pki(&["init"]);
        made.pki(&["req+sign", "switch", "switch"]);
        made.pki(&["req+sign", "controller", "controller"]);
        Some(made)
    }

    fn pki(&self, words: &[&str]) {
        let mut pki = Command::new("ovs-pki");
        pki.arg(format!("--dir={}", self.file("pki").display()));
        pki.arg(format!("--log={}", self.file("log").display()));
        let output = pki.args(words).current_dir(&self.0).output().unwrap();
        assert!(output.status.success(), "{words:?}: {output:?}");
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Returns the configuration of the switch.
    fn switch(&self) -> OpenFlowConfig {
        OpenFlowConfig {
            private_key: Some(self.file("switch-privkey.pem")),
            certificate: Some(self.file("switch-cert.pem")),
            ca_cert: Some(self.file("pki/controllerca/cacert.pem")),
            datapath_id: Some(0x00ab_cdef_0123_4567),
            ..OpenFlowConfig::default()
        }
    }

    /// Returns a command of one of Open vSwitch's programs with the key of `who` and the CA of this
    /// name.
    fn command(&self, program: &str, who: &str, ca: &str) -> Command {
        let mut command = Command::new(program);
        let key = self.file(&format!("{who}-privkey.pem"));
        let certificate = self.file(&format!("{who}-cert.pem"));
        command.arg(format!("--private-key={}", key.display()));
        command.arg(format!("--certificate={}", certificate.display()));
        command.arg(format!("--ca-cert={}", self.file(&format!("pki/{ca}/cacert.pem")).display()));
        command.env("OVS_RUNDIR", &self.0);
        command
    }
}

/// A running switch with two ports.
struct Switch {
    port: u16,
    _wires: Vec<MemoryPort>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Vec<String>>>,
}

impl Switch {
    fn start(settings: OpenFlowConfig) -> Switch {
        let mut config = Config::new(Kind::OpenFlow(settings));
        let (mut ports, mut wires) = (Vec::new(), Vec::new());
        for number in 1..=2 {
            config.ports.push(PortConfig { number, spec: format!("memory:{number}") });
            let (ours, theirs) = pair(64, &format!("eth{number}"));
            ports.push((number, Box::new(ours) as Box<dyn Port>));
            wires.push(theirs);
        }
        let mut node = Node::open(&config, ports, 1, clock::now()).expect("it starts");
        // pssl:PORT:IP
        let address = node.addresses().next().map(ToString::to_string).unwrap_or_default();
        let port = address.split(':').nth(1).map_or(0, |port| port.parse().unwrap());
        let stop = Arc::new(AtomicBool::new(false));
        let stopping = stop.clone();
        let spin = config.spin;
        let thread = std::thread::spawn(move || {
            let mut log = Vec::new();
            drive(&mut node, spin, &stopping, &mut |event| log.push(event.to_string()));
            log
        });
        Switch { port, _wires: wires, stop, thread: Some(thread) }
    }

    /// Stops the switch and returns its log.
    fn stop(mut self) -> Vec<String> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().expect("started").join().unwrap()
    }
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

#[test]
fn ovs_ofctl_controls_a_switch_over_tls_in_every_version() {
    let Some(made) = Certificates::make("ofctl", &["ovs-ofctl"]) else { return };
    let listen = vec!["pssl:0:127.0.0.1".to_string()];
    let switch = Switch::start(OpenFlowConfig { listen, ..made.switch() });
    let url = format!("ssl:127.0.0.1:{}", switch.port);
    for version in Version::SUPPORTED {
        let name = format!("OpenFlow{}", version.to_string().replace('.', ""));
        let run = |words: &[&str]| {
            let mut ofctl = made.command("ovs-ofctl", "controller", "switchca");
            let output = ofctl.args(["-t", "20", "-O", &name]).args(words).output().unwrap();
            let printed = text(&output);
            assert!(output.status.success(), "{name} {words:?}: {printed}");
            printed
        };
        run(&["add-flow", &url, "in_port=1,actions=output:2"]);
        let flows = run(&["dump-flows", &url]);
        assert!(flows.contains("in_port=1 actions=output:2"), "{name}: {flows}");
        run(&["del-flows", &url]);
        let dump = run(&["show", &url]);
        assert!(dump.contains("dpid:00abcdef01234567"), "{name}: {dump}");
    }
    let log = switch.stop();
    let peers = log.iter().filter(|line| line.contains("ssl:127.0.0.1:"));
    assert!(peers.count() >= 4 * Version::SUPPORTED.len(), "{log:#?}");
}

#[test]
fn an_untrusted_certificate_and_plain_text_are_rejected() {
    let Some(made) = Certificates::make("stranger", &["ovs-ofctl"]) else { return };
    let listen = vec!["pssl:0:127.0.0.1".to_string()];
    let switch = Switch::start(OpenFlowConfig { listen, ..made.switch() });
    // The switches' CA signs switches only, so a switch cannot act as a controller.
    let url = format!("ssl:127.0.0.1:{}", switch.port);
    let mut ofctl = made.command("ovs-ofctl", "switch", "switchca");
    let output = ofctl.args(["-t", "20", "-O", "OpenFlow10", "show", &url]).output().unwrap();
    assert!(!output.status.success(), "{}", text(&output));
    let url = format!("tcp:127.0.0.1:{}", switch.port);
    let mut ofctl = Command::new("ovs-ofctl");
    let output = ofctl.args(["-t", "20", "-O", "OpenFlow10", "show", &url]).output().unwrap();
    assert!(!output.status.success(), "{}", text(&output));
    let log = switch.stop();
    let reported = |words: &str| log.iter().any(|line| line.contains(words));
    assert!(reported("certificate is not signed by the CA"), "{log:#?}");
    assert!(reported("the peer does not use TLS"), "{log:#?}");
    assert!(!reported(": connected"), "{log:#?}");
}

/// A child process that is killed on drop.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_switch_connects_to_ovs_testcontroller_over_tls() {
    let Some(made) = Certificates::make("reach", &["ovs-testcontroller"]) else { return };
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut command = made.command("ovs-testcontroller", "controller", "switchca");
    let file = std::fs::File::create(made.file("said")).unwrap();
    command.args(["-v", "--unixctl=none", "-O", "OpenFlow10,OpenFlow13"]);
    command.arg(format!("pssl:{port}:127.0.0.1")).stderr(file);
    let _controller = Killed(command.spawn().unwrap());
    let controllers = vec![format!("ssl:127.0.0.1:{port}")];
    let switch = Switch::start(OpenFlowConfig { controllers, probe_ms: 500, ..made.switch() });
    let text = || std::fs::read_to_string(made.file("said")).unwrap_or_default();
    let until = clock::now() + PATIENCE;
    // It learns the switch's datapath ID, and replies to its echo request.
    for words in ["dpid:00abcdef01234567", "OFPT_ECHO_REPLY"] {
        while !text().contains(words) {
            assert!(clock::now() < until, "no {words} in: {}", text());
            clock::sleep_until(clock::now() + Nanos::from_millis(20));
        }
    }
    let log = switch.stop();
    assert!(log.iter().any(|line| line.contains(": connected")), "{log:#?}");
}
