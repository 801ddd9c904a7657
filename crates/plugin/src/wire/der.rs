//! The encoding of certificates (DER), as far as it is needed here.

/// The content of the first element of `der`, and the bytes after it.
pub fn element(der: &[u8]) -> Option<(&[u8], &[u8])> {
    let (first, rest) = der.get(1..)?.split_first()?;
    let (length, rest) = match first {
        0..0x80 => (usize::from(*first), rest),
        _ => {
            let (length, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            (length.iter().try_fold(0_usize, |sum, byte| sum.checked_mul(256)?.checked_add((*byte).into()))?, rest)
        }
    };
    rest.split_at_checked(length)
}
