//! Which errors each version has.
//!
//! Source: `ofp_error_type` and the enums of codes of the OpenFlow Switch Specifications 1.0.0 to
//! 1.5.1.

use std::fmt;

use super::{NO, VERSIONS, Version};

table! {
    /// The family of an error (`ofp_error_type`).
    ErrorType: u16 {
        //                                           1.0     1.1     1.2     1.3     1.4     1.5
        /// The versions do not meet.
        HelloFailed "hello_failed"                  [0,      0,      0,      0,      0,      0];
        /// A message was not understood.
        BadRequest "bad_request"                    [1,      1,      1,      1,      1,      1];
        /// An action was not understood, or cannot be done.
        BadAction "bad_action"                      [2,      2,      2,      2,      2,      2];
        /// The tables cannot be changed so.
        FlowModFailed "flow_mod_failed"             [3,      5,      5,      5,      5,      5];
        /// The port cannot be changed so.
        PortModFailed "port_mod_failed"             [4,      7,      7,      7,      7,      7];
        /// A queue cannot be looked at so.
        QueueOpFailed "queue_op_failed"             [5,      9,      9,      9,      9,      9];
    }
}

/// Declares the errors: a flat enum whose rows name their family and their code in it.
macro_rules! errors {
    ( $( $(#[$doc:meta])* $row:ident $family:ident $text:literal $columns:expr; )* ) => {
        /// What went wrong, told by an error message: family and code in one
        /// (`ofp_error_type` and the enums of codes).
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum ErrorCode {
            $( $(#[$doc])* $row, )*
            /// A pair that the table does not have, as received.
            Other {
                /// The type field.
                family: u16,
                /// The code field.
                code: u16,
            },
        }

        const ERRORS: &[ErrorRow] = &[
            $( ErrorRow {
                error: ErrorCode::$row,
                family: ErrorType::$family,
                name: $text,
                codes: $columns,
            }, )*
        ];

        impl ErrorCode {
            /// Every error that the table has.
            pub const ALL: &[ErrorCode] = &[$( ErrorCode::$row, )*];

            fn row(self) -> Option<&'static ErrorRow> {
                ERRORS.iter().find(|row| row.error == self)
            }
        }
    };
}

struct ErrorRow {
    error: ErrorCode,
    family: ErrorType,
    name: &'static str,
    codes: [i32; VERSIONS],
}

errors! {
    //                                                                 1.0 1.1 1.2 1.3 1.4 1.5
    /// No version in common.
    HelloIncompatible HelloFailed "incompatible"                      [ 0,  0,  0,  0,  0,  0];
    /// Not permitted to connect.
    HelloPermission HelloFailed "permission"                          [ 1,  1,  1,  1,  1,  1];
    /// The header's version is not the negotiated one.
    RequestBadVersion BadRequest "bad_version"                        [ 0,  0,  0,  0,  0,  0];
    /// The header's type is unknown.
    RequestBadType BadRequest "bad_type"                              [ 1,  1,  1,  1,  1,  1];
    /// The statistics type is unknown.
    RequestBadMultipart BadRequest "bad_multipart"                    [ 2,  2,  2,  2,  2,  2];
    /// The vendor is unknown.
    RequestBadExperimenter BadRequest "bad_experimenter"              [ 3,  3,  3,  3,  3,  3];
    /// The vendor's subtype is unknown.
    RequestBadExperimenterType BadRequest "bad_experimenter_type"     [ 4,  4,  4,  4,  4,  4];
    /// Not permitted.
    RequestPermission BadRequest "permission"                         [ 5,  5,  5,  5,  5,  5];
    /// A length does not fit.
    RequestBadLength BadRequest "bad_length"                          [ 6,  6,  6,  6,  6,  6];
    /// The buffer has been used already.
    RequestBufferEmpty BadRequest "buffer_empty"                      [ 7,  7,  7,  7,  7,  7];
    /// There is no such buffer.
    RequestBufferUnknown BadRequest "buffer_unknown"                  [ 8,  8,  8,  8,  8,  8];
    /// The action's type is unknown.
    ActionBadType BadAction "bad_type"                                [ 0,  0,  0,  0,  0,  0];
    /// A length in the actions does not fit.
    ActionBadLength BadAction "bad_length"                            [ 1,  1,  1,  1,  1,  1];
    /// The action's vendor is unknown.
    ActionBadExperimenter BadAction "bad_experimenter"                [ 2,  2,  2,  2,  2,  2];
    /// The vendor's action type is unknown.
    ActionBadExperimenterType BadAction "bad_experimenter_type"       [ 3,  3,  3,  3,  3,  3];
    /// The frame cannot go out there.
    ActionBadOutPort BadAction "bad_out_port"                         [ 4,  4,  4,  4,  4,  4];
    /// An action's value is out of range.
    ActionBadArgument BadAction "bad_argument"                        [ 5,  5,  5,  5,  5,  5];
    /// Not permitted.
    ActionPermission BadAction "permission"                           [ 6,  6,  6,  6,  6,  6];
    /// More actions than the switch can do.
    ActionTooMany BadAction "too_many"                                [ 7,  7,  7,  7,  7,  7];
    /// There is no such queue.
    ActionBadQueue BadAction "bad_queue"                              [ 8,  8,  8,  8,  8,  8];
    /// No table has room; "all tables full" in 1.0.
    FlowModTableFull FlowModFailed "table_full"                       [ 0,  1,  1,  1,  1,  1];
    /// The entry overlaps one of the same priority, and this was to be checked.
    FlowModOverlap FlowModFailed "overlap"                            [ 1,  3,  3,  3,  3,  3];
    /// Not permitted.
    FlowModPermission FlowModFailed "permission"                      [ 2,  4,  4,  4,  4,  4];
    /// A time-out that cannot be; in 1.0 one with an emergency entry.
    FlowModBadTimeout FlowModFailed "bad_timeout"                     [ 3,  5,  5,  5,  5,  5];
    /// The command is unknown.
    FlowModBadCommand FlowModFailed "bad_command"                     [ 4,  6,  6,  6,  6,  6];
    /// The switch cannot do these actions in this order.
    FlowModUnsupported FlowModFailed "unsupported"                    [ 5, NO, NO, NO, NO, NO];
    /// There is no such port.
    PortModBadPort PortModFailed "bad_port"                           [ 0,  0,  0,  0,  0,  0];
    /// The hardware address is not the port's.
    PortModBadHardwareAddress PortModFailed "bad_hardware_address"    [ 1,  1,  1,  1,  1,  1];
    /// There is no such port.
    QueueOpBadPort QueueOpFailed "bad_port"                           [ 0,  0,  0,  0,  0,  0];
    /// There is no such queue.
    QueueOpBadQueue QueueOpFailed "bad_queue"                         [ 1,  1,  1,  1,  1,  1];
    /// Not permitted.
    QueueOpPermission QueueOpFailed "permission"                      [ 2,  2,  2,  2,  2,  2];
}

impl ErrorCode {
    /// The type and code fields on the wire, if this version has the error.
    pub fn to_wire(self, version: Version) -> Option<(u16, u16)> {
        if let ErrorCode::Other { family, code } = self {
            return Some((family, code));
        }
        let row = self.row()?;
        let code = row.codes[version.column()];
        Some((row.family.code(version)?, (code != NO).then_some(code as u16)?))
    }

    /// What these type and code fields mean in this version; [`ErrorCode::Other`] if nothing.
    pub fn from_wire(version: Version, family: u16, code: u16) -> ErrorCode {
        let known = ErrorType::from_code(version, family).and_then(|known| {
            ERRORS
                .iter()
                .find(|row| row.family == known && row.codes[version.column()] == i32::from(code))
        });
        known.map_or(ErrorCode::Other { family, code }, |row| row.error)
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self, self.row()) {
            (_, Some(row)) => write!(f, "{}/{}", row.family, row.name),
            (ErrorCode::Other { family, code }, _) => write!(f, "{family}/{code}"),
            (_, None) => f.write_str("unknown"),
        }
    }
}
