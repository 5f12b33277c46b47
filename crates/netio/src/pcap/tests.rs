//! The port with whole, damaged and absent input and output files.

use super::*;
use crate::capture::CaptureReader;

/// A temporary directory, removed with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("pcap-port-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Writes a file with frames of these sizes, a millisecond apart, truncated to 100 bytes.
fn write(path: &str, sizes: &[usize]) {
    let options = CaptureOptions {
        format: Format::of(Path::new(path)),
        snap_bytes: 100,
        ..CaptureOptions::pcapng("x")
    };
    let mut writer = CaptureWriter::new(File::create(path).unwrap(), &options).unwrap();
    for (number, &bytes) in sizes.iter().enumerate() {
        let frame = vec![number as u8 + 1; bytes];
        writer.frame(at(number), &frame, FrameNotes::default()).unwrap();
    }
    writer.finish(None).unwrap();
}

fn at(number: usize) -> Nanos {
    Nanos::from_secs(1_500_000_000) + Nanos::from_millis(number as u64)
}

fn open(spec: &str) -> PcapPort {
    PcapPort::open(&Spec::parse(spec).unwrap()).unwrap()
}

fn receive_all(port: &mut PcapPort) -> Vec<(Vec<u8>, Option<Stamp>)> {
    let mut all = Vec::new();
    let mut batch = Batch::new(3);
    while port.receive(&mut batch, Nanos::ZERO).unwrap() > 0 {
        all.extend(batch.frames().iter().map(|frame| (frame.bytes().to_vec(), frame.stamp)));
        batch.clear();
    }
    all
}

#[test]
fn frames_are_received_with_file_times_and_sent_to_the_other_file() {
    let folder = Folder::new("through");
    let sizes = [60, 64, 1000, 100, 14, 60, 61];
    for kind in ["pcap", "pcapng"] {
        let (input, output) = (folder.file(&format!("in.{kind}")), folder.file("out.pcapng"));
        write(&input, &sizes);
        let mut port = open(&format!("{input},out={output}"));
        assert!(!port.is_over());
        let all = receive_all(&mut port);
        assert!(port.is_over());
        assert_eq!(all.len(), sizes.len());
        for (number, (bytes, stamp)) in all.iter().enumerate() {
            let mut whole = vec![number as u8 + 1; sizes[number].min(100)];
            whole.resize(sizes[number], 0);
            assert_eq!(bytes, &whole, "frame {number}");
            assert_eq!(*stamp, Some(Stamp { at: at(number), clock: Clock::File }));
        }
        let mut batch = Batch::new(8);
        all.iter().for_each(|(bytes, _)| assert!(batch.push_bytes(bytes)));
        assert_eq!(port.transmit(&mut batch, Nanos::ZERO).unwrap(), sizes.len());
        let counters = port.counters();
        let bytes = sizes.iter().sum::<usize>() as u64;
        assert_eq!((counters.rx_frames, counters.rx_bytes), (7, bytes));
        assert_eq!((counters.tx_frames, counters.tx_bytes), (7, bytes));
        drop(port);
        let mut reader = CaptureReader::open(Path::new(&output)).unwrap();
        let mut written = Vec::new();
        while let Some(event) = reader.next_event().unwrap() {
            if let Event::Frame(frame) = event {
                assert_eq!(frame.direction, Some(Direction::Outbound));
                written.push(frame.bytes.to_vec());
            }
        }
        assert!(written.iter().eq(all.iter().map(|(bytes, _)| bytes)));
    }
}

#[test]
fn frames_are_delayed_as_requested() {
    let folder = Folder::new("after");
    let input = folder.file("in.pcap");
    write(&input, &[60]);
    let mut port = open(&format!("{input},after=1.5"));
    let mut batch = Batch::new(2);
    for (now, count) in [(10_000, 0), (11_499, 0), (11_500, 1)] {
        assert_eq!(port.receive(&mut batch, Nanos::from_millis(now)).unwrap(), count);
    }
}

#[test]
fn a_damaged_file_gives_its_frames_and_then_its_fault() {
    let folder = Folder::new("damaged");
    let input = folder.file("in.pcap");
    write(&input, &[60, 60]);
    let whole = std::fs::read(&input).unwrap();
    std::fs::write(&input, &whole[..whole.len() - 1]).unwrap();
    let mut port = open(&input);
    let mut batch = Batch::new(4);
    assert_eq!(port.receive(&mut batch, Nanos::ZERO).unwrap(), 1);
    for _ in 0..2 {
        let error = port.receive(&mut batch, Nanos::ZERO).unwrap_err().to_string();
        assert!(
            error.starts_with(&input) && error.contains("at byte 100: 76 bytes expected"),
            "{error}"
        );
    }
    assert!(port.is_over());
}

#[test]
fn a_port_without_input_only_sends_and_one_without_output_drops() {
    let folder = Folder::new("half");
    let (input, output) = (folder.file("in.pcap"), folder.file("out.pcap"));
    write(&input, &[60]);
    let mut only_out = open(&format!("out={output}"));
    let mut batch = Batch::new(2);
    assert!(only_out.is_over());
    assert_eq!(only_out.receive(&mut batch, Nanos::ZERO).unwrap(), 0);
    let mut only_in = open(&input);
    batch.push_bytes(&[1; 60]);
    for port in [&mut only_in, &mut only_out] {
        assert_eq!(port.transmit(&mut batch, Nanos::ZERO).unwrap(), 1);
        assert_eq!(port.counters().tx_frames, 1);
    }
    drop(only_out);
    let magic = std::fs::read(&output).unwrap();
    assert_eq!((&magic[..4], magic.len()), (&[0x4d, 0x3c, 0xb2, 0xa1][..], 24 + 16 + 60));
}

#[test]
fn invalid_specifications_are_reported() {
    let folder = Folder::new("spec");
    let input = folder.file("in.pcap");
    write(&input, &[60]);
    for (spec, word) in [
        (String::new(), "missing file"),
        (format!("{input},out={input}"), "name another"),
        (format!("{input},out={}/./in.pcap", folder.0.display()), "name another"),
        (format!("{input},out="), "unknown option"),
        (format!("{input},loop"), "unknown option"),
        (format!("{input},after=x"), "0 to 86400"),
        (format!("{input},after=-1"), "0 to 86400"),
        (format!("{input},after=NaN"), "0 to 86400"),
        ("after=1".into(), "missing file"),
    ] {
        let error = Spec::parse(&spec).expect_err(&spec);
        assert!(error.contains(word), "{spec:?} gives {error:?}, which lacks {word:?}");
    }
}
