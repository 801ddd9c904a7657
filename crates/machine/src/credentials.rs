//! Certificates, keys and passwords of one run.

use std::path::PathBuf;

use crate::secret::Secret;

/// Name of the file that [`Credentials::untrusted_client`] is, beside that of its authority.
pub const UNTRUSTED_CLIENT: &str = "untrusted-client.pem";

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
    /// Certificate of another authority, which the server's certificate does not chain to: for the negative check.
    pub untrusted_authority: PathBuf,
    /// Password of the clients' account.
    pub password: Secret,
    /// A data key of 32 bytes.
    pub key: Secret,
    /// Another one, for arms that rotate keys.
    pub second_key: Secret,
}

impl Credentials {
    /// Credentials that name no file: for what needs no certificate, as an embedded database or a server that Tithe
    /// does not start.
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

    /// Certificate and key, PEM in one file, of a client that [`Credentials::untrusted_authority`] has signed: for the
    /// negative check.
    pub fn untrusted_client(&self) -> PathBuf {
        self.untrusted_authority.with_file_name(UNTRUSTED_CLIENT)
    }
}
