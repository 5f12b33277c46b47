//! The driver's memory: regions by two kinds of address, the driver's own ("guest physical", in
//! descriptors) and the front end's ("user", in the messages that place the rings).
//!
//! Invariant: every address that comes out has been checked, length included, to lie in one region.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use crate::memif::fault::Fault;
use crate::memif::region::Region;

/// Regions that one front end may have (the specification's limit without memory slots).
pub const REGIONS_MAX: usize = 8;

/// What a message says of a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Told {
    /// Its first address in descriptors.
    pub guest: u64,
    /// Its first address in the front end's own words.
    pub user: u64,
    /// Its bytes.
    pub bytes: u64,
    /// Where it begins in its file.
    pub offset: u64,
}

/// All regions of a connection.
pub struct Memory {
    places: Vec<(Told, Region)>,
}

/// Shared by the ends of all rings, so that it stays mapped until the last is gone.
pub type SharedMemory = Arc<Memory>;

impl Memory {
    /// Maps these regions.
    pub fn map(regions: Vec<(Told, OwnedFd)>) -> Result<Memory, Fault> {
        if regions.len() > REGIONS_MAX {
            return Err(Fault::RegionIndex);
        }
        let map = |(told, file): (Told, OwnedFd)| {
            let bytes = told.offset.checked_add(told.bytes).ok_or(Fault::RegionSize)?;
            let ends = [told.guest.checked_add(told.bytes), told.user.checked_add(told.bytes)];
            if told.bytes == 0 || ends.contains(&None) {
                return Err(Fault::RegionSize);
            }
            Ok((told, Region::map_guarded(&file, bytes)?))
        };
        Ok(Memory { places: regions.into_iter().map(map).collect::<Result<_, _>>()? })
    }

    /// Where `length` bytes from a driver's address on are, if all lie in one region.
    #[inline(always)]
    pub fn guest(&self, address: u64, length: u32) -> Option<*mut u8> {
        self.find(|told| told.guest, address, u64::from(length))
    }

    /// As [`Memory::guest`], by a front end's address.
    pub fn user(&self, address: u64, length: usize) -> Option<*mut u8> {
        self.find(|told| told.user, address, length as u64)
    }

    #[inline(always)]
    fn find(&self, first: impl Fn(&Told) -> u64, address: u64, length: u64) -> Option<*mut u8> {
        for (told, region) in &self.places {
            // An address before the region gives a number that is larger than any.
            let inside = address.wrapping_sub(first(told));
            if inside < told.bytes && length <= told.bytes - inside {
                return region.at((told.offset + inside) as usize, length as usize);
            }
        }
        None
    }

    /// How many of `length` bytes from a driver's address on are in its region; 0 if there is none.
    pub fn reach(&self, address: u64, length: u32) -> u32 {
        let inside = self.places.iter().find_map(|(told, _)| {
            let inside = address.wrapping_sub(told.guest);
            (inside < told.bytes).then(|| told.bytes - inside)
        });
        inside.unwrap_or(0).min(u64::from(length)) as u32
    }

    /// Whether one of them was taken away.
    #[inline]
    pub fn is_broken(&self) -> bool {
        self.places.iter().any(|(_, region)| region.is_broken())
    }

    /// Whether all these bytes are inside regions.
    #[cfg(test)]
    pub fn holds(&self, start: *const u8, bytes: usize) -> bool {
        self.places.iter().any(|(told, region)| {
            let first = region.at(told.offset as usize, told.bytes as usize).unwrap() as usize;
            first <= start as usize && start as usize + bytes <= first + told.bytes as usize
        })
    }
}
