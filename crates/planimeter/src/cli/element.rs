//! `planimeter switch`, `bridge`, `router` and `tagger`: runs our forwarding elements as processes.
//!
//! The switch crate does the work; this module has the options and error messages. Events go to stderr, one line
//! each, so that stdout stays empty and logs can be stored.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use openflow::version::Version;
use packet::time::Nanos;
use ports::channel::ChannelError;
use ports::port::PortError;
use switch::behaviour::model::Model;
use switch::config::{
    BridgeConfig, Classifier, Config, FailMode, FrameThreads, Kind, OpenFlowConfig, PortConfig,
    RouterConfig, Service, TaggerConfig, datapath_id, versions_from_text,
};
use switch::node::OpenError;

use super::failure::Failure;
use super::out::remark;
use crate::target;

/// Flags that every element has.
#[derive(clap::Args)]
pub struct CommonArguments {
    /// A data port: its number and what it is, such as 1=afpacket:eth1 or 2=tap:t0
    #[arg(long = "port", value_name = "N=SPEC", required = true)]
    pub ports: Vec<String>,
    /// A Unix socket that answers lines of JSON with counters and takes entries
    #[arg(long, value_name = "FILE")]
    pub control: Option<PathBuf>,
    /// Serve waiting frames in the order in which they came, not by deficit round robin
    #[arg(long)]
    pub first_come: bool,
    /// Bytes that a port is served in one round of deficit round robin
    #[arg(long, value_name = "BYTES", conflicts_with = "first_come")]
    pub quantum: Option<usize>,
    /// Keep polling for this long after the last frame before waiting for the next
    #[arg(long, value_name = "MICROSECONDS")]
    pub spin: Option<u64>,
}

/// Arguments of `planimeter switch`.
#[derive(clap::Args)]
pub struct SwitchArguments {
    #[command(flatten)]
    common: CommonArguments,
    /// Connect to a controller: tcp:IP:PORT, ssl:IP:PORT or unix:FILE
    #[arg(long = "controller", value_name = "URL")]
    controllers: Vec<String>,
    /// Wait for controllers: ptcp:PORT[:IP], pssl:PORT[:IP] or punix:FILE
    #[arg(long = "listen", value_name = "URL")]
    listen: Vec<String>,
    /// The private key of --certificate, in PEM
    #[arg(long, value_name = "FILE")]
    private_key: Option<PathBuf>,
    /// The certificate that ssl: and pssl: show to controllers, in PEM
    #[arg(long, value_name = "FILE")]
    certificate: Option<PathBuf>,
    /// The certificate of the CA that vouches for controllers, in PEM
    #[arg(long, value_name = "FILE")]
    ca_cert: Option<PathBuf>,
    /// OpenFlow versions to offer, such as 1.0,1.3; otherwise all that are known
    #[arg(long, value_name = "VERSIONS")]
    openflow: Option<String>,
    /// The switch's identity, up to 16 hexadecimal digits; otherwise made from the first port
    #[arg(long, value_name = "HEX")]
    datapath_id: Option<String>,
    /// Where frames without a matching entry go while no controller (--controller) is connected;
    /// connections to --listen do not count [default: secure]
    #[arg(long, value_enum)]
    fail_mode: Option<FailModeArgument>,
    /// Entries of the exact-match hash table
    #[arg(long, value_name = "N")]
    exact_entries: Option<usize>,
    /// Entries with open fields of the first table
    #[arg(long, value_name = "N")]
    wildcard_entries: Option<usize>,
    /// How entries with open fields are found in the first table
    #[arg(long, value_enum)]
    classifier: Option<ClassifierArgument>,
    /// Give the frames a thread of their own on each of these cores, or 'none'; otherwise one thread on any core if there are two
    #[arg(long, value_name = "CORE", value_delimiter = ',')]
    frames_core: Vec<String>,
    /// A TOML file with these and further settings
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Behave like a model of a hardware switch, such as honest or ./my-switch.toml
    #[arg(long, value_name = "NAME|FILE")]
    model: Option<String>,
}

/// The words that `--fail-mode` takes.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum FailModeArgument {
    /// Drop them
    Secure,
    /// Forward them as a learning bridge does; at once without --controller
    Standalone,
}

/// The words that `--classifier` takes.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ClassifierArgument {
    /// As suits the entries that there are
    Auto,
    /// One after the other, by priority
    Linear,
    /// By tuple-space search
    Tuple,
}

/// Arguments of `planimeter bridge`.
#[derive(clap::Args)]
pub struct BridgeArguments {
    #[command(flatten)]
    common: CommonArguments,
    /// Seconds after which a silent address is forgotten, up to 3600; 0 never forgets
    #[arg(long, value_name = "SECONDS")]
    ageing: Option<u64>,
    /// Addresses that the table holds
    #[arg(long, value_name = "N")]
    macs: Option<usize>,
    /// Learn addresses for each VLAN apart
    #[arg(long)]
    per_vlan: bool,
    /// Behave like a model of a hardware switch without OpenFlow, such as honest or ./my-switch.toml
    #[arg(long, value_name = "NAME|FILE")]
    model: Option<String>,
}

/// Arguments of `planimeter router`.
#[derive(clap::Args)]
pub struct RouterArguments {
    #[command(flatten)]
    common: CommonArguments,
    /// A TOML file with interfaces, routes and neighbours
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
}

/// Arguments of `planimeter tagger`.
#[derive(clap::Args)]
pub struct TaggerArguments {
    #[command(flatten)]
    common: CommonArguments,
    /// A TOML file with the two sides and the rules by which frames get tags
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

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
            Failure::usage(format!("--datapath-id {text}: takes up to 16 hexadecimal digits"))
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
    config.model = model(arguments.model.as_deref())?;
    run(&config)
}

fn frame_threads(words: &[String]) -> Result<FrameThreads, Failure> {
    let core = |word: &String| {
        let why = || format!("--frames-core {word}: write numbers of cores such as 1,2, or none");
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
        let known: Vec<_> = Version::SPOKEN.iter().map(Version::to_string).collect();
        Failure::usage(format!("--openflow {word}: known are {}", known.join(", ")))
    })
}

/// Runs a learning bridge until it is stopped.
pub fn bridge(arguments: &BridgeArguments) -> Result<ExitCode, Failure> {
    let default = BridgeConfig::default();
    let config = BridgeConfig {
        ageing_s: arguments.ageing.unwrap_or(default.ageing_s),
        macs_max: arguments.macs.unwrap_or(default.macs_max),
        per_vlan: arguments.per_vlan,
    };
    let mut config = told(Kind::Bridge(config), &arguments.common)?;
    config.model = model(arguments.model.as_deref())?;
    run(&config)
}

fn model(source: Option<&str>) -> Result<Option<Arc<Model>>, Failure> {
    let load =
        |source| target::model::load(source).map_err(|error| Failure::usage(error.to_string()));
    source.map(load).transpose()
}

/// Runs a router until it is stopped.
pub fn router(arguments: &RouterArguments) -> Result<ExitCode, Failure> {
    let file = &arguments.config;
    let config = RouterConfig::from_toml(&read(file)?)
        .map_err(|error| Failure::usage(format!("{}: {error}", file.display())))?;
    run(&told(Kind::Router(config), &arguments.common)?)
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
    let stop = super::stop::flag()?;
    switch::process::run(config, &stop, &mut |event| remark!("{event}")).map_err(explained)?;
    Ok(ExitCode::SUCCESS)
}

fn port(text: &str) -> Result<PortConfig, Failure> {
    let wrong = || {
        Failure::usage(format!("--port {text}: write NUMBER=SPEC, such as --port 1=afpacket:eth1"))
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
            "port {number}: cannot {what}: not permitted (hint: run as root or with CAP_NET_RAW)"
        )),
        PortError::NoSuchInterface(name) => Failure::usage(format!(
            "port {number}: there is no interface {name} here; `ip link` lists those that are"
        )),
        PortError::InterfaceDown(name) => Failure::usage(format!(
            "port {number}: interface {name} is down; `ip link set {name} up` raises it"
        )),
        other => Failure::usage(format!("port {number}: {other}")),
    }
}

/// Converts the error: missing privileges are a missing requirement, everything else is wrong input.
fn explained(error: OpenError) -> Failure {
    match error {
        OpenError::Config(problems) => {
            let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
            Failure::usage(lines.join("; "))
        }
        OpenError::Port(number, error) => port_refused(u64::from(number), &error),
        OpenError::Channel(ChannelError::AddressInUse(url)) => Failure::usage(format!(
            "{url} is in use; choose another address or stop who listens there"
        )),
        other => Failure::usage(other.to_string()),
    }
}
