//! Coarser masks under which matches of many different masks are found together.
//!
//! After J. Daly et al., "TupleMerge: fast software packet processing for online packet
//! classification" (IEEE/ACM ToN 2019). TupleMerge splits a table when too many of its entries have
//! the same hash. Here, an excess entry goes to the next finer mask in a short sequence, so that
//! entries never move. A range of ports is split into prefixes, up to 36 for a pair of ranges. The
//! lengths are chosen so that these prefixes use few masks, with few prefixes under each.
//!
//! Invariant: each mask of a sequence is a subset of the next, and the last is the match's own.

use crate::key::{Field, Key};

/// Number of masks in a sequence.
pub const LEVELS: usize = CUTS.len() + 1;

/// Lengths to which addresses and ports are cut on each level, the longest first.
const CUTS: [(&[u32], &[u32]); 4] = [
    (&[24, 16, 8, 0], &[16, 4, 0]),
    (&[24, 16, 8, 0], &[16, 12, 4, 0]),
    (&[32, 24, 16, 8, 0], &[16, 12, 8, 4, 0]),
    (&[32, 24, 16, 8, 0], &[16, 14, 12, 10, 8, 6, 4, 2, 0]),
];

/// Returns the masks from the coarsest to the mask itself.
pub fn levels(mask: &Key) -> [Key; LEVELS] {
    let mut row = [*mask; LEVELS];
    for (masks, (addresses, ports)) in row.iter_mut().zip(CUTS) {
        for field in [Field::IpSrc, Field::IpDst] {
            cut(masks, field, 32, addresses);
        }
        for field in [Field::L4Src, Field::L4Dst] {
            cut(masks, field, 16, ports);
        }
    }
    row
}

/// Cuts a field of the mask to the longest of these prefixes that it includes.
fn cut(mask: &mut Key, field: Field, bits: u32, lengths: &[u32]) {
    let asked = (mask.get(field) << (64 - bits)).leading_ones();
    let length = lengths.iter().find(|length| **length <= asked).unwrap_or(&0);
    mask.set(field, prefix(*length, bits));
}

/// Returns a prefix mask for a field of `bits` bits.
fn prefix(length: u32, bits: u32) -> u64 {
    let ones = u64::MAX >> (64 - bits);
    ones & !ones.checked_shr(length).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn each_coarse_mask_is_a_subset_of_the_next() {
        let mut dice = Rng::new(9);
        for _ in 0..2000 {
            let word = |dice: &mut Rng| dice.roll(1 << 53) << 11 | dice.roll(1 << 11);
            let mut mask = Key(std::array::from_fn(|_| word(&mut dice)));
            if dice.roll(2) == 0 {
                mask.set(Field::IpSrc, prefix(dice.roll(33) as u32, 32));
                mask.set(Field::L4Dst, prefix(dice.roll(17) as u32, 16));
            }
            let row = levels(&mask);
            for pair in row.windows(2) {
                assert_eq!(pair[0].and(&pair[1]), pair[0], "{mask:?}");
            }
            assert_eq!(row[LEVELS - 1], mask);
        }
        assert_eq!([prefix(0, 32), prefix(24, 32), prefix(32, 32)], [0, 0xffff_ff00, 0xffff_ffff]);
    }
}
