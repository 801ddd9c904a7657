//! The logs of an attached server. Those that are tables are read through the server; a file is read if it is on this
//! machine.

use std::{fs, path::Path};

use tithe_machine::fault::Fault;
use tithe_plugin::{evidence::CheckContext, session::SqlSession as _};

use crate::{
    evidence::marked::{Gained, OWN, ROTATED, Reader, growing},
    mysql_family::{access::Access, session::WireSession},
};

/// The general log from now on: the table if the server writes one, otherwise the file.
///
/// # Errors
/// Why it cannot be read, with what to change.
pub fn general_log(access: &'static Access, context: &CheckContext<'_>) -> Result<Reader, String> {
    let mut session = administrator(access, context)?;
    let mut value = |name: &str| session.setting(name).map_err(|fault| fault.to_string());
    let (on, output, file) = (value("general_log")?, value("log_output")?, value("general_log_file")?);
    if on != "ON" {
        // The server reports that it writes no log: nothing to read, and no records.
        return Ok(Box::new(|_| Ok(Gained::default())));
    }
    if output.contains("TABLE") {
        return table(access, &mut session);
    }
    if !output.contains("FILE") {
        return Err(format!("log_output = {output}: the general log goes nowhere; set TABLE or FILE"));
    }
    file_here(&mut session, &file).map_err(|why| {
        format!(
            "the general log is the file {file}, which cannot be read here ({why}): {HERE}, or run `SET GLOBAL \
             log_output = 'TABLE'`"
        )
    })
}

/// How to make a file readable.
pub const HERE: &str = "run Tithe on the server's machine, by an account that may read it";

fn administrator(access: &Access, context: &CheckContext<'_>) -> Result<WireSession, String> {
    access.administrator(context.server, context.setup).map_err(|fault| fault.to_string())
}

/// The table `mysql.general_log` from its last row on. Each row has the form of a line in the file.
fn table(access: &'static Access, session: &mut WireSession) -> Result<Reader, String> {
    let rows = match counted(session) {
        Ok(rows) => rows,
        Err(Fault::Refused(_)) => {
            let account = session.account().map_err(|fault| fault.to_string())?;
            return Err(format!(
                "the account may not read the general log: GRANT SELECT ON mysql.general_log TO {account}"
            ));
        }
        Err(fault) => return Err(fault.to_string()),
    };
    Ok(Box::new(move |context| {
        let mut session = access.administrator(context.server, context.setup)?;
        // A table that was emptied or replaced is read from its start.
        let is_anew = counted(&mut session)? < rows;
        let rows = if is_anew { 0 } else { rows };
        // A log is read in the order in which it was written: its table is a file of lines without an index.
        let sql = format!(
            "{OWN} SELECT thread_id, command_type, argument FROM mysql.general_log LIMIT 1000000000 OFFSET {rows}"
        );
        let lines = session.run(&sql)?.into_iter().map(|row| {
            let [thread, kind, argument] = <[_; 3]>::try_from(row).unwrap_or_default().map(Option::unwrap_or_default);
            format!("\t\t{thread} {kind}\t{}\n", argument.replace('\n', " "))
        });
        Ok(Gained { text: lines.collect(), doubt: is_anew.then_some(ROTATED) })
    }))
}

/// How many rows the table has.
fn counted(session: &mut WireSession) -> Result<u64, Fault> {
    let rows = session.value(&format!("{OWN} SELECT COUNT(*) FROM mysql.general_log"))?;
    rows.parse().map_err(|_| Fault::Wrong(format!("mysql.general_log has `{rows}` rows")))
}

/// The name of this machine, as a server on it reports it.
pub fn this_machine() -> String {
    fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned()
}

/// True if a server that calls its machine `host` is on this one. A replica on another may have the same folders and
/// tables.
pub fn is_this_machine(host: &str) -> bool {
    host == this_machine()
}

/// The text that is added to the file that a setting calls `name`, if it is this server's and on this machine.
///
/// # Errors
/// Why it cannot be read here.
pub fn file_here(session: &mut WireSession, name: &str) -> Result<Reader, String> {
    let mut value = |name: &str| session.setting(name).map_err(|fault| fault.to_string());
    let (host, folder) = (value("hostname")?, value("datadir")?);
    if !is_this_machine(&host) {
        return Err(format!("the server is on {host}, which is not this machine"));
    }
    growing(Path::new(&folder).join(name))
}
