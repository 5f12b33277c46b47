//! Built-in models: one file for each in `models/`.
//!
//! Invariant: each can be read, has the name of its file, and has the source of each number.

use std::sync::{Arc, OnceLock};

use super::Model;
use super::file;

macro_rules! known {
    ($($name:literal,)*) => {
        /// Names, in the order in which they are listed.
        pub const NAMES: &[&str] = &[$($name,)*];

        const TEXTS: &[&str] = &[$(include_str!(concat!("../../../models/", $name, ".toml")),)*];
    };
}

known! {
    "honest",
    "edgecore-as5812",
    "hp-2920",
    "pica8-p3297",
    "extreme-x460",
    "extreme-x440",
    "datacom-dm4001",
    "mikrotik-ar9344",
    "netfpga-openflow",
    "linksys-wrt54gl",
    "ovs-2.3",
    "pica8-p3290",
    "hp-5406zl",
}

/// Returns all built-in models.
pub fn all() -> &'static [Arc<Model>] {
    static ALL: OnceLock<Vec<Arc<Model>>> = OnceLock::new();
    ALL.get_or_init(|| {
        let read = |text: &&str| file::read(text).expect("a shipped model is valid");
        TEXTS.iter().map(read).map(Arc::new).collect()
    })
}

/// Returns the model with this name.
pub fn find(name: &str) -> Option<Arc<Model>> {
    all().iter().find(|model| model.name == name).cloned()
}

/// Returns the text of a model's file.
pub fn text(name: &str) -> Option<&'static str> {
    NAMES.iter().position(|known| *known == name).map(|place| TEXTS[place])
}

#[cfg(test)]
mod tests {
    use dataplane::flow::FlowSpec;
    use dataplane::key::Field;
    use dataplane::matching::Match;
    use packet::time::Nanos;

    use super::*;
    use crate::hardware_model::tcam::FlowId;
    use crate::hardware_model::update_queue::{Change, Writer};

    #[test]
    fn every_known_model_is_valid_and_has_the_name_of_its_file() {
        for (model, name) in all().iter().zip(NAMES) {
            assert_eq!(model.name, *name);
            assert!(find(name).is_some() && text(name).is_some());
        }
    }

    /// Checks when the last of 1,400 entries becomes active, for inserts and for modifications. The
    /// entries arrive in random order, as frames bring them into hardware. Compared with increasing
    /// priorities this halves the number of moves.
    #[test]
    fn the_edgecore_modifies_about_70_percent_faster_than_it_inserts() {
        let model = find("edgecore-as5812").unwrap();
        let mut writer: Writer<()> = Writer::new(&model, 1);
        let mut last = |from: Nanos| {
            let mut now = from;
            // Visits every number below 1,400 once, as the two have no common factor.
            for priority in (0..1_400u32).map(|place| (place * 577 % 1_400) as u16) {
                let matching = Match::of(&[(Field::IpDst, priority.into())]);
                let spec = FlowSpec::new(matching, priority, &[]);
                let (id, spec) = (FlowId::of_spec(&spec), Some(Box::new(spec)));
                writer.accept(Change { id, generation: 1, spec }, from);
            }
            while let Some(next) = writer.next_event() {
                now = next;
                writer.advance(now);
                while writer.acts(now).is_some() {}
            }
            now.since(from).as_secs_f64()
        };
        let (inserted, modified) = (last(Nanos::ZERO), last(Nanos::from_secs(100)));
        assert!((0.65..0.75).contains(&(1.0 - modified / inserted)), "{inserted} s, {modified} s");
    }

    #[test]
    fn the_honest_model_equals_the_default_model() {
        let honest = find("honest").unwrap();
        let (name, about) = (honest.name.clone(), honest.about.clone());
        assert_eq!(*honest, Model { name, about, ..Model::default() });
    }
}
