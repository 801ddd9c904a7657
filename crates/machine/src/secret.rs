//! Passwords and keys that cannot be printed by accident, and functions for key files.

use std::{fs::File, os::unix::fs::PermissionsExt, path::Path};

use crate::fault::Fault;

/// Bytes that no `Debug`, `Display` or serialiser shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

impl Secret {
    /// Takes `bytes`.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(bytes.into())
    }

    /// A fresh random key of `length` bytes from the operating system.
    ///
    /// # Panics
    /// When the operating system gives no random bytes.
    pub fn random(length: usize) -> Self {
        use ring::rand::SecureRandom;
        let mut bytes = vec![0; length];
        ring::rand::SystemRandom::new().fill(&mut bytes).expect("the operating system gives random bytes");
        Self(bytes)
    }

    /// A fresh random password of `length` letters and digits: 0–9, a–f.
    pub fn random_text(length: usize) -> Self {
        let bytes = Self::random(length.div_ceil(2));
        Self(hex(bytes.expose()).as_bytes()[..length].to_vec())
    }

    /// The bytes themselves: for the cipher or the driver only.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }

    /// The secret as text: for the driver only.
    ///
    /// # Panics
    /// When it is not UTF-8.
    pub fn expose_text(&self) -> &str {
        std::str::from_utf8(&self.0).expect("this secret is text")
    }

    /// The secret in hexadecimal: for the driver only.
    pub fn expose_hex(&self) -> String {
        hex(&self.0)
    }

    /// The inverse of [`Secret::expose_hex`]; `None` for any other text.
    pub fn of_hex(text: &str) -> Option<Self> {
        let pairs = text.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).ok());
        let byte = |pair: Option<&str>| pair.and_then(unhex::<1>).map(|[byte]| byte);
        pairs.map(byte).collect::<Option<Vec<u8>>>().map(Self)
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("***")
    }
}

/// Refuses `file`, opened at `path`, if others than its owner have any access to it.
///
/// # Errors
/// [`Fault::Refused`] in that case; [`Fault::Machine`] if the kernel reports no permissions.
pub fn owners_alone(file: &File, path: &Path) -> Result<(), Fault> {
    // Checks the open file, not its name: so the checked file is the one that is read.
    let metadata = file.metadata().map_err(|error| Fault::machine(path.display(), error))?;
    let mode = metadata.permissions().mode() & 0o777;
    if mode & 0o077 == 0 {
        return Ok(());
    }
    Err(Fault::Refused(format!("{} is readable by others than its owner (mode {mode:o}): chmod 600", path.display())))
}

/// `bytes` in lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes of `text` in hexadecimal digits of either case; `None` for anything else.
pub fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    if digits.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = unhex_byte(pair)?;
    }
    Some(bytes)
}

/// The byte of two hexadecimal `digits`; `None` for anything else.
pub fn unhex_byte(digits: &[u8]) -> Option<u8> {
    let &[high, low] = digits else { return None };
    let digit = |digit: u8| char::from(digit).to_digit(16);
    Some((digit(high)? << 4 | digit(low)?) as u8)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn digits_are_read_back_and_nothing_else_is_a_key(
            key in any::<[u8; 32]>(),
            other in "[0-9a-fA-F]{64}|[0-9a-fA-F]{0,100}|\\PC{60,64}",
        ) {
            prop_assert_eq!(unhex(&Secret::new(key.to_vec()).expose_hex()), Some(key));
            let is_key = other.len() == 64 && other.bytes().all(|digit| digit.is_ascii_hexdigit());
            prop_assert_eq!(unhex::<32>(&other).is_some(), is_key);
        }

        #[test]
        fn a_secret_survives_its_digits(bytes in proptest::collection::vec(any::<u8>(), 0..80), other in "\\PC{0,9}") {
            let secret = Secret::new(bytes);
            prop_assert_eq!(Secret::of_hex(&secret.expose_hex()), Some(secret));
            let digits = other.len() % 2 == 0 && other.bytes().all(|digit| digit.is_ascii_hexdigit());
            prop_assert_eq!(Secret::of_hex(&other).is_some(), digits);
        }
    }
}
