//! Requirements of a lab on the machine, missing ones, and hints to fix them.
//!
//! Source: `capabilities(7)`, `user_namespaces(7)`.

#![allow(unsafe_code)]

use crate::{LabError, proc};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// A requirement of the lab that this machine does not meet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Requirement {
    /// Neither root nor the capabilities to create networks.
    Privilege,
    /// Unprivileged user namespaces are not available.
    UserNamespaces {
        /// The kernel's reason.
        why: String,
    },
    /// A program is not installed.
    Tool {
        /// The program.
        name: &'static str,
        /// Its Debian package.
        package: &'static str,
    },
    /// A file of an installed program is missing.
    File {
        /// The file.
        name: &'static str,
        /// Its Debian package.
        package: &'static str,
    },
    /// A kernel feature is missing.
    Kernel {
        /// The feature.
        feature: Feature,
        /// The kernel's reason.
        why: String,
    },
    /// Huge pages are missing.
    HugePages {
        /// The required amount.
        mebibytes: u64,
        /// Why it is not available.
        why: String,
    },
    /// There is no core for the target that the tester does not use.
    Cores,
}

/// A kernel feature that the lab uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feature {
    /// Cables between namespaces.
    Veth,
    /// The Linux bridge.
    Bridge,
    /// Raw frames from and to user space.
    PacketSocket,
    /// Interfaces whose other end is a program (Open vSwitch creates one per bridge).
    Tun,
    /// Receive work on kernel threads that can be pinned to a core.
    ThreadedNapi,
    /// Frames that bypass the network stack, and the privilege to attach a program to an interface.
    XdpSocket,
    /// Open vSwitch's kernel datapath; the lab uses the userspace datapath and does not require it.
    OpenvswitchModule,
    /// `sctp(7)`.
    Sctp,
    /// A PID namespace for a run, so that all its processes end with it.
    PidNamespace,
}

/// Result of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The requirement.
    pub name: &'static str,
    /// Its purpose.
    pub purpose: &'static str,
    /// Whether a lab works without it.
    pub optional: bool,
    /// A description of the feature, or the missing requirement.
    pub result: Result<String, Requirement>,
}

impl Requirement {
    pub(crate) fn user_namespaces(error: &LabError) -> Requirement {
        Requirement::UserNamespaces { why: error.to_string() }
    }

    /// Returns a hint to fix this.
    pub fn mend(&self) -> String {
        match self {
            Requirement::Privilege => "run as root, or allow user namespaces".to_owned(),
            Requirement::UserNamespaces { .. } => {
                "run as root, or run 'sysctl kernel.unprivileged_userns_clone=1 \
                 user.max_user_namespaces=10000' (Ubuntu: also \
                 kernel.apparmor_restrict_unprivileged_userns=0)"
                    .to_owned()
            }
            Requirement::Tool { package, .. } | Requirement::File { package, .. } => {
                format!("run 'apt-get install {package}'")
            }
            Requirement::Kernel { feature, .. } => feature.mend().to_owned(),
            Requirement::HugePages { mebibytes, .. } => format!(
                "run as root with {mebibytes} MiB of free memory, or reserve them with 'sysctl \
                 vm.nr_hugepages={}'",
                proc::huge_pages(*mebibytes)
            ),
            Requirement::Cores => "give the machine or container a second core".to_owned(),
        }
    }
}

impl Feature {
    /// Returns the feature's name.
    pub fn name(self) -> &'static str {
        match self {
            Feature::Veth => "veth interfaces",
            Feature::Bridge => "Linux bridge",
            Feature::PacketSocket => "packet sockets",
            Feature::Tun => "tun and tap interfaces",
            Feature::ThreadedNapi => "threaded NAPI held on a core",
            Feature::XdpSocket => "AF_XDP sockets",
            Feature::OpenvswitchModule => "openvswitch module",
            Feature::Sctp => "SCTP",
            Feature::PidNamespace => "PID namespaces",
        }
    }

    fn mend(self) -> &'static str {
        match self {
            Feature::Veth => "run 'modprobe veth' (CONFIG_VETH)",
            Feature::Bridge => "run 'modprobe bridge' (CONFIG_BRIDGE)",
            Feature::PacketSocket => {
                "run 'modprobe af_packet' (CONFIG_PACKET), and allow CAP_NET_RAW"
            }
            Feature::Tun => {
                "run 'modprobe tun', pass /dev/net/tun to the container, and run 'chmod 666 \
                 /dev/net/tun'"
            }
            Feature::ThreadedNapi => {
                "use Linux 5.12 or later, as root, in the machine's own PID namespace"
            }
            Feature::XdpSocket => "use Linux 5.11 or later with CONFIG_XDP_SOCKETS, as root",
            Feature::OpenvswitchModule => "run 'modprobe openvswitch'",
            Feature::Sctp => "run 'modprobe sctp' (CONFIG_IP_SCTP)",
            Feature::PidNamespace => {
                "run 'sysctl user.max_pid_namespaces=10000' (CONFIG_PID_NS), or clean up killed \
                 runs with 'planimeter doctor --clean'"
            }
        }
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Requirement::Privilege => write!(f, "not permitted to create networks")?,
            Requirement::UserNamespaces { why } => write!(f, "no rootless networks: {why}")?,
            Requirement::Tool { name, .. } => write!(f, "{name} is not installed")?,
            Requirement::File { name, .. } => write!(f, "{name} is not installed")?,
            Requirement::Kernel { feature, why } => write!(f, "no {}: {why}", feature.name())?,
            Requirement::HugePages { mebibytes, why } => {
                write!(f, "no {mebibytes} MiB of huge pages: {why}")?;
            }
            Requirement::Cores => write!(f, "only one core: tester and target share it")?,
        }
        write!(f, " (hint: {})", self.mend())
    }
}

impl std::error::Error for Requirement {}

/// Returns whether this process may create and enter networks: capabilities NET_ADMIN, NET_RAW and
/// SYS_ADMIN.
pub fn privileged() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    has_capabilities(&status, &[12, 13, 21])
}

fn has_capabilities(status: &str, wanted: &[u32]) -> bool {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let held = line.and_then(|text| u64::from_str_radix(text.trim(), 16).ok()).unwrap_or(0);
    wanted.iter().all(|bit| held & (1 << bit) != 0)
}

/// Checks whether an unprivileged process could create a user namespace, by trying it in a child
/// process.
pub fn user_namespaces() -> Result<(), Requirement> {
    // SAFETY: the child calls only unshare and _exit, which are safe after a fork of a program with
    // threads.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // Some systems allow a user namespace, but nothing in it: so a network namespace is tried
        // as well.
        // SAFETY: as above; no call touches memory.
        unsafe {
            let user = libc::unshare(libc::CLONE_NEWUSER);
            let network = libc::unshare(libc::CLONE_NEWNET);
            libc::_exit(i32::from(user != 0 || network != 0))
        }
    }
    let mut status = 0;
    // SAFETY: `status` is an integer that the call writes to.
    let waited = unsafe { libc::waitpid(child, &mut status, 0) };
    if child > 0 && waited == child && libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0 {
        return Ok(());
    }
    Err(Requirement::UserNamespaces { why: "the kernel does not allow user namespaces".to_owned() })
}

/// Returns the path of a program in the usual directories.
pub fn tool(name: &'static str, package: &'static str) -> Result<PathBuf, Requirement> {
    const PLACES: [&str; 6] =
        ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];
    let found = PLACES.iter().map(|place| Path::new(place).join(name)).find(|path| path.is_file());
    found.ok_or(Requirement::Tool { name, package })
}

/// Returns the path of a program below an installation prefix, in `sbin` or `bin`; without a
/// prefix, in the usual directories.
pub fn tool_below(
    prefix: Option<&Path>,
    name: &'static str,
    package: &'static str,
) -> Result<PathBuf, Requirement> {
    let Some(prefix) = prefix else { return tool(name, package) };
    let found = ["sbin", "bin"].map(|folder| prefix.join(folder).join(name));
    found.into_iter().find(|path| path.is_file()).ok_or(Requirement::Tool { name, package })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_parsed_from_status() {
        let root = "Name:\tx\nCapEff:\t000001ffffffffff\n";
        assert!(has_capabilities(root, &[12, 13, 21]));
        assert!(!has_capabilities("CapEff:\t0000000000001000\n", &[12, 13]));
        assert!(!has_capabilities("CapEff:\tzz\n", &[12]));
        assert!(!has_capabilities("", &[12]));
    }

    #[test]
    fn a_need_states_the_missing_requirement_and_the_remedy() {
        let need = tool("no-such-switchd", "openvswitch-switch").unwrap_err();
        let text = need.to_string();
        assert!(text.contains("no-such-switchd") && text.contains("apt-get install openvswitch"));
        assert!(tool("sh", "dash").is_ok());
    }
}
