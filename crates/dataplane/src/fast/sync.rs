//! Atomics for model-checked code: those of the standard library, or of `loom`, which explores the
//! interleavings of two threads (`cargo xtask model`).

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
