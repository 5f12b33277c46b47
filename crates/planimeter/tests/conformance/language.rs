//! Parser of case files.
//!
//! A case begins with `case NAME` and ends with an empty line. `clause`, `versions`, `covers`,
//! `ours` (requires our own switch) and `sim` (requires a fresh one) describe it. `expect` states
//! the result of the line above; every other line is a step. `1.2+` means that version and later
//! ones, `1.0-1.3` both and those between. A sentence about a message holds if the message's text
//! form contains all its words.

use openflow::model::*;
use openflow::version::Version;
use packet::time::Nanos;

use crate::ask::ask;
use crate::bytes::{flow_mod_with, header_words, hex, with_another_length};
use crate::case::{Case, Do, Expect, Step};
use crate::features;
use crate::frame::{frame, number};
use crate::orders::{asynchronous, packet_out, port_mod, switch_config, table_mod};
use crate::words;

/// Parses the cases in a text.
pub fn cases(file: &str, text: &str) -> Result<Vec<Case>, String> {
    let mut cases: Vec<Case> = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        let words: Vec<&str> = text.split_whitespace().collect();
        let Some((first, rest)) = words.split_first() else { continue };
        if first.starts_with('#') {
            continue;
        }
        let wrong = |why: String| format!("{file}:{line}: {text}: {why}");
        if *first == "case" {
            let [name] = rest else { return Err(wrong("case NAME".into())) };
            cases.push(Case {
                file: file.to_owned(),
                name: (*name).to_owned(),
                clauses: Vec::new(),
                versions: Version::ALL.to_vec(),
                covers: Vec::new(),
                ours_only: false,
                fresh: false,
                steps: Vec::new(),
            });
            continue;
        }
        let case = cases.last_mut().ok_or_else(|| wrong("a file begins with a case".into()))?;
        let owned = || rest.iter().map(|word| (*word).to_owned()).collect();
        match *first {
            "clause" => case.clauses = owned(),
            "covers" => case.covers = owned(),
            "versions" => case.versions = versions(rest).map_err(wrong)?,
            "ours" => case.ours_only = true,
            "sim" => case.fresh = true,
            "expect" => {
                let step =
                    case.steps.last_mut().ok_or_else(|| wrong("no step comes before".into()))?;
                step.expect.push(expect(rest).map_err(wrong)?);
            }
            _ => {
                let what = step(first, rest).map_err(wrong)?;
                let text = text.to_owned();
                case.steps.push(Step { line, text, what, expect: Vec::new() });
            }
        }
    }
    Ok(cases)
}

/// `1.0`, `1.2+`, `1.0-1.3`.
fn versions(words: &[&str]) -> Result<Vec<Version>, String> {
    let one = |text: &str| -> Result<Version, String> {
        let known = Version::ALL.into_iter().find(|version| version.to_string() == text);
        known.ok_or_else(|| format!("there is no version {text}"))
    };
    let mut versions = Vec::new();
    for word in words {
        let (from, to) = match (word.strip_suffix('+'), word.split_once('-')) {
            (Some(from), _) => (one(from)?, Version::V1_5),
            (None, Some((from, to))) => (one(from)?, one(to)?),
            (None, None) => (one(word)?, one(word)?),
        };
        versions.extend(Version::ALL.into_iter().filter(|one| (from..=to).contains(one)));
    }
    Ok(versions)
}

fn step(first: &str, rest: &[&str]) -> Result<Do, String> {
    let words = rest;
    Ok(match first {
        "flow" => {
            let change = words::flow(words)?;
            send(move |_| Ok(Message::FlowMod(change.clone())))
        }
        "group" => {
            let change = words::group(words)?;
            send(move |_| Ok(Message::GroupMod(change.clone())))
        }
        "meter" => {
            let change = words::meter(words)?;
            send(move |_| Ok(Message::MeterMod(change.clone())))
        }
        "packet_out" => {
            let packet = packet_out(words)?;
            send(move |_| Ok(Message::PacketOut(packet.clone())))
        }
        "port" => Do::PortMod(port_mod(words)?),
        "table" => {
            let change = table_mod(words)?;
            send(move |_| Ok(Message::TableMod(change.clone())))
        }
        "config" => {
            let config = switch_config(words)?;
            send(move |_| Ok(Message::SetConfig(config)))
        }
        "async" => {
            let config = asynchronous(words)?;
            send(move |_| Ok(Message::SetAsync(config.clone())))
        }
        "send" | "ask" => ask(words)?,
        "bundle" => bundle(words)?,
        "features" => Do::Features(features::change(words)?),
        "many" => Do::Many { count: number(words.first().ok_or("many COUNT")?)? as u32, table: 0 },
        "few" => {
            let [count, table] = words else { return Err("few COUNT table=N".into()) };
            let table = table.strip_prefix("table=").ok_or("few COUNT table=N")?;
            Do::Many { count: number(count)? as u32, table: number(table)? as u8 }
        }
        "full" => Do::Full,
        "oxm" => {
            let bytes = hex(words)?;
            raw(move |version| Ok(flow_mod_with(version, &bytes)))
        }
        "raw" => {
            let (header, words) = header_words(words)?;
            let body = hex(words)?;
            raw(move |version| Ok(header.message(version, &body)))
        }
        is_cut @ ("cut" | "stretch") => {
            let [bytes, first, rest @ ..] = words else { return Err("cut BYTES STEP".into()) };
            let Do::Send(make) = step(first, rest)? else { return Err("no message".into()) };
            let by = number(bytes)? as usize;
            let is_cut = is_cut == "cut";
            raw(move |version| Ok(with_another_length(version, &make(version)?, by, is_cut)))
        }
        "plain" => Do::Plain,
        "put" => {
            let (header, words) = header_words(words)?;
            let body = hex(words)?;
            Do::Put(Box::new(move |version| Ok(header.message(version, &body))))
        }
        "frame" => {
            let (port, words) = words.split_first().ok_or("frame PORT KIND")?;
            Do::Frame { port: number(port)? as u32, bytes: frame(words)? }
        }
        "pass" => Do::Pass(Nanos::from_millis(number(words.first().ok_or("pass MILLISECONDS")?)?)),
        "as" => Do::Become { name: (*words.first().ok_or("as NAME")?).to_owned() },
        _ => return Err(format!("there is no step {first}")),
    })
}

/// Returns a step that sends a message.
pub fn send(make: impl Fn(Version) -> Result<Message, String> + 'static) -> Do {
    Do::Send(Box::new(make))
}

fn raw(make: impl Fn(Version) -> Result<Vec<u8>, String> + 'static) -> Do {
    Do::Raw(Box::new(make))
}

/// `open|close|commit|discard ID [FLAGS] [in=MILLISECONDS]`, or `add ID` and a step.
fn bundle(words: &[&str]) -> Result<Do, String> {
    let [command, id, rest @ ..] = words else { return Err("bundle COMMAND ID".into()) };
    let id = number(id)? as u32;
    if *command == "add" {
        let (first, rest) = rest.split_first().ok_or("bundle add ID STEP")?;
        return match step(first, rest)? {
            Do::Send(make) => Ok(Do::BundleAdd { id, make }),
            _ => Err(format!("{first} is not one message")),
        };
    }
    let (mut flags, mut in_ms) = (BundleFlags::NONE, None);
    for name in rest.iter().flat_map(|word| word.split('|')) {
        flags |= match name {
            "atomic" => BundleFlags::ATOMIC,
            "ordered" => BundleFlags::ORDERED,
            "time" => BundleFlags::TIME,
            other => {
                let text = other.strip_prefix("in=").ok_or_else(|| format!("no flag {other}"))?;
                in_ms = Some(text.parse().map_err(|_| format!("{text:?} is no number"))?);
                continue;
            }
        };
    }
    let command = match *command {
        "open" => BundleCommand::Open,
        "close" => BundleCommand::Close,
        "commit" => BundleCommand::Commit,
        "discard" => BundleCommand::Discard,
        _ => return Err(format!("there is no command {command}")),
    };
    Ok(Do::Bundle { id, command, flags, in_ms })
}

fn expect(words: &[&str]) -> Result<Expect, String> {
    let (what, rest) = words.split_first().ok_or("expect WHAT")?;
    if let Ok(port) = number(what) {
        return Ok(Expect::Frame { port: port as u32, bytes: frame(rest)? });
    }
    let framed = rest.iter().position(|word| *word == "frame");
    let bytes = framed.map(|at| frame(&rest[at + 1..])).transpose()?;
    let wanted: Vec<String> =
        rest[..framed.unwrap_or(rest.len())].iter().map(|word| (*word).to_owned()).collect();
    let text = words.join(" ");
    let check: Box<dyn Fn(&Message) -> bool> = match *what {
        "down" => return Ok(Expect::Down),
        "rows" => return Ok(Expect::Rows(number(rest.first().ok_or("rows COUNT")?)? as usize)),
        "row" => return Ok(Expect::Row(wanted)),
        "kind" => return Ok(Expect::Kind(wanted.concat())),
        "reply" => Box::new(move |message| has_all(&message.to_string(), &wanted)),
        "error" | "packet_in" | "flow_removed" | "port_status" | "features_reply"
        | "table_status" | "requestforward" => {
            let name = (*what).to_owned();
            Box::new(move |message| {
                let same = match (&bytes, message) {
                    (Some(bytes), Message::PacketIn(packet)) => {
                        !packet.data.is_empty() && bytes.starts_with(&packet.data)
                    }
                    (Some(_), _) => false,
                    (None, _) => true,
                };
                message.kind().name() == name && same && has_all(&message.to_string(), &wanted)
            })
        }
        _ => return Err(format!("unknown expectation {what}")),
    };
    Ok(Expect::Message { text, check })
}

/// Returns whether the text contains every word.
pub fn has_all(text: &str, words: &[String]) -> bool {
    words.iter().all(|word| text.contains(word.as_str()))
}
