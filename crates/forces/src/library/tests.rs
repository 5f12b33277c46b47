//! Tests of the shipped libraries, and of invalid and hostile documents.

use super::*;
use crate::model::{ComponentKind, Expected, Schema, Target};

const NS: &str = "urn:ietf:params:xml:ns:forces:lfbmodel:1.0";

/// Returns a document with these sections.
fn document(sections: &str) -> String {
    format!("<LFBLibrary xmlns=\"{NS}\" provides=\"Test\">\n{sections}\n</LFBLibrary>")
}

/// Checks the faults of a document, one line each.
fn check(xml: &str, expected: &[&str]) {
    let faults = read(xml).err().unwrap_or_default();
    let reported: Vec<_> = faults.iter().map(DocumentFault::to_string).collect();
    assert_eq!(reported, expected, "{xml}");
}

#[test]
fn shipped_libraries_round_trip() {
    for library in shipped() {
        let written = write(&library);
        assert_eq!(read(&written).as_ref(), Ok(&library), "{}", library.provides);
        assert_eq!(write(&read(&written).unwrap()), written);
    }
}

#[test]
fn shipped_classes_are_those_of_the_rfcs() {
    let catalog = standard();
    let classes: Vec<_> = catalog.classes().map(|class| (class.id, class.name.as_str())).collect();
    assert_eq!(classes.len(), 17);
    assert!(classes.iter().map(|(id, _)| *id).eq(1..=17));
    let names = ["FEObject", "FEPO", "EtherPHYCop", "EtherMACIn", "EtherClassifier", "EtherEncap"];
    assert!(classes.iter().map(|(_, name)| *name).take(6).eq(names));
    for id in 1..=15 {
        assert!(catalog.metadata_by_id(id).is_some(), "{id}");
    }
    let lpm = catalog.class("IPv4UcastLPM").unwrap();
    assert_eq!((lpm.id, lpm.version.to_string().as_str()), (10, "1.0"));
    let path = lpm.path("IPv4PrefixTable[7].HopSelector").unwrap();
    assert_eq!(path, [1, 7, 6]);
    assert_eq!(lpm.path("1.7.6"), Ok(path.clone()));
    assert_eq!(lpm.show_path(&path).to_string(), "IPv4PrefixTable[7].HopSelector");
    let Ok(Target::Value { data_type, .. }) = lpm.target(&path) else { panic!() };
    assert_eq!(data_type.words(), "uint32");
    let rows = [("IPv4UcastLPM", 1, 12), ("IPv4NextHop", 1, 20), ("EtherEncap", 1, 20)];
    for (class, component, octets) in rows.into_iter().chain([
        ("EtherClassifier", 1, 12),
        ("EtherClassifier", 2, 12),
        ("BasicMetadataDispatch", 2, 8),
    ]) {
        let component = catalog.class(class).unwrap().component_by_id(component).unwrap();
        assert_eq!(component.data_type.step(0).unwrap().width(), Some(octets), "{class}");
    }
    let phy = catalog.class("EtherPHYCop").unwrap();
    assert_eq!(phy.event_base, Some(60));
    assert_eq!(phy.path("LinkSpeedChanged"), Ok(vec![60, 2]));
    let speeds = phy.component("SupportedLinkSpeed").unwrap();
    assert_eq!((speeds.id, speeds.kind), (30, ComponentKind::Capability));
    let status = phy.component("AdminStatus").unwrap();
    assert_eq!(status.data_type.show(&status.default_value()).to_string(), "Down");
    let classifier = catalog.class("EtherClassifier").unwrap();
    let (_, input) = classifier.input("EtherPktsIn").unwrap();
    let optional =
        Expected::One { name: "LogicalPortID".into(), optional: true, default: Some("0".into()) };
    assert_eq!(input.metadata[1], optional);
    let fepo = catalog.class("FEPO").unwrap();
    let interval = fepo.component("FEHI").unwrap();
    assert_eq!(interval.default_value().unsigned(), Some(500));
    assert_eq!(fepo.path("PrimaryCEChanged"), Ok(vec![61, 2]));
}

#[test]
fn every_fault_of_a_document_is_reported() {
    check(
        &document(
            "<frameDefs><frameDef><synopsis>s</synopsis><name>a</name></frameDef>\n\
             <frameDef><name>b</name></frameDef></frameDefs>\n\
             <load library=\"x\" from=\"y\"/>\n\
             <metadataDefs><metadataDef><name>m</name><synopsis>s</synopsis>\n\
             <metadataID>-1</metadataID><union/></metadataDef></metadataDefs>\n\
             <classes/>stray",
        ),
        &[
            "2:44: name must precede synopsis",
            "3:1: frameDef b lacks synopsis",
            "4:1: load must precede frameDefs",
            "4:1: load has no attribute from",
            "5:15: metadataDef m lacks typeRef or atomic or array or struct",
            "6:1: metadataID is \"-1\", expected a number from 0 to 4294967295",
            "6:28: union is not allowed in metadataDef m, expected \
             name, synopsis, metadataID, description, typeRef, atomic, array, struct",
            "7:1: classes is not allowed in LFBLibrary, expected \
             description, load, frameDefs, dataTypeDefs, metadataDefs, LFBClassDefs",
            "7:11: text in LFBLibrary, which only has elements",
        ],
    );
}

#[test]
fn other_xml_documents_are_rejected() {
    check("", &["1:1: invalid or unsupported XML: the document does not have a root node"]);
    check("<fe/>", &["1:1: the root element is fe instead of LFBLibrary"]);
    check(
        "<LFBLibrary provides=\"x\"/>",
        &["1:1: the namespace is \"\" instead of \
        urn:ietf:params:xml:ns:forces:lfbmodel:1.0 or :1.1"],
    );
    check(
        &format!("<LFBLibrary xmlns=\"{NS}\"/>"),
        &["1:1: LFBLibrary lacks the attribute provides"],
    );
    check(
        &document("<x:load xmlns:x=\"urn:other\" library=\"a\"/>"),
        &["2:1: the namespace is \"urn:other\" instead of \
           urn:ietf:params:xml:ns:forces:lfbmodel:1.0 or :1.1"],
    );
    let mut library = shipped().remove(0);
    library.schema = Schema::V1_1;
    assert_eq!(read(&write(&library)), Ok(library));
}

/// Checks that a document has exactly one fault, whose text contains `expected`.
fn check_hostile(xml: &str, expected: &str) {
    let faults = read(xml).unwrap_err();
    assert_eq!(faults.len(), 1);
    assert!(faults[0].problem.to_string().contains(expected), "{}", faults[0]);
}

#[test]
fn hostile_documents_are_rejected() {
    let laughs = "<!DOCTYPE x [<!ENTITY a \"ha\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;&a;&a;\">]>";
    check_hostile(&format!("{laughs}{}", document("<description>&b;</description>")), "DTD");
    check_hostile(&document("<description>&b;</description>"), "unknown entity");
    check_hostile(&document(&"<a>".repeat(1_000_000)), "nested more than 96 levels deep");
    let attributes: String = (0..100_000).map(|number| format!(" a{number}=\"\"")).collect();
    check_hostile(&document(&format!("<load{attributes}/>")), "more than 64 attributes");
    let names: String = (0..1000).map(|number| format!("<a xmlns:x{number}=\"u\"/>")).collect();
    check_hostile(&document(&names), "more than 64 namespaces");
    check_hostile(&document(&"<a/>".repeat(500_000)), "nodes limit");
    check_hostile(&document(&" ".repeat(DOCUMENT_OCTETS_MAX)), "at most 4194304 are allowed");
    let many = "<load library=\"a\"/>".repeat(CHILDREN_MAX + 1);
    check_hostile(&document(&many), "LFBLibrary has more than 8192 child elements");
    assert!(read(&document(&"<a/>".repeat(100_000))).unwrap_err().len() <= 1000);
}

#[test]
fn damaged_documents_never_panic() {
    // Truncates and modifies every document in many places; reading may fail but must not panic.
    for xml in [CORE, BASE] {
        for at in (0..xml.len()).step_by(499).filter(|at| xml.is_char_boundary(*at)) {
            assert!(read(&xml[..at]).is_err());
            let mut changed = xml.to_string();
            changed.replace_range(at..at + 1, ["<", ">", "\"", "0", "&"][at % 5]);
            drop(read(&changed).map(|library| Catalog::new(vec![library])));
        }
    }
}
