//! Instruction types of each version.
//!
//! Source: `ofp_instruction_type` of the OpenFlow Switch Specifications 1.1.0 to 1.5.1.

use std::fmt;

use super::{NO, VERSIONS, Version};

table! {
    /// An instruction type (`ofp_instruction_type`).
    InstructionKind: u16 {
        //                                                 1.0 1.1     1.2     1.3     1.4     1.5
        /// Continues in another table.
        GotoTable "goto_table"                            [NO, 1,      1,      1,      1,      1];
        /// Writes metadata.
        WriteMetadata "write_metadata"                    [NO, 2,      2,      2,      2,      2];
        /// Merges actions into the action set.
        WriteActions "write_actions"                      [NO, 3,      3,      3,      3,      3];
        /// Executes actions immediately.
        ApplyActions "apply_actions"                      [NO, 4,      4,      4,      4,      4];
        /// Clears the action set.
        ClearActions "clear_actions"                      [NO, 5,      5,      5,      5,      5];
        /// Applies a meter to the frame; an action from 1.5 on.
        Meter "meter"                                     [NO, NO,     NO,     6,      6,      NO];
        /// Sends counters when one passes a threshold.
        StatTrigger "stat_trigger"                        [NO, NO,     NO,     NO,     NO,     7];
        /// An experimenter instruction.
        Experimenter "experimenter"                       [NO, 0xffff, 0xffff, 0xffff, 0xffff, 0xffff];
    }
}
