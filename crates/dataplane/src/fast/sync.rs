//! The atomics of what is checked by a model: the standard library's, or those of `loom`, which tries
//! the orders in which two threads can meet (`cargo xtask model`).

#[cfg(not(loom))]
pub use std::{
    hint,
    sync::{
        Mutex, MutexGuard, RwLock,
        atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering, fence},
    },
};

#[cfg(loom)]
pub use loom::{
    hint,
    sync::{
        Mutex, MutexGuard, RwLock,
        atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering, fence},
    },
};
