//! Form that starts a run: converts its fields to command-line arguments.
//!
//! Invariants:
//! - The text of a field is the value of its option and cannot become another option.
//! - A browser starts no program but this one, neither by a field nor by a plan. Commands, scripts
//!   and other builds are available on the command line only.

use std::path::Path;

use maud::{Markup, html};

use super::page::{NavigationPage, page};
use crate::cli::plan;
use crate::cli::shell_words::quoted;
use crate::cli::trust::ExternalCode;
use runner::python::script;

/// Targets in the selection; others are typed in.
const TARGETS: [&str; 11] = [
    "switch",
    "bridge",
    "router",
    "tagger",
    "linux-bridge",
    "linux-router",
    "linux-tagger",
    "ovs",
    "ovs-dpdk",
    "testpmd",
    "direct",
];

/// Links, the preferred one first.
const LINKS: [(&str, &str); 7] = [
    ("", "the best available"),
    ("veth", "veth"),
    ("veth:xdp", "veth:xdp"),
    ("veth:live", "veth:live"),
    ("memif", "memif"),
    ("memory", "memory"),
    ("replay", "replay"),
];

/// The preselected experiment.
const CHOSEN: &str = "forwarding-rate";

/// Limit of listed plans.
const PLANS_MAX: usize = 50;

/// Limit of experiments in one run.
const EXPERIMENTS_MAX: usize = 64;

/// Values of the form.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FormValues {
    /// The file of a plan, which then sets everything else.
    plan: String,
    experiments: Vec<String>,
    targets: Vec<String>,
    others: String,
    link: String,
    effort: String,
    seed: String,
    set: String,
    strict: bool,
}

/// Why the values are not a valid command line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FormError {
    /// A value is invalid.
    Wrong(String),
    /// It would start a program that a browser may not start.
    Forbidden(String),
}

impl FormError {
    /// Returns the message for the page.
    pub(super) fn line(&self) -> &str {
        let (FormError::Wrong(line) | FormError::Forbidden(line)) = self;
        line
    }
}

impl From<String> for FormError {
    fn from(line: String) -> FormError {
        FormError::Wrong(line)
    }
}

impl FormValues {
    /// Reads the values from a request.
    pub(super) fn of(pairs: &[(String, String)]) -> FormValues {
        let mut filled = FormValues::default();
        for (key, value) in pairs {
            let value = value.trim().to_string();
            match key.as_str() {
                "experiment" if !value.is_empty() => filled.experiments.push(value),
                "plan" => filled.plan = value,
                "target" => filled.targets.push(value),
                "others" => filled.others = value,
                "link" => filled.link = value,
                "effort" => filled.effort = value,
                "seed" => filled.seed = value,
                "set" => filled.set = value,
                "strict" => filled.strict = true,
                _ => {}
            }
        }
        filled
    }

    /// Returns the command-line arguments, without the program and the destination of the run.
    pub(super) fn words(&self) -> Result<Vec<String>, FormError> {
        if !self.plan.is_empty() {
            return self.words_of_plan();
        }
        if self.experiments.is_empty() {
            return Err(FormError::Wrong("no experiment (hint: choose an experiment)".into()));
        }
        if self.experiments.len() > EXPERIMENTS_MAX {
            return Err(format!(
                "too many experiments: this page starts at most {EXPERIMENTS_MAX} in one run"
            )
            .into());
        }
        let mut words = vec!["run".to_string()];
        for name in &self.experiments {
            if script::is_script(name) {
                return Err(forbidden("this", &format!("a script ({name})")));
            }
            let is_known = |entry: &studies::CatalogEntry| entry.id == name || entry.set() == name;
            if !studies::entries().any(is_known) {
                return Err(format!("{name}: no such experiment").into());
            }
            words.push(name.clone());
        }
        let others = self.others.split_whitespace().map(str::to_string);
        words.extend(self.targets.iter().cloned().chain(others).map(|it| format!("--on={it}")));
        let values = [("link", &self.link), ("effort", &self.effort), ("seed", &self.seed)];
        let given = values.into_iter().filter(|(_, value)| !value.is_empty());
        words.extend(given.map(|(key, value)| format!("--{key}={value}")));
        let assignments = self.set.lines().map(str::trim).filter(|line| !line.is_empty());
        words.extend(assignments.map(|line| format!("--set={line}")));
        words.extend(self.strict.then(|| "--strict".to_string()));
        if let Some(word) = words.iter().find(|word| word.contains('\0')) {
            return Err(
                format!("{}: NUL characters are not allowed", word.replace('\0', "?")).into()
            );
        }
        let found = ExternalCode::of_words(&words, Path::new(""));
        match found.code.is_empty() {
            true => Ok(words),
            false => Err(forbidden("this", &found.code.join(", "))),
        }
    }
}

/// Returns the error for a program that a browser may not start.
fn forbidden(what: &str, code: &str) -> FormError {
    FormError::Forbidden(format!(
        "{what} contains {code}, which cannot be started from a browser (hint: start the run from \
         the command line)"
    ))
}

impl FormValues {
    /// Returns the command-line arguments of a plan.
    fn words_of_plan(&self) -> Result<Vec<String>, FormError> {
        let name = &self.plan;
        if !plans().contains(name) {
            return Err(format!(
                "{name}: no such plan in the folder in which the server was started"
            )
            .into());
        }
        let says_more = !self.targets.is_empty()
            || [&self.others, &self.link, &self.set].iter().any(|it| !it.is_empty());
        if says_more {
            return Err(format!(
                "{name} sets targets, link and parameters itself (hint: leave these fields empty, \
                 or choose no plan)"
            )
            .into());
        }
        let text = plan::text_of(Path::new(name)).map_err(|why| format!("{name}: {why}"))?;
        let found = ExternalCode::of_plan(&text, Path::new(""));
        if !found.code.is_empty() {
            return Err(forbidden(name, &found.code.join(", ")));
        }
        let mut words = vec!["run".to_string(), name.clone()];
        words.extend((!self.seed.is_empty()).then(|| format!("--seed={}", self.seed)));
        words.extend(self.strict.then(|| "--strict".to_string()));
        Ok(words)
    }
}

/// Returns the plans in the server's working directory.
fn plans() -> Vec<String> {
    plan::in_folder(Path::new("."), PLANS_MAX)
}

/// Formats the command as a user would type it.
pub(super) fn line(words: &[String], folder: &str) -> String {
    let own = words.iter().map(|word| quoted(word));
    let all: Vec<String> = std::iter::once("planimeter".to_string()).chain(own).collect();
    format!("{} --output {}", all.join(" "), quoted(folder))
}

/// Result of checking the form's values.
pub(super) enum FormCheck {
    /// Not checked.
    Nothing,
    /// Valid: the command, and the output of its dry run.
    Would(String, String),
    /// Invalid: the command if there is one, and the reason.
    Wrong(Option<String>, String),
}

/// Renders the page.
pub(super) fn form(filled: &FormValues, said: &FormCheck) -> Markup {
    page(
        NavigationPage::New,
        "new run",
        &html! {
            h1 { "New run" }
            @match said {
                FormCheck::Nothing => {},
                FormCheck::Would(command, text) => {
                    section.verdict aria-live="polite" {
                        h2 { "Command line" }
                        pre #equal { (command) }
                        h2 { "DryRun run" }
                        pre #would { (text) }
                    }
                },
                FormCheck::Wrong(command, why) => {
                    section.verdict role="alert" {
                        @if let Some(command) = command { h2 { "Command line" } pre #equal { (command) } }
                        p.warn #wrong { (why) }
                    }
                },
            }
            form.new method="post" action="/new" {
                @let plans = plans();
                @if !plans.is_empty() {
                    label { "Plan"
                        select name="plan" {
                            option value="" { "none: use the fields below" }
                            @for name in &plans { option value=(name) selected[filled.plan == *name] { (name) } }
                        }
                        span.hint { "A plan sets experiments, targets, link, effort and \
                                     parameters; only seed and strictness are used with it. Start \
                                     plans with commands, scripts or other builds from the command \
                                     line" }
                    }
                }
                label { "Experiment" (experiments(filled)) }
                (targets(filled))
                label { "Link"
                    select name="link" {
                        @for (value, name) in LINKS { option value=(value) selected[filled.link == value] { (name) } }
                    }
                }
                label { "Effort"
                    select name="effort" {
                        @for (value, about) in EFFORTS { option value=(value) selected[is_effort(filled, value)] { (value) ": " (about) } }
                    }
                }
                label { "Seed of all random choices" input name="seed" inputmode="numeric" value=(filled.seed) placeholder="1"; }
                label { "Parameters"
                    textarea name="set" rows="3" placeholder="frame=64\nentries=1000" { (filled.set) }
                    span.hint { "KEY=VALUE, one per line, as for --set; " code { "check" } " validates them" }
                }
                (parameters(filled))
                fieldset.choices.wideone { legend { "Strictness" } label { input type="checkbox" name="strict" checked[filled.strict]; "fail if a result is irregular or tester-limited" } }
                div.buttons {
                    button name="do" value="check" { "check" }
                    button.main name="do" value="start" { "start" }
                }
            }
        },
    )
}

/// Values of `--effort`.
const EFFORTS: [(&str, &str); 3] = [
    ("quick", "5 repeats of 0.2 s"),
    ("standard", "5 repeats of 2 s"),
    ("full", "3 repeats of 60 s, as in the studies"),
];

fn is_effort(filled: &FormValues, value: &str) -> bool {
    if filled.effort.is_empty() { value == "quick" } else { filled.effort == value }
}

fn experiments(filled: &FormValues) -> Markup {
    let mut sets: Vec<&str> = Vec::new();
    for entry in studies::entries() {
        if !sets.contains(&entry.set()) {
            sets.push(entry.set());
        }
    }
    let chosen = |id: &str| match filled.experiments.first() {
        Some(first) => first == id,
        None => id == CHOSEN,
    };
    html! {
        select name="experiment" {
            @for set in sets {
                optgroup label=(set) {
                    @let own: Vec<&studies::CatalogEntry> = studies::entries().filter(|entry| entry.set() == set).collect();
                    @if own.len() > 1 { option value=(set) selected[chosen(set)] { (set) ": all experiments" } }
                    @for entry in own { option value=(entry.id) selected[chosen(entry.id)] { (entry.id) ": " (entry.title) } }
                }
            }
        }
    }
}

/// Renders the parameters that the selected experiment declares.
fn parameters(filled: &FormValues) -> Markup {
    let chosen = filled.experiments.first().map_or(CHOSEN, String::as_str);
    let entries = studies::entries().filter(|entry| entry.id == chosen || entry.set() == chosen);
    html! {
        details.wideone {
            summary { "Parameters of " (chosen) }
            @for entry in entries {
                @if entry.id != chosen { h3 { (entry.id) } }
                table {
                    tr { th { "parameter" } th { "values" } th { "default" } th { "meaning" } }
                    @for it in entry.declared() {
                        tr { td { code { (it.key) } } td { (it.takes.words(it.unit)) } td { (it.default) } td { (it.help) } }
                    }
                }
            }
        }
    }
}

fn targets(filled: &FormValues) -> Markup {
    let is_chosen = |name: &str| filled.targets.iter().any(|it| it == name);
    html! {
        fieldset {
            legend { "Targets; ratios refer to the first" }
            div.choices {
                @for name in TARGETS {
                    label { input type="checkbox" name="target" value=(name) checked[is_chosen(name)]; (name) }
                }
            }
            label { "Others" input name="others" value=(filled.others) placeholder="switch:model=NAME openflow:tcp:HOST:PORT,ports=1@eth1+2@eth2";
                span.hint { "as for --on, separated by blanks; without targets, all that can run \
                             here are measured" } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(pairs: &[(&str, &str)]) -> FormValues {
        let pairs: Vec<_> =
            pairs.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
        FormValues::of(&pairs)
    }

    #[test]
    fn the_form_gives_a_command_line() {
        let all = filled(&[
            ("experiment", "throughput"),
            ("target", "switch"),
            ("others", " switch:model=x  direct "),
            ("link", "memory"),
            ("effort", "quick"),
            ("seed", "7"),
            ("set", "frame=64\r\n\r\n load=1, 2 "),
            ("strict", "on"),
        ]);
        assert_eq!(
            line(&all.words().unwrap(), "my runs"),
            "planimeter run throughput --on=switch --on=switch:model=x --on=direct --link=memory --effort=quick --seed=7 \
             --set=frame=64 '--set=load=1, 2' --strict --output 'my runs'"
        );
    }

    #[test]
    fn the_parameters_of_the_selected_experiment_are_listed() {
        let of = |id: &str| parameters(&filled(&[("experiment", id)])).into_string();
        assert!(of("latency").contains("<code>load_reference</code>"));
        assert!(!of("throughput").contains("<code>load</code>"));
        assert!(of("").contains("forwarding-rate"));
    }

    #[test]
    fn no_value_becomes_an_option() {
        let evil = "--setup=touch /tmp/x";
        let words =
            filled(&[("experiment", "latency"), ("others", evil), ("seed", evil), ("set", evil)]);
        for word in &words.words().unwrap()[2..] {
            let (key, _) = word.split_once('=').unwrap();
            assert!(["--on", "--seed", "--set"].contains(&key), "{word}");
        }
        for name in ["--setup=x", "-h", "evil.py", "../evil.py", "nothing", ""] {
            assert!(filled(&[("experiment", name)]).words().is_err(), "{name}");
        }
        assert!(filled(&[("experiment", "latency"), ("set", "a\0b")]).words().is_err());
    }
}
