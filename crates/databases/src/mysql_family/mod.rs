//! What MariaDB and MySQL have in common: protocol, session, tables, and the checks that mean the same on both.
//!
//! Each product has a folder of its own for its launch, its protections and what it says about itself; where shared
//! code must know which of the two it speaks to, it is told by the product's [`Flavour`].

pub mod accounts;
pub mod evidence;
pub mod inspect;
pub mod launch;
pub mod proof;
pub mod protection;
mod protocol;
mod rsa;
pub mod schema;
pub mod session;
pub mod sql;
mod startup;
pub mod target;

use tithe_harness::{database::Connect, fault::Fault, launch::Server, session::SqlSession as _, setup::Setup};

use self::session::WireSession;
use crate::target::{Product, Target};

/// What differs between the products of the family.
pub struct Flavour {
    /// Port, names and URL options.
    pub product: Product,
    /// True for a version of this product, as servers say it first.
    pub is_own: fn(&str) -> bool,
    /// What to write instead where a server is of the other product.
    pub otherwise: &'static str,
    /// Statement that tells the number which the kernel has given to the session's thread in the server.
    pub thread: &'static str,
    /// Variables whose values go into the report, where the server has them. None of them is a secret.
    pub told: &'static [&'static str],
    /// True when the server encrypts nothing in the background any more.
    pub is_encrypted: fn(&mut WireSession) -> Result<bool, Fault>,
    /// Has the server write all of a table to its file, and end what it still has to remove from it.
    pub write_table: fn(&mut WireSession, &str) -> Result<(), Fault>,
}

impl Flavour {
    /// Opens a connection to `target`, a server of this product.
    ///
    /// # Errors
    /// A refusal of either side, a broken connection, or a server of the other product.
    pub fn open(&'static self, target: &Target) -> Result<WireSession, Fault> {
        WireSession::open(self, target)
    }

    /// A session that is not measured. It runs none of the statements of the clients' sessions.
    ///
    /// # Errors
    /// As [`Flavour::open`].
    pub fn administrator(&'static self, server: &Server, setup: &Setup) -> Result<WireSession, Fault> {
        self.open(&self.product.target(server, setup)?)
    }

    /// A session as measured clients have it, which first runs `before` and then the arm's own statements.
    ///
    /// # Errors
    /// As [`Flavour::open`]; the server's error.
    pub fn measured(
        &'static self,
        server: &Server,
        setup: &Setup,
        how: &Connect,
        before: &[&str],
    ) -> Result<WireSession, Fault> {
        let mut session = self.administrator(server, setup)?;
        if let Some(process) = server.process {
            session.find_thread(process);
        }
        for statement in before.iter().copied().chain(setup.session_statements.iter().map(String::as_str)) {
            session.run(statement)?;
        }
        session.set_blocking(how.blocking)?;
        Ok(session)
    }
}
