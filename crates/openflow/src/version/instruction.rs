//! Which instructions each version has.
//!
//! Source: `ofp_instruction_type` of the OpenFlow Switch Specifications 1.1.0 to 1.5.1.

use std::fmt;

use super::{NO, VERSIONS, Version};

table! {
    /// A kind of instruction (`ofp_instruction_type`).
    InstructionKind: u16 {
        //                                                 1.0 1.1     1.2     1.3     1.4     1.5
        /// Goes on to another table.
        GotoTable "goto_table"                            [NO, 1,      1,      1,      1,      1];
        /// Writes metadata.
        WriteMetadata "write_metadata"                    [NO, 2,      2,      2,      2,      2];
        /// Puts actions into the action set.
        WriteActions "write_actions"                      [NO, 3,      3,      3,      3,      3];
        /// Does actions at once.
        ApplyActions "apply_actions"                      [NO, 4,      4,      4,      4,      4];
        /// Empties the action set.
        ClearActions "clear_actions"                      [NO, 5,      5,      5,      5,      5];
        /// Has a meter look at the frame; an action from 1.5 on.
        Meter "meter"                                     [NO, NO,     NO,     6,      6,      NO];
        /// Tells when a counter passes a threshold.
        StatTrigger "stat_trigger"                        [NO, NO,     NO,     NO,     NO,     7];
        /// What somebody else defines.
        Experimenter "experimenter"                       [NO, 0xffff, 0xffff, 0xffff, 0xffff, 0xffff];
    }
}
