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
