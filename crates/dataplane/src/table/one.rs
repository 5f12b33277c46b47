//! One table: a hash of exact matches, a structure for the rest, and what it is set to do.
//!
//! Exact matches are looked up first, as the study describes its software switch (bianco2010,
//! sections II and IV.C). That decides where they rank above the rest, as they do in OpenFlow 1.0;
//! else the rest is searched for what ranks higher. Configuration follows the OpenFlow switch
//! specification 1.1.0, section 5.3.3 (what becomes of frames without a match), and 1.4.1, section
//! 7.3.4.1 (eviction, vacancy).
//!
//! Invariant: the exact part holds at most one entry of a key; another with the same key and another
//! rank is among the rest.

use crate::classifier::exact::{BATCH_MAX, ExactTable};
use crate::classifier::rest::Rest;
use crate::classifier::{Classifier, NOWHERE};
use crate::counter::TableAccount;
use crate::fast::slab::Slab;
use crate::flow::Part;
use crate::key::Key;
use crate::key::wide::{WORDS, Wide, WordSet};
use crate::matching::Match;

use super::{EXACT_ENTRIES_MAX, WILDCARD_ENTRIES_MAX};

/// How a table is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableSettings {
    /// Exact matches that fit into the hash. With none, they are kept among the others.
    pub exact_entries_max: usize,
    /// Other matches that fit.
    pub wildcard_entries_max: usize,
    /// How the others are found.
    pub classifier: Classifier,
    /// What it is set to do at first.
    pub config: TableConfig,
}

impl Default for TableSettings {
    /// The sizes of the study.
    fn default() -> TableSettings {
        TableSettings::of(EXACT_ENTRIES_MAX, WILDCARD_ENTRIES_MAX)
    }
}

impl TableSettings {
    /// A table for so many exact matches in a hash and so many others.
    pub fn of(exact_entries_max: usize, wildcard_entries_max: usize) -> TableSettings {
        TableSettings {
            exact_entries_max,
            wildcard_entries_max,
            classifier: Classifier::Automatic,
            config: TableConfig::default(),
        }
    }

    /// A table for so many entries of any kind, found by a hash for each mask.
    pub fn holding(entries_max: usize) -> TableSettings {
        let classifier = Classifier::TupleSpace;
        TableSettings { classifier, ..TableSettings::of(0, entries_max) }
    }

    /// Entries that fit.
    pub fn entries_max(&self) -> usize {
        self.exact_entries_max.saturating_add(self.wildcard_entries_max)
    }
}

/// What a table is set to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TableConfig {
    /// What becomes of frames that match no entry of it.
    pub on_miss: TableMiss,
    /// Whether an entry for which there is no room takes the place of a less important one.
    pub eviction: bool,
    /// When to tell of the room that is left.
    pub vacancy: Option<Vacancy>,
}

/// Limits of the room that is left in a table, in percent of its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vacancy {
    /// Tell when less than this is left, once until more than `up` is.
    pub down: u8,
    /// Tell when more than this is left, once until less than `down` is.
    pub up: u8,
}

/// What becomes of frames that match no entry of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TableMiss {
    /// What the pipeline says.
    #[default]
    Pipeline,
    /// The control plane is asked.
    Controller,
    /// The next table goes on.
    Continue,
    /// They are dropped.
    Drop,
}

/// A table.
#[derive(Debug)]
pub(super) struct Table {
    exact: ExactTable,
    rest: Rest,
    entries_max: [usize; 2],
    pub(super) matched: [u64; 2],
    pub(super) missed: u64,
    pub(super) config: TableConfig,
    /// No exact match ranks lower.
    exact_rank_least: u32,
    /// Exact matches among the rest.
    exact_hidden: usize,
    /// Whether the next vacancy to tell of is that less is left.
    pub(super) vacancy_down_next: bool,
    /// For each wide word, how many entries ask for it.
    words: [u32; WORDS],
    words_used: WordSet,
    /// What entries ask of the key, or asked since there was none.
    asked: Key,
}

impl Table {
    pub(super) fn new(settings: &TableSettings, seed: u64) -> Table {
        let mut table = Table {
            exact: ExactTable::new(settings.exact_entries_max, seed),
            rest: Rest::new(settings.classifier, seed),
            entries_max: [settings.exact_entries_max, settings.wildcard_entries_max],
            matched: [0; 2],
            missed: 0,
            config: settings.config,
            exact_rank_least: u32::MAX,
            exact_hidden: 0,
            vacancy_down_next: true,
            words: [0; WORDS],
            words_used: 0,
            asked: Key::ZERO,
        };
        table.set_config(settings.config);
        table
    }

    pub(super) fn set_config(&mut self, config: TableConfig) {
        self.config = config;
        if let Some(limits) = config.vacancy {
            self.vacancy_down_next = self.vacancy_percent() >= limits.up;
        }
    }

    pub(super) fn wide_words(&self) -> WordSet {
        self.words_used
    }

    pub(super) fn asked(&self) -> &Key {
        &self.asked
    }

    /// Whether an exact match may rank below one of the rest.
    #[inline]
    pub(super) fn ranks_mixed(&self) -> bool {
        !self.exact.is_empty() && self.rest.rank_most() > self.exact_rank_least
    }

    /// For each key its entry, exact ones first.
    #[inline]
    pub(super) fn lookup(
        &self,
        slab: &Slab,
        keys: &[Key],
        wide: &[Wide],
        found: &mut [u32; BATCH_MAX],
    ) {
        if self.exact.is_empty() {
            found.fill(NOWHERE);
        } else {
            self.exact.find_batch(slab, keys, found);
        }
        if !self.rest.is_empty() {
            self.rest.find_missing(slab, keys, wide, found);
        }
    }

    /// The entry for one key.
    pub(super) fn find(&self, slab: &Slab, key: &Key, wide: &Wide) -> u32 {
        let exact = if self.exact.is_empty() { None } else { self.exact.find(slab, key) };
        match exact {
            None => self.rest.find(slab, key, wide).unwrap_or(NOWHERE),
            Some(found) if self.ranks_mixed() => self.outrank(slab, found, key, wide),
            Some(found) => found,
        }
    }

    /// What to use instead of an exact match, if something of the rest ranks higher.
    pub(super) fn outrank(&self, slab: &Slab, found: u32, key: &Key, wide: &Wide) -> u32 {
        let Some(exact) = slab.get(found) else { return found };
        let higher = |other: &u32| slab.line(*other).rank() > exact.rank();
        self.rest.find(slab, key, wide).filter(higher).unwrap_or(found)
    }

    /// The entry with this very match and rank.
    pub(super) fn find_same(&self, slab: &Slab, matching: &Match, wanted: u32) -> Option<u32> {
        let ranked = |place: &u32| slab.line(*place).rank() == wanted;
        let exact = self.find_exact(slab, matching).filter(ranked);
        exact.or_else(|| self.rest.find_same(slab, matching, wanted))
    }

    /// The entry of the exact part with this match.
    pub(super) fn find_exact(&self, slab: &Slab, matching: &Match) -> Option<u32> {
        let exact = matching.is_exact() && !self.exact.is_empty();
        exact.then(|| self.exact.find(slab, matching.value())).flatten()
    }

    /// Whether exact matches are among the rest.
    pub(super) fn hides_exact(&self) -> bool {
        self.exact_hidden > 0
    }

    /// Whether an entry of this rank could match the same frame.
    pub(super) fn overlaps(&self, slab: &Slab, matching: &Match, wanted: u32) -> bool {
        if self.rest.overlaps(slab, matching, wanted) {
            return true;
        }
        let ranked = |place: u32| slab.line(place).rank() == wanted;
        if matching.is_exact() {
            return self.find_exact(slab, matching).is_some_and(ranked);
        }
        let meets =
            |place: u32| ranked(place) && matching.matches(&slab.line(place).key(), &Wide::ZERO);
        matching.wide_words() == 0
            && wanted >= self.exact_rank_least
            && self.exact.places().any(meets)
    }

    /// The part that an entry with this match belongs to.
    pub(super) fn part_for(&self, slab: &Slab, matching: &Match) -> Part {
        let exact = matching.is_exact()
            && self.entries_max[Part::Exact as usize] > 0
            && self.find_exact(slab, matching).is_none();
        if exact { Part::Exact } else { Part::Wildcard }
    }

    pub(super) fn is_full(&self, part: Part) -> bool {
        self.count_in(part) >= self.entries_max[part as usize]
    }

    /// Takes in an entry that is stored at `place`.
    pub(super) fn insert(&mut self, slab: &Slab, matching: &Match, rank: u32, place: u32) {
        self.asked = self.asked.or(matching.mask());
        match slab.line(place).part() {
            Part::Exact => {
                self.exact_rank_least = self.exact_rank_least.min(rank);
                self.exact.insert(slab, place);
            }
            Part::Wildcard => {
                self.exact_hidden += usize::from(matching.is_exact());
                self.rest.insert(slab, matching, rank, place);
                self.count_words(matching, 1);
            }
        }
    }

    /// Forgets an entry that is stored at `place`.
    pub(super) fn remove(&mut self, slab: &Slab, matching: &Match, rank: u32, place: u32) {
        match slab.line(place).part() {
            Part::Exact => {
                self.exact.remove(slab, place);
                if self.exact.is_empty() {
                    self.exact_rank_least = u32::MAX;
                }
            }
            Part::Wildcard => {
                self.exact_hidden -= usize::from(matching.is_exact());
                self.rest.remove(slab, matching, rank, place);
                self.count_words(matching, u32::MAX);
            }
        }
        if self.exact.is_empty() && self.rest.is_empty() {
            self.asked = Key::ZERO;
        }
    }

    /// Adds `by` (one, or the number that takes one off) to the users of the words asked for.
    fn count_words(&mut self, matching: &Match, by: u32) {
        let asked = matching.wide_words();
        for (word, users) in self.words.iter_mut().enumerate() {
            if asked & 1 << word != 0 {
                *users = users.wrapping_add(by);
                let bit = 1 << word;
                self.words_used = self.words_used & !bit | if *users > 0 { bit } else { 0 };
            }
        }
    }

    /// Whether it is now to be told that less (true) or more (false) room is left.
    pub(super) fn vacancy_news(&mut self) -> Option<bool> {
        let limits = self.config.vacancy?;
        let left = self.vacancy_percent();
        let news = if self.vacancy_down_next { left < limits.down } else { left > limits.up };
        if !news {
            return None;
        }
        self.vacancy_down_next = !self.vacancy_down_next;
        Some(!self.vacancy_down_next)
    }

    fn vacancy_percent(&self) -> u8 {
        let (fit, used) = (self.account().entries_max, self.account().entries);
        (fit.saturating_sub(used).saturating_mul(100) / fit.max(1)) as u8
    }

    fn count_in(&self, part: Part) -> usize {
        match part {
            Part::Exact => self.exact.len(),
            Part::Wildcard => self.rest.len(),
        }
    }

    pub(super) fn account(&self) -> TableAccount {
        let matched = self.matched.iter().sum();
        TableAccount {
            entries: self.exact.len() + self.rest.len(),
            entries_max: self.entries_max[0].saturating_add(self.entries_max[1]),
            lookups: matched + self.missed,
            matched,
        }
    }

    pub(super) fn part_account(&self, part: Part) -> TableAccount {
        let [exact, wildcard] = self.matched;
        let asked_second = wildcard + self.missed;
        TableAccount {
            entries: self.count_in(part),
            entries_max: self.entries_max[part as usize],
            lookups: if part == Part::Exact { exact + asked_second } else { asked_second },
            matched: self.matched[part as usize],
        }
    }
}
