//! The lab on a real kernel: its objects work, and nothing is left behind.
//!
//! Requires root (or the capabilities). Otherwise each test prints the missing requirement and is
//! skipped, except as root with `CI` set, which disallows skipping. Arguments that are not options
//! select tests by a part of their name.

#![allow(unsafe_code, clippy::disallowed_methods, clippy::unwrap_used)]

mod raw;
mod fixture;
mod cables;
mod processes;
mod kernel_peers;
mod openvswitch;
mod dpdk;
mod planimeter;
mod hosts;
mod leftovers;
mod rootless;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use testbed::LabError;
use testbed::peer::dpdk::Device;
use testbed::peer::ovs_dpdk::{OvsDpdk, Ports};
use testbed::peer::testpmd::Testpmd;
use testbed::probe;
use testbed::requirement::{self, Feature, Requirement};

/// Additional requirements of a test.
type Needs = fn() -> Result<(), Requirement>;

const TESTS: [(&str, Needs, fn()); 38] = [
    ("cables::a_site_is_created_and_removed", lab_needs, cables::a_site_is_created_and_removed),
    (
        "cables::a_cable_is_removed_with_its_namespace",
        lab_needs,
        cables::a_cable_is_removed_with_its_namespace,
    ),
    ("cables::offloads_are_off", lab_needs, cables::offloads_are_off),
    (
        "cables::kernel_threads_run_on_their_core",
        thread_needs,
        cables::kernel_threads_run_on_their_core,
    ),
    ("cables::idle_interfaces_send_nothing", lab_needs, cables::idle_interfaces_send_nothing),
    ("cables::a_direct_site_has_one_cable", lab_needs, cables::a_direct_site_has_one_cable),
    ("cables::every_lost_frame_is_counted", lab_needs, cables::every_lost_frame_is_counted),
    ("cables::frames_are_not_merged", lab_needs, cables::frames_are_not_merged),
    ("cables::invalid_names_are_rejected", lab_needs, cables::invalid_names_are_rejected),
    (
        "processes::an_exited_process_reports_its_last_output",
        lab_needs,
        processes::an_exited_process_reports_its_last_output,
    ),
    (
        "processes::a_process_runs_in_its_namespace_and_on_its_core",
        lab_needs,
        processes::a_process_runs_in_its_namespace_and_on_its_core,
    ),
    (
        "processes::descendants_end_with_the_folder",
        lab_needs,
        processes::descendants_end_with_the_folder,
    ),
    (
        "processes::a_process_that_ignores_sigterm_is_killed",
        lab_needs,
        processes::a_process_that_ignores_sigterm_is_killed,
    ),
    (
        "processes::a_process_is_suspended_and_resumed",
        lab_needs,
        processes::a_process_is_suspended_and_resumed,
    ),
    ("kernel_peers::a_bridge_learns_addresses", lab_needs, kernel_peers::a_bridge_learns_addresses),
    (
        "kernel_peers::a_bridge_uses_static_addresses",
        lab_needs,
        kernel_peers::a_bridge_uses_static_addresses,
    ),
    ("kernel_peers::a_router_forwards_packets", lab_needs, kernel_peers::a_router_forwards_packets),
    (
        "kernel_peers::a_large_routing_table_is_installed",
        lab_needs,
        kernel_peers::a_large_routing_table_is_installed,
    ),
    (
        "planimeter::a_router_receives_its_complete_configuration",
        lab_needs,
        planimeter::a_router_receives_its_complete_configuration,
    ),
    (
        "planimeter::a_bridge_and_a_switch_are_configured",
        lab_needs,
        planimeter::a_bridge_and_a_switch_are_configured,
    ),
    ("planimeter::a_start_failure_is_reported", lab_needs, planimeter::a_start_failure_is_reported),
    (
        "hosts::hosts_exchange_packets_through_a_bridge",
        lab_needs,
        hosts::hosts_exchange_packets_through_a_bridge,
    ),
    (
        "hosts::hosts_exchange_packets_through_a_router",
        lab_needs,
        hosts::hosts_exchange_packets_through_a_router,
    ),
    ("hosts::lost_packets_are_counted", lab_needs, hosts::lost_packets_are_counted),
    ("hosts::iperf_transfers_data_and_ends", iperf_needs, hosts::iperf_transfers_data_and_ends),
    (
        "hosts::a_connection_has_the_requested_window",
        iperf_needs,
        hosts::a_connection_has_the_requested_window,
    ),
    (
        "leftovers::checking_requirements_leaves_nothing_behind",
        lab_needs,
        leftovers::checking_requirements_leaves_nothing_behind,
    ),
    (
        "openvswitch::open_vswitch_forwards_by_openflow",
        ovs_needs,
        openvswitch::open_vswitch_forwards_by_openflow,
    ),
    (
        "openvswitch::open_vswitch_leaves_nothing_behind",
        ovs_needs,
        openvswitch::open_vswitch_leaves_nothing_behind,
    ),
    ("leftovers::a_killed_run_is_cleaned_up", ovs_needs, leftovers::a_killed_run_is_cleaned_up),
    ("dpdk::testpmd_forwards", testpmd_needs, dpdk::testpmd_forwards),
    ("dpdk::ovs_forwards_over_memif", dpdk_needs, dpdk::ovs_forwards_over_memif),
    ("dpdk::ovs_forwards_over_vhost", dpdk_needs, dpdk::ovs_forwards_over_vhost),
    ("dpdk::ovs_runs_in_every_configuration", dpdk_needs, dpdk::ovs_runs_in_every_configuration),
    ("dpdk::huge_pages_are_released", page_needs, dpdk::huge_pages_are_released),
    (
        "dpdk::huge_pages_of_a_killed_run_are_released",
        dpdk_needs,
        dpdk::huge_pages_of_a_killed_run_are_released,
    ),
    ("rootless::a_lab_works_without_root", rootless_needs, rootless::a_lab_works_without_root),
    (
        "rootless::open_vswitch_works_without_root",
        rootless_ovs_needs,
        rootless::open_vswitch_works_without_root,
    ),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, name, root] = &arguments[..]
        && flag == "--child"
    {
        return child(name, root.as_ref());
    }
    if let Some("switch" | "bridge" | "router" | "--version") =
        arguments.first().map(String::as_str)
    {
        return planimeter::stand_in(&arguments);
    }
    let chosen: Vec<&String> = arguments.iter().filter(|word| !word.starts_with('-')).collect();
    let is_chosen =
        |name: &str| chosen.is_empty() || chosen.iter().any(|part| name.contains(*part));
    let mut failed = 0;
    for (name, needs, test) in TESTS.iter().filter(|(name, ..)| is_chosen(name)) {
        let outcome = match needs() {
            Err(need) if must_not_skip() => format!("FAILED: it may not be skipped, but {need}"),
            Err(need) => format!("skipped: {need}"),
            Ok(()) => match catch_unwind(AssertUnwindSafe(test)) {
                Ok(()) => "ok".to_owned(),
                Err(_) => "FAILED".to_owned(),
            },
        };
        failed += usize::from(outcome.starts_with("FAILED"));
        println!("test {name} ... {outcome}");
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Child processes of tests, by name.
fn child(name: &str, root: &std::path::Path) -> ExitCode {
    match name {
        "killed" => leftovers::child(root),
        "killed-dpdk" => dpdk::child(root),
        "rootless" => rootless::child(root),
        "rootless-ovs" => rootless::child_with_ovs(root),
        _ => return ExitCode::from(2),
    }
    ExitCode::SUCCESS
}

fn must_not_skip() -> bool {
    std::env::var_os("CI").is_some() && unsafe { libc::geteuid() } == 0
}

fn lab_needs() -> Result<(), Requirement> {
    if requirement::privileged() { Ok(()) } else { Err(Requirement::Privilege) }
}

fn thread_needs() -> Result<(), Requirement> {
    lab_needs()?;
    match probe::try_feature(Feature::ThreadedNapi) {
        Err(LabError::Need(need)) => Err(need),
        Err(other) => panic!("{other}"),
        Ok(_) => Ok(()),
    }
}

fn ovs_needs() -> Result<(), Requirement> {
    lab_needs()?;
    for program in ["ovs-vswitchd", "ovsdb-server", "ovsdb-tool", "ovs-vsctl"] {
        requirement::tool(program, "openvswitch-switch")?;
    }
    Ok(())
}

fn iperf_needs() -> Result<(), Requirement> {
    lab_needs()?;
    requirement::tool("iperf3", "iperf3").map(drop)
}

fn page_needs() -> Result<(), Requirement> {
    lab_needs()?;
    testbed::hugepages::possible(512).map(drop)
}

fn testpmd_needs() -> Result<(), Requirement> {
    page_needs()?;
    Testpmd::needs(&[
        Device::MemifServer("p1".into()),
        Device::VirtioUser("p1".into()),
        Device::Sink,
    ])
}

fn dpdk_needs() -> Result<(), Requirement> {
    testpmd_needs()?;
    OvsDpdk::needs(Ports::Memif)
}

fn rootless_needs() -> Result<(), Requirement> {
    lab_needs()?;
    requirement::tool("setpriv", "util-linux")?;
    // Changing the user requires that all users exist, which is not so in a user namespace.
    let users = std::fs::read_to_string("/proc/self/uid_map").unwrap();
    if users.split_ascii_whitespace().nth(2) != Some("4294967295") {
        return Err(Requirement::Privilege);
    }
    requirement::user_namespaces()
}

fn rootless_ovs_needs() -> Result<(), Requirement> {
    rootless_needs()?;
    ovs_needs()
}
