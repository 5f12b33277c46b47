//! A cable without a target, to measure the tester.
//!
//! Its site is [`crate::Lab::direct`]'s: frames sent into port 1 arrive at port 2.
//!
//! Invariant: nothing is started, so nothing is left behind.

use super::{ControlInterface, Description, Peer, Plan, kernel_release, refuse};
use crate::{LabError, Site};
use std::collections::BTreeMap;
use std::time::Duration;

const KIND: &str = "direct";

/// A cable from the tester to itself.
#[derive(Debug, Default)]
pub struct Direct {
    mtu: u32,
}

impl Peer for Direct {
    fn start(&mut self, site: &Site) -> Result<(), LabError> {
        refuse(KIND, "site with a target for a peer", !site.target.is_empty())?;
        self.mtu = site.wiring.mtu;
        Ok(())
    }

    fn ready(&mut self, _patience: Duration) -> Result<ControlInterface, LabError> {
        Ok(ControlInterface::Nothing)
    }

    fn install(&mut self, _site: &Site, plan: &Plan) -> Result<(), LabError> {
        refuse(KIND, "plan to install for a peer", *plan != Plan::default())
    }

    fn counters(&mut self) -> Result<BTreeMap<String, u64>, LabError> {
        Ok(BTreeMap::new())
    }

    fn check(&mut self) -> Result<(), LabError> {
        Ok(())
    }

    fn processes(&self) -> Vec<u32> {
        Vec::new()
    }

    fn stop(&mut self) -> Result<(), LabError> {
        Ok(())
    }

    fn describe(&self) -> Description {
        Description::new(KIND, kernel_release()).set("mtu_bytes", self.mtu)
    }
}
