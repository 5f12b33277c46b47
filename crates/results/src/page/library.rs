//! The plotting library that a page carries: plotly.js, packed by the build.
//!
//! Invariant: a page holds it once, as inert text that its own script unpacks when the first figure
//! comes into view.

/// plotly.js as base64 of gzip; its licence (MIT) and version stand at its beginning.
pub const PLOTLY: &str = include_str!(concat!(env!("OUT_DIR"), "/plotly.min.js.gz.base64"));
