//! Port ranges as values and masks: the fewest prefixes that cover exactly these ports.
//!
//! Source: V. Srinivasan et al., "Fast and scalable layer four switching" (SIGCOMM 1998), section 7: a range of 16
//! bits becomes at most 30 prefixes.

/// Returns value and mask of each prefix of the range from `first` to `last`; one of zero bits for all ports.
pub fn masks((first, last): (u16, u16)) -> Vec<(u16, u16)> {
    let mut found = Vec::new();
    let (mut from, end) = (u32::from(first), u32::from(last) + 1);
    while from < end {
        // The largest block that begins here and does not exceed the end.
        let aligned = if from == 0 { 16 } else { from.trailing_zeros() };
        let bits = aligned.min((end - from).ilog2());
        found.push((from as u16, (u32::MAX << bits) as u16));
        from += 1 << bits;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prefixes_of_a_port_range_cover_exactly_its_ports() {
        for range in [(0, 65_535), (1024, 65_535), (0, 1023), (80, 80), (1, 65_534), (5000, 5100)] {
            let found = masks(range);
            for port in 0..=u16::MAX {
                let holders = found.iter().filter(|&&(value, mask)| port & mask == value).count();
                let wanted = usize::from((range.0..=range.1).contains(&port));
                assert_eq!(holders, wanted, "port {port} of {range:?}");
            }
        }
        let count = |range| masks(range).len();
        assert_eq!([count((0, 65_535)), count((1024, 65_535)), count((1, 65_534))], [1, 6, 30]);
        assert_eq!(masks((0, 65_535)), [(0, 0)]);
    }
}
