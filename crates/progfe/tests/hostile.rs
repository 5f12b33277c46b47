//! Documents that were damaged at random: each is refused with places, or is a program that can be
//! written and read again; and definitions that were damaged walk and change any frame within bounds.

use packet::frame::Frame;
use progfe::frames::edit::Editor;
use progfe::frames::{ETHERNET, FieldRef, FrameSet, Part};
use progfe::problem::PROBLEMS_MAX;
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

/// Words that a damaged document gets in the place of others.
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

/// A text in which some words are others.
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
                // A piece of the document that is there twice, or not at all.
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn a_damaged_program_is_refused_or_is_one(pick: Index, changes in changes()) {
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
    fn damaged_definitions_are_refused_or_stay_within_frames(
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

/// Small documents that would be large: each is refused, and none takes long enough to notice.
#[test]
fn what_a_small_document_stands_for_is_bounded() {
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
    // A condition whose normal form is too large has none.
    let set = FrameSet::ethernet();
    let parts: Vec<String> = (0..30u32)
        .map(|bit| format!("(IPv4.src = 0/0x{0:x} or IPv6.src = 0/0x{0:x})", 1u32 << bit))
        .collect();
    let condition = progfe::condition::Condition::parse(&parts.join(" and "), &set, &|_| None);
    assert_eq!(condition.map(|condition| condition.normal()), Ok(None));
}
