//! The XDP program at the interface: it redirects each frame to the socket of its receive queue.
//! Frames without a socket, and frames that a filter drops, go to the kernel's network stack. Before
//! that, a fast path may forward frames in the kernel.
//!
//! Source: Linux `include/uapi/linux/bpf.h` (`struct xdp_md`, `bpf_redirect_map`), and for
//! timestamps `Documentation/networking/xdp-rx-metadata.rst`: the socket's owner can read the
//! metadata that a program stores before a frame. The program takes the timestamp before it does
//! anything else with the frame.

use std::io;
use std::sync::Arc;

use ebpf::{
    Assembly, Attachment, Condition, Counters, Helper, Instruction, Label, Map, MapKind, Program,
    Register, Width, XdpMode,
};
use packet::filter::Entry;
use packet::traffic::Count;

use super::filter::{self, FilterDecision};

/// Offsets in `struct xdp_md`: start of the frame, start of its metadata, and the queue.
const DATA: i16 = 0;
const DATA_META: i16 = 8;
const QUEUE: i16 = 16;

/// Bytes of a timestamp before a frame.
const STAMP_BYTES: i32 = 8;

/// Result for other frames: the network stack receives them (`XDP_PASS`).
const OTHERWISE: i32 = 2;

/// The program at an interface, and its map of sockets.
pub(super) struct RedirectProgram {
    attached: Attachment,
    sockets: Arc<Map>,
    stamps: bool,
    interface: i32,
    /// Counters of the filter.
    kernel_filter_counters: Option<Counters>,
    /// XDP mode.
    pub(super) mode: XdpMode,
}

impl RedirectProgram {
    /// Attaches the program to an interface, for these sockets by queue.
    ///
    /// Without a wanted mode, tries native mode first, then generic mode.
    pub(super) fn attach(
        interface: i32,
        sockets: &[u32],
        stamps: bool,
        wanted: Option<XdpMode>,
    ) -> io::Result<Self> {
        let map = Map::new(MapKind::XdpSockets, sockets.len() as u32)?;
        for (queue, &socket) in sockets.iter().enumerate() {
            map.put(queue as u32, socket)?;
        }
        let program =
            Program::load(&text(map.descriptor(), stamps, Preprocessing::Nothing), LICENSE)?;
        let put = |mode| program.attach(interface, mode).map(|attached| (attached, mode));
        let (attached, mode) = match wanted {
            Some(mode) => put(mode),
            None => put(XdpMode::Native).or_else(|error| match error.raw_os_error() {
                Some(libc::EBUSY | libc::EEXIST | libc::EPERM | libc::ENODEV) => Err(error),
                _ => put(XdpMode::Generic),
            }),
        }?;
        Ok(RedirectProgram {
            attached,
            sockets: Arc::new(map),
            stamps,
            interface,
            kernel_filter_counters: None,
            mode,
        })
    }

    /// Replaces the program with one that has a filter.
    pub(super) fn filter(&mut self, entries: &[Entry]) -> io::Result<()> {
        let counters = Counters::new(filter::counters(entries.len()))?;
        let filter = filter::keeps_back(entries)
            .then_some(Preprocessing::Filter(entries, counters.descriptor()));
        self.replace(filter.unwrap_or(Preprocessing::Nothing))?;
        self.kernel_filter_counters = Some(counters);
        Ok(())
    }

    /// Replaces the program with one that begins with a fast path, or with none.
    pub(super) fn forward(&self, fast_path: Option<&FastPath>) -> io::Result<()> {
        self.replace(fast_path.map_or(Preprocessing::Nothing, Preprocessing::FastPath))
    }

    /// Returns what loads programs for this interface.
    pub(super) fn loader(&self) -> FastPathLoader {
        FastPathLoader { sockets: Arc::clone(&self.sockets), stamps: self.stamps }
    }

    /// Replaces the program with one that a loader of this interface loaded. Returns false if it is
    /// of an earlier interface.
    pub(super) fn put(&self, program: &Program, of: &FastPathLoader) -> io::Result<bool> {
        let is_ours = Arc::ptr_eq(&self.sockets, &of.sockets);
        if is_ours {
            self.attached.replace(program)?;
        }
        Ok(is_ours)
    }

    /// Returns the index of the interface.
    pub(super) fn interface(&self) -> i32 {
        self.interface
    }

    fn replace(&self, before: Preprocessing<'_>) -> io::Result<()> {
        let text = text(self.sockets.descriptor(), self.stamps, before);
        self.attached.replace(&Program::load(&text, LICENSE)?)
    }

    /// Returns the counts of frames that the filter dropped: per entry as far as the program has
    /// them, then of frames that match none.
    pub(super) fn kernel_filter_counters(&self) -> Vec<Count> {
        let read = self.kernel_filter_counters.as_ref().and_then(|counters| counters.read().ok());
        let pairs = read.unwrap_or_default();
        pairs.chunks_exact(2).map(|two| Count { frames: two[0], bytes: two[1] }).collect()
    }
}

/// License of the programs; they call no helper that requires the GPL.
const LICENSE: &std::ffi::CStr = c"Apache-2.0";

/// Appends instructions that decide about frames. Those that they do not decide go to the label.
/// R6 is the program's context, and R7 stays unchanged.
pub type FastPath = Box<dyn Fn(&mut Assembly, Label) + Send>;

/// Loads the program of a port with a fast path, which can take a while, on any thread.
#[derive(Debug, Clone)]
pub struct FastPathLoader {
    sockets: Arc<Map>,
    stamps: bool,
}

/// A loaded program with a fast path.
pub struct LoadedFastPath {
    pub(super) program: Program,
    pub(super) fast_path: FastPath,
    pub(super) of: FastPathLoader,
}

impl FastPathLoader {
    /// Loads the program.
    pub fn load(self, fast_path: FastPath) -> io::Result<LoadedFastPath> {
        let text =
            text(self.sockets.descriptor(), self.stamps, Preprocessing::FastPath(&fast_path));
        Ok(LoadedFastPath { program: Program::load(&text, LICENSE)?, fast_path, of: self })
    }
}

/// What the program does before it redirects frames to the sockets.
enum Preprocessing<'a> {
    Nothing,
    /// Drops frames by these entries, with the counters of this descriptor.
    Filter(&'a [Entry], i32),
    FastPath(&'a FastPath),
}

/// Builds the program.
fn text(sockets: i32, stamps: bool, before: Preprocessing<'_>) -> Vec<Instruction> {
    use Register::{R0, R1, R2, R3, R4, R6, R7};
    let mut program = Assembly::new();
    let [hand_over, wanted] = ["hand_over", "wanted"].map(|name| program.label(name));
    program.copy(R6, R1);
    if stamps {
        program.call(Helper::MonotonicNs);
        program.copy(R7, R0);
    }
    match before {
        Preprocessing::Nothing => {}
        Preprocessing::Filter(entries, counters) => {
            let down = program.label("down");
            filter::decide(&mut program, entries, counters, FilterDecision { up: wanted, down });
            program.place(down);
            program.set(R0, OTHERWISE);
            program.exit();
        }
        Preprocessing::FastPath(emit) => emit(&mut program, wanted),
    }
    program.place(wanted);
    if stamps {
        // A frame without space before it gets no timestamp.
        program.copy(R1, R6);
        program.set(R2, -STAMP_BYTES);
        program.call(Helper::AdjustMeta);
        program.jump_if(R0, Condition::NotEqual, 0, hand_over);
        program.load(Width::Word, R2, R6, DATA_META);
        program.load(Width::Word, R3, R6, DATA);
        // The bounds check that the verifier requires.
        program.copy(R4, R2);
        program.add(R4, STAMP_BYTES);
        program.jump_if_both(R4, Condition::Greater, R3, hand_over);
        program.store(Width::Double, R2, 0, R7);
    }
    program.place(hand_over);
    program.load(Width::Word, R2, R6, QUEUE);
    program.load_map(R1, sockets);
    program.set(R3, OTHERWISE);
    program.call(Helper::RedirectMap);
    program.exit();
    program.finish().expect("labels are placed after their jumps")
}
