//! What an entry did before it was changed, for who does not see the change yet.
//!
//! Entries that a bundle changes stay where they are and go on counting. What they do is written in
//! place, and what they did before is put aside for readers of the [edition](Edition) before: these
//! see a mark at the entry. When there are no such readers any more, the mark goes.
//!
//! Invariant: an entry is marked before it is changed, and what is put aside is written before that.

#[cfg(not(loom))]
use super::memory::Zero;
use super::sync::{
    AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
    fence,
};
use crate::classifier::Verdict;

/// Which of two successive states of the tables a reader sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edition {
    /// What an entry is marked with that was something else in this edition.
    pub(super) mark: u32,
}

impl Default for Edition {
    fn default() -> Edition {
        Edition { mark: 1 << 29 }
    }
}

impl Edition {
    /// The bits of a mark.
    pub(super) const MARKS: u32 = 3 << 29;

    /// The one after this; the one after that is called as this one again, which has no readers by then.
    #[must_use]
    pub fn next(self) -> Edition {
        Edition { mark: self.mark ^ Edition::MARKS }
    }
}

/// What an entry does, as far as frames can tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deed {
    /// What its instructions come to.
    pub verdict: Verdict,
    /// Their number.
    pub program: u32,
    /// A number for the control plane's own use.
    pub cookie: u64,
    /// Whether it is a table-miss entry.
    pub miss: bool,
}

/// A deed that was put aside.
#[derive(Debug, Default)]
#[repr(C, align(32))]
pub(super) struct Aside {
    cookie: AtomicU64,
    program: AtomicU32,
    verdict: AtomicU32,
    miss: AtomicU32,
}

// SAFETY: it consists of numbers, for which zero is valid and which have nothing to drop.
#[cfg(not(loom))]
#[allow(unsafe_code)]
unsafe impl Zero for Aside {}

impl Aside {
    /// Writes it, and then the mark of this edition, behind which the entry may be changed.
    pub(super) fn keep(&self, deed: Deed, marked: &AtomicU32, edition: Edition) {
        self.cookie.store(deed.cookie, Relaxed);
        self.program.store(deed.program, Relaxed);
        self.verdict.store(deed.verdict.pack(), Relaxed);
        self.miss.store(deed.miss.into(), Relaxed);
        marked.store(marked.load(Relaxed) | edition.mark, Release);
        // Whoever sees anything of the change sees the mark.
        fence(Release);
    }

    /// What the entry came to, as a number.
    pub(super) fn verdict(&self) -> u32 {
        // It is read behind the mark.
        fence(Acquire);
        self.verdict.load(Relaxed)
    }

    pub(super) fn get(&self) -> Deed {
        fence(Acquire);
        Deed {
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
    use crate::fast::published::Published;
    use crate::fast::slab::Slab;

    /// An entry is changed while another thread looks at it, once before the change is shown and once
    /// whenever that may be.
    #[test]
    fn an_entry_that_is_changed_is_all_old_or_all_new_as_its_edition_is() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(2);
        model.max_permutations = Some(20_000);
        model.check(|| {
            let deeds = [1, 2].map(|number| Deed {
                verdict: Verdict::Output(number as u16),
                program: number,
                cookie: number.into(),
                miss: number == 2,
            });
            let slab = Arc::new(Slab::new(1));
            slab.reserve(0);
            let write = |slab: &Slab, deed: Deed| {
                let cold = slab.cold(0);
                cold.set_cookie(deed.cookie);
                cold.set_miss(deed.miss);
                cold.set_program(deed.program);
                slab.line(0).set_verdict(deed.verdict);
            };
            write(&slab, deeds[0]);
            let (before, after) = (Edition::default(), Edition::default().next());
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
                    let Deed { program, cookie, miss, .. } = slab.deed(0, *held);
                    let wanted = (wanted.program, wanted.cookie, wanted.miss);
                    assert_eq!((program, cookie, miss), wanted);
                }
            });
            slab.put_aside(0, before);
            write(&slab, deeds[1]);
            shown.replace(after);
            let epoch = epochs.advance();
            if epochs.settled() >= epoch {
                slab.forget_aside(0);
            }
            thread.join().unwrap();
        });
    }
}
