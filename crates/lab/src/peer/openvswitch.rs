//! Open vSwitch, its userspace datapath, in a private instance.
//!
//! Its own ovsdb-server and ovs-vswitchd with every path inside the site's folder, so that a
//! system instance is never seen or touched. Ports are the site's veth ends, taken by packet
//! sockets (`datapath_type=netdev`). Flows come by OpenFlow through the bridge's own socket
//! (`br0.mgmt`), which needs no controller configured and no network.
//!
//! Source: `ovs-vswitchd(8)`, `ovsdb-server(1)`, `ovs-vswitchd.conf.db(5)`, `ovs-appctl(8)`.
//! Invariant: neither `/var/run/openvswitch` nor any other system path is used.

mod unixctl;

use super::{Access, Description, Peer, Plan, Wired, refuse};
use crate::need::{self, Feature, Need};
use crate::process::{self, Launch, Process};
use crate::runfolder::checked_socket_path;
use crate::{LabError, Site};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

const KIND: &str = "ovs";
const BRIDGE: &str = "br0";
const PACKAGE: &str = "openvswitch-switch";
const SCHEMAS: [&str; 2] =
    ["/usr/share/openvswitch/vswitch.ovsschema", "/usr/local/share/openvswitch/vswitch.ovsschema"];
/// How long a part may take to come up or to end.
const PATIENCE: Duration = Duration::from_secs(10);

/// Open vSwitch with its settings.
#[derive(Debug, Default)]
pub struct OpenVswitch {
    version: String,
    socket_buffer: String,
    instance: Option<Instance>,
    wired: Option<Wired>,
}

/// The running parts, in the order they are stopped (fields drop in this order too).
#[derive(Debug)]
struct Instance {
    switch: Process,
    database: Process,
    place: Place,
}

/// Where an instance has its files, and how its programs are started.
#[derive(Debug, Clone)]
struct Place {
    path: PathBuf,
    ports: Vec<String>,
}

impl Peer for OpenVswitch {
    fn start(&mut self, site: &Site) -> Result<(), LabError> {
        let ports = site.target.iter().map(|port| port.name.clone()).collect();
        let place = Place { path: site.path.clone(), ports };
        checked_socket_path(&place.file("br0.mgmt"))?;
        // It would try for a long time, and say so only in its log.
        need::require(Feature::Tun)?;
        self.version = version(&place, site)?;
        // What a packet socket can hold, which nobody changes for it.
        let buffer = std::fs::read_to_string("/proc/sys/net/core/rmem_default");
        self.socket_buffer = buffer.unwrap_or_default().trim().to_owned();
        let schema = schema()?;
        let database = place.file("conf.db");
        let made = [OsString::from("create"), database.clone().into(), schema.into()];
        process::run(place.launch("ovsdb-tool", made, site)?, PATIENCE, &site.folder)?;
        let mut database = place.start_database(site)?;
        let switch = place.start_switch(site, &mut database)?;
        self.instance = Some(Instance { switch, database, place });
        self.wired = Some(Wired::of(site));
        let instance = self.instance.as_ref().expect("it was set above");
        instance.place.configure(site)
    }

    fn ready(&mut self, patience: Duration) -> Result<Access, LabError> {
        let Some(instance) = &mut self.instance else {
            return Err(LabError::Argument { what: "a peer not started", value: KIND.to_owned() });
        };
        let socket = instance.place.file("br0.mgmt");
        instance.switch.wait_ready(patience, || UnixStream::connect(&socket).is_ok())?;
        instance.check_ports()?;
        Ok(Access::OpenFlow { channel: format!("unix:{}", socket.display()) })
    }

    fn install(&mut self, _site: &Site, plan: &Plan) -> Result<(), LabError> {
        refuse(KIND, "a plan (its flows come by OpenFlow)", *plan != Plan::default())
    }

    fn counters(&mut self) -> Result<BTreeMap<String, u64>, LabError> {
        let Some(instance) = &self.instance else {
            return Ok(BTreeMap::new());
        };
        let control = instance.place.switch_control();
        let datapath = unixctl::ask(&control, "dpif-netdev/pmd-stats-show", &[])?;
        let mut counters = unixctl::parse_datapath(&datapath);
        let coverage = unixctl::ask(&control, "coverage/show", &[])?;
        counters.extend(unixctl::parse_coverage(&coverage));
        Ok(counters)
    }

    fn check(&mut self) -> Result<(), LabError> {
        match &mut self.instance {
            Some(instance) => instance.switch.check().and_then(|()| instance.database.check()),
            None => Ok(()),
        }
    }

    fn processes(&self) -> Vec<u32> {
        self.instance.iter().map(|instance| instance.switch.pid()).collect()
    }

    fn stop(&mut self) -> Result<(), LabError> {
        let Some(mut instance) = self.instance.take() else {
            return Ok(());
        };
        // Asked to exit, not signalled, so that it takes its own interfaces and sockets along.
        let asked = unixctl::ask(&instance.place.switch_control(), "exit", &["--cleanup"]);
        match asked.and_then(|_| instance.switch.wait_end(PATIENCE)) {
            Ok(_) => {}
            Err(_) => drop(instance.switch.stop(PATIENCE)?),
        }
        instance.database.stop(PATIENCE)?;
        Ok(())
    }

    fn describe(&self) -> Description {
        Description::new(KIND, self.version.clone())
            .set("datapath", "netdev (userspace)")
            .set("ports_by", "packet sockets (system interfaces)")
            .set("socket_buffer_bytes", self.socket_buffer.as_str())
            .set("fail_mode", "secure")
            .set("n-handler-threads", 1)
            .set("n-revalidator-threads", 1)
            .wired(self.wired.as_ref())
    }
}

impl Instance {
    /// Open vSwitch accepts a port it cannot open and merely notes why; we do not.
    fn check_ports(&self) -> Result<(), LabError> {
        let shown = unixctl::ask(&self.place.switch_control(), "dpif/show", &[])?;
        for port in &self.place.ports {
            if !shown.lines().any(|line| line.split_ascii_whitespace().next() == Some(port)) {
                return Err(LabError::Answer {
                    from: KIND.to_owned(),
                    request: format!("dpif/show, which should list {port}"),
                    answer: shown,
                });
            }
        }
        Ok(())
    }
}

impl Place {
    fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    fn database_socket(&self) -> PathBuf {
        self.file("db.sock")
    }

    fn switch_control(&self) -> PathBuf {
        self.file("vswitchd.ctl")
    }

    /// A program of Open vSwitch with all its default paths turned to the site's folder.
    fn launch(
        &self,
        program: &'static str,
        arguments: impl IntoIterator<Item = OsString>,
        site: &Site,
    ) -> Result<Launch, LabError> {
        let folders = ["OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR", "OVS_SYSCONFDIR"];
        let environment = folders.map(|name| (name.into(), self.path.clone().into()));
        Ok(Launch {
            program: need::tool(program, PACKAGE)?,
            arguments: arguments.into_iter().collect(),
            environment: environment.into(),
            log: self.file(&format!("{program}.log")),
            namespace: Some(site.namespace.clone()),
            cores: site.wiring.cores.target.clone(),
        })
    }

    fn start_database(&self, site: &Site) -> Result<Process, LabError> {
        let socket = self.database_socket();
        let arguments = daemon_arguments(&self.file("ovsdb.ctl"))
            .chain([option("--remote=punix:", &socket), self.file("conf.db").into()]);
        let launch = self.launch("ovsdb-server", arguments, site)?;
        let mut database = Process::start(launch, &site.folder)?;
        database.wait_ready(PATIENCE, || UnixStream::connect(&socket).is_ok())?;
        Ok(database)
    }

    fn start_switch(&self, site: &Site, database: &mut Process) -> Result<Process, LabError> {
        let control = self.switch_control();
        let arguments =
            daemon_arguments(&control).chain([option("unix:", &self.database_socket())]);
        self.configure_before(site)?;
        let mut switch =
            Process::start(self.launch("ovs-vswitchd", arguments, site)?, &site.folder)?;
        switch.wait_ready(PATIENCE, || UnixStream::connect(&control).is_ok())?;
        database.check()?;
        Ok(switch)
    }

    /// What must be known before the switch starts, so that it makes no more threads than asked.
    fn configure_before(&self, site: &Site) -> Result<(), LabError> {
        let words = "--no-wait -- init -- set Open_vSwitch . \
                     other_config:n-handler-threads=1 other_config:n-revalidator-threads=1";
        self.command(words.split_ascii_whitespace().map(OsString::from).collect(), site)
    }

    /// The bridge and its ports; returns when the switch has taken them over.
    fn configure(&self, site: &Site) -> Result<(), LabError> {
        let mut text = format!(
            "--timeout={} add-br {BRIDGE} -- set bridge {BRIDGE} datapath_type=netdev \
             fail_mode=secure other_config:disable-in-band=true mcast_snooping_enable=false",
            PATIENCE.as_secs()
        );
        for (index, port) in self.ports.iter().enumerate() {
            let number = index + 1;
            text.push_str(&format!(
                " -- add-port {BRIDGE} {port} -- set interface {port} ofport_request={number}"
            ));
        }
        self.command(text.split_ascii_whitespace().map(OsString::from).collect(), site)
    }

    fn command(&self, words: Vec<OsString>, site: &Site) -> Result<(), LabError> {
        let database = option("--db=unix:", &self.database_socket());
        let arguments = ["-vsyslog:off".into(), database].into_iter().chain(words);
        let launch = self.launch("ovs-vsctl", arguments, site)?;
        process::run(launch, PATIENCE + Duration::from_secs(5), &site.folder).map(drop)
    }
}

/// Arguments every daemon gets: stay in front, speak to the log only, be controlled privately.
fn daemon_arguments(control: &Path) -> impl Iterator<Item = OsString> + use<> {
    let quiet = ["--no-chdir", "-vconsole:info", "-vsyslog:off", "-vfile:off"];
    quiet.map(OsString::from).into_iter().chain([option("--unixctl=", control)])
}

fn option(name: &str, path: &Path) -> OsString {
    let mut text = OsString::from(name);
    text.push(path);
    text
}

/// "Open vSwitch 3.1.0".
fn version(place: &Place, site: &Site) -> Result<String, LabError> {
    let launch = place.launch("ovs-vswitchd", ["--version".into()], site)?;
    let text = process::run(launch, PATIENCE, &site.folder)?;
    let number = text.lines().next().and_then(|line| line.split_ascii_whitespace().last());
    Ok(format!("Open vSwitch {}", number.unwrap_or("of unknown version")))
}

fn schema() -> Result<PathBuf, Need> {
    let found = SCHEMAS.iter().map(PathBuf::from).find(|path| path.is_file());
    found.ok_or(Need::File { name: "vswitch.ovsschema", package: "openvswitch-common" })
}
