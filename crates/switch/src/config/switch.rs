//! What an OpenFlow switch is told: versions, tables, controllers, limits.
//!
//! Every limit that a controller can reach has a name here, and a default that a test bench can
//! live with; reaching it is the OpenFlow error or the counter that its description names.

use std::path::PathBuf;
use std::str::FromStr;

use openflow::version::Version;
use ports::channel::{ChannelError, Url, tls};
use serde::Deserialize;

use super::{
    BUFFERS_MAX, CONTROLLERS_MAX, FLOWS_MAX, FileError, Limits, PortConfig, PortRateConfig,
    Problem, QueueConfig,
};

/// Most tables: numbers 0xff and 0xfe mean something else.
pub const TABLES_MAX: usize = 254;
/// Most groups, meters and queues that a switch may be configured for, each.
pub const SHAPERS_MAX: usize = 1 << 20;

/// Most auxiliary connections to one controller.
pub const AUXILIARY_MAX: u8 = 8;

/// An OpenFlow switch.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OpenFlowConfig {
    /// Versions of the protocol that it offers, all at once: each controller speaks the highest
    /// that it knows too.
    #[serde(deserialize_with = "versions_from_list")]
    pub versions: Vec<Version>,
    /// Tables, of which frames meet the first.
    pub tables: usize,
    /// Flows that the exact-match hash of the first table holds.
    pub exact_flows_max: usize,
    /// Flows with open fields that the first table holds.
    pub wildcard_flows_max: usize,
    /// How flows with open fields are found in the first table.
    pub classifier: Classifier,
    /// Flows that every further table holds; these go by tuple-space search.
    pub flows_max: usize,
    /// Tables that differ from that.
    #[serde(rename = "table")]
    pub table_settings: Vec<TableConfig>,
    /// Groups that fit.
    pub groups_max: usize,
    /// Buckets that fit, in all groups together.
    pub buckets_max: usize,
    /// Meters that fit.
    pub meters_max: usize,
    /// Queues of the ports.
    #[serde(rename = "queue")]
    pub queues: Vec<QueueConfig>,
    /// What ports with queues may send as a whole.
    #[serde(rename = "port_rate")]
    pub port_rates: Vec<PortRateConfig>,
    /// What controllers may use up.
    pub limits: Limits,
    /// The private key of `certificate`, in PEM.
    pub private_key: Option<PathBuf>,
    /// The switch's certificate in PEM, which `ssl:` and `pssl:` show to controllers.
    pub certificate: Option<PathBuf>,
    /// The certificate of the CA that vouches for controllers, in PEM. With it, a controller that
    /// comes by `pssl:` has to show a certificate too.
    pub ca_cert: Option<PathBuf>,
    /// Controllers that the switch connects to (`tcp:IP:PORT`, `ssl:IP:PORT`, `unix:FILE`).
    pub controllers: Vec<String>,
    /// Further connections that the switch makes to each of these controllers once one of 1.3 or
    /// later is up, over TCP, TLS or Unix sockets as the first one. UDP and DTLS are not offered.
    pub auxiliary: u8,
    /// Where it waits for controllers (`ptcp:PORT[:IP]`, `pssl:PORT[:IP]`, `punix:FILE`).
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

/// How flows with open fields are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Classifier {
    /// As suits those that there are.
    Auto,
    /// One after the other, by priority: simple, and slow where there are many.
    Linear,
    /// By tuple-space search: one hash for each set of masks.
    Tuple,
}

/// One table that differs from the others.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableConfig {
    /// Its number.
    pub number: u8,
    /// Flows that it holds (with open fields, for the first table).
    pub flows_max: Option<usize>,
    /// How its flows are found.
    pub classifier: Option<Classifier>,
}

impl Default for OpenFlowConfig {
    fn default() -> Self {
        OpenFlowConfig {
            versions: Version::SPOKEN.to_vec(),
            tables: TABLES_MAX,
            exact_flows_max: 131_072,
            wildcard_flows_max: 65_536,
            classifier: Classifier::Auto,
            flows_max: 65_536,
            table_settings: Vec::new(),
            groups_max: 4_096,
            buckets_max: 65_536,
            meters_max: 4_096,
            queues: Vec::new(),
            port_rates: Vec::new(),
            limits: Limits::default(),
            private_key: None,
            certificate: None,
            ca_cert: None,
            controllers: Vec::new(),
            auxiliary: 0,
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

    /// The files of TLS.
    pub fn tls_files(&self) -> tls::Files {
        tls::Files {
            private_key: self.private_key.clone(),
            certificate: self.certificate.clone(),
            ca_cert: self.ca_cert.clone(),
        }
    }

    /// How the first table's flows with open fields are found, and those of every other table.
    pub fn classifier_of(&self, table: u8) -> Classifier {
        let default = if table == 0 { self.classifier } else { Classifier::Auto };
        self.settings_of(table).and_then(|settings| settings.classifier).unwrap_or(default)
    }

    /// Flows that a table holds (with open fields, for the first table).
    pub fn flows_max_of(&self, table: u8) -> usize {
        let default = if table == 0 { self.wildcard_flows_max } else { self.flows_max };
        self.settings_of(table).and_then(|settings| settings.flows_max).unwrap_or(default)
    }

    fn settings_of(&self, table: u8) -> Option<&TableConfig> {
        self.table_settings.iter().find(|settings| settings.number == table)
    }

    pub(super) fn validate(&self, ports: &[PortConfig], problems: &mut Vec<Problem>) {
        let range = |key, have: u64, min, max| Problem::check(key, have, min, max);
        let checks = [
            range("versions", self.versions.len() as u64, 1, Version::ALL.len() as u64),
            range("tables", self.tables as u64, 1, TABLES_MAX as u64),
            range("flows_max", self.flows_max as u64, 0, FLOWS_MAX as u64),
            range("groups_max", self.groups_max as u64, 0, SHAPERS_MAX as u64),
            range("buckets_max", self.buckets_max as u64, 0, SHAPERS_MAX as u64),
            range("meters_max", self.meters_max as u64, 0, SHAPERS_MAX as u64),
            range("queue", self.queues.len() as u64, 0, SHAPERS_MAX as u64),
            range("exact_flows_max", self.exact_flows_max as u64, 0, FLOWS_MAX as u64),
            range("wildcard_flows_max", self.wildcard_flows_max as u64, 0, FLOWS_MAX as u64),
            range("auxiliary", u64::from(self.auxiliary), 0, u64::from(AUXILIARY_MAX)),
            range("buffers", self.buffers as u64, 0, BUFFERS_MAX as u64),
            range("probe_ms", self.probe_ms, 10, 3_600_000),
            range("backoff_ms_max", self.backoff_ms_max, 10, 3_600_000),
        ];
        problems.extend(checks.into_iter().flatten());
        self.limits.validate(problems);
        for table in &self.table_settings {
            let (number, last) = (u64::from(table.number), self.tables.max(1) as u64 - 1);
            problems.extend(Problem::check("table.number", number, 0, last));
            let flows_max = table.flows_max.unwrap_or_default() as u64;
            problems.extend(range("table.flows_max", flows_max, 0, FLOWS_MAX as u64));
        }
        self.validate_queues(ports, problems);
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

/// The versions that a list such as `1.0,1.3` names, each once, or the word that names none that
/// is spoken.
pub fn versions_from_text(text: &str) -> Result<Vec<Version>, String> {
    let mut versions = Vec::new();
    for word in text.split(',').map(str::trim) {
        let found = Version::SPOKEN.iter().find(|version| version.to_string() == word);
        let version = *found.ok_or_else(|| word.to_string())?;
        if !versions.contains(&version) {
            versions.push(version);
        }
    }
    Ok(versions)
}

fn versions_from_list<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<Version>, D::Error> {
    let list = Vec::<String>::deserialize(from)?;
    versions_from_text(&list.join(",")).map_err(|word| {
        let known: Vec<_> = Version::SPOKEN.iter().map(Version::to_string).collect();
        serde::de::Error::custom(format!("{word:?} is none of the versions {}", known.join(", ")))
    })
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
