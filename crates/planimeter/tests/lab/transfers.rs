//! Tests of TCP connections between hosts, through targets of every kind: results, and the effect
//! of limits.

use serde_json::Value;

use super::common::{only_run, record};
use super::{Place, System};

/// Targets with rules, with addresses, with routes and with tags.
const TARGETS: [&str; 5] = ["switch", "bridge", "linux-bridge", "linux-router", "linux-tagger"];

fn measured(trial: &Value, name: &str) -> Option<f64> {
    let all = trial["module"]["measured"].as_array()?;
    all.iter().find(|it| it["metric"] == name)?["value"].as_f64()
}

/// Tests that the smallest window limits a connection, and that the frames have the requested size.
pub fn the_requested_window_and_frame_size_apply() {
    let place = Place::new();
    let before = System::now();
    let mut arguments = vec![
        "run",
        "gelberger2013/fig4",
        "gelberger2013/fig7",
        "--effort",
        "quick",
        "--link",
        "veth",
    ];
    let set = ["repeats=1", "window=5000,4000000", "window_bytes=4000000", "frame=256"];
    arguments.extend(set.iter().flat_map(|it| ["--set", it]));
    arguments.extend(TARGETS.iter().flat_map(|target| ["--on", target]));
    let result = place.planimeter(&arguments);
    assert_eq!(result.code, Some(0), "{}", result.errors);
    place.assert_clean(&before);
    let record = record(&only_run(&place.path().join("runs")));
    let trials = record["trials"].as_array().unwrap();
    // Our switch has to switch, route and tag.
    assert_eq!(trials.len(), 7 * 2 + 7);
    for trial in trials {
        assert_eq!(trial["module"]["ended"], "completed", "{trial}");
        let reported =
            |name: &str| measured(trial, name).unwrap_or_else(|| panic!("{name}: {trial}"));
        assert!(reported("tcp_throughput_bps") > 0.0, "{trial}");
        assert!(reported("retransmits_count") >= 0.0 && reported("timeouts_count") >= 0.0);
        let requested = trial["point"]["value"].as_f64().unwrap();
        let obtained = reported("window_obtained_bytes");
        match trial["experiment"].as_str() {
            Some("gelberger2013/fig4") => {
                // The system reserves a part of a buffer, and counts the rest in whole segments.
                assert!((0.5..2.0).contains(&(obtained / requested)), "{obtained} for {requested}");
                assert_eq!(reported("segment_payload_bytes"), 1448.0, "{trial}");
            }
            // A frame's headers and check sequence, and TCP's timestamp option.
            _ => {
                assert_eq!(reported("segment_payload_bytes"), 256.0 - 18.0 - 40.0 - 12.0, "{trial}")
            }
        }
    }
}
