//! Requests and responses (RFC 3416), and their encoding in version 2c (RFC 1901).
//!
//! Invariant: any bytes decode to a [`Pdu`] or to an error.

use rasn::ber;
use rasn::types::{Integer, OctetString};
use rasn_snmp::v2::{self, Pdus};
use rasn_snmp::v2c;

use crate::{Binding, DATAGRAM_BYTES_MAX};

/// Version number in messages of version 2c.
const VERSION_2C: i64 = 1;

/// A request or a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pdu {
    /// The PDU type.
    pub kind: Kind,
    /// The request identifier, which the response repeats.
    pub id: i32,
    /// The requested or returned bindings.
    pub bindings: Vec<Binding>,
}

/// Type of a PDU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Request for the values of these names.
    Get,
    /// Request for the next names and their values.
    Next,
    /// Request for many names after these.
    Bulk {
        /// Number of names after each.
        repetitions: u32,
    },
    /// A response.
    Response(Status),
    /// A report of an error in a message of version 3.
    Report,
    /// An unsupported type: a set request or a notification.
    Other,
}

/// Error status of a response.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Status {
    /// 0 for success; otherwise the error code (RFC 3416, section 3).
    pub code: u32,
    /// Index of the name with the error, from 1; 0 if none.
    pub index: u32,
}

/// Decoding error: the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecodeError(pub &'static str);

impl Status {
    /// Returns the name of the error in the standard.
    pub fn name(self) -> &'static str {
        const NAMES: [&str; 19] = [
            "noError",
            "tooBig",
            "noSuchName",
            "badValue",
            "readOnly",
            "genErr",
            "noAccess",
            "wrongType",
            "wrongLength",
            "wrongEncoding",
            "wrongValue",
            "noCreation",
            "inconsistentValue",
            "resourceUnavailable",
            "commitFailed",
            "undoFailed",
            "authorizationError",
            "notWritable",
            "inconsistentName",
        ];
        NAMES.get(self.code as usize).copied().unwrap_or("an unknown error")
    }
}

impl Pdu {
    pub(crate) fn wire(&self) -> Pdus {
        let bindings: Vec<_> = self.bindings.iter().map(Binding::wire).collect();
        let pdu = |status: Status| v2::Pdu {
            request_id: self.id,
            error_status: status.code,
            error_index: status.index,
            variable_bindings: bindings.clone(),
        };
        let plain = Status::default();
        match self.kind {
            Kind::Get => Pdus::GetRequest(v2::GetRequest(pdu(plain))),
            Kind::Next => Pdus::GetNextRequest(v2::GetNextRequest(pdu(plain))),
            Kind::Bulk { repetitions } => Pdus::GetBulkRequest(v2::GetBulkRequest(v2::BulkPdu {
                request_id: self.id,
                non_repeaters: 0,
                max_repetitions: repetitions,
                variable_bindings: bindings,
            })),
            Kind::Response(status) => Pdus::Response(v2::Response(pdu(status))),
            Kind::Report | Kind::Other => Pdus::Report(v2::Report(pdu(plain))),
        }
    }

    pub(crate) fn of_wire(pdus: &Pdus) -> Result<Pdu, DecodeError> {
        let status = |it: &v2::Pdu| Status { code: it.error_status, index: it.error_index };
        let (kind, id, bindings) = match pdus {
            Pdus::GetRequest(v2::GetRequest(it)) => {
                (Kind::Get, it.request_id, &it.variable_bindings)
            }
            Pdus::GetNextRequest(v2::GetNextRequest(it)) => {
                (Kind::Next, it.request_id, &it.variable_bindings)
            }
            Pdus::GetBulkRequest(v2::GetBulkRequest(it)) => {
                let kind = Kind::Bulk { repetitions: it.max_repetitions };
                (kind, it.request_id, &it.variable_bindings)
            }
            Pdus::Response(v2::Response(it)) => {
                (Kind::Response(status(it)), it.request_id, &it.variable_bindings)
            }
            Pdus::Report(v2::Report(it)) => (Kind::Report, it.request_id, &it.variable_bindings),
            Pdus::SetRequest(v2::SetRequest(it))
            | Pdus::InformRequest(v2::InformRequest(it))
            | Pdus::Trap(v2::Trap(it)) => (Kind::Other, it.request_id, &it.variable_bindings),
        };
        let bindings = bindings.iter().map(Binding::of_wire).collect::<Result<_, _>>()?;
        Ok(Pdu { kind, id, bindings })
    }
}

/// Encodes a message of version 2c.
pub(crate) fn encode(community: &[u8], pdu: &Pdu) -> Vec<u8> {
    let message = v2c::Message {
        version: Integer::from(VERSION_2C),
        community: OctetString::from(community),
        data: pdu.wire(),
    };
    ber::encode(&message).expect("a request can be encoded")
}

/// Decodes a message of version 2c into community and PDU.
pub(crate) fn decode(bytes: &[u8]) -> Result<(Vec<u8>, Pdu), DecodeError> {
    if bytes.len() > DATAGRAM_BYTES_MAX {
        return Err(DecodeError("longer than a datagram"));
    }
    let message: v2c::Message<Pdus> =
        ber::decode(bytes).map_err(|_| DecodeError("not a message of version 2c"))?;
    if message.version != Integer::from(VERSION_2C) {
        return Err(DecodeError("another version"));
    }
    Ok((message.community.to_vec(), Pdu::of_wire(&message.data)?))
}

impl std::fmt::Display for DecodeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for DecodeError {}
