//! What a link is: its speed, its medium, what its ends can do and say that they can.
//!
//! Source: Linux `include/uapi/linux/ethtool.h` (`ETHTOOL_GLINKSETTINGS`, `enum
//! ethtool_link_mode_bit_indices`). Invariant: what is not known is not there; nothing is guessed.

/// What is known of a port's link.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Link {
    /// Bits a second now, while it has a speed.
    pub speed_bps: Option<u64>,
    /// Whether both ends may send at once.
    pub full_duplex: Option<bool>,
    /// What it is made of.
    pub medium: Option<Medium>,
    /// Whether it agrees with the other end on these.
    pub autonegotiates: bool,
    /// What the port can do.
    pub supported: LinkModes,
    /// What it tells the other end of that.
    pub advertised: LinkModes,
    /// What the other end tells.
    pub peer: LinkModes,
}

/// What a link is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Medium {
    /// Twisted pair, coaxial or direct attached cable.
    Copper,
    /// Glass.
    Fiber,
}

/// A set of modes, the bit of each as the kernel numbers them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LinkModes(pub u128);

/// What a mode can be besides a speed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Ability {
    /// Agrees with the other end.
    Autonegotiation = 6,
    /// Goes over twisted pair.
    Copper = 7,
    /// Goes over glass.
    Fiber = 10,
    /// Can be told to pause.
    Pause = 13,
    /// Can be told to pause while the other end cannot.
    PauseAsymmetric = 14,
}

/// Speeds in Mbit/s and whether of full duplex, by first and last of consecutive modes.
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
    /// The speeds of these modes in Mbit/s, each with whether it is of full duplex; some come more
    /// than once.
    pub fn speeds(self) -> impl Iterator<Item = (u32, bool)> {
        let there = move |first: u8, last: u8| (first..=last).any(|mode| self.0 >> mode & 1 != 0);
        SPEEDS
            .iter()
            .filter(move |(first, last, ..)| there(*first, *last))
            .map(|&(_, _, speed_mbps, full)| (speed_mbps, full))
    }

    /// Whether this is among them.
    pub fn has(self, ability: Ability) -> bool {
        self.0 >> ability as u8 & 1 != 0
    }
}

/// Words of an answer without masks.
const HEAD_WORDS: usize = 12;

/// Most words of one mask.
const MASK_WORDS_MAX: usize = 127;

/// Words of the longest answer of the kernel.
pub(crate) const ANSWER_WORDS: usize = HEAD_WORDS + 3 * MASK_WORDS_MAX;

/// The kernel's answer (`struct ethtool_link_settings` and its three masks) as words.
pub(crate) type Answer = [u32; ANSWER_WORDS];

/// Command for it.
const GET: u32 = 0x4c;

/// A question with masks of so many words; 0 to learn how many that has to be.
pub(crate) fn question(mask_words: i8) -> Answer {
    let mut question = [0; ANSWER_WORDS];
    question[0] = GET;
    question[3] = u32::from_ne_bytes([0, 0, 0, mask_words as u8]);
    question
}

/// How many words the kernel's masks have, by its answer to a question that had none.
pub(crate) fn mask_words(answer: &Answer) -> Option<i8> {
    let [.., words] = answer[3].to_ne_bytes();
    (words as i8).checked_neg().filter(|words| *words > 0)
}

/// What an answer says.
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

    /// What the kernel says of an interface with these words behind the command.
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
    fn a_card_with_autonegotiation_is_read() {
        // As ethtool has it of an Intel I219 at 1000BASE-T: masks of three words.
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
    fn what_has_no_link_has_no_speed() {
        let down = answer(&[u32::MAX, bytes([0xff, 3, 0, 0]), bytes([0, 0, 0, 3])], &[]);
        assert_eq!(read(&down), Link { medium: Some(Medium::Fiber), ..Link::default() });
    }

    #[test]
    fn the_kernel_says_how_long_its_masks_are() {
        assert_eq!(mask_words(&answer(&[0, 0, bytes([0, 0, 0, (-4_i8) as u8])], &[])), Some(4));
        for wrong in [0, 3, i8::MIN as u8] {
            assert_eq!(mask_words(&answer(&[0, 0, bytes([0, 0, 0, wrong])], &[])), None);
        }
    }

    #[test]
    fn speeds_stand_in_order_and_no_mode_twice() {
        let ends: Vec<_> = SPEEDS.iter().flat_map(|&(first, last, ..)| [first, last]).collect();
        assert!(ends.is_sorted());
        assert!(SPEEDS.windows(2).all(|two| two[0].1 < two[1].0));
    }
}
