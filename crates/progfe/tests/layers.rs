//! Tests that push and pop headers by definitions, against frames that `packet` builds with the
//! same headers.

use packet::build::Builder;
use packet::frame::Frame;
use packet::header::{ipv4, mpls, pbb};
use progfe::frames::FrameSet;
use progfe::frames::edit::{EditFault, Editor};
use proptest::prelude::*;

const TO: [u8; 6] = [2, 0, 0, 0, 0, 2];
const FROM: [u8; 6] = [2, 0, 0, 0, 0, 1];

fn packet(builder: Builder, ports: (u16, u16), payload: &[u8]) -> Vec<u8> {
    let header = ipv4::Header::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
    builder.ipv4(header).udp(ports.0, ports.1).payload(payload).bytes_unpadded()
}

fn number(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0, |sum, byte| (sum << 8) | u128::from(*byte))
}

/// Pushes headers after a named one (or at the front), sets fields, and updates checksums.
fn pushed(
    set: &FrameSet,
    bytes: &[u8],
    formats: &[&str],
    after: Option<&str>,
    fields: &[(&str, u128)],
) -> Result<Vec<u8>, EditFault> {
    let mut frame = Frame::from_bytes(bytes);
    let mut editor = Editor::new(set, &mut frame);
    let after = after.map(|name| {
        let header = set.resolve(name).expect("the format is defined");
        editor.located().position(header).expect("the field is present")
    });
    let formats: Vec<_> = formats.iter().map(|name| set.find(name).expect("defined")).collect();
    editor.push(&formats, after)?;
    for (field, value) in fields {
        editor.set(set.resolve(field).expect("the format is defined"), *value)?;
    }
    editor.finish();
    Ok(frame.bytes().to_vec())
}

fn popped(set: &FrameSet, bytes: &[u8], first: usize, count: usize) -> Result<Vec<u8>, EditFault> {
    let mut frame = Frame::from_bytes(bytes);
    let mut editor = Editor::new(set, &mut frame);
    editor.pop(first, count, None)?;
    editor.finish();
    Ok(frame.bytes().to_vec())
}

proptest! {
    #[test]
    fn pushed_tags_labels_and_backbone_headers_equal_built_ones(
        vid in 0u16..4096, pcp in 0u16..8, label in 0u32..1 << 20, isid in 0u32..1 << 24,
        ports: (u16, u16), payload in proptest::collection::vec(any::<u8>(), 0..40),
    ) {
        let set = FrameSet::ethernet();
        let plain = packet(Builder::new(TO, FROM), ports, &payload);
        let control = pcp << 13 | vid;

        let tagged = packet(Builder::new(TO, FROM).vlan(control), ports, &payload);
        let fields = [("Vlan.vid", vid.into()), ("Vlan.pcp", pcp.into())];
        prop_assert_eq!(&pushed(&set, &plain, &["Vlan"], Some("Eth"), &fields), &Ok(tagged.clone()));
        prop_assert_eq!(&popped(&set, &tagged, 1, 1), &Ok(plain.clone()));

        let twice = packet(Builder::new(TO, FROM).tag(0x88a8, control).vlan(control), ports, &payload);
        let fields = [("SVlan.vid", vid.into()), ("SVlan.pcp", pcp.into())];
        prop_assert_eq!(&pushed(&set, &tagged, &["SVlan"], Some("Eth"), &fields), &Ok(twice.clone()));
        prop_assert_eq!(&popped(&set, &twice, 1, 2), &Ok(plain.clone()));
        prop_assert_eq!(&popped(&set, &twice, 1, 1), &Ok(tagged.clone()));

        let entry = mpls::Header { label, class: 3, bottom: true, ttl: 64 };
        let one = packet(Builder::new(TO, FROM).mpls(entry), ports, &payload);
        let fields = [("MPLS.label", label.into()), ("MPLS.tc", 3)];
        prop_assert_eq!(&pushed(&set, &plain, &["MPLS"], Some("Eth"), &fields), &Ok(one.clone()));
        let two = packet(Builder::new(TO, FROM).mpls(entry).mpls(entry), ports, &payload);
        prop_assert_eq!(&pushed(&set, &one, &["MPLS"], Some("Eth"), &fields), &Ok(two.clone()));
        prop_assert_eq!(&popped(&set, &two, 1, 1), &Ok(one));
        prop_assert_eq!(&popped(&set, &two, 1, 2), &Ok(plain.clone()));

        let backbone = ([4, 0, 0, 0, 0, 4], [4, 0, 0, 0, 0, 3]);
        let service = pbb::Header {
            priority: 5, drop_eligible: false, use_customer_addresses: false, isid,
            destination: TO, source: FROM,
        };
        let outer = Builder::new(backbone.0, backbone.1).tag(0x88a8, control).pbb(service);
        let carried = packet(outer, ports, &payload);
        let fields = [
            ("Eth.dst", number(&backbone.0)), ("Eth.src", number(&backbone.1)),
            ("SVlan.vid", vid.into()), ("SVlan.pcp", pcp.into()),
            ("ITag.pcp", 5), ("ITag.isid", isid.into()),
        ];
        let formats = ["Eth", "SVlan", "ITag"];
        prop_assert_eq!(&pushed(&set, &plain, &formats, None, &fields), &Ok(carried.clone()));
        prop_assert_eq!(&popped(&set, &carried, 0, 3), &Ok(plain.clone()));

        // A tunnel: the pushed header has its own lengths and checksums.
        let fields = [("IPv4.src", 0x0a09_0909), ("IPv4.ttl", 9)];
        let tunnel = pushed(&set, &plain, &["IPv4"], Some("Eth"), &fields).expect("the frame has space");
        let located = set.locate(&tunnel);
        let read = |name: &str| located.read(&tunnel, set.resolve(name).expect("the field is defined"));
        prop_assert_eq!(read("IPv4.len"), Some(tunnel.len() as u128 - 14));
        prop_assert_eq!(read("IPv4.proto"), Some(4));
        prop_assert_eq!(read("IPv4[1].len"), Some(plain.len() as u128 - 14));
        for position in 1..located.headers.len() {
            prop_assert_ne!(set.checksum_holds(&located, position, &tunnel), Some(false));
        }
        prop_assert_eq!(&popped(&set, &tunnel, 1, 1), &Ok(plain));
    }
}

#[test]
fn an_impossible_step_leaves_the_frame_unchanged() {
    let set = FrameSet::ethernet();
    let plain = packet(Builder::new(TO, FROM), (7, 9), b"hello");
    let mut frame = Frame::from_bytes(&plain);
    let mut editor = Editor::new(&set, &mut frame);
    let [udp, vlan, eth] = ["UDP", "Vlan", "Eth"].map(|name| set.find(name).expect("defined"));
    assert_eq!(editor.push(&[udp], Some(0)), Err(EditFault::Unlinked));
    assert_eq!(editor.push(&[vlan], Some(9)), Err(EditFault::NotThere));
    assert_eq!(editor.push(&[eth; 100], None), Err(EditFault::NoRoom));
    assert_eq!(editor.pop(2, 5, None), Err(EditFault::NotThere));
    assert_eq!(editor.pop(2, 1, None), Err(EditFault::Unlinked));
    editor.finish();
    assert_eq!(frame.bytes(), plain);
}
