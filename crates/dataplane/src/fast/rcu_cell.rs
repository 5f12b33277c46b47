//! A value that a writer replaces while readers keep the old one.
//!
//! A reader keeps the last value and checks with one load whether there is a newer one. The values
//! of successive generations are in different locations. So the writer delays a reader only after
//! two replacements, and then the reader finds the later value.
//!
//! Invariant: a value is stored before its generation is published, and a reader that takes it also
//! sees all earlier writes of the writer.

use super::sync::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
    RwLock, hint,
};
use std::sync::{Arc, PoisonError, TryLockError};

/// The value, and the number of replacements.
#[derive(Debug)]
pub struct Published<T> {
    generation: AtomicU64,
    /// Values with their generations, indexed by the generation's lowest bit.
    places: [RwLock<(u64, Arc<T>)>; 2],
}

/// The last value of a reader.
#[derive(Debug)]
pub struct RcuGuard<T> {
    generation: u64,
    value: Arc<T>,
}

impl<T> Published<T> {
    /// Creates the first value.
    pub fn new(value: T) -> Published<T> {
        let value = Arc::new(value);
        let place = || RwLock::new((0, Arc::clone(&value)));
        Published { generation: AtomicU64::new(0), places: [place(), place()] }
    }

    /// Replaces the value. Old values are freed by their last reader, after [`Published::forget`].
    /// Only the writer calls this.
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

    /// Drops the reference to the previous value. Only the writer calls this.
    pub fn forget(&self) {
        let generation = self.generation.load(Relaxed) as usize;
        let now = self.places[generation % 2].read().unwrap_or_else(PoisonError::into_inner);
        let mut before =
            self.places[(generation + 1) % 2].write().unwrap_or_else(PoisonError::into_inner);
        *before = now.clone();
    }

    /// Returns the current value for a new reader.
    pub fn hold(&self) -> RcuGuard<T> {
        let (generation, value) = self.take();
        RcuGuard { generation, value }
    }

    #[cold]
    fn take(&self) -> (u64, Arc<T>) {
        loop {
            let generation = self.generation.load(Acquire) as usize;
            match self.places[generation % 2].try_read() {
                Ok(place) => return place.clone(),
                Err(TryLockError::Poisoned(poisoned)) => return poisoned.into_inner().clone(),
                // The writer is storing the value after the next, so the next one is published
                // already.
                Err(TryLockError::WouldBlock) => hint::spin_loop(),
            }
        }
    }
}

impl<T> RcuGuard<T> {
    /// Takes the current value, and returns whether it is a new one.
    #[inline]
    pub fn renew(&mut self, published: &Published<T>) -> bool {
        let renewed = self.generation != published.generation.load(Acquire);
        if renewed {
            (self.generation, self.value) = published.take();
        }
        renewed
    }
}

impl<T> std::ops::Deref for RcuGuard<T> {
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
    fn a_reader_keeps_the_old_value_until_it_renews() {
        let published = Published::new(1);
        let mut held = published.hold();
        published.replace(2);
        published.replace(3);
        assert_eq!((*held, *published.hold()), (1, 3));
        assert!(held.renew(&published));
        assert_eq!(*held, 3);
        assert!(!held.renew(&published), "it already has the latest value");
        published.replace(4);
        let next = published.places[0].write().expect("no thread panicked");
        assert!(held.renew(&published), "a lock on the next slot does not block the renewal");
        assert_eq!(*held, 4);
        drop(next);
    }

    #[test]
    fn a_forgotten_value_is_freed_when_no_reader_has_it() {
        let (first, second) = (Arc::new(1), Arc::new(2));
        let published = Published::new(Arc::clone(&first));
        let mut held = published.hold();
        published.replace(Arc::clone(&second));
        published.forget();
        assert_eq!(Arc::strong_count(&first), 2, "a reader still has it");
        held.renew(&published);
        assert_eq!(Arc::strong_count(&first), 1);
    }
}
