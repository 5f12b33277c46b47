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

use crate::classifier::exact::ExactTable;
use crate::classifier::many::Entries;
use crate::classifier::rest::{Described, Rest};
use crate::classifier::{Classifier, Overlap};
use crate::counter::TableAccount;
use crate::fast::slab::Slab;
use crate::flow::Part;
use crate::key::Key;
use crate::key::wide::{WORDS, WordSet};
use crate::matching::Match;

use super::lookup::View;
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
    pub(super) config: TableConfig,
    /// No exact match ranks lower.
    exact_rank_least: u32,
    /// Matches among the rest that ask for the whole key: those that an exact one may cover.
    whole_keys: usize,
    /// Whether the next vacancy to tell of is that less is left.
    pub(super) vacancy_down_next: bool,
    /// For each wide word, how many entries ask for it.
    words: [u32; WORDS],
    words_used: WordSet,
    /// What entries ask of the key, or asked since there was none.
    asked: Key,
    /// Whether what readers hold of it is out of date.
    changed: bool,
}

impl Table {
    pub(super) fn new(settings: &TableSettings, seed: u64) -> Table {
        let mut table = Table {
            exact: ExactTable::new(settings.exact_entries_max, seed),
            rest: Rest::new(settings.classifier, seed),
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

    /// What readers are to hold of it. `asked` is what entries of it and of later tables ask for.
    pub(super) fn view(&self, asked: (Key, WordSet)) -> View {
        View {
            exact: self.exact.view(),
            rest: self.rest.view(),
            ranks_mixed: self.ranks_mixed(),
            config: self.config,
            asked,
        }
    }

    /// How matches with open fields are found.
    pub(super) fn describe(&self) -> Described {
        self.rest.describe()
    }

    /// Whether what readers hold became out of date since this was last asked.
    pub(super) fn take_changed(&mut self) -> bool {
        self.rest.take_changed() | std::mem::take(&mut self.changed)
    }

    /// Whether readers are to go on with what they hold whatever is changed from now on, until that is
    /// published. With `false` nobody holds it any more.
    pub(super) fn set_stays(&mut self, stays: bool) {
        self.exact.set_stays(stays);
        self.rest.set_stays(stays);
    }

    /// Makes what was changed while readers go on with what they hold ready to be published, as far as
    /// the budget goes. False if it was used up before.
    pub(super) fn complete(&mut self, slab: &Slab, budget: &mut usize) -> bool {
        let exact = self.exact.complete(slab, budget);
        self.changed |= exact.unwrap_or(false);
        exact.is_some() && self.rest.complete(slab, budget)
    }

    /// Goes on with a change of the structure of the rest, if one is under way (see [`Rest::advance`]).
    pub(super) fn advance(&mut self, slab: &Slab, entries: &dyn Entries) {
        self.rest.advance(slab, entries);
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

    /// Whether matches that an exact one covers are among the rest.
    pub(super) fn hides_whole_keys(&self) -> bool {
        self.whole_keys > 0
    }

    /// Whether an entry of this rank could match the same frame, as far as a few steps tell.
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

    /// Forgets an entry that is stored at `place`.
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

    /// Its account, with the frames that matched in each part and those that did not.
    pub(super) fn account(&self, (matched, missed): ([u64; 2], u64)) -> TableAccount {
        let matched = matched.iter().sum();
        TableAccount {
            entries: self.exact.len() + self.rest.len(),
            entries_max: self.entries_max[0].saturating_add(self.entries_max[1]),
            lookups: matched + missed,
            matched,
        }
    }

    /// The same for one part.
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
