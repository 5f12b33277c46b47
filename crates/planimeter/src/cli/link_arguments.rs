//! `--link`: one link for all targets, links for some of them, or neither, and then the best one is
//! chosen.
//!
//! `--link veth` applies to all targets, `--link ovs-dpdk=memif` to that target. A target's name
//! may contain an equals sign, a link's never does, so the last one separates them.

use super::failure::Failure;
use super::variables;
use targets::links::Links;
use targets::name::{Link, NameError, TargetKind};

/// Requested links.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct LinkArguments {
    /// For all targets that are not named.
    pub all: Option<Link>,
    /// For single targets.
    pub own: Vec<(TargetKind, Link)>,
}

impl LinkArguments {
    /// Parses the values of `--link`.
    pub fn read(words: &[String]) -> Result<LinkArguments, Failure> {
        let usage = |error: NameError| Failure::usage(error.to_string());
        let twice = |of: &str| Failure::usage(format!("--link is given twice for {of}"));
        let mut asked = LinkArguments::default();
        for word in words {
            let Some((target, link)) = word.rsplit_once('=') else {
                let link = word.parse().map_err(usage)?;
                if asked.all.replace(link).is_some() {
                    return Err(twice(
                        "all targets (hint: use --link TARGET=LINK for some of them)",
                    ));
                }
                continue;
            };
            let link = link.parse().map_err(usage)?;
            let kind: TargetKind = target.parse().map_err(usage)?;
            if asked.own.iter().any(|(known, _)| *known == kind) {
                return Err(twice(target));
            }
            asked.own.push((kind, link));
        }
        Ok(asked)
    }

    /// Returns the link of each of these targets; without targets, of those that will be detected.
    /// If the choice results in several links, this is reported.
    pub fn links(&self, kinds: &[TargetKind], is_simulated: bool) -> Result<Links, Failure> {
        if let Some((kind, link)) = self.own.iter().find(|(kind, _)| !kinds.contains(kind)) {
            let (name, link) = (kind.name(), link.name());
            return Err(Failure::usage(format!(
                "--link {name}={link}: {name} is not a target (hint: add --on {name})"
            )));
        }
        let links = match self.all {
            Some(base) => {
                let own = self.own.iter().copied();
                Links { base, apart: own.filter(|(_, link)| *link != base).collect() }
            }
            None if is_simulated => Links { base: Link::Memory, apart: self.own.clone() },
            None if kinds.is_empty() => Links::all_by(variables::best_link()),
            None => Links::chosen(kinds, &self.own, &variables::allowed_links(kinds)),
        };
        if kinds.is_empty() && matches!(links.base, Link::Nic | Link::NicXdp) {
            return Err(Failure::usage(format!(
                "link {} needs a device (hint: add it, such as --on device:ports=1@eth1+2@eth2)",
                links.base.name()
            )));
        }
        match kinds.iter().find(|kind| !kind.runs_on(links.of(**kind))) {
            Some(kind) => Err(refused(*kind, links.of(*kind))),
            None => Ok(links),
        }
    }
}

/// Returns the error for a target that does not support a link.
fn refused(kind: TargetKind, link: Link) -> Failure {
    let name = kind.name();
    if let TargetKind::Network(network) = kind
        && let Some(switch) = network.hindered_by(link)
    {
        let (one, on) = (&switch.name, link.name());
        let kind = switch.kind.name();
        return Failure::usage(format!(
            "{name}: switch {one} ({kind}) does not support link {on} (hint: use --link veth, \
             which all switches but those of DPDK support)"
        ));
    }
    let other = match kind {
        TargetKind::Device(_) => "nic",
        kind if kind.is_dpdk() => "memif",
        _ => "veth",
    };
    Failure::usage(format!(
        "{name} does not support link {} (hint: use --link {other}, or --link {name}={other} for \
         this target only)",
        link.name()
    ))
}

/// Formats the links of targets; `None` if all have the same.
pub fn told(kinds: &[TargetKind], links: &Links) -> Option<String> {
    let mut all: Vec<(Link, Vec<&str>)> = Vec::new();
    for kind in kinds {
        let link = links.of(*kind);
        match all.iter_mut().find(|(known, _)| *known == link) {
            Some((_, names)) => names.push(kind.name()),
            None => all.push((link, vec![kind.name()])),
        }
    }
    let each = all.iter().map(|(link, names)| format!("{} over {}", names.join(", "), link.name()));
    (all.len() > 1).then(|| format!("links: {}", each.collect::<Vec<_>>().join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Result<LinkArguments, Failure> {
        LinkArguments::read(&words.iter().map(ToString::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn the_last_equals_sign_separates_target_and_link() {
        let model: TargetKind = "switch:model=hp-2920".parse().unwrap();
        let asked = read(&["veth", "switch:model=hp-2920=memif"]).unwrap();
        assert_eq!(asked, LinkArguments { all: Some(Link::Veth), own: vec![(model, Link::Memif)] });
        for (words, about) in [
            (&["veth", "memif"][..], "twice"),
            (&["switch=veth", "switch=memif"], "twice for switch"),
            (&["switch=cable"], "cable"),
            (&["ofs=veth"], "ofs"),
            (&["switch:model=hp-2920"], "hp-2920"),
        ] {
            let line = read(words).unwrap_err().line;
            assert!(line.contains(about), "{line}");
        }
    }

    #[test]
    fn a_link_needs_its_target_and_a_target_needs_a_suitable_link() {
        let (ours, ovs) = (TargetKind::Switch, TargetKind::Ovs);
        let line = |words: &[&str], kinds: &[TargetKind]| {
            read(words).unwrap().links(kinds, false).unwrap_err().line
        };
        let missing = line(&["veth", "ovs=veth"], &[ours]);
        assert!(missing.starts_with("--link ovs=veth:afpacket: ovs is not a target"), "{missing}");
        let refused = line(&["veth", "ovs=memif"], &[ours, ovs]);
        assert!(refused.contains("ovs does not support link memif"), "{refused}");
        let links = read(&["memif", "ovs=veth"]).unwrap().links(&[ours, ovs], false).unwrap();
        assert_eq!((links.of(ours), links.of(ovs)), (Link::Memif, Link::Veth));
        let sentence = told(&[ours, ovs], &links).unwrap();
        assert_eq!(sentence, "links: switch over memif; ovs over veth:afpacket");
    }
}
