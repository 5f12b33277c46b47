//! planimeter's own switch, bridge, router, tagger or forwarding element, started by its path like
//! any peer.
//!
//! The switch is programmed by OpenFlow at a Unix socket. All others are configured by lines of
//! JSON at their control socket, which every mode also has for its counters.
//!
//! Source: the command lines `planimeter switch|bridge|router|tagger|progfe`, and the requests of
//! `elements::control` (this crate uses only their text).
//!
//! Invariant: no code of the program is linked in, so a measurement uses the program that a user
//! starts.

pub mod control;
mod entries;

use super::dpdk;
use super::{
    ControlInterface, Description, Peer, Plan, PortAddress, SiteProperties, addresses_text,
    mac_text, refuse,
};
use crate::process::{self, Process, ProcessSpec};
use crate::runfolder::checked_socket_path;
use crate::topology::CONTROL_ADDRESS;
use crate::{LabError, Mac, RunFolder, Site};
use control::Control;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write;
use std::fs;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Timeout for the end after a request.
const PATIENCE: Duration = Duration::from_secs(5);
/// Type of its ports unless the site selects another.
const BY_PACKET_SOCKETS: &str = "packet sockets";
/// Entries per request.
const ENTRIES: usize = 8192;
/// Entries per request to a ProGFE element, which rebuilds its tables for each request.
const ENTRIES_PROGRAM: usize = 131_072;

/// Mode of the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mode {
    /// An OpenFlow switch.
    Switch,
    /// A learning bridge.
    Bridge {
        /// Ageing time of learned addresses; zero means no ageing.
        ageing: Duration,
    },
    /// A ProGFE forwarding element.
    ProGfe {
        /// The program's file.
        program: PathBuf,
        /// The function that its program implements.
        role: Role,
    },
    /// A VLAN tagger between port 1, with untagged frames, and port 2.
    Tagger,
    /// An IPv4 router.
    Router {
        /// Its own addresses.
        addresses: Vec<PortAddress>,
        /// Entries of its destination cache; 0 means no cache.
        cache: usize,
    },
}

/// Function of a ProGFE element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A learning bridge.
    Bridge {
        /// Ageing time of learned addresses; zero means no ageing.
        ageing: Duration,
    },
    /// An IPv4 router; its program does not use the ports' addresses, and they are not configured.
    Router,
    /// A VLAN tagger; its rules are in its program.
    Tagger,
}

/// The planimeter program at a site.
#[derive(Debug)]
pub struct Planimeter {
    program: PathBuf,
    mode: Mode,
    extra: Vec<OsString>,
    version: String,
    /// Whether a separate thread processes its frames on every type of link.
    has_frame_thread: bool,
    /// Maximum number of controller connections of a switch, all from one source. 0 selects its
    /// default limits.
    connections: u32,
    /// Type of its ports.
    ports_by: &'static str,
    running: Option<Running>,
    /// Hardware addresses of a router, by port.
    macs: Vec<Mac>,
    wired: Option<SiteProperties>,
}

#[derive(Debug)]
struct Running {
    process: Process,
    control: PathBuf,
    openflow: PathBuf,
}

impl Planimeter {
    /// Uses the program at this path in this mode, with additional arguments.
    pub fn new(program: impl Into<PathBuf>, mode: Mode, extra: Vec<OsString>) -> Planimeter {
        let (program, version, ports_by) = (program.into(), String::new(), BY_PACKET_SOCKETS);
        let (running, macs, wired) = (None, Vec::new(), None);
        let (has_frame_thread, connections) = (false, 0);
        Planimeter {
            program,
            mode,
            extra,
            has_frame_thread,
            connections,
            version,
            ports_by,
            running,
            macs,
            wired,
        }
    }

    /// Sets how many controller connections a switch accepts; 0 for its default.
    #[must_use]
    pub fn with_connections(self, connections: u32) -> Planimeter {
        Planimeter { connections, ..self }
    }

    /// Processes frames in a separate thread on the target's core; all other threads run on a core
    /// of the tester.
    #[must_use]
    pub fn with_frame_thread(self) -> Planimeter {
        Planimeter { has_frame_thread: true, ..self }
    }

    /// Sends one request to the control socket and returns the reply.
    pub fn control(&self, request: &Value) -> Result<Value, LabError> {
        let running = self.running.as_ref().ok_or_else(|| self.not_started())?;
        Control::connect(&running.control)?.ask(request)
    }

    fn not_started(&self) -> LabError {
        LabError::Argument { what: "use of a peer before its start", value: self.kind().to_owned() }
    }

    fn kind(&self) -> &'static str {
        match self.mode {
            Mode::Switch => "switch",
            Mode::Bridge { .. } => "bridge",
            Mode::ProGfe { .. } => "progfe",
            Mode::Router { .. } => "router",
            Mode::Tagger => "tagger",
        }
    }

    fn arguments(&self, site: &Site, running: &Sockets) -> Result<Vec<OsString>, LabError> {
        let mut arguments: Vec<OsString> = vec![self.kind().into()];
        for (index, port) in site.target.iter().enumerate() {
            arguments.push("--port".into());
            let by = if site.wiring.xdp || site.wiring.fast_path { "xdp" } else { "afpacket" };
            arguments.push(format!("{}={by}:{}", index + 1, port.name).into());
        }
        for port in memory_ports(site) {
            let socket = site.socket(port);
            let mut spec = OsString::from(format!("{port}=memif:"));
            spec.push(checked_socket_path(&socket)?);
            spec.push(",role=server");
            arguments.extend(["--port".into(), spec]);
        }
        arguments.push("--control-socket".into());
        arguments.push(running.control.clone().into());
        match &self.mode {
            Mode::Switch => {
                if self.connections > 0 {
                    let connections = self.connections;
                    let text = format!(
                        "[limits]\nconnections = {connections}\nconnections_per_source = {connections}\n\
                         handshakes = 256\nhandshakes_per_source = 256\nhandshakes_per_s = 10000\n"
                    );
                    arguments.extend(["--config".into(), file_in(site, "switch.toml", &text)?]);
                }
                let url = format!("punix:{}", running.openflow.display());
                arguments.extend(["--listen".into(), url.into()]);
                if site.wiring.control_tcp {
                    let url = format!("ptcp:{}:{}", CONTROL_ADDRESS.port(), CONTROL_ADDRESS.ip());
                    arguments.extend(["--listen".into(), url.into()]);
                }
                if let Some(core) = self.frames_core(site) {
                    arguments.extend(["--pmd-cores".into(), core.to_string().into()]);
                }
            }
            Mode::Bridge { .. } | Mode::Tagger => {}
            Mode::ProGfe { program, .. } => {
                arguments.extend(["--program".into(), program.clone().into()]);
            }
            Mode::Router { addresses, cache } => {
                let text = router_file(addresses, &router_macs(site), *cache);
                arguments.extend(["--config".into(), file_in(site, "router.toml", &text)?]);
            }
        }
        arguments.extend(self.extra.iter().cloned());
        Ok(arguments)
    }

    /// Returns the core of the frame thread; a switch with a behavior model has none.
    fn frames_core(&self, site: &Site) -> Option<usize> {
        let has_model = self.extra.iter().any(|word| word == "--model");
        let core = match self.has_frame_thread {
            true => site.wiring.cores.target.first().copied(),
            false => frames_core(site),
        };
        core.filter(|_| !has_model)
    }

    fn launch(&self, site: &Site, arguments: Vec<OsString>) -> ProcessSpec {
        ProcessSpec {
            program: self.program.clone(),
            arguments,
            environment: Vec::new(),
            log: site.path.join("planimeter.log"),
            namespace: Some(site.namespace.clone()),
            cores: match (&self.mode, self.frames_core(site)) {
                (Mode::Switch, Some(core)) => vec![core, dpdk::main_core(site)],
                _ => site.wiring.cores.target.clone(),
            },
        }
    }
}

/// Writes a file of a site, and returns its path as an argument.
fn file_in(site: &Site, name: &str, text: &str) -> Result<OsString, LabError> {
    let file = site.path.join(name);
    let failed = |error| LabError::system("write", file.display().to_string(), error);
    fs::write(&file, text).map_err(failed)?;
    Ok(file.into())
}

/// Returns the core of a separate frame thread, if ports use shared memory or AF_XDP. As with DPDK
/// programs, all other threads run on a core of the tester.
fn frames_core(site: &Site) -> Option<usize> {
    let core = site.wiring.cores.target.first().copied();
    core.filter(|_| site.wiring.xdp || memory_ports(site).next().is_some())
}

/// Returns the site's ports that are sockets for shared memory: all of them if there are no cables.
fn memory_ports(site: &Site) -> std::ops::RangeInclusive<u32> {
    let ports = if site.target.is_empty() { site.wiring.ports } else { 0 };
    1..=ports
}

/// Sockets at which a process listens.
struct Sockets {
    control: PathBuf,
    openflow: PathBuf,
}

impl Peer for Planimeter {
    fn start(&mut self, site: &Site) -> Result<(), LabError> {
        let (control, openflow) = (site.path.join("control"), site.path.join("openflow"));
        checked_socket_path(&openflow)?;
        let sockets = Sockets { control, openflow };
        let arguments = self.arguments(site, &sockets)?;
        self.version = version(self.launch(site, vec!["--version".into()]), &site.folder)?;
        let process = Process::start(self.launch(site, arguments), &site.folder)?;
        let Sockets { control, openflow } = sockets;
        self.ports_by = match memory_ports(site).next() {
            Some(_) => "memif (server)",
            None if site.wiring.fast_path => "XDP, forwarding in the kernel",
            None if site.wiring.xdp => "AF_XDP",
            None => BY_PACKET_SOCKETS,
        };
        self.running = Some(Running { process, control, openflow });
        self.macs = router_macs(site);
        self.wired = Some(SiteProperties::of(site));
        Ok(())
    }

    fn ready(&mut self, patience: Duration) -> Result<ControlInterface, LabError> {
        let not_started = self.not_started();
        let running = self.running.as_mut().ok_or(not_started)?;
        let (control, openflow) = (running.control.clone(), running.openflow.clone());
        let listens = |path: &Path| UnixStream::connect(path).is_ok();
        let is_switch = self.mode == Mode::Switch;
        running
            .process
            .wait_ready(patience, || listens(&control) && (!is_switch || listens(&openflow)))?;
        match self.mode {
            Mode::Switch => {
                return Ok(ControlInterface::OpenFlow {
                    channel: format!("unix:{}", openflow.display()),
                });
            }
            Mode::Bridge { ageing } | Mode::ProGfe { role: Role::Bridge { ageing }, .. } => {
                self.control(&json!({ "set": { "ageing_s": ageing.as_secs() } }))?;
            }
            Mode::ProGfe { role: Role::Router, .. } => {
                let interface =
                    |(port, mac): (u32, &Mac)| json!({ "port": port, "mac": mac_text(*mac) });
                let interfaces: Vec<Value> = (1..).zip(&self.macs).map(interface).collect();
                self.control(&json!({ "set_interfaces": interfaces }))?;
            }
            Mode::Router { .. } | Mode::Tagger | Mode::ProGfe { role: Role::Tagger, .. } => {}
        }
        Ok(ControlInterface::Control { socket: control })
    }

    fn install(&mut self, _site: &Site, plan: &Plan) -> Result<(), LabError> {
        let kind = self.kind();
        let (is_bridge, is_router, is_tagger) = match &self.mode {
            Mode::Switch => (false, false, false),
            Mode::Bridge { .. } => (true, false, false),
            Mode::Router { .. } => (false, true, false),
            Mode::Tagger => (false, false, true),
            Mode::ProGfe { role, .. } => {
                (matches!(role, Role::Bridge { .. }), *role == Role::Router, *role == Role::Tagger)
            }
        };
        refuse(kind, "plan with stations for a peer", !is_bridge && !plan.stations.is_empty())?;
        refuse(kind, "plan with neighbours for a peer", !is_router && !plan.neighbors.is_empty())?;
        refuse(kind, "plan with routes for a peer", !is_router && !plan.routes.is_empty())?;
        refuse(kind, "plan with tags for a peer", !is_tagger && !plan.tags.is_empty())?;
        let running = self.running.as_ref().ok_or_else(|| self.not_started())?;
        let mut control = Control::connect(&running.control)?;
        let has_program = matches!(self.mode, Mode::ProGfe { .. });
        let at_once = if has_program { ENTRIES_PROGRAM } else { ENTRIES };
        control.ask_all("add_macs", plan.stations.iter().map(entries::station), at_once)?;
        control.ask_all("add_neighbours", plan.neighbors.iter().map(entries::neighbor), at_once)?;
        control.ask_all("add_routes", plan.routes.iter().map(entries::route), at_once)?;
        if self.mode == Mode::Tagger {
            let rules: Vec<Value> = plan.tags.iter().map(entries::rule).collect();
            control.ask(&json!({ "set_rules": rules }))?;
        }
        Ok(())
    }

    fn counters(&mut self) -> Result<BTreeMap<String, u64>, LabError> {
        if self.running.is_none() {
            return Ok(BTreeMap::new());
        }
        Ok(control::flatten(&self.control(&json!({ "get": "counters" }))?))
    }

    fn addresses_learned(&mut self) -> Result<Option<u64>, LabError> {
        Ok(self.counters()?.get("bridge.macs").copied())
    }

    fn check(&mut self) -> Result<(), LabError> {
        self.running.as_mut().map_or(Ok(()), |running| running.process.check())
    }

    fn processes(&self) -> Vec<u32> {
        self.running.iter().map(|running| running.process.pid()).collect()
    }

    fn hold(&mut self) {
        self.running.iter_mut().for_each(|running| running.process.hold());
    }

    fn release(&mut self) {
        self.running.iter_mut().for_each(|running| running.process.release());
    }

    fn stop(&mut self) -> Result<(), LabError> {
        let Some(mut running) = self.running.take() else {
            return Ok(());
        };
        let status = running.process.stop(PATIENCE)?;
        if status.success() {
            return Ok(());
        }
        let (program, last) = (self.kind().to_owned(), running.process.last_lines());
        Err(LabError::Exited { program, status, last })
    }

    fn describe(&self) -> Description {
        let extra: Vec<_> = self.extra.iter().map(|word| word.to_string_lossy()).collect();
        let description = Description::new(self.kind(), self.version.clone())
            .set("ports_by", self.ports_by)
            .set("arguments", extra.join(" "))
            .wired(self.wired.as_ref());
        match &self.mode {
            Mode::Switch | Mode::Tagger => description,
            Mode::Bridge { ageing } => description.set("ageing_s", ageing.as_secs()),
            Mode::ProGfe { program, role } => {
                let description = description.set("program", program.display());
                match role {
                    Role::Bridge { ageing } => description.set("ageing_s", ageing.as_secs()),
                    Role::Router | Role::Tagger => description,
                }
            }
            Mode::Router { addresses, cache } => {
                description.set("addresses", addresses_text(addresses)).set("cache", cache)
            }
        }
    }
}

/// Returns the output of `planimeter --version`.
fn version(launch: ProcessSpec, folder: &RunFolder) -> Result<String, LabError> {
    let text = process::run(launch, PATIENCE, folder)?;
    Ok(text.lines().next().unwrap_or_default().trim().to_owned())
}

/// Returns the hardware address of our router at an interface.
///
/// It differs from the interface's own address. Otherwise the kernel would accept every frame too,
/// and spend the target's CPU time on routing it.
pub fn router_mac(interface: Mac) -> Mac {
    let mut mac = interface;
    mac[1] = b'R';
    mac
}

/// Returns the hardware addresses of a router at a site, by port.
fn router_macs(site: &Site) -> Vec<Mac> {
    // A port in shared memory has no address of its own.
    let memory = memory_ports(site).map(|port| interface_mac(port as u8));
    site.target.iter().map(|end| end.mac).chain(memory).map(router_mac).collect()
}

/// Returns the interface address for a port without one.
fn interface_mac(port: u8) -> Mac {
    [0x02, 0x54, 0, 0, 0, port]
}

/// Returns the router's configuration file: interfaces and cache; everything else uses the control
/// socket.
fn router_file(addresses: &[PortAddress], macs: &[Mac], cache: usize) -> String {
    let mut ports: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for own in addresses {
        ports.entry(own.port).or_default().push(format!("\"{}/{}\"", own.address, own.length));
    }
    let mut text = format!("cache = {cache}\n");
    for (port, addresses) in ports {
        let list = addresses.join(", ");
        let mut say = |line: String| {
            writeln!(text, "{line}").expect("writing to a String cannot fail");
        };
        say(format!("[[interface]]\nport = {port}\naddresses = [{list}]"));
        if let Some(mac) = macs.get(port as usize - 1) {
            say(format!("mac = \"{}\"", mac_text(*mac)));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_router_file_has_one_interface_per_port() {
        let own = |port, address: &str| PortAddress {
            port,
            address: address.parse().unwrap(),
            length: 24,
        };
        let addresses = [own(2, "10.0.2.1"), own(1, "10.0.1.1"), own(1, "10.9.1.1")];
        let expected = "cache = 5\n\
            [[interface]]\nport = 1\naddresses = [\"10.0.1.1/24\", \"10.9.1.1/24\"]\n\
            mac = \"02:52:00:00:00:01\"\n\
            [[interface]]\nport = 2\naddresses = [\"10.0.2.1/24\"]\n";
        let macs = [router_mac([2, 0x54, 0, 0, 0, 1])];
        assert_eq!(router_file(&addresses, &macs, 5), expected);
    }
}
