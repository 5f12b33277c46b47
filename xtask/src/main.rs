//! Development tasks: `cargo xtask ci`, `tidy`, `model`, `cross`, `fuzz`, `bless`.
//!
//! CI runs the same commands as a developer. Each step prints its name and output. The first
//! failure ends the run with its exit code.

mod circles;
mod tidy;
mod prose;
mod ci;
mod deny;
mod fuzz;
mod cross;
mod tests;
mod seeds;

use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["tidy"] => tidy::run(),
        ["ci"] => ci::run(ci::Extent::EveryChange),
        ["ci", "--full"] => ci::run(ci::Extent::Full),
        ["model"] => ci::model(),
        ["cross"] if cross::run() => ExitCode::SUCCESS,
        ["cross"] => ExitCode::FAILURE,
        ["fuzz", names @ ..] => {
            let seconds = names.first().and_then(|word| word.parse().ok());
            let names = &names[usize::from(seconds.is_some())..];
            match fuzz::run(names, seconds.unwrap_or(fuzz::SECONDS)) {
                true => ExitCode::SUCCESS,
                false => ExitCode::FAILURE,
            }
        }
        ["bless"] => ci::bless(),
        _ => {
            eprintln!(
                "usage: cargo xtask tidy         check layers, module docs, unsafe, clocks, documents\n       \
                 cargo xtask ci [--full]  all checks; --full adds the slow ones\n       \
                 cargo xtask model        check interleavings of threads in a table (loom)\n       \
                 cargo xtask cross        compile for arm64 and run tests in an emulator\n       \
                 cargo xtask fuzz [SECONDS] [TARGET...]  run fuzz targets, 60 seconds each\n       \
                 cargo xtask bless        rewrite expected test outputs (check the diff)"
            );
            ExitCode::from(2)
        }
    }
}

/// The workspace's root folder.
fn root() -> std::path::PathBuf {
    let manifest = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().expect("xtask is in the workspace").to_path_buf()
}
