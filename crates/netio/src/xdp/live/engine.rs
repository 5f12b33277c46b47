//! The engine of all live ports of this process: it runs a program on frames that the kernel
//! generates.
//!
//! - Frames in the future are sent by one thread. It makes calls of many frames: a call starts with
//!   pages that are not in a cache, and its pages are only used again within the call. The thread
//!   has the core while the ports' owner sleeps, which should request short slices to get it back.
//! - Other frames are sent by the caller, one call each, while this thread does not run.
//!
//! Invariant: at most one thread runs a program on generated frames. It holds `turn`.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;

use ebpf::{Map, MapKind, Program};

use super::memory::{self, SENT_BYTES_MAX, SLOTS, SendMemory, control};

/// Frames in the first call of the thread, sent or dropped: a millisecond.
const CALL_FRAMES_FIRST: u32 = 1 << 14;

/// Frames in a later call: some 10 ms. Pages that are under way at its end are free after a second.
const CALL_FRAMES_MAX: u32 = 1 << 17;

/// Frames that the kernel runs before it sends the last of them, if few are due. A frame waits
/// about a microsecond for the others.
const BATCH_FEW: u32 = 16;

/// The same if many are due.
const BATCH_MANY: u32 = 256;

/// Frames of a call per sent frame from which on few are due.
const FEW: u64 = 4;

/// The engine.
#[derive(Debug)]
pub(super) struct Engine {
    pub(super) memory: SendMemory,
    pub(super) interfaces: Map,
    taken: Mutex<[bool; SLOTS]>,
    /// Slots that send in the future, and the thread that sends.
    active: Mutex<Active>,
    is_on: AtomicBool,
    turn: Mutex<()>,
    /// Length of the last frame. Others cost one more call of a helper.
    frame_bytes: AtomicU64,
    failed: Mutex<Option<io::Error>>,
}

#[derive(Debug, Default)]
struct Active {
    slots: Vec<usize>,
    thread: Option<JoinHandle<()>>,
}

/// The engine of this process, while it has live ports.
static SHARED: Mutex<Weak<Engine>> = Mutex::new(Weak::new());

/// A place of the engine for one port. Dropping this frees it.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) engine: Arc<Engine>,
    pub(super) number: usize,
}

impl Slot {
    /// Takes a free place for an interface, by its index in the calling thread's namespace.
    pub(super) fn take(interface: i32) -> io::Result<Slot> {
        let mut shared = locked(&SHARED);
        let engine = match shared.upgrade() {
            Some(engine) => engine,
            None => {
                let engine = Arc::new(Engine::new()?);
                *shared = Arc::downgrade(&engine);
                engine
            }
        };
        let mut taken = locked(&engine.taken);
        let number = taken.iter().position(|is_taken| !is_taken).ok_or_else(|| {
            io::Error::other(format!("at most {SLOTS} live ports are possible in a process"))
        })?;
        engine.interfaces.put(number as u32, interface as u32)?;
        taken[number] = true;
        drop(taken);
        Ok(Slot { engine, number })
    }

    /// Returns the offset of one of the slot's words in the memory for control.
    pub(super) fn word(&self, at: usize) -> usize {
        at + self.number * control::SLOT_BYTES
    }

    /// Starts to send this slot's frames at their times. The first slot's program runs for all.
    pub(super) fn start(&self, program: &Arc<Program>) {
        let mut active = locked(&self.engine.active);
        if active.slots.contains(&self.number) {
            return;
        }
        active.slots.push(self.number);
        if active.thread.is_none() {
            let (engine, program) = (Arc::clone(&self.engine), Arc::clone(program));
            let turn = locked(&self.engine.turn);
            self.engine.take_turns(&active.slots);
            drop(turn);
            self.engine.is_on.store(true, Ordering::Release);
            active.thread = Some(std::thread::spawn(move || engine.send_frames(&program)));
        } else {
            self.engine.take_turns(&active.slots);
        }
    }

    /// Ends the sending of this slot's frames at their times. Those that have not left stay.
    pub(super) fn stop(&self) {
        let mut active = locked(&self.engine.active);
        active.slots.retain(|slot| *slot != self.number);
        if !active.slots.is_empty() {
            return self.engine.take_turns(&active.slots);
        }
        self.engine.is_on.store(false, Ordering::Release);
        if let Some(thread) = active.thread.take() {
            // The thread does not panic.
            let _ = thread.join();
        }
    }

    /// Runs a program on this many frames of this slot now.
    pub(super) fn run(&self, program: &Program, frames: u32) -> io::Result<()> {
        let _turn = locked(&self.engine.turn);
        self.engine.take_turns(&[self.number]);
        let bytes = self.engine.frame_bytes();
        program.run_on_live_frames(&[0; SENT_BYTES_MAX][..bytes], frames, BATCH_MANY)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.stop();
        locked(&self.engine.taken)[self.number] = false;
    }
}

impl Engine {
    fn new() -> io::Result<Engine> {
        Ok(Engine {
            memory: SendMemory::create()?,
            interfaces: Map::new(MapKind::Devices, SLOTS as u32)?,
            taken: Mutex::new([false; SLOTS]),
            active: Mutex::default(),
            is_on: AtomicBool::new(false),
            turn: Mutex::default(),
            frame_bytes: AtomicU64::new(60),
            failed: Mutex::default(),
        })
    }

    /// Returns whether the thread runs.
    pub(super) fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Acquire)
    }

    /// Sets the length of most of the next frames.
    pub(super) fn expect(&self, frame_bytes: usize) {
        self.frame_bytes.store(frame_bytes as u64, Ordering::Relaxed);
    }

    /// Takes the error that ended the thread, if any.
    pub(super) fn take_error(&self) -> Option<io::Error> {
        locked(&self.failed).take()
    }

    fn frame_bytes(&self) -> usize {
        let bytes = self.frame_bytes.load(Ordering::Relaxed) as usize;
        bytes.clamp(memory::HEADER_BYTES, SENT_BYTES_MAX)
    }

    /// Sets the slots that send in turn.
    fn take_turns(&self, slots: &[usize]) {
        for (place, two) in slots.chunks(2).enumerate() {
            let second = two.get(1).copied().unwrap_or_default() as u64;
            self.memory.control.set_word(control::TURNS + 8 * place, two[0] as u64 | second << 32);
        }
        self.memory.control.set_word(control::COUNT, slots.len() as u64);
    }

    /// Returns the number of frames that all slots have sent.
    fn done(&self) -> u64 {
        let word = |slot| self.memory.control.word(control::DONE + slot * control::SLOT_BYTES);
        (0..SLOTS).map(word).sum()
    }

    /// Sends frames until the engine is off.
    fn send_frames(&self, program: &Program) {
        let _turn: MutexGuard<()> = locked(&self.turn);
        let blank = [0; SENT_BYTES_MAX];
        let (mut batch, mut frames) = (BATCH_FEW, CALL_FRAMES_FIRST);
        while self.is_on() {
            let before = self.done();
            let bytes = self.frame_bytes();
            match program.run_on_live_frames(&blank[..bytes], frames, batch) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => {
                    *locked(&self.failed) = Some(error);
                    return;
                }
                _ => {}
            }
            let is_many = FEW * (self.done() - before) >= u64::from(frames);
            batch = if is_many { BATCH_MANY } else { BATCH_FEW };
            frames = (2 * frames).min(CALL_FRAMES_MAX);
        }
    }
}

/// Locks a mutex. No holder leaves a broken state when it panics.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
