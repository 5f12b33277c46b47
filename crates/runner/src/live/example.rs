//! An invented run, to test what is shown of runs.

use tester::search::bracket::{Bracket, SearchQuantity};

use super::event::{
    Event, LiveEvent, PlannedPart, Rates, RunStarted, TargetStatus, TrialBegun, TrialEnded,
};
use super::state::RunState;

pub(super) fn told(at_ms: u64, event: Event) -> LiveEvent {
    LiveEvent { at_ms, lost: 0, event }
}

pub(super) fn bracket(tried: f64, met: Option<f64>, missed: Option<f64>) -> Bracket {
    let sought = SearchQuantity::load("throughput", 0.0);
    Bracket { sought, tried, met, missed, most: 1e6, width: Some(1e4) }
}

pub(super) fn trial(id: u64, target: &str, rate_pps: f64, bracket: Option<Bracket>) -> Event {
    Event::Trial(Box::new(TrialBegun {
        id,
        experiment: "throughput".into(),
        target: target.into(),
        point: "frame_bytes=64".into(),
        repeat: 1,
        rate_pps: Some(rate_pps),
        seconds: Some(2.0),
        brackets: bracket.into_iter().collect(),
        ..TrialBegun::default()
    }))
}

/// Returns the events of a search on two targets in its third step.
pub fn events() -> Vec<LiveEvent> {
    let standing = |name: &str, is: &str| TargetStatus {
        name: name.into(),
        is: is.into(),
        link: "veth".into(),
        network: None,
    };
    let begun = RunStarted {
        command_line: "planimeter run throughput --on switch --on ovs".into(),
        created: "2026-01-31T12:00:00Z".into(),
        experiments: vec!["throughput".into()],
        targets: vec![standing("switch", "OpenFlow switch"), standing("ovs", "OpenFlow switch")],
        process: 4711,
        is_virtual: false,
    };
    let bracket = |tried, missed| Some(bracket(tried, None, missed));
    let rates = |sent: u64, times| {
        let latencies = vec![(12, times), (14, times * 3), (20, 1)];
        Event::Rates(Rates { ports: vec![[sent, 0], [0, sent - sent / 10]], latencies })
    };
    let ended = |id, warnings: &[&str]| {
        let line = format!("throughput switch frame_bytes=64: trial {id} in one line");
        let warnings = warnings.iter().map(|it| it.to_string()).collect();
        Event::Ended(TrialEnded { id, line, warnings })
    };
    let part = |target: &str| PlannedPart {
        experiment: "throughput".into(),
        target: target.into(),
        seconds: 30.0,
        trial_s: 2.5,
    };
    vec![
        told(1_000, Event::Begun(Box::new(begun))),
        told(1_500, Event::Said { line: "tester over veth without target: fine".into() }),
        told(
            2_000,
            Event::Planned { trials: 24, done: 0, parts: ["switch", "ovs"].map(part).into() },
        ),
        told(2_000, trial(1, "switch", 1e6, bracket(1e6, None))),
        told(2_400, rates(900_000, 10)),
        told(4_000, ended(1, &[])),
        told(4_000, trial(2, "ovs", 1e6, bracket(1e6, None))),
        told(4_400, rates(800_000, 20)),
        told(6_000, ended(2, &["the tester was descheduled"])),
        told(6_000, trial(3, "switch", 5e5, bracket(5e5, Some(1e6)))),
        told(6_400, rates(500_000, 30)),
    ]
}

/// Returns the state from these events.
pub fn picture() -> RunState {
    let mut picture = RunState::default();
    events().into_iter().for_each(|reported| picture.tell(reported));
    picture
}
