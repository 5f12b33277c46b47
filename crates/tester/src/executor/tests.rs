//! Tests of the event loop on a manual clock: time spent in a module, and the resulting unknown
//! delays.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use netio::memory::pair;
use netio::port::Port;
use netio::wrap::delay::{Delay, DelayOptions};

use super::*;
use crate::module::host_tasks::{
    Host, HostTask, HostTaskResult, RequestResponseReport, RequestResponseTest,
};
use crate::module::{Event, EventKind, FrameFilter, SendSpan};
use crate::rig::hosts::Hosts;
use crate::stream::{Headers, Rate, Stream};

/// Module that spends `thinks` on the fifth frame.
struct Thinker {
    clock: Arc<AtomicU64>,
    thinks: Nanos,
    seen: u64,
    unknown: Vec<u64>,
}

impl Module for Thinker {
    fn needs(&self) -> ModuleRequirements {
        let connections = Vec::new();
        ModuleRequirements { connections, ..ModuleRequirements::new(Nanos::from_millis(10)) }
    }

    fn react(&mut self, event: &Event<'_>, context: &mut ModuleContext) {
        match event.what {
            EventKind::Start(_) => {
                let ip = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
                let headers = Headers::udp(([2; 6], [4; 6]), ip, (1, 2));
                context.start(
                    Stream::plain(1, 64, headers, Rate::FramesPerSecond(1e4)),
                    SendSpan::OPEN,
                );
                context.watch(1, FrameFilter::All);
            }
            EventKind::Frame(arrival) => {
                self.seen += 1;
                let probe = arrival.probe.expect("only probes arrive");
                if !probe.is_delay_known {
                    self.unknown.push(probe.number);
                }
                if self.seen == 5 {
                    self.clock.fetch_add(self.thinks.0, Ordering::Relaxed);
                }
            }
            _ => {}
        }
    }

    fn finish(&mut self, _: &Ended, _: &mut ModuleContext) {}
}

/// Runs the module over a cable. Each clock read takes a microsecond.
fn carry_out(thinks: Nanos) -> (Thinker, StageReport) {
    let (near, far) = pair(64, "cable");
    let mut ports: Vec<Box<dyn Port>> = vec![Box::new(near), Box::new(far)];
    let clock = Arc::new(AtomicU64::new(1_000_000));
    let mut module = Thinker { clock: Arc::clone(&clock), thinks, seen: 0, unknown: Vec::new() };
    let gauge: &'static Gauge = Box::leak(Box::default());
    let stage = ModuleExecutor::new(
        module.needs(),
        &TopologyInfo::default(),
        Signer::new(1, 1),
        (&mut ports, &[], false),
        Nanos(1_000_000),
        false,
    );
    let mut stage = stage.shown_on(gauge, Nanos(1_000_000));
    while !stage.is_over() {
        let mut connect = |_, _| Ok(None);
        let mut world = ExecutorIo {
            ports: &mut ports,
            module: &mut module,
            agents: &mut [],
            hosts: None,
            connect: &mut connect,
            clock: &mut || Nanos(clock.fetch_add(1_000, Ordering::Relaxed)),
        };
        stage.turn(&mut world);
    }
    let report = stage.finish(&mut module, &mut ports);
    let shown = gauge.read().expect("the final values are in the gauge");
    let [sent, came] = [report.streams[0].sent, report.ports[1].received];
    assert_eq!((shown.sent, shown.received), (vec![sent, 0], vec![0, came]));
    (module, report)
}

#[test]
fn the_time_spent_in_the_module_is_measured() {
    let (module, report) = carry_out(Nanos::from_micros(100));
    assert_eq!(report.ended, Ended::Limit(crate::module::TIME_LIMIT));
    assert!(module.unknown.is_empty() && module.seen > 90, "{:?}", module.unknown);
    let Costs { events, reaction_ns_total, reaction_ns_longest, .. } = report.costs;
    assert_eq!((reaction_ns_longest / 1_000, report.stalls.count), (101, 0));
    // Start, end of stream and end of time. Each takes one clock read, and one event took long.
    assert_eq!((events, reaction_ns_total), (module.seen + 3, (module.seen + 3) * 1_000 + 100_000));
}

#[test]
fn delays_are_unknown_if_the_module_takes_longer_than_a_stall() {
    let (module, report) = carry_out(Nanos::from_millis(2));
    assert_eq!((report.stalls.count, report.costs.reaction_ns_longest), (1, 2_001_000));
    // Frames due during the stall were sent late with their actual send times: their delays are
    // known.
    assert_eq!(report.stalls.delays_unknown, module.unknown.len() as u64);
    assert_eq!(report.streams[0].lost(), 0);
    assert!(report.flags.contains(&Flag::Stalled(1)));
}

/// Module that ends after sending twenty frames, before the last of them return.
struct Hasty;

impl Module for Hasty {
    fn needs(&self) -> ModuleRequirements {
        ModuleRequirements {
            connections: Vec::new(),
            ..ModuleRequirements::new(Nanos::from_millis(100))
        }
    }

    fn react(&mut self, event: &Event<'_>, context: &mut ModuleContext) {
        match event.what {
            EventKind::Start(_) => {
                let ip = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
                let headers = Headers::udp(([2; 6], [4; 6]), ip, (1, 2));
                let rate = Rate::FramesPerSecond(100.0);
                context.start(Stream::plain(1, 64, headers, rate), SendSpan::frames(20));
            }
            EventKind::StreamEnded(_) => context.end(),
            _ => {}
        }
    }

    fn finish(&mut self, _: &Ended, _: &mut ModuleContext) {}
}

#[test]
fn frames_in_transit_at_the_end_of_a_module_are_awaited() {
    let (near, far) = pair(64, "cable");
    // Longer than the drain and shorter than the time to send all frames.
    let fixed = Nanos::from_millis(90);
    let near = Delay::new(near, DelayOptions { fixed, ..DelayOptions::default() });
    let mut ports: Vec<Box<dyn Port>> = vec![Box::new(near), Box::new(far)];
    let clock = AtomicU64::new(0);
    let mut module = Hasty;
    let mut needs = module.needs();
    needs.limit = Nanos::from_secs(1);
    assert!(needs.drain < fixed);
    let from = (&mut ports[..], &[][..], false);
    let mut stage = ModuleExecutor::new(
        needs,
        &TopologyInfo::default(),
        Signer::new(1, 1),
        from,
        Nanos::ZERO,
        false,
    );
    while !stage.is_over() {
        let mut connect = |_, _| Ok(None);
        let mut world = ExecutorIo {
            ports: &mut ports,
            module: &mut module,
            agents: &mut [],
            hosts: None,
            connect: &mut connect,
            clock: &mut || Nanos(clock.fetch_add(50_000, Ordering::Relaxed)),
        };
        stage.turn(&mut world);
    }
    let report = stage.finish(&mut module, &mut ports);
    assert_eq!(report.ended, Ended::Completed);
    assert_eq!((report.streams[0].sent, report.streams[0].arrived), (20, 20));
}

/// Test hosts: a task completes after `looks` polls.
struct Slow {
    looks: u32,
    done: Option<HostTaskResult>,
    stopped: Arc<AtomicU64>,
}

impl Hosts for Slow {
    fn begin(&mut self, run_host_task: HostTask) {
        let HostTask::Talk(talk) = run_host_task else { panic!("expected a talk") };
        self.done = Some(HostTaskResult::Talked(RequestResponseReport {
            sent: talk.packets,
            ..RequestResponseReport::default()
        }));
    }

    fn done(&mut self) -> Option<HostTaskResult> {
        self.looks = self.looks.checked_sub(1)?;
        if self.looks == 0 { self.done.take() } else { Some(HostTaskResult::Loading) }
    }

    fn stop(&mut self) -> Option<HostTaskResult> {
        self.stopped.fetch_add(1, Ordering::Relaxed);
        self.done.take()
    }
}

/// Starts host tasks and collects their results.
struct Sender {
    tasks: u32,
    ends_after: usize,
    told: Vec<HostTaskResult>,
}

impl Module for Sender {
    fn needs(&self) -> ModuleRequirements {
        ModuleRequirements {
            connections: Vec::new(),
            ..ModuleRequirements::new(Nanos::from_millis(10))
        }
    }

    fn react(&mut self, event: &Event<'_>, context: &mut ModuleContext) {
        match event.what {
            EventKind::Start(_) => {
                let host = Host {
                    port: 0,
                    mac: [2; 6],
                    address: [10, 0, 0, 1].into(),
                    udp_port: 1,
                    next_hop: [4; 6],
                };
                let talk = RequestResponseTest {
                    hosts: [host; 2],
                    payload_bytes: 18,
                    packets: 7,
                    wait: Nanos(1),
                    lost_in_a_row_max: 1,
                };
                (0..self.tasks).for_each(|_| context.run_host_task(HostTask::Talk(talk.clone())));
            }
            EventKind::HostTask(done) => {
                self.told.push(done.clone());
                if self.told.len() == self.ends_after {
                    context.end();
                }
            }
            _ => {}
        }
    }

    fn finish(&mut self, _: &Ended, _: &mut ModuleContext) {}
}

/// Runs a module with this many tasks. Returns its results and the number of stopped tasks.
fn sent_on_tasks(tasks: u32, ends_after: usize, looks: Option<u32>) -> (Vec<HostTaskResult>, u64) {
    let mut ports: Vec<Box<dyn Port>> = Vec::new();
    let (clock, stopped) = (AtomicU64::new(1_000_000), Arc::new(AtomicU64::new(0)));
    let seen = Arc::clone(&stopped);
    let mut hosts = looks.map(|looks| Slow { looks, done: None, stopped: seen });
    let mut module = Sender { tasks, ends_after, told: Vec::new() };
    let known = (&mut ports[..], &[][..], hosts.is_some());
    let (needs, scene) = (module.needs(), TopologyInfo::default());
    let mut stage =
        ModuleExecutor::new(needs, &scene, Signer::new(1, 1), known, Nanos(1_000_000), false);
    let mut waited = 0;
    while !stage.is_over() {
        let mut connect = |_, _| Ok(None);
        let mut world = ExecutorIo {
            ports: &mut ports,
            module: &mut module,
            agents: &mut [],
            hosts: hosts.as_mut().map(|it| it as &mut AnyHosts),
            connect: &mut connect,
            clock: &mut || Nanos(clock.fetch_add(1_000, Ordering::Relaxed)),
        };
        stage.turn(&mut world);
        let now = Nanos(clock.load(Ordering::Relaxed));
        waited += u64::from(stage.waits(now).is_some_and(|until| until > now));
    }
    // The loop busy-polls unless hosts use its cores.
    assert_eq!(waited > 0, looks.is_some());
    (module.told, stopped.load(Ordering::Relaxed))
}

#[test]
fn hosts_run_their_tasks_and_results_are_reported() {
    let talked = HostTaskResult::Talked(RequestResponseReport {
        sent: 7,
        ..RequestResponseReport::default()
    });
    let reported = [HostTaskResult::Loading, HostTaskResult::Loading, talked.clone()];
    assert_eq!(sent_on_tasks(1, 3, Some(3)), (reported.into(), 0));
    // A second task at the same time fails. A task still running at the module's end is stopped.
    let (reported, stopped) = sent_on_tasks(2, 1, Some(3));
    assert!(
        matches!(&reported[..], [HostTaskResult::Failed(why)] if why.contains("another task")),
        "{reported:?}"
    );
    assert_eq!(stopped, 1);
    let (reported, stopped) = sent_on_tasks(1, 1, None);
    assert!(
        matches!(&reported[..], [HostTaskResult::Failed(why)] if why.contains("no hosts")),
        "{reported:?}"
    );
    assert_eq!(stopped, 0);
}
