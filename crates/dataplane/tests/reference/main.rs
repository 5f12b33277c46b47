//! The pipeline against a naive switch: random tables, instructions, actions, groups, commands and
//! frames. A difference names its seed.

#![allow(clippy::unwrap_used)]

use dataplane::action::Action;
use dataplane::flow::{FlowFilter, FlowRecord, FlowRemovedReason, ModifyRules};
use dataplane::forwarder::{Event, Forwarder, Outputs};
use dataplane::group::{BucketSpec, GroupKind, GroupSpec};
use dataplane::matching::{Asked, Match};
use dataplane::pipeline::{OnMiss, Pipeline, Settings};
use dataplane::table::{TableConfig, TableMiss, TableSettings};
use packet::frame::{Batch, PortNo};
use packet::time::Nanos;

#[path = "../rewrite/change.rs"]
mod change;
#[path = "../../src/dice.rs"]
mod dice;
mod draw;
#[path = "../rewrite/kinds.rs"]
mod kinds;
#[allow(dead_code, reason = "shared with the test of changes")]
#[path = "../rewrite/model.rs"]
mod model;
mod switch;

use dice::Dice;
use model::Model;
use switch::{Entry, Switch, Told};

const PORTS: [PortNo; 4] = [1, 2, 3, 4];
const TABLES: usize = 5;
const NOW: Nanos = Nanos::ZERO;

/// Both switches, told the same.
struct Pair {
    pipeline: Pipeline,
    out: Outputs,
    naive: Switch,
    /// What frames are drawn from, and values of matches.
    frames: Vec<Model>,
    dice: Dice,
}

impl Pair {
    fn new(seed: u64) -> Pair {
        let mut dice = Dice::new(seed);
        let on_miss = dice.pick(&[OnMiss::Controller, OnMiss::Drop]);
        let ways =
            [TableMiss::Pipeline, TableMiss::Controller, TableMiss::Continue, TableMiss::Drop];
        let tables: Vec<TableSettings> = (0..TABLES)
            .map(|_| TableSettings {
                config: TableConfig { on_miss: dice.pick(&ways), ..TableConfig::default() },
                ..draw::table(&mut dice)
            })
            .collect();
        let naive = Switch {
            ports: PORTS.to_vec(),
            on_miss: Some(on_miss),
            tables: tables.iter().map(|table| table.config.on_miss).collect(),
            accounts: vec![(0, 0); TABLES],
            ..Switch::default()
        };
        let settings = Settings { tables, on_miss, ..Settings::default() };
        let frames = (0..6).map(|_| draw::frame(&mut dice)).collect();
        let pipeline = Pipeline::new(&PORTS, &settings);
        Pair { pipeline, out: Outputs::new(&PORTS), naive, frames, dice }
    }

    fn add_groups(&mut self) {
        for number in 1..4 {
            let one = self.dice.roll(3) == 0;
            let kind = if one { GroupKind::Indirect } else { GroupKind::All };
            let count = if one { 1 } else { self.dice.roll(4) };
            let buckets: Vec<Vec<Action>> =
                (0..count).map(|_| draw::set(&mut self.dice, &self.frames, number)).collect();
            let specs = buckets.iter().zip(0..).map(|(set, id)| BucketSpec::new(id, 0, set));
            let spec = GroupSpec { number, kind, buckets: specs.collect() };
            self.pipeline.add_group(spec, NOW).unwrap();
            self.naive.groups.insert(number, (Some(kind), buckets));
        }
    }

    /// Installs something, or changes or deletes what is there.
    fn command(&mut self) {
        let known = !self.naive.entries.is_empty();
        match self.dice.roll(8) {
            0 if known => self.delete(),
            1 if known => self.modify(),
            _ => self.add(),
        }
    }

    fn add(&mut self) {
        let (asked, mut spec) = draw::flow(&mut self.dice, &self.frames, TABLES as u8);
        let entries = &mut self.naive.entries;
        let clash = entries
            .iter()
            .position(|entry| (entry.spec.table, entry.spec.rank) == (spec.table, spec.rank));
        let mut counts = (0, 0);
        if let Some(at) = clash {
            // Which of two entries of the same rank is used would be left open, so it replaces the
            // one that is there.
            let old = entries.remove(at);
            spec.matching = old.spec.matching;
            if !spec.flags.reset_counts {
                counts = (old.frames, old.bytes);
            }
            entries.push(Entry {
                asked: old.asked,
                spec: spec.clone(),
                frames: counts.0,
                bytes: counts.1,
            });
        } else {
            entries.push(Entry { asked, spec: spec.clone(), frames: counts.0, bytes: counts.1 });
        }
        self.pipeline.add(&spec, NOW, &mut self.out).unwrap();
    }

    /// A filter in both tongues: of one entry strictly, or of all that it covers.
    fn filter(&mut self) -> (FlowFilter, Vec<bool>) {
        let at = self.dice.roll(self.naive.entries.len() as u64) as usize;
        let model = self.naive.entries[at].clone();
        let mut asked = model.asked.clone();
        let strict = self.dice.roll(2) == 0;
        if !strict {
            // Less is asked for, and nothing whose need is not.
            let keep = self.dice.roll(asked.len() as u64 + 1) as usize;
            asked.truncate(keep);
        }
        let mut filter = FlowFilter {
            table: (self.dice.roll(2) == 0).then_some(model.spec.table),
            strict_rank: strict.then_some(model.spec.rank),
            cookie: if self.dice.roll(4) == 0 { (model.spec.cookie, 1) } else { (0, 0) },
            ..FlowFilter::covered_by(Match::asking(&asked))
        };
        match self.dice.roll(4) {
            0 => filter.destination = Some(Action::Output { port: 2 }),
            1 => filter.group = Some(1),
            _ => {}
        }
        let chosen = self.naive.entries.iter().map(|entry| {
            let covered = asked.iter().all(|(field, value, mask)| {
                entry.asked.iter().any(|(other, theirs, bits)| {
                    other == field && bits & mask == *mask && theirs & mask == *value
                })
            });
            let same = asked == entry.asked && filter.strict_rank == Some(entry.spec.rank);
            let has =
                |wanted: Action| entry.spec.instructions.actions().any(|action| *action == wanted);
            filter.table.is_none_or(|table| table == entry.spec.table)
                && (if strict { same } else { covered })
                && (entry.spec.cookie ^ filter.cookie.0) & filter.cookie.1 == 0
                && filter.destination.is_none_or(has)
                && filter.group.is_none_or(|group| has(Action::Group(group)))
        });
        let chosen = chosen.collect();
        (filter, chosen)
    }

    fn delete(&mut self) {
        let (filter, mut chosen) = self.filter();
        let gone = self.pipeline.delete(&filter, NOW, &mut self.out);
        assert_eq!(gone, chosen.iter().filter(|chosen| **chosen).count(), "{filter:?}");
        let notified = self.naive.entries.iter().zip(&chosen);
        let notified = notified.filter(|(entry, gone)| **gone && entry.spec.flags.notify_removed);
        let mut wanted: Vec<_> =
            notified.map(|(entry, _)| (entry.spec.cookie, entry.frames, entry.bytes)).collect();
        chosen.reverse();
        self.naive.entries.retain(|_| !chosen.pop().unwrap());
        let mut told: Vec<_> = self.out.events.drain(..).map(removal).collect();
        told.sort_unstable();
        wanted.sort_unstable();
        assert_eq!(told, wanted);
    }

    fn modify(&mut self) {
        let (filter, chosen) = self.filter();
        let (_, mut spec) = draw::flow(&mut self.dice, &self.frames, TABLES as u8);
        // It may go on only where all that it changes may.
        spec.table = TABLES as u8 - 1;
        spec.instructions = draw::last(&mut self.dice, &self.frames);
        let rules = ModifyRules { add: false, cookie: self.dice.roll(2) == 0 };
        self.pipeline.modify(&spec, &filter, rules, NOW, &mut self.out).unwrap();
        for (entry, chosen) in self.naive.entries.iter_mut().zip(chosen) {
            if chosen {
                entry.spec.instructions = spec.instructions.clone();
                if rules.cookie {
                    entry.spec.cookie = spec.cookie;
                }
                if spec.flags.reset_counts {
                    (entry.frames, entry.bytes) = (0, 0);
                }
            }
        }
    }

    fn traffic(&mut self, place: &str) {
        let port = self.dice.pick(&PORTS);
        let count = 1 + self.dice.roll(40);
        let mut batch = Batch::new(count as usize);
        let mut model = self.frames[0].clone();
        for _ in 0..count {
            // Runs of the same frame, as a flow is.
            if self.dice.roll(3) == 0 {
                model = self.frames[self.dice.roll(self.frames.len() as u64) as usize].clone();
            }
            assert!(batch.push_bytes(&model.bytes()));
            self.naive.receive(port, &model);
        }
        self.pipeline.forward(port, &mut batch, NOW, &mut self.out);
        for (port, queue) in self.out.queues_mut() {
            let sent: Vec<Vec<u8>> =
                queue.frames().iter().map(|frame| frame.bytes().to_vec()).collect();
            let wanted = self.naive.sent.remove(port).unwrap_or_default();
            same(&sent, &wanted, &format!("{place}, port {port}"));
            queue.clear();
        }
        self.compare(place);
        let told: Vec<Told> = self.out.events.drain(..).map(packet_in).collect();
        same(&told, &std::mem::take(&mut self.naive.told), place);
    }

    /// Counters and all that is said of entries.
    fn compare(&self, place: &str) {
        let mut got: Vec<_> =
            self.pipeline.tables().records(&FlowFilter::ALL, 0, NOW).map(row).collect();
        let mut wanted: Vec<_> = self
            .naive
            .entries
            .iter()
            .map(|entry| {
                let named = entry.asked.iter().map(|asked| asked.0).collect();
                let said = Match::asking(&entry.asked).asked(named);
                let spec = &entry.spec;
                (spec.table, spec.rank, spec.cookie, entry.frames, entry.bytes, said)
            })
            .collect();
        got.sort_unstable();
        wanted.sort_unstable();
        same(&got, &wanted, place);
        for (table, wanted) in self.naive.accounts.iter().enumerate() {
            let account = self.pipeline.tables().account(table as u8);
            assert_eq!((account.lookups, account.matched), *wanted, "{place}, table {table}");
        }
    }
}

/// Complains of the first difference only.
fn same<T: PartialEq + std::fmt::Debug>(got: &[T], wanted: &[T], place: &str) {
    for at in 0..got.len().max(wanted.len()) {
        assert_eq!(got.get(at), wanted.get(at), "{place}, number {at}");
    }
}

type Row = (u8, u32, u64, u64, u64, Vec<Asked>);

fn row(flow: FlowRecord) -> Row {
    let said = flow.matching.asked(flow.matching.fields_asked());
    (flow.table, flow.rank, flow.cookie, flow.frames, flow.bytes, said)
}

fn removal(event: Event) -> (u64, u64, u64) {
    match event {
        Event::FlowRemoved { flow, why: FlowRemovedReason::Deleted } => {
            (flow.cookie, flow.frames, flow.bytes)
        }
        other => panic!("no removal: {other:?}"),
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
        other => panic!("no packet-in: {other:?}"),
    }
}

#[test]
fn the_pipeline_does_what_the_naive_switch_does() {
    let mut sent = 0;
    for seed in 0..300 {
        let mut pair = Pair::new(seed);
        pair.add_groups();
        for round in 0..25 {
            let place = format!("seed {seed}, round {round}");
            for _ in 0..pair.dice.roll(6) {
                pair.command();
            }
            pair.traffic(&place);
        }
        sent += pair.naive.accounts[1].1;
    }
    assert!(sent > 10_000, "hardly a frame came to the second table: {sent}");
}
