//! Module in a live event loop: real time, a real socket, ports in memory. The switch is a thread.

#![allow(clippy::unwrap_used)]

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use channel::tls::Files;
use channel::{ChannelError, Listener, Tls, Url};
use netio::memory::pair;
use netio::port::Port;
use openflow::model::message::Message;
use openflow::model::switch::Features;
use openflow::session::{self, Session};
use openflow::version::{End, MessageKind, Version};
use os::clock;
use packet::batch_copy::Copies;
use packet::time::Nanos;
use tester::executor::live::Dialer;
use tester::executor::{TopologyInfo, WRITE_BYTES};
use tester::module::*;
use tester::rig::live::LiveRig;
use tester::stream::{Headers, Rate, Stream};

const PROBES: u64 = 2_000;

/// Sends many echo requests and a batch larger than one write, and counts frames.
#[derive(Default)]
struct Measures {
    echoes: Vec<(Nanos, Nanos)>,
    asked_at: Nanos,
    echo: Option<u32>,
    sent: Option<u32>,
    batch: Option<MessageRange>,
    batch_took: Option<(Nanos, Nanos)>,
    barriers: u32,
    probes: u64,
    delays: Vec<u64>,
    is_sent: bool,
}

/// Number of echo requests, one after the other.
const ECHOES: usize = 50;

/// Number of barriers in the batch: more bytes than one write takes.
const BARRIERS: u32 = 10_000;

impl Module for Measures {
    fn needs(&self) -> ModuleRequirements {
        ModuleRequirements::new(Nanos::from_secs(60)).in_versions(&[Version::V1_3])
    }

    fn react(&mut self, event: &Event<'_>, context: &mut ModuleContext) {
        match event.what {
            EventKind::Start(facts) => {
                assert!(!facts.is_simulated);
                let headers = Headers::udp(
                    ([2; 6], [4; 6]),
                    (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2)),
                    (1, 2),
                );
                let stream = Stream::plain(1, 128, headers, Rate::FramesPerSecond(20_000.0));
                context.watch(1, FrameFilter::Probes);
                context.start(stream, SendSpan::frames(PROBES));
                self.echo = Some(context.send(0, Message::EchoRequest(vec![7; 8])));
            }
            EventKind::Sent { said, first, last, .. } if Some(said) == self.batch => {
                self.batch_took = Some((first, last));
            }
            EventKind::Sent { said, first, last, .. } => {
                assert!(first <= last && last == event.at);
                (self.sent, self.asked_at) = (Some(said.xid), first);
            }
            EventKind::Message { xid, message: Message::EchoReply(_), .. } => {
                assert_eq!((Some(xid), self.sent), (self.echo, self.echo), "sent, then answered");
                self.echoes.push((self.asked_at, event.at));
                if self.echoes.len() < ECHOES {
                    self.echo = Some(context.send(0, Message::EchoRequest(vec![7; 8])));
                } else {
                    let many = vec![Message::BarrierRequest; BARRIERS as usize];
                    self.batch = Some(context.send_all(0, many));
                }
            }
            EventKind::Message { message: Message::BarrierReply, .. } => self.barriers += 1,
            EventKind::Frame(arrival) => {
                let probe = arrival.probe.unwrap();
                self.probes += 1;
                if probe.is_delay_known {
                    self.delays.push(event.at.since(probe.sent_at).0);
                }
            }
            EventKind::StreamEnded(1) => self.is_sent = true,
            _ => {}
        }
        if self.is_sent && self.barriers == BARRIERS {
            context.end();
        }
    }

    fn finish(&mut self, _: &Ended, _: &mut ModuleContext) {}
}

/// Replies to echo and barrier requests, and forwards frames from one port to the other.
fn switch(mut listener: Listener, mut ports: [Box<dyn Port>; 2], stop: &AtomicBool) {
    let mut session = Session::new(session::Settings::new(End::Switch), clock::now());
    let (mut channel, mut bytes, mut frames) = (None, vec![0; 4096], Copies::new(64));
    while !stop.load(Ordering::Relaxed) {
        let now = clock::now();
        if channel.is_none() {
            channel = listener.accept().unwrap();
        }
        let Some(channel) = &mut channel else { continue };
        let Ok(count) = channel.receive(&mut bytes) else { return };
        assert_eq!(session.receive(&bytes[..count], now), count);
        while let Some(event) = session.poll_event() {
            let session::Event::Message { xid, message, .. } = event else { continue };
            let reply = match message {
                Message::FeaturesRequest => Message::FeaturesReply(Features::default()),
                _ => Message::BarrierReply,
            };
            session.answer(xid, &reply).unwrap();
        }
        let Ok(count) = channel.transmit(session.transmit()) else { return };
        session.transmitted(count);
        if ports[0].receive_copies(&mut frames, now).is_ok_and(|count| count > 0) {
            ports[1].transmit_copies(&mut frames, now).unwrap();
        }
        frames.clear();
        std::thread::yield_now();
    }
}

#[test]
fn a_module_measures_a_switch_over_a_socket_and_ports() {
    let listener = Listener::open(&"ptcp:0:127.0.0.1".parse().unwrap()).unwrap();
    let url: Url = listener.address_to_connect();
    let (near, far) = (pair(4096, "in"), pair(4096, "out"));
    let ports: Vec<Box<dyn Port>> = vec![Box::new(near.0), Box::new(far.0)];
    let others: [Box<dyn Port>; 2] = [Box::new(near.1), Box::new(far.1)];
    let done = AtomicBool::new(false);
    let mut rig = LiveRig::new(ports, 99, Arc::default());
    let mut module = Measures::default();
    let report = std::thread::scope(|scope| {
        scope.spawn(|| switch(listener, others, &done));
        let mut dialer = Dialer::new(&[url]).unwrap();
        let mut connect = |wanted, now| dialer.connect(wanted, now);
        let report = rig.stage(&mut module, &TopologyInfo::default(), &mut connect);
        done.store(true, Ordering::Relaxed);
        report
    });
    assert_eq!(report.ended, Ended::Completed, "{report:?}");
    assert_eq!((module.echoes.len(), module.barriers), (ECHOES, BARRIERS));
    assert!(module.echoes.iter().all(|(asked, reported)| asked < reported));
    // The batch took more than one write, and the ports were served in between.
    assert!(BARRIERS as usize * 8 > WRITE_BYTES);
    let (first, last) = module.batch_took.unwrap();
    assert!(first < last && last < report.ended_at);
    let account = report.streams[0];
    let offered = account.sent + account.unsent_late + account.unsent_refused;
    assert_eq!((offered, account.lost()), (PROBES, 0), "{account:?}");
    assert_eq!((account.arrived, account.altered, account.duplicate), (account.sent, 0, 0));
    // Some frames can arrive in the drain, without events.
    assert!(module.probes <= account.sent && module.probes >= module.delays.len() as u64);
    let costs = report.costs;
    assert!(costs.events >= module.probes && costs.reaction_ns_total >= costs.reaction_ns_longest);
    assert!(costs.control_ns_total > 0 && costs.turns > 0, "{costs:?}");
}

#[test]
fn a_stopped_module_has_results_and_a_missing_switch_is_an_error() {
    let (near, far) = (pair(64, "in"), pair(64, "out"));
    let ports: Vec<Box<dyn Port>> = vec![Box::new(near.0), Box::new(far.0)];
    let mut rig = LiveRig::new(ports, 99, Arc::new(AtomicBool::new(true)));
    let mut module = Measures::default();
    let mut connect = |_, _| Ok(None);
    let report = rig.stage(&mut module, &TopologyInfo::default(), &mut connect);
    assert_eq!((report.ended, report.costs.events), (Ended::Interrupted, 0));
    // A port that was free a moment ago, without a listener.
    let listener = Listener::open(&"ptcp:0:127.0.0.1".parse().unwrap()).unwrap();
    let url = listener.address_to_connect();
    drop(listener);
    let (near, far) = (pair(64, "in"), pair(64, "out"));
    let ports: Vec<Box<dyn Port>> = vec![Box::new(near.0), Box::new(far.0)];
    let mut rig = LiveRig::new(ports, 99, Arc::default());
    let mut dialer = Dialer::new(&[url]).unwrap();
    let mut connect = |wanted, now| dialer.connect(wanted, now);
    let report = rig.stage(&mut module, &TopologyInfo::default(), &mut connect);
    assert!(matches!(report.ended, Ended::NotReady { connection: 0, .. }), "{}", report.ended);
}

/// Sends one request and ends at its reply.
#[derive(Default)]
struct Asks {
    answers: u32,
}

impl Module for Asks {
    fn needs(&self) -> ModuleRequirements {
        ModuleRequirements::new(Nanos::from_secs(60)).in_versions(&[Version::V1_3])
    }

    fn react(&mut self, event: &Event<'_>, context: &mut ModuleContext) {
        match event.what {
            EventKind::Start(_) => {
                context.send(0, Message::BarrierRequest);
            }
            EventKind::Message { message: Message::BarrierReply, .. } => {
                self.answers += 1;
                context.end();
            }
            _ => {}
        }
    }

    fn finish(&mut self, _: &Ended, _: &mut ModuleContext) {}
}

/// A temporary folder with TLS files.
struct Folder(std::path::PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Folder {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("stage-tls-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    /// Creates credentials for these names, signed by a CA of their own.
    fn ends<const N: usize>(&self, ca_name: &str, names: [&str; N]) -> [Tls; N] {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut parameters = rcgen::CertificateParams::new(Vec::new()).unwrap();
        parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let ca = parameters.self_signed(&key).unwrap().pem();
        let issuer = rcgen::Issuer::new(parameters, key);
        names.map(|name| {
            let key = rcgen::KeyPair::generate().unwrap();
            let parameters = rcgen::CertificateParams::new(vec![format!("{name}.invalid")]);
            let certificate = parameters.unwrap().signed_by(&key, &issuer).unwrap();
            let write = |what: &str, text: &str| {
                let path = self.0.join(format!("{ca_name}-{name}-{what}.pem"));
                std::fs::write(&path, text).unwrap();
                Some(path)
            };
            let files = Files {
                private_key: write("key", &key.serialize_pem()),
                certificate: write("cert", &certificate.pem()),
                ca_cert: write("ca", &ca),
            };
            Tls::load(&files).unwrap()
        })
    }
}

/// Runs a module with a switch that listens over TLS as `theirs`. The tester connects as `ours`.
fn over_tls(ours: &Tls, theirs: &Tls, module: &mut Asks) -> StageReport {
    let listener = Listener::open_with(&"pssl:0:127.0.0.1".parse().unwrap(), Some(theirs)).unwrap();
    let url = listener.address_to_connect();
    let (near, far) = (pair(64, "in"), pair(64, "out"));
    let ports: Vec<Box<dyn Port>> = vec![Box::new(near.0), Box::new(far.0)];
    let others: [Box<dyn Port>; 2] = [Box::new(near.1), Box::new(far.1)];
    let done = AtomicBool::new(false);
    let mut rig = LiveRig::new(ports, 99, Arc::default());
    std::thread::scope(|scope| {
        scope.spawn(|| switch(listener, others, &done));
        let mut dialer = Dialer::new_with(std::slice::from_ref(&url), Some(ours)).unwrap();
        let mut connect = |wanted, now| dialer.connect(wanted, now);
        let report = rig.stage(module, &TopologyInfo::default(), &mut connect);
        done.store(true, Ordering::Relaxed);
        report
    })
}

#[test]
fn a_switch_is_connected_over_tls_only_with_a_trusted_certificate() {
    let folder = Folder::new();
    let [controller, switch] = folder.ends("site", ["controller", "switch"]);
    let mut module = Asks::default();
    let report = over_tls(&controller, &switch, &mut module);
    assert_eq!((&report.ended, module.answers), (&Ended::Completed, 1), "{report:?}");
    let connection = &report.connections[0];
    assert!(connection.peer.starts_with("ssl:127.0.0.1:"), "{}", connection.peer);
    assert_eq!(connection.received, [(MessageKind::BarrierReply, 1)]);

    let [stranger] = folder.ends("elsewhere", ["switch"]);
    let mut module = Asks::default();
    let report = over_tls(&controller, &stranger, &mut module);
    let Ended::NotReady { why, .. } = &report.ended else { panic!("{}", report.ended) };
    assert!(why.contains("TLS") || why.contains("closed"), "{why}");
    assert_eq!(module.answers, 0);

    let url: Url = "ssl:127.0.0.1:6653".parse().unwrap();
    let refused = Dialer::new(std::slice::from_ref(&url)).err().unwrap();
    assert!(matches!(refused, ChannelError::Credentials { .. }), "{refused}");
}
