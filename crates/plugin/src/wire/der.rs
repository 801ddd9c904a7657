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

#[cfg(test)]
mod tests {
    use super::element;

    #[test]
    fn a_length_is_one_byte_or_as_many_as_the_first_one_says() {
        let long = [&[0x30_u8, 0x81, 0x80][..], &[7; 0x80], b"rest"].concat();
        assert_eq!(element(&long), Some((&[7; 0x80][..], &b"rest"[..])));
        let longer = [&[0x30_u8, 0x82, 0x01, 0x02][..], &[7; 0x102], b"rest"].concat();
        assert_eq!(element(&longer), Some((&[7; 0x102][..], &b"rest"[..])));
        let short = [&[0x30_u8, 0x7f][..], &[7; 0x7f], b"rest"].concat();
        assert_eq!(element(&short), Some((&[7; 0x7f][..], &b"rest"[..])));
        assert_eq!(element(&[5, 0]), Some((&b""[..], &b""[..])));
        // What is not all there, and lengths that no memory has.
        for cut in [&b""[..], b"\x30", b"\x30\x01", b"\x30\x81", b"\x30\x82\x01", b"\x30\x81\x02a", &[0xff; 200]] {
            assert_eq!(element(cut), None, "{cut:?}");
        }
    }
}
