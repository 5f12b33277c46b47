//! The data plane of a process.
//!
//! Invariant: its kind never changes while the process runs.

use dataplane::bridge::{self, Bridge, Learning};
use dataplane::counter::DropCounters;
use dataplane::forwarder::{
    BatchDecision, Decision, Forwarder, FrameHead, Outputs, PendingBatch, SIGHTS_MAX,
};
use dataplane::group::GroupLimits;
use dataplane::meter::MeterLimits;
use dataplane::neighbor::Place;
use dataplane::pipeline::{OnMiss, Pipeline, Settings};
use dataplane::route_table::Prefix;
use dataplane::router::{self, Router, RouterError};
use dataplane::table::{Classifier, TableConfig, TableSettings};
use dataplane::tagger::{self, Tagger};
use packet::frame::{Batch, Frame, PortNo};
use packet::header::ethernet;
use packet::time::Nanos;
use progfe::compile::Compiled;
use progfe::element;
use progfe::program::Program;

use crate::config::{
    self, BridgeConfig, Config, Kind, Neighbour, OpenFlowConfig, Route, RouterConfig,
};
use crate::forward::{NumberedPort, mac_of};
use crate::hardware_model::{self, Behaviour};

/// A ProGFE element, whose programs run compiled.
pub type Element = element::Element<Compiled>;

/// A data plane.
pub enum DataPlane {
    /// An OpenFlow pipeline.
    OpenFlow(Box<Pipeline>),
    /// A learning bridge.
    Bridge(Box<Bridge>),
    /// An IPv4 router.
    Router(Box<Router>),
    /// A VLAN tagger.
    Tagger(Box<Tagger>),
    /// A ProGFE element.
    ProGfe(Box<Element>),
    /// An OpenFlow pipeline or a learning bridge that emulates a hardware model.
    Modelled(Box<ModelledDatapath>),
}

/// A data plane, and the hardware model that it emulates.
pub struct ModelledDatapath {
    /// The tables of the agent, or the bridge.
    pub plane: DataPlane,
    /// The state of the emulation.
    pub behaviour: Behaviour,
}

/// Why a data plane cannot be created.
#[derive(Debug)]
pub enum DataPlaneError {
    /// The router configuration is invalid.
    Router(RouterError),
    /// The program is invalid.
    Program(progfe::diagnostic::Problems),
}

impl std::fmt::Display for DataPlaneError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            DataPlaneError::Router(error) => f.write_str(&router_error_text(*error)),
            DataPlaneError::Program(problems) => f.write_str(problems.to_string().trim_end()),
        }
    }
}

impl DataPlane {
    /// Creates the configured data plane between these ports. `seed` is a secret for hashing.
    pub fn new(
        config: &Config,
        ports: &[NumberedPort],
        seed: u64,
    ) -> Result<DataPlane, DataPlaneError> {
        let numbers: Vec<PortNo> = ports.iter().map(|(number, _)| *number).collect();
        let (plane, behaviour) = match (&config.kind, &config.model) {
            (Kind::OpenFlow(switch), None) => {
                let settings = settings(switch, seed);
                return Ok(DataPlane::OpenFlow(Box::new(Pipeline::new(&numbers, &settings))));
            }
            (Kind::OpenFlow(switch), Some(model)) => {
                let settings = settings(&hardware_model::told(model, switch), seed);
                let mut pipeline = Pipeline::new(&numbers, &settings);
                let made = (&numbers[..], &settings);
                let behaviour = Behaviour::of_switch(model, &mut pipeline, made, seed);
                (DataPlane::OpenFlow(Box::new(pipeline)), behaviour)
            }
            (Kind::Bridge(config), None) => {
                return Ok(DataPlane::Bridge(Box::new(bridge(config, &numbers, seed))));
            }
            (Kind::Bridge(config), Some(model)) => {
                let behaviour = Behaviour::of_bridge(model, &numbers, seed);
                (DataPlane::Bridge(Box::new(bridge(config, &numbers, seed))), behaviour)
            }
            (Kind::Router(config), _) => {
                let router = router(config, ports, seed).map_err(DataPlaneError::Router)?;
                return Ok(DataPlane::Router(Box::new(router)));
            }
            (Kind::Tagger(config), _) => {
                let tagger = Tagger::new(tagger::Settings::from(config));
                return Ok(DataPlane::Tagger(Box::new(tagger)));
            }
            (Kind::ProGfe(config), _) => {
                let element = Element::start(Program::clone(&config.program), seed);
                let mut element = element.map_err(DataPlaneError::Program)?;
                if !config.wants_arrivals() {
                    element.without_arrivals();
                }
                return Ok(DataPlane::ProGfe(Box::new(element)));
            }
        };
        Ok(DataPlane::Modelled(Box::new(ModelledDatapath { plane, behaviour })))
    }

    /// Returns the flow tables that controllers change, if there are any.
    pub fn openflow(&mut self) -> Option<&mut Pipeline> {
        self.ordered().map(|(pipeline, _)| pipeline)
    }

    /// Returns the flow tables and the hardware model, if any.
    pub fn ordered(&mut self) -> Option<(&mut Pipeline, Option<&mut Behaviour>)> {
        match self {
            DataPlane::OpenFlow(pipeline) => Some((pipeline, None)),
            DataPlane::Modelled(modelled) => {
                let ModelledDatapath { plane, behaviour } = &mut **modelled;
                plane.openflow().map(|pipeline| (pipeline, Some(behaviour)))
            }
            DataPlane::Bridge(_)
            | DataPlane::Router(_)
            | DataPlane::Tagger(_)
            | DataPlane::ProGfe(_) => None,
        }
    }

    /// Returns the data plane without its hardware model.
    pub fn inner(&mut self) -> &mut DataPlane {
        match self {
            DataPlane::Modelled(modelled) => &mut modelled.plane,
            plain => plain,
        }
    }

    /// Returns the hardware model, if any.
    pub fn behaviour(&self) -> Option<&Behaviour> {
        match self {
            DataPlane::Modelled(modelled) => Some(&modelled.behaviour),
            _ => None,
        }
    }

    /// Returns the name of its kind.
    pub fn kind(&self) -> &'static str {
        match self {
            DataPlane::OpenFlow(_) => "switch",
            DataPlane::Bridge(_) => "bridge",
            DataPlane::Router(_) => "router",
            DataPlane::Tagger(_) => "tagger",
            DataPlane::ProGfe(_) => "progfe",
            DataPlane::Modelled(modelled) => modelled.plane.kind(),
        }
    }

    /// Creates the configured queues of the ports.
    pub fn set_queues(&mut self, config: &Config, now: Nanos) {
        if let (Some(pipeline), Kind::OpenFlow(config)) = (self.openflow(), &config.kind) {
            for queues in config.port_queues() {
                let set = pipeline.set_queues(&queues, now);
                set.expect("the configuration was validated");
            }
        }
    }

    /// Returns dropped frames by reason. A ProGFE element has its own reasons.
    pub fn drops(&self) -> DropCounters {
        match self {
            DataPlane::OpenFlow(pipeline) => pipeline.drops(),
            DataPlane::Bridge(bridge) => bridge.drops.clone(),
            DataPlane::Router(router) => router.drops.clone(),
            DataPlane::Tagger(tagger) => tagger.drops.clone(),
            DataPlane::ProGfe(_) => DropCounters::default(),
            DataPlane::Modelled(modelled) => modelled.plane.drops(),
        }
    }
}

/// Returns the pipeline settings. Table misses are dropped until the agent changes that.
fn settings(config: &OpenFlowConfig, seed: u64) -> Settings {
    let table = |number: u8| TableSettings {
        exact_entries_max: if number == 0 { config.exact_flows_max } else { 0 },
        wildcard_entries_max: config.flows_max_of(number),
        classifier: match config.classifier_of(number) {
            config::Classifier::Auto => Classifier::Automatic,
            config::Classifier::Linear => Classifier::Linear,
            config::Classifier::Tuple => Classifier::TupleSpace,
        },
        config: TableConfig::default(),
    };
    Settings {
        tables: (0..config.tables as u8).map(table).collect(),
        groups: GroupLimits {
            groups_max: config.groups_max,
            buckets_max: config.buckets_max,
            ..GroupLimits::default()
        },
        meters: MeterLimits { meters_max: config.meters_max, ..MeterLimits::default() },
        hash_seed: seed,
        on_miss: OnMiss::Drop,
        normal: Some(bridge::Settings { seed, ..bridge::Settings::default() }),
        ..Settings::default()
    }
}

fn bridge(config: &BridgeConfig, ports: &[PortNo], seed: u64) -> Bridge {
    let settings = bridge::Settings {
        addresses_max: config.macs_max,
        ageing: config.ageing(),
        learning: if config.per_vlan { Learning::PerVlan } else { Learning::Shared },
        seed,
        hash_buckets: (config.hash_buckets > 0).then_some(config.hash_buckets),
    };
    Bridge::new(ports, &settings)
}

/// Creates a router with its static routes and neighbours. An interface without a configured MAC
/// address or MTU uses those of its port.
fn router(config: &RouterConfig, ports: &[NumberedPort], seed: u64) -> Result<Router, RouterError> {
    let interfaces = config.interface.iter().map(|interface| {
        let (_, port) = ports
            .iter()
            .find(|(number, _)| *number == interface.port)
            .expect("the configuration was validated");
        let carries = port.facts().frame_bytes_max.saturating_sub(ethernet::HEADER_BYTES);
        let addresses = interface.addresses.iter().map(|own| (own.address, own.bits));
        router::Interface {
            port: interface.port,
            mac: interface.mac.map_or_else(|| mac_of(interface.port, port.as_ref()), |mac| mac.0),
            addresses: addresses.collect(),
            mtu: interface.mtu.unwrap_or(u16::try_from(carries).unwrap_or(u16::MAX)),
        }
    });
    let settings = router::Settings {
        interfaces: interfaces.collect(),
        routes_max: config.routes_max,
        neighbors_max: config.neighbours_max,
        cache_entries: config.cache,
        seed,
        ..router::Settings::default()
    };
    let mut router = Router::new(&settings)?;
    for route in &config.route {
        add_route(&mut router, route)?;
    }
    // No frame waits for a neighbour yet, so none leaves.
    let mut nothing = Outputs::new(&[]);
    for neighbour in &config.neighbour {
        add_neighbour(&mut router, neighbour, &mut nothing)?;
    }
    Ok(router)
}

/// Adds a static route.
pub fn add_route(router: &mut Router, route: &Route) -> Result<(), RouterError> {
    let prefix = Prefix::new(route.to.address, route.to.bits);
    let prefix = prefix.ok_or(RouterError::BadAddress(route.to.address, route.to.bits))?;
    router.add_route(prefix, route.via, route.port)
}

/// Adds a static neighbour. Frames that waited for it go to the outputs.
pub fn add_neighbour(
    router: &mut Router,
    neighbour: &Neighbour,
    out: &mut Outputs,
) -> Result<(), RouterError> {
    let place = Place { port: neighbour.port, address: neighbour.address };
    router.set_neighbor(place, neighbour.mac.0, out)
}

/// Returns an error message.
pub fn router_error_text(error: RouterError) -> String {
    match error {
        RouterError::InterfaceTwice(port) => format!("port {port} has two interfaces"),
        RouterError::BadMac(port) => format!("port {port}: mac is not a unicast address"),
        RouterError::BadAddress(address, bits) => {
            format!("{address}/{bits}: not a host address in this network")
        }
        RouterError::BadMtu(mtu) => {
            format!("mtu {mtu}: below the minimum of {}", router::MTU_MIN)
        }
        RouterError::NoInterface(port) => format!("no interface on port {port}"),
        RouterError::UnreachableHop(hop) => {
            format!("no interface is in the network of next hop {hop}")
        }
        RouterError::OwnAddress(prefix) => format!(
            "{}/{}: own address or broadcast address of a connected network",
            prefix.address(),
            prefix.length()
        ),
        RouterError::RoutesFull(full) => format!("route table full: at most {} routes", full.0),
        RouterError::NeighborsFull(max) => {
            format!("neighbour table full: at most {max} neighbours")
        }
    }
}

impl Forwarder for DataPlane {
    type Pending<'a> = DataPlaneBatch<'a>;

    fn forward(&mut self, port: PortNo, batch: &mut Batch, now: Nanos, out: &mut Outputs) {
        match self {
            DataPlane::OpenFlow(pipeline) => pipeline.forward(port, batch, now, out),
            DataPlane::Bridge(bridge) => bridge.forward(port, batch, now, out),
            DataPlane::Router(router) => router.forward(port, batch, now, out),
            DataPlane::Tagger(tagger) => tagger.forward(port, batch, now, out),
            DataPlane::ProGfe(element) => element.forward(port, batch, now, out),
            DataPlane::Modelled(modelled) => {
                let ModelledDatapath { plane, behaviour } = &mut **modelled;
                behaviour.forward(plane, (port, batch), now, out);
            }
        }
    }

    fn decides(&self) -> bool {
        // Frames of a hardware model do not leave immediately.
        !matches!(self, DataPlane::Modelled(_))
    }

    fn decide(
        &mut self,
        port: PortNo,
        sights: [&[FrameHead<'_>]; 2],
        now: Nanos,
        decisions: &mut [Decision; SIGHTS_MAX],
    ) -> BatchDecision<DataPlaneBatch<'_>> {
        match self {
            DataPlane::OpenFlow(pipeline) => {
                pipeline.decide(port, sights, now, decisions).map(DataPlaneBatch::OpenFlow)
            }
            DataPlane::Bridge(bridge) => {
                bridge.decide(port, sights, now, decisions).map(DataPlaneBatch::Bridge)
            }
            DataPlane::Router(router) => {
                router.decide(port, sights, now, decisions).map(DataPlaneBatch::Router)
            }
            DataPlane::Tagger(tagger) => {
                tagger.decide(port, sights, now, decisions).map(DataPlaneBatch::Tagger)
            }
            DataPlane::ProGfe(element) => {
                element.decide(port, sights, now, decisions).map(DataPlaneBatch::ProGfe)
            }
            DataPlane::Modelled(_) => BatchDecision::Done(0),
        }
    }

    fn tick(&mut self, now: Nanos, out: &mut Outputs) -> Option<Nanos> {
        match self {
            DataPlane::OpenFlow(pipeline) => pipeline.tick(now, out),
            DataPlane::Bridge(bridge) => bridge.tick(now, out),
            DataPlane::Router(router) => router.tick(now, out),
            DataPlane::Tagger(tagger) => tagger.tick(now, out),
            DataPlane::ProGfe(element) => element.tick(now, out),
            DataPlane::Modelled(modelled) => {
                let ModelledDatapath { plane, behaviour } = &mut **modelled;
                behaviour.tick(plane, now, out)
            }
        }
    }
}

/// Work that remains after a decision of a data plane.
pub enum DataPlaneBatch<'a> {
    /// Of an OpenFlow pipeline.
    OpenFlow(<Pipeline as Forwarder>::Pending<'a>),
    /// Of a bridge.
    Bridge(<Bridge as Forwarder>::Pending<'a>),
    /// Of a router.
    Router(<Router as Forwarder>::Pending<'a>),
    /// Of a tagger.
    Tagger(<Tagger as Forwarder>::Pending<'a>),
    /// Of a ProGFE element.
    ProGfe(<Element as Forwarder>::Pending<'a>),
}

impl PendingBatch for DataPlaneBatch<'_> {
    fn rewrite(&self, place: usize, head: &mut [u8], bytes: usize) -> (usize, usize) {
        match self {
            DataPlaneBatch::OpenFlow(batch) => batch.rewrite(place, head, bytes),
            DataPlaneBatch::Bridge(batch) => batch.rewrite(place, head, bytes),
            DataPlaneBatch::Router(batch) => batch.rewrite(place, head, bytes),
            DataPlaneBatch::Tagger(batch) => batch.rewrite(place, head, bytes),
            DataPlaneBatch::ProGfe(batch) => batch.rewrite(place, head, bytes),
        }
    }

    fn resume(self, frames: &mut [Frame], now: Nanos, out: &mut Outputs) {
        match self {
            DataPlaneBatch::OpenFlow(batch) => batch.resume(frames, now, out),
            DataPlaneBatch::Bridge(batch) => batch.resume(frames, now, out),
            DataPlaneBatch::Router(batch) => batch.resume(frames, now, out),
            DataPlaneBatch::Tagger(batch) => batch.resume(frames, now, out),
            DataPlaneBatch::ProGfe(batch) => batch.resume(frames, now, out),
        }
    }
}
