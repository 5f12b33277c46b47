//! Start, configuration and counters of the planimeter program, tested with a stand-in that records
//! its input.
//!
//! The stand-in is this test program, started like `planimeter`; the real program is tested in its
//! own crate.

use crate::fixture::{PATIENCE, Root, processes_with, wiring};
use std::io::{BufRead, BufReader, Write};
use std::net::Ipv4Addr;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use testbed::LabError;
use testbed::peer::planimeter::{Mode, Planimeter};
use testbed::peer::{ControlInterface, Peer, Plan, PortAddress, PortNeighbor, PortRoute, Station};

/// Behaves as the program does towards the lab: listens, replies, ends on SIGTERM.
pub fn stand_in(arguments: &[String]) -> ExitCode {
    if arguments == ["--version"] {
        println!("planimeter 0.0.0 (stand-in)");
        return ExitCode::SUCCESS;
    }
    if arguments.contains(&"--broken".to_owned()) {
        eprintln!("planimeter: p1: no such interface");
        return ExitCode::from(3);
    }
    extern "C" fn end(_: i32) {
        unsafe { libc::_exit(0) }
    }
    unsafe { libc::signal(libc::SIGTERM, end as *const () as libc::sighandler_t) };
    let after = |flag: &str| {
        let at = arguments.iter().position(|word| word == flag)?;
        arguments.get(at + 1).map(String::as_str)
    };
    let _openflow = after("--listen")
        .map(|url| UnixListener::bind(url.strip_prefix("punix:").unwrap()).unwrap());
    let control = PathBuf::from(after("--control-socket").unwrap());
    // Created before the socket, so that a connected client can read it.
    let mut seen = std::fs::File::create(control.with_extension("seen")).unwrap();
    writeln!(seen, "{}", arguments.join(" ")).unwrap();
    let listener = UnixListener::bind(&control).unwrap();
    for stream in listener.incoming() {
        let stream = stream.unwrap();
        let mut writer = stream.try_clone().unwrap();
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            writeln!(seen, "{line}").unwrap();
            writeln!(writer, r#"{{"ok": {{"drops": {{"no_route": 3}}}}}}"#).unwrap();
        }
    }
    ExitCode::SUCCESS
}

fn program() -> PathBuf {
    std::env::current_exe().unwrap()
}

fn seen(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path.join("control.seen")).unwrap();
    text.lines().map(str::to_owned).collect()
}

pub fn a_router_receives_its_complete_configuration() {
    let root = Root::new();
    let lab = root.lab();
    let site = lab.site("router", &wiring()).unwrap();
    let own =
        |port: u32| PortAddress { port, address: Ipv4Addr::new(10, 0, port as u8, 1), length: 24 };
    let mode = Mode::Router { addresses: vec![own(1), own(2)], cache: 16 };
    let mut router = Planimeter::new(program(), mode, vec!["--extra".into(), "7".into()]);
    router.start(&site).unwrap();
    let access = router.ready(PATIENCE).unwrap();
    assert_eq!(access, ControlInterface::Control { socket: site.path.join("control") });
    let via = Ipv4Addr::new(10, 0, 2, 2);
    let plan = Plan {
        neighbors: vec![PortNeighbor { port: 2, address: via, mac: [2, 0, 0, 0, 0, 9] }],
        routes: (0..10_000_u32)
            .map(|n| PortRoute {
                prefix: Ipv4Addr::from((20 << 24) + (n << 8)),
                length: 24,
                via,
                port: 2,
            })
            .collect(),
        ..Plan::default()
    };
    router.install(&site, &plan).unwrap();
    let path = site.path.display();
    let lines = seen(&site.path);
    assert_eq!(
        lines[0],
        format!(
            "router --port 1=afpacket:p1 --port 2=afpacket:p2 --control-socket {path}/control \
             --config {path}/router.toml --extra 7"
        )
    );
    assert_eq!(
        lines[1],
        r#"{"add_neighbours":[{"port":2,"address":"10.0.2.2","mac":"02:00:00:00:00:09"}]}"#
    );
    assert!(
        lines[2].starts_with(r#"{"add_routes":[{"to":"20.0.0.0/24","via":"10.0.2.2","port":2},"#)
    );
    let entries = |line: &str| line.matches("\"to\"").count();
    assert_eq!((entries(&lines[2]), entries(&lines[3])), (8192, 10_000 - 8192));
    assert_eq!(lines.len(), 4);
    assert_eq!(router.counters().unwrap(), [("drops.no_route".to_owned(), 3)].into());
    let stations = Plan { stations: vec![Station { mac: [2; 6], port: 1 }], ..Plan::default() };
    assert!(matches!(router.install(&site, &stations), Err(LabError::Argument { .. })));
    let described = router.describe();
    assert_eq!(described.version, "planimeter 0.0.0 (stand-in)");
    assert_eq!((described.kind.as_str(), &*described.settings["cache"]), ("router", "16"));
    router.check().unwrap();
    router.stop().unwrap();
    assert_eq!(processes_with(&path.to_string()), Vec::<u32>::new());
}

pub fn a_bridge_and_a_switch_are_configured() {
    let root = Root::new();
    let lab = root.lab();
    let site = lab.site("bridge", &wiring()).unwrap();
    let ageing = Duration::from_secs(3600);
    let mut bridge = Planimeter::new(program(), Mode::Bridge { ageing }, Vec::new());
    bridge.start(&site).unwrap();
    bridge.ready(PATIENCE).unwrap();
    let plan = Plan { stations: vec![Station { mac: [2; 6], port: 1 }], ..Plan::default() };
    bridge.install(&site, &plan).unwrap();
    let lines = seen(&site.path);
    assert_eq!(lines[1], r#"{"set":{"ageing_s":3600}}"#);
    assert_eq!(lines[2], r#"{"add_macs":[{"mac":"02:02:02:02:02:02","port":1}]}"#);
    bridge.stop().unwrap();
    let site = lab.site("switch", &wiring()).unwrap();
    let mut switch = Planimeter::new(program(), Mode::Switch, Vec::new());
    switch.start(&site).unwrap();
    let channel = format!("unix:{}", site.path.join("openflow").display());
    assert_eq!(switch.ready(PATIENCE).unwrap(), ControlInterface::OpenFlow { channel });
    assert!(switch.install(&site, &plan).is_err());
    assert!(seen(&site.path)[0].contains(&format!("--listen punix:{}", site.path.display())));
    let pid = switch.processes()[0];
    // The lab detects a program that dies.
    unsafe { libc::kill(pid as i32, libc::SIGKILL) };
    assert!(crate::fixture::in_time(|| switch.check().is_err()));
    assert!(matches!(switch.stop(), Err(LabError::Exited { .. })));
}

pub fn a_start_failure_is_reported() {
    let root = Root::new();
    let lab = root.lab();
    let site = lab.site("broken", &wiring()).unwrap();
    let mut broken = Planimeter::new(program(), Mode::Switch, vec!["--broken".into()]);
    broken.start(&site).unwrap();
    let error = broken.ready(PATIENCE).unwrap_err();
    assert!(error.to_string().contains("p1: no such interface"), "{error}");
    let mut absent = Planimeter::new("/no/such/planimeter", Mode::Switch, Vec::new());
    let error = absent.start(&site).unwrap_err();
    assert!(error.to_string().contains("/no/such/planimeter"), "{error}");
    assert!(absent.ready(PATIENCE).is_err());
}
