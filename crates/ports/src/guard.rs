//! Memory that somebody else can take away: touching it then reads zeros instead of ending us.
//!
//! Whoever owns a file that we mapped can make it shorter, and the next touch beyond its end raises
//! SIGBUS (mmap(2)). No check before the touch can help, since the file may change in between. So
//! such mappings stand in a table; when the signal hits one, its handler puts fresh zeroed memory of
//! our own in the place of the whole mapping and notes that it broke, and the touch goes on there.
//! What was read then is worth nothing, and the owner of the mapping looks at the note before it
//! believes it. A signal that hits anything else goes to whoever handled it before.

#![allow(unsafe_code)]

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::sys;

/// Mappings that can be guarded at once.
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

/// Held while a slot is taken or given back.
static CHANGE: Mutex<()> = Mutex::new(());

/// Whether our handler is in its place.
static IS_INSTALLED: AtomicBool = AtomicBool::new(false);

/// Who handled the signal before us.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

/// A guarded range. To be dropped before the range is unmapped.
#[derive(Debug)]
pub struct Guard {
    slot: usize,
}

impl Guard {
    /// Guards the mapping of `bytes` bytes from `start` on. `None` if there are too many, or if the
    /// system refuses the handler.
    ///
    /// # Safety
    /// The range must be one whole mapping of the caller's, of whole pages of their kind, which may
    /// be replaced by private memory at any moment; it must stay mapped as long as the guard lives.
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

    /// Whether the memory was taken away, and what was read since may be anything.
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

/// Puts our handler before the one there was, once. The caller holds [`CHANGE`].
fn install() -> std::io::Result<()> {
    if IS_INSTALLED.load(Ordering::Relaxed) {
        return Ok(());
    }
    // SAFETY: all-zero bytes are a value of this C struct; both calls get pointers to live ones; the
    // handler is a function of the type that SA_SIGINFO asks for and does only what a handler may.
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

/// The handler: atomics and system calls only, and errno is left as it was.
extern "C" fn handle(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel hands a valid description of the signal; errno is this thread's own.
    let (address, errno) = unsafe { ((*info).si_addr() as usize, *libc::__errno_location()) };
    let is_ours = SLOTS.iter().any(|slot| replace(slot, address));
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
    if !is_ours {
        pass_on(signal, info, context);
    }
}

/// Puts zeros in the place of the slot's mapping if the address lies there.
fn replace(slot: &Slot, address: usize) -> bool {
    let start = slot.start.load(Ordering::Acquire);
    let end = slot.end.load(Ordering::Relaxed);
    if start == 0 || !(start..end).contains(&address) {
        return false;
    }
    slot.is_broken.store(true, Ordering::Relaxed);
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
    // SAFETY: the range is one whole mapping whose owner said that it may be replaced, and it is still
    // mapped, because whoever touched it holds it.
    let placed = unsafe {
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        libc::mmap(start as *mut libc::c_void, end - start, rights, flags, -1, 0)
    };
    placed != libc::MAP_FAILED
}

/// Hands a signal that is not about guarded memory to whoever was there before.
fn pass_on(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let Some(before) = BEFORE.get() else { return };
    match before.sa_sigaction {
        libc::SIG_DFL | libc::SIG_IGN => {
            // SAFETY: restores the default, by which the touch that is tried again ends the process, as
            // it would have without us.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        handler if before.sa_flags & libc::SA_SIGINFO != 0 => {
            // SAFETY: the kernel held this address to be a handler of this type.
            let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) =
                unsafe { std::mem::transmute(handler) };
            handler(signal, info, context);
        }
        handler => {
            // SAFETY: the kernel held this address to be a handler of this type.
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
    fn memory_that_is_taken_away_reads_as_zeros_and_is_known_for_it() {
        // SAFETY: a name that ends in zero, a fresh descriptor, a fresh mapping of its length, which is
        // read and written by the byte inside its bounds, and unmapped after its guard.
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
            // Ours from now on: it holds what is written, and nobody else sees it.
            start.write_volatile(9);
            start.add(8192).write_volatile(9);
            assert_eq!((start.read_volatile(), start.add(8192).read_volatile()), (9, 9));
            assert_eq!((other.read_volatile(), whole.is_broken()), (7, false));
            drop((guard, whole));
            // A place in the table is taken again, without what was noted there.
            let again = Guard::new(other, BYTES).unwrap();
            assert!(!again.is_broken());
            drop(again);
            libc::munmap(start.cast(), BYTES);
            libc::munmap(other.cast(), BYTES);
        }
    }
}
