//! Passwords and keys that cannot be printed by accident.

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
        let text: String = bytes.expose().iter().map(|byte| format!("{byte:02x}")).collect();
        Self(text.as_bytes()[..length].to_vec())
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
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("***")
    }
}
