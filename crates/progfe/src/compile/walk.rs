//! Batches of frames on their way through the blocks.
//!
//! Each frame has a name (a number), and names are ordered as the interpreter would process the
//! frames. A copy is processed before the frame that it was made from. The original frame then gets
//! a new name after those of its copies. Its earlier events retain their position under the old
//! name.

use dataplane::counter::Traffic;
use dataplane::forwarder::{Outputs, SIGHTS_MAX};
use packet::frame::Frame;
use packet::time::Nanos;

use super::plan::Plan;
use crate::compiled_program::Loaded;
use crate::interpret::Interpreter;
use crate::lfb::{At, DropReason, Env, ExceptionQueue, Lfb, Packet, Row, Verdict};

/// Maximum number of events from one batch of frames.
const EVENTS_QUEUED_MAX: usize = 1 << 20;

/// A batch of frames in the graph.
#[derive(Debug)]
pub struct Walk {
    /// Packets, including unused ones.
    packets: Vec<Packet>,
    /// Number of packets in use.
    used: usize,
    /// Name of each packet.
    names: Vec<u32>,
    /// Last link of each packet.
    links: Vec<u32>,
    /// Rank of each name.
    ranks: Vec<u32>,
    /// Names in order.
    order: Vec<u32>,
    /// Buffer for the next order.
    reordered: Vec<u32>,
    /// Waiting packets by position of their block in the plan.
    waiting: Vec<Waiting>,
    /// Bit mask of blocks for which packets wait.
    due: Vec<u64>,
    members: Vec<u32>,
    verdicts: [Verdict; SIGHTS_MAX],
    /// Copies from a block: member, output, packet.
    copies: Vec<(u32, (u32, u32), Packet)>,
    told: ExceptionQueue,
    /// Names of the redirected frames.
    told_by: Vec<u32>,
    /// Names of the frames that caused events.
    happened_by: Vec<u32>,
}

/// Packets that wait for a block.
#[derive(Debug, Clone, Default)]
struct Waiting {
    members: Vec<u32>,
    /// Whether the packets are out of name order.
    is_unordered: bool,
}

/// How frames enter a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Entry {
    Port,
    Inputs,
}

impl Default for Walk {
    fn default() -> Walk {
        Walk {
            packets: Vec::new(),
            used: 0,
            names: Vec::new(),
            links: Vec::new(),
            ranks: Vec::new(),
            order: Vec::new(),
            reordered: Vec::new(),
            waiting: Vec::new(),
            due: Vec::new(),
            members: Vec::new(),
            verdicts: [Verdict::Held; SIGHTS_MAX],
            copies: Vec::new(),
            told: ExceptionQueue { happenings_max: EVENTS_QUEUED_MAX, ..ExceptionQueue::default() },
            told_by: Vec::new(),
            happened_by: Vec::new(),
        }
    }
}

impl Walk {
    /// Sends frames that a port received, at most [`SIGHTS_MAX`], through the graph, starting at
    /// the port's block.
    pub fn receive(
        &mut self,
        (inner, plan): (&mut Interpreter, &Plan),
        entry: usize,
        frames: &mut [Frame],
        now: Nanos,
        out: &mut Outputs,
    ) {
        self.begin(inner, plan, frames, now);
        let mut members = std::mem::take(&mut self.members);
        members.clear();
        members.extend(0..frames.len() as u32);
        self.visit((inner, plan), (entry, Entry::Port), &members, now, out);
        self.members = members;
        self.run((inner, plan), now, out);
    }

    /// Sends frames that a port received, at most [`SIGHTS_MAX`], on from the point where they left
    /// the tree. `enter` brings each packet into its state there and returns its link; none for
    /// dropped frames.
    pub fn go_on(
        &mut self,
        (inner, plan): (&mut Interpreter, &Plan),
        frames: &mut [Frame],
        mut enter: impl FnMut(usize, &mut Packet, &Loaded) -> Option<u32>,
        now: Nanos,
        out: &mut Outputs,
    ) {
        self.begin(inner, plan, frames, now);
        for place in 0..frames.len() {
            if let Some(link) = enter(place, &mut self.packets[place], &inner.loaded) {
                self.wait(plan, link, place as u32);
            }
        }
        self.run((inner, plan), now, out);
    }

    /// Reports the events of a batch that does not need the slow path.
    pub fn tell_plain(&mut self, inner: &mut Interpreter, frames: usize) {
        if !self.happened_by.is_empty() {
            self.ranks.clear();
            self.ranks.extend(0..frames as u32);
            self.tell(inner);
        }
    }

    /// Returns the queues for events of tables, and the list of frames that caused them.
    pub fn told(&mut self) -> (&mut ExceptionQueue, &mut Vec<u32>) {
        (&mut self.told, &mut self.happened_by)
    }

    /// Runs blocks until no packets wait.
    fn run(&mut self, (inner, plan): (&mut Interpreter, &Plan), now: Nanos, out: &mut Outputs) {
        let mut members = std::mem::take(&mut self.members);
        for word in 0..self.due.len() {
            // Packets move only to blocks later in the order.
            while self.due[word] != 0 {
                let place = word * 64 + self.due[word].trailing_zeros() as usize;
                self.due[word] &= self.due[word] - 1;
                let waiting = &mut self.waiting[place];
                std::mem::swap(&mut members, &mut waiting.members);
                waiting.members.clear();
                if std::mem::take(&mut waiting.is_unordered) {
                    let (names, ranks) = (&self.names, &self.ranks);
                    members.sort_unstable_by_key(|it| ranks[names[*it as usize] as usize]);
                }
                let block = (plan.order[place] as usize, Entry::Inputs);
                for row in members.chunks(SIGHTS_MAX) {
                    self.visit((inner, plan), block, row, now, out);
                }
            }
        }
        self.members = members;
        self.tell(inner);
    }

    fn begin(&mut self, inner: &mut Interpreter, plan: &Plan, frames: &mut [Frame], now: Nanos) {
        let Loaded { program, slots, generation, .. } = &inner.loaded;
        self.used = frames.len();
        while self.packets.len() < self.used {
            self.packets.push(Packet::new(slots));
        }
        for (packet, frame) in self.packets.iter_mut().zip(frames.iter_mut()) {
            let came = frame.stamp.map_or(now, |stamp| stamp.at);
            packet.begin(frame, program.frames.start, slots.ids().len(), came);
            packet.generation = *generation;
        }
        for list in [&mut self.names, &mut self.ranks, &mut self.order] {
            list.clear();
            list.extend(0..frames.len() as u32);
        }
        self.links.clear();
        self.links.resize(frames.len(), 0);
        if self.waiting.len() < plan.order.len() {
            self.waiting.resize(plan.order.len(), Waiting::default());
            self.due.resize(plan.order.len().div_ceil(64), 0);
        }
        inner.account.received += frames.len() as u64;
    }

    /// Processes at most [`SIGHTS_MAX`] packets in one block.
    fn visit(
        &mut self,
        (inner, plan): (&mut Interpreter, &Plan),
        (instance, entry): (usize, Entry),
        members: &[u32],
        now: Nanos,
        outputs: &mut Outputs,
    ) {
        let Walk { packets, names, links, verdicts, copies, told, told_by, happened_by, .. } = self;
        let Interpreter { loaded, made, spare, account, .. } = inner;
        let Loaded { program, slots, blocks, watched, .. } = loaded;
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
        verdicts[..members.len()].fill(Verdict::Dropped(DropReason::NoPort));
        if let Some(block) = &mut blocks[instance] {
            let before = happened_by.len();
            let mut row = Row { packets, members, verdicts, happened_by };
            let done = entry == Entry::Inputs && block.process_row(&mut row, &mut env);
            happened_by[before..].iter_mut().for_each(|by| *by = names[*by as usize]);
            debug_assert_eq!(
                happened_by.len(),
                env.told.happenings.len(),
                "each event has an instance"
            );
            for (place, &member) in members.iter().enumerate().filter(|_| !done) {
                let packet = &mut packets[member as usize];
                verdicts[place] = match (&mut *block, entry) {
                    (Lfb::Phy(phy), Entry::Port) => phy.receive(packet, &mut env),
                    (block, Entry::Port) => block.process(At::default(), packet, &mut env),
                    (block, Entry::Inputs) => {
                        let (_, at) = plan.targets[links[member as usize] as usize];
                        block.process(at, packet, &mut env)
                    }
                };
                if !env.made.is_empty() {
                    let copy = |(output, index, copy)| (place as u32, (output, index), copy);
                    copies.extend(env.made.drain(..).map(copy));
                }
                let name = names[member as usize];
                if told_by.len() != env.told.frames.len() {
                    told_by.resize(env.told.frames.len(), name);
                }
                if happened_by.len() != env.told.happenings.len() {
                    happened_by.resize(env.told.happenings.len(), name);
                }
            }
            account.told += env.copies_told;
            account.copies += env.copies_told + copies.len() as u64;
        }
        if !self.copies.is_empty() {
            self.lead_copies(inner, plan, instance, members);
        }
        self.lead(inner, plan, instance, members);
    }

    /// Assigns names to copies and new names to their originals, and moves the copies to their next
    /// blocks.
    fn lead_copies(
        &mut self,
        inner: &mut Interpreter,
        plan: &Plan,
        instance: usize,
        members: &[u32],
    ) {
        let mut copies = std::mem::take(&mut self.copies);
        let first = self.used;
        // Members are in name order, and copies in member order.
        let mut news = copies.iter().map(|(place, ..)| members[*place as usize]).peekable();
        let mut name = self.order.len() as u32;
        self.reordered.clear();
        let mut copy = first;
        for &old in &self.order {
            self.reordered.push(old);
            let Some(member) = news.next_if(|it| self.names[*it as usize] == old) else {
                continue;
            };
            let mut more = 1;
            while news.next_if_eq(&member).is_some() {
                more += 1;
            }
            for _ in 0..more {
                self.names.push(name);
                self.reordered.push(name);
                (name, copy) = (name + 1, copy + 1);
            }
            self.names[member as usize] = name;
            self.reordered.push(name);
            name += 1;
        }
        debug_assert_eq!(copy - first, copies.len(), "every copy has a name");
        std::mem::swap(&mut self.order, &mut self.reordered);
        self.ranks.resize(self.order.len(), 0);
        for (rank, name) in self.order.iter().enumerate() {
            self.ranks[*name as usize] = rank as u32;
        }
        for (_, (output, index), packet) in copies.drain(..) {
            let place = self.used;
            self.used += 1;
            self.links.push(0);
            if place < self.packets.len() {
                inner.spare.push(std::mem::replace(&mut self.packets[place], packet));
            } else {
                self.packets.push(packet);
            }
            match inner.loaded.graph.link(instance, output, index) {
                None => inner.drop(instance, DropReason::Unlinked, output),
                Some(link) => {
                    let bytes = self.packets[place].bytes().len();
                    inner.loaded.links[link as usize].add(bytes);
                    self.wait(plan, link, place as u32);
                }
            }
        }
        self.copies = copies;
    }

    /// Moves each member according to its verdict.
    fn lead(&mut self, inner: &mut Interpreter, plan: &Plan, instance: usize, members: &[u32]) {
        let (mut left, mut told) = (0, 0);
        // Consecutive frames with the same output are looked up and counted together.
        let mut way: Option<(u32, u32, u32)> = None;
        let mut sum = Traffic::default();
        for (place, &member) in members.iter().enumerate() {
            match self.verdicts[place] {
                Verdict::Out(output, index) => {
                    let link = match way {
                        Some((same, alike, link)) if (same, alike) == (output, index) => link,
                        _ => {
                            let Some(link) = inner.loaded.graph.link(instance, output, index)
                            else {
                                inner.drop(instance, DropReason::Unlinked, output);
                                continue;
                            };
                            if let Some((.., before)) = way.replace((output, index, link)) {
                                add(&mut inner.loaded.links[before as usize], &mut sum);
                            }
                            link
                        }
                    };
                    sum.add(self.packets[member as usize].bytes().len());
                    self.wait(plan, link, member);
                }
                Verdict::Left(_) => left += 1,
                Verdict::Told => told += 1,
                Verdict::Held => {}
                Verdict::Dropped(reason) => inner.drop(instance, reason, 0),
            }
        }
        if let Some((.., link)) = way {
            add(&mut inner.loaded.links[link as usize], &mut sum);
        }
        inner.account.left += left;
        inner.account.told += told;
    }

    /// Queues a packet for the target block of a link.
    #[inline]
    fn wait(&mut self, plan: &Plan, link: u32, member: u32) {
        self.links[member as usize] = link;
        let place = plan.targets[link as usize].0 as usize;
        let waiting = &mut self.waiting[place];
        if let Some(&last) = waiting.members.last() {
            // Without copies, positions, names and ranks are equal.
            waiting.is_unordered |= if self.order.len() == self.used {
                member < last
            } else {
                let rank = |member: u32| self.ranks[self.names[member as usize] as usize];
                rank(member) < rank(last)
            };
        }
        waiting.members.push(member);
        self.due[place / 64] |= 1 << (place % 64);
    }

    /// Delivers redirected frames and events in name order.
    fn tell(&mut self, inner: &mut Interpreter) {
        if !self.told_by.is_empty() {
            let frames = self.told.frames.drain(..);
            in_order(&self.ranks, &self.told_by, frames, |it| inner.told.frames.push_back(it));
            self.told_by.clear();
        }
        if !self.happened_by.is_empty() {
            let happenings = self.told.happenings.drain(..);
            in_order(&self.ranks, &self.happened_by, happenings, |it| inner.told.happened(it));
            self.happened_by.clear();
        }
    }
}

/// Adds a partial sum to a counter and resets the sum.
fn add(traffic: &mut Traffic, sum: &mut Traffic) {
    traffic.frames += sum.frames;
    traffic.bytes += sum.bytes;
    *sum = Traffic::default();
}

/// Passes items on in the order of the names that caused them.
fn in_order<T>(ranks: &[u32], names: &[u32], all: impl Iterator<Item = T>, give: impl FnMut(T)) {
    let rank = |name: &u32| ranks[*name as usize];
    let mut all: Vec<(u32, T)> = names.iter().map(rank).zip(all).collect();
    all.sort_by_key(|(rank, _)| *rank);
    all.into_iter().map(|(_, it)| it).for_each(give);
}
