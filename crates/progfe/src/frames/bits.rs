//! Access to up to 128 bits at any bit offset, most significant bit first.

/// Reads `bits` (at most 128) from bit `at`. Returns `None` past the end.
pub fn read(bytes: &[u8], at: usize, bits: usize) -> Option<u128> {
    let end = at.checked_add(bits)?;
    if bits > 128 || end > bytes.len().checked_mul(8)? {
        return None;
    }
    let mut value = 0u128;
    let mut bit = at;
    while bit < end {
        let (byte, inside) = (bytes[bit / 8], bit % 8);
        let count = (8 - inside).min(end - bit);
        let part = (byte << inside) >> (8 - count);
        value = (value << count) | u128::from(part);
        bit += count;
    }
    Some(value)
}

/// Writes the low `bits` (at most 128) of `value` at bit `at`. Returns false without a change past
/// the end.
pub fn write(bytes: &mut [u8], at: usize, bits: usize, value: u128) -> bool {
    let Some(end) = at.checked_add(bits) else { return false };
    if bits > 128 || end > bytes.len().saturating_mul(8) {
        return false;
    }
    let mut bit = at;
    while bit < end {
        let inside = bit % 8;
        let count = (8 - inside).min(end - bit);
        let shift = 8 - inside - count;
        let mask = (0xffu8 >> (8 - count)) << shift;
        let part = (value >> (end - bit - count)) as u8;
        bytes[bit / 8] = (bytes[bit / 8] & !mask) | ((part << shift) & mask);
        bit += count;
    }
    true
}

/// Returns the maximum value of `bits` bits.
pub fn most(bits: u32) -> u128 {
    if bits >= 128 { u128::MAX } else { (1 << bits) - 1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bits_are_in_network_order() {
        let bytes = [0x12, 0x34, 0x56];
        assert_eq!(read(&bytes, 0, 24), Some(0x12_3456));
        assert_eq!(read(&bytes, 4, 12), Some(0x234));
        assert_eq!(read(&bytes, 3, 3), Some(0b100));
        assert_eq!(read(&bytes, 20, 5), None);
        assert_eq!(read(&bytes, usize::MAX, 5), None);
    }

    proptest! {
        #[test]
        fn written_bits_are_read_and_no_others_change(
            old in proptest::collection::vec(any::<u8>(), 20),
            at in 0usize..160, bits in 0usize..129, value: u128,
        ) {
            let mut bytes = old.clone();
            let fits = at + bits <= 160;
            prop_assert_eq!(write(&mut bytes, at, bits, value), fits);
            if !fits {
                prop_assert_eq!(&bytes, &old);
                return Ok(());
            }
            prop_assert_eq!(read(&bytes, at, bits), Some(value & most(bits as u32)));
            for bit in (0..at).chain(at + bits..160) {
                prop_assert_eq!(read(&bytes, bit, 1), read(&old, bit, 1), "bit {}", bit);
            }
        }
    }
}
