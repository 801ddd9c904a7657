//! Certificates, keys and passwords of one run.
//!
//! Each run has its own authority. The authority's key is only in memory and gone after the run, so it cannot sign
//! later. All keys are ECDSA over P-256, which every TLS library of the last ten years supports, except where an arm
//! asks for another kind. The cost of a handshake depends on the kind, so it is the same for every database.
//!
//! The data key and the password are in [`Credentials`] only and never on disk, unless a database's own launch writes
//! them there. Revocation is not used.

use std::{
    fs,
    io::Write,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, SanType,
};
use rustls::pki_types::{PrivatePkcs8KeyDer, pem::PemObject};
use time::{Duration, OffsetDateTime};

use crate::{
    credentials::{Credentials, KeyType, UNTRUSTED_CLIENT},
    fault::Fault,
    secret::Secret,
};

/// Name of the client in its certificate, and of its account.
pub const CLIENT_NAME: &str = "tithe";

/// Further loopback addresses, 127.0.0.N, which nodes of a cluster on this machine use for clients and for each other.
const NODE_ADDRESSES: [u8; 7] = [2, 3, 4, 11, 12, 13, 14];

/// Validity of the certificates. It begins long before they were made: clocks differ, and are set back.
const VALIDITY: Duration = Duration::days(365);
const VALID_BEFORE: Duration = Duration::days(30);

/// Makes the credentials of one run, whose servers listen on `address`. Writes their certificates and keys into
/// `folder`, which is made with mode 0700 if it does not exist.
///
/// # Errors
/// When a certificate cannot be made, or a file cannot be written or already exists.
pub fn prepare(folder: &Path, address: IpAddr) -> Result<Credentials, Fault> {
    Certificates::make(address, OffsetDateTime::now_utc())?.write(folder)
}

/// The certificates of one run, PEM.
pub struct Certificates {
    authority: String,
    signer: Signer,
    server: Identity,
    client: Identity,
    untrusted_authority: String,
    untrusted_client: Identity,
}

/// A certificate, followed by those of intermediate authorities, and its key, PEM.
pub struct Identity {
    /// The certificates.
    pub certificate: String,
    /// The key.
    pub key: Secret,
}

/// The authority of a run with its key, and the certificates that it signs for servers.
pub struct Signer {
    issuer: Issuer<'static, KeyPair>,
    server: CertificateParams,
    now: OffsetDateTime,
}

impl Signer {
    /// A server's identity with keys of `make_key`: `chain` certificates, each but the last signed by the next, and the
    /// last signed by the run's authority.
    ///
    /// # Errors
    /// When a key cannot be made or cannot sign.
    pub fn identity(&self, chain: usize, make_key: impl Fn() -> Result<KeyPair, Fault>) -> Result<Identity, Fault> {
        let failed = |error: rcgen::Error| Fault::machine("cannot create certificates", error);
        let mut between = String::new();
        let mut last: Option<Issuer<'static, KeyPair>> = None;
        for number in 1..chain {
            let mut params = params(&format!("Tithe authority {number} between"), self.now);
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
            params.use_authority_key_identifier_extension = true;
            let key = make_key()?;
            let signed = params.signed_by(&key, last.as_ref().unwrap_or(&self.issuer)).map_err(failed)?;
            between.insert_str(0, &pem_of(&signed));
            last = Some(Issuer::new(params, key));
        }
        let made = Identity::with_key(&self.server, make_key()?, last.as_ref().unwrap_or(&self.issuer));
        let Identity { certificate, key } = made.map_err(failed)?;
        Ok(Identity { certificate: certificate + &between, key })
    }
}

/// A key of `kind`; `openssl` makes it if the signing library cannot make this kind in a readable form.
///
/// # Errors
/// When the program is missing or fails.
pub fn key(kind: KeyType, openssl: impl Fn(&[&str]) -> Result<String, Fault>) -> Result<KeyPair, Fault> {
    let failed = |error: rcgen::Error| Fault::machine("cannot create a key", error);
    let arguments: &[&str] = match kind {
        KeyType::EcdsaP256 => return KeyPair::generate().map_err(failed),
        KeyType::Rsa2048 => &["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"],
        KeyType::Rsa4096 => &["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:4096"],
        KeyType::Ed25519 => &["genpkey", "-algorithm", "ED25519"],
    };
    let pem = Secret::new(openssl(arguments)?);
    let der = PrivatePkcs8KeyDer::from_pem_slice(pem.expose()).map_err(|error| Fault::machine("openssl", error))?;
    KeyPair::try_from(&der).map_err(failed)
}

impl Certificates {
    /// Makes certificates that are valid around `now`: an authority, a server certificate for `localhost`, 127.0.0.1,
    /// ::1 and `address`, and a client certificate for [`CLIENT_NAME`]. Also an untrusted authority, which has signed
    /// none of them, with its own client certificate for the same name.
    ///
    /// # Errors
    /// When the operating system gives no random bytes.
    pub fn make(address: IpAddr, now: OffsetDateTime) -> Result<Self, Fault> {
        Self::try_make(address, now).map_err(|error| Fault::machine("cannot create certificates", error))
    }

    fn try_make(address: IpAddr, now: OffsetDateTime) -> Result<Self, rcgen::Error> {
        let (authority, issuer) = authority("Tithe run authority", now)?;
        let (untrusted_authority, untrusted_issuer) = untrusted_authority(now)?;
        let mut server = leaf("localhost", ExtendedKeyUsagePurpose::ServerAuth, now);
        // The nodes of a cluster are each other's clients, and authenticate with their server certificate.
        server.extended_key_usages.push(ExtendedKeyUsagePurpose::ClientAuth);
        server.subject_alt_names = vec![
            SanType::DnsName("localhost".try_into()?),
            SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST)),
            SanType::IpAddress(IpAddr::V6(Ipv6Addr::LOCALHOST)),
        ];
        let nodes = NODE_ADDRESSES.map(|last| SanType::IpAddress(IpAddr::V4(Ipv4Addr::new(127, 0, 0, last))));
        server.subject_alt_names.extend(nodes);
        let address = SanType::IpAddress(address);
        if !server.subject_alt_names.contains(&address) {
            server.subject_alt_names.push(address);
        }
        let client = leaf(CLIENT_NAME, ExtendedKeyUsagePurpose::ClientAuth, now);
        Ok(Self {
            authority: pem_of(&authority),
            server: Identity::signed(&server, &issuer)?,
            client: Identity::signed(&client, &issuer)?,
            untrusted_authority: pem_of(&untrusted_authority),
            untrusted_client: Identity::signed(&client, &untrusted_issuer)?,
            signer: Signer { issuer, server, now },
        })
    }

    /// The authority, to sign further server certificates.
    pub fn into_signer(self) -> Signer {
        self.signer
    }

    /// Writes them into `folder`, keys with mode 0600, and adds a password and two data keys.
    ///
    /// # Errors
    /// When a file cannot be written or already exists.
    pub fn write(&self, folder: &Path) -> Result<Credentials, Fault> {
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.map_err(|error| Fault::machine(folder.display(), error))?;
        let public = |name, content: &str| write(folder.join(name), content, 0o644);
        let private = |name, key: &Secret| write(folder.join(name), key.expose_text(), 0o600);
        private(UNTRUSTED_CLIENT, &self.untrusted_client.in_one())?;
        Ok(Credentials {
            authority: public("authority.pem", &self.authority)?,
            server_certificate: public("server.pem", &self.server.certificate)?,
            server_key: private("server.key", &self.server.key)?,
            client_certificate: public("client.pem", &self.client.certificate)?,
            client_key: private("client.key", &self.client.key)?,
            untrusted_authority: public("untrusted.pem", &self.untrusted_authority)?,
            password: Secret::random_text(32),
            key: Secret::random(32),
            second_key: Secret::random(32),
        })
    }
}

impl Identity {
    fn signed(params: &CertificateParams, issuer: &Issuer<'_, KeyPair>) -> Result<Self, rcgen::Error> {
        Self::with_key(params, KeyPair::generate()?, issuer)
    }

    fn with_key(params: &CertificateParams, key: KeyPair, issuer: &Issuer<'_, KeyPair>) -> Result<Self, rcgen::Error> {
        let certificate = params.signed_by(&key, issuer)?;
        Ok(Self { certificate: pem_of(&certificate), key: Secret::new(pem("PRIVATE KEY", &key.serialize_der())) })
    }

    /// Certificate and key in one text, as some drivers need them.
    fn in_one(&self) -> Secret {
        Secret::new(format!("{}{}", self.certificate, self.key.expose_text()))
    }
}

/// `certificate` as text.
pub fn pem_of(certificate: &Certificate) -> String {
    pem("CERTIFICATE", certificate.der())
}

/// `der` as text under `label` (RFC 7468).
fn pem(label: &str, der: &[u8]) -> String {
    const LINE: usize = 64;
    let text = STANDARD.encode(der);
    let lines = text.as_bytes().chunks(LINE).flat_map(|line| [String::from_utf8_lossy(line), "\n".into()]);
    let body: String = lines.collect();
    format!("-----BEGIN {label}-----\n{body}-----END {label}-----\n")
}

fn authority(name: &str, now: OffsetDateTime) -> Result<(Certificate, Issuer<'static, KeyPair>), rcgen::Error> {
    let key = KeyPair::generate()?;
    let mut params = params(name, now);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let certificate = params.self_signed(&key)?;
    Ok((certificate, Issuer::new(params, key)))
}

/// The untrusted authority has a different name, so a refusal is about the unknown authority and not about a bad
/// signature.
fn untrusted_authority(now: OffsetDateTime) -> Result<(Certificate, Issuer<'static, KeyPair>), rcgen::Error> {
    authority("Tithe untrusted authority", now)
}

fn leaf(name: &str, purpose: ExtendedKeyUsagePurpose, now: OffsetDateTime) -> CertificateParams {
    let mut params = params(name, now);
    params.is_ca = IsCa::ExplicitNoCa;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![purpose];
    params.use_authority_key_identifier_extension = true;
    params
}

fn params(name: &str, now: OffsetDateTime) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.not_before = now - VALID_BEFORE;
    params.not_after = now + VALIDITY;
    params
}

fn write(path: PathBuf, content: &str, mode: u32) -> Result<PathBuf, Fault> {
    let file = fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(&path);
    let written = file.and_then(|mut file| file.write_all(content.as_bytes()));
    written.map_err(|error| Fault::machine(path.display(), error))?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use std::{os::unix::fs::PermissionsExt, sync::Arc};

    use expect_test::expect;
    use rustls::{
        CertificateError, ClientConfig, ClientConnection, ConfigBuilder, RootCertStore, ServerConfig, ServerConnection,
        WantsVerifier,
        client::WantsClientCert,
        crypto::ring::default_provider,
        pki_types::{CertificateDer, PrivateKeyDer, ServerName},
        server::WebPkiClientVerifier,
    };

    use super::*;
    use crate::credentials::ServerIdentity;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    /// A fresh folder of the test called `name`.
    fn test_folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("tithe-test-certificates-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn certificates(path: &Path) -> Vec<CertificateDer<'static>> {
        CertificateDer::pem_file_iter(path).unwrap().map(Result::unwrap).collect()
    }

    fn roots(path: &Path) -> Arc<RootCertStore> {
        let mut roots = RootCertStore::empty();
        certificates(path).into_iter().for_each(|certificate| roots.add(certificate).unwrap());
        Arc::new(roots)
    }

    fn server(credentials: &Credentials) -> ServerConfig {
        let provider = Arc::new(default_provider());
        let verifier =
            WebPkiClientVerifier::builder_with_provider(roots(&credentials.authority), Arc::clone(&provider));
        ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(verifier.build().unwrap())
            .with_single_cert(
                certificates(&credentials.server_certificate),
                PrivateKeyDer::from_pem_file(&credentials.server_key).unwrap(),
            )
            .unwrap()
    }

    fn client(authority: &Path) -> ConfigBuilder<ClientConfig, WantsClientCert> {
        let builder: ConfigBuilder<ClientConfig, WantsVerifier> =
            ClientConfig::builder_with_provider(Arc::new(default_provider()))
                .with_safe_default_protocol_versions()
                .unwrap();
        builder.with_root_certificates(roots(authority))
    }

    fn identified(authority: &Path, credentials: &Credentials) -> ClientConfig {
        showing(authority, &credentials.client_certificate, &credentials.client_key)
    }

    fn showing(authority: &Path, certificate: &Path, key: &Path) -> ClientConfig {
        client(authority)
            .with_client_auth_cert(certificates(certificate), PrivateKeyDer::from_pem_file(key).unwrap())
            .unwrap()
    }

    /// Does the handshake in memory, until both sides have completed it.
    fn shake_hands(server: ServerConfig, client: ClientConfig, name: &str) -> Result<(), rustls::Error> {
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let mut client = ClientConnection::new(Arc::new(client), name).unwrap();
        let mut server = ServerConnection::new(Arc::new(server)).unwrap();
        while client.is_handshaking() || server.is_handshaking() {
            let mut bytes = Vec::new();
            while client.wants_write() {
                client.write_tls(&mut bytes).unwrap();
            }
            server.read_tls(&mut bytes.as_slice()).unwrap();
            server.process_new_packets()?;
            let mut bytes = Vec::new();
            while server.wants_write() {
                server.write_tls(&mut bytes).unwrap();
            }
            client.read_tls(&mut bytes.as_slice()).unwrap();
            client.process_new_packets()?;
        }
        Ok(())
    }

    #[test]
    fn client_and_server_accept_each_other_under_every_name() {
        let folder = test_folder("client_and_server_accept_each_other_under_every_name");
        let credentials = prepare(&folder.join("credentials"), HERE).unwrap();
        for name in ["localhost", "127.0.0.1", "::1"] {
            shake_hands(server(&credentials), identified(&credentials.authority, &credentials), name).unwrap();
        }
        let shake = |credentials: &Credentials, name: &str| {
            shake_hands(server(credentials), identified(&credentials.authority, credentials), name)
        };
        assert!(shake(&credentials, "192.0.2.5").is_err());
        let listening = prepare(&folder.join("listening"), "192.0.2.5".parse().unwrap()).unwrap();
        for name in ["localhost", "127.0.0.1", "192.0.2.5"] {
            shake(&listening, name).unwrap();
        }
        let elsewhere =
            shake_hands(server(&credentials), identified(&credentials.authority, &credentials), "example.org");
        assert!(matches!(elsewhere, Err(rustls::Error::InvalidCertificate(_))), "{elsewhere:?}");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn clocks_may_be_set_back_by_weeks() {
        let folder = test_folder("clocks_may_be_set_back_by_weeks");
        let shake = |ahead: i64| {
            let now = OffsetDateTime::now_utc() + Duration::days(ahead);
            let credentials = Certificates::make(HERE, now).unwrap().write(&folder.join(ahead.to_string())).unwrap();
            shake_hands(server(&credentials), identified(&credentials.authority, &credentials), "localhost")
        };
        assert_eq!(shake(29), Ok(()));
        assert!(matches!(shake(31), Err(rustls::Error::InvalidCertificate(_))));
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_chain_of_authorities_leads_to_that_of_the_run() {
        let folder = test_folder("a_chain_of_authorities_leads_to_that_of_the_run");
        let made = Certificates::make(HERE, OffsetDateTime::now_utc()).unwrap();
        let mut credentials = made.write(&folder.join("credentials")).unwrap();
        let usual = credentials.clone();
        let signer = made.into_signer();
        for chain in 1..=3 {
            credentials.show(ServerIdentity { key: KeyType::Ed25519, chain });
            let identity =
                signer.identity(chain, || key(KeyType::EcdsaP256, |_| panic!("no program is needed"))).unwrap();
            write(credentials.server_certificate.clone(), &identity.certificate, 0o644).unwrap();
            write(credentials.server_key.clone(), identity.key.expose_text(), 0o600).unwrap();
            assert_eq!(certificates(&credentials.server_certificate).len(), chain);
            shake_hands(server(&credentials), identified(&usual.authority, &credentials), "localhost").unwrap();
        }
        credentials = usual.clone();
        credentials.show(ServerIdentity::USUAL);
        assert_eq!(credentials.server_key, usual.server_key);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn untrusted_authorities_are_refused() {
        let folder = test_folder("strangers_are_refused");
        let credentials = prepare(&folder.join("ours"), HERE).unwrap();
        let theirs = prepare(&folder.join("theirs"), HERE).unwrap();
        let refused = |client| shake_hands(server(&credentials), client, "localhost").unwrap_err();
        let certificate = rustls::Error::InvalidCertificate;
        let mistaken = identified(&credentials.untrusted_authority, &credentials);
        assert_eq!(refused(mistaken), certificate(CertificateError::UnknownIssuer));
        // Authorities of different runs have the same name and different keys.
        let another_run = identified(&credentials.authority, &theirs);
        assert_eq!(refused(another_run), certificate(CertificateError::BadSignature));
        let stranger = credentials.untrusted_client();
        let of_another_authority = showing(&credentials.authority, &stranger, &stranger);
        assert_eq!(refused(of_another_authority), certificate(CertificateError::UnknownIssuer));
        let anonymous = client(&credentials.authority).with_no_client_auth();
        assert_eq!(refused(anonymous), rustls::Error::NoCertificatesPresented);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn lines_of_pem_are_as_long_as_other_programs_take_them() {
        expect![[r#"
            -----BEGIN CERTIFICATE-----
            AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4v
            MDEyMw==
            -----END CERTIFICATE-----
        "#]]
        .assert_eq(&pem("CERTIFICATE", &std::array::from_fn::<u8, 52, _>(|byte| byte as u8)));
    }

    #[test]
    fn keys_are_for_their_owner_and_files_are_not_overwritten() {
        let folder = test_folder("keys_are_for_their_owner_and_files_are_not_overwritten");
        let credentials = prepare(&folder, HERE).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let keys = [&credentials.server_key, &credentials.client_key, &credentials.untrusted_client()];
        assert_eq!(keys.map(|key| mode(key)), [0o600; 3]);
        assert!(matches!(prepare(&folder, HERE), Err(Fault::Machine(_))));
        fs::remove_dir_all(folder).unwrap();
    }
}
