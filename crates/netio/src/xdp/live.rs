//! A port that only sends: the kernel generates its frames, without any socket.
//!
//! - The port writes frames into a map shared with the kernel. One call then runs a program on a
//!   number of kernel-generated frames. The program copies a frame of the map into each, and
//!   redirects it to the interface (Linux `include/uapi/linux/bpf.h`, `BPF_PROG_TEST_RUN` with live
//!   frames, since Linux 5.18).
//! - The program writes every byte of a frame, because recycled pages keep the content of their
//!   last user.
//! - The program is also attached to the interface, where it passes incoming frames. The kernel
//!   runs an attached program immediately. Before it runs any other program, it synchronizes all
//!   cores.
//! - An interface accepts such frames if its driver supports this. A veth does while its peer polls
//!   (with an XDP program, or generic receive offload there).
//! - Frames that find no room are lost, and are counted only at the peer.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use ebpf::{
    Assembly, Attachment, Condition, Helper, Instruction, Map, MapKind, MappedArray, Program,
    Register, Width, XdpMode,
};
use os::sys;
use packet::batch_copy::Copies;
use packet::frame::Batch;
use packet::time::{Clock, Nanos};

use crate::interface;
use crate::link::Link;
use crate::port::{Port, PortCounters, PortDrop, PortError, PortFacts};

/// Interval of interface checks.
const CHECK_INTERVAL: Nanos = Nanos::from_millis(10);

/// Frames in one call.
const CALL_FRAMES: usize = 256;

/// Bytes of the longest frame.
const FRAME_BYTES_MAX: usize = 1514;

/// Result for a frame that cannot be sent (`XDP_DROP`).
const DROP: i32 = 1;

/// Result for a frame that arrives on the interface (`XDP_PASS`).
const PASS: i32 = 2;

/// Offset in `struct xdp_md` of the receiving interface; kernel-generated frames have the loopback
/// interface.
const COMES_BY: i16 = 12;

/// Bytes of an Ethernet header without tags, the shortest frame.
const HEADER_BYTES: usize = 14;

/// Offset of the bytes of a frame in its map value; its length is before them.
const BYTES_AT: usize = 8;

/// Bytes of a map value.
const VALUE_BYTES: usize = 1528;

/// An interface that sends kernel-generated frames.
pub struct LivePort {
    facts: PortFacts,
    program: Program,
    /// The first word is the number of frames generated in a call.
    cell: MappedArray,
    frames: MappedArray,
    _interfaces: Map,
    _attached: Attachment,
    counters: PortCounters,
    blank: [u8; FRAME_BYTES_MAX],
    /// A socket for queries about the interface, because the kernel does not report what happens to
    /// the frames.
    asking: OwnedFd,
    index: i32,
    check_at: Nanos,
}

impl LivePort {
    /// Opens an interface of the calling thread's network namespace; it must be up.
    ///
    /// Requires CAP_BPF and CAP_NET_ADMIN there, to load programs.
    pub fn open(name: &str) -> Result<Self, PortError> {
        let interface = interface::look_up(name)?;
        if !interface.up {
            return Err(PortError::InterfaceDown(name.to_owned()));
        }
        let failed = |doing| move |error| interface::system(doing, name, error);
        let asking = sys::socket(libc::AF_INET, libc::SOCK_DGRAM, 0);
        let asking = asking.map_err(failed("read the settings of"))?;
        let interfaces = Map::new(MapKind::Devices, 1).map_err(failed("create a map for"))?;
        let put = interfaces.put(0, interface.index as u32);
        put.map_err(failed("prepare to send live frames on"))?;
        let cell = MappedArray::new(1, 8).map_err(failed("create a map for"))?;
        let frames =
            MappedArray::new(CALL_FRAMES, VALUE_BYTES).map_err(failed("create a map for"))?;
        let maps = [&cell, &frames].map(MappedArray::descriptor);
        let text = text(maps, interfaces.descriptor(), interface.index);
        let program = Program::load(&text, c"Apache-2.0")
            .map_err(failed("load a program that sends live frames on"))?;
        let attached = program.attach(interface.index, XdpMode::Native);
        let attached = attached.map_err(failed("attach an XDP program to"))?;
        let facts = PortFacts {
            name: name.to_owned(),
            kind: "live",
            mac: interface.mac,
            frame_bytes_max: (interface.mtu + HEADER_BYTES).min(FRAME_BYTES_MAX),
            stamps: Clock::UserSpace,
        };
        let (counters, blank) = (PortCounters::default(), [0; FRAME_BYTES_MAX]);
        Ok(LivePort {
            facts,
            program,
            cell,
            frames,
            _interfaces: interfaces,
            _attached: attached,
            counters,
            blank,
            asking,
            index: interface.index,
            check_at: Nanos::ZERO,
        })
    }

    /// Sends the first frames, as many as one call takes. Returns how many are done.
    fn send<'a>(
        &mut self,
        frames: impl Iterator<Item = &'a [u8]>,
        now: Nanos,
    ) -> Result<usize, PortError> {
        if now >= self.check_at {
            interface::check(self.asking.as_raw_fd(), &self.facts.name, self.index)?;
            self.check_at = now.saturating_add(CHECK_INTERVAL);
        }
        let (mut done, mut laid) = (0, 0);
        for bytes in frames.take(CALL_FRAMES) {
            done += 1;
            if bytes.len() > self.facts.frame_bytes_max {
                self.counters.lose(PortDrop::TooLong, 1);
                continue;
            }
            if bytes.len() < HEADER_BYTES {
                self.counters.lose(PortDrop::TransmitRefused, 1);
                continue;
            }
            let value = self.frames.value_mut(laid);
            value[..4].copy_from_slice(&(bytes.len() as u32).to_ne_bytes());
            value[BYTES_AT..BYTES_AT + bytes.len()].copy_from_slice(bytes);
            laid += 1;
        }
        if laid == 0 {
            return Ok(done);
        }
        self.cell.value_mut(0).fill(0);
        let met = self.program.run_on_live_frames(&self.blank, laid as u32);
        let made = (self.cell.word(0) as usize).min(laid);
        if let (0, Err(error)) = (made, met) {
            return Err(interface::system("send live frames on", &self.facts.name, error));
        }
        // A signal may have ended the call: the rest of these frames count as rejected.
        self.counters.lose(PortDrop::TransmitRefused, (laid - made) as u64);
        self.counters.tx_frames += made as u64;
        // Each frame in the map begins with its length.
        self.counters.tx_bytes +=
            (0..made).map(|place| u64::from(self.frames.word(place))).sum::<u64>();
        Ok(done)
    }
}

/// Checks whether the kernel generates frames for programs; sends none.
pub fn probe() -> io::Result<()> {
    let mut program = Assembly::new();
    program.set(Register::R0, DROP);
    program.exit();
    let text = program.finish().expect("the program has no jumps");
    Program::load(&text, c"Apache-2.0")?.run_on_live_frames(&[0; 64], 1)
}

/// Builds the program: it redirects the next frame of the map to the interface, and passes incoming
/// frames.
fn text([cell, frames]: [i32; 2], interfaces: i32, interface: i32) -> Vec<Instruction> {
    use Register::{R0, R1, R2, R3, R4, R6, R7, R8, R10};
    let mut program = Assembly::new();
    let [drop, made] = ["drop", "made"].map(|name| program.label(name));
    program.copy(R6, R1);
    program.load(Width::Word, R0, R6, COMES_BY);
    program.jump_if(R0, Condition::NotEqual, interface, made);
    program.set(R0, PASS);
    program.exit();
    program.place(made);
    program.load_map_value(R1, cell, 0);
    program.load(Width::Word, R0, R1, 0);
    program.store(Width::Word, R10, -4, R0);
    program.add(R0, 1);
    program.store(Width::Word, R1, 0, R0);
    program.load_map(R1, frames);
    program.copy(R2, R10);
    program.add(R2, -4);
    program.call(Helper::MapLookUp);
    program.jump_if(R0, Condition::Equal, 0, drop);
    program.copy(R7, R0);
    program.load(Width::Word, R8, R7, 0);
    program.jump_if(R8, Condition::Greater, FRAME_BYTES_MAX as i32, drop);
    // The verifier requires a check that the length is not zero.
    program.jump_if(R8, Condition::Equal, 0, drop);
    program.copy(R1, R6);
    program.copy(R2, R8);
    program.add(R2, -(FRAME_BYTES_MAX as i32));
    program.call(Helper::AdjustTail);
    program.jump_if(R0, Condition::NotEqual, 0, drop);
    program.copy(R1, R6);
    program.set(R2, 0);
    program.copy(R3, R7);
    program.add(R3, BYTES_AT as i32);
    program.copy(R4, R8);
    program.call(Helper::StoreBytes);
    program.jump_if(R0, Condition::NotEqual, 0, drop);
    program.load_map(R1, interfaces);
    program.set(R2, 0);
    program.set(R3, DROP);
    program.call(Helper::RedirectMap);
    program.exit();
    program.place(drop);
    program.set(R0, DROP);
    program.exit();
    program.finish().expect("the label is placed after its jumps")
}

impl Port for LivePort {
    fn facts(&self) -> &PortFacts {
        &self.facts
    }

    fn receive(&mut self, _batch: &mut Batch, _now: Nanos) -> Result<usize, PortError> {
        Ok(0)
    }

    fn transmit(&mut self, batch: &mut Batch, now: Nanos) -> Result<usize, PortError> {
        self.send(batch.frames().iter().map(|frame| frame.bytes()), now)
    }

    fn receive_copies(&mut self, copies: &mut Copies, _now: Nanos) -> Result<usize, PortError> {
        copies.clear();
        Ok(0)
    }

    fn transmit_copies(&mut self, copies: &mut Copies, now: Nanos) -> Result<usize, PortError> {
        self.send(copies.frames(), now)
    }

    fn counters(&mut self) -> PortCounters {
        self.counters.clone()
    }

    fn has_link(&self) -> bool {
        interface::has_link(self.asking.as_raw_fd(), &self.facts.name)
    }

    fn link(&self) -> Link {
        interface::link(self.asking.as_raw_fd(), &self.facts.name)
    }
}
