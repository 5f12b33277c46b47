//! Prefixes as in the Internet's routing table: most are /24, few are short, and short ones contain long ones.
//!
//! The shares by length are rounded from long-standing public views of the global IPv4 table; the networks are
//! random. Invariant: a number determines the prefixes, which are all different, and a smaller number gives the first
//! ones of a larger one.

use std::collections::HashSet;

use super::mixed;

/// Lengths, and how many prefixes per thousand have them.
const PER_MILLE: [(u8, u64); 12] = [
    (24, 600),
    (22, 120),
    (23, 100),
    (21, 52),
    (20, 43),
    (19, 26),
    (18, 14),
    (16, 14),
    (17, 9),
    (15, 9),
    (14, 8),
    (12, 5),
];

/// The first address of the range, and its size: 16.0.0.0 to 207.255.255.255.
const FIRST: u32 = 16 << 24;
const ADDRESSES: u64 = 192 << 24;

/// First octet of loopback addresses, which no router forwards.
const LOOPBACK: u32 = 127;

/// Returns this many prefixes, as network and length.
pub fn prefixes(count: u32) -> Vec<(u32, u8)> {
    let mut seen = HashSet::with_capacity(count as usize);
    let drawn = (0u64..).map(|draw| {
        let (bits, length) = (mixed(2 * draw), length(mixed(2 * draw + 1) % 1000));
        let address = FIRST + (bits % ADDRESSES) as u32;
        (address & mask(length), length)
    });
    let drawn = drawn.filter(|(network, _)| network >> 24 != LOOPBACK);
    drawn.filter(|prefix| seen.insert(*prefix)).take(count as usize).collect()
}

/// Returns a host in a prefix, as a function of the pick.
pub fn host((network, length): (u32, u8), pick: u64) -> u32 {
    network | (mixed(pick ^ 0x6f73_7473) as u32 & !mask(length))
}

/// Returns the mask of a prefix length.
pub fn mask(length: u8) -> u32 {
    u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0)
}

fn length(of_thousand: u64) -> u8 {
    let mut below = 0;
    for (length, share) in PER_MILLE {
        below += share;
        if of_thousand < below {
            return length;
        }
    }
    24
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_distinct_and_have_the_lengths_of_a_routing_table() {
        assert_eq!(PER_MILLE.iter().map(|(_, share)| share).sum::<u64>(), 1000);
        let found = prefixes(50_000);
        let distinct: HashSet<_> = found.iter().collect();
        assert_eq!(distinct.len(), 50_000);
        assert_eq!(prefixes(100), found[..100]);
        let long = found.iter().filter(|(_, length)| *length == 24).count();
        assert!((28_000..33_000).contains(&long), "{long}");
        let nested = |&(network, length): &(u32, u8)| {
            (12..length).any(|shorter| distinct.contains(&(network & mask(shorter), shorter)))
        };
        assert!(found.iter().any(nested), "no prefix is within another");
    }

    #[test]
    fn a_host_is_within_its_prefix() {
        for (pick, prefix) in prefixes(1000).into_iter().enumerate() {
            let host = host(prefix, pick as u64);
            assert_eq!(host & mask(prefix.1), prefix.0);
            assert!((16..208).contains(&(host >> 24)) && host >> 24 != LOOPBACK, "{host:x}");
        }
        assert_eq!([mask(0), mask(12), mask(32)], [0, 0xfff0_0000, u32::MAX]);
    }
}
