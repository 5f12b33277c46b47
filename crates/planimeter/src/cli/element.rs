//! `planimeter switch`, `bridge`, `router` and `tagger`: runs our forwarding elements as processes.
//!
//! The switch crate does the work; this module has the options and error messages. Events go to
//! stderr, one line each, so that stdout stays empty and logs can be stored.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use channel::ChannelError;
use elements::config::{
    BridgeConfig, Classifier, Config, FailMode, FastPathMode, FrameThreads, Kind, OpenFlowConfig,
    PortConfig, RouterConfig, Service, TaggerConfig, datapath_id, versions_from_text,
};
use elements::hardware_model::model::Model;
use elements::node::OpenError;
use netio::port::PortError;
use openflow::version::Version;
use packet::time::Nanos;

use super::failure::Failure;
use super::output::remark;

/// Flags that every element has.
#[derive(clap::Args)]
pub struct CommonArguments {
    /// Data port N, such as 1=afpacket:eth1 or 2=tap:t0
    #[arg(long = "port", value_name = "N=SPEC", required = true)]
    pub(crate) ports: Vec<String>,
    /// Unix socket for JSON requests: counters and table entries
    #[arg(long = "control-socket", value_name = "SOCKET")]
    pub(crate) control: Option<PathBuf>,
    /// Serve frames in order of arrival, not by deficit round robin over ports
    #[arg(long, help_heading = SCHEDULING)]
    pub(crate) first_come: bool,
    /// Bytes per port and round of deficit round robin [default: 24288]
    #[arg(long, value_name = "BYTES", conflicts_with = "first_come", help_heading = SCHEDULING)]
    pub(crate) quantum: Option<usize>,
    /// Busy-poll for this time after the last frame [default: 50]
    #[arg(long = "busy-poll-us", value_name = "US", help_heading = SCHEDULING)]
    pub(crate) spin: Option<u64>,
}

/// Heading of the options for the order in which frames are served.
const SCHEDULING: &str = "Scheduling";

/// Arguments of `planimeter switch`.
#[derive(clap::Args)]
#[command(after_help = SWITCH_EXAMPLES)]
pub struct SwitchArguments {
    #[command(flatten)]
    common: CommonArguments,
    #[command(flatten)]
    fast_path: FastPathArguments,
    /// Connect to a controller: tcp:IP:PORT, ssl:IP:PORT, unix:FILE
    #[arg(long = "controller", value_name = "URL")]
    controllers: Vec<String>,
    /// Listen for controllers: ptcp:PORT[:IP], pssl:PORT[:IP], punix:FILE
    #[arg(long = "listen", value_name = "URL")]
    listen: Vec<String>,
    /// OpenFlow versions to offer, such as 1.0,1.3 [default: all]
    #[arg(long, value_name = "VERSIONS")]
    openflow: Option<String>,
    /// Datapath id, up to 16 digits [default: from the first port]
    #[arg(long, value_name = "HEX")]
    datapath_id: Option<String>,
    /// Table misses while no --controller is connected: secure (drop) or standalone (forward like a
    /// learning bridge) [default: secure]
    #[arg(long, value_enum, hide_possible_values = true)]
    fail_mode: Option<FailModeArgument>,
    /// Behave like a hardware switch model, such as honest or ./my-switch.toml
    #[arg(long, value_name = "NAME|FILE")]
    model: Option<String>,
    /// TOML file with these and further settings
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Size of the exact-match table [default: 131072]
    #[arg(long, value_name = "N")]
    exact_entries: Option<usize>,
    /// Wildcard entries of the first table, at most [default: 65536]
    #[arg(long, value_name = "N")]
    wildcard_entries: Option<usize>,
    /// Lookup of wildcard entries in the first table: auto, linear (by priority) or tuple
    /// (tuple-space search) [default: auto]
    #[arg(long, value_enum, hide_possible_values = true)]
    classifier: Option<ClassifierArgument>,
    /// Cores with a forwarding thread each, or none [default: one thread if there are two cores]
    #[arg(long = "pmd-cores", value_name = "CORE", value_delimiter = ',')]
    frames_core: Vec<String>,
    /// Private key of --certificate, PEM
    #[arg(long, value_name = "FILE")]
    private_key: Option<PathBuf>,
    /// Certificate of the switch for ssl: and pssl:, PEM
    #[arg(long, value_name = "FILE")]
    certificate: Option<PathBuf>,
    /// CA certificate that verifies controllers, PEM
    #[arg(long, value_name = "FILE")]
    ca_cert: Option<PathBuf>,
}

/// Examples at the end of the help of `planimeter switch`.
const SWITCH_EXAMPLES: &str = "\
Examples:
  planimeter switch --port 1=afpacket:eth1 --port 2=afpacket:eth2 --controller tcp:127.0.0.1:6653
  planimeter switch --port 1=tap:t1 --port 2=tap:t2 --listen ptcp:6654 --fail-mode standalone
  planimeter switch --port 1=tap:t1 --listen ptcp:6654 --model ./my-switch.toml";

/// The words that `--fail-mode` takes.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum FailModeArgument {
    /// Drop frames
    Secure,
    /// Forward frames like a learning bridge
    Standalone,
}

/// The words that `--classifier` takes.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ClassifierArgument {
    /// Selected automatically
    Auto,
    /// Linear search by priority
    Linear,
    /// Tuple-space search
    Tuple,
}

/// The words that `--fast-path` takes.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum FastPathArgument {
    /// If the ports and the kernel allow it
    Auto,
    /// Required
    Xdp,
    /// Never
    Off,
}

/// Flags of the elements that have a fast path.
#[derive(clap::Args)]
pub(crate) struct FastPathArguments {
    /// Forward known frames between xdp: ports in the kernel: auto (if the kernel allows it), xdp
    /// (required) or off [default: auto]
    #[arg(long, value_enum, hide_possible_values = true)]
    fast_path: Option<FastPathArgument>,
}

impl FastPathArguments {
    pub(crate) fn mode(&self) -> FastPathMode {
        match self.fast_path {
            None | Some(FastPathArgument::Auto) => FastPathMode::Auto,
            Some(FastPathArgument::Xdp) => FastPathMode::Required,
            Some(FastPathArgument::Off) => FastPathMode::Off,
        }
    }
}

/// Arguments of `planimeter bridge`.
#[derive(clap::Args)]
#[command(after_help = BRIDGE_EXAMPLES)]
pub struct BridgeArguments {
    #[command(flatten)]
    common: CommonArguments,
    #[command(flatten)]
    fast_path: FastPathArguments,
    /// Ageing time of addresses, up to 3600; 0 disables ageing [default: 300]
    #[arg(long = "ageing-time", value_name = "SECONDS")]
    ageing: Option<u64>,
    /// Maximum number of addresses in the table [default: 131072]
    #[arg(long = "mac-table-size", value_name = "N")]
    macs: Option<usize>,
    /// Search linked lists of N hash buckets, as Linux 2.6.27 had 256; 0 for none [default: 0]
    #[arg(long = "hash-buckets", value_name = "N")]
    hash_buckets: Option<usize>,
    /// Learn addresses separately for each VLAN
    #[arg(long = "ivl")]
    per_vlan: bool,
    /// Behave like a hardware switch model without OpenFlow, such as honest or ./my-switch.toml
    #[arg(long, value_name = "NAME|FILE")]
    model: Option<String>,
}

/// Examples at the end of the help of `planimeter bridge`.
const BRIDGE_EXAMPLES: &str = "\
Examples:
  planimeter bridge --port 1=afpacket:eth1 --port 2=afpacket:eth2
  planimeter bridge --port 1=tap:t1 --port 2=tap:t2 --ageing-time 60 --control-socket bridge.sock";

/// Arguments of `planimeter router`.
#[derive(clap::Args)]
#[command(after_help = ROUTER_EXAMPLES)]
pub struct RouterArguments {
    #[command(flatten)]
    common: CommonArguments,
    #[command(flatten)]
    fast_path: FastPathArguments,
    /// TOML file with interfaces, routes and neighbours
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
}

/// Examples at the end of the help of `planimeter router`.
const ROUTER_EXAMPLES: &str = "\
Examples:
  planimeter router --port 1=afpacket:eth1 --port 2=afpacket:eth2 --config router.toml";

/// Arguments of `planimeter tagger`.
#[derive(clap::Args)]
#[command(after_help = TAGGER_EXAMPLES)]
pub struct TaggerArguments {
    #[command(flatten)]
    common: CommonArguments,
    /// TOML file with the two sides and the tagging rules
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// Examples at the end of the help of `planimeter tagger`.
const TAGGER_EXAMPLES: &str = "\
Examples:
  planimeter tagger --port 1=afpacket:eth1 --port 2=afpacket:eth2 --config tagger.toml";

/// Runs an OpenFlow switch until it is stopped.
pub fn switch(arguments: &SwitchArguments) -> Result<ExitCode, Failure> {
    let mut config = match &arguments.config {
        Some(file) => OpenFlowConfig::from_toml(&read(file)?)
            .map_err(|error| Failure::usage(format!("{}: {error}", file.display())))?,
        None => OpenFlowConfig::default(),
    };
    if let Some(text) = &arguments.openflow {
        config.versions = versions(text)?;
    }
    config.controllers.extend(arguments.controllers.iter().cloned());
    config.listen.extend(arguments.listen.iter().cloned());
    for (setting, given) in [
        (&mut config.private_key, &arguments.private_key),
        (&mut config.certificate, &arguments.certificate),
        (&mut config.ca_cert, &arguments.ca_cert),
    ] {
        if given.is_some() {
            setting.clone_from(given);
        }
    }
    if let Some(text) = &arguments.datapath_id {
        let id = datapath_id(text).ok_or_else(|| {
            Failure::usage(format!(
                "--datapath-id {text}: invalid datapath id (hint: use up to 16 hexadecimal digits)"
            ))
        })?;
        config.datapath_id = Some(id);
    }
    match arguments.fail_mode {
        Some(FailModeArgument::Secure) => config.fail_mode = FailMode::Secure,
        Some(FailModeArgument::Standalone) => config.fail_mode = FailMode::Standalone,
        None => {}
    }
    config.exact_flows_max = arguments.exact_entries.unwrap_or(config.exact_flows_max);
    config.wildcard_flows_max = arguments.wildcard_entries.unwrap_or(config.wildcard_flows_max);
    match arguments.classifier {
        Some(ClassifierArgument::Auto) => config.classifier = Classifier::Auto,
        Some(ClassifierArgument::Linear) => config.classifier = Classifier::Linear,
        Some(ClassifierArgument::Tuple) => config.classifier = Classifier::Tuple,
        None => {}
    }
    let mut config = told(Kind::OpenFlow(config), &arguments.common)?;
    config.frame_threads = frame_threads(&arguments.frames_core)?;
    config.fast_path = arguments.fast_path.mode();
    config.model = model(arguments.model.as_deref())?;
    run(&config)
}

fn frame_threads(words: &[String]) -> Result<FrameThreads, Failure> {
    let core = |word: &String| {
        let why = || {
            format!(
                "--pmd-cores {word}: invalid core (hint: use core numbers such as 1,2, or none)"
            )
        };
        word.parse().map_err(|_| Failure::usage(why()))
    };
    match words {
        [] => Ok(FrameThreads::Auto),
        [word] if word == "none" => Ok(FrameThreads::None),
        cores => cores.iter().map(core).collect::<Result<_, _>>().map(FrameThreads::Cores),
    }
}

fn versions(text: &str) -> Result<Vec<Version>, Failure> {
    versions_from_text(text).map_err(|word| {
        let known: Vec<_> = Version::SUPPORTED.iter().map(Version::to_string).collect();
        Failure::usage(format!(
            "--openflow {word}: unsupported version (hint: use {})",
            known.join(", ")
        ))
    })
}

/// Runs a learning bridge until it is stopped.
pub fn bridge(arguments: &BridgeArguments) -> Result<ExitCode, Failure> {
    let default = BridgeConfig::default();
    let config = BridgeConfig {
        ageing_s: arguments.ageing.unwrap_or(default.ageing_s),
        macs_max: arguments.macs.unwrap_or(default.macs_max),
        per_vlan: arguments.per_vlan,
        hash_buckets: arguments.hash_buckets.unwrap_or(default.hash_buckets),
    };
    let mut config = told(Kind::Bridge(config), &arguments.common)?;
    config.fast_path = arguments.fast_path.mode();
    config.model = model(arguments.model.as_deref())?;
    run(&config)
}

fn model(source: Option<&str>) -> Result<Option<Arc<Model>>, Failure> {
    let load =
        |source| targets::model::load(source).map_err(|error| Failure::usage(error.to_string()));
    source.map(load).transpose()
}

/// Runs a router until it is stopped.
pub fn router(arguments: &RouterArguments) -> Result<ExitCode, Failure> {
    let file = &arguments.config;
    let config = RouterConfig::from_toml(&read(file)?)
        .map_err(|error| Failure::usage(format!("{}: {error}", file.display())))?;
    let mut config = told(Kind::Router(config), &arguments.common)?;
    config.fast_path = arguments.fast_path.mode();
    run(&config)
}

/// Runs a VLAN tagger until it is stopped.
pub fn tagger(arguments: &TaggerArguments) -> Result<ExitCode, Failure> {
    let config = match &arguments.config {
        Some(file) => TaggerConfig::from_toml(&read(file)?)
            .map_err(|error| Failure::usage(format!("{}: {error}", file.display())))?,
        None => TaggerConfig::default(),
    };
    run(&told(Kind::Tagger(config), &arguments.common)?)
}

/// Returns the configuration that every kind of forwarder shares.
pub(super) fn told(kind: Kind, common: &CommonArguments) -> Result<Config, Failure> {
    let mut config = Config::new(kind);
    for text in &common.ports {
        config.ports.push(port(text)?);
    }
    config.control = common.control.clone();
    if common.first_come {
        config.service = Service::FirstComeFirstServed;
    }
    if let Some(quantum_bytes) = common.quantum {
        config.service = Service::DeficitRoundRobin { quantum_bytes };
    }
    if let Some(micros) = common.spin {
        config.spin = Nanos::from_micros(micros.min(1_000_000));
    }
    Ok(config)
}

pub(super) fn run(config: &Config) -> Result<ExitCode, Failure> {
    let stop = super::signals::flag()?;
    elements::process::run(config, &stop, &mut |event| remark!("{event}")).map_err(into_failure)?;
    Ok(ExitCode::SUCCESS)
}

fn port(text: &str) -> Result<PortConfig, Failure> {
    let wrong = || {
        Failure::usage(format!(
            "--port {text}: invalid port (hint: use NUMBER=SPEC, such as --port 1=afpacket:eth1)"
        ))
    };
    let (number, spec) = text.split_once('=').ok_or_else(wrong)?;
    Ok(PortConfig { number: number.parse().map_err(|_| wrong())?, spec: spec.to_string() })
}

pub(super) fn read(file: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(file)
        .map_err(|error| Failure::usage(format!("cannot read {}: {error}", file.display())))
}

/// Returns the error for a port that cannot be opened, with a hint.
pub(super) fn port_refused(number: u64, error: &PortError) -> Failure {
    match error {
        PortError::NotPermitted(what) => Failure::need(format!(
            "cannot open port {number}: not permitted to {what} (hint: run as root or with \
             CAP_NET_RAW)"
        )),
        PortError::NoSuchInterface(name) => Failure::usage(format!(
            "cannot open port {number}: no such interface: {name} (hint: run 'ip link' to list \
             interfaces)"
        )),
        PortError::InterfaceDown(name) => Failure::usage(format!(
            "cannot open port {number}: interface {name} is down (hint: run 'ip link set {name} \
             up')"
        )),
        other => Failure::usage(format!("cannot open port {number}: {other}")),
    }
}

/// Converts the error: missing privileges are a missing requirement, everything else is wrong
/// input.
fn into_failure(error: OpenError) -> Failure {
    match error {
        OpenError::Config(problems) => {
            let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
            Failure::usage(lines.join("; "))
        }
        OpenError::Port(number, error) => port_refused(u64::from(number), &error),
        OpenError::Channel(ChannelError::AddressInUse(url)) => Failure::usage(format!(
            "cannot listen on {url}: address in use (hint: choose another address, or stop the \
             process that uses it)"
        )),
        why @ OpenError::FastPath(_) => Failure::need(why.to_string()),
        other => Failure::usage(other.to_string()),
    }
}
