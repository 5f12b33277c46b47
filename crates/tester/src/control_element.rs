//! ForCES control element: an association with a forwarding element over sockets (RFC 5810, RFC
//! 5811).
//!
//! - [`AssociationSetup`] opens the three channels, by connecting or listening.
//! - [`ControlElement`] moves messages between the channels and [`Ce`], without blocking.
//! - Calls that wait for a reply use a [`WaitHook`].
//! - Any misbehavior of the peer ends in one error that describes it: invalid messages, silence, or
//!   a closed channel.

use std::collections::VecDeque;
use std::os::fd::RawFd;

use channel::framed::Framed;
use channel::multi::{Channels, Listeners, PendingChannels};
use channel::{ChannelError, Tls, Url};
use forces::association::{
    Answer, Ce, CeEvent, CeSettings, Channel, Place, RequestError, Timestamp,
};
use forces::wire::{Id, Mode, ResultCode, Select, TeardownReason, frame_octets};
use os::clock;
use packet::time::Nanos;

mod transaction;

pub use transaction::{Rows, rows_of};

/// Size of a read in bytes.
const READ_BYTES: usize = 256 << 10;
/// Maximum number of queued bytes per channel. More stay with the association.
const OWED_MAX: usize = 1 << 20;
/// Maximum number of stored events while waiting for a reply. More are only counted.
pub const EVENTS_MAX: usize = 65_536;

/// How to wait, and the time.
pub trait WaitHook {
    /// Returns the time.
    fn now(&mut self) -> Nanos;

    /// Waits until one of these descriptors is ready, each with whether to wait for writability.
    ///
    /// Returns at `deadline` at the latest. Can return early.
    fn rest(&mut self, descriptors: &[(RawFd, bool)], deadline: Nanos);
}

/// Waits in real time.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealTime;

impl WaitHook for RealTime {
    fn now(&mut self) -> Nanos {
        clock::now()
    }

    fn rest(&mut self, descriptors: &[(RawFd, bool)], deadline: Nanos) {
        let mut wait = clock::WaitSet::new();
        descriptors.iter().for_each(|(descriptor, writable)| {
            wait.add(*descriptor, *writable);
        });
        // An interrupted wait returns early, and the caller reads the clock.
        let _ = wait.until(Some(deadline));
    }
}

/// Why a request to a forwarding element failed.
#[derive(Debug)]
pub enum CeError {
    /// A channel could not be opened, or broke.
    Channel(ChannelError),
    /// No forwarding element connected in time to this address.
    NotConnected(Url),
    /// The association is over, or was not established.
    Down(TeardownReason),
    /// The peer sent bytes that are not ForCES.
    Garbage(String),
    /// No reply arrived in time.
    Silent,
    /// The request cannot be sent.
    Refused(RequestError),
    /// The forwarding element rejected parts of it.
    Failed(Vec<(Place, ResultCode)>),
}

impl From<ChannelError> for CeError {
    fn from(error: ChannelError) -> Self {
        CeError::Channel(error)
    }
}

impl From<RequestError> for CeError {
    fn from(refused: RequestError) -> Self {
        CeError::Refused(refused)
    }
}

impl std::fmt::Display for CeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CeError::Channel(error) => write!(f, "{error}"),
            CeError::NotConnected(url) => {
                write!(f, "no forwarding element connected to {url} in time")
            }
            CeError::Down(reason) => write!(f, "the association ended: {reason}"),
            CeError::Garbage(why) => {
                write!(f, "invalid ForCES message from the forwarding element: {why}")
            }
            CeError::Silent => f.write_str("no reply from the forwarding element in time"),
            CeError::Refused(refused) => write!(f, "{refused}"),
            CeError::Failed(all) => {
                let one = |(place, code): &(Place, ResultCode)| {
                    format!("{}:{} {:?}: {code}", place.class, place.instance, place.path)
                };
                let shown: Vec<String> = all.iter().take(3).map(one).collect();
                write!(f, "{}", shown.join("; "))?;
                match all.len() > 3 {
                    true => write!(f, "; and {} more", all.len() - 3),
                    false => Ok(()),
                }
            }
        }
    }
}

impl std::error::Error for CeError {}

/// Channels that are being opened.
pub enum AssociationSetup {
    /// By connecting.
    Connecting(Box<PendingChannels>),
    /// By listening.
    Listening(Box<Listeners>),
}

impl AssociationSetup {
    /// Connects or listens, depending on the address of the high-priority channel.
    pub fn open(
        url: &Url,
        tls: Option<&Tls>,
        now: Nanos,
    ) -> Result<AssociationSetup, ChannelError> {
        let none = "no addresses for three channels (hint: use a lower port or a shorter path)";
        let urls = url.in_a_row().ok_or(ChannelError::BadUrl(url.to_string(), none))?;
        Ok(match url.is_passive() {
            true => AssociationSetup::Listening(Box::new(Listeners::open(&urls, tls)?)),
            false => {
                AssociationSetup::Connecting(Box::new(PendingChannels::start(urls, tls, now)?))
            }
        })
    }

    /// Returns the channels, once all are open.
    pub fn turn(&mut self, now: Nanos) -> Result<Option<Channels>, ChannelError> {
        match self {
            AssociationSetup::Connecting(pending) => pending.turn(now),
            AssociationSetup::Listening(listeners) => listeners.turn(now),
        }
    }

    /// Returns the descriptors to wait for, each with whether to wait for writability.
    pub fn descriptors(&self) -> Vec<(RawFd, bool)> {
        match self {
            AssociationSetup::Connecting(pending) => {
                pending.descriptor().map(|at| (at, true)).into_iter().collect()
            }
            AssociationSetup::Listening(listeners) => {
                listeners.descriptors().map(|at| (at, false)).collect()
            }
        }
    }
}

/// An association with a forwarding element.
pub struct ControlElement {
    ce: Ce,
    channels: [Framed; 3],
    buffer: Vec<u8>,
    events: VecDeque<CeEvent>,
    /// Number of events that were not stored.
    pub lost: u64,
}

/// Returns the length of the first message.
fn length(bytes: &[u8]) -> Result<Option<usize>, String> {
    frame_octets(bytes).map_err(|fault| fault.to_string())
}

fn moment(now: Nanos) -> Timestamp {
    Timestamp::from_nanos(now.0)
}

impl ControlElement {
    /// Creates a control element on open channels.
    pub fn new(mut channels: Channels, settings: CeSettings, now: Nanos) -> ControlElement {
        for (channel, kind) in channels.iter_mut().zip(Channel::ALL) {
            channel.label(kind.payload_protocol());
        }
        ControlElement {
            ce: Ce::new(settings, moment(now)),
            channels: channels.map(|channel| Framed::new(channel, length)),
            buffer: vec![0; READ_BYTES],
            events: VecDeque::new(),
            lost: 0,
        }
    }

    /// Connects or listens, and returns once associated. `patience` is the timeout for both.
    pub fn associate(
        url: &Url,
        tls: Option<&Tls>,
        settings: CeSettings,
        patience: Nanos,
        hook: &mut dyn WaitHook,
    ) -> Result<ControlElement, CeError> {
        let now = hook.now();
        let until = now.saturating_add(patience);
        let mut meeting = AssociationSetup::open(url, tls, now)?;
        let channels = loop {
            let now = hook.now();
            match meeting.turn(now)? {
                Some(channels) => break channels,
                None if now >= until => return Err(CeError::NotConnected(url.clone())),
                None => hook.rest(&meeting.descriptors(), until),
            }
        };
        let mut element = ControlElement::new(channels, settings, hook.now());
        while element.fe().is_none() {
            element.turn(hook.now())?;
            if element.fe().is_none() {
                element.check_up()?;
                if hook.now() >= until {
                    return Err(CeError::Silent);
                }
                element.rest(until, hook);
            }
        }
        Ok(element)
    }

    /// Returns the id of the forwarding element.
    pub fn fe(&self) -> Option<Id> {
        self.ce.fe()
    }

    /// Returns the association, to send requests. The next `turn` transmits them.
    pub fn ce(&mut self) -> &mut Ce {
        &mut self.ce
    }

    /// Sends and receives without blocking, and processes timeouts.
    pub fn turn(&mut self, now: Nanos) -> Result<(), CeError> {
        for channel in Channel::ALL {
            let framed = &mut self.channels[channel as usize];
            loop {
                match framed.message() {
                    Ok(Some(message)) => self.ce.receive(channel, message, moment(now)),
                    Ok(None) => {
                        let count = framed.receive(&mut self.buffer);
                        match count {
                            Ok(0) => break,
                            Ok(_) => {}
                            // Messages that arrived before the close still count.
                            Err(ChannelError::Closed(_)) if !self.events.is_empty() => break,
                            Err(error) => return Err(self.broken(error)),
                        }
                    }
                    Err(why) => return Err(CeError::Garbage(why)),
                }
                while let Some(event) = self.ce.poll_event() {
                    if self.events.len() < EVENTS_MAX || matches!(event, CeEvent::Answered(_)) {
                        self.events.push_back(event);
                    } else {
                        self.lost += 1;
                    }
                }
            }
        }
        if self.ce.next_timeout().is_some_and(|at| at <= moment(now)) {
            self.ce.tick(moment(now));
        }
        while let Some(event) = self.ce.poll_event() {
            self.events.push_back(event);
        }
        self.send().map_err(|error| self.broken(error))
    }

    /// Reports a channel that closes with the association as the end of the association.
    fn broken(&self, error: ChannelError) -> CeError {
        let down = self.events.iter().find_map(|event| match event {
            CeEvent::Down(reason) => Some(*reason),
            _ => None,
        });
        down.map_or(CeError::Channel(error), CeError::Down)
    }

    fn send(&mut self) -> Result<(), ChannelError> {
        for channel in Channel::ALL {
            let framed = &mut self.channels[channel as usize];
            loop {
                while framed.owed() < OWED_MAX {
                    let Some(message) = self.ce.poll_transmit_by(channel) else { break };
                    framed.send(message);
                }
                let before = framed.owed();
                framed.flush()?;
                if framed.owed() == before || before == 0 {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Returns the next event.
    pub fn next_event(&mut self) -> Option<CeEvent> {
        self.events.pop_front()
    }

    /// Returns the descriptors to wait for, each with whether to wait for writability.
    pub fn descriptors(&self) -> Vec<(RawFd, bool)> {
        self.channels.iter().filter_map(Framed::descriptor).collect()
    }

    /// Returns when the next timeout is due.
    pub fn next_due(&self) -> Option<Nanos> {
        let due = self.ce.next_timeout()?;
        Some(Nanos(u64::try_from(due.as_nanos()).unwrap_or(u64::MAX)))
    }

    /// Waits for the next event, until `until` at the latest.
    pub fn rest(&self, until: Nanos, hook: &mut dyn WaitHook) {
        if self.channels.iter().any(Framed::holds_received) {
            return;
        }
        let until = self.next_due().map_or(until, |due| due.min(until));
        hook.rest(&self.descriptors(), until);
    }

    fn check_up(&self) -> Result<(), CeError> {
        let down = self.events.iter().find_map(|event| match event {
            CeEvent::Down(reason) => Some(*reason),
            _ => None,
        });
        down.map_or(Ok(()), |reason| Err(CeError::Down(reason)))
    }

    /// Waits for the reply to a request. Other events stay queued.
    pub fn answer(&mut self, correlator: u64, hook: &mut dyn WaitHook) -> Result<Answer, CeError> {
        loop {
            self.turn(hook.now())?;
            let is_it = |event: &CeEvent| match event {
                CeEvent::Answered(answer) => answer.correlator == correlator,
                CeEvent::TimedOut(late) => *late == correlator,
                _ => false,
            };
            if let Some(at) = self.events.iter().position(is_it) {
                return match self.events.remove(at) {
                    Some(CeEvent::Answered(answer)) => Ok(answer),
                    _ => Err(CeError::Silent),
                };
            }
            self.check_up()?;
            self.rest(Nanos::MAX, hook);
        }
    }

    /// Requests the values of a component.
    pub fn get(&mut self, place: &Place, hook: &mut dyn WaitHook) -> Result<Answer, CeError> {
        let correlator = self.ce.get(place)?;
        self.answer(correlator, hook)
    }

    /// Changes components atomically.
    pub fn configure(
        &mut self,
        selects: Vec<Select>,
        hook: &mut dyn WaitHook,
    ) -> Result<(), CeError> {
        let correlator = self.ce.configure(selects, Mode::AllOrNone)?;
        done(&self.answer(correlator, hook)?)
    }

    /// Ends the association and notifies the peer.
    pub fn leave(mut self, hook: &mut dyn WaitHook) {
        self.ce.teardown(TeardownReason::NORMAL);
        let until = hook.now().saturating_add(Nanos::from_millis(200));
        while self.send().is_ok() && self.channels.iter().any(|it| it.owed() > 0) {
            if hook.now() >= until {
                return;
            }
            hook.rest(&self.descriptors(), until);
        }
    }
}

/// Returns an error if any part of the request failed.
fn done(answer: &Answer) -> Result<(), CeError> {
    let failures = answer.failures();
    match failures.is_empty() {
        true => Ok(()),
        false => Err(CeError::Failed(failures)),
    }
}
