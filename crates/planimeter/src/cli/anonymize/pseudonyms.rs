//! Pseudonyms for real names, consistent within a bundle.
//!
//! Source: replacement addresses are from ranges reserved for documentation and tests: RFC 5737,
//! RFC 2544 (IPv4), RFC 3849 (IPv6), locally administered MAC addresses (IEEE 802). Invariants:
//! - Values that identify no one stay (loopback, all zeros, all ones).
//! - Names are replaced as whole words, words of the user's choice anywhere.
//! - Case is ignored, except in interface names, which are case-sensitive.

use std::collections::HashMap;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Length limit of an address, in characters.
const ADDRESS_LETTERS_MAX: usize = 45;

/// Category of a pseudonym.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NameKind {
    /// A host name.
    Host,
    /// An interface name.
    Interface,
    /// A user name.
    User,
    /// A serial number, or a switch's name for itself.
    Serial,
    /// A word of the user's choice.
    Hidden,
}

/// Pseudonyms in use.
#[derive(Debug, Default)]
pub struct Pseudonyms {
    /// Words to replace, the longest first, each with its category.
    known: Vec<(String, NameKind)>,
    given: HashMap<(u8, String), String>,
    counts: HashMap<u8, u32>,
}

impl Pseudonyms {
    /// Adds a word to replace.
    pub fn learn(&mut self, sort: NameKind, word: &str) {
        let word = word.trim();
        let is_plain =
            matches!(word, "" | "lo" | "localhost" | "root" | "lab" | "None" | "unknown");
        let is_known = |(known, its): &(String, NameKind)| {
            known == word || *its != NameKind::Interface && folded(known) == folded(word)
        };
        if is_plain || word.len() < 2 || self.known.iter().any(is_known) {
            return;
        }
        let is_number = word.parse::<f64>().is_ok() && sort != NameKind::Hidden && word.len() < 6;
        // An address is replaced as an address.
        if is_number || word.parse::<Ipv4Addr>().is_ok() || word.parse::<Ipv6Addr>().is_ok() {
            return;
        }
        self.known.push((word.to_string(), sort));
        self.known.sort_by_key(|(word, _)| std::cmp::Reverse(word.len()));
    }

    /// Replaces every real name in the text.
    pub fn masked(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let (mut at, mut before) = (0, None);
        while at < text.len() {
            let rest = &text[at..];
            let found = self.word(rest, before).or_else(|| self.address(rest, before));
            let taken = match found {
                Some((taken, made_up)) => {
                    out += &made_up;
                    taken
                }
                None => {
                    let letter = rest.chars().next().expect("there is one");
                    out.push(letter);
                    letter.len_utf8()
                }
            };
            before = text[at..at + taken].chars().next_back();
            at += taken;
        }
        out
    }

    /// Returns the known word at the beginning of a text, with its replacement.
    fn word(&mut self, rest: &str, before: Option<char>) -> Option<(usize, String)> {
        const HOME: &str = "/home/";
        if let Some(behind) = rest.strip_prefix(HOME) {
            let end = behind.find(|letter: char| !is_of_word(letter) && !"-.".contains(letter));
            let user = &behind[..end.unwrap_or(behind.len())];
            if !user.is_empty() {
                let made_up = self.named(NameKind::User, user);
                return Some((HOME.len() + user.len(), format!("{HOME}{made_up}")));
            }
        }
        let stands_alone = |end: usize| {
            let after = rest[end..].chars().next();
            !before.is_some_and(is_of_word) && !after.is_some_and(is_of_word)
        };
        let (end, word, sort) = self.known.iter().find_map(|(word, sort)| {
            let end = match sort {
                NameKind::Interface => rest.starts_with(word.as_str()).then_some(word.len()),
                _ => folded_prefix(rest, word),
            }?;
            (*sort == NameKind::Hidden || stands_alone(end)).then(|| (end, word.clone(), *sort))
        })?;
        Some((end, self.named(sort, &word)))
    }

    fn named(&mut self, sort: NameKind, word: &str) -> String {
        let name = match sort {
            NameKind::Host => "host",
            NameKind::Interface => "eth",
            NameKind::User => "user",
            NameKind::Serial => "serial",
            NameKind::Hidden => "name",
        };
        let word = if sort == NameKind::Interface { word.to_string() } else { folded(word) };
        self.given(sort as u8, &word, |number| format!("{name}-{number}"))
    }

    fn given(&mut self, sort: u8, word: &str, make: impl Fn(u32) -> String) -> String {
        let key = (sort, word.to_string());
        if let Some(known) = self.given.get(&key) {
            return known.clone();
        }
        let number = self.counts.entry(sort).or_default();
        *number += 1;
        let made_up = make(*number);
        self.given.insert(key, made_up.clone());
        made_up
    }

    /// Returns the address or datapath ID at the beginning of a text, with its replacement.
    fn address(&mut self, rest: &str, before: Option<char>) -> Option<(usize, String)> {
        let first = rest.as_bytes()[0];
        let is_inside = |letter: char| is_of_word(letter) || letter == ':';
        if !(first.is_ascii_hexdigit() || first == b':') {
            return None;
        }
        // `tcp:192.0.2.1` has a colon before the address, `1@aa:bb..` has not.
        let stands_alone = !before.is_some_and(is_inside);
        if stands_alone && let Some(found) = self.octets(rest) {
            return Some(found);
        }
        if stands_alone && let Some(found) = self.ipv6(rest) {
            return Some(found);
        }
        if before.is_some_and(|letter| letter.is_ascii_alphanumeric() || letter == '.') {
            return None;
        }
        self.octets(rest).or_else(|| self.ipv4(rest)).or_else(|| self.datapath(rest))
    }

    /// Parses six octets of a MAC address or eight of a datapath ID, with colons or hyphens.
    fn octets(&mut self, rest: &str) -> Option<(usize, String)> {
        let bytes = rest.as_bytes();
        let sign = *bytes.get(2).filter(|sign| matches!(**sign, b':' | b'-'))?;
        let is_octet = |at: usize| {
            bytes.get(at..at + 2).is_some_and(|two| two.iter().all(u8::is_ascii_hexdigit))
        };
        let count = (0..9)
            .take_while(|octet| {
                is_octet(octet * 3) && (*octet == 0 || bytes.get(octet * 3 - 1) == Some(&sign))
            })
            .count();
        if !matches!(count, 6 | 8) {
            return None;
        }
        let end = count * 3 - 1;
        if bytes.get(end).is_some_and(|next| next.is_ascii_alphanumeric() || *next == sign) {
            return None;
        }
        let word = rest[..end].to_ascii_lowercase().replace('-', ":");
        let says_nothing =
            word.split(':').all(|it| it == "00") || word.split(':').all(|it| it == "ff");
        if says_nothing {
            return Some((end, rest[..end].to_string()));
        }
        let made_up = match count {
            6 => self.given(b'm', &word, |n| octets(0x0200_0000_0000 + u64::from(n), 6)),
            _ => {
                let number = self.datapath_number(&word.replace(':', ""));
                octets(number, 8)
            }
        };
        Some((end, if sign == b'-' { made_up.replace(':', "-") } else { made_up }))
    }

    fn ipv6(&mut self, rest: &str) -> Option<(usize, String)> {
        let is_part = |byte: &u8| byte.is_ascii_hexdigit() || matches!(byte, b':' | b'.');
        let run = rest.bytes().take(ADDRESS_LETTERS_MAX + 1).take_while(is_part).count();
        if rest[..run].matches(':').count() < 2 {
            return None;
        }
        let next_is_word = rest[run..].chars().next().is_some_and(is_of_word);
        let ends = (2..=run).rev().filter(|end| *end < run || !next_is_word);
        let mut found = ends.filter_map(|end| Some((end, rest[..end].parse::<Ipv6Addr>().ok()?)));
        let (end, address) = found.next()?;
        if address.is_loopback() || address.is_unspecified() {
            return Some((end, rest[..end].to_string()));
        }
        Some((end, self.given(b'6', &address.to_string(), |n| format!("2001:db8::{n:x}"))))
    }

    fn ipv4(&mut self, rest: &str) -> Option<(usize, String)> {
        let is_part = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
        let run = rest.bytes().take(ADDRESS_LETTERS_MAX).take_while(is_part).count();
        let text = rest[..run].trim_end_matches('.');
        let address: Ipv4Addr = text.parse().ok()?;
        if rest[text.len()..].chars().next().is_some_and(is_of_word) {
            return None;
        }
        if address.is_loopback() || address.is_unspecified() || address.is_broadcast() {
            return Some((text.len(), text.to_string()));
        }
        let made_up = self.given(b'4', text, |number| {
            let blocks = ["192.0.2", "198.51.100", "203.0.113"];
            let (block, host) = ((number - 1) / 254, (number - 1) % 254 + 1);
            match blocks.get(block as usize) {
                Some(block) => format!("{block}.{host}"),
                // In the range for network benchmarks.
                None => Ipv4Addr::from(0xc612_0000 | (number & 0x1_ffff)).to_string(),
            }
        });
        Some((text.len(), made_up))
    }

    /// Parses sixteen hexadecimal digits, optionally after `0x`.
    fn datapath(&mut self, rest: &str) -> Option<(usize, String)> {
        let prefix = if rest.starts_with("0x") { 2 } else { 0 };
        let digits = rest[prefix..].bytes().take(17).take_while(u8::is_ascii_hexdigit).count();
        let next = rest[prefix + digits..].chars().next();
        if digits != 16 || next.is_some_and(is_of_word) {
            return None;
        }
        let word = rest[prefix..prefix + 16].to_ascii_lowercase();
        let number = self.datapath_number(&word);
        Some((prefix + 16, format!("{}{number:016x}", &rest[..prefix])))
    }

    fn datapath_number(&mut self, word: &str) -> u64 {
        let text = self.given(b'd', word, |number| number.to_string());
        text.parse().expect("a number was given")
    }
}

fn octets(value: u64, count: usize) -> String {
    let bytes = value.to_be_bytes();
    let octets: Vec<String> = bytes[8 - count..].iter().map(|it| format!("{it:02x}")).collect();
    octets.join(":")
}

/// Folds the case of a letter: via upper case, because several lower-case letters may share one.
fn without_case(letter: char) -> impl Iterator<Item = char> {
    letter.to_uppercase().flat_map(char::to_lowercase)
}

/// Folds the case of a word.
fn folded(word: &str) -> String {
    word.chars().flat_map(without_case).collect()
}

/// Returns the length of a word at the beginning of a text, ignoring case. A space in the word also
/// matches its replacement in file names.
fn folded_prefix(text: &str, word: &str) -> Option<usize> {
    let mut wanted = word.chars().flat_map(without_case).peekable();
    for (at, letter) in text.char_indices() {
        if wanted.peek().is_none() {
            return Some(at);
        }
        let is_blank = letter.is_whitespace() || "-_.+".contains(letter);
        if is_blank && wanted.next_if(|wanted| wanted.is_whitespace()).is_some() {
            continue;
        }
        for own in without_case(letter) {
            // A letter that extends beyond the word's end belongs to it.
            if wanted.next().is_some_and(|wanted| wanted != own) {
                return None;
            }
        }
    }
    wanted.peek().is_none().then_some(text.len())
}

fn is_of_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_words_and_addresses_are_replaced_and_others_are_not() {
        let mut words = Pseudonyms::default();
        words.learn(NameKind::Interface, "enp3s0f1");
        words.learn(NameKind::Host, "core-sw-7");
        words.learn(NameKind::Serial, "FOC1234X0AB");
        words.learn(NameKind::Hidden, "Acme");
        for (real, made_up) in [
            (
                "openflow:tcp:10.1.2.3:6653,ports=1@enp3s0f1+2@eth9",
                "openflow:tcp:192.0.2.1:6653,ports=1@eth-1+2@eth9",
            ),
            ("core-sw-7.lab FOC1234X0AB", "host-1.lab serial-1"),
            ("core-sw-70 xcore-sw-7 enp3s0f10", "core-sw-70 xcore-sw-7 enp3s0f10"),
            ("TheAcmeSwitch", "Thename-1Switch"),
            ("10.1.2.3 10.1.2.4.", "192.0.2.1 192.0.2.2."),
            (
                "1.2.3 10.0.0.256 127.0.0.1 0.0.0.0 1.2.3.4.5",
                "1.2.3 10.0.0.256 127.0.0.1 0.0.0.0 1.2.3.4.5",
            ),
            ("AA:bb:cc:00:11:22, aa-bb-cc-00-11-22", "02:00:00:00:00:01, 02-00-00-00-00-01"),
            ("ff:ff:ff:ff:ff:ff", "ff:ff:ff:ff:ff:ff"),
            (
                "0x00a1b2c3d4e5f607 00:a1:b2:c3:d4:e5:f6:07",
                "0x0000000000000001 00:00:00:00:00:00:00:01",
            ),
            ("[fe80::1%eth9]:6653 ::1 fe80:0::1", "[2001:db8::1%eth9]:6653 ::1 2001:db8::1"),
            ("2026-01-31T12:34:56Z 12:34:56", "2026-01-31T12:34:56Z 12:34:56"),
            ("/home/jane.doe/x.toml /home/", "/home/user-1/x.toml /home/"),
            (
                "std::fs and a rate of 1234567890123456789",
                "std::fs and a rate of 1234567890123456789",
            ),
            ("é10.1.2.3é", "é10.1.2.3é"),
        ] {
            assert_eq!(words.masked(real), made_up, "{real}");
        }
    }

    #[test]
    fn a_word_is_found_in_any_case() {
        let mut words = Pseudonyms::default();
        words.learn(NameKind::Hidden, "Acme");
        words.learn(NameKind::Hidden, "ACME");
        words.learn(NameKind::Hidden, "Müller Straße");
        words.learn(NameKind::Hidden, "ΣΟΦΟΣ");
        words.learn(NameKind::Host, "Lab1.example");
        words.learn(NameKind::User, "Jane");
        words.learn(NameKind::Interface, "eth9");
        for (real, made_up) in [
            ("admin@acme.example", "admin@name-1.example"),
            ("ACME acme aCmE.COM", "name-1 name-1 name-1.COM"),
            ("2026-01-31-acme-1/TheAcmeSwitch", "2026-01-31-name-1-1/Thename-1Switch"),
            ("runs/müller-strasse_MÜLLER STRASSE", "runs/name-2_name-2"),
            ("σοφος σοφοσ", "name-3 name-3"),
            ("LAB1.EXAMPLE lab1.example2", "host-1 lab1.example2"),
            ("jane@x JANE /home/JANE janet", "user-1@x user-1 /home/user-1 janet"),
            ("eth9 ETH9", "eth-1 ETH9"),
            ("acm", "acm"),
        ] {
            assert_eq!(words.masked(real), made_up, "{real}");
        }
    }

    #[test]
    fn there_are_more_addresses_than_in_one_block() {
        let mut words = Pseudonyms::default();
        let mut seen = std::collections::BTreeSet::new();
        for number in 0..2000_u32 {
            let made_up = words.masked(&Ipv4Addr::from(0x0a00_0001 + number).to_string());
            assert!(seen.insert(made_up.clone()), "{made_up} twice");
        }
    }
}
