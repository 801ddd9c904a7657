//! How sessions connect to the servers of one product: everything that sessions, and the checks that open them, need to
//! know of it.

use tithe_machine::{fault::Fault, launch::Server};
use tithe_plugin::{database::Connect, session::SqlSession as _, setup::Setup};

use super::{session::WireSession, startup};
use crate::target::{Product, SOCKET_PEER, Target};

/// The differences between the products for their sessions.
pub struct Access {
    /// Port, names and URL options.
    pub product: Product,
    /// True for a version of this product, as servers say it first.
    pub is_own: fn(&str) -> bool,
    /// What to write instead if the server is of the other product.
    pub otherwise: &'static str,
    /// Statement that returns the kernel's number of the session's thread in the server.
    pub thread: &'static str,
}

impl Access {
    /// Opens a connection to `target`, a server of this product. It blocks until [`WireSession::set_blocking`].
    ///
    /// # Errors
    /// A refusal of either side, a broken connection, or a server of the other product.
    pub fn open(&self, target: &Target) -> Result<WireSession, Fault> {
        let opened = startup::open(target, |version| self.check_version(version))?;
        Ok(WireSession::new(opened, target, self.thread))
    }

    /// Tries plaintext at `target`, which has TLS. It sends no password, so that an eavesdropper can neither guess the
    /// password from its proof nor relay the proof. If the server refuses the account without a password, it has not
    /// yet shown whether it would accept the password; what the account requires is then asked over TLS.
    ///
    /// # Errors
    /// As [`Access::open`]. A server that only asks for the password counts as a refusal.
    pub fn plaintext(&self, target: &Target) -> Result<String, Fault> {
        match self.open(&target.in_plaintext()) {
            Err(Fault::Refused(words)) if target.password.is_some() && lacks_password(&words) => {
                let mut session = self.open(target)?;
                let of_all = session.setting("require_secure_transport")? == "ON";
                let made = session.value("SHOW CREATE USER CURRENT_USER()")?;
                let words = match demand(&made) {
                    _ if of_all => format!("{words}; require_secure_transport = ON"),
                    Some(demand) => format!("{words}; REQUIRE {demand} of this account"),
                    None => format!("the server asks for a password: {words}"),
                };
                Err(Fault::Refused(words))
            }
            outcome => Ok(outcome?.method().to_owned()),
        }
    }

    /// How the client of `session` at `target` authenticated: the accepted proof, or [`SOCKET_PEER`].
    pub fn method(&self, session: &mut WireSession, target: &Target) -> String {
        let made = if target.is_socket() { session.value("SHOW CREATE USER CURRENT_USER()").ok() } else { None };
        match made {
            Some(made) if is_peer(&made, target.password.is_some()) => SOCKET_PEER.to_owned(),
            _ => session.method().to_owned(),
        }
    }

    /// Refuses a server of the other product, by the `version` in its greeting.
    fn check_version(&self, version: &str) -> Result<(), Fault> {
        if (self.is_own)(version) {
            return Ok(());
        }
        let (title, otherwise) = (self.product.title, self.otherwise);
        Err(Fault::Refused(format!("the server reports that it is {version}, which is not {title}: {otherwise}")))
    }

    /// A session that is not measured. It runs none of the statements of the clients' sessions.
    ///
    /// # Errors
    /// As [`Access::open`].
    pub fn administrator(&self, server: &Server, setup: &Setup) -> Result<WireSession, Fault> {
        self.open(&self.product.target(server, setup)?)
    }

    /// A session like those of measured clients, which first runs `before` and then the arm's own statements.
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
            && session.has_thread()
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

/// True if the account, given by its CREATE USER statement, is identified by the process at the other end of a socket;
/// with a password only if there is no other method.
fn is_peer(made: &str, with_password: bool) -> bool {
    let ways = made.split_once(" IDENTIFIED ").map_or("", |(_, ways)| ways);
    let has_peer = ["unix_socket", "auth_socket"].iter().any(|plugin| ways.contains(plugin));
    has_peer && !(with_password && ways.contains(" OR "))
}

/// True for the text of a refusal for a wrong or missing password (1045, 1698).
fn lacks_password(words: &str) -> bool {
    words.starts_with("1045 (") || words.starts_with("1698 (")
}

/// What an account must fulfil besides its authentication, from its CREATE USER statement; MySQL states it even if it
/// is nothing.
pub fn demand(made: &str) -> Option<&str> {
    let rest = made.split_once(" REQUIRE ")?.1;
    rest.split(' ').next().filter(|demand| *demand != "NONE")
}

#[cfg(test)]
mod tests {
    use super::{demand, is_peer, lacks_password};

    #[test]
    fn an_account_is_known_by_the_socket_unless_its_password_may_have_opened_it() {
        let seen = |user: &str, ways: &str| {
            let made = format!("CREATE USER `{user}`@`localhost` IDENTIFIED {ways}");
            [false, true].map(|with_password| is_peer(&made, with_password))
        };
        assert_eq!(seen("app", "VIA unix_socket"), [true, true]);
        assert_eq!(seen("app", "WITH 'auth_socket' REQUIRE NONE"), [true, true]);
        assert_eq!(seen("app", "VIA mysql_native_password USING '*94BD' OR unix_socket"), [true, false]);
        assert_eq!(seen("app", "VIA ed25519 USING 'x' OR mysql_native_password USING '*94BD'"), [false, false]);
        assert_eq!(seen("unix_socket", "BY PASSWORD '*94BD'"), [false, false]);
    }

    #[test]
    fn a_refusal_for_a_password_is_known_by_its_number() {
        let texts = ["1045 (28000): Access denied", "1698 (28000): Access denied", "1044 (42000): Access denied"];
        assert_eq!(texts.map(lacks_password), [true, true, false]);
    }

    #[test]
    fn what_an_account_must_do_is_read() {
        let mariadb = "CREATE USER `app`@`%` IDENTIFIED BY PASSWORD '*94BD'";
        let mysql = "CREATE USER `app`@`%` IDENTIFIED WITH 'caching_sha2_password' AS '$A$005$' REQUIRE";
        assert_eq!(demand(mariadb), None);
        assert_eq!(demand(&format!("{mariadb} REQUIRE SSL")), Some("SSL"));
        assert_eq!(demand(&format!("{mysql} NONE PASSWORD EXPIRE DEFAULT")), None);
        assert_eq!(demand(&format!("{mysql} X509 PASSWORD EXPIRE DEFAULT")), Some("X509"));
    }
}
