//! Version negotiation.
//!
//! Source: OpenFlow 1.0.0 section 5.5.1 (the smaller of the two versions) and 1.3.1 section 6.3.1
//! (with two bitmaps, the highest version in both).

use crate::version::Version;

/// Returns the bitmap for this end's hello; `None` if it offers no version from 1.3 on.
pub(super) fn bitmap_to_send(versions: &[Version]) -> Option<u32> {
    let knows = versions.iter().any(|&version| version >= Version::V1_3);
    knows.then(|| versions.iter().fold(0, |bits, version| bits | 1 << version.wire()))
}

/// Returns the version to use with a peer whose hello has this version and bitmap.
pub(super) fn agree(ours: &[Version], theirs: u8, bitmap: Option<u32>) -> Option<Version> {
    if let (Some(bitmap), true) = (bitmap, bitmap_to_send(ours).is_some()) {
        return ours.iter().copied().filter(|ours| bitmap & 1 << ours.wire() != 0).max();
    }
    let highest = ours.iter().map(|version| version.wire()).max()?;
    ours.iter().copied().find(|version| version.wire() == highest.min(theirs))
}

#[cfg(test)]
mod tests {
    use super::*;
    use Version::{V1_0, V1_1, V1_3};

    #[test]
    fn the_smaller_version_is_used_if_both_support_it() {
        assert_eq!(agree(&[V1_0], 1, None), Some(V1_0));
        assert_eq!(agree(&[V1_0], 4, None), Some(V1_0));
        assert_eq!(agree(&[V1_0], 0x99, None), Some(V1_0));
        assert_eq!(agree(&[V1_0, V1_3], 4, None), Some(V1_3));
        assert_eq!(agree(&[V1_0, V1_3], 1, None), Some(V1_0));
        assert_eq!(agree(&[V1_0, V1_3], 3, None), None);
        assert_eq!(agree(&[V1_3], 1, None), None);
        assert_eq!(agree(&[V1_0], 0, None), None);
    }

    #[test]
    fn bitmaps_are_used_only_if_both_ends_send_one() {
        let bits = |versions: &[u8]| Some(versions.iter().fold(0, |bits, n| bits | 1u32 << n));
        assert_eq!(agree(&[V1_0, V1_3], 6, bits(&[1, 6])), Some(V1_0));
        assert_eq!(agree(&[V1_0, V1_3], 6, bits(&[1, 4, 6])), Some(V1_3));
        assert_eq!(agree(&[V1_3], 6, bits(&[1, 6])), None);
        assert_eq!(agree(&[V1_0], 4, bits(&[4])), Some(V1_0));
        assert_eq!(bitmap_to_send(&[V1_0, V1_1]), None);
        assert_eq!(bitmap_to_send(&[V1_0, V1_3]), Some(0b1_0010));
    }
}
