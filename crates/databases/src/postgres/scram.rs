//! The client's side of SCRAM-SHA-256.
//!
//! Sources: RFC 5802 (SCRAM), RFC 7677 (SHA-256); PostgreSQL documentation, chapter "Frontend/Backend Protocol",
//! section "SASL Authentication", which leaves the user name empty. Channel binding is used on request: over TLS the
//! server's certificate is verified anyway. A password is used unchanged. That is right for every password that
//! SASLprep (RFC 4013) does not change, including all in ASCII.

use std::num::NonZeroU32;

use base64::{Engine, engine::general_purpose::STANDARD};
use ring::{digest, hmac, pbkdf2};
use tithe_machine::{fault::Fault, secret::Secret};

/// Name of the mechanism.
pub const MECHANISM: &str = "SCRAM-SHA-256";

/// Name of the mechanism with channel binding.
pub const WITH_BINDING: &str = "SCRAM-SHA-256-PLUS";

/// Most rounds of key stretching that a server may request: about a second of work. PostgreSQL requests 4096.
const MOST_ROUNDS: u32 = 5_000_000;
/// "The client does not support channel binding."
const NO_BINDING: &str = "n,,";
/// "The client binds to the hash of the server's certificate."
const BINDING: &str = "p=tls-server-end-point,,";

/// An exchange that has started.
pub struct Exchange {
    nonce: String,
    first_bare: String,
    /// Hash of the certificate to which the login is bound, if it is.
    binding: Option<Vec<u8>>,
}

/// An exchange whose proof was sent: the expected answer of the server.
pub struct Expected {
    signature: Vec<u8>,
    /// Rounds of key stretching of the proof, which are also those of the stored password.
    pub rounds: u32,
}

impl Exchange {
    /// Starts with a fresh nonce, bound to the certificate with the hash `binding`, if any.
    pub fn begin(binding: Option<Vec<u8>>) -> Self {
        Self { binding, ..Self::with_nonce("", STANDARD.encode(Secret::random(18).expose())) }
    }

    fn with_nonce(user: &str, nonce: String) -> Self {
        let first_bare = format!("n={user},r={nonce}");
        Self { nonce, first_bare, binding: None }
    }

    /// Name of its mechanism.
    pub fn mechanism(&self) -> &'static str {
        if self.binding.is_some() { WITH_BINDING } else { MECHANISM }
    }

    /// The header that states whether the client binds its login.
    fn header(&self) -> &'static str {
        if self.binding.is_some() { BINDING } else { NO_BINDING }
    }

    /// The client's first message.
    pub fn first(&self) -> String {
        format!("{}{}", self.header(), self.first_bare)
    }

    /// The client's last message, and the server's expected answer to it.
    ///
    /// # Errors
    /// [`Fault::Protocol`] if the server's message is malformed, or does not answer this exchange.
    pub fn prove(self, server_first: &[u8], password: &Secret) -> Result<(String, Expected), Fault> {
        let server_first = std::str::from_utf8(server_first).map_err(|_| malformed())?;
        let (nonce, salt, rounds) = challenge(server_first)?;
        // A server that replays another exchange does not know our nonce.
        if !nonce.starts_with(&self.nonce) || nonce.len() == self.nonce.len() {
            return Err(Fault::Protocol("SCRAM: the server does not answer to this exchange".to_owned()));
        }
        let mut salted = [0; digest::SHA256_OUTPUT_LEN];
        pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, rounds, &salt, password.expose(), &mut salted);

        let bound = [self.header().as_bytes(), self.binding.as_deref().unwrap_or_default()].concat();
        let without_proof = format!("c={},r={nonce}", STANDARD.encode(bound));
        let exchange = format!("{},{server_first},{without_proof}", self.first_bare);
        let client_key = sign(&salted, b"Client Key");
        let stored_key = digest::digest(&digest::SHA256, &client_key);
        let client_signature = sign(stored_key.as_ref(), exchange.as_bytes());
        let proof: Vec<u8> = client_key.iter().zip(&client_signature).map(|(key, mask)| key ^ mask).collect();
        let signature = sign(&sign(&salted, b"Server Key"), exchange.as_bytes());
        Ok((format!("{without_proof},p={}", STANDARD.encode(&proof)), Expected { signature, rounds: rounds.get() }))
    }
}

impl Expected {
    /// Checks the server's last message: the server too must know the password, or a value derived from it.
    ///
    /// # Errors
    /// [`Fault::Refused`] when it does not.
    pub fn check(&self, server_final: &[u8]) -> Result<(), Fault> {
        let said = std::str::from_utf8(server_final).ok().and_then(|text| text.strip_prefix("v="));
        let said = said.and_then(|text| STANDARD.decode(text.split(',').next().unwrap_or_default()).ok());
        if said.is_some_and(|said| said == self.signature) {
            Ok(())
        } else {
            Err(Fault::Refused("SCRAM: the server cannot prove that it knows the password".to_owned()))
        }
    }
}

/// Nonce, salt and rounds of the server's first message.
pub fn challenge(text: &str) -> Result<(&str, Vec<u8>, NonZeroU32), Fault> {
    let mut parts = text.split(',');
    let mut part = |name: &str| parts.next().and_then(|part| part.strip_prefix(name)).ok_or_else(malformed);
    let nonce = part("r=")?;
    let salt = STANDARD.decode(part("s=")?).map_err(|_| malformed())?;
    let rounds = part("i=")?.parse::<NonZeroU32>().map_err(|_| malformed())?;
    if rounds.get() > MOST_ROUNDS {
        return Err(Fault::Protocol(format!("SCRAM: the server asks for {rounds} rounds, more than {MOST_ROUNDS}")));
    }
    Ok((nonce, salt, rounds))
}

fn malformed() -> Fault {
    Fault::Protocol("SCRAM: a malformed message".to_owned())
}

fn sign(key: &[u8], message: &[u8]) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), message).as_ref().to_vec()
}

/// What a server sends that knows the password: its challenge to the client's `first` message, and its last message.
#[cfg(test)]
pub fn answers(first: &str, password: &str) -> (String, String) {
    let nonce = first.rsplit_once("r=").map_or("", |(_, nonce)| nonce).to_owned();
    let challenge = format!("r={nonce}server,s=c2FsdA==,i=1");
    let proof = Exchange::with_nonce("", nonce).prove(challenge.as_bytes(), &Secret::new(password));
    let (_, expected) = proof.expect("a proof");
    (challenge, format!("v={}", STANDARD.encode(&expected.signature)))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    const SERVER_FIRST: &[u8] =
        b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
    const SERVER_FINAL: &[u8] = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=";

    /// The exchange of RFC 7677, section 3.
    fn published() -> Exchange {
        Exchange::with_nonce("user", "rOprNGfwEbeRWgbNEkqO".to_owned())
    }

    #[test]
    fn the_published_exchange_is_reproduced() {
        let exchange = published();
        expect!["n,,n=user,r=rOprNGfwEbeRWgbNEkqO"].assert_eq(&exchange.first());
        let (last, expected) = exchange.prove(SERVER_FIRST, &Secret::new("pencil")).expect("a proof");
        expect![
            "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
        ]
        .assert_eq(&last);
        assert_eq!(expected.check(SERVER_FINAL), Ok(()));
    }

    #[test]
    fn a_server_that_does_not_know_the_password_is_refused() {
        let (_, expected) = published().prove(SERVER_FIRST, &Secret::new("pencil")).expect("a proof");
        for said in [&b"v=7rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="[..], b"v=", b"", b"e=other-error", b"\xff"] {
            assert!(matches!(expected.check(said), Err(Fault::Refused(_))), "{said:?}");
        }
    }

    #[test]
    fn foreign_challenges_are_faults() {
        for challenge in [
            &b"r=another,s=AAAA,i=4096"[..],
            b"r=rOprNGfwEbeRWgbNEkqO,s=AAAA,i=4096",
            b"r=rOprNGfwEbeRWgbNEkqOx,s=A,i=4096",
            // No encoder writes this: unused bits are set.
            b"r=rOprNGfwEbeRWgbNEkqOx,s=AB==,i=4096",
            b"r=rOprNGfwEbeRWgbNEkqOx,s=AA,i=4096",
            b"r=rOprNGfwEbeRWgbNEkqOx,s=AAAA,i=0",
            b"r=rOprNGfwEbeRWgbNEkqOx,s=AAAA,i=4000000000",
            b"",
        ] {
            let outcome = published().prove(challenge, &Secret::new("pencil"));
            assert!(matches!(outcome.err(), Some(Fault::Protocol(_))), "{}", challenge.escape_ascii());
        }
    }
}
