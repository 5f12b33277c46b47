//! Suggestion of the known name that is most similar to an unknown one.
//!
//! Source: F. Damerau, "A technique for computer detection and correction of spelling errors"
//! (1964), as optimal string alignment. Invariant: a name that differs in more than a third of its
//! letters is not suggested.

/// Length limit of a compared name, in characters.
const LETTERS_MAX: usize = 64;

/// Returns the nearest of these names, if one is similar enough.
pub fn nearest<'a>(text: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let letters: Vec<char> = text.chars().take(LETTERS_MAX + 1).collect();
    if letters.len() > LETTERS_MAX {
        return None;
    }
    let most = (letters.len() / 3).max(1);
    let distances = known.into_iter().map(|name| (distance(&letters, name), name));
    distances.filter(|(far, _)| *far <= most).min_by_key(|(far, _)| *far).map(|(_, name)| name)
}

/// Formats the suggestion that follows an error message.
pub fn asked<'a>(text: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(text, known).map(|name| format!("did you mean {name:?}?"))
}

/// Returns the number of insertions, deletions, substitutions and transpositions between two names.
fn distance(text: &[char], name: &str) -> usize {
    let name: Vec<char> = name.chars().take(2 * LETTERS_MAX).collect();
    let mut above: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=text.len()).collect();
    for (line, letter) in name.iter().enumerate() {
        let mut next = vec![line + 1];
        for (at, other) in text.iter().enumerate() {
            let changed = row[at] + usize::from(letter != other);
            let mut least = changed.min(row[at + 1] + 1).min(next[at] + 1);
            let is_swapped = |(one, two): (char, char)| one == *other && two == *letter;
            if line > 0 && at > 0 && is_swapped((name[line - 1], text[at - 1])) {
                least = least.min(above[at - 1] + 1);
            }
            next.push(least);
        }
        above = std::mem::replace(&mut row, next);
    }
    row[text.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_names_are_found_and_different_ones_are_not() {
        let known = ["seed", "set", "step", "effort", "topology"];
        for (text, found) in [
            ("sed", Some("seed")),
            ("efort", Some("effort")),
            ("stpe", Some("step")),
            ("topolgy", Some("topology")),
            ("steps", Some("step")),
            ("colour", None),
            ("", None),
        ] {
            assert_eq!(nearest(text, known), found, "{text}");
        }
        assert_eq!(nearest(&"e".repeat(100_000), known), None);
    }
}
