//! Event loop in virtual time: device and module alternate, and the clock jumps between events.
//!
//! As in trials ([`crate::rig::sim`]), results do not depend on the host's speed or clock: the same
//! module and device give the same report. A module's reaction takes no time.
//!
//! Invariants:
//!
//! - A module ends after [`MOMENTS_MAX`] virtual times.
//! - Every loop ends when the rig is stopped.

use std::sync::atomic::Ordering;

use channel::{Channel, ChannelError};
use packet::time::Nanos;

use crate::executor::{ConnectionRequest, ExecutorIo, ModuleExecutor, TopologyInfo};
use crate::module::{Ended, Module, Signer, StageReport};
use crate::rig::RigError;
use crate::rig::agents::Agent;
use crate::rig::sim::{Device, SimRig, TURNS_MAX};
use crate::signature::EPOCHS;

/// Name of this limit in a report.
const MOMENTS_LIMIT: &str = "MOMENTS_MAX";

/// Opens a connection to a device immediately.
pub type ConnectTo<'a, D> =
    &'a mut dyn FnMut(&mut D, ConnectionRequest, Nanos) -> Result<Box<dyn Channel>, ChannelError>;

impl<D: Device> SimRig<D> {
    /// Runs a module, from opening its connections to its `finish`.
    pub fn stage(
        &mut self,
        module: &mut dyn Module,
        scene: &TopologyInfo,
        connect: ConnectTo<'_, D>,
    ) -> StageReport {
        self.epoch = (self.epoch + 1) % EPOCHS;
        let signer = Signer::new(self.key, self.epoch);
        // Hosts are systems of this machine and cannot run in virtual time.
        let (ports, agents) = (&mut self.ports[..], &self.agents[..]);
        let mut stage = ModuleExecutor::new(
            module.needs(),
            scene,
            signer,
            (ports, agents, false),
            self.now,
            true,
        )
        .shown_on(self.gauge, self.now);
        let (mut was_away, mut moments) = (false, 0);
        while !stage.is_over() {
            moments += 1;
            if moments > self.moments_max {
                stage.interrupt(Ended::Limit(MOMENTS_LIMIT), self.now);
                break;
            }
            let away = self.away_until();
            if !was_away {
                // Between events of virtual time the tester misses nothing.
                stage.rest(self.now);
            }
            was_away = away.is_some();
            let settled = match away {
                Some(until) => self.device_alone().map(|wake| {
                    self.now = wake.map_or(until, |at| at.min(until));
                }),
                None => self.settle_stage(&mut stage, module, connect),
            };
            // Outstanding frames cannot arrive any more.
            match settled {
                Err(RigError::Restless(now)) => stage.interrupt(Ended::Restless(now), now),
                Err(_) => stage.interrupt(Ended::Interrupted, self.now),
                Ok(()) => continue,
            }
            break;
        }
        self.agents.iter_mut().for_each(Agent::forget);
        stage.finish(module, &mut self.ports)
    }

    /// Alternates module and device until both are idle at this time, then advances to the next
    /// event.
    fn settle_stage(
        &mut self,
        stage: &mut ModuleExecutor,
        module: &mut dyn Module,
        connect: ConnectTo<'_, D>,
    ) -> Result<(), RigError> {
        for _ in 0..TURNS_MAX {
            self.check_stop()?;
            let now = self.now;
            self.clock.store(now.0, Ordering::Relaxed);
            let device = &mut self.device;
            let mut dial =
                |wanted: ConnectionRequest, now: Nanos| connect(device, wanted, now).map(Some);
            let mut world = ExecutorIo {
                ports: &mut self.ports,
                module,
                agents: &mut self.agents,
                hosts: None,
                connect: &mut dial,
                clock: &mut || now,
            };
            let moved = stage.turn(&mut world);
            if stage.is_over() {
                return Ok(());
            }
            let wake = self.device.step(now);
            if moved || wake.is_some_and(|at| at <= now) {
                continue;
            }
            // Processes the device's last output before time advances.
            let mut dial = |wanted: ConnectionRequest, now: Nanos| {
                connect(&mut self.device, wanted, now).map(Some)
            };
            let mut world = ExecutorIo {
                ports: &mut self.ports,
                module,
                agents: &mut self.agents,
                hosts: None,
                connect: &mut dial,
                clock: &mut || now,
            };
            if stage.turn(&mut world) {
                continue;
            }
            if stage.is_over() {
                return Ok(());
            }
            let leaves = self.away.front().map(|&(from, _)| from);
            let inside = self.ports.iter().map(|port| port.next_event());
            let events = [wake, stage.next_event(), leaves].into_iter().chain(inside);
            let coming = events.flatten().filter(|&at| at > now).min();
            self.now = coming.expect("an active event loop has a next event");
            return Ok(());
        }
        Err(RigError::Restless(self.now))
    }
}
