//! What a MySQL that Tithe did not start lacks, in addition to the family's needs.

use tithe_machine::fault::Fault;
use tithe_plugin::{
    database::{Lack, Remedy, Without},
    session::SqlSession as _,
};

use crate::mysql_family::{attached::threads, session::WireSession};

/// Everything that `account`, the one of this session, lacks.
///
/// # Errors
/// The server's error.
pub fn own_lacks(session: &mut WireSession, account: &str) -> Result<Vec<Lack>, Fault> {
    let why = "a table says which thread serves a connection, and how other clients are connected";
    let figures = "net time, and no information on other clients in `tithe witness` and `tithe inspect`";
    let mut all: Vec<Lack> = threads(session, account, why, figures)?.into_iter().collect();
    let grants = session.run("SHOW GRANTS")?;
    let leaves_out = |grant: &String| {
        ["CONNECTION_ADMIN", "SUPER", "ALL PRIVILEGES ON *.*"].iter().any(|right| grant.contains(right))
    };
    if !grants.iter().flatten().flatten().any(leaves_out) {
        all.push(Lack {
            why: "where arms share a server the general log leaves out sessions of this right alone (sql_log_off)"
                .to_owned(),
            remedy: Remedy::Statement(format!("GRANT CONNECTION_ADMIN ON *.* TO {account}")),
            without: Without::Proof(&["general-log"]),
        });
    }
    Ok(all)
}
