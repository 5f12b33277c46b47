//! Event loop in real time: one thread busy-polls ports, sockets and the clock.
//!
//! It blocks only while a host task uses its cores: a wakeup would cost tens of microseconds just
//! when a frame or a message arrives. Sockets are read without blocking. A received message has the
//! time right after the read call. A sent one has the times before and after each write call.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use channel::{Channel, ChannelError, Connecting, Listener, Tls, Url};
use os::clock::WaitSet;
use os::{clock, steal};
use packet::time::Nanos;

use crate::executor::{
    CONNECT_NS_MAX, Connect, ConnectionRequest, ExecutorIo, ModuleExecutor, TopologyInfo,
};
use crate::gauge::GAUGE;
use crate::module::{Ended, Module, Signer, StageReport};
use crate::rig::agents::Agent;
use crate::rig::live::LiveRig;
use crate::signature::EPOCHS;

/// Connects to switches by their addresses, or listens for switches that connect.
///
/// With TLS a connection counts as open when TCP is connected. The TLS handshake is part of the
/// first reads and writes, and counts against the hello timeout.
pub struct Dialer {
    switches: Vec<Switch>,
    tls: Option<Tls>,
    /// Connection attempts in progress, with the index of the connection.
    attempts: Vec<(usize, Connecting)>,
}

/// How to reach a switch.
enum Switch {
    /// The switch listens.
    At(Url),
    /// The switch connects to the tester.
    Calls(Box<Listener>),
}

impl Dialer {
    /// Creates a dialer for these addresses. Starts to listen at the passive ones.
    pub fn new(switches: &[Url]) -> Result<Self, ChannelError> {
        Dialer::new_with(switches, None)
    }

    /// The same with TLS addresses. Fails if an address needs TLS and its settings are missing.
    pub fn new_with(switches: &[Url], tls: Option<&Tls>) -> Result<Self, ChannelError> {
        let open = |url: &Url| match url.is_passive() {
            true => Listener::open_with(url, tls).map(|listener| Switch::Calls(Box::new(listener))),
            false => Tls::check(tls, url).map(|()| Switch::At(url.clone())),
        };
        let switches = switches.iter().map(open).collect::<Result<_, _>>()?;
        Ok(Dialer { switches, tls: tls.cloned(), attempts: Vec::new() })
    }

    /// Starts or continues to connect, without blocking.
    pub fn connect(
        &mut self,
        wanted: ConnectionRequest,
        now: Nanos,
    ) -> Result<Option<Box<dyn Channel>>, ChannelError> {
        match self.switches.get_mut(wanted.switch) {
            None => Err(ChannelError::Closed(format!("switch {}", wanted.switch + 1))),
            Some(Switch::Calls(listener)) => listener.accept(),
            Some(Switch::At(url)) => {
                let is_of =
                    |(connection, _): &(usize, Connecting)| *connection == wanted.connection;
                let place = match self.attempts.iter().position(is_of) {
                    Some(place) => place,
                    None => {
                        let tls = self.tls.as_ref();
                        let attempt = Connecting::start_with(url, tls, now, CONNECT_NS_MAX)?;
                        self.attempts.push((wanted.connection, attempt));
                        self.attempts.len() - 1
                    }
                };
                let made = self.attempts[place].1.finish(now);
                if !matches!(made, Ok(None)) {
                    self.attempts.swap_remove(place);
                }
                made
            }
        }
    }
}

impl LiveRig {
    /// Runs a module, from opening its connections to its `finish`. Stopping the rig ends the
    /// module and returns the results so far.
    pub fn stage(
        &mut self,
        module: &mut dyn Module,
        scene: &TopologyInfo,
        connect: Connect<'_>,
    ) -> StageReport {
        self.epoch = (self.epoch + 1) % EPOCHS;
        let signer = Signer::new(self.key, self.epoch);
        let (ports, agents) = (&mut self.ports[..], &mut self.agents[..]);
        let needs = module.needs();
        ports.iter_mut().for_each(|port| port.set_low_latency(needs.needs_immediate_frames));
        let hosts = &mut self.hosts;
        let known = (&mut *ports, &*agents, hosts.is_some());
        let stage = ModuleExecutor::new(needs, scene, signer, known, clock::now(), false);
        let mut stage = stage.shown_on(&GAUGE, clock::now());
        let mut wait = WaitSet::new();
        let stop = Arc::clone(&self.stop);
        let stolen = steal::total();
        while !stage.is_over() {
            if stop.load(Ordering::Relaxed) {
                stage.interrupt(Ended::Interrupted, clock::now());
            }
            let clock = &mut clock::now;
            let hosts = hosts.as_deref_mut();
            stage.turn(&mut ExecutorIo { ports, module, agents, hosts, connect, clock });
            if let Some(until) = stage.waits(clock::now()) {
                wait.clear();
                stage.descriptors().for_each(|it| {
                    wait.add(it, false);
                });
                // If the system rejects the wait, it ends immediately.
                let _ = wait.until(Some(until));
                stage.rest(clock::now());
            }
        }
        agents.iter_mut().for_each(Agent::forget);
        let mut report = stage.finish(module, ports);
        let taken = stolen.zip(steal::total());
        report.stalls.ns_stolen = taken.map(|(before, after)| after.since(before).0);
        report
    }
}
