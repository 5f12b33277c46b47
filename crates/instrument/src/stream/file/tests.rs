//! Good files become streams; bad ones say where and why.

use packet::time::Nanos;

use super::*;
use crate::replay::{Cut, Short, Timing};

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
fn a_whole_file_becomes_streams() {
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
    assert_eq!(stream.headers.vlan, Some(Vlan { id: 0, priority: 7 }));
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
fn what_cannot_be_read_is_named_with_its_place() {
    let said = error("rate_pps = 1.0\nmac_surce = 1\n");
    assert!(said.starts_with("line 11, column 1: unknown field `mac_surce`"), "{said}");
    let said = error("rate_pps = \"fast\"\n");
    assert!(said.starts_with("line 10, column 12: invalid type"), "{said}");
    let said = error("rate_pps = 1.0\n[[stream.vary]]\nport_source = { first = \"ten\" }\n");
    assert!(said.starts_with("line 12, column 25: \"ten\" is no"), "{said}");
    let said = read(&HEAD.replace("02:00:00:00:00:01", "2:0:0:0:0:1"), 2).unwrap_err().to_string();
    assert!(said.starts_with("line 6, column 14: \"2:0:0:0:0:1\" is not"), "{said}");
    assert!(read("[[stream]\n", 2).unwrap_err().to_string().starts_with("line 1, column "));
    assert!(matches!(read(&" ".repeat(FILE_BYTES_MAX + 1), 2), Err(FileError::TooLong(_))));
    assert_eq!(read("", 2), Ok(vec![]));
}

#[test]
fn every_fault_of_every_stream_is_told_at_once() {
    let text = format!(
        "{}rate_pps = 0.0\nvlan_id = 5000\n{}rate_percent = 5.0\n[[stream.vary]]\n\
         port_source = {{ first = 70000 }}\nmac_source = {{ list = [1], first = 2 }}\n",
        HEAD.replace("from = 1", "from = 0"),
        HEAD.replace("to = 2", "to = 3"),
    );
    let Err(FileError::Streams(faults)) = read(&text, 2) else { panic!() };
    let told = |line, problem: Problem| {
        let fault = Fault { line, stream: 7, problem };
        assert!(faults.contains(&fault), "{fault:?} in {faults:?}");
    };
    told(1, Problem::NoSuchPort { port: usize::MAX, ports: 2 });
    told(1, Problem::BadRate(0.0));
    told(1, Problem::BadVlan(Vlan { id: 5000, priority: 0 }));
    told(1, Problem::TooSmall { frame_bytes: 64, smallest_bytes: 68 });
    told(12, Problem::DuplicateId(7));
    told(12, Problem::MissingKey("link_bits_per_second"));
    told(12, Problem::MissingKey("count"));
    told(12, Problem::Contradiction("list", "first"));
    assert!(FileError::Streams(faults.clone()).to_string().contains("there is no port 0 "));
    let wrong = Problem::BadValue { field: Field::PortSource, value: 70000 };
    assert!(faults.iter().any(|fault| fault.problem == wrong));
}

#[test]
fn an_address_of_the_wrong_kind_does_not_suit_a_field() {
    let said = error(
        "rate_pps = 1.0\n[[stream.vary]]\ncount = 2\nip_source = { first = \"00:00:00:00:00:01\" }\n",
    );
    assert!(said.contains("ip_source: 0x1 does not fit"), "{said}");
}

#[test]
fn a_replay_is_read_beside_streams_and_refused_where_frames_must_be_known_again() {
    let replay = "[[replay]]\nid = 9\nfrom = 2\nfile = \"a.pcap\"\n";
    let text = format!("{HEAD}rate_pps = 1.0\n{replay}");
    let contents = read_all(&text, 2).unwrap();
    assert_eq!(contents.streams.len(), 1);
    assert_eq!(contents.replays, [Replay::once(9, 1, "a.pcap".into())]);
    let said = read(&text, 2).unwrap_err().to_string();
    assert!(said.starts_with("line 11, stream 9: a replay cannot be measured here"), "{said}");
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
    assert_eq!((all.passes, all.short, all.cut), (None, Short::Refuse, Cut::Send));
    for (rest, words) in [
        (
            "gap_ns = 1\nrate_pps = 1.0\n",
            "line 1, stream 9: gap_ns and rate_pps exclude each other",
        ),
        ("gap_factor = 0.0\n", "gaps cannot be 0 times as long"),
        ("gap_factor = nan\n", "gaps cannot be NaN times as long"),
        ("rate_pps = -1.0\n", "-1 is not a rate"),
        ("link_bits_per_second = 0\n", "a link of 0 bit/s carries nothing"),
        ("gap = 5\n", "line 5, column 1: unknown field `gap`"),
        ("short = \"drop\"\n", "line 5, column 9: unknown variant `drop`"),
    ] {
        let said = with(rest).unwrap_err().to_string();
        assert!(said.contains(words), "{said:?} lacks {words:?}");
    }
    let said = read_all(&text.replace("id = 9", "id = 7"), 2).unwrap_err().to_string();
    assert!(said.contains("line 11, stream 7: another stream has the number 7 too"), "{said}");
    let said = read_all(&text.replace("from = 2", "from = 3"), 2).unwrap_err().to_string();
    assert!(said.contains("there is no port 3 (there are 2)"), "{said}");
}
