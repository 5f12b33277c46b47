//! The program at the interface: it hands each frame to the socket of its receive queue, and where there
//! is none, or a filter keeps the frame back, to the kernel's network stack.
//!
//! Source: Linux `include/uapi/linux/bpf.h` (`struct xdp_md`, `bpf_redirect_map`), and for stamps
//! `Documentation/networking/xdp-rx-metadata.rst`: what a program puts before a frame, the socket's
//! owner finds there. A frame's time is taken before anything else is done about it.

use std::io;

use packet::filter::Entry;
use packet::traffic::Count;

use super::filter::{self, Ways};
use crate::bpf::instruction::{Assembly, Condition, Helper, Instruction, Register, Width};
use crate::bpf::map::{Counters, Kind, Map};
use crate::bpf::program::{Attached, Mode, Program};

/// In `struct xdp_md`: where the frame begins, where what stands before it does, and the queue.
const DATA: i16 = 0;
const DATA_META: i16 = 8;
const QUEUE: i16 = 16;

/// Bytes of a stamp before a frame.
const STAMP_BYTES: i32 = 8;

/// What becomes of other frames: the network stack gets them (`XDP_PASS`).
const OTHERWISE: i32 = 2;

/// The program at an interface, and its table of sockets.
pub(super) struct Redirect {
    attached: Attached,
    sockets: Map,
    stamps: bool,
    /// What a filter kept back.
    kept_back: Option<Counters>,
    /// Where it is.
    pub(super) mode: Mode,
}

impl Redirect {
    /// Puts the program at an interface, to serve these sockets by queue: at the wanted place, or
    /// in the driver and where that cannot be behind it.
    pub(super) fn attach(
        interface: i32,
        sockets: &[u32],
        stamps: bool,
        wanted: Option<Mode>,
    ) -> io::Result<Self> {
        let map = Map::new(Kind::XdpSockets, sockets.len() as u32)?;
        for (queue, &socket) in sockets.iter().enumerate() {
            map.put(queue as u32, socket)?;
        }
        let program = Program::load(&text(map.descriptor(), stamps, None), LICENSE)?;
        let put = |mode| program.attach(interface, mode).map(|attached| (attached, mode));
        let (attached, mode) = match wanted {
            Some(mode) => put(mode),
            None => put(Mode::Native).or_else(|error| match error.raw_os_error() {
                Some(libc::EBUSY | libc::EEXIST | libc::EPERM | libc::ENODEV) => Err(error),
                _ => put(Mode::Generic),
            }),
        }?;
        Ok(Redirect { attached, sockets: map, stamps, kept_back: None, mode })
    }

    /// Puts a program with a filter in the program's place.
    pub(super) fn filter(&mut self, entries: &[Entry]) -> io::Result<()> {
        let counters = Counters::new(filter::counters(entries.len()))?;
        let filter = filter::keeps_back(entries).then_some((entries, counters.descriptor()));
        let text = text(self.sockets.descriptor(), self.stamps, filter);
        self.attached.replace(&Program::load(&text, LICENSE)?)?;
        self.kept_back = Some(counters);
        Ok(())
    }

    /// What the filter kept back: by entry, as far as it has them, and last what matches none.
    pub(super) fn kept_back(&self) -> Vec<Count> {
        let read = self.kept_back.as_ref().and_then(|counters| counters.read().ok());
        let pairs = read.unwrap_or_default();
        pairs.chunks_exact(2).map(|two| Count { frames: two[0], bytes: two[1] }).collect()
    }
}

/// The terms of the programs' text; no helper that they call is for programs under the GPL only.
const LICENSE: &std::ffi::CStr = c"Apache-2.0";

/// The program's instructions, with a filter's entries and the descriptor of its counters if it is to have
/// one that keeps something back.
fn text(sockets: i32, stamps: bool, filter: Option<(&[Entry], i32)>) -> Vec<Instruction> {
    use Register::{R0, R1, R2, R3, R4, R6, R7};
    let mut program = Assembly::new();
    let (hand_over, wanted) = (program.label(), program.label());
    program.copy(R6, R1);
    if stamps {
        program.call(Helper::MonotonicNs);
        program.copy(R7, R0);
    }
    if let Some((entries, counters)) = filter {
        let down = program.label();
        filter::decide(&mut program, entries, counters, Ways { up: wanted, down });
        program.place(down);
        program.set(R0, OTHERWISE);
        program.exit();
    }
    program.place(wanted);
    if stamps {
        // A frame that has no room before it goes without.
        program.copy(R1, R6);
        program.set(R2, -STAMP_BYTES);
        program.call(Helper::AdjustMeta);
        program.jump_if(R0, Condition::NotEqual, 0, hand_over);
        program.load(Width::Word, R2, R6, DATA_META);
        program.load(Width::Word, R3, R6, DATA);
        // As the kernel wants to have it shown that the bytes are there.
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
    program.finish().expect("labels are placed behind their jumps")
}
