//! Reassembly of requests that consist of several messages.
//!
//! Source: OpenFlow switch specification 1.3.5, section 7.3.5. All parts have the same transaction
//! ID, and each but the last has the flag that more follow.
//!
//! Invariants:
//! - The limit on the bytes of one request bounds memory.
//! - One request is reassembled at a time. A new request discards an incomplete one.

use openflow::header::Xid;
use openflow::model::multipart::{MultipartRequest, MultipartRequestBody};
use openflow::version::ErrorCode;

/// The received parts of a request.
#[derive(Debug, Default)]
pub struct RequestParts {
    begun: Option<PartialRequest>,
}

#[derive(Debug)]
struct PartialRequest {
    xid: Xid,
    body: MultipartRequestBody,
    bytes: usize,
}

impl RequestParts {
    /// Adds a part of `bytes` bytes. Returns the complete request after the last part.
    pub fn take(
        &mut self,
        xid: Xid,
        part: MultipartRequest,
        bytes: usize,
        bytes_max: usize,
    ) -> Result<Option<MultipartRequestBody>, ErrorCode> {
        let before = self.begun.take().filter(|begun| begun.xid == xid);
        let (body, bytes) = match before {
            None => (part.body, bytes),
            Some(begun) => (join(begun.body, part.body)?, begun.bytes.saturating_add(bytes)),
        };
        if bytes > bytes_max {
            return Err(ErrorCode::RequestMultipartOverflow);
        }
        if !part.more {
            return Ok(Some(body));
        }
        self.begun = Some(PartialRequest { xid, body, bytes });
        Ok(None)
    }

    /// Whether a request is incomplete.
    pub fn has_begun(&self) -> bool {
        self.begun.is_some()
    }
}

/// Joins two parts of a request. Only lists can be longer than one message.
fn join(
    before: MultipartRequestBody,
    after: MultipartRequestBody,
) -> Result<MultipartRequestBody, ErrorCode> {
    use MultipartRequestBody::{FlowMonitor, TableFeatures};
    match (before, after) {
        (TableFeatures(mut before), TableFeatures(after)) => {
            before.extend(after);
            Ok(TableFeatures(before))
        }
        (FlowMonitor(mut before), FlowMonitor(after)) => {
            before.extend(after);
            Ok(FlowMonitor(before))
        }
        (before, after) if before == after => Ok(after),
        _ => Err(ErrorCode::RequestBadMultipart),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(tables: usize, more: bool) -> MultipartRequest {
        let tables = vec![Default::default(); tables];
        MultipartRequest { more, body: MultipartRequestBody::TableFeatures(tables) }
    }

    #[test]
    fn parts_with_one_transaction_id_are_joined_and_another_id_starts_over() {
        let mut parts = RequestParts::default();
        assert_eq!(parts.take(1, part(2, true), 10, 100), Ok(None));
        let Ok(Some(MultipartRequestBody::TableFeatures(all))) =
            parts.take(1, part(3, false), 10, 100)
        else {
            panic!("the request is complete")
        };
        assert_eq!((all.len(), parts.has_begun()), (5, false));
        assert_eq!(parts.take(2, part(2, true), 10, 100), Ok(None));
        let desc = MultipartRequest { more: false, body: MultipartRequestBody::Desc };
        assert_eq!(parts.take(3, desc, 10, 100), Ok(Some(MultipartRequestBody::Desc)));
        assert!(!parts.has_begun());
    }

    #[test]
    fn excessive_or_mixed_parts_are_rejected() {
        let mut parts = RequestParts::default();
        assert_eq!(parts.take(1, part(1, true), 60, 100), Ok(None));
        let overflow = Err(ErrorCode::RequestMultipartOverflow);
        assert_eq!(parts.take(1, part(1, true), 60, 100), overflow);
        assert_eq!(parts.take(1, part(1, true), 60, 100), Ok(None));
        let desc = MultipartRequest { more: false, body: MultipartRequestBody::Desc };
        assert_eq!(parts.take(1, desc, 1, 100), Err(ErrorCode::RequestBadMultipart));
    }
}
