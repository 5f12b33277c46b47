//! Engine of a trial: sending, receiving and end of trial.
//!
//! The caller passes time and ports: the engine reads no clock and never blocks. Live and simulated
//! rigs drive the same engine.

use netio::capture::read_ahead::ReadAhead;
use netio::port::{Port, PortCounters, PortDrop};
use packet::batch_copy::Copies;
use packet::time::{Clock, Nanos};

use crate::account::{Account, DropLocation};
use crate::analyzer::{Arrivals, Expected, Monitor, PortTally};
use crate::gauge::{Coarse, Gauge};
use crate::generator::replay_sender::ReplaySender;
use crate::generator::schedule::{Period, Schedule};
use crate::generator::sender::{ScheduledStream, Sender, TrafficPhase};
use crate::generator::templates::Templates;
use crate::pauses::PauseDetector;
use crate::rig::RigError;
use crate::stream::replay::{FrameMark, Replay};
use crate::stream::{Problem, Stream, validate};
use crate::trial::{
    Flag, Load, MissingSpan, OFFERED_SHARE_MIN, Pacing, PortReport, STALL, STRETCH_SHARE_MIN,
    StreamReport, Trial, TrialReport,
};
use crate::trial::{ReceivedMarked, ReplayReport};

/// Maximum number of streams in a trial.
pub const STREAMS_MAX: usize = 256;

/// Maximum number of replays in a trial: each has a thread that reads its file.
pub const REPLAYS_MAX: usize = 16;

/// Maximum number of frames per receive call.
pub const RECEIVE_FRAMES: usize = 64;

/// How long a trial still sends after its last frame is due.
const SEND_GRACE: Nanos = Nanos::from_millis(1);

/// A rig's ports.
pub type PortRow = [Box<dyn Port>];

/// A trial in progress.
pub struct Engine {
    trial: Trial,
    started_at: Nanos,
    senders: Vec<Sender>,
    players: Vec<ReplaySender>,
    /// For each stream of the trial, its sender's port and its index there.
    places: Vec<(usize, usize)>,
    counts: Vec<u64>,
    monitor: Monitor,
    watch: PauseDetector,
    counters: Vec<PortCounters>,
    /// Frames that each port had rejected when the measurement started.
    refused_before: Option<Vec<u64>>,
    received: Copies,
    stamps: Option<Clock>,
    /// Coarse latency counts for the live gauge.
    coarse: Coarse,
    /// When the last frame is due at the latest.
    sending_ends: Nanos,
    closes_at: Nanos,
    is_closed: bool,
    /// Whether ports send ahead, with send and arrival times of the kernel.
    sends_ahead: bool,
}

/// A trial that is ready to start: all slow preparation is done.
#[derive(Debug)]
pub struct ReadyTrial {
    /// The trial. Varying fields of its streams are only in the templates.
    trial: Trial,
    key: u64,
    /// For each stream, the templates of its sent and of its expected frames.
    templates: Vec<[Templates; 2]>,
    /// For each replay its file, and whether to wait for slow files.
    files: Vec<ReadAhead>,
    waits: bool,
}

impl ReadyTrial {
    /// Prepares a trial over these ports. Its frames are signed with `key`.
    pub fn new(trial: &Trial, ports: &PortRow, key: u64) -> Result<Self, RigError> {
        check(trial, ports)?;
        let templates = trial.streams.iter().map(|stream| Templates::both(stream, key)).collect();
        let bare = |stream: &Stream| Stream {
            vary: Vec::new(),
            id: stream.id,
            from: stream.from,
            to: stream.to,
            frame_bytes: stream.frame_bytes,
            genome: stream.genome.clone(),
            headers: stream.headers.clone(),
            rate: stream.rate,
            shape: stream.shape,
            signature_at: stream.signature_at,
            arrival: stream.arrival.clone(),
        };
        let streams = trial.streams.iter().map(bare).collect();
        let open = |replay: &Replay| {
            let failed = |error| RigError::Trace(replay.id, replay.file.clone(), error);
            let file = ReadAhead::open(&replay.file, replay.passes);
            file.and_then(ReadAhead::begun).map_err(failed)
        };
        let files = trial.replays.iter().map(open).collect::<Result<_, _>>()?;
        let trial = Trial {
            streams,
            replays: trial.replays.clone(),
            orders: None,
            warmup: trial.warmup,
            duration: trial.duration,
            drain: trial.drain,
            catch_up_frames: trial.catch_up_frames,
            is_cold: trial.is_cold,
            windows: trial.windows.clone(),
            tells_variation: trial.tells_variation,
            reset_at: trial.reset_at,
            swaps: trial.swaps,
        };
        Ok(ReadyTrial { trial, key, templates, files, waits: false })
    }

    /// Waits for slow files of replays. For virtual time, which does not advance during the wait.
    #[must_use]
    pub fn waiting_for_files(self) -> Self {
        ReadyTrial { waits: true, ..self }
    }
}

impl Engine {
    /// Starts the prepared trial as number `epoch`. Its first frame is due at `start`.
    pub fn new(prepared: ReadyTrial, ports: &mut PortRow, epoch: u16, start: Nanos) -> Self {
        let ReadyTrial { trial, key, templates, files, waits } = prepared;
        let started_at = start.saturating_add(trial.warmup);
        let schedules = schedules(&trial, start);
        let counts = schedules.iter().map(|phases| phases[1].count).collect();
        let mut outgoing: Vec<Vec<ScheduledStream>> = ports.iter().map(|_| Vec::new()).collect();
        let (mut places, mut expected) = (Vec::new(), Vec::new());
        for ((stream, phases), [leaving, templates]) in
            trial.streams.iter().zip(schedules).zip(templates)
        {
            places.push((stream.from, outgoing[stream.from].len()));
            let frames = ScheduledStream::new(leaving, phases, trial.catch_up_frames);
            outgoing[stream.from].push(frames);
            let tells_variation = trial.tells_variation;
            expected.push(Expected { templates, to: stream.to, phases, tells_variation });
        }
        let sending_ends = started_at.saturating_add(trial.duration);
        let player = |(replay, file): (&Replay, ReadAhead)| {
            let frame_bytes_max = ports[replay.from].facts().frame_bytes_max;
            let span = [started_at, sending_ends];
            let player = ReplaySender::new(replay.clone(), file, frame_bytes_max, span, waits);
            player.sealed(key, epoch)
        };
        let players = trial.replays.iter().zip(files).map(player).collect();
        let marks = trial.replays.iter().filter_map(|replay| Some((replay.id, replay.mark?)));
        let monitor = Monitor::new(key, epoch, expected, ports.len());
        let monitor = marks.fold(monitor, |monitor, (id, mark)| monitor.with_marked(id, mark));
        Engine {
            players,
            started_at,
            counts,
            monitor,
            senders: outgoing.into_iter().map(|streams| Sender::new(epoch, streams)).collect(),
            places,
            watch: PauseDetector::new(ports.len()),
            counters: ports.iter_mut().map(|port| port.counters()).collect(),
            refused_before: None,
            received: Copies::new(RECEIVE_FRAMES),
            stamps: None,
            coarse: Coarse::new(trial.streams.len()),
            sending_ends,
            closes_at: sending_ends.saturating_add(SEND_GRACE),
            is_closed: false,
            sends_ahead: false,
            trial,
        }
    }

    /// Sends due frames at `now`, at most one batch per port. Returns the number of frames.
    #[inline]
    pub fn send(&mut self, ports: &mut PortRow, now: Nanos) -> Result<usize, RigError> {
        self.note(now);
        if self.refused_before.is_none() && now >= self.started_at {
            self.refused_before = Some(refused(ports));
        }
        let mut sent = 0;
        for (index, (sender, port)) in self.senders.iter_mut().zip(ports.iter_mut()).enumerate() {
            let failed = |error| RigError::Port(index, error);
            sent += sender.send(port.as_mut(), now).map_err(failed)?;
        }
        for player in &mut self.players {
            let index = player.from();
            sent += player
                .send(ports[index].as_mut(), now)
                .map_err(|error| RigError::Port(index, error))?;
        }
        if sent > 0 {
            self.watch.sent(now);
        }
        if self.is_replay_only()
            && self.players.iter().all(ReplaySender::is_over)
            && now < self.closes_at
        {
            (self.sending_ends, self.closes_at) = (now, now);
            self.trial.duration = now.since(self.started_at);
        }
        if now >= self.closes_at && sent == 0 && !self.is_closed {
            self.end_sending();
        }
        Ok(sent)
    }

    /// Sends no further frame, even if some are due.
    pub fn end_sending(&mut self) {
        self.is_closed = true;
        self.senders.iter_mut().for_each(Sender::close);
        self.players.iter_mut().for_each(ReplaySender::close);
    }

    /// Has ports send ahead that have frames to send and can. Returns how long before their times
    /// they get frames at most, or zero.
    pub fn start_ahead(&mut self, ports: &mut PortRow) -> Nanos {
        let pairs = self.senders.iter_mut().zip(ports);
        let each = pairs.map(|(sender, port)| sender.start_ahead(port.as_mut()));
        let ahead = each.max().unwrap_or(Nanos::ZERO);
        self.sends_ahead |= ahead > Nanos::ZERO;
        ahead
    }

    /// Records that the tester polls at `now`. Returns whether it was stalled.
    ///
    /// Where ports send ahead, a gap between polls changes neither send nor arrival times. Only the
    /// senders' gaps are stalls.
    #[inline]
    fn note(&mut self, now: Nanos) -> bool {
        if self.sends_ahead {
            self.watch.rested(now);
            return false;
        }
        self.watch.note(now)
    }

    /// Receives and classifies at most [`RECEIVE_FRAMES`] from each port. Returns the number of
    /// frames.
    ///
    /// `clock` returns the time after the frames were received.
    #[inline]
    pub fn receive(
        &mut self,
        ports: &mut PortRow,
        now: Nanos,
        clock: impl Fn() -> Nanos,
    ) -> Result<usize, RigError> {
        let mut count = 0;
        self.note(now);
        for (index, port) in ports.iter_mut().enumerate() {
            let taken = port
                .receive_copies(&mut self.received, now)
                .map_err(|error| RigError::Port(index, error))?;
            if taken == 0 {
                self.watch.drained(index);
                continue;
            }
            let was_away = self.note(clock());
            let stamps = self.monitor.observe_all(index, &self.received, now, &self.watch);
            if taken < RECEIVE_FRAMES && !was_away {
                self.watch.drained(index);
            }
            self.stamps = stamps.or(self.stamps);
            count += taken;
        }
        Ok(count)
    }

    /// Stops sending after `now`. The trial's duration ends there.
    pub fn stop(&mut self, now: Nanos) {
        self.senders.iter_mut().for_each(|sender| sender.stop(now));
        self.players.iter_mut().for_each(ReplaySender::stop);
        for (place, &(port, at)) in self.places.iter().enumerate() {
            self.counts[place] = self.senders[port].streams()[at].intended();
        }
        self.trial.duration = self.trial.duration.min(now.since(self.started_at));
        self.sending_ends = self.sending_ends.min(now);
        self.closes_at = self.closes_at.min(now.saturating_add(SEND_GRACE));
    }

    /// Records that the tester is idle until `until` and misses nothing if it resumes then.
    pub fn rest(&mut self, until: Nanos) {
        self.watch.rested(until);
    }

    /// Extends the drain until `until`. The drain had ended, and the tester did not receive until
    /// `now`.
    pub fn extend(&mut self, now: Nanos, until: Nanos) {
        self.watch.called_away(now);
        self.trial.drain = until.since(self.sending_ends);
    }

    /// Returns the drain time.
    pub fn drain(&self) -> Nanos {
        self.trial.drain
    }

    /// Returns the number of missing frames: sent, not received, and not dropped by the tester's
    /// ports.
    ///
    /// Duplicates reduce this number.
    pub fn missing(&self, ports: &mut PortRow) -> u64 {
        let offered: u64 = self.senders.iter().map(offered).sum();
        let back = |port: &PortTally| port.received - port.foreign - port.stale;
        let back: u64 = self.monitor.ports().iter().map(back).sum();
        let lost = ports.iter_mut().zip(&self.counters).flat_map(|(port, before)| {
            port.counters().since(before).drops.into_iter().map(|(_, frames)| frames)
        });
        offered.saturating_sub(back + lost.sum::<u64>())
    }

    /// Returns when the next frame is due. None if all are sent.
    pub fn next_due(&self) -> Option<Nanos> {
        let streams = self.senders.iter().filter_map(Sender::next_due);
        streams.chain(self.players.iter().filter_map(ReplaySender::next_due)).min()
    }

    /// Returns when sending stops, even if frames are left.
    pub fn closes_at(&self) -> Nanos {
        self.closes_at
    }

    /// Returns when the drain is over. A trial of only replays ends early when all are finished.
    pub fn ends_at(&self) -> Nanos {
        self.sending_ends.saturating_add(self.trial.drain).max(self.closes_at)
    }

    /// Returns whether the trial has only replays and can end when they are finished.
    fn is_replay_only(&self) -> bool {
        self.trial.streams.is_empty() && !self.players.is_empty()
    }

    /// Updates the live gauge. Takes a few microseconds.
    pub fn show(&mut self, gauge: &Gauge, now: Nanos) {
        let monitor = &self.monitor;
        let latencies = self.coarse.look(|stream| monitor.latencies(stream));
        let players = &self.players;
        let port = |(port, sender): (usize, &Sender)| {
            let own = players.iter().filter(|player| player.from() == port);
            let replayed: u64 = own.map(ReplaySender::frames).sum();
            let received = monitor.ports().get(port).map_or(0, |tally| tally.received);
            [offered(sender) + replayed, received]
        };
        gauge.show(now, self.senders.iter().enumerate().map(port), latencies);
    }

    /// Ends the trial after a port failure and adds the results so far to the error.
    pub fn broken(mut self, ports: &mut PortRow, now: Nanos, error: RigError) -> RigError {
        let RigError::Port(port, error) = error else { return error };
        self.stop(now);
        let mut report = self.finish(ports);
        report.flags.push(Flag::CutShort);
        RigError::Broken(port, error, Box::new(report))
    }

    /// Ends the trial and creates its report.
    pub fn finish(mut self, ports: &mut PortRow) -> TrialReport {
        for (sender, port) in self.senders.iter_mut().zip(ports.iter_mut()) {
            sender.settle_ahead(port.as_mut());
        }
        self.end_sending();
        let tallies = self.monitor.ports().to_vec();
        let mut account = Account::default();
        let mut reports: Vec<PortReport> = Vec::new();
        let before = self.refused_before.take();
        let refused_since = refused(ports).into_iter().enumerate();
        let refused_since: Vec<u64> = refused_since
            .map(|(port, now)| now - before.as_ref().map_or(now, |before| before[port]))
            .collect();
        for (index, (port, tally)) in ports.iter_mut().zip(tallies).enumerate() {
            let counters = port.counters().since(&self.counters[index]);
            account.received += tally.broken;
            for &(reason, frames) in &counters.drops {
                let (place, reason) = name_of(reason);
                account.drop(place, reason, frames);
            }
            reports.push(PortReport {
                name: port.facts().name.clone(),
                intended: 0,
                offered: 0,
                forwarded: 0,
                received: tally.received,
                foreign: tally.foreign,
                elsewhere: tally.elsewhere,
                stale: tally.stale,
                broken: tally.broken,
                counters,
                traffic: self.monitor.traffic(index),
            });
        }
        let stamps = self
            .stamps
            .unwrap_or(ports.first().map_or(Clock::UserSpace, |port| port.facts().stamps));
        let replays = self.replay_reports(&mut account);
        let mut pacing = Pacing::empty();
        self.senders.iter_mut().for_each(|sender| pacing.merge(&sender.pacing()));
        let mut stalls = self.watch.stalls();
        self.senders.iter().for_each(|sender| stalls.merge(sender.gaps()));
        let streams = self.stream_reports(&mut account);
        let mut report = TrialReport {
            started_at: self.started_at,
            streams,
            replays,
            ports: reports,
            pacing,
            stalls,
            account,
            stamps,
            ..TrialReport::unmeasured(&self.trial, self.started_at, Load::default())
        };
        report.share_out(&refused_since);
        report.sum_up();
        report
    }

    /// Takes the replays' reports from monitor and players, and adds marked frames to the account.
    fn replay_reports(&mut self, account: &mut Account) -> Vec<ReplayReport> {
        let mut arrivals = self.monitor.take_marked().into_iter();
        let report = |(player, replay): (&ReplaySender, &Replay)| {
            let report = player.report();
            account.offered += report.counts.signed;
            let back = replay.mark.and_then(|FrameMark { to, .. }| {
                let Arrivals { classes, received, latency, jitter, .. } = arrivals.next()?;
                account.received += received;
                Some(ReceivedMarked { to, classes, received, latency, jitter })
            });
            ReplayReport { back, ..report }
        };
        self.players.iter().zip(&self.trial.replays).map(report).collect()
    }

    /// Takes the streams' reports from monitor and senders, and adds them to the account.
    fn stream_reports(&mut self, account: &mut Account) -> Vec<StreamReport> {
        let empty = Monitor::new(0, 0, Vec::new(), 0);
        let arrivals = std::mem::replace(&mut self.monitor, empty).finish();
        let mut reports = Vec::new();
        for (place, [warmup, measured]) in arrivals.into_iter().enumerate() {
            let (port, at) = self.places[place];
            let outgoing = &mut self.senders[port].streams_mut()[at];
            let counts = outgoing.counts(TrafficPhase::Measured);
            account.offered += counts.offered + outgoing.counts(TrafficPhase::Warmup).offered;
            account.received += measured.received + warmup.received;
            let stream = &self.trial.streams[place];
            let duration = self.trial.window(place).span();
            let missed = MissingSpan {
                first: measured.missed.first.map(|due| due.since(self.started_at)),
                last: measured.missed.last.map(|due| due.since(self.started_at)),
                ..measured.missed
            };
            let load = Load {
                intended: self.counts[place],
                offered: counts.offered,
                forwarded: measured.classes.correct,
                duration_offered: duration,
                duration_forwarded: duration_forwarded(&measured, duration),
            };
            reports.push(StreamReport {
                id: stream.id,
                from: stream.from,
                to: stream.to,
                frame_bytes: stream.frame_bytes,
                frame_bytes_mean: stream.frame_bytes_mean(),
                load,
                unsent_late: counts.unsent_late,
                unsent_refused: counts.unsent_refused,
                port_refused: 0,
                pacing: outgoing.take_pacing(),
                classes: measured.classes,
                latency: measured.latency,
                jitter: measured.jitter,
                arrival_first: measured.first,
                arrival_last: measured.last,
                missed,
                corruption: measured.corruption,
            });
        }
        reports
    }
}

impl TrialReport {
    /// Divides each port's rejected frames among its streams, in proportion to their offered
    /// frames.
    fn share_out(&mut self, refused: &[u64]) {
        let mut offered = vec![0; refused.len()];
        self.streams.iter().for_each(|stream| offered[stream.from] += stream.load.offered);
        for stream in &mut self.streams {
            let (own, all) = (stream.load.offered, offered[stream.from].max(1));
            let share = u128::from(refused[stream.from]) * u128::from(own) / u128::from(all);
            stream.port_refused = (share as u64).min(own);
        }
    }

    /// Sums over streams and ports, and sets flags.
    fn sum_up(&mut self) {
        for stream in &self.streams {
            self.total = self.total.beside(&stream.load);
            self.classes += stream.classes;
            self.latency.merge(&stream.latency);
            self.ports[stream.from].intended += stream.load.intended;
            self.ports[stream.from].offered += stream.load.offered;
            self.ports[stream.to].forwarded += stream.load.forwarded;
        }
        let lost = |report: &PortReport, reason| report.counters.lost(reason);
        let ring_full: u64 =
            self.ports.iter().map(|port| lost(port, PortDrop::ReceiveRingFull)).sum();
        self.stalls.delays_unknown = self.latency.unknown;
        // A frame that the link rejected was offered. It counts as lost in the target.
        let share = self.total.offered_share();
        let away = u64::from(self.stalls.ns_longest >= STALL.0);
        let stalls = self.pacing.stalls.max(away);
        let flags = [
            (share < OFFERED_SHARE_MIN, Flag::TesterLimited(share)),
            (ring_full > 0, Flag::TesterDrops(ring_full)),
            (stalls > 0, Flag::Stalled(stalls)),
            (self.stamps == Clock::UserSpace, Flag::UserSpaceStamps),
            (self.latency.negative > 0, Flag::NegativeLatency(self.latency.negative)),
        ];
        self.flags.extend(flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| flag));
    }
}

/// Returns the frames that each port accepted and the system or link then rejected.
fn refused(ports: &mut PortRow) -> Vec<u64> {
    let of = |port: &mut Box<dyn Port>| port.counters().lost(PortDrop::TransmitRefused);
    ports.iter_mut().map(of).collect()
}

/// Returns the frames that a port sent, warm-up included.
fn offered(sender: &Sender) -> u64 {
    let phases = |it: &ScheduledStream| {
        it.counts(TrafficPhase::Warmup).offered + it.counts(TrafficPhase::Measured).offered
    };
    sender.streams().iter().map(phases).sum()
}

/// Rejects an invalid trial with all of its problems.
fn check(trial: &Trial, ports: &PortRow) -> Result<(), RigError> {
    let mut problems = validate(&trial.streams, ports.len());
    if trial.streams.len() > STREAMS_MAX {
        problems.push((trial.streams[STREAMS_MAX].id, Problem::LimitReached("STREAMS_MAX")));
    }
    for stream in &trial.streams {
        for port in [stream.from, stream.to].into_iter().filter_map(|port| ports.get(port)) {
            let largest_bytes = port.facts().frame_bytes_max + packet::frame::FCS_BYTES;
            if stream.frame_bytes > largest_bytes {
                let frame_bytes = stream.frame_bytes;
                problems.push((stream.id, Problem::TooLarge { frame_bytes, largest_bytes }));
            }
        }
    }
    for (place, replay) in trial.replays.iter().enumerate() {
        let faults = replay.validate(ports.len()).into_iter();
        problems.extend(faults.map(|problem| (replay.id, problem)));
        let is_taken = trial.streams.iter().any(|stream| stream.id == replay.id)
            || trial.replays[..place].iter().any(|other| other.id == replay.id);
        if is_taken {
            problems.push((replay.id, Problem::DuplicateId(replay.id)));
        }
    }
    if trial.replays.len() > REPLAYS_MAX {
        problems.push((trial.replays[REPLAYS_MAX].id, Problem::LimitReached("REPLAYS_MAX")));
    }
    problems.dedup();
    if problems.is_empty() { Ok(()) } else { Err(RigError::Unusable(problems)) }
}

/// Returns each stream's schedules for warm-up and measurement.
///
/// Streams with the same port, rate and window are spaced evenly, so that they do not send at the
/// same time.
fn schedules(trial: &Trial, start: Nanos) -> Vec<[Schedule; 2]> {
    let started_at = start.saturating_add(trial.warmup);
    let schedule = |(place, stream): (usize, &Stream)| {
        let window = trial.window(place);
        let shares = |(other, it): &(usize, &Stream)| {
            it.from == stream.from && trial.window(*other) == window
        };
        let index = trial.streams[..place].iter().enumerate().filter(shares).count() as u64;
        let streams = trial.streams.iter().enumerate().filter(shares).count() as u64;
        let period = Period::of_stream(stream);
        let parts = u128::from(period.span(1).0) * u128::from(index) / u128::from(streams);
        let phase = Nanos(parts as u64);
        let warms = if window.from == Nanos::ZERO { trial.warmup } else { Nanos::ZERO };
        let opens = started_at.saturating_add(window.from);
        [
            Schedule::of(stream, start, phase, warms, true),
            Schedule::of(stream, opens, phase, window.span(), false),
        ]
    };
    trial.streams.iter().enumerate().map(schedule).collect()
}

/// Returns the time span of the forwarded frames.
fn duration_forwarded(arrivals: &Arrivals, duration: Nanos) -> Nanos {
    let is_queue = arrivals.stretch.0 as f64 >= duration.0 as f64 * STRETCH_SHARE_MIN;
    if is_queue { duration.saturating_add(arrivals.stretch) } else { duration }
}

/// Returns the place and the name of a port's drops in the account.
pub fn name_of(reason: PortDrop) -> (DropLocation, &'static str) {
    let place = match reason {
        PortDrop::ReceiveRingFull
        | PortDrop::ReceiveTooLong
        | PortDrop::ReceiveInvalid
        | PortDrop::TooLong => DropLocation::Tester,
        PortDrop::TransmitRefused
        | PortDrop::InjectedLoss
        | PortDrop::LinkQueueFull
        | PortDrop::PeerBroken => DropLocation::Link,
    };
    (place, reason.name())
}
