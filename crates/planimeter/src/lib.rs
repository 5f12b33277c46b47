//! The command line, the browser server, the fitting of models, and the recording proxy.

pub use targets::VERSION;

pub mod model_fit;
pub mod proxy_run;
pub mod upload;
pub mod serve;
#[deny(clippy::print_stdout, clippy::print_stderr)]
pub mod cli;
