//! Decodes messages.

use super::fault::{WireFault, WireFaultKind};
use super::header::Header;
use super::message::{
    Body, Content, Data, Message, MessageKind, Operation, OperationKind, PathData, Redirect,
    Select, Selector, SetupResult, TeardownReason,
};
use super::outcome::{Outcome, ResultCode};
use super::tlv::{Part, Tlv, VENDOR};
use super::{HEADER_OCTETS, PATH_DEPTH_MAX};

/// The selector flags at the positions of RFC 7391 and tcpdump, and at those in RFC 5810's figure.
const KEY_FLAGS: u16 = 0x0001 | 0x8000;
const RANGE_FLAGS: u16 = 0x0002 | 0x4000;

/// Decodes one message, which occupies all of `bytes`.
///
/// It skips vendor TLVs and reserved bits, so encoding the message again omits them.
pub fn decode(bytes: &[u8]) -> Result<Message, WireFault> {
    let (header, framing) = Header::read(bytes)?;
    if framing.octets != bytes.len() {
        return Err(WireFault { at: 2, why: WireFaultKind::Length { octets: framing.octets } });
    }
    let mut rest = Part { bytes: &bytes[HEADER_OCTETS..], at: HEADER_OCTETS };
    let kind = framing.kind;
    let body = match kind {
        MessageKind::AssociationSetup => Body::AssociationSetup(selects(rest, kind)?),
        MessageKind::Config => Body::Config(selects(rest, kind)?),
        MessageKind::ConfigResponse => Body::ConfigResponse(selects(rest, kind)?),
        MessageKind::Query => Body::Query(selects(rest, kind)?),
        MessageKind::QueryResponse => Body::QueryResponse(selects(rest, kind)?),
        MessageKind::EventNotification => Body::EventNotification(selects(rest, kind)?),
        MessageKind::AssociationSetupResponse => {
            Body::AssociationSetupResponse(SetupResult(number(rest, Tlv::AsResult)?))
        }
        MessageKind::AssociationTeardown => {
            Body::AssociationTeardown(TeardownReason(number(rest, Tlv::AsReason)?))
        }
        MessageKind::Heartbeat => {
            while next(&mut rest, &[])?.is_some() {}
            Body::Heartbeat
        }
        MessageKind::PacketRedirect => {
            let mut all = Vec::new();
            while let Some((_, value)) = next(&mut rest, &[Tlv::Redirect])? {
                all.push(redirect(value)?);
            }
            Body::PacketRedirect(all)
        }
    };
    Ok(Message { header, body })
}

/// Returns the next TLV, which must be one of `known`; skips vendor TLVs.
fn next<'a>(rest: &mut Part<'a>, known: &[Tlv]) -> Result<Option<(Tlv, Part<'a>)>, WireFault> {
    while !rest.is_empty() {
        let start = *rest;
        let (kind, value) = rest.tlv()?;
        if let Some(tlv) = known.iter().find(|tlv| **tlv as u16 == kind) {
            return Ok(Some((*tlv, value)));
        }
        if kind < VENDOR {
            return Err(start.fault(WireFaultKind::Tlv(kind)));
        }
    }
    Ok(None)
}

/// Returns the number in a message's only TLV.
fn number(mut rest: Part<'_>, tlv: Tlv) -> Result<u32, WireFault> {
    let missing = rest.fault(WireFaultKind::Missing(tlv));
    let (_, mut value) = next(&mut rest, &[tlv])?.ok_or(missing)?;
    value.word()
}

fn selects(mut rest: Part<'_>, kind: MessageKind) -> Result<Vec<Select>, WireFault> {
    let mut all = Vec::new();
    while let Some((_, mut value)) = next(&mut rest, &[Tlv::Select])? {
        let (class, instance) = (value.word()?, value.word()?);
        let mut operations = Vec::new();
        while !value.is_empty() {
            let start = value;
            let (number, inner) = value.tlv()?;
            let known = OperationKind::from_wire(number);
            match known.filter(|known| kind.operations().contains(known)) {
                Some(known) => operations.push(operation(known, inner)?),
                None if number >= VENDOR => {}
                None => return Err(start.fault(WireFaultKind::Operation(number))),
            }
        }
        all.push(Select { class, instance, operations });
    }
    Ok(all)
}

fn operation(kind: OperationKind, mut rest: Part<'_>) -> Result<Operation, WireFault> {
    if kind.is_empty() {
        // RFC 5810 section 7.6.1: these have no value; ignore any.
        return Ok(Operation::on(kind, Vec::new()));
    }
    let known = [Tlv::PathData, Tlv::Result, Tlv::ExtendedResult];
    let mut paths = Vec::new();
    let mut ended = None;
    while let Some((tlv, value)) = next(&mut rest, &known)? {
        match tlv {
            Tlv::PathData if ended.is_none() => paths.push(path_data(value, 1)?),
            Tlv::Result | Tlv::ExtendedResult if paths.is_empty() => {
                ended = Some(outcome(tlv, value)?);
            }
            tlv => return Err(value.fault(WireFaultKind::Tlv(tlv as u16))),
        }
    }
    let content = ended.map_or(Content::Paths(paths), Content::Outcome);
    Ok(Operation { kind, content })
}

fn path_data(mut rest: Part<'_>, depth: usize) -> Result<PathData, WireFault> {
    if depth > PATH_DEPTH_MAX {
        return Err(rest.fault(WireFaultKind::PathDepth));
    }
    let start = rest;
    let (flags, count) = (rest.half()?, usize::from(rest.half()?));
    let mut ids_part = rest.take(count * 4)?;
    let mut ids = Vec::with_capacity(count);
    while !ids_part.is_empty() {
        ids.push(ids_part.word()?);
    }
    let mut path = PathData { ids, selector: None, data: Data::None };
    let known = [
        Tlv::KeyInfo,
        Tlv::TableRange,
        Tlv::FullData,
        Tlv::SparseData,
        Tlv::Result,
        Tlv::ExtendedResult,
        Tlv::PathData,
    ];
    let mut paths = Vec::new();
    while let Some((tlv, value)) = next(&mut rest, &known)? {
        let is_first = path.data == Data::None && paths.is_empty();
        match tlv {
            Tlv::KeyInfo | Tlv::TableRange if is_first && path.selector.is_none() => {
                path.selector = Some(selector(tlv, value)?);
            }
            Tlv::FullData if is_first => path.data = Data::Full(value.bytes.to_vec()),
            Tlv::SparseData if is_first => path.data = Data::Sparse(value.bytes.to_vec()),
            Tlv::Result | Tlv::ExtendedResult if is_first => {
                path.data = Data::Outcome(outcome(tlv, value)?);
            }
            // Use case 13 of the RFC has the new value after a result.
            Tlv::FullData if matches!(path.data, Data::Outcome(_)) => {}
            Tlv::PathData if path.data == Data::None => paths.push(path_data(value, depth + 1)?),
            tlv => return Err(value.fault(WireFaultKind::Tlv(tlv as u16))),
        }
    }
    if !paths.is_empty() {
        path.data = Data::Paths(paths);
    }
    let expected = match path.selector {
        None => 0,
        Some(Selector::Key { .. }) => KEY_FLAGS,
        Some(Selector::Range { .. }) => RANGE_FLAGS,
    };
    let said = flags & (KEY_FLAGS | RANGE_FLAGS);
    if said & !expected != 0 || (said == 0) != (expected == 0) {
        return Err(start.fault(WireFaultKind::PathFlags(flags)));
    }
    Ok(path)
}

fn selector(tlv: Tlv, mut value: Part<'_>) -> Result<Selector, WireFault> {
    if tlv == Tlv::TableRange {
        return Ok(Selector::Range { first: value.word()?, last: value.word()? });
    }
    let key = value.word()?;
    let missing = value.fault(WireFaultKind::Missing(Tlv::FullData));
    let (_, content) = next(&mut value, &[Tlv::FullData])?.ok_or(missing)?;
    Ok(Selector::Key { key, content: content.bytes.to_vec() })
}

fn outcome(tlv: Tlv, mut value: Part<'_>) -> Result<Outcome, WireFault> {
    let word = value.word()?;
    Ok(match tlv {
        Tlv::ExtendedResult => {
            Outcome::Extended { code: ResultCode(word), cause: value.bytes.to_vec() }
        }
        _ => Outcome::Plain((word >> 24) as u8),
    })
}

fn redirect(mut rest: Part<'_>) -> Result<Redirect, WireFault> {
    let mut redirect = Redirect::default();
    while let Some((tlv, mut value)) = next(&mut rest, &[Tlv::Metadata, Tlv::RedirectData])? {
        match tlv {
            Tlv::Metadata => {
                while !value.is_empty() {
                    let (id, content) = value.ilv()?;
                    redirect.metadata.push((id, content.bytes.to_vec()));
                }
            }
            _ if redirect.packet.is_none() => redirect.packet = Some(value.bytes.to_vec()),
            tlv => return Err(value.fault(WireFaultKind::Tlv(tlv as u16))),
        }
    }
    Ok(redirect)
}
