//! Tests of valid libraries, and of libraries that break one rule each.

use crate::library;
use crate::model::*;

fn library(provides: &str, loads: &[&str], sections: &str) -> Library {
    let loads: String = loads.iter().map(|label| format!("<load library=\"{label}\"/>")).collect();
    let xml = format!(
        "<LFBLibrary xmlns=\"{}\" provides=\"{provides}\">{loads}{sections}</LFBLibrary>",
        Schema::V1_1.namespace(),
    );
    library::read(&xml).unwrap_or_else(|faults| panic!("{faults:?}\n{xml}"))
}

fn types(rows: &[(&str, &str)]) -> String {
    let def = |(name, decl): &(&str, &str)| {
        format!("<dataTypeDef><name>{name}</name><synopsis/>{decl}</dataTypeDef>\n")
    };
    format!("<dataTypeDefs>\n{}</dataTypeDefs>", rows.iter().map(def).collect::<String>())
}

fn class(id: u32, name: &str, rest: &str) -> String {
    format!(
        "<LFBClassDef LFBClassID=\"{id}\"><name>{name}</name><synopsis/>\
         <version>1.0</version>{rest}</LFBClassDef>\n"
    )
}

fn classes(all: &[String]) -> String {
    format!("<LFBClassDefs>\n{}</LFBClassDefs>", all.concat())
}

fn component(id: u32, name: &str, rest: &str) -> String {
    format!("<component componentID=\"{id}\"><name>{name}</name><synopsis/>{rest}</component>")
}

fn components(all: &[String]) -> String {
    format!("<components>{}</components>", all.concat())
}

/// Checks the faults of some libraries, one line each, without columns.
fn check(libraries: Vec<Library>, expected: &[&str]) {
    let faults = Catalog::new(libraries).err().unwrap_or_default();
    let reported = faults.iter().map(|fault| match fault.within.as_str() {
        "" => format!("{}:{}: {}", fault.library, fault.place.line, fault.problem),
        within => format!("{}:{}: {within}: {}", fault.library, fault.place.line, fault.problem),
    });
    assert_eq!(reported.collect::<Vec<_>>(), expected);
}

fn check_types(rows: &[(&str, &str)], expected: &[&str]) {
    check(vec![library("L", &[], &types(rows))], expected);
}

const UINT: &str = "<typeRef>uint32</typeRef>";

#[test]
fn types_are_checked() {
    check_types(
        &[
            ("a", "<typeRef>b</typeRef>"),
            ("b", "<array><typeRef>a</typeRef></array>"),
            ("uint8", "<typeRef>byte[99999]</typeRef>"),
            ("uint32", UINT),
            (
                "c",
                "<atomic><baseType>uchar</baseType><rangeRestriction>\
                <allowedRange min=\"9\" max=\"256\"/></rangeRestriction></atomic>",
            ),
            ("d", "<atomic><baseType>a</baseType></atomic>"),
            (
                "e",
                "<atomic><baseType>uchar</baseType><specialValues><specialValue value=\"300\">\
                <name>n</name><synopsis/></specialValue></specialValues></atomic>",
            ),
            ("f", "<array type=\"fixed-size\" length=\"0\"><typeRef>uchar</typeRef></array>"),
            ("g", "<typeRef>byte[6]</typeRef><defaultValue>02:00</defaultValue>"),
            ("a", UINT),
            ("no name", UINT),
        ],
        &[
            "L:3: data type b: data type a contains itself",
            "L:4: data type uint8: there is no data type byte[99999]",
            "L:5: uint32 is the name of a base type",
            "L:6: data type c: the base type does not allow numbers from 9 to 256",
            "L:8: data type e: the special value n: 300 is out of range (allowed: 0 to 255)",
            "L:9: data type f: an array of fixed size needs a length above 0",
            "L:10: data type g: the defaultValue: has 2 octets (allowed: exactly 6)",
            "L:11: data type a is defined twice",
            "L:12: invalid name \"no name\" (hint: use letters, digits, '.', '-', '_' and ':')",
        ],
    );
}

#[test]
fn large_and_deep_types_are_rejected() {
    let grow = |levels: usize, decl: &dyn Fn(String) -> String| {
        let names: Vec<String> = (0..=levels).map(|level| format!("t{level}")).collect();
        let decls: Vec<String> = (0..=levels)
            .map(|level| match level {
                0 => UINT.to_string(),
                _ => decl(format!("<typeRef>t{}</typeRef>", level - 1)),
            })
            .collect();
        let rows: Vec<_> =
            names.iter().zip(&decls).map(|(name, decl)| (name.as_str(), decl.as_str())).collect();
        let faults = Catalog::new(vec![library("L", &[], &types(&rows))]).err();
        faults.unwrap_or_default().first().map(|fault| fault.problem.clone())
    };
    let array = |inner: String| format!("<array>{inner}</array>");
    assert_eq!(grow(TYPE_DEPTH_MAX - 1, &array), None);
    assert_eq!(grow(TYPE_DEPTH_MAX, &array), Some(Problem::TypeTooDeep));
    assert_eq!(grow(2000, &|inner| inner), None);
    let ten = |inner: String| {
        let rows: Vec<_> = (1..=10).map(|id| component(id, &format!("c{id}"), &inner)).collect();
        format!("<struct>{}</struct>", rows.concat())
    };
    assert_eq!(grow(4, &ten), None);
    assert_eq!(grow(5, &ten), Some(Problem::TypeTooLarge));
    let fixed =
        |inner: String| format!("<array type=\"fixed-size\" length=\"4000000000\">{inner}</array>");
    assert_eq!(grow(1, &fixed), Some(Problem::TypeTooLarge));
    // Many types derived from a large one.
    let fields: Vec<_> = (1..=4000).map(|id| component(id, &format!("c{id}"), UINT)).collect();
    let large = format!("<struct>{}</struct>", fields.concat());
    let small =
        format!("<struct><derivedFrom>large</derivedFrom>{}</struct>", component(9999, "x", UINT));
    let names: Vec<_> = (0..1000).map(|number| format!("s{number}")).collect();
    let mut rows = vec![("large", large.as_str())];
    rows.extend(names.iter().map(|name| (name.as_str(), small.as_str())));
    let faults = Catalog::new(vec![library("L", &[], &types(&rows))]).unwrap_err();
    assert!(matches!(faults[0].problem, Problem::CatalogTooLarge { .. }), "{}", faults[0]);
}

#[test]
fn a_struct_can_extend_another() {
    let base = format!("<struct>{}{}</struct>", component(1, "x", UINT), component(2, "y", UINT));
    let more = format!(
        "<struct><derivedFrom>base</derivedFrom>{}</struct>",
        component(9, "z", "<typeRef>boolean</typeRef>")
    );
    let outer = format!("<struct>{}</struct>", component(1, "in", "<typeRef>base</typeRef>"));
    let augmented = format!(
        "<struct><derivedFrom>outer</derivedFrom>{}</struct>",
        component(1, "in", "<typeRef>more</typeRef>")
    );
    let all = types(&[("base", &base), ("more", &more), ("outer", &outer), ("other", &augmented)]);
    let catalog = Catalog::new(vec![library("L", &[], &all)]).unwrap();
    let more = catalog.data_type("more").unwrap();
    let ids: Vec<_> = more.fields().unwrap().iter().map(|field| field.id).collect();
    assert_eq!((ids, more.ancestors.clone()), (vec![1, 2, 9], vec!["base".to_string()]));
    let other = catalog.data_type("other").unwrap();
    assert_eq!(other.at(&[1, 9]).map(|part| part.words()).as_deref(), Some("boolean"));
    for wrong in [
        component(1, "a", UINT),
        component(5, "x", UINT),
        component(1, "x", "<typeRef>boolean</typeRef>"),
    ] {
        let wrong = format!("<struct><derivedFrom>base</derivedFrom>{wrong}</struct>");
        let all = types(&[("base", &base), ("wrong", &wrong)]);
        let faults = Catalog::new(vec![library("L", &[], &all)]).unwrap_err();
        assert!(matches!(faults[0].problem, Problem::NotAnAugmentation { .. }), "{}", faults[0]);
    }
    let union =
        format!("<union><derivedFrom>base</derivedFrom>{}</union>", component(3, "z", UINT));
    check_types(
        &[("base", &base), ("u", &union)],
        &["L:3: data type u: base exists already, with another ID or a type that this one does \
           not extend"],
    );
}

#[test]
fn content_keys_are_resolved_to_paths() {
    let row = format!(
        "<struct>{}{}</struct>",
        component(
            1,
            "prefix",
            &format!(
                "<struct>{}{}</struct>",
                component(1, "address", UINT),
                component(2, "length", UINT)
            )
        ),
        component(2, "source", UINT),
    );
    let key = |fields: &str| {
        format!("<array>{row}<contentKey contentKeyID=\"7\">{fields}</contentKey></array>")
    };
    let good = key(
        "<contentKeyField> prefix . address</contentKeyField><contentKeyField>source</contentKeyField>",
    );
    let catalog = Catalog::new(vec![library("L", &[], &types(&[("table", &good)]))]).unwrap();
    let table = catalog.data_type("table").unwrap();
    let key7 = table.array().unwrap().key(7).unwrap();
    assert_eq!(key7.fields, [vec![1, 1], vec![2]]);
    let rows = table.parse("[{1={1=5, 2=24}, 2=9}, {1={1=5, 2=16}, 2=8}]").unwrap();
    let of = key7.of(rows.step(1).unwrap()).unwrap();
    assert_eq!(key7.data_type.show(&of).to_string(), "{prefix.address=5, source=8}");
    assert!(table.parse("[{1={1=5, 2=24}, 2=9}, {1={1=5, 2=16}, 2=9}]").is_err());
    let wrong = key("<contentKeyField>prefix.mask</contentKeyField>");
    check_types(
        &[("table", &wrong)],
        &["L:2: data type table: content key 7: rows have no \"prefix.mask\""],
    );
    let star = "<array><typeRef>uint32</typeRef><contentKey contentKeyID=\"1\">\
        <contentKeyField>*</contentKeyField></contentKey></array>";
    let catalog = Catalog::new(vec![library("L", &[], &types(&[("set", star)]))]).unwrap();
    let fault = catalog.data_type("set").unwrap().parse("[1, 2, 1]").unwrap_err();
    assert_eq!(fault.to_string(), "rows 0 and 2 have the same content key 1");
}

#[test]
fn a_library_needs_the_libraries_that_it_uses() {
    let base = types(&[("shared", UINT)]);
    let user = types(&[("mine", "<typeRef>shared</typeRef>")]);
    let all = |loads: &[&str]| {
        vec![
            library("user", loads, &user),
            library("middle", &["base"], ""),
            library("base", &["user"], &base),
        ]
    };
    assert!(Catalog::new(all(&["middle"])).is_ok());
    check(
        all(&[]),
        &["user:2: data type mine: there is no data type shared (hint: load library base, which \
             has one)"],
    );
    check(all(&["middle", "gone"]), &["user:1: unknown library gone in load"]);
    let twice = vec![library("a", &[], &base), library("b", &["a"], &base)];
    check(twice, &["b:0: data type shared is defined twice"]);
    let apart = vec![library("a", &[], &base), library("b", &[], &base)];
    assert!(Catalog::new(apart).is_ok());
    check(
        vec![library("a", &[], ""), library("a", &[], "")],
        &["a:0: another library has the same label"],
    );
}

#[test]
fn a_class_can_extend_another() {
    let events = |base: &str, id: u32, target: &str| {
        format!(
            "<events{base}><event eventID=\"{id}\"><name>e{id}</name><synopsis/><eventTarget>{target}\
             </eventTarget><eventChanged/></event></events>"
        )
    };
    let field = "<eventField>x</eventField>";
    let parent = class(
        70000,
        "Parent",
        &(components(&[component(1, "x", UINT)]) + &events(" baseID=\"60\"", 1, field)),
    );
    let child = class(
        70001,
        "Child",
        &("<derivedFrom version=\"1.0\">Parent</derivedFrom>".to_string()
            + &components(&[component(2, "y", UINT)])
            + &events("", 2, "<eventField>y</eventField>")),
    );
    // The child comes first; the order does not matter.
    let catalog =
        Catalog::new(vec![library("L", &[], &classes(&[child, parent.clone()]))]).unwrap();
    let child = catalog.class("Child").unwrap();
    assert_eq!((&child.parents[..], child.event_base), (&[70000][..], Some(60)));
    assert!(child.is_a(70000) && !catalog.class("Parent").unwrap().is_a(70001));
    assert_eq!(child.components.iter().map(|it| it.id).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(child.path("e1"), Ok(vec![60, 1]));
    assert_eq!(child.path("e2"), Ok(vec![60, 2]));
    let wrong = |rest: &str| {
        class(70002, "Wrong", &("<derivedFrom>Parent</derivedFrom>".to_string() + rest))
    };
    let reported = |rest: &str, expected: &str| {
        let all = classes(&[parent.clone(), wrong(rest)]);
        let faults = Catalog::new(vec![library("L", &[], &all)]).unwrap_err();
        assert_eq!(faults[0].to_string().split_once("Wrong").unwrap().1, expected);
    };
    reported(
        &components(&[component(1, "z", UINT)]),
        ", component z: z exists already, with another ID or a type that this one does not extend",
    );
    reported(
        &events(" baseID=\"61\"", 2, field),
        ": events have another baseID than 60 of the parent class",
    );
    reported(
        &events("", 2, "<eventField>q</eventField>"),
        ": event e2: expected a component of the class, found \"q\"",
    );
    let old = class(70002, "Wrong", "<derivedFrom version=\"2.0\">Parent</derivedFrom>");
    check(
        vec![library("L", &[], &classes(&[parent.clone(), old]))],
        &["L:3: class Wrong: derived from Parent 2.0, but Parent has version 1.0"],
    );
    let newer = parent.replace("1.0", "1.1");
    check(
        vec![
            library("L", &[], &classes(std::slice::from_ref(&parent))),
            library("M", &[], &classes(&[newer])),
        ],
        &["M:2: class Parent: class has the ID 70000 of Parent 1.0"],
    );
    let loops = [
        class(1, "A", "<derivedFrom>B</derivedFrom>"),
        class(2, "B", "<derivedFrom>A</derivedFrom>"),
    ];
    check(
        vec![library("L", &[], &classes(&loops))],
        &["L:3: class B: class B is derived from itself"],
    );
}

#[test]
fn classes_are_checked() {
    let port = |name: &str, refs: &str| {
        format!(
            "<inputPort><name>{name}</name><synopsis/><expectation>{refs}</expectation></inputPort>"
        )
    };
    let rest = format!(
        "<inputPorts>{}{}</inputPorts>",
        port(
            "in",
            "<frameExpected><ref>IPv5</ref></frameExpected><metadataExpected><one-of>\
            <ref>Color</ref><ref dependency=\"optional\">Flavor</ref></one-of></metadataExpected>"
        ),
        port("in", ""),
    ) + &components(&[
        component(1, "a", "<typeRef>uchar</typeRef><defaultValue>256</defaultValue>"),
        component(1, "b", UINT),
        component(2, "a", UINT),
        component(60, "c", "<array><typeRef>uint32</typeRef></array>"),
    ]) + "<events baseID=\"60\">\
        <event eventID=\"1\"><name>e</name><synopsis/><eventTarget><eventField>c</eventField>\
        </eventTarget><eventCreated/></event>\
        <event eventID=\"2\"><name>f</name><synopsis/><eventTarget><eventField>c</eventField>\
        <eventSubscript>_i_</eventSubscript></eventTarget><eventGreaterThan/><eventReports><eventReport>\
        <eventField>c</eventField><eventSubscript>_j_</eventSubscript></eventReport></eventReports></event>\
        </events>";
    let metadata = "<metadataDefs><metadataDef><name>Flavor</name><synopsis/><metadataID>1</metadataID>\
        <typeRef>uint32</typeRef></metadataDef></metadataDefs>";
    let all = metadata.to_string() + &classes(&[class(0, "C", &rest)]);
    check(
        vec![library("L", &[], &all)],
        &[
            "L:2: class C: class C has the invalid ID 0",
            "L:2: class C: events has the ID 60 of c",
            "L:2: class C: event e: the target must be a row of an array",
            "L:2: class C: event f: expected a subscript of the target, found \"_j_\"",
            "L:2: class C, input in: there is no frame IPv5",
            "L:2: class C, input in: metadatum Flavor is optional but has no defaultValue",
            "L:2: class C, input in: there is no metadatum Color",
            "L:2: class C, input in: input in is defined twice",
            "L:2: class C, component a: the defaultValue: 256 is out of range (allowed: 0 to 255)",
            "L:2: class C, component b: component has the ID 1 of a",
            "L:2: class C, component a: component a is defined twice",
        ],
    );
}

#[test]
fn event_paths_have_a_place_for_each_subscript() {
    let row = format!("<struct>{}</struct>", component(3, "state", UINT));
    let rest = components(&[component(5, "table", &format!("<array>{row}</array>"))])
        + "<events baseID=\"9\"><event eventID=\"4\"><name>Changed</name><synopsis/>\
        <eventTarget><eventField>table</eventField><eventSubscript>_i_</eventSubscript>\
        <eventField>state</eventField></eventTarget><eventChanged/><eventReports><eventReport>\
        <eventField>table</eventField><eventSubscript>_i_</eventSubscript></eventReport></eventReports>\
        </event></events>";
    let all = classes(&[class(70000, "C", &rest)]);
    let catalog = Catalog::new(vec![library("L", &[], &all)]).unwrap();
    let class = catalog.class("C").unwrap();
    let event = class.event("Changed").unwrap();
    assert_eq!((&event.target[..], event.subscripts()), (&[Some(5), None, Some(3)][..], 1));
    assert_eq!(Event::report_path(&event.reports[0], &[100]), Some(vec![5, 100]));
    assert_eq!(Event::report_path(&event.reports[0], &[]), None);
    assert_eq!(class.path("Changed[100]"), Ok(vec![9, 4, 100]));
    assert_eq!(class.show_path(&[9, 4, 100]).to_string(), "Changed[100]");
    assert_eq!(class.target(&[9, 4, 100]), Ok(Target::Event { event, subscripts: 1 }));
    assert_eq!(class.target(&[9]), Ok(Target::Events));
    for path in
        ["9.4.1.2", "table.state", "table[x]", "other", "table[1].gone", "table[1].state.x", ""]
    {
        let found = class.path(path).and_then(|path| class.target(&path).map(|_| path));
        assert!(found.is_err(), "{path} {found:?}");
    }
}
