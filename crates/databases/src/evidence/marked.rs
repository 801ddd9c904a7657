//! Statements that can be told from all others, and what the server's log says about them.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{Read as _, Seek as _, SeekFrom},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use tithe_machine::fault::Fault;
use tithe_plugin::{
    checks::{canary::key_value, logs_free::Plant},
    evidence::CheckContext,
    session::{Discard, Fields, KeyValueSession, Request},
};

/// Reads what the log of an attached server has gained, through the server itself.
pub type Reader = Box<dyn Fn(&CheckContext<'_>) -> Result<String, Fault>>;

/// How one product's log is reached.
pub struct Log {
    /// Writes a token into it.
    pub plant: Plant,
    /// Remembers how long an attached server's log is now; why it cannot be read, with what to change, where it cannot.
    pub served: fn(&CheckContext<'_>) -> Result<Reader, String>,
}

/// Sessions that send at the same time, so that a log that loses records under concurrency is caught.
pub const SESSIONS: usize = 4;
/// Records that each session inserts, reads, updates and deletes.
const RECORDS: usize = 25;
/// How long the log may lag behind the answers.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Number of statements by verb: `INSERT`, `SELECT`, `UPDATE`, `DELETE`.
pub type Counts = BTreeMap<String, usize>;

/// The server's log from a moment on.
pub enum LogGrowth {
    /// Files of a server that Tithe launched, and how long they were.
    Files(Vec<(PathBuf, u64)>),
    /// The log that an attached server shows.
    Served(Reader),
}

impl LogGrowth {
    /// Remembers how long the log is now.
    ///
    /// # Errors
    /// Why it can be read neither here nor through the server.
    pub fn begin(context: &CheckContext<'_>, log: &Log) -> Result<Self, String> {
        let length = |path: &PathBuf| Some((path.clone(), path.metadata().ok()?.len()));
        let files: Vec<_> = context.server.paths.logs.iter().filter_map(length).collect();
        if files.is_empty() { (log.served)(context).map(Self::Served) } else { Ok(Self::Files(files)) }
    }

    /// What was added since, all of it: a token is planted last, and once it is there, so is everything before it.
    /// `None` when the token does not come.
    ///
    /// # Errors
    /// When the server refuses, or a log cannot be read.
    pub fn text(&self, context: &CheckContext<'_>, log: &Log) -> Result<Option<String>, Fault> {
        let token = format!("end-of-{}", marker(context));
        (log.plant)(context, &token)?;
        let begun = Instant::now();
        loop {
            let text = self.so_far(context)?;
            if text.contains(&token) {
                return Ok(Some(text));
            }
            if begun.elapsed() > TIMEOUT {
                return Ok(None);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// What was added until now.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn so_far(&self, context: &CheckContext<'_>) -> Result<String, Fault> {
        match self {
            Self::Files(files) => files.iter().map(|(path, length)| tail(path, *length)).collect(),
            Self::Served(read) => read(context),
        }
    }
}

/// The bytes of the file at `path` from `length` on.
///
/// # Errors
/// When it cannot be read.
pub fn tail(path: &Path, length: u64) -> Result<String, Fault> {
    let mut added = Vec::new();
    let mut read = || {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(length))?;
        file.read_to_end(&mut added)
    };
    read().map_err(|error| Fault::machine(path.display(), error))?;
    Ok(String::from_utf8_lossy(&added).into_owned())
}

/// Sends marked statements and counts them with `count`, which gets the log. What was sent and what is in the log;
/// `Err` with the reason when the log cannot be read to its end.
///
/// # Errors
/// The first fault.
pub fn send_and_count(
    context: &CheckContext<'_>,
    log: &Log,
    count: impl FnOnce(&str) -> Counts,
) -> Result<Result<(Counts, Counts), String>, Fault> {
    let growth = match LogGrowth::begin(context, log) {
        Ok(growth) => growth,
        Err(why) => return Ok(Err(why)),
    };
    let sent = send(context)?;
    let Some(text) = growth.text(context, log)? else { return Ok(Err(NO_END.to_owned())) };
    Ok(Ok((sent, count(&text))))
}

/// Why nothing can be said without a log.
pub const NO_LOG: &str = "the server's log can be read neither on this machine nor through the server";
/// Why nothing can be said with a log that ends early.
pub const NO_END: &str = "a message that the server was made to log is not in its log";

/// What every key of a look starts with.
pub fn marker(context: &CheckContext<'_>) -> String {
    format!("audit-{:016x}-{}", context.nonce, if context.protected { 'g' } else { 'p' })
}

/// Sends marked statements as the measured clients do, from several sessions at once. Every record is removed again.
/// Returns the number of statements by verb.
///
/// # Errors
/// The first fault.
pub fn send(context: &CheckContext<'_>) -> Result<Counts, Fault> {
    let marker = marker(context);
    let mut sessions = Vec::new();
    for _ in 0..SESSIONS {
        sessions.push(key_value(context.connect()?)?);
    }
    let fields = context.table.fields;
    std::thread::scope(|scope| {
        let threads: Vec<_> = sessions
            .iter_mut()
            .enumerate()
            .map(|(number, session)| {
                let marker = format!("{marker}-{number}");
                scope.spawn(move || work(&mut **session, &marker, fields))
            })
            .collect();
        threads.into_iter().try_for_each(|thread| {
            thread.join().unwrap_or_else(|_| Err(Fault::machine("a thread of the check", "panicked")))
        })
    })?;
    let sent = SESSIONS * RECORDS;
    Ok(["INSERT", "SELECT", "UPDATE", "DELETE"].map(|verb| (verb.to_owned(), sent)).into())
}

fn work(session: &mut dyn KeyValueSession, marker: &str, fields: usize) -> Result<(), Fault> {
    let values: Vec<(usize, &[u8])> = (0..fields).map(|field| (field, &b"marked"[..])).collect();
    for number in 0..RECORDS {
        let key = format!("{marker}-{number:03}");
        let key = key.as_bytes();
        for request in [
            Request::Insert { key, values: &values },
            Request::Read { key, fields: Fields::All },
            Request::Update { key, values: &values[..1] },
            Request::Delete { key },
        ] {
            let done = session.call(&request, &mut Discard)?;
            if done != 1 {
                return Err(Fault::Wrong(format!("{done} rows for one marked key")));
            }
        }
    }
    Ok(())
}

/// Counts as text: `INSERT 100, SELECT 100`.
pub fn describe(counts: &Counts) -> String {
    if counts.is_empty() {
        return "none".to_owned();
    }
    let parts: Vec<_> = counts.iter().map(|(verb, count)| format!("{verb} {count}")).collect();
    parts.join(", ")
}
