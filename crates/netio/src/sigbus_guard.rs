//! Guards shared mappings that the file's owner can truncate: access then reads zeros instead of
//! ending the process.
//!
//! The owner of a mapped file can shorten it. The next access beyond its end raises SIGBUS
//! (mmap(2)). A check before the access cannot help, because the file may change in between.
//! Therefore:
//! - Such mappings are listed in a table.
//! - On SIGBUS in a listed mapping, the handler maps zeroed private memory over the whole mapping
//!   and marks it as broken. The access then continues there.
//! - Data read then is invalid. The owner of the mapping checks the mark before it uses the data.
//! - A signal for any other address goes to the previous handler.

#![allow(unsafe_code)]

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use os::sys;

/// Maximum number of mappings that can be guarded at the same time.
pub const GUARDS_MAX: usize = 1024;

/// One guarded range; free while its start is zero.
struct Slot {
    start: AtomicUsize,
    end: AtomicUsize,
    is_broken: AtomicBool,
}

static SLOTS: [Slot; GUARDS_MAX] = [const {
    Slot { start: AtomicUsize::new(0), end: AtomicUsize::new(0), is_broken: AtomicBool::new(false) }
}; GUARDS_MAX];

/// Locked while a slot is allocated or freed.
static CHANGE: Mutex<()> = Mutex::new(());

/// Whether our handler is installed.
static IS_INSTALLED: AtomicBool = AtomicBool::new(false);

/// The previous handler of the signal.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

/// A guarded range. Drop it before the range is unmapped.
#[derive(Debug)]
pub struct Guard {
    slot: usize,
}

impl Guard {
    /// Guards the mapping of `bytes` bytes at `start`.
    ///
    /// Returns `None` if there are too many guards, or if the system rejects the handler.
    ///
    /// # Safety
    /// The range must be one whole mapping of the caller, of whole pages of their kind. The handler
    /// may replace it with private memory at any moment. It must stay mapped as long as the guard
    /// lives.
    pub unsafe fn new(start: *mut u8, bytes: usize) -> Option<Guard> {
        let _change = CHANGE.lock().unwrap_or_else(PoisonError::into_inner);
        install().ok()?;
        let slot = SLOTS.iter().position(|slot| slot.start.load(Ordering::Relaxed) == 0)?;
        let taken = &SLOTS[slot];
        taken.is_broken.store(false, Ordering::Relaxed);
        taken.end.store(start as usize + bytes, Ordering::Relaxed);
        taken.start.store(start as usize, Ordering::Release);
        Some(Guard { slot })
    }

    /// Returns whether the memory was truncated, so that data read since may be invalid.
    #[inline]
    pub fn is_broken(&self) -> bool {
        SLOTS[self.slot].is_broken.load(Ordering::Relaxed)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let _change = CHANGE.lock().unwrap_or_else(PoisonError::into_inner);
        SLOTS[self.slot].start.store(0, Ordering::Release);
    }
}

/// Installs our handler in front of the previous one, once. The caller holds [`CHANGE`].
fn install() -> std::io::Result<()> {
    if IS_INSTALLED.load(Ordering::Relaxed) {
        return Ok(());
    }
    // SAFETY: all-zero bytes are a value of this C struct, and both calls get pointers to live
    // ones. The handler has the type that SA_SIGINFO requires and is async-signal-safe.
    unsafe {
        let mut before: libc::sigaction = std::mem::zeroed();
        sys::check(libc::sigaction(libc::SIGBUS, std::ptr::null(), &mut before))?;
        BEFORE.get_or_init(|| before);
        let mut ours: libc::sigaction = std::mem::zeroed();
        ours.sa_sigaction = handle as *const () as usize;
        ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        sys::check(libc::sigaction(libc::SIGBUS, &ours, std::ptr::null_mut()))?;
    }
    IS_INSTALLED.store(true, Ordering::Relaxed);
    Ok(())
}

/// Signal handler. Uses only atomics and system calls, and preserves errno.
extern "C" fn handle(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid description of the signal; errno belongs to this thread.
    let (address, errno) = unsafe { ((*info).si_addr() as usize, *libc::__errno_location()) };
    let is_ours = SLOTS.iter().any(|slot| replace(slot, address));
    // SAFETY: errno belongs to this thread.
    unsafe { *libc::__errno_location() = errno };
    if !is_ours {
        pass_on(signal, info, context);
    }
}

/// Maps zeros over the slot's mapping if it contains the address.
fn replace(slot: &Slot, address: usize) -> bool {
    let start = slot.start.load(Ordering::Acquire);
    let end = slot.end.load(Ordering::Relaxed);
    if start == 0 || !(start..end).contains(&address) {
        return false;
    }
    slot.is_broken.store(true, Ordering::Relaxed);
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
    // SAFETY: the range is one whole mapping whose owner allows its replacement. It is still
    // mapped, because the code that accessed it holds it.
    let placed = unsafe {
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        libc::mmap(start as *mut libc::c_void, end - start, rights, flags, -1, 0)
    };
    placed != libc::MAP_FAILED
}

/// Passes a signal outside guarded memory to the previous handler.
fn pass_on(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let Some(before) = BEFORE.get() else { return };
    match before.sa_sigaction {
        libc::SIG_DFL | libc::SIG_IGN => {
            // SAFETY: restores the default action. The access is repeated and ends the process, as
            // it would without our handler.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        handler if before.sa_flags & libc::SA_SIGINFO != 0 => {
            // SAFETY: the kernel's record gives this address as a handler of this type.
            let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) =
                unsafe { std::mem::transmute(handler) };
            handler(signal, info, context);
        }
        handler => {
            // SAFETY: the kernel's record gives this address as a handler of this type.
            let handler: extern "C" fn(libc::c_int) = unsafe { std::mem::transmute(handler) };
            handler(signal);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

    const BYTES: usize = 4 * 4096;

    #[test]
    fn a_truncated_mapping_reads_as_zeros_and_is_reported() {
        // SAFETY: the name ends in zero, the descriptor is new, and the mapping is new and has its
        // length. Bytes are read and written inside its bounds, and it is unmapped after its guard.
        unsafe {
            let raw = sys::check(libc::memfd_create(c"guard".as_ptr(), libc::MFD_CLOEXEC)).unwrap();
            let file = OwnedFd::from_raw_fd(raw);
            let resize = |bytes: usize| libc::ftruncate(file.as_raw_fd(), bytes as libc::off_t);
            assert_eq!(resize(BYTES), 0);
            let rights = libc::PROT_READ | libc::PROT_WRITE;
            let map = || {
                let null = std::ptr::null_mut();
                let start = libc::mmap(null, BYTES, rights, libc::MAP_SHARED, raw, 0);
                assert_ne!(start, libc::MAP_FAILED);
                start.cast::<u8>()
            };
            let (start, other) = (map(), map());
            let (guard, whole) =
                (Guard::new(start, BYTES).unwrap(), Guard::new(other, BYTES).unwrap());
            start.write_volatile(7);
            start.add(BYTES - 1).write_volatile(8);
            assert_eq!((other.add(BYTES - 1).read_volatile(), guard.is_broken()), (8, false));
            assert_eq!(resize(4096), 0);
            assert_eq!(
                (start.read_volatile(), guard.is_broken()),
                (7, false),
                "this is still there"
            );
            assert_eq!((start.add(BYTES - 1).read_volatile(), guard.is_broken()), (0, true));
            // The memory is private now: it stores what is written, and no other process can read
            // it.
            start.write_volatile(9);
            start.add(8192).write_volatile(9);
            assert_eq!((start.read_volatile(), start.add(8192).read_volatile()), (9, 9));
            assert_eq!((other.read_volatile(), whole.is_broken()), (7, false));
            drop((guard, whole));
            // A freed table slot is reused without its old mark.
            let again = Guard::new(other, BYTES).unwrap();
            assert!(!again.is_broken());
            drop(again);
            libc::munmap(start.cast(), BYTES);
            libc::munmap(other.cast(), BYTES);
        }
    }
}
