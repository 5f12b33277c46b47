//! The fast path of a bridge, router, switch or ProGFE element: known frames between `xdp:` ports
//! stay in the kernel.
//!
//! The tables of the data plane mirror themselves ([`fastpath`]). This module starts the programs
//! at the ports, passes on changes of flow tables, replaces the programs with that of the element,
//! follows interfaces that are replaced, and adds the kernel's counters to those of the ports.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};

use dataplane::pipeline::Pipeline;
use fastpath::{BlockPath, ElementStep};
use netio::port::PortCounters;
use netio::xdp::{FastPathLoader, LoadedFastPath};
use packet::frame::PortNo;
use packet::time::Nanos;
use progfe::compile::Compiled;
use progfe::diagnostic::Problems;
use progfe::executor::Enforcer;
use progfe::program::Program;
use serde_json::{Value, json};

use crate::config::FastPathMode;
use crate::datapath::{DataPlane, Element};
use crate::event::Event;
use crate::forward::ForwardPort;

/// Interval at which the interfaces of the ports are checked.
const CHECK_INTERVAL: Nanos = Nanos::from_millis(100);

/// Distinguishes the hash functions in the kernel from those in user space.
const SEED_OF_KERNEL: u64 = 0x6b65_726e_656c_5f31;

/// A running fast path.
pub struct FastPath {
    path: fastpath::FastPath,
    ports: Vec<PathPort>,
    /// Whether a port runs its program in native mode, which redirects only to some interfaces.
    is_native: bool,
    check_at: Nanos,
    /// When memory of removed flow entries can be reused, if there is any.
    reclaim_at: Option<Nanos>,
    /// Whether it is that of a ProGFE element.
    is_of_element: bool,
    /// Programs of the element that a thread loads.
    loading: Option<Loading>,
}

/// Programs that a thread loads.
struct Loading {
    /// Number of the generation.
    number: u32,
    done: Receiver<Result<Vec<(PortNo, LoadedFastPath)>, String>>,
}

/// Interval at which the result of the thread is expected.
const LOADING_INTERVAL: Nanos = Nanos::from_micros(500);

/// Interval at which memory of removed flow entries is reused.
const RECLAIM_INTERVAL: Nanos = Nanos::from_millis(2);

/// A port of the fast path.
struct PathPort {
    number: PortNo,
    /// Index of its interface.
    interface: u32,
    /// Whether frames for it are redirected.
    is_connected: bool,
}

/// Frames that the kernel forwarded or dropped.
#[derive(Default)]
pub struct KernelTraffic {
    pairs: Vec<fastpath::PairTraffic>,
    /// Traffic of ports of a switch or an element that is not between two ports.
    extra: Vec<(PortNo, fastpath::PortExtra)>,
}

impl FastPath {
    /// Starts the fast path between the ports that have an XDP program. Returns `None` if it is off
    /// or not for this data plane and its ports, or the reason if it cannot be started. Then frames
    /// are forwarded as without it.
    pub fn open(
        mode: FastPathMode,
        plane: &mut DataPlane,
        forward_ports: &mut [ForwardPort],
        seed: u64,
        now: Nanos,
    ) -> Result<Option<FastPath>, String> {
        let numbers: Vec<PortNo> = forward_ports
            .iter_mut()
            .filter_map(|forward_port| forward_port.port.xdp().map(|_| forward_port.number))
            .collect();
        let unsuited = match plane {
            _ if mode == FastPathMode::Off => return Ok(None),
            DataPlane::Bridge(bridge) if bridge.table.has_chains() => {
                Some("a bridge with hash buckets (--hash-buckets) has none")
            }
            DataPlane::Bridge(_) | DataPlane::Router(_) | DataPlane::OpenFlow(_)
                if numbers.len() >= 2 =>
            {
                None
            }
            DataPlane::ProGfe(_) if numbers.len() >= 2 => None,
            DataPlane::Bridge(_) | DataPlane::Router(_) | DataPlane::ProGfe(_) => {
                Some("it requires two ports xdp:INTERFACE or more")
            }
            DataPlane::OpenFlow(_) => {
                Some("it requires two ports xdp:INTERFACE or more, and no forwarding thread")
            }
            _ => Some("only a bridge, router, switch or ProGFE element without a model has one"),
        };
        if let Some(why) = unsuited {
            return if mode == FastPathMode::Required { Err(why.to_owned()) } else { Ok(None) };
        }
        let created = match plane {
            DataPlane::Bridge(bridge) => {
                fastpath::FastPath::of_bridge(bridge, &numbers, seed ^ SEED_OF_KERNEL)
            }
            DataPlane::Router(router) => {
                fastpath::FastPath::of_router(router, &numbers, seed ^ SEED_OF_KERNEL)
            }
            DataPlane::OpenFlow(pipeline) => {
                fastpath::FastPath::of_switch(pipeline, &numbers, seed ^ SEED_OF_KERNEL)
            }
            DataPlane::ProGfe(element) => {
                fastpath::FastPath::of_element(element, &numbers, seed ^ SEED_OF_KERNEL)
            }
            _ => return Ok(None),
        };
        let path = created.map_err(|error| format!("cannot create its maps: {error}"))?;
        let mut xdp_ports =
            forward_ports.iter_mut().filter_map(|forward_port| forward_port.port.xdp());
        let is_native = xdp_ports.any(|port| port.is_native());
        let is_of_element = matches!(plane, DataPlane::ProGfe(_));
        let mut fast_path = FastPath {
            path,
            ports: Vec::new(),
            is_native,
            check_at: Nanos::ZERO,
            reclaim_at: None,
            is_of_element,
            loading: None,
        };
        let lowered = match plane {
            DataPlane::ProGfe(element) => fast_path.path.follow_element(element, now).map(drop),
            _ => Ok(()),
        };
        let started = lowered
            .map_err(|error| format!("cannot lower the program: {error}"))
            .and_then(|()| fast_path.start(forward_ports));
        if started.is_err() {
            forward_ports.iter_mut().filter_map(|forward_port| forward_port.port.xdp()).for_each(
                |port| {
                    // It runs without one already if this fails too.
                    let _ = port.set_fast_path(None);
                },
            );
            match plane {
                DataPlane::Bridge(bridge) => bridge.table.set_mirror(None),
                DataPlane::Router(router) => router.set_mirrors(None),
                DataPlane::OpenFlow(pipeline) => pipeline.stop_recording_changes(),
                DataPlane::ProGfe(element) => {
                    element.set_mirror(None);
                    for instance in 0..element.program().instances.len() {
                        if let Some(table) = element.stations_mut(instance) {
                            table.set_mirror(None);
                        }
                    }
                }
                _ => {}
            }
        }
        started.map(|()| Some(fast_path))
    }

    /// Starts the programs.
    fn start(&mut self, forward_ports: &mut [ForwardPort]) -> Result<(), String> {
        for forward_port in forward_ports {
            let number = forward_port.number;
            let Some(port) = forward_port.port.xdp() else { continue };
            let program = self.path.program(number, port.is_partial());
            port.set_fast_path(Some(program)).map_err(|error| error.to_string())?;
            let interface = port.interface_index();
            self.ports.push(PathPort { number, interface, is_connected: false });
        }
        self.path.resume();
        Ok(())
    }

    /// Follows the program of an element: a thread loads its programs, then the ports get them.
    /// Adds an event if they cannot; then frames are forwarded in user space.
    pub fn follow_program(
        &mut self,
        element: &mut Element,
        forward_ports: &mut [ForwardPort],
        events: &mut Vec<Event>,
        now: Nanos,
    ) {
        let loaded = match &self.loading {
            Some(loading) => match loading.done.try_recv() {
                Err(TryRecvError::Empty) => return,
                Err(TryRecvError::Disconnected) => Err("the loading thread ended".to_owned()),
                Ok(loaded) => loaded,
            },
            None => Ok(Vec::new()),
        };
        let loading = self.loading.take();
        let followed = match self.path.follow_element(element, now) {
            Ok(ElementStep::None) => return,
            Ok(ElementStep::Programs(number)) => match loading {
                Some(loading) if loading.number == number => {
                    loaded.and_then(|programs| put_programs(programs, forward_ports))
                }
                _ => return self.load(number, forward_ports),
            },
            Err(error) => Err(error.to_string()),
        };
        match followed {
            Ok(()) => self.path.resume(),
            Err(why) => {
                self.path.give_up();
                events.push(Event::FastPathOff(why));
            }
        }
    }

    /// Starts to load the programs of a generation.
    fn load(&mut self, number: u32, forward_ports: &mut [ForwardPort]) {
        let mut jobs = Vec::new();
        for forward_port in forward_ports {
            let number = forward_port.number;
            let Some(port) = forward_port.port.xdp() else { continue };
            let fast_path = self.path.program(number, port.is_partial());
            jobs.push((number, port.fast_path_loader(), fast_path));
        }
        let (sender, done) = channel();
        let work = move || {
            let load = |(number, loader, fast_path): (PortNo, FastPathLoader, _)| {
                Ok((number, loader.load(fast_path).map_err(|error| error.to_string())?))
            };
            let loaded: Result<Vec<_>, String> = jobs.into_iter().map(load).collect();
            // Otherwise the element has ended.
            let _ = sender.send(loaded);
        };
        // Without a thread, the receiver is disconnected, and the reason is that.
        let _ = std::thread::Builder::new().name("lower".into()).spawn(work);
        self.loading = Some(Loading { number, done });
    }

    /// Returns the number of its ports, and the XDP mode.
    pub fn extent(&self) -> (usize, &'static str) {
        (self.ports.len(), if self.is_native { "native" } else { "generic" })
    }

    /// Follows interfaces that were replaced by others of the same name, changes of their MTUs, and
    /// interfaces that begin or end to send redirected frames. Adds an event for each of the latter.
    pub fn follow(
        &mut self,
        forward_ports: &mut [ForwardPort],
        events: &mut Vec<Event>,
        now: Nanos,
    ) {
        if now < self.check_at {
            return;
        }
        let is_first = self.check_at == Nanos::ZERO;
        self.check_at = now.saturating_add(CHECK_INTERVAL);
        for port in &mut self.ports {
            let Some(xdp) = forward_ports
                .iter_mut()
                .find(|forward_port| forward_port.number == port.number)
                .and_then(|forward_port| forward_port.port.xdp())
            else {
                continue;
            };
            if let Some(bytes_max) = xdp.frame_bytes_now() {
                self.path.set_frame_bytes_max(port.number, bytes_max);
            }
            let interface = xdp.interface_index();
            let is_new = is_first || interface != port.interface;
            port.interface = interface;
            // Generic programs redirect to any interface.
            let accepts = !self.is_native || xdp.sends_redirects();
            if !is_new && accepts == port.is_connected {
                continue;
            }
            // Without a connection, frames are forwarded in user space.
            let connected = match accepts {
                true => self.path.connect(port.number, interface).is_ok(),
                false => self.path.disconnect(port.number).is_err(),
            };
            if connected != port.is_connected || is_first && !connected {
                events.push(Event::FastPathPort(port.number, connected));
            }
            port.is_connected = connected;
        }
    }

    /// Returns the number of ports to which frames are redirected.
    fn connected(&self) -> usize {
        self.ports.iter().filter(|port| port.is_connected).count()
    }

    /// Passes on changes of flow tables. Then frames are forwarded by them.
    pub fn follow_tables(&mut self, pipeline: &mut Pipeline, now: Nanos) {
        let waits = self.path.follow(pipeline, now);
        self.reclaim_at = waits.then(|| now.saturating_add(RECLAIM_INTERVAL));
    }

    /// Returns when to call [`FastPath::follow_tables`] or [`FastPath::follow_program`] without a
    /// change.
    pub fn next_event(&self, now: Nanos) -> Option<Nanos> {
        let loading = self.loading.as_ref().map(|_| now.saturating_add(LOADING_INTERVAL));
        self.reclaim_at.into_iter().chain(loading).min()
    }

    /// Reads the counters of the kernel.
    pub fn traffic(&self) -> KernelTraffic {
        let ports = self.ports.iter().map(|port| port.number);
        KernelTraffic {
            pairs: self.path.traffic().unwrap_or_default(),
            extra: ports.map(|port| (port, self.path.extra(port))).collect(),
        }
    }

    /// Returns the entries and frames in the kernel, for reports. `escaped` is the number of frames
    /// that came to user space.
    pub fn report(&self, traffic: &KernelTraffic, escaped: u64) -> Value {
        if let Some(report) = self.path.switch_report() {
            return self.report_switch(traffic, &report);
        }
        let entries = self.path.entries();
        let mut report = json!({
            "ports": self.connected(),
            "frames": traffic.frames(),
            "bytes": traffic.pairs.iter().map(|pair| pair.bytes).sum::<u64>(),
            "frames_escaped": escaped,
            "macs": entries.macs,
            "neighbours": entries.neighbors,
            "routes_without_room": entries.routes_without_room,
            "others_without_room": entries.others_without_room,
        });
        if self.is_of_element {
            let dropped = traffic.extra.iter().map(|(_, extra)| extra.frames_dropped);
            report["frames_dropped"] = dropped.sum::<u64>().into();
            report["runs"] = self.path.runs().into();
        }
        report
    }

    /// Reports flow entries by what the kernel does with their frames.
    fn report_switch(&self, traffic: &KernelTraffic, report: &fastpath::SwitchReport) -> Value {
        let escaping = report.escaping.iter();
        let escaping: serde_json::Map<String, Value> =
            escaping.map(|(reason, count)| (reason.name().to_owned(), (*count).into())).collect();
        let dropped = traffic.extra.iter().map(|(_, extra)| extra.frames_dropped);
        json!({
            "ports": self.connected(),
            "frames": traffic.frames(),
            "bytes": traffic.pairs.iter().map(|pair| pair.bytes).sum::<u64>(),
            "frames_dropped": dropped.sum::<u64>(),
            "frames_escaped": report.frames_escaped,
            "flows": report.lowered,
            "flows_escaping": escaping,
            "flows_without_room": report.unplaced,
            "masks": report.masks,
        })
    }
}

/// Gives the ports their programs.
fn put_programs(
    programs: Vec<(PortNo, LoadedFastPath)>,
    forward_ports: &mut [ForwardPort],
) -> Result<(), String> {
    for (number, program) in programs {
        let forward_port =
            forward_ports.iter_mut().find(|forward_port| forward_port.number == number);
        if let Some(port) = forward_port.and_then(|forward_port| forward_port.port.xdp()) {
            port.put_fast_path(program).map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}

/// Returns the names of a program's blocks by where frames meet them: `lowered`, `lowered_in_part`
/// (also in user space) or `in_user_space`.
pub fn block_paths(program: Program) -> Result<Value, Problems> {
    let compiled = <Compiled as Enforcer>::start(Arc::new(program), 0)?;
    let program = compiled.program();
    let ports: Vec<PortNo> = program.ports.iter().map(|port| port.number).collect();
    let paths = fastpath::block_paths(program, compiled.tree(), &ports);
    let names = |wanted: BlockPath| -> Vec<&str> {
        let blocks = program.instances.iter().zip(&paths).filter(|(_, path)| **path == wanted);
        blocks.map(|(instance, _)| instance.name.as_str()).collect()
    };
    Ok(json!({
        "lowered": names(BlockPath::Lowered),
        "lowered_in_part": names(BlockPath::Partly),
        "in_user_space": names(BlockPath::UserSpace),
    }))
}

impl KernelTraffic {
    /// Returns the number of frames between all ports.
    pub fn frames(&self) -> u64 {
        self.pairs.iter().map(|pair| pair.frames).sum()
    }

    /// Adds the frames of a port to its counters. The driver lost `lost` of them on sending, and
    /// only their mean length is known.
    pub fn add_to(&self, port: PortNo, lost: u64, counters: &mut PortCounters) {
        let (mut frames, mut bytes) = (0, 0);
        for pair in &self.pairs {
            if pair.from == port {
                counters.rx_frames += pair.frames;
                counters.rx_bytes += pair.bytes;
            }
            if pair.to == port {
                frames += pair.frames;
                bytes += pair.bytes;
            }
        }
        for (_, extra) in self.extra.iter().filter(|(other, _)| *other == port) {
            counters.rx_frames += extra.frames_dropped;
            counters.rx_bytes += extra.bytes_dropped;
            bytes = bytes.wrapping_add_signed(extra.bytes_grown);
        }
        let lost = lost.min(frames);
        let bytes_lost = u128::from(bytes) * u128::from(lost) / u128::from(frames.max(1));
        counters.tx_frames += frames - lost;
        counters.tx_bytes += bytes - bytes_lost as u64;
    }
}

#[cfg(test)]
mod tests {
    use progfe::program::document::no_files;
    use progfe::shipped;
    use progfe::xml::Source;

    use super::*;

    #[test]
    fn blocks_of_shipped_programs_are_lowered_as_far_as_they_need_no_copies_and_no_agent() {
        for (name, in_part, in_user_space) in [
            ("bridge", &["fdb"][..], &["flood"][..]),
            // Tagged frames that are cut short, and those whose priority the header takes over.
            ("router", &["cls", "enc"], &["ce", "inj"]),
            // Frames with fields behind others of variable length, or cut short.
            ("vlan", &["cond", "tagv", "tagd", "untag"], &[]),
        ] {
            let source = Source::new(name, shipped::text(name).unwrap());
            let (program, _) = Program::load(&source, &no_files);
            let paths = block_paths(program.unwrap()).unwrap();
            assert_eq!(paths["lowered_in_part"], json!(in_part), "{name}");
            assert_eq!(paths["in_user_space"], json!(in_user_space), "{name}");
            let lowered = paths["lowered"].as_array().unwrap();
            assert!(lowered.contains(&json!("tx#2")), "{name}: {lowered:?}");
        }
    }
}
