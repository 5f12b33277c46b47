//! Settings of this crate's blocks: conditions, keys, patterns, transitions, agents.

use std::collections::BTreeMap;

use forces::Value;

use super::About;
use crate::condition::{Choice, Operand};
use crate::diagnostic::{Code, Problems};
use crate::program::{Program, class_id, text};

/// Adds problems of all blocks except Edit.
pub fn check(program: &Program, problems: &mut Problems) {
    for at in 0..program.instances.len() {
        let mut block = Block { program, at, about: About::new(program, at, problems) };
        match program.instances[at].class {
            class_id::MATCH => block.rules(),
            class_id::SEARCH => block.search(),
            class_id::LEARN_SEARCH => block.learn_search(),
            class_id::STATE => block.state(),
            class_id::SCAN => block.scan(),
            class_id::HASH => drop(block.key("Key")),
            class_id::DIVERT | class_id::INJECT => block.agent(),
            _ => {}
        }
    }
}

struct Block<'a> {
    program: &'a Program,
    at: usize,
    about: About<'a>,
}

impl Block<'_> {
    fn id(&self, name: &str) -> u32 {
        self.program.class_of(self.at).component(name).map_or(0, |component| component.id)
    }

    fn text(&self, name: &str) -> String {
        let value = self.program.component(self.at, name);
        value.as_ref().and_then(Value::text).unwrap_or_default().to_owned()
    }

    fn rows(&self, name: &str) -> Vec<(u32, Value)> {
        match self.program.component(self.at, name) {
            Some(Value::Array(rows)) => rows.into_iter().collect(),
            _ => Vec::new(),
        }
    }

    /// Returns the operands in a component.
    fn key(&mut self, name: &str) -> Option<Vec<Operand>> {
        let id = self.id(name);
        let found = text::key(&self.text(name), &self.program.frames, &self.program.catalog);
        found.map_err(|what| self.about.wrong(Code::Value, &[id], what, FIELDS)).ok()
    }

    fn rules(&mut self) {
        let id = self.id("Rules");
        for (index, row) in self.rows("Rules") {
            let path = [id, index, 2];
            let when = row.step(2).and_then(Value::text).unwrap_or_default();
            let (frames, catalog) = (&self.program.frames, &self.program.catalog);
            match text::condition(when, frames, catalog) {
                Err(error) => {
                    self.about.wrong_in(Code::Condition, &path, error.at, error.what, error.hint);
                }
                Ok(condition) if condition.normal().is_some_and(|normal| normal.is_empty()) => {
                    let what = "the condition matches no frame".to_owned();
                    self.about.wrong(Code::NeverTrue, &path, what, "");
                }
                Ok(_) => {}
            }
        }
    }

    /// Reports a row whose key equals a previous one but is written differently.
    fn same_key(
        &mut self,
        path: [u32; 3],
        text: &str,
        key: (&[Operand], &[Choice]),
        seen: &mut BTreeMap<Vec<(u128, u128)>, (u32, String)>,
    ) {
        let bounds = key.0.iter().zip(key.1).map(|(of, choice)| choice.bounds(of.bits()));
        let bounds: Vec<(u128, u128)> = bounds.collect();
        match seen.get(&bounds) {
            // The content key check reports equal texts.
            Some((_, before)) if before == text => {}
            Some((first, _)) => {
                let what = format!("row {first} has the same key");
                self.about.wrong(Code::DuplicateKey, &path[..2], what, "remove one of the rows");
            }
            None => drop(seen.insert(bounds, (path[1], text.to_owned()))),
        }
    }

    fn search(&mut self) {
        let Some(key) = self.key("Key") else { return };
        let kind = self.program.component(self.at, "Kind").and_then(|kind| kind.unsigned());
        let id = self.id("Entries");
        let mut seen = BTreeMap::new();
        for (index, row) in self.rows("Entries") {
            let path = [id, index, 1];
            let text = row.step(1).and_then(Value::text).unwrap_or_default();
            match text::key_values(text, &key) {
                Err(what) => {
                    self.about.wrong(Code::Value, &path, what, "write one value for each field")
                }
                Ok(values) => {
                    let fits = values.iter().enumerate().all(|(at, value)| match (value, kind) {
                        (Choice::One(_), _) | (Choice::Range(..), Some(2)) => true,
                        (Choice::Prefix(..), Some(1)) => at + 1 == values.len(),
                        _ => false,
                    });
                    if !fits {
                        let what = format!("invalid key \"{text}\" for this kind");
                        let hint =
                            "use values for exact, a last prefix for lpm, values or a..b for range";
                        self.about.wrong(Code::Value, &path, what, hint);
                    }
                    self.same_key(path, text, (&key, &values), &mut seen);
                }
            }
        }
    }

    fn learn_search(&mut self) {
        let (learn, search) = (self.key("LearnKey"), self.key("SearchKey"));
        let widths = |key: &[Operand]| key.iter().map(Operand::bits).collect::<Vec<_>>();
        if let (Some(learn), Some(search)) = (&learn, &search)
            && widths(learn) != widths(search)
        {
            let what = "LearnKey and SearchKey have different widths".to_owned();
            self.about.wrong(
                Code::Value,
                &[self.id("SearchKey")],
                what,
                "use the same widths for both",
            );
        }
        let value = self.text("LearnValue");
        let value = text::operand(&value, &self.program.frames, &self.program.catalog);
        match value {
            Err(what) => self.about.wrong(Code::Value, &[self.id("LearnValue")], what, FIELDS),
            Ok(operand) if operand.bits() > 32 => {
                let what = format!("{operand} has {} bits", operand.bits());
                self.about.wrong(
                    Code::Value,
                    &[self.id("LearnValue")],
                    what,
                    "use at most 32 bits",
                );
            }
            Ok(_) => {}
        }
        let Some(key) = learn else { return };
        let id = self.id("Entries");
        let mut seen = BTreeMap::new();
        for (index, row) in self.rows("Entries") {
            let path = [id, index, 1];
            let text = row.step(1).and_then(Value::text).unwrap_or_default();
            let single = |values: &Vec<Choice>| values.iter().all(|v| matches!(v, Choice::One(_)));
            let what = match text::key_values(text, &key) {
                Ok(values) if single(&values) => {
                    self.same_key(path, text, (&key, &values), &mut seen);
                    continue;
                }
                Ok(_) => format!("\"{text}\" is not a single value"),
                Err(what) => what,
            };
            self.about.wrong(Code::Value, &path, what, "write one value for each field");
        }
    }

    fn state(&mut self) {
        self.key("Key");
        let id = self.id("Transitions");
        let rows = self.rows("Transitions");
        let name = |row: &Value, field| row.step(field).and_then(Value::text).map(str::to_owned);
        let entered: Vec<Option<String>> = rows.iter().map(|(_, row)| name(row, 3)).collect();
        for (index, row) in &rows {
            let on = name(row, 2).unwrap_or_default();
            if let Err(what) = text::Trigger::parse(&on) {
                let hint = "write in:0, count ge 5, or both joined by and";
                self.about.wrong(Code::Condition, &[id, *index, 2], what, hint);
            }
            let from = name(row, 1);
            if from.as_deref() != Some("new") && !entered.contains(&from) {
                let what = format!("no flow can reach the state \"{}\"", from.unwrap_or_default());
                let hint = "use new for the state of an unknown flow";
                self.about.wrong(Code::NeverTrue, &[id, *index, 1], what, hint);
            }
            if name(row, 3).is_none_or(|to| to.is_empty()) {
                let what = "missing target state".to_owned();
                self.about.wrong(Code::Value, &[id, *index], what, "set To");
            }
        }
    }

    fn scan(&mut self) {
        let scope = self.text("Scope");
        if let Some(header) = scope.strip_prefix("after:") {
            if let Err(what) = self.program.frames.resolve(header) {
                self.about.wrong(Code::FrameUnknown, &[self.id("Scope")], what, "");
            }
        } else if scope != "frame" {
            let what = format!("invalid scope \"{scope}\"");
            self.about.wrong(Code::Value, &[self.id("Scope")], what, "use frame or after:HEADER");
        }
        if !self.text("FlowKey").is_empty() {
            self.key("FlowKey");
        }
        let id = self.id("Patterns");
        for (index, row) in self.rows("Patterns") {
            let text = |field| row.step(field).and_then(Value::text).unwrap_or_default();
            match text::pattern(text(1)) {
                Ok(bytes) if bytes.is_empty() => {
                    let what = "empty pattern".to_owned();
                    self.about.wrong(Code::Value, &[id, index], what, "set Literal");
                }
                Ok(_) => {}
                Err(what) => {
                    self.about.wrong(Code::Value, &[id, index, 1], what, "write \\xHH or \\\\")
                }
            }
            if let Err(what) = text::offsets(text(3)) {
                self.about.wrong(Code::Value, &[id, index, 3], what, "");
            }
        }
    }

    fn agent(&mut self) {
        let name = self.text("Agent");
        if !self.program.agents.iter().any(|agent| agent.name == name) {
            let what = format!("no agent \"{name}\"");
            let hint = "declare it in <agents>";
            self.about.wrong(Code::UnknownAgent, &[self.id("Agent")], what, hint);
        }
    }
}

const FIELDS: &str = "write fields as Frame.field, metadata as meta:NAME";
