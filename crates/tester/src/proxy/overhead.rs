//! Measurement of the delay that the proxy adds: loopback round trips with and without it.
//!
//! A peer echoes messages. They take the direct and the proxied path alternately. The difference of
//! the medians is the added delay of a request and its reply. Both paths use the same kind of
//! socket.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use channel::{Channel, ChannelError, Connecting, Listener, Url};
use openflow::header::Header;
use os::clock::{self, WaitSet};
use packet::time::Nanos;

use super::{Endpoint, Proxy};
use crate::trial::Histogram;

/// Number of measured round trips on each path.
const ROUNDS: u32 = 300;

/// Number of warm-up round trips before them, which do not count.
const WARMUP: u32 = 20;

/// Timeout of a round trip.
const PATIENCE: Nanos = Nanos::from_secs(1);

/// Size of a message in bytes.
const MESSAGE_BYTES: usize = 16;

/// Round-trip times in nanoseconds.
#[derive(Debug, Clone, Default)]
pub struct RoundTrips {
    /// On the direct path.
    pub straight: Histogram,
    /// Through the proxy.
    pub through: Histogram,
}

impl RoundTrips {
    /// Returns the added delay of a request and its reply: the difference of the medians.
    pub fn ns(&self) -> Option<f64> {
        let median = |it: &Histogram| it.ns_at_quantile(0.5).map(|ns| ns as f64);
        Some(median(&self.through)? - median(&self.straight)?)
    }
}

/// Measures the added delay on this machine.
pub fn measure() -> Result<RoundTrips, ChannelError> {
    let any: Url = "ptcp:0:127.0.0.1".parse().expect("a valid address");
    let mut peer = Listener::open(&any)?;
    let there = peer.address_to_connect();
    let proxy = Proxy::new(Endpoint::open(&any, None)?, Endpoint::Dial(there.clone()), None);
    let [Some(Url::PassiveTcp(at)), _] = proxy.listens() else {
        unreachable!("the controller's side listens")
    };
    let stop = Arc::new(AtomicBool::new(false));
    let ended = || {
        let stop = Arc::clone(&stop);
        move || stop.load(Ordering::Relaxed)
    };
    let is_over = ended();
    let echo = thread::spawn(move || answer(&mut peer, &is_over));
    let flag = Arc::clone(&stop);
    let carrying = thread::spawn(move || proxy.run(&flag, &mut |_| {}));
    let found = ask(&there, &Url::Tcp(at));
    stop.store(true, Ordering::Relaxed);
    // Both threads stop by the flag. A panicked thread leaves no result.
    let _ = echo.join();
    let _ = carrying.join();
    found
}

fn ask(straight: &Url, through: &Url) -> Result<RoundTrips, ChannelError> {
    let mut ways = [Connecting::wait(straight, PATIENCE)?, Connecting::wait(through, PATIENCE)?];
    let mut added = RoundTrips::default();
    for round in 0..ROUNDS + WARMUP {
        for (place, way) in ways.iter_mut().enumerate() {
            let took = round_trip(way.as_mut(), round)?;
            let kept = if place == 0 { &mut added.straight } else { &mut added.through };
            if round >= WARMUP {
                kept.record(took.0);
            }
        }
    }
    Ok(added)
}

fn round_trip(way: &mut dyn Channel, xid: u32) -> Result<Nanos, ChannelError> {
    let mut message = [0; MESSAGE_BYTES];
    let header = Header { version: 4, kind: 2, length: MESSAGE_BYTES as u16, xid };
    message[..8].copy_from_slice(&header.bytes());
    let begun = clock::now();
    let give_up = begun.saturating_add(PATIENCE);
    way.transmit(&message)?;
    let (mut heard, mut buffer) = (0, [0; MESSAGE_BYTES]);
    while heard < MESSAGE_BYTES {
        wait_for(way, give_up);
        heard += way.receive(&mut buffer)?;
        if clock::now() >= give_up && heard < MESSAGE_BYTES {
            return Err(ChannelError::Closed(way.peer().into()));
        }
    }
    Ok(clock::now().since(begun))
}

fn wait_for(channel: &dyn Channel, until: Nanos) {
    let mut wait = WaitSet::new();
    if let Some(descriptor) = channel.descriptor() {
        wait.add(descriptor, false);
    }
    // If the wait fails, it ends immediately.
    let _ = wait.until(Some(until));
}

/// Echoes bytes on every connection until `is_over`.
fn answer(listener: &mut Listener, is_over: &dyn Fn() -> bool) {
    let mut channels: Vec<Box<dyn Channel>> = Vec::new();
    let mut wait = WaitSet::new();
    while !is_over() {
        wait.clear();
        wait.add(listener.descriptor(), false);
        for channel in &channels {
            if let Some(descriptor) = channel.descriptor() {
                wait.add(descriptor, false);
            }
        }
        let until = clock::now().saturating_add(Nanos::from_millis(20));
        if wait.until(Some(until)).is_err() {
            return;
        }
        if let Ok(Some(channel)) = listener.accept() {
            channels.push(channel);
        }
        let mut buffer = [0; 1024];
        channels.retain_mut(|channel| match channel.receive(&mut buffer) {
            Ok(count) => channel.transmit(&buffer[..count]).is_ok(),
            Err(_) => false,
        });
    }
}
