//! Speeds, media and capabilities of links as OpenFlow port features.
//!
//! Source: OpenFlow switch specification 1.3.5, section 7.2.1 (`ofp_port_features`, `curr_speed`,
//! `max_speed`). A speed without its own bit is `other`.
//!
//! Invariants:
//! - Unknown properties are left out.
//! - The maximum speed is never below the current speed.

use netio::link::{Ability, Link, LinkModes, Medium};
use openflow::model::{PortDescription, PortFeatures};

const MEGABIT: u64 = 1_000_000;

/// Returns the feature bit of a speed in Mbit/s.
fn speed(speed_mbps: u64, full_duplex: bool) -> PortFeatures {
    match (speed_mbps, full_duplex) {
        (10, false) => PortFeatures::SPEED_10M_HALF,
        (10, true) => PortFeatures::SPEED_10M_FULL,
        (100, false) => PortFeatures::SPEED_100M_HALF,
        (100, true) => PortFeatures::SPEED_100M_FULL,
        (1_000, false) => PortFeatures::SPEED_1G_HALF,
        (1_000, true) => PortFeatures::SPEED_1G_FULL,
        (10_000, true) => PortFeatures::SPEED_10G_FULL,
        (40_000, true) => PortFeatures::SPEED_40G_FULL,
        (100_000, true) => PortFeatures::SPEED_100G_FULL,
        (1_000_000, true) => PortFeatures::SPEED_1T_FULL,
        _ => PortFeatures::SPEED_OTHER,
    }
}

fn features(modes: LinkModes) -> PortFeatures {
    let mut told = PortFeatures::NONE;
    for (speed_mbps, full_duplex) in modes.speeds() {
        told |= speed(speed_mbps.into(), full_duplex);
    }
    for (ability, bit) in [
        (Ability::Copper, PortFeatures::COPPER),
        (Ability::Fiber, PortFeatures::FIBER),
        (Ability::Autonegotiation, PortFeatures::AUTONEGOTIATION),
        (Ability::Pause, PortFeatures::PAUSE),
        (Ability::PauseAsymmetric, PortFeatures::PAUSE_ASYMMETRIC),
    ] {
        if modes.has(ability) {
            told |= bit;
        }
    }
    told
}

/// Returns the current features. Unknown duplex counts as full, as it is for all speeds above 1
/// Gbit/s.
fn in_use(link: &Link) -> PortFeatures {
    let mut told = match link.speed_bps {
        Some(bps) if bps % MEGABIT != 0 => PortFeatures::SPEED_OTHER,
        Some(bps) => speed(bps / MEGABIT, link.full_duplex.unwrap_or(true)),
        None => return PortFeatures::NONE,
    };
    told |= match link.medium {
        Some(Medium::Copper) => PortFeatures::COPPER,
        Some(Medium::Fiber) => PortFeatures::FIBER,
        None => PortFeatures::NONE,
    };
    if link.autonegotiates {
        told |= PortFeatures::AUTONEGOTIATION;
    }
    told
}

/// Adds the properties of a link to a port's description.
pub fn describe_link(port: &mut PortDescription, link: &Link) {
    let kbps = |bps: u64| u32::try_from(bps / 1_000).unwrap_or(u32::MAX);
    let highest = link.supported.speeds().map(|(speed_mbps, _)| u64::from(speed_mbps)).max();
    port.current_speed_kbps = kbps(link.speed_bps.unwrap_or(0));
    port.speed_max_kbps = kbps(highest.unwrap_or(0) * MEGABIT).max(port.current_speed_kbps);
    port.current = in_use(link);
    port.supported = features(link.supported);
    port.advertised = features(link.advertised);
    port.peer = features(link.peer);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(link: Link, current: &str, speeds_kbps: (u32, u32)) {
        let mut port = PortDescription::default();
        describe_link(&mut port, &link);
        assert_eq!(port.current.to_string(), current, "{link:?}");
        assert_eq!((port.current_speed_kbps, port.speed_max_kbps), speeds_kbps, "{link:?}");
    }

    #[test]
    fn speeds_and_media_are_reported_and_unknown_ones_omitted() {
        let at = |bps| Link { speed_bps: Some(bps), full_duplex: Some(true), ..Link::default() };
        let copper = Some(Medium::Copper);
        let none = PortFeatures::NONE.to_string();
        check(Link::default(), &none, (0, 0));
        check(Link { medium: copper, ..Link::default() }, &none, (0, 0));
        check(
            Link { medium: copper, ..at(10_000_000_000) },
            "10g_full|copper",
            (10_000_000, 10_000_000),
        );
        check(
            Link { full_duplex: Some(false), ..at(100_000_000) },
            "100m_half",
            (100_000, 100_000),
        );
        check(at(25_000_000_000), "other_speed", (25_000_000, 25_000_000));
        check(at(1_500_000), "other_speed", (1_500, 1_500));
        // 5 Tbit/s exceed a 32-bit number of kilobits.
        check(at(5_000_000_000_000), "other_speed", (u32::MAX, u32::MAX));
        let card = Link {
            autonegotiates: true,
            medium: Some(Medium::Fiber),
            supported: LinkModes(1 << 5 | 1 << 12 | 1 << 10 | 1 << 6),
            ..at(1_000_000_000)
        };
        check(card, "1g_full|fiber|autonegotiation", (1_000_000, 10_000_000));
        let unplugged = Link { speed_bps: None, ..card };
        check(unplugged, &none, (0, 10_000_000));
    }

    #[test]
    fn link_modes_are_converted_to_bits() {
        let modes = LinkModes(0b11 | 1 << 13 | 1 << 14 | 1 << 7 | 1 << 36 | 1 << 31);
        let reported = features(modes).to_string();
        let want = "10m_half|10m_full|100g_full|other_speed|copper|pause|pause_asymmetric";
        assert_eq!(reported, want);
    }
}
