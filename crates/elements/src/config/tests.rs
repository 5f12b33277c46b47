//! Tests of valid files and values, and of each way in which they can be invalid.

use openflow::version::Version;

use super::*;

fn port(number: PortNo, spec: &str) -> PortConfig {
    PortConfig { number, spec: spec.to_string() }
}

fn texts(config: &Config) -> Vec<String> {
    config.validate().iter().map(ToString::to_string).collect()
}

fn openflow(text: &str) -> Result<OpenFlowConfig, String> {
    OpenFlowConfig::from_toml(text).map_err(|error| error.to_string())
}

#[test]
fn defaults_are_valid() {
    let mut config = Config::new(Kind::OpenFlow(OpenFlowConfig::default()));
    config.ports = vec![port(1, "afpacket:a"), port(2, "afpacket:b")];
    assert_eq!(config.validate(), []);
    let Kind::OpenFlow(openflow) = config.kind else { unreachable!() };
    assert_eq!((openflow.exact_flows_max, openflow.flows_max_of(0)), (131_072, 65_536));
    assert_eq!(openflow.classifier_of(0), Classifier::Auto);
    assert_eq!(openflow.versions, Version::SUPPORTED);
}

#[test]
fn validation_reports_every_problem() {
    let mut config = Config::new(Kind::Bridge(BridgeConfig {
        ageing_s: 9999,
        macs_max: 0,
        ..BridgeConfig::default()
    }));
    config.ports = vec![port(0, "afpacket:a"), port(7, "afpacket:b"), port(7, "afpacket:b")];
    config.service = Service::DeficitRoundRobin { quantum_bytes: 0 };
    assert_eq!(
        texts(&config),
        [
            "port: 0 is not between 1 and 65279",
            "port: number 7 is used twice (hint: give each port its own)",
            "port: afpacket:b is used twice (hint: remove one of them)",
            "quantum_bytes: 0 is below 1",
            "ageing_s: 9999 is not between 0 and 3600",
            "macs_max: 0 is not between 1 and 16777216",
        ]
    );
    let none = Config::new(Kind::Bridge(BridgeConfig::default()));
    assert_eq!(none.validate(), [Problem::NoPorts]);
}

#[test]
fn a_switch_file_sets_its_keys_and_rejects_unknown_ones() {
    let text = "wildcard_flows_max = 5\nfail_mode = \"standalone\"\ndatapath_id = \"0xAB\"\n";
    let read = openflow(text).unwrap();
    assert_eq!(read.wildcard_flows_max, 5);
    assert_eq!(read.fail_mode, FailMode::Standalone);
    assert_eq!(read.datapath_id, Some(0xab));
    assert_eq!(read.exact_flows_max, 131_072);
    let unknown = openflow("buffers = 1\nfrobs = 2\n").unwrap_err();
    assert!(unknown.starts_with("line 2: unknown field `frobs`"), "{unknown}");
    let bad = openflow("datapath_id = \"+1\"").unwrap_err();
    assert_eq!(bad, "line 1: invalid datapath_id (hint: use up to 16 hexadecimal digits)");
    assert!(openflow("datapath_id = \"11112222333344445\"").is_err());
}

#[test]
fn tables_queues_versions_and_limits_are_parsed_and_validated() {
    let read = openflow(
        "versions = [\"1.0\"]\ntables = 3\nflows_max = 7\n\
         [[table]]\nnumber = 2\nflows_max = 5\nclassifier = \"linear\"\n\
         [[queue]]\nport = 1\nqueue = 4\nrate_bps_max = 1000\n\
         [limits]\nbundles = 2\nturn_us = 70\nflow_mods_per_turn = 7\n",
    )
    .unwrap();
    assert_eq!(read.versions, [Version::V1_0]);
    assert_eq!([1, 2].map(|table| read.flows_max_of(table)), [7, 5]);
    assert_eq!(
        [1, 2].map(|table| read.classifier_of(table)),
        [Classifier::Auto, Classifier::Linear]
    );
    assert_eq!((read.limits.bundles, read.limits.monitors), (2, Limits::default().monitors));
    assert_eq!((read.limits.turn_us, read.limits.flow_mods_per_turn), (70, Some(7)));
    let wrong = openflow("versions = [\"1.0\", \"1.7\"]").unwrap_err();
    assert!(wrong.starts_with("line 1: unsupported version \"1.7\" (hint: use 1.0"), "{wrong}");
    let mut config = Config::new(Kind::OpenFlow(OpenFlowConfig {
        tables: 2,
        limits: Limits { bundle_messages: 0, ..Limits::default() },
        ..read
    }));
    config.ports = vec![port(2, "afpacket:a")];
    assert_eq!(
        texts(&config),
        [
            "limits.bundle_messages: 0 is not between 1 and 16777216",
            "table.number: 2 is not between 0 and 1",
            "queue: no port 1 (hint: add --port 1=SPEC)",
        ]
    );
}

#[test]
fn queues_are_grouped_by_port_and_validated() {
    let queues = "[[queue]]\nport = 1\nqueue = 0\nrate_bps_min = 4000\n\
                  [[queue]]\nport = 2\nqueue = 7\nrate_bps_max = 2000\nframes_max = 9\n\
                  [[queue]]\nport = 1\nqueue = 5\n";
    let rate = "[[port_rate]]\nport = 1\nrate_bps = 5000\n";
    let read = openflow(&format!("{queues}{rate}")).unwrap();
    let gathered = read.port_queues();
    let numbers =
        |at: usize| gathered[at].queues.iter().map(|queue| queue.queue).collect::<Vec<_>>();
    assert_eq!([numbers(0), numbers(1)], [vec![0, 5], vec![7]]);
    assert_eq!((gathered[0].rate, gathered[1].rate), (Some(5000), None));
    let seven = gathered[1].queues[0];
    assert_eq!((seven.min, seven.max, seven.frames_max), (None, Some(2000), 9));
    let mut config = Config::new(Kind::OpenFlow(read));
    config.ports = vec![port(1, "afpacket:a"), port(2, "afpacket:b")];
    assert_eq!(texts(&config), [""; 0]);

    let wrong = openflow(&format!("{queues}[[queue]]\nport = 2\nqueue = 7\n")).unwrap();
    config.kind = Kind::OpenFlow(wrong);
    assert_eq!(
        texts(&config),
        [
            "queue: queue 0 has a rate_bps_min, but port 1 has no rate (hint: add a [[port_rate]] \
             for the port)",
            "queue: port 2: queue 7 is listed twice",
        ]
    );
}

const ROUTER: &str = r#"
cache = 1024
[[interface]]
port = 1
mac = "02:00:00:00:01:01"
addresses = ["10.0.1.1/24", "192.168.0.1/31"]
[[interface]]
port = 2
addresses = ["10.0.2.1/24"]
[[route]]
to = "10.9.0.0/16"
via = "10.0.2.2"
[[neighbour]]
port = 2
address = "10.0.2.2"
mac = "02:00:00:00:02:02"
"#;

#[test]
fn a_router_file_round_trips() {
    let router = RouterConfig::from_toml(ROUTER).unwrap();
    assert_eq!(router.port_towards("10.0.2.2".parse().unwrap()), Some(2));
    assert_eq!(router.interface[0].addresses[1].to_string(), "192.168.0.1/31");
    assert_eq!(router.neighbour[0].mac.to_string(), "02:00:00:00:02:02");
    let mut config = Config::new(Kind::Router(router));
    config.ports = vec![port(1, "afpacket:a"), port(2, "afpacket:b")];
    assert_eq!(config.validate(), []);
}

#[test]
fn errors_in_a_router_file_have_a_position() {
    for (from, to, line) in [
        ("\"10.0.1.1/24\"", "\"10.0.1.1/33\"", 6),
        ("\"10.0.1.1/24\"", "\"10.0.1.1\"", 6),
        ("02:00:00:00:01:01", "02:00:00:00:01", 5),
        ("02:00:00:00:01:01", "02:00:00:00:01:+1", 5),
        ("cache", "cash", 2),
        ("to = ", "two = ", 11),
    ] {
        let error = RouterConfig::from_toml(&ROUTER.replace(from, to)).unwrap_err();
        assert_eq!(error.line, Some(line), "{to}: {error}");
    }
}

#[test]
fn a_router_with_undefined_references_is_rejected() {
    let text = ROUTER.replace("port = 2", "port = 3").replace("10.0.2.2", "10.0.5.2");
    let text = text.replace("02:00:00:00:01:01", "03:00:00:00:01:01");
    let mut config = Config::new(Kind::Router(RouterConfig::from_toml(&text).unwrap()));
    config.ports = vec![port(1, "afpacket:a"), port(2, "afpacket:b")];
    assert_eq!(
        config.validate(),
        [
            Problem::BadMac(1),
            Problem::NoSuchPort { key: "interface", port: 3 },
            Problem::Unreachable("10.0.5.2".parse().unwrap()),
            Problem::NoSuchPort { key: "neighbour", port: 3 },
        ]
    );
}

#[test]
fn prefixes_contain_their_addresses() {
    let prefix: Prefix = "10.1.2.3/16".parse().unwrap();
    assert_eq!(prefix.network().to_string(), "10.1.0.0");
    assert!(prefix.holds("10.1.255.1".parse().unwrap()));
    assert!(!prefix.holds("10.2.0.0".parse().unwrap()));
    let all: Prefix = "0.0.0.0/0".parse().unwrap();
    assert!(all.holds("203.0.113.9".parse().unwrap()));
    assert_eq!("1.2.3.4/32".parse::<Prefix>().unwrap().mask(), u32::MAX);
}

#[test]
fn control_channels_are_validated_for_form_and_direction() {
    let mut config = Config::new(Kind::OpenFlow(OpenFlowConfig {
        controllers: ["tcp:127.0.0.1:6653", "punix:/x", "http:x"].map(String::from).to_vec(),
        listen: vec!["punix:/x".to_string(), "tcp:127.0.0.1:1".to_string()],
        ..OpenFlowConfig::default()
    }));
    config.ports = vec![port(1, "afpacket:a")];
    let texts = texts(&config);
    assert_eq!(texts.len(), 3, "{texts:?}");
    assert!(texts[0].ends_with("punix:/x: it is an address to listen on"), "{}", texts[0]);
    assert!(texts[1].starts_with("controllers: invalid address \"http:x\": "), "{}", texts[1]);
    assert!(texts[2].ends_with("tcp:127.0.0.1:1: it is an address to connect to"), "{}", texts[2]);
}
