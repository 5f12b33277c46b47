//! Both ends over real sockets, with certificates that are made on the spot.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};

use packet::time::Nanos;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};

use super::*;
use crate::channel::{Channel, Connecting, Listener};
use crate::clock;

const PATIENCE: Nanos = Nanos::from_secs(20);

/// A folder with the files of one test, removed at its end.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Folder {
    fn new(name: &str) -> Folder {
        let folder = std::env::temp_dir().join(format!("tls-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Files of an end whose certificate `ca` signed and who trusts `trusted`.
    fn files(&self, name: &str, ca: &Ca, trusted: &Ca, last_year: i32) -> Files {
        let key = KeyPair::generate().unwrap();
        let mut parameters = CertificateParams::new(vec![format!("{name}.invalid")]).unwrap();
        parameters.distinguished_name.push(DnType::CommonName, name);
        parameters.not_before = date_time_ymd(2000, 1, 1);
        parameters.not_after = date_time_ymd(last_year, 1, 1);
        let certificate = parameters.signed_by(&key, &ca.issuer).unwrap();
        Files {
            private_key: Some(self.write(&format!("{name}-key.pem"), &key.serialize_pem())),
            certificate: Some(self.write(&format!("{name}-cert.pem"), &certificate.pem())),
            ca_cert: Some(self.write(&format!("{name}-ca.pem"), &trusted.pem)),
        }
    }
}

struct Ca {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

fn ca() -> Ca {
    let key = KeyPair::generate().unwrap();
    let mut parameters = CertificateParams::new(Vec::new()).unwrap();
    parameters.distinguished_name.push(DnType::CommonName, "a CA");
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let pem = parameters.self_signed(&key).unwrap().pem();
    Ca { pem, issuer: Issuer::new(parameters, key) }
}

/// Two ends with one CA.
fn friends(folder: &Folder) -> (Files, Files) {
    let ca = ca();
    (folder.files("switch", &ca, &ca, 2100), folder.files("controller", &ca, &ca, 2100))
}

/// A passive and an active end of a new TCP connection on loopback.
fn connected(passive: &Tls, active: &Tls) -> (Box<dyn Channel>, Box<dyn Channel>) {
    let url = "pssl:0:127.0.0.1".parse().unwrap();
    let mut listener = Listener::open_with(&url, Some(passive)).unwrap();
    let to = listener.address_to_connect();
    let active = Connecting::wait_with(&to, Some(active), PATIENCE).unwrap();
    (accepted(&mut listener), active)
}

fn accepted(listener: &mut Listener) -> Box<dyn Channel> {
    loop {
        if let Some(channel) = listener.accept().unwrap() {
            return channel;
        }
        std::thread::yield_now();
    }
}

type Outcome = Result<Vec<u8>, ChannelError>;

/// Lets each end send its bytes and read what the other sends, until both have all or one fails.
fn talk(
    ends: &mut (Box<dyn Channel>, Box<dyn Channel>),
    from_left: &[u8],
    from_right: &[u8],
) -> (Outcome, Outcome) {
    let (mut left, mut right) = (Ok(Vec::new()), Ok(Vec::new()));
    let (mut left_sent, mut right_sent) = (0, 0);
    let until = clock::now() + PATIENCE;
    loop {
        step(&mut *ends.0, from_left, &mut left_sent, &mut left);
        step(&mut *ends.1, from_right, &mut right_sent, &mut right);
        let done = |outcome: &Outcome, wanted: &[u8]| match outcome {
            Ok(have) => have.len() >= wanted.len() && !wanted.is_empty(),
            Err(_) => true,
        };
        let (left_done, right_done) = (done(&left, from_right), done(&right, from_left));
        // One end that failed is enough if the other has nothing more to learn.
        if left_done && right_done {
            return (left, right);
        }
        assert!(clock::now() < until, "they never come together: {left:?} {right:?}");
    }
}

fn step(channel: &mut dyn Channel, bytes: &[u8], sent: &mut usize, outcome: &mut Outcome) {
    let Ok(have) = outcome else { return };
    let mut buffer = [0; 1000];
    let received = channel.receive(&mut buffer);
    let result = received.and_then(|count| {
        have.extend(&buffer[..count]);
        channel.transmit(&bytes[*sent..])
    });
    match result {
        Ok(count) => *sent += count,
        Err(error) => *outcome = Err(error),
    }
}

/// What an end is told that fails.
fn trouble(outcome: Outcome) -> String {
    match outcome {
        Err(error @ (ChannelError::Tls { .. } | ChannelError::Closed(_))) => error.to_string(),
        other => panic!("this had to fail: {other:?}"),
    }
}

#[test]
fn both_ends_authenticate_and_carry_bytes() {
    let folder = Folder::new("carry");
    let (switch, controller) = friends(&folder);
    let (switch, controller) = (Tls::load(&switch).unwrap(), Tls::load(&controller).unwrap());
    let up: Vec<u8> = (0..300_000u32).map(|n| (n % 251) as u8).collect();
    let down: Vec<u8> = (0..200_000u32).map(|n| (n % 241) as u8).collect();
    for (passive, active) in [(&switch, &controller), (&controller, &switch)] {
        let mut ends = connected(passive, active);
        assert!(ends.0.peer().starts_with("ssl:127.0.0.1:"), "{}", ends.0.peer());
        let (left, right) = talk(&mut ends, &up, &down);
        assert!(left.unwrap() == down && right.unwrap() == up);
        // What was sent before the end is received before the end.
        assert_eq!(ends.0.transmit(b"bye").unwrap(), 3);
        drop(ends.0);
        let (mut last, mut buffer) = (Vec::<u8>::new(), [0; 16]);
        let end = loop {
            match ends.1.receive(&mut buffer) {
                Ok(count) => last.extend(&buffer[..count]),
                Err(error) => break error,
            }
        };
        assert_eq!(last, b"bye");
        assert!(matches!(end, ChannelError::Closed(_)), "{end}");
    }
}

/// A peer that does not read: writing stops by itself at a limit, the rest is the caller's, and
/// whoever waits for the descriptor is told so.
#[test]
fn a_peer_that_does_not_read_costs_a_bounded_buffer() {
    let folder = Folder::new("full");
    let (switch, controller) = friends(&folder);
    let mut ends = connected(&Tls::load(&switch).unwrap(), &Tls::load(&controller).unwrap());
    let (left, right) = talk(&mut ends, b"a", b"b");
    assert!(left.is_ok() && right.is_ok());
    let pattern = vec![7; 1 << 16];
    let mut sent = 0;
    while {
        let count = ends.0.transmit(&pattern).unwrap();
        sent += count;
        count > 0
    } {
        assert!(sent < 1 << 30, "a channel has a limit");
    }
    assert!(ends.0.waits_for_room(false), "it holds encrypted bytes itself");
    let mut have = 0;
    let mut buffer = [0; 5000];
    while have < sent {
        let count = ends.1.receive(&mut buffer).unwrap();
        have += count;
        assert!(buffer[..count].iter().all(|&byte| byte == 7));
        ends.0.transmit(&[]).unwrap();
    }
    assert_eq!(have, sent);
    assert!(!ends.0.waits_for_room(false) && ends.0.waits_for_room(true));
}

/// Bytes that were decrypted together but received one by one are announced.
#[test]
fn bytes_that_left_the_socket_are_not_forgotten() {
    let folder = Folder::new("held");
    let (switch, controller) = friends(&folder);
    let mut ends = connected(&Tls::load(&switch).unwrap(), &Tls::load(&controller).unwrap());
    let (left, right) = talk(&mut ends, b"a", b"b");
    assert!(left.is_ok() && right.is_ok());
    assert!(!ends.1.holds_received());
    assert_eq!(ends.0.transmit(b"hello").unwrap(), 5);
    let mut one = [0; 1];
    while ends.1.receive(&mut one).unwrap() == 0 {}
    assert!(ends.1.holds_received());
    let mut rest = [0; 9];
    assert_eq!(ends.1.receive(&mut rest).unwrap(), 4);
    assert!(!ends.1.holds_received());
}

/// An end that owes bytes but is still shaking hands waits to read, not for room.
#[test]
fn a_handshake_does_not_spin() {
    let folder = Folder::new("spin");
    let (switch, controller) = friends(&folder);
    let mut ends = connected(&Tls::load(&switch).unwrap(), &Tls::load(&controller).unwrap());
    assert!(!ends.0.waits_for_room(true), "a server has nothing to say first");
    assert!(ends.1.waits_for_room(false), "a client has its hello to send");
    assert_eq!(ends.1.transmit(b"early").unwrap(), 0);
    assert!(!ends.1.waits_for_room(true));
}

#[test]
fn strangers_are_refused_by_both_sides() {
    let folder = Folder::new("strangers");
    let (ours, theirs) = (ca(), ca());
    let good = folder.files("good", &ours, &ours, 2100);
    let good_tls = Tls::load(&good).unwrap();
    let of = |files: &Files| Tls::load(files).unwrap();
    let cases = [
        // Who connects shows a certificate of another CA, an old one, or none.
        (good_tls.clone(), folder.files("other", &theirs, &ours, 2100), "not signed by the CA of"),
        (good_tls.clone(), folder.files("old", &ours, &ours, 2001), "has expired"),
        (
            good_tls.clone(),
            Files { private_key: None, certificate: None, ..good.clone() },
            "shows no certificate",
        ),
    ];
    for (passive, active, words) in cases {
        let mut ends = connected(&passive, &of(&active));
        let (left, right) = talk(&mut ends, b"secret", b"hello");
        let left = trouble(left);
        assert!(left.contains(words), "{left} lacks {words}");
        let right = trouble(right);
        assert!(right.contains("refused us"), "{right}");
    }
    let cases = [
        // Who listens shows a certificate of another CA, or an old one.
        (folder.files("fake", &theirs, &ours, 2100), "not signed by the CA of"),
        (folder.files("stale", &ours, &ours, 2001), "has expired"),
    ];
    for (passive, words) in cases {
        let mut ends = connected(&of(&passive), &good_tls);
        let (left, right) = talk(&mut ends, b"secret", b"hello");
        let right = trouble(right);
        assert!(right.contains(words), "{right} lacks {words}");
        assert!(trouble(left).contains("refused us"));
    }
}

#[test]
fn without_a_ca_a_listener_takes_anybody() {
    let folder = Folder::new("anybody");
    let (switch, controller) = friends(&folder);
    let open = Files { ca_cert: None, ..controller.clone() };
    // The listener's certificate has to be known to whoever connects all the same.
    let known = Files { private_key: None, certificate: None, ..switch };
    let mut ends = connected(&Tls::load(&open).unwrap(), &Tls::load(&known).unwrap());
    let (left, right) = talk(&mut ends, b"from", b"to");
    assert_eq!((left.unwrap(), right.unwrap()), (b"to".to_vec(), b"from".to_vec()));
}

#[test]
fn who_speaks_no_tls_is_told_apart() {
    let folder = Folder::new("plain");
    let (switch, _) = friends(&folder);
    let switch = Tls::load(&switch).unwrap();
    let url = "pssl:0:127.0.0.1".parse().unwrap();
    let mut listener = Listener::open_with(&url, Some(&switch)).unwrap();
    let Url::Tls(address) = listener.address_to_connect() else { panic!("not TLS") };
    let mut plain = TcpStream::connect(address).unwrap();
    let mut channel = accepted(&mut listener);
    plain.write_all(&[1, 0, 0, 8, 0, 0, 0, 1]).unwrap();
    let error = failure(&mut *channel);
    assert!(error.contains("what it sends is no TLS"), "{error}");
    // And one that goes before anything was agreed on.
    drop(TcpStream::connect(address).unwrap());
    let mut channel = accepted(&mut listener);
    let error = failure(&mut *channel);
    assert!(error.contains("before TLS was agreed on"), "{error}");
    // The other way round: a server that answers a TLS hello with a plain one.
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = Url::Tls(server.local_addr().unwrap());
    let mut channel = Connecting::wait_with(&to, Some(&switch), PATIENCE).unwrap();
    let (mut stream, _) = server.accept().unwrap();
    channel.transmit(&[]).unwrap();
    let mut start = [0; 3];
    stream.read_exact(&mut start).unwrap();
    assert_eq!(start[0], 22, "it begins with a handshake record");
    stream.write_all(&[1, 0, 0, 8, 0, 0, 0, 1]).unwrap();
    let error = failure(&mut *channel);
    assert!(error.contains("what it sends is no TLS"), "{error}");
}

/// Why receiving ends.
fn failure(channel: &mut dyn Channel) -> String {
    let mut buffer = [0; 100];
    let until = clock::now() + PATIENCE;
    loop {
        match channel.receive(&mut buffer) {
            Ok(0) => assert!(clock::now() < until, "nothing happens"),
            Ok(count) => panic!("{count} bytes came"),
            Err(error) => return error.to_string(),
        }
    }
}

/// Anything at all instead of a handshake ends the connection without a panic.
#[test]
fn garbage_ends_the_handshake() {
    let folder = Folder::new("garbage");
    let (switch, _) = friends(&folder);
    let switch = Tls::load(&switch).unwrap();
    let url = "pssl:0:127.0.0.1".parse().unwrap();
    let mut listener = Listener::open_with(&url, Some(&switch)).unwrap();
    let Url::Tls(address) = listener.address_to_connect() else { panic!("not TLS") };
    let record = |kind: u8, body: &[u8]| {
        let [high, low] = (body.len() as u16).to_be_bytes();
        [&[kind, 3, 1, high, low][..], body].concat()
    };
    let attacks = [
        vec![0; 70_000],
        vec![0xff; 70_000],
        record(22, &[1, 0xff, 0xff, 0xff]),
        record(22, &[1, 0, 0, 2, 3, 3]),
        record(23, &[0; 100]),
        record(21, &[2, 40]),
        [record(22, &[1, 0, 0xff, 0]), record(22, &[0; 16_000]).repeat(5)].concat(),
    ];
    for bytes in attacks {
        let mut plain = TcpStream::connect(address).unwrap();
        let mut channel = accepted(&mut listener);
        // It may be refused before all of it is written.
        let writer = std::thread::spawn(move || {
            let _ = plain.write_all(&bytes);
            let _ = plain.shutdown(std::net::Shutdown::Write);
            plain
        });
        let error = failure(&mut *channel);
        assert!(error.starts_with("TLS with ssl:127.0.0.1:"), "{error}");
        drop(channel);
        writer.join().unwrap();
    }
}

/// OpenSSL judges the versions: 1.2 and 1.3 come up, 1.1 does not.
#[test]
fn old_versions_are_refused() {
    let found = Command::new("openssl").arg("version").output().is_ok();
    if !found {
        println!("skipped; need: openssl (apt-get install openssl)");
        return;
    }
    let folder = Folder::new("versions");
    let (switch, controller) = friends(&folder);
    let switch = Tls::load(&switch).unwrap();
    for (flag, comes_up) in [("-tls1_3", true), ("-tls1_2", true), ("-tls1_1", false)] {
        let url = "pssl:0:127.0.0.1".parse().unwrap();
        let mut listener = Listener::open_with(&url, Some(&switch)).unwrap();
        let Url::Tls(address) = listener.address_to_connect() else { panic!("not TLS") };
        let file = |path: &Option<PathBuf>| path.clone().expect("named");
        let mut client = Command::new("openssl")
            .args(["s_client", "-quiet", "-verify_return_error", flag])
            // Without this OpenSSL itself would not even offer 1.1.
            .args(["-cipher", "DEFAULT:@SECLEVEL=0"])
            .args(["-connect", &address.to_string()])
            .args([Path::new("-key"), &file(&controller.private_key)])
            .args([Path::new("-cert"), &file(&controller.certificate)])
            .args([Path::new("-CAfile"), &file(&controller.ca_cert)])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut stdin = client.stdin.take().unwrap();
        // It may be gone already where it is refused.
        let _ = stdin.write_all(b"hello");
        let mut channel = accepted(&mut listener);
        let (mut have, mut buffer) = (Vec::<u8>::new(), [0; 100]);
        let outcome = loop {
            match channel.receive(&mut buffer) {
                Ok(count) => have.extend(&buffer[..count]),
                Err(error) => break Err(error),
            }
            if have.len() == 5 {
                break Ok(());
            }
        };
        match (comes_up, outcome) {
            (true, Ok(())) => {
                assert_eq!(have, b"hello");
                assert_eq!(channel.transmit(b"answer").unwrap(), 6);
                let mut answer = [0; 6];
                client.stdout.take().unwrap().read_exact(&mut answer).unwrap();
                assert_eq!(&answer, b"answer");
            }
            (false, Err(error)) => {
                assert!(error.to_string().contains("no TLS 1.2 or 1.3 in common"), "{error}");
            }
            (_, outcome) => panic!("{flag}: {outcome:?}"),
        }
        drop((channel, stdin));
        client.wait().unwrap();
    }
}

#[test]
fn files_that_cannot_be_used_are_named_with_the_remedy() {
    let folder = Folder::new("files");
    let (switch, controller) = friends(&folder);
    let text = folder.write("text.pem", "no PEM at all\n");
    let some = |path: &Path| Some(path.to_owned());
    let cases = [
        (Files { private_key: None, ..switch.clone() }, "switch-cert.pem: needs its private_key"),
        (Files { certificate: None, ..switch.clone() }, "switch-key.pem: needs its certificate"),
        (
            Files { private_key: some(Path::new("/nonexistent/key.pem")), ..switch.clone() },
            "private_key /nonexistent/key.pem: cannot be read",
        ),
        (Files { private_key: some(&text), ..switch.clone() }, "text.pem: holds no private key"),
        (Files { certificate: some(&text), ..switch.clone() }, "text.pem: holds no certificate"),
        (Files { ca_cert: some(&text), ..switch.clone() }, "ca_cert"),
        (
            Files { private_key: controller.private_key, ..switch.clone() },
            "controller-key.pem: is not the key of the certificate in",
        ),
    ];
    for (files, words) in cases {
        let error = Tls::load(&files).unwrap_err().to_string();
        assert!(error.contains(words), "{error} lacks {words}");
    }
    let only_ca =
        Tls::load(&Files { ca_cert: switch.ca_cert.clone(), ..Files::default() }).unwrap();
    let no_ca = Tls::load(&Files { ca_cert: None, ..switch }).unwrap();
    let (active, passive): (Url, Url) =
        ("ssl:127.0.0.1:1".parse().unwrap(), "pssl:1".parse().unwrap());
    for (tls, url, words) in [
        (None, &active, "ca_cert: ssl:127.0.0.1:1 needs it"),
        (Some(&no_ca), &active, "ca_cert: ssl:127.0.0.1:1 needs it"),
        (None, &passive, "certificate: pssl:1:127.0.0.1 needs it"),
        (Some(&only_ca), &passive, "certificate: pssl:1:127.0.0.1 needs it"),
    ] {
        let error = Tls::check(tls, url).unwrap_err().to_string();
        assert!(error.contains(words), "{error} lacks {words}");
    }
    assert!(Tls::check(Some(&only_ca), &active).is_ok());
    assert!(Tls::check(Some(&no_ca), &passive).is_ok());
    assert!(Tls::check(None, &"tcp:127.0.0.1:1".parse().unwrap()).is_ok());
}
