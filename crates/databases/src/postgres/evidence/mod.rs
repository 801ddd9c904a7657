//! Checks that only PostgreSQL has: one file each.

pub mod audit_complete;
pub mod checksums_on;
pub mod logs_free;
mod marked;
pub mod password_asked;
pub mod pgcrypto_trap;
pub mod statement_log;
pub mod tls_negotiated;

use tithe_harness::{evidence::Sight, fault::Fault};

/// What an attempt that must be refused came to.
enum Attempt {
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
    fn of<T>(outcome: Result<T, Fault>) -> Result<Self, Fault> {
        match outcome {
            Ok(_) => Ok(Self::Served),
            Err(Fault::Refused(words)) => Ok(Self::Refused(words)),
            Err(fault) => Err(fault),
        }
    }
}

/// A look that may fail half-way: then it has seen nothing.
fn sight(look: impl FnOnce() -> Result<Sight, Fault>) -> Sight {
    look().unwrap_or_else(|fault| Sight::Unknown(fault.to_string()))
}
