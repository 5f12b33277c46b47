//! Tests of model files: a file is read completely or rejected with all its errors.

use super::*;

fn faults(text: &str) -> String {
    let faults = read(text).expect_err("it has faults");
    faults.iter().map(|fault| format!("{fault}\n")).collect()
}

#[test]
fn all_faults_are_reported_with_line_key_and_hint() {
    let text = "name = \"Bad Name\"\n\
                [hardware]\n\
                insert_ns = 5\n\
                move_ns = { value = -1, source = \"assumed\" }\n\
                order = { value = \"random\", source = \"assumed\" }\n\
                colour = { value = 1, source = \"assumed\" }\n\
                delete_ns = { value = 1.5, source = \"\", by = 2 }\n\
                [barrier]\n\
                answers = { value = \"soon\", source = \"assumed\" }\n\
                [full]\n\
                at_percent = { value = 101, source = \"assumed\" }\n\
                [wheels]\n\
                count = 4\n";
    let reported = faults(text);
    for wanted in [
        "line 1: name: invalid name (hint: use at most 64 lowercase letters",
        "line 1: about: missing (hint: add a line of text)",
        "line 3: hardware.insert_ns: value without source (hint: write {",
        "line 4: hardware.move_ns: invalid value (hint: use an integer from 0 to 600000000000)",
        "line 5: hardware.order: no effect without hardware.batch_rules (hint: set \
         hardware.batch_rules)",
        "line 6: hardware.colour: unknown key (hint: use one of insert_ns, move_ns",
        "line 7: hardware.delete_ns.by: unknown key (hint: use one of value, source",
        "line 7: hardware.delete_ns: source missing",
        "line 7: hardware.delete_ns: invalid value (hint: use an integer",
        "line 9: barrier.answers: invalid value (hint: use one of acting, written, taken)",
        "line 11: full.at_percent: invalid value (hint: use an integer from 0 to 100)",
        "line 12: wheels: unknown key (hint: use one of agent, barrier",
    ] {
        assert!(reported.contains(wanted), "{wanted:?} is missing in\n{reported}");
    }
    assert_eq!(reported.lines().count(), 12, "{reported}");
}

#[test]
fn a_model_is_hardware_unless_the_file_specifies_software() {
    let kind = |line: &str| read(&format!("name = \"a\"\nabout = \"b\"\n{line}"));
    for (line, is_software) in
        [("", false), ("kind = \"hardware\"\n", false), ("kind = \"software\"\n", true)]
    {
        let model = kind(line).unwrap();
        assert_eq!(model.is_software, is_software, "{line}");
        assert_eq!(read(&model.to_text()), Ok(model), "{line}");
    }
    let reported = faults("name = \"a\"\nabout = \"b\"\nkind = \"asic\"\n");
    assert!(
        reported.contains("line 3: kind: invalid value (hint: use one of hardware, software)"),
        "{reported}"
    );
}

#[test]
fn invalid_toml_is_reported_with_its_position() {
    let reported = faults("name = \"a\"\nabout = \"b\"\n[hardware\ninsert_ns = {\n");
    assert!(reported.starts_with("line 3: invalid TOML: "), "{reported}");
    assert!(faults("name = 3\nhardware = 4\n").contains("line 2: hardware: not a section"));
    assert!(faults(&"#".repeat(FILE_BYTES_MAX + 1)).contains("shorten it"));
    assert!(faults("").contains("line 1: name: missing"));
}

#[test]
fn arbitrary_bytes_never_panic() {
    let whole = known_text();
    for cut in 0..whole.len() {
        if whole.is_char_boundary(cut) {
            let _ = read(&whole[..cut]);
        }
    }
    let mut dice = 7_u64;
    for _ in 0..2_000 {
        let mut bytes = whole.clone().into_bytes();
        for _ in 0..3 {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let at = (dice >> 33) as usize % bytes.len();
            bytes[at] = (dice >> 25) as u8;
        }
        let text = String::from_utf8_lossy(&bytes);
        if let Ok(model) = read(&text) {
            assert_eq!(read(&model.to_text()), Ok(model), "{text}");
        }
    }
}

fn known_text() -> String {
    "name = \"x\"\nabout = \"y\"\n[hardware]\ninsert_ns = { value = 1_000, source = \"z\" }\n\
     [barrier]\nanswers = { value = \"taken\", source = \"w\" }\n"
        .into()
}

#[test]
fn every_key_sets_its_own_value_and_is_written_again() {
    for key in KEYS {
        let value = match key.takes {
            ValueType::Number(max) => max.min(7).to_string(),
            ValueType::Word(words) => format!("{:?}", words[words.len() - 1]),
        };
        let text = format!(
            "name = \"x\"\nabout = \"y\"\n[{}]\n{} = {{ value = {value}, source = \"here\" }}\n",
            key.section, key.name
        );
        let needs = |fault: &Fault| matches!(fault.problem, Problem::Needs(_));
        match read(&text) {
            Ok(mut model) => {
                assert_eq!(model.sources.len(), 1, "{}", key.path);
                assert_ne!(*(key.at)(&mut model), 0, "{}", key.path);
                let others = KEYS.iter().filter(|other| other.path != key.path);
                assert!(others.into_iter().all(|it| *(it.at)(&mut model) == 0), "{}", key.path);
                assert_eq!(read(&model.to_text()), Ok(model));
            }
            Err(faults) => assert!(faults.iter().all(needs), "{}: {faults:?}", key.path),
        }
    }
}
