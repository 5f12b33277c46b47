//! What a copy of the tables in another data plane needs: changes and settings.

use std::sync::Arc;

use packet::frame::PortNo;

use super::{OnMiss, Pipeline};
use crate::egress::PortSettings;
use crate::table::{FlowCounters, TableMiss};

impl Pipeline {
    /// Records changes of entries from now on (see [`crate::table::Tables::record_changes`]).
    pub fn record_changes(&mut self) {
        self.tables.record_changes();
    }

    /// Stops recording changes.
    pub fn stop_recording_changes(&mut self) {
        self.tables.stop_recording_changes();
    }

    /// Returns the slots of changed entries (see [`crate::table::Tables::take_changes`]).
    pub fn take_changes(&mut self) -> Option<Vec<u32>> {
        self.tables.take_changes()
    }

    /// Whether frames that match no entry of a table are dropped.
    pub fn drops_misses(&self, table: u8) -> bool {
        let on_miss = self.shared.engine().on_miss;
        on_miss != OnMiss::Normal
            && match self.tables.config(table).map(|config| config.on_miss) {
                Some(TableMiss::Drop) => true,
                Some(TableMiss::Pipeline) => on_miss == OnMiss::Drop,
                Some(TableMiss::Controller | TableMiss::Continue) | None => false,
            }
    }

    /// Passes the state of each of these ports with its index: whether all frames from the port go
    /// to the tables, and whether every frame for it leaves immediately.
    pub fn each_port_state(&self, ports: &[PortNo], mut each: impl FnMut(usize, (bool, bool))) {
        let engine = self.shared.engine();
        let egress = &engine.egress;
        for (index, &port) in ports.iter().enumerate() {
            let receives = egress.settings(port) == PortSettings::default();
            each(index, (receives, !egress.defers && egress.sends_at_once(port)));
        }
    }

    /// Adds the counters of another data plane to all statistics from now on (see
    /// [`crate::table::Tables::add_counters`]).
    pub fn add_counters(&mut self, counters: Arc<dyn FlowCounters>) {
        self.tables.add_counters(counters);
    }
}
