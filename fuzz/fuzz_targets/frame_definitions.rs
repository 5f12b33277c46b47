//! Parses any bytes as frame definitions. The result is a list of errors with positions, or a set
//! that survives formatting and parsing unchanged. Parsing, rewriting and checksum correction of
//! any frame with that set stay within the frame's bounds.

#![no_main]

use libfuzzer_sys::fuzz_target;
use packet::frame::Frame;
use progfe::frames::edit::Editor;
use progfe::frames::{FieldRef, FrameSet, Part};
use progfe::xml::Source;

fuzz_target!(|bytes: &[u8]| {
    let (text, rest) =
        bytes.split_at(bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len()));
    let Ok(text) = std::str::from_utf8(text) else { return };
    let (set, problems) = FrameSet::read(&[Source::new("f.xml", text)]);
    if problems.refuses() {
        for problem in problems.sorted() {
            assert!(problem.place.line >= 1 && problem.place.column >= 1, "{problem}");
        }
        return;
    }
    let written = set.to_xml(0);
    let (again, problems) = FrameSet::read(&[Source::new("g.xml", &written)]);
    assert!(!problems.refuses(), "{problems}\n{written}");
    assert_eq!(again.to_xml(0), written);
    let located = set.locate(rest);
    for header in &located.headers {
        assert!(header.at <= header.end && header.end <= header.limit && header.limit <= rest.len());
    }
    let mut frame = Frame::from_bytes(rest);
    let mut editor = Editor::new(&set, &mut frame);
    for (id, format) in set.formats().take(8) {
        let _ = editor.push(&[id], None);
        for item in 0..format.items.len().min(8) as u16 {
            let field = FieldRef { format: id, instance: 0, part: Part::Item(item) };
            let _ = editor.add(field, 1);
        }
        let _ = editor.push(&[id], Some(0));
        let _ = editor.pop(0, 1, None);
        set.ways(FieldRef { format: id, instance: 0, part: Part::Header }, 4);
    }
    editor.finish();
});
