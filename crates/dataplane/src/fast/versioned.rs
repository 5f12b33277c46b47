//! Previous actions of changed entries, for readers of the previous edition.
//!
//! Entries that a bundle changes stay in their slots and continue counting. Their new actions are
//! written in place. Their previous actions are stored here for readers of the previous
//! [edition](Edition), which see a mark at the entry. The mark is removed when no such readers are
//! left.
//!
//! Invariant: the previous actions are written before the mark, and the mark before the change.

#[cfg(not(loom))]
use super::memory::Zero;
use super::sync::{
    AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
    fence,
};
use crate::fast::verdict::Verdict;

/// Identifies one of two successive states of the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableVersion {
    /// Mark of an entry that had other actions in this edition.
    pub(super) mark: u32,
}

impl Default for TableVersion {
    fn default() -> TableVersion {
        TableVersion { mark: 1 << 29 }
    }
}

impl TableVersion {
    /// The bits of both marks.
    pub(super) const MARKS: u32 = 3 << 29;

    /// Returns the next edition. The edition after that equals this one, which has no readers by
    /// then.
    #[must_use]
    pub fn next(self) -> TableVersion {
        TableVersion { mark: self.mark ^ TableVersion::MARKS }
    }
}

/// The actions of an entry, as far as frames can observe them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryOutcome {
    /// Precomputed verdict of the instructions.
    pub verdict: Verdict,
    /// Program number.
    pub program: u32,
    /// Opaque number of the control plane.
    pub cookie: u64,
    /// Whether this is a table-miss entry.
    pub miss: bool,
}

/// Previous actions of an entry.
#[derive(Debug, Default)]
#[repr(C, align(32))]
pub(super) struct PreviousVersion {
    cookie: AtomicU64,
    program: AtomicU32,
    verdict: AtomicU32,
    miss: AtomicU32,
}

// SAFETY: it consists of numbers, for which zero is valid and which have nothing to drop.
#[cfg(not(loom))]
#[allow(unsafe_code)]
unsafe impl Zero for PreviousVersion {}

impl PreviousVersion {
    /// Writes the previous actions, and then the mark of this edition. Afterwards, the entry may be
    /// changed.
    pub(super) fn keep(&self, deed: EntryOutcome, marked: &AtomicU32, edition: TableVersion) {
        self.cookie.store(deed.cookie, Relaxed);
        self.program.store(deed.program, Relaxed);
        self.verdict.store(deed.verdict.pack(), Relaxed);
        self.miss.store(deed.miss.into(), Relaxed);
        marked.store(marked.load(Relaxed) | edition.mark, Release);
        // A reader that sees any part of the change also sees the mark.
        fence(Release);
    }

    /// Returns the previous verdict as a number.
    pub(super) fn verdict(&self) -> u32 {
        // The verdict is read after the mark.
        fence(Acquire);
        self.verdict.load(Relaxed)
    }

    pub(super) fn get(&self) -> EntryOutcome {
        fence(Acquire);
        EntryOutcome {
            cookie: self.cookie.load(Relaxed),
            program: self.program.load(Relaxed),
            verdict: Verdict::unpack(self.verdict.load(Relaxed)),
            miss: self.miss.load(Relaxed) != 0,
        }
    }
}

#[cfg(all(test, loom))]
mod model {
    use loom::sync::Arc;

    use super::*;
    use crate::fast::epoch::Epochs;
    use crate::fast::rcu_cell::Published;
    use crate::fast::slab::Slab;

    /// An entry changes while another thread reads it twice: before the change is published, and at
    /// any time.
    #[test]
    fn readers_see_a_changed_entry_completely_old_or_completely_new() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(2);
        model.max_permutations = Some(20_000);
        model.check(|| {
            let deeds = [1, 2].map(|number| EntryOutcome {
                verdict: Verdict::Output(number as u16),
                program: number,
                cookie: number.into(),
                miss: number == 2,
            });
            let slab = Arc::new(Slab::new(1));
            slab.reserve(0);
            let write = |slab: &Slab, deed: EntryOutcome| {
                let cold = slab.cold(0);
                cold.set_cookie(deed.cookie);
                cold.set_miss(deed.miss);
                cold.set_program(deed.program);
                slab.line(0).set_verdict(deed.verdict);
            };
            write(&slab, deeds[0]);
            let (before, after) = (TableVersion::default(), TableVersion::default().next());
            let (epochs, shown) = (Arc::new(Epochs::default()), Arc::new(Published::new(before)));
            let (reader, mut held) = (epochs.join(), shown.hold());
            let theirs = (Arc::clone(&epochs), Arc::clone(&shown), Arc::clone(&slab));
            let thread = loom::thread::spawn(move || {
                let (epochs, shown, slab) = theirs;
                for _ in 0..2 {
                    reader.turn(&epochs);
                    held.renew(&shown);
                    let wanted = deeds[usize::from(*held == after)];
                    assert_eq!(slab.verdict(slab.line(0), 0, *held), wanted.verdict);
                    let EntryOutcome { program, cookie, miss, .. } = slab.deed(0, *held);
                    let wanted = (wanted.program, wanted.cookie, wanted.miss);
                    assert_eq!((program, cookie, miss), wanted);
                }
            });
            slab.save_previous_version(0, before);
            write(&slab, deeds[1]);
            shown.replace(after);
            let epoch = epochs.advance();
            if epochs.settled() >= epoch {
                slab.drop_previous_version(0);
            }
            thread.join().unwrap();
        });
    }
}
