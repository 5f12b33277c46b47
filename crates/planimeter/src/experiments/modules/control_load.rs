//! Control loads: work of a controller that is bounded and ends with a barrier.
//!
//! A load is encoded before the measurement, in pieces that fit the connection's queue, so that the tester does not
//! encode while frames pass. Invariant: every load has a fixed number of messages or connections.

use instrument::module::{Desk, Prepared};
use openflow::codec::NotExpressible;
use openflow::header::Xid;
use openflow::model::bundle::{BundleAddMessage, BundleCommand, BundleControl, BundleFlags};
use openflow::model::flow::FlowModCommand;
use openflow::model::message::Message;
use openflow::model::multipart::{FlowStatsRequest, MultipartRequestBody};
use openflow::model::{Action, FlowMod, PRIORITY_DEFAULT};
use openflow::version::Version;

use super::rules::Rules;
use crate::target::program::PORT_OUT;

/// Messages of a piece.
const PIECE_MESSAGES: usize = 512;

/// The number of the bundle.
const BUNDLE: u32 = 1;

/// A control load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Load {
    /// No control work.
    Idle,
    /// A bundle of so many non-strict modifies.
    Bundle(u32),
    /// So many aggregate statistics requests, sent at once.
    Aggregates(u32),
    /// So many new entries, sent at once.
    Adds(u32),
    /// The statistics of all entries.
    Dump,
    /// So many connections that finish the hello exchange.
    Connections(u32),
}

impl Load {
    /// The words of loads.
    pub const WORDS: &'static [&'static str] =
        &["idle", "bundle-2000", "bundle-65536", "aggregates", "adds", "dump", "connections"];

    /// The load of a word, and what the names of its metrics begin with; `sizes` are how many aggregate requests, entries
    /// and connections there are.
    pub fn of(word: &str, sizes: Sizes) -> (Load, &'static str) {
        match word {
            "bundle-2000" => (Load::Bundle(2000), "bundle_2000_"),
            "bundle-65536" => (Load::Bundle(1 << 16), "bundle_65536_"),
            "aggregates" => (Load::Aggregates(sizes.requests), "aggregates_"),
            "adds" => (Load::Adds(sizes.adds), "adds_"),
            "dump" => (Load::Dump, "dump_"),
            "connections" => (Load::Connections(sizes.connections), "connections_"),
            _ => (Load::Idle, "idle_"),
        }
    }
}

/// How large loads are.
#[derive(Debug, Clone, Copy)]
pub struct Sizes {
    /// Aggregate requests.
    pub requests: u32,
    /// New entries.
    pub adds: u32,
    /// Connections.
    pub connections: u32,
}

/// A load as bytes, with a barrier at its end.
#[derive(Debug)]
pub struct Pieces {
    pieces: Vec<Prepared>,
    next: usize,
    /// The number of the barrier.
    pub barrier: Xid,
}

/// A rule that names every field of its frames and sends them on.
pub fn entry(rules: &Rules, place: u32) -> FlowMod {
    FlowMod::add(rules.exact(place), PRIORITY_DEFAULT, onward())
}

fn onward() -> Vec<Action> {
    vec![Action::output(PORT_OUT.into())]
}

/// A modify whose match names the destination alone, so that it selects entries that name more.
fn modify(rules: &Rules, place: u32) -> FlowMod {
    let added = FlowMod::add(rules.matching(place), PRIORITY_DEFAULT, onward());
    FlowMod { command: FlowModCommand::Modify, ..added }
}

fn control(command: BundleCommand) -> Message {
    let flags = BundleFlags::ATOMIC | BundleFlags::ORDERED;
    Message::BundleControl(BundleControl {
        id: BUNDLE,
        command,
        is_reply: false,
        flags,
        properties: Vec::new(),
    })
}

fn bundled(flow_mod: FlowMod) -> Message {
    Message::BundleAddMessage(BundleAddMessage {
        id: BUNDLE,
        flags: BundleFlags::ATOMIC | BundleFlags::ORDERED,
        message: Box::new(Message::FlowMod(flow_mod)),
        properties: Vec::new(),
    })
}

impl Pieces {
    /// A load on a switch that holds so many of these rules.
    pub fn encode(
        load: Load,
        (rules, held): (&Rules, u32),
        version: Version,
        desk: &mut Desk,
    ) -> Result<Pieces, NotExpressible> {
        let messages: Box<dyn Iterator<Item = Message> + '_> = match load {
            Load::Idle | Load::Connections(_) => Box::new(std::iter::empty()),
            Load::Bundle(count) => {
                let modifies = (0..count).map(|at| bundled(modify(rules, at % held.max(1))));
                let opened = std::iter::once(control(BundleCommand::Open)).chain(modifies);
                Box::new(opened.chain([control(BundleCommand::Commit)]))
            }
            Load::Aggregates(count) => {
                let body = || MultipartRequestBody::Aggregate(FlowStatsRequest::default());
                Box::new((0..count).map(move |_| Message::ask(body())))
            }
            Load::Adds(count) => {
                Box::new((held..held + count).map(|at| Message::FlowMod(entry(rules, at))))
            }
            Load::Dump => {
                let body = MultipartRequestBody::Flow(FlowStatsRequest::default());
                Box::new(std::iter::once(Message::ask(body)))
            }
        };
        let (mut pieces, mut piece) = (Vec::new(), Vec::with_capacity(PIECE_MESSAGES));
        for message in messages {
            piece.push(message);
            if piece.len() == PIECE_MESSAGES {
                pieces.push(desk.encode(version, &piece)?);
                piece.clear();
            }
        }
        piece.push(Message::BarrierRequest);
        pieces.push(desk.encode(version, &piece)?);
        let last = pieces.last().and_then(|piece| piece.said().xids().last());
        let barrier = last.expect("the last piece has the barrier");
        Ok(Pieces { pieces, next: 0, barrier })
    }

    /// Takes the next piece, if one is left.
    pub fn take(&mut self) -> Option<&Prepared> {
        self.next += 1;
        self.pieces.get(self.next - 1)
    }

    /// Whether a message with this number belongs to the load.
    pub fn has(&self, xid: Xid) -> bool {
        self.pieces.iter().any(|piece| piece.said().place(xid).is_some())
    }
}
