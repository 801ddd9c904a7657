//! What prevents Tithe from measuring a server that it did not start, or from proving a protection there.

use tithe_machine::{fault::Fault, launch::Server};
use tithe_plugin::{
    database::{IDLE_AT_LEAST_S, Lack, Remedy, Without},
    session::Connection as _,
    setup::Setup,
};

use super::{
    Flavour,
    evidence::served::{HERE, file_here},
    session::WireSession,
};
use crate::attached::unseen_process;

/// The protection that both products have, in the form in which a lack names the affected protections.
const GENERAL_LOG: &[&str] = &["general-log"];

/// Everything that `server` and the account lack.
///
/// # Errors
/// The server's error.
pub fn lacks(flavour: &Flavour, server: &Server, setup: &Setup) -> Result<Vec<Lack>, Fault> {
    let mut session = flavour.access.administrator(server, setup)?;
    let account = session.account()?;
    let mut all = obstacles(&mut session, setup)?;
    all.extend(rights(&mut session, &account, setup)?);
    all.extend(tls(&mut session)?);
    all.extend(general_log(&mut session, &account)?);
    all.extend((flavour.own_lacks)(&mut session, &account)?);
    if let Some(descriptor) = session.descriptor() {
        all.extend(unseen_process(descriptor, flavour.entry.server_programs, None));
    }
    Ok(all)
}

/// What prevents the server from being measured, whatever the account.
fn obstacles(session: &mut WireSession, setup: &Setup) -> Result<Vec<Lack>, Fault> {
    let mut all = Vec::new();
    if !setup.tables.reads_only() && !["0", "OFF"].contains(&session.value("SELECT @@GLOBAL.read_only")?.as_str()) {
        all.push(Lack {
            why: "it is read-only (`read_only`), as replicas are, and Tithe loads records of its own".to_owned(),
            remedy: Remedy::Words(
                "name the server that it replicates, or run `SET GLOBAL read_only = OFF` where it replicates none"
                    .to_owned(),
            ),
            without: Without::Measurement,
        });
    }
    let idle_s: u64 = session.value("SELECT @@SESSION.wait_timeout")?.parse().unwrap_or(IDLE_AT_LEAST_S);
    if idle_s < IDLE_AT_LEAST_S {
        all.push(Lack {
            why: format!(
                "it closes connections that are idle for {idle_s} s, and an arm's connections are idle while others are \
                 measured"
            ),
            remedy: Remedy::Statement("SET GLOBAL wait_timeout = 28800".to_owned()),
            without: Without::Measurement,
        });
    }
    Ok(all)
}

/// A database that does not exist, with a name like Tithe's own. A refusal there means that a privilege is missing;
/// everything else fails because the database does not exist.
const NOWHERE: &str = "tithe_is_not_here_and_tries_its_rights";

/// Rights in databases of Tithe's own that the account lacks.
fn rights(session: &mut WireSession, account: &str, setup: &Setup) -> Result<Option<Lack>, Fault> {
    const NEEDED: [(&str, &str); 7] = [
        ("CREATE", "CREATE TABLE {}.t (a int)"),
        ("DROP", "DROP DATABASE {}"),
        ("INDEX", "CREATE INDEX i ON {}.t (a)"),
        ("SELECT", "SELECT 1 FROM {}.t"),
        ("INSERT", "INSERT INTO {}.t VALUES (1)"),
        ("UPDATE", "UPDATE {}.t SET a = 1"),
        ("DELETE", "DELETE FROM {}.t"),
    ];
    let mut missing = Vec::new();
    for (right, statement) in NEEDED {
        if refused(session, &statement.replace("{}", NOWHERE))?.is_some() {
            missing.push(right);
        }
    }
    let rights = if missing.len() == NEEDED.len() { "ALL".to_owned() } else { missing.join(", ") };
    Ok((!missing.is_empty()).then(|| Lack {
        why: "Tithe makes, fills and removes databases of its own, and the account may not".to_owned(),
        remedy: Remedy::Statement(format!("GRANT {rights} ON `tithe%`.* TO {account}")),
        // Statements on the user's own tables do not need Tithe's tables, and some proofs do not need them either.
        without: if setup.tables.is_in_place() { Without::Proof(GENERAL_LOG) } else { Without::Measurement },
    }))
}

/// The server's message if it refuses `statement` to this account.
fn refused(session: &mut WireSession, statement: &str) -> Result<Option<String>, Fault> {
    match session.run_statement(statement) {
        Err(Fault::Refused(words)) => Ok(Some(words)),
        Ok(()) | Err(Fault::Server(_)) => Ok(None),
        Err(fault) => Err(fault),
    }
}

/// TLS, if the server has none. Newer versions do not report it in this way, and always have it.
fn tls(session: &mut WireSession) -> Result<Option<Lack>, Fault> {
    Ok((session.setting("have_ssl")? == "DISABLED").then(|| Lack {
        why: "the server speaks no TLS".to_owned(),
        remedy: Remedy::Words(
            "give it a certificate (ssl_cert, ssl_key in its file of settings) and restart it".to_owned(),
        ),
        without: Without::Proof(&["tls"]),
    }))
}

/// What the general log lacks to be switched per session and to have its records counted.
fn general_log(session: &mut WireSession, account: &str) -> Result<Vec<Lack>, Fault> {
    let mut all = Vec::new();
    let mut lack = |why: String, remedy, without| all.push(Lack { why, remedy, without });
    // Tried in this session alone; the server names the right.
    if let Some(words) = refused(session, "SET SESSION sql_log_off = OFF")? {
        let remedy = match words.split('`').nth(1) {
            Some(grant) => Remedy::Statement(grant.to_owned()),
            None => Remedy::Words(words.clone()),
        };
        let why = "arms on one server switch general-log per session, and the account may not".to_owned();
        lack(why, remedy, Without::Switch(GENERAL_LOG));
    }
    if session.setting("general_log")? != "ON" {
        let on = Remedy::Statement("SET GLOBAL general_log = ON".to_owned());
        lack("records of the general log are counted, and it is off".to_owned(), on, Without::Proof(GENERAL_LOG));
    }
    if session.setting("sql_log_off")? != "ON" {
        let on = Remedy::Statement("SET GLOBAL sql_log_off = ON".to_owned());
        let why =
            "where arms share a server the general log leaves out sessions that do not ask for it, and it does not";
        lack(why.to_owned(), on, Without::Proof(GENERAL_LOG));
    }
    let (output, file) = (session.setting("log_output")?, session.setting("general_log_file")?);
    let to_table = Remedy::Statement("SET GLOBAL log_output = 'TABLE'".to_owned());
    let unreadable = match (output.contains("TABLE"), output.contains("FILE")) {
        (true, _) => None,
        (false, true) => match file_here(session, &file) {
            Ok(_) => return Ok(all),
            Err(why) => {
                Some(format!("it is the file {file}, which cannot be read here ({why}); {HERE}, or have a table"))
            }
        },
        (false, false) => Some("it goes nowhere (log_output)".to_owned()),
    };
    if let Some(unreadable) = unreadable {
        lack(
            format!("records of the general log are counted, and {unreadable}"),
            to_table,
            Without::Proof(GENERAL_LOG),
        );
    }
    if refused(session, "SELECT 1 FROM mysql.general_log LIMIT 0")?.is_some() {
        let grant = Remedy::Statement(format!("GRANT SELECT ON mysql.general_log TO {account}"));
        let why = "Tithe counts records of the general log, and the account may not read its table".to_owned();
        lack(why, grant, Without::Proof(GENERAL_LOG));
    }
    Ok(all)
}

/// The privilege to read `performance_schema.threads`, which `why` needs; without it these `figures` are missing.
///
/// # Errors
/// The server's error.
pub fn threads(
    session: &mut WireSession,
    account: &str,
    why: &str,
    figures: &'static str,
) -> Result<Option<Lack>, Fault> {
    const TABLE: &str = "performance_schema.threads";
    Ok(refused(session, &format!("SELECT 1 FROM {TABLE} LIMIT 0"))?.map(|_| Lack {
        why: format!("{why}, and the account may not"),
        remedy: Remedy::Statement(format!("GRANT SELECT ON {TABLE} TO {account}")),
        without: Without::Figures(figures),
    }))
}
