//! testpmd, DPDK's test forwarder: frames received on one port leave on its neighbor.
//!
//! It does not parse frames, so its rate is the maximum of a shared-memory link: the reference for
//! a switch on the same link. With a source and a sink among its ports it is also a generator,
//! which the lab's tests use. The forwarding thread has the target's core; its main thread, which
//! sleeps, has a core of the tester.
//!
//! Like other programs of DPDK 22.11, it may crash when a memif peer disconnects under traffic, and
//! it resets its counters after a disconnection: stop it before its clients.
//!
//! Source: DPDK's "Testpmd Application User Guide".
//!
//! Invariant: all settings are given at start; afterwards it only serves counter requests.

use super::dpdk::{self, Device, TESTPMD, TESTPMD_MEBIBYTES, TESTPMD_PACKAGE, telemetry};
use super::{ControlInterface, Description, Peer, Plan, SiteProperties, refuse};
use crate::hugepages::HugePages;
use crate::process::{Process, ProcessSpec};
use crate::requirement::{self, Requirement};
use crate::{LabError, Site};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::time::Duration;

const KIND: &str = "testpmd";
/// Timeout for the end.
const PATIENCE: Duration = Duration::from_secs(10);
/// Frame buffers: several times what rings of 1,024 and bursts hold.
const BUFFERS: u32 = 16_384;
/// Maximum number of bytes of its output that are parsed.
const OUTPUT_BYTES: u64 = 1 << 20;

/// testpmd with its ports.
#[derive(Debug)]
pub struct Testpmd {
    devices: Option<Vec<Device>>,
    queues: u32,
    version: String,
    running: Option<Running>,
    last: BTreeMap<String, u64>,
    wired: Option<SiteProperties>,
}

/// A running testpmd. Rust drops fields in this order, so the huge pages are released after the
/// process has ended.
#[derive(Debug)]
struct Running {
    process: Process,
    log: PathBuf,
    telemetry: PathBuf,
    ports: usize,
    _pages: HugePages,
}

impl Testpmd {
    /// The peer: it listens by memif at each of the site's sockets, and forwards between the first
    /// and the second, the third and the fourth...
    pub fn forwarding() -> Testpmd {
        Testpmd::of(None, 1)
    }

    /// testpmd with any ports, forwarding between neighbors, with this many queues per direction.
    pub fn joining(devices: Vec<Device>, queues: u32) -> Testpmd {
        Testpmd::of(Some(devices), queues)
    }

    fn of(devices: Option<Vec<Device>>, queues: u32) -> Testpmd {
        let (version, last) = (String::new(), BTreeMap::new());
        Testpmd { devices, queues, version, running: None, last, wired: None }
    }

    /// Checks the requirements on this machine.
    pub fn needs(devices: &[Device]) -> Result<(), Requirement> {
        requirement::tool(TESTPMD, TESTPMD_PACKAGE)?;
        dpdk::needs(devices, TESTPMD_MEBIBYTES)
    }

    fn devices(&self, site: &Site) -> Vec<Device> {
        let listening = || {
            let ports = 1..=site.wiring.ports;
            ports.map(|port| Device::MemifServer(site.socket(port))).collect()
        };
        self.devices.clone().unwrap_or_else(listening)
    }

    fn arguments(&self, devices: &[Device], site: &Site) -> Result<Vec<OsString>, LabError> {
        let (main, forwarding) = (dpdk::main_core(site), site.wiring.cores.target.first());
        let forwarding = forwarding.copied().unwrap_or(main);
        let mut words: Vec<String> = vec![
            format!("--lcores=0@{main},1@{forwarding}"),
            "--main-lcore=0".to_owned(),
            format!("-m{TESTPMD_MEBIBYTES}"),
            format!("--file-prefix={}", site.name),
        ];
        words.extend(dpdk::aloof().map(str::to_owned));
        // vhost-user allows at most eight memory regions; without this there is one per page.
        words.push("--single-file-segments".to_owned());
        // Prints the version.
        words.push("-v".to_owned());
        for (number, device) in devices.iter().enumerate() {
            device.check_driver()?;
            words.push(format!("--vdev={}", device.text(number)?));
        }
        words.extend([
            "--".to_owned(),
            "--forward-mode=io".to_owned(),
            // A listening memif has no link before a client connects.
            "--disable-link-check".to_owned(),
            format!("--total-num-mbufs={BUFFERS}"),
            format!("--rxq={}", self.queues),
            format!("--txq={}", self.queues),
            // Without a period it would wait for a key press, and treat the end of its input as
            // one.
            "--stats-period=3600".to_owned(),
        ]);
        Ok(words.into_iter().map(OsString::from).collect())
    }
}

impl Peer for Testpmd {
    fn start(&mut self, site: &Site) -> Result<(), LabError> {
        let devices = self.devices(site);
        let telemetry = telemetry::socket(&site.path, &site.name);
        crate::runfolder::checked_socket_path(&telemetry)?;
        devices.iter().try_for_each(Device::clear)?;
        let launch = ProcessSpec {
            program: requirement::tool(TESTPMD, TESTPMD_PACKAGE)?,
            arguments: self.arguments(&devices, site)?,
            environment: vec![dpdk::environment(site)],
            log: site.path.join("testpmd.log"),
            namespace: Some(site.namespace.clone()),
            cores: Vec::new(),
        };
        let pages = dpdk::reserve(TESTPMD_MEBIBYTES, site)?;
        let log = launch.log.clone();
        let process = Process::start(launch, &site.folder)?;
        let ports = devices.len();
        self.running = Some(Running { process, log, telemetry, ports, _pages: pages });
        self.wired = Some(SiteProperties::of(site));
        self.last.clear();
        Ok(())
    }

    fn ready(&mut self, patience: Duration) -> Result<ControlInterface, LabError> {
        let Some(running) = &mut self.running else {
            return Err(LabError::Argument {
                what: "use of a peer before its start",
                value: KIND.to_owned(),
            });
        };
        let (telemetry, ports) = (running.telemetry.clone(), running.ports);
        running.process.wait_ready(patience, || telemetry::started(&telemetry, ports))?;
        self.version = parse_version(&read(&running.log));
        Ok(ControlInterface::Nothing)
    }

    fn install(&mut self, _site: &Site, plan: &Plan) -> Result<(), LabError> {
        refuse(KIND, "plan to install for a peer", *plan != Plan::default())
    }

    /// While it runs, returns the counters of its ports. After the stop, returns those of its final
    /// output, which include frames that it could not send.
    fn counters(&mut self) -> Result<BTreeMap<String, u64>, LabError> {
        match &self.running {
            Some(running) => telemetry::counters(&running.telemetry, running.ports),
            None => Ok(self.last.clone()),
        }
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
        running.process.check()?;
        running.process.stop(PATIENCE)?;
        self.last = parse_last(&read(&running.log));
        Ok(())
    }

    fn describe(&self) -> Description {
        let devices = self
            .devices
            .as_ref()
            .map_or("memif (server)".to_owned(), |devices| format!("{devices:?}"));
        Description::new(KIND, self.version.clone())
            .set("forwarding", "io, between neighbouring ports")
            .set("ports_by", devices)
            .set("queues", self.queues)
            .set("huge_pages_mib", TESTPMD_MEBIBYTES)
            .wired(self.wired.as_ref())
    }
}

/// Parses the counters of each port from the final output, as `port.N.NAME` with ports from 1.
///
/// The lines are like "  TX-packets: 5616000        TX-dropped: 157409376     TX-total: 163025376"
/// after the header "Forward statistics for port 0".
fn parse_last(text: &str) -> BTreeMap<String, u64> {
    const NAMES: [(&str, &str); 4] = [
        ("RX-packets:", "received"),
        ("RX-dropped:", "receive_missed"),
        ("TX-packets:", "sent"),
        ("TX-dropped:", "transmit_dropped"),
    ];
    let mut counters = BTreeMap::new();
    let mut port = None;
    for line in text.lines() {
        if let Some((_, rest)) = line.split_once(" statistics for ") {
            let number = rest.strip_prefix("port ").and_then(|rest| rest.split(' ').next());
            port = number.and_then(|number| number.parse::<u32>().ok());
        }
        let Some(port) = port.and_then(|port| port.checked_add(1)) else {
            continue;
        };
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        for pair in words.windows(2) {
            let name = NAMES.iter().find(|(theirs, _)| *theirs == pair[0]);
            if let (Some((_, name)), Ok(count)) = (name, pair[1].parse()) {
                counters.insert(format!("port.{port}.{name}"), count);
            }
        }
    }
    counters
}

/// Parses "DPDK 22.11.11" from a line like "EAL: RTE Version: 'DPDK 22.11.11'".
fn parse_version(text: &str) -> String {
    let line = text.lines().find_map(|line| line.split_once("RTE Version: "));
    let version = line.map(|(_, version)| version.trim_matches(['\'', ' ']));
    version.unwrap_or("DPDK of unknown version").to_owned()
}

/// Reads its output so far, up to a limit; invalid UTF-8 is replaced.
fn read(log: &PathBuf) -> String {
    let mut bytes = Vec::new();
    let read = File::open(log).and_then(|file| file.take(OUTPUT_BYTES).read_to_end(&mut bytes));
    // A missing log counts as empty.
    let _ = read;
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn final_statistics_are_parsed_by_port() {
        let text = "
Port statistics ====================================
  ---------------------- Forward statistics for port 0  ----------------------
  RX-packets: 5610400        RX-dropped: 1             RX-total: 5610401
  TX-packets: 0              TX-dropped: 0             TX-total: 0
  ----------------------------------------------------------------------------

  ---------------------- Forward statistics for port 1  ----------------------
  RX-packets: 0              RX-dropped: 0             RX-total: 0
  TX-packets: 5616000        TX-dropped: 157409376     TX-total: 163025376
  ----------------------------------------------------------------------------

  +++++++++++++++ Accumulated forward statistics for all ports+++++++++++++++
  RX-packets: 168635776      RX-dropped: 0             RX-total: 168635776
  TX-packets: 11226400       TX-dropped: 157409376     TX-total: 168635776
  ++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++
";
        let expected = [
            ("port.1.received", 5_610_400),
            ("port.1.receive_missed", 1),
            ("port.1.sent", 0),
            ("port.1.transmit_dropped", 0),
            ("port.2.received", 0),
            ("port.2.receive_missed", 0),
            ("port.2.sent", 5_616_000),
            ("port.2.transmit_dropped", 157_409_376),
        ];
        assert_eq!(parse_last(text), expected.map(|(name, n)| (name.to_owned(), n)).into());
    }

    #[test]
    fn the_version_is_parsed() {
        let text = "EAL: Detected CPU lcores: 2\nEAL: RTE Version: 'DPDK 22.11.11'\nEAL: x\n";
        assert_eq!(parse_version(text), "DPDK 22.11.11");
        assert_eq!(parse_version(""), "DPDK of unknown version");
    }

    #[test]
    fn damaged_statistics_give_no_counters() {
        let beyond = " statistics for port 4294967295 \n RX-packets: 1";
        for text in ["", "RX-packets: 5", " statistics for port x\nRX-packets: 5", beyond] {
            assert_eq!(parse_last(text), BTreeMap::new(), "{text:?}");
        }
    }
}
