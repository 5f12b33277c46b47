//! Control channel proxy: forwards bytes between controllers and switches and times the messages.
//!
//! Each side connects or listens, depending on its address. A connection on one side is paired with
//! a connection on the other. One thread serves all connections: it waits for descriptors, forwards
//! bytes, and parses them afterwards. The method combines the message dumps of OFLOPS with cbench,
//! applied to a real controller and a real switch.
//!
//! Invariants:
//!
//! - Bytes that the proxy cannot parse are forwarded unchanged like all others.
//! - Memory is bounded by [`CONNECTIONS`] times [`relay::BUFFER_BYTES`] per direction.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};

use channel::admission::{AdmissionResult, AdmittedConnection};
use channel::{Channel, ChannelError, Connecting, ConnectionLimits, Listener, Source, Tls, Url};
use openflow::version::End;
use os::clock::{self, WaitSet};
use packet::time::Nanos;

pub mod relay;
pub mod framing;
pub mod decode;
pub mod tally;
pub mod overhead;
#[cfg(test)]
mod tests;

use decode::{ConnectionAnalysis, Event};
use relay::{DescriptorIndices, ENDS, Relay, RelayEnd, place};
use tally::ProxyCounters;

/// Default connection limits. Beyond the total, connections wait until another one ends. Beyond the
/// limit of one source, they are reset.
pub const CONNECTIONS: ConnectionLimits = ConnectionLimits { total: 1024, per_source: 512 };

/// Maximum number of switches with their own counters. All others are counted together.
pub const NAMES_MAX: usize = 1024;

/// Name for the combined counters.
pub const OTHERS: &str = "others";

/// Maximum wait before the stop flag is checked.
const WAIT_MAX: Nanos = Nanos::from_millis(100);

/// Timeout for connecting.
const PATIENCE: Nanos = Nanos::from_secs(5);

/// Delay between connection attempts if the proxy connects on both sides.
const REDIAL: Nanos = Nanos::from_secs(1);

/// How to reach one side.
pub enum Endpoint {
    /// The peer connects to the proxy.
    Listen(Listener),
    /// The proxy connects to the peer.
    Dial(Url),
}

impl Endpoint {
    /// Opens the side with this address.
    pub fn open(url: &Url, tls: Option<&Tls>) -> Result<Endpoint, ChannelError> {
        match url.is_passive() {
            true => Listener::open_with(url, tls).map(Endpoint::Listen),
            false => Tls::check(tls, url).map(|()| Endpoint::Dial(url.clone())),
        }
    }
}

/// An event of a running proxy.
#[derive(Debug, Clone, PartialEq)]
pub enum ProxyEvent {
    /// Two ends were paired: the names of controller and switch.
    Opened(u64, [String; 2]),
    /// A message event.
    Passed(u64, Nanos, Event),
    /// A connection closed: how, and the name under which its switch is counted.
    Closed(u64, RelayEnd, String),
    /// A side could not be reached, or listening failed.
    Failed(String),
}

/// Connections between controllers and switches.
pub struct Proxy {
    doors: [Endpoint; 2],
    tls: Option<Tls>,
    /// Accepted connections without a counterpart on the other side.
    waiting: [VecDeque<Box<dyn Channel>>; 2],
    opening: Vec<ConnectionAttempt>,
    sessions: Vec<Session>,
    count: u64,
    redial_at: Nanos,
    limits: ConnectionLimits,
    /// Whether the last connection was rejected, so that a series of rejections is reported once.
    is_refusing: bool,
    tallies: BTreeMap<String, ProxyCounters>,
}

/// A connection attempt, with the already open other side if any.
struct ConnectionAttempt {
    there: Option<(End, Box<dyn Channel>)>,
    dialled: End,
    attempt: Connecting,
}

struct Session {
    number: u64,
    relay: Relay,
    watch: ConnectionAnalysis,
    name: String,
    places: DescriptorIndices,
}

impl Proxy {
    /// Creates a proxy between controllers and switches.
    pub fn new(controller: Endpoint, switch: Endpoint, tls: Option<Tls>) -> Proxy {
        Proxy {
            doors: [controller, switch],
            tls,
            waiting: [VecDeque::new(), VecDeque::new()],
            opening: Vec::new(),
            sessions: Vec::new(),
            count: 0,
            redial_at: Nanos::ZERO,
            limits: CONNECTIONS,
            is_refusing: false,
            tallies: BTreeMap::new(),
        }
    }

    /// Sets the connection limits.
    pub fn set_limits(&mut self, limits: ConnectionLimits) {
        self.limits = limits;
    }

    /// Returns the listening addresses of the controller's and the switch's side.
    pub fn listens(&self) -> [Option<Url>; 2] {
        [0, 1].map(|side| match &self.doors[side] {
            Endpoint::Listen(listener) => Some(listener.address().clone()),
            Endpoint::Dial(_) => None,
        })
    }

    /// Forwards until the flag is set. Returns the counters by switch.
    pub fn run(
        mut self,
        stop: &AtomicBool,
        told: &mut dyn FnMut(ProxyEvent),
    ) -> std::io::Result<BTreeMap<String, ProxyCounters>> {
        let mut wait = WaitSet::new();
        while !stop.load(Ordering::Relaxed) {
            self.join(told);
            self.wait(&mut wait)?;
            self.turn(&wait, told);
        }
        for mut session in std::mem::take(&mut self.sessions) {
            session.relay.abort();
            self.count_in(session);
        }
        Ok(self.tallies)
    }

    fn held(&self) -> usize {
        let waiting = self.waiting.iter().map(VecDeque::len).sum::<usize>();
        self.sessions.len() + self.opening.len() + waiting
    }

    /// Accepts and opens connections, and pairs them.
    fn join(&mut self, told: &mut dyn FnMut(ProxyEvent)) {
        for end in ENDS {
            while self.held() < self.limits.total {
                let Endpoint::Listen(listener) = &mut self.doors[place(end)] else { break };
                match listener.accept() {
                    Ok(Some(channel)) if self.has_room(channel.source()) => {
                        self.is_refusing = false;
                        self.came(end, channel, told);
                    }
                    Ok(Some(channel)) => self.refuse(channel, told),
                    Ok(None) => break,
                    Err(error) => {
                        told(ProxyEvent::Failed(error.to_string()));
                        break;
                    }
                }
            }
        }
        let is_idle = self.sessions.is_empty() && self.opening.is_empty();
        let both = self.doors.iter().all(|endpoint| matches!(endpoint, Endpoint::Dial(_)));
        let now = clock::now();
        if both && is_idle && now >= self.redial_at {
            self.redial_at = now.saturating_add(REDIAL);
            self.dial(End::Switch, None, told);
        }
        self.answered(told);
        while self.waiting.iter().all(|waiting| !waiting.is_empty()) {
            let [controllers, switches] = &mut self.waiting;
            if let (Some(controller), Some(switch)) =
                (controllers.pop_front(), switches.pop_front())
            {
                self.begin(controller, switch, told);
            }
        }
    }

    /// Returns whether a source may have one more connection.
    fn has_room(&self, source: Option<Source>) -> bool {
        let waiting = self.waiting.iter().flatten().map(|channel| channel.source());
        let opening = self.opening.iter().filter_map(|opening| opening.there.as_ref());
        let opening = opening.map(|(_, channel)| channel.source());
        let comes = |end: &End| matches!(self.doors[place(*end)], Endpoint::Listen(_));
        let ends = ENDS.into_iter().filter(comes);
        let joined = ends.flat_map(|end| self.sessions.iter().map(move |it| it.relay.source(end)));
        let held = waiting.chain(opening).chain(joined);
        let held: Vec<AdmittedConnection> =
            held.map(|source| AdmittedConnection { id: 0, source, pending: None }).collect();
        // The caller checks the total limit, per connection. This list has one entry per end.
        let limits = ConnectionLimits { total: usize::MAX, ..self.limits };
        limits.room_for(&held, source) == AdmissionResult::Free
    }

    /// Resets a connection of a source that has reached its limit.
    fn refuse(&mut self, mut channel: Box<dyn Channel>, told: &mut dyn FnMut(ProxyEvent)) {
        if !std::mem::replace(&mut self.is_refusing, true) {
            told(ProxyEvent::Failed(format!(
                "{}: rejected: too many connections from its host (hint: raise \
                 --connections-per-source)",
                channel.peer()
            )));
        }
        channel.abort();
    }

    /// Handles a new connection on this side.
    fn came(&mut self, end: End, channel: Box<dyn Channel>, told: &mut dyn FnMut(ProxyEvent)) {
        let other = other(end);
        match &self.doors[place(other)] {
            Endpoint::Listen(_) => self.waiting[place(end)].push_back(channel),
            Endpoint::Dial(_) => self.dial(other, Some((end, channel)), told),
        }
    }

    fn dial(
        &mut self,
        dialled: End,
        there: Option<(End, Box<dyn Channel>)>,
        told: &mut dyn FnMut(ProxyEvent),
    ) {
        let Endpoint::Dial(url) = &self.doors[place(dialled)] else { return };
        let tls = self.tls.as_ref().filter(|_| url.is_tls());
        match Connecting::start_with(url, tls, clock::now(), PATIENCE) {
            Ok(attempt) => self.opening.push(ConnectionAttempt { there, dialled, attempt }),
            Err(error) => unreachable_side(&error, there, told),
        }
    }

    /// Checks the connection attempts.
    fn answered(&mut self, told: &mut dyn FnMut(ProxyEvent)) {
        for mut opening in std::mem::take(&mut self.opening) {
            match opening.attempt.finish(clock::now()) {
                Ok(None) => self.opening.push(opening),
                Err(error) => unreachable_side(&error, opening.there, told),
                Ok(Some(channel)) => match (opening.there, opening.dialled) {
                    (Some((End::Switch, switch)), _) => self.begin(channel, switch, told),
                    (Some((End::Controller, controller)), _) => {
                        self.begin(controller, channel, told);
                    }
                    // Both sides are outgoing, and the switch's is opened first.
                    (None, dialled) => {
                        self.dial(other(dialled), Some((dialled, channel)), told);
                    }
                },
            }
        }
    }

    fn begin(
        &mut self,
        controller: Box<dyn Channel>,
        switch: Box<dyn Channel>,
        told: &mut dyn FnMut(ProxyEvent),
    ) {
        self.count += 1;
        let name = host_of(switch.as_ref());
        let relay = Relay::new(controller, switch);
        told(ProxyEvent::Opened(self.count, relay.peers().map(Into::into)));
        let (number, watch, places) = (self.count, ConnectionAnalysis::new(), [None; 2]);
        self.sessions.push(Session { number, relay, watch, name, places });
    }

    fn wait(&mut self, wait: &mut WaitSet) -> std::io::Result<()> {
        wait.clear();
        let mut must_not = false;
        for session in &mut self.sessions {
            session.places = session.relay.wait_in(wait);
            must_not |= session.relay.must_not_wait();
        }
        for descriptor in self.opening.iter().filter_map(|it| it.attempt.descriptor()) {
            wait.add_to_write(descriptor);
        }
        if self.held() < self.limits.total {
            for endpoint in &self.doors {
                if let Endpoint::Listen(listener) = endpoint {
                    wait.add(listener.descriptor(), false);
                }
            }
        }
        let now = clock::now();
        let until = if must_not { now } else { now.saturating_add(WAIT_MAX) };
        wait.until(Some(until)).map(drop)
    }

    /// Forwards available bytes.
    fn turn(&mut self, wait: &WaitSet, told: &mut dyn FnMut(ProxyEvent)) {
        let mut place = 0;
        while place < self.sessions.len() {
            let session = &mut self.sessions[place];
            if !session.relay.is_ready(wait, session.places) {
                place += 1;
                continue;
            }
            let Session { relay, watch, number, .. } = session;
            let over = relay.turn(&mut |from, at, bytes| {
                watch.take(from, at, bytes, &mut |event| {
                    told(ProxyEvent::Passed(*number, at, event))
                });
            });
            match over {
                None => place += 1,
                Some(over) => {
                    let mut session = self.sessions.swap_remove(place);
                    session.watch.tally.broken += u64::from(over != RelayEnd::Ended);
                    let number = session.number;
                    let name = self.count_in(session);
                    told(ProxyEvent::Closed(number, over, name));
                }
            }
        }
    }

    /// Adds a connection's counters to those of its switch. Returns the switch's name.
    fn count_in(&mut self, session: Session) -> String {
        let Session { relay, watch, name, .. } = session;
        let mut name = watch.datapath_id.map_or(name, |id| format!("datapath {id:016x}"));
        let mut tally = watch.finish();
        tally.held = relay.held.clone();
        tally.lost_bytes = relay.lost_bytes;
        if self.tallies.len() >= NAMES_MAX && !self.tallies.contains_key(&name) {
            name = OTHERS.into();
        }
        self.tallies.entry(name.clone()).or_default().merge(&tally);
        name
    }
}

fn other(end: End) -> End {
    if end == End::Switch { End::Controller } else { End::Switch }
}

/// Resets the accepted connection, as if no one listened.
fn unreachable_side(
    error: &ChannelError,
    there: Option<(End, Box<dyn Channel>)>,
    told: &mut dyn FnMut(ProxyEvent),
) {
    told(ProxyEvent::Failed(error.to_string()));
    if let Some((_, mut channel)) = there {
        channel.abort();
    }
}

/// Returns a provisional name for a switch: its host, or its address.
fn host_of(switch: &dyn Channel) -> String {
    let host = switch.source().and_then(Source::address).map(|host| host.to_string());
    host.unwrap_or_else(|| switch.peer().to_string())
}
