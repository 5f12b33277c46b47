//! What a process can forward by, as one value.
//!
//! Invariant: which of them it is never changes while the process runs.

use dataplane::bridge::{self, Bridge, Learning};
use dataplane::counter::DropCounters;
use dataplane::forwarder::{Forwarder, Outputs};
use dataplane::pipeline::{OnMiss, Pipeline, Settings};
use packet::frame::{Batch, PortNo};
use packet::time::Nanos;

use crate::config::{BridgeConfig, Config, Kind, OpenFlowConfig};

/// A data plane of some kind.
pub enum Plane {
    /// An OpenFlow pipeline.
    OpenFlow(Box<Pipeline>),
    /// A learning bridge.
    Bridge(Box<Bridge>),
}

impl Plane {
    /// The data plane that the configuration asks for. `seed` is a secret for hashing.
    pub fn new(config: &Config, seed: u64) -> Option<Plane> {
        let ports = config.port_numbers();
        match &config.kind {
            Kind::OpenFlow(config) => {
                Some(Plane::OpenFlow(Box::new(pipeline(config, &ports, seed))))
            }
            Kind::Bridge(config) => Some(Plane::Bridge(Box::new(bridge(config, &ports, seed)))),
            Kind::Router(_) => None,
        }
    }

    /// What it is called.
    pub fn kind(&self) -> &'static str {
        match self {
            Plane::OpenFlow(_) => "switch",
            Plane::Bridge(_) => "bridge",
        }
    }

    /// Frames lost, by reason.
    pub fn drops(&self) -> &DropCounters {
        match self {
            Plane::OpenFlow(pipeline) => pipeline.drops(),
            Plane::Bridge(bridge) => &bridge.drops,
        }
    }
}

/// Until a controller is there, frames without match are dropped: the agent says otherwise.
fn pipeline(config: &OpenFlowConfig, ports: &[PortNo], seed: u64) -> Pipeline {
    let settings = Settings {
        exact_entries_max: config.exact_flows_max,
        wildcard_entries_max: config.wildcard_flows_max,
        hash_seed: seed,
        on_miss: OnMiss::Drop,
        ..Settings::default()
    };
    Pipeline::new(ports, &settings)
}

fn bridge(config: &BridgeConfig, ports: &[PortNo], seed: u64) -> Bridge {
    let settings = bridge::Settings {
        addresses_max: config.macs_max,
        ageing: config.ageing(),
        learning: if config.per_vlan { Learning::PerVlan } else { Learning::Shared },
        seed,
    };
    Bridge::new(ports, &settings)
}

impl Forwarder for Plane {
    fn forward(&mut self, port: PortNo, batch: &mut Batch, now: Nanos, out: &mut Outputs) {
        match self {
            Plane::OpenFlow(pipeline) => pipeline.forward(port, batch, now, out),
            Plane::Bridge(bridge) => bridge.forward(port, batch, now, out),
        }
    }

    fn tick(&mut self, now: Nanos, out: &mut Outputs) -> Option<Nanos> {
        match self {
            Plane::OpenFlow(pipeline) => pipeline.tick(now, out),
            Plane::Bridge(bridge) => bridge.tick(now, out),
        }
    }
}
