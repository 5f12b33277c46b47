//! Frames that a bridge processes together: their addresses, and the state of their lookups.
//!
//! Invariant: a row has frames that one port received, in the order of their arrival.

use packet::header::{array_at, ethernet};

use super::{Destination, Learning, vid_of};
use crate::counter::DropReason;
use crate::forwarder::SIGHTS_MAX;
use crate::mac_table::{Hint, MacKey, MacTable};

/// Source and destination of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) source: MacKey,
    pub(super) destination: MacKey,
}

/// A row of frames.
#[derive(Debug)]
pub(super) struct BatchAddresses {
    count: usize,
    pairs: [Result<Pair, DropReason>; SIGHTS_MAX],
    hints: [[Hint; 2]; SIGHTS_MAX],
    to: [Destination; SIGHTS_MAX],
}

impl Default for BatchAddresses {
    fn default() -> BatchAddresses {
        BatchAddresses {
            count: 0,
            pairs: [Err(DropReason::TooShort); SIGHTS_MAX],
            hints: [[Hint::NONE; 2]; SIGHTS_MAX],
            to: [Destination::Flood; SIGHTS_MAX],
        }
    }
}

impl Pair {
    /// Returns source and destination of a frame that begins with these bytes, or why it is not
    /// bridged.
    #[inline]
    pub(super) fn of(bytes: &[u8], learning: Learning) -> Result<Pair, DropReason> {
        if bytes.len() < ethernet::HEADER_BYTES {
            return Err(DropReason::TooShort);
        }
        let vid = vid_of(bytes, learning);
        let source = array_at(bytes, 6);
        if ethernet::is_group(&source) || source == [0; 6] {
            return Err(DropReason::BadSource);
        }
        let key = |mac| MacKey::new(mac, vid);
        Ok(Pair { source: key(source), destination: key(array_at(bytes, 0)) })
    }

    /// Executes the first lookup step for source and destination.
    #[inline]
    pub(super) fn hints(&self, table: &MacTable) -> [Hint; 2] {
        [table.hint(self.source), table.hint(self.destination)]
    }
}

impl BatchAddresses {
    /// Adds frames that begin with these bytes, and prefetches the memory that their lookups read
    /// first.
    #[inline]
    pub(super) fn see<'a>(
        &mut self,
        heads: impl ExactSizeIterator<Item = &'a [u8]>,
        learning: Learning,
        table: &MacTable,
    ) {
        self.count = heads.len();
        let mut last: Option<(Pair, [Hint; 2])> = None;
        for (place, head) in heads.enumerate() {
            let pair = Pair::of(head, learning);
            self.pairs[place] = pair;
            let Ok(pair) = pair else { continue };
            // Runs of frames from one station, or for one station, are common.
            let hints = match last {
                Some((other, hints)) if other == pair => hints,
                Some((other, [source, _])) if other.source == pair.source => {
                    [source, table.hint(pair.destination)]
                }
                Some((other, [_, destination])) if other.destination == pair.destination => {
                    [table.hint(pair.source), destination]
                }
                _ => pair.hints(table),
            };
            self.hints[place] = hints;
            last = Some((pair, hints));
        }
    }

    /// Prefetches the memory that lookups read next.
    #[inline]
    pub(super) fn guess(&mut self, table: &MacTable) {
        for (pair, hints) in self.pairs.iter().zip(&mut self.hints).take(self.count) {
            if pair.is_ok() {
                hints.iter_mut().for_each(|hint| table.guess(hint));
            }
        }
    }

    /// Returns the number of frames.
    #[inline]
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Returns source and destination of a frame, or why it is not bridged.
    #[inline]
    pub(super) fn pair(&self, place: usize) -> Result<Pair, DropReason> {
        self.pairs[place]
    }

    /// Returns the lookup state of a frame's source and destination.
    #[inline]
    pub(super) fn hints(&self, place: usize) -> [Hint; 2] {
        self.hints[place]
    }

    /// Returns a frame's destination.
    #[inline]
    pub(super) fn to(&self, place: usize) -> Destination {
        self.to[place]
    }

    /// Sets a frame's destination.
    #[inline]
    pub(super) fn set(&mut self, place: usize, to: Destination) {
        self.to[place] = to;
    }
}
