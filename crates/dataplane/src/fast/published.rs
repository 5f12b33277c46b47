//! One value that a writer replaces and readers hold on to.
//!
//! A reader keeps the value that it saw last and asks with one load whether there is another. It
//! never waits: while the writer is at it, the old value does.

use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Release},
};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};

/// The value, and how often it was replaced.
#[derive(Debug)]
pub struct Published<T> {
    generation: AtomicU64,
    value: Mutex<Arc<T>>,
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
        Published { generation: AtomicU64::new(0), value: Mutex::new(Arc::new(value)) }
    }

    /// Puts a value in the place of the last one. What readers still hold of that is freed by the last
    /// of them.
    pub fn replace(&self, value: T) {
        let mut place = self.value.lock().unwrap_or_else(PoisonError::into_inner);
        *place = Arc::new(value);
        let generation = self.generation.load(Acquire) + 1;
        self.generation.store(generation, Release);
    }

    /// For a new reader.
    pub fn hold(&self) -> Held<T> {
        let value = self.value.lock().unwrap_or_else(PoisonError::into_inner);
        Held { generation: self.generation.load(Acquire), value: Arc::clone(&value) }
    }
}

impl<T> Held<T> {
    /// Takes the value that there is now. False if the writer is just replacing it: then the old
    /// one stays.
    #[inline]
    pub fn renew(&mut self, published: &Published<T>) -> bool {
        self.generation == published.generation.load(Acquire) || self.take(published)
    }

    #[cold]
    fn take(&mut self, published: &Published<T>) -> bool {
        let value = match published.value.try_lock() {
            Ok(value) => value,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return false,
        };
        self.generation = published.generation.load(Acquire);
        self.value = Arc::clone(&value);
        true
    }
}

impl<T> std::ops::Deref for Held<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.value
    }
}

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
        published.replace(4);
        let busy = published.value.lock().expect("nobody panicked");
        assert!(!held.renew(&published));
        assert_eq!(*held, 3, "it goes on with what it has");
        drop(busy);
        assert!(held.renew(&published));
        assert_eq!(*held, 4);
    }
}
