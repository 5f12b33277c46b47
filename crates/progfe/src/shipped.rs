//! Programs that every build contains, by name. They are the files of `examples/progfe` that the
//! studies measure and that refer to no other file.

/// Names and texts.
const PROGRAMS: [(&str, &str); 5] = [
    ("bridge", include_str!("../../../examples/progfe/bridge.fe.xml")),
    ("bridge-complex", include_str!("../../../examples/progfe/bridge-complex.fe.xml")),
    ("router", include_str!("../../../examples/progfe/router.fe.xml")),
    ("vlan", include_str!("../../../examples/progfe/vlan.fe.xml")),
    ("vlan16", include_str!("../../../examples/progfe/vlan16.fe.xml")),
];

/// Returns the text of a program by its name.
pub fn text(name: &str) -> Option<&'static str> {
    PROGRAMS.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// Returns the names of all programs.
pub fn names() -> [&'static str; PROGRAMS.len()] {
    PROGRAMS.map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::Program;
    use crate::role::Role;
    use crate::xml::Source;

    #[test]
    fn each_program_loads_without_other_files_and_has_a_role() {
        for name in names() {
            let source = Source::new(name, text(name).unwrap());
            let none = |_: &str| Err("no other file".to_owned());
            let (program, problems) = Program::load(&source, &none);
            assert!(problems.is_empty(), "{name}: {problems}");
            assert!(Role::of(&program.unwrap()).is_some(), "{name}");
        }
        assert_eq!(text("missing"), None);
    }
}
