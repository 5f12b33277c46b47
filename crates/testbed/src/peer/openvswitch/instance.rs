//! A private instance of Open vSwitch: a database, a switch and one bridge, with any datapath.
//!
//! Every path is inside the site's directory, so a system instance is neither read nor changed.
//!
//! Source: `ovs-vswitchd(8)`, `ovsdb-server(1)`, `ovs-vsctl(8)`, `ovs-vswitchd.conf.db(5)`.
//!
//! Invariant: neither `/var/run/openvswitch` nor any other system path is used.

use super::{statistics, unixctl};
use crate::probe;
use crate::proc::{self, Stat};
use crate::process::{self, Process, ProcessSpec};
use crate::requirement::{self, Feature, Requirement};
use crate::runfolder::checked_socket_path;
use crate::topology::CONTROL_ADDRESS;
use crate::{LabError, Site, wait};
use std::ffi::OsString;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

const BRIDGE: &str = "br0";
/// MAC table size of the bridge (8,192 or less by default), for flow entries that use its learning.
pub(in crate::peer) const MACS_MAX: u32 = 262_144;
/// Ageing time of the MAC table in seconds: one hour, like other bridges here.
pub(in crate::peer) const MACS_AGEING_S: u32 = 3600;
const PACKAGE: &str = "openvswitch-switch";
const SCHEMA: &str = "share/openvswitch/vswitch.ovsschema";
const SCHEMAS: [&str; 2] =
    ["/usr/share/openvswitch/vswitch.ovsschema", "/usr/local/share/openvswitch/vswitch.ovsschema"];
/// Timeout for a part to start or to end.
const PATIENCE: Duration = Duration::from_secs(10);
/// Timeout for the switch to configure its bridge. With DPDK it first loads hundreds of drivers and
/// clears its memory, possibly on a shared core.
const TAKE_OVER_PATIENCE: Duration = Duration::from_secs(60);

/// Settings of an instance.
#[derive(Debug, Clone, Default)]
pub(in crate::peer) struct Plan {
    /// Path of the switch's program.
    pub switch: PathBuf,
    /// Prefix of the other programs and the schema; `None` for the system's installation.
    pub prefix: Option<PathBuf>,
    /// Cores of its threads, except those with their own cores.
    pub cores: Vec<usize>,
    /// Additional environment of the switch.
    pub environment: Vec<(OsString, OsString)>,
    /// Settings needed before the switch starts, as arguments of `ovs-vsctl`
    /// (`other_config:NAME=VALUE`).
    pub before: Vec<String>,
    /// The ports in order, each with a name and the settings of its interface as arguments of
    /// `ovs-vsctl`.
    pub ports: Vec<(String, Vec<String>)>,
}

impl Plan {
    /// Returns the path of an Open vSwitch program.
    fn tool(&self, name: &'static str) -> Result<PathBuf, Requirement> {
        requirement::tool_below(self.prefix.as_deref(), name, PACKAGE)
    }
}

/// Checks that an installation has the required files below its prefix; the error is the missing
/// file.
pub(in crate::peer) fn check_prefix(prefix: &Path) -> Result<(), PathBuf> {
    for name in ["ovs-vswitchd", "ovsdb-server", "ovsdb-tool", "ovs-vsctl"] {
        requirement::tool_below(Some(prefix), name, PACKAGE)
            .map_err(|_| prefix.join("sbin").join(name))?;
    }
    let schema = prefix.join(SCHEMA);
    if schema.is_file() { Ok(()) } else { Err(schema) }
}

/// The running parts, in the order they are stopped (fields drop in this order too).
#[derive(Debug)]
pub(in crate::peer) struct Instance {
    switch: Process,
    database: Process,
    place: InstanceFolder,
    ports: Vec<String>,
}

/// Directory of an instance's files, with the start of its programs.
#[derive(Debug, Clone)]
struct InstanceFolder {
    path: PathBuf,
}

impl Instance {
    /// Starts an instance; returns when the switch has configured the bridge and its ports.
    pub(in crate::peer) fn start(plan: &Plan, site: &Site) -> Result<Instance, LabError> {
        let place = InstanceFolder { path: site.path.clone() };
        checked_socket_path(&place.file("br0.mgmt"))?;
        // Without this check, the switch would retry for a long time and report it only in its log.
        probe::require(Feature::Tun)?;
        let schema = schema(plan.prefix.as_deref())?;
        let conf = place.file("conf.db");
        // A database of an earlier run at the same site.
        let _ = std::fs::remove_file(&conf);
        let made = [OsString::from("create"), conf.into(), schema.into()];
        let cores = &plan.cores;
        let tool = place.launch(plan.tool("ovsdb-tool")?, made, cores, site);
        process::run(tool, PATIENCE, &site.folder)?;
        let mut database = place.start_database(plan, site)?;
        let switch = place.start_switch(plan, site, &mut database)?;
        let ports = plan.ports.iter().map(|(name, _)| name.clone()).collect();
        let mut instance = Instance { switch, database, place, ports };
        match instance.place.configure(plan, site) {
            Ok(()) => Ok(instance),
            // The error of an ended switch is more specific than the timeout.
            Err(error) => Err(instance.check().err().unwrap_or(error)),
        }
    }

    /// Waits until the switch accepts OpenFlow and has all its ports; returns the channel.
    pub(in crate::peer) fn ready(&mut self, patience: Duration) -> Result<String, LabError> {
        let socket = self.place.file("br0.mgmt");
        self.switch.wait_ready(patience, || UnixStream::connect(&socket).is_ok())?;
        self.check_ports()?;
        Ok(format!("unix:{}", socket.display()))
    }

    /// Sends a command to the switch, like `ovs-appctl`.
    pub(in crate::peer) fn ask(
        &self,
        command: &str,
        arguments: &[&str],
    ) -> Result<String, LabError> {
        unixctl::ask(&self.place.switch_control(), command, arguments)
    }

    /// Returns the number of addresses in the bridge's MAC table.
    pub(in crate::peer) fn addresses_learned(&self) -> Result<Option<u64>, LabError> {
        Ok(statistics::parse_addresses(&self.ask("fdb/stats-show", &[BRIDGE])?))
    }

    /// Fails, with the last lines of its output, if a part has ended by itself.
    pub(in crate::peer) fn check(&mut self) -> Result<(), LabError> {
        self.switch.check().and_then(|()| self.database.check())
    }

    /// Returns the switch's process.
    pub(in crate::peer) fn pid(&self) -> u32 {
        self.switch.pid()
    }

    /// Suspends the switch while its revalidators sleep.
    ///
    /// Revalidators measure the duration of a dump of the datapath's flows, and allow fewer flows
    /// after a long one.
    pub(in crate::peer) fn hold(&mut self) {
        let pid = self.pid();
        let asleep = || {
            proc::threads(pid)
                .iter()
                .filter(|thread| is_revalidator(thread))
                .all(|thread| thread.state == 'S')
        };
        // More than once, because they also sleep between two waits of one round.
        let mut looks = 0;
        let waited = wait::until(PATIENCE, || {
            looks = if asleep() { looks + 1 } else { 0 };
            Ok(looks > 2)
        });
        // If they never sleep, the switch is suspended at any point.
        let _ = waited;
        self.switch.hold();
    }

    /// Resumes the switch.
    pub(in crate::peer) fn release(&mut self) {
        self.switch.release();
    }

    /// Ends the instance.
    pub(in crate::peer) fn stop(mut self) -> Result<(), LabError> {
        self.release();
        // A request to exit instead of a signal, so that the switch removes its own interfaces and
        // sockets.
        let asked = self.ask("exit", &["--cleanup"]);
        match asked.and_then(|_| self.switch.wait_end(PATIENCE)) {
            Ok(_) => {}
            Err(_) => drop(self.switch.stop(PATIENCE)?),
        }
        self.database.stop(PATIENCE)?;
        Ok(())
    }

    /// Checks the ports: Open vSwitch accepts a port that it cannot open and only logs the reason.
    fn check_ports(&self) -> Result<(), LabError> {
        let shown = self.ask("dpif/show", &[])?;
        for port in &self.ports {
            if !shown.lines().any(|line| line.split_ascii_whitespace().next() == Some(port)) {
                return Err(LabError::Answer {
                    from: "Open vSwitch".to_owned(),
                    request: format!("dpif/show, without {port}"),
                    answer: format!("{shown} | {}", self.switch.last_lines().join(" | ")),
                });
            }
        }
        Ok(())
    }
}

impl InstanceFolder {
    fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    fn database_socket(&self) -> PathBuf {
        self.file("db.sock")
    }

    fn switch_control(&self) -> PathBuf {
        self.file("vswitchd.ctl")
    }

    /// Prepares a program of Open vSwitch, with all its default paths in the site's directory.
    fn launch(
        &self,
        program: PathBuf,
        arguments: impl IntoIterator<Item = OsString>,
        cores: &[usize],
        site: &Site,
    ) -> ProcessSpec {
        let folders = ["OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR", "OVS_SYSCONFDIR"];
        let environment = folders.map(|name| (name.into(), self.path.clone().into()));
        let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        ProcessSpec {
            program,
            arguments: arguments.into_iter().collect(),
            environment: environment.into(),
            log: self.file(&format!("{name}.log")),
            namespace: Some(site.namespace.clone()),
            cores: cores.to_vec(),
        }
    }

    fn start_database(&self, plan: &Plan, site: &Site) -> Result<Process, LabError> {
        let socket = self.database_socket();
        let arguments = daemon_arguments(&self.file("ovsdb.ctl"))
            .chain([option("--remote=punix:", &socket), self.file("conf.db").into()]);
        let program = plan.tool("ovsdb-server")?;
        let launch = self.launch(program, arguments, &plan.cores, site);
        let mut database = Process::start(launch, &site.folder)?;
        database.wait_ready(PATIENCE, || UnixStream::connect(&socket).is_ok())?;
        Ok(database)
    }

    fn start_switch(
        &self,
        plan: &Plan,
        site: &Site,
        database: &mut Process,
    ) -> Result<Process, LabError> {
        let control = self.switch_control();
        let arguments =
            daemon_arguments(&control).chain([option("unix:", &self.database_socket())]);
        let before = ["--no-wait", "--", "init", "--", "set", "Open_vSwitch", "."];
        let words = before.iter().map(OsString::from);
        self.command(words.chain(plan.before.iter().map(OsString::from)), plan, site)?;
        let mut launch = self.launch(plan.switch.clone(), arguments, &plan.cores, site);
        launch.environment.extend(plan.environment.iter().cloned());
        let mut switch = Process::start(launch, &site.folder)?;
        switch.wait_ready(PATIENCE, || UnixStream::connect(&control).is_ok())?;
        database.check()?;
        Ok(switch)
    }

    /// Configures the bridge and its ports; returns when the switch has applied this.
    fn configure(&self, plan: &Plan, site: &Site) -> Result<(), LabError> {
        let bridge = format!(
            "--timeout={} add-br {BRIDGE} -- set bridge {BRIDGE} datapath_type=netdev \
             fail_mode=secure other_config:disable-in-band=true mcast_snooping_enable=false \
             other_config:mac-table-size={MACS_MAX} other_config:mac-aging-time={MACS_AGEING_S}",
            TAKE_OVER_PATIENCE.as_secs()
        );
        let mut words: Vec<OsString> =
            bridge.split_ascii_whitespace().map(OsString::from).collect();
        for (index, (port, settings)) in plan.ports.iter().enumerate() {
            let number = format!("ofport_request={}", index + 1);
            let known = ["--", "add-port", BRIDGE, port, "--", "set", "interface", port, &number];
            words.extend(known.map(OsString::from));
            words.extend(settings.iter().map(OsString::from));
        }
        if site.wiring.control_tcp {
            let url = format!("ptcp:{}:{}", CONTROL_ADDRESS.port(), CONTROL_ADDRESS.ip());
            words.extend(["--", "set-controller", BRIDGE, &url].map(OsString::from));
        }
        self.command(words, plan, site)
    }

    fn command(
        &self,
        words: impl IntoIterator<Item = OsString>,
        plan: &Plan,
        site: &Site,
    ) -> Result<(), LabError> {
        let database = option("--db=unix:", &self.database_socket());
        let arguments = ["-vsyslog:off".into(), database].into_iter().chain(words);
        let program = plan.tool("ovs-vsctl")?;
        let launch = self.launch(program, arguments, &plan.cores, site);
        process::run(launch, TAKE_OVER_PATIENCE + PATIENCE, &site.folder).map(drop)
    }
}

fn is_revalidator(thread: &Stat) -> bool {
    thread.name.starts_with("revalidator")
}

/// Returns "Open vSwitch 3.1.0", and the DPDK version that the program reports ("DPDK 22.11.11").
pub(in crate::peer) fn version(plan: &Plan, site: &Site) -> Result<String, LabError> {
    let place = InstanceFolder { path: site.path.clone() };
    let launch = place.launch(plan.switch.clone(), ["--version".into()], &plan.cores, site);
    let text = process::run(launch, PATIENCE, &site.folder)?;
    let number = text.lines().next().and_then(|line| line.split_ascii_whitespace().last());
    let dpdk = text.lines().find(|line| line.starts_with("DPDK "));
    let number = number.unwrap_or("of unknown version");
    Ok(match dpdk {
        Some(dpdk) => format!("Open vSwitch {number}, {dpdk}"),
        None => format!("Open vSwitch {number}"),
    })
}

/// Returns the arguments of all daemons: run in the foreground, log only to the console, use a
/// private control socket.
fn daemon_arguments(control: &Path) -> impl Iterator<Item = OsString> + use<> {
    let quiet = ["--no-chdir", "-vconsole:info", "-vsyslog:off", "-vfile:off"];
    quiet.map(OsString::from).into_iter().chain([option("--unixctl=", control)])
}

fn option(name: &str, path: &Path) -> OsString {
    let mut text = OsString::from(name);
    text.push(path);
    text
}

fn schema(prefix: Option<&Path>) -> Result<PathBuf, Requirement> {
    let found = match prefix {
        Some(prefix) => Some(prefix.join(SCHEMA)).filter(|path| path.is_file()),
        None => SCHEMAS.iter().map(PathBuf::from).find(|path| path.is_file()),
    };
    found.ok_or(Requirement::File { name: "vswitch.ovsschema", package: "openvswitch-common" })
}
