//! Grouping of a batch's frames by stream, in their order within a stream.
//!
//! Streams that share a port have mixed frames, and each stream has its own counters and
//! histograms. Grouping fetches these once for all of a batch's frames.

/// Marks the end of a list.
const END: u16 = u16::MAX;

/// Order of a batch's frames, by stream.
#[derive(Debug, Default)]
pub struct Grouping {
    order: Vec<u16>,
    /// First frame of each stream that is not in the order yet, or [`END`]. Always [`END`] between
    /// calls.
    first: Vec<u16>,
    /// For each frame, the next one of its stream.
    next: Vec<u16>,
    /// Streams with frames in the batch.
    met: Vec<u16>,
}

impl Grouping {
    /// Orders fewer than 65,535 frames by stream.
    ///
    /// `frames` holds each frame's stream index below `streams`, or none to leave the frame out.
    #[inline]
    pub fn group(
        &mut self,
        streams: usize,
        frames: impl DoubleEndedIterator<Item = Option<u16>> + ExactSizeIterator,
    ) {
        self.order.clear();
        if streams <= 1 {
            let known = |(at, place): (usize, Option<u16>)| place.map(|_| at as u16);
            self.order.extend(frames.enumerate().filter_map(known));
            return;
        }
        self.first.resize(streams, END);
        self.next.resize(frames.len(), END);
        for (at, place) in frames.enumerate().rev() {
            let Some(place) = place else { continue };
            let first = &mut self.first[usize::from(place)];
            if *first == END {
                self.met.push(place);
            }
            self.next[at] = std::mem::replace(first, at as u16);
        }
        while let Some(place) = self.met.pop() {
            let mut at = std::mem::replace(&mut self.first[usize::from(place)], END);
            while at != END {
                self.order.push(at);
                at = self.next[usize::from(at)];
            }
        }
    }

    /// Returns the indices of the frames, by stream.
    #[inline]
    pub fn order(&self) -> &[u16] {
        &self.order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_grouped_by_stream_in_their_order() {
        let mut grouping = Grouping::default();
        for _ in 0..2 {
            let batch = [Some(2), Some(0), None, Some(2), Some(1), Some(0)];
            grouping.group(3, batch.into_iter());
            assert_eq!(grouping.order(), [0, 3, 4, 1, 5]);
            grouping.group(3, [None, Some(1)].into_iter());
            assert_eq!(grouping.order(), [1]);
            grouping.group(1, [Some(0), None, Some(0)].into_iter());
            assert_eq!(grouping.order(), [0, 2]);
            grouping.group(0, [None].into_iter());
            assert!(grouping.order().is_empty());
        }
    }
}
