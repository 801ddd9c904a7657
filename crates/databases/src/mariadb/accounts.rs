//! MariaDB's table of accounts.

use serde_json::Value;
use tithe_machine::fault::Fault;
use tithe_plugin::session::SqlSession as _;

use crate::mysql_family::{
    accounts::{Account, by_network},
    proof::{ED25519, NATIVE},
    session::WireSession,
};

/// Accounts that may log in. Proofs are in `Priv`. What they are made of never leaves the server, but for the word
/// `invalid`, which stands for a password that nobody has.
///
/// # Errors
/// The server's error: administrators may read them, and others only where they were granted it.
pub fn read(session: &mut WireSession) -> Result<Vec<Account>, Fault> {
    let sql = r#"SELECT User, Host, REGEXP_REPLACE(Priv, '"authentication_string": ?"(?!invalid")[^"]+"',
                 '"authentication_string":"set"') FROM mysql.global_priv ORDER BY User, Host"#;
    let rows = session.run(sql)?.into_iter().map(|row| <[_; 3]>::try_from(row).unwrap_or_default());
    let accounts = rows.map(|row| account(row.map(Option::unwrap_or_default)));
    Ok(accounts.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
}

/// The account in a row of `mysql.global_priv`; none for a role and for an account that is locked.
fn account([user, host, rights]: [String; 3]) -> Result<Option<Account>, Fault> {
    let rights: Value = serde_json::from_str(&rights)
        .map_err(|error| Fault::Protocol(format!("mysql.global_priv of '{user}'@'{host}': {error}")))?;
    let is = |name: &str| rights[name].as_bool() == Some(true);
    if is("is_role") || is("account_locked") {
        return Ok(None);
    }
    // One of several proofs is enough; an empty one stands for the first.
    let others = rights["auth_or"].as_array().into_iter().flatten().filter(|proof| proof["plugin"].is_string());
    let proofs: Vec<&Value> = std::iter::once(&rights).chain(others).collect();
    let access = rights["access"].as_u64().unwrap_or_default();
    Ok(Some(Account {
        user,
        host,
        proves: proofs.iter().all(|proof| proves(proof)),
        by_network: proofs.iter().any(|proof| comes_by_network(proof)),
        speaks_tls: rights["ssl_type"].as_u64().unwrap_or_default() > 0,
        unlimited: access & EVERYTHING == EVERYTHING,
    }))
}

/// Bits of the rights SELECT, INSERT, UPDATE, DELETE and CREATE USER (MariaDB's `sql/privilege.h`).
const EVERYTHING: u64 = 1 | 2 | 4 | 8 | 1 << 25;

/// Proofs that compare a password need one that is set.
fn proves(proof: &Value) -> bool {
    let compares = [NATIVE, ED25519, "mysql_old_password", "parsec"].contains(&plugin(proof));
    !compares || proof["authentication_string"].as_str().is_some_and(|set| !set.is_empty())
}

/// Nothing hashes to `invalid`: MariaDB gives it to accounts that come by the socket.
fn comes_by_network(proof: &Value) -> bool {
    by_network(plugin(proof)) && proof["authentication_string"] != "invalid"
}

fn plugin(proof: &Value) -> &str {
    proof["plugin"].as_str().unwrap_or(NATIVE)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn rows_of_accounts_are_understood() {
        let rows = [
            // As `mariadb-install-db` leaves them, and as accounts are made.
            ("root", "localhost", r#"{"access":18446744073709551615}"#),
            (
                "mysql",
                "localhost",
                r#"{"access":18446744073709551615,"plugin":"mysql_native_password","authentication_string":"invalid","auth_or":[{},{"plugin":"unix_socket"}]}"#,
            ),
            ("sock", "localhost", r#"{"access":0,"plugin":"unix_socket"}"#),
            (
                "both",
                "localhost",
                r#"{"access":0,"plugin":"unix_socket","auth_or":[{},{"plugin":"ed25519","authentication_string":"set"}]}"#,
            ),
            ("dora", "%", r#"{"access":0,"plugin":"ed25519","authentication_string":"set","ssl_type":-1}"#),
            (
                "mariadb.sys",
                "localhost",
                r#"{"access":0,"plugin":"mysql_native_password","authentication_string":"","account_locked":true}"#,
            ),
            (
                "app",
                "%",
                r#"{"access":0,"version_id":101119,"plugin":"mysql_native_password","authentication_string":"set","ssl_type":1}"#,
            ),
            (
                "open",
                "%",
                r#"{"access":0,"plugin":"ed25519","authentication_string":"set","auth_or":[{},{"plugin":"mysql_native_password","authentication_string":""}]}"#,
            ),
            ("clerk", "", r#"{"access":0,"is_role":true}"#),
        ];
        let mut text = String::new();
        for (user, host, rights) in rows {
            let account = account([user, host, rights].map(str::to_owned)).expect("a row");
            let words = account.map(|found| {
                format!(
                    "proves {}, TCP {}, TLS {}, all {}",
                    found.proves, found.by_network, found.speaks_tls, found.unlimited
                )
            });
            text += &format!("{user}: {}\n", words.as_deref().unwrap_or("no login"));
        }
        expect![[r#"
            root: proves false, TCP true, TLS false, all true
            mysql: proves true, TCP false, TLS false, all true
            sock: proves true, TCP false, TLS false, all false
            both: proves true, TCP true, TLS false, all false
            dora: proves true, TCP true, TLS false, all false
            mariadb.sys: no login
            app: proves true, TCP true, TLS true, all false
            open: proves false, TCP true, TLS false, all false
            clerk: no login
        "#]]
        .assert_eq(&text);
    }
}
