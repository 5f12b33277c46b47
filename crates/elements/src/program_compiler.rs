//! A thread that compiles programs and frees memory without delaying the forwarding thread.
//!
//! Reading, checking and compiling a program takes milliseconds. Freeing a table of half a million
//! rows takes as long. That is a hundred times longer than a receive ring can buffer frames, so
//! frames wait for neither. The thread runs with [low priority](os::core::lower_priority): on a
//! core that it shares with the forwarding thread, it runs only while the forwarding thread sleeps.
//! The forwarding thread sleeps for short intervals ([`CORE_YIELD_SPAN`]) while a program is being
//! compiled.
//!
//! A thread that has waited for [`PATIENCE`], because other threads use all cores, runs with normal
//! priority.
//!
//! Invariants:
//! - One program is compiled at a time. Callers retry while another program is being compiled.
//! - The forwarding thread swaps programs, between two frames.
//! - The thread starts when the first program arrives.

use std::any::Any;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, OnceLock};

use os::core::LowPriorityThread;
use packet::time::Nanos;
use progfe::compile::Compiled;
use progfe::element::{Basis, Prepared};
use progfe::program::Program;
use progfe::program::document::no_files;
use progfe::xml::Source;

use crate::control::request::ProgramSource;

/// Maximum time for which the forwarding thread yields its core.
pub const CORE_YIELD_SPAN: Nanos = Nanos::from_micros(20);
/// Time after which a compilation runs with normal priority.
pub const PATIENCE: Nanos = Nanos::from_millis(100);
/// Interval at which a forwarding thread that never pauses yields its core.
pub const LEND_INTERVAL: Nanos = Nanos::from_millis(1);

/// Result of a compilation: the program and its warnings, or the error.
pub type CompileResult = Result<(Prepared<Compiled>, String), String>;

/// Handle of the compile thread.
#[derive(Default)]
pub struct ProgramCompiler {
    worker: Option<Worker>,
    /// Programs submitted so far.
    given: u64,
    /// Whether the last program is still being compiled, and since when.
    is_busy: bool,
    since: Option<Nanos>,
    /// The last result, until it is fetched.
    done: Option<CompileResult>,
}

struct Worker {
    jobs: Sender<CompilerJob>,
    made: Receiver<CompileResult>,
    /// The thread's priority handle, once the thread has started.
    thread: Arc<OnceLock<LowPriorityThread>>,
    /// Whether the thread runs with normal priority.
    is_forward: bool,
}

/// Function that compiles a program.
pub type CompileFunction = Box<dyn FnOnce(&Basis<Compiled>) -> CompileResult + Send>;

enum CompilerJob {
    Make(CompileFunction, Box<Basis<Compiled>>),
    Free(Box<dyn Any + Send>),
}

impl ProgramCompiler {
    /// Starts compiling a program for an element. Returns the number with which to fetch the
    /// result, or `None` while another program is being compiled.
    pub fn make(&mut self, making: CompileFunction, basis: Basis<Compiled>) -> Option<u64> {
        self.listen();
        if self.is_busy {
            return None;
        }
        self.done = None;
        self.given += 1;
        (self.is_busy, self.since) = (true, None);
        self.give(CompilerJob::Make(making, Box::new(basis)));
        Some(self.given)
    }

    /// Whether the result of a program is lost because another one was submitted after it.
    pub fn is_lost(&self, number: u64) -> bool {
        number != self.given
    }

    /// Returns the result of a compilation, or `None` if it is not finished.
    pub fn fetch(&mut self, number: u64) -> Option<CompileResult> {
        self.listen();
        if self.is_lost(number) {
            return Some(Err("replaced by a later program".into()));
        }
        self.done.take()
    }

    /// Frees a value in the compile thread.
    pub fn free(&mut self, what: impl Any + Send) {
        self.give(CompilerJob::Free(Box::new(what)));
    }

    /// Whether a program is being compiled.
    pub fn is_busy(&mut self, now: Nanos) -> bool {
        if !self.is_busy {
            return false;
        }
        self.listen();
        let since = *self.since.get_or_insert(now);
        if now.since(since) >= PATIENCE
            && let Some(worker) = &mut self.worker
            && !worker.is_forward
            && let Some(thread) = worker.thread.get()
        {
            // Without permission the thread keeps its priority.
            let _ = thread.restore_priority();
            worker.is_forward = true;
        }
        self.is_busy
    }

    fn listen(&mut self) {
        let Some(worker) = &mut self.worker else { return };
        match worker.made.try_recv() {
            Ok(made) => {
                (self.done, self.is_busy) = (Some(made), false);
                if std::mem::take(&mut worker.is_forward)
                    && let Some(thread) = worker.thread.get()
                {
                    let _ = thread.lower_priority();
                }
            }
            Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => {
                if std::mem::take(&mut self.is_busy) {
                    self.done =
                        Some(Err("cannot compile the program: the compile thread ended".into()));
                }
                self.worker = None;
            }
        }
    }

    /// Submits a job. Runs it in the calling thread if the compile thread is missing.
    fn give(&mut self, job: CompilerJob) {
        let worker = match &self.worker {
            Some(worker) => worker,
            None => match Worker::start() {
                Ok(worker) => self.worker.insert(worker),
                Err(_) => return self.do_here(job),
            },
        };
        if let Err(back) = worker.jobs.send(job) {
            self.worker = None;
            self.do_here(back.0);
        }
    }

    fn do_here(&mut self, job: CompilerJob) {
        if let CompilerJob::Make(making, basis) = job {
            (self.done, self.is_busy) = (Some(making(&basis)), false);
        }
    }
}

impl Worker {
    fn start() -> std::io::Result<Worker> {
        let (jobs, to_do) = channel();
        let (done, made) = channel();
        let thread: Arc<OnceLock<LowPriorityThread>> = Arc::default();
        let tell = Arc::clone(&thread);
        let work = move || {
            // The thread also works without low priority.
            if let Ok(modest) = os::core::lower_priority() {
                tell.get_or_init(|| modest);
            }
            while let Ok(job) = to_do.recv() {
                match job {
                    CompilerJob::Make(making, basis) => {
                        if done.send(making(&basis)).is_err() {
                            return;
                        }
                    }
                    CompilerJob::Free(what) => drop(what),
                }
            }
        };
        std::thread::Builder::new().name("compile".into()).spawn(work)?;
        Ok(Worker { jobs, made, thread, is_forward: false })
    }
}

/// Compiles the program of a document.
pub fn load(document: &ProgramSource, basis: &Basis<Compiled>) -> CompileResult {
    let source = Source::new(&document.name, &document.text);
    let (program, problems) = Program::load(&source, &no_files);
    let said = problems.to_string().trim_end().to_owned();
    let program = program.ok_or_else(|| said.clone())?;
    let prepared = basis.prepare(program);
    Ok((prepared.map_err(|all| all.to_string().trim_end().to_owned())?, said))
}
