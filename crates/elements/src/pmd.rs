//! Forwarding threads, and their communication with the control thread.
//!
//! A forwarding thread owns ports, or some queues of multi-queue ports, and a worker of the
//! pipeline. A port that cannot be divided belongs to one of the threads; the others pass frames
//! for it to that thread. The control thread owns everything else. In place of each port it has a
//! stand-in, which passes frames to the owner and returns the state that the owner last reported.
//! Forwarding waits for nothing but a short check of the mailbox.

use std::sync::Arc;
use std::sync::atomic::Ordering::Release;
use std::thread::JoinHandle;

use dataplane::forwarder::Outputs;
use dataplane::pipeline::{Pipeline, Worker};
use netio::memif::doorbell::Doorbell;
use netio::port::{Port, PortFacts};
use os::clock;
use packet::frame::PortNo;
use packet::time::Nanos;

use crate::config::Service;
use crate::forward::{ForwardPort, NumberedPort, PortDrops, Turns};

mod mailbox;
mod frames;

use frames::Frames;
use mailbox::{Exchange, RemotePort, lock};

/// Maximum wait in one turn for forwarding threads. One of them may have been preempted in the
/// middle of a batch.
const SETTLE_MAX: Nanos = Nanos::from_micros(500);

/// Handle of the forwarding threads for the control thread.
pub struct PmdThreads {
    exchanges: Arc<[Exchange]>,
    threads: Vec<JoinHandle<()>>,
    /// The last count of lost events that was added.
    events_lost: u64,
}

/// Ports of forwarding threads that are not started yet.
pub struct PmdSetup {
    exchanges: Arc<[Exchange]>,
    threads: Vec<Share>,
}

/// The ports of one thread.
struct Share {
    ports: Vec<NumberedPort>,
    /// For each port, whether the thread owns it or a part of it.
    owned: Vec<bool>,
}

impl PmdSetup {
    /// Divides the ports between `threads` threads. Returns a stand-in for each port.
    pub fn new(
        ports: Vec<NumberedPort>,
        threads: usize,
    ) -> std::io::Result<(PmdSetup, Vec<NumberedPort>)> {
        let control_bell = Doorbell::create()?;
        let exchanges = (0..threads).map(|_| Exchange::new(ports.len(), &control_bell));
        let exchanges: Arc<[Exchange]> = exchanges.collect::<std::io::Result<Vec<_>>>()?.into();
        let stand_in = |place: usize, number: PortNo, facts: &PortFacts, owner, bell: &Doorbell| {
            let (exchanges, facts) = (Arc::clone(&exchanges), facts.clone());
            let bell = bell.clone();
            Box::new(RemotePort { exchanges, owner, place, number, facts, bell }) as Box<dyn Port>
        };
        let empty = |_| Share { ports: Vec::new(), owned: Vec::new() };
        let mut shares: Vec<Share> = (0..threads).map(empty).collect();
        let mut remotes = Vec::new();
        for (place, (number, mut port)) in ports.into_iter().enumerate() {
            let facts = port.facts().clone();
            let (up, link) = (port.has_link(), port.link());
            // Parts of a port go to several threads; an undivided port goes to one thread, in turn.
            let others = port.split_queues(threads);
            let owner = if others.is_empty() { place % threads } else { 0 };
            let mut parts = std::iter::once(port).chain(others);
            for (thread, share) in shares.iter_mut().enumerate() {
                let mut told = lock(&exchanges[thread].told);
                (told.ports[place].up, told.ports[place].link) = (up, link);
                let own = if thread >= owner { parts.next() } else { None };
                share.owned.push(own.is_some());
                let part = own.unwrap_or_else(|| {
                    stand_in(place, number, &facts, owner, &exchanges[thread].bell)
                });
                share.ports.push((number, part));
            }
            remotes.push((number, stand_in(place, number, &facts, owner, &control_bell)));
        }
        Ok((PmdSetup { exchanges, threads: shares }, remotes))
    }

    /// Starts the threads, each with a worker and a function to call first. They busy-poll for
    /// `spin` after the last frame.
    pub fn start(
        self,
        starts: Vec<(Worker, impl FnOnce() + Send + 'static)>,
        service: Service,
        spin: Nanos,
    ) -> std::io::Result<PmdThreads> {
        let PmdSetup { exchanges, threads } = self;
        let mut pmd = PmdThreads { exchanges, threads: Vec::new(), events_lost: 0 };
        for (place, (share, (worker, first))) in threads.into_iter().zip(starts).enumerate() {
            let inside = Arc::clone(&pmd.exchanges);
            let named = std::thread::Builder::new().name(format!("frames-{place}"));
            pmd.threads.push(named.spawn(move || {
                first();
                Frames::new((inside, place), (share.ports, share.owned), worker, service).run(spin);
            })?);
        }
        Ok(pmd)
    }
}

impl PmdThreads {
    /// Takes over events, counters and link states from the forwarding threads. Panics if one of
    /// them has ended.
    pub fn take(
        &mut self,
        pipeline: &mut Pipeline,
        outputs: &mut Outputs,
        forward_ports: &mut [ForwardPort],
        turns: &mut Vec<Turns>,
        now: Nanos,
    ) {
        assert!(!self.threads.iter().any(JoinHandle::is_finished), "a forwarding thread ended");
        self.exchanges[0].control_bell.drain();
        turns.clear();
        forward_ports.iter_mut().for_each(|forward_port| forward_port.drops = PortDrops::default());
        let mut events_lost = 0;
        for exchange in self.exchanges.iter() {
            for event in std::mem::take(&mut *lock(&exchange.events)) {
                pipeline.heard(event, now, outputs);
            }
            let told = lock(&exchange.told);
            for (forward_port, told) in forward_ports.iter_mut().zip(&told.ports) {
                forward_port.drops.transmit_full += told.drops.transmit_full;
                forward_port.drops.port_down += told.drops.port_down;
            }
            turns.push(told.turns);
            events_lost += told.events_lost;
        }
        outputs.events_lost += events_lost - self.events_lost;
        self.events_lost = events_lost;
    }

    /// Waits until forwarding threads have finished their current batches, and so use every change
    /// so far. Waits for at most [`SETTLE_MAX`]. Returns false on timeout.
    pub fn settle(&self, pipeline: &mut Pipeline) -> bool {
        settle_by(pipeline, clock::now)
    }
}

/// Like [`PmdThreads::settle`], with a given clock.
fn settle_by(pipeline: &mut Pipeline, clock: impl Fn() -> Nanos) -> bool {
    let deadline = clock().saturating_add(SETTLE_MAX);
    while !pipeline.is_settled() {
        if clock() >= deadline {
            return false;
        }
        std::thread::yield_now();
    }
    true
}

impl Drop for PmdThreads {
    fn drop(&mut self) {
        for exchange in self.exchanges.iter() {
            exchange.stop.store(true, Release);
            exchange.bell.ring();
        }
        for thread in self.threads.drain(..) {
            // A thread that panicked has printed its message.
            drop(thread.join());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use dataplane::action::Action;
    use dataplane::flow::FlowSpec;
    use dataplane::forwarder::Forwarder;
    use dataplane::matching::Match;
    use dataplane::pipeline::Settings;
    use packet::frame::Batch;

    use super::*;

    #[test]
    fn waiting_for_forwarding_threads_is_limited() {
        let mut pipeline = Pipeline::new(&[1, 2], &Settings::default());
        let mut out = Outputs::new(&[1, 2]);
        let mut worker = pipeline.worker();
        let reads = Cell::new(0);
        // Each read of the clock takes a tenth of the maximum wait.
        let clock = || {
            reads.set(reads.get() + 1);
            Nanos(SETTLE_MAX.0 / 10 * reads.get())
        };
        assert!(settle_by(&mut pipeline, clock), "no thread is in a batch");
        assert_eq!(reads.get(), 1);
        // A thread that was preempted between two batches.
        worker.forward(1, &mut Batch::new(1), Nanos(1), &mut out);
        let spec = FlowSpec::new(Match::ANY, 1, &[Action::Output { port: 2 }]);
        pipeline.add(&spec, Nanos(1), &mut out).expect("there is room");
        reads.set(0);
        assert!(!settle_by(&mut pipeline, clock));
        assert_eq!(reads.get(), 11, "it gives up after ten tenths");
        worker.rest();
        assert!(settle_by(&mut pipeline, clock));
    }
}
