//! Tests of external controllers with our switch over real interfaces: they must work unchanged.
//!
//! Each host is in its own network namespace and uses the kernel's ARP, IP and UDP. Only the
//! switch, under a controller, can forward their frames. `tools/needs.sh tests` installs the
//! controllers. Tests of a missing controller are skipped with its name, except as root where `CI`
//! is set. Arguments that are not options select tests by a part of their name.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

/// Helpers to run the program.
#[path = "../common/mod.rs"]
mod common;
/// Sequential test runner with requirements.
#[path = "../common/one_by_one.rs"]
mod one_by_one;
/// Hosts, cables, and programs next to the switch.
mod rig;
/// Learning switches on os-ken, and Open vSwitch's learning switch.
mod learning;
/// Faucet's pipeline of tables.
mod faucet;
/// The tool ovs-ofctl, in every version.
mod ofctl;
/// The proxy between controllers and switches.
mod proxied;

use std::path::PathBuf;
use std::process::ExitCode;

use one_by_one::Test;
use testbed::requirement::{self, Requirement};

/// An error names the missing requirement and how to get it.
const TESTS: &[Test<String>] = &[
    ("os_ken_learns_in_1_0", os_ken_needs, learning::os_ken_in_1_0),
    ("os_ken_learns_in_1_3", os_ken_needs, learning::os_ken_in_1_3),
    ("ovs_testcontroller_learns", testcontroller_needs, learning::ovs_testcontroller),
    ("faucet_forwards_and_filters", faucet_needs, faucet::faucet_forwards_and_filters),
    ("faucet_sets_table_features", faucet_needs, faucet::sets_table_features),
    ("ovs_ofctl_in_every_version", ofctl_needs, ofctl::every_version),
    ("ovs_ofctl_does_not_stop_bridging", ofctl_needs, ofctl::does_not_stop_bridging),
    ("proxy_between_faucet_and_ours", faucet_needs, proxied::faucet_and_ours),
    ("proxy_between_os_ken_and_ovs", os_ken_and_ovs_need, proxied::os_ken_and_open_vswitch),
];

fn main() -> ExitCode {
    one_by_one::run(TESTS)
}

fn lab_needs() -> Result<(), String> {
    if requirement::privileged() { Ok(()) } else { Err(Requirement::Privilege.to_string()) }
}

fn tool(name: &'static str, package: &'static str) -> Result<(), String> {
    lab_needs()?;
    requirement::tool(name, package).map(drop).map_err(|need| need.to_string())
}

fn testcontroller_needs() -> Result<(), String> {
    tool("ovs-testcontroller", "openvswitch-testcontroller")
}

fn ofctl_needs() -> Result<(), String> {
    tool("ovs-ofctl", "openvswitch-common")
}

fn os_ken_needs() -> Result<(), String> {
    lab_needs()?;
    python("os-ken").map(drop)
}

fn os_ken_and_ovs_need() -> Result<(), String> {
    os_ken_needs()?;
    tool("ovs-vswitchd", "openvswitch-switch")
}

fn faucet_needs() -> Result<(), String> {
    lab_needs()?;
    python("faucet").map(drop)
}

/// Returns the program folder of a virtual environment that `tools/needs.sh tests` created.
fn python(name: &str) -> Result<PathBuf, String> {
    let folder = |variable: &str| std::env::var_os(variable).map(PathBuf::from);
    let cache = folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache")));
    let place = cache.unwrap_or_default().join("planimeter/python").join(name);
    match place.join("installed").exists() {
        true => Ok(place.join("bin")),
        false => Err(format!("{name} is not installed (hint: run `sh tools/needs.sh tests`)")),
    }
}
