//! Bundles: messages that a controller collects and commits together.
//!
//! Source: OpenFlow switch specification 1.4.1, sections 6.8 and 7.3.9; 1.5.1, section 6.8.6
//! (scheduled). This module only stores them; [`super::commit`] commits them.
//!
//! Invariants:
//! - The limits on bundles, messages and bytes of a connection bound memory.
//! - A bundle that is idle for too long is discarded.

use openflow::codec;
use openflow::header::{Header, Xid};
use openflow::model::bundle::BundleFlags;
use openflow::version::ErrorCode;
use packet::time::Nanos;

use super::change::StateChange;
use crate::config::Limits;

/// The bundles of one connection.
#[derive(Debug, Default)]
pub struct Bundles {
    open: Vec<Bundle>,
    bytes: usize,
}

/// One bundle.
#[derive(Debug)]
pub struct Bundle {
    id: u32,
    flags: BundleFlags,
    closed: bool,
    touched: Nanos,
    /// When to commit it, if scheduled, and the transaction ID of the request.
    due: Option<(Nanos, Xid)>,
    /// Its encoded messages, in the order of arrival. They take less memory than decoded messages,
    /// and no more than the controller sent.
    said: Vec<u8>,
    count: usize,
}

/// A message of a bundle.
pub(super) struct Bundled<'a> {
    /// Its transaction ID.
    pub xid: Xid,
    /// The decoded message.
    pub message: StateChange,
    /// The encoded message.
    pub bytes: &'a [u8],
}

impl Bundle {
    /// Returns the bundle ID.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Returns the flags.
    pub fn flags(&self) -> BundleFlags {
        self.flags
    }

    /// Decodes the message at byte `at`. Returns it with the position of the next message, or
    /// `None` at the end.
    pub(super) fn message_at(&self, at: usize) -> Option<(Bundled<'_>, usize)> {
        let rest = self.said.get(at..)?;
        let length = usize::from(Header::parse(rest).ok()?.length);
        let bytes = rest.get(..length)?;
        let decoded = codec::decode(bytes);
        debug_assert!(decoded.is_ok(), "a stored message decodes: {decoded:?}");
        let (header, message) = decoded.ok()?;
        let message = StateChange::of(message);
        debug_assert!(message.is_ok(), "only changes are stored: {:?}", message.err());
        let message = message.ok()?;
        Some((Bundled { xid: header.xid, message, bytes }, at + length))
    }
}

impl Bundles {
    /// Opens a bundle. If the ID is in use, the existing bundle is discarded and the request fails.
    pub fn open(
        &mut self,
        id: u32,
        flags: BundleFlags,
        limits: &Limits,
        now: Nanos,
    ) -> Result<(), ErrorCode> {
        if self.take(id).is_some() {
            return Err(ErrorCode::BundleExists);
        }
        if self.open.len() >= limits.bundles {
            return Err(ErrorCode::BundleOutOfBundles);
        }
        let (closed, due, touched) = (false, None, now);
        let (said, count) = (Vec::new(), 0);
        self.open.push(Bundle { id, flags, closed, touched, due, said, count });
        Ok(())
    }

    /// Closes a bundle to further messages. An invalid request discards it.
    pub fn close(&mut self, id: u32, flags: BundleFlags, now: Nanos) -> Result<(), ErrorCode> {
        let bundle = self.find(id, flags, now)?;
        if std::mem::replace(&mut bundle.closed, true) {
            self.take(id);
            return Err(ErrorCode::BundleClosed);
        }
        Ok(())
    }

    /// Adds an encoded message to a bundle. Opens the bundle if it does not exist.
    pub fn add(
        &mut self,
        id: u32,
        flags: BundleFlags,
        bytes: &[u8],
        limits: &Limits,
        now: Nanos,
    ) -> Result<(), ErrorCode> {
        if !self.open.iter().any(|bundle| bundle.id == id) {
            self.open(id, flags, limits, now)?;
        }
        let room = self.bytes.saturating_add(bytes.len()) <= limits.bundle_bytes;
        let bundle = self.find(id, flags, now)?;
        if bundle.closed {
            self.take(id);
            return Err(ErrorCode::BundleClosed);
        }
        if !room || bundle.count >= limits.bundle_messages {
            return Err(ErrorCode::BundleMessageTooMany);
        }
        bundle.said.extend_from_slice(bytes);
        bundle.count += 1;
        self.bytes += bytes.len();
        Ok(())
    }

    /// Removes a bundle that is to be committed now.
    pub fn commit(&mut self, id: u32, flags: BundleFlags, now: Nanos) -> Result<Bundle, ErrorCode> {
        self.find(id, flags, now)?;
        self.take(id).ok_or(ErrorCode::BundleBadId)
    }

    /// Schedules a bundle for a commit at `due` by request `xid`.
    pub fn schedule(
        &mut self,
        id: u32,
        flags: BundleFlags,
        (due, xid): (Nanos, Xid),
        now: Nanos,
    ) -> Result<(), ErrorCode> {
        let bundle = self.find(id, flags, now)?;
        bundle.closed = true;
        bundle.due = Some((due, xid));
        Ok(())
    }

    /// Removes and returns a bundle that is due, with the transaction ID of the commit request.
    pub fn due(&mut self, now: Nanos) -> Option<(Bundle, Xid)> {
        let is_due = |bundle: &&Bundle| bundle.due.is_some_and(|(at, _)| at <= now);
        let next = self.open.iter().filter(is_due).min_by_key(|bundle| bundle.due)?;
        let (id, (_, xid)) = (next.id, next.due?);
        Some((self.take(id)?, xid))
    }

    /// Discards a bundle. Returns an error if it does not exist.
    pub fn discard(&mut self, id: u32) -> Result<(), ErrorCode> {
        self.take(id).map(drop).ok_or(ErrorCode::BundleBadId)
    }

    /// Discards the bundles that were idle for `idle_max`. Returns their number.
    pub fn expire(&mut self, idle_max: Nanos, now: Nanos) -> usize {
        let old = |bundle: &&Bundle| bundle.due.is_none() && now.since(bundle.touched) >= idle_max;
        let ids: Vec<u32> = self.open.iter().filter(old).map(|bundle| bundle.id).collect();
        ids.into_iter().filter(|&id| self.take(id).is_some()).count()
    }

    /// Returns when the next bundle is due or expires.
    pub fn next_event(&self, idle_max: Nanos) -> Option<Nanos> {
        let event = |bundle: &Bundle| match bundle.due {
            Some((at, _)) => at,
            None => bundle.touched.saturating_add(idle_max),
        };
        self.open.iter().map(event).min()
    }

    /// Finds the bundle with this ID. Discards it if its flags differ.
    fn find(&mut self, id: u32, flags: BundleFlags, now: Nanos) -> Result<&mut Bundle, ErrorCode> {
        let place = self.open.iter().position(|bundle| bundle.id == id);
        let place = place.ok_or(ErrorCode::BundleBadId)?;
        if self.open[place].flags != flags {
            self.take(id);
            return Err(ErrorCode::BundleBadFlags);
        }
        let bundle = &mut self.open[place];
        bundle.touched = now;
        Ok(bundle)
    }

    fn take(&mut self, id: u32) -> Option<Bundle> {
        let place = self.open.iter().position(|bundle| bundle.id == id)?;
        let bundle = self.open.remove(place);
        self.bytes -= bundle.said.len();
        Some(bundle)
    }
}

#[cfg(test)]
mod tests {
    use openflow::header::HEADER_BYTES;
    use openflow::model::{Message, PacketOut};
    use openflow::version::Version;

    use super::*;

    const ATOMIC: BundleFlags = BundleFlags::ATOMIC;

    fn limits() -> Limits {
        Limits { bundles: 2, bundle_messages: 3, bundle_bytes: 180, ..Limits::default() }
    }

    fn add(bundles: &mut Bundles, id: u32, bytes: usize) -> Result<(), ErrorCode> {
        let mut encoded = Vec::new();
        let message = Message::EchoRequest(vec![7; bytes - HEADER_BYTES]);
        codec::encode(Version::V1_4, 9, &message, &mut encoded).unwrap();
        bundles.add(id, ATOMIC, &encoded, &limits(), Nanos(5))
    }

    #[test]
    fn a_bundle_is_opened_filled_closed_and_committed() {
        let mut bundles = Bundles::default();
        bundles.open(1, ATOMIC, &limits(), Nanos(0)).unwrap();
        let mut encoded = Vec::new();
        let message = Message::PacketOut(PacketOut::default());
        codec::encode(Version::V1_4, 9, &message, &mut encoded).unwrap();
        bundles.add(1, ATOMIC, &encoded, &limits(), Nanos(0)).unwrap();
        add(&mut bundles, 2, 10).unwrap();
        bundles.close(1, ATOMIC, Nanos(1)).unwrap();
        let bundle = bundles.commit(1, ATOMIC, Nanos(2)).unwrap();
        assert_eq!((bundle.id(), bundle.flags()), (1, ATOMIC));
        let (only, end) = bundle.message_at(0).unwrap();
        assert_eq!((only.xid, only.bytes), (9, &encoded[..]));
        assert!(
            matches!(only.message, StateChange::PacketOut(packet) if packet == PacketOut::default())
        );
        assert!(bundle.message_at(end).is_none());
        assert_eq!(bundles.commit(1, ATOMIC, Nanos(2)).unwrap_err(), ErrorCode::BundleBadId);
        assert_eq!(bundles.discard(2), Ok(()));
        assert_eq!((bundles.discard(2), bundles.bytes), (Err(ErrorCode::BundleBadId), 0));
    }

    #[test]
    fn invalid_messages_discard_the_bundle() {
        let other = BundleFlags::ORDERED;
        let mut bundles = Bundles::default();
        let open = |bundles: &mut Bundles| bundles.open(1, ATOMIC, &limits(), Nanos(0));
        open(&mut bundles).unwrap();
        assert_eq!(open(&mut bundles), Err(ErrorCode::BundleExists));
        open(&mut bundles).unwrap();
        assert_eq!(bundles.close(1, other, Nanos(1)), Err(ErrorCode::BundleBadFlags));
        open(&mut bundles).unwrap();
        bundles.close(1, ATOMIC, Nanos(1)).unwrap();
        assert_eq!(add(&mut bundles, 1, 10), Err(ErrorCode::BundleClosed));
        assert_eq!(bundles.discard(1), Err(ErrorCode::BundleBadId));
    }

    #[test]
    fn bundles_have_limits_and_time_out() {
        let mut bundles = Bundles::default();
        add(&mut bundles, 1, 90).unwrap();
        assert_eq!(add(&mut bundles, 1, 91), Err(ErrorCode::BundleMessageTooMany));
        add(&mut bundles, 1, 8).unwrap();
        add(&mut bundles, 1, 8).unwrap();
        assert_eq!(add(&mut bundles, 1, 8), Err(ErrorCode::BundleMessageTooMany));
        add(&mut bundles, 2, 8).unwrap();
        assert_eq!(add(&mut bundles, 3, 8), Err(ErrorCode::BundleOutOfBundles));
        bundles.schedule(2, ATOMIC, (Nanos(500), 77), Nanos(5)).unwrap();
        assert_eq!(bundles.next_event(Nanos(100)), Some(Nanos(105)));
        assert_eq!(
            (bundles.expire(Nanos(100), Nanos(104)), bundles.expire(Nanos(100), Nanos(105))),
            (0, 1)
        );
        assert!(bundles.due(Nanos(499)).is_none());
        let (bundle, xid) = bundles.due(Nanos(500)).unwrap();
        assert_eq!((bundle.id(), xid, bundles.bytes), (2, 77, 0));
    }
}
