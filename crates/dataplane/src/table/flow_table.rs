//! A single table: a hash table of exact matches, a classifier for wildcard matches, and a
//! configuration.
//!
//! Exact matches are looked up first, as in the software switch of bianco2010 (sections II and
//! IV.C). This suffices if they rank above wildcard matches, as in OpenFlow 1.0. Otherwise, the
//! wildcard part is also searched for a higher rank. The configuration follows the OpenFlow switch
//! specification 1.1.0, section 5.3.3 (table miss), and 1.4.1, section 7.3.4.1 (eviction, vacancy).
//!
//! Invariant: the exact part holds at most one entry per key. Another entry with the same key and a
//! different rank is in the wildcard part.

use crate::classifier::exact::ExactTable;
use crate::classifier::wildcard::{ClassifierKind, WildcardClassifier};
use crate::classifier::wildcard_large::Entries;
use crate::classifier::{Classifier, Overlap};
use crate::counter::TableAccount;
use crate::fast::slab::Slab;
use crate::flow::Part;
use crate::key::Key;
use crate::key::wide::{WORDS, WordSet};
use crate::matching::Match;

use super::lookup::View;
use super::{EXACT_ENTRIES_MAX, WILDCARD_ENTRIES_MAX};

/// Settings with which a table is created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableSettings {
    /// Capacity of the hash table of exact matches. With 0, exact matches are in the wildcard part.
    pub exact_entries_max: usize,
    /// Capacity for other matches.
    pub wildcard_entries_max: usize,
    /// Classifier for wildcard matches.
    pub classifier: Classifier,
    /// Initial configuration.
    pub config: TableConfig,
}

impl Default for TableSettings {
    /// The sizes of bianco2010.
    fn default() -> TableSettings {
        TableSettings::of(EXACT_ENTRIES_MAX, WILDCARD_ENTRIES_MAX)
    }
}

impl TableSettings {
    /// Creates settings with these capacities for exact and for other matches.
    pub fn of(exact_entries_max: usize, wildcard_entries_max: usize) -> TableSettings {
        TableSettings {
            exact_entries_max,
            wildcard_entries_max,
            classifier: Classifier::Automatic,
            config: TableConfig::default(),
        }
    }

    /// Creates settings for a table of entries of any kind, with one hash table per mask.
    pub fn holding(entries_max: usize) -> TableSettings {
        let classifier = Classifier::TupleSpace;
        TableSettings { classifier, ..TableSettings::of(0, entries_max) }
    }

    /// Returns the total capacity.
    pub fn entries_max(&self) -> usize {
        self.exact_entries_max.saturating_add(self.wildcard_entries_max)
    }
}

/// Configuration of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TableConfig {
    /// What the table does with frames that match no entry.
    pub on_miss: TableMiss,
    /// Whether a new entry in a full table evicts a less important one.
    pub eviction: bool,
    /// Thresholds of vacancy events.
    pub vacancy: Option<Vacancy>,
}

/// Thresholds of vacancy events, in percent of the table size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vacancy {
    /// Report when less space than this is left, once until more than `up` is left.
    pub down: u8,
    /// Report when more space than this is left, once until less than `down` is left.
    pub up: u8,
}

/// Action on a table miss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TableMiss {
    /// As configured for the pipeline.
    #[default]
    Pipeline,
    /// Send the frame to the controller.
    Controller,
    /// Continue with the next table.
    Continue,
    /// Drop the frame.
    Drop,
}

/// A table.
#[derive(Debug)]
pub(super) struct Table {
    exact: ExactTable,
    rest: WildcardClassifier,
    entries_max: [usize; 2],
    pub(super) config: TableConfig,
    /// Lower bound of the ranks of exact matches.
    exact_rank_least: u32,
    /// Number of wildcard-part matches on the whole key: an exact match may cover these.
    whole_keys: usize,
    /// Whether the next vacancy event is "vacancy down".
    pub(super) vacancy_down_next: bool,
    /// For each wide word, the number of entries that match on it.
    words: [u32; WORDS],
    words_used: WordSet,
    /// Key bits that entries match on, or matched on since the table was last empty.
    asked: Key,
    /// Whether the published view is out of date.
    changed: bool,
}

impl Table {
    pub(super) fn new(settings: &TableSettings, seed: u64) -> Table {
        let mut table = Table {
            exact: ExactTable::new(settings.exact_entries_max, seed),
            rest: WildcardClassifier::new(settings.classifier, seed),
            entries_max: [settings.exact_entries_max, settings.wildcard_entries_max],
            config: settings.config,
            exact_rank_least: u32::MAX,
            whole_keys: 0,
            vacancy_down_next: true,
            words: [0; WORDS],
            words_used: 0,
            asked: Key::ZERO,
            changed: false,
        };
        table.set_config(settings.config);
        table
    }

    pub(super) fn set_config(&mut self, config: TableConfig) {
        self.config = config;
        self.changed = true;
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

    fn ranks_mixed(&self) -> bool {
        self.rest.rank_most() > self.exact_rank_least
    }

    /// Creates the view to publish. `asked` has the bits that entries of this and later tables
    /// match on.
    pub(super) fn view(&self, asked: (Key, WordSet)) -> View {
        View {
            exact: self.exact.view(),
            rest: self.rest.view(),
            ranks_mixed: self.ranks_mixed(),
            config: self.config,
            asked,
        }
    }

    /// Describes how wildcard matches are found.
    pub(super) fn describe(&self) -> ClassifierKind {
        self.rest.describe()
    }

    /// Whether the published view became out of date since the last call.
    pub(super) fn take_changed(&mut self) -> bool {
        self.rest.take_changed() | std::mem::take(&mut self.changed)
    }

    /// Sets whether changes are staged, so that lookup threads keep the published state until the
    /// next publication. With `false`, no thread uses the previous state any more.
    pub(super) fn set_stays(&mut self, stays: bool) {
        self.exact.set_stays(stays);
        self.rest.set_stays(stays);
    }

    /// Prepares staged changes for publication, within a budget. Returns false if the budget is
    /// exhausted first.
    pub(super) fn complete(&mut self, slab: &Slab, budget: &mut usize) -> bool {
        let exact = self.exact.complete(slab, budget);
        self.changed |= exact.unwrap_or(false);
        exact.is_some() && self.rest.complete(slab, budget)
    }

    /// Continues a structural change of the wildcard part, if one is in progress (see
    /// [`WildcardClassifier::advance`]).
    pub(super) fn advance(&mut self, slab: &Slab, entries: &dyn Entries) {
        self.rest.advance(slab, entries);
    }

    /// Finds the entry with exactly this match and rank.
    pub(super) fn find_same(&self, slab: &Slab, matching: &Match, wanted: u32) -> Option<u32> {
        let ranked = |place: &u32| slab.line(*place).rank() == wanted;
        let exact = self.find_exact(slab, matching).filter(ranked);
        exact.or_else(|| self.rest.find_same(slab, matching, wanted))
    }

    /// Finds the entry of the exact part with this match.
    pub(super) fn find_exact(&self, slab: &Slab, matching: &Match) -> Option<u32> {
        let exact = matching.is_exact() && !self.exact.is_empty();
        exact.then(|| self.exact.find(slab, matching.value())).flatten()
    }

    /// Whether the wildcard part has matches that an exact match may cover.
    pub(super) fn hides_whole_keys(&self) -> bool {
        self.whole_keys > 0
    }

    /// Checks whether an entry of this rank overlaps, as far as a few steps can decide.
    pub(super) fn overlap(&self, slab: &Slab, matching: &Match, wanted: u32) -> Overlap {
        let ranked = |place: u32| slab.line(place).rank() == wanted;
        let exact = match wanted >= self.exact_rank_least {
            _ if matching.is_exact() => self.find_exact(slab, matching).is_some_and(ranked).into(),
            false => Overlap::No,
            // An exact match leaves the wide fields open.
            true if matching.wide_words() != 0 => Overlap::Unknown,
            true => Overlap::Covered,
        };
        self.rest.overlap(slab, matching, wanted).max(exact)
    }

    /// Returns the part for an entry with this match.
    pub(super) fn part_for(&self, slab: &Slab, matching: &Match) -> Part {
        let exact = matching.is_exact()
            && self.entries_max[Part::Exact as usize] > 0
            && self.find_exact(slab, matching).is_none();
        if exact { Part::Exact } else { Part::Wildcard }
    }

    pub(super) fn is_full(&self, part: Part) -> bool {
        self.count_in(part) >= self.entries_max[part as usize]
    }

    /// Adds an entry that is stored in slot `place`.
    pub(super) fn insert(&mut self, slab: &Slab, matching: &Match, rank: u32, place: u32) {
        self.asked = self.asked.or(matching.mask());
        let mixed = self.ranks_mixed();
        match slab.line(place).part() {
            Part::Exact => {
                self.exact_rank_least = self.exact_rank_least.min(rank);
                self.changed |= self.exact.insert(slab, place);
            }
            Part::Wildcard => {
                self.whole_keys += usize::from(matching.asks_whole_key());
                self.rest.insert(slab, matching, rank, place);
                self.count_words(matching, 1);
            }
        }
        self.changed |= mixed != self.ranks_mixed();
    }

    /// Removes an entry that is stored in slot `place`.
    pub(super) fn remove(&mut self, slab: &Slab, matching: &Match, rank: u32, place: u32) {
        let mixed = self.ranks_mixed();
        match slab.line(place).part() {
            Part::Exact => {
                self.changed |= self.exact.remove(slab, place);
                if self.exact.is_empty() {
                    self.exact_rank_least = u32::MAX;
                }
            }
            Part::Wildcard => {
                self.whole_keys -= usize::from(matching.asks_whole_key());
                self.rest.remove(slab, matching, rank, place);
                self.count_words(matching, u32::MAX);
            }
        }
        if self.exact.is_empty() && self.rest.is_empty() {
            self.asked = Key::ZERO;
        }
        self.changed |= mixed != self.ranks_mixed();
    }

    /// Adds `by` to the use counts of the wide words in a match; a wrapping -1 decrements.
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

    /// Returns the vacancy event that is due: true for "vacancy down", false for "vacancy up".
    pub(super) fn vacancy_news(&mut self) -> Option<bool> {
        let limits = self.config.vacancy?;
        let left = self.vacancy_percent();
        let event_queue =
            if self.vacancy_down_next { left < limits.down } else { left > limits.up };
        if !event_queue {
            return None;
        }
        self.vacancy_down_next = !self.vacancy_down_next;
        Some(!self.vacancy_down_next)
    }

    fn vacancy_percent(&self) -> u8 {
        let fit = self.entries_max[0].saturating_add(self.entries_max[1]);
        let used = self.exact.len() + self.rest.len();
        (fit.saturating_sub(used).saturating_mul(100) / fit.max(1)) as u8
    }

    fn count_in(&self, part: Part) -> usize {
        match part {
            Part::Exact => self.exact.len(),
            Part::Wildcard => self.rest.len(),
        }
    }

    /// Returns the table's statistics, given the matches in each part and the misses.
    pub(super) fn account(&self, (matched, missed): ([u64; 2], u64)) -> TableAccount {
        let matched = matched.iter().sum();
        TableAccount {
            entries: self.exact.len() + self.rest.len(),
            entries_max: self.entries_max[0].saturating_add(self.entries_max[1]),
            lookups: matched + missed,
            matched,
        }
    }

    /// Returns the statistics of one part.
    pub(super) fn part_account(
        &self,
        part: Part,
        (matched, missed): ([u64; 2], u64),
    ) -> TableAccount {
        let [exact, wildcard] = matched;
        let asked_second = wildcard + missed;
        TableAccount {
            entries: self.count_in(part),
            entries_max: self.entries_max[part as usize],
            lookups: if part == Part::Exact { exact + asked_second } else { asked_second },
            matched: matched[part as usize],
        }
    }
}
