//! What a server's list of accounts says: who comes without a password, who without TLS, who may do everything. Judged
//! without a server.

use std::collections::BTreeSet;

use crate::inspect::{Judgement, Rules, limited};

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
    /// True where it must speak TLS.
    pub speaks_tls: bool,
    /// True where it may read and write everything, and make accounts.
    pub unlimited: bool,
}

/// What the server lets in beside its accounts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gate {
    /// `require_secure_transport`: nobody speaks plaintext by TCP.
    pub requires_tls: bool,
    /// `skip_name_resolve`: an account of `localhost` comes by a local socket alone.
    pub knows_no_names: bool,
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
        doubts: Vec::new(),
    }
}

/// Accounts that may come by TCP without TLS.
pub fn of_transport(accounts: &[Account], gate: &Gate) -> Rules {
    let local = |account: &&Account| account.host == "localhost" && gate.knows_no_names;
    let plain = accounts.iter().filter(|account| !gate.requires_tls && !account.speaks_tls && !local(account));
    let setting = if gate.requires_tls { "ON" } else { "OFF" };
    Rules {
        read: format!("require_secure_transport = {setting}, {} accounts", accounts.len()),
        exceptions: plain.map(|account| format!("{} may speak plaintext", account.text())).collect(),
        remedy: "set require_secure_transport = ON, or ALTER USER … REQUIRE SSL",
        doubts: Vec::new(),
    }
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
    use super::*;

    fn account(user: &str, host: &str) -> Account {
        Account { user: user.to_owned(), host: host.to_owned(), proves: true, ..Account::default() }
    }

    #[test]
    fn accounts_without_tls_are_named_unless_the_server_requires_it() {
        let accounts = [
            account("root", "localhost"),
            account("app", "%"),
            Account { speaks_tls: true, ..account("careful", "%") },
        ];
        let names = |requires_tls, knows_no_names| {
            of_transport(&accounts, &Gate { requires_tls, knows_no_names }).exceptions.join("; ")
        };
        assert_eq!(names(false, true), "'app'@'%' may speak plaintext");
        assert_eq!(names(false, false), "'root'@'localhost' may speak plaintext; 'app'@'%' may speak plaintext");
        assert_eq!(names(true, false), "");
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
