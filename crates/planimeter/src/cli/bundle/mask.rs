//! Anonymized bundles: records, trials, logs and plan with pseudonyms, a report rebuilt from them,
//! and no captures.
//!
//! Invariants:
//! - One real name has one pseudonym everywhere.
//! - Data derived from a record is derived from the anonymized record, so that it can contain
//!   nothing else.
//! - A file that cannot be anonymized is left out and listed.
//! - An anonymized record is still a valid record; otherwise no bundle is written.

use std::path::{Path, PathBuf};

use record::{Bundle, TrialLine};
use report::Run;
use serde_json::Value;
use store::campaign::{self, CAMPAIGN_FILE, PLAN_FILE};
use store::{LATENCY_FOLDER, RECORD_FILE, TRIALS_FILE};

use super::contents::{Contents, without_dots};
use super::pack::{self, Packer};
use super::{FACTS_FILE, FILES_FOLDER, RUN_FOLDER, refused};
use crate::cli::anonymize::Masking;
use crate::cli::failure::Failure;
use crate::cli::report as reports;

/// Extensions of text files in the folder of a run or campaign.
const TEXTS: [&str; 8] = ["jsonl", "json", "log", "txt", "toml", "xml", "md", "csv"];

/// Writes an anonymized bundle.
pub fn packed(contents: &Contents, hide: &[String], out: &Path) -> Result<Bundle, Failure> {
    let masking = Masking::new(hide);
    let mut packing = Packing { masking, entries: Vec::new(), left_out: Vec::new() };
    let unreadable = |error| reports::unreadable(&error);
    let mut records = Vec::new();
    for folder in &contents.runs {
        let record = store::read_run(folder).map_err(unreadable)?.record;
        packing.masking.learn(&record);
        records.push(record);
    }
    let (found, _) = pack::files_below(&contents.folder)?;
    let mut runs = Vec::new();
    for (folder, record) in contents.runs.iter().zip(&records) {
        let masked = packing.masking.record(record).map_err(|why| refused(folder, why))?;
        runs.push(Run::of(masked, folder));
    }
    packing.files(contents, &found)?;
    packing.derived(contents, &runs);
    let mut facts = pack::facts(contents);
    facts.masked = true;
    facts.left_out.append(&mut packing.left_out);
    for input in &contents.files {
        match std::str::from_utf8(&input.bytes) {
            Ok(text) => {
                let path = packing.masking.text(&without_dots(&input.path));
                let text = packing.masking.text(text);
                packing.add(format!("{FILES_FOLDER}/{path}"), text.into_bytes());
            }
            Err(_) => {
                facts.left_out.push(format!("{}: not text, cannot be anonymized", input.path))
            }
        }
    }
    let plan = packing.masking.text(&contents.plan);
    let facts =
        packing.masking.json(serde_json::to_value(&facts).expect("facts are plain data"), true);
    let facts: Bundle = serde_json::from_value(facts)
        .map_err(|error| refused(out, format!("cannot anonymize {FACTS_FILE}: {error}")))?;
    let mut packer = Packer::create(out)?;
    packer.add_bytes(FACTS_FILE, pack::facts_text(&facts).as_bytes())?;
    packer.add_bytes(PLAN_FILE, plan.as_bytes())?;
    for (path, bytes) in &packing.entries {
        packer.add_bytes(path, bytes)?;
    }
    packer.finish()?;
    Ok(facts)
}

/// Progress of packing.
struct Packing {
    masking: Masking,
    entries: Vec<(String, Vec<u8>)>,
    left_out: Vec<String>,
}

impl Packing {
    fn add(&mut self, path: String, bytes: Vec<u8>) {
        if !self.entries.iter().any(|(known, _)| *known == path) {
            self.entries.push((path, bytes));
        }
    }

    /// Packs the files of a run or campaign that are neither records nor derived from one.
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
                self.left_out.push(format!("{path}: not text, cannot be anonymized"));
                continue;
            };
            let masked = match ending {
                "hgrm" => text,
                "jsonl" | "json" => self.lines(&at, &text)?,
                _ => self.masking.text(&text),
            };
            let path = self.masking.text(path);
            self.add(format!("{RUN_FOLDER}/{path}"), masked.into_bytes());
        }
        if captures > 0 {
            let files = if captures == 1 { "capture" } else { "captures" };
            self.left_out.push(format!("{captures} {files}: frames cannot be anonymized"));
        }
        Ok(())
    }

    /// Anonymizes a JSON file, with one value in total or one per line.
    fn lines(&mut self, at: &Path, text: &str) -> Result<String, Failure> {
        if let Ok(whole) = serde_json::from_str::<Value>(text) {
            let masked = self.masking.json(whole, false);
            let line = serde_json::to_string_pretty(&masked).expect("it is plain data");
            return Ok(if text.lines().count() > 1 { line } else { format!("{masked}\n") });
        }
        let mut out = String::new();
        for line in text.lines() {
            match serde_json::from_str::<Value>(line) {
                Ok(value) => {
                    let masked = self.masking.json(value, false);
                    let is_trials = at.file_name().is_some_and(|name| name == TRIALS_FILE);
                    if is_trials
                        && let Err(error) = serde_json::from_value::<TrialLine>(masked.clone())
                    {
                        return Err(refused(at, format!("cannot anonymize a line: {error}")));
                    }
                    out += &format!("{masked}\n");
                }
                // A truncated last line, or plain text.
                Err(_) => out += &format!("{}\n", self.masking.text(line)),
            }
        }
        Ok(out)
    }

    /// Packs the anonymized records, and the reports made from them.
    fn derived(&mut self, contents: &Contents, runs: &[Run]) {
        for (folder, run) in contents.runs.iter().zip(runs) {
            let inner = folder.strip_prefix(&contents.folder).unwrap_or(Path::new(""));
            let inner = self.masking.text(&inner.to_string_lossy());
            let at =
                if inner.is_empty() { RUN_FOLDER.into() } else { format!("{RUN_FOLDER}/{inner}") };
            self.add(format!("{at}/{RECORD_FILE}"), store::record_text(&run.record).into_bytes());
            for output in report::build(std::slice::from_ref(run)) {
                self.add(format!("{at}/{}", output.path), output.bytes);
            }
        }
        if let Ok((facts, _)) = campaign::read(&contents.folder)
            && !runs.is_empty()
        {
            let steps = facts.steps.iter().map(|step| (step.folder.clone(), &step.name));
            let steps: Vec<(String, &String)> = steps.collect();
            let mut named = |(folder, run): (&PathBuf, &Run)| {
                let is = |(inner, _): &&(String, &String)| folder.ends_with(inner);
                let name = steps.iter().find(is).map(|(_, name)| self.masking.text(name));
                run.clone().as_step(&name.unwrap_or_default())
            };
            let named: Vec<Run> = contents.runs.iter().zip(runs).map(&mut named).collect();
            let name = self.masking.text(&facts.name);
            for output in report::build_of(Some(&name), &named) {
                self.add(format!("{RUN_FOLDER}/{}", output.path), output.bytes);
            }
        }
    }
}
