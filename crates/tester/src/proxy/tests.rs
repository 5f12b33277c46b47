//! Tests of the proxy over real sockets: bytes pass unchanged, and messages are reported.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use openflow::header::Header;
use proptest::prelude::*;

use super::*;

/// Timeout of a test's socket calls.
const PATIENCE_STD: Duration = Duration::from_secs(10);

/// A proxy between a listening controller and connecting switches.
struct Running {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<(BTreeMap<String, ProxyCounters>, Vec<ProxyEvent>)>,
    at: SocketAddr,
    controller: TcpListener,
}

impl Running {
    fn begin() -> Running {
        let controller = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = Url::Tcp(controller.local_addr().unwrap());
        let switches = Endpoint::open(&"ptcp:0:127.0.0.1".parse().unwrap(), None).unwrap();
        let proxy = Proxy::new(Endpoint::open(&url, None).unwrap(), switches, None);
        let [None, Some(Url::PassiveTcp(at))] = proxy.listens() else { panic!() };
        let stop = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let mut news = Vec::new();
            let tallies = proxy.run(&flag, &mut |it| news.push(it)).unwrap();
            (tallies, news)
        });
        Running { stop, thread, at, controller }
    }

    /// Connects a switch, and accepts the controller's end of its connection.
    fn pair(&self) -> (TcpStream, TcpStream) {
        let switch = TcpStream::connect(self.at).unwrap();
        let (controller, _) = self.controller.accept().unwrap();
        for socket in [&switch, &controller] {
            socket.set_read_timeout(Some(PATIENCE_STD)).unwrap();
            socket.set_write_timeout(Some(PATIENCE_STD)).unwrap();
        }
        (switch, controller)
    }

    fn end(self) -> (BTreeMap<String, ProxyCounters>, Vec<ProxyEvent>) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

fn message(version: u8, kind: u8, xid: u32, body: &[u8]) -> Vec<u8> {
    let length = (8 + body.len()) as u16;
    let mut bytes = Header { version, kind, length, xid }.bytes().to_vec();
    bytes.extend(body);
    bytes
}

fn read(socket: &mut TcpStream, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    socket.read_exact(&mut bytes).unwrap();
    bytes
}

fn rest(socket: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    socket.read_to_end(&mut bytes).unwrap();
    bytes
}

/// Chunks that one end sends: valid messages and random bytes.
fn pieces() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let garbage = prop::collection::vec(any::<u8>(), 0..300);
    let body = prop::collection::vec(any::<u8>(), 0..2000);
    let spoken = (0u8..8, 0u8..40, any::<u32>(), body)
        .prop_map(|(version, kind, xid, body)| message(version, kind, xid, &body));
    prop::collection::vec(prop_oneof![3 => spoken, 1 => garbage], 0..12)
}

/// Sends all bytes in chunks of this size and then closes its direction.
fn say(mut socket: TcpStream, bytes: Vec<u8>, step: usize) -> JoinHandle<()> {
    thread::spawn(move || {
        bytes.chunks(step.max(1)).for_each(|part| socket.write_all(part).unwrap());
        socket.shutdown(Shutdown::Write).unwrap();
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn bytes_pass_unchanged_for_any_content_and_segmentation(
        up in pieces(), down in pieces(), steps in (1usize..3000, 1usize..3000),
        early in any::<bool>(),
    ) {
        let running = Running::begin();
        let (mut switch, mut controller) = running.pair();
        let (up, down) = (up.concat(), down.concat());
        let from_switch = say(switch.try_clone().unwrap(), up.clone(), steps.0);
        // One end can send everything and close its direction before the other sends its first
        // byte.
        let (heard_up, from_controller) = if early {
            let heard = rest(&mut controller);
            (Some(heard), say(controller.try_clone().unwrap(), down.clone(), steps.1))
        } else {
            (None, say(controller.try_clone().unwrap(), down.clone(), steps.1))
        };
        let heard_down = rest(&mut switch);
        let heard_up = heard_up.unwrap_or_else(|| rest(&mut controller));
        from_switch.join().unwrap();
        from_controller.join().unwrap();
        let (tallies, _) = running.end();
        prop_assert!(heard_up == up && heard_down == down);
        let tally = tallies.values().next().unwrap();
        prop_assert_eq!(tally.bytes, [down.len() as u64, up.len() as u64]);
        prop_assert_eq!((tally.sessions, tally.broken, tally.lost_bytes), (1, 0, 0));
    }
}

#[test]
fn messages_and_unanswered_requests_are_reported() {
    let running = Running::begin();
    let (mut switch, mut controller) = running.pair();
    let flow_mods = [message(4, 14, 5, &[0; 48]), message(4, 14, 6, &[0; 48])].concat();
    let asked = [
        message(4, 5, 1, &[]),
        message(4, 18, 2, &[0, 1, 0, 0, 0, 0, 0, 0]),
        flow_mods,
        message(4, 20, 7, &[]),
        message(4, 24, 8, &[0; 16]),
        message(9, 1, 9, &[1, 2, 3]),
    ]
    .concat();
    controller.write_all(&asked).unwrap();
    assert_eq!(read(&mut switch, asked.len()), asked);
    let part = |more: u8| message(4, 19, 2, &[0, 1, 0, more, 0, 0, 0, 0, 0]);
    let answers = [
        message(4, 6, 1, &[0, 0, 0, 0, 0, 0, 0, 0xab]),
        part(1),
        part(1),
        part(0),
        // OFPET_FLOW_MOD_FAILED, OFPFMFC_TABLE_FULL
        message(4, 1, 6, &[0, 5, 0, 1]),
        message(4, 21, 7, &[]),
        message(4, 2, 77, &[]),
    ]
    .concat();
    switch.write_all(&answers).unwrap();
    assert_eq!(read(&mut controller, answers.len()), answers);
    drop((switch, controller));
    let (tallies, news) = running.end();
    let tally = &tallies["datapath 00000000000000ab"];
    let answers = |what: &'static str| &tally.answers[&(0, what)];
    assert_eq!(answers("features_request").took.count(), 1);
    let flows = answers("flow_stats");
    assert_eq!((flows.took.count(), flows.parts, flows.parts_most), (1, 3, 3));
    assert_eq!(answers("barrier_request").took.count(), 1);
    assert_eq!(answers("role_request").unanswered, 1);
    assert_eq!(tally.answers[&(1, "echo_request")].unanswered, 1);
    assert_eq!(tally.errors["flow_mod_failed/table_full"].0, 1);
    assert_eq!(tally.errors["flow_mod_failed/table_full"].1.count(), 1);
    assert_eq!(tally.pairs.iter().map(|pair| pair.flow_mods).collect::<Vec<_>>(), [2]);
    assert!(tally.pairs[0].ns >= tally.pairs[0].barrier_ns);
    assert_eq!(tally.strange[0], tally::MessageCount { messages: 1, bytes: 11 });
    let updated = |it: &ProxyEvent| {
        matches!(it, ProxyEvent::Passed(_, _, Event::Updated { flow_mods: 2, .. }))
    };
    assert_eq!(news.iter().filter(|it| updated(it)).count(), 1);
    let failed = news.iter().find_map(|it| match it {
        ProxyEvent::Passed(_, _, Event::Failed { xid, about, .. }) => {
            Some((*xid, about.map(|it| it.0)))
        }
        _ => None,
    });
    assert_eq!(failed, Some((6, Some("flow_mod"))));
}

#[test]
fn a_reset_and_an_end_are_passed_on() {
    let running = Running::begin();
    let (switch, mut controller) = running.pair();
    // Unread bytes make the system reset a connection on close.
    controller.write_all(&message(4, 2, 1, &[])).unwrap();
    let mut first = [0; 1];
    assert_eq!(switch.peek(&mut first).unwrap(), 1);
    drop(switch);
    let error = controller.read(&mut first).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    let (switch, mut controller) = running.pair();
    drop(switch);
    assert_eq!(controller.read(&mut first).unwrap(), 0);
    drop(controller);
    let (tallies, _) = running.end();
    let tally = tallies.values().next().unwrap();
    assert_eq!(tally.sessions, 2);
    assert!((1..=2).contains(&tally.broken), "{}", tally.broken);
}

#[test]
fn a_slow_reader_stops_the_sender_and_little_is_buffered() {
    let running = Running::begin();
    let (mut switch, mut controller) = running.pair();
    switch.set_nonblocking(true).unwrap();
    let chunk = message(4, 10, 1, &[7; 60_000]);
    let (mut sent, mut refused) = (0, 0);
    // The sockets' own buffers take some megabytes. A proxy without backpressure would take
    // everything.
    while refused < 100 && sent < 256 << 20 {
        match switch.write(&chunk) {
            Ok(count) => (sent, refused) = (sent + count, 0),
            Err(_) => {
                refused += 1;
                clock::sleep_until(clock::now().saturating_add(Nanos::from_millis(5)));
            }
        }
    }
    assert!(sent < 256 << 20, "nothing stopped the sender");
    switch.set_nonblocking(false).unwrap();
    switch.shutdown(Shutdown::Write).unwrap();
    assert_eq!(rest(&mut controller).len(), sent);
    drop((switch, controller));
    let (tallies, _) = running.end();
    assert_eq!(tallies.values().next().unwrap().bytes, [0, sent as u64]);
}

#[test]
fn a_switch_is_disconnected_if_the_controller_is_unreachable() {
    let running = Running::begin();
    let Running { controller, at, stop, thread } = running;
    drop(controller);
    let mut switch = TcpStream::connect(at).unwrap();
    switch.set_read_timeout(Some(PATIENCE_STD)).unwrap();
    let mut first = [0; 1];
    let error = switch.read(&mut first).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    stop.store(true, Ordering::Relaxed);
    let (tallies, news) = thread.join().unwrap();
    assert!(tallies.is_empty());
    assert!(
        matches!(&news[..], [ProxyEvent::Failed(why)] if why.contains("connection refused")),
        "{news:?}"
    );
}

#[test]
fn both_sides_can_connect_with_several_switches_in_parallel() {
    let any: Url = "ptcp:0:127.0.0.1".parse().unwrap();
    let open = || Endpoint::open(&any, None).unwrap();
    let proxy = Proxy::new(open(), open(), None);
    let [Some(Url::PassiveTcp(up)), Some(Url::PassiveTcp(down))] = proxy.listens() else {
        panic!()
    };
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    let thread = thread::spawn(move || proxy.run(&flag, &mut |_| {}).unwrap());
    for _ in 0..5 {
        let mut switches: Vec<TcpStream> =
            (0..4).map(|_| TcpStream::connect(down).unwrap()).collect();
        let mut controllers: Vec<TcpStream> =
            (0..4).map(|_| TcpStream::connect(up).unwrap()).collect();
        for (number, switch) in switches.iter_mut().enumerate() {
            switch.write_all(&[number as u8; 8]).unwrap();
        }
        for controller in &mut controllers {
            controller.set_read_timeout(Some(PATIENCE_STD)).unwrap();
            let reply = read(controller, 8);
            assert!(reply.iter().all(|byte| *byte == reply[0]));
        }
    }
    stop.store(true, Ordering::Relaxed);
    let tallies = thread.join().unwrap();
    assert_eq!(tallies.values().map(|it| it.sessions).sum::<u64>(), 20);
}

#[test]
fn connections_per_source_are_limited() {
    let any: Url = "ptcp:0".parse().unwrap();
    let open = || Endpoint::open(&any, None).unwrap();
    let mut proxy = Proxy::new(open(), open(), None);
    proxy.set_limits(ConnectionLimits { total: 8, per_source: 2 });
    let [_, Some(Url::PassiveTcp(down))] = proxy.listens() else { panic!() };
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    let thread = thread::spawn(move || {
        let mut news = Vec::new();
        proxy.run(&flag, &mut |it| news.push(it)).unwrap();
        news
    });
    let held: Vec<TcpStream> = (0..2).map(|_| TcpStream::connect(down).unwrap()).collect();
    for _ in 0..3 {
        let mut refused = TcpStream::connect(down).unwrap();
        refused.set_read_timeout(Some(PATIENCE_STD)).unwrap();
        let error = refused.read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    }
    drop(held);
    stop.store(true, Ordering::Relaxed);
    let news = thread.join().unwrap();
    assert!(
        matches!(&news[..], [ProxyEvent::Failed(why)] if why.contains("--connections-per-source"))
    );
}

#[test]
fn the_delay_of_the_proxy_is_measured() {
    let added = overhead::measure().unwrap();
    assert_eq!((added.straight.count(), added.through.count()), (300, 300));
    assert!(added.ns().is_some());
}

/// Channel that delivers one byte per read and then ends, and that records a call of `finish`.
struct Scripted {
    left: usize,
    told: Arc<AtomicBool>,
}

impl Channel for Scripted {
    fn receive(&mut self, buffer: &mut [u8]) -> Result<usize, ChannelError> {
        if self.left == 0 {
            return Err(ChannelError::Closed("scripted".into()));
        }
        self.left -= 1;
        buffer[0] = 7;
        Ok(1)
    }

    fn transmit(&mut self, bytes: &[u8]) -> Result<usize, ChannelError> {
        Ok(bytes.len())
    }

    fn finish(&mut self) -> bool {
        self.told.store(true, Ordering::Relaxed);
        true
    }

    fn descriptor(&self) -> Option<std::os::fd::RawFd> {
        None
    }

    fn peer(&self) -> &str {
        "scripted"
    }
}

#[test]
fn an_end_of_stream_is_reported_in_the_same_turn() {
    for left in 0..100 {
        let told = [Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false))];
        let [from_controller, from_switch] = told.clone().map(|told| Scripted { left, told });
        let mut relay = relay::Relay::new(Box::new(from_controller), Box::new(from_switch));
        // Waiting bytes trigger a new event, a stream end that was already read does not.
        let turns = left / 16 + 1;
        (0..turns).for_each(|_| drop(relay.turn(&mut |_, _, _| {})));
        assert!(told.iter().all(|told| told.load(Ordering::Relaxed)), "{left}");
    }
}
