//! The driver's memory: regions with two kinds of address. Descriptors use the driver's addresses
//! ("guest physical"). The messages that place the rings use the front end's ("user").
//!
//! Invariant: every returned address has been checked, length included, to be inside one region.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use crate::memif::fault::Fault;
use crate::memif::region::Region;

/// Maximum number of regions of one front end (the specification's limit without memory slots).
pub const REGIONS_MAX: usize = 8;

/// A region as described in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegionDescription {
    /// Its first address in descriptors.
    pub guest: u64,
    /// Its first address in the front end's address space.
    pub user: u64,
    /// Its bytes.
    pub bytes: u64,
    /// Its offset in its file.
    pub offset: u64,
}

/// All regions of a connection.
pub struct Memory {
    places: Vec<(RegionDescription, Region)>,
}

/// Shared by the ends of all rings, so that the memory stays mapped until the last end is dropped.
pub type SharedMemory = Arc<Memory>;

impl Memory {
    /// Maps these regions.
    pub fn map(regions: Vec<(RegionDescription, OwnedFd)>) -> Result<Memory, Fault> {
        if regions.len() > REGIONS_MAX {
            return Err(Fault::RegionIndex);
        }
        let map = |(told, file): (RegionDescription, OwnedFd)| {
            let bytes = told.offset.checked_add(told.bytes).ok_or(Fault::RegionSize)?;
            let ends = [told.guest.checked_add(told.bytes), told.user.checked_add(told.bytes)];
            if told.bytes == 0 || ends.contains(&None) {
                return Err(Fault::RegionSize);
            }
            Ok((told, Region::map_guarded(&file, bytes)?))
        };
        Ok(Memory { places: regions.into_iter().map(map).collect::<Result<_, _>>()? })
    }

    /// Returns the pointer to `length` bytes at a driver's address, if all are in one region.
    #[inline(always)]
    pub fn guest(&self, address: u64, length: u32) -> Option<*mut u8> {
        self.find(|told| told.guest, address, u64::from(length))
    }

    /// Like [`Memory::guest`], for a front end's address.
    pub fn user(&self, address: u64, length: usize) -> Option<*mut u8> {
        self.find(|told| told.user, address, length as u64)
    }

    #[inline(always)]
    fn find(
        &self,
        first: impl Fn(&RegionDescription) -> u64,
        address: u64,
        length: u64,
    ) -> Option<*mut u8> {
        for (told, region) in &self.places {
            // For an address before the region, the difference wraps and exceeds its length.
            let inside = address.wrapping_sub(first(told));
            if inside < told.bytes && length <= told.bytes - inside {
                return region.at((told.offset + inside) as usize, length as usize);
            }
        }
        None
    }

    /// Returns how many of `length` bytes at a driver's address are in its region; 0 if there is
    /// none.
    pub fn reach(&self, address: u64, length: u32) -> u32 {
        let inside = self.places.iter().find_map(|(told, _)| {
            let inside = address.wrapping_sub(told.guest);
            (inside < told.bytes).then(|| told.bytes - inside)
        });
        inside.unwrap_or(0).min(u64::from(length)) as u32
    }

    /// Returns whether a region was truncated.
    #[inline]
    pub fn is_broken(&self) -> bool {
        self.places.iter().any(|(_, region)| region.is_broken())
    }

    /// Returns whether all these bytes are inside regions.
    #[cfg(test)]
    pub fn holds(&self, start: *const u8, bytes: usize) -> bool {
        self.places.iter().any(|(told, region)| {
            let first = region.at(told.offset as usize, told.bytes as usize).unwrap() as usize;
            first <= start as usize && start as usize + bytes <= first + told.bytes as usize
        })
    }
}
