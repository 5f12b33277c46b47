//! Tests of requests to a running data plane, and of its replies.

use dataplane::action::Action;
use dataplane::flow::FlowSpec;
use dataplane::forwarder::Outputs;
use dataplane::matching::Match;
use netio::memory::{MemoryPort, pair_stamped};
use netio::port::Port;
use packet::frame::Batch;
use packet::time::Clock;

use super::*;
use crate::budget::MESSAGE_STEPS;
use crate::config::{BridgeConfig, Config, Kind, OpenFlowConfig, PortConfig};
use crate::node::Node;

/// A node with two ports, and the peers of these ports.
struct Rig {
    node: Node,
    wires: Vec<MemoryPort>,
    now: Nanos,
}

impl Rig {
    fn new(kind: Kind) -> Rig {
        Rig::of(Config::new(kind))
    }

    fn of(mut config: Config) -> Rig {
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

    /// Processes a request with a budget of `steps` steps per turn, and calls `between` after each
    /// turn. Returns the reply and the number of rows of each turn.
    fn turns(
        &mut self,
        request: &Value,
        steps: u32,
        mut between: impl FnMut(&mut Rig, usize),
    ) -> (Value, Vec<usize>) {
        let request = Request::read(request.to_string().as_bytes()).unwrap();
        let (mut task, mut all, mut turns) = (Task::from(request), Vec::new(), Vec::new());
        loop {
            let mut budget = Budget::of_steps(steps.into());
            let carried = carry(task, &mut self.node.forward, self.now, &mut budget);
            let (rest, answer) = match carried {
                TaskOutcome::Done(outcome) => (None, outcome.unwrap_or_else(|why| json!(why))),
                TaskOutcome::Later(rest) => (Some(rest), Value::Null),
                TaskOutcome::Rows(rows, rest) => {
                    turns.push(rows.len());
                    all.extend(rows);
                    (rest, json!(all))
                }
            };
            let Some(rest) = rest else { return (answer, turns) };
            turns.resize(turns.len() + usize::from(answer.is_null()), 0);
            task = rest;
            between(self, turns.len());
        }
    }

    /// Installs a flow entry in a switch.
    fn install(&mut self, spec: &FlowSpec) {
        let DataPlane::OpenFlow(pipeline) = &mut self.node.forward.forwarder else {
            panic!("not a switch");
        };
        pipeline.add(spec, self.now, &mut Outputs::new(&[])).unwrap();
    }

    /// Sends a frame to a port and returns how many frames leave through each port.
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
fn a_bridge_lists_and_accepts_addresses() {
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
fn a_bridge_rejects_invalid_addresses() {
    let mut rig = Rig::new(Kind::Bridge(BridgeConfig { macs_max: 1, ..BridgeConfig::default() }));
    for (line, why) in [
        (r#"{"add_mac":{"mac":"02:00:00:00:00:01","port":3}}"#, "no port 3"),
        (r#"{"add_mac":{"mac":"03:00:00:00:00:01","port":1}}"#, "not a unicast address"),
        (r#"{"add_mac":{"mac":"02:00:00:00:00:01","port":1,"vlan":4096}}"#, "above 4095"),
        (
            r#"{"add_macs":[{"mac":"02:00:00:00:00:01","port":1},
                            {"mac":"02:00:00:00:00:02","port":1}]}"#,
            "address table full: at most 1 entries; 1 were added",
        ),
        (r#"{"get":"routes"}"#, "a bridge cannot get routes"),
        (r#"{"set":{"ageing_s":3601}}"#, "is not between 0 and 3600"),
    ] {
        let reply = rig.ask(line).to_string();
        assert!(reply.contains(why), "{line}: {reply}");
    }
}

#[test]
fn the_ageing_time_of_a_bridge_changes_while_it_runs() {
    let mut rig = Rig::new(Kind::Bridge(BridgeConfig::default()));
    rig.arrive(1, &frame(2, 1));
    assert_eq!(rig.ask(r#"{"set":{"ageing_s":0}}"#), json!({"ageing_s": 0}));
    rig.now += Nanos::from_secs(4000);
    assert_eq!(rig.arrive(2, &frame(1, 2)), [1, 0]);
    rig.ask(r#"{"set":{"ageing_s":5}}"#);
    assert_eq!(
        rig.ask(r#"{"get":"macs"}"#).as_array().unwrap().len(),
        1,
        "address 2 was just learned"
    );
}

#[test]
fn an_element_is_read_changed_and_reprogrammed_while_frames_pass() {
    let text = include_str!("../../../../../examples/progfe/bridge.fe.xml");
    let source = progfe::xml::Source::new("bridge.fe.xml", text);
    let (program, problems) = progfe::program::Program::load(&source, &|_| Err("none".into()));
    let program = std::sync::Arc::new(program.unwrap_or_else(|| panic!("{problems}")));
    let mut rig = Rig::new(Kind::ProGfe(crate::config::ProGfeConfig::new(program)));
    assert_eq!(rig.ask(r#"{"get":"about"}"#)["kind"], "progfe");
    assert_eq!(rig.arrive(1, &frame(2, 1)), [0, 1]);
    assert_eq!(rig.arrive(2, &frame(1, 2)), [1, 0]);
    let learned = r#"{"get_component":{"instance":"fdb","path":"Learned"}}"#;
    assert_eq!(rig.ask(learned), json!({"value": "2"}));
    assert_eq!(rig.ask(r#"{"get":"macs"}"#).as_array().unwrap().len(), 2);
    // A frame to an address behind its ingress port is dropped, with its block and output as the
    // reason.
    assert_eq!(rig.arrive(1, &frame(1, 3)), [0, 0]);
    let all = rig.ask(r#"{"get":"counters"}"#);
    assert_eq!(all["drops"], json!({"block_unlinked": 1}));
    assert_eq!(all["progfe"]["drops_by_block"], json!({"fdb": {"unlinked SamePortOut": 1}}));
    assert_eq!((&all["progfe"]["received"], &all["progfe"]["left"]), (&json!(3), &json!(2)));
    assert_eq!(all["bridge"]["macs"], 3);
    // All of several changes or none.
    let age =
        |value: &str| format!(r#"{{"instance":"fdb","path":"AgeSeconds","value":"{value}"}}"#);
    let wrong = format!(r#"{{"set_components":[{},{}]}}"#, age("60"), age("never"));
    assert!(rig.ask(&wrong).as_str().unwrap().contains("fdb.AgeSeconds"));
    let read = r#"{"get_component":{"instance":"fdb","path":"AgeSeconds"}}"#;
    assert_eq!(rig.ask(read), json!({"value": "300"}));
    let set = format!(r#"{{"set_components":[{}]}}"#, age("60"));
    assert_eq!(rig.ask(&set), json!({"set": 1, "generation": 2}));
    assert_eq!(rig.ask(read), json!({"value": "60"}));
    let add = r#"{"add_macs":[{"mac":"02:00:00:00:00:09","port":1}]}"#;
    assert_eq!(rig.ask(add), json!({"added": 1}));
    assert_eq!(rig.arrive(2, &frame(9, 2)), [1, 0]);
    // The original program: the static address is gone, the learned ones are not.
    let load = |name: &str, text: &str| json!({"load": {"name": name, "text": text}}).to_string();
    let loaded = rig.ask(&load("again", text));
    assert_eq!((&loaded["program"], &loaded["revision"]), (&json!("bridge"), &json!(1)));
    assert_eq!(rig.arrive(2, &frame(1, 2)), [1, 0]);
    assert_eq!(rig.ask(read), json!({"value": "300"}));
    assert!(rig.ask(&load("bad.xml", "<fe>")).as_str().unwrap().contains("bad.xml:1:1"));
    assert!(rig.ask(r#"{"roll_back":{}}"#)["program"].is_string());
    assert_eq!(rig.ask(read), json!({"value": "60"}));
    assert!(rig.ask(r#"{"roll_back":{}}"#).as_str().unwrap().contains("no previous program"));
    let reported = rig.ask(r#"{"get":"program"}"#);
    assert!(reported["text"].as_str().unwrap().contains("<fe "));
    assert!(rig.ask(r#"{"get":"routes"}"#).as_str().unwrap().contains("cannot get routes"));
    assert_eq!(rig.arrive(2, &frame(9, 2)), [1, 0]);
}

#[test]
fn many_table_entries_are_prepared_separately_and_applied_atomically() {
    let folder = std::env::temp_dir().join(format!("switch-{}-apart", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let text = include_str!("../../../../../examples/progfe/bridge.fe.xml");
    let source = progfe::xml::Source::new("bridge.fe.xml", text);
    let (program, problems) = progfe::program::Program::load(&source, &|_| Err("none".into()));
    let program = std::sync::Arc::new(program.unwrap_or_else(|| panic!("{problems}")));
    let mut config = Config::new(Kind::ProGfe(crate::config::ProGfeConfig::new(program)));
    config.control = Some(folder.join("control"));
    let mut rig = Rig::of(config);
    rig.node.start_compiler();
    assert_eq!(rig.arrive(1, &frame(2, 1)), [0, 1]);
    let mut client = std::os::unix::net::UnixStream::connect(folder.join("control")).unwrap();
    client.set_nonblocking(true).unwrap();
    // Returns the reply to a line. `between` is called before each turn.
    let mut ask = |rig: &mut Rig, line: Value, between: &mut dyn FnMut(&mut Rig)| {
        std::io::Write::write_all(&mut client, format!("{line}\n").as_bytes()).unwrap();
        let mut reply = Vec::new();
        while reply.last() != Some(&b'\n') {
            between(rig);
            rig.node.serve(rig.now);
            let mut bytes = [0; 4096];
            if let Ok(count) = std::io::Read::read(&mut client, &mut bytes) {
                reply.extend_from_slice(&bytes[..count]);
            }
            std::thread::yield_now();
        }
        serde_json::from_slice::<Value>(&reply).unwrap()
    };
    let macs = |port: usize| -> Vec<Value> {
        (0..1000).map(|at| json!({ "mac": station(at), "port": port })).collect()
    };
    // Another change is applied before the first program is prepared. It is kept, and the program
    // is prepared again.
    let mut small = 0;
    let reply = ask(&mut rig, json!({ "add_macs": macs(1) }), &mut |rig| {
        assert_eq!(rig.arrive(2, &frame(1, 2)), [1, 0], "frames pass");
        if small < 2 {
            small += 1;
            let add =
                json!({ "add_mac": { "mac": format!("02:00:00:00:09:0{small}"), "port": 1 } });
            assert_eq!(rig.ask(&add.to_string()), json!({ "added": 1 }));
        }
    });
    assert_eq!(reply, json!({ "ok": { "added": 1000 } }));
    let count = |rig: &mut Rig| rig.ask(r#"{"get":"macs"}"#).as_array().unwrap().len();
    assert_eq!(count(&mut rig), 1000 + 2 + 2, "with those that were learned");
    // One invalid entry: none is changed.
    let mut wrong = macs(2);
    wrong.push(json!({ "mac": "02:00:00:00:09:03", "port": 4_000_000_000u32 }));
    let before = rig.ask(r#"{"get":"program"}"#);
    let reply = ask(&mut rig, json!({ "add_macs": wrong }), &mut |_| {});
    if reply["error"].is_string() {
        assert_eq!(rig.ask(r#"{"get":"program"}"#), before);
    } else {
        panic!("{reply}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

fn element(text: &str) -> Rig {
    let source = progfe::xml::Source::new("program.fe.xml", text);
    let (program, problems) = progfe::program::Program::load(&source, &|_| Err("none".into()));
    let program = std::sync::Arc::new(program.unwrap_or_else(|| panic!("{problems}")));
    Rig::new(Kind::ProGfe(crate::config::ProGfeConfig::new(program)))
}

#[test]
fn a_routing_element_accepts_interfaces_neighbors_and_routes() {
    let mut rig = element(include_str!("../../../../../examples/progfe/router.fe.xml"));
    let packet = |to: [u8; 4], behind: u8| {
        let ip = packet::header::ipv4::Header::new([10, 1, 0, 2].into(), to.into());
        let builder = packet::build::Builder::new([2, 0x52, 0, 0, 0, behind], [2, 0, 0, 0, 0, 9]);
        builder.ipv4(ip).udp(1, 2).payload(&[7; 20]).bytes()
    };
    let neighbour =
        r#"{"add_neighbours":[{"port":2,"address":"10.0.2.2","mac":"02:00:00:00:00:22"}]}"#;
    let interface = |port: u8| format!(r#"{{"port":{port},"mac":"02:52:00:00:00:0{port}"}}"#);
    let interfaces = format!(r#"{{"set_interfaces":[{},{}]}}"#, interface(1), interface(2));
    assert_eq!(rig.ask(&interfaces), json!({"set": 2}));
    let route = |to: &str, rest: &str| format!(r#"{{"to":"{to}","via":"10.0.2.2"{rest}}}"#);
    let routes = |all: &[String]| format!(r#"{{"add_routes":[{}]}}"#, all.join(","));
    let early = rig.ask(&routes(&[route("16.0.0.0/8", "")]));
    assert_eq!(early, json!("16.0.0.0/8: unknown neighbour 10.0.2.2"));
    assert_eq!(rig.arrive(1, &packet([16, 0, 0, 1], 1)), [0, 0]);
    assert_eq!(rig.ask(neighbour), json!({"added": 1}));
    let reported = routes(&[route("16.0.0.0/8", ""), route("10.1.0.0/16", r#","port":2"#)]);
    assert_eq!(rig.ask(&reported), json!({"added": 2}));
    // Through a new route, through a replaced route, and to the neighbour itself.
    for to in [[16, 0, 0, 1], [10, 1, 9, 9], [10, 0, 2, 2]] {
        let mut batch = Batch::new(1);
        batch.push_bytes(&packet(to, 1));
        rig.wires[0].transmit(&mut batch, rig.now).unwrap();
        rig.node.turn(rig.now);
        let mut left = Batch::new(4);
        assert_eq!(rig.wires[1].receive(&mut left, rig.now).unwrap(), 1, "{to:?}");
        let bytes = left.frames()[0].bytes();
        assert_eq!(bytes[..12], [2, 0, 0, 0, 0, 0x22, 2, 0x52, 0, 0, 0, 2]);
        assert_eq!(bytes[22], 63, "one hop less");
    }
    // Not addressed to the ingress interface.
    assert_eq!(rig.arrive(1, &packet([16, 0, 0, 1], 2)), [0, 0]);
    let rows = |rig: &mut Rig, table: &str| {
        let path =
            json!({"get_component": {"instance": table, "path": "IPv4PrefixTable[2].HopSelector"}});
        rig.ask(&path.to_string())
    };
    let before = rows(&mut rig, "lpm");
    assert_eq!(rig.ask(neighbour), json!({"added": 1}));
    assert_eq!(rows(&mut rig, "lpm"), before, "a known neighbour keeps its row");
    for (line, part) in [
        (r#"{"set_interfaces":[{"port":3,"mac":"02:00:00:00:00:01"}]}"#, "declares no port 3"),
        (r#"{"add_routes":[{"to":"1.0.0.0/8","port":2}]}"#, "no next hop"),
        (r#"{"add_macs":[{"mac":"02:00:00:00:00:01","port":1}]}"#, "no learning table"),
    ] {
        let reply = rig.ask(line);
        assert!(reply.as_str().is_some_and(|reply| reply.contains(part)), "{reply} lacks {part:?}");
    }
    let mut bridge = element(include_str!("../../../../../examples/progfe/bridge.fe.xml"));
    assert_eq!(bridge.ask(&interfaces), json!("the program has no IPv4NextHop"));
}

#[test]
fn a_tagger_accepts_rules_and_reports_counters() {
    let mut rig = Rig::new(Kind::Tagger(crate::config::TaggerConfig::default()));
    assert_eq!(rig.ask(r#"{"get":"about"}"#)["kind"], "tagger");
    assert_eq!(rig.arrive(1, &frame(2, 1)), [0, 1]);
    let rules =
        json!([{"dscp": [40, 47], "vlan": 100, "priority": 5}, {"vlan": 200, "priority": 0}]);
    let reported = rig.ask(&json!({ "set_rules": rules }).to_string());
    assert_eq!(reported, json!({"rules": 2}));
    assert_eq!(rig.ask(r#"{"get":"rules"}"#), rules);
    assert_eq!(rig.arrive(1, &frame(2, 1)), [0, 1]);
    let all = rig.ask(r#"{"get":"counters"}"#);
    assert_eq!(all["tagger"], json!({"tagged": 1, "untagged": 0, "passed": 1}));
    let wrong = rig.ask(r#"{"set_rules":[{"vlan":5000}]}"#);
    assert!(wrong.as_str().unwrap().contains("vlan: 5000 is not between"), "{wrong}");
    assert!(rig.ask(r#"{"get":"macs"}"#).as_str().unwrap().contains("a tagger cannot get macs"));
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

/// Returns the MAC address of a station.
fn station(number: usize) -> String {
    format!("02:00:00:01:{:02x}:{:02x}", number >> 8, number & 0xff)
}

#[test]
fn a_bridge_adds_and_lists_addresses_within_a_budget() {
    let mut rig = Rig::new(Kind::Bridge(BridgeConfig::default()));
    let macs: Vec<Value> =
        (0..1000).map(|at| json!({ "mac": station(at), "port": 1 + at % 2 })).collect();
    let mut forwarded = 0;
    let (reply, turns) = rig.turns(&json!({ "add_macs": macs }), 100 * MESSAGE_STEPS, |rig, _| {
        // Frames are forwarded between turns.
        forwarded += rig.arrive(1, &frame(2, 1))[1];
    });
    assert_eq!((reply, turns.len(), forwarded), (json!({ "added": 1000 }), 9, 9));
    let (rows, turns) = rig.turns(&json!({ "get": "macs" }), 16 * 100, |_, _| {});
    let rows = rows.as_array().unwrap();
    assert_eq!((rows.len(), turns), (1001, [[100; 10].as_slice(), &[1]].concat()));
    let of: std::collections::BTreeSet<&str> =
        rows.iter().map(|row| row["mac"].as_str().unwrap()).collect();
    assert!((0..1000).all(|at| of.contains(&*station(at))));
    // Entries that earlier turns added stay when a later entry is invalid.
    let macs: Vec<Value> =
        (0..300).map(|at| json!({ "mac": station(at), "port": 1 + at / 250 * 8 })).collect();
    let (reply, _) = rig.turns(&json!({ "add_macs": macs }), 100 * MESSAGE_STEPS, |_, _| {});
    assert!(reply.as_str().unwrap().ends_with(": no port 9; 250 were added"), "{reply}");
    assert_eq!(rig.arrive(2, &frame(1, 2)), [1, 0], "it was learned");
    assert_eq!(rig.ask(r#"{"flush":"macs"}"#), json!({ "flushed": 2 }));
    assert_eq!(rig.ask(r#"{"get":"macs"}"#).as_array().unwrap().len(), 1000);
}

#[test]
fn an_element_lists_addresses_a_budget_at_a_time() {
    let mut rig = element(include_str!("../../../../../examples/progfe/bridge.fe.xml"));
    let macs: Vec<Value> =
        (0..1000).map(|at| json!({ "mac": station(at), "port": 1 + at % 2 })).collect();
    assert_eq!(rig.ask(&json!({ "add_macs": macs }).to_string()), json!({ "added": 1000 }));
    rig.arrive(1, &frame(2, 1));
    let mut forwarded = 0;
    let (rows, turns) = rig.turns(&json!({ "get": "macs" }), 16 * 100, |rig, _| {
        forwarded += rig.arrive(1, &frame(2, 1))[1];
    });
    assert_eq!((turns, forwarded), ([[100; 10].as_slice(), &[1]].concat(), 10));
    let rows = rows.as_array().unwrap();
    let is_there = |row: Value| rows.contains(&row);
    for at in [0, 1, 998, 999] {
        assert!(is_there(json!({ "mac": station(at), "port": 1 + at % 2, "static": true })));
    }
    assert!(is_there(json!({ "mac": "02:00:00:00:00:01", "port": 1, "static": false })));
    // A program without such a table ends the list.
    let text = include_str!("../../../../../examples/progfe/router.fe.xml");
    let load = json!({ "load": { "name": "router.fe.xml", "text": text } }).to_string();
    let (rows, turns) = rig.turns(&json!({ "get": "macs" }), 16 * 100, |rig, turn| {
        if turn == 3 {
            let loaded = rig.ask(&load);
            assert!(loaded.is_object(), "{loaded}");
        }
    });
    assert_eq!((rows.as_array().unwrap().len(), turns), (300, vec![100, 100, 100, 0]));
    assert!(rig.ask(r#"{"get":"macs"}"#).as_str().unwrap().contains("learning table"));
}

#[test]
fn a_router_flushes_neighbours_a_budget_at_a_time() {
    let mut rig = router();
    for at in 0..200u8 {
        let mut request = vec![0xff; 6];
        request.extend([2, 0, 0, 0, 3, at, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 3, at]);
        request.extend([10, 0, 2, 20 + at, 0, 0, 0, 0, 0, 0, 10, 0, 2, 1]);
        request.resize(60, 0);
        assert_eq!(rig.arrive(2, &request), [0, 1], "a reply");
    }
    let known = |rig: &mut Rig| rig.ask(r#"{"get":"neighbours"}"#).as_array().unwrap().len();
    assert_eq!(known(&mut rig), 201);
    let mut forwarded = 0;
    let (answer, turns) = rig.turns(&json!({ "flush": "neighbours" }), 256, |rig, _| {
        forwarded += rig.arrive(1, &packet_to([10, 0, 2, 2]))[1];
    });
    // Eight steps each.
    assert_eq!((answer, turns.len(), forwarded), (json!({ "flushed": 200 }), 6, 6));
    assert_eq!(known(&mut rig), 1, "what is configured stays");
    let mut bridge = Rig::new(Kind::Bridge(BridgeConfig::default()));
    let refused = bridge.ask(r#"{"flush":"neighbours"}"#);
    assert_eq!(refused, json!("a bridge cannot flush neighbours"));
}

#[test]
fn a_list_of_routes_during_changes_has_each_permanent_route_once() {
    let mut rig = router();
    let to = |at: usize| format!("10.{}.{}.0/24", 100 + at / 256, at % 256);
    let routes: Vec<Value> =
        (0..1000).map(|at| json!({ "to": to(at), "via": "10.0.2.9" })).collect();
    let (answer, turns) =
        rig.turns(&json!({ "add_routes": routes }), 100 * MESSAGE_STEPS, |_, _| {});
    assert_eq!((answer, turns.len()), (json!({ "added": 1000 }), 9));
    let (rows, turns) = rig.turns(&json!({ "get": "routes" }), 16 * 100, |rig, turn| {
        let add = json!({ "add_routes": [
            { "to": format!("9.9.{turn}.0/24"), "via": "10.0.2.9" },
            { "to": format!("11.9.{turn}.0/24"), "via": "10.0.2.9" },
        ]});
        assert_eq!(rig.ask(&add.to_string()), json!({ "added": 2 }));
    });
    assert!(turns.len() > 10 && turns.iter().all(|rows| *rows <= 100), "{turns:?}");
    let rows = rows.as_array().unwrap();
    let count = |wanted: &str| rows.iter().filter(|row| row["to"] == wanted).count();
    assert!((0..1000).all(|at| count(&to(at)) == 1));
    assert_eq!(
        (count("9.9.3.0/24"), count("11.9.3.0/24")),
        (0, 1),
        "it continues after the last row"
    );
    let flushed = rig.ask(r#"{"flush":"routes"}"#);
    assert_eq!(flushed, json!({ "flushed": 1000 + 2 * (turns.len() - 1) }));
    assert_eq!(
        rig.arrive(1, &packet_to([10, 100, 3, 1])),
        [1, 0],
        "no route: the sender receives an ICMP error"
    );
    assert_eq!(rig.arrive(1, &packet_to([10, 0, 2, 2])), [0, 1], "connected networks stay");
}

#[test]
fn counters_include_the_connections_of_each_listener() {
    let folder = std::env::temp_dir().join(format!("switch-{}-listeners", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let mut config = Config::new(Kind::Bridge(BridgeConfig::default()));
    config.control = Some(folder.join("control"));
    let mut rig = Rig::of(config);
    let connections = |rig: &mut Rig| rig.ask(r#"{"get":"counters"}"#)["control"].clone();
    let count = |accepted: usize, refused: usize, displaced: usize| {
        json!({
            "connections_accepted": accepted, "connections_refused": refused,
            "connections_displaced": displaced
        })
    };
    assert_eq!(connections(&mut rig), count(0, 0, 0));
    let places = crate::control::CONNECTIONS.per_source;
    let connect = || std::os::unix::net::UnixStream::connect(folder.join("control")).unwrap();
    let mut all: Vec<_> = (0..places).map(|_| connect()).collect();
    for client in &mut all {
        std::io::Write::write_all(client, b"{\"get\":\"about\"}\n").unwrap();
    }
    rig.node.serve(rig.now);
    rig.node.serve(rig.now);
    all.push(connect());
    rig.node.serve(rig.now);
    assert_eq!(connections(&mut rig), count(places, 1, 0));
    let mut without = Rig::new(Kind::Bridge(BridgeConfig::default()));
    assert_eq!(connections(&mut without), Value::Null);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_switch_lists_its_tables_and_has_no_addresses() {
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
fn a_switch_reports_the_last_match_of_each_entry() {
    let mut rig = Rig::new(Kind::OpenFlow(OpenFlowConfig::default()));
    let mut spec = FlowSpec::new(Match::ANY, 7, &[Action::Output { port: 2 }]);
    spec.idle_timeout = Nanos::from_secs(60);
    rig.install(&spec);
    rig.now += Nanos::from_secs(2);
    assert_eq!(rig.arrive(1, &frame(2, 1)), [0, 1]);
    rig.now += Nanos::from_millis(1_500);
    let reported = rig.ask(r#"{"get_flows":{}}"#);
    let (flow, next) = (&reported["flows"][0], &reported["next"]);
    assert_eq!((&flow["packets"], &flow["bytes"], next), (&json!(1), &json!(60), &Value::Null));
    assert_eq!((&flow["age_ms"], &flow["since_match_ms"]), (&json!(3_500), &json!(1_500)));
    assert_eq!((&flow["table"], &flow["actions"][0]), (&json!("wildcard"), &json!("output:2")));
    assert_eq!((&flow["priority"], &flow["idle_timeout_s"]), (&json!(7), &json!(60)));
}

#[test]
fn a_long_list_of_entries_has_several_parts() {
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
    let reported = flows(&first).into_iter().chain(flows(&rest));
    let priorities: std::collections::BTreeSet<_> =
        reported.map(|flow| flow["priority"].as_u64().unwrap()).collect();
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

/// Returns a UDP frame to the router's first interface for this destination.
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
fn a_router_accepts_routes_and_neighbors_and_uses_them() {
    let mut rig = router();
    assert_eq!(rig.arrive(1, &packet_to([10, 0, 2, 2])), [0, 1]);
    assert_eq!(
        rig.arrive(1, &packet_to([10, 9, 0, 1])),
        [1, 0],
        "no route: the sender is resolved"
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
fn a_router_rejects_unreachable_next_hops() {
    let mut rig = router();
    for (line, why) in [
        (
            r#"{"add_routes":[{"to":"10.9.0.0/16","via":"10.0.2.9"},
                              {"to":"10.8.0.0/16","via":"172.16.0.1"}]}"#,
            "no interface is in the network of next hop 172.16.0.1; 1 were added",
        ),
        (r#"{"add_routes":[{"to":"10.9.0.0/16","port":7}]}"#, "no interface on port 7"),
        (
            r#"{"add_routes":[{"to":"10.0.1.1/32","via":"10.0.2.9"}]}"#,
            "10.0.1.1/32: own address or broadcast address of a connected network",
        ),
        (r#"{"get":"macs"}"#, "a router cannot get macs"),
    ] {
        let reply = rig.ask(line).to_string();
        assert!(reply.contains(why), "{line}: {reply}");
    }
}
