//! Control loads: a bounded amount of controller work that ends with a barrier request.
//!
//! A load is encoded before the measurement, in pieces that fit the connection's queue. The tester therefore does
//! not encode messages while frames pass.
//!
//! Invariant: every load has a fixed number of messages or connections.

use openflow::codec::NotExpressible;
use openflow::header::Xid;
use openflow::model::bundle::{BundleAddMessage, BundleCommand, BundleControl, BundleFlags};
use openflow::model::flow::FlowModCommand;
use openflow::model::message::Message;
use openflow::model::multipart::{FlowStatsRequest, MultipartRequestBody};
use openflow::model::{Action, FlowMod, PRIORITY_DEFAULT};
use openflow::version::Version;
use tester::module::{EncodedMessages, ModuleContext};

use super::rules::Rules;
use targets::flow_setup::PORT_OUT;

/// Messages per piece.
const PIECE_MESSAGES: usize = 512;

/// Bundle id.
const BUNDLE: u32 = 1;

/// A control load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Load {
    /// No control work.
    Idle,
    /// A bundle with this number of non-strict modifies.
    Bundle(u32),
    /// This number of aggregate statistics requests, sent back to back.
    Aggregates(u32),
    /// This number of new entries, sent back to back.
    Adds(u32),
    /// A dump of the statistics of all entries.
    Dump,
    /// This number of connections that complete the hello exchange.
    Connections(u32),
}

impl Load {
    /// Names of loads.
    pub const WORDS: &'static [&'static str] =
        &["idle", "bundle-2000", "bundle-65536", "aggregates", "adds", "dump", "connections"];

    /// Parses the name of a load; returns the load and the prefix of its metric names.
    ///
    /// `sizes` has the numbers of aggregate requests, entries and connections.
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

/// Sizes of loads.
#[derive(Debug, Clone, Copy)]
pub struct Sizes {
    /// Aggregate requests.
    pub requests: u32,
    /// New entries.
    pub adds: u32,
    /// Connections.
    pub connections: u32,
}

/// An encoded load with a barrier request at its end.
#[derive(Debug)]
pub struct EncodedLoad {
    pieces: Vec<EncodedMessages>,
    next: usize,
    /// Transaction id of the barrier request.
    pub barrier: Xid,
}

/// Returns an entry that matches every field of its frames and forwards them.
pub fn entry(rules: &Rules, place: u32) -> FlowMod {
    FlowMod::add(rules.exact(place), PRIORITY_DEFAULT, onward())
}

fn onward() -> Vec<Action> {
    vec![Action::output(PORT_OUT.into())]
}

/// Returns a modify that matches only the destination, so that it selects more specific entries.
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

impl EncodedLoad {
    /// Encodes a load for a switch with this number of installed entries.
    pub fn encode(
        load: Load,
        (rules, held): (&Rules, u32),
        version: Version,
        context: &mut ModuleContext,
    ) -> Result<EncodedLoad, NotExpressible> {
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
                pieces.push(context.encode(version, &piece)?);
                piece.clear();
            }
        }
        piece.push(Message::BarrierRequest);
        pieces.push(context.encode(version, &piece)?);
        let last = pieces.last().and_then(|piece| piece.said().xids().last());
        let barrier = last.expect("the last piece contains the barrier request");
        Ok(EncodedLoad { pieces, next: 0, barrier })
    }

    /// Takes the next piece, if there is one.
    pub fn take(&mut self) -> Option<&EncodedMessages> {
        self.next += 1;
        self.pieces.get(self.next - 1)
    }

    /// Returns whether a message with this transaction id belongs to the load.
    pub fn has(&self, xid: Xid) -> bool {
        self.pieces.iter().any(|piece| piece.said().place(xid).is_some())
    }
}
