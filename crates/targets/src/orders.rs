//! A controller that acts during a trial in real time: one thread sends its commands, another sends
//! frames.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use channel::Url;
use packet::time::Nanos;
use tester::controller::play::PlayLimit;
use tester::controller::script::Script;
use tester::controller::{ControlError, Controller, RealTime, Settings};
use tester::rig::live::LiveRig;
use tester::rig::{Rig, RigError};
use tester::trial::{Load, Trial, TrialReport};

/// Time limit for a target's progress with its commands.
pub const PATIENCE: Nanos = Nanos::from_secs(60);

/// Returns the controller settings for a script.
pub fn settings(script: &Script) -> Settings {
    let mut settings = Settings { reply_timeout: PATIENCE, ..Settings::new() };
    settings.session.versions = vec![script.version()];
    settings
}

/// Connects to a target to play a script.
pub fn connected(channel: &str, script: &Script) -> Result<Controller, ControlError> {
    let url: Url = channel.parse()?;
    Controller::connect(&url, settings(script))
}

/// Returns the report of a trial in which no frame was sent.
pub fn nothing_sent(trial: &Trial) -> TrialReport {
    TrialReport::unmeasured(trial, Nanos::ZERO, Load::default())
}

/// Runs a trial with its controller commands, if it has any, on the connection that `connect`
/// opens.
///
/// A rig needs the calling thread for its frames; commands then run in another thread.
pub fn trial(
    rig: &mut LiveRig,
    trial: &Trial,
    stop: &AtomicBool,
    connect: impl FnOnce(&Script) -> Result<Controller, ControlError>,
) -> Result<TrialReport, RigError> {
    let Some(script) = &trial.orders else {
        return match trial.streams.is_empty() {
            true => Ok(nothing_sent(trial)),
            false => rig.trial(trial),
        };
    };
    let play = connect(script).map_err(RigError::Orders)?.play(&Arc::clone(script));
    let stopped = || stop.load(Ordering::Relaxed);
    let until = |sent: bool| match (stopped(), sent) {
        (true, _) => PlayLimit::LeftAlone,
        (_, true) => PlayLimit::LastRound,
        _ => PlayLimit::Over,
    };
    if trial.streams.is_empty() {
        let played =
            play.to_end(&mut RealTime::default(), || until(true)).map_err(RigError::Orders)?;
        if stopped() {
            return Err(RigError::Interrupted);
        }
        return Ok(TrialReport { played: Some(played), ..nothing_sent(trial) });
    }
    let sent = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let orders = scope.spawn(|| {
            play.to_end(&mut RealTime::default(), || until(sent.load(Ordering::Relaxed)))
        });
        let report = rig.trial(trial);
        sent.store(true, Ordering::Relaxed);
        let played = orders.join().expect("a controller does not panic");
        let played = Some(played.map_err(RigError::Orders)?);
        Ok(TrialReport { played, ..report? })
    })
}
