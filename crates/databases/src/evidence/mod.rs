//! Checks that several databases share: one file each.

pub mod definitions;
pub mod long;
pub mod marked;
#[cfg(feature = "java")]
pub mod open_logs;
pub mod password_asked;
#[cfg(feature = "java")]
pub mod peers;
pub mod settled;
pub mod tls_negotiated;
pub mod tls_resumed;
pub mod whole;
pub mod wrong_key;

use tithe_machine::{fault::Fault, observation::Observation};
use tithe_plugin::evidence::CheckContext;

use self::whole::Whole;
use crate::target::Target;

/// How a check connects to one product, in allowed and in forbidden ways.
pub struct ConnectionProbes {
    /// Where the measured clients go.
    pub target: fn(&CheckContext<'_>) -> Result<Target, Fault>,
    /// Opens and closes one connection, with a read in between: with TLS 1.3 a server refuses a client certificate only
    /// after the client's handshake. Returns the method of authentication.
    pub open: fn(&CheckContext<'_>, &Target) -> Result<String, Fault>,
    /// True if `open` returns the mechanism by the name in
    /// [`Authentication::Password`](tithe_plugin::setup::Authentication::Password): with such a product the account
    /// decides the mechanism, not the client.
    pub names_mechanism: bool,
    /// Tries plaintext at a target with TLS: as `open`, [`Target::in_plaintext`].
    pub plaintext: fn(&Target) -> Result<String, Fault>,
    /// What the server itself reports about TLS on the measured connections; begins with the version, as in `TLSv1.3`.
    pub tls_of_server: fn(&CheckContext<'_>, &Target) -> Result<String, Fault>,
    /// Where it reports that.
    pub tls_source: &'static str,
    /// Which other clients the server lets in without TLS. For a server that Tithe launched this can always be
    /// determined; otherwise the fault gives the reason if it cannot.
    pub others: fn(&CheckContext<'_>) -> Result<Whole, Fault>,
}

/// Prefixes of refusals from which a client without a password learns that the server asks for one: Tithe's text, and
/// that of Redis.
const ASKED: [&str; 2] = ["the server asks for ", "NOAUTH "];

/// The result of an attempt that must be refused.
pub enum Attempt {
    /// It was served.
    Served,
    /// One side refused, with this message.
    Refused(String),
}

impl Attempt {
    /// The outcome of opening a session.
    ///
    /// # Errors
    /// A fault that is neither: then there is no result.
    pub fn of<T>(outcome: Result<T, Fault>) -> Result<Self, Fault> {
        match outcome {
            Ok(_) => Ok(Self::Served),
            Err(Fault::Refused(words)) => Ok(Self::Refused(words)),
            Err(fault) => Err(fault),
        }
    }

    /// Adds the result of `name` to `quotation`; true if it was served.
    fn told(self, name: &str, quotation: &mut String) -> bool {
        let (words, served) = match self {
            Self::Served => ("served".to_owned(), true),
            Self::Refused(words) => (format!("refused ({words})"), false),
        };
        *quotation += &format!("; {name}: {words}");
        served
    }

    /// The result of opening a session in plaintext, without a password: a server that asks for one serves plaintext.
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

/// The observation of what an account `tried`: all of it must be refused, except `own`, the last, which must be served.
///
/// # Errors
/// As [`Attempt::of`], and a fault of `own`.
pub fn rights<T>(
    tried: impl IntoIterator<Item = (&'static str, Result<T, Fault>)>,
    own: impl FnOnce() -> Result<(), Fault>,
) -> Result<Observation, Fault> {
    let (mut quotation, mut served) = (String::new(), false);
    for (name, outcome) in tried {
        served |= Attempt::of(outcome)?.told(name, &mut quotation);
    }
    own()?;
    let quotation = format!("{}; a key of Tithe's: served", quotation.trim_start_matches("; "));
    Ok(if served { Observation::Exposed(quotation) } else { Observation::Protected(quotation) })
}

#[cfg(test)]
mod tests;
