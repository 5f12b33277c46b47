//! Emulation of a hardware switch, as declared by a model.
//!
//! The agent works on its own tables. They decide which messages it accepts, and they are what it
//! reports to controllers. Frames are forwarded by a second set of tables, those of the hardware.
//! The [`update_queue`] applies accepted changes to them later, in the order and at the rate of the
//! [`model`]. Frames without an entry in hardware may go over a link to the software, which uses
//! the agent's tables. Frames take their time on [`link`](line)s, and messages on the
//! [`agent_cpu`](agent_cpu).
//!
//! Source: hardware behaviour measured by OFLOPS-SUME (2018) and costa2017.
//!
//! Invariant: all results depend only on the model, the seed and the times passed as arguments. No
//! clock is read.

use std::sync::Arc;

use dataplane::flow::{FlowChange, FlowFilter, FlowRecord};
use dataplane::forwarder::{Event, Forwarder, NO_COOKIE, Outputs, PacketInReason};
use dataplane::pipeline::{Pipeline, Settings};
use openflow::header::Xid;
use openflow::model::Message;
use openflow::model::multipart::MultipartRequestBody;
use packet::frame::{Batch, Frame, PortNo};
use packet::time::Nanos;

use crate::config::OpenFlowConfig;
use crate::datapath::DataPlane;

pub mod model;
pub mod shadow_table;
pub mod agent_cpu;
pub mod tcam;
pub mod update_queue;
pub mod hardware;
pub mod link;

use agent_cpu::AgentCpu;
use hardware::Hardware;
use link::DelayLine;
use model::{InHardware, Model};
use shadow_table::{MatchKind, ShadowTable};
use tcam::FlowId;
use update_queue::{Change, Writer};

/// Maximum number of changes that wait to be written. Above it the agent accepts no more messages.
pub const CHANGES_MAX: usize = 1 << 20;

/// Maximum number of barriers that wait for a reply. Above it the agent accepts no more messages.
pub const BARRIERS_MAX: usize = 4096;

/// Maximum burst of packet-ins where a model limits their rate.
const PACKET_IN_BURST: u64 = 10;

/// State of an emulated switch.
pub struct Behaviour {
    model: Arc<Model>,
    /// Scheduler of messages on the agent's processor.
    pub agent_cpu: AgentCpu,
    /// When the agent accepted the current message.
    pub taken_at: Nanos,
    writer: Writer<(u32, Xid)>,
    book: ShadowTable,
    /// Hardware tables of an OpenFlow switch; a bridge has none.
    hardware: Option<Hardware>,
    /// When the hardware counters last had nothing to add to the agent's entries.
    credited_at: Nanos,
    path: DelayLine<DepartingFrame>,
    link: DelayLine<(PortNo, Frame)>,
    software: DelayLine<DepartingFrame>,
    inner: Outputs,
    one: Batch,
    was_full: bool,
    /// Frames that only requested a flow entry and that no hardware entry handled.
    only_asked: u64,
}

/// A frame that leaves through a port.
struct DepartingFrame {
    port: PortNo,
    frame: Frame,
}

/// Counters of the model, by name.
pub type Counters = [(&'static str, u64); 8];

impl Behaviour {
    /// Emulates an OpenFlow switch around the agent's tables, which were created with these
    /// settings.
    pub fn of_switch(
        model: &Arc<Model>,
        believed: &mut Pipeline,
        (ports, settings): (&[PortNo], &Settings),
        seed: u64,
    ) -> Behaviour {
        believed.watch(true);
        let hardware = Hardware::beside(believed, settings, model.has_software());
        let path = &model.paths.hardware;
        Behaviour::new(model, ports, (path, Some(hardware)), seed)
    }

    /// Emulates the same device as a bridge, without OpenFlow.
    pub fn of_bridge(model: &Arc<Model>, ports: &[PortNo], seed: u64) -> Behaviour {
        Behaviour::new(model, ports, (&model.paths.legacy, None), seed)
    }

    fn new(
        model: &Arc<Model>,
        ports: &[PortNo],
        (path, hardware): (&model::Path, Option<Hardware>),
        seed: u64,
    ) -> Behaviour {
        let link = model::Path {
            capacity_pps: model.tiers.link_pps,
            queue_frames: model.tiers.link_queue_frames,
            ..model::Path::default()
        };
        Behaviour {
            model: Arc::clone(model),
            agent_cpu: AgentCpu::default(),
            taken_at: Nanos::ZERO,
            writer: Writer::new(model, seed),
            book: ShadowTable::default(),
            hardware,
            credited_at: Nanos::ZERO,
            path: DelayLine::new(path, seed.wrapping_add(1)),
            link: DelayLine::new(&link, seed.wrapping_add(2)),
            software: DelayLine::new(&model.paths.software, seed.wrapping_add(3)),
            inner: Outputs::new(ports),
            one: Batch::new(1),
            was_full: false,
            only_asked: 0,
        }
    }

    /// Returns the model.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Forwards received frames. They leave when their latency has passed.
    pub fn forward(
        &mut self,
        plane: &mut DataPlane,
        (port, batch): (PortNo, &mut Batch),
        now: Nanos,
        out: &mut Outputs,
    ) {
        self.act(now);
        if self.hardware.as_ref().is_some_and(|hardware| !hardware.has_counted()) {
            self.credited_at = now;
        }
        if self.path.is_free() && !self.model.has_software() {
            return match &mut self.hardware {
                Some(hardware) => hardware.forward(port, batch, now, out),
                None => plane.forward(port, batch, now, out),
            };
        }
        for frame in batch.frames_mut() {
            let entries = self.book.count_in_hardware();
            let Some(leaves_at) = self.path.admit_past(now, frame.len(), entries) else { continue };
            let came = self.path.charges_rewrites().then(|| frame.clone());
            let copy = self.model.only_asks().then(|| frame.clone());
            self.one.clear();
            self.one.push_swap(frame);
            match &mut self.hardware {
                Some(hardware) => hardware.forward(port, &mut self.one, now, &mut self.inner),
                None => plane.forward(port, &mut self.one, now, &mut self.inner),
            }
            depart(&mut self.inner, &mut self.path, leaves_at, came.as_ref());
            self.sort_events(now, out);
            let met_last = |hardware: &Hardware| hardware.has_met_last(now);
            if let Some(copy) = copy.filter(|_| self.hardware.as_ref().is_some_and(met_last)) {
                up(&mut self.link, port, copy, now);
            }
        }
        self.release(plane, now, out);
    }

    /// Sends frames without a hardware entry to the software, and all other events to the
    /// controllers.
    fn sort_events(&mut self, now: Nanos, out: &mut Outputs) {
        for event in self.inner.events.drain(..) {
            match event {
                Event::PacketIn { port, context, frame, .. }
                    if self.model.has_software()
                        && (context.why, context.cookie)
                            == (PacketInReason::NoMatch, NO_COOKIE) =>
                {
                    self.only_asked += u64::from(self.model.only_asks());
                    up(&mut self.link, port, frame, now);
                }
                other => {
                    out.event(other);
                }
            }
        }
        out.events_lost += std::mem::take(&mut self.inner.events_lost);
        out.wake_at(self.inner.wake.take());
    }

    /// Performs due work and returns when to call again.
    pub fn tick(&mut self, plane: &mut DataPlane, now: Nanos, out: &mut Outputs) -> Option<Nanos> {
        self.act(now);
        self.fetch(plane, now);
        if self.book.has_timed() {
            self.credit(plane.openflow(), now);
        }
        let inner = plane.tick(now, out);
        self.release(plane, now, out);
        inner.into_iter().chain(self.next_event()).min()
    }

    /// Sends the frames whose latency has passed.
    fn release(&mut self, plane: &mut DataPlane, now: Nanos, out: &mut Outputs) {
        while let Some((at, (port, mut frame))) = self.link.leaves(now) {
            self.in_software(plane, port, &mut frame, at, out);
        }
        for line in [&mut self.path, &mut self.software] {
            while let Some((_, DepartingFrame { port, mut frame })) = line.leaves(now) {
                // The line ends at a full output queue.
                if out.send(port, &mut frame) != dataplane::forwarder::Sent::Queued {
                    line.frames_dropped += 1;
                }
            }
        }
        out.wake_at(self.next_event());
    }

    /// Forwards a frame in software, by the agent's tables.
    fn in_software(
        &mut self,
        plane: &mut DataPlane,
        port: PortNo,
        frame: &mut Frame,
        now: Nanos,
        out: &mut Outputs,
    ) {
        let entries = self.book.count();
        let Some(leaves_at) = self.software.admit_past(now, frame.len(), entries) else { return };
        let came = self.software.charges_rewrites().then(|| frame.clone());
        let Some(believed) = plane.openflow() else { return };
        self.one.clear();
        self.one.push_swap(frame);
        believed.forward(port, &mut self.one, now, &mut self.inner);
        if self.model.in_hardware() == InHardware::Used
            && let Some(place) = believed.found()
            && let Some(flow) = believed.tables().records(&FlowFilter::ALL, place, now).next()
            && flow.place == place
        {
            self.use_entry(&flow, now);
        }
        if self.model.only_asks() {
            // The hardware has handled the frame.
            self.inner.queues_mut().iter_mut().for_each(|(_, queue)| queue.clear());
            return self.inner.events.clear();
        }
        depart(&mut self.inner, &mut self.software, leaves_at, came.as_ref());
        for event in self.inner.events.drain(..) {
            out.event(event);
        }
    }

    /// Schedules an entry for the hardware when a frame first matches it in software.
    fn use_entry(&mut self, flow: &FlowRecord, now: Nanos) {
        let id = FlowId::of(flow);
        let is_new = self.book.get(&id).is_some_and(|booked| !booked.is_for_hardware);
        if is_new && self.fits_hardware(flow) {
            self.book.send_to_hardware(&id);
            self.write(id, Some(flow), now);
        }
    }

    fn write(&mut self, id: FlowId, flow: Option<&FlowRecord>, at: Nanos) {
        let spec = flow.map(hardware::spec_of).map(Box::new);
        let generation = self.book.get(&id).map_or(0, |booked| booked.generation);
        self.writer.accept(Change { id, generation, spec }, at);
    }

    /// Whether the hardware can hold an entry in addition to the software, and has room for it.
    /// Entries with goto-table and the table-miss entry stay in software.
    fn fits_hardware(&self, flow: &FlowRecord) -> bool {
        let max = self.model.tiers.hardware_rules as usize;
        let stays = flow.table > 0 || flow.instructions.goto.is_some() || hardware::is_last(flow);
        !stays && (max == 0 || self.book.count_in_hardware() < max)
    }

    /// Handles a change of the agent's tables. Changes that concern the hardware are written now or
    /// later.
    pub fn changed(&mut self, flow: &FlowRecord, change: FlowChange) {
        let (id, at) = (FlowId::of(flow), self.taken_at);
        match change {
            FlowChange::Added => {
                let booked = self.book.add(id, flow);
                let goes = match self.model.in_hardware() {
                    InHardware::All => true,
                    InHardware::Exact => {
                        flow.matching.names_every_field() && self.fits_hardware(flow)
                    }
                    InHardware::First => self.fits_hardware(flow),
                    InHardware::Used => self.model.only_asks() && hardware::is_last(flow),
                    InHardware::Layer2 => is_layer_2(flow) && self.fits_hardware(flow),
                    InHardware::Layer3 => !is_layer_2(flow) && self.fits_hardware(flow),
                };
                if booked.is_for_hardware || goes {
                    self.book.send_to_hardware(&id);
                    self.write(id, Some(flow), at);
                }
            }
            FlowChange::Modified => {
                if self.book.get(&id).is_some_and(|booked| booked.is_for_hardware) {
                    self.write(id, Some(flow), at);
                }
            }
            FlowChange::Removed(_) => {
                if self.book.remove(&id).is_some_and(|booked| booked.is_for_hardware) {
                    self.write(id, None, at);
                }
            }
        }
    }

    /// Advances the hardware's entries to the current time.
    pub fn act(&mut self, now: Nanos) {
        self.agent_cpu.rests(now);
        self.writer.advance(now);
        while let Some(Change { id, generation, spec }) = self.writer.acts(now) {
            let Some(hardware) = &mut self.hardware else { continue };
            match &spec {
                Some(spec) => hardware.put(spec, generation, now, &mut self.inner),
                None => hardware.take(&id, now, &mut self.inner),
            }
        }
    }

    /// Applies the configuration of the agent's tables to the hardware.
    pub fn follow(&mut self, believed: &Pipeline) {
        self.hardware.iter_mut().for_each(|hardware| hardware.follow(believed));
    }

    /// Adds the hardware's counters to the agent's entries: the current values, or those of the
    /// last periodic update.
    pub fn credit(&mut self, believed: Option<&mut Pipeline>, now: Nanos) {
        let (Some(hardware), Some(believed)) = (&mut self.hardware, believed) else { return };
        let interval = self.model.hardware.counters_ns;
        if interval == 0 {
            hardware.credit(believed, &self.book, now);
        }
    }

    /// Updates counters if a periodic update is due.
    fn fetch(&mut self, plane: &mut DataPlane, now: Nanos) {
        let is_due = self.next_fetch().is_some_and(|at| at <= now);
        if let (true, Some(hardware), Some(believed)) =
            (is_due, &mut self.hardware, plane.openflow())
        {
            self.credited_at = now;
            hardware.credit(believed, &self.book, now);
        }
    }

    /// Queues a barrier of a connection. The model decides when the reply is sent.
    pub fn barrier(&mut self, connection: u32, xid: Xid) {
        self.writer.barrier((connection, xid), self.taken_at);
    }

    /// Returns the next barrier whose reply is due.
    pub fn answered(&mut self, now: Nanos) -> Option<(u32, Xid)> {
        self.writer.answered(now)
    }

    /// Whether so much is queued that the agent accepts no more messages.
    pub fn is_full(&self) -> bool {
        let (unwritten, written) = self.writer.waiting();
        unwritten + written >= CHANGES_MAX || self.writer.barriers() >= BARRIERS_MAX
    }

    /// Whether the table has room for one more entry of this kind. If so, reserves the room until
    /// the reservations are cleared.
    pub fn promises(&mut self, kind: MatchKind) -> bool {
        let has_room = self.book.has_room(kind, &self.model.capacity);
        if has_room {
            self.book.promise(kind);
        }
        has_room
    }

    /// Clears all reservations: a message is processed, or a bundle begins again.
    pub fn settle_promises(&mut self) {
        self.book.forget_promises();
    }

    /// Whether an entry with this match and rank exists, which an equal one would replace.
    pub fn knows(&self, id: &FlowId) -> bool {
        self.book.get(id).is_some()
    }

    /// Whether the table is as full as the model requires for its special behaviour.
    fn is_nearly_full(&self) -> bool {
        let (at, rules) = (self.model.full.at_percent, self.model.capacity.rules);
        at > 0 && self.book.count() as u64 * 100 >= rules * at
    }

    /// Returns the agent's processing time of a message.
    pub fn cost(&self, message: &Message) -> Nanos {
        let agent = &self.model.agent;
        let stats = self.stats_cost(message);
        let silent = self.model.full.does == 0 && self.model.full.on == 1;
        let stun = if stats.is_some() && silent && self.is_nearly_full() {
            self.model.full.lasts_ns
        } else {
            0
        };
        let cost = match message {
            Message::FlowMod(_) => agent.flow_mod_ns,
            Message::PacketOut(_) => agent.packet_out_ns,
            _ => stats.unwrap_or(agent.message_ns),
        };
        Nanos(cost.saturating_add(stun))
    }

    fn stats_cost(&self, message: &Message) -> Option<u64> {
        let Message::MultipartRequest(request) = message else { return None };
        let agent = &self.model.agent;
        match request.body {
            MultipartRequestBody::Flow(_) | MultipartRequestBody::Aggregate(_) => {
                let rules = agent.flow_stats_rule_ns.saturating_mul(self.book.count() as u64);
                Some(agent.flow_stats_ns.saturating_add(rules))
            }
            MultipartRequestBody::Port(_) => Some(agent.port_stats_ns),
            _ => None,
        }
    }

    /// Handles the end of a message. Returns whether the model drops the connections.
    pub fn done(&mut self, is_statistics: bool, now: Nanos) -> bool {
        let is_full = self.is_nearly_full();
        let was_full = std::mem::replace(&mut self.was_full, is_full);
        let reached = is_full && !was_full;
        let full = &self.model.full;
        let happens = if full.on == 0 { reached } else { is_full && is_statistics };
        if happens && full.does == 0 && full.on == 0 {
            self.agent_cpu.rest(now, Nanos(full.lasts_ns));
        }
        happens && full.does == 1
    }

    /// Whether all accepted changes are active in hardware.
    pub fn is_settled(&self) -> bool {
        self.writer.waiting() == (0, 0)
    }

    /// Returns the time of the next work.
    pub fn next_event(&self) -> Option<Nanos> {
        let lines = [self.path.next_event(), self.software.next_event(), self.link.next_event()];
        let others = [self.writer.next_event(), self.next_fetch(), self.agent_cpu.rests_until()];
        let others = others.into_iter().flatten();
        lines.into_iter().flatten().chain(others).min()
    }

    /// Returns when a periodic counter update is due, if there is anything to update.
    fn next_fetch(&self) -> Option<Nanos> {
        let interval = self.model.hardware.counters_ns;
        let counted = self.hardware.as_ref().is_some_and(Hardware::has_counted) && interval > 0;
        counted.then(|| Nanos((self.credited_at.0 / interval + 1).saturating_mul(interval)))
    }

    /// Returns the counters.
    pub fn counters(&self) -> Counters {
        let (unwritten, written) = self.writer.waiting();
        // Copies that only request an entry are not frames that can be lost.
        let frames = u64::from(!self.model.only_asks());
        [
            ("changes_unwritten", unwritten as u64),
            ("changes_not_acting", written as u64),
            ("changes_failed", self.hardware.as_ref().map_or(0, |it| it.changes_failed)),
            ("entries_believed", self.book.count() as u64),
            ("entries_written", self.writer.entries() as u64),
            ("drops.path_full", self.path.frames_dropped),
            ("drops.link_full", self.link.frames_dropped * frames),
            ("drops.software_full", self.software.frames_dropped * frames + self.only_asked),
        ]
    }
}

/// Whether an entry matches no field above layer 2.
fn is_layer_2(flow: &FlowRecord) -> bool {
    let kind = MatchKind::of(flow.matching.names_every_field(), flow.matching.fields_asked());
    kind == MatchKind::Layer2
}

/// Sends a frame to the software. If the link is full, a random choice decides which frame is
/// dropped.
fn up(link: &mut DelayLine<(PortNo, Frame)>, port: PortNo, frame: Frame, now: Nanos) {
    match link.admit(now, frame.len()) {
        Some(at) => link.hold(at, (port, frame)),
        None => link.displace((port, frame)),
    }
}

/// Puts the output of a frame on a line. `came` is the received frame, if the line charges for
/// rewrites.
fn depart(
    from: &mut Outputs,
    line: &mut DelayLine<DepartingFrame>,
    at: Nanos,
    came: Option<&Frame>,
) {
    let is_other = |came: &Frame| {
        let mut leaving = from.queues_mut().iter_mut().flat_map(|(_, queue)| queue.frames_mut());
        leaving.any(|frame| frame.bytes() != came.bytes())
    };
    let leaves_at = if came.is_some_and(is_other) { line.rewritten(at) } else { at };
    for (port, queue) in from.queues_mut() {
        for frame in queue.frames_mut() {
            line.hold(leaves_at, DepartingFrame { port: *port, frame: std::mem::take(frame) });
        }
        queue.clear();
    }
}

/// Adapts an OpenFlow configuration to a model.
pub fn told(model: &Model, config: &OpenFlowConfig) -> OpenFlowConfig {
    let mut config = config.clone();
    if model.capacity.rules > 0 {
        // The model decides which entries are rejected.
        config.exact_flows_max = model.capacity.rules as usize;
        config.wildcard_flows_max = model.capacity.rules as usize;
    }
    if model.agent.packet_ins_per_s > 0 {
        config.limits.packet_ins_per_s = model.agent.packet_ins_per_s;
        config.limits.packet_in_burst = PACKET_IN_BURST;
    }
    config
}
