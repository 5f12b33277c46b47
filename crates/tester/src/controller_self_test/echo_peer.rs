//! A peer that replies by headers alone, with minimal processing cost.
//!
//! It supports OpenFlow 1.3 (OpenFlow Switch Specification 1.3.5, section 7):
//!
//! - It replies to a hello with a hello, and to a features request with an encoded template.
//! - It returns echo and barrier requests with the reply's type.
//! - It replies to a packet-out with as many packet-ins as its `in_port` states.
//! - It ignores all other messages.
//!
//! Invariant: memory is bounded by the received messages. It does not read while more than
//! [`OWED_BYTES_MAX`] are queued.

use std::sync::atomic::{AtomicBool, Ordering};

use channel::Channel;
use openflow::codec::encode;
use openflow::frame::Stream;
use openflow::header::{HEADER_BYTES, Header};
use openflow::model::Match;
use openflow::model::message::Message;
use openflow::model::packet_io::{PacketIn, PacketInReason};
use openflow::model::switch::Features;
use openflow::version::{MessageKind, Version};
use os::clock::{self, WaitSet};
use packet::time::Nanos;

/// The supported version.
pub const VERSION: Version = Version::V1_3;

/// Queued bytes beyond which it stops reading.
pub const OWED_BYTES_MAX: usize = 256 << 10;

/// Maximum number of packet-ins per packet-out.
const PACKET_INS_MAX: u32 = 1024;

/// Interval between checks of the stop flag.
const POLL_INTERVAL: Nanos = Nanos::from_millis(5);

/// Size of the frame in a packet-in, in bytes.
const FRAME_BYTES: usize = 60;

/// Replies until the flag is set or the peer closes.
pub fn serve(mut channel: Box<dyn Channel>, stop: &AtomicBool) {
    let templates = Templates::new();
    let (mut stream, mut owed, mut sent) = (Stream::default(), templates.hello.clone(), 0);
    let mut buffer = vec![0; 64 << 10];
    let mut wait = WaitSet::new();
    while !stop.load(Ordering::Relaxed) {
        match channel.transmit(&owed[sent..]) {
            Ok(count) => sent += count,
            Err(_) => return,
        }
        if sent == owed.len() {
            owed.clear();
            sent = 0;
        }
        let mut came = 0;
        if owed.len() < OWED_BYTES_MAX {
            match channel.receive(&mut buffer) {
                Ok(count) => came = count,
                Err(_) => return,
            }
        }
        let mut unread = &buffer[..came];
        while !unread.is_empty() {
            unread = &unread[stream.push(unread)..];
            while let Ok(Some(message)) = stream.cut() {
                templates.answer(message, &mut owed);
            }
        }
        if came == 0 {
            rest(channel.as_ref(), sent < owed.len(), &mut wait);
        }
    }
}

/// Waits for the channel if it has a descriptor. Yields for one in memory.
fn rest(channel: &dyn Channel, owes: bool, wait: &mut WaitSet) {
    let Some(descriptor) = channel.descriptor() else { return std::thread::yield_now() };
    wait.clear();
    wait.add(descriptor, owes);
    // If the wait fails, it ends immediately.
    let _ = wait.until(Some(clock::now().saturating_add(POLL_INTERVAL)));
}

/// Encoded messages.
struct Templates {
    hello: Vec<u8>,
    features: Vec<u8>,
    packet_in: Vec<u8>,
}

impl Templates {
    fn new() -> Templates {
        let encoded = |message: &Message| {
            let mut bytes = Vec::new();
            encode(VERSION, 0, message, &mut bytes).expect("1.3 has this message");
            bytes
        };
        let packet_in = PacketIn {
            buffer_id: None,
            frame_bytes: FRAME_BYTES as u16,
            in_port: 1,
            fields: Match::ANY,
            reason: PacketInReason::NoMatch,
            table: 0,
            cookie: 0,
            data: vec![0xff; FRAME_BYTES],
        };
        let hello = Header { version: VERSION.wire(), kind: 0, length: 8, xid: 0 };
        Templates {
            hello: hello.bytes().to_vec(),
            features: encoded(&Message::FeaturesReply(Features::default())),
            packet_in: encoded(&Message::PacketIn(packet_in)),
        }
    }

    fn answer(&self, message: &[u8], owed: &mut Vec<u8>) {
        let Ok(header) = Header::parse(message) else { return };
        let Some(kind) = MessageKind::from_code(VERSION, header.kind) else { return };
        match kind {
            MessageKind::FeaturesRequest => with_xid(&self.features, header, owed),
            MessageKind::EchoRequest | MessageKind::BarrierRequest => {
                let code = kind.reply().and_then(|reply| reply.code(VERSION));
                let begin = owed.len();
                owed.extend_from_slice(message);
                owed[begin + 1] = code.expect("1.3 has replies to both");
            }
            MessageKind::PacketOut => {
                // After the header and the buffer id.
                let in_port = message.get(HEADER_BYTES + 4..HEADER_BYTES + 8);
                let count =
                    in_port.and_then(|it| it.first_chunk()).map_or(0, |it| u32::from_be_bytes(*it));
                if count <= PACKET_INS_MAX {
                    (0..count).for_each(|_| with_xid(&self.packet_in, header, owed));
                }
            }
            _ => {}
        }
    }
}

/// Appends a message with the transaction id of another one.
fn with_xid(message: &[u8], of: Header, owed: &mut Vec<u8>) {
    let begin = owed.len();
    owed.extend_from_slice(message);
    owed[begin + 4..begin + 8].copy_from_slice(&of.xid.to_be_bytes());
}
