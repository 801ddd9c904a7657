//! Checks that every server with a wire client shares: one file each.

pub mod definitions;
pub mod long;
pub mod marked;
pub mod password_asked;
pub mod settled;
pub mod tls_negotiated;
pub mod tls_resumed;
pub mod whole;

use tithe_machine::fault::Fault;
use tithe_plugin::evidence::CheckContext;

use self::whole::Whole;
use crate::target::Target;

/// How a check knocks at the doors of one product.
pub struct ConnectionProbes {
    /// Where the measured clients go.
    pub target: fn(&CheckContext<'_>) -> Result<Target, Fault>,
    /// Opens and closes one connection, with something read in between: with TLS 1.3 a server refuses a client
    /// certificate only after the client's handshake. Returns the method of authentication.
    pub open: fn(&CheckContext<'_>, &Target) -> Result<String, Fault>,
    /// True if `open` tells the mechanism by the name that
    /// [`Authentication::Password`](tithe_plugin::setup::Authentication::Password) has: an account of such a product is
    /// known by its own, whatever a client would like.
    pub names_mechanism: bool,
    /// Tries plaintext at a target that speaks TLS: as `open`, [`Target::in_plaintext`].
    pub plaintext: fn(&Target) -> Result<String, Fault>,
    /// What the server itself says about TLS on the measured connections; begins with the version, as in `TLSv1.3`.
    pub tls_of_server: fn(&CheckContext<'_>, &Target) -> Result<String, Fault>,
    /// Where it says so.
    pub tls_source: &'static str,
    /// Whom else the server lets in without TLS. On a server that Tithe launched this can always be seen; else the
    /// fault says why it cannot.
    pub others: fn(&CheckContext<'_>) -> Result<Whole, Fault>,
}

/// How a refusal begins by which a client without a password learns that the server asks for one: in Tithe's words, and
/// in those of Redis.
const ASKED: [&str; 2] = ["the server asks for ", "NOAUTH "];

/// What an attempt that must be refused came to.
pub enum Attempt {
    /// It was served.
    Served,
    /// One side refused, with these words.
    Refused(String),
}

impl Attempt {
    /// The outcome of opening a session.
    ///
    /// # Errors
    /// A fault that is neither: nothing can be said then.
    pub fn of<T>(outcome: Result<T, Fault>) -> Result<Self, Fault> {
        match outcome {
            Ok(_) => Ok(Self::Served),
            Err(Fault::Refused(words)) => Ok(Self::Refused(words)),
            Err(fault) => Err(fault),
        }
    }

    /// Adds to `quotation` what became of `name`; true if it was served.
    fn told(self, name: &str, quotation: &mut String) -> bool {
        let (words, served) = match self {
            Self::Served => ("served".to_owned(), true),
            Self::Refused(words) => (format!("refused ({words})"), false),
        };
        *quotation += &format!("; {name}: {words}");
        served
    }

    /// The outcome of opening a session in plaintext, without a password: a server that asks for one serves plaintext.
    ///
    /// # Errors
    /// As [`Attempt::of`].
    pub fn in_plaintext<T>(outcome: Result<T, Fault>) -> Result<Self, Fault> {
        match outcome {
            Err(Fault::Refused(words)) if ASKED.iter().any(|asked| words.starts_with(asked)) => Ok(Self::Served),
            outcome => Self::of(outcome),
        }
    }
}

#[cfg(test)]
mod tests;
