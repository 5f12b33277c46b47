//! Tests of a manager with an agent, in virtual time and with losses.

#![allow(clippy::unwrap_used)]

use std::sync::LazyLock;

use packet::time::Nanos;
use proptest::prelude::*;
use snmp::client::{ANSWER_NS_MAX, RequestResult, SENDINGS_MAX};
use snmp::mib::{self, Interface, Refusal};
use snmp::*;

const ROUND_TRIP: Nanos = Nanos::from_millis(3);

fn user(auth: Option<(AuthProtocol, &str)>, privacy: Option<&str>) -> Credentials {
    Credentials::User(User {
        name: "watcher".into(),
        auth: auth.map(|(protocol, secret)| (protocol, Secret::new(secret))),
        privacy: privacy.map(Secret::new),
    })
}

fn community(name: &str) -> Credentials {
    Credentials::Community(Secret::new(name))
}

fn table() -> Vec<Binding> {
    let port = |index| Interface {
        index,
        name: format!("port{index}"),
        is_wide: true,
        frames_in: u64::from(index) << 33,
        frames_out: 5,
        ..Interface::default()
    };
    let ports: Vec<Interface> = (1..=40).map(port).collect();
    let mut table = mib::bindings(&ports);
    let value = Value::Octets(b"a switch".to_vec());
    table.push(Binding { name: mib::system_description(), value });
    table.sort_by(|one, other| one.name.cmp(&other.name));
    table
}

/// Runs until every request has a result. `lost` selects the datagrams of the manager that are
/// lost.
fn talk(
    client: &mut Client,
    agent: &mut Agent,
    lost: impl Fn(usize) -> bool,
) -> Vec<RequestResult> {
    let (mut now, mut all, mut count) = (Nanos::from_secs(1000), Vec::new(), 0);
    let table = table();
    loop {
        while let Some(datagram) = client.transmit(now) {
            client.sent(now);
            count += 1;
            assert!(count < 1000, "the requests do not end");
            if lost(count - 1) {
                continue;
            }
            let time_s = (now.0 / 1_000_000_000) as u32;
            if let Some(answer) = agent.answer(&datagram, &table, time_s) {
                now += ROUND_TRIP;
                client.receive(&answer, now);
            }
        }
        all.extend(std::iter::from_fn(|| client.poll()));
        match client.next_timeout() {
            Some(at) => now = at.max(now),
            None => return all,
        }
    }
}

fn never(_: usize) -> bool {
    false
}

fn names(bindings: &[Binding]) -> Vec<String> {
    bindings.iter().map(|binding| format!("{}={}", binding.name, binding.value)).collect()
}

fn credentials_of_all_kinds() -> Vec<Credentials> {
    let mut all = vec![community("public"), user(None, None)];
    for (_, protocol) in AuthProtocol::NAMES {
        all.push(user(Some((protocol, "correct horse")), None));
        all.push(user(Some((protocol, "correct horse")), Some("battery staple")));
    }
    all
}

#[test]
fn requests_are_answered_with_all_kinds_of_credentials() {
    for credentials in credentials_of_all_kinds() {
        let level = credentials.level();
        let mut agent = Agent::new(credentials.clone(), b"\x80engine");
        let mut client = Client::new(credentials, 7);
        let now = Nanos::from_secs(1000);
        let absent: Oid = "1.3.6.1.9".parse().unwrap();
        let get = SnmpRequest::Get(vec![mib::system_description(), absent.clone()]);
        let next = SnmpRequest::Next(vec![mib::system_description(), "1.3.9".parse().unwrap()]);
        let columns = vec![mib::Column::WideIn(7).root(), mib::Column::Name.root()];
        let tickets = [get, next, SnmpRequest::Walk(columns)].map(|it| client.ask(it, now));
        let done = talk(&mut client, &mut agent, never);
        let of = |ticket| done.iter().find(|done| done.ticket == ticket).unwrap();
        let answered = |place: usize| {
            let done = of(tickets[place]);
            let bindings = done.outcome.as_ref().unwrap_or_else(|why| panic!("{level}: {why}"));
            (done, names(bindings))
        };
        let (get, bindings) = answered(0);
        assert_eq!(bindings, ["1.3.6.1.2.1.1.1.0=a switch", "1.3.6.1.9=no such instance"]);
        assert_eq!((get.at.since(get.sent.unwrap()), get.rounds), (ROUND_TRIP, 1), "{level}");
        let (_, bindings) = answered(1);
        assert_eq!(bindings, ["1.3.6.1.2.1.2.2.1.2.1=port1", "1.3.9=end of the MIB view"]);
        let (walk, bindings) = answered(2);
        assert_eq!(bindings.len(), 80);
        assert_eq!(bindings[0], format!("1.3.6.1.2.1.31.1.1.1.7.1={}", 1u64 << 33));
        assert_eq!(bindings[79], "1.3.6.1.2.1.31.1.1.1.1.40=port40");
        assert!(walk.rounds >= 4, "a part of 40 takes two rounds");
        assert_eq!(client.strays(), Default::default(), "{level}");
    }
}

#[test]
fn a_lost_datagram_is_sent_again_and_the_round_trip_stays_correct() {
    for credentials in
        [community("public"), user(Some((AuthProtocol::Sha1, "correct horse")), None)]
    {
        let mut agent = Agent::new(credentials.clone(), b"engine");
        let mut client = Client::new(credentials, 7);
        client.ask(SnmpRequest::Get(vec![mib::system_description()]), Nanos::from_secs(1000));
        let done = talk(&mut client, &mut agent, |count| count == 0);
        assert!(done[0].outcome.is_ok());
        // The round trip is that of the datagram that was answered.
        assert_eq!(done[0].at.since(done[0].sent.unwrap()), ROUND_TRIP);
        assert!(done[0].sent.unwrap() >= Nanos::from_secs(1000).saturating_add(ANSWER_NS_MAX));
    }
}

#[test]
fn an_authentication_failure_names_its_cause() {
    let (auth, privacy) = ((AuthProtocol::Sha256, "correct horse"), "battery staple");
    let known = user(Some(auth), Some(privacy));
    let outcome = |asks: Credentials| {
        let mut agent = Agent::new(known.clone(), b"engine");
        let mut client = Client::new(asks, 7);
        client.ask(SnmpRequest::Get(vec![mib::system_description()]), Nanos::from_secs(1000));
        talk(&mut client, &mut agent, never).remove(0).outcome.unwrap_err()
    };
    let stranger = match user(Some(auth), Some(privacy)) {
        Credentials::User(user) => Credentials::User(User { name: "unknown".into(), ..user }),
        other => other,
    };
    assert_eq!(outcome(stranger), Failure::Refused(Refusal::UnknownUser));
    let wrong = user(Some((AuthProtocol::Sha256, "correct h0rse")), Some(privacy));
    assert_eq!(outcome(wrong), Failure::Refused(Refusal::WrongDigest));
    let other = user(Some((AuthProtocol::Sha512, "correct horse")), Some(privacy));
    assert_eq!(outcome(other), Failure::Refused(Refusal::WrongDigest));
    assert_eq!(outcome(user(Some(auth), None)), Failure::Refused(Refusal::SecurityLevel));
    assert_eq!(outcome(user(None, None)), Failure::Refused(Refusal::SecurityLevel));
    assert_eq!(outcome(community("public")), Failure::TimedOut);
    // A request with an unknown community gets no response.
    let mut agent = Agent::new(community("public"), b"engine");
    let mut client = Client::new(community("private"), 7);
    client.ask(SnmpRequest::Get(vec![mib::system_description()]), Nanos::from_secs(1000));
    let done = talk(&mut client, &mut agent, never).remove(0);
    assert_eq!(done.outcome, Err(Failure::TimedOut));
    let waited = done.at.since(Nanos::from_secs(1000));
    assert_eq!(waited.0, ANSWER_NS_MAX.0 * SENDINGS_MAX as u64);
}

#[test]
fn the_manager_synchronizes_with_a_clock_that_moved_forward() {
    let credentials = user(Some((AuthProtocol::Sha256, "correct horse")), None);
    let mut agent = Agent::new(credentials.clone(), b"engine");
    let mut client = Client::new(credentials, 7);
    let question = || SnmpRequest::Get(vec![mib::system_description()]);
    let mut ask = |time_s: u32, now: Nanos| {
        client.ask(question(), now);
        for _ in 0..10 {
            let Some(datagram) = client.transmit(now) else { break };
            client.sent(now);
            if let Some(answer) = agent.answer(&datagram, &table(), time_s) {
                client.receive(&answer, now);
            }
        }
        client.poll().map(|done| done.outcome.is_ok())
    };
    assert_eq!(ask(100, Nanos::from_secs(1)), Some(true));
    // The clock moves forward by an hour: the authenticated report has the new time.
    assert_eq!(ask(3700, Nanos::from_secs(2)), Some(true));
    // An authenticated message with an earlier clock is old and not trusted.
    assert_eq!(ask(10, Nanos::from_secs(3)), None);
}

#[test]
fn requests_without_names_or_above_the_limits_are_rejected() {
    let mut client = Client::new(community("public"), 7);
    client.ask(SnmpRequest::Get(Vec::new()), Nanos(1));
    client.ask(SnmpRequest::Walk(vec![mib::system_description(); 65]), Nanos(1));
    (0..65).for_each(|_| {
        client.ask(SnmpRequest::Get(vec![mib::system_description()]), Nanos(1));
    });
    let limits: Vec<_> = std::iter::from_fn(|| client.poll()).map(|it| it.outcome).collect();
    let limit = |name| Err(Failure::Limit(name));
    assert_eq!(limits, [limit("names of a request"), limit("NAMES_MAX"), limit("QUESTIONS_MAX")]);
    client.transmit(Nanos(1)).unwrap();
    client.sent(Nanos(1));
    client.unreachable(Nanos(2));
    assert_eq!(client.poll().unwrap().outcome, Err(Failure::Unreachable));
}

/// Tests with an agent that returns the first part of a walk twice.
#[test]
fn a_walk_without_progress_fails() {
    let mut client = Client::new(community("public"), 7);
    client.ask(SnmpRequest::Walk(vec![mib::Column::Name.root()]), Nanos(1));
    let mut agent = Agent::new(community("public"), b"");
    let first = client.transmit(Nanos(1)).unwrap();
    client.sent(Nanos(1));
    let mut answer = agent.answer(&first, &table(), 0).unwrap();
    client.receive(&answer, Nanos(2));
    client.transmit(Nanos(2)).unwrap();
    client.sent(Nanos(2));
    // The first such number is the version, the second the request identifier, which is
    // incremented.
    let numbers = answer.windows(3).enumerate().filter(|(_, it)| *it == [2, 1, 1]);
    let at = numbers.map(|(at, _)| at).nth(1).unwrap();
    answer[at + 2] += 1;
    client.receive(&answer, Nanos(3));
    assert_eq!(client.poll().unwrap().outcome, Err(Failure::Endless));
}

/// Datagrams of every kind in both directions. Keys are slow to compute, so they are created once.
static DATAGRAMS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let mut all = Vec::new();
    for credentials in credentials_of_all_kinds().into_iter().take(6) {
        let mut agent = Agent::new(credentials.clone(), b"\x80engine");
        let mut client = Client::new(credentials, 7);
        client.ask(SnmpRequest::Get(vec![mib::system_description()]), Nanos(1));
        client.ask(SnmpRequest::Walk(vec![mib::Column::Name.root()]), Nanos(1));
        while let Some(datagram) = client.transmit(Nanos(1)) {
            client.sent(Nanos(1));
            let answer = agent.answer(&datagram, &table(), 5).unwrap();
            client.receive(&answer, Nanos(1));
            all.extend([datagram, answer]);
        }
    }
    all
});

/// Creates a manager with an open request and these credentials; for version 3, the engine is
/// known.
fn waiting(credentials: &Credentials, agent: &mut Agent) -> Client {
    let mut client = Client::new(credentials.clone(), 7);
    let question = SnmpRequest::Get(vec![mib::system_description()]);
    client.ask(question.clone(), Nanos(1));
    while let Some(datagram) = client.transmit(Nanos(1)) {
        client.sent(Nanos(1));
        client.receive(&agent.answer(&datagram, &table(), 5).unwrap(), Nanos(1));
    }
    assert!(client.poll().unwrap().outcome.is_ok());
    client.ask(question, Nanos(2));
    client
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..400),
        of in 0..4usize,
    ) {
        let credentials = credentials_of_all_kinds().remove(of);
        let mut client = Client::new(credentials.clone(), 7);
        client.ask(SnmpRequest::Get(vec![mib::system_description()]), Nanos(1));
        client.transmit(Nanos(1)).unwrap();
        client.sent(Nanos(1));
        client.receive(&bytes, Nanos(2));
        Agent::new(credentials, b"engine").answer(&bytes, &table(), 0);
    }

    #[test]
    fn damaged_datagrams_never_panic(
        which in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
        bits in 1..=255u8,
        cut in any::<prop::sample::Index>(),
        cuts in any::<bool>(),
        of in 0..4usize,
    ) {
        let mut bytes = which.get(&DATAGRAMS).clone();
        let at = at.index(bytes.len());
        bytes[at] ^= bits;
        if cuts {
            bytes.truncate(cut.index(bytes.len()));
        }
        let credentials = credentials_of_all_kinds().remove(of);
        let mut agent = Agent::new(credentials.clone(), b"\x80engine");
        let mut client = waiting(&credentials, &mut agent);
        client.transmit(Nanos(2)).unwrap();
        client.sent(Nanos(2));
        client.receive(&bytes, Nanos(3));
        agent.answer(&bytes, &table(), 0);
    }

    #[test]
    fn a_modified_signed_response_is_ignored(
        at in any::<prop::sample::Index>(),
        bits in 1..=255u8,
    ) {
        let credentials = user(Some((AuthProtocol::Sha256, "correct horse")), Some("battery staple"));
        let mut agent = Agent::new(credentials.clone(), b"\x80engine");
        let mut client = waiting(&credentials, &mut agent);
        let datagram = client.transmit(Nanos(2)).unwrap();
        client.sent(Nanos(2));
        let mut answer = agent.answer(&datagram, &table(), 5).unwrap();
        let at = at.index(answer.len());
        answer[at] ^= bits;
        client.receive(&answer, Nanos(3));
        prop_assert!(client.poll().is_none() && client.is_waiting());
    }
}
