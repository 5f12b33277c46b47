//! A switch by the specification text: a list of entries, frames in sequence, no caching.
//!
//! Source: OpenFlow switch specification 1.3.5, sections 5 and 6.4; 1.5.1, section 5, for newer
//! features. It shares no code with the pipeline under test. Frames are models that are rebuilt
//! after each change, matches are lists of fields, and an action set is sorted action by action.
//!
//! Invariant: [`Switch::decide`] computes the effects of a frame without a change of state, so that
//! the test can try choices that the specification leaves open. [`Switch::commit`] applies the
//! effects.

use std::collections::{BTreeMap, HashMap, VecDeque};

use dataplane::action::Action;
use dataplane::flow::FlowSpec;
use dataplane::forwarder::{NO_COOKIE, PacketInReason};
use dataplane::matching::MatchedFields;
use dataplane::meter::CONTROLLER;
use dataplane::pipeline::OnMiss;
use dataplane::table::TableMiss;
use packet::field::Field;
use packet::frame::PortNo;
use packet::time::Nanos;

use crate::change::change;
use crate::choices::{Choices, Unknown};
use crate::fields::field_of;
use crate::group::{self, Groups};
use crate::meter::{self, Meters, Verdict, count};
use crate::model::Model;
use crate::set::{is_output, output_of, same_kind};

/// An entry, with the match fields as requested.
#[derive(Debug, Clone)]
pub struct Entry {
    pub asked: Vec<MatchedFields>,
    pub spec: FlowSpec,
    pub frames: u64,
    pub bytes: u64,
    pub added_at: Nanos,
    pub matched_at: Nanos,
}

/// A packet-in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    pub port: PortNo,
    pub why: PacketInReason,
    pub bytes_max: Option<u16>,
    pub table: u8,
    pub cookie: u64,
    pub metadata: u64,
    pub tunnel_id: u64,
    pub bytes: Vec<u8>,
}

/// The switch.
#[derive(Debug, Default)]
pub struct Switch {
    pub ports: Vec<PortNo>,
    pub on_miss: Option<OnMiss>,
    pub tables: Vec<TableMiss>,
    /// The first egress table.
    pub first_egress: Option<u8>,
    pub entries: Vec<Entry>,
    pub groups: Groups,
    pub meters: Meters,
    /// For each table, the numbers of frames looked up and matched.
    pub accounts: Vec<(u64, u64)>,
}

/// Observable results of frames.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    pub sent: HashMap<PortNo, Vec<Vec<u8>>>,
    pub told: Vec<Told>,
    /// Frames and bytes of groups, and of their buckets by number.
    pub groups: BTreeMap<(u32, Option<u32>), (u64, u64)>,
}

/// Effects of a frame, including changes in the switch.
#[derive(Debug, Clone, Default)]
pub struct Effects {
    pub seen: Seen,
    /// The tables in which the frame was looked up, and whether it matched.
    lookups: Vec<(u8, bool)>,
    /// The matched entries, each with the frame's length at that time.
    hits: Vec<(usize, u64)>,
    meters: Meters,
}

/// State of a frame in the switch.
#[derive(Debug, Clone)]
struct Visit {
    model: Model,
    in_port: PortNo,
    /// The output port, in egress tables.
    leaving: Option<PortNo>,
    table: u8,
    cookie: u64,
    why: PacketInReason,
    set: Vec<Action>,
}

/// Reason to stop processing a frame.
enum Stop {
    /// The frame is dropped.
    Over,
    /// The next step depends on an unknown choice.
    Ask(Unknown),
}

/// Processing of one frame.
struct Run<'a> {
    switch: &'a Switch,
    choices: &'a Choices,
    now: Nanos,
    effects: Effects,
    /// Frames that wait for the egress tables.
    waiting: VecDeque<Visit>,
}

impl Switch {
    /// Returns the effects of a received frame, if all its choices are known.
    pub fn decide(
        &self,
        in_port: PortNo,
        model: &Model,
        choices: &Choices,
        now: Nanos,
    ) -> Result<Effects, Unknown> {
        let effects = Effects { meters: self.meters.clone(), ..Effects::default() };
        let mut run = Run { switch: self, choices, now, effects, waiting: VecDeque::new() };
        let mut next = Some(Visit {
            model: Model { metadata: 0, tunnel_id: 0, ..model.clone() },
            in_port,
            leaving: None,
            table: 0,
            cookie: NO_COOKIE,
            why: PacketInReason::Action,
            set: Vec::new(),
        });
        while let Some(mut visit) = next {
            match run.visit(&mut visit) {
                // A dropped frame needs no further processing.
                Ok(()) | Err(Stop::Over) => {}
                Err(Stop::Ask(unknown)) => return Err(unknown),
            }
            next = run.waiting.pop_front();
        }
        Ok(run.effects)
    }

    /// Applies the effects.
    pub fn commit(&mut self, effects: Effects, now: Nanos) -> Seen {
        for (table, matched) in effects.lookups {
            let account = &mut self.accounts[usize::from(table)];
            account.0 += 1;
            account.1 += u64::from(matched);
        }
        for (at, bytes) in effects.hits {
            let entry = &mut self.entries[at];
            entry.frames += 1;
            entry.bytes += bytes;
            entry.matched_at = now;
        }
        self.meters = effects.meters;
        effects.seen
    }

    /// Returns the matching entry of the highest priority.
    fn best(&self, visit: &Visit) -> Option<usize> {
        let of_table = |entry: &Entry| entry.spec.table == visit.table;
        let matches = |entry: &Entry| {
            entry.asked.iter().all(|(field, value, mask)| value_of(*field, visit) & mask == *value)
        };
        let candidates = self.entries.iter().enumerate();
        let candidates = candidates.filter(|(_, entry)| of_table(entry) && matches(entry));
        candidates.max_by_key(|(_, entry)| entry.spec.rank).map(|(at, _)| at)
    }
}

impl Run<'_> {
    fn visit(&mut self, visit: &mut Visit) -> Result<(), Stop> {
        loop {
            let best = self.switch.best(visit);
            self.effects.lookups.push((visit.table, best.is_some()));
            let Some(best) = best else {
                let next = visit.table + 1;
                let ends = usize::from(next) == self.switch.tables.len()
                    || self.switch.first_egress == Some(next);
                match self.switch.tables[usize::from(visit.table)] {
                    TableMiss::Continue if !ends => {
                        visit.table = next;
                        continue;
                    }
                    miss => return self.miss(visit, miss),
                }
            };
            self.effects.hits.push((best, visit.model.bytes().len() as u64));
            let spec = &self.switch.entries[best].spec;
            visit.cookie = spec.cookie;
            visit.why =
                if spec.flags.miss { PacketInReason::NoMatch } else { PacketInReason::Action };
            if let Some(meter) = spec.instructions.meter {
                self.meter(meter, visit)?;
            }
            for action in spec.instructions.apply.iter() {
                self.act(action, visit)?;
            }
            if spec.instructions.clear {
                visit.set.clear();
            }
            for action in spec.instructions.write.iter() {
                visit.set.retain(|other| !same_kind(action, other));
                visit.set.push(*action);
            }
            if let Some((value, mask)) = spec.instructions.metadata {
                visit.model.metadata = visit.model.metadata & !mask | value & mask;
            }
            match spec.instructions.goto {
                Some(table) => visit.table = table,
                None => break,
            }
        }
        if visit.why == PacketInReason::Action {
            visit.why = PacketInReason::ActionSet;
        }
        self.act_set(&visit.set.clone(), visit)?;
        if let Some(port) = visit.leaving {
            self.send(port, visit);
        }
        Ok(())
    }

    fn miss(&mut self, visit: &mut Visit, miss: TableMiss) -> Result<(), Stop> {
        let asks = miss == TableMiss::Controller
            || miss == TableMiss::Pipeline && self.switch.on_miss == Some(OnMiss::Controller);
        if asks {
            visit.why = PacketInReason::NoMatch;
            visit.cookie = NO_COOKIE;
            self.tell(visit, None);
        }
        Ok(())
    }

    fn act(&mut self, action: &Action, visit: &mut Visit) -> Result<(), Stop> {
        match *action {
            Action::Output { port } if port != visit.in_port => self.output(port, visit),
            Action::Output { .. } => {}
            Action::InPort => self.output(visit.in_port, visit),
            Action::All | Action::Flood => {
                for port in self.switch.ports.iter().filter(|port| **port != visit.in_port) {
                    self.output(*port, visit);
                }
            }
            Action::Controller { bytes_max } => self.tell(visit, Some(bytes_max)),
            Action::SetQueue(_) => {}
            Action::Group(number) => self.group(number, visit)?,
            Action::Meter(number) => self.meter(number, visit)?,
            _ => {
                if change(action, &mut visit.model).is_err() {
                    visit.why = PacketInReason::InvalidTtl;
                    self.tell(visit, None);
                    return Err(Stop::Over);
                }
            }
        }
        Ok(())
    }

    fn group(&mut self, number: u32, visit: &Visit) -> Result<(), Stop> {
        let bytes = visit.model.bytes().len() as u64;
        count(self.effects.seen.groups.entry((number, None)).or_default(), bytes);
        let groups = &self.switch.groups;
        let buckets = &groups.groups[&number].buckets;
        let places = match groups.places(number) {
            Some(places) => places,
            None => {
                let flow = group::flow(&visit.model);
                let Some(bucket) = self.choices.get(number, &flow) else {
                    let among = groups.among(number);
                    return Err(Stop::Ask(Unknown { group: number, flow, among }));
                };
                let place = |id| buckets.iter().position(|bucket| bucket.id == id);
                bucket.and_then(place).into_iter().collect()
            }
        };
        for place in places {
            let of = (number, Some(buckets[place].id));
            count(self.effects.seen.groups.entry(of).or_default(), bytes);
            let mut copy = Visit { why: PacketInReason::Group, ..visit.clone() };
            match self.act_set(&buckets[place].actions, &mut copy) {
                // The result of one copy does not affect the others.
                Ok(()) | Err(Stop::Over) => {}
                ask => return ask,
            }
        }
        Ok(())
    }

    fn meter(&mut self, number: u32, visit: &mut Visit) -> Result<(), Stop> {
        let bytes = visit.model.bytes().len() as u64;
        let meter = self.effects.meters.get_mut(&number).expect("entries refer to existing meters");
        match meter.measure(bytes, self.now) {
            Verdict::Pass => {}
            Verdict::Drop => return Err(Stop::Over),
            Verdict::Raise(levels) => {
                let dscp = visit.model.get(Field::IpDscp);
                if let Some(raised) = dscp.and_then(|dscp| meter::raised(dscp as u8, levels)) {
                    visit.model.set(Field::IpDscp, raised.into(), 0x3f);
                }
            }
        }
        Ok(())
    }

    /// Executes an action set in the order of the specification. The order in which different tags
    /// are popped is not defined: as in the pipeline, VLAN comes first and PBB last.
    fn act_set(&mut self, set: &[Action], visit: &mut Visit) -> Result<(), Stop> {
        let has_group = set.iter().any(|action| matches!(action, Action::Group(_)));
        let order: [fn(&Action) -> bool; 13] = [
            |action| matches!(action, Action::CopyTtlIn),
            |action| matches!(action, Action::PopVlan),
            |action| matches!(action, Action::PopMpls(_)),
            |action| matches!(action, Action::PopPbb),
            |action| matches!(action, Action::PushMpls(_) | Action::PushMplsBehindVlan(_)),
            |action| matches!(action, Action::PushPbb(_)),
            |action| matches!(action, Action::PushVlan(_)),
            |action| matches!(action, Action::CopyTtlOut),
            |action| matches!(action, Action::DecMplsTtl | Action::DecIpTtl),
            |action| {
                let ttl = matches!(action, Action::SetMplsTtl(_) | Action::SetIpTtl(_));
                ttl || matches!(action, Action::SetField { .. })
            },
            |action| matches!(action, Action::Meter(_) | Action::SetQueue(_)),
            |action| matches!(action, Action::Group(_)),
            is_output,
        ];
        for of_kind in order {
            for action in set.iter().filter(|action| of_kind(action)) {
                if !(has_group && is_output(action)) {
                    self.act(action, visit)?;
                }
            }
        }
        Ok(())
    }

    /// Sends the frame to a port, through the egress tables if there are any.
    fn output(&mut self, port: PortNo, visit: &Visit) {
        match self.switch.first_egress {
            Some(table) if visit.leaving.is_none() => self.waiting.push_back(Visit {
                leaving: Some(port),
                table,
                cookie: NO_COOKIE,
                set: Vec::new(),
                ..visit.clone()
            }),
            _ => self.send(port, visit),
        }
    }

    fn send(&mut self, port: PortNo, visit: &Visit) {
        if self.switch.ports.contains(&port) {
            self.effects.seen.sent.entry(port).or_default().push(visit.model.bytes());
        }
    }

    /// Sends a packet-in, if the controller's meter passes the frame.
    fn tell(&mut self, visit: &Visit, bytes_max: Option<u16>) {
        let mut visit = visit.clone();
        let metered = self.effects.meters.contains_key(&CONTROLLER);
        if metered && self.meter(CONTROLLER, &mut visit).is_err() {
            return;
        }
        self.effects.seen.told.push(Told {
            port: visit.in_port,
            why: visit.why,
            bytes_max,
            table: visit.table,
            cookie: visit.cookie,
            metadata: visit.model.metadata,
            tunnel_id: visit.model.tunnel_id,
            bytes: visit.model.bytes(),
        });
    }
}

/// Returns a field's value, or zero if the frame does not have the field.
fn value_of(field: Field, visit: &Visit) -> u128 {
    match field {
        Field::InPort | Field::InPhyPort => visit.in_port.into(),
        Field::PacketType => 0,
        Field::ActsetOutput => visit.leaving.unwrap_or_else(|| output_of(&visit.set)).into(),
        _ => field_of(field, &visit.model).unwrap_or(0),
    }
}
