//! Tests of encoded values: those of RFC 5810 appendix C, those of known implementations, and
//! random ones.

use proptest::prelude::*;

use super::data::{read, read_full, read_sparse, write, write_sparse};
use super::*;
use crate::arbitrary::{data_type, typed_value};
use crate::library;
use crate::model::value::Value;
use crate::model::{Catalog, DataType};
use std::sync::Arc;

/// Returns a catalog with the structs of appendix C.
fn structs() -> Catalog {
    let field = |id: u32, name: &str, rest: &str| {
        format!("<component componentID=\"{id}\"><name>{name}</name><synopsis/>{rest}</component>")
    };
    let (uint16, optional) = ("<typeRef>uint16</typeRef>", "<optional/><typeRef>uint16</typeRef>");
    let def = |name: &str, fields: String| {
        format!(
            "<dataTypeDef><name>{name}</name><synopsis/><struct>{fields}</struct></dataTypeDef>"
        )
    };
    let s = field(1, "a", uint16) + &field(2, "b", uint16) + &field(3, "c", uint16);
    let text = "<optional/><typeRef>string</typeRef>";
    let u = field(1, "a", uint16) + &field(2, "b", text) + &field(3, "c", optional);
    let z = "<array><typeRef>U</typeRef></array>";
    let uint32 = "<typeRef>uint32</typeRef>";
    let v = field(1, "x", uint32) + &field(2, "y", uint32) + &field(3, "z", z);
    let xml = format!(
        "<LFBLibrary xmlns=\"urn:ietf:params:xml:ns:forces:lfbmodel:1.0\" provides=\"C\">\
         <dataTypeDefs>{}{}{}</dataTypeDefs></LFBLibrary>",
        def("S", s),
        def("U", u),
        def("V", v),
    );
    Catalog::new(vec![library::read(&xml).unwrap()]).unwrap()
}

fn hexadecimal(text: &str) -> Vec<u8> {
    let digits: String = text.split_whitespace().collect();
    (0..digits.len() / 2)
        .map(|at| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).unwrap())
        .collect()
}

/// Checks a value's text, and its complete and sparse encodings; empty if it cannot be complete.
fn check(data_type: &Arc<DataType>, text: &str, full: &str, sparse: &str) {
    let value = data_type.parse(text).unwrap();
    if !full.is_empty() {
        assert_eq!(write(data_type, &value), Ok(Data::Full(hexadecimal(full))), "{text}");
        assert_eq!(read_full(data_type, &hexadecimal(full)).as_ref(), Ok(&value), "{text}");
    } else {
        assert_eq!(write(data_type, &value), Ok(Data::Sparse(hexadecimal(sparse))), "{text}");
    }
    assert_eq!(write_sparse(data_type, &value), Ok(Data::Sparse(hexadecimal(sparse))), "{text}");
    assert_eq!(read_sparse(data_type, &hexadecimal(sparse)), Ok(value), "{text}");
}

#[test]
fn appendix_c() {
    let catalog = structs();
    let of = |name: &str| catalog.data_type(name).unwrap();
    // Example 1, (c) and (a): ILVs are padded, fixed fields are not.
    check(
        &of("S"),
        "{a=1, b=2, c=3}",
        "0001 0002 0003",
        "00000001 0000000a 0001 0000  00000002 0000000a 0002 0000  00000003 0000000a 0003 0000",
    );
    // Example 3, (c): the text is in a TLV; (b): missing fields are omitted.
    check(
        &of("U"),
        "{a=1, b=\"hello\", c=3}",
        "0001 0112 0009 68656c6c6f 000000 0003",
        "00000001 0000000a 0001 0000  00000002 0000000d 68656c6c6f 000000 \
         00000003 0000000a 0003 0000",
    );
    check(&of("U"), "{a=1, c=3}", "", "00000001 0000000a 0001 0000  00000003 0000000a 0003 0000");
    // Example 4: rows 10 and 15, each with different parts.
    check(
        &of("V"),
        "{x=7, y=8, z=[10={a=1, b=\"hi\"}, 15={a=2, c=3}]}",
        "",
        "00000001 0000000c 00000007  00000002 0000000c 00000008 \
         00000003 00000048 \
           0000000a 00000020 00000001 0000000a 0001 0000  00000002 0000000a 6869 0000 \
           0000000f 00000020 00000001 0000000a 0002 0000  00000003 0000000a 0003 0000",
    );
    let partial = hexadecimal("00000001 0000000a 0001 0000  00000003 0000000a 0003 0000");
    let some = read_sparse(&of("S"), &partial).unwrap();
    assert_eq!(some, Value::struct_of([(1, Value::Unsigned(1)), (3, Value::Unsigned(3))]));
}

#[test]
fn rows_and_values_of_the_base_library_are_encoded() {
    let catalog = library::standard();
    let table = &catalog.class("IPv4UcastLPM").unwrap().component("IPv4PrefixTable").unwrap();
    let row = "{IPv4Address=10.2.0.0, Prefixlen=16, ECMPFlag=False, DefaultRouteFlag=True, \
               Reserved=0, HopSelector=7}";
    let value = table.data_type.parse(&format!("[3={row}]")).unwrap();
    let octets = hexadecimal("00000003 0a020000 10 00 01 00 00000007");
    assert_eq!(write(&table.data_type, &value), Ok(Data::Full(octets.clone())));
    assert_eq!(read_full(&table.data_type, &octets), Ok(value.clone()));
    // A path to the row itself has no index.
    let row_type = table.data_type.step(3).unwrap();
    assert_eq!(read_full(row_type, &octets[4..]).as_ref(), Ok(value.step(3).unwrap()));
    // A length that counts its padding, as some implementations send.
    let name = catalog.data_type("VlanPriorityType").unwrap();
    assert_eq!(read_full(&name, &[5, 0, 0, 0]), Ok(Value::Unsigned(5)));
    for (bytes, expected) in [
        (&[5, 0, 0, 0, 0][..], "octet 1: 4 octets too many"),
        (&[5, 1], "octet 1: 1 octets too many"),
        (&[8], "octet 0: the value: 8 is out of range (allowed: 0 to 7)"),
        (&[], "octet 0: expected 1 octets"),
    ] {
        assert_eq!(read_full(&name, bytes).unwrap_err().to_string(), expected);
    }
    assert_eq!(read_full(&name, &[8]).unwrap_err().code(), ResultCode::VALUE_OUT_OF_RANGE);
    let twice = [octets.clone(), octets].concat();
    let fault = read_full(&table.data_type, &twice).unwrap_err();
    assert_eq!(fault.to_string(), "octet 16: the value: has row 3 twice");
}

#[test]
fn a_flags_value_is_a_bit_mask() {
    let flags = Flags {
        ack: Ack::Always,
        priority: 5,
        mode: Mode::AllOrNone,
        atomic: true,
        phase: Phase::End,
    };
    assert_eq!(flags.bits(), 3 << 30 | 5 << 27 | 1 << 22 | 1 << 21 | 2 << 19);
    for bits in (0..32).map(|bit| 1u32 << bit).chain([u32::MAX, 0, flags.bits()]) {
        assert_eq!(Flags::from_bits(bits).bits(), bits & 0xF8F8_0000);
    }
}

proptest! {
    #[test]
    fn encoded_values_decode_to_the_same_value((data_type, value) in typed_value()) {
        let data = write(&data_type, &value).unwrap();
        let (back, whole) = read(&data_type, &data).unwrap().unwrap();
        prop_assert_eq!(&back, &value);
        prop_assert_eq!(whole, matches!(data, Data::Full(_)));
        let parts = write_sparse(&data_type, &value).unwrap();
        let (back, _) = read(&data_type, &parts).unwrap().unwrap();
        prop_assert_eq!(&back, &value);
    }

    #[test]
    fn an_encoded_value_has_the_width_of_its_type((data_type, value) in typed_value()) {
        if let (Some(width), Data::Full(bytes)) = (data_type.width(), write(&data_type, &value).unwrap()) {
            prop_assert_eq!(bytes.len(), width);
        }
    }

    #[test]
    fn any_octets_are_decoded_or_rejected(
        data_type in data_type(),
        bytes in proptest::collection::vec(prop_oneof![Just(0u8), Just(1), any::<u8>()], 0..80),
    ) {
        for read in [read_full(&data_type, &bytes), read_sparse(&data_type, &bytes)] {
            match read {
                Ok(value) => prop_assert_eq!(data_type.check_partial(&value), Ok(())),
                Err(fault) => prop_assert!(fault.at <= bytes.len()),
            }
        }
    }

    #[test]
    fn modified_octets_are_decoded_or_rejected(
        (data_type, value) in typed_value(),
        place in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let (Data::Full(mut bytes) | Data::Sparse(mut bytes)) = write(&data_type, &value).unwrap()
        else { unreachable!() };
        if !bytes.is_empty() {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        drop((read_full(&data_type, &bytes), read_sparse(&data_type, &bytes)));
    }
}
