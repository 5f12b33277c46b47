//! Description of a switch from its own replies, and the OpenFlow versions that it supports.
//!
//! Source: costa2017, table I; OpenFlow 1.0.0 sections 5.3.1 and 5.3.5, 1.3.5 sections 7.3.1, 7.3.5.1 and 7.3.5.13.
//!
//! Method: the module requests features, description and ports on one connection. It then opens a connection for
//! each version alone, which succeeds or fails. Texts become notes to their size in bytes. A target without
//! OpenFlow gets no requests; its ports are those that the tester is connected to.
//!
//! Invariant: values without a reply before the timeout are left out.

use openflow::model::message::Message;
use openflow::model::multipart::{MultipartReplyBody, MultipartRequestBody};
use openflow::model::reserved;
use openflow::model::switch::Features;
use openflow::version::Version;
use packet::time::Nanos;
use tester::module::{
    Connection, Ended, Event, EventKind, MeasuredValue, Module, ModuleContext, ModuleRequirements,
    TimerId,
};

use super::rounds::{ModulePoint, RepeatedModule};
use super::updates::{PATIENCE, VERSION, versions};
use crate::show::Chart;
use crate::{Context, Method};
use workload::Technology;
use workload::parameter::declaration::Parameter;

/// Name of the axis, which has a single position.
pub const AXIS: &str = "switch";

/// Maximum length of a stored text, in bytes.
const TEXT_BYTES_MAX: usize = 256;

/// Parameters of the experiment.
pub const PARAMETERS: &[Parameter] = &[VERSION, PATIENCE];

/// Values that the report shows.
pub const SHOWS: &[Chart] = &[Chart::values(
    "Number of ports, tables and OpenFlow versions",
    &["ports_count", "tables_count", "versions_count"],
    &["buffers_count"],
)];

/// State of the module.
pub struct IdentificationState {
    versions: Vec<Version>,
    patience: Nanos,
    /// Whether the target has OpenFlow.
    is_asked: bool,
    timer: Option<TimerId>,
    features: Option<Features>,
    /// Manufacturer, hardware and software.
    texts: Option<[String; 3]>,
    ports: Option<usize>,
    /// Number of the connection being opened, from 1, and the versions that succeeded.
    trying: usize,
    spoken: Vec<Version>,
}

impl IdentificationState {
    /// Creates the module, on a connection with one of these versions.
    pub fn new(versions: Vec<Version>, patience: Nanos) -> IdentificationState {
        IdentificationState {
            versions,
            patience,
            is_asked: true,
            timer: None,
            features: None,
            texts: None,
            ports: None,
            trying: 0,
            spoken: Vec::new(),
        }
    }

    /// Creates the module for a target without OpenFlow.
    pub fn unasked() -> IdentificationState {
        IdentificationState {
            is_asked: false,
            ..IdentificationState::new(Vec::new(), Nanos::from_secs(1))
        }
    }

    fn wait(&mut self, context: &mut ModuleContext) {
        self.timer.take().map(|timer| context.cancel(timer));
        self.timer = Some(context.timer_in(self.patience));
    }

    fn ask(&mut self, version: Option<Version>, context: &mut ModuleContext) {
        context.send(0, Message::ask(MultipartRequestBody::Desc));
        if version >= Some(Version::V1_3) {
            context.send(0, Message::ask(MultipartRequestBody::PortDesc(reserved::NONE)));
        }
        context.send(0, Message::BarrierRequest);
        self.wait(context);
    }

    /// Opens a connection with the next version.
    fn next(&mut self, context: &mut ModuleContext) {
        if self.trying > 0 {
            context.disconnect(self.trying);
        }
        self.trying += 1;
        if self.trying > Version::SUPPORTED.len() {
            return context.end();
        }
        context.connect(self.trying);
        self.wait(context);
    }

    fn hear(&mut self, body: &MultipartReplyBody) {
        match body {
            MultipartReplyBody::Desc(it) => {
                let texts = [&it.manufacturer, &it.hardware, &it.software];
                self.texts = Some(texts.map(|text| told(&text.to_string())));
            }
            MultipartReplyBody::PortDesc(ports) => {
                let real = ports.iter().filter(|port| port.number < reserved::MAX).count();
                *self.ports.get_or_insert(0) += real;
            }
            _ => {}
        }
    }

    fn tell(&self, context: &mut ModuleContext) {
        let count =
            |name: &'static str, value: usize| MeasuredValue::new(name, "count", value as f64, 0.0);
        if let Some(features) = &self.features {
            context.measured(count("tables_count", features.tables.into()));
            context.measured(count("buffers_count", features.buffers as usize));
        }
        let listed = |features: &Features| {
            features.ports.iter().filter(|port| port.number < reserved::MAX).count()
        };
        if let Some(ports) = self.ports.or_else(|| self.features.as_ref().map(listed)) {
            context.measured(count("ports_count", ports));
        }
        if !self.is_asked {
            return;
        }
        for (name, text) in NAMES.into_iter().zip(self.texts.iter().flatten()) {
            let bytes = MeasuredValue::new(name, "bytes", text.len() as f64, 0.0);
            context.measured(bytes.noting(text.clone()));
        }
        let spoken = self.spoken.iter().map(ToString::to_string).collect::<Vec<_>>();
        let versions = count("versions_count", spoken.len());
        context.measured(if spoken.is_empty() {
            versions
        } else {
            versions.noting(spoken.join(", "))
        });
    }
}

/// Metric names of the texts.
const NAMES: [&str; 3] = ["manufacturer_bytes", "hardware_bytes", "software_bytes"];

/// Returns a text of the switch on one line.
fn told(text: &str) -> String {
    let plain: String = text.chars().map(|it| if it.is_control() { ' ' } else { it }).collect();
    let end = (0..=TEXT_BYTES_MAX.min(plain.len())).rev().find(|end| plain.is_char_boundary(*end));
    plain[..end.unwrap_or(0)].trim().to_string()
}

impl Module for IdentificationState {
    fn needs(&self) -> ModuleRequirements {
        if !self.is_asked {
            return ModuleRequirements {
                connections: Vec::new(),
                ..ModuleRequirements::new(self.patience)
            };
        }
        let rounds = Version::SUPPORTED.len() as u64 + 2;
        let limit = Nanos(self.patience.0.saturating_mul(rounds));
        let needs = ModuleRequirements::new(limit).in_versions(&self.versions);
        let one = |version: &Version| Connection {
            versions: vec![*version],
            opens: false,
            ..Connection::new(0)
        };
        let connections =
            needs.connections.iter().cloned().chain(Version::SUPPORTED.iter().map(one));
        ModuleRequirements {
            connections: connections.collect(),
            stops_on_disconnect: false,
            ..needs
        }
    }

    fn react(&mut self, event: &Event<'_>, context: &mut ModuleContext) {
        match event.what {
            EventKind::Start(facts) if !self.is_asked => {
                self.ports = Some(facts.ports.iter().filter(|it| it.joined.is_some()).count());
                context.end();
            }
            EventKind::Start(facts) => {
                let first = facts.connections.first();
                self.features = first.and_then(|it| it.features.clone());
                self.ask(facts.version(0), context);
            }
            EventKind::Message {
                connection: 0, message: Message::MultipartReply(part), ..
            } => {
                self.hear(&part.body);
            }
            EventKind::Message { connection: 0, message: Message::BarrierReply, .. }
                if self.trying == 0 =>
            {
                self.next(context);
            }
            EventKind::Connected { connection, facts } if connection == self.trying => {
                self.spoken.extend(facts.version);
                self.next(context);
            }
            EventKind::Disconnected { connection, .. } if connection == self.trying => {
                self.next(context)
            }
            EventKind::Timer(timer) if self.timer == Some(timer) => self.next(context),
            _ => {}
        }
    }

    fn finish(&mut self, _ended: &Ended, context: &mut ModuleContext) {
        self.tell(context);
    }
}

/// Creates the method for one target; it runs once.
pub fn method(context: &Context) -> Box<dyn Method> {
    let versions = versions(context);
    let patience = Nanos::from_secs_f64(context.parameters.own.number(&PATIENCE).min(5.0));
    let is_asked = context.technology == Technology::OpenFlow;
    let make = move |_| match is_asked {
        true => Box::new(IdentificationState::new(versions.clone(), patience)) as Box<dyn Module>,
        false => Box::new(IdentificationState::unasked()) as Box<dyn Module>,
    };
    let mut once = context.clone();
    once.parameters.repeats = 1;
    Box::new(RepeatedModule::new(&once, AXIS, vec![ModulePoint::new(1.0, 1.0, make)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_one_line_and_limited() {
        assert_eq!(told("a\nb\u{0} "), "a b");
        assert_eq!(told(&"é".repeat(200)).len(), TEXT_BYTES_MAX);
    }
}
