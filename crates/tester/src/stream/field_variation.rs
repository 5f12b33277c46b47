//! Varying fields: which fields, which values, and in which order.
//!
//! Fields of a group vary together, by one index per frame. Groups vary independently. Odometer
//! groups are the exception: the first one advances with every frame, each further one when the
//! previous ones have completed a cycle. Ranges and scattered values need no tables, for any
//! number.

use std::sync::Arc;

use crate::mix::{below, mix, unit};

/// Maximum number of values in a list, and of weights in a group.
pub const LIST_VALUES_MAX: usize = 1 << 20;

/// Maximum number of groups in a stream.
pub const VARY_GROUPS_MAX: usize = 8;

/// Fields that vary together: each frame draws one index, which sets all of them.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldVariation {
    /// Exclusive upper limit of the index.
    pub count: u64,
    /// Order of the indices over the frames.
    pub order: IndexOrder,
    /// The fields, with their value for each index.
    pub fields: Vec<(Field, Values)>,
}

/// Order of the indices over the frames.
#[derive(Debug, Clone, PartialEq)]
pub enum IndexOrder {
    /// 0, 1, 2 ... count - 1, 0, 1 ...
    Sequential,
    /// Sequential, with each index for a number of frames: a slower wheel of an odometer. The
    /// faster wheels complete a cycle in that number of frames.
    Slow {
        /// Number of frames, at least 1.
        frames: u64,
    },
    /// Uniform and independent.
    Random {
        /// Equal seeds give equal draws.
        seed: u64,
    },
    /// Independent, with a probability of index `i` of about `1 / (i + 1)` (Zipf's law): any two
    /// octaves of indices have the same probability.
    Zipf {
        /// Equal seeds give equal draws.
        seed: u64,
    },
    /// Independent, with a probability by weight.
    Weighted {
        /// Equal seeds give equal draws.
        seed: u64,
        /// One weight for each index.
        weights: Weights,
    },
}

/// Table for weighted draws with one lookup per draw.
///
/// Source: the alias method (A. J. Walker, "An efficient method for generating discrete random
/// variables with general distributions", ACM Transactions on Mathematical Software 3(3), 1977).
#[derive(Debug, Clone, PartialEq)]
pub struct Weights {
    /// For each index, its share of its draws in units of 2^-32, and the index of the others.
    table: Arc<[(u32, u32)]>,
    /// The weights as given.
    given: Arc<[f64]>,
}

/// A header field that can vary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Field {
    /// Ethernet source, 48 bits.
    MacSource,
    /// Ethernet destination, 48 bits.
    MacDestination,
    /// Identifier of the outermost VLAN tag, 12 bits.
    VlanId,
    /// The outermost VLAN tag without its type: priority, drop eligibility and identifier, 16 bits.
    VlanTag,
    /// Identifier of the second VLAN tag, 12 bits.
    VlanInnerId,
    /// Outermost MPLS label, 20 bits.
    MplsLabel,
    /// IPv4 type of service, 8 bits.
    Tos,
    /// IPv4 protocol, 8 bits.
    IpProtocol,
    /// IPv4 source, 32 bits. In ARP, the sender's address.
    IpSource,
    /// IPv4 destination, 32 bits. In ARP, the target's address.
    IpDestination,
    /// IPv6 flow label, 20 bits.
    FlowLabel,
    /// The lower 64 bits of the IPv6 source.
    Ipv6Source,
    /// The lower 64 bits of the IPv6 destination.
    Ipv6Destination,
    /// Source port, 16 bits.
    PortSource,
    /// Destination port, 16 bits.
    PortDestination,
}

/// The value of a field for each index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Values {
    /// A list of `count` values, selected by the index.
    List(Vec<u64>),
    /// `first + index * step`, truncated to the field's width.
    Range {
        /// Value at index 0.
        first: u64,
        /// Increment per index.
        step: u64,
    },
    /// A pseudo-random value, fixed by seed and index.
    ///
    /// Values are valid. A MAC address is unicast and locally administered, and an IPv4 address is
    /// in 10.0.0.0/8. A port is not 0, and a protocol is one for experiments.
    Scattered {
        /// Equal seeds give equal values.
        seed: u64,
    },
}

impl FieldVariation {
    /// Returns the index of the frame with this sequence number.
    #[inline]
    pub fn index_at(&self, sequence: u64) -> u64 {
        self.order.index_at(sequence, self.count)
    }
}

impl IndexOrder {
    /// Returns the index below `count` of the frame with this sequence number.
    #[inline]
    pub fn index_at(&self, sequence: u64, count: u64) -> u64 {
        match self {
            IndexOrder::Sequential => sequence % count.max(1),
            IndexOrder::Random { seed } => below(mix(seed ^ mix(sequence)), count.max(1)),
            IndexOrder::Zipf { seed } => zipf(mix(seed ^ mix(sequence)), count.max(1)),
            IndexOrder::Slow { frames } => sequence / (*frames).max(1) % count.max(1),
            IndexOrder::Weighted { seed, weights } => weights.draw(mix(seed ^ mix(sequence))),
        }
    }
}

impl Weights {
    /// Creates the table of these weights.
    ///
    /// Returns `None` if there are none or too many, if a weight is negative or not finite, or if
    /// all are 0.
    pub fn new(given: &[f64]) -> Option<Self> {
        let sum: f64 = given.iter().sum();
        let is_sane = given.iter().all(|&weight| weight >= 0.0 && weight.is_finite());
        let fits = (1..=LIST_VALUES_MAX).contains(&given.len());
        if !(fits && is_sane && sum > 0.0 && sum.is_finite()) {
            return None;
        }
        let mut share: Vec<f64> =
            given.iter().map(|weight| weight / sum * given.len() as f64).collect();
        let (mut small, mut large): (Vec<usize>, Vec<usize>) =
            (0..given.len()).partition(|&index| share[index] < 1.0);
        let mut table: Vec<(u32, u32)> =
            (0..given.len()).map(|index| (u32::MAX, index as u32)).collect();
        while let (Some(poor), Some(&rich)) = (small.pop(), large.last()) {
            table[poor] = ((share[poor] * 2f64.powi(32)) as u32, rich as u32);
            share[rich] -= 1.0 - share[poor];
            if share[rich] < 1.0 {
                large.pop();
                small.push(rich);
            }
        }
        Some(Weights { table: table.into(), given: given.into() })
    }

    /// Returns the number of indices.
    pub fn count(&self) -> u64 {
        self.table.len() as u64
    }

    /// Returns the weights as given.
    pub fn given(&self) -> &[f64] {
        &self.given
    }

    #[inline]
    fn draw(&self, bits: u64) -> u64 {
        let index = below(bits, self.count());
        let (kept, other) = self.table[index as usize];
        // The upper bits select the entry, the lower ones select between its two indices.
        if (bits as u32) < kept { index } else { other.into() }
    }
}

impl Values {
    /// Returns the value at `index`, within the field's width. An index past a list's end wraps.
    #[inline]
    pub fn at(&self, field: Field, index: u64) -> u64 {
        match self {
            Values::List(list) if list.is_empty() => 0,
            Values::List(list) => list[(index % list.len() as u64) as usize],
            Values::Range { first, step } => {
                first.wrapping_add(index.wrapping_mul(*step)) & field.mask()
            }
            Values::Scattered { seed } => Values::scattered(field, *seed, mix(index)),
        }
    }

    /// Returns the scattered value at an index with the hash `stirred`.
    #[inline]
    pub(crate) fn scattered(field: Field, seed: u64, stirred: u64) -> u64 {
        field.sane(mix(seed ^ stirred))
    }
}

impl Field {
    /// Returns the mask of the field's bits.
    pub fn mask(self) -> u64 {
        match self {
            Field::Ipv6Source | Field::Ipv6Destination => u64::MAX,
            Field::MacSource | Field::MacDestination => 0xffff_ffff_ffff,
            Field::IpSource | Field::IpDestination => 0xffff_ffff,
            Field::MplsLabel | Field::FlowLabel => 0xf_ffff,
            Field::PortSource | Field::PortDestination | Field::VlanTag => 0xffff,
            Field::VlanId | Field::VlanInnerId => 0xfff,
            Field::IpProtocol | Field::Tos => 0xff,
        }
    }

    /// Maps random bits to a value that networks accept.
    fn sane(self, bits: u64) -> u64 {
        match self {
            Field::MacSource | Field::MacDestination => bits & 0xfcff_ffff_ffff | 0x0200_0000_0000,
            Field::IpSource | Field::IpDestination => 0x0a00_0001 + below(bits, 0xff_fffe),
            Field::PortSource | Field::PortDestination => below(bits, 0xffff) + 1,
            Field::VlanId | Field::VlanInnerId => below(bits, 4094) + 1,
            // Any priority, without drop eligibility.
            Field::VlanTag => bits >> 61 << 13 | (below(bits, 4094) + 1),
            // The first sixteen labels are reserved (RFC 3032, section 2.1).
            Field::MplsLabel => 16 + below(bits, 0xf_fff0),
            // Protocol numbers for experiments (RFC 3692, section 2.1).
            Field::IpProtocol => 253 + below(bits, 2),
            Field::Tos => bits & 0xfc,
            Field::FlowLabel => bits & 0xf_ffff,
            Field::Ipv6Source | Field::Ipv6Destination => bits,
        }
    }
}

/// Maps random bits to an index below `count` by Zipf's law.
///
/// The index is two to a uniform exponent below the logarithm of `count + 1`, less one.
#[inline]
fn zipf(bits: u64, count: u64) -> u64 {
    let exponent = unit(bits) * ((count + 1) as f64).log2();
    let (octave, part) = (exponent as u32, exponent.fract());
    // Approximates two to the power of a number from 0 to 1, to one part in 500.
    let power = 1.0 + part * (0.6565 + 0.3435 * part);
    let index = (power * (1u64 << octave.min(62)) as f64) as u64 - 1;
    index.min(count - 1)
}

impl std::fmt::Display for Field {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Field::MacSource => "mac_source",
            Field::MacDestination => "mac_destination",
            Field::VlanId => "vlan_id",
            Field::VlanTag => "vlan_tag",
            Field::VlanInnerId => "vlan_inner_id",
            Field::MplsLabel => "mpls_label",
            Field::Tos => "tos",
            Field::IpProtocol => "ip_protocol",
            Field::IpSource => "ip_source",
            Field::IpDestination => "ip_destination",
            Field::FlowLabel => "flow_label",
            Field::Ipv6Source => "ipv6_source",
            Field::Ipv6Destination => "ipv6_destination",
            Field::PortSource => "port_source",
            Field::PortDestination => "port_destination",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zipf_draws_small_indices_with_the_expected_frequency() {
        for count in [1u64, 2, 1000, 131_072] {
            let order = IndexOrder::Zipf { seed: 3 };
            let drawn = |frame| order.index_at(frame, count);
            assert!((0..100_000).all(|frame| drawn(frame) < count));
            let of_first = |places: u64| {
                let hits = (0..100_000).filter(|&frame| drawn(frame) < places).count() as f64;
                let wanted = ((places.min(count) + 1) as f64).ln() / ((count + 1) as f64).ln();
                assert!((hits / 1e5 - wanted).abs() < 0.01, "{hits} of the first {places}");
            };
            [1, 7, 100, 10_000].into_iter().for_each(of_first);
        }
    }

    #[test]
    fn indices_are_drawn_in_proportion_to_their_weights() {
        let given = [5.0, 0.0, 1.0, 0.25, 3.75];
        let weights = Weights::new(&given).unwrap();
        assert_eq!((weights.count(), weights.given()), (5, &given[..]));
        let order = IndexOrder::Weighted { seed: 11, weights };
        let mut counts = [0u32; 5];
        (0..1_000_000).for_each(|frame| counts[order.index_at(frame, 5) as usize] += 1);
        for (count, weight) in counts.iter().zip(given) {
            let share: f64 = weight / 10.0;
            // Five standard deviations of a binomial distribution.
            let most = 5.0 * (1e6 * share * (1.0 - share)).sqrt();
            assert!((f64::from(*count) - 1e6 * share).abs() <= most, "{counts:?}");
        }
        for bad in [&[][..], &[0.0], &[-1.0, 2.0], &[f64::NAN], &[f64::INFINITY, 1.0]] {
            assert_eq!(Weights::new(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn an_odometer_visits_every_pair_once_per_cycle() {
        let wheels = [IndexOrder::Sequential, IndexOrder::Slow { frames: 5 }];
        let pair = |frame| (wheels[0].index_at(frame, 5), wheels[1].index_at(frame, 3));
        let met: std::collections::HashSet<_> = (0..15).map(pair).collect();
        assert_eq!((met.len(), pair(4), pair(5), pair(15)), (15, (4, 0), (0, 1), (0, 0)));
    }
}
