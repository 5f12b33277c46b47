//! Figure 6c: extra latency of a layer-4 port rewrite, by packet size.
//!
//! Claim: with Open vSwitch in the kernel, the median grows by up to 12 µs; with its DPDK datapath and with
//! hardware it does not.
//!
//! Method: one entry rewrites the UDP port, another only outputs frames of the same kind. One stream visits both in
//! turn. The result is the difference of their medians. Every frame is compared to its last byte. Parameters: those
//! of `header-rewrite`.

use experiments::control_plane::actions::{self, PROBES_PPS};
use experiments::control_plane::updates::VERSION;
use experiments::show::Chart;
use experiments::{Context, Method};
use workload::parameter::declaration::{Parameter, ValueType};

const SIZES: Parameter = Parameter {
    key: "sizes",
    takes: ValueType::Integers(96, 1500),
    default: "96,128,256,512,1024,1472",
    unit: "bytes",
    help: "frame sizes, including the frame check sequence",
};

/// OpenFlow versions with a set-field action for a UDP port: 1.2 and later.
const VERSIONS: Parameter = Parameter { default: "1.3,1.4,1.5", ..VERSION };

/// Parameters of the experiment.
pub const PARAMETERS: &[Parameter] = &[SIZES, PROBES_PPS, VERSIONS];

/// Values that the report shows.
pub const SHOWS: &[Chart] = &[Chart::values(
    "Extra latency of a layer-4 port rewrite by packet size",
    &["port_rewrite_extra_ns_p50"],
    &["port_rewrite_ns_p50", "none_ns_p50", "port_rewrite_right_ratio"],
)];

/// Creates the method of this figure for one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    actions::port_rewrite(context, &SIZES)
}
