//! Received frames of streams: identification, integrity and counts.
//!
//! A frame is identified by its signature (see [`crate::signature`]). The signature is searched at
//! its original offset and at the offsets after pushed or popped tags. Counts are exact within the
//! window of [`crate::analyzer::duplicate_window`]. Nothing else is stored per frame.

use netio::port::PortCounters;
use packet::batch_copy::Copies;
use packet::filter::Filter;
use packet::time::{Clock, Nanos, Stamp};

use crate::analyzer::duplicate_window::{self, DuplicateWindow};
use crate::generator::templates::Templates;
use crate::module::{FrameFilter, PortAccount, Probe, Signer, StreamAccount};
use crate::pauses::PauseDetector as Attention;
use crate::signature::Signature;

/// Possible shifts of a signature in bytes: one or two tags or labels pushed or popped, or a header
/// of 802.1ah.
const SHIFTS: [isize; 7] = [0, 4, -4, 8, -8, 18, -18];

/// Memory of all duplicate windows together, in windows.
const WINDOWS: usize = 64;

/// Marks an unknown stream: no stream has this index, because there are fewer.
const NO_STREAM: u16 = u16::MAX;

/// Expected frames of a stream.
pub struct Expected {
    /// Templates of the frames.
    pub templates: Templates,
    /// Index of the expected port.
    pub to: usize,
}

/// All streams that the event loop can identify.
pub struct KnownStreams {
    signer: Signer,
    ports: Vec<PortAccount>,
    streams: Vec<ReceivedStream>,
    /// Stream index by stream id, or [`NO_STREAM`].
    places: Vec<u16>,
    /// Possible offsets of a signature, the original offsets first.
    offsets: Vec<usize>,
    indices: Vec<u64>,
    delays_unknown: u64,
}

struct ReceivedStream {
    templates: Templates,
    to: usize,
    seen: DuplicateWindow,
    /// Highest sequence number received so far, on a port or in a packet-in.
    last: Option<u64>,
    account: StreamAccount,
}

/// Totals of all received frames.
pub struct ArrivalTotals {
    /// Counts by stream.
    pub streams: Vec<StreamAccount>,
    /// Counts by port.
    pub ports: Vec<PortAccount>,
    /// Frames of streams with unknown delay.
    pub delays_unknown: u64,
}

/// Classification of a received frame.
#[derive(Debug, Clone, Copy)]
pub struct ArrivedFrame {
    /// Receive timestamp.
    pub stamp: Stamp,
    /// Whether the timestamp is the time of arrival.
    pub is_timestamp_valid: bool,
    /// The identified probe.
    pub probe: Option<Probe>,
}

/// Selects the frames of a port that are delivered to the module.
#[derive(Debug, Default)]
pub enum FrameSelection {
    /// No frame.
    #[default]
    None,
    /// Every frame.
    All,
    /// Frames of streams.
    Probes,
    /// Frames of these streams.
    Streams(Vec<u16>),
    /// Frames that match a filter.
    Filter(Box<Filter>),
}

impl FrameSelection {
    /// Replaces the selection. Fails without effect if a filter has too many entries.
    pub fn set(&mut self, watch: FrameFilter) -> Result<(), packet::filter::TooMany> {
        *self = match watch {
            FrameFilter::None => FrameSelection::None,
            FrameFilter::All => FrameSelection::All,
            FrameFilter::Probes => FrameSelection::Probes,
            FrameFilter::Streams(ids) => FrameSelection::Streams(ids),
            FrameFilter::Filter(entries) => {
                let mut filter = Filter::closed();
                filter.load(entries)?;
                FrameSelection::Filter(Box::new(filter))
            }
        };
        Ok(())
    }

    /// Returns whether to deliver a frame.
    #[inline]
    pub fn wants(&mut self, probe: Option<&Probe>, bytes: &[u8]) -> bool {
        match self {
            FrameSelection::None => false,
            FrameSelection::All => true,
            FrameSelection::Probes => probe.is_some(),
            FrameSelection::Streams(ids) => probe.is_some_and(|probe| ids.contains(&probe.stream)),
            FrameSelection::Filter(filter) => filter.keeps(bytes),
        }
    }
}

impl KnownStreams {
    /// Creates an empty set of streams for these ports.
    pub fn new(signer: Signer, ports: Vec<PortAccount>) -> Self {
        KnownStreams {
            signer,
            ports,
            streams: Vec::new(),
            places: Vec::new(),
            offsets: Vec::new(),
            indices: Vec::new(),
            delays_unknown: 0,
        }
    }

    /// Adds a stream.
    pub fn add(&mut self, expected: Expected) {
        let Expected { templates, to } = expected;
        let id = usize::from(templates.stream());
        if self.places.len() <= id {
            self.places.resize(id + 1, NO_STREAM);
        }
        self.places[id] = self.streams.len() as u16;
        let seen = DuplicateWindow::new(self.ports.len(), to, WINDOWS);
        let account = StreamAccount::default();
        self.streams.push(ReceivedStream { templates, to, seen, last: None, account });
        let own = || self.streams.iter().map(|stream| stream.templates.signature_at());
        let all =
            SHIFTS.iter().flat_map(|&by| own().filter_map(move |at| at.checked_add_signed(by)));
        let mut offsets = Vec::new();
        for offset in all {
            if !offsets.contains(&offset) {
                offsets.push(offset);
            }
        }
        self.offsets = offsets;
    }

    /// Classifies a batch of frames received from `port` at `now`, and appends the results to
    /// `sights`.
    pub fn sort(
        &mut self,
        port: usize,
        frames: &Copies,
        attention: &Attention,
        now: Nanos,
        sights: &mut Vec<ArrivedFrame>,
    ) {
        let knows_all = attention.knows_all(port);
        self.ports[port].received += frames.len() as u64;
        for (place, bytes) in frames.frames().enumerate() {
            let given = frames.stamp(place);
            let is_timestamp_valid = knows_all || attention.knows_arrival(port, given);
            let stamp = given.unwrap_or(Stamp { at: now, clock: Clock::UserSpace });
            let probe = match self.find(bytes) {
                None => {
                    self.ports[port].foreign += 1;
                    None
                }
                Some((stream, _, signature)) if self.is_stale(stream, &signature) => {
                    self.ports[port].stale += 1;
                    None
                }
                Some((stream, at, signature)) => {
                    self.ports[port].probes += 1;
                    let is_known = is_timestamp_valid && attention.knows_leaving(signature.sent);
                    self.delays_unknown += u64::from(!is_known);
                    let stream = usize::from(stream);
                    let mut probe = self.probe(stream, at, &signature, bytes, stamp.at);
                    probe.is_delay_known = is_known;
                    self.streams[stream].arrive(port, &probe);
                    Some(probe)
                }
            };
            sights.push(ArrivedFrame { stamp, is_timestamp_valid, probe });
        }
    }

    /// Identifies the probe in a packet-in that arrived at `at` and can hold only its first bytes.
    pub fn told(
        &mut self,
        bytes: &[u8],
        at: Nanos,
        is_timestamp_valid: bool,
        attention: &Attention,
    ) -> Option<Probe> {
        let (stream, offset, signature) = self.find(bytes)?;
        if self.is_stale(stream, &signature) {
            return None;
        }
        let stream = usize::from(stream);
        let mut probe = self.probe(stream, offset, &signature, bytes, at);
        probe.is_delay_known = is_timestamp_valid && attention.knows_leaving(signature.sent);
        let ReceivedStream { seen, last, account, .. } = &mut self.streams[stream];
        account.told += 1;
        *last = (*last).max(Some(probe.number));
        // Packet-ins have their own lane after the ports, the one of corrupt frames in trials.
        seen.mark(probe.number, seen.corrupt_lane());
        Some(probe)
    }

    /// Returns whether a frame belongs to an earlier run or to an unknown stream.
    #[inline]
    fn is_stale(&self, stream: u16, signature: &Signature) -> bool {
        stream == NO_STREAM || signature.sequence.epoch != self.signer.epoch()
    }

    /// Finds a frame's signature. Returns stream index, offset and signature.
    #[inline]
    fn find(&self, bytes: &[u8]) -> Option<(u16, usize, Signature)> {
        let key = self.signer.key();
        let read = |&at: &usize| Some((at, Signature::read(key, bytes.get(at..)?)?));
        let (at, signature) = self.offsets.iter().find_map(read)?;
        let place = self.places.get(usize::from(signature.stream)).copied().unwrap_or(NO_STREAM);
        Some((place, at, signature))
    }

    #[inline]
    fn probe(
        &mut self,
        stream: usize,
        signature_at: usize,
        signature: &Signature,
        bytes: &[u8],
        at: Nanos,
    ) -> Probe {
        let number = signature.sequence.number;
        let template = self.streams[stream].templates.of(number);
        self.indices.clear();
        template.draw(number, &mut self.indices);
        Probe {
            stream: signature.stream,
            number,
            sent_at: Nanos(at.0.wrapping_sub(signature.sent.until(at) as u64)),
            place: self.indices.first().copied().unwrap_or(0),
            is_delay_known: true,
            is_intact: template.matches(signature_at, &self.indices, bytes),
        }
    }

    /// Counts frames of a port that were delivered to the module.
    pub fn watched(&mut self, port: usize, frames: u64) {
        self.ports[port].watched += frames;
    }

    /// Returns the received frames by port.
    pub fn received(&self) -> impl Iterator<Item = u64> {
        self.ports.iter().map(|port| port.received)
    }

    /// Returns whether earlier frames of a stream arrived and its last did not.
    pub fn awaits(&self, sent: impl Iterator<Item = StreamAccount>) -> bool {
        let is_under_way = |(sent, stream): (StreamAccount, &ReceivedStream)| {
            stream.last.is_some_and(|last| last + 1 < sent.sent)
        };
        sent.zip(&self.streams).any(is_under_way)
    }

    /// Combines the received counts with the sent counts and the ports' counters.
    pub fn finish(
        self,
        sent: impl Iterator<Item = StreamAccount>,
        counters: impl Iterator<Item = PortCounters>,
    ) -> ArrivalTotals {
        let whole = |(sent, stream): (StreamAccount, ReceivedStream)| {
            let tally = stream.seen.tally();
            StreamAccount {
                arrived: tally.seen - tally.beside,
                only_told: tally.beside,
                id: sent.id,
                from: sent.from,
                to: sent.to,
                sent: sent.sent,
                unsent_late: sent.unsent_late,
                unsent_refused: sent.unsent_refused,
                ..stream.account
            }
        };
        let streams = sent.zip(self.streams).map(whole).collect();
        let account = |(account, counters)| PortAccount { counters, ..account };
        let ports = self.ports.into_iter().zip(counters).map(account).collect();
        ArrivalTotals { streams, ports, delays_unknown: self.delays_unknown }
    }
}

impl ReceivedStream {
    #[inline]
    fn arrive(&mut self, port: usize, probe: &Probe) {
        let account = &mut self.account;
        self.last = self.last.max(Some(probe.number));
        account.altered += u64::from(!probe.is_intact);
        match self.seen.mark(probe.number, port) {
            duplicate_window::ArrivalKind::TooLate => account.late += 1,
            duplicate_window::ArrivalKind::Again => account.duplicate += 1,
            duplicate_window::ArrivalKind::First if port == self.to => account.expected += 1,
            duplicate_window::ArrivalKind::First => account.elsewhere += 1,
        }
    }
}
