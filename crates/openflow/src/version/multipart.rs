//! Multipart types of each version.
//!
//! Source: `ofp_stats_types` and `ofp_multipart_type` of the OpenFlow Switch Specifications 1.0.0
//! to 1.5.1.

use std::fmt;

use super::{NO, VERSIONS, Version};

table! {
    /// A multipart type (`ofp_stats_types`, later `ofp_multipart_type`).
    MultipartKind: u16 {
        //                                                 1.0     1.1     1.2     1.3     1.4     1.5
        /// Description of the switch.
        Desc "desc"                                       [0,      0,      0,      0,      0,      0];
        /// Flow entries with their counters; "flow_desc" in 1.5.
        Flow "flow"                                       [1,      1,      1,      1,      1,      1];
        /// Sum of the counters of flow entries.
        Aggregate "aggregate"                             [2,      2,      2,      2,      2,      2];
        /// Counters of each table.
        Table "table"                                     [3,      3,      3,      3,      3,      3];
        /// Counters of one port or all.
        Port "port"                                       [4,      4,      4,      4,      4,      4];
        /// Counters of one queue or several.
        Queue "queue"                                     [5,      5,      5,      5,      5,      5];
        /// Counters of one group or all.
        Group "group"                                     [NO,     6,      6,      6,      6,      6];
        /// Type and buckets of groups.
        GroupDesc "group_desc"                            [NO,     7,      7,      7,      7,      7];
        /// Group features of the switch.
        GroupFeatures "group_features"                    [NO,     NO,     8,      8,      8,      8];
        /// Counters of one meter or all.
        Meter "meter"                                     [NO,     NO,     NO,     9,      9,      9];
        /// Bands of one meter or all; "meter_desc" in 1.5.
        MeterConfig "meter_config"                        [NO,     NO,     NO,     10,     10,     10];
        /// Meter features of the switch.
        MeterFeatures "meter_features"                    [NO,     NO,     NO,     11,     11,     11];
        /// Table features; a request may set them.
        TableFeatures "table_features"                    [NO,     NO,     NO,     12,     12,     12];
        /// Descriptions of ports.
        PortDesc "port_desc"                              [NO,     NO,     NO,     13,     13,     13];
        /// Descriptions of tables.
        TableDesc "table_desc"                            [NO,     NO,     NO,     NO,     14,     14];
        /// Descriptions of queues.
        QueueDesc "queue_desc"                            [NO,     NO,     NO,     NO,     15,     15];
        /// Flow monitors and their updates.
        FlowMonitor "flow_monitor"                        [NO,     NO,     NO,     NO,     16,     16];
        /// Counters of flow entries without their instructions.
        FlowStats "flow_stats"                            [NO,     NO,     NO,     NO,     NO,     17];
        /// Status of controllers.
        ControllerStatus "controller_status"              [NO,     NO,     NO,     NO,     NO,     18];
        /// Bundle features.
        BundleFeatures "bundle_features"                  [NO,     NO,     NO,     NO,     NO,     19];
        /// Experimenter statistics; "vendor" in 1.0.
        Experimenter "experimenter"                       [0xffff, 0xffff, 0xffff, 0xffff, 0xffff, 0xffff];
    }
}
