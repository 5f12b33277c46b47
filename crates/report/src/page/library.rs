//! The plotting library that a page contains: plotly.js, compressed by the build.
//!
//! Invariant: a page contains it once, as inert text. The page's script decompresses it when the
//! first figure becomes visible.

/// plotly.js as base64 of gzip. Its licence (MIT) and version are at its beginning.
pub const PLOTLY: &str = include_str!(concat!(env!("OUT_DIR"), "/plotly.min.js.gz.base64"));
