//! An independent SNMP agent at the target: Net-SNMP's `snmpd` in the target's namespace.
//!
//! The agent shares only the kernel with the target. It reports the kernel's frame counters of the
//! target's interfaces, and the machine's processors. It listens only on the namespace's own
//! loopback interface.
//!
//! Source: `snmpd(8)`, `snmpd.conf(5)`. Invariant: its settings may contain secrets. They are in
//! the site's private directory and are removed with the run.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::OpenOptionsExt;
use std::time::Duration;

use crate::process::{Process, ProcessSpec};
use crate::{LabError, Namespace, Site, requirement};

/// Listen address in the target's namespace.
pub const ADDRESS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 161);

/// Timeout for the start.
const PATIENCE: Duration = Duration::from_secs(10);

/// Timeout for the end after a request.
const PATIENCE_END: Duration = Duration::from_secs(5);

/// A running agent; dropping this ends it.
#[derive(Debug)]
pub struct Agent {
    process: Process,
}

impl Agent {
    /// Starts the agent in a site's namespace, on the tester's cores, with these lines of
    /// `snmpd.conf`. Waits until it listens.
    pub fn start(site: &Site, settings: &[String]) -> Result<Agent, LabError> {
        let program = requirement::tool("snmpd", "snmpd")?;
        let file = site.path.join("snmpd.conf");
        let state = site.path.join("snmpd");
        let written = || {
            fs::create_dir_all(&state)?;
            let mut options = fs::OpenOptions::new();
            let mut out =
                options.write(true).create(true).truncate(true).mode(0o600).open(&file)?;
            let lines = [format!("agentaddress udp:{ADDRESS}")];
            let text: String =
                lines.iter().chain(settings).map(|line| format!("{line}\n")).collect();
            std::io::Write::write_all(&mut out, text.as_bytes())
        };
        written().map_err(|error| LabError::system("write", file.display().to_string(), error))?;
        let log = site.path.join("snmpd.log");
        let launch = ProcessSpec {
            program,
            arguments: vec!["-f".into(), "-C".into(), "-c".into(), file.into(), "-Lo".into()],
            environment: vec![
                ("MIBS".into(), "".into()),
                ("SNMP_PERSISTENT_DIR".into(), state.into()),
            ],
            log,
            namespace: Some(site.namespace.clone()),
            cores: site.wiring.cores.instrument.clone(),
        };
        let mut process = Process::start(launch, &site.folder)?;
        process.wait_ready(PATIENCE, || listens(&site.namespace))?;
        Ok(Agent { process })
    }

    /// Ends the agent.
    pub fn stop(&mut self) -> Result<(), LabError> {
        self.process.stop(PATIENCE_END).map(drop)
    }
}

/// Returns whether a socket in this namespace has the agent's port.
fn listens(namespace: &Namespace) -> bool {
    let read = || fs::read_to_string("/proc/thread-self/net/udp");
    let is_it = |line: &str| line.contains(&format!("0100007F:{:04X} ", ADDRESS.port()));
    namespace.run(read).is_ok_and(|read| read.is_ok_and(|text| text.lines().any(is_it)))
}
