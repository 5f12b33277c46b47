//! Shell quoting of command lines: a run's record stores its command line, and a resumed run parses
//! it.
//!
//! Source: POSIX.1-2024, volume XCU, section 2.2 (quoting).

/// Quotes a word for a shell. Unlike `shlex`, it leaves `load=1,2` as users write it.
pub fn quoted(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-+=.,:/@%".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) {
        return word.to_string();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Splits a line of [`quoted`] words. A line with an open quote has no words.
pub fn split(line: &str) -> Vec<String> {
    shlex::split(line).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_words_round_trip() {
        let words = ["run", "load=1, 2", "", "it's", "a\\b", "stream=my file.toml", "$x", "''"];
        let line = words.map(quoted).join(" ");
        assert_eq!(split(&line), words);
    }

    #[test]
    fn plain_words_are_not_quoted() {
        let plain = "planimeter run bianco2010/fig3 --on router:cache=on --set load=1,2";
        let words: Vec<String> = split(plain).iter().map(|word| quoted(word)).collect();
        assert_eq!(words.join(" "), plain);
        assert_eq!(quoted("load=1, 2"), "'load=1, 2'");
    }
}
