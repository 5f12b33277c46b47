//! Maps an error to the nearest one of a version that does not have it.
//!
//! Source: the enums of codes of the OpenFlow Switch Specifications 1.0.0 to 1.5.1, and the replies
//! of Open vSwitch in the versions that lack an error.
//!
//! Other code uses the most precise error of any version; only this module maps it to older
//! versions.

use super::{ErrorCode, ErrorType};
use crate::version::Version;

impl ErrorCode {
    /// Returns this error, or the nearest one that this version has. Every version can encode it.
    #[must_use]
    pub fn nearest(self, version: Version) -> ErrorCode {
        let is_known = |error: &ErrorCode| error.to_wire(version).is_some();
        let stand_ins = self.stand_ins().iter().chain(self.of_family()).copied();
        std::iter::once(self)
            .chain(stand_ins)
            .find(is_known)
            .unwrap_or(ErrorCode::RequestPermission)
    }

    /// Returns errors with a similar meaning, the nearest first.
    fn stand_ins(self) -> &'static [ErrorCode] {
        use ErrorCode::*;
        match self {
            RequestBadPort => &[ActionBadOutPort],
            RequestBadPacket => &[RequestBadLength],
            RequestBadTable | FlowModBadTable => &[FlowModUnsupported],
            ActionBadSetMask => &[ActionBadSetArgument],
            ActionBadSetType | ActionBadSetLength => &[ActionBadType],
            ActionUnsupportedOrder => &[FlowModUnsupported],
            FlowModUnsupported => &[ActionUnsupportedOrder],
            InstructionDuplicate => &[InstructionUnsupported],
            InstructionBadExperimenterType => &[InstructionBadExperimenter],
            MatchBadMask => &[MatchBadWildcards],
            PropertyBadType | PropertyDuplicateType => &[TableFeaturesBadType],
            PropertyBadLength => &[TableFeaturesBadLength],
            PropertyBadValue => &[TableFeaturesBadArgument],
            TableFeaturesBadType => &[PropertyBadType],
            TableFeaturesBadLength => &[PropertyBadLength],
            TableFeaturesBadArgument => &[PropertyBadValue],
            _ => &[],
        }
    }

    /// Returns general errors of the same subject.
    fn of_family(self) -> &'static [ErrorCode] {
        use ErrorCode::*;
        let Some(row) = self.row() else { return &[] };
        match row.family {
            _ if row.name == "permission" => &[RequestPermission],
            _ if row.name == "bad_length" => &[RequestBadLength],
            ErrorType::BadAction => &[ActionBadArgument],
            ErrorType::BadInstruction => &[FlowModUnsupported],
            ErrorType::BadMatch => &[MatchBadField, FlowModUnsupported],
            ErrorType::FlowModFailed => &[FlowModUnknown, FlowModUnsupported],
            ErrorType::GroupModFailed => &[GroupModInvalid],
            ErrorType::PortModFailed => &[PortModBadPort],
            ErrorType::TableFeaturesFailed => &[TableFeaturesBadArgument, PropertyBadValue],
            _ => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_has_an_equivalent_in_every_version() {
        for version in Version::ALL {
            for &error in ErrorCode::ALL {
                let nearest = error.nearest(version);
                assert!(nearest.to_wire(version).is_some(), "{version} {error}");
                assert_eq!(error.to_wire(version).is_some(), nearest == error, "{version} {error}");
            }
        }
    }

    #[test]
    fn the_most_specific_older_error_is_chosen() {
        use ErrorCode::*;
        for (error, version, nearest) in [
            (ActionBadSetMask, Version::V1_3, ActionBadSetArgument),
            (ActionBadSetType, Version::V1_0, ActionBadType),
            (ActionBadMeter, Version::V1_4, ActionBadArgument),
            (PropertyBadValue, Version::V1_3, TableFeaturesBadArgument),
            (PropertyDuplicateType, Version::V1_3, TableFeaturesBadType),
            (FlowModBadFlags, Version::V1_0, FlowModUnsupported),
            (FlowModBadFlags, Version::V1_1, FlowModUnknown),
            (InstructionDuplicate, Version::V1_3, InstructionUnsupported),
            (InstructionBadLength, Version::V1_1, RequestBadLength),
            (InstructionBadTable, Version::V1_0, FlowModUnsupported),
            (MatchBadPrerequisite, Version::V1_1, MatchBadField),
            (MatchBadPrerequisite, Version::V1_0, FlowModUnsupported),
            (MatchBadLength, Version::V1_0, RequestBadLength),
            (TableFeaturesBadEntriesMax, Version::V1_4, PropertyBadValue),
            (TableFeaturesBadEntriesMax, Version::V1_3, TableFeaturesBadArgument),
            (GroupModBadWatch, Version::V1_1, GroupModInvalid),
            (RequestBadPort, Version::V1_1, ActionBadOutPort),
            (RequestIsSlave, Version::V1_1, RequestPermission),
            (BundleTimeout, Version::V1_2, RequestPermission),
        ] {
            assert_eq!(error.nearest(version), nearest, "{version} {error}");
        }
    }
}
