//! A request in progress: long lists are added and read in parts.
//!
//! Invariant: the work of a task in one turn ends soon after its [`Budget`] is spent. Frames and
//! other clients therefore wait for at most one budget.

use std::sync::Arc;

use serde_json::{Value, json};

use super::request::{MacEntry, Request, Resource};
use crate::budget::{Budget, MESSAGE_STEPS};
use crate::config::{Neighbour, Route};
use dataplane::route_table::Prefix;

/// Budget steps of one row of a list: to look it up and to write it as JSON.
const ROW_STEPS: u32 = 16;

/// A request in progress.
#[derive(Debug, Clone, PartialEq)]
pub enum Task {
    /// A request that is processed immediately, or that waits for another event.
    Whole(Request),
    /// Adds static addresses.
    AddMacs(Batch<MacEntry>),
    /// Adds routes.
    AddRoutes(Batch<Route>),
    /// Adds static neighbours.
    AddNeighbours(Batch<Neighbour>),
    /// Lists addresses, routes or neighbours from a position on.
    List(Resource, Cursor),
    /// Removes learned neighbours.
    FlushNeighbours(Flush),
    /// Adds entries to a program with the compile thread.
    Background(BackgroundChange),
}

/// A request for which the compile thread prepares a program.
#[derive(Debug, Clone, PartialEq)]
pub struct BackgroundChange {
    /// The request.
    pub request: Arc<Request>,
    /// Number with which to fetch the program, once its preparation has begun.
    pub number: Option<u64>,
    /// Number of repeated preparations because another change came first.
    pub retries: u32,
}

/// Entries to add, and how many were added.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch<T> {
    items: Vec<T>,
    added: usize,
}

/// Progress of removing numbered entries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flush {
    /// Number of the next entry.
    pub next: usize,
    /// How many were removed.
    pub removed: usize,
}

/// Position at which a list continues.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cursor {
    /// At the entry with this number.
    Place(usize),
    /// After this route.
    Behind(Prefix),
}

/// Result of processing a task.
#[derive(Debug, PartialEq)]
pub enum TaskOutcome {
    /// The result, or the error.
    Done(Result<Value, String>),
    /// Rows of a list, and the task for further rows, if there are any.
    Rows(Vec<Value>, Option<Task>),
    /// No result yet: the task must continue.
    Later(Task),
}

impl From<Request> for Task {
    fn from(request: Request) -> Task {
        match request {
            Request::AddMac(mac) => Task::AddMacs(Batch::new(vec![mac])),
            Request::AddMacs(macs) => Task::AddMacs(Batch::new(macs)),
            Request::AddRoutes(routes) => Task::AddRoutes(Batch::new(routes)),
            Request::AddNeighbours(neighbours) => Task::AddNeighbours(Batch::new(neighbours)),
            Request::Get(what @ (Resource::Macs | Resource::Routes | Resource::Neighbours)) => {
                Task::List(what, Cursor::Place(0))
            }
            Request::Flush(Resource::Neighbours) => Task::FlushNeighbours(Flush::default()),
            other => Task::Whole(other),
        }
    }
}

impl Task {
    /// Returns the complete request.
    pub fn into_request(self) -> Request {
        match self {
            Task::Whole(request) => request,
            Task::AddMacs(batch) => Request::AddMacs(batch.items),
            Task::AddRoutes(batch) => Request::AddRoutes(batch.items),
            Task::AddNeighbours(batch) => Request::AddNeighbours(batch.items),
            Task::List(what, _) => Request::Get(what),
            Task::FlushNeighbours(_) => Request::Flush(Resource::Neighbours),
            Task::Background(apart) => Arc::unwrap_or_clone(apart.request),
        }
    }

    /// Whether it waits for another event than its next turn.
    pub fn waits(&self) -> bool {
        matches!(self, Task::Whole(_) | Task::Background(_))
    }

    /// Returns how many entries it adds.
    pub fn entries(&self) -> usize {
        match self {
            Task::AddMacs(batch) => batch.items.len(),
            Task::AddRoutes(batch) => batch.items.len(),
            Task::AddNeighbours(batch) => batch.items.len(),
            Task::Whole(_) | Task::List(..) | Task::FlushNeighbours(_) | Task::Background(_) => 0,
        }
    }
}

impl<T> Batch<T> {
    fn new(items: Vec<T>) -> Batch<T> {
        Batch { items, added: 0 }
    }

    /// Adds entries up to the budget, at least one. Ends at the first invalid entry and reports how
    /// many were added. `task` wraps the rest.
    pub fn carry(
        mut self,
        budget: &mut Budget<'_>,
        task: fn(Batch<T>) -> Task,
        mut add: impl FnMut(&T) -> Result<(), String>,
    ) -> TaskOutcome {
        while let Some(item) = self.items.get(self.added) {
            if let Err(why) = add(item) {
                return TaskOutcome::Done(Err(format!("{why}; {} were added", self.added)));
            }
            self.added += 1;
            budget.spend(MESSAGE_STEPS);
            if budget.is_spent() && self.added < self.items.len() {
                return TaskOutcome::Later(task(self));
            }
        }
        TaskOutcome::Done(Ok(json!({ "added": self.added })))
    }
}

/// Lists numbered entries from a position on, up to the budget and at least one. Numbers without an
/// entry have no row.
pub fn list_places(
    (what, from, end): (Resource, Cursor, usize),
    budget: &mut Budget<'_>,
    mut row: impl FnMut(usize) -> Option<Value>,
) -> TaskOutcome {
    let from = if let Cursor::Place(from) = from { from } else { end };
    let mut rows = Vec::new();
    for place in from..end {
        let row = row(place);
        budget.spend(if row.is_some() { ROW_STEPS } else { 1 });
        rows.extend(row);
        if budget.is_spent() && place + 1 < end {
            return TaskOutcome::Rows(rows, Some(Task::List(what, Cursor::Place(place + 1))));
        }
    }
    TaskOutcome::Rows(rows, None)
}

/// Lists routes up to the budget, at least one.
pub fn list_routes<H>(
    routes: impl Iterator<Item = (Prefix, H)>,
    budget: &mut Budget<'_>,
    row: impl Fn(Prefix, H) -> Value,
) -> TaskOutcome {
    let mut rows = Vec::new();
    for (prefix, hop) in routes {
        rows.push(row(prefix, hop));
        budget.spend(ROW_STEPS);
        if budget.is_spent() {
            return TaskOutcome::Rows(
                rows,
                Some(Task::List(Resource::Routes, Cursor::Behind(prefix))),
            );
        }
    }
    TaskOutcome::Rows(rows, None)
}
