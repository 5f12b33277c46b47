//! Tests of the built-in library and the examples, and of writing and rereading programs.

use super::*;
use crate::diagnostic::Problems;
use crate::program::document::{no_files, shipped};
use crate::xml::Source;

const EXAMPLES: [(&str, &str); 5] = [
    ("bridge", include_str!("../../../../examples/progfe/bridge.fe.xml")),
    ("router", include_str!("../../../../examples/progfe/router.fe.xml")),
    ("vlan", include_str!("../../../../examples/progfe/vlan.fe.xml")),
    ("oam", include_str!("../../../../examples/progfe/oam.fe.xml")),
    ("dpi", include_str!("../../../../examples/progfe/dpi.fe.xml")),
];

fn load(name: &str, text: &str) -> (Option<Program>, Problems) {
    Program::load(&Source::new(name, text), &no_files)
}

#[test]
fn the_shipped_libraries_are_consistent_and_complete() {
    if let Err(faults) = forces::library::read(LIBRARY) {
        panic!("{}", faults.iter().map(|fault| format!("{fault}\n")).collect::<String>());
    }
    let catalog = match Catalog::new(shipped()) {
        Ok(catalog) => catalog,
        Err(faults) => panic!("{}", faults.iter().map(|f| format!("{f}\n")).collect::<String>()),
    };
    let names =
        "Match Search LearnSearch Edit Replicate State Scan Divert Inject Count Meter Mirror Hash";
    for (name, id) in names.split(' ').zip(class_id::MATCH..) {
        let class = catalog.class(&format!("{PREFIX}{name}"));
        assert_eq!(class.map(|class| class.id), Some(id), "{name}");
    }
}

#[test]
fn the_examples_have_no_problems() {
    for (name, text) in EXAMPLES {
        let (program, problems) = load(name, text);
        assert!(problems.is_empty(), "{problems}");
        assert!(program.is_some(), "{name}");
    }
}

#[test]
fn written_programs_parse_to_the_same_program() {
    for (name, text) in EXAMPLES {
        let (program, _) = load(name, text);
        let program = program.unwrap();
        let written = program.to_xml();
        let (again, problems) = load("written.xml", &written);
        assert!(problems.is_empty(), "{name}\n{problems}\n{written}");
        let again = again.unwrap();
        assert_eq!(again.to_xml(), written, "{name}");
        assert!(again.frames == program.frames, "{name}");
        assert_eq!(again.instances.len(), program.instances.len());
        for (a, b) in program.instances.iter().zip(&again.instances) {
            assert_eq!((&a.name, a.class, a.number), (&b.name, b.class, b.number), "{name}");
            assert_eq!(a.components, b.components, "{name}: {}", a.name);
        }
        let ends = |program: &Program| -> Vec<(End, End)> {
            program.links.iter().map(|link| (link.from, link.to)).collect()
        };
        assert_eq!(ends(&program), ends(&again), "{name}");
    }
}

#[test]
fn short_forms_are_expanded() {
    let (program, _) = load("router", EXAMPLES[1].1);
    let program = program.unwrap();
    let second = program.find("rx#2").unwrap();
    let addresses = program.component(second, "LocalMACAddresses").unwrap();
    assert_eq!(addresses.at(&[0]).and_then(Value::octets), Some([2u8, 0, 0, 0, 1, 2]));
    let out = program.find("out").unwrap();
    assert_eq!(program.component(out, "MetadataID"), Some(Value::Unsigned(13)));
    let nh = program.find("nh").unwrap();
    let hops = program.component(nh, "IPv4NextHopTable").unwrap();
    assert_eq!(hops.rows().map(|rows| rows.keys().copied().collect()), Some(vec![6, 7]));
    let names: Vec<String> =
        program.links.iter().map(|link| program.output_name(link.from)).collect();
    assert!(names.contains(&"out.PktsOut[1]".to_owned()), "{names:?}");
    let tags = load("vlan", EXAMPLES[2].1).0.unwrap();
    let edits: Vec<u32> = ["tagv", "tagd", "untag"]
        .map(|name| tags.instances[tags.find(name).unwrap()].number)
        .into();
    assert_eq!(edits, [1, 2, 3], "the smallest free numbers of the class");
}

#[test]
fn hostile_documents_are_rejected() {
    let fe = |inside: &str| format!("<fe xmlns=\"urn:progfe:fe:1\" name=\"x\">{inside}</fe>");
    let lfbs = "<lfb id=\"a\" class=\"Count\"/>".repeat(INSTANCES_MAX + 1);
    let cases = [
        ("<!DOCTYPE fe [<!ENTITY a \"b\">]><fe/>".to_owned(), "xml-syntax"),
        ("<fe>".repeat(100), "xml-limit"),
        (fe(&"<use/>".repeat(PARTS_MAX + 1)), "xml-limit"),
        (fe(&"<x>".repeat(40)), "xml-limit"),
        (
            fe(
                "<use library=\"ProGFE\"/><instances><lfb id=\"a\" class=\"Count\" instances=\"1..4294967295\"/></instances>",
            ),
            "range",
        ),
        (fe(&format!("<use library=\"ProGFE\"/><instances>{lfbs}</instances>")), "duplicate"),
        (fe("<frames file=\"/etc/passwd\"/>"), "frame-unknown"),
        (fe("<use library=\"Other\" location=\"other.xml\"/>"), "unknown-library"),
        ("<fe/>".to_owned(), "xml-element"),
        (String::new(), "xml-syntax"),
    ];
    for (text, code) in cases {
        let (program, problems) = load("bad.xml", &text);
        let printed = problems.to_string();
        assert!(program.is_none() && printed.contains(&format!("[{code}]")), "{code}: {printed}");
    }
}
