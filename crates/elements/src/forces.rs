//! ForCES agent of a forwarding element: channels to control elements, and their messages.
//!
//! The [association](forces::association::Fe) decides which control element to connect to and what
//! to send. This module gives it channels, received bytes, the time, and a
//! [speaker](progfe::control::Speaker) that acts on the element.
//!
//! Invariants:
//! - Messages are read by strict priority (RFC 5811, section 4.2.3).
//! - A turn reads a bounded number of bytes, so that control does not delay frames.
//! - Nothing blocks. While a control element does not read replies, its messages stay in the
//!   kernel.

use std::os::fd::RawFd;

use ::forces::association::{Channel, Fe, FeEvent, FeSettings, Happening, Timestamp};
use ::forces::wire::Id;
use channel::{ChannelError, Tls, Url};
use dataplane::forwarder::Outputs;
use packet::time::Nanos;
use progfe::control::{Control, Speaker, notifications};
use progfe::lfb::DivertDestination;
use progfe::program::Program;

use crate::config::ForcesConfig;
use crate::datapath::Element;
use crate::event::Event;

mod peer;

use peer::{ConnectResult, Peer};

/// FE ID of an element whose program has none.
const FE_ID_DEFAULT: u32 = 1;
/// Bytes of one read.
const READ_BYTES: usize = 64 << 10;
/// Rows that are changed in one turn before frames are forwarded again.
const ROWS_A_TURN: usize = 2048;
/// CE failover timeout (CEFTI) in ms: unlimited, as the element runs its program before any control
/// element connects.
const GOES_ON_FOR: u32 = u32::MAX;

/// ForCES agent of a forwarding element.
pub struct Forces {
    /// Events for the log.
    pub events: Vec<Event>,
    /// Messages received from control elements.
    pub messages: u64,
    /// Packets for the control element that were dropped because none was associated.
    pub redirects_lost: u64,
    fe: Fe,
    control: Control,
    peers: Vec<Peer>,
    tls: Option<Tls>,
    buffer: Vec<u8>,
    /// When the association's next timer is due.
    due: Nanos,
    /// Whether received messages were left for the next turn.
    is_behind: bool,
}

fn moment(now: Nanos) -> Timestamp {
    Timestamp::from_nanos(now.0)
}

impl Forces {
    /// Opens the agent for the control elements of a valid configuration. Returns `None` if it
    /// names none.
    pub fn open(
        config: &ForcesConfig,
        program: &Program,
        now: Nanos,
    ) -> Result<Option<Forces>, ChannelError> {
        if config.ces.is_empty() {
            return Ok(None);
        }
        let files = config.tls_files();
        let tls = if files.is_empty() { None } else { Some(Tls::load(&files)?) };
        let (mut peers, mut events) = (Vec::new(), Vec::new());
        for (place, ce) in config.ces.iter().enumerate() {
            Tls::check(tls.as_ref(), &ce.url)?;
            let peer = Peer::open(config.id_of(place), &ce.url, tls.as_ref())?;
            let listens = peer.addresses().into_iter().map(|url| url.to_string());
            events.extend(listens.map(Event::ListeningForCes));
            if ce.url.accepts_anyone(config.ca_cert.is_some()) {
                events.push(Event::AcceptsAnyone(ce.url.to_string()));
            }
            peers.push(peer);
        }
        let settings = FeSettings {
            id: Id(program.fe_id.unwrap_or(FE_ID_DEFAULT)),
            primary: peers[0].id,
            backups: peers[1..].iter().map(|peer| peer.id).collect(),
            ha_mode: if peers.len() > 1 { 2 } else { 0 },
            goes_on: true,
            goes_on_for_ms: GOES_ON_FOR,
            forwards: true,
            name: program.name.clone(),
            vendor: "planimeter".into(),
            model: "progfe".into(),
        };
        Ok(Some(Forces {
            events,
            messages: 0,
            redirects_lost: 0,
            fe: Fe::new(&settings, moment(now)),
            control: Control::default(),
            peers,
            tls,
            buffer: vec![0; READ_BYTES],
            due: now,
            is_behind: false,
        }))
    }

    /// Returns the addresses on which the agent listens for control elements.
    pub fn addresses(&self) -> impl Iterator<Item = Url> + '_ {
        self.peers.iter().flat_map(Peer::addresses)
    }

    /// Whether the primary control element is associated.
    pub fn is_controlled(&self) -> bool {
        self.fe.primary().is_some()
    }

    /// Processes received messages and due timers. Returns whether a control element sent anything.
    pub fn turn(&mut self, element: &mut Element, out: &mut Outputs, now: Nanos) -> bool {
        let before = self.messages;
        self.meet(element, out, now);
        self.is_behind = false;
        for at in 0..self.peers.len() {
            self.hear(at, element, out, now);
        }
        self.tell(element, out, now);
        let timeout = self.fe.next_timeout();
        if timeout.is_some_and(|at| at <= moment(now)) {
            let Forces { fe, control, .. } = self;
            fe.tick(&mut Speaker { control, element, now, out }, moment(now));
        }
        self.follow(element, out, now);
        for at in 0..self.peers.len() {
            self.say(at, element, out, now);
        }
        self.follow(element, out, now);
        let timeout = self.fe.next_timeout();
        let timeout = timeout.map(|at| Nanos(u64::try_from(at.as_nanos()).unwrap_or(u64::MAX)));
        self.due = timeout.unwrap_or(Nanos::MAX);
        self.messages != before
    }

    /// Continues to open channels.
    fn meet(&mut self, element: &mut Element, out: &mut Outputs, now: Nanos) {
        let is_alone = self.peers.len() == 1;
        for at in 0..self.peers.len() {
            let (met, id) = (self.peers[at].meet(is_alone, now), self.peers[at].id);
            if let Some(why) = self.peers[at].take_shut() {
                self.events.push(Event::CeUnreachable(self.peers[at].url().to_string(), why));
            }
            if self.peers[at].has_come() {
                self.fe.came(id, moment(now));
            }
            let Some(met) = met else { continue };
            match met {
                ConnectResult::Channels => self.fe.connected(id, moment(now)),
                ConnectResult::NotConnected(why) => {
                    if let Some(why) = why {
                        let url = self.peers[at].url().to_string();
                        self.events.push(Event::CeUnreachable(url, why));
                    }
                    let Forces { fe, control, .. } = self;
                    let mut speaker = Speaker { control, element, now, out };
                    fe.connect_failed(id, &mut speaker, moment(now));
                }
            }
        }
        self.follow(element, out, now);
    }

    /// Reads messages of a control element, highest priority first.
    fn hear(&mut self, at: usize, element: &mut Element, out: &mut Outputs, now: Nanos) {
        let (id, mut work) = (self.peers[at].id, 0);
        for channel in Channel::ALL {
            let Forces { fe, control, peers, buffer, messages, is_behind, .. } = self;
            if *is_behind {
                return;
            }
            let Some(framed) = peers[at].channel(channel) else { return };
            let mut speaker = Speaker { control, element, now, out };
            // One read per turn, so that frames are forwarded between the parts of a large
            // configuration.
            let mut has_read = false;
            let ended = loop {
                if !fe.can_receive(id) {
                    break None;
                }
                match framed.message() {
                    Ok(Some(message)) => {
                        *messages += 1;
                        fe.receive(id, channel, message, &mut speaker, moment(now));
                        work += speaker.control.take_work();
                        if work >= ROWS_A_TURN {
                            *is_behind = true;
                            break None;
                        }
                        continue;
                    }
                    Ok(None) if has_read => break None,
                    Ok(None) => has_read = true,
                    Err(why) => break Some(why),
                }
                match framed.receive(buffer) {
                    Ok(_) => {}
                    Err(ChannelError::Closed(_)) => break Some("closed the connection".into()),
                    Err(error) => break Some(error.to_string()),
                }
            };
            if let Some(why) = ended {
                self.end(at, why, element, out, now);
                return;
            }
            self.follow(element, out, now);
        }
    }

    /// Handles the end of a control element's channels.
    fn end(
        &mut self,
        at: usize,
        why: String,
        element: &mut Element,
        out: &mut Outputs,
        now: Nanos,
    ) {
        let Forces { fe, control, peers, .. } = self;
        let id = peers[at].id;
        peers[at].why = Some(why);
        let mut speaker = Speaker { control, element, now, out };
        fe.disconnected(id, &mut speaker, moment(now));
        self.follow(element, out, now);
        // A control element that was never associated is not lost. The reason is logged once.
        let peer = &mut self.peers[at];
        if let Some(why) = peer.why.take()
            && peer.trouble.as_ref() != Some(&why)
        {
            peer.trouble = Some(why.clone());
            self.events.push(Event::CeUnreachable(peer.url().to_string(), why));
        }
    }

    /// Sends packet redirects and event notifications that wait.
    fn tell(&mut self, element: &mut Element, out: &mut Outputs, now: Nanos) {
        while let Some(told) = element.next_told_to(|to| *to == DivertDestination::Control) {
            let redirect = notifications::redirect(element.program(), &told);
            if !self.fe.redirect(redirect, moment(now)) {
                self.redirects_lost += 1;
            }
        }
        element.watch_also(self.fe.subscribed());
        while let Some(happening) = element.poll_event() {
            let Forces { fe, control, .. } = self;
            let mut speaker = Speaker { control, element, now, out };
            fe.happened(&happening, &mut speaker, moment(now));
        }
    }

    /// Sends an event notification of an agent.
    pub fn agent_said(
        &mut self,
        happening: &Happening,
        element: &mut Element,
        out: &mut Outputs,
        now: Nanos,
    ) {
        let Forces { fe, control, .. } = self;
        control.agent_said(happening);
        let mut speaker = Speaker { control, element, now, out };
        fe.happened(happening, &mut speaker, moment(now));
    }

    /// Executes the requests of the association.
    fn follow(&mut self, element: &mut Element, out: &mut Outputs, now: Nanos) {
        while let Some(event) = self.fe.poll_event() {
            let id = match &event {
                FeEvent::Connect(id)
                | FeEvent::Disconnect(id)
                | FeEvent::Associated(id, _)
                | FeEvent::Lost(id, _) => *id,
            };
            let at = self.peers.iter().position(|peer| peer.id == id);
            match (event, at) {
                (FeEvent::Connect(_), Some(at)) => {
                    self.peers[at].want(self.tls.as_ref(), now);
                }
                (FeEvent::Connect(_), None) => {
                    // A control element named another one whose address is unknown.
                    let why = "unknown address (hint: add it with --forces)".to_owned();
                    self.events.push(Event::CeUnreachable(format!("{:#010x}", id.0), why));
                    let Forces { fe, control, .. } = self;
                    let mut speaker = Speaker { control, element, now, out };
                    fe.connect_failed(id, &mut speaker, moment(now));
                }
                (FeEvent::Disconnect(_), Some(at)) => {
                    self.send(at);
                    self.peers[at].part();
                }
                (FeEvent::Associated(_, is_primary), Some(at)) => {
                    self.peers[at].trouble = None;
                    self.events.push(Event::CeAssociated(self.peers[at].name(), is_primary));
                }
                (FeEvent::Lost(_, reason), Some(at)) => {
                    let why = self.peers[at].why.take();
                    let why = why.unwrap_or_else(|| reason.to_string());
                    self.events.push(Event::CeLost(self.peers[at].name(), why));
                }
                _ => {}
            }
        }
    }

    /// Passes queued messages for a control element to its channels.
    fn send(&mut self, at: usize) -> Option<ChannelError> {
        let id = self.peers[at].id;
        for channel in Channel::ALL {
            let framed = self.peers[at].channel(channel)?;
            while framed.owed() < peer::OWED_MAX {
                let Some(message) = self.fe.poll_transmit_by(id, channel) else { break };
                framed.send(message);
            }
            if let Err(error) = framed.flush() {
                return Some(error);
            }
        }
        None
    }

    fn say(&mut self, at: usize, element: &mut Element, out: &mut Outputs, now: Nanos) {
        if let Some(error) = self.send(at) {
            let why = match error {
                ChannelError::Closed(_) => "closed the connection".to_owned(),
                other => other.to_string(),
            };
            self.end(at, why, element, out, now);
        }
    }

    /// Returns the descriptors to poll, each with whether to poll for writing as well.
    pub fn descriptors(&self) -> impl Iterator<Item = (RawFd, bool)> + '_ {
        let hears = |peer: &Peer| self.fe.can_receive(peer.id);
        self.peers.iter().flat_map(move |peer| peer.descriptors(hears(peer)))
    }

    /// Returns the time of the next work that does not depend on received data.
    pub fn next_event(&self, now: Nanos) -> Option<Nanos> {
        if self.is_behind {
            return Some(now);
        }
        let peers = self.peers.iter().filter_map(|peer| peer.next_event(now));
        peers.chain([self.due].into_iter().filter(|due| *due != Nanos::MAX)).min()
    }
}

#[cfg(test)]
mod tests;
