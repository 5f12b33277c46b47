//! Which statistics and descriptions each version has.
//!
//! Source: `ofp_stats_types` and `ofp_multipart_type` of the OpenFlow Switch Specifications 1.0.0
//! to 1.5.1.

use std::fmt;

use super::{NO, VERSIONS, Version};

table! {
    /// A type of statistics or description (`ofp_stats_types`, later `ofp_multipart_type`).
    MultipartKind: u16 {
        //                                                 1.0     1.1     1.2     1.3     1.4     1.5
        /// Who made the switch, and its names.
        Desc "desc"                                       [0,      0,      0,      0,      0,      0];
        /// Each entry with its counters; "flow_desc" in 1.5.
        Flow "flow"                                       [1,      1,      1,      1,      1,      1];
        /// The sum of the counters of several entries.
        Aggregate "aggregate"                             [2,      2,      2,      2,      2,      2];
        /// Counters of each table.
        Table "table"                                     [3,      3,      3,      3,      3,      3];
        /// Counters of one port, or of each.
        Port "port"                                       [4,      4,      4,      4,      4,      4];
        /// Counters of one queue, or of each.
        Queue "queue"                                     [5,      5,      5,      5,      5,      5];
        /// Counters of one group, or of each.
        Group "group"                                     [NO,     6,      6,      6,      6,      6];
        /// Type and buckets of each group.
        GroupDesc "group_desc"                            [NO,     7,      7,      7,      7,      7];
        /// What groups can do.
        GroupFeatures "group_features"                    [NO,     NO,     8,      8,      8,      8];
        /// Counters of one meter, or of each.
        Meter "meter"                                     [NO,     NO,     NO,     9,      9,      9];
        /// Bands of one meter, or of each; "meter_desc" in 1.5.
        MeterConfig "meter_config"                        [NO,     NO,     NO,     10,     10,     10];
        /// What meters can do.
        MeterFeatures "meter_features"                    [NO,     NO,     NO,     11,     11,     11];
        /// What each table can do; a request may set it.
        TableFeatures "table_features"                    [NO,     NO,     NO,     12,     12,     12];
        /// What each port is.
        PortDesc "port_desc"                              [NO,     NO,     NO,     13,     13,     13];
        /// How each table behaves.
        TableDesc "table_desc"                            [NO,     NO,     NO,     NO,     14,     14];
        /// What each queue promises.
        QueueDesc "queue_desc"                            [NO,     NO,     NO,     NO,     15,     15];
        /// News of entries that come, go and change.
        FlowMonitor "flow_monitor"                        [NO,     NO,     NO,     NO,     16,     16];
        /// Counters of each entry without what it does.
        FlowStats "flow_stats"                            [NO,     NO,     NO,     NO,     NO,     17];
        /// How each controller does.
        ControllerStatus "controller_status"              [NO,     NO,     NO,     NO,     NO,     18];
        /// How well bundles can be scheduled.
        BundleFeatures "bundle_features"                  [NO,     NO,     NO,     NO,     NO,     19];
        /// Statistics that somebody else defines; "vendor" in 1.0.
        Experimenter "experimenter"                       [0xffff, 0xffff, 0xffff, 0xffff, 0xffff, 0xffff];
    }
}
