//! Tests with an invented protocol, because the code itself knows none.

use super::*;
use crate::diagnostic::Problems;
use crate::xml::Source;
use packet::frame::Frame;

/// An invented protocol: constants, bits across octets, an optional mark, TLVs, a length field, a
/// checksum and next formats by ranges.
const MADE_UP: &str = r#"<frames start="Opt">
  <frame name="Opt" total="len">
    <f n="ver" b="4" is="9"/><f n="more" b="1"/><f n="flow" b="11"/>
    <f n="kind" b="8" set="7"/><f n="tlvs" b="8"/><f n="len" b="16"/>
    <f n="sum" b="16" checksum="inet-all"/><f n="mark" b="32" when="more"/>
    <repeat n="tlv" bytes="tlvs" max="20"><f n="t" b="8"/><f n="l" b="8" when="t"/><f n="v" bytes="l" when="t"/></repeat>
    <next on="kind" unless="flow = 0x7ff"><case v="1..3" frame="In"/><case v="4" frame="Opt"/></next>
  </frame>
  <frame name="In"><f n="id" b="64"/><f n="body" rest="true"/></frame>
</frames>"#;

fn made_up() -> FrameSet {
    let (set, problems) = FrameSet::read(&[Source::new("made.xml", MADE_UP)]);
    assert!(problems.is_empty(), "{problems}");
    set
}

/// A header with mark and two TLVs (`1: aa bb`, `0`), followed by an `In` of nine bytes.
fn frame() -> Vec<u8> {
    let mut bytes =
        vec![0x98, 0x05, 2, 5, 0, 27, 0, 0, 0xca, 0xfe, 0xba, 0xbe, 1, 2, 0xaa, 0xbb, 0];
    bytes.extend([0, 0, 0, 0, 0, 0, 1, 2, 0x55, 0x66]);
    let sum = packet::checksum::checksum(&bytes);
    bytes[6..8].copy_from_slice(&sum.to_be_bytes());
    bytes
}

#[test]
fn an_invented_protocol_is_parsed_field_by_field() {
    let set = made_up();
    let mut bytes = frame();
    bytes.extend([9; 20]);
    let located = set.locate(&bytes);
    assert_eq!(located.fault, None);
    assert_eq!(located.headers.len(), 2);
    let value = |name: &str| located.read(&bytes, set.resolve(name).unwrap());
    assert_eq!(value("Opt.flow"), Some(5));
    assert_eq!(value("Opt.mark"), Some(0xcafe_babe));
    assert_eq!(value("Opt.tlv[0].v"), Some(0xaabb));
    assert_eq!(value("Opt.tlv[1].t"), Some(0));
    assert_eq!(value("Opt.tlv[1].l"), None);
    assert_eq!(value("Opt.tlv[2].t"), None);
    assert_eq!(value("In.id"), Some(0x102));
    let body = located.bytes(&bytes, set.resolve("In.body").unwrap());
    assert_eq!(body, Some(&[0x55, 0x66][..]), "bytes after the length are padding");
    assert_eq!(set.checksum_holds(&located, 0, &bytes), Some(true));
    assert_eq!(value("Opt[1].flow"), None);
}

#[test]
fn an_invalid_header_is_not_recognized() {
    let set = made_up();
    let fault = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = frame();
        change(&mut bytes);
        let located = set.locate(&bytes);
        (located.headers.len(), located.fault.map(|(_, at, fault)| (at, fault)))
    };
    use locate::Fault;
    assert_eq!(fault(&|bytes| bytes[0] = 0x88), (0, Some((0, Fault::Constant))));
    assert_eq!(fault(&|bytes| bytes.truncate(11)), (0, Some((0, Fault::Truncated))));
    assert_eq!(fault(&|bytes| bytes[5] = 200), (0, Some((0, Fault::Length))));
    assert_eq!(fault(&|bytes| bytes[5] = 3), (0, Some((0, Fault::Length))));
    assert_eq!(fault(&|bytes| bytes[3] = 100), (0, Some((0, Fault::Truncated))));
    assert_eq!(fault(&|bytes| bytes[2] = 9), (1, None), "the next header is unspecified");
    assert_eq!(
        fault(&|bytes| bytes[13] = 9),
        (2, None),
        "repetition ends where an item does not fit"
    );
    let nested = [0x90, 0, 4, 0, 0, 0, 0, 0];
    let mut bytes: Vec<u8> = nested.repeat(locate::HEADERS_MAX + 3);
    let total = bytes.len();
    for at in (0..total).step_by(8) {
        bytes[at + 4..at + 6].copy_from_slice(&((total - at) as u16).to_be_bytes());
    }
    let located = set.locate(&bytes);
    assert_eq!(located.headers.len(), locate::HEADERS_MAX);
    assert_eq!(located.fault.map(|(_, _, fault)| fault), Some(Fault::TooMany));
}

#[test]
fn fields_headers_lengths_and_checksums_change_consistently() {
    let set = made_up();
    let mut owned = Frame::from_bytes(&frame());
    let mut editor = edit::Editor::new(&set, &mut owned);
    editor.set(set.resolve("Opt.flow").unwrap(), 77).unwrap();
    editor.push(&[set.find("Opt").unwrap()], Some(0)).unwrap();
    editor.set(set.resolve("Opt[1].flow").unwrap(), 3).unwrap();
    editor.add(set.resolve("In.id").unwrap(), u128::MAX).unwrap();
    assert_eq!(
        editor.read(set.resolve("Opt.kind").unwrap()),
        Ok(4),
        "it refers to the pushed header"
    );
    assert_eq!(
        editor.read(set.resolve("Opt[1].kind").unwrap()),
        Ok(2),
        "the pushed header has its old value"
    );
    assert_eq!(editor.read(set.resolve("Opt.len").unwrap()), Ok(35));
    assert_eq!(editor.read(set.resolve("Opt[1].len").unwrap()), Ok(18));
    let wide = editor.set(set.resolve("Opt.flow").unwrap(), 1 << 11);
    assert_eq!(wide, Err(edit::EditFault::TooWide));
    editor.finish();
    let located = set.locate(owned.bytes());
    assert_eq!(located.headers.len(), 3);
    for at in 0..2 {
        assert_eq!(set.checksum_holds(&located, at, owned.bytes()), Some(true), "header {at}");
    }
    let mut editor = edit::Editor::new(&set, &mut owned);
    editor.pop(1, 1, None).unwrap();
    editor.set(set.resolve("Opt.flow").unwrap(), 5).unwrap();
    editor.add(set.resolve("In.id").unwrap(), 1).unwrap();
    editor.finish();
    assert_eq!(owned.bytes(), frame(), "all undone");
}

#[test]
fn a_wrong_checksum_keeps_its_error() {
    let set = made_up();
    let mut bytes = frame();
    bytes[7] ^= 1;
    let mut owned = Frame::from_bytes(&bytes);
    let mut editor = edit::Editor::new(&set, &mut owned);
    editor.set(set.resolve("Opt.mark").unwrap(), 0).unwrap();
    editor.finish();
    let located = set.locate(owned.bytes());
    assert_eq!(set.checksum_holds(&located, 0, owned.bytes()), Some(false));
}

#[test]
fn written_definitions_parse_to_the_same_set() {
    for text in [MADE_UP, ETHERNET] {
        let (set, problems) = FrameSet::read(&[Source::new("a.xml", text)]);
        assert!(problems.is_empty(), "{problems}");
        let written = set.to_xml(0);
        let (again, problems) = FrameSet::read(&[Source::new("b.xml", &written)]);
        assert!(problems.is_empty(), "{problems}\n{written}");
        assert_eq!(again.to_xml(0), written);
        assert_eq!(again.formats().count(), set.formats().count());
        for ((_, a), (_, b)) in set.formats().zip(again.formats()) {
            assert_eq!(
                a.next.iter().map(|n| &n.cases).collect::<Vec<_>>(),
                b.next.iter().map(|n| &n.cases).collect::<Vec<_>>()
            );
        }
    }
}

#[test]
fn documents_of_one_set_extend_each_other() {
    let mine = r#"<frames><frame name="Mine"><f n="x" b="8"/></frame>
        <extend frame="Eth"><case v="0x88b5" frame="Mine"/></extend></frames>"#;
    let (set, problems) = FrameSet::read(&[
        Source::new("ethernet.frames.xml", ETHERNET),
        Source::new("mine.xml", mine),
    ]);
    assert!(problems.is_empty(), "{problems}");
    let tagged = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x81, 0, 0, 5, 0x88, 0xb5, 42];
    let located = set.locate(&tagged);
    assert_eq!(located.read(&tagged, set.resolve("Mine.x").unwrap()), Some(42), "after tags too");
}

fn problems_of(frames: &str) -> Problems {
    FrameSet::read(&[Source::new("f.xml", &format!("<frames>{frames}</frames>"))]).1
}

/// Every kind of fault, with its code, its column (the text is in line one) and its words.
#[test]
fn definitions_that_loop_or_read_past_the_end_are_rejected() {
    let cases = [
        (r#"<frame name="A"><f n="x" b="7"/></frame>"#, "frame-octets", 25, "7 bits"),
        (
            r#"<frame name="A"><f n="x" b="4"/><f n="y" bytes="x"/></frame>"#,
            "frame-octets",
            25,
            "4 bits",
        ),
        (
            r#"<frame name="A"><f n="x" b="32"/><f n="y" bytes="x"/></frame>"#,
            "frame-length",
            42,
            "more than the buffer",
        ),
        (
            r#"<frame name="A"><f n="x" b="8"/><f n="y" bytes="x - 300"/></frame>"#,
            "frame-length",
            41,
            "always negative",
        ),
        (
            r#"<frame name="A"><f n="x" bytes="y"/><f n="y" b="8"/></frame>"#,
            "frame-field",
            41,
            "no previous field \"y\"",
        ),
        (
            r#"<frame name="A"><f n="x" b="64"/><f n="y" bytes="x"/></frame>"#,
            "frame-field",
            58,
            "longer than 32",
        ),
        (r#"<frame name="A"><f n="x" b="129"/></frame>"#, "frame-field", 37, "between 1 and 128"),
        (
            r#"<frame name="A"><f n="x" b="4" is="16"/><f n="y" b="4"/></frame>"#,
            "frame-field",
            25,
            "does not fit",
        ),
        (
            r#"<frame name="A"><f n="x" b="8"/><f n="x" b="8"/></frame>"#,
            "frame-name",
            41,
            "duplicate name",
        ),
        (
            r#"<frame name="A"><f n="x" b="8"/></frame><frame name="A"><f n="x" b="8"/></frame>"#,
            "frame-name",
            49,
            "already defined at",
        ),
        (r#"<frame name="and"><f n="x" b="8"/></frame>"#, "frame-name", 9, "invalid name"),
        (
            r#"<frame name="A"><f n="x" b="8"/><next on="x"><case v="1" frame="B"/></next></frame>"#,
            "frame-unknown",
            54,
            "\"B\"",
        ),
        (r#"<frame name="A"><f n="x" b="8"/><next on="z"/></frame>"#, "frame-unknown", 51, "\"z\""),
        (
            r#"<frame name="A"><f n="x" b="8"/><next on="x"><case v="1..3" frame="A"/><case v="2" frame="B"/></next></frame><frame name="B"><f n="x" b="8"/></frame>"#,
            "frame-next",
            41,
            "selects both",
        ),
        (
            r#"<frame name="A"><f n="x" b="8"/><next on="x"><case v="256" frame="A"/></next></frame>"#,
            "frame-next",
            41,
            "does not fit",
        ),
        (
            r#"<frame name="A"><f n="x" b="8" when="0"/><next frame="A"/></frame>"#,
            "frame-loop",
            9,
            "without consuming a byte",
        ),
        (
            r#"<frame name="A"><f n="x" b="8"/><f n="y" rest="true"/><next frame="A"/></frame>"#,
            "frame-field",
            41,
            "no field can follow",
        ),
        (
            r#"<frame name="A"><f n="x" b="8"/><repeat n="r" count="x"><f n="y" b="8" when="x"/></repeat></frame>"#,
            "frame-loop",
            41,
            "never end",
        ),
        (
            r#"<frame name="A"><f n="x" b="8"/><repeat n="r"><f n="y" b="8"/></repeat></frame>"#,
            "frame-length",
            41,
            "number of repeats",
        ),
        (
            r#"<frame name="A"><f n="x" b="16"/><repeat n="r" count="x"><f n="l" b="8"/><f n="y" bytes="l"/></repeat></frame>"#,
            "frame-length",
            42,
            "more than the buffer",
        ),
        (
            r#"<frame name="A"><f n="x" b="8"/><f n="c" b="16" checksum="inet"/></frame>"#,
            "frame-field",
            41,
            "even offset",
        ),
        (
            r#"<frame name="A"><f n="x" b="8" checksum="md5"/></frame>"#,
            "xml-attribute",
            50,
            "\"md5\"",
        ),
        (
            r#"<frame name="A"><f n="x" b="8"/><next on="x" like="A"/></frame>"#,
            "frame-next",
            60,
            "defines no cases",
        ),
        (r#"<extend frame="A"><case v="1" frame="A"/></extend>"#, "frame-unknown", 24, "to extend"),
        (
            r#"<frame name="A"><f n="x" b="8" colour="red"/></frame>"#,
            "xml-attribute",
            40,
            "\"colour\"",
        ),
        (r#"<frame name="A"/>"#, "frame-field", 9, "without fields"),
        (r#"<box/>"#, "xml-element", 9, "<box>"),
    ];
    for (frames, code, column, what) in cases {
        let problems = problems_of(frames);
        let all = problems.sorted();
        let found = all.iter().any(|problem| {
            problem.code.name() == code
                && problem.what.contains(what)
                && problem.place.column == column
        });
        assert!(
            found && problems.refuses(),
            "{frames}\nwanted {code} at {column}, {what}; found\n{problems}"
        );
    }
}

#[test]
fn all_problems_are_reported_together() {
    let problems = problems_of(
        r#"<frame name="A"><f n="x" b="7"/><next on="x"><case v="1" frame="B"/></next></frame>
           <frame name="C"><f n="x" b="32"/><f n="y" bytes="x"/></frame>"#,
    );
    assert_eq!(problems.sorted().len(), 3, "{problems}");
}

#[test]
fn fixed_fields_are_known_without_a_frame() {
    let set = FrameSet::ethernet();
    let ip = set.format(set.find("IPv4").unwrap());
    assert_eq!(ip.fixed_offset(ip.item("dst").unwrap()), Some(128));
    assert_eq!(ip.fixed_bytes(), None, "options");
    let udp = set.format(set.find("UDP").unwrap());
    assert_eq!(udp.fixed_bytes(), Some(8));
}
