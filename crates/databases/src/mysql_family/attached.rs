//! Whether a server that Tithe did not start can be measured, and what keeps its protections from being proven.

use tithe_machine::{fault::Fault, launch::Server};
use tithe_plugin::{
    database::{IDLE_AT_LEAST_S, Lack, Remedy, refuse},
    session::{Connection as _, SqlSession as _},
    setup::Setup,
};

use super::{access::Access, session::WireSession};

/// Looks whether `server` takes writes and leaves silent connections open.
///
/// # Errors
/// [`Fault::Refused`] with all that stands against it and what to change; the server's error.
pub fn check(access: &Access, server: &Server, setup: &Setup) -> Result<(), Fault> {
    refuse(&obstacles(&mut access.administrator(server, setup)?)?)
}

/// All that `server` and the account lack, for measuring and for proof.
///
/// # Errors
/// The server's error.
pub fn lacks(access: &Access, server: &Server, setup: &Setup) -> Result<Vec<Lack>, Fault> {
    let mut session = access.administrator(server, setup)?;
    let mut all = obstacles(&mut session)?;
    let account = session.account()?;
    let grants = session.run("SHOW GRANTS")?;
    if !grants.iter().flatten().flatten().any(|grant| lets_create(grant)) {
        all.push(Lack {
            why: "Tithe works in databases of its own, and no grant of this account lets it make them".to_owned(),
            remedy: Remedy::Statement(format!("GRANT ALL ON `tithe%`.* TO {account}")),
            protections: &[],
        });
    }
    // Tried in this session alone; the server names the right.
    if let Err(Fault::Refused(words)) = session.run_statement("SET SESSION sql_log_off = OFF") {
        let remedy = match words.split('`').nth(1) {
            Some(grant) => Remedy::Statement(grant.to_owned()),
            None => Remedy::Words(words.clone()),
        };
        let why = "the account may not switch on general-log for a session of its own".to_owned();
        all.push(Lack { why, remedy, protections: &["general-log"] });
    }
    const READ: [(&str, &str, &[&str]); 2] = [
        ("mysql.general_log", "the account may not read the general log, whose records are counted", &["general-log"]),
        (
            "performance_schema.threads",
            "the account does not see how other clients are connected, which `tithe witness` and `inspect` look at",
            &["tls"],
        ),
    ];
    for (table, why, protections) in READ {
        if let Err(Fault::Refused(_)) = session.run(&format!("SELECT 1 FROM {table} LIMIT 0")) {
            let remedy = Remedy::Statement(format!("GRANT SELECT ON {table} TO {account}"));
            all.push(Lack { why: why.to_owned(), remedy, protections });
        }
    }
    Ok(all)
}

/// What keeps the server from being measured.
fn obstacles(session: &mut WireSession) -> Result<Vec<Lack>, Fault> {
    let mut all = Vec::new();
    if !["0", "OFF"].contains(&session.value("SELECT @@GLOBAL.read_only")?.as_str()) {
        all.push(Lack {
            why: "it is read-only (`read_only`), as replicas are, and Tithe loads records of its own".to_owned(),
            remedy: Remedy::Words(
                "name the server that it replicates, or say `SET GLOBAL read_only = OFF` where it replicates none"
                    .to_owned(),
            ),
            protections: &[],
        });
    }
    let silent_s: u64 = session.value("SELECT @@SESSION.wait_timeout")?.parse().unwrap_or(IDLE_AT_LEAST_S);
    if silent_s < IDLE_AT_LEAST_S {
        all.push(Lack {
            why: format!(
                "it closes connections that are silent for {silent_s} s, and those of an arm are silent while others are \
                 measured"
            ),
            remedy: Remedy::Statement("SET GLOBAL wait_timeout = 28800".to_owned()),
            protections: &[],
        });
    }
    Ok(all)
}

/// True for a grant, in the words of `SHOW GRANTS`, that lets an account make databases called `tithe…`.
fn lets_create(grant: &str) -> bool {
    let parts = grant.strip_prefix("GRANT ").and_then(|rest| rest.split_once(" ON "));
    let Some((rights, object)) = parts else { return false };
    let creates = rights.split(", ").any(|right| ["ALL PRIVILEGES", "CREATE"].contains(&right));
    creates && ["*.*", "`tithe%`.*", "`%`.*"].iter().any(|schema| object.starts_with(schema))
}

#[cfg(test)]
mod tests {
    use super::lets_create;

    #[test]
    fn grants_that_make_databases_are_known() {
        for grant in [
            "GRANT ALL PRIVILEGES ON *.* TO `ann`@`%`",
            "GRANT SELECT, CREATE ON *.* TO `ann`@`%` WITH GRANT OPTION",
            "GRANT ALL PRIVILEGES ON `tithe%`.* TO `ann`@`%`",
        ] {
            assert!(lets_create(grant), "{grant}");
        }
        for grant in [
            "GRANT SELECT, PROCESS ON *.* TO `ann`@`%`",
            "GRANT CREATE USER ON *.* TO `ann`@`%`",
            "GRANT ALL PRIVILEGES ON `shop`.* TO `ann`@`%`",
            "GRANT `dba` TO `ann`@`%`",
        ] {
            assert!(!lets_create(grant), "{grant}");
        }
    }
}
