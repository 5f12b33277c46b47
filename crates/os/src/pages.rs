//! Requests huge pages from the kernel.

#![allow(unsafe_code)]

/// Bytes of a huge page.
pub const HUGE_BYTES: usize = 2 << 20;

/// Advises the kernel to use huge pages for memory of this process (`madvise(2)`, `MADV_HUGEPAGE`).
///
/// This is a hint: a kernel without support or without free huge pages keeps small pages. Any
/// address and length are allowed.
pub fn advise_huge(address: usize, bytes: usize) {
    // SAFETY: this advice changes no contents and unmaps nothing. The kernel rejects ranges outside
    // this process.
    unsafe { libc::madvise(address as *mut libc::c_void, bytes, libc::MADV_HUGEPAGE) };
}

#[cfg(test)]
mod tests {
    #[test]
    fn advice_keeps_the_contents_and_ignores_invalid_ranges() {
        let bytes = vec![7u8; 8 << 20];
        super::advise_huge(bytes.as_ptr() as usize & !0xfff, bytes.len());
        super::advise_huge(3, usize::MAX);
        assert!(bytes.iter().all(|&byte| byte == 7));
    }
}
