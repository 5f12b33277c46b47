//! Follows active runs: a thread reads their events, and keeps the newest state of all runs for
//! clients.
//!
//! Invariant: the state is replaced as a whole. A slow browser gets the newest state with its next
//! request and never blocks the thread.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::SystemTime;

use os::clock;
use packet::time::Nanos;
use store::campaign;
use tokio::sync::watch;

use runner::live::follow::{Follower, ReadResult};
use runner::live::state::RunState;
use runner::live::writer::LIVE_FILE;

/// Limit of followed runs, the newest first.
pub(super) const FOLLOWED_MAX: usize = 8;

/// Limit of folders searched for runs.
const FOLDERS_MAX: usize = 100_000;

/// Polling interval while a client watches, and while none does.
const POLL_INTERVAL: Nanos = Nanos::from_millis(250);
const LOOK_ALONE: Nanos = Nanos::from_secs(1);

/// Interval of a full search of all folders, for a run that resumes in an old folder.
const SEARCH: Nanos = Nanos::from_secs(5);

/// A run without events for this time has ended without a final event, or has stalled.
const SILENT_MS: u64 = 10_000;

/// A run that is or was followed.
#[derive(Debug, Clone)]
pub(super) struct View {
    /// Its folder's name.
    pub(super) run: String,
    pub(super) picture: Arc<RunState>,
    /// Lines that could not be parsed.
    pub(super) unreadable: u64,
    /// Its state.
    pub(super) state: State,
}

/// State of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// It is measuring.
    Runs,
    /// It has written no event for a while.
    Silent,
    /// It has ended.
    Over,
}

impl State {
    pub(super) fn word(self) -> &'static str {
        match self {
            State::Runs => "running",
            State::Silent => "silent",
            State::Over => "over",
        }
    }
}

/// All followed runs; those that measure first, then the newest first.
pub(super) type Views = Arc<Vec<View>>;

/// The thread that follows runs, and its result.
pub(super) struct RunFollower {
    views: watch::Receiver<Views>,
    watchers: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl RunFollower {
    /// Starts to follow the runs in a folder.
    pub(super) fn begin(folder: PathBuf) -> RunFollower {
        let (tell, views) = watch::channel(Views::default());
        let watchers = Arc::new(AtomicUsize::new(0));
        let stop = Arc::new(AtomicBool::new(false));
        let eye = FollowerState { folder, followed: Vec::new(), seen: None, searched: None };
        let (alone, end) = (Arc::clone(&watchers), Arc::clone(&stop));
        let named = std::thread::Builder::new().name("watching".into());
        let thread = named.spawn(move || eye.run(&tell, &alone, &end)).ok();
        RunFollower { views, watchers, stop, thread }
    }

    /// Returns the current state.
    pub(super) fn views(&self) -> Views {
        self.views.borrow().clone()
    }

    /// Subscribes to the state, as long as the subscription exists.
    pub(super) fn watch(&self) -> StateSubscription {
        self.watchers.fetch_add(1, Ordering::Relaxed);
        StateSubscription { views: self.views.clone(), watchers: Arc::clone(&self.watchers) }
    }

    pub(super) fn watchers(&self) -> usize {
        self.watchers.load(Ordering::Relaxed)
    }
}

impl Drop for RunFollower {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A subscription to the state.
pub(super) struct StateSubscription {
    pub(super) views: watch::Receiver<Views>,
    watchers: Arc<AtomicUsize>,
}

impl Drop for StateSubscription {
    fn drop(&mut self) {
        self.watchers.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The state of the thread.
struct FollowerState {
    folder: PathBuf,
    followed: Vec<Followed>,
    /// Modification time of the folder at the last search.
    seen: Option<SystemTime>,
    searched: Option<Nanos>,
}

struct Followed {
    run: String,
    follower: Follower,
    picture: Arc<RunState>,
    is_gone: bool,
}

impl FollowerState {
    fn run(mut self, tell: &watch::Sender<Views>, watchers: &AtomicUsize, stop: &AtomicBool) {
        let mut looked: Option<Nanos> = None;
        while !stop.load(Ordering::Relaxed) {
            let now = clock::now();
            let every =
                if watchers.load(Ordering::Relaxed) > 0 { POLL_INTERVAL } else { LOOK_ALONE };
            if looked.is_none_or(|at| now.since(at) >= every) {
                looked = Some(now);
                self.search(now);
                let views = self.look();
                tell.send_if_modified(|known| {
                    let is_news = !is_same(known, &views);
                    *known = Arc::new(views);
                    is_news
                });
            }
            clock::sleep_until(now.saturating_add(Nanos::from_millis(50)));
        }
    }

    /// Finds runs that write events.
    fn search(&mut self, now: Nanos) {
        let changed = fs::metadata(&self.folder).and_then(|facts| facts.modified()).ok();
        let is_due = self.searched.is_none_or(|at| now.since(at) >= SEARCH);
        if changed == self.seen && !is_due {
            return;
        }
        (self.seen, self.searched) = (changed, Some(now));
        for run in telling(&self.folder) {
            if self.followed.iter().any(|it| it.run == run && !it.is_gone) {
                continue;
            }
            if let Some(mut follower) = Follower::open(&self.folder.join(&run)) {
                follower.look();
                let picture = Arc::new(follower.picture().clone());
                self.followed.retain(|it| it.run != run);
                self.followed.push(Followed { run, follower, picture, is_gone: false });
            }
        }
        self.order();
        self.followed.truncate(FOLLOWED_MAX);
    }

    /// Sorts the runs: those that measure first, then the newest.
    fn order(&mut self) {
        let place = |it: &Followed| {
            let rank = match state(it) {
                State::Runs => 0,
                State::Over => 1,
                State::Silent => 2,
            };
            (rank, std::cmp::Reverse(it.picture.begun_ms))
        };
        self.followed.sort_by_key(place);
    }

    fn look(&mut self) -> Vec<View> {
        for one in self.followed.iter_mut().filter(|one| !one.is_gone) {
            match one.follower.look() {
                ReadResult::News => one.picture = Arc::new(one.follower.picture().clone()),
                ReadResult::Nothing => {}
                ReadResult::Gone => one.is_gone = true,
            }
        }
        self.order();
        let view = |one: &Followed| View {
            run: one.run.clone(),
            picture: Arc::clone(&one.picture),
            unreadable: one.follower.unreadable(),
            state: state(one),
        };
        self.followed.iter().map(view).collect()
    }
}

fn state(one: &Followed) -> State {
    let silent_ms = now_ms().saturating_sub(one.picture.told_ms);
    if one.is_gone || one.picture.over.is_some() {
        State::Over
    } else if silent_ms > SILENT_MS {
        State::Silent
    } else {
        State::Runs
    }
}

/// Returns the time in milliseconds since 1970.
pub(super) fn now_ms() -> u64 {
    clock::since_1970().0 / 1_000_000
}

/// Returns whether the state is unchanged, so that no client needs an update.
fn is_same(known: &[View], now: &[View]) -> bool {
    let is_alike = |(a, b): (&View, &View)| {
        a.run == b.run && a.state == b.state && Arc::ptr_eq(&a.picture, &b.picture)
    };
    known.len() == now.len() && known.iter().zip(now).all(is_alike)
}

/// Returns the view of a run, or the first one without a name.
pub(super) fn of<'a>(views: &'a [View], run: Option<&str>) -> Option<&'a View> {
    match run {
        Some(run) => views.iter().find(|view| view.run == run),
        None => views.first(),
    }
}

/// Returns folders of runs that write events: those in a folder, and those of its campaigns by both
/// names.
fn telling(folder: &Path) -> Vec<String> {
    let below = |folder: &Path| -> Vec<String> {
        let entries = fs::read_dir(folder).into_iter().flatten().take(FOLDERS_MAX).flatten();
        let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        folders.filter_map(|entry| entry.file_name().into_string().ok()).collect()
    };
    let tells = |run: &String| folder.join(run).join(LIVE_FILE).exists();
    let mut found = Vec::new();
    for name in below(folder) {
        if campaign::is_campaign(&folder.join(&name)) {
            let steps = below(&folder.join(&name)).into_iter();
            found.extend(steps.map(|step| format!("{name}/{step}")).filter(tells));
        } else if tells(&name) {
            found.push(name);
        }
    }
    found
}
