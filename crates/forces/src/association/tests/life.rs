//! Tests of associations, packets, events and failover.

use super::*;

#[test]
fn heartbeats_follow_the_fe_and_ce_policies() {
    let mut net = Net::new(&settings());
    assert_eq!(net.set("FEPO", "FEHBPolicy", "FEHBPolicy1"), []);
    let before = net.messages;
    net.wait(5_100);
    assert_eq!(net.messages - before, 10, "one per 500 ms");
    assert_eq!(net.set("FEPO", "FEHBPolicy", "FEHBPolicy0"), []);
    let before = net.messages;
    net.wait(9_000);
    assert_eq!(net.messages, before);
    // The CE requests heartbeats of an idle element, which responds: the association stays up.
    net.wait(120_000);
    assert_eq!(net.fe.primary(), Some(CE));
    // An FE responds only to heartbeats that request it.
    let ask = Flags { ack: Ack::Always, priority: 1, ..Flags::default() };
    let sent = net.raw(Body::Heartbeat, ask, Channel::Low);
    assert_eq!(sent.len(), 1);
    let header = sent[0].header;
    assert_eq!((header.source, header.destination, header.correlator), (FE, CE, 77));
    assert_eq!(header.flags.ack, Ack::Never);
    for ack in [Ack::Never, Ack::Success, Ack::Failure] {
        let flags = Flags { ack, ..Flags::default() };
        assert_eq!(net.raw(Body::Heartbeat, flags, Channel::Low), []);
    }
    // A CE never responds to heartbeats.
    let mut bytes = Vec::new();
    let header = Header { source: FE, destination: CE, correlator: 1, flags: ask };
    encode(&Message { header, body: Body::Heartbeat }, &mut bytes).unwrap();
    let now = net.now;
    net.ce(CE).receive(Channel::Low, &bytes, now);
    assert_eq!(net.ce(CE).poll_transmit(), None);
}

#[test]
fn an_element_drops_a_silent_ce_and_stops_forwarding() {
    let mut net = Net::new(&settings());
    // The CE is silent but connected.
    net.ces[0].1 = None;
    net.dead.push(CE);
    net.wait(29_000);
    assert!(net.element.forwards);
    net.wait(2_000);
    assert!(!net.element.forwards);
    assert!(net.fe_events.contains(&FeEvent::Lost(CE, TeardownReason::HEARTBEATS)));
    // The element retries with a pause until the CE is reachable.
    net.dead.clear();
    net.wait(2_000);
    assert_eq!(net.fe.primary(), Some(CE));
    assert!(net.element.forwards);
}

#[test]
fn a_teardown_ends_the_association_on_both_sides() {
    let mut net = Net::new(&settings());
    net.ce(CE).teardown(TeardownReason::NORMAL);
    net.dead.push(CE);
    net.run();
    assert!(net.fe_events.contains(&FeEvent::Lost(CE, TeardownReason::NORMAL)));
    assert!(net.fe_events.contains(&FeEvent::Disconnect(CE)));
    assert!(!net.element.forwards);
    let mut net = Net::new(&settings());
    net.fe.teardown(CE, TeardownReason::MEMORY, &mut net.element);
    net.dead.push(CE);
    net.run();
    assert!(net.ce_events.contains(&(CE, CeEvent::Down(TeardownReason::MEMORY))));
}

#[test]
fn messages_on_the_wrong_channel_or_damaged_are_dropped() {
    let mut net = Net::new(&settings());
    let body = || Body::Config(vec![set("BasicMetadataDispatch", "MetadataID", "3")]);
    let flags = Flags { ack: Ack::Always, mode: Mode::AllOrNone, ..Flags::default() };
    assert_eq!(net.raw(body(), flags, Channel::Low), []);
    assert_eq!(net.raw(body(), flags, Channel::Middle), []);
    assert_eq!(net.element.text(DISPATCH, "MetadataID"), "0");
    assert_eq!(net.raw(body(), flags, Channel::High).len(), 1);
    let mut bytes = Vec::new();
    let header = Header { source: CE, destination: Id(9), correlator: 1, flags };
    encode(&Message { header, body: body() }, &mut bytes).unwrap();
    net.fe.receive(CE, Channel::High, &bytes, &mut net.element, net.now);
    for end in [0, 3, 24, 30] {
        net.fe.receive(CE, Channel::High, &bytes[..end], &mut net.element, net.now);
    }
    assert!(net.fe.poll_transmit(CE).is_none());
    assert_eq!(net.get("FEPO", "AllCEs[0].Statistics.RecvErrPackets"), "7");
    // The execution mode of a query does not matter.
    let path = vec![PathData::named([7])];
    let query = vec![Select::one(2, 1, Operation::on(OperationKind::Get, path))];
    for mode in [Mode::Unsaid, Mode::UntilFailure] {
        let flags = Flags { mode, ..Flags::default() };
        assert_eq!(net.raw(Body::Query(query.clone()), flags, Channel::High).len(), 1);
    }
}

#[test]
fn packets_are_redirected_in_both_directions_with_low_priority() {
    let mut net = Net::new(&settings());
    let redirect = Redirect { metadata: vec![(1, vec![0, 0, 0, 7])], packet: Some(vec![1; 64]) };
    net.ce(CE).redirect(redirect.clone()).unwrap();
    net.run();
    assert_eq!(net.element.redirected, std::slice::from_ref(&redirect));
    assert!(net.fe.redirect(redirect.clone(), net.now));
    let header = Header { source: CE, destination: FE, correlator: 5, flags: Flags::default() };
    let path = vec![PathData::named([7])];
    let query = vec![Select::one(2, 1, Operation::on(OperationKind::Get, path))];
    let mut bytes = Vec::new();
    encode(&Message { header, body: Body::Query(query) }, &mut bytes).unwrap();
    net.fe.receive(CE, Channel::High, &bytes, &mut net.element, net.now);
    let order: Vec<_> = std::iter::from_fn(|| net.fe.poll_transmit(CE)).map(|(it, _)| it).collect();
    assert_eq!(order, [Channel::High, Channel::Low]);
    // Excess packets are dropped, so memory stays bounded.
    let large = Redirect { metadata: Vec::new(), packet: Some(vec![0; 60_000]) };
    let sent = (0..1000).filter(|_| net.fe.redirect(large.clone(), net.now)).count();
    assert!((500..QUEUE_OCTETS_MAX / 60_000 + 1).contains(&sent), "{sent}");
}

fn happening(event: u32, value: u64) -> Happening {
    let value = Some(Value::Unsigned(value));
    Happening { class: 3, instance: 1, event, subscripts: Vec::new(), value, reported: Vec::new() }
}

#[test]
fn events_are_sent_to_subscribers_only() {
    let mut net = Net::new(&settings());
    net.element = Memory::new(&[3]);
    let tell = |net: &mut Net, value: u64, milliseconds: u64| {
        net.now += ms(milliseconds);
        net.ce_events.clear();
        net.fe.happened(&happening(2, value), &mut net.element, net.now);
        net.run();
        net.ce_events.iter().filter(|(_, event)| matches!(event, CeEvent::Notified(_))).count()
    };
    assert_eq!(tell(&mut net, 3, 0), 0, "no CE has subscribed");
    let event = place("EtherPHYCop", "LinkSpeedChanged");
    let subscribe = |net: &mut Net, set: &[(u32, u32)]| {
        let correlator = net.ce(CE).subscribe(&event, set).unwrap();
        assert_eq!(net.answer(correlator).failures(), []);
    };
    subscribe(&mut net, &[(2, 1)]);
    assert_eq!(tell(&mut net, 3, 1), 1);
    let Some((_, CeEvent::Notified(selects))) = net.ce_events.last() else { panic!() };
    let path = &selects[0].operations[0].paths()[0];
    assert_eq!((&path.ids[..], &path.data), (&[60, 2][..], &Data::Full(vec![0; 4])));
    // RFC 5812 section 4.8.5.1, with a count of 5 and 500 ms: notify of the first, suppress five,
    // and notify of the next one, or of the first after the interval.
    subscribe(&mut net, &[(2, 1), (5, 5), (6, 500)]);
    let reported: Vec<_> = (0..8).map(|_| tell(&mut net, 3, 1)).collect();
    assert_eq!(reported.iter().sum::<usize>(), 2, "{reported:?}");
    assert_eq!(tell(&mut net, 3, 501), 1);
    // Changes smaller than the hysteresis are ignored.
    subscribe(&mut net, &[(2, 1), (4, 10), (5, 0), (6, 0)]);
    assert_eq!(
        [100, 105, 109, 110, 101, 100].map(|value| tell(&mut net, value, 1)),
        [1, 0, 0, 1, 0, 1]
    );
    let operation = Operation::on(OperationKind::GetProperties, vec![PathData::named([60, 2])]);
    let correlator = net.ce(CE).query(vec![Select::one(3, 1, operation)]).unwrap();
    let answer = net.answer(correlator);
    let Data::Full(bytes) = answer.leaves()[0].1 else { panic!() };
    let words = [1u32, 0, 10, 0, 0].map(u32::to_be_bytes).concat();
    assert_eq!(*bytes, [&[3][..], &words].concat());
    subscribe(&mut net, &[(2, 0)]);
    assert_eq!(tell(&mut net, 900, 1), 0);
}

#[test]
fn a_backup_takes_over_when_the_primary_is_lost() {
    let mut net =
        Net::new(&FeSettings { backups: vec![CE2], ha_mode: 1, goes_on: true, ..settings() });
    assert_eq!(net.fe.primary(), Some(CE));
    net.kill(CE);
    assert_eq!(net.fe.primary(), Some(CE2));
    assert!(net.element.forwards);
    let reported: Vec<_> = net
        .ce_events
        .iter()
        .filter_map(|(id, event)| match event {
            CeEvent::Notified(selects) => Some((*id, selects[0].operations[0].paths()[0].clone())),
            _ => None,
        })
        .collect();
    let id = |id: Id| Data::Full(id.0.to_be_bytes().to_vec());
    assert_eq!(
        reported,
        [(CE2, PathData::with([61, 1], id(CE))), (CE2, PathData::with([61, 2], id(CE2))),]
    );
    // Without any CE it continues until CEFTI expires.
    net.kill(CE2);
    net.wait(299_000);
    assert!(net.element.forwards);
    net.wait(2_000);
    assert!(!net.element.forwards);
    net.dead.clear();
    net.wait(3_000);
    assert!(net.fe.primary().is_some() && net.element.forwards);
}

#[test]
fn hot_standby_associates_all_ces_and_obeys_the_primary() {
    let mut net =
        Net::new(&FeSettings { backups: vec![CE2], ha_mode: 2, goes_on: true, ..settings() });
    assert!(net.fe.is_associated(CE) && net.fe.is_associated(CE2));
    // A backup may query but not configure.
    let place = place("FEPO", "CEID");
    let correlator = net.ce(CE2).get(&place).unwrap();
    assert_eq!(net.answer(correlator).failures(), []);
    let select = set("BasicMetadataDispatch", "MetadataID", "3");
    net.ce(CE2).configure(vec![select], Mode::AllOrNone).unwrap();
    net.run();
    assert_eq!(net.element.text(DISPATCH, "MetadataID"), "0");
    // The primary CE hands over to the other.
    assert_eq!(net.set("FEPO", "CEID", &CE2.0.to_string()), []);
    assert_eq!(net.fe.primary(), Some(CE2));
    let changed = |net: &Net, id| {
        let reported =
            |(it, event): &&(Id, CeEvent)| *it == id && matches!(event, CeEvent::Notified(_));
        net.ce_events.iter().filter(reported).count()
    };
    assert_eq!((changed(&net, CE), changed(&net, CE2)), (2, 2));
    // It takes over again without a pause when the other is lost.
    net.kill(CE2);
    assert_eq!(net.fe.primary(), Some(CE));
    assert!(net.element.forwards);
}

#[test]
fn the_ce_assigns_an_id_only_to_admitted_elements() {
    let mut fe = Fe::new(&FeSettings { id: Id::NONE, ..settings() }, ms(0));
    let mut element = Memory::new(&[]);
    let mut gives = CeSettings { gives: Some(Id(42)), ..CeSettings::new(CE) };
    for (admits, expected) in [(None, Some(Id(42))), (Some(vec![Id(43)]), None)] {
        gives.admits = admits;
        let mut ce = Ce::new(gives.clone(), ms(0));
        fe = Fe::new(&FeSettings { id: Id::NONE, ..settings() }, ms(0));
        fe.connected(CE, ms(0));
        let (channel, bytes) = fe.poll_transmit(CE).unwrap();
        ce.receive(channel, &bytes, ms(0));
        let (channel, bytes) = ce.poll_transmit().unwrap();
        fe.receive(CE, channel, &bytes, &mut element, ms(0));
        assert_eq!(ce.fe(), expected);
        assert_eq!(fe.is_associated(CE), expected.is_some());
        assert_eq!(fe.id(), expected.unwrap_or(Id::NONE));
    }
    drop(fe);
}
