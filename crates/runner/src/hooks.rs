//! User commands around a run: before a target is first opened, between its experiments, and after
//! its last trial.
//!
//! They switch a device to another mode, restart it, or record its output. Each command is one
//! shell line with:
//!
//! - environment variables with the hook, the target, the experiment and the point,
//! - a time limit ([`HOOK_LIMIT`]),
//! - a file for its output.
//!
//! Invariant: a command that fails ends the run, and earlier results remain.

use std::cell::OnceCell;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use os::clock;
use packet::time::Nanos;
use testbed::process::{Process, ProcessSpec};
use testbed::{LabError, RunFolder};

use crate::environment;

/// The key of `--set` whose value is the time limit in seconds.
pub const HOOK_LIMIT: &str = "hook_timeout_s";

/// Interval at which the end of a command is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// When a command is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookTime {
    /// Before a target is opened for the first time.
    Before,
    /// Before a target's next experiment, and when its switch stops responding.
    Between,
    /// After a target's last trial, when the target is closed.
    After,
}

impl HookTime {
    /// The flag on the command line.
    pub fn flag(self) -> &'static str {
        match self {
            HookTime::Before => "--setup",
            HookTime::Between => "--prepare",
            HookTime::After => "--cleanup",
        }
    }

    /// The word in logs, events and the environment of the command.
    pub fn name(self) -> &'static str {
        match self {
            HookTime::Before => "before",
            HookTime::Between => "between",
            HookTime::After => "after",
        }
    }
}

/// The commands of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hooks {
    /// `--setup`.
    pub before: Option<String>,
    /// `--prepare`.
    pub between: Option<String>,
    /// `--cleanup`.
    pub after: Option<String>,
}

/// The context that is passed to a command.
#[derive(Debug, Clone, Copy)]
pub struct HookPoint<'a> {
    /// When it is run.
    pub when: HookTime,
    /// The target's name.
    pub target: &'a str,
    /// The experiment that comes next, or that was the last.
    pub experiment: &'a str,
    /// The point of the target's last trial, if it had any.
    pub point: Option<&'a str>,
}

/// Error of a command; it ends the run.
#[derive(Debug)]
pub struct HookError {
    /// When the command ran.
    pub when: HookTime,
    /// The target's name.
    pub target: String,
    /// The kind of failure.
    pub fault: HookFault,
    /// The file that holds its output.
    pub output: PathBuf,
}

/// Kind of failure of a command.
#[derive(Debug)]
pub enum HookFault {
    /// It exited with this status.
    Ended(String),
    /// It exceeded the time limit, in seconds.
    TooLong(f64),
    /// Ctrl-C.
    Interrupted,
    /// It could not be started.
    Lab(LabError),
}

impl Hooks {
    /// Returns the command for this moment.
    pub fn command(&self, when: HookTime) -> Option<&str> {
        match when {
            HookTime::Before => self.before.as_deref(),
            HookTime::Between => self.between.as_deref(),
            HookTime::After => self.after.as_deref(),
        }
    }

    /// Returns each command with the moment at which it runs.
    pub fn all(&self) -> impl Iterator<Item = (HookTime, &str)> {
        let each = [HookTime::Before, HookTime::Between, HookTime::After];
        each.into_iter().filter_map(|when| Some((when, self.command(when)?)))
    }

    /// Runs the command for this moment, if there is one, and waits for its end.
    ///
    /// Its output is stored below `folder`, the run's folder. Processes that it leaves running end
    /// with `processes`, which the first command creates.
    pub fn run(
        &self,
        occasion: HookPoint<'_>,
        folder: &Path,
        processes: &OnceCell<RunFolder>,
        limit_s: f64,
        stop: &AtomicBool,
    ) -> Result<bool, Box<HookError>> {
        let Some(command) = self.command(occasion.when) else { return Ok(false) };
        let output = output_of(folder, occasion);
        let failed = |fault| {
            let (when, target) = (occasion.when, occasion.target.to_owned());
            Box::new(HookError { when, target, fault, output: output.clone() })
        };
        let lab = |error| failed(HookFault::Lab(error));
        let made = output.parent().map_or(Ok(()), std::fs::create_dir_all);
        made.map_err(|error| lab(LabError::system("create the folder", "hooks", error)))?;
        let processes = match processes.get() {
            Some(processes) => processes,
            None => {
                let created = RunFolder::create(&environment::run_root()).map_err(lab)?;
                processes.get_or_init(|| created)
            }
        };
        let launch = ProcessSpec {
            program: "/bin/sh".into(),
            arguments: vec!["-c".into(), command.into()],
            environment: variables(occasion, folder),
            log: output.clone(),
            namespace: None,
            cores: Vec::new(),
        };
        let mut process = Process::start(launch, processes).map_err(lab)?;
        let deadline = clock::now().saturating_add(Nanos::from_secs_f64(limit_s));
        loop {
            match process.wait_end(POLL_INTERVAL) {
                Ok(status) if status.success() => return Ok(true),
                Ok(status) => return Err(failed(HookFault::Ended(status.to_string()))),
                Err(LabError::NotReady { .. }) => {}
                Err(error) => return Err(lab(error)),
            }
            // Stopping the run does not stop the command that restores a device.
            let is_stopped = occasion.when != HookTime::After && stop.load(Ordering::Relaxed);
            if is_stopped || clock::now() >= deadline {
                process.kill_group().map_err(lab)?;
                let fault =
                    if is_stopped { HookFault::Interrupted } else { HookFault::TooLong(limit_s) };
                return Err(failed(fault));
            }
        }
    }
}

/// Environment variables of a command, in addition to those of this process.
fn variables(occasion: HookPoint<'_>, folder: &Path) -> Vec<(OsString, OsString)> {
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf());
    let mut variables = environment::inherited();
    let mut add = |name: &str, value: OsString| variables.push((name.into(), value));
    add("PLANIMETER_HOOK", occasion.when.name().into());
    add("PLANIMETER_TARGET", occasion.target.into());
    add("PLANIMETER_EXPERIMENT", occasion.experiment.into());
    add("PLANIMETER_RUN", folder.into());
    if let Some(point) = occasion.point {
        add("PLANIMETER_POINT", point.into());
    }
    variables
}

/// Creates the output file of a command, named by experiment and target.
fn output_of(folder: &Path, occasion: HookPoint<'_>) -> PathBuf {
    let plain = |text: &str| -> String {
        let is_plain = |it: char| it.is_ascii_alphanumeric() || it == '-';
        text.chars().map(|it| if is_plain(it) { it } else { '_' }).take(80).collect()
    };
    let (target, experiment) = (plain(occasion.target), plain(occasion.experiment));
    folder.join("hooks").join(format!("{}-{target}-{experiment}.log", occasion.when.name()))
}

impl std::fmt::Display for HookError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (flag, target) = (self.when.flag(), &self.target);
        match &self.fault {
            HookFault::Ended(how) => write!(f, "{flag} on {target} failed: {how}")?,
            HookFault::TooLong(limit_s) => write!(
                f,
                "{flag} on {target} failed: timeout after {limit_s} s (hint: increase --set \
                 {HOOK_LIMIT}=SECONDS)"
            )?,
            HookFault::Interrupted => write!(f, "{flag} on {target} was interrupted")?,
            HookFault::Lab(error) => write!(f, "{flag} on {target} failed: {error}")?,
        }
        write!(f, "; its output is in {}", self.output.display())
    }
}

impl std::error::Error for HookError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn occasion(when: HookTime) -> HookPoint<'static> {
        HookPoint {
            when,
            target: "switch",
            experiment: "bianco2010/fig2",
            point: Some("frame_bytes=64"),
        }
    }

    #[test]
    fn a_command_receives_its_variables_and_a_failure_or_timeout_is_reported() {
        let folder = std::env::temp_dir().join(format!("planimeter-hooks-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let says =
            "echo $PLANIMETER_HOOK $PLANIMETER_TARGET $PLANIMETER_EXPERIMENT $PLANIMETER_POINT";
        let hooks = Hooks {
            before: Some(says.into()),
            between: Some("echo no; exit 3".into()),
            after: Some("sleep 60; true".into()),
        };
        let stop = AtomicBool::new(false);
        // Only the command that must time out has a short limit.
        let limit = |when| if when == HookTime::After { 0.2 } else { 600.0 };
        let processes = OnceCell::new();
        let run = |when| hooks.run(occasion(when), &folder, &processes, limit(when), &stop);
        assert!(run(HookTime::Before).unwrap());
        let printed =
            std::fs::read_to_string(output_of(&folder, occasion(HookTime::Before))).unwrap();
        assert_eq!(printed, "before switch bianco2010/fig2 frame_bytes=64\n");
        let message = run(HookTime::Between).unwrap_err();
        assert!(matches!(message.fault, HookFault::Ended(_)), "{message}");
        let message = message.to_string();
        assert!(message.contains("--prepare on switch failed: exit status: 3"), "{message}");
        let message = run(HookTime::After).unwrap_err().to_string();
        assert!(
            message.contains("timeout after 0.2 s") && message.contains("hook_timeout_s"),
            "{message}"
        );
        assert!(
            !Hooks::default()
                .run(occasion(HookTime::Before), &folder, &processes, 1.0, &stop)
                .unwrap()
        );
        std::fs::remove_dir_all(folder).unwrap();
    }
}
