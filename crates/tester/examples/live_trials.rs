//! Benchmark of the tester on live ports: trials from one interface to another at several loads.
//!
//! `cargo run --release -p tester --example live_trials LEFT RIGHT [SECONDS]`, as root. The interfaces
//! are both ends of a veth pair in this namespace. The tester runs on core 0. The program waits for
//! a line: have the kernel's receive thread of RIGHT (`/sys/class/net/RIGHT/threaded`) run on
//! another core, then press Enter.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use netio::afpacket::Options;
use netio::open::open;
use packet::time::Nanos;
use tester::rig::Rig;
use tester::rig::live::LiveRig;
use tester::stream::{Field, FieldVariation, Headers, IndexOrder, Rate, Stream, Values};
use tester::trial::{Trial, TrialReport};

const LOADS_PPS: [f64; 9] = [0.01e6, 0.1e6, 1e6, 2e6, 3e6, 4e6, 5e6, 6e6, 8e6];

fn main() {
    let mut words = std::env::args().skip(1);
    let names = [words.next().unwrap(), words.next().unwrap()];
    let seconds = words.next().map_or(0.5, |text| text.parse().unwrap());
    os::core::hold(&[0]).unwrap();
    let ports =
        names.map(|name| open(&format!("live:{name},receive"), &Options::monitor()).unwrap());
    std::io::stdin().read_line(&mut String::new()).unwrap();
    let mut rig = LiveRig::new(ports.into(), 7, Arc::default());
    println!(
        "{:18}{:>9}{:>9}{:>9}{:>9}{:>9}{:>8}{:>8}{:>8}{:>8}{:>8}  account",
        "load",
        "offered",
        "received",
        "lost",
        "late",
        "refused",
        "lat50",
        "lat99",
        "pace50",
        "pace99",
        "max"
    );
    for (name, frame_bytes, vary) in [("64", 64, 0), ("64 random", 64, 1 << 16), ("1518", 1518, 0)]
    {
        for pps in LOADS_PPS {
            let load = Trial::new(
                vec![stream(frame_bytes, vary, pps)],
                Nanos::from_millis(50),
                Nanos::from_secs_f64(seconds),
                Nanos::from_millis(50),
            );
            let report = rig.trial(&load).unwrap();
            show(&format!("{name} {:.2} Mpps", pps / 1e6), &report);
        }
    }
}

fn stream(frame_bytes: usize, vary: u64, pps: f64) -> Stream {
    let headers = Headers::udp(
        ([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]),
        ([10, 0, 0, 1].into(), [10, 0, 1, 2].into()),
        (4000, 5000),
    );
    let mut stream = Stream::plain(1, frame_bytes, headers, Rate::FramesPerSecond(pps));
    (stream.from, stream.to) = (0, 1);
    if vary > 0 {
        let fields = vec![(Field::IpDestination, Values::Scattered { seed: 1 })];
        stream.vary =
            vec![FieldVariation { count: vary, order: IndexOrder::Random { seed: 3 }, fields }];
    }
    stream
}

fn show(name: &str, report: &TrialReport) {
    let stream = &report.streams[0];
    let lost = report.total.offered - report.total.forwarded;
    let micros = |ns: Option<u64>| ns.map_or(-1.0, |ns| ns as f64 / 1e3);
    let latency = |share| micros(report.latency.from_sent.ns_at_quantile(share));
    let pace = |share| micros(report.pacing.lateness.ns_at_quantile(share));
    println!(
        "{name:18}{:9.3}{:9.3}{:9}{:9}{:9}{:8.1}{:8.1}{:8.1}{:8.1}{:8.0}  {} {:?}",
        report.total.pps_offered() / 1e6,
        report.total.pps_forwarded() / 1e6,
        lost,
        stream.unsent_late,
        stream.unsent_refused,
        latency(0.5),
        latency(0.99),
        pace(0.5),
        pace(0.99),
        micros(Some(report.pacing.lateness_max.0)),
        report.account.unexplained(),
        report.classes,
    );
}
