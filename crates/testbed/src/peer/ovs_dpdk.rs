//! Open vSwitch on DPDK: frames in shared memory, busy-polled by a PMD thread with its own core.
//!
//! - The PMD thread has the target's first core. Everything else (the main thread, revalidators,
//!   the database) runs on a core of the tester, as deployments keep their polling cores free.
//! - Each port is a socket in the site's directory ([`Site::socket`]).
//! - With one PMD thread, a port has two transmit rings (one is the main thread's), and the PMD
//!   thread sends on the second. A memif peer must therefore offer two rings from server to client,
//!   or everything is dropped.
//! - The program ends when a memif client disconnects and reconnects: start a new peer for each
//!   client.
//!
//! Source: Open vSwitch's guides to DPDK, `ovs-vswitchd.conf.db(5)`, DPDK's guide to memif.
//!
//! Invariant: no device of the machine is probed; huge pages are released after the switch has
//! ended.

use super::dpdk::{self, Device, OVS_MEBIBYTES};
use super::openvswitch::ONE_THREAD_EACH;
use super::openvswitch::instance::{self, Instance};
use super::openvswitch::statistics::{self, Flows, Polling, ThreadStats};
use super::{ControlInterface, Description, Peer, Plan, SiteProperties, refuse};
use crate::hugepages::HugePages;
use crate::requirement::{self, Requirement};
use crate::topology::port_name;
use crate::{LabError, Site};
use std::collections::BTreeMap;
use std::time::Duration;

const KIND: &str = "ovs-dpdk";

/// Type of the ports, and their role in shared memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Ports {
    /// memif: the switch listens, the tester connects and provides the memory.
    #[default]
    Memif,
    /// vhost-user: the switch listens, the driver connects.
    VhostServer,
    /// vhost-user: the driver listens, the switch connects and reconnects.
    VhostClient,
    /// The site's interfaces by AF_XDP, in native mode with a copy, which veth supports.
    Xdp,
}

/// Settings that differ from the defaults; `None` keeps a default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tuning {
    /// Maximum number of datapath flows (200,000 by default).
    pub flow_limit: Option<u32>,
    /// Idle timeout of a datapath flow in milliseconds (10,000 by default).
    pub max_idle_ms: Option<u32>,
    /// One of this many frames not found in the exact-match cache is inserted there (100 by
    /// default; 0: the cache is disabled, 1: every frame).
    pub emc_insert_inv_prob: Option<u32>,
    /// Whether the signature-match cache is enabled (disabled by default).
    pub smc: bool,
}

impl Tuning {
    /// Settings for many flows: none expires during a run, and the exact-match cache holds every
    /// flow or none.
    pub fn for_many_flows(emc: bool, smc: bool) -> Tuning {
        Tuning {
            flow_limit: Some(4_000_000),
            max_idle_ms: Some(3_600_000),
            emc_insert_inv_prob: Some(u32::from(emc)),
            smc,
        }
    }

    /// Formats the settings as arguments of `ovs-vsctl`.
    fn words(&self) -> Vec<String> {
        let number = |name: &str, value: Option<u32>| {
            value.map(|value| format!("other_config:{name}={value}"))
        };
        let numbers = [
            number("flow-limit", self.flow_limit),
            number("max-idle", self.max_idle_ms),
            number("emc-insert-inv-prob", self.emc_insert_inv_prob),
            self.smc.then(|| "other_config:smc-enable=true".to_owned()),
        ];
        numbers.into_iter().flatten().collect()
    }
}

/// Open vSwitch on DPDK with its settings.
#[derive(Debug, Default)]
pub struct OvsDpdk {
    ports: Ports,
    tuning: Tuning,
    receive_queues: u32,
    version: String,
    running: Option<Running>,
    wired: Option<SiteProperties>,
}

/// Fields are dropped in this order: the pages after the program.
#[derive(Debug)]
struct Running {
    instance: Instance,
    ports: Vec<String>,
    _pages: HugePages,
}

/// Statistics of Open vSwitch's datapath.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DatapathAccount {
    /// By thread: PMD threads and the main one.
    pub threads: Vec<ThreadStats>,
    /// Statistics of the PMD threads.
    pub polling: Polling,
    /// The datapath flows from which its caches are filled.
    pub flows: Flows,
}

impl OvsDpdk {
    /// Creates the peer with these ports and settings, and one receive queue per port.
    pub fn new(ports: Ports, tuning: Tuning) -> OvsDpdk {
        OvsDpdk { ports, tuning, receive_queues: 1, ..OvsDpdk::default() }
    }

    /// Sets the number of receive queues per port: the rings from client to server that a memif
    /// client may offer.
    pub fn with_receive_queues(mut self, queues: u32) -> OvsDpdk {
        self.receive_queues = queues;
        self
    }

    /// Checks the requirements on this machine.
    pub fn needs(ports: Ports) -> Result<(), Requirement> {
        dpdk::ovs_program()?;
        for program in ["ovsdb-server", "ovsdb-tool", "ovs-vsctl"] {
            requirement::tool(program, "openvswitch-switch")?;
        }
        let devices = match ports {
            Ports::Memif => vec![Device::MemifServer("p1".into())],
            Ports::VhostServer | Ports::VhostClient | Ports::Xdp => Vec::new(),
        };
        dpdk::needs(&devices, OVS_MEBIBYTES)
    }

    /// Returns the current statistics of the datapath; empty before the start.
    pub fn account(&self) -> Result<DatapathAccount, LabError> {
        let Some(running) = &self.running else {
            return Ok(DatapathAccount::default());
        };
        let ask = |command| running.instance.ask(command, &[]);
        Ok(DatapathAccount {
            threads: statistics::parse_threads(&ask("dpif-netdev/pmd-stats-show")?),
            polling: statistics::parse_polling(&ask("dpif-netdev/pmd-perf-show")?),
            flows: statistics::parse_flows(&ask("upcall/show")?),
        })
    }

    /// Returns whether each port has its own buffers; otherwise all ports share as many as fit.
    ///
    /// vhost-user allocates shared buffers when a driver connects. While it tries how many fit, the
    /// next driver would find no memory.
    fn buffers_by_port(&self) -> bool {
        matches!(self.ports, Ports::VhostServer | Ports::VhostClient)
    }

    /// Returns the settings of a port's interface.
    fn port(&self, number: usize, site: &Site) -> Result<(String, Vec<String>), LabError> {
        let name = port_name(number as u32);
        if self.ports == Ports::Xdp {
            let mode = "options:xdp-mode=native".to_owned();
            return Ok((name, vec!["type=afxdp".into(), mode, "options:n_rxq=1".into()]));
        }
        let socket = site.socket(number as u32);
        let queues = format!("options:n_rxq={}", self.receive_queues.max(1));
        dpdk::remove_socket(&socket)?;
        let settings = match self.ports {
            Ports::Memif => {
                let device = Device::MemifServer(socket);
                device.check_driver()?;
                let device = device.text(number)?;
                // In separate quotes, because its commas would otherwise end it.
                vec!["type=dpdk".into(), format!("options:dpdk-devargs=\"{device}\""), queues]
            }
            // It listens in its runtime directory, under the port's name, which is also the site's
            // socket.
            Ports::VhostServer => {
                dpdk::clean(crate::runfolder::checked_socket_path(&socket)?)?;
                vec!["type=dpdkvhostuser".into()]
            }
            Ports::VhostClient => {
                let path = dpdk::clean(crate::runfolder::checked_socket_path(&socket)?)?;
                let path = format!("options:vhost-server-path={path}");
                vec!["type=dpdkvhostuserclient".into(), path]
            }
            Ports::Xdp => unreachable!("AF_XDP ports have no socket"),
        };
        Ok((name, settings))
    }

    fn plan(&self, site: &Site) -> Result<instance::Plan, LabError> {
        let polling = site.wiring.cores.target.first().copied().unwrap_or(0);
        let mut before: Vec<String> = ONE_THREAD_EACH.map(str::to_owned).to_vec();
        before.extend([
            "other_config:dpdk-init=true".to_owned(),
            format!("other_config:pmd-cpu-mask={}", mask(polling)),
            format!("other_config:dpdk-socket-mem={OVS_MEBIBYTES}"),
            format!("other_config:dpdk-socket-limit={OVS_MEBIBYTES}"),
            // This is the default of this version, but not of all versions.
            format!("other_config:dpdk-extra=\"{} --no-telemetry\"", dpdk::aloof().join(" ")),
        ]);
        if self.buffers_by_port() {
            before.push("other_config:per-port-memory=true".to_owned());
        }
        before.extend(self.tuning.words());
        let ports = (1..=site.wiring.ports as usize).map(|number| self.port(number, site));
        Ok(instance::Plan {
            switch: dpdk::ovs_program()?,
            prefix: None,
            cores: vec![dpdk::main_core(site)],
            environment: vec![dpdk::environment(site)],
            before,
            ports: ports.collect::<Result<_, _>>()?,
        })
    }
}

impl Peer for OvsDpdk {
    fn start(&mut self, site: &Site) -> Result<(), LabError> {
        let plan = self.plan(site)?;
        self.version = instance::version(&plan, site)?;
        let pages = dpdk::reserve(OVS_MEBIBYTES, site)?;
        let instance = Instance::start(&plan, site)?;
        let ports = plan.ports.into_iter().map(|(name, _)| name).collect();
        self.running = Some(Running { instance, ports, _pages: pages });
        self.wired = Some(SiteProperties::of(site));
        Ok(())
    }

    fn ready(&mut self, patience: Duration) -> Result<ControlInterface, LabError> {
        let Some(running) = &mut self.running else {
            return Err(LabError::Argument {
                what: "use of a peer before its start",
                value: KIND.to_owned(),
            });
        };
        Ok(ControlInterface::OpenFlow { channel: running.instance.ready(patience)? })
    }

    fn install(&mut self, _site: &Site, plan: &Plan) -> Result<(), LabError> {
        refuse(
            KIND,
            "plan for a peer (its flow entries come over OpenFlow)",
            *plan != Plan::default(),
        )
    }

    fn counters(&mut self) -> Result<BTreeMap<String, u64>, LabError> {
        let Some(running) = &self.running else {
            return Ok(BTreeMap::new());
        };
        let ask = |command, arguments: &[&str]| running.instance.ask(command, arguments);
        let datapath = ask("dpif-netdev/pmd-stats-show", &[])?;
        let mut counters = statistics::parse_datapath(&datapath);
        counters.extend(statistics::parse_coverage(&ask("coverage/show", &[])?));
        counters.extend(statistics::parse_ports(&ask("dpctl/show", &["-s"])?, &running.ports));
        let flows = statistics::parse_flows(&ask("upcall/show", &[])?);
        counters.insert("datapath.flows".to_owned(), flows.current);
        counters.insert("datapath.flow_limit".to_owned(), flows.limit);
        Ok(counters)
    }

    fn addresses_learned(&mut self) -> Result<Option<u64>, LabError> {
        self.running.as_ref().map_or(Ok(None), |running| running.instance.addresses_learned())
    }

    fn check(&mut self) -> Result<(), LabError> {
        self.running.as_mut().map_or(Ok(()), |running| running.instance.check())
    }

    fn processes(&self) -> Vec<u32> {
        self.running.iter().map(|running| running.instance.pid()).collect()
    }

    fn hold(&mut self) {
        self.running.iter_mut().for_each(|running| running.instance.hold());
    }

    fn release(&mut self) {
        self.running.iter_mut().for_each(|running| running.instance.release());
    }

    fn stop(&mut self) -> Result<(), LabError> {
        let Some(Running { instance, _pages: pages, .. }) = self.running.take() else {
            return Ok(());
        };
        let stopped = instance.stop();
        drop(pages);
        stopped
    }

    fn describe(&self) -> Description {
        let by_default = |value: Option<u32>| value.map_or("default".to_owned(), |v| v.to_string());
        let ports_by = match self.ports {
            Ports::Memif => "memif (server)",
            Ports::VhostServer => "vhost-user (server)",
            Ports::VhostClient => "vhost-user (client)",
            Ports::Xdp => "AF_XDP (its own, native)",
        };
        Description::new(KIND, self.version.clone())
            .set("datapath", "netdev (userspace), polling")
            .set("ports_by", ports_by)
            .set("receive_queues", self.receive_queues.max(1))
            .set("huge_pages_mib", OVS_MEBIBYTES)
            .set("per-port-memory", self.buffers_by_port())
            .set("fail_mode", "secure")
            .set("mac-table-size", instance::MACS_MAX)
            .set("mac-aging-time", instance::MACS_AGEING_S)
            .set("flow-limit", by_default(self.tuning.flow_limit))
            .set("max-idle", by_default(self.tuning.max_idle_ms))
            .set("emc-insert-inv-prob", by_default(self.tuning.emc_insert_inv_prob))
            .set("smc-enable", self.tuning.smc)
            .set("n-handler-threads", 1)
            .set("n-revalidator-threads", 1)
            .wired(self.wired.as_ref())
    }
}

/// Returns the hexadecimal mask of a core.
fn mask(core: usize) -> String {
    format!("0x{:x}{}", 1 << (core % 4), "0".repeat(core / 4))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_is_one_bit_of_its_mask() {
        let masks = [0, 1, 3, 4, 65].map(mask);
        assert_eq!(masks, ["0x1", "0x2", "0x8", "0x10", "0x20000000000000000"]);
    }

    #[test]
    fn only_changed_settings_are_configured() {
        assert!(Tuning::default().words().is_empty());
        let words = Tuning::for_many_flows(false, true).words();
        let expected = [
            "other_config:flow-limit=4000000",
            "other_config:max-idle=3600000",
            "other_config:emc-insert-inv-prob=0",
            "other_config:smc-enable=true",
        ];
        assert_eq!(words, expected);
        let every = Tuning::for_many_flows(true, false).words();
        assert!(every.contains(&"other_config:emc-insert-inv-prob=1".to_owned()), "{every:?}");
    }
}
