//! Benchmark of the event loop: how many probe frames per second it sends, identifies and delivers
//! to a module one by one, on one thread over ports in memory.
//!
//! `cargo run --release -p instrument --example stage_rate [SECONDS [MPPS...]]`
//!
//! A rate is sustained if no frame is unsent because of lateness. Unknown delays show how many
//! times other programs used the core.

#![allow(clippy::unwrap_used)]

use std::net::Ipv4Addr;
use std::sync::Arc;

use netio::memory::pair;
use netio::port::Port;
use packet::time::Nanos;
use tester::executor::TopologyInfo;
use tester::module::*;
use tester::rig::live::LiveRig;
use tester::stream::{Field, FieldVariation, Headers, IndexOrder, Rate, Stream, Values};

/// Number of flows that the probes use in turn.
const FLOWS: u64 = 1_000;

/// Stores the time of each flow's first frame, like a rule measurement.
struct Firsts {
    pps: f64,
    seconds: u64,
    is_watched: bool,
    first: Vec<Option<Nanos>>,
    delay_ns: u64,
}

impl Module for Firsts {
    fn needs(&self) -> ModuleRequirements {
        let connections = Vec::new();
        ModuleRequirements {
            connections,
            ..ModuleRequirements::new(Nanos::from_secs(self.seconds + 5))
        }
    }

    fn react(&mut self, event: &Event<'_>, context: &mut ModuleContext) {
        match event.what {
            EventKind::Start(_) => {
                let ip = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 1, 0, 0));
                let headers = Headers::udp(([2; 6], [4; 6]), ip, (1, 2));
                let values = Values::Range { first: ip.1.to_bits().into(), step: 1 };
                let fields = vec![(Field::IpDestination, values)];
                let vary =
                    vec![FieldVariation { count: FLOWS, order: IndexOrder::Sequential, fields }];
                let plain = Stream::plain(1, 64, headers, Rate::FramesPerSecond(self.pps));
                let until = context.now() + Nanos::from_secs(self.seconds);
                context.start(Stream { vary, ..plain }, SendSpan::until(until));
                context.watch(
                    1,
                    if self.is_watched { FrameFilter::Probes } else { FrameFilter::None },
                );
            }
            EventKind::Frame(arrival) => {
                if let Some(probe) = arrival.probe {
                    self.first[probe.place as usize].get_or_insert(event.at);
                    self.delay_ns += event.at.since(probe.sent_at).0;
                }
            }
            EventKind::StreamEnded(_) => context.end(),
            _ => {}
        }
    }

    fn finish(&mut self, _: &Ended, _: &mut ModuleContext) {}
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<f64>().unwrap());
    let seconds = arguments.next().unwrap_or(2.0) as u64;
    let mut rates: Vec<f64> = arguments.collect();
    if rates.is_empty() {
        rates = vec![0.1, 1.0, 2.0, 4.0, 8.0];
    }
    println!(
        "intended    watched  Mpps sent  events    late     lost  ns/event  longest us  unknown"
    );
    for (mpps, is_watched) in rates.into_iter().flat_map(|rate| [(rate, true), (rate, false)]) {
        let (near, far) = pair(4096, "cable");
        let ports: Vec<Box<dyn Port>> = vec![Box::new(near), Box::new(far)];
        let mut rig = LiveRig::new(ports, 3, Arc::default());
        let first = vec![None; FLOWS as usize];
        let mut module = Firsts { pps: mpps * 1e6, seconds, is_watched, first, delay_ns: 0 };
        let report = rig.stage(&mut module, &TopologyInfo::default(), &mut |_, _| Ok(None));
        let (account, costs) = (report.streams[0], report.costs);
        println!(
            "{mpps:10.2}  {is_watched:>7}  {:9.3}  {:8}  {:7}  {:5}  {:8.1}  {:10.1}  {}",
            account.sent as f64 / seconds as f64 / 1e6,
            report.ports[1].watched,
            account.unsent_late,
            account.lost(),
            costs.reaction_ns_total as f64 / costs.events as f64,
            costs.reaction_ns_longest as f64 / 1e3,
            report.stalls.delays_unknown,
        );
        assert_eq!(account.arrived, account.expected);
    }
}
