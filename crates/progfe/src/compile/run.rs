//! A batch of frames that goes through a program's tree together, in place.
//!
//! All frames move to their first table lookup. The data that the lookups read is prefetched for
//! all frames, then each frame gets its result and moves to the next lookup. A frame with the same
//! key as the previous one gets the same result.
//!
//! Invariant: a batch contains frames of one port in arrival order, and learning tables process
//! them in this order.

use core::net::Ipv4Addr;

use dataplane::forwarder::{FrameHead, Outputs, SIGHTS_MAX};
use dataplane::mac_table::{Hint, MacKey, MacTable};
use packet::frame::PortNo;
use packet::header::ethernet::Mac;
use packet::time::Nanos;

use super::batch_eval::{first, places};
use super::tree::{Fate, LearnQuestion, MacAt, Node, NodeId, RouteQuestion, TableLookup, Tree};
use crate::compiled_program::Loaded;
use crate::interpret::Interpreter;
use crate::lfb::{Env, ExceptionQueue, Lfb};

/// A batch of frames in the tree.
#[derive(Debug)]
pub struct Row {
    /// Current node of each frame.
    pub(super) at: [NodeId; SIGHTS_MAX],
    pub(super) count: usize,
    /// Mask of frames that wait for a table lookup.
    pub(super) asking: u32,
    /// The common node of these frames, if it is the same.
    pub(super) asks: Option<NodeId>,
    /// Whether a frame left the tree at a block from which frames reach a learning table.
    pub(super) goes_back: bool,
    asked: [Lookup; SIGHTS_MAX],
    /// Result of the last table lookup of each frame.
    found: [u32; SIGHTS_MAX],
    /// Passed joins, with frames and bytes.
    pub(super) passed: Vec<(u32, u64, u64)>,
    /// Positions of the frames that caused events.
    pub(super) happened_by: Vec<u32>,
}

/// Keys of a frame for a bridge table, with prefetch state of the lookups.
#[derive(Debug, Clone, Copy)]
struct Lookup {
    learn: MacKey,
    search: MacKey,
    hints: [Hint; 2],
}

impl Default for Row {
    fn default() -> Row {
        let key = MacKey::new([0; 6], 0);
        let asked = Lookup { learn: key, search: key, hints: [Hint::NONE; 2] };
        Row {
            at: [0; SIGHTS_MAX],
            count: 0,
            asking: 0,
            asks: None,
            goes_back: false,
            asked: [asked; SIGHTS_MAX],
            found: [0; SIGHTS_MAX],
            passed: Vec::new(),
            happened_by: Vec::new(),
        }
    }
}

impl MacAt {
    #[inline]
    fn key(&self, head: &[u8]) -> MacKey {
        let [_, _, mac @ ..] = self.mac.read(head).to_be_bytes();
        let mac: Mac = mac;
        MacKey::new(mac, self.vid.map_or(0, |vid| vid.read(head) as u16))
    }
}

impl Row {
    /// Takes frames that a port received, and prefetches the first data of their lookups.
    #[inline]
    pub fn see(
        &mut self,
        tree: &mut Tree,
        port: PortNo,
        sights: &[FrameHead<'_>],
        inner: &Interpreter,
    ) {
        self.count = sights.len();
        (self.asking, self.goes_back) = (0, false);
        self.passed.clear();
        let Some(root) = tree.root(port) else { return };
        match tree.shortcuts[port as usize].are_on(sights.len()) {
            true => self.take_shortcuts(tree, (port, root), sights),
            false => self.lead(tree, root, first(sights.len()), sights),
        }
        self.prepare(tree, sights, inner);
    }

    /// Returns the next waiting frames with the same lookup: node and mask.
    #[inline]
    fn run(&self, asking: u32) -> (NodeId, u32) {
        if let Some(node) = self.asks {
            return (node, asking);
        }
        let node = self.at[asking.trailing_zeros() as usize];
        let (mut left, mut these) = (asking, 0);
        while left != 0 {
            let place = left.trailing_zeros() as usize;
            if self.at[place] != node {
                break;
            }
            these |= 1 << place;
            left &= left - 1;
        }
        (node, these)
    }

    /// Reads the keys of waiting frames, and prefetches the first data of their lookups.
    #[inline]
    fn prepare(&mut self, tree: &Tree, sights: &[FrameHead<'_>], inner: &Interpreter) {
        let mut left = self.asking;
        while left != 0 {
            let (node, mut these) = self.run(left);
            left &= !these;
            let Some((of, table)) = learning(tree, node, inner) else {
                foresee(tree, node, these, sights, inner);
                continue;
            };
            // A batch often has many frames from one station, or to one station.
            let mut last = [(MacKey::new([0; 6], 0), Hint::NONE); 2];
            if let Some(head) = sights.get(these.trailing_zeros() as usize).map(|it| it.head) {
                last = [of.learn.key(head), of.search.key(head)].map(|key| (key, table.hint(key)));
            }
            while these != 0 {
                let place = these.trailing_zeros() as usize;
                these &= these - 1;
                let head = sights[place].head;
                let keys = [of.learn.key(head), of.search.key(head)];
                for (last, key) in last.iter_mut().zip(keys) {
                    if last.0 != key {
                        *last = (key, table.hint(key));
                    }
                }
                let [learn, search] = keys;
                self.asked[place] = Lookup { learn, search, hints: last.map(|(_, hint)| hint) };
            }
        }
    }

    /// Prefetches the second data of the lookups.
    #[inline]
    pub fn guess(&mut self, tree: &Tree, inner: &Interpreter) {
        let mut left = self.asking;
        while left != 0 {
            let (node, mut these) = self.run(left);
            left &= !these;
            let Some((_, table)) = learning(tree, node, inner) else { continue };
            let mut last: Option<Lookup> = None;
            while these != 0 {
                let asked = &mut self.asked[these.trailing_zeros() as usize];
                these &= these - 1;
                match last {
                    Some(last) if last.learn == asked.learn => asked.hints[0] = last.hints[0],
                    _ => table.guess(&mut asked.hints[0]),
                }
                match last {
                    Some(last) if last.search == asked.search => asked.hints[1] = last.hints[1],
                    _ => table.guess(&mut asked.hints[1]),
                }
                last = Some(*asked);
            }
        }
    }

    /// Moves all frames to their ends. Returns true if none needs the slow path.
    #[inline]
    pub fn conclude(
        &mut self,
        tree: &mut Tree,
        sights: &[FrameHead<'_>],
        inner: &mut Interpreter,
        (told, outputs): (&mut ExceptionQueue, &mut Outputs),
        now: Nanos,
    ) -> bool {
        while self.asking != 0 {
            self.answer(tree, sights, inner, (told, outputs), now);
            if self.asking != 0 {
                self.prepare(tree, sights, inner);
                self.guess(tree, inner);
            }
        }
        for (join, frames, bytes) in self.passed.drain(..) {
            tree.pass(join, frames, bytes);
        }
        let mut is_plain = true;
        let (mut place, count) = (0, sights.len());
        while place < count {
            let node = self.at[place];
            let (Node::End(end) | Node::Back(end)) = tree.nodes[node as usize] else { break };
            let (mut frames, mut bytes) = (0, 0);
            while place < count && self.at[place] == node {
                self.at[place] = end;
                (frames, bytes) = (frames + 1, bytes + sights[place].bytes as u64);
                place += 1;
            }
            is_plain &= tree.count(end, frames, bytes) != Fate::Goes;
        }
        is_plain
    }

    /// Performs the lookup of each waiting frame, and moves it to its next lookup or its end.
    #[inline]
    fn answer(
        &mut self,
        tree: &Tree,
        sights: &[FrameHead<'_>],
        inner: &mut Interpreter,
        (told, outputs): (&mut ExceptionQueue, &mut Outputs),
        now: Nanos,
    ) {
        let mut left = std::mem::take(&mut self.asking);
        while left != 0 {
            let (node, these) = self.run(left);
            let Node::Ask(question) = &tree.nodes[node as usize] else { break };
            match &**question {
                TableLookup::Route(of) => left = self.answer_routes(tree, of, left, sights, inner),
                TableLookup::Learn(of) if self.goes_back => {
                    left &= !these;
                    let mut these = these;
                    while these != 0 {
                        self.at[these.trailing_zeros() as usize] = of.stand;
                        these &= these - 1;
                    }
                }
                TableLookup::Learn(of) => {
                    left &= !these;
                    self.learn(tree, of, these, sights, inner, (&mut *told, &mut *outputs), now);
                }
            }
        }
    }

    /// Learns from frames in a bridge table and looks up their destinations, in order.
    #[inline]
    #[allow(
        clippy::too_many_arguments,
        reason = "they are the separate parts of a block's environment"
    )]
    fn learn(
        &mut self,
        tree: &Tree,
        of: &LearnQuestion,
        mut these: u32,
        sights: &[FrameHead<'_>],
        inner: &mut Interpreter,
        (told, outputs): (&mut ExceptionQueue, &mut Outputs),
        now: Nanos,
    ) {
        let Interpreter { loaded, made, spare, .. } = inner;
        let Loaded { program, slots, blocks, watched, .. } = loaded;
        let instance = of.instance as usize;
        let Some(Lfb::LearnSearch(block)) = &mut blocks[instance] else { return };
        let mut env = Env {
            frames: &program.frames,
            slots,
            now,
            instance,
            watched: watched[instance],
            made,
            spare,
            told,
            outputs,
            copies_told: 0,
        };
        let all = these;
        // Last result, while it remains valid.
        let mut last: Option<(MacKey, MacKey, NodeId, u32)> = None;
        while these != 0 {
            let place = these.trailing_zeros() as usize;
            these &= these - 1;
            let Lookup { learn, search, hints } = self.asked[place];
            let (to, found) = match last {
                Some((source, destination, to, found))
                    if (source, destination) == (learn, search) =>
                {
                    (to, found)
                }
                _ => {
                    let before = env.told.happenings.len();
                    let stays = block.learn_key(learn, hints[0], of.value, &mut env);
                    let events = env.told.happenings.len() - before;
                    if events > 0 {
                        self.happened_by.resize(self.happened_by.len() + events, place as u32);
                    }
                    let found = block.find_key(search, hints[1], now);
                    let to = found.map_or(of.unknown, |found| {
                        of.known.get(found as usize).copied().unwrap_or(of.other)
                    });
                    let found = found.unwrap_or_default();
                    last = stays.then_some((learn, search, to, found));
                    (to, found)
                }
            };
            (self.found[place], self.at[place]) = (found, to);
        }
        self.go_on(tree, all, sights);
    }

    /// Looks up the routes of all frames that wait for one block. Returns the other waiting frames.
    #[inline]
    fn answer_routes(
        &mut self,
        tree: &Tree,
        of: &RouteQuestion,
        asking: u32,
        sights: &[FrameHead<'_>],
        inner: &Interpreter,
    ) -> u32 {
        let node = self.at[asking.trailing_zeros() as usize];
        let question_of = |at: NodeId| match &tree.nodes[at as usize] {
            _ if at == node => Some(of),
            Node::Ask(question) => match &**question {
                TableLookup::Route(other) if other.instance == of.instance => Some(other),
                _ => None,
            },
            _ => None,
        };
        let mut addresses = [Ipv4Addr::UNSPECIFIED; SIGHTS_MAX];
        let (mut count, mut these) = (0, 0);
        for place in places(asking) {
            if let Some(of) = question_of(self.at[place]) {
                addresses[count] = Ipv4Addr::from(of.address.read(sights[place].head) as u32);
                these |= 1 << place;
                count += 1;
            }
        }
        let others = asking & !these;
        let Some(Lfb::Ipv4Lpm(block)) = &inner.loaded.blocks[of.instance as usize] else {
            return others;
        };
        let mut hops = [None; SIGHTS_MAX];
        block.routes().lookup_many(&addresses[..count], &mut hops);
        for (place, hop) in places(these).zip(hops) {
            let Some(of) = question_of(self.at[place]) else { continue };
            self.at[place] = match hop {
                None => of.none,
                Some(hop) => of.hops.get(hop.0 as usize).copied().unwrap_or(of.other),
            };
        }
        self.go_on(tree, these, sights);
        others
    }

    /// Returns the end of a frame.
    #[inline]
    pub fn end(&self, place: usize) -> u32 {
        self.at[place]
    }

    /// Returns the result of the last table lookup of a frame.
    #[inline]
    pub fn found(&self, place: usize) -> u32 {
        self.found[place]
    }

    /// Returns the number of frames.
    #[inline]
    pub fn count(&self) -> usize {
        self.count
    }
}

/// Prefetches the first data of route lookups, if frames wait for them at a node.
#[inline]
fn foresee(tree: &Tree, node: NodeId, these: u32, sights: &[FrameHead<'_>], inner: &Interpreter) {
    let Node::Ask(question) = &tree.nodes[node as usize] else { return };
    let TableLookup::Route(of) = &**question else { return };
    if let Some(Lfb::Ipv4Lpm(block)) = &inner.loaded.blocks[of.instance as usize] {
        for place in places(these) {
            block.routes().foresee(Ipv4Addr::from(of.address.read(sights[place].head) as u32));
        }
    }
}

/// Returns the bridge table lookup of a node, and the table.
#[inline]
fn learning<'t>(
    tree: &'t Tree,
    node: NodeId,
    inner: &'t Interpreter,
) -> Option<(&'t LearnQuestion, &'t MacTable)> {
    let Node::Ask(question) = &tree.nodes[node as usize] else { return None };
    let TableLookup::Learn(of) = &**question else { return None };
    match &inner.loaded.blocks[of.instance as usize] {
        Some(Lfb::LearnSearch(block)) => Some((of, block.stations()?)),
        _ => None,
    }
}
