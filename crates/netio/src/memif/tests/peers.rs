//! Two of our ports over a socket: both roles, several queues, sleeping, leaving and reconnecting.

use os::clock::{self, WaitSet};
use packet::batch_copy::Copies;
use packet::frame::{Batch, FRAME_BYTES_MAX};
use packet::time::Nanos;

use crate::in_place::View;
use crate::memif::fault::Fault;
use crate::memif::port::MemifPort;
use crate::memif::protocol::text;
use crate::memif::ring::Side;
use crate::memif::socket::{Address, Listener};
use crate::memif::spec::Spec;
use crate::port::{Port, PortDrop};

/// Returns a path for one test of this process.
pub fn path(name: &str) -> std::path::PathBuf {
    std::env::temp_dir().join(format!("planimeter-memif-{}-{name}", std::process::id()))
}

fn server(name: &str) -> Spec {
    Spec { huge_pages: false, ..Spec::new(path(name)) }
}

fn client(server: &Spec) -> Spec {
    Spec { side: Side::Client, slots_log2: 4, ..server.clone() }
}

/// Runs turns of both ends until `done`, with simulated time in which a pause is over immediately.
pub fn turn_until(ports: &mut [&mut MemifPort], mut done: impl FnMut(&[&mut MemifPort]) -> bool) {
    let mut now = clock::now();
    for _ in 0..1000 {
        if done(ports) {
            return;
        }
        now += Nanos::from_millis(10);
        ports.iter_mut().for_each(|port| port.turn(now));
    }
    let words: Vec<_> = ports.iter().map(|port| (port.faults(), port.last_words())).collect();
    panic!("the condition is not reached: {words:?}");
}

fn connect(server: &mut MemifPort, client: &mut MemifPort) {
    turn_until(&mut [server, client], |ports| ports.iter().all(|port| port.has_link()));
}

fn pair(name: &str) -> (MemifPort, MemifPort) {
    let spec = server(name);
    let mut left = MemifPort::open(&spec).unwrap();
    let mut right = MemifPort::open(&client(&spec)).unwrap();
    connect(&mut left, &mut right);
    (left, right)
}

/// Sends frames of these sizes, each filled with its number, and returns them as received.
fn carry(from: &mut MemifPort, to: &mut MemifPort, sizes: &[usize]) -> Vec<Vec<u8>> {
    let mut batch = Batch::new(sizes.len());
    for (number, &size) in sizes.iter().enumerate() {
        batch.push_bytes(&vec![number as u8; size]);
    }
    let mut arrived = Vec::new();
    let mut into = Batch::new(5);
    for _ in 0..10 * sizes.len() {
        let gone = from.transmit(&mut batch, clock::now()).unwrap();
        batch.drop_front(gone);
        into.clear();
        to.receive(&mut into, clock::now()).unwrap();
        arrived.extend(into.frames().iter().map(|frame| frame.bytes().to_vec()));
    }
    assert!(batch.is_empty());
    arrived
}

#[test]
fn frames_of_every_size_arrive_in_order_in_both_directions() {
    let (mut left, mut right) = pair("sizes");
    let sizes: Vec<usize> = (0..200)
        .map(|number| [60, 1, 64, 65, 2047, 2048, 2049, 4097, 1514, FRAME_BYTES_MAX][number % 10])
        .collect();
    let wanted: Vec<Vec<u8>> =
        sizes.iter().enumerate().map(|(number, &size)| vec![number as u8; size]).collect();
    assert_eq!(carry(&mut left, &mut right, &sizes), wanted);
    assert_eq!(carry(&mut right, &mut left, &sizes), wanted);
    let bytes: usize = sizes.iter().sum();
    for port in [&mut left, &mut right] {
        let counters = port.counters();
        assert_eq!((counters.rx_frames, counters.tx_frames), (200, 200));
        assert_eq!((counters.rx_bytes, counters.tx_bytes), (bytes as u64, bytes as u64));
        assert_eq!((counters.drops, counters.peer_faults), (vec![], 0));
    }
}

#[test]
fn copies_of_every_size_arrive_in_order_as_far_as_there_is_space() {
    let (mut left, mut right) = pair("copies");
    let sizes = [60, 0, 1, 64, 65, 2048, 4097, 1514, FRAME_BYTES_MAX];
    let mut copies = Copies::new(sizes.len());
    for (number, bytes) in sizes.into_iter().enumerate() {
        copies.push(bytes, None).unwrap().fill(number as u8);
    }
    let mut arrived = Copies::new(4);
    for round in 0..20 {
        let sent = left.transmit_copies(&mut copies, Nanos::ZERO).unwrap();
        assert!(sent >= 7, "{sent} in round {round}");
        let mut received = 0;
        while right.receive_copies(&mut arrived, Nanos(round)).unwrap() > 0 {
            for (place, frame) in arrived.frames().enumerate() {
                assert_eq!(frame, copies.frame(received + place), "round {round}");
                assert_eq!(arrived.stamp(place).unwrap().at, Nanos(round));
            }
            received += arrived.len();
        }
        assert_eq!(received, sent);
    }
    assert_eq!(left.counters().tx_frames, right.counters().rx_frames);
    assert_eq!(left.counters().drops, vec![]);
    drop(left);
    turn_until(&mut [&mut right], |ports| !ports[0].has_link());
    assert_eq!(right.transmit_copies(&mut copies, Nanos::ZERO).unwrap(), 0);
}

#[test]
fn a_full_ring_accepts_no_frame_until_it_is_emptied() {
    let (mut left, mut right) = pair("full");
    for _ in 0..2 {
        let mut batch = Batch::new(40);
        while batch.push_bytes(&[1; 60]) {}
        let mut into = Batch::new(100);
        for _ in 0..20 {
            assert_eq!(left.transmit(&mut batch, clock::now()).unwrap(), 16);
            assert_eq!(left.transmit(&mut batch, clock::now()).unwrap(), 0);
            into.clear();
            assert_eq!(right.receive(&mut into, clock::now()).unwrap(), 16);
        }
        std::mem::swap(&mut left, &mut right);
    }
}

#[test]
fn peeked_frames_stay_until_released_and_are_forwarded_without_a_copy() {
    let (mut left, mut right) = pair("peek-in");
    let (mut other, mut far) = pair("peek-out");
    let mut batch = Batch::new(10);
    for number in 0..10 {
        batch.push_bytes(&[number; 70]);
    }
    left.transmit(&mut batch, clock::now()).unwrap();
    for _ in 0..2 {
        let (receive, transmit) = (right.split().0, other.split().1);
        let views = receive[0].peek(4);
        assert_eq!(views.iter().map(|view| view.to_vec()[0]).collect::<Vec<_>>(), [0, 1, 2, 3]);
        // The peer sees nothing before the flush.
        transmit[0].put(views.get(1)).unwrap();
    }
    assert_eq!(far.split().0[0].peek(256).len(), 0);
    other.split().1[0].flush();
    assert_eq!(far.split().0[0].peek(256).len(), 2);
    // From a port into itself, with another header in front.
    let (receive, transmit) = right.split();
    receive[0].release(3);
    let views = receive[0].peek(256);
    assert_eq!(views.len(), 1, "new frames appear after the old ones are released");
    transmit[0].put_parts(View::of(&[9; 3]), views.get(0).after(4)).unwrap();
    transmit[0].flush();
    receive[0].release(1);
    assert_eq!(receive[0].peek(256).len(), 6);
    receive[0].release(6);
    assert_eq!(receive[0].peek(256).len(), 0);
    let back = left.split().0[0].peek(256).get(0).to_vec();
    assert_eq!((back.len(), &back[..4]), (69, &[9, 9, 9, 3][..]));
}

#[test]
fn queues_are_independent_and_as_many_as_both_ends_have() {
    let spec = Spec { receive_queues: 3, transmit_queues: 2, ..server("queues") };
    let mut left = MemifPort::open(&spec).unwrap();
    let wish = Spec { receive_queues: 4, transmit_queues: 2, ..client(&spec) };
    let mut right = MemifPort::open(&wish).unwrap();
    connect(&mut left, &mut right);
    for _ in 0..2 {
        for (number, queue) in left.split().1.iter_mut().enumerate() {
            queue.put(View::of(&[number as u8; 60])).unwrap();
            queue.flush();
        }
        let receivers = right.split().0;
        for (number, queue) in receivers.iter_mut().enumerate() {
            let views = queue.peek(9);
            let firsts: Vec<_> = views.iter().map(|view| view.to_vec()[0]).collect();
            let wanted: &[u8] = if number < 2 { &[number as u8] } else { &[] };
            assert_eq!(firsts, wanted, "queue {number}");
            queue.release(1);
        }
        assert!(receivers.len() > 2, "the other end has fewer rings");
        left.split().1[1].put(View::of(&[7; 60])).unwrap();
        left.split().1[1].flush();
        let mut batch = Batch::new(4);
        assert_eq!(right.receive(&mut batch, clock::now()).unwrap(), 1, "for any queue");
        std::mem::swap(&mut left, &mut right);
    }
}

#[test]
fn a_sleeping_port_is_woken_by_frames_and_peers() {
    let spec = server("sleep");
    let mut left = MemifPort::open(&spec).unwrap();
    let mut wait = WaitSet::new();
    let is_ready = |port: &MemifPort, wait: &mut WaitSet| {
        wait.clear();
        wait.add(port.descriptor().unwrap(), false);
        wait.until(Some(Nanos::ZERO)).unwrap() > 0
    };
    let mut batch = Batch::new(8);
    left.receive(&mut batch, clock::now()).unwrap();
    let number = left.descriptor();
    assert!(!is_ready(&left, &mut wait));
    let mut right = MemifPort::open(&client(&spec)).unwrap();
    right.turn(clock::now());
    assert!(is_ready(&left, &mut wait), "a client connects");
    connect(&mut left, &mut right);
    assert_eq!(left.descriptor(), number, "a waiting caller is not affected");
    for _ in 0..2 {
        let (from, to) = (&mut right, &mut left);
        to.receive(&mut batch, clock::now()).unwrap();
        for _ in 0..3 {
            assert!(!is_ready(to, &mut wait));
            batch.clear();
            batch.push_bytes(&[1; 60]);
            from.transmit(&mut batch, clock::now()).unwrap();
            assert!(is_ready(to, &mut wait), "a frame came");
            batch.clear();
            assert_eq!(to.receive(&mut batch, clock::now()).unwrap(), 1);
        }
        // Frames that arrive while no thread sleeps signal nothing, and are found before the next
        // sleep.
        batch.clear();
        batch.push_bytes(&[1; 60]);
        from.transmit(&mut batch, clock::now()).unwrap();
        assert!(is_ready(to, &mut wait), "a frame was waiting");
        batch.clear();
        assert_eq!(to.receive(&mut batch, clock::now()).unwrap(), 1);
        std::mem::swap(&mut left, &mut right);
    }
    drop(right);
    left.receive(&mut Batch::new(8), clock::now()).unwrap();
    assert!(is_ready(&left, &mut wait) || !left.has_link(), "the peer left");
}

#[test]
fn either_end_can_disconnect_and_reconnect() {
    let spec = server("again");
    let mut left = MemifPort::open(&spec).unwrap();
    let mut right = MemifPort::open(&client(&spec)).unwrap();
    connect(&mut left, &mut right);
    for round in 0..3 {
        assert_eq!(carry(&mut left, &mut right, &[60, 70]).len(), 2);
        drop(right);
        turn_until(&mut [&mut left], |ports| !ports[0].has_link());
        assert_eq!(left.last_words(), Some("closed"));
        let mut batch = Batch::new(1);
        batch.push_bytes(&[1; 60]);
        assert_eq!(left.transmit(&mut batch, clock::now()).unwrap(), 0, "there is no peer");
        right = MemifPort::open(&client(&spec)).unwrap();
        connect(&mut left, &mut right);
        assert_eq!(carry(&mut right, &mut left, &[60, 70, 80]).len(), 3);
        drop(left);
        turn_until(&mut [&mut right], |ports| !ports[0].has_link());
        left = MemifPort::open(&spec).unwrap();
        connect(&mut left, &mut right);
        assert_eq!(left.faults().total() + right.faults().total(), 0, "round {round}");
    }
}

#[test]
fn one_client_with_the_correct_secret_is_accepted() {
    let spec = Spec { secret: text("right"), id: 5, ..server("door") };
    let mut left = MemifPort::open(&spec).unwrap();
    let mut first = MemifPort::open(&client(&spec)).unwrap();
    connect(&mut left, &mut first);
    for (wrong, fault) in [
        (client(&spec), Fault::Taken),
        (Spec { id: 6, ..client(&spec) }, Fault::Id),
        (Spec { secret: text("wrong"), ..client(&spec) }, Fault::Secret),
    ] {
        let mut other = MemifPort::open(&wrong).unwrap();
        turn_until(&mut [&mut left, &mut other], |ports| ports[0].faults().of(fault) > 0);
        turn_until(&mut [&mut left, &mut other], |ports| ports[1].last_words().is_some());
        assert_eq!(other.last_words(), Some(fault.text()));
        assert!(left.has_link() && !other.has_link());
    }
    assert_eq!(carry(&mut left, &mut first, &[60]).len(), 1);
}

#[test]
fn an_abstract_name_needs_no_file_and_a_stale_file_is_replaced() {
    let name = format!("planimeter-memif-{}", std::process::id());
    let spec = Spec { address: Address::Abstract(name.clone()), ..server("abstract") };
    let mut left = MemifPort::open(&spec).unwrap();
    let mut right = MemifPort::open(&client(&spec)).unwrap();
    connect(&mut left, &mut right);
    assert_eq!(left.facts().name, format!("@{name}#0"));
    let spec = server("stale");
    // A file without a listener: another name of a closed listener's file.
    let other = Listener::open(&Address::Path(path("other"))).unwrap();
    std::fs::hard_link(path("other"), path("stale")).unwrap();
    assert!(MemifPort::open(&spec).is_err(), "the address is in use");
    drop(other);
    drop(MemifPort::open(&spec).unwrap());
    let strange = std::os::unix::net::UnixDatagram::bind(path("stale")).unwrap();
    assert!(MemifPort::open(&spec).is_err(), "another kind of socket is not removed");
    drop(strange);
    std::fs::remove_file(path("stale")).unwrap();
    let one = MemifPort::open(&spec).unwrap();
    assert!(MemifPort::open(&spec).is_err(), "the address is in use");
    drop(one);
    assert!(!path("stale").exists(), "the listener removes its file");
}

#[test]
fn a_frame_longer_than_any_chain_is_counted_and_others_pass() {
    let spec = server("long");
    let mut left = MemifPort::open(&spec).unwrap();
    let mut right = MemifPort::open(&Spec { buffer_bytes: 64, ..client(&spec) }).unwrap();
    connect(&mut left, &mut right);
    assert_eq!(right.facts().frame_bytes_max, 16 * 64);
    let arrived = carry(&mut right, &mut left, &[60, 16 * 64 + 1, 16 * 64]);
    assert_eq!(arrived, [vec![0; 60], vec![2; 16 * 64]]);
    assert_eq!(right.counters().lost(PortDrop::TooLong), 1);
}

#[test]
fn parts_of_a_port_have_their_own_queues_and_wakeups() {
    let queues = |spec: Spec| Spec { receive_queues: 2, transmit_queues: 2, ..spec };
    let spec = queues(server("parts"));
    let mut left = MemifPort::open(&spec).unwrap();
    let mut parts = left.split_queues(4);
    assert_eq!(parts.len(), 1, "there are two queues");
    let mut right = MemifPort::open(&queues(client(&spec))).unwrap();
    connect(&mut left, &mut right);
    let mut batch = Batch::new(4);
    for _ in 0..2 {
        for (number, queue) in right.split().1.iter_mut().enumerate() {
            for _ in 0..=number {
                queue.put(View::of(&[number as u8; 60])).unwrap();
            }
            queue.flush();
        }
        for (number, port) in
            [&mut left as &mut dyn Port, parts[0].as_mut()].into_iter().enumerate()
        {
            batch.clear();
            assert_eq!(port.receive(&mut batch, clock::now()).unwrap(), number + 1);
            assert!(batch.frames().iter().all(|frame| frame.bytes()[0] == number as u8));
            assert_eq!(port.transmit(&mut batch, clock::now()).unwrap(), number + 1);
            let views = right.split().0[number].peek(9).len();
            assert_eq!(views, number + 1);
            right.split().0[number].release(views);
        }
    }
    let mut wait = WaitSet::new();
    let mut is_ready = |port: &dyn Port| {
        wait.clear();
        wait.add(port.descriptor().unwrap(), false);
        wait.until(Some(Nanos::ZERO)).unwrap() > 0
    };
    assert!(!is_ready(&left) && !is_ready(parts[0].as_ref()));
    right.split().1[1].put(View::of(&[1; 60])).unwrap();
    right.split().1[1].flush();
    assert!(!is_ready(&left) && is_ready(parts[0].as_ref()));
    assert_eq!((left.counters().rx_frames, parts[0].counters().rx_frames), (2, 4));
}
