//! Open vSwitch with its userspace datapath on packet sockets, in a private instance.
//!
//! The ports are the site's veth ends, opened by packet sockets (`datapath_type=netdev`). Flow
//! entries are installed by OpenFlow through the bridge's own socket (`br0.mgmt`), which requires
//! no configured controller and no network.
//!
//! Source: `ovs-vswitchd(8)`, `ovs-vswitchd.conf.db(5)`, `ovs-appctl(8)`.
//!
//! Invariant: neither `/var/run/openvswitch` nor any other system path is used.

pub(super) mod instance;
pub mod statistics;
mod unixctl;

use super::{ControlInterface, Description, Peer, Plan, SiteProperties, refuse};
use crate::requirement;
use crate::{LabError, Site};
use instance::Instance;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

const KIND: &str = "ovs";
/// One handler and one revalidator thread, because the target has one core.
pub(super) const ONE_THREAD_EACH: [&str; 2] =
    ["other_config:n-handler-threads=1", "other_config:n-revalidator-threads=1"];

/// Open vSwitch with its settings.
#[derive(Debug, Default)]
pub struct OpenVswitch {
    version: String,
    socket_buffer: String,
    instance: Option<Instance>,
    wired: Option<SiteProperties>,
    prefix: Option<PathBuf>,
}

impl OpenVswitch {
    /// Uses the Open vSwitch that is installed below this prefix, such as a fork in `/opt/ovs`.
    pub fn below(prefix: PathBuf) -> OpenVswitch {
        OpenVswitch { prefix: Some(prefix), ..OpenVswitch::default() }
    }
}

/// Checks an Open vSwitch installation; the error is the first missing file.
pub fn check_prefix(prefix: &Path) -> Result<(), PathBuf> {
    instance::check_prefix(prefix)
}

impl Peer for OpenVswitch {
    fn start(&mut self, site: &Site) -> Result<(), LabError> {
        let plan = instance::Plan {
            switch: requirement::tool_below(
                self.prefix.as_deref(),
                "ovs-vswitchd",
                "openvswitch-switch",
            )?,
            prefix: self.prefix.clone(),
            cores: site.wiring.cores.target.clone(),
            environment: Vec::new(),
            before: ONE_THREAD_EACH.map(str::to_owned).to_vec(),
            ports: site.target.iter().map(|port| (port.name.clone(), Vec::new())).collect(),
        };
        self.version = instance::version(&plan, site)?;
        // The receive buffer size of a packet socket, which keeps its default.
        let buffer = std::fs::read_to_string("/proc/sys/net/core/rmem_default");
        self.socket_buffer = buffer.unwrap_or_default().trim().to_owned();
        self.instance = Some(Instance::start(&plan, site)?);
        self.wired = Some(SiteProperties::of(site));
        Ok(())
    }

    fn ready(&mut self, patience: Duration) -> Result<ControlInterface, LabError> {
        let Some(instance) = &mut self.instance else {
            return Err(LabError::Argument {
                what: "use of a peer before its start",
                value: KIND.to_owned(),
            });
        };
        Ok(ControlInterface::OpenFlow { channel: instance.ready(patience)? })
    }

    fn install(&mut self, _site: &Site, plan: &Plan) -> Result<(), LabError> {
        refuse(
            KIND,
            "plan for a peer (its flow entries come over OpenFlow)",
            *plan != Plan::default(),
        )
    }

    fn counters(&mut self) -> Result<BTreeMap<String, u64>, LabError> {
        let Some(instance) = &self.instance else {
            return Ok(BTreeMap::new());
        };
        let datapath = instance.ask("dpif-netdev/pmd-stats-show", &[])?;
        let mut counters = statistics::parse_datapath(&datapath);
        counters.extend(statistics::parse_coverage(&instance.ask("coverage/show", &[])?));
        Ok(counters)
    }

    fn addresses_learned(&mut self) -> Result<Option<u64>, LabError> {
        self.instance.as_ref().map_or(Ok(None), Instance::addresses_learned)
    }

    fn check(&mut self) -> Result<(), LabError> {
        self.instance.as_mut().map_or(Ok(()), Instance::check)
    }

    fn processes(&self) -> Vec<u32> {
        self.instance.iter().map(Instance::pid).collect()
    }

    fn stop(&mut self) -> Result<(), LabError> {
        self.instance.take().map_or(Ok(()), Instance::stop)
    }

    fn describe(&self) -> Description {
        let description = Description::new(KIND, self.version.clone())
            .set("datapath", "netdev (userspace)")
            .set("ports_by", "packet sockets (system interfaces)")
            .set("socket_buffer_bytes", self.socket_buffer.as_str())
            .set("fail_mode", "secure")
            .set("mac-table-size", instance::MACS_MAX)
            .set("mac-aging-time", instance::MACS_AGEING_S)
            .set("n-handler-threads", 1)
            .set("n-revalidator-threads", 1)
            .wired(self.wired.as_ref());
        match &self.prefix {
            Some(prefix) => description.set("prefix", prefix.display().to_string()),
            None => description,
        }
    }
}
