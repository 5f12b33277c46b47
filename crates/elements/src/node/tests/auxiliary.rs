//! Tests of auxiliary connections: the switch makes them, they share the controller's role, carry
//! packet-ins, and end with the main connection.

use std::path::PathBuf;

use channel::Listener;
use openflow::model::reserved;
use openflow::model::role::{Role, RoleRequest};

use super::*;

/// A controller's socket in a temporary folder.
struct TestListener {
    folder: PathBuf,
    listener: Listener,
}

impl Drop for TestListener {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl TestListener {
    fn open(name: &str) -> TestListener {
        let folder = std::env::temp_dir().join(format!("auxiliary-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let url = format!("punix:{}", folder.join("s").display()).parse().unwrap();
        TestListener { listener: Listener::open(&url).unwrap(), folder }
    }

    /// Returns the configuration of a switch that makes this number of auxiliary connections to the
    /// socket.
    fn settings(&self, auxiliary: u8) -> OpenFlowConfig {
        let controllers = vec![format!("unix:{}", self.folder.join("s").display())];
        OpenFlowConfig { controllers, auxiliary, probe_ms: 3_600_000, ..OpenFlowConfig::default() }
    }

    /// Accepts pending connections as controllers of a version. Returns how many.
    fn take(&mut self, rig: &mut Rig, version: Version) -> usize {
        let before = rig.controllers.len();
        while let Some(channel) = self.listener.accept().unwrap() {
            let settings = Settings {
                versions: vec![version],
                echo_idle: None,
                ..Settings::new(End::Controller)
            };
            rig.controllers.push(Controller {
                session: Session::new(settings, rig.now),
                channel,
                replies: Vec::new(),
                news: Vec::new(),
                reads: true,
                down: false,
            });
        }
        rig.pass(Nanos::from_secs(1));
        rig.controllers.len() - before
    }
}

/// Returns the auxiliary ID of a connection from its features.
fn number(rig: &mut Rig, who: usize) -> u8 {
    match rig.ask(who, &Message::FeaturesRequest).as_slice() {
        [Message::FeaturesReply(features)] => features.auxiliary,
        other => panic!("{other:?}"),
    }
}

#[test]
fn auxiliary_connections_follow_the_main_connection() {
    let mut listener = TestListener::open("come");
    let mut rig = Rig::new(listener.settings(2));
    rig.pass(Nanos::from_secs(1));
    assert_eq!(listener.take(&mut rig, Version::V1_3), 1, "the main connection first");
    assert_eq!(listener.take(&mut rig, Version::V1_3), 2);
    let mut numbers: Vec<_> = (0..3).map(|who| number(&mut rig, who)).collect();
    assert_eq!(numbers.remove(0), 0);
    numbers.sort_unstable();
    assert_eq!(numbers, [1, 2]);
    // A lost connection is made again.
    rig.controllers.remove(2);
    rig.pass(Nanos::from_secs(2));
    assert_eq!(listener.take(&mut rig, Version::V1_3), 1);
    // Without the main connection there are none.
    let main = rig.controllers.remove(0);
    drop(main);
    rig.settle();
    assert!(rig.controllers.iter().all(|controller| controller.down));
    assert!(rig.log.iter().any(|line| line.ends_with("main connection closed")));
    rig.controllers.clear();
    rig.pass(Nanos::from_secs(2));
    assert_eq!(listener.take(&mut rig, Version::V1_3), 1, "the main connection is reopened first");
}

#[test]
fn controllers_of_an_older_version_get_no_auxiliary_connections() {
    let mut listener = TestListener::open("older");
    let mut rig = Rig::new(listener.settings(2));
    rig.pass(Nanos::from_secs(1));
    assert_eq!(listener.take(&mut rig, Version::V1_2), 1);
    rig.pass(Nanos::from_secs(20));
    assert_eq!(listener.take(&mut rig, Version::V1_2), 0);
}

#[test]
fn a_version_other_than_that_of_the_main_connection_is_rejected() {
    let mut listener = TestListener::open("other");
    let mut rig = Rig::new(listener.settings(1));
    rig.pass(Nanos::from_secs(1));
    listener.take(&mut rig, Version::V1_3);
    assert_eq!(listener.take(&mut rig, Version::V1_4), 1);
    assert!(rig.controllers[1].down && !rig.controllers[0].down);
}

#[test]
fn packet_ins_use_auxiliary_connections_and_the_role_is_shared() {
    let mut listener = TestListener::open("frames");
    let mut rig = Rig::new(listener.settings(1));
    rig.pass(Nanos::from_secs(1));
    listener.take(&mut rig, Version::V1_3);
    rig.order(&Message::FlowMod(add(Match::ANY, reserved::CONTROLLER)));
    rig.arrive(1, &udp(0, 60));
    assert_eq!(rig.news(0).len(), 1, "over the main connection while there is no other");
    assert_eq!(listener.take(&mut rig, Version::V1_3), 1);
    rig.arrive(1, &udp(1, 60));
    assert_eq!(
        (rig.news(0).len(), rig.news(1).len()),
        (0, 1),
        "once, in addition to the main connection"
    );
    // A barrier is answered on the connection on which it was sent.
    assert_eq!(rig.ask(1, &Message::BarrierRequest), [Message::BarrierReply]);
    // A slave role requested on one connection also applies to the other.
    let slave = RoleRequest { role: Role::Slave, generation: 1, ..RoleRequest::default() };
    assert!(matches!(rig.ask(1, &Message::RoleRequest(slave)).as_slice(), [Message::RoleReply(_)]));
    let refused = rig.ask(0, &Message::FlowMod(add(from_port(2), 1)));
    assert!(matches!(refused.as_slice(), [Message::Error(_)]), "{refused:?}");
    rig.arrive(1, &udp(2, 60));
    assert_eq!((rig.news(0).len(), rig.news(1).len()), (0, 0), "a slave receives no packet-ins");
}
