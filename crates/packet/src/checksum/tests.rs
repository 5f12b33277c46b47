//! Tests of the checksums against published values and a naive implementation.

use proptest::prelude::*;

use super::*;

/// RFC 1071 section 1, literally: word after word, with the carry added immediately.
fn naive(bytes: &[u8]) -> u16 {
    let mut sum = 0u32;
    for pair in bytes.chunks(2) {
        sum += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
        if sum > 0xffff {
            sum -= 0xffff;
        }
    }
    sum as u16
}

#[test]
fn the_example_of_rfc_1071() {
    assert_eq!(sum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), 0xddf2);
}

#[test]
fn the_example_of_rfc_1624() {
    // RFC 1624 section 4: header checksum 0xdd2f, a word changes from 0x5555 to 0x3285, new
    // checksum zero.
    assert_eq!(update_u16(0xdd2f, 0x5555, 0x3285), 0x0000);
    assert_eq!(update_udp_u16(0xdd2f, 0x5555, 0x3285), 0xffff);
}

#[test]
fn an_absent_udp_checksum_stays_absent() {
    assert_eq!(update_udp_u16(0, 1, 2), 0);
    assert_eq!(update_udp_u32(0, 1, 2), 0);
}

#[test]
fn the_examples_of_rfc_3720_for_crc32c() {
    // Appendix B.4, which lists the bytes in transmission order.
    assert_eq!(crc32c(&[0; 32]), u32::from_le_bytes([0xaa, 0x36, 0x91, 0x8a]));
    assert_eq!(crc32c(&[0xff; 32]), u32::from_le_bytes([0x43, 0xab, 0xa8, 0x62]));
    let rising: Vec<u8> = (0..32).collect();
    assert_eq!(crc32c(&rising), u32::from_le_bytes([0x4e, 0x79, 0xdd, 0x46]));
    assert_eq!(crc32c_extend(crc32c(&rising[..11]), &rising[11..]), crc32c(&rising));
}

#[test]
fn a_long_run_of_ones_does_not_overflow() {
    assert_eq!(sum(&vec![0xff; 1 << 20]), 0xffff);
    assert_eq!(InternetChecksum(u64::MAX).u32(u32::MAX).bytes(&[0xff; 64]).fold(), 0xffff);
}

#[test]
fn the_crc32c_powers_repeat() {
    let last = CRC32C_POWERS[30];
    assert_eq!(crc32c_multiply(last, last), CRC32C_POWERS[0]);
}

proptest! {
    #[test]
    fn crc32c_is_updated_incrementally(
        bytes in proptest::collection::vec(any::<u8>(), 1..3000),
        change in proptest::collection::vec(any::<u8>(), 1..16),
        at in any::<prop::sample::Index>(),
        error in any::<u32>(),
    ) {
        let mut changed = bytes.clone();
        let at = at.index(bytes.len());
        let change = &change[..change.len().min(bytes.len() - at)];
        for (byte, change) in changed[at..].iter_mut().zip(change) {
            *byte ^= change;
        }
        let behind = bytes.len() - at - change.len();
        let updated = update_crc32c(crc32c(&bytes) ^ error, change, behind);
        prop_assert_eq!(updated, crc32c(&changed) ^ error);
    }

    #[test]
    fn the_sum_equals_that_of_the_naive_implementation(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        prop_assert_eq!(sum(&bytes), naive(&bytes));
    }

    #[test]
    fn incremental_updates_equal_a_full_computation(
        mut bytes in proptest::collection::vec(prop_oneof![Just(0u8), Just(0xff), any::<u8>()], 20..64),
        word in 0usize..9,
        new in prop_oneof![Just(0u32), Just(u32::MAX), any::<u32>()],
    ) {
        // An all-zero header has no unique zero checksum, and does not occur on a link.
        bytes[19] |= 1;
        let at = word * 2;
        let (full, full_udp) = (checksum(&bytes), InternetChecksum::default().bytes(&bytes).checksum_udp());
        let old = u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        bytes[at..at + 2].copy_from_slice(&new.to_be_bytes()[..2]);
        bytes[19] |= 1;
        let (high, middle) = ((old >> 16) as u16, (new >> 16) as u16);
        prop_assert_eq!(update_u16(full, high, middle), checksum(&bytes));
        let udp = InternetChecksum::default().bytes(&bytes).checksum_udp();
        prop_assert_eq!(update_udp_u16(full_udp, high, middle), udp);
        if at + 4 <= 19 {
            bytes[at..at + 4].copy_from_slice(&new.to_be_bytes());
            prop_assert_eq!(update_u32(full, old, new), checksum(&bytes));
            let udp = InternetChecksum::default().bytes(&bytes).checksum_udp();
            prop_assert_eq!(update_udp_u32(full_udp, old, new), udp);
        }
    }
}

proptest! {
    #[test]
    fn words_of_any_width_and_partial_sums_give_the_same_sum(
        words in proptest::collection::vec(any::<u64>(), 0..20), split in 0usize..20
    ) {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        let whole = InternetChecksum::default().bytes(&bytes);
        let of = |words: &[u64]| words.iter().fold(InternetChecksum::default(), |sum, &word| sum.u64(word));
        let (left, right) = words.split_at(split.min(words.len()));
        prop_assert_eq!(of(&words).checksum(), whole.checksum());
        prop_assert_eq!(of(left).plus(of(right)).checksum(), whole.checksum());
    }
}
