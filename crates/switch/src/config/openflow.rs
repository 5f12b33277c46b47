//! What an OpenFlow switch is told: versions, tables, controllers, limits.
//!
//! Every limit that a controller can reach has a name here, and a default that a test bench can
//! live with; reaching it is the OpenFlow error or the counter that its description names.

use std::str::FromStr;

use ports::channel::{ChannelError, Url};
use serde::Deserialize;

use super::{BUFFERS_MAX, CONTROLLERS_MAX, FLOWS_MAX, FileError, Problem};

/// An OpenFlow switch.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OpenFlowConfig {
    /// Flows that the exact-match hash table holds.
    pub exact_flows_max: usize,
    /// Flows that the linear wildcard table holds.
    pub wildcard_flows_max: usize,
    /// Controllers that the switch connects to (`tcp:IP:PORT`, `unix:FILE`).
    pub controllers: Vec<String>,
    /// Where it waits for controllers (`ptcp:PORT[:IP]`, `punix:FILE`).
    pub listen: Vec<String>,
    /// What happens to frames that match nothing while no controller is connected.
    pub fail_mode: FailMode,
    /// The switch's identity; without one it is made from the first port's address.
    #[serde(deserialize_with = "datapath_id_from_text")]
    pub datapath_id: Option<u64>,
    /// Bytes of a frame without match that a controller gets until it asks otherwise.
    pub miss_send_len: u16,
    /// Packets that are kept until a controller says what to do with them.
    pub buffers: usize,
    /// A packet is kept at least this long; after that a newer one may take its place.
    pub buffer_ms: u64,
    /// An idle connection is probed after this long, and given up after as long again.
    pub probe_ms: u64,
    /// Longest pause between two attempts to reach a controller.
    pub backoff_ms_max: u64,
}

/// What happens to frames that match nothing while no controller is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FailMode {
    /// They are dropped; flows stay.
    Secure,
    /// The switch forwards them as a learning bridge would.
    Standalone,
}

impl Default for OpenFlowConfig {
    fn default() -> Self {
        OpenFlowConfig {
            exact_flows_max: 131_072,
            wildcard_flows_max: 100,
            controllers: Vec::new(),
            listen: Vec::new(),
            fail_mode: FailMode::Secure,
            datapath_id: None,
            miss_send_len: 128,
            buffers: 256,
            buffer_ms: 1_000,
            probe_ms: 5_000,
            backoff_ms_max: 8_000,
        }
    }
}

impl OpenFlowConfig {
    /// Reads the settings of a switch from a TOML text.
    pub fn from_toml(text: &str) -> Result<Self, FileError> {
        toml::from_str(text).map_err(|error| FileError::new(text, &error))
    }

    pub(super) fn validate(&self, problems: &mut Vec<Problem>) {
        let range = |key, have: u64, min, max| Problem::check(key, have, min, max);
        let checks = [
            range("exact_flows_max", self.exact_flows_max as u64, 0, FLOWS_MAX as u64),
            range("wildcard_flows_max", self.wildcard_flows_max as u64, 0, FLOWS_MAX as u64),
            range("buffers", self.buffers as u64, 0, BUFFERS_MAX as u64),
            range("probe_ms", self.probe_ms, 10, 3_600_000),
            range("backoff_ms_max", self.backoff_ms_max, 10, 3_600_000),
        ];
        problems.extend(checks.into_iter().flatten());
        for (key, urls, passive) in
            [("controllers", &self.controllers, false), ("listen", &self.listen, true)]
        {
            if urls.len() > CONTROLLERS_MAX {
                problems.push(Problem::TooMany { key, have: urls.len(), max: CONTROLLERS_MAX });
            }
            problems.extend(urls.iter().filter_map(|url| check_url(key, url, passive)));
        }
    }
}

fn check_url(key: &'static str, text: &str, passive: bool) -> Option<Problem> {
    let wrong =
        |url: Url| (url.is_passive() != passive).then_some(ChannelError::WrongDirection(url));
    let error = Url::from_str(text).map_or_else(Some, wrong)?;
    Some(Problem::BadUrl { key, why: error.to_string() })
}

/// The identity that `text` names in hexadecimal digits, with or without `0x` in front.
pub fn datapath_id(text: &str) -> Option<u64> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    if plain { u64::from_str_radix(digits, 16).ok() } else { None }
}

fn datapath_id_from_text<'de, D: serde::Deserializer<'de>>(
    from: D,
) -> Result<Option<u64>, D::Error> {
    let text = String::deserialize(from)?;
    let wrong = || serde::de::Error::custom("datapath_id takes up to 16 hexadecimal digits");
    datapath_id(&text).ok_or_else(wrong).map(Some)
}
