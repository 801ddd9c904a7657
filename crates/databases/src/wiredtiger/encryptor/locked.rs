//! Memory for keys: never written to swap, left out of core files, zeroed when it is freed.
//!
//! It does not protect values in registers and on the stack while a key is set up or used.

use std::{
    io,
    marker::PhantomData,
    ops::{Deref, Range},
};

use memmap2::{Advice, MmapMut};
use zeroize::Zeroize;

/// A value on locked pages of its own.
pub struct Locked<T> {
    /// The value is at its beginning.
    pages: MmapMut,
    value: PhantomData<T>,
}

impl<T> Locked<T> {
    /// Moves `value` to locked pages.
    ///
    /// # Errors
    /// If the kernel provides no memory or does not lock it: the limit is `ulimit -l`.
    pub fn new(value: T) -> io::Result<Self> {
        assert!(align_of::<T>() <= 4096, "pages are aligned to no more");
        let mut pages = MmapMut::map_anon(size_of::<T>().max(1))?;
        pages.lock()?;
        pages.advise(Advice::DontDump)?;
        // SAFETY: the pages are aligned and long enough, and nothing else refers to them.
        unsafe { pages.as_mut_ptr().cast::<T>().write(value) };
        Ok(Self { pages, value: PhantomData })
    }

    /// Where the pages are.
    pub fn addresses(&self) -> Range<usize> {
        let start = self.pages.as_ptr() as usize;
        start..start + self.pages.len()
    }
}

impl<T> Deref for Locked<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the value was written by `new` and is dropped by `drop` alone.
        unsafe { &*self.pages.as_ptr().cast::<T>() }
    }
}

impl<T> Drop for Locked<T> {
    fn drop(&mut self) {
        // SAFETY: the value is dropped once; the remaining content is plain bytes.
        unsafe { self.pages.as_mut_ptr().cast::<T>().drop_in_place() };
        self.pages.zeroize();
    }
}

/// True if every page of `addresses` is locked: the flag `lo` in the kernel's `smaps` (`/proc/self/smaps`, proc(5)).
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
