//! Conversion of lines to commands: queues what a script requests.
//!
//! Streams have the syntax of a stream file ([`tester::stream::file`]) and pass the same
//! checks. Invariant: an invalid command is an error that names the problem; it is never ignored.

use std::collections::BTreeMap;

use openflow::header::Xid;
use packet::filter;
use packet::time::Nanos;
use record::Name;
use serde_json::{Value, json};
use snmp::{Oid, SnmpRequest};
use tester::module::{
    FrameFilter, Frames, LogEntry, MeasuredValue, MessageRange, ModuleContext, SendSpan, Series,
    Signer, SnmpId, TestSetup, TimerId, Value as Logged,
};
use tester::stream::Rate;

use super::message;

/// Limit of remembered sends, which match replies to requests.
const SAID_MAX: usize = 1 << 16;

/// The script's own numbers of its sends and timers, and its streams' frames.
#[derive(Debug, Default)]
pub struct Names {
    said: BTreeMap<Xid, (MessageRange, u64)>,
    timers: BTreeMap<TimerId, u64>,
    numbers: BTreeMap<u64, TimerId>,
    frames: BTreeMap<u16, Frames>,
    asked: BTreeMap<SnmpId, u64>,
    signer: Option<Signer>,
    ports: usize,
}

impl Names {
    /// Initializes the names at the start of the module.
    pub fn begin(&mut self, facts: &TestSetup) {
        (self.signer, self.ports) = (Some(facts.signer), facts.ports.len());
    }

    /// Returns the script's number of a group of messages that was sent together.
    pub fn said(&self, said: MessageRange) -> Option<u64> {
        self.said.get(&said.xid).map(|(_, number)| *number)
    }

    /// Returns the script's number of the group that a message with this xid replies to, and its
    /// index in the group.
    pub fn answered(&self, xid: Xid) -> Option<(u64, u32)> {
        let (_, (said, number)) = self.said.range(..=xid).next_back()?;
        Some((*number, said.place(xid)?))
    }

    /// Returns the script's number of an expired timer.
    pub fn timed(&mut self, timer: TimerId) -> Option<u64> {
        let number = self.timers.remove(&timer)?;
        self.numbers.remove(&number);
        Some(number)
    }

    /// Returns the script's number of a completed SNMP request.
    pub fn asked(&mut self, asked: SnmpId) -> Option<u64> {
        self.asked.remove(&asked)
    }

    /// Returns frame `number` of a prepared stream, as if it were sent at `at`.
    pub fn frame(&self, stream: u16, number: u64, at: Nanos) -> Option<Vec<u8>> {
        Some(self.frames.get(&stream)?.frame(number, at))
    }

    fn remember(&mut self, said: MessageRange, number: u64) {
        self.said.insert(said.xid, (said, number));
        if self.said.len() > SAID_MAX {
            self.said.pop_first();
        }
    }
}

/// Executes a command.
pub fn carry_out(
    row: &[Value],
    names: &mut Names,
    context: &mut ModuleContext,
) -> Result<(), String> {
    let told = || format!("invalid command: {}", shortened(&json!(row)));
    let (verb, rest) = row.split_first().ok_or_else(told)?;
    let done = match verb.as_str().ok_or_else(told)? {
        "send" => return send(rest, names, context).and_then(|done| done.ok_or_else(told)),
        "watch" => return watch(rest, context).and_then(|done| done.ok_or_else(told)),
        "prepare" => return prepare(rest.first().unwrap_or(&Value::Null), names, context),
        "snmp" => return ask(rest, names, context).and_then(|done| done.ok_or_else(told)),
        "report" => return measured(rest, context).and_then(|done| done.ok_or_else(told)),
        "log" | "series" | "end" => find(verb, rest, context),
        _ => act(verb, rest, names, context),
    };
    done.ok_or_else(told)
}

/// Sends messages.
fn send(
    rest: &[Value],
    names: &mut Names,
    context: &mut ModuleContext,
) -> Result<Option<()>, String> {
    let [number, connection, Value::Array(rows)] = rest else { return Ok(None) };
    let (Some(number), Some(connection)) = (number.as_u64(), index(connection)) else {
        return Ok(None);
    };
    let one = |it: &Value| {
        let read = message::read(it, names, context.now());
        read.map_err(|why| format!("invalid message: {why}: {}", shortened(it)))
    };
    let messages = rows.iter().map(one).collect::<Result<Vec<_>, _>>()?;
    let said = context.send_all(connection, messages);
    names.remember(said, number);
    Ok(Some(()))
}

/// Sends a request to an SNMP agent.
fn ask(
    rest: &[Value],
    names: &mut Names,
    context: &mut ModuleContext,
) -> Result<Option<()>, String> {
    let [number, agent, kind, Value::Array(oids)] = rest else { return Ok(None) };
    let (Some(number), Some(agent)) = (number.as_u64(), index(agent)) else { return Ok(None) };
    let name = |it: &Value| {
        let text = it.as_str().unwrap_or_default();
        text.parse::<Oid>().map_err(|why| format!("invalid OID: {}: {why}", shortened(it)))
    };
    let oids = oids.iter().map(name).collect::<Result<Vec<_>, _>>()?;
    let question = match kind.as_str() {
        Some("get") => SnmpRequest::Get(oids),
        Some("next") => SnmpRequest::Next(oids),
        Some("walk") => SnmpRequest::Walk(oids),
        _ => return Ok(None),
    };
    if names.asked.len() >= SAID_MAX {
        names.asked.pop_first();
    }
    names.asked.insert(context.snmp(agent, question), number);
    Ok(Some(()))
}

/// Executes a command about connections, streams, ports or timers; `None` if it is invalid.
fn act(verb: &Value, rest: &[Value], names: &mut Names, context: &mut ModuleContext) -> Option<()> {
    match (verb.as_str()?, rest) {
        ("raw", [number, connection, data]) => {
            let prepared = context.raw(message::bytes(data.as_str()?)?);
            let said = context.send_encoded(index(connection)?, &prepared);
            names.remember(said, number.as_u64()?);
        }
        ("connect", [connection]) => context.connect(index(connection)?),
        ("disconnect", [connection]) => context.disconnect(index(connection)?),
        ("begin", [stream, from, until, frames]) => {
            let moment = |value: &Value| value.as_u64().map(Nanos);
            let span =
                SendSpan { from: moment(from), until: moment(until), frames: frames.as_u64() };
            context.begin(id(stream)?, span);
        }
        ("rate", [stream, rate]) => {
            context.change_rate(id(stream)?, Rate::FramesPerSecond(rate.as_f64()?));
        }
        ("stop", [stream]) => context.stop(id(stream)?),
        ("counters", []) => context.counters(),
        ("timer", [number, at]) => {
            let (number, at) = number.as_u64().zip(at.as_u64())?;
            let timer = context.timer_at(Nanos(at));
            names.timers.insert(timer, number);
            names.numbers.insert(number, timer);
        }
        ("cancel", [number]) => {
            if let Some(timer) = names.numbers.remove(&number.as_u64()?) {
                names.timers.remove(&timer);
                context.cancel(timer);
            }
        }
        _ => return None,
    }
    Some(())
}

/// Selects the frames of a port that the script receives: by a keyword, by their streams, or by
/// entries of a capture filter.
fn watch(rest: &[Value], context: &mut ModuleContext) -> Result<Option<()>, String> {
    let [port, what] = rest else { return Ok(None) };
    let Some(port) = index(port) else { return Ok(None) };
    let watch = match what {
        Value::Array(ids) => match ids.iter().map(id).collect() {
            Some(ids) => FrameFilter::Streams(ids),
            None => return Ok(None),
        },
        Value::String(text) => match text.as_str() {
            "none" => FrameFilter::None,
            "all" => FrameFilter::All,
            "probes" => FrameFilter::Probes,
            entries => {
                let read = filter::text::file(entries);
                FrameFilter::Filter(read.map_err(|error| format!("invalid filter: {error}"))?)
            }
        },
        _ => return Ok(None),
    };
    context.watch(port, watch);
    Ok(Some(()))
}

/// Executes a command about log, series, or the end of the module; `None` if it is invalid.
fn find(verb: &Value, rest: &[Value], context: &mut ModuleContext) -> Option<()> {
    let text = |value: &Value| value.as_str().map(str::to_string);
    match (verb.as_str()?, rest) {
        ("log", [at, name, Value::Object(values)]) => {
            let values = values.iter().map(|(key, value)| (key.clone().into(), logged(value)));
            let at = at.as_u64().map_or(context.now(), Nanos);
            let values = values.collect();
            context.log_entry(LogEntry { at, name: text(name)?.into(), values });
        }
        ("series", [name, over, Value::Array(points)]) => {
            let unit = |name: &str| Name::read(name).map_or("", Name::unit);
            let (name, over) = (text(name)?, text(over)?);
            let point = |point: &Value| Some((point.get(0)?.as_f64()?, point.get(1)?.as_f64()?));
            context.series(Series {
                unit: unit(&name).into(),
                x_unit: unit(&over).into(),
                name: name.into(),
                x_name: over.into(),
                points: points.iter().map(point).collect::<Option<_>>()?,
            });
        }
        ("end", []) => context.end(),
        _ => return None,
    }
    Some(())
}

/// Records a measured number, under a name that a record can hold.
fn measured(rest: &[Value], context: &mut ModuleContext) -> Result<Option<()>, String> {
    let [Value::String(name), value, half_width, count, note] = rest else { return Ok(None) };
    let read = Name::read(name);
    let unit = read.map_err(|problem| format!("invalid name of a number: {problem}"))?.unit();
    let (Some(value), Some(count)) = (value.as_f64(), count.as_u64()) else { return Ok(None) };
    context.measured(MeasuredValue {
        name: name.clone().into(),
        unit: unit.into(),
        value,
        half_width: half_width.as_f64(),
        count,
        bound: None,
        note: note.as_str().map(|text| text.to_string().into()),
    });
    Ok(Some(()))
}

/// Prepares a stream in the syntax of a stream file.
fn prepare(stream: &Value, names: &mut Names, context: &mut ModuleContext) -> Result<(), String> {
    let wrong = |why: String| format!("invalid stream: {why}: {}", shortened(stream));
    let text = toml::to_string(&json!({ "stream": [stream] }));
    let text = text.map_err(|error| wrong(error.to_string()))?;
    let read = tester::stream::file::read(&text, names.ports);
    let streams = read.map_err(|error| wrong(error.to_string()))?;
    for stream in streams {
        if let Some(signer) = names.signer {
            names.frames.insert(stream.id, signer.frames(&stream));
        }
        context.prepare(stream);
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

/// Formats a value as text that fits into an error message.
fn shortened(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(300) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}
