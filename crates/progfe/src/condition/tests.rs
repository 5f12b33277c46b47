//! Tests of parsing, display, evaluation and normal form, and of every error with its offset.

use proptest::prelude::*;

use super::*;
use crate::frames::FrameSet;

fn meta(name: &str) -> Option<Metadatum> {
    match name {
        "PHYPortID" => Some(Metadatum { id: 1, bits: 32 }),
        "VlanID" => Some(Metadatum { id: 6, bits: 16 }),
        _ => None,
    }
}

fn parse(text: &str) -> Condition {
    let set = FrameSet::ethernet();
    Condition::parse(text, &set, &meta).unwrap_or_else(|error| panic!("{text}: {error:?}"))
}

fn fault(text: &str) -> (usize, String) {
    let error = Condition::parse(text, &FrameSet::ethernet(), &meta).expect_err(text);
    (error.at, error.what)
}

/// A frame with a tag, IPv4 with DSCP 46 from 10.1.2.3 to 10.4.5.6, and UDP from 99 to 5060.
fn tagged() -> Vec<u8> {
    let mut bytes = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x81, 0, 0xa0, 100, 8, 0];
    bytes.extend([0x45, 46 << 2, 0, 30, 0, 0, 0, 0, 64, 17, 0, 0, 10, 1, 2, 3, 10, 4, 5, 6]);
    bytes.extend([0, 99, 0x13, 0xc4, 0, 10, 0, 0, 1, 2]);
    bytes
}

fn holds(condition: &Condition, bytes: &[u8], port: Option<u128>) -> bool {
    let located = FrameSet::ethernet().locate(bytes);
    let meta = |id| if id == 1 { port } else { None };
    condition.holds(&Facts { bytes, located: &located, meta: &meta })
}

#[test]
fn conditions_have_the_expected_meaning() {
    let bytes = tagged();
    let yes = [
        "any",
        "Vlan",
        "not SVlan",
        "not Vlan[1]",
        "Vlan.vid in {100, 200}",
        "Vlan.pcp = 5 and meta:PHYPortID = 3",
        "IPv4.dscp in 40..47",
        "UDP.dport = 5060 or TCP.dport = 80",
        "IPv4.src = 10.1.0.0/16",
        "IPv4.dst = 10.0.0.6/255.0.0.255",
        "Eth.dst = 02:00:00:00:00:02",
        "Eth.src = 02:00:00:00:00:00/40",
        "IPv4.ttl gt 1 and IPv4.ttl le 64 and IPv4.ttl ne 63",
        "not (IPv4.ttl lt 64 or IPv6)",
        "not IPv6.hops = 3",
        "meta:PHYPortID",
        "Vlan.vid in 100",
    ];
    let no = [
        "not any",
        "IPv6",
        "IPv6.hops ne 3",
        "IPv4.src = 10.2.0.0/16",
        "meta:VlanID",
        "meta:VlanID ne 7",
        "Vlan or IPv6 and IPv6",
    ];
    for text in yes {
        assert!(holds(&parse(text), &bytes, Some(3)), "{text}");
    }
    for text in &no[..no.len() - 1] {
        assert!(!holds(&parse(text), &bytes, Some(3)), "{text}");
    }
    assert!(holds(&parse(no[no.len() - 1]), &bytes, None), "and binds closer than or");
}

#[test]
fn an_invalid_condition_is_rejected_with_its_offset() {
    let cases = [
        ("Vlan.vid =", 10, "missing"),
        ("Vlan.vlan = 1", 0, "no field \"vlan\""),
        ("Vlan and Foo", 9, "no frame \"Foo\""),
        ("meta:Foo = 1", 0, "no metadata item"),
        ("Vlan.vid = 4096", 11, "does not fit"),
        ("Vlan.vid in {1, 2", 17, "missing"),
        ("Vlan.vid in 5..3", 12, "empty range"),
        ("Vlan.vid = 1/13", 13, "has 12 bits"),
        ("Vlan.vid = 10.0.0.1", 11, "has another length"),
        ("Vlan.vid", 8, "missing comparison"),
        ("(Vlan", 5, "missing \")\""),
        ("Vlan IPv4", 5, "unexpected"),
        ("Vlan = 1", 0, "is not a number"),
        ("IPv4.src = x", 11, "invalid value"),
        ("Vlan.vid < 3", 9, "missing comparison"),
        ("", 0, "missing field"),
        ("Vlan[40]", 0, "at most 32"),
        ("IPv4.options[0].data = 1", 0, "is not a number"),
        ("IPv4.options.kind = 1", 0, "is a repeated part"),
    ];
    for (text, at, what) in cases {
        let found = fault(text);
        assert!(found.0 == at && found.1.contains(what), "{text}: {found:?}");
    }
    assert_eq!(fault(&"(".repeat(1000)).0, 32);
    assert_eq!(fault(&" ".repeat(TEXT_BYTES_MAX + 1)).0, 0);
    let many = format!("Vlan.vid in {{{}", "1,".repeat(1000));
    assert!(fault(&many).1.contains("at most 512"));
}

#[test]
fn the_normal_form_merges_and_drops_impossible_parts() {
    let tests = |text: &str| parse(text).normal().unwrap();
    assert_eq!(tests("Vlan.vid ge 5 and Vlan.vid le 9"), tests("Vlan.vid in 5..9"));
    assert_eq!(tests("Vlan.vid = 5 and Vlan.vid = 6"), []);
    assert_eq!(tests("not any"), []);
    assert_eq!(tests("Vlan and not Vlan"), []);
    assert_eq!(tests("IPv4.src = 10.0.0.0/8").len(), 1);
    assert_eq!(tests("not Vlan.vid = 5").len(), 3, "below, above and no tag");
    let many = (0..20).map(|bit| format!("not IPv4.src = 0/0x{:x}", 0x5555u32 << (bit % 7)));
    assert_eq!(parse(&many.collect::<Vec<_>>().join(" and ")).normal(), None);
}

fn literals(width: u32) -> impl Strategy<Value = Literal> {
    let value =
        prop_oneof![0u128..8, any::<u128>()].prop_map(move |value| value & bits::most(width));
    (value, any::<bool>()).prop_map(move |(value, hex)| Literal {
        value,
        form: match (width, hex) {
            (48, true) => Form::Mac,
            (32, true) => Form::Ipv4,
            (_, true) => Form::Hex,
            _ => Form::Decimal,
        },
    })
}

fn choices(width: u32) -> impl Strategy<Value = Choice> {
    let mask = literals(width).prop_map(|mask| Literal { form: Form::Hex, ..mask });
    prop_oneof![
        literals(width).prop_map(Choice::One),
        (literals(width), literals(width)).prop_map(|(a, b)| {
            let (low, high) = if a.value <= b.value { (a, b) } else { (b, a) };
            Choice::Range(low, high)
        }),
        (literals(width), 0..=width).prop_map(|(value, bits)| Choice::Prefix(value, bits as u8)),
        (literals(width), mask).prop_map(|(value, mask)| Choice::Masked(value, mask)),
    ]
}

fn relations(width: u32) -> impl Strategy<Value = Relation> {
    prop_oneof![
        choices(width).prop_map(Relation::Is),
        choices(width).prop_map(Relation::Other),
        proptest::collection::vec(choices(width), 1..4).prop_map(Relation::In),
        literals(width).prop_map(Relation::Below),
        literals(width).prop_map(Relation::AtMost),
        literals(width).prop_map(Relation::Above),
        literals(width).prop_map(Relation::AtLeast),
    ]
}

fn operand(name: &str) -> Operand {
    if name.starts_with("meta:") {
        return Operand::Meta { id: 1, bits: 32, name: "PHYPortID".into() };
    }
    let set = FrameSet::ethernet();
    let at = set.resolve(name).unwrap();
    let bits = set.field(at).and_then(|field| field.number_bits()).unwrap_or(0);
    Operand::Field { at, bits, name: name.into() }
}

fn conditions() -> impl Strategy<Value = Condition> {
    let test = |name: &'static str| {
        let operand = operand(name);
        relations(operand.bits())
            .prop_map(move |relation| Condition::Test(operand.clone(), relation))
    };
    let leaf = prop_oneof![
        Just(Condition::Any),
        Just(Condition::Present(operand("Vlan"))),
        Just(Condition::Present(operand("IPv6"))),
        test("Vlan.vid"),
        test("Vlan.pcp"),
        test("IPv4.src"),
        test("Eth.dst"),
        test("IPv6.hops"),
        test("meta:PHYPortID"),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        let some = proptest::collection::vec(inner.clone(), 2..4);
        prop_oneof![
            inner.prop_map(|one| Condition::Not(Box::new(one))),
            some.clone().prop_map(Condition::All),
            some.prop_map(Condition::Either),
        ]
    })
}

proptest! {
    #[test]
    fn formatted_conditions_parse_to_the_same_value(condition in conditions()) {
        prop_assert_eq!(parse(&condition.to_string()), condition);
    }

    #[test]
    fn the_normal_form_is_equivalent_to_the_condition(
        condition in conditions(), vid in 0u16..8, source in 0u8..8, tag: bool,
        port in proptest::option::of(0u128..8),
    ) {
        let mut bytes = tagged();
        bytes[14..16].copy_from_slice(&vid.to_be_bytes());
        bytes[30..34].copy_from_slice(&[0, 0, 0, source]);
        if !tag {
            bytes.drain(12..16);
        }
        if let Some(normal) = condition.normal() {
            let located = FrameSet::ethernet().locate(&bytes);
            let meta = |id| if id == 1 { port } else { None };
            let facts = Facts { bytes: &bytes, located: &located, meta: &meta };
            let one = normal.iter().any(|conjunction| conjunction.holds(&facts));
            prop_assert_eq!(one, condition.holds(&facts), "{}", condition);
        }
    }

    #[test]
    fn any_text_is_parsed_or_rejected(text in "[a-zA-Z0-9 (){},=./:_-]{0,60}") {
        let _ = Condition::parse(&text, &FrameSet::ethernet(), &meta);
    }
}
