//! Whom the table of accounts lets in without TLS. Pure.

use crate::evidence::whole::Exception;

/// Plugins by which nobody comes over the network.
const NOT_BY_NETWORK: [&str; 4] = ["auth_socket", "mysql_no_login", "named_pipe", "unix_socket"];

/// One account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Its name; empty for everybody.
    pub user: String,
    /// Where it may come from.
    pub host: String,
    /// It has to speak TLS (`REQUIRE SSL` and the like).
    pub tls: bool,
    /// It can come over the network at all: it is not locked, no role, and proves itself by more than a socket.
    pub reachable: bool,
}

/// The accounts in `rows` of: name, host, whether it has to speak TLS, is locked, is a role, its plugin, whether its password is
/// one that nobody has, and what `auth_or` of MariaDB says.
pub fn accounts(rows: Vec<Vec<Option<String>>>) -> Vec<Account> {
    rows.into_iter().map(|row| account(&row)).collect()
}

fn account(row: &[Option<String>]) -> Account {
    let cell = |number: usize| row.get(number).cloned().flatten().unwrap_or_default();
    // MariaDB counts in `ssl_type` from 0, MySQL names it; −1 is "not said" (MariaDB's structs.h and sql_acl.cc).
    let is_said = |text: &str| !["", "0", "-1", "N", "false"].contains(&text);
    let by_network = |plugin: &str| !NOT_BY_NETWORK.contains(&plugin);
    // A password that nothing hashes to: MariaDB gives it to accounts that come by the socket.
    let own = by_network(&cell(5)) && !is_said(&cell(6));
    let others = plugins(&cell(7)).into_iter().any(by_network);
    Account {
        user: cell(0),
        host: cell(1),
        tls: is_said(&cell(2)),
        reachable: !is_said(&cell(3)) && !is_said(&cell(4)) && (own || others),
    }
}

/// The plugins that `auth_or` of MariaDB names: `[{}, {"plugin": "unix_socket"}]`.
fn plugins(alternatives: &str) -> Vec<&str> {
    let after = alternatives.split("\"plugin\"").skip(1);
    after.filter_map(|text| text.split('"').nth(1)).collect()
}

/// The accounts that are let in without TLS, where the server as a whole asks nobody for it.
pub fn in_plaintext(accounts: &[Account]) -> Vec<Exception> {
    let open = accounts.iter().filter(|account| account.reachable && !account.tls);
    open.map(|account| Exception {
        text: format!("'{}'@'{}' without REQUIRE SSL", account.user, account.host),
        loopback: crate::evidence::whole::is_loopback(&account.host),
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(rows: &[&[&str]], expect: Expect) {
        let rows = rows.iter().map(|row| row.iter().map(|cell| Some((*cell).to_owned())).collect()).collect();
        let line = |one: Exception| format!("{}{}\n", one.text, if one.loopback { " (loopback)" } else { "" });
        expect.assert_eq(&in_plaintext(&accounts(rows)).into_iter().map(line).collect::<String>());
    }

    #[test]
    fn accounts_of_mariadb_that_need_no_tls() {
        check(
            &[
                &["", "%", "0", "0", "0", "mysql_native_password", "0", ""],
                &["PUBLIC", "", "0", "0", "1", "", "0", ""],
                &["ann", "%", "1", "0", "0", "mysql_native_password", "0", ""],
                &["app", "10.0.0.%", "0", "0", "0", "ed25519", "0", ""],
                &["carl", "localhost", "2", "0", "0", "ed25519", "0", ""],
                &["dora", "%", "-1", "true", "0", "ed25519", "0", ""],
                &[
                    "mysql",
                    "localhost",
                    "0",
                    "0",
                    "0",
                    "mysql_native_password",
                    "1",
                    r#"[{}, {"plugin": "unix_socket"}]"#,
                ],
                &["root", "localhost", "0", "0", "0", "unix_socket", "0", r#"[{}, {"plugin": "ed25519"}]"#],
                &["sock", "localhost", "0", "0", "0", "unix_socket", "0", ""],
            ],
            expect![[r#"
                ''@'%' without REQUIRE SSL
                'app'@'10.0.0.%' without REQUIRE SSL
                'root'@'localhost' without REQUIRE SSL (loopback)
            "#]],
        );
    }

    #[test]
    fn accounts_of_mysql_that_need_no_tls() {
        check(
            &[
                &["ann", "%", "ANY", "N", "0", "caching_sha2_password", "0", ""],
                &["app", "%", "", "N", "0", "caching_sha2_password", "0", ""],
                &["mysql.sys", "localhost", "", "Y", "0", "caching_sha2_password", "0", ""],
                &["root", "localhost", "", "N", "0", "auth_socket", "0", ""],
                &["x", "%", "X509", "N", "0", "caching_sha2_password", "0", ""],
            ],
            expect![[r#"
                'app'@'%' without REQUIRE SSL
            "#]],
        );
    }
}
