//! Compresses the plotting library of the crate `plotly`, once for all reports.
//!
//! Reports contain the library (see `docs/decisions/0028-reports-contain-plotly-js.md`): as gzip,
//! which current browsers can decompress, in base64, because HTML is text. Invariant: equal
//! versions of the crate give equal bytes.

use std::io::Write;
use std::path::PathBuf;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;

#[allow(clippy::disallowed_methods)]
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let sources = plotly::Plot::offline_js_sources();
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    packed.write_all(first_script(&sources).as_bytes()).expect("memory takes all bytes");
    let packed = packed.finish().expect("memory takes all bytes");
    let folder = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo names a folder"));
    let file = folder.join("plotly.min.js.gz.base64");
    std::fs::write(file, STANDARD.encode(packed)).expect("the build's folder can be written");
}

/// Returns only the library. The mathematics typesetting that follows it is larger than all figures
/// need.
fn first_script(sources: &str) -> &str {
    let (_, after) = sources.split_once('>').expect("a script has a start");
    let (script, _) = after.split_once("</script>").expect("a script has an end");
    assert!(
        script.contains("plotly.js v") && script.len() > 1_000_000,
        "the first script of the crate plotly is no longer the library"
    );
    script
}
