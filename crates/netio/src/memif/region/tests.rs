//! Which files are accepted as regions.

use super::*;

/// Creates a memory file of this size with these seals.
fn file(bytes: i64, seals: libc::c_int) -> OwnedFd {
    // SAFETY: the name ends in zero, this process owns the descriptor, and no other pointers are
    // passed.
    unsafe {
        let flags = libc::MFD_ALLOW_SEALING | libc::MFD_CLOEXEC;
        let file = OwnedFd::from_raw_fd(libc::memfd_create(c"test".as_ptr(), flags));
        assert_eq!(libc::ftruncate(file.as_raw_fd(), bytes), 0);
        assert_eq!(libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals), 0);
        file
    }
}

fn fault(file: &OwnedFd, bytes: u64) -> Option<Fault> {
    Region::map(file, bytes, false).err()
}

#[test]
fn a_region_that_could_shrink_is_rejected() {
    assert_eq!(fault(&file(8192, 0), 8192), Some(Fault::RegionUnsealed));
    assert_eq!(fault(&file(8192, libc::F_SEAL_GROW), 8192), Some(Fault::RegionUnsealed));
    let plain = std::fs::File::open("/proc/self/exe").unwrap();
    assert_eq!(fault(&plain.into(), 64), Some(Fault::RegionUnsealed));
    let sealed = file(8192, libc::F_SEAL_SHRINK);
    assert_eq!(fault(&sealed, 8192), None);
    // SAFETY: no pointers are passed.
    assert_eq!(unsafe { libc::ftruncate(sealed.as_raw_fd(), 4096) }, -1, "it cannot shrink");
}

#[test]
fn a_region_larger_than_its_file_is_rejected() {
    let sealed = file(8192, libc::F_SEAL_SHRINK);
    assert_eq!(fault(&sealed, 8193), Some(Fault::RegionSize));
    assert_eq!(fault(&sealed, u64::MAX), Some(Fault::RegionSize));
    assert_eq!(fault(&sealed, 0), Some(Fault::RegionSize));
    let region = Region::map(&sealed, 5000, false).unwrap();
    assert!(region.at(4999, 1).is_some() && region.at(5000, 0).is_some());
    assert!(region.at(4999, 2).is_none() && region.at(usize::MAX, 2).is_none());
}

#[test]
fn a_created_region_is_acceptable() {
    let (ours, file) = Region::create(10_000, false).unwrap();
    let theirs = Region::map(&file, ours.bytes() as u64, false).unwrap();
    let (at, there) = (ours.at(9_999, 1).unwrap(), theirs.at(9_999, 1).unwrap());
    // SAFETY: both addresses are inside their mappings.
    unsafe {
        at.write_volatile(7);
        assert_eq!(there.read_volatile(), 7);
    }
}

#[test]
fn huge_pages_are_used_for_trusted_peers_only_and_replaced_if_missing() {
    let (ours, file) = Region::create(3 << 20, true).unwrap();
    let bytes = ours.bytes() as u64;
    if kind_of(&file) == Some(HUGETLBFS_MAGIC) {
        assert_eq!(bytes, 4 << 20);
        assert_eq!(fault(&file, bytes), Some(Fault::RegionHuge));
        assert!(Region::map(&file, bytes - 1, true).is_ok());
    } else {
        assert_eq!(bytes, 3 << 20);
        assert_eq!(fault(&file, bytes), None);
    }
}
