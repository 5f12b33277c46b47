//! Ethernet OAM (IEEE 802.1Q clause 21, ITU-T Y.1731 clause 9): constants of its frames, and the
//! loopback message.
//!
//! ```text
//!  0                   1                   2                   3
//! |level|version  |    opcode     |     flags     |  TLVs begin   |   the common header
//! |                     transaction identifier                    |   of loopback
//! |   TLV type    |          TLV length           |   data ...        and an end TLV, one zero byte
//! ```
//!
//! This module contains only the definitions that both sides of a measurement share. The OAM agent
//! implements the other messages.

use super::put_u16;

/// EtherType of OAM frames.
pub const ETHER_TYPE: u16 = 0x8902;
/// Bytes of the common header.
pub const COMMON_BYTES: usize = 4;
/// Offset of the opcode in the common header.
pub const OPCODE_AT: usize = 1;
/// Bit position of the level: the three upper bits.
pub const LEVEL_SHIFT: u32 = 5;
/// Bytes of a loopback message up to its data. The first data byte is a zero, so that the following
/// data starts at an even offset.
pub const LOOPBACK_BYTES: usize = COMMON_BYTES + 4 + 3 + 1;
/// Bytes of the end TLV.
pub const END_BYTES: usize = 1;

/// Opcodes (ITU-T Y.1731 table 9-1).
pub mod op {
    /// Continuity check message.
    pub const CCM: u8 = 1;
    /// Loopback reply.
    pub const LBR: u8 = 2;
    /// Loopback message.
    pub const LBM: u8 = 3;
    /// Linktrace reply.
    pub const LTR: u8 = 4;
    /// Linktrace message.
    pub const LTM: u8 = 5;
    /// Delay measurement reply.
    pub const DMR: u8 = 46;
    /// Delay measurement message.
    pub const DMM: u8 = 47;
}

/// Types of TLVs (IEEE 802.1Q table 21-6).
pub mod tlv {
    /// End TLV.
    pub const END: u8 = 0;
    /// Data that is sent back.
    pub const DATA: u8 = 3;
    /// Ingress port of a linktrace message.
    pub const REPLY_INGRESS: u8 = 5;
    /// Egress port of a linktrace message.
    pub const REPLY_EGRESS: u8 = 6;
    /// Identifier of the last relay of a linktrace message.
    pub const LTM_EGRESS: u8 = 7;
    /// Identifiers of the previous and the current relay.
    pub const LTR_EGRESS: u8 = 8;
}

/// Builds a loopback message or reply of this length, from the common header to the end TLV, with
/// zeros as data. The minimum is [`LOOPBACK_BYTES`] plus the end TLV.
pub fn loopback(level: u8, opcode: u8, bytes: usize) -> Vec<u8> {
    const DATA_AT: usize = COMMON_BYTES + 4;
    let bytes = bytes.max(LOOPBACK_BYTES + END_BYTES);
    let mut message = vec![0; bytes];
    message[..COMMON_BYTES].copy_from_slice(&[level << LEVEL_SHIFT, opcode, 0, 4]);
    message[DATA_AT] = tlv::DATA;
    put_u16(&mut message, DATA_AT + 1, (bytes - DATA_AT - 3 - END_BYTES) as u16);
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loopback_message_has_the_layout_of_the_standard() {
        // Level 5, LBM, no flags, TLVs after the transaction identifier; DATA of 5 bytes; END.
        let wanted = [0xa0, 3, 0, 4, 0, 0, 0, 0, 3, 0, 5, 0, 0, 0, 0, 0, 0];
        assert_eq!(loopback(5, op::LBM, 17), wanted);
        assert_eq!(loopback(0, op::LBR, 0).len(), LOOPBACK_BYTES + END_BYTES, "no shorter");
    }
}
