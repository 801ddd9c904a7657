//! A database with its protections: the content of a folder of `crates/databases`.

use tithe_machine::{fault::Fault, launch::Server, paths::Paths};

use crate::{
    claim::Probes, custom::Custom, database::Database, evidence::Check, protection::Protection, session::Table,
    setup::Setup,
};

/// A database and its protections. One folder in `crates/databases`, one line in its list.
pub trait Product: Database {
    /// Its protections, in the order of `tithe ls`.
    fn protections(&self) -> &'static [&'static dyn Protection];

    /// User-defined protections on its servers.
    fn custom(&self) -> &'static dyn Protection {
        &Custom(&Probes::NONE)
    }

    /// Finds out what canaries can show on a running server; `None` for a product where Tithe does not know where to
    /// search.
    fn canary_checks(&self) -> Option<FindCanaryChecks> {
        None
    }
}

/// Finds out what canaries can show on a running server with one of Tithe's tables. Fails if the server refuses.
pub type FindCanaryChecks = fn(&Server, &Setup, &Table) -> Result<CanaryChecks, Fault>;

/// What canaries can show on a running server.
pub struct CanaryChecks {
    /// Where the server's files are on this machine; empty if they are not visible, or may be another server's.
    pub paths: Paths,
    /// Checks of the log in the server's settings; none if they contain none.
    pub audit: Vec<Box<dyn Check>>,
}
