//! Statements that can be told from all others, and what the server's log says about them.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{Read as _, Seek as _, SeekFrom},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use tithe_machine::{fault::Fault, observation::Observation};
use tithe_plugin::{
    checks::{canary::key_value, logs_free::Plant},
    evidence::{CheckContext, Watch},
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

    /// What was added until it stopped growing.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn at_rest(&self, context: &CheckContext<'_>) -> Result<String, Fault> {
        /// How long a server may keep a record before it writes it.
        const QUIET: Duration = Duration::from_millis(500);
        let begun = Instant::now();
        let mut text = self.so_far(context)?;
        loop {
            std::thread::sleep(QUIET);
            let now = self.so_far(context)?;
            if now.len() == text.len() || begun.elapsed() > TIMEOUT {
                return Ok(now);
            }
            text = now;
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
    let read = || rest(&File::open(path)?, length);
    read().map_err(|error| Fault::machine(path.display(), error))
}

/// The bytes of `file` from `length` on.
fn rest(mut file: &File, length: u64) -> std::io::Result<String> {
    let mut added = Vec::new();
    file.seek(SeekFrom::Start(length))?;
    file.read_to_end(&mut added)?;
    Ok(String::from_utf8_lossy(&added).into_owned())
}

/// Reads what the file at `path` of this machine gains from now on, also where another one takes its name meanwhile.
///
/// # Errors
/// Why it cannot be read.
pub fn growing(path: PathBuf) -> Result<Reader, String> {
    let open = || {
        let file = File::open(&path)?;
        let known = file.metadata()?;
        Ok::<_, std::io::Error>((file, known.len(), known.ino()))
    };
    let (file, length, number) = open().map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(Box::new(move |_| {
        let read = || {
            let mut text = rest(&file, length)?;
            if path.metadata()?.ino() != number {
                text += &rest(&File::open(&path)?, 0)?;
            }
            Ok(text)
        };
        read().map_err(|error: std::io::Error| Fault::machine(path.display(), error))
    }))
}

/// Stands in Tithe's own statements beside those of others, so that its records are told from theirs.
pub const OWN: &str = "/* tithe */";

/// How it is known that a log holds all that was sent before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// A token that is planted last has come into it.
    Planted,
    /// It does not grow any more.
    Rest,
}

/// Counts what comes into a server's log while other clients work.
pub struct LogWatch {
    log: &'static Log,
    growth: Result<LogGrowth, String>,
    end: End,
    /// Counts the records of a text; those of Tithe's own are not in it.
    count: fn(&str) -> Counts,
}

impl LogWatch {
    /// Begins with the log as it is now.
    pub fn begin(context: &CheckContext<'_>, log: &'static Log, end: End, count: fn(&str) -> Counts) -> Box<dyn Watch> {
        Box::new(Self { log, growth: LogGrowth::begin(context, log), end, count })
    }
}

impl Watch for LogWatch {
    fn claim(&self) -> String {
        "what the command does comes into the log".to_owned()
    }

    fn end(self: Box<Self>, context: &CheckContext<'_>) -> Result<Observation, Fault> {
        let growth = match self.growth {
            Ok(growth) => growth,
            Err(why) => return Ok(Observation::Unknown(why)),
        };
        let text = match self.end {
            End::Planted => growth.text(context, self.log)?,
            End::Rest => Some(growth.at_rest(context)?),
        };
        let Some(text) = text else { return Ok(Observation::Unknown(NO_END.to_owned())) };
        let of_others = |line: &&str| !line.contains(OWN) && !line.contains("$tithe$");
        let counts = (self.count)(&text.lines().filter(of_others).collect::<Vec<_>>().join("\n"));
        Ok(if counts.is_empty() {
            let words = "no record came while the command ran: it did nothing of what is logged, or what its account \
                         does is not logged";
            Observation::Unknown(words.to_owned())
        } else {
            Observation::Protected(format!("in the log meanwhile: {}", describe(&counts)))
        })
    }
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
