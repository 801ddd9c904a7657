//! Does the server report that everything is encrypted that was requested?

use std::{fs::File, io::Read as _, path::Path};

use tithe_machine::{fault::Fault, observation::Observation};
use tithe_plugin::{
    evidence::{Check, CheckContext, CheckEntry},
    session::SqlSession as _,
};

use super::parts::EncryptedLogs;
use crate::{
    mysql::{
        access::ACCESS,
        at_rest::{KEYRING_UNTOLD, keyring, unencrypted, unencrypted_logs},
        launch::{BINLOG, REDO, TABLES, UNDO},
    },
    mysql_family::{
        evidence::{all, first, switches_off},
        session::WireSession,
    },
};

/// Asks the server whether its keyring works, which switches are on, and which tablespaces and binary logs are not
/// encrypted. Also reads the first bytes of each binary log, which show whether it is encrypted. Id
/// `encryption-in-force`.
///
/// The server's report does not prove that bytes are unreadable; the canaries do.
pub struct EncryptionInForce(pub EncryptedLogs);

/// The first bytes of an encrypted binary log (`BINLOG_MAGIC`, `\xfebin`, if it is not encrypted; MySQL documentation,
/// "Encrypting Binary Log Files and Relay Log Files").
const ENCRYPTED_LOG: [u8; 4] = *b"\xfdbin";

impl Check for EncryptionInForce {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("encryption-in-force")
    }

    fn claim(&self) -> String {
        let logs = if self.0.any() { format!(", and that {} are", self.0.noun()) } else { String::new() };
        format!("the server reports that its keyring works and that every table is encrypted{logs}")
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        let EncryptedLogs { redo, undo, binlog } = self.0;
        let mut session = ACCESS.administrator(context.server, context.setup)?;
        let (active, keyring) = match keyring(&mut session)? {
            // A server without a keyring encrypts nothing, so encrypted data shows that it has one.
            None => (true, KEYRING_UNTOLD.to_owned()),
            Some(told) => {
                let status =
                    |name: &str| told.iter().find(|(key, _)| key == name).map_or("none", |(_, value)| value.as_str());
                let [name, state] = ["Component_name", "Component_status"].map(status);
                (state == "Active", format!("{name} is {state}"))
            }
        };
        let switches = [(true, TABLES), (redo, REDO), (undo, UNDO), (binlog, BINLOG)].into_iter();
        let off = switches_off(&mut session, switches.filter(|(asked, _)| *asked).map(|(_, name)| (name, "ON")))?;
        let mut open = unencrypted(&mut session, undo)?;
        if binlog {
            open.extend(unencrypted_logs(&mut session)?);
            open.extend(plain_logs(&mut session)?);
        }
        let quotation =
            format!("keyring: {keyring}; not encrypted: {}; switches that are off: {}", first(&open), all(&off),);
        let holds = active && open.is_empty() && off.is_empty();
        Ok(if holds { Observation::Protected(quotation) } else { Observation::Exposed(quotation) })
    }
}

/// Binary logs that do not begin as encrypted ones do.
fn plain_logs(session: &mut WireSession) -> Result<Vec<String>, Fault> {
    let Some(base) = session.shown("GLOBAL VARIABLES", "log_bin_basename")?.filter(|base| !base.is_empty()) else {
        return Ok(Vec::new());
    };
    let folder = Path::new(&base).parent().unwrap_or(Path::new("/")).to_owned();
    let names = session.run("SHOW BINARY LOGS")?.into_iter().filter_map(|row| row.into_iter().next().flatten());
    let mut plain = Vec::new();
    for name in names {
        let path = folder.join(&name);
        let mut magic = [0; 4];
        let read = File::open(&path).and_then(|mut file| file.read_exact(&mut magic));
        read.map_err(|error| Fault::machine(path.display(), error))?;
        if magic != ENCRYPTED_LOG {
            plain.push(format!("{name} begins with {}", magic.escape_ascii()));
        }
    }
    Ok(plain)
}
