//! Memory for keys: never written to swap, left out of core files, zeroed when it is given back.
//!
//! What passes through registers and the stack while a key is set up or used is beyond this.

use std::{
    io,
    ops::{Deref, Range},
    ptr::{self, NonNull},
};

/// A value on locked pages of its own.
pub struct Locked<T> {
    value: NonNull<T>,
    length: usize,
}

// SAFETY: `Locked` owns its value as a `Box` does.
unsafe impl<T: Send> Send for Locked<T> {}
// SAFETY: as above; it hands out shared references only.
unsafe impl<T: Sync> Sync for Locked<T> {}

impl<T> Locked<T> {
    /// Moves `value` to locked pages.
    ///
    /// # Errors
    /// When the kernel gives no memory or does not lock it: the limit is `ulimit -l`.
    pub fn new(value: T) -> io::Result<Self> {
        assert!(align_of::<T>() <= 4096, "pages are aligned to no more");
        let length = size_of::<T>().max(1).next_multiple_of(page_bytes());
        // SAFETY: a fresh private mapping that overlaps nothing.
        let address = unsafe {
            let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
            libc::mmap(ptr::null_mut(), length, protection, flags, -1, 0)
        };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the mapping is there, is this long, and nobody else knows it; on failure it is given back.
        unsafe {
            if libc::mlock(address, length) != 0 || libc::madvise(address, length, libc::MADV_DONTDUMP) != 0 {
                let error = io::Error::last_os_error();
                libc::munmap(address, length);
                return Err(error);
            }
            let value_address = address.cast::<T>();
            value_address.write(value);
            Ok(Self { value: NonNull::new_unchecked(value_address), length })
        }
    }

    /// Where the pages are.
    pub fn addresses(&self) -> Range<usize> {
        let start = self.value.as_ptr() as usize;
        start..start + self.length
    }
}

impl<T> Deref for Locked<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the value was written by `new` and is dropped by `drop` alone.
        unsafe { self.value.as_ref() }
    }
}

impl<T> Drop for Locked<T> {
    fn drop(&mut self) {
        // SAFETY: the value is dropped once; then the pages hold plain bytes, which are overwritten and given back.
        unsafe {
            self.value.as_ptr().drop_in_place();
            let bytes = std::slice::from_raw_parts_mut(self.value.as_ptr().cast::<u8>(), self.length);
            zeroize::Zeroize::zeroize(bytes);
            libc::munmap(self.value.as_ptr().cast(), self.length);
        }
    }
}

fn page_bytes() -> usize {
    // SAFETY: sysconf has no preconditions.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) }.try_into().unwrap_or(4096)
}

/// True when every page of `addresses` is locked, as the kernel says it in `smaps` (`/proc/self/smaps`, proc(5)): the
/// flag `lo`.
pub fn is_locked(smaps: &str, addresses: &Range<usize>) -> bool {
    let mut covered = addresses.start;
    let mut mapping = 0..0;
    for line in smaps.lines() {
        if let Some(flags) = line.strip_prefix("VmFlags:") {
            if mapping.contains(&covered) && flags.split_ascii_whitespace().any(|flag| flag == "lo") {
                covered = mapping.end;
            }
        } else if let Some(range) = line.split_ascii_whitespace().next().and_then(parse_range) {
            mapping = range;
        }
    }
    covered >= addresses.end
}

/// `7f00-7f10` in hexadecimal.
fn parse_range(text: &str) -> Option<Range<usize>> {
    let (start, end) = text.split_once('-')?;
    Some(usize::from_str_radix(start, 16).ok()?..usize::from_str_radix(end, 16).ok()?)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_kernel_says_that_the_pages_are_locked() {
        let locked = Locked::new([7u8; 32]).unwrap();
        let plain = vec![7u8; 1 << 20];
        let smaps = fs::read_to_string("/proc/self/smaps").unwrap();
        assert!(is_locked(&smaps, &locked.addresses()));
        let address = plain.as_ptr() as usize;
        assert!(!is_locked(&smaps, &(address..address + plain.len())));
        assert_eq!(*locked, [7; 32]);
    }

    #[test]
    fn the_value_is_dropped() {
        let counted = std::sync::Arc::new(());
        drop(Locked::new(counted.clone()).unwrap());
        assert_eq!(std::sync::Arc::strong_count(&counted), 1);
    }

    proptest! {
        #[test]
        fn foreign_text_is_no_proof(text in "[0-9a-f \\-:\nVmFlagslo]{0,200}") {
            // Nothing but the kernel's own form could cover this address.
            prop_assert!(!is_locked(&text, &(usize::MAX - 1..usize::MAX)));
        }
    }
}
