//! MySQL's tables of accounts and roles.

use std::collections::{BTreeMap, BTreeSet};

use tithe_machine::fault::Fault;
use tithe_plugin::session::rows;

use crate::mysql_family::{
    accounts::{Account, Certificate, Right, Way, named},
    rights::{Powers, ROLES, Rights, asks_elsewhere, lets_files_into},
    session::WireSession,
};

/// Accounts and roles; roles are locked accounts. The stored hashes never leave the server.
///
/// # Errors
/// The server's error: only administrators may read them, and accounts to which it was granted.
pub fn read(session: &mut WireSession) -> Result<Vec<Account>, Fault> {
    let columns: Vec<&str> = COLUMNS.iter().map(|(column, _)| *column).collect();
    let sql = format!(
        "SELECT User, Host, plugin, IF(IFNULL(authentication_string, '') = '', '', 'set'), ssl_type, \
         IF(x509_subject = '', '', 'set'), IF(x509_issuer = '', '', 'set'), account_locked, \
         IFNULL(JSON_CONTAINS_PATH(User_attributes, 'one', '$.additional_password'), 0), \
         IFNULL(JSON_EXTRACT(User_attributes, '$.Restrictions'), ''), CONCAT({}) FROM mysql.user ORDER BY User, Host",
        columns.join(", ")
    );
    let accounts = rows(session, &sql)?.into_iter().map(account).collect::<Vec<_>>();
    let further = rows::<3>(session, "SELECT USER, HOST, PRIV FROM mysql.global_grants")?;
    Ok(with_further(accounts, &further))
}

const TABLES_OF_RIGHTS: [&str; 6] = ["columns_priv", "db", "global_grants", "role_edges", "tables_priv", "user"];

/// What decides how far privileges reach, and who is a member of which role.
///
/// # Errors
/// The server's error.
pub fn read_roles(session: &mut WireSession, rights: &mut Rights) -> Result<(), Fault> {
    let is_on = |session: &mut WireSession, name: &str| session.setting(name).map(|value| value == "ON");
    let maps = is_on(session, "check_proxy_users")?;
    let allowed = session.shown("GLOBAL VARIABLES", "secure_file_priv")?;
    let folder = session.setting("datadir")?;
    rights.powers = Powers {
        super_is_all: true,
        guards_system_users: true,
        // Without a value it is off.
        files_are_free: allowed.is_some_and(|allowed| lets_files_into(&allowed, &folder)),
        tables_of_rights: &TABLES_OF_RIGHTS,
        names_are_literal: is_on(session, "partial_revokes")?,
        // `check_proxy_users` is about the plug-ins that do not map by themselves.
        maps_proxies: asks_elsewhere(&rights.holders)
            || maps
                && (is_on(session, "mysql_native_password_proxy_users")?
                    || is_on(session, "sha256_password_proxy_users")?),
        ..Powers::default()
    };
    let sql = "SELECT TO_USER, TO_HOST, FROM_USER, FROM_HOST FROM mysql.role_edges";
    let members = rights.rows::<4>(session, sql, "mysql.role_edges", ROLES);
    rights.members =
        members.iter().map(|[user, host, role, from]| (named(user, host), named(role, from), "role")).collect();
    let mandatory = session.setting("mandatory_roles")?;
    let everybody = || rights.holders.iter().filter(|holder| holder.logs_in).map(Account::text);
    let mandatory =
        mandatory.split(',').filter_map(role).flat_map(|role| everybody().map(move |who| (who, role.clone())));
    let mandatory: Vec<_> = mandatory.map(|(who, role)| (who, role, "mandatory role")).collect();
    rights.members.extend(mandatory);
    Ok(())
}

/// A role as `mandatory_roles` names it: `dba`, `` `dba`@`%` ``.
fn role(text: &str) -> Option<String> {
    let bare = text.trim().replace(['`', '\'', '"'], "");
    let (user, host) = bare.rsplit_once('@').unwrap_or((&bare, "%"));
    (!user.is_empty()).then(|| named(user, host))
}

/// Rights that lead further and are a column of `mysql.user`.
const COLUMNS: [(&str, Right); 11] = [
    ("Select_priv", Right::Select),
    ("Insert_priv", Right::Insert),
    ("Update_priv", Right::Update),
    ("Delete_priv", Right::Delete),
    ("File_priv", Right::File),
    ("Super_priv", Right::Super),
    ("Execute_priv", Right::Execute),
    ("Create_routine_priv", Right::MakeCode),
    ("Create_user_priv", Right::CreateUser),
    ("Event_priv", Right::MakeCode),
    ("Trigger_priv", Right::MakeCode),
];

/// Those that are a row of `mysql.global_grants`.
const FURTHER: [(&str, Right); 12] = [
    ("SET_USER_ID", Right::SetDefiner),
    ("SET_ANY_DEFINER", Right::SetDefiner),
    ("ROLE_ADMIN", Right::GrantRoles),
    ("BINLOG_ADMIN", Right::ReplayRows),
    ("REPLICATION_SLAVE_ADMIN", Right::Follow),
    ("SYSTEM_USER", Right::SystemUser),
    ("SYSTEM_VARIABLES_ADMIN", Right::SetInitConnect),
    ("SYSTEM_VARIABLES_ADMIN", Right::SetVariables),
    ("CONNECTION_ADMIN", Right::SkipInitConnect),
    ("AUDIT_ADMIN", Right::SetAudit),
    ("TABLE_ENCRYPTION_ADMIN", Right::MakePlainTables),
    ("BINLOG_ENCRYPTION_ADMIN", Right::MakePlainBinlog),
];

fn account(
    [user, host, plugin, secret, ssl_type, subject, issuer, locked, second, restrictions, given]: [String; 11],
) -> Account {
    let has = |(_, (_, right)): (char, &(&str, Right))| *right;
    let given = given.chars().zip(&COLUMNS).filter(|(value, _)| *value == 'Y');
    let rights: BTreeSet<Right> = given.map(has).collect();
    let writes = [("INSERT", Right::Insert), ("UPDATE", Right::Update)].into_iter();
    // A restriction names privileges that the account has.
    let writes: Vec<&str> = writes.filter(|(_, right)| rights.contains(right)).map(|(name, _)| name).collect();
    Account {
        ways: vec![Way::of(&plugin, &secret)],
        certificate: match ssl_type.as_str() {
            "SPECIFIED" if !subject.is_empty() => Certificate::Named,
            "X509" => Certificate::Any,
            "SPECIFIED" if !issuer.is_empty() => Certificate::Any,
            _ => Certificate::Unasked,
        },
        speaks_tls: !ssl_type.is_empty(),
        logs_in: locked != "Y",
        keeps_old_password: second == "1",
        rights,
        keeps_off_rights: keeps_off(&restrictions, &writes),
        keeps_off_plugins: keeps_off(&restrictions, &["DELETE"]),
        keeps_off_hashes: keeps_off(&restrictions, &["SELECT"]),
        user,
        host,
    }
}

/// True if a partial revoke takes all of `rights` on the server's own database away.
fn keeps_off(restrictions: &str, rights: &[&str]) -> bool {
    let restrictions: serde_json::Value = serde_json::from_str(restrictions).unwrap_or_default();
    let of_mysql = |one: &&serde_json::Value| one["Database"] == "mysql";
    restrictions.as_array().into_iter().flatten().find(of_mysql).is_some_and(|one| {
        let revoked: Vec<&str> =
            one["Privileges"].as_array().into_iter().flatten().filter_map(|one| one.as_str()).collect();
        rights.iter().all(|right| revoked.contains(right))
    })
}

fn with_further(mut accounts: Vec<Account>, further: &[[String; 3]]) -> Vec<Account> {
    let mut of: BTreeMap<(&str, &str), BTreeSet<Right>> = BTreeMap::new();
    for [user, host, name] in further {
        let rights = FURTHER.iter().filter(|(further, _)| further == name).map(|(_, right)| *right);
        of.entry((user, host)).or_default().extend(rights);
    }
    for account in &mut accounts {
        if let Some(rights) = of.get(&(account.user.as_str(), account.host.as_str())) {
            account.rights.extend(rights);
        }
    }
    accounts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_accounts_are_understood() {
        let given = |plugin: &str, restrictions: &str, given: &str| {
            account(["app", "%", plugin, "set", "X509", "", "", "N", "0", restrictions, given].map(str::to_owned))
        };
        let row = |plugin: &str, restrictions: &str| given(plugin, restrictions, "YYNNNNNNYNN");
        let all = row("caching_sha2_password", "");
        assert!(all.by_network() && all.certificate == Certificate::Any && !all.keeps_off_rights);
        assert_eq!(all.rights, [Right::Select, Right::Insert, Right::CreateUser].into());
        assert!(!row("auth_socket", "").by_network() && !row("mysql_no_login", "").by_network());
        let revoked = r#"[{"Database": "mysql", "Privileges": ["INSERT", "UPDATE"]}]"#;
        assert!(row("caching_sha2_password", revoked).keeps_off_rights);
        assert!(!row("caching_sha2_password", revoked).keeps_off_plugins);
        assert!(row("caching_sha2_password", &revoked.replace("UPDATE", "DELETE")).keeps_off_plugins);
        assert!(row("caching_sha2_password", &revoked.replace("UPDATE", "SELECT")).keeps_off_hashes);
        assert!(!row("caching_sha2_password", revoked).keeps_off_hashes);
        assert!(!row("caching_sha2_password", &revoked.replace("mysql", "shop")).keeps_off_rights);
        let inserts = revoked.replace(r#", "UPDATE""#, "");
        assert!(row("caching_sha2_password", &inserts).keeps_off_rights, "it has no other right to write");
        assert!(!given("caching_sha2_password", &inserts, "YYYNNNNNYNN").keeps_off_rights);
        let further = with_further(vec![all], &[["app", "%", "BINLOG_ADMIN"].map(str::to_owned)]);
        assert!(further[0].rights.contains(&Right::ReplayRows));
        let further = with_further(further, &[["app", "%", "SYSTEM_VARIABLES_ADMIN"].map(str::to_owned)]);
        assert!([Right::SetVariables, Right::SetInitConnect].iter().all(|right| further[0].rights.contains(right)));
    }

    #[test]
    fn mandatory_roles_are_read() {
        assert_eq!(role(" `dba`@`%`").as_deref(), Some("'dba'@'%'"));
        assert_eq!(role("dba").as_deref(), Some("'dba'@'%'"));
        assert_eq!(role(""), None);
    }
}
