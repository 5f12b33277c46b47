//! A thread apart from the frames' that makes programs ready and frees what is not wanted any more.
//!
//! Reading, checking and compiling a program takes milliseconds, and so does freeing a table of half a million rows: as
//! long as a ring of frames lasts a hundred times over. Here frames wait for neither. The thread stands
//! [back](ports::core::stand_back): where it shares the frames' core it runs only while their thread sleeps, which
//! [lends](LEND) it that core for short spans while something is being made ready.
//!
//! One that has waited for [`PATIENCE`] because others have all the cores runs as they do.
//!
//! Invariant: one program is made ready at a time, whoever comes meanwhile asks again; what takes a program in place is
//! the frames' thread, between two frames. There is no thread before the first program comes.

use std::any::Any;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, OnceLock};

use packet::time::Nanos;
use ports::core::Modest;
use progfe::compile::Compiled;
use progfe::element::{Basis, Prepared};
use progfe::program::Program;
use progfe::program::document::no_files;
use progfe::xml::Source;

use crate::control::request::Document;

/// How long frames may wait while their core is lent.
pub const LEND: Nanos = Nanos::from_micros(20);
/// How long a program may take while others want the cores.
pub const PATIENCE: Nanos = Nanos::from_millis(100);
/// Where frames never pause, their core is lent this often.
pub const LEND_INTERVAL: Nanos = Nanos::from_millis(1);

/// What became of a program: it, and what was noted of it; or why it is refused.
pub type Made = Result<(Prepared<Compiled>, String), String>;

/// The thread, as the frames' thread sees it.
#[derive(Default)]
pub struct Workshop {
    worker: Option<Worker>,
    /// Programs that were given to it.
    given: u64,
    /// Whether the last of them is not done yet, and since when it has been under way.
    is_busy: bool,
    since: Option<Nanos>,
    /// The last that was done and nobody has fetched.
    done: Option<Made>,
}

struct Worker {
    jobs: Sender<Job>,
    made: Receiver<Made>,
    /// The thread, once it has told.
    thread: Arc<OnceLock<Modest>>,
    /// Whether it runs as others do.
    is_forward: bool,
}

/// What makes a program ready.
pub type Making = Box<dyn FnOnce(&Basis<Compiled>) -> Made + Send>;

enum Job {
    Make(Making, Box<Basis<Compiled>>),
    Free(Box<dyn Any + Send>),
}

impl Workshop {
    /// Has a program made ready for an element; a number by which it is fetched. `None` while another one is
    /// being made ready.
    pub fn make(&mut self, making: Making, basis: Basis<Compiled>) -> Option<u64> {
        self.listen();
        if self.is_busy {
            return None;
        }
        self.done = None;
        self.given += 1;
        (self.is_busy, self.since) = (true, None);
        self.give(Job::Make(making, Box::new(basis)));
        Some(self.given)
    }

    /// Whether what became of a program cannot be fetched any more, since another one was made ready.
    pub fn is_lost(&self, number: u64) -> bool {
        number != self.given
    }

    /// What became of a program: nothing yet, or that.
    pub fn fetch(&mut self, number: u64) -> Option<Made> {
        self.listen();
        if self.is_lost(number) {
            return Some(Err("another program was asked for meanwhile".into()));
        }
        self.done.take()
    }

    /// Frees something apart.
    pub fn free(&mut self, what: impl Any + Send) {
        self.give(Job::Free(Box::new(what)));
    }

    /// Whether a program is being made ready.
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
            // Where that is not allowed it goes on as it is.
            let _ = thread.step_forward();
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
                    let _ = thread.stand_back();
                }
            }
            Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => {
                if std::mem::take(&mut self.is_busy) {
                    self.done = Some(Err("the program could not be made ready".into()));
                }
                self.worker = None;
            }
        }
    }

    /// A job that finds no thread is done here.
    fn give(&mut self, job: Job) {
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

    fn do_here(&mut self, job: Job) {
        if let Job::Make(making, basis) = job {
            (self.done, self.is_busy) = (Some(making(&basis)), false);
        }
    }
}

impl Worker {
    fn start() -> std::io::Result<Worker> {
        let (jobs, to_do) = channel();
        let (done, made) = channel();
        let thread: Arc<OnceLock<Modest>> = Arc::default();
        let tell = Arc::clone(&thread);
        let work = move || {
            // One that may not stand back works all the same.
            if let Ok(modest) = ports::core::stand_back() {
                tell.get_or_init(|| modest);
            }
            while let Ok(job) = to_do.recv() {
                match job {
                    Job::Make(making, basis) => {
                        if done.send(making(&basis)).is_err() {
                            return;
                        }
                    }
                    Job::Free(what) => drop(what),
                }
            }
        };
        std::thread::Builder::new().name("workshop".into()).spawn(work)?;
        Ok(Worker { jobs, made, thread, is_forward: false })
    }
}

/// Makes the program of a document ready.
pub fn load(document: &Document, basis: &Basis<Compiled>) -> Made {
    let source = Source::new(&document.name, &document.text);
    let (program, problems) = Program::load(&source, &no_files);
    let said = problems.to_string().trim_end().to_owned();
    let program = program.ok_or_else(|| said.clone())?;
    let prepared = basis.prepare(program);
    Ok((prepared.map_err(|all| all.to_string().trim_end().to_owned())?, said))
}
