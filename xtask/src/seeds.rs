//! Seeds for fuzzing: messages of other implementations from the samples of the codec's tests, in
//! the input format of each fuzz target.
//!
//! Invariant: nothing is stored twice. A corpus is a build output (`fuzz/corpus`), and the fuzzer's
//! own finds stay in it.

use std::fs;
use std::io;
use std::path::Path;

/// Number of samples from one file.
const SAMPLES_A_FILE: usize = 4;

/// Maximum seed size: longer seeds slow the fuzzer down more than they find.
const SEED_BYTES_MAX: usize = 2048;

/// Messages that controllers send. Switches send all others.
const FROM_CONTROLLERS: [&str; 12] = [
    "experimenter",
    "flow_mod",
    "group_mod",
    "meter_mod",
    "packet_out",
    "port_mod",
    "set_async",
    "set_config",
    "table_mod",
    "bundle_control",
    "bundle_add",
    "echo_reply",
];

/// An IPv4 frame for the first port in the input format of `switch_control`.
const FRAME: [u8; 64] = frame();

const fn frame() -> [u8; 64] {
    let head = [
        0xff, 0, 0, 64, 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0, 0, 46, 0, 0, 0, 0, 64,
        17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 3, 0xe8, 7, 0xd0, 0, 26, 0, 0,
    ];
    let (mut frame, mut at) = ([0; 64], 0);
    while at < head.len() {
        frame[at] = head[at];
        at += 1;
    }
    frame
}

/// Sample folders, one per version.
const VERSIONS: [&str; 6] = ["1.0", "1.1", "1.2", "1.3", "1.4", "1.5"];

/// Folder of the samples.
const SAMPLES: &str = "crates/openflow/tests/bytes";

/// Filter entries with every keyword.
const FILTER_FILE: &[u8] =
    b"drop,src=10.0.0.0/8,dst=10.1.2.3,proto=udp,sport=7,dport=0x1000/0xf000\n\
    capture,src=fe80::/10,proto=58 # a remark\ndst=192.0.2.7/255.0.0.255\nany\n";

/// Bytes of [`FRAME`] before the frame itself.
const FRAME_PREFIX_BYTES: usize = 4;

/// Writes the seeds of every target that starts from messages, and a frame for `frame_parse`.
pub fn write(root: &Path) -> io::Result<()> {
    let corpus = root.join("fuzz/corpus");
    fs::create_dir_all(corpus.join("frame_parse"))?;
    fs::write(corpus.join("frame_parse/udp"), &FRAME[FRAME_PREFIX_BYTES..])?;
    fs::create_dir_all(corpus.join("capture_file"))?;
    for (name, file) in captures() {
        fs::write(corpus.join("capture_file").join(name), file)?;
    }
    fs::create_dir_all(corpus.join("stream_file"))?;
    for (number, text) in stream_files(root)?.iter().enumerate() {
        fs::write(corpus.join(format!("stream_file/guide-{number}")), text)?;
    }
    fs::create_dir_all(corpus.join("frame_definitions"))?;
    let definitions = fs::read(root.join("crates/progfe/libraries/ethernet.frames.xml"))?;
    fs::write(
        corpus.join("frame_definitions/ethernet"),
        [&definitions, &[0][..], &FRAME[FRAME_PREFIX_BYTES..]].concat(),
    )?;
    fs::create_dir_all(corpus.join("program_file"))?;
    for program in ["bridge", "router", "router-agents", "vlan", "oam", "own-agent", "dpi"] {
        let text = fs::read(root.join(format!("examples/progfe/{program}.fe.xml")))?;
        fs::write(corpus.join("program_file").join(program), text)?;
    }
    fs::create_dir_all(corpus.join("forces_library"))?;
    for library in ["core", "base-types", "base"] {
        let text = fs::read(root.join(format!("crates/forces/libraries/{library}.lfb.xml")))?;
        fs::write(corpus.join("forces_library").join(library), text)?;
    }
    for folder in ["forces_decode", "forces_element", "forces_session"] {
        fs::create_dir_all(corpus.join(folder))?;
    }
    for (number, message) in forces_messages().iter().enumerate() {
        fs::write(corpus.join(format!("forces_decode/{number}")), message)?;
        let length = (message.len() as u16).to_be_bytes();
        let timed = [&[1][..], &length, message].concat();
        fs::write(corpus.join(format!("forces_element/{number}")), &timed)?;
        fs::write(corpus.join(format!("forces_session/{number}")), timed)?;
    }
    for (target, name, seed) in services() {
        fs::create_dir_all(corpus.join(target))?;
        fs::write(corpus.join(target).join(name), seed)?;
    }
    fs::create_dir_all(corpus.join("filter_text"))?;
    let frame = &FRAME[FRAME_PREFIX_BYTES..];
    fs::write(corpus.join("filter_text/all"), [FILTER_FILE, &[0], frame].concat())?;
    for (place, version) in VERSIONS.iter().enumerate() {
        let folder = root.join(SAMPLES).join(version);
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let samples = samples(&fs::read_to_string(&path)?);
            for (number, message) in samples.iter().enumerate() {
                let name = format!("{version}-{stem}-{number}");
                for (target, bytes) in seeds(place as u8, &stem, message) {
                    let folder = corpus.join(target);
                    fs::create_dir_all(&folder)?;
                    fs::write(folder.join(&name), bytes)?;
                }
            }
        }
    }
    Ok(())
}

/// Inputs for the agents of an element, in the input format of each target: OAM of each kind (ITU-T
/// Y.1731 clause 9), a program in two chunks (docs/progfe.md), and HTTP requests (RFC 9112).
fn services() -> Vec<(&'static str, String, Vec<u8>)> {
    let framed = |body: &[u8]| [&[1, 2 | 5 << 4, body.len() as u8], body].concat();
    let mut all = Vec::new();
    for (op, first, octets) in
        [(1, 70, 75), (2, 4, 20), (3, 4, 20), (4, 6, 20), (5, 17, 30), (46, 32, 37), (47, 32, 37)]
    {
        // Level 5, version 0, the opcode, no flags, the first TLV; then zeros.
        let mut body = vec![5 << 5, op, 0, first];
        body.resize(octets, 0);
        all.push(("oam_agent", format!("op-{op}"), framed(&body).repeat(2)));
    }
    let chunk = |index: u8| {
        let body = [1, 1, 0, 0, 0, 7, 0, index, 0, 2, 0, 4, b'<', b'f', b'e', b'>'];
        [&[1, 1, body.len() as u8][..], &body].concat()
    };
    let ask = [1, 1, 8, 1, 3, 0, 0, 0, 7, 0, 0];
    all.push(("ethernet_chunks", "two".into(), [chunk(1), chunk(0), ask.to_vec()].concat()));
    let requests = [
        "POST /program?name=a%20b HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\n<fe>",
        "GET /components/nh/IPv4NextHopTable%5B2%5D/MTU HTTP/1.1\r\nHost: [::1]:80\r\nAuthorization: Bearer secret\r\n\r\n",
        "POST /check HTTP/1.0\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\nx",
    ];
    for (number, text) in requests.iter().enumerate() {
        let pieces =
            text.as_bytes().chunks(40).flat_map(|piece| [&[piece.len() as u8][..], piece].concat());
        let seed = std::iter::once(number as u8).chain(pieces).collect();
        all.push(("http_request", number.to_string(), seed));
    }
    // The target repeats the last piece 2^15 times.
    let request = b"GET /about HTTP/1.1\nHost: [::1]\n\n";
    let seed = [&[0xf0, request.len() as u8][..], request].concat();
    all.push(("http_request", "pipelined".into(), seed));
    all
}

/// Messages of a ForCES control element (RFC 5810): message type, upper half of the flags, and the
/// body in hexadecimal.
const FORCES: [(u8, u16, &str); 8] = [
    // GET of FEPO's heartbeat interval and of its backups.
    (
        4,
        0,
        "10000028 00000002 00000001 0007001c 0110000c 00000001 00000007 0110000c \
         00000001 00000009",
    ),
    // GET of a row by its key.
    (
        4,
        0,
        "1000002c 00000010 00000001 00070020 0110001c 00010001 00000002 01110010 \
         00000001 01120008 00000005",
    ),
    // GET of an event's properties.
    (4, 0, "10000020 00000003 00000001 00080014 01100010 00000002 0000003c 00000002"),
    // SET of a row.
    (
        3,
        0xc840,
        "1000002c 00000010 00000001 00010020 0110001c 00000002 00000002 00000004 \
         0112000c 00000005 00000006",
    ),
    // SET of a part of a row.
    (
        3,
        0xc8c0,
        "10000030 00000010 00000001 00010024 01100020 00000002 00000002 00000004 \
         01130010 00000001 0000000c 00000007",
    ),
    // SET of a policy.
    (
        3,
        0xc840,
        "10000024 00000002 00000001 00010018 01100014 00000001 00000006 01120005 \
         01000000",
    ),
    // DEL of some rows.
    (
        3,
        0xc840,
        "10000028 00000010 00000001 0005001c 01100018 00020001 00000002 0117000c \
         00000000 00000009",
    ),
    // COMMIT of a transaction.
    (3, 0xc870, "10000010 00000001 00000001 000c0004"),
];

/// The ForCES messages with headers.
fn forces_messages() -> Vec<Vec<u8>> {
    let message = |(kind, flags, body): &(u8, u16, &str)| {
        let digits: String = body.split_whitespace().collect();
        let octet = |at| u8::from_str_radix(&digits[at..at + 2], 16).ok();
        let body: Vec<u8> = (0..digits.len() / 2).filter_map(|at| octet(2 * at)).collect();
        let words = ((24 + body.len()) / 4) as u16;
        let mut message = vec![0x10, *kind];
        message.extend(words.to_be_bytes());
        message.extend([0x40, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 7]);
        message.extend(flags.to_be_bytes());
        message.extend([0, 0]);
        message.extend(body);
        message
    };
    FORCES.iter().map(message).collect()
}

/// The stream files of the user guide, which use all keys.
fn stream_files(root: &Path) -> io::Result<Vec<String>> {
    let guide = fs::read_to_string(root.join("docs/guide/stream-files.md"))?;
    let behind = guide.split("```toml").skip(1).filter_map(|rest| Some(rest.split_once('\n')?.1));
    let blocks = behind.filter_map(|rest| rest.split("```").next());
    let is_one = |text: &&str| text.contains("[[stream]]") || text.contains("[[replay]]");
    Ok(blocks.filter(is_one).map(Into::into).collect())
}

/// Capture files of one frame in both formats. The first byte gives the number of bytes per read.
fn captures() -> [(&'static str, Vec<u8>); 2] {
    let frame = &FRAME[FRAME_PREFIX_BYTES..];
    let bytes = frame.len() as u32;
    let words =
        |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let pcap_header = words(&[0xa1b2_3c4d, 0x0004_0002, 0, 0, 262_144, 1]);
    let record = words(&[1_700_000_000, 999_999_999, bytes, 1_500]);
    let section = words(&[0x0a0d_0d0a, 28, 0x1a2b_3c4d, 1, u32::MAX, u32::MAX, 28]);
    // With nanoseconds (option 9, a byte), and an offset of five seconds (option 14, eight bytes).
    let options = [0x0001_0009, 9, 0x0008_000e, 5, 0, 0];
    let interface = words(&[&[1, 48, 1, 0][..], &options, &[0, 48]].concat());
    let length = 32 + bytes + 24;
    let packet = words(&[6, length, 0, 0, 7, bytes, bytes]);
    // A comment of two bytes, a drop count, the end.
    let notes = words(&[0x0002_0001, 0x6b6f, 0x0008_0004, 3, 0, 0, length]);
    let other = words(&[0xbad, 16, 32_473, 16]);
    [
        ("pcap", [&[6][..], &pcap_header, &record, frame].concat()),
        ("pcapng", [&[9][..], &section, &interface, &packet, frame, &notes, &other].concat()),
    ]
}

/// The first messages of a sample file.
fn samples(text: &str) -> Vec<Vec<u8>> {
    let messages = text.split("---\n").map(|sample| {
        let lines = sample.lines().skip_while(|line| *line != "hex:").skip(1);
        let digits: String = lines
            .take_while(|line| line.starts_with(' '))
            .flat_map(str::split_whitespace)
            .collect();
        let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).ok();
        (0..digits.len() / 2).filter_map(|at| byte(2 * at)).collect::<Vec<u8>>()
    });
    let fits = |message: &Vec<u8>| (8..=SEED_BYTES_MAX).contains(&message.len());
    messages.filter(fits).take(SAMPLES_A_FILE).collect()
}

/// One message in the input format of each target. Versions count from 0, as in the targets.
fn seeds(version: u8, kind: &str, message: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let asked = kind.contains("request") || FROM_CONTROLLERS.contains(&kind) || kind == "refused";
    // A switch receives a controller's messages, and vice versa.
    let mut pieces = vec![version << 2 | u8::from(!asked)];
    for piece in message.chunks(255) {
        pieces.push(piece.len() as u8);
        pieces.extend(piece);
    }
    let mut all = vec![("openflow_decode", message.to_vec()), ("openflow_session", pieces)];
    if asked {
        let control = [&[version << 1][..], message, &FRAME, message].concat();
        all.push(("switch_control", control));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_cut_out_of_their_files() {
        let text = "origin: a\nhex:\n  01000008 00000001\n  \ntext:\n  hello\n---\norigin: b\n\
                    hex:\n  0112\n---\norigin: c\nhex:\n  01120008 00000002\nanswer:\n  ff\n";
        let wanted = [vec![1, 0, 0, 8, 0, 0, 0, 1], vec![1, 18, 0, 8, 0, 0, 0, 2]];
        assert_eq!(samples(text), wanted);
    }

    #[test]
    fn every_kind_that_a_controller_sends_has_samples() {
        let samples = crate::root().join(SAMPLES);
        for kind in FROM_CONTROLLERS {
            let file = format!("{kind}.txt");
            let has = |version: &&str| samples.join(version).join(&file).exists();
            assert!(VERSIONS.iter().any(has), "{kind}");
        }
    }

    #[test]
    fn forces_messages_are_as_long_as_they_say() {
        for message in forces_messages() {
            let half = |at| usize::from(u16::from_be_bytes([message[at], message[at + 1]]));
            assert_eq!((half(2) * 4, half(26)), (message.len(), message.len() - 24));
        }
    }

    #[test]
    fn every_target_reads_its_own_form() {
        let hello = [4, 0, 0, 8, 0, 0, 0, 1];
        let seeds = seeds(3, "flow_mod", &hello);
        assert_eq!(seeds[0], ("openflow_decode", hello.to_vec()));
        assert_eq!(seeds[1].1, [&[12, 8][..], &hello].concat());
        assert_eq!(seeds[2].1, [&[6][..], &hello, &FRAME, &hello].concat());
        assert_eq!(FRAME.len(), usize::from(FRAME[3]));
    }
}
