//! Tests of an element with control elements on real sockets, with a clock of the test.

use ::forces::association::{Ce, CeEvent, CeSettings, Place};
use ::forces::model::value::Value;
use ::forces::wire::{
    Data, Mode, Operation, OperationKind, PathData, ResultCode, Select, frame_octets,
};
use channel::framed::Framed;
use channel::multi::{Channels, Listeners, PendingChannels};
use channel::tls::Files;
use dataplane::forwarder::Forwarder;
use packet::frame::Batch;
use progfe::agent::{AgentEvent, StatusValue};
use progfe::control::program_lfb::CLASS;
use progfe::dispatcher::Report;
use progfe::program::class_id::LEARN_SEARCH;
use progfe::program::document::no_files;
use progfe::xml::Source;

use super::*;
use crate::config::CeConfig;

const PROGRAM: &str = include_str!("../../../../examples/progfe/bridge.fe.xml");
/// Component ID of AgeSeconds in the bridge's table.
const AGE: u32 = 5;
/// Maximum number of steps until data between sockets of one host has arrived.
const STEPS_MAX: usize = 2_000_000;

fn length(bytes: &[u8]) -> Result<Option<usize>, String> {
    frame_octets(bytes).map_err(|fault| fault.to_string())
}

/// A control element that listens or connects.
struct Controller {
    id: Id,
    doors: Option<Listeners>,
    dialling: Option<PendingChannels>,
    up: Option<(Ce, [Framed; 3])>,
    /// Whether it sends and receives.
    speaks: bool,
    events: Vec<CeEvent>,
}

impl Controller {
    fn waiting(id: u32) -> Controller {
        Controller::waiting_at(id, "ptcp:0:127.0.0.1", None)
    }

    fn waiting_at(id: u32, url: &str, tls: Option<&Tls>) -> Controller {
        let urls = url.parse::<Url>().unwrap().in_a_row().unwrap();
        let doors = Some(Listeners::open(&urls, tls).unwrap());
        let (dialling, up, events) = (None, None, Vec::new());
        Controller { id: Id(id), doors, dialling, up, speaks: true, events }
    }

    fn turn(&mut self, now: Nanos) {
        let came = self.doors.as_mut().and_then(|doors| doors.turn(now).unwrap());
        let dialled = self.dialling.as_mut().and_then(|it| it.turn(now).unwrap_or(None));
        if let Some(channels) = came.or(dialled) {
            self.meet(channels, now);
        }
        let Some((ce, channels)) = self.up.as_mut().filter(|_| self.speaks) else { return };
        let mut is_over = false;
        for channel in Channel::ALL {
            let framed = &mut channels[channel as usize];
            is_over |= framed.receive(&mut [0; 4096]).is_err();
            while let Ok(Some(message)) = framed.message() {
                ce.receive(channel, message, moment(now));
            }
            while let Some(message) = ce.poll_transmit_by(channel) {
                framed.send(message);
            }
            is_over |= framed.flush().is_err();
        }
        ce.tick(moment(now));
        self.events.extend(std::iter::from_fn(|| ce.poll_event()));
        if is_over {
            self.up = None;
        }
    }

    fn meet(&mut self, channels: Channels, now: Nanos) {
        self.dialling = None;
        let ce = Ce::new(CeSettings::new(self.id), moment(now));
        self.up = Some((ce, channels.map(|channel| Framed::new(channel, length))));
    }

    fn is_associated(&self) -> bool {
        self.up.as_ref().is_some_and(|(ce, _)| ce.fe().is_some())
    }

    fn ce(&mut self) -> &mut Ce {
        &mut self.up.as_mut().expect("it has channels").0
    }
}

struct Rig {
    element: Element,
    out: Outputs,
    forces: Forces,
    ces: Vec<Controller>,
    now: Nanos,
    log: Vec<Event>,
}

fn set(value: u64) -> Vec<Select> {
    let data = Data::Full((value as u32).to_be_bytes().to_vec());
    let operation = Operation::on(OperationKind::Set, vec![PathData::with([AGE], data)]);
    vec![Select::one(LEARN_SEARCH, 1, operation)]
}

impl Rig {
    /// Creates an element that connects to control elements.
    fn new(ces: Vec<Controller>) -> Rig {
        let config = |ce: &Controller| {
            let [high, ..] = ce.doors.as_ref().unwrap().addresses_to_connect();
            CeConfig { url: high, id: Some(ce.id.0) }
        };
        let ports = ces.iter().map(config).collect();
        Rig::with(ces, ports)
    }

    fn with(ces: Vec<Controller>, config: Vec<CeConfig>) -> Rig {
        Rig::with_files(ces, config, Files::default())
    }

    /// Creates an element with TLS files.
    fn with_files(ces: Vec<Controller>, config: Vec<CeConfig>, files: Files) -> Rig {
        let (program, problems) = Program::load(&Source::new("bridge", PROGRAM), &no_files);
        let program = program.unwrap_or_else(|| panic!("{problems}"));
        let now = Nanos::from_secs(1);
        let Files { private_key, certificate, ca_cert } = files;
        let is_insecure = false;
        let config = ForcesConfig { ces: config, private_key, certificate, ca_cert, is_insecure };
        let mut forces = Forces::open(&config, &program, now).unwrap().expect("one is named");
        // Ports that the system chose are not consecutive.
        for (peer, ce) in forces.peers.iter_mut().zip(&ces) {
            if let Some(doors) = &ce.doors {
                peer.set_urls(doors.addresses_to_connect());
            }
        }
        let element = Element::start(program, 7).unwrap();
        Rig { element, out: Outputs::new(&[1, 2]), forces, ces, now, log: Vec::new() }
    }

    fn step(&mut self) {
        self.forces.turn(&mut self.element, &mut self.out, self.now);
        self.log.append(&mut self.forces.events);
        self.ces.iter_mut().for_each(|ce| ce.turn(self.now));
    }

    /// Repeats steps until the condition holds, without advancing the clock.
    fn until(&mut self, what: &str, is_so: impl Fn(&mut Rig) -> bool) {
        for _ in 0..STEPS_MAX {
            if is_so(self) {
                return;
            }
            self.step();
            std::thread::yield_now();
        }
        panic!("{what} does not occur; log {:?}", self.log);
    }

    /// Advances the clock in small steps.
    fn pass(&mut self, time: Nanos) {
        let end = self.now + time;
        while self.now < end {
            self.now += Nanos::from_millis(250);
            for _ in 0..5 {
                self.step();
            }
        }
    }

    fn all_associated(&mut self) {
        self.until("the association", |rig| rig.ces.iter().all(Controller::is_associated));
        self.until("its confirmation", |rig| rig.forces.is_controlled());
    }

    /// Waits for the reply to a request, and returns its result codes.
    fn answer(&mut self, at: usize, correlator: u64) -> Vec<ResultCode> {
        let is_it =
            |event: &CeEvent| matches!(event, CeEvent::Answered(it) if it.correlator == correlator);
        self.until("the reply", |rig| rig.ces[at].events.iter().any(is_it));
        let events = &mut self.ces[at].events;
        let place = events.iter().position(is_it).unwrap();
        let CeEvent::Answered(answer) = events.remove(place) else { unreachable!() };
        answer.failures().into_iter().map(|(_, code)| code).collect()
    }

    fn configure(&mut self, at: usize, value: u64) -> Vec<ResultCode> {
        let correlator = self.ces[at].ce().configure(set(value), Mode::AllOrNone).unwrap();
        self.answer(at, correlator)
    }

    fn age(&self) -> u64 {
        let instances = &self.element.program().instances;
        let at = instances.iter().position(|it| it.class == LEARN_SEARCH).unwrap();
        self.element.get(at, &[AGE], self.now).unwrap().unsigned().unwrap()
    }

    /// Whether a frame from port 1 leaves through port 2.
    fn forwards(&mut self) -> bool {
        let mut frame = vec![2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 1, 0x90, 0];
        frame.resize(60, 0);
        let mut batch = Batch::new(1);
        batch.push_bytes(&frame);
        self.element.forward(1, &mut batch, self.now, &mut self.out);
        let left = self.out.queues_mut().iter_mut().map(|(_, queue)| queue.len()).sum::<usize>();
        self.out.queues_mut().iter_mut().for_each(|(_, queue)| queue.clear());
        left == 1
    }

    fn lost(&self) -> Option<&str> {
        self.log.iter().rev().find_map(|event| match event {
            Event::CeLost(_, why) => Some(why.as_str()),
            _ => None,
        })
    }
}

#[test]
fn a_control_element_changes_a_running_element() {
    let mut rig = Rig::new(vec![Controller::waiting(0x4000_0001)]);
    assert!(rig.forwards(), "before a control element connects");
    rig.all_associated();
    assert_eq!(rig.configure(0, 60), []);
    assert_eq!(rig.age(), 60);
    // A transaction that is aborted after its commit leaves nothing behind.
    let ce = rig.ces[0].ce();
    let all = [ce.transact(set(10)).unwrap(), ce.transact(set(20)).unwrap(), ce.commit().unwrap()];
    for correlator in all {
        assert_eq!(rig.answer(0, correlator), []);
    }
    assert_eq!(rig.age(), 20);
    let correlator = rig.ces[0].ce().abort().unwrap();
    assert_eq!(rig.answer(0, correlator), []);
    assert_eq!(rig.age(), 60);
    assert!(rig.forwards());
}

#[test]
fn a_backup_takes_over_when_the_primary_disconnects() {
    let ces = vec![Controller::waiting(0x4000_0001), Controller::waiting(0x4000_0002)];
    let mut rig = Rig::new(ces);
    rig.all_associated();
    assert_eq!(rig.configure(0, 60), []);
    // The backup may read but not configure.
    let place = Place { class: LEARN_SEARCH, instance: 1, path: vec![AGE] };
    let correlator = rig.ces[1].ce().get(&place).unwrap();
    assert_eq!(rig.answer(1, correlator), []);
    rig.ces[1].ce().configure(set(1), Mode::AllOrNone).unwrap();
    rig.pass(Nanos::from_secs(1));
    assert_eq!(rig.age(), 60);
    rig.ces[0].up = None;
    rig.ces[0].doors = None;
    rig.until("the change", |rig| rig.forces.fe.primary() == Some(Id(0x4000_0002)));
    assert!(rig.forwards());
    assert_eq!(rig.configure(1, 70), []);
    assert_eq!(rig.age(), 70);
    assert_eq!(rig.lost(), Some("closed the connection"));
}

#[test]
fn a_listening_element_accepts_connections() {
    let waits = CeConfig { url: "ptcp:0:127.0.0.1".parse().unwrap(), id: Some(0x4000_0001) };
    let mut ce = Controller::waiting(0x4000_0001);
    ce.doors = None;
    let mut rig = Rig::with(vec![ce], vec![waits]);
    for _ in 0..2 {
        let addresses: Vec<Url> = rig.forces.addresses().collect();
        let to = |url: &Url| match url {
            Url::PassiveTcp(address) => Url::Tcp(*address),
            other => other.clone(),
        };
        let urls: Vec<Url> = addresses.iter().map(to).collect();
        let now = rig.now;
        rig.ces[0].dialling =
            Some(PendingChannels::start(urls.try_into().unwrap(), None, now).unwrap());
        rig.all_associated();
        // And again, with the next control element that connects.
        rig.ces[0].up = None;
        rig.until("the end", |rig| !rig.forces.is_controlled());
        rig.pass(Nanos::from_secs(2));
    }
    assert!(rig.forwards(), "the program continues without a control element");
}

#[test]
fn messages_on_the_wrong_channel_are_dropped_and_counted() {
    let mut rig = Rig::new(vec![Controller::waiting(0x4000_0001)]);
    rig.all_associated();
    rig.ces[0].ce().configure(set(7), Mode::AllOrNone).unwrap();
    let (ce, channels) = rig.ces[0].up.as_mut().unwrap();
    let message = ce.poll_transmit_by(Channel::High).unwrap();
    channels[Channel::Low as usize].send(message);
    rig.pass(Nanos::from_secs(1));
    assert_eq!(rig.age(), 300);
    let place = Place { class: 2, instance: 1, path: vec![15, 0, 2, 2] };
    let correlator = rig.ces[0].ce().get(&place).unwrap();
    let is_it =
        |event: &CeEvent| matches!(event, CeEvent::Answered(it) if it.correlator == correlator);
    rig.until("the reply", |rig| rig.ces[0].events.iter().any(is_it));
    let catalog = &rig.element.program().catalog;
    let answer = rig.ces[0].events.iter().find(|event| is_it(event)).unwrap();
    let CeEvent::Answered(answer) = answer else { unreachable!() };
    let values = answer.values(catalog).unwrap();
    assert_eq!(values.into_values().next(), Some(Value::Unsigned(1)), "one message with an error");
}

#[test]
fn a_peer_with_another_protocol_is_disconnected_and_retried() {
    let mut rig = Rig::new(vec![Controller::waiting(0x4000_0001)]);
    rig.all_associated();
    let (_, channels) = rig.ces[0].up.as_mut().unwrap();
    channels[Channel::High as usize].send(b"GET / HTTP/1.1\r\n\r\n".to_vec());
    rig.until("the end", |rig| rig.lost().is_some());
    assert!(rig.lost().unwrap().contains("invalid ForCES message"), "{:?}", rig.lost());
    assert!(rig.forwards());
    rig.ces[0].events.clear();
    rig.pass(Nanos::from_secs(2));
    rig.all_associated();
    assert_eq!(rig.configure(0, 9), []);
}

#[test]
fn a_silent_control_element_is_dropped_with_its_open_transaction() {
    let mut rig = Rig::new(vec![Controller::waiting(0x4000_0001)]);
    rig.all_associated();
    let correlator = rig.ces[0].ce().transact(set(5)).unwrap();
    assert_eq!(rig.answer(0, correlator), []);
    rig.ces[0].speaks = false;
    rig.pass(Nanos::from_secs(29));
    assert!(rig.forces.is_controlled(), "CEHDI is 30 seconds");
    rig.pass(Nanos::from_secs(2));
    assert_eq!(rig.lost(), Some("no heartbeats"));
    rig.ces[0].speaks = true;
    rig.ces[0].up = None;
    rig.pass(Nanos::from_secs(2));
    rig.all_associated();
    assert_eq!(rig.age(), 300);
    assert_eq!(rig.configure(0, 6), [], "no transaction is open");
}

#[test]
fn an_open_transaction_times_out() {
    let mut rig = Rig::new(vec![Controller::waiting(0x4000_0001)]);
    rig.all_associated();
    let correlator = rig.ces[0].ce().transact(set(5)).unwrap();
    assert_eq!(rig.answer(0, correlator), []);
    assert_eq!(rig.configure(0, 6), [ResultCode::BUSY]);
    rig.pass(Nanos::from_secs(61));
    assert_eq!(rig.configure(0, 6), []);
    assert_eq!(rig.age(), 6);
}

#[test]
fn an_unreachable_control_element_is_logged_once() {
    let ce = Controller::waiting(0x4000_0001);
    let mut rig = Rig::new(vec![ce]);
    rig.ces[0].doors = None;
    rig.pass(Nanos::from_secs(5));
    let reported = rig.log.iter().filter(|event| matches!(event, Event::CeUnreachable(..))).count();
    assert_eq!(reported, 1, "{:?}", rig.log);
    assert!(rig.forwards());
}

/// The files of a certificate signed by its own CA, in a folder that is removed on drop.
struct Certificate {
    folder: std::path::PathBuf,
    files: Files,
}

impl Certificate {
    fn new(name: &str) -> Certificate {
        let folder = std::env::temp_dir().join(format!("forces-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let write = |name: &str, text: String| {
            std::fs::write(folder.join(name), text).unwrap();
            Some(folder.join(name))
        };
        let [ca_key, key] = [0; 2].map(|_| rcgen::KeyPair::generate().unwrap());
        let mut ca = rcgen::CertificateParams::new(Vec::new()).unwrap();
        ca.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let ca_cert = write("ca.pem", ca.self_signed(&ca_key).unwrap().pem());
        let issuer = rcgen::Issuer::new(ca, ca_key);
        let end = rcgen::CertificateParams::new(Vec::new()).unwrap();
        let certificate = write("cert.pem", end.signed_by(&key, &issuer).unwrap().pem());
        let private_key = write("key.pem", key.serialize_pem());
        Certificate { folder: folder.clone(), files: Files { private_key, certificate, ca_cert } }
    }

    fn tls(&self) -> Tls {
        Tls::load(&self.files).unwrap()
    }
}

impl Drop for Certificate {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn an_element_is_controlled_over_tls_in_both_directions() {
    let both = Certificate::new("both");
    let ce = Controller::waiting_at(0x4000_0001, "pssl:0:127.0.0.1", Some(&both.tls()));
    let [high, ..] = ce.doors.as_ref().unwrap().addresses_to_connect();
    let dials = CeConfig { url: high, id: Some(0x4000_0001) };
    let mut rig = Rig::with_files(vec![ce], vec![dials], both.files.clone());
    rig.all_associated();
    assert_eq!((rig.configure(0, 77), rig.age()), (vec![], 77));
    assert!(rig.forwards());
    // The reverse direction.
    let waits = CeConfig { url: "pssl:0:127.0.0.1".parse().unwrap(), id: Some(0x4000_0001) };
    let mut ce = Controller::waiting(0x4000_0001);
    ce.doors = None;
    let mut rig = Rig::with_files(vec![ce], vec![waits], both.files.clone());
    let to = |url: Url| match url {
        Url::PassiveTls(address) => Url::Tls(address),
        other => other,
    };
    let urls: Vec<Url> = rig.forces.addresses().map(to).collect();
    let dialling =
        PendingChannels::start(urls.try_into().unwrap(), Some(&both.tls()), rig.now).unwrap();
    rig.ces[0].dialling = Some(dialling);
    rig.all_associated();
    assert_eq!((rig.configure(0, 78), rig.age()), (vec![], 78));
}

#[test]
fn an_untrusted_control_element_is_rejected_and_logged_once() {
    let (own, foreign) = (Certificate::new("own"), Certificate::new("foreign"));
    let ce = Controller::waiting_at(0x4000_0001, "pssl:0:127.0.0.1", Some(&foreign.tls()));
    let [high, ..] = ce.doors.as_ref().unwrap().addresses_to_connect();
    let dials = CeConfig { url: high, id: Some(0x4000_0001) };
    let mut rig = Rig::with_files(vec![ce], vec![dials], own.files.clone());
    let refused =
        |event: &Event| matches!(event, Event::CeUnreachable(_, why) if why.contains("ertificate"));
    let mut count = 0;
    for _ in 0..200 {
        // Data between sockets takes real time; timeouts use the clock of the test.
        rig.pass(Nanos::from_millis(250));
        std::thread::yield_now();
        count = rig.log.iter().filter(|event| refused(event)).count();
    }
    assert_eq!(count, 1, "{:?}", rig.log);
    assert!(!rig.forces.is_controlled() && rig.forwards());
}

#[test]
fn a_listener_without_authentication_logs_that_once() {
    let (program, _) = Program::load(&Source::new("bridge", PROGRAM), &no_files);
    let program = program.unwrap();
    for (url, warnings) in [("ptcp:0", 0), ("ptcp:0:0.0.0.0", 1)] {
        let (ces, is_insecure) = (vec![url.parse().unwrap()], true);
        let config = ForcesConfig { ces, is_insecure, ..ForcesConfig::default() };
        let forces = Forces::open(&config, &program, Nanos::ZERO).unwrap().unwrap();
        let says = |event: &&Event| matches!(event, Event::AcceptsAnyone(_));
        assert_eq!(forces.events.iter().filter(says).count(), warnings, "{url}");
    }
}

#[test]
fn listeners_without_capacity_pause_and_log_that_once() {
    let waits = CeConfig { url: "ptcp:0:127.0.0.1".parse().unwrap(), id: Some(0x4000_0001) };
    let mut rig = Rig::with(Vec::new(), vec![waits]);
    rig.step();
    let waited_for = |rig: &Rig| rig.forces.descriptors().count();
    assert_eq!(waited_for(&rig), 3);
    for _ in 0..3 {
        let error = std::io::Error::from_raw_os_error(24);
        let (doing, what) = ("accept a connection on", "ptcp:0".to_owned());
        rig.forces.peers[0].looked(Err(ChannelError::System { doing, what, error }), rig.now);
        rig.step();
        assert_eq!(waited_for(&rig), 0, "poll would return immediately");
        assert!(rig.forces.next_event(rig.now).is_some_and(|due| due > rig.now));
        rig.now = rig.now.saturating_add(Nanos::from_secs(1));
    }
    assert_eq!(rig.log.iter().filter(|it| matches!(it, Event::CeUnreachable(..))).count(), 1);
    rig.step();
    assert_eq!(waited_for(&rig), 3, "descriptors are available again");
}

#[test]
fn agent_events_are_sent_to_subscribers_and_can_be_queried() {
    let mut rig = Rig::new(vec![Controller::waiting(0x4000_0001)]);
    rig.all_associated();
    let notification = |event: &'static str, at: u64, untold| {
        let occurred = AgentEvent { event, at: Nanos(at), facts: StatusValue::Unknown };
        let report = Report { agent: "cfm".to_owned(), occurred, untold };
        notifications::agent(&report, "{\"mep\":101}")
    };
    let say = |rig: &mut Rig, happening: &Happening| {
        let Rig { forces, element, out, now, .. } = rig;
        forces.agent_said(happening, element, out, *now);
    };
    // No control element has subscribed.
    say(&mut rig, &notification("PeerFound", 1, 0));
    let event = Place { class: CLASS, instance: 1, path: vec![60, 1] };
    let asked = rig.ces[0].ce().subscribe(&event, &[(2, 1)]).unwrap();
    assert_eq!(rig.answer(0, asked), []);
    say(&mut rig, &notification("PeerLost", 2, 5));
    let reported = |event: &CeEvent| match event {
        CeEvent::Notified(selects) => Some(selects.clone()),
        _ => None,
    };
    rig.until("the event", |rig| rig.ces[0].events.iter().any(|it| reported(it).is_some()));
    let all: Vec<_> = rig.ces[0].events.iter().filter_map(reported).flatten().collect();
    assert_eq!(all.len(), 1, "events before the subscription are not sent: {all:?}");
    assert_eq!((all[0].class, all[0].instance), (CLASS, 1));
    let wire = format!("{all:?}");
    let is_in = |text: &str| {
        let bytes: Vec<String> = text.bytes().map(|byte| byte.to_string()).collect();
        wire.contains(&bytes.join(", "))
    };
    assert!(["cfm", "PeerLost", "{\"mep\":101}"].into_iter().all(is_in), "{wire}");
    assert!(!is_in("PeerFound"));
}
