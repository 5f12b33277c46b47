//! A TCP connection between two hosts: iperf3 sends as much as the window allows, for a fixed time.
//!
//! ```text
//!   window W  ->  tcp_wmem of the sender's namespace, tcp_rmem of the receiver's: 2 W and no more
//! ```
//! A program that requests a socket buffer of W gets 2 W, half of which is for overhead. This
//! module sets the limits of the namespaces instead, because a program's own limit (`rmem_max`)
//! belongs to the whole machine. No other program sees these limits, and nothing of the machine
//! changes. The effective window is measured at the sender: the largest window that the receiver
//! offered.
//!
//! Source: `iperf3(1)`, `tcp(7)`, `socket(7)`.
//!
//! Invariants:
//! - Congestion control is CUBIC, independent of the machine's default.
//! - At the end, or when dropped, the limits are restored, and both programs are dead and waited
//!   for.

use std::time::Duration;

use serde_json::Value;

use super::super::settings::ChangedSettings;
use super::{Iperf, IperfResources, program, told, whole_seconds};
use crate::LabError;
use crate::host::Host;
use crate::tcp_diag::{Counts, Diagnosis};

/// Bytes of a frame in addition to an MSS: Ethernet with frame check sequence, IPv4, and TCP
/// without options, which Linux counts as part of the segment.
const AROUND_SEGMENT: u32 = 18 + 20 + 20;

/// Smallest MSS that Linux accepts from a program.
const SEGMENT_BYTES_MIN: u32 = 88;

/// Smallest value of a buffer's limits, which the kernel guarantees when memory is short.
const BUFFER_BYTES_MIN: u64 = 4096;

/// More bytes than the program sends on its control connection.
const SAID_BYTES_MAX: u64 = 4096;

/// Parameters of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransferSettings {
    /// Window of both ends in bytes; `None` for the system's default.
    pub window_bytes: Option<u64>,
    /// Bytes of a full frame with frame check sequence; `None` for the largest that the link
    /// supports.
    pub frame_bytes: Option<u32>,
    /// Duration in whole seconds, at least one.
    pub span: Duration,
}

/// Result of a transfer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    /// Program and version.
    pub program: String,
    /// Congestion control of the sender.
    pub congestion: String,
    /// Bytes received.
    pub received_bytes: u64,
    /// Duration in seconds.
    pub seconds: f64,
    /// Retransmitted segments, as reported by the program.
    pub retransmits: u64,
    /// Counters of the sender's namespace for the same time.
    pub counts: Counts,
    /// Largest window offered by the receiver, in bytes.
    pub window_bytes: Option<u64>,
    /// Largest congestion window of the sender, in bytes.
    pub congestion_bytes: Option<u64>,
    /// Mean smoothed round-trip time in microseconds.
    pub round_trip_us: Option<u64>,
    /// Payload of a full segment in bytes.
    pub segment_bytes: Option<u64>,
}

/// A transfer in progress.
#[derive(Debug)]
pub struct Transfer<'a> {
    iperf: Iperf<'a>,
    from: &'a Host,
    diagnosis: Diagnosis,
    before: Counts,
    window_bytes: Option<u64>,
    segment_bytes: Option<u64>,
    _limits: ChangedSettings,
}

impl<'a> Transfer<'a> {
    /// Starts a server on one host, and a sending client on the other.
    pub fn start(
        from: &'a Host,
        to: &Host,
        terms: &TransferSettings,
        place: &IperfResources,
    ) -> Result<Transfer<'a>, LabError> {
        let mut words = format!("--congestion cubic --time {}", whole_seconds(terms.span));
        if let Some(frame_bytes) = terms.frame_bytes {
            let segment = frame_bytes.checked_sub(AROUND_SEGMENT);
            let segment = segment.filter(|segment| *segment >= SEGMENT_BYTES_MIN);
            let value = frame_bytes.to_string();
            let wrong = || LabError::Argument { what: "frame size in bytes", value };
            words += &format!(" --set-mss {}", segment.ok_or_else(wrong)?);
        }
        let limits = limits(from, to, terms)?;
        let diagnosis = Diagnosis::of(from.namespace())?;
        let before = Counts::of(from.namespace())?;
        let iperf = Iperf::launch(from, to, &words, place)?;
        let (window_bytes, segment_bytes) = (None, None);
        Ok(Transfer {
            iperf,
            from,
            diagnosis,
            before,
            window_bytes,
            segment_bytes,
            _limits: limits,
        })
    }

    /// Returns the result once the transfer has ended by itself, or an error if it failed. Each
    /// call also samples the window.
    pub fn ended(&mut self) -> Result<Option<Report>, LabError> {
        if self.iperf.is_over(parse)? {
            return self.report().map(Some);
        }
        let connections = self.diagnosis.connections()?;
        // The program also has a control connection, with few bytes.
        let busiest = connections.iter().max_by_key(|it| it.acked_bytes);
        let offered = busiest.and_then(|it| it.window_bytes);
        self.window_bytes = self.window_bytes.max(offered);
        let sending = busiest.filter(|it| it.acked_bytes > SAID_BYTES_MAX);
        self.segment_bytes = sending.map(|it| it.segment_bytes.into()).or(self.segment_bytes);
        Ok(None)
    }

    fn report(&self) -> Result<Report, LabError> {
        let counts = Counts::of(self.from.namespace())?.since(&self.before);
        let said = self.iperf.report(parse)?;
        // The program samples the window only once a second, and some versions do not report it.
        let window_bytes = self.window_bytes.max(said.window_bytes);
        Ok(Report { counts, window_bytes, segment_bytes: self.segment_bytes, ..said })
    }
}

/// Sets the limits of both ends until the returned value is dropped.
fn limits(from: &Host, to: &Host, terms: &TransferSettings) -> Result<ChangedSettings, LabError> {
    let mut changed = ChangedSettings::default();
    let Some(window) = terms.window_bytes else { return Ok(changed) };
    let buffer = window.saturating_mul(2).min(i32::MAX as u64);
    let least = buffer.min(BUFFER_BYTES_MIN);
    let value = format!("{least} {buffer} {buffer}");
    for host in [from, to] {
        for setting in ["net/ipv4/tcp_rmem", "net/ipv4/tcp_wmem"] {
            changed.set(host.namespace(), setting, &value)?;
        }
    }
    Ok(changed)
}

/// Parses the program's report.
fn parse(said: &[u8]) -> Result<Report, String> {
    let told = told(said)?;
    if let Some(error) = told["error"].as_str() {
        return Err(error.to_owned());
    }
    let end = &told["end"];
    let missing = |what: &str| format!("no {what} in the report");
    let received = &end["sum_received"];
    let seconds = received["seconds"].as_f64().filter(|seconds| *seconds > 0.0);
    let sender = &end["streams"][0]["sender"];
    let number = |value: &Value| value.as_u64();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Ok(Report {
        program: program(&told),
        congestion: text(&end["sender_tcp_congestion"]),
        received_bytes: number(&received["bytes"]).ok_or_else(|| missing("received bytes"))?,
        seconds: seconds.ok_or_else(|| missing("duration"))?,
        retransmits: number(&end["sum_sent"]["retransmits"])
            .ok_or_else(|| missing("retransmissions"))?,
        counts: Counts::default(),
        window_bytes: number(&sender["max_snd_wnd"]).filter(|bytes| *bytes > 0),
        congestion_bytes: number(&sender["max_snd_cwnd"]).filter(|bytes| *bytes > 0),
        round_trip_us: number(&sender["mean_rtt"]).filter(|us| *us > 0),
        segment_bytes: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = r#"{"start":{"version":"iperf 3.12"},"end":{
        "streams":[{"sender":{"bytes":900,"retransmits":3,"max_snd_cwnd":14480,"mean_rtt":81}}],
        "sum_sent":{"seconds":1.0,"bytes":900,"retransmits":3},"sum_received":{"seconds":1.5,"bytes":800},
        "sender_tcp_congestion":"cubic"}}"#;

    #[test]
    fn the_report_of_a_connection_is_parsed() {
        let report = parse(SAID.as_bytes()).unwrap();
        assert_eq!((report.program.as_str(), report.congestion.as_str()), ("iperf 3.12", "cubic"));
        assert_eq!((report.received_bytes, report.seconds, report.retransmits), (800, 1.5, 3));
        assert_eq!((report.congestion_bytes, report.round_trip_us), (Some(14_480), Some(81)));
        assert_eq!(report.window_bytes, None);
    }

    #[test]
    fn an_incomplete_report_is_an_error() {
        for (text, why) in [
            (SAID.replace(r#""end""#, r#""error":"unable to connect","end""#), "unable to connect"),
            (SAID.replace(r#""bytes":800"#, r#""x":1"#), "received bytes"),
            (SAID.replace(r#""retransmits":3}"#, r#""x":1}"#), "retransmissions"),
            (SAID.replace("1.5", "0"), "duration"),
        ] {
            let found = parse(text.as_bytes());
            assert!(found.as_ref().is_err_and(|found| found.contains(why)), "{why}: {found:?}");
        }
    }
}
