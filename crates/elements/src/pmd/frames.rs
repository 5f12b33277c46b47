//! A forwarding thread: ports, or parts of ports, and a worker of the pipeline.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use dataplane::forwarder::EVENTS_MAX;
use dataplane::pipeline::Worker;
use netio::link::Link;
use netio::port::PortCounters;
use os::clock::{self, WaitSet};
use packet::time::Nanos;

use super::mailbox::{Exchange, lock};
use crate::config::Service;
use crate::forward::{ForwardLoop, NumberedPort};

/// Interval of port state reports while frames keep arriving.
const TELL_INTERVAL: Nanos = Nanos::from_millis(1);

/// Maximum wait before the stop flag is checked again.
const WAIT_MAX: Nanos = Nanos::from_millis(100);

/// Pause between polls of ports that have no descriptor.
const POLL_PAUSE: Nanos = Nanos::from_micros(50);

/// One forwarding thread.
pub(super) struct Frames {
    exchanges: Arc<[Exchange]>,
    /// Index of this thread.
    place: usize,
    forward: ForwardLoop<Worker>,
    links: Vec<Link>,
    /// For each port, whether the thread owns the port or a part of it.
    owned: Vec<bool>,
    tell_at: Nanos,
}

impl Frames {
    /// Creates the thread at this index, with its ports and stand-ins for others.
    pub(super) fn new(
        (exchanges, place): (Arc<[Exchange]>, usize),
        (ports, owned): (Vec<NumberedPort>, Vec<bool>),
        worker: Worker,
        service: Service,
    ) -> Frames {
        let links = lock(&exchanges[place].told).ports.iter().map(|port| port.link).collect();
        let forward = ForwardLoop::new(ports, worker, service);
        Frames { exchanges, place, forward, links, owned, tell_at: Nanos::ZERO }
    }

    fn exchange(&self) -> &Exchange {
        &self.exchanges[self.place]
    }

    /// Forwards frames until the stop flag is set. Busy-polls for `spin` after the last frame.
    pub(super) fn run(&mut self, spin: Nanos) {
        let mut wait = WaitSet::new();
        let pollable = self
            .forward
            .forward_ports
            .iter()
            .all(|forward_port| forward_port.port.descriptor().is_some());
        let mut spin_until = Nanos::ZERO;
        let mut cycles = clock::cycles();
        let mut was_busy = true;
        while !self.exchange().stop.load(Relaxed) {
            let now = clock::now();
            self.send_letters(now);
            let turn = self.forward.turn(now);
            let busy = turn.frames > 0;
            if busy {
                spin_until = now.saturating_add(spin);
            } else {
                self.forward.forwarder.rest();
            }
            self.pass_events();
            if was_busy && !busy || now >= self.tell_at {
                self.tell(now);
            }
            was_busy = busy;
            let spent = clock::cycles();
            self.forward.turns.record_cycles(turn, spent.wrapping_sub(cycles));
            cycles = spent;
            if now >= spin_until {
                let pause = if pollable { WAIT_MAX } else { POLL_PAUSE };
                let latest = now.saturating_add(pause);
                let due = self.forward.next_event().map_or(latest, |due| due.min(latest));
                self.wait(&mut wait, due);
                cycles = clock::cycles();
            }
        }
    }

    /// Sends the frames that other threads passed.
    #[inline]
    fn send_letters(&mut self, now: Nanos) {
        let exchange = self.exchange();
        if !exchange.has_frames.load(Acquire) {
            return;
        }
        let letters = {
            let mut frames = lock(&exchange.frames);
            exchange.has_frames.store(false, Relaxed);
            std::mem::take(&mut *frames)
        };
        exchange.bell.drain();
        for (port, mut frame) in letters {
            // Flushes a full queue first, so that the port counts what it cannot accept.
            if self.forward.outputs.send(port, &mut frame) == dataplane::forwarder::Sent::QueueFull
            {
                self.forward.send_waiting(now);
                self.forward.outputs.send(port, &mut frame);
            }
        }
        self.forward.send_waiting(now);
    }

    /// Passes on events immediately, which needs no system call to a port.
    #[inline]
    fn pass_events(&mut self) {
        if self.forward.outputs.events.is_empty() {
            return;
        }
        let exchange = &self.exchanges[self.place];
        let mut events = lock(&exchange.events);
        // Events without room stay; later ones are then counted as lost.
        let room = EVENTS_MAX.saturating_sub(events.len());
        let count = self.forward.outputs.events.len().min(room);
        events.extend(self.forward.outputs.events.drain(..count));
        if count > 0 {
            exchange.control_bell.ring();
        }
    }

    /// Reports the state of the ports. This needs system calls, so it is done only now and then.
    fn tell(&mut self, now: Nanos) {
        self.tell_at = now.saturating_add(TELL_INTERVAL);
        let mut news = false;
        while let Some((number, _)) = self.forward.link_change(now) {
            news = true;
            let place = self
                .forward
                .forward_ports
                .iter()
                .position(|forward_port| forward_port.number == number);
            if let Some(place) = place {
                self.links[place] = self.forward.forward_ports[place].port.link();
            }
        }
        let exchange = &self.exchanges[self.place];
        let counters =
            self.forward.forward_ports.iter_mut().zip(&self.owned).map(|(forward_port, owned)| {
                if *owned { forward_port.port.counters() } else { PortCounters::default() }
            });
        // Counters are read before the mailbox is locked, so that its reader need not wait for
        // system calls.
        let counters: Vec<PortCounters> = counters.collect();
        let mut told = lock(&exchange.told);
        let forward_ports = self.forward.forward_ports.iter().zip(&self.links).zip(counters);
        for (place, ((forward_port, link), counters)) in told.ports.iter_mut().zip(forward_ports) {
            place.counters = counters;
            place.drops = forward_port.drops;
            place.up = forward_port.is_up();
            place.link = *link;
        }
        told.turns = self.forward.turns;
        told.events_lost = self.forward.outputs.events_lost;
        drop(told);
        if news {
            exchange.control_bell.ring();
        }
    }

    fn wait(&self, wait: &mut WaitSet, deadline: Nanos) {
        wait.clear();
        wait.add(self.exchange().bell.descriptor(), false);
        for (forward_port, owned) in self.forward.forward_ports.iter().zip(&self.owned) {
            if *owned
                && forward_port.fault.is_none()
                && let Some(descriptor) = forward_port.port.descriptor()
            {
                wait.add(descriptor, false);
            }
        }
        if wait.until(Some(deadline)).is_err() {
            clock::sleep_until(deadline.max(clock::now().saturating_add(POLL_PAUSE)));
        }
    }
}
