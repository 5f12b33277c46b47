//! State of the device, from the front end's messages, and the rings that follow from it.
//!
//! The `vhost` crate has already decoded a message. This module validates it, and stores a
//! violation in [`Device::fault`]. Nothing takes effect before a call of [`Device::rings`].

use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use vhost::VhostUserMemoryRegionBase as Base;
use vhost::vhost_user::message::{
    VhostTransferStateDirection, VhostTransferStatePhase, VhostUserConfigFlags, VhostUserInflight,
    VhostUserLog, VhostUserMemoryRegion, VhostUserProtocolFeatures, VhostUserShMemConfig,
    VhostUserSharedMsg, VhostUserSingleMemoryRegion, VhostUserVirtioFeatures,
    VhostUserVringAddrFlags, VhostUserVringState,
};
use vhost::vhost_user::{Error, GpuBackend, Result, VhostUserBackendReqHandlerMut};

use super::memory::{Memory, REGIONS_MAX, RegionDescription, SharedMemory};
use super::ring::{ENTRIES_MAX, Ring, RingAddresses};
use crate::memif::doorbell::Doorbell;
use crate::memif::fault::Fault;

/// VIRTIO_NET_F_MRG_RXBUF: a frame may be in several chains.
const MERGE: u64 = 1 << 15;
/// VIRTIO_NET_F_MQ: more than one pair of queues.
const SEVERAL_QUEUES: u64 = 1 << 22;
/// VIRTIO_F_VERSION_1: headers have a fixed length, independent of other features.
const VERSION_1: u64 = 1 << 32;
/// VHOST_USER_F_PROTOCOL_FEATURES.
const PROTOCOL: u64 = VhostUserVirtioFeatures::PROTOCOL_FEATURES.bits();

/// The front end's settings of one ring.
#[derive(Debug, Default)]
struct RingSettings {
    entries: u32,
    place: Option<RingAddresses>,
    base: u16,
    /// Whether the front end has set the kick eventfd, which starts the ring.
    is_started: bool,
    is_enabled: bool,
    kick: Option<Doorbell>,
    call: Option<Doorbell>,
}

/// The front end's settings so far.
pub struct Device {
    queues: u16,
    features: u64,
    memory: Option<SharedMemory>,
    said: Vec<RingSettings>,
    /// The front end's first fault.
    pub fault: Option<Fault>,
    /// Whether the rings may have changed.
    pub changed: bool,
}

/// Frame layout in a device's rings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Bytes of the header before each frame.
    pub header_bytes: u32,
    /// Whether a frame for the driver may be in several chains.
    pub merges: bool,
}

impl Device {
    /// Creates a device without settings, with at most this many pairs of queues.
    pub fn new(queues: u16) -> Self {
        let said = (0..2 * queues).map(|_| RingSettings::default()).collect();
        Device { queues, features: 0, memory: None, said, fault: None, changed: false }
    }

    /// Returns the features on offer.
    fn offered(&self) -> u64 {
        let several = if self.queues > 1 { SEVERAL_QUEUES } else { 0 };
        VERSION_1 | MERGE | PROTOCOL | several
    }

    /// Returns the frame layout in the rings.
    pub fn shape(&self) -> Shape {
        let has_count = self.features & (VERSION_1 | MERGE) != 0;
        let header_bytes = if has_count { 12 } else { 10 };
        Shape { header_bytes, merges: self.features & MERGE != 0 }
    }

    /// Returns the rings that may be used now, by number; even numbers carry frames to the driver.
    pub fn rings(&mut self) -> std::result::Result<Vec<Option<Ring>>, Fault> {
        let Some(memory) = &self.memory else {
            return Ok(self.said.iter().map(|_| None).collect());
        };
        // Without VHOST_USER_F_PROTOCOL_FEATURES, a started ring is enabled.
        let is_enabled = self.features & PROTOCOL == 0;
        let ring = |said: &RingSettings| {
            let place = said.place.filter(|_| said.is_started && (is_enabled || said.is_enabled));
            let Some(place) = place else { return Ok(None) };
            let bells = [said.kick.clone(), said.call.clone()];
            let memory = Arc::clone(memory);
            Ring::new(memory, place, said.entries, said.base, bells).map(Some)
        };
        self.said.iter().map(ring).collect()
    }

    /// Returns the maximum number of rings.
    pub fn numbers(&self) -> usize {
        self.said.len()
    }

    /// Stores the next available index of a ring.
    pub fn note(&mut self, number: usize, next: u16) {
        self.said[number].base = next;
    }

    fn refuse<T>(&mut self, fault: Fault) -> Result<T> {
        self.fault.get_or_insert(fault);
        Err(Error::InvalidParam)
    }

    fn say(&mut self, number: u32, word: impl FnOnce(&mut RingSettings)) -> Result<()> {
        match self.said.get_mut(number as usize) {
            Some(said) => {
                word(said);
                self.changed = true;
                Ok(())
            }
            None => self.refuse(Fault::RingIndex),
        }
    }

    fn bell(&mut self, file: Option<File>) -> Result<Option<Doorbell>> {
        match file.map(|file| Doorbell::adopt(OwnedFd::from(file))).transpose() {
            Ok(bell) => Ok(bell),
            Err(fault) => self.refuse(fault),
        }
    }

    /// Rejects a message for a feature that was not offered.
    fn never<T>(&mut self) -> Result<T> {
        self.refuse(Fault::Features)
    }
}

impl VhostUserBackendReqHandlerMut for Device {
    fn set_owner(&mut self) -> Result<()> {
        Ok(())
    }

    fn reset_owner(&mut self) -> Result<()> {
        *self = Device { changed: true, ..Device::new(self.queues) };
        Ok(())
    }

    fn reset_device(&mut self) -> Result<()> {
        self.reset_owner()
    }

    fn get_features(&mut self) -> Result<u64> {
        Ok(self.offered())
    }

    fn set_features(&mut self, features: u64) -> Result<()> {
        if features & !self.offered() != 0 {
            return self.refuse(Fault::Features);
        }
        self.features = features;
        self.changed = true;
        Ok(())
    }

    fn set_mem_table(
        &mut self,
        regions: &[VhostUserMemoryRegion],
        files: Vec<File>,
        _postcopy_listening: Option<bool>,
    ) -> Result<Option<Vec<Base>>> {
        if regions.len() > REGIONS_MAX || regions.len() != files.len() {
            return self.refuse(Fault::RegionIndex);
        }
        let told = regions.iter().map(|region| RegionDescription {
            guest: region.guest_phys_addr,
            user: region.user_addr,
            bytes: region.memory_size,
            offset: region.mmap_offset,
        });
        match Memory::map(told.zip(files.into_iter().map(OwnedFd::from)).collect()) {
            Ok(memory) => {
                self.memory = Some(Arc::new(memory));
                self.changed = true;
                Ok(None)
            }
            Err(fault) => self.refuse(fault),
        }
    }

    fn set_vring_num(&mut self, number: u32, entries: u32) -> Result<()> {
        if !entries.is_power_of_two() || entries > ENTRIES_MAX {
            return self.refuse(Fault::RingSize);
        }
        self.say(number, |said| said.entries = entries)
    }

    fn set_vring_addr(
        &mut self,
        number: u32,
        _flags: VhostUserVringAddrFlags,
        descriptors: u64,
        used: u64,
        available: u64,
        _log: u64,
    ) -> Result<()> {
        let place = RingAddresses { descriptors, available, used };
        self.say(number, |said| said.place = Some(place))
    }

    fn set_vring_base(&mut self, number: u32, base: u32) -> Result<()> {
        let Ok(base) = u16::try_from(base) else { return self.refuse(Fault::IndexJump) };
        self.say(number, |said| said.base = base)
    }

    /// Stops a ring, and returns its next available index.
    fn get_vring_base(&mut self, number: u32) -> Result<VhostUserVringState> {
        let mut base = 0;
        self.say(number, |said| {
            said.is_started = false;
            (said.kick, said.call) = (None, None);
            base = said.base;
        })?;
        Ok(VhostUserVringState::new(number, base.into()))
    }

    fn set_vring_kick(&mut self, number: u8, file: Option<File>) -> Result<()> {
        let kick = self.bell(file)?;
        self.say(number.into(), |said| (said.kick, said.is_started) = (kick, true))
    }

    fn set_vring_call(&mut self, number: u8, file: Option<File>) -> Result<()> {
        let call = self.bell(file)?;
        self.say(number.into(), |said| said.call = call)
    }

    /// Faults end the connection, so the error eventfd is not used.
    fn set_vring_err(&mut self, number: u8, _file: Option<File>) -> Result<()> {
        self.say(number.into(), |_| {})
    }

    fn get_protocol_features(&mut self) -> Result<VhostUserProtocolFeatures> {
        Ok(VhostUserProtocolFeatures::MQ)
    }

    fn set_protocol_features(&mut self, features: u64) -> Result<()> {
        let known = VhostUserProtocolFeatures::MQ | VhostUserProtocolFeatures::REPLY_ACK;
        if features & !known.bits() == 0 { Ok(()) } else { self.refuse(Fault::Features) }
    }

    fn get_queue_num(&mut self) -> Result<u64> {
        Ok(self.queues.into())
    }

    fn set_vring_enable(&mut self, number: u32, enable: bool) -> Result<()> {
        self.say(number, |said| said.is_enabled = enable)
    }

    fn get_config(&mut self, _: u32, _: u32, _: VhostUserConfigFlags) -> Result<Vec<u8>> {
        self.never()
    }

    fn set_config(&mut self, _: u32, _: &[u8], _: VhostUserConfigFlags) -> Result<()> {
        self.never()
    }

    fn set_gpu_socket(&mut self, _: GpuBackend) -> Result<()> {
        self.never()
    }

    fn get_shared_object(&mut self, _: VhostUserSharedMsg) -> Result<File> {
        self.never()
    }

    fn get_inflight_fd(&mut self, _: &VhostUserInflight) -> Result<(VhostUserInflight, File)> {
        self.never()
    }

    fn set_inflight_fd(&mut self, _: &VhostUserInflight, _: File) -> Result<()> {
        self.never()
    }

    fn get_max_mem_slots(&mut self) -> Result<u64> {
        self.never()
    }

    fn add_mem_region(
        &mut self,
        _: &VhostUserSingleMemoryRegion,
        _: File,
        _: Option<bool>,
    ) -> Result<Option<Base>> {
        self.never()
    }

    fn remove_mem_region(&mut self, _: &VhostUserSingleMemoryRegion) -> Result<()> {
        self.never()
    }

    fn set_device_state_fd(
        &mut self,
        _: VhostTransferStateDirection,
        _: VhostTransferStatePhase,
        _: File,
    ) -> Result<Option<File>> {
        self.never()
    }

    fn check_device_state(&mut self) -> Result<()> {
        self.never()
    }

    fn get_shmem_config(&mut self) -> Result<VhostUserShMemConfig> {
        self.never()
    }

    fn set_log_base(&mut self, _: &VhostUserLog, _: File) -> Result<()> {
        self.never()
    }
}
