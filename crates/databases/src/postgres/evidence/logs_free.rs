//! What PostgreSQL's logs repeat: the shared check, with PostgreSQL's way of writing a token into its log.

use tithe_machine::fault::Fault;
use tithe_model::record::Role;
use tithe_plugin::{
    checks::{canary::Targets, logs_free::LogsFree},
    evidence::CheckContext,
    session::SqlSession as _,
};

use super::formats::Format;
use crate::{
    evidence::marked::{Log, Reader},
    postgres::schema::administrator,
};

/// PostgreSQL's log.
pub static LOG: Log = Log { plant, served };

/// For logs that are meant to tell who did what: that they tell the values too is not a failure, but good to know.
pub fn disclosure() -> LogsFree {
    LogsFree::new(Role::Disclosure, Targets::Everything, plant)
}

/// Makes the server log `token`. The level LOG is written whatever `log_min_messages` says, FATAL and PANIC aside.
///
/// # Errors
/// The server's error.
pub fn plant(context: &CheckContext<'_>, token: &str) -> Result<(), Fault> {
    let mut session = administrator(context.server, context.setup)?;
    let token = token.replace('\'', "''");
    session.run(&format!("DO $tithe$ BEGIN RAISE LOG '%', '{token}'; END $tithe$")).map(drop)
}

/// The log that an attached server shows: this needs `logging_collector` and an account of the roles `pg_monitor` and
/// `pg_read_server_files`. Its formats all read as that of `stderr`.
fn served(context: &CheckContext<'_>) -> Option<Reader> {
    let mut session = administrator(context.server, context.setup).ok()?;
    let formats = Format::collected(&session.value("SHOW log_destination").ok()?);
    let (format, name) = formats.into_iter().find_map(|format| {
        let name = session.value(&format!("SELECT pg_current_logfile('{}')", format.name())).ok()?;
        Some((format, name.replace('\'', "''")))
    })?;
    let length: u64 = session.value(&format!("SELECT size FROM pg_stat_file('{name}')")).ok()?.parse().ok()?;
    let added = format!("SELECT convert_from(pg_read_binary_file('{name}', {length}, 1000000000), 'SQL_ASCII')");
    Some(Box::new(move |context| Ok(format.to_text(administrator(context.server, context.setup)?.value(&added)?))))
}
