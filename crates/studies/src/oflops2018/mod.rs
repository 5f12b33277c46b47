//! oflops2018: its figures and table, one file per type of measurement.
//!
//! Source: the OFLOPS-SUME paper, section IV. As in the paper, sizes are 96 to 1472 bytes. The low rate is 100
//! Mbit/s and the high rate that of the nominal link. There are up to 1,400 entries of rising priority, and 1,000
//! entries for values over time. The study repeats twenty times: `--set repeats=20`.

pub mod entries;
pub mod forwarding;
pub mod rewriting;
pub mod rules;
