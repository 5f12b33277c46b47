//! What all round trips of the study share: how many packets, how they are sent, and what is at both ends.
//!
//! Source: costa2017, section III.

use instrument::module::Module;
use instrument::stream::{Arrival, Headers, Rate, Stream};
use openflow::model::message::Message;
use openflow::model::{Action, FlowMod, Match};
use packet::time::Nanos;

use super::super::Context;
use super::super::modules::round_trip::{BACK, Ends, RoundTrip, THERE, Trip};
use super::super::modules::rounds::Spot;
use super::super::modules::rules::{FAR, NEAR};
use super::super::modules::updates::versions;
use super::super::modules::verdict::Bound;
use crate::parameter::own::{Declared, Takes};
use crate::target::name::Technology;
use crate::target::program::{PORT_IN, PORT_OUT};
use crate::workload::Setup;

/// Packets of a run, as published, and where trials last less than a second.
const PACKETS_PUBLISHED: u64 = 10_000;
const PACKETS_QUICK: u64 = 1_000;

/// Packets in a second that a server sends at the most when several wait to be answered.
pub const ANSWERS_PPS: f64 = 200_000.0;

/// The server's UDP port.
const SERVER: u16 = 5201;

/// How many packets there are.
pub const PACKETS: Declared = Declared {
    key: "packets",
    takes: Takes::Integer(0, 1_000_000),
    default: "0",
    unit: "packets",
    help: "packets of a run; 0 for 10,000 as published, or 1,000 where trials last less than a second",
};

/// The rate of the open loop.
pub const OPEN_PPS: Declared = Declared {
    key: "open_pps",
    takes: Takes::Number(0.0, 1e6),
    default: "1000",
    unit: "packets/s",
    help: "rate at which packets are sent, besides one at a time, whether earlier ones are back or not; 0 \
           leaves that out",
};

/// The same where the study's closed loop stands alone unless more is asked for.
pub const OPEN_BESIDE: Declared = Declared { default: "0", ..OPEN_PPS };

/// When a packet is lost.
pub const WAIT: Declared = Declared {
    key: "wait",
    takes: Takes::Number(0.001, 60.0),
    default: "0.2",
    unit: "s",
    help: "a packet that is not back after so long counts as lost",
};

/// The curve on which rates lie: 0 for one packet at a time.
pub const LOOP: &str = "open_loop_pps";

/// How many packets a run has.
pub fn packets(context: &Context) -> u64 {
    match context.parameters.own.integer(&PACKETS) {
        0 if context.parameters.seconds < 1.0 => PACKETS_QUICK,
        0 => PACKETS_PUBLISHED,
        asked => asked,
    }
}

/// What stands at the target's two ports: a client and a server who talk by UDP.
pub fn ways(context: &Context, frame_bytes: usize) -> [Stream; 2] {
    let (technology, addresses) = (context.technology, &context.addresses);
    let rate = Rate::FramesPerSecond(1.0);
    let mut there = context.setup().stream(technology, addresses, 64, rate);
    there.headers.port_destination = SERVER;
    (there.id, there.from, there.to, there.frame_bytes) = (THERE, NEAR, FAR, frame_bytes);
    there.vary.clear();
    let headers = answering(&there.headers);
    let mut back = Stream { id: BACK, from: FAR, to: NEAR, headers, ..there.clone() };
    if technology == Technology::Routing {
        back.headers.mac_source = addresses.instrument[FAR];
        back.headers.mac_destination = addresses.target[FAR];
        back.arrival = Arrival::Routed {
            mac_source: addresses.target[NEAR],
            mac_destination: addresses.instrument[NEAR],
        };
    }
    back.rate = Rate::FramesPerSecond(ANSWERS_PPS);
    [there, back]
}

/// The headers with which packets with these are answered.
pub fn answering(headers: &Headers) -> Headers {
    Headers {
        mac_source: headers.mac_destination,
        mac_destination: headers.mac_source,
        ip_source: headers.ip_destination,
        ip_destination: headers.ip_source,
        port_source: headers.port_destination,
        port_destination: headers.port_source,
        ..headers.clone()
    }
}

/// The rules by which packets go there, and back, by these matches.
pub fn rules(matches: [Match; 2]) -> Vec<Message> {
    let to = [PORT_OUT, PORT_IN];
    let rule = |(matching, to): (Match, u16)| {
        let actions = vec![Action::output(to.into())];
        Message::FlowMod(FlowMod::add(matching, openflow::model::PRIORITY_DEFAULT, actions))
    };
    matches.into_iter().zip(to).map(rule).collect()
}

/// A trip by these rules, one packet at a time; without rules on a target that has no controller.
pub fn trip(
    context: &Context,
    name: &'static str,
    ways: [Stream; 2],
    rules: Option<Vec<Message>>,
) -> Trip {
    let own = &context.parameters.own;
    Trip {
        name,
        rules,
        rules_early: None,
        fill: None,
        ways,
        comes_out: None,
        ends: Ends::Ports,
        packets: packets(context),
        pps: None,
        versions: versions(context),
        patience: Nanos::from_secs_f64(own.number(&super::super::modules::updates::PATIENCE)),
        bound: Bound::default(),
        wait: Nanos::from_secs_f64(own.number(&WAIT)),
    }
}

/// The same at a set rate.
pub fn at_rate(trip: Trip, pps: f64) -> Trip {
    let mut trip = trip;
    trip.ways[0].rate = Rate::FramesPerSecond(pps);
    Trip { pps: Some(pps), ..trip }
}

/// The same between programs with sockets.
pub fn by_sockets(trip: Trip, name: &'static str) -> Trip {
    Trip { name, ends: Ends::Sockets, ..trip }
}

/// The same of packets that are to come out so.
pub fn compared(trip: Trip, comes_out: [Stream; 2]) -> Trip {
    Trip { comes_out: Some(comes_out), ..trip }
}

/// The same with these rules in versions before 1.2.
pub fn early(trip: Trip, rules: Vec<Message>) -> Trip {
    Trip { rules_early: Some(rules), ..trip }
}

/// Where a trip is carried out, at a place of an axis; what a target without a controller is to hold is said
/// before.
pub fn spot(context: &Context, x: f64, prefix: &'static str, trip: Trip) -> Spot {
    let pps = trip.pps.unwrap_or(0.0);
    // About a tenth of a millisecond for each, where nobody has measured it yet.
    let seconds = trip.packets as f64 / trip.pps.unwrap_or(10_000.0);
    let is_controlled = trip.rules.is_some();
    let make = move |_| Box::new(RoundTrip::new(trip.clone())) as Box<dyn Module>;
    let spot = Spot::new(x, seconds, make).named(prefix).on(LOOP, pps);
    if is_controlled { spot } else { spot.over(held(context)) }
}

/// The same, one packet at a time, and then at the rate of the open loop, if there is one.
pub fn loops(
    context: &Context,
    x: f64,
    prefix: &'static str,
    trip: Trip,
    open: &Declared,
) -> Vec<Spot> {
    let pps = context.parameters.own.number(open);
    let at_once = (pps > 0.0).then(|| at_rate(trip.clone(), pps.max(1.0)));
    let trips = [trip].into_iter().chain(at_once);
    trips.map(|trip| spot(context, x, prefix, trip)).collect()
}

/// What bridges and routers hold: one entry for the server.
fn held(context: &Context) -> Setup {
    context.setup()
}
