//! The OpenFlow data plane: key, tables, actions, for a batch at a time.
//!
//! A batch goes through in stages of a few dozen frames: all keys, then all lookups, then all
//! counters, then all actions, each a simple loop, so that cache misses of different frames
//! overlap and a run of frames with the same key is decided once. In a table exact matches are looked
//! up first (bianco2010, section II). What comes to more than one output or one list of actions is
//! followed frame by frame from table to table (`walk`). Actions and misses follow the OpenFlow switch
//! specifications 1.0.0, sections 3.3 and 3.4, and 1.3.5, sections 5.1 to 5.4.
//!
//! Invariant: frames leave in the order in which they came, and every frame is queued, handed to
//! the control plane or counted as dropped for one reason.

use packet::frame::{Batch, Frame, PortNo};
use packet::header::ethernet;
use packet::time::Nanos;

use crate::action::{Action, UNSET};
use crate::action_set::ActionSet;
use crate::bridge::{self, Bridge, SWEEP_PAUSE_MAX};
use crate::classifier::Verdict;
use crate::classifier::exact::BATCH_MAX;
use crate::counter::{DropCounters, DropReason};
use crate::egress::{Egress, PortSettings, Ran, Way};
use crate::flow::{FlowError, FlowFilter, FlowRemovedReason, FlowSpec, ModifyRules};
use crate::forwarder::{Context, Forwarder, NO_COOKIE, Outputs};
use crate::group::{GroupLimits, GroupTable};
use crate::key::wide::{self, OUTSIDE, Wide, WordSet};
use crate::key::{self, Key};
use crate::meter::{MeterLimits, MeterTable};
use crate::rewrite;
use crate::table::{
    Library, Lookup, Program, TableConfig, TableMiss, TableSettings, Tables, verdict,
};

/// Frames that the control plane sends.
mod inject;
/// Commands about groups, meters, queues and ports.
mod resources;
/// One frame on its way through the tables.
mod walk;

use walk::Trail;

/// Group address of the spanning tree protocol (IEEE 802.1D).
const SPANNING_TREE: [u8; 6] = [0x01, 0x80, 0xc2, 0, 0, 0];

/// How a pipeline is made.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The tables, at most [`TABLES_MAX`](crate::table::TABLES_MAX).
    pub tables: Vec<TableSettings>,
    /// A secret for hashing, so that nobody outside can choose keys that collide. The default is
    /// no secret: it makes runs repeat.
    pub hash_seed: u64,
    /// What becomes of frames that match no entry.
    pub on_miss: OnMiss,
    /// Whether fragmented IPv4 datagrams are dropped before the tables.
    pub drop_fragments: bool,
    /// The bridge that [`Action::Normal`] and [`OnMiss::Normal`] go by, if there is to be one.
    pub normal: Option<bridge::Settings>,
    /// How many groups fit.
    pub groups: GroupLimits,
    /// How many meters fit.
    pub meters: MeterLimits,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            tables: vec![TableSettings::default()],
            hash_seed: 0x5eed_0f1a_57f1_0335,
            on_miss: OnMiss::Controller,
            drop_fragments: false,
            normal: Some(bridge::Settings::default()),
            groups: GroupLimits::default(),
            meters: MeterLimits::default(),
        }
    }
}

/// What becomes of frames that match no entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnMiss {
    /// The control plane is asked.
    Controller,
    /// They are dropped: the control plane is lost and entries are all there is.
    Drop,
    /// They are bridged: the control plane is lost and the switch gets along without.
    Normal,
}

/// The data plane of an OpenFlow switch.
#[derive(Debug)]
pub struct Pipeline {
    /// The entries, to be read; commands go through the pipeline.
    tables: Tables,
    /// How frames find them.
    lookup: Lookup,
    egress: Egress,
    /// What becomes of frames that match no entry; may be changed at any time.
    pub on_miss: OnMiss,
    /// Whether fragmented IPv4 datagrams are dropped; may be changed at any time.
    pub drop_fragments: bool,
    stage: Stage,
    /// The action set of the frame at hand.
    set: ActionSet,
    trail: Trail,
    /// A copy for the tables of a frame that is needed afterwards.
    spare: Frame,
    /// Groups and meters as they were at [`Pipeline::begin`].
    before: Option<Box<(GroupTable, MeterTable)>>,
}

/// What one stage hands to the next.
#[derive(Debug)]
struct Stage {
    /// The fields with which its frames begin.
    begins: rewrite::Context,
    /// The keys, a run of equal ones once.
    keys: [Key; BATCH_MAX],
    /// The wide fields that belong to each, as far as they are asked for.
    wide: Box<[Wide; BATCH_MAX]>,
    /// For each frame, the place of its key, or `REFUSED`.
    key_of: [u8; BATCH_MAX],
    frames: [u64; BATCH_MAX],
    bytes: [u64; BATCH_MAX],
    found: [u32; BATCH_MAX],
    verdicts: [Option<Verdict>; BATCH_MAX],
}

/// A frame that does not reach the tables and is already counted.
const REFUSED: u8 = u8::MAX;

impl Pipeline {
    /// A pipeline without entries between these ports.
    pub fn new(ports: &[PortNo], settings: &Settings) -> Pipeline {
        let (groups, meters) = (settings.groups, settings.meters);
        let mut tables = Tables::new(&settings.tables, settings.hash_seed);
        Pipeline {
            lookup: tables.reader(),
            tables,
            egress: Egress::new(
                ports,
                settings.normal.as_ref(),
                (groups, meters),
                settings.hash_seed,
            ),
            on_miss: settings.on_miss,
            drop_fragments: settings.drop_fragments,
            stage: Stage {
                begins: rewrite::Context::default(),
                keys: [Key::ZERO; BATCH_MAX],
                wide: Box::new([Wide::ZERO; BATCH_MAX]),
                key_of: [REFUSED; BATCH_MAX],
                frames: [0; BATCH_MAX],
                bytes: [0; BATCH_MAX],
                found: [0; BATCH_MAX],
                verdicts: [None; BATCH_MAX],
            },
            set: ActionSet::default(),
            trail: Trail::default(),
            spare: Frame::default(),
            before: None,
        }
    }

    /// The entries, their counters and the tables' accounts.
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// Whether every change of an entry is told (see [`Tables::watch`]).
    pub fn watch(&mut self, watched: bool) {
        self.tables.watch = watched;
    }

    /// Sets the egress tables (see [`Tables::set_first_egress`]).
    pub fn set_first_egress(&mut self, first: Option<u8>) -> bool {
        let set = self.tables.set_first_egress(first);
        self.egress.defers = self.lookup.first_egress().is_some();
        set
    }

    /// Changes what a table is set to do. False if there is no such table.
    pub fn set_table(&mut self, table: u8, config: TableConfig) -> bool {
        self.tables.set_config(table, config)
    }

    /// Frames lost, by reason.
    pub fn drops(&self) -> &DropCounters {
        &self.egress.drops
    }

    /// The ports' settings and the queues' account.
    pub fn egress(&self) -> &Egress {
        &self.egress
    }

    /// What the pipeline knows for [`Action::Normal`].
    pub fn normal(&self) -> Option<&Bridge> {
        self.egress.normal.as_ref()
    }

    /// The same, to set its ageing or to make it forget.
    pub fn normal_mut(&mut self) -> Option<&mut Bridge> {
        self.egress.normal.as_mut()
    }

    /// Sets what a port does. False if there is no such port.
    pub fn set_port(&mut self, port: PortNo, settings: PortSettings) -> bool {
        self.egress.set_settings(port, settings)
    }

    /// Installs an entry (see [`Tables::add`]). The next [`Forwarder::tick`] may then be due
    /// earlier than the last one said.
    pub fn add(&mut self, spec: &FlowSpec, now: Nanos, out: &mut Outputs) -> Result<(), FlowError> {
        self.check_references(&spec.instructions)?;
        self.tables.add(spec, now, out)
    }

    /// Changes entries (see [`Tables::modify`]).
    pub fn modify(
        &mut self,
        spec: &FlowSpec,
        filter: &FlowFilter,
        rules: ModifyRules,
        now: Nanos,
        out: &mut Outputs,
    ) -> Result<(), FlowError> {
        self.check_references(&spec.instructions)?;
        self.tables.modify(spec, filter, rules, now, out)
    }

    /// Removes entries and returns how many (see [`Tables::delete`]).
    pub fn delete(&mut self, filter: &FlowFilter, now: Nanos, out: &mut Outputs) -> usize {
        self.tables.delete(filter, FlowRemovedReason::Deleted, now, out)
    }

    /// Lets frames see what was changed.
    #[inline]
    fn begin_batch(&mut self) {
        self.tables.publish();
        self.lookup.begin();
    }

    /// Takes at most [`BATCH_MAX`] frames that begin with these fields through all stages.
    fn forward_stage(
        &mut self,
        begins: rewrite::Context,
        frames: &mut [Frame],
        now: Nanos,
        out: &mut Outputs,
    ) {
        let port = begins.in_port;
        self.stage.begins = begins;
        let keys = self.extract(port, frames);
        let wide = if self.lookup.asked(0).1 == 0 { 0 } else { keys };
        let stage = &mut self.stage;
        self.lookup.lookup(0, &stage.keys[..keys], &stage.wide[..wide], &mut stage.found);
        let mut plain = !self.egress.defers;
        for place in 0..keys {
            let (found, frames) = (stage.found[place], stage.frames[place]);
            let verdict = self.lookup.count(0, found, frames, stage.bytes[place], now);
            plain &= matches!(verdict, Some(Verdict::Output(_) | Verdict::Drop));
            stage.verdicts[place] = verdict;
        }
        // Most frames need no instructions, and those who bring new ones need not wait for them.
        let library = (!plain).then(|| self.lookup.library());
        let opened = library.as_ref().map(Library::open);
        let programs = opened.as_ref().map_or(&[][..], |programs| programs.as_slice());
        let mut way = Way { in_port: port, now, out, context: start(begins) };
        self.trail.key = None;
        for (place, frame) in frames.iter_mut().enumerate() {
            let key = self.stage.key_of[place];
            if key != REFUSED {
                self.act(usize::from(key), frame, programs, &mut way);
            }
            if self.egress.defers {
                self.leave(programs, &mut way);
            }
        }
    }

    /// Finds the frames' keys, counts and refuses those that are not for the tables, and returns
    /// how many different keys in a row there are.
    #[inline]
    fn extract(&mut self, port: PortNo, frames: &[Frame]) -> usize {
        match self.lookup.asked(0).1 {
            0 => self.extract_with::<false>(port, frames, 0),
            words => self.extract_with::<true>(port, frames, words),
        }
    }

    /// The same, with or without the wide fields that entries ask for.
    #[inline]
    fn extract_with<const WIDE: bool>(
        &mut self,
        port: PortNo,
        frames: &[Frame],
        words: WordSet,
    ) -> usize {
        let settings = self.egress.settings(port);
        let ask_more = settings != PortSettings::default() || self.drop_fragments;
        let stage = &mut self.stage;
        let mut keys = 0;
        for (place, frame) in frames.iter().enumerate() {
            let bytes = frame.bytes();
            if (bytes.len() < ethernet::HEADER_BYTES || ask_more)
                && let Some(why) = refusal(settings, self.drop_fragments, bytes)
            {
                self.egress.drops.add(why);
                stage.key_of[place] = REFUSED;
                continue;
            }
            let key = key::extract(port, bytes);
            let mut same = keys > 0 && key == stage.keys[keys - 1];
            if WIDE {
                let wide = wide_fields(&stage.begins, bytes, words);
                same = same && wide == stage.wide[keys - 1];
                stage.wide[if same { keys - 1 } else { keys }] = wide;
            }
            if !same {
                stage.keys[keys] = key;
                stage.frames[keys] = 0;
                stage.bytes[keys] = 0;
                keys += 1;
            }
            stage.key_of[place] = (keys - 1) as u8;
            stage.frames[keys - 1] += 1;
            stage.bytes[keys - 1] += bytes.len() as u64;
        }
        keys
    }

    /// Does with a frame what the entry for its key says.
    #[inline]
    fn act(&mut self, key: usize, frame: &mut Frame, programs: &[Program], way: &mut Way) {
        match self.stage.verdicts[key] {
            Some(Verdict::Output(port)) => {
                if self.egress.defers {
                    // Egress tables see where the frame was, not where the one before it was.
                    way.context = start(self.stage.begins);
                }
                self.egress.output(port.into(), frame, way);
            }
            Some(Verdict::Drop) => self.egress.drops.add(DropReason::ByFlow),
            Some(Verdict::List) => self.do_list(key, frame, programs, way),
            Some(Verdict::Program) => {
                way.context = start(self.stage.begins);
                self.follow(key, frame, programs, way);
            }
            None => self.pass_over(key, frame, programs, way),
        }
    }

    /// Does the list of actions of the entry for a key.
    #[inline(never)]
    fn do_list(&mut self, key: usize, frame: &mut Frame, programs: &[Program], way: &mut Way) {
        let found = self.stage.found[key];
        way.context = start(self.stage.begins);
        let instructions = &programs[self.lookup.program(found)];
        if verdict(instructions) != Verdict::List {
            // It was just changed.
            return self.follow(key, frame, programs, way);
        }
        self.enter(0, found, way);
        if self.egress.run(&instructions.apply, frame, false, way) == Ran::Nowhere {
            self.egress.drops.add(DropReason::NoDestination);
        }
    }

    /// What becomes of a frame that table 0 has no entry for.
    #[inline(never)]
    fn pass_over(&mut self, key: usize, frame: &mut Frame, programs: &[Program], way: &mut Way) {
        way.context = start(self.stage.begins);
        match self.next_on_miss(0) {
            Some(next) => self.follow_from(next, key, frame, programs, way),
            None => self.miss(frame, way),
        }
    }

    /// What becomes of a frame that the table in its context has no entry for.
    fn miss(&mut self, frame: &mut Frame, way: &mut Way) {
        let quiet = self.egress.settings(way.in_port).no_packet_in;
        way.context.cookie = NO_COOKIE;
        match (self.on_miss, self.lookup.config(way.context.table).map(|config| config.on_miss)) {
            (OnMiss::Normal, _) => {
                if self.egress.run(&[Action::Normal], frame, false, way) == Ran::Nowhere {
                    self.egress.drops.add(DropReason::NoDestination);
                }
            }
            (_, Some(TableMiss::Controller)) | (OnMiss::Controller, Some(TableMiss::Pipeline))
                if !quiet =>
            {
                self.egress.miss(frame, way);
            }
            _ => self.egress.drops.add(DropReason::NoMatch),
        }
    }
}

/// Where a frame begins that has these fields.
#[inline]
fn start(fields: rewrite::Context) -> Context {
    Context { fields, ..Context::START }
}

/// The wide fields that are asked for of a frame that comes in.
fn wide_fields(begins: &rewrite::Context, bytes: &[u8], words: WordSet) -> Wide {
    let mut wide = Wide::ZERO;
    if words & !OUTSIDE != 0 {
        wide::extract(bytes, words, &mut wide);
    }
    if words & OUTSIDE != 0 {
        wide.0[0] = begins.metadata;
        wide.0[1] = begins.tunnel_id;
        wide.0[2] = u64::from(begins.in_port) << 32 | u64::from(UNSET);
    }
    wide
}

/// Why a frame does not reach the tables, if so.
fn refusal(settings: PortSettings, drop_fragments: bool, bytes: &[u8]) -> Option<DropReason> {
    if bytes.len() < ethernet::HEADER_BYTES {
        return Some(DropReason::TooShort);
    }
    if settings.down {
        return Some(DropReason::PortDown);
    }
    let unwanted = if bytes[ethernet::DESTINATION] == SPANNING_TREE {
        settings.no_receive_spanning_tree
    } else {
        settings.no_receive
    };
    if unwanted {
        return Some(DropReason::NoReceive);
    }
    (drop_fragments && key::is_fragment(bytes)).then_some(DropReason::Fragment)
}

impl Forwarder for Pipeline {
    fn forward(&mut self, port: PortNo, batch: &mut Batch, now: Nanos, out: &mut Outputs) {
        self.begin_batch();
        for frames in batch.frames_mut().chunks_mut(BATCH_MAX) {
            self.forward_stage(rewrite::Context::at(port), frames, now, out);
        }
        self.lookup.rest();
    }

    fn tick(&mut self, now: Nanos, out: &mut Outputs) -> Option<Nanos> {
        let expiry = self.tables.expire(now, out);
        let ageing = self.egress.normal.as_mut().and_then(|bridge| match bridge.table.is_empty() {
            true => Some(now.saturating_add(SWEEP_PAUSE_MAX)),
            false => bridge.tick(now, out),
        });
        let shaped = self.egress.release(now, out);
        expiry.into_iter().chain(ageing).chain(shaped).min()
    }
}

#[cfg(test)]
mod tests;
