//! User devices, connected to the tester by interfaces of this host.
//!
//! The bench starts and creates nothing:
//! - It takes interfaces and releases them at the end.
//! - It connects to a switch, reads its description, and programs it with the tester's controller.
//! - It teaches a bridge addresses by frames, and plays a router's neighbors.
//!
//! A device does not report its losses, so only losses of the tester's own interfaces are known.
//! Invariant: at the end a switch has the entries of the start again. If it is no longer reachable,
//! this is reported.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use channel::Url;
use netio::afpacket::Options;
use netio::control_tap::Tap;
use netio::port::Port;
use openflow::model::multipart::FlowStats;
use openflow::version::Version;
use os::clock;
use packet::time::Nanos;
use testbed::Namespace;
use testbed::account::Account;
use testbed::affinity::Cores;
use testbed::borrowed_interfaces::BorrowedInterfaces;
use tester::controller::{ControlError, Controller, RealTime};
use tester::executor::live::Dialer;
use tester::module::{Module, StageReport};
use tester::rig::live::LiveRig;
use tester::rig::{Rig, RigError};
use tester::stream::Rate;
use tester::trial::{Trial, TrialReport};

use super::attach::{interface_to, known_ports, not_reached, shown, take};
use super::cables::Cables;
use super::connect::{ConnectMethod, ServedConnection};
use super::neighbours::Neighbours;
use super::switch::{self, SwitchIdentity};
use super::{Device, DeviceSpec};
use crate::drain::{self, AsyncTarget, DrainPolicy};
use crate::name::{Link, TargetKind};
use crate::veth::{INSTRUMENT_XDP, RIG_KEY, lab_error, station_mac};
use crate::{
    Description, LossPlace, Snapshot, Target, TargetError, control_capture, flow_setup,
    mac_learning, no_controller, orders, scene, snmp,
};
use workload::Technology;
use workload::parameter::control::Capture;
use workload::parameter::{Parameters, Table, Traffic};
use workload::{Addresses, FIRST_NETWORK, NEXT_HOP, PORTS_MAX, Setup};

/// Rates of the frames that verify entries, in frames per second: the first attempt, and the
/// minimum after losses.
const PROOF_PPS: [f64; 2] = [10_000.0, 1_000.0];

/// Limit of such frames in one attempt; for larger tables they are a random sample.
const PROOF_FRAMES: u64 = 2_000;

/// Shortest duration of such an attempt, in seconds.
const PROOF_S_MIN: f64 = 0.02;

/// Wait for such frames after the last one is sent.
const PROOF_DRAIN: Nanos = Nanos::from_millis(50);

/// Creates targets from user devices.
pub struct DeviceBench {
    link: Link,
    cores: Cores,
    parameters: Parameters,
    stop: Arc<AtomicBool>,
    /// Open devices, since one may be measured with two ports and with three.
    met: Vec<(Device, Arc<OpenDevice>)>,
}

/// An open device: its description, and the connection to it.
struct OpenDevice {
    /// ARP state of a router. Dropped before the interfaces.
    neighbours: Option<Neighbours>,
    taken: BorrowedInterfaces,
    state: Mutex<State>,
    told: SwitchIdentity,
    /// The flow entries of the device at the start.
    found: Vec<FlowStats>,
    remarks: Vec<String>,
}

/// State shared by all targets of a device: it has one table, and may open only one connection.
#[derive(Default)]
struct State {
    /// The way to connect to a switch.
    way: Option<ConnectMethod>,
    /// An open connection.
    kept: Option<ServedConnection>,
    /// The interface on which its control channel is captured, and whether a file is requested.
    captured: Option<(String, bool)>,
    /// The installed setup.
    holds: Option<Setup>,
}

/// A device with the tester's ports on both sides.
pub struct DeviceTarget {
    kind: TargetKind,
    met: Arc<OpenDevice>,
    rig: LiveRig,
    overdue: DrainPolicy,
    inputs: u8,
    patience: Nanos,
    stop: Arc<AtomicBool>,
}

impl DeviceBench {
    /// Opens a bench on the interfaces of this host.
    pub fn open(
        link: Link,
        parameters: &Parameters,
        stop: &Arc<AtomicBool>,
    ) -> Result<Self, TargetError> {
        let cores = Cores::of_machine().map_err(lab_error)?;
        let (parameters, stop) = (parameters.clone(), Arc::clone(stop));
        Ok(DeviceBench { link, cores, parameters, stop, met: Vec::new() })
    }

    /// Returns the link.
    pub fn link(&self) -> Link {
        self.link
    }

    /// Returns the core assignment.
    pub fn cores(&self) -> &Cores {
        &self.cores
    }

    /// Returns the settings of the bench, for the record.
    pub fn settings(&self) -> Vec<(String, String)> {
        vec![("cores_instrument".into(), format!("{:?}", self.cores.instrument))]
    }

    /// Takes the interfaces to a device and opens it, unless it is open.
    pub fn target(&mut self, kind: TargetKind, inputs: u8) -> Result<DeviceTarget, TargetError> {
        let TargetKind::Device(device) = kind else {
            let what = format!("{} is not an external device (hint: use --link veth)", kind.name());
            return Err(TargetError::CannotHold(what));
        };
        let (said, wanted) = (device.said(), usize::from(inputs) + 1);
        if said.ports.len() < wanted {
            return Err(TargetError::CannotHold(format!(
                "the experiment needs {wanted} ports, but ports= has {} (hint: add PORT@INTERFACE \
                 to ports=)",
                said.ports.len()
            )));
        }
        let known = self.met.iter().find(|(known, _)| *known == device);
        let known = known.map(|(_, met)| Arc::clone(met));
        let (met, controller) = match known {
            Some(met) => (met, None),
            None => {
                let (met, controller) = self.meet(said)?;
                let met = Arc::new(met);
                self.met.push((device, Arc::clone(&met)));
                (met, controller)
            }
        };
        let names = names(said);
        let ports = self.ports(&names[..wanted])?;
        testbed::affinity::pin(0, &self.cores.instrument).map_err(lab_error)?;
        let mut rig = LiveRig::new(ports, RIG_KEY, Arc::clone(&self.stop));
        rig.agents = snmp::of_device(&self.parameters.witness)?;
        if let Some(controller) = controller {
            met.state().kept = Some(ServedConnection::keep(controller));
        }
        let (stop, patience) = (Arc::clone(&self.stop), self.parameters.device.patience());
        let overdue = DrainPolicy::default();
        Ok(DeviceTarget { kind, met, rig, overdue, inputs, patience, stop })
    }

    fn ports(&self, names: &[&str]) -> Result<Vec<Box<dyn Port>>, TargetError> {
        let by = if self.link == Link::NicXdp { INSTRUMENT_XDP } else { "afpacket:NAME" };
        let open = |name: &&str| netio::open::open(&by.replace("NAME", name), &Options::monitor());
        let opened: Result<_, _> = names.iter().map(open).collect();
        opened.map_err(|error| TargetError::failed("cannot open the tester's ports", error))
    }

    /// Takes interfaces, connects to the device, and checks its cables.
    fn meet(&self, said: &DeviceSpec) -> Result<(OpenDevice, Option<Controller>), TargetError> {
        let settings = &self.parameters.device;
        let names = names(said);
        let taken = take(&names, settings)?;
        let mut met = OpenDevice {
            neighbours: None,
            taken,
            state: Mutex::default(),
            told: SwitchIdentity::default(),
            found: Vec::new(),
            remarks: Vec::new(),
        };
        if let Some(given) = &said.router {
            if self.link == Link::NicXdp {
                let what = "a router cannot be measured over AF_XDP, which does not reply to ARP \
                            (hint: use --link nic)";
                return Err(TargetError::CannotHold(what.into()));
            }
            let ends = met.taken.interfaces.iter();
            let ends: Vec<_> = ends.map(|it| (it.name.as_str(), station_mac(it.mac))).collect();
            met.neighbours = Some(Neighbours::meet(&ends, given, settings.patience())?);
            return Ok((met, None));
        }
        let way = ConnectMethod::open(said, settings.patience(), &self.stop);
        let Some(mut way) = way.map_err(|error| not_reached(&error.into(), said))? else {
            self.look_after_cables(said, None)?;
            return Ok((met, None));
        };
        let reached =
            way.controller(Version::SUPPORTED).map_err(|error| not_reached(&error, said))?;
        let mut controller = reached;
        let failed = |error| TargetError::failed("cannot read the device's description", error);
        met.told = switch::ask(&mut controller).map_err(failed)?;
        known_ports(&met.told, said, &way)?;
        met.found = switch::flows(&mut controller).map_err(failed)?;
        if !met.found.is_empty() {
            let count = met.found.len();
            if !settings.overwrites_flows {
                return Err(TargetError::CannotHold(format!(
                    "the device has {count} flow entries, the first is {} (hint: delete them, or \
                     use --set existing_flows=replace to delete them for the run and restore them)",
                    shown(&met.found[0], &way)
                )));
            }
            met.remarks.push(format!(
                "{count} flow entries of the device are deleted for the run and restored after it \
                 with new counters; groups and meters do not change"
            ));
        }
        let prepared = switch::clear(&mut controller)
            .map_err(|error| TargetError::failed("cannot delete flows", error))
            .and_then(|()| self.look_after_cables(said, Some(&mut controller)));
        if let Err(error) = prepared {
            // Restores the switch; if that fails too, the first error is more useful.
            let _ = switch::put_back(&mut controller, &met.found);
            return Err(error);
        }
        let capture = self.parameters.control.capture;
        if capture != Capture::No {
            met.state().captured = Some((interface_to(way.url())?, capture == Capture::File));
        }
        met.state().way = Some(way);
        Ok((met, Some(controller)))
    }

    fn look_after_cables(
        &self,
        said: &DeviceSpec,
        controller: Option<&mut Controller>,
    ) -> Result<(), TargetError> {
        if !self.parameters.device.checks_cables {
            return Ok(());
        }
        let names = names(said);
        let numbers: Vec<u32> = said.ports.iter().map(|(number, _)| *number).collect();
        let mut ports = self.ports(&names)?;
        let patience = self.parameters.device.patience();
        let mut cables = Cables { ports: &mut ports, numbers: &numbers, names: &names, patience };
        match controller {
            Some(controller) => {
                cables.check_each(controller)?;
                cables.check_rule(controller)
            }
            None => cables.check_through(
                "put both ports into one VLAN; for spanning tree, use --set device_timeout_s=60",
            ),
        }
    }
}

fn names(said: &DeviceSpec) -> Vec<&str> {
    said.ports.iter().map(|(_, name)| name.as_str()).collect()
}

impl State {
    /// Closes the open connection.
    fn hang_up(&mut self) {
        drop(self.kept.take().and_then(ServedConnection::take));
    }
}

impl OpenDevice {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DeviceTarget {
    /// Returns the open connection, or a new one.
    fn controller(&mut self) -> Result<Controller, ControlError> {
        let mut state = self.met.state();
        if let Some(controller) = state.kept.take().and_then(ServedConnection::take) {
            return Ok(controller);
        }
        let way = state.way.as_mut().expect("only a switch that was reached is programmed");
        way.controller(Version::SUPPORTED)
    }

    fn is_switch(&self) -> bool {
        self.kind.technology() == Technology::OpenFlow
    }

    /// Installs the setup's entries in a switch, and verifies that they are active.
    fn program(&mut self, setup: &Setup) -> Result<(), TargetError> {
        let failed = |error| TargetError::failed("cannot install flows by OpenFlow", error);
        let mut controller = self.controller().map_err(failed)?;
        switch::clear(&mut controller).map_err(failed)?;
        let flows = flow_setup::flows(setup, &self.addresses());
        let installed = controller.install(flows, &mut RealTime::default()).map_err(failed)?;
        self.met.state().kept = Some(ServedConnection::keep(controller));
        flow_setup::checked(&installed)?;
        self.see_acting(setup)
    }

    /// Sends a frame for each entry, or for a sample of many, until all come back. A barrier reply
    /// is no proof that entries are active.
    fn see_acting(&mut self, setup: &Setup) -> Result<(), TargetError> {
        if matches!(setup.table, Table::Empty | Table::Mesh | Table::Learned) {
            return Ok(());
        }
        let is_sampled = setup.tour().flows() > PROOF_FRAMES;
        let shown =
            if is_sampled { Setup { traffic: Traffic::Random, ..*setup } } else { setup.tour() };
        let frames = shown.flows().min(PROOF_FRAMES) as f64;
        let (kind, addresses) = (self.kind, self.addresses());
        let trial = |pps: f64| {
            let rate = Rate::FramesPerSecond(pps);
            let stream = shown.stream(kind.technology(), &addresses, 64, rate);
            let length = Nanos::from_secs_f64((frames / pps).max(PROOF_S_MIN));
            Trial::new(vec![stream], Nanos::ZERO, length, PROOF_DRAIN)
        };
        let deadline = clock::now().saturating_add(self.patience);
        let mut pps = PROOF_PPS[0];
        loop {
            let trial = trial(pps);
            // Frames lost for lack of speed return at a lower rate.
            pps = (pps / 2.0).max(PROOF_PPS[1]);
            let report = match self.rig.trial(&trial) {
                Err(RigError::Interrupted) => return Ok(()),
                report => {
                    report.map_err(|error| TargetError::failed("cannot verify flows", error))?
                }
            };
            let (offered, forwarded) = (report.total.offered, report.total.forwarded);
            if forwarded >= offered {
                return Ok(());
            }
            if clock::now() >= deadline {
                let (waited, missing) =
                    (self.patience.as_secs_f64(), offered.saturating_sub(forwarded));
                return Err(TargetError::CannotHold(match self.is_switch() {
                    true => format!(
                        "flow entries are not active {waited:.0} s after the barrier reply: \
                         {missing} of {offered} frames for them were not forwarded (hint: increase \
                         --set device_timeout_s=SECONDS)"
                    ),
                    false => format!(
                        "the router did not forward {missing} of {offered} frames within \
                         {waited:.0} s (hint: add routes by {NEXT_HOP} to the {} /24 networks from \
                         {FIRST_NETWORK} on, or one route to all of them)",
                        setup.entries
                    ),
                }));
            }
        }
    }

    /// Teaches a bridge where the frames of the setup go.
    fn populate_mac_table(&mut self, setup: &Setup) -> Result<(), TargetError> {
        if self.kind.technology() == Technology::Routing {
            return Ok(());
        }
        let learning = match (self.is_switch(), setup.table) {
            (true, _) | (_, Table::Mesh | Table::Empty) => *setup,
            (false, _) => Setup { table: Table::Learned, ..*setup },
        };
        let (kind, addresses) = (self.kind, self.addresses());
        mac_learning::populate_mac_table(kind, &learning, &addresses, |trial| {
            self.rig.trial(trial).map(drop).or_else(mac_learning::failed)?;
            Ok(None)
        })
    }

    /// Restores the flow entries that a switch had at the start.
    fn restore(&mut self) -> Result<(), TargetError> {
        if !self.is_switch() {
            return Ok(());
        }
        self.met.state().holds = None;
        let count = self.met.found.len();
        let failed = |error: String| {
            let left = match count {
                0 => "it may still have flow entries of the run".to_owned(),
                _ => format!(
                    "it may still have flow entries of the run, and lacks {count} of its own"
                ),
            };
            TargetError::failed("cannot restore the device", format!("{error}; {left}"))
        };
        let mut controller = self.controller().map_err(|error| failed(error.to_string()))?;
        let put = switch::put_back(&mut controller, &self.met.found);
        match put.map_err(|error| failed(error.to_string()))? {
            0 => Ok(()),
            refused => Err(TargetError::failed(
                "cannot restore the device",
                format!("it rejected {refused} of its {count} earlier flow entries"),
            )),
        }
    }
}

impl AsyncTarget for DeviceTarget {
    fn overdue(&mut self) -> (&mut LiveRig, &mut DrainPolicy) {
        (&mut self.rig, &mut self.overdue)
    }
}

impl Target for DeviceTarget {
    fn kind(&self) -> TargetKind {
        self.kind
    }

    fn describe(&self) -> Description {
        let mut description = self.met.told.description.clone();
        let TargetKind::Device(device) = self.kind else { return description };
        for (number, interface) in &device.said().ports {
            description.settings.insert(format!("port_{number}"), interface.clone());
        }
        if self.is_switch() {
            let found = self.met.found.len().to_string();
            description.settings.insert("flows_found".into(), found);
        }
        description
    }

    fn remarks(&self) -> Vec<String> {
        self.met.remarks.clone()
    }

    fn addresses(&self) -> Addresses {
        let mut addresses = workload::ADDRESSES;
        for (place, end) in self.met.taken.interfaces.iter().take(PORTS_MAX).enumerate() {
            addresses.instrument[place] = station_mac(end.mac);
        }
        let macs = self.met.neighbours.iter().flat_map(|it| &it.macs);
        for (own, mac) in addresses.target.iter_mut().zip(macs) {
            *own = *mac;
        }
        addresses
    }

    fn install(&mut self, setup: &Setup) -> Result<(), TargetError> {
        if self.met.state().holds.as_ref() == Some(setup) {
            return Ok(());
        }
        self.met.state().holds = None;
        match self.kind.technology() {
            Technology::OpenFlow => self.program(setup)?,
            Technology::Routing => self.see_acting(setup)?,
            _ => {}
        }
        self.populate_mac_table(setup)?;
        self.met.state().holds = Some(*setup);
        Ok(())
    }

    fn trial(&mut self, trial: &Trial) -> Result<TrialReport, RigError> {
        if drain::can_extend(trial) {
            return drain::trial(self, trial);
        }
        if trial.orders.is_none() {
            return orders::trial(&mut self.rig, trial, &self.stop, |_| unreachable!("no orders"));
        }
        // The thread that sends commands needs its own connection, and a switch that connects to
        // the tester opens only one.
        self.met.state().hang_up();
        let (met, stop) = (Arc::clone(&self.met), Arc::clone(&self.stop));
        orders::trial(&mut self.rig, trial, &stop, |script| {
            let mut state = met.state();
            let way = state.way.as_mut().ok_or_else(no_controller)?;
            way.controller(&[script.version()])
        })
    }

    fn stage(&mut self, module: &mut dyn Module) -> Result<StageReport, TargetError> {
        let scene = scene(self.rig.ports());
        if !self.is_switch() {
            return Ok(self.rig.stage(module, &scene, &mut |_, _| Err(no_controller())));
        }
        let mut state = self.met.state();
        let state = &mut *state;
        state.holds = None;
        state.hang_up();
        let failed =
            |error: ControlError| TargetError::failed("cannot connect to the device", error);
        let way = state.way.as_mut().expect("only a switch that was reached is programmed");
        if way.is_called() {
            // The first connection is awaited before the module's time begins. If the switch does
            // not connect, the module's result reports it.
            let mut first = way.channel().ok();
            return Ok(self.rig.stage(module, &scene, &mut |_, _| match first.take() {
                Some(channel) => Ok(Some(channel)),
                None => way.accept(),
            }));
        }
        let mut dialer = Dialer::new_with(&[way.url().clone()], way.tls())
            .map_err(|error| failed(error.into()))?;
        let tap = match (&state.captured, way.url()) {
            (Some((interface, file)), Url::Tcp(address)) => {
                let opened = Tap::open(interface, address.port(), *file);
                Some(opened.map_err(|error| failed(error.into()))?)
            }
            _ => None,
        };
        let mut report = self.rig.stage(module, &scene, &mut |wanted, now| {
            let made = dialer.connect(wanted, now)?;
            Ok(made.map(|channel| match &tap {
                Some(tap) => way.around(tap.around(channel)),
                None => way.around(channel),
            }))
        });
        if let Some(tap) = tap {
            control_capture::settle(&mut report, tap);
        }
        Ok(report)
    }

    fn ask(&mut self, module: &mut dyn Module) -> Result<StageReport, TargetError> {
        Ok(crate::alone(&mut self.rig, module))
    }

    fn snapshot(&mut self) -> Result<Snapshot, TargetError> {
        let mut snapshot = Snapshot::default();
        let here = Namespace::current().and_then(|here| Account::of(&here)).map_err(lab_error)?;
        let ends = self.met.taken.interfaces.iter().take(usize::from(self.inputs) + 1);
        for end in ends {
            if let Some(link) = here.links.get(&end.name) {
                let key = (LossPlace::Kernel, end.name.clone(), "receive_dropped".to_string());
                snapshot.drops.insert(key, link.receive_dropped);
            }
        }
        self.overdue.note(&snapshot);
        Ok(snapshot)
    }

    fn forget(&mut self) {
        let mut state = self.met.state();
        state.holds = None;
        state.hang_up();
    }

    fn stop(mut self: Box<Self>) -> Result<(), TargetError> {
        self.restore()
    }
}
