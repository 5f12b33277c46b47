//! Tests of valid and invalid stream files.

use std::net::Ipv4Addr;

use packet::header::ethernet;
use packet::time::Nanos;

use super::*;
use crate::stream::replay::{Cut, FrameMark, ShortFrames, Timing};
use crate::stream::{
    Arrival, BurstProfile, Field, IndexOrder, Label, Network, Rate, Transport, Vlan,
};

const HEAD: &str = r#"[[stream]]
id = 7
from = 1
to = 2
frame_bytes = 64
mac_source = "02:00:00:00:00:01"
mac_destination = "02:00:00:00:00:02"
ip_source = "10.0.0.1"
ip_destination = "10.0.1.1"
"#;

fn error(rest: &str) -> String {
    read(&format!("{HEAD}{rest}"), 2).unwrap_err().to_string()
}

#[test]
fn a_complete_file_is_parsed() {
    let text = format!(
        r#"{HEAD}rate_percent = 12.5
link_bits_per_second = 1_000_000_000
vlan_id = 0
vlan_priority = 7
tos = 0xb8
arrival = {{ routed = {{ mac_source = "02:00:00:00:00:aa", mac_destination = "02:00:00:00:00:bb" }} }}
frame_bytes_is_checked = false

[[stream.vary]]
ip_source = {{ list = ["10.0.0.9", 1] }}
mac_source = {{ list = ["02:00:00:00:00:09", 5] }}

[[stream.vary]]
count = 10
order = "random"
seed = 3
port_source = {{ first = 100, step = 10 }}

"#
    );
    let unknown = read(&text, 2).unwrap_err().to_string();
    assert!(
        unknown.starts_with("line 16, column 1: unknown field `frame_bytes_is_checked`"),
        "{unknown}"
    );
    assert!(!unknown.contains('\n'));
    let text = text.replace("frame_bytes_is_checked = false", "").replace("= 64", "= 128");
    let streams = read(&text, 2).unwrap();
    let stream = &streams[0];
    assert_eq!((stream.id, stream.from, stream.to, stream.frame_bytes), (7, 0, 1, 128));
    assert_eq!(stream.headers.vlans, [Vlan { priority: 7, ..Vlan::new(0) }]);
    assert_eq!((stream.headers.tos, stream.headers.ttl), (0xb8, 64));
    assert_eq!(
        stream.rate,
        Rate::LinkPercent { percent: 12.5, link_bits_per_second: 1_000_000_000 }
    );
    let mac_source = [2, 0, 0, 0, 0, 0xaa];
    assert!(matches!(stream.arrival, Arrival::Routed { mac_source: it, .. } if it == mac_source));
    assert_eq!(stream.vary[0].count, 2);
    assert_eq!(stream.flow_count(), 20);
    let flow = stream.flow(13);
    assert_eq!((flow.ip_source, flow.port_source), (Ipv4Addr::new(0, 0, 0, 1), 160));
    assert_eq!(flow.mac_source, [0, 0, 0, 0, 0, 5]);
}

#[test]
fn a_loopback_stream_requires_no_ip_addresses_and_rejects_them() {
    let bare = HEAD.replace("ip_source = \"10.0.0.1\"\nip_destination = \"10.0.1.1\"\n", "");
    let rest = "rate_pps = 1.0\nloopback_level = 5\narrival = \"answered\"\n";
    let streams = read(&format!("{bare}{rest}"), 2).unwrap();
    assert_eq!(streams[0].headers.network, Network::Loopback { level: 5, answers: false });
    assert_eq!(streams[0].arrival, Arrival::Answered);
    let message = error(rest);
    assert!(message.contains("loopback_level") && message.contains("ip_source"), "{message}");
    let message = error("rate_pps = 1.0\narrival = \"answered\"\n");
    assert!(message.contains("loopback_level"), "{message}");
}

#[test]
fn syntax_errors_are_reported_with_line_and_column() {
    let message = error("rate_pps = 1.0\nmac_surce = 1\n");
    assert!(message.starts_with("line 11, column 1: unknown field `mac_surce`"), "{message}");
    let message = error("rate_pps = \"fast\"\n");
    assert!(message.starts_with("line 10, column 12: invalid type"), "{message}");
    let message = error("rate_pps = 1.0\n[[stream.vary]]\nport_source = { first = \"ten\" }\n");
    assert!(message.starts_with("line 12, column 25: \"ten\" is no"), "{message}");
    let message =
        read(&HEAD.replace("02:00:00:00:00:01", "2:0:0:0:0:1"), 2).unwrap_err().to_string();
    assert!(message.starts_with("line 6, column 14: \"2:0:0:0:0:1\" is not"), "{message}");
    assert!(read("[[stream]\n", 2).unwrap_err().to_string().starts_with("line 1, column "));
    assert!(matches!(read(&" ".repeat(FILE_BYTES_MAX + 1), 2), Err(FileError::TooLong(_))));
    assert_eq!(read("", 2), Ok(vec![]));
}

#[test]
fn all_faults_of_all_streams_are_reported_together() {
    let text = format!(
        "{}rate_pps = 0.0\nvlan_id = 5000\n{}rate_percent = 5.0\n[[stream.vary]]\n\
         port_source = {{ first = 70000 }}\nmac_source = {{ list = [1], first = 2 }}\n",
        HEAD.replace("from = 1", "from = 0"),
        HEAD.replace("to = 2", "to = 3"),
    );
    let Err(FileError::Streams(faults)) = read(&text, 2) else { panic!() };
    let assert_reported = |line, problem: Problem| {
        let fault = StreamFault { line, stream: 7, problem };
        assert!(faults.contains(&fault), "{fault:?} in {faults:?}");
    };
    assert_reported(1, Problem::NoSuchPort { port: usize::MAX, ports: 2 });
    assert_reported(1, Problem::BadRate(0.0));
    assert_reported(1, Problem::BadVlan(Vlan::new(5000)));
    assert_reported(1, Problem::TooSmall { frame_bytes: 64, smallest_bytes: 68 });
    assert_reported(12, Problem::DuplicateId(7));
    assert_reported(12, Problem::MissingKey("link_bits_per_second"));
    assert_reported(12, Problem::Contradiction("list", "first"));
    assert!(FileError::Streams(faults.clone()).to_string().contains("no port 0 "));
    let wrong = Problem::BadValue { field: Field::PortSource, value: 70000 };
    assert!(faults.iter().any(|fault| fault.problem == wrong));
}

#[test]
fn an_address_of_the_wrong_family_does_not_fit_a_field() {
    let message = error(
        "rate_pps = 1.0\n[[stream.vary]]\ncount = 2\nip_source = { first = \"00:00:00:00:00:01\" }\n",
    );
    assert!(message.contains("ip_source: 0x1 does not fit"), "{message}");
}

#[test]
fn a_replay_is_accepted_except_where_frames_must_be_identified() {
    let replay = "[[replay]]\nid = 9\nfrom = 2\nfile = \"a.pcap\"\n";
    let text = format!("{HEAD}rate_pps = 1.0\n{replay}");
    let contents = read_all(&text, 2).unwrap();
    assert_eq!(contents.streams.len(), 1);
    assert_eq!(contents.replays, [Replay::once(9, 1, "a.pcap".into())]);
    let message = read(&text, 2).unwrap_err().to_string();
    assert!(message.starts_with("line 11, stream 9: replays are unsupported here"), "{message}");
    let with =
        |rest: &str| read_all(&format!("{replay}{rest}"), 2).map(|all| all.replays[0].clone());
    for (rest, timing) in [
        ("gap_factor = 0.5\n", Timing::Scaled(0.5)),
        ("gap_ns = 100\n", Timing::Gap(Nanos(100))),
        ("rate_pps = 2.5\n", Timing::FramesPerSecond(2.5)),
        ("link_bits_per_second = 1_000\n", Timing::Link(1000)),
        ("unpaced = true\n", Timing::Unpaced),
    ] {
        assert_eq!(with(rest).unwrap().timing, timing);
    }
    let all = with("passes = 0\nshort = \"refuse\"\ncut = \"send\"\n").unwrap();
    assert_eq!((all.passes, all.short, all.cut), (None, ShortFrames::Refuse, Cut::Send));
    for (rest, words) in [
        (
            "gap_ns = 1\nrate_pps = 1.0\n",
            "line 1, stream 9: gap_ns and rate_pps exclude each other",
        ),
        ("gap_factor = 0.0\n", "invalid gap factor 0"),
        ("gap_factor = nan\n", "invalid gap factor NaN"),
        ("rate_pps = -1.0\n", "invalid rate -1"),
        ("link_bits_per_second = 0\n", "invalid link rate 0 bit/s"),
        ("gap = 5\n", "line 5, column 1: unknown field `gap`"),
        ("short = \"drop\"\n", "line 5, column 9: unknown variant `drop`"),
    ] {
        let message = with(rest).unwrap_err().to_string();
        assert!(message.contains(words), "{message:?} lacks {words:?}");
    }
    let message = read_all(&text.replace("id = 9", "id = 7"), 2).unwrap_err().to_string();
    assert!(message.contains("line 11, stream 7: stream ID 7 is used twice"), "{message}");
    let message = read_all(&text.replace("from = 2", "from = 3"), 2).unwrap_err().to_string();
    assert!(message.contains("no port 3 (there are 2)"), "{message}");
}

/// The stream of a file with these lines after `head`.
fn one(head: &str, rest: &str) -> Stream {
    let text = format!("{head}rate_pps = 1000.0\n{rest}");
    read(&text, 2).unwrap_or_else(|error| panic!("{rest}: {error}")).remove(0)
}

#[test]
fn every_schedule_is_parsed() {
    for (rest, shape) in [
        ("schedule = \"constant\"\n", BurstProfile::Constant),
        ("schedule = { poisson = { seed = 7 } }\n", BurstProfile::Poisson { seed: 7 }),
        (
            "schedule = { bursts = { frames = 16, gap_ns = 700 } }\n",
            BurstProfile::Bursts { frames: 16, gap: Nanos(700) },
        ),
        (
            "schedule = { on_off = { on_ns = 5_000_000, off_ns = 1 } }\n",
            BurstProfile::OnOff { on: Nanos(5_000_000), off: Nanos(1) },
        ),
        (
            "schedule = { ramp = { to_pps = 5.0, over_ns = 60_000_000_000 } }\n",
            BurstProfile::Ramp { to: Rate::FramesPerSecond(5.0), over: Nanos::from_secs(60) },
        ),
    ] {
        assert_eq!(one(HEAD, rest).shape, shape);
    }
    let percent = "rate_percent = 10.0\nlink_bits_per_second = 1_000_000\n\
                   schedule = { ramp = { to_percent = 20.0, over_ns = 9 } }\n";
    let stream = read(&format!("{HEAD}{percent}"), 2).unwrap().remove(0);
    let to = Rate::LinkPercent { percent: 20.0, link_bits_per_second: 1_000_000 };
    assert_eq!(stream.shape, BurstProfile::Ramp { to, over: Nanos(9) });
    for (schedule, words) in [
        ("{ poisson = {} }", "missing field `seed`"),
        ("{ poisson = { seed = 1, mean = 2 } }", "unknown field `mean`"),
        ("\"poison\"", "unknown variant `poison`"),
        ("{ bursts = { frames = 0, gap_ns = 1 } }", "bursts of 0 frames"),
        ("{ bursts = { frames = 11, gap_ns = 10_000_000 } }", "a burst starts every 11000000 ns"),
        ("{ on_off = { on_ns = 0, off_ns = 1 } }", "on_ns must be at least 1"),
        ("{ ramp = { over_ns = 1 } }", "missing key to_pps or to_percent"),
        ("{ ramp = { to_percent = 1.0, over_ns = 1 } }", "missing key link_bits_per_second"),
        ("{ ramp = { to_pps = 1.0, to_percent = 1.0, over_ns = 1 } }", "exclude each other"),
        ("{ ramp = { to_pps = 0.0, over_ns = 1 } }", "invalid rate 0"),
        ("{ ramp = { to_pps = 9.0, over_ns = 0 } }", "ramp: 0 ns is not between 1 and"),
        ("{ ramp = { to_pps = 9.0, over_ns = 3_600_000_000_001 } }", "and 3600000000000 ns"),
    ] {
        let message = error(&format!("rate_pps = 1000.0\nschedule = {schedule}\n"));
        assert!(
            message.starts_with("line ") && message.contains(words),
            "{message:?} lacks {words:?}"
        );
    }
}

#[test]
fn sizes_can_be_a_genome() {
    let head = HEAD.replace("frame_bytes = 64\n", "");
    let stream = one(&head, "genome = \"28a 16A 4g\"\ngenome_sizes = { A = 570 }\n");
    assert_eq!((stream.frame_bytes, stream.sizes()), (1518, &[64, 570, 1518][..]));
    assert_eq!(stream.genome.unwrap().frames(), 48);
    for (rest, words) in [
        ("", "missing key frame_bytes"),
        ("genome = \"aaz\"\n", "genome: the letter z has no size"),
        ("genome = \"a)\"\n", "genome: syntax error at character 2"),
        ("frame_bytes = 64\ngenome = \"a\"\n", "frame_bytes and genome exclude each other"),
        ("frame_bytes = 64\ngenome_sizes = { A = 1 }\n", "missing key genome"),
        ("genome = \"a\"\ngenome_sizes = { a = 64 }\n", "\"a\" is neither a single capital letter"),
        ("genome = \"aA\"\ngenome_sizes = { A = 63 }\n", "63-byte frames are too small"),
        ("genome = \"aj\"\nsignature_at = 44\n", "signature_at = 44"),
    ] {
        let message = read(&format!("{head}rate_pps = 1.0\n{rest}"), 2).unwrap_err().to_string();
        assert!(message.contains(words), "{message:?} lacks {words:?}");
        assert!(!message.contains("; "), "one fault is reported as several: {message}");
    }
}

#[test]
fn headers_of_every_kind_are_parsed() {
    let head = HEAD.replace("frame_bytes = 64", "frame_bytes = 256");
    let bare: String = head
        .lines()
        .filter(|line| !line.starts_with("ip_"))
        .fold(String::new(), |text, line| format!("{text}{line}\n"));
    let v6 = "ipv6_source = \"2001:db8::1\"\nipv6_destination = \"2001:db8::2\"\n";
    let stream = one(
        &bare,
        &format!(
            "{v6}flow_label = 5\ntransport = \"tcp\"\ntcp_flags = [\"syn\", \"ack\"]\n\
             vlans = [{{ kind = \"802.1ad\", id = 9, priority = 2 }}, {{ id = 3 }}]\n\
             mpls = [{{ label = 77, class = 1, ttl = 9 }}, {{ label = 78 }}]\nsignature_at = 150\n"
        ),
    );
    let headers = &stream.headers;
    let service = Vlan { kind: ethernet::TYPE_SERVICE_VLAN, id: 9, priority: 2 };
    assert_eq!(headers.vlans, [service, Vlan::new(3)]);
    let second = Label { label: 78, class: 0, ttl: 64 };
    assert_eq!(headers.labels, [Label { label: 77, class: 1, ttl: 9 }, second]);
    assert!(matches!(headers.network, Network::Ipv6 { flow_label: 5, .. }));
    assert_eq!((headers.transport, headers.ip_protocol), (Transport::Tcp { flags: 0x12 }, 6));
    assert_eq!((stream.signature_at, headers.layout().payload_at), (Some(150), 90));
    let arp = one(&head, "arp = \"reply\"\n");
    assert_eq!(arp.headers.network, Network::arp(2));
    let sctp = one(&head, "transport = \"sctp\"\nsctp_tag = 7\n");
    assert_eq!(sctp.headers.transport, Transport::Sctp { verification_tag: 7 });
    for (rest, words) in [
        (String::new(), "missing key ip_source"),
        (v6.replace("ipv6_source", "ip_source").replace("2001:db8::1", "10.0.0.1"), "exclude"),
        (format!("{v6}arp = \"request\"\n"), "arp and ipv6_source exclude each other"),
        (format!("{v6}tcp_flags = []\n"), "tcp_flags and transport exclude each other"),
        (format!("{v6}sctp_tag = 1\n"), "sctp_tag and transport exclude each other"),
        (format!("{v6}flow_label = 1048576\n"), "flow_label 1048576: at most 1048575"),
        (format!("{v6}mpls = [{{ label = 1048576 }}]\n"), "label 1048576 class 0: at most"),
        (format!("{v6}vlan_id = 1\nvlans = []\n"), "vlan_id and vlans exclude each other"),
        (format!("{v6}vlans = [{{ id = 4096 }}]\n"), "VLAN 4096 priority 0: at most"),
        (format!("{v6}signature_at = 9\n"), "from 62 (end of headers) to 234"),
    ] {
        let message = read(&format!("{bare}rate_pps = 1.0\n{rest}"), 2).unwrap_err().to_string();
        assert!(message.contains(words), "{message:?} lacks {words:?}");
    }
}

#[test]
fn every_order_and_every_kind_of_values_is_parsed() {
    let head = HEAD.replace("frame_bytes = 64", "frame_bytes = 256");
    let vary = |rest: &str| one(&head, &format!("[[stream.vary]]\n{rest}")).vary;
    let group =
        vary("ip_source = { first = \"10.0.0.0\", last = \"10.255.255.255\", step = 16 }\n");
    assert_eq!((group[0].count, &group[0].order), (1 << 20, &IndexOrder::Sequential));
    let group = vary("every = 100\nport_source = { list = [1, 2, 3] }\n");
    assert_eq!((group[0].count, &group[0].order), (3, &IndexOrder::Slow { frames: 100 }));
    let group = vary("weights = [1, 0.5]\nseed = 3\ntos = { list = [0, 184] }\n");
    assert!(
        matches!(&group[0].order, IndexOrder::Weighted { seed: 3, weights } if weights.count() == 2)
    );
    let wheels = "order = \"odometer\"\nip_source = { first = 1, last = 10 }\n[[stream.vary]]\n\
                  order = \"random\"\ncount = 9\ntos = { scattered = 1 }\n[[stream.vary]]\n\
                  order = \"odometer\"\nport_source = { first = 1, last = 20 }\n[[stream.vary]]\n\
                  order = \"odometer\"\nport_destination = { first = 1, last = 30 }\n";
    let orders: Vec<IndexOrder> = vary(wheels).into_iter().map(|group| group.order).collect();
    let slow = |frames| IndexOrder::Slow { frames };
    assert_eq!(
        orders,
        [IndexOrder::Sequential, IndexOrder::Random { seed: 0 }, slow(10), slow(200)]
    );
    for (rest, words) in [
        ("every = 2\norder = \"random\"\ntos = { list = [1] }\n", "every and order exclude"),
        ("weights = [1]\norder = \"zipf\"\ntos = { list = [1] }\n", "weights and order exclude"),
        ("weights = [0, 0]\ntos = { list = [1, 2] }\n", "weights: invalid list"),
        ("weights = [1]\ntos = { list = [1, 2] }\n", "weights: 1 numbers for a count of 2"),
        ("order = \"weighted\"\ntos = { list = [1, 2] }\n", "missing key weights"),
        ("tos = { first = 9 }\n", "missing key count"),
        ("tos = { first = 9, last = 3 }\n", "tos: 0x3 does not fit"),
        ("tos = { last = 3 }\ncount = 2\n", "missing key first"),
        ("tos = { list = [256] }\n", "tos: 0x100 does not fit"),
        ("count = 2\nvlan_id = { first = 1 }\n", "vlan_id varies, but the frames do not have it"),
        ("count = 2\nipv6_source = { first = \"::1\" }\n", "ipv6_source varies, but"),
        ("count = 2\nip_source = { first = \"::1\" }\n", "ip_source: 0x1 does not fit"),
    ] {
        let text = format!("{head}rate_pps = 1.0\n[[stream.vary]]\n{rest}");
        let message = read(&text, 2).unwrap_err().to_string();
        assert!(message.contains(words), "{message:?} lacks {words:?}");
    }
}

#[test]
fn a_replay_can_be_marked() {
    let text = "[[replay]]\nid = 9\nfrom = 1\nfile = \"a.pcap\"\n";
    let mark = |rest: &str| read_all(&format!("{text}{rest}"), 2).map(|all| all.replays[0].mark);
    assert_eq!(mark("to = 2\n"), Ok(Some(FrameMark { to: 1, before_end: 0 })));
    let placed = mark("to = 1\nsignature_before_end = 40\n");
    assert_eq!(placed, Ok(Some(FrameMark { to: 0, before_end: 40 })));
    let message = mark("to = 3\n").unwrap_err().to_string();
    assert!(message.contains("no port 3"), "{message}");
    let message = mark("signature_before_end = 4\n").unwrap_err().to_string();
    assert!(message.contains("missing key to"), "{message}");
}
