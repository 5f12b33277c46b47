//! Text form of filter entries: words separated by commas, such as
//! `drop,src=10.0.0.0/8,proto=udp,dport=53`.
//!
//! - `capture` (the default) or `drop`
//! - `src=` and `dst=`: an address, optionally with `/LENGTH` or `/MASK`
//! - `proto=`: a name or a number
//! - `sport=` and `dport=`: a number, decimal or `0x`, optionally with `/MASK`
//! - `any`: an entry that matches every frame
//!
//! A file has one entry per line, and `#` starts a comment.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::fmt;

use super::{ENTRIES_MAX, Entry, Network, PortRange, Verdict, Version};

/// Maximum size of the text of an entry in bytes.
pub const ENTRY_BYTES_MAX: usize = 512;

/// Protocol names with their IANA numbers.
const PROTOCOLS: [(&str, u8); 9] = [
    ("icmp", 1),
    ("igmp", 2),
    ("tcp", 6),
    ("udp", 17),
    ("gre", 47),
    ("esp", 50),
    ("icmpv6", 58),
    ("ospf", 89),
    ("sctp", 132),
];

/// Syntax error with its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextError {
    /// Line of the file, from 1; none for a single entry.
    pub line: Option<usize>,
    /// Column of the invalid word, from 1.
    pub column: usize,
    /// The invalid word.
    pub word: String,
    /// Reason and hint.
    pub why: String,
}

/// Parses an entry.
pub fn entry(text: &str) -> Result<Entry, TextError> {
    let wrong = |column: usize, word: &str, why: String| {
        Err(TextError { line: None, column, word: word.chars().take(64).collect(), why })
    };
    if text.len() > ENTRY_BYTES_MAX {
        let why = format!("{} bytes, at most {ENTRY_BYTES_MAX} are allowed", text.len());
        return wrong(1, text, why);
    }
    let mut entry = Entry::any(Verdict::Capture);
    let mut said: Vec<&str> = Vec::new();
    let mut column = 1;
    for part in text.split(',') {
        let word = part.trim();
        let start = column + part.chars().take_while(|letter| letter.is_whitespace()).count();
        column += part.chars().count() + 1;
        let (key, value) = word.split_once('=').map_or((word, None), |(key, it)| (key, Some(it)));
        let is_verdict = |key: &str| matches!(key, "capture" | "drop");
        if said.iter().any(|&other| other == key || is_verdict(other) && is_verdict(key)) {
            return wrong(start, word, format!("{key} is given twice (hint: remove one)"));
        }
        said.push(key);
        if let Err(why) = set(&mut entry, key, value) {
            return wrong(start, word, why);
        }
        let versions = entry.source.zip(entry.destination);
        if versions.is_some_and(|(source, destination)| source.version != destination.version) {
            return wrong(
                start,
                word,
                "src and dst mix IPv4 and IPv6 (hint: use one of them)".into(),
            );
        }
    }
    let asks = said.iter().filter(|key| !matches!(**key, "capture" | "drop" | "any")).count();
    let says_any = said.contains(&"any");
    if says_any == (asks > 0) {
        let why = if says_any {
            "any with another condition (hint: remove any)"
        } else {
            "no condition (hint: write any to match all frames)"
        };
        return wrong(1, text, why.into());
    }
    Ok(entry)
}

/// Parses a file with one entry per line.
pub fn file(text: &str) -> Result<Vec<Entry>, TextError> {
    let mut entries = Vec::new();
    for (place, line) in text.lines().enumerate() {
        let said = line.split('#').next().unwrap_or_default();
        if said.trim().is_empty() {
            continue;
        }
        let number = Some(place + 1);
        if entries.len() == ENTRIES_MAX {
            let why = format!("too many entries: at most {ENTRIES_MAX}");
            let word = said.trim().chars().take(64).collect();
            return Err(TextError { line: number, column: 1, word, why });
        }
        entries.push(entry(said).map_err(|error| TextError { line: number, ..error })?);
    }
    Ok(entries)
}

fn set(entry: &mut Entry, key: &str, value: Option<&str>) -> Result<(), String> {
    match (key, value) {
        ("capture", None) => entry.verdict = Verdict::Capture,
        ("drop", None) => entry.verdict = Verdict::Drop,
        ("any", None) => {}
        ("src", Some(value)) => entry.source = Some(network(value)?),
        ("dst", Some(value)) => entry.destination = Some(network(value)?),
        ("proto", Some(value)) => entry.protocol = Some(protocol(value)?),
        ("sport", Some(value)) => entry.source_port = Some(ports(value)?),
        ("dport", Some(value)) => entry.destination_port = Some(ports(value)?),
        _ => {
            return Err("unknown word (hint: use capture, drop, any, src=ADDRESS[/MASK], \
                 dst=ADDRESS[/MASK], proto=NAME, sport=PORT[/MASK] or dport=PORT[/MASK])"
                .into());
        }
    }
    Ok(())
}

fn network(text: &str) -> Result<Network, String> {
    let (address, mask) = text.split_once('/').map_or((text, None), |(it, mask)| (it, Some(mask)));
    let address: IpAddr = address.parse().map_err(|_| {
        "not an address (hint: write it like 10.0.0.0/8, 10.0.0.1 or fe80::/10)".to_string()
    })?;
    let bits = if address.is_ipv4() { 32 } else { 128 };
    let ones = |length: u32| u128::MAX.checked_shl(128 - length).unwrap_or(0) >> (128 - bits);
    let mask = match (mask, address) {
        (None, _) => ones(bits),
        (Some(mask), _) if mask.bytes().all(|byte| byte.is_ascii_digit()) => {
            let length = mask.parse().ok().filter(|length| *length <= bits);
            ones(length.ok_or(format!("invalid prefix length (hint: use 0 to {bits} bits)"))?)
        }
        (Some(mask), IpAddr::V4(_)) => {
            mask.parse().map(|mask: Ipv4Addr| u128::from(mask.to_bits())).map_err(|_| {
                "invalid mask (hint: write a length of 0 to 32 or a mask like 255.255.0.255 after \
                 /)"
            })?
        }
        (Some(mask), IpAddr::V6(_)) => {
            mask.parse().map(|mask: Ipv6Addr| mask.to_bits()).map_err(|_| {
                "invalid mask (hint: write a length of 0 to 128 or a mask like ffff:ffff:: after \
                 /)"
            })?
        }
    };
    let network = match address {
        IpAddr::V4(value) => Network::v4(value, Ipv4Addr::from_bits(mask as u32)),
        IpAddr::V6(value) => Network::v6(value, Ipv6Addr::from_bits(mask)),
    };
    let value = match address {
        IpAddr::V4(value) => u128::from(value.to_bits()),
        IpAddr::V6(value) => value.to_bits(),
    };
    if value != network.value {
        return Err(format!("bits outside the mask (hint: write {network})"));
    }
    Ok(network)
}

fn protocol(text: &str) -> Result<u8, String> {
    let named = PROTOCOLS.iter().find(|(name, _)| *name == text).map(|&(_, number)| number);
    named.or_else(|| text.parse().ok()).ok_or_else(|| {
        let names: Vec<&str> = PROTOCOLS.iter().map(|(name, _)| *name).collect();
        format!(
            "unknown protocol (hint: use a number from 0 to 255 or one of {})",
            names.join(", ")
        )
    })
}

fn ports(text: &str) -> Result<PortRange, String> {
    let number = |text: &str| match text.strip_prefix("0x") {
        _ if text.contains('+') => None,
        Some(digits) => u16::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    let (value, mask) = text.split_once('/').map_or((text, "0xffff"), |both| both);
    let why =
        "invalid port (hint: use 0 to 65535, with an optional mask, like 53 or 0x1000/0xf000)";
    let (value, mask) = number(value).zip(number(mask)).ok_or(why)?;
    if value & !mask != 0 {
        let fits = PortRange::new(value, mask);
        return Err(format!("bits outside the mask (hint: write {fits})"));
    }
    if mask == 0 {
        return Err("a mask of 0 has no effect (hint: remove it)".into());
    }
    Ok(PortRange { value, mask })
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}, ")?;
        }
        write!(f, "character {}, {:?}: {}", self.column, self.word, self.why)
    }
}

impl std::error::Error for TextError {}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (bits, length) = match self.version {
            Version::V4 => (32, (self.mask as u32).leading_ones()),
            Version::V6 => (128, self.mask.leading_ones()),
        };
        let show = |number: u128| -> IpAddr {
            match self.version {
                Version::V4 => Ipv4Addr::from_bits(number as u32).into(),
                Version::V6 => Ipv6Addr::from_bits(number).into(),
            }
        };
        write!(f, "{}", show(self.value))?;
        match (self.mask.count_ones() == length, length == bits) {
            (true, true) => Ok(()),
            (true, false) => write!(f, "/{length}"),
            (false, _) => write!(f, "/{}", show(self.mask)),
        }
    }
}

impl fmt::Display for PortRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.mask {
            0xffff => write!(f, "{}", self.value),
            mask => write!(f, "{:#x}/{mask:#x}", self.value),
        }
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.verdict == Verdict::Capture { "capture" } else { "drop" })?;
        if *self == Entry::any(self.verdict) {
            return f.write_str(",any");
        }
        let mut say = |key: &str, value: Option<&dyn fmt::Display>| {
            value.map_or(Ok(()), |value| write!(f, ",{key}={value}"))
        };
        say("src", self.source.as_ref().map(|it| it as _))?;
        say("dst", self.destination.as_ref().map(|it| it as _))?;
        if let Some(number) = self.protocol {
            match PROTOCOLS.iter().find(|(_, known)| *known == number) {
                Some((name, _)) => say("proto", Some(name))?,
                None => say("proto", Some(&number))?,
            }
        }
        say("sport", self.source_port.as_ref().map(|it| it as _))?;
        say("dport", self.destination_port.as_ref().map(|it| it as _))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_round_trip_as_text() {
        for (text, shown) in [
            ("any", "capture,any"),
            (" drop , any ", "drop,any"),
            ("src=10.0.0.0/8,proto=udp,dport=53", "capture,src=10.0.0.0/8,proto=udp,dport=53"),
            ("dst=192.0.2.1/32,drop", "drop,dst=192.0.2.1"),
            ("src=10.0.0.1/255.0.0.255", "capture,src=10.0.0.1/255.0.0.255"),
            ("src=0.0.0.0/0,dst=0.0.0.0/0", "capture,src=0.0.0.0/0,dst=0.0.0.0/0"),
            ("src=fe80::/10,proto=58", "capture,src=fe80::/10,proto=icmpv6"),
            ("dst=::1/::ffff", "capture,dst=::1/::ffff"),
            ("proto=255,sport=0x1000/0xf000", "capture,proto=255,sport=0x1000/0xf000"),
        ] {
            let read = entry(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(read.to_string(), shown);
            assert_eq!(entry(shown), Ok(read));
        }
    }

    #[test]
    fn errors_name_the_position_and_a_remedy() {
        for (text, column, words) in [
            ("", 1, "unknown word"),
            ("drop", 1, "write any"),
            ("src=10.0.0.0/8,any", 1, "remove any"),
            ("any,any", 5, "is given twice"),
            ("drop,capture,any", 6, "is given twice"),
            ("proto=udp, port=53", 12, "unknown word"),
            ("src", 1, "unknown word"),
            ("any=1", 1, "unknown word"),
            ("src=10.0.0", 1, "not an address"),
            ("src=10.0.0.1/8", 1, "write 10.0.0.0/8"),
            ("src=10.0.0.0/33", 1, "0 to 32"),
            ("src=::/129", 1, "0 to 128"),
            ("src=::/-1", 1, "0 to 128"),
            ("src=10.0.0.0/ff00::", 1, "255.255.0.255"),
            ("src=10.0.0.1,dst=::1", 14, "mix IPv4 and IPv6"),
            ("proto=256", 1, "0 to 255"),
            ("dport=65536", 1, "0 to 65535"),
            ("dport=5/0xf0", 1, "write 0x0/0xf0"),
            ("dport=0/0", 1, "remove it"),
            ("dport=0x+5", 1, "0 to 65535"),
        ] {
            let error = entry(text).expect_err(text);
            assert_eq!(error.column, column, "{text}: {error}");
            assert!(error.to_string().contains(words), "{text}: {error}");
        }
        assert!(entry(&"x".repeat(600)).unwrap_err().to_string().contains("512"));
    }

    #[test]
    fn a_file_has_comments_and_errors_name_the_line() {
        let entries = file("# all of it\n\n drop,dport=53 # names\nany\n").unwrap();
        assert_eq!(entries.len(), 2);
        let error = file("any\n  any,sport=x\n").unwrap_err();
        assert!(error.to_string().starts_with("line 2, character 7, \"sport=x\":"), "{error}");
        let many = "any\n".repeat(ENTRIES_MAX + 1);
        assert_eq!(file(&many).unwrap_err().line, Some(ENTRIES_MAX + 1));
    }
}
