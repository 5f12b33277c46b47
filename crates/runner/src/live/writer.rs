//! Writer of the file `live.jsonl` in a run's folder: events, line by line, for other processes
//! that follow the run.
//!
//! A separate thread writes it. The file is not part of the record: a run removes it at its end,
//! and a crashed run leaves it behind. Invariants:
//! - The measuring thread never waits ([`QUEUE_MAX`] events, beyond which they are lost and
//!   counted).
//! - The file has at most about [`FILE_BYTES_MAX`]; it is then replaced by a new one that begins
//!   with the state so far.
//! - A reader that reads the old file to its end and continues with the new one misses nothing.
//! - A write error affects only the live view.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use os::clock;
use packet::time::Nanos;
use testbed::affinity;
use tester::gauge::{GAUGE, Gauge};

use super::event::{Event, LiveEvent};
use super::sampler::Sampler;
use super::state::RunState;

/// The file's name in a run's folder.
pub const LIVE_FILE: &str = "live.jsonl";

/// Limit of events in the queue.
pub const QUEUE_MAX: usize = 1024;

/// Approximate length at which the file is replaced.
pub const FILE_BYTES_MAX: u64 = 1 << 20;

/// Interval at which rates are read.
const POLL_INTERVAL: Nanos = Nanos::from_millis(250);

/// After this time without an event, a heartbeat is written.
const HEARTBEAT_INTERVAL: Nanos = Nanos::from_secs(2);

/// Sends events to the followers of a run.
#[derive(Debug)]
pub struct LiveWriter {
    queue: Option<SyncSender<Event>>,
    lost: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl LiveWriter {
    /// Starts a new file in a run's folder, written by a thread that may run on these cores.
    /// Without a thread, no events are written.
    pub fn begin(folder: &Path, cores: Vec<usize>) -> LiveWriter {
        LiveWriter::of(folder, cores, &GAUGE, FILE_BYTES_MAX)
    }

    fn of(folder: &Path, cores: Vec<usize>, gauge: &'static Gauge, bytes_max: u64) -> LiveWriter {
        let (queue, events) = sync_channel(QUEUE_MAX);
        let lost = Arc::new(AtomicU64::new(0));
        let pages = EventFile::new(folder, bytes_max);
        let writer = Writer { pages, picture: RunState::default(), lost: Arc::clone(&lost) };
        let named = std::thread::Builder::new().name("telling".into());
        let work = move || {
            // If pinning is not permitted, the scheduler chooses the core.
            let _ = affinity::pin(0, &cores);
            writer.run(&events, Sampler::new(gauge));
        };
        let thread = named.spawn(work).ok();
        LiveWriter { queue: Some(queue), lost, thread }
    }

    /// Queues an event, or drops it if the queue is full.
    pub fn tell(&self, event: Event) {
        if self.queue.as_ref().is_none_or(|queue| queue.try_send(event).is_err()) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Drop for LiveWriter {
    /// Waits until everything is written.
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has nothing left to write.
            let _ = thread.join();
        }
    }
}

/// State of the thread.
struct Writer {
    pages: EventFile,
    picture: RunState,
    lost: Arc<AtomicU64>,
}

impl Writer {
    fn run(mut self, events: &Receiver<Event>, mut sampler: Sampler) {
        let (mut looked, mut wrote) = (clock::now(), clock::now());
        loop {
            let patience = POLL_INTERVAL.since(clock::now().since(looked));
            let mut lines = Vec::new();
            let is_last = match events.recv_timeout(Duration::from_nanos(patience.0)) {
                Ok(event) => {
                    self.add(&mut lines, event);
                    events.try_iter().take(QUEUE_MAX).for_each(|it| self.add(&mut lines, it));
                    false
                }
                Err(RecvTimeoutError::Timeout) => false,
                Err(RecvTimeoutError::Disconnected) => true,
            };
            let now = clock::now();
            if now.since(looked) >= POLL_INTERVAL {
                looked = now;
                let rates = sampler.look();
                rates.into_iter().for_each(|rates| self.add(&mut lines, Event::Rates(rates)));
            }
            if lines.is_empty() && now.since(wrote) >= HEARTBEAT_INTERVAL {
                self.add(&mut lines, Event::Beat);
            }
            if !lines.is_empty() {
                wrote = now;
                self.pages.write(&lines, || line(&told(&self.lost, picture(&self.picture))));
            }
            if is_last {
                break;
            }
        }
        if self.picture.over.is_some() {
            self.pages.remove();
        }
    }

    /// Adds an event to the lines to write.
    fn add(&mut self, lines: &mut Vec<u8>, event: Event) {
        let told = told(&self.lost, event);
        lines.extend(line(&told));
        self.picture.tell(told);
    }
}

fn picture(picture: &RunState) -> Event {
    Event::Picture { picture: Box::new(picture.clone()) }
}

fn told(lost: &AtomicU64, event: Event) -> LiveEvent {
    let at_ms = clock::since_1970().0 / 1_000_000;
    LiveEvent { at_ms, lost: lost.load(Ordering::Relaxed), event }
}

fn line(told: &LiveEvent) -> Vec<u8> {
    let mut line = serde_json::to_vec(told).expect("an event is plain data");
    line.push(b'\n');
    line
}

/// The file, which is replaced when it is long.
struct EventFile {
    path: PathBuf,
    /// `None` if it could not be written.
    file: Option<File>,
    bytes: u64,
    bytes_max: u64,
}

impl EventFile {
    fn new(folder: &Path, bytes_max: u64) -> EventFile {
        let mut pages = EventFile { path: folder.join(LIVE_FILE), file: None, bytes: 0, bytes_max };
        pages.file = pages.begun_with(&[]);
        pages
    }

    /// Writes lines; if the file becomes long, a new one that begins with the state replaces it.
    fn write(&mut self, lines: &[u8], picture: impl FnOnce() -> Vec<u8>) {
        let Some(file) = &mut self.file else { return };
        if file.write_all(lines).is_err() {
            self.file = None;
            return;
        }
        self.bytes += lines.len() as u64;
        if self.bytes >= self.bytes_max {
            let first = picture();
            self.bytes = first.len() as u64;
            self.file = self.begun_with(&first);
        }
    }

    /// Creates a new file in place of the old one; readers that have the old one open can still
    /// read it to its end.
    fn begun_with(&self, first: &[u8]) -> Option<File> {
        let beside = store::unfinished_name(&self.path);
        let mut file = File::create(&beside).ok()?;
        file.write_all(first).ok()?;
        fs::rename(&beside, &self.path).ok()?;
        Some(file)
    }

    fn remove(&mut self) {
        self.file = None;
        // If removal fails, the file's last event states that the run is over.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests;
