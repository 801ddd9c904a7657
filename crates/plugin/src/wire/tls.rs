//! How a client uses TLS: which authority it trusts, which version it allows, which certificate it presents.
//!
//! It allows exactly one protocol version, so that the requested one is measured. Unless resumption is requested, every
//! connection does a full handshake, on every server alike.

use std::{fmt::Display, path::Path, sync::Arc};

use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    SupportedProtocolVersion,
    client::{
        Resumption,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_cert_signed_by_trust_anchor, verify_server_name,
    },
    crypto::{CryptoProvider, WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject},
    server::ParsedCertificate,
};
use tithe_machine::fault::Fault;
use tithe_model::quantity;

use super::element;
use crate::setup::{Suite, TlsVersion};

/// Which certificates the client accepts.
#[derive(Debug, Clone, Copy)]
pub enum Trust<'a> {
    /// Those that this authority (PEM) signed, for the server's own name; and this very certificate, if a server
    /// presents a self-signed one, as psql and mysql accept it.
    Authority(&'a Path),
    /// The same for any name: any server with a certificate of the authority, or with this very certificate.
    AnyName(&'a Path),
    /// Those that one of the system's authorities signed, for the server's own name.
    System,
    /// Any. This protects the traffic from eavesdroppers, but not from an active attacker in the middle; for a user's
    /// server whose authority is not available.
    Anyone,
}

/// The client's own certificate.
#[derive(Debug, Clone, Copy)]
pub struct Identity<'a> {
    /// Certificate chain, PEM.
    pub certificate: &'a Path,
    /// Private key, PEM.
    pub key: &'a Path,
}

/// A TLS set-up that allows exactly one of `versions` (the only one, or the best of several that both support). With
/// `resumption` all connections that are opened with it share the servers' tickets for resuming sessions. With `suite`
/// no other is offered.
///
/// # Errors
/// [`Fault::Machine`] if a file cannot be read or contains no certificate or key.
pub fn client_config(
    trust: Trust<'_>,
    identity: Option<Identity<'_>>,
    versions: &[TlsVersion],
    resumption: bool,
    suite: Option<Suite>,
) -> Result<Arc<ClientConfig>, Fault> {
    let mut provider = ring::default_provider();
    provider.cipher_suites.retain(|known| suite.is_none_or(|suite| suite.is_in(&format!("{:?}", known.suite()))));
    let provider = Arc::new(provider);
    let versions: Vec<&'static SupportedProtocolVersion> = versions.iter().map(|version| protocol(*version)).collect();
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&versions)
        .map_err(|error| Fault::machine("TLS versions", error))?;
    let builder = match trust {
        Trust::Authority(path) | Trust::AnyName(path) => {
            let checks_name = matches!(trust, Trust::Authority(_));
            let verifier = Pinned::new(certificates(path)?, &path.display(), checks_name, &provider)?;
            builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier))
        }
        Trust::System => {
            let verifier = Pinned::new(system_authorities()?, &"the system's authorities", true, &provider)?;
            builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier))
        }
        Trust::Anyone => builder.dangerous().with_custom_certificate_verifier(Arc::new(AcceptAnyone(provider))),
    };
    let mut config = match identity {
        None => builder.with_no_client_auth(),
        Some(identity) => builder
            .with_client_auth_cert(certificates(identity.certificate)?, private_key(identity.key)?)
            .map_err(|error| Fault::machine(format!("client certificate {}", identity.certificate.display()), error))?,
    };
    config.resumption = if resumption { Resumption::default() } else { Resumption::disabled() };
    Ok(Arc::new(config))
}

/// Kind of the key in `certificate`, by the names of [`KeyType`](tithe_machine::credentials::KeyType) and similar ones.
pub(super) fn key_of(certificate: &CertificateDer<'_>) -> String {
    let info = ParsedCertificate::try_from(certificate).map(|parsed| parsed.subject_public_key_info());
    let kind = info.ok().and_then(|info| key_kind(&info));
    kind.unwrap_or_else(|| "of an unknown kind".to_owned())
}

/// Parses `info`: an algorithm with its parameters, and a bit string with a byte before it (RFC 5280, section 4.1; RFC
/// 5480, section 2.1.1; RFC 8017, appendix A.1.1; RFC 8410, section 3).
pub(super) fn key_kind(info: &[u8]) -> Option<String> {
    let (algorithm, bits) = element(element(info)?.0)?;
    let (identifier, parameters) = element(algorithm)?;
    match identifier {
        [0x2b, 0x65, 0x70] => Some("ed25519".to_owned()),
        [0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1] => match element(parameters)?.0 {
            [0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7] => Some("ecdsa-p256".to_owned()),
            [0x2b, 0x81, 4, 0, 0x22] => Some("ecdsa-p384".to_owned()),
            _ => Some("ecdsa".to_owned()),
        },
        [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1] => {
            let (modulus, _) = element(element(element(bits)?.0.get(1..)?)?.0)?;
            let significant = modulus.iter().position(|byte| *byte != 0)?;
            let modulus = &modulus[significant..];
            Some(format!("rsa-{}", modulus.len() * 8 - modulus[0].leading_zeros() as usize))
        }
        _ => None,
    }
}

fn protocol(version: TlsVersion) -> &'static SupportedProtocolVersion {
    match version {
        TlsVersion::V1_2 => &rustls::version::TLS12,
        TlsVersion::V1_3 => &rustls::version::TLS13,
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Fault> {
    let found: Vec<_> = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect)
        .map_err(|error| Fault::machine(path.display(), error))?;
    if found.is_empty() {
        return Err(Fault::machine(path.display(), "holds no certificate"));
    }
    Ok(found)
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, Fault> {
    PrivateKeyDer::from_pem_file(path).map_err(|error| Fault::machine(path.display(), error))
}

/// The authorities that this system trusts, as OpenSSL finds them: `SSL_CERT_FILE` and `SSL_CERT_DIR` name others.
fn system_authorities() -> Result<Vec<CertificateDer<'static>>, Fault> {
    let found = rustls_native_certs::load_native_certs();
    if found.certs.is_empty() {
        let why = found.errors.first().map(|error| format!(" ({error})")).unwrap_or_default();
        return Err(Fault::Machine(format!(
            "this system trusts no authority{why}: install its list (package ca-certificates), or name the file of one"
        )));
    }
    Ok(found.certs)
}

/// Accepts certificates that authorities signed, and a certificate that is itself among them.
#[derive(Debug)]
struct Pinned {
    roots: RootCertStore,
    authorities: Vec<CertificateDer<'static>>,
    checks_name: bool,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Pinned {
    /// With `authorities`, which come from `place`.
    fn new(
        authorities: Vec<CertificateDer<'static>>,
        place: &dyn Display,
        checks_name: bool,
        provider: &CryptoProvider,
    ) -> Result<Self, Fault> {
        let mut roots = RootCertStore::empty();
        let (added, _) = roots.add_parsable_certificates(authorities.iter().cloned());
        if added == 0 {
            return Err(Fault::machine(place, "holds no certificate that can be read"));
        }
        Ok(Self { roots, authorities, checks_name, algorithms: provider.signature_verification_algorithms })
    }
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let shown = ParsedCertificate::try_from(end_entity)?;
        let algorithms = self.algorithms.all;
        match verify_server_cert_signed_by_trust_anchor(&shown, &self.roots, intermediates, now, algorithms) {
            // Its time was checked before.
            Err(error) if is_no_issuer(&error) && self.authorities.iter().any(|pinned| pinned == end_entity) => {}
            verified => verified?,
        }
        if self.checks_name {
            verify_server_name(&shown, server_name)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// True if a certificate is refused only because no authority signed it, or because it may itself sign others, as
/// self-signed ones may.
fn is_no_issuer(error: &Error) -> bool {
    matches!(error, Error::InvalidCertificate(why) if *why == CertificateError::UnknownIssuer || signs_others(why))
}

/// The library has no variant for that.
fn signs_others(why: &CertificateError) -> bool {
    matches!(why, CertificateError::Other(other) if format!("{other:?}").contains("CaUsedAsEndEntity"))
}

/// The problem with the server's certificate, and its remedy, one clause.
pub(super) fn certificate_refused(why: &CertificateError) -> String {
    use CertificateError as Why;
    let days = |from: &UnixTime, to: &UnixTime| quantity::count(to.as_secs().saturating_sub(from.as_secs()) / DAY_S);
    match why {
        Why::ExpiredContext { time, not_after } => {
            format!("the server's certificate expired {} days ago: it needs a new one", days(not_after, time))
        }
        Why::Expired => "the server's certificate has expired: it needs a new one".to_owned(),
        Why::NotValidYetContext { time, not_before } => format!(
            "the server's certificate begins to be valid in {} days: compare the clocks of both machines",
            days(time, not_before)
        ),
        Why::NotValidYet => {
            "the server's certificate is not valid yet: compare the clocks of both machines".to_owned()
        }
        Why::NotValidForNameContext { expected, presented } => format!(
            "the server's certificate is not for `{}`, the name used here, but for {}: use a name of its \
             certificate, or give it one for this name",
            expected.to_str(),
            names(presented)
        ),
        Why::NotValidForName => {
            "the server's certificate is not for the name used here: use a name of its certificate"
                .to_owned()
        }
        Why::UnknownIssuer => "the server's certificate was signed by no authority that is trusted here: name the \
            file of its authority, or of the certificate itself if it is self-signed"
            .to_owned(),
        Why::BadSignature => {
            "the server's certificate has the name of an authority that is trusted here, and not its signature: name \
             the file with the authority that signed it"
                .to_owned()
        }
        Why::Revoked => "the server's certificate was revoked: it needs a new one".to_owned(),
        Why::InvalidPurpose | Why::InvalidPurposeContext { .. } => {
            "the server's certificate is not one for servers (its extended key usage): it needs another one".to_owned()
        }
        Why::BadEncoding => "the server's certificate cannot be read: it is damaged, or no X.509".to_owned(),
        Why::Other(_) if signs_others(why) => {
            "the server shows a certificate that may sign others, and not the one that is trusted here: name the file \
             with this very certificate"
                .to_owned()
        }
        // The rest are algorithms and extensions that the library does not know.
        _ => "the server's certificate is of a kind that cannot be verified here: it needs another one, for example with \
              a key of RSA or ECDSA and SHA-256"
            .to_owned(),
    }
}

/// Seconds of a day.
const DAY_S: u64 = 86_400;

/// The names in a certificate. The library gives each with its kind around it: `DnsName("db.example")`.
fn names(presented: &[String]) -> String {
    let bare = |name: &String| {
        let inner = name.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')')).unwrap_or(name);
        format!("`{}`", inner.trim_matches('"'))
    };
    match presented {
        [] => "no name at all".to_owned(),
        presented => presented.iter().map(bare).collect::<Vec<_>>().join(", "),
    }
}

/// Accepts every certificate, if the server has its private key.
#[derive(Debug)]
struct AcceptAnyone(Arc<CryptoProvider>);

impl ServerCertVerifier for AcceptAnyone {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{
        KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ED25519, PublicKeyData as _, SignatureAlgorithm,
    };

    use super::*;

    /// An element of DER with this tag and at most 65,535 bytes.
    fn der(tag: u8, content: &[u8]) -> Vec<u8> {
        let length = match content.len() {
            short @ 0..0x80 => vec![short as u8],
            long => vec![0x82, (long >> 8) as u8, long as u8],
        };
        [&[tag][..], &length, content].concat()
    }

    /// The public key of an algorithm with this identifier, `parameters` and `bits`.
    fn info(identifier: &[u8], parameters: &[u8], bits: &[u8]) -> Vec<u8> {
        let algorithm = der(0x30, &[&der(6, identifier)[..], parameters].concat());
        der(0x30, &[algorithm, der(3, &[&[0_u8][..], bits].concat())].concat())
    }

    const RSA: [u8; 9] = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1];

    /// The kind of an RSA key whose modulus has these bytes.
    fn rsa(modulus: &[u8]) -> Option<String> {
        let key = der(0x30, &[der(2, modulus), der(2, &[1, 0, 1])].concat());
        key_kind(&info(&RSA, &[5, 0], &key))
    }

    #[test]
    fn an_rsa_key_has_the_bits_of_its_modulus_without_leading_zeros() {
        let of = |first: u8, more: usize| rsa(&[&[first][..], &vec![0xff; more]].concat());
        assert_eq!(of(0xc5, 255).as_deref(), Some("rsa-2048"));
        // DER puts a zero before a number whose first bit is set.
        assert_eq!(rsa(&[&[0_u8, 0xc5][..], &[0xff; 255]].concat()).as_deref(), Some("rsa-2048"));
        assert_eq!(of(0x7f, 255).as_deref(), Some("rsa-2047"));
        assert_eq!(of(0x01, 512).as_deref(), Some("rsa-4097"));
        assert_eq!(rsa(&[0, 0]), None, "a modulus of nothing");
    }

    #[test]
    fn every_kind_of_key_is_told_from_the_others() {
        let of = |algorithm: &'static SignatureAlgorithm| {
            key_kind(&KeyPair::generate_for(algorithm).expect("a key").subject_public_key_info())
        };
        let kinds = [&PKCS_ECDSA_P256_SHA256, &PKCS_ECDSA_P384_SHA384, &PKCS_ED25519].map(of);
        let names = ["ecdsa-p256", "ecdsa-p384", "ed25519"].map(|name| Some(name.to_owned()));
        assert_eq!(kinds, names);
        let curve = [0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1];
        // The curve P-521, and an algorithm that nobody has (RFC 5480 and RFC 8410, section 3: 101.113 is Ed448).
        let p521 = der(6, &[0x2b, 0x81, 4, 0, 0x23]);
        assert_eq!(key_kind(&info(&curve, &p521, &[4])).as_deref(), Some("ecdsa"));
        assert_eq!(key_kind(&info(&[0x2b, 0x65, 0x71], &[], &[4])), None);
        assert_eq!(key_of(&CertificateDer::from(vec![0x30, 0])), "of an unknown kind");
    }

    #[test]
    fn every_refusal_of_a_certificate_names_its_remedy() {
        use CertificateError as Why;
        let at = |days: u64| UnixTime::since_unix_epoch(std::time::Duration::from_secs(days * DAY_S));
        let named = |presented: &[&str]| Why::NotValidForNameContext {
            expected: ServerName::try_from("db.example").expect("a name"),
            presented: presented.iter().map(|name| (*name).to_owned()).collect(),
        };
        for (why, words) in [
            (Why::ExpiredContext { time: at(1010), not_after: at(1000) }, "expired 10 days ago"),
            (Why::Expired, "has expired: it needs a new one"),
            (Why::NotValidYetContext { time: at(1000), not_before: at(1003) }, "begins to be valid in 3 days"),
            (Why::NotValidYet, "is not valid yet: compare the clocks"),
            (named(&[]), "is not for `db.example`, the name used here, but for no name at all"),
            (named(&["DnsName(\"a.b\")", "IpAddress(10.0.0.7)", "c"]), "but for `a.b`, `10.0.0.7`, `c`: use a name"),
            (Why::NotValidForName, "is not for the name used here"),
            (Why::UnknownIssuer, "was signed by no authority that is trusted here"),
            (Why::BadSignature, "and not its signature"),
            (Why::Revoked, "was revoked: it needs a new one"),
            (Why::InvalidPurpose, "is not one for servers"),
            (Why::BadEncoding, "cannot be read: it is damaged"),
            (Why::UnhandledCriticalExtension, "is of a kind that cannot be verified here"),
        ] {
            let told = certificate_refused(&why);
            assert!(told.contains(words), "{why:?}: {told}");
        }
    }
}
