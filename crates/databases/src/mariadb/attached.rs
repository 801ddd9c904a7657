//! What a MariaDB that Tithe did not start lacks, in addition to the family's needs.

use tithe_machine::fault::Fault;
use tithe_plugin::database::{Lack, Remedy, Without};

use crate::mysql_family::{
    attached::threads,
    evidence::served::{HERE, file_here},
    session::WireSession,
};

/// Everything that `account`, the one of this session, lacks.
///
/// # Errors
/// The server's error.
pub fn own_lacks(session: &mut WireSession, account: &str) -> Result<Vec<Lack>, Fault> {
    let why = "a table says how other clients are connected";
    let figures = "information on other clients in `tithe witness` and `tithe inspect`";
    let mut all: Vec<Lack> = threads(session, account, why, figures)?.into_iter().collect();
    all.extend(audit_log(session)?.map(|(why, remedy)| Lack {
        why: format!("records of the audit log are counted, and {why}"),
        remedy,
        without: Without::Proof(&["server-audit"]),
    }));
    Ok(all)
}

/// What the audit log lacks: its plugin must be loaded and on, and write a file that is readable here.
fn audit_log(session: &mut WireSession) -> Result<Option<(String, Remedy)>, Fault> {
    const EVENTS: &str = "SET GLOBAL server_audit_events = 'CONNECT,QUERY'";
    const ON: &str = "SET GLOBAL server_audit_logging = ON";
    let on = session.setting("server_audit_logging")?;
    let output = session.setting("server_audit_output_type")?;
    Ok(match on.as_str() {
        "" => {
            let install = format!("INSTALL SONAME 'server_audit'; {EVENTS}; {ON}");
            Some(("its plugin is not loaded".to_owned(), Remedy::Statement(install)))
        }
        "OFF" => Some(("it is off".to_owned(), Remedy::Statement(format!("{EVENTS}; {ON}")))),
        _ if !output.eq_ignore_ascii_case("file") => Some((
            "it goes to syslog, where it cannot be distinguished from others'".to_owned(),
            Remedy::Statement("SET GLOBAL server_audit_output_type = 'file'".to_owned()),
        )),
        _ => {
            let file = session.setting("server_audit_file_path")?;
            let unread = file_here(session, &file).err();
            unread.map(|why| (format!("its file {file} cannot be read here ({why})"), Remedy::Words(HERE.to_owned())))
        }
    })
}
