//! Tests of the built-in definitions against the independent parser in `packet`. The inputs are
//! frames of other implementations, the same frames with random changes, and random bytes.

use packet::parse::{Fragment, Layers, Network, Transport};
use progfe::frames::{FrameSet, Located};
use proptest::prelude::*;

/// Frames of other implementations, from the tests of `packet`.
fn foreign() -> Vec<(String, Vec<u8>)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../packet/tests/bytes");
    let files = std::fs::read_dir(folder).expect("the foreign frames of packet exist");
    let mut frames = Vec::new();
    for file in files {
        let path = file.expect("the folder can be listed").path();
        let text = std::fs::read_to_string(&path).expect("the file can be read");
        let digits: String = text.lines().filter_map(|line| line.strip_prefix("hex: ")).collect();
        let bytes = digits.as_bytes().chunks(2).map(|pair| {
            let pair = std::str::from_utf8(pair).expect("digits");
            u8::from_str_radix(pair, 16).expect("digits")
        });
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        frames.push((name, bytes.collect()));
    }
    frames.sort();
    frames
}

fn at(set: &FrameSet, located: &Located, name: &str) -> Option<usize> {
    let reference = set.resolve(name).expect("the field is defined");
    located.header(reference).map(|header| header.at)
}

/// Asserts that both parsers agree where the other parser finds no fault.
fn check(set: &FrameSet, name: &str, bytes: &[u8]) {
    let layers = Layers::of(bytes);
    let located = set.locate(bytes);
    for header in &located.headers {
        assert!(header.at <= header.end && header.end <= header.limit, "{name}: {header:?}");
        assert!(header.limit <= bytes.len(), "{name}: {header:?}");
    }
    let at = |header: &str| at(set, &located, header);
    let tags = ["Vlan", "SVlan"].map(|tag| {
        let format = set.find(tag).expect("the field is defined");
        located.headers.iter().filter(|header| header.format == format).count()
    });
    // The other parser does not parse the contents of PBB, MPLS, GRE and tunnels.
    let outer = |header: &str| at(header).filter(|at| *at == usize::from(layers.network_at));
    if layers.fault.is_none()
        && ["ITag", "MPLS", "GRE", "IPv4[1]", "IPv6[1]"].iter().all(|h| at(h).is_none())
    {
        assert_eq!(tags[0] + tags[1], usize::from(layers.tags), "{name}");
        let network = match layers.network {
            Network::None => None,
            Network::Arp => Some("ARP"),
            Network::Ipv4 => Some("IPv4"),
            Network::Ipv6 => Some("IPv6"),
        };
        for header in ["ARP", "IPv4", "IPv6"] {
            assert_eq!(outer(header).is_some(), network == Some(header), "{name}: {header}");
        }
        let transport = match layers.transport {
            Transport::Icmp => Some("ICMP"),
            Transport::Icmpv6 => Some("ICMPv6"),
            Transport::Tcp => Some("TCP"),
            Transport::Udp => Some("UDP"),
            Transport::None | Transport::Sctp => None,
        };
        for header in ["ICMP", "ICMPv6", "TCP", "UDP"] {
            // Options of a first fragment may be cut off.
            let cut = layers.fragment == Fragment::First && transport == Some(header);
            let wanted = (transport == Some(header)).then_some(usize::from(layers.transport_at));
            assert!(
                at(header) == wanted || cut,
                "{name}: {header} at {:?}, not {wanted:?}",
                at(header)
            );
        }
    }
}

#[test]
fn foreign_frames_are_parsed_as_by_the_other_parser() {
    let set = FrameSet::ethernet();
    let frames = foreign();
    assert!(frames.len() >= 36, "only {} frames", frames.len());
    for (name, bytes) in &frames {
        check(&set, name, bytes);
    }
}

#[test]
fn foreign_checksums_are_correct_and_follow_a_change() {
    let set = FrameSet::ethernet();
    let mut checked = 0;
    for (name, bytes) in foreign() {
        let located = set.locate(&bytes);
        let whole = Layers::of(&bytes).fragment == Fragment::Whole;
        for position in 0..located.headers.len() {
            let ip = set.format(located.headers[position].format).name == "IPv4";
            if let Some(holds) =
                set.checksum_holds(&located, position, &bytes).filter(|_| whole || ip)
            {
                assert!(holds, "{name}: header {position}");
                checked += 1;
            }
        }
        for field in ["IPv4.src", "IPv6.dst", "TCP.window", "UDP.dport", "ICMP.id"] {
            let reference = set.resolve(field).expect("the field is defined");
            if !located.has(reference) || !whole {
                continue;
            }
            let mut frame = packet::frame::Frame::from_bytes(&bytes);
            let mut editor = progfe::frames::edit::Editor::new(&set, &mut frame);
            editor.set(reference, 0x1234).expect("the field is present");
            editor.finish();
            let located = set.locate(frame.bytes());
            for position in 0..located.headers.len() {
                let holds = set.checksum_holds(&located, position, frame.bytes());
                assert_ne!(holds, Some(false), "{name}: header {position} after {field}");
            }
        }
    }
    assert!(checked > 30, "only {checked} checksums");
}

/// Fields for which a compiler would request ways.
const FIELDS: &[&str] = &[
    "Eth.dst",
    "Vlan.vid",
    "Vlan[1].pcp",
    "Vlan",
    "IPv4",
    "IPv4.dscp",
    "IPv4.dst",
    "IPv6.src",
    "UDP.dport",
    "TCP.syn",
    "MPLS.s",
    "ARP.op",
    "ICMP.type",
    "CFM.op",
];

fn check_ways(set: &FrameSet, bytes: &[u8]) {
    let located = set.locate(bytes);
    for name in FIELDS {
        let reference = set.resolve(name).expect("the field is defined");
        let ways = set.ways(reference, 5);
        let mut applied = 0;
        for way in ways.list.iter().filter(|way| way.applies(set, bytes)) {
            assert_eq!(located.span(reference), Some(way.span), "{name}");
            applied += 1;
        }
        assert!(applied <= 1, "{name}: {applied} ways");
        assert!(
            applied == 1 || !ways.complete || !located.has(reference),
            "{name} by another path"
        );
    }
}

#[test]
fn field_positions_of_compiled_paths_equal_those_of_the_parser() {
    let set = FrameSet::ethernet();
    let way = |name: &str| set.ways(set.resolve(name).expect("the field is defined"), 2);
    let plain = way("IPv4.dst");
    assert_eq!(plain.list.iter().filter(|way| way.span.at == 30 * 8).count(), 1, "{plain:?}");
    assert!(set.ways(set.resolve("Eth.dst").unwrap(), 1).complete);
    for (_, bytes) in foreign() {
        check_ways(&set, &bytes);
    }
}

proptest! {
    #[test]
    fn changed_frames_are_parsed_as_by_the_other_parser(
        pick: proptest::sample::Index,
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 0..4),
        cut in proptest::option::of(any::<proptest::sample::Index>()),
    ) {
        let set = FrameSet::ethernet();
        let frames = foreign();
        let (name, mut bytes) = pick.get(&frames).clone();
        for (at, value) in changes {
            let at = at.index(bytes.len().min(60));
            bytes[at] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len() + 1));
        }
        check(&set, &name, &bytes);
        check_ways(&set, &bytes);
    }

    #[test]
    fn random_bytes_are_parsed_within_bounds(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let set = FrameSet::ethernet();
        let located = set.locate(&bytes);
        prop_assert!(located.headers.iter().all(|h| h.at <= h.end && h.end <= bytes.len()));
    }
}
