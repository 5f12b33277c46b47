//! The figures and the table of oflops2018: a file for each kind of measurement.
//!
//! Source: the OFLOPS-SUME paper, section IV. As there: sizes of 96 to 1472 bytes, a low rate of 100
//! Mbit/s and a high one that is the nominal link's, up to 1,400 rules of rising priority, and 1,000 rules
//! for what happens over time. The study repeats twenty times: `--set repeats=20`.

/// Figures 6a and 6b and table I: latency, loss and load of the processor by packet size.
pub mod forwarding;
/// Figure 6c: what rewriting a port costs.
pub mod rewriting;
/// Figures 7 and 8: control plane against data plane while rules change.
pub mod rules;
