//! The command line, the browser server, the fitting of models, and the recording proxy.

pub use targets::VERSION;

pub mod fit;
pub mod proxied;
pub mod sending;
pub mod serve;
#[deny(clippy::print_stdout, clippy::print_stderr)]
pub mod cli;
