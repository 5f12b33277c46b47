//! Flow monitors: notify controllers when flow entries are added, modified and removed.
//!
//! Source: OpenFlow switch specification 1.4.1, section 7.3.5.19. While a controller's send queue
//! is full, the updates pause and the controller is notified of it. When it has read the queue, it
//! receives the missed changes, each flow entry once, and then a message that the updates resume.
//!
//! Invariant: a controller that follows the updates knows the flow entries that it monitors, or
//! knows that it does not.

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

use crate::translate;
use crate::translate::action::destination_down;

/// Maximum number of flow entries whose changes are kept during a pause. If a controller misses
/// more, its connection ends.
pub const MISSED_MAX: usize = 65_536;

/// Flow monitors of one connection, and pending updates.
#[derive(Debug, Default)]
pub struct Monitors {
    all: Vec<Monitor>,
    /// Pending updates, in order.
    pub news: VecDeque<FlowUpdate>,
    held: Option<PendingChanges>,
    /// The controller's own request that was last reported in abbreviated form, so that each is
    /// reported once.
    abbreviated: Option<Xid>,
    /// Whether more changes were missed than [`MISSED_MAX`].
    pub lost: bool,
}

/// One flow monitor.
#[derive(Debug, Clone)]
pub struct Monitor {
    request: FlowMonitorRequest,
    matching: Match,
}

/// Identity of a flow entry: its table, its rank and its match.
type Name = (u8, u32, Match);

/// Changes during a pause, each flow entry once.
#[derive(Debug, Default)]
struct PendingChanges {
    /// Whether the controller was notified of the pause.
    told: bool,
    places: HashMap<Name, usize>,
    changes: Vec<Option<FlowUpdateFull>>,
}

impl Monitor {
    /// Creates the monitor of a request of this version.
    pub fn new(request: FlowMonitorRequest, version: Version) -> Result<Self, ErrorCode> {
        let (matching, _) = translate::match_down(&request.matching, version)?;
        Ok(Monitor { request, matching })
    }

    /// Whether the controller requests the existing flow entries.
    pub fn tells_initial(&self) -> bool {
        self.has(FlowMonitorFlags::INITIAL)
    }

    /// Returns the filter of the flow entries that it monitors.
    pub fn filter(&self) -> FlowFilter {
        FlowFilter {
            table: (self.request.table != TABLE_ALL).then_some(self.request.table),
            matching: self.matching,
            destination: destination_down(self.request.out_port),
            group: (self.request.out_group != GROUP_ANY).then_some(self.request.out_group),
            ..FlowFilter::ALL
        }
    }

    /// Returns the update for a flow entry.
    pub fn update(&self, flow: &FlowRecord, event: FlowEvent) -> FlowUpdateFull {
        let told = translate::flow_stats_up(flow, false);
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
    /// Whether there are no monitors.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Processes these requests, all or none. Returns the monitors that are new or modified, for
    /// their initial flow entries.
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

    /// Records a change by `source` for the controller of connection `owner`.
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
            FlowChange::Removed(why) => FlowEvent::Removed(translate::flow::reason_up(why)),
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

    /// Pauses the updates: silently while initial updates are still being sent, else the controller
    /// is notified.
    pub fn hold(&mut self, silently: bool) {
        let held = self.held.get_or_insert_default();
        if !silently && !std::mem::replace(&mut held.told, true) {
            self.news.push_back(FlowUpdate::Paused);
        }
    }

    /// Whether the updates are paused.
    pub fn is_held(&self) -> bool {
        self.held.is_some()
    }

    /// Resumes the updates, starting with the missed changes.
    pub fn release(&mut self) {
        let Some(held) = self.held.take() else { return };
        self.news.extend(held.changes.into_iter().flatten().map(FlowUpdate::Full));
        if held.told {
            self.news.push_back(FlowUpdate::Resumed);
        }
    }
}

impl PendingChanges {
    /// Merges a change of a flow entry with earlier changes of the same entry.
    fn keep(&mut self, name: Name, mut update: FlowUpdateFull) {
        let place = *self.places.entry(name).or_insert_with(|| {
            self.changes.push(None);
            self.changes.len() - 1
        });
        let before = self.changes[place].take().map(|before| before.event);
        // An added entry may have replaced a known one, so its removal is reported as well.
        if (before, update.event) == (Some(FlowEvent::Added), FlowEvent::Modified) {
            update.event = FlowEvent::Added;
        }
        self.changes[place] = Some(update);
    }
}
