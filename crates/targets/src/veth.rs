//! Targets in network namespaces, connected to the tester by veth pairs.
//!
//! The lab starts the target and creates the cables. The tester opens its ends through AF_PACKET,
//! through AF_XDP if the target does so too, or as live ports: then the kernel generates and
//! receives its frames. The tester's controller programs an OpenFlow
//! target; the lab, or the target's control socket, programs any other. A target without OpenFlow
//! is restarted for a new set-up, which clears the last one.

mod network;

use std::ffi::OsString;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use channel::Url;
use netio::afpacket::Options;
use netio::port::Port;
use netio::xdp::live;
use packet::time::Nanos;
use testbed::account::Account;
use testbed::affinity::Cores;
use testbed::peer::direct::Direct;
use testbed::peer::linux_bridge::LinuxBridge;
use testbed::peer::linux_router::LinuxRouter;
use testbed::peer::openvswitch::OpenVswitch;
use testbed::peer::ovs_dpdk::{OvsDpdk, Ports};
use testbed::peer::planimeter::{Mode, Planimeter, Role, router_mac};
use testbed::peer::{ControlInterface, Peer, Plan, PortAddress, PortNeighbor, PortRoute, Station};
use testbed::probe;
use testbed::requirement::Feature;
use testbed::veth::Interface;
use testbed::{Lab, LabError, Site, Wiring};
use tester::controller::{Controller, RealTime, Settings};
use tester::rig::live::LiveRig;

use super::hosts::SiteHosts;
use super::linux_tagger::LinuxTagger;
use super::memif::told;
use super::model;
use super::name::{Link, TargetKind};
use super::network::Hop;
use super::process::{Cable, ProcessTarget};
use super::progfe::ProGfeTarget;
use super::{HostPaths, LossPlace, Snapshot, TargetError, flow_setup};
use workload::Technology;
use workload::parameter::control::Capture;
use workload::parameter::{Parameters, Table};
use workload::parts::{PLACE_SECOND, ROUTER_IN_SECOND, SENDER_SECOND};
use workload::tags;
use workload::{
    Addresses, NEXT_HOP, PORT_PREFIX, ROUTER_IN, ROUTER_OUT, SENDER, Setup, mac_of, routes,
};

/// Time limit for a target to start.
const PATIENCE: Duration = Duration::from_secs(20);

/// Time limit for progress with flows: a database of a million takes long.
const REPLY_TIMEOUT: Nanos = Nanos::from_secs(60);

/// Key that signs the frames of these rigs.
pub const RIG_KEY: u64 = 0x706c_616e_696d_6574;

/// Port specification of the tester's ends of cables to targets that use AF_XDP.
pub(super) const INSTRUMENT_XDP: &str = "xdp:NAME,stamps=kernel,small-pages";

/// The same for live ports.
const INSTRUMENT_LIVE: &str = "live:NAME,receive";

/// Ageing time of a bridge's addresses: one hour, as in bianco2010.
pub(super) const AGEING: Duration = Duration::from_secs(3600);

/// Creates veth targets and their cables.
pub struct VethBench {
    link: Link,
    lab: Arc<Lab>,
    wiring: Wiring,
    /// This program; it is started for this project's targets.
    program: PathBuf,
    parameters: Parameters,
    stop: Arc<AtomicBool>,
    /// Number of sites created so far; it makes their names unique.
    sites: AtomicU32,
}

impl VethBench {
    /// Creates the network, and removes leftovers of crashed runs below `root`.
    pub fn open(
        link: Link,
        surroundings: &HostPaths,
        parameters: &Parameters,
        stop: &Arc<AtomicBool>,
    ) -> Result<Self, TargetError> {
        let control_tcp = parameters.control.capture != Capture::No;
        let xdp = link == Link::VethXdp;
        // If a program at the interface takes the frames, hosts would receive none.
        let (machine, apart) = (Wiring::of_machine().map_err(lab_error)?, link == Link::Veth);
        let fast_path = link == Link::VethLive;
        let wiring = Wiring { xdp, fast_path, apart, control_tcp, ..machine };
        if xdp {
            probe::require(Feature::XdpSocket).map_err(|need| lab_error(need.into()))?;
        }
        if link == Link::VethLive {
            live::probe().map_err(|error| {
                let hint = "use Linux 5.18 or later as root, or --link veth";
                TargetError::Need(format!("cannot send live frames: {error} (hint: {hint})"))
            })?;
        }
        let lab = Lab::open(&surroundings.root).map_err(lab_error)?;
        let (lab, stop) = (Arc::new(lab), Arc::clone(stop));
        let (program, parameters) = (surroundings.program.clone(), parameters.clone());
        let sites = AtomicU32::new(0);
        Ok(VethBench { link, lab, wiring, program, parameters, stop, sites })
    }

    /// Returns the link.
    pub fn link(&self) -> Link {
        self.link
    }

    /// Returns the core assignment.
    pub fn cores(&self) -> &Cores {
        &self.wiring.cores
    }

    /// Returns the settings of the network, for the record.
    pub fn settings(&self) -> Vec<(String, String)> {
        vec![
            ("cores_instrument".into(), format!("{:?}", self.wiring.cores.instrument)),
            ("cores_target".into(), format!("{:?}", self.wiring.cores.target)),
        ]
    }

    /// Starts a target and opens the tester's ports to it, one or two of them inputs.
    pub fn target(&self, kind: TargetKind, inputs: u8) -> Result<ProcessTarget, TargetError> {
        let name = format!("{}{}", site_name(kind), self.sites.fetch_add(1, Ordering::Relaxed));
        let site = match kind {
            TargetKind::Direct => self.lab.direct(&name, &self.wiring),
            _ => {
                let wiring = Wiring { ports: u32::from(inputs) + 1, ..self.wiring.clone() };
                self.lab.site(&name, &wiring)
            }
        }
        .map_err(lab_error)?;
        let remake = self.maker(kind, inputs);
        let mut peer = remake();
        peer.start(&site).map_err(lab_error)?;
        let access = peer.ready(PATIENCE).map_err(lab_error)?;
        let ports = self.ports(&site)?;
        testbed::affinity::pin(0, &self.wiring.cores.instrument).map_err(lab_error)?;
        let mut rig = LiveRig::new(ports, RIG_KEY, Arc::clone(&self.stop));
        if site.wiring.apart && kind != TargetKind::Direct {
            rig.hosts = Some(Box::new(SiteHosts::new(&site)));
        }
        let cable = Cable::Veth(remake);
        ProcessTarget::new(kind, (peer, access), site, rig, cable, (&self.parameters, &self.stop))
    }

    fn ports(&self, site: &Site) -> Result<Vec<Box<dyn Port>>, TargetError> {
        site.instrument.iter().map(|end| self.opened(end)).collect()
    }

    /// Opens the tester's port at one of its interfaces.
    fn opened(&self, end: &Interface) -> Result<Box<dyn Port>, TargetError> {
        let by = match self.link {
            Link::VethXdp => INSTRUMENT_XDP,
            Link::VethLive => INSTRUMENT_LIVE,
            _ => "afpacket:NAME",
        };
        let open = || netio::open::open(&by.replace("NAME", &end.name), &Options::monitor());
        end.namespace
            .run(open)
            .map_err(lab_error)?
            .map_err(|error| TargetError::failed("cannot open the tester's ports", error))
    }

    /// Returns the factory of a target.
    fn maker(&self, kind: TargetKind, inputs: u8) -> PeerFactory {
        let is_build = matches!(kind, TargetKind::Build(_));
        let (kind, program) = match kind {
            TargetKind::Build(build) => (build.kind(), build.program()),
            kind => (kind, self.program.as_path()),
        };
        let ours = |mode: Mode, extra: Vec<OsString>| -> PeerFactory {
            let program = program.to_path_buf();
            let connections = self.parameters.connections_max;
            Box::new(move || {
                let ours = Planimeter::new(&program, mode.clone(), extra.clone());
                Box::new(ours.with_connections(connections))
            })
        };
        let mut addresses = router_addresses();
        addresses.truncate(usize::from(inputs) + 1);
        let router = |cache: usize| Mode::Router { addresses: addresses.clone(), cache };
        match kind {
            TargetKind::Switch => ours(Mode::Switch, self.table_sizes()),
            TargetKind::SwitchFrameThread => {
                let (program, words) = (program.to_path_buf(), self.table_sizes());
                let connections = self.parameters.connections_max;
                Box::new(move || {
                    let ours = Planimeter::new(&program, Mode::Switch, words.clone());
                    Box::new(ours.with_connections(connections).with_frame_thread())
                })
            }
            TargetKind::SwitchFirstCome => {
                let mut words = self.table_sizes();
                words.push("--first-come".into());
                ours(Mode::Switch, words)
            }
            TargetKind::Model(target) => {
                let words = |mut words: Vec<OsString>| {
                    words.extend(["--model".into(), target.source().into()]);
                    words
                };
                match target.mode() {
                    model::Mode::OpenFlow => ours(Mode::Switch, words(self.table_sizes())),
                    model::Mode::Legacy => ours(Mode::Bridge { ageing: AGEING }, words(Vec::new())),
                }
            }
            TargetKind::Bridge | TargetKind::BridgeFewBuckets => {
                ours(Mode::Bridge { ageing: AGEING }, bridge_words(kind, self.parameters.macs_max))
            }
            TargetKind::ProGfe(target) => {
                ours(Mode::ProGfe { program: target.file().into(), role: role(target) }, Vec::new())
            }
            TargetKind::Tagger => ours(Mode::Tagger, Vec::new()),
            TargetKind::LinuxTagger => Box::new(|| Box::new(LinuxTagger::default())),
            TargetKind::Router => ours(router(0), Vec::new()),
            TargetKind::RouterCache => ours(router(ROUTER_CACHE_ENTRIES), Vec::new()),
            TargetKind::Ovs if is_build => {
                let prefix = program.to_path_buf();
                Box::new(move || Box::new(OpenVswitch::below(prefix.clone())))
            }
            TargetKind::Ovs => Box::new(|| Box::new(OpenVswitch::default())),
            TargetKind::LinuxBridge => Box::new(|| Box::new(LinuxBridge::new(AGEING))),
            TargetKind::LinuxRouter => {
                Box::new(move || Box::new(LinuxRouter::new(addresses.clone())))
            }
            kind if kind.is_dpdk() => {
                let tuning = super::memif::tuning(kind);
                Box::new(move || Box::new(OvsDpdk::new(Ports::Xdp, tuning)))
            }
            // Targets without veth support were rejected before; a cable takes their place here.
            _ => Box::new(|| Box::new(Direct::default())),
        }
    }

    fn table_sizes(&self) -> Vec<OsString> {
        let [exact, wildcard] = self.parameters.table_sizes().map(|size| size.to_string());
        let words = ["--exact-entries", &exact, "--wildcard-entries", &wildcard];
        // As in the study's switch, entries that are not exact are searched linearly. With AF_XDP
        // the kernel's threads need the core that a thread would poll on.
        let by_xdp = self.wiring.xdp || self.wiring.fast_path;
        let rest = if by_xdp { &["--busy-poll-us", "0"][..] } else { &[] };
        words.iter().chain(rest).map(OsString::from).collect()
    }
}

/// Returns the role of an element, from its program.
pub(super) fn role(target: ProGfeTarget) -> Role {
    match target.role() {
        ::progfe::role::Role::Bridge => Role::Bridge { ageing: AGEING },
        ::progfe::role::Role::Router => Role::Router,
        ::progfe::role::Role::Tagger => Role::Tagger,
    }
}

/// Returns a router's own addresses, by port.
pub(super) fn router_addresses() -> Vec<PortAddress> {
    let own = |port, address| PortAddress { port, address, length: PORT_PREFIX };
    vec![own(1, ROUTER_IN), own(2, ROUTER_OUT), own(3, ROUTER_IN_SECOND)]
}

/// Factory of a peer.
pub(super) type PeerFactory = Box<dyn Fn() -> Box<dyn Peer> + Send>;

/// Hash buckets of the bridge in the kernel of bianco2010, Linux 2.6.27.
pub const BRIDGE_HASH_BUCKETS: usize = 256;

/// Returns the arguments of our bridge for a table of this capacity.
pub(super) fn bridge_words(kind: TargetKind, macs_max: u32) -> Vec<OsString> {
    let mut words: Vec<OsString> = vec!["--mac-table-size".into(), macs_max.to_string().into()];
    if kind == TargetKind::BridgeFewBuckets {
        words.extend(["--hash-buckets".into(), BRIDGE_HASH_BUCKETS.to_string().into()]);
    }
    words
}

/// Entries of our router's destination cache, if enabled.
pub const ROUTER_CACHE_ENTRIES: usize = 131_072;

/// Installs the setup in a peer.
pub(super) fn give(
    kind: TargetKind,
    access: &ControlInterface,
    peer: &mut dyn Peer,
    site: &Site,
    (addresses, setup, stop): (&Addresses, &Setup, &Arc<AtomicBool>),
) -> Result<(), TargetError> {
    match access {
        ControlInterface::OpenFlow { channel } => {
            install_flows(channel, addresses, setup, Hop::ALONE, stop)?;
            if matches!(kind, TargetKind::Model(_)) { model::settle(peer, stop) } else { Ok(()) }
        }
        ControlInterface::Control { .. } | ControlInterface::Install => {
            if let TargetKind::ProGfe(target) = kind {
                target.rehearse(setup, addresses)?;
            }
            let plan = plan_of(kind, addresses, setup);
            peer.install(site, &plan).map_err(lab_error)
        }
        ControlInterface::Nothing => Ok(()),
    }
}

/// Installs the setup's entries in an OpenFlow switch, for its hop on the path, and removes all
/// others.
fn install_flows(
    channel: &str,
    addresses: &Addresses,
    setup: &Setup,
    hop: Hop,
    stop: &Arc<AtomicBool>,
) -> Result<(), TargetError> {
    let failed = |error| TargetError::failed("cannot install flows by OpenFlow", error);
    let url: Url = channel
        .parse()
        .map_err(|error| TargetError::failed(format!("cannot connect to {channel}"), error))?;
    let (reply_timeout, stop) = (REPLY_TIMEOUT, Arc::clone(stop));
    let settings = Settings { reply_timeout, stop, ..flow_setup::settings(setup) };
    let mut controller = Controller::connect(&url, settings).map_err(failed)?;
    controller.delete_all(&mut RealTime::default()).map_err(failed)?;
    let flows = flow_setup::flows(setup, addresses).map(|flow| hop.led(flow));
    let installed = controller.install(flows, &mut RealTime::default()).map_err(failed)?;
    flow_setup::checked(&installed)
}

/// Returns the plan of a target of this kind. A program that tags has its own rules.
pub(super) fn plan_of(kind: TargetKind, addresses: &Addresses, setup: &Setup) -> Plan {
    match (kind, kind.technology()) {
        (TargetKind::ProGfe(_), Technology::Tagging) => Plan::default(),
        (_, technology) => plan(technology, addresses, setup),
    }
}

/// Returns what a bridge, router or tagger needs, in addition to its settings, for the setup's
/// entries.
pub fn plan(technology: Technology, addresses: &Addresses, setup: &Setup) -> Plan {
    let entries = 0..setup.entries;
    match technology {
        Technology::OpenFlow | Technology::Wire => Plan::default(),
        Technology::Tagging => Plan { tags: tags::rules(setup.entries), ..Plan::default() },
        Technology::Bridging if matches!(setup.table, Table::Learned | Table::Empty) => {
            Plan::default()
        }
        Technology::Bridging if setup.table == Table::Mesh => {
            let behind = (1..).zip(addresses.instrument).take(usize::from(setup.ports()));
            let stations = behind.map(|(port, mac)| Station { mac, port }).collect();
            Plan { stations, ..Plan::default() }
        }
        Technology::Bridging => Plan {
            stations: senders(addresses, setup)
                .map(|(port, _, mac)| Station { mac, port })
                .chain(entries.map(|entry| Station { mac: mac_of(entry), port: 2 }))
                .collect(),
            ..Plan::default()
        },
        Technology::Routing => Plan {
            neighbors: senders(addresses, setup)
                .chain([(2, NEXT_HOP, addresses.instrument[1])])
                .map(|(port, address, mac)| PortNeighbor { port, address, mac })
                .collect(),
            routes: routes(setup)
                .map(|(prefix, length)| PortRoute { prefix, length, via: NEXT_HOP, port: 2 })
                .collect(),
            ..Plan::default()
        },
    }
}

/// Returns the senders: their port and their addresses.
fn senders(
    addresses: &Addresses,
    setup: &Setup,
) -> impl Iterator<Item = (u32, Ipv4Addr, [u8; 6])> + use<> {
    let all = [
        (1, SENDER, addresses.instrument[0]),
        (3, SENDER_SECOND, addresses.instrument[PLACE_SECOND]),
    ];
    all.into_iter().take(usize::from(setup.inputs))
}

/// Reads the counters of a target and of the kernel around it.
pub(super) fn read(
    kind: TargetKind,
    peer: &mut dyn Peer,
    site: &Site,
) -> Result<Snapshot, TargetError> {
    let mut snapshot = Snapshot::default();
    // The tester's ports report frames that they fail to send; with AF_XDP also losses on receive.
    let silent = if site.wiring.xdp { &[][..] } else { &site.instrument[..] };
    for end in silent {
        let here = Account::of(&end.namespace).map_err(lab_error)?;
        if let Some(link) = here.links.get(&end.name) {
            let key = (LossPlace::Kernel, end.name.clone(), "receive_dropped".to_string());
            snapshot.drops.insert(key, link.receive_dropped);
        }
    }
    if kind != TargetKind::Direct {
        let there = site.account().map_err(lab_error)?;
        for (place, frames) in there.losses() {
            let (at, reason) = place.split_once(' ').unwrap_or((&place, "lost"));
            let key = (LossPlace::Kernel, at.to_string(), reason.to_string());
            snapshot.drops.insert(key, frames);
        }
    }
    // The kernel also counts what the target's rings lost: for packet sockets at our own target,
    // and for AF_XDP at the interface, which also counts what the cable rejected. Each loss is
    // counted once.
    let counters = peer.counters().map_err(lab_error)?;
    let by_xdp = site.wiring.xdp || (site.wiring.fast_path && kind.is_planimeter());
    if by_xdp && kind.technology() == Technology::OpenFlow {
        let told = told(kind, counters);
        snapshot.drops.extend(told.drops);
        (snapshot.counters, snapshot.work) = (told.counters, told.work);
    } else if snapshot.add(counters) {
        snapshot.drops.retain(|(_, _, reason), _| reason != "socket_dropped");
    }
    if by_xdp {
        let again = ["receive_ring_full", "receive_dropped", "transmit_refused"];
        snapshot.drops.retain(|(place, _, reason), _| {
            *place != LossPlace::Target || !again.contains(&reason.as_str())
        });
    }
    Ok(snapshot)
}

/// Returns the addresses at both ends of a site's links.
pub(super) fn addresses(kind: TargetKind, site: &Site) -> Addresses {
    let near: Vec<[u8; 6]> = site.instrument.iter().map(|end| station_mac(end.mac)).collect();
    let is_our_router = kind.is_planimeter() && kind.technology() == Technology::Routing;
    let own = |mac: [u8; 6]| if is_our_router { router_mac(mac) } else { mac };
    let far: Vec<[u8; 6]> = site.target.iter().map(|end| own(end.mac)).collect();
    let each = |ends: &[[u8; 6]]| std::array::from_fn(|place| *ends.get(place).unwrap_or(&[0; 6]));
    Addresses { instrument: each(&near), target: each(&far) }
}

/// Returns the MAC address of the simulated station behind an interface.
///
/// It differs from the interface's own address. Otherwise the kernel would look up a route for
/// every returning frame, in the target's CPU time.
pub(super) fn station_mac(interface: [u8; 6]) -> [u8; 6] {
    let mut mac = interface;
    mac[1] = b'S';
    mac
}

fn site_name(kind: TargetKind) -> &'static str {
    match kind {
        TargetKind::Switch => "switch",
        TargetKind::SwitchFirstCome => "switchc",
        TargetKind::SwitchFrameThread => "switcht",
        TargetKind::Bridge => "bridge",
        TargetKind::BridgeFewBuckets => "bridgeb",
        TargetKind::Build(build) => build.site(),
        TargetKind::Model(target) => target.site(),
        TargetKind::ProGfe(target) => target.site(),
        TargetKind::Router => "router",
        TargetKind::RouterCache => "routerc",
        TargetKind::Tagger => "tagger",
        TargetKind::LinuxTagger => "ltagger",
        TargetKind::Ovs => "ovs",
        TargetKind::LinuxBridge => "lbridge",
        TargetKind::LinuxRouter => "lrouter",
        _ => "direct",
    }
}

/// Converts a lab error: a missing requirement stays one, all others are failures.
pub fn lab_error(error: LabError) -> TargetError {
    match error {
        LabError::Need(need) => TargetError::Need(need.to_string()),
        other => TargetError::failed("the lab failed", other),
    }
}
