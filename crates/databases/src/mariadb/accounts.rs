//! MariaDB's tables of accounts and roles.

use serde_json::Value;
use tithe_machine::fault::Fault;
use tithe_plugin::session::rows;

use crate::mysql_family::{
    accounts::{Account, Certificate, Right, Way, named},
    proof::NATIVE,
    rights::{EVERYBODY, PUBLIC, Powers, ROLES, Rights, asks_elsewhere, lets_files_into},
    session::WireSession,
};

/// Accounts and roles. Proofs are in `Priv`. The stored hashes never leave the server, except the word `invalid`, which
/// marks an impossible password.
///
/// # Errors
/// The server's error: only administrators may read them, and accounts to which it was granted.
pub fn read(session: &mut WireSession) -> Result<Vec<Account>, Fault> {
    let sql = r#"SELECT User, Host, REGEXP_REPLACE(Priv, '"authentication_string": ?"(?!invalid")[^"]+"',
                 '"authentication_string":"set"') FROM mysql.global_priv ORDER BY User, Host"#;
    rows(session, sql)?.into_iter().map(account).collect()
}

/// `user` is not included: it is a view that cannot be written through.
const TABLES_OF_RIGHTS: [&str; 7] =
    ["columns_priv", "db", "event", "global_priv", "proc", "roles_mapping", "tables_priv"];

/// What decides how far privileges reach, and who is a member of which role.
///
/// # Errors
/// The server's error.
pub fn read_roles(session: &mut WireSession, rights: &mut Rights) -> Result<(), Fault> {
    let version = session.value("SELECT VERSION()")?;
    let major = version.split('.').next().and_then(|major| major.parse().ok()).unwrap_or(0);
    rights.powers = Powers {
        // From 11.0 on it is one right among others.
        super_is_all: major < 11,
        files_are_free: lets_files_into(&session.setting("secure_file_priv")?, &session.setting("datadir")?),
        maps_proxies: asks_elsewhere(&rights.holders),
        tables_of_rights: &TABLES_OF_RIGHTS,
        ..Powers::default()
    };
    let sql = "SELECT User, Host, Role FROM mysql.roles_mapping";
    let members = rights.rows::<3>(session, sql, "mysql.roles_mapping", ROLES);
    rights.members = members.iter().map(|[user, host, role]| (named(user, host), named(role, ""), "role")).collect();
    // Privileges of all accounts are modelled as a role of which every account is a member.
    if rights.holders.iter().any(|holder| holder.host.is_empty() && holder.user == PUBLIC) {
        let everybody = rights.holders.iter().filter(|holder| holder.logs_in).map(Account::text);
        rights.members.extend(everybody.map(|name| (name, named(PUBLIC, ""), EVERYBODY)));
    }
    Ok(())
}

/// The account or role in a row of `mysql.global_priv`.
fn account([user, host, rights]: [String; 3]) -> Result<Account, Fault> {
    let rights: Value = serde_json::from_str(&rights)
        .map_err(|error| Fault::Protocol(format!("mysql.global_priv of '{user}'@'{host}': {error}")))?;
    let is = |name: &str| rights[name].as_bool() == Some(true);
    // One of several proofs is enough; an empty one means the first.
    let others = rights["auth_or"].as_array().into_iter().flatten().filter(|proof| proof["plugin"].is_string());
    let ways = std::iter::once(&rights).chain(others).map(way).collect();
    let access = rights["access"].as_u64().unwrap_or_default();
    let ssl_type = rights["ssl_type"].as_i64().unwrap_or_default();
    let named = rights["x509_subject"].as_str().is_some_and(|subject| !subject.is_empty());
    Ok(Account {
        user,
        host,
        logs_in: !is("is_role") && !is("account_locked"),
        ways,
        certificate: match ssl_type {
            SPECIFIED if named => Certificate::Named,
            X509 => Certificate::Any,
            SPECIFIED if rights["x509_issuer"].as_str().is_some_and(|issuer| !issuer.is_empty()) => Certificate::Any,
            _ => Certificate::Unasked,
        },
        speaks_tls: ssl_type > 0,
        keeps_old_password: false,
        rights: BITS.iter().filter(|(bit, _)| access >> bit & 1 == 1).map(|(_, right)| *right).collect(),
        keeps_off_rights: false,
        keeps_off_plugins: false,
        keeps_off_hashes: false,
    })
}

/// Values of `ssl_type`: any certificate, and one with required properties.
const X509: i64 = 2;
const SPECIFIED: i64 = 3;

/// Bits of rights that lead further (MariaDB's `sql/privilege.h`).
const BITS: [(u32, Right); 16] = [
    (0, Right::Select),
    (1, Right::Insert),
    (2, Right::Update),
    (3, Right::Delete),
    (9, Right::File),
    (15, Right::Super),
    (18, Right::Execute),
    (23, Right::MakeCode),
    (25, Right::CreateUser),
    (26, Right::MakeCode),
    (27, Right::MakeCode),
    (30, Right::SetDefiner),
    (32, Right::SetInitConnect),
    (32, Right::SkipInitConnect),
    (34, Right::Follow),
    (37, Right::ReplayRows),
];

fn way(proof: &Value) -> Way {
    let secret = proof["authentication_string"].as_str().unwrap_or_default();
    Way::of(proof["plugin"].as_str().unwrap_or(NATIVE), secret)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn rows_of_accounts_are_understood() {
        let rows = [
            // As `mariadb-install-db` leaves them, and as accounts are created.
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
            ("cert", "%", r#"{"access":0,"ssl_type":3,"x509_subject":"/CN=app"}"#),
            ("any", "%", r#"{"access":549755813888,"ssl_type":2}"#),
            ("cipher", "%", r#"{"access":1073741824,"ssl_type":3,"ssl_cipher":"x"}"#),
        ];
        let mut text = String::new();
        for (user, host, rights) in rows {
            let account = account([user, host, rights].map(str::to_owned)).expect("a row");
            text += &format!(
                "{user}: {} {:?}, {:?}, TCP {}, TLS {}, rights {}\n",
                if account.logs_in { "by" } else { "no login," },
                account.ways,
                account.certificate,
                account.by_network(),
                account.speaks_tls,
                account.rights.len()
            );
        }
        expect![[r#"
            root: by [Empty("mysql_native_password")], Unasked, TCP true, TLS false, rights 14
            mysql: by [Nobody, Socket], Unasked, TCP false, TLS false, rights 14
            sock: by [Socket], Unasked, TCP false, TLS false, rights 0
            both: by [Socket, Password("ed25519")], Unasked, TCP true, TLS false, rights 0
            dora: by [Password("ed25519")], Unasked, TCP true, TLS false, rights 0
            mariadb.sys: no login, [Empty("mysql_native_password")], Unasked, TCP false, TLS false, rights 0
            app: by [Password("mysql_native_password")], Unasked, TCP true, TLS true, rights 0
            open: by [Password("ed25519"), Empty("mysql_native_password")], Unasked, TCP true, TLS false, rights 0
            clerk: no login, [Empty("mysql_native_password")], Unasked, TCP false, TLS false, rights 0
            cert: by [Empty("mysql_native_password")], Named, TCP true, TLS true, rights 0
            any: by [Empty("mysql_native_password")], Any, TCP true, TLS true, rights 0
            cipher: by [Empty("mysql_native_password")], Unasked, TCP true, TLS true, rights 1
        "#]]
        .assert_eq(&text);
    }

    #[test]
    fn a_subject_asks_for_one_certificate_and_an_issuer_for_any() {
        let asked = |subject: &str, issuer: &str| {
            let rights = format!(r#"{{"access":0,"ssl_type":3,"x509_subject":"{subject}","x509_issuer":"{issuer}"}}"#);
            account(["a".to_owned(), "%".to_owned(), rights]).expect("a row").certificate
        };
        assert_eq!(asked("/CN=app", ""), Certificate::Named);
        assert_eq!(asked("/CN=app", "/CN=ca"), Certificate::Named);
        assert_eq!(asked("", "/CN=ca"), Certificate::Any);
        assert_eq!(asked("", ""), Certificate::Unasked);
    }
}
