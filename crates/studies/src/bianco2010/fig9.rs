//! Figure 9: loss difference of two flows with one input port.
//!
//! Claim: all three technologies are quite fair; the difference is always below 1.5 percentage points.
//!
//! Method and parameters: see [`fairness`](super::fairness).

use experiments::{Context, Method};

/// Creates the method for one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    super::fairness::method(context, 1)
}
