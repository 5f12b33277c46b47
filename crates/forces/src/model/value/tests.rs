//! Tests of valid and invalid text, and of the round trip of random values.

use proptest::prelude::*;

use super::*;
use crate::arbitrary::{data_type, typed_value};
use crate::library;
use crate::model::Catalog;

fn catalog() -> Catalog {
    library::standard()
}

/// Checks a text of a named type against the formatted value, or the fault.
fn check(name: &str, text: &str, expected: &str) {
    let data_type = catalog().data_type(name).unwrap();
    let got = match data_type.parse(text) {
        Ok(value) => {
            let shown = data_type.show(&value).to_string();
            assert_eq!(data_type.parse(&shown), Ok(value), "{name} {text:?}");
            shown
        }
        Err(fault) => format!("! {fault}"),
    };
    assert_eq!(got, expected, "{name} {text:?}");
}

#[test]
fn atomic_values_are_parsed() {
    check("uint16", " 0x0800 ", "2048");
    check("uint16", "65536", "! 65536 is out of range (allowed: 0 to 65535)");
    check("uint16", "-1", "! -1 is out of range (allowed: 0 to 65535)");
    check("uint16", "--1", "! expected an integer, found \"--1\"");
    check("char", "-0x80", "-128");
    check("VlanIDType", "4096", "! 4096 is out of range (allowed: 0 to 4095)");
    check("VlanIDType", "4095", "4095");
    check("IPv4Addr", "10.2.0.0", "10.2.0.0");
    check("IPv4Addr", "0x0a020000", "10.2.0.0");
    check(
        "IPv4Addr",
        "10.2.0",
        "! expected an IPv4 address (10.2.0.0) or hexadecimal octets (0x0a020000), found \
         \"10.2.0\"",
    );
    check("IPv4Addr", "0x0a0200", "! has 3 octets (allowed: exactly 4)");
    check("IPv6Addr", "2001:DB8::1", "2001:db8::1");
    check("IEEEMAC", "02-00-00-00-01-0F", "02:00:00:00:01:0f");
    check("IEEEMAC", "02:00:00:00:01", "! has 5 octets (allowed: exactly 6)");
    check("boolean", "1", "true");
    check("boolean", "yes", "! expected true or false, found \"yes\"");
    check("PortStatusType", "Up", "Up");
    check("PortStatusType", "2", "Down");
    check("PortStatusType", "7", "7");
    check(
        "PortStatusType",
        "up",
        "! expected an integer or one of Disabled, Up, Down, found \"up\"",
    );
    check("ExtendedResultType", "0", "! 0 is out of range (allowed: 1 to 2)");
    check("string[3]", "four", "! has 4 octets (allowed: at most 3)");
    check("string", "  two words ", "\"  two words \"");
    check("octetstring[8]", "0x", "0x");
    check("octetstring[8]", "\"\\x03bad\"", "0x03626164");
    check("float32", "0.1", "0.10000000149011612");
    check("float64", "-0", "0");
}

#[test]
fn compound_values_are_parsed() {
    let row = "{LogicalPortID=1001, EtherType=2048, Reserved=0, LFBOutputSelectIndex=3}";
    check("EtherDispatchEntryType", row, row);
    check("EtherDispatchEntryType", "{1=1001,2=0x800 , Reserved = 0, 4=3,}", row);
    check("EtherDispatchTableType", &format!("[7={row}]"), &format!("[7={row}]"));
    check("MACInStatsType", "{NumPacketsReceived=1}", "! lacks NumPacketsDropped");
    check(
        "MACInStatsType",
        "{Packets=1}",
        "! has no field Packets (known: NumPacketsReceived, NumPacketsDropped)",
    );
    check(
        "EtherDispatchTableType",
        "[3={EtherType=70000}]",
        "! [3].EtherType: 70000 is out of range (allowed: 0 to 65535)",
    );
    check("MACInStatsType", "{1=1, 1=2}", "! has NumPacketsReceived twice");
    check(
        "MACInStatsType",
        "{1=1 2=2}",
        "! NumPacketsReceived: expected an integer, found \"1 2\"",
    );
    check("MACInStatsType", "{1=1", "! expected ',' or '}' after 4 octets");
    check("MACInStatsType", "{1=1, 2=2} x", "! expected nothing after 11 octets");
    check(
        "MetadataDispatchTableType",
        "[{1=5, 2=0}, 9={1=6, 2=1}, {1=5, 2=2}]",
        "! rows 0 and 10 have the same content key 1",
    );
}

#[test]
fn parts_of_a_value_are_set_and_read() {
    let data_type = catalog().data_type("MetadataDispatchTableType").unwrap();
    let mut value = data_type.parse("[4={1=5, 2=0}]").unwrap();
    assert_eq!(value.at(&[4, 1]), Some(&Value::Unsigned(5)));
    assert_eq!(value.put(&[4, 2], Value::Unsigned(9)), Ok(Some(Value::Unsigned(0))));
    assert_eq!(value.put(&[5, 2], Value::Unsigned(9)), Err(Value::Unsigned(9)));
    let row = data_type.step(6).unwrap().default_value();
    assert_eq!(value.put(&[6], row), Ok(None));
    assert_eq!(
        data_type.show(&value).to_string(),
        concat!("[4={MetadataValue=5, OutputIndex=9}, ", "6={MetadataValue=0, OutputIndex=0}]",)
    );
    assert!(value.take(&[4]).is_some());
    assert_eq!(value.take(&[4]), None);
    let some = data_type.clone();
    value.merge(Value::Array([(6, Value::struct_of([(2, Value::Unsigned(1))]))].into()));
    assert_eq!(some.show(&value).to_string(), "[6={MetadataValue=0, OutputIndex=1}]");
}

#[test]
fn long_and_deep_texts_are_rejected() {
    let data_type = catalog().data_type("EtherDispatchTableType").unwrap();
    for text in ["[".repeat(100_000), "{".repeat(100_000), "[".repeat(TEXT_OCTETS_MAX + 1)] {
        assert!(data_type.parse(&text).is_err());
    }
}

proptest! {
    #[test]
    fn formatted_values_parse_to_the_same_value((data_type, value) in typed_value()) {
        prop_assert_eq!(data_type.check(&value), Ok(()));
        let shown = data_type.show(&value).to_string();
        prop_assert_eq!(data_type.parse(&shown), Ok(value), "{}", shown);
    }

    #[test]
    fn default_values_match_their_type(data_type in data_type()) {
        let value = data_type.default_value();
        prop_assert_eq!(data_type.check(&value), Ok(()));
    }

    #[test]
    fn any_text_is_parsed_or_rejected(data_type in data_type(), text in "[ -~\n]{0,40}") {
        if let Ok(value) = data_type.parse(&text) {
            prop_assert_eq!(data_type.check(&value), Ok(()));
        }
    }
}
