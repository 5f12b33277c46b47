//! Knowledge of the compiler about the frames of one path: metadata, bytes, possible values of
//! tested fields, length. A known fact is not tested again.

use std::cell::RefCell;
use std::collections::HashSet;
use std::rc::Rc;
use std::sync::LazyLock;

use super::merge::Asked;
use super::symbolic_bytes::{Field, Read, View};
use super::tree::{Effect, NONE, Step, Value, Word};
use crate::frames::FormatId;
use crate::lfb::At;

/// Ranges of numbers, ascending, that do not touch.
pub type Ranges = Vec<(u64, u64)>;

/// Value of a metadata item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Known {
    /// The same for every frame.
    Constant(u128),
    /// A field of the received frame.
    Field(Field),
    /// Result of the last table lookup.
    Found,
}

/// A header that is certainly present.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// Format.
    pub format: FormatId,
    /// Occurrence number within the format.
    pub instance: u8,
    /// Offset of its first byte.
    pub at: usize,
    /// Offset after its last byte.
    pub end: usize,
    /// First bit and number of bits of each item that is present.
    pub items: Vec<Option<(usize, usize)>>,
}

/// Limit of the data that headers enclose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// End of the frame.
    Frame,
    /// The byte given by a field plus a constant.
    Field(Field, usize),
}

/// Knowledge about the next header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// This format may follow the last header.
    Maybe(FormatId),
    /// A header of a format that is not requested may follow.
    Other,
    /// No further header follows.
    Nothing,
}

/// Knowledge about the headers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Headers {
    /// Headers that are present, outermost first.
    pub list: Rc<Vec<Header>>,
    /// The next header.
    pub next: Next,
    /// Limit of the payload of the last header.
    pub limit: Limit,
}

/// Knowledge about the frames of one path.
#[derive(Debug, Clone)]
pub struct PathState {
    /// Index of the block that they enter.
    pub instance: usize,
    /// Input of the block.
    pub at: At,
    /// Metadata by slot.
    pub meta: Vec<Option<Known>>,
    /// Their bytes.
    pub view: View,
    /// Their headers, as far as requested.
    pub headers: Headers,
    /// Format of the first header, at the start format of the frame set; `None` after a header was
    /// removed.
    pub start: Option<FormatId>,
    /// Number of rules matched on the path.
    pub hits: u32,
    /// Number of table lookups on the path.
    pub asked: u32,
    pub(super) link: u32,
    pub(super) effects: Vec<Effect>,
    pub(super) steps: Vec<Step>,
    /// Possible values of fields of the received frame.
    facts: Vec<(Field, Rc<Ranges>)>,
    /// Whether a field plus a constant is at most the frame's length.
    fitting: Vec<(Field, usize, bool)>,
    /// Minimum and maximum length of the received frame.
    lengths: (usize, usize),
    /// Log of requested facts, shared by all paths of the tree.
    log: Rc<RefCell<Log>>,
}

/// Facts requested during compilation.
#[derive(Debug, Default)]
struct Log {
    all: Vec<Asked>,
    /// Start of the current section of the log.
    from: usize,
}

impl Headers {
    /// Creates headers with only the start format known.
    pub fn from(start: Option<FormatId>) -> Headers {
        let next = start.map_or(Next::Nothing, Next::Maybe);
        Headers { list: Rc::default(), next, limit: Limit::Frame }
    }

    /// Returns the offset after the last header.
    pub fn end(&self) -> usize {
        self.list.last().map_or(0, |header| header.end)
    }
}

impl PathState {
    /// Creates the path of frames that enter at a block.
    pub(super) fn new(instance: usize, slots: usize, start: Option<FormatId>) -> PathState {
        PathState {
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

    /// Returns the possible values of a field, and logs the request.
    pub fn ranges(&self, field: Field) -> Ranges {
        self.ask(Asked::Field(field));
        self.known(field)
    }

    /// Returns the possible values of a field, without logging.
    pub(super) fn known(&self, field: Field) -> Ranges {
        let known = self.facts.iter().find(|(known, _)| *known == field);
        known.map_or_else(|| vec![(0, field.most())], |(_, ranges)| Ranges::clone(ranges))
    }

    /// Records the possible values of a field.
    pub fn learn(&mut self, field: Field, ranges: Ranges) {
        match self.facts.iter_mut().find(|(known, _)| *known == field) {
            Some((_, known)) => *known = Rc::new(ranges),
            None => self.facts.push((field, Rc::new(ranges))),
        }
    }

    /// Reads bits. A field with only one possible value is a constant.
    pub fn read(&self, at: usize, bits: usize) -> Option<Read> {
        match self.view.read(at, bits)? {
            Read::Field(field) => match self.ranges(field)[..] {
                [(low, high)] if low == high => Some(Read::Constant(low)),
                _ => Some(Read::Field(field)),
            },
            constant => Some(constant),
        }
    }

    /// Returns whether a field plus `more` is at most the length of the received frame, if known.
    pub fn fits(&self, field: Field, more: usize) -> Option<bool> {
        self.ask(Asked::Fits(field, more));
        let (ranges, (shortest, longest)) = (self.ranges(field), self.lengths());
        let most = ranges.last().map_or(0, |(_, high)| *high as usize);
        let least = ranges.first().map_or(0, |(low, _)| *low as usize);
        let surely = (most.saturating_add(more) <= shortest).then_some(true);
        let never = (least.saturating_add(more) > longest).then_some(false);
        self.told_to_fit(field, more).or(surely).or(never)
    }

    /// Returns this fact only as recorded, without logging.
    pub(super) fn told_to_fit(&self, field: Field, more: usize) -> Option<bool> {
        let told = self.fitting.iter().find(|(of, by, _)| (*of, *by) == (field, more));
        told.map(|(_, _, fits)| *fits)
    }

    /// Records this fact.
    pub fn learn_fits(&mut self, field: Field, more: usize, fits: bool) {
        if fits {
            let least = self.ranges(field).first().map_or(0, |(low, _)| *low as usize);
            self.lengths.0 = self.lengths.0.max(least.saturating_add(more));
        }
        self.fitting.push((field, more, fits));
    }

    /// Returns the minimum and maximum length of the received frame, and logs the request.
    pub(super) fn lengths(&self) -> (usize, usize) {
        self.ask(Asked::Length);
        self.lengths
    }

    /// Returns these lengths without logging.
    pub(super) fn known_lengths(&self) -> (usize, usize) {
        self.lengths
    }

    /// Returns the path with other lengths.
    pub(super) fn with_lengths(self, least: usize, most: usize) -> PathState {
        PathState { lengths: (least, most), ..self }
    }

    /// Logs the request of a fact.
    pub(super) fn ask(&self, asked: Asked) {
        let mut log = self.log.borrow_mut();
        // A recent duplicate need not be logged.
        let since = log.all[log.from..].iter().rev().take(8).any(|known| *known == asked);
        if !since {
            log.all.push(asked);
        }
    }

    /// Starts a new section of the log. Returns the start of the previous section.
    pub(super) fn begin_asking(&self) -> usize {
        let mut log = self.log.borrow_mut();
        let now = log.all.len();
        std::mem::replace(&mut log.from, now)
    }

    /// Ends the section. Returns its requests without duplicates, which also belong to the previous
    /// section.
    pub(super) fn end_asking(&self, before: usize) -> Vec<Asked> {
        let mut log = self.log.borrow_mut();
        let mut seen = HashSet::new();
        let from = std::mem::replace(&mut log.from, before);
        let since: Vec<Asked> = log.all.drain(from..).filter(|it| seen.insert(*it)).collect();
        log.all.extend(&since);
        since
    }

    /// Returns the current minimum length of the frame.
    pub fn least(&self) -> usize {
        self.lengths().0.saturating_add_signed(self.view.grown as isize)
    }

    /// Returns the current maximum length of the frame.
    pub fn most(&self) -> usize {
        self.lengths().1.saturating_add_signed(self.view.grown as isize)
    }

    /// Removes the first bytes. The format of the remaining bytes is unknown to the compiler.
    pub fn strip(&mut self, count: usize) -> bool {
        let done = self.view.remove(0, count);
        if done {
            self.steps.push(Step::Strip(count as u16));
            self.start = None;
            self.headers = Headers::from(None);
        }
        done
    }

    /// Decrements the TTL of the IPv4 header at the start. Returns false without a change if the
    /// header is not as received.
    pub fn lessen(&mut self) -> bool {
        let done = self.view.lessen(0);
        if done {
            self.steps.push(Step::Lessen);
        }
        done
    }

    /// Records that the edit of the current block was applied. The view has the resulting bytes.
    pub fn edited(&mut self) {
        self.steps.push(Step::Edit(self.instance as u32));
        self.headers = Headers::from(self.start);
    }

    /// Sets a metadata item.
    pub fn set(&mut self, slot: Option<usize>, value: Known) {
        if let Some(meta) = slot.and_then(|slot| self.meta.get_mut(slot)) {
            *meta = Some(value);
        }
    }

    /// Returns the steps that bring a frame into its state here, for the slow path.
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

/// Returns the EtherTypes of VLAN tags.
pub fn tags() -> Ranges {
    static TAGS: LazyLock<Ranges> = LazyLock::new(|| {
        let types = (0..=u16::MAX).filter(|of| packet::header::vlan::is_tag(*of));
        types.map(|tag| (tag.into(), tag.into())).collect()
    });
    TAGS.clone()
}

/// Returns the intersection.
pub fn both(a: &[(u64, u64)], b: &[(u64, u64)]) -> Ranges {
    let mut all = Ranges::new();
    for &(low, high) in a {
        let parts = b.iter().map(|(from, to)| (low.max(*from), high.min(*to)));
        all.extend(parts.filter(|(low, high)| low <= high));
    }
    all.sort_unstable();
    all
}

/// Returns the complement of ranges, up to `most`.
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
