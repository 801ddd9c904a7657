//! A database with the protections that it has: what a folder of `crates/databases` offers.

use tithe_machine::{fault::Fault, launch::Server, paths::Paths};

use crate::{
    claim::Probes, custom::Custom, database::Database, evidence::Check, protection::Protection, session::Table,
    setup::Setup,
};

/// A database and what protects it. One folder in `crates/databases`, one line in its list.
pub trait Product: Database {
    /// Its protections, in the order of `tithe ls`.
    fn protections(&self) -> &'static [&'static dyn Protection];

    /// Protections of the reader's own on its servers.
    fn custom(&self) -> &'static dyn Protection {
        &Custom(&Probes::NONE)
    }

    /// How it is found out what canaries can show on a running server; `None` for a product where Tithe does not know
    /// where to look.
    fn canary_checks(&self) -> Option<FindCanaryChecks> {
        None
    }
}

/// Finds out what canaries can show on a running server with a table of Tithe's. Fails when the server refuses.
pub type FindCanaryChecks = fn(&Server, &Setup, &Table) -> Result<CanaryChecks, Fault>;

/// What canaries can show on a running server.
pub struct CanaryChecks {
    /// Where the server's files are on this machine; empty where they cannot be seen, or may be another server's.
    pub paths: Paths,
    /// Checks of the log that the server's settings name; none where they name none.
    pub audit: Vec<Box<dyn Check>>,
}
