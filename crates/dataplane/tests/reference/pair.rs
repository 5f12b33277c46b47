//! Both switches with the same commands: entries added, modified, deleted and timed out.

use dataplane::action::Action;
use dataplane::flow::{
    FlowError, FlowFilter, FlowRecord, FlowRemovedReason, FlowSpec, ModifyRules,
};
use dataplane::forwarder::{Event, Forwarder, Outputs};
use dataplane::matching::{Match, MatchedFields};
use dataplane::pipeline::{OnMiss, Pipeline, Settings, Worker};
use dataplane::table::{TableConfig, TableMiss, TableSettings};
use packet::frame::PortNo;
use packet::time::Nanos;

use crate::choices::Choices;
use crate::draw::{self, Scene};
use crate::rng::Rng;
use crate::switch::{Entry, Switch};

pub const PORTS: [PortNo; 4] = [1, 2, 3, 4];
const TABLES: usize = 5;

/// Both switches.
pub struct Pair {
    pub pipeline: Pipeline,
    pub out: Outputs,
    pub naive: Switch,
    /// Observed choices of the pipeline's select groups.
    pub choices: Choices,
    pub scene: Scene,
    /// For each group, whether all its buckets watch something, so that others can watch it.
    pub watched: Vec<bool>,
    pub dice: Rng,
    pub now: Nanos,
    /// The number of the next bucket.
    pub bucket: u32,
    /// Worker of another thread, so that bundles are staged until they are committed.
    pub other: Option<Worker>,
    /// In a bundle, the removals to be reported at its commit.
    bundle: Option<Vec<(u64, u64, u64)>>,
    /// Numbers of commands in bundles that were committed, and that were rolled back.
    pub bundled: [usize; 2],
    /// Number of entries that timed out.
    pub timed_out: usize,
    /// Numbers of choices of select groups that were learned, and that had to stay when a bucket
    /// was removed.
    pub learned: usize,
    pub stayed: usize,
}

impl Pair {
    pub fn new(seed: u64) -> Pair {
        let mut dice = Rng::new(seed);
        let on_miss = dice.pick(&[OnMiss::Controller, OnMiss::Drop]);
        let first_egress = dice.pick(&[None, None, Some(3), Some(4)]);
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
            first_egress,
            accounts: vec![(0, 0); TABLES],
            ..Switch::default()
        };
        let settings = Settings { tables, on_miss, ..Settings::default() };
        let frames = (0..6).map(|_| draw::frame(&mut dice)).collect();
        let (groups, meters) = (5, 3);
        let scene = Scene { frames, tables: TABLES as u8, first_egress, groups, meters };
        let watched = (0..=groups).map(|_| dice.roll(3) > 0).collect();
        let mut pipeline = Pipeline::new(&PORTS, &settings);
        assert!(pipeline.set_first_egress(first_egress));
        let mut pair = Pair {
            pipeline,
            out: Outputs::new(&PORTS),
            naive,
            choices: Choices::default(),
            scene,
            watched,
            dice,
            now: Nanos::from_secs(5),
            bucket: 0,
            other: None,
            bundle: None,
            bundled: [0; 2],
            timed_out: 0,
            learned: 0,
            stayed: 0,
        };
        pair.other = (pair.dice.roll(2) == 0).then(|| pair.pipeline.worker());
        pair.add_resources();
        if pair.dice.roll(2) == 0 {
            let group = 1 + pair.dice.roll(groups.into()) as u32;
            pair.add_first(0, group);
        }
        pair
    }

    /// Adds an entry of the first table that sends every frame without a better match to a group.
    pub fn add_first(&mut self, rank: u16, group: u32) {
        let spec = FlowSpec::new(Match::ANY, rank, &[Action::Group(group)]);
        self.pipeline.add(&spec, self.now, &mut self.out).unwrap();
        self.naive.entries.push(entry(Vec::new(), &spec, (0, 0), self.now));
    }

    /// Executes a random command.
    pub fn command(&mut self) {
        match self.dice.roll(15) {
            2 => self.change_group(),
            3..=5 => self.change_link(),
            6 => self.change_meter(),
            7 => self.do_bundle(),
            _ => self.change_entries(),
        }
    }

    fn change_entries(&mut self) {
        let known = !self.naive.entries.is_empty();
        match self.dice.roll(8) {
            0 if known => self.delete(),
            1 if known => self.modify(),
            _ => self.add(),
        }
    }

    /// Executes several changes of entries as a bundle, and commits or rolls back.
    fn do_bundle(&mut self) {
        let before = self.naive.entries.clone();
        self.bundle = Some(Vec::new());
        self.pipeline.begin();
        let count = 1 + self.dice.roll(12) as usize;
        (0..count).for_each(|_| self.change_entries());
        let kept = self.dice.roll(3) > 0;
        self.bundled[usize::from(!kept)] += count;
        assert!(self.out.events.is_empty(), "no event before the commit");
        let mut wanted = self.bundle.take().unwrap();
        if kept {
            self.pipeline.keep(&mut self.out);
        } else {
            self.pipeline.take_back();
            (self.naive.entries, wanted) = (before, Vec::new());
        }
        self.compare_removals(wanted);
    }

    /// Advances the time and checks which entries time out.
    pub fn pass(&mut self, place: &str) {
        self.now += Nanos::from_millis(10 * self.dice.roll(60));
        self.pipeline.tick(self.now, &mut self.out);
        let mut reported: Vec<_> = self.out.events.drain(..).map(timed_out).collect();
        let (over, entries): (Vec<Entry>, Vec<Entry>) = std::mem::take(&mut self.naive.entries)
            .into_iter()
            .partition(|it| is_over(it, self.now));
        self.naive.entries = entries;
        self.timed_out += over.len();
        let mut over: Vec<_> = over.iter().map(|entry| (reasons(entry, self.now), entry)).collect();
        // Entries may have equal reports: those with a single possible reason come first.
        over.sort_by_key(|(reasons, _)| reasons.len());
        for (reasons, entry) in over.iter().filter(|(_, entry)| entry.spec.flags.notify_removed) {
            let at = reported.iter().position(|(why, cookie, frames, bytes)| {
                reasons.contains(why)
                    && (*cookie, *frames, *bytes) == (entry.spec.cookie, entry.frames, entry.bytes)
            });
            let at =
                at.unwrap_or_else(|| panic!("{place}: {reasons:?} of {entry:?}: {reported:?}"));
            reported.swap_remove(at);
        }
        assert!(reported.is_empty(), "{place}: additional reports {reported:?}");
        self.compare(&format!("{place}, after a while"));
    }

    fn add(&mut self) {
        let (asked, mut spec) = draw::flow(&mut self.dice, &self.scene);
        if self.dice.roll(4) == 0 {
            spec.flags.check_overlap = true;
            return self.add_apart(asked, &spec);
        }
        let entries = &mut self.naive.entries;
        let clash = entries
            .iter()
            .position(|entry| (entry.spec.table, entry.spec.rank) == (spec.table, spec.rank));
        let mut counts = (0, 0);
        if let Some(at) = clash {
            // The specification does not define which of two overlapping entries of the same rank
            // wins, so the new entry replaces the old one.
            let old = entries.remove(at);
            spec.matching = old.spec.matching;
            if !spec.flags.reset_counts {
                counts = (old.frames, old.bytes);
            }
            entries.push(entry(old.asked, &spec, counts, self.now));
        } else {
            entries.push(entry(asked, &spec, counts, self.now));
        }
        self.pipeline.add(&spec, self.now, &mut self.out).unwrap();
    }

    /// Adds an entry unless another of the same table and rank could match the same frame.
    fn add_apart(&mut self, asked: Vec<MatchedFields>, spec: &FlowSpec) {
        let meets = |entry: &&Entry| {
            let place = (entry.spec.table, entry.spec.rank) == (spec.table, spec.rank);
            place && !asked.iter().any(|one| entry.asked.iter().any(|other| excludes(one, other)))
        };
        let refused = self.naive.entries.iter().any(|entry| meets(&entry));
        let added = self.pipeline.add(spec, self.now, &mut self.out);
        assert_eq!(added, if refused { Err(FlowError::Overlap) } else { Ok(()) }, "{spec:?}");
        if !refused {
            self.naive.entries.push(entry(asked, spec, (0, 0), self.now));
        }
    }

    /// Draws a filter for both switches: strict for one entry, or for all that it covers.
    fn filter(&mut self) -> (FlowFilter, Vec<bool>) {
        let at = self.dice.roll(self.naive.entries.len() as u64) as usize;
        let model = self.naive.entries[at].clone();
        let mut asked = model.asked.clone();
        let strict = self.dice.roll(2) == 0;
        if !strict {
            // Drop some fields, and fields without their prerequisites.
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
        let gone = self.pipeline.delete(&filter, self.now, &mut self.out);
        assert_eq!(gone, chosen.iter().filter(|chosen| **chosen).count(), "{filter:?}");
        let notified = self.naive.entries.iter().zip(&chosen);
        let notified = notified.filter(|(entry, gone)| **gone && entry.spec.flags.notify_removed);
        let wanted: Vec<_> =
            notified.map(|(entry, _)| (entry.spec.cookie, entry.frames, entry.bytes)).collect();
        chosen.reverse();
        self.naive.entries.retain(|_| !chosen.pop().unwrap());
        match &mut self.bundle {
            Some(waiting) => waiting.extend(wanted),
            None => self.compare_removals(wanted),
        }
    }

    /// Compares the reported removals.
    fn compare_removals(&mut self, mut wanted: Vec<(u64, u64, u64)>) {
        let mut reported: Vec<_> = self.out.events.drain(..).map(removal).collect();
        reported.sort_unstable();
        wanted.sort_unstable();
        assert_eq!(reported, wanted);
    }

    fn modify(&mut self) {
        let (filter, chosen) = self.filter();
        let (_, mut spec) = draw::flow(&mut self.dice, &self.scene);
        // A modification may apply to any table, so it has no goto-table.
        spec.table = self.scene.tables - 1;
        spec.instructions = draw::last(&mut self.dice, &self.scene);
        let rules = ModifyRules { add: false, cookie: self.dice.roll(2) == 0 };
        self.pipeline.modify(&spec, &filter, rules, self.now, &mut self.out).unwrap();
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
}

/// Whether no frame matches both.
fn excludes(one: &MatchedFields, other: &MatchedFields) -> bool {
    one.0 == other.0 && (one.1 ^ other.1) & one.2 & other.2 != 0
}

/// Creates a new entry.
fn entry(asked: Vec<MatchedFields>, spec: &FlowSpec, counts: (u64, u64), now: Nanos) -> Entry {
    let (spec, (frames, bytes)) = (spec.clone(), counts);
    Entry { asked, spec, frames, bytes, added_at: now, matched_at: now }
}

/// Returns the timeouts of an entry that have expired.
fn reasons(entry: &Entry, now: Nanos) -> Vec<FlowRemovedReason> {
    let (idle, hard) = (entry.spec.idle_timeout, entry.spec.hard_timeout);
    let mut reasons = Vec::new();
    if idle > Nanos::ZERO && now >= entry.matched_at + idle {
        reasons.push(FlowRemovedReason::IdleTimeout);
    }
    if hard > Nanos::ZERO && now >= entry.added_at + hard {
        reasons.push(FlowRemovedReason::HardTimeout);
    }
    reasons
}

fn is_over(entry: &Entry, now: Nanos) -> bool {
    !reasons(entry, now).is_empty()
}

fn timed_out(event: Event) -> (FlowRemovedReason, u64, u64, u64) {
    match event {
        Event::FlowRemoved { flow, why } => (why, flow.cookie, flow.frames, flow.bytes),
        other => panic!("not a removal: {other:?}"),
    }
}

fn removal(event: Event) -> (u64, u64, u64) {
    match event {
        Event::FlowRemoved { flow, why: FlowRemovedReason::Deleted } => {
            (flow.cookie, flow.frames, flow.bytes)
        }
        other => panic!("not a removal: {other:?}"),
    }
}

/// The reported properties of an entry: table, rank, cookie, frames, bytes, match.
pub type Row = (u8, u32, u64, u64, u64, Vec<MatchedFields>);

pub fn row(flow: FlowRecord) -> Row {
    let matching = flow.matching.asked(flow.matching.fields_asked());
    (flow.table, flow.rank, flow.cookie, flow.frames, flow.bytes, matching)
}
