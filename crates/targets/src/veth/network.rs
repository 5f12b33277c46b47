//! Several switches in namespaces, connected to each other and to the tester by veth pairs.
//!
//! Each switch is started as if it were alone. An end-to-end setup is installed in every switch on
//! the path, each over its own channel.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use channel::Url;
use testbed::account::Account;
use testbed::peer::{ControlInterface, Peer};
use testbed::topology::PortPeer;
use testbed::veth::Interface;
use testbed::{Lab, Site};
use tester::executor::live::Dialer;
use tester::module::{Module, StageReport};
use tester::rig::RigError;
use tester::rig::live::LiveRig;
use tester::trial::{Trial, TrialReport};

use super::{PATIENCE, RIG_KEY, VethBench, install_flows, lab_error, station_mac};
use crate::drain::{self, AsyncTarget, DrainPolicy};
use crate::name::TargetKind;
use crate::network::{End, Network, NetworkTarget, Switch};
use crate::{
    Description, LossPlace, Snapshot, Target, TargetError, alone, model, network, orders, snmp,
};
use workload::{Addresses, Setup};

/// Switches in namespaces.
struct NetworkOnVeth {
    target: NetworkTarget,
    network: &'static Network,
    lab: Arc<Lab>,
    members: Vec<Member>,
    rig: LiveRig,
    overdue: DrainPolicy,
    holds: Option<Setup>,
    stop: Arc<AtomicBool>,
}

/// A switch at its site.
struct Member {
    switch: &'static Switch,
    // Before the site: it must stop before its namespace is removed.
    peer: Box<dyn Peer>,
    channel: String,
    site: Site,
}

impl VethBench {
    /// Starts the switches of a network and opens the tester's ports to it.
    pub(crate) fn network(&self, target: NetworkTarget) -> Result<Box<dyn Target>, TargetError> {
        let network = target.network();
        if let Some(switch) = target.hindered_by(self.link()) {
            let (name, kind, link) = (&switch.name, switch.kind.name(), self.link().name());
            let why = format!("switch {name} ({kind}) does not support link {link}");
            return Err(TargetError::CannotHold(why));
        }
        let number = self.sites.fetch_add(1, Ordering::Relaxed);
        let across = |switch: usize, port: u32| match network.across(End { switch, port }) {
            Some(other) => PortPeer::Site(other.switch, other.port),
            None => PortPeer::Instrument,
        };
        let plan = |(place, switch): (usize, &Switch)| {
            let ports = (1..=switch.ports).map(|port| across(place, port));
            (format!("n{number}s{place}"), ports.collect())
        };
        let plans: Vec<(String, Vec<PortPeer>)> =
            network.switches.iter().enumerate().map(plan).collect();
        let sites = self.lab.network(&plans, &self.wiring).map_err(lab_error)?;
        let mut members = Vec::new();
        for (switch, site) in network.switches.iter().zip(sites) {
            let mut peer = self.maker(switch.kind, 1)();
            peer.start(&site).map_err(lab_error)?;
            let ControlInterface::OpenFlow { channel } = peer.ready(PATIENCE).map_err(lab_error)?
            else {
                let what = format!("switch {} has no control channel", switch.name);
                return Err(TargetError::CannotHold(what));
            };
            members.push(Member { switch, peer, channel, site });
        }
        let ends = network.instrument.iter().map(|end| end_at(&members, *end));
        let ports = ends.map(|end| self.opened(end)).collect::<Result<_, _>>()?;
        testbed::affinity::pin(0, &self.wiring.cores.instrument).map_err(lab_error)?;
        let mut rig = LiveRig::new(ports, RIG_KEY, Arc::clone(&self.stop));
        rig.agents = snmp::of_network(&self.parameters.witness)?;
        let (lab, stop) = (Arc::clone(&self.lab), Arc::clone(&self.stop));
        let (overdue, holds) = (DrainPolicy::default(), None);
        Ok(Box::new(NetworkOnVeth { target, network, lab, members, rig, overdue, holds, stop }))
    }
}

/// Returns the tester's end of the cable to a port.
fn end_at(members: &[Member], end: End) -> &Interface {
    let site = &members[end.switch].site;
    let name = format!("{}-{}", site.name, end.port);
    let found = site.instrument.iter().find(|interface| interface.name == name);
    found.expect("a port that no switch is joined to is joined to the instrument")
}

impl Target for NetworkOnVeth {
    fn kind(&self) -> TargetKind {
        TargetKind::Network(self.target)
    }

    fn describe(&self) -> Description {
        let mut settings = network::described(self.network);
        let mut versions: Vec<String> = Vec::new();
        for member in &self.members {
            let said = member.peer.describe();
            if !versions.contains(&said.version) {
                versions.push(said.version);
            }
            let own = said.settings.into_iter();
            settings.extend(own.map(|(name, it)| (format!("{} {name}", member.switch.name), it)));
        }
        Description { version: Some(versions.join(", ")), settings }
    }

    fn addresses(&self) -> Addresses {
        let end = |place: usize| self.network.instrument.get(place).copied();
        let near = |end: End| station_mac(end_at(&self.members, end).mac);
        let far = |end: End| self.members[end.switch].site.target[end.port as usize - 1].mac;
        Addresses {
            instrument: std::array::from_fn(|place| end(place).map_or([0; 6], near)),
            target: std::array::from_fn(|place| end(place).map_or([0; 6], far)),
        }
    }

    fn install(&mut self, setup: &Setup) -> Result<(), TargetError> {
        if self.holds.as_ref() == Some(setup) {
            return Ok(());
        }
        let addresses = self.addresses();
        for &hop in &self.network.path {
            let Member { switch, peer, channel, .. } = &mut self.members[hop.switch];
            install_flows(channel, &addresses, setup, hop, &self.stop)?;
            if matches!(switch.kind, TargetKind::Model(_)) {
                model::settle(peer.as_mut(), &self.stop)?;
            }
        }
        self.holds = Some(*setup);
        Ok(())
    }

    fn trial(&mut self, trial: &Trial) -> Result<TrialReport, RigError> {
        if drain::can_extend(trial) {
            return drain::trial(self, trial);
        }
        orders::trial(&mut self.rig, trial, &self.stop, |_| unreachable!())
    }

    fn stage(&mut self, module: &mut dyn Module) -> Result<StageReport, TargetError> {
        self.holds = None;
        let failed = |error| TargetError::failed("cannot connect to the switches", error);
        let urls = self.members.iter().map(|member| member.channel.parse());
        let urls: Vec<Url> = urls.collect::<Result<_, _>>().map_err(failed)?;
        let mut dialer = Dialer::new(&urls).map_err(failed)?;
        let scene = self.network.scene();
        Ok(self.rig.stage(module, &scene, &mut |wanted, now| dialer.connect(wanted, now)))
    }

    fn ask(&mut self, module: &mut dyn Module) -> Result<StageReport, TargetError> {
        Ok(alone(&mut self.rig, module))
    }

    fn snapshot(&mut self) -> Result<Snapshot, TargetError> {
        let mut snapshot = Snapshot::default();
        let here = Account::of(&self.lab.instrument).map_err(lab_error)?;
        let mut processes = Vec::new();
        for Member { switch, peer, site, .. } in &mut self.members {
            peer.check().map_err(lab_error)?;
            // The tester's ports report frames that they fail to send.
            for end in &site.instrument {
                if let Some(link) = here.links.get(&end.name) {
                    let key = (LossPlace::Kernel, end.name.clone(), "receive_dropped".to_string());
                    snapshot.drops.insert(key, link.receive_dropped);
                }
            }
            for (place, frames) in site.account().map_err(lab_error)?.losses() {
                let (at, reason) = place.split_once(' ').unwrap_or((&place, "lost"));
                let at = format!("{} {at}", switch.name);
                snapshot.drops.insert((LossPlace::Kernel, at, reason.to_string()), frames);
            }
            snapshot.add_of(&switch.name, peer.counters().map_err(lab_error)?);
            let core = site.wiring.cores.target.first().map(|&core| core as u32);
            for (index, pid) in peer.processes().into_iter().enumerate() {
                if let Some(time) = testbed::proc::cpu_time(pid) {
                    let name = format!("{} process {}", switch.name, index + 1);
                    snapshot.cpu_ns.insert(name, (time.as_nanos() as u64, core));
                }
                processes.push(pid);
            }
            for (index, pid) in site.target_threads().into_iter().enumerate() {
                if let Some(time) = testbed::proc::cpu_time(pid) {
                    let name = format!("{} receive thread {}", switch.name, index + 1);
                    snapshot.cpu_ns.insert(name, (time.as_nanos() as u64, core));
                }
            }
        }
        // The kernel also counts losses at packet sockets that their owners report; each loss is
        // counted once.
        snapshot.drops.retain(|(_, _, reason), _| reason != "socket_dropped");
        snapshot.add_memory(&processes);
        self.overdue.note(&snapshot);
        Ok(snapshot)
    }

    fn stop(mut self: Box<Self>) -> Result<(), TargetError> {
        let stopped: Vec<_> = self.members.iter_mut().map(|member| member.peer.stop()).collect();
        stopped.into_iter().try_for_each(|ended| ended.map_err(lab_error))
    }
}

impl AsyncTarget for NetworkOnVeth {
    fn overdue(&mut self) -> (&mut LiveRig, &mut DrainPolicy) {
        (&mut self.rig, &mut self.overdue)
    }
}
