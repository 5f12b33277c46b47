//! Rig of real ports in real time: one thread sends, receives and reads the clock.
//!
//! It busy-polls, because a wakeup would cost tens of microseconds just when a frame is due. The
//! other core is for the target. Where ports send ahead ([`netio::port::Port::send_ahead`]), it
//! sleeps between two polls instead. The clock is read before sending and again before receiving, so
//! that a slow send does not distort receive times. Where a port takes no timestamps, received
//! frames get the time before the receive call: at most 64 frames per clock read.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use netio::port::Port;
use os::{clock, steal};
use packet::time::{Clock, Nanos};

use crate::gauge::{self, GAUGE};
use crate::rig::agents::Agent;
use crate::rig::engine::{Engine, RECEIVE_FRAMES, ReadyTrial};
use crate::rig::hosts::Hosts;
use crate::rig::{Rig, RigError, RigKind};
use crate::signature::EPOCHS;
use crate::trial::{Trial, TrialReport};

/// Time between the setup of a trial and its first frame.
const LEAD: Nanos = Nanos::from_millis(2);

/// Maximum number of receive rounds before the next send, as long as batches are full.
const RECEIVE_ROUNDS: usize = 16;

/// Maximum number of batches per port that are handed over in a row to ports that send ahead.
const SEND_ROUNDS_AHEAD: usize = 64;

/// Number of sleeps in the time by which ports send ahead.
const PAUSES_AHEAD: u64 = 4;

/// Maximum number of receive rounds after the drain, so that a flooding target cannot block the
/// end.
const FINAL_POLLS_MAX: usize = 1024;

/// Rig of real ports.
pub struct LiveRig {
    pub(crate) ports: Vec<Box<dyn Port>>,
    /// Agents that a module can query.
    pub agents: Vec<Agent>,
    /// Hosts for tasks of modules, if the links support them.
    pub hosts: Option<Box<dyn Hosts>>,
    pub(crate) key: u64,
    pub(crate) epoch: u16,
    pub(crate) stop: Arc<AtomicBool>,
}

/// A trial after its drain whose report is not made yet, so that the drain can be extended.
pub struct UnreportedTrial {
    engine: Engine,
    stolen: Option<Nanos>,
}

impl UnreportedTrial {
    /// Returns the drain time.
    pub fn drain(&self) -> Nanos {
        self.engine.drain()
    }
}

impl LiveRig {
    /// Creates a rig over these ports. Its frames are signed with the run's `key`.
    ///
    /// Setting `stop` ends a trial in progress.
    pub fn new(ports: Vec<Box<dyn Port>>, key: u64, stop: Arc<AtomicBool>) -> Self {
        LiveRig { ports, agents: Vec::new(), hosts: None, key, epoch: 0, stop }
    }

    /// Like [`Rig::trial`], for low loads: sleeps for `pause` in each iteration to free the core.
    ///
    /// Frames leave in small bursts, and latencies include the pause.
    pub fn run_low_priority(
        &mut self,
        trial: &Trial,
        pause: Nanos,
    ) -> Result<TrialReport, RigError> {
        self.epoch = (self.epoch + 1) % EPOCHS;
        let ports = &mut self.ports[..];
        ports.iter_mut().for_each(|port| port.set_low_latency(false));
        let prepared = ReadyTrial::new(trial, ports, self.key)?;
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

    /// Like [`Rig::trial`], but returns the report so far if the trial is stopped, and whether it
    /// was.
    pub fn trial_until_stopped(&mut self, trial: &Trial) -> Result<(TrialReport, bool), RigError> {
        let stop = Arc::clone(&self.stop);
        let report = self.play(trial, |engine, now| {
            engine.stop(now);
            Ok(())
        })?;
        Ok((report, stop.load(Ordering::Relaxed)))
    }

    /// Like [`Rig::trial`], but leaves the trial open.
    pub fn open(&mut self, trial: &Trial) -> Result<UnreportedTrial, RigError> {
        self.begin(trial, |_, _| Err(RigError::Interrupted))
    }

    /// Returns the number of an open trial's missing frames: not received, and not dropped by the
    /// tester's ports. Duplicates reduce this number.
    pub fn missing(&mut self, open: &UnreportedTrial) -> u64 {
        open.engine.missing(&mut self.ports)
    }

    /// Extends the drain of an open trial by `span` from now on.
    pub fn go_on(
        &mut self,
        mut open: UnreportedTrial,
        span: Nanos,
    ) -> Result<UnreportedTrial, RigError> {
        let now = clock::now();
        open.engine.extend(now, now.saturating_add(span));
        match self.drive(&mut open.engine, |_, _| Err(RigError::Interrupted)) {
            Ok(()) => Ok(open),
            Err(error) => Err(open.engine.broken(&mut self.ports, clock::now(), error)),
        }
    }

    /// Ends an open trial.
    pub fn close(&mut self, open: UnreportedTrial) -> TrialReport {
        let mut report = open.engine.finish(&mut self.ports);
        let taken = open.stolen.zip(steal::total());
        report.stalls.ns_stolen = taken.map(|(before, after)| after.since(before).0);
        report
    }

    /// Runs a whole trial. On a stop, `on_stop` ends the sending or returns an error.
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
    ) -> Result<UnreportedTrial, RigError> {
        self.epoch = (self.epoch + 1) % EPOCHS;
        let ports = &mut self.ports[..];
        ports.iter_mut().for_each(|port| port.set_low_latency(false));
        let prepared = ReadyTrial::new(trial, ports, self.key)?;
        let start = clock::now().saturating_add(LEAD);
        let mut engine = Engine::new(prepared, ports, self.epoch, start);
        let stolen = steal::total();
        GAUGE.begin(clock::now(), self.ports.len());
        match self.drive(&mut engine, on_stop) {
            Ok(()) => Ok(UnreportedTrial { engine, stolen }),
            Err(error) => Err(engine.broken(&mut self.ports, clock::now(), error)),
        }
    }

    /// Sends and receives until the end of the drain.
    fn drive(
        &mut self,
        engine: &mut Engine,
        on_stop: impl Fn(&mut Engine, Nanos) -> Result<(), RigError>,
    ) -> Result<(), RigError> {
        // A sleep would distort arrival times that are taken when a frame is found.
        let mut stamps = self.ports.iter().map(|port| port.facts().stamps);
        let ahead = match stamps.all(|clock| clock != Clock::UserSpace) {
            true => engine.start_ahead(&mut self.ports),
            false => Nanos::ZERO,
        };
        let result = self.drive_ahead(engine, on_stop, ahead);
        if ahead > Nanos::ZERO {
            self.ports.iter_mut().for_each(|port| {
                port.send_ahead(false);
            });
            engine.rest(clock::now());
        }
        result?;
        // A stall can last until here. Frames still due then would be sent in a longer drain.
        engine.end_sending();
        // Receives frames that arrived in time while the tester was stalled.
        for _ in 0..FINAL_POLLS_MAX {
            if engine.receive(&mut self.ports, clock::now(), clock::now)? == 0 {
                break;
            }
        }
        engine.show(&GAUGE, clock::now());
        Ok(())
    }

    /// Sends and receives until the end of the drain. Where ports send ahead, sleeps as long as
    /// they have enough frames: their work needs the core.
    fn drive_ahead(
        &mut self,
        engine: &mut Engine,
        on_stop: impl Fn(&mut Engine, Nanos) -> Result<(), RigError>,
        ahead: Nanos,
    ) -> Result<(), RigError> {
        let ports = &mut self.ports[..];
        let (mut now, mut is_stopped) = (clock::now(), false);
        let mut shown_at = now;
        let pause = Nanos(ahead.0 / PAUSES_AHEAD);
        let rounds = if ahead > Nanos::ZERO { SEND_ROUNDS_AHEAD } else { 1 };
        let mut _priority = None;
        if ahead > Nanos::ZERO {
            // Without these, the sleep is longer: the ports run out of frames.
            let _ = os::core::wake_on_time();
            let _ = os::core::take_short_slices();
            _priority = os::core::RealTimePriority::take().ok();
        }
        while now < engine.ends_at() {
            if self.stop.load(Ordering::Relaxed) && !is_stopped {
                is_stopped = true;
                on_stop(engine, now)?;
            }
            for _ in 0..rounds {
                if engine.send(ports, now)? == 0 {
                    break;
                }
            }
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
            if ahead > Nanos::ZERO {
                clock::sleep_until(now.saturating_add(pause));
                now = clock::now();
                engine.rest(now);
            }
        }
        Ok(())
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
