//! Names of targets and links on the command line (PRODUCT.md, "Command line").
//!
//! A name that is specified but not part of this version gets a different error than a wrong name.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};

use ::progfe::role::Role;

use super::build::{BuildError, BuildTarget};
use super::device::{Device, DeviceError};
use super::model::{self, Mode, ModelError, ModelTarget};
use super::network::{self, Hop, NetworkError, NetworkTarget};
use super::progfe::{self, ProGfeError, ProGfeTarget};
use record::target_name::{self, SWITCH, SWITCH_BEFORE};
use workload::Technology;
use workload::nearest;

/// Kind of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TargetKind {
    /// Our OpenFlow switch.
    Switch,
    /// Our OpenFlow switch; it serves frames in order of arrival across all ports.
    SwitchFirstCome,
    /// Our OpenFlow switch, with a separate thread for frames over links where it normally has one
    /// thread.
    SwitchFrameThread,
    /// Our learning bridge.
    Bridge,
    /// Our learning bridge, whose table has few hash buckets as in Linux 2.6.27.
    BridgeFewBuckets,
    /// Our router.
    Router,
    /// Our router with its destination cache.
    RouterCache,
    /// Our VLAN tagger.
    Tagger,
    /// Open vSwitch, userspace datapath.
    Ovs,
    /// Open vSwitch on DPDK, default settings.
    OvsDpdk,
    /// Open vSwitch on DPDK, configured for many flows, which all fit into the exact-match cache.
    OvsDpdkEmcOn,
    /// Open vSwitch on DPDK, configured for many flows, without the exact-match cache.
    OvsDpdkEmcOff,
    /// Open vSwitch on DPDK, configured for many flows, with the signature-match cache only.
    OvsDpdkSmcOn,
    /// DPDK's test forwarder, which shows the highest rate of a shared-memory wire.
    Testpmd,
    /// The kernel's bridge.
    LinuxBridge,
    /// The kernel's router.
    LinuxRouter,
    /// VLAN tagging in the kernel.
    LinuxTagger,
    /// No target: the cable.
    Direct,
    /// Our OpenFlow switch, emulating a hardware model.
    Model(ModelTarget),
    /// Our ProGFE element, with a program that bridges, routes or tags.
    ProGfe(ProGfeTarget),
    /// Several connected OpenFlow switches.
    Network(NetworkTarget),
    /// A user device.
    Device(Device),
    /// A target from another build of this program, or an Open vSwitch below its own prefix.
    Build(BuildTarget),
}

/// Link between tester and target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Link {
    /// In one process, over in-memory rings of frames.
    Memory,
    /// In one process, with frames that are replayed from memory and counted on return.
    Replay,
    /// Over pairs of virtual Ethernet interfaces, through AF_PACKET.
    Veth,
    /// Over such pairs too; the target uses AF_XDP.
    VethXdp,
    /// Over such pairs too; the kernel generates and receives the tester's frames.
    VethLive,
    /// Over memory that the tester's process and the target's process share.
    Memif,
    /// Over interfaces of this host that a user cabled to a device, through AF_PACKET.
    Nic,
    /// Over such interfaces, through AF_XDP.
    NicXdp,
}

impl TargetKind {
    /// Every kind except models and devices, in the order of lists and charts.
    pub const ALL: [TargetKind; 18] = [
        TargetKind::Switch,
        TargetKind::SwitchFirstCome,
        TargetKind::Bridge,
        TargetKind::BridgeFewBuckets,
        TargetKind::Router,
        TargetKind::RouterCache,
        TargetKind::Tagger,
        TargetKind::Ovs,
        TargetKind::OvsDpdk,
        TargetKind::OvsDpdkEmcOn,
        TargetKind::OvsDpdkEmcOff,
        TargetKind::OvsDpdkSmcOn,
        TargetKind::Testpmd,
        TargetKind::LinuxBridge,
        TargetKind::LinuxRouter,
        TargetKind::LinuxTagger,
        TargetKind::Direct,
        TargetKind::SwitchFrameThread,
    ];

    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            TargetKind::Switch => SWITCH,
            TargetKind::SwitchFirstCome => "switch:service=first-come",
            TargetKind::SwitchFrameThread => "switch:frames=thread",
            TargetKind::Bridge => "bridge",
            TargetKind::BridgeFewBuckets => "bridge:buckets=256",
            TargetKind::Router => "router",
            TargetKind::RouterCache => "router:cache=on",
            TargetKind::Tagger => "tagger",
            TargetKind::Ovs => "ovs",
            TargetKind::OvsDpdk => "ovs-dpdk",
            TargetKind::OvsDpdkEmcOn => "ovs-dpdk:emc=on",
            TargetKind::OvsDpdkEmcOff => "ovs-dpdk:emc=off",
            TargetKind::OvsDpdkSmcOn => "ovs-dpdk:smc=on",
            TargetKind::Testpmd => "testpmd",
            TargetKind::LinuxBridge => "linux-bridge",
            TargetKind::LinuxRouter => "linux-router",
            TargetKind::LinuxTagger => "linux-tagger",
            TargetKind::Direct => "direct",
            TargetKind::Model(model) => model.name(),
            TargetKind::ProGfe(target) => target.name(),
            TargetKind::Network(network) => network.name(),
            TargetKind::Device(device) => device.name(),
            TargetKind::Build(build) => build.name(),
        }
    }

    /// Returns a one-line description.
    pub fn about(self) -> &'static str {
        match self {
            TargetKind::Switch => "built-in OpenFlow switch",
            TargetKind::SwitchFirstCome => {
                "built-in OpenFlow switch that serves frames in order of arrival"
            }
            TargetKind::SwitchFrameThread => "built-in OpenFlow switch with a forwarding thread",
            TargetKind::Bridge => "built-in learning bridge",
            TargetKind::BridgeFewBuckets => {
                "built-in learning bridge with 256 hash buckets, as in Linux 2.6.27"
            }
            TargetKind::Router => "built-in router",
            TargetKind::RouterCache => "built-in router with a destination cache",
            TargetKind::Tagger => "built-in VLAN tagger",
            TargetKind::Ovs => "Open vSwitch, userspace datapath",
            TargetKind::OvsDpdk => "Open vSwitch on DPDK, default settings",
            TargetKind::OvsDpdkEmcOn => {
                "Open vSwitch on DPDK for many flows, with all flows in the exact-match cache"
            }
            TargetKind::OvsDpdkEmcOff => {
                "Open vSwitch on DPDK for many flows, without exact-match cache"
            }
            TargetKind::OvsDpdkSmcOn => {
                "Open vSwitch on DPDK for many flows, with the signature-match cache only"
            }
            TargetKind::Testpmd => "DPDK's test forwarder, as a reference for shared memory",
            TargetKind::LinuxBridge => "Linux bridge",
            TargetKind::LinuxRouter => "Linux router",
            TargetKind::LinuxTagger => {
                "VLAN tagging in the Linux kernel, by programs on its interfaces"
            }
            TargetKind::Direct => "no target: a cable, as a reference for the tester",
            TargetKind::Model(model) => model.about(),
            TargetKind::ProGfe(target) => target.about(),
            TargetKind::Network(network) => network.about(),
            TargetKind::Device(device) => device.about(),
            TargetKind::Build(build) => build.about(),
        }
    }

    /// Returns its forwarding technology.
    pub fn technology(self) -> Technology {
        match self {
            TargetKind::Switch
            | TargetKind::SwitchFirstCome
            | TargetKind::SwitchFrameThread
            | TargetKind::Ovs
            | TargetKind::OvsDpdk
            | TargetKind::OvsDpdkEmcOn
            | TargetKind::OvsDpdkEmcOff
            | TargetKind::OvsDpdkSmcOn
            | TargetKind::Network(_) => Technology::OpenFlow,
            TargetKind::Model(model) => match model.mode() {
                Mode::OpenFlow => Technology::OpenFlow,
                Mode::Legacy => Technology::Bridging,
            },
            TargetKind::Device(device) if device.is_openflow() => Technology::OpenFlow,
            TargetKind::Device(device) if device.is_router() => Technology::Routing,
            TargetKind::Device(_) => Technology::Bridging,
            TargetKind::Build(build) => build.kind().technology(),
            TargetKind::Bridge | TargetKind::BridgeFewBuckets | TargetKind::LinuxBridge => {
                Technology::Bridging
            }
            TargetKind::Tagger | TargetKind::LinuxTagger => Technology::Tagging,
            TargetKind::ProGfe(target) => match target.role() {
                Role::Bridge => Technology::Bridging,
                Role::Router => Technology::Routing,
                Role::Tagger => Technology::Tagging,
            },
            TargetKind::Router | TargetKind::RouterCache | TargetKind::LinuxRouter => {
                Technology::Routing
            }
            TargetKind::Direct | TargetKind::Testpmd => Technology::Wire,
        }
    }

    /// Returns whether it is a DPDK program, whose threads busy-poll a core each.
    pub fn is_dpdk(self) -> bool {
        matches!(
            self,
            TargetKind::OvsDpdk
                | TargetKind::OvsDpdkEmcOn
                | TargetKind::OvsDpdkEmcOff
                | TargetKind::OvsDpdkSmcOn
                | TargetKind::Testpmd
        )
    }

    /// Returns whether it is this project's program.
    pub fn is_planimeter(self) -> bool {
        if let TargetKind::Network(network) = self {
            return network.network().switches.iter().all(|switch| switch.kind.is_planimeter());
        }
        matches!(
            self,
            TargetKind::Switch
                | TargetKind::SwitchFirstCome
                | TargetKind::SwitchFrameThread
                | TargetKind::Bridge
                | TargetKind::BridgeFewBuckets
                | TargetKind::Router
                | TargetKind::RouterCache
                | TargetKind::Tagger
                | TargetKind::Model(_)
                | TargetKind::ProGfe(_)
        ) || matches!(self, TargetKind::Build(build) if build.kind().is_planimeter())
    }

    /// Returns whether it learns addresses from frames, or is a cable, which needs no learning.
    ///
    /// Our switch does not count: it forgets after five minutes what it learns for NORMAL, and a
    /// bridge exists for that test.
    pub fn learns(self) -> bool {
        let is_our_switch = self.is_planimeter() && self.technology() == Technology::OpenFlow;
        let is_network = matches!(self, TargetKind::Network(_));
        let forwards_else = matches!(self.technology(), Technology::Routing | Technology::Tagging);
        !is_network && !forwards_else && !is_our_switch
    }

    /// Returns the switches on the path from the tester's first port to its second.
    pub fn path(self) -> Vec<Hop> {
        match self {
            TargetKind::Network(network) => network.network().path.clone(),
            _ => vec![Hop::ALONE],
        }
    }

    /// Returns whether the lab can restart it while its links stay in place.
    pub fn resets_on(self, link: Link) -> bool {
        match link {
            _ if matches!(self, TargetKind::Network(_)) => false,
            Link::Veth | Link::VethXdp | Link::VethLive => self != TargetKind::Direct,
            Link::Memif => self.is_planimeter(),
            Link::Memory | Link::Replay | Link::Nic | Link::NicXdp => false,
        }
    }

    /// Returns the number of its ports, if it is known in advance.
    pub fn ports(self) -> Option<usize> {
        match self {
            TargetKind::Device(device) => Some(device.said().ports.len()),
            TargetKind::ProGfe(target) => Some(target.ports()),
            _ => None,
        }
    }

    /// Returns whether it supports this link.
    pub fn runs_on(self, link: Link) -> bool {
        if let TargetKind::Network(network) = self {
            return network.hindered_by(link).is_none();
        }
        if let TargetKind::Build(build) = self {
            // Another program runs in another process.
            let in_process = matches!(link, Link::Memory | Link::Replay);
            return !in_process && build.kind().runs_on(link);
        }
        match link {
            // Only devices are cabled by the user.
            Link::Nic | Link::NicXdp => matches!(self, TargetKind::Device(_)),
            _ if matches!(self, TargetKind::Device(_)) => false,
            // The kernel's mirror of the table does not search its lists.
            Link::VethXdp if self == TargetKind::BridgeFewBuckets => false,
            // The order of arrival needs timestamps, which shared memory does not have.
            Link::VethXdp | Link::Memif if self == TargetKind::SwitchFirstCome => false,
            // Over shared memory and AF_XDP our switch has that thread anyway, and in this process
            // it has none.
            _ if self == TargetKind::SwitchFrameThread => {
                matches!(link, Link::Veth | Link::VethLive)
            }
            // A model has no separate thread for frames and no zero-copy path.
            Link::VethXdp | Link::Replay if matches!(self, TargetKind::Model(_)) => false,
            Link::Veth | Link::VethLive => !self.is_dpdk(),
            Link::Memory | Link::Replay => self.is_planimeter() || self == TargetKind::Direct,
            Link::VethXdp => match self {
                TargetKind::Testpmd => false,
                other => other.is_dpdk() || other.runs_on(Link::Memory),
            },
            Link::Memif => self.is_dpdk() || self.runs_on(Link::Memory),
        }
    }
}

/// Limit of names in an error message; a longer line would not be readable.
const NAMES_MAX: usize = 20;

/// Error of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NameError {
    /// Unknown name, with the existing names.
    Unknown {
        /// Kind of name: a target, a link.
        what: &'static str,
        /// The text.
        text: String,
        /// The valid names.
        known: Vec<&'static str>,
    },
    /// A model's error.
    Model(ModelError),
    /// A program's error.
    ProGfe(ProGfeError),
    /// A topology's error.
    Network(NetworkError),
    /// A device name's error.
    Device(DeviceError),
    /// A build's error.
    Build(BuildError),
    /// A Python script's error.
    Script(String),
    /// Specified, but not part of this version.
    NotYet {
        /// The text.
        text: String,
    },
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NameError::Unknown { what, text, known } => {
                write!(f, "unknown {what} {text:?}")?;
                if let Some(several) = several_targets(what, text) {
                    return write!(f, " (hint: use {several})");
                }
                match nearest::asked(text, known.iter().copied()) {
                    Some(asked) => write!(f, " (hint: {asked})"),
                    None if known.len() > NAMES_MAX => {
                        write!(f, " (hint: run 'planimeter list {what}s')")
                    }
                    None => write!(f, " (hint: use one of {})", known.join(", ")),
                }
            }
            NameError::Model(error) => write!(f, "{error}"),
            NameError::ProGfe(error) => write!(f, "{error}"),
            NameError::Network(error) => write!(f, "{}: {}", error.file, error.fault),
            NameError::Device(error) => write!(f, "{error}"),
            NameError::Build(error) => write!(f, "{error}"),
            NameError::Script(text) => f.write_str(text),
            NameError::NotYet { text } => {
                write!(f, "{text:?} is not in this version (hint: run 'planimeter list')")
            }
        }
    }
}

impl std::error::Error for NameError {}

/// Returns the hint for several targets in one argument, as other programs allow them.
fn several_targets(what: &str, text: &str) -> Option<String> {
    let is_target = |name: &str| name.parse::<TargetKind>().is_ok();
    let names: Vec<&str> = text.split(',').collect();
    let is_meant = match what {
        "target" => names.len() > 1,
        _ => what == "experiment",
    };
    let each = || names.iter().map(|name| format!("--on {name}")).collect::<Vec<_>>();
    (is_meant && names.iter().all(|name| is_target(name))).then(|| each().join(" "))
}

/// Where the hint about an earlier spelling goes; taken by the first such name.
static HINT: Mutex<Option<fn(&str)>> = Mutex::new(None);

/// Calls `print` with a hint at the first name in an earlier spelling.
pub fn on_earlier_spelling(print: fn(&str)) {
    *HINT.lock().unwrap_or_else(PoisonError::into_inner) = Some(print);
}

/// Returns the current spelling of a target's name. Accepts that of an earlier version with a hint.
pub fn current(text: &str) -> Cow<'_, str> {
    let current = target_name::current(text);
    if let Cow::Owned(_) = current
        && let Some(print) = HINT.lock().unwrap_or_else(PoisonError::into_inner).take()
    {
        print(&format!("hint: {SWITCH_BEFORE:?} is now {SWITCH:?}"));
    }
    current
}

impl FromStr for TargetKind {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let text = &*current(text);
        if let Some(kind) = TargetKind::ALL.into_iter().find(|kind| kind.name() == text) {
            return Ok(kind);
        }
        if text.starts_with(model::PREFIX) {
            return ModelTarget::parse(text).map(TargetKind::Model).map_err(NameError::Model);
        }
        if text.starts_with(progfe::PREFIX) {
            return ProGfeTarget::parse(text).map(TargetKind::ProGfe).map_err(NameError::ProGfe);
        }
        if text.starts_with(network::PREFIX) {
            let network = NetworkTarget::parse(text).map(TargetKind::Network);
            return network.map_err(NameError::Network);
        }
        if let Some(device) = Device::parse(text) {
            return device.map(TargetKind::Device).map_err(NameError::Device);
        }
        if let Some(build) = BuildTarget::parse(text) {
            return build.map(TargetKind::Build).map_err(NameError::Build);
        }
        let head = text.split(':').next().unwrap_or_default();
        if head == "ovs-kernel" || text.starts_with("switch:") {
            return Err(NameError::NotYet { text: text.into() });
        }
        let known = TargetKind::ALL.map(TargetKind::name).to_vec();
        Err(NameError::Unknown { what: "target", text: text.into(), known })
    }
}

impl Link {
    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Link::Memory => "memory",
            Link::Replay => "replay",
            Link::Veth => "veth:afpacket",
            Link::VethXdp => "veth:xdp",
            Link::VethLive => "veth:live",
            Link::Memif => "memif",
            Link::Nic => "nic",
            Link::NicXdp => "nic:xdp",
        }
    }
}

impl FromStr for Link {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        match text {
            "memory" => Ok(Link::Memory),
            "replay" => Ok(Link::Replay),
            "veth" | "veth:afpacket" => Ok(Link::Veth),
            "veth:xdp" => Ok(Link::VethXdp),
            "veth:live" => Ok(Link::VethLive),
            "memif" => Ok(Link::Memif),
            "nic" | "nic:afpacket" => Ok(Link::Nic),
            "nic:xdp" => Ok(Link::NicXdp),
            "vhost" => Err(NameError::NotYet { text: text.into() }),
            _ => Err(NameError::Unknown {
                what: "link",
                text: text.into(),
                known: vec![
                    "memory",
                    "replay",
                    "memif",
                    "veth",
                    "veth:afpacket",
                    "veth:xdp",
                    "veth:live",
                    "nic",
                    "nic:xdp",
                ],
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_is_found_by_its_own_name() {
        for kind in TargetKind::ALL {
            assert_eq!(kind.name().parse(), Ok(kind));
        }
    }

    #[test]
    fn an_earlier_spelling_is_the_same_target() {
        for (before, now) in [
            ("ours", "switch"),
            ("ours:service=first-come", "switch:service=first-come"),
            ("ours:model=honest,mode=legacy", "switch:model=honest,mode=legacy"),
        ] {
            let kind: TargetKind = before.parse().unwrap();
            assert_eq!((kind.name(), now.parse()), (now, Ok(kind)));
        }
        let error = "ours@/no/where".parse::<TargetKind>().unwrap_err().to_string();
        assert!(error.contains("/no/where"), "{error}");
    }

    #[test]
    fn an_invalid_name_is_distinguished_from_one_of_a_later_version() {
        assert!(matches!("ovs-kernel".parse::<TargetKind>(), Err(NameError::NotYet { .. })));
        assert!(matches!("ofs".parse::<TargetKind>(), Err(NameError::Unknown { .. })));
        assert!(matches!("vhost".parse::<Link>(), Err(NameError::NotYet { .. })));
        assert_eq!(Link::VethLive.name().parse(), Ok(Link::VethLive));
    }
}
