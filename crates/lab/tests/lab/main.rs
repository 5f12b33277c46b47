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
mod ours;
mod hosts;
mod leftovers;
mod rootless;

use lab::LabError;
use lab::need::{self, Feature, Need};
use lab::peer::dpdk::Device;
use lab::peer::ovs_dpdk::{OvsDpdk, Ports};
use lab::peer::testpmd::Testpmd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

/// Additional requirements of a test.
type Needs = fn() -> Result<(), Need>;

const TESTS: [(&str, Needs, fn()); 38] = [
    ("cables::a_site_appears_and_vanishes", lab_needs, cables::a_site_appears_and_vanishes),
    ("cables::a_cable_goes_with_a_namespace", lab_needs, cables::a_cable_goes_with_a_namespace),
    ("cables::offloads_are_off", lab_needs, cables::offloads_are_off),
    ("cables::kernel_work_is_on_its_core", thread_needs, cables::kernel_work_is_on_its_core),
    ("cables::nobody_chatters", lab_needs, cables::nobody_chatters),
    ("cables::the_direct_site_is_a_cable", lab_needs, cables::the_direct_site_is_a_cable),
    ("cables::every_lost_frame_is_counted", lab_needs, cables::every_lost_frame_is_counted),
    ("cables::frames_are_not_merged", lab_needs, cables::frames_are_not_merged),
    ("cables::bad_names_are_refused", lab_needs, cables::bad_names_are_refused),
    ("processes::last_words", lab_needs, processes::last_words),
    ("processes::place_and_end", lab_needs, processes::place_and_end),
    (
        "processes::descendants_end_with_the_folder",
        lab_needs,
        processes::descendants_end_with_the_folder,
    ),
    ("processes::one_that_does_not_listen", lab_needs, processes::one_that_does_not_listen),
    ("processes::held_and_released", lab_needs, processes::held_and_released),
    ("kernel_peers::bridge_learns", lab_needs, kernel_peers::bridge_learns),
    ("kernel_peers::bridge_static", lab_needs, kernel_peers::bridge_static),
    ("kernel_peers::router_forwards", lab_needs, kernel_peers::router_forwards),
    ("kernel_peers::a_full_table_of_routes", lab_needs, kernel_peers::a_full_table_of_routes),
    ("ours::a_router_is_told_everything", lab_needs, ours::a_router_is_told_everything),
    ("ours::a_bridge_and_a_switch", lab_needs, ours::a_bridge_and_a_switch),
    ("ours::one_that_cannot_start", lab_needs, ours::one_that_cannot_start),
    ("hosts::hosts_talk_through_a_bridge", lab_needs, hosts::hosts_talk_through_a_bridge),
    ("hosts::hosts_talk_through_a_router", lab_needs, hosts::hosts_talk_through_a_router),
    ("hosts::what_is_lost_is_counted", lab_needs, hosts::what_is_lost_is_counted),
    ("hosts::iperf_sends_and_ends", iperf_needs, hosts::iperf_sends_and_ends),
    (
        "hosts::a_connection_has_the_window_that_was_asked_for",
        iperf_needs,
        hosts::a_connection_has_the_window_that_was_asked_for,
    ),
    ("leftovers::a_survey_leaves_nothing", lab_needs, leftovers::a_survey_leaves_nothing),
    ("openvswitch::forwards_by_openflow", ovs_needs, openvswitch::forwards_by_openflow),
    ("openvswitch::leaves_nothing", ovs_needs, openvswitch::leaves_nothing),
    ("leftovers::a_killed_run_is_swept", ovs_needs, leftovers::a_killed_run_is_swept),
    ("dpdk::testpmd_forwards", testpmd_needs, dpdk::testpmd_forwards),
    ("dpdk::ovs_forwards_over_memif", dpdk_needs, dpdk::ovs_forwards_over_memif),
    ("dpdk::ovs_forwards_over_vhost", dpdk_needs, dpdk::ovs_forwards_over_vhost),
    ("dpdk::ovs_in_every_shape", dpdk_needs, dpdk::ovs_in_every_shape),
    ("dpdk::pages_are_given_back", page_needs, dpdk::pages_are_given_back),
    (
        "dpdk::pages_of_a_killed_run_are_given_back",
        dpdk_needs,
        dpdk::pages_of_a_killed_run_are_given_back,
    ),
    ("rootless::a_lab_without_root", rootless_needs, rootless::a_lab_without_root),
    ("rootless::ovs_without_root", rootless_ovs_needs, rootless::ovs_without_root),
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
        return ours::stand_in(&arguments);
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

fn lab_needs() -> Result<(), Need> {
    if need::privileged() { Ok(()) } else { Err(Need::Privilege) }
}

fn thread_needs() -> Result<(), Need> {
    lab_needs()?;
    match need::try_feature(Feature::ThreadedNapi) {
        Err(LabError::Need(need)) => Err(need),
        Err(other) => panic!("{other}"),
        Ok(_) => Ok(()),
    }
}

fn ovs_needs() -> Result<(), Need> {
    lab_needs()?;
    for program in ["ovs-vswitchd", "ovsdb-server", "ovsdb-tool", "ovs-vsctl"] {
        need::tool(program, "openvswitch-switch")?;
    }
    Ok(())
}

fn iperf_needs() -> Result<(), Need> {
    lab_needs()?;
    need::tool("iperf3", "iperf3").map(drop)
}

fn page_needs() -> Result<(), Need> {
    lab_needs()?;
    lab::hugepages::possible(512).map(drop)
}

fn testpmd_needs() -> Result<(), Need> {
    page_needs()?;
    Testpmd::needs(&[
        Device::MemifServer("p1".into()),
        Device::VirtioUser("p1".into()),
        Device::Sink,
    ])
}

fn dpdk_needs() -> Result<(), Need> {
    testpmd_needs()?;
    OvsDpdk::needs(Ports::Memif)
}

fn rootless_needs() -> Result<(), Need> {
    lab_needs()?;
    need::tool("setpriv", "util-linux")?;
    // Changing the user requires that all users exist, which is not so in a user namespace.
    let users = std::fs::read_to_string("/proc/self/uid_map").unwrap();
    if users.split_ascii_whitespace().nth(2) != Some("4294967295") {
        return Err(Need::Privilege);
    }
    need::user_namespaces()
}

fn rootless_ovs_needs() -> Result<(), Need> {
    rootless_needs()?;
    ovs_needs()
}
