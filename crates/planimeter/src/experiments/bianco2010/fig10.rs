//! Figure 10: difference of the losses of two flows that come in by a port each.
//!
//! Claim: the kernel serves its ports by deficit round robin, which is max-min fair and so favours the
//! smaller flow F1, the more the more overloaded the system is; OpenFlow is slightly fairer; switching
//! is saturated at the lowest load already and shows no change.
//! Method and parameters: see [`fairness`](super::fairness). Targets have a third port, by which F2 comes
//! in. Our switch is measured with both of its orders of service: deficit round robin as the kernel's,
//! and first come first served.

use super::super::{Context, Method};

/// Creates the method for one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    super::fairness::method(context, 2)
}
