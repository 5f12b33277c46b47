//! A peer that answers by headers alone, so that it costs next to nothing.
//!
//! It speaks 1.3: hello with hello, features with what was encoded before, echoes and barriers with their own
//! bytes under another type, a packet-out with as many packet-ins as its `in_port` says. All else is taken and
//! forgotten. Source: OpenFlow Switch Specification 1.3.5, section 7. Invariant: what it holds is bounded by what it is
//! sent, and it reads nothing while it owes more than [`OWED_BYTES_MAX`].

use std::sync::atomic::{AtomicBool, Ordering};

use openflow::codec::encode;
use openflow::frame::Stream;
use openflow::header::{HEADER_BYTES, Header};
use openflow::model::Match;
use openflow::model::message::Message;
use openflow::model::packet_io::{PacketIn, PacketInReason};
use openflow::model::switch::Features;
use openflow::version::{MessageKind, Version};
use packet::time::Nanos;
use ports::channel::Channel;
use ports::clock::{self, Wait};

/// The version that it speaks.
pub const VERSION: Version = Version::V1_3;

/// Answers that may wait for room before nothing more is read.
pub const OWED_BYTES_MAX: usize = 256 << 10;

/// Packet-ins that one packet-out brings at most.
const PACKET_INS_MAX: u32 = 1024;

/// How long is waited for bytes before the flag is looked at.
const LOOK: Nanos = Nanos::from_millis(5);

/// Bytes of the frame in a packet-in.
const FRAME_BYTES: usize = 60;

/// Answers until the flag is set or the other end is gone.
pub fn serve(mut channel: Box<dyn Channel>, stop: &AtomicBool) {
    let templates = Templates::new();
    let (mut stream, mut owed, mut sent) = (Stream::default(), templates.hello.clone(), 0);
    let mut buffer = vec![0; 64 << 10];
    let mut wait = Wait::new();
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

/// Waits for the channel, where that is possible; one in memory is asked again at once.
fn rest(channel: &dyn Channel, owes: bool, wait: &mut Wait) {
    let Some(descriptor) = channel.descriptor() else { return std::thread::yield_now() };
    wait.clear();
    wait.add(descriptor, owes);
    // What cannot be waited for is asked again at once.
    let _ = wait.until(Some(clock::now().saturating_add(LOOK)));
}

/// Messages that are there before they are asked for.
struct Templates {
    hello: Vec<u8>,
    features: Vec<u8>,
    packet_in: Vec<u8>,
}

impl Templates {
    fn new() -> Templates {
        let encoded = |message: &Message| {
            let mut bytes = Vec::new();
            encode(VERSION, 0, message, &mut bytes).expect("1.3 can say it");
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
                owed[begin + 1] = code.expect("1.3 has answers to both");
            }
            MessageKind::PacketOut => {
                // Behind the header and the number of the buffer.
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

/// A message under the number of another one.
fn with_xid(message: &[u8], of: Header, owed: &mut Vec<u8>) {
    let begin = owed.len();
    owed.extend_from_slice(message);
    owed[begin + 4..begin + 8].copy_from_slice(&of.xid.to_be_bytes());
}
