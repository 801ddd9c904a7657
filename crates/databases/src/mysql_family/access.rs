//! How sessions come to the servers of one product: all that they, and the checks that open them, need to know of it.

use tithe_machine::{fault::Fault, launch::Server};
use tithe_plugin::{database::Connect, session::SqlSession as _, setup::Setup};

use super::{session::WireSession, startup};
use crate::target::{Product, Target, is_local};

/// What differs between the products for their sessions.
pub struct Access {
    /// Port, names and URL options.
    pub product: Product,
    /// True for a version of this product, as servers say it first.
    pub is_own: fn(&str) -> bool,
    /// What to write instead where a server is of the other product.
    pub otherwise: &'static str,
    /// Statement that tells the number which the kernel has given to the session's thread in the server.
    pub thread: &'static str,
}

impl Access {
    /// Opens a connection to `target`, a server of this product. It blocks until [`WireSession::set_blocking`].
    ///
    /// # Errors
    /// A refusal of either side, a broken connection, or a server of the other product.
    pub fn open(&self, target: &Target) -> Result<WireSession, Fault> {
        let opened = startup::open(target, |version| self.check_version(version))?;
        Ok(WireSession::new(opened, self.thread))
    }

    /// Refuses a server of the other product, by the `version` that it says first.
    fn check_version(&self, version: &str) -> Result<(), Fault> {
        if (self.is_own)(version) {
            return Ok(());
        }
        let (title, otherwise) = (self.product.title, self.otherwise);
        Err(Fault::Refused(format!("the server says that it is {version}, which is not {title}: {otherwise}")))
    }

    /// A session that is not measured. It runs none of the statements of the clients' sessions.
    ///
    /// # Errors
    /// As [`Access::open`].
    pub fn administrator(&self, server: &Server, setup: &Setup) -> Result<WireSession, Fault> {
        self.open(&self.product.target(server, setup)?)
    }

    /// A session as measured clients have it, which first runs `before` and then the arm's own statements.
    ///
    /// # Errors
    /// As [`Access::open`]; the server's error.
    pub fn measured(
        &self,
        server: &Server,
        setup: &Setup,
        how: &Connect,
        before: &[&str],
    ) -> Result<WireSession, Fault> {
        let mut session = self.administrator(server, setup)?;
        if let Some(process) = server.process
            && (is_local(server) || session.has_thread())
        {
            session.find_thread(process);
        }
        for statement in before.iter().copied().chain(setup.session_statements.iter().map(String::as_str)) {
            session.run(statement)?;
        }
        session.set_blocking(how.blocking)?;
        Ok(session)
    }
}
