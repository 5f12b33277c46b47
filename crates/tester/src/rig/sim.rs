//! Rig in virtual time: device and tester alternate, and the clock jumps between events.
//!
//! Results do not depend on the host's speed or clock: the same trial of the same device gives the
//! same report to the byte. A report shows the model's behavior, never a measurement.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use netio::port::Port;
use packet::time::Nanos;

use crate::gauge::{GAUGE, Gauge, SPARSE};
use crate::rig::agents::Agent;
use crate::rig::engine::{Engine, ReadyTrial};
use crate::rig::{Rig, RigError, RigKind};
use crate::signature::EPOCHS;
use crate::trial::{Trial, TrialReport};

/// Maximum number of virtual times with events in a module's run: some minutes of real time.
///
/// A module's own time limit is virtual, and does not bound the host's work.
pub const MOMENTS_MAX: u64 = 1 << 28;

/// Maximum iterations of tester and device at one virtual time. With more, the rig reports
/// `Restless`.
pub(crate) const TURNS_MAX: u32 = 100_000;

/// A simulated device at the other ends of the rig's ports.
pub trait Device {
    /// Processes events at `now`: takes arrived frames and sends frames that are ready.
    ///
    /// Returns when the device is active next without further input: `now` for immediately, none if
    /// it only waits for input.
    fn step(&mut self, now: Nanos) -> Option<Nanos>;
}

/// Rig of simulated ports around a device.
pub struct SimRig<D> {
    pub(crate) ports: Vec<Box<dyn Port>>,
    /// Agents that a module can query. Their other ends are in the device.
    pub agents: Vec<Agent>,
    /// The device. The experiment's driver can access it between trials.
    pub device: D,
    /// Gauge for live counters: the process-wide one by default.
    pub gauge: &'static Gauge,
    /// Virtual time in nanoseconds, for components that take timestamps.
    pub clock: Arc<AtomicU64>,
    /// Ends the trial or module in progress when set, within any loop.
    pub stop: Arc<AtomicBool>,
    /// Maximum number of virtual times of a module.
    pub moments_max: u64,
    pub(crate) now: Nanos,
    pub(crate) key: u64,
    pub(crate) epoch: u16,
    /// Simulated stalls of the tester (start and end), in order.
    pub(crate) away: VecDeque<(Nanos, Nanos)>,
}

impl<D: Device> SimRig<D> {
    /// Creates a rig at time zero whose `ports` have their other ends in `device`.
    pub fn new(ports: Vec<Box<dyn Port>>, device: D, key: u64) -> Self {
        SimRig {
            ports,
            agents: Vec::new(),
            device,
            gauge: &GAUGE,
            clock: Arc::default(),
            stop: Arc::default(),
            moments_max: MOMENTS_MAX,
            now: Nanos::ZERO,
            key,
            epoch: 0,
            away: VecDeque::new(),
        }
    }

    /// Returns an error if the user requested a stop.
    pub(crate) fn check_stop(&self) -> Result<(), RigError> {
        match self.stop.load(Ordering::Relaxed) {
            true => Err(RigError::Interrupted),
            false => Ok(()),
        }
    }

    /// Returns the virtual time.
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// Runs the device alone for `span`. The next trial drops what it sends as stale or foreign.
    pub fn idle(&mut self, span: Nanos) -> Result<(), RigError> {
        let end = self.now.saturating_add(span);
        while let Some(at) = self.device_alone()?.filter(|&at| at < end) {
            self.now = at;
        }
        self.now = end;
        Ok(())
    }

    /// Schedules a stall of the tester for `span`, starting `after` this time, as if its thread
    /// lost its core. The device continues. A later stall must not start before the previous one
    /// ends.
    pub fn pause_tester(&mut self, after: Nanos, span: Nanos) {
        let from = self.now.saturating_add(after);
        self.away.push_back((from, from.saturating_add(span)));
    }

    /// Returns the end of the current simulated stall, if any.
    pub(crate) fn away_until(&mut self) -> Option<Nanos> {
        while self.away.front().is_some_and(|&(_, until)| until <= self.now) {
            self.away.pop_front();
        }
        self.away.front().filter(|&&(from, _)| from <= self.now).map(|&(_, until)| until)
    }

    /// Runs the device alone at this virtual time. Returns when it is active next.
    pub(crate) fn device_alone(&mut self) -> Result<Option<Nanos>, RigError> {
        self.clock.store(self.now.0, Ordering::Relaxed);
        for _ in 0..TURNS_MAX {
            self.check_stop()?;
            match self.device.step(self.now) {
                Some(at) if at <= self.now => {}
                wake => return Ok(wake),
            }
        }
        Err(RigError::Restless(self.now))
    }

    /// Alternates tester and device until both are idle at this time. Returns when the device is
    /// active next.
    fn settle(&mut self, engine: &mut Engine) -> Result<Option<Nanos>, RigError> {
        for _ in 0..TURNS_MAX {
            self.check_stop()?;
            // Receiving first releases frames that a slow or delaying port has buffered until now.
            let now = self.now;
            let mut received = engine.receive(&mut self.ports, now, || now)?;
            let sent = engine.send(&mut self.ports, self.now)?;
            let wake = self.device.step(self.now);
            received += engine.receive(&mut self.ports, now, || now)?;
            let is_quiet = wake.is_none_or(|at| at > self.now);
            if sent == 0 && received == 0 && is_quiet {
                return Ok(wake);
            }
        }
        Err(RigError::Restless(self.now))
    }
}

impl<D: Device> Rig for SimRig<D> {
    fn trial(&mut self, trial: &Trial) -> Result<TrialReport, RigError> {
        self.epoch = (self.epoch + 1) % EPOCHS;
        let ports = &mut self.ports[..];
        let prepared = ReadyTrial::new(trial, ports, self.key)?.waiting_for_files();
        let mut engine = Engine::new(prepared, ports, self.epoch, self.now);
        self.gauge.begin(self.now, ports.len());
        let (mut was_away, mut shown_at) = (false, self.now);
        loop {
            if self.now.since(shown_at) >= SPARSE {
                engine.show(self.gauge, self.now);
                shown_at = self.now;
            }
            let away = self.away_until();
            if !was_away {
                // Between events of virtual time the tester misses nothing.
                engine.rest(self.now);
            }
            was_away = away.is_some();
            if let Some(until) = away {
                self.now = self.device_alone()?.map_or(until, |at| at.min(until));
                continue;
            }
            let wake = match self.settle(&mut engine) {
                Ok(wake) => wake,
                Err(RigError::Interrupted) => return Err(RigError::Interrupted),
                Err(error) => return Err(engine.broken(&mut self.ports, self.now, error)),
            };
            let ends_at = engine.ends_at();
            if self.now >= ends_at {
                engine.show(self.gauge, self.now);
                return Ok(engine.finish(&mut self.ports));
            }
            let leaves = self.away.front().map(|&(from, _)| from);
            let events = [wake, engine.next_due(), Some(engine.closes_at()), leaves];
            let inside = self.ports.iter().map(|port| port.next_event());
            let coming = events.into_iter().chain(inside).flatten().filter(|&at| at > self.now);
            self.now = coming.min().map_or(ends_at, |at| at.min(ends_at));
        }
    }

    fn ports(&self) -> usize {
        self.ports.len()
    }

    fn kind(&self) -> RigKind {
        RigKind::Simulated
    }
}
