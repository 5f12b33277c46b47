//! Execution of one step: a command, a request, a frame, or a delay.

use std::collections::BTreeMap;

use openflow::model::*;
use openflow::version::Version;
use packet::field::Field;

use crate::ask::request;
use crate::case::Do;
use crate::connection::PlainChannel;
use crate::player::{Player, TURNS};

impl Player<'_> {
    /// Executes the step.
    pub fn act(&mut self, what: &Do, version: Version) -> Result<(), String> {
        match what {
            Do::Send(make) => self.order(&make(version)?),
            Do::SendAlone(make) => self.send(&make(version)?).map(drop),
            Do::Raw(make) => {
                let bytes = make(version)?;
                self.here().raw.extend(bytes);
                self.turn();
                self.barrier()
            }
            Do::PortMod(change) => {
                self.ports_changed.push(change.number);
                let macs = self.macs(version)?;
                let find = |number| macs.get(&number).copied().unwrap_or([2, 0, 0, 0, 0, 9]);
                self.order(&change.message(version, &find))
            }
            Do::Bundle { id, command, flags, in_ms } => {
                if *command == BundleCommand::Open {
                    self.bundle_flags = *flags;
                }
                let due = in_ms.map(|after| self.time_of_day(after)).transpose()?;
                let (command, flags) = (*command, self.bundle_flags);
                let (id, properties) = (*id, due.map(BundleProperty::Time).into_iter().collect());
                let control = BundleControl { id, command, is_reply: false, flags, properties };
                self.order(&Message::BundleControl(control))
            }
            Do::BundleAdd { id, make } => {
                let (id, flags, properties) = (*id, self.bundle_flags, Vec::new());
                let message = Box::new(make(version)?);
                let add = BundleAddMessage { id, flags, message, properties };
                self.order(&Message::BundleAddMessage(add))
            }
            Do::Features(change) => {
                if self.tables_told.is_empty() {
                    self.tables_told = self.features()?;
                }
                let messages = change.messages(&self.tables_told)?;
                self.order_in_parts(&messages)
            }
            Do::Many { count, table } => self.many(*count, *table),
            Do::Full => self.full(),
            Do::Plain => {
                self.plain = Some(PlainChannel::new(self.subject.connect()?));
                Ok(())
            }
            Do::Put(make) => {
                let bytes = make(version)?;
                self.plain.as_mut().ok_or("there is no plain connection")?.put(&bytes)
            }
            Do::Frame { port, bytes } => {
                self.subject.arrive(*port, bytes);
                Ok(())
            }
            Do::Pass(span) => {
                self.subject.pass(*span);
                Ok(())
            }
            Do::Become { name } if self.controllers.contains_key(name) => {
                self.at.clone_from(name);
                Ok(())
            }
            Do::Become { name } => self.connect(name, version),
        }
    }

    /// Sends a message and waits until the switch has read it.
    pub fn order(&mut self, message: &Message) -> Result<(), String> {
        self.send(message)?;
        self.barrier()
    }

    /// Sends one request in several messages.
    pub fn order_in_parts(&mut self, messages: &[Message]) -> Result<(), String> {
        let (first, rest) = messages.split_first().ok_or("a request has a part")?;
        let xid = self.send(first)?;
        for message in rest {
            let sent = self.here().session.answer(xid, message);
            sent.map_err(|error| error.to_string())?;
            // A switch reads a limited amount per turn.
            (0..TURNS).for_each(|_| self.turn());
        }
        self.barrier()
    }

    /// Reads the features of all tables from the switch.
    fn features(&mut self) -> Result<Vec<TableFeatures>, String> {
        self.order(&request(MultipartRequestBody::TableFeatures(Vec::new())))?;
        let came = std::mem::take(&mut self.here().came);
        let rows = came.into_iter().flat_map(|(_, message)| match message {
            Message::MultipartReply(MultipartReply {
                body: MultipartReplyBody::TableFeatures(rows),
                ..
            }) => rows,
            _ => Vec::new(),
        });
        Ok(rows.collect())
    }

    /// Returns the switch's wall-clock time this many milliseconds from now.
    fn time_of_day(&mut self, after_ms: i64) -> Result<WallTime, String> {
        let flags = BundleFeatureFlags::TIMESTAMP;
        let asked = BundleFeaturesRequest { flags, properties: Vec::new() };
        self.order(&request(MultipartRequestBody::BundleFeatures(asked)))?;
        let came = std::mem::take(&mut self.here().came);
        let reported = came.iter().find_map(|(_, message)| match message {
            Message::MultipartReply(MultipartReply {
                body: MultipartReplyBody::BundleFeatures(features),
                ..
            }) => features.properties.iter().find_map(|property| match property {
                BundleFeatureProperty::Time { timestamp, .. } => Some(*timestamp),
                BundleFeatureProperty::Experimenter(_) => None,
            }),
            _ => None,
        });
        let reported = reported.ok_or("the switch does not report its time of day")?;
        let nanos = i128::from(reported.seconds) * 1_000_000_000 + i128::from(reported.nanoseconds);
        let nanos = (nanos + i128::from(after_ms) * 1_000_000).max(0);
        let (seconds, nanoseconds) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
        Ok(WallTime { seconds: seconds as u64, nanoseconds: nanoseconds as u32 })
    }

    /// Reads the ports' MAC addresses from the switch.
    fn macs(&mut self, version: Version) -> Result<BTreeMap<u32, [u8; 6]>, String> {
        let request = match version {
            Version::V1_0 | Version::V1_1 | Version::V1_2 => Message::FeaturesRequest,
            _ => request(MultipartRequestBody::PortDesc(reserved::NONE)),
        };
        self.order(&request)?;
        let came = std::mem::take(&mut self.here().came);
        let ports = came.into_iter().flat_map(|(_, message)| match message {
            Message::FeaturesReply(features) => features.ports,
            Message::MultipartReply(MultipartReply {
                body: MultipartReplyBody::PortDesc(ports),
                ..
            }) => ports,
            _ => Vec::new(),
        });
        Ok(ports.map(|port| (port.number, port.mac)).collect())
    }

    /// Adds entries that differ in a port number.
    fn many(&mut self, count: u32, table: u8) -> Result<(), String> {
        for number in 0..count {
            self.send(&Message::FlowMod(FlowMod { table, ..numbered(number) }))?;
            if number % 100 == 99 {
                self.barrier()?;
            }
        }
        self.barrier()
    }

    /// Adds entries until the switch replies with an error, with a limit.
    fn full(&mut self) -> Result<(), String> {
        for number in 0..FULL_MAX {
            self.send(&Message::FlowMod(numbered(number)))?;
            if number % 512 == 511 {
                self.barrier()?;
                if let Some(first) = self.here().came.first().cloned() {
                    self.here().came = vec![first];
                    return Ok(());
                }
            }
        }
        Err(format!("after {FULL_MAX} entries nothing was refused"))
    }
}

/// Limit of entries, after which a table counts as unlimited.
const FULL_MAX: u32 = 1 << 18;

/// An entry for one pair of UDP ports.
fn numbered(number: u32) -> FlowMod {
    let matching = Match::ANY
        .with(Field::EthType, 0x0800_u32)
        .with(Field::IpProto, 17_u32)
        .with(Field::UdpSrc, number >> 8)
        .with(Field::UdpDst, number & 0xff);
    FlowMod { table: 0, ..FlowMod::add(matching, 7, vec![Action::output(2)]) }
}
