//! What is known, when a program is compiled, of the frames that come one way.
//!
//! Metadata, bytes, which values fields that were asked for can still have, and how long the frame is:
//! what is known is not asked again.

use std::cell::RefCell;
use std::collections::HashSet;
use std::rc::Rc;
use std::sync::LazyLock;

use super::join::Asked;
use super::tree::{Effect, NONE, Step, Value, Word};
use super::view::{Field, Read, View};
use crate::frames::FormatId;
use crate::lfb::At;

/// Ranges of numbers, ascending, none of which touch.
pub type Ranges = Vec<(u64, u64)>;

/// What a metadatum is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Known {
    /// The same for every frame.
    Constant(u128),
    /// It came with the frame.
    Field(Field),
    /// What the table that was asked last knew.
    Found,
}

/// A header that is there for certain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// Its format.
    pub format: FormatId,
    /// Which one of its format.
    pub instance: u8,
    /// Its first byte.
    pub at: usize,
    /// The byte behind its last.
    pub end: usize,
    /// First bit and bits of each item that is there.
    pub items: Vec<Option<(usize, usize)>>,
}

/// How far what headers enclose goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// As far as the frame.
    Frame,
    /// To the byte that a field and so much more says.
    Field(Field, usize),
}

/// How far the headers are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// This one may follow, at the end of the last one.
    Maybe(FormatId),
    /// One may follow for which nobody asked yet.
    Other,
    /// There are no more.
    Nothing,
}

/// What is known of the headers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Headers {
    /// Those that are there, the outermost first.
    pub list: Rc<Vec<Header>>,
    /// What follows.
    pub next: Next,
    /// How far what the last one encloses goes.
    pub limit: Limit,
}

/// What is known of the frames that come one way.
#[derive(Debug, Clone)]
pub struct Way {
    /// The block that they enter.
    pub instance: usize,
    /// By which input.
    pub at: At,
    /// Metadata by slot.
    pub meta: Vec<Option<Known>>,
    /// Their bytes.
    pub view: View,
    /// Their headers, as far as somebody asked.
    pub headers: Headers,
    /// The format of the first byte, where frames of the set begin; `None` where a header was taken off.
    pub start: Option<FormatId>,
    /// Rules that they matched on the way.
    pub hits: u32,
    /// Tables that were asked on the way.
    pub asked: u32,
    pub(super) link: u32,
    pub(super) effects: Vec<Effect>,
    pub(super) steps: Vec<Step>,
    /// What fields of the frame that came can still hold.
    facts: Vec<(Field, Rc<Ranges>)>,
    /// Whether a field and so much more is at most the frame's bytes.
    fitting: Vec<(Field, usize, bool)>,
    /// Bytes that the frame had at least, and at most, when it came.
    lengths: (usize, usize),
    /// What was asked of all these, of any way of the tree.
    log: Rc<RefCell<Log>>,
}

/// What was asked while a tree grew.
#[derive(Debug, Default)]
struct Log {
    all: Vec<Asked>,
    /// Since when: before that others asked.
    from: usize,
}

impl Headers {
    /// Nothing is known but with which one a frame begins.
    pub fn from(start: Option<FormatId>) -> Headers {
        let next = start.map_or(Next::Nothing, Next::Maybe);
        Headers { list: Rc::default(), next, limit: Limit::Frame }
    }

    /// The byte behind the last one.
    pub fn end(&self) -> usize {
        self.list.last().map_or(0, |header| header.end)
    }
}

impl Way {
    /// Frames that come in by a block.
    pub(super) fn new(instance: usize, slots: usize, start: Option<FormatId>) -> Way {
        Way {
            instance,
            at: At::default(),
            meta: vec![None; slots],
            view: View::new(),
            headers: Headers::from(start),
            start,
            hits: 0,
            asked: 0,
            link: NONE,
            effects: Vec::new(),
            steps: Vec::new(),
            facts: Vec::new(),
            fitting: Vec::new(),
            lengths: (0, packet::frame::FRAME_BYTES_MAX),
            log: Rc::default(),
        }
    }

    /// What a field can hold.
    pub fn ranges(&self, field: Field) -> Ranges {
        self.ask(Asked::Field(field));
        self.known(field)
    }

    /// The same for those who keep account of what is asked.
    pub(super) fn known(&self, field: Field) -> Ranges {
        let known = self.facts.iter().find(|(known, _)| *known == field);
        known.map_or_else(|| vec![(0, field.most())], |(_, ranges)| Ranges::clone(ranges))
    }

    /// Notes what a field can hold.
    pub fn learn(&mut self, field: Field, ranges: Ranges) {
        match self.facts.iter_mut().find(|(known, _)| *known == field) {
            Some((_, known)) => *known = Rc::new(ranges),
            None => self.facts.push((field, Rc::new(ranges))),
        }
    }

    /// What is read at some bits; a field of which one value is left is a constant.
    pub fn read(&self, at: usize, bits: usize) -> Option<Read> {
        match self.view.read(at, bits)? {
            Read::Field(field) => match self.ranges(field)[..] {
                [(low, high)] if low == high => Some(Read::Constant(low)),
                _ => Some(Read::Field(field)),
            },
            constant => Some(constant),
        }
    }

    /// Whether a field and so much more is at most the bytes that the frame came with, if that is known.
    pub fn fits(&self, field: Field, more: usize) -> Option<bool> {
        self.ask(Asked::Fits(field, more));
        let (ranges, (shortest, longest)) = (self.ranges(field), self.lengths());
        let most = ranges.last().map_or(0, |(_, high)| *high as usize);
        let least = ranges.first().map_or(0, |(low, _)| *low as usize);
        let surely = (most.saturating_add(more) <= shortest).then_some(true);
        let never = (least.saturating_add(more) > longest).then_some(false);
        self.told_to_fit(field, more).or(surely).or(never)
    }

    /// The same as far as it was noted.
    pub(super) fn told_to_fit(&self, field: Field, more: usize) -> Option<bool> {
        let told = self.fitting.iter().find(|(of, by, _)| (*of, *by) == (field, more));
        told.map(|(_, _, fits)| *fits)
    }

    /// Notes that.
    pub fn learn_fits(&mut self, field: Field, more: usize, fits: bool) {
        if fits {
            let least = self.ranges(field).first().map_or(0, |(low, _)| *low as usize);
            self.lengths.0 = self.lengths.0.max(least.saturating_add(more));
        }
        self.fitting.push((field, more, fits));
    }

    /// Bytes that the frame had at least, and at most, when it came.
    pub(super) fn lengths(&self) -> (usize, usize) {
        self.ask(Asked::Length);
        self.lengths
    }

    /// The same for those who keep account of what is asked.
    pub(super) fn known_lengths(&self) -> (usize, usize) {
        self.lengths
    }

    /// The same way with these.
    pub(super) fn with_lengths(self, least: usize, most: usize) -> Way {
        Way { lengths: (least, most), ..self }
    }

    /// Notes that something was asked.
    pub(super) fn ask(&self, asked: Asked) {
        let mut log = self.log.borrow_mut();
        // What was asked just now need not be said again.
        let since = log.all[log.from..].iter().rev().take(8).any(|known| *known == asked);
        if !since {
            log.all.push(asked);
        }
    }

    /// Keeps what is asked from now on apart; returns since when this was done before.
    pub(super) fn begin_asking(&self) -> usize {
        let mut log = self.log.borrow_mut();
        let now = log.all.len();
        std::mem::replace(&mut log.from, now)
    }

    /// What was asked since then, each once. It is asked by those before, too.
    pub(super) fn end_asking(&self, before: usize) -> Vec<Asked> {
        let mut log = self.log.borrow_mut();
        let mut seen = HashSet::new();
        let from = std::mem::replace(&mut log.from, before);
        let since: Vec<Asked> = log.all.drain(from..).filter(|it| seen.insert(*it)).collect();
        log.all.extend(&since);
        since
    }

    /// Bytes that the frame has at least now.
    pub fn least(&self) -> usize {
        self.lengths().0.saturating_add_signed(self.view.grown as isize)
    }

    /// Bytes that the frame has at most now.
    pub fn most(&self) -> usize {
        self.lengths().1.saturating_add_signed(self.view.grown as isize)
    }

    /// Takes the first bytes off; with which format the others begin whoever has the frame finds out.
    pub fn strip(&mut self, count: usize) -> bool {
        let done = self.view.remove(0, count);
        if done {
            self.steps.push(Step::Strip(count as u16));
            self.start = None;
            self.headers = Headers::from(None);
        }
        done
    }

    /// Takes one off the time to live of the IPv4 header that the frame begins with. False, and nothing is
    /// done, if that is not as it came.
    pub fn lessen(&mut self) -> bool {
        let done = self.view.lessen(0);
        if done {
            self.steps.push(Step::Lessen);
        }
        done
    }

    /// Notes that all was done to the frame that its block does: its bytes are as the view says.
    pub fn edited(&mut self) {
        self.steps.push(Step::Edit(self.instance as u32));
        self.headers = Headers::from(self.start);
    }

    /// Sets a metadatum.
    pub fn set(&mut self, slot: Option<usize>, value: Known) {
        if let Some(meta) = slot.and_then(|slot| self.meta.get_mut(slot)) {
            *meta = Some(value);
        }
    }

    /// How a frame that goes on as a frame becomes what it is here.
    pub(super) fn all_steps(&self) -> Vec<Step> {
        let metas = self.meta.iter().enumerate().filter_map(|(slot, known)| {
            let value = match (*known)? {
                Known::Constant(value) => Value::Constant(value),
                Known::Field(field) => Value::Field(Word::of(field)),
                Known::Found => Value::Found,
            };
            Some(Step::Meta(slot as u16, value))
        });
        // Fields are read before the bytes change.
        metas.chain(self.steps.iter().copied()).collect()
    }
}

/// Types that stand in front of a tag.
pub fn tags() -> Ranges {
    static TAGS: LazyLock<Ranges> = LazyLock::new(|| {
        let types = (0..=u16::MAX).filter(|of| packet::header::vlan::is_tag(*of));
        types.map(|tag| (tag.into(), tag.into())).collect()
    });
    TAGS.clone()
}

/// What both hold.
pub fn both(a: &[(u64, u64)], b: &[(u64, u64)]) -> Ranges {
    let mut all = Ranges::new();
    for &(low, high) in a {
        let parts = b.iter().map(|(from, to)| (low.max(*from), high.min(*to)));
        all.extend(parts.filter(|(low, high)| low <= high));
    }
    all.sort_unstable();
    all
}

/// What some ranges do not hold of the numbers up to `most`.
pub fn others(ranges: &[(u64, u64)], most: u64) -> Ranges {
    let mut sorted: Ranges = ranges.to_vec();
    sorted.sort_unstable();
    let (mut left, mut next) = (Ranges::new(), Some(0));
    for (low, high) in sorted {
        let Some(from) = next else { break };
        if low > from {
            left.push((from, low - 1));
        }
        if high >= from {
            next = high.checked_add(1);
        }
    }
    left.extend(next.filter(|from| *from <= most).map(|from| (from, most)));
    left
}
