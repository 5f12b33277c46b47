//! A switch straight from the text: entries in a list, one frame at a time, everything looked at
//! anew.
//!
//! Source: OpenFlow switch specification 1.3.5, sections 5 and 6.4; 1.5.1, section 5, for what is newer.
//! It shares no code with the pipeline that it judges: frames are models that are built anew after
//! each change, matches are lists of fields, and an action set is put into order action by action.

use std::collections::HashMap;

use dataplane::action::Action;
use dataplane::flow::FlowSpec;
use dataplane::forwarder::{NO_COOKIE, PacketInReason};
use dataplane::group::GroupKind;
use dataplane::matching::Asked;
use dataplane::pipeline::OnMiss;
use dataplane::table::TableMiss;
use packet::field::Field;
use packet::frame::PortNo;
use packet::header::ipv4;

use crate::change::change;
use crate::model::{Model, Network, Transport};

/// An entry, with the fields of its match as they were asked for.
#[derive(Debug, Clone)]
pub struct Entry {
    pub asked: Vec<Asked>,
    pub spec: FlowSpec,
    pub frames: u64,
    pub bytes: u64,
}

/// What a controller is told of a frame.
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
    pub entries: Vec<Entry>,
    pub groups: HashMap<u32, (Option<GroupKind>, Vec<Vec<Action>>)>,
    pub sent: HashMap<PortNo, Vec<Vec<u8>>>,
    pub told: Vec<Told>,
    /// For each table, frames looked up and matched.
    pub accounts: Vec<(u64, u64)>,
}

/// A frame in the switch.
#[derive(Debug, Clone)]
struct Visit {
    model: Model,
    in_port: PortNo,
    table: u8,
    cookie: u64,
    why: PacketInReason,
    set: Vec<Action>,
}

/// The frame is gone.
struct Over;

impl Switch {
    /// A frame comes in.
    pub fn receive(&mut self, in_port: PortNo, model: &Model) {
        let mut visit = Visit {
            model: Model { metadata: 0, tunnel_id: 0, ..model.clone() },
            in_port,
            table: 0,
            cookie: NO_COOKIE,
            why: PacketInReason::Action,
            set: Vec::new(),
        };
        // A frame that is gone is no concern of ours.
        let _: Result<(), Over> = self.visit(&mut visit);
    }

    fn visit(&mut self, visit: &mut Visit) -> Result<(), Over> {
        loop {
            let bytes = visit.model.bytes().len() as u64;
            let best = self.best(visit);
            let account = &mut self.accounts[usize::from(visit.table)];
            account.0 += 1;
            let Some(best) = best else {
                match self.tables[usize::from(visit.table)] {
                    TableMiss::Continue if usize::from(visit.table) + 1 < self.tables.len() => {
                        visit.table += 1;
                        continue;
                    }
                    miss => return self.miss(visit, miss),
                }
            };
            account.1 += 1;
            self.entries[best].frames += 1;
            self.entries[best].bytes += bytes;
            let spec = self.entries[best].spec.clone();
            visit.cookie = spec.cookie;
            visit.why =
                if spec.flags.miss { PacketInReason::NoMatch } else { PacketInReason::Action };
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
        self.act_set(&visit.set.clone(), visit)
    }

    /// The entry of the highest priority that matches.
    fn best(&self, visit: &Visit) -> Option<usize> {
        let of_table = |entry: &Entry| entry.spec.table == visit.table;
        let matches = |entry: &Entry| {
            entry.asked.iter().all(|(field, value, mask)| value_of(*field, visit) & mask == *value)
        };
        let candidates = self.entries.iter().enumerate();
        let candidates = candidates.filter(|(_, entry)| of_table(entry) && matches(entry));
        candidates.max_by_key(|(_, entry)| entry.spec.rank).map(|(at, _)| at)
    }

    fn miss(&mut self, visit: &mut Visit, miss: TableMiss) -> Result<(), Over> {
        let asks = miss == TableMiss::Controller
            || miss == TableMiss::Pipeline && self.on_miss == Some(OnMiss::Controller);
        if asks {
            visit.why = PacketInReason::NoMatch;
            visit.cookie = NO_COOKIE;
            self.tell(visit, None);
        }
        Ok(())
    }

    fn act(&mut self, action: &Action, visit: &mut Visit) -> Result<(), Over> {
        match *action {
            Action::Output { port } if port != visit.in_port => self.send(port, visit),
            Action::Output { .. } => {}
            Action::InPort => self.send(visit.in_port, visit),
            Action::All | Action::Flood => {
                for port in self.ports.clone() {
                    if port != visit.in_port {
                        self.send(port, visit);
                    }
                }
            }
            Action::Controller { bytes_max } => self.tell(visit, Some(bytes_max)),
            Action::SetQueue(_) => {}
            Action::Group(number) => {
                for bucket in self.groups[&number].1.clone() {
                    let mut copy = visit.clone();
                    copy.why = PacketInReason::Group;
                    // What becomes of a copy does not matter to the others.
                    let _: Result<(), Over> = self.act_set(&bucket, &mut copy);
                }
            }
            _ => {
                if change(action, &mut visit.model).is_err() {
                    visit.why = PacketInReason::InvalidTtl;
                    self.tell(visit, None);
                    return Err(Over);
                }
            }
        }
        Ok(())
    }

    /// Does a set in the order of the text.
    fn act_set(&mut self, set: &[Action], visit: &mut Visit) -> Result<(), Over> {
        let has_group = set.iter().any(|action| matches!(action, Action::Group(_)));
        let order: [fn(&Action) -> bool; 11] = [
            |action| matches!(action, Action::CopyTtlIn),
            |action| matches!(action, Action::PopVlan | Action::PopMpls(_) | Action::PopPbb),
            |action| matches!(action, Action::PushMpls(_) | Action::PushMplsBehindVlan(_)),
            |action| matches!(action, Action::PushPbb(_)),
            |action| matches!(action, Action::PushVlan(_)),
            |action| matches!(action, Action::CopyTtlOut),
            |action| matches!(action, Action::DecMplsTtl | Action::DecIpTtl),
            |action| {
                let ttl = matches!(action, Action::SetMplsTtl(_) | Action::SetIpTtl(_));
                ttl || matches!(action, Action::SetField { .. })
            },
            |action| matches!(action, Action::SetQueue(_)),
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

    fn send(&mut self, port: PortNo, visit: &Visit) {
        if self.ports.contains(&port) {
            self.sent.entry(port).or_default().push(visit.model.bytes());
        }
    }

    fn tell(&mut self, visit: &Visit, bytes_max: Option<u16>) {
        self.told.push(Told {
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

/// Whether an action takes another's place in an action set.
fn same_kind(one: &Action, other: &Action) -> bool {
    let push =
        |action: &Action| matches!(action, Action::PushMpls(_) | Action::PushMplsBehindVlan(_));
    match (one, other) {
        (Action::SetField { field, .. }, Action::SetField { field: same, .. }) => field == same,
        _ if is_output(one) => is_output(other),
        _ if push(one) => push(other),
        _ => std::mem::discriminant(one) == std::mem::discriminant(other),
    }
}

fn is_output(action: &Action) -> bool {
    let controller = matches!(action, Action::Controller { .. });
    controller
        || matches!(action, Action::Output { .. } | Action::InPort | Action::All | Action::Flood)
}

/// A field's value; of a field that the frame does not have, zero.
fn value_of(field: Field, visit: &Visit) -> u128 {
    match field {
        Field::InPort | Field::InPhyPort => visit.in_port.into(),
        Field::PacketType => 0,
        _ => field_of(field, &visit.model).unwrap_or(0),
    }
}

/// The value by which a frame matches.
pub fn field_of(field: Field, model: &Model) -> Option<u128> {
    let transport = field >= Field::TcpSrc && field <= Field::Icmpv4Code
        || field >= Field::Icmpv6Type && field <= Field::Ipv6NdTll
        || field == Field::TcpFlags;
    if field == Field::IpProto {
        return if model.bare() { protocol(model) } else { None };
    }
    if transport && is_fragment(model) { None } else { model.get(field) }
}

fn is_fragment(model: &Model) -> bool {
    match &model.network {
        Network::Ipv4(header) => header.more_fragments || header.fragment_offset != 0,
        _ => false,
    }
}

fn protocol(model: &Model) -> Option<u128> {
    let number = match (&model.network, &model.transport) {
        (Network::Ipv4(header), Transport::None) => header.protocol,
        (Network::Ipv4(_) | Network::Ipv6(..), transport) => match transport {
            Transport::Tcp(_) => ipv4::PROTOCOL_TCP,
            Transport::Udp(..) => ipv4::PROTOCOL_UDP,
            Transport::Sctp(..) => ipv4::PROTOCOL_SCTP,
            Transport::Icmp(_) => ipv4::PROTOCOL_ICMP,
            Transport::Icmpv6(_) | Transport::Neighbour(..) => ipv4::PROTOCOL_ICMPV6,
            Transport::None => return None,
        },
        _ => return None,
    };
    Some(number.into())
}
