//! Sequence of a plan's runs, each in a subfolder of the campaign.
//!
//! Invariants:
//! - A complete run is never measured again.
//! - A started run resumes at its next trial, from its own record.
//! - The remaining work of a campaign follows from its folder alone.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use record::{CampaignStep, Record, SCHEMA, Tool};
use report::Run;
use report::analysis::failed;
use report::finding;
use report::summary;
use store::database::address::Address;
use store::lock::Locked;
pub use store::{Output, campaign as stored};

use super::gates::{self, GateResult};
use super::steps::StepOptions;
use super::{Plan, given_effort, stored_effort, told_folder};
use crate::cli::failure::{self, Failure, FailureKind};
use crate::cli::output::{self, remark, to_stdout};
use crate::cli::resume;
use crate::cli::run::{self, Arguments};
use crate::cli::team_store;
use crate::cli::trust;
use crate::cli::variables;
use runner::Destination;
use workload::parameter::Effort;

/// A plan and the folder of its runs.
pub struct Campaign {
    plan: Plan,
    folder: PathBuf,
    facts: record::Campaign,
    is_trusted: bool,
    /// Lock against other processes; `None` for read-only access.
    _lock: Option<Locked>,
}

impl Campaign {
    /// Creates a new folder for a plan.
    pub fn begin(plan: Plan, beside: StepOptions) -> Result<Campaign, Failure> {
        let created = runner::environment::wall_clock();
        let day = created.split('T').next().unwrap_or_default();
        let refused = |error: store::StoreError| {
            Failure::usage(format!("{error} (hint: choose another folder with --output DIR)"))
        };
        let folder = store::new_folder(&plan.out, day, &plan.name).map_err(refused)?;
        Campaign::begin_in(folder, plan, beside)
    }

    /// Uses this folder, which was created for a plan.
    pub fn begin_in(folder: PathBuf, plan: Plan, beside: StepOptions) -> Result<Campaign, Failure> {
        let steps = plan.steps.iter().enumerate().map(|(number, (step, plan))| CampaignStep {
            name: step.name.clone(),
            folder: folder_of(number, &step.name),
            command_line: plan.command_line.clone(),
        });
        let facts = record::Campaign {
            schema: SCHEMA,
            tool: Tool { name: "planimeter".into(), version: crate::VERSION.into() },
            created: runner::environment::wall_clock(),
            name: plan.name.clone(),
            effort: beside.effort.map(|effort| stored_effort(Effort::from(effort))),
            seed: beside.seed,
            strict: plan.is_strict,
            steps: steps.collect(),
        };
        let refused = |error: store::StoreError| Failure::usage(error.to_string());
        stored::write(&folder, &facts, &plan.text).map_err(refused)?;
        let lock = Locked::take(&folder).map_err(refused)?;
        trust::sign_plan(&folder, &plan.text);
        // Code of other users was checked before.
        Ok(Campaign { plan, folder, facts, is_trusted: true, _lock: lock })
    }

    /// Opens the campaign of a folder to resume it.
    pub fn resume(folder: &Path, arguments: &Arguments) -> Result<Campaign, Failure> {
        let refused = |error: store::StoreError| Failure::usage(error.to_string());
        let lock = match arguments.dry_run {
            true => None,
            false => Locked::take(folder).map_err(refused)?,
        };
        let (facts, text) = stored::read(folder).map_err(refused)?;
        let folder = std::path::absolute(folder)
            .map_err(|error| Failure::usage(format!("{}: {error}", folder.display())))?;
        super::enter(&folder)?;
        trust::allow_plan(&folder, &text, arguments.trust)?;
        let beside = StepOptions { effort: facts.effort.map(given_effort), seed: facts.seed };
        let file = folder.join(stored::PLAN_FILE).display().to_string();
        let strict = arguments.strict || facts.strict;
        let asked =
            Arguments { strict, out: folder.parent().map(Path::to_path_buf), ..arguments.clone() };
        let plan = Plan::understood((&file, &facts.name), text, beside, &asked)?;
        let names = plan.steps.iter().map(|(step, _)| &step.name);
        if !names.eq(facts.steps.iter().map(|step| &step.name)) {
            return Err(Failure::usage(format!(
                "the steps of {file} changed after the campaign started (hint: restore the file, \
                 or run 'planimeter run {file}')"
            )));
        }
        Ok(Campaign { plan, folder, facts, is_trusted: arguments.trust, _lock: lock })
    }

    /// Runs the remaining measurements, judges the gates, and prints the results.
    pub fn carry_out(self, arguments: &Arguments) -> Result<ExitCode, Failure> {
        if arguments.dry_run {
            to_stdout(format_args!("{}", self.plan.dry()));
            return Ok(ExitCode::SUCCESS);
        }
        let store = team_store::asked(arguments.store.as_ref())?;
        let store = store.as_ref();
        let done = self.measured(store).and_then(|records| {
            let judged = gates::judged(&self.plan, &records, &mut |folder, again| {
                let place = (&*self.folder.join(folder), self.is_trusted, self.plan.is_strict);
                measured(place, None, again, store)
            })?;
            Ok((records, judged))
        });
        let (records, judged) = done.map_err(|failure| self.can_go_on(failure))?;
        self.kept(arguments, &judged)?;
        self.told(arguments, &records, &judged);
        let code = gates::exit_code(&judged, self.plan.is_strict);
        let failed: Vec<String> = records
            .iter()
            .filter(|record| failed::has_failed(record) || failed::has_failed_module(record))
            .filter_map(finding::failure)
            .collect();
        if code == failure::EXIT_DONE && !failed.is_empty() {
            failed.iter().for_each(|line| remark!("{line}"));
            return Ok(failure::EXIT_IRREGULAR.into());
        }
        if code == failure::EXIT_DONE
            && self.plan.is_strict
            && records.iter().any(Record::is_doubtful)
        {
            remark!("a result is irregular or tester-limited, and the plan is strict");
            return Ok(failure::EXIT_IRREGULAR.into());
        }
        Ok(code.into())
    }

    fn measured(&self, store: Option<&Address>) -> Result<Vec<Record>, Failure> {
        let mut records = Vec::new();
        let all = self.plan.steps.len();
        for (number, ((step, plan), facts)) in
            self.plan.steps.iter().zip(&self.facts.steps).enumerate()
        {
            remark!("step {} of {all}, {}: {}", number + 1, step.name, plan.command_line);
            let folder = self.folder.join(&facts.folder);
            let place = (&*folder, self.is_trusted, self.plan.is_strict);
            records.push(measured(place, Some(plan), &step.arguments, store)?);
        }
        let runs: Vec<Run> = records
            .iter()
            .zip(&self.facts.steps)
            .map(|(record, facts)| {
                let run = Run::of(record.clone(), &self.folder.join(&facts.folder));
                run.as_step(&facts.name)
            })
            .collect();
        self.write(&report::build_of(Some(&self.facts.name), &runs))?;
        Ok(records)
    }

    fn write(&self, outputs: &[Output]) -> Result<(), Failure> {
        let written = store::write_outputs(&self.folder, outputs);
        written.map_err(|error| Failure::usage(error.to_string()))
    }

    /// Stores the gate results, in the campaign's folder and in the requested files.
    fn kept(&self, arguments: &Arguments, judged: &[GateResult]) -> Result<(), Failure> {
        let asked = [
            (&arguments.junit, gates::junit(judged)),
            (&arguments.markdown, gates::markdown(judged)),
        ];
        for (file, text) in &asked {
            let Some(file) = file else { continue };
            let written = std::fs::write(file, text);
            written.map_err(|error| Failure::usage(format!("{}: {error}", file.display())))?;
        }
        if judged.is_empty() {
            return Ok(());
        }
        let [junit, markdown] = asked.map(|(_, text)| text);
        let json = serde_json::to_string_pretty(judged).expect("comparisons are plain data");
        self.write(&[
            Output::text("gates.xml", junit),
            Output::text("gates.md", markdown),
            Output::text("gates.json", json),
        ])
    }

    fn told(&self, arguments: &Arguments, records: &[Record], judged: &[GateResult]) {
        if arguments.json {
            let all = serde_json::json!({
                "campaign": self.facts, "folder": self.folder, "runs": records, "gates": judged,
            });
            to_stdout(format_args!("{all:#}\n"));
            remark!("{}", self.folder.join("report.html").display());
            return;
        }
        let named = |step: &CampaignStep| format!("step {}", step.name);
        let named: Vec<(Option<String>, &Record)> =
            self.facts.steps.iter().map(|step| Some(named(step))).zip(records).collect();
        output::summary(&summary::markdown_of(Some(&self.facts.name), &named));
        to_stdout(format_args!("{}", gates::text(judged)));
        told_folder(&self.folder);
    }

    /// Adds a hint to a failure: how to resume the campaign.
    fn can_go_on(&self, failure: Failure) -> Failure {
        let on = format!("continue with 'planimeter run --resume {}'", self.folder.display());
        let line = match failure.line.strip_suffix(')') {
            Some(line) if line.contains("(hint: ") => format!("{line}, then {on})"),
            _ => format!("{} (hint: {on})", failure.line),
        };
        Failure { line, ..failure }
    }
}

/// Returns the name of a step's folder.
pub fn folder_of(number: usize, name: &str) -> String {
    format!("{}-{name}", number + 1)
}

/// Runs the remaining measurements of the run in a folder, as planned, or with these arguments.
fn measured(
    (folder, is_trusted, is_strict): (&Path, bool, bool),
    plan: Option<&runner::Plan>,
    arguments: &Arguments,
    store: Option<&Address>,
) -> Result<Record, Failure> {
    let unreadable = |error: store::StoreError| Failure::usage(error.to_string());
    let (plan, destination) = if store::has_run(folder) {
        let record = store::read_record(folder).map_err(unreadable)?;
        if !record.partial {
            resume::reported(folder)?;
            return Ok(record);
        }
        resume::opened(folder, is_trusted)?
    } else {
        let plan = plan.cloned().map_or_else(|| run::new_plan(arguments), Ok)?;
        let created = runner::environment::wall_clock();
        (runner::Plan { created, ..plan }, Destination::At(folder.to_path_buf()))
    };
    let finished =
        run::execute_plan(&plan, destination, &variables::surroundings()?, store, is_strict)?;
    if finished.record.partial {
        let line = "interrupted: partial results are kept".into();
        return Err(Failure { kind: FailureKind::Interrupted, line });
    }
    Ok(finished.record)
}
