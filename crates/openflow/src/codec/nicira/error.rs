//! Nicira error messages, for errors that 1.0 does not have.
//!
//! Source: `ofp-errors.h` (numbers) and `nicira-ext.h` (`struct nx_vendor_error`) of Open vSwitch.
//! The error type is that of vendor errors; the data begins with
//!
//! ```text
//! experimenter:4 type:2 code:2
//! ```
//!
//! and then has the offending message.

use crate::codec::bytes::Put;
use crate::model::message::{ErrorMessage, OFFENDING_BYTES};
use crate::model::nicira::NICIRA;
use crate::version::{ErrorCode, Version};

/// Type of vendor errors, and its code for those that have a type in the data.
const DEFINED_ELSEWHERE: ErrorCode = ErrorCode::Other { family: 0xb0c2, code: 0 };

/// Message types of experimenter messages and of statistics requests in 1.0.
const EXPERIMENTER: u8 = 4;
const STATISTICS: u8 = 16;

/// Returns Nicira's type and code for an error that 1.0 does not have.
fn numbers(code: ErrorCode) -> Option<(u16, u16)> {
    Some(match code {
        ErrorCode::MatchBadField => (0, 263),
        ErrorCode::MatchBadValue => (1, 258),
        ErrorCode::MatchBadMask => (1, 259),
        ErrorCode::MatchBadPrerequisite => (1, 260),
        ErrorCode::MatchDuplicateField => (1, 261),
        ErrorCode::MatchBadWildcards => (1, 262),
        ErrorCode::RequestBadTable => (1, 512),
        ErrorCode::RoleRequestBadRole => (1, 513),
        ErrorCode::RequestBadPort => (1, 514),
        ErrorCode::ActionMatchInconsistent => (1, 522),
        ErrorCode::ActionBadSetType => (1, 523),
        ErrorCode::ActionBadSetLength => (1, 524),
        ErrorCode::ActionBadSetArgument => (1, 525),
        ErrorCode::ActionBadOutGroup => (2, 9),
        ErrorCode::InstructionUnsupported => (2, 257),
        ErrorCode::FlowModBadFlags => (3, 258),
        ErrorCode::FlowModBadTable => (5, 257),
        _ => return None,
    })
}

/// Returns whether these bytes start a Nicira message of 1.0.
fn is_nicira(request: &[u8]) -> bool {
    let place = match request.get(1) {
        Some(&EXPERIMENTER) => 8,
        Some(&STATISTICS) if request.get(8..10) == Some(&[0xff, 0xff]) => 12,
        _ => return false,
    };
    request.get(place..place + 4) == Some(&NICIRA.to_be_bytes())
}

/// Returns Nicira's error in reply to a Nicira message that starts with these bytes.
///
/// `None` if 1.0 has the error, the message is not Nicira's, or Nicira does not have the error.
pub fn refusal(code: ErrorCode, request: &[u8]) -> Option<ErrorMessage> {
    if code.to_wire(Version::V1_0).is_some() || !is_nicira(request) {
        return None;
    }
    let (family, number) = numbers(code)?;
    let mut data = Vec::new();
    data.put_u32(NICIRA);
    data.put_u16(family);
    data.put_u16(number);
    data.extend_from_slice(&request[..request.len().min(OFFENDING_BYTES)]);
    Some(ErrorMessage { code: DEFINED_ELSEWHERE, data })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROLE: [u8; 20] = [1, 4, 0, 20, 0, 0, 0, 9, 0, 0, 0x23, 0x20, 0, 0, 0, 10, 0, 0, 0, 7];

    #[test]
    fn errors_unknown_to_1_0_use_nicira_codes() {
        let error = refusal(ErrorCode::RoleRequestBadRole, &ROLE).unwrap();
        assert_eq!(error.code.to_wire(Version::V1_0), Some((0xb0c2, 0)));
        assert_eq!(error.data[..8], [0, 0, 0x23, 0x20, 0, 1, 2, 1]);
        assert_eq!(error.data[8..], ROLE);
        let statistics =
            [&[1, 16, 0, 24, 0, 0, 0, 9, 0xff, 0xff, 0, 0, 0, 0, 0x23, 0x20][..], &[0; 300]]
                .concat();
        let error = refusal(ErrorCode::MatchBadField, &statistics).unwrap();
        assert_eq!((error.data[4..8].to_vec(), error.data.len()), (vec![0, 0, 1, 7], 8 + 64));
    }

    #[test]
    fn errors_of_1_0_and_of_other_vendors_do_not_use_nicira_codes() {
        assert_eq!(refusal(ErrorCode::RequestBadLength, &ROLE), None);
        assert_eq!(refusal(ErrorCode::GroupModExists, &ROLE), None);
        let mut other = ROLE;
        other[11] = 0x21;
        assert_eq!(refusal(ErrorCode::RoleRequestBadRole, &other), None);
        for cut in 0..12 {
            assert_eq!(refusal(ErrorCode::RoleRequestBadRole, &ROLE[..cut]), None);
        }
    }
}
