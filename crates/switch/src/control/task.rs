//! A request and how far it has been carried out: long lists are added and read a part at a time.
//!
//! Invariant: what a task does in one turn ends soon after its [`Budget`] is spent, so that frames and other clients
//! wait for one budget at most.

use std::sync::Arc;

use serde_json::{Value, json};

use super::request::{MacEntry, Request, What};
use crate::budget::{Budget, MESSAGE_STEPS};
use crate::config::{Neighbour, Route};
use dataplane::route_table::Prefix;

/// Steps of one row of a list: to look it up and to write it as JSON.
const ROW_STEPS: u32 = 16;

/// A request under way.
#[derive(Debug, Clone, PartialEq)]
pub enum Task {
    /// One that is carried out in one go, or that waits for something.
    Whole(Request),
    /// Adds static addresses.
    AddMacs(Batch<MacEntry>),
    /// Adds routes.
    AddRoutes(Batch<Route>),
    /// Adds static neighbours.
    AddNeighbours(Batch<Neighbour>),
    /// Reads addresses, routes or neighbours from a place on.
    List(What, Cursor),
    /// Adds entries to a program, which another thread makes ready.
    Apart(Apart),
}

/// A request that another thread makes a program of.
#[derive(Debug, Clone, PartialEq)]
pub struct Apart {
    /// The request.
    pub request: Arc<Request>,
    /// By which the program is fetched, once it is being made ready.
    pub number: Option<u64>,
    /// How often another change came first.
    pub retries: u32,
}

/// Entries to add, and how many of them were added.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch<T> {
    items: Vec<T>,
    added: usize,
}

/// Where a list goes on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cursor {
    /// At the entry of this number.
    Place(usize),
    /// Behind this route.
    Behind(Prefix),
}

/// What carrying a task out has brought.
#[derive(Debug, PartialEq)]
pub enum Carried {
    /// An answer, or why there is none.
    Done(Result<Value, String>),
    /// Rows of a list, and the task that reads the others, if there are more.
    Rows(Vec<Value>, Option<Task>),
    /// Nothing yet: the task has to be carried out further.
    Later(Task),
}

impl From<Request> for Task {
    fn from(request: Request) -> Task {
        match request {
            Request::AddMac(mac) => Task::AddMacs(Batch::new(vec![mac])),
            Request::AddMacs(macs) => Task::AddMacs(Batch::new(macs)),
            Request::AddRoutes(routes) => Task::AddRoutes(Batch::new(routes)),
            Request::AddNeighbours(neighbours) => Task::AddNeighbours(Batch::new(neighbours)),
            Request::Get(what @ (What::Macs | What::Routes | What::Neighbours)) => {
                Task::List(what, Cursor::Place(0))
            }
            other => Task::Whole(other),
        }
    }
}

impl Task {
    /// The request, all of it.
    pub fn into_request(self) -> Request {
        match self {
            Task::Whole(request) => request,
            Task::AddMacs(batch) => Request::AddMacs(batch.items),
            Task::AddRoutes(batch) => Request::AddRoutes(batch.items),
            Task::AddNeighbours(batch) => Request::AddNeighbours(batch.items),
            Task::List(what, _) => Request::Get(what),
            Task::Apart(apart) => Arc::unwrap_or_clone(apart.request),
        }
    }

    /// Whether it waits for something else than its next turn.
    pub fn waits(&self) -> bool {
        matches!(self, Task::Whole(_) | Task::Apart(_))
    }

    /// How many entries it adds.
    pub fn entries(&self) -> usize {
        match self {
            Task::AddMacs(batch) => batch.items.len(),
            Task::AddRoutes(batch) => batch.items.len(),
            Task::AddNeighbours(batch) => batch.items.len(),
            Task::Whole(_) | Task::List(..) | Task::Apart(_) => 0,
        }
    }
}

impl<T> Batch<T> {
    fn new(items: Vec<T>) -> Batch<T> {
        Batch { items, added: 0 }
    }

    /// Adds entries as far as the budget goes, at least one; at the first that cannot be added it ends and
    /// says how many were. `task` is what the others go on as.
    pub fn carry(
        mut self,
        budget: &mut Budget<'_>,
        task: fn(Batch<T>) -> Task,
        mut add: impl FnMut(&T) -> Result<(), String>,
    ) -> Carried {
        while let Some(item) = self.items.get(self.added) {
            if let Err(why) = add(item) {
                return Carried::Done(Err(format!("{why}; {} were added", self.added)));
            }
            self.added += 1;
            budget.spend(MESSAGE_STEPS);
            if budget.is_spent() && self.added < self.items.len() {
                return Carried::Later(task(self));
            }
        }
        Carried::Done(Ok(json!({ "added": self.added })))
    }
}

/// The rows of numbered entries from a place on, as far as the budget goes, at least one entry. Places without an
/// entry have no row.
pub fn list_places(
    (what, from, end): (What, Cursor, usize),
    budget: &mut Budget<'_>,
    mut row: impl FnMut(usize) -> Option<Value>,
) -> Carried {
    let from = if let Cursor::Place(from) = from { from } else { end };
    let mut rows = Vec::new();
    for place in from..end {
        let row = row(place);
        budget.spend(if row.is_some() { ROW_STEPS } else { 1 });
        rows.extend(row);
        if budget.is_spent() && place + 1 < end {
            return Carried::Rows(rows, Some(Task::List(what, Cursor::Place(place + 1))));
        }
    }
    Carried::Rows(rows, None)
}

/// The rows of routes as far as the budget goes, at least one.
pub fn list_routes<H>(
    routes: impl Iterator<Item = (Prefix, H)>,
    budget: &mut Budget<'_>,
    row: impl Fn(Prefix, H) -> Value,
) -> Carried {
    let mut rows = Vec::new();
    for (prefix, hop) in routes {
        rows.push(row(prefix, hop));
        budget.spend(ROW_STEPS);
        if budget.is_spent() {
            return Carried::Rows(rows, Some(Task::List(What::Routes, Cursor::Behind(prefix))));
        }
    }
    Carried::Rows(rows, None)
}
