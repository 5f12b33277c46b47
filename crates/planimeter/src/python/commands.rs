//! Lines as commands: what a script says is to be done, put onto the desk.
//!
//! Streams are the entries of a stream file ([`instrument::stream::file`]), so that they are checked as
//! those are. Invariant: what makes no sense is an error that says what, never passed over.

use std::collections::BTreeMap;

use instrument::module::{
    Desk, Facts, Frames, LogEntry, Measured, Said, Series, Signer, Span, TimerId, Value as Logged,
    Watch,
};
use instrument::stream::Rate;
use openflow::header::Xid;
use packet::time::Nanos;
use serde_json::{Value, json};

use super::message;

/// What was said that is remembered, to tell which answer is whose.
const SAID_MAX: usize = 1 << 16;

/// The script's own numbers for what it said, its timers, and its streams' frames.
#[derive(Debug, Default)]
pub struct Names {
    said: BTreeMap<Xid, (Said, u64)>,
    timers: BTreeMap<TimerId, u64>,
    numbers: BTreeMap<u64, TimerId>,
    frames: BTreeMap<u16, Frames>,
    signer: Option<Signer>,
    ports: usize,
}

impl Names {
    /// The module begins.
    pub fn begin(&mut self, facts: &Facts) {
        (self.signer, self.ports) = (Some(facts.signer), facts.ports.len());
    }

    /// The number of what was said together.
    pub fn said(&self, said: Said) -> Option<u64> {
        self.said.get(&said.xid).map(|(_, number)| *number)
    }

    /// Which of what was said a message with this number answers, and which message of it.
    pub fn answered(&self, xid: Xid) -> Option<(u64, u32)> {
        let (_, (said, number)) = self.said.range(..=xid).next_back()?;
        Some((*number, said.place(xid)?))
    }

    /// The number of a timer that has come.
    pub fn timed(&mut self, timer: TimerId) -> Option<u64> {
        let number = self.timers.remove(&timer)?;
        self.numbers.remove(&number);
        Some(number)
    }

    /// Frame `number` of a stream that is ready, as if it were sent at `at`.
    pub fn frame(&self, stream: u16, number: u64, at: Nanos) -> Option<Vec<u8>> {
        Some(self.frames.get(&stream)?.frame(number, at))
    }

    fn remember(&mut self, said: Said, number: u64) {
        self.said.insert(said.xid, (said, number));
        if self.said.len() > SAID_MAX {
            self.said.pop_first();
        }
    }
}

/// Does what a row says; what is wrong with it otherwise.
pub fn carry_out(row: &[Value], names: &mut Names, desk: &mut Desk) -> Result<(), String> {
    let told = || format!("{} that makes no sense", shortened(&json!(row)));
    let (verb, rest) = row.split_first().ok_or_else(told)?;
    let verb = verb.as_str().ok_or_else(told)?;
    match (verb, rest) {
        ("send", [number, connection, rows]) => {
            let rows = rows.as_array().ok_or_else(told)?;
            let messages = rows
                .iter()
                .map(|it| {
                    let read = message::read(it, names, desk.now());
                    read.map_err(|why| {
                        format!("a message that cannot be: {why}: {}", shortened(it))
                    })
                })
                .collect::<Result<Vec<_>, _>>()?;
            let said = desk.send_all(index(connection).ok_or_else(told)?, messages);
            names.remember(said, number.as_u64().ok_or_else(told)?);
        }
        ("raw", [number, connection, data]) => {
            let bytes = data.as_str().and_then(message::bytes).ok_or_else(told)?;
            let prepared = desk.raw(bytes);
            let said = desk.say(index(connection).ok_or_else(told)?, &prepared);
            names.remember(said, number.as_u64().ok_or_else(told)?);
        }
        ("connect", [connection]) => desk.connect(index(connection).ok_or_else(told)?),
        ("disconnect", [connection]) => desk.disconnect(index(connection).ok_or_else(told)?),
        ("prepare", [stream]) => prepare(stream, names, desk)?,
        ("begin", [stream, from, until, frames]) => {
            let moment = |value: &Value| value.as_u64().map(Nanos);
            let span = Span { from: moment(from), until: moment(until), frames: frames.as_u64() };
            desk.begin(id(stream).ok_or_else(told)?, span);
        }
        ("rate", [stream, rate]) => {
            let rate = Rate::FramesPerSecond(rate.as_f64().ok_or_else(told)?);
            desk.change_rate(id(stream).ok_or_else(told)?, rate);
        }
        ("stop", [stream]) => desk.stop(id(stream).ok_or_else(told)?),
        ("watch", [port, what]) => {
            let watch = match what {
                Value::Array(ids) => {
                    Watch::Streams(ids.iter().map(id).collect::<Option<_>>().ok_or_else(told)?)
                }
                _ => match what.as_str() {
                    Some("none") => Watch::None,
                    Some("all") => Watch::All,
                    Some("probes") => Watch::Probes,
                    _ => return Err(told()),
                },
            };
            desk.watch(index(port).ok_or_else(told)?, watch);
        }
        ("counters", []) => desk.counters(),
        ("timer", [number, at]) => {
            let (number, at) = number.as_u64().zip(at.as_u64()).ok_or_else(told)?;
            let timer = desk.timer_at(Nanos(at));
            names.timers.insert(timer, number);
            names.numbers.insert(number, timer);
        }
        ("cancel", [number]) => {
            let timer = number.as_u64().and_then(|number| names.numbers.remove(&number));
            if let Some(timer) = timer {
                names.timers.remove(&timer);
                desk.cancel(timer);
            }
        }
        ("log", [at, name, values]) => {
            let values = values.as_object().ok_or_else(told)?;
            let values = values.iter().map(|(key, value)| (key.clone().into(), logged(value)));
            let at = at.as_u64().map_or(desk.now(), Nanos);
            let name = name.as_str().ok_or_else(told)?.to_string().into();
            desk.log_entry(LogEntry { at, name, values: values.collect() });
        }
        ("measured", [name, value, half_width, count, note]) => {
            let name = name.as_str().ok_or_else(told)?;
            let unit = results::record::Name::read(name)
                .map_err(|problem| format!("a number that cannot be kept: {problem}"))?
                .unit();
            desk.measured(Measured {
                name: name.to_string().into(),
                unit: unit.into(),
                value: value.as_f64().ok_or_else(told)?,
                half_width: half_width.as_f64(),
                count: count.as_u64().ok_or_else(told)?,
                note: note.as_str().map(|text| text.to_string().into()),
            });
        }
        ("series", [name, over, points]) => {
            let text = |value: &Value| value.as_str().map(|text| text.to_string());
            let unit = |name: &str| {
                results::record::Name::read(name).map_or("", results::record::Name::unit)
            };
            let (name, over) = (text(name).ok_or_else(told)?, text(over).ok_or_else(told)?);
            let point = |point: &Value| Some((point.get(0)?.as_f64()?, point.get(1)?.as_f64()?));
            let points = points.as_array().ok_or_else(told)?;
            desk.series(Series {
                unit: unit(&name).into(),
                x_unit: unit(&over).into(),
                name: name.into(),
                x_name: over.into(),
                points: points.iter().map(point).collect::<Option<_>>().ok_or_else(told)?,
            });
        }
        ("end", []) => desk.end(),
        _ => return Err(told()),
    }
    Ok(())
}

/// Makes a stream ready that is written as a stream file has it.
fn prepare(stream: &Value, names: &mut Names, desk: &mut Desk) -> Result<(), String> {
    let wrong = |why: String| format!("a stream that cannot be: {why}: {}", shortened(stream));
    let text = toml::to_string(&json!({ "stream": [stream] }));
    let text = text.map_err(|error| wrong(error.to_string()))?;
    let read = instrument::stream::file::read(&text, names.ports);
    let streams = read.map_err(|error| wrong(error.to_string()))?;
    for stream in streams {
        if let Some(signer) = names.signer {
            names.frames.insert(stream.id, signer.frames(&stream));
        }
        desk.prepare(stream);
    }
    Ok(())
}

fn index(value: &Value) -> Option<usize> {
    value.as_u64().map(|value| value as usize)
}

fn id(value: &Value) -> Option<u16> {
    value.as_u64().and_then(|value| value.try_into().ok())
}

fn logged(value: &Value) -> Logged {
    match value {
        Value::Bool(is) => Logged::Is(*is),
        Value::Number(number) => match number.as_u64() {
            Some(count) => Logged::Count(count),
            None => Logged::Number(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => text.clone().into(),
        other => other.to_string().into(),
    }
}

/// A value as text that fits into an error.
fn shortened(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(300) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}
