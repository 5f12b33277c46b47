//! The program at the interface: it hands each frame to the socket of its receive queue, and where
//! there is none to the kernel's network stack.
//!
//! Source: Linux `include/uapi/linux/bpf.h` (`struct xdp_md`, `bpf_redirect_map`), and for stamps
//! `Documentation/networking/xdp-rx-metadata.rst`: what a program puts before a frame, the socket's
//! owner finds there.

use std::io;

use crate::bpf::instruction::{Assembly, Condition, Helper, Instruction, Register, Width};
use crate::bpf::map::{Kind, Map};
use crate::bpf::program::{Attached, Mode, Program};

/// In `struct xdp_md`: where the frame begins, where what stands before it does, and the queue.
const DATA: i16 = 0;
const DATA_META: i16 = 8;
const QUEUE: i16 = 16;

/// Bytes of a stamp before a frame.
const STAMP_BYTES: i32 = 8;

/// What becomes of a frame whose queue has no socket: the network stack gets it (`XDP_PASS`).
const OTHERWISE: i32 = 2;

/// The program at an interface, and its table of sockets.
pub(super) struct Redirect {
    _attached: Attached,
    _sockets: Map,
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
        let program = Program::load(&text(map.descriptor(), stamps), c"Apache-2.0")?;
        let put = |mode| program.attach(interface, mode).map(|attached| (attached, mode));
        let (attached, mode) = match wanted {
            Some(mode) => put(mode),
            None => put(Mode::Native).or_else(|error| match error.raw_os_error() {
                Some(libc::EBUSY | libc::EEXIST | libc::EPERM | libc::ENODEV) => Err(error),
                _ => put(Mode::Generic),
            }),
        }?;
        Ok(Redirect { _attached: attached, _sockets: map, mode })
    }
}

/// The program's instructions.
fn text(map: i32, stamps: bool) -> Vec<Instruction> {
    use Register::{R0, R1, R2, R3, R4, R6, R7};
    let mut program = Assembly::new();
    let hand_over = program.label();
    program.copy(R6, R1);
    if stamps {
        // A frame that has no room before it goes without.
        program.set(R2, -STAMP_BYTES);
        program.call(Helper::AdjustMeta);
        program.jump_if(R0, Condition::NotEqual, 0, hand_over);
        program.call(Helper::MonotonicNs);
        program.copy(R7, R0);
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
    program.load_map(R1, map);
    program.set(R3, OTHERWISE);
    program.call(Helper::RedirectMap);
    program.exit();
    program.finish().expect("the label is placed behind its jumps")
}
