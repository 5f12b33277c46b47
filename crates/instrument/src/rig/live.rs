//! Real ports in real time: one thread that sends, receives and looks at the clock.
//!
//! It spins: waiting would cost tens of microseconds just when a frame is due. The other core
//! belongs to the target. Sending looks at the clock first, and receiving again, so that a batch
//! that takes long to send does not date what arrived meanwhile. Where a port takes no stamps, what
//! is found to have arrived is dated before it is looked at: at most 64 frames by one look at the
//! clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use packet::time::Nanos;
use ports::port::Port;
use ports::{clock, steal};

use crate::gauge::{self, GAUGE};
use crate::rig::engine::{Engine, Prepared, RECEIVE_FRAMES};
use crate::rig::{Rig, RigError, RigKind};
use crate::signature::EPOCHS;
use crate::stage::agents::Agent;
use crate::stage::hosts::Hosts;
use crate::trial::{Trial, TrialReport};

/// Time between setting a trial up and its first frame.
const LEAD: Nanos = Nanos::from_millis(2);

/// How often what has arrived is taken before the next frames are sent, as long as there is much.
const RECEIVE_ROUNDS: usize = 16;

/// How often at most what waits is taken when the trial is over: a target that floods ends nothing.
const LAST_ROUNDS: usize = 1024;

/// A rig of real ports.
pub struct LiveRig {
    pub(crate) ports: Vec<Box<dyn Port>>,
    /// Agents that a module can ask.
    pub agents: Vec<Agent>,
    /// Hosts that a module can send on errands, where the links let them stand there.
    pub hosts: Option<Box<dyn Hosts>>,
    pub(crate) key: u64,
    pub(crate) epoch: u16,
    pub(crate) stop: Arc<AtomicBool>,
}

/// A trial whose frames are sent and whose drain is over, but which is not closed: what is still under way can
/// be waited for.
pub struct Open {
    engine: Engine,
    stolen: Option<Nanos>,
}

impl Open {
    /// How long it drained.
    pub fn drain(&self) -> Nanos {
        self.engine.drain()
    }
}

impl LiveRig {
    /// A rig over these ports, whose frames are signed with the run's `key`. Whoever sets `stop`
    /// ends a trial in progress.
    pub fn new(ports: Vec<Box<dyn Port>>, key: u64, stop: Arc<AtomicBool>) -> Self {
        LiveRig { ports, agents: Vec::new(), hosts: None, key, epoch: 0, stop }
    }

    /// As [`Rig::trial`], for low loads: rests for `pause` between looks, so that others have the
    /// core meanwhile. Frames leave in small bursts, and latencies hold the pause.
    pub fn trial_at_ease(&mut self, trial: &Trial, pause: Nanos) -> Result<TrialReport, RigError> {
        self.epoch = (self.epoch + 1) % EPOCHS;
        let ports = &mut self.ports[..];
        ports.iter_mut().for_each(|port| port.hand_over_promptly(false));
        let prepared = Prepared::new(trial, ports, self.key)?;
        let start = clock::now().saturating_add(LEAD);
        let mut engine = Engine::new(prepared, ports, self.epoch, start);
        while clock::now() < engine.ends_at() {
            while engine.send(ports, clock::now())? > 0 {}
            while engine.receive(ports, clock::now(), clock::now)? > 0 {}
            clock::sleep_until(clock::now().saturating_add(pause));
            engine.rest(clock::now());
            if self.stop.load(Ordering::Relaxed) {
                return Err(RigError::Interrupted);
            }
        }
        Ok(engine.finish(ports))
    }

    /// As [`Rig::trial`], but whoever stops it gets the report of what was sent until then, and is told
    /// so.
    pub fn trial_until_stopped(&mut self, trial: &Trial) -> Result<(TrialReport, bool), RigError> {
        let stop = Arc::clone(&self.stop);
        let report = self.play(trial, |engine, now| {
            engine.stop(now);
            Ok(())
        })?;
        Ok((report, stop.load(Ordering::Relaxed)))
    }

    /// As [`Rig::trial`], but leaves the trial open.
    pub fn open(&mut self, trial: &Trial) -> Result<Open, RigError> {
        self.begin(trial, |_, _| Err(RigError::Interrupted))
    }

    /// Frames of an open trial that did not come back, and that the tester's ports have not lost, as far as none
    /// came back twice.
    pub fn missing(&mut self, open: &Open) -> u64 {
        open.engine.missing(&mut self.ports)
    }

    /// Waits for frames of an open trial for so long from now on.
    pub fn go_on(&mut self, mut open: Open, span: Nanos) -> Result<Open, RigError> {
        let now = clock::now();
        open.engine.prolong(now, now.saturating_add(span));
        match self.drive(&mut open.engine, |_, _| Err(RigError::Interrupted)) {
            Ok(()) => Ok(open),
            Err(error) => Err(open.engine.broken(&mut self.ports, clock::now(), error)),
        }
    }

    /// Ends an open trial.
    pub fn close(&mut self, open: Open) -> TrialReport {
        let mut report = open.engine.finish(&mut self.ports);
        let taken = open.stolen.zip(steal::total());
        report.stalls.ns_stolen = taken.map(|(before, after)| after.since(before).0);
        report
    }

    /// A whole trial. Where it is stopped, `on_stop` ends the sending or refuses to go on.
    fn play(
        &mut self,
        trial: &Trial,
        on_stop: impl Fn(&mut Engine, Nanos) -> Result<(), RigError>,
    ) -> Result<TrialReport, RigError> {
        let open = self.begin(trial, on_stop)?;
        Ok(self.close(open))
    }

    fn begin(
        &mut self,
        trial: &Trial,
        on_stop: impl Fn(&mut Engine, Nanos) -> Result<(), RigError>,
    ) -> Result<Open, RigError> {
        self.epoch = (self.epoch + 1) % EPOCHS;
        let ports = &mut self.ports[..];
        ports.iter_mut().for_each(|port| port.hand_over_promptly(false));
        let prepared = Prepared::new(trial, ports, self.key)?;
        let start = clock::now().saturating_add(LEAD);
        let mut engine = Engine::new(prepared, ports, self.epoch, start);
        let stolen = steal::total();
        GAUGE.begin(clock::now(), self.ports.len());
        match self.drive(&mut engine, on_stop) {
            Ok(()) => Ok(Open { engine, stolen }),
            Err(error) => Err(engine.broken(&mut self.ports, clock::now(), error)),
        }
    }

    /// Sends and receives until all is over.
    fn drive(
        &mut self,
        engine: &mut Engine,
        on_stop: impl Fn(&mut Engine, Nanos) -> Result<(), RigError>,
    ) -> Result<(), RigError> {
        let ports = &mut self.ports[..];
        let (mut now, mut is_stopped) = (clock::now(), false);
        let mut shown_at = now;
        while now < engine.ends_at() {
            if self.stop.load(Ordering::Relaxed) && !is_stopped {
                is_stopped = true;
                on_stop(engine, now)?;
            }
            engine.send(ports, now)?;
            for _ in 0..RECEIVE_ROUNDS {
                now = clock::now();
                if engine.receive(ports, now, clock::now)? < RECEIVE_FRAMES {
                    break;
                }
            }
            now = clock::now();
            if now.since(shown_at) >= gauge::EVERY {
                engine.show(&GAUGE, now);
                shown_at = now;
            }
        }
        // A tester that was away when time was over still finds what had come by then.
        for _ in 0..LAST_ROUNDS {
            if engine.receive(ports, clock::now(), clock::now)? == 0 {
                break;
            }
        }
        engine.show(&GAUGE, clock::now());
        Ok(())
    }

    /// The ports, for whoever has to use them between trials.
    pub fn ports_mut(&mut self) -> &mut [Box<dyn Port>] {
        &mut self.ports
    }
}

impl Rig for LiveRig {
    fn trial(&mut self, trial: &Trial) -> Result<TrialReport, RigError> {
        self.play(trial, |_, _| Err(RigError::Interrupted))
    }

    fn ports(&self) -> usize {
        self.ports.len()
    }

    fn kind(&self) -> RigKind {
        RigKind::Live
    }
}
