//! Common settings of all round trips of the study: number of packets, sending mode, client and server.
//!
//! Source: costa2017, section III.

use openflow::model::message::Message;
use openflow::model::{Action, FlowMod, Match};
use packet::time::Nanos;
use tester::module::Module;
use tester::stream::{Arrival, Headers, Rate, Stream};

use experiments::Context;
use experiments::control_plane::round_trip::{
    BACK, EndpointKind, RoundTrip, RoundTripSettings, THERE,
};
use experiments::control_plane::rounds::ModulePoint;
use experiments::control_plane::rules::{FAR, NEAR};
use experiments::control_plane::updates::versions;
use experiments::control_plane::verdict::ActivationLimit;
use targets::flow_setup::{PORT_IN, PORT_OUT};
use workload::Setup;
use workload::Technology;
use workload::parameter::declaration::{Parameter, ValueType};

/// Packets per run, as published, and the number if trials last less than a second.
const PACKETS_PUBLISHED: u64 = 10_000;
const PACKETS_QUICK: u64 = 1_000;

/// Maximum reply rate of a server when several replies wait, in packets per second.
pub const ANSWERS_PPS: f64 = 200_000.0;

/// The server's UDP port.
const SERVER: u16 = 5201;

/// Number of packets.
pub const PACKETS: Parameter = Parameter {
    key: "packets",
    takes: ValueType::Integer(0, 1_000_000),
    default: "0",
    unit: "packets",
    help: "packets per run; 0 means 10,000 as published, or 1,000 if trials are shorter than a \
           second",
};

/// The rate of the open loop.
pub const OPEN_PPS: Parameter = Parameter {
    key: "open_pps",
    takes: ValueType::Number(0.0, 1e6),
    default: "1000",
    unit: "packets/s",
    help: "rate of an additional run that sends packets without waiting for returns; 0 means none",
};

/// Rate of the open loop, with a default of none.
pub const OPEN_BESIDE: Parameter = Parameter { default: "0", ..OPEN_PPS };

/// Time after which a packet counts as lost.
pub const WAIT: Parameter = Parameter {
    key: "wait",
    takes: ValueType::Number(0.001, 60.0),
    default: "0.2",
    unit: "s",
    help: "time after which a packet counts as lost",
};

/// Curve of the rates; 0 is one packet at a time.
pub const LOOP: &str = "open_loop_pps";

/// Returns the number of packets in a run.
pub fn packets(context: &Context) -> u64 {
    match context.parameters.own.integer(&PACKETS) {
        0 if context.parameters.seconds < 1.0 => PACKETS_QUICK,
        0 => PACKETS_PUBLISHED,
        asked => asked,
    }
}

/// Returns the streams of client and server at the target's two ports, which use UDP.
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

/// Returns the headers of the reply to a packet with these headers.
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

/// Returns the entries for both directions with these matches.
pub fn rules(matches: [Match; 2]) -> Vec<Message> {
    let to = [PORT_OUT, PORT_IN];
    let rule = |(matching, to): (Match, u16)| {
        let actions = vec![Action::output(to.into())];
        Message::FlowMod(FlowMod::add(matching, openflow::model::PRIORITY_DEFAULT, actions))
    };
    matches.into_iter().zip(to).map(rule).collect()
}

/// Creates a trip by these entries, one packet at a time; without entries for a target without a controller.
pub fn trip(
    context: &Context,
    name: &'static str,
    ways: [Stream; 2],
    rules: Option<Vec<Message>>,
) -> RoundTripSettings {
    let own = &context.parameters.own;
    RoundTripSettings {
        name,
        rules,
        rules_early: None,
        fill: None,
        ways,
        comes_out: None,
        ends: EndpointKind::Ports,
        packets: packets(context),
        pps: None,
        versions: versions(context),
        patience: Nanos::from_secs_f64(own.number(&experiments::control_plane::updates::PATIENCE)),
        bound: ActivationLimit::default(),
        wait: Nanos::from_secs_f64(own.number(&WAIT)),
    }
}

/// Sends the packets at a set rate.
pub fn at_rate(trip: RoundTripSettings, pps: f64) -> RoundTripSettings {
    let mut trip = trip;
    trip.ways[0].rate = Rate::FramesPerSecond(pps);
    RoundTripSettings { pps: Some(pps), ..trip }
}

/// Uses programs with sockets.
pub fn by_sockets(trip: RoundTripSettings, name: &'static str) -> RoundTripSettings {
    RoundTripSettings { name, ends: EndpointKind::Sockets, ..trip }
}

/// Sets the expected output packets.
pub fn compared(trip: RoundTripSettings, comes_out: [Stream; 2]) -> RoundTripSettings {
    RoundTripSettings { comes_out: Some(comes_out), ..trip }
}

/// Sets the entries for OpenFlow versions before 1.2.
pub fn early(trip: RoundTripSettings, rules: Vec<Message>) -> RoundTripSettings {
    RoundTripSettings { rules_early: Some(rules), ..trip }
}

/// Creates the point of a trip on an axis. For a target without a controller, it includes the setup.
pub fn spot(
    context: &Context,
    x: f64,
    prefix: &'static str,
    trip: RoundTripSettings,
) -> ModulePoint {
    let pps = trip.pps.unwrap_or(0.0);
    // About a tenth of a millisecond per packet, an estimate without a measurement.
    let seconds = trip.packets as f64 / trip.pps.unwrap_or(10_000.0);
    let is_controlled = trip.rules.is_some();
    let make = move |_| Box::new(RoundTrip::new(trip.clone())) as Box<dyn Module>;
    let spot = ModulePoint::new(x, seconds, make).named(prefix).on(LOOP, pps);
    if is_controlled { spot } else { spot.over(held(context)) }
}

/// Creates the points for one packet at a time and for the rate of the open loop, if there is one.
pub fn loops(
    context: &Context,
    x: f64,
    prefix: &'static str,
    trip: RoundTripSettings,
    open: &Parameter,
) -> Vec<ModulePoint> {
    let pps = context.parameters.own.number(open);
    let at_once = (pps > 0.0).then(|| at_rate(trip.clone(), pps.max(1.0)));
    let trips = [trip].into_iter().chain(at_once);
    trips.map(|trip| spot(context, x, prefix, trip)).collect()
}

/// Returns the setup of bridges and routers: one entry for the server.
fn held(context: &Context) -> Setup {
    context.setup()
}
