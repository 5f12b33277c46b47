//! Error types and codes of each version.
//!
//! Source: `ofp_error_type` and the enums of codes of the OpenFlow Switch Specifications 1.0.0 to
//! 1.5.1.

mod nearest;

use std::fmt;

use super::{NO, ONF, VERSIONS, Version};

table! {
    /// An error type (`ofp_error_type`).
    ErrorType: u16 {
        //                                             1.0     1.1     1.2     1.3     1.4     1.5
        /// Version negotiation failed.
        HelloFailed "hello_failed"                 [     0,      0,      0,      0,      0,      0];
        /// A request is invalid or unsupported.
        BadRequest "bad_request"                   [     1,      1,      1,      1,      1,      1];
        /// An action is invalid or unsupported.
        BadAction "bad_action"                     [     2,      2,      2,      2,      2,      2];
        /// A flow-mod failed.
        FlowModFailed "flow_mod_failed"            [     3,      5,      5,      5,      5,      5];
        /// A port-mod failed.
        PortModFailed "port_mod_failed"            [     4,      7,      7,      7,      7,      7];
        /// A queue operation failed.
        QueueOpFailed "queue_op_failed"            [     5,      9,      9,      9,      9,      9];
        /// An instruction is invalid or unsupported.
        BadInstruction "bad_instruction"           [    NO,      3,      3,      3,      3,      3];
        /// A match is invalid or unsupported.
        BadMatch "bad_match"                       [    NO,      4,      4,      4,      4,      4];
        /// A group-mod failed.
        GroupModFailed "group_mod_failed"          [    NO,      6,      6,      6,      6,      6];
        /// A table-mod failed.
        TableModFailed "table_mod_failed"          [    NO,      8,      8,      8,      8,      8];
        /// A switch configuration failed.
        SwitchConfigFailed "switch_config_failed"  [    NO,     10,     10,     10,     10,     10];
        /// A role request failed.
        RoleRequestFailed "role_request_failed"    [    NO,     NO,     11,     11,     11,     11];
        /// A meter-mod failed.
        MeterModFailed "meter_mod_failed"          [    NO,     NO,     NO,     12,     12,     12];
        /// A table features request failed.
        TableFeaturesFailed "table_features_failed"[    NO,     NO,     NO,     13,     13,     13];
        /// A property is invalid or unsupported.
        BadProperty "bad_property"                 [    NO,     NO,     NO,     NO,     14,     14];
        /// An asynchronous message configuration failed.
        AsyncConfigFailed "async_config_failed"    [    NO,     NO,     NO,     NO,     15,     15];
        /// A flow monitor request failed.
        FlowMonitorFailed "flow_monitor_failed"    [    NO,     NO,     NO,     NO,     16,     16];
        /// A bundle operation failed. In 1.3 it is part of ONF extension 230.
        BundleFailed "bundle_failed"               [    NO,     NO,     NO, 0xffff,     17,     17];
        /// An experimenter error: the experimenter defines the code, and the data starts with its
        /// ID.
        Experimenter "experimenter"                [    NO,     NO, 0xffff, 0xffff, 0xffff, 0xffff];
    }
}

/// Declares the errors: a flat enum whose rows have their type and their code in it.
macro_rules! errors {
    ( $( $(#[$doc:meta])* $row:ident $family:ident $text:literal $columns:expr; )* ) => {
        /// Type and code of an error (`ofp_error_type` and the enums of codes).
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum ErrorCode {
            $( $(#[$doc])* $row, )*
            /// An unknown pair, as received.
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
            /// All errors of the table.
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
    //                                                                   1.0 1.1 1.2 1.3 1.4 1.5
    /// No version in common.
    HelloIncompatible HelloFailed "incompatible"                      [ 0,  0,  0,  0,  0,  0];
    /// No permission to connect.
    HelloPermission HelloFailed "permission"                          [ 1,  1,  1,  1,  1,  1];
    /// The header's version is not the negotiated one.
    RequestBadVersion BadRequest "bad_version"                        [ 0,  0,  0,  0,  0,  0];
    /// The header's type is unknown.
    RequestBadType BadRequest "bad_type"                              [ 1,  1,  1,  1,  1,  1];
    /// The multipart type is unknown.
    RequestBadMultipart BadRequest "bad_multipart"                    [ 2,  2,  2,  2,  2,  2];
    /// The experimenter is unknown.
    RequestBadExperimenter BadRequest "bad_experimenter"              [ 3,  3,  3,  3,  3,  3];
    /// The experimenter's subtype is unknown.
    RequestBadExperimenterType BadRequest "bad_experimenter_type"     [ 4,  4,  4,  4,  4,  4];
    /// No permission.
    RequestPermission BadRequest "permission"                         [ 5,  5,  5,  5,  5,  5];
    /// A length is wrong.
    RequestBadLength BadRequest "bad_length"                          [ 6,  6,  6,  6,  6,  6];
    /// The buffer was already used.
    RequestBufferEmpty BadRequest "buffer_empty"                      [ 7,  7,  7,  7,  7,  7];
    /// The buffer does not exist.
    RequestBufferUnknown BadRequest "buffer_unknown"                  [ 8,  8,  8,  8,  8,  8];
    /// The table does not exist.
    RequestBadTable BadRequest "bad_table"                            [NO,  9,  9,  9,  9,  9];
    /// The controller is a slave and may not modify anything.
    RequestIsSlave BadRequest "is_slave"                              [NO, NO, 10, 10, 10, 10];
    /// The port is invalid or missing.
    RequestBadPort BadRequest "bad_port"                              [NO, NO, 11, 11, 11, 11];
    /// The frame in a packet-out is invalid.
    RequestBadPacket BadRequest "bad_packet"                          [NO, NO, 12, 12, 12, 12];
    /// A request of several parts is too long.
    RequestMultipartOverflow BadRequest "multipart_overflow"          [NO, NO, NO, 13, 13, 13];
    /// The next part of a request did not arrive in time.
    RequestMultipartRequestTimeout BadRequest "multipart_request_timeout"[NO, NO, NO, NO, 14, 14];
    /// The next part of a reply did not arrive in time.
    RequestMultipartReplyTimeout BadRequest "multipart_reply_timeout" [NO, NO, NO, NO, 15, 15];
    /// The scheduling tolerance is unsupported.
    RequestMultipartBadSchedule BadRequest "multipart_bad_schedule"   [NO, NO, NO, NO, NO, 16];
    /// The match may have pipeline fields only.
    RequestPipelineFieldsOnly BadRequest "pipeline_fields_only"       [NO, NO, NO, NO, NO, 17];
    /// An unspecified error.
    RequestUnknown BadRequest "unknown"                               [NO, NO, NO, NO, NO, 18];
    /// The action's type is unknown.
    ActionBadType BadAction "bad_type"                                [ 0,  0,  0,  0,  0,  0];
    /// A length in the actions is wrong.
    ActionBadLength BadAction "bad_length"                            [ 1,  1,  1,  1,  1,  1];
    /// The action's experimenter is unknown.
    ActionBadExperimenter BadAction "bad_experimenter"                [ 2,  2,  2,  2,  2,  2];
    /// The experimenter's action type is unknown.
    ActionBadExperimenterType BadAction "bad_experimenter_type"       [ 3,  3,  3,  3,  3,  3];
    /// The output port is invalid.
    ActionBadOutPort BadAction "bad_out_port"                         [ 4,  4,  4,  4,  4,  4];
    /// An action's value is out of range.
    ActionBadArgument BadAction "bad_argument"                        [ 5,  5,  5,  5,  5,  5];
    /// No permission.
    ActionPermission BadAction "permission"                           [ 6,  6,  6,  6,  6,  6];
    /// The list has too many actions.
    ActionTooMany BadAction "too_many"                                [ 7,  7,  7,  7,  7,  7];
    /// The queue does not exist.
    ActionBadQueue BadAction "bad_queue"                              [ 8,  8,  8,  8,  8,  8];
    /// The group does not exist.
    ActionBadOutGroup BadAction "bad_out_group"                       [NO,  9,  9,  9,  9,  9];
    /// The action does not apply to the frames of this match.
    ActionMatchInconsistent BadAction "match_inconsistent"            [NO, 10, 10, 10, 10, 10];
    /// The switch does not support these actions in this order.
    ActionUnsupportedOrder BadAction "unsupported_order"              [NO, 11, 11, 11, 11, 11];
    /// The tag cannot be pushed or popped.
    ActionBadTag BadAction "bad_tag"                                  [NO, 12, 12, 12, 12, 12];
    /// The field to set is unknown.
    ActionBadSetType BadAction "bad_set_type"                         [NO, NO, 13, 13, 13, 13];
    /// The length of the field to set is wrong.
    ActionBadSetLength BadAction "bad_set_length"                     [NO, NO, 14, 14, 14, 14];
    /// The field cannot be set, or not to this value.
    ActionBadSetArgument BadAction "bad_set_argument"                 [NO, NO, 15, 15, 15, 15];
    /// The field to set has a mask.
    ActionBadSetMask BadAction "bad_set_mask"                         [NO, NO, NO, NO, NO, 16];
    /// The meter does not exist.
    ActionBadMeter BadAction "bad_meter"                              [NO, NO, NO, NO, NO, 17];
    /// The instruction is unknown.
    InstructionUnknown BadInstruction "unknown"                       [NO,  0,  0,  0,  0,  0];
    /// The switch or the table does not support the instruction.
    InstructionUnsupported BadInstruction "unsupported"               [NO,  1,  1,  1,  1,  1];
    /// The table of a goto-table is invalid.
    InstructionBadTable BadInstruction "bad_table"                    [NO,  2,  2,  2,  2,  2];
    /// The metadata value is unsupported.
    InstructionUnsupportedMetadata BadInstruction "unsupported_metadata"[NO,  3,  3,  3,  3,  3];
    /// The metadata mask is unsupported.
    InstructionUnsupportedMetadataMask BadInstruction "unsupported_metadata_mask"[NO,  4,  4,  4,  4,  4];
    /// The instruction's experimenter is unknown; in 1.1 also its type.
    InstructionBadExperimenter BadInstruction "bad_experimenter"      [NO,  5,  5,  5,  5,  5];
    /// The experimenter's instruction type is unknown.
    InstructionBadExperimenterType BadInstruction "bad_experimenter_type"[NO, NO,  6,  6,  6,  6];
    /// A length in the instructions is wrong.
    InstructionBadLength BadInstruction "bad_length"                  [NO, NO,  7,  7,  7,  7];
    /// No permission.
    InstructionPermission BadInstruction "permission"                 [NO, NO,  8,  8,  8,  8];
    /// An instruction occurs twice.
    InstructionDuplicate BadInstruction "duplicate"                   [NO, NO, NO, NO,  9,  9];
    /// The match's type is unknown.
    MatchBadType BadMatch "bad_type"                                  [NO,  0,  0,  0,  0,  0];
    /// A length in the match is wrong.
    MatchBadLength BadMatch "bad_length"                              [NO,  1,  1,  1,  1,  1];
    /// The tag is unsupported in a match.
    MatchBadTag BadMatch "bad_tag"                                    [NO,  2,  2,  2,  2,  2];
    /// The mask of an Ethernet address is unsupported.
    MatchBadHardwareMask BadMatch "bad_hardware_mask"                 [NO,  3,  3,  3,  3,  3];
    /// The mask of a network address is unsupported.
    MatchBadNetworkMask BadMatch "bad_network_mask"                   [NO,  4,  4,  4,  4,  4];
    /// The combination of wildcards is unsupported.
    MatchBadWildcards BadMatch "bad_wildcards"                        [NO,  5,  5,  5,  5,  5];
    /// The field is unsupported in a match.
    MatchBadField BadMatch "bad_field"                                [NO,  6,  6,  6,  6,  6];
    /// The value of a field is invalid.
    MatchBadValue BadMatch "bad_value"                                [NO,  7,  7,  7,  7,  7];
    /// The mask is unsupported.
    MatchBadMask BadMatch "bad_mask"                                  [NO, NO,  8,  8,  8,  8];
    /// A prerequisite field is missing.
    MatchBadPrerequisite BadMatch "bad_prerequisite"                  [NO, NO,  9,  9,  9,  9];
    /// A field occurs twice.
    MatchDuplicateField BadMatch "duplicate_field"                    [NO, NO, 10, 10, 10, 10];
    /// No permission.
    MatchPermission BadMatch "permission"                             [NO, NO, 11, 11, 11, 11];
    /// The table is full; "all tables full" in 1.0.
    FlowModTableFull FlowModFailed "table_full"                       [ 0,  1,  1,  1,  1,  1];
    /// The entry overlaps one of the same priority, and the flow-mod requests the check.
    FlowModOverlap FlowModFailed "overlap"                            [ 1,  3,  3,  3,  3,  3];
    /// No permission.
    FlowModPermission FlowModFailed "permission"                      [ 2,  4,  4,  4,  4,  4];
    /// A timeout is unsupported; in 1.0, a timeout of an emergency entry.
    FlowModBadTimeout FlowModFailed "bad_timeout"                     [ 3,  5,  5,  5,  5,  5];
    /// The command is unknown.
    FlowModBadCommand FlowModFailed "bad_command"                     [ 4,  6,  6,  6,  6,  6];
    /// The switch does not support these actions in this order.
    FlowModUnsupported FlowModFailed "unsupported"                    [ 5, NO, NO, NO, NO, NO];
    /// An unspecified error.
    FlowModUnknown FlowModFailed "unknown"                            [NO,  0,  0,  0,  0,  0];
    /// The table does not exist.
    FlowModBadTable FlowModFailed "bad_table"                         [NO,  2,  2,  2,  2,  2];
    /// A flag is unknown or unsupported.
    FlowModBadFlags FlowModFailed "bad_flags"                         [NO, NO,  7,  7,  7,  7];
    /// The tables cannot be synchronized.
    FlowModCannotSynchronize FlowModFailed "cannot_synchronize"       [NO, NO, NO, NO,  8,  8];
    /// The priority is unsupported.
    FlowModBadPriority FlowModFailed "bad_priority"                   [NO, NO, NO, NO,  9,  9];
    /// The entry is synchronized from another table and is read-only.
    FlowModIsSynchronized FlowModFailed "is_synchronized"             [NO, NO, NO, NO, 10, 10];
    /// The group already exists.
    GroupModExists GroupModFailed "exists"                            [NO,  0,  0,  0,  0,  0];
    /// The group is invalid.
    GroupModInvalid GroupModFailed "invalid"                          [NO,  1,  1,  1,  1,  1];
    /// The switch does not support unequal weights.
    GroupModWeightUnsupported GroupModFailed "weight_unsupported"     [NO,  2,  2,  2,  2,  2];
    /// The switch has no space for another group.
    GroupModOutOfGroups GroupModFailed "out_of_groups"                [NO,  3,  3,  3,  3,  3];
    /// The switch has no space for so many buckets.
    GroupModOutOfBuckets GroupModFailed "out_of_buckets"              [NO,  4,  4,  4,  4,  4];
    /// The switch does not support groups that refer to groups.
    GroupModChainingUnsupported GroupModFailed "chaining_unsupported" [NO,  5,  5,  5,  5,  5];
    /// The switch cannot watch this port or group.
    GroupModWatchUnsupported GroupModFailed "watch_unsupported"       [NO,  6,  6,  6,  6,  6];
    /// The groups form a loop.
    GroupModLoop GroupModFailed "loop"                                [NO,  7,  7,  7,  7,  7];
    /// The group does not exist.
    GroupModUnknownGroup GroupModFailed "unknown_group"               [NO,  8,  8,  8,  8,  8];
    /// Another group refers to this one.
    GroupModChainedGroup GroupModFailed "chained_group"               [NO, NO,  9,  9,  9,  9];
    /// The group's type is unknown.
    GroupModBadType GroupModFailed "bad_type"                         [NO, NO, 10, 10, 10, 10];
    /// The command is unknown.
    GroupModBadCommand GroupModFailed "bad_command"                   [NO, NO, 11, 11, 11, 11];
    /// A bucket is invalid.
    GroupModBadBucket GroupModFailed "bad_bucket"                     [NO, NO, 12, 12, 12, 12];
    /// A watch port or watch group is invalid.
    GroupModBadWatch GroupModFailed "bad_watch"                       [NO, NO, 13, 13, 13, 13];
    /// No permission.
    GroupModPermission GroupModFailed "permission"                    [NO, NO, 14, 14, 14, 14];
    /// The bucket does not exist.
    GroupModUnknownBucket GroupModFailed "unknown_bucket"             [NO, NO, NO, NO, NO, 15];
    /// The bucket already exists.
    GroupModBucketExists GroupModFailed "bucket_exists"               [NO, NO, NO, NO, NO, 16];
    /// The port does not exist.
    PortModBadPort PortModFailed "bad_port"                           [ 0,  0,  0,  0,  0,  0];
    /// The MAC address differs from that of the port.
    PortModBadHardwareAddress PortModFailed "bad_hardware_address"    [ 1,  1,  1,  1,  1,  1];
    /// The configuration is invalid.
    PortModBadConfig PortModFailed "bad_config"                       [NO,  2,  2,  2,  2,  2];
    /// The advertised features are invalid.
    PortModBadAdvertise PortModFailed "bad_advertise"                 [NO,  3,  3,  3,  3,  3];
    /// No permission.
    PortModPermission PortModFailed "permission"                      [NO, NO,  4,  4,  4,  4];
    /// The table does not exist.
    TableModBadTable TableModFailed "bad_table"                       [NO,  0,  0,  0,  0,  0];
    /// The configuration is invalid.
    TableModBadConfig TableModFailed "bad_config"                     [NO,  1,  1,  1,  1,  1];
    /// No permission.
    TableModPermission TableModFailed "permission"                    [NO, NO,  2,  2,  2,  2];
    /// The port does not exist.
    QueueOpBadPort QueueOpFailed "bad_port"                           [ 0,  0,  0,  0,  0,  0];
    /// The queue does not exist.
    QueueOpBadQueue QueueOpFailed "bad_queue"                         [ 1,  1,  1,  1,  1,  1];
    /// No permission.
    QueueOpPermission QueueOpFailed "permission"                      [ 2,  2,  2,  2,  2,  2];
    /// A flag is unknown or unsupported.
    SwitchConfigBadFlags SwitchConfigFailed "bad_flags"               [NO,  0,  0,  0,  0,  0];
    /// The miss length is invalid.
    SwitchConfigBadLength SwitchConfigFailed "bad_length"             [NO,  1,  1,  1,  1,  1];
    /// No permission.
    SwitchConfigPermission SwitchConfigFailed "permission"            [NO, NO,  2,  2,  2,  2];
    /// The generation ID is older than the current one.
    RoleRequestStale RoleRequestFailed "stale"                        [NO, NO,  0,  0,  0,  0];
    /// The switch does not support the role change.
    RoleRequestUnsupported RoleRequestFailed "unsupported"            [NO, NO,  1,  1,  1,  1];
    /// The role is unknown.
    RoleRequestBadRole RoleRequestFailed "bad_role"                   [NO, NO,  2,  2,  2,  2];
    /// The switch does not support changing the short ID.
    RoleRequestIdUnsupported RoleRequestFailed "id_unsupported"       [NO, NO, NO, NO, NO,  3];
    /// Another controller has this short ID.
    RoleRequestIdInUse RoleRequestFailed "id_in_use"                  [NO, NO, NO, NO, NO,  4];
    /// An unspecified error.
    MeterModUnknown MeterModFailed "unknown"                          [NO, NO, NO,  0,  0,  0];
    /// The meter already exists.
    MeterModExists MeterModFailed "exists"                            [NO, NO, NO,  1,  1,  1];
    /// The meter is invalid.
    MeterModInvalid MeterModFailed "invalid"                          [NO, NO, NO,  2,  2,  2];
    /// The meter does not exist.
    MeterModUnknownMeter MeterModFailed "unknown_meter"               [NO, NO, NO,  3,  3,  3];
    /// The command is unknown.
    MeterModBadCommand MeterModFailed "bad_command"                   [NO, NO, NO,  4,  4,  4];
    /// A flag is unknown or unsupported.
    MeterModBadFlags MeterModFailed "bad_flags"                       [NO, NO, NO,  5,  5,  5];
    /// The rate is unsupported.
    MeterModBadRate MeterModFailed "bad_rate"                         [NO, NO, NO,  6,  6,  6];
    /// The burst size is unsupported.
    MeterModBadBurst MeterModFailed "bad_burst"                       [NO, NO, NO,  7,  7,  7];
    /// The band type is unknown.
    MeterModBadBand MeterModFailed "bad_band"                         [NO, NO, NO,  8,  8,  8];
    /// A value of a band is unsupported.
    MeterModBadBandValue MeterModFailed "bad_band_value"              [NO, NO, NO,  9,  9,  9];
    /// The switch has no space for another meter.
    MeterModOutOfMeters MeterModFailed "out_of_meters"                [NO, NO, NO, 10, 10, 10];
    /// The switch has no space for so many bands.
    MeterModOutOfBands MeterModFailed "out_of_bands"                  [NO, NO, NO, 11, 11, 11];
    /// The table does not exist.
    TableFeaturesBadTable TableFeaturesFailed "bad_table"             [NO, NO, NO,  0,  0,  0];
    /// The metadata mask is invalid.
    TableFeaturesBadMetadata TableFeaturesFailed "bad_metadata"       [NO, NO, NO,  1,  1,  1];
    /// The property's type is unknown; from 1.4 on a bad property.
    TableFeaturesBadType TableFeaturesFailed "bad_type"               [NO, NO, NO,  2, NO, NO];
    /// A length in the properties is wrong; from 1.4 on a bad property.
    TableFeaturesBadLength TableFeaturesFailed "bad_length"           [NO, NO, NO,  3, NO, NO];
    /// A property's value is invalid; from 1.4 on a bad property.
    TableFeaturesBadArgument TableFeaturesFailed "bad_argument"       [NO, NO, NO,  4, NO, NO];
    /// No permission.
    TableFeaturesPermission TableFeaturesFailed "permission"          [NO, NO, NO,  5,  5,  5];
    /// The capabilities are invalid.
    TableFeaturesBadCapabilities TableFeaturesFailed "bad_capabilities"[NO, NO, NO, NO, NO,  6];
    /// The maximum number of entries is unsupported.
    TableFeaturesBadEntriesMax TableFeaturesFailed "bad_entries_max"  [NO, NO, NO, NO, NO,  7];
    /// The features are invalid.
    TableFeaturesBadFeatures TableFeaturesFailed "bad_features"       [NO, NO, NO, NO, NO,  8];
    /// The command is unknown.
    TableFeaturesBadCommand TableFeaturesFailed "bad_command"         [NO, NO, NO, NO, NO,  9];
    /// The switch does not support so many tables.
    TableFeaturesTooMany TableFeaturesFailed "too_many"               [NO, NO, NO, NO, NO, 10];
    /// The property's type is unknown.
    PropertyBadType BadProperty "bad_type"                            [NO, NO, NO, NO,  0,  0];
    /// A length in the properties is wrong.
    PropertyBadLength BadProperty "bad_length"                        [NO, NO, NO, NO,  1,  1];
    /// A property's value is invalid.
    PropertyBadValue BadProperty "bad_value"                          [NO, NO, NO, NO,  2,  2];
    /// The request has too many properties.
    PropertyTooMany BadProperty "too_many"                            [NO, NO, NO, NO,  3,  3];
    /// A property occurs twice.
    PropertyDuplicateType BadProperty "duplicate_type"                [NO, NO, NO, NO,  4,  4];
    /// The property's experimenter is unknown.
    PropertyBadExperimenter BadProperty "bad_experimenter"            [NO, NO, NO, NO,  5,  5];
    /// The experimenter's property type is unknown.
    PropertyBadExperimenterType BadProperty "bad_experimenter_type"   [NO, NO, NO, NO,  6,  6];
    /// The experimenter's value is invalid.
    PropertyBadExperimenterValue BadProperty "bad_experimenter_value" [NO, NO, NO, NO,  7,  7];
    /// No permission.
    PropertyPermission BadProperty "permission"                       [NO, NO, NO, NO,  8,  8];
    /// A set of reasons is invalid.
    AsyncConfigInvalid AsyncConfigFailed "invalid"                    [NO, NO, NO, NO,  0,  0];
    /// The switch does not support the configuration.
    AsyncConfigUnsupported AsyncConfigFailed "unsupported"            [NO, NO, NO, NO,  1,  1];
    /// No permission.
    AsyncConfigPermission AsyncConfigFailed "permission"              [NO, NO, NO, NO,  2,  2];
    /// An unspecified error.
    FlowMonitorUnknown FlowMonitorFailed "unknown"                    [NO, NO, NO, NO,  0,  0];
    /// The monitor already exists.
    FlowMonitorExists FlowMonitorFailed "exists"                      [NO, NO, NO, NO,  1,  1];
    /// The monitor is invalid.
    FlowMonitorInvalid FlowMonitorFailed "invalid"                    [NO, NO, NO, NO,  2,  2];
    /// The monitor does not exist.
    FlowMonitorUnknownMonitor FlowMonitorFailed "unknown_monitor"     [NO, NO, NO, NO,  3,  3];
    /// The command is unknown.
    FlowMonitorBadCommand FlowMonitorFailed "bad_command"             [NO, NO, NO, NO,  4,  4];
    /// A flag is unknown or unsupported.
    FlowMonitorBadFlags FlowMonitorFailed "bad_flags"                 [NO, NO, NO, NO,  5,  5];
    /// The table does not exist.
    FlowMonitorBadTable FlowMonitorFailed "bad_table"                 [NO, NO, NO, NO,  6,  6];
    /// The output port or group of the filter is invalid.
    FlowMonitorBadOut FlowMonitorFailed "bad_out"                     [NO, NO, NO, NO,  7,  7];
    /// An unspecified error.
    BundleUnknown BundleFailed "unknown"                              [NO, NO, NO, 2300,  0,  0];
    /// No permission.
    BundlePermission BundleFailed "permission"                        [NO, NO, NO, 2301,  1,  1];
    /// The bundle does not exist.
    BundleBadId BundleFailed "bad_id"                                 [NO, NO, NO, 2302,  2,  2];
    /// The bundle already exists.
    BundleExists BundleFailed "exists"                                [NO, NO, NO, 2303,  3,  3];
    /// The bundle is closed.
    BundleClosed BundleFailed "closed"                                [NO, NO, NO, 2304,  4,  4];
    /// The switch has no space for another bundle.
    BundleOutOfBundles BundleFailed "out_of_bundles"                  [NO, NO, NO, 2305,  5,  5];
    /// The control type is unknown.
    BundleBadType BundleFailed "bad_type"                             [NO, NO, NO, 2306,  6,  6];
    /// A flag is unknown, or differs from the flags of the bundle.
    BundleBadFlags BundleFailed "bad_flags"                           [NO, NO, NO, 2307,  7,  7];
    /// The length of the contained message is wrong.
    BundleMessageBadLength BundleFailed "message_bad_length"          [NO, NO, NO, 2308,  8,  8];
    /// The contained message has another transaction ID.
    BundleMessageBadXid BundleFailed "message_bad_xid"                [NO, NO, NO, 2309,  9,  9];
    /// Bundles do not support this message.
    BundleMessageUnsupported BundleFailed "message_unsupported"       [NO, NO, NO, 2310, 10, 10];
    /// The messages of the bundle conflict with each other.
    BundleMessageConflict BundleFailed "message_conflict"             [NO, NO, NO, 2311, 11, 11];
    /// The bundle has too many messages.
    BundleMessageTooMany BundleFailed "message_too_many"              [NO, NO, NO, 2312, 12, 12];
    /// A message of the bundle failed.
    BundleMessageFailed BundleFailed "message_failed"                 [NO, NO, NO, 2313, 13, 13];
    /// The bundle was open too long.
    BundleTimeout BundleFailed "timeout"                              [NO, NO, NO, 2314, 14, 14];
    /// Another bundle locks a resource.
    BundleInProgress BundleFailed "in_progress"                       [NO, NO, NO, 2315, 15, 15];
    /// The switch does not support scheduled bundles.
    BundleScheduleUnsupported BundleFailed "schedule_unsupported"     [NO, NO, NO, NO, NO, 16];
    /// The scheduled time is too far in the future.
    BundleScheduleFuture BundleFailed "schedule_future"               [NO, NO, NO, NO, NO, 17];
    /// The scheduled time is too far in the past.
    BundleSchedulePast BundleFailed "schedule_past"                   [NO, NO, NO, NO, NO, 18];
}

impl ErrorCode {
    /// Returns the type and code fields on the wire, if this version has the error.
    pub fn to_wire(self, version: Version) -> Option<(u16, u16)> {
        if let ErrorCode::Other { family, code } = self {
            return Some((family, code));
        }
        let row = self.row()?;
        let code = row.codes[version.column()];
        Some((row.family.code(version)?, (code != NO).then_some(code as u16)?))
    }

    /// Returns the experimenter ID that precedes the data, if this version has the error as an
    /// experimenter's extension.
    pub fn experimenter(self, version: Version) -> Option<u32> {
        let family = self.row()?.family;
        let is_theirs = family != ErrorType::Experimenter
            && family.code(version)? == ErrorType::Experimenter.code(version)?;
        is_theirs.then_some(ONF)
    }

    /// Returns the error of these type and code fields; [`ErrorCode::Other`] if unknown.
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
