//! Tests with randomly corrupted documents.
//!
//! - Each document is rejected with places, or gives a program that can be written and read again.
//! - Corrupted definitions parse and modify any frame within bounds.

use dataplane::forwarder::{Forwarder, Outputs};
use packet::frame::{Batch, Frame};
use packet::time::Nanos;
use progfe::agent::oam::pdu::Pdu;
use progfe::diagnostic::PROBLEMS_MAX;
use progfe::dispatcher::Dispatcher;
use progfe::element::Element;
use progfe::executor::Enforcer;
use progfe::frames::edit::Editor;
use progfe::frames::{ETHERNET, FieldRef, FrameSet, Part};
use progfe::program::Program;
use progfe::program::document::no_files;
use progfe::xml::Source;
use proptest::prelude::*;
use proptest::sample::Index;

const PROGRAMS: [&str; 7] = [
    include_str!("../../../examples/progfe/bridge.fe.xml"),
    include_str!("../../../examples/progfe/router.fe.xml"),
    include_str!("../../../examples/progfe/router-agents.fe.xml"),
    include_str!("../../../examples/progfe/vlan.fe.xml"),
    include_str!("../../../examples/progfe/oam.fe.xml"),
    include_str!("../../../examples/progfe/own-agent.fe.xml"),
    include_str!("../../../examples/progfe/dpi.fe.xml"),
];

/// Words that replace others in a corrupted document.
const WORDS: &[&str] = &[
    "",
    "0",
    "1",
    "4294967295",
    "-1",
    "#*",
    "[*]",
    "[0]",
    "..",
    "1..4096",
    "*",
    "Eth",
    "Vlan[31]",
    "IPv4.len",
    "rest",
    "any",
    "not",
    "and",
    "or",
    "in",
    "{",
    "}",
    "/",
    "meta:",
    "len * 4",
    "len - 400",
    "\"",
    "<",
    ">",
    "&amp;",
    "instances",
    "index",
    "when",
    "until",
    "count",
    "bytes",
    "total",
    "frame",
    "<next frame=\"Eth\"/>",
    "é",
];

/// Replaces some words of a text.
fn damaged(text: &str, changes: &[(Index, Index, Index)]) -> String {
    let mut text = text.to_owned();
    for (place, word, kind) in changes {
        let edge = |c: char| matches!(c, '"' | '>' | '<' | ' ' | '.' | '=' | '#');
        let edges: Vec<usize> = text.match_indices(edge).map(|(at, _)| at + 1).collect();
        if edges.len() < 2 {
            break;
        }
        let first = place.index(edges.len() - 1);
        let (start, end) = (edges[first], edges[first + 1] - 1);
        let other = &edges[kind.index(edges.len() - 1)..];
        let word = match kind.index(3) {
            0 => WORDS[word.index(WORDS.len())].to_owned(),
            1 => text[other[0]..other.get(1).map_or(other[0], |end| *end - 1)].to_owned(),
            _ => {
                // A part of the document is duplicated or deleted.
                let far = edges[word.index(edges.len())].min(start + 400).max(end);
                let far = (end..=far).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(end);
                if kind.index(2) == 0 {
                    text.replace_range(start..far, "");
                    continue;
                }
                text[start..far].repeat(2)
            }
        };
        text.replace_range(start..end, &word);
    }
    text
}

fn changes() -> impl Strategy<Value = Vec<(Index, Index, Index)>> {
    proptest::collection::vec(any::<(Index, Index, Index)>(), 1..4)
}

/// OAM frames of any kind and level, to an end point or to the multicast address of its level, with
/// some bytes changed.
fn oam() -> impl Strategy<Value = (u64, u32, Vec<u8>)> {
    let to = prop_oneof![
        Just([2, 0, 0, 0, 1, 1]),
        (0u8..16).prop_map(|last| [1, 0x80, 0xc2, 0, 0, 0x30 | last]),
    ];
    let op = prop_oneof![prop::sample::select(vec![1u8, 2, 3, 4, 5, 46, 47]), any::<u8>()];
    let tag = prop_oneof![3 => Just(vec![]), 1 => Just(vec![0x81, 0, 0, 100])];
    let body = proptest::collection::vec(prop_oneof![Just(0u8), any::<u8>()], 0..120);
    let head = (0u8..8, op, any::<u8>(), prop_oneof![Just(4u8), Just(70), any::<u8>()]);
    (0u64..4000, 1u32..3, to, tag, head, body).prop_map(
        |(passes_ms, port, to, tag, (level, op, flags, first), body)| {
            let common = [0x89, 0x02, level << 5, op, flags, first];
            let from = [2, 0, 0, 0, 9, op & 3];
            (passes_ms, port, [&to[..], &from, &tag, &common, &body].concat())
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn an_end_point_survives_any_oam_frames_and_sends_valid_ones(
        frames in proptest::collection::vec(oam(), 1..40),
    ) {
        let (program, _) = Program::load(&Source::new("oam.fe.xml", PROGRAMS[4]), &no_files);
        let program = program.expect("the program is an example");
        let mut element: Element = Element::start(program, 7).expect("the program can run");
        let (mut agents, mut out) = (Dispatcher::new(7), Outputs::new(&[1, 2]));
        agents.set_hardware(vec![(1, [2, 0, 0, 0, 1, 1]), (2, [2, 0, 0, 0, 1, 2])]);
        let mut now = Nanos::from_secs(10);
        for (passes_ms, port, bytes) in frames {
            now = now.saturating_add(Nanos::from_millis(passes_ms));
            let mut batch = Batch::new(1);
            prop_assert!(batch.push_bytes(&bytes));
            element.forward(port, &mut batch, now, &mut out);
            agents.serve(&mut element, now, &mut out);
            for (_, queue) in out.queues_mut() {
                for frame in queue.frames().iter().filter(|frame| frame.bytes() != bytes) {
                    let read = Pdu::read(frame.bytes());
                    prop_assert!(read.is_some(), "{:02x?} is reported", frame.bytes());
                }
                queue.clear();
            }
            // The expected peers bound the learned state.
            let known = format!("{:?}", agents.facts(now));
            prop_assert!(known.len() < 10_000, "{}", known);
            while agents.next_report().is_some() {}
        }
        prop_assert!(element.account().is_even(element.enforcer().held()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn a_damaged_program_is_rejected_or_valid(pick: Index, changes in changes()) {
        let text = damaged(PROGRAMS[pick.index(PROGRAMS.len())], &changes);
        let (program, problems) = Program::load(&Source::new("d.fe.xml", &text), &no_files);
        prop_assert_eq!(program.is_none(), problems.refuses());
        for problem in problems.sorted() {
            prop_assert!(problem.place.line >= 1 && problem.place.column >= 1, "{}", problem);
        }
        if let Some(program) = program {
            let written = program.to_xml();
            let (again, problems) = Program::load(&Source::new("w.fe.xml", &written), &no_files);
            prop_assert!(again.is_some(), "{}\n{}", problems, written);
            prop_assert_eq!(again.map(|again| again.to_xml()), Some(written));
        }
    }

    #[test]
    fn damaged_definitions_are_rejected_or_stay_within_frames(
        changes in changes(), bytes in proptest::collection::vec(any::<u8>(), 0..120), start: Index,
    ) {
        let text = damaged(ETHERNET, &changes);
        let (mut set, problems) = FrameSet::read(&[Source::new("d.xml", &text)]);
        if problems.refuses() {
            return Ok(());
        }
        let formats: Vec<_> = set.formats().map(|(id, _)| id).collect();
        set.start = Some(formats[start.index(formats.len())]);
        let written = set.to_xml(0);
        let (again, problems) = FrameSet::read(&[Source::new("w.xml", &written)]);
        prop_assert!(!problems.refuses(), "{}\n{}", problems, written);
        prop_assert_eq!(again.to_xml(0), written);
        let located = set.locate(&bytes);
        for header in &located.headers {
            prop_assert!(header.at <= header.end && header.end <= header.limit);
            prop_assert!(header.limit <= bytes.len());
        }
        let mut frame = Frame::from_bytes(&bytes);
        let mut editor = Editor::new(&set, &mut frame);
        for id in formats {
            let header = FieldRef { format: id, instance: 0, part: Part::Header };
            let _ = editor.push(&[id], None);
            for item in 0..set.format(id).items.len() as u16 {
                let _ = editor.add(FieldRef { part: Part::Item(item), ..header }, u128::MAX);
            }
            let _ = editor.push(&[id], Some(0));
            let _ = editor.pop(0, 1, None);
            let ways = set.ways(header, 6);
            for way in &ways.list {
                if way.applies(&set, &bytes) {
                    prop_assert_eq!(located.span(header), Some(way.span));
                }
            }
        }
        editor.finish();
    }
}

/// Small documents with a large expansion: each is rejected quickly.
#[test]
fn the_expansion_of_a_small_document_is_limited() {
    let fe = |inside: &str| {
        let uses = "<use library=\"ProGFE\"/><use library=\"BaseLFBLibrary\"/>";
        format!("<fe xmlns=\"urn:progfe:fe:1\" name=\"x\">{uses}{inside}</fe>")
    };
    let row = "<row table=\"Members\"><c n=\"MetadataValue\">1</c></row>";
    let rows = format!(
        "<instances><lfb id=\"r\" class=\"Replicate\" instances=\"1..4096\">{}</lfb></instances>",
        row.repeat(2000)
    );
    let all = "<link from=\"c#*.PktsOut\" to=\"c#*.PktsIn\"/>";
    let links = format!(
        "<instances><lfb id=\"c\" class=\"Count\" instances=\"1..4096\"/></instances><links>{}</links>",
        all.repeat(17)
    );
    let ring = "<link from=\"a.PktsOut\" to=\"a.PktsIn\"/>".repeat(2 * PROBLEMS_MAX);
    let ring = format!(
        "<instances><lfb id=\"i\" class=\"Inject\"/><lfb id=\"a\" class=\"Count\"/></instances><links>{ring}</links>"
    );
    for (text, code) in [(rows, "xml-limit"), (links, "xml-limit"), (ring, "link-second")] {
        let (program, problems) = Program::load(&Source::new("b.fe.xml", &fe(&text)), &no_files);
        assert!(program.is_none());
        assert!(problems.to_string().contains(&format!("[{code}]")), "{code}");
        assert!(problems.sorted().len() <= PROBLEMS_MAX);
    }
    // A condition with a too large normal form has none.
    let set = FrameSet::ethernet();
    let parts: Vec<String> = (0..30u32)
        .map(|bit| format!("(IPv4.src = 0/0x{0:x} or IPv6.src = 0/0x{0:x})", 1u32 << bit))
        .collect();
    let condition = progfe::condition::Condition::parse(&parts.join(" and "), &set, &|_| None);
    assert_eq!(condition.map(|condition| condition.normal()), Ok(None));
}
