//! A sentence whose numbers know the trials that they rest on.
//!
//! A page links them, text shows them as they are. Invariant: without its links it reads the same.

use std::fmt;

/// A sentence.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Sentence(Vec<Piece>);

/// A part of a sentence.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Piece {
    /// The words, or the number.
    pub(crate) text: String,
    /// The trials that it rests on; none of words.
    pub(crate) trials: Vec<u64>,
}

impl Sentence {
    /// The same and these words.
    pub(crate) fn and(mut self, text: impl Into<String>) -> Sentence {
        self.0.push(Piece { text: text.into(), trials: Vec::new() });
        self
    }

    /// The same and a number from these trials.
    pub(crate) fn number(mut self, text: impl Into<String>, trials: &[u64]) -> Sentence {
        self.0.push(Piece { text: text.into(), trials: trials.to_vec() });
        self
    }

    /// The same and another.
    pub(crate) fn then(mut self, other: Sentence) -> Sentence {
        self.0.extend(other.0);
        self
    }

    /// These with `between` them, and `last` before the last one.
    pub(crate) fn joined(
        parts: impl IntoIterator<Item = Sentence>,
        between: &str,
        last: &str,
    ) -> Sentence {
        let parts: Vec<Sentence> = parts.into_iter().collect();
        let count = parts.len();
        let join = |found: Sentence, (at, part): (usize, Sentence)| match at {
            0 => part,
            _ if at + 1 == count => found.and(last).then(part),
            _ => found.and(between).then(part),
        };
        parts.into_iter().enumerate().fold(Sentence::default(), join)
    }

    /// The same for the beginning of a text.
    pub(crate) fn capitalised(mut self) -> Sentence {
        if let Some(first) = self.0.first_mut() {
            first.text = capitalised(&first.text);
        }
        self
    }

    /// Its parts.
    pub(crate) fn pieces(&self) -> &[Piece] {
        &self.0
    }
}

impl<T: Into<String>> From<T> for Sentence {
    fn from(text: T) -> Sentence {
        Sentence::default().and(text)
    }
}

impl fmt::Display for Sentence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|piece| f.write_str(&piece.text))
    }
}

/// Trial numbers with ranges: `3-5 9`.
pub(crate) fn runs_of(trials: &[u64]) -> String {
    let mut sorted = trials.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let row = |chunk: &[u64]| match chunk {
        [first, .., last] => format!("{first}-{last}"),
        one => one.iter().map(u64::to_string).collect(),
    };
    let chunks: Vec<String> = sorted.chunk_by(|a, b| a + 1 == *b).map(row).collect();
    chunks.join(" ")
}

/// For the beginning of a sentence.
pub(crate) fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// For the middle of a sentence; an acronym stays as it is.
pub(crate) fn uncapitalised(text: &str) -> String {
    let mut letters = text.chars();
    match (letters.next(), letters.clone().next()) {
        (Some(first), Some(second)) if second.is_lowercase() => {
            first.to_lowercase().chain(letters).collect()
        }
        _ => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_trials_are_printed_as_a_range() {
        assert_eq!(runs_of(&[9, 3, 5, 4, 4]), "3-5 9");
        assert_eq!(runs_of(&[1]), "1");
        assert_eq!(runs_of(&[]), "");
    }
}
