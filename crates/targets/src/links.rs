//! Choice of the link for each target.
//!
//! Targets are best compared over one link. If no link supports all of them, most targets use the
//! link that supports most, and each other target uses the most similar link. Invariant: a link
//! that a user names for a target is that target's link, independent of other targets.

use super::name::{Link, TargetKind};

/// Links in order of preference where they support the same targets: cables before memory, and
/// links that other programs use before those of DPDK only.
pub const PREFERRED: [Link; 5] = [Link::Veth, Link::VethXdp, Link::Memif, Link::Memory, Link::Nic];

/// The link of every target of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Links {
    /// Link of all targets without a link of their own.
    pub base: Link,
    /// Targets with a link of their own.
    pub apart: Vec<(TargetKind, Link)>,
}

impl Links {
    /// Returns one link for all targets.
    pub fn all_by(link: Link) -> Links {
        Links { base: link, apart: Vec::new() }
    }

    /// Chooses the best links for these targets among those that this machine allows.
    ///
    /// If none of these supports a target, it gets one that would, so that the error can name the
    /// missing requirement.
    pub fn chosen(kinds: &[TargetKind], own: &[(TargetKind, Link)], allowed: &[Link]) -> Links {
        let named =
            |kind: TargetKind| own.iter().find(|(it, _)| *it == kind).map(|(_, link)| *link);
        let carries = |link: Link, kind: TargetKind| match named(kind) {
            Some(own) => own == link,
            None => kind.runs_on(link),
        };
        let carried = |link: Link| kinds.iter().filter(|kind| carries(link, **kind)).count();
        // Of several maxima the last one counts, which is the preferred one.
        let by_choice = PREFERRED.into_iter().rev().filter(|link| allowed.contains(link));
        let base = by_choice.max_by_key(|link| carried(*link)).unwrap_or(Link::Memory);
        let apart = kinds.iter().filter(|kind| !carries(base, **kind)).map(|&kind| {
            let link = named(kind).or_else(|| nearest(base, kind, allowed));
            (kind, link.unwrap_or(base))
        });
        Links { base, apart: apart.collect() }
    }

    /// The link of a target.
    pub fn of(&self, kind: TargetKind) -> Link {
        let own = self.apart.iter().find(|(it, _)| *it == kind);
        own.map_or(self.base, |(_, link)| *link)
    }

    /// Returns the links of these targets without duplicates; without targets, the common link.
    pub fn used(&self, kinds: &[TargetKind]) -> Vec<Link> {
        let mut links = Vec::new();
        for link in kinds.iter().map(|kind| self.of(*kind)) {
            if !links.contains(&link) {
                links.push(link);
            }
        }
        if links.is_empty() { vec![self.base] } else { links }
    }

    /// Formats the links in the syntax of `--link`.
    pub fn words(&self) -> impl Iterator<Item = String> + '_ {
        let own = |(kind, link): &(TargetKind, Link)| format!("{}={}", kind.name(), link.name());
        std::iter::once(self.base.name().to_string()).chain(self.apart.iter().map(own))
    }
}

/// Returns the link most similar to `base` among those that support the target; allowed ones take
/// precedence.
fn nearest(base: Link, kind: TargetKind, allowed: &[Link]) -> Option<Link> {
    let alike = match base {
        Link::Veth | Link::VethLive => [Link::VethXdp, Link::Memif, Link::Memory, Link::Nic],
        Link::VethXdp => [Link::Veth, Link::Memif, Link::Memory, Link::Nic],
        Link::Memif => [Link::VethXdp, Link::Veth, Link::Memory, Link::Nic],
        Link::Memory | Link::Replay => [Link::Memif, Link::Veth, Link::VethXdp, Link::Nic],
        Link::Nic | Link::NicXdp => [Link::Veth, Link::VethXdp, Link::Memif, Link::Memory],
    };
    let mut carrying = alike.into_iter().filter(|link| kind.runs_on(*link));
    carrying.clone().find(|link| allowed.contains(link)).or_else(|| carrying.next())
}

#[cfg(test)]
mod tests {
    use super::*;
    use TargetKind::{Direct, Ovs, OvsDpdk, Switch, Testpmd};

    fn model() -> TargetKind {
        "switch:model=edgecore-as5812".parse().unwrap()
    }

    fn chosen(kinds: &[TargetKind], own: &[(TargetKind, Link)]) -> String {
        Links::chosen(kinds, own, &PREFERRED).words().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_link_that_suits_all_targets_is_preferred() {
        for (kinds, link) in [
            (&[Switch, Ovs, model()][..], "veth:afpacket"),
            (&[Switch, OvsDpdk], "veth:xdp"),
            (&[model(), OvsDpdk], "memif"),
            (&[Switch, Testpmd], "memif"),
            (&[Direct], "veth:afpacket"),
        ] {
            assert_eq!(chosen(kinds, &[]), link);
        }
    }

    #[test]
    fn without_a_common_link_most_targets_share_one_and_others_use_the_most_similar() {
        let all = [Switch, Ovs, OvsDpdk, model()];
        assert_eq!(chosen(&all, &[]), "veth:afpacket ovs-dpdk=veth:xdp");
        assert_eq!(chosen(&[Ovs, Testpmd], &[]), "veth:afpacket testpmd=memif");
        assert_eq!(chosen(&[OvsDpdk, Testpmd, Ovs], &[]), "memif ovs=veth:afpacket");
        let without_xdp = [Link::Veth, Link::Memif, Link::Memory];
        let links = Links::chosen(&all, &[], &without_xdp);
        assert_eq!(links.of(OvsDpdk), Link::Memif);
    }

    #[test]
    fn a_link_chosen_for_a_target_is_used_and_preferred() {
        assert_eq!(chosen(&[Switch, OvsDpdk], &[(OvsDpdk, Link::Memif)]), "memif");
        let own = [(OvsDpdk, Link::Memif)];
        assert_eq!(chosen(&[Switch, Ovs, OvsDpdk], &own), "veth:afpacket ovs-dpdk=memif");
        let own = [(Switch, Link::Memory)];
        assert_eq!(chosen(&[Switch, Ovs], &own), "veth:afpacket switch=memory");
    }

    #[test]
    fn unavailable_links_are_used_only_without_an_alternative() {
        assert_eq!(Links::chosen(&[Switch], &[], &[Link::Memory]), Links::all_by(Link::Memory));
        let links = Links::chosen(&[Switch, Ovs], &[], &[Link::Memory]);
        assert_eq!((links.of(Switch), links.of(Ovs)), (Link::Memory, Link::Veth));
    }
}
