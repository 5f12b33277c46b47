//! Tests of both ends against each other, and of the behavior of other implementations (RFC 6053,
//! RFC 6984).

mod life;
mod requests;

use std::time::Duration;

use super::memory::Memory;
use super::*;
use crate::library;
use crate::model::value::Value;
use crate::wire::*;

const FE: Id = Id(2);
const CE: Id = Id(0x4000_0001);
const CE2: Id = Id(0x4000_0002);
const LPM: u32 = 10;
const DISPATCH: u32 = 16;

fn ms(milliseconds: u64) -> Timestamp {
    Duration::from_millis(milliseconds)
}

fn settings() -> FeSettings {
    FeSettings {
        id: FE,
        primary: CE,
        backups: Vec::new(),
        ha_mode: 0,
        goes_on: false,
        goes_on_for_ms: 300_000,
        forwards: false,
        name: "test".into(),
        vendor: "us".into(),
        model: "memory".into(),
    }
}

/// An element and some control elements, connected without delay.
struct Net {
    fe: Fe,
    element: Memory,
    ces: Vec<(Id, Option<Ce>)>,
    /// Unreachable control elements.
    dead: Vec<Id>,
    now: Timestamp,
    fe_events: Vec<FeEvent>,
    ce_events: Vec<(Id, CeEvent)>,
    messages: usize,
}

impl Net {
    fn new(settings: &FeSettings) -> Net {
        let mut ids = vec![settings.primary];
        ids.extend(&settings.backups);
        let mut net = Net {
            fe: Fe::new(settings, ms(0)),
            element: Memory::new(&[LPM, DISPATCH]),
            ces: ids.into_iter().map(|id| (id, None)).collect(),
            dead: Vec::new(),
            now: ms(0),
            fe_events: Vec::new(),
            ce_events: Vec::new(),
            messages: 0,
        };
        net.run();
        net
    }

    fn ce(&mut self, id: Id) -> &mut Ce {
        let found = self.ces.iter_mut().find(|(it, _)| *it == id);
        found.and_then(|(_, ce)| ce.as_mut()).expect("there is a connection")
    }

    /// Delivers messages and events until there are none.
    fn run(&mut self) {
        loop {
            let mut moved = false;
            while let Some(event) = self.fe.poll_event() {
                moved = true;
                match event {
                    FeEvent::Connect(id) if self.dead.contains(&id) => {
                        self.fe.connect_failed(id, &mut self.element, self.now);
                    }
                    FeEvent::Connect(id) => {
                        let ce = Ce::new(CeSettings::new(id), self.now);
                        self.ces.iter_mut().find(|(it, _)| *it == id).unwrap().1 = Some(ce);
                        self.fe.connected(id, self.now);
                    }
                    FeEvent::Disconnect(id) => {
                        self.pass(id);
                        if let Some((_, ce)) = self.ces.iter_mut().find(|(it, _)| *it == id) {
                            *ce = None;
                        }
                    }
                    _ => {}
                }
                self.fe_events.push(event);
            }
            for id in self.ces.iter().map(|(id, _)| *id).collect::<Vec<_>>() {
                moved |= self.pass(id);
            }
            if !moved {
                return;
            }
        }
    }

    fn pass(&mut self, id: Id) -> bool {
        let mut moved = false;
        let Some(ce) =
            self.ces.iter_mut().find(|(it, _)| *it == id).and_then(|(_, ce)| ce.as_mut())
        else {
            return false;
        };
        while let Some((channel, bytes)) = self.fe.poll_transmit(id) {
            self.messages += 1;
            ce.receive(channel, &bytes, self.now);
            moved = true;
        }
        while let Some((channel, bytes)) = ce.poll_transmit() {
            self.fe.receive(id, channel, &bytes, &mut self.element, self.now);
            moved = true;
        }
        while let Some(event) = ce.poll_event() {
            self.ce_events.push((id, event));
            moved = true;
        }
        moved
    }

    /// Advances the time, timer by timer.
    fn wait(&mut self, milliseconds: u64) {
        let end = self.now + ms(milliseconds);
        loop {
            let ces = self.ces.iter().filter_map(|(_, ce)| ce.as_ref()?.next_timeout());
            let next = ces.chain(self.fe.next_timeout()).min();
            let Some(next) = next.filter(|next| *next <= end) else { break };
            self.now = self.now.max(next);
            self.fe.tick(&mut self.element, self.now);
            let now = self.now;
            self.ces.iter_mut().filter_map(|(_, ce)| ce.as_mut()).for_each(|ce| ce.tick(now));
            self.run();
        }
        self.now = end;
    }

    /// Disconnects a control element and makes it unreachable.
    fn kill(&mut self, id: Id) {
        self.dead.push(id);
        self.ces.iter_mut().find(|(it, _)| *it == id).unwrap().1 = None;
        self.fe.disconnected(id, &mut self.element, self.now);
        self.run();
    }

    fn answer(&mut self, correlator: u64) -> Answer {
        self.run();
        let found = self.ce_events.iter().find_map(|(_, event)| match event {
            CeEvent::Answered(answer) if answer.correlator == correlator => Some(answer.clone()),
            _ => None,
        });
        found.expect("it was answered")
    }

    /// Queries a value and returns it as text.
    fn get(&mut self, class: &str, path: &str) -> String {
        let catalog = library::standard();
        let place = place(class, path);
        let correlator = self.ce(CE).get(&place).unwrap();
        let answer = self.answer(correlator);
        let class = catalog.class(class).unwrap();
        match answer.values(&catalog).unwrap().get(&place) {
            Some(value) => {
                let Ok(crate::model::Target::Value { data_type, .. }) = class.target(&place.path)
                else {
                    panic!("{path}")
                };
                data_type.show(value).to_string()
            }
            None => format!("! {}", answer.failures()[0].1),
        }
    }

    /// Sets a value and returns the failures.
    fn set(&mut self, class: &str, path: &str, text: &str) -> Vec<ResultCode> {
        let select = set(class, path, text);
        let correlator = self.ce(CE).configure(vec![select], Mode::AllOrNone).unwrap();
        self.answer(correlator).failures().into_iter().map(|(_, code)| code).collect()
    }

    /// Sends a message that [`Ce`] does not send, and returns the responses.
    fn raw(&mut self, body: Body, flags: Flags, channel: Channel) -> Vec<Message> {
        let header = Header { source: CE, destination: FE, correlator: 77, flags };
        let mut bytes = Vec::new();
        encode(&Message { header, body }, &mut bytes).unwrap();
        self.fe.receive(CE, channel, &bytes, &mut self.element, self.now);
        let sent = std::iter::from_fn(|| self.fe.poll_transmit(CE));
        sent.map(|(_, bytes)| decode(&bytes).unwrap()).collect()
    }
}

fn place(class: &str, path: &str) -> Place {
    let catalog = library::standard();
    let class = catalog.class(class).unwrap();
    Place { class: class.id, instance: 1, path: class.path(path).unwrap() }
}

fn set_with(kind: OperationKind, class: &str, path: &str, text: &str) -> Select {
    let catalog = library::standard();
    let place = place(class, path);
    let class = catalog.class(class).unwrap();
    let Ok(crate::model::Target::Value { data_type, .. }) = class.target(&place.path) else {
        panic!("{path}")
    };
    let data = match kind {
        OperationKind::Delete => Data::None,
        _ => data::write(data_type, &data_type.parse(text).unwrap()).unwrap(),
    };
    let operation = Operation::on(kind, vec![PathData::with(place.path, data)]);
    Select::one(class.id, 1, operation)
}

fn set(class: &str, path: &str, text: &str) -> Select {
    set_with(OperationKind::Set, class, path, text)
}

const ROW: &str = "{1=5, 2=0}";
