//! Figure 10: loss difference of two flows with separate input ports.
//!
//! Claim: the kernel serves its ports by deficit round robin, which is max-min fair. It therefore favours the
//! smaller flow F1, and more so as the overload grows. OpenFlow is slightly fairer. Switching is saturated at the
//! lowest load and shows no change.
//!
//! Method and parameters: see [`fairness`](super::fairness). Targets have a third port for F2. Planimeter's own
//! switch is measured with both of its service disciplines: deficit round robin as in the kernel, and first come
//! first served.

use experiments::{Context, Method};

/// Creates the method for one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    super::fairness::method(context, 2)
}
