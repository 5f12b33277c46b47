//! Tests of traces, and of block costs with a known counter.

use std::cell::Cell;

use dataplane::forwarder::{Forwarder, Outputs};
use packet::frame::{Batch, PortNo};
use packet::time::Nanos;

use super::cost::FIRST;
use super::tracing::{Ended, FRAMES_MAX};
use super::{TraceRecord, Wanted};
use crate::compile::Compiled;
use crate::element::{Change, Element};
use crate::program::Program;
use crate::program::document::no_files;
use crate::xml::Source;

const BRIDGE: &str = include_str!("../../../../examples/progfe/bridge.fe.xml");
const NOW: Nanos = Nanos::from_secs(10);
const UNTIL: Nanos = Nanos::from_secs(20);

fn program(text: &str) -> Program {
    let (program, problems) = Program::load(&Source::new("a.fe.xml", text), &no_files);
    program.unwrap_or_else(|| panic!("{problems}"))
}

struct Bench(Element<Compiled>, Outputs);

impl Bench {
    fn new() -> Bench {
        let mut out = Outputs::new(&[1, 2]);
        let mut element = Element::start(program(BRIDGE), 1).unwrap();
        for port in [1, 2] {
            element.set_link(port, true, NOW, &mut out);
        }
        Bench(element, out)
    }

    /// Sends frames between stations into a port.
    fn receive(&mut self, port: PortNo, stations: &[(u8, u8)], now: Nanos) {
        let mut batch = Batch::new(stations.len());
        for (from, to) in stations {
            let mut bytes = vec![2, 0, 0, 0, 0, *to, 2, 0, 0, 0, 0, *from, 0x88, 0xb5];
            bytes.resize(60, *from);
            assert!(batch.push_bytes(&bytes));
        }
        self.0.forward(port, &mut batch, now, &mut self.1);
        self.1.queues_mut().iter_mut().for_each(|(_, queue)| queue.clear());
    }

    fn taken(&mut self, id: u64) -> Vec<TraceRecord> {
        let tracing = self.0.tracing(id).expect("a client requested it");
        std::iter::from_fn(|| tracing.take()).collect()
    }
}

fn wanted(count: u64, port: Option<PortNo>, when: &str) -> Wanted {
    Wanted { count, port, when: when.to_owned(), until: UNTIL }
}

#[test]
fn the_next_matching_frames_are_traced_with_input_and_output() {
    let mut bench = Bench::new();
    bench.receive(1, &[(1, 9)], NOW);
    let id = bench.0.trace_next(&wanted(2, None, "Eth.src = 02:00:00:00:00:03"), NOW).unwrap();
    bench.receive(2, &[(2, 1), (3, 1), (2, 1)], NOW);
    assert_eq!(bench.0.tracing(id).unwrap().ended(NOW), None);
    bench.receive(1, &[(3, 2), (3, 2)], NOW);
    assert_eq!(bench.0.tracing(id).unwrap().ended(NOW), Some(Ended::Count));
    let all = bench.taken(id);
    let seen: Vec<_> = all.iter().map(|it| (it.port, it.came[11], it.left[0].0)).collect();
    assert_eq!(seen, [(2, 3, 1), (1, 3, 2)]);
    for traced in &all {
        assert_eq!(traced.left.len(), 1);
        assert_eq!(traced.left[0].1, traced.came, "a bridge changes nothing");
        let last = traced.trace.steps.last().unwrap().outcome(bench.0.program());
        assert_eq!(last, format!("sent on port {}", traced.left[0].0));
    }
    assert!(bench.taken(id).is_empty(), "each trace is returned once");
}

#[test]
fn waiting_for_frames_times_out() {
    let mut bench = Bench::new();
    let id = bench.0.trace_next(&wanted(5, Some(2), ""), NOW).unwrap();
    let busy = bench.0.trace_next(&wanted(1, None, ""), NOW).unwrap_err();
    assert!(busy.contains("another client"), "{busy}");
    bench.receive(1, &[(1, 2)], NOW);
    bench.receive(2, &[(2, 1)], NOW);
    bench.receive(2, &[(2, 1)], UNTIL);
    assert_eq!(bench.0.tracing(id).unwrap().ended(UNTIL), Some(Ended::Time));
    assert_eq!(bench.taken(id).len(), 1);
    let next = bench.0.trace_next(&wanted(1, None, ""), UNTIL).unwrap();
    assert!(bench.0.tracing(id).is_none() && bench.0.tracing(next).is_some());
    bench.0.end_tracing(next);
    assert!(bench.0.tracing(next).is_none());
}

#[test]
fn invalid_traces_are_rejected() {
    let mut bench = Bench::new();
    for (wanted, why) in [
        (wanted(0, None, ""), "use 1 to"),
        (wanted(FRAMES_MAX + 1, None, ""), "use 1 to"),
        (wanted(1, Some(7), ""), "port 7"),
        (wanted(1, None, "Eth.nothing = 1"), "at byte 0"),
        (wanted(1, None, "Eth and not meta:VlanID = 1"), "meta:VlanID is unknown when"),
    ] {
        let error = bench.0.trace_next(&wanted, NOW).unwrap_err();
        assert!(error.contains(why), "{error}");
    }
    bench.0.trace_next(&wanted(1, None, "meta:PHYPortID = 2"), NOW).unwrap();
}

#[test]
fn a_new_program_ends_a_trace_and_a_changed_setting_does_not() {
    let mut bench = Bench::new();
    let id = bench.0.trace_next(&wanted(3, None, ""), NOW).unwrap();
    let instance = bench.0.program().find("fdb").unwrap();
    let value = forces::Value::Unsigned(7);
    let change = Change::Set { instance, path: vec![5], value };
    bench.0.change(&[change], NOW, &mut bench.1).unwrap();
    bench.receive(1, &[(1, 2)], NOW);
    assert_eq!(bench.0.tracing(id).unwrap().ended(NOW), None);
    let other = program(include_str!("../../../../examples/progfe/router.fe.xml"));
    let prepared = bench.0.prepare(other).unwrap();
    bench.0.swap(prepared, NOW, &mut bench.1).unwrap();
    let tracing = bench.0.tracing(id).unwrap();
    assert_eq!(tracing.ended(NOW), Some(Ended::Program));
    assert_eq!(tracing.program().name, "bridge", "the recorded trace is that of the bridge");
    assert_eq!(bench.taken(id).len(), 1);
}

thread_local! {
    static COUNTER: Cell<u64> = const { Cell::new(0) };
}

/// Increases by seven at each reading.
fn counter() -> u64 {
    COUNTER.with(|counter| counter.replace(counter.get() + 7))
}

#[test]
fn block_costs_exclude_the_cost_of_the_counter() {
    let mut bench = Bench::new();
    assert!(bench.0.measure_costs(counter, 100, UNTIL, NOW));
    assert!(!bench.0.measure_costs(counter, 100, UNTIL, NOW), "a measurement is active already");
    for _ in 0..FIRST {
        bench.receive(1, &[(1, 2)], NOW);
    }
    let fdb = bench.0.program().find("fdb").unwrap();
    let costs = bench.0.costs().unwrap();
    assert_eq!((costs.reading, costs.frames), (7, FIRST));
    let visits = costs.visits(fdb).unwrap();
    assert_eq!((visits.count, visits.total, visits.median()), (FIRST, 0, Some(0)));
    let idle = bench.0.program().find("rx#2").unwrap();
    assert_eq!(costs.visits(idle).unwrap().median(), None);
    // From here on one frame of a hundred is sampled.
    for _ in 0..2000 {
        bench.receive(1, &[(1, 2)], NOW);
    }
    let frames = bench.0.costs().unwrap().frames;
    assert!((FIRST + 20..=FIRST + 23).contains(&frames), "{frames}");
    bench.receive(1, &[(1, 2); 200], UNTIL);
    assert_eq!(bench.0.costs().unwrap().frames, frames, "the measurement has ended");
    assert_eq!(bench.0.account().received, FIRST + 2200);
    assert!(bench.0.measure_costs(counter, 1, UNTIL.saturating_add(UNTIL), UNTIL));
}
