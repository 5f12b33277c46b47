//! All kinds of channels behave alike, and sockets fail with the right errors.

use std::path::PathBuf;

use os::clock::{self, WaitSet};
use packet::time::Nanos;

use super::*;

const PATIENCE: Nanos = Nanos::from_secs(10);

/// Returns a socket path that no other test uses.
fn path(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("planimeter-{}-{name}.sock", std::process::id()))
}

fn connected(listen_on: &Url) -> (Listener, Box<dyn Channel>, Box<dyn Channel>) {
    let mut listener = Listener::open(listen_on).unwrap();
    assert!(listener.accept().unwrap().is_none());
    let active = Connecting::wait(&listener.address_to_connect(), PATIENCE).unwrap();
    let mut wait = WaitSet::new();
    wait.add(listener.descriptor(), false);
    wait.until(Some(clock::now() + PATIENCE)).unwrap();
    let passive = listener.accept().unwrap().expect("a connection waits");
    (listener, active, passive)
}

/// Reads exactly `count` bytes, and waits if the channel has a descriptor.
fn read(channel: &mut dyn Channel, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    let mut have = 0;
    while have < count {
        let more = channel.receive(&mut bytes[have..]).unwrap();
        if more == 0 {
            let mut wait = WaitSet::new();
            wait.add(channel.descriptor().expect("bytes are missing"), false);
            assert_ne!(wait.until(Some(clock::now() + PATIENCE)).unwrap(), 0, "nothing arrives");
        }
        have += more;
    }
    bytes
}

fn check(mut left: Box<dyn Channel>, mut right: Box<dyn Channel>) {
    let mut buffer = [0; 16];
    assert_eq!(left.receive(&mut buffer).unwrap(), 0, "no bytes are waiting");
    assert_eq!(left.transmit(b"hello").unwrap(), 5);
    assert_eq!(read(&mut *right, 5), b"hello");
    // A peer that does not read: writing stops at a limit, and no byte is lost.
    let pattern: Vec<u8> = (0..65536u32).map(|n| (n % 251) as u8).collect();
    let mut sent = 0;
    loop {
        let count = right.transmit(&pattern).unwrap();
        sent += count;
        if count < pattern.len() {
            break;
        }
        assert!(sent < 1 << 30, "a channel has a limit");
    }
    let cut = sent % pattern.len();
    for _ in 0..sent / pattern.len() {
        assert!(read(&mut *left, pattern.len()) == pattern);
    }
    assert!(read(&mut *left, cut) == pattern[..cut]);
    // Bytes sent before the end are received before the end.
    assert_eq!(right.transmit(b"bye").unwrap(), 3);
    drop(right);
    assert_eq!(read(&mut *left, 3), b"bye");
    assert_eq!(left.receive(&mut []).unwrap(), 0);
    let end = loop {
        match left.receive(&mut buffer) {
            Ok(0) => std::thread::yield_now(),
            other => break other,
        }
    };
    assert!(matches!(end, Err(ChannelError::Closed(_))), "{end:?}");
    let refused = loop {
        match left.transmit(b"late") {
            Ok(_) => std::thread::yield_now(),
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, ChannelError::Closed(_)), "{refused}");
}

#[test]
fn memory_channels_transfer_bytes() {
    let (left, right) = memory::pair(100_000, "control");
    assert_eq!(left.peer(), "control.1");
    check(Box::new(left), Box::new(right));
}

#[test]
fn tcp_channels_transfer_bytes_over_both_families() {
    for text in ["ptcp:0:127.0.0.1", "ptcp:0:[::1]", "ptcp:0"] {
        let (_listener, active, passive) = match text.parse() {
            Ok(url) => connected(&url),
            Err(error) => panic!("{error}"),
        };
        check(active, passive);
    }
}

#[test]
fn unix_channels_transfer_bytes_and_leave_no_file() {
    let path = path("carry");
    let (listener, active, passive) = connected(&Url::PassiveUnix(path.clone()));
    assert_eq!(active.peer(), format!("unix:{}", path.display()));
    check(active, passive);
    assert!(path.exists());
    drop(listener);
    assert!(!path.exists());
}

#[test]
fn connecting_without_a_listener_is_refused() {
    let url = Url::Unix(path("no-peer"));
    assert!(matches!(Connecting::wait(&url, PATIENCE), Err(ChannelError::Refused(_))));
    let listener = Listener::open(&"ptcp:0:127.0.0.1".parse().unwrap()).unwrap();
    let url = listener.address_to_connect();
    drop(listener);
    assert!(matches!(Connecting::wait(&url, PATIENCE), Err(ChannelError::Refused(_))));
}

#[test]
fn an_address_in_use_is_reported() {
    let listener = Listener::open(&"ptcp:0:127.0.0.1".parse().unwrap()).unwrap();
    let again = Listener::open(listener.address());
    assert!(matches!(again, Err(ChannelError::AddressInUse(_))));
    let url = Url::PassiveUnix(path("in-use"));
    let _first = Listener::open(&url).unwrap();
    assert!(matches!(Listener::open(&url), Err(ChannelError::AddressInUse(_))));
}

#[test]
fn a_stale_socket_file_is_replaced_and_other_files_are_not() {
    let path = path("stale");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(path.exists(), "the standard library does not remove the file");
    let url = Url::PassiveUnix(path.clone());
    let (listener, _active, _passive) = connected(&url);
    drop(listener);
    std::fs::write(&path, b"precious").unwrap();
    assert!(matches!(Listener::open(&url), Err(ChannelError::AddressInUse(_))));
    assert_eq!(std::fs::read(&path).unwrap(), b"precious");
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn a_listener_does_not_remove_the_file_of_its_successor() {
    let path = path("successor");
    let first = Listener::open(&Url::PassiveUnix(path.clone())).unwrap();
    std::fs::remove_file(&path).unwrap();
    let second = Listener::open(&Url::PassiveUnix(path.clone())).unwrap();
    drop(first);
    assert!(path.exists());
    drop(second);
    assert!(!path.exists());
}

#[test]
fn active_and_passive_urls_are_distinct() {
    let active: Url = "tcp:127.0.0.1:1".parse().unwrap();
    assert!(matches!(Listener::open(&active), Err(ChannelError::WrongDirection(_))));
    let passive: Url = "ptcp:1".parse().unwrap();
    let started = Connecting::start(&passive, Nanos::ZERO, PATIENCE);
    assert!(matches!(started, Err(ChannelError::WrongDirection(_))));
}

/// A listener with a full backlog does not reply: the attempt ends at its timeout.
#[test]
fn a_connection_attempt_times_out_in_virtual_time() {
    let listener = Listener::open(&"ptcp:0:127.0.0.1".parse().unwrap()).unwrap();
    let url = listener.address_to_connect();
    let mut waiting = Vec::new();
    for _ in 0..10_000 {
        let mut attempt = Connecting::start(&url, Nanos::ZERO, Nanos(10)).unwrap();
        if attempt.finish(Nanos(9)).unwrap().is_none() {
            assert!(matches!(attempt.finish(Nanos(10)), Err(ChannelError::TimedOut(_))));
            assert!(attempt.finish(Nanos(11)).is_err());
            return;
        }
        waiting.push(attempt);
    }
    panic!("a backlog is limited");
}
