//! Every way bytes enter or leave the process; with `lab`, the only system calls of planimeter.
//!
//! Data ports carry frames ([`port::Port`]); control channels carry byte streams. What a port
//! adds to another (a trace, a fault, a delay, a rate) is a wrapper that is a port itself.

/// What every data port is.
pub mod port;
