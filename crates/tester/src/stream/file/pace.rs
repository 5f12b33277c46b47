//! Rates, schedules and sizes in a stream file.

use packet::time::Nanos;
use serde::Deserialize;

use super::entry::Entry;
use crate::stream::{BurstProfile, Genome, Problem, Rate};

#[derive(Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum ScheduleEntry {
    #[default]
    Constant,
    Poisson(PoissonEntry),
    Bursts(BurstsEntry),
    OnOff(OnOffEntry),
    Ramp(RampEntry),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PoissonEntry {
    seed: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BurstsEntry {
    frames: u64,
    gap_ns: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OnOffEntry {
    on_ns: u64,
    off_ns: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RampEntry {
    to_pps: Option<f64>,
    to_percent: Option<f64>,
    over_ns: u64,
}

impl Entry {
    pub(super) fn rate(&self, problems: &mut Vec<Problem>) -> Rate {
        match (self.rate_pps, self.rate_percent, self.link_bits_per_second) {
            (Some(pps), None, None) => Rate::FramesPerSecond(pps),
            (None, Some(percent), Some(link_bits_per_second)) => {
                Rate::LinkPercent { percent, link_bits_per_second }
            }
            (Some(pps), _, _) => {
                problems.push(Problem::Contradiction("rate_pps", "rate_percent"));
                Rate::FramesPerSecond(pps)
            }
            (None, percent, link) => {
                let missing = match (percent, link) {
                    (Some(_), None) => "link_bits_per_second",
                    (None, Some(_)) => "rate_percent",
                    _ => "rate_pps",
                };
                problems.push(Problem::MissingKey(missing));
                Rate::FramesPerSecond(1.0)
            }
        }
    }

    pub(super) fn shape(&self, rate: Rate, problems: &mut Vec<Problem>) -> BurstProfile {
        match &self.schedule {
            ScheduleEntry::Constant => BurstProfile::Constant,
            ScheduleEntry::Poisson(PoissonEntry { seed }) => BurstProfile::Poisson { seed: *seed },
            ScheduleEntry::Bursts(BurstsEntry { frames, gap_ns }) => {
                BurstProfile::Bursts { frames: *frames, gap: Nanos(*gap_ns) }
            }
            ScheduleEntry::OnOff(OnOffEntry { on_ns, off_ns }) => {
                BurstProfile::OnOff { on: Nanos(*on_ns), off: Nanos(*off_ns) }
            }
            ScheduleEntry::Ramp(RampEntry { to_pps, to_percent, over_ns }) => {
                let to = match (*to_pps, *to_percent, rate) {
                    (Some(pps), None, _) => Some(Rate::FramesPerSecond(pps)),
                    (None, Some(percent), Rate::LinkPercent { link_bits_per_second, .. }) => {
                        Some(Rate::LinkPercent { percent, link_bits_per_second })
                    }
                    _ => None,
                };
                let to = to.unwrap_or_else(|| {
                    problems.push(match (to_pps, to_percent) {
                        (Some(_), Some(_)) => Problem::Contradiction("to_pps", "to_percent"),
                        (None, Some(_)) => Problem::MissingKey("link_bits_per_second"),
                        _ => Problem::MissingKey("to_pps or to_percent"),
                    });
                    rate
                });
                BurstProfile::Ramp { to, over: Nanos(*over_ns) }
            }
        }
    }

    /// Returns the frame size, or the sequence of sizes.
    pub(super) fn sizes(&self, problems: &mut Vec<Problem>) -> (usize, Option<Genome>) {
        let mut own = Vec::new();
        for (letter, &bytes) in &self.genome_sizes {
            let mut letters = letter.chars();
            match (letters.next(), letters.next()) {
                (Some(one), None) if one.is_ascii_uppercase() || one == 'z' => {
                    own.push((one, bytes));
                }
                _ => problems.push(Problem::BadLetter(letter.clone())),
            }
        }
        if self.genome.is_none() && !self.genome_sizes.is_empty() {
            problems.push(Problem::MissingKey("genome"));
        }
        match (self.frame_bytes, &self.genome) {
            (Some(bytes), None) => return (bytes, None),
            (None, Some(text)) => match Genome::read(text, &own) {
                Ok(genome) => return (0, Some(genome)),
                Err(error) => problems.push(Problem::BadGenome(error)),
            },
            (Some(_), Some(_)) => problems.push(Problem::Contradiction("frame_bytes", "genome")),
            (None, None) => problems.push(Problem::MissingKey("frame_bytes")),
        }
        // Large enough for any headers, so that one problem is not reported twice.
        (1518, None)
    }
}
