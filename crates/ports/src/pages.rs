//! Asking the system for huge pages.

#![allow(unsafe_code)]

/// Bytes of a huge page.
pub const HUGE_BYTES: usize = 2 << 20;

/// Says that memory of this process would do well on huge pages (`madvise(2)`, `MADV_HUGEPAGE`). A
/// hint: a system that does not know it, or has none to give, goes on with small ones. Any address
/// and length may be given.
pub fn advise_huge(address: usize, bytes: usize) {
    // SAFETY: this advice changes no contents and unmaps nothing; the kernel refuses ranges that are
    // not this process's.
    unsafe { libc::madvise(address as *mut libc::c_void, bytes, libc::MADV_HUGEPAGE) };
}

#[cfg(test)]
mod tests {
    #[test]
    fn contents_stay_and_nonsense_is_refused_quietly() {
        let bytes = vec![7u8; 8 << 20];
        super::advise_huge(bytes.as_ptr() as usize & !0xfff, bytes.len());
        super::advise_huge(3, usize::MAX);
        assert!(bytes.iter().all(|&byte| byte == 7));
    }
}
