//! A case's control channels: one that speaks OpenFlow, and a plain one that sends only a case's
//! bytes.

use channel::Channel;
use openflow::header::Xid;
use openflow::model::Message;
use openflow::session::{Event, Session, Settings};
use openflow::version::{End, MessageKind, Version};
use packet::time::Nanos;

use crate::bytes::kind_of;

/// A controller, as far as a case needs one.
pub struct Controller {
    pub session: Session,
    channel: Box<dyn Channel>,
    /// Bytes that are sent unchanged after the session's own.
    pub raw: Vec<u8>,
    /// Received messages that no step has consumed.
    pub came: Vec<(Xid, Message)>,
    pub down: bool,
    /// Number of received messages, to detect progress.
    pub count: usize,
}

/// A connection that sends only the bytes of a case.
pub struct PlainChannel {
    channel: Box<dyn Channel>,
    bytes: Vec<u8>,
    pub down: bool,
}

impl PlainChannel {
    pub fn new(channel: Box<dyn Channel>) -> PlainChannel {
        PlainChannel { channel, bytes: Vec::new(), down: false }
    }

    /// Sends these bytes immediately.
    pub fn put(&mut self, bytes: &[u8]) -> Result<(), String> {
        let sent = self.channel.transmit(bytes).map_err(|error| error.to_string())?;
        if sent == bytes.len() { Ok(()) } else { Err("it did not take the bytes".into()) }
    }

    /// Returns the number of complete messages.
    pub fn count(&self) -> usize {
        self.cut().len()
    }

    /// Removes and returns the kinds of the received messages.
    pub fn take_kinds(&mut self) -> Vec<String> {
        let name = |bytes: &[u8]| kind_of(bytes).map_or("unknown", MessageKind::name).to_owned();
        let kinds: Vec<String> = self.cut().into_iter().map(name).collect();
        self.bytes.clear();
        kinds
    }

    /// Reads received bytes.
    pub fn turn(&mut self) {
        let mut buffer = [0; 4096];
        match self.channel.receive(&mut buffer) {
            Ok(count) => self.bytes.extend(&buffer[..count]),
            Err(_) => self.down = true,
        }
    }

    /// Returns the complete messages.
    fn cut(&self) -> Vec<&[u8]> {
        let (mut rest, mut messages) = (&self.bytes[..], Vec::new());
        while let Some(&[high, low]) = rest.get(2..4) {
            let length = usize::from(u16::from_be_bytes([high, low]));
            let Some((message, after)) = rest.split_at_checked(length.max(8)) else { break };
            messages.push(message);
            rest = after;
        }
        messages
    }
}

impl Controller {
    pub fn new(channel: Box<dyn Channel>, version: Version, now: Nanos) -> Controller {
        let settings =
            Settings { versions: vec![version], echo_idle: None, ..Settings::new(End::Controller) };
        let (raw, came) = (Vec::new(), Vec::new());
        let session = Session::new(settings, now);
        Controller { session, channel, raw, came, down: false, count: 0 }
    }

    /// Reads received bytes, and sends queued ones.
    pub fn turn(&mut self, now: Nanos) {
        let mut buffer = [0; 60_000];
        loop {
            match self.channel.receive(&mut buffer) {
                Ok(0) => break,
                Ok(count) => {
                    assert_eq!(self.session.receive(&buffer[..count], now), count);
                    self.poll();
                }
                Err(_) => {
                    self.down = true;
                    break;
                }
            }
        }
        self.poll();
        let count = self.channel.transmit(self.session.transmit()).unwrap_or(0);
        self.session.transmitted(count);
        if self.session.transmit().is_empty() && !self.raw.is_empty() {
            let count = self.channel.transmit(&self.raw).unwrap_or(0);
            self.raw.drain(..count);
        }
    }

    fn poll(&mut self) {
        while let Some(event) = self.session.poll_event() {
            match event {
                // OpenFlow 1.5 informs each controller of all others; no case tests only that.
                Event::Message { message: Message::ControllerStatus(_), .. } => {}
                Event::Message { xid, message, .. } => {
                    self.count += 1;
                    self.came.push((xid, message));
                }
                Event::Refused(error) => panic!("the switch sent nonsense: {error:?}"),
                Event::Up { .. } => {}
                Event::Down { .. } => self.down = true,
            }
        }
    }
}
