//! A foreign SNMP agent beside a target: Net-SNMP's `snmpd` in the target's namespace.
//!
//! It is a witness that shares nothing with the target but the kernel: it counts frames at the target's
//! interfaces by the kernel's counters, and knows the machine's processors. It listens on the namespace's own loopback interface only.
//!
//! Source: `snmpd(8)`, `snmpd.conf(5)`. Invariant: its settings, which may hold secrets, stand in the site's private folder and
//! go with the run.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::OpenOptionsExt;
use std::time::Duration;

use crate::process::{Launch, Process};
use crate::{LabError, Namespace, Site, need};

/// Where it listens, in the target's namespace.
pub const ADDRESS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 161);

/// How long it may take to listen.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long it may take to end when asked to.
const PATIENCE_END: Duration = Duration::from_secs(5);

/// A running agent; dropped, it ends.
#[derive(Debug)]
pub struct Agent {
    process: Process,
}

impl Agent {
    /// Starts it in a site's namespace, on the instrument's cores, with these lines of `snmpd.conf`, and waits until it listens.
    pub fn start(site: &Site, settings: &[String]) -> Result<Agent, LabError> {
        let program = need::tool("snmpd", "snmpd")?;
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
        let launch = Launch {
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

    /// Ends it.
    pub fn stop(&mut self) -> Result<(), LabError> {
        self.process.stop(PATIENCE_END).map(drop)
    }
}

/// Whether anybody has the agent's port in this namespace.
fn listens(namespace: &Namespace) -> bool {
    let read = || fs::read_to_string("/proc/thread-self/net/udp");
    let is_it = |line: &str| line.contains(&format!("0100007F:{:04X} ", ADDRESS.port()));
    namespace.run(read).is_ok_and(|read| read.is_ok_and(|text| text.lines().any(is_it)))
}
