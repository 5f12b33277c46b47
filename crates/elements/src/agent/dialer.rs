//! Connection attempts to a controller, with retries.
//!
//! After a failure the dialer waits before the next attempt, twice as long each time up to a limit.
//! An established session resets this backoff. The dialer of an auxiliary connection works only
//! while the main connection is up.
//!
//! Invariant: there is at most one attempt or one connection at a time.

use std::os::fd::RawFd;

use channel::{Channel, ChannelError, Connecting, Tls, Url};
use packet::time::Nanos;

/// Backoff after the first failure.
pub const PAUSE_MIN: Nanos = Nanos::from_millis(125);

/// Timeout of a connection attempt.
pub const PATIENCE: Nanos = Nanos::from_secs(5);

/// Dialer of one controller.
pub struct Dialer {
    /// The last connection error until a connection succeeds, so that the log has it once.
    pub trouble: Option<String>,
    /// The auxiliary connection that it makes, or `None` for the main connection.
    pub auxiliary: Option<Auxiliary>,
    url: Url,
    tls: Option<Tls>,
    pause: Nanos,
    pause_max: Nanos,
    state: State,
}

/// An auxiliary connection to a controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Auxiliary {
    /// Index of the dialer that makes the main connection.
    pub main: usize,
    /// Auxiliary ID, from 1.
    pub number: u8,
}

enum State {
    Held,
    Pausing { until: Nanos },
    Attempt(Connecting),
    Connected,
}

impl Dialer {
    /// Creates a dialer that connects to `url` at the first turn. The backoff grows up to
    /// `pause_max`.
    pub fn new(url: Url, tls: Option<Tls>, pause_max: Nanos) -> Self {
        let state = State::Pausing { until: Nanos::ZERO };
        let trouble = None;
        Dialer {
            trouble,
            auxiliary: None,
            url,
            tls,
            pause: PAUSE_MIN.min(pause_max),
            pause_max,
            state,
        }
    }

    /// Creates the dialer of an auxiliary connection to the same controller. It waits for
    /// [`Dialer::release`].
    pub fn auxiliary(&self, auxiliary: Auxiliary) -> Self {
        let mut dialer = Dialer::new(self.url.clone(), self.tls.clone(), self.pause_max);
        dialer.auxiliary = Some(auxiliary);
        dialer.state = State::Held;
        dialer
    }

    /// Stops connection attempts and cancels the current one.
    pub fn hold(&mut self) {
        if !matches!(self.state, State::Connected) {
            self.state = State::Held;
        }
    }

    /// Resumes connection attempts at the next turn, if they were stopped.
    pub fn release(&mut self, now: Nanos) {
        if matches!(self.state, State::Held) {
            self.pause = PAUSE_MIN.min(self.pause_max);
            self.state = State::Pausing { until: now };
        }
    }

    /// Starts or continues an attempt. Returns a channel when the connection is made, or an error
    /// when the attempt failed.
    pub fn turn(&mut self, now: Nanos) -> Option<Result<Box<dyn Channel>, ChannelError>> {
        if let State::Pausing { until } = self.state {
            if now < until {
                return None;
            }
            match Connecting::start_with(&self.url, self.tls.as_ref(), now, PATIENCE) {
                Ok(attempt) => self.state = State::Attempt(attempt),
                Err(error) => return Some(Err(self.failed(error, now))),
            }
        }
        let State::Attempt(attempt) = &mut self.state else { return None };
        match attempt.finish(now) {
            Ok(None) => None,
            Ok(Some(channel)) => {
                self.state = State::Connected;
                Some(Ok(channel))
            }
            Err(error) => Some(Err(self.failed(error, now))),
        }
    }

    fn failed(&mut self, error: ChannelError, now: Nanos) -> ChannelError {
        self.lost(false, now);
        error
    }

    /// Schedules the next attempt after a connection or an attempt ended. `came_up` is whether a
    /// session was established.
    pub fn lost(&mut self, came_up: bool, now: Nanos) {
        if came_up {
            self.trouble = None;
            self.pause = PAUSE_MIN.min(self.pause_max);
        }
        self.state = State::Pausing { until: now.saturating_add(self.pause) };
        self.pause = Nanos((self.pause.0 * 2).min(self.pause_max.0));
    }

    /// Returns the controller's address.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Returns the descriptor that becomes writable when an attempt has ended.
    pub fn descriptor(&self) -> Option<RawFd> {
        match &self.state {
            State::Attempt(attempt) => attempt.descriptor(),
            _ => None,
        }
    }

    /// Returns when the next attempt or timeout is due.
    pub fn next_event(&self) -> Option<Nanos> {
        match &self.state {
            State::Pausing { until } => Some(*until),
            State::Attempt(attempt) => Some(attempt.deadline()),
            State::Connected | State::Held => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_pauses_double_up_to_the_limit_and_reset_after_a_session() {
        let url: Url = "unix:/nonexistent/planimeter.sock".parse().unwrap();
        let mut dialer = Dialer::new(url, None, Nanos::from_millis(400));
        let mut now = Nanos::from_secs(1);
        let mut pauses = Vec::new();
        for _ in 0..4 {
            assert!(dialer.turn(now).expect("an outcome").is_err());
            let until = dialer.next_event().unwrap();
            assert!(dialer.turn(until - Nanos(1)).is_none());
            pauses.push((until - now).0 / 1_000_000);
            now = until;
        }
        assert_eq!(pauses, [125, 250, 400, 400]);
        dialer.lost(true, now);
        assert_eq!(dialer.next_event(), Some(now + PAUSE_MIN));
    }

    #[test]
    fn a_dialer_on_hold_does_nothing_until_it_is_released() {
        let url: Url = "unix:/nonexistent/planimeter.sock".parse().unwrap();
        let main = Dialer::new(url, None, Nanos::from_millis(400));
        let mut dialer = main.auxiliary(Auxiliary { main: 0, number: 1 });
        assert!(dialer.turn(Nanos(5)).is_none() && dialer.next_event().is_none());
        dialer.release(Nanos(5));
        assert_eq!(dialer.next_event(), Some(Nanos(5)));
        assert!(dialer.turn(Nanos(5)).expect("an outcome").is_err());
        dialer.release(Nanos(6));
        assert_eq!(dialer.next_event(), Some(Nanos(5) + PAUSE_MIN), "it was active already");
        dialer.hold();
        assert!(dialer.turn(Nanos::MAX).is_none() && dialer.next_event().is_none());
    }

    #[test]
    fn a_connection_is_opened_once_and_reopened_after_a_loss() {
        let folder = std::env::temp_dir().join(format!("switch-{}-dialer", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let socket = std::os::unix::net::UnixListener::bind(folder.join("s")).unwrap();
        let url: Url = format!("unix:{}", folder.join("s").display()).parse().unwrap();
        let mut dialer = Dialer::new(url, None, Nanos::from_millis(125));
        assert!(dialer.turn(Nanos(5)).expect("an outcome").is_ok());
        assert!(dialer.turn(Nanos::MAX).is_none() && dialer.next_event().is_none());
        dialer.lost(false, Nanos(5));
        assert!(dialer.turn(Nanos(5)).is_none());
        assert!(dialer.turn(Nanos(5) + PAUSE_MIN).expect("an outcome").is_ok());
        drop(socket);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
