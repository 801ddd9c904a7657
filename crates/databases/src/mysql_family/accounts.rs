//! What a server's list of accounts shows: how each account authenticates, and which connect without TLS. Judged
//! without a server.

use std::collections::{BTreeMap, BTreeSet};

use tithe_machine::fault::Fault;

use super::session::WireSession;
use crate::{
    evidence::whole::{Exception, is_loopback},
    findings::{MY_AUTHN_NO_PROOF, MY_TLS_OPTIONAL},
    inspect::{Rules, counted, named as shortened},
};

/// The privilege that an account needs to read the list.
pub const RIGHT: &str = "the account needs GRANT SELECT ON `mysql`.*";

/// A right that leads further than to its own data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Right {
    /// `SELECT`.
    Select,
    /// `INSERT`.
    Insert,
    /// `UPDATE`.
    Update,
    /// `DELETE`.
    Delete,
    /// `CREATE USER`: sets the password of others.
    CreateUser,
    /// `CREATE ROUTINE`, `TRIGGER` or `EVENT`.
    MakeCode,
    /// `EXECUTE`.
    Execute,
    /// `FILE`.
    File,
    /// `SUPER`.
    Super,
    /// Makes code that runs as another account (`SET USER`, `SET_USER_ID`, `SET_ANY_DEFINER`).
    SetDefiner,
    /// Gives roles, and any account is a role (MySQL's `ROLE_ADMIN`).
    GrantRoles,
    /// Writes rows of any table by a `BINLOG` statement (`BINLOG REPLAY`, `BINLOG_ADMIN`).
    ReplayRows,
    /// Chooses the server to replicate from (`REPLICATION SLAVE ADMIN`).
    Follow,
    /// Is out of reach of accounts that are none (MySQL's `SYSTEM_USER`).
    SystemUser,
    /// Sets what the server executes for each new connection, `init_connect` (`SYSTEM_VARIABLES_ADMIN`, MariaDB's
    /// `CONNECTION ADMIN`).
    SetInitConnect,
    /// Is connected without that (`CONNECTION_ADMIN`).
    SkipInitConnect,
    /// Sets the server's variables (`SYSTEM_VARIABLES_ADMIN`).
    SetVariables,
    /// Sets what the audit log records (`AUDIT_ADMIN`).
    SetAudit,
    /// Makes tables without encryption where others may not (`TABLE_ENCRYPTION_ADMIN`).
    MakePlainTables,
    /// Sets whether the binary log is encrypted (`BINLOG_ENCRYPTION_ADMIN`).
    MakePlainBinlog,
}

/// How an account may authenticate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Way {
    /// A password, by this plugin.
    Password(String),
    /// A password of this plugin, and it is empty.
    Empty(String),
    /// A password stored in the format from before version 4.1: 16 digits, which can be cracked in seconds.
    OldPassword,
    /// The account of the operating system at a local socket.
    Socket,
    /// An external service decides (PAM, LDAP, Kerberos): this plugin asks it.
    Elsewhere(String),
    /// No login is possible.
    Nobody,
}

impl Way {
    /// The authentication of `plugin`, whose accounts store `secret` as a proof; empty if there is none.
    pub fn of(plugin: &str, secret: &str) -> Self {
        match plugin {
            "unix_socket" | "auth_socket" | "named_pipe" => Self::Socket,
            "mysql_no_login" => Self::Nobody,
            // Nothing hashes to it: MariaDB gives it to accounts that log in by the socket.
            _ if secret == "invalid" => Self::Nobody,
            "mysql_old_password" if !secret.is_empty() => Self::OldPassword,
            _ if !COMPARES.contains(&plugin) => Self::Elsewhere(plugin.to_owned()),
            _ if secret.is_empty() => Self::Empty(plugin.to_owned()),
            _ => Self::Password(plugin.to_owned()),
        }
    }

    fn title(&self) -> &str {
        match self {
            Self::Password(plugin) | Self::Elsewhere(plugin) => plugin,
            Self::Empty(_) => "nothing",
            Self::OldPassword => "mysql_old_password",
            Self::Socket => "local socket",
            Self::Nobody => "an impossible password",
        }
    }
}

/// Plugins that compare a password with the account's stored hash.
const COMPARES: [&str; 7] = [
    "caching_sha2_password",
    "client_ed25519",
    "ed25519",
    "mysql_native_password",
    "mysql_old_password",
    "parsec",
    "sha256_password",
];

/// Plugins for which clients send the password itself, where others send a proof of it (MySQL's and Percona Server's
/// documentation, "Cleartext Pluggable Authentication", "PAM"; MariaDB's, "Authentication Plugin - PAM").
const SEND_PASSWORDS: [&str; 5] =
    ["auth_pam", "auth_pam_compat", "authentication_ldap_simple", "authentication_pam", "pam"];

/// Which certificate an account must show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Certificate {
    /// None.
    #[default]
    Unasked,
    /// Any that the server's authority has signed (`REQUIRE X509`, `ISSUER`).
    Any,
    /// One of this name (`REQUIRE SUBJECT`).
    Named,
}

/// An account, or a role.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Account {
    /// Name; empty for the anonymous account, which matches every user.
    pub user: String,
    /// The hosts it may connect from; empty for a MariaDB role.
    pub host: String,
    /// False for a role, and for an account that is locked.
    pub logs_in: bool,
    /// How it may authenticate: any of these is enough.
    pub ways: Vec<Way>,
    /// The certificate that it must also show.
    pub certificate: Certificate,
    /// True if it must use TLS.
    pub speaks_tls: bool,
    /// True if a password that it had before still opens it.
    pub keeps_old_password: bool,
    /// Its global privileges that lead to others.
    pub rights: BTreeSet<Right>,
    /// True if those rights to write leave the server's own database out.
    pub keeps_off_rights: bool,
    /// True if its right to delete does.
    pub keeps_off_plugins: bool,
    /// True if its right to read does.
    pub keeps_off_hashes: bool,
}

/// How one product reads its accounts and roles.
pub type ReadAccounts = fn(&mut WireSession) -> Result<Vec<Account>, Fault>;

/// What the server requires of connections, besides its accounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Gate {
    /// `require_secure_transport`: no plaintext over TCP.
    pub requires_tls: bool,
    /// `skip_name_resolve`: an account of `localhost` can only use a local socket.
    pub knows_no_names: bool,
    /// `skip_networking`: every account can only use a local socket.
    pub is_local: bool,
}

impl Gate {
    /// The values in the server's settings.
    ///
    /// # Errors
    /// The server's error.
    pub fn read(session: &mut WireSession) -> Result<Self, Fault> {
        Ok(Self {
            requires_tls: session.setting("require_secure_transport")? == "ON",
            knows_no_names: session.setting("skip_name_resolve")? == "ON",
            is_local: session.setting("skip_networking")? == "ON",
        })
    }

    /// True if `account` may connect by TCP without TLS.
    fn lets_in_plaintext(self, account: &Account) -> bool {
        let local = self.is_local || account.host == "localhost" && self.knows_no_names;
        account.by_network() && !self.requires_tls && !account.speaks_tls && !local
    }

    /// Why a password of `account` can be read on the network; `None` if it cannot, as far as the plugin shows.
    fn exposes(self, account: &Account) -> Option<String> {
        let sends = |way: &Way| match way {
            Way::Elsewhere(plugin) if SEND_PASSWORDS.contains(&plugin.as_str()) => Some(plugin.clone()),
            _ => None,
        };
        let plugin = account.ways.iter().find_map(sends)?;
        let is_exposed = self.lets_in_plaintext(account) && !is_loopback(&account.host);
        is_exposed.then(|| format!("{} sends its password in the clear ({plugin} without REQUIRE SSL)", account.text()))
    }
}

impl Account {
    /// As statements name it.
    pub fn text(&self) -> String {
        named(&self.user, &self.host)
    }

    /// True if it can connect by TCP: its authentication is more than a socket, and not only an impossible password.
    pub fn by_network(&self) -> bool {
        self.logs_in && self.ways.iter().any(|way| !matches!(way, Way::Socket | Way::Nobody))
    }

    /// True if a client can log in to it. If no proof opens an account, code can still run as it, and other accounts
    /// can act as it.
    pub fn opens(&self) -> bool {
        self.logs_in && self.ways != [Way::Nobody]
    }

    /// Why this account's authentication is weak; `None` if it is not.
    fn weakness(&self) -> Option<String> {
        let has = |wanted: fn(&Way) -> bool| self.ways.iter().any(wanted);
        let empty = has(|way| matches!(way, Way::Empty(_)));
        let words = match self.certificate {
            Certificate::Named if empty => return None,
            Certificate::Any if empty => "takes any certificate of the server's authority and no password",
            _ if empty && self.user.is_empty() => "accepts any name without a password",
            _ if empty => "has no password",
            _ if self.user.is_empty() => "takes any name",
            _ if has(|way| *way == Way::OldPassword) => "keeps its password as before 4.1, which is found in seconds",
            _ if self.keeps_old_password => "is opened by a password that it had before, too",
            _ => return None,
        };
        Some(format!("{} {words}", self.text()))
    }

    /// Its authentication methods.
    fn method(&self) -> &str {
        match (self.certificate, self.ways.first()) {
            (Certificate::Named | Certificate::Any, Some(Way::Empty(_))) => "certificate",
            (_, way) => way.map_or("nothing", Way::title),
        }
    }
}

/// `'user'@'host'`; a MariaDB role, which has no host, is called a role.
pub fn named(user: &str, host: &str) -> String {
    if host.is_empty() { format!("role {user}") } else { format!("'{user}'@'{host}'") }
}

/// Accounts that anyone can log in as, and those whose password this `gate` lets clients send in the clear.
pub fn of_authentication(accounts: &[Account], gate: Gate) -> Rules {
    let mut methods: BTreeMap<&str, usize> = BTreeMap::new();
    let mut elsewhere: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let logs_in = || accounts.iter().filter(|account| account.logs_in);
    for account in logs_in() {
        *methods.entry(account.method()).or_default() += 1;
        for way in &account.ways {
            if let Way::Elsewhere(plugin) = way {
                elsewhere.entry(plugin).or_default().push(account.text());
            }
        }
    }
    let methods: Vec<String> = methods.iter().map(|(method, count)| format!("{count} by {method}")).collect();
    let doubt = |(plugin, names): (&&str, &Vec<String>)| format!("{}: {plugin} asks another service", shortened(names));
    let weak = |account: &Account| account.weakness().or_else(|| gate.exposes(account));
    let exceptions: Vec<String> = logs_in().filter_map(weak).collect();
    Rules {
        read: format!("{} ({})", counted(logs_in().count(), "account"), methods.join(", ")),
        findings: if exceptions.is_empty() { Vec::new() } else { vec![&MY_AUTHN_NO_PROOF] },
        exceptions,
        remedy: "ALTER USER … IDENTIFIED BY, REQUIRE SUBJECT, DISCARD OLD PASSWORD, or DROP USER",
        doubts: elsewhere.iter().map(doubt).collect(),
    }
}

/// Accounts that may connect by TCP without TLS.
pub fn of_transport(accounts: &[Account], gate: Gate) -> Rules {
    let plain = accounts.iter().filter(|account| gate.lets_in_plaintext(account));
    let exceptions: Vec<String> = plain.map(|account| format!("{} may speak plaintext", account.text())).collect();
    let setting = if gate.requires_tls { "ON" } else { "OFF" };
    let local = if gate.is_local { "skip_networking = ON, " } else { "" };
    Rules {
        read: format!(
            "{local}require_secure_transport = {setting}, {}",
            counted(accounts.iter().filter(|one| one.logs_in).count(), "account")
        ),
        findings: if exceptions.is_empty() { Vec::new() } else { vec![&MY_TLS_OPTIONAL] },
        exceptions,
        remedy: "set require_secure_transport = ON, or ALTER USER … REQUIRE SSL",
        ..Rules::default()
    }
}

/// The same accounts, for the claim that no client is served in plaintext.
pub fn in_plaintext(accounts: &[Account], gate: Gate) -> Vec<Exception> {
    let exception = |account: &Account| Exception {
        text: format!("{} without REQUIRE SSL", account.text()),
        loopback: is_loopback(&account.host),
    };
    accounts.iter().filter(|account| gate.lets_in_plaintext(account)).map(exception).collect()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn account(user: &str, host: &str) -> Account {
        let ways = vec![Way::of("mysql_native_password", "set")];
        Account { user: user.to_owned(), host: host.to_owned(), logs_in: true, ways, ..Account::default() }
    }

    #[test]
    fn accounts_without_tls_are_named_unless_the_server_requires_it() {
        let accounts = [
            account("root", "localhost"),
            account("app", "%"),
            Account { speaks_tls: true, ..account("careful", "%") },
        ];
        let names = |requires_tls, knows_no_names| {
            of_transport(&accounts, Gate { requires_tls, knows_no_names, is_local: false }).exceptions.join("; ")
        };
        assert_eq!(names(false, true), "'app'@'%' may speak plaintext");
        assert_eq!(names(false, false), "'root'@'localhost' may speak plaintext; 'app'@'%' may speak plaintext");
        assert_eq!(names(true, false), "");
        let local = of_transport(&accounts, Gate { is_local: true, ..Gate::default() });
        assert_eq!(local.words(), "skip_networking = ON, require_secure_transport = OFF, 3 accounts: no exception");
    }

    #[test]
    fn accounts_that_come_by_tcp_without_tls_are_exceptions() {
        let accounts = [
            account("", "%"),
            account("app", "10.0.0.%"),
            Account { speaks_tls: true, ..account("ann", "%") },
            account("root", "localhost"),
            account("near", "127.0.0.1"),
            Account { ways: vec![Way::Socket], ..account("sock", "localhost") },
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
        // A client known by its address alone is not `localhost` by TCP.
        assert!(!texts(Gate { knows_no_names: true, ..Gate::default() }).contains("root"));
    }

    #[test]
    fn accounts_that_prove_nothing_are_named() {
        let of = |way: Way, certificate| Account { ways: vec![way], certificate, ..account("app", "%") };
        let empty = || Way::of("mysql_native_password", "");
        let accounts = [
            account("good", "%"),
            of(empty(), Certificate::Unasked),
            of(empty(), Certificate::Any),
            of(empty(), Certificate::Named),
            of(Way::of("unix_socket", ""), Certificate::Unasked),
            of(Way::of("mysql_native_password", "invalid"), Certificate::Unasked),
            of(Way::of("mysql_old_password", "5d2e19393cc5ef67"), Certificate::Unasked),
            of(Way::of("pam", ""), Certificate::Unasked),
            Account { ways: vec![empty()], ..account("", "localhost") },
            account("", "%"),
            Account { keeps_old_password: true, ..account("old", "%") },
            Account { logs_in: false, ways: vec![empty()], ..account("locked", "%") },
        ];
        expect![[r#"
            11 accounts (1 by an impossible password, 2 by certificate, 1 by local socket, 3 by mysql_native_password, 1 by mysql_old_password, 2 by nothing, 1 by pam): 6 exceptions: 'app'@'%' has no password
            'app'@'%' takes any certificate of the server's authority and no password
            'app'@'%' keeps its password as before 4.1, which is found in seconds
            ''@'localhost' accepts any name without a password
            ''@'%' takes any name and 1 more: ALTER USER … IDENTIFIED BY, REQUIRE SUBJECT, DISCARD OLD PASSWORD, or DROP USER
            not judged: 'app'@'%': pam asks another service"#]].assert_eq(&of_authentication(&accounts, tls()).words().replace("; ", "\n"));
        // A password is a proof beside any certificate, and none is not one of an old format.
        assert_eq!(of(Way::of("mysql_native_password", "set"), Certificate::Any).weakness(), None);
        assert_eq!(Way::of("mysql_old_password", ""), Way::Empty("mysql_old_password".to_owned()));
    }

    /// A server that requires TLS of all.
    fn tls() -> Gate {
        Gate { requires_tls: true, ..Gate::default() }
    }

    #[test]
    fn passwords_that_clients_send_themselves_need_tls() {
        let of = |plugin: &str, host: &str| Account { ways: vec![Way::of(plugin, "")], ..account("app", host) };
        let exceptions = |account: Account, gate: Gate| of_authentication(&[account], gate).exceptions.join("; ");
        let told = "'app'@'%' sends its password in the clear (pam without REQUIRE SSL)";
        assert_eq!(exceptions(of("pam", "%"), Gate::default()), told);
        assert_eq!(exceptions(of("pam", "%"), tls()), "");
        assert_eq!(exceptions(of("pam", "localhost"), Gate::default()), "");
        assert_eq!(exceptions(Account { speaks_tls: true, ..of("pam", "%") }, Gate::default()), "");
        assert_eq!(exceptions(of("authentication_ldap_sasl", "%"), Gate::default()), "");
    }
}
