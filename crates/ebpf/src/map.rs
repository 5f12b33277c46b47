//! A kernel map that programs and this process share: keys and values as bytes, 4-byte keys to
//! 4-byte values, or an array of counters.
//!
//! Source: Linux `include/uapi/linux/bpf.h` (`BPF_MAP_CREATE`, `BPF_MAP_UPDATE_ELEM`), and
//! `BPF_MAP_*_BATCH` since Linux 5.6.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use super::call::{self, Argument, Command};

/// Type of a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum MapKind {
    /// Hash table.
    Hash = 1,
    /// Array.
    Array = 2,
    /// Programs by index, for [`Helper::TailCall`](crate::Helper::TailCall).
    Programs = 3,
    /// Array with a value per core in each entry.
    PerCoreArray = 6,
    /// Hash table that deletes an entry that was not used for long when it is full.
    LruHash = 9,
    /// Interfaces by index, to which frames can be redirected.
    Devices = 14,
    /// AF_XDP sockets by index.
    XdpSockets = 17,
    /// Interfaces by any number, to which frames can be redirected.
    DevicesHash = 25,
}

/// Sizes of a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Bytes of a key; 4 for arrays.
    pub key_bytes: usize,
    /// Bytes of a value.
    pub value_bytes: usize,
    /// Maximum number of entries.
    pub entries: u32,
}

/// A map.
#[derive(Debug)]
pub struct Map {
    descriptor: OwnedFd,
    key_bytes: usize,
    /// Bytes of a value for this process: of a map per core, those of all cores.
    value_bytes: usize,
}

impl Map {
    /// Creates a map with this many entries of 4-byte keys and 4-byte values.
    pub fn new(kind: MapKind, entries: u32) -> io::Result<Self> {
        Map::with_layout(kind, Layout { key_bytes: 4, value_bytes: 4, entries })
    }

    /// Creates a map with keys and values of any size. Memory for all entries is reserved.
    pub fn with_layout(kind: MapKind, layout: Layout) -> io::Result<Self> {
        let Layout { key_bytes, value_bytes, entries } = layout;
        let argument = Create {
            kind: kind as u32,
            key_bytes: key_bytes as u32,
            value_bytes: value_bytes as u32,
            entries,
            flags: 0,
        };
        let descriptor = call::open(Command::MapCreate, &argument)?;
        let value_bytes = match kind {
            MapKind::PerCoreArray => value_bytes.next_multiple_of(8) * possible_cores()?,
            _ => value_bytes,
        };
        Ok(Map { descriptor, key_bytes, value_bytes })
    }

    /// Sets the entry at `place` to a value (a number, an interface, or a descriptor of a socket or
    /// program).
    pub fn put(&self, place: u32, value: u32) -> io::Result<()> {
        self.update(&place.to_ne_bytes(), &value.to_ne_bytes())
    }

    /// Returns the number at `place`. Sockets cannot be read.
    pub fn get(&self, place: u32) -> io::Result<u32> {
        let mut value = [0; 4];
        match self.look_up(&place.to_ne_bytes(), &mut value)? {
            true => Ok(u32::from_ne_bytes(value)),
            false => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Reads the value of a key. Returns false if there is none.
    ///
    /// # Panics
    /// If a size is not the map's. Values of a map per core follow each other, each at a multiple
    /// of 8 bytes, by [`possible_cores`].
    pub fn look_up(&self, key: &[u8], value: &mut [u8]) -> io::Result<bool> {
        self.check(key, self.key_bytes);
        self.check(value, self.value_bytes);
        found(self.element(Command::MapLookUp, key, value.as_mut_ptr() as u64))
    }

    /// Sets the value of a key.
    ///
    /// # Panics
    /// As for [`Map::look_up`].
    pub fn update(&self, key: &[u8], value: &[u8]) -> io::Result<()> {
        self.check(key, self.key_bytes);
        self.check(value, self.value_bytes);
        self.element(Command::MapUpdate, key, value.as_ptr() as u64)
    }

    /// Deletes a key. Returns false if there is none.
    ///
    /// # Panics
    /// If the size is not the map's.
    pub fn delete(&self, key: &[u8]) -> io::Result<bool> {
        self.check(key, self.key_bytes);
        found(self.element(Command::MapDelete, key, 0))
    }

    /// Sets the values of keys that follow each other. Returns how many were set before an error.
    ///
    /// # Panics
    /// As for [`Map::look_up`], or if the numbers of keys and values differ.
    pub fn update_batch(&self, keys: &[u8], values: &[u8]) -> (usize, io::Result<()>) {
        let count = self.count(keys);
        assert_eq!(values.len(), count * self.value_bytes, "each key has a value");
        self.batch(Command::MapUpdateBatch, keys.as_ptr() as u64, values.as_ptr() as u64, count)
    }

    /// Deletes keys that follow each other. Returns how many were deleted before an error, which
    /// also a missing key is.
    ///
    /// # Panics
    /// If the size is not the map's.
    pub fn delete_batch(&self, keys: &[u8]) -> (usize, io::Result<()>) {
        let count = self.count(keys);
        self.batch(Command::MapDeleteBatch, keys.as_ptr() as u64, 0, count)
    }

    /// Reads the entries after a position, as many as the buffers hold. The position is `None`
    /// before the first call, and is `None` again after the last entry. Returns the number read.
    ///
    /// Entries that change meanwhile may be missing. A hash table needs buffers for all entries of
    /// one of its buckets.
    ///
    /// # Panics
    /// As for [`Map::update_batch`].
    pub fn look_up_batch(
        &self,
        position: &mut Option<u32>,
        keys: &mut [u8],
        values: &mut [u8],
    ) -> io::Result<usize> {
        let count = self.count(keys);
        assert_eq!(values.len(), count * self.value_bytes, "each key has a value");
        let (before, mut after) = (position.unwrap_or_default(), 0_u32);
        let mut argument = Batch {
            before: if position.is_some() { std::ptr::from_ref(&before) as u64 } else { 0 },
            after: std::ptr::from_mut(&mut after) as u64,
            keys: keys.as_mut_ptr() as u64,
            values: values.as_mut_ptr() as u64,
            count: count as u32,
            map: self.descriptor() as u32,
            element_flags: 0,
            flags: 0,
        };
        let is_more = found(call::call_mut(Command::MapLookUpBatch, &mut argument).map(drop))?;
        // SAFETY: the kernel wrote the value through the pointer, which the compiler cannot see.
        let after = unsafe { std::ptr::read_volatile(&after) };
        *position = is_more.then_some(after);
        Ok(argument.count as usize)
    }

    /// Returns the map's descriptor, for use in programs.
    pub fn descriptor(&self) -> RawFd {
        self.descriptor.as_raw_fd()
    }

    fn check(&self, bytes: &[u8], expected: usize) {
        assert_eq!(bytes.len(), expected, "keys and values have the sizes of the map");
    }

    fn count(&self, keys: &[u8]) -> usize {
        assert!(keys.len().is_multiple_of(self.key_bytes), "keys have the size of the map");
        keys.len() / self.key_bytes
    }

    fn element(&self, command: Command, key: &[u8], value: u64) -> io::Result<()> {
        let map = self.descriptor() as u32;
        let argument = Element { map, padding: 0, key: key.as_ptr() as u64, value, flags: 0 };
        call::call(command, &argument).map(drop)
    }

    fn batch(
        &self,
        command: Command,
        keys: u64,
        values: u64,
        count: usize,
    ) -> (usize, io::Result<()>) {
        if count == 0 {
            return (0, Ok(()));
        }
        let mut argument = Batch {
            before: 0,
            after: 0,
            keys,
            values,
            count: count as u32,
            map: self.descriptor() as u32,
            element_flags: 0,
            flags: 0,
        };
        let result = call::call_mut(command, &mut argument).map(drop);
        // Other errors than those of an entry leave the number unchanged.
        let done = argument.count as usize;
        (if result.is_err() && done == count { 0 } else { done }, result)
    }
}

/// Returns whether a key was found, unless the call failed for another reason.
fn found(result: io::Result<()>) -> io::Result<bool> {
    match result {
        Ok(()) => Ok(true),
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Returns the number of cores for which a map per core has values, present or not.
pub fn possible_cores() -> io::Result<usize> {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/possible")?;
    // Ranges such as `0-3,8`; the numbers of cores begin at 0.
    let last = text.trim().rsplit([',', '-']).next().and_then(|last| last.parse::<usize>().ok());
    last.map(|last| last + 1).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Creates an array map that can be mapped into memory.
pub(super) fn create_mappable(entries: u32, value_bytes: u32) -> io::Result<OwnedFd> {
    /// `BPF_F_MMAPABLE`.
    const MAPPABLE: u32 = 1 << 10;
    let kind = MapKind::Array as u32;
    let argument = Create { kind, key_bytes: 4, value_bytes, entries, flags: MAPPABLE };
    call::open(Command::MapCreate, &argument)
}

/// An array of 8-byte counters that a program increments and this process reads together.
#[derive(Debug)]
pub struct Counters {
    map: Map,
    count: usize,
}

impl Counters {
    /// Creates this many counters, all 0.
    pub fn new(count: usize) -> io::Result<Self> {
        let value_bytes = count.max(1) * 8;
        let layout = Layout { key_bytes: 4, value_bytes, entries: 1 };
        Ok(Counters { map: Map::with_layout(MapKind::Array, layout)?, count })
    }

    /// Reads all counters with one call.
    pub fn read(&self) -> io::Result<Vec<u64>> {
        let mut bytes = vec![0; self.count.max(1) * 8];
        self.map.look_up(&[0; 4], &mut bytes)?;
        let number = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().expect("8 bytes"));
        Ok(bytes.chunks_exact(8).take(self.count).map(number).collect())
    }

    /// Returns the map's descriptor, for use in programs.
    pub fn descriptor(&self) -> RawFd {
        self.map.descriptor()
    }
}

#[repr(C)]
struct Create {
    kind: u32,
    key_bytes: u32,
    value_bytes: u32,
    entries: u32,
    flags: u32,
}

// SAFETY: five integers of 4 bytes, none of them an address.
unsafe impl Argument for Create {}

#[repr(C)]
struct Element {
    map: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

// SAFETY: integers without padding. The addresses are those of a key and of a value of the map's
// sizes, which live throughout the call. The value is writable for lookups.
unsafe impl Argument for Element {}

#[repr(C)]
struct Batch {
    before: u64,
    after: u64,
    keys: u64,
    values: u64,
    count: u32,
    map: u32,
    element_flags: u64,
    flags: u64,
}

// SAFETY: integers without padding. The addresses are zero or those of positions of 4 bytes and of
// this many keys and values of the map's sizes, which live throughout the call. Those that the
// kernel writes are writable.
unsafe impl Argument for Batch {}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a map, or reports why the test is skipped.
    fn map(kind: MapKind, layout: Layout) -> Option<Map> {
        match Map::with_layout(kind, layout) {
            Ok(map) => Some(map),
            Err(error) => {
                eprintln!("skipped: cannot create a map: {error}");
                None
            }
        }
    }

    #[test]
    fn entries_are_set_read_and_deleted_one_by_one_and_in_batches() {
        let layout = Layout { key_bytes: 6, value_bytes: 8, entries: 100 };
        let Some(map) = map(MapKind::Hash, layout) else { return };
        let key = |n: u8| [2, 0, 0, 0, 0, n];
        let mut value = [0; 8];
        assert!(!map.look_up(&key(1), &mut value).unwrap());
        map.update(&key(1), &[7; 8]).unwrap();
        assert!(map.look_up(&key(1), &mut value).unwrap());
        assert_eq!(value, [7; 8]);
        assert!(map.delete(&key(1)).unwrap());
        assert!(!map.delete(&key(1)).unwrap());

        let keys: Vec<u8> = (0..100).flat_map(key).collect();
        let values: Vec<u8> = (0..100).flat_map(|n| [n; 8]).collect();
        let (count, result) = map.update_batch(&keys, &values);
        assert_eq!((count, result.is_ok()), (100, true));
        let (mut keys_read, mut values_read) = (vec![0; 64 * 6], vec![0; 64 * 8]);
        let (mut position, mut seen) = (None, Vec::new());
        loop {
            let count = map.look_up_batch(&mut position, &mut keys_read, &mut values_read).unwrap();
            let pairs = keys_read.chunks(6).zip(values_read.chunks(8)).take(count);
            for (key, value) in pairs {
                assert_eq!(value, [key[5]; 8]);
                seen.push(key[5]);
            }
            if position.is_none() {
                break;
            }
        }
        seen.sort_unstable();
        assert_eq!(seen, (0..100).collect::<Vec<u8>>());
        // The second half, and a key that is missing.
        let (count, result) = map.delete_batch(&keys[50 * 6..]);
        assert_eq!((count, result.is_ok()), (50, true));
        assert!(map.delete_batch(&keys[50 * 6..]).1.is_err());
        assert!(map.update_batch(&keys, &values).1.is_ok());
    }

    #[test]
    fn a_full_table_reports_how_many_entries_it_took() {
        let layout = Layout { key_bytes: 4, value_bytes: 4, entries: 4 };
        let Some(map) = map(MapKind::Hash, layout) else { return };
        let keys: Vec<u8> = (0..6_u32).flat_map(u32::to_ne_bytes).collect();
        let (count, result) = map.update_batch(&keys, &keys);
        assert_eq!((count, result.is_err()), (4, true));
    }

    #[test]
    fn values_per_core_are_read_together() {
        let layout = Layout { key_bytes: 4, value_bytes: 16, entries: 2 };
        let Some(map) = map(MapKind::PerCoreArray, layout) else { return };
        let cores = possible_cores().unwrap();
        let mut value = vec![1; 16 * cores];
        assert!(map.look_up(&0_u32.to_ne_bytes(), &mut value).unwrap());
        assert!(value.iter().all(|byte| *byte == 0));
    }
}
