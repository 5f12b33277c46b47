//! Several switches in this process, connected to each other and to the tester by in-memory rings
//! of frames.
//!
//! In virtual time every link serializes, those between switches too, and every switch has its own
//! service time. In real time, one thread on the target's core serves the switches in turn during a
//! trial.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use channel::{Channel, ChannelError};
use elements::control::request::{Request, Resource};
use elements::node::Node;
use netio::port::Port;
use os::clock;
use packet::frame::PortNo;
use packet::time::Nanos;
use testbed::affinity::{self, Cores};
use tester::controller::Controller;
use tester::executor::{ConnectionRequest, TopologyInfo};
use tester::module::{Module, StageReport};
use tester::rig::live::LiveRig;
use tester::rig::sim::{Device, SimRig};
use tester::rig::{Rig, RigError};
use tester::trial::{Trial, TrialReport};

use super::{
    CHANNEL_BYTES, MemoryBench, SERVE_INTERVAL, SimulatedNode, adopted, ask, installed, key_of,
    served,
};
use crate::name::TargetKind;
use crate::network::{End, Network, NetworkTarget};
use crate::{
    ADDRESSES, Description, Snapshot, Target, TargetError, alone, no_controller, orders, snmp,
};
use workload::{Addresses, Setup};

/// Switches in this process.
struct NetworkInMemory {
    target: NetworkTarget,
    network: &'static Network,
    rig: AnyRig,
    cores: Cores,
    /// Connections that stay open, as a controller's do.
    controllers: Vec<Controller>,
    holds: Option<Setup>,
    busy_ns: u64,
    stop: Arc<AtomicBool>,
}

enum AnyRig {
    Live(Box<LiveRig>, Vec<Node>),
    Simulated(Box<SimRig<Switches>>),
}

/// Switches in virtual time.
struct Switches(Vec<SimulatedNode>);

impl MemoryBench {
    /// Creates the switches of a network and connects them.
    pub(super) fn network(&self, target: NetworkTarget) -> Result<Box<dyn Target>, TargetError> {
        let network = target.network();
        if let Some(switch) = target.hindered_by(self.link) {
            let (name, kind) = (&switch.name, switch.kind.name());
            let link = self.link.name();
            let why = format!(
                "switch {name} ({kind}) does not support link {link} (hint: use --link veth)"
            );
            return Err(TargetError::CannotHold(why));
        }
        let mut ports: Vec<BTreeMap<PortNo, Box<dyn Port>>> = Vec::new();
        ports.resize_with(network.switches.len(), BTreeMap::new);
        let mut near = Vec::new();
        let services: Vec<_> = network.switches.iter().map(|it| self.service(it.kind)).collect();
        let at = |end: End, port| {
            let (service, time) = &services[end.switch];
            served(service, *time, port)
        };
        for end in &network.instrument {
            let name = &network.switches[end.switch].name;
            let (ours, theirs) = self.link_of(&format!("{name}-{}", end.port));
            near.push(ours);
            ports[end.switch].insert(end.port, at(*end, theirs));
        }
        for ends in &network.links {
            let [one, other] = ends.map(|end| &network.switches[end.switch].name);
            let (left, right) = self.link_of(&format!("{one}-{other}"));
            ports[ends[0].switch].insert(ends[0].port, at(ends[0], left));
            ports[ends[1].switch].insert(ends[1].port, at(ends[1], right));
        }
        let mut nodes = Vec::new();
        for ((switch, ports), id) in network.switches.iter().zip(ports).zip(1..) {
            let (node, _) = self.node(switch.kind, Some(id), ports.into_iter().collect())?;
            nodes.push(*node);
        }
        let kind = TargetKind::Network(target);
        let rig = if self.parameters.simulated {
            let each = nodes.into_iter().zip(services).map(|(node, (service, time))| {
                SimulatedNode::new(Some(Box::new(node)), service, time)
            });
            let switches = Switches(each.collect());
            // In virtual time, devices are not available either.
            snmp::of_network(&self.parameters.witness)?;
            snmp::simulated(&self.parameters.witness)?;
            let mut rig = SimRig::new(near, switches, key_of(kind));
            rig.stop = Arc::clone(&self.stop);
            AnyRig::Simulated(Box::new(rig))
        } else {
            affinity::pin(0, &self.cores.instrument).map_err(super::super::veth::lab_error)?;
            let mut rig = LiveRig::new(near, key_of(kind), Arc::clone(&self.stop));
            rig.agents = snmp::of_network(&self.parameters.witness)?;
            AnyRig::Live(Box::new(rig), nodes)
        };
        let (cores, stop) = (self.cores.clone(), Arc::clone(&self.stop));
        let (controllers, holds, busy_ns) = (Vec::new(), None, 0);
        Ok(Box::new(NetworkInMemory {
            target,
            network,
            rig,
            cores,
            controllers,
            holds,
            busy_ns,
            stop,
        }))
    }
}

impl Target for NetworkInMemory {
    fn kind(&self) -> TargetKind {
        TargetKind::Network(self.target)
    }

    fn describe(&self) -> Description {
        let version = Some(format!("planimeter {}", crate::VERSION));
        Description { version, settings: super::super::network::described(self.network) }
    }

    fn addresses(&self) -> Addresses {
        ADDRESSES
    }

    fn install(&mut self, setup: &Setup) -> Result<(), TargetError> {
        if self.holds.as_ref() == Some(setup) {
            return Ok(());
        }
        self.controllers.clear();
        for &hop in &self.network.path {
            match &mut self.rig {
                AnyRig::Live(_, nodes) => {
                    let at = (clock::now(), true);
                    let (made, _) = installed(&mut nodes[hop.switch], setup, hop, at, &self.stop)?;
                    self.controllers.push(made);
                }
                AnyRig::Simulated(rig) => {
                    let at = (rig.now(), false);
                    let node = rig.device.node(hop.switch);
                    let (made, span) = installed(node, setup, hop, at, &self.stop)?;
                    self.controllers.push(made);
                    // A model activates entries later than it accepts them.
                    let passed = rig.idle(span);
                    passed.map_err(|error| {
                        TargetError::failed("cannot advance virtual time", error)
                    })?;
                }
            }
        }
        self.holds = Some(*setup);
        Ok(())
    }

    fn trial(&mut self, trial: &Trial) -> Result<TrialReport, RigError> {
        if trial.streams.is_empty() {
            return Ok(orders::nothing_sent(trial));
        }
        let (rig, nodes) = match &mut self.rig {
            AnyRig::Simulated(rig) => return rig.trial(trial),
            AnyRig::Live(rig, nodes) => (rig, nodes),
        };
        let (done, cores) = (AtomicBool::new(false), &self.cores.target);
        std::thread::scope(|scope| {
            let worker = scope.spawn(|| {
                // If pinning is not permitted, the scheduler chooses the core.
                let _ = affinity::pin(0, cores);
                drive(nodes, |_, _| done.load(Ordering::Acquire))
            });
            let report = orders::trial(rig, trial, &self.stop, |_| unreachable!());
            done.store(true, Ordering::Release);
            self.busy_ns += worker.join().expect("a node does not panic").0;
            report
        })
    }

    fn stage(&mut self, module: &mut dyn Module) -> Result<StageReport, TargetError> {
        self.holds = None;
        self.controllers.clear();
        let (scene, count) = (self.network.scene(), self.network.switches.len());
        match &mut self.rig {
            AnyRig::Simulated(rig) => {
                Ok(rig.stage(module, &scene, &mut |switches: &mut Switches, wanted, now| {
                    is_there(wanted, count)?;
                    Ok(adopted(switches.node(wanted.switch), now))
                }))
            }
            AnyRig::Live(rig, nodes) => {
                let done = AtomicBool::new(false);
                let (made, making) = std::sync::mpsc::channel::<(usize, Box<dyn Channel>)>();
                let (done, cores) = (&done, &self.cores.target);
                let (report, busy) = std::thread::scope(|scope| {
                    let worker = scope.spawn(move || {
                        // If pinning is not permitted, the scheduler chooses the core.
                        let _ = affinity::pin(0, cores);
                        drive(nodes, |nodes, now| {
                            let adopt = |(switch, theirs): (usize, _)| {
                                nodes[switch].adopt(theirs, now);
                            };
                            making.try_iter().for_each(adopt);
                            done.load(Ordering::Acquire)
                        })
                    });
                    let report = rig.stage(module, &scene, &mut |wanted, _| {
                        is_there(wanted, count)?;
                        let (ours, theirs) = channel::memory::pair(CHANNEL_BYTES, "openflow");
                        let end: (usize, Box<dyn Channel>) = (wanted.switch, Box::new(theirs));
                        made.send(end).expect("the thread of the switches waits for the end");
                        Ok(Some(Box::new(ours)))
                    });
                    done.store(true, Ordering::Release);
                    (report, worker.join().expect("a node does not panic"))
                });
                self.busy_ns += busy.0;
                Ok(report)
            }
        }
    }

    fn ask(&mut self, module: &mut dyn Module) -> Result<StageReport, TargetError> {
        match &mut self.rig {
            AnyRig::Simulated(rig) => {
                Ok(rig.stage(module, &TopologyInfo::default(), &mut |_, _, _| Err(no_controller())))
            }
            AnyRig::Live(rig, _) => Ok(alone(rig, module)),
        }
    }

    fn snapshot(&mut self) -> Result<Snapshot, TargetError> {
        let mut snapshot = Snapshot::default();
        for (place, switch) in self.network.switches.iter().enumerate() {
            let (node, now) = match &mut self.rig {
                AnyRig::Live(_, nodes) => (&mut nodes[place], clock::now()),
                AnyRig::Simulated(rig) => {
                    let now = rig.now();
                    (rig.device.node(place), now)
                }
            };
            let answer = ask(node, Request::Get(Resource::Counters), now)?;
            snapshot.add_of(&switch.name, testbed::peer::planimeter::control::flatten(&answer));
        }
        if self.busy_ns > 0 {
            let core = self.cores.target.first().map(|&core| core as u32);
            snapshot.cpu_ns.insert("switches".into(), (self.busy_ns, core));
        }
        Ok(snapshot)
    }

    fn stop(self: Box<Self>) -> Result<(), TargetError> {
        Ok(())
    }
}

/// Verifies that the switch of a connection exists.
fn is_there(wanted: ConnectionRequest, count: usize) -> Result<(), ChannelError> {
    match wanted.switch < count {
        true => Ok(()),
        false => Err(ChannelError::Closed(format!("switch {}", wanted.switch + 1))),
    }
}

/// Runs switches in turn until `ends` returns true; returns how long they ran.
fn drive(nodes: &mut [Node], mut ends: impl FnMut(&mut [Node], Nanos) -> bool) -> Nanos {
    let begun = clock::now();
    let mut serve_at = Nanos::ZERO;
    loop {
        let now = clock::now();
        if ends(nodes, now) {
            return now.since(begun);
        }
        let serves = now >= serve_at;
        for node in nodes.iter_mut() {
            node.turn(clock::now());
            if serves {
                node.serve(clock::now());
                node.events.clear();
            }
        }
        if serves {
            serve_at = now.saturating_add(SERVE_INTERVAL);
        }
    }
}

impl Switches {
    fn node(&mut self, place: usize) -> &mut Node {
        self.0[place].node.as_deref_mut().expect("a switch of a network is a node")
    }
}

impl Device for Switches {
    fn step(&mut self, now: Nanos) -> Option<Nanos> {
        // A frame that one switch sends at this time reaches the next one in any order of the file.
        self.0.iter_mut().for_each(|switch| {
            switch.step(now);
        });
        self.0.iter_mut().filter_map(|switch| switch.step(now)).min()
    }
}
