//! Raw messages that no encoder of this project produces.
//!
//! Bytes behind a header of any type and version, whole messages with another length, and flow-mods
//! whose match is any bytes.

use openflow::codec;
use openflow::model::flow::FlowMod;
use openflow::model::matching::Match;
use openflow::model::*;
use openflow::version::{MessageKind, Version};

use crate::frame::number;

/// Returns a message's bytes, truncated or extended by zeros, with a matching length field.
pub fn with_another_length(
    version: Version,
    message: &Message,
    by: usize,
    is_cut: bool,
) -> Vec<u8> {
    let mut bytes = Vec::new();
    codec::encode(version, 0x7777_0003, message, &mut bytes)
        .expect("the message of a case can be encoded");
    let length = if is_cut { bytes.len() - by } else { bytes.len() + by };
    bytes.resize(length, 0);
    bytes[2..4].copy_from_slice(&(length as u16).to_be_bytes());
    bytes
}

/// A raw message header: the type by number or name, and a version if it differs.
pub struct RawHeader {
    kind: Kind,
    version: Option<u8>,
}

enum Kind {
    Number(u8),
    Name(MessageKind),
}

impl RawHeader {
    /// The whole message.
    pub fn message(&self, version: Version, body: &[u8]) -> Vec<u8> {
        let kind = match self.kind {
            Kind::Number(number) => number,
            Kind::Name(kind) => kind.code(version).unwrap_or(u8::MAX),
        };
        let mut bytes = vec![self.version.unwrap_or(version.wire()), kind];
        bytes.extend((8 + body.len() as u16).to_be_bytes());
        bytes.extend(0x7777_0001_u32.to_be_bytes());
        bytes.extend(body);
        bytes
    }
}

/// Returns the header that the first words name, and the remaining words.
pub fn header_words<'a>(words: &'a [&'a str]) -> Result<(RawHeader, &'a [&'a str]), String> {
    let (mut words, mut version) = (words, None);
    if let Some(text) = words.first().and_then(|word| word.strip_prefix("version=")) {
        version = Some(number(text)? as u8);
        words = &words[1..];
    }
    let (kind, words) = words.split_first().ok_or("which type?")?;
    let named = MessageKind::ALL.iter().find(|one| one.name() == *kind);
    let kind = match named {
        Some(kind) => Kind::Name(*kind),
        None => Kind::Number(number(kind)? as u8),
    };
    Ok((RawHeader { kind, version }, words))
}

/// Parses hexadecimal digits.
pub fn hex(words: &[&str]) -> Result<Vec<u8>, String> {
    let digits = words.concat();
    if digits.len() % 2 == 1 {
        return Err("half a byte".into());
    }
    let bytes = (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16));
    bytes.collect::<Result<_, _>>().map_err(|_| format!("{digits:?} is not hexadecimal"))
}

/// Returns a flow-mod of 1.2 or later whose match consists of these bytes.
pub fn flow_mod_with(version: Version, oxm: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let change = Message::FlowMod(FlowMod::add(Match::ANY, 1, Vec::new()));
    codec::encode(version, 0x7777_0002, &change, &mut bytes)
        .expect("an empty flow-mod can be encoded");
    // Header and fixed part are 48 bytes; type and length of the match follow.
    bytes.truncate(48);
    bytes.extend(1u16.to_be_bytes());
    bytes.extend((4 + oxm.len() as u16).to_be_bytes());
    bytes.extend(oxm);
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    let length = bytes.len() as u16;
    bytes[2..4].copy_from_slice(&length.to_be_bytes());
    bytes
}

/// Returns the kind of a message in bytes.
pub fn kind_of(bytes: &[u8]) -> Option<MessageKind> {
    let version = Version::from_wire(*bytes.first()?)?;
    MessageKind::from_code(version, *bytes.get(1)?)
}
