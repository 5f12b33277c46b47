//! A connection by TCP between two hosts: iperf3 sends as much as the window lets it, for a set time.
//!
//! ```text
//!   window W  ->  tcp_wmem of the sender's namespace, tcp_rmem of the receiver's: 2 W and no more
//! ```
//! A socket whose program asks for a buffer of W gets one of 2 W, half of which is for what surrounds the bytes. The same is
//! asked for here by the limits of the namespaces, since the limit that a program meets (`rmem_max`) is the whole
//! machine's. So no program but this sees other limits, and nothing of the machine is changed. What was
//! obtained is seen at the sender: the largest window that its receiver offered.
//!
//! Source: `iperf3(1)`, `tcp(7)`, `socket(7)`. Invariants: congestion control is CUBIC, whatever the machine's own is; when it is
//! over, or dropped, the limits are what they were and both programs are dead and waited for.

use std::time::Duration;

use serde_json::Value;

use super::super::settings::Changed;
use super::{Iperf, Place, program, told, whole_seconds};
use crate::LabError;
use crate::host::Host;
use crate::tcp_diag::{Counts, Diagnosis};

/// Bytes of a frame around a largest segment: Ethernet with its check sequence, IPv4, TCP without options, which Linux
/// counts into the segment.
const AROUND_SEGMENT: u32 = 18 + 20 + 20;

/// The least largest segment that Linux takes from a program.
const SEGMENT_BYTES_MIN: u32 = 88;

/// The smallest frame whose payload can be set.
pub const FRAME_BYTES_MIN: u32 = SEGMENT_BYTES_MIN + AROUND_SEGMENT;

/// The least part of a buffer's limits, which the kernel keeps to when memory is short.
const BUFFER_BYTES_MIN: u64 = 4096;

/// More than the program says beside what it sends.
const SAID_BYTES_MAX: u64 = 4096;

/// What is to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// The window that both ends are given, in bytes; none for what the system gives by itself.
    pub window_bytes: Option<u64>,
    /// Bytes of a full frame, check sequence included; none for the largest that the link takes.
    pub frame_bytes: Option<u32>,
    /// How long it sends, in whole seconds, at least one.
    pub span: Duration,
}

/// What came of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    /// The program and its version.
    pub program: String,
    /// How the sender answered congestion.
    pub congestion: String,
    /// Bytes that the receiver had.
    pub received_bytes: u64,
    /// In how many seconds.
    pub seconds: f64,
    /// Segments that were sent again, as the program says of its connection.
    pub retransmits: u64,
    /// What the sender's namespace counted meanwhile.
    pub counts: Counts,
    /// The largest window that the receiver was seen to offer, in bytes.
    pub window_bytes: Option<u64>,
    /// The largest that the sender allowed itself, in bytes.
    pub congestion_bytes: Option<u64>,
    /// The mean of the smoothed times of a round trip, in microseconds.
    pub round_trip_us: Option<u64>,
    /// What a full segment carried, in bytes.
    pub segment_bytes: Option<u64>,
}

/// A connection over which is sent.
#[derive(Debug)]
pub struct Transfer<'a> {
    iperf: Iperf<'a>,
    from: &'a Host,
    diagnosis: Diagnosis,
    before: Counts,
    window_bytes: Option<u64>,
    segment_bytes: Option<u64>,
    _limits: Changed,
}

impl<'a> Transfer<'a> {
    /// Starts a server on one host, and a client on the other that sends.
    pub fn start(
        from: &'a Host,
        to: &Host,
        terms: &Terms,
        place: &Place,
    ) -> Result<Transfer<'a>, LabError> {
        let mut words = format!("--congestion cubic --time {}", whole_seconds(terms.span));
        if let Some(frame_bytes) = terms.frame_bytes {
            let segment = frame_bytes.checked_sub(AROUND_SEGMENT);
            let segment = segment.filter(|segment| *segment >= SEGMENT_BYTES_MIN);
            let value = frame_bytes.to_string();
            let wrong = || LabError::Argument { what: "bytes of a frame", value };
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

    /// What came of it, once it has ended by itself; an error where it failed. Each call looks at the window too.
    pub fn ended(&mut self) -> Result<Option<Report>, LabError> {
        if self.iperf.is_over(parse)? {
            return self.report().map(Some);
        }
        let connections = self.diagnosis.connections()?;
        // Beside its bytes the program has a connection on which it says little.
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
        // What it says itself it has seen at each end of a second, and some versions do not say it.
        let window_bytes = self.window_bytes.max(said.window_bytes);
        Ok(Report { counts, window_bytes, segment_bytes: self.segment_bytes, ..said })
    }
}

/// Sets the limits of both ends, which last as long as what is returned.
fn limits(from: &Host, to: &Host, terms: &Terms) -> Result<Changed, LabError> {
    let mut changed = Changed::default();
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

/// What the program says of its connection.
fn parse(said: &[u8]) -> Result<Report, String> {
    let told = told(said)?;
    if let Some(error) = told["error"].as_str() {
        return Err(error.to_owned());
    }
    let end = &told["end"];
    let missing = |what: &str| format!("it does not say {what}");
    let received = &end["sum_received"];
    let seconds = received["seconds"].as_f64().filter(|seconds| *seconds > 0.0);
    let sender = &end["streams"][0]["sender"];
    let number = |value: &Value| value.as_u64();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Ok(Report {
        program: program(&told),
        congestion: text(&end["sender_tcp_congestion"]),
        received_bytes: number(&received["bytes"]).ok_or_else(|| missing("what was received"))?,
        seconds: seconds.ok_or_else(|| missing("how long it took"))?,
        retransmits: number(&end["sum_sent"]["retransmits"])
            .ok_or_else(|| missing("what was sent again"))?,
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
    fn what_it_says_of_its_connection_is_read() {
        let said = parse(SAID.as_bytes()).unwrap();
        assert_eq!((said.program.as_str(), said.congestion.as_str()), ("iperf 3.12", "cubic"));
        assert_eq!((said.received_bytes, said.seconds, said.retransmits), (800, 1.5, 3));
        assert_eq!((said.congestion_bytes, said.round_trip_us), (Some(14_480), Some(81)));
        assert_eq!(said.window_bytes, None);
    }

    #[test]
    fn what_it_does_not_say_is_an_error() {
        for (text, why) in [
            (SAID.replace(r#""end""#, r#""error":"unable to connect","end""#), "unable to connect"),
            (SAID.replace(r#""bytes":800"#, r#""x":1"#), "what was received"),
            (SAID.replace(r#""retransmits":3}"#, r#""x":1}"#), "what was sent again"),
            (SAID.replace("1.5", "0"), "how long"),
        ] {
            let found = parse(text.as_bytes());
            assert!(found.as_ref().is_err_and(|found| found.contains(why)), "{why}: {found:?}");
        }
    }
}
