//! Full-screen view of a run: progress, the trial in progress, rates, the search, and remarks.
//!
//! A thread draws it a few times a second. It uses the terminal's alternate screen, so that the
//! previous content returns afterwards, and disables the echo of typed keys; Ctrl-C still works.
//! Invariant: the terminal is restored however the process ends, except by a signal that cannot be
//! caught.

mod draw;

use std::io::{self, Stderr, Write, stderr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Mutex, Once, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use os::clock;
use packet::time::Nanos;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use tester::gauge::GAUGE;

use runner::live::event::{Event, LiveEvent};
use runner::live::sampler::Sampler;
use runner::live::state::RunState;

pub use draw::{ScreenStyle, span};

/// Limit of events in the drawing queue.
const QUEUE_MAX: usize = 256;

/// Interval between drawings.
const DRAW: Duration = Duration::from_millis(250);

/// Time limit for the last drawing: a stopped terminal (Ctrl-S) may never accept it.
const PATIENCE: Nanos = Nanos::from_secs(1);

/// Minimum columns and rows of a screen; a smaller one shows less than plain lines do.
const ROOM: (u16, u16) = (40, 10);

/// Time limit for a drawing in progress, after which the terminal is restored in any case.
const LAST: Nanos = Nanos::from_millis(300);

/// Whether a screen is open.
static IS_UP: AtomicBool = AtomicBool::new(false);

/// Whether a drawing is in progress: a drawing on a restored terminal would overwrite its content.
static IS_DRAWING: AtomicBool = AtomicBool::new(false);

/// Settings of the terminal before the screen.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// An open screen.
pub struct Screen {
    queue: Option<SyncSender<Event>>,
    thread: Option<JoinHandle<()>>,
}

impl Screen {
    /// Opens a screen; `None` if that is not possible.
    pub fn open(look: ScreenStyle, picture: RunState) -> Option<Screen> {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                give_back();
                before(panic);
            }));
        });
        let mut terminal = take().ok()?;
        let (queue, events) = sync_channel(QUEUE_MAX);
        let work = move || {
            // A lost terminal does not end the run.
            let _ = show(&mut terminal, look, picture, &events);
        };
        let named = std::thread::Builder::new().name("screen".into());
        let thread = named.spawn(work).ok();
        Some(Screen { queue: Some(queue), thread })
    }

    /// Queues an event, or drops it if the queue is full: the next state includes it.
    pub fn tell(&self, event: Event) {
        let _ = self.queue.as_ref().map(|queue| queue.try_send(event));
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.queue = None;
        let is_done = || self.thread.as_ref().is_none_or(JoinHandle::is_finished);
        wait_until(PATIENCE, is_done);
        give_back();
    }
}

/// Returns whether the terminal is large enough.
pub fn has_room() -> bool {
    tcgetwinsize(stderr()).is_ok_and(|size| size.ws_col >= ROOM.0 && size.ws_row >= ROOM.1)
}

fn take() -> io::Result<Terminal<CrosstermBackend<Stderr>>> {
    let mut before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner);
    let settings = tcgetattr(stderr())?;
    let mut quiet = settings.clone();
    quiet.local_modes.remove(LocalModes::ECHO);
    tcsetattr(stderr(), OptionalActions::Now, &quiet)?;
    *before = Some(settings);
    IS_UP.store(true, Ordering::SeqCst);
    execute!(stderr(), EnterAlternateScreen, Hide)?;
    Terminal::new(CrosstermBackend::new(stderr()))
}

/// Restores the terminal, if a screen is open.
pub fn give_back() {
    if IS_UP.swap(false, Ordering::SeqCst) {
        // A stopped terminal never completes a drawing, and neither does a drawing that panicked.
        wait_until(LAST, || !IS_DRAWING.load(Ordering::SeqCst));
        // Nothing else writes these sequences, and an error here cannot be reported.
        let _ = execute!(stderr(), LeaveAlternateScreen, Show);
        let _ = stderr().flush();
        if let Ok(mut before) = BEFORE.try_lock()
            && let Some(settings) = before.take()
        {
            let _ = tcsetattr(stderr(), OptionalActions::Now, &settings);
        }
    }
}

/// Waits until the condition holds, or until the time limit.
fn wait_until(patience: Nanos, is_so: impl Fn() -> bool) {
    let until = clock::now().saturating_add(patience);
    while !is_so() && clock::now() < until {
        clock::sleep_until(clock::now().saturating_add(Nanos::from_millis(5)));
    }
}

fn show(
    terminal: &mut Terminal<CrosstermBackend<Stderr>>,
    look: ScreenStyle,
    mut picture: RunState,
    events: &Receiver<Event>,
) -> io::Result<()> {
    let mut sampler = Sampler::new(&GAUGE);
    loop {
        let now_ms = clock::since_1970().0 / 1_000_000;
        IS_DRAWING.store(true, Ordering::SeqCst);
        let is_up = IS_UP.load(Ordering::SeqCst);
        let drawn = match is_up {
            true => terminal.draw(|frame| draw::all(frame, &picture, now_ms, look)).map(drop),
            false => Ok(()),
        };
        IS_DRAWING.store(false, Ordering::SeqCst);
        drawn?;
        if !is_up {
            return Ok(());
        }
        let until = clock::now().saturating_add(Nanos(DRAW.as_nanos() as u64));
        while clock::now() < until {
            let patience = Duration::from_nanos(until.since(clock::now()).0);
            match events.recv_timeout(patience) {
                Ok(event) => {
                    let at_ms = clock::since_1970().0 / 1_000_000;
                    picture.tell(LiveEvent { at_ms, lost: 0, event });
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
        }
        if let Some(rates) = sampler.look() {
            let at_ms = clock::since_1970().0 / 1_000_000;
            picture.tell(LiveEvent { at_ms, lost: 0, event: Event::Rates(rates) });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;
    use runner::live::example::picture;

    /// A run that panics while its screen is open; it needs a terminal, which the test below
    /// provides.
    #[test]
    #[ignore = "it panics, on the terminal of the test that wants it to"]
    fn a_run_that_panics() {
        let screen =
            Screen::open(ScreenStyle { plain: true }, picture()).expect("there is a terminal");
        screen.tell(Event::Said { line: "all is well".into() });
        panic!("an unexpected fault");
    }

    #[test]
    #[allow(clippy::disallowed_methods, clippy::print_stdout)]
    fn a_panic_restores_the_terminal_before_it_is_printed() {
        if Command::new("script").arg("--version").output().is_err() {
            println!("skipped: script (bsdutils) is not installed");
            return;
        }
        let program = std::env::current_exe().unwrap();
        let shell = format!(
            "stty rows 30 cols 100; {} --ignored --exact --nocapture cli::screen::tests::a_run_that_panics; \
             echo code $?; stty -a | grep -o -- '-*echo '",
            program.display()
        );
        let mut command = Command::new("script");
        command.args(["-qec", &shell, "/dev/null"]).env("TERM", "xterm");
        let output = command.stdin(Stdio::null()).output().unwrap();
        let screen = String::from_utf8_lossy(&output.stdout);
        let place =
            |mark: &str| screen.find(mark).unwrap_or_else(|| panic!("no {mark:?}: {screen:?}"));
        let (up, down, printed) =
            (place("\x1b[?1049h"), place("\x1b[?1049l"), place("an unexpected fault"));
        assert!(up < down && down < printed, "{screen:?}");
        assert!(place("\x1b[?25h") < printed, "the cursor is visible again: {screen:?}");
        // The terminal library shows the cursor once more on drop, which draws nothing.
        let after = screen[printed..].replace("\x1b[?25h", "");
        assert!(
            !after.contains("trials,") && !after.contains("\x1b["),
            "nothing is drawn: {screen:?}"
        );
        assert!(after.contains("code 101"), "{screen:?}");
        assert!(
            after.contains("echo") && !after.contains("-echo"),
            "typed keys are echoed: {screen:?}"
        );
    }
}
