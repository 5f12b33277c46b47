//! Tests of matches and counters.

use super::text::entry;
use super::*;
use crate::build::Builder;
use crate::header::{ipv4, ipv6};

fn filter(texts: &[&str]) -> Filter {
    let mut filter = Filter::closed();
    filter.load(texts.iter().map(|text| entry(text).unwrap()).collect()).unwrap();
    filter
}

fn ethernet() -> Builder {
    Builder::new([2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 1])
}

/// A UDP frame from `source` to 192.0.2.7, from port 1000 to `port`, tagged or untagged.
fn udp(source: [u8; 4], port: u16, is_tagged: bool) -> Vec<u8> {
    let frame = if is_tagged { ethernet().vlan(5) } else { ethernet() };
    let header = ipv4::Header::new(source.into(), [192, 0, 2, 7].into());
    frame.ipv4(header).udp(1000, port).payload(b"x").bytes()
}

fn udp6(port: u16) -> Vec<u8> {
    let (source, destination) = ("2001:db8::1".parse().unwrap(), "2001:db8::2".parse().unwrap());
    ethernet().ipv6(ipv6::Header::new(source, destination)).udp(1000, port).payload(b"x").bytes()
}

#[test]
fn an_empty_filter_captures_nothing() {
    let mut filter = Filter::closed();
    assert!(!filter.keeps(&udp([10, 0, 0, 1], 53, false)));
    assert!(!filter.keeps(&[]));
    assert_eq!(filter.counts().unloaded, 2);
    filter.load(vec![Entry::any(Verdict::Capture)]).unwrap();
    assert!(filter.keeps(&udp([10, 0, 0, 1], 53, false)) && filter.keeps(&[]));
    let counts = Counts { hits: vec![2], captured: 2, unloaded: 2, ..Counts::default() };
    assert_eq!(filter.counts(), &counts);
    filter.load(Vec::new()).unwrap();
    assert!(!filter.keeps(&[]));
    assert_eq!((filter.counts().unmatched, filter.counts().unloaded), (1, 2));
}

#[test]
fn the_first_matching_entry_decides_and_counts() {
    let mut filter = filter(&["drop,dport=53", "src=10.0.0.0/8,proto=udp", "dport=53/0xffff,drop"]);
    for is_tagged in [false, true] {
        assert!(!filter.keeps(&udp([10, 0, 0, 1], 53, is_tagged)));
        assert!(filter.keeps(&udp([10, 9, 9, 9], 54, is_tagged)));
        assert!(!filter.keeps(&udp([11, 0, 0, 1], 54, is_tagged)));
    }
    let counts = filter.counts();
    assert_eq!((&counts.hits[..], counts.captured, counts.dropped), (&[2, 2, 0][..], 2, 2));
    assert_eq!((counts.unmatched, counts.unloaded), (2, 0));
}

#[test]
fn each_field_matches_under_its_mask() {
    let four = udp([10, 0, 0, 1], 0x1234, false);
    let six = udp6(0x1234);
    for (text, has_four, has_six) in [
        ("src=10.0.0.1", true, false),
        ("src=10.0.0.2/255.0.0.255", false, false),
        ("src=10.0.0.1/255.0.0.255", true, false),
        ("dst=192.0.2.7,src=0.0.0.0/0", true, false),
        ("dst=10.0.0.1", false, false),
        ("src=2001:db8::/32", false, true),
        ("dst=::2/::ff", false, true),
        ("src=::/0", false, true),
        ("proto=udp", true, true),
        ("proto=tcp", false, false),
        ("sport=1000", true, true),
        ("dport=0x1200/0xff00", true, true),
        ("dport=0x1200/0xff0f", false, false),
        ("sport=1000,dport=0x1234,proto=17", true, true),
    ] {
        let mut filter = filter(&[text]);
        assert_eq!((filter.keeps(&four), filter.keeps(&six)), (has_four, has_six), "{text}");
    }
}

#[test]
fn an_absent_field_does_not_match() {
    let bare = ethernet().ether_type(0x88b5).payload(&[0; 46]).bytes();
    let mut later = udp([10, 0, 0, 1], 53, false);
    later[14 + 7] = 1;
    for text in ["src=0.0.0.0/0", "src=::/0", "proto=0", "sport=0", "dport=0x0/0x8000"] {
        let mut filter = filter(&[text]);
        assert!(!filter.keeps(&bare), "{text}");
        assert!(!filter.keeps(&bare[..9]), "{text}");
    }
    assert!(filter(&["proto=udp,src=10.0.0.1"]).keeps(&later), "a fragment has its addresses");
    assert!(!filter(&["dport=53"]).keeps(&later), "and no ports");
}

#[test]
fn too_many_entries_are_rejected_without_effect() {
    let mut filter = filter(&["any"]);
    let many = vec![Entry::any(Verdict::Drop); ENTRIES_MAX + 1];
    assert_eq!(filter.load(many), Err(TooMany(ENTRIES_MAX + 1)));
    assert!(filter.keeps(&[]));
    filter.load(vec![Entry::any(Verdict::Drop); ENTRIES_MAX]).unwrap();
    assert!(!filter.keeps(&[]));
}
