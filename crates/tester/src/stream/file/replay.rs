//! Replays in a stream file: the capture file and its timing.

use std::path::PathBuf;

use packet::time::Nanos;
use serde::Deserialize;

use crate::stream::Problem;
use crate::stream::replay::{Cut, FrameMark, Replay, ShortFrames, Timing};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplayEntry {
    pub id: u16,
    from: usize,
    file: PathBuf,
    gap_factor: Option<f64>,
    gap_ns: Option<u64>,
    rate_pps: Option<f64>,
    link_bits_per_second: Option<u64>,
    #[serde(default)]
    unpaced: bool,
    passes: Option<u64>,
    #[serde(default)]
    short: ShortEntry,
    #[serde(default)]
    cut: CutEntry,
    to: Option<usize>,
    signature_before_end: Option<usize>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "snake_case")]
enum ShortEntry {
    #[default]
    Pad,
    Refuse,
    Send,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "snake_case")]
enum CutEntry {
    #[default]
    Fill,
    Refuse,
    Send,
}

impl ReplayEntry {
    pub fn replay(self, problems: &mut Vec<Problem>) -> Replay {
        let said = [
            ("gap_factor", self.gap_factor.map(Timing::Scaled)),
            ("gap_ns", self.gap_ns.map(|gap| Timing::Gap(Nanos(gap)))),
            ("rate_pps", self.rate_pps.map(Timing::FramesPerSecond)),
            ("link_bits_per_second", self.link_bits_per_second.map(Timing::Link)),
            ("unpaced", self.unpaced.then_some(Timing::Unpaced)),
        ];
        let mut said = said.into_iter().filter_map(|(key, timing)| Some((key, timing?)));
        let first = said.next();
        if let (Some((one, _)), Some((other, _))) = (&first, said.next()) {
            problems.push(Problem::Contradiction(one, other));
        }
        if self.to.is_none() && self.signature_before_end.is_some() {
            problems.push(Problem::MissingKey("to"));
        }
        let before_end = self.signature_before_end.unwrap_or(0);
        Replay {
            mark: self.to.map(|to| FrameMark { to: to.wrapping_sub(1), before_end }),
            id: self.id,
            // Port 0 is invalid in a file. It becomes an index that no rig has.
            from: self.from.wrapping_sub(1),
            file: self.file,
            timing: first.map_or(Timing::Original, |(_, timing)| timing),
            passes: match self.passes {
                Some(0) => None,
                passes => passes.or(Some(1)),
            },
            short: match self.short {
                ShortEntry::Pad => ShortFrames::Pad,
                ShortEntry::Refuse => ShortFrames::Refuse,
                ShortEntry::Send => ShortFrames::Send,
            },
            cut: match self.cut {
                CutEntry::Fill => Cut::Fill,
                CutEntry::Refuse => Cut::Refuse,
                CutEntry::Send => Cut::Send,
            },
        }
    }
}
