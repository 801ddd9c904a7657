//! What MySQL reports about its encryption at rest.

use tithe_machine::fault::Fault;
use tithe_plugin::session::SqlSession as _;

use crate::mysql_family::session::WireSession;

/// Unencrypted tablespaces, except the two that MySQL cannot encrypt: the system tablespace and that of temporary
/// tables. `undo` includes those of undo logs.
///
/// # Errors
/// The server's error; only accounts with the privilege PROCESS get an answer.
pub fn unencrypted(session: &mut WireSession, undo: bool) -> Result<Vec<String>, Fault> {
    let sql = "SELECT NAME, SPACE_TYPE FROM information_schema.INNODB_TABLESPACES \
               WHERE ENCRYPTION <> 'Y' AND NAME NOT IN ('innodb_system', 'innodb_temporary') ORDER BY NAME";
    let rows = session.run(sql)?.into_iter().map(|row| <[_; 2]>::try_from(row).unwrap_or_default());
    let wanted = rows.filter(|[_, kind]| undo || kind.as_deref() != Some("Undo"));
    Ok(wanted.filter_map(|[name, _]| name).collect())
}

/// Tables in the system tablespace, which MySQL cannot encrypt.
///
/// # Errors
/// The server's error; only accounts with the privilege PROCESS get an answer.
pub fn in_system_tablespace(session: &mut WireSession) -> Result<Vec<String>, Fault> {
    let sql = "SELECT NAME FROM information_schema.INNODB_TABLES WHERE SPACE = 0 ORDER BY NAME";
    let names = session.run(sql)?.into_iter().flatten().flatten();
    Ok(names.filter(|name| is_of_users(name)).collect())
}

/// True of a table, `database/name`, that is not the server's own. The server itself would compare without case, and
/// take a database called `sys_shop` for a table of InnoDB, `SYS_…`.
fn is_of_users(table: &str) -> bool {
    table.contains('/') && !table.starts_with("mysql/")
}

/// Names of the databases in which new tables are not encrypted by default: each keeps the server's default from when
/// it was created.
///
/// # Errors
/// The server's error.
pub fn unencrypted_databases(session: &mut WireSession) -> Result<Vec<String>, Fault> {
    let sql = "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA WHERE DEFAULT_ENCRYPTION <> 'YES' \
               AND SCHEMA_NAME NOT IN ('information_schema', 'mysql', 'performance_schema', 'sys') ORDER BY SCHEMA_NAME";
    Ok(session.run(sql)?.into_iter().flatten().flatten().collect())
}

/// Names of the binary logs that are not encrypted; none if there is no binary log.
///
/// # Errors
/// The server's error; only accounts with the privilege REPLICATION CLIENT get an answer.
pub fn unencrypted_logs(session: &mut WireSession) -> Result<Vec<String>, Fault> {
    if session.shown("GLOBAL VARIABLES", "log_bin")?.as_deref() != Some("ON") {
        return Ok(Vec::new());
    }
    // Name, size, `Yes` or `No`.
    let rows = session.run("SHOW BINARY LOGS")?.into_iter();
    let rows = rows.map(|row| <[_; 3]>::try_from(row).unwrap_or_default());
    Ok(rows.filter(|[.., encrypted]| encrypted.as_deref() != Some("Yes")).filter_map(|[name, ..]| name).collect())
}

/// The text for a keyring about which the server reports nothing.
pub const KEYRING_UNTOLD: &str = "unknown, performance_schema is off";

/// What the server reports about its keyring, as `name = value`; empty if there is none. `None` if the performance
/// schema is off, because its tables are then always empty.
///
/// # Errors
/// The server's error.
pub fn keyring(session: &mut WireSession) -> Result<Option<Vec<(String, String)>>, Fault> {
    if session.shown("GLOBAL VARIABLES", "performance_schema")?.as_deref() == Some("OFF") {
        return Ok(None);
    }
    let rows = session.run("SELECT STATUS_KEY, STATUS_VALUE FROM performance_schema.keyring_component_status")?;
    let pairs = rows.into_iter().map(|row| <[_; 2]>::try_from(row).unwrap_or_default());
    Ok(Some(pairs.map(|pair| pair.map(Option::unwrap_or_default).into()).collect()))
}
