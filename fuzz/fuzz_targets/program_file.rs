//! Any bytes as a program: problems with places in the text, or a program that is written and read
//! again as it is. Files that it names are not there.

#![no_main]

use libfuzzer_sys::fuzz_target;
use progfe::program::Program;
use progfe::program::document::no_files;
use progfe::xml::Source;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (program, problems) = Program::load(&Source::new("f.fe.xml", text), &no_files);
    assert_eq!(program.is_none(), problems.refuses(), "{problems}");
    for problem in problems.sorted() {
        assert!(problem.place.line >= 1 && problem.place.column >= 1, "{problem}");
    }
    let Some(program) = program else { return };
    let written = program.to_xml();
    let (again, problems) = Program::load(&Source::new("g.fe.xml", &written), &no_files);
    let again = again.unwrap_or_else(|| panic!("{problems}\n{written}"));
    assert_eq!(again.to_xml(), written);
    assert_eq!(again.instances.len(), program.instances.len());
    progfe::check::resources::estimate(&program);
});
