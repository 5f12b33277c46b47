//! Messages of version 3: authentication and encryption.
//!
//! Source: RFC 3412, section 6 (message format), RFC 3414, sections 2.4, 3 and 6. The
//! authentication code covers the whole message with zeros in the code's field. The code's position
//! is located in the received bytes, because another encoder may choose other lengths.

use rasn::ber;
use rasn::types::{Integer, OctetString};
use rasn_snmp::v3::{HeaderData, Message, ScopedPdu, ScopedPduData, USMSecurityParameters};

use crate::usm::{Keys, SALT_BYTES};
use crate::{DATAGRAM_BYTES_MAX, DecodeError, Pdu};

const VERSION_3: i64 = 3;
const USER_BASED: i64 = 3;

/// Message flags (RFC 3412, section 6.4).
const SIGNED: u8 = 1;
const ENCRYPTED: u8 = 2;
const REPORTABLE: u8 = 4;

/// Maximum length of an engine identifier in bytes (RFC 3411, SnmpEngineID).
pub const ENGINE_ID_BYTES_MAX: usize = 32;

/// The unencrypted header fields of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cover {
    /// The message identifier, which the response repeats.
    pub message_id: i32,
    /// Whether errors in the message may be reported.
    pub is_reportable: bool,
    /// The identifier of the authoritative engine, which is the agent's.
    pub engine_id: Vec<u8>,
    /// Number of starts of that engine.
    pub boots: u32,
    /// Seconds since its last start.
    pub time: u32,
    /// The user name.
    pub user: Vec<u8>,
}

/// A parsed message, before authentication and decryption.
pub struct SnmpV3Message {
    /// The header fields.
    pub cover: Cover,
    flags: u8,
    tag: Vec<u8>,
    salt: Vec<u8>,
    data: ScopedPduData,
    /// The message with zeros in place of the authentication code.
    unsigned: Vec<u8>,
}

/// Reason why a message is not trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsmError {
    /// The authentication code does not match the key.
    Forged,
    /// The message is not authenticated or not encrypted, although required.
    Unprotected,
    /// The message cannot be decoded.
    Unreadable(DecodeError),
}

/// Encodes a message. `salt` must not repeat.
pub fn seal(cover: &Cover, pdu: &Pdu, keys: Option<&Keys>, salt: u64) -> Vec<u8> {
    let signs = keys.is_some_and(Keys::signs);
    let encrypts = keys.is_some_and(Keys::encrypts);
    let scoped = ScopedPdu {
        engine_id: OctetString::from(&cover.engine_id[..]),
        name: OctetString::from(&[][..]),
        data: pdu.wire(),
    };
    let salt = salt.to_be_bytes();
    let scoped_data = match keys.filter(|_| encrypts) {
        None => ScopedPduData::CleartextPdu(scoped),
        Some(keys) => {
            let mut bytes = ber::encode(&scoped).expect("a request can be encoded");
            keys.encrypt([cover.boots, cover.time], salt, &mut bytes);
            ScopedPduData::EncryptedPdu(bytes.into())
        }
    };
    let tag_bytes = keys.map_or(0, Keys::tag_bytes);
    let security = USMSecurityParameters {
        authoritative_engine_id: OctetString::from(&cover.engine_id[..]),
        authoritative_engine_boots: cover.boots.into(),
        authoritative_engine_time: cover.time.into(),
        user_name: OctetString::from(&cover.user[..]),
        authentication_parameters: vec![0; tag_bytes].into(),
        privacy_parameters: OctetString::from(if encrypts { &salt[..] } else { &[] }),
    };
    let flag = |is: bool, flag: u8| if is { flag } else { 0 };
    let flags =
        flag(signs, SIGNED) | flag(encrypts, ENCRYPTED) | flag(cover.is_reportable, REPORTABLE);
    let message = Message {
        version: Integer::from(VERSION_3),
        global_data: HeaderData {
            message_id: cover.message_id.into(),
            max_size: Integer::from(DATAGRAM_BYTES_MAX as i64),
            flags: OctetString::from([flags]),
            security_model: Integer::from(USER_BASED),
        },
        security_parameters: ber::encode(&security).expect("a request can be encoded").into(),
        scoped_data,
    };
    let mut bytes = ber::encode(&message).expect("a request can be encoded");
    if let Some(keys) = keys.filter(|_| signs) {
        let tag = keys.sign(&bytes);
        let at = signature(&bytes).expect("a request has room for the signature");
        bytes[at.clone()].copy_from_slice(&tag);
    }
    bytes
}

impl SnmpV3Message {
    /// Parses what can be read without keys.
    pub fn read(bytes: &[u8]) -> Result<SnmpV3Message, DecodeError> {
        let wrong = |_| DecodeError("not a message of version 3");
        if bytes.len() > DATAGRAM_BYTES_MAX {
            return Err(DecodeError("longer than a datagram"));
        }
        let message: Message = ber::decode(bytes).map_err(wrong)?;
        let header = &message.global_data;
        if message.version != Integer::from(VERSION_3)
            || header.security_model != Integer::from(USER_BASED)
        {
            return Err(DecodeError("another version or security model"));
        }
        let &[flags] = header.flags.as_ref() else {
            return Err(DecodeError("the flags are not one byte"));
        };
        let security: USMSecurityParameters =
            ber::decode(&message.security_parameters).map_err(wrong)?;
        let whole = |number: &Integer| u32::try_from(number).ok().filter(|it| *it < 1 << 31);
        let out_of_range = DecodeError("a number is out of range");
        let cover = Cover {
            message_id: i32::try_from(&header.message_id).map_err(|_| out_of_range)?,
            is_reportable: flags & REPORTABLE != 0,
            engine_id: security.authoritative_engine_id.to_vec(),
            boots: whole(&security.authoritative_engine_boots).ok_or(out_of_range)?,
            time: whole(&security.authoritative_engine_time).ok_or(out_of_range)?,
            user: security.user_name.to_vec(),
        };
        if cover.engine_id.len() > ENGINE_ID_BYTES_MAX {
            return Err(DecodeError("the engine ID is too long"));
        }
        let place = signature(bytes).ok_or(DecodeError("no room for the signature"))?;
        let mut unsigned = bytes.to_vec();
        unsigned[place].fill(0);
        Ok(SnmpV3Message {
            cover,
            flags,
            tag: security.authentication_parameters.to_vec(),
            salt: security.privacy_parameters.to_vec(),
            data: message.scoped_data,
            unsigned,
        })
    }

    /// Whether the message has an authentication code.
    pub fn is_signed(&self) -> bool {
        self.flags & SIGNED != 0
    }

    /// Whether the message has the security level of these keys.
    pub fn is_protected_by(&self, keys: &Keys) -> bool {
        keys.signs() == self.is_signed() && keys.encrypts() == (self.flags & ENCRYPTED != 0)
    }

    /// Decrypts and decodes the message. Checks the authentication code, if there is one, with
    /// these keys. A report does not need encryption.
    pub fn open(&self, keys: &Keys) -> Result<Pdu, UsmError> {
        if self.is_signed() && !keys.is_signed(&self.unsigned, &self.tag) {
            return Err(UsmError::Forged);
        }
        match &self.data {
            ScopedPduData::CleartextPdu(_) => self.plain().map_err(UsmError::Unreadable),
            ScopedPduData::EncryptedPdu(bytes) if keys.encrypts() => {
                let salt = <[u8; SALT_BYTES]>::try_from(&self.salt[..]);
                let unreadable =
                    UsmError::Unreadable(DecodeError("the salt does not have 8 bytes"));
                let mut bytes = bytes.to_vec();
                let clock = [self.cover.boots, self.cover.time];
                keys.decrypt(clock, salt.map_err(|_| unreadable)?, &mut bytes);
                // The remainder is padding.
                let opened = ber::decode_with_remainder::<ScopedPdu>(&bytes);
                let (scoped, _) = opened.map_err(|_| UsmError::Forged)?;
                Pdu::of_wire(&scoped.data).map_err(UsmError::Unreadable)
            }
            ScopedPduData::EncryptedPdu(_) => Err(UsmError::Unprotected),
        }
    }

    /// Decodes an unencrypted message without authentication.
    pub fn plain(&self) -> Result<Pdu, DecodeError> {
        match &self.data {
            ScopedPduData::CleartextPdu(scoped) => Pdu::of_wire(&scoped.data),
            ScopedPduData::EncryptedPdu(_) => Err(DecodeError("encrypted")),
        }
    }
}

/// Returns the position of the authentication code in a message.
fn signature(bytes: &[u8]) -> Option<std::ops::Range<usize>> {
    let message = Element::at(bytes, 0..bytes.len())?;
    let version = Element::at(bytes, message.content)?;
    let header = Element::at(bytes, version.behind)?;
    let security = Element::at(bytes, header.behind)?;
    let parameters = Element::at(bytes, security.content)?;
    let engine = Element::at(bytes, parameters.content)?;
    let boots = Element::at(bytes, engine.behind)?;
    let time = Element::at(bytes, boots.behind)?;
    let user = Element::at(bytes, time.behind)?;
    Some(Element::at(bytes, user.behind)?.content)
}

/// Position of a BER element of definite length with a tag of one byte, as SNMP requires (RFC 3417,
/// section 8).
struct Element {
    content: std::ops::Range<usize>,
    behind: std::ops::Range<usize>,
}

impl Element {
    /// Returns the first element within a range.
    fn at(bytes: &[u8], within: std::ops::Range<usize>) -> Option<Element> {
        let part = bytes.get(within.clone())?;
        let (_tag, rest) = part.split_first()?;
        let (&first, rest) = rest.split_first()?;
        let (length, rest) = match first {
            0..=0x7f => (usize::from(first), rest),
            0x81..=0x84 => {
                let (length, rest) = rest.split_at_checked(usize::from(first - 0x80))?;
                (length.iter().fold(0, |sum, &byte| sum << 8 | usize::from(byte)), rest)
            }
            _ => return None,
        };
        let start = within.end - rest.len();
        let end = start.checked_add(length).filter(|&end| end <= within.end)?;
        Some(Element { content: start..end, behind: end..within.end })
    }
}
