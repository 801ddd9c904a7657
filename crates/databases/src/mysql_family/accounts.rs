//! What a server's list of accounts says: who comes without a password, who without TLS, who may do everything. Judged
//! without a server.

use std::collections::BTreeSet;

use tithe_machine::fault::Fault;

use super::session::WireSession;
use crate::{
    evidence::whole::{Exception, is_loopback},
    inspect::{Judgement, Rules, limited},
};

/// What an account needs to read the list.
pub const RIGHT: &str = "the account needs GRANT SELECT ON `mysql`.*";

/// An account that may log in.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Account {
    /// Name; empty for everybody.
    pub user: String,
    /// From where.
    pub host: String,
    /// False where it may come without proving anything.
    pub proves: bool,
    /// True where it can come by TCP: it proves itself by more than a socket, and not only by a password that nobody
    /// has.
    pub by_network: bool,
    /// True where it must speak TLS.
    pub speaks_tls: bool,
    /// True where it may read and write everything, and make accounts.
    pub unlimited: bool,
}

/// How one product reads its accounts that may log in.
pub type ReadAccounts = fn(&mut WireSession) -> Result<Vec<Account>, Fault>;

/// What the server lets in beside its accounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Gate {
    /// `require_secure_transport`: nobody speaks plaintext by TCP.
    pub requires_tls: bool,
    /// `skip_name_resolve`: an account of `localhost` comes by a local socket alone.
    pub knows_no_names: bool,
}

/// Plugins by which nobody comes by TCP.
const NOT_BY_NETWORK: [&str; 4] = ["auth_socket", "mysql_no_login", "named_pipe", "unix_socket"];

/// True when accounts of `plugin` can come by TCP.
pub fn by_network(plugin: &str) -> bool {
    !NOT_BY_NETWORK.contains(&plugin)
}

impl Gate {
    /// What the server's settings say.
    ///
    /// # Errors
    /// The server's error.
    pub fn read(session: &mut WireSession) -> Result<Self, Fault> {
        Ok(Self {
            requires_tls: session.setting("require_secure_transport")? == "ON",
            knows_no_names: session.setting("skip_name_resolve")? == "ON",
        })
    }

    /// True when `account` may come by TCP without TLS.
    fn lets_in_plaintext(self, account: &Account) -> bool {
        let local = account.host == "localhost" && self.knows_no_names;
        account.by_network && !self.requires_tls && !account.speaks_tls && !local
    }
}

impl Account {
    fn text(&self) -> String {
        format!("'{}'@'{}'", self.user, self.host)
    }
}

/// Accounts without a password.
pub fn of_authentication(accounts: &[Account]) -> Rules {
    let open = accounts.iter().filter(|account| !account.proves);
    Rules {
        read: format!("{} accounts", accounts.len()),
        exceptions: open.map(|account| format!("{} has no password", account.text())).collect(),
        remedy: "ALTER USER … IDENTIFIED BY, or DROP USER",
        ..Rules::default()
    }
}

/// Accounts that may come by TCP without TLS.
pub fn of_transport(accounts: &[Account], gate: Gate) -> Rules {
    let plain = accounts.iter().filter(|account| gate.lets_in_plaintext(account));
    let setting = if gate.requires_tls { "ON" } else { "OFF" };
    Rules {
        read: format!("require_secure_transport = {setting}, {} accounts", accounts.len()),
        exceptions: plain.map(|account| format!("{} may speak plaintext", account.text())).collect(),
        remedy: "set require_secure_transport = ON, or ALTER USER … REQUIRE SSL",
        ..Rules::default()
    }
}

/// The same accounts for the claim that nobody is served in plaintext.
pub fn in_plaintext(accounts: &[Account], gate: Gate) -> Vec<Exception> {
    let exception = |account: &Account| Exception {
        text: format!("{} without REQUIRE SSL", account.text()),
        loopback: is_loopback(&account.host),
    };
    accounts.iter().filter(|account| gate.lets_in_plaintext(account)).map(exception).collect()
}

/// How many of the accounts may do everything: one of a name counts once, from wherever it comes.
pub fn of_authorisation(accounts: &[Account]) -> Judgement {
    let names = |all: &dyn Fn(&&Account) -> bool| -> BTreeSet<String> {
        accounts.iter().filter(|account| all(account)).map(|account| format!("'{}'", account.user)).collect()
    };
    let unlimited: Vec<String> = names(&|account| account.unlimited).into_iter().collect();
    limited(&unlimited, names(&|_| true).len(), "rights on *.*")
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn account(user: &str, host: &str) -> Account {
        Account { user: user.to_owned(), host: host.to_owned(), proves: true, by_network: true, ..Account::default() }
    }

    #[test]
    fn accounts_without_tls_are_named_unless_the_server_requires_it() {
        let accounts = [
            account("root", "localhost"),
            account("app", "%"),
            Account { speaks_tls: true, ..account("careful", "%") },
        ];
        let names = |requires_tls, knows_no_names| {
            of_transport(&accounts, Gate { requires_tls, knows_no_names }).exceptions.join("; ")
        };
        assert_eq!(names(false, true), "'app'@'%' may speak plaintext");
        assert_eq!(names(false, false), "'root'@'localhost' may speak plaintext; 'app'@'%' may speak plaintext");
        assert_eq!(names(true, false), "");
    }

    #[test]
    fn accounts_that_come_by_tcp_without_tls_are_exceptions() {
        let accounts = [
            account("", "%"),
            account("app", "10.0.0.%"),
            Account { speaks_tls: true, ..account("ann", "%") },
            account("root", "localhost"),
            account("near", "127.0.0.1"),
            Account { by_network: false, ..account("sock", "localhost") },
        ];
        let texts = |gate| {
            let line = |one: Exception| format!("{}{}\n", one.text, if one.loopback { " (loopback)" } else { "" });
            in_plaintext(&accounts, gate).into_iter().map(line).collect::<String>()
        };
        expect![[r#"
            ''@'%' without REQUIRE SSL
            'app'@'10.0.0.%' without REQUIRE SSL
            'root'@'localhost' without REQUIRE SSL (loopback)
            'near'@'127.0.0.1' without REQUIRE SSL (loopback)
        "#]]
        .assert_eq(&texts(Gate::default()));
        assert_eq!(texts(Gate { requires_tls: true, ..Gate::default() }), "");
        // Who is known by an address alone is not `localhost` by TCP.
        assert!(!texts(Gate { knows_no_names: true, ..Gate::default() }).contains("root"));
    }

    #[test]
    fn accounts_without_a_password_are_named() {
        let accounts = [account("app", "%"), Account { proves: false, ..account("", "%") }];
        assert_eq!(of_authentication(&accounts).exceptions, ["''@'%' has no password"]);
    }

    #[test]
    fn one_name_is_one_administrator() {
        let root = |host| Account { unlimited: true, ..account("root", host) };
        let accounts = [root("localhost"), root("::1"), account("app", "%")];
        assert_eq!(of_authorisation(&accounts).seen, "1 of 2 accounts may do everything (rights on *.*)");
    }
}
