//! Tests of requests and their responses.

use super::*;

#[test]
fn an_associated_element_accepts_configurations_and_queries() {
    let mut net = Net::new(&settings());
    assert_eq!(net.fe.primary(), Some(CE));
    assert_eq!(net.ce(CE).fe(), Some(FE));
    assert!(net.element.forwards);
    assert_eq!(net.get("FEPO", "FEHI"), "500");
    assert_eq!(net.get("FEObject", "FEState"), "OperEnable");
    assert_eq!(net.get("FEObject", "FEName"), "test");
    let supported = "{LFBName=\"IPv4UcastLPM\", LFBClassID=10, LFBVersion=\"1.0\"}";
    assert_eq!(net.get("FEObject", "SupportedLFBs[9]"), supported);
    assert_eq!(net.set("BasicMetadataDispatch", "MetadataID", "13"), []);
    assert_eq!(net.get("BasicMetadataDispatch", "MetadataID"), "13");
    assert_eq!(net.set("BasicMetadataDispatch", "MetadataDispatchTable[4]", ROW), []);
    assert_eq!(net.get("BasicMetadataDispatch", "MetadataDispatchTable[4].MetadataValue"), "5");
    assert_eq!(net.get("FEPO", "AllCEs[0].CEStatus"), "IsMaster");
    assert_eq!(net.get("IPv4UcastLPM", "IPv4PrefixTable[1]"), "! no component at the path");
}

#[test]
fn invalid_configurations_fail_with_specific_result_codes() {
    let mut net = Net::new(&settings());
    assert_eq!(net.set("EtherPHYCop", "AdminStatus", "Up"), [ResultCode::INSTANCE_NOT_FOUND]);
    assert_eq!(net.set("FEPO", "FEID", "9"), [ResultCode::READ_ONLY]);
    assert_eq!(net.set("FEObject", "FEState", "OperDisable"), [ResultCode::VALUE_OUT_OF_RANGE]);
    assert_eq!(net.set("FEPO", "CEID", "3"), [ResultCode::VALUE_OUT_OF_RANGE]);
    assert_eq!(net.set("BasicMetadataDispatch", "MetadataDispatchTable[1]", ROW), []);
    let same = net.set("BasicMetadataDispatch", "MetadataDispatchTable[2]", ROW);
    assert_eq!(same, [ResultCode::EXISTS]);
    let raw = |path: &[u32], data| {
        Select::one(
            DISPATCH,
            1,
            Operation::on(OperationKind::Set, vec![PathData::with(path, data)]),
        )
    };
    for (select, code) in [
        (raw(&[9], Data::Full(vec![0; 4])), ResultCode::INVALID_PATH),
        (raw(&[1], Data::Full(vec![0; 9])), ResultCode::LENGTH_MISMATCH),
        (raw(&[1], Data::None), ResultCode::INVALID_TLV),
        (raw(&[2, 9, 1], Data::Full(vec![0; 4])), ResultCode::COMPONENT_DOES_NOT_EXIST),
        (Select { class: 4711, ..raw(&[1], Data::None) }, ResultCode::LFB_UNKNOWN),
    ] {
        let correlator = net.ce(CE).configure(vec![select.clone()], Mode::Continue).unwrap();
        assert_eq!(net.answer(correlator).failures()[0].1, code, "{select:?}");
    }
    // An unknown class among the selected instances.
    let unknown = net.set("FEObject", "LFBSelectors[7]", "{1=4711, 2=1}");
    assert_eq!(unknown, [ResultCode::LFB_UNKNOWN]);
    assert_eq!(net.set("FEObject", "LFBSelectors[7]", "{1=3, 2=1}"), []);
    assert_eq!(net.set("EtherPHYCop", "AdminStatus", "Up"), []);
}

#[test]
fn the_execution_mode_decides_which_operations_take_effect() {
    let good = || set("BasicMetadataDispatch", "MetadataID", "1");
    let bad = || set("EtherPHYCop", "AdminStatus", "Up");
    let later = || set("BasicMetadataDispatch", "MetadataDispatchTable[4]", ROW);
    let unspecified = ResultCode::UNSPECIFIED;
    let missing = ResultCode::INSTANCE_NOT_FOUND;
    for (mode, codes, id, row) in [
        (Mode::AllOrNone, vec![unspecified, missing, unspecified], "0", false),
        (Mode::UntilFailure, vec![missing, unspecified], "1", false),
        (Mode::Continue, vec![missing], "1", true),
    ] {
        let mut net = Net::new(&settings());
        let selects = vec![good(), bad(), later()];
        let correlator = net.ce(CE).configure(selects, mode).unwrap();
        let reported: Vec<_> =
            net.answer(correlator).failures().into_iter().map(|(_, code)| code).collect();
        assert_eq!(reported, codes, "{mode:?}");
        assert_eq!(net.element.text(DISPATCH, "MetadataID"), id, "{mode:?}");
        let there = !net.element.text(DISPATCH, "MetadataDispatchTable[4]").starts_with('!');
        assert_eq!(there, row, "{mode:?}");
    }
}

#[test]
fn responses_follow_the_ack_flag() {
    let mut net = Net::new(&settings());
    let good = || Body::Config(vec![set("BasicMetadataDispatch", "MetadataID", "1")]);
    let both = || {
        let bad = set("EtherPHYCop", "AdminStatus", "Up");
        Body::Config(vec![set("BasicMetadataDispatch", "MetadataID", "1"), bad])
    };
    for (ack, well, ill) in
        [(Ack::Never, 0, 0), (Ack::Success, 1, 0), (Ack::Failure, 0, 1), (Ack::Always, 1, 2)]
    {
        let flags = Flags { ack, mode: Mode::Continue, priority: 5, ..Flags::default() };
        let leaves = |messages: &[Message]| -> usize {
            messages.iter().map(|message| message.body.selects().len()).sum()
        };
        assert_eq!(leaves(&net.raw(good(), flags, Channel::High)), well, "{ack:?}");
        let sent = net.raw(both(), flags, Channel::High);
        assert_eq!(leaves(&sent), ill, "{ack:?}");
        // A response has the priority and the correlator of its request.
        for message in sent {
            assert_eq!((message.header.flags.priority, message.header.correlator), (5, 77));
        }
    }
}

#[test]
fn a_transaction_takes_effect_on_commit_and_is_final_once_complete() {
    let mut net = Net::new(&settings());
    let row = |index: u32| {
        let text = format!("{{1={index}, 2=0}}");
        set("BasicMetadataDispatch", &format!("MetadataDispatchTable[{index}]"), &text)
    };
    let rows =
        |net: &Net| net.element.text(DISPATCH, "MetadataDispatchTable").matches("Value").count();
    for index in 0..5 {
        let correlator = net.ce(CE).transact(vec![row(index)]).unwrap();
        assert_eq!(net.answer(correlator).failures(), []);
    }
    assert_eq!((rows(&net), net.element.commits_done), (0, 0));
    // Other configurations are rejected until the transaction ends.
    assert_eq!(net.set("BasicMetadataDispatch", "MetadataID", "1"), [ResultCode::BUSY]);
    let correlator = net.ce(CE).commit().unwrap();
    assert_eq!(net.answer(correlator).failures(), []);
    assert_eq!((rows(&net), net.element.commits_done), (5, 1));
    // Roll back a committed transaction.
    let correlator = net.ce(CE).abort().unwrap();
    assert_eq!(net.answer(correlator).failures(), []);
    assert_eq!(rows(&net), 0);
    // A complete transaction stays in effect.
    net.ce(CE).transact(vec![row(1)]).unwrap();
    net.ce(CE).commit().unwrap();
    net.run();
    net.ce(CE).complete().unwrap();
    let before = net.messages;
    net.run();
    assert_eq!(net.messages, before, "TRCOMP has no response");
    assert_eq!(rows(&net), 1);
    assert_eq!(net.ce(CE).abort(), Err(RequestError::Transaction));
    assert_eq!(net.set("BasicMetadataDispatch", "MetadataID", "1"), []);
}

#[test]
fn a_transaction_that_fails_or_times_out_has_no_effect() {
    let mut net = Net::new(&settings());
    let correlator =
        net.ce(CE).transact(vec![set("BasicMetadataDispatch", "MetadataID", "9")]).unwrap();
    assert_eq!(net.answer(correlator).failures(), []);
    let correlator = net.ce(CE).transact(vec![set("EtherPHYCop", "AdminStatus", "Up")]).unwrap();
    assert_eq!(net.answer(correlator).failures()[0].1, ResultCode::INSTANCE_NOT_FOUND);
    let correlator = net.ce(CE).commit().unwrap();
    assert_eq!(net.answer(correlator).failures()[0].1, ResultCode::INSTANCE_NOT_FOUND);
    assert_eq!(net.element.text(DISPATCH, "MetadataID"), "0");
    net.ce(CE).abort().unwrap();
    // The element itself may reject the commit.
    net.element.commits = ResultCode::MEMORY_ERROR;
    net.ce(CE).transact(vec![set("BasicMetadataDispatch", "MetadataID", "9")]).unwrap();
    let correlator = net.ce(CE).commit().unwrap();
    assert_eq!(net.answer(correlator).failures()[0].1, ResultCode::MEMORY_ERROR);
    net.element.commits = ResultCode::SUCCESS;
    net.ce(CE).abort().unwrap();
    net.run();
    // An open transaction times out, so it does not block others forever.
    net.ce(CE).transact(vec![set("BasicMetadataDispatch", "MetadataID", "9")]).unwrap();
    net.run();
    assert_eq!(net.set("BasicMetadataDispatch", "MetadataID", "1"), [ResultCode::BUSY]);
    net.wait(61_000);
    assert_eq!(net.set("BasicMetadataDispatch", "MetadataID", "1"), []);
    assert_eq!(net.element.text(DISPATCH, "MetadataID"), "1");
    // Another execution mode fails the transaction.
    let (ack, mode, atomic) = (Ack::Always, Mode::Continue, true);
    let flags = Flags { ack, mode, atomic, ..Flags::default() };
    let body = Body::Config(vec![set("BasicMetadataDispatch", "MetadataID", "3")]);
    let sent = net.raw(body, flags, Channel::High);
    let (correlator, selects) = (77, sent[0].body.selects().to_vec());
    let answer = Answer { correlator, selects };
    assert_eq!(answer.failures()[0].1, ResultCode::INVALID_FLAGS);
}

#[test]
fn a_row_can_be_set_by_any_nesting_of_paths() {
    let word = |number: u32| Data::Full(number.to_be_bytes().to_vec());
    let row = Data::Full([5u32.to_be_bytes(), 6u32.to_be_bytes()].concat());
    let indexed = Data::Full([4u32, 5, 6].map(u32::to_be_bytes).concat());
    let fields = || vec![PathData::with([1], word(5)), PathData::with([2], word(6))];
    let shapes = [
        PathData::with([2, 4], row.clone()),
        PathData::with([2, 4], Data::Paths(fields())),
        PathData::with([2], Data::Paths(vec![PathData::with([4], row)])),
        PathData::with([2], Data::Paths(vec![PathData::with([4], Data::Paths(fields()))])),
        PathData::with([2], indexed),
    ];
    for shape in shapes {
        let mut net = Net::new(&settings());
        let operation = Operation::on(OperationKind::Set, vec![shape.clone()]);
        let select = Select::one(DISPATCH, 1, operation);
        let correlator = net.ce(CE).configure(vec![select], Mode::AllOrNone).unwrap();
        let reply = net.answer(correlator);
        assert_eq!(reply.failures(), [], "{shape:?}");
        let row = net.element.text(DISPATCH, "MetadataDispatchTable");
        assert_eq!(row, "[4={MetadataValue=5, OutputIndex=6}]", "{shape:?}");
        // The response has the shape of the request.
        fn same(asked: &PathData, reported: &PathData) -> bool {
            asked.ids == reported.ids
                && match (&asked.data, &reported.data) {
                    (Data::Paths(asked), Data::Paths(reported)) => {
                        asked.len() == reported.len()
                            && asked
                                .iter()
                                .zip(reported)
                                .all(|(asked, reported)| same(asked, reported))
                    }
                    (_, Data::Outcome(outcome)) => outcome.code().is_success(),
                    _ => false,
                }
        }
        assert!(same(&shape, &reply.selects[0].operations[0].paths()[0]), "{reply:?}");
    }
}

#[test]
fn keys_and_ranges_select_rows() {
    let mut net = Net::new(&settings());
    for (index, value) in [(1, 10), (5, 50), (9, 90)] {
        let path = format!("MetadataDispatchTable[{index}]");
        assert_eq!(net.set("BasicMetadataDispatch", &path, &format!("{{1={value}, 2=1}}")), []);
    }
    let selected = |selector, data| PathData { ids: vec![2], selector: Some(selector), data };
    let key = |value: u32| Selector::Key { key: 1, content: value.to_be_bytes().to_vec() };
    let ask = |net: &mut Net, kind, path| {
        let select = Select::one(DISPATCH, 1, Operation::on(kind, vec![path]));
        let correlator = match kind {
            OperationKind::Get => net.ce(CE).query(vec![select]),
            _ => net.ce(CE).configure(vec![select], Mode::AllOrNone),
        };
        net.answer(correlator.unwrap())
    };
    // The response has the index in place of the key (RFC 5810 section 7.1.9).
    let found = ask(&mut net, OperationKind::Get, selected(key(50), Data::None));
    assert_eq!(found.leaves()[0].0.path, [2, 5]);
    let data = Data::Paths(vec![PathData::with([2], Data::Full(7u32.to_be_bytes().into()))]);
    let changed = ask(&mut net, OperationKind::Set, selected(key(90), data));
    assert_eq!((changed.leaves()[0].0.path.clone(), changed.failures()), (vec![2, 9, 2], vec![]));
    assert_eq!(net.element.text(DISPATCH, "MetadataDispatchTable[9].OutputIndex"), "7");
    let missing = ask(&mut net, OperationKind::Get, selected(key(51), Data::None));
    assert_eq!(missing.failures()[0].1, ResultCode::NOT_FOUND);
    let range = |first, last| Selector::Range { first, last };
    let found = ask(&mut net, OperationKind::Get, selected(range(2, 9), Data::None));
    let values = found.values(&library::standard()).unwrap();
    assert!(values[&place("BasicMetadataDispatch", "2")].rows().unwrap().keys().eq(&[5, 9]));
    let empty = ask(&mut net, OperationKind::Get, selected(range(2, 4), Data::None));
    assert_eq!(*empty.leaves()[0].1, Data::Outcome(Outcome::Plain(0x1f)));
    // Extended results, once enabled.
    assert_eq!(net.set("FEPO", "EResultAdmin", "2"), []);
    let empty = ask(&mut net, OperationKind::Get, selected(range(2, 4), Data::None));
    assert_eq!(*empty.leaves()[0].1, Data::Outcome(Outcome::of(ResultCode::EMPTY, true)));
    let gone = ask(&mut net, OperationKind::Delete, selected(range(0, 5), Data::None));
    assert_eq!(gone.failures(), []);
    assert!(net.element.text(DISPATCH, "MetadataDispatchTable").starts_with("[9="));
    let gone = ask(&mut net, OperationKind::Delete, selected(key(90), Data::None));
    assert_eq!((gone.leaves()[0].0.path.clone(), gone.failures()), (vec![2, 9], vec![]));
}

#[test]
fn large_tables_are_returned_in_several_messages() {
    let mut net = Net::new(&settings());
    let rows = (0..20_000).map(|index: u64| {
        let address = (index as u32) << 8;
        (
            index as u32,
            Value::struct_of([
                (1, Value::Bytes(address.to_be_bytes().to_vec())),
                (2, Value::Unsigned(24)),
                (3, Value::Boolean(false)),
                (4, Value::Boolean(false)),
                (5, Value::Unsigned(0)),
                (6, Value::Unsigned(index)),
            ]),
        )
    });
    let table = Value::Array(rows.collect());
    net.element.now.get_mut(&(LPM, 1)).unwrap().insert(1, table.clone());
    let place = place("IPv4UcastLPM", "IPv4PrefixTable");
    let before = net.messages;
    let correlator = net.ce(CE).get(&place).unwrap();
    let answer = net.answer(correlator);
    assert!(net.messages - before > 2, "{}", net.messages - before);
    assert_eq!(answer.values(&library::standard()).unwrap()[&place], table);
    // Other requested parts are in the response too, and properties have the number of rows.
    let operation = Operation::on(
        OperationKind::GetProperties,
        vec![PathData::named([1]), PathData::named([1, 7])],
    );
    let correlator = net.ce(CE).query(vec![Select::one(LPM, 1, operation)]).unwrap();
    let answer = net.answer(correlator);
    let Data::Full(bytes) = answer.leaves()[0].1 else { panic!() };
    let expected =
        [&[3][..], &20_000u32.to_be_bytes(), &19_999u32.to_be_bytes(), &20_000u32.to_be_bytes()];
    assert_eq!(*bytes, expected.concat());
}

#[test]
fn a_long_response_is_split_into_several_messages() {
    let mut net = Net::new(&settings());
    for rows in [4_000u32, 15_000] {
        let delete = |row: u32| PathData::named([2, row]);
        let operations = (0..rows).map(delete).collect::<Vec<_>>();
        let select = |some: &[PathData]| {
            Select::one(DISPATCH, 1, Operation::on(OperationKind::Delete, some.to_vec()))
        };
        let selects = operations.chunks(3_000).map(select).collect();
        let correlator = net.ce(CE).configure(selects, Mode::Continue).unwrap();
        let failures = net.answer(correlator).failures();
        assert!(failures.iter().all(|(_, code)| *code == ResultCode::NOT_FOUND));
        // A response that is too long for one message has several.
        assert_eq!(failures.len() as u32, rows);
    }
}

#[test]
fn rows_are_set_by_a_range_of_their_table() {
    let mut net = Net::new(&settings());
    let row = |index: &u32| [*index, 100 + *index, 0].map(u32::to_be_bytes).concat();
    let mut set = |range: (u32, u32), rows: &[u32]| {
        let selector = Some(Selector::Range { first: range.0, last: range.1 });
        let data = Data::Full(rows.iter().flat_map(row).collect());
        let path = PathData { ids: vec![2], selector, data };
        let select = Select::one(DISPATCH, 1, Operation::on(OperationKind::Set, vec![path]));
        let correlator = net.ce(CE).configure(vec![select], Mode::AllOrNone).unwrap();
        let failures = net.answer(correlator).failures();
        let codes: Vec<ResultCode> = failures.into_iter().map(|(_, code)| code).collect();
        (codes, net.element.now[&(DISPATCH, 1)][&2].rows().unwrap().keys().copied().collect())
    };
    let done = |keys: &[u32]| (Vec::new(), keys.to_vec());
    assert_eq!(set((5, 9), &[5, 7]), done(&[5, 7]));
    // Other rows stay unchanged, inside the range and outside.
    assert_eq!(set((7, 20), &[12]), done(&[5, 7, 12]));
    let refused = |keys: &[u32]| (vec![ResultCode::INVALID_PARAMETERS], keys.to_vec());
    assert_eq!(set((5, 9), &[8, 10]), refused(&[5, 7, 12]), "10 is not in the range");
    assert_eq!(set((5, 9), &[]), refused(&[5, 7, 12]));
}

#[test]
fn damaged_requests_do_not_corrupt_the_element() {
    let mut net = Net::new(&settings());
    let catalog = library::standard();
    let mut requests = Vec::new();
    let table = |path: &str| set("BasicMetadataDispatch", path, ROW);
    let key = Selector::Key { key: 1, content: vec![0, 0, 0, 5] };
    let keyed = PathData { ids: vec![2], selector: Some(key), data: Data::None };
    let bodies = [
        Body::Config(vec![table("MetadataDispatchTable[4]"), set("FEPO", "FEHI", "100")]),
        Body::Config(vec![set("FEObject", "LFBSelectors[3]", "{1=17, 2=1}")]),
        Body::Config(vec![
            set("FEPO", "BackupCEs", "[1073741826]"),
            set("FEPO", "CEID", "1073741825"),
        ]),
        Body::Config(vec![Select::one(1, 1, Operation::on(OperationKind::Commit, Vec::new()))]),
        Body::Query(vec![Select::one(DISPATCH, 1, Operation::on(OperationKind::Get, vec![keyed]))]),
        Body::Heartbeat,
    ];
    for (place, body) in bodies.into_iter().enumerate() {
        let (ack, mode, atomic) = (Ack::Always, Mode::Continue, place % 2 == 1);
        let flags = Flags { ack, mode, atomic, ..Flags::default() };
        let header = Header { source: CE, destination: FE, correlator: 3, flags };
        let mut bytes = Vec::new();
        encode(&Message { header, body }, &mut bytes).unwrap();
        requests.push(bytes);
    }
    let mut number = 1u64;
    let mut next = |below: usize| {
        number =
            number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (number >> 33) as usize % below
    };
    let mut replies = 0;
    for _ in 0..4_000 {
        let mut bytes = requests[next(requests.len())].clone();
        for _ in 0..next(4) {
            let at = next(bytes.len());
            bytes[at] = [next(256) as u8, 0, 1, 0xff][next(4)];
        }
        if !net.fe.is_associated(CE) {
            net.now += ms(2_000);
            net.fe.tick(&mut net.element, net.now);
            net.run();
        }
        let channel = Channel::ALL[next(8).saturating_sub(5)];
        net.fe.receive(CE, channel, &bytes, &mut net.element, net.now);
        replies += std::iter::from_fn(|| net.fe.poll_transmit(CE)).count();
        net.run();
    }
    assert!(replies > 1_000, "{replies}");
    for ((class, _), components) in &net.element.now {
        let class = catalog.class_by_id(*class).unwrap();
        for (id, value) in components {
            assert_eq!(class.component_by_id(*id).unwrap().data_type.check(value), Ok(()));
        }
    }
}
