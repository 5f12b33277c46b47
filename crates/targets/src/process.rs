//! A target in a process of its own, with the tester's ports on both sides.
//!
//! The benches of [`veth`](crate::veth) and [`memif`](crate::memif) start it and open the ports. A
//! target without OpenFlow is restarted for a new set-up, which clears the last one.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use packet::time::Nanos;
use testbed::Site;
use testbed::agent::Agent;
use testbed::peer::planimeter::router_mac;
use testbed::peer::{ControlInterface, Peer};
use tester::module::{Module, StageReport};
use tester::rig::RigError;
use tester::rig::live::LiveRig;
use tester::trial::{Trial, TrialReport};
use workload::parameter::Parameters;
use workload::parameter::control::Capture;
use workload::{Addresses, Setup, Technology};

use crate::drain::{self, AsyncTarget, DrainPolicy};
use crate::memif::{self, EASE, fill_caches, has_caches, tour};
use crate::name::TargetKind;
use crate::veth::{self, PeerFactory, give, lab_error};
use crate::{
    ADDRESSES, CacheFill, Description, Snapshot, Target, TargetError, mac_learning, orders,
    program_reload, reset, snmp,
};

/// Time limit for a target to start.
const PATIENCE: Duration = Duration::from_secs(20);

/// Links of a target.
pub enum Cable {
    /// Pairs of veth interfaces; a restarted target is a new peer.
    Veth(PeerFactory),
    /// Shared memory.
    Memif {
        /// Failed upcalls at the last snapshot.
        failed_upcalls: u64,
    },
}

/// A target with the tester on both sides.
pub struct ProcessTarget {
    kind: TargetKind,
    // Declared before the ports, so that it ends first: a DPDK program may exit when the clients of
    // its sockets disconnect.
    peer: Box<dyn Peer>,
    access: ControlInterface,
    rig: LiveRig,
    overdue: DrainPolicy,
    /// The SNMP agent that the lab started for it.
    agent: Option<Agent>,
    /// Capture settings of control channels.
    capture: Capture,
    site: Site,
    holds: Option<Setup>,
    cable: Cable,
    /// Time limit to fill its caches.
    patience: Nanos,
    stop: Arc<AtomicBool>,
}

impl ProcessTarget {
    /// Creates the target from a peer that is ready, and starts its SNMP agent.
    pub fn new(
        kind: TargetKind,
        (peer, access): (Box<dyn Peer>, ControlInterface),
        site: Site,
        mut rig: LiveRig,
        cable: Cable,
        (parameters, stop): (&Parameters, &Arc<AtomicBool>),
    ) -> Result<Self, TargetError> {
        let (agents, agent) = snmp::beside(&site, &parameters.witness)?;
        rig.agents = agents;
        Ok(ProcessTarget {
            kind,
            peer,
            access,
            rig,
            overdue: DrainPolicy::default(),
            agent,
            capture: parameters.control.capture,
            site,
            holds: None,
            cable,
            patience: Nanos::from_secs_f64(parameters.warm_s),
            stop: Arc::clone(stop),
        })
    }

    /// Runs a trial in which the target is stopped, restarted and configured again.
    ///
    /// The tester's ends of memif links reconnect until the target responds.
    fn trial_with_reset(&mut self, trial: &Trial, at: Nanos) -> Result<TrialReport, RigError> {
        let (setup, addresses) = (self.holds, self.addresses());
        let Self { kind, site, peer, access, rig, cable, stop, .. } = self;
        let cores = site.wiring.cores.clone();
        reset::trial(rig, trial, at, &cores, || {
            *access = restarted(peer, cable, site)?;
            let holds = |setup| give(*kind, access, peer.as_mut(), site, (&addresses, setup, stop));
            setup.as_ref().map_or(Ok(()), holds)
        })
    }

    /// Restarts the target, which clears its set-up.
    fn restart(&mut self) -> Result<(), TargetError> {
        self.access = restarted(&mut self.peer, &mut self.cable, &self.site)?;
        if let Cable::Memif { .. } = self.cable {
            let agents = std::mem::take(&mut self.rig.agents);
            self.rig = memif::rig(self.kind, self.peer.as_mut(), &self.site, &self.stop)?;
            self.rig.agents = agents;
        }
        Ok(())
    }

    /// Returns whether a new set-up requires a restart.
    fn restarts(&self) -> bool {
        match self.cable {
            Cable::Veth(_) => !matches!(self.access, ControlInterface::OpenFlow { .. }),
            Cable::Memif { .. } => matches!(self.access, ControlInterface::Control { .. }),
        }
    }

    /// Returns whether it would compete for the core while another target has its turn.
    fn polls(&self) -> bool {
        match self.cable {
            Cable::Veth(_) => self.site.wiring.xdp && self.kind != TargetKind::Direct,
            Cable::Memif { .. } => true,
        }
    }

    fn cpu(&self, snapshot: &mut Snapshot) {
        let processes = self.peer.processes();
        let core = self.site.wiring.cores.target.first().map(|&core| core as u32);
        let mut add = |name: String, pid: u32| {
            if let Some(time) = testbed::proc::cpu_time(pid) {
                snapshot.cpu_ns.insert(name, (time.as_nanos() as u64, core));
            }
        };
        for (index, &pid) in processes.iter().enumerate() {
            add(format!("process {}", index + 1), pid);
        }
        for (index, pid) in self.site.target_threads().into_iter().enumerate() {
            add(format!("receive thread {}", index + 1), pid);
        }
        snapshot.add_memory(&processes);
    }
}

/// Stops a peer and starts it, or another of its kind in its place.
fn restarted(
    peer: &mut Box<dyn Peer>,
    cable: &mut Cable,
    site: &Site,
) -> Result<ControlInterface, TargetError> {
    peer.stop().map_err(lab_error)?;
    if let Cable::Veth(remake) = cable {
        *peer = remake();
    }
    peer.start(site).map_err(lab_error)?;
    peer.ready(PATIENCE).map_err(lab_error)
}

impl Target for ProcessTarget {
    fn kind(&self) -> TargetKind {
        self.kind
    }

    fn describe(&self) -> Description {
        self.peer.describe().into()
    }

    fn addresses(&self) -> Addresses {
        match (&self.cable, self.kind.technology()) {
            (Cable::Veth(_), _) => veth::addresses(self.kind, &self.site),
            (Cable::Memif { .. }, Technology::Routing) => {
                Addresses { target: ADDRESSES.target.map(router_mac), ..ADDRESSES }
            }
            _ => ADDRESSES,
        }
    }

    fn install(&mut self, setup: &Setup) -> Result<(), TargetError> {
        if self.holds.as_ref() == Some(setup) {
            return Ok(());
        }
        if self.holds.is_some() && self.restarts() {
            self.restart()?;
        }
        let addresses = self.addresses();
        let what = (&addresses, setup, &self.stop);
        give(self.kind, &self.access, self.peer.as_mut(), &self.site, what)?;
        let Self { rig, peer, .. } = self;
        mac_learning::populate_mac_table(self.kind, setup, &addresses, |trial| {
            rig.run_low_priority(trial, EASE).map(drop).or_else(mac_learning::failed)?;
            peer.addresses_learned().map_err(lab_error)
        })?;
        self.holds = Some(*setup);
        Ok(())
    }

    fn warm(&mut self, trial: &Trial) -> Result<Option<CacheFill>, TargetError> {
        let Some(setup) = self.holds.filter(|_| has_caches(self.kind)) else { return Ok(None) };
        let tour = tour(&setup, &self.addresses(), trial);
        let Self { rig, peer, stop, .. } = self;
        fill_caches(rig, peer.as_mut(), &tour, self.patience, stop)
    }

    fn trial(&mut self, trial: &Trial) -> Result<TrialReport, RigError> {
        if let Some(at) = trial.reset_at {
            return self.trial_with_reset(trial, at);
        }
        if let (ControlInterface::Control { socket }, 1..) = (&self.access, trial.swaps) {
            return program_reload::trial(&mut self.rig, trial, socket, &self.stop);
        }
        if drain::can_extend(trial) {
            return drain::trial(self, trial);
        }
        let channel = match &self.access {
            ControlInterface::OpenFlow { channel } => channel.as_str(),
            _ => "",
        };
        orders::trial(&mut self.rig, trial, &self.stop, |script| orders::connected(channel, script))
    }

    fn stage(&mut self, module: &mut dyn Module) -> Result<StageReport, TargetError> {
        if matches!(self.access, ControlInterface::OpenFlow { .. }) {
            self.holds = None;
        }
        let captured = (self.capture != Capture::No).then_some((&self.site, self.capture));
        crate::stage(&mut self.rig, &self.access, module, captured)
    }

    fn ask(&mut self, module: &mut dyn Module) -> Result<StageReport, TargetError> {
        Ok(crate::alone(&mut self.rig, module))
    }

    fn resume(&mut self) {
        if self.polls() {
            self.peer.release();
        }
    }

    fn suspend(&mut self) {
        if self.polls() {
            self.peer.hold();
        }
    }

    fn snapshot(&mut self) -> Result<Snapshot, TargetError> {
        self.peer.check().map_err(lab_error)?;
        let mut snapshot = match &mut self.cable {
            Cable::Veth(_) => veth::read(self.kind, self.peer.as_mut(), &self.site)?,
            Cable::Memif { failed_upcalls } => {
                memif::read(self.kind, self.peer.as_mut(), failed_upcalls)?
            }
        };
        self.cpu(&mut snapshot);
        self.overdue.note(&snapshot);
        Ok(snapshot)
    }

    fn stop(mut self: Box<Self>) -> Result<(), TargetError> {
        self.agent.as_mut().map_or(Ok(()), Agent::stop).map_err(lab_error)?;
        self.peer.release();
        self.peer.stop().map_err(lab_error)
    }
}

impl AsyncTarget for ProcessTarget {
    fn overdue(&mut self) -> (&mut LiveRig, &mut DrainPolicy) {
        (&mut self.rig, &mut self.overdue)
    }
}
