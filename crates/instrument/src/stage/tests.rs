//! A stage by a clock of the test's own: what a module's time costs, and what is not known because of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ports::memory::pair;
use ports::port::Port;

use super::*;
use crate::module::{Event, Span, Watch, What};
use crate::stream::{Headers, Rate, Stream};

/// A module that thinks for so long about the fifth frame.
struct Thinker {
    clock: Arc<AtomicU64>,
    thinks: Nanos,
    seen: u64,
    unknown: Vec<u64>,
}

impl Module for Thinker {
    fn needs(&self) -> Needs {
        let connections = Vec::new();
        Needs { connections, ..Needs::new(Nanos::from_millis(10)) }
    }

    fn react(&mut self, event: &Event<'_>, desk: &mut Desk) {
        match event.what {
            What::Start(_) => {
                let ip = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
                let headers = Headers::udp(([2; 6], [4; 6]), ip, (1, 2));
                desk.start(Stream::plain(1, 64, headers, Rate::FramesPerSecond(1e4)), Span::OPEN);
                desk.watch(1, Watch::All);
            }
            What::Frame(arrival) => {
                self.seen += 1;
                let probe = arrival.probe.expect("nobody else sends");
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

    fn finish(&mut self, _: &Ended, _: &mut Desk) {}
}

/// Carries the module out over a cable; a look at the clock takes a microsecond.
fn carry_out(thinks: Nanos) -> (Thinker, StageReport) {
    let (near, far) = pair(64, "cable");
    let mut ports: Vec<Box<dyn Port>> = vec![Box::new(near), Box::new(far)];
    let clock = Arc::new(AtomicU64::new(1_000_000));
    let mut module = Thinker { clock: Arc::clone(&clock), thinks, seen: 0, unknown: Vec::new() };
    let mut stage = Stage::new(
        module.needs(),
        &Scene::default(),
        Signer::new(1, 1),
        (&mut ports, &[]),
        Nanos(1_000_000),
        false,
    );
    while !stage.is_over() {
        let mut connect = |_, _| Ok(None);
        let mut world = World {
            ports: &mut ports,
            module: &mut module,
            agents: &mut [],
            connect: &mut connect,
            clock: &mut || Nanos(clock.fetch_add(1_000, Ordering::Relaxed)),
        };
        stage.turn(&mut world);
    }
    let report = stage.finish(&mut module, &mut ports);
    (module, report)
}

#[test]
fn time_in_the_modules_hands_is_measured() {
    let (module, report) = carry_out(Nanos::from_micros(100));
    assert_eq!(report.ended, Ended::Limit(crate::module::TIME_LIMIT));
    assert!(module.unknown.is_empty() && module.seen > 90, "{:?}", module.unknown);
    let Costs { events, react_ns_total, react_ns_longest, .. } = report.costs;
    assert_eq!((react_ns_longest / 1_000, report.stalls.count), (101, 0));
    // Its start, the end of the stream and of its time; each takes a look, and one took long.
    assert_eq!((events, react_ns_total), (module.seen + 3, (module.seen + 3) * 1_000 + 100_000));
}

#[test]
fn a_module_that_thinks_longer_than_a_stall_makes_delays_unknown() {
    let (module, report) = carry_out(Nanos::from_millis(2));
    assert_eq!((report.stalls.count, report.costs.react_ns_longest), (1, 2_001_000));
    // Frames that were due meanwhile were sent late and say so: their delays are known.
    assert_eq!(report.stalls.delays_unknown, module.unknown.len() as u64);
    assert_eq!(report.streams[0].lost(), 0);
    assert!(report.flags.contains(&Flag::Stalled(1)));
}
