//! A router's answers: routes and neighbours, read and added, and what it counts.

use dataplane::forwarder::Outputs;
use dataplane::neighbor::{Known, Place};
use dataplane::route_table::{NextHop, Prefix};
use dataplane::router::{Router, RouterError};
use serde_json::{Value, json};

use super::not_for;
use crate::config::Mac;
use crate::control::request::{Request, What};
use crate::plane::{add_neighbour, add_route, router_error_text};

/// Answers a request that only a router can answer.
pub(super) fn answer(
    request: Request,
    router: &mut Router,
    out: &mut Outputs,
) -> Result<Value, String> {
    match request {
        Request::Get(What::Routes) => {
            Ok(Value::Array(router.routes().iter().map(|(to, hop)| route(to, hop)).collect()))
        }
        Request::Get(What::Neighbours) => {
            let rows = router.neighbors().iter().map(|(place, known)| neighbour(place, known));
            Ok(Value::Array(rows.collect()))
        }
        Request::AddRoutes(routes) => all(&routes, |route| add_route(router, route)),
        Request::AddNeighbours(neighbours) => {
            all(&neighbours, |neighbour| add_neighbour(router, neighbour, out))
        }
        Request::Flush(What::Routes) => Ok(json!({ "flushed": router.flush_routes() })),
        Request::Flush(What::Neighbours) => Ok(json!({ "flushed": router.flush_neighbors() })),
        other => Err(not_for("router", &other)),
    }
}

/// Adds all of them, or says at the first that cannot be added how many were.
fn all<T>(
    items: &[T],
    mut add: impl FnMut(&T) -> Result<(), RouterError>,
) -> Result<Value, String> {
    for (added, item) in items.iter().enumerate() {
        add(item).map_err(|why| format!("{}; {added} were added", router_error_text(why)))?;
    }
    Ok(json!({ "added": items.len() }))
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

fn neighbour(place: Place, known: Known) -> Value {
    let (state, mac) = match known {
        Known::Static(mac) => ("static", Some(mac)),
        Known::Learned(mac) => ("learned", Some(mac)),
        Known::Asked => ("asked", None),
    };
    json!({
        "port": place.port,
        "address": place.address.to_string(),
        "state": state,
        "mac": mac.map(|mac| Mac(mac).to_string()),
    })
}

/// What a router counts beside drops.
pub(super) fn counters(router: &Router) -> Value {
    let counters = &router.counters;
    let (hits, misses) = router.cache().map_or((0, 0), |cache| (cache.hits, cache.misses));
    json!({
        "routes": router.routes().len(),
        "neighbours": router.neighbors().len(),
        "waiting_frames": router.neighbors().frames_waiting,
        "cache_hits": hits,
        "cache_misses": misses,
        "forwarded": counters.forwarded,
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
