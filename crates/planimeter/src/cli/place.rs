//! Where this process stands: its own program, folders for runs, and what it may do.
//!
//! Only this file and `environment` read the environment.

use std::path::PathBuf;
use std::sync::OnceLock;

use lab::need;
use lab::peer::dpdk::Device;
use lab::peer::ovs_dpdk::{OvsDpdk, Ports};
use lab::peer::testpmd::Testpmd;

use super::failure::Failure;
use crate::environment::run_root;
use crate::target::name::{Link, TargetKind};
use crate::target::{Surroundings, TargetError};

/// The program that starts our own targets, where it is not the one that this process runs.
static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Our own targets are started by this program, which takes the same command line: for a process that runs something
/// else, such as Python. Said once, before anything is measured; later words change nothing.
pub fn set_program(program: PathBuf) {
    let _ = PROGRAM.set(program);
}

/// What a bench needs to know of this process.
pub fn surroundings() -> Result<Surroundings, Failure> {
    let own = || {
        std::env::current_exe().map_err(|error| {
            Failure::need(format!("the path of this program cannot be found: {error}"))
        })
    };
    let program = PROGRAM.get().cloned().map_or_else(own, Ok)?;
    Ok(Surroundings { program, root: run_root() })
}

/// A variable of the environment, if it is there and is text.
#[allow(clippy::disallowed_methods, reason = "this file reads the environment")]
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The best link that is allowed here.
///
/// Where this process has no rights of its own and the kernel allows user namespaces, it moves into
/// one. Ask for [`surroundings`] before: afterwards the process takes itself for root.
pub fn best_link() -> Link {
    let allowed = lab::namespace::enter_rootless().is_ok();
    let veth = allowed && need::try_feature(need::Feature::PacketSocket).is_ok();
    if veth { Link::Veth } else { Link::Memory }
}

/// The links that are allowed here and may be of use for these targets.
pub fn allowed_links(kinds: &[TargetKind]) -> Vec<Link> {
    let is_device = |kind: &TargetKind| matches!(kind, TargetKind::Device(_));
    if !kinds.is_empty() && kinds.iter().all(is_device) {
        // Rights over namespaces of our own are none over this host's interfaces.
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
    if need::try_feature(need::Feature::XdpSocket).is_ok() {
        links.push(Link::VethXdp);
    }
    links
}

/// The targets that can be measured here over this link, and what is missing for the others.
pub fn all_targets(link: Link) -> (Vec<TargetKind>, Vec<String>) {
    let mut kinds = Vec::new();
    let mut missing = Vec::new();
    let asked = [
        TargetKind::Ours,
        TargetKind::Bridge,
        TargetKind::Router,
        TargetKind::Ovs,
        TargetKind::OvsDpdk,
        TargetKind::OvsDpdkEmcOff,
        TargetKind::Testpmd,
        TargetKind::LinuxBridge,
        TargetKind::LinuxRouter,
    ];
    // What polls has a link of its own; beside it the others do not belong, nor it beside them.
    let may_poll = matches!(link, Link::Memif | Link::VethXdp);
    for kind in asked.into_iter().filter(|kind| kind.is_dpdk() <= may_poll) {
        let lacks = match kind {
            _ if link == Link::VethXdp && !kind.runs_on(link) => continue,
            TargetKind::OvsDpdk | TargetKind::OvsDpdkEmcOff => {
                let ports = if link == Link::Memif { Ports::Memif } else { Ports::Xdp };
                OvsDpdk::needs(ports).err().map(|need| need.to_string())
            }
            TargetKind::Testpmd => {
                let ends = [Device::MemifServer("p1".into())];
                Testpmd::needs(&ends).err().map(|need| need.to_string())
            }
            _ if !kind.runs_on(link) => Some("needs the link veth: root or user namespaces".into()),
            TargetKind::Ovs => need::tool("ovs-vswitchd", "openvswitch-switch")
                .and_then(|_| need::tool("ovs-vsctl", "openvswitch-common"))
                .err()
                .map(|need| need.to_string()),
            TargetKind::LinuxBridge => {
                need::try_feature(need::Feature::Bridge).err().map(|error| error.to_string())
            }
            _ => None,
        };
        match lacks {
            None => kinds.push(kind),
            Some(why) => missing.push(format!("{} is left out: {why}", kind.name())),
        }
    }
    (kinds, missing)
}

/// A target's error with the exit code that says its kind.
pub fn failure(error: TargetError) -> Failure {
    match error {
        TargetError::Need(line) => Failure::need(line),
        TargetError::CannotHold(line) => Failure::usage(line),
        other => Failure::need(other.to_string()),
    }
}
