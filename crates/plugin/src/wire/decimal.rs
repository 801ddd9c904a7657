//! Numbers in the requests of text protocols, written without allocating.

/// Writes `number` in decimal digits.
#[inline]
pub fn put(out: &mut Vec<u8>, mut number: usize) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn digits_are_those_of_the_number(number: usize) {
            let mut out = b"a ".to_vec();
            super::put(&mut out, number);
            prop_assert_eq!(out, format!("a {number}").into_bytes());
        }
    }

    #[test]
    fn ends_of_the_range_have_their_digits() {
        for number in [0, 9, 10, usize::MAX] {
            let mut out = Vec::new();
            super::put(&mut out, number);
            assert_eq!(out, number.to_string().into_bytes());
        }
    }
}
