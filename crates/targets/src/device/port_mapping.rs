//! Control channel to a switch whose data ports have other numbers than 1, 2, 3; it translates port
//! numbers.
//!
//! Experiments and modules number their ports 1, 2, 3 in the order of the cables. The channel swaps
//! numbers in the bytes of messages ([`openflow::renumber`]), so that senders of prepared bytes
//! need not know the switch's numbers. Messages keep their length, so timestamps from the wire stay
//! valid. Switch ports that use such a number without a cable get the numbers that became free.
//!
//! Invariants:
//! - The translation is one-to-one, so that state read from a switch can be restored over the same
//!   channel.
//! - Bytes that are not messages pass unchanged.
//! - At most one message and the data of one read are buffered.

use std::os::fd::RawFd;
use std::sync::Arc;

use channel::{CaptureAnomalies, Direction, UnknownTime};
use channel::{Channel, ChannelError, Progress, Source};
use openflow::header::{HEADER_BYTES, Header};
use openflow::renumber::renumber;
use packet::time::Stamp;

/// Bytes translated in one piece; a message may be longer.
const PIECE_BYTES: usize = 64 << 10;

/// Translation of port numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PortMap {
    /// The switch's numbers, and their numbers here.
    pairs: Vec<(u32, u32)>,
}

impl PortMap {
    /// Returns the translation for these ports of a switch; `None` if they already are 1, 2, 3 in
    /// this order.
    pub fn of(ports: &[u32]) -> Option<Arc<PortMap>> {
        let here = |place: usize| place as u32 + 1;
        let named = ports.iter().enumerate().map(|(place, number)| (*number, here(place)));
        let mut pairs: Vec<(u32, u32)> = named.collect();
        // Other ports that use one of our numbers get one that became free.
        let taken = (1..=here(ports.len()) - 1).filter(|number| !ports.contains(number));
        let free = ports.iter().copied().filter(|number| *number as usize > ports.len());
        pairs.extend(taken.zip(free).collect::<Vec<_>>());
        pairs.retain(|(there, here)| there != here);
        (!pairs.is_empty()).then(|| Arc::new(PortMap { pairs }))
    }

    /// Returns the number here of a port of the switch.
    pub fn here(&self, there: u32) -> u32 {
        self.pairs.iter().find(|pair| pair.0 == there).map_or(there, |pair| pair.1)
    }

    /// Returns the switch's number of a port, from its number here.
    pub fn there(&self, here: u32) -> u32 {
        self.pairs.iter().find(|pair| pair.1 == here).map_or(here, |pair| pair.0)
    }

    /// Wraps a channel with the translation.
    pub fn around(self: &Arc<Self>, channel: Box<dyn Channel>) -> Box<dyn Channel> {
        Box::new(TranslatedChannel {
            channel,
            numbering: Arc::clone(self),
            leaving: OutgoingBytes::default(),
            coming: IncomingBytes::default(),
        })
    }
}

/// A channel with translated port numbers.
struct TranslatedChannel {
    channel: Box<dyn Channel>,
    numbering: Arc<PortMap>,
    leaving: OutgoingBytes,
    coming: IncomingBytes,
}

/// Bytes on their way to the channel.
#[derive(Default)]
struct OutgoingBytes {
    /// Messages with the switch's numbers that the channel has not fully taken yet. The caller
    /// still holds their bytes at the front of its next write.
    ready: Vec<u8>,
    /// Bytes that do not form a message, and pass unchanged.
    raw: usize,
    /// Whether message boundaries are lost.
    is_lost: bool,
}

/// Bytes received from the channel.
#[derive(Default)]
struct IncomingBytes {
    bytes: Vec<u8>,
    /// End of the delivered bytes, and end of the deliverable bytes.
    taken: usize,
    ready: usize,
    is_lost: bool,
    /// How the channel ended; reported after all bytes were delivered.
    ended: Option<ChannelError>,
}

/// Returns the length of the first message; `None` if it is not known yet, an error if the bytes
/// are not a message.
fn length(bytes: &[u8]) -> Result<Option<usize>, ()> {
    if bytes.len() < HEADER_BYTES {
        return Ok(None);
    }
    Header::parse(bytes).map(|header| Some(usize::from(header.length))).map_err(drop)
}

impl OutgoingBytes {
    /// Translates more of the bytes, unless some are ready.
    fn prepare(&mut self, bytes: &[u8], numbering: &PortMap) {
        if !self.ready.is_empty() {
            return;
        }
        let raw = self.raw.min(bytes.len());
        self.raw -= raw;
        let mut at = raw;
        while at < bytes.len().min(PIECE_BYTES) && !self.is_lost {
            match length(&bytes[at..]) {
                Ok(Some(length)) if at + length <= bytes.len() => at += length,
                // If bytes precede it, the rest follows with the next piece.
                Ok(_) if at > 0 => break,
                // A partial message passes unchanged, and so does the rest of it.
                Ok(length) => {
                    self.raw = length.map_or(0, |length| length - bytes.len());
                    self.is_lost = length.is_none();
                    return self.ready.extend_from_slice(bytes);
                }
                Err(()) => self.is_lost = true,
            }
        }
        self.ready.extend_from_slice(&bytes[..at]);
        exchange(&mut self.ready[raw..], |here| numbering.there(here));
        if self.is_lost {
            let piece = bytes.len().min(PIECE_BYTES).max(at);
            self.ready.extend_from_slice(&bytes[at..piece]);
        }
    }
}

/// Translates the numbers in every whole message.
fn exchange(mut bytes: &mut [u8], to: impl Fn(u32) -> u32) {
    while let Ok(Some(length)) = length(bytes)
        && length <= bytes.len()
    {
        let (message, rest) = bytes.split_at_mut(length);
        renumber(message, &to);
        bytes = rest;
    }
}

impl IncomingBytes {
    /// Adds received bytes.
    fn read(&mut self, bytes: &[u8], numbering: &PortMap) {
        if self.taken == self.ready {
            self.bytes.drain(..self.taken);
            (self.ready, self.taken) = (0, 0);
        }
        self.bytes.extend_from_slice(bytes);
        while !self.is_lost {
            match length(&self.bytes[self.ready..]) {
                Ok(Some(length)) if self.ready + length <= self.bytes.len() => {
                    let message = &mut self.bytes[self.ready..self.ready + length];
                    renumber(message, &|there| numbering.here(there));
                    self.ready += length;
                }
                Ok(_) => break,
                Err(()) => self.is_lost = true,
            }
        }
        if self.is_lost {
            self.ready = self.bytes.len();
        }
    }

    fn hand_over(&mut self, buffer: &mut [u8]) -> usize {
        let waiting = &self.bytes[self.taken..self.ready];
        let count = waiting.len().min(buffer.len());
        buffer[..count].copy_from_slice(&waiting[..count]);
        self.taken += count;
        count
    }
}

impl Channel for TranslatedChannel {
    fn receive(&mut self, buffer: &mut [u8]) -> Result<usize, ChannelError> {
        let waiting = self.coming.hand_over(buffer);
        if waiting > 0 || buffer.is_empty() {
            return Ok(waiting);
        }
        if let Some(ended) = self.coming.ended.take() {
            return Err(ended);
        }
        match self.channel.receive(buffer) {
            Ok(0) => return Ok(0),
            Ok(count) => self.coming.read(&buffer[..count], &self.numbering),
            Err(error) => {
                // The channel ended within a message.
                self.coming.ready = self.coming.bytes.len();
                self.coming.ended = Some(error);
            }
        }
        match self.coming.hand_over(buffer) {
            0 => self.coming.ended.take().map_or(Ok(0), Err),
            count => Ok(count),
        }
    }

    fn transmit(&mut self, bytes: &[u8]) -> Result<usize, ChannelError> {
        self.leaving.prepare(bytes, &self.numbering);
        // An empty write only flushes the channel's buffer.
        let most = bytes.len().min(self.leaving.ready.len());
        let count = self.channel.transmit(&self.leaving.ready[..most])?;
        self.leaving.ready.drain(..count);
        Ok(count)
    }

    fn finish(&mut self) -> bool {
        self.channel.finish()
    }

    fn abort(&mut self) {
        self.channel.abort();
    }

    fn was_reset(&self) -> bool {
        self.channel.was_reset()
    }

    fn descriptor(&self) -> Option<RawFd> {
        self.channel.descriptor()
    }

    fn waits_for_room(&self, owes: bool) -> bool {
        self.channel.waits_for_room(owes)
    }

    fn holds_received(&self) -> bool {
        let coming = &self.coming;
        coming.taken < coming.ready || coming.ended.is_some() || self.channel.holds_received()
    }

    fn progress(&self) -> Progress {
        self.channel.progress()
    }

    fn source(&self) -> Option<Source> {
        self.channel.source()
    }

    fn peer(&self) -> &str {
        self.channel.peer()
    }

    fn passed(&mut self, direction: Direction, end: u64) -> Option<Result<Stamp, UnknownTime>> {
        self.channel.passed(direction, end)
    }

    fn remarks(&self) -> Option<CaptureAnomalies> {
        self.channel.remarks()
    }
}

#[cfg(test)]
mod tests {
    use channel::memory;
    use openflow::codec::{decode, encode};
    use openflow::model::message::Message;
    use openflow::model::{Action, Field, FlowMod, Match};
    use openflow::version::Version;

    use super::*;

    fn bytes_of(port: u32) -> Vec<u8> {
        let matching = Match::ANY.with(Field::InPort, port);
        let message = Message::FlowMod(FlowMod::add(matching, 5, vec![Action::output(port)]));
        let mut bytes = Vec::new();
        encode(Version::V1_3, 7, &message, &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn port_numbers_are_exchanged_and_stay_unique() {
        assert_eq!(PortMap::of(&[1, 2, 3]), None);
        for ports in [&[5, 17][..], &[2, 1], &[3, 1], &[2, 3, 9], &[17, 2, 5]] {
            let numbering = PortMap::of(ports).unwrap();
            for (here, there) in (1..).zip(ports) {
                assert_eq!((numbering.here(*there), numbering.there(here)), (here, *there));
            }
            let mut all: Vec<u32> = (1..=20).map(|there| numbering.here(there)).collect();
            assert!((1..=20).all(|number| numbering.there(numbering.here(number)) == number));
            all.sort_unstable();
            assert_eq!(all, (1..=20).collect::<Vec<_>>(), "{ports:?}");
        }
    }

    #[test]
    fn messages_in_pieces_of_any_size_are_renumbered() {
        let numbering = PortMap::of(&[5, 17]).unwrap();
        let messages = |ports: [u32; 3]| ports.map(bytes_of).concat();
        // Piece sizes in which the channel takes and delivers bytes.
        for room in [1, 7, 100, 10_000] {
            let (near, mut far) = memory::pair(room, "switch");
            let mut near = numbering.around(Box::new(near));
            let (bytes, mut heard) = (messages([1, 2, 9]), Vec::new());
            let mut sent = 0;
            let mut buffer = [0; 64];
            while heard.len() < bytes.len() {
                sent += near.transmit(&bytes[sent..]).unwrap();
                let count = far.receive(&mut buffer).unwrap();
                heard.extend_from_slice(&buffer[..count]);
            }
            assert_eq!((sent, heard), (bytes.len(), messages([5, 17, 9])), "{room}");
            let (answered, mut heard) = (messages([17, 1, 5]), Vec::new());
            let mut sent = 0;
            while heard.len() < answered.len() {
                sent += far.transmit(&answered[sent..]).unwrap();
                let count = near.receive(&mut buffer[..5]).unwrap();
                heard.extend_from_slice(&buffer[..count]);
            }
            assert_eq!(heard, messages([2, 5, 1]), "{room}");
            assert!(decode(&heard[..bytes_of(2).len()]).is_ok());
        }
    }

    #[test]
    fn invalid_messages_pass_unchanged() {
        let numbering = PortMap::of(&[5, 17]).unwrap();
        let half = bytes_of(1)[..30].to_vec();
        for bytes in [vec![4, 14, 0, 2, 0, 0, 0, 0, 1, 1, 1], half, vec![4, 14, 0]] {
            let (near, mut far) = memory::pair(100, "switch");
            let mut near = numbering.around(Box::new(near));
            assert_eq!(near.transmit(&bytes).unwrap(), bytes.len());
            let mut buffer = [0; 64];
            let count = far.receive(&mut buffer).unwrap();
            assert_eq!(buffer[..count], bytes);
            assert_eq!(far.transmit(&bytes).unwrap(), bytes.len());
            drop(far);
            let mut heard = Vec::new();
            while let Ok(count) = near.receive(&mut buffer) {
                heard.extend_from_slice(&buffer[..count]);
            }
            assert_eq!(heard, bytes);
        }
    }
}
