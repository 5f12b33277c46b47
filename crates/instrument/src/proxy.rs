//! What passes between controllers and switches, forwarded byte by byte and timed from the outside.
//!
//! Each side is dialled or listens, as its address says; who comes on one side is joined with a connection of
//! the other. One thread carries all of them: it waits for descriptors, moves bytes, and looks at them after they
//! have left. Source: OFLOPS's message dumps, and cbench's question turned round: what a real controller and
//! a real switch make of each other. Invariants: nothing that is not understood stops or changes anything; no more
//! than [`CONNECTIONS`] of [`relay::BUFFER_BYTES`] each way are held.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};

use openflow::version::End;
use packet::time::Nanos;
use ports::channel::admission::{Held, Room};
use ports::channel::{
    Channel, ChannelError, Connecting, ConnectionLimits, Listener, Source, Tls, Url,
};
use ports::clock::{self, Wait};

/// Bytes from one channel to another and back.
pub mod relay;
/// Where messages begin and end.
pub mod cutter;
/// What passes on one connection, understood.
pub mod watch;
/// What was counted and timed.
pub mod tally;
/// What a proxy adds to a message's way.
pub mod added;
#[cfg(test)]
mod tests;

use relay::{ENDS, Over, Places, Relay, place};
use tally::Tally;
use watch::{Event, Watch};

/// Connections at a time where no other limits are set. More than all are not accepted until one ends; more of one
/// source are reset.
pub const CONNECTIONS: ConnectionLimits = ConnectionLimits { total: 1024, per_source: 512 };

/// Switches that are told apart; what others do is added up.
pub const NAMES_MAX: usize = 1024;

/// The name under which it is.
pub const OTHERS: &str = "others";

/// How long is waited for descriptors before the flag is looked at again.
const WAIT_MAX: Nanos = Nanos::from_millis(100);

/// How long a side that is dialled may take to answer.
const PATIENCE: Nanos = Nanos::from_secs(5);

/// Where both sides are dialled, how long after an end they are dialled again.
const REDIAL: Nanos = Nanos::from_secs(1);

/// How one side is reached.
pub enum Door {
    /// It comes to us.
    Listen(Listener),
    /// We go there.
    Dial(Url),
}

impl Door {
    /// The way to the side with this address.
    pub fn open(url: &Url, tls: Option<&Tls>) -> Result<Door, ChannelError> {
        match url.is_passive() {
            true => Listener::open_with(url, tls).map(Door::Listen),
            false => Tls::check(tls, url).map(|()| Door::Dial(url.clone())),
        }
    }
}

/// What a proxy tells while it runs.
#[derive(Debug, Clone, PartialEq)]
pub enum News {
    /// Two ends were joined: the names of controller and switch.
    Opened(u64, [String; 2]),
    /// Something passed.
    Passed(u64, Nanos, Event),
    /// A connection is over: how, and by which name the switch is counted.
    Closed(u64, Over, String),
    /// A side could not be reached or listened to.
    Failed(String),
}

/// Connections between a controller's side and a switch's.
pub struct Proxy {
    doors: [Door; 2],
    tls: Option<Tls>,
    /// Who came and waits for somebody on the other side.
    waiting: [VecDeque<Box<dyn Channel>>; 2],
    opening: Vec<Opening>,
    sessions: Vec<Session>,
    count: u64,
    redial_at: Nanos,
    limits: ConnectionLimits,
    /// Whether the last connection was refused, so that a row of them is told once.
    is_refusing: bool,
    tallies: BTreeMap<String, Tally>,
}

/// One side is there, the other is dialled.
struct Opening {
    there: Option<(End, Box<dyn Channel>)>,
    dialled: End,
    attempt: Connecting,
}

struct Session {
    number: u64,
    relay: Relay,
    watch: Watch,
    name: String,
    places: Places,
}

impl Proxy {
    /// A proxy between a controller and switches.
    pub fn new(controller: Door, switch: Door, tls: Option<Tls>) -> Proxy {
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

    /// Sets how many connections are held.
    pub fn set_limits(&mut self, limits: ConnectionLimits) {
        self.limits = limits;
    }

    /// The addresses that it listens on, controller's side and switch's.
    pub fn listens(&self) -> [Option<Url>; 2] {
        [0, 1].map(|side| match &self.doors[side] {
            Door::Listen(listener) => Some(listener.address().clone()),
            Door::Dial(_) => None,
        })
    }

    /// Forwards until the flag is set; then what was counted, by switch.
    pub fn run(
        mut self,
        stop: &AtomicBool,
        told: &mut dyn FnMut(News),
    ) -> std::io::Result<BTreeMap<String, Tally>> {
        let mut wait = Wait::new();
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

    /// Takes who comes, dials who is to be dialled, and joins who is there.
    fn join(&mut self, told: &mut dyn FnMut(News)) {
        for end in ENDS {
            while self.held() < self.limits.total {
                let Door::Listen(listener) = &mut self.doors[place(end)] else { break };
                match listener.accept() {
                    Ok(Some(channel)) if self.has_room(channel.source()) => {
                        self.is_refusing = false;
                        self.came(end, channel, told);
                    }
                    Ok(Some(channel)) => self.refuse(channel, told),
                    Ok(None) => break,
                    Err(error) => {
                        told(News::Failed(error.to_string()));
                        break;
                    }
                }
            }
        }
        let is_idle = self.sessions.is_empty() && self.opening.is_empty();
        let both = self.doors.iter().all(|door| matches!(door, Door::Dial(_)));
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

    /// Whether a source may have one more connection.
    fn has_room(&self, source: Option<Source>) -> bool {
        let waiting = self.waiting.iter().flatten().map(|channel| channel.source());
        let opening = self.opening.iter().filter_map(|opening| opening.there.as_ref());
        let opening = opening.map(|(_, channel)| channel.source());
        let comes = |end: &End| matches!(self.doors[place(*end)], Door::Listen(_));
        let ends = ENDS.into_iter().filter(comes);
        let joined = ends.flat_map(|end| self.sessions.iter().map(move |it| it.relay.source(end)));
        let held = waiting.chain(opening).chain(joined);
        let held: Vec<Held> = held.map(|source| Held { id: 0, source, pending: None }).collect();
        // All places are counted by connections, these by their ends.
        let limits = ConnectionLimits { total: usize::MAX, ..self.limits };
        limits.room_for(&held, source) == Room::Free
    }

    /// Resets a connection of a source that has as many as it may.
    fn refuse(&mut self, mut channel: Box<dyn Channel>, told: &mut dyn FnMut(News)) {
        if !std::mem::replace(&mut self.is_refusing, true) {
            told(News::Failed(format!(
                "{}: refused: its host has as many connections as one may have (hint: raise \
                 --connections-per-source)",
                channel.peer()
            )));
        }
        channel.abort();
    }

    /// Somebody connected on this side.
    fn came(&mut self, end: End, channel: Box<dyn Channel>, told: &mut dyn FnMut(News)) {
        let other = other(end);
        match &self.doors[place(other)] {
            Door::Listen(_) => self.waiting[place(end)].push_back(channel),
            Door::Dial(_) => self.dial(other, Some((end, channel)), told),
        }
    }

    fn dial(
        &mut self,
        dialled: End,
        there: Option<(End, Box<dyn Channel>)>,
        told: &mut dyn FnMut(News),
    ) {
        let Door::Dial(url) = &self.doors[place(dialled)] else { return };
        let tls = self.tls.as_ref().filter(|_| url.is_tls());
        match Connecting::start_with(url, tls, clock::now(), PATIENCE) {
            Ok(attempt) => self.opening.push(Opening { there, dialled, attempt }),
            Err(error) => unreachable_side(&error, there, told),
        }
    }

    /// Looks at what has become of those that were dialled.
    fn answered(&mut self, told: &mut dyn FnMut(News)) {
        for mut opening in std::mem::take(&mut self.opening) {
            match opening.attempt.finish(clock::now()) {
                Ok(None) => self.opening.push(opening),
                Err(error) => unreachable_side(&error, opening.there, told),
                Ok(Some(channel)) => match (opening.there, opening.dialled) {
                    (Some((End::Switch, switch)), _) => self.begin(channel, switch, told),
                    (Some((End::Controller, controller)), _) => {
                        self.begin(controller, channel, told);
                    }
                    // Both are dialled, the switch first.
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
        told: &mut dyn FnMut(News),
    ) {
        self.count += 1;
        let name = host_of(switch.as_ref());
        let relay = Relay::new(controller, switch);
        told(News::Opened(self.count, relay.peers().map(Into::into)));
        let (number, watch, places) = (self.count, Watch::new(), [None; 2]);
        self.sessions.push(Session { number, relay, watch, name, places });
    }

    fn wait(&mut self, wait: &mut Wait) -> std::io::Result<()> {
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
            for door in &self.doors {
                if let Door::Listen(listener) = door {
                    wait.add(listener.descriptor(), false);
                }
            }
        }
        let now = clock::now();
        let until = if must_not { now } else { now.saturating_add(WAIT_MAX) };
        wait.until(Some(until)).map(drop)
    }

    /// Moves what can be moved.
    fn turn(&mut self, wait: &Wait, told: &mut dyn FnMut(News)) {
        let mut place = 0;
        while place < self.sessions.len() {
            let session = &mut self.sessions[place];
            if !session.relay.is_ready(wait, session.places) {
                place += 1;
                continue;
            }
            let Session { relay, watch, number, .. } = session;
            let over = relay.turn(&mut |from, at, bytes| {
                watch.take(from, at, bytes, &mut |event| told(News::Passed(*number, at, event)));
            });
            match over {
                None => place += 1,
                Some(over) => {
                    let mut session = self.sessions.swap_remove(place);
                    session.watch.tally.broken += u64::from(over != Over::Ended);
                    let number = session.number;
                    let name = self.count_in(session);
                    told(News::Closed(number, over, name));
                }
            }
        }
    }

    /// Adds what a connection did to what its switch did before; the switch's name.
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

/// Whoever came is let go with a reset, as if nobody had listened.
fn unreachable_side(
    error: &ChannelError,
    there: Option<(End, Box<dyn Channel>)>,
    told: &mut dyn FnMut(News),
) {
    told(News::Failed(error.to_string()));
    if let Some((_, mut channel)) = there {
        channel.abort();
    }
}

/// Who a switch is as long as it does not say so: its host, or its address without what changes.
fn host_of(switch: &dyn Channel) -> String {
    let host = switch.source().and_then(Source::address).map(|host| host.to_string());
    host.unwrap_or_else(|| switch.peer().to_string())
}
