//! Figure 4: latency of one flow of 64-byte frames against offered load, under- and overload.
//!
//! Claim: slightly below 30 microseconds on average while underloaded, alike for all three, and
//! a clear step to the overloaded region.
//! Method: the trials of figure 3; every frame carries its send time. Run together, the two
//! figures share their trials.

use experiments::{Context, Method};

/// Name of the axis.
pub const AXIS: &str = super::fig3::AXIS;

/// Creates the method for one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    super::fig3::method(context)
}
