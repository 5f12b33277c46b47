//! A forwarding element whose behaviour is a graph of logical functional blocks (LFBs).
//!
//! Modules are listed in the order in which a program passes through them: parse, check, then run.
//! No module opens a file or reads a clock, and forwarding never fails.

pub mod diagnostic;
pub mod xml;
pub mod frames;
pub mod literal;
pub mod condition;
pub mod program;
pub mod shipped;
pub mod check;
pub mod graph;
pub mod lfb;
pub mod compiled_program;
pub mod trace;
pub mod interpret;
pub mod compile;
pub mod executor;
pub mod agent;
pub mod observe;
pub mod element;
pub mod dispatcher;
pub mod control;
pub mod role;
pub mod plan;
pub mod show;
