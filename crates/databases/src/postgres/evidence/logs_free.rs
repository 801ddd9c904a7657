//! Do PostgreSQL's logs repeat values? The shared check, with PostgreSQL's way of writing a token into its log.

use std::{fs::File, path::PathBuf};

use tithe_machine::{fault::Fault, secret::hex};
use tithe_model::record::Role;
use tithe_plugin::{
    checks::{canary::Targets, logs_free::LogsFree},
    evidence::CheckContext,
    session::SqlSession as _,
};

use super::formats::Format;
use crate::{
    evidence::marked::{BEFORE_BYTES, Gained, Log, ROTATED, Reader, before, tail},
    postgres::{
        schema::{administrator, folder_here},
        session::PostgresSession,
    },
};

/// PostgreSQL's log.
pub static LOG: Log = Log { plant, served };

/// For logs that are meant to record who did what. If they hold the values too, that is not a failure, but worth
/// knowing.
pub fn disclosure() -> LogsFree {
    LogsFree::new(Role::Disclosure, Targets::Everything, plant)
}

/// Makes the server log `token`. The level LOG is written at every `log_min_messages` except FATAL and PANIC.
///
/// # Errors
/// The server's error.
pub fn plant(context: &CheckContext<'_>, token: &str) -> Result<(), Fault> {
    let mut session = administrator(context.server, context.setup)?;
    let token = token.replace('\'', "''");
    session.run(&format!("DO $tithe$ BEGIN RAISE LOG '%', '{token}'; END $tithe$")).map(drop)
}

/// The log of an attached server, which it keeps in files (`logging_collector`). It is read directly if the files are
/// on this machine and readable, otherwise through the server. All formats are read in the form of `stderr`.
fn served(context: &CheckContext<'_>) -> Result<Reader, String> {
    let mut session = administrator(context.server, context.setup).map_err(|fault| fault.to_string())?;
    let (format, name) = collected(&mut session)?;
    let folder = folder_here(&mut session).filter(|folder| File::open(folder.join(&name)).is_ok());
    if folder.is_none() {
        may_call(&mut session, &[STAT, READ])?;
    }
    let place = Collected { folder };
    let length = place.length(&mut session, &name).map_err(|fault| fault.to_string())?;
    let known = place.before(&mut session, &name, length).map_err(|fault| fault.to_string())?;
    Ok(Box::new(move |context| {
        let mut session = administrator(context.server, context.setup)?;
        let is_anew = place.before(&mut session, &name, length)? != known;
        let mut text = place.added(&mut session, &name, if is_anew { 0 } else { length })?;
        // The server has switched to another log file; records between the two may be missing.
        let now = current(&mut session, format)?;
        let is_moved = now != name;
        if is_moved {
            text += &place.added(&mut session, &now, 0)?;
        }
        Ok(Gained { text: format.to_text(text), doubt: (is_anew || is_moved).then_some(ROTATED) })
    }))
}

/// Functions that an account must be allowed to call: they return the file, its length and its content.
const CURRENT: &str = "pg_current_logfile(text)";
const STAT: &str = "pg_stat_file(text)";
const READ: &str = "pg_read_binary_file(text,bigint,bigint)";

/// Format and name of the file that the server logs to now.
fn collected(session: &mut PostgresSession) -> Result<(Format, String), String> {
    let mut setting = |name: &str| session.value(&format!("SHOW {name}")).map_err(|fault| fault.to_string());
    if setting("logging_collector")? != "on" {
        return Err(
            "the server keeps its log in no file of its own: set `logging_collector = on` and restart it".to_owned()
        );
    }
    let destination = setting("log_destination")?;
    // An account that may not ask for the file name may not read the file through the server either: both are reported
    // at once.
    may_call(session, &[CURRENT]).or_else(|_| may_call(session, &[CURRENT, STAT, READ]))?;
    let formats = Format::collected(&destination).into_iter();
    let mut names = formats.filter_map(|format| Some((format, current(session, format).ok()?)));
    names.next().ok_or_else(|| {
        format!(
            "the log goes to {destination}, which cannot be read here: add `stderr`, `csvlog` or `jsonlog` to \
             `log_destination`"
        )
    })
}

/// The file that the server logs to in `format` now.
fn current(session: &mut PostgresSession, format: Format) -> Result<String, Fault> {
    session.value(&format!("SELECT pg_current_logfile('{}')", format.name()))
}

/// Checks whether this account may call `functions`; if not, reports the GRANT that would allow it.
fn may_call(session: &mut PostgresSession, functions: &[&'static str]) -> Result<(), String> {
    let missing = not_callable(session, functions).map_err(|fault| fault.to_string())?;
    if missing.is_empty() {
        return Ok(());
    }
    let account = session.value("SELECT quote_ident(current_user)").map_err(|fault| fault.to_string())?;
    Err(format!("the account may not read the server's log; a superuser runs `{}`", grant(&missing, &account)))
}

/// Those of `functions` that this account may not call.
fn not_callable(session: &mut PostgresSession, functions: &[&'static str]) -> Result<Vec<&'static str>, Fault> {
    let mut missing = Vec::new();
    for function in functions {
        let asked = format!("SELECT has_function_privilege('pg_catalog.{function}', 'EXECUTE')");
        if session.value(&asked)? != "t" {
            missing.push(*function);
        }
    }
    Ok(missing)
}

/// A format of the files that a log of this `destination` is written to; `None` if it is not written to files.
pub fn format(destination: &str) -> Option<Format> {
    Format::collected(destination).into_iter().next()
}

/// The functions without which this account cannot read the server's log; `None` if it can.
///
/// # Errors
/// The server's error.
pub fn unreadable(session: &mut PostgresSession) -> Result<Option<Vec<&'static str>>, Fault> {
    let is_here = folder_here(session).is_some_and(|folder| File::open(folder).is_ok());
    let needed = if is_here { &[CURRENT][..] } else { &[CURRENT, STAT, READ] };
    let missing = not_callable(session, needed)?;
    Ok(Some(missing).filter(|missing| !missing.is_empty()))
}

/// The statement that allows `account` to call the functions `missing`.
pub fn grant(missing: &[&str], account: &str) -> String {
    format!("GRANT EXECUTE ON FUNCTION {} TO {account}", missing.join(", "))
}

/// How files of the log are read.
struct Collected {
    /// The data folder, if it is on this machine and the log is readable; `None`: through the server.
    folder: Option<PathBuf>,
}

impl Collected {
    fn length(&self, session: &mut PostgresSession, name: &str) -> Result<u64, Fault> {
        if let Some(folder) = &self.folder {
            return Ok(folder.join(name).metadata()?.len());
        }
        let length = session.value(&format!("SELECT size FROM pg_stat_file('{}')", name.replace('\'', "''")))?;
        length.parse().map_err(|_| Fault::Wrong(format!("the length of the log is `{length}`")))
    }

    /// The bytes before `length`, as text. They show later whether it is still the same file.
    fn before(&self, session: &mut PostgresSession, name: &str, length: u64) -> Result<String, Fault> {
        if let Some(folder) = &self.folder {
            let path = folder.join(name);
            let read = || before(&File::open(&path)?, length);
            return Ok(hex(&read().map_err(|error| Fault::machine(path.display(), error))?));
        }
        let (name, from) = (name.replace('\'', "''"), length.saturating_sub(BEFORE_BYTES));
        let count = length.min(BEFORE_BYTES);
        session.value(&format!("SELECT encode(pg_read_binary_file('{name}', {from}, {count}), 'hex')"))
    }

    fn added(&self, session: &mut PostgresSession, name: &str, from: u64) -> Result<String, Fault> {
        if let Some(folder) = &self.folder {
            return tail(&folder.join(name), from);
        }
        let name = name.replace('\'', "''");
        session.value(&format!("SELECT convert_from(pg_read_binary_file('{name}', {from}, 1000000000), 'SQL_ASCII')"))
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, io::Write as _};

    use expect_test::expect;

    use super::*;
    use crate::{postgres::told::server, told::Told};

    /// A server that writes its log to the file `log/a.log`, which has 100 bytes, for an account with all rights.
    fn collecting(destination: &'static str) -> Told {
        server(
            vec![("logging_collector", "on"), ("log_destination", destination)],
            vec![
                ("has_function_privilege", Ok(&[&["t"]])),
                ("SELECT pg_current_logfile(", Ok(&[&["log/a.log"]])),
                ("FROM pg_stat_file('log/a.log')", Ok(&[&["100"]])),
                ("'log/a.log', 36, 64", Ok(&[&["00ff"]])),
                ("'log/a.log', 100, ", Ok(&[&["LOG:  after\n"]])),
                ("quote_ident(current_user)", Ok(&[&["ann"]])),
                ("system_identifier", Ok(&[&["72623859790382856"]])),
            ],
        )
    }

    /// What the log of `told` gains while something `happens`, or why it cannot be read.
    fn gained(told: &Told, happens: impl FnOnce()) -> Result<String, String> {
        let Gained { text, doubt } = told.gained(&LOG, happens)?;
        assert_eq!(doubt, None, "{text}");
        Ok(text)
    }

    #[test]
    fn a_log_of_a_running_server_is_read_through_it_by_an_account_that_may() {
        let told = |told: Told| gained(&told, || ());
        assert_eq!(told(collecting("stderr, syslog")), Ok("LOG:  after\n".to_owned()));
        let short = collecting("stderr")
            .telling("FROM pg_stat_file", &[&["10"]])
            .telling("'log/a.log', 0, 10)", &[&["00ff"]])
            .telling("'log/a.log', 10, ", &[&["LOG:  more\n"]]);
        assert_eq!(told(short), Ok("LOG:  more\n".to_owned()));
        let off = "the server keeps its log in no file of its own: set `logging_collector = on` and restart it";
        assert_eq!(told(collecting("stderr").with("logging_collector", "off")), Err(off.to_owned()));
        let elsewhere = "the log goes to syslog, which cannot be read here: add `stderr`, `csvlog` or `jsonlog` to \
                         `log_destination`";
        assert_eq!(told(collecting("syslog")), Err(elsewhere.to_owned()));
        let granted = |functions: &str| {
            Err(format!(
                "the account may not read the server's log; a superuser runs `GRANT EXECUTE ON FUNCTION {functions} TO \
                 ann`"
            ))
        };
        let without = |words: &'static str| told(collecting("stderr").telling(words, &[&["f"]]));
        assert_eq!(without("has_function_privilege('pg_catalog.pg_stat_file"), granted(STAT));
        let all = format!("{CURRENT}, {STAT}, {READ}");
        assert_eq!(without("has_function_privilege"), granted(&all), "all that is missing at once");
    }

    #[test]
    fn a_log_in_a_file_of_this_machine_is_read_there_if_the_server_is_the_one_with_this_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log/a.log");
        for name in ["global", "log"] {
            fs::create_dir(folder.path().join(name)).expect("made");
        }
        fs::write(&path, "LOG:  before\n").expect("written");
        let append = || {
            let mut file = File::options().append(true).open(&path).expect("it is there");
            file.write_all(b"LOG:  after\n").expect("written");
        };
        let data: &'static str = folder.path().display().to_string().leak();
        // It may ask for the file's name, and not read it through the server.
        let told = collecting("stderr")
            .telling("has_function_privilege", &[&["f"]])
            .telling("has_function_privilege('pg_catalog.pg_current_logfile", &[&["t"]])
            .telling("pg_postmaster_start_time", &[&["1000"]])
            .with("data_directory", data);
        fs::write(folder.path().join("postmaster.pid"), "4711\n/data\n1000\n").expect("written");
        let control = folder.path().join("global/pg_control");
        fs::write(&control, 72_623_859_790_382_856_u64.to_ne_bytes()).expect("written");
        assert_eq!(gained(&told, append), Ok("LOG:  after\n".to_owned()));
        fs::write(&control, 7_u64.to_ne_bytes()).expect("written");
        let other = gained(&told, || ()).expect_err("the folder is another server's");
        assert!(other.starts_with("the account may not read the server's log"), "{other}");
    }

    #[test]
    fn rights_that_are_missing_are_named_as_a_statement() {
        expect!["GRANT EXECUTE ON FUNCTION pg_current_logfile(text), pg_stat_file(text) TO ann"]
            .assert_eq(&grant(&[CURRENT, STAT], "ann"));
    }
}
