//! Tests of the program on a real kernel: real targets over veth, misbehaving controllers, and
//! complete clean-up after any end.
//!
//! They require root or user namespaces. Otherwise each test names the missing requirement and is
//! skipped, except as root where `CI` is set: there no test may be skipped. Tests run in sequence,
//! and each has its own folders. Arguments that are not options select them by a part of their
//! name.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

#[path = "lab/agents.rs"]
mod agents;
mod common;
#[path = "lab/devices.rs"]
mod devices;
#[path = "lab/disturbed.rs"]
mod disturbed;
#[path = "lab/hosts.rs"]
mod hosts;
#[path = "lab/transfers.rs"]
mod transfers;
#[path = "lab/joining.rs"]
mod joining;
#[path = "lab/offloads.rs"]
mod offloads;
#[path = "lab/observed.rs"]
mod observed;
#[path = "common/one_by_one.rs"]
mod one_by_one;
#[path = "lab/programmed.rs"]
mod programmed;
#[path = "lab/scripts.rs"]
mod scripts;
#[path = "common/shared_memory.rs"]
mod shared_memory;
#[path = "lab/witnesses.rs"]
mod witnesses;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use common::{CommandResult, Folder, command, contents, interrupt, only_run, record};
use netio::capture::{CaptureOptions, CaptureWriter};
use netio::xdp::live;
use one_by_one::{Test, is_real_root};
use packet::capture::write::FrameNotes;
use packet::time::Nanos;
use serde_json::Value;
use testbed::peer::ovs_dpdk::{OvsDpdk, Ports};
use testbed::probe;
use testbed::requirement::{self, Feature, Requirement};
use testbed::veth::{Cable, EndSettings};
use testbed::{LabError, Namespace};

/// Time limit of any wait; only a failure takes this long.
const PATIENCE: Duration = Duration::from_secs(30);

const TESTS: [Test<Requirement>; 62] = [
    ("every_target_forwards", ovs_needs, every_target_forwards),
    ("every_tagger_adds_the_correct_tag", tagging_needs, every_tagger_adds_the_correct_tag),
    ("two_flows_enter_by_two_ports", ovs_needs, two_flows_enter_by_two_ports),
    (
        "a_python_module_receives_packet_ins_of_open_vswitch",
        ovs_needs,
        scripts::a_python_module_receives_packet_ins_of_open_vswitch,
    ),
    (
        "open_vswitch_is_selected_by_its_prefix",
        scripts::prefix_needs,
        scripts::open_vswitch_is_selected_by_its_prefix,
    ),
    ("all_tests_of_rfc_2544_are_measured", lab_needs, all_tests_of_rfc_2544_are_measured),
    ("bridges_with_four_ports_are_measured", lab_needs, bridges_with_four_ports_are_measured),
    ("a_soak_test_reports_memory_and_drift", lab_needs, a_soak_test_reports_memory_and_drift),
    (
        "an_interrupted_run_leaves_nothing_behind",
        lab_needs,
        an_interrupted_run_leaves_nothing_behind,
    ),
    (
        "a_run_can_be_interrupted_during_calibration",
        lab_needs,
        a_run_can_be_interrupted_during_calibration,
    ),
    ("doctor_cleans_up_after_a_killed_run", lab_needs, doctor_cleans_up_after_a_killed_run),
    (
        "the_next_run_cleans_up_after_a_killed_run",
        lab_needs,
        the_next_run_cleans_up_after_a_killed_run,
    ),
    (
        "without_open_vswitch_its_package_is_named",
        mount_needs,
        without_open_vswitch_its_package_is_named,
    ),
    ("missing_privileges_are_named", user_needs, missing_privileges_are_named),
    (
        "a_switch_that_cannot_start_reports_the_reason",
        tap_needs,
        a_switch_that_cannot_start_reports_the_reason,
    ),
    (
        "a_hostile_controller_does_not_affect_others",
        tap_needs,
        a_hostile_controller_does_not_affect_others,
    ),
    (
        "a_hostile_control_client_does_not_affect_others",
        tap_needs,
        a_hostile_control_client_does_not_affect_others,
    ),
    ("a_stale_socket_is_replaced", tap_needs, a_stale_socket_is_replaced),
    ("a_switch_ends_cleanly_on_a_signal", tap_needs, a_switch_ends_cleanly_on_a_signal),
    ("a_removed_interface_is_reported", tap_needs, a_removed_interface_is_reported),
    ("frames_pass_open_vswitch_on_dpdk", dpdk_needs, frames_pass_open_vswitch_on_dpdk),
    ("frames_pass_testpmd", pmd_needs, frames_pass_testpmd),
    (
        "targets_over_shared_memory_account_for_frames",
        memif_needs,
        targets_over_shared_memory_account_for_frames,
    ),
    ("bridges_learn_before_they_are_measured", memif_needs, bridges_learn_before_they_are_measured),
    (
        "controllers_measure_switches_over_shared_memory",
        dpdk_needs,
        controllers_measure_switches_over_shared_memory,
    ),
    ("targets_over_af_xdp_account_for_frames", xdp_needs, targets_over_af_xdp_account_for_frames),
    (
        "targets_over_live_ports_account_for_frames",
        live_needs,
        targets_over_live_ports_account_for_frames,
    ),
    (
        "switches_without_a_common_link_are_measured",
        both_needs,
        joining::switches_without_a_common_link_are_measured,
    ),
    (
        "a_path_over_two_switches_is_measured",
        ovs_needs,
        joining::a_path_over_two_switches_is_measured,
    ),
    ("a_capture_file_is_sent_over_veth", lab_needs, a_capture_file_is_sent_over_veth),
    (
        "an_interface_that_goes_down_while_sending_is_reported",
        lab_needs,
        disturbed::an_interface_that_goes_down_while_sending_is_reported,
    ),
    (
        "an_interface_that_goes_down_during_a_run_is_reported",
        enter_needs,
        disturbed::an_interface_that_goes_down_during_a_run_is_reported,
    ),
    ("a_target_that_floods_is_handled", lab_needs, disturbed::a_target_that_floods_is_handled),
    (
        "the_drain_is_extended_for_a_stalled_target",
        lab_needs,
        disturbed::the_drain_is_extended_for_a_stalled_target,
    ),
    ("streams_are_sent_until_interrupted", lab_needs, streams_are_sent_until_interrupted),
    (
        "an_external_snmp_agent_counts_every_frame",
        witnesses::agent_needs,
        witnesses::an_external_snmp_agent_counts_every_frame,
    ),
    ("control_channels_are_captured", ovs_needs, witnesses::control_channels_are_captured),
    ("our_switch_is_measured_as_a_device", lab_needs, devices::our_switch_is_measured_as_a_device),
    (
        "open_vswitch_is_measured_as_a_device",
        devices::ofctl_needs,
        devices::open_vswitch_is_measured_as_a_device,
    ),
    (
        "a_device_is_measured_with_two_and_three_ports",
        lab_needs,
        devices::a_device_is_measured_with_two_and_three_ports,
    ),
    (
        "a_device_with_other_port_numbers_is_measured_over_tls",
        lab_needs,
        devices::a_device_with_other_port_numbers_is_measured_over_tls,
    ),
    (
        "the_control_channel_of_a_device_is_captured",
        lab_needs,
        devices::the_control_channel_of_a_device_is_captured,
    ),
    ("a_bridge_is_measured_as_a_device", lab_needs, devices::a_bridge_is_measured_as_a_device),
    ("a_router_is_measured_as_a_device", lab_needs, devices::a_router_is_measured_as_a_device),
    (
        "device_errors_are_reported_with_a_hint",
        lab_needs,
        devices::device_errors_are_reported_with_a_hint,
    ),
    (
        "client_and_server_measure_all_targets",
        lab_needs,
        hosts::client_and_server_measure_all_targets,
    ),
    ("other_links_support_no_hosts", lab_needs, hosts::other_links_support_no_hosts),
    (
        "the_requested_window_and_frame_size_apply",
        hosts::iperf_needs,
        transfers::the_requested_window_and_frame_size_apply,
    ),
    ("a_bridge_forwards_merged_frames", offloads::needs, offloads::a_bridge_forwards_merged_frames),
    ("a_router_forwards_merged_frames", offloads::needs, offloads::a_router_forwards_merged_frames),
    (
        "a_switch_rewrites_and_forwards_merged_frames",
        offloads::needs,
        offloads::a_switch_rewrites_and_forwards_merged_frames,
    ),
    ("mininet_measures_with_iperf", offloads::mininet_needs, offloads::mininet_measures_with_iperf),
    (
        "iperf3_generates_the_load_of_statistics",
        hosts::iperf_needs,
        hosts::iperf3_generates_the_load_of_statistics,
    ),
    (
        "a_router_is_reprogrammed_over_forces",
        programmed::needs,
        programmed::a_router_is_reprogrammed_over_forces,
    ),
    ("a_running_element_is_inspected", lab_needs, observed::a_running_element_is_inspected),
    ("a_router_with_agents_forwards", agents::host_needs, agents::a_router_with_agents_forwards),
    (
        "continuity_is_checked_with_open_vswitch",
        agents::cfm_needs,
        agents::continuity_is_checked_with_open_vswitch,
    ),
    (
        "elements_measure_the_delay_between_them",
        lab_needs,
        agents::elements_measure_the_delay_between_them,
    ),
    (
        "an_external_program_is_an_agent",
        agents::host_needs,
        agents::an_external_program_is_an_agent,
    ),
    ("programs_are_loaded_over_http", agents::host_needs, agents::programs_are_loaded_over_http),
    ("programs_are_loaded_over_ethernet", lab_needs, agents::programs_are_loaded_over_ethernet),
    ("a_missing_snmp_agent_is_a_warning", lab_needs, witnesses::a_missing_snmp_agent_is_a_warning),
];

fn main() -> ExitCode {
    one_by_one::run(&TESTS)
}

fn lab_needs() -> Result<(), Requirement> {
    if requirement::privileged() { Ok(()) } else { Err(Requirement::Privilege) }
}

fn ovs_needs() -> Result<(), Requirement> {
    lab_needs()?;
    for program in ["ovs-vswitchd", "ovsdb-server", "ovsdb-tool", "ovs-vsctl"] {
        requirement::tool(program, "openvswitch-switch")?;
    }
    Ok(())
}

/// Verifies real root, which the kernel requires for programs at interfaces.
fn tagging_needs() -> Result<(), Requirement> {
    ovs_needs()?;
    if is_real_root() { Ok(()) } else { Err(Requirement::Privilege) }
}

fn mount_needs() -> Result<(), Requirement> {
    ovs_needs()?;
    requirement::tool("unshare", "util-linux").map(drop)
}

fn enter_needs() -> Result<(), Requirement> {
    lab_needs()?;
    requirement::tool("nsenter", "util-linux")?;
    requirement::tool("ip", "iproute2").map(drop)
}

fn user_needs() -> Result<(), Requirement> {
    if !is_real_root() {
        return Err(Requirement::Privilege);
    }
    requirement::tool("setpriv", "util-linux").map(drop)
}

fn tap_needs() -> Result<(), Requirement> {
    lab_needs()?;
    match probe::try_feature(Feature::Tun) {
        Err(LabError::Need(need)) => Err(need),
        Err(other) => panic!("{other}"),
        Ok(_) => Ok(()),
    }
}

fn dpdk_needs() -> Result<(), Requirement> {
    ovs_needs()?;
    requirement::tool("ovs-ofctl", "openvswitch-common")?;
    shared_memory::ovs_needs()
}

fn pmd_needs() -> Result<(), Requirement> {
    lab_needs()?;
    shared_memory::testpmd_needs()
}

fn memif_needs() -> Result<(), Requirement> {
    dpdk_needs()?;
    pmd_needs()
}

fn xdp_needs() -> Result<(), Requirement> {
    ovs_needs()?;
    OvsDpdk::needs(Ports::Xdp)?;
    probe::require(Feature::XdpSocket).map(drop)
}

fn live_needs() -> Result<(), Requirement> {
    lab_needs()?;
    live::probe().map_err(|_| Requirement::Privilege)
}

fn both_needs() -> Result<(), Requirement> {
    dpdk_needs()?;
    xdp_needs()
}

fn frames_pass_open_vswitch_on_dpdk() {
    shared_memory::through_ovs(Folder::new().0.join("run"));
}

fn frames_pass_testpmd() {
    shared_memory::through_testpmd(Folder::new().0.join("run"));
}

/// A folder for runs; the program's runtime files are in `run/planimeter`.
struct Place(Folder);

impl Place {
    fn new() -> Place {
        let folder = Folder::new();
        fs::create_dir(folder.0.join("run")).unwrap();
        Place(folder)
    }

    fn path(&self) -> &Path {
        &self.0.0
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = command(self.path(), arguments);
        command.env("XDG_RUNTIME_DIR", self.path().join("run"));
        command
    }

    fn planimeter(&self, arguments: &[&str]) -> CommandResult {
        self.command(arguments).output().unwrap().into()
    }

    /// Returns leftovers of runs, and processes with this place in their command line.
    fn left(&self) -> (Vec<String>, Vec<String>) {
        let root = self.path().join("run/planimeter");
        let folders = if root.exists() { contents(&root) } else { Vec::new() };
        (folders, self.processes().map(|(_, line)| line).collect())
    }

    /// Returns the processes with this place in their command line, and these.
    fn processes(&self) -> impl Iterator<Item = (u32, String)> + use<> {
        let own = self.path().to_str().unwrap().to_string();
        processes().filter(move |(_, line)| line.contains(&own))
    }

    fn assert_clean(&self, before: &System) {
        assert_eq!(self.left(), (Vec::new(), Vec::new()), "resources are left");
        assert_eq!(System::now().stray(before), Vec::<String>::new());
    }
}

/// Network interfaces and named namespaces of the machine.
struct System {
    interfaces: Vec<String>,
    namespaces: Vec<String>,
}

impl System {
    fn now() -> System {
        let names = |folder: &str| {
            let path = Path::new(folder);
            if path.is_dir() { contents(path) } else { Vec::new() }
        };
        System { interfaces: names("/sys/class/net"), namespaces: names("/run/netns") }
    }

    /// Returns what exists now and did not before.
    fn stray(&self, before: &System) -> Vec<String> {
        let new = |now: &[String], then: &[String]| -> Vec<String> {
            now.iter().filter(|name| !then.contains(name)).cloned().collect()
        };
        let mut stray = new(&self.interfaces, &before.interfaces);
        stray.extend(new(&self.namespaces, &before.namespaces));
        stray
    }
}

/// Returns all processes and their command lines.
fn processes() -> impl Iterator<Item = (u32, String)> {
    let pids = fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let line = |pid: u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).replace('\0', " ")
    };
    pids.map(move |pid| (pid, line(pid)))
}

fn in_time(mut is_true: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    while !is_true() {
        if begun.elapsed() > PATIENCE {
            return false;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    true
}

/// Tests that every target forwards.
///
/// The load is so low that queues hold the frames while another process has the core for 30 ms. A
/// longer interruption may lose a frame, always with a reason, and another repeat then shows the
/// target's behavior.
fn every_target_forwards() {
    let place = Place::new();
    let before = System::now();
    let targets = ["switch", "bridge", "router", "linux-bridge", "linux-router", "ovs", "direct"];
    let mut arguments = vec!["run", "bianco2010/fig3", "--effort", "quick", "--link", "veth"];
    arguments.extend(["--set", "seconds=0.05", "--set", "repeats=3", "--set", "load=0.5"]);
    arguments.extend(targets.iter().flat_map(|target| ["--on", target]));
    let result = place.planimeter(&arguments);
    assert_eq!(result.code, Some(0), "{}", result.errors);
    place.assert_clean(&before);
    let record = record(&only_run(&place.path().join("runs")));
    let trials = record["trials"].as_array().unwrap();
    // The router with a destination cache is added.
    assert_eq!(trials.len(), 3 * (targets.len() + 1));
    let count = |trial: &Value, name: &str| trial[name].as_i64().unwrap();
    let forwards =
        |trial: &Value| count(trial, "frames_forwarded") * 10 > count(trial, "frames_offered") * 9;
    for target in targets {
        let mut own = trials.iter().filter(|trial| trial["target"] == target);
        assert!(own.any(forwards), "{target} does not forward");
    }
    for trial in trials {
        assert!(count(trial, "frames_offered") > 0, "{trial}");
        assert_eq!(count(trial, "frames_unexplained"), 0, "{trial}");
        let classes = &trial["classes"];
        for class in ["corrupt", "misrouted", "flooded", "duplicate", "reordered"] {
            assert_eq!(classes[class], 0, "{class}: {trial}");
        }
    }
    for target in record["targets"].as_array().unwrap() {
        let is_stated = target["version"].as_str().is_some_and(|version| !version.is_empty());
        assert!(is_stated || target["name"] == "direct", "{target} has no version");
    }
    assert!(record["calibrations"][0]["rate_pps_ceiling"].as_u64().unwrap() > 0);
}

/// Tests every target that tags, with each tag checked on the wire, and programs that bridge and
/// route.
fn every_tagger_adds_the_correct_tag() {
    let place = Place::new();
    let before = System::now();
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/progfe");
    let program = |name: &str| format!("progfe:{examples}/{name}.fe.xml");
    let [vlan, bridge, complex, router] =
        ["vlan16", "bridge", "bridge-complex", "router"].map(program);
    let tagging = ["tagger", "linux-tagger", &vlan, "switch", "ovs", "direct"];
    let forwarding = [&bridge[..], &complex, &router, "bridge", "router"];
    for (runs, targets, set) in [
        ("tags", &tagging[..], &["table=tags", "entries=16", "traffic=random"][..]),
        ("tables", &forwarding[..], &["entries=1000", "traffic=random"][..]),
    ] {
        let mut arguments = vec!["run", "forwarding-rate", "--link", "veth", "--output", runs];
        let short = ["seconds=0.05", "repeats=3", "capacity=5M"];
        arguments.extend(short.iter().chain(set).flat_map(|it| ["--set", it]));
        arguments.extend(targets.iter().flat_map(|target| ["--on", target]));
        let result = place.planimeter(&arguments);
        assert_eq!(result.code, Some(0), "{}", result.errors);
        place.assert_clean(&before);
        let record = record(&only_run(&place.path().join(runs)));
        for target in targets {
            let trials = record["trials"].as_array().unwrap().iter();
            let own: Vec<&Value> = trials.filter(|trial| trial["target"] == *target).collect();
            assert_eq!(own.len(), if runs == "tags" { 6 } else { 3 }, "{target}");
            for trial in own {
                assert_eq!(trial["frames_unexplained"], 0, "{trial}");
                assert_eq!(trial["classes"]["correct"], trial["frames_forwarded"], "{trial}");
                assert!(trial["frames_forwarded"].as_u64().unwrap() > 0, "{trial}");
            }
        }
    }
}

/// Tests every target with a third port, over a nominal link so slow that all targets carry both
/// flows.
fn two_flows_enter_by_two_ports() {
    let place = Place::new();
    let before = System::now();
    let targets = ["switch", "bridge", "router", "linux-bridge", "linux-router", "ovs"];
    let mut arguments = vec!["run", "bianco2010/fig10", "--effort", "quick", "--link", "veth"];
    let set = ["seconds=0.05", "repeats=3", "load=40", "entries=64", "capacity=20M"];
    arguments.extend(set.iter().flat_map(|it| ["--set", it]));
    arguments.extend(targets.iter().flat_map(|target| ["--on", target]));
    let result = place.planimeter(&arguments);
    assert_eq!(result.code, Some(0), "{}", result.errors);
    place.assert_clean(&before);
    let record = record(&only_run(&place.path().join("runs")));
    let trials = record["trials"].as_array().unwrap();
    let added = ["switch:service=first-come", "bridge:buckets=256", "router:cache=on"];
    assert_eq!(trials.len(), 4 * (targets.len() + added.len()));
    for target in targets.iter().chain(&added) {
        let own = trials.iter().filter(|trial| trial["target"] == *target);
        let carries = |trial: &Value, flow: usize| {
            let stream = &trial["streams"][flow];
            assert_eq!(stream["port_out"], [0, 2][flow], "{trial}");
            let correct = stream["classes"]["correct"].as_i64().unwrap();
            correct * 10 > stream["frames_offered"].as_i64().unwrap() * 9
        };
        let both = own.filter(|trial| carries(trial, 0) && carries(trial, 1)).count();
        assert!(both > 0, "{target} does not forward both flows");
    }
    for trial in trials {
        assert_eq!(trial["frames_unexplained"], 0, "{trial}");
        for class in ["corrupt", "misrouted", "flooded", "duplicate"] {
            assert_eq!(trial["classes"][class], 0, "{class}: {trial}");
        }
    }
}

/// Runs a standard's experiment over a nominal link so slow that targets carry it; returns the
/// trials, and the summary.
fn standard(words: &[&str], targets: &[&str], set: &[&str]) -> (Vec<Value>, String) {
    let place = Place::new();
    let before = System::now();
    let mut arguments = [&["run", "--effort", "quick"], words].concat();
    arguments.extend(set.iter().flat_map(|it| ["--set", it]));
    arguments.extend(targets.iter().flat_map(|target| ["--on", target]));
    let result = place.planimeter(&arguments);
    assert_eq!(result.code, Some(0), "{}", result.errors);
    place.assert_clean(&before);
    let folder = only_run(&place.path().join("runs"));
    let record = record(&folder);
    let outcomes = record["outcomes"].as_array().unwrap().clone();
    (outcomes, fs::read_to_string(folder.join("summary.md")).unwrap())
}

/// Returns the number of results of a metric in an experiment.
fn results_of(outcomes: &[Value], id: &str, metric: &str) -> usize {
    outcomes.iter().filter(|it| it["experiment"] == id && it["metric"] == metric).count()
}

/// Tests all six tests on a switch, and a reset on a kernel target.
fn all_tests_of_rfc_2544_are_measured() {
    let set = ["frame=512", "seconds=0.1", "repeats=1", "capacity=20M", "resolution=0.2"];
    let targets = ["switch", "linux-bridge"];
    let (outcomes, summary) = standard(&["rfc2544", "--link", "veth"], &targets, &set);
    for target in targets {
        let is_own = |it: &&Value| it["target"] == target;
        let own: Vec<Value> = outcomes.iter().filter(is_own).cloned().collect();
        assert_eq!(results_of(&own, "rfc2544/throughput", "throughput_pps"), 1, "{target}");
        // The throughput from the first test serves the others.
        assert_eq!(results_of(&own, "rfc2544/latency", "throughput_pps"), 1, "{target}");
        let reset = own.iter().find(|it| it["metric"] == "reset_ns");
        // No restart is faster than a frame.
        assert!(reset.unwrap()["value"].as_f64().unwrap() > 1e5, "{target}: {reset:?}");
    }
    for heading in ["Throughput (RFC 2544, 26.1)", "Frame loss rate", "System recovery", "Reset ("]
    {
        assert!(summary.contains(heading), "{heading} is missing: {summary}");
    }
    let (outcomes, _) = standard(&["rfc2544/reset", "--link", "memif"], &["bridge"], &set);
    let reset = outcomes.iter().find(|it| it["metric"] == "reset_ns").unwrap();
    // A busy machine may limit the tester; no other flag shows that the bridge returned.
    let flags = reset["flags"].as_array().map_or(&[][..], Vec::as_slice);
    assert!(flags.iter().all(|flag| flag == "tester_limited"), "the target recovered: {reset}");
}

/// Tests full-mesh traffic and address tables over veth; our bridge also over shared memory.
fn bridges_with_four_ports_are_measured() {
    let set = [
        "frame=512",
        "seconds=0.1",
        "repeats=1",
        "capacity=2M",
        "addresses=60",
        "learning_rate=2000",
    ];
    let (outcomes, summary) =
        standard(&["rfc2889", "--link", "veth"], &["bridge", "linux-bridge"], &set);
    for (id, metric) in [
        ("rfc2889/throughput", "throughput_pps"),
        ("rfc2889/max-rate", "rate_pps_maximum"),
        ("rfc2889/congestion", "loss_ratio_uncongested"),
        ("rfc2889/caching", "mac_addresses_learned"),
        ("rfc2889/learning", "addresses_learned_per_s"),
    ] {
        assert_eq!(results_of(&outcomes, id, metric), 2, "{id}");
    }
    let is_capacity = |it: &&Value| it["metric"] == "mac_addresses_learned";
    for found in outcomes.iter().filter(is_capacity) {
        // Both hold far more addresses than the test uses, but a frame may be lost on the way.
        assert!((1.0..=60.0).contains(&found["value"].as_f64().unwrap()), "{found}");
    }
    assert!(summary.contains("Address table, trial by trial"), "{summary}");
    let set = ["frame=512", "seconds=0.05", "repeats=1", "capacity=2M", "ports=6"];
    let words = ["rfc2889/full-mesh", "--link", "memif"];
    let (_, summary) = standard(&words, &["bridge", "switch"], &set);
    assert!(
        summary.contains("| 512 | planimeter bridge |")
            && summary.contains("| 512 | planimeter switch |"),
        "{summary}"
    );
}

/// Tests a series with flow-mods and with changing addresses, and the memory of processes.
fn a_soak_test_reports_memory_and_drift() {
    let set = ["soak_seconds=3", "repeats=1", "capacity=20M", "flow_mods_per_s=500"];
    let (_, summary) = standard(&["soak", "--link", "veth"], &["switch", "bridge"], &set);
    for target in ["switch", "bridge"] {
        let line = format!("| planimeter {target} | memory, MB |");
        assert!(summary.contains(&line), "{line} is missing: {summary}");
    }
}

/// Tests every target over shared memory, with traffic over several entries. The state of Open
/// vSwitch's caches is recorded before each of its trials, and both switches report their cycles.
fn targets_over_shared_memory_account_for_frames() {
    let targets =
        ["switch", "bridge", "router", "ovs-dpdk", "ovs-dpdk:emc=off", "testpmd", "direct"];
    account_for_frames("memif", &targets);
}

/// Tests our bridge, and Open vSwitch as a bridge, after they learned the traffic's stations.
fn bridges_learn_before_they_are_measured() {
    let place = Place::new();
    let before = System::now();
    let mut arguments = vec!["run", "forwarding-rate", "--link", "memif", "--effort", "quick"];
    let set = ["table=learned", "entries=10000", "traffic=random", "seconds=0.05", "repeats=2"];
    arguments.extend(set.iter().chain(&["load=0.05"]).flat_map(|it| ["--set", it]));
    arguments.extend(["--on", "bridge", "--on", "ovs-dpdk:emc=off", "--on", "testpmd"]);
    let result = place.planimeter(&arguments);
    assert_eq!(result.code, Some(0), "{}", result.errors);
    place.assert_clean(&before);
    let record = record(&only_run(&place.path().join("runs")));
    for trial in record["trials"].as_array().unwrap() {
        assert!(trial["frames_forwarded"].as_i64() > Some(0), "{trial}");
        assert_eq!(trial["frames_unexplained"], 0, "{trial}");
        for class in ["corrupt", "misrouted", "flooded", "duplicate"] {
            assert_eq!(trial["classes"][class], 0, "{class}: {trial}");
        }
        let grown = |name: &str| {
            let counters = trial["counters"].as_array()?;
            let counter = counters.iter().find(|it| it["name"] == name)?;
            Some(counter["after"].as_u64()? - counter["before"].as_u64()?)
        };
        if trial["target"] == "bridge" {
            assert_eq!(grown("bridge.flooded_unknown"), Some(0), "{trial}");
            assert!(grown("bridge.forwarded") > Some(0), "{trial}");
        }
    }
}

fn targets_over_af_xdp_account_for_frames() {
    account_for_frames("veth:xdp", &["switch", "bridge", "ovs-dpdk", "direct"]);
}

fn targets_over_live_ports_account_for_frames() {
    account_for_frames("veth:live", &["switch", "bridge", "linux-bridge", "direct"]);
}

/// Runs targets over a link; each forwards, and no frame is lost without a reason.
fn account_for_frames(link: &str, targets: &[&str]) {
    let place = Place::new();
    let before = System::now();
    let mut arguments = vec!["run", "forwarding-rate", "--link", link, "--effort", "quick"];
    let set = ["table=wildcard", "entries=20", "rules=addresses", "seconds=0.05", "repeats=3"];
    arguments.extend(set.iter().chain(&["load=0.05"]).flat_map(|it| ["--set", it]));
    arguments.extend(targets.iter().flat_map(|target| ["--on", target]));
    let result = place.planimeter(&arguments);
    assert_eq!(result.code, Some(0), "{}", result.errors);
    place.assert_clean(&before);
    let record = record(&only_run(&place.path().join("runs")));
    let trials = record["trials"].as_array().unwrap();
    assert_eq!(trials.len(), 3 * targets.len());
    let count = |trial: &Value, name: &str| trial[name].as_i64().unwrap();
    for trial in trials {
        let target = trial["target"].as_str().unwrap();
        assert!(count(trial, "frames_forwarded") > 0, "{target} does not forward: {trial}");
        assert_eq!(count(trial, "frames_unexplained"), 0, "{trial}");
        let classes = &trial["classes"];
        // Open vSwitch sends the frames of a burst flow by flow.
        for class in ["corrupt", "misrouted", "flooded", "duplicate"] {
            assert_eq!(classes[class], 0, "{class}: {trial}");
        }
        let tells = target == "switch" && link != "veth:live"
            || target.starts_with("ovs")
            || link == "memif" && ["bridge", "router"].contains(&target);
        assert_eq!(trial["work"]["cycles_busy"].as_u64().is_some_and(|it| it > 0), tells);
        let reported = |name: &str| {
            let counters = trial["counters"].as_array()?;
            counters.iter().find(|it| it["name"] == name)?["after"].as_u64()
        };
        let is_ovs = target.starts_with("ovs");
        assert_eq!(reported("warm.flows").is_some_and(|it| it >= 20), is_ovs, "{trial}");
        assert_eq!(reported("warm.last_pass.upcalls_lost"), is_ovs.then_some(0), "{trial}");
    }
}

/// Every experiment with a controller, on our switch and on Open vSwitch, with few flows.
fn controllers_measure_switches_over_shared_memory() {
    let place = Place::new();
    let before = System::now();
    let mut arguments = vec!["run", "flow-mod-rate", "flow-mod-impact", "flow-stats-dump"];
    arguments.extend(["memory-per-flow", "cold-start", "--link", "memif", "--effort", "quick"]);
    let set = ["flows=500", "batch=1,100,bundle:250", "seconds=0.05", "repeats=1"];
    arguments.extend(set.iter().flat_map(|it| ["--set", it]));
    arguments.extend(["--on", "switch", "--on", "ovs-dpdk"]);
    let result = place.planimeter(&arguments);
    assert_eq!(result.code, Some(0), "{}", result.errors);
    place.assert_clean(&before);
    let record = record(&only_run(&place.path().join("runs")));
    let cells = record["cells"].as_array().unwrap();
    for target in ["switch", "ovs-dpdk"] {
        let values = |metric: &str| -> Vec<f64> {
            let here = |it: &&Value| it["target"] == target && it["metric"] == metric;
            cells.iter().filter(here).map(|it| it["value"].as_f64().unwrap()).collect()
        };
        for operation in ["added", "modified", "deleted"] {
            let rates = values(&format!("flow_mods_{operation}_per_s"));
            assert_eq!(rates.len(), 3, "{target} {operation}: {rates:?}");
            assert!(rates.iter().all(|&rate| rate > 0.0), "{target} {operation}: {rates:?}");
        }
        assert_eq!(values("memory_bytes_per_flow").len(), 2, "{target}");
        assert_eq!(values("rate_ratio_cold_cache").len(), 1, "{target}");
        assert_eq!(values("cycles_busy_ratio").len(), 1, "{target}");
        assert_eq!(values("flow_stats_ns").len(), 1, "{target}");
    }
    let trials = record["trials"].as_array().unwrap();
    let orders: Vec<&Value> = trials.iter().map(|it| &it["controller_load"]).collect();
    let orders: Vec<&Value> = orders.into_iter().filter(|it| !it.is_null()).collect();
    assert!(orders.iter().all(|it| it["errors"] == 0), "{orders:?}");
    let reported = |it: &&&Value| it["command"] == "flow_stats";
    assert_eq!(
        orders.iter().filter(reported).map(|it| &it["rows"]).collect::<Vec<_>>(),
        [500, 500]
    );
}

/// Starts a long run over veth, and returns after its first trial.
fn long_run(place: &Place) -> (Child, BufReader<impl Read>) {
    let mut arguments = vec!["run", "bianco2010/fig3", "--link", "veth", "--on", "switch"];
    if ovs_needs().is_ok() {
        arguments.extend(["--on", "ovs"]);
    }
    arguments.extend(["--set", "seconds=0.05", "--set", "repeats=1000", "--set", "load=1"]);
    let mut child =
        place.command(&arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    let mut output = String::new();
    while !output.contains("[1/") {
        assert!(errors.read_line(&mut output).unwrap() > 0, "the run ended early: {output}");
    }
    (child, errors)
}

fn an_interrupted_run_leaves_nothing_behind() {
    let place = Place::new();
    let before = System::now();
    let (mut child, mut errors) = long_run(&place);
    assert_eq!(place.left().0.len(), 1, "a run has a folder");
    interrupt(child.id());
    let mut rest = String::new();
    errors.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{rest}");
    assert!(rest.contains("--resume"), "{rest}");
    place.assert_clean(&before);
    let record = record(&only_run(&place.path().join("runs")));
    assert_eq!(record["partial"], true);
    assert!(!record["trials"].as_array().unwrap().is_empty());
}

/// Tests an interruption while the tester itself is measured.
fn a_run_can_be_interrupted_during_calibration() {
    let place = Place::new();
    let before = System::now();
    let mut child = place
        .command(&["run", "bianco2010/fig3", "--link", "veth", "--on", "direct"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The record exists before the first trial of the calibration.
    let runs = place.path().join("runs");
    let has_begun = || runs.is_dir() && only_run(&runs).join("record.json").exists();
    assert!(in_time(|| runs.is_dir() && !contents(&runs).is_empty() && has_begun()));
    interrupt(child.id());
    let mut output = String::new();
    child.stderr.take().unwrap().read_to_string(&mut output).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{output}");
    assert!(output.contains("--resume"), "{output}");
    place.assert_clean(&before);
    assert_eq!(record(&only_run(&runs))["partial"], true);
}

/// Tests that a killed run leaves only its folder: the kernel ends its children, and with them
/// namespaces and interfaces.
fn kill(place: &Place, before: &System) {
    let (mut child, _errors) = long_run(place);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(in_time(|| place.left().1.is_empty()), "{:?}", place.left());
    assert_eq!(System::now().stray(before), Vec::<String>::new());
    assert_eq!(place.left().0.len(), 1, "a killed run leaves its folder");
}

fn doctor_cleans_up_after_a_killed_run() {
    let place = Place::new();
    let before = System::now();
    kill(&place, &before);
    let folder = place.left().0.remove(0);
    let result = place.planimeter(&["doctor", "--clean", "--json"]);
    assert_eq!(result.code, Some(0), "{}", result.errors);
    let swept: Value = serde_json::from_str(&result.output).unwrap();
    let removed = swept["removed"].as_array().unwrap();
    assert_eq!(removed.len(), 1);
    assert!(removed[0].as_str().unwrap().ends_with(&folder), "{swept}");
    place.assert_clean(&before);
    let again = place.planimeter(&["doctor", "--clean"]);
    assert!(again.output.contains("no leftover resources"), "{}", again.output);
}

fn the_next_run_cleans_up_after_a_killed_run() {
    let place = Place::new();
    let before = System::now();
    kill(&place, &before);
    let result = place.planimeter(&[
        "run",
        "bianco2010/fig3",
        "--link",
        "veth",
        "--on",
        "direct",
        "--set",
        "seconds=0.05",
        "--set",
        "repeats=1",
        "--set",
        "load=1",
    ]);
    assert_eq!(result.code, Some(0), "{}", result.errors);
    place.assert_clean(&before);
}

/// Tests a run without Open vSwitch: a mount that only this run sees hides the programs.
fn without_open_vswitch_its_package_is_named() {
    let place = Place::new();
    let before = System::now();
    let switch = requirement::tool("ovs-vswitchd", "openvswitch-switch").unwrap();
    let hidden = format!(
        "mount --bind /dev/null {} && exec {} run latency --link veth --on ovs",
        switch.display(),
        env!("CARGO_BIN_EXE_planimeter")
    );
    let result: CommandResult = Command::new("unshare")
        .args(["--mount", "sh", "-c", &hidden])
        .current_dir(place.path())
        .env("XDG_RUNTIME_DIR", place.path().join("run"))
        .output()
        .unwrap()
        .into();
    assert_eq!(result.code, Some(4), "{}", result.errors);
    let line = result.errors.lines().last().unwrap();
    for word in ["ovs", "ovs-vswitchd is not installed", "apt-get install openvswitch-switch"] {
        assert!(line.contains(word), "{word:?} is missing in: {line}");
    }
    place.assert_clean(&before);
}

fn missing_privileges_are_named() {
    let folder = Folder::new();
    // The program may be in a folder that other users cannot enter; a copy is not.
    let program = folder.0.join("planimeter");
    fs::copy(env!("CARGO_BIN_EXE_planimeter"), &program).unwrap();
    for port in ["1=afpacket:lo", "1=tap:t0"] {
        let result: CommandResult = Command::new("setpriv")
            .args(["--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs"])
            .arg(&program)
            .args(["bridge", "--port", port])
            .current_dir(&folder.0)
            .output()
            .unwrap()
            .into();
        assert_eq!(result.code, Some(4), "{}", result.errors);
        let line = result.errors.trim_end();
        assert_eq!(line.lines().count(), 1, "{line}");
        for word in ["port 1", "not permitted", "root"] {
            assert!(line.contains(word), "{word:?} is missing in: {line}");
        }
    }
}

/// A program in a separate network namespace. Dropping this value stops it.
struct Element {
    child: Child,
    errors: BufReader<std::process::ChildStderr>,
}

impl Element {
    /// Starts it and waits until it is ready.
    fn start(place: &Place, namespace: &Namespace, arguments: &[&str]) -> Element {
        let mut command = place.command(arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = namespace.run(|| command.spawn()).unwrap().unwrap();
        let errors = BufReader::new(child.stderr.take().unwrap());
        let mut element = Element { child, errors };
        element.wait_for("ready");
        element
    }

    /// Reads lines until one contains this; returns the whole line.
    fn wait_for(&mut self, words: &str) -> String {
        let mut output = String::new();
        loop {
            let begin = output.len();
            let read = self.errors.read_line(&mut output).unwrap();
            assert!(read > 0, "it ended without {words:?}: {output}");
            if output[begin..].contains(words) {
                return output[begin..].to_string();
            }
        }
    }

    fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Stops it, and returns its exit code.
    fn end(&mut self) -> Option<i32> {
        interrupt(self.child.id());
        self.child.wait().unwrap().code()
    }
}

impl Drop for Element {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns a thousand frames: one is too long for the link, one is too short, and one is truncated.
fn capture_file() -> Vec<u8> {
    let options = CaptureOptions::pcapng("x");
    let mut writer = CaptureWriter::new(Vec::new(), &options).unwrap();
    for number in 0..1_000u64 {
        let bytes = [60 + number as usize % 1_400, 1_600, 20][match number {
            500 => 1,
            600 => 2,
            _ => 0,
        }];
        let mut frame = vec![number as u8; bytes];
        frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5]);
        let original_bytes = if number == 700 { 1_000 } else { bytes as u32 };
        let at = Nanos(1_700_000_000_000_000_000 + number * 50_000);
        frame.truncate(if number == 700 { 64 } else { bytes });
        writer.cut_frame(at, &frame, original_bytes, FrameNotes::default()).unwrap();
    }
    writer.finish(None).unwrap()
}

/// A namespace with a cable in it, whose ends are cable1 and cable2.
fn with_cable() -> (Namespace, Cable) {
    let namespace = Namespace::create().unwrap();
    let ends = [1, 2].map(|number| EndSettings {
        namespace: namespace.clone(),
        name: format!("cable{number}"),
        mac: [2, 0, 0, 0, 0, number],
        threaded: None,
    });
    let cable = Cable::lay(&ends[0], &ends[1], 1_500).unwrap();
    cable.wait_carrying().unwrap();
    (namespace, cable)
}

/// Two streams with all headers that a kernel expects.
const STREAMS: &str = r#"
[[stream]]
id = 1
from = 1
to = 2
genome = "7b4cg"
rate_pps = 500.0
schedule = { poisson = { seed = 1 } }
mac_source = "02:00:00:00:00:01"
mac_destination = "02:00:00:00:00:02"
ip_source = "10.0.0.1"
ip_destination = "10.0.1.1"
transport = "tcp"
[[stream]]
id = 2
from = 2
to = 1
frame_bytes = 200
rate_pps = 300.0
schedule = { bursts = { frames = 5, gap_ns = 1000 } }
mac_source = "02:00:00:00:00:02"
mac_destination = "02:00:00:00:00:01"
ipv6_source = "2001:db8::2"
ipv6_destination = "2001:db8::1"
[[stream.vary]]
ipv6_source = { first = "2001:db8::2", last = "2001:db8::2000" }
"#;

/// Returns the frames received at an interface of this thread's namespace.
fn frames_in(interface: &str) -> u64 {
    let devices = fs::read_to_string("/proc/thread-self/net/dev").unwrap();
    let line = devices.lines().find_map(|line| line.trim().strip_prefix(interface)).unwrap();
    line.trim_start_matches(':').split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn streams_are_sent_until_interrupted() {
    let place = Place::new();
    let (namespace, _cable) = with_cable();
    fs::write(place.path().join("streams.toml"), STREAMS).unwrap();
    let ports = ["--port", "afpacket:cable1", "--port", "afpacket:cable2"];
    let what = ["--stream", "streams.toml", "--duration", "3600", "--json"];
    let mut command = place.command(&[&["generate"][..], &ports, &what].concat());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = namespace.run(|| command.spawn()).unwrap().unwrap();
    let have_come = || ["cable1", "cable2"].iter().all(|name| frames_in(name) > 50);
    assert!(in_time(|| namespace.run(have_come).unwrap()), "no frames arrive");
    interrupt(child.id());
    let result: CommandResult = child.wait_with_output().unwrap().into();
    assert_eq!(result.code, Some(130), "{}", result.errors);
    let sent: Value = serde_json::from_str(&result.output).unwrap();
    assert_eq!((&sent["interrupted"], &sent["frames_unexplained"]), (&true.into(), &0.into()));
    for stream in sent["streams"].as_array().unwrap() {
        let count = |key: &str| stream[key].as_u64().unwrap();
        let late = count("frames_unsent_late") + count("frames_unsent_refused");
        assert_eq!(count("frames_offered") + late, count("frames_intended"), "{stream}");
        assert_eq!(stream["classes"]["correct"], stream["frames_offered"], "{stream}");
        let gaps = stream["pacing"]["gap_buckets"].as_array().unwrap();
        let gaps: u64 = gaps.iter().map(|bucket| bucket[1].as_u64().unwrap()).sum();
        assert_eq!(gaps, count("frames_offered") - 1);
    }
}

fn a_capture_file_is_sent_over_veth() {
    let place = Place::new();
    let (namespace, _cable) = with_cable();
    fs::write(place.path().join("trace.pcapng"), capture_file()).unwrap();
    let mut command = place.command(&[
        "generate",
        "--port",
        "afpacket:cable1",
        "--port",
        "afpacket:cable2",
        "--pcap",
        "trace.pcapng",
        "--loop",
        "2",
    ]);
    let result: CommandResult = namespace.run(|| command.output()).unwrap().unwrap().into();
    assert_eq!(result.code, Some(0), "{}", result.errors);
    let lines: Vec<&str> = result.output.lines().collect();
    for words in
        ["replay 1: 1998 frames", "2 passes, whole, 2 too long, 2 padded, 2 truncated and filled"]
    {
        assert!(lines[0].contains(words), "{words:?} is missing in: {}", lines[0]);
    }
    // Further frames of the kernel on a new link add to the count.
    let port = lines.iter().find(|line| line.starts_with("port 2")).unwrap();
    let arrived = port.split_once(": ").unwrap().1.split(" sent, ").nth(1).unwrap();
    let frames: u64 = arrived.split(' ').next().unwrap().parse().unwrap();
    assert!((1_998..2_020).contains(&frames), "{port}");
}

fn a_switch_that_cannot_start_reports_the_reason() {
    let place = Place::new();
    let namespace = Namespace::create().unwrap();
    let _busy = namespace.run(|| TcpListener::bind("0.0.0.0:6699")).unwrap().unwrap();
    fs::write(place.path().join("file"), "keep").unwrap();
    for (arguments, words) in [
        (["--port", "1=afpacket:nosuch0"], &["port 1", "nosuch0", "ip link"][..]),
        (["--listen", "ptcp:6699:0.0.0.0"], &["ptcp:6699", "in use"]),
        (["--listen", "punix:file"], &["punix:file", "in use"]),
        (["--listen", "punix:nowhere/socket"], &["nowhere/socket"]),
        (["--control-socket", "file"], &["file", "in use"]),
    ] {
        let mut all = vec!["switch"];
        if arguments[0] != "--port" {
            all.extend(["--port", "1=tap:t0"]);
        }
        all.extend(arguments);
        let mut command = place.command(&all);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = namespace.run(|| command.spawn()).unwrap().unwrap();
        let has_ended = in_time(|| child.try_wait().unwrap().is_some());
        child.kill().unwrap();
        assert!(has_ended, "{all:?}: the program runs");
        let result: CommandResult = child.wait_with_output().unwrap().into();
        let line = result.errors.lines().last().unwrap_or_default();
        assert_eq!(result.code, Some(2), "{all:?}: {line}");
        for word in words {
            assert!(line.contains(word), "{all:?}: {word:?} is missing in: {line}");
        }
        let links: Vec<String> =
            namespace.netlink().unwrap().links().unwrap().into_iter().map(|it| it.name).collect();
        assert!(!links.contains(&"t0".to_string()), "the interface was not removed");
    }
    assert_eq!(fs::read_to_string(place.path().join("file")).unwrap(), "keep");
    assert_eq!(contents(place.path()), ["file", "run"]);
}

/// Returns inputs of a peer, and the message that the switch must print for each.
fn attacks() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let hello = [1, 0, 0, 8, 0, 0, 0, 1];
    let after = |bytes: &[u8]| [&hello[..], bytes].concat();
    vec![
        ("another protocol", b"GET / HTTP/1.1\r\n\r\n".to_vec(), "instead of a hello"),
        ("noise", vec![0xa5; 4096], "instead of a hello"),
        ("a version before switch", vec![0, 0, 0, 8, 0, 0, 0, 1], "version"),
        ("a length of zero", vec![1, 0, 0, 0, 0, 0, 0, 1], "length 0"),
        ("a length below the header's", vec![1, 0, 0, 7, 0, 0, 0, 1], "length 7"),
        ("half a header", vec![1, 0, 0], "closed"),
        ("half a message", after(&[1, 14, 0, 72, 0, 0, 0, 2, 0, 0]), "closed"),
        ("an unknown type", after(&[1, 99, 0, 8, 0, 0, 0, 2]), "bad_request/bad_type"),
        ("another version later", after(&[4, 2, 0, 8, 0, 0, 0, 2]), "bad_request/bad_version"),
        ("a short flow", after(&[1, 14, 0, 12, 0, 0, 0, 2, 0, 0, 0, 0]), "bad_request/bad_length"),
        (
            "a hello of the largest length",
            [&[1, 0, 255, 255, 0, 0, 0, 1][..], &[9; 65527]].concat(),
            "closed",
        ),
    ]
}

fn a_hostile_controller_does_not_affect_others() {
    let place = Place::new();
    let namespace = Namespace::create().unwrap();
    let mut switch = Element::start(
        &place,
        &namespace,
        &["switch", "--port", "1=tap:t0", "--listen", "punix:socket"],
    );
    let socket = place.path().join("socket");
    // A well-behaved peer that stays connected during all attacks.
    let mut honest = Honest::connect(&socket);
    let resident = memory_kib(switch.child.id());
    for (name, bytes, words) in attacks() {
        let mut peer = UnixStream::connect(&socket).unwrap();
        // The switch may close the connection while the peer still sends.
        let _ = peer.write_all(&bytes);
        let _ = peer.shutdown(std::net::Shutdown::Write);
        let output = switch.wait_for(words);
        assert!(switch.is_running(), "{name}: {output}");
        honest.is_answered(name);
    }
    flood(&socket);
    honest.is_answered("a peer that sends and never reads");
    let grown = memory_kib(switch.child.id()).saturating_sub(resident);
    assert!(grown < 16 * 1024, "it has grown by {grown} KiB");
    assert_eq!(switch.end(), Some(0));
    assert!(!socket.exists(), "the socket was not removed");
}

/// Sends 1 GiB of echo requests without reading a reply, until it is stopped.
fn flood(socket: &Path) {
    let mut peer = UnixStream::connect(socket).unwrap();
    peer.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
    peer.write_all(&[1, 0, 0, 8, 0, 0, 0, 1]).unwrap();
    let mut echo = vec![0; 60_000];
    echo[..8].copy_from_slice(&[1, 2, 0xea, 0x60, 0, 0, 0, 2]);
    let sent = (0..(1 << 30) / echo.len()).take_while(|_| peer.write_all(&echo).is_ok()).count();
    assert!(sent < 1_000, "{sent} requests were accepted without a reader of the replies");
}

/// Tests that an endless line is not stored, and that other clients get replies at the same time.
fn a_hostile_control_client_does_not_affect_others() {
    let place = Place::new();
    let namespace = Namespace::create().unwrap();
    let arguments = ["bridge", "--port", "1=tap:t0", "--control-socket", "control"];
    let mut bridge = Element::start(&place, &namespace, &arguments);
    let connect = || {
        let stream = UnixStream::connect(place.path().join("control")).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
        stream
    };
    let resident = memory_kib(bridge.child.id());
    let mut endless = connect();
    let piece = vec![b'a'; 1 << 20];
    let _ = (0..1024).take_while(|_| endless.write_all(&piece).is_ok()).count();
    for wrong in ["{}", "null", "[[[[", "{\"get\": \"money\"}", "\u{0}"] {
        let mut client = BufReader::new(connect());
        client.get_mut().write_all(format!("{wrong}\n").as_bytes()).unwrap();
        let mut reply = String::new();
        client.read_line(&mut reply).unwrap();
        let reply: Value = serde_json::from_str(&reply).unwrap();
        assert!(reply.to_string().contains("error"), "{wrong}: {reply}");
    }
    let grown = memory_kib(bridge.child.id()).saturating_sub(resident);
    assert!(grown < 64 * 1024, "it has grown by {grown} KiB");
    assert!(bridge.is_running());
    assert_eq!(bridge.end(), Some(0));
}

/// A controller that sends hello, and an echo request from time to time.
struct Honest(UnixStream);

impl Honest {
    fn connect(socket: &Path) -> Honest {
        let mut stream = UnixStream::connect(socket).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(&[1, 0, 0, 8, 0, 0, 0, 1]).unwrap();
        let mut hello = [0; 8];
        stream.read_exact(&mut hello).unwrap();
        assert_eq!(hello[1], 0, "a hello");
        let mut versions = vec![0; usize::from(u16::from_be_bytes([hello[2], hello[3]])) - 8];
        stream.read_exact(&mut versions).unwrap();
        let mut honest = Honest(stream);
        honest.is_answered("the start");
        honest
    }

    /// Sends an echo request and reads until its reply; replies to requests of the switch.
    fn is_answered(&mut self, after: &str) {
        self.0.write_all(&[1, 2, 0, 12, 0, 0, 0, 9, 7, 7, 7, 7]).unwrap();
        loop {
            let mut header = [0; 8];
            self.0.read_exact(&mut header).unwrap_or_else(|error| panic!("{after}: {error}"));
            let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
            let mut body = vec![0; length - 8];
            self.0.read_exact(&mut body).unwrap();
            match header[1] {
                3 => return assert_eq!(body, [7, 7, 7, 7], "{after}"),
                2 => {
                    header[1] = 3;
                    self.0.write_all(&header).unwrap();
                    self.0.write_all(&body).unwrap();
                }
                _ => {}
            }
        }
    }
}

fn memory_kib(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

fn a_stale_socket_is_replaced() {
    let place = Place::new();
    let namespace = Namespace::create().unwrap();
    let arguments = ["switch", "--port", "1=tap:t0", "--listen", "punix:socket"];
    let mut first = Element::start(&place, &namespace, &arguments);
    first.child.kill().unwrap();
    first.child.wait().unwrap();
    assert!(place.path().join("socket").exists(), "a killed switch leaves its socket");
    let mut second = Element::start(&place, &namespace, &arguments);
    Honest::connect(&place.path().join("socket"));
    assert_eq!(second.end(), Some(0));
    assert_eq!(contents(place.path()), ["run"]);
}

fn a_switch_ends_cleanly_on_a_signal() {
    let place = Place::new();
    for kind in ["switch", "bridge"] {
        let namespace = Namespace::create().unwrap();
        let arguments = [kind, "--port", "1=tap:t0", "--control-socket", "control"];
        let mut element = Element::start(&place, &namespace, &arguments);
        assert!(place.path().join("control").exists());
        assert_eq!(element.end(), Some(0));
        let mut output = String::new();
        element.child.stdout.take().unwrap().read_to_string(&mut output).unwrap();
        assert_eq!(output, "", "stdout belongs to results");
        assert_eq!(contents(place.path()), ["run"]);
        let links = namespace.netlink().unwrap().links().unwrap();
        assert!(links.iter().all(|link| link.name != "t0"), "the interface was not removed");
    }
}

/// Tests that the loss of a port's interface is reported, and that the other ports continue.
fn a_removed_interface_is_reported() {
    let place = Place::new();
    let namespace = Namespace::create().unwrap();
    let mut arguments = vec!["bridge", "--port", "1=tap:t0", "--port", "2=tap:t1"];
    arguments.extend(["--control-socket", "control"]);
    let mut bridge = Element::start(&place, &namespace, &arguments);
    let mut netlink = namespace.netlink().unwrap();
    let index = netlink.link("t0").unwrap().index;
    netlink.link_delete(index).unwrap();
    let output = bridge.wait_for("port 1");
    assert!(bridge.is_running(), "{output}");
    assert_eq!(bridge.end(), Some(0));
}
