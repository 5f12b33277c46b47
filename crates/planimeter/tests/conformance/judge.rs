//! Comparison of a step's result with the expectation: frame by frame, message by message.

use openflow::model::Message;

use crate::case::Expect;
use crate::language::has_all;

/// Results of a step.
#[derive(Default)]
pub struct Outcome {
    pub frames: Vec<(u32, Vec<u8>)>,
    pub messages: Vec<Message>,
    /// Kinds of messages on the plain connection.
    pub kinds: Vec<String>,
    pub down: bool,
}

/// Compares the results with the expectation, in any order.
pub fn compare(expect: &[Expect], outcome: Outcome) -> Result<(), String> {
    let Outcome { mut frames, mut messages, mut kinds, down } = outcome;
    let by_rows = expect.iter().any(|one| matches!(one, Expect::Rows(_) | Expect::Row(_)));
    let mut rows = Vec::new();
    if by_rows {
        messages.retain(|message| match message {
            Message::MultipartReply(reply) => {
                rows.extend(reply.to_string().lines().skip(1).map(str::to_owned));
                false
            }
            _ => true,
        });
    }
    let reported = |frames: &[(u32, Vec<u8>)], messages: &[Message], rest: &[String]| {
        let frames = frames.iter().map(|(port, bytes)| {
            format!("frame {port}: {} {}", packet::show::Show(bytes), hex(bytes))
        });
        let messages = messages.iter().map(|message| shortened(&message.to_string()));
        let all: Vec<_> = frames.chain(messages).chain(rest.iter().take(5).cloned()).collect();
        if all.is_empty() { "nothing".to_owned() } else { all.join("\n      ") }
    };
    for one in expect {
        let found = match one {
            Expect::Frame { port, bytes } => {
                let place = frames.iter().position(|(from, got)| from == port && got == bytes);
                place.map(|place| drop(frames.remove(place))).is_some()
            }
            Expect::Message { check, .. } => {
                let place = messages.iter().position(check);
                place.map(|place| drop(messages.remove(place))).is_some()
            }
            Expect::Rows(count) => rows.len() == *count,
            Expect::Row(words) => rows.iter().any(|row| has_all(row, words)),
            Expect::Kind(name) => {
                let place = kinds.iter().position(|kind| kind == name);
                place.map(|place| drop(kinds.remove(place))).is_some()
            }
            Expect::Down => down,
        };
        if !found {
            let rest: Vec<String> = rows.iter().chain(&kinds).cloned().collect();
            return Err(format!("expected {one}, got {}", reported(&frames, &messages, &rest)));
        }
    }
    match frames.is_empty() && messages.is_empty() && kinds.is_empty() {
        true => Ok(()),
        false => Err(format!("got in addition {}", reported(&frames, &messages, &kinds))),
    }
}

/// Returns a message's first lines; the rest of a long table adds little.
fn shortened(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    match &lines[..] {
        [first, second, _, _, ..] => format!("{first}\n{second}\n  and {} more", lines.len() - 2),
        _ => text.to_owned(),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
