//! Which errors each version has.
//!
//! Source: `ofp_error_type` and the enums of codes of the OpenFlow Switch Specifications 1.0.0 to
//! 1.5.1.

/// What a version says instead of an error that it does not have.
mod nearest;

use std::fmt;

use super::{NO, ONF, VERSIONS, Version};

table! {
    /// The family of an error (`ofp_error_type`).
    ErrorType: u16 {
        //                                             1.0     1.1     1.2     1.3     1.4     1.5
        /// The versions do not meet.
        HelloFailed "hello_failed"                 [     0,      0,      0,      0,      0,      0];
        /// A message was not understood.
        BadRequest "bad_request"                   [     1,      1,      1,      1,      1,      1];
        /// An action was not understood, or cannot be done.
        BadAction "bad_action"                     [     2,      2,      2,      2,      2,      2];
        /// The tables cannot be changed so.
        FlowModFailed "flow_mod_failed"            [     3,      5,      5,      5,      5,      5];
        /// The port cannot be changed so.
        PortModFailed "port_mod_failed"            [     4,      7,      7,      7,      7,      7];
        /// A queue cannot be looked at so.
        QueueOpFailed "queue_op_failed"            [     5,      9,      9,      9,      9,      9];
        /// An instruction was not understood, or cannot be done.
        BadInstruction "bad_instruction"           [    NO,      3,      3,      3,      3,      3];
        /// A match was not understood, or cannot be told apart.
        BadMatch "bad_match"                       [    NO,      4,      4,      4,      4,      4];
        /// The group cannot be changed so.
        GroupModFailed "group_mod_failed"          [    NO,      6,      6,      6,      6,      6];
        /// The table cannot be set up so.
        TableModFailed "table_mod_failed"          [    NO,      8,      8,      8,      8,      8];
        /// The switch cannot be set up so.
        SwitchConfigFailed "switch_config_failed"  [    NO,     10,     10,     10,     10,     10];
        /// The controller cannot have this role.
        RoleRequestFailed "role_request_failed"    [    NO,     NO,     11,     11,     11,     11];
        /// The meter cannot be changed so.
        MeterModFailed "meter_mod_failed"          [    NO,     NO,     NO,     12,     12,     12];
        /// The tables cannot have these features.
        TableFeaturesFailed "table_features_failed"[    NO,     NO,     NO,     13,     13,     13];
        /// A property was not understood, or cannot be.
        BadProperty "bad_property"                 [    NO,     NO,     NO,     NO,     14,     14];
        /// The asynchronous messages cannot be chosen so.
        AsyncConfigFailed "async_config_failed"    [    NO,     NO,     NO,     NO,     15,     15];
        /// The flow monitor cannot be set up so.
        FlowMonitorFailed "flow_monitor_failed"    [    NO,     NO,     NO,     NO,     16,     16];
        /// The bundle cannot be done. 1.3 has this by ONF's extension 230.
        BundleFailed "bundle_failed"               [    NO,     NO,     NO, 0xffff,     17,     17];
        /// What somebody else defines:
        /// the code is theirs, and the data starts with their number.
        Experimenter "experimenter"                [    NO,     NO, 0xffff, 0xffff, 0xffff, 0xffff];
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
    //                                                                   1.0 1.1 1.2 1.3 1.4 1.5
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
    /// The experimenter is unknown.
    RequestBadExperimenter BadRequest "bad_experimenter"              [ 3,  3,  3,  3,  3,  3];
    /// The experimenter's subtype is unknown.
    RequestBadExperimenterType BadRequest "bad_experimenter_type"     [ 4,  4,  4,  4,  4,  4];
    /// Not permitted.
    RequestPermission BadRequest "permission"                         [ 5,  5,  5,  5,  5,  5];
    /// A length does not fit.
    RequestBadLength BadRequest "bad_length"                          [ 6,  6,  6,  6,  6,  6];
    /// The buffer has been used already.
    RequestBufferEmpty BadRequest "buffer_empty"                      [ 7,  7,  7,  7,  7,  7];
    /// There is no such buffer.
    RequestBufferUnknown BadRequest "buffer_unknown"                  [ 8,  8,  8,  8,  8,  8];
    /// There is no such table.
    RequestBadTable BadRequest "bad_table"                            [NO,  9,  9,  9,  9,  9];
    /// The controller is a slave and may not change anything.
    RequestIsSlave BadRequest "is_slave"                              [NO, NO, 10, 10, 10, 10];
    /// There is no such port, or it is missing.
    RequestBadPort BadRequest "bad_port"                              [NO, NO, 11, 11, 11, 11];
    /// The frame in a packet-out is none.
    RequestBadPacket BadRequest "bad_packet"                          [NO, NO, 12, 12, 12, 12];
    /// A request in many parts is too long.
    RequestMultipartOverflow BadRequest "multipart_overflow"          [NO, NO, NO, 13, 13, 13];
    /// The next part of a request did not come in time.
    RequestMultipartRequestTimeout BadRequest "multipart_request_timeout"[NO, NO, NO, NO, 14, 14];
    /// The next part of a reply did not come in time.
    RequestMultipartReplyTimeout BadRequest "multipart_reply_timeout" [NO, NO, NO, NO, 15, 15];
    /// The tolerance of scheduling cannot be set so.
    RequestMultipartBadSchedule BadRequest "multipart_bad_schedule"   [NO, NO, NO, NO, NO, 16];
    /// The match may hold pipeline fields only.
    RequestPipelineFieldsOnly BadRequest "pipeline_fields_only"       [NO, NO, NO, NO, NO, 17];
    /// Something else.
    RequestUnknown BadRequest "unknown"                               [NO, NO, NO, NO, NO, 18];
    /// The action's type is unknown.
    ActionBadType BadAction "bad_type"                                [ 0,  0,  0,  0,  0,  0];
    /// A length in the actions does not fit.
    ActionBadLength BadAction "bad_length"                            [ 1,  1,  1,  1,  1,  1];
    /// The action's experimenter is unknown.
    ActionBadExperimenter BadAction "bad_experimenter"                [ 2,  2,  2,  2,  2,  2];
    /// The experimenter's action type is unknown.
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
    /// There is no such group.
    ActionBadOutGroup BadAction "bad_out_group"                       [NO,  9,  9,  9,  9,  9];
    /// The action cannot be done to what the match lets through.
    ActionMatchInconsistent BadAction "match_inconsistent"            [NO, 10, 10, 10, 10, 10];
    /// The switch cannot do these actions in this order.
    ActionUnsupportedOrder BadAction "unsupported_order"              [NO, 11, 11, 11, 11, 11];
    /// The tag cannot be pushed or popped.
    ActionBadTag BadAction "bad_tag"                                  [NO, 12, 12, 12, 12, 12];
    /// The field to set is unknown.
    ActionBadSetType BadAction "bad_set_type"                         [NO, NO, 13, 13, 13, 13];
    /// The length of the field to set does not fit.
    ActionBadSetLength BadAction "bad_set_length"                     [NO, NO, 14, 14, 14, 14];
    /// The field cannot have this value, or cannot be set.
    ActionBadSetArgument BadAction "bad_set_argument"                 [NO, NO, 15, 15, 15, 15];
    /// The field to set has a mask.
    ActionBadSetMask BadAction "bad_set_mask"                         [NO, NO, NO, NO, NO, 16];
    /// There is no such meter.
    ActionBadMeter BadAction "bad_meter"                              [NO, NO, NO, NO, NO, 17];
    /// The instruction is unknown.
    InstructionUnknown BadInstruction "unknown"                       [NO,  0,  0,  0,  0,  0];
    /// The switch or the table does not have the instruction.
    InstructionUnsupported BadInstruction "unsupported"               [NO,  1,  1,  1,  1,  1];
    /// The table cannot be gone to.
    InstructionBadTable BadInstruction "bad_table"                    [NO,  2,  2,  2,  2,  2];
    /// The metadata value cannot be.
    InstructionUnsupportedMetadata BadInstruction "unsupported_metadata"[NO,  3,  3,  3,  3,  3];
    /// The metadata mask cannot be.
    InstructionUnsupportedMetadataMask BadInstruction "unsupported_metadata_mask"[NO,  4,  4,  4,  4,  4];
    /// The instruction's experimenter is unknown; in 1.1 its type too.
    InstructionBadExperimenter BadInstruction "bad_experimenter"      [NO,  5,  5,  5,  5,  5];
    /// The experimenter's instruction type is unknown.
    InstructionBadExperimenterType BadInstruction "bad_experimenter_type"[NO, NO,  6,  6,  6,  6];
    /// A length in the instructions does not fit.
    InstructionBadLength BadInstruction "bad_length"                  [NO, NO,  7,  7,  7,  7];
    /// Not permitted.
    InstructionPermission BadInstruction "permission"                 [NO, NO,  8,  8,  8,  8];
    /// An instruction is there twice.
    InstructionDuplicate BadInstruction "duplicate"                   [NO, NO, NO, NO,  9,  9];
    /// The match's type is unknown.
    MatchBadType BadMatch "bad_type"                                  [NO,  0,  0,  0,  0,  0];
    /// A length in the match does not fit.
    MatchBadLength BadMatch "bad_length"                              [NO,  1,  1,  1,  1,  1];
    /// The tag cannot be matched.
    MatchBadTag BadMatch "bad_tag"                                    [NO,  2,  2,  2,  2,  2];
    /// The mask of an Ethernet address cannot be.
    MatchBadHardwareMask BadMatch "bad_hardware_mask"                 [NO,  3,  3,  3,  3,  3];
    /// The mask of a network address cannot be.
    MatchBadNetworkMask BadMatch "bad_network_mask"                   [NO,  4,  4,  4,  4,  4];
    /// Fields cannot be left open so.
    MatchBadWildcards BadMatch "bad_wildcards"                        [NO,  5,  5,  5,  5,  5];
    /// The field cannot be matched.
    MatchBadField BadMatch "bad_field"                                [NO,  6,  6,  6,  6,  6];
    /// The field cannot have this value.
    MatchBadValue BadMatch "bad_value"                                [NO,  7,  7,  7,  7,  7];
    /// The mask cannot be.
    MatchBadMask BadMatch "bad_mask"                                  [NO, NO,  8,  8,  8,  8];
    /// A field that this one needs is missing.
    MatchBadPrerequisite BadMatch "bad_prerequisite"                  [NO, NO,  9,  9,  9,  9];
    /// A field is there twice.
    MatchDuplicateField BadMatch "duplicate_field"                    [NO, NO, 10, 10, 10, 10];
    /// Not permitted.
    MatchPermission BadMatch "permission"                             [NO, NO, 11, 11, 11, 11];
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
    /// Something else.
    FlowModUnknown FlowModFailed "unknown"                            [NO,  0,  0,  0,  0,  0];
    /// There is no such table.
    FlowModBadTable FlowModFailed "bad_table"                         [NO,  2,  2,  2,  2,  2];
    /// A flag is unknown, or cannot be.
    FlowModBadFlags FlowModFailed "bad_flags"                         [NO, NO,  7,  7,  7,  7];
    /// The tables cannot be kept alike.
    FlowModCannotSynchronize FlowModFailed "cannot_synchronize"       [NO, NO, NO, NO,  8,  8];
    /// The priority cannot be.
    FlowModBadPriority FlowModFailed "bad_priority"                   [NO, NO, NO, NO,  9,  9];
    /// The entry follows another table's and is not changed by hand.
    FlowModIsSynchronized FlowModFailed "is_synchronized"             [NO, NO, NO, NO, 10, 10];
    /// There is such a group already.
    GroupModExists GroupModFailed "exists"                            [NO,  0,  0,  0,  0,  0];
    /// The group cannot be.
    GroupModInvalid GroupModFailed "invalid"                          [NO,  1,  1,  1,  1,  1];
    /// Buckets cannot have unequal weights.
    GroupModWeightUnsupported GroupModFailed "weight_unsupported"     [NO,  2,  2,  2,  2,  2];
    /// No room for another group.
    GroupModOutOfGroups GroupModFailed "out_of_groups"                [NO,  3,  3,  3,  3,  3];
    /// No room for so many buckets.
    GroupModOutOfBuckets GroupModFailed "out_of_buckets"              [NO,  4,  4,  4,  4,  4];
    /// Groups cannot lead to groups.
    GroupModChainingUnsupported GroupModFailed "chaining_unsupported" [NO,  5,  5,  5,  5,  5];
    /// The port or group cannot be watched.
    GroupModWatchUnsupported GroupModFailed "watch_unsupported"       [NO,  6,  6,  6,  6,  6];
    /// The groups would lead back to themselves.
    GroupModLoop GroupModFailed "loop"                                [NO,  7,  7,  7,  7,  7];
    /// There is no such group.
    GroupModUnknownGroup GroupModFailed "unknown_group"               [NO,  8,  8,  8,  8,  8];
    /// Another group leads to this one.
    GroupModChainedGroup GroupModFailed "chained_group"               [NO, NO,  9,  9,  9,  9];
    /// The group's type is unknown.
    GroupModBadType GroupModFailed "bad_type"                         [NO, NO, 10, 10, 10, 10];
    /// The command is unknown.
    GroupModBadCommand GroupModFailed "bad_command"                   [NO, NO, 11, 11, 11, 11];
    /// A bucket is wrong.
    GroupModBadBucket GroupModFailed "bad_bucket"                     [NO, NO, 12, 12, 12, 12];
    /// A watched port or group is wrong.
    GroupModBadWatch GroupModFailed "bad_watch"                       [NO, NO, 13, 13, 13, 13];
    /// Not permitted.
    GroupModPermission GroupModFailed "permission"                    [NO, NO, 14, 14, 14, 14];
    /// There is no such bucket.
    GroupModUnknownBucket GroupModFailed "unknown_bucket"             [NO, NO, NO, NO, NO, 15];
    /// There is such a bucket already.
    GroupModBucketExists GroupModFailed "bucket_exists"               [NO, NO, NO, NO, NO, 16];
    /// There is no such port.
    PortModBadPort PortModFailed "bad_port"                           [ 0,  0,  0,  0,  0,  0];
    /// The hardware address is not the port's.
    PortModBadHardwareAddress PortModFailed "bad_hardware_address"    [ 1,  1,  1,  1,  1,  1];
    /// The port cannot behave so.
    PortModBadConfig PortModFailed "bad_config"                       [NO,  2,  2,  2,  2,  2];
    /// The port cannot advertise so.
    PortModBadAdvertise PortModFailed "bad_advertise"                 [NO,  3,  3,  3,  3,  3];
    /// Not permitted.
    PortModPermission PortModFailed "permission"                      [NO, NO,  4,  4,  4,  4];
    /// There is no such table.
    TableModBadTable TableModFailed "bad_table"                       [NO,  0,  0,  0,  0,  0];
    /// The table cannot behave so.
    TableModBadConfig TableModFailed "bad_config"                     [NO,  1,  1,  1,  1,  1];
    /// Not permitted.
    TableModPermission TableModFailed "permission"                    [NO, NO,  2,  2,  2,  2];
    /// There is no such port.
    QueueOpBadPort QueueOpFailed "bad_port"                           [ 0,  0,  0,  0,  0,  0];
    /// There is no such queue.
    QueueOpBadQueue QueueOpFailed "bad_queue"                         [ 1,  1,  1,  1,  1,  1];
    /// Not permitted.
    QueueOpPermission QueueOpFailed "permission"                      [ 2,  2,  2,  2,  2,  2];
    /// A flag is unknown, or cannot be.
    SwitchConfigBadFlags SwitchConfigFailed "bad_flags"               [NO,  0,  0,  0,  0,  0];
    /// The miss length cannot be.
    SwitchConfigBadLength SwitchConfigFailed "bad_length"             [NO,  1,  1,  1,  1,  1];
    /// Not permitted.
    SwitchConfigPermission SwitchConfigFailed "permission"            [NO, NO,  2,  2,  2,  2];
    /// The generation is older than one that was seen.
    RoleRequestStale RoleRequestFailed "stale"                        [NO, NO,  0,  0,  0,  0];
    /// The role cannot be changed.
    RoleRequestUnsupported RoleRequestFailed "unsupported"            [NO, NO,  1,  1,  1,  1];
    /// The role is unknown.
    RoleRequestBadRole RoleRequestFailed "bad_role"                   [NO, NO,  2,  2,  2,  2];
    /// The controller's number cannot be changed.
    RoleRequestIdUnsupported RoleRequestFailed "id_unsupported"       [NO, NO, NO, NO, NO,  3];
    /// Another controller has this number.
    RoleRequestIdInUse RoleRequestFailed "id_in_use"                  [NO, NO, NO, NO, NO,  4];
    /// Something else.
    MeterModUnknown MeterModFailed "unknown"                          [NO, NO, NO,  0,  0,  0];
    /// There is such a meter already.
    MeterModExists MeterModFailed "exists"                            [NO, NO, NO,  1,  1,  1];
    /// The meter cannot be.
    MeterModInvalid MeterModFailed "invalid"                          [NO, NO, NO,  2,  2,  2];
    /// There is no such meter.
    MeterModUnknownMeter MeterModFailed "unknown_meter"               [NO, NO, NO,  3,  3,  3];
    /// The command is unknown.
    MeterModBadCommand MeterModFailed "bad_command"                   [NO, NO, NO,  4,  4,  4];
    /// A flag is unknown, or cannot be.
    MeterModBadFlags MeterModFailed "bad_flags"                       [NO, NO, NO,  5,  5,  5];
    /// The rate cannot be.
    MeterModBadRate MeterModFailed "bad_rate"                         [NO, NO, NO,  6,  6,  6];
    /// The burst cannot be.
    MeterModBadBurst MeterModFailed "bad_burst"                       [NO, NO, NO,  7,  7,  7];
    /// The kind of band is unknown.
    MeterModBadBand MeterModFailed "bad_band"                         [NO, NO, NO,  8,  8,  8];
    /// A value of a band cannot be.
    MeterModBadBandValue MeterModFailed "bad_band_value"              [NO, NO, NO,  9,  9,  9];
    /// No room for another meter.
    MeterModOutOfMeters MeterModFailed "out_of_meters"                [NO, NO, NO, 10, 10, 10];
    /// No room for so many bands.
    MeterModOutOfBands MeterModFailed "out_of_bands"                  [NO, NO, NO, 11, 11, 11];
    /// There is no such table.
    TableFeaturesBadTable TableFeaturesFailed "bad_table"             [NO, NO, NO,  0,  0,  0];
    /// The metadata mask cannot be.
    TableFeaturesBadMetadata TableFeaturesFailed "bad_metadata"       [NO, NO, NO,  1,  1,  1];
    /// The property's type is unknown; from 1.4 on a bad property.
    TableFeaturesBadType TableFeaturesFailed "bad_type"               [NO, NO, NO,  2, NO, NO];
    /// A length in the properties does not fit; from 1.4 on a bad property.
    TableFeaturesBadLength TableFeaturesFailed "bad_length"           [NO, NO, NO,  3, NO, NO];
    /// A property's value cannot be; from 1.4 on a bad property.
    TableFeaturesBadArgument TableFeaturesFailed "bad_argument"       [NO, NO, NO,  4, NO, NO];
    /// Not permitted.
    TableFeaturesPermission TableFeaturesFailed "permission"          [NO, NO, NO,  5,  5,  5];
    /// The capabilities cannot be.
    TableFeaturesBadCapabilities TableFeaturesFailed "bad_capabilities"[NO, NO, NO, NO, NO,  6];
    /// The table cannot have so many entries.
    TableFeaturesBadEntriesMax TableFeaturesFailed "bad_entries_max"  [NO, NO, NO, NO, NO,  7];
    /// The features cannot be.
    TableFeaturesBadFeatures TableFeaturesFailed "bad_features"       [NO, NO, NO, NO, NO,  8];
    /// The command is unknown.
    TableFeaturesBadCommand TableFeaturesFailed "bad_command"         [NO, NO, NO, NO, NO,  9];
    /// No room for so many tables.
    TableFeaturesTooMany TableFeaturesFailed "too_many"               [NO, NO, NO, NO, NO, 10];
    /// The property's type is unknown.
    PropertyBadType BadProperty "bad_type"                            [NO, NO, NO, NO,  0,  0];
    /// A length in the properties does not fit.
    PropertyBadLength BadProperty "bad_length"                        [NO, NO, NO, NO,  1,  1];
    /// A property's value cannot be.
    PropertyBadValue BadProperty "bad_value"                          [NO, NO, NO, NO,  2,  2];
    /// More properties than the switch can take.
    PropertyTooMany BadProperty "too_many"                            [NO, NO, NO, NO,  3,  3];
    /// A property is there twice.
    PropertyDuplicateType BadProperty "duplicate_type"                [NO, NO, NO, NO,  4,  4];
    /// The property's experimenter is unknown.
    PropertyBadExperimenter BadProperty "bad_experimenter"            [NO, NO, NO, NO,  5,  5];
    /// The experimenter's property type is unknown.
    PropertyBadExperimenterType BadProperty "bad_experimenter_type"   [NO, NO, NO, NO,  6,  6];
    /// The experimenter's value cannot be.
    PropertyBadExperimenterValue BadProperty "bad_experimenter_value" [NO, NO, NO, NO,  7,  7];
    /// Not permitted.
    PropertyPermission BadProperty "permission"                       [NO, NO, NO, NO,  8,  8];
    /// A set of reasons cannot be.
    AsyncConfigInvalid AsyncConfigFailed "invalid"                    [NO, NO, NO, NO,  0,  0];
    /// The messages cannot be chosen so.
    AsyncConfigUnsupported AsyncConfigFailed "unsupported"            [NO, NO, NO, NO,  1,  1];
    /// Not permitted.
    AsyncConfigPermission AsyncConfigFailed "permission"              [NO, NO, NO, NO,  2,  2];
    /// Something else.
    FlowMonitorUnknown FlowMonitorFailed "unknown"                    [NO, NO, NO, NO,  0,  0];
    /// There is such a monitor already.
    FlowMonitorExists FlowMonitorFailed "exists"                      [NO, NO, NO, NO,  1,  1];
    /// The monitor cannot be.
    FlowMonitorInvalid FlowMonitorFailed "invalid"                    [NO, NO, NO, NO,  2,  2];
    /// There is no such monitor.
    FlowMonitorUnknownMonitor FlowMonitorFailed "unknown_monitor"     [NO, NO, NO, NO,  3,  3];
    /// The command is unknown.
    FlowMonitorBadCommand FlowMonitorFailed "bad_command"             [NO, NO, NO, NO,  4,  4];
    /// A flag is unknown, or cannot be.
    FlowMonitorBadFlags FlowMonitorFailed "bad_flags"                 [NO, NO, NO, NO,  5,  5];
    /// There is no such table.
    FlowMonitorBadTable FlowMonitorFailed "bad_table"                 [NO, NO, NO, NO,  6,  6];
    /// The port or group to ask for is wrong.
    FlowMonitorBadOut FlowMonitorFailed "bad_out"                     [NO, NO, NO, NO,  7,  7];
    /// Something else.
    BundleUnknown BundleFailed "unknown"                              [NO, NO, NO, 2300,  0,  0];
    /// Not permitted.
    BundlePermission BundleFailed "permission"                        [NO, NO, NO, 2301,  1,  1];
    /// There is no such bundle.
    BundleBadId BundleFailed "bad_id"                                 [NO, NO, NO, 2302,  2,  2];
    /// There is such a bundle already.
    BundleExists BundleFailed "exists"                                [NO, NO, NO, 2303,  3,  3];
    /// The bundle takes no more messages.
    BundleClosed BundleFailed "closed"                                [NO, NO, NO, 2304,  4,  4];
    /// No room for another bundle.
    BundleOutOfBundles BundleFailed "out_of_bundles"                  [NO, NO, NO, 2305,  5,  5];
    /// The type of control is unknown.
    BundleBadType BundleFailed "bad_type"                             [NO, NO, NO, 2306,  6,  6];
    /// A flag is unknown, or not that of the bundle.
    BundleBadFlags BundleFailed "bad_flags"                           [NO, NO, NO, 2307,  7,  7];
    /// The length of the message inside does not fit.
    BundleMessageBadLength BundleFailed "message_bad_length"          [NO, NO, NO, 2308,  8,  8];
    /// The message inside has another transaction id.
    BundleMessageBadXid BundleFailed "message_bad_xid"                [NO, NO, NO, 2309,  9,  9];
    /// A bundle cannot hold such a message.
    BundleMessageUnsupported BundleFailed "message_unsupported"       [NO, NO, NO, 2310, 10, 10];
    /// The bundle cannot hold these messages together.
    BundleMessageConflict BundleFailed "message_conflict"             [NO, NO, NO, 2311, 11, 11];
    /// No room for so many messages.
    BundleMessageTooMany BundleFailed "message_too_many"              [NO, NO, NO, 2312, 12, 12];
    /// A message inside cannot be done.
    BundleMessageFailed BundleFailed "message_failed"                 [NO, NO, NO, 2313, 13, 13];
    /// The bundle has been open too long.
    BundleTimeout BundleFailed "timeout"                              [NO, NO, NO, 2314, 14, 14];
    /// Another bundle holds what this one needs.
    BundleInProgress BundleFailed "in_progress"                       [NO, NO, NO, 2315, 15, 15];
    /// Bundles cannot be done at a set time.
    BundleScheduleUnsupported BundleFailed "schedule_unsupported"     [NO, NO, NO, NO, NO, 16];
    /// The set time is too far ahead.
    BundleScheduleFuture BundleFailed "schedule_future"               [NO, NO, NO, NO, NO, 17];
    /// The set time is too long ago.
    BundleSchedulePast BundleFailed "schedule_past"                   [NO, NO, NO, NO, NO, 18];
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

    /// The experimenter whose number stands before the data, if this version has the error by an
    /// extension of theirs.
    pub fn experimenter(self, version: Version) -> Option<u32> {
        let family = self.row()?.family;
        let is_theirs = family != ErrorType::Experimenter
            && family.code(version)? == ErrorType::Experimenter.code(version)?;
        is_theirs.then_some(ONF)
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
