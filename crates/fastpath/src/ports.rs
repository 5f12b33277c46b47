//! The ports of a fast path: interfaces to which frames are redirected, and counters.
//!
//! A forwarded frame is counted once, with its ingress and egress port, in memory of the core that
//! runs the program. Port counters and totals are sums.

use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};

use Register::{R0, R1, R2, R3, R6, R8, R10};
use ebpf::{
    Assembly, Condition, Helper, Label, Layout, Map, MapKind, MappedArray, Register, Width,
    possible_cores,
};
use packet::frame::PortNo;
use packet::header::ethernet::{self, Mac};

use crate::unsupported;

/// Maximum number of ports of a fast path.
pub const PORTS_MAX: usize = 64;

/// Result of a redirected frame (`XDP_REDIRECT`).
pub(crate) const REDIRECTED: i32 = 4;

/// Offset of the start of the frame in `struct xdp_md`.
pub(crate) const DATA: i16 = 0;

/// Offset of its end.
pub(crate) const DATA_END: i16 = 4;

/// Error for other ports.
const NO_SUCH_PORT: &str = "no such port in the fast path";

/// Bytes of a frame and byte counter.
const COUNT_BYTES: usize = 16;

/// Offset of the length of the longest frame that all ports carry, after the facts of all ports.
const LIMIT_AT: usize = PORTS_MAX * PORT_BYTES;

/// Bytes of the facts of a port, a power of two: its MAC address, and its MTU.
const PORT_BYTES: usize = 16;

/// Binary logarithm of the bytes of a port.
pub(crate) const PORT_SHIFT: i32 = 4;

/// Offset of the MTU in the facts of a port.
pub(crate) const MTU_AT: i16 = 8;

// Stack offsets that all programs use.
/// Index of the egress port, 8 bytes.
pub(crate) const TO: i16 = -8;
/// Length of the frame, 8 bytes.
pub(crate) const BYTES: i16 = -16;
/// Key of the counters, 4 bytes.
const PAIR: i16 = -24;
/// Lowest offset in use.
pub(crate) const STACK: i16 = -24;

/// Frames that the programs forwarded from one port to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PairTraffic {
    /// Ingress port.
    pub from: PortNo,
    /// Egress port.
    pub to: PortNo,
    /// Forwarded frames.
    pub frames: u64,
    /// Bytes of these frames, without frame check sequence.
    pub bytes: u64,
}

/// The ports.
#[derive(Debug)]
pub(crate) struct Ports {
    numbers: Vec<PortNo>,
    interfaces: Map,
    counters: Map,
    facts: MappedArray,
    /// Longest frame of each port.
    limits: Mutex<Vec<usize>>,
    cores: usize,
}

impl Ports {
    pub(crate) fn new(numbers: &[PortNo]) -> io::Result<Ports> {
        if cfg!(target_endian = "big") {
            return Err(unsupported("the fast path requires a little-endian processor"));
        }
        if numbers.len() > PORTS_MAX {
            return Err(unsupported("the fast path supports at most 64 ports"));
        }
        let pairs = (numbers.len() * numbers.len()).max(1) as u32;
        let layout = Layout { key_bytes: 4, value_bytes: COUNT_BYTES, entries: pairs };
        Ok(Ports {
            numbers: numbers.to_vec(),
            interfaces: Map::new(MapKind::Devices, numbers.len().max(1) as u32)?,
            counters: Map::with_layout(MapKind::PerCoreArray, layout)?,
            facts: MappedArray::new(1, LIMIT_AT + 8)?,
            limits: Mutex::new(vec![0; numbers.len()]),
            cores: possible_cores()?,
        })
    }

    /// Returns the numbers of the ports, by index.
    pub(crate) fn numbers(&self) -> &[PortNo] {
        &self.numbers
    }

    /// Returns the index of a port in the maps.
    pub(crate) fn index(&self, port: PortNo) -> Option<usize> {
        self.numbers.iter().position(|number| *number == port)
    }

    pub(crate) fn set_frame_bytes_max(&self, port: PortNo, frame_bytes_max: usize) {
        let mut limits = self.limits.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = self.index(port) {
            limits[index] = frame_bytes_max;
        }
        let limit = limits.iter().min().copied().unwrap_or_default();
        self.facts.double_at(LIMIT_AT).store(limit as u64, Relaxed);
    }

    pub(crate) fn connect(&self, port: PortNo, interface: u32) -> io::Result<()> {
        let index = self.index(port).ok_or_else(|| unsupported(NO_SUCH_PORT))?;
        self.interfaces.put(index as u32, interface)
    }

    pub(crate) fn disconnect(&self, port: PortNo) -> io::Result<()> {
        let index = self.index(port).ok_or_else(|| unsupported(NO_SUCH_PORT))?;
        self.interfaces.delete(&(index as u32).to_ne_bytes()).map(drop)
    }

    /// Sets the MAC address and MTU of a port of a router.
    pub(crate) fn set_facts(&self, index: usize, mac: Mac, mtu: u16) {
        self.facts.double_at(index * PORT_BYTES).store(mac_word(mac), Relaxed);
        self.facts.double_at(index * PORT_BYTES + MTU_AT as usize).store(mtu.into(), Relaxed);
    }

    pub(crate) fn traffic(&self) -> io::Result<Vec<PairTraffic>> {
        let count = self.numbers.len();
        // Room for one more than there are, so that one call reaches the end.
        let bytes_each = COUNT_BYTES * self.cores;
        let mut keys = vec![0; (count * count + 1) * 4];
        let mut values = vec![0; (count * count + 1) * bytes_each];
        let found = self.counters.look_up_batch(&mut None, &mut keys, &mut values)?;
        let mut traffic = Vec::new();
        for (place, value) in values.chunks(bytes_each).take(found).enumerate() {
            let sum = |at: usize| -> u64 {
                let of_core =
                    |core: &[u8]| u64::from_ne_bytes(core[at..at + 8].try_into().expect("8 bytes"));
                value.chunks(COUNT_BYTES).map(of_core).sum()
            };
            let (frames, bytes) = (sum(0), sum(8));
            if frames > 0 {
                let (from, to) = (self.numbers[place / count], self.numbers[place % count]);
                traffic.push(PairTraffic { from, to, frames, bytes });
            }
        }
        Ok(traffic)
    }

    /// Appends a check of the frame's length: R8 becomes the start of the frame, R3 its end, and R0
    /// its length, which is also stored. A frame of less than `bytes_min` bytes, or one that is too
    /// long for a port, escapes. Uses R1.
    pub(crate) fn emit_bounds(&self, program: &mut Assembly, bytes_min: i32, escape: Label) {
        program.load(Width::Word, R8, R6, DATA);
        program.load(Width::Word, R3, R6, DATA_END);
        program.copy(R1, R8);
        program.add(R1, bytes_min);
        program.jump_if_both(R1, Condition::Greater, R3, escape);
        program.copy(R0, R3);
        program.subtract(R0, R8);
        program.store(Width::Double, R10, BYTES, R0);
        self.emit_limit(program, R1);
        program.jump_if_both(R0, Condition::Greater, R1, escape);
    }

    /// Sets a register to the length of the longest frame that all ports carry, without a tag.
    pub(crate) fn emit_limit(&self, program: &mut Assembly, into: Register) {
        program.load_map_value(into, self.facts.descriptor(), LIMIT_AT as i32);
        program.load(Width::Double, into, into, 0);
    }

    /// Sets a register to the address of the facts of all ports.
    pub(crate) fn emit_facts(&self, program: &mut Assembly, into: Register) {
        program.load_map_value(into, self.facts.descriptor(), 0);
    }

    /// Appends the redirection to the port whose index is on the stack. The frame escapes if the
    /// port has no interface. Uses R0 to R5.
    pub(crate) fn emit_redirect(&self, program: &mut Assembly, escape: Label) {
        program.load(Width::Double, R2, R10, TO);
        self.emit_redirect_by(program, escape);
    }

    /// Appends the redirection to the port with this index, like [`Ports::emit_redirect`].
    pub(crate) fn emit_redirect_to(&self, to: usize, program: &mut Assembly, escape: Label) {
        program.set(R2, to as i32);
        self.emit_redirect_by(program, escape);
    }

    fn emit_redirect_by(&self, program: &mut Assembly, escape: Label) {
        program.load_map(R1, self.interfaces.descriptor());
        program.set(R3, 0);
        program.call(Helper::RedirectMap);
        program.jump_if(R0, Condition::NotEqual, REDIRECTED, escape);
    }

    /// Appends the end of a program for a redirected frame, which is counted.
    pub(crate) fn emit_end(&self, from: usize, program: &mut Assembly) {
        let end = program.label("end");
        program.load(Width::Double, R1, R10, TO);
        program.add(R1, (from * self.numbers.len()) as i32);
        program.store(Width::Word, R10, PAIR, R1);
        program.copy(R2, R10);
        program.add(R2, PAIR.into());
        program.load_map(R1, self.counters.descriptor());
        program.call(Helper::MapLookUp);
        program.jump_if(R0, Condition::Equal, 0, end);
        program.load(Width::Double, R1, R0, 0);
        program.add(R1, 1);
        program.store(Width::Double, R0, 0, R1);
        program.load(Width::Double, R1, R0, 8);
        program.load(Width::Double, R2, R10, BYTES);
        program.add_register(R1, R2);
        program.store(Width::Double, R0, 8, R1);
        program.place(end);
        program.set(R0, REDIRECTED);
        program.exit();
    }
}

/// Returns a MAC address as the lower 48 bits of a word, in memory order.
pub(crate) fn mac_word(mac: Mac) -> u64 {
    let [a, b, c, d, e, f] = mac;
    u64::from_le_bytes([a, b, c, d, e, f, 0, 0])
}

/// Bytes of an Ethernet header without tags.
pub(crate) const HEADER_BYTES: i32 = ethernet::HEADER_BYTES as i32;
