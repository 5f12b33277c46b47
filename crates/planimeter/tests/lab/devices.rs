//! Tests of user devices that another process started: our switch, Open vSwitch, and a kernel
//! bridge.
//!
//! Each switch has its own namespace, and TCP connections in both directions over a separate cable.
//! The program runs at the other ends of the cables.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use testbed::peer::linux_bridge::LinuxBridge;
use testbed::peer::linux_router::LinuxRouter;
use testbed::peer::openvswitch::OpenVswitch;
use testbed::peer::{ControlInterface, Peer, Plan, PortAddress, PortRoute};
use testbed::requirement;
use testbed::veth::{Cable, EndSettings};
use testbed::{Lab, Requirement, Site, Wiring};

use super::common::{CommandResult, only_run, record};
use super::{Place, in_time, ovs_needs};

/// Time limit for a device; only a failure takes this long.
const PATIENCE: Duration = Duration::from_secs(30);

/// A device's namespace: two cables for frames, and one for its control channel.
struct Rack {
    place: Place,
    site: Site,
    lab: Lab,
    _control: Cable,
}

impl Rack {
    fn new() -> Rack {
        let place = Place::new();
        let lab = Lab::open(&place.path().join("rack")).unwrap();
        let wiring = Wiring { ports: 3, ..Wiring::of_machine().unwrap() };
        let site = lab.site("dev", &wiring).unwrap();
        let end = |namespace: &testbed::Namespace, last: u8| EndSettings {
            namespace: namespace.clone(),
            name: "control".into(),
            mac: [2, 0, 0, 0, 9, last],
            threaded: None,
        };
        let near = end(&lab.instrument, 1);
        let control = Cable::lay(&near, &end(&site.namespace, 2), 1_500).unwrap();
        control.wait_carrying().unwrap();
        for (end, last) in control.ends.iter().zip([1, 2]) {
            let mut netlink = end.namespace.netlink().unwrap();
            netlink.address_add(end.index, [10, 99, 0, last].into(), 24).unwrap();
        }
        Rack { place, site, lab, _control: control }
    }

    /// Runs the program in the namespace of the tester's ends.
    fn planimeter(&self, arguments: &[&str]) -> CommandResult {
        let mut command = self.place.command(arguments);
        self.lab.instrument.run(|| command.output().unwrap().into()).unwrap()
    }

    /// Runs experiments on a device briefly, which must succeed.
    fn measured(&self, device: &str, experiments: &[&str], set: &[&str]) -> Value {
        let runs = self.place.path().join("runs");
        let _ = std::fs::remove_dir_all(&runs);
        let result = self.run(device, experiments, set);
        assert_eq!(result.code, Some(0), "{}", result.errors);
        record(&only_run(&runs))
    }

    fn run(&self, device: &str, experiments: &[&str], set: &[&str]) -> CommandResult {
        let short = ["repeats=1", "seconds=0.1", "warmup=0", "load=0.2", "frame=64"];
        // Modules have no trials to shorten.
        let is_of_trials =
            |it: &&str| it.starts_with("forwarding-rate") || it.starts_with("bianco2010");
        let short = if experiments.iter().any(is_of_trials) { &short[..] } else { &short[..1] };
        let mut arguments = vec!["run"];
        arguments.extend(experiments);
        arguments.extend(["--effort", "quick", "--on", device]);
        arguments.extend(short.iter().chain(set).flat_map(|it| ["--set", it]));
        self.planimeter(&arguments)
    }

    /// Our switch as a plain process of the device's namespace.
    fn our_switch(&self, words: &[&str]) -> Ended {
        self.our_switch_with([1, 2, 3], words)
    }

    /// Starts it with these port numbers.
    fn our_switch_with(&self, numbers: [u32; 3], words: &[&str]) -> Ended {
        let port = |(place, number): (u32, u32)| format!("{number}=afpacket:p{place}");
        let ports: Vec<String> = (1..).zip(numbers).map(port).collect();
        let mut arguments = vec!["switch"];
        arguments.extend(ports.iter().flat_map(|port| ["--port", port]));
        arguments.extend(words);
        let mut command = self.place.command(&arguments);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Ended(self.site.namespace.run(|| command.spawn().unwrap()).unwrap())
    }
}

/// A process that is ended with the test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Checks that both experiments have results: frames came through, and rules were verified to be
/// active.
fn assert_measured(record: &Value, device: &str) {
    let trials = record["trials"].as_array().unwrap();
    let of = |name: &str| trials.iter().find(|trial| trial["experiment"] == name).unwrap();
    let rate = of("forwarding-rate");
    assert_eq!(rate["target"], device);
    assert!(rate["frames_forwarded"].as_u64() > Some(0), "{rate}");
    assert!(rate["frames_forwarded"].as_i64() <= rate["frames_offered"].as_i64(), "{rate}");
    let rules = of("rule-activation");
    assert_eq!(rules["module"]["ended"], "completed", "{rules}");
    let target = &record["targets"][0];
    assert_eq!((&target["family"], &target["name"]), (&"device".into(), &device.into()));
    assert!(target["version"].as_str().is_some_and(|it| !it.is_empty()), "{target}");
    assert!(target["settings"]["datapath_id"].is_string(), "{target}");
    assert!(record["calibrations"].as_array().is_none_or(Vec::is_empty), "{record}");
}

const BOTH: [&str; 2] = ["forwarding-rate", "rule-activation"];
const RULES: [&str; 2] = ["rules_count=20", "probes_pps=2000"];

/// Tests our switch, first listening, then connecting to the tester.
pub fn our_switch_is_measured_as_a_device() {
    let rack = Rack::new();
    for (words, device) in [
        (["--listen", "ptcp:6653:10.99.0.2"], "openflow:tcp:10.99.0.2:6653,ports=1@dev-1+2@dev-2"),
        (
            ["--controller", "tcp:10.99.0.1:6653"],
            "openflow:ptcp:6653:10.99.0.1,ports=1@dev-1+2@dev-2",
        ),
    ] {
        let _switch = rack.our_switch(&words);
        assert_measured(&rack.measured(device, &BOTH, &RULES), device);
    }
}

/// Tests one input port and then two: the switch has one table and opens one connection.
pub fn a_device_is_measured_with_two_and_three_ports() {
    let rack = Rack::new();
    let _switch = rack.our_switch(&["--controller", "tcp:10.99.0.1:6653"]);
    let device = "openflow:ptcp:6653:10.99.0.1,ports=1@dev-1+2@dev-2+3@dev-3";
    let experiments = ["bianco2010/fig9", "bianco2010/fig10", "forwarding-rate"];
    let record = rack.measured(device, &experiments, &["load=40", "entries=64", "capacity=20M"]);
    let trials = record["trials"].as_array().unwrap();
    for experiment in experiments {
        let own: Vec<_> = trials.iter().filter(|it| it["experiment"] == experiment).collect();
        assert!(!own.is_empty(), "{experiment}");
        for trial in own {
            for stream in trial["streams"].as_array().unwrap() {
                assert!(stream["classes"]["correct"].as_u64() > Some(0), "{trial}");
            }
        }
    }
}

/// Returns the files of a key, its certificate, and the certificate authorities for both ends.
fn credentials(rack: &Rack, names: [&str; 2]) -> [[String; 3]; 2] {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut parameters = rcgen::CertificateParams::new(Vec::new()).unwrap();
    parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let ca = parameters.self_signed(&key).unwrap().pem();
    let issuer = rcgen::Issuer::new(parameters, key);
    names.map(|name| {
        let key = rcgen::KeyPair::generate().unwrap();
        let parameters = rcgen::CertificateParams::new(vec![format!("{name}.invalid")]);
        let certificate = parameters.unwrap().signed_by(&key, &issuer).unwrap();
        let texts = [key.serialize_pem(), certificate.pem(), ca.clone()];
        let mut whats = ["key", "certificate", "ca"].into_iter();
        texts.map(|text| {
            let path = rack.place.path().join(format!("{name}-{}.pem", whats.next().unwrap()));
            std::fs::write(&path, text).unwrap();
            path.display().to_string()
        })
    })
}

/// Checks that each module of these experiments completed.
fn assert_ended(record: &Value, experiments: &[&str]) {
    let trials = record["trials"].as_array().unwrap();
    for experiment in experiments {
        let own: Vec<_> =
            trials.iter().filter(|trial| trial["experiment"] == *experiment).collect();
        assert!(!own.is_empty(), "{experiment}");
        for trial in own {
            let module = &trial["module"];
            assert_eq!(module["ended"], "completed", "{experiment}: {}", module["notes"]);
        }
    }
}

/// Tests a switch over TLS whose ports are not numbered 1, 2, 3: modules, verified rules and tables
/// of the study of nine switches, which all use ports 1 and 2.
pub fn a_device_with_other_port_numbers_is_measured_over_tls() {
    let rack = Rack::new();
    let [theirs, ours] = credentials(&rack, ["switch", "tester"]);
    let [key, certificate, ca] = &theirs;
    let mut words = vec!["--listen", "pssl:6653:10.99.0.2", "--private-key", key];
    words.extend(["--certificate", certificate, "--ca-cert", ca]);
    let _switch = rack.our_switch_with([5, 17, 2], &words);
    let [key, certificate, ca] = &ours;
    let device = format!(
        "openflow:ssl:10.99.0.2:6653,private-key={key},certificate={certificate},ca-cert={ca},\
         ports=5@dev-1+17@dev-2"
    );
    assert_measured(&rack.measured(&device, &BOTH, &RULES), &device);
    let study = ["costa2017/table1", "costa2017/table3", "costa2017/table6", "costa2017/table8"];
    let set = ["packets=50", "open_pps=0", "rewrites=published", "rules_bound=100", "pace=0.05"];
    let set = [&set[..], &["requests=2", "heavy_pps=1000", "match_types=port,exact"]].concat();
    let record = rack.measured(&device, &study, &set);
    assert_ended(&record, &study);
    let trials = record["trials"].as_array().unwrap();
    let returned = trials
        .iter()
        .flat_map(|trial| trial["module"]["measured"].as_array().unwrap())
        .filter(|it| it["metric"] == "returned_ratio" || it["metric"] == "right_ratio");
    let returned: Vec<_> = returned.map(|it| it["value"].as_f64().unwrap()).collect();
    assert!(returned.len() > 8 && returned.iter().all(|it| *it > 0.9), "{returned:?}");
}

/// Tests that messages to a device are timestamped where they leave this host, although their ports
/// are renumbered.
pub fn the_control_channel_of_a_device_is_captured() {
    let rack = Rack::new();
    let _switch = rack.our_switch_with([2, 3, 9], &["--listen", "ptcp:6653:10.99.0.2"]);
    let device = "openflow:tcp:10.99.0.2:6653,ports=9@dev-3+2@dev-1";
    let record = rack.measured(
        device,
        &["echo-delay", "rule-activation"],
        &["control_capture=timestamps", "rules_count=20", "probes_pps=2000"],
    );
    assert_ended(&record, &["echo-delay", "rule-activation"]);
    for trial in record["trials"].as_array().unwrap() {
        let wire = &trial["module"]["wire"];
        assert_eq!((&wire["stamps"], &wire["unknown"]), (&"kernel".into(), &0.into()), "{wire}");
        assert!(wire["received"]["count"].as_u64() > Some(0), "{wire}");
        assert!(wire["sent"]["count"].as_u64() > Some(0), "{wire}");
    }
}

/// Tests a kernel router without neighbor entries: its ports' addresses are resolved, and its ARP
/// requests are answered.
pub fn a_router_is_measured_as_a_device() {
    let rack = Rack::new();
    let own = |port: u32| PortAddress { port, address: [10, 0, port as u8, 1].into(), length: 24 };
    let mut router = LinuxRouter::new(vec![own(1), own(2)]);
    router.start(&rack.site).unwrap();
    router.ready(PATIENCE).unwrap();
    let device = "device:router,ports=1@dev-1+2@dev-2";
    let refused = rack.run(device, &BOTH[..1], &["device_timeout_s=1"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.errors.contains("add routes by 10.0.2.2"), "{refused:?}");
    let route =
        PortRoute { prefix: [16, 0, 0, 0].into(), length: 8, via: [10, 0, 2, 2].into(), port: 2 };
    router.install(&rack.site, &Plan { routes: vec![route], ..Plan::default() }).unwrap();
    let record = rack.measured(
        device,
        &["forwarding-rate", "costa2017/fig6"],
        &["entries=20", "packets=50"],
    );
    assert_ended(&record, &["costa2017/fig6"]);
    assert_eq!(record["targets"][0]["technology"], "routing");
    let trials = record["trials"].as_array().unwrap();
    let rate = trials.iter().find(|it| it["experiment"] == "forwarding-rate").unwrap();
    assert!(rate["frames_forwarded"].as_u64() > Some(0), "{rate}");
    assert_eq!(rate["streams"][0]["classes"]["corrupted"].as_u64().unwrap_or(0), 0, "{rate}");
    router.stop().unwrap();
}

/// Runs one of Open vSwitch's tools and returns its output.
fn run_tool(tool: &'static str, package: &'static str, words: &[&str]) -> String {
    let tool = requirement::tool(tool, package).unwrap();
    let output = Command::new(tool).args(words).output().unwrap();
    assert!(output.status.success(), "{words:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

pub fn ofctl_needs() -> Result<(), Requirement> {
    ovs_needs()?;
    requirement::tool("ovs-ofctl", "openvswitch-common").map(drop)
}

/// Tests Open vSwitch in both directions. Its existing flow is first rejected, then deleted and
/// restored.
pub fn open_vswitch_is_measured_as_a_device() {
    let rack = Rack::new();
    let mut switch = OpenVswitch::default();
    switch.start(&rack.site).unwrap();
    let ControlInterface::OpenFlow { channel } = switch.ready(PATIENCE).unwrap() else { panic!() };
    let database = format!("--db=unix:{}", rack.site.path.join("db.sock").display());
    let versions = "protocols=OpenFlow10,OpenFlow13,OpenFlow14";
    let set = |url: &str| {
        let words = [&*database, "set", "bridge", "br0", versions];
        let words = words.into_iter().chain(["--", "set-controller", "br0", url]);
        run_tool("ovs-vsctl", "openvswitch-switch", &words.collect::<Vec<_>>());
    };
    let flow = "table=2,priority=7,udp,tp_dst=53,actions=drop";
    let flows = || {
        let words = ["--no-stats", "dump-flows", &channel];
        let text = run_tool("ovs-ofctl", "openvswitch-common", &words);
        text.lines()
            .map(|line| line.trim().to_owned())
            .filter(|it| it.contains("actions"))
            .collect()
    };
    for (url, device) in [
        ("ptcp:6653:10.99.0.2", "openflow:tcp:10.99.0.2:6653,ports=1@dev-1+2@dev-2"),
        ("tcp:10.99.0.1:6653", "openflow:ptcp:6653:10.99.0.1,ports=1@dev-1+2@dev-2"),
    ] {
        set(url);
        // It deletes its flows when it gets its first controller.
        run_tool("ovs-ofctl", "openvswitch-common", &["add-flow", &channel, flow]);
        let before: Vec<String> = flows();
        assert_eq!(before.len(), 1, "{before:?}");
        let refused = rack.run(device, &BOTH, &RULES);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.errors.contains("the device has 1 flow entries"), "{refused:?}");
        assert!(refused.errors.contains("existing_flows=replace"), "{refused:?}");
        assert_eq!(flows(), before);
        let set = [&RULES[..], &["existing_flows=replace", "device_timeout_s=60"]].concat();
        assert_measured(&rack.measured(device, &BOTH, &set), device);
        assert_eq!(flows(), before);
    }
    switch.stop().unwrap();
}

/// Tests a kernel bridge, and an interface that was down and is down again afterwards.
pub fn a_bridge_is_measured_as_a_device() {
    let rack = Rack::new();
    let mut bridge = LinuxBridge::new(Duration::from_secs(300));
    bridge.start(&rack.site).unwrap();
    bridge.ready(PATIENCE).unwrap();
    let mut netlink = rack.lab.instrument.netlink().unwrap();
    let index = netlink.link("dev-2").unwrap().index;
    netlink.link_down(index).unwrap();
    let device = "device:ports=1@dev-1+2@dev-2";
    let record = rack.measured(device, &BOTH[..1], &[]);
    assert!(!netlink.link("dev-2").unwrap().up);
    let trial = &record["trials"][0];
    assert!(trial["frames_forwarded"].as_u64() > Some(0), "{trial}");
    let target = &record["targets"][0];
    assert_eq!((&target["technology"], &target["version"]), (&"bridging".into(), &Value::Null));
    bridge.stop().unwrap();
}

/// Tests that each error in a device's cables, interfaces and address is one line with a hint.
pub fn device_errors_are_reported_with_a_hint() {
    let rack = Rack::new();
    let _switch = rack.our_switch(&["--listen", "ptcp:6653:10.99.0.2"]);
    let at = |rest: &str| format!("openflow:tcp:10.99.0.2:{rest}");
    let listens =
        || rack.site.namespace.run(|| std::net::TcpStream::connect("10.99.0.2:6653").is_ok());
    assert!(in_time(|| listens().unwrap()), "it does not listen");
    for (device, words) in [
        (at("6653,ports=1@dev-1+2@nosuch0"), "(hint: run 'ip link' to list interfaces)"),
        (at("6653,ports=1@dev-1+2@control"), ", and may connect this host to its network"),
        (at("6653,ports=1@dev-2+2@dev-1"), "port 1 of the device is cabled to dev-1, not to dev-2"),
        (at("6653,ports=1@dev-1+9@dev-2"), "the switch has no port 9 (hint: use one of 1, 2, 3)"),
        (
            at("6654,ports=1@dev-1+2@dev-2"),
            "(hint: check the address and the switch's access rules",
        ),
        (
            "openflow:ptcp:6655:0.0.0.0,ports=1@dev-1+2@dev-2".into(),
            "(hint: configure this host as the switch's controller",
        ),
        ("device:ports=1@dev-1+2@dev-2".into(), "(dev-1) did not arrive at port 2 (dev-2)"),
    ] {
        let result = rack.run(&device, &BOTH[..1], &["device_timeout_s=1"]);
        assert_eq!(result.code, Some(2), "{device}: {result:?}");
        let line = result.errors.lines().last().unwrap_or_default();
        assert!(line.contains(words), "{device}: {line}");
    }
    let runs: PathBuf = rack.place.path().join("runs");
    let trials = |run: &str| std::fs::read_to_string(runs.join(run).join("trials.jsonl"));
    for run in super::contents(&runs) {
        assert_eq!(trials(&run).unwrap_or_default(), "", "{run}");
    }
}
