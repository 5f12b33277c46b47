//! Link properties: speed, medium, and the supported and advertised modes of both ends.
//!
//! Source: Linux `include/uapi/linux/ethtool.h` (`ETHTOOL_GLINKSETTINGS`, `enum
//! ethtool_link_mode_bit_indices`). Invariant: unknown values are absent; nothing is guessed.

/// Known properties of a port's link.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Link {
    /// Current speed in bits per second, if the link has one.
    pub speed_bps: Option<u64>,
    /// Whether the link is full duplex.
    pub full_duplex: Option<bool>,
    /// Medium of the link.
    pub medium: Option<Medium>,
    /// Whether the port negotiates with its link partner.
    pub autonegotiates: bool,
    /// Modes that the port supports.
    pub supported: LinkModes,
    /// Modes that the port advertises.
    pub advertised: LinkModes,
    /// Modes that the link partner advertises.
    pub peer: LinkModes,
}

/// Medium of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Medium {
    /// Twisted pair, coaxial or direct-attach cable.
    Copper,
    /// Optical fiber.
    Fiber,
}

/// A set of link modes; bits are numbered as in the kernel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LinkModes(pub u128);

/// Link modes other than speeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Ability {
    /// Autonegotiation.
    Autonegotiation = 6,
    /// Twisted pair.
    Copper = 7,
    /// Optical fiber.
    Fiber = 10,
    /// Pause frames.
    Pause = 13,
    /// Asymmetric pause frames.
    PauseAsymmetric = 14,
}

/// Speeds in Mbit/s and whether full duplex, by first and last of consecutive modes.
const SPEEDS: [(u8, u8, u32, bool); 34] = [
    (0, 0, 10, false),
    (1, 1, 10, true),
    (2, 2, 100, false),
    (3, 3, 100, true),
    (4, 4, 1_000, false),
    (5, 5, 1_000, true),
    (12, 12, 10_000, true),
    (15, 15, 2_500, true),
    (17, 17, 1_000, true),
    (18, 20, 10_000, true),
    (21, 22, 20_000, true),
    (23, 26, 40_000, true),
    (27, 30, 56_000, true),
    (31, 33, 25_000, true),
    (34, 35, 50_000, true),
    (36, 39, 100_000, true),
    (40, 40, 50_000, true),
    (41, 41, 1_000, true),
    (42, 46, 10_000, true),
    (47, 47, 2_500, true),
    (48, 48, 5_000, true),
    (52, 56, 50_000, true),
    (57, 61, 100_000, true),
    (62, 66, 200_000, true),
    (67, 67, 100, true),
    (68, 68, 1_000, true),
    (69, 73, 400_000, true),
    (75, 79, 100_000, true),
    (80, 84, 200_000, true),
    (85, 89, 400_000, true),
    (90, 90, 100, false),
    (91, 91, 100, true),
    (92, 92, 10, true),
    (93, 98, 800_000, true),
];

impl LinkModes {
    /// Returns the speeds of these modes in Mbit/s, each with whether it is full duplex. Some occur
    /// more than once.
    pub fn speeds(self) -> impl Iterator<Item = (u32, bool)> {
        let there = move |first: u8, last: u8| (first..=last).any(|mode| self.0 >> mode & 1 != 0);
        SPEEDS
            .iter()
            .filter(move |(first, last, ..)| there(*first, *last))
            .map(|&(_, _, speed_mbps, full)| (speed_mbps, full))
    }

    /// Returns whether the set contains this mode.
    pub fn has(self, ability: Ability) -> bool {
        self.0 >> ability as u8 & 1 != 0
    }
}

/// Words of a reply without masks.
const HEAD_WORDS: usize = 12;

/// Maximum number of words of one mask.
const MASK_WORDS_MAX: usize = 127;

/// Words of the kernel's longest reply.
pub(crate) const ANSWER_WORDS: usize = HEAD_WORDS + 3 * MASK_WORDS_MAX;

/// The kernel's reply (`struct ethtool_link_settings` and its three masks) as words.
pub(crate) type Answer = [u32; ANSWER_WORDS];

/// The command `ETHTOOL_GLINKSETTINGS`.
const GET: u32 = 0x4c;

/// Builds a request with masks of this many words; 0 queries how many are required.
pub(crate) fn question(mask_words: i8) -> Answer {
    let mut question = [0; ANSWER_WORDS];
    question[0] = GET;
    question[3] = u32::from_ne_bytes([0, 0, 0, mask_words as u8]);
    question
}

/// Returns the number of words of the kernel's masks, from its reply to a request without masks.
pub(crate) fn mask_words(answer: &Answer) -> Option<i8> {
    let [.., words] = answer[3].to_ne_bytes();
    (words as i8).checked_neg().filter(|words| *words > 0)
}

/// Parses a reply.
pub(crate) fn read(answer: &Answer) -> Link {
    let [duplex, port, _, autonegotiates] = answer[2].to_ne_bytes();
    let [.., words] = answer[3].to_ne_bytes();
    let words = usize::from(words).min(MASK_WORDS_MAX);
    let mask = |which: usize| {
        let words = answer[HEAD_WORDS..].chunks(words.max(1)).nth(which).unwrap_or_default();
        let low = words.iter().take(4).enumerate();
        LinkModes(low.fold(0, |modes, (at, &word)| modes | u128::from(word) << (32 * at)))
    };
    Link {
        speed_bps: match answer[1] {
            0 | u32::MAX => None,
            speed_mbps => Some(u64::from(speed_mbps) * 1_000_000),
        },
        full_duplex: match duplex {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        },
        medium: match port {
            // Twisted pair, AUI, BNC, direct attach.
            0 | 1 | 4 | 5 => Some(Medium::Copper),
            3 => Some(Medium::Fiber),
            _ => None,
        },
        autonegotiates: autonegotiates == 1,
        supported: mask(0),
        advertised: mask(1),
        peer: mask(2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds a kernel reply with these words after the command.
    fn answer(words: &[u32], masks: &[u32]) -> Answer {
        let mut answer = question(0);
        answer[1..1 + words.len()].copy_from_slice(words);
        answer[HEAD_WORDS..HEAD_WORDS + masks.len()].copy_from_slice(masks);
        answer
    }

    fn bytes(four: [u8; 4]) -> u32 {
        u32::from_ne_bytes(four)
    }

    #[test]
    fn link_settings_with_autonegotiation_are_parsed() {
        // From ethtool, for an Intel I219 at 1000BASE-T: masks of three words.
        let modes = 0b1_1110_1111_u32 & !(1 << 8);
        let link = read(&answer(
            &[1000, bytes([1, 0, 1, 1]), bytes([0, 0, 0, 3])],
            &[modes, 0, 0, modes | 1 << 13, 0, 0, 1 << 5 | 1 << 6, 1 << (48 - 32), 0],
        ));
        assert_eq!((link.speed_bps, link.full_duplex), (Some(1_000_000_000), Some(true)));
        assert_eq!((link.medium, link.autonegotiates), (Some(Medium::Copper), true));
        let speeds: Vec<_> = link.supported.speeds().collect();
        assert_eq!(speeds, [(10, false), (10, true), (100, false), (100, true), (1_000, true)]);
        assert!(
            link.supported.has(Ability::Autonegotiation) && link.supported.has(Ability::Copper)
        );
        assert!(!link.supported.has(Ability::Pause) && link.advertised.has(Ability::Pause));
        assert_eq!(link.peer.speeds().collect::<Vec<_>>(), [(1_000, true), (5_000, true)]);
    }

    #[test]
    fn an_interface_without_link_has_no_speed() {
        let down = answer(&[u32::MAX, bytes([0xff, 3, 0, 0]), bytes([0, 0, 0, 3])], &[]);
        assert_eq!(read(&down), Link { medium: Some(Medium::Fiber), ..Link::default() });
    }

    #[test]
    fn the_kernel_reports_the_length_of_its_masks() {
        assert_eq!(mask_words(&answer(&[0, 0, bytes([0, 0, 0, (-4_i8) as u8])], &[])), Some(4));
        for wrong in [0, 3, i8::MIN as u8] {
            assert_eq!(mask_words(&answer(&[0, 0, bytes([0, 0, 0, wrong])], &[])), None);
        }
    }

    #[test]
    fn speeds_are_sorted_and_modes_are_unique() {
        let ends: Vec<_> = SPEEDS.iter().flat_map(|&(first, last, ..)| [first, last]).collect();
        assert!(ends.is_sorted());
        assert!(SPEEDS.windows(2).all(|two| two[0].1 < two[1].0));
    }
}
