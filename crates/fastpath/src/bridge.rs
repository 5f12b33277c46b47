//! A learning bridge in the kernel.
//!
//! A frame is forwarded if its source address is known at its ingress port and its destination
//! address at another port, and neither has expired. The program stores the time at which it saw a
//! source. All other frames escape: for learning, moves, flooding, and filtered frames.

use std::io;
use std::sync::Arc;

use Register::{R0, R1, R3, R5, R8, R10};
use dataplane::bridge::{Bridge, Learning};
use dataplane::mac_table::MacMirror;
use ebpf::{Assembly, Condition, Helper, Label, Operation, Register, Width};
use packet::frame::PortNo;

use crate::addresses::{AddressMirror, Addresses, PORT_MASK};
use crate::exact_table::TAKEN;
use crate::ports::{HEADER_BYTES, Ports, STACK};
use crate::{Entries, checksum};

// Stack offsets, all of 8 bytes.
/// Time in nanoseconds.
const NOW: i16 = STACK - 8;
/// Upper bits of the keys of the frame's addresses.
const TAG: i16 = STACK - 16;

/// The maps of a bridge.
#[derive(Debug)]
pub(crate) struct BridgePath {
    ports: Arc<Ports>,
    addresses: Arc<Addresses>,
    learning: Learning,
}

impl BridgePath {
    pub(crate) fn new(bridge: &Bridge, ports: Arc<Ports>, seed: u64) -> io::Result<BridgePath> {
        let of_ports = Some(Arc::clone(&ports));
        let addresses = Addresses::new(bridge.table.entries_max(), seed, of_ports)?;
        Ok(BridgePath { ports, addresses: Arc::new(addresses), learning: bridge.learning() })
    }

    pub(crate) fn mirror(&self) -> Box<dyn MacMirror> {
        Box::new(AddressMirror(Arc::clone(&self.addresses)))
    }

    pub(crate) fn entries(&self) -> Entries {
        Entries {
            macs: self.addresses.len(),
            others_without_room: self.addresses.without_room(),
            ..Entries::default()
        }
    }

    /// Appends the program of a port.
    pub(crate) fn emit(
        &self,
        port: PortNo,
        is_partial: bool,
        program: &mut Assembly,
        escape: Label,
    ) {
        let own = self.ports.index(port).expect("the port is one of the fast path");
        program.call(Helper::CoarseNs);
        program.store(Width::Double, R10, NOW, R0);
        self.ports.emit_bounds(program, HEADER_BYTES, escape);
        if is_partial {
            checksum::emit_partial(program, escape);
        }
        self.emit_tag(program);

        self.emit_key(program, 6);
        self.addresses.emit_source(own as u32, (R10, NOW), program, escape);
        self.emit_key(program, 0);
        self.addresses.emit_destination((R10, NOW), program, escape);
        program.and_word(R5, PORT_MASK);
        program.jump_if(R5, Condition::Equal, own as i32, escape);
        program.store(Width::Double, R10, crate::ports::TO, R5);
        self.ports.emit_redirect(program, escape);
        self.ports.emit_end(own, program);
    }

    /// Stores the bits of keys that do not depend on the address: those of the outermost tag, if
    /// VLANs have separate addresses.
    fn emit_tag(&self, program: &mut Assembly) {
        program.set_wide(R0, TAKEN);
        if self.learning == Learning::PerVlan {
            let untagged = program.label("untagged");
            program.copy(R1, R8);
            program.add(R1, HEADER_BYTES + 4);
            program.jump_if_both(R1, Condition::Greater, R3, untagged);
            program.load(Width::Half, R1, R8, 12);
            program.network_half(R1);
            program.jump_if(R1, Condition::NotEqual, 0x8100, untagged);
            program.load(Width::Half, R1, R8, 14);
            program.network_half(R1);
            program.and_word(R1, 0x0fff);
            program.shift_left(R1, 48);
            program.compute_both(R0, Operation::Or, R1);
            program.place(untagged);
        }
        program.store(Width::Double, R10, TAG, R0);
    }

    /// Sets R1 to the key of the address at this offset. Uses R0.
    fn emit_key(&self, program: &mut Assembly, at: i16) {
        program.load(Width::Double, R1, R8, at);
        program.shift_left(R1, 16);
        program.compute(R1, Operation::ShiftRight, 16);
        program.load(Width::Double, R0, R10, TAG);
        program.compute_both(R1, Operation::Or, R0);
    }
}
