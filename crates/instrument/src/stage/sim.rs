//! A stage in virtual time: a device and the module take turns, and the clock jumps from event to event.
//!
//! As in trials ([`crate::rig::sim`]), nothing depends on the host's speed or clock: the same module and
//! the same device give the same report. Reacting takes no time.
//!
//! Invariants: a module ends after [`MOMENTS_MAX`] moments, whatever it waits for; every loop ends when the rig is
//! told to stop.

use std::sync::atomic::Ordering;

use packet::time::Nanos;
use ports::channel::{Channel, ChannelError};

use crate::module::{Ended, Module, Signer, StageReport};
use crate::rig::RigError;
use crate::rig::sim::{Device, SimRig, TURNS_MAX};
use crate::signature::EPOCHS;
use crate::stage::agents::Agent;
use crate::stage::{Scene, Stage, Wanted, World};

/// Moments of virtual time in which something may happen before a module is ended: some minutes of real time. A
/// module's own limit is one of virtual time, which says nothing about how long the host is busy with it.
pub const MOMENTS_MAX: u64 = 1 << 28;

/// The name of this limit in a report.
const MOMENTS_LIMIT: &str = "MOMENTS_MAX";

/// Makes a connection to a device, at once.
pub type ConnectTo<'a, D> =
    &'a mut dyn FnMut(&mut D, Wanted, Nanos) -> Result<Box<dyn Channel>, ChannelError>;

impl<D: Device> SimRig<D> {
    /// Carries a module out, from making its connections to its last words.
    pub fn stage(
        &mut self,
        module: &mut dyn Module,
        scene: &Scene,
        connect: ConnectTo<'_, D>,
    ) -> StageReport {
        self.epoch = (self.epoch + 1) % EPOCHS;
        let signer = Signer::new(self.key, self.epoch);
        // Hosts are systems of this machine, which know no other time than its own.
        let (ports, agents) = (&mut self.ports[..], &self.agents[..]);
        let mut stage =
            Stage::new(module.needs(), scene, signer, (ports, agents, false), self.now, true)
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
                // Between the events of its time it misses nothing.
                stage.rest(self.now);
            }
            was_away = away.is_some();
            let settled = match away {
                Some(until) => self.device_alone().map(|wake| {
                    self.now = wake.map_or(until, |at| at.min(until));
                }),
                None => self.settle_stage(&mut stage, module, connect),
            };
            // What is still under way would come at no moment.
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

    /// Lets module and device take turns until neither has anything to do at this moment, and goes on
    /// to the next.
    fn settle_stage(
        &mut self,
        stage: &mut Stage,
        module: &mut dyn Module,
        connect: ConnectTo<'_, D>,
    ) -> Result<(), RigError> {
        for _ in 0..TURNS_MAX {
            self.check_stop()?;
            let now = self.now;
            self.clock.store(now.0, Ordering::Relaxed);
            let device = &mut self.device;
            let mut dial = |wanted: Wanted, now: Nanos| connect(device, wanted, now).map(Some);
            let mut world = World {
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
            // What the device has just done is seen before time goes on.
            let mut dial =
                |wanted: Wanted, now: Nanos| connect(&mut self.device, wanted, now).map(Some);
            let mut world = World {
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
            self.now = coming.expect("a stage that goes on has an end");
            return Ok(());
        }
        Err(RigError::Restless(self.now))
    }
}
