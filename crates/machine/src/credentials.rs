//! Certificates, keys and passwords of one run.

use std::path::PathBuf;

use crate::secret::Secret;

/// File name of [`Credentials::untrusted_client`], in the folder of its authority.
pub const UNTRUSTED_CLIENT: &str = "untrusted-client.pem";

/// Kind of the key of a server's certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeyType {
    /// ECDSA over the curve P-256, the default for all servers.
    EcdsaP256,
    /// RSA with 2,048 bits.
    Rsa2048,
    /// RSA with 4,096 bits.
    Rsa4096,
    /// Ed25519.
    Ed25519,
}

impl KeyType {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::EcdsaP256, Self::Rsa2048, Self::Rsa4096, Self::Ed25519];

    /// Its name in experiments and in evidence.
    pub fn name(self) -> &'static str {
        match self {
            Self::EcdsaP256 => "ecdsa-p256",
            Self::Rsa2048 => "rsa-2048",
            Self::Rsa4096 => "rsa-4096",
            Self::Ed25519 => "ed25519",
        }
    }
}

/// A server's certificates and key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServerIdentity {
    /// Kind of its key and of the keys of intermediate authorities.
    pub key: KeyType,
    /// Number of certificates: its own, and those of authorities between it and the run's.
    pub chain: usize,
}

impl ServerIdentity {
    /// The default for every server.
    pub const USUAL: Self = Self { key: KeyType::EcdsaP256, chain: 1 };
}

/// Certificates, keys and passwords made for one run, in its sandbox.
#[derive(Debug, Clone)]
pub struct Credentials {
    /// Certificate of the run's own authority, PEM.
    pub authority: PathBuf,
    /// Certificate of the server, PEM, for `localhost`, 127.0.0.1 and the address that servers listen on.
    pub server_certificate: PathBuf,
    /// Its key, PEM, readable by the server's account only.
    pub server_key: PathBuf,
    /// Certificate of the client, PEM.
    pub client_certificate: PathBuf,
    /// Its key, PEM.
    pub client_key: PathBuf,
    /// Certificate of another authority, which has not signed the server's certificate: for the negative check.
    pub untrusted_authority: PathBuf,
    /// Password of the clients' account.
    pub password: Secret,
    /// A data key of 32 bytes.
    pub key: Secret,
    /// Another one, for arms that rotate keys.
    pub second_key: Secret,
}

impl Credentials {
    /// Credentials without files, for cases that need no certificate: an embedded database, or a server that Tithe does
    /// not start.
    pub fn without_files(password: Secret, key: Secret) -> Self {
        let none = PathBuf::new;
        Self {
            authority: none(),
            server_certificate: none(),
            server_key: none(),
            client_certificate: none(),
            client_key: none(),
            untrusted_authority: none(),
            password,
            key,
            second_key: Secret::random(32),
        }
    }

    /// Makes the server use `identity`: its files are those of [`Step::Identity`](crate::launch::Step::Identity).
    pub fn show(&mut self, identity: ServerIdentity) {
        if identity != ServerIdentity::USUAL {
            let file = |ending| format!("server-{}-{}.{ending}", identity.key.name(), identity.chain);
            self.server_certificate = self.authority.with_file_name(file("pem"));
            self.server_key = self.authority.with_file_name(file("key"));
        }
    }

    /// Certificate and key, PEM in one file, of a client that [`Credentials::untrusted_authority`] has signed: for the
    /// negative check.
    pub fn untrusted_client(&self) -> PathBuf {
        self.untrusted_authority.with_file_name(UNTRUSTED_CLIENT)
    }
}
