//! Tests of encoding and decoding with the use cases of RFC 5810 appendix D, as handwritten bytes.
//!
//! The LFB class of these cases is fictitious, so the tests compare bytes only.

#![allow(clippy::unwrap_used, reason = "a test")]

use forces::wire::*;

fn bytes(text: &str) -> Vec<u8> {
    let digits: String = text.split_whitespace().collect();
    (0..digits.len() / 2)
        .map(|at| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).unwrap())
        .collect()
}

/// Checks one operation on class 0x10, instance 1, in a complete message.
fn check(kind: MessageKind, operation: Operation, expected: &str) {
    let inner = bytes(expected);
    let mut all = vec![0x10, kind.wire()];
    all.extend(((24 + 12 + inner.len()) as u16 / 4).to_be_bytes());
    all.extend(bytes("00000002 40000001 0000000000000007 c8400000"));
    all.extend(bytes("1000"));
    all.extend((12 + inner.len() as u16).to_be_bytes());
    all.extend(bytes("00000010 00000001"));
    all.extend(inner);
    let selects = vec![Select::one(0x10, 1, operation)];
    let body = match kind {
        MessageKind::Config => Body::Config(selects),
        MessageKind::ConfigResponse => Body::ConfigResponse(selects),
        MessageKind::Query => Body::Query(selects),
        _ => Body::QueryResponse(selects),
    };
    let flags = Flags { ack: Ack::Always, priority: 1, mode: Mode::AllOrNone, ..Flags::default() };
    let (source, destination) = (Id(2), Id(0x4000_0001));
    let message = Message { header: Header { source, destination, correlator: 7, flags }, body };
    let mut out = Vec::new();
    encode(&message, &mut out).unwrap();
    assert_eq!(out, all);
    assert_eq!(decode(&all), Ok(message));
}

fn full(ids: &[u32], content: &str) -> PathData {
    PathData::with(ids, Data::Full(bytes(content)))
}

fn success() -> Data {
    Data::Outcome(Outcome::Plain(0))
}

#[test]
fn case_1_get_a_component() {
    check(
        MessageKind::Query,
        Operation::on(OperationKind::Get, vec![PathData::named([1])]),
        "0007 0010  0110 000c 0000 0001 00000001",
    );
    check(
        MessageKind::QueryResponse,
        Operation::on(OperationKind::GetResponse, vec![full(&[1], "00000063")]),
        "0009 0018  0110 0014 0000 0001 00000001  0112 0008 00000063",
    );
}

#[test]
fn case_2_set_a_component() {
    check(
        MessageKind::Config,
        Operation::on(OperationKind::Set, vec![full(&[2], "0000000a")]),
        "0001 0018  0110 0014 0000 0001 00000002  0112 0008 0000000a",
    );
    check(
        MessageKind::ConfigResponse,
        Operation::on(OperationKind::SetResponse, vec![PathData::with([2], success())]),
        "0003 0018  0110 0014 0000 0001 00000002  0114 0008 00000000",
    );
}

#[test]
fn case_5_replace_rows() {
    let rows = [0, 2].map(|row| full(&[row], "00000001 00000002"));
    let table = PathData::with([4], Data::Paths(rows.into()));
    check(
        MessageKind::Config,
        Operation::on(OperationKind::Set, vec![table]),
        "0001 0040  0110 003c 0000 0001 00000004 \
           0110 0018 0000 0001 00000000  0112 000c 00000001 00000002 \
           0110 0018 0000 0001 00000002  0112 000c 00000001 00000002",
    );
}

#[test]
fn case_10_get_a_row_by_key() {
    let selector = Selector::Key { key: 1, content: bytes("00000064") };
    let path = PathData { ids: vec![6], selector: Some(selector), data: Data::None };
    check(
        MessageKind::Query,
        Operation::on(OperationKind::Get, vec![path]),
        "0007 0020  0110 001c 0001 0001 00000006  0111 0010 00000001 0112 0008 00000064",
    );
}

#[test]
fn case_12_get_a_variable_length_string() {
    check(
        MessageKind::QueryResponse,
        Operation::on(
            OperationKind::GetResponse,
            vec![full(&[5], "00000001 0000002a 0112 0007 616263 00")],
        ),
        "0009 0024  0110 0020 0000 0001 00000005 \
           0112 0014 00000001 0000002a 0112 0007 616263 00",
    );
}

#[test]
fn case_16_key_selector_within_a_path() {
    let selector = Selector::Key { key: 1, content: bytes("0000000a") };
    let data = Data::Paths(vec![PathData::named([2])]);
    let path = PathData { ids: vec![7, 10, 2], selector: Some(selector), data };
    check(
        MessageKind::Query,
        Operation::on(OperationKind::Get, vec![path]),
        "0007 0034  0110 0030 0001 0003 00000007 0000000a 00000002 \
           0111 0010 00000001 0112 0008 0000000a \
           0110 000c 0000 0001 00000002",
    );
}

#[test]
fn get_rows_by_range() {
    let selector = Some(Selector::Range { first: 10, last: 20 });
    let path = PathData { ids: vec![3], selector, data: Data::None };
    check(
        MessageKind::Query,
        Operation::on(OperationKind::Get, vec![path]),
        "0007 001c  0110 0018 0002 0001 00000003  0117 000c 0000000a 00000014",
    );
}

#[test]
fn commit_has_no_content_and_its_response_has_a_result() {
    check(MessageKind::Config, Operation::on(OperationKind::Commit, Vec::new()), "000c 0004");
    check(
        MessageKind::ConfigResponse,
        Operation {
            kind: OperationKind::CommitResponse,
            content: Content::Outcome(Outcome::Plain(0)),
        },
        "000d 000c  0114 0008 00000000",
    );
}

/// Returns a query with these encoded operations.
fn query(operations: &str) -> Vec<u8> {
    let inner = bytes(operations);
    let mut all = bytes("1004 0000 40000001 00000002 0000000000000007 00000000 1000 0000");
    all.extend(bytes("00000010 00000001"));
    all.extend(&inner);
    let octets = all.len() as u16;
    all[2..4].copy_from_slice(&(octets / 4).to_be_bytes());
    all[26..28].copy_from_slice(&(octets - 24).to_be_bytes());
    all
}

#[test]
fn exactly_one_selector_flag_is_accepted_at_either_end() {
    let drawn = "0007 0020  0110 001c FLAG 0001 00000006  0111 0010 00000001 0112 0008 00000064";
    for flags in ["0001", "8000"] {
        let read = decode(&query(&drawn.replace("FLAG", flags))).unwrap();
        let path = &read.body.selects()[0].operations[0].paths()[0];
        assert!(matches!(path.selector, Some(Selector::Key { key: 1, .. })), "{flags}");
    }
    for flags in ["0000", "0002", "4000", "0003"] {
        let fault = decode(&query(&drawn.replace("FLAG", flags))).unwrap_err();
        assert_eq!(fault.code(), ResultCode::INVALID_TABLE_FLAGS, "{flags}");
    }
}

#[test]
fn vendor_operations_are_skipped_and_unknown_ones_are_reported() {
    // A vendor operation, and a vendor TLV within a path.
    let read =
        decode(&query("8001 0008 00000000  0007 0014 0110 0010 0000 0001 00000001 8000 0004"));
    let operations = &read.unwrap().body.selects()[0].operations.clone();
    assert_eq!(operations[..], [Operation::on(OperationKind::Get, vec![PathData::named([1])])]);
    for (operations, expected) in [
        ("0001 0004", "octet 36: unexpected operation 0x0001"),
        ("0007 0008 0119 0004", "octet 40: unexpected TLV 0x0119"),
        ("0007 0003", "octet 36: invalid length of 3 octets"),
        ("0007 00ff 00000000", "octet 36: invalid length of 255 octets"),
        ("0007 000c 0110 0008 0000 0001", "octet 48: expected 4 octets"),
        (
            "0007 001c 0110 0018 0000 0001 00000001 0114 0008 00000000 0110 0004",
            "octet 64: unexpected TLV 0x0110",
        ),
    ] {
        let fault = decode(&query(operations)).unwrap_err();
        assert_eq!(fault.to_string(), expected, "{operations}");
    }
}

#[test]
fn invalid_headers_are_rejected() {
    let good = query("0007 0004");
    let check = |place: usize, byte: u8, code: ResultCode| {
        let mut wrong = good.clone();
        wrong[place] = byte;
        assert_eq!(decode(&wrong).unwrap_err().code(), code, "octet {place}");
    };
    assert!(decode(&good).is_ok());
    check(0, 0x20, ResultCode::VERSION_MISMATCH);
    check(1, 0x77, ResultCode::INVALID_MESSAGE_TYPE);
    check(3, 1, ResultCode::LENGTH_MISMATCH);
    check(3, 9, ResultCode::LENGTH_MISMATCH);
    // Reserved bits are ignored.
    let mut reserved = good.clone();
    (reserved[0], reserved[23]) = (0x1f, 0xff);
    assert_eq!(decode(&reserved), decode(&good));
    assert_eq!(frame_octets(&good[..3]), Ok(None));
}
