//! The one table: which message, action, statistics type and error exists in which version, and
//! with which code.
//!
//! Source: `openflow.h` of the OpenFlow Switch Specifications 1.0.0 to 1.5.1. A row is a kind, its
//! name in text forms, and one column for each version; `NO` means that this version does not
//! have it. The codec asks this table and holds no code numbers of its own, so that a later
//! version is added by filling columns and rows. Kinds that only later versions have get their
//! row together with their model value.

use std::fmt;

/// A version of the protocol that the table has a column for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// 1.0, on the wire 0x01.
    V1_0,
    /// 1.1, on the wire 0x02.
    V1_1,
    /// 1.2, on the wire 0x03.
    V1_2,
    /// 1.3, on the wire 0x04.
    V1_3,
    /// 1.4, on the wire 0x05.
    V1_4,
    /// 1.5, on the wire 0x06.
    V1_5,
}

impl Version {
    /// Every version that has a column.
    pub const ALL: [Version; VERSIONS] =
        [Version::V1_0, Version::V1_1, Version::V1_2, Version::V1_3, Version::V1_4, Version::V1_5];

    /// The versions that the codec encodes and decodes in full. Hello and error messages are
    /// understood in every version, because negotiation needs them.
    pub const SPOKEN: &[Version] = &[Version::V1_0];

    /// The version with this number in the header, if there is one.
    pub fn from_wire(wire: u8) -> Option<Version> {
        Version::ALL.get(usize::from(wire).checked_sub(1)?).copied()
    }

    /// The number in the header.
    pub fn wire(self) -> u8 {
        self as u8 + 1
    }

    /// Whether the codec speaks it in full.
    pub fn is_spoken(self) -> bool {
        Version::SPOKEN.contains(&self)
    }

    /// The version's column in a row of the table.
    pub(crate) fn column(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "1.{}", self.column())
    }
}

/// An end of a control channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum End {
    /// The one that decides.
    Controller,
    /// The one that forwards.
    Switch,
}

/// Number of version columns.
pub const VERSIONS: usize = 6;

/// In a column: this version does not have it.
pub(crate) const NO: i32 = -1;

/// Declares an enum whose rows carry a name and a code for each version.
macro_rules! table {
    (
        $(#[$doc:meta])*
        $name:ident: $code:ty {
            $( $(#[$row_doc:meta])* $row:ident $text:literal $columns:expr; )*
        }
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $( $(#[$row_doc])* $row, )*
        }

        impl $name {
            /// Every row, in the order of the table.
            pub const ALL: &[$name] = &[$( $name::$row, )*];

            const CODES: &[[i32; VERSIONS]] = &[$( $columns, )*];

            const NAMES: &[&'static str] = &[$( $text, )*];

            /// The name in text forms.
            pub fn name(self) -> &'static str {
                Self::NAMES[self as usize]
            }

            /// The code on the wire, if this version has it.
            #[inline]
            pub fn code(self, version: Version) -> Option<$code> {
                let code = Self::CODES[self as usize][version.column()];
                (code != NO).then_some(code as $code)
            }

            /// What this code means in this version, if anything. Rows stand in the order of their
            /// 1.0 codes, so that the row at that place is mostly the one.
            #[inline]
            pub fn from_code(version: Version, code: $code) -> Option<$name> {
                let has_code = |row: &[i32; VERSIONS]| row[version.column()] == i32::from(code);
                let guess = usize::from(code);
                if Self::CODES.get(guess).is_some_and(has_code) {
                    return Some(Self::ALL[guess]);
                }
                Self::CODES.iter().position(has_code).map(|place| Self::ALL[place])
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

table! {
    /// A kind of message (`ofp_type`).
    MessageKind: u8 {
        //                                                          1.0 1.1 1.2 1.3 1.4 1.5
        /// First message of either end: which versions it speaks.
        Hello "hello"                                              [ 0,  0,  0,  0,  0,  0];
        /// What went wrong with an earlier message.
        Error "error"                                              [ 1,  1,  1,  1,  1,  1];
        /// Asks the other end for a sign of life.
        EchoRequest "echo_request"                                 [ 2,  2,  2,  2,  2,  2];
        /// The sign of life, with the request's bytes.
        EchoReply "echo_reply"                                     [ 3,  3,  3,  3,  3,  3];
        /// A message that somebody else defines; "vendor" in 1.0.
        Experimenter "experimenter"                                [ 4,  4,  4,  4,  4,  4];
        /// Asks for datapath id, tables, capabilities (and ports).
        FeaturesRequest "features_request"                         [ 5,  5,  5,  5,  5,  5];
        /// Datapath id, tables, capabilities (and ports).
        FeaturesReply "features_reply"                             [ 6,  6,  6,  6,  6,  6];
        /// Asks for fragment handling and miss length.
        GetConfigRequest "get_config_request"                      [ 7,  7,  7,  7,  7,  7];
        /// Fragment handling and miss length.
        GetConfigReply "get_config_reply"                          [ 8,  8,  8,  8,  8,  8];
        /// Sets fragment handling and miss length.
        SetConfig "set_config"                                     [ 9,  9,  9,  9,  9,  9];
        /// A frame that the switch hands to its controller.
        PacketIn "packet_in"                                       [10, 10, 10, 10, 10, 10];
        /// An entry has gone.
        FlowRemoved "flow_removed"                                 [11, 11, 11, 11, 11, 11];
        /// A port came, went or changed.
        PortStatus "port_status"                                   [12, 12, 12, 12, 12, 12];
        /// A frame that the controller has the switch send.
        PacketOut "packet_out"                                     [13, 13, 13, 13, 13, 13];
        /// Adds, changes or deletes entries.
        FlowMod "flow_mod"                                         [14, 14, 14, 14, 14, 14];
        /// Changes how a port behaves.
        PortMod "port_mod"                                         [15, 16, 16, 16, 16, 16];
        /// Asks for statistics or descriptions; "stats" before 1.3.
        MultipartRequest "multipart_request"                       [16, 18, 18, 18, 18, 18];
        /// Statistics or descriptions, possibly in several parts.
        MultipartReply "multipart_reply"                           [17, 19, 19, 19, 19, 19];
        /// Asks to finish everything that came before.
        BarrierRequest "barrier_request"                           [18, 20, 20, 20, 20, 20];
        /// Everything that came before is done.
        BarrierReply "barrier_reply"                               [19, 21, 21, 21, 21, 21];
        /// Asks for the queues of a port.
        QueueGetConfigRequest "queue_get_config_request"           [20, 22, 22, 22, NO, NO];
        /// The queues of a port.
        QueueGetConfigReply "queue_get_config_reply"               [21, 23, 23, 23, NO, NO];
    }
}

impl MessageKind {
    /// The kind of message that answers this one, if it is a request.
    pub fn reply(self) -> Option<MessageKind> {
        Some(match self {
            MessageKind::EchoRequest => MessageKind::EchoReply,
            MessageKind::FeaturesRequest => MessageKind::FeaturesReply,
            MessageKind::GetConfigRequest => MessageKind::GetConfigReply,
            MessageKind::MultipartRequest => MessageKind::MultipartReply,
            MessageKind::BarrierRequest => MessageKind::BarrierReply,
            MessageKind::QueueGetConfigRequest => MessageKind::QueueGetConfigReply,
            _ => return None,
        })
    }

    /// Which end sends it; `None` for what both do.
    pub fn sender(self) -> Option<End> {
        match self {
            MessageKind::Hello
            | MessageKind::Error
            | MessageKind::EchoRequest
            | MessageKind::EchoReply
            | MessageKind::Experimenter => None,
            MessageKind::FeaturesReply
            | MessageKind::GetConfigReply
            | MessageKind::PacketIn
            | MessageKind::FlowRemoved
            | MessageKind::PortStatus
            | MessageKind::MultipartReply
            | MessageKind::BarrierReply
            | MessageKind::QueueGetConfigReply => Some(End::Switch),
            MessageKind::FeaturesRequest
            | MessageKind::GetConfigRequest
            | MessageKind::SetConfig
            | MessageKind::PacketOut
            | MessageKind::FlowMod
            | MessageKind::PortMod
            | MessageKind::MultipartRequest
            | MessageKind::BarrierRequest
            | MessageKind::QueueGetConfigRequest => Some(End::Controller),
        }
    }
}

table! {
    /// A kind of action (`ofp_action_type`). From 1.2 on the header changes are one action,
    /// `set_field`, with the field inside: they have no code of their own there.
    ActionKind: u16 {
        //                                                 1.0     1.1     1.2     1.3     1.4     1.5
        /// Sends the frame out of a port.
        Output "output"                                   [0,      0,      0,      0,      0,      0];
        /// Sets the VLAN id, adding a tag if there is none (in 1.0).
        SetVlanVid "set_vlan_vid"                         [1,      1,      NO,     NO,     NO,     NO];
        /// Sets the VLAN priority, adding a tag if there is none (in 1.0).
        SetVlanPcp "set_vlan_pcp"                         [2,      2,      NO,     NO,     NO,     NO];
        /// Removes the outermost VLAN tag, if there is one.
        StripVlan "strip_vlan"                            [3,      18,     18,     18,     18,     18];
        /// Sets the source address.
        SetEthSrc "set_eth_src"                           [4,      3,      NO,     NO,     NO,     NO];
        /// Sets the destination address.
        SetEthDst "set_eth_dst"                           [5,      4,      NO,     NO,     NO,     NO];
        /// Sets the IPv4 source address.
        SetIpSrc "set_ip_src"                             [6,      5,      NO,     NO,     NO,     NO];
        /// Sets the IPv4 destination address.
        SetIpDst "set_ip_dst"                             [7,      6,      NO,     NO,     NO,     NO];
        /// Sets the six DSCP bits.
        SetIpDscp "set_ip_dscp"                           [8,      7,      NO,     NO,     NO,     NO];
        /// Sets the TCP or UDP source port, or the ICMP type.
        SetTransportSrc "set_transport_src"               [9,      9,      NO,     NO,     NO,     NO];
        /// Sets the TCP or UDP destination port, or the ICMP code.
        SetTransportDst "set_transport_dst"               [10,     10,     NO,     NO,     NO,     NO];
        /// Sends the frame through a queue of a port.
        Enqueue "enqueue"                                 [11,     NO,     NO,     NO,     NO,     NO];
        /// An action that somebody else defines; "vendor" in 1.0.
        Experimenter "experimenter"                       [0xffff, 0xffff, 0xffff, 0xffff, 0xffff, 0xffff];
    }
}

table! {
    /// A type of statistics or description (`ofp_stats_types`, later `ofp_multipart_type`).
    MultipartKind: u16 {
        //                                                 1.0     1.1     1.2     1.3     1.4     1.5
        /// Who made the switch, and its names.
        Desc "desc"                                       [0,      0,      0,      0,      0,      0];
        /// Each entry with its counters.
        Flow "flow"                                       [1,      1,      1,      1,      1,      17];
        /// The sum of the counters of several entries.
        Aggregate "aggregate"                             [2,      2,      2,      2,      2,      2];
        /// Counters of each table.
        Table "table"                                     [3,      3,      3,      3,      3,      3];
        /// Counters of one port, or of each.
        Port "port"                                       [4,      4,      4,      4,      4,      4];
        /// Counters of one queue, or of each.
        Queue "queue"                                     [5,      5,      5,      5,      5,      5];
        /// Statistics that somebody else defines; "vendor" in 1.0.
        Experimenter "experimenter"                       [0xffff, 0xffff, 0xffff, 0xffff, 0xffff, 0xffff];
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_means_its_row_again() {
        for version in Version::ALL {
            for &kind in MessageKind::ALL {
                if let Some(code) = kind.code(version) {
                    assert_eq!(MessageKind::from_code(version, code), Some(kind));
                }
            }
            for &kind in ActionKind::ALL {
                if let Some(code) = kind.code(version) {
                    assert_eq!(ActionKind::from_code(version, code), Some(kind));
                }
            }
            for &error in ErrorCode::ALL {
                if let Some((family, code)) = error.to_wire(version) {
                    assert_eq!(ErrorCode::from_wire(version, family, code), error);
                }
            }
        }
    }

    #[test]
    fn version_1_0_has_every_row_and_22_messages() {
        let codes = MessageKind::ALL.iter().map(|kind| kind.code(Version::V1_0));
        assert!(codes.eq((0..22).map(Some)));
        assert!(ErrorCode::ALL.iter().all(|error| error.to_wire(Version::V1_0).is_some()));
        assert_eq!(ErrorCode::FlowModTableFull.to_wire(Version::V1_0), Some((3, 0)));
        assert_eq!(ErrorCode::FlowModTableFull.to_wire(Version::V1_3), Some((5, 1)));
    }

    #[test]
    fn unknown_pairs_are_kept() {
        let error = ErrorCode::from_wire(Version::V1_0, 9, 7);
        assert_eq!(error, ErrorCode::Other { family: 9, code: 7 });
        assert_eq!(error.to_wire(Version::V1_0), Some((9, 7)));
        assert_eq!(error.to_string(), "9/7");
    }

    #[test]
    fn wire_numbers_start_at_one() {
        assert_eq!(Version::from_wire(0), None);
        assert_eq!(Version::from_wire(1), Some(Version::V1_0));
        assert_eq!(Version::from_wire(6), Some(Version::V1_5));
        assert_eq!(Version::from_wire(7), None);
        assert_eq!(Version::V1_3.wire(), 4);
        assert_eq!(Version::V1_3.to_string(), "1.3");
    }
}
