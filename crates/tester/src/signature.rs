//! Signature of test frames: stream id, sequence number and send time.
//!
//! ```text
//!  0        2                          10                18        bytes after the UDP header
//!  +--------+--------------------------+-----------------+-------+
//!  | stream |         sequence         |    sent (48)    | check |
//!  +--------+--------------------------+-----------------+-------+
//!           phase 1 | epoch 15 | number 48 bits
//! ```
//!
//! All fields are big endian. `sent` is the low 48 bits of a time in nanoseconds (it wraps after 78
//! hours). `check` mixes the other fields with this run's secret key. So another run's frames are
//! foreign, and a damaged signature is rejected.
//!
//! - In a frame that the tester builds, the checksum that covers the signature is computed with it.
//! - In a frame from a capture file, the signature and two more bytes replace payload. These two
//!   bytes preserve the ones' complement sum of all twenty. So any Internet checksum that covers
//!   them stays valid, at any offset and alignment.

use packet::checksum::InternetChecksum;
use packet::header::put_u16;
use packet::time::Nanos;

use crate::mix::mix;

/// Length of a signature in bytes.
pub const SIGNATURE_BYTES: usize = 18;

/// Offset of the sequence, which send time and check follow, in a signature.
pub const SEQUENCE_AT: usize = 2;

/// Length of a signature and its compensating word in bytes.
pub const NEUTRAL_BYTES: usize = SIGNATURE_BYTES + 2;

/// Maximum sequence number of a stream in one phase: sequence numbers have 48 bits.
pub const NUMBER_MAX: u64 = (1 << 48) - 1;

/// Number of trials before epochs repeat.
pub const EPOCHS: u16 = 1 << 15;

const SENT_MASK: u64 = (1 << 48) - 1;

/// Fields of a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signature {
    /// Stream id.
    pub stream: u16,
    /// Sequence of the frame.
    pub sequence: Sequence,
    /// Send time: the low 48 bits of nanoseconds.
    pub sent: SendTime,
}

/// Identifies a frame of a stream: its trial, its phase and its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sequence {
    /// Whether the frame belongs to the warm-up.
    pub is_warmup: bool,
    /// Number of the trial, modulo [`EPOCHS`].
    pub epoch: u16,
    /// Index in the schedule, from 0.
    pub number: u64,
}

/// Send time in a signature: 48 bits of nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SendTime(u64);

impl Sequence {
    /// Returns the 64 bits in the frame.
    #[inline]
    pub fn bits(self) -> u64 {
        (self.is_warmup as u64) << 63
            | ((self.epoch % EPOCHS) as u64) << 48
            | self.number & NUMBER_MAX
    }

    /// Decodes the 64 bits in a frame.
    #[inline]
    pub fn from_bits(bits: u64) -> Self {
        let epoch = (bits >> 48) as u16 & (EPOCHS - 1);
        Sequence { is_warmup: bits >> 63 == 1, epoch, number: bits & NUMBER_MAX }
    }
}

impl SendTime {
    /// Encodes the send time `at`.
    #[inline]
    pub fn new(at: Nanos) -> Self {
        SendTime(at.0 & SENT_MASK)
    }

    /// Returns the signed time in nanoseconds from this send time to `at`.
    ///
    /// Correct if the two are less than 39 hours apart. Negative if two clocks disagree.
    #[inline]
    pub fn until(self, at: Nanos) -> i64 {
        let span = at.0.wrapping_sub(self.0) & SENT_MASK;
        ((span << 16) as i64) >> 16
    }
}

impl Signature {
    /// Writes the signature and its check to the first [`SIGNATURE_BYTES`] of `bytes`.
    ///
    /// Returns the sum of its words, for checksums that cover it.
    #[inline]
    pub fn write(&self, key: u64, bytes: &mut [u8]) -> InternetChecksum {
        let bytes = &mut bytes[..SIGNATURE_BYTES];
        let sequence = self.sequence.bits();
        bytes[0..2].copy_from_slice(&self.stream.to_be_bytes());
        bytes[2..10].copy_from_slice(&sequence.to_be_bytes());
        let tail = self.sent.0 << 16 | check(key, self.stream, sequence, self.sent.0) as u64;
        bytes[10..18].copy_from_slice(&tail.to_be_bytes());
        InternetChecksum::default().u16(self.stream).u64(sequence).u64(tail)
    }

    /// Writes the stream id of a signature, of which a port writes the rest at [`SEQUENCE_AT`]
    /// ([`netio::departure::StampPlace`]). Returns the sum of its word, and the seed of the check.
    #[inline]
    pub fn write_open(stream: u16, bytes: &mut [u8]) -> (InternetChecksum, u64) {
        bytes[..SEQUENCE_AT].copy_from_slice(&stream.to_be_bytes());
        (InternetChecksum::default().u16(stream), u64::from(stream) << 48)
    }

    /// Writes the signature and a word that preserves the ones' complement sum of the first
    /// [`NEUTRAL_BYTES`] of `bytes`.
    pub fn write_neutral(&self, key: u64, bytes: &mut [u8]) {
        let bytes = &mut bytes[..NEUTRAL_BYTES];
        let before = InternetChecksum::default().bytes(bytes);
        let signature = self.write(key, bytes);
        put_u16(bytes, SIGNATURE_BYTES, before.u16(!signature.fold()).fold());
    }

    /// Returns the sum of the words of the signature at the start of `bytes`. None if they are too
    /// short.
    #[inline]
    pub fn sum(bytes: &[u8]) -> Option<InternetChecksum> {
        let bytes: &[u8; SIGNATURE_BYTES] = bytes.first_chunk()?;
        let stream = u16::from_be_bytes([bytes[0], bytes[1]]);
        Some(InternetChecksum::default().u16(stream).u64(word(bytes, 2)).u64(word(bytes, 10)))
    }

    /// Reads a signature with this key from the start of `bytes`.
    #[inline]
    pub fn read(key: u64, bytes: &[u8]) -> Option<Signature> {
        let bytes: &[u8; SIGNATURE_BYTES] = bytes.first_chunk()?;
        let stream = u16::from_be_bytes([bytes[0], bytes[1]]);
        let (sequence, tail) = (word(bytes, 2), word(bytes, 10));
        let sent = tail >> 16;
        (check(key, stream, sequence, sent) == tail as u16).then_some(Signature {
            stream,
            sequence: Sequence::from_bits(sequence),
            sent: SendTime(sent),
        })
    }
}

#[inline]
fn word(bytes: &[u8; SIGNATURE_BYTES], at: usize) -> u64 {
    u64::from_be_bytes(*bytes[at..].first_chunk().expect("within the 18 bytes"))
}

/// Returns 16 bits that depend on every bit of the signature and of the key.
#[inline]
fn check(key: u64, stream: u16, sequence: u64, sent: u64) -> u16 {
    (mix(mix(key ^ sequence) ^ ((stream as u64) << 48 | sent)) >> 48) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Signature {
        let sequence = Sequence { is_warmup: true, epoch: 0x7abc, number: 0x1234_5678_9abc };
        Signature { stream: 0xfedc, sequence, sent: SendTime::new(Nanos(0xffff_0102_0304_0506)) }
    }

    #[test]
    fn signatures_round_trip_with_the_documented_layout() {
        let mut bytes = [0; SIGNATURE_BYTES];
        sample().write(99, &mut bytes);
        assert_eq!(Signature::read(99, &bytes), Some(sample()));
        assert_eq!(bytes[..10], [0xfe, 0xdc, 0xfa, 0xbc, 0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc]);
        assert_eq!(bytes[10..16], [1, 2, 3, 4, 5, 6]);
        assert_eq!(Signature::read(99, &bytes[..17]), None);
    }

    #[test]
    fn a_neutral_signature_leaves_checksums_unchanged_at_any_offset() {
        let mut frame: Vec<u8> = (0..99u32).map(|at| (at * at * 7) as u8).collect();
        let before = packet::checksum::checksum(&frame);
        for at in 0..=79 {
            sample().write_neutral(at as u64, &mut frame[at..]);
            assert_eq!(Signature::read(at as u64, &frame[at..]), Some(sample()));
            assert_eq!(packet::checksum::checksum(&frame), before, "at {at}");
        }
        let mut zeros = [0; NEUTRAL_BYTES];
        sample().write_neutral(1, &mut zeros);
        assert_eq!(packet::checksum::sum(&zeros), 0xffff);
    }

    #[test]
    fn another_key_or_a_flipped_bit_is_rejected() {
        let mut bytes = [0; SIGNATURE_BYTES];
        sample().write(99, &mut bytes);
        let foreign =
            (0..10_000).filter(|&key| Signature::read(100 + key, &bytes).is_some()).count();
        assert!(foreign <= 3, "one in 65,536 may pass, {foreign} of 10,000 did");
        for bit in 0..SIGNATURE_BYTES * 8 {
            let mut damaged = bytes;
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Signature::read(99, &damaged), None, "bit {bit}");
        }
    }

    #[test]
    fn a_port_can_complete_a_signature() {
        let Signature { stream, sequence, sent } = sample();
        let (mut whole, mut open) = ([0; SIGNATURE_BYTES], [0; SIGNATURE_BYTES]);
        let whole_sum = sample().write(99, &mut whole);
        let (sum, seed) = Signature::write_open(stream, &mut open);
        let tail = sent.0 << 16 | mix(mix(99 ^ sequence.bits()) ^ seed ^ sent.0) >> 48;
        open[2..10].copy_from_slice(&sequence.bits().to_be_bytes());
        open[10..].copy_from_slice(&tail.to_be_bytes());
        let sum = sum.u64(sequence.bits()).u64(tail);
        assert_eq!((open, sum.fold()), (whole, whole_sum.fold()));
    }

    #[test]
    fn differences_are_correct_across_the_wrap_and_may_be_negative() {
        let sent = SendTime::new(Nanos(0x1_ffff_ffff_ff00));
        assert_eq!(sent.until(Nanos(0x2_0000_0000_0010)), 0x110);
        assert_eq!(sent.until(Nanos(0x1_ffff_ffff_fe00)), -0x100);
    }
}
