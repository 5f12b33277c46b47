//! Fields changed and checksums right.
