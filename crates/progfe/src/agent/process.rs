//! An agent that is an external program. A stream carries frames in both directions.
//!
//! Each message is preceded by its length. Numbers are in network byte order.
//!
//! ```text
//! hello   0 | version 1 | ports: u16 | each: number u32, hardware address 6 bytes      from us, first
//! frame   1 | 0 | metadata: u16 | when: u64, ns since 1970 | each: id u32, value 16 bytes | frame   from us
//! send    2 | 0 | metadata: u16 | output: u32 | each: id u32, value 16 bytes | frame    to us
//! ```
//!
//! The output in a send message is the output of Inject that the frame takes.
//!
//! Invariant: the element never waits for the program. Frames that the program does not read in
//! time, or that arrive while it is not connected, are dropped and counted.

use packet::frame::{FRAME_BYTES_MAX, Frame};
use packet::time::Nanos;

use super::wire::{Inbox, Outbox, Wire};
use super::{Agent, Around, Sent, Setup, StatusValue};
use crate::lfb::exceptions::DivertedFrame;

/// Events of such an agent.
pub const EVENTS: &[&str] = &["Connected"];
/// Protocol version.
pub const VERSION: u8 = 1;
const HELLO: u8 = 0;
const FRAME: u8 = 1;
const SEND: u8 = 2;
/// Bytes of a metadata item.
const META_BYTES: usize = 20;
/// Maximum number of metadata items in a message.
const META_MAX: usize = 64;

/// The agent.
#[derive(Debug)]
pub struct Process {
    /// Maximum number of frames that wait for the program.
    queue_max: usize,
    is_connected: bool,
    outbox: Outbox,
    inbox: Inbox,
    counters: Counters,
}

/// Frames by outcome.
#[derive(Debug, Default, Clone, Copy)]
struct Counters {
    connections: u64,
    frames: u64,
    not_connected: u64,
    queue_full: u64,
    bad_messages: u64,
}

impl Process {
    /// Creates the agent from its settings.
    pub fn new(setup: &mut Setup<'_>) -> Option<Process> {
        let own = setup.own(&["queue"]);
        setup.elements(&[]);
        let is_word = |name: &str| {
            !name.is_empty()
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        };
        if !is_word(setup.name()) {
            let hint = "use letters, digits, - and _, as the socket has the name";
            setup.lacks("the name is not a file name", hint);
        }
        let queue_max = setup.number(own, "queue", Some(256), 1..=65_536)? as usize;
        Some(Process {
            queue_max,
            is_connected: false,
            outbox: Outbox::default(),
            inbox: Inbox::default(),
            counters: Counters::default(),
        })
    }
}

/// Parses a send message.
fn sent(message: &[u8]) -> Result<Sent, String> {
    let short = || format!("message too short: {} bytes", message.len());
    let (head, rest) = message.split_first_chunk::<8>().ok_or_else(short)?;
    let [kind, _, high, low, output @ ..] = *head;
    if kind != SEND {
        return Err(format!("unknown message kind {kind} (hint: use kind {SEND} to send a frame)"));
    }
    let count = usize::from(u16::from_be_bytes([high, low]));
    if count > META_MAX {
        return Err(format!("{count} metadata, at most {META_MAX} are allowed"));
    }
    let (values, frame) = rest.split_at_checked(count * META_BYTES).ok_or_else(short)?;
    if frame.len() > FRAME_BYTES_MAX {
        return Err(format!(
            "frame too long: {} bytes, at most {FRAME_BYTES_MAX} are allowed",
            frame.len()
        ));
    }
    let meta = values.chunks_exact(META_BYTES).filter_map(|value| {
        let (id, number) = value.split_first_chunk::<4>()?;
        Some((u32::from_be_bytes(*id), u128::from_be_bytes(*number.first_chunk()?)))
    });
    let output = u32::from_be_bytes(output);
    Ok(Sent { output, meta: meta.collect(), frame: Frame::from_bytes(frame) })
}

impl Wire for Process {
    fn connected(&mut self, around: &mut Around<'_>) {
        self.closed();
        self.is_connected = true;
        self.counters.connections += 1;
        let mut hello = vec![HELLO, VERSION];
        hello.extend((around.ports.len() as u16).to_be_bytes());
        for port in around.ports {
            hello.extend(port.number.to_be_bytes());
            hello.extend(port.mac);
        }
        self.outbox.put(&hello, 1);
        around.event(
            "Connected",
            StatusValue::from([("connections", self.counters.connections.into())]),
        );
    }

    fn is_connected(&self) -> bool {
        self.is_connected
    }

    fn received(&mut self, bytes: &[u8], around: &mut Around<'_>) -> Result<(), String> {
        self.inbox.extend(bytes);
        let outcome = loop {
            match self.inbox.next_message() {
                Ok(None) => break Ok(()),
                Ok(Some(message)) => match sent(&message) {
                    Ok(sent) => around.sent.push(sent),
                    Err(why) => break Err(why),
                },
                Err(why) => break Err(why),
            }
        };
        self.counters.bad_messages += u64::from(outcome.is_err());
        outcome
    }

    fn closed(&mut self) {
        self.is_connected = false;
        self.outbox.clear();
        self.inbox.clear();
    }

    fn outbox(&mut self) -> &mut Outbox {
        &mut self.outbox
    }
}

impl Agent for Process {
    fn frame_came(&mut self, told: DivertedFrame, around: &mut Around<'_>) {
        if !self.is_connected {
            self.counters.not_connected += 1;
            return;
        }
        let meta = &told.meta[..told.meta.len().min(META_MAX)];
        let mut message = vec![FRAME, 0];
        message.extend((meta.len() as u16).to_be_bytes());
        message.extend(around.epoch.wrapping_add(told.came.0).to_be_bytes());
        for (id, value) in meta {
            message.extend(id.to_be_bytes());
            message.extend(value.to_be_bytes());
        }
        message.extend(told.frame.bytes());
        match self.outbox.put(&message, self.queue_max) {
            true => self.counters.frames += 1,
            false => self.counters.queue_full += 1,
        }
    }

    fn facts(&self, _now: Nanos) -> StatusValue {
        let counts = &self.counters;
        StatusValue::from([
            ("connected", self.is_connected.into()),
            ("connections", counts.connections.into()),
            ("frames", counts.frames.into()),
            ("waiting", self.outbox.waiting().into()),
            ("not_connected", counts.not_connected.into()),
            ("queue_full", counts.queue_full.into()),
            ("bad_messages", counts.bad_messages.into()),
        ])
    }

    fn wire(&mut self) -> Option<&mut dyn Wire> {
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::bench::{Bench, program};

    const AGENT: &str = r#"<agent name="bench" type="process" queue="3"/>"#;

    fn taken(bench: &mut Bench) -> Vec<u8> {
        let outbox = bench.agent.wire().unwrap().outbox();
        let mut all = Vec::new();
        while !outbox.front().is_empty() {
            let part = outbox.front().to_vec();
            outbox.carried(part.len());
            all.extend(part);
        }
        all
    }

    #[test]
    fn frames_and_metadata_are_exchanged_with_the_process() {
        let mut bench = Bench::new(AGENT, 1);
        bench.frame(1, b"early");
        bench.connect();
        let hello = taken(&mut bench);
        assert_eq!(hello[..8], [0, 0, 0, 24, HELLO, VERSION, 0, 2]);
        assert_eq!(hello[8..18], [0, 0, 0, 1, 2, 0, 0, 0, 1, 1]);
        for _ in 0..5 {
            bench.told(&[(1, 7)], b"frame");
        }
        assert_eq!([bench.count("not_connected"), bench.count("queue_full")], [1, 2]);
        let bytes = taken(&mut bench);
        let one = &bytes[4..bytes.len() / 3];
        assert_eq!((one[0], &one[2..4], &one[32..]), (FRAME, &[0, 1][..], &b"frame"[..]));
        assert_eq!((one[15], one[31]), (1, 7), "{one:?}");
        // The same message in the other direction, with another kind and an output instead of the
        // time.
        let mut back = vec![SEND, 0, 0, 1, 0, 0, 0, 4];
        back.extend(&one[12..]);
        let whole = [&(back.len() as u32).to_be_bytes()[..], &back].concat();
        let (first, second) = whole.split_at(9);
        assert!(bench.heard(first).unwrap().is_empty());
        let sent = bench.heard(second).unwrap().remove(0);
        let received = (sent.output, sent.meta.as_slice(), sent.frame.bytes());
        assert_eq!(received, (4, &[(1, 7)][..], &b"frame"[..]));
    }

    #[test]
    fn invalid_messages_end_the_connection() {
        for (message, says) in [
            (&[SEND, 0, 0][..], "too short"),
            (&[9; 20], "kind 9"),
            (&[SEND, 0, 0, 65, 0, 0, 0, 0], "65 metadata"),
            (&[SEND, 0, 0, 2, 0, 0, 0, 0, 1, 2, 3], "too short"),
            (&[SEND, 0, 0, 0].repeat(5000), "frame too long"),
        ] {
            let mut bench = Bench::new(AGENT, 1);
            bench.connect();
            let whole = [&(message.len() as u32).to_be_bytes()[..], message].concat();
            let error = bench.heard(&whole).unwrap_err();
            assert!(error.contains(says), "{error}");
            assert_eq!(bench.count("bad_messages"), 1);
        }
        let problems = program(r#"<agent name="../x" type="process" queue="0"><y/></agent>"#).1;
        let problems = problems.to_string();
        for says in ["not a file name", "queue of <agent>: invalid value \"0\"", "unexpected <y>"] {
            assert!(problems.contains(says), "{problems}");
        }
    }
}
