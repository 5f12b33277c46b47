//! Streams of every schedule, size and header in virtual time: each frame leaves on schedule, to
//! the nanosecond, and is identified.

#![allow(clippy::unwrap_used)]

mod common;

use std::cell::RefCell;
use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::process::Command;
use std::rc::Rc;

use common::{Copy, pass, rig, stream, trial, wire};
use netio::capture::{CaptureOptions, CaptureWriter};
use packet::frame::Frame;
use packet::header::ethernet;
use packet::parse::Packet;
use packet::time::Nanos;
use tester::generator::schedule::Schedule;
use tester::generator::templates::Templates;
use tester::rig::Rig;
use tester::stream::file::{read, read_all};
use tester::stream::{
    BurstProfile, Field, FieldVariation, Genome, Headers, IndexOrder, Label, Network, Stream,
    Transport, Values, Vlan, Weights,
};
use tester::trial::{Classes, TrialReport};

/// Frames received after a wire, with their times.
type Heard = Vec<(Nanos, Vec<u8>)>;

fn over_a_wire(streams: Vec<Stream>, milliseconds: u64) -> (TrialReport, Heard) {
    let heard = Rc::new(RefCell::new(Vec::new()));
    let note = heard.clone();
    let rule = move |_: u64, port: usize, frame: &Frame, now: Nanos| -> Vec<Copy> {
        note.borrow_mut().push((now, frame.bytes().to_vec()));
        vec![pass(1 - port, frame, now)]
    };
    let report = rig(2, rule).trial(&trial(streams, milliseconds)).unwrap();
    (report, heard.take())
}

#[test]
fn streams_of_every_schedule_share_a_port_and_keep_their_times() {
    let shapes = [
        BurstProfile::Constant,
        BurstProfile::Poisson { seed: 4 },
        BurstProfile::Bursts { frames: 32, gap: Nanos(100) },
        BurstProfile::OnOff { on: Nanos::from_millis(1), off: Nanos::from_millis(4) },
        BurstProfile::Ramp {
            to: tester::stream::Rate::FramesPerSecond(90_000.0),
            over: Nanos::from_millis(50),
        },
    ];
    let shaped = |(id, shape)| Stream { shape, ..stream(id, 64, 30_000.0) };
    let streams = (1..).zip(shapes).map(shaped).collect();
    let (report, _) = over_a_wire(streams, 100);
    assert_eq!(report.classes, Classes { correct: report.total.intended, ..report.classes });
    assert_eq!(report.account.unexplained(), 0);
    let intended: Vec<u64> = report.streams.iter().map(|it| it.load.intended).collect();
    assert_eq!((intended[0], intended[2], intended[3]), (3_000, 3_008, 600));
    // A ramp from 30,000 to 90,000 in half of the time, then constant. It started 27 us after the
    // others.
    assert_eq!(intended[4], 3_000 + 4_500 - 2);
    assert!(intended[1].abs_diff(3_000) < 100, "{intended:?}");
    for stream in &report.streams {
        let pacing = &stream.pacing;
        assert_eq!(pacing.lateness.ns_max(), Some(0), "stream {}", stream.id);
        assert_eq!(pacing.gap_error.ns_max(), Some(0), "stream {}", stream.id);
        assert_eq!(pacing.gaps.count(), stream.load.offered - 1);
        assert_eq!(stream.latency.from_scheduled.ns_max(), Some(0));
    }
    let gaps = |place: usize| &report.streams[place].pacing.gaps;
    assert_eq!((gaps(0).ns_min(), gaps(0).ns_max()), (Some(33_333), Some(33_334)));
    assert!(gaps(1).ns_min() < Some(1_000) && gaps(1).ns_max() > Some(150_000));
    assert_eq!(gaps(2).ns_at_quantile(0.9), Some(100));
    let merged: u64 = report.streams.iter().map(|it| it.pacing.gaps.count()).sum();
    assert_eq!(report.pacing.gaps.count(), merged);
}

#[test]
fn the_seed_determines_the_send_times() {
    let of = |seed| {
        let poisson = Stream { shape: BurstProfile::Poisson { seed }, ..stream(1, 64, 20_000.0) };
        over_a_wire(vec![poisson], 50).1
    };
    assert_eq!(of(1), of(1));
    let times = |heard: Heard| heard.into_iter().map(|(at, _)| at).collect::<Vec<_>>();
    assert_ne!(times(of(1)), times(of(2)));
}

#[test]
fn a_genome_is_sent_in_order_and_counted_exactly() {
    let genome = Genome::read("28a16A4g", &[('A', 570)]).unwrap();
    let mixed = stream(1, 64, 48_000.0).with_genome(genome);
    let (report, heard) = over_a_wire(vec![mixed], 100);
    assert_eq!(report.classes, Classes { correct: 4_800, ..Classes::default() });
    let mut counts = BTreeMap::new();
    heard.iter().for_each(|(_, bytes)| *counts.entry(bytes.len() + 4).or_insert(0) += 1);
    assert_eq!(counts, BTreeMap::from([(64, 2_800), (570, 1_600), (1_518, 400)]));
    let lengths: Vec<usize> = heard[..48].iter().map(|(_, bytes)| bytes.len() + 4).collect();
    assert!(lengths[..28].iter().all(|&it| it == 64) && lengths[28] == 570 && lengths[47] == 1518);
    assert_eq!(report.streams[0].frame_bytes_mean, (28 * 64 + 16 * 570 + 4 * 1518) as f64 / 48.0);
}

#[test]
fn a_million_headers_are_distinct_without_a_table() {
    let wheel = |order, field, count| FieldVariation {
        count,
        order,
        fields: vec![(field, Values::Range { first: 1024, step: 1 })],
    };
    let varied = Stream {
        vary: vec![
            wheel(IndexOrder::Sequential, Field::PortSource, 1 << 10),
            wheel(IndexOrder::Slow { frames: 1 << 10 }, Field::PortDestination, 1 << 10),
        ],
        ..stream(1, 64, 1.0)
    };
    assert_eq!(varied.flow_count(), 1 << 20);
    let ports = |number| {
        let headers = varied.headers_at(number);
        u32::from(headers.port_source) << 16 | u32::from(headers.port_destination)
    };
    let met: HashSet<u32> = (0..1 << 20).map(ports).collect();
    assert_eq!((met.len(), ports(1 << 20)), (1 << 20, ports(0)));
    // A sample of the sent frames.
    let fast = Stream { rate: tester::stream::Rate::FramesPerSecond(500_000.0), ..varied.clone() };
    let (report, heard) = over_a_wire(vec![fast], 10);
    assert_eq!(report.classes.correct, 5_000);
    let sent: HashSet<_> = heard.iter().map(|(_, bytes)| Packet::of(bytes).ports()).collect();
    assert_eq!(sent.len(), 5_000);
}

#[test]
fn a_weighted_choice_has_its_weights_on_the_wire() {
    let weights = Weights::new(&[7.0, 2.0, 1.0]).unwrap();
    let weighted = Stream {
        vary: vec![FieldVariation {
            count: 3,
            order: IndexOrder::Weighted { seed: 5, weights },
            fields: vec![(Field::Tos, Values::List(vec![0, 40, 184]))],
        }],
        ..stream(1, 64, 100_000.0)
    };
    let (report, heard) = over_a_wire(vec![weighted], 100);
    assert_eq!(report.classes.correct, 10_000);
    let of = |tos: u8| heard.iter().filter(|(_, bytes)| bytes[15] == tos).count() as f64;
    // Five standard deviations of a binomial distribution.
    for (tos, share) in [(0, 0.7), (40, 0.2), (184, 0.1f64)] {
        let most = 5.0 * (1e4 * share * (1.0 - share)).sqrt();
        assert!((of(tos) - 1e4 * share).abs() < most, "{tos}: {}", of(tos));
    }
}

/// Streams with every kind of header, each with the tshark filter that accepts its valid frames.
fn of_every_kind() -> Vec<(Stream, &'static str)> {
    let v6 = Network::Ipv6 {
        source: "2001:db8::1".parse().unwrap(),
        destination: "2001:db8::2".parse().unwrap(),
        flow_label: 0xabcde,
    };
    let service = Vlan { kind: ethernet::TYPE_SERVICE_VLAN, id: 100, priority: 3 };
    let labels =
        vec![Label { label: 1000, class: 5, ttl: 63 }, Label { label: 16, class: 0, ttl: 9 }];
    let (tcp, sctp) = (Transport::Tcp { flags: 0x12 }, Transport::Sctp { verification_tag: 9 });
    let loopback = Network::Loopback { level: 5, answers: false };
    let random = |field| {
        let fields = vec![(field, Values::Scattered { seed: 2 })];
        vec![FieldVariation { count: 1 << 20, order: IndexOrder::Random { seed: 3 }, fields }]
    };
    let of = |id, field, change: &dyn Fn(&mut Headers)| {
        let mut stream = Stream { vary: random(field), ..stream(id, 200, 1_000.0) };
        change(&mut stream.headers);
        stream.headers.ip_protocol = stream.headers.transport.protocol();
        stream
    };
    vec![
        (of(1, Field::IpSource, &|_| {}), "ip.checksum.status==1 && udp.checksum.status==1"),
        (
            of(2, Field::PortSource, &|it| it.transport = tcp),
            "ip.checksum.status==1 && tcp.checksum.status==1 && tcp.flags==0x12",
        ),
        (
            of(3, Field::IpDestination, &|it| it.transport = sctp),
            "sctp.checksum.status==1 && sctp.chunk_type==0",
        ),
        (
            of(4, Field::Ipv6Source, &|it| it.network = v6),
            "udp.checksum.status==1 && ipv6.flow==0xabcde",
        ),
        (
            of(5, Field::FlowLabel, &|it| (it.network, it.transport) = (v6, tcp)),
            "tcp.checksum.status==1",
        ),
        (
            of(6, Field::VlanInnerId, &|it| it.vlans = vec![service, Vlan::new(7)]),
            "ieee8021ad.id==100 && vlan && udp.checksum.status==1",
        ),
        (
            of(7, Field::MplsLabel, &|it| it.labels = labels.clone()),
            "mpls.label==16 && mpls.bottom==1 && udp.checksum.status==1 && ip.checksum.status==1",
        ),
        (
            of(8, Field::IpSource, &|it| it.network = Network::arp(1)),
            "arp.opcode==1 && arp.src.proto_ipv4",
        ),
        (
            of(9, Field::MacSource, &|it| it.network = loopback),
            "cfm.opcode==3 && cfm.md.level==5 && cfm.tlv.length==170 && cfm.tlv.type==0 && !_ws.malformed",
        ),
    ]
}

#[test]
fn frames_of_every_kind_are_identified_and_corrupt_ones_detected() {
    let streams: Vec<Stream> = of_every_kind().into_iter().map(|(stream, _)| stream).collect();
    let report = rig(2, wire).trial(&trial(streams.clone(), 200)).unwrap();
    assert_eq!(report.classes, Classes { correct: 9 * 200, ..Classes::default() });
    // One bit after the signature is flipped in every fiftieth frame. All are detected.
    let rule = |count: u64, port: usize, frame: &Frame, now: Nanos| -> Vec<Copy> {
        let mut copy = pass(1 - port, frame, now);
        if count % 50 == 7 {
            *copy.bytes.last_mut().unwrap() ^= 4;
        }
        vec![copy]
    };
    let report = rig(2, rule).trial(&trial(streams, 200)).unwrap();
    assert_eq!((report.classes.correct, report.classes.corrupt), (9 * 200 - 36, 36));
}

#[test]
fn tshark_finds_all_checksums_correct() {
    let found = Command::new("tshark").arg("--version").output().is_ok();
    assert!(found || std::env::var_os("CI").is_none(), "tshark is required in CI");
    if !found {
        println!("skipped: needs tshark (Debian: tshark)");
        return;
    }
    for (stream, filter) in of_every_kind() {
        let id = stream.id;
        let (_, heard) = over_a_wire(vec![stream], 100);
        let name = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("stream-{id}.pcapng"));
        let file = std::fs::File::create(&name).unwrap();
        let mut writer = CaptureWriter::new(file, &CaptureOptions::pcapng("x")).unwrap();
        for (at, bytes) in &heard {
            writer.frame(*at, bytes, Default::default()).unwrap();
        }
        writer.finish(None).unwrap();
        let mut command = Command::new("tshark");
        for guard in ["ip", "udp", "tcp"] {
            command.args(["-o", &format!("{guard}.check_checksum:TRUE")]);
        }
        command.args(["-o", "sctp.checksum:CRC 32c"]);
        let output = command.arg("-n").arg("-r").arg(&name).args(["-Y", filter]).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        let lines = String::from_utf8_lossy(&output.stdout).lines().count();
        assert_eq!(lines, 100, "stream {id}, {filter}: {errors}");
    }
}

#[test]
fn a_stream_file_with_all_features_loses_no_frame() {
    let text = r#"
        [[stream]]
        id = 3
        from = 1
        to = 2
        genome = "3a2(bc)g"
        signature_at = 42
        rate_percent = 25.0
        link_bits_per_second = 1_000_000_000
        schedule = { bursts = { frames = 8, gap_ns = 5_000 } }
        mac_source = "02:00:00:00:00:01"
        mac_destination = "02:00:00:00:00:02"
        ip_source = "10.0.0.1"
        ip_destination = "10.0.1.1"
        [[stream.vary]]
        order = "odometer"
        ip_source = { first = "10.0.0.1", last = "10.0.3.255" }
        [[stream.vary]]
        order = "odometer"
        port_source = { first = 1024, last = 65535, step = 63 }
        [[stream.vary]]
        weights = [90, 10]
        seed = 4
        tos = { list = [0, 184] }
    "#;
    let streams = read(text, 2).unwrap();
    assert_eq!(streams[0].flow_count(), 1023 * 1024 * 2);
    let (report, _) = over_a_wire(streams, 50);
    assert_eq!(report.classes.correct, report.total.intended);
    assert!(report.total.intended > 1_000 && report.flags.is_empty(), "{:?}", report.flags);
}

/// Returns the stream files of the user guide.
fn files_of_the_guide() -> Vec<&'static str> {
    let guide = include_str!("../../../docs/guide/stream-files.md");
    let blocks = guide.split("```toml").skip(1).map(|rest| {
        // A block's name can follow the language.
        rest.split_once('\n').unwrap().1.split("```").next().unwrap()
    });
    blocks.filter(|text| text.contains("[[stream]]") || text.contains("[[replay]]")).collect()
}

#[test]
fn the_stream_files_of_the_guide_are_valid() {
    let files = files_of_the_guide();
    for text in &files {
        if let Err(error) = read_all(text, 2) {
            panic!("{error} in\n{text}");
        }
    }
    assert!(files.len() >= 5, "{}", files.len());
}

#[test]
fn extreme_numbers_in_a_stream_file_never_panic() {
    let absurd = ["0", "-1", "1", "65536", "9223372036854775807", "1e300", "0.0", "nan"];
    for text in files_of_the_guide() {
        let lines: Vec<&str> = text.lines().collect();
        for place in 0..lines.len() {
            let Some((key, value)) = lines[place].split_once(" = ") else { continue };
            let mut wrong = vec![String::new()];
            wrong.extend(absurd.map(|number| format!("{key} = {number}")));
            let digits = |letter: char| !letter.is_ascii_digit();
            for part in value.split(digits).filter(|part| !part.is_empty()) {
                wrong.extend(absurd.map(|it| format!("{key} = {}", value.replace(part, it))));
            }
            for line in wrong {
                let mut all = lines.clone();
                all[place] = &line;
                match read_all(&all.join("\n"), 2) {
                    Ok(contents) => contents.streams.iter().for_each(made),
                    Err(error) => assert!(!error.to_string().contains('\n')),
                }
            }
        }
    }
}

/// Generates frames and due times of a stream.
fn made(stream: &Stream) {
    let schedule = Schedule::of(stream, Nanos(5), Nanos::ZERO, Nanos::from_secs(1), false);
    let places = [0, 1, 2, 1023, 1024].map(|number| schedule.seek(number));
    assert!(places.is_sorted_by_key(|place| place.due), "{stream:?}");
    if stream.vary.iter().all(|group| group.count <= 1 << 16) {
        let templates = Templates::leaving(stream, 7);
        assert!(templates.all().all(|template| template.bytes().len() >= 60));
    }
}
