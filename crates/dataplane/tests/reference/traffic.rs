//! Sends frames through both switches and compares all results.
//!
//! A run of frames passes through the pipeline as one batch. A frame that depends on an unknown
//! choice of a select group is sent alone. Then one of the possible results of the naive switch
//! must be the result of the pipeline.

use std::collections::BTreeMap;

use dataplane::flow::FlowFilter;
use dataplane::forwarder::{Event, Forwarder};
use dataplane::group::GROUPS_ALL;
use dataplane::matching::Match;
use packet::frame::{Batch, PortNo};

use crate::choices::Choices;
use crate::draw;
use crate::model::Model;
use crate::pair::{PORTS, Pair, Row, row};
use crate::switch::{Effects, Seen, Told};

/// More frames for one port, or for the controller, end a batch, so that no queue is ever full.
const SEEN_MAX: usize = 400;

/// Maximum number of alternatives to examine for a frame.
const WAYS_MAX: usize = 20_000;

impl Pair {
    /// Sends some frames from one port.
    pub fn traffic(&mut self, place: &str) {
        let port = self.dice.pick(&PORTS);
        let mut model = self.scene.frames[0].clone();
        let (mut batch, mut wanted) = (Vec::new(), Seen::default());
        for _ in 0..1 + self.dice.roll(40) {
            // Runs of the same frame, and frames of the same flow.
            match self.dice.roll(6) {
                0 | 1 => {
                    let at = self.dice.roll(self.scene.frames.len() as u64) as usize;
                    model = self.scene.frames[at].clone();
                }
                2 => model = draw::varied(&mut self.dice, &model),
                _ => {}
            }
            if is_long(&wanted) {
                self.forward(port, &mut batch, &mut wanted, place);
            }
            match self.naive.decide(port, &model, &self.choices, self.now) {
                Ok(effects) => {
                    add(&mut wanted, self.naive.commit(effects, self.now));
                    batch.push(model.bytes());
                }
                Err(_) => {
                    self.forward(port, &mut batch, &mut wanted, place);
                    self.alone(port, &model, place);
                }
            }
        }
        self.forward(port, &mut batch, &mut wanted, place);
        self.compare(place);
    }

    /// Forwards the frames, if there are any, and compares the results.
    fn forward(&mut self, port: PortNo, batch: &mut Vec<Vec<u8>>, wanted: &mut Seen, place: &str) {
        let seen = self.see(port, batch);
        batch.clear();
        let wanted = std::mem::take(wanted);
        for port in PORTS {
            let none = Vec::new();
            let (got, wanted) = (seen.sent.get(&port), wanted.sent.get(&port));
            let place = format!("{place}, port {port}");
            same(got.unwrap_or(&none), wanted.unwrap_or(&none), &place);
        }
        same(&seen.told, &wanted.told, place);
        assert_eq!(seen.groups, wanted.groups, "{place}, groups");
    }

    /// Forwards one frame with unknown choices, and learns these choices.
    fn alone(&mut self, port: PortNo, model: &Model, place: &str) {
        let mut ways = Vec::new();
        self.ways(port, model, &self.choices, &mut ways);
        let observed = self.see(port, &[model.bytes()]);
        let (count, first) = (ways.len(), ways[0].1.seen.clone());
        let (choices, mut effects): (Vec<Choices>, Vec<Effects>) =
            ways.into_iter().filter(|(_, effects)| effects.seen == observed).unzip();
        assert!(
            !effects.is_empty(),
            "{place}: none of {count} results, such as {first:?}, equals {observed:?}"
        );
        self.learned += self.choices.learn(&choices);
        self.naive.commit(effects.swap_remove(0), self.now);
    }

    /// Collects all possible results of a frame.
    fn ways(
        &self,
        port: PortNo,
        model: &Model,
        choices: &Choices,
        found: &mut Vec<(Choices, Effects)>,
    ) {
        assert!(found.len() < WAYS_MAX, "too many alternatives");
        match self.naive.decide(port, model, choices, self.now) {
            Ok(effects) => found.push((choices.clone(), effects)),
            Err(unknown) => {
                for bucket in &unknown.among {
                    self.ways(port, model, &choices.with(&unknown, *bucket), found);
                }
            }
        }
    }

    /// Forwards these frames in the pipeline.
    fn see(&mut self, port: PortNo, frames: &[Vec<u8>]) -> Seen {
        if frames.is_empty() {
            return Seen::default();
        }
        let mut batch = Batch::new(frames.len());
        for bytes in frames {
            assert!(batch.push_bytes(bytes));
        }
        let before = self.group_counts();
        self.pipeline.forward(port, &mut batch, self.now, &mut self.out);
        let mut seen = Seen { groups: self.group_counts(), ..Seen::default() };
        for (of, (frames, bytes)) in before {
            let now = seen.groups.get_mut(&of).expect("groups stay while frames pass");
            *now = (now.0 - frames, now.1 - bytes);
        }
        seen.groups.retain(|_, counts| *counts != (0, 0));
        for (port, queue) in self.out.queues_mut() {
            let sent: Vec<_> = queue.frames().iter().map(|frame| frame.bytes().to_vec()).collect();
            if !sent.is_empty() {
                seen.sent.insert(*port, sent);
            }
            queue.clear();
        }
        seen.told = self.out.events.drain(..).map(packet_in).collect();
        seen
    }

    fn group_counts(&self) -> BTreeMap<(u32, Option<u32>), (u64, u64)> {
        let mut counts = BTreeMap::new();
        for record in self.pipeline.groups().records(GROUPS_ALL, self.now) {
            let number = record.spec.number;
            counts.insert((number, None), (record.traffic.frames, record.traffic.bytes));
            for (bucket, traffic) in record.spec.buckets.iter().zip(&record.buckets) {
                counts.insert((number, Some(bucket.id)), (traffic.frames, traffic.bytes));
            }
        }
        counts
    }

    /// Compares counters and all properties of entries and meters.
    pub fn compare(&self, place: &str) {
        let mut got: Vec<Row> =
            self.pipeline.tables().records(&FlowFilter::ALL, 0, self.now).map(row).collect();
        let entries = self.naive.entries.iter().map(|entry| {
            let named = entry.asked.iter().map(|asked| asked.0).collect();
            let matching = Match::asking(&entry.asked).asked(named);
            let spec = &entry.spec;
            (spec.table, spec.rank, spec.cookie, entry.frames, entry.bytes, matching)
        });
        let mut wanted: Vec<Row> = entries.collect();
        got.sort_unstable();
        wanted.sort_unstable();
        same(&got, &wanted, place);
        for (table, wanted) in self.naive.accounts.iter().enumerate() {
            let account = self.pipeline.tables().account(table as u8);
            assert_eq!((account.lookups, account.matched), *wanted, "{place}, table {table}");
        }
        for (number, meter) in &self.naive.meters {
            let records = self.pipeline.meters().records(*number, self.now);
            let [record] = &records[..] else { panic!("{place}: meter {number} is missing") };
            let bands = record.bands.iter().map(|band| (band.frames, band.bytes));
            let got = ((record.traffic.frames, record.traffic.bytes), bands.collect::<Vec<_>>());
            assert_eq!(got, (meter.traffic, meter.done.clone()), "{place}, meter {number}");
        }
    }
}

fn is_long(seen: &Seen) -> bool {
    seen.told.len() > SEEN_MAX || seen.sent.values().any(|sent| sent.len() > SEEN_MAX)
}

fn add(to: &mut Seen, more: Seen) {
    for (port, sent) in more.sent {
        to.sent.entry(port).or_default().extend(sent);
    }
    to.told.extend(more.told);
    for (of, (frames, bytes)) in more.groups {
        let counts = to.groups.entry(of).or_default();
        *counts = (counts.0 + frames, counts.1 + bytes);
    }
}

/// Reports the first difference only.
fn same<T: PartialEq + std::fmt::Debug>(got: &[T], wanted: &[T], place: &str) {
    for at in 0..got.len().max(wanted.len()) {
        assert_eq!(got.get(at), wanted.get(at), "{place}, number {at}");
    }
}

fn packet_in(event: Event) -> Told {
    match event {
        Event::PacketIn { port, bytes_max, context, frame } => Told {
            port,
            why: context.why,
            bytes_max,
            table: context.table,
            cookie: context.cookie,
            metadata: context.fields.metadata,
            tunnel_id: context.fields.tunnel_id,
            bytes: frame.bytes().to_vec(),
        },
        other => panic!("not a packet-in: {other:?}"),
    }
}
