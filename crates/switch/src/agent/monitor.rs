//! Flow monitors: controllers that watch entries come, go and change.
//!
//! Source: OpenFlow switch specification 1.4.1, section 7.3.5.19. While too much waits for a
//! controller to read, its news stop and it is told so; what changed meanwhile is told when it has
//! read, each entry once, and then that the news go on.
//!
//! Invariant: a controller that follows the news knows the entries that it watches, or knows that
//! it does not.

use std::collections::{HashMap, VecDeque};

use dataplane::action::Action;
use dataplane::flow::{FlowChange, FlowFilter, FlowRecord, Source};
use dataplane::matching::Match;
use openflow::header::Xid;
use openflow::model::flow::monitor::{
    FlowEvent, FlowMonitorCommand, FlowMonitorFlags, FlowMonitorRequest, FlowUpdate, FlowUpdateFull,
};
use openflow::model::group::GROUP_ANY;
use openflow::model::table::TABLE_ALL;
use openflow::version::{ErrorCode, Version};

use crate::lower;
use crate::lower::action::destination_down;

/// Entries whose changes are kept while the news are stopped. A controller that misses more cannot
/// be told what it missed, and its connection ends.
pub const MISSED_MAX: usize = 65_536;

/// The monitors of one connection, and what it has yet to be told.
#[derive(Debug, Default)]
pub struct Monitors {
    all: Vec<Monitor>,
    /// What has to be told, in order.
    pub news: VecDeque<FlowUpdate>,
    held: Option<Held>,
    /// The own order that was told last in short, so that each is told once.
    abbreviated: Option<Xid>,
    /// More changes were missed than can be kept.
    pub lost: bool,
}

/// One monitor.
#[derive(Debug, Clone)]
pub struct Monitor {
    request: FlowMonitorRequest,
    matching: Match,
}

/// What names an entry: its table, its rank and its match.
type Name = (u8, u32, Match);

/// What changed while the news are stopped, each entry once.
#[derive(Debug, Default)]
struct Held {
    /// Whether the controller knows that they are.
    told: bool,
    places: HashMap<Name, usize>,
    changes: Vec<Option<FlowUpdateFull>>,
}

impl Monitor {
    /// The monitor that a request of this version describes.
    pub fn new(request: FlowMonitorRequest, version: Version) -> Result<Self, ErrorCode> {
        let (matching, _) = lower::match_down(&request.matching, version)?;
        Ok(Monitor { request, matching })
    }

    /// Whether it tells of the entries that there are at its beginning.
    pub fn tells_initial(&self) -> bool {
        self.has(FlowMonitorFlags::INITIAL)
    }

    /// The entries that it watches.
    pub fn filter(&self) -> FlowFilter {
        FlowFilter {
            table: (self.request.table != TABLE_ALL).then_some(self.request.table),
            matching: self.matching,
            destination: destination_down(self.request.out_port),
            group: (self.request.out_group != GROUP_ANY).then_some(self.request.out_group),
            ..FlowFilter::ALL
        }
    }

    /// What it tells of an entry.
    pub fn update(&self, flow: &FlowRecord, event: FlowEvent) -> FlowUpdateFull {
        let told = lower::flow_stats_up(flow, false);
        let full =
            self.has(FlowMonitorFlags::INSTRUCTIONS) && !matches!(event, FlowEvent::Removed(_));
        FlowUpdateFull {
            event,
            table: told.table,
            matching: told.matching,
            priority: told.priority,
            cookie: told.cookie,
            idle_timeout_s: told.idle_timeout_s,
            hard_timeout_s: told.hard_timeout_s,
            instructions: if full { told.instructions } else { Vec::new() },
        }
    }

    fn has(&self, flag: FlowMonitorFlags) -> bool {
        self.request.flags.contains(flag)
    }

    fn watches(&self, flow: &FlowRecord) -> bool {
        let filter = self.filter();
        let sends = |to: &Action| flow.instructions.actions().any(|it| it.same_destination(to));
        filter.table.is_none_or(|table| table == flow.table)
            && filter.matching.covers(&flow.matching)
            && filter.destination.as_ref().is_none_or(&sends)
            && filter.group.is_none_or(|group| sends(&Action::Group(group)))
    }

    fn wants(&self, event: FlowEvent) -> bool {
        self.has(match event {
            FlowEvent::Initial => FlowMonitorFlags::INITIAL,
            FlowEvent::Added => FlowMonitorFlags::ADD,
            FlowEvent::Removed(_) => FlowMonitorFlags::REMOVED,
            FlowEvent::Modified => FlowMonitorFlags::MODIFY,
        })
    }
}

impl Monitors {
    /// Whether nothing is watched.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Does what these requests of this version ask, all of it or nothing; the monitors that are new or changed are
    /// given back, to tell what there is at their beginning.
    pub fn set_all(
        &mut self,
        requests: &[FlowMonitorRequest],
        version: Version,
        monitors_max: usize,
    ) -> Result<Vec<Monitor>, ErrorCode> {
        let before = self.all.clone();
        let mut begun = Vec::new();
        for request in requests {
            match self.set(request, version, monitors_max) {
                Ok(monitor) => begun.extend(monitor),
                Err(error) => {
                    self.all = before;
                    return Err(error);
                }
            }
        }
        Ok(begun)
    }

    fn set(
        &mut self,
        request: &FlowMonitorRequest,
        version: Version,
        monitors_max: usize,
    ) -> Result<Option<Monitor>, ErrorCode> {
        let place = self.all.iter().position(|monitor| monitor.request.id == request.id);
        match (request.command, place) {
            (FlowMonitorCommand::Add, Some(_)) => Err(ErrorCode::FlowMonitorExists),
            (FlowMonitorCommand::Add, None) if self.all.len() >= monitors_max => {
                Err(ErrorCode::FlowMonitorUnknown)
            }
            (FlowMonitorCommand::Add, None) => {
                self.all.push(Monitor::new(request.clone(), version)?);
                Ok(self.all.last().cloned())
            }
            (FlowMonitorCommand::Modify, Some(place)) => {
                self.all[place] = Monitor::new(request.clone(), version)?;
                Ok(Some(self.all[place].clone()))
            }
            (FlowMonitorCommand::Delete, Some(place)) => {
                self.all.remove(place);
                Ok(None)
            }
            (_, None) => Err(ErrorCode::FlowMonitorUnknownMonitor),
        }
    }

    /// Takes note of a change that was ordered by `source`, for a controller with this number.
    pub fn note(
        &mut self,
        flow: &FlowRecord,
        change: FlowChange,
        source: Option<Source>,
        owner: u32,
    ) {
        let event = match change {
            FlowChange::Added => FlowEvent::Added,
            FlowChange::Modified => FlowEvent::Modified,
            FlowChange::Removed(why) => FlowEvent::Removed(lower::flow::reason_up(why)),
        };
        let own = source.filter(|source| source.owner == owner);
        let wanted = |monitor: &&Monitor| {
            monitor.wants(event)
                && monitor.watches(flow)
                && (own.is_some() || !monitor.has(FlowMonitorFlags::ONLY_OWN))
        };
        let Some(monitor) = self.all.iter().find(wanted) else { return };
        let in_full = monitor.has(FlowMonitorFlags::NO_ABBREVIATION);
        match own.filter(|_| !in_full && self.held.is_none()) {
            Some(source) => self.abbreviate(source.xid),
            None => {
                let update = monitor.update(flow, event);
                self.tell((flow.table, flow.rank, flow.matching), update);
            }
        }
    }

    fn abbreviate(&mut self, xid: Xid) {
        if self.abbreviated.replace(xid) != Some(xid) {
            self.news.push_back(FlowUpdate::Abbreviated { xid });
        }
    }

    fn tell(&mut self, name: Name, update: FlowUpdateFull) {
        self.abbreviated = None;
        match &mut self.held {
            None => self.news.push_back(FlowUpdate::Full(update)),
            Some(held) => {
                held.keep(name, update);
                self.lost |= held.changes.len() > MISSED_MAX;
            }
        }
    }

    /// Stops the news: silently while older news are still being told, else the controller is told.
    pub fn hold(&mut self, silently: bool) {
        let held = self.held.get_or_insert_default();
        if !silently && !std::mem::replace(&mut held.told, true) {
            self.news.push_back(FlowUpdate::Paused);
        }
    }

    /// Whether the news are stopped.
    pub fn is_held(&self) -> bool {
        self.held.is_some()
    }

    /// Lets the news go on, with what was missed first.
    pub fn release(&mut self) {
        let Some(held) = self.held.take() else { return };
        self.news.extend(held.changes.into_iter().flatten().map(FlowUpdate::Full));
        if held.told {
            self.news.push_back(FlowUpdate::Resumed);
        }
    }
}

impl Held {
    /// Keeps what became of an entry together with what became of it before.
    fn keep(&mut self, name: Name, mut update: FlowUpdateFull) {
        let place = *self.places.entry(name).or_insert_with(|| {
            self.changes.push(None);
            self.changes.len() - 1
        });
        let before = self.changes[place].take().map(|before| before.event);
        // An entry that came may have replaced one that is known, so that its end is told as well.
        if (before, update.event) == (Some(FlowEvent::Added), FlowEvent::Modified) {
            update.event = FlowEvent::Added;
        }
        self.changes[place] = Some(update);
    }
}
