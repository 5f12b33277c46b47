//! Tests of invalid programs, each with all its expected problems.
//!
//! A case is a document in `tests/checks/`. Its first line describes the fault. `NAME.expected`
//! lists every problem with code, line and column, in order. `UPDATE=1 cargo test -p progfe --test
//! checks` rewrites these files.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use progfe::diagnostic::Code;
use progfe::program::Program;
use progfe::program::document::no_files;
use progfe::xml::Source;

fn cases() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/checks");
    let files = std::fs::read_dir(folder).expect("the folder of cases exists");
    let paths = files.map(|file| file.expect("the folder can be listed").path());
    let mut cases: Vec<PathBuf> =
        paths.filter(|path| path.to_string_lossy().ends_with(".fe.xml")).collect();
    cases.sort();
    cases
}

#[test]
fn every_case_has_exactly_its_problems() {
    let cases = cases();
    assert!(cases.len() >= 30, "only {} cases", cases.len());
    let update = std::env::var_os("UPDATE").is_some();
    let mut wrong = Vec::new();
    for path in cases {
        let text = std::fs::read_to_string(&path).expect("the file can be read");
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let (program, problems) = Program::load(&Source::new(&name, &text), &no_files);
        assert_eq!(program.is_none(), problems.refuses(), "{name}");
        let expected = path.with_file_name(name.replace(".fe.xml", ".expected"));
        let found = problems.to_string();
        if update {
            std::fs::write(&expected, &found).expect("the file can be written");
        } else if std::fs::read_to_string(&expected).unwrap_or_default() != found {
            wrong.push(format!("{name}: found\n{found}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Codes that only other tests produce: those of the XML reader, and of devices, which a program
/// does not know.
const ELSEWHERE: &[Code] = &[Code::XmlSyntax, Code::XmlLimit, Code::UnknownDevice];

#[test]
fn every_problem_code_has_a_case() {
    let mut seen = BTreeSet::new();
    for path in cases() {
        let text = std::fs::read_to_string(&path).expect("the file can be read");
        let (_, problems) = Program::load(&Source::new("case", &text), &no_files);
        seen.extend(problems.sorted().iter().map(|problem| problem.code));
    }
    let missing: Vec<&Code> =
        Code::ALL.iter().filter(|code| !seen.contains(code) && !ELSEWHERE.contains(code)).collect();
    assert!(missing.is_empty(), "no case for {missing:?}");
}

#[test]
fn unknown_devices_are_reported_if_the_devices_are_known() {
    let text = "<fe xmlns=\"urn:progfe:fe:1\" name=\"x\"><ports><port id=\"1\" dev=\"eth9\"/></ports></fe>";
    let (program, _) = Program::load(&Source::new("x", text), &no_files);
    let mut problems = progfe::diagnostic::Problems::default();
    let program = program.expect("the program has no problem");
    progfe::check::ports::devices(&program, &|device| device == "eth1", &mut problems);
    assert!(problems.to_string().contains("error[unknown-device] port 1"), "{problems}");
}
