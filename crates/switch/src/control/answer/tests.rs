//! What is asked of a running data plane, and what it answers.

use dataplane::action::Action;
use dataplane::flow::FlowSpec;
use dataplane::forwarder::Outputs;
use dataplane::matching::Match;
use packet::frame::Batch;
use packet::time::Clock;
use ports::memory::{MemoryPort, pair_stamped};
use ports::port::Port;

use super::*;
use crate::config::{BridgeConfig, Config, Kind, OpenFlowConfig, PortConfig};
use crate::node::Node;

/// A node with two ports and the other ends of these.
struct Rig {
    node: Node,
    wires: Vec<MemoryPort>,
    now: Nanos,
}

impl Rig {
    fn new(kind: Kind) -> Rig {
        let mut config = Config::new(kind);
        let (mut ports, mut wires) = (Vec::new(), Vec::new());
        for number in 1..=2 {
            config.ports.push(PortConfig { number, spec: format!("memory:{number}") });
            let (ours, theirs) = pair_stamped(64, &format!("p{number}"), Clock::Virtual);
            ports.push((number, Box::new(ours) as Box<dyn Port>));
            wires.push(theirs);
        }
        let now = Nanos::from_secs(1);
        Rig { node: Node::open(&config, ports, 3, now).expect("a valid configuration"), wires, now }
    }

    fn ask(&mut self, line: &str) -> Value {
        let request = Request::read(line.as_bytes()).unwrap();
        self.node.answer(request, self.now).unwrap_or_else(|why| json!(why))
    }

    /// Installs an entry in a switch.
    fn install(&mut self, spec: &FlowSpec) {
        let Plane::OpenFlow(pipeline) = &mut self.node.forward.forwarder else {
            panic!("not a switch");
        };
        pipeline.add(spec, self.now, &mut Outputs::new(&[])).unwrap();
    }

    /// Puts a frame on a port's wire and returns how many frames leave by each port.
    fn arrive(&mut self, port: usize, bytes: &[u8]) -> [usize; 2] {
        let mut batch = Batch::new(1);
        batch.push_bytes(bytes);
        self.wires[port - 1].transmit(&mut batch, self.now).unwrap();
        self.node.turn(self.now);
        [0, 1].map(|at| self.wires[at].receive(&mut Batch::new(64), self.now).unwrap())
    }
}

fn frame(to: u8, from: u8) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, from, 0x90, 0];
    frame.resize(60, 0);
    frame
}

#[test]
fn a_bridge_tells_and_takes_addresses() {
    let mut rig = Rig::new(Kind::Bridge(BridgeConfig::default()));
    rig.arrive(1, &frame(2, 1));
    rig.now += Nanos::from_millis(1_500);
    let learned = json!([{
        "mac": "02:00:00:00:00:01", "vlan": 0, "port": 1, "static": false, "age_ms": 1500
    }]);
    assert_eq!(rig.ask(r#"{"get":"macs"}"#), learned);
    let add = r#"{"add_macs":[{"mac":"02:00:00:00:00:02","port":1}]}"#;
    assert_eq!(rig.ask(add), json!({"added": 1}));
    assert_eq!(rig.arrive(2, &frame(2, 9)), [1, 0]);
    assert_eq!(rig.ask(r#"{"flush":"macs"}"#), json!({"flushed": 2}));
    let left = rig.ask(r#"{"get":"macs"}"#);
    assert_eq!((left.as_array().unwrap().len(), &left[0]["static"]), (1, &json!(true)));
}

#[test]
fn a_bridge_refuses_addresses_that_cannot_be() {
    let mut rig = Rig::new(Kind::Bridge(BridgeConfig { macs_max: 1, ..BridgeConfig::default() }));
    for (line, why) in [
        (r#"{"add_mac":{"mac":"02:00:00:00:00:01","port":3}}"#, "there is no port 3"),
        (r#"{"add_mac":{"mac":"03:00:00:00:00:01","port":1}}"#, "not one station's address"),
        (r#"{"add_mac":{"mac":"02:00:00:00:00:01","port":1,"vlan":4096}}"#, "above 4095"),
        (
            r#"{"add_macs":[{"mac":"02:00:00:00:00:01","port":1},
                            {"mac":"02:00:00:00:00:02","port":1}]}"#,
            "the table of 1 addresses is full; 1 were added",
        ),
        (r#"{"get":"routes"}"#, "a bridge cannot get routes"),
        (r#"{"set":{"ageing_s":3601}}"#, "is not between 0 and 3600"),
    ] {
        let answer = rig.ask(line).to_string();
        assert!(answer.contains(why), "{line}: {answer}");
    }
}

#[test]
fn the_ageing_time_of_a_bridge_is_set_while_it_runs() {
    let mut rig = Rig::new(Kind::Bridge(BridgeConfig::default()));
    rig.arrive(1, &frame(2, 1));
    assert_eq!(rig.ask(r#"{"set":{"ageing_s":0}}"#), json!({"ageing_s": 0}));
    rig.now += Nanos::from_secs(4000);
    assert_eq!(rig.arrive(2, &frame(1, 2)), [1, 0]);
    rig.ask(r#"{"set":{"ageing_s":5}}"#);
    assert_eq!(rig.ask(r#"{"get":"macs"}"#).as_array().unwrap().len(), 1, "2 was just seen");
}

#[test]
fn counters_account_for_every_frame() {
    let mut rig = Rig::new(Kind::Bridge(BridgeConfig::default()));
    rig.arrive(1, &frame(2, 1));
    rig.arrive(2, &frame(1, 2));
    rig.arrive(1, &frame(1, 1));
    let all = rig.ask(r#"{"get":"counters"}"#);
    let port = |number: u64, rx: u64, tx: u64| {
        json!({
            "port": number, "rx_frames": rx, "rx_bytes": 60 * rx, "tx_frames": tx,
            "tx_bytes": 60 * tx, "waiting_frames": 0, "peer_faults": 0,
            "drops": {}
        })
    };
    assert_eq!(all["ports"], json!([port(1, 2, 1), port(2, 1, 1)]));
    let lost: u64 = all["drops"].as_object().unwrap().values().filter_map(Value::as_u64).sum();
    assert_eq!((lost, &all["turns_busy"]), (1, &json!(3)));
    assert_eq!((&all["bridge"]["forwarded"], &all["bridge"]["macs"]), (&json!(1), &json!(2)));
    let about = rig.ask(r#"{"get":"about"}"#);
    assert_eq!((&about["kind"], &about["ports"][1]["name"]), (&json!("bridge"), &json!("p2.0")));
}

#[test]
fn a_switch_tells_its_tables_and_has_no_addresses() {
    let mut rig = Rig::new(Kind::OpenFlow(OpenFlowConfig::default()));
    rig.arrive(1, &frame(2, 1));
    let all = rig.ask(r#"{"get":"counters"}"#);
    assert_eq!(all["tables"][0]["lookups"], json!(1));
    assert_eq!(all["tables"][1]["entries_max"], json!(65_536));
    assert_eq!(all["drops"], json!({"no_match": 1}));
    assert_eq!(all["controllers"]["connected"], json!(0));
    assert_eq!(rig.ask(r#"{"get":"macs"}"#), json!("a switch cannot get macs"));
    assert_eq!(router().ask(r#"{"get_flows":{}}"#), json!("a router cannot get flows"));
}

#[test]
fn a_switch_tells_when_each_entry_last_matched() {
    let mut rig = Rig::new(Kind::OpenFlow(OpenFlowConfig::default()));
    let mut spec = FlowSpec::new(Match::ANY, 7, &[Action::Output { port: 2 }]);
    spec.idle_timeout = Nanos::from_secs(60);
    rig.install(&spec);
    rig.now += Nanos::from_secs(2);
    assert_eq!(rig.arrive(1, &frame(2, 1)), [0, 1]);
    rig.now += Nanos::from_millis(1_500);
    let told = rig.ask(r#"{"get_flows":{}}"#);
    let (flow, next) = (&told["flows"][0], &told["next"]);
    assert_eq!((&flow["packets"], &flow["bytes"], next), (&json!(1), &json!(60), &Value::Null));
    assert_eq!((&flow["age_ms"], &flow["since_match_ms"]), (&json!(3_500), &json!(1_500)));
    assert_eq!((&flow["table"], &flow["actions"][0]), (&json!("wildcard"), &json!("output:2")));
    assert_eq!((&flow["priority"], &flow["idle_timeout_s"]), (&json!(7), &json!(60)));
}

#[test]
fn a_long_list_of_entries_comes_in_parts() {
    let wildcard_flows_max = 2 * switch::FLOWS_TOLD_MAX;
    let config = OpenFlowConfig { wildcard_flows_max, ..OpenFlowConfig::default() };
    let mut rig = Rig::new(Kind::OpenFlow(config));
    let count = switch::FLOWS_TOLD_MAX + 1;
    for priority in 0..count as u16 {
        let spec = FlowSpec::new(Match::ANY, priority, &[]);
        rig.install(&spec);
    }
    let first = rig.ask(r#"{"get_flows":{"from":0}}"#);
    let rest = rig.ask(&format!(r#"{{"get_flows":{{"from":{}}}}}"#, first["next"]));
    let flows = |part: &Value| part["flows"].as_array().unwrap().clone();
    assert_eq!((flows(&first).len(), flows(&rest).len()), (count - 1, 1));
    let told = flows(&first).into_iter().chain(flows(&rest));
    let priorities: std::collections::BTreeSet<_> =
        told.map(|flow| flow["priority"].as_u64().unwrap()).collect();
    assert_eq!((priorities.len(), &rest["next"]), (count, &Value::Null));
}

fn router() -> Rig {
    let text = r#"
        [[interface]]
        port = 1
        mac = "02:00:00:00:01:01"
        addresses = ["10.0.1.1/24"]
        [[interface]]
        port = 2
        addresses = ["10.0.2.1/24"]
        [[neighbour]]
        port = 2
        address = "10.0.2.2"
        mac = "02:00:00:00:02:02"
    "#;
    Rig::new(Kind::Router(crate::config::RouterConfig::from_toml(text).unwrap()))
}

/// A UDP frame to the router's first interface for this address.
fn packet_to(destination: [u8; 4]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 1, 1, 2, 0, 0, 0, 0, 1, 8, 0];
    let mut header = vec![0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 1, 2];
    header.extend(destination);
    let sum: u32 = header.chunks(2).map(|two| u32::from(two[0]) << 8 | u32::from(two[1])).sum();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    frame.extend(header);
    frame.resize(60, 0);
    frame
}

#[test]
fn a_router_takes_routes_and_neighbours_and_forwards_by_them() {
    let mut rig = router();
    assert_eq!(rig.arrive(1, &packet_to([10, 0, 2, 2])), [0, 1]);
    assert_eq!(
        rig.arrive(1, &packet_to([10, 9, 0, 1])),
        [1, 0],
        "no route: the sender is asked for"
    );
    let add = r#"{"add_routes":[{"to":"10.9.0.0/16","via":"10.0.2.9"}]}"#;
    assert_eq!(rig.ask(add), json!({"added": 1}));
    assert_eq!(rig.arrive(1, &packet_to([10, 9, 0, 1])), [0, 1], "an ARP request");
    let add = r#"{"add_neighbours":[{"port":2,"address":"10.0.2.9","mac":"02:00:00:00:02:09"}]}"#;
    assert_eq!(rig.ask(add), json!({"added": 1}));
    rig.node.turn(rig.now);
    let mut left = Batch::new(8);
    assert_eq!(rig.wires[1].receive(&mut left, rig.now).unwrap(), 1, "the frame that waited");
    assert_eq!(left.frames()[0].bytes()[..12], [2, 0, 0, 0, 2, 9, 2, 0, 0, 0, 0, 2]);
    let routes = rig.ask(r#"{"get":"routes"}"#);
    let gateway = json!({"to": "10.9.0.0/16", "kind": "gateway", "port": 2, "via": "10.0.2.9"});
    assert!(routes.as_array().unwrap().contains(&gateway), "{routes}");
    let neighbours = rig.ask(r#"{"get":"neighbours"}"#);
    let fixed = json!({
        "port": 2, "address": "10.0.2.9", "state": "static", "mac": "02:00:00:00:02:09"
    });
    assert!(neighbours.as_array().unwrap().contains(&fixed), "{neighbours}");
    let all = rig.ask(r#"{"get":"counters"}"#);
    assert_eq!((&all["router"]["forwarded"], &all["drops"]["no_route"]), (&json!(2), &json!(1)));
    assert_eq!(rig.ask(r#"{"flush":"routes"}"#), json!({"flushed": 1}));
}

#[test]
fn a_router_refuses_what_it_cannot_reach() {
    let mut rig = router();
    for (line, why) in [
        (
            r#"{"add_routes":[{"to":"10.9.0.0/16","via":"10.0.2.9"},
                              {"to":"10.8.0.0/16","via":"172.16.0.1"}]}"#,
            "no interface has the network of next hop 172.16.0.1; 1 were added",
        ),
        (r#"{"add_routes":[{"to":"10.9.0.0/16","port":7}]}"#, "no interface on port 7"),
        (
            r#"{"add_routes":[{"to":"10.0.1.1/32","via":"10.0.2.9"}]}"#,
            "10.0.1.1/32 is the router's",
        ),
        (r#"{"get":"macs"}"#, "a router cannot get macs"),
    ] {
        let answer = rig.ask(line).to_string();
        assert!(answer.contains(why), "{line}: {answer}");
    }
}
