//! Asynchronous messages: packet-in, flow-removed, flow monitor updates and table-status.
//!
//! Source: OpenFlow switch specification 1.0.0, sections 5.4.1 and 5.4.2; 1.3.5, section 7.4;
//! 1.5.1, section 7.4. The switch buffers a frame once for all controllers. The first controller
//! that replies gets it. A controller's role and configuration decide which messages it receives
//! ([`super::async_config`]).

use dataplane::flow::FlowRecord;
use dataplane::forwarder::{Context, EVENTS_MAX, Event, NO_COOKIE, PacketInReason};
use openflow::model::flow::counters::{FlowCounters, FlowStatsReason};
use openflow::model::flow::monitor::FlowUpdate;
use openflow::model::instruction::Counters;
use openflow::model::multipart::{
    FlowStats, MultipartReply, MultipartReplyBody, MultipartRequestBody,
};
use openflow::model::{self, Match, Message, PacketIn};
use openflow::session;
use openflow::version::{AsyncKind, Version};
use packet::field::Field;
use packet::frame::{Frame, PortNo};

use crate::translate::{self, port_up};

use super::connection::Connection;
use super::monitor::MISSED_MAX;
use super::{Agent, Datapath, nicira};

/// As `max_len` of an action or as miss send length: the whole frame, unbuffered (from 1.2 on).
const WHOLE: u16 = 0xffff;

/// Budget steps of reporting one event.
const NEWS_STEPS: u32 = 32;

/// Flow monitor updates in one message.
const UPDATES_MAX: usize = 64;

impl Agent {
    /// Reports data plane events to every controller, up to the connection's share of the turn. The
    /// rest waits for the next turn.
    pub(super) fn send_async_messages(&mut self, datapath: &mut Datapath<'_>) {
        if self.news.len() < EVENTS_MAX {
            self.news.extend(datapath.outputs.events.drain(..));
        }
        while let Some(event) = self.news.pop_front() {
            self.news_told += 1;
            self.tell_event(event, datapath);
            datapath.budget.spend(NEWS_STEPS);
            if datapath.must_pause() {
                break;
            }
        }
        for connection in &mut self.connections {
            tell_updates(connection, datapath);
        }
    }

    fn tell_event(&mut self, event: Event, datapath: &mut Datapath<'_>) {
        match event {
            // The pipeline's own worker has already handled these events.
            Event::FlowReached { .. } => {}
            Event::PacketIn { port, bytes_max, context, frame } => {
                self.tell_frame(port, bytes_max, context, frame, datapath);
            }
            Event::FlowRemoved { flow, why } => {
                let news = translate::flow_removed_up(&flow, why);
                self.tell_removed(&news);
            }
            Event::FlowChanged { flow, change, source } => {
                if let Some(model) = &mut datapath.model {
                    model.changed(&flow, change);
                }
                for connection in &mut self.connections {
                    let owner = connection.id;
                    connection.monitors.note(&flow, change, source, owner);
                }
            }
            Event::FlowTriggered { flow } => self.tell_triggered(&flow),
            Event::Vacancy { table, down } => self.tell_table(table, down, datapath),
        }
    }

    /// Whether a message must wait until controllers have received all earlier events. This applies
    /// to barriers and to messages that change which controllers receive events.
    pub(super) fn waits_for_news(
        &mut self,
        at: usize,
        event: &session::Event,
        datapath: &mut Datapath<'_>,
    ) -> bool {
        let session::Event::Message { message, .. } = event else { return false };
        let waits = match message {
            Message::BarrierRequest => true,
            Message::MultipartRequest(request) => {
                matches!(request.body, MultipartRequestBody::FlowMonitor(_))
            }
            _ => false,
        };
        if !waits {
            return false;
        }
        let so_far = self.news_told + (self.news.len() + datapath.outputs.events.len()) as u64;
        let until = *self.connections[at].news_until.get_or_insert(so_far);
        if self.news_told < until {
            self.send_async_messages(datapath);
        }
        let waits = self.news_told < until;
        if !waits {
            self.connections[at].news_until = None;
        }
        waits
    }

    fn tell_frame(
        &mut self,
        port: PortNo,
        bytes_max: Option<u16>,
        context: Context,
        frame: Frame,
        datapath: &Datapath<'_>,
    ) {
        self.counters.frames += 1;
        let hears = |connection: &Connection| hears(connection, context);
        if !self.connections.iter().any(hears) {
            self.counters.frames_unheard += 1;
            return;
        }
        if !self.pace.admit(datapath.now) {
            self.counters.frames_over_rate += 1;
            return;
        }
        let whole = frame.bytes().to_vec();
        let mut message = PacketIn {
            buffer_id: None,
            frame_bytes: whole.len() as u16,
            in_port: port_up(port),
            fields: fields_up(context),
            reason: reason_up(context.why),
            table: context.table,
            cookie: context.cookie,
            data: Vec::new(),
        };
        let kept = |connection: &Connection| wants_buffer(connection, bytes_max);
        if self.connections.iter().any(|it| hears(it) && kept(it)) {
            message.buffer_id = self.buffers.store(port, frame, datapath.now);
            self.counters.frames_not_kept += u64::from(message.buffer_id.is_none());
        }
        let mut is_told = false;
        for at in 0..self.connections.len() {
            let connection = &self.connections[at];
            if !hears(connection) {
                continue;
            }
            let buffer_id = message.buffer_id.filter(|_| kept(connection));
            let wanted = usize::from(bytes_max.unwrap_or(connection.miss_send_bytes));
            let length = if buffer_id.is_some() { wanted.min(whole.len()) } else { whole.len() };
            let data = whole[..length].to_vec();
            let news = PacketIn { buffer_id, data, ..message.clone() };
            let news = nicira::frame_up(connection, news);
            let way = self.way_for_frames(at);
            let told = self.connections[way].tell(&news);
            self.counters.news_lost += u64::from(!told);
            is_told |= told;
        }
        self.counters.frames_lost += u64::from(!is_told);
    }

    fn tell_removed(&mut self, news: &model::FlowRemoved) {
        let reason = news.reason as u32;
        for connection in &mut self.connections {
            if connection.wants(AsyncKind::FlowRemoved, reason) {
                let told = nicira::removed_up(connection, news);
                let told = connection.tell(&told);
                self.counters.news_lost += u64::from(!told);
            }
        }
    }

    /// Sends flow statistics because a flow entry reached its statistics trigger (1.5).
    fn tell_triggered(&mut self, flow: &FlowRecord) {
        let row = counters_up(&translate::flow_stats_up(flow, false), FlowStatsReason::Trigger);
        let body = MultipartReplyBody::FlowStats(vec![row]);
        let news = Message::MultipartReply(MultipartReply { more: false, body });
        self.tell_some(&news, |connection| {
            connection.version() >= Version::V1_5 && connection.wants(AsyncKind::FlowStats, 1)
        });
    }

    /// Sends a message to every controller that `who` selects.
    pub(super) fn tell_some(&mut self, news: &Message, who: impl Fn(&Connection) -> bool) {
        for connection in self.connections.iter_mut().filter(|connection| who(connection)) {
            self.counters.news_lost += u64::from(!connection.tell(news));
        }
    }
}

/// Whether a controller receives a packet-in with this context. From 1.3 on, frames that no entry
/// matched are not sent to controllers unless a table-miss entry sends them.
fn hears(connection: &Connection, context: Context) -> bool {
    let unasked = context.why == PacketInReason::NoMatch && context.cookie == NO_COOKIE;
    let version = connection.version();
    let reason = reason_up(context.why);
    let bit = if version < Version::V1_4 && !matches!(context.why, PacketInReason::InvalidTtl) {
        (reason as u32).min(1)
    } else {
        reason as u32
    };
    (!unasked || version < Version::V1_3) && connection.wants(AsyncKind::PacketIn, bit)
}

/// Whether a controller accepts a partial frame with a buffer ID.
fn wants_buffer(connection: &Connection, bytes_max: Option<u16>) -> bool {
    let wanted = bytes_max.unwrap_or(connection.miss_send_bytes);
    wanted != WHOLE || connection.version() <= Version::V1_1
}

fn reason_up(why: PacketInReason) -> model::PacketInReason {
    match why {
        PacketInReason::NoMatch => model::PacketInReason::NoMatch,
        PacketInReason::Action => model::PacketInReason::Action,
        PacketInReason::InvalidTtl => model::PacketInReason::InvalidTtl,
        PacketInReason::ActionSet => model::PacketInReason::ActionSet,
        PacketInReason::Group => model::PacketInReason::Group,
        PacketInReason::PacketOut => model::PacketInReason::PacketOut,
    }
}

/// Returns the pipeline fields of a frame other than its port, where they are not zero.
fn fields_up(context: Context) -> Match {
    let mut fields = Match::ANY;
    let of = context.fields;
    let numbers = [(Field::Metadata, of.metadata), (Field::TunnelId, of.tunnel_id)];
    for (field, value) in numbers.into_iter().filter(|(_, value)| *value != 0) {
        fields = fields.with(field, value);
    }
    match context.actset_output {
        Some(port) => fields.with(Field::ActsetOutput, port_up(port)),
        None => fields,
    }
}

/// Sends a controller's pending flow monitor updates: at least one message, and more up to the
/// budget. Pauses the updates while the send queue is full.
fn tell_updates(connection: &mut Connection, datapath: &mut Datapath<'_>) {
    if connection.monitors.is_empty() && connection.monitors.news.is_empty() {
        return;
    }
    let dumping = connection.dump.is_some();
    let is_full = connection.is_full() || connection.monitors.news.len() > MISSED_MAX;
    if dumping || is_full {
        // This update is the last before the pause, so that the controller knows of it.
        connection.monitors.hold(dumping);
    } else if connection.monitors.is_held() && connection.has_read_all() {
        connection.monitors.release();
    }
    while !connection.monitors.news.is_empty() {
        let count = connection.monitors.news.len().min(UPDATES_MAX);
        let part: Vec<FlowUpdate> = connection.monitors.news.drain(..count).collect();
        let body = MultipartReplyBody::FlowMonitor(part);
        connection.reply(0, &Message::MultipartReply(MultipartReply { more: false, body }));
        datapath.budget.spend(NEWS_STEPS);
        if datapath.must_pause() {
            break;
        }
    }
    if connection.monitors.lost {
        connection.end("flow monitor: more updates were missed than can be queued");
    }
}

/// Converts a flow entry's counters to the flow statistics of 1.5.
pub fn counters_up(from: &FlowStats, reason: FlowStatsReason) -> FlowCounters {
    FlowCounters {
        table: from.table,
        reason,
        priority: from.priority,
        matching: from.matching.clone(),
        counters: Counters {
            age: Some(from.age),
            idle: from.idle_age,
            flows: None,
            packets: Some(from.packets),
            bytes: Some(from.bytes),
        },
    }
}
