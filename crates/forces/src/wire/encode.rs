//! Encodes messages.

use super::message::{
    Body, Content, Data, Message, Operation, PathData, Redirect, Select, Selector,
};
use super::outcome::Outcome;
use super::tlv::{Tlv, padding, put_ilv, put_tlv};
use super::{HEADER_OCTETS, MESSAGE_OCTETS_MAX, TLV_OCTETS_MAX};

/// A part of a message is too long for its length field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLong {
    /// The message, or the type of a TLV in words.
    pub what: &'static str,
    /// Octets that it would have.
    pub octets: usize,
}

const KEY_FLAG: u16 = 0x0001;
const RANGE_FLAG: u16 = 0x0002;

/// Appends the encoded message. On error `out` is unchanged.
///
/// The length of a TLV has 16 bits, and so does that of the message in four-octet words.
pub fn encode(message: &Message, out: &mut Vec<u8>) -> Result<(), TooLong> {
    let octets = message_octets(&message.body)?;
    let start = out.len();
    out.reserve(octets);
    message.header.write(message.body.kind(), octets, out);
    match &message.body {
        Body::AssociationSetupResponse(result) => {
            put_tlv(out, Tlv::AsResult as u16, |out| out.extend(result.0.to_be_bytes()));
        }
        Body::AssociationTeardown(reason) => {
            put_tlv(out, Tlv::AsReason as u16, |out| out.extend(reason.0.to_be_bytes()));
        }
        Body::PacketRedirect(all) => all.iter().for_each(|one| put_redirect(out, one)),
        Body::Heartbeat => {}
        body => body.selects().iter().for_each(|select| put_select(out, select)),
    }
    debug_assert_eq!(out.len() - start, octets, "lengths are counted while encoding");
    Ok(())
}

/// Returns the octets of a message with this body, or an error if a part is too long.
pub fn message_octets(body: &Body) -> Result<usize, TooLong> {
    check("the message", HEADER_OCTETS + body_octets(body)?, MESSAGE_OCTETS_MAX)
}

fn check(what: &'static str, octets: usize, max: usize) -> Result<usize, TooLong> {
    if octets > max { Err(TooLong { what, octets }) } else { Ok(octets) }
}

/// Returns the octets of a TLV with its padding, or an error if it is too long.
fn tlv(what: &'static str, value: usize) -> Result<usize, TooLong> {
    let octets = check(what, value + 4, TLV_OCTETS_MAX)?;
    Ok(octets + padding(octets))
}

fn body_octets(body: &Body) -> Result<usize, TooLong> {
    match body {
        Body::AssociationSetupResponse(_) | Body::AssociationTeardown(_) => Ok(8),
        Body::PacketRedirect(all) => sum(all, redirect_octets),
        Body::Heartbeat => Ok(0),
        body => sum(body.selects(), |select| {
            tlv("LFBselect", 8 + sum(&select.operations, operation_octets)?)
        }),
    }
}

fn sum<T>(all: &[T], octets: impl Fn(&T) -> Result<usize, TooLong>) -> Result<usize, TooLong> {
    all.iter().try_fold(0, |sum, one| Ok(sum + octets(one)?))
}

fn operation_octets(operation: &Operation) -> Result<usize, TooLong> {
    let value = match &operation.content {
        Content::Paths(paths) => sum(paths, path_octets)?,
        Content::Outcome(outcome) => outcome_octets(outcome)?,
    };
    tlv("an operation", value)
}

/// Returns the octets of a PATH-DATA, or an error if it is too long.
pub fn path_octets(path: &PathData) -> Result<usize, TooLong> {
    let selector = match &path.selector {
        None => 0,
        Some(Selector::Range { .. }) => 12,
        Some(Selector::Key { content, .. }) => tlv("KEYINFO", 4 + tlv("a key", content.len())?)?,
    };
    let data = match &path.data {
        Data::None => 0,
        Data::Full(bytes) => tlv("FULLDATA", bytes.len())?,
        Data::Sparse(bytes) => tlv("SPARSEDATA", bytes.len())?,
        Data::Outcome(outcome) => outcome_octets(outcome)?,
        Data::Paths(paths) => sum(paths, path_octets)?,
    };
    check("the ids of a path", path.ids.len() * 4, TLV_OCTETS_MAX)?;
    tlv("PATH-DATA", 4 + path.ids.len() * 4 + selector + data)
}

fn outcome_octets(outcome: &Outcome) -> Result<usize, TooLong> {
    match outcome {
        Outcome::Plain(_) => Ok(8),
        Outcome::Extended { cause, .. } => tlv("EXTENDEDRESULT", 4 + cause.len()),
    }
}

fn redirect_octets(redirect: &Redirect) -> Result<usize, TooLong> {
    let ilv = |(_, content): &(u32, Vec<u8>)| content.len() + 8 + padding(content.len());
    let metadata = match redirect.metadata.is_empty() {
        true => 0,
        false => tlv("METADATA", redirect.metadata.iter().map(ilv).sum())?,
    };
    let packet = redirect.packet.as_ref().map(|packet| tlv("REDIRECTDATA", packet.len()));
    tlv("REDIRECT", metadata + packet.transpose()?.unwrap_or(0))
}

fn put_select(out: &mut Vec<u8>, select: &Select) {
    put_tlv(out, Tlv::Select as u16, |out| {
        out.extend(select.class.to_be_bytes());
        out.extend(select.instance.to_be_bytes());
        for operation in &select.operations {
            put_tlv(out, operation.kind.wire(), |out| match &operation.content {
                Content::Paths(paths) => paths.iter().for_each(|path| put_path(out, path)),
                Content::Outcome(outcome) => put_outcome(out, outcome),
            });
        }
    });
}

fn put_path(out: &mut Vec<u8>, path: &PathData) {
    put_tlv(out, Tlv::PathData as u16, |out| {
        let flags = match path.selector {
            None => 0,
            Some(Selector::Key { .. }) => KEY_FLAG,
            Some(Selector::Range { .. }) => RANGE_FLAG,
        };
        out.extend(flags.to_be_bytes());
        out.extend((path.ids.len() as u16).to_be_bytes());
        path.ids.iter().for_each(|id| out.extend(id.to_be_bytes()));
        match &path.selector {
            None => {}
            Some(Selector::Range { first, last }) => put_tlv(out, Tlv::TableRange as u16, |out| {
                out.extend(first.to_be_bytes());
                out.extend(last.to_be_bytes());
            }),
            Some(Selector::Key { key, content }) => put_tlv(out, Tlv::KeyInfo as u16, |out| {
                out.extend(key.to_be_bytes());
                put_tlv(out, Tlv::FullData as u16, |out| out.extend(content));
            }),
        }
        match &path.data {
            Data::None => {}
            Data::Full(bytes) => put_tlv(out, Tlv::FullData as u16, |out| out.extend(bytes)),
            Data::Sparse(bytes) => put_tlv(out, Tlv::SparseData as u16, |out| out.extend(bytes)),
            Data::Outcome(outcome) => put_outcome(out, outcome),
            Data::Paths(paths) => paths.iter().for_each(|path| put_path(out, path)),
        }
    });
}

fn put_outcome(out: &mut Vec<u8>, outcome: &Outcome) {
    match outcome {
        Outcome::Plain(code) => {
            put_tlv(out, Tlv::Result as u16, |out| out.extend([*code, 0, 0, 0]));
        }
        Outcome::Extended { code, cause } => put_tlv(out, Tlv::ExtendedResult as u16, |out| {
            out.extend(code.0.to_be_bytes());
            out.extend(cause);
        }),
    }
}

fn put_redirect(out: &mut Vec<u8>, redirect: &Redirect) {
    put_tlv(out, Tlv::Redirect as u16, |out| {
        if !redirect.metadata.is_empty() {
            put_tlv(out, Tlv::Metadata as u16, |out| {
                for (id, content) in &redirect.metadata {
                    put_ilv(out, *id, |out| out.extend(content));
                }
            });
        }
        if let Some(packet) = &redirect.packet {
            put_tlv(out, Tlv::RedirectData as u16, |out| out.extend(packet));
        }
    });
}
