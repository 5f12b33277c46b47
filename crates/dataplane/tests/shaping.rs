//! Case files about groups, meters and queues: commands for a pipeline, and their expected results.
//!
//! A line that begins with `=` is a result of the command above it. `bucket`, `band` and `queue`
//! lines describe the parts of the next `group`, `meter` or `port` line. `UPDATE=1 cargo test -p
//! dataplane --test shaping` rewrites the `=` lines; review the diff before you accept them.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;

use dataplane::action::Action;
use dataplane::flow::{FlowFilter, FlowSpec, Source};
use dataplane::forwarder::{Event, Forwarder, Outputs};
use dataplane::group::{BucketPlace, BucketSpec, GROUPS_ALL, GroupKind, GroupSpec};
use dataplane::instruction::Instructions;
use dataplane::matching::Match;
use dataplane::meter::{Band, BandKind, METERS_ALL, MeterSpec, Unit};
use dataplane::pipeline::{Pipeline, Settings};
use dataplane::queue::{PortQueues, QueueSpec};
use packet::build::Builder;
use packet::field::Field;
use packet::frame::{Batch, PortNo};
use packet::header::ipv4;
use packet::time::Nanos;

#[test]
fn every_case_gives_its_expected_results() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/shaping");
    for name in ["groups", "meters", "queues"] {
        let path = folder.join(name).with_extension("case");
        let text = fs::read_to_string(&path).unwrap();
        let (mut case, mut transcript) = (Case::new(), String::new());
        for line in text.lines().filter(|line| !line.starts_with('=')) {
            transcript += &format!("{line}\n");
            if !line.is_empty() && !line.starts_with('#') {
                case.run(line).iter().for_each(|reply| transcript += &format!("= {reply}\n"));
            }
        }
        if std::env::var_os("UPDATE").is_some() {
            fs::write(&path, &transcript).unwrap();
        } else {
            assert_eq!(transcript, text, "{}", path.display());
        }
    }
}

struct Case {
    pipeline: Pipeline,
    out: Outputs,
    now: Nanos,
    buckets: Vec<BucketSpec>,
    bands: Vec<Band>,
    queues: Vec<QueueSpec>,
    /// Frames and bytes sent, by destination.
    left: BTreeMap<String, (u64, u64)>,
}

/// The words of a line: positional or named.
struct Words<'a>(Vec<&'a str>);

impl<'a> Words<'a> {
    fn named(&self, name: &str) -> Option<&'a str> {
        self.0.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
    }

    fn number<T: TryFrom<u64>>(&self, name: &str) -> Option<T> {
        self.named(name).map(|text| number(text))
    }

    fn at<T: TryFrom<u64>>(&self, place: usize) -> T {
        number(self.0[place])
    }
}

fn number<T: TryFrom<u64>>(text: &str) -> T {
    let number = if text == "all" { u64::from(u32::MAX) } else { text.parse().unwrap() };
    T::try_from(number).unwrap_or_else(|_| panic!("unexpected argument {text}"))
}

fn actions(text: &str) -> Vec<Action> {
    let words = text.split(',').filter(|word| !word.is_empty());
    words
        .map(|word| {
            let (name, value) = word.split_once(':').unwrap_or((word, "0"));
            match name {
                "output" => Action::Output { port: number(value) },
                "in_port" => Action::InPort,
                "controller" => Action::Controller { bytes_max: number(value) },
                "group" => Action::Group(number(value)),
                "meter" => Action::Meter(number(value)),
                "set_queue" => Action::SetQueue(number(value)),
                "set_udp_src" => Action::set(Field::UdpSrc, number::<u16>(value).into()),
                "dec_ip_ttl" => Action::DecIpTtl,
                other => panic!("unknown action {other}"),
            }
        })
        .collect()
}

impl Case {
    fn new() -> Case {
        let ports = [1, 2, 3, 4];
        Case {
            pipeline: Pipeline::new(&ports, &Settings { normal: None, ..Settings::default() }),
            out: Outputs::new(&ports),
            now: Nanos::ZERO,
            buckets: Vec::new(),
            bands: Vec::new(),
            queues: Vec::new(),
            left: BTreeMap::new(),
        }
    }

    fn run(&mut self, line: &str) -> Vec<String> {
        let words = Words(line.split_whitespace().collect());
        let (now, source) = (self.now, Source::default());
        match words.0[0] {
            "bucket" => self.buckets.push(bucket(&words)),
            "band" => self.bands.push(band(&words)),
            "queue" => self.queues.push(queue(&words)),
            "port" => {
                let (port, queues) = (words.at(1), std::mem::take(&mut self.queues));
                let described = PortQueues { port, rate: words.number("rate"), queues };
                return answer(self.pipeline.set_queues(&described, now));
            }
            "group" | "regroup" => {
                let (number, buckets) = (words.at(1), std::mem::take(&mut self.buckets));
                let spec = GroupSpec { number, kind: kind(words.0[2]), buckets };
                return answer(match words.0[0] {
                    "group" => self.pipeline.add_group(spec, now),
                    _ => self.pipeline.modify_group(spec),
                });
            }
            "insert" => {
                let buckets = std::mem::take(&mut self.buckets);
                let place = place(words.0[2]);
                return answer(self.pipeline.insert_buckets(words.at(1), place, buckets));
            }
            "remove" => {
                return answer(self.pipeline.remove_buckets(words.at(1), place(words.0[2])));
            }
            "ungroup" => {
                let number = if words.0[1] == "all" { GROUPS_ALL } else { words.at(1) };
                let gone = self.pipeline.delete_group(number, source, now, &mut self.out);
                return answer(gone);
            }
            "meter" | "remeter" => {
                let unit = if words.0[2] == "kbps" { Unit::Kilobits } else { Unit::Packets };
                let (bands, burst) = (std::mem::take(&mut self.bands), words.0.contains(&"burst"));
                let spec = MeterSpec { number: words.at(1), unit, burst, stats: true, bands };
                return answer(match words.0[0] {
                    "meter" => self.pipeline.add_meter(spec, now),
                    _ => self.pipeline.modify_meter(spec, now),
                });
            }
            "unmeter" => {
                let gone = self.pipeline.delete_meter(words.at(1), source, now, &mut self.out);
                return answer(gone);
            }
            "link" => return answer(self.pipeline.set_link(words.at(1), words.0[2] == "up")),
            "flow" => return answer(self.flow(&words)),
            "frames" => return self.frames(&words),
            "run" => {
                let until = Nanos::from_secs_f64(words.0[1].parse().unwrap());
                self.go_on(until);
                return self.take_output();
            }
            "show" => return self.show(words.0[1]),
            other => panic!("unknown command {other}"),
        }
        Vec::new()
    }

    /// Adds an entry for all frames from a port.
    fn flow(&mut self, words: &Words) -> impl std::fmt::Debug + use<> {
        let matching =
            Match::asking(&[(Field::InPort, words.at::<u32>(1).into(), Field::InPort.ones())]);
        let instructions = Instructions {
            meter: words.number("meter"),
            ..Instructions::apply(&actions(words.named("actions").unwrap_or("")))
        };
        let spec = FlowSpec::new(matching, 1, &[]);
        let spec = FlowSpec { instructions: Arc::new(instructions), ..spec };
        self.pipeline.add(&spec, self.now, &mut self.out)
    }

    /// Sends frames from a port: their number, the number of flows in turn, and the gap in
    /// microseconds.
    fn frames(&mut self, words: &Words) -> Vec<String> {
        let (port, times): (PortNo, u64) = (words.at(1), words.number("times").unwrap_or(1));
        let gap = Nanos::from_micros(words.number("gap_us").unwrap_or(0));
        let flows: u64 = words.number("flows").unwrap_or(1);
        let mut batch = Batch::new(1);
        for frame in 0..times {
            let (from, to) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
            let tos = words.number::<u8>("dscp").unwrap_or(0) << 2;
            let ttl = words.number("ttl").unwrap_or(64);
            let header = ipv4::Header { tos, ttl, ..ipv4::Header::new(from, to) };
            let builder = Builder::new([2; 6], [4; 6]).ipv4(header);
            let builder = builder.udp((frame % flows) as u16, 9);
            let length = words.number::<usize>("bytes").unwrap_or(60) - 42;
            batch.clear();
            batch.push_bytes(&builder.payload(&vec![0; length]).bytes());
            self.pipeline.forward(port, &mut batch, self.now, &mut self.out);
            self.collect();
            self.go_on(self.now + gap);
        }
        self.take_output()
    }

    /// Advances to a time, with a stop whenever frames are due.
    fn go_on(&mut self, until: Nanos) {
        let mut due = self.out.wake.take();
        while let Some(next) = due.filter(|due| *due <= until) {
            self.now = next.max(self.now);
            due = self.pipeline.tick(self.now, &mut self.out);
            self.collect();
        }
        self.now = until;
        self.out.wake_at(due);
    }

    /// Counts the output.
    fn collect(&mut self) {
        for (port, batch) in self.out.queues_mut() {
            for frame in batch.frames() {
                let dscp = frame.bytes()[15] >> 2;
                let mark = if dscp > 0 { format!(" dscp {dscp}") } else { String::new() };
                let count = self.left.entry(format!("port {port}{mark}")).or_default();
                *count = (count.0 + 1, count.1 + frame.len() as u64);
            }
            batch.clear();
        }
        for event in self.out.events.drain(..) {
            let name = match event {
                Event::PacketIn { context, .. } => format!("controller {:?}", context.why),
                other => format!("{other:?}"),
            };
            self.left.entry(name).or_default().0 += 1;
        }
    }

    fn take_output(&mut self) -> Vec<String> {
        let left = std::mem::take(&mut self.left);
        let show = |(name, (frames, bytes))| format!("{name}: {frames} frames, {bytes} bytes");
        left.into_iter().map(show).collect()
    }

    fn show(&self, what: &str) -> Vec<String> {
        let counts = |traffic: &dataplane::counter::Traffic| (traffic.frames, traffic.bytes);
        match what {
            "groups" => (self.pipeline.groups().records(GROUPS_ALL, self.now).iter())
                .map(|group| {
                    let buckets = group.spec.buckets.iter().zip(&group.buckets);
                    let buckets: Vec<_> =
                        buckets.map(|(spec, traffic)| (spec.id, counts(traffic))).collect();
                    let (number, references) = (group.spec.number, group.references);
                    let traffic = counts(&group.traffic);
                    format!(
                        "{number}: {traffic:?} references {references} {buckets:?} {}",
                        group.age
                    )
                })
                .collect(),
            "meters" => (self.pipeline.meters().records(METERS_ALL, self.now).iter())
                .map(|meter| {
                    let bands: Vec<_> = meter.bands.iter().map(counts).collect();
                    let traffic = counts(&meter.traffic);
                    format!("{}: {traffic:?} bands {bands:?} {}", meter.spec.number, meter.age)
                })
                .collect(),
            "queues" => (self.pipeline.egress().queue_records(self.now).iter())
                .map(|queue| {
                    let (sent, errors) = ((queue.frames, queue.bytes), queue.errors);
                    let name = format!("{}:{}", queue.port, queue.spec.queue);
                    format!("{name} {sent:?} errors {errors} waiting {}", queue.waiting)
                })
                .collect(),
            "flows" => answer(self.pipeline.tables().totals(&FlowFilter::ALL).entries),
            "drops" => (self.pipeline.drops().occurred())
                .map(|(why, frames)| format!("{} {frames}", why.name()))
                .collect(),
            other => panic!("cannot show {other}"),
        }
    }
}

fn answer(result: impl std::fmt::Debug) -> Vec<String> {
    vec![format!("{result:?}")]
}

fn bucket(words: &Words) -> BucketSpec {
    let actions = actions(words.named("actions").unwrap_or(""));
    BucketSpec {
        watch_port: words.number("watch_port"),
        watch_group: words.number("watch_group"),
        ..BucketSpec::new(words.at(1), words.number("weight").unwrap_or(0), &actions)
    }
}

fn band(words: &Words) -> Band {
    let kind = match words.number("levels") {
        Some(levels) => BandKind::DscpRemark { levels },
        None => BandKind::Drop,
    };
    Band { kind, rate: words.at(1), burst: words.number("burst").unwrap_or(0) }
}

fn queue(words: &Words) -> QueueSpec {
    let plain = QueueSpec::new(words.at(1));
    let frames_max = words.number("frames").unwrap_or(plain.frames_max);
    QueueSpec { min: words.number("min"), max: words.number("max"), frames_max, ..plain }
}

fn kind(word: &str) -> GroupKind {
    match word {
        "all" => GroupKind::All,
        "select" => GroupKind::Select,
        "indirect" => GroupKind::Indirect,
        "failover" => GroupKind::FastFailover,
        other => panic!("unknown kind {other}"),
    }
}

fn place(word: &str) -> BucketPlace {
    match word {
        "first" => BucketPlace::First,
        "last" => BucketPlace::Last,
        "all" => BucketPlace::All,
        id => BucketPlace::Id(number(id)),
    }
}
