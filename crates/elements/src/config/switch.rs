//! Configuration of an OpenFlow switch: versions, tables, controllers, limits.
//!
//! Every limit that a controller can reach has a name here, and a default that suits a test bench.
//! Its description names the OpenFlow error or the counter that reports when it is reached.

use std::path::PathBuf;
use std::str::FromStr;

use channel::{ChannelError, Url, tls};
use openflow::version::Version;
use serde::Deserialize;

use super::{
    BUFFERS_MAX, CONTROLLERS_MAX, FLOWS_MAX, FileError, Limits, PortConfig, PortRateConfig,
    Problem, QueueConfig,
};

/// Maximum number of tables: 0xff and 0xfe are reserved.
pub const TABLES_MAX: usize = 254;
/// Maximum of the configurable numbers of groups, meters and queues, each.
pub const SHAPERS_MAX: usize = 1 << 20;

/// Maximum number of auxiliary connections to one controller.
pub const AUXILIARY_MAX: u8 = 8;

/// An OpenFlow switch.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OpenFlowConfig {
    /// Offered protocol versions. Each session uses the highest version that both sides support.
    #[serde(deserialize_with = "versions_from_list")]
    pub versions: Vec<Version>,
    /// Number of tables. Frames enter at the first.
    pub tables: usize,
    /// Capacity of the exact-match hash of the first table.
    pub exact_flows_max: usize,
    /// Capacity for flow entries with wildcards in the first table.
    pub wildcard_flows_max: usize,
    /// Classifier for flow entries with wildcards in the first table.
    pub classifier: Classifier,
    /// Capacity of every further table; these use tuple-space search.
    pub flows_max: usize,
    /// Tables with other settings.
    #[serde(rename = "table")]
    pub table_settings: Vec<TableConfig>,
    /// Maximum number of groups.
    pub groups_max: usize,
    /// Maximum number of buckets in all groups.
    pub buckets_max: usize,
    /// Maximum number of meters.
    pub meters_max: usize,
    /// Queues of the ports.
    #[serde(rename = "queue")]
    pub queues: Vec<QueueConfig>,
    /// Rates of ports with queues.
    #[serde(rename = "port_rate")]
    pub port_rates: Vec<PortRateConfig>,
    /// Limits of the resources that controllers use.
    pub limits: Limits,
    /// The private key of `certificate`, in PEM.
    pub private_key: Option<PathBuf>,
    /// The switch's certificate in PEM, for `ssl:` and `pssl:`.
    pub certificate: Option<PathBuf>,
    /// The CA certificate that authenticates controllers, in PEM. With it, a controller that
    /// connects by `pssl:` must present a certificate too.
    pub ca_cert: Option<PathBuf>,
    /// Controllers that the switch connects to (`tcp:IP:PORT`, `ssl:IP:PORT`, `unix:FILE`).
    pub controllers: Vec<String>,
    /// Number of auxiliary connections that the switch makes to each of these controllers, once a
    /// main connection of version 1.3 or later is established. They use TCP, TLS or Unix sockets
    /// like the main connection. UDP and DTLS are not supported.
    pub auxiliary: u8,
    /// Addresses on which the switch listens for controllers (`ptcp:PORT[:IP]`, `pssl:PORT[:IP]`,
    /// `punix:FILE`).
    pub listen: Vec<String>,
    /// Handling of table misses while no controller is connected.
    pub fail_mode: FailMode,
    /// Datapath ID. The default is derived from the first port's MAC address.
    #[serde(deserialize_with = "datapath_id_from_text")]
    pub datapath_id: Option<u64>,
    /// Initial miss send length: bytes of a table-miss frame that a controller receives.
    pub miss_send_len: u16,
    /// Maximum number of buffered packets that wait for a controller's decision.
    pub buffers: usize,
    /// Minimum time for which a packet is buffered; after that a newer one may replace it.
    pub buffer_ms: u64,
    /// Idle time after which an echo request is sent. The connection is closed after the same time
    /// again.
    pub probe_ms: u64,
    /// Maximum backoff between two attempts to connect to a controller.
    pub backoff_ms_max: u64,
}

/// Handling of table misses while no controller is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FailMode {
    /// They are dropped; flow entries stay.
    Secure,
    /// The switch forwards them like a learning bridge.
    Standalone,
}

/// Classifier for flow entries with wildcards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Classifier {
    /// Selected automatically for the existing entries.
    Auto,
    /// Linear search by priority: simple, but slow for many entries.
    Linear,
    /// Tuple-space search: one hash for each set of masks.
    Tuple,
}

/// One table with its own settings.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableConfig {
    /// Its number.
    pub number: u8,
    /// Its capacity (for entries with wildcards, in the first table).
    pub flows_max: Option<usize>,
    /// Its classifier.
    pub classifier: Option<Classifier>,
}

impl Default for OpenFlowConfig {
    fn default() -> Self {
        OpenFlowConfig {
            versions: Version::SUPPORTED.to_vec(),
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
    /// Parses the configuration of a switch from TOML.
    pub fn from_toml(text: &str) -> Result<Self, FileError> {
        toml::from_str(text).map_err(|error| FileError::new(text, &error))
    }

    /// Returns the files of the TLS credentials.
    pub fn tls_files(&self) -> tls::Files {
        tls::Files {
            private_key: self.private_key.clone(),
            certificate: self.certificate.clone(),
            ca_cert: self.ca_cert.clone(),
        }
    }

    /// Returns the classifier of a table: for entries with wildcards in the first table, for all
    /// entries in others.
    pub fn classifier_of(&self, table: u8) -> Classifier {
        let default = if table == 0 { self.classifier } else { Classifier::Auto };
        self.settings_of(table).and_then(|settings| settings.classifier).unwrap_or(default)
    }

    /// Returns the capacity of a table (for entries with wildcards, in the first table).
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

/// Parses a list of versions such as `1.0,1.3` without duplicates. The error is the word that is
/// not a supported version.
pub fn versions_from_text(text: &str) -> Result<Vec<Version>, String> {
    let mut versions = Vec::new();
    for word in text.split(',').map(str::trim) {
        let found = Version::SUPPORTED.iter().find(|version| version.to_string() == word);
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
        let known: Vec<_> = Version::SUPPORTED.iter().map(Version::to_string).collect();
        serde::de::Error::custom(format!(
            "unsupported version {word:?} (hint: use {})",
            known.join(", ")
        ))
    })
}

/// Parses a datapath ID of hexadecimal digits, with or without a leading `0x`.
pub fn datapath_id(text: &str) -> Option<u64> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    if plain { u64::from_str_radix(digits, 16).ok() } else { None }
}

fn datapath_id_from_text<'de, D: serde::Deserializer<'de>>(
    from: D,
) -> Result<Option<u64>, D::Error> {
    let text = String::deserialize(from)?;
    let wrong =
        || serde::de::Error::custom("invalid datapath_id (hint: use up to 16 hexadecimal digits)");
    datapath_id(&text).ok_or_else(wrong).map(Some)
}
