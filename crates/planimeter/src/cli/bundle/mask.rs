//! A bundle that says nothing of whose network it was: records, trials, logs and plan with made-up names, the report made anew from
//! them, captures left out.
//!
//! Invariants: one real word has one made-up word everywhere; what is derived from a record is derived from the masked one, so that
//! it can hold nothing else; what cannot be masked is left out and named; a masked record is still a record, or there is no
//! bundle.

mod words;

use std::path::Path;

use results::record::{Bundle, Line, Record};
use results::report::{self, Run};
use results::store::campaign::{self, CAMPAIGN_FILE, PLAN_FILE};
use results::store::{self, LATENCY_FOLDER, RECORD_FILE, TRIALS_FILE};
use serde_json::Value;

use super::contents::{Contents, without_dots};
use super::pack::{self, Packer};
use super::{FACTS_FILE, FILES_FOLDER, RUN_FOLDER, refused};
use crate::cli::failure::Failure;
use crate::cli::{place, report as reports};
use words::{Sort, Words};

/// Settings of a target that tell who it is.
const SERIALS: [&str; 2] = ["serial_number", "datapath"];

/// Maps of a record whose keys anybody chooses.
const FREE: [&str; 3] = ["settings", "parameters", "versions"];

/// What is in the folder of a run or campaign and is kept as text.
const TEXTS: [&str; 8] = ["jsonl", "json", "log", "txt", "toml", "xml", "md", "csv"];

/// Writes a masked bundle.
pub fn packed(contents: &Contents, hide: &[String], out: &Path) -> Result<Bundle, Failure> {
    let mut masking =
        Masking { words: Words::default(), entries: Vec::new(), left_out: Vec::new() };
    for word in hide {
        masking.words.learn(Sort::Hidden, word);
    }
    masking.machine();
    let unreadable = |error| reports::unreadable(&error);
    let mut records = Vec::new();
    for folder in &contents.runs {
        let record = store::read_run(folder).map_err(unreadable)?.0;
        masking.learn(&record);
        records.push(record);
    }
    let (found, _) = pack::files_below(&contents.folder)?;
    let mut runs = Vec::new();
    for (folder, record) in contents.runs.iter().zip(&records) {
        let masked = masking.record(record).map_err(|why| refused(folder, why))?;
        runs.push(Run::of(masked, folder));
    }
    masking.files(contents, &found)?;
    masking.derived(contents, &runs);
    let mut facts = pack::facts(contents);
    facts.masked = true;
    facts.left_out.append(&mut masking.left_out);
    for input in &contents.files {
        match std::str::from_utf8(&input.bytes) {
            Ok(text) => {
                let path = masking.words.masked(&without_dots(&input.path));
                let text = masking.words.masked(text);
                masking.add(format!("{FILES_FOLDER}/{path}"), text.into_bytes());
            }
            Err(_) => facts
                .left_out
                .push(format!("{}, which is no text and cannot be masked", input.path)),
        }
    }
    let plan = masking.words.masked(&contents.plan);
    let facts = masking.json(serde_json::to_value(&facts).expect("facts are plain data"), true);
    let facts: Bundle = serde_json::from_value(facts)
        .map_err(|error| refused(out, format!("{FACTS_FILE} cannot be masked: {error}")))?;
    let mut packer = Packer::create(out)?;
    packer.add_bytes(FACTS_FILE, pack::facts_text(&facts).as_bytes())?;
    packer.add_bytes(PLAN_FILE, plan.as_bytes())?;
    for (path, bytes) in &masking.entries {
        packer.add_bytes(path, bytes)?;
    }
    packer.finish()?;
    Ok(facts)
}

/// What is masked so far.
struct Masking {
    words: Words,
    entries: Vec<(String, Vec<u8>)>,
    left_out: Vec<String>,
}

impl Masking {
    fn add(&mut self, path: String, bytes: Vec<u8>) {
        if !self.entries.iter().any(|(known, _)| *known == path) {
            self.entries.push((path, bytes));
        }
    }

    /// This machine and who uses it: most bundles are made where was measured.
    fn machine(&mut self) {
        if let Ok(host) = std::fs::read_to_string("/proc/sys/kernel/hostname") {
            let host = host.trim();
            self.words.learn(Sort::Host, host);
            self.words.learn(Sort::Host, host.split('.').next().unwrap_or_default());
        }
        for variable in ["USER", "LOGNAME", "SUDO_USER"] {
            if let Some(user) = place::variable(variable) {
                self.words.learn(Sort::User, &user);
            }
        }
    }

    /// Names that stand in a record.
    fn learn(&mut self, record: &Record) {
        for target in &record.targets {
            self.target(&target.name);
            self.target(&target.spec);
            for (key, value) in &target.settings {
                if key.starts_with("port_") {
                    self.words.learn(Sort::Interface, value);
                }
                if SERIALS.contains(&key.as_str()) {
                    self.words.learn(Sort::Serial, value);
                }
            }
        }
        let set = record.parameters.get("set").and_then(Value::as_array);
        for word in set.into_iter().flatten().filter_map(Value::as_str) {
            match word.split_once('=') {
                Some(("snmp_interfaces", names)) => {
                    names.split(',').for_each(|name| self.words.learn(Sort::Interface, name));
                }
                Some(("snmp", host)) => self.host(host),
                _ => {}
            }
        }
        for witness in record.trials.iter().filter_map(|trial| trial.witness.as_ref()) {
            for interface in &witness.interfaces {
                self.words.learn(Sort::Interface, &interface.name);
            }
        }
    }

    /// What a device's name says of it.
    fn target(&mut self, name: &str) {
        let device = name.strip_prefix("openflow:").or_else(|| name.strip_prefix("device:"));
        let Some(device) = device else { return };
        for part in device.split(',') {
            if let Some(ports) = part.strip_prefix("ports=") {
                let interfaces = ports.split('+').filter_map(|port| port.split_once('@'));
                interfaces.for_each(|(_, name)| self.words.learn(Sort::Interface, name));
            } else if let Some(host) = part.strip_prefix("snmp=") {
                self.host(host);
            } else if let Some((kind, rest)) = part.split_once(':')
                && matches!(kind, "tcp" | "ssl")
            {
                self.host(rest);
            }
        }
    }

    /// A host, perhaps with its port.
    fn host(&mut self, text: &str) {
        if !text.starts_with('[') {
            self.words.learn(Sort::Host, text.split(':').next().unwrap_or_default());
        }
    }

    /// A value in which every text is masked, and keys where anybody chooses them.
    fn json(&mut self, value: Value, is_free: bool) -> Value {
        match value {
            Value::String(text) => Value::String(self.words.masked(&text)),
            Value::Array(all) => all.into_iter().map(|it| self.json(it, is_free)).collect(),
            Value::Object(all) => {
                let one = |(key, value): (String, Value)| {
                    let is_inside = FREE.contains(&key.as_str());
                    let key = if is_free { self.words.masked(&key) } else { key };
                    (key, self.json(value, is_inside))
                };
                all.into_iter().map(one).collect()
            }
            other => other,
        }
    }

    fn record(&mut self, record: &Record) -> Result<Record, String> {
        let value = serde_json::to_value(record).map_err(|error| error.to_string())?;
        let masked = self.json(value, false);
        serde_json::from_value(masked).map_err(|error| {
            format!("masked, it is no record ({error}): a name in it is a word of records; call that otherwise")
        })
    }

    /// The files of a run or campaign that are no record and not derived from one.
    fn files(&mut self, contents: &Contents, found: &[String]) -> Result<(), Failure> {
        let mut captures = 0;
        for path in found {
            let at = contents.folder.join(path);
            let parts: Vec<&str> = path.split('/').collect();
            let name = parts[parts.len() - 1];
            let folder = if parts.len() > 1 { parts[parts.len() - 2] } else { "" };
            let ending = name.rsplit('.').next().unwrap_or_default();
            if name == RECORD_FILE {
                continue;
            }
            let is_kept = folder == LATENCY_FOLDER && ending == "hgrm"
                || matches!(folder, "modules" | "hooks")
                || matches!(name, TRIALS_FILE | CAMPAIGN_FILE | PLAN_FILE)
                || name.starts_with("gates.");
            if !is_kept {
                if ending == "pcapng" {
                    captures += 1;
                }
                continue;
            }
            let is_text = TEXTS.contains(&ending) || ending == "hgrm";
            let bytes = std::fs::read(&at).map_err(|error| refused(&at, error))?;
            let Some(text) = String::from_utf8(bytes).ok().filter(|_| is_text) else {
                self.left_out.push(format!("{path}, which is no text and cannot be masked"));
                continue;
            };
            let masked = match ending {
                "hgrm" => text,
                "jsonl" | "json" => self.lines(&at, &text)?,
                _ => self.words.masked(&text),
            };
            let path = self.words.masked(path);
            self.add(format!("{RUN_FOLDER}/{path}"), masked.into_bytes());
        }
        if captures > 0 {
            let files = if captures == 1 { "capture" } else { "captures" };
            self.left_out.push(format!("{captures} {files}, whose frames cannot be masked"));
        }
        Ok(())
    }

    /// A file of JSON, of one value or of one in each line.
    fn lines(&mut self, at: &Path, text: &str) -> Result<String, Failure> {
        if let Ok(whole) = serde_json::from_str::<Value>(text) {
            let masked = self.json(whole, false);
            let line = serde_json::to_string_pretty(&masked).expect("it is plain data");
            return Ok(if text.lines().count() > 1 { line } else { format!("{masked}\n") });
        }
        let mut out = String::new();
        for line in text.lines() {
            match serde_json::from_str::<Value>(line) {
                Ok(value) => {
                    let masked = self.json(value, false);
                    let is_trials = at.file_name().is_some_and(|name| name == TRIALS_FILE);
                    if is_trials && let Err(error) = serde_json::from_value::<Line>(masked.clone())
                    {
                        return Err(refused(
                            at,
                            format!("masked, a line is none of a run: {error}"),
                        ));
                    }
                    out += &format!("{masked}\n");
                }
                // A last line that was cut short, or words.
                Err(_) => out += &format!("{}\n", self.words.masked(line)),
            }
        }
        Ok(out)
    }

    /// Masked records, and the reports that follow from them.
    fn derived(&mut self, contents: &Contents, runs: &[Run]) {
        for (folder, run) in contents.runs.iter().zip(runs) {
            let inner = folder.strip_prefix(&contents.folder).unwrap_or(Path::new(""));
            let inner = self.words.masked(&inner.to_string_lossy());
            let at =
                if inner.is_empty() { RUN_FOLDER.into() } else { format!("{RUN_FOLDER}/{inner}") };
            self.add(format!("{at}/{RECORD_FILE}"), store::record_text(&run.record).into_bytes());
            for output in report::build(std::slice::from_ref(run)) {
                self.add(format!("{at}/{}", output.path), output.bytes);
            }
        }
        if campaign::is_campaign(&contents.folder) && !runs.is_empty() {
            for output in report::build(runs) {
                self.add(format!("{RUN_FOLDER}/{}", output.path), output.bytes);
            }
        }
    }
}
