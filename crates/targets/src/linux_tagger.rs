//! VLAN tagging in the Linux kernel: tc-BPF programs at the ingress of two interfaces, generated
//! from the setup's rules.
//!
//! A VLAN device adds the same tag to every frame, and small kernels lack such devices; tagging by
//! conditions needs a classifier. The same two programs therefore work on every kernel: `ports`
//! writes and loads them, the lab attaches them. Invariant: programs are attached to interfaces of
//! the target's namespace and are removed with it; a stopped target leaves no program behind.

use std::collections::BTreeMap;
use std::time::Duration;

use netio::tagging::{TagRule, Tagging};
use testbed::peer::{ControlInterface, Description, Peer, Plan, kernel_release};
use testbed::{LabError, Site};

const KIND: &str = "linux-tagger";

/// Two programs between port 1 (untagged frames) and port 2.
#[derive(Default)]
pub struct LinuxTagger {
    /// The interfaces to which they are attached.
    attached: Option<(testbed::Namespace, [u32; 2])>,
    rules: usize,
}

impl LinuxTagger {
    fn put(&mut self, site: &Site, rules: &[testbed::peer::TagRule]) -> Result<(), LabError> {
        self.clear()?;
        let [access, trunk] = [site.port(1)?.index, site.port(2)?.index];
        let rule = |rule: &testbed::peer::TagRule| TagRule {
            dscp: rule.dscp.map(|(first, last)| first..=last),
            udp_destination: rule.udp_destination,
            vlan: rule.vlan,
            priority: rule.priority,
        };
        let put_on: Vec<TagRule> = rules.iter().map(rule).collect();
        let mut vlans: Vec<u16> = rules.iter().map(|rule| rule.vlan).collect();
        vlans.sort_unstable();
        vlans.dedup();
        let refused = |error| LabError::System {
            what: "load a tagging program",
            subject: "requires root, or CAP_BPF and CAP_NET_ADMIN".into(),
            error,
        };
        let programs = [
            (access, Tagging::push(&put_on, trunk).map_err(refused)?, "tag"),
            (trunk, Tagging::pop(&vlans, access).map_err(refused)?, "untag"),
        ];
        let mut netlink = site.namespace.netlink()?;
        self.attached = Some((site.namespace.clone(), [access, trunk]));
        for (interface, program, name) in &programs {
            netlink.ingress_program(*interface, program.descriptor(), name)?;
        }
        self.rules = rules.len();
        Ok(())
    }

    fn clear(&mut self) -> Result<(), LabError> {
        let Some((namespace, interfaces)) = self.attached.take() else { return Ok(()) };
        let mut netlink = namespace.netlink()?;
        interfaces.into_iter().try_for_each(|interface| netlink.ingress_clear(interface))
    }
}

impl Peer for LinuxTagger {
    fn start(&mut self, site: &Site) -> Result<(), LabError> {
        self.put(site, &[])
    }

    fn ready(&mut self, _patience: Duration) -> Result<ControlInterface, LabError> {
        Ok(ControlInterface::Install)
    }

    fn install(&mut self, site: &Site, plan: &Plan) -> Result<(), LabError> {
        let others = Plan { tags: plan.tags.clone(), ..Plan::default() };
        if *plan != others {
            let what = "entries other than tagging rules";
            return Err(LabError::Argument { what, value: KIND.into() });
        }
        self.put(site, &plan.tags)
    }

    fn counters(&mut self) -> Result<BTreeMap<String, u64>, LabError> {
        Ok(BTreeMap::new())
    }

    fn check(&mut self) -> Result<(), LabError> {
        Ok(())
    }

    fn processes(&self) -> Vec<u32> {
        Vec::new()
    }

    fn stop(&mut self) -> Result<(), LabError> {
        self.clear()
    }

    fn describe(&self) -> Description {
        let settings = [
            ("tagging_by", "tc-BPF programs at ingress, without VLAN devices".to_owned()),
            ("rules", self.rules.to_string()),
        ];
        let settings = settings.map(|(name, value)| (name.to_owned(), value));
        Description { kind: KIND.into(), version: kernel_release(), settings: settings.into() }
    }
}
