//! Results of a session, from what the module observed.
//!
//! A port change happened between two frames: after one was sent and before the other arrived. Gaps in which the
//! tester sent no frames prove nothing.
//!
//! Invariant: the module reports no value that it did not observe.

use packet::time::Nanos;
use tester::module::MeasuredValue;

use super::{Change, SETTLE, Session, UncontrolledFrames};
use crate::control_plane::requests::Answer;

impl Session {
    pub(super) fn tell_equal(&mut self) {
        let all = self.trying.frames * self.trying.controllers as u64;
        let told: u64 = self.told.counts.iter().sum();
        self.report("equal_told_ratio", "ratio", told as f64 / all as f64, 0.0, all);
    }

    pub(super) fn tell_ruling(&mut self) {
        let frames = self.trying.frames;
        let master = self.told.counts.first().copied().unwrap_or(0);
        let slaves: u64 = self.told.counts.iter().skip(1).sum();
        self.report("master_told_ratio", "ratio", master as f64 / frames as f64, 0.0, frames);
        self.report("slaves_told_frames", "frames", slaves as f64, 0.0, frames);
    }

    pub(super) fn report(
        &mut self,
        name: &'static str,
        unit: &'static str,
        value: f64,
        half: f64,
        count: u64,
    ) {
        self.results.push(MeasuredValue::new(name, unit, value, half).of(count));
    }

    pub(super) fn tell_roles(&mut self) {
        if let Some(answer) = self.slave {
            let refused = f64::from(u8::from(answer.errors > 0));
            self.report("slave_refused_ratio", "ratio", refused, 0.0, 1);
        }
        let Some(asked) = self.takeover.asked else { return };
        let old_last = self.takeover.old_last.unwrap_or(asked.sent_at);
        self.tell_moment("takeover_ns", [Some(old_last), self.takeover.first_at], &asked);
        let numbers = &self.told.numbers;
        if let (Some(first), Some(last)) = (numbers.first(), numbers.last()) {
            let (all, told) = (last - first + 1, numbers.len() as u64);
            self.report("takeover_missed_frames", "frames", (all - told) as f64, 0.0, all);
            let old = self.takeover.old_told as f64;
            self.report("old_master_told_frames", "frames", old, 0.0, all);
        }
    }

    pub(super) fn tell_ports(&mut self) {
        let (down, up) = (std::mem::take(&mut self.down), std::mem::take(&mut self.up));
        self.backs.sort_unstable();
        // A frame that was sent together with a frame of the other stream adds no information.
        let apart = Nanos((self.gap_ns() / 2.0) as u64);
        // Frames still sent at the end of the step show that the change had no effect.
        let ceased = |last: &Nanos, answer: &Answer| last.since(answer.last_at).0 < SETTLE.0 / 2;
        if let Some(answer) = down.done() {
            self.tell_heard("port_down_told_ns", &down, answer);
            if let Some(last) = down.last.filter(|last| ceased(last, answer)) {
                let next = self.backs.iter().find(|[sent_at, _]| sent_at.since(last) > apart);
                let next = next.map(|[_, at]| *at);
                self.tell_moment("port_down_ns", [Some(last), next], answer);
            }
        }
        if let Some(answer) = up.done() {
            self.tell_heard("port_up_told_ns", &up, answer);
            let first = up.firsts.iter().filter(|[sent_at, _]| *sent_at > answer.sent_at).min();
            let lost = |[sent_at, _]: &&[Nanos; 2]| {
                first.is_some_and(|[first, _]| first.since(*sent_at) > apart)
            };
            let previous = self.backs.iter().rev().find(lost).map(|[sent_at, _]| *sent_at);
            let first = first.map(|[_, at]| *at);
            self.tell_moment("port_up_ns", [previous, first], answer);
        }
    }

    /// Reports when the last controller received the port status of a change.
    pub(super) fn tell_heard(&mut self, name: &'static str, change: &Change, answer: &Answer) {
        let heard: Option<Vec<Nanos>> = change.heard_at.iter().map(|(_, at)| *at).collect();
        if let Some(last) = heard.and_then(|all| all.into_iter().max()) {
            let count = change.heard_at.len() as u64;
            self.report(name, "ns", last.since(answer.sent_at).0 as f64, 0.0, count);
        }
    }

    /// Reports the time of a change between two frames, which is not before its request.
    pub(super) fn tell_moment(
        &mut self,
        name: &'static str,
        ends: [Option<Nanos>; 2],
        answer: &Answer,
    ) {
        let [Some(from), Some(until)] = ends else { return };
        let from = from.max(answer.sent_at).since(answer.sent_at).0 as f64;
        let until = (until.since(answer.sent_at).0 as f64).max(from);
        self.report(name, "ns", (from + until) / 2.0, (until - from) / 2.0, 1);
    }

    pub(super) fn tell_without(&mut self) {
        let UncontrolledFrames { from, until, ref ruled, missed } = self.without;
        if until <= from {
            return;
        }
        let ends = ruled.first().zip(ruled.last());
        let all = ends.map_or(0, |(first, last)| last - first + 1);
        let kept = if all == 0 { 0.0 } else { ruled.len() as f64 / all as f64 };
        let rows = ruled.iter().zip(ruled.iter().skip(1)).map(|(one, next)| next - one - 1);
        let silence = rows.max().unwrap_or(0) as f64 * self.gap_ns();
        let sent = (until.since(from).0 as f64 / self.gap_ns()).max(1.0);
        let bridged = (missed as f64 / sent).min(1.0);
        self.report("alone_ruled_ratio", "ratio", kept, 0.0, all);
        self.report("alone_silence_ns_max", "ns", silence, self.gap_ns(), all);
        self.report("alone_missed_ratio", "ratio", bridged, 1.0 / sent, all);
    }
}
