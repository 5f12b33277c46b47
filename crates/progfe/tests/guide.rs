//! Tests of the guide: its programs have no problems, and its example protocol is parsed as
//! described.

use packet::frame::Frame;
use progfe::check::edit::Operation;
use progfe::frames::edit::Editor;
use progfe::program::Program;
use progfe::program::document::no_files;
use progfe::xml::Source;

const GUIDE: &str = include_str!("../../../docs/progfe.md");

fn programs() -> Vec<Program> {
    let blocks = GUIDE.split("```xml\n").skip(1);
    let texts = blocks.map(|block| block.split("```").next().unwrap_or_default());
    let load = |text: &str| {
        let (program, problems) = Program::load(&Source::new("docs/progfe.md", text), &no_files);
        assert!(problems.is_empty(), "{problems}");
        program.expect("the program has no problem")
    };
    texts.map(load).collect()
}

#[test]
fn the_protocol_of_the_guide_is_parsed_counted_and_changed() {
    let programs = programs();
    let program = programs.first().expect("the guide has a program");
    let mut bytes = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5];
    let mut tally = vec![0x18, 9, 0, 28, 0, 0, 0, 7, 0, 0, 2, 0, 1, 2, 3, 4, 5, 6, 7, 8];
    tally.extend([1, 0, 0, 10, 2, 0, 1, 0]);
    let sum = packet::checksum::checksum(&tally);
    tally[8..10].copy_from_slice(&sum.to_be_bytes());
    bytes.extend(&tally);
    let set = &program.frames;
    let located = set.locate(&bytes);
    let read = |name: &str| located.read(&bytes, set.resolve(name).expect("the field is defined"));
    assert_eq!(read("Tally.sensor"), Some(7));
    assert_eq!(read("Tally.key"), Some(0x0102_0304_0506_0708));
    assert_eq!(read("Tally.reading[1].value"), Some(256));
    let hop = program.find("hop").expect("the block exists");
    let rows = program.component(hop, "Ops").expect("the block has operations");
    let row = rows.at(&[0]).expect("one");
    let Ok(Operation::Add(field, value)) = Operation::read(row, program) else {
        panic!("the operation adds to a field");
    };
    let mut frame = Frame::from_bytes(&bytes);
    let mut editor = Editor::new(set, &mut frame);
    editor.add(field, value).expect("the field is present");
    editor.finish();
    let located = set.locate(frame.bytes());
    assert_eq!(located.read(frame.bytes(), field), Some(8));
    assert_eq!(set.checksum_holds(&located, 1, frame.bytes()), Some(true));
}
