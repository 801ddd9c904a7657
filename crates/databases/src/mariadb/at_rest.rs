//! What MariaDB reports about its encryption at rest, and how it writes a table to disk.

use tithe_machine::fault::Fault;
use tithe_plugin::session::SqlSession as _;

use crate::mysql_family::session::WireSession;

/// Has the server write all of the table `name`, and finish removing old rows from it.
///
/// # Errors
/// The server's error.
pub fn write_table(session: &mut WireSession, name: &str) -> Result<(), Fault> {
    session.run(&format!("FLUSH TABLES {name} FOR EXPORT"))?;
    session.run("UNLOCK TABLES").map(drop)
}

/// The message if old tablespaces are not encrypted because there are no threads for it.
pub const NOBODY_ENCRYPTS: &str = "innodb_encryption_threads = 0: nothing will ever encrypt the tablespaces that were \
                                   there before: SET GLOBAL innodb_encryption_threads = 4";

/// True when the server encrypts nothing in the background any more.
///
/// # Errors
/// The server's error; [`Fault::Wrong`] if something is not encrypted yet and no thread would encrypt it.
pub fn is_encrypted(session: &mut WireSession) -> Result<bool, Fault> {
    if !encrypts(session)? {
        return Ok(true);
    }
    let open = unencrypted(session)?;
    if !open.is_empty() && session.setting("innodb_encryption_threads")? == "0" {
        return Err(Fault::Wrong(format!("{} tablespaces are not encrypted; {NOBODY_ENCRYPTS}", open.len())));
    }
    Ok(open.is_empty())
}

/// True when the server encrypts tables.
fn encrypts(session: &mut WireSession) -> Result<bool, Fault> {
    let value = session.shown("GLOBAL VARIABLES", "innodb_encrypt_tables")?;
    Ok(value.is_some_and(|value| value != "OFF"))
}

/// Tablespaces that are not, or not wholly, encrypted; `mysql/…` among them.
///
/// # Errors
/// The server's error.
pub fn unencrypted(session: &mut WireSession) -> Result<Vec<String>, Fault> {
    let sql = "SELECT s.NAME FROM information_schema.INNODB_SYS_TABLESPACES s \
               LEFT JOIN information_schema.INNODB_TABLESPACES_ENCRYPTION e ON e.SPACE = s.SPACE \
               WHERE s.NAME <> 'innodb_temporary' AND (e.ENCRYPTION_SCHEME IS NULL OR e.ENCRYPTION_SCHEME = 0 \
               OR e.MIN_KEY_VERSION = 0 OR e.ROTATING_OR_FLUSHING <> 0)";
    Ok(session.run(sql)?.into_iter().filter_map(|row| row.into_iter().next().flatten()).collect())
}

/// True if some tablespace is encrypted: `ENCRYPTED = YES` encrypts single tables, whatever the settings are.
///
/// # Errors
/// The server's error; only accounts with the privilege PROCESS get an answer.
pub fn encrypts_some(session: &mut WireSession) -> Result<bool, Fault> {
    let sql = "SELECT COUNT(*) FROM information_schema.INNODB_TABLESPACES_ENCRYPTION \
               WHERE ENCRYPTION_SCHEME <> 0 AND CURRENT_KEY_VERSION <> 0";
    Ok(session.value(sql)? != "0")
}
