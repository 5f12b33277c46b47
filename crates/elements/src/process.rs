//! Event loop of a node in a process, with real time and real descriptors.
//!
//! The loop busy-polls the ports while frames arrive. After a short time without frames it waits
//! for a descriptor or the next timer, so that an idle switch uses no CPU time.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use netio::afpacket::{Options, TimestampMode};
use os::clock::{self, WaitSet};
use packet::time::Nanos;

use crate::budget::Budget;
use crate::busy_poll::BusyPoll;
use crate::config::{Config, FastPathMode, FrameThreads, Kind, PortConfig, Service};
use crate::datapath::DataPlane;
use crate::event::Event;
use crate::forward::NumberedPort;
use crate::node::{Node, OpenError};
use crate::pmd::PmdSetup;
use crate::program_compiler;

/// Interval at which controllers and clients are served while frames arrive.
const SERVE_INTERVAL: Nanos = Nanos::from_micros(100);

/// Time after the last frame during which control work has a short budget.
const ARRIVING: Nanos = Nanos::from_millis(10);

/// Budget of the control work of one turn while no frames arrive, or with forwarding threads.
const FREE_TURN: Nanos = Nanos::from_millis(1);

/// Interval at which the wall clock is read.
const WALL_INTERVAL: Nanos = Nanos::from_secs(1);

/// Maximum wait before the stop flag is read again.
const WAIT_MAX: Nanos = Nanos::from_millis(100);

/// Pause between polls of ports without a descriptor.
const POLL_PAUSE: Nanos = Nanos::from_micros(50);

/// Opens ports and channels, runs until `stop` is set, and passes events to `log`.
pub fn run(
    config: &Config,
    stop: &AtomicBool,
    log: &mut dyn FnMut(Event),
) -> Result<(), OpenError> {
    let problems = config.validate();
    if !problems.is_empty() {
        return Err(OpenError::Config(problems));
    }
    if let Kind::OpenFlow(switch) = &config.kind {
        // Before the ports are opened: an unreadable file must not disturb an interface.
        crate::agent::credentials(switch)?;
    }
    dataplane::fast::memory::advise(os::pages::advise_huge);
    let mut ports = open_ports(config)?;
    let homes = frame_threads(config, &mut ports).map_err(OpenError::Thread)?;
    let mut node = match &config.kind {
        Kind::OpenFlow(_) if !homes.is_empty() => open_apart(config, ports, &homes, seed())?,
        _ => Node::open(config, ports, seed(), clock::now())?,
    };
    if matches!(config.kind, Kind::ProGfe(_)) {
        // Otherwise the kernel's timer slack, usually 50 µs, extends each wait.
        let _ = os::core::wake_on_time();
        node.start_compiler();
    }
    node.events.drain(..).for_each(&mut *log);
    log(Event::Ready);
    drive(&mut node, config.spin, stop, log);
    log(Event::Stopped);
    Ok(())
}

/// Returns the cores of the forwarding threads, `None` for a thread on any core.
fn frame_threads(config: &Config, ports: &mut [NumberedPort]) -> io::Result<Vec<Option<usize>>> {
    match &config.frame_threads {
        // Most frames stay in the kernel, and the thread with the tables has the ports.
        FrameThreads::Auto if may_have_fast_path(config, ports) => Ok(Vec::new()),
        FrameThreads::None => Ok(Vec::new()),
        FrameThreads::Cores(cores) => Ok(cores.iter().copied().map(Some).collect()),
        FrameThreads::Auto => {
            // A port without a descriptor needs polling. A file has none; its end ends the process.
            let waits = ports.iter().all(|(_, port)| port.descriptor().is_some());
            let suits = waits && config.model.is_none() && matches!(config.kind, Kind::OpenFlow(_));
            let has_cores = suits && os::core::allowed()?.len() >= 2;
            Ok(if has_cores { vec![None] } else { Vec::new() })
        }
    }
}

/// Whether the kernel can forward frames between some of the ports.
fn may_have_fast_path(config: &Config, ports: &mut [NumberedPort]) -> bool {
    let count = ports.iter_mut().filter_map(|(_, port)| port.xdp()).count();
    config.model.is_none()
        && count >= 2
        && match config.fast_path {
            FastPathMode::Off => false,
            FastPathMode::Required => true,
            FastPathMode::Auto => fastpath::probe_switch().is_ok(),
        }
}

/// Opens a switch with one forwarding thread for each of `homes`, on the named core if any. The
/// calling thread avoids these cores if it may use others.
pub fn open_apart(
    config: &Config,
    ports: Vec<NumberedPort>,
    homes: &[Option<usize>],
    seed: u64,
) -> Result<Node, OpenError> {
    let (departure, ports) = PmdSetup::new(ports, homes.len()).map_err(OpenError::Thread)?;
    let mut node = Node::open(config, ports, seed, clock::now())?;
    let DataPlane::OpenFlow(pipeline) = &mut node.forward.forwarder else {
        panic!("only a switch without a model can have forwarding threads");
    };
    let before = os::core::allowed().map_err(OpenError::Thread)?;
    // A missing core fails here, before threads start.
    for core in homes.iter().flatten() {
        os::core::hold(&[*core]).map_err(OpenError::Thread)?;
    }
    let starts = homes.iter().copied().map(|home| {
        let settle_in = move || {
            // If the kernel rejects the request, frames wait longer for the core.
            let _ = os::core::take_short_slices();
            if let Some(core) = home {
                os::core::hold(&[core]).expect("the core was allowed before");
            }
        };
        (pipeline.worker(), settle_in)
    });
    // On a core shared with the control thread, a busy-polling forwarding thread uses up its share
    // of the time. It must then wait for the control thread when frames arrive.
    let spin = if before.len() > homes.len() { config.spin } else { Nanos::ZERO };
    let apart = departure.start(starts.collect(), config.service, spin);
    let others = before.iter().copied().filter(|core| !homes.contains(&Some(*core)));
    let others: Vec<usize> = others.collect();
    let held = os::core::hold(if others.is_empty() { &before } else { &others });
    held.map_err(OpenError::Thread)?;
    node.leave_frames_to(apart.map_err(OpenError::Thread)?);
    Ok(node)
}

/// Runs a node until `stop` is set, or until all ports are files that have ended.
///
/// `spin` is the time of busy-polling after the last frame. After a controller's last message, the
/// node polls for at most the limits in `talk.rs`.
pub fn drive(node: &mut Node, spin: Nanos, stop: &AtomicBool, log: &mut dyn FnMut(Event)) {
    let mut wait = WaitSet::new();
    let pollable = node.is_pollable();
    let (mut spin_until, mut serve_at) = (Nanos::ZERO, Nanos::ZERO);
    let mut arriving_until = Nanos::ZERO;
    let (busy_turn, free_turn) = (node.busy_turn(), node.busy_turn().max(FREE_TURN));
    let mut talk = BusyPoll::new(spin, node.has_frames());
    let mut wall_at = Nanos::ZERO;
    // Selects the fail mode for frames without a controller before the first frame.
    node.serve(clock::now());
    let mut over_since = None;
    let mut cycles = clock::cycles();
    let mut lend_at = Nanos::ZERO;
    while !stop.load(Ordering::Relaxed) {
        let now = clock::now();
        // The wall clock can be steered or set.
        if now >= wall_at {
            node.set_wall_clock(clock::since_1970(), now);
            wall_at = now.saturating_add(WALL_INTERVAL);
        }
        let turn = node.turn(now);
        if turn.frames > 0 {
            spin_until = now.saturating_add(spin);
            arriving_until = now.saturating_add(ARRIVING);
        }
        if turn.frames > 0 || turn.frames_sent > 0 || !node.is_over() {
            over_since = None;
        } else if now.since(*over_since.get_or_insert(now)) >= node.last_words() {
            node.serve(now);
            node.events.drain(..).for_each(&mut *log);
            return;
        }
        let idle = now >= spin_until;
        let listens = talk.goes_on(now) && turn.frames == 0;
        if idle || listens || now >= serve_at {
            let span = if now < arriving_until { busy_turn } else { free_turn };
            if node.serve_within(now, Budget::of_time(span, &clock::now)) {
                talk.heard(now);
            }
            node.events.drain(..).for_each(&mut *log);
            serve_at = now.saturating_add(SERVE_INTERVAL);
        }
        // The compile thread may have only this core.
        if !idle && node.is_preparing(now) && (turn.frames == 0 || now >= lend_at) {
            clock::sleep_until(clock::now().saturating_add(program_compiler::CORE_YIELD_SPAN));
            lend_at = clock::now().saturating_add(program_compiler::LEND_INTERVAL);
        }
        let spent = clock::cycles();
        node.forward.turns.record_cycles(turn, spent.wrapping_sub(cycles));
        cycles = spent;
        if idle && talk.goes_on(now) {
            talk.pause();
        } else if idle {
            let pause = if pollable { WAIT_MAX } else { POLL_PAUSE };
            let latest = now.saturating_add(pause);
            let deadline = node.next_event(now).map_or(latest, |due| due.min(latest));
            wait_for(node, &mut wait, deadline);
            cycles = clock::cycles();
        }
    }
}

fn wait_for(node: &Node, wait: &mut WaitSet, deadline: Nanos) {
    wait.clear();
    for (descriptor, writable) in node.descriptors() {
        wait.add(descriptor, writable);
    }
    // A failed wait must not turn the loop into busy-polling.
    if wait.until(Some(deadline)).is_err() {
        clock::sleep_until(deadline.max(clock::now().saturating_add(POLL_PAUSE)));
    }
}

fn open_ports(config: &Config) -> Result<Vec<NumberedPort>, OpenError> {
    // Service in order of arrival needs arrival timestamps; otherwise they only cost time.
    let dates = matches!(&config.kind, Kind::ProGfe(element) if element.wants_arrivals());
    let stamps = match config.service {
        Service::FirstComeFirstServed => TimestampMode::AtArrival,
        Service::DeficitRoundRobin { .. } if dates => TimestampMode::AtArrival,
        Service::DeficitRoundRobin { .. } => TimestampMode::AtDelivery,
    };
    let options = Options { stamps, ..Options::forwarder() };
    let open = |port: &PortConfig| match netio::open::open(&port.spec, &options) {
        Ok(opened) => Ok((port.number, opened)),
        Err(error) => Err(OpenError::Port(port.number, error)),
    };
    config.ports.iter().map(open).collect()
}

/// Returns a random seed, so that a sender cannot choose keys that collide.
fn seed() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests {
    use netio::port::Port;
    use packet::frame::{Batch, PortNo};

    use super::*;
    use crate::config::{BridgeConfig, OpenFlowConfig};

    fn bridge(ports: &[(PortNo, &str)]) -> Config {
        let mut config = Config::new(Kind::Bridge(BridgeConfig::default()));
        let port = |&(number, spec): &(PortNo, &str)| PortConfig { number, spec: spec.to_string() };
        config.ports = ports.iter().map(port).collect();
        config
    }

    fn run_quietly(config: &Config) -> String {
        let outcome = run(config, &AtomicBool::new(true), &mut |event| panic!("{event}"));
        outcome.expect_err("it cannot start").to_string()
    }

    #[test]
    fn an_error_of_a_port_names_the_port() {
        let missing = bridge(&[(4, "afpacket:nosuchif0")]);
        assert_eq!(run_quietly(&missing), "port 4: there is no interface nosuchif0");
        let unknown = run_quietly(&bridge(&[(1, "raw:eth0")]));
        assert!(unknown.starts_with("port 1: port \"raw:eth0\": unknown kind"), "{unknown}");
    }

    #[test]
    fn an_invalid_configuration_opens_nothing() {
        let all = run_quietly(&bridge(&[(1, "afpacket:nosuchif0"), (1, "afpacket:nosuchif0")]));
        assert_eq!(all.lines().count(), 2, "{all}");
    }

    #[test]
    fn cycles_of_busy_and_idle_turns_are_counted_separately() {
        let config = bridge(&[(1, "memory:1"), (2, "memory:2")]);
        let pair = |name| netio::memory::pair_stamped(64, name, packet::time::Clock::UserSpace);
        let ((near, mut wire), (far, mut out)) = (pair("1"), pair("2"));
        let ports: Vec<NumberedPort> = vec![(1, Box::new(near)), (2, Box::new(far))];
        let mut node = Node::open(&config, ports, 1, clock::now()).unwrap();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let (node, stop, spin) = (&mut node, &stop, Nanos::from_secs(1));
            let driven = scope.spawn(move || drive(node, spin, stop, &mut |_| {}));
            let (mut batch, mut arrived) = (Batch::new(1), Batch::new(1));
            batch.push_bytes(&[[0xff; 6], [2; 6]].concat().repeat(5));
            wire.transmit(&mut batch, clock::now()).unwrap();
            while out.receive(&mut arrived, clock::now()).unwrap() == 0 {
                std::thread::yield_now();
            }
            stop.store(true, Ordering::Relaxed);
            driven.join().unwrap();
        });
        let turns = node.forward.turns;
        assert_eq!(turns.busy, 1, "{turns:?}");
        assert!(turns.cycles_busy > 0, "{turns:?}");
        assert_eq!(turns.cycles_idle > 0, turns.idle > 0, "{turns:?}");
    }

    #[test]
    fn a_forwarding_thread_needs_a_second_core_and_ports_with_interrupts() {
        let mut config = Config::new(Kind::OpenFlow(OpenFlowConfig::default()));
        let threads =
            |config: &Config, ports: &mut [NumberedPort]| frame_threads(config, ports).unwrap();
        let spec = "memif:/nowhere/socket,role=client";
        let waits = netio::open::open(spec, &Options::forwarder()).unwrap();
        let mut waits: Vec<NumberedPort> = vec![(1, waits)];
        let (polled, _other) = netio::memory::pair_stamped(8, "1", packet::time::Clock::UserSpace);
        let mut polled: Vec<NumberedPort> = vec![(1, Box::new(polled))];
        assert!(threads(&config, &mut waits).is_empty(), "only a process has one by default");
        config.frame_threads = FrameThreads::Cores(vec![3]);
        assert_eq!(threads(&config, &mut polled), [Some(3)]);
        config.frame_threads = FrameThreads::Auto;
        let cores = os::core::allowed().unwrap().len();
        assert_eq!(threads(&config, &mut waits).len(), usize::from(cores >= 2));
        assert!(threads(&config, &mut polled).is_empty(), "polling would take a core");
        config.kind = Kind::Bridge(BridgeConfig::default());
        assert!(threads(&config, &mut waits).is_empty());
    }

    #[test]
    fn seeds_differ() {
        assert_ne!(seed(), seed());
    }
}
