//! A sequence of frame sizes that repeats: the IMIX genome.
//!
//! RFC 6985 names sizes by letters, `a` for 64 bytes to `j` for 16,000, and `z` for the MTU of
//! whatever is measured; sizes of one's own have capital letters, which whoever reports them
//! explains. Long sequences are told by runs: here a number before a letter, or before letters in
//! parentheses, says how often these follow each other, so that `20(abcd)5(ggga)` is a sequence of a
//! hundred sizes. Spaces mean nothing.

use std::sync::Arc;

/// Frames of a genome.
pub const GENOME_FRAMES_MAX: usize = 1 << 16;

/// The letters of RFC 6985, section 4, and their sizes, frame check sequence included.
pub const SIZES: [(char, usize); 10] = [
    ('a', 64),
    ('b', 128),
    ('c', 256),
    ('d', 512),
    ('e', 1024),
    ('f', 1280),
    ('g', 1518),
    ('h', 2112),
    ('i', 9000),
    ('j', 16_000),
];

/// A sequence of frame sizes that repeats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Genome {
    /// The sizes that occur, frame check sequence included, in the order in which they first do.
    sizes: Vec<usize>,
    /// Which of them each frame of the sequence has.
    turns: Arc<[u8]>,
}

/// What is wrong with the text of a genome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GenomeError {
    /// A letter that means no size: give it one among the sizes of one's own.
    Letter(char),
    /// Something that is no letter, number or parenthesis, or a parenthesis or number too many (where, from 0).
    Syntax(usize),
    /// It has no frames.
    Empty,
    /// It has more than [`GENOME_FRAMES_MAX`] frames.
    TooLong,
}

impl Genome {
    /// The sequence of these sizes; `None` if there are none or too many of them.
    pub fn new(sequence: &[usize]) -> Option<Self> {
        if sequence.is_empty() || sequence.len() > GENOME_FRAMES_MAX {
            return None;
        }
        let (mut sizes, mut turns) = (Vec::new(), Vec::with_capacity(sequence.len()));
        for size in sequence {
            let place = sizes.iter().position(|known| known == size).unwrap_or(sizes.len());
            if place == sizes.len() {
                sizes.push(*size);
            }
            turns.push(u8::try_from(place).ok()?);
        }
        Some(Genome { sizes, turns: turns.into() })
    }

    /// The genome that a text describes, in which `own` letters stand for sizes beside those of the RFC.
    pub fn read(text: &str, own: &[(char, usize)]) -> Result<Self, GenomeError> {
        let size = |letter: char| {
            let known = own.iter().chain(&SIZES).find(|(known, _)| *known == letter);
            known.map(|&(_, size)| size).ok_or(GenomeError::Letter(letter))
        };
        let mut sequence = Vec::new();
        // How often what is in parentheses is repeated, and where it begins.
        let mut open: Option<(usize, usize)> = None;
        let mut count: Option<usize> = None;
        for (at, letter) in text.char_indices() {
            match letter {
                ' ' | '\t' | '\n' | '\r' => {}
                '0'..='9' => {
                    let digit = letter as usize - '0' as usize;
                    let more = count.unwrap_or(0) * 10 + digit;
                    if more > GENOME_FRAMES_MAX {
                        return Err(GenomeError::TooLong);
                    }
                    count = Some(more);
                }
                '(' if open.is_none() => open = Some((count.take().unwrap_or(1), sequence.len())),
                ')' => match (open.take(), count) {
                    (Some((times, from)), None) => repeat(&mut sequence, from, times)?,
                    _ => return Err(GenomeError::Syntax(at)),
                },
                letter if letter.is_ascii_alphabetic() => {
                    let from = sequence.len();
                    sequence.push(size(letter)?);
                    repeat(&mut sequence, from, count.take().unwrap_or(1))?;
                }
                _ => return Err(GenomeError::Syntax(at)),
            }
        }
        if open.is_some() || count.is_some() {
            return Err(GenomeError::Syntax(text.len()));
        }
        if sequence.is_empty() {
            return Err(GenomeError::Empty);
        }
        Genome::new(&sequence).ok_or(GenomeError::TooLong)
    }

    /// The sizes that occur, frame check sequence included, each once.
    pub fn sizes(&self) -> &[usize] {
        &self.sizes
    }

    /// Which of [`Genome::sizes`] each frame of the sequence has.
    pub fn turns(&self) -> &Arc<[u8]> {
        &self.turns
    }

    /// How many bytes its frames have together, frame check sequences included.
    pub fn bytes(&self) -> u64 {
        let size = |turn: u8| self.sizes[usize::from(turn)] as u64;
        self.turns.iter().fold(0u64, |sum, &turn| sum.saturating_add(size(turn)))
    }

    /// How many frames it has.
    pub fn frames(&self) -> u64 {
        self.turns.len() as u64
    }
}

/// Has what begins at `from` so many times.
fn repeat(sequence: &mut Vec<usize>, from: usize, times: usize) -> Result<(), GenomeError> {
    let length = sequence.len() - from;
    if length.saturating_mul(times).saturating_add(from) > GENOME_FRAMES_MAX {
        return Err(GenomeError::TooLong);
    }
    if times == 0 {
        sequence.truncate(from);
    }
    for _ in 1..times {
        sequence.extend_from_within(from..from + length);
    }
    Ok(())
}

impl std::fmt::Display for GenomeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            GenomeError::Letter(letter) => {
                write!(f, "the letter {letter} has no size: give it one in genome_sizes")
            }
            GenomeError::Syntax(at) => write!(
                f,
                "cannot be read at its character {}: letters, numbers before them, and parentheses",
                at + 1
            ),
            GenomeError::Empty => f.write_str("has no frames"),
            GenomeError::TooLong => {
                write!(f, "has more than GENOME_FRAMES_MAX ({GENOME_FRAMES_MAX}) frames")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(text: &str) -> Vec<usize> {
        let genome = Genome::read(text, &[('A', 570), ('z', 1500)]).unwrap();
        genome.turns().iter().map(|&turn| genome.sizes()[usize::from(turn)]).collect()
    }

    #[test]
    fn letters_runs_and_sizes_of_ones_own_become_a_sequence() {
        assert_eq!(sizes("aaafg"), [64, 64, 64, 1280, 1518]);
        assert_eq!(sizes("abcdefghij z").len(), 11);
        assert_eq!(sizes("2a 3A z"), [64, 64, 570, 570, 570, 1500]);
        assert_eq!(sizes("2(ab)c0d"), [64, 128, 64, 128, 256]);
        let long = Genome::read("20(abcd) 5(ggga) 10(dcba)", &[]).unwrap();
        assert_eq!((long.frames(), long.sizes().len()), (140, 5));
        let bytes = 30 * (64 + 128 + 256 + 512) + 5 * (3 * 1518 + 64);
        assert_eq!(long.bytes(), bytes);
    }

    #[test]
    fn what_is_no_genome_is_refused_with_its_place() {
        let error = |text| Genome::read(text, &[]).unwrap_err();
        assert_eq!(error("aaz"), GenomeError::Letter('z'));
        assert_eq!(error("a-b"), GenomeError::Syntax(1));
        assert_eq!(error("a(bc"), GenomeError::Syntax(4));
        assert_eq!(error("a)"), GenomeError::Syntax(1));
        assert_eq!(error("2(a(b))"), GenomeError::Syntax(3));
        assert_eq!(error("a3"), GenomeError::Syntax(2));
        assert_eq!(error(""), GenomeError::Empty);
        assert_eq!(error("0a"), GenomeError::Empty);
        assert_eq!(error("65537a"), GenomeError::TooLong);
        assert_eq!(error("999(999(a"), GenomeError::Syntax(7));
        assert_eq!(error("60000(abc)"), GenomeError::TooLong);
    }
}
