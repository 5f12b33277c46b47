//! Suggestion of the known name that is most similar to an unknown one.
//!
//! Source: F. Damerau, "A technique for computer detection and correction of spelling errors"
//! (1964), as optimal string alignment. Invariant: a name that differs in more than a third of its
//! letters is not suggested.

/// Length limit of a compared name, in characters.
const LETTERS_MAX: usize = 64;

/// Returns the nearest of these names, if one is similar enough.
pub fn nearest<'a>(text: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let letters = text.chars().take(LETTERS_MAX + 1).count();
    if letters > LETTERS_MAX {
        return None;
    }
    let most = (letters / 3).max(1);
    let distances = known.into_iter().map(|name| (strsim::osa_distance(text, name), name));
    distances.filter(|(far, _)| *far <= most).min_by_key(|(far, _)| *far).map(|(_, name)| name)
}

/// Formats the suggestion that follows an error message.
pub fn asked<'a>(text: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(text, known).map(|name| format!("did you mean {name:?}?"))
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
