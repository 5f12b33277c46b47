//! One value that a writer replaces and readers hold on to.
//!
//! A reader keeps the value that it saw last and asks with one load whether there is another. The values
//! of one generation and the next are in different places, so that the writer is in the way of a reader
//! only if it has moved on twice, and then the reader finds the later one.
//!
//! Invariant: a value is in its place before its generation is told, and who takes it up has all of
//! what the writer did before.

use super::sync::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
    RwLock, hint,
};
use std::sync::{Arc, PoisonError, TryLockError};

/// The value, and how often it was replaced.
#[derive(Debug)]
pub struct Published<T> {
    generation: AtomicU64,
    /// Each with its generation, by whether that is odd.
    places: [RwLock<(u64, Arc<T>)>; 2],
}

/// What a reader saw last.
#[derive(Debug)]
pub struct Held<T> {
    generation: u64,
    value: Arc<T>,
}

impl<T> Published<T> {
    /// The first value.
    pub fn new(value: T) -> Published<T> {
        let value = Arc::new(value);
        let place = || RwLock::new((0, Arc::clone(&value)));
        Published { generation: AtomicU64::new(0), places: [place(), place()] }
    }

    /// Puts a value in the place of the last one. What readers still hold of that is freed by the last
    /// of them, after [`Published::forget`]. Only the writer calls this.
    pub fn replace(&self, value: T) {
        let generation = self.generation.load(Relaxed) + 1;
        let value = Arc::new(value);
        let before = {
            let place = &self.places[generation as usize % 2];
            let mut place = place.write().unwrap_or_else(PoisonError::into_inner);
            let before = std::mem::replace(&mut *place, (generation, value));
            self.generation.store(generation, Release);
            before
        };
        drop(before);
    }

    /// Lets go of the value before the one that there is now. Only the writer calls this.
    pub fn forget(&self) {
        let generation = self.generation.load(Relaxed) as usize;
        let now = self.places[generation % 2].read().unwrap_or_else(PoisonError::into_inner);
        let mut before =
            self.places[(generation + 1) % 2].write().unwrap_or_else(PoisonError::into_inner);
        *before = now.clone();
    }

    /// For a new reader.
    pub fn hold(&self) -> Held<T> {
        let (generation, value) = self.take();
        Held { generation, value }
    }

    #[cold]
    fn take(&self) -> (u64, Arc<T>) {
        loop {
            let generation = self.generation.load(Acquire) as usize;
            match self.places[generation % 2].try_read() {
                Ok(place) => return place.clone(),
                Err(TryLockError::Poisoned(poisoned)) => return poisoned.into_inner().clone(),
                // The writer puts the next but one there: by now there is the next.
                Err(TryLockError::WouldBlock) => hint::spin_loop(),
            }
        }
    }
}

impl<T> Held<T> {
    /// Takes the value that there is now, and says whether it is another one.
    #[inline]
    pub fn renew(&mut self, published: &Published<T>) -> bool {
        let renewed = self.generation != published.generation.load(Acquire);
        if renewed {
            (self.generation, self.value) = published.take();
        }
        renewed
    }
}

impl<T> std::ops::Deref for Held<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.value
    }
}

#[cfg(not(loom))]
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_holds_the_old_value_until_it_renews() {
        let published = Published::new(1);
        let mut held = published.hold();
        published.replace(2);
        published.replace(3);
        assert_eq!((*held, *published.hold()), (1, 3));
        assert!(held.renew(&published));
        assert_eq!(*held, 3);
        assert!(!held.renew(&published), "it has what there is");
        published.replace(4);
        let next = published.places[0].write().expect("nobody panicked");
        assert!(held.renew(&published), "the next value is not in the way of this one");
        assert_eq!(*held, 4);
        drop(next);
    }

    #[test]
    fn what_is_forgotten_is_freed_when_nobody_holds_it() {
        let (first, second) = (Arc::new(1), Arc::new(2));
        let published = Published::new(Arc::clone(&first));
        let mut held = published.hold();
        published.replace(Arc::clone(&second));
        published.forget();
        assert_eq!(Arc::strong_count(&first), 2, "a reader holds it");
        held.renew(&published);
        assert_eq!(Arc::strong_count(&first), 1);
    }
}
