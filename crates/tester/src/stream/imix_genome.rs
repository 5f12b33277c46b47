//! Repeating sequences of frame sizes: the IMIX genome (RFC 6985).
//!
//! The RFC assigns letters to sizes: `a` for 64 bytes to `j` for 16,000, and `z` for the MTU of the
//! device under test. Capital letters are for custom sizes, which a report must explain. This
//! module adds repeat counts: a number before a letter, or before letters in parentheses, repeats
//! them. For example, `20(abcd)5(ggga)` is a sequence of a hundred sizes. Spaces are ignored.

use std::sync::Arc;

/// Maximum number of frames in a genome.
pub const GENOME_FRAMES_MAX: usize = 1 << 16;

/// Letters and sizes of RFC 6985, section 4, frame check sequence included.
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

/// A repeating sequence of frame sizes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Genome {
    /// Distinct sizes, frame check sequence included, in order of first occurrence.
    sizes: Vec<usize>,
    /// Index into `sizes` for each frame of the sequence.
    turns: Arc<[u8]>,
}

/// Why a genome's text is invalid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GenomeError {
    /// A letter without a size. Custom letters need a custom size.
    Letter(char),
    /// An invalid character, or an unmatched parenthesis or number. Holds its offset.
    Syntax(usize),
    /// The genome has no frames.
    Empty,
    /// The genome exceeds [`GENOME_FRAMES_MAX`] frames.
    TooLong,
}

impl Genome {
    /// Creates the sequence of these sizes. Returns `None` for no sizes or too many.
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

    /// Parses a genome. The letters of `own` add to those of the RFC.
    pub fn read(text: &str, own: &[(char, usize)]) -> Result<Self, GenomeError> {
        let size = |letter: char| {
            let known = own.iter().chain(&SIZES).find(|(known, _)| *known == letter);
            known.map(|&(_, size)| size).ok_or(GenomeError::Letter(letter))
        };
        let mut sequence = Vec::new();
        // Repeat count of the open parenthesis, and the index where its content starts.
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

    /// Returns the distinct sizes, frame check sequence included.
    pub fn sizes(&self) -> &[usize] {
        &self.sizes
    }

    /// Returns the index into [`Genome::sizes`] for each frame of the sequence.
    pub fn turns(&self) -> &Arc<[u8]> {
        &self.turns
    }

    /// Returns the total size of its frames, frame check sequences included.
    pub fn bytes(&self) -> u64 {
        let size = |turn: u8| self.sizes[usize::from(turn)] as u64;
        self.turns.iter().fold(0u64, |sum, &turn| sum.saturating_add(size(turn)))
    }

    /// Returns the number of frames.
    pub fn frames(&self) -> u64 {
        self.turns.len() as u64
    }
}

/// Repeats the part from `from` on.
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
                write!(f, "the letter {letter} has no size (hint: set it in genome_sizes)")
            }
            GenomeError::Syntax(at) => write!(
                f,
                "syntax error at character {} (hint: use letters, numbers before them, and \
                 parentheses)",
                at + 1
            ),
            GenomeError::Empty => f.write_str("no frames"),
            GenomeError::TooLong => {
                write!(f, "more frames than GENOME_FRAMES_MAX ({GENOME_FRAMES_MAX})")
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
    fn letters_runs_and_custom_sizes_become_a_sequence() {
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
    fn an_invalid_genome_is_rejected_with_its_position() {
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
