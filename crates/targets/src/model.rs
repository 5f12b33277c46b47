//! Targets that emulate a hardware model, with their names on the command line, which live as long
//! as the process.
//!
//! A name is `switch:model=NAME[,mode=openflow|legacy]`; NAME is a built-in model or a file.
//! Invariant: equal texts give equal [`ModelTarget`]s, so that a target's kind stays a small value
//! that is copied.

use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use elements::hardware_model::model::file::{self, Fault};
use elements::hardware_model::model::{Model, known};
use os::clock;
use packet::time::Nanos;
use testbed::peer::Peer;

use super::TargetError;
use super::veth::lab_error;

/// Prefix of such a target's name.
pub const PREFIX: &str = "switch:model=";

/// Longest time until a model's entries become active.
pub const SETTLE_MAX: Nanos = Nanos::from_secs(600);

/// Interval at which a process is polled for this.
const SETTLE_INTERVAL: Nanos = Nanos::from_millis(20);

/// Limit of names in one process.
const TARGETS_MAX: usize = 1024;

/// A target that emulates a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModelTarget {
    place: u16,
    mode: Mode,
}

/// Mode of the hardware.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mode {
    /// As an OpenFlow switch.
    OpenFlow,
    /// As the learning bridge that it is without OpenFlow.
    Legacy,
}

/// Error of a model's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelError {
    /// No model has this name.
    Unknown(String),
    /// The text after the name is not a mode.
    BadOption(String),
    /// The file cannot be read: its name, and why.
    Unreadable(String, String),
    /// The file has these errors.
    Faults(String, Vec<Fault>),
    /// The limit of names is reached.
    TooMany(usize),
}

struct NamedModel {
    text: &'static str,
    source: String,
    site: &'static str,
    about: &'static str,
    model: Arc<Model>,
    mode: Mode,
}

/// Entries are never removed, because copies of their index exist everywhere.
static KEPT: Mutex<Vec<&'static NamedModel>> = Mutex::new(Vec::new());

impl ModelTarget {
    /// Returns the target that this text names; it starts with [`PREFIX`].
    pub fn parse(text: &str) -> Result<ModelTarget, ModelError> {
        let said = text.strip_prefix(PREFIX).unwrap_or(text);
        let (source, mode) = match said.split_once(',') {
            None => (said, Mode::OpenFlow),
            Some((source, "mode=openflow")) => (source, Mode::OpenFlow),
            Some((source, "mode=legacy")) => (source, Mode::Legacy),
            Some((_, option)) => return Err(ModelError::BadOption(option.into())),
        };
        let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        let known = |it: &&NamedModel| (it.source.as_str(), it.mode) == (source, mode);
        if let Some(place) = kept.iter().position(known) {
            return Ok(ModelTarget { place: place as u16, mode });
        }
        if kept.len() >= TARGETS_MAX {
            return Err(ModelError::TooMany(TARGETS_MAX));
        }
        let model = load(source)?;
        let place = kept.len() as u16;
        let (mut text, mut as_what) = (format!("{PREFIX}{source}"), "");
        if mode == Mode::Legacy {
            (text, as_what) = (text + ",mode=legacy", ", as a bridge without OpenFlow");
        }
        kept.push(Box::leak(Box::new(NamedModel {
            text: text.leak(),
            source: source.into(),
            site: format!("model{place}").leak(),
            about: format!("built-in switch as {}{as_what}", model.name).leak(),
            model,
            mode,
        })));
        Ok(ModelTarget { place, mode })
    }

    fn kept(self) -> &'static NamedModel {
        let kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get(usize::from(self.place)).expect("targets are created by registration")
    }

    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        self.kept().text
    }

    /// Returns a one-line description.
    pub fn about(self) -> &'static str {
        self.kept().about
    }

    /// Returns the name of its site in the lab.
    pub fn site(self) -> &'static str {
        self.kept().site
    }

    /// Returns the same hardware without OpenFlow; `None` if this is that already.
    pub fn legacy(self) -> Option<ModelTarget> {
        let is_openflow = self.mode == Mode::OpenFlow;
        let text = format!("{PREFIX}{},mode=legacy", self.source());
        is_openflow.then(|| ModelTarget::parse(&text).ok()).flatten()
    }

    /// Returns the mode of the hardware.
    pub fn mode(self) -> Mode {
        self.mode
    }

    /// The model.
    pub fn model(self) -> Arc<Model> {
        Arc::clone(&self.kept().model)
    }

    /// Returns the value of our program's `--model` option.
    pub fn source(self) -> &'static str {
        &self.kept().source
    }
}

/// Loads the model with this name or in this file.
pub fn load(source: &str) -> Result<Arc<Model>, ModelError> {
    if let Some(model) = known::find(source) {
        return Ok(model);
    }
    if !source.contains('/') && !source.ends_with(".toml") {
        return Err(ModelError::Unknown(source.into()));
    }
    let unreadable =
        |error: std::io::Error| ModelError::Unreadable(source.into(), error.to_string());
    let text = std::fs::read_to_string(source).map_err(unreadable)?;
    let model = file::read(&text).map_err(|faults| ModelError::Faults(source.into(), faults))?;
    Ok(Arc::new(model))
}

/// Waits until all entries of a target in a separate process are active.
pub fn settle(peer: &mut dyn Peer, stop: &AtomicBool) -> Result<(), TargetError> {
    let deadline = clock::now().saturating_add(SETTLE_MAX);
    loop {
        let counters = peer.counters().map_err(lab_error)?;
        let waiting = ["model.changes_unwritten", "model.changes_not_acting"];
        if waiting.iter().all(|name| counters.get(*name).is_none_or(|count| *count == 0)) {
            return Ok(());
        }
        if stop.load(Ordering::Relaxed) {
            return Err(TargetError::failed("cannot install flows by OpenFlow", "interrupted"));
        }
        if clock::now() >= deadline {
            let why = format!("some entries are not active after {} s", SETTLE_MAX.as_secs_f64());
            return Err(TargetError::failed("cannot install flows by OpenFlow", why));
        }
        clock::sleep_until(clock::now().saturating_add(SETTLE_INTERVAL));
    }
}

impl std::fmt::Display for ModelError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ModelError::Unknown(name) => write!(
                f,
                "unknown model {name:?} (hint: use one of {}, or a file such as ./my-switch.toml)",
                known::NAMES.join(", ")
            ),
            ModelError::BadOption(option) => {
                write!(
                    f,
                    "unknown option {option:?} of a model (hint: use mode=openflow or mode=legacy)"
                )
            }
            ModelError::Unreadable(file, why) => write!(f, "cannot read model {file}: {why}"),
            ModelError::Faults(file, faults) => {
                let mut lines = format!("cannot use model {file}:");
                for fault in faults {
                    write!(lines, "\n  {file}: {fault}")?;
                }
                f.write_str(&lines)
            }
            ModelError::TooMany(max) => {
                write!(f, "too many models: a run supports at most {max}")
            }
        }
    }
}

impl std::error::Error for ModelError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_name_and_mode_are_one_small_value() {
        let plain = ModelTarget::parse("switch:model=honest").unwrap();
        assert_eq!(ModelTarget::parse("switch:model=honest,mode=openflow"), Ok(plain));
        assert_eq!((plain.name(), plain.source()), ("switch:model=honest", "honest"));
        let legacy = ModelTarget::parse("switch:model=honest,mode=legacy").unwrap();
        assert_eq!(
            (legacy.name(), legacy.mode()),
            ("switch:model=honest,mode=legacy", Mode::Legacy)
        );
        assert!(plain != legacy && plain.site() != legacy.site());
    }

    #[test]
    fn invalid_names_and_files_are_reported_with_a_hint() {
        let error_for = |text: &str| ModelTarget::parse(text).unwrap_err().to_string();
        assert!(error_for("switch:model=hones").contains("use one of honest, "));
        assert!(
            error_for("switch:model=honest,mode=x").contains("use mode=openflow or mode=legacy")
        );
        assert!(
            error_for("switch:model=./no-such.toml")
                .starts_with("cannot read model ./no-such.toml")
        );
        let path =
            std::env::temp_dir().join(format!("planimeter-model-{}.toml", std::process::id()));
        std::fs::write(&path, "name = \"x\"\nabout = \"y\"\n[agent]\nflow_mod_ns = 1\nspeed = 2\n")
            .unwrap();
        let faults = error_for(&format!("switch:model={}", path.display()));
        assert!(
            faults.contains(".toml: line 4: agent.flow_mod_ns: value without source"),
            "{faults}"
        );
        assert!(faults.contains("line 5: agent.speed: unknown key"), "{faults}");
        std::fs::write(&path, known::text("honest").unwrap()).unwrap();
        assert!(ModelTarget::parse(&format!("switch:model={}", path.display())).is_ok());
        std::fs::remove_file(path).unwrap();
    }
}
