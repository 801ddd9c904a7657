//! Statements that can be told from all others, and what the server's log says about them.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{Read as _, Seek as _, SeekFrom},
    time::{Duration, Instant},
};

use tithe_harness::{
    evidence::{Scene, canary::key_value, logs_free::Plant},
    fault::Fault,
    session::{Discard, Fields, KeyValueSession, Request},
};

/// Sessions that send at the same time, so that a log that loses records under concurrency is caught.
pub const SESSIONS: usize = 4;
/// Records that each session inserts, reads, updates and deletes.
const RECORDS: usize = 25;
/// How long the log may lag behind the answers.
const PATIENCE: Duration = Duration::from_secs(10);

/// Number of statements by verb: `INSERT`, `SELECT`, `UPDATE`, `DELETE`.
pub type Counts = BTreeMap<String, usize>;

/// The server's log from a moment on.
pub struct LogGrowth {
    files: Vec<(std::path::PathBuf, u64)>,
}

impl LogGrowth {
    /// Remembers how long the logs are now; `None` when they are not on this machine.
    pub fn begin(scene: &Scene<'_>) -> Option<Self> {
        let length = |path: &std::path::PathBuf| Some((path.clone(), path.metadata().ok()?.len()));
        let files: Vec<_> = scene.server.paths.logs.iter().filter_map(length).collect();
        if files.is_empty() { None } else { Some(Self { files }) }
    }

    /// What was added since, all of it: a token is planted last with `plant`, and once it is there, so is everything before it.
    /// `None` when the token does not come.
    ///
    /// # Errors
    /// When the server refuses, or a log cannot be read.
    pub fn text(&self, scene: &Scene<'_>, plant: Plant) -> Result<Option<String>, Fault> {
        let token = format!("end-of-{}", marker(scene));
        plant(scene, &token)?;
        let begun = Instant::now();
        loop {
            let text = self.so_far()?;
            if text.contains(&token) {
                return Ok(Some(text));
            }
            if begun.elapsed() > PATIENCE {
                return Ok(None);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// What was added until now.
    ///
    /// # Errors
    /// When a log cannot be read.
    pub fn so_far(&self) -> Result<String, Fault> {
        let mut added = Vec::new();
        for (path, length) in &self.files {
            let read = |added: &mut Vec<u8>| {
                let mut file = File::open(path)?;
                file.seek(SeekFrom::Start(*length))?;
                file.read_to_end(added)
            };
            read(&mut added).map_err(|error| Fault::machine(path.display(), error))?;
        }
        Ok(String::from_utf8_lossy(&added).into_owned())
    }
}

/// Sends marked statements and counts them with `count`, which gets the log up to a token that `plant` puts there. What was sent and what is in the log;
/// `Err` with the reason when the log cannot be read to its end.
///
/// # Errors
/// The first fault.
pub fn send_and_count(
    scene: &Scene<'_>,
    plant: Plant,
    count: impl FnOnce(&str) -> Counts,
) -> Result<Result<(Counts, Counts), &'static str>, Fault> {
    let Some(growth) = LogGrowth::begin(scene) else { return Ok(Err(NO_LOG)) };
    let sent = send(scene)?;
    let Some(text) = growth.text(scene, plant)? else { return Ok(Err(NO_END)) };
    Ok(Ok((sent, count(&text))))
}

/// Why nothing can be said without a log.
pub const NO_LOG: &str = "the server's log is not on this machine";
/// Why nothing can be said with a log that ends early.
pub const NO_END: &str = "a message that the server was made to log is not in its log";

/// What every key of a look starts with.
pub fn marker(scene: &Scene<'_>) -> String {
    format!("audit-{:016x}-{}", scene.nonce, if scene.guarded { 'g' } else { 'p' })
}

/// Sends marked statements as the measured clients do, from several sessions at once. Every record is removed again.
/// Returns the number of statements by verb.
///
/// # Errors
/// The first fault.
pub fn send(scene: &Scene<'_>) -> Result<Counts, Fault> {
    let marker = marker(scene);
    let mut sessions = Vec::new();
    for _ in 0..SESSIONS {
        sessions.push(key_value(scene.connect()?)?);
    }
    let fields = scene.table.fields;
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
