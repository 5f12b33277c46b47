//! Environment of this process: its program, folders for runs, and privileges.
//!
//! Only this file and `environment` read environment variables.

use std::path::PathBuf;
use std::sync::OnceLock;

use testbed::peer::dpdk::Device;
use testbed::peer::ovs_dpdk::{OvsDpdk, Ports};
use testbed::peer::testpmd::Testpmd;
use testbed::probe;
use testbed::requirement;

use super::failure::Failure;
use runner::environment::run_root;
use targets::name::{Link, TargetKind};
use targets::{HostPaths, TargetError};

/// The program that starts our targets, if it is not the one of this process.
static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Sets the program that starts our targets; it must accept the same command line.
///
/// For a process that runs another program, such as Python. Call it once before any measurement;
/// later calls have no effect.
pub fn set_program(program: PathBuf) {
    let _ = PROGRAM.set(program);
}

/// Returns the paths that a bench needs.
pub fn surroundings() -> Result<HostPaths, Failure> {
    let own = || {
        std::env::current_exe().map_err(|error| {
            Failure::need(format!("cannot find the path of this program: {error}"))
        })
    };
    let program = PROGRAM.get().cloned().map_or_else(own, Ok)?;
    Ok(HostPaths { program, root: run_root() })
}

/// Returns an environment variable if it exists and is text.
#[allow(clippy::disallowed_methods, reason = "this file reads the environment")]
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Returns the best available link.
///
/// Without privileges, the process enters a user namespace if the kernel permits that. Call
/// [`surroundings`] before: afterwards the process appears to be root.
pub fn best_link() -> Link {
    let allowed = testbed::namespace::enter_rootless().is_ok();
    let veth = allowed && probe::try_feature(requirement::Feature::PacketSocket).is_ok();
    if veth { Link::Veth } else { Link::Memory }
}

/// Returns the available links that may be of use for these targets.
pub fn allowed_links(kinds: &[TargetKind]) -> Vec<Link> {
    let is_device = |kind: &TargetKind| matches!(kind, TargetKind::Device(_));
    if !kinds.is_empty() && kinds.iter().all(is_device) {
        // Privileges in our own namespaces do not extend to this host's interfaces.
        return vec![Link::Nic];
    }
    let best = best_link();
    if best == Link::Memory || kinds.iter().all(|kind| kind.runs_on(best)) {
        return vec![best];
    }
    let mut links = vec![Link::Veth, Link::Memif, Link::Memory];
    if kinds.iter().any(is_device) {
        links.push(Link::Nic);
    }
    if probe::try_feature(requirement::Feature::XdpSocket).is_ok() {
        links.push(Link::VethXdp);
    }
    links
}

/// Returns the targets that can be measured here over this link, and missing requirements of
/// others.
pub fn all_targets(link: Link) -> (Vec<TargetKind>, Vec<String>) {
    let mut kinds = Vec::new();
    let mut missing = Vec::new();
    let asked = [
        TargetKind::Switch,
        TargetKind::Bridge,
        TargetKind::Router,
        TargetKind::Ovs,
        TargetKind::OvsDpdk,
        TargetKind::OvsDpdkEmcOff,
        TargetKind::Testpmd,
        TargetKind::LinuxBridge,
        TargetKind::LinuxRouter,
    ];
    // DPDK targets need a link that supports polling threads.
    let may_poll = matches!(link, Link::Memif | Link::VethXdp);
    for kind in asked.into_iter().filter(|kind| kind.is_dpdk() <= may_poll) {
        if link == Link::VethXdp && !kind.runs_on(link) {
            continue;
        }
        match self::missing(kind, link) {
            None => kinds.push(kind),
            Some(why) => missing.push(format!("skipped target {}: {why}", kind.name())),
        }
    }
    (kinds, missing)
}

/// Returns what a target lacks on this machine over a link, with a hint; `None` if it can run.
pub fn missing(kind: TargetKind, link: Link) -> Option<String> {
    match kind {
        TargetKind::OvsDpdk | TargetKind::OvsDpdkEmcOff => {
            let ports = if link == Link::Memif { Ports::Memif } else { Ports::Xdp };
            OvsDpdk::needs(ports).err().map(|need| need.to_string())
        }
        TargetKind::Testpmd => {
            let ends = [Device::MemifServer("p1".into())];
            Testpmd::needs(&ends).err().map(|need| need.to_string())
        }
        _ if !kind.runs_on(link) => {
            Some("requires link veth (hint: run as root, or allow user namespaces)".into())
        }
        TargetKind::Ovs => requirement::tool("ovs-vswitchd", "openvswitch-switch")
            .and_then(|_| requirement::tool("ovs-vsctl", "openvswitch-common"))
            .err()
            .map(|need| need.to_string()),
        TargetKind::LinuxBridge => {
            probe::try_feature(requirement::Feature::Bridge).err().map(|error| error.to_string())
        }
        _ => None,
    }
}

/// Converts a target's error to a failure with its exit code.
pub fn failure(error: TargetError) -> Failure {
    match error {
        TargetError::Need(line) => Failure::need(line),
        TargetError::CannotHold(line) => Failure::usage(line),
        other => Failure::need(other.to_string()),
    }
}
