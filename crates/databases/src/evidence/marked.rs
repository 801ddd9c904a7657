//! Statements that can be distinguished from all others, and what the server's log holds about them.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{Read as _, Seek as _, SeekFrom},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use tithe_machine::{fault::Fault, observation::Observation, threads};
use tithe_model::experiment::matches;
use tithe_plugin::{
    checks::{canary::key_value, logs_free::Plant},
    evidence::{CheckContext, Watch},
    session::{Discard, Fields, KeyValueSession, Request},
};

use super::long;

/// Reads the text added to the log of an attached server, through the server itself.
pub type Reader = Box<dyn Fn(&CheckContext<'_>) -> Result<Gained, Fault>>;

/// The text added to a log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Gained {
    /// Its text.
    pub text: String,
    /// Why some of it may be missing, with what to change.
    pub doubt: Option<&'static str>,
}

/// The doubt about a log that continued in another file, perhaps in several one after the other, or was started again.
pub const ROTATED: &str = "the log was rotated or cut short while it was read, and records may be lost: check again while nothing \
                           rotates it";

/// How one product's log is reached.
pub struct Log {
    /// Writes a token into it.
    pub plant: Plant,
    /// Records the current length of an attached server's log. If the log cannot be read, returns why, with what to
    /// change.
    pub served: fn(&CheckContext<'_>) -> Result<Reader, String>,
}

/// Sessions that send at the same time, so that a log that loses records under concurrency is detected.
pub const SESSIONS: usize = 4;
/// Records that each session inserts, reads, updates and deletes.
const RECORDS: usize = 25;
/// Long values that all sessions send: each inserts one and updates it.
pub const LONG_VALUES: usize = 2 * SESSIONS;
/// How long the log may lag behind the answers.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How long the record of a single statement may take to reach the log.
const TIMEOUT_OF_ONE: Duration = Duration::from_secs(5);

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

    /// All text added since the start: a token is written last, and once it is there, so is everything before it.
    /// `None` if the token does not appear.
    ///
    /// # Errors
    /// When the server refuses, or a log cannot be read.
    pub fn text(&self, context: &CheckContext<'_>, log: &Log) -> Result<Option<Gained>, Fault> {
        let parts = self.until_planted(context, log, &end_token(context))?;
        Ok(parts.map(Parts::joined))
    }

    /// The text added until a `token`, which is written now, appeared in it.
    fn until_planted(&self, context: &CheckContext<'_>, log: &Log, token: &str) -> Result<Option<Parts>, Fault> {
        (log.plant)(context, token)?;
        let has_token = |parts: &Parts| parts.texts.iter().any(|text| text.contains(token));
        let (parts, is_there) = self.until(context, TIMEOUT, has_token)?;
        Ok(is_there.then_some(parts))
    }

    /// The text added until `is_there` was true for it, with true; or the text added until the time for one statement
    /// was over, with false.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn of_one(&self, context: &CheckContext<'_>, is_there: impl Fn(&str) -> bool) -> Result<(Gained, bool), Fault> {
        let (parts, held) = self.until(context, TIMEOUT_OF_ONE, |parts| is_there(&parts.texts.concat()))?;
        Ok((parts.joined(), held))
    }

    fn until(
        &self,
        context: &CheckContext<'_>,
        timeout: Duration,
        is_there: impl Fn(&Parts) -> bool,
    ) -> Result<(Parts, bool), Fault> {
        let begun = Instant::now();
        loop {
            let parts = self.parts(context)?;
            let held = is_there(&parts);
            if held || begun.elapsed() > timeout {
                return Ok((parts, held));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The text added until the log stopped growing.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn at_rest(&self, context: &CheckContext<'_>) -> Result<Gained, Fault> {
        /// How long a server may keep a record before it writes it.
        const QUIET: Duration = Duration::from_millis(500);
        let begun = Instant::now();
        let mut gained = self.so_far(context)?;
        loop {
            std::thread::sleep(QUIET);
            let now = self.so_far(context)?;
            if now == gained || begun.elapsed() > TIMEOUT {
                return Ok(now);
            }
            gained = now;
        }
    }

    /// The text added until now.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn so_far(&self, context: &CheckContext<'_>) -> Result<Gained, Fault> {
        self.parts(context).map(Parts::joined)
    }

    /// The text added until now, by file.
    fn parts(&self, context: &CheckContext<'_>) -> Result<Parts, Fault> {
        match self {
            Self::Files(files) => {
                let texts = files.iter().map(|(path, length)| tail(path, *length)).collect::<Result<_, _>>()?;
                Ok(Parts { texts, doubt: None })
            }
            Self::Served(read) => read(context).map(|Gained { text, doubt }| Parts { texts: vec![text], doubt }),
        }
    }
}

/// The text added to the files of a log.
struct Parts {
    texts: Vec<String>,
    doubt: Option<&'static str>,
}

impl Parts {
    fn joined(self) -> Gained {
        Gained { text: self.texts.concat(), doubt: self.doubt }
    }
}

/// The lines of `text` after the last one with `since` and before the first one with `until`; from its beginning or to
/// its end if it has no such line.
fn between<'text>(text: &'text str, since: &str, until: &str) -> &'text str {
    let from = text.rfind(since).map_or(0, |at| text[at..].find('\n').map_or(text.len(), |end| at + end + 1));
    let rest = &text[from..];
    let to = rest.find(until).map_or(rest.len(), |at| rest[..at].rfind('\n').map_or(0, |end| end + 1));
    &rest[..to]
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

/// How many bytes before the end of a log identify it as the same log.
pub const BEFORE_BYTES: u64 = 64;

/// The bytes of `file` before `length`, at most [`BEFORE_BYTES`]. A file that was started again, by whatever process
/// rotates it, has other bytes there, even if it is as long again.
///
/// # Errors
/// When it cannot be read.
pub fn before(mut file: &File, length: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(length.saturating_sub(BEFORE_BYTES)))?;
    file.take(length.min(BEFORE_BYTES)).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads the text added to the file at `path` of this machine from now on, even if another file takes its name or it is
/// started again.
///
/// # Errors
/// Why it cannot be read.
pub fn growing(path: PathBuf) -> Result<Reader, String> {
    let gains = gains(path.clone()).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(Box::new(move |_| gains().map_err(|error| Fault::machine(path.display(), error))))
}

/// As [`growing`], of any reader.
fn gains(path: PathBuf) -> std::io::Result<impl Fn() -> std::io::Result<Gained>> {
    let file = File::open(&path)?;
    let known = file.metadata()?;
    let (length, number) = (known.len(), known.ino());
    let known = before(&file, length)?;
    Ok(move || {
        let is_anew = before(&file, length)? != known;
        let is_moved = path.metadata()?.ino() != number;
        let mut text = rest(&file, if is_anew { 0 } else { length })?;
        if is_moved {
            text += &rest(&File::open(&path)?, 0)?;
        }
        Ok(Gained { text, doubt: (is_anew || is_moved).then_some(ROTATED) })
    })
}

/// A comment in Tithe's own statements when other clients run statements too, so that its records can be distinguished
/// from theirs.
pub const OWN: &str = "/* tithe */";

/// How a check determines that a log holds everything that was sent before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// A token that is written last has appeared in it.
    Planted,
    /// It does not grow any more.
    Rest,
}

/// Counts the records added to a server's log while other clients work.
pub struct LogWatch {
    log: &'static Log,
    growth: Result<LogGrowth, String>,
    end: End,
    /// Counts the records of a text, without Tithe's own.
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
        let gained = match self.end {
            End::Planted => growth.text(context, self.log)?,
            End::Rest => Some(growth.at_rest(context)?),
        };
        let Some(Gained { text, doubt }) = gained else { return Ok(Observation::Unknown(NO_END.to_owned())) };
        let of_others = |line: &&str| !line.contains(OWN) && !line.contains("$tithe$");
        let counts = (self.count)(&text.lines().filter(of_others).collect::<Vec<_>>().join("\n"));
        Ok(match (counts.is_empty(), doubt) {
            (true, doubt) => {
                let words = "no record came while the command ran: it did nothing that is logged, or what its account \
                             does is not logged";
                Observation::Unknown(doubt.unwrap_or(words).to_owned())
            }
            (false, None) => Observation::Protected(format!("in the log meanwhile: {}", describe(&counts))),
            (false, Some(why)) => {
                Observation::Protected(format!("in the log meanwhile, at least: {}; {why}", describe(&counts)))
            }
        })
    }
}

/// What was sent, and which of it is in the log.
pub struct Tally {
    /// Statements by verb.
    pub sent: Counts,
    /// Records by verb.
    pub logged: Counts,
    /// As [`Gained::doubt`].
    pub doubt: Option<&'static str>,
}

impl Tally {
    /// The judgement of a log that must hold what is `expected`, no more and no less. If records may have been lost on
    /// the way to Tithe, missing ones show nothing about the log. A plain arm (not `protected`) that logs some of the
    /// statements is not a control: part of the protection's cost would not be counted.
    pub fn against(&self, expected: &Counts, protected: bool) -> Observation {
        let quotation = format!("sent: {}; in the log: {}", describe(&self.sent), describe(&self.logged));
        let in_part = self.logged.keys().any(|verb| self.sent.contains_key(verb));
        match (self.logged == *expected, self.doubt) {
            (true, _) => Observation::Protected(quotation),
            (false, _) if !protected && in_part => {
                Observation::Unknown(format!("the server logs without the protection, too: {quotation}"))
            }
            (false, None) => Observation::Exposed(quotation),
            (false, Some(why)) => Observation::Unknown(format!("{quotation}; {why}")),
        }
    }
}

/// Sends marked statements and counts them with `count`, which gets the log; `Err` with the reason if the log cannot be
/// read to its end.
///
/// # Errors
/// The first fault.
pub fn send_and_count(
    context: &CheckContext<'_>,
    log: &Log,
    count: impl FnOnce(&str) -> Counts,
) -> Result<Result<Tally, String>, Fault> {
    let growth = match LogGrowth::begin(context, log) {
        Ok(growth) => growth,
        Err(why) => return Ok(Err(why)),
    };
    // A record reaches a file some time after its statement: one of an earlier statement, such as that for the log's
    // length, can still arrive after `begin`. No sent statement comes before this token.
    let (since, until) = (format!("begin-of-{}", marker(context)), end_token(context));
    (log.plant)(context, &since)?;
    let sent = send(context)?;
    let Some(Parts { texts, doubt }) = growth.until_planted(context, log, &until)? else {
        return Ok(Err(NO_END.to_owned()));
    };
    let text: String = texts.iter().map(|text| between(text, &since, &until)).collect();
    Ok(Ok(Tally { sent, logged: count(&text), doubt }))
}

/// How many lines like `pattern` the log gains from marked statements. The inner result is an error with the reason if
/// that cannot be determined. No token is written: a plain server may have no log for it.
///
/// # Errors
/// The first fault.
pub fn lines_like(context: &CheckContext<'_>, log: &Log, pattern: &str) -> Result<Result<u64, String>, Fault> {
    let growth = match LogGrowth::begin(context, log) {
        Ok(growth) => growth,
        Err(why) => return Ok(Err(why)),
    };
    send(context)?;
    let Gained { text, doubt } = growth.at_rest(context)?;
    let lines = text.lines().filter(|line| matches(pattern, line)).count();
    Ok(doubt.map_or(Ok(lines as u64), |why| Err(why.to_owned())))
}

/// The token that is written last.
fn end_token(context: &CheckContext<'_>) -> String {
    format!("end-of-{}", marker(context))
}

/// The reason if there is no log to check.
pub const NO_LOG: &str = "the server's log can be read neither on this machine nor through the server";
/// The reason if a log ends early.
pub const NO_END: &str = "a message that the server was made to log is not in its log";

/// The prefix of every key of a check.
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
                threads::within(scope, move || work(&mut **session, &marker, fields))
            })
            .collect::<Result<_, _>>()?;
        threads.into_iter().try_for_each(|thread| {
            thread.join().unwrap_or_else(|_| Err(Fault::machine("a thread of the check", "panicked")))
        })
    })?;
    let sent = SESSIONS * RECORDS;
    Ok(["INSERT", "SELECT", "UPDATE", "DELETE"].map(|verb| (verb.to_owned(), sent)).into())
}

/// The first record of a session has a long value.
fn work(session: &mut dyn KeyValueSession, marker: &str, fields: usize) -> Result<(), Fault> {
    let long = long::value(marker);
    for number in 0..RECORDS {
        let key = format!("{marker}-{number:03}");
        let key = key.as_bytes();
        let first = if number == 0 { long.as_bytes() } else { long::SHORT.as_bytes() };
        let values: Vec<(usize, &[u8])> =
            (0..fields).map(|field| (field, if field == 0 { first } else { long::SHORT.as_bytes() })).collect();
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

#[cfg(test)]
mod tests {
    use std::{cell::Cell, fs, io::Write as _};

    use tithe_plugin::simulated::test_bench::Bench;

    use super::*;

    fn counts(number: usize) -> Counts {
        [("SELECT".to_owned(), number)].into()
    }

    #[test]
    fn what_may_have_been_lost_on_the_way_is_not_missing_in_the_log() {
        let tally = |logged, doubt| Tally { sent: counts(3), logged: counts(logged), doubt }.against(&counts(3), true);
        assert!(matches!(tally(3, Some(ROTATED)), Observation::Protected(_)));
        assert!(matches!(tally(2, None), Observation::Exposed(_)));
        let Observation::Unknown(words) = tally(2, Some(ROTATED)) else { panic!("it cannot be told") };
        assert!(words.starts_with("sent: SELECT 3; in the log: SELECT 2; the log was rotated"), "{words}");
    }

    #[test]
    fn records_before_and_after_a_look_do_not_count() {
        let cut = |text| between(text, "begin-of-1", "end-of-1");
        assert_eq!(
            cut("earlier\nDO begin-of-1\nLOG begin-of-1\none\ntwo\nDO end-of-1\nLOG end-of-1\nlater\n"),
            "one\ntwo\n"
        );
        // A file of another format or of another logger has no token.
        assert_eq!(cut("one\ntwo\n"), "one\ntwo\n");
        assert_eq!(cut("begin-of-1\nend-of-1"), "");
        assert_eq!(cut("begin-of-1"), "");
    }

    #[test]
    fn a_plain_arm_that_is_logged_in_part_is_no_control() {
        let sent: Counts = [("SELECT".to_owned(), 3), ("INSERT".to_owned(), 3)].into();
        let plain = |logged: &[(&str, usize)]| {
            let logged = logged.iter().map(|(verb, count)| ((*verb).to_owned(), *count)).collect();
            Tally { sent: sent.clone(), logged, doubt: None }.against(&sent, false)
        };
        assert!(matches!(plain(&[]), Observation::Exposed(_)));
        // Logins are decided by another filter.
        assert!(matches!(plain(&[("CONNECT", 4)]), Observation::Exposed(_)));
        let Observation::Unknown(words) = plain(&[("INSERT", 3)]) else { panic!("it is not a control") };
        assert_eq!(
            words,
            "the server logs without the protection, too: sent: INSERT 3, SELECT 3; in the log: INSERT 3"
        );
    }

    #[test]
    fn a_log_that_is_renamed_or_begun_anew_is_read_on_and_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("log");
        let append = |text: &str| {
            let file = fs::OpenOptions::new().append(true).create(true).open(&log);
            file.and_then(|mut file| file.write_all(text.as_bytes())).expect("written");
        };
        let begin = || {
            fs::write(&log, "before\n").expect("written");
            gains(log.clone()).expect("a log")
        };
        let read = |gains: &dyn Fn() -> std::io::Result<Gained>| {
            let Gained { text, doubt } = gains().expect("read");
            (text, doubt.is_some())
        };
        let gains = begin();
        append("one\n");
        assert_eq!(read(&gains), ("one\n".to_owned(), false));
        // Renamed twice: the text between is lost, and reported.
        for name in ["log.1", "log.2"] {
            fs::rename(&log, folder.path().join(name)).expect("renamed");
            append(&format!("after {name}\n"));
        }
        assert_eq!(read(&gains), ("one\nafter log.2\n".to_owned(), true));
        // Cut short, and grown again to less and to more than it was.
        let gains = begin();
        fs::write(&log, "new\n").expect("written");
        assert_eq!(read(&gains), ("new\n".to_owned(), true));
        append("as long as the old one, and longer\n");
        assert_eq!(read(&gains), ("new\nas long as the old one, and longer\n".to_owned(), true));
    }

    fn append(log: &Path, text: &str) -> std::io::Result<()> {
        fs::OpenOptions::new().append(true).create(true).open(log)?.write_all(text.as_bytes())
    }

    /// The log of a launched server, into which its clients write.
    static LOG: Log = Log {
        plant: |context, token| Ok(append(&context.server.paths.logs[0], &format!("LOG {token}\n"))?),
        served: |_| Err("no log is served".to_owned()),
    };

    fn selects(text: &str) -> Counts {
        let count = text.lines().filter(|line| line.starts_with("SELECT")).count();
        Counts::from_iter((count > 0).then(|| ("SELECT".to_owned(), count)))
    }

    /// The operations on keys that begin with `mark`, in the simulated database's log of operations.
    fn operations(text: &str, mark: &str) -> Counts {
        let mut counts = Counts::new();
        for (verb, key) in text.lines().filter_map(|line| line.split_once(' ')) {
            if key.starts_with(mark) {
                let verb = if verb == "READ" { "SELECT" } else { verb };
                *counts.entry(verb.to_owned()).or_default() += 1;
            }
        }
        counts
    }

    #[test]
    fn every_marked_statement_is_sent_and_counted_in_a_log_from_then_on() {
        let all: Counts = ["INSERT", "SELECT", "UPDATE", "DELETE"].map(|verb| (verb.to_owned(), 100)).into();
        let audited: [(&str, &[(&str, f64)]); 1] = [("audit", &[])];
        for protections in [&audited[..], &[]] {
            let bench = Bench::new(protections, &[]);
            let (context, log) = (bench.context(), &bench.server.paths.logs[0]);
            let mark = marker(&context);
            let counted = || send_and_count(&context, &LOG, |text| operations(text, &mark)).expect("it is no fault");
            assert_eq!(counted().err().as_deref(), Some("no log is served"), "there is no file yet");
            append(log, &format!("INSERT {mark}-before\n")).expect("written");
            let Tally { sent, logged, doubt } = counted().expect("a log");
            assert_eq!((&sent, doubt), (&all, None));
            assert_eq!(logged, if protections.is_empty() { Counts::new() } else { all.clone() });
            let inserts = if protections.is_empty() { 0 } else { 100 };
            assert_eq!(lines_like(&context, &LOG, "INSERT *"), Ok(Ok(inserts)));
            assert_eq!(lines_like(&context, &LOG, "GRANT *"), Ok(Ok(0)));
        }
    }

    #[test]
    fn a_record_that_comes_later_is_waited_for() {
        let bench = Bench::plain();
        let (context, log) = (bench.context(), bench.server.paths.logs[0].clone());
        append(&log, "before\n").expect("written");
        let growth = LogGrowth::begin(&context, &LOG).expect("a log");
        assert_eq!(growth.so_far(&context), Ok(Gained::default()), "what was there does not count");
        let looks = Cell::new(0);
        let is_there = |text: &str| {
            if looks.replace(looks.get() + 1) == 0 {
                append(&log, "late\n").expect("written");
            }
            text.contains("late")
        };
        let (gained, is_there) = growth.of_one(&context, is_there).expect("read");
        assert_eq!((gained.text.as_str(), is_there), ("late\n", true));
        let whole = growth.text(&context, &LOG).expect("read").expect("the token is there");
        assert_eq!(whole.text, format!("late\nLOG {}\n", end_token(&context)));
    }

    #[test]
    fn marks_tell_one_check_and_one_arm_from_another() {
        let bench = Bench::plain();
        let mut context = bench.context();
        let of = |context: &mut CheckContext<'_>, nonce: u64, protected: bool| {
            (context.nonce, context.protected) = (nonce, protected);
            marker(context)
        };
        assert_eq!(of(&mut context, 0xab, true), "audit-00000000000000ab-g");
        assert_eq!(of(&mut context, 0xab, false), "audit-00000000000000ab-p");
        assert_eq!(of(&mut context, 1 << 60, false), "audit-1000000000000000-p");
    }

    #[test]
    fn a_log_is_watched_for_what_others_do_and_from_the_watch_on() {
        let bench = Bench::plain();
        let (context, log) = (bench.context(), &bench.server.paths.logs[0]);
        let watch = || LogWatch::begin(&context, &LOG, End::Planted, selects);
        let unseen = watch().end(&context).expect("it is no fault");
        assert_eq!(unseen, Observation::Unknown("no log is served".to_owned()));
        append(log, "SELECT before\n").expect("written");
        let seen = |added: &str| {
            let watch = watch();
            append(log, added).expect("written");
            watch.end(&context).expect("the log is there")
        };
        let others = seen("SELECT 1\nSELECT 2 /* tithe */\nDELETE 3\nSELECT 4\n");
        assert_eq!(others, Observation::Protected("in the log meanwhile: SELECT 2".to_owned()));
        let own = seen("SELECT 2 /* tithe */\nSELECT $tithe$a$tithe$\nDELETE 3\n");
        assert!(matches!(&own, Observation::Unknown(why) if why.starts_with("no record came")), "{own:?}");
    }
}
