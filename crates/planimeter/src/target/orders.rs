//! A controller beside a trial, in real time: one thread gives the orders, another sends frames.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use instrument::controller::play::Until;
use instrument::controller::script::Script;
use instrument::controller::{ControlError, Controller, RealTime, Settings};
use instrument::rig::live::LiveRig;
use instrument::rig::{Rig, RigError};
use instrument::trial::{Load, Trial, TrialReport};
use packet::time::Nanos;
use ports::channel::Url;

/// How long a target may take for some progress with what it was ordered.
pub const PATIENCE: Nanos = Nanos::from_secs(60);

/// How a controller that plays a script talks to its target.
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

/// What there is to say of a trial in which no frame was sent.
pub fn nothing_sent(trial: &Trial) -> TrialReport {
    TrialReport::unmeasured(trial, Nanos::ZERO, Load::default())
}

/// A trial with its orders, if it has any, which whoever `connect` gives is to carry out. Frames
/// need the thread that calls, which a rig of its own has; orders then have another one.
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
        (true, _) => Until::LeftAlone,
        (_, true) => Until::LastRound,
        _ => Until::Over,
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
