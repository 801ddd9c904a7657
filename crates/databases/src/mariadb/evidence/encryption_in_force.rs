//! Does the server report that everything is encrypted, and refuse unencrypted tables?

use tithe_machine::{fault::Fault, observation::Observation};
use tithe_plugin::{
    evidence::{Check, CheckContext, CheckEntry},
    session::SqlSession as _,
};

use crate::{
    mariadb::{access::ACCESS, at_rest::unencrypted},
    mysql_family::{
        evidence::{all, first, switches_off},
        session::WireSession,
    },
};

/// Asks the server for unencrypted tablespaces, its cipher and its switches. Then tries to create an unencrypted table,
/// which must be refused. Id `encryption-in-force`.
///
/// The server's report does not prove that bytes are unreadable; the canaries do. But it is the only evidence for the
/// cipher's mode, and for short-lived temporary files.
pub struct EncryptionInForce {
    cipher: String,
}

/// Switches that must be on, including those whose files canaries cannot read.
const SWITCHES: [(&str, &str); 7] = [
    ("innodb_encrypt_tables", "FORCE"),
    ("innodb_encrypt_log", "ON"),
    ("innodb_encrypt_temporary_tables", "ON"),
    ("encrypt_tmp_files", "ON"),
    ("encrypt_tmp_disk_tables", "ON"),
    ("aria_encrypt_tables", "ON"),
    ("encrypt_binlog", "ON"),
];

impl EncryptionInForce {
    /// A check of `cipher`, as `file_key_management_encryption_algorithm` names it.
    pub fn new(cipher: &str) -> Self {
        Self { cipher: cipher.to_owned() }
    }
}

impl Check for EncryptionInForce {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("encryption-in-force")
    }

    fn claim(&self) -> String {
        format!(
            "the server reports that every tablespace is encrypted with {}, that logs and temporary files are, and refuses \
             unencrypted tables",
            self.cipher
        )
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        let mut session = ACCESS.administrator(context.server, context.setup)?;
        let cipher = ("file_key_management_encryption_algorithm", self.cipher.as_str());
        let off = switches_off(&mut session, SWITCHES.into_iter().chain([cipher]))?;
        let open = unencrypted(&mut session)?;
        let plain = plain_table(&mut session)?;
        let quotation = format!(
            "not encrypted: {}; switches that are off: {}; an unencrypted table: {}; cipher as the server reports it: \
             {}",
            first(&open),
            all(&off),
            plain.as_deref().unwrap_or("made"),
            session.shown("GLOBAL VARIABLES", cipher.0)?.unwrap_or_else(|| "none".to_owned()),
        );
        let holds = open.is_empty() && off.is_empty() && plain.is_some();
        Ok(if holds { Observation::Protected(quotation) } else { Observation::Exposed(quotation) })
    }
}

/// Tries to create a table without encryption in Tithe's own database. Returns the text of the refusal, or `None` if it
/// was created (and removed again).
fn plain_table(session: &mut WireSession) -> Result<Option<String>, Fault> {
    const TABLE: &str = "`tithe`.`unencrypted`";
    // With a primary key: a server may refuse a table without one, encrypted or not.
    let made =
        format!("CREATE TABLE {TABLE} (nothing int PRIMARY KEY) ENGINE=InnoDB ENCRYPTED=NO COMMENT 'made by tithe'");
    match session.run(&made) {
        Ok(_) => session.run(&format!("DROP TABLE {TABLE}")).map(|_| None),
        Err(Fault::Server(words)) => Ok(Some(format!("refused ({words})"))),
        Err(fault) => Err(fault),
    }
}
