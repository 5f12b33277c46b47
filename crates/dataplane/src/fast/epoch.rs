//! Epoch-based reclamation: determines when no reader can access removed data.
//!
//! Readers do not announce what they access. Each reports quiescent states, in one of two ways:
//!
//! - [`Reader::turn`]: it has no references now, and enters the current epoch.
//! - [`Reader::leave`]: it has no references until it calls `turn` again; it is offline.
//!
//! Removed data can be reused when every reader has since reported a quiescent state. Source: P.
//! McKenney and J. Slingwine, "Read-copy update: using execution history to solve concurrency
//! problems" (PDCS 1998).
//!
//! Invariant: a reader that calls `turn` after an epoch began sees everything that was written
//! before.

use std::sync::{Arc, PoisonError};

use super::sync::{
    AtomicU64, Mutex, MutexGuard,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
    fence,
};

/// Epoch of an offline reader. It is the highest number, so that nothing waits for this reader.
const AWAY: u64 = u64::MAX;

/// The readers of one structure, as its writer sees them.
#[derive(Debug, Default)]
pub struct Epochs {
    now: AtomicU64,
    readers: Mutex<Vec<Arc<ReaderEpoch>>>,
}

/// The last epoch of a reader, on its own cache line.
#[derive(Debug)]
#[repr(align(128))]
struct ReaderEpoch(AtomicU64);

/// A reader. It is offline until it first calls [`Reader::turn`]. Dropping it deregisters it.
#[derive(Debug)]
pub struct Reader(Arc<ReaderEpoch>);

impl Epochs {
    /// Registers one more reader.
    pub fn join(&self) -> Reader {
        let seen = Arc::new(ReaderEpoch(AtomicU64::new(AWAY)));
        self.readers().push(Arc::clone(&seen));
        Reader(seen)
    }

    /// Begins a new epoch after all previous writes, and returns its number. Only the writer calls
    /// this.
    pub fn advance(&self) -> u64 {
        let next = self.now.load(Relaxed) + 1;
        self.now.store(next, Release);
        // Either the writer sees below that a reader came back, or the reader sees the previous
        // writes.
        fence(SeqCst);
        next
    }

    /// Returns the current epoch.
    pub fn now(&self) -> u64 {
        self.now.load(Relaxed)
    }

    /// Returns the last epoch that every reader has reached.
    pub fn settled(&self) -> u64 {
        let mut readers = self.readers();
        readers.retain(|seen| Arc::strong_count(seen) > 1);
        let least = readers.iter().map(|seen| seen.0.load(Acquire)).min();
        least.unwrap_or(AWAY).min(self.now())
    }

    fn readers(&self) -> MutexGuard<'_, Vec<Arc<ReaderEpoch>>> {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reader {
    /// Drops all references to earlier data and enters the current epoch.
    #[inline]
    pub fn turn(&self, epochs: &Epochs) {
        let now = epochs.now.load(Acquire);
        let seen = self.0.0.load(Relaxed);
        if seen != now {
            self.0.0.store(now, Release);
            if seen == AWAY {
                fence(SeqCst);
            }
        }
    }

    /// Takes the reader offline until it calls [`Reader::turn`] again.
    #[inline]
    pub fn leave(&self) {
        self.0.0.store(AWAY, Release);
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(all(test, loom))]
mod model {
    use loom::sync::Arc;
    use loom::sync::atomic::AtomicU64;

    use super::*;

    /// A reader comes back and reads the published value; the writer removes that value and reuses
    /// its memory as soon as permitted.
    #[test]
    fn memory_in_use_by_a_reader_is_not_reused() {
        loom::model(|| {
            let epochs = Arc::new(Epochs::default());
            let shown = Arc::new(AtomicU64::new(1));
            let cells = Arc::new([AtomicU64::new(0), AtomicU64::new(7)]);
            let reader = epochs.join();
            let theirs = (Arc::clone(&epochs), Arc::clone(&shown), Arc::clone(&cells));
            let thread = loom::thread::spawn(move || {
                let (epochs, shown, cells) = theirs;
                for _ in 0..2 {
                    reader.turn(&epochs);
                    let at = shown.load(Acquire) as usize;
                    if at != 0 {
                        assert_eq!(cells[at].load(Relaxed), 7);
                    }
                }
            });
            shown.store(0, Release);
            let epoch = epochs.advance();
            if epochs.settled() >= epoch {
                cells[1].store(8, Relaxed);
            }
            thread.join().unwrap();
            assert_eq!(epochs.settled(), epoch, "the reader has left");
        });
    }
}

#[cfg(not(loom))]
#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicPtr};

    use super::*;

    #[test]
    fn an_epoch_is_settled_when_every_reader_has_advanced_or_left() {
        let epochs = Epochs::default();
        assert_eq!(epochs.settled(), 0);
        let (one, other) = (epochs.join(), epochs.join());
        one.turn(&epochs);
        other.turn(&epochs);
        let next = epochs.advance();
        assert!(epochs.settled() < next);
        one.turn(&epochs);
        assert!(epochs.settled() < next, "the other has not advanced");
        other.leave();
        assert_eq!(epochs.settled(), next);
        let last = epochs.advance();
        assert_eq!(epochs.settled(), next);
        drop(one);
        assert_eq!(epochs.settled(), last);
        other.turn(&epochs);
        assert_eq!(epochs.settled(), last);
    }

    #[test]
    fn concurrent_readers_never_see_reused_memory() {
        const CELLS: usize = 4;
        let turns = if cfg!(miri) { 60 } else { 2_000 };
        let epochs = Epochs::default();
        // Each cell has a number; one cell is published, and reclaimed ones are overwritten.
        let cells: [AtomicU64; CELLS] = std::array::from_fn(|_| AtomicU64::new(1));
        let shown = AtomicPtr::new(std::ptr::from_ref(&cells[0]).cast_mut());
        let place = |pointer: *mut AtomicU64| {
            cells.iter().position(|cell| std::ptr::eq(cell, pointer)).expect("one of the cells")
        };
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for leaves in [false, true] {
                let (reader, epochs, cells, shown, done) =
                    (epochs.join(), &epochs, &cells, &shown, &done);
                scope.spawn(move || {
                    while !done.load(Relaxed) {
                        reader.turn(epochs);
                        let cell = &cells[place(shown.load(Acquire))];
                        for _ in 0..3 {
                            assert_eq!(cell.load(Relaxed), 1, "memory was reused too early");
                        }
                        if leaves {
                            reader.leave();
                        }
                    }
                });
            }
            let (mut free, mut taken): (Vec<usize>, Vec<(u64, usize)>) = (vec![1, 2, 3], vec![]);
            let mut now = 0;
            for _ in 0..turns {
                while free.is_empty() {
                    let settled = epochs.settled();
                    taken.retain(|&(epoch, cell)| {
                        let again = epoch <= settled;
                        if again {
                            cells[cell].store(2, Relaxed);
                            free.push(cell);
                        }
                        !again
                    });
                    std::thread::yield_now();
                }
                let next = free.pop().expect("a cell is free after the wait");
                cells[next].store(1, Relaxed);
                shown.store(std::ptr::from_ref(&cells[next]).cast_mut(), Release);
                taken.push((epochs.advance(), now));
                now = next;
            }
            done.store(true, Relaxed);
        });
    }
}
