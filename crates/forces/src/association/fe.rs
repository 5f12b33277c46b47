//! A forwarding element's end of its associations with one or several control elements.
//!
//! Source: RFC 5810 sections 4.2 and 7; several CEs: RFC 7121. The owner opens and closes
//! connections as [`FeEvent`]s request, and calls:
//!
//! 1. [`Fe::connected`], [`Fe::connect_failed`] and [`Fe::disconnected`] when that happens,
//! 2. [`Fe::receive`] with each received message, the highest-priority channel first,
//! 3. [`Fe::happened`] when the target of an event changes,
//! 4. [`Fe::tick`] when [`Fe::next_timeout`] is due,
//! 5. [`Fe::poll_event`] and [`Fe::poll_transmit`] until they return `None`.

mod config;
mod events;
mod protocol_objects;
mod failover;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::Timestamp;
use super::channel::{self, Channel, Dropped, Queues};
use super::element::{Change, Element, Place};
use crate::model::value::Value;
use crate::wire::{
    Ack, Body, Flags, Header, Id, Message, MessageKind, Operation, OperationKind, PathData,
    Redirect, ResultCode, Select, SetupResult, TeardownReason, decode,
};
use config::Transaction;
pub use events::Happening;
use events::Subscriptions;
use protocol_objects::ProtocolObjects;

/// Timeout for the response to an association setup.
pub const SETUP_TIMEOUT: Duration = Duration::from_secs(5);
/// Pause before it retries when no CE is reachable.
pub const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum number of control elements.
pub const CES_MAX: usize = 16;

/// Initial settings of a forwarding element.
#[derive(Debug, Clone)]
pub struct FeSettings {
    /// FE ID; [`Id::NONE`] if a CE assigns it.
    pub id: Id,
    /// The primary CE.
    pub primary: Id,
    /// Backup CEs, in order of preference.
    pub backups: Vec<Id>,
    /// High availability mode (FEPO's HAMode): 0 none, 1 cold standby, 2 hot standby.
    pub ha_mode: u8,
    /// Whether it continues for a while without a CE.
    pub goes_on: bool,
    /// How long it continues, in milliseconds (FEPO's CEFTI).
    pub goes_on_for_ms: u32,
    /// Whether it forwards before the first association; true if it starts with a program.
    pub forwards: bool,
    /// Its name, at most 40 octets.
    pub name: String,
    /// Vendor, at most 40 octets.
    pub vendor: String,
    /// Model, at most 40 octets.
    pub model: String,
}

/// A request or notification to the owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FeEvent {
    /// Open a connection to this CE.
    Connect(Id),
    /// Close the connection to this CE.
    Disconnect(Id),
    /// An association is established, or its CE became primary. True if the CE is the primary one.
    Associated(Id, bool),
    /// An association ended.
    Lost(Id, TeardownReason),
}

/// State of the association with a CE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AssociationState {
    /// No attempt yet.
    Idle,
    /// The owner opens a connection.
    Connecting,
    /// The setup was sent; its response is due before this time.
    Asking {
        until: Timestamp,
    },
    Associated,
    /// The association ended.
    Lost,
    /// The connection failed.
    Unreachable,
}

#[derive(Debug)]
struct Peer {
    stand: AssociationState,
    queues: Queues,
    last_received_at: Timestamp,
    last_sent_at: Timestamp,
    counts: Counts,
}

/// Message counters of a CE, in the order of FEPO's StatisticsType.
#[derive(Debug, Clone, Copy, Default)]
struct Counts([u64; 8]);

/// A forwarding element's end of its associations.
#[derive(Debug)]
pub struct Fe {
    id: Id,
    own: ProtocolObjects,
    peers: BTreeMap<Id, Peer>,
    subscriptions: Subscriptions,
    transaction: Option<Transaction>,
    events: VecDeque<FeEvent>,
    now: Timestamp,
    /// When the element stops forwarding unless a CE is associated.
    stops_at: Option<Timestamp>,
    /// When it tries the next CE.
    retries_at: Option<Timestamp>,
    next_correlator: u64,
}

/// The element, together with FEObject, FEPO and subscriptions.
pub(super) struct ElementContext<'a> {
    pub own: &'a mut ProtocolObjects,
    pub subscriptions: &'a mut Subscriptions,
    pub element: &'a mut dyn Element,
}

impl Fe {
    /// Creates an element and requests a connection to its primary CE.
    pub fn new(settings: &FeSettings, now: Timestamp) -> Fe {
        let mut fe = Fe {
            id: settings.id,
            own: ProtocolObjects::new(settings),
            peers: BTreeMap::new(),
            subscriptions: Subscriptions::default(),
            transaction: None,
            events: VecDeque::new(),
            now,
            stops_at: None,
            retries_at: None,
            next_correlator: 1,
        };
        let all = std::iter::once(settings.primary).chain(settings.backups.iter().copied());
        for id in all.take(CES_MAX) {
            fe.peers.insert(id, Peer::new(now));
        }
        fe.try_ce(settings.primary);
        fe
    }

    /// Returns the FE ID.
    pub fn id(&self) -> Id {
        self.id
    }

    /// Returns the primary CE, if it is associated.
    pub fn primary(&self) -> Option<Id> {
        let id = self.own.primary();
        self.is_associated(id).then_some(id)
    }

    /// Returns whether this CE is associated.
    pub fn is_associated(&self, ce: Id) -> bool {
        self.peers.get(&ce).is_some_and(|peer| peer.stand == AssociationState::Associated)
    }

    /// Returns the next event for the owner.
    pub fn poll_event(&mut self) -> Option<FeEvent> {
        self.events.pop_front()
    }

    /// Returns the next message for a CE, by strict priority, with its channel.
    pub fn poll_transmit(&mut self, ce: Id) -> Option<(Channel, Vec<u8>)> {
        self.peers.get_mut(&ce)?.queues.pop()
    }

    /// Returns the next message for a CE on one channel.
    pub fn poll_transmit_by(&mut self, ce: Id, channel: Channel) -> Option<Vec<u8>> {
        self.peers.get_mut(&ce)?.queues.pop_of(channel)
    }

    /// Returns whether to read messages of a CE; false while its responses fill the queue.
    pub fn can_receive(&self, ce: Id) -> bool {
        self.peers.get(&ce).is_none_or(|peer| !peer.queues.is_full())
    }

    /// Handles a new connection to a CE: sends the association setup.
    pub fn connected(&mut self, ce: Id, now: Timestamp) {
        self.now = self.now.max(now);
        let until = self.now + SETUP_TIMEOUT;
        let now = self.now;
        let Some(peer) = self.peers.get_mut(&ce) else { return };
        if peer.stand == AssociationState::Connecting {
            peer.stand = AssociationState::Asking { until };
            (peer.last_received_at, peer.last_sent_at) = (now, now);
            peer.queues = Queues::default();
            let report = self.own.report();
            let correlator = self.take_correlator();
            self.send(ce, Body::AssociationSetup(report), correlator, Flags::default());
        }
    }

    /// Handles a failed connection to a CE.
    pub fn connect_failed(&mut self, ce: Id, element: &mut dyn Element, now: Timestamp) {
        self.now = self.now.max(now);
        if let Some(peer) = self.peers.get_mut(&ce)
            && peer.stand == AssociationState::Connecting
        {
            peer.stand = AssociationState::Unreachable;
            self.try_next(ce, element);
        }
    }

    /// Handles a closed connection to a CE.
    pub fn disconnected(&mut self, ce: Id, element: &mut dyn Element, now: Timestamp) {
        self.now = self.now.max(now);
        self.lose(ce, TeardownReason::OTHER, element);
    }

    /// Handles a message that arrived from a CE on a channel.
    pub fn receive(
        &mut self,
        ce: Id,
        channel: Channel,
        bytes: &[u8],
        element: &mut dyn Element,
        now: Timestamp,
    ) {
        self.now = self.now.max(now);
        let now = self.now;
        let Some(peer) = self.peers.get_mut(&ce) else { return };
        peer.last_received_at = now;
        peer.counts.0[0] += 1;
        peer.counts.0[2] += bytes.len() as u64;
        let taken = self.take(ce, channel, bytes, element);
        if taken.is_err()
            && let Some(peer) = self.peers.get_mut(&ce)
        {
            // RFC 7121: count malformed messages, and those of a backup that only the primary CE
            // may send.
            peer.counts.0[1] += 1;
            peer.counts.0[3] += bytes.len() as u64;
        }
        self.note_stands();
    }

    fn take(
        &mut self,
        ce: Id,
        channel: Channel,
        bytes: &[u8],
        element: &mut dyn Element,
    ) -> Result<(), Dropped> {
        let (header, kind) = channel::received(channel, bytes)?;
        let is_response = kind == MessageKind::AssociationSetupResponse;
        if header.source != ce || !(is_response || self.own.is_for(header.destination, self.id)) {
            return Err(Dropped::Misaddressed);
        }
        let stand = self.peers.get(&ce).map(|peer| peer.stand);
        let is_primary = self.own.primary() == ce;
        let message = decode(bytes).map_err(|_| Dropped::Malformed)?;
        match (message.body, stand) {
            (Body::AssociationSetupResponse(result), Some(AssociationState::Asking { .. })) => {
                self.answered(ce, result, header.destination, element);
            }
            (Body::AssociationTeardown(reason), _) => {
                // Close immediately, so that neither end waits for the other.
                self.lose(ce, reason, element);
            }
            (Body::Heartbeat, Some(AssociationState::Associated)) => {
                if header.flags.ack == Ack::Always {
                    let flags = Flags { priority: header.flags.priority, ..Flags::default() };
                    self.send(ce, Body::Heartbeat, header.correlator, flags);
                }
            }
            (Body::Query(selects), Some(AssociationState::Associated)) => {
                self.query(ce, &header, &selects, element);
            }
            (Body::Config(selects), Some(AssociationState::Associated)) if is_primary => {
                self.config(ce, &header, &selects, element);
            }
            (Body::PacketRedirect(all), Some(AssociationState::Associated)) if is_primary => {
                all.into_iter().for_each(|one| element.redirect(one));
            }
            _ => return Err(Dropped::Unexpected),
        }
        Ok(())
    }

    /// Redirects a packet to the primary CE; returns false if there is none or the queue is full.
    pub fn redirect(&mut self, redirect: Redirect, now: Timestamp) -> bool {
        self.now = self.now.max(now);
        let Some(primary) = self.primary() else { return false };
        self.send(primary, Body::PacketRedirect(vec![redirect]), 0, Flags::default())
    }

    /// Handles an occurrence of an event: notifies the CEs if there is a subscription whose
    /// conditions and filters it passes.
    pub fn happened(&mut self, happening: &Happening, element: &mut dyn Element, now: Timestamp) {
        self.now = self.now.max(now);
        let Some(class) = element.catalog().class_by_id(happening.class).cloned() else { return };
        let Some(event) = class.event_by_id(happening.event) else { return };
        if !self.subscriptions.passes(happening, event, self.now) {
            return;
        }
        let world =
            ElementContext { own: &mut self.own, subscriptions: &mut self.subscriptions, element };
        if let Some(select) = events::notification(&world, &class, event, happening) {
            self.tell(&select);
        }
    }

    /// Sends an event notification to all associated CEs.
    fn tell(&mut self, select: &Select) {
        let associated =
            |(id, peer): (&Id, &Peer)| (peer.stand == AssociationState::Associated).then_some(*id);
        let all: Vec<Id> = self.peers.iter().filter_map(associated).collect();
        for ce in all {
            self.send(ce, Body::EventNotification(vec![select.clone()]), 0, Flags::default());
        }
    }

    /// Returns the instances with event subscriptions, as class and instance ID.
    pub fn subscribed(&self) -> std::collections::BTreeSet<(u32, u32)> {
        self.subscriptions.instances().collect()
    }

    /// Returns when [`Fe::tick`] is due next if nothing arrives.
    pub fn next_timeout(&self) -> Option<Timestamp> {
        let mut due: Vec<Timestamp> = self.stops_at.into_iter().chain(self.retries_at).collect();
        due.extend(self.transaction.as_ref().map(|transaction| transaction.until));
        for peer in self.peers.values() {
            match peer.stand {
                AssociationState::Asking { until } => due.push(until),
                AssociationState::Associated => {
                    due.extend(self.own.ce_dead_after().map(|after| peer.last_received_at + after));
                    due.extend(self.own.heartbeat_after().map(|after| peer.last_sent_at + after));
                }
                _ => {}
            }
        }
        due.into_iter().min()
    }

    /// Handles the timeouts that are due at `now`.
    pub fn tick(&mut self, element: &mut dyn Element, now: Timestamp) {
        self.now = self.now.max(now);
        let now = self.now;
        if self.transaction.as_ref().is_some_and(|transaction| transaction.until <= now) {
            self.end_transaction(element);
        }
        for ce in self.peers.keys().copied().collect::<Vec<_>>() {
            let Some(peer) = self.peers.get(&ce) else { continue };
            match peer.stand {
                AssociationState::Asking { until } if until <= now => {
                    self.lose(ce, TeardownReason::OTHER, element);
                }
                AssociationState::Associated => {
                    let dead = self.own.ce_dead_after();
                    if dead.is_some_and(|after| peer.last_received_at + after <= now) {
                        self.teardown(ce, TeardownReason::HEARTBEATS, element);
                        continue;
                    }
                    let due = self.own.heartbeat_after();
                    if due.is_some_and(|after| peer.last_sent_at + after <= now) {
                        self.send(ce, Body::Heartbeat, 0, Flags::default());
                    }
                }
                _ => {}
            }
        }
        self.time_failover(element);
        self.note_stands();
    }

    /// Ends an association.
    ///
    /// The teardown message is still queued when the owner receives [`FeEvent::Disconnect`].
    pub fn teardown(&mut self, ce: Id, reason: TeardownReason, element: &mut dyn Element) {
        if self.is_associated(ce) {
            self.send(ce, Body::AssociationTeardown(reason), 0, Flags::default());
        }
        self.lose(ce, reason, element);
    }

    fn take_correlator(&mut self) -> u64 {
        let correlator = self.next_correlator;
        self.next_correlator += 1;
        correlator
    }

    /// Queues a message; returns false if that is impossible.
    fn send(&mut self, ce: Id, body: Body, correlator: u64, mut flags: Flags) -> bool {
        if flags.priority == 0 {
            flags.priority = channel::priority(body.kind());
        }
        let header = Header { source: self.id, destination: ce, correlator, flags };
        self.queue(ce, &Message { header, body })
    }

    fn queue(&mut self, ce: Id, message: &Message) -> bool {
        let now = self.now;
        let Some(peer) = self.peers.get_mut(&ce) else { return false };
        match peer.queues.push(message) {
            Ok(octets) if octets > 0 => {
                peer.last_sent_at = now;
                peer.counts.0[4] += 1;
                peer.counts.0[6] += octets as u64;
                true
            }
            _ => {
                peer.counts.0[5] += 1;
                false
            }
        }
    }
}

impl Peer {
    fn new(now: Timestamp) -> Peer {
        Peer {
            stand: AssociationState::Idle,
            queues: Queues::default(),
            last_received_at: now,
            last_sent_at: now,
            counts: Counts::default(),
        }
    }
}

impl ElementContext<'_> {
    pub(super) fn has_instance(&self, class: u32, instance: u32) -> bool {
        match class {
            1 | 2 => instance == 1,
            _ => self.element.has_instance(class, instance),
        }
    }

    pub(super) fn get(&self, place: &Place) -> Result<Value, ResultCode> {
        if place.class == protocol_objects::FE_OBJECT
            && let Some(value) = protocol_objects::supported(self.element.catalog(), &place.path)
        {
            return Ok(value);
        }
        match protocol_objects::is_own(place) {
            true => self.own.get(place),
            false => self.element.get(place),
        }
    }

    pub(super) fn find(&self, place: &Place, key: u32, content: &Value) -> Result<u32, ResultCode> {
        match protocol_objects::is_own(place) {
            true => Err(ResultCode::NOT_SUPPORTED),
            false => self.element.find(place, key, content),
        }
    }

    pub(super) fn event_properties(&self, place: &Place) -> Value {
        self.subscriptions.properties(place)
    }

    fn stage(&mut self, change: Change) -> ResultCode {
        match protocol_objects::is_own(change.place()) {
            true => self.own.stage(change, self.element.catalog()),
            false => self.element.stage(change),
        }
    }

    fn unstage(&mut self) {
        self.own.unstage();
        self.subscriptions.unstage();
        self.element.unstage();
    }

    fn commit(&mut self) -> ResultCode {
        let code = self.element.commit();
        match code.is_success() {
            true => {
                self.own.commit();
                self.subscriptions.commit();
            }
            false => {
                self.own.unstage();
                self.subscriptions.unstage();
            }
        }
        code
    }

    fn roll_back(&mut self) {
        self.own.roll_back();
        self.subscriptions.roll_back();
        self.element.roll_back();
    }

    fn complete(&mut self) {
        self.element.complete();
    }
}
