//! Runs that are begun here: the same program with a command line that is shown, in a process of its own.
//!
//! Whether a command line is right is asked of the program itself (`--dry-run`), so that there is one reader of command lines and one
//! only. Invariants: one run at a time; the process outlives this one, and ends cleanly when it is told to (SIGINT); it is told so only
//! while it is ours and not waited for, so that its number cannot have changed hands.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use packet::time::Nanos;
use ports::clock;
use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;

use crate::cli::team::STORE_VARIABLE;

/// Lines of what a run says that are kept.
const LINES_MAX: usize = 20;

/// Letters of a line.
const LETTERS_MAX: usize = 500;

/// Bytes of what a dry run says.
const DRY_BYTES_MAX: u64 = 64 << 10;

/// How long a dry run may take.
const DRY: Nanos = Nanos::from_secs(30);

/// How often is looked whether one has ended.
const LOOK: Nanos = Nanos::from_millis(100);

/// Begins runs.
pub(super) struct Starter {
    program: PathBuf,
    folder: PathBuf,
    /// The store for teams to which it goes, where the command line named it.
    store: Option<String>,
    current: Arc<Mutex<Option<Begun>>>,
}

/// The run that was begun last.
struct Begun {
    command: String,
    process: u32,
    /// None once it was waited for.
    child: Option<Child>,
    ended: Option<ExitStatus>,
    said: VecDeque<String>,
}

/// The same for pages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Status {
    /// The command line.
    pub(super) command: String,
    /// Its process.
    pub(super) process: u32,
    /// Whether it goes on.
    pub(super) runs: bool,
    /// How it ended, if not well.
    pub(super) ended: Option<String>,
    /// What it said last.
    pub(super) said: Vec<String>,
}

/// Why a run is not begun.
#[derive(Debug)]
pub(super) enum Refused {
    /// One is under way: its process.
    Busy(u32),
    /// The program says that it cannot be: in its words.
    Wrong(String),
    /// The program cannot be started.
    Failed(io::Error),
}

impl Starter {
    pub(super) fn new(program: PathBuf, folder: PathBuf, store: Option<String>) -> Starter {
        Starter { program, folder, store, current: Arc::default() }
    }

    fn command(&self, words: &[String]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(words).arg("--out").arg(&self.folder).stdin(Stdio::null()).process_group(0);
        if let Some(store) = &self.store {
            command.env(STORE_VARIABLE, store);
        }
        command
    }

    /// What a run would do, in the program's own words.
    pub(super) fn dry(&self, words: &[String]) -> Result<String, Refused> {
        let mut command = self.command(words);
        command.arg("--dry-run").stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(Refused::Failed)?;
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
        match child.wait().map_err(Refused::Failed)? {
            status if status.success() => Ok(out),
            status if err.trim().is_empty() => Err(Refused::Wrong(told(status))),
            _ => {
                let line = err.lines().last().unwrap_or_default();
                Err(Refused::Wrong(line.trim_start_matches("planimeter: ").into()))
            }
        }
    }

    /// Begins a run.
    pub(super) fn start(&self, words: &[String], line: String) -> Result<u32, Refused> {
        let mut current = lock(&self.current);
        if let Some(begun) = current.as_ref().filter(|begun| begun.child.is_some()) {
            return Err(Refused::Busy(begun.process));
        }
        let mut command = self.command(words);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(Refused::Failed)?;
        let process = child.id();
        let stderr = child.stderr.take();
        let (child, said) = (Some(child), VecDeque::new());
        *current = Some(Begun { command: line, process, child, ended: None, said });
        let shared = Arc::clone(&self.current);
        // Without the threads the run goes on all the same.
        let reader = std::thread::Builder::new().name("listening".into());
        let heard = Arc::clone(&self.current);
        let _ = stderr.map(|pipe| reader.spawn(move || listen(pipe, &heard, process)));
        let waiter = std::thread::Builder::new().name("waiting".into());
        let _ = waiter.spawn(move || wait(&shared, process));
        Ok(process)
    }

    /// Has the run end cleanly; whether there was one.
    pub(super) fn stop(&self) -> bool {
        let current = lock(&self.current);
        let Some(begun) = current.as_ref().filter(|begun| begun.child.is_some()) else {
            return false;
        };
        let pid = i32::try_from(begun.process).ok().and_then(Pid::from_raw);
        pid.is_some_and(|pid| kill_process(pid, Signal::INT).is_ok())
    }

    /// The run that was begun last.
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

    /// The process of the run that goes on.
    pub(super) fn running(&self) -> Option<u32> {
        self.status().filter(|status| status.runs).map(|status| status.process)
    }
}

/// Nothing that is kept here is left half done by a thread that panics.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps the last lines of what it says, and reads all of it, so that it never waits to say something.
fn listen(mut pipe: impl Read, current: &Mutex<Option<Begun>>, process: u32) {
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

/// Waits until it has ended.
fn wait(current: &Mutex<Option<Begun>>, process: u32) {
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
        clock::sleep_until(clock::now().saturating_add(LOOK));
    }
}

fn told(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(130), _) => "interrupted: what was measured is kept".into(),
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("ended by signal {signal}"),
        (None, None) => "ended".into(),
    }
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Refused::Busy(process) => {
                write!(
                    f,
                    "a run that was begun here is under way (process {process}): stop it or wait for it"
                )
            }
            Refused::Wrong(line) => write!(f, "{line}"),
            Refused::Failed(error) => write!(f, "the program cannot be started: {error}"),
        }
    }
}
