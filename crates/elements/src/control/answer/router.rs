//! Replies of a router: lists and additions of routes and neighbours, and counters.

use dataplane::forwarder::Outputs;
use dataplane::neighbor::{NeighborState, Place};
use dataplane::route_table::{NextHop, Prefix};
use dataplane::router::Router;
use serde_json::{Value, json};

use super::not_for;
use crate::budget::{Budget, RUN_STEPS};
use crate::config::Mac;
use crate::control::request::{Request, Resource};
use crate::control::task::{self, Cursor, Flush, Task, TaskOutcome};
use crate::datapath::{add_neighbour, add_route, router_error_text};

/// Processes a request that only a router supports, up to the budget.
pub(super) fn carry(
    task: Task,
    router: &mut Router,
    out: &mut Outputs,
    budget: &mut Budget<'_>,
) -> TaskOutcome {
    match task {
        Task::List(Resource::Routes, from) => {
            let last = if let Cursor::Behind(prefix) = from { Some(prefix) } else { None };
            task::list_routes(router.routes().iter_after(last), budget, route)
        }
        Task::List(Resource::Neighbours, from) => {
            let known = router.neighbors();
            let row = |at: usize| known.at(at).map(|(place, known)| neighbour(place, known));
            task::list_places((Resource::Neighbours, from, known.places_end()), budget, row)
        }
        Task::AddRoutes(batch) => batch.carry(budget, Task::AddRoutes, |route| {
            add_route(router, route).map_err(router_error_text)
        }),
        Task::AddNeighbours(batch) => batch.carry(budget, Task::AddNeighbours, |neighbour| {
            add_neighbour(router, neighbour, out).map_err(router_error_text)
        }),
        Task::FlushNeighbours(flush) => flush_neighbours(flush, router, budget),
        other => TaskOutcome::Done(answer(other.into_request(), router)),
    }
}

fn answer(request: Request, router: &mut Router) -> Result<Value, String> {
    match request {
        Request::Flush(Resource::Routes) => Ok(json!({ "flushed": router.flush_routes() })),
        other => Err(not_for("router", &other)),
    }
}

/// Removes learned neighbours up to the budget. Those that are learned meanwhile may stay.
fn flush_neighbours(mut flush: Flush, router: &mut Router, budget: &mut Budget<'_>) -> TaskOutcome {
    loop {
        let next = &mut flush.next;
        let (removed, _) = budget.run(RUN_STEPS, |steps| router.flush_neighbors_some(next, steps));
        flush.removed += removed;
        if flush.next >= router.neighbors().places_end() {
            return TaskOutcome::Done(Ok(json!({ "flushed": flush.removed })));
        }
        if budget.is_spent() {
            return TaskOutcome::Later(Task::FlushNeighbours(flush));
        }
    }
}

fn route(to: Prefix, hop: NextHop) -> Value {
    let to = format!("{}/{}", to.address(), to.length());
    match hop {
        NextHop::Gateway { port, via } => {
            json!({ "to": to, "kind": "gateway", "port": port, "via": via.to_string() })
        }
        NextHop::Link { port } => json!({ "to": to, "kind": "link", "port": port }),
        NextHop::Local => json!({ "to": to, "kind": "local" }),
        NextHop::Broadcast => json!({ "to": to, "kind": "broadcast" }),
    }
}

fn neighbour(place: Place, known: NeighborState) -> Value {
    let (state, mac) = match known {
        NeighborState::Static(mac) => ("static", Some(mac)),
        NeighborState::Learned(mac) => ("learned", Some(mac)),
        NeighborState::Asked => ("asked", None),
    };
    json!({
        "port": place.port,
        "address": place.address.to_string(),
        "state": state,
        "mac": mac.map(|mac| Mac(mac).to_string()),
    })
}

/// Returns the counters of a router except drops. The kernel forwarded this number of frames.
pub(super) fn counters(router: &Router, in_kernel: u64) -> Value {
    let counters = &router.counters;
    let (hits, misses) = router.cache().map_or((0, 0), |cache| (cache.hits, cache.misses));
    json!({
        "routes": router.routes().len(),
        "neighbours": router.neighbors().len(),
        "waiting_frames": router.neighbors().frames_waiting,
        "cache_hits": hits,
        "cache_misses": misses,
        "forwarded": counters.forwarded + in_kernel,
        "consumed": counters.consumed,
        "fragmented": counters.fragmented,
        "fragments": counters.fragments,
        "arp_requests": counters.arp_requests,
        "arp_replies": counters.arp_replies,
        "echo_replies": counters.echo_replies,
        "icmp_errors": counters.icmp_errors,
        "icmp_limited": counters.icmp_limited,
        "own_lost": counters.own_lost,
    })
}
