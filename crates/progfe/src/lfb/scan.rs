//! Ext-PG-Scan: searches the bytes of frames for patterns.
//!
//! - One pass over the bytes finds all patterns (Aho and Corasick, CACM 1975). Case-sensitive and
//!   case-insensitive patterns have an automaton each.
//! - The matching pattern with the smallest index selects the output.
//! - With a flow key, the automata continue in the next frame of a flow. A pattern may start in one
//!   frame and end in another, and offsets count over all frames of the flow.

use std::collections::BTreeMap;

use aho_corasick::Anchored;
use aho_corasick::automaton::{Automaton, StateID};
use aho_corasick::dfa::DFA;
use dataplane::forwarder::SIGHTS_MAX;
use forces::Value;
use packet::time::Nanos;

use super::aged_table::{Keyed, read_key};
use super::{At, Block, Env, Packet, Row, Setup, Verdict, counted, meta_id};
use crate::condition::Operand;
use crate::diagnostic::Code;
use crate::frames::FieldRef;
use crate::program::text;

const MATCH: u32 = 0;
const CLEAN: u32 = 1;
/// The component Hits.
const HITS: u32 = 5;
/// The capability MaxPatternBytes.
const MAX_PATTERN_BYTES: u32 = 30;
/// The event PatternHit.
const PATTERN_HIT: u32 = 1;

/// Maximum total size of the patterns in bytes.
pub const PATTERN_BYTES_MAX: usize = 256 * 1024;
/// Maximum capacity for flows.
pub const FLOWS_MAX: u32 = 1 << 22;
/// Idle timeout of a flow.
const FLOW_IDLE: Nanos = Nanos::from_secs(60);
/// Maximum number of flows that one tick examines.
const AGE_STEPS: usize = 256;
/// Number of texts that are searched in parallel.
const LANES: usize = 16;

/// The Scan block.
#[derive(Debug)]
pub struct Scan {
    scope: Scope,
    depth: usize,
    flow_key: Vec<Operand>,
    patterns: Vec<Pattern>,
    /// Automata for case-sensitive and case-insensitive patterns.
    automata: [Option<Search>; 2],
    flows: Keyed<Flow>,
    hits: BTreeMap<u32, u64>,
    scratch: Vec<u128>,
}

/// The part of a frame to search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    Frame,
    After(FieldRef),
}

/// A pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Pattern {
    index: u32,
    bytes: Vec<u8>,
    no_case: bool,
    offsets: Option<(u32, u32)>,
    output: u32,
}

/// An automaton and its patterns.
#[derive(Debug)]
struct Search {
    dfa: DFA,
    start: StateID,
    patterns: Vec<usize>,
}

/// Search state of a flow.
#[derive(Debug, Clone, Copy)]
struct Flow {
    states: [StateID; 2],
    bytes: u64,
}

impl Search {
    fn new(patterns: &[Pattern], no_case: bool) -> Result<Option<Search>, String> {
        let chosen = (0..patterns.len()).filter(|at| patterns[*at].no_case == no_case);
        let chosen: Vec<usize> = chosen.collect();
        if chosen.is_empty() {
            return Ok(None);
        }
        let dfa = DFA::builder()
            .ascii_case_insensitive(no_case)
            .build(chosen.iter().map(|at| &patterns[*at].bytes));
        let dfa = dfa.map_err(|error| error.to_string())?;
        let start = dfa.start_state(Anchored::No).map_err(|error| error.to_string())?;
        Ok(Some(Search { dfa, start, patterns: chosen }))
    }

    /// Searches bytes from a state. Reports each match as pattern index and end offset. Returns the
    /// final state.
    fn walk(
        &self,
        mut state: StateID,
        bytes: &[u8],
        mut found: impl FnMut(usize, usize),
    ) -> StateID {
        for (at, byte) in bytes.iter().enumerate() {
            state = self.dfa.next_state(Anchored::No, state, *byte);
            if self.dfa.is_special(state) && self.dfa.is_match(state) {
                for nth in 0..self.dfa.match_len(state) {
                    found(self.patterns[self.dfa.match_pattern(state, nth).as_usize()], at + 1);
                }
            }
        }
        state
    }
}

/// Texts of a parallel search, with their states.
struct Lanes<'t> {
    texts: [&'t [u8]; LANES],
    states: [StateID; LANES],
}

impl Search {
    /// Searches several texts in parallel, each from the start state, so that their memory accesses
    /// overlap. `found` also gets the index of the text.
    fn walk_many(&self, texts: [&[u8]; LANES], mut found: impl FnMut(usize, usize, usize)) {
        let common = texts.iter().map(|text| text.len()).min().unwrap_or(0);
        let mut lanes =
            Lanes { texts: texts.map(|text| &text[..common]), states: [self.start; LANES] };
        for at in 0..common {
            for lane in 0..LANES {
                let byte = lanes.texts[lane][at];
                let state = self.dfa.next_state(Anchored::No, lanes.states[lane], byte);
                lanes.states[lane] = state;
                if self.dfa.is_special(state) && self.dfa.is_match(state) {
                    for nth in 0..self.dfa.match_len(state) {
                        let pattern = self.dfa.match_pattern(state, nth).as_usize();
                        found(lane, self.patterns[pattern], at + 1);
                    }
                }
            }
        }
        for (lane, (text, state)) in texts.iter().zip(lanes.states).enumerate() {
            self.walk(state, &text[common..], |place, end| found(lane, place, common + end));
        }
    }
}

impl Scan {
    /// Returns true if a pattern may match at the position that ends at `end` in the searched data.
    fn fits(&self, place: usize, end: u64) -> bool {
        let pattern = &self.patterns[place];
        let begin = end.saturating_sub(pattern.bytes.len() as u64);
        let offsets = pattern.offsets;
        offsets.is_none_or(|(low, high)| (u64::from(low)..=u64::from(high)).contains(&begin))
    }

    /// Returns the first matching pattern of each text. The texts belong to no flow.
    fn search_many(&self, texts: [&[u8]; LANES]) -> [Option<usize>; LANES] {
        let mut best = [None; LANES];
        for search in self.automata.iter().flatten() {
            search.walk_many(texts, |lane, place, end| {
                let best = &mut best[lane];
                if self.fits(place, end as u64) && best.is_none_or(|best| place < best) {
                    *best = Some(place);
                }
            });
        }
        best
    }

    /// Returns the result for a frame with its best match.
    fn lead(&mut self, best: Option<usize>, packet: &mut Packet, env: &mut Env<'_>) -> Verdict {
        let Some(pattern) = best.map(|best| &self.patterns[best]) else {
            return Verdict::Out(CLEAN, 0);
        };
        let hits = self.hits.entry(pattern.index).or_default();
        *hits += 1;
        let (index, count) = (pattern.index, *hits);
        env.event(PATTERN_HIT, &[index], || vec![(vec![HITS, index, 2], Value::Unsigned(count))]);
        packet.set_meta(env.slots, meta_id::PATTERN, index.into());
        Verdict::Out(MATCH, pattern.output)
    }

    /// Returns the first matching pattern in the bytes of a frame, which continue a flow.
    fn search(&self, flow: &mut Flow, bytes: &[u8]) -> Option<usize> {
        let mut best: Option<usize> = None;
        for (search, state) in self.automata.iter().zip(&mut flow.states) {
            let Some(search) = search else { continue };
            *state = search.walk(*state, bytes, |place, end| {
                let fits = self.fits(place, flow.bytes + end as u64);
                if fits && best.is_none_or(|best| place < best) {
                    best = Some(place);
                }
            });
        }
        flow.bytes += bytes.len() as u64;
        best
    }

    fn fresh(&self) -> Flow {
        let start =
            |search: &Option<Search>| search.as_ref().map_or(StateID::default(), |it| it.start);
        Flow { states: [start(&self.automata[0]), start(&self.automata[1])], bytes: 0 }
    }

    /// Returns the range of bytes to search.
    fn range(&self, packet: &mut Packet, env: &Env<'_>) -> Option<std::ops::Range<usize>> {
        let (from, to) = match self.scope {
            Scope::Frame => (0, packet.bytes().len()),
            Scope::After(header) => {
                let header = packet.located(env.frames).header(header)?;
                (header.end, header.limit)
            }
        };
        let depth = if self.depth == 0 { usize::MAX } else { self.depth };
        Some(from..to.min(from.saturating_add(depth)))
    }
}

/// Parses the patterns.
fn patterns(setup: &mut Setup<'_>) -> Vec<Pattern> {
    let mut patterns: Vec<Pattern> = Vec::new();
    let mut total = 0;
    for row in setup.rows(4) {
        let (bytes, offsets) = (text::pattern(row.text(1)), text::offsets(row.text(3)));
        match (bytes, offsets) {
            (Ok(bytes), _) if bytes.is_empty() => {
                setup.wrong(&row.path, "empty pattern", "write some bytes");
            }
            (Ok(bytes), Ok(offsets)) => {
                total += bytes.len();
                let (index, no_case, output) = (row.index, row.flag(2), row.number(4));
                patterns.push(Pattern { index, bytes, no_case, offsets, output });
            }
            (Err(what), _) | (_, Err(what)) => setup.wrong(&row.path, what, ""),
        }
    }
    if total > PATTERN_BYTES_MAX {
        let what = format!("the patterns have {total} bytes together");
        setup.refuse(Code::Resources, &[4], what, &format!("use at most {PATTERN_BYTES_MAX}"));
        patterns.clear();
    }
    patterns
}

impl Block for Scan {
    fn new(setup: &mut Setup<'_>) -> Self {
        let scope = setup.text(1);
        let scope = match scope.trim() {
            "" | "frame" => Scope::Frame,
            other => match other.strip_prefix("after:").map(|name| setup.frames().resolve(name)) {
                Some(Ok(header)) => Scope::After(header.header()),
                Some(Err(what)) => {
                    setup.wrong(&[1], what, "write after: and the name of a header");
                    Scope::Frame
                }
                None => {
                    let what = format!("invalid scope \"{other}\"");
                    setup.wrong(&[1], what, "write frame, or after: and the name of a header");
                    Scope::Frame
                }
            },
        };
        let patterns = patterns(setup);
        let automata = [false, true].map(|no_case| match Search::new(&patterns, no_case) {
            Ok(search) => search,
            Err(what) => {
                setup.refuse(Code::Resources, &[4], what, "remove patterns");
                None
            }
        });
        let flow_key = setup.key(3, true);
        let flows_max = if flow_key.is_empty() { 0 } else { setup.number(6).min(FLOWS_MAX) };
        Scan {
            scope,
            depth: setup.number(2) as usize,
            flow_key,
            patterns,
            automata,
            flows: Keyed::new(flows_max as usize, Some(FLOW_IDLE), setup.seed),
            hits: BTreeMap::new(),
            scratch: Vec::new(),
        }
    }

    fn process(&mut self, _at: At, packet: &mut Packet, env: &mut Env<'_>) -> Verdict {
        let Some(range) = self.range(packet, env) else { return Verdict::Out(CLEAN, 0) };
        let around = (env.frames, env.slots);
        let has_flow = !self.flow_key.is_empty()
            && read_key(&self.flow_key, packet, around, &mut self.scratch);
        let place = if has_flow { self.flows.find(&self.scratch, env.now) } else { None };
        let mut flow = place.map_or_else(|| self.fresh(), |place| self.flows.entry(place).value);
        let best = self.search(&mut flow, packet.bytes().get(range).unwrap_or_default());
        match place {
            Some(place) => {
                let entry = self.flows.entry_mut(place);
                (entry.value, entry.touched) = (flow, env.now);
            }
            // If there is no room for a flow, its frames are searched individually.
            None if has_flow => drop(self.flows.insert(&self.scratch, flow, env.now, false)),
            None => {}
        }
        self.lead(best, packet, env)
    }

    fn process_row(&mut self, row: &mut Row<'_>, env: &mut Env<'_>) -> bool {
        // In a flow, each frame depends on the result of the previous one.
        if !self.flow_key.is_empty() {
            return false;
        }
        let mut ranges = [None; SIGHTS_MAX];
        for (range, member) in ranges.iter_mut().zip(row.members) {
            let found = self.range(&mut row.packets[*member as usize], env);
            *range = found.map(|range| (range.start, range.end));
        }
        let mut best = [None; SIGHTS_MAX];
        for first in (0..row.members.len()).step_by(LANES) {
            let mut texts: [&[u8]; LANES] = [&[]; LANES];
            let members = row.members[first..].iter().zip(&ranges[first..]);
            for (text, (member, range)) in texts.iter_mut().zip(members) {
                let Some((from, to)) = *range else { continue };
                let bytes = row.packets[*member as usize].bytes();
                *text = bytes.get(from..to).unwrap_or_default();
            }
            best[first..].iter_mut().zip(self.search_many(texts)).for_each(|(to, it)| *to = it);
        }
        for (place, best) in best.into_iter().enumerate().take(row.members.len()) {
            let packet = &mut row.packets[row.members[place] as usize];
            row.verdicts[place] = match ranges[place] {
                None => Verdict::Out(CLEAN, 0),
                Some(_) => self.lead(best, packet, env),
            };
            row.happened(place, env.told.happenings.len());
        }
        true
    }

    fn keep(&mut self, old: &mut Self) {
        if self.patterns == old.patterns {
            std::mem::swap(&mut self.hits, &mut old.hits);
            // States are numbers of an automaton, which is the same for the same patterns.
            if (&self.flow_key, self.scope) == (&old.flow_key, old.scope)
                && self.flows.is_like(&old.flows)
            {
                std::mem::swap(&mut self.flows, &mut old.flows);
            }
        }
    }

    fn tick(&mut self, env: &mut Env<'_>) -> Option<Nanos> {
        self.flows.age(env.now, AGE_STEPS, |_| {})
    }

    fn get(&self, component: u32, _now: Nanos) -> Option<Value> {
        match component {
            HITS => Some(counted(&self.hits)),
            MAX_PATTERN_BYTES => Some(Value::Unsigned(PATTERN_BYTES_MAX as u64)),
            _ => None,
        }
    }

    fn reset(&mut self, component: u32) {
        if component == HITS {
            self.hits.clear();
        }
    }
}
