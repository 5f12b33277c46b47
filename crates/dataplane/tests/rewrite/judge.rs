//! Validates changed frames with tshark: no bad checksum, and headers at their positions.

use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::process::{Command, Stdio};

use super::*;

/// Fields requested from tshark: checksum states (1 is good, 0 bad), then values.
const ASKED: [&str; 17] = [
    "ip.checksum.status",
    "tcp.checksum.status",
    "udp.checksum.status",
    "sctp.checksum.status",
    "icmp.checksum.status",
    "icmpv6.checksum.status",
    "vlan.id",
    "vlan.priority",
    "mpls.label",
    "mpls.exp",
    "mpls.bottom",
    "mpls.ttl",
    "ieee8021ah.isid",
    "ip.ttl",
    "ip.dsfield.dscp",
    "ipv6.hlim",
    "ipv6.flow",
];

/// Number of checksum states.
const STATES: usize = 6;

#[test]
fn tshark_finds_correct_checksums_and_headers() {
    let models = changed_models(600);
    let Some(lines) = read(&models.iter().map(|(_, bytes)| bytes.clone()).collect::<Vec<_>>())
    else {
        assert!(may_skip(), "need: tshark");
        println!("skipped; need: tshark (apt-get install tshark)");
        return;
    };
    assert_eq!(lines.len(), models.len());
    let mut good = [0; STATES];
    for (line, (model, bytes)) in lines.iter().zip(&models) {
        let seen: Vec<&str> = line.split('\t').collect();
        for (state, name) in ASKED[..STATES].iter().enumerate() {
            assert_ne!(seen[state], "0", "{name} of {} {model:?}", hex(bytes));
            good[state] += usize::from(seen[state] == "1");
        }
        for (at, wanted) in values(model) {
            assert_eq!(number(seen[at]), wanted, "{} of {} {model:?}", ASKED[at], hex(bytes));
        }
    }
    assert!(good.iter().all(|&count| count >= 20), "each kind of checksum was checked: {good:?}");
}

#[test]
fn tshark_accepts_the_checksum_of_a_routed_packet_after_a_new_destination() {
    let change = |bytes: Vec<u8>| {
        let mut frame = Frame::from_bytes(&bytes);
        let action = Action::set(Field::Ipv6Dst, 0xfd << 120 | 99);
        rewrite::apply(&action, &mut frame, &mut Context::default()).expect("no time to live");
        frame.bytes().to_vec()
    };
    let routes = [(0, 0), (0, 1), (4, 0), (4, 1)];
    let frames = routes.map(|(kind, left)| change(edge::routed(kind, left)));
    let Some(lines) = read(&frames) else {
        assert!(may_skip(), "need: tshark");
        println!("skipped; need: tshark (apt-get install tshark)");
        return;
    };
    for (line, route) in lines.iter().zip(routes) {
        assert_eq!(line.split('\t').nth(2), Some("1"), "{route:?}: {line}");
    }
}

/// Whether a missing program skips the test: always, except as root with `CI` set.
fn may_skip() -> bool {
    let root = std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
    !(root && std::env::var_os("CI").is_some())
}

/// Returns frames after random changes that tshark can still parse.
fn changed_models(count: usize) -> Vec<(Model, Vec<u8>)> {
    let mut models = Vec::new();
    for seed in 0.. {
        let mut dice = Rng::new(seed);
        let (links, kind) = (dice.roll(LINKS), dice.roll(KINDS));
        let mut model = kinds::frame(links, kind, &mut dice);
        let mut frame = Frame::from_bytes(&model.bytes());
        for _ in 0..=dice.roll(8) {
            let Some(action) = random_action(&model, &mut dice) else { continue };
            // Other types of ICMP messages quote packets, which have their own checksums.
            let field =
                if let Action::SetField { field, .. } = action { field } else { Field::EthDst };
            if !matches!(field, Field::Icmpv4Type | Field::Icmpv6Type) {
                let reported = rewrite::apply(&action, &mut frame, &mut context_of(&model));
                assert_eq!(reported, change(&action, &mut model));
            }
        }
        if readable(&model) {
            models.push((model, frame.bytes().to_vec()));
        }
        if models.len() == count {
            break;
        }
    }
    models
}

/// Whether tshark can parse the frame: it guesses the payload of MPLS, so that must be IP, and it
/// recognizes lengths after customer tags only.
fn readable(model: &Model) -> bool {
    let ip = matches!(model.network, Network::Ipv4(_) | Network::Ipv6(..));
    let llc = matches!(model.network, Network::Llc);
    let last_is_readable = match model.links.last() {
        Some(Link::Mpls(..)) => ip,
        Some(Link::Vlan(0x88a8, _) | Link::Pbb(_)) => !llc,
        _ => true,
    };
    let pairs_are_readable = model.links.windows(2).all(|pair| match pair {
        [Link::Mpls(..), next] => matches!(next, Link::Mpls(..)),
        [Link::Vlan(0x88a8, _) | Link::Pbb(_), next] => *next != Link::Snap,
        _ => true,
    });
    last_is_readable && pairs_are_readable
}

/// Returns the values that tshark should report, by index in the requested fields.
fn values(model: &Model) -> Vec<(usize, Option<u128>)> {
    let mut values = Vec::new();
    let outer = model.links.first();
    // tshark has separate fields for service tags, by the number of tags.
    if let Some(Link::Vlan(0x8100, _)) = outer {
        values.push((6, model.get(Field::VlanVid).map(|vid| vid & 0xfff)));
        values.push((7, model.get(Field::VlanPcp)));
    }
    let labelled = model.get(Field::MplsLabel).is_some();
    if labelled {
        values.push((8, model.get(Field::MplsLabel)));
        values.push((9, model.get(Field::MplsTc)));
        values.push((10, model.get(Field::MplsBos)));
        values.push((11, Some(model.ttl(model.ttls()[0]).into())));
    }
    if model.get(Field::PbbIsid).is_some() {
        values.push((12, model.get(Field::PbbIsid)));
    }
    match (&model.network, model.bare()) {
        (Network::Ipv4(header), true) => {
            values.push((13, Some(header.ttl.into())));
            values.push((14, model.get(Field::IpDscp)));
        }
        (Network::Ipv6(header, _), true) => {
            values.push((15, Some(header.hop_limit.into())));
            values.push((16, model.get(Field::Ipv6Flabel)));
        }
        _ => {}
    }
    values
}

fn number(text: &str) -> Option<u128> {
    match text.strip_prefix("0x") {
        Some(digits) => u128::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Returns the first occurrence of each field in each frame, or `None` without tshark.
fn read(frames: &[Vec<u8>]) -> Option<Vec<String>> {
    let mut command = Command::new("tshark");
    command.args([
        "-n",
        "-r",
        "-",
        "-T",
        "fields",
        "-E",
        "occurrence=f",
        "-o",
        "ip.check_checksum:TRUE",
    ]);
    command.args(["-o", "tcp.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE"]);
    command.args(["-o", "sctp.checksum:CRC 32c"]);
    for field in ASKED {
        command.args(["-e", field]);
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    let mut stdin = child.stdin.take().expect("its standard input is piped");
    let capture = capture(frames);
    let writer = std::thread::spawn(move || stdin.write_all(&capture));
    let output = child.wait_with_output().expect("tshark runs");
    writer.join().expect("no panic").expect("tshark reads all");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("tshark prints text");
    Some(text.lines().map(str::to_owned).collect())
}

/// Returns a capture file (pcap 2.4, Ethernet) of these frames.
fn capture(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for word in [0xa1b2_c3d4, 0x0002_0004, 0, 0, 65535, 1] {
        bytes.extend_from_slice(&u32::to_be_bytes(word));
    }
    for frame in frames {
        for word in [0, 0, frame.len() as u32, frame.len() as u32] {
            bytes.extend_from_slice(&word.to_be_bytes());
        }
        bytes.extend_from_slice(frame);
    }
    bytes
}
