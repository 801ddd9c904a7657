//! The properties of a replay, and their log, which is read once.

use std::{
    fs::File,
    io::{BufRead, BufReader, Cursor, Read},
    path::Path,
};

use tithe_model::catalogue::{Properties, PropertyProblem};

use super::{
    account::Account,
    entry::{LogEnd, Problem, Sent},
    gather::{Choice, Gather},
    lines::Encoding,
    readers::{FORMS, Form, Reading, others, recognise},
    recording::Recording,
    sql::Flavour,
};
use crate::{COPY_LIMIT, dump::head::PACKED, script::guard};

/// Every property, its default and one sentence.
pub const KNOWN: [(&str, &str, &str); 9] = [
    ("log", "", "the log's file"),
    ("form", "", "csvlog, jsonlog, stderr, general-log, slow-log or server-audit; recognised if not given"),
    ("prefix", "", "log_line_prefix of a log on standard error; known ones are tried if not given"),
    ("encoding", "utf8", "utf8 or latin1"),
    ("database", "", "the database whose transactions are replayed; needed if the log has several"),
    ("pace", "closed", "closed for one transaction after the other; 1 for the log's own pace, 2 for twice as fast"),
    ("finish", "as-logged", "as-logged, or rollback in place of each commit, so that data stay as they are"),
    (COPY_LIMIT, "", "what copies of tables may take on a server whose free disk is not known"),
    ("memory", "512", "MB that the transactions in memory may take"),
];

/// How transactions end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finish {
    /// As they were logged.
    AsLogged,
    /// By `ROLLBACK`, each.
    Rollback,
}

/// The properties, without their log.
#[derive(Debug, Clone)]
pub struct Config {
    log: String,
    form: Option<&'static Form>,
    reading: Reading,
    choice: Choice,
    pace: Option<f64>,
    finish: Finish,
    copy_limit: Option<u64>,
}

/// A log, ready for replay.
pub struct Replayed {
    /// Its file.
    pub file: String,
    /// Its format.
    pub form: &'static str,
    /// The product family of its SQL.
    pub flavour: Flavour,
    /// Its transactions.
    pub recording: Recording,
    /// The replayed and the omitted part.
    pub account: Account,
    /// Speed relative to the log; `None` for one transaction after the other.
    pub pace: Option<f64>,
    /// How transactions end.
    pub finish: Finish,
    /// Transactions by seat, in the order of time: as many seats as concurrent sessions.
    pub order: Vec<Vec<usize>>,
    /// Some statement changes rows, according to the texts.
    pub writes: bool,
    /// Size limit of copies of tables, bytes.
    pub copy_limit: Option<u64>,
    /// Texts that were prepared under a name, the most frequent first.
    pub prepared: Vec<usize>,
    /// When its first transaction began, µs.
    pub start_us: i64,
    /// When its last one ended, µs.
    pub end_us: i64,
}

impl Config {
    /// Resolves `properties`, with their problems. No file is opened.
    pub fn resolve(properties: &Properties) -> (Self, Vec<PropertyProblem>) {
        let mut problems = Vec::new();
        for name in properties.keys().filter(|name| KNOWN.iter().all(|(known, ..)| known != name)) {
            let known: Vec<&str> = KNOWN.iter().map(|(known, ..)| *known).collect();
            problems.push((
                name.clone(),
                "is not a property of a replay".to_owned(),
                format!("known are {}", known.join(", ")),
            ));
        }
        let mut refuse = |name: &str, problem: String| {
            let help = KNOWN.iter().find(|(known, ..)| *known == name).map_or("", |(_, _, help)| help);
            problems.push((name.to_owned(), problem, help.to_owned()));
        };
        let given = |name: &str| properties.get(name).map(|value| value.trim()).filter(|value| !value.is_empty());
        if given("log").is_none() {
            refuse("log", "names no file".to_owned());
        }
        let form = given("form").and_then(|name| {
            let form = FORMS.iter().find(|form| form.name == name);
            if form.is_none() {
                refuse("form", format!("`{name}` is not a form of log"));
            }
            form
        });
        let encoding = match given("encoding") {
            None | Some("utf8") => Encoding::Utf8,
            Some("latin1") => Encoding::Latin1,
            Some(other) => {
                refuse("encoding", format!("`{other}` is not known"));
                Encoding::Utf8
            }
        };
        let pace = given("pace").filter(|pace| *pace != "closed").and_then(|text| {
            let pace = text.parse().ok().filter(|pace: &f64| pace.is_finite() && *pace > 0.0);
            if pace.is_none() {
                refuse("pace", format!("`{text}` is not a pace"));
            }
            pace
        });
        let finish = match given("finish") {
            None | Some("as-logged") => Finish::AsLogged,
            Some("rollback") => Finish::Rollback,
            Some(other) => {
                refuse("finish", format!("`{other}` is not possible"));
                Finish::AsLogged
            }
        };
        let memory = given("memory").unwrap_or("512").parse().ok().filter(|mb| (1..=1_000_000).contains(mb));
        let memory = memory.unwrap_or_else(|| {
            refuse("memory", "is not a number of MB from 1 on".to_owned());
            1
        });
        let copy_limit = given(COPY_LIMIT).and_then(|text| {
            let bytes: Option<u64> = text.parse().ok();
            if bytes.is_none() {
                refuse(COPY_LIMIT, format!("`{text}` is not a number of bytes"));
            }
            bytes
        });
        // A prefix may end with a blank, and often does.
        let prefix = properties.get("prefix").filter(|prefix| !prefix.is_empty()).cloned();
        let config = Self {
            log: given("log").unwrap_or_default().to_owned(),
            form,
            reading: Reading { encoding, prefix },
            choice: Choice {
                database: given("database").map(str::to_owned),
                memory: memory << 20,
                undoes: finish == Finish::Rollback,
            },
            pace,
            finish,
            copy_limit,
        };
        (config, problems)
    }

    /// True if clients pause between transactions, as in the log.
    pub fn pauses(&self) -> bool {
        self.pace.is_some()
    }

    /// Reads the log.
    ///
    /// # Errors
    /// The problem with it, with file and line.
    pub fn read(&self) -> Result<Replayed, PropertyProblem> {
        let name =
            Path::new(&self.log).file_name().map_or(self.log.clone(), |name| name.to_string_lossy().into_owned());
        let failed = |error: std::io::Error| {
            (
                "log".to_owned(),
                format!("{} cannot be read: {error}", self.log),
                "name a file that can be read".to_owned(),
            )
        };
        let file = File::open(&self.log).map_err(failed)?;
        if file.metadata().map_err(failed)?.is_dir() {
            let help = "name its file; join the files of one server by `cat`, in order of time".to_owned();
            return Err(("log".to_owned(), format!("{} is a folder", self.log), help));
        }
        self.read_from(&mut BufReader::with_capacity(1 << 18, file), name)
            .map_err(|problem| ("log".to_owned(), format!("{}: {problem}", self.log), problem.help))
    }

    /// Reads a log called `name` from `input`.
    ///
    /// # Errors
    /// The problem with it.
    pub fn read_from(&self, input: &mut dyn BufRead, name: String) -> Result<Replayed, Problem> {
        let mut head = Vec::new();
        input.take(1 << 16).read_to_end(&mut head).map_err(|error| super::lines::unreadable(1, &error))?;
        if PACKED.iter().any(|(magic, _)| head.starts_with(magic)) {
            return Err(Problem::new(1, "the log is compressed", "unpack it first, as by `gunzip -k` or `zstd -d`"));
        }
        if head.iter().all(u8::is_ascii_whitespace) {
            return Err(Problem::new(1, "the log is empty", "name a log with statements"));
        }
        let text = String::from_utf8_lossy(head.strip_prefix(tithe_model::catalogue::BYTE_ORDER_MARK).unwrap_or(&head));
        let is_told = self.form.is_some() || self.reading.prefix.is_some();
        if let Some(problem) = others::problem(&text).filter(|_| !is_told) {
            return Err(problem);
        }
        let form = self.form.or_else(|| recognise(&text)).ok_or_else(|| {
            Problem::new(1, "the log has no statement", "name a log with statements, or its form: `form = \"csvlog\"`")
        })?;
        drop(text);
        let mut gather = Gather::new(self.choice.clone(), form.flavour);
        let mut whole = BufReader::new(Cursor::new(head).chain(input));
        let end = (form.read)(&mut whole, &self.reading, &mut |entry| gather.take(entry))?;
        let (recording, account) = gather.finish(match end {
            LogEnd::Whole => None,
            LogEnd::Cut(line) => Some(line),
        })?;
        self.replayed(name, form, recording, account)
    }

    fn replayed(
        &self,
        file: String,
        form: &'static Form,
        recording: Recording,
        account: Account,
    ) -> Result<Replayed, Problem> {
        let starts = recording.transactions.iter().map(|transaction| transaction.start_us);
        let ends = recording.transactions.iter().map(|transaction| transaction.end_us);
        let (start_us, end_us) = (starts.min().unwrap_or(0), ends.max().unwrap_or(0));
        // Durations of statements are no times.
        if self.pace.is_some() && (!recording.has_times || end_us <= start_us) {
            let help = "leave out `pace`: one transaction follows the other then";
            return Err(Problem::new(1, "the log has no times, so it has no pace", help));
        }
        let in_order = |sessions: Vec<usize>| {
            let numbers = sessions.into_iter().flat_map(|session| recording.sessions[session].clone());
            numbers.collect::<Vec<usize>>()
        };
        let order = recording.seats().into_iter().map(in_order).collect();
        let mut counts = vec![0u64; recording.texts.len()];
        let steps = recording.transactions.iter().flat_map(|transaction| recording.steps(transaction));
        steps.filter(|step| step.sent == Sent::Prepared).for_each(|step| counts[step.text] += 1);
        let mut prepared: Vec<usize> = (0..counts.len()).filter(|&text| counts[text] > 0).collect();
        prepared.sort_by_key(|&text| std::cmp::Reverse(counts[text]));
        let (form, flavour) = (form.name, form.flavour);
        let writes = |text: &String| guard::writes(text, flavour) || guard::makes_writable(text, flavour);
        let writes = recording.texts.iter().any(writes);
        let Self { pace, finish, copy_limit, .. } = *self;
        Ok(Replayed {
            file,
            form,
            flavour,
            recording,
            account,
            pace,
            finish,
            order,
            writes,
            copy_limit,
            prepared,
            start_us,
            end_us,
        })
    }
}
