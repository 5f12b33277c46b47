//! A program of the lab: in a namespace, on a core, with a log, and with guaranteed termination.
//!
//! - A child runs in the PID namespace of the run's folder, so it ends with the run, and so do its
//!   descendants.
//! - If the kernel allows no PID namespace, the kernel kills the child (PR_SET_PDEATHSIG) when the
//!   *thread* that started it ends. Therefore one thread, which lives as long as this process,
//!   starts all children. Their descendants have [`FOLDER_VARIABLE`] in their environment.
//!   The end of the folder and the sweep find and kill them by it.
//! - The output of a child goes to a file. If the child ends early, the error contains the last
//!   lines.
//!
//! Source: `prctl(2)` PR_SET_PDEATHSIG, `setns(2)`, `sched_setaffinity(2)`.
//!
//! Invariants:
//! - A dropped process is dead and waited for.
//! - Signals go only to processes that this process started and has not waited for, so their
//!   numbers cannot have been reused.

#![allow(unsafe_code)]

use crate::proc::{self, Identity};
use crate::runfolder::{self, FOLDER_VARIABLE};
use crate::{LabError, Namespace, RunFolder, affinity, wait};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, mpsc};
use std::thread;
use std::time::Duration;

/// Bytes of a log that are read for its last lines, and the number of lines.
const TAIL_BYTES: u64 = 4096;
const TAIL_LINES: usize = 5;
/// Maximum number of bytes that are read from the output of a short program.
const OUTPUT_BYTES: u64 = 1 << 20;

/// Numbers the outputs of short programs, so that each has its own file.
static OUTPUTS: AtomicU32 = AtomicU32::new(0);

/// Program to start, with its environment.
#[derive(Debug, Clone)]
pub struct ProcessSpec {
    /// Path of the program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Its complete environment, apart from PATH and LC_ALL=C.
    pub environment: Vec<(OsString, OsString)>,
    /// File of its output.
    pub log: PathBuf,
    /// Network namespace of the program; `None` for that of this process.
    pub namespace: Option<Namespace>,
    /// Cores of the program; empty for any.
    pub cores: Vec<usize>,
}

/// A running program.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    identity: Identity,
    log: PathBuf,
    /// Keeps the PID namespace until the child is waited for.
    _folder: RunFolder,
}

impl Process {
    /// Starts the program and records it in the run's folder.
    pub fn start(launch: ProcessSpec, folder: &RunFolder) -> Result<Process, LabError> {
        let name = launch.program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let log = launch.log.clone();
        let (started, shared) = (folder.clone(), folder.clone());
        let child = on_lab_thread(move || spawn(launch, &started))??;
        let identity = match Identity::of(child.id()) {
            Some(identity) => identity,
            // It has ended already; `check` reports its status.
            None => Identity { pid: child.id(), start_ticks: 0 },
        };
        let process = Process { name, child, identity, log, _folder: shared };
        folder.record_child(identity)?;
        Ok(process)
    }

    /// Returns the process number.
    pub fn pid(&self) -> u32 {
        self.identity.pid
    }

    /// Fails, with the last lines of its output, if the program has ended.
    pub fn check(&mut self) -> Result<(), LabError> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(LabError::Exited {
                program: self.name.clone(),
                status,
                last: last_lines(&self.log),
            }),
            Err(error) => Err(LabError::system("wait for", &*self.name, error)),
        }
    }

    /// Waits until `is_ready` returns true; fails if the process ends or `patience` runs out
    /// before.
    pub fn wait_ready(
        &mut self,
        patience: Duration,
        mut is_ready: impl FnMut() -> bool,
    ) -> Result<(), LabError> {
        let ready = wait::until(patience, || {
            if is_ready() {
                return Ok(true);
            }
            self.check().map(|()| false)
        })?;
        if ready { Ok(()) } else { Err(self.not_ready(patience)) }
    }

    /// Waits until the program ends by itself.
    pub fn wait_end(&mut self, patience: Duration) -> Result<ExitStatus, LabError> {
        let mut status = None;
        wait::until(patience, || {
            let waited = self.child.try_wait();
            status = waited.map_err(|error| LabError::system("wait for", &*self.name, error))?;
            Ok(status.is_some())
        })?;
        status.ok_or_else(|| self.not_ready(patience))
    }

    /// Suspends the program (SIGSTOP) until it is released or stopped. It keeps its resources and
    /// uses no CPU time.
    pub fn hold(&mut self) {
        self.signal(libc::SIGSTOP);
    }

    /// Resumes the program (SIGCONT).
    pub fn release(&mut self) {
        self.signal(libc::SIGCONT);
    }

    /// Requests the program's end (SIGTERM), and kills it (SIGKILL) after `patience`. Returns its
    /// exit status.
    pub fn stop(&mut self, patience: Duration) -> Result<ExitStatus, LabError> {
        self.signal(libc::SIGTERM);
        self.release();
        match self.wait_end(patience) {
            Err(LabError::NotReady { .. }) => self.kill(),
            ended => ended,
        }
    }

    /// Kills the program.
    pub fn kill(&mut self) -> Result<ExitStatus, LabError> {
        self.signal(libc::SIGKILL);
        self.child.wait().map_err(|error| LabError::system("wait for", &*self.name, error))
    }

    /// Kills the program and all processes in its group.
    pub fn kill_group(&mut self) -> Result<ExitStatus, LabError> {
        if let Ok(None) = self.child.try_wait() {
            // SAFETY: kill takes no pointers; the child leads the group of its number and is not
            // waited for.
            unsafe { libc::kill(-(self.child.id() as libc::pid_t), libc::SIGKILL) };
        }
        self.kill()
    }

    /// Returns the CPU time used so far.
    pub fn cpu_time(&self) -> Option<Duration> {
        proc::cpu_time(self.pid())
    }

    /// Returns the last lines of its output.
    pub fn last_lines(&self) -> Vec<String> {
        last_lines(&self.log)
    }

    fn not_ready(&self, waited: Duration) -> LabError {
        LabError::NotReady { program: self.name.clone(), waited, last: self.last_lines() }
    }

    fn signal(&mut self, signal: libc::c_int) {
        if let Ok(None) = self.child.try_wait() {
            // SAFETY: kill takes no pointers; the child is not waited for, so the number is still
            // its own.
            unsafe { libc::kill(self.child.id() as libc::pid_t, signal) };
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}

/// Runs a short program to its end and returns its output; fails if the program fails.
pub fn run(
    mut launch: ProcessSpec,
    patience: Duration,
    folder: &RunFolder,
) -> Result<String, LabError> {
    launch.log.set_extension(format!("{}.log", OUTPUTS.fetch_add(1, Ordering::Relaxed)));
    let mut process = Process::start(launch, folder)?;
    let status = process.wait_end(patience)?;
    if !status.success() {
        let (program, last) = (process.name.clone(), process.last_lines());
        return Err(LabError::Exited { program, status, last });
    }
    let mut text = String::new();
    let read =
        File::open(&process.log).and_then(|file| file.take(OUTPUT_BYTES).read_to_string(&mut text));
    read.map_err(|error| LabError::system("read the output of", &*process.name, error))?;
    Ok(text)
}

fn spawn(launch: ProcessSpec, folder: &RunFolder) -> Result<Child, LabError> {
    let refused = |error| LabError::system("start", launch.program.display().to_string(), error);
    let output = File::options().create(true).append(true).open(&launch.log).map_err(refused)?;
    let copy = output.try_clone().map_err(refused)?;
    spawn_with(&launch, folder, [Stdio::null(), copy.into(), output.into()])
}

/// Starts a program with a pipe for each of its three streams instead of a log.
pub(crate) fn spawn_piped(launch: ProcessSpec, folder: &RunFolder) -> Result<Child, LabError> {
    spawn_with(&launch, folder, [Stdio::piped(), Stdio::piped(), Stdio::piped()])
}

/// Starts a program in the folder's PID namespace. Without one, sets the folder variable and a
/// death signal.
fn spawn_with(
    launch: &ProcessSpec,
    folder: &RunFolder,
    [input, output, errors]: [Stdio; 3],
) -> Result<Child, LabError> {
    let namespace = folder.pid_namespace();
    let parent = namespace.is_none().then(std::process::id);
    let mut command = command(launch, parent);
    command.stdin(input).stdout(output).stderr(errors);
    if let Some(namespace) = namespace {
        return namespace.spawn(&mut command);
    }
    command.env(FOLDER_VARIABLE, folder.path());
    let refused = |error| LabError::system("start", launch.program.display().to_string(), error);
    command.spawn().map_err(refused)
}

/// Builds the command, except for its streams. Valid while `launch` holds its namespace open.
fn command(launch: &ProcessSpec, parent: Option<u32>) -> Command {
    let mut command = Command::new(&launch.program);
    command
        .args(&launch.arguments)
        .env_clear()
        .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
        .env("LC_ALL", "C")
        .envs(launch.environment.iter().map(|(name, value)| (name, value)))
        // Ctrl-C at the terminal must reach only this process, which stops its children in order.
        .process_group(0);
    let network = launch.namespace.as_ref().map(|namespace| namespace.as_fd().as_raw_fd());
    let cores = (!launch.cores.is_empty()).then(|| affinity::core_set(&launch.cores));
    // SAFETY: between fork and exec the closure makes system calls only; it neither allocates nor
    // takes locks. `launch` holds the namespace's descriptor open until spawn has returned.
    unsafe { command.pre_exec(move || become_child(parent, network, cores.as_ref())) };
    command
}

/// Requests the death signal again in a program that was started without a PID namespace.
///
/// The kernel has cleared the signal if the program gained capabilities from its file. `folder` is
/// the value of [`FOLDER_VARIABLE`]. Does nothing in descendants, whose parent is not the run.
pub fn renew_death_signal(folder: &OsStr) -> Result<(), LabError> {
    // SAFETY: getppid has no arguments.
    let parent = unsafe { libc::getppid() } as u32;
    if runfolder::owner_pid(Path::new(folder)) != Some(parent) {
        return Ok(());
    }
    die_with(parent).map_err(|error| LabError::system("request", "a death signal", error))
}

/// Makes the kernel kill this process when the thread that started it ends.
fn die_with(parent: u32) -> io::Result<()> {
    // SAFETY: prctl with this option takes integers only.
    if unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: getppid has no arguments. If the parent died before prctl, no signal is sent.
    match unsafe { libc::getppid() } as u32 == parent {
        true => Ok(()),
        false => Err(io::Error::from_raw_os_error(libc::ESRCH)),
    }
}

/// Prepares the child between fork and exec.
fn become_child(
    parent: Option<u32>,
    network: Option<i32>,
    cores: Option<&libc::cpu_set_t>,
) -> io::Result<()> {
    let checked = |result: libc::c_int| match result {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    };
    parent.map_or(Ok(()), die_with)?;
    if let Some(descriptor) = network {
        // SAFETY: the parent holds the descriptor open; the call touches no memory.
        checked(unsafe { libc::setns(descriptor, libc::CLONE_NEWNET) })?;
    }
    if let Some(set) = cores {
        let size = size_of::<libc::cpu_set_t>();
        // SAFETY: `set` is a valid cpu_set_t of the size given.
        checked(unsafe { libc::sched_setaffinity(0, size, set) })?;
    }
    Ok(())
}

type Work = Box<dyn FnOnce() + Send>;

/// Runs `work` on the single thread that starts children, and returns its result.
pub(crate) fn on_lab_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, LabError> {
    static THREAD: OnceLock<Mutex<mpsc::Sender<Work>>> = OnceLock::new();
    let sender = THREAD.get_or_init(|| {
        let (sender, receiver) = mpsc::channel::<Work>();
        let body = move || receiver.iter().for_each(|work| work());
        let started = thread::Builder::new().name("lab".to_owned()).spawn(body);
        started.expect("the process can start a thread");
        Mutex::new(sender)
    });
    let (answer, result) = mpsc::channel();
    let job: Work = Box::new(move || drop(answer.send(work())));
    let sent = sender.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).send(job);
    let gone = || LabError::system("start a process", "thread", io::ErrorKind::BrokenPipe.into());
    sent.map_err(|_| gone())?;
    result.recv().map_err(|_| gone())
}

/// Returns the last lines of a log, each truncated to 200 characters.
fn last_lines(log: &Path) -> Vec<String> {
    let read = || -> io::Result<Vec<u8>> {
        let mut file = File::open(log)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
        let mut bytes = Vec::new();
        file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let text = String::from_utf8_lossy(&read().unwrap_or_default()).into_owned();
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let kept = &lines[lines.len().saturating_sub(TAIL_LINES)..];
    kept.iter().map(|line| line.chars().take(200).collect()).collect()
}
