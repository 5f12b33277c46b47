//! Starts runs: the same program, in a separate process, with a command line that the page shows.
//!
//! The program itself checks the command line (`--dry-run`), so that there is only one parser.
//! Invariants:
//! - At most one run is active.
//! - The process outlives the server, and ends cleanly on SIGINT.
//! - The signal is sent only before the process is reaped, so that its process id cannot belong to
//!   another process.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use os::clock;
use packet::time::Nanos;
use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;

use runner::environment::STORE_VARIABLE;

/// Limit of stored output lines of a run.
const LINES_MAX: usize = 20;

/// Length limit of a line, in characters.
const LETTERS_MAX: usize = 500;

/// Limit of a dry run's output, in bytes.
const DRY_BYTES_MAX: u64 = 64 << 10;

/// Time limit of a dry run.
const DRY: Nanos = Nanos::from_secs(30);

/// Interval at which the end of a process is polled.
const POLL_INTERVAL: Nanos = Nanos::from_millis(100);

/// Starter of runs.
pub(super) struct RunLauncher {
    program: PathBuf,
    folder: PathBuf,
    /// The team store that receives the runs, if the command line named one.
    store: Option<String>,
    current: Arc<Mutex<Option<StartedRun>>>,
}

/// The run that was started last.
struct StartedRun {
    command: String,
    process: u32,
    /// `None` after the process was reaped.
    child: Option<Child>,
    ended: Option<ExitStatus>,
    said: VecDeque<String>,
}

/// Status of the last run for pages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Status {
    /// The command line.
    pub(super) command: String,
    /// Its process id.
    pub(super) process: u32,
    /// Whether it is active.
    pub(super) runs: bool,
    /// How it ended, if with an error.
    pub(super) ended: Option<String>,
    /// Its last output lines.
    pub(super) said: Vec<String>,
}

/// Why a run is not started.
#[derive(Debug)]
pub(super) enum LaunchError {
    /// Another run is active, with this process id.
    Busy(u32),
    /// The program rejected the command line, with its message.
    Wrong(String),
    /// The program cannot be started.
    Failed(io::Error),
}

impl RunLauncher {
    pub(super) fn new(program: PathBuf, folder: PathBuf, store: Option<String>) -> RunLauncher {
        RunLauncher { program, folder, store, current: Arc::default() }
    }

    fn command(&self, words: &[String]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(words).arg("--output").arg(&self.folder).stdin(Stdio::null()).process_group(0);
        if let Some(store) = &self.store {
            command.env(STORE_VARIABLE, store);
        }
        command
    }

    /// Checks a command line with a dry run, and returns its output.
    pub(super) fn dry(&self, words: &[String]) -> Result<String, LaunchError> {
        let mut command = self.command(words);
        command.arg("--dry-run").stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(LaunchError::Failed)?;
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let begun = clock::now();
        let [out, err] = std::thread::scope(|scope| {
            let read = |pipe: Option<Box<dyn Read + Send>>| {
                scope.spawn(move || {
                    let mut text = Vec::new();
                    pipe.map(|pipe| pipe.take(DRY_BYTES_MAX).read_to_end(&mut text));
                    String::from_utf8_lossy(&text).into_owned()
                })
            };
            let both =
                [read(out.map(|it| Box::new(it) as _)), read(err.map(|it| Box::new(it) as _))];
            while child.try_wait().is_ok_and(|ended| ended.is_none()) {
                if clock::now().since(begun) >= DRY {
                    let _ = child.kill();
                }
                clock::sleep_until(clock::now().saturating_add(Nanos::from_millis(20)));
            }
            both.map(|reader| reader.join().unwrap_or_default())
        });
        match child.wait().map_err(LaunchError::Failed)? {
            status if status.success() => Ok(out),
            status if err.trim().is_empty() => Err(LaunchError::Wrong(told(status))),
            _ => {
                let line = err.lines().last().unwrap_or_default();
                Err(LaunchError::Wrong(line.trim_start_matches("planimeter: ").into()))
            }
        }
    }

    /// Starts a run.
    pub(super) fn start(&self, words: &[String], line: String) -> Result<u32, LaunchError> {
        let mut current = lock(&self.current);
        if let Some(begun) = current.as_ref().filter(|begun| begun.child.is_some()) {
            return Err(LaunchError::Busy(begun.process));
        }
        let mut command = self.command(words);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(LaunchError::Failed)?;
        let process = child.id();
        let stderr = child.stderr.take();
        let (child, said) = (Some(child), VecDeque::new());
        *current = Some(StartedRun { command: line, process, child, ended: None, said });
        let shared = Arc::clone(&self.current);
        // Without these threads the run still works.
        let reader = std::thread::Builder::new().name("listening".into());
        let heard = Arc::clone(&self.current);
        let _ = stderr.map(|pipe| reader.spawn(move || listen(pipe, &heard, process)));
        let waiter = std::thread::Builder::new().name("waiting".into());
        let _ = waiter.spawn(move || wait(&shared, process));
        Ok(process)
    }

    /// Sends SIGINT to the run; returns whether one was active.
    pub(super) fn stop(&self) -> bool {
        let current = lock(&self.current);
        let Some(begun) = current.as_ref().filter(|begun| begun.child.is_some()) else {
            return false;
        };
        let pid = i32::try_from(begun.process).ok().and_then(Pid::from_raw);
        pid.is_some_and(|pid| kill_process(pid, Signal::INT).is_ok())
    }

    /// Returns the status of the run that was started last.
    pub(super) fn status(&self) -> Option<Status> {
        let current = lock(&self.current);
        current.as_ref().map(|begun| Status {
            command: begun.command.clone(),
            process: begun.process,
            runs: begun.child.is_some(),
            ended: begun.ended.filter(|status| !status.success()).map(told),
            said: begun.said.iter().cloned().collect(),
        })
    }

    /// Returns the process id of the active run.
    pub(super) fn running(&self) -> Option<u32> {
        self.status().filter(|status| status.runs).map(|status| status.process)
    }
}

/// Locks a mutex; data in here is consistent even if a thread panicked.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps the last output lines, and reads all output so that the process never blocks on a full
/// pipe.
fn listen(mut pipe: impl Read, current: &Mutex<Option<StartedRun>>, process: u32) {
    let (mut bytes, mut line) = ([0; 4096], Vec::new());
    while let Ok(count) = pipe.read(&mut bytes) {
        if count == 0 {
            break;
        }
        for &byte in &bytes[..count] {
            if byte != b'\n' {
                if line.len() < LETTERS_MAX {
                    line.push(byte);
                }
                continue;
            }
            let text = String::from_utf8_lossy(&std::mem::take(&mut line)).into_owned();
            let mut current = lock(current);
            let Some(begun) = current.as_mut().filter(|it| it.process == process) else { return };
            if begun.said.len() == LINES_MAX {
                begun.said.pop_front();
            }
            begun.said.push_back(text);
        }
    }
}

/// Waits until the process has ended.
fn wait(current: &Mutex<Option<StartedRun>>, process: u32) {
    loop {
        {
            let mut current = lock(current);
            let Some(begun) = current.as_mut().filter(|it| it.process == process) else { return };
            let Some(child) = &mut begun.child else { return };
            match child.try_wait() {
                Ok(None) => {}
                Ok(Some(status)) => {
                    (begun.child, begun.ended) = (None, Some(status));
                    return;
                }
                Err(_) => {
                    begun.child = None;
                    return;
                }
            }
        }
        clock::sleep_until(clock::now().saturating_add(POLL_INTERVAL));
    }
}

fn told(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(130), _) => "interrupted: partial results are kept".into(),
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("stopped by signal {signal}"),
        (None, None) => "ended".into(),
    }
}

impl std::fmt::Display for LaunchError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            LaunchError::Busy(process) => {
                write!(
                    f,
                    "a run that was started here is active, process {process} (hint: stop it, or \
                     wait for its end)"
                )
            }
            LaunchError::Wrong(line) => write!(f, "{line}"),
            LaunchError::Failed(error) => write!(f, "cannot start the program: {error}"),
        }
    }
}
